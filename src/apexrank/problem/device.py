"""Designs of rows on a device: PyTorch tensors, CuPy arrays, and other arrays of the array API standard.

Only w, the gradient and a few numbers are transferred, or the scores of all rows. The solvers run on the host, on NumPy
vectors with one entry per feature.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from apexrank.errors import InputError, warn
from apexrank.kernels.rows import BOTH, RowSums
from apexrank.objectives.base import Objective
from apexrank.objectives.push import Scatter
from apexrank.problem.design import SCALE_ROWS, Design, Make, Training, of_two_rows
from apexrank.validation import (
    check_not_huge,
    check_two_classes,
    check_weight_range,
    is_device_array,
    is_tensor,
    on_host,
)

Array = Any  # of any array library

BLOCK_BYTES = 2**28  # size of the rows, in double precision, processed at once


def namespace(X: Array) -> Any:
    """Array API functions for arrays like X."""
    return _compat().array_namespace(X)


def _compat() -> Any:
    for name in ("array_api_compat", "sklearn.externals.array_api_compat"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise InputError("arrays on a device need array-api-compat: pip install array-api-compat")


def to_device(values: Any, like: Array, dtype: Any = None) -> Array:
    """Convert values to an array on the device of ``like``."""
    xp = namespace(like)
    if is_device_array(values) and namespace(values) is not xp:
        values = to_host(values)
    if is_tensor(values):
        values = values.detach()  # no gradients are needed here
    moved = values if is_device_array(values) else xp.asarray(np.array(values, order="C"))
    moved = _compat().to_device(moved, _compat().device(like))
    return moved if dtype is None else xp.astype(moved, dtype)


def to_host(values: Any) -> np.ndarray:
    """Convert an array of any library to NumPy.

    Examples
    --------
    >>> to_host([1.0, 2.0])
    array([1., 2.])
    """
    return np.asarray(on_host(values))


def row_blocks(X: Array) -> Iterator[slice]:
    """Slices of rows small enough to copy in double precision."""
    rows = max(1, BLOCK_BYTES // (8 * max(1, X.shape[1])))
    return (slice(a, min(a + rows, X.shape[0])) for a in range(0, X.shape[0], rows))


def checked_matrix(X: Array) -> Array:
    """Check that X is a dense matrix of finite floating point numbers, and detach it from its gradient."""
    if is_tensor(X):
        X = X.detach()
        if str(X.layout) != "torch.strided":
            raise InputError(
                "a sparse tensor cannot be fitted: use X.to_dense(), or a SciPy matrix on the host"
            )
    xp = namespace(X)
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(f"X needs shape (n_samples, n_features), both at least 1, got {tuple(X.shape)}")
    if X.dtype not in (xp.float32, xp.float64):
        raise InputError(f"X on a device must be float32 or float64, got {X.dtype}: convert it first")
    # the sum takes one pass without a copy; entries are checked only if it is not finite
    if not bool(xp.isfinite(xp.sum(X))) and not all(bool(xp.all(xp.isfinite(X[b]))) for b in row_blocks(X)):
        raise InputError("Input X contains NaN or infinity: fill or drop those rows")
    return X


def checked_labels(y: Any, X: Array) -> tuple[np.ndarray, Array]:
    """The two classes, and the mask of the second one on the device of X."""
    n = X.shape[0]
    values = _one_column(y) if is_device_array(y) else column_or_1d(np.asarray(y), warn=True)
    if tuple(values.shape) != (n,):
        raise InputError(f"y needs one label for each of the {n} rows of X, got shape {tuple(values.shape)}")
    if is_device_array(values):
        values = to_device(values, X)
    elif values.dtype.kind == "O":
        check_classification_targets(values)  # text labels are valid, numbers stored as objects are not
    xp = namespace(values)
    low, high = _ends(values, xp)
    if not bool(xp.all((values == low) | (values == high))):
        check_classification_targets(to_host(values))
        raise InputError(
            "Only binary classification is supported: the target has more than two values; mark the wanted class "
            "as positive first"
        )
    classes = (
        to_host(xp.stack([low, high])) if is_device_array(values) else np.array([low, high], values.dtype)
    )
    check_classification_targets(classes)
    check_two_classes(classes.tolist()[: 1 if low == high else 2])
    return classes, to_device(values == high, X)


def _one_column(y: Array) -> Array:
    """Flatten a column of labels to shape (n,), with the warning that scikit-learn gives for NumPy arrays."""
    if y.ndim != 2 or y.shape[1] != 1:
        return y
    message = "a column-vector y was passed where a 1d array was expected: use y[:, 0]"
    warn(message, DataConversionWarning)
    return y[:, 0]


def _ends(values: Array, xp: Any) -> tuple[Any, Any]:
    """Lowest and highest label, of any dtype."""
    if isinstance(values, np.ndarray) and values.dtype.kind not in "biuf":
        found = np.unique(values)
        return found[0], found[-1]
    if "bool" in str(values.dtype):
        return xp.all(values), xp.any(values)
    low, high = xp.min(values), xp.max(values)
    if bool(low != low):
        raise InputError("Input y contains NaN: fill or drop those rows")
    return low, high


def checked_weights(sample_weight: Any, X: Array) -> Array:
    """Weights in double precision on the device of X: one finite non-negative number per row, or one for all."""
    xp, n = namespace(X), X.shape[0]
    needed = f"sample_weight needs one number for each of the {n} rows of X"
    if not is_device_array(sample_weight):
        try:
            sample_weight = np.asarray(sample_weight, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(needed) from None
    weight = to_device(sample_weight, X, xp.float64)
    if weight.ndim == 0:
        weight = xp.full((n,), float(weight), dtype=xp.float64, device=_compat().device(X))
    if tuple(weight.shape) != (n,):
        raise InputError(needed)
    if not bool(xp.all(xp.isfinite(weight))) or bool(xp.any(weight < 0)):
        raise InputError("`sample_weight` needs one finite number >= 0 per row")
    counted = xp.where(weight > 0, weight, xp.full_like(weight, np.inf))
    check_weight_range(float(xp.min(counted)), float(xp.max(weight)))
    return weight


def scores_on_device(X: Array, w: np.ndarray) -> Array:
    """``X @ w`` in double precision, on the device of X."""
    xp, v = namespace(X), to_device(w, X)
    return xp.concat([xp.astype(X[block], xp.float64) @ v for block in row_blocks(X)])


def tied_scores_on_device(X: Array, w: np.ndarray) -> Array:
    """``X @ w`` on the device of X, with bit-identical scores for equal rows."""
    xp, v = namespace(X), to_device(w, X)
    return xp.concat([xp.sum(xp.astype(X[block], xp.float64) * v, axis=1) for block in row_blocks(X)])


def pulled_back(X: Array, r: Array) -> Array:
    """``Xᵀ @ r`` in double precision on the device of X, for one column r or several."""
    xp = namespace(X)
    return sum(xp.astype(X[block], xp.float64).T @ r[block] for block in row_blocks(X))


def chosen_classes(classes: np.ndarray, above: Array) -> Any:
    """Class of each row, the second where ``above``, as an array of the same library; NumPy if not numeric."""
    if classes.dtype.kind not in "biuf":
        return classes[to_host(above).astype(int)]
    xp, pair = namespace(above), to_device(classes, above)
    return xp.where(above, pair[1], pair[0])


def column_units(X: Array, weight: Array | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column on the device; see :func:`apexrank.problem.design.column_units`."""
    n = X.shape[0]
    if n <= SCALE_ROWS:
        return _moments(X, weight)[:2]
    some = to_device(np.random.default_rng(0).integers(0, n, SCALE_ROWS), X)
    mean, spread, constant = _moments(X[some, :], None if weight is None else weight[some])
    for j in np.flatnonzero(constant):
        mean[[j]], spread[[j]], _ = _moments(X[:, j : j + 1], weight)
    return mean, spread


def _moments(rows: Array, weight: Array | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and unit of each column, and whether it is constant."""
    xp = namespace(rows)
    rows = xp.astype(rows, xp.float64)
    constant = to_host(xp.max(rows, axis=0) == xp.min(rows, axis=0))
    share = xp.ones_like(rows[:, 0]) if weight is None or not bool(xp.any(weight > 0)) else weight
    counted = (share > 0)[:, None]
    size = xp.max(xp.where(counted, xp.abs(rows), xp.zeros_like(rows)), axis=0)
    largest = xp.where(size > 0, size, xp.ones_like(size))  # squares of huge numbers would overflow
    rows, share = rows / largest, share / xp.sum(share)
    mean = share @ rows
    variance = share @ (rows - mean) ** 2
    spread = np.sqrt(np.maximum(to_host(variance), 0.0))
    scale = to_host(largest)
    return to_host(mean) * scale, np.where(spread > 1e-12, spread, 1.0) * scale, constant


class DeviceRows:
    """Sums over the rows of a device matrix in two passes: scores, then the weighted sum of rows.

    Everything is in double precision; a single-precision matrix is converted one block at a time.
    """

    is_rough = False

    def __init__(self, X: Array, positive: Array, weight: Array | None) -> None:
        self.X, self.positive, self.xp = X, positive, namespace(X)
        self.log_weight = None if weight is None else self.xp.log(weight)

    def log_sum_exp(self, w: np.ndarray, slope: tuple[float, float]) -> RowSums:
        """``log Σ u·exp(slope_c·s)`` of both classes, negatives first, and the mean row under these weights."""
        xp = self.xp
        tops, weights = self._softmaxes(w, slope)
        mass, rows = xp.sum(weights, axis=0), pulled_back(self.X, weights)
        top, total, sums = (to_host(part) for part in (tops, mass, rows))
        with np.errstate(invalid="ignore", divide="ignore"):
            return RowSums(top + np.log(total), np.ones(2), sums.T / total[:, None])

    def _softmaxes(self, w: np.ndarray, slope: tuple[float, float]) -> tuple[Array, Array]:
        """Maximum exponent of each class, and ``exp(exponent − maximum)`` as columns, 0 outside the class."""
        xp = self.xp
        s = scores_on_device(self.X, w)
        tops, columns = [], []
        for factor, mask in zip(slope, (~self.positive, self.positive), strict=True):
            t = factor * s if self.log_weight is None else factor * s + self.log_weight
            t = xp.where(mask, t, xp.full_like(t, -np.inf))
            tops.append(xp.max(t))
            columns.append(xp.exp(t - tops[-1]))
        return xp.stack(tops), xp.stack(columns, axis=1)

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
        rows = to_host(pulled_back(self.X, shares)).T
        return RowSums(to_host(xp.stack(values)), to_host(xp.sum(shares, axis=0)), rows)

    def scatter(self, w: np.ndarray, terms: list[Scatter]) -> np.ndarray:
        """Sums of outer products of centred rows, stacked."""
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
    """Sums of :class:`apexrank.kernels.rows.RowSummer` at one point, on a device."""

    def __init__(self, rows: Any, exact: DeviceRows, w: np.ndarray) -> None:
        self.rows, self.exact, self.w = rows, exact, w

    def log_sum_exp(self, slope: ArrayLike, active: ArrayLike = BOTH) -> RowSums:
        return self.rows.log_sum_exp(self.w, tuple(np.asarray(slope, dtype=float).tolist()))

    def softplus(self, slope: ArrayLike, shift: float, active: ArrayLike = BOTH) -> RowSums:
        low, high = np.asarray(slope, dtype=float).tolist()
        return self.exact.softplus(self.w, (low, high), float(shift))

    def scatter(self, terms: list[Scatter]) -> np.ndarray:
        return self.exact.scatter(self.w, terms)


class DeviceDesign(Design):
    """Rows of a PyTorch tensor, a CuPy array, or another array of the array API standard.

    With labels, a streaming objective of two rows (see :class:`~apexrank.problem.block_design.BlockDesign`) is
    evaluated on the device: only w, the gradient and a few numbers are transferred. If Triton is installed, a row-major
    CUDA matrix of up to 1024 columns is read once per value and gradient (:mod:`apexrank.problem.triton_rows`); all
    other cases take two passes. All other objectives are evaluated on the host: the scores of all rows are copied
    there, and the gradient with respect to them back.

    Parameters
    ----------
    X : array of shape (n, d)
    positive, weight : arrays on the device of X, optional
        Mask of the positive rows, and the weights of the rows.
    fused : bool
        False forces two passes even if one would suffice.

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
        xp = namespace(X)
        self.ends = to_host(
            xp.stack([xp.min(X, axis=0), xp.max(X, axis=0)])
        )  # minimum and maximum of each column
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

    def scores(self, w: np.ndarray) -> np.ndarray:
        return to_host(scores_on_device(self.X, w))

    def pull_back(self, r: np.ndarray) -> np.ndarray:
        return to_host(pulled_back(self.X, to_device(r, self.X)))

    def curvature(self, centre: np.ndarray, weight: np.ndarray, U: Any) -> tuple[np.ndarray, np.ndarray]:
        """Curvature products as in the base class; a sparse U is multiplied on the host, block by block."""
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


def rows_of(X: Array, positive: Array, weight: Array | None, fused: bool = True) -> Any:
    """Sums over rows, in one pass if there is a kernel for X, otherwise in two."""
    if fused and (X.is_cuda if is_tensor(X) else hasattr(X, "__cuda_array_interface__")):
        from apexrank.problem.triton_rows import fused_rows

        rows = fused_rows(X, positive, weight)
        if rows is not None:
            return rows
    return DeviceRows(X, positive, weight)


class DeviceTraining(Training):
    """Training rows on a device, with labels and weights there; ``binary`` if labels are a mask of positives."""

    def __init__(self, X: Any, labels: Any, weight: Any, groups: Any, binary: bool) -> None:
        super().__init__(X, labels, weight, groups)
        self.binary = binary

    def compose(self, make: Make, whole: bool = False) -> tuple[Design, Objective]:
        if self.binary and self.groups is None and not whole:
            xp = namespace(self.X)
            classes = (xp.astype(mask, xp.float64) for mask in (self.labels, ~self.labels))
            totals = [float(xp.sum(c if self.weight is None else c * self.weight)) for c in classes]
            objective = of_two_rows(make, *totals)
            if objective.streams:
                return DeviceDesign(self.X, self.labels, self.weight), objective
        return DeviceDesign(self.X), make(*self.columns())

    def reweighted(self, weight: np.ndarray) -> Training:
        there = to_device(weight, self.X, namespace(self.X).float64)
        return DeviceTraining(self.X, self.labels, there, self.groups, self.binary)

    def variances(self) -> np.ndarray:
        X, xp = self.X, namespace(self.X)
        weight = xp.ones(X.shape[0], dtype=xp.float64) if self.weight is None else self.weight
        share = to_device(weight, X) / float(xp.sum(weight))
        some = [slice(a, a + SCALE_ROWS) for a in range(0, X.shape[0], SCALE_ROWS)]
        mean = sum(share[rows] @ xp.astype(X[rows, :], xp.float64) for rows in some)
        variance = sum(share[rows] @ (xp.astype(X[rows, :], xp.float64) - mean) ** 2 for rows in some)
        return np.where(to_host(variance > 1e-24 * mean**2), to_host(variance), 0.0)

    def tied_scores(self, w: np.ndarray) -> np.ndarray:
        return to_host(tied_scores_on_device(self.X, w))

    def columns(self) -> tuple[np.ndarray, np.ndarray | None, Any]:
        groups = None if self.groups is None else to_host(self.groups)
        return to_host(self.labels), None if self.weight is None else to_host(self.weight), groups
