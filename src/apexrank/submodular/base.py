"""Base class of set functions, their sums, and user-defined set functions.

Along an order σ (the item at each rank, best first) a set function gains ``f({σ(1..j)}) − f({σ(1..j−1)})`` at rank j.
Assigned to the items, these are the extreme subgradients h_σ of its Lovász extension (Iyer and Bilmes 2013, Lemma 2.2).
A constant f(∅) has no effect, because only gains are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import combinations
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.validation import check_count

SMALL = 12  # largest number of items, or of tied items, for which all subsets are enumerated
ROUNDING = 1e-12  # relative difference below which computed values are considered equal


@dataclass(frozen=True)
class SetFunction:
    """Base class of set functions. A new atom must define ``_gains``; everything else has a correct default.

    Attributes
    ----------
    n : int or None
        Number of items, if the function fixes it.
    monotone : bool
        Whether f is known to be non-decreasing for every number of items; :meth:`is_monotone` decides it for a given
        number.
    """

    name: ClassVar[str]
    __array_ufunc__: ClassVar[None] = None  # lets f handle multiplication by numpy scalars

    @property
    def n(self) -> int | None:
        return None

    @property
    def monotone(self) -> bool:
        return self.n is not None and self.is_monotone(self.n)

    def gains(self, orders: ArrayLike) -> np.ndarray:
        """Gains along orders, by rank: ``out[..., j] = f({σ(0), …, σ(j)}) − f({σ(0), …, σ(j − 1)})``.

        Parameters
        ----------
        orders : array-like of int, shape (..., n)
            Item at each rank, best first.
        """
        return self._gains(check_orders(orders, self.n))

    def subgradient(self, y: ArrayLike) -> np.ndarray:
        """Subgradient of the Lovász extension at the scores y, by item: the mean of h_σ over all orders σ of y.

        Without ties there is one such order; with ties their number is a product of factorials (eq. 16), and their mean
        has a closed form. An atom without a closed form enumerates the subsets of a block of tied items, which may have
        at most 12.

        Parameters
        ----------
        y : array-like of shape (..., n)
            Finite scores, larger is better.
        """
        return self._subgradient(check_scores(y, self.n))

    def extension(self, x: ArrayLike) -> np.ndarray:
        """Lovász extension ``f̂(x) = Σ_j x(σ_x(j))·(f({σ_x(1..j)}) − f({σ_x(1..j−1)}))`` of each vector (eq. 11)."""
        return self._extension(check_scores(x, self.n))

    def is_monotone(self, n: int) -> bool:
        """Return whether f is non-decreasing on n items, that is, whether no ``f(V) − f(V∖j)`` is negative."""
        last = self.last_gains(n)
        size = max(float(np.abs(last).max()), float(np.abs(self._gains(np.arange(n))).max()))
        return bool(last.min() >= -ROUNDING * size)

    def last_gains(self, n: int) -> np.ndarray:
        """Return ``f(V) − f(V∖j)`` for each of n items j, its smallest possible gain."""
        items = np.arange(n)
        ends_with = (items[:, None] + items[None, :] + 1) % n
        return self._gains(ends_with)[:, -1]

    def __call__(self, subset: ArrayLike) -> float:
        """Return ``f(subset) − f(∅)`` for a mask of n booleans, or for a list of items if n is known."""
        return float(self._values(as_mask(subset, self.n)[None, :])[0])

    def __add__(self, other: Any) -> Combination:
        if not isinstance(other, SetFunction):
            return NotImplemented
        return Combination(terms=terms_of(self) + terms_of(other))

    def __radd__(self, other: Any) -> SetFunction:
        # sum() starts from 0, which acts as the zero function
        return self if isinstance(other, Real) and other == 0 else NotImplemented

    def __mul__(self, factor: Any) -> Combination:
        if isinstance(factor, SetFunction) or not isinstance(factor, Real):
            return NotImplemented
        if not 0 <= float(factor) < math.inf:
            raise InputError(f"a set function must be multiplied by a finite number ≥ 0, got {factor!r}")
        return Combination(terms=tuple((float(factor) * c, f) for c, f in terms_of(self)))

    __rmul__ = __mul__

    def _gains(self, orders: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _subgradient(self, y: np.ndarray) -> np.ndarray:
        rows = y.reshape(-1, y.shape[-1])
        orders = orders_of(rows)
        out = by_item(self._gains(orders), orders)
        tied = np.take_along_axis(rows, orders, axis=1)
        same = tied[:, 1:] == tied[:, :-1]
        for r in np.flatnonzero(same.any(axis=1)):
            starts = np.flatnonzero(np.r_[True, ~same[r]])
            for start, stop in zip(starts, np.r_[starts[1:], len(same[r]) + 1], strict=True):
                if stop > start + 1:
                    out[r, orders[r, start:stop]] = self._mean_gains(
                        orders[r, :start], orders[r, start:stop], y
                    )
        return out.reshape(y.shape)

    def _mean_gains(self, before: np.ndarray, block: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Mean gains of a block over its orders: the Shapley values of ``S ↦ f(before ∪ S) − f(before)``."""
        k, n = len(block), y.shape[-1]
        if k > SMALL:
            raise InputError(f"{k} items are tied: orders of at most {SMALL} are averaged, break the ties")
        bits = all_subsets(k)
        masks = np.zeros((2**k, n), dtype=bool)
        masks[:, before], masks[:, block] = True, bits
        values, size = self._values(masks), bits.sum(axis=1)
        share = np.array([1.0 / (k * math.comb(k - 1, s)) for s in range(k)])
        means = np.empty(k)
        for i in range(k):
            without = np.flatnonzero(~bits[:, i])
            means[i] = share[size[without]] @ (values[without + 2**i] - values[without])
        return means

    def _extension(self, x: np.ndarray) -> np.ndarray:
        orders = orders_of(x)
        return np.einsum("...j,...j->...", np.take_along_axis(x, orders, axis=-1), self._gains(orders))

    def _values(self, masks: np.ndarray) -> np.ndarray:
        """Compute f minus f(∅) for each row of masks, by the first gains of an order that starts with the subset."""
        orders = np.argsort(~masks, axis=1, kind="stable")
        return np.sum(self._gains(orders), axis=1, where=np.take_along_axis(masks, orders, axis=1))


@dataclass(frozen=True)
class Combination(SetFunction):
    """Non-negative combination ``Σ c_i f_i`` of set functions, the result of sums and multiples.

    Examples
    --------
    >>> from apexrank.submodular import Product, Sqrt
    >>> f = 2 * Sqrt() + Product()
    >>> f.gains([1, 0]).round(3).tolist()
    [3.0, -0.172]
    """

    terms: tuple[tuple[float, SetFunction], ...]

    def __post_init__(self) -> None:
        sizes = sorted({f.n for _, f in self.terms if f.n is not None})
        if len(sizes) > 1:
            raise InputError(f"set functions of {sizes[0]} and of {sizes[1]} items cannot be added")

    @property
    def n(self) -> int | None:
        return next((f.n for _, f in self.terms if f.n is not None), None)

    @property
    def monotone(self) -> bool:
        return all(f.monotone for _, f in self.terms) or super().monotone

    def last_gains(self, n: int) -> np.ndarray:
        return np.sum([c * f.last_gains(n) for c, f in self.terms], axis=0)

    def _gains(self, orders: np.ndarray) -> np.ndarray:
        return sum((c * f._gains(orders) for c, f in self.terms), np.zeros(orders.shape))

    def _subgradient(self, y: np.ndarray) -> np.ndarray:
        return sum((c * f._subgradient(y) for c, f in self.terms), np.zeros(y.shape))

    def _extension(self, x: np.ndarray) -> np.ndarray:
        return sum((c * f._extension(x) for c, f in self.terms), np.zeros(x.shape[:-1]))

    def _values(self, masks: np.ndarray) -> np.ndarray:
        return sum((c * f._values(masks) for c, f in self.terms), np.zeros(len(masks)))


@dataclass(frozen=True)
class Modular(SetFunction):
    """Modular function ``f(X) = Σ_{i in X} w_i``; adding it to a set function does not change the divergence.

    Examples
    --------
    >>> Modular([3.0, -1.0]).gains([1, 0]).tolist()
    [-1.0, 3.0]
    """

    name: ClassVar[str] = "modular"
    weights: Any

    def __post_init__(self) -> None:
        weights = check_scores(self.weights, None, "weights")
        if weights.ndim != 1:
            raise InputError(f"weights must be one number per item, got shape {weights.shape}")
        object.__setattr__(self, "weights", tuple(weights.tolist()))

    @property
    def n(self) -> int:
        return len(self.weights)

    def last_gains(self, n: int) -> np.ndarray:
        return np.array(self.weights)

    def _gains(self, orders: np.ndarray) -> np.ndarray:
        return np.array(self.weights)[orders]

    def _subgradient(self, y: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.array(self.weights), y.shape).copy()


def terms_of(f: SetFunction) -> tuple[tuple[float, SetFunction], ...]:
    """Return the terms of f as pairs of a coefficient and an atom."""
    return f.terms if isinstance(f, Combination) else ((1.0, f),)


@dataclass(frozen=True, eq=False)
class Custom(SetFunction):
    """Set function of n items, given as a Python function.

    With n ≤ 12 all 2^n values are computed at once and ``f(S) + f(T) ≥ f(S ∪ T) + f(S ∩ T)`` is checked. With more
    items the function is *assumed* to be submodular, and is called n + 1 times for each order; if it is not
    submodular, its divergences are meaningless.

    Parameters
    ----------
    function : callable
        Maps a frozenset of items 0 … n − 1 to a finite number.
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
        check_count("n", n)
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "items", int(n))
        if n <= SMALL:
            object.__setattr__(
                self, "_table", np.array([self._value(np.flatnonzero(s)) for s in all_subsets(int(n))])
            )
            _check_submodular(self._table, int(n))

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
            raise InputError(f"function must give finite numbers, it does not for {_show(subset)}")
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
    """Raise InputError if an item gains more after another one has been added."""
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


# ---------------------------------------------------------------- orders, score vectors and subsets as arrays


def check_orders(orders: ArrayLike, n: int | None = None) -> np.ndarray:
    """Convert orders to an integer array; raise InputError unless each lists the items 0 … n − 1 once.

    Examples
    --------
    >>> check_orders([0, 2, 2])
    Traceback (most recent call last):
    apexrank.errors.InputError: an order must list each of the items 0 … 2 once: item 2 occurs twice
    """
    try:
        found = np.asarray(orders)
    except ValueError:
        raise InputError("orders must have the same number of items each") from None
    if found.dtype.kind not in "iu" or found.ndim == 0 or found.size == 0:
        raise InputError("an order must be a list of whole numbers, the item at each rank, best first")
    length = found.shape[-1]
    if n is not None and length != n:
        raise InputError(f"an order must list all {n} items, got {length}")
    rows = found.reshape(-1, length).astype(np.intp)
    what = f"an order must list each of the items 0 … {length - 1} once"
    outside = (rows < 0) | (rows >= length)
    if outside.any():
        raise InputError(f"{what}: there is no item {rows[outside][0]}")
    seen = np.zeros(rows.shape, dtype=bool)
    np.put_along_axis(seen, rows, True, axis=1)
    if not seen.all():
        row = rows[int(np.argmin(seen.all(axis=1)))]
        raise InputError(f"{what}: item {int(np.argmax(np.bincount(row) > 1))} occurs twice")
    return rows.reshape(found.shape)


def check_scores(scores: ArrayLike, n: int | None = None, name: str = "scores") -> np.ndarray:
    """Convert score vectors to a float array; raise InputError for a wrong number of items or non-finite scores.

    Examples
    --------
    >>> check_scores([0.5, float("nan")])
    Traceback (most recent call last):
    apexrank.errors.InputError: scores must be finite numbers, got nan
    """
    try:
        found = np.asarray(scores, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, the same number of them for each vector") from None
    if found.ndim == 0 or found.shape[-1] == 0:
        raise InputError(f"{name} must hold one number per item, got shape {found.shape}")
    if n is not None and found.shape[-1] != n:
        raise InputError(f"{name} must hold one number for each of {n} items, got {found.shape[-1]}")
    finite = np.isfinite(found)
    if not finite.all():
        raise InputError(f"{name} must be finite numbers, got {found[~finite][0]}")
    return found


def orders_of(scores: np.ndarray) -> np.ndarray:
    """Return the orders of score vectors, best first; tied items are in the order of their numbers.

    Examples
    --------
    >>> orders_of(np.array([0.1, 0.9, 0.1])).tolist()
    [1, 0, 2]
    """
    return np.argsort(-np.asarray(scores), axis=-1, kind="stable")


def by_item(ranked: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Convert values by rank to values by item: ``out[..., σ(j)] = ranked[..., j]``."""
    out = np.empty(orders.shape, dtype=ranked.dtype)
    np.put_along_axis(out, orders, ranked, axis=-1)
    return out


def all_subsets(n: int) -> np.ndarray:
    """Return all subsets of n items as masks; row s contains item i if bit i of s is set."""
    return (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1


def as_mask(subset: ArrayLike, n: int | None) -> np.ndarray:
    """Convert a subset to a mask, from a mask of n booleans or, if n is known, from a list or set of items."""
    found = np.asarray(sorted(subset) if isinstance(subset, (set, frozenset)) else subset)
    if found.dtype == bool and found.ndim == 1 and found.size:
        if n is not None and found.size != n:
            raise InputError(f"the mask of a subset must have {n} entries, got {found.size}")
        return found
    if n is None:
        raise InputError("pass the subset as a mask, one boolean per item: the number of items is not fixed")
    mask = np.zeros(n, dtype=bool)
    if found.shape == (0,):
        return mask
    if found.ndim != 1 or found.dtype.kind not in "iu" or len(np.unique(found)) < found.size:
        raise InputError("a subset must be a list of different items, or a mask of one boolean per item")
    if found.min() < 0 or found.max() >= n:
        raise InputError(f"items are numbered from 0 to {n - 1}, got {found.tolist()}")
    mask[found] = True
    return mask
