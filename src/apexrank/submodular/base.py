"""What a set function is here, and sums of set functions.

Along an order σ (the item at each rank, best first) a set function gains ``f({σ(1..j)}) − f({σ(1..j−1)})`` at rank j.
Handed to the items, these are the extreme subgradients h_σ of its Lovász extension (Iyer and Bilmes 2013, Lemma 2.2).
A constant f(∅) never shows, because only gains are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.submodular.orders import all_subsets, as_mask, by_item, check_orders, check_scores, orders_of

SMALL = 12  # 2^12 subsets at most are listed: of a user's items, and of a block of tied items
ROUNDING = 1e-12  # relative size below which a difference of computed values is taken for rounding


@dataclass(frozen=True)
class SetFunction:
    """Base class. A new atom needs ``_gains``; the rest follows from it, exactly but not always fast.

    Attributes
    ----------
    n : int or None
        Number of items, where the function fixes it.
    monotone : bool
        Whether f is known to be non-decreasing, whatever the number of items; :meth:`is_monotone` decides it for
        a given number.
    """

    name: ClassVar[str]
    __array_ufunc__: ClassVar[None] = None  # so that a numpy number times f is f times the number

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
            Each lists the item at each rank, best first.
        """
        return self._gains(check_orders(orders, self.n))

    def subgradient(self, y: ArrayLike) -> np.ndarray:
        """Subgradient of the Lovász extension at the score vectors y, by item: the mean of h_σ over all orders σ of y.

        Without ties there is one such order; with ties there is a product of factorials of them (eq. 16), and their
        mean is in closed form. An atom that knows no closed form lists the subsets of a block of tied items, of
        which there must be at most 12.

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
        """Whether f is non-decreasing on n items: by submodularity, whether no ``f(V) − f(V∖j)`` is negative."""
        last = self.last_gains(n)
        size = max(float(np.abs(last).max()), float(np.abs(self._gains(np.arange(n))).max()))
        return bool(last.min() >= -ROUNDING * size)

    def last_gains(self, n: int) -> np.ndarray:
        """``f(V) − f(V∖j)`` for each of n items j, the least gain it can have."""
        items = np.arange(n)
        ends_with = (items[:, None] + items[None, :] + 1) % n
        return self._gains(ends_with)[:, -1]

    def __call__(self, subset: ArrayLike) -> float:
        """``f(subset) − f(∅)`` for a mask of n booleans, or for a list of items where n is known."""
        return float(self._values(as_mask(subset, self.n)[None, :])[0])

    def __add__(self, other: Any) -> Combination:
        if not isinstance(other, SetFunction):
            return NotImplemented
        return Combination(terms=terms_of(self) + terms_of(other))

    def __radd__(self, other: Any) -> SetFunction:
        # sum() starts from 0, the function that gains nothing
        return self if isinstance(other, Real) and other == 0 else NotImplemented

    def __mul__(self, factor: Any) -> Combination:
        if isinstance(factor, SetFunction) or not isinstance(factor, Real):
            return NotImplemented
        if not 0 <= float(factor) < math.inf:
            raise InputError(
                f"a set function can be multiplied by a finite number of at least 0, got {factor!r}"
            )
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
            raise InputError(
                f"{k} items are tied: the mean over their orders is listed for at most {SMALL} of them, break the ties"
            )
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
        """Values less f(∅) of each row of a table of masks: the first gains of an order that starts with the subset."""
        orders = np.argsort(~masks, axis=1, kind="stable")
        return np.sum(self._gains(orders), axis=1, where=np.take_along_axis(masks, orders, axis=1))


@dataclass(frozen=True)
class Combination(SetFunction):
    """``Σ c_i f_i`` with c ≥ 0: what sums and non-negative multiples of set functions are.

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
    """``f(X) = Σ_{i in X} w_i``, weights of any sign: it shifts a set function and leaves its divergence as it is.

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
    """What f is the sum of: pairs of a coefficient and an atom."""
    return f.terms if isinstance(f, Combination) else ((1.0, f),)
