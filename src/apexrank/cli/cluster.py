"""``apexrank cluster``: groups of voters who order the items alike, each with its order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import apexrank
from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from apexrank.aggregation.ballot_files import BallotFile
    from apexrank.submodular import SetFunction

_SHAPES = ("sqrt", "log", "product", "indicator", "chain")
_ITEMS_SHOWN = 5


@dataclass(frozen=True)
class KMeansOptions:
    """Parameters of the clustering."""

    clusters: int | None = opt.method("Number of clusters.", "-k", "--clusters", min=1, metavar="K")
    elbow: str | None = opt.method(
        "Show the objective and the silhouette for A to B clusters.", metavar="A-B"
    )
    f: str = opt.method(
        "Submodular function of the divergence: sqrt and log weigh the first places most, product all places equally, "
        "top:3 only the first 3; also indicator and chain.",
        "--f",
        default="sqrt",
    )
    euclidean: float = opt.method(
        "Weight of half the squared distance to the mean; with 0 only the orders count.", min=0, default=0.0
    )
    n_init: int = opt.method("Number of random starts; the best result is kept.", min=1, default=10)
    seed: int = opt.method("Random seed of the starts.", min=0, default=0)


@dataclass(frozen=True)
class ClusterOutputs:
    """Files to write."""

    orders: Path | None = opt.written("CSV or Parquet file to write the order of each cluster to.")
    output: Path | None = opt.written(
        "CSV or Parquet file to write the cluster of each voter, or the table of --elbow, to."
    )


@opt.option_groups
def cluster(
    ballots: opt.BallotPath,
    *,
    options: KMeansOptions,
    worth: opt.PointOptions,
    reading: opt.BallotOptions,
    files: ClusterOutputs,
    json: opt.Json = False,
) -> None:
    """Cluster voters by their orders of the items; cluster 1 is the largest."""
    opt.check_tables(ballots, files.output, files.orders)
    out.check_inputs(ballots)
    from apexrank.aggregation.fusion import Rule

    sizes = _sizes(options.clusters, options.elbow, files.orders)
    shape = _shape(options.f)
    points = worth.check(reading.kind, ballots)
    rule = Rule("lovasz-bregman", worth.normalize, points)  # type: ignore[arg-type]  # checks it
    watch = out.Stopwatch()
    profile = reading.read(ballots)
    missing = profile.missing_rule(worth.missing)
    scores = _scores(profile, rule, missing)
    _check_sizes(sizes, options.f, profile)
    watch.end("reading")
    models = []
    for size in sizes:
        what = f"looking for {size} clusters of {profile.n_voters} voters"
        with out.working(what, about=f"{size} clusters: "), opt.errors_about(profile):
            model = apexrank.aggregation.LovaszBregmanKMeans(
                size, f=shape, euclidean=options.euclidean, n_init=options.n_init, random_state=options.seed
            )
            models.append(model.fit(scores, sample_weight=profile.weights))
    watch.end("clustering")
    opt.note_ballots(profile, reading, scales=worth.normalize is None)
    elbow = []
    for model in models:
        many = model.n_clusters > 1
        apart = apexrank.aggregation.silhouette(model, scores, profile.weights) if many else None
        elbow.append({"clusters": model.n_clusters, "inertia": model.inertia_, "silhouette": apart})
    report = profile.to_dict(missing) | {"f": options.f, "euclidean": options.euclidean, "seconds": watch}
    report["files"] = [str(path) for path in (files.output, files.orders) if path is not None]
    if options.elbow is not None:
        _show_elbow(profile, report | {"elbow": elbow}, files.output, json)
        return
    found = {"inertia": models[0].inertia_, "silhouette": elbow[0]["silhouette"]}
    report |= found | {"steps": models[0].n_iter_, "converged": models[0].converged_}
    _show_clusters(profile, models[0], scores, report, files, json)


def _shape(text: str) -> SetFunction:
    """Build the set function of ``--f``.

    Examples
    --------
    >>> _shape("top:3")
    Top(m=3)
    """
    name, colon, ranks = text.partition(":")
    takes_ranks = bool(colon) and name in ("top", "sqrt", "log") and ranks.isdecimal()
    if not takes_ranks and text not in _SHAPES:
        raise InputError(f"unknown function {text!r} for --f: use one of {', '.join(_SHAPES)}, or top:3")
    return apexrank.submodular.set_function(name, **({"m": int(ranks)} if takes_ranks else {}))


def _sizes(k: int | None, elbow: str | None, orders: Path | None) -> list[int]:
    """Return the numbers of clusters to fit.

    Examples
    --------
    >>> _sizes(3, None, None), _sizes(None, "2-4", None)
    ([3], [2, 3, 4])
    """
    if elbow is None:
        if k is None:
            raise InputError("set the number of clusters with -k, or compare several with --elbow 2-8")
        return [k]
    if k is not None or orders is not None:
        other = "--orders" if k is None else "-k"
        raise InputError(f"--elbow tries several numbers of clusters: leave out {other}")
    low, dash, high = elbow.partition("-")
    if not (low.isdecimal() and dash and high.isdecimal() and 1 <= int(low) < int(high)):
        raise InputError(f"--elbow must be a range such as 2-8, got {elbow!r}")
    return list(range(int(low), int(high) + 1))


def _check_sizes(sizes: list[int], f: str, profile: BallotFile) -> None:
    """Raise InputError for more clusters than voters, or a top-m function that treats all orders alike."""
    n_voters, n_items = profile.n_voters, len(profile.items)
    if sizes[-1] > n_voters:
        words = "orders" if profile.lists and profile.weights is not None else "voters"
        all_of = f"the {n_voters} {words} of {profile.source}"
        raise InputError(f"{sizes[-1]} clusters are more than {all_of}: lower the number")
    name, _, places = f.partition(":")
    if name == "top" and int(places) >= n_items:
        raise InputError(
            f"--f {f} cannot tell orders of {n_items} items apart, as all items are among the first {places}: use "
            f"top:{n_items - 1} or fewer"
        )


def _scores(profile: BallotFile, rule: Any, missing: Any) -> np.ndarray:
    """Return the points of voters × items; raise InputError if one is missing."""
    import numpy as np

    from apexrank.aggregation.ballots import read_ballots
    from apexrank.aggregation.fusion import voter_points

    with opt.errors_about(profile):
        how: Any = {"kind": profile.kind, "missing": missing, "items": profile.items}
        ballots = read_ballots(profile.values, profile.weights, **how)
        scores = voter_points(ballots, rule, slice(None))
    gaps = np.isnan(scores)
    if gaps.any():
        voter, item = np.argwhere(gaps)[0].tolist()
        raise InputError(
            f"{profile.where(voter, item)}: the score of {profile.items[item]!r} is missing ({gaps.sum()} scores in "
            f"all), and clusters need all of them; {profile.cure}"
        )
    return scores


def _show_elbow(profile: BallotFile, report: dict[str, Any], output: Path | None, json: bool) -> None:
    """Write or print the objective and the silhouette for each number of clusters."""
    import polars as pl

    frame, missing = pl.DataFrame(report["elbow"]), report["missing"]["rule"]
    out.write_frame(frame, output)
    if json:
        out.print_json(report)
    elif not out.show_frame(frame, output, rows=len(frame)):
        opt.note_gaps(profile, missing)
    else:
        typer.echo(
            f"{profile.sentence(missing)}; inertia: look where it stops falling fast; "
            "silhouette: near 1 clusters are far apart, near 0 they touch"
        )
        out.print_written(output)


def _show_clusters(
    profile: BallotFile,
    model: apexrank.aggregation.LovaszBregmanKMeans,
    scores: np.ndarray,
    report: dict[str, Any],
    files: ClusterOutputs,
    json: bool,
) -> None:
    """Write or print the clusters and their voters; ``report`` has facts about the ballots."""
    import polars as pl

    clusters, voters = _clusters(profile, model, scores)
    columns = ["cluster", "order", "scores"]
    orders = pl.DataFrame(clusters).select(columns).explode("order", "scores")
    orders = orders.rename({"order": "item", "scores": "score"})
    rank = pl.int_range(1, pl.len() + 1).over("cluster").alias("rank")
    out.write_frame(orders.select("cluster", rank, "item", "score"), files.orders)
    if files.output is not None:
        out.write_frame(voters, files.output)
    if json:
        tables = {} if files.output else {"voters_clusters": voters}
        out.print_json(report | {"clusters": clusters}, files.output, **tables)
    elif files.output is None and not out.is_terminal():
        out.print_frame(voters)
        opt.note_gaps(profile, report["missing"]["rule"])
    else:
        _print(profile, clusters, report)


def _clusters(
    profile: BallotFile, model: apexrank.aggregation.LovaszBregmanKMeans, scores: np.ndarray
) -> tuple[list[dict[str, Any]], pl.DataFrame]:
    """Describe the non-empty clusters, largest first, and list the cluster of each voter."""
    import numpy as np
    import polars as pl

    own = model.transform(scores).min(axis=1)
    weights = np.ones(len(scores)) if profile.weights is None else profile.weights
    sums = (np.bincount(model.labels_, each, model.n_clusters) for each in (None, weights, weights * own))
    rows, size, total = sums
    centres = [centre for centre in np.argsort(-size, kind="stable").tolist() if rows[centre]]
    clusters = []
    for number, centre in enumerate(centres, start=1):
        voters, order = float(size[centre]), model.orders_[centre]
        clusters.append(
            {
                "cluster": number,
                "voters": int(voters) if voters.is_integer() else voters,
                "divergence": float(total[centre]) / voters if voters else None,
                "order": [profile.items[item] for item in order.tolist()],
                "scores": model.cluster_centers_[centre][order].tolist(),  # best first, like the order
            }
        )
    numbers = np.zeros(model.n_clusters, dtype=np.int64)
    numbers[centres] = np.arange(1, len(centres) + 1)
    found = {"cluster": numbers[model.labels_], "divergence": own}
    taken = {name: f"{name}_given" for name in found if name in profile.voters.columns}
    return clusters, profile.voters.rename(taken).with_columns(pl.Series(*column) for column in found.items())


def _print(profile: BallotFile, clusters: list[dict[str, Any]], report: dict[str, Any]) -> None:
    names = ("cluster", "voters", "divergence")
    table = [[*map(each.get, names), _first_items(each["order"], each["scores"])] for each in clusters]
    out.print_table(["cluster", "voters", "mean divergence", f"order (first {_ITEMS_SHOWN})"], table)
    apart = "" if report["silhouette"] is None else f", silhouette {report['silhouette']:.2f}"
    typer.echo(
        f"{profile.sentence(report['missing']['rule'])}; inertia {report['inertia']:.4g}{apart}, "
        f"{out.ended(report['converged'], report['steps'])}; {report['seconds']}"
    )
    files = ", ".join(report["files"])
    typer.echo(f"written: {files}" if files else "write the cluster of each voter with -o FILE.csv")


def _first_items(order: list[str], scores: list[float]) -> str:
    """Format the first items of an order; equal scores are ties.

    Examples
    --------
    >>> _first_items(["tea", "milk", "rum"], [2.0, 1.0, 1.0])
    'tea > milk = rum'
    """
    near = 1e-12 * max(map(abs, scores))
    signs = ["=" if better - worse <= near else ">" for better, worse in pairwise(scores)]
    rest = zip(signs, order[1:_ITEMS_SHOWN], strict=False)
    return order[0] + "".join(f" {sign} {item}" for sign, item in rest)
