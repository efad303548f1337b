"""Measures of graded relevance: DCG, NDCG and ERR, for any number of grades.

All of them share these parameters, documented in `ndcg`: ``y_true`` and ``scores``, the cut ``k``, the rule
for ``ties``, the rule for ``empty`` groups, ``groups`` and ``sample_weight``.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Literal, get_args

import numpy as np

from apexrank.errors import InputError
from apexrank.metrics._labels import ranking_measure
from apexrank.metrics._rows import GradedLists, ScoredRows, Ties, Values, ratio
from apexrank.validation import check_choice, check_finite

Gain = Literal["exponential", "linear"] | Callable[[np.ndarray], np.ndarray]
Discount = Literal["log2", "log", "reciprocal", "none"] | Callable[[np.ndarray], np.ndarray]
NoMean = Literal["pessimistic", "optimistic", "given"]

DISCOUNTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "log2": lambda rank: 1 / np.log2(1 + rank),
    "log": lambda rank: 1 / np.log1p(rank),
    "reciprocal": lambda rank: 1 / rank,
    "none": lambda rank: np.ones(len(rank)),
}


@ranking_measure("grades")
def ndcg(
    rows: ScoredRows,
    *,
    k: int | None = None,
    gain: Gain = "exponential",
    discount: Discount = "log2",
    ties: Ties = "average",
) -> Values:
    """Normalised discounted cumulative gain: `dcg` divided by that of the ideal order.

    The defaults give the NDCG of LETOR: gain 2^rel − 1, discount 1 / log2(1 + rank). ``gain="linear"`` gives
    scikit-learn's ``ndcg_score`` and trec_eval's ``ndcg``, which use the relevance itself as gain.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Relevance of each row: numbers of at least 0, on any scale and with any number of grades. Two labels of another
        kind, such as "bad" and "good", count as 0 and 1, the larger in sorted order as 1.
    scores : array-like of shape (n,)
        Ranking scores: rows with larger scores are nearer to the top. A score of -inf means that the row is not on the
        list: it has no rank, but it is part of the ideal order.
    k : int, optional
        Only the first k ranks count, both of the list and of the ideal order.
    gain : {"exponential", "linear"} or callable
        Gain of a grade: 2^rel − 1, rel, or a function of an array of grades. The exponential gain is divided by
        2^(highest grade) where it would overflow, so that grades in the thousands are supported.
    discount : {"log2", "log", "reciprocal", "none"} or callable
        1 / log2(1 + rank), 1 / ln(1 + rank), 1 / rank, 1, or a function of an array of ranks 1, 2, ....
    ties : {"pessimistic", "average", "optimistic", "given"}
        Order of tied rows: worst first, the expected value under random order (as in scikit-learn), best first, or the
        order in which the rows are given.
    empty : {"skip", "zero", "one", "raise"}
        Contribution of a group without a relevant row to the mean over the groups: skipped, 0, 1, or an error.
        trec_eval skips such queries or counts them as 0, LETOR's own scripts count them as 0.
    groups : array-like of shape (n,), optional
        One id per row, in any order. Each group is a separate list, and the value is the mean over them.
    sample_weight : array-like of shape (n,), optional
        Whole numbers of repetitions: a row of weight 2 counts twice, a row of weight 0 is ignored.

    Returns
    -------
    float
        Between 0 and 1; 1 is the ideal order.

    Examples
    --------
    >>> round(ndcg([2, 0, 1], [0.5, 0.9, 0.1]), 6)
    0.659002
    >>> round(ndcg([2, 0, 1], [0.5, 0.9, 0.1], k=1), 6)
    0.0
    """
    lists = rows.lists
    # NDCG is invariant to the scale of the gains: dividing them by 2^highest avoids overflow of 2^rel.
    best = _best_first(lists, gain)
    ideal = _discounted(lists, best, np.ones(len(best), bool), lists.highest, k, gain, discount)
    found = _list_dcg(lists, lists.highest, k, gain, discount, ties)
    return Values(ratio(found, ideal), ideal > 0)


def _best_first(lists: GradedLists, gain: Gain) -> np.ndarray:
    """Return the grades of every list in the order of largest DCG."""
    if not callable(gain):
        return lists.ideal
    gains = _gains(lists.relevance, gain, np.zeros(len(lists.relevance)))
    return lists.relevance[np.lexsort((-gains, lists.of_rows))]


@ranking_measure("grades")
def dcg(
    rows: ScoredRows,
    *,
    k: int | None = None,
    gain: Gain = "exponential",
    discount: Discount = "log2",
    ties: Ties = "average",
) -> Values:
    """Discounted cumulative gain Σ gain(rel) · discount(rank) (Järvelin and Kekäläinen 2002). Parameters as in `ndcg`.

    A group without a relevant row has the value 0 but is skipped in the mean, consistent with `ndcg`; set
    ``empty="zero"`` to include it.

    Examples
    --------
    >>> dcg([2, 0, 1], [0.9, 0.5, 0.1])
    3.5
    >>> dcg([2, 0, 1], [0.9, 0.5, 0.1], gain="linear", discount="reciprocal")
    2.3333333333333335
    """
    lists = rows.lists
    if gain == "exponential" and lists.highest.max(initial=0) > 1000:
        raise InputError("2 to the power of the highest relevance is too large: use `gain='linear'`, or ndcg")
    found = _list_dcg(lists, np.zeros(len(lists.sizes)), k, gain, discount, ties)
    return Values(found, lists.highest > 0)


def _list_dcg(
    lists: GradedLists, shift: np.ndarray, k: int | None, gain: Gain, discount: Discount, ties: Ties
) -> np.ndarray:
    check_choice("ties", ties, Ties)
    relevance = lists.relevance
    if ties in ("pessimistic", "optimistic"):
        relevance = lists.sorted_ties(best_first=ties == "optimistic")
    average = lists.mean_of_ties if ties == "average" else None
    return _discounted(lists, relevance, lists.listed, shift, k, gain, discount, average)


def _discounted(
    lists: GradedLists,
    relevance: np.ndarray,
    listed: np.ndarray,
    shift: np.ndarray,
    k: int | None,
    gain: Gain,
    discount: Discount,
    average: Callable[[np.ndarray], np.ndarray] | None = None,
) -> np.ndarray:
    """Sum gain · discount over the first k ranks of each list; exponential gains are divided by 2^shift."""
    gains = _gains(relevance, gain, shift[lists.of_rows])
    gains = gains if average is None else average(gains)
    counts = listed if k is None else listed & (lists.ranks <= check_cut(k))
    return lists.sums(gains * _discount_of(discount)(lists.ranks) * counts)


def _gains(relevance: np.ndarray, gain: Gain, shift: np.ndarray) -> np.ndarray:
    if callable(gain):
        gains = np.asarray(gain(relevance), dtype=np.float64)
        if gains.shape != relevance.shape or not (gains >= 0).all() or np.isinf(gains).any():
            raise InputError("`gain` must give one finite number of at least 0 for each grade")
        return gains
    if gain == "linear":
        return relevance
    if gain != "exponential":
        raise InputError(f"unknown `gain` {gain!r}: use exponential, linear or a function of the grades")
    return exponential_gain(relevance, shift)


def exponential_gain(relevance: np.ndarray, shift: np.ndarray | float) -> np.ndarray:
    """Compute (2^rel − 1) / 2^shift without overflow for large grades and without cancellation for small ones."""
    small = np.expm1(np.log(2) * np.minimum(relevance, 1)) * np.exp2(-shift)
    return np.where(relevance <= 1, small, np.exp2(relevance - shift) - np.exp2(-shift))


def _discount_of(discount: Discount) -> Callable[[np.ndarray], np.ndarray]:
    if callable(discount):
        return discount
    if not isinstance(discount, str) or discount not in DISCOUNTS:
        raise InputError(
            f"unknown `discount` {discount!r}: use {', '.join(DISCOUNTS)} or a function of the ranks"
        )
    return DISCOUNTS[discount]


@ranking_measure("grades")
def err(
    rows: ScoredRows, *, k: int | None = None, max_grade: float | None = None, ties: NoMean = "pessimistic"
) -> Values:
    """Expected reciprocal rank of the row that satisfies a reader who scans from the top (Chapelle et al. 2009).

    Σ_r (1/r) · R_r · Π_{i<r} (1 − R_i), where R = (2^rel − 1) / 2^max_grade is the probability that a row satisfies.

    Parameters
    ----------
    y_true, scores, k, empty, groups, sample_weight
        As in `ndcg`.
    max_grade : float, optional
        Highest possible grade; by default the highest in ``y_true``. Set it to compare samples.
    ties : {"pessimistic", "optimistic", "given"}
        As in `ndcg`. The expectation over random orders has no closed form; the first two are bounds on it.

    Examples
    --------
    >>> round(err([2, 0, 1], [0.9, 0.5, 0.1]), 6)
    0.770833
    """
    _check_no_mean(ties)
    lists, top = rows.lists, highest_grade(rows, max_grade)
    relevance = lists.relevance if ties == "given" else lists.sorted_ties(best_first=ties == "optimistic")
    return Values(reciprocal_ranks(lists, exponential_gain(relevance, top), k), lists.highest > 0)


def highest_grade(rows: ScoredRows, max_grade: float | None) -> float:
    """Return the highest possible grade, by default the highest of the rows."""
    # a bootstrap draw may lack the highest grade of the sample
    highest = (rows if rows.sample is None else rows.sample).lists.highest.max(initial=0.0)
    top = highest if max_grade is None else max_grade
    check_finite("max_grade", top, 0)
    if top < highest:
        raise InputError(f"`max_grade={max_grade}` is below the highest relevance {highest:g}: raise it")
    return float(top)


def reciprocal_ranks(lists: GradedLists, chance: np.ndarray, k: int | None) -> np.ndarray:
    """Expected 1/rank of the satisfying row, given the probability of each row from top to bottom to satisfy."""
    satisfied = chance * lists.listed
    with np.errstate(divide="ignore"):
        # a row that satisfies with certainty gives -inf: the reader stops there
        log_left = np.log1p(-satisfied)
    reached = np.exp(lists.before(log_left))
    counts = 1.0 if k is None else lists.ranks <= check_cut(k)
    return lists.sums(satisfied * reached / lists.ranks * counts)


def _check_no_mean(ties: str) -> None:
    """Raise InputError for an unsupported rule for ties; "average" has no closed form here."""
    if ties not in get_args(NoMean):
        raise InputError(
            f"ERR has no rule {ties!r} for ties, its expectation has no closed form: use one of "
            f"{', '.join(get_args(NoMean))}"
        )


def check_cut(k: int) -> int:
    """Raise InputError unless a cut is a number of rows."""
    if not isinstance(k, Real) or not (1 <= k < np.inf) or k != int(k):
        raise InputError(f"`k` must be a number of rows, 1, 2, ..., got {k!r}")
    return int(k)
