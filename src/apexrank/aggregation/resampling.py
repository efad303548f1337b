"""How sure ranks are: voters drawn again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from apexrank.aggregation.ballots import Ballots
from apexrank.aggregation.fusion import LINEAR, tied_ranks, weighted_median
from apexrank.aggregation.methods import score_items
from apexrank.aggregation.points import Rule, voter_points
from apexrank.metrics.confidence import check_level

if TYPE_CHECKING:
    import polars as pl

    from apexrank.aggregation.result import Aggregation

_BLOCK = 2**22  # numbers of drawn weights held at once
_WHOLE = 2**53


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
        Interval of the rank of each item.
    first : ndarray of shape (n,)
        Share of the resamples in which the item is first; items tied there share it, so that it sums to 1.
    confidence : float
        Chance that an interval covers the true rank.

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
        on_top = self.ranks == 1
        return (on_top / on_top.sum(axis=1, keepdims=True)).mean(axis=0)

    def to_frame(self) -> pl.DataFrame:
        """Table of ``item``, ``low``, ``high`` and ``first``, in the order of the input."""
        import polars as pl

        same = len({type(name) for name in self.items}) == 1
        names = self.items if same else [str(name) for name in self.items]
        return pl.DataFrame({"item": names, "low": self.low, "high": self.high, "first": self.first})

    def _quantile(self, level: float) -> np.ndarray:
        return np.quantile(self.ranks, level, axis=0, method="inverted_cdf")

    def __repr__(self) -> str:
        best = int(np.argmax(self.first))
        return (
            f"RankBootstrap of {len(self.ranks):,} draws: {self.items[best]} first in {self.first[best]:.0%}"
        )


def resample(result: Aggregation, n: int, confidence: float, random_state: Any) -> RankBootstrap:
    """Ranks of the items when the voters are drawn anew n times."""
    check_level(confidence, n)
    ballots, rng = result.ballots, np.random.default_rng(random_state)
    drawn = _draws(ballots, n, rng)
    if result.rule.method in LINEAR:
        scores = _linear(ballots, result.rule, drawn)
    elif result.rule.method == "median":
        scores = _medians(ballots, result.rule, drawn)
    else:
        scores = _by_pairs(ballots, replace(result.rule, max_exact=0), drawn)
    ranks = [tied_ranks(block, result.tolerance) for block in scores]
    return RankBootstrap(result.items, np.concatenate(ranks), float(confidence))


def _draws(ballots: Ballots, n: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Weights of the voters in n resamples, some rows at a time."""
    step = max(1, _BLOCK // ballots.n_voters)
    for start in range(0, n, step):
        yield np.array([_draw(ballots, rng) for _ in range(min(step, n - start))])


def _draw(ballots: Ballots, rng: np.random.Generator) -> np.ndarray:
    w, n = ballots.weights, ballots.n_voters
    if w is not None and ballots.total < _WHOLE and (w == w.round()).all():
        return rng.multinomial(int(ballots.total), w / w.sum()).astype(np.float64)
    while True:
        times = np.bincount(rng.integers(0, n, n), minlength=n) * ballots.weight(slice(None))
        if times.any():  # not only voters of weight 0
            return times


def _linear(ballots: Ballots, rule: Rule, drawn: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """One matrix product for all resamples of a block; items that no drawn voter scored are last."""
    points = voter_points(ballots, rule, slice(None))
    given = ~np.isnan(points)
    whole = bool(given.all())
    points, seen = (points, None) if whole else (np.where(given, points, 0.0), given.astype(np.float64))
    for weights in drawn:
        total = weights.sum(axis=1, keepdims=True)
        sums = weights @ points
        hits = np.broadcast_to(total, sums.shape) if seen is None else weights @ seen
        scores = np.full(sums.shape, -np.inf)
        known = hits > 0 if rule.method in ("lovasz-bregman", "borda") else np.ones(sums.shape, dtype=bool)
        total = np.broadcast_to(total, sums.shape)
        scores[known] = LINEAR[rule.method](sums[known], hits[known], total[known])
        yield scores


def _medians(ballots: Ballots, rule: Rule, drawn: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    points = np.ascontiguousarray(voter_points(ballots, rule, slice(None)).T)
    for weights in drawn:
        medians = np.array([weighted_median(points, w) for w in weights])
        yield np.where(np.isnan(medians), -np.inf, medians)


def _by_pairs(ballots: Ballots, rule: Rule, drawn: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    for weights in drawn:
        kept = [np.flatnonzero(w) for w in weights]
        parts = [
            replace(ballots, scores=ballots.scores[rows], weights=w[rows], voters=None)
            for rows, w in zip(kept, weights, strict=True)
        ]
        yield np.array([score_items(part, rule).scores for part in parts])
