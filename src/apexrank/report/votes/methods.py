"""Aggregation of the same ballots by other methods, skipping those that are redundant or would take too long.

If scores are missing and count as no opinion, methods differ in their treatment of an item that few voters scored:

==============  ============================================  ==============================
method          score of an item                              favours items that many scored
==============  ============================================  ==============================
lovasz-bregman  mean over the voters who scored it            no
borda           mean over them, times the number of voters    no
median          median over them                              no
copeland        majorities won, however few the voters        no
kemeny          pairs, each by the voters who scored both     no
combsum         sum over the voters who scored it             yes, if scores are above 0
combmnz         that sum, times their number                  yes, if scores are above 0
rrf             sum over the voters who scored it             yes
==============  ============================================  ==============================

With scores on both sides of 0, combsum and combmnz move items that many scored away from the middle, up or down. If a
missing score is a position below all named items, every voter counts for every item, and there is no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from apexrank.aggregation.bootstrap import RankBootstrap
from apexrank.aggregation.fusion import LINEAR, Rule, low_support, tied_ranks
from apexrank.aggregation.pairwise import MOST_ITEMS
from apexrank.aggregation.rank_aggregation import Aggregation, score_items
from apexrank.errors import InputError
from apexrank.metrics.permutation import kendall_tau
from apexrank.plot.aggregation import METHOD_TITLES as TITLES

SUMS = ("combsum", "combmnz", "rrf")  # favour items that many scored, if missing scores are no opinion
MOST_PAIRS = 2**33  # maximum of voters × items × items for counting all majorities: a few seconds
_MOST_SCORES = 2**28  # maximum of voters × items for one pass that sorts each ballot: 15 seconds
MOST_CHEAP = 2**25  # maximum for a few such passes, or for one that keeps and sorts all ranks
_MOST_SEARCHED = 500  # maximum number of items for Kemeny's order
_PROOF_SECONDS = 10.0
_DRAWN = {
    "linear": 2e10,
    "median": 1e8,
    "pairs": 2e10,
}  # maximum number of steps of a bootstrap: about ten seconds
_FEWEST_DRAWS = 100  # too few samples give no useful 95% interval


def other_methods(
    result: Aggregation, methods: Sequence[str], notes: list[str], progress: Callable[[str], None]
) -> dict[str, Aggregation]:
    """Aggregate the ballots of a result by other methods; the result comes first, and omissions are added to ``notes``.

    All methods read the ballots and missing scores in the same way. Of methods that must give the same order, one is
    used.
    """
    found = {result.method: result}
    known = {_essence(result, result.method): result.method}
    for method in dict.fromkeys(methods):
        if method in found:
            continue
        twin = known.setdefault(_essence(result, method), method)
        same = f"here it is the same as {TITLES[twin]}" if twin != method else ""
        reason = same or _too_much(result, method)
        if not reason:
            progress(f"merging by {method}")
            try:
                found[method] = by_method(result, method)
            except InputError as error:
                reason = str(error)
        if reason:
            notes.append(f"{TITLES[method]} is left out: {reason}.")
    return found


def by_method(result: Aggregation, method: str) -> Aggregation:
    """Aggregate the ballots of a result by another method, with all other options unchanged.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> by_method(aggregate([[1.9, 2], [1.8, 2], [2.5, 1.2]]), "borda")
    Aggregation by borda of 3 voters: 1 > 0
    """
    limit = min(result.rule.time_limit, _PROOF_SECONDS)
    rule = replace(result.rule, method=method, time_limit=limit)  # type: ignore[arg-type]
    found = score_items(result.ballots, rule)
    ranks = tied_ranks(found.scores, found.tolerance, low_support(result.ballots, rule))
    return Aggregation(result.items, found.scores, ranks, result.ballots, rule, found.tolerance, found.proof)


def one_ballot(result: Aggregation) -> bool:
    """Whether only one ballot has positive weight, however often it was cast."""
    return np.count_nonzero(result.ballots.weight(slice(None))) == 1


def has_gaps(result: Aggregation) -> bool:
    """Whether some voters have no opinion of some items.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> [has_gaps(aggregate([[3, 1], [2, float("nan")]], missing=rule)) for rule in ("ignore", "last")]
    [True, False]
    """
    ballots = result.ballots
    return ballots.missing == "ignore" and bool((result.support < ballots.total).any())


def comparable(methods: dict[str, Aggregation]) -> dict[str, Aggregation]:
    """Methods that treat rarely scored items in the same way as the first of them.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> result = aggregate([[3, 1], [2, float("nan")]])
    >>> list(comparable({name: by_method(result, name) for name in ("borda", "rrf", "median")}))
    ['borda', 'median']
    """
    own, result = next(iter(methods.items()))
    if not has_gaps(result):
        return methods
    return {name: each for name, each in methods.items() if (name in SUMS) == (own in SUMS)}


def method_taus(results: dict[str, Aggregation]) -> np.ndarray:
    """Kendall's τ_b between the orders of all methods; NaN if one of them is all tied.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> result = aggregate([[1.9, 2], [1.8, 2], [2.5, 1.2]])
    >>> method_taus({"mean": result, "borda": by_method(result, "borda")}).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    ranks = np.array([each.ranks for each in results.values()])
    return np.array([np.atleast_1d(kendall_tau(rankings=(row, ranks))) for row in ranks])


def draw_voters(
    result: Aggregation, n: int | RankBootstrap, random_state: Any, notes: list[str]
) -> RankBootstrap | None:
    """Bootstrap the ranks with n samples, or as many as take about ten seconds, or none."""
    if isinstance(n, RankBootstrap):
        return n
    if n == 0:
        return None
    if one_ballot(result):
        notes.append("Voters were not resampled: there is only one ballot.")
        return None
    affordable = _affordable_draws(result)
    if affordable < min(n, _FEWEST_DRAWS):
        notes.append(
            f"Voters were not resampled, so ranks have no intervals: {TITLES[result.method]} takes too long "
            f"on {_size(result)}."
        )
        return None
    if affordable < n:
        times = f"{affordable:,} times instead of {n:,}"
        notes.append(f"Voters were resampled {times} because of the size of the table.")
    # many small products: threads would wait for each other on a busy machine
    with threadpool_limits(limits=1, user_api="blas"):
        return result.bootstrap(min(n, affordable), random_state=random_state)


def _affordable_draws(result: Aggregation) -> int:
    ballots = result.ballots
    kind, steps = "linear", ballots.scores.size
    if result.method == "median":
        kind = "median"
    elif result.method not in LINEAR:
        kind, steps = "pairs", steps * ballots.n_items
    return int(_DRAWN[kind] // steps)


def _too_much(result: Aggregation, method: str) -> str:
    """Reason for skipping a method; empty if it is used."""
    size, n = result.ballots.scores.size, result.ballots.n_items
    if method in ("copeland", "kemeny"):
        if method == "kemeny" and n > _MOST_SEARCHED:
            return f"its order is searched only up to {_MOST_SEARCHED:,} items, but there are {n:,}"
        if n > MOST_ITEMS or size * n > MOST_PAIRS:
            return f"it compares all pairs of items, too many for {_size(result)}"
    most = MOST_CHEAP if method == "median" else _MOST_SCORES
    return f"it takes too long on {_size(result)}" if size > most else ""


def _size(result: Aggregation) -> str:
    return f"{result.ballots.n_voters:,} ballots of {result.ballots.n_items:,} items"


def _essence(result: Aggregation, method: str) -> tuple[Any, ...]:
    """Key that is equal for methods that must give the same order."""
    rule: Rule = replace(result.rule, method=method)  # type: ignore[arg-type]
    ballots = result.ballots
    if method == "borda":
        return ("mean", "borda")
    if not rule.takes_scores or (method != "lovasz-bregman" and has_gaps(result)):
        return (method,)
    if not rule.takes_places(ballots):
        return ("mean", "scores")
    plain = rule.normalize in (None, "rank", "borda") and rule.scale in ("borda", "linear")
    return ("mean", "borda" if plain else "points")
