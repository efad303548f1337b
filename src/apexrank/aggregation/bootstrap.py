"""Bootstrap confidence intervals for the ranks of an aggregation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import gen_batches

from apexrank.aggregation.ballots import BLOCK, Ballots
from apexrank.aggregation.fusion import (
    LINEAR,
    MEANS,
    ROUNDING,
    Rule,
    tied_ranks,
    voter_points,
    weighted_median,
)
from apexrank.aggregation.pairwise import pairwise_counts
from apexrank.aggregation.rank_aggregation import item_series, score_pairs
from apexrank.metrics.confidence import check_level, resample_weights

if TYPE_CHECKING:
    import polars as pl

    from apexrank.aggregation.rank_aggregation import Aggregation

_BLOCK = 2**21  # weights or scores held in memory at once
Scores = tuple[np.ndarray, np.ndarray]  # scores and tolerances: resamples × items, or shared by all


@dataclass(frozen=True, eq=False, repr=False)
class RankBootstrap:
    """Ranks of the items in resamples of the voters.

    Attributes
    ----------
    items : list
        Names of the items, in the order of the input.
    ranks : ndarray of shape (resamples, n)
        Rank of each item in each resample, 1 is best; tied items share the better rank.
    low, high : ndarray of shape (n,)
        Confidence interval for the rank of each item.
    first : ndarray of shape (n,)
        Share of the resamples in which the item is first, split among tied items, so that it sums to 1.
    confidence : float
        Confidence level of the intervals.

    Examples
    --------
    >>> drawn = RankBootstrap(["a", "b"], np.array([[1, 2], [1, 1], [1, 2], [1, 2]]), 0.5)
    >>> drawn.first.tolist(), drawn.high.tolist()
    ([0.875, 0.125], [1, 2])
    """

    items: list[Any]
    ranks: np.ndarray
    confidence: float = 0.95

    @property
    def low(self) -> np.ndarray:
        return self._quantile((1 - self.confidence) / 2)

    @property
    def high(self) -> np.ndarray:
        return self._quantile((1 + self.confidence) / 2)

    @property
    def first(self) -> np.ndarray:
        draws, on_top = np.nonzero(self.ranks == 1)
        share = 1 / np.bincount(draws, minlength=len(self.ranks))
        return np.bincount(on_top, share[draws], minlength=self.ranks.shape[1]) / len(self.ranks)

    def to_frame(self) -> pl.DataFrame:
        """Return a data frame of ``item``, ``low``, ``high`` and ``first``, in the order of the input."""
        import polars as pl

        ranks = {"low": self.low, "high": self.high, "first": self.first}
        return pl.DataFrame({"item": item_series(self.items), **ranks})

    def _quantile(self, level: float) -> np.ndarray:
        parts = gen_batches(self.ranks.shape[1], max(1, _BLOCK // len(self.ranks)))
        columns = (self.ranks[:, part] for part in parts)
        return np.concatenate([np.quantile(part, level, axis=0, method="inverted_cdf") for part in columns])

    def __repr__(self) -> str:
        best = int(np.argmax(self.first))
        return (
            f"RankBootstrap of {len(self.ranks):,} draws: {self.items[best]} first in {self.first[best]:.0%}"
        )


def resample(result: Aggregation, n: int, confidence: float, random_state: Any) -> RankBootstrap:
    """Compute the ranks of the items in n bootstrap resamples of the voters."""
    check_level(confidence, n)
    ballots, rng = result.ballots, np.random.default_rng(random_state)
    low = result.low_support
    score = _linear if result.method in LINEAR else _medians if result.method == "median" else _by_pairs
    found = score(ballots, result.rule, _draws(ballots, n, rng))
    ranks = [tied_ranks(*block, low).astype(np.int32) for block in found]
    return RankBootstrap(result.items, np.concatenate(ranks), float(confidence))


def _draws(ballots: Ballots, n: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Iterate over blocks of n resamples, as weights of the voters."""
    for part in gen_batches(n, max(1, _BLOCK // max(ballots.n_voters, ballots.n_items))):
        draws = range(part.start, part.stop)
        yield np.array([resample_weights(ballots.weights, ballots.n_voters, rng) for _ in draws])


def _linear(ballots: Ballots, rule: Rule, drawn: Iterator[np.ndarray]) -> Iterator[Scores]:
    """Score all resamples of a block by one matrix product; items that no drawn voter scored are last."""
    points = voter_points(ballots, rule, slice(None))
    gaps, signed = bool(np.isnan(points).any()), bool((points < 0).any())
    for weights in drawn:
        total = np.broadcast_to(weights.sum(axis=1, keepdims=True), (len(weights), ballots.n_items))
        sums = _product(weights, points, np.nan_to_num) if gaps else weights @ points
        sizes = _product(weights, points, lambda part: np.abs(np.nan_to_num(part))) if signed else sums
        hits = _product(weights, points, lambda part: 1.0 - np.isnan(part)) if gaps else total
        yield _scores(ballots, rule, sums, sizes, hits, total)


def _scores(
    ballots: Ballots, rule: Rule, sums: np.ndarray, sizes: np.ndarray, hits: np.ndarray, total: np.ndarray
) -> Scores:
    known = hits > 0 if rule.method in MEANS else np.ones(sums.shape, dtype=bool)
    rounding, score = (
        ROUNDING * np.sqrt(ballots.n_voters),
        LINEAR[rule.method],
    )  # rounding error of plain sums
    scores, tolerance = np.full(sums.shape, -np.inf), np.zeros(sums.shape)
    scores[known] = score(sums[known], hits[known], total[known])
    tolerance[known] = score(rounding * sizes[known], hits[known], total[known])
    return scores, tolerance


def _product(weights: np.ndarray, points: np.ndarray, what: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Sum a function of the points by blocks, without storing it for all voters."""
    sums = np.zeros((len(weights), points.shape[1]))
    for rows in gen_batches(len(points), max(1, BLOCK // points.shape[1])):
        sums += weights[:, rows] @ what(points[rows])
    return sums


def _medians(ballots: Ballots, rule: Rule, drawn: Iterator[np.ndarray]) -> Iterator[Scores]:
    points = np.ascontiguousarray(voter_points(ballots, rule, slice(None)).T)
    for weights in drawn:
        medians = np.array([weighted_median(points, w) for w in weights])
        known = ~np.isnan(medians)
        yield np.where(known, medians, -np.inf), np.where(known, ROUNDING * medians, 0.0)


def _by_pairs(ballots: Ballots, rule: Rule, drawn: Iterator[np.ndarray]) -> Iterator[Scores]:
    search = replace(rule, max_exact=0)
    for weights in drawn:
        rows = []
        for resampled in (replace(ballots, weights=w) for w in weights):
            known = resampled.missing == "last" or resampled.support() > 0
            found = score_pairs(pairwise_counts(resampled), resampled.total, search)
            rows.append(np.where(known, found.scores, -np.inf))
        yield np.array(rows), np.zeros(ballots.n_items)
