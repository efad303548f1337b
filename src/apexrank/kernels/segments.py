"""Running sums and sorting inside each of many segments."""

from __future__ import annotations

import numpy as np

from apexrank.kernels.jit import kernel

FEW = 32  # values that are sorted by insertion


def running_sums(values: np.ndarray, indptr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums over the segment's values before each one, and up to it.

    A segment's sums see nothing of the others, however large their values are.

    Examples
    --------
    >>> before, through = running_sums(np.array([1e17, 1.0, 2.0]), np.array([0, 1, 3]))
    >>> before.tolist(), through.tolist()
    ([0.0, 0.0, 1.0], [1e+17, 1.0, 3.0])
    """
    values = np.asarray(values, dtype=np.float64)
    if len(indptr) == 2:
        total = np.empty(len(values) + 1)
        total[0] = 0.0
        np.cumsum(values, out=total[1:])
        return total[:-1], total[1:]
    before, through = np.empty(len(values)), np.empty(len(values))
    _running_sums(values, np.asarray(indptr, dtype=np.int64), before, through)
    return before, through


def sort_inside(values: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Positions that sort the values inside each segment, lowest first; equal ones keep their order.

    Examples
    --------
    >>> sort_inside(np.array([3.0, 1.0, 2.0, 0.0]), np.array([0, 2, 4])).tolist()
    [1, 0, 3, 2]
    """
    order = np.empty(len(values), dtype=np.intp)
    _sort_inside(values, indptr, order)
    return order


@kernel()
def _running_sums(values, indptr, before, through):
    for q in range(indptr.size - 1):
        total = 0.0
        for i in range(indptr[q], indptr[q + 1]):
            before[i] = total
            total += values[i]
            through[i] = total


@kernel()
def _sort_inside(values, bounds, order):
    for q in range(bounds.size - 1):
        first, last = bounds[q], bounds[q + 1]
        # mergesort is numba's stable sort; insertion is faster on lists of a few rows, which most queries are
        if last - first > FEW:
            order[first:last] = first + np.argsort(values[first:last], kind="mergesort")
            continue
        for i in range(first, last):
            value, j = values[i], i
            while j > first and values[order[j - 1]] > value:
                order[j] = order[j - 1]
                j -= 1
            order[j] = i
