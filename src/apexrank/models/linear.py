"""Linear scores ``s = X·w``: from an objective of the scores to a problem in ``w``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from apexrank.checkpoints import remembered
from apexrank.errors import InputError
from apexrank.kernels.rows import RowSummer
from apexrank.validation import SMALLEST, check_not_huge

Matrix = Any  # a dense array, or a SciPy sparse matrix in CSR format

BLOCK_BYTES = 2**22
SCALE_ROWS = 2**14
FAR = 1e4  # spreads from zero at which a column is moved there, in a copy of X
WIDEST_HESSIAN = 2000  # features
LEAST_TOTAL = 1e-290  # with its inverse, the range of an objective at equal scores


class Objective(Protocol):
    """What a model needs from a function of the scores."""

    positive: np.ndarray
    log_weight: np.ndarray | None
    n_groups: int

    @property
    def total(self) -> float: ...

    @property
    def has_hessian(self) -> bool: ...

    @property
    def streams(self) -> bool: ...

    @property
    def separable_below(self) -> float: ...

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]: ...

    def hessian(self, scores: np.ndarray) -> list[tuple[float, np.ndarray, Any, Any]]: ...

    def stream(self, sums: RowSummer) -> tuple[float, np.ndarray]: ...

    def separated(self, scores: np.ndarray) -> bool: ...


def _blocks(X: np.ndarray) -> Iterator[slice]:
    rows = max(1, BLOCK_BYTES // (8 * max(1, X.shape[1])))
    return (slice(a, a + rows) for a in range(0, X.shape[0], rows))


def scores_of(X: Matrix, w: np.ndarray) -> np.ndarray:
    """``X @ w`` in double precision, without a double-precision copy of a single-precision X."""
    if sparse.issparse(X) or X.dtype == np.float64:
        return X @ w
    return np.concatenate([X[block].astype(np.float64) @ w for block in _blocks(X)])


def tied_scores(X: Matrix, w: np.ndarray) -> np.ndarray:
    """``X @ w`` where equal rows have equal scores to the last bit, which BLAS does not promise.

    Isotonic regression is not continuous there: rounding that tells equal rows apart gives them different values.

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
    return np.sum([X[block].astype(np.float64).T @ r[block] for block in _blocks(X)], axis=0)


def curvature_products(
    X: Matrix, centre: np.ndarray, weight: np.ndarray, U: Any
) -> tuple[np.ndarray, np.ndarray]:
    """``Z.T @ diag(weight) @ Z`` and ``Z.T @ U`` for ``Z = X − centre`` and weights >= 0, block by block.

    An objective that does not see a shift of the scores has the same Hessian for Z as for X, but far from zero X's
    products would cancel. A sparse X is taken as it is.
    """
    if sparse.issparse(X):
        V = X.T @ U
        return (X.T @ sparse.diags_array(weight) @ X).toarray(), V.toarray() if sparse.issparse(V) else V
    U = U.tocsr() if sparse.issparse(U) else U
    root, d = np.sqrt(weight), X.shape[1]
    gram, V = np.zeros((d, d)), np.zeros((d, U.shape[1]))
    for block in _blocks(X):
        Z = X[block] - centre
        V += (U[block].T @ Z).T
        Z *= root[block, None]
        gram += Z.T @ Z
    return gram, V


def column_units(X: Matrix, sample_weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column, from 16,000 random rows of a dense X that has more.

    They only set the units in which a solver works and stops. A column that looks constant is looked at in full; one
    that is gets its own size as unit.
    """
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X, axis=0, weights=sample_weight)
        return mean, _unit_of(variance, np.abs(mean))
    n = X.shape[0]
    some = slice(None) if n <= SCALE_ROWS else np.random.default_rng(0).integers(0, n, SCALE_ROWS)
    sample = X[some]
    mean, spread = _moments(sample, None if sample_weight is None else sample_weight[some])
    if n > SCALE_ROWS:
        for j in np.flatnonzero(np.ptp(sample, axis=0) == 0):
            mean[[j]], spread[[j]] = _moments(X[:, [j]], sample_weight)
    return mean, spread


def spread_inside(X: np.ndarray, rows: np.ndarray, bounds: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Standard deviation of each column around the means of its lists, which are all an objective of lists can see.

    ``rows[bounds[q]:bounds[q + 1]]`` are the rows of list q. Of many lists random ones of about 16,000 rows are taken.
    """
    sizes = np.diff(bounds)
    chosen = np.arange(len(sizes))
    if len(rows) > SCALE_ROWS:
        chosen = np.random.default_rng(0).permutation(len(sizes))
        chosen = np.sort(chosen[: 1 + np.searchsorted(np.cumsum(sizes[chosen]), SCALE_ROWS)])
    some = np.concatenate([np.arange(bounds[q], bounds[q + 1]) for q in chosen])
    sample, count = X[rows[some]].astype(np.float64), weight[some][:, None]
    largest = np.abs(sample).max(axis=0)
    largest = np.where(largest > 0, largest, 1.0)  # squares of huge numbers would overflow
    sample /= largest
    starts = np.concatenate([[0], np.cumsum(sizes[chosen])])
    totals = np.add.reduceat(count, starts[:-1], axis=0)
    means = np.add.reduceat(count * sample, starts[:-1], axis=0) / totals
    sample -= np.repeat(means, sizes[chosen], axis=0)
    return _unit_of((count * sample**2).sum(axis=0) / totals.sum(), np.ones(len(largest))) * largest


def _moments(rows: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    if weight is not None and weight.any():
        rows, weight = rows[weight > 0], weight[weight > 0]
    else:
        weight = None
    size = np.abs(rows).max(axis=0).astype(np.float64)
    largest = np.where(size > 0, size, 1.0)  # squares of huge numbers would overflow
    rows = rows / largest
    mean = np.average(rows, axis=0, weights=weight)
    variance = np.average((rows - mean) ** 2, axis=0, weights=weight)
    return mean * largest, _unit_of(variance, np.ones(len(largest))) * largest


def _unit_of(variance: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Unit of a column: its standard deviation, or its size where rounding is all there is to see."""
    spread = np.sqrt(np.maximum(variance, 0.0))
    return np.where(spread > 1e-12 * size, spread, np.where(size > 0, size, 1.0))


class Certificate(NamedTuple):
    """How far a point may be from the minimum: scaled gradient norm, duality gap, and the gap's natural unit."""

    grad_norm: float
    gap: float
    unit: float


def checked_total(total: float) -> float:
    """The unit of the objective, of which squares are taken."""
    if not LEAST_TOTAL <= total <= 1 / LEAST_TOTAL:
        raise InputError(
            f"at equal scores the objective is {total:.3g}, out of the range of computation: "
            "divide the weights by their mean, or scale the target"
        )
    return total


def usable_units(spread: np.ndarray, varying: Callable[[], np.ndarray]) -> np.ndarray:
    """Units of the columns, 1 for those that differ by too little to be computed with, as for columns of zeros.

    Such columns get a coefficient of about 0. Where no other column varies, nothing could be ranked: that is refused.

    Examples
    --------
    >>> usable_units(np.array([2.0, 1e-120]), lambda: np.array([True, True])).tolist()
    [2.0, 1.0]
    """
    tiny = spread < SMALLEST
    if not tiny.any():
        return spread
    if not (varying() & ~tiny).any():
        j = int(tiny.argmax())
        raise InputError(f"column {j} of X differs by no more than {spread[j]:.3g}: scale X first")
    return np.where(tiny, 1.0, spread)


def varies(X: Matrix) -> np.ndarray:
    """Whether a column has different values.

    Examples
    --------
    >>> varies(np.array([[1.0, 2.0], [1.0, 3.0]])).tolist()
    [False, True]
    """
    if sparse.issparse(X):
        return X.max(axis=0).toarray().ravel() > X.min(axis=0).toarray().ravel()
    return X.max(axis=0) > X.min(axis=0)


class LinearProblem:
    """``min_w objective(X·w) + (alpha/2)·|w|²``.

    Dense row-major X and an objective that streams need one pass over X for value and gradient; everything else
    (sparse, column-major, many groups, exotic prices) takes two.
    """

    l1 = 0.0

    def __init__(
        self, X: Matrix, objective: Objective, alpha: float = 0.0, sample_weight: np.ndarray | None = None
    ) -> None:
        check_not_huge("X", X)
        self.X, self.objective, self.alpha = X, objective, alpha
        self.total = checked_total(objective.total)
        # what a unit of the scores changes: the value itself, unless the objective is quadratic
        self.curvature = getattr(objective, "curvature", self.total)
        self.grad_unit = np.sqrt(self.total * self.curvature)
        self.value_unit = getattr(objective, "value_unit", 1.0)
        centre, self.spread = column_units(X, sample_weight)
        lists = getattr(objective, "lists", None)
        if lists is not None and not sparse.issparse(X):
            self.spread = spread_inside(X, lists.rows, lists.lists, lists.weight)
        self.spread = usable_units(self.spread, lambda: varies(X))
        self._shift = None
        unseen = getattr(objective, "shift_invariant", True)
        if unseen and not sparse.issparse(X) and np.any(np.abs(centre) > FAR * self.spread):
            # so far from zero that scores would lose the digits that rank: the objective does not see the shift
            self.X, self._shift, centre = X - centre, centre, 0 * centre
        self.centre = centre
        self.scale = np.hypot(self.spread, np.sqrt(alpha / self.curvature))
        self._label = objective.positive.view(np.uint8)
        self._one_pass = not sparse.issparse(X) and self.X.flags.c_contiguous and objective.streams

    def with_objective(self, objective: Objective) -> Self:
        """The same problem with another objective of the same kind, in the same units."""
        other = copy(self)
        other.objective = objective
        return other

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @remembered
    def value_and_grad(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Penalised objective and its gradient; not finite, without a word, where the scores are beyond all bounds."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self._one_pass:
                value, grad = self.objective.stream(
                    RowSummer(self.X, w, self._label, self.objective.log_weight)
                )
            else:
                value, slope = self.objective.value_and_grad(scores_of(self.X, w))
                grad = pull_back(self.X, slope)
            return value + 0.5 * self.alpha * float(w @ w), grad + self.alpha * w

    @property
    def hessian_cost(self) -> float:
        """Multiplications that :meth:`hessian` takes; infinite without a formula, and for too many features."""
        n, d = self.X.shape
        return float(n) * d * d if self.objective.has_hessian and d <= WIDEST_HESSIAN else np.inf

    @remembered
    def hessian(self, w: np.ndarray) -> np.ndarray:
        """Hessian of the penalised objective: a dense n_features x n_features matrix."""
        total = self.alpha * np.eye(self.n_features)
        for factor, diagonal, U, S in self.objective.hessian(scores_of(self.X, w)):
            gram, V = curvature_products(self.X, self.centre, diagonal, U)
            total += factor * (gram + V @ S @ V.T)
        return total

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Scores of the rows as they were given."""
        scores = scores_of(self.X, w)
        return scores if self._shift is None else scores + self._shift @ w

    def column(self, j: int) -> np.ndarray:
        column = self.X[:, [j]]
        return (column.toarray() if sparse.issparse(column) else column).ravel().astype(np.float64)

    def grad_norm(self, grad: np.ndarray) -> float:
        """Largest gradient entry in units of its column's standard deviation.

        For ``log R`` without penalty it is how far, in standard deviations, the weighted means of the positives and
        of the negatives still are from each other. A penalty adds its own curvature to the unit.
        """
        return float(np.abs(grad / self.scale).max(initial=0.0)) / self.grad_unit

    def dual_gap(self, grad: np.ndarray) -> float:
        """Upper bound on value − minimum: ``|∇|²/(2·alpha)``, the duality gap at the softmax dual point.

        An objective that says it is not convex has none.
        """
        known = self.alpha > 0 and getattr(self.objective, "is_convex", True)
        return float(grad @ grad) / (2 * self.alpha) if known else float("nan")

    def certificate(self, w: np.ndarray, value: float, grad: np.ndarray) -> Certificate:
        """What is known at ``w``, given the value and the gradient there.

        At w = 0, where all rows are tied, only the columns' spread is the unit: a penalty does not excuse a gradient.
        """
        norm, gap = self.grad_norm(grad), self.dual_gap(grad)
        if not w.any():
            norm = float(np.abs(grad / self.spread).max(initial=0.0)) / self.grad_unit
            gap = gap if norm == 0 else np.inf
        return Certificate(norm, gap, max(self.value_unit, abs(value)))

    def penalty(self, w: np.ndarray) -> float:
        return 0.5 * self.alpha * float(w @ w)

    def dual_bound(self, dual: float, v: np.ndarray) -> float:
        """Lower bound ``dual − h*(v)`` of the minimum, for a dual point whose own value is ``dual``; v its ``−Xᵀθ``."""
        return dual - float(v @ v) / (2 * self.alpha) if self.alpha > 0 else float("nan")

    def unbounded(self, value: float, w: np.ndarray) -> bool:
        """Whether w separates the classes while no penalty holds it back."""
        return (
            self.alpha == 0
            and value < self.objective.separable_below
            and self.objective.separated(self.scores(w))
        )


class ElasticNetProblem(LinearProblem):
    """``min_w objective(X·w) + alpha·[(1 − ρ)/2·|w|² + ρ·|w|₁]``.

    ``value_and_grad`` and ``hessian`` are those of the smooth part, which is all but ``l1·|w|₁``; solvers that take an
    L1 penalty (``takes_l1``) ask for the rest. With ρ = 1 the objective must be bounded below by 0.
    """

    def __init__(
        self,
        X: Matrix,
        objective: Objective,
        alpha: float,
        l1_ratio: float,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        super().__init__(X, objective, (1 - l1_ratio) * alpha, sample_weight)
        self.l1 = l1_ratio * alpha

    def penalised(self, value: float, w: np.ndarray) -> float:
        """The whole objective from the value of its smooth part."""
        return value + self.l1 * float(np.abs(w).sum())

    def subgradient(self, w: np.ndarray, grad: np.ndarray) -> np.ndarray:
        """The subgradient of least norm, given the gradient of the smooth part: 0 at the minimum."""
        at_zero = np.sign(grad) * np.maximum(np.abs(grad) - self.l1, 0.0)
        return np.where(w != 0, grad + self.l1 * np.sign(w), at_zero)

    def penalty(self, w: np.ndarray) -> float:
        return self.penalised(super().penalty(w), w)

    def dual_bound(self, dual: float, v: np.ndarray, exponential: float = 0.0) -> float:
        """Lower bound of the minimum, for a dual point θ of value ``dual = −F*(θ)`` with ``v = −Xᵀθ``.

        Elastic net: ``dual − Σ_j (|v_j| − l1)₊² / (2·alpha)``. Pure L1: v must lie in the box ``|v_j| ≤ l1``, so θ
        is scaled down by ``s = min(1, l1/|v|_∞)``; F ≥ 0 makes ``−F*(sθ) ≥ s·dual``. Where F is an exponential
        and has the value ``exponential``, ``−F*(sθ) = s·dual − s·log(s)·F``.
        """
        if self.alpha > 0:
            return dual - float((np.maximum(np.abs(v) - self.l1, 0.0) ** 2).sum()) / (2 * self.alpha)
        s = min(1.0, self.l1 / max(float(np.abs(v).max(initial=0.0)), np.finfo(float).tiny))
        return s * dual - s * np.log(s) * exponential

    def certificate(self, w: np.ndarray, value: float, grad: np.ndarray) -> Certificate:
        """What is known at ``w``, given the whole value and the gradient of the smooth part.

        By Fenchel–Young the dual value at ``θ = ∇F`` is ``F(w) − <w, ∇F>``.
        """
        slope, smooth = grad - self.alpha * w, value - self.penalty(w)
        exponential = smooth if getattr(self.objective, "is_exponential", False) else 0.0
        gap = value - self.dual_bound(smooth - float(w @ slope), -slope, exponential)
        # without a ridge everything is relative to the objective, which may be far below the one at w = 0
        unit = max(1.0, abs(value)) if self.alpha > 0 else min(self.total, value)
        norm = self.grad_norm(self.subgradient(w, grad))
        return Certificate(norm if self.alpha > 0 else norm * self.total / unit, max(gap, 0.0), unit)

    def unbounded(self, value: float, w: np.ndarray) -> bool:
        return False
