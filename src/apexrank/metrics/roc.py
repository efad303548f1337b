"""ROC curves and their areas: AUC, partial AUC, and true positive rate at a false positive rate.

The parameters that all measures share, ``y_true``, ``scores``, ``ties``, ``empty``, ``pos_label``, ``groups`` and
``sample_weight``, are documented in `auc`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics._labels import check_rows, ranking_measure
from apexrank.metrics._rows import ScoredRows, Ties, Values, ratio
from apexrank.validation import check_between


@ranking_measure("classes")
def auc(rows: ScoredRows, *, ties: Ties = "average") -> Values:
    """Area under the ROC curve 1 - R_{1,1} / (I K), the share of correctly ranked pairs (JMLR 2009, sec. 2).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels with two values of any type; the larger in sorted order is positive.
    scores : array-like of shape (n,)
        Ranking scores: rows with larger scores are nearer to the top.
    ties : {"pessimistic", "average", "optimistic", "given"}
        A tie between a positive and a negative counts as a misrank, as half of one, or as none; "given" orders tied
        rows as they are given. The papers' own measures are pessimistic by default; "average" here equals
        scikit-learn's ``roc_auc_score``.
    empty : {"skip", "zero", "one", "raise"}
        Contribution of a group that lacks a class to the mean over the groups: skipped, 0, 1, or an error.
        `empty_groups` returns those groups.
    pos_label : label, optional
        Label of the positives, if it is not the larger one.
    groups : array-like of shape (n,), optional
        One id per row, in any order. Each group is a separate list, and the value is the mean over them.
    sample_weight : array-like of shape (n,), optional
        Weights act as repetitions: a row of weight 2 counts twice, a row of weight 0 is ignored.

    Returns
    -------
    float
        1 is perfect, 0.5 is chance.

    Examples
    --------
    >>> auc(["bad", "good", "bad", "good"], [0.1, 0.4, 0.35, 0.8])
    1.0
    >>> auc([0, 1, 0, 1], [0.5, 0.5, 0.1, 0.8], ties="pessimistic")
    0.75
    """
    levels = rows.levels(ties)
    misranked = levels.sums(levels.negative * levels.heights)
    pairs = levels.total_positive * levels.total_negative
    return Values(1.0 - ratio(misranked, pairs), levels.has_both)


@ranking_measure("classes")
def partial_auc(
    rows: ScoredRows, *, max_fpr: float = 0.1, min_tpr: float | None = None, ties: Ties = "average"
) -> Values:
    """Partial AUC (pAUC): area under the ROC curve left of ``max_fpr``, divided by its maximum ``max_fpr``.

    1 is perfect, ``max_fpr / 2`` is chance. scikit-learn's ``roc_auc_score(max_fpr=c)`` rescales the same area A
    linearly so that chance is 1/2 (McClish 1989): ``(1 + (A - c²/2) / (c - c²/2)) / 2``.

    Parameters
    ----------
    y_true, scores, ties, empty, pos_label, groups, sample_weight
        As in `apexrank.metrics.auc`.
    max_fpr : float in (0, 1]
        Largest false positive rate; 1 gives the whole AUC.
    min_tpr : float in [0, 1), optional
        Use the area above this true positive rate instead, ∫ (1 - FPR) dTPR divided by ``1 - min_tpr``, which is large
        if few negatives precede the last positives. ``max_fpr`` is then not used.

    Examples
    --------
    >>> y, scores = [1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.1]
    >>> round(partial_auc(y, scores, max_fpr=0.5), 6)
    0.666667
    >>> round(partial_auc(y, scores, min_tpr=0.5), 6)
    0.666667
    """
    if min_tpr is None:
        check_between("max_fpr", max_fpr, 0, 1)
        cut, flipped = float(max_fpr), rows
    else:
        check_between("min_tpr", min_tpr, 0, 1)
        # Reversing the list mirrors the curve and moves its upper part to the left.
        cut, flipped = 1 - float(min_tpr), rows.mirrored()
    if not cut > 0:
        raise InputError("the part of the ROC curve is empty: use `max_fpr` > 0 or `min_tpr` < 1")
    levels = flipped.levels(ties)
    left, right = levels.above(levels.negative)
    limit = cut * levels.total_negative
    width = np.clip(levels.spread(limit), left, right) - left
    slope = ratio(levels.positive, right - left)
    area = levels.sums(width * (levels.positives_above[0] + slope * width / 2))
    return Values(ratio(area, limit * levels.total_positive), levels.has_both)


@ranking_measure("classes")
def tpr_at_fpr(rows: ScoredRows, fpr: float) -> Values:
    """Largest true positive rate of a threshold whose false positive rate is at most ``fpr``.

    It is conservative: a threshold includes all tied rows, and there is no interpolation between thresholds, so that
    the value is attainable. Other parameters as in `apexrank.metrics.auc`.

    Examples
    --------
    >>> tpr_at_fpr([1, 0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6, 0.5], fpr=0.5)
    0.6666666666666666
    >>> tpr_at_fpr([1, 0, 1, 0, 1], [0.9, 0.8, 0.7, 0.6, 0.5], fpr=0.49)
    0.3333333333333333
    """
    check_between("fpr", fpr, 0, 1)
    levels = rows.levels()
    last = levels.indptr[1:] - 1
    false, true = levels.above(levels.negative)[1], levels.positives_above[1]
    # Divide instead of multiplying fpr by K: 29 / 100 is the float 0.29, but 0.29 * 100 is less than 29.
    allowed = ratio(false, levels.spread(false[last])) <= fpr
    reached = np.maximum.reduceat(np.where(allowed, true, 0.0), levels.indptr[:-1])
    return Values(ratio(reached, true[last]), levels.has_both)


def roc_points(
    y_true: ArrayLike,
    scores: ArrayLike,
    max_false_positives: float | None = None,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ROC curve as counts of false and true positives among the rows with ``score >= threshold``.

    Parameters
    ----------
    y_true, scores, pos_label, sample_weight
        As in `apexrank.metrics.auc`. The curve is for one list, without groups.
    max_false_positives : float, optional
        Keep only the points with at most this many false positives: the leftmost part of the curve, which the papers'
        figures show (JMLR 2009, fig. 5).

    Returns
    -------
    false_positives, true_positives, thresholds : ndarray
        From (0, 0) at threshold inf to the end, one point for each distinct score; weighted counts if there are
        weights.

    Examples
    --------
    >>> false, true, thresholds = roc_points([1, 0, 1, 1], [0.9, 0.8, 0.8, 0.1])
    >>> false.tolist(), true.tolist(), thresholds.tolist()
    ([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 2.0, 3.0], [inf, 0.9, 0.8, 0.1])
    """
    levels = check_rows(y_true, scores, pos_label, sample_weight=sample_weight).levels()
    if not levels.has_both.all():
        raise InputError("an ROC curve needs a positive and a negative row of nonzero weight")
    there = levels.positive + levels.negative > 0
    false = np.concatenate([[0.0], np.cumsum(levels.negative[there])])
    true = np.concatenate([[0.0], np.cumsum(levels.positive[there])])
    thresholds = np.concatenate([[np.inf], levels.score[there]])
    limit = np.inf if max_false_positives is None else max_false_positives
    check_between("max_false_positives", limit, 0, np.inf)
    n = np.searchsorted(false, limit, side="right")
    return false[:n], true[:n], thresholds[:n]
