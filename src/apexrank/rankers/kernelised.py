"""Scores ``Σ_i a_i k(x_i, x)`` instead of linear ones: what estimators with a ``kernel`` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from apexrank.errors import InputError
from apexrank.models.kernel import KernelFeatures
from apexrank.models.linear import scores_of
from apexrank.rankers.base import LinearFit, checked_rows

MOST_ROWS_FOR_KERNEL = 10_000  # five matrices of that size are 4 GB


class KernelFit(LinearFit):
    """Base class of linear estimators that can take a kernel; a mixin, its place is before other bases.

    A subclass fits linear scores of ``_kernel_features(rows).Z`` and hands the result to ``_keep_kernel``. The kernel
    of ``fit`` scores new rows until the next ``fit``.
    """

    kernel: str | Callable[..., float] | None
    gamma: float | None
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    dual_coef_: np.ndarray
    X_fit_: Any
    kernel_: Any

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _kernel_features(self, rows: Any, most_rows: int = MOST_ROWS_FOR_KERNEL) -> KernelFeatures:
        n = rows.shape[0]
        if n > most_rows:
            raise InputError(
                f"a kernel of {n} x {n} rows is too large: fit at most {most_rows}, or use kernel=None"
            )
        return KernelFeatures(self._kernel_of(rows, rows, self.kernel))

    def _keep_kernel(self, features: KernelFeatures, rows: Any) -> None:
        """Turn the coefficients of the features into those of the kernel."""
        self.dual_coef_, self.X_fit_, self.kernel_ = features.dual(self.coef_), rows, self.kernel
        del self.coef_

    def _forget_kernel(self) -> None:
        for name in ("dual_coef_", "X_fit_", "kernel_"):
            self.__dict__.pop(name, None)

    def _kernel_of(self, rows: Any, others: Any, kernel: Any) -> np.ndarray:
        """Kernel of rows and other rows; with "precomputed" it is given."""
        if kernel == "precomputed":
            return rows.toarray() if sparse.issparse(rows) else rows
        params = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        if callable(kernel):
            params = self.kernel_params or {}
        try:
            return pairwise_kernels(rows, others, metric=kernel, filter_params=True, **params)
        except (KeyError, ValueError) as error:
            raise InputError(f"kernel {kernel!r} cannot be used: {error}") from None

    def _scores(self, X: ArrayLike) -> np.ndarray:
        if not hasattr(self, "dual_coef_"):
            return super()._scores(X)
        K, a = self._kernel_of_used(checked_rows(self, X))
        return scores_of(K, a)

    def _kernel_of_used(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """Kernel of rows and those rows of ``fit`` that have a coefficient, and these coefficients."""
        used = np.flatnonzero(self.dual_coef_)
        a = self.dual_coef_[used]
        if not len(used):
            return np.zeros((rows.shape[0], 0)), a
        if self.kernel_ == "precomputed":
            return self._kernel_of(rows[:, used], None, self.kernel_), a
        return self._kernel_of(rows, self.X_fit_[used], self.kernel_), a
