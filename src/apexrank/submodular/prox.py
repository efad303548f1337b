"""Proximal operator of a Lovász extension minus a linear term: ``argmin_x ½|x − v|² + t·(f̂(x) − <x, h>)``.

It takes one sort and one PAV for functions of the size, total-variation denoising for the chain, and a decomposition
for other functions of few items. All are exact.
"""

from __future__ import annotations

import numpy as np

from apexrank.errors import InputError
from apexrank.kernels.pav import pav
from apexrank.kernels.tv import total_variation
from apexrank.submodular.base import SMALL, Modular, SetFunction, all_subsets, by_item, terms_of
from apexrank.submodular.functions import BySize, Chain


def prox_extension(f: SetFunction, v: np.ndarray, strength: float, h: np.ndarray | None = None) -> np.ndarray:
    """Minimise ``½|x − v|² + strength·(f̂(x) − <x, h>)`` for each row of v.

    Parameters
    ----------
    f : SetFunction
        Function of the size, a chain, or any function of at most 12 items, each plus modular terms.
    v : ndarray of shape (..., n)
        Finite numbers.
    strength : float
        At least 0.
    h : ndarray of shape (n,) or that of v, optional
        Linear term, 0 by default.

    Examples
    --------
    >>> from apexrank.submodular import Product
    >>> prox_extension(Product(), np.array([3.0, 2.0, 0.0]), 0.25).tolist()
    [2.5, 2.0, 0.5]
    """
    rows = v.reshape(-1, v.shape[-1])
    n = rows.shape[1]
    terms = terms_of(f)
    rest = [(c, g) for c, g in terms if not isinstance(g, Modular)]
    weights = sum((c * np.array(g.weights) for c, g in terms if isinstance(g, Modular)), np.zeros(n))
    linear = np.broadcast_to(np.zeros(n) if h is None else h, v.shape).reshape(rows.shape) - weights
    deltas = [c * g.deltas(n) for c, g in rest if isinstance(g, BySize)]
    if len(deltas) == len(rest):
        found = _by_size(rows, strength * linear, strength * sum(deltas, np.zeros(n)))
    elif all(isinstance(g, Chain) for _, g in rest):
        found = total_variation(rows + strength * linear, strength * sum(c for c, _ in rest))
    elif n <= SMALL:
        # the solution shifts with v: shifting preserves precision for rows far from zero
        level = rows.min(axis=1, keepdims=True)
        z = rows - level + strength * (linear + weights)
        found = level + np.array([_decompose(f, row, strength) for row in z]).reshape(rows.shape)
    else:
        raise InputError(
            f"no prox for this set function of {n} items: there is one for functions of the size, for the chain, and "
            f"for any function of at most {SMALL} items"
        )
    return found.reshape(v.shape)


def _by_size(v: np.ndarray, h: np.ndarray, deltas: np.ndarray) -> np.ndarray:
    """Compute ``PAV↓(sort(z) − δ)`` for ``z = v + h`` by item; the solution has the order of z."""
    orders = np.lexsort((-v, -(v + h)), axis=-1)
    # h and δ cancel wherever the order agrees, so subtract them first: a large strength costs v no precision
    moved = np.take_along_axis(v, orders, axis=1) + (np.take_along_axis(h, orders, axis=1) - deltas)
    r, n = v.shape
    fitted = pav(moved.ravel(), np.arange(0, r * n + 1, n), increasing=False).reshape(r, n)
    return by_item(fitted, orders)


def _decompose(f: SetFunction, z: np.ndarray, strength: float) -> np.ndarray:
    """Split the items by the level sets of the solution (Groenevelt 1991), enumerating all subsets."""
    masks = all_subsets(len(z))
    cost = strength * f._values(masks) - masks @ z
    out = np.empty(len(z))
    _split(cost, 0, len(masks) - 1, out)
    return out


def _split(cost: np.ndarray, low: int, high: int, out: np.ndarray) -> None:
    """Solve for the items in ``high`` but not in ``low``; they share one value unless a set between splits them.

    The straight line through the ends of ``cost`` between the two sets is subtracted. If no set lies below 0, the items
    share the slope; otherwise the lowest set separates larger values from smaller ones.
    """
    free = [i for i in range(len(out)) if (high & ~low) >> i & 1]
    if not free:
        return
    between = low + all_subsets(len(free)) @ (1 << np.array(free))
    slope = (cost[high] - cost[low]) / len(free)
    above = cost[between] - cost[low] - slope * all_subsets(len(free)).sum(axis=1)
    k = int(np.argmin(above))
    if between[k] in (low, high) or above[k] >= -1e-14 * np.abs(cost).max():
        out[free] = -slope
    else:
        _split(cost, low, int(between[k]), out)
        _split(cost, int(between[k]), high, out)
