"""From the points of all voters to one score for each item, near-linear in the number of scores.

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
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from apexrank.aggregation.ballots import Ballots
from apexrank.aggregation.points import Rule, voter_points
from apexrank.errors import InputError

_ROUNDING = 16 * np.finfo(np.float64).eps
_SAMPLE = 64  # voters looked at for the size of scores


class Totals(NamedTuple):
    """Weighted sums of the points of each item, weight of the voters who gave any, and of all voters."""

    sums: np.ndarray
    hits: np.ndarray
    total: Any


def _mean(sums: Any, hits: Any, total: Any) -> Any:
    return sums / hits


def _count(sums: Any, hits: Any, total: Any) -> Any:
    return sums * (total / hits)  # a factor of exactly 1 where all voters ranked the item


def _sum(sums: Any, hits: Any, total: Any) -> Any:
    return sums


def _mnz(sums: Any, hits: Any, total: Any) -> Any:
    return sums * hits


LINEAR: dict[str, Callable[[Any, Any, Any], Any]] = {
    "lovasz-bregman": _mean,
    "borda": _count,
    "combsum": _sum,
    "combmnz": _mnz,
    "rrf": _sum,
}
_MEANS = ("lovasz-bregman", "borda")  # those for which an item without any points has no score


def linear_scores(ballots: Ballots, rule: Rule) -> np.ndarray:
    """Score of each item by one of the methods that add points.

    Examples
    --------
    >>> ballots = Ballots(np.array([[1.9, 2.0], [2.5, 1.2]]), [0, 1])
    >>> linear_scores(ballots, Rule("lovasz-bregman")).tolist()
    [2.2, 1.6]
    """
    found = totals(ballots, rule)
    if rule.method in _MEANS:
        check_hits(ballots, found.hits)
    return LINEAR[rule.method](*found)


def check_hits(ballots: Ballots, hits: np.ndarray) -> None:
    """Refuse items of which no voter has an opinion."""
    unseen = np.flatnonzero(hits == 0)
    if len(unseen):
        raise InputError(
            f"no voter has a score for {ballots.items[unseen[0]]!r}: drop it, or take missing='last'"
        )


def totals(ballots: Ballots, rule: Rule) -> Totals:
    """Sums over all voters; in the clean case of raw scores in one pass and without a copy."""
    if not rule.takes_places(ballots) and rule.normalize is None:
        sums = _plain_sums(ballots)
        if np.isfinite(sums).all():  # as NaN and infinity would have shown
            return Totals(sums, np.full(len(sums), ballots.total), ballots.total)
    sums, hits = np.zeros(ballots.n_items), np.zeros(ballots.n_items)
    with np.errstate(over="ignore"):
        for rows in ballots.blocks():
            points, w = voter_points(ballots, rule, rows), ballots.weight(rows)
            given = ~np.isnan(points)
            sums += w @ np.where(given, points, 0.0)
            hits += w.sum() if given.all() else w @ given.astype(np.float64)
    if not np.isfinite(sums).all():
        raise InputError("scores are too large to be added: divide them all by the same number")
    return Totals(sums, hits, ballots.total)


def _plain_sums(ballots: Ballots) -> np.ndarray:
    x, w = ballots.scores, ballots.weights
    with np.errstate(over="ignore", invalid="ignore"):
        if w is None:
            return x.sum(axis=0, dtype=np.float64)
        if x.dtype == np.float64:
            return w @ x
    return np.full(ballots.n_items, np.nan)  # other types would be copied whole: block by block instead


def median_scores(ballots: Ballots, rule: Rule) -> np.ndarray:
    """Weighted median of the Borda points, which is n less the median rank.

    Examples
    --------
    >>> ballots = Ballots(np.array([[3, 2, 1], [3, 1, 2], [1, 2, 3]]), list("abc"))
    >>> median_scores(ballots, Rule("median")).tolist()
    [2.0, 1.0, 1.0]
    """
    points = np.concatenate([voter_points(ballots, rule, rows) for rows in ballots.blocks()])
    parts = [weighted_median(points[:, items].T, ballots.weights) for items in ballots.columns()]
    medians = np.concatenate(parts)
    check_hits(ballots, ~np.isnan(medians))
    return medians


def weighted_median(values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Median of each row, each value as often as its weight says; NaN is left out, and is the median of nothing.

    Examples
    --------
    >>> weighted_median(np.array([[1.0, 5.0, 7.0]]), np.array([2.0, 1.0, 1.0])).item()
    3.0
    """
    if weights is None:
        values = np.sort(values, axis=1)  # NaN last
        given = values.shape[1] - np.isnan(values).sum(axis=1)
        lower, upper = np.maximum(given - 1, 0) // 2, given // 2
    else:
        order = np.argsort(values, axis=1)
        values = np.take_along_axis(values, order, axis=1)
        reached = np.cumsum(np.where(np.isnan(values), 0.0, weights[order]), axis=1)
        half = reached[:, -1:] / 2
        values = np.where(half > 0, values, np.nan)
        lower = np.argmax(reached >= half * (1 - _ROUNDING), axis=1)
        upper = np.argmax(reached > half * (1 + _ROUNDING), axis=1)
    rows = np.arange(len(values))
    return (values[rows, lower] + values[rows, np.minimum(upper, values.shape[1] - 1)]) / 2


def tolerance(ballots: Ballots, rule: Rule) -> np.ndarray:
    """Error that rounding alone can make in the score of each item: scores within it are tied.

    Sums of V numbers of size s differ by about ``ε·√V·s`` when they are added in another order; s is the largest that
    some voters give to the item, so that points which cancel are not taken for small.
    """
    rows = np.unique(np.linspace(0, ballots.n_voters - 1, _SAMPLE).round().astype(int))
    points = np.abs(voter_points(ballots, rule, rows))
    size, total = np.where(np.isnan(points), 0.0, points).max(axis=0), ballots.total
    scale = LINEAR[rule.method](size * total, total, total) if rule.method in LINEAR else size
    return _ROUNDING * np.sqrt(ballots.n_voters) * scale


def tied_ranks(scores: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """Rank of each item in each row, 1 for the largest score; neighbours within a tolerance share the better rank.

    Examples
    --------
    >>> tied_ranks(np.array([0.3, 0.1 + 0.2, 0.9]), np.full(3, 1e-15)).tolist()
    [2, 2, 1]
    """
    order = np.argsort(-scores, axis=-1, kind="stable")
    ordered = np.take_along_axis(scores, order, axis=-1)
    place = np.arange(1, scores.shape[-1] + 1)
    near = tolerance[order]
    with np.errstate(invalid="ignore"):  # −inf less −inf: tied
        new = ordered[..., :-1] - ordered[..., 1:] > np.maximum(near[..., :-1], near[..., 1:])
    first = np.ones(scores.shape, dtype=np.int64)
    first[..., 1:] = np.where(new, place[1:], 1)
    ranks = np.empty(scores.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, np.maximum.accumulate(first, axis=-1), axis=-1)
    return ranks


def confidence(ballots: Ballots, rule: Rule) -> float:
    """Total variation of the mean points, as a share of the mean total variation of the voters' points."""
    sums, hits, total = totals(ballots, rule)
    means = sums[hits > 0] / hits[hits > 0]
    spread = 0.0
    for rows in ballots.blocks():
        points = voter_points(ballots, rule, rows)
        ranges = np.nanmax(points, axis=1) - np.nanmin(points, axis=1)
        spread += float(ballots.weight(rows) @ ranges)
    if spread == 0:
        return 0.0
    return float(min(1.0, np.ptp(means) * total / spread))
