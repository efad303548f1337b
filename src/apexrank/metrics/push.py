"""Measures of the push papers, based on heights, reverse heights and ranks: R_{p,1}, R_max, AveR, DCG (JMLR 2009).

Parameters not documented here are those of `apexrank.metrics.auc`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from apexrank.errors import InputError
from apexrank.metrics._labels import ranking_measure, row_measure
from apexrank.metrics._rows import LogValues, ScoredRows, Ties, Values, ratio, spread_out
from apexrank.validation import check_choice

Of = Literal["rank", "reverse_height"]


@row_measure
def heights(rows: ScoredRows, *, ties: Ties = "pessimistic", margin: float = 0.0) -> np.ndarray:
    """Height of each negative k: the number of positives at or below it, #{i : f_i - g_k <= margin}.

    The height counts the positives that the negative wrongly outranks (JMLR 2009, sec. 2).

    Parameters
    ----------
    y_true, scores, ties, pos_label, groups, sample_weight
        As in `auc`. With groups, only positives of the same group count.
    margin : float
        A positive is misranked unless its score exceeds that of the negative by more than this (JMLR 2009, sec. 4).

    Returns
    -------
    ndarray
        One height per negative, in the order of the rows; weighted counts if there are weights.

    Examples
    --------
    >>> y = [0, 1, 0, 1, 0, 0, 1, 1]
    >>> heights(y, [1, 2, 3, 4, 5, 6, 7, 8]).tolist()
    [0.0, 1.0, 2.0, 2.0]
    """
    lifted = rows.lifted(margin)
    return lifted.levels(ties).heights[lifted.level_of_rows(ties)[~rows.positive]]


@row_measure
def reverse_heights(rows: ScoredRows, *, ties: Ties = "pessimistic", margin: float = 0.0) -> np.ndarray:
    """Reverse height of each positive i: the number of negatives at or above it, #{k : f_i - g_k <= margin}.

    JMLR 2009, sec. 7. Parameters as in `heights`; one value per positive, in the order of the rows.

    Examples
    --------
    >>> y = [0, 1, 0, 1, 0, 0, 1, 1]
    >>> reverse_heights(y, [1, 2, 3, 4, 5, 6, 7, 8]).tolist()
    [3.0, 2.0, 0.0, 0.0]
    """
    lifted = rows.lifted(margin)
    return lifted.levels(ties).reverse_heights[lifted.level_of_rows(ties)[rows.positive]]


@row_measure
def ranks(rows: ScoredRows, *, ties: Ties = "pessimistic") -> np.ndarray:
    """Rank of each positive i: its reverse height plus the number of positives at or above it, inclusive.

    JMLR 2009, sec. 7; 1 is the top. Parameters as in `auc`; ``ties`` is the rule for ties with negatives, whereas tied
    positives always share the worst of their ranks. One value per positive, in the order of the rows. `rank_sum` is the
    paper's R_{g,1}^Rank for any g.

    Examples
    --------
    >>> ranks([1, 0, 1, 1], [0.9, 0.8, 0.8, 0.1]).tolist()
    [1.0, 3.0, 4.0]
    """
    return rows.levels(ties).ranks[rows.level_of_rows(ties)[rows.positive]]


@ranking_measure("classes")
def p_norm_risk(
    rows: ScoredRows,
    p: float,
    *,
    ties: Ties = "pessimistic",
    margin: float = 0.0,
    normalize: bool = False,
    log: bool = False,
) -> Values:
    """P-norm risk R_{p,1} = Σ_k h_k^p, where h_k is the height of negative k (JMLR 2009, sec. 2); smaller is better.

    Parameters
    ----------
    y_true, scores, ties, empty, pos_label, groups, sample_weight
        As in `auc`. With weights u_i and v_k the sum is Σ_k v_k (Σ_i u_i 1[f_i - g_k <= margin])^p.
    p : float
        The larger p, the more weight the negatives at the top have: p = 1 counts misranked pairs, and p = inf is the
        limit of R^{1/p}, `r_max`.
    margin : float
        As in `heights`.
    normalize : bool
        Return ((1/K) Σ_k (h_k / I)^p)^{1/p}, between 0 and 1 and comparable across p (JMLR 2009, sec. 4).
    log : bool
        Return the logarithm, which is finite even if R itself overflows to inf.

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
    if not p > 0:
        raise InputError(f"`p` must be a positive number or inf, got {p!r}")
    levels = rows.lifted(margin).levels(ties)
    height = np.where(levels.negative > 0, levels.heights, 0.0)
    top = np.maximum.reduceat(height, levels.indptr[:-1])
    # Each group's risk is base ** power * factor: only the largest height is raised to a large power.
    factor = levels.sums(levels.negative * ratio(height, levels.spread(top)) ** p)
    base, power = top, float(p)
    if normalize:
        base, power = ratio(top, levels.total_positive), 1.0
        factor = ratio(factor, levels.total_negative) ** (1 / p)
    elif np.isinf(p):
        power, factor = 1.0, np.ones_like(top)
    if not log:
        with np.errstate(over="ignore"):
            return Values(base**power * factor, levels.has_both)
    with np.errstate(divide="ignore"):
        return LogValues(power * np.log(base) + np.log(factor), levels.has_both)


@ranking_measure("classes")
def r_max(rows: ScoredRows, *, ties: Ties = "pessimistic", margin: float = 0.0) -> Values:
    """Number of positives below the highest negative, R_max = max_k h_k (JMLR 2009, sec. 2).

    It is the limit of R^{1/p} of `p_norm_risk` for p → ∞, with the same parameters.

    Examples
    --------
    >>> r_max([0, 1, 0, 1, 0, 0, 1, 1], [1, 2, 3, 4, 5, 6, 7, 8])
    2.0
    """
    return p_norm_risk.formula(rows, p=np.inf, ties=ties, margin=margin)


@ranking_measure("classes")
def rank_sum(
    rows: ScoredRows,
    g: Callable[[np.ndarray], np.ndarray],
    *,
    of: Of = "rank",
    ties: Ties = "pessimistic",
) -> Values:
    """Sum of g(rank_i) or g(reverse height_i) over the positives i, for any function g (JMLR 2009, sec. 7).

    Parameters
    ----------
    y_true, scores, ties, empty, pos_label, groups, sample_weight
        As in `apexrank.metrics.auc`, but the value is also defined for a group without negatives.
    g : callable
        Function of an array of ranks (1 is the top) or reverse heights (0 is best).
    of : {"rank", "reverse_height"}
        Argument of g: `ranks` or `reverse_heights`.

    Examples
    --------
    >>> y, scores = [1, 0, 1, 0], [0.9, 0.7, 0.4, 0.1]
    >>> rank_sum(y, scores, np.log2), rank_sum(y, scores, np.square, of="reverse_height")
    (1.584962500721156, 1.0)
    """
    check_choice("of", of, Of)
    levels = rows.levels(ties)
    # Skip levels without positives, which may have rank 0, where discounts are infinite.
    filled = np.flatnonzero(levels.positive > 0)
    place = (levels.ranks if of == "rank" else levels.reverse_heights)[filled]
    sharing = levels.positive[filled]
    if of == "rank" and (ties == "given" or rows.sample is not None):
        # Rows in a given order, and copies of a row that is not tied in the original sample, take consecutive ranks.
        rows.repetitions()
        alone = ties == "given" or rows.sample is None or rows.sample.levels(ties).positive[filled] == 1
        sharing = np.where(alone, 1.0, sharing)
    level, i, starts = spread_out((levels.positive[filled] / sharing).astype(np.int64))
    price = np.asarray(g(place[level] - i), dtype=np.float64)
    if price.shape != level.shape or np.isnan(price).any():
        raise InputError("`g` must give a number for each of an array of ranks")
    total = np.zeros(len(levels.positive))
    total[filled] = np.add.reduceat(sharing[level] * price, starts)
    return Values(levels.sums(total), levels.total_positive > 0)


@ranking_measure("classes")
def average_reciprocal_rank(
    rows: ScoredRows, *, normalize: bool = False, ties: Ties = "pessimistic"
) -> Values:
    """Average reciprocal rank AveR = Σ_i 1 / rank_i over the positives (JMLR 2009, sec. 7); larger is better.

    The paper calls it an average but prints the sum; ``normalize=True`` divides by the number of positives. It is also
    defined for a group without negatives. Other parameters as in `auc`, ranks as in `ranks`.

    Examples
    --------
    >>> average_reciprocal_rank([1, 0, 1, 0], [0.9, 0.7, 0.4, 0.1])
    1.3333333333333333
    >>> average_reciprocal_rank([1, 0, 1, 0], [0.9, 0.7, 0.4, 0.1], normalize=True)
    0.6666666666666666
    """
    total, defined = rank_sum.formula(rows, np.reciprocal, ties=ties)
    return Values(ratio(total, rows.levels().total_positive) if normalize else total, defined)


@ranking_measure("classes")
def push_dcg(rows: ScoredRows, *, ties: Ties = "pessimistic") -> Values:
    """DCG of the push papers, Σ_i 1 / ln(1 + rank_i) over the positives (JMLR 2009, sec. 7).

    Natural logarithm, all positives, no cut-off; larger is better. Unlike in `dcg`, tied positives share the worst of
    their ranks. It is also defined for a group without negatives. Parameters as in `auc`.

    Examples
    --------
    >>> round(push_dcg([1, 0, 1, 0], [0.9, 0.7, 0.4, 0.1]), 6)
    2.164043
    """
    return rank_sum.formula(rows, lambda rank: 1 / np.log1p(rank), ties=ties)
