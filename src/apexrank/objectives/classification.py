"""P-Classification (Ertekin & Rudin 2011): the exponential push as a sum over examples, bounded below by 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from apexrank.kernels.rows import RowSummer
from apexrank.objectives.base import HessianTerm, Objective
from apexrank.objectives.pairs import CrucialPairs
from apexrank.objectives.push import Push


class PClassification(Objective):
    """``min_b Σ_i e^{−(f_i + b)} + (1/p)·Σ_k e^{p(g_k + b)} = (1 + 1/p)·e^{p/(p+1)·V}`` with ``V = (1/p)·log R``.

    It increases with V, so without a penalty it gives the same ranking as the push, and with a penalty it has the same
    solution path: the minimisers of V for a given size of w. Unlike V it is bounded below, as a pure L1 penalty needs.

    Parameters
    ----------
    push : Push or CrucialPairs
        Push with the exponential loss and the power or identity price; sides and groups are those of V.

    Examples
    --------
    >>> objective = PClassification(Push([True, False], price="identity"))
    >>> value, gradient = objective.value_and_grad(np.zeros(2))
    >>> value, gradient.tolist()
    (2.0, [-1.0, 1.0])
    """

    is_exponential = True

    def __init__(self, push: Push | CrucialPairs) -> None:
        self.push = push
        self.positive, self.log_weight = push.positive, push.log_weight
        self.n_groups, self.has_hessian, self.streams = push.n_groups, push.has_hessian, push.streams
        p = push.price.order
        self.exponent, self.factor = p / (p + 1), 1 + 1 / p

    def _chain(self, value: float, grad: np.ndarray) -> tuple[float, np.ndarray]:
        with np.errstate(over="ignore", invalid="ignore"):
            slope = np.exp(self.exponent * value)
            return float(self.factor * slope), slope * grad

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient with respect to the scores."""
        return self._chain(*self.push.value_and_grad(scores))

    def stream(self, sums: RowSummer) -> tuple[float, np.ndarray]:
        """Value and gradient for a model that can sum its rows by score."""
        return self._chain(*self.push.stream(sums))

    def stream_hessian(self, sums: Any) -> np.ndarray:
        """``e^{κV}·(∇²V + κ·∇V∇Vᵀ)`` with respect to the coefficients."""
        value, grad = self.push.stream(sums)
        curvature = self.push.stream_hessian(sums) + self.exponent * np.outer(grad, grad)
        return float(np.exp(self.exponent * value)) * curvature

    def hessian(self, scores: np.ndarray) -> list[HessianTerm]:
        """``e^{κV}·(∇²V + κ·∇V∇Vᵀ)`` with κ = p/(p + 1), in the terms of :meth:`Push.hessian`."""
        value, grad = self.push.value_and_grad(scores)
        slope = float(np.exp(self.exponent * value))
        (factor, diagonal, U, S), *others = self.push.hessian(scores)
        corner = np.array([[self.exponent / factor]])
        if sparse.issparse(U):
            U = sparse.hstack([U, grad[:, None]], format="csr")
            S = sparse.block_diag([S, corner], format="csr")
        else:
            U, S = np.column_stack([U, grad]), block_diag(S, corner)
        terms = [(factor, diagonal, U, S), *others]
        return [(slope * factor, *rest) for factor, *rest in terms]

    @property
    def count(self) -> float:
        """``e^{κV}`` at equal scores: ``(I^p·K)^{1/(p+1)}`` for I positives and K negatives."""
        return self.total / self.factor

    def separated(self, scores: np.ndarray) -> bool:
        """See :meth:`Push.separated`."""
        return self.push.separated(scores)
