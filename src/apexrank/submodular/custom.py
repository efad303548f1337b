"""A user's set function, checked for submodularity where there are few items."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import combinations
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from apexrank.errors import InputError
from apexrank.submodular.base import ROUNDING, SMALL, SetFunction
from apexrank.submodular.orders import all_subsets


@dataclass(frozen=True, eq=False)
class Custom(SetFunction):
    """A function of subsets of n items, given as a Python function.

    With n ≤ 12 all 2^n values are computed at once and ``f(S) + f(T) ≥ f(S ∪ T) + f(S ∩ T)`` is checked. With more
    items the function is *believed* to be submodular, and is called n + 1 times for each order; divergences of one that
    is not mean nothing.

    Parameters
    ----------
    function : callable
        Takes a frozenset of items 0 … n − 1, gives a finite number.
    n : int
        Number of items.

    Examples
    --------
    >>> topics = [{"sport"}, {"sport", "news"}, {"art"}]
    >>> cover = Custom(lambda X: len(set().union(*(topics[i] for i in X))), 3)
    >>> cover.gains([1, 0, 2]).tolist()
    [2.0, 0.0, 1.0]
    >>> Custom(lambda X: len(X) ** 2, 2)
    Traceback (most recent call last):
    apexrank.errors.InputError: not submodular: f({0}) + f({1}) = 2.0 is less than f({0, 1}) + f({}) = 4.0
    """

    name: ClassVar[str] = "custom"
    function: Callable[[frozenset[int]], float]
    items: int
    _table: Any = field(init=False, repr=False, default=None)

    def __init__(self, function: Callable[[frozenset[int]], float], n: int) -> None:
        if not callable(function):
            raise InputError("function must take a frozenset of items and give a number")
        if not isinstance(n, Integral) or n < 1:
            raise InputError(f"n must be a whole number of at least 1, got {n!r}")
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "items", int(n))
        table = (
            np.array([self._value(np.flatnonzero(s)) for s in all_subsets(int(n))]) if n <= SMALL else None
        )
        if table is not None:
            _check_submodular(table, int(n))
        object.__setattr__(self, "_table", table)

    @property
    def n(self) -> int:
        return self.items

    def _value(self, members: np.ndarray) -> float:
        subset = frozenset(members.tolist())
        try:
            value = float(self.function(subset))
        except (TypeError, ValueError):
            value = np.nan
        if not np.isfinite(value):
            raise InputError(
                f"function must give a finite number for every subset, it does not for {_show(subset)}"
            )
        return value

    def _gains(self, orders: np.ndarray) -> np.ndarray:
        if self._table is not None:
            values = self._table[np.cumsum(1 << orders, axis=-1)]
            return np.diff(values, axis=-1, prepend=self._table[0])
        rows = orders.reshape(-1, self.n)
        values = [[self._value(row[:j]) for j in range(self.n + 1)] for row in rows]
        return np.diff(np.array(values), axis=1).reshape(orders.shape)

    def _values(self, masks: np.ndarray) -> np.ndarray:
        if self._table is not None:
            return self._table[masks @ (1 << np.arange(self.n))] - self._table[0]
        values = np.array([self._value(np.flatnonzero(mask)) for mask in masks])
        return values - self._value(np.empty(0, dtype=int))


def _check_submodular(table: np.ndarray, n: int) -> None:
    """Refuse a table of values in which an item gains more after another one has come."""
    slack = ROUNDING * float(np.abs(table).max())
    sets = np.arange(len(table))
    for i, j in combinations(range(n), 2):
        low = sets[(sets >> i) % 2 + (sets >> j) % 2 == 0]
        left, right = table[low + 2**i] + table[low + 2**j], table[low + 2**i + 2**j] + table[low]
        wrong = np.flatnonzero(left < right - slack)
        if wrong.size:
            k = wrong[0]
            s = [b for b in range(n) if low[k] >> b & 1]
            raise InputError(
                f"not submodular: f({_show([*s, i])}) + f({_show([*s, j])}) = {float(left[k])!r} is less than "
                f"f({_show([*s, i, j])}) + f({_show(s)}) = {float(right[k])!r}"
            )


def _show(items: Collection[int]) -> str:
    return "{" + ", ".join(str(i) for i in sorted(items)) + "}"
