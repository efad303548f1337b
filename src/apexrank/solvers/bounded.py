"""Coefficients of at least 0: the problem, whose certificates know the bound, and L-BFGS that keeps it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from apexrank.models.linear import Certificate, LinearProblem
from apexrank.solvers.base import Problem, Solution, report
from apexrank.solvers.lbfgs import LBFGS


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

    def _run(self, problem: Problem, solution: Solution) -> None:
        scale, latest = problem.scale, {}

        def scaled(u: np.ndarray) -> tuple[float, np.ndarray]:
            value, grad = latest[u.tobytes()] = problem.value_and_grad(u / scale)
            return value, grad / scale

        def after_iteration(intermediate_result: OptimizeResult) -> None:
            u = intermediate_result.x
            value, grad = latest[u.tobytes()]
            latest.clear()
            solution.n_iter += 1
            done = solution.update(problem, u / scale, value, grad, self.tol)
            report(self.verbose, solution)
            if done:
                raise StopIteration

        limits = {"maxiter": self.max_iter - solution.n_iter, "maxfun": 100 * self.max_iter, "maxls": 50}
        minimize(
            scaled,
            solution.w * scale,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * len(scale),
            callback=after_iteration,
            options={**limits, "maxcor": self.memory, "ftol": 0.0, "gtol": 0.0},
        )
