"""Projection onto the permutahedron of y, the convex hull of all permutations of its values, by one sort and one PAV.

For z in increasing order and y sorted upwards, ``argmin_{v in P(y)} |v − z|² = z − PAV(z − y↑)`` (the mirror image of
the usual form with decreasing orders). On a block of PAV it is ``v = z − mean z + mean y↑`` and is computed in this
form: a row alone in its block gets exactly its y, however large z is.

A row of weight c represents c equal rows, also for fractional c. Copies of a row are tied in z, so PAV pools them: it
is enough to give a row the mean of the values its copies would have, the mean of the step function of y (each value as
wide as its row's weight) over the row's interval of cumulative weight.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.kernels.jit import kernel
from apexrank.kernels.pav import check_indptr, pav_blocks, sort_inside


class PermutahedronFit(NamedTuple):
    """Projection of each row, and the number of its block of rows that move together."""

    values: np.ndarray
    block: np.ndarray


class SortedFit(NamedTuple):
    """Result of :meth:`Staircase.project`, sorted by segment and score."""

    order: np.ndarray  # positions of the rows in the staircase
    theta: np.ndarray
    values: np.ndarray  # v
    # lowest and highest value of y in a row's interval of weight; both are y↑ itself without weights
    low: np.ndarray
    high: np.ndarray
    block: np.ndarray


def onto_permutahedron(
    z: ArrayLike, y: ArrayLike, indptr: ArrayLike | None = None, weight: ArrayLike | None = None
) -> PermutahedronFit:
    """Project each segment onto the permutahedron of its y: ``argmin_v Σ_i c_i (v_i − z_i)²``.

    Parameters
    ----------
    z, y : array-like of shape (n,)
        Finite numbers.
    indptr : array-like of shape (n_segments + 1,), optional
        Bounds of the segments, which may be empty; by default all rows form one segment.
    weight : array-like of shape (n,), optional
        Weights c > 0; a row of weight 2 counts as two rows, in z and in y.

    Examples
    --------
    >>> onto_permutahedron([0.0, 5.0, 1.0], [1.0, 2.0, 3.0]).values.tolist()
    [1.0, 3.0, 2.0]
    >>> onto_permutahedron([0.0, 0.5, 0.1], [1.0, 2.0, 3.0]).values.round(6).tolist()
    [1.8, 2.3, 1.9]
    """
    scores, values = _finite("z", z), _finite("y", y)
    if scores.shape != values.shape:
        raise InputError(f"`z` and `y` need one number per row each: got {len(scores)} and {len(values)}")
    bounds = check_indptr(indptr, len(values))
    weights = None if weight is None else _check_weight(weight, len(values))
    upwards = sort_inside(values, bounds)
    steps = Staircase(values[upwards], bounds, None if weights is None else weights[upwards])
    fit = steps.project(scores[upwards])
    rows, out = upwards[fit.order], np.empty(len(values))
    out[rows], block = fit.values, np.empty(len(values), dtype=np.intp)
    block[rows] = fit.block
    return PermutahedronFit(out, block)


class Staircase:
    """Values of y sorted upwards within each segment, prepared for repeated projections.

    Parameters
    ----------
    y : array of shape (n,)
        Values sorted upwards within each segment.
    indptr : array of shape (n_segments + 1,)
        Bounds of the segments.
    weight : array of shape (n,), optional
        Positive weight of each value.

    Examples
    --------
    >>> Staircase(np.array([1.0, 2.0, 3.0]), np.array([0, 3])).project(np.array([9.0, 1.0, 5.0])).values.tolist()
    [1.0, 2.0, 3.0]
    """

    def __init__(self, y: np.ndarray, indptr: np.ndarray, weight: np.ndarray | None = None) -> None:
        self.y, self.indptr = np.ascontiguousarray(y, dtype=float), indptr
        self.weight = None if weight is None or np.all(weight == 1.0) else weight

    def project(self, theta: np.ndarray, s: float = 1.0) -> SortedFit:
        """Project ``theta/s``, with theta in the order of the rows of y.

        With s = 0 it is the limit: y in the order of theta, where rows of equal theta share the mean of their values.
        """
        order = sort_inside(
            theta, self.indptr, stable=False
        )  # ties are pooled, so their order does not matter
        theta = theta[order]
        mean = low = high = self.y
        c = None
        if self.weight is not None:
            c = self.weight[order]
            mean, low, high = (np.empty(len(theta)) for _ in range(3))
            _share_out(self.y, self.weight, c, self.indptr, mean, low, high)
        block = pav_blocks(theta - s * mean, self.indptr, c).block
        values = np.empty(len(theta))
        _move_blocks(theta, mean, np.empty(0) if c is None else c, block, s, values)
        return SortedFit(order, theta, values, low, high, block)


def _finite(name: str, values: ArrayLike) -> np.ndarray:
    numbers = np.ascontiguousarray(values, dtype=float)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise InputError(f"{name} must be a one-dimensional array of finite numbers")
    return numbers


def _check_weight(weight: ArrayLike, n: int) -> np.ndarray:
    weights = np.ascontiguousarray(weight, dtype=float)
    if weights.shape != (n,) or (n and not (weights.min() > 0 and weights.max() < math.inf)):
        raise InputError(
            f"`weight` needs a finite number above 0 for each of {n} rows: drop rows of weight 0"
        )
    return weights


@kernel()
def _share_out(y, width, c, indptr, mean, low, high):
    """Compute mean, minimum and maximum of the step function (y, width) over consecutive intervals of lengths c."""
    for q in range(indptr.size - 1):
        first, last = indptr[q], indptr[q + 1]
        step = first
        left = width[first] if first < last else 0.0
        for i in range(first, last):
            if left <= 0.0 and step < last - 1:
                step += 1
                left = width[step]
            wanted, begin, moment = c[i], step, 0.0
            while True:
                # the last step absorbs rounding errors of the cumulative weights
                part = min(wanted, left) if step < last - 1 else wanted
                moment += part * (y[step] - y[begin])
                wanted -= part
                left -= part
                if wanted <= 0.0:
                    break
                step += 1
                left = width[step]
            mean[i], low[i], high[i] = y[begin] + moment / c[i], y[begin], y[step]


@kernel()
def _move_blocks(theta, mean, c, block, s, values):
    """Compute ``v = (θ − mean θ)/s + mean y`` on each block, by differences from the block's first row."""
    n, start = theta.size, 0
    while start < n:
        end, mass, of_theta, of_mean = start, 0.0, 0.0, 0.0
        while end < n and block[end] == block[start]:
            w = c[end] if c.size > 0 else 1.0
            mass += w
            of_theta += w * (theta[end] - theta[start])
            of_mean += w * (mean[end] - mean[start])
            end += 1
        centre = of_theta / mass
        for i in range(start, end):
            moved = (theta[i] - theta[start]) - centre
            # at s = 0 all thetas of a block are equal: they share its mean, and 0/0 does not occur
            values[i] = mean[start] + of_mean / mass + (moved / s if moved != 0.0 else 0.0)
        start = end
