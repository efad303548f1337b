"""``apexrank cluster``: groups of voters who order the items alike, each with its order."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from apexrank.cli.ballots import (
    BallotFile,
    Ballots,
    Drop,
    Id,
    ItemsIn,
    Kind,
    Missing,
    Normalize,
    Points,
    Profile,
    Weights,
    about,
    check_missing,
    check_outputs,
    read_points,
)
from apexrank.cli.edge_options import Json
from apexrank.cli.output import is_terminal, note, print_frame, print_json, print_table, working
from apexrank.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from apexrank.aggregation.kmeans import LovaszBregmanKMeans
    from apexrank.submodular import SetFunction

_METHOD, _FILES = "Method", "Output"
_ITEMS_SHOWN = 5
_SHAPES = ("sqrt", "log", "product", "indicator", "chain")


def _option(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_METHOD, **more)


def _file(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_FILES)


def cluster(
    ballots: BallotFile,
    k: Annotated[int | None, _option("Number of clusters.", "--clusters", "-k", min=1, metavar="K")] = None,
    elbow: Annotated[
        str | None,
        _option(
            "Show the objective and the silhouette for each number of clusters from A to B.", metavar="A-B"
        ),
    ] = None,
    f: Annotated[
        str,
        _option(
            "Submodular function of the divergence: sqrt and log look at the first places most, product at all alike, "
            "top:3 at the first 3; also indicator and chain.",
            "--f",
        ),
    ] = "sqrt",
    euclidean: Annotated[
        float,
        _option("Add so much of half the squared distance to the mean; 0 compares orders alone.", min=0),
    ] = 0.0,
    n_init: Annotated[int, _option("Random starts, the best of which is kept.", min=1)] = 10,
    seed: Annotated[int, _option("For the starts.", min=0)] = 0,
    normalize: Normalize = None,
    points: Points = None,
    missing: Missing = None,
    kind: Kind = None,
    items_in: ItemsIn = None,
    id: Id = None,
    weights: Weights = None,
    drop: Drop = None,
    orders: Annotated[Path | None, _file("CSV or Parquet file to write: the order of each cluster.")] = None,
    output: Annotated[
        Path | None,
        _file(
            "CSV or Parquet file to write: the cluster of each voter, or the table of --elbow.",
            "--output",
            "-o",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Group voters who order the items alike; cluster 1 is the largest."""
    from apexrank.aggregation.points import read_rule

    check_outputs(ballots, output, orders)
    sizes = _sizes(k, elbow, orders)
    check_missing(missing)
    parameters = {"f": _shape(f), "euclidean": euclidean, "n_init": n_init, "random_state": seed}
    rule = read_rule("lovasz-bregman", normalize, read_points(points, kind, ballots), 60, 40, 60)
    began = time.perf_counter()
    profile = Ballots(kind, items_in, id, weights, drop).read(ballots)
    scores = _scores(profile, rule, missing)
    if sizes[-1] > len(scores):
        words = "orders" if profile.lists and profile.weights is not None else "voters"
        raise InputError(
            f"{sizes[-1]} clusters are more than the {len(scores)} {words} of {ballots}: lower the number"
        )
    read = time.perf_counter()
    models = [_fit(size, profile, scores, parameters) for size in sizes]
    profile.tell(scales=normalize is None)
    report = {
        "ballots_file": profile.source,
        **({"title": profile.title} if profile.title else {}),
        "ballots": len(scores),
        "voters": profile.total,
        "items": len(profile.items),
        "missing": {"number": profile.n_missing, "rule": profile.missing(missing)},
        "f": f,
        "euclidean": euclidean,
        "seconds": {"reading": round(read - began, 3), "clustering": round(time.perf_counter() - read, 3)},
    }
    if elbow is not None:
        _show_elbow(profile, models, scores, report, output, json)
    else:
        _show(profile, models[0], scores, report, orders, output, json)


def _shape(text: str) -> SetFunction:
    """The set function of ``--f``.

    Examples
    --------
    >>> _shape("top:3")
    Top(m=3)
    """
    from apexrank.submodular import set_function

    name, colon, ranks = text.partition(":")
    takes_ranks = bool(colon) and name in ("top", "sqrt", "log") and ranks.isdecimal()
    if not takes_ranks and text not in _SHAPES:
        raise InputError(f"unknown function {text!r} for --f: use one of {', '.join(_SHAPES)}, or top:3")
    return set_function(name, **({"m": int(ranks)} if takes_ranks else {}))


def _sizes(k: int | None, elbow: str | None, orders: Path | None) -> list[int]:
    """Numbers of clusters to look for."""
    if elbow is None:
        if k is None:
            raise InputError("say how many clusters with -k, or look at several numbers with --elbow 2-8")
        return [k]
    if k is not None or orders is not None:
        raise InputError(
            f"--elbow shows several numbers of clusters: leave out {'--orders' if k is None else '-k'}"
        )
    low, dash, high = elbow.partition("-")
    if not (low.isdecimal() and dash and high.isdecimal() and 1 <= int(low) < int(high)):
        raise InputError(f"--elbow must be a range such as 2-8, got {elbow!r}")
    return list(range(int(low), int(high) + 1))


def _scores(profile: Profile, rule: Any, missing: str | None) -> np.ndarray:
    """Points of voters × items, of which none may be missing."""
    import numpy as np

    from apexrank.aggregation.points import voter_points
    from apexrank.aggregation.reading import read_ballots

    with about(profile):
        ballots = read_ballots(
            profile.values,
            profile.weights,
            kind=profile.kind,  # type: ignore[arg-type]
            missing=profile.missing(missing),
            items=profile.items,
        )
        scores = voter_points(ballots, rule, slice(None))
    gaps = np.isnan(scores)
    if gaps.any():
        voter, item = np.argwhere(gaps)[0].tolist()
        advice = "fill it in, put it last (--missing last), or leave out the column (--drop)"
        if profile.lists:
            advice = "leave out --missing ignore, so that it is last"
        raise InputError(
            f"{profile.where(voter, item)}: the score of {profile.items[item]!r} is missing ({gaps.sum()} scores in "
            f"all), and clusters need all of them; {advice}"
        )
    return scores


def _fit(size: int, profile: Profile, scores: np.ndarray, parameters: dict[str, Any]) -> LovaszBregmanKMeans:
    from apexrank.aggregation.kmeans import LovaszBregmanKMeans

    with working(f"looking for {size} clusters of {len(scores)} voters"), _notes(size), about(profile):
        return LovaszBregmanKMeans(size, **parameters).fit(scores, sample_weight=profile.weights)


@contextmanager
def _notes(size: int) -> Iterator[None]:
    """Warnings of the library as notes, in the words of the command line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        text = str(warning.message).replace("X has", "there are").replace("Lower n_clusters", "Lower -k")
        note(f"{size} clusters: {text.replace('set euclidean', 'set --euclidean')}")


def _show_elbow(
    profile: Profile,
    models: list[LovaszBregmanKMeans],
    scores: np.ndarray,
    report: dict[str, Any],
    output: Path | None,
    json: bool,
) -> None:
    import polars as pl

    rows = [
        {
            "clusters": model.n_clusters,
            "inertia": model.inertia_,
            "silhouette": _silhouette(profile, model, scores),
        }
        for model in models
    ]
    frame = pl.DataFrame(rows)
    if output is not None:
        from apexrank.io import write_table

        write_table(frame, output)
    if json:
        print_json(report | {"elbow": rows, "files": [str(output)] if output else []})
        return
    if output is None:
        print_frame(frame)
        if not is_terminal():
            return
    else:
        print_table(frame.columns, frame.rows())
    typer.echo(
        f"{profile.sentence(report['missing']['rule'])}; inertia: look where it stops falling fast; "
        "silhouette: near 1 clusters are far apart, near 0 they touch"
    )
    if output is not None:
        typer.echo(f"written: {output}")


def _silhouette(profile: Profile, model: LovaszBregmanKMeans, scores: np.ndarray) -> float | None:
    from apexrank.aggregation.kmeans import silhouette

    return None if model.n_clusters < 2 else silhouette(model, scores, profile.weights)


def _show(
    profile: Profile,
    model: LovaszBregmanKMeans,
    scores: np.ndarray,
    report: dict[str, Any],
    orders: Path | None,
    output: Path | None,
    json: bool,
) -> None:
    from apexrank.io import write_table

    clusters, found = _clusters(profile, model, scores)
    report |= {
        "inertia": model.inertia_,
        "silhouette": _silhouette(profile, model, scores),
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


def _clusters(
    profile: Profile, model: LovaszBregmanKMeans, scores: np.ndarray
) -> tuple[list[Cluster], pl.DataFrame]:
    """What is known of the clusters that have voters, the largest first, and where each voter is."""
    import numpy as np
    import polars as pl

    weights = np.ones(len(scores)) if profile.weights is None else profile.weights
    own = model.transform(scores)[np.arange(len(scores)), model.labels_]
    rows, size, total = (
        np.bincount(model.labels_, values, model.n_clusters) for values in (None, weights, weights * own)
    )
    centres = [centre for centre in np.argsort(-size, kind="stable").tolist() if rows[centre]]
    clusters = []
    for number, centre in enumerate(centres, start=1):
        order, weight = model.orders_[centre], float(size[centre])
        clusters.append(
            Cluster(
                number,
                int(weight) if weight.is_integer() else weight,
                float(total[centre] / weight) if weight else None,
                [profile.items[item] for item in order.tolist()],
                model.cluster_centers_[centre][order].tolist(),
            )
        )
    numbers = np.zeros(model.n_clusters, dtype=np.int64)
    numbers[centres] = np.arange(1, len(centres) + 1)
    columns = {"cluster": numbers[model.labels_], "divergence": own}
    taken = {name: f"{name}_given" for name in columns if name in profile.voters.columns}
    voters = profile.voters.rename(taken)
    return clusters, voters.with_columns(pl.Series(name, values) for name, values in columns.items())


def _orders(clusters: list[Cluster]) -> pl.DataFrame:
    """Each cluster's items from the best on, with the mean score."""
    import polars as pl

    rows = [
        (cluster.number, rank, item, mean)
        for cluster in clusters
        for rank, (item, mean) in enumerate(zip(cluster.order, cluster.means, strict=True), start=1)
    ]
    return pl.DataFrame(rows, schema=["cluster", "rank", "item", "score"], orient="row")
