"""Solvers for an L1 penalty: exact zeros, by Newton steps inside an orthant or by bound-constrained L-BFGS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from apexrank.models.linear import ElasticNetProblem
from apexrank.solvers.base import Solution, report
from apexrank.solvers.newton import Newton, Point, newton_step


def evaluate(problem: ElasticNetProblem, w: np.ndarray) -> tuple[float, np.ndarray]:
    """The whole value, and the gradient of the smooth part."""
    value, grad = problem.value_and_grad(w)
    return problem.penalised(value, w), grad


@dataclass(frozen=True)
class OrthantNewton(Newton):
    """Newton steps on the subgradient of least norm, cut off where a coefficient would change its sign.

    Inside an orthant the L1 norm is linear. Coefficients at zero move only when their derivative exceeds the
    penalty, and then only into the orthant it points to (Gafni & Bertsekas 1984, two-metric projection; Andrew & Gao
    2007 for the orthant). Needs ``value_and_grad``, ``hessian`` and ``subgradient``.
    """

    takes_l1: ClassVar[bool] = True

    @staticmethod
    def _evaluate(problem: Any, w: np.ndarray) -> tuple[float, np.ndarray]:
        return evaluate(problem, w)

    def _move(self, problem: Any, w: np.ndarray, value: float, grad: np.ndarray) -> Point | None:
        """A step that makes progress: where the Hessian is nearly singular, more and more of it is damped."""
        hessian, slope = problem.hessian(w), problem.subgradient(w, grad)
        for damping in (1e-14, 1e-10, 1e-6, 1e-2):
            step = orthant_step(hessian, slope, w, problem.scale, damping)
            moved = self._line_search(problem, w, value, slope, step)
            if moved is not None:
                return moved
        return None

    @staticmethod
    def _line_search(
        problem: Any, w: np.ndarray, value: float, slope: np.ndarray, step: np.ndarray
    ) -> Point | None:
        """First of the steps 1, 1/2, 1/4 …, projected on the orthant, that lowers the value enough."""
        orthant, length = np.where(w != 0, np.sign(w), -np.sign(slope)), 1.0
        norm, rounding = problem.grad_norm(slope), 1e-14 * max(abs(value), problem.total)
        while length > 1e-12:
            trial = w + length * step
            trial[np.sign(trial) != orthant] = 0.0
            descent = float(slope @ (trial - w))
            new_value, new_grad = evaluate(problem, trial)
            if descent < 0 and new_value <= value + 1e-4 * descent:
                return trial, new_value, new_grad
            # close to the minimum the value no longer tells, but the subgradient does
            if abs(new_value - value) <= rounding:
                new_norm = problem.grad_norm(problem.subgradient(trial, new_grad))
                if new_norm < norm:
                    return trial, new_value, new_grad
            length /= 2
        return None


def orthant_step(
    hessian: np.ndarray, slope: np.ndarray, w: np.ndarray, scale: np.ndarray, damping: float
) -> np.ndarray:
    """Newton step of the coefficients that may move; one that would leave zero uphill is held there."""
    free = (w != 0) | (slope != 0)
    while True:
        step = np.zeros_like(w)
        step[free] = newton_step(hessian[np.ix_(free, free)], slope[free], scale[free], damping)
        uphill = free & (w == 0) & (step * slope > 0)
        if not uphill.any():
            return step
        free &= ~uphill


@dataclass(frozen=True)
class SplitLBFGS:
    """SciPy's L-BFGS-B on ``w = (x⁺ − x⁻)/scale`` with bounds x ≥ 0, where the L1 norm is a sum.

    Needs ``value_and_grad`` only.
    """

    takes_l1: ClassVar[bool] = True
    max_iter: int = 1000
    tol: float = 1e-6
    memory: int = 30
    verbose: int = 0

    def solve(self, problem: ElasticNetProblem, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``."""
        solution = Solution(w0)
        if solution.update(problem, w0, *evaluate(problem, w0), self.tol):
            return solution
        for _ in range(2):  # once more with a clean memory when the line search gives up
            start = solution.n_iter
            self._run(problem, solution)
            if solution.converged or solution.n_iter in (start, self.max_iter):
                break
        return solution

    def _run(self, problem: ElasticNetProblem, solution: Solution) -> None:
        scale, cost = problem.scale, problem.l1 / np.concatenate([problem.scale, problem.scale])

        def join(x: np.ndarray) -> np.ndarray:
            return (x[: len(scale)] - x[len(scale) :]) / scale

        def split_value(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, grad = problem.value_and_grad(join(x))
            if not (np.isfinite(value) and np.isfinite(grad).all()):
                return np.inf, np.zeros_like(x)  # the line search steps back
            return value + float(cost @ x), np.concatenate([grad, -grad]) / np.tile(scale, 2) + cost

        def after_iteration(intermediate_result: OptimizeResult) -> None:
            w = join(intermediate_result.x)
            solution.n_iter += 1
            done = solution.update(problem, w, *evaluate(problem, w), self.tol)
            report(self.verbose, solution)
            if done:
                raise StopIteration

        u = solution.w * scale
        minimize(
            split_value,
            np.concatenate([np.maximum(u, 0), np.maximum(-u, 0)]),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * (2 * len(u)),
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
