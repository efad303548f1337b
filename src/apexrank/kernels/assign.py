"""Nearest of k centres for each row of a dense matrix, with costs linear in the row.

The cost of row x with mean x̄ at centre c is ``constant(x) + bias_c − (x − x̄)·slopes_c + pull·(x̄ − level_c)²``. While
a row is in the cache, its k products are computed, the smallest cost is found, and the row is added to the sum of its
centre: one pass over X without a copy. The mean is subtracted because rows far from zero would lose precision.

Products are computed for a block of rows at a time, transposed so that the rows lie side by side in vector registers.
Each is summed from the first item to the last, and the rows are divided into chunks whose number does not depend on the
number of threads: results are bit-identical for any number of cores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from apexrank.kernels.jit import kernel
from apexrank.kernels.rows import MAX_CHUNKS, MIN_CHUNK_ROWS
from apexrank.parallel import Threads, n_threads

SIDE_BY_SIDE = 32  # rows per block: whole vector registers, and the block stays in the L1 cache
AT_A_TIME = 4  # items added while a sum is in a register
SMALL = 1_000_000  # products below which threads cost more than they save


class Table(NamedTuple):
    """Rows (row-major), their means, and their constant terms of the cost."""

    X: np.ndarray
    means: np.ndarray
    constant: np.ndarray


class Costs(NamedTuple):
    """Costs of k centres: slopes of shape (k, items), bias and level of shape (k,), and the pull of the levels."""

    slopes: np.ndarray
    bias: np.ndarray
    level: np.ndarray
    pull: float


class Assignment(NamedTuple):
    """Nearest centre and cost of each row, weighted sum of costs, and weight and sum of rows by centre."""

    labels: np.ndarray
    costs: np.ndarray
    value: float
    mass: np.ndarray
    sums: np.ndarray


def assign(table: Table, weight: np.ndarray, centres: Costs) -> Assignment:
    """Assign each row to the centre of lowest cost, the first of tied ones; negative rounding errors are set to 0.

    Examples
    --------
    >>> X = np.array([[1.0, -1.0], [-2.0, 2.0], [-3.0, 3.0]])
    >>> table = Table(X, X.mean(axis=1), X.max(axis=1))
    >>> found = assign(table, np.ones(3), Costs(np.eye(2), np.zeros(2), np.zeros(2), 0.0))
    >>> found.labels.tolist(), found.sums.tolist()
    ([0, 1, 1], [[1.0, -1.0], [-5.0, 5.0]])
    """
    n, k = len(table.X), len(centres.bias)
    chunk = max(MIN_CHUNK_ROWS, -(-n // MAX_CHUNKS), 4 * k)  # the chunks' sums take at most a quarter of X
    n_chunks = -(-n // chunk)
    labels, costs = np.empty(n, np.int32), np.empty(n)
    value, mass, sums = np.zeros(n_chunks), np.zeros((n_chunks, k)), np.zeros((n_chunks, k, table.X.shape[1]))
    data, out = (table, _padded(centres), weight, chunk), (labels, costs, value, mass, sums)
    with _threads(table, k, n_chunks) as threads:
        threads.share_range(lambda a, b: _assign(*data, a, b, *out), n_chunks)
    return Assignment(labels, costs, float(value.sum()), mass.sum(axis=0), sums.sum(axis=0))


def all_costs(table: Table, centres: Costs) -> np.ndarray:
    """Compute the cost of every row at every centre, identical to the costs in :func:`assign`.

    Examples
    --------
    >>> X = np.array([[1.0, -1.0], [-2.0, 2.0]])
    >>> table = Table(X, X.mean(axis=1), X.max(axis=1))
    >>> all_costs(table, Costs(np.eye(2), np.zeros(2), np.zeros(2), 0.0)).tolist()
    [[0.0, 2.0], [4.0, 0.0]]
    """
    n, k = len(table.X), len(centres.bias)
    out = np.empty((n, k))
    n_chunks, padded = -(-n // MIN_CHUNK_ROWS), _padded(centres)
    with _threads(table, k, n_chunks) as threads:
        threads.share_range(lambda a, b: _all_costs(table, padded, a, b, out), n_chunks)
    return out


def _padded(centres: Costs) -> Costs:
    """Pad centres with items of slope 0 to a multiple of ``AT_A_TIME``."""
    more = -centres.slopes.shape[1] % AT_A_TIME
    return centres._replace(slopes=np.pad(centres.slopes, ((0, 0), (0, more))))


def _threads(table: Table, k: int, n_chunks: int) -> Threads:
    return Threads(1 if table.X.size * k < SMALL else min(n_threads(), n_chunks))


@kernel()
def _assign(table, centres, weight, chunk, first, last, labels, costs, value, mass, sums):
    n, n_items = table.X.shape
    block = np.zeros((centres.slopes.shape[1], SIDE_BY_SIDE))
    values = np.empty((centres.bias.size, SIDE_BY_SIDE))
    for b in range(first, last):
        end = min(n, (b + 1) * chunk)
        for start in range(b * chunk, end, SIDE_BY_SIDE):
            stop = min(end, start + SIDE_BY_SIDE)
            _block_costs(table.X, table.means, centres, start, stop, block, values)
            for i in range(start, stop):
                best = 0
                for c in range(1, centres.bias.size):
                    if values[c, i - start] < values[best, i - start]:
                        best = c
                labels[i] = best
                costs[i] = max(0.0, table.constant[i] + values[best, i - start])
                w = weight[i]
                value[b] += w * costs[i]
                mass[b, best] += w
                for j in range(n_items):
                    sums[b, best, j] += w * table.X[i, j]


@kernel()
def _all_costs(table, centres, first, last, out):
    block = np.zeros((centres.slopes.shape[1], SIDE_BY_SIDE))
    values = np.empty((centres.bias.size, SIDE_BY_SIDE))
    end = min(len(table.X), last * MIN_CHUNK_ROWS)
    for start in range(first * MIN_CHUNK_ROWS, end, SIDE_BY_SIDE):
        stop = min(end, start + SIDE_BY_SIDE)
        _block_costs(table.X, table.means, centres, start, stop, block, values)
        for i in range(start, stop):
            for c in range(centres.bias.size):
                out[i, c] = max(0.0, table.constant[i] + values[c, i - start])


@kernel()
def _block_costs(X, means, centres, start, stop, block, out):
    slopes, bias, level, pull = centres
    # transposed: the inner loops below run over rows, whose sums lie side by side in vector registers. Rows beyond
    # ``stop`` keep values of an earlier block, and their sums are never read
    for i in range(start, stop):
        mean = means[i]
        for j in range(X.shape[1]):
            block[j, i - start] = X[i, j] - mean
    for c in range(bias.size):
        sums = out[c]
        for r in range(SIDE_BY_SIDE):
            sums[r] = 0.0
        for j in range(0, slopes.shape[1], AT_A_TIME):
            # four items per pass: sums are loaded and stored a quarter as often, always in the same order
            s0, s1, s2, s3 = slopes[c, j], slopes[c, j + 1], slopes[c, j + 2], slopes[c, j + 3]
            for r in range(SIDE_BY_SIDE):
                sums[r] += (
                    s0 * block[j, r] + s1 * block[j + 1, r] + s2 * block[j + 2, r] + s3 * block[j + 3, r]
                )
        for i in range(start, stop):
            sums[i - start] = bias[c] - sums[i - start] + pull * (means[i] - level[c]) ** 2
