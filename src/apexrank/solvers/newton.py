"""Newton's method with a line search, for problems with few features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from apexrank.errors import InputError
from apexrank.solvers.base import Problem, Solution, report

Point = tuple[np.ndarray, float, np.ndarray]
GROUP_PASSES = 200


@dataclass(frozen=True)
class Newton:
    """Full Newton steps with Armijo backtracking; for any penalty.

    A step costs about ``n_features`` times a gradient, but ill-conditioned problems (separable data with a small
    penalty, large p, collinear columns) take tens of steps where L-BFGS takes thousands, and the last steps converge
    quadratically.

    With an L1 norm or bounds, steps use the minimum-norm subgradient and are truncated where a coefficient would change
    sign or leave the box. Inside an orthant the L1 norm is linear. Coefficients at a kink move only if their derivative
    exceeds the penalty, and then only in its descent direction (Gafni & Bertsekas 1984, two-metric projection; Andrew &
    Gao 2007 for the orthant). With group norms, a step leads to the minimum of the quadratic model plus the norms (Lee,
    Sun & Saunders 2014).

    Requires ``value_and_grad`` and ``hessian``.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"l1", "groups", "bounds", "quadratic"})
    max_iter: int = 1000
    tol: float = 1e-6
    verbose: int = 0

    def solve(self, problem: Problem, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``, or from the nearest point inside the bounds."""
        if problem.hessian_cost == np.inf:
            raise InputError(
                "Newton needs a Hessian, which this objective does not have, or not with more than 2000 features: "
                "use `solver='auto'` or 'lbfgs'"
            )
        w0 = np.clip(w0, *problem.penalty.bounds) if problem.penalty.is_bounded else w0
        solution, point = Solution(w0), (w0, *problem.penalised(w0))
        while True:
            done = solution.update(problem, *point, self.tol)
            report(self.verbose, solution)
            if done or solution.n_iter >= self.max_iter:
                return solution
            moved = self._move(problem, *point, problem.hessian(point[0]))
            if moved is None:
                return solution
            point = moved
            solution.n_iter += 1

    def _move(
        self, problem: Problem, w: np.ndarray, value: float, grad: np.ndarray, hessian: np.ndarray
    ) -> Point | None:
        """Take a step that makes progress, with increasing damping if the Hessian is nearly singular."""
        smooth = problem.penalty.is_smooth
        slope = problem.penalty.subgradient(w, grad)
        if not np.isfinite(hessian).all():
            return None
        unit = problem.curvature / problem.grad_unit
        for damping in (1e-14, 1e-10, 1e-6, 1e-2):
            if smooth:
                step = newton_step(hessian, slope, problem.scale, damping, unit)
            elif problem.penalty.is_grouped:
                step = _step_of_groups(problem, hessian, grad, w, damping)
            else:
                step = _step_off_kinks(problem, hessian, slope, w, damping, unit)
            moved = self._line_search(problem, w, value, grad, slope, step)
            if moved is not None:
                return moved
        return None

    @staticmethod
    def _line_search(
        problem: Problem,
        w: np.ndarray,
        value: float,
        grad: np.ndarray,
        slope: np.ndarray,
        step: np.ndarray,
    ) -> Point | None:
        """First of the projected steps 1, 1/2, 1/4 … with enough decrease; None if rounding hides any decrease."""
        penalty, length = problem.penalty, 1.0
        # the value is a sum of terms as large as the total, and has their rounding error
        norm, rounding = problem.grad_norm(slope), 1e-14 * max(abs(value), problem.total)
        while length > 1e-12:
            trial, descent = w + length * step, length * float(slope @ step)
            if penalty.is_grouped:
                # decrease of the full value predicted by the model, including norms
                foretold = float(grad @ step) + penalty.rough(w + step) - penalty.rough(w)
                descent = length * min(foretold, 0.0)
            elif not penalty.is_smooth:
                trial = _projected(problem, w, slope, trial)
                descent = float(slope @ (trial - w))
            if np.array_equal(trial, w):
                return None
            new_value, new_grad = problem.penalised(trial)
            if descent < 0 and new_value <= value + 1e-4 * descent:
                return trial, new_value, new_grad
            # close to the minimum, rounding hides any decrease of the value, but the gradient still shows progress
            hidden = 0 <= -descent <= rounding or abs(new_value - value) <= rounding
            if hidden and problem.grad_norm(penalty.subgradient(trial, new_grad)) < norm:
                return trial, new_value, new_grad
            length /= 2
        return None


def _projected(problem: Problem, w: np.ndarray, slope: np.ndarray, trial: np.ndarray) -> np.ndarray:
    """Project onto the bounds and, with an L1 norm, onto the orthant of w or the one its slope points to."""
    if problem.penalty.l1 > 0:
        orthant = np.where(w != 0, np.sign(w), -np.sign(slope))
        trial = np.where(np.sign(trial) == orthant, trial, 0.0)
    return np.clip(trial, *problem.penalty.bounds)


def _step_off_kinks(
    problem: Problem, hessian: np.ndarray, slope: np.ndarray, w: np.ndarray, damping: float, unit: float
) -> np.ndarray:
    """Newton step of the free coefficients; one that would leave its kink uphill is held there."""
    low, high = problem.penalty.bounds
    kink = (w == low) | (w == high) | ((w == 0) & (problem.penalty.l1 > 0))
    free = ~kink | (slope != 0)
    while True:
        step = np.zeros_like(w)
        if free.any():
            some = np.ix_(free, free)
            step[free] = newton_step(hessian[some], slope[free], problem.scale[free], damping, unit)
        uphill = free & kink & (step * slope > 0)
        if not uphill.any():
            return step
        free &= ~uphill


def _step_of_groups(
    problem: Problem, hessian: np.ndarray, grad: np.ndarray, w: np.ndarray, damping: float
) -> np.ndarray:
    """Step to the minimum of the quadratic model plus the group norms, by block coordinate descent over the groups.

    In the eigenbasis of a group's block of the Hessian, the minimum over the group is ``−b/(λ + c/|u|)`` if it is not
    0, where c is the weight of the norm; |u| is the root of a scalar equation.
    """
    penalty: Any = problem.penalty
    ridge = damping * np.trace(hessian) / len(w)
    blocks = []
    for group, weight in enumerate(penalty.weights):
        own = np.flatnonzero(penalty.groups == group)
        blocks.append((own, weight, *np.linalg.eigh(hessian[np.ix_(own, own)] + ridge * np.eye(len(own)))))
    u, slope = w.copy(), grad.copy()  # slope is the gradient of the model at u
    for _ in range(GROUP_PASSES):
        moved = 0.0
        for own, weight, values, vectors in blocks:
            b = vectors.T @ slope[own] - values * (vectors.T @ u[own])
            new = vectors @ _minimum_of_group(values, b, weight)
            step = new - u[own]
            if step.any():
                slope += hessian[:, own] @ step + ridge * np.bincount(own, step, minlength=len(w))
                u[own] = new
                moved = max(moved, float(np.abs(step * problem.scale[own]).max()))
        if moved <= 1e-3 * float(np.abs((u - w) * problem.scale).max(initial=0.0)):
            break
    return u - w


def _minimum_of_group(values: np.ndarray, b: np.ndarray, weight: float) -> np.ndarray:
    """Minimiser of ``½·Σ values·u² + b·u + weight·|u|``.

    Examples
    --------
    >>> _minimum_of_group(np.array([1.0, 1.0]), np.array([-3.0, -4.0]), 2.5).round(6).tolist()
    [1.5, 2.0]
    """
    norm = float(np.linalg.norm(b))
    if norm <= weight:
        return np.zeros_like(b)
    low, high = 0.0, norm / float(values.min())  # bracket of |u|
    for _ in range(100):
        size = 0.5 * (low + high)
        u = -b * size / (values * size + weight)
        low, high = (size, high) if np.linalg.norm(u) > size else (low, size)
        if high - low <= 1e-14 * high:
            break
    return u


def newton_step(
    hessian: np.ndarray, grad: np.ndarray, scale: np.ndarray, damping: float, unit: float = 1.0
) -> np.ndarray:
    """``−(H + λ)⁻¹·∇`` in units of ``scale``, with λ at least ``damping`` times the mean diagonal of H.

    ``unit`` converts a gradient to a curvature.
    """
    scaled, target = hessian / np.outer(scale, scale), grad / scale
    # the second bound keeps the step finite if the Hessian vanishes, the third one if the gradient vanishes with it
    ridge = max(damping * np.trace(scaled) / len(scaled), 1e-14 * unit * np.abs(target).max(), 1e-300)
    while True:
        try:
            factor = cho_factor(scaled + ridge * np.eye(len(scaled)))
            return -cho_solve(factor, target) / scale
        except LinAlgError:
            ridge *= 10
