"""Precision and recall of the first rows, average precision, the reciprocal rank of the first positive.

Parameters that are not explained here are those of `precision_at` and of `apexrank.metrics.auc`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics._levels import Levels, Values, ratio, spread_out
from apexrank.metrics._rows import Empty, ScoredRows, Ties, check_rows
from apexrank.metrics.discounted_gain import check_cut
from apexrank.validation import check_choice

ThresholdTies = Literal["pessimistic", "average", "optimistic", "given", "threshold"]


def precision_at(
    y_true: ArrayLike,
    scores: ArrayLike,
    k: float,
    *,
    relevant: float | None = None,
    ties: Ties = "average",
    empty: Empty = "skip",
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of positives among the first ``k`` rows.

    Parameters
    ----------
    y_true, scores, empty, pos_label, groups, sample_weight
        As in `apexrank.metrics.auc`, except that a group needs no negatives and that labels may be grades: more
        than two numbers are positive when above 0. A score of -inf means that a row is not on the list.
    k : int, or float in (0, 1)
        Number of rows, or the fraction of the (group's) rows; a fraction need not come to whole rows. A list
        shorter than ``k`` is filled up with negatives, as trec_eval does.
    relevant : float, optional
        The grade from which on a row counts as positive.
    ties : {"pessimistic", "average", "optimistic", "given"}
        Rows tied at the cut: negatives first, the expected value under random order, positives first, or the order
        of the rows.

    Examples
    --------
    >>> precision_at([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5], k=3)
    0.6666666666666666
    >>> precision_at([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5], k=0.4)
    1.0
    >>> precision_at([2, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5], k=2, relevant=2)
    0.5
    """
    rows = check_rows(y_true, scores, pos_label, groups, sample_weight, relevant, graded=True)
    return rows.mean(precision_at_values(rows, k=k, ties=ties), empty)


def precision_at_values(rows: ScoredRows, *, k: float, ties: Ties = "average") -> Values:
    levels = rows.levels(ties)
    taken = _cut_rows(levels, k)
    return Values(ratio(_hits(levels, taken), taken), levels.has_positive())


def recall_at(
    y_true: ArrayLike,
    scores: ArrayLike,
    k: float,
    *,
    relevant: float | None = None,
    ties: Ties = "average",
    empty: Empty = "skip",
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Share of all positives that stand among the first ``k`` rows. Parameters as in `precision_at`.

    Examples
    --------
    >>> recall_at([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5], k=3)
    0.6666666666666666
    """
    rows = check_rows(y_true, scores, pos_label, groups, sample_weight, relevant, graded=True)
    return rows.mean(recall_at_values(rows, k=k, ties=ties), empty)


def recall_at_values(rows: ScoredRows, *, k: float, ties: Ties = "average") -> Values:
    levels = rows.levels(ties)
    found = _hits(levels, _cut_rows(levels, k))
    return Values(ratio(found, levels.total_positive), levels.has_positive())


def _cut_rows(levels: Levels, k: float) -> np.ndarray:
    """Number of rows before the cut in each group."""
    if not (0 < k < 1 or (k >= 1 and k == np.floor(k) and np.isfinite(k))):
        raise InputError(f"k must be a number of rows (1, 2, ...) or a fraction between 0 and 1, got {k!r}")
    if k >= 1:
        return np.full(len(levels.indptr) - 1, float(k))
    return k * levels.sums((levels.positive + levels.negative) * levels.listed())


def _hits(levels: Levels, rows: np.ndarray) -> np.ndarray:
    """Positives among the first ``rows`` rows of each group; a level that is cut gives its share."""
    before, through = levels.rows_above
    end = len(before)
    if len(rows) == 1:  # of one long list only the levels down to the cut matter
        end = min(end, int(np.searchsorted(through, rows[0])) + 1)
    before, through, listed = before[:end], through[:end], levels.listed()[:end]
    limit = rows[0] if len(rows) == 1 else levels.spread(rows)
    taken = np.clip(limit, before, through) - before
    found = levels.positive[:end] * ratio(taken, through - before) * listed
    return np.add.reduceat(found, levels.indptr[:-1])


def average_precision(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    k: int | None = None,
    relevant: float | None = None,
    ties: ThresholdTies = "average",
    empty: Empty = "skip",
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean over all positives of the precision at their rank; with groups the mean over these, MAP.

    Parameters
    ----------
    y_true, scores, relevant, empty, pos_label, groups, sample_weight
        As in `apexrank.metrics.precision_at`.
    k : int, optional
        Positives below rank k add nothing; the sum is still divided by the number of all positives, as trec_eval's
        ``map_cut`` does.
    ties : {"pessimistic", "average", "optimistic", "given", "threshold"}
        As in `apexrank.metrics.precision_at`; "average" is the expected value under random order (McSherry and
        Najork 2008). "threshold" takes tied rows as one step, all or none of them, as scikit-learn's
        ``average_precision_score`` does; weights need not be whole numbers then.

    Examples
    --------
    >>> round(average_precision([1, 0, 1, 0], [0.9, 0.7, 0.4, 0.1]), 6)
    0.833333
    >>> round(average_precision([1, 0, 1, 0], [0.9, 0.7, 0.4, 0.1], k=2), 6)
    0.5
    """
    rows = check_rows(y_true, scores, pos_label, groups, sample_weight, relevant, graded=True)
    return rows.mean(average_precision_values(rows, k=k, ties=ties), empty)


def average_precision_values(
    rows: ScoredRows, *, k: int | None = None, ties: ThresholdTies = "average"
) -> Values:
    check_choice("ties", ties, ThresholdTies)
    if ties != "threshold":
        rows.check_repetitions("or use ties='threshold'")
    levels = rows.levels("average" if ties == "threshold" else ties)
    cut = np.inf if k is None else check_cut(k)
    if ties == "threshold":
        true, seen = levels.positives_above[1], levels.rows_above[1]
        sums = levels.positive * ratio(true, seen) * (seen <= cut)
    else:
        sums = _precision_sums(levels, cut)
    total = levels.sums(sums * levels.listed())
    return Values(ratio(total, levels.total_positive), levels.has_positive())


def _precision_sums(levels: Levels, cut: float) -> np.ndarray:
    """Expected sum of the precisions at the positives of each level, its rows in random order.

    With n rows and r positives above, and m positives among its c rows, position j of the level holds a positive with
    probability m/c, above which stand in the mean r + (j − 1)(m − 1)/(c − 1) others.
    """
    m, c = levels.positive, levels.positive + levels.negative
    n, r = levels.above(c)[0], levels.above(m)[0]
    sums = m * ratio(r + 1, n + 1) * (n < cut)
    several = np.flatnonzero((c > 1) & (m > 0))
    which, i, starts = spread_out(c[several].astype(np.int64))
    level, j = several[which], i + 1
    above = r[level] + (j - 1) * (m[level] - 1) / (c[level] - 1)
    terms = m[level] / c[level] * (above + 1) / (n[level] + j) * (n[level] + j <= cut)
    sums[several] = np.add.reduceat(terms, starts)
    return sums


def mrr(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    k: int | None = None,
    relevant: float | None = None,
    ties: Ties = "average",
    empty: Empty = "skip",
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Reciprocal of the rank of the first positive; with groups the mean over these, MRR.

    Parameters as in `average_precision`, except ``ties``, which has no "threshold"; a first positive below rank
    ``k`` counts 0.

    Examples
    --------
    >>> mrr([0, 0, 1, 1], [0.9, 0.7, 0.4, 0.1])
    0.3333333333333333
    >>> mrr([0, 1], [0.5, 0.5])  # first or second with the same chance
    0.75
    """
    rows = check_rows(y_true, scores, pos_label, groups, sample_weight, relevant, graded=True)
    return rows.mean(mrr_values(rows, k=k, ties=ties), empty)


def mrr_values(rows: ScoredRows, *, k: int | None = None, ties: Ties = "average") -> Values:
    rows.check_repetitions()
    levels = rows.levels(ties)
    cut = np.inf if k is None else check_cut(k)
    m, c = levels.positive, levels.positive + levels.negative
    first = np.flatnonzero((m > 0) & (levels.above(m)[0] == 0) & levels.listed())
    value = np.zeros(len(levels.indptr) - 1)
    group = np.searchsorted(levels.indptr, first, side="right") - 1
    value[group] = _first_positive(levels.above(c)[0][first], c[first], m[first], cut)
    return Values(value, levels.has_positive())


def _first_positive(n: np.ndarray, c: np.ndarray, m: np.ndarray, cut: float) -> np.ndarray:
    """Expected 1/rank of the first of m positives among c rows in random order below n others.

    The chance that none of the first j − 1 rows is positive and the next one is:
    Π_{i<j} (c − m − i + 1)/(c − i + 1) · m/(c − j + 1).
    """
    level, i, starts = spread_out((c - m).astype(np.int64) + 1)  # i rows before the first positive
    with np.errstate(divide="ignore"):
        log_miss = np.where(i > 0, np.log((c - m)[level] - i + 1) - np.log(c[level] - i + 1), 0.0)
    total = np.cumsum(log_miss)
    missed = np.exp(total - total[starts][level])
    rank = n[level] + i + 1
    return np.add.reduceat(missed * m[level] / (c[level] - i) / rank * (rank <= cut), starts)


def winner_takes_all(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    relevant: float | None = None,
    ties: Ties = "average",
    empty: Empty = "skip",
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """1 if the first row is positive, else 0; with groups the share of lists whose first row is.

    One minus the "winner take all" loss of JMLR 2009, sec. 2, 1[max_i f_i <= max_k g_k], when
    ``ties="pessimistic"``. Parameters as in `apexrank.metrics.precision_at`.

    Examples
    --------
    >>> winner_takes_all([1, 0, 0, 1], [0.9, 0.2, 0.7, 0.4], groups=["a", "a", "b", "b"])
    0.5
    """
    rows = check_rows(y_true, scores, pos_label, groups, sample_weight, relevant, graded=True)
    return rows.mean(precision_at_values(rows, k=1, ties=ties), empty)
