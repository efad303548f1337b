"""Scores in a kernel's feature space, as linear scores of coordinates there."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from apexrank.errors import InputError


class KernelFeatures:
    """Coordinates of rows in a kernel's feature space: ``Z·Zᵀ = K`` by pivoted Cholesky, to rounding.

    Linear scores ``Z·w`` are then scores ``K·a`` with ``aᵀKa = |w|²``; a is 0 except for the pivots, as many as K has
    rank.
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
        """``a`` of ``w``."""
        a = np.zeros(len(self.Z))
        a[self.pivots[: len(w)]] = solve_triangular(self.corner, w, lower=True, trans="T")
        return a
