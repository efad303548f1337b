"""How far apart two rankings of the same items are: Kendall's τ and Spearman's distances, O(n log n) each.

The two lists are passed by the one keyword that says what they hold; for three items a, b, c, best first b, a, c:

- ``scores=(first, second)``: one number per item, larger is better: ``[0.5, 0.9, 0.1]``;
- ``rankings=(first, second)``: the rank of each item, 1 is best: ``[2, 1, 3]``. Any numbers will do of which the
  smaller is better, so that equal ones are ties;
- ``orders=(first, second)``: the item at each rank, best first: ``["b", "a", "c"]``. Items are any hashable labels;
  both lists hold the same items, each once. Inside a list a tuple is one item.

A list is one-dimensional, or a table of m lists of n items; a single list is compared with each row of a table. The
result is a float for two single lists, and otherwise an array of one value per row. Lists of fewer than two items
have no pairs: their distances are 0 and their τ is nan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.kernels.inversions import count_pairs, sum_inversions
from apexrank.metrics._rows import check_choice
from apexrank.metrics._two_lists import Comparison, Lists, item_weights, read_lists
from apexrank.validation import check_between

Variant = Literal["a", "b"]
Combine = Literal["product", "sum"]
Weights = ArrayLike | Mapping[Any, float] | Callable[[np.ndarray], ArrayLike]


class KendallCounts(NamedTuple):
    """The n(n − 1)/2 pairs of items by what two lists say of them: five numbers, or five arrays for many lists.

    Examples
    --------
    >>> counts = kendall_counts(scores=([3, 2, 1, 0], [3, 2, 1, 1]))
    >>> counts.n_pairs, counts.tied_second, round(counts.tau_b, 3)
    (6, 1, 0.913)
    """

    concordant: int | np.ndarray
    discordant: int | np.ndarray
    tied_first: int | np.ndarray  # in the first list only
    tied_second: int | np.ndarray  # in the second list only
    tied_both: int | np.ndarray
    n_items: int

    @property
    def n_pairs(self) -> int:
        """Number of all pairs."""
        return self.n_items * (self.n_items - 1) // 2

    @property
    def tau_a(self) -> float | np.ndarray:
        """``(C − D) / (n(n − 1)/2)``; nan for fewer than two items."""
        return _quotient(self.concordant - self.discordant, self.n_pairs)

    @property
    def tau_b(self) -> float | np.ndarray:
        """``(C − D) / √((pairs untied in the first)·(pairs untied in the second))``; nan if a list is all tied."""
        untied = self.concordant + self.discordant
        # floats, because the product of two numbers of pairs leaves int64 at 80 thousand items
        return _quotient(
            self.concordant - self.discordant,
            np.sqrt(np.multiply(untied + self.tied_first, untied + self.tied_second, dtype=np.float64)),
        )


def kendall_counts(*, scores: Lists = None, rankings: Lists = None, orders: Lists = None) -> KendallCounts:
    """Count the pairs of items on which two lists agree, disagree, or have a tie.

    Parameters
    ----------
    scores, rankings, orders : pair of lists or of tables of lists
        Exactly one of them: the two lists to compare, and what they hold.
        ``scores``: one number per item, larger is better. ``rankings``: the rank of each item, 1 is best.
        ``orders``: the item at each rank, best first.

    Returns
    -------
    KendallCounts
        ``concordant``, ``discordant``, ``tied_first`` and ``tied_second`` (in that list only), ``tied_both``,
        ``n_items``, and from these ``tau_a`` and ``tau_b``.

    Examples
    --------
    >>> counts = kendall_counts(rankings=([1, 2, 3, 4], [2, 1, 3, 3]))
    >>> counts
    KendallCounts(concordant=4, discordant=1, tied_first=0, tied_second=1, tied_both=0, n_items=4)
    >>> counts.tau_a
    0.5
    """
    return _counts(read_lists(scores, rankings, orders))


def kendall_tau(
    *, scores: Lists = None, rankings: Lists = None, orders: Lists = None, variant: Variant = "b"
) -> float | np.ndarray:
    """Kendall's rank correlation τ: 1 for the same order, −1 for the opposite one (Kendall 1945).

    ``τ_a = (C − D) / (n(n − 1)/2)`` with C concordant and D discordant pairs; ``τ_b`` divides by the geometric mean
    of the numbers of pairs that are not tied in each list. Without ties they are the same.

    Parameters
    ----------
    scores, rankings, orders
        As in `kendall_counts`.
    variant : {"a", "b"}
        "b" gives ``scipy.stats.kendalltau``; it is nan where a list is all tied, as there is no order to compare.

    Examples
    --------
    >>> kendall_tau(orders=("abcd", "badc"))
    0.3333333333333333
    """
    check_choice("variant", variant, Variant)
    counts = _counts(read_lists(scores, rankings, orders))
    return counts.tau_a if variant == "a" else counts.tau_b


def kendall_distance(
    *,
    scores: Lists = None,
    rankings: Lists = None,
    orders: Lists = None,
    normalize: bool = False,
    tie_penalty: float = 0.0,
) -> float | np.ndarray:
    """Kendall τ distance: the number of pairs that two lists put in opposite order.

    ``d_T(σ, π) = Σ_{i<j} I(σ⁻¹π(i) > σ⁻¹π(j))``, the swaps of neighbours that turn one order into the other
    (Iyer and Bilmes 2013, eq. 1). With ties ``K^(p)`` of Fagin et al. (2006): a pair tied in exactly one list adds
    the ``tie_penalty`` p, and a pair tied in both adds nothing.

    Parameters
    ----------
    scores, rankings, orders
        As in `kendall_counts`.
    normalize : bool
        Divide by the number of pairs, n(n − 1)/2, so that opposite orders are at distance 1.
    tie_penalty : float from 0 to 1
        From 1/2 on the distance is a metric on lists with ties; at 0 different lists may be at distance 0.

    Examples
    --------
    >>> kendall_distance(orders=(["x", "y", "z"], ["z", "x", "y"]))
    2.0
    >>> kendall_distance(rankings=([1, 2, 3], [[1, 2, 3], [3, 2, 1], [1, 1, 1]]), tie_penalty=0.5).tolist()
    [0.0, 3.0, 1.5]
    """
    check_between("tie_penalty", tie_penalty, 0, 1)
    lists = read_lists(scores, rankings, orders)
    counts = _counts(lists)
    distance = counts.discordant + tie_penalty * np.add(counts.tied_first, counts.tied_second)
    return lists.result(np.atleast_1d(distance), counts.n_pairs if normalize else None)


def weighted_kendall_distance(
    *,
    scores: Lists = None,
    rankings: Lists = None,
    orders: Lists = None,
    weights: Weights,
    combine: Combine = "product",
    normalize: bool = False,
) -> float | np.ndarray:
    """Weighted Kendall τ distance: the sum over the pairs in opposite order of ``w_i·w_j`` or ``w_i + w_j``.

    A pair that is tied in either list adds nothing. Without ties ``1 − 2·distance``, normalised, is the weighted τ
    of Vigna (2015), ``scipy.stats.weightedtau``.

    Parameters
    ----------
    scores, rankings, orders
        As in `kendall_counts`.
    weights : array-like of shape (n,) or (m, n), mapping, or function
        With scores or rankings: one weight per item. With orders: a mapping from item to weight. With any of them:
        a function of the rank in the *first* list, called with an array of ranks (1 is best, ties have their mean
        rank), e.g. ``lambda rank: 1 / rank``; the distance is then not symmetric. Weights are finite and at least 0.
    combine : {"product", "sum"}
        Whether a pair weighs ``w_i·w_j`` or ``w_i + w_j``.
    normalize : bool
        Divide by the same sum over all pairs; 0 where that is 0.

    Examples
    --------
    >>> weighted_kendall_distance(orders=("abc", "bac"), weights={"a": 3, "b": 2, "c": 1})
    6.0
    >>> weighted_kendall_distance(scores=([3, 2, 1], [2, 3, 1]), weights=lambda rank: 1 / rank, combine="sum")
    1.5
    """
    check_choice("combine", combine, Combine)
    lists = read_lists(scores, rankings, orders)
    w = item_weights(weights, lists)
    if normalize:  # the quotient does not see the unit, but products of tiny or huge weights would
        w = np.divide(w, w.max(initial=0.0), out=np.zeros_like(w), where=w > 0)
    distance = sum_inversions(lists.first, lists.second, w, additive=combine == "sum")
    if not normalize:
        return lists.result(distance)
    if combine == "sum":
        largest = (w.shape[1] - 1) * w.sum(axis=1)
    else:
        largest = (w[:, 1:] * np.cumsum(w, axis=1)[:, :-1]).sum(axis=1)
    # rounding of two sums taken in different orders may put opposite lists past 1
    return lists.result(np.minimum(distance, largest), largest)


def spearman_footrule(
    *, scores: Lists = None, rankings: Lists = None, orders: Lists = None, normalize: bool = False
) -> float | np.ndarray:
    """Spearman's footrule: ``d_S(σ, π) = Σ_i |σ⁻¹(i) − π⁻¹(i)|``, the ranks that the items move by in all.

    Iyer and Bilmes (2013, eq. 2), Diaconis and Graham (1977). Ties have their mean rank; rankings given as other
    numbers than ranks are turned into ranks first.

    Parameters
    ----------
    scores, rankings, orders
        As in `kendall_counts`.
    normalize : bool
        Divide by the largest value, ``⌊n²/2⌋``, so that opposite orders are at distance 1. To divide by ``n²``
        instead, as Acharyya (2013, sec. 6.4) does, take the plain sum; such values end at 1/2.

    Examples
    --------
    >>> spearman_footrule(orders=("abcd", "dbca"))
    6.0
    >>> spearman_footrule(orders=("abcd", "dcba"), normalize=True)
    1.0
    """
    lists = read_lists(scores, rankings, orders)
    n = lists.n_items
    return lists.result(np.abs(lists.rank_differences()).sum(axis=1), n * n // 2 if normalize else None)


def spearman_distance(
    *, scores: Lists = None, rankings: Lists = None, orders: Lists = None, normalize: bool = False
) -> float | np.ndarray:
    """Spearman's rank distance: the sum of squares ``d_R(σ, π) = Σ_i (σ⁻¹(i) − π⁻¹(i))²``, without a root.

    Iyer and Bilmes (2013, eq. 3), who call it rank correlation: without ties Spearman's ρ is ``1 − 2·d_R`` of the
    normalised distance. Ties have their mean rank.

    Parameters
    ----------
    scores, rankings, orders
        As in `kendall_counts`.
    normalize : bool
        Divide by the largest value, ``n(n² − 1)/3``, so that opposite orders are at distance 1.

    Examples
    --------
    >>> spearman_distance(rankings=([1, 2, 3], [2, 3, 1]))
    6.0
    >>> spearman_distance(rankings=([1, 2, 3], [2, 3, 1]), normalize=True)
    0.75
    """
    lists = read_lists(scores, rankings, orders)
    n = lists.n_items
    return lists.result(
        (lists.rank_differences() ** 2).sum(axis=1), n * (n * n - 1) / 3 if normalize else None
    )


def _quotient(numerator: Any, denominator: Any) -> float | np.ndarray:
    with np.errstate(invalid="ignore"):  # 0/0 is nan: nothing to compare
        value = np.divide(numerator, denominator)
    return value if np.ndim(value) else float(value)


def _counts(lists: Comparison) -> KendallCounts:
    n = lists.n_items
    discordant, in_first, in_second, both = count_pairs(lists.first, lists.second)
    concordant = n * (n - 1) // 2 - discordant - in_first - in_second + both
    counts = concordant, discordant, in_first - both, in_second - both, both
    if lists.single:
        return KendallCounts._make([*(int(count[0]) for count in counts), n])
    return KendallCounts(*counts, n)
