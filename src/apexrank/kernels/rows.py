"""Sums over the rows of a dense matrix, weighted by a function of each row's score, in one pass.

A row's score ``s = x·w`` determines its weight, and while the row is still in the cache it is added to the weighted
sum. So value and gradient of a linear model need one pass over X, whereas ``X @ w`` followed by ``X.T @ r`` needs two.

The rows are divided into chunks whose number does not depend on the number of threads, and the chunks' sums are added
in order: the result is bit-identical for any number of cores.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.kernels.jit import kernel
from apexrank.parallel import Threads, n_threads

MAX_CHUNKS, MIN_CHUNK_ROWS = 64, 1024
SMALL = 200_000  # number of entries of X below which threads cost more than they save
NO_WEIGHTS = np.empty(0)
HEADROOM = 30.0  # an exponent may exceed the running maximum by this much before the sums are rescaled
BOTH = (True, True)


class RowSums(NamedTuple):
    """Value, and total weight and weighted sum of rows of each class."""

    value: np.ndarray
    mass: np.ndarray
    rows: np.ndarray


class RowSummer:
    """Sums for an objective's :meth:`stream`, over the rows of X with scores ``s = X·w``.

    ``label`` is the class of each row, 0 or 1; ``log_weight`` is the logarithm of its weight u. Only rows of ``active``
    classes count.
    """

    def __init__(
        self, X: np.ndarray, w: np.ndarray, label: np.ndarray, log_weight: np.ndarray | None = None
    ) -> None:
        self.data = X, w, label
        self.log_u = NO_WEIGHTS if log_weight is None else log_weight
        n, d = X.shape
        self.chunk = max(MIN_CHUNK_ROWS, -(-n // MAX_CHUNKS))
        self.n_chunks = -(-n // self.chunk)
        self.threads = 1 if n * d < SMALL else min(n_threads(), self.n_chunks)

    def log_sum_exp(self, slope: ArrayLike, active: ArrayLike = BOTH) -> RowSums:
        """Compute ``log Σ u·exp(t)`` with ``t = slope_c·s``, with rows weighted by ``softmax(t + log u)``."""
        top, (mass, rows) = np.full((self.n_chunks, 2), -np.inf), self._zeros()
        parameters = *self.data, np.asarray(slope), np.asarray(active), self.log_u, self.chunk
        with Threads(self.threads) as threads:
            threads.share_range(
                lambda first, last: _log_sum_exp_rows(*parameters, first, last, top, mass, rows),
                self.n_chunks,
            )
        return merge_log_sums(top, mass, rows)

    def softplus(self, slope: ArrayLike, shift: float, active: ArrayLike = BOTH) -> RowSums:
        """Compute ``Σ u·ln(1 + exp(t))`` with ``t = slope_c·s + shift``, with rows weighted by ``u·sigmoid(t)``."""
        value, (mass, rows) = np.zeros((self.n_chunks, 2)), self._zeros()
        parameters = *self.data, np.asarray(slope), np.asarray(active), shift, self.log_u, self.chunk
        with Threads(self.threads) as threads:
            threads.share_range(
                lambda first, last: _softplus_rows(*parameters, first, last, value, mass, rows), self.n_chunks
            )
        return RowSums(value.sum(0), mass.sum(0), rows.sum(0))

    def _zeros(self) -> tuple[np.ndarray, np.ndarray]:
        """Allocate the mass and the sum of rows of each chunk and class."""
        return np.zeros((self.n_chunks, 2)), np.zeros((self.n_chunks, 2, self.data[0].shape[1]))


def merge_log_sums(top: np.ndarray, mass: np.ndarray, rows: np.ndarray) -> RowSums:
    """Merge the sums of chunks of both classes, each relative to its ``top``."""
    # chunks are merged in order, regardless of the threads, so that results are bit-identical
    highest = top.max(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        rescale = np.where(top > -np.inf, np.exp(top - highest), 0.0)
        total = (mass * rescale).sum(axis=0)
        mean = np.einsum("ct,ctd->td", rescale, rows) / total[:, None]
        return RowSums(highest + np.log(total), np.ones(2), mean)


# reassociation lets the dot product vectorise; infinities and nans are preserved
_FAST = {"reassoc", "contract", "nsz"}


@kernel(fastmath=_FAST)
def _log_sum_exp_rows(X, w, label, slope, active, log_u, chunk, first, last, top, mass, rows):
    n, d = X.shape
    weighted = log_u.size > 0
    for b in range(first, last):
        for i in range(b * chunk, min(n, (b + 1) * chunk)):
            c, x, s = label[i], X[i], 0.0
            for j in range(d):
                s += x[j] * w[j]
            # after the dot product, because memory is read fastest sequentially
            if not active[c]:
                continue
            t = slope[c] * s
            if weighted:
                t += log_u[i]
                if t == -np.inf:
                    continue
            # in a single pass the largest exponent is unknown: sums are relative to a running maximum, which is updated
            # only if exceeded by HEADROOM (far from overflow at e^709), as rescaling costs d products
            if t > top[b, c] + HEADROOM:
                shrink = math.exp(top[b, c] - t)
                mass[b, c] *= shrink
                for j in range(d):
                    rows[b, c, j] *= shrink
                top[b, c] = t
            q = math.exp(t - top[b, c])
            mass[b, c] += q
            for j in range(d):
                rows[b, c, j] += q * x[j]


@kernel(fastmath=_FAST)
def _softplus_rows(X, w, label, slope, active, shift, log_u, chunk, first, last, value, mass, rows):
    n, d = X.shape
    weighted = log_u.size > 0
    for b in range(first, last):
        for i in range(b * chunk, min(n, (b + 1) * chunk)):
            c, x, s = label[i], X[i], 0.0
            for j in range(d):
                s += x[j] * w[j]
            if not active[c]:
                continue
            t = slope[c] * s + shift
            u = math.exp(log_u[i]) if weighted else 1.0
            e = math.exp(-abs(t))  # ln(1 + e^t) = max(t, 0) + ln(1 + e^−|t|) never overflows
            value[b, c] += u * (max(t, 0.0) + math.log1p(e))
            q = u * (1.0 if t > 0 else e) / (1.0 + e)
            mass[b, c] += q
            for j in range(d):
                rows[b, c, j] += q * x[j]
