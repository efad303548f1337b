"""Designs of linear models in memory: scores ``X·w``, gradients and curvature products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.linalg import qr
from sklearn.utils.sparsefuncs import mean_variance_axis

from apexrank.errors import InputError, warn
from apexrank.kernels.rows import RowSummer
from apexrank.objectives.base import Objective
from apexrank.validation import SMALLEST, canonical, check_not_huge

Matrix = Any  # a dense array, or a SciPy sparse matrix in CSR format
Make = Callable[[np.ndarray, np.ndarray | None, Any], Objective]
"""``make(labels, sample_weight, groups)``, where labels are a mask of positives, relevance or values."""

BLOCK_BYTES = 2**22
SCALE_ROWS = 2**14
FAR, NEAR = 1e4, 10.0  # distance from zero, in spreads, beyond which a column is centred in a copy of X
WIDEST_HESSIAN = 2000  # maximum number of features
SEEN = 1e-13  # relative to the largest eigenvalue: anything smaller is rounding error


class Design:
    """Base class of designs: rows with linear scores, wherever they are stored.

    A subclass defines ``scores``, ``pull_back``, ``curvature``, ``column``, ``take``, ``units``, ``varies`` and
    ``moved``; for an objective that streams, ``sums`` may provide value and gradient in one pass. An objective that
    does not stream is evaluated here, in memory, on the scores of all rows (8 bytes per row).

    Attributes
    ----------
    n_rows, n_features : int
    shift : array, optional
        Vector that was subtracted from the original rows.
    is_rough : bool
        Whether sums are in single precision.
    has_span : bool
        Whether :meth:`span` is available.
    """

    n_rows: int
    n_features: int
    shift: np.ndarray | None = None
    is_rough = False
    can_move = True
    has_span = False

    @property
    def hessian_work(self) -> float:
        """Number of multiplications for a Hessian."""
        return float(self.n_rows) * self.n_features**2

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Scores of the stored rows, in double precision."""
        raise NotImplementedError

    def pull_back(self, r: np.ndarray) -> np.ndarray:
        """``Xᵀ·r``."""
        raise NotImplementedError

    def curvature(self, centre: np.ndarray, weight: np.ndarray, U: Any) -> tuple[np.ndarray, np.ndarray]:
        """``Zᵀ·diag(weight)·Z`` and ``Zᵀ·U`` for ``Z = X − centre``."""
        raise NotImplementedError

    def column(self, j: int) -> np.ndarray:
        """Column j in double precision."""
        raise NotImplementedError

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Selected rows, in memory and in double precision."""
        raise NotImplementedError

    def units(self, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of each column, the units of the solver and its stopping rule."""
        raise NotImplementedError

    def varies(self) -> np.ndarray:
        """Whether each column has different values."""
        raise NotImplementedError

    def whitening(self, scale: np.ndarray, ridge: float) -> Any:
        """Matrix P such that L-BFGS converges faster in ``w = P·x`` than in ``w = x/scale``, or None."""
        return None

    def moved(self, shift: np.ndarray) -> Self:
        """The same rows minus ``shift``."""
        raise NotImplementedError

    def sums(self, objective: Objective, w: np.ndarray) -> Any:
        """Sums over the rows for the objective's ``stream``, or None if not available."""
        return None

    def span(self) -> Span:
        """The rows in as many coordinates as there are rows; only for rows in memory."""
        raise NotImplementedError

    def offset(self, w: np.ndarray) -> float:
        """Difference between the scores of the original rows and those of the stored rows."""
        return 0.0 if self.shift is None else float(self.shift @ w)

    def evaluate(self, objective: Objective, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Value of the objective and its gradient with respect to w."""
        sums = self.sums(objective, w) if objective.streams else None
        if sums is not None:
            return objective.stream(sums)
        value, slope = objective.value_and_grad(self.scores(w))
        return value, self.pull_back(slope)

    def hessian(self, objective: Objective, w: np.ndarray, centre: np.ndarray) -> np.ndarray:
        """Hessian of the objective with respect to w; ``centre`` keeps the products of the rows small."""
        total = np.zeros((self.n_features, self.n_features))
        for factor, diagonal, U, S in objective.hessian(self.scores(w)):
            gram, V = self.curvature(centre, diagonal, U)
            total += factor * (gram + V @ S @ V.T)
        return total

    def separated(self, objective: Objective, w: np.ndarray) -> bool:
        """Whether the objective considers the scores separated."""
        return objective.separated(self.scores(w))


class Span(NamedTuple):
    """Rows ``X = L·Qᵀ`` with fewer coordinates than X has columns, QᵀQ = 1: ``w = Q·v`` and ``v = Qᵀ·w``."""

    L: np.ndarray
    to_w: Callable[[np.ndarray], np.ndarray]
    to_v: Callable[[np.ndarray], np.ndarray]


class DenseDesign(Design):
    """Rows in a dense array.

    Row-major rows with a streaming objective need one pass for value and gradient; all other cases need two.
    """

    has_span = True

    def __init__(self, X: np.ndarray) -> None:
        self.X = X
        self.n_rows, self.n_features = X.shape

    def scores(self, w: np.ndarray) -> np.ndarray:
        return scores_of(self.X, w)

    def pull_back(self, r: np.ndarray) -> np.ndarray:
        return pull_back(self.X, r)

    def curvature(self, centre: np.ndarray, weight: np.ndarray, U: Any) -> tuple[np.ndarray, np.ndarray]:
        return curvature_products(self.X, centre, weight, U)

    def column(self, j: int) -> np.ndarray:
        return self.X[:, j].astype(np.float64)

    def take(self, rows: np.ndarray) -> np.ndarray:
        return self.X[rows].astype(np.float64, copy=False)

    def units(self, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
        return column_units(self.X, sample_weight)

    def varies(self) -> np.ndarray:
        return varies(self.X)

    def moved(self, shift: np.ndarray) -> Self:
        other = copy(self)
        other.X, other.shift = self.X - shift, shift
        return other

    def span(self) -> Span:
        Q, R = qr(self.X.T.astype(np.float64), mode="economic", overwrite_a=True, check_finite=False)
        return Span(np.ascontiguousarray(R.T), lambda v: Q @ v, lambda w: Q.T @ w)

    def sums(self, objective: Objective, w: np.ndarray) -> RowSummer | None:
        if not self.X.flags.c_contiguous:
            return None
        return RowSummer(self.X, w, objective.positive.view(np.uint8), objective.log_weight)


class SparseDesign(DenseDesign):
    """Rows in a SciPy CSR matrix; they are never centred, which would make them dense."""

    can_move = False

    def column(self, j: int) -> np.ndarray:
        column: Any = self.X[:, [j]]
        return column.toarray().ravel().astype(np.float64)

    def span(self) -> Span:
        # from the eigenvectors of X·Xᵀ, as Q itself would be dense: with X·Xᵀ = U·S²·Uᵀ, L = U·S and Q = Xᵀ·U·S⁻¹
        squares, U = np.linalg.eigh((self.X @ self.X.T).toarray())
        seen = squares > SEEN * squares[-1]
        U, S = U[:, seen], np.sqrt(squares[seen])
        return Span(U * S, lambda v: self.X.T @ (U @ (v / S)), lambda w: U.T @ (self.X @ w) / S)

    def sums(self, objective: Objective, w: np.ndarray) -> None:
        return None


def design_of(X: Matrix) -> Design:
    """Validated design of rows in memory: dense, sparse, or those of an additive model."""
    if hasattr(X, "basis"):
        from apexrank.problem.ramps import RampDesign

        return RampDesign(X)
    check_not_huge("X", X)
    return SparseDesign(canonical(X.tocsr())) if sparse.issparse(X) else DenseDesign(X)


class Training:
    """Training rows in memory with labels, weights and group ids."""

    def __init__(self, X: Matrix, labels: np.ndarray, weight: np.ndarray | None, groups: Any) -> None:
        self.X, self.labels, self.weight, self.groups = X, labels, weight, groups

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    def compose(self, make: Make, whole: bool = False) -> tuple[Design, Objective]:
        """Design and the objective that ``make`` builds from the labels.

        ``whole`` requests an objective of the scores of all rows even if sums over the rows would suffice.
        """
        return design_of(self.X), make(*self.columns())

    def columns(self) -> tuple[np.ndarray, np.ndarray | None, Any]:
        """Labels, weights and groups of all rows, in memory."""
        return self.labels, self.weight, self.groups

    def variances(self) -> np.ndarray:
        """Weighted variance of each column over all rows; 0 if it is only rounding error."""
        X = self.X
        if sparse.issparse(X):
            found = sparse_moments(X, self.weight)
            return np.where(found.varies, np.square(found.spread), 0.0)
        weight = np.ones(X.shape[0]) if self.weight is None else self.weight
        share = weight / weight.sum()  # small weights of small squares would underflow
        mean = pull_back(X, share)
        variance = sum(share[some] @ np.square(X[some] - mean) for some in row_slices(X))
        return np.where(variance > 1e-24 * np.square(mean), variance, 0.0)

    def tied_scores(self, w: np.ndarray) -> np.ndarray:
        """:func:`tied_scores` of all rows, in memory."""
        return tied_scores(self.X, w)

    def reweighted(self, weight: np.ndarray) -> Training:
        """The same rows with different weights; rows of weight 0 are ignored."""
        return Training(self.X, self.labels, weight, self.groups)

    def take(self, rows: np.ndarray) -> Training:
        """Selected rows."""
        labels, *others = self.columns()
        weight, groups = (None if part is None else part[rows] for part in others)
        return Training(self.X[rows], labels[rows], weight, groups)


def of_two_rows(make: Make, up: float, down: float) -> Objective:
    """Objective of one positive and one negative row that carry the total weight of their class."""
    if up == 0 or down == 0:
        raise InputError("ranking needs rows of both classes, with positive weight, in at least one group")
    return make(np.array([True, False]), np.array([up, down]), None)


def row_slices(X: np.ndarray) -> Iterator[slice]:
    """Slices of a few megabytes of rows each; a single empty slice if there are no rows."""
    rows = max(1, BLOCK_BYTES // (8 * max(1, X.shape[1])))
    return (slice(a, a + rows) for a in range(0, max(1, X.shape[0]), rows))


def scores_of(X: Matrix, w: np.ndarray) -> np.ndarray:
    """``X @ w`` in double precision, without a double-precision copy of a single-precision X."""
    if sparse.issparse(X) or X.dtype == np.float64:
        return X @ w
    return np.concatenate([X[block].astype(np.float64) @ w for block in row_slices(X)])


def tied_scores(X: Matrix, w: np.ndarray) -> np.ndarray:
    """``X @ w`` with bit-identical scores for equal rows, which BLAS does not guarantee.

    Metrics of tied rows and isotonic regression are discontinuous at ties: rounding that separates equal rows would
    change the metric, or give equal rows different fitted values.

    Examples
    --------
    >>> tied_scores(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, -1.0])).tolist()
    [-1.0, -1.0]
    """
    return X @ w if sparse.issparse(X) else np.einsum("ij,j->i", X, w)


def pull_back(X: Matrix, r: np.ndarray) -> np.ndarray:
    """``X.T @ r`` in double precision."""
    if sparse.issparse(X) or X.dtype == np.float64:
        return X.T @ r
    return np.sum([X[block].astype(np.float64).T @ r[block] for block in row_slices(X)], axis=0)


def curvature_products(
    X: Matrix, centre: np.ndarray, weight: np.ndarray, U: Any
) -> tuple[np.ndarray, np.ndarray]:
    """``Z.T @ diag(weight) @ Z`` and ``Z.T @ U`` for ``Z = X − centre`` and weights >= 0, block by block.

    A shift-invariant objective has the same Hessian for Z as for X, but far from zero the products of X would cancel. A
    sparse X is not centred.
    """
    if sparse.issparse(X):
        V = X.T @ U
        return (X.T @ sparse.diags_array(weight) @ X).toarray(), V.toarray() if sparse.issparse(V) else V
    U = U.tocsr() if sparse.issparse(U) else U
    root, d = np.sqrt(weight), X.shape[1]
    gram, V = np.zeros((d, d)), np.zeros((d, U.shape[1]))
    for block in row_slices(X):
        Z = X[block] - centre
        V += (U[block].T @ Z).T
        Z *= root[block, None]
        gram += Z.T @ Z
    return gram, V


def column_units(X: Matrix, sample_weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column, from a random sample of 16,000 rows of a larger dense X.

    They only set the units of the solver and its stopping rule. A column that is constant in the sample is checked in
    full; one that is really constant gets its magnitude as unit.
    """
    if sample_weight is not None and not sample_weight.any():
        sample_weight = None
    if sparse.issparse(X):
        found = sparse_moments(X, sample_weight)
        return found.mean, found.unit
    n = X.shape[0]
    some = slice(None) if n <= SCALE_ROWS else np.random.default_rng(0).integers(0, n, SCALE_ROWS)
    sample = X[some]
    found = moments_of(sample, None if sample_weight is None else sample_weight[some])
    mean, spread = found.mean, found.unit
    if n > SCALE_ROWS:
        for j in np.flatnonzero(np.ptp(sample, axis=0) == 0):
            found = moments_of(X[:, [j]], sample_weight)
            mean[[j]], spread[[j]] = found.mean, found.unit
    return mean, spread


class Moments(NamedTuple):
    """Weight, mean, standard deviation and largest absolute value of each column."""

    weight: float
    mean: np.ndarray
    spread: np.ndarray
    largest: np.ndarray

    @property
    def unit(self) -> np.ndarray:
        """Unit of a column: its standard deviation, or its magnitude if that is only rounding error."""
        return np.where(self.varies, self.spread, np.where(self.largest > 0, self.largest, 1.0))

    @property
    def varies(self) -> np.ndarray:
        """Whether a column varies by more than rounding error."""
        return self.spread > 1e-12 * self.largest


def moments_of(rows: np.ndarray, weight: np.ndarray | None) -> Moments:
    """Moments of the columns of the given rows, in double precision."""
    total = float(len(rows) if weight is None else np.sum(weight))
    if total == 0:
        zero = np.zeros(rows.shape[1])
        return Moments(0.0, zero, zero, zero)
    if weight is not None:
        weight = np.asarray(weight, dtype=np.float64)
        rows, weight = rows[weight > 0], weight[weight > 0]
    largest = np.abs(rows).max(axis=0).astype(np.float64)
    unit = np.where(largest > 0, largest, 1.0)  # squares of huge numbers would overflow
    scaled = rows / unit
    mean = np.average(scaled, axis=0, weights=weight)
    spread = np.sqrt(np.average((scaled - mean) ** 2, axis=0, weights=weight))
    return Moments(total, mean * unit, spread * unit, largest)


def sparse_moments(X: Any, weight: np.ndarray | None) -> Moments:
    """Moments of the columns of a canonical CSR matrix."""
    if weight is not None and not weight.all():
        X, weight = X[weight > 0], weight[weight > 0]
    largest = np.zeros(X.shape[1])
    np.maximum.at(largest, X.indices, np.abs(X.data))
    unit = np.where(largest > 0, largest, 1.0)  # squares of huge and of tiny numbers would be lost
    scaled = sparse.csr_array((X.data / unit[X.indices], X.indices, X.indptr), shape=X.shape)
    mean, variance = mean_variance_axis(scaled, axis=0, weights=weight)
    total = float(X.shape[0] if weight is None else weight.sum())
    return Moments(total, mean * unit, np.sqrt(np.maximum(variance, 0.0)) * unit, largest)


def spread_inside(design: Design, lists: Any) -> np.ndarray:
    """Standard deviation of each column around its list means; a listwise objective depends only on these deviations.

    For many lists, a random sample of about 16,000 rows is used.
    """
    rows, bounds, weight = lists.rows, lists.lists, lists.weight
    sizes = np.diff(bounds)
    chosen = np.arange(len(sizes))
    if len(rows) > SCALE_ROWS:
        chosen = np.random.default_rng(0).permutation(len(sizes))
        chosen = np.sort(chosen[: 1 + np.searchsorted(np.cumsum(sizes[chosen]), SCALE_ROWS)])
    some = np.concatenate([np.arange(bounds[q], bounds[q + 1]) for q in chosen])
    sample, count = design.take(rows[some]), weight[some][:, None]
    largest = np.abs(sample).max(axis=0)
    largest = np.where(largest > 0, largest, 1.0)  # squares of huge numbers would overflow
    sample /= largest
    starts = np.concatenate([[0], np.cumsum(sizes[chosen])])
    totals = np.add.reduceat(count, starts[:-1], axis=0)
    means = np.add.reduceat(count * sample, starts[:-1], axis=0) / totals
    sample -= np.repeat(means, sizes[chosen], axis=0)
    spread = np.sqrt((count * sample**2).sum(axis=0) / totals.sum())
    return np.where(spread > 1e-12, spread, 1.0) * largest


def usable_units(spread: np.ndarray, varying: Callable[[], np.ndarray]) -> np.ndarray:
    """Units of the columns, with 1 for columns that vary too little to compute with.

    Such columns get a coefficient of about 0, like columns of zeros, with a warning. If no other column varies,
    InputError is raised.

    Examples
    --------
    >>> usable_units(np.array([2.0, 1e-150]), lambda: np.array([True, False])).tolist()
    [2.0, 1.0]
    """
    tiny = spread < SMALLEST
    if not tiny.any():
        return spread
    varies = varying()
    if not (varies & ~tiny).any():
        j = int(tiny.argmax())
        raise InputError(f"column {j} of X differs by no more than {spread[j]:.3g}: scale X first")
    if (varies & tiny).any():
        j = int((varies & tiny).argmax())
        warn(
            f"column {j} of X differs by no more than {spread[j]:.3g}, too little to compute with, and is ignored: "
            "scale it, for instance to unit variance",
        )
    return np.where(tiny, 1.0, spread)


def varies(X: Matrix) -> np.ndarray:
    """Whether each column has different values.

    Examples
    --------
    >>> varies(np.array([[1.0, 2.0], [1.0, 3.0]])).tolist()
    [False, True]
    """
    if sparse.issparse(X):
        return X.max(axis=0).toarray().ravel() > X.min(axis=0).toarray().ravel()
    return X.max(axis=0) > X.min(axis=0)
