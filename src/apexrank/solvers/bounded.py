"""Coefficients of at least 0: the problem, whose certificates know the bound, and L-BFGS that keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from apexrank.models.linear import Certificate, LinearProblem
from apexrank.solvers.base import Problem, Solution
from apexrank.solvers.lbfgs import LBFGS, Bounds


class NonNegativeProblem(LinearProblem):
    """``min_{w ≥ 0} objective(X·w) + (alpha/2)·|w|²``; certificates leave out slopes that push w below 0.

    Examples
    --------
    >>> from apexrank.objectives import Push
    >>> problem = NonNegativeProblem(np.array([[-1.0], [1.0]]), Push([True, False]), 1.0)
    >>> problem.certificate(np.zeros(1), *problem.value_and_grad(np.zeros(1))).gap
    0.0
    """

    def certificate(self, w: np.ndarray, value: float, grad: np.ndarray) -> Certificate:
        """What is known at ``w``: the gap ``|∇|²/(2·alpha)`` holds for the projected gradient as well."""
        return super().certificate(w, value, np.where(w > 0, grad, np.minimum(grad, 0.0)))


@dataclass(frozen=True)
class BoundedLBFGS(LBFGS):
    """SciPy's L-BFGS-B on ``u = w · scale`` with bounds u ≥ 0. Needs ``value_and_grad`` only.

    Examples
    --------
    >>> from apexrank.objectives import Push
    >>> X = np.array([[-1.0, 1.0], [1.0, -1.0]])
    >>> solution = BoundedLBFGS().solve(NonNegativeProblem(X, Push([True, False]), 1.0), np.zeros(2))
    >>> solution.w.round(4).tolist()
    [0.0, 2.0]
    """

    bounds: ClassVar[Bounds | None] = (0.0, None)

    def solve(self, problem: Problem, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``, or from 0 where it is negative: certificates hold inside the bounds only."""
        return super().solve(problem, np.maximum(w0, 0.0))
