"""Distances between rankings of the same items: Kendall's τ and Spearman's distances, in O(n log n).

The two lists are passed by the keyword that describes their content; for three items a, b, c with the order b, a, c:

- ``scores=(first, second)``: one number per item, larger is better: ``[0.5, 0.9, 0.1]``;
- ``rankings=(first, second)``: the rank of each item, 1 is best: ``[2, 1, 3]``. Any numbers are accepted where the
  smaller is better, so that equal ones are ties;
- ``orders=(first, second)``: the item at each rank, best first: ``["b", "a", "c"]``. Items are any hashable labels;
  both lists hold the same items, each once. Inside a list a tuple is one item.

A list is one-dimensional, or a table of m lists of n items; a single list is compared with each row of a table. The
result is a float for two single lists, and otherwise an array of one value per row. Lists of fewer than two items
have no pairs: their distances are 0 and their τ is nan.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Set
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.kernels.inversions import SortedRows, count_pairs, mean_ranks, sort_rows, sum_inversions
from apexrank.validation import check_between, check_choice

TwoLists = tuple[Any, Any] | None
WHICH = ("first", "second")
Variant = Literal["a", "b"]
Combine = Literal["product", "sum"]
Weights = ArrayLike | Mapping[Any, float] | Callable[[np.ndarray], ArrayLike]


class KendallCounts(NamedTuple):
    """Counts of the n(n − 1)/2 pairs of items by agreement of two lists: five numbers, or arrays for many lists.

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
        """Kendall's τ_a, ``(C − D) / (n(n − 1)/2)``; nan for fewer than two items."""
        return _quotient(self.concordant - self.discordant, self.n_pairs)

    @property
    def tau_b(self) -> float | np.ndarray:
        """Kendall's τ_b, ``(C − D) / √((untied pairs of first)·(untied pairs of second))``; nan if one is all tied."""
        untied = self.concordant + self.discordant
        # floats, because the product of two numbers of pairs overflows int64 from 80 thousand items
        return _quotient(
            self.concordant - self.discordant,
            np.sqrt(np.multiply(untied + self.tied_first, untied + self.tied_second, dtype=np.float64)),
        )


def kendall_counts(
    *, scores: TwoLists = None, rankings: TwoLists = None, orders: TwoLists = None
) -> KendallCounts:
    """Count concordant, discordant and tied pairs of two lists.

    Parameters
    ----------
    scores, rankings, orders : pair of lists or of tables of lists
        Exactly one of them, the two lists to compare.
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
    *, scores: TwoLists = None, rankings: TwoLists = None, orders: TwoLists = None, variant: Variant = "b"
) -> float | np.ndarray:
    """Kendall's rank correlation τ: 1 for the same order, −1 for the opposite one (Kendall 1945).

    ``τ_a = (C − D) / (n(n − 1)/2)`` with C concordant and D discordant pairs; ``τ_b`` divides by the geometric mean
    of the numbers of untied pairs in each list. Without ties they are equal.

    Parameters
    ----------
    scores, rankings, orders
        As in `kendall_counts`.
    variant : {"a", "b"}
        "b" equals ``scipy.stats.kendalltau``; it is nan if a list is all tied.

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
    scores: TwoLists = None,
    rankings: TwoLists = None,
    orders: TwoLists = None,
    normalize: bool = False,
    tie_penalty: float = 0.0,
) -> float | np.ndarray:
    """Kendall τ distance: the number of discordant pairs of two lists.

    ``d_T(σ, π) = Σ_{i<j} I(σ⁻¹π(i) > σ⁻¹π(j))``, the number of swaps of neighbours that turn one order into the other
    (Iyer and Bilmes 2013, eq. 1). With ties it is ``K^(p)`` of Fagin et al. (2006): a pair tied in exactly one list
    adds the ``tie_penalty`` p, and a pair tied in both adds nothing.

    Parameters
    ----------
    scores, rankings, orders
        As in `kendall_counts`.
    normalize : bool
        Divide by the number of pairs, n(n − 1)/2, so that opposite orders are at distance 1.
    tie_penalty : float from 0 to 1
        From 1/2 on, the distance is a metric on lists with ties; at 0, different lists may have distance 0.

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
    scores: TwoLists = None,
    rankings: TwoLists = None,
    orders: TwoLists = None,
    weights: Weights,
    combine: Combine = "product",
    normalize: bool = False,
) -> float | np.ndarray:
    """Weighted Kendall τ distance: the sum of ``w_i·w_j`` or ``w_i + w_j`` over the discordant pairs.

    A pair tied in either list adds nothing. Without ties, ``1 − 2·distance`` of the normalised distance is the weighted
    τ of Vigna (2015), ``scipy.stats.weightedtau``.

    Parameters
    ----------
    scores, rankings, orders
        As in `kendall_counts`.
    weights : array-like of shape (n,) or (m, n), mapping, or function
        With scores or rankings: one weight per item. With orders: a mapping from item to weight. With any of them:
        a function of the rank in the *first* list, called with an array of ranks (1 is best, ties have their mean
        rank), e.g. ``lambda rank: 1 / rank``; the distance is then not symmetric. Weights are finite and at least 0.
    combine : {"product", "sum"}
        Weight of a pair, ``w_i·w_j`` or ``w_i + w_j``.
    normalize : bool
        Divide by the same sum over all pairs; 0 if that is 0.

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
    if (
        normalize
    ):  # the quotient is scale-invariant, but products of tiny or huge weights would underflow or overflow
        w = np.divide(w, w.max(initial=0.0), out=np.zeros_like(w), where=w > 0)
    distance = sum_inversions(lists.first, lists.second, w, additive=combine == "sum")
    if not normalize:
        return lists.result(distance)
    if combine == "sum":
        largest = (w.shape[1] - 1) * w.sum(axis=1)
    else:
        largest = (w[:, 1:] * np.cumsum(w, axis=1)[:, :-1]).sum(axis=1)
    # rounding of two sums in different orders may exceed 1 for opposite lists
    return lists.result(np.minimum(distance, largest), largest)


def spearman_footrule(
    *, scores: TwoLists = None, rankings: TwoLists = None, orders: TwoLists = None, normalize: bool = False
) -> float | np.ndarray:
    """Spearman's footrule ``d_S(σ, π) = Σ_i |σ⁻¹(i) − π⁻¹(i)|``, the total displacement of the items.

    Iyer and Bilmes (2013, eq. 2), Diaconis and Graham (1977). Ties have their mean rank; rankings given as numbers
    other than ranks are converted to ranks first.

    Parameters
    ----------
    scores, rankings, orders
        As in `kendall_counts`.
    normalize : bool
        Divide by the largest value, ``⌊n²/2⌋``, so that opposite orders are at distance 1. To divide by ``n²`` instead,
        as Acharyya (2013, sec. 6.4) does, use the plain sum; such values are at most 1/2.

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
    *, scores: TwoLists = None, rankings: TwoLists = None, orders: TwoLists = None, normalize: bool = False
) -> float | np.ndarray:
    """Spearman's rank distance ``d_R(σ, π) = Σ_i (σ⁻¹(i) − π⁻¹(i))²``, the sum of squares without a root.

    Iyer and Bilmes (2013, eq. 3) call it rank correlation: without ties Spearman's ρ is ``1 − 2·d_R`` of the normalised
    distance. Ties have their mean rank.

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
    with np.errstate(invalid="ignore"):  # 0/0 is nan: no pairs to compare
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


class Comparison(NamedTuple):
    """Two validated lists or tables; a single list has one row. ``items`` are the labels, if any."""

    first: SortedRows
    second: SortedRows
    single: bool
    items: np.ndarray | None = None

    @property
    def n_items(self) -> int:
        return int(self.first.order.shape[1])

    def rank_differences(self) -> np.ndarray:
        return mean_ranks(self.first) - mean_ranks(self.second)

    def result(self, values: np.ndarray, largest: ArrayLike | None = None) -> float | np.ndarray:
        """Convert one value per row to the public result, divided by the largest possible value if given."""
        values = np.asarray(values, dtype=np.float64)
        if largest is not None:
            values = np.divide(values, largest, out=np.zeros_like(values), where=np.not_equal(largest, 0))
        return float(values[0]) if self.single else values


def read_lists(scores: TwoLists, rankings: TwoLists, orders: TwoLists) -> Comparison:
    """Validate the pair of lists that is given."""
    pairs = {"scores": scores, "rankings": rankings, "orders": orders}
    given = [name for name, pair in pairs.items() if pair is not None]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise InputError(
            f"pass exactly one of `scores=(a, b)`, `rankings=(a, b)` and `orders=(a, b)`, got {got}"
        )
    name, pair = given[0], pairs[given[0]]
    if not isinstance(pair, tuple | list | np.ndarray) or len(pair) != 2:
        raise InputError(f"{name} must be a pair of lists, {name}=(first, second)")
    table = _items if name == "orders" else _numbers
    first, second = (table(name, which, values) for which, values in zip(WHICH, pair, strict=True))
    single = first.ndim == second.ndim == 1
    first, second = _same_shape(name, first, second)
    if name != "orders":
        descending = name == "scores"
        return Comparison(sort_rows(first, descending), sort_rows(second, descending), single)
    items, second = np.broadcast_arrays(first, second)
    ranks = np.arange(items.shape[1])[None]
    return Comparison(sort_rows(ranks), sort_rows(_positions(items, second, single)), single, items)


def _same_shape(name: str, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both as tables; raise InputError unless their numbers of items and rows match."""
    if first.ndim == second.ndim == 2 and len(first) != len(second):
        raise InputError(
            f"{name} must have as many rows in both tables, got {len(first)} and {len(second)}: "
            "to compare one list with many, pass it one-dimensional"
        )
    lengths = first.shape[-1], second.shape[-1]
    of = " of row 0" if first.ndim + second.ndim > 2 else ""
    first, second = np.atleast_2d(first), np.atleast_2d(second)
    if lengths[0] != lengths[1]:
        if name == "orders" and len(first) and len(second):
            _match(first[0].tolist(), second[0].tolist(), of)  # raises an error with the missing item
        raise InputError(f"{name} must be of the same items, got lists of {lengths[0]} and {lengths[1]}")
    return first, second


def _numbers(name: str, which: str, values: Any) -> np.ndarray:
    """Convert a list or table to numbers; integers stay integers, because rounding could create ties."""
    try:
        array = np.asarray(values)
        array = array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError):
        raise InputError(f"{name}: the {which} list must be numbers, as many in each row") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name}: the {which} list must be numbers; pass labels, best first, as `orders=`")
    _check_dimensions(name, which, array)
    if array.dtype.kind == "f" and np.isnan(array).any():
        *row, item = np.argwhere(np.isnan(array))[0].tolist()
        where = f"row {row[0]}, item {item}" if row else f"row {item}"
        raise InputError(f"{name}: the {which} list is NaN in {where}: fill or drop it")
    return array


def _check_dimensions(name: str, which: str, array: np.ndarray) -> None:
    if array.ndim not in (1, 2):
        raise InputError(f"{name}: the {which} list must have one or two dimensions, got shape {array.shape}")


def _items(name: str, which: str, values: Any) -> np.ndarray:
    """Convert a list or table of labels, which may be tuples; a nested list is a row."""
    if hasattr(values, "__array__"):
        array = np.asarray(values)
        _check_dimensions(name, which, array)
        return array
    if isinstance(values, Set):
        raise InputError(f"{name}: the {which} list is a set, which has no order: pass a list, best first")
    try:
        rows = list(values)
        if not rows or not all(isinstance(row, list | np.ndarray) for row in rows):
            return np.fromiter(rows, dtype=object, count=len(rows))
        lengths = {len(row) for row in rows}
    except TypeError:
        raise InputError(f"{name}: the {which} list must hold items, best first") from None
    if len(lengths) > 1:
        raise InputError(f"{name}: rows of the {which} table must be of one length, got {sorted(lengths)}")
    shape = len(rows), lengths.pop()
    return np.fromiter(chain.from_iterable(rows), dtype=object, count=shape[0] * shape[1]).reshape(shape)


def _positions(first: np.ndarray, second: np.ndarray, single: bool) -> np.ndarray:
    """Return the position in the second order of each item of the first."""
    positions = np.empty(first.shape, dtype=np.int64)
    if first.dtype.kind == second.dtype.kind != "O":
        by_first, by_second = np.argsort(first, axis=1), np.argsort(second, axis=1)
        sorted_ = np.take_along_axis(first, by_first, axis=1)
        same = np.array_equal(sorted_, np.take_along_axis(second, by_second, axis=1))
        if same and (sorted_[:, 1:] != sorted_[:, :-1]).all():
            np.put_along_axis(positions, by_first, by_second, axis=1)
            return positions
    # labels that cannot be sorted, or invalid lists that need an error message
    for r, rows in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        positions[r] = _match(*rows, "" if single else f" of row {r}")
    return positions


def _match(first: list, second: list, of: str) -> list[int]:
    """Return the position in the second list of each item of the first."""
    places = [_places(row, which, of) for which, row in zip(WHICH, (first, second), strict=True)]
    for this, other, (has, lacks) in zip(places, places[::-1], (WHICH, WHICH[::-1]), strict=True):
        odd = this.keys() - other.keys()
        if odd:
            item = min(odd, key=this.__getitem__)
            raise InputError(f"orders: the item {item!r} is in the {has} list{of} but not in the {lacks}")
    return [places[1][item] for item in first]


def _places(row: list, which: str, of: str) -> dict[Hashable, int]:
    place: dict[Hashable, int] = {}
    for i, item in enumerate(row):
        try:
            known = item in place
        except TypeError:
            raise InputError(f"orders: the item {item!r} is not hashable: use a label") from None
        if item is None or item != item:
            raise InputError(f"orders: the {which} list{of} has a missing item at rank {i + 1}: drop it")
        if known:
            raise InputError(f"orders: the {which} list{of} holds the item {item!r} twice: each item once")
        place[item] = i
    return place


def item_weights(weights: Any, lists: Comparison) -> np.ndarray:
    """Return weights with a row per list, or a single row for all; columns as in the lists' levels."""
    m, n = np.broadcast_shapes(lists.first.order.shape, lists.second.order.shape)
    given = _given_weights(weights, lists)
    try:
        w = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("weights must be numbers, one per item") from None
    if w.shape not in {(n,), (1, n), (m, n)}:
        raise InputError(f"weights must be one number for each of the {n} items, got shape {w.shape}")
    bad = ~((w >= 0) & (w < np.inf))
    if bad.any():
        raise InputError(f"weights must be finite numbers of at least 0, got {w[bad][0]:g}")
    return np.atleast_2d(w)


def _given_weights(weights: Any, lists: Comparison) -> Any:
    if isinstance(weights, Mapping):
        if lists.items is None:
            raise InputError(
                "weights by label need `orders=`: for scores or rankings give one weight per item"
            )
        try:
            return [[weights[item] for item in row] for row in lists.items.tolist()]
        except KeyError as error:
            raise InputError(f"weights has no weight for the item {error.args[0]!r}") from None
    if callable(weights):
        return weights(mean_ranks(lists.first))
    if lists.items is not None:
        raise InputError("with orders, weights must map items to weights, or be a function of the rank")
    return weights
