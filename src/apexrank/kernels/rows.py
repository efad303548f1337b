"""Sums over the rows of a dense matrix, weighted by a function of each row's score, in one pass over memory.

A row's score ``s = x·w`` decides its weight, and while the row is still in cache it is added to the weighted
sum. A linear model's value and gradient so cost one pass over X, where ``X @ w`` followed by ``X.T @ r`` costs two.

The rows are cut into chunks whose number does not depend on the number of threads, and the chunks' sums are
added in order: the result is the same to the last bit on one core and on many. The chunks run on Python threads,
not on numba's, because those end the process when it forks or when two threads call them at once.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numba
import numpy as np
from numba import njit

LOG_SUM_EXP, SOFTPLUS = 0, 1
MAX_CHUNKS, MIN_CHUNK_ROWS = 64, 1024
SMALL = 200_000  # entries of X below which threads cost more than they save
NO_WEIGHTS = np.empty(0)
HEADROOM = 30.0  # an exponent may pass the running maximum by this much before the sums are rescaled


class RowSums(NamedTuple):
    """For each class of rows: the value, the total weight, and the weighted sum of rows."""

    value: np.ndarray
    mass: np.ndarray
    rows: np.ndarray


def row_sums(
    X: np.ndarray,
    w: np.ndarray,
    label: np.ndarray,
    slope: tuple[float, float],
    shift: tuple[float, float] = (0.0, 0.0),
    kind: int = LOG_SUM_EXP,
    active: tuple[bool, bool] = (True, True),
    log_weight: np.ndarray | None = None,
) -> RowSums:
    """Sum over the rows of each class c of the exponent ``t = slope_c·(x·w) + shift_c``, weight u.

    ``LOG_SUM_EXP``: value ``log Σ u·exp(t)``; weights ``softmax(t + log u)`` with mass 1.
    ``SOFTPLUS``: value ``Σ u·ln(1 + exp(t))``; weights ``u·sigmoid(t)``.
    Rows of a class that is not active are not read.
    """
    n, d = X.shape
    chunk = max(MIN_CHUNK_ROWS, -(-n // MAX_CHUNKS))
    n_chunks = -(-n // chunk)
    top = np.full((n_chunks, 2), -np.inf if kind == LOG_SUM_EXP else 0.0)
    value, mass, rows = np.zeros((n_chunks, 2)), np.zeros((n_chunks, 2)), np.zeros((n_chunks, 2, d))
    log_u = NO_WEIGHTS if log_weight is None else log_weight
    parameters = np.array(slope), np.array(shift), np.array(active)

    def work(first: int, last: int) -> None:
        _row_sums(X, w, label, *parameters, kind, log_u, chunk, first, last, top, value, mass, rows)

    _spread(work, n_chunks, serial=n * d < SMALL)
    if kind == LOG_SUM_EXP:
        return _merge_log_sums(top, mass, rows)
    return RowSums(value.sum(0), mass.sum(0), rows.sum(0))


def _spread(work, n_chunks: int, serial: bool) -> None:
    threads = 1 if serial else min(numba.config.NUMBA_NUM_THREADS, n_chunks)
    if threads == 1:
        work(0, n_chunks)
        return
    cuts = np.linspace(0, n_chunks, threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, cuts[:-1], cuts[1:]))


def _merge_log_sums(top: np.ndarray, mass: np.ndarray, rows: np.ndarray) -> RowSums:
    highest = top.max(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        rescale = np.where(top > -np.inf, np.exp(top - highest), 0.0)
        total = (mass * rescale).sum(axis=0)
        mean = np.einsum("ct,ctd->td", rescale, rows) / total[:, None]
        return RowSums(highest + np.log(total), np.ones(2), mean)


# reassociation lets the dot product use vector registers; infinities and nans keep their meaning
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _row_sums(  # pragma: no cover
    X, w, label, slope, shift, active, kind, log_u, chunk, first, last, top, value, mass, rows
):
    n, d = X.shape
    for b in range(first, last):
        for i in range(b * chunk, min(n, (b + 1) * chunk)):
            c = label[i]
            if not active[c]:
                continue
            x = X[i]
            s = 0.0
            for j in range(d):
                s += x[j] * w[j]
            t = slope[c] * s + shift[c]
            log_weight = log_u[i] if log_u.size > 0 else 0.0
            if log_weight == -np.inf:
                continue
            acc = rows[b, c]
            if kind == SOFTPLUS:
                u = math.exp(log_weight)
                value[b, c] += u * (max(t, 0.0) + math.log1p(math.exp(-abs(t))))
                q = u / (1.0 + math.exp(-t))
            else:
                t += log_weight
                if t > top[b, c] + HEADROOM:
                    shrink = math.exp(top[b, c] - t)
                    mass[b, c] *= shrink
                    for j in range(d):
                        acc[j] *= shrink
                    top[b, c] = t
                q = math.exp(t - top[b, c])
            mass[b, c] += q
            for j in range(d):
                acc[j] += q * x[j]
