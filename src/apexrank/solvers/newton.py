"""Newton's method with a line search, for few features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from apexrank.errors import InputError
from apexrank.solvers.base import Solution, report

Point = tuple[np.ndarray, float, np.ndarray]


@dataclass(frozen=True)
class Newton:
    """Full Newton steps, halved until the value falls enough (Armijo).

    A step costs about ``n_features`` times a gradient, but stiff problems (separable data with a small penalty,
    large p, collinear columns) take tens of steps where L-BFGS takes thousands, and the last steps converge
    quadratically. Needs ``value_and_grad`` and ``hessian``.
    """

    max_iter: int = 1000
    tol: float = 1e-6
    verbose: int = 0

    def solve(self, problem: Any, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``."""
        if problem.hessian_cost == np.inf:
            raise InputError(
                "Newton needs a Hessian, which this objective does not have, or not with more than 2000 features: "
                "use solver='auto' or 'lbfgs'"
            )
        solution, point = Solution(w0), (w0, *self._evaluate(problem, w0))
        while True:
            done = solution.update(problem, *point, self.tol)
            report(self.verbose, solution)
            moved = None if done or solution.n_iter >= self.max_iter else self._move(problem, *point)
            if moved is None:
                return solution
            point = moved
            solution.n_iter += 1

    @staticmethod
    def _evaluate(problem: Any, w: np.ndarray) -> tuple[float, np.ndarray]:
        return problem.value_and_grad(w)

    def _move(self, problem: Any, w: np.ndarray, value: float, grad: np.ndarray) -> Point | None:
        """A step that makes progress: where the Hessian is nearly singular, more and more of it is damped."""
        hessian = problem.hessian(w)
        if not np.isfinite(hessian).all():
            return None
        for damping in (1e-14, 1e-10, 1e-6, 1e-2):
            step = newton_step(hessian, grad, problem.scale, damping, problem.curvature / problem.grad_unit)
            moved = self._line_search(problem, w, value, grad, step)
            if moved is not None:
                return moved
        return None

    @staticmethod
    def _line_search(
        problem: Any, w: np.ndarray, value: float, slope: np.ndarray, step: np.ndarray
    ) -> Point | None:
        """First of the steps 1, 1/2, 1/4 … that lowers the value enough; None when rounding hides any progress."""
        descent, length, rounding = float(slope @ step), 1.0, 1e-14 * max(problem.value_unit, abs(value))
        while length > 1e-12:
            new_value, new_grad = problem.value_and_grad(w + length * step)
            if new_value <= value + 1e-4 * length * descent:
                return w + length * step, new_value, new_grad
            # close to the minimum the value no longer tells, but the gradient does
            if abs(new_value - value) <= rounding and problem.grad_norm(new_grad) < problem.grad_norm(slope):
                return w + length * step, new_value, new_grad
            length /= 2
        return None


def newton_step(
    hessian: np.ndarray, grad: np.ndarray, scale: np.ndarray, damping: float, unit: float = 1.0
) -> np.ndarray:
    """``−(H + λ)⁻¹·∇`` in units of ``scale``, λ = ``damping`` times the mean diagonal of H, or more.

    ``unit`` turns a gradient into a curvature.
    """
    scaled, target = hessian / np.outer(scale, scale), grad / scale
    # the second bound keeps the step finite where the Hessian vanishes
    ridge = max(damping * np.trace(scaled) / len(scaled), 1e-14 * unit * np.abs(target).max())
    while True:
        try:
            factor = cho_factor(scaled + ridge * np.eye(len(scaled)))
            return -cho_solve(factor, target) / scale
        except LinAlgError:
            ridge *= 10
