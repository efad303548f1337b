"""Segmented operations: isotonic regression by pooling adjacent violators (PAV), running sums, sorting.

Rows are sorted by group: segment ``q`` has the rows ``indptr[q]:indptr[q + 1]``. A block is a run of rows that share
one fitted value, their weighted mean. Each row starts a block, and a block that is not above the previous one is pooled
with it. Ties are pooled too, so blocks are the level sets of the fit.

Sums are taken of differences from the block's first value, never of the values themselves, so that scores far from zero
keep their precision, and a row alone in its block keeps its exact value.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.kernels.jit import kernel

NO_WEIGHTS = np.empty(0)
FEW = 32  # segments up to this length are sorted by insertion


class Blocks(NamedTuple):
    """Fitted value of each row and the number of its block, counted from 0 over all segments."""

    fitted: np.ndarray
    block: np.ndarray


def pav(
    y: ArrayLike,
    indptr: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    *,
    increasing: bool = True,
    lower: float | None = None,
    upper: float | None = None,
) -> np.ndarray:
    """Isotonic regression of segments: ``argmin_v Σ_i w_i (v_i − y_i)²`` over ``lower ≤ v_1 ≤ v_2 ≤ … ≤ upper``.

    The bounded fit is the unbounded one, clipped.

    Parameters
    ----------
    y : array-like of shape (n,)
        Values. Infinite values are treated as limits (a block that contains −∞ is −∞); NaN makes its block NaN.
    indptr : array-like of shape (n_segments + 1,), optional
        Bounds of the segments, which may be empty; by default all rows form one segment.
    weight : array-like of shape (n,), optional
        Non-negative weights, one by default. A row of weight 0 has no influence: it joins the block of the row before
        it, or the first block if no row before it has weight. Only ratios within a segment count, so a segment whose
        weights are all 0 is fitted with equal weights.
    increasing : bool
        False fits ``v_1 ≥ v_2 ≥ …``.
    lower, upper : float, optional
        Bounds on every fitted value.

    Returns
    -------
    ndarray of shape (n,)
        Fitted values, exactly monotone.

    Examples
    --------
    >>> pav([3.0, 1.0, 4.0, 2.0, 0.0], [0, 3, 5]).tolist()
    [2.0, 2.0, 4.0, 1.0, 1.0]
    >>> pav([3.0, 1.0, 4.0], weight=[1.0, 3.0, 1.0], upper=2.5).tolist()
    [1.5, 1.5, 2.5]
    """
    return clip(pav_blocks(y, indptr, weight, increasing=increasing).fitted, lower, upper)


def pav_blocks(
    y: ArrayLike,
    indptr: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    *,
    increasing: bool = True,
) -> Blocks:
    """Return the unbounded fit of :func:`pav` and its blocks of equal values.

    While the blocks do not change, the fit is linear in ``y``: the derivative of row i with respect to ``y_j`` is
    ``w_j / Σ_{k in block} w_k`` for j in its block, and 0 elsewhere.

    Examples
    --------
    >>> fitted, block = pav_blocks([3.0, 1.0, 4.0, 2.0, 0.0], [0, 3, 5])
    >>> block.tolist()
    [0, 0, 1, 2, 2]
    """
    values = np.ascontiguousarray(y, dtype=float)
    if values.ndim != 1:
        raise InputError(f"y must be one-dimensional, got shape {values.shape}")
    bounds = check_indptr(indptr, len(values))
    weights = NO_WEIGHTS if weight is None else check_row_weight(weight, len(values))
    fitted, block = np.empty(len(values)), np.empty(len(values), dtype=np.intp)
    _fit_segments(values, bounds, weights, 1.0 if increasing else -1.0, fitted, block)
    return Blocks(fitted, block)


def clip(values: np.ndarray, lower: float | None, upper: float | None) -> np.ndarray:
    """Clip ``values`` to the given bounds."""
    if lower is None and upper is None:
        return values
    low, high = -math.inf if lower is None else lower, math.inf if upper is None else upper
    if not low <= high:
        raise InputError(f"`lower` must not exceed upper, got {lower!r} and {upper!r}")
    return np.clip(values, low, high)


def check_indptr(indptr: ArrayLike | None, n: int) -> np.ndarray:
    """Return the bounds of the segments as an array; raise InputError unless they partition n rows."""
    if indptr is None:
        return np.array([0, n], dtype=np.intp)
    bounds = np.asarray(indptr)
    if bounds.ndim != 1 or bounds.size == 0 or bounds.dtype.kind not in "iu":
        raise InputError("`indptr` must be integers: the first row of each segment, and the end")
    bounds = np.ascontiguousarray(bounds, dtype=np.intp)
    if bounds[0] != 0 or bounds[-1] != n or (bounds.size > 1 and np.diff(bounds).min() < 0):
        raise InputError(f"`indptr` must rise from 0 to the number of rows, {n}")
    return bounds


def check_row_weight(weight: ArrayLike, n: int) -> np.ndarray:
    """Return weights as an array; raise InputError unless they are n finite numbers of at least 0."""
    weights = np.ascontiguousarray(weight, dtype=float)
    if weights.shape != (n,):
        raise InputError(f"`weight` needs one number per row: expected {n}, got shape {weights.shape}")
    if n and not (weights.min() >= 0 and weights.max() < math.inf):  # nan fails both
        raise InputError("`weight` must be finite and not negative")
    return weights


@kernel()
def _fit_segments(y, indptr, weight, sign, fitted, block):
    longest = 0
    for q in range(indptr.size - 1):
        longest = max(longest, indptr[q + 1] - indptr[q])
    start = np.empty(longest + 1, np.intp)
    mass, moment, mean = np.empty(longest), np.empty(longest), np.empty(longest)
    n_blocks = 0
    for q in range(indptr.size - 1):
        first, last = indptr[q], indptr[q + 1]
        # only ratios of weights count within a segment: if all are 0, fit it with equal weights
        weighted = False
        for i in range(first, min(last, weight.size)):
            weighted = weighted or weight[i] > 0.0
        count = _pool(y, first, last, weight, weighted, sign, start, mass, moment, mean)
        start[count] = last
        for b in range(count):
            for i in range(start[b], start[b + 1]):
                fitted[i] = mean[b]
                block[i] = n_blocks
            n_blocks += 1


@kernel()
def _pool(y, first, last, weight, weighted, sign, start, mass, moment, mean):
    """Pool rows first:last into blocks and return their number; ``moment`` is ``Σ w·(y − y[start])`` of a block."""
    count = 0
    for i in range(first, last):
        w = weight[i] if weighted else 1.0
        if w == 0.0:
            continue  # absorbed by the block before it, or the first one, because only starts bound blocks
        begin, total, value = i, 0.0, y[i]
        # each row enters a block once and each block is pooled once, so both loops together take linear time
        while count > 0 and sign * mean[count - 1] >= sign * value:
            count -= 1
            if math.isfinite(mean[count] + value):
                # the moment is relative to the first value of the pooled block: Σ w·(y − y₀) keeps its precision
                # however far y is from zero
                total += moment[count] + w * (y[begin] - y[start[count]])
                w += mass[count]
                value = y[start[count]] + total / w
            else:
                value += mean[count]  # an infinite value dominates finite ones, and ∞ − ∞ is nan
            begin = start[count]
        start[count], mass[count], moment[count], mean[count] = begin, w, total, value
        count += 1
    if count > 0:
        start[0] = first  # rows of weight 0 before the first block
    return count


def running_sums(values: np.ndarray, indptr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute running sums within each segment, exclusive and inclusive.

    The sums of a segment are not affected by rounding errors of the others, however large their values are.

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


def sort_inside(values: np.ndarray, indptr: np.ndarray, *, stable: bool = True) -> np.ndarray:
    """Return positions that sort the values within each segment, lowest first; ties keep their order if ``stable``.

    Examples
    --------
    >>> sort_inside(np.array([3.0, 1.0, 2.0, 0.0]), np.array([0, 2, 4])).tolist()
    [1, 0, 3, 2]
    """
    if len(indptr) == 2 and not stable:
        return np.argsort(values)  # faster for a long segment
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
        # mergesort is numba's stable sort; insertion is faster for short lists, which most queries are
        if last - first > FEW:
            order[first:last] = first + np.argsort(values[first:last], kind="mergesort")
            continue
        for i in range(first, last):
            value, j = values[i], i
            while j > first and values[order[j - 1]] > value:
                order[j] = order[j - 1]
                j -= 1
            order[j] = i
