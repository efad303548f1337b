"""Cuts of weighted graphs, ``f(X) = Σ_{i in X, j outside} d_ij`` (Iyer and Bilmes 2013, eq. 17 and Table 1, row 5).

The extension is ``f̂(x) = Σ_ij d_ij·max(0, x_i − x_j)``, so a link i → j gives d_ij to i and takes it from j wherever i
stands above j, and half of it where they are tied.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from apexrank.errors import InputError
from apexrank.kernels.jit import kernel
from apexrank.submodular.base import SetFunction, by_item


@dataclass(frozen=True)
class ByPairs(SetFunction):
    """Base class of the functions whose subgradient is a sum over pairs: the gains are that of the ranks."""

    def _gains(self, orders: np.ndarray) -> np.ndarray:
        n = orders.shape[-1]
        height = by_item(np.broadcast_to(np.arange(n, 0.0, -1), orders.shape), orders)
        return np.take_along_axis(self._subgradient(height), orders, axis=-1)

    def _extension(self, x: np.ndarray) -> np.ndarray:
        return np.einsum("...i,...i->...", x, self._subgradient(x))

    def _values(self, masks: np.ndarray) -> np.ndarray:
        return self._extension(masks.astype(float))


@dataclass(frozen=True, eq=False)
class Cut(ByPairs):
    """``f(X) = Σ_{i in X, j outside} d_ij``: one pass over the links for each order.

    The divergence is the sum of ``d_ij·|x_i − x_j|`` over all i and j in opposite order in x and σ: with symmetric
    weights a pair counts twice, which eq. 17 forgets. One-way weights make partial orders and AUC.

    Parameters
    ----------
    weights : array-like or scipy sparse matrix of shape (n, n)
        ``d_ij ≥ 0`` from i to j, symmetric or not. The diagonal cuts nothing and is left out.

    Examples
    --------
    >>> f = Cut([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    >>> f.gains([1, 0, 2]).tolist(), f([0, 1])
    ([3.0, -2.0, -1.0], 1.0)
    """

    name: ClassVar[str] = "cut"
    weights: Any = field(repr=False)

    def __post_init__(self) -> None:
        given = self.weights if sparse.issparse(self.weights) else _dense(self.weights)
        if given.ndim != 2 or given.shape[0] != given.shape[1] or given.shape[0] == 0:
            raise InputError(
                f"weights must be a square matrix, one row and column per item, got shape {given.shape}"
            )
        links = sparse.coo_array(given).astype(float)
        keep = (links.row != links.col) & (links.data != 0)
        links = sparse.csr_array((links.data[keep], (links.row[keep], links.col[keep])), shape=given.shape)
        links.sum_duplicates()
        if links.nnz and not (links.data.min() >= 0 and links.data.max() < np.inf):  # nan fails both
            worst = links.data[~(links.data >= 0) | np.isinf(links.data)][0]
            raise InputError(
                f"weights must be finite and not negative, got {worst}: such a cut is not submodular"
            )
        object.__setattr__(self, "weights", links)

    @property
    def n(self) -> int:
        return int(self.weights.shape[0])

    def last_gains(self, n: int) -> np.ndarray:
        return -np.asarray(self.weights.sum(axis=0), dtype=float)

    def _subgradient(self, y: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(y.reshape(-1, self.n))
        out = np.zeros(rows.shape)
        _cut_subgradients(self.weights.indptr, self.weights.indices, self.weights.data, rows, out)
        return out.reshape(y.shape)


@dataclass(frozen=True)
class Chain(ByPairs):
    """``f(X) = Σ_i |1[i in X] − 1[i + 1 in X]|``, the cut of a path.

    ``f̂(x) = Σ_i |x_i − x_{i+1}|`` is the total variation. The items have a natural order, say in time, and
    neighbours are compared.

    Examples
    --------
    >>> Chain().gains([1, 0, 2]).tolist()
    [2.0, -1.0, -1.0]
    """

    name: ClassVar[str] = "chain"

    @property
    def monotone(self) -> bool:
        return False

    def last_gains(self, n: int) -> np.ndarray:
        neighbours = np.full(n, 2.0)
        neighbours[0] -= 1.0
        neighbours[-1] -= 1.0
        return -neighbours

    def _subgradient(self, y: np.ndarray) -> np.ndarray:
        step = np.subtract(y[..., :-1] > y[..., 1:], y[..., :-1] < y[..., 1:], dtype=float)
        out = np.zeros(y.shape)
        out[..., :-1] += step
        out[..., 1:] -= step
        return out


def _dense(weights: Any) -> np.ndarray:
    try:
        return np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        raise InputError("weights must be a square matrix of numbers") from None


@kernel()
def _cut_subgradients(indptr, indices, data, keys, out):
    for r in range(keys.shape[0]):
        key, h = keys[r], out[r]
        for i in range(indptr.size - 1):
            total = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                d = data[e] * 0.5 * ((key[i] > key[j]) + (key[i] >= key[j]))
                total += d
                h[j] -= d
            h[i] += total
