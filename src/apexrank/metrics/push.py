"""Heights and the measures made of them: R_{p,1}, R_max, AUC (JMLR 2009, sec. 2), one sort each.

All of them share these parameters, explained in full in `auc`: ``y_true`` and ``scores``, the rule for
``ties``, the rule for ``empty`` groups, ``pos_label``, ``groups`` and ``sample_weight``.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from apexrank.errors import InputError
from apexrank.metrics._levels import Empty, Levels, Values, fill_empty, ratio
from apexrank.metrics._rows import Rows, Ties, check_binary, check_choice

Need = Literal["both", "positive"]


def heights(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    ties: Ties = "pessimistic",
    margin: float = 0.0,
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    """Height of each negative k: the number of positives at or below it, #{i : f_i - g_k <= margin}.

    The higher a negative stands, the more positives it has wrongly overtaken (JMLR 2009, sec. 2).

    Parameters
    ----------
    y_true, scores, ties, pos_label, groups, sample_weight
        As in `auc`. With groups only the positives of the negative's own group count.
    margin : float
        A positive counts as misranked unless it beats the negative by more than this (JMLR 2009, sec. 4).

    Returns
    -------
    ndarray
        One height per negative, in the order of the rows; weighted counts where there are weights.

    Examples
    --------
    >>> y = [0, 1, 0, 1, 0, 0, 1, 1]
    >>> heights(y, [1, 2, 3, 4, 5, 6, 7, 8]).tolist()
    [0.0, 1.0, 2.0, 2.0]
    """
    data = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    lifted = data.lifted(margin)
    return lifted.levels(ties).heights[lifted.level_of_rows(ties)[~data.positive]]


def reverse_heights(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    ties: Ties = "pessimistic",
    margin: float = 0.0,
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    """Reverse height of each positive i: the number of negatives at or above it, #{k : f_i - g_k <= margin}.

    JMLR 2009, sec. 7. Parameters as in `heights`; one value per positive, in the order of the rows.

    Examples
    --------
    >>> y = [0, 1, 0, 1, 0, 0, 1, 1]
    >>> reverse_heights(y, [1, 2, 3, 4, 5, 6, 7, 8]).tolist()
    [3.0, 2.0, 0.0, 0.0]
    """
    data = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    lifted = data.lifted(margin)
    return lifted.levels(ties).reverse_heights()[lifted.level_of_rows(ties)[data.positive]]


def auc(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    ties: Ties = "average",
    empty: Empty = "skip",
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Area under the ROC curve: 1 - R_{1,1} / (I K), the share of pairs ranked rightly (JMLR 2009, sec. 2).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels with two values of any type; the larger in sorted order is positive.
    scores : array-like of shape (n,)
        The ranking: larger scores stand nearer the top.
    ties : {"pessimistic", "average", "optimistic", "given"}
        A tie between a positive and a negative counts as a misrank, as half of one, or as none; "given" takes tied
        rows in the order they are given. The papers' own measures are pessimistic by default; "average" here gives
        scikit-learn's ``roc_auc_score``.
    empty : {"skip", "zero", "one", "raise"}
        What a group that lacks a class adds to the mean over the groups: nothing, 0, 1, or an error.
        `empty_groups` names those groups.
    pos_label : label, optional
        The label of the positives, if it is not the larger one.
    groups : array-like of shape (n,), optional
        One id per row, in any order. Each group is a list of its own, and the value is the mean over them.
    sample_weight : array-like of shape (n,), optional
        Weights mean repetitions: a row of weight 2 counts as that row twice, one of weight 0 is not there.

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
    rows = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    return auc_values(rows, ties=ties).mean(empty, rows.names)


def auc_values(rows: Rows, *, ties: Ties = "average") -> Values:
    levels = rows.levels(ties)
    misranked = levels.sums(levels.negative * levels.heights)
    pairs = levels.total_positive * levels.total_negative
    return Values(1.0 - ratio(misranked, pairs), levels.has_both())


def p_norm_risk(
    y_true: ArrayLike,
    scores: ArrayLike,
    p: float,
    *,
    ties: Ties = "pessimistic",
    margin: float = 0.0,
    normalize: bool = False,
    log: bool = False,
    empty: Empty = "skip",
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """R_{p,1} = Σ_k h_k^p, where h_k is the height of negative k (JMLR 2009, sec. 2): smaller is better.

    Parameters
    ----------
    y_true, scores, ties, empty, pos_label, groups, sample_weight
        As in `auc`. With weights u_i and v_k the sum is Σ_k v_k (Σ_i u_i 1[f_i - g_k <= margin])^p.
    p : float
        The larger p, the more the negatives at the top matter: p = 1 counts misranked pairs, and p = inf
        stands for the limit of R^{1/p}, which is `r_max`.
    margin : float
        As in `heights`.
    normalize : bool
        Return ((1/K) Σ_k (h_k / I)^p)^{1/p}, between 0 and 1 and comparable across p (JMLR 2009, sec. 4).
    log : bool
        Return the logarithm, finite where R itself is too large for a float and becomes inf.

    Returns
    -------
    float
        The risk or its logarithm; with groups the mean risk over the groups, or the logarithm of that mean.

    Examples
    --------
    The three lists of JMLR 2009, Table 1: a swap at the top costs much more than one at the bottom.

    >>> y = [0, 1, 0, 1, 0, 0, 1, 1]
    >>> p_norm_risk(y, [1, 2, 3, 4, 5, 6, 7, 8], p=4)
    33.0
    >>> p_norm_risk(y, [2, 1, 3, 4, 5, 6, 7, 8], p=4), p_norm_risk(y, [1, 2, 3, 4, 5, 7, 6, 8], p=4)
    (34.0, 98.0)
    >>> round(p_norm_risk(y, [1, 2, 3, 4, 5, 6, 7, 8], p=1024, log=True), 3)
    710.476
    """
    rows = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    if not log:
        values = p_norm_risk_values(rows, p=p, ties=ties, margin=margin, normalize=normalize)
        return values.mean(empty, rows.names)
    levels = rows.lifted(margin).levels(ties)
    base, power, factor = _risk_parts(levels, p, normalize)
    with np.errstate(divide="ignore"):
        logs = power * np.log(base) + np.log(factor)
    logs = fill_empty(logs, levels.has_both(), empty, rows.names, {"zero": -np.inf, "one": 0.0})
    return float(logsumexp(logs) - np.log(len(logs)))


def p_norm_risk_values(
    rows: Rows, *, p: float, ties: Ties = "pessimistic", margin: float = 0.0, normalize: bool = False
) -> Values:
    levels = rows.lifted(margin).levels(ties)
    base, power, factor = _risk_parts(levels, p, normalize)
    with np.errstate(over="ignore"):
        return Values(base**power * factor, levels.has_both())


def _risk_parts(levels: Levels, p: float, normalize: bool) -> tuple[np.ndarray, float, np.ndarray]:
    """Each group's risk as ``base ** power * factor``: only the largest height meets a large power."""
    if not p > 0:
        raise InputError(f"p must be a positive number or inf, got {p!r}")
    height = np.where(levels.negative > 0, levels.heights, 0.0)
    top = np.maximum.reduceat(height, levels.indptr[:-1])
    factor = levels.sums(levels.negative * ratio(height, levels.spread(top)) ** p)
    if normalize:
        share = ratio(factor, levels.total_negative)
        return ratio(top, levels.total_positive), 1.0, share ** (1 / p)
    if np.isinf(p):
        return top, 1.0, np.ones_like(top)
    return top, float(p), factor


def r_max(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    ties: Ties = "pessimistic",
    margin: float = 0.0,
    empty: Empty = "skip",
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """R_max = max_k h_k, the number of positives below the highest negative (JMLR 2009, sec. 2).

    Parameters as in `p_norm_risk`, whose limit for p → ∞ it is (of R^{1/p}).

    Examples
    --------
    >>> r_max([0, 1, 0, 1, 0, 0, 1, 1], [1, 2, 3, 4, 5, 6, 7, 8])
    2.0
    """
    rows = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    return p_norm_risk_values(rows, p=np.inf, ties=ties, margin=margin).mean(empty, rows.names)


def empty_groups(
    y_true: ArrayLike,
    groups: ArrayLike,
    *,
    need: Need = "both",
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    """Names of the groups for which a measure is not defined, the ones that ``empty`` is about.

    Parameters
    ----------
    y_true, groups, pos_label, sample_weight
        As in `auc`.
    need : {"both", "positive"}
        What the measure needs: rows of both classes, or positives only (precision, recall, sums over ranks).

    Examples
    --------
    >>> empty_groups([1, 0, 0, 1], ["a", "a", "b", "c"]).tolist()
    ['b', 'c']
    >>> empty_groups([1, 0, 0, 1], ["a", "a", "b", "c"], need="positive").tolist()
    ['b']
    """
    check_choice("need", need, Need)
    scores = np.zeros(np.shape(y_true))
    data = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    levels = data.levels()
    return data.names[~(levels.has_both() if need == "both" else levels.has_positive())]
