"""What an aggregation gives: the order, its ties and scores, and on demand how sure it is and who agrees with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from apexrank.aggregation.ballots import Ballots
from apexrank.aggregation.fusion import confidence, low_support
from apexrank.aggregation.kemeny import Kemeny
from apexrank.aggregation.pairwise import condorcet_winner, pairwise_counts
from apexrank.aggregation.points import Rule
from apexrank.kernels.inversions import count_pairs, mean_ranks, sort_rows

if TYPE_CHECKING:
    import polars as pl

    from apexrank.aggregation.bootstrap import RankBootstrap
    from apexrank.plot.aggregation import AggregationDisplay

_SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class Aggregation:
    """One order of the items, made from many ballots by `apexrank.aggregation.aggregate`.

    Attributes
    ----------
    method : str
        How it was made; ``rule`` has its options, ``ballots`` what it was made from.
    items : list
        Names of the items, or their numbers, in the order of the input.
    scores : ndarray of shape (n,)
        What was sorted, larger is better, by item: the mean score for ``lovasz-bregman``, points for ``borda``,
        ``combsum``, ``combmnz`` and ``rrf``, majorities won for ``copeland``, n less the (median) rank for ``median``
        and ``kemeny``.
    ranks : ndarray of shape (n,)
        Rank of each item, 1 is best; tied items share the better rank.
    order : list
        Names of the items, best first; tied items are in the order of the input.
    ties : list of tuples
        Groups of tied items, best first. Scores that differ by no more than rounding, ``tolerance``, are tied.
    cost, bound : float or None
        ``kemeny`` only: weight of the preferences that the order contradicts, and what every order costs at least.
    optimal : bool or None
        ``kemeny`` only: whether the order is proven best. This, the cost and the bound are those of its order before
        ``min_support`` moves items to the end.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> result = aggregate([["ann", "bob", "cy"], ["bob", "ann", "cy"], ["cy"]], kind="orders", method="borda")
    >>> result
    Aggregation by borda of 3 voters: ann = bob > cy
    >>> result.ranks.tolist(), result.ties
    ([1, 1, 3], [('ann', 'bob')])
    """

    items: list[Any]
    scores: np.ndarray
    ranks: np.ndarray
    ballots: Ballots
    rule: Rule
    tolerance: np.ndarray
    proof: Kemeny | None = None

    @cached_property
    def _numbers(self) -> np.ndarray:
        return np.argsort(self.ranks, kind="stable")

    @property
    def method(self) -> str:
        return self.rule.method

    @property
    def cost(self) -> float | None:
        return None if self.proof is None else self.proof.cost

    @property
    def bound(self) -> float | None:
        return None if self.proof is None else self.proof.bound

    @property
    def optimal(self) -> bool | None:
        return None if self.proof is None else self.proof.optimal

    @property
    def order(self) -> list[Any]:
        return [self.items[number] for number in self._numbers.tolist()]

    @property
    def ties(self) -> list[tuple[Any, ...]]:
        groups = np.split(self._numbers, np.flatnonzero(np.diff(self.ranks[self._numbers])) + 1)
        return [tuple(self.items[number] for number in group.tolist()) for group in groups if len(group) > 1]

    @property
    def voters(self) -> list[Any]:
        """Names of the voters, or their numbers."""
        return list(range(self.ballots.n_voters)) if self.ballots.voters is None else self.ballots.voters

    @cached_property
    def confidence(self) -> float:
        """How sure the population is of its order, from 0 to 1 (Iyer and Bilmes 2013, sec. 4).

        The total variation ``V(x) = Σ_j |x_σ(j) − x_σ(j+1)|`` of scores along their own order is the largest less the
        smallest. The confidence is V of the mean points over the mean of V of the voters' points: 1 where all voters
        have the same best and the same worst item, near 0 where they contradict each other. The points are the
        (normalised) scores for ``lovasz-bregman``, ``combsum`` and ``combmnz``, those of ``rrf`` for ``rrf``, and
        Borda's for all others. Where voters ignore items the quotient can pass 1 and is cut there; it is 0 where no
        voter prefers anything. Computed when first asked for.
        """
        return confidence(self.ballots, self.rule)

    @cached_property
    def support(self) -> np.ndarray:
        """Weight of the voters who scored each item, by number; computed when first asked for.

        Examples
        --------
        >>> from apexrank import aggregate
        >>> ratings = [[4, None], [4, None], [3, 5]]
        >>> aggregate(ratings).order, aggregate(ratings).support.tolist()
        ([1, 0], [3.0, 1.0])
        >>> aggregate(ratings, min_support=2).order
        [0, 1]
        """
        return self.ballots.support()

    @property
    def low_support(self) -> np.ndarray | None:
        """Which items rank after all others for less support than ``min_support``; None where that is 0."""
        return low_support(self.ballots, self.rule)

    @property
    def _some_missing(self) -> bool:
        return bool((self.support < self.ballots.total).any())

    @cached_property
    def pairwise(self) -> np.ndarray:
        """Weight of the voters who prefer item i to item j, by number: n × n, computed when first asked for."""
        return pairwise_counts(self.ballots)

    @cached_property
    def condorcet_winner(self) -> Any:
        """The item that a majority prefers to each other one, or None; computed when first asked for."""
        number = condorcet_winner(self.ballots)
        return None if number is None else self.items[number]

    @cached_property
    def agreement(self) -> np.ndarray:
        """Kendall's τ_b of each voter with the result, over the items that the voter ranks.

        It is 1 for the same order, −1 for the opposite one, and NaN where the voter or the result is all tied. Computed
        when first asked for.
        """
        own = sort_rows(self.ranks[None])
        parts = []
        for rows in self.ballots.blocks():
            block = self.ballots.ordered(rows)
            whole = ~np.isnan(block).any(axis=1)
            tau = np.empty(len(block))
            if whole.any():
                tau[whole] = _tau(own, -block[whole])
            for number in np.flatnonzero(~whole).tolist():
                given = ~np.isnan(block[number])
                tau[number] = _tau(sort_rows(self.ranks[None, given]), -block[None, number, given])[0]
            parts.append(tau)
        return np.concatenate(parts)

    def voter_ranks(self, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Rank of each item on the ballots of some voters: tied items have their mean rank, NaN is no opinion.

        Examples
        --------
        >>> from apexrank import aggregate
        >>> aggregate([[0.9, 0.1, 0.1], [0.2, None, 0.7]]).voter_ranks().tolist()
        [[1.0, 2.5, 2.5], [2.0, nan, 1.0]]
        """
        places, given = self.ballots.sort(rows)
        return np.where(given, mean_ranks(places), np.nan)

    def bootstrap(self, n: int = 1000, *, confidence: float = 0.95, random_state: Any = 0) -> RankBootstrap:
        """Draw voters again and again: intervals of the ranks, and the chance of each item to be first.

        Where all weights are whole numbers so many ballots are drawn as were cast; otherwise voters are, each with its
        own weight. ``kemeny`` is solved by local search in the draws. Items that ``min_support`` puts last in the
        result are last in all draws.

        Parameters
        ----------
        n : int
            How often to draw.
        confidence : float in (0, 1)
            Chance that an interval covers the true rank.
        random_state : int, Generator or None
            Seed of the draws.

        Examples
        --------
        >>> from apexrank import aggregate
        >>> drawn = aggregate([[3, 2, 1], [3, 1, 2], [2, 3, 1]], items="abc").bootstrap(200)
        >>> drawn.first.round(2).tolist()
        [0.76, 0.24, 0.0]
        """
        from apexrank.aggregation.bootstrap import resample

        return resample(self, n, confidence, random_state)

    def plot(self, ax: Any = None, **options: Any) -> AggregationDisplay:
        """Draw the items from best to worst, with intervals and the voters' ranks.

        ``options`` are those of `apexrank.plot.aggregation.AggregationDisplay.from_result`.
        """
        from apexrank.plot.aggregation import AggregationDisplay

        return AggregationDisplay.from_result(self, ax=ax, **options)

    def to_frame(self) -> pl.DataFrame:
        """Table of ``rank``, ``item``, ``score`` and, where scores are missing, ``support``, best first.

        Items of several types are written as text.
        """
        import polars as pl

        names = self.order
        same = len({type(name) for name in names}) == 1
        item = pl.Series("item", names if same else [str(name) for name in names])
        numbers = self._numbers
        columns = [pl.Series("rank", self.ranks[numbers]), item, pl.Series("score", self.scores[numbers])]
        if self._some_missing:
            columns.append(pl.Series("support", self.support[numbers]))
        return pl.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """The order, ranks, scores and, where scores are missing, support by the names of the items, in plain types."""
        found = {
            "method": self.method,
            "order": self.order,
            "ranks": dict(zip(self.items, self.ranks.tolist(), strict=True)),
            "scores": dict(zip(self.items, self.scores.tolist(), strict=True)),
            "ties": [list(group) for group in self.ties],
            "n_voters": self.ballots.n_voters,
        }
        if self._some_missing:
            found["support"] = dict(zip(self.items, self.support.tolist(), strict=True))
        proof = {"cost": self.cost, "bound": self.bound, "optimal": self.optimal}
        return found if self.cost is None else found | proof

    def __repr__(self) -> str:
        numbers = self._numbers[:_SHOWN].tolist()
        text = str(self.items[numbers[0]])
        for before, number in pairwise(numbers):
            sign = "=" if self.ranks[before] == self.ranks[number] else ">"
            text += f" {sign} {self.items[number]}"
        more = len(self.items) - len(numbers)
        tail = f" … and {more:,} more" if more else ""
        return f"Aggregation by {self.method} of {self.ballots.voters_said}: {text}{tail}"


def _tau(own: Any, blocks: np.ndarray) -> np.ndarray:
    """Kendall's τ_b of rows of values, smaller is better, with one sorted row."""
    n = blocks.shape[1]
    pairs = n * (n - 1) / 2
    counts = count_pairs(own, sort_rows(blocks))
    discordant, in_own, in_block, both = (np.asarray(count, dtype=np.float64) for count in counts)
    agreeing = pairs - 2 * discordant - in_own - in_block + both
    with np.errstate(invalid="ignore"):  # 0/0: nothing to compare
        return agreeing / np.sqrt((pairs - in_own) * (pairs - in_block))
