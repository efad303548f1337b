"""Newton's method with a line search, for few features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from apexrank.models.linear import LinearProblem
from apexrank.solvers.base import Solution, report

_Point = tuple[np.ndarray, float, np.ndarray]


@dataclass(frozen=True)
class Newton:
    """Full Newton steps, halved until the value falls enough (Armijo).

    A step costs about ``n_features`` times a gradient, but stiff problems (separable data with a small penalty,
    large p, collinear columns) take tens of steps where L-BFGS takes thousands, and the last steps converge
    quadratically. Needs ``value_and_grad`` and ``hessian``: one group.
    """

    max_iter: int = 1000
    tol: float = 1e-6
    verbose: int = 0

    def solve(self, problem: LinearProblem, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``."""
        solution, w = Solution(w0), w0
        value, grad = problem.value_and_grad(w)
        while not solution.update(problem, w, value, grad, self.tol) and solution.n_iter < self.max_iter:
            moved = self._move(problem, w, value, grad)
            if moved is None:
                break
            w, value, grad = moved
            solution.n_iter += 1
            report(self.verbose, solution)
        return solution

    def _move(self, problem: LinearProblem, w: np.ndarray, value: float, grad: np.ndarray) -> _Point | None:
        """A step that makes progress: where the Hessian is nearly singular, more and more of it is damped."""
        hessian = problem.hessian(w)
        for damping in (1e-14, 1e-10, 1e-6, 1e-2):
            step = newton_step(hessian, grad, problem.scale, damping)
            moved = self._line_search(problem, w, value, grad, step)
            if moved is not None:
                return moved
        return None

    @staticmethod
    def _line_search(
        problem: LinearProblem, w: np.ndarray, value: float, grad: np.ndarray, step: np.ndarray
    ) -> _Point | None:
        """First of the steps 1, 1/2, 1/4 … that lowers the value enough; None when rounding hides any progress."""
        slope, length, rounding = float(grad @ step), 1.0, 1e-14 * max(1.0, abs(value))
        while length > 1e-12:
            new_value, new_grad = problem.value_and_grad(w + length * step)
            if new_value <= value + 1e-4 * length * slope:
                return w + length * step, new_value, new_grad
            # close to the minimum the value no longer tells, but the gradient does
            if abs(new_value - value) <= rounding and problem.grad_norm(new_grad) < problem.grad_norm(grad):
                return w + length * step, new_value, new_grad
            length /= 2
        return None


def newton_step(hessian: np.ndarray, grad: np.ndarray, scale: np.ndarray, damping: float) -> np.ndarray:
    """``−(H + λ)⁻¹·∇`` in units of ``scale``, λ = ``damping`` times the mean diagonal of H, or more."""
    scaled, target = hessian / np.outer(scale, scale), grad / scale
    ridge = damping * max(np.trace(scaled) / len(scaled), np.finfo(float).tiny)
    while True:
        try:
            factor = cho_factor(scaled + ridge * np.eye(len(scaled)))
            return -cho_solve(factor, target) / scale
        except LinAlgError:
            ridge *= 10
