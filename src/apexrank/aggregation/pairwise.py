"""Pairwise preferences: the n × n matrix of counts, Copeland scores and the Condorcet winner.

The counts take O(voters · n²) time and n² memory, so they are computed only by methods that need them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from apexrank.aggregation.ballots import Ballots
from apexrank.errors import InputError
from apexrank.kernels.jit import kernel

MOST_ITEMS = 5_000  # counts of 200 megabytes
_ROUNDING = 1e-12  # relative to the total weight of the voters


def pairwise_counts(ballots: Ballots) -> np.ndarray:
    """Weight of the voters who strictly prefer item i to item j, in row i and column j.

    Voters who tie the two items, or have no opinion of one of them, do not count.

    Examples
    --------
    >>> pairwise_counts(Ballots(np.array([[2, 1, 0], [0, 1, 1], [2, 3, np.nan]]), list("abc"))).tolist()
    [[0.0, 1.0, 1.0], [2.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    n = ballots.n_items
    if n > MOST_ITEMS:
        raise InputError(
            f"pairwise counts of {n:,} items need {8e-9 * n * n:.1f} GB and {n:,} times {n:,} comparisons a voter: "
            f"give at most {MOST_ITEMS:,} items, or take a method that needs no pairs, such as borda"
        )
    counts = np.zeros((n, n))
    for part in ballots.blocks():
        _add_preferences(np.ascontiguousarray(part.ordered()), np.ascontiguousarray(part.weight()), counts)
    return counts


@kernel()
def _add_preferences(scores, weights, counts):
    # with items outermost, a row of counts stays in the cache for all voters of the block
    for i in range(scores.shape[1]):
        row = counts[i]
        for v in range(scores.shape[0]):
            own, w = scores[v, i], weights[v]
            if w == 0:  # not drawn in a resample
                continue
            for j in range(scores.shape[1]):
                row[j] += w if own > scores[v, j] else 0.0


def margins(counts: np.ndarray, total: float) -> np.ndarray:
    """Return the counts minus those of the opposite preference, exactly 0 if they differ only by rounding."""
    margin = counts - counts.T
    margin[np.abs(margin) <= _ROUNDING * total] = 0.0
    return margin


def copeland_scores(counts: np.ndarray, total: float) -> np.ndarray:
    """Copeland scores: number of items that a majority ranks below each item, with draws as one half (Copeland 1951).

    Examples
    --------
    >>> copeland_scores(np.array([[0, 2, 1], [1, 0, 1], [1, 1, 0]]), 3).tolist()
    [1.5, 0.5, 1.0]
    """
    signs = np.sign(margins(counts, total))
    return (signs.sum(axis=1) + len(counts) - 1) / 2


def condorcet_winner(ballots: Ballots) -> int | None:
    """Return the index of the Condorcet winner, who beats every other item by a majority, or None.

    It takes two passes over the ballots and no pairwise counts: an item that does not beat the next one cannot win.

    Examples
    --------
    >>> condorcet_winner(Ballots(np.array([[3, 2, 1], [1, 3, 2], [3, 1, 2]]), [0, 1, 2]))
    0
    >>> condorcet_winner(Ballots(np.array([[3, 2, 1], [1, 3, 2], [2, 1, 3]]), [0, 1, 2])) is None
    True
    """
    limit = _ROUNDING * ballots.total
    weights, champion, best = ballots.weight(slice(None)), np.empty(0), 0
    for item, column in _columns(ballots):
        if item == 0 or not _margin(champion, column, weights) > limit:
            best, champion = item, column
    rivals = (column for item, column in _columns(ballots) if item != best)
    return best if all(_margin(champion, column, weights) > limit for column in rivals) else None


def _columns(ballots: Ballots) -> Iterator[tuple[int, np.ndarray]]:
    """Iterate over the items' scores by all voters, comparable where missing, copying a few columns at a time."""
    for items in ballots.columns():
        columns = np.array(ballots.scores[:, items].T, dtype=np.float64, order="C")
        if ballots.missing == "last":
            columns[np.isnan(columns)] = -np.inf
        yield from enumerate(columns, items.start)


@kernel()
def _margin(first, second, weights):
    total = 0.0
    for v in range(weights.size):
        if first[v] > second[v]:
            total += weights[v]
        elif first[v] < second[v]:
            total -= weights[v]
    return total
