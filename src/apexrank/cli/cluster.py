"""``apexrank cluster``: groups of voters who order the items alike, each with its order."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from apexrank.cli import ballot_options as options
from apexrank.cli.ballot_options import method_option, output_option
from apexrank.cli.ballots import Ballots
from apexrank.cli.cluster_report import show_clusters
from apexrank.cli.edge_options import Json
from apexrank.cli.elbow import show_elbow
from apexrank.cli.output import note, working
from apexrank.cli.profile import Profile, about
from apexrank.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from apexrank.aggregation.fusion import Rule
    from apexrank.aggregation.kmeans import LovaszBregmanKMeans
    from apexrank.submodular import SetFunction

_SHAPES = ("sqrt", "log", "product", "indicator", "chain")


def cluster(
    ballots: options.BallotFile,
    k: Annotated[
        int | None, method_option("Number of clusters.", "--clusters", "-k", min=1, metavar="K")
    ] = None,
    elbow: Annotated[
        str | None,
        method_option(
            "Show the objective and the silhouette for each number of clusters from A to B.", metavar="A-B"
        ),
    ] = None,
    f: Annotated[
        str,
        method_option(
            "Submodular function of the divergence: sqrt and log look at the first places most, product at all alike, "
            "top:3 at the first 3; also indicator and chain.",
            "--f",
        ),
    ] = "sqrt",
    euclidean: Annotated[
        float,
        method_option(
            "Add so much of half the squared distance to the mean; 0 compares orders alone.", min=0
        ),
    ] = 0.0,
    n_init: Annotated[int, method_option("Random starts, the best of which is kept.", min=1)] = 10,
    seed: Annotated[int, method_option("For the starts.", min=0)] = 0,
    normalize: options.Normalize = None,
    points: options.Points = None,
    missing: options.Missing = None,
    kind: options.Kind = None,
    items_in: options.ItemsIn = None,
    long: options.Long = None,
    id: options.Id = None,
    weights: options.Weights = None,
    drop: options.Drop = None,
    orders: Annotated[
        Path | None, output_option("CSV or Parquet file to write: the order of each cluster.")
    ] = None,
    output: Annotated[
        Path | None,
        output_option(
            "CSV or Parquet file to write: the cluster of each voter, or the table of --elbow.",
            "--output",
            "-o",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Group voters who order the items alike; cluster 1 is the largest."""
    options.check_outputs(ballots, output, orders)
    sizes = _sizes(k, elbow, orders)
    options.check_missing(missing)
    parameters = {"f": _shape(f), "euclidean": euclidean, "n_init": n_init, "random_state": seed}
    rules = {"normalize": normalize, "points": options.read_points(points, kind, ballots)}
    rule = options.read_options("lovasz-bregman", **rules, k=60.0, max_exact=40, time_limit=60.0)
    began = time.perf_counter()
    profile = Ballots(kind, items_in, id, weights, drop, long).read(ballots)
    scores = _scores(profile, rule, missing)
    _check_sizes(sizes, profile)
    _check_places(f, len(profile.items))
    read = time.perf_counter()
    models = [_fit(size, profile, scores, parameters) for size in sizes]
    profile.tell(scales=normalize is None)
    seconds = {"reading": round(read - began, 3), "clustering": round(time.perf_counter() - read, 3)}
    report = profile.facts(profile.missing(missing)) | {"f": f, "euclidean": euclidean, "seconds": seconds}
    if elbow is not None:
        show_elbow(profile, models, scores, report, output, json)
    else:
        show_clusters(profile, models[0], scores, report, orders, output, json)


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
    """Numbers of clusters to look for.

    Examples
    --------
    >>> _sizes(3, None, None), _sizes(None, "2-4", None)
    ([3], [2, 3, 4])
    """
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


def _check_sizes(sizes: list[int], profile: Profile) -> None:
    n = len(profile.values)
    if sizes[-1] > n:
        words = "orders" if profile.lists and profile.weights is not None else "voters"
        raise InputError(
            f"{sizes[-1]} clusters are more than the {n} {words} of {profile.source}: lower the number"
        )


def _check_places(f: str, n: int) -> None:
    """Refuse a function that looks at so many places that all orders are alike to it."""
    name, _, places = f.partition(":")
    if name == "top" and int(places) >= n:
        raise InputError(
            f"--f {f} takes all orders of {n} items for alike, as all are among the first {places}: use top:{n - 1} or "
            "fewer"
        )


def _scores(profile: Profile, rule: Rule, missing: str | None) -> np.ndarray:
    """Points of voters × items, of which none may be missing."""
    import numpy as np

    from apexrank.aggregation.ballots import read_ballots
    from apexrank.aggregation.fusion import voter_points

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
        raise InputError(
            f"{profile.where(voter, item)}: the score of {profile.items[item]!r} is missing ({gaps.sum()} scores in "
            f"all), and clusters need all of them; {profile.cure}"
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
