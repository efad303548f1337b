"""Lovász–Bregman divergences between a score vector and an order (Iyer and Bilmes 2013).

For a submodular f, ``d(x‖σ) = <x, h_{σ_x} − h_σ> = f̂(x) − <x, h_σ>`` (eq. 15), the part of f̂ that σ loses.
It is convex in the scores, never negative, and 0 for the order of the scores; scores that hardly differ contribute
little in any order.
"""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from apexrank.errors import InputError
from apexrank.submodular import Cut, SetFunction, check_orders, check_scores, prox_extension, set_function
from apexrank.submodular.base import by_item
from apexrank.validation import check_count, check_finite


class LovaszBregman:
    """Lovász–Bregman divergence ``d(x‖σ) = f̂(x) − <x, h_σ>`` of a submodular f.

    Parameters
    ----------
    f : {"sqrt", "log", "top", "cardinality", "product", "indicator", "chain", "cut"} or SetFunction
        Set function, by name or as an atom of `apexrank.submodular`.
    **arguments
        Arguments of a named set function: ``LovaszBregman("top", m=3)`` compares the sums of the first three scores
        (eq. 20), ``LovaszBregman("sqrt", m=3)`` the first three ranks (eq. 19), ``LovaszBregman("cut", weights=W)``
        pairs.

    Attributes
    ----------
    f : SetFunction
    order : ndarray of shape (n,) or None
        An order consistent with the pairs of :meth:`of_pairs`.

    Examples
    --------
    >>> lb = LovaszBregman("sqrt")
    >>> x = [0.2, 0.9, 0.4]
    >>> lb.divergence(x, [1, 2, 0]), round(lb.divergence(x, [0, 1, 2]), 4)
    (0.0, 0.4293)
    >>> lb.divergence([x, [0.9, 0.1, 0.8]], [[1, 2, 0], [0, 1, 2]]).round(4).tolist()
    [[0.0, 0.4293], [0.5457, 0.0675]]
    """

    order: np.ndarray | None = None

    def __init__(self, f: str | SetFunction = "sqrt", **arguments: Any) -> None:
        self.f = set_function(f, **arguments)

    def __repr__(self) -> str:
        return f"LovaszBregman({self.f!r})"

    @classmethod
    def of_pairs(
        cls, pairs: Iterable[tuple[int, int]], n: int, weights: ArrayLike | None = None
    ) -> LovaszBregman:
        """Create the divergence to a partial order, where each pair ``(a, b)`` ranks a above b.

        It is that of the cut with directed links a → b: ``d(x‖σ) = Σ w_ab·max(0, x_b − x_a)`` for every order σ
        consistent with the pairs, one of which is stored as :attr:`order`. For any other order, a reversed pair costs
        ``w_ab·max(0, x_a − x_b)``.

        Parameters
        ----------
        pairs : iterable of pairs of int
            Pairs of items 0 … n − 1, without cycles. Repeated pairs add up; without pairs the divergence is 0.
        n : int
            Number of items.
        weights : array-like, optional
            One weight of at least 0 for each pair, 1 by default.

        Examples
        --------
        >>> lb = LovaszBregman.of_pairs([(0, 1), (2, 1)], 4)  # the example of the paper: 1 > 2, 3 > 2
        >>> lb.divergence([0.25, 0.75, 1.0, 0.0], lb.order)
        0.5
        """
        links = _read_pairs(pairs, n)
        strength = np.ones(len(links))
        if weights is not None and (len(links) or np.size(weights)):
            strength = check_scores(weights, len(links), "weights")
        found = cls(Cut(sparse.coo_array((strength, (links[:, 0], links[:, 1])), shape=(n, n))))
        found.order = _agreeing_order(links, n)
        return found

    def extension(self, x: ArrayLike) -> float | np.ndarray:
        """Lovász extension ``f̂(x)`` of a score vector, or of each row of a table (eq. 11)."""
        return _plain(self.f.extension(x))

    def subgradient(self, y: ArrayLike) -> np.ndarray:
        """Mean of h_σ over all orders σ of the scores y, by item, for a vector or each row of a table (eq. 16)."""
        return self.f.subgradient(y)

    def gradients(self, orders: ArrayLike) -> np.ndarray:
        """Gradient ``h_σ`` by item of an order, or each row of a table: ``h[σ(j)]`` is the gain at rank j (Lemma 2.2).

        Examples
        --------
        >>> LovaszBregman("product").gradients([2, 0, 1]).tolist()
        [0.0, -2.0, 2.0]
        """
        checked = check_orders(orders, self.f.n)
        return by_item(self.f._gains(checked), checked)

    def divergence(self, scores: ArrayLike, orders: ArrayLike) -> float | np.ndarray:
        """Divergence ``d(x‖σ)`` of every score vector from every order, by one matrix product (eq. 15).

        Parameters
        ----------
        scores : array-like of shape (n,) or (r, n)
            Finite scores, larger is better.
        orders : array-like of int, shape (n,) or (k, n)
            Item at each rank, best first.

        Returns
        -------
        float or ndarray of shape (r,), (k,) or (r, k)
            At least 0: negative rounding errors are clipped.
        """
        return self._from_subgradients(scores, self.gradients(orders), "orders")

    def divergence_to_scores(self, x: ArrayLike, y: ArrayLike) -> float | np.ndarray:
        """Divergence ``d(x, y)`` of every x from the order of every y (eq. 14), averaged over the orders of tied y.

        Examples
        --------
        >>> LovaszBregman("top", m=1).divergence_to_scores([0.25, 0.75, 0.0], [1.0, 1.0, 0.0])
        0.25
        """
        return self._from_subgradients(x, self.f.subgradient(y), "y")

    def extended_divergence(self, x: ArrayLike, y: ArrayLike) -> float | np.ndarray:
        """Extended divergence ``φ(x) − <x, ∇φ(y)>`` of signed vectors, with ``φ(x) = f̂(|x|)``.

        ``∇φ(y) = sign(y)·h_{|y|}`` is averaged over all orders of |y| and, where y is 0, over both signs: the
        divergence to ``y = 0`` is the norm f̂(|x|). For non-negative vectors without zeros in y it is
        :meth:`divergence_to_scores`.

        Parameters
        ----------
        x, y : array-like of shape (n,) or (r, n) and (n,) or (k, n)
            Finite numbers of any sign.

        Returns
        -------
        float or ndarray of shape (r,), (k,) or (r, k)

        Examples
        --------
        >>> lb = LovaszBregman("sqrt")  # the same order, but other signs
        >>> lb.divergence_to_scores([-1, -2], [2, 1]), round(lb.extended_divergence([-1, -2], [2, 1]), 4)
        (0.0, 4.2426)
        """
        x, y = check_scores(x, self.f.n, "x"), check_scores(y, self.f.n, "y")
        if not self.f.is_monotone(y.shape[-1]):
            raise InputError(
                "the extended divergence needs a monotone set function, such as 'sqrt', 'log' or 'top': with this one "
                "f̂(|x|) is not convex"
            )
        h = np.sign(y) * self.f.subgradient(np.abs(y))
        _check_tables(x, h, "y")
        return _plain(np.maximum(_outer_minus(self.f.extension(np.abs(x)), x, h), 0.0))

    def prox(self, v: ArrayLike, order: ArrayLike, strength: float = 1.0) -> np.ndarray:
        """Proximal operator ``argmin_x ½|x − v|² + strength·d(x‖order)``: v moved towards the order (eq. 26).

        It is exact. For functions of the size it takes one sort and one isotonic regression, ``PAV↓(sort(z) − t·δ)``
        with ``z = v + t·h_σ``; for the chain it is total-variation denoising of z. Other functions are limited to 12
        items.

        Parameters
        ----------
        v : array-like of shape (n,) or (r, n)
            Finite scores.
        order : array-like of int, shape (n,) or (r, n)
            One order for all rows of v, or one for each.
        strength : float
            t ≥ 0. As it grows, the solution tends to the projection onto the vectors of divergence 0.

        Examples
        --------
        >>> LovaszBregman("product").prox([0.0, 1.0, 5.0], [2, 0, 1], 0.25).tolist()
        [0.5, 0.5, 5.0]
        """
        check_finite("strength", strength, 0)
        v, h = check_scores(v, self.f.n, "v"), self.gradients(order)
        if h.shape not in (v.shape, v.shape[-1:]):
            raise InputError(f"order must be one order or one for each row of v, got {h.shape} for {v.shape}")
        return prox_extension(self.f, v, float(strength), h)

    def _from_subgradients(self, scores: ArrayLike, h: np.ndarray, name: str) -> float | np.ndarray:
        x = check_scores(scores, self.f.n)
        _check_tables(x, h, name)
        # the divergence is invariant to shifts of a vector; shifting preserves precision for scores far from zero
        x = x - x.min(axis=-1, keepdims=True)
        return _plain(np.maximum(_outer_minus(self.f.extension(x), x, h), 0.0))


def _outer_minus(phi: np.ndarray, x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return ``φ(x) − <x, h>`` for all pairs of rows of x and h."""
    return (phi[:, None] if x.ndim == h.ndim == 2 else phi) - x @ h.T


def _check_tables(x: np.ndarray, h: np.ndarray, name: str) -> None:
    if x.ndim > 2 or h.ndim > 2:
        raise InputError(f"scores and {name} must be vectors or tables of them, got {x.shape} and {h.shape}")
    if x.shape[-1] != h.shape[-1]:
        raise InputError(f"scores and {name} must have the same items, got {x.shape[-1]} and {h.shape[-1]}")


def _plain(values: np.ndarray) -> float | np.ndarray:
    return float(values) if np.ndim(values) == 0 else values


def _read_pairs(pairs: Iterable[tuple[int, int]], n: int) -> np.ndarray:
    check_count("n", n)
    try:
        found = list(pairs)
        links = np.asarray(found) if found else np.empty((0, 2), dtype=int)
    except (TypeError, ValueError):
        links = np.empty(0)
    if links.ndim != 2 or links.shape[1] != 2 or links.dtype.kind not in "iu":
        raise InputError("pairs must be a list of pairs of items (a, b), each with a above b")
    outside = (links < 0) | (links >= n)
    if outside.any():
        raise InputError(f"items are numbered from 0 to {n - 1}: there is no item {links[outside][0]}")
    return links


def _agreeing_order(links: np.ndarray, n: int) -> np.ndarray:
    above: dict[int, set[int]] = {i: set() for i in range(n)}
    for a, b in links.tolist():
        above[b].add(a)
    try:
        return np.array(list(TopologicalSorter(above).static_order()))
    except CycleError as error:
        raise InputError(f"pairs must not go in a circle: {' > '.join(map(str, error.args[1]))}") from None
