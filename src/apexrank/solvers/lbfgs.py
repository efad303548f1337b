"""Limited-memory BFGS in coordinates where every column has unit spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from apexrank.solvers.base import Problem, Solution, report

Bounds = tuple[float | None, float | None]


@dataclass(frozen=True)
class LBFGS:
    """SciPy's L-BFGS on ``u = w · scale``, stopped by our own certificates.

    Needs ``value_and_grad`` only. When the line search gives up before the certificate holds (rounding), it is
    started once more from there with a clean memory.
    """

    bounds: ClassVar[Bounds | None] = None  # of each coefficient
    max_iter: int = 1000
    tol: float = 1e-6
    memory: int = 30
    verbose: int = 0

    def solve(self, problem: Problem, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``."""
        solution = Solution(w0)
        value, grad = problem.value_and_grad(w0)
        if solution.update(problem, w0, value, grad, self.tol):
            return solution
        for _ in range(2):
            start = solution.n_iter
            self._run(problem, solution)
            if solution.converged or solution.separable or solution.n_iter in (start, self.max_iter):
                break
        return solution

    def _run(self, problem: Problem, solution: Solution) -> None:
        scale, latest = problem.scale, {}

        def scaled(u: np.ndarray) -> tuple[float, np.ndarray]:
            value, grad = problem.value_and_grad(u / scale)
            if not (np.isfinite(value) and np.isfinite(grad).all()):
                return np.inf, np.zeros_like(u)  # the line search steps back
            latest[u.tobytes()] = value, grad
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

        minimize(
            scaled,
            solution.w * scale,
            jac=True,
            method="L-BFGS-B",
            bounds=self.bounds and [self.bounds] * len(scale),
            callback=after_iteration,
            options={
                "maxiter": self.max_iter - solution.n_iter,
                "maxfun": 100 * self.max_iter,
                "maxcor": self.memory,
                "ftol": 0.0,
                "gtol": 0.0,
                "maxls": 50,
            },
        )
