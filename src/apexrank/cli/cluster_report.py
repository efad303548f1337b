"""What ``apexrank cluster`` shows: the clusters with their orders, and where each voter is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from apexrank.cli.elbow import silhouette_of
from apexrank.cli.output import is_terminal, print_frame, print_json, print_table
from apexrank.cli.profile import Profile

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from apexrank.aggregation.kmeans import LovaszBregmanKMeans

_ITEMS_SHOWN = 5


class Cluster(NamedTuple):
    """Voters who order the items alike: how many, how far from the centre on average, and the centre's order."""

    number: int
    size: int | float
    divergence: float | None
    order: list[str]
    means: list[float]  # best first, as the order

    def told(self) -> dict[str, Any]:
        """The cluster as JSON has it."""
        return {
            "cluster": self.number,
            "voters": self.size,
            "divergence": self.divergence,
            "order": self.order,
            "scores": self.means,
        }

    def shown(self) -> str:
        """The first items; equal means are ties.

        Examples
        --------
        >>> Cluster(1, 9, 0.1, ["tea", "milk", "rum"], [2.0, 1.0, 1.0]).shown()
        'tea > milk = rum'
        """
        near = 1e-12 * max(abs(mean) for mean in self.means)
        text = self.order[0]
        for place in range(1, min(_ITEMS_SHOWN, len(self.order))):
            tied = self.means[place - 1] - self.means[place] <= near
            text += f" {'=' if tied else '>'} {self.order[place]}"
        return text


def show_clusters(
    profile: Profile,
    model: LovaszBregmanKMeans,
    scores: np.ndarray,
    report: dict[str, Any],
    orders: Path | None,
    output: Path | None,
    json: bool,
) -> None:
    """Write or print the clusters and the voters in them; ``report`` has what is known of the ballots."""
    from apexrank.io import write_table

    clusters, found = _clusters(profile, model, scores)
    report |= {
        "inertia": model.inertia_,
        "silhouette": silhouette_of(profile, model, scores),
        "steps": model.n_iter_,
        "converged": model.converged_,
    }
    if orders is not None:
        write_table(_orders(clusters), orders)
    if output is not None:
        write_table(found, output)
    report["files"] = [str(path) for path in (output, orders) if path is not None]
    if json:
        report["clusters"] = [cluster.told() for cluster in clusters]
        print_json(report | ({"voters_clusters": found.to_dicts()} if output is None else {}))
    elif output is None and not is_terminal():
        print_frame(found)
        profile.tell_gaps(report["missing"]["rule"])
    else:
        _print(profile, clusters, report)


def _print(profile: Profile, clusters: list[Cluster], report: dict[str, Any]) -> None:
    table = [[cluster.number, cluster.size, cluster.divergence, cluster.shown()] for cluster in clusters]
    print_table(["cluster", "voters", "mean divergence", f"order (first {_ITEMS_SHOWN})"], table)
    state, seconds = "converged" if report["converged"] else "stopped", report["seconds"]
    apart = "" if report["silhouette"] is None else f", silhouette {report['silhouette']:.2f}"
    typer.echo(
        f"{profile.sentence(report['missing']['rule'])}; inertia {report['inertia']:.4g}{apart}, {state} after "
        f"{report['steps']} steps; read in {seconds['reading']:.1f} s, clustered in {seconds['clustering']:.1f} s"
    )
    files = ", ".join(report["files"])
    typer.echo(f"written: {files}" if files else "write the cluster of each voter with -o FILE.csv")


def _clusters(
    profile: Profile, model: LovaszBregmanKMeans, scores: np.ndarray
) -> tuple[list[Cluster], pl.DataFrame]:
    """What is known of the clusters that have voters, the largest first, and where each voter is."""
    import numpy as np

    weights = np.ones(len(scores)) if profile.weights is None else profile.weights
    own = model.transform(scores)[np.arange(len(scores)), model.labels_]
    rows, size, total = (
        np.bincount(model.labels_, values, model.n_clusters) for values in (None, weights, weights * own)
    )
    centres = [centre for centre in np.argsort(-size, kind="stable").tolist() if rows[centre]]
    clusters = [
        _cluster(profile, model, number, centre, float(size[centre]), float(total[centre]))
        for number, centre in enumerate(centres, start=1)
    ]
    numbers = np.zeros(model.n_clusters, dtype=np.int64)
    numbers[centres] = np.arange(1, len(centres) + 1)
    return clusters, _places(profile, numbers[model.labels_], own)


def _cluster(
    profile: Profile, model: LovaszBregmanKMeans, number: int, centre: int, size: float, total: float
) -> Cluster:
    order = model.orders_[centre]
    return Cluster(
        number,
        int(size) if size.is_integer() else size,
        total / size if size else None,
        [profile.items[item] for item in order.tolist()],
        model.cluster_centers_[centre][order].tolist(),
    )


def _places(profile: Profile, numbers: np.ndarray, divergences: np.ndarray) -> pl.DataFrame:
    """Each voter's cluster and how far it is from the centre; columns of these names make room."""
    import polars as pl

    columns = {"cluster": numbers, "divergence": divergences}
    taken = {name: f"{name}_given" for name in columns if name in profile.voters.columns}
    voters = profile.voters.rename(taken)
    return voters.with_columns(pl.Series(name, values) for name, values in columns.items())


def _orders(clusters: list[Cluster]) -> pl.DataFrame:
    """Each cluster's items from the best on, with the mean score."""
    import polars as pl

    rows = [
        (cluster.number, rank, item, mean)
        for cluster in clusters
        for rank, (item, mean) in enumerate(zip(cluster.order, cluster.means, strict=True), start=1)
    ]
    return pl.DataFrame(rows, schema=["cluster", "rank", "item", "score"], orient="row")
