"""The two lists that a permutation measure compares, read and checked."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.kernels.inversions import SortedRows, mean_ranks, sort_rows

Lists = tuple[Any, Any] | None
WHICH = ("first", "second")


class Comparison(NamedTuple):
    """Two checked lists or tables; a single list has one row. ``items`` are the labels, where there are any."""

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
        """What the user gets for one value per row, divided by the largest one if given."""
        values = np.asarray(values, dtype=np.float64)
        if largest is not None:
            values = np.divide(values, largest, out=np.zeros_like(values), where=np.not_equal(largest, 0))
        return float(values[0]) if self.single else values


def read_lists(scores: Lists, rankings: Lists, orders: Lists) -> Comparison:
    """Check the one pair of lists that is given."""
    pairs = {"scores": scores, "rankings": rankings, "orders": orders}
    given = [name for name, pair in pairs.items() if pair is not None]
    if len(given) != 1:
        raise InputError(
            "pass exactly one of scores=(a, b), rankings=(a, b) and orders=(a, b), "
            f"got {' and '.join(given) or 'none'}"
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
    """Both as tables, once their numbers of items and of rows fit."""
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
            _match(first[0].tolist(), second[0].tolist(), of)  # names the item that one of them lacks
        raise InputError(
            f"{name} must be of the same items: the first list has {lengths[0]}, the second {lengths[1]}"
        )
    return first, second


def _numbers(name: str, which: str, values: Any) -> np.ndarray:
    """One list or table of numbers; integers stay integers, as large ones would be rounded into ties."""
    try:
        array = np.asarray(values)
        array = array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError):
        raise InputError(f"{name}: the {which} list must be numbers, as many in each row") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name}: the {which} list must be numbers; pass labels, best first, as orders=")
    _check_dimensions(name, which, array)
    if array.dtype.kind == "f" and np.isnan(array).any():
        *row, item = np.argwhere(np.isnan(array))[0].tolist()
        where = f"row {row[0]}, item {item}" if row else f"row {item}"
        raise InputError(f"{name}: the {which} list is NaN in {where}: fill or drop it")
    return array


def _check_dimensions(name: str, which: str, array: np.ndarray) -> None:
    if array.ndim not in (1, 2):
        raise InputError(
            f"{name}: the {which} list must have shape (items,) or (rows, items), got {array.shape}"
        )


def _items(name: str, which: str, values: Any) -> np.ndarray:
    """One list or table of labels, which may be tuples; a list in a list is a row."""
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
        raise InputError(
            f"{name}: the {which} table must have as many items in each row, got {sorted(lengths)}"
        )
    shape = len(rows), lengths.pop()
    return np.fromiter(chain.from_iterable(rows), dtype=object, count=shape[0] * shape[1]).reshape(shape)


def _positions(first: np.ndarray, second: np.ndarray, single: bool) -> np.ndarray:
    """Position in the second order of each item of the first."""
    positions = np.empty(first.shape, dtype=np.int64)
    if first.dtype.kind == second.dtype.kind != "O":
        by_first, by_second = np.argsort(first, axis=1), np.argsort(second, axis=1)
        sorted_ = np.take_along_axis(first, by_first, axis=1)
        same = np.array_equal(sorted_, np.take_along_axis(second, by_second, axis=1))
        if same and (sorted_[:, 1:] != sorted_[:, :-1]).all():
            np.put_along_axis(positions, by_first, by_second, axis=1)
            return positions
    # labels without an order of their own, or lists with a fault that has to be named
    for r, rows in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        positions[r] = _match(*rows, "" if single else f" of row {r}")
    return positions


def _match(first: list, second: list, of: str) -> list[int]:
    """Position in the second list of each item of the first."""
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
    """Weights with a row per list, or a single row for all; columns as in the lists' levels."""
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
                "weights by label need orders=: with scores or rankings give one weight per item"
            )
        try:
            return [[weights[item] for item in row] for row in lists.items.tolist()]
        except KeyError as error:
            raise InputError(f"weights has no weight for the item {error.args[0]!r}") from None
    if callable(weights):
        return weights(mean_ranks(lists.first))
    if lists.items is not None:
        raise InputError(
            "with orders, weights must be a mapping from item to weight or a function of the rank"
        )
    return weights
