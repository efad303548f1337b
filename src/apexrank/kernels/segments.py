"""Running sums that start anew in every segment."""

from __future__ import annotations

import numpy as np

from apexrank.kernels.jit import kernel


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


@kernel()
def _running_sums(values, indptr, before, through):  # pragma: no cover
    for q in range(indptr.size - 1):
        total = 0.0
        for i in range(indptr[q], indptr[q + 1]):
            before[i] = total
            total += values[i]
            through[i] = total
