"""Orders, score vectors and subsets as arrays: read, checked and turned into each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError


def check_orders(orders: ArrayLike, n: int | None = None) -> np.ndarray:
    """Orders as an array of int; refuse what does not list each of the items 0 … n − 1 once.

    Examples
    --------
    >>> check_orders([0, 2, 2])
    Traceback (most recent call last):
    apexrank.errors.InputError: an order must list each of the items 0 … 2 once: item 2 comes twice
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
        raise InputError(f"{what}: item {int(np.argmax(np.bincount(row) > 1))} comes twice")
    return rows.reshape(found.shape)


def check_scores(scores: ArrayLike, n: int | None = None, name: str = "scores") -> np.ndarray:
    """Score vectors as an array of float; refuse a wrong number of items and what is not finite.

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
    """Orders of score vectors, best first; tied items in the order of their numbers.

    Examples
    --------
    >>> orders_of(np.array([0.1, 0.9, 0.1])).tolist()
    [1, 0, 2]
    """
    return np.argsort(-np.asarray(scores), axis=-1, kind="stable")


def by_item(ranked: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Values by rank handed to the items at these ranks: ``out[..., σ(j)] = ranked[..., j]``."""
    out = np.empty(orders.shape, dtype=ranked.dtype)
    np.put_along_axis(out, orders, ranked, axis=-1)
    return out


def all_subsets(n: int) -> np.ndarray:
    """All subsets of n items as rows of masks; row s holds item i where bit i of s is set."""
    return (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1


def as_mask(subset: ArrayLike, n: int | None) -> np.ndarray:
    """A subset as a mask, from a mask of n booleans or, where n is known, from a list or set of items."""
    found = np.asarray(sorted(subset) if isinstance(subset, (set, frozenset)) else subset)
    if found.dtype == bool and found.ndim == 1 and found.size:
        if n is not None and found.size != n:
            raise InputError(f"the mask of a subset must have {n} entries, got {found.size}")
        return found
    if n is None:
        raise InputError(
            "pass the subset as a mask, one boolean per item: this function works for any number of items"
        )
    if found.ndim != 1 or (
        found.size and (found.dtype.kind not in "iu" or len(np.unique(found)) < found.size)
    ):
        raise InputError("a subset must be a list of different items, or a mask of one boolean per item")
    if found.size and not (found.min() >= 0 and found.max() < n):
        raise InputError(f"items are numbered from 0 to {n - 1}, got {found.tolist()}")
    mask = np.zeros(n, dtype=bool)
    mask[found.astype(np.intp)] = True
    return mask
