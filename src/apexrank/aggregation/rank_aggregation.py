"""Rank aggregation: `aggregate` merges ballots of many voters into one order, an `Aggregation`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.aggregation import fusion
from apexrank.aggregation.ballots import Ballots, Kind, Missing, read_ballots
from apexrank.aggregation.fusion import LINEAR, RRF, Method, Normalize, Points, Rule
from apexrank.aggregation.kemeny import Kemeny, kemeny, tied_places
from apexrank.aggregation.pairwise import condorcet_winner, copeland_scores, margins, pairwise_counts
from apexrank.errors import InputError
from apexrank.kernels.inversions import mean_ranks
from apexrank.metrics.permutation import kendall_tau
from apexrank.validation import check_choice

if TYPE_CHECKING:
    import polars as pl

    from apexrank.aggregation.bootstrap import RankBootstrap
    from apexrank.plot.aggregation import AggregationDisplay


def aggregate(
    scores: Any,
    weights: ArrayLike | Mapping[Any, float] | None = None,
    *,
    method: Method = "lovasz-bregman",
    normalize: Normalize | None = None,
    kind: Kind = "scores",
    points: Points | Sequence[float] | None = None,
    missing: Missing | None = None,
    items: Iterable[Any] | None = None,
    k: float = RRF,
    max_exact: int = 40,
    time_limit: float = 60.0,
    min_support: float = 0,
) -> Aggregation:
    """Aggregate the ballots of many voters into one order.

    The Lovász–Bregman divergence ``d(x‖σ) = <x, h_{σ_x} − h_σ>`` between scores and an order has a closed-form
    minimiser: for every submodular function, ``Σ_i w_i d(x_i‖σ)`` is smallest for the order of the weighted mean score
    (Iyer and Bilmes 2013, sec. 4). So on raw scores ``"lovasz-bregman"`` orders exactly as CombSUM does, and on Borda
    points (``normalize="borda"``, or ranks and orders with the default ``points``) exactly as Borda does; unlike these,
    it gives little weight to scores that are close together. If voters use different scales, choose a ``normalize``;
    there is no default.

    Parameters
    ----------
    scores : table, data frame or mapping
        Ballots of the voters, in one of three forms by ``kind``:

        - "scores": a table of voters × items, larger is better. An array, a pandas or polars data frame with the items
          as its columns, a mapping ``{voter: {item: score}}``, or a list of mappings ``{item: score}``; a pandas Series
          is a mapping. NaN or None is missing.
        - "ranks": the same with positions, where 1 is best. They may refer to lists longer than these items.
        - "orders": for each voter a list of items, best first; a list or tuple inside it is a tie. Lists may stop
          early, or be given by voter as a mapping. In a data frame each row is a voter's list, and empty cells end it.
    weights : array of shape (voters,) or mapping of voter to number, optional
        Number of times each ballot was cast: a weight of 3 is the same as three equal ballots. A pandas Series is
        treated as a mapping if the voters have names, which are the index of a data frame.
    method : str
        ==================  =======================================================================================
        "lovasz-bregman"    order of the weighted mean score
        "borda"             sum of n − place (de Borda 1781)
        "copeland"          number of majorities won, draws one half (Copeland 1951); needs all pairs of items
        "kemeny"            fewest contradicted preferences; needs all pairs of items. Proven optimal for groups of up
                            to ``max_exact`` items that beat each other in a cycle, local search beyond
        "median"            median place
        "combsum"           sum of scores (Fox and Shaw 1994)
        "combmnz"           sum of scores times the number of voters who scored the item
        "rrf"               reciprocal rank fusion: sum of 1/(k + place), or of 1/(k + rank) with ``kind="ranks"``
                            (Cormack et al. 2009)
        ==================  =======================================================================================
    normalize : {"minmax", "sum", "zscore", "rank", "borda"}, optional
        Normalise each voter's scores before they are added: "minmax" to 0 … 1; "sum" shifted to a minimum of 0 and
        scaled to a sum of 1; "zscore" to mean 0 and variance 1; "rank" to n − place scaled to 0 … 1, "borda" to n −
        place. A voter whose scores are all equal then gives 0 to all ("rank" and "borda": the middle). "min-max" and
        "zmuv" are other names of the first and the third. It does not affect methods that use only places.
    kind : {"scores", "ranks", "orders"}
        Content of ``scores``.
    points : {"borda", "linear", "reciprocal", "dcg"} or sequence of numbers, optional
        Points of a place, with ranks and orders, for the methods that add scores: n − place, the default; the same
        scaled to 0 … 1; 1/place; 1/log2(1 + place); or the points of each place from the best on, 0 after the last.
        Tied items share the points of their places. With ``kind="ranks"`` the place in "reciprocal", "dcg" and ``rrf``
        is the rank as given, so that 1, 50 and 100 are not treated as 1, 2 and 3, and tied items have the points of the
        given rank; all other points are those of the places among the items here.
    missing : {"ignore", "last"}, optional
        Meaning of a missing score. "ignore" (no opinion): means and medians are over the voters who scored the item,
        sums (``combsum``, ``combmnz``, ``rrf``) get nothing, pairs with the item do not count, and the places of a
        ballot of m of n items are stretched to n (except for ``rrf``). "last": the item is below all that the voter
        scores, tied with the other unscored ones; it shares the points of their places or, if raw or normalised scores
        are added, gets the voter's smallest score. The default is "ignore", but "last" for orders unless the method is
        one of the three sums.
    items : iterable of names, optional
        Names of the columns of an array. For mappings and orders: all items, in this order.
    k : float
        Constant of ``rrf``.
    max_exact : int
        Largest group that ``kemeny`` solves exactly. For more than 16 items the solution is exact up to 1e-7 of the
        largest majority, and ``optimal`` only if all majorities are multiples of a common number, as with whole votes.
    time_limit : float
        Time limit of ``kemeny`` for the exact solution of a group, in seconds.
    min_support : float
        Minimum total weight of the voters who scored an item. Items below it rank after all others, in the order of
        their scores, so that a single good rating does not win. They stay in the result, and scores do not change.

    Returns
    -------
    Aggregation
        ``order``, ``ranks``, ``scores`` and ``ties``; on demand ``confidence``, ``pairwise``, ``condorcet_winner``,
        ``agreement``, ``support``, ``bootstrap()`` and ``plot()``.

    Notes
    -----
    All methods except "copeland" and "kemeny" are near-linear in the number of scores. "lovasz-bregman" and "combsum"
    read a clean table of raw scores once, without a copy.

    Examples
    --------
    Three voters slightly prefer the second item, two strongly the first (the example of the paper's sec. 4, whose
    text swaps the two orders). By scores the order is [0, 1], by majority [1, 0]:

    >>> scores = [[1.9, 2], [1.8, 2], [1.95, 2], [2, 1], [2.5, 1.2]]
    >>> result = aggregate(scores)
    >>> result.order, result.scores.round(2).tolist()
    ([0, 1], [2.03, 1.64])
    >>> round(result.confidence, 2), result.condorcet_winner
    (0.74, 1)
    >>> aggregate(scores, method="borda").order
    [1, 0]

    Ballots with their counts, ties as nested lists, and unnamed items last:

    >>> ballots = [["ann", "bob", "cy"], ["cy", ["ann", "bob"]], ["bob"]]
    >>> aggregate(ballots, [4, 3, 2], kind="orders", method="kemeny")
    Aggregation by kemeny of 9 voters (3 different ballots): ann > bob > cy
    """
    rule = Rule(method, normalize, points, k, max_exact, time_limit, min_support)
    check_choice("kind", kind, Kind)
    if points is not None and kind == "scores":
        raise InputError(
            "`points` are for ranks and orders: with `kind='scores'` use `normalize`, such as 'borda'"
        )
    if missing is None:
        missing = "last" if kind == "orders" and method not in fusion.SUMS else "ignore"
    check_choice("missing", missing, Missing)
    ballots = read_ballots(scores, weights, kind=kind, missing=missing, items=items)
    found = score_items(ballots, rule)
    ranks = fusion.tied_ranks(found.scores, found.tolerance, fusion.low_support(ballots, rule))
    return Aggregation(ballots.items, found.scores, ranks, ballots, rule, found.tolerance, found.proof)


_SHOWN = 10


@dataclass(frozen=True, eq=False, repr=False)
class Aggregation:
    """Aggregated order of the items, the result of `apexrank.aggregation.aggregate`.

    Attributes
    ----------
    method : str
        Name of the method; ``rule`` holds its options and ``ballots`` its input.
    items : list
        Names of the items, or their numbers, in the order of the input.
    scores : ndarray of shape (n,)
        Aggregated scores by item, larger is better: the mean score for ``lovasz-bregman``, points for ``borda``,
        ``combsum``, ``combmnz`` and ``rrf``, majorities won for ``copeland``, n minus the (median) rank for ``median``
        and ``kemeny``.
    ranks : ndarray of shape (n,)
        Rank of each item, 1 is best; tied items share the better rank.
    order : list
        Names of the items, best first; tied items are in the order of the input.
    ties : list of tuples
        Groups of tied items, best first. Scores that differ by at most the rounding error ``tolerance`` are tied.
    cost, bound : float or None
        ``kemeny`` only: weight of the preferences that the order contradicts, and a lower bound on it for every order.
    optimal : bool or None
        ``kemeny`` only: whether the order is proven optimal. It refers, like the cost and the bound, to the order
        before ``min_support`` moves items to the end.

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
        """Confidence of the population in its order, from 0 to 1 (Iyer and Bilmes 2013, sec. 4).

        The total variation ``V(x) = Σ_j |x_σ(j) − x_σ(j+1)|`` of scores along their own order is the largest minus the
        smallest. The confidence is V of the mean points divided by the mean of V of the voters' points: 1 if all voters
        have the same best and the same worst item, near 0 if they contradict each other. The points are the
        (normalised) scores for ``lovasz-bregman``, ``combsum`` and ``combmnz``, those of ``rrf`` for ``rrf``, and
        Borda's for all others. With missing scores the quotient can exceed 1 and is clipped; it is 0 if no voter has a
        preference. Computed on first access.
        """
        return fusion.confidence(self.ballots, self.rule)

    @cached_property
    def support(self) -> np.ndarray:
        """Weight of the voters who scored each item, by item number; computed on first access.

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
        """Mask of the items ranked last for support below ``min_support``; None if that is 0."""
        return fusion.low_support(self.ballots, self.rule)

    @property
    def _some_missing(self) -> bool:
        return bool((self.support < self.ballots.total).any())

    @cached_property
    def pairwise(self) -> np.ndarray:
        """Weight of the voters who prefer item i to item j, by item number, n × n; computed on first access."""
        return pairwise_counts(self.ballots)

    @cached_property
    def condorcet_winner(self) -> Any:
        """Item that a majority prefers to every other one, or None; computed on first access."""
        number = condorcet_winner(self.ballots)
        return None if number is None else self.items[number]

    @cached_property
    def agreement(self) -> np.ndarray:
        """Kendall's τ_b between each voter and the result, over the items that the voter ranks.

        It is 1 for the same order, −1 for the opposite one, and NaN if the voter or the result is all tied. Computed on
        first access.
        """
        parts = []
        for part in self.ballots.blocks():
            block = -part.ordered()
            whole = ~np.isnan(block).any(axis=1)
            tau = np.empty(len(block))
            if whole.any():
                tau[whole] = kendall_tau(rankings=(self.ranks, block[whole]))
            for number in np.flatnonzero(~whole).tolist():
                given = ~np.isnan(block[number])
                tau[number] = kendall_tau(rankings=(self.ranks[given], block[number, given]))
            parts.append(tau)
        return np.concatenate(parts)

    def voter_ranks(self, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Rank of each item on the ballots of the selected voters; tied items have their mean rank, NaN is no opinion.

        Examples
        --------
        >>> from apexrank import aggregate
        >>> aggregate([[0.9, 0.1, 0.1], [0.2, None, 0.7]]).voter_ranks().tolist()
        [[1.0, 2.5, 2.5], [2.0, nan, 1.0]]
        """
        places, given = self.ballots.sort(rows)
        return np.where(given, mean_ranks(places), np.nan)

    def bootstrap(self, n: int = 1000, *, confidence: float = 0.95, random_state: Any = 0) -> RankBootstrap:
        """Bootstrap the voters: confidence intervals for the ranks, and the probability of each item to be first.

        If all weights are whole numbers, ballots are resampled, as many as were cast; otherwise voters are, each with
        its weight. ``kemeny`` uses local search in the resamples. Items that ``min_support`` ranks last in the result
        are last in all resamples.

        Parameters
        ----------
        n : int
            Number of resamples.
        confidence : float in (0, 1)
            Confidence level of the intervals.
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
        """Plot the items from best to worst, with intervals and the voters' ranks.

        ``options`` are those of `apexrank.plot.aggregation.AggregationDisplay.from_result`.
        """
        from apexrank.plot.aggregation import AggregationDisplay

        return AggregationDisplay.from_result(self, ax=ax, **options)

    def to_frame(self) -> pl.DataFrame:
        """Return a data frame of ``rank``, ``item``, ``score`` and, if scores are missing, ``support``, best first.

        Items of mixed types are converted to text.
        """
        import polars as pl

        columns = {"rank": self.ranks, "item": item_series(self.items), "score": self.scores}
        if self._some_missing:
            columns["support"] = self.support
        return pl.DataFrame(columns)[self._numbers]

    def to_dict(self) -> dict[str, Any]:
        """Return the order, ranks, scores and, if scores are missing, support by item name, in plain types."""
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


def item_series(items: list[Any]) -> pl.Series:
    """Make a polars Series of item names; names of mixed types are converted to text."""
    import polars as pl

    same = len({type(name) for name in items}) == 1
    return pl.Series("item", items if same else [str(name) for name in items])


class Scored(NamedTuple):
    """Score of each item, a bound on its rounding error, and the result of ``kemeny``, if any."""

    scores: np.ndarray
    tolerance: np.ndarray
    proof: Kemeny | None = None


def score_items(ballots: Ballots, rule: Rule) -> Scored:
    """Score each item by the method of the rule; larger is better.

    Examples
    --------
    >>> ballots = read_ballots([[3, 2, 1], [3, 1, 2], [1, 2, 3]])
    >>> score_items(ballots, Rule("copeland")).scores.tolist()
    [2.0, 0.0, 1.0]
    """
    if rule.method in LINEAR:
        return Scored(*fusion.linear_scores(ballots, rule))
    if rule.method == "median":
        return Scored(*fusion.median_scores(ballots, rule))
    counts = pairwise_counts(ballots)
    if ballots.missing == "ignore":
        fusion.check_hits(ballots, ballots.support())
    return score_pairs(counts, ballots.total, rule)


def score_pairs(counts: np.ndarray, total: float, rule: Rule) -> Scored:
    """Score each item by a pairwise method; an item that no voter scored draws with all others.

    Examples
    --------
    >>> counts = pairwise_counts(read_ballots([[3, None, 1]]))
    >>> score_pairs(counts, 1.0, Rule("copeland")).scores.tolist()
    [1.5, 1.0, 0.5]
    """
    n, exact = len(counts), np.zeros(len(counts))
    if rule.method == "copeland":
        return Scored(copeland_scores(counts, total), exact)
    proof = kemeny(counts, total, max_exact=rule.max_exact, time_limit=rule.time_limit)
    return Scored(n - tied_places(proof.order, margins(counts, total)), exact, proof)
