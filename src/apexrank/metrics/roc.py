"""Measures of the list down to a cut: parts of the ROC curve, precision and recall of the first rows.

Parameters that are not explained here are those of `apexrank.metrics.auc`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics._levels import Empty, Levels, Values, ratio
from apexrank.metrics._rows import Rows, Ties, check_binary, check_number, judged_rows


def roc_points(
    y_true: ArrayLike,
    scores: ArrayLike,
    max_false_positives: float | None = None,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ROC curve in counts: false and true positives among the rows with ``score >= threshold``.

    Parameters
    ----------
    y_true, scores, pos_label, sample_weight
        As in `apexrank.metrics.auc`. The curve is that of one list, so there are no groups.
    max_false_positives : float, optional
        Only the points with at most so many false positives: the leftmost part of the curve, which the
        papers' figures zoom in on (JMLR 2009, fig. 5).

    Returns
    -------
    false_positives, true_positives, thresholds : ndarray
        From (0, 0) at threshold inf to the end, one point for each distinct score; weighted counts where
        there are weights.

    Examples
    --------
    >>> false, true, thresholds = roc_points([1, 0, 1, 1], [0.9, 0.8, 0.8, 0.1])
    >>> false.tolist(), true.tolist(), thresholds.tolist()
    ([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0], [inf, 0.9, 0.8, 0.1])
    """
    levels = check_binary(y_true, scores, pos_label=pos_label, sample_weight=sample_weight).levels()
    if not levels.has_both().all():
        raise InputError("an ROC curve needs a positive and a negative row of nonzero weight")
    false = np.concatenate([[0.0], np.cumsum(levels.negative)])
    true = np.concatenate([[0.0], np.cumsum(levels.positive)])
    limit = (
        np.inf
        if max_false_positives is None
        else check_number("max_false_positives", max_false_positives, 0, np.inf)
    )
    n = np.searchsorted(false, limit, side="right")
    return false[:n], true[:n], np.concatenate([[np.inf], levels.score])[:n]


def partial_auc(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    max_fpr: float = 0.1,
    min_tpr: float | None = None,
    ties: Ties = "average",
    empty: Empty = "skip",
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Area under the ROC curve left of ``max_fpr``, divided by the largest possible, ``max_fpr``.

    1 is perfect, ``max_fpr / 2`` is chance. scikit-learn's ``roc_auc_score(max_fpr=c)`` stretches the same
    area A linearly until chance is 1/2 (McClish 1989): ``(1 + (A - c²/2) / (c - c²/2)) / 2``.

    Parameters
    ----------
    y_true, scores, ties, empty, pos_label, groups, sample_weight
        As in `apexrank.metrics.auc`.
    max_fpr : float in (0, 1]
        Largest false positive rate; 1 gives the whole AUC.
    min_tpr : float in [0, 1), optional
        Take the area above this true positive rate instead, ∫ (1 - FPR) dTPR divided by ``1 - min_tpr``:
        how few negatives one meets on the way to the last positives. ``max_fpr`` is then not used.

    Examples
    --------
    >>> y, scores = [1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.1]
    >>> round(partial_auc(y, scores, max_fpr=0.5), 6)
    0.666667
    >>> round(partial_auc(y, scores, min_tpr=0.5), 6)
    0.666667
    """
    rows = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    values = partial_auc_values(rows, max_fpr=max_fpr, min_tpr=min_tpr, ties=ties)
    return values.mean(empty, rows.names)


def partial_auc_values(
    rows: Rows, *, max_fpr: float = 0.1, min_tpr: float | None = None, ties: Ties = "average"
) -> Values:
    if min_tpr is None:
        cut, flipped = check_number("max_fpr", max_fpr, 0, 1), rows
    else:
        # Turning the list upside down mirrors the curve and brings its upper part to the left.
        cut, flipped = 1 - check_number("min_tpr", min_tpr, 0, 1), rows.mirrored()
    if not cut > 0:
        raise InputError("the part of the ROC curve is empty: use max_fpr > 0 or min_tpr < 1")
    levels = flipped.levels(ties)
    return Values(_area_left_of(levels, cut), levels.has_both())


def _area_left_of(levels: Levels, cut: float) -> np.ndarray:
    """Area under each group's ROC curve left of ``cut``, as a share of the largest possible."""
    left, right = levels.above(levels.negative)
    limit = cut * levels.total_negative
    width = np.clip(levels.spread(limit), left, right) - left
    slope = ratio(levels.positive, right - left)
    area = levels.sums(width * (levels.positives_above[0] + slope * width / 2))
    return ratio(area, limit * levels.total_positive)


def tpr_at_fpr(
    y_true: ArrayLike,
    scores: ArrayLike,
    fpr: float,
    *,
    empty: Empty = "skip",
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Largest true positive rate of a threshold whose false positive rate is at most ``fpr``.

    Conservative: a threshold takes tied rows together, and there is no interpolation between thresholds, so
    the value can really be reached. Other parameters as in `apexrank.metrics.auc`.

    Examples
    --------
    >>> tpr_at_fpr([1, 0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6, 0.5], fpr=0.5)
    0.6666666666666666
    >>> tpr_at_fpr([1, 0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6, 0.5], fpr=0.49)
    0.3333333333333333
    """
    rows = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    return tpr_at_fpr_values(rows, fpr=fpr).mean(empty, rows.names)


def tpr_at_fpr_values(rows: Rows, *, fpr: float) -> Values:
    check_number("fpr", fpr, 0, 1)
    levels = rows.levels()
    last = levels.indptr[1:] - 1
    false, true = levels.above(levels.negative)[1], levels.positives_above[1]
    # Dividing, not multiplying fpr by K: 29 / 100 is the float 0.29, but 0.29 * 100 is less than 29.
    allowed = ratio(false, levels.spread(false[last])) <= fpr
    reached = np.maximum.reduceat(np.where(allowed, true, 0.0), levels.indptr[:-1])
    return Values(ratio(reached, true[last]), levels.has_both())


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
    rows = judged_rows(y_true, scores, pos_label, relevant, groups, sample_weight)
    return precision_at_values(rows, k=k, ties=ties).mean(empty, rows.names)


def precision_at_values(rows: Rows, *, k: float, ties: Ties = "average") -> Values:
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
    rows = judged_rows(y_true, scores, pos_label, relevant, groups, sample_weight)
    return recall_at_values(rows, k=k, ties=ties).mean(empty, rows.names)


def recall_at_values(rows: Rows, *, k: float, ties: Ties = "average") -> Values:
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
