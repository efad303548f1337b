"""Sums over the positives of a discount of their rank (JMLR 2009, sec. 7), one sort each.

Parameters that are not explained here are those of `apexrank.metrics.auc`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.metrics._binary import Empty, Levels, Ties, check_binary, mean_over_groups, ratio, sort_levels


def ranks(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    ties: Ties = "pessimistic",
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    """Rank of each positive i: its reverse height + the number of positives at or above it, itself included.

    JMLR 2009, sec. 7; 1 is the top. Parameters as in `auc`; ``ties`` says how a tie with a negative counts,
    tied positives always share the worst of their ranks. One value per positive, in the order of the rows.
    ``np.sum(g(ranks(y_true, scores)))`` is the paper's R_{g,1}^Rank for any discount g.

    Examples
    --------
    >>> ranks([1, 0, 1, 1], [0.9, 0.8, 0.8, 0.1]).tolist()
    [1.0, 3.0, 4.0]
    """
    data = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    levels = sort_levels(data, ties)
    return _level_ranks(levels)[levels.of_row[data.positive]]


def _level_ranks(levels: Levels) -> np.ndarray:
    return levels.reverse_heights() + levels.above(levels.positive)[1]


def average_reciprocal_rank(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    normalize: bool = False,
    ties: Ties = "pessimistic",
    empty: Empty = "skip",
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """AveR = Σ_i 1 / rank_i over the positives (JMLR 2009, sec. 7): larger is better.

    The paper calls it an average but prints the sum; ``normalize=True`` divides by the number of positives.
    A group without negatives has a value here. Other parameters as in `auc`, the ranks as in `ranks`.

    Examples
    --------
    >>> average_reciprocal_rank([1, 0, 1, 0], [0.9, 0.7, 0.4, 0.1])
    1.3333333333333333
    >>> average_reciprocal_rank([1, 0, 1, 0], [0.9, 0.7, 0.4, 0.1], normalize=True)
    0.6666666666666666
    """
    data = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    levels = sort_levels(data, ties)
    total = _discounted(levels, np.reciprocal)
    value = ratio(total, levels.sums(levels.positive)) if normalize else total
    return mean_over_groups(levels, value, levels.has_positive(), empty)


def push_dcg(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    ties: Ties = "pessimistic",
    empty: Empty = "skip",
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """DCG of the push papers, Σ_i 1 / ln(1 + rank_i) over the positives (JMLR 2009, sec. 7).

    Natural logarithm, all positives, no cut-off; larger is better. Unlike the usual DCG, tied positives share
    the worst of their ranks. A group without negatives has a value here. Parameters as in `auc`.

    Examples
    --------
    >>> round(push_dcg([1, 0, 1, 0], [0.9, 0.7, 0.4, 0.1]), 6)
    2.164043
    """
    data = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    levels = sort_levels(data, ties)
    value = _discounted(levels, lambda rank: 1 / np.log1p(rank))
    return mean_over_groups(levels, value, levels.has_positive(), empty)


def _discounted(levels: Levels, discount: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Sum over the positives of each group of a function of their rank."""
    # A level without positives may have rank 0, where the discounts are infinite.
    rank = np.where(levels.positive > 0, _level_ranks(levels), 1.0)
    return levels.sums(levels.positive * discount(rank))
