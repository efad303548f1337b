"""Exact total-variation denoising of sequences in linear time, by dynamic programming (Johnson 2013).

Let ``m_i(b)`` be the minimal cost of x_1 … x_i with ``x_i = b``. Its derivative is piecewise linear and increasing, and

    m_{i+1}'(b) = clip(m_i'(b), −t, t) + b − y_{i+1}:

x_i is b if ``|m_i'(b)| ≤ t``, and the point where m_i' is ∓t otherwise. Clipping removes knots from both ends and adds
one at each, so all steps together take linear time. Backwards from the end, each x is its successor clipped to the two
points of its step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.kernels.jit import kernel
from apexrank.validation import check_finite


def total_variation(y: ArrayLike, strength: float) -> np.ndarray:
    """Denoise each row of y: ``argmin_x ½ Σ_i (x_i − y_i)² + strength·Σ_i |x_i − x_{i+1}|``.

    Parameters
    ----------
    y : array-like of shape (n,) or (r, n)
        Finite numbers.
    strength : float
        At least 0.

    Examples
    --------
    >>> total_variation([0.0, 4.0, 5.0, 5.0], 1.0).tolist()
    [1.0, 4.0, 4.5, 4.5]
    """
    values = np.asarray(y, dtype=float)
    check_finite("strength", strength, 0)
    if values.ndim not in (1, 2) or values.size == 0 or not np.isfinite(values).all():
        raise InputError("y must be finite numbers, one sequence or a table of one per row")
    rows = np.ascontiguousarray(np.atleast_2d(values))
    if strength == 0:
        return values.copy()
    # sums of differences from the first value preserve precision for sequences far from zero
    out = np.empty(rows.shape)
    _denoise(rows - rows[:, :1], float(strength), out)
    return (out + rows[:, :1]).reshape(values.shape)


@kernel()
def _denoise(y, t, out):
    n = y.shape[1]
    # knots, and changes of the derivative's slope and offset to their right; n entries for each direction
    at, slope, offset = np.empty(2 * n), np.empty(2 * n), np.empty(2 * n)
    lower, upper = np.empty(n), np.empty(n)
    for r in range(y.shape[0]):
        _denoise_one(y[r], t, at, slope, offset, lower, upper, out[r])


@kernel()
def _denoise_one(y, t, at, slope, offset, lower, upper, x):
    n = y.size
    first, last = n, n - 1  # knots first … last
    left_slope, left_offset = 1.0, -y[0]  # the derivative left and right of all knots
    right_slope, right_offset = 1.0, -y[0]
    for i in range(n - 1):
        # the derivative is clipped at −t: knots below are dropped permanently, so all steps together are linear
        while first <= last and left_slope * at[first] + left_offset <= -t:
            left_slope += slope[first]
            left_offset += offset[first]
            first += 1
        lower[i] = (-t - left_offset) / left_slope
        while last >= first and right_slope * at[last] + right_offset >= t:
            right_slope -= slope[last]
            right_offset -= offset[last]
            last -= 1
        upper[i] = (t - right_offset) / right_slope
        first -= 1
        at[first], slope[first], offset[first] = lower[i], left_slope, left_offset + t
        last += 1
        at[last], slope[last], offset[last] = upper[i], -right_slope, t - right_offset
        left_slope, left_offset = 1.0, -t - y[i + 1]
        right_slope, right_offset = 1.0, t - y[i + 1]
    # the last x is the zero of the derivative of the total cost
    while first <= last and left_slope * at[first] + left_offset <= 0.0:
        left_slope += slope[first]
        left_offset += offset[first]
        first += 1
    x[n - 1] = -left_offset / left_slope
    for i in range(n - 2, -1, -1):
        x[i] = min(max(x[i + 1], lower[i]), upper[i])
