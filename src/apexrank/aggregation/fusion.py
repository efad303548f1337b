"""Borda, median, CombSUM, CombMNZ, reciprocal rank fusion and Lovász–Bregman scores, near-linear in the ballots.

==============  =====================================  =============================================
method          points of a voter                      score of an item
==============  =====================================  =============================================
lovasz-bregman  its scores, as given or normalised     weighted mean
combsum         its scores, as given or normalised     sum
combmnz         its scores, as given or normalised     sum × number of voters who scored it
borda           n − place                              sum, as if all voters had ranked it
median          n − place                              median
rrf             1 / (k + place)                        sum
==============  =====================================  =============================================

Tied items share the mean of the points of the places they occupy. A ballot that ranks m of n items and has no opinion
of the others is stretched over all n places if points decrease by equal steps ("borda", "linear"): its best item gets
the points of first place and its worst those of last place; a single item gets the middle. Other scales use the places
in the voter's own list. If the voter gave ranks, "rrf", "reciprocal" and "dcg" use the ranks as given, which may refer
to a list longer than ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, Literal

import numpy as np

from apexrank.aggregation.ballots import Ballots, all_finite
from apexrank.errors import InputError
from apexrank.kernels.inversions import mean_over_ties
from apexrank.kernels.jit import kernel
from apexrank.validation import check_choice, check_count, check_finite

Method = Literal["lovasz-bregman", "borda", "copeland", "kemeny", "median", "combsum", "combmnz", "rrf"]
Normalize = Literal["minmax", "sum", "zscore", "rank", "borda"]
Points = Literal["borda", "linear", "reciprocal", "dcg"]
_SCORE_METHODS = ("lovasz-bregman", "combsum", "combmnz")
SUMS = ("combsum", "combmnz", "rrf")  # methods in which an item omitted by a list gets nothing from it
RRF = 60.0  # the constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009)
_ALIASES = {"min-max": "minmax", "zmuv": "zscore"}  # spellings of other retrieval libraries


# points of a place among n items, where place 1 is best; k is the constant of "rrf"
_SCALES: dict[str, Callable[[Any, int, float], Any]] = {
    "borda": lambda place, n, k: n - place,
    "linear": lambda place, n, k: (n - place) / (n - 1),
    "rrf": lambda place, n, k: 1 / (k + place),
    "reciprocal": lambda place, n, k: 1 / place,
    "dcg": lambda place, n, k: 1 / np.log2(1 + place),
}
OF_RANKS = ("rrf", "reciprocal", "dcg")  # scales that are independent of the number of items


@dataclass(frozen=True)
class Rule:
    """Method of aggregation with validated options; the parameters are those of `apexrank.aggregation.aggregate`.

    Examples
    --------
    >>> Rule("rrf", k=1).place_points(3).round(3).tolist()
    [0.5, 0.333, 0.25]
    >>> Rule("borda", "min-max").normalize
    'minmax'
    """

    method: Method = "lovasz-bregman"
    normalize: Normalize | None = None
    points: Points | Sequence[float] | None = None
    k: float = RRF
    max_exact: int = 40
    time_limit: float = 60.0
    min_support: float = 0.0

    def __post_init__(self) -> None:
        check_choice("method", self.method, Method)
        normalize = _ALIASES.get(str(self.normalize), self.normalize)
        if normalize is not None:
            check_choice("normalize", normalize, Normalize)
        for name in ("k", "time_limit", "min_support"):
            check_finite(name, getattr(self, name), 0)
        check_count("max_exact", self.max_exact, 0)
        object.__setattr__(self, "normalize", normalize)
        object.__setattr__(self, "points", _read_points("borda" if self.points is None else self.points))

    @property
    def takes_scores(self) -> bool:
        """Whether the method uses the scores themselves, not only their order."""
        return self.method in _SCORE_METHODS

    def takes_places(self, ballots: Ballots) -> bool:
        """Return whether points are assigned to places."""
        return not self.takes_scores or ballots.positional or self.normalize in ("rank", "borda")

    @property
    def scale(self) -> Any:
        """Name of the scale of points by place, or the points themselves."""
        if self.method == "rrf":
            return "rrf"
        if not self.takes_scores or self.normalize == "borda":
            return "borda"
        return "linear" if self.normalize == "rank" else self.points

    def place_points(self, n: int) -> np.ndarray:
        """Points of each of n places, best first."""
        scale = self.scale
        if isinstance(scale, str):
            return _SCALES[scale](np.arange(1.0, n + 1), n, self.k)
        table = np.zeros(n)
        table[: len(scale)] = scale[:n]
        return table

    def takes_ranks(self, ballots: Ballots) -> bool:
        """Return whether points are assigned to the ranks as given."""
        return ballots.ranked and self.scale in OF_RANKS


def _read_points(points: str | Sequence[float]) -> Any:
    if isinstance(points, str):
        check_choice("points", points, Points)
        return points
    try:
        table = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim != 1 or not len(table) or not np.isfinite(table).all():
        raise InputError("`points` must be a name or finite numbers, one for each place from the best on")
    if (np.diff(table) > 0).any() or table[-1] < 0:
        raise InputError("`points` must not rise from one place to the next, nor fall below 0")
    return tuple(table.tolist())


def voter_points(ballots: Ballots, rule: Rule, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
    """Compute the points that the selected voters give to each item, NaN where they give none.

    Examples
    --------
    >>> ballots = Ballots(np.array([[5.0, 9.0, 7.0, 7.0], [1.0, np.nan, 3.0, np.nan]]), list("abcd"))
    >>> voter_points(ballots, Rule("borda"))
    array([[0. , 3. , 1.5, 1.5],
           [0. , nan, 3. , nan]])
    """
    if rule.takes_places(ballots):
        points = (_points_of_ranks if rule.takes_ranks(ballots) else _points_of_places)(ballots, rule, rows)
        return normalized(points, rule.normalize) if rule.takes_scores else points
    points = normalized(ballots.read(rows), rule.normalize)
    if ballots.missing == "last" and not all_finite(points):
        return np.where(np.isnan(points), np.nanmin(points, axis=1, keepdims=True), points)
    return points


def _points_of_places(ballots: Ballots, rule: Rule, rows: slice | np.ndarray) -> np.ndarray:
    places, given = ballots.sort(rows)
    table = rule.place_points(ballots.n_items)
    points = mean_over_ties(places, table)
    if given.all():
        return points
    if rule.scale in ("borda", "linear"):
        ranked = given.sum(axis=1, keepdims=True)
        lowest = table[ranked - 1]
        stretched = (points - lowest) * (ballots.n_items - 1) / np.maximum(ranked - 1, 1)
        points = np.where(ranked == 1, table[0] / 2, stretched)
    return np.where(given, points, np.nan)


def _points_of_ranks(ballots: Ballots, rule: Rule, rows: slice | np.ndarray) -> np.ndarray:
    """Compute points of the ranks as given; items tied last share those of the places below the ranked items."""
    ranks, points_at = -ballots.read(rows), _SCALES[rule.scale]
    points = points_at(ranks, ballots.n_items, rule.k)
    if ballots.missing == "ignore":
        return points
    missing = np.isnan(ranks)
    for row in np.flatnonzero(missing.any(axis=1)).tolist():
        unranked = int(missing[row].sum())
        lowest = max(np.nanmax(ranks[row]), ballots.n_items - unranked)
        below = lowest + np.arange(1, unranked + 1)
        points[row, missing[row]] = points_at(below, ballots.n_items, rule.k).mean()
    return points


def normalized(points: np.ndarray, normalize: Normalize | None) -> np.ndarray:
    """Normalise each voter's points; points of places ("rank", "borda") are already normalised.

    Examples
    --------
    >>> normalized(np.array([[2.0, 6.0, 4.0]]), "minmax").tolist()
    [[0.0, 1.0, 0.5]]
    """
    if normalize not in ("minmax", "sum", "zscore"):
        return points
    with np.errstate(over="ignore"):
        shifted = points - np.nanmin(points, axis=1, keepdims=True)
    spread = np.nanmax(shifted, axis=1, keepdims=True)
    if np.isinf(spread).any():
        raise InputError("scores of a voter are too far apart to subtract: divide all by the same number")
    shifted /= np.where(spread > 0, spread, 1.0)  # a voter with equal scores gives 0 to all items
    if normalize == "minmax":
        return shifted
    # sums and squares of numbers from 0 to 1 cannot overflow
    if normalize == "sum":
        unit = np.nansum(shifted, axis=1, keepdims=True)
    else:
        shifted -= np.nanmean(shifted, axis=1, keepdims=True)
        unit = np.sqrt(np.nanmean(shifted**2, axis=1, keepdims=True))
    return shifted / np.where(unit > 0, unit, 1.0)


# relative to Σ w|points|: twice the error of a running sum, of its voters' weight and of decimal input, rounded up
ROUNDING = 64 * np.finfo(np.float64).eps
_TOO_LARGE = "scores or weights are too large to be added: divide them all by the same number"


LINEAR: dict[str, Callable[[Any, Any, Any], Any]] = {
    "lovasz-bregman": lambda sums, hits, total: sums / hits,
    "borda": lambda sums, hits, total: (
        sums * (total / hits)
    ),  # a factor of exactly 1 if all voters ranked the item
    "combsum": lambda sums, hits, total: sums,
    "combmnz": lambda sums, hits, total: sums * hits,
    "rrf": lambda sums, hits, total: sums,
}
MEANS = ("lovasz-bregman", "borda")  # methods in which an item without points has no score


def linear_scores(ballots: Ballots, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """Score each item by a method that adds points, and bound the rounding error of the score.

    The error is that of the sum ``Σ w·p`` of the item's points p, at most ``64ε·Σ w|p|`` for any number of voters.

    Examples
    --------
    >>> ballots = Ballots(np.array([[1.9, 2.0], [2.5, 1.2]]), [0, 1])
    >>> linear_scores(ballots, Rule("lovasz-bregman"))[0].tolist()
    [2.2, 1.6]
    """
    sums, sizes, hits = totals(ballots, rule)
    if rule.method in MEANS:
        check_hits(ballots, hits)
    score = LINEAR[rule.method]
    with np.errstate(over="ignore"):
        scores = score(sums, hits, ballots.total)
        if not np.isfinite(scores).all():
            raise InputError(_TOO_LARGE)
        return scores, score(ROUNDING * sizes, hits, ballots.total)


def check_hits(ballots: Ballots, hits: np.ndarray) -> None:
    """Raise InputError for an item that no voter has scored."""
    unseen = np.flatnonzero(hits == 0)
    if len(unseen):
        item = ballots.items[unseen[0]]
        raise InputError(f"no voter has a score for {item!r}: remove the item, or use `missing='last'`")


class PointSums:
    """Running weighted sums over blocks of voters: points, absolute points, and weight of the voters who gave any."""

    def __init__(self, n_items: int) -> None:
        self.points, self.voters = np.zeros((2, 3, n_items))
        self.complete: list[float] = []  # total weights of blocks in which all voters scored all items
        self.everyone = np.ones(n_items, dtype=bool)

    def add(self, points: np.ndarray, weights: np.ndarray) -> None:
        """Add points of voters × items, NaN where a voter gives none."""
        if all_finite(points):
            _add(points, weights, self.points)
            self.complete.append(float(weights.sum()))
            return
        given = ~np.isnan(points)
        self.everyone &= given.all(axis=0)
        _add(np.where(given, points, 0.0), weights, self.points)
        _add(given, weights, self.voters)

    def totals(self, total: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the three sums, for voters with the given ``total`` weight."""
        sums = self.points[0] + self.points[1]
        if not np.isfinite(sums).all():
            raise InputError(_TOO_LARGE)
        given = self.voters[0] + self.voters[1] + fsum(self.complete)
        return sums, self.points[2], np.where(self.everyone, total, given)


def totals(ballots: Ballots, rule: Rule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sum the points and absolute points of each item, and the weight of the voters who gave any.

    For raw scores without missing values it takes one pass and no copy.
    """
    if not rule.takes_places(ballots) and rule.normalize is None:
        sums, sizes = _raw_sums(ballots)
        if np.isfinite(sums).all():  # NaN and infinity would have propagated
            return sums, sizes, np.full(ballots.n_items, ballots.total)
    found = PointSums(ballots.n_items)
    for part in ballots.blocks():
        found.add(voter_points(part, rule), part.weight())
    return found.totals(ballots.total)


def _raw_sums(ballots: Ballots) -> tuple[np.ndarray, np.ndarray]:
    """Return sums of the raw scores and of their absolute values.

    NumPy sums a table stored by columns, such as a data frame, pairwise, with an error of at most ``32ε``.
    """
    if not (ballots.scores.flags.f_contiguous and ballots.scores.dtype == np.float64):
        running = np.zeros((3, ballots.n_items))
        for part in ballots.blocks():
            _add(part.scores, part.weight(), running)
        return running[0] + running[1], running[2]
    sums, sizes = np.empty((2, ballots.n_items))
    with np.errstate(over="ignore", invalid="ignore"):
        for items in ballots.columns():
            columns = ballots.scores[:, items].T
            columns = columns if ballots.weights is None else columns * ballots.weights
            sums[items], sizes[items] = columns.sum(axis=1), np.abs(columns).sum(axis=1)
    return sums, sizes


def _add(block: np.ndarray, weights: np.ndarray, running: np.ndarray) -> None:
    """Add rows to running sums of ``w·x``, to their rounding errors, and to sums of ``|w·x|``.

    The error of plain sums grows with the number of voters; here the first two together are within ``4ε·Σ|w·x|`` of the
    exact sum. Eight rows are added pairwise, and the rounding error of adding them to the running sum is kept (Møller
    1965, Knuth's TwoSum).
    """
    _add_rows(np.ascontiguousarray(block, dtype=np.float64), weights, *running)


def median_scores(ballots: Ballots, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """Weighted median of the Borda points, n minus the median rank, with a bound on its rounding error.

    Examples
    --------
    >>> ballots = Ballots(np.array([[3, 2, 1], [3, 1, 2], [1, 2, 3]]), list("abc"))
    >>> median_scores(ballots, Rule("median"))[0].tolist()
    [2.0, 1.0, 1.0]
    """
    points = np.concatenate([voter_points(part, rule) for part in ballots.blocks()])
    columns = [weighted_median(points[:, items].T, ballots.weights) for items in ballots.columns()]
    medians = np.concatenate(columns)
    check_hits(ballots, ~np.isnan(medians))
    return medians, ROUNDING * medians


def weighted_median(values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Weighted median of each row, ignoring NaN; NaN if no value is left.

    Examples
    --------
    >>> weighted_median(np.array([[1.0, 5.0, 7.0]]), np.array([2.0, 1.0, 1.0])).item()
    3.0
    """
    if weights is None:
        values = np.sort(values, axis=1)  # NaN sorts last
        given = values.shape[1] - np.isnan(values).sum(axis=1)
        lower, upper = np.maximum(given - 1, 0) // 2, given // 2
    else:
        order = np.argsort(values, axis=1)
        values = np.take_along_axis(values, order, axis=1)
        reached = np.cumsum(np.where(np.isnan(values), 0.0, weights[order]), axis=1)
        half = reached[:, -1:] / 2
        values = np.where(half > 0, values, np.nan)
        lower = np.argmax(reached >= half * (1 - ROUNDING), axis=1)
        upper = np.argmax(reached > half * (1 + ROUNDING), axis=1)
    rows = np.arange(len(values))
    return (values[rows, lower] + values[rows, np.minimum(upper, values.shape[1] - 1)]) / 2


def tied_ranks(scores: np.ndarray, tolerance: np.ndarray, low: np.ndarray | None = None) -> np.ndarray:
    """Rank the items of each row, 1 for the largest score; neighbours within a tolerance share the better rank.

    Items flagged in ``low`` come after all others.

    Examples
    --------
    >>> tied_ranks(np.array([0.3, 0.1 + 0.2, 0.9]), np.full(3, 1e-15)).tolist()
    [2, 2, 1]
    >>> tied_ranks(np.array([1.0, 9.0, 2.0]), np.zeros(3), np.array([False, True, False])).tolist()
    [2, 3, 1]
    """
    last = np.broadcast_to(False if low is None else low, scores.shape)
    order = np.lexsort((-scores, last))
    columns = (scores, np.broadcast_to(tolerance, scores.shape), last)
    ordered, near, last = (np.take_along_axis(column, order, axis=-1) for column in columns)
    with np.errstate(invalid="ignore"):  # −inf minus −inf: tied
        new = ordered[..., :-1] - ordered[..., 1:] > np.maximum(near[..., :-1], near[..., 1:])
    new |= last[..., :-1] != last[..., 1:]
    first = np.ones(scores.shape, dtype=np.int64)
    first[..., 1:] = np.where(new, np.arange(2, scores.shape[-1] + 1), 1)
    ranks = np.empty(scores.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, np.maximum.accumulate(first, axis=-1), axis=-1)
    return ranks


def low_support(ballots: Ballots, rule: Rule) -> np.ndarray | None:
    """Mask of the items with less support than the rule requires; None if it requires none.

    Examples
    --------
    >>> low_support(Ballots(np.array([[3, 1], [np.nan, 2]]), ["a", "b"]), Rule(min_support=2)).tolist()
    [True, False]
    """
    if rule.min_support == 0:
        return None
    support = ballots.support()
    low = support < rule.min_support * (1 - ROUNDING)
    if low.all():
        raise InputError(
            f"`min_support` {rule.min_support:g} is more than any item has: give at most {support.max():g}"
        )
    return low


def confidence(ballots: Ballots, rule: Rule) -> float:
    """Total variation of the mean points, relative to the mean total variation of the voters' points."""
    found, spread = PointSums(ballots.n_items), 0.0
    for part in ballots.blocks():
        points, w = voter_points(part, rule), part.weight()
        found.add(points, w)
        spread += float(w @ (np.nanmax(points, axis=1) - np.nanmin(points, axis=1)))
    if spread == 0:
        return 0.0
    sums, _, hits = found.totals(ballots.total)
    means = sums[hits > 0] / hits[hits > 0]
    return float(min(1.0, np.ptp(means) * ballots.total / spread))


@kernel()
def _add_rows(x, weights, sums, lost, sizes):
    whole = x.shape[0] // 8 * 8
    for v in range(0, whole, 8):
        w0, w1, w2, w3 = weights[v], weights[v + 1], weights[v + 2], weights[v + 3]
        w4, w5, w6, w7 = weights[v + 4], weights[v + 5], weights[v + 6], weights[v + 7]
        x0, x1, x2, x3 = x[v], x[v + 1], x[v + 2], x[v + 3]
        x4, x5, x6, x7 = x[v + 4], x[v + 5], x[v + 6], x[v + 7]
        for j in range(sums.size):
            a, b, c, d = w0 * x0[j], w1 * x1[j], w2 * x2[j], w3 * x3[j]
            e, f, g, h = w4 * x4[j], w5 * x5[j], w6 * x6[j], w7 * x7[j]
            sizes[j] += ((abs(a) + abs(b)) + (abs(c) + abs(d))) + ((abs(e) + abs(f)) + (abs(g) + abs(h)))
            _keep_lost(((a + b) + (c + d)) + ((e + f) + (g + h)), j, sums, lost)
    for v in range(whole, x.shape[0]):
        for j in range(sums.size):
            a = weights[v] * x[v, j]
            sizes[j] += abs(a)
            _keep_lost(a, j, sums, lost)


@kernel(inline="always")
def _keep_lost(number, j, sums, lost):
    old = sums[j]
    new = old + number
    added = new - old
    lost[j] += (old - (new - added)) + (number - added)
    sums[j] = new
