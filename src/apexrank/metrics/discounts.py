"""Sums over the positives of a discount of their rank (JMLR 2009, sec. 7), one sort each.

Parameters that are not explained here are those of `apexrank.metrics.auc`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics._levels import Empty, Levels, Values, ratio, spread_out
from apexrank.metrics._rows import Rows, Ties, check_binary, check_choice

Of = Literal["rank", "reverse_height"]


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
    `rank_sum` is the paper's R_{g,1}^Rank for any g.

    Examples
    --------
    >>> ranks([1, 0, 1, 1], [0.9, 0.8, 0.8, 0.1]).tolist()
    [1.0, 3.0, 4.0]
    """
    data = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    return _level_ranks(data.levels(ties))[data.level_of_rows(ties)[data.positive]]


def _level_ranks(levels: Levels) -> np.ndarray:
    return levels.reverse_heights() + levels.positives_above[1]


def rank_sum(
    y_true: ArrayLike,
    scores: ArrayLike,
    g: Callable[[np.ndarray], np.ndarray],
    *,
    of: Of = "rank",
    ties: Ties = "pessimistic",
    empty: Empty = "skip",
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Σ_i g(rank_i), or Σ_i g(reverse height_i), over the positives i for any function g (JMLR 2009, sec. 7).

    Parameters
    ----------
    y_true, scores, ties, empty, pos_label, groups, sample_weight
        As in `apexrank.metrics.auc`; a group without negatives has a value here.
    g : callable
        Takes an array of ranks (1 is the top) or reverse heights (0 is the best).
    of : {"rank", "reverse_height"}
        What g is a function of: `ranks` or `reverse_heights`.

    Examples
    --------
    >>> y, scores = [1, 0, 1, 0], [0.9, 0.7, 0.4, 0.1]
    >>> rank_sum(y, scores, np.log2), rank_sum(y, scores, np.square, of="reverse_height")
    (1.584962500721156, 1.0)
    """
    rows = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    return rank_sum_values(rows, g=g, of=of, ties=ties).mean(empty, rows.names)


def rank_sum_values(
    rows: Rows,
    *,
    g: Callable[[np.ndarray], np.ndarray],
    of: Of = "rank",
    ties: Ties = "pessimistic",
    normalize: bool = False,
    apart: bool = False,
) -> Values:
    """Values of the groups; ``apart`` gives the repetitions of a row ranks of their own instead of the worst one."""
    check_choice("of", of, Of)
    levels = rows.levels(ties)
    filled = np.flatnonzero(levels.positive > 0)
    if of == "rank" and (apart or ties == "given"):
        rows.check_repetitions()
        which, i, starts = spread_out(levels.positive[filled].astype(np.int64))
        place = (levels.reverse_heights() + levels.positives_above[0])[filled][which] + i + 1
        price = np.add.reduceat(_prices(g, place), starts)
    else:
        # A level without positives may have rank 0, where discounts are infinite.
        place = _level_ranks(levels) if of == "rank" else levels.reverse_heights()
        price = levels.positive[filled] * _prices(g, place[filled])
    total = np.zeros(len(levels.positive))
    total[filled] = price
    value = levels.sums(total)
    value = ratio(value, levels.total_positive) if normalize else value
    return Values(value, levels.has_positive())


def _prices(g: Callable[[np.ndarray], np.ndarray], place: np.ndarray) -> np.ndarray:
    price = np.asarray(g(place), dtype=np.float64)
    if price.shape != place.shape or np.isnan(price).any():
        raise InputError("g must give a number for each of an array of ranks")
    return price


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
    rows = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    values = rank_sum_values(rows, g=np.reciprocal, ties=ties, normalize=normalize)
    return values.mean(empty, rows.names)


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

    Natural logarithm, all positives, no cut-off; larger is better. Unlike the usual `dcg`, tied positives share
    the worst of their ranks. A group without negatives has a value here. Parameters as in `auc`.

    Examples
    --------
    >>> round(push_dcg([1, 0, 1, 0], [0.9, 0.7, 0.4, 0.1]), 6)
    2.164043
    """
    rows = check_binary(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)
    return rank_sum_values(rows, g=log_discount, ties=ties).mean(empty, rows.names)


def log_discount(rank: np.ndarray) -> np.ndarray:
    """1 / ln(1 + rank)."""
    return 1 / np.log1p(rank)
