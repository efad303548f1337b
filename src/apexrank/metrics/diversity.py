"""Diversity measures for queries with several intents: α-NDCG and intent-aware ERR.

``y_true`` has a column for each intent with the relevance of the row to it. Queries with fewer intents have columns of
zeros. One label per row is a single intent.
"""

from __future__ import annotations

from heapq import heapify, heapreplace

import numpy as np

from apexrank.errors import InputError
from apexrank.metrics._labels import ranking_measure
from apexrank.metrics._rows import GradedLists, ScoredRows, Values, ratio
from apexrank.metrics.discounted_gain import (
    NoMean,
    check_cut,
    check_no_mean,
    exponential_gain,
    highest_grade,
    reciprocal_ranks,
)
from apexrank.validation import check_between


@ranking_measure("relevance", known="intents")
def alpha_ndcg(
    rows: ScoredRows, *, alpha: float = 0.5, k: int | None = None, ties: NoMean = "pessimistic"
) -> Values:
    """α-NDCG, which discounts a row for each row above it that serves the same intent (Clarke et al. 2008).

    ``Σ_r Σ_j rel_rj · (1 − α)^{c_rj} / log2(1 + r)``, where c_rj rows above r are relevant to intent j, divided by the
    same sum for the ideal order. That order is found greedily, as in ndeval: a better one may exist, so that values
    slightly above 1 are possible with several intents.

    Parameters
    ----------
    y_true : array-like of shape (n, m) or (n,)
        Relevance of each row to each intent: relevant if above 0, or at least the grade ``relevant``.
    alpha : float in [0, 1]
        0 counts every relevant row fully, 1 only the first one for each intent.
    k : int, optional
        Only the first k ranks count, both of the list and of the ideal order.
    ties : {"pessimistic", "optimistic", "given"}
        Order of tied rows: those that serve the fewest intents first, the most first, or the order of the rows. With
        several intents the first two need not be the very worst and best order.
    scores, relevant, empty, pos_label, groups, sample_weight
        As in `apexrank.metrics.precision_at`; weights must be whole numbers.

    Examples
    --------
    >>> intents = [[1, 0], [1, 0], [0, 1]]  # two rows for the first intent, one for the second
    >>> round(alpha_ndcg(intents, [3, 2, 1]), 6), alpha_ndcg(intents, [3, 1, 2])
    (0.965195, 1.0)
    """
    check_between("alpha", alpha, 0, 1)
    depth = None if k is None else check_cut(k)
    serves = rows.positive[:, None] if rows.intents is None else rows.intents > 0
    lists, table = _top_down("alpha_ndcg", rows, serves.astype(np.float64), ties)
    found = np.zeros(len(table))
    for column in table.T:
        found += column * (1 - alpha) ** lists.before(column)
    discount = lists.listed / np.log2(1 + lists.ranks) * (True if depth is None else lists.ranks <= depth)
    bounds = zip(lists.indptr[:-1], lists.indptr[1:], strict=True)
    best = np.array([_greedy(table[first:last], alpha, depth) for first, last in bounds])
    return Values(ratio(lists.sums(found * discount), best), best > 0)


def _greedy(table: np.ndarray, alpha: float, depth: int | None) -> float:
    """Discounted gain of the greedy order, which takes the row of the largest gain at each rank.

    Rows with the same intents are equivalent, and gains only decrease with each rank, so a lazy heap suffices.
    """
    kinds, counts = np.unique(table[table.any(axis=1)], axis=0, return_counts=True)
    length = min(int(counts.sum()), depth or len(table))
    if len(kinds) == 1:  # a single intent, possibly with a long list
        ranks = np.arange(1, length + 1)
        return float(kinds.sum() * np.sum((1 - alpha) ** (ranks - 1.0) / np.log2(1 + ranks)))
    worth, total = np.ones(table.shape[1]), 0.0
    heap = [(-gain, i) for i, gain in enumerate(kinds.sum(axis=1).tolist())]
    heapify(heap)
    for rank in range(1, length + 1):
        while (fresh := -float(kinds[heap[0][1]] @ worth) if counts[heap[0][1]] else np.inf) > heap[0][0]:
            heapreplace(heap, (fresh, heap[0][1]))
        total -= heap[0][0] / np.log2(1 + rank)
        counts[heap[0][1]] -= 1
        worth *= np.where(kinds[heap[0][1]] > 0, 1 - alpha, 1.0)
    return total


@ranking_measure("relevance", known="intents")
def err_ia(
    rows: ScoredRows, *, k: int | None = None, max_grade: float | None = None, ties: NoMean = "pessimistic"
) -> Values:
    """Intent-aware expected reciprocal rank: the mean of `err` over the intents of a query (Chapelle et al. 2011).

    Intents have equal weights; those without a relevant row in the query are skipped.

    Parameters
    ----------
    y_true : array-like of shape (n, m) or (n,)
        Grade of each row for each intent, at least 0.
    k, max_grade
        As in `apexrank.metrics.err`.
    scores, ties, relevant, empty, pos_label, groups, sample_weight
        As in `alpha_ndcg`.

    Examples
    --------
    >>> intents = [[1, 0], [1, 0], [0, 1]]
    >>> round(err_ia(intents, [3, 2, 1]), 6), round(err_ia(intents, [3, 1, 2]), 6)
    (0.395833, 0.416667)
    """
    grades = rows.relevance[:, None] if rows.intents is None else rows.intents
    if grades.min() < 0:
        raise InputError("y_true has a negative grade: shift the grades so that 0 is worst")
    top = highest_grade(rows, max_grade)
    lists, table = _top_down("err_ia", rows, grades, ties)
    each = np.array([reciprocal_ranks(lists, exponential_gain(column, top), k) for column in table.T])
    served = np.array([lists.sums(column) > 0 for column in table.T])
    count = served.sum(axis=0).astype(np.float64)
    return Values(ratio((each * served).sum(axis=0), count), count > 0)


def _top_down(name: str, rows: ScoredRows, table: np.ndarray, ties: NoMean) -> tuple[GradedLists, np.ndarray]:
    """Return lists, and the table in their order; tied rows are sorted by sum, then by columns, deterministically."""
    check_no_mean(name, ties)
    lists = rows.lists
    table = table[lists.rows]
    if ties == "given" or len(lists.starts) == len(table):
        return lists, table
    sign = -1 if ties == "optimistic" else 1
    level = np.searchsorted(lists.starts, np.arange(len(table)), side="right")
    return lists, table[np.lexsort((*(sign * table.T), sign * table.sum(axis=1), level))]
