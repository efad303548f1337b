"""Team-draft interleaving: comparison of two rankers by clicks on an interleaved list (Radlinski et al. 2008)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics.confidence import check_level
from apexrank.validation import check_count, segment


class Interleaved(NamedTuple):
    """Items of an interleaved list from the top, and the ranker that chose each, "a" or "b"."""

    items: list[Any]
    teams: list[str]


class InterleavingTest(NamedTuple):
    """Impressions won by each ranker, and ``b``'s share of the decided ones, with interval and p-value."""

    wins_a: int
    wins_b: int
    ties: int
    share_b: float
    low: float
    high: float
    p_value: float


def team_draft(
    a: Sequence[Hashable], b: Sequence[Hashable], *, length: int | None = None, random_state: Any = None
) -> Interleaved:
    """Interleave two rankings: in each round both rankers choose an item, in random order.

    A ranker chooses its highest item that is not yet on the list, and clicks on that item count for it.

    Parameters
    ----------
    a, b : sequence of hashable
        Items from the top, without repetition; the rankings need not have the same items.
    length : int, optional
        Length of the list; by default all items.
    random_state : int, Generator or None
        Seed of the order in each round.

    Returns
    -------
    Interleaved
        Named tuple (items, teams).

    Examples
    --------
    >>> team_draft(["x", "y", "z"], ["y", "z", "w"], length=3, random_state=0)
    Interleaved(items=['y', 'x', 'z'], teams=['b', 'a', 'a'])
    """
    rankings = {"a": list(a), "b": list(b)}
    for name, items in rankings.items():
        if len(set(items)) < len(items):
            raise InputError(f"ranking {name} has an item twice: list each item once")
    if length is not None:
        check_count("length", length)
    rng = np.random.default_rng(random_state)
    found: dict[Hashable, str] = {}
    rest = {name: iter(items) for name, items in rankings.items()}
    n = len({*rankings["a"], *rankings["b"]})
    n = n if length is None else min(n, length)
    while len(found) < n:
        for name in ("a", "b") if rng.random() < 0.5 else ("b", "a"):
            for item in rest[name]:
                if item not in found and len(found) < n:
                    found[item] = name
                    break
    return Interleaved(list(found), list(found.values()))


def interleaving_test(
    clicked: ArrayLike, teams: ArrayLike, impressions: ArrayLike, *, confidence: float = 0.95
) -> InterleavingTest:
    """Test which of two interleaved rankers is preferred, from a click log.

    The ranker whose items got more clicks wins an impression (one display of a list). The p-value is that of the exact
    two-sided sign test on the impressions with a winner; the interval is Wilson's. Impressions are assumed to be
    independent: if those of a user or query are not, keep one of each.

    Parameters
    ----------
    clicked : array-like of bool or int, shape (n,)
        Whether each displayed item was clicked, or its number of clicks.
    teams : array-like of shape (n,)
        "a" or "b", the ranker that chose the item, as returned by `team_draft`.
    impressions : array-like of shape (n,)
        Id of the impression of each row.
    confidence : float in (0, 1)
        Confidence level of the interval of ``share_b``.

    Returns
    -------
    InterleavingTest
        Named tuple (wins_a, wins_b, ties, share_b, low, high, p_value); ``share_b`` is the share of the decided
        impressions won by b, NaN if there are none.

    Examples
    --------
    >>> clicked, teams = [0, 1, 1, 1, 0, 1], ["a", "b", "a", "b", "a", "b"]
    >>> interleaving_test(clicked, teams, [1, 1, 2, 2, 3, 3])[:4]
    (0, 2, 1, 1.0)
    """
    from scipy.stats import binomtest

    check_level(confidence, 2)
    times, team = np.asarray(clicked), np.asarray(teams)
    if times.ndim != 1 or times.dtype.kind not in "biuf" or not (times >= 0).all():
        raise InputError("clicked must be a number of clicks of at least 0 for each row")
    if team.shape != times.shape or not np.isin(team, ("a", "b")).all():
        raise InputError("teams must be 'a' or 'b' for each row of clicked")
    if not len(times):
        raise InputError("there is no impression to count: give at least one row")
    of_row = segment(impressions, len(times)).of_rows()
    credit = np.bincount(of_row, np.where(team == "b", times, -times.astype(float)))
    a, b, ties = (int(np.sum(np.sign(credit) == sign)) for sign in (-1, 1, 0))
    if not a + b:
        return InterleavingTest(a, b, ties, np.nan, np.nan, np.nan, 1.0)
    test = binomtest(b, a + b)
    interval = test.proportion_ci(confidence, method="wilson")
    return InterleavingTest(
        a, b, ties, b / (a + b), float(interval.low), float(interval.high), float(test.pvalue)
    )
