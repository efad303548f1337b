"""What majorities say of the first items: shares of voters for each pair, the Condorcet winner, circles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from apexrank.aggregation.pairwise import copeland_scores, margins, pairwise_counts
from apexrank.aggregation.rank_aggregation import Aggregation
from apexrank.report.votes_methods import MOST_PAIRS

_MOST_COUNTED = 1_000  # items whose majorities are all kept, for the set that beats all others


@dataclass(frozen=True, eq=False)
class Majorities:
    """Who is preferred to whom.

    Attributes
    ----------
    items : ndarray
        Numbers of the first items of the result, best first.
    shares : ndarray of shape (k, k)
        Share of the voters who prefer the item of the row to that of the column; ties and gaps count for neither.
    margins : ndarray of shape (k, k)
        Weight of these voters less that of those who prefer the column's item; exactly 0 for a draw.
    winner : int or None
        Number of the Condorcet winner: the item that a majority prefers to each other one.
    smith : ndarray or None
        Numbers of the fewest items each of which a majority prefers to every item outside (the Smith set), best first
        in the result; None where all pairs are too many to count.
    circle : tuple of three numbers, or None
        Without a winner: items of which a majority prefers each to the next, and the last to the first.
    """

    items: np.ndarray
    shares: np.ndarray
    margins: np.ndarray
    winner: int | None
    smith: np.ndarray | None
    circle: tuple[int, int, int] | None


def count_majorities(result: Aggregation, most: int = 15) -> Majorities:
    """Look at the pairs of the first items, and for the Condorcet winner at all.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> found = count_majorities(aggregate([[3, 2, 1], [1, 3, 2], [2, 1, 3]]))
    >>> found.winner, found.smith.tolist(), found.circle
    (None, [0, 1, 2], (0, 1, 2))
    """
    ballots, total = result.ballots, result.ballots.total
    order = np.argsort(result.ranks, kind="stable")
    items = order[:most]
    counts = _counts_of(result, items)
    margin = margins(counts, total)
    name = result.condorcet_winner
    winner = None if name is None else result.items.index(name)
    smith = np.array([winner]) if winner is not None else None
    n = ballots.n_items
    if winner is None and n <= _MOST_COUNTED and ballots.scores.size * n <= MOST_PAIRS:
        inside = smith_set(result.pairwise, total)
        smith = order[np.isin(order, inside)]
    circle = None if winner is not None else _circle(margin)
    named = None if circle is None else tuple(items[list(circle)].tolist())
    return Majorities(items, counts / total, margin, winner, smith, named)


def smith_set(counts: np.ndarray, total: float) -> np.ndarray:
    """Numbers of the fewest items each of which beats every item outside (Smith 1973).

    k items score at most ``k(k − 1)/2 + k(n − k)`` by Copeland, and that only where they beat all others.

    Examples
    --------
    >>> smith_set(np.array([[0, 2, 1, 3], [1, 0, 2, 3], [2, 1, 0, 3], [0, 0, 0, 0]]), 3).tolist()
    [0, 1, 2]
    """
    scores = copeland_scores(counts, total)
    order = np.argsort(-scores, kind="stable")
    n = len(scores)
    k = np.arange(1, n + 1)
    full = k * (k - 1) / 2 + k * (n - k)
    size = int(np.argmax(np.cumsum(scores[order]) == full)) + 1
    return np.sort(order[:size])


def _counts_of(result: Aggregation, items: np.ndarray) -> np.ndarray:
    """Pairwise counts of some items; voters who score none of them prefer none."""
    ballots = result.ballots
    scores: Any = np.asarray(ballots.scores[:, items], dtype=np.float64)
    heard = ~np.isnan(scores).all(axis=1)
    if not heard.any():
        return np.zeros((len(items), len(items)))
    weights = ballots.weight(slice(None))[heard]
    names = [result.items[number] for number in items.tolist()]
    return pairwise_counts(replace(ballots, scores=scores[heard], items=names, weights=weights, voters=None))


def _circle(margin: np.ndarray) -> tuple[int, int, int] | None:
    """Three items that beat each other in a circle, with those of the best ranks."""
    beats = margin > 0
    for a in range(len(beats)):
        for b in np.flatnonzero(beats[a]).tolist():
            back = np.flatnonzero(beats[b] & beats[:, a])
            if len(back):
                return a, b, int(back[0])
    return None
