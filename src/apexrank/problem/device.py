"""Rows on a device, as a design: only w, the gradient and a few numbers cross, or the scores of all rows.

The solvers are those of the host; they see NumPy vectors of one entry per feature.
"""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from apexrank.kernels.rows import BOTH, RowSums
from apexrank.objectives.base import Objective
from apexrank.objectives.push import Scatter
from apexrank.problem.design import Design
from apexrank.problem.device_arrays import (
    Array,
    column_units,
    is_tensor,
    namespace,
    row_blocks,
    scores_on_device,
    to_device,
    to_host,
)
from apexrank.validation import check_not_huge


class ClassSums(NamedTuple):
    """For negatives and positives: ``log Σ u·exp(slope·s)`` and the mean row under these weights."""

    value: np.ndarray
    rows: np.ndarray


class DeviceRows:
    """Sums over the rows of a matrix on a device, in two passes over it: scores, then the weighted sum of rows.

    Everything is in double precision; of a matrix in single precision one block at a time is converted.
    """

    is_rough = False

    def __init__(self, X: Array, positive: Array, weight: Array | None) -> None:
        self.X, self.positive, self.xp = X, positive, namespace(X)
        self.log_weight = None if weight is None else self.xp.log(weight)

    def log_sum_exp(self, w: np.ndarray, slope: tuple[float, float]) -> ClassSums:
        """Sums of both classes, negatives first, for the exponents ``slope_c·s + log u``."""
        xp = self.xp
        tops, weights = self._softmaxes(w, slope)
        mass, rows = xp.sum(weights, axis=0), self._pull_back(weights)
        top, total, sums = (to_host(part) for part in (tops, mass, rows))
        with np.errstate(invalid="ignore", divide="ignore"):
            return ClassSums(top + np.log(total), sums.T / total[:, None])

    def _softmaxes(self, w: np.ndarray, slope: tuple[float, float]) -> tuple[Array, Array]:
        """Highest exponent of each class, and ``exp(exponent − highest)`` as columns, 0 outside the class."""
        xp = self.xp
        s = scores_on_device(self.X, w)
        tops, columns = [], []
        for factor, mask in zip(slope, (~self.positive, self.positive), strict=True):
            t = factor * s if self.log_weight is None else factor * s + self.log_weight
            t = xp.where(mask, t, xp.full_like(t, -np.inf))
            tops.append(xp.max(t))
            columns.append(xp.exp(t - tops[-1]))
        return xp.stack(tops), xp.stack(columns, axis=1)

    def _pull_back(self, columns: Array) -> Array:
        """``Xᵀ @ columns``."""
        xp = self.xp
        return sum(xp.astype(self.X[block], xp.float64).T @ columns[block] for block in row_blocks(self.X))

    def softplus(self, w: np.ndarray, slope: tuple[float, float], shift: float) -> RowSums:
        """``Σ u·ln(1 + e^t)`` of both classes with ``t = slope_c·s + shift``, its mass, and the sum of rows."""
        xp, s = self.xp, scores_on_device(self.X, w)
        weight = xp.ones_like(s) if self.log_weight is None else xp.exp(self.log_weight)
        values, columns = [], []
        for factor, mask in zip(slope, (~self.positive, self.positive), strict=True):
            t = factor * s + shift
            e = xp.exp(-xp.abs(t))
            own = xp.where(mask, weight, xp.zeros_like(weight))
            values.append(xp.sum(own * (xp.where(t > 0, t, xp.zeros_like(t)) + xp.log1p(e))))
            columns.append(own * xp.where(t > 0, xp.ones_like(e), e) / (1 + e))
        shares = xp.stack(columns, axis=1)
        rows = to_host(self._pull_back(shares)).T
        return RowSums(to_host(xp.stack(values)), to_host(xp.sum(shares, axis=0)), rows)

    def scatter(self, w: np.ndarray, terms: list[Scatter]) -> np.ndarray:
        """Sums of outer products of rows less their centre, stacked."""
        xp, s = self.xp, scores_on_device(self.X, w)
        total = np.zeros((len(terms), self.X.shape[1], self.X.shape[1]))
        for number, term in enumerate(terms):
            t, centre = term.slope * s + term.shift, to_device(term.centre, self.X)
            if term.softplus:
                e = xp.exp(-xp.abs(t))
                c = e / (1 + e) ** 2
                c = c if self.log_weight is None else c * xp.exp(self.log_weight)
            else:
                c = xp.exp(t if self.log_weight is None else t + self.log_weight)
            c = xp.where(self.positive if term.label == 1 else ~self.positive, c, xp.zeros_like(c))
            gram = sum(
                _weighted_gram(xp.astype(self.X[block], xp.float64) - centre, c[block])
                for block in row_blocks(self.X)
            )
            total[number] = to_host(gram)
        return total


def _weighted_gram(Z: Array, weight: Array) -> Array:
    return (Z * weight[:, None]).T @ Z


class DeviceSums:
    """The sums of :class:`apexrank.kernels.rows.RowSummer` at one point, on a device."""

    def __init__(self, rows: Any, exact: DeviceRows, w: np.ndarray) -> None:
        self.rows, self.exact, self.w = rows, exact, w

    def log_sum_exp(self, slope: ArrayLike, active: ArrayLike = BOTH) -> RowSums:
        low, high = np.asarray(slope, dtype=float).tolist()
        value, rows = self.rows.log_sum_exp(self.w, (low, high))
        return RowSums(value, np.ones(2), rows)

    def softplus(self, slope: ArrayLike, shift: float, active: ArrayLike = BOTH) -> RowSums:
        low, high = np.asarray(slope, dtype=float).tolist()
        return self.exact.softplus(self.w, (low, high), float(shift))

    def scatter(self, terms: list[Scatter]) -> np.ndarray:
        return self.exact.scatter(self.w, terms)


class DeviceDesign(Design):
    """Rows of a PyTorch tensor, CuPy array, or array of another library that follows the array API standard.

    With labels, an objective of two rows that stream (see :class:`~apexrank.problem.block_design.BlockDesign`) is
    evaluated on the device: only w, the gradient and a few numbers cross. A row-major CUDA matrix of up to 1024 columns
    is then read once per value and gradient where Triton is there (:mod:`apexrank.problem.triton_rows`); everything
    else takes two passes. Any other objective is evaluated on the host, on the scores of all rows.

    Parameters
    ----------
    X : array of shape (n, d)
    positive, weight : arrays on the device of X, optional
        Which rows are positive, and their weights.
    fused : bool
        False: two passes also where one would do.

    Examples
    --------
    >>> import torch
    >>> from apexrank.objectives import Push
    >>> from apexrank.problem import Problem
    >>> X = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    >>> design = DeviceDesign(X, torch.tensor([False, True]))
    >>> value, gradient = Problem(design, Push([True, False]), 1.0).value_and_grad(np.zeros(1))
    >>> value, gradient.tolist()
    (0.0, [-1.0])
    """

    def __init__(
        self, X: Array, positive: Array | None = None, weight: Array | None = None, fused: bool = True
    ) -> None:
        self.X, self.positive, self.weight, self.fused = X, positive, weight, fused
        self.n_rows, self.n_features = X.shape
        self.ends = _ends_of_columns(X)
        check_not_huge("X", self.ends)
        self._set_rows()

    def _set_rows(self) -> None:
        self.rows = self.exact = None
        if self.positive is not None:
            self.rows = rows_of(self.X, self.positive, self.weight, self.fused)
            self.exact = DeviceRows(self.X, self.positive, self.weight)

    @property
    def is_rough(self) -> bool:  # type: ignore[override]
        return self.rows is not None and self.rows.is_rough

    def device_scores(self, w: np.ndarray) -> Array:
        """Scores of the rows as given, where they are."""
        return scores_on_device(self.X, w) + self.offset(w)

    def scores(self, w: np.ndarray) -> np.ndarray:
        return to_host(scores_on_device(self.X, w))

    def pull_back(self, r: np.ndarray) -> np.ndarray:
        xp, r = namespace(self.X), to_device(r, self.X)
        return to_host(sum(xp.astype(self.X[b], xp.float64).T @ r[b] for b in row_blocks(self.X)))

    def curvature(self, centre: np.ndarray, weight: np.ndarray, U: Any) -> tuple[np.ndarray, np.ndarray]:
        """As everywhere; a sparse U is multiplied on the host, block by block."""
        xp, middle, c = namespace(self.X), to_device(centre, self.X), to_device(weight, self.X)
        on_host = sparse.issparse(U)
        U = U.tocsr() if on_host else to_device(U, self.X)
        gram, V = np.zeros((self.n_features, self.n_features)), np.zeros((self.n_features, U.shape[1]))
        for block in row_blocks(self.X):
            Z = xp.astype(self.X[block], xp.float64) - middle
            gram += to_host(_weighted_gram(Z, c[block]))
            V += (U[block].T @ to_host(Z)).T if on_host else to_host(Z.T @ U[block])
        return gram, V

    def column(self, j: int) -> np.ndarray:
        return to_host(self.X[:, j]).astype(np.float64)

    def take(self, rows: np.ndarray) -> np.ndarray:
        return to_host(self.X[to_device(rows, self.X), :]).astype(np.float64)

    def units(self, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
        return column_units(self.X, sample_weight)

    def varies(self) -> np.ndarray:
        return self.ends[0] < self.ends[1]

    def moved(self, shift: np.ndarray) -> Self:
        other, there = copy(self), to_device(shift, self.X, self.X.dtype)
        other.X, other.shift = self.X - there, to_host(there).astype(np.float64)
        other._set_rows()
        return other

    def sums(self, objective: Objective, w: np.ndarray) -> DeviceSums | None:
        return None if self.exact is None else DeviceSums(self.rows, self.exact, w)

    def hessian(self, objective: Objective, w: np.ndarray, centre: np.ndarray) -> np.ndarray:
        if self.exact is None or not objective.streams:
            return super().hessian(objective, w, centre)
        return objective.stream_hessian(DeviceSums(self.exact, self.exact, w))

    def separated(self, objective: Objective, w: np.ndarray) -> bool:
        if self.positive is None:
            return super().separated(objective, w)
        xp, scores = namespace(self.X), scores_on_device(self.X, w)
        counted = xp.ones_like(self.positive) if self.weight is None else self.weight > 0
        infinite = xp.full_like(scores, np.inf)
        lowest = xp.min(xp.where(self.positive & counted, scores, infinite))
        highest = xp.max(xp.where(~self.positive & counted, scores, -infinite))
        return objective.separated(np.array([float(lowest), float(highest)]))


def _ends_of_columns(X: Array) -> np.ndarray:
    """Least and largest number of each column."""
    xp = namespace(X)
    return to_host(xp.stack([xp.min(X, axis=0), xp.max(X, axis=0)]))


def ends_of_weights(weight: Array) -> tuple[float, float]:
    """The smallest weight that is not 0, and the largest."""
    xp = namespace(weight)
    counted = xp.where(weight > 0, weight, xp.full_like(weight, np.inf))
    return float(xp.min(counted)), float(xp.max(weight))


def rows_of(X: Array, positive: Array, weight: Array | None, fused: bool = True) -> Any:
    """Sums over rows in one pass where there is a kernel for X, in two elsewhere."""
    if fused and (X.is_cuda if is_tensor(X) else hasattr(X, "__cuda_array_interface__")):
        from apexrank.problem.triton_rows import fused_rows

        rows = fused_rows(X, positive, weight)
        if rows is not None:
            return rows
    return DeviceRows(X, positive, weight)
