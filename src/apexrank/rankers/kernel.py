"""Kernel rankers: scores ``Σ_i a_i k(x_i, x)`` as linear scores of coordinates in the kernel's feature space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from apexrank.errors import InputError
from apexrank.parameters import between, names, number
from apexrank.problem.design import Training, tied_scores
from apexrank.rankers.base import LinearEstimator, checked_rows

MOST_ROWS_FOR_KERNEL = 10_000  # five matrices of that size are 4 GB


class KernelFeatures:
    """Coordinates of rows in a kernel's feature space: pivoted Cholesky ``Z·Zᵀ = K``, up to rounding.

    Linear scores ``Z·w`` equal scores ``K·a`` with ``aᵀKa = |w|²``; a is 0 except at the pivots, of which there are
    rank(K).
    """

    def __init__(self, K: np.ndarray) -> None:
        n = len(K)
        if K.shape != (n, n):
            raise InputError(f"Precomputed kernels must be square, got shape {K.shape}")
        factor, pivots, rank, _ = dpstrf(np.array(K, dtype=float, order="F"), lower=1)
        if rank == 0:
            raise InputError("the kernel is zero for all rows: choose another kernel or its parameters")
        self.pivots = pivots - 1
        self.corner = np.tril(factor[:rank, :rank])
        self.Z = np.empty((n, rank))
        self.Z[self.pivots] = np.vstack([self.corner, factor[rank:, :rank]])
        probe = np.random.default_rng(0).normal(size=n)
        wanted = K @ probe
        if np.abs(self.Z @ (probe @ self.Z) - wanted).max() > 1e-6 * np.abs(wanted).max():
            raise InputError("the kernel must be symmetric and positive semi-definite: choose another one")

    def dual(self, w: np.ndarray) -> np.ndarray:
        """Dual coefficients ``a`` of ``w``."""
        a = np.zeros(len(self.Z))
        a[self.pivots[: len(w)]] = solve_triangular(self.corner, w, lower=True, trans="T")
        return a


@dataclass(eq=False, repr=False)
class KernelEstimator(LinearEstimator):
    """Base class of linear estimators with an optional kernel.

    A subclass fits on ``_with_features(data)`` and passes the features to ``_keep_kernel``. New rows are scored with
    the kernel used in ``fit``.
    """

    _parameter_constraints: ClassVar[dict] = LinearEstimator._parameter_constraints | {
        "kernel": [None, names((*PAIRWISE_KERNEL_FUNCTIONS, "precomputed")), callable],
        "gamma": [None, number(0)],
        "degree": [number(0)],
        "coef0": [between(-np.inf, np.inf, closed="neither")],
        "kernel_params": [None, dict],
    }

    _: KW_ONLY
    kernel: str | Callable[..., float] | None = None
    gamma: float | None = None
    degree: float = 3
    coef0: float = 1
    kernel_params: dict[str, Any] | None = None

    @property
    def takes_device_arrays(self) -> bool:  # type: ignore[override]
        return self.kernel is None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _with_features(self, data: Training) -> tuple[Training, KernelFeatures | None]:
        """Replace the rows by kernel coordinates; return the unchanged rows and None without a kernel."""
        if self.kernel is None:
            return data, None
        if type(data) is not Training:
            raise InputError("a kernel needs its rows in memory: use `kernel=None`, or an array")
        n = data.X.shape[0]
        if n > MOST_ROWS_FOR_KERNEL:
            raise InputError(
                f"a kernel of {n} x {n} rows is too large: fit at most {MOST_ROWS_FOR_KERNEL}, or use `kernel=None`"
            )
        features = KernelFeatures(self._kernel_of(data.X, data.X, self.kernel))
        return Training(features.Z, *data.columns()), features

    def _keep_kernel(self, features: KernelFeatures, rows: Any) -> None:
        """Convert the coefficients of the features to dual coefficients of the kernel."""
        self.dual_coef_, self.X_fit_, self.kernel_ = features.dual(self.coef_), rows, self.kernel
        del self.coef_

    def _forget_kernel(self) -> None:
        for name in ("dual_coef_", "X_fit_", "kernel_"):
            self.__dict__.pop(name, None)

    def check_state(self) -> None:
        """Raise InputError if the columns of a precomputed kernel are not the fitted rows."""
        if getattr(self, "kernel_", None) == "precomputed" and len(self.dual_coef_) != self.n_features_in_:
            raise InputError("`dual_coef_` has not one number for each column of a precomputed kernel")

    def _kernel_of(self, rows: Any, others: Any, kernel: Any) -> np.ndarray:
        """Kernel matrix between two sets of rows; with "precomputed" the rows are the matrix."""
        if kernel == "precomputed":
            return rows.toarray() if sparse.issparse(rows) else rows
        params = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        if callable(kernel):
            params = self.kernel_params or {}
        return pairwise_kernels(rows, others, metric=kernel, filter_params=True, **params)

    def _scores(self, X: ArrayLike) -> np.ndarray:
        if not hasattr(self, "dual_coef_"):
            return super()._scores(X)
        K, a = self._kernel_of_used(checked_rows(self, X))
        return tied_scores(K, a)

    def _kernel_of_used(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """Kernel between the rows and the fitted rows with a nonzero coefficient, and these coefficients."""
        used = np.flatnonzero(self.dual_coef_)
        a = self.dual_coef_[used]
        if not len(used):
            return np.zeros((rows.shape[0], 0)), a
        if self.kernel_ == "precomputed":
            return self._kernel_of(rows[:, used], None, self.kernel_), a
        return self._kernel_of(rows, self.X_fit_[used], self.kernel_), a
