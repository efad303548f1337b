"""Limited-memory BFGS in coordinates where every column has unit spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import Bounds, OptimizeResult, minimize

from apexrank.solvers.base import Problem, Solution, report

WIDEST_KINK, SHARPEN = 0.1, 10.0  # the first rounded kink has width WIDEST_KINK/SHARPEN


@dataclass(frozen=True)
class LBFGS:
    """SciPy's L-BFGS-B on ``u = w·scale``, or a design's own coordinates, stopped by certificates; for any penalty.

    Bounds are those of L-BFGS-B. With an L1 norm it works on ``u = x⁺ − x⁻`` with x ≥ 0, where the norm is linear, so
    zeros are exact. It requires only ``value_and_grad``. If the line search fails before the certificate holds
    (rounding), it restarts once from there with an empty memory. An objective with kinks is certified by nearby smooth
    ones. The line search compares values, whose rounding hides slopes below about 1e-8 of them, so a smaller ``tol``
    may not be reached.

    Examples
    --------
    >>> from apexrank.objectives import Push
    >>> from apexrank.penalties import NonNegative, Ridge
    >>> X = np.array([[-1.0, 1.0], [1.0, -1.0]])
    >>> LBFGS().solve(Problem(X, Push([True, False]), NonNegative(Ridge(1.0))), np.zeros(2)).w.round(4).tolist()
    [0.0, 2.0]
    """

    takes: ClassVar[frozenset[str]] = frozenset({"l1", "bounds", "quadratic"})
    max_iter: int = 1000
    tol: float = 1e-6
    memory: int = 30
    verbose: int = 0

    def solve(self, problem: Problem, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``, or from the nearest point inside the bounds, where the certificates hold."""
        w0 = np.clip(w0, *problem.penalty.bounds) if problem.penalty.is_bounded else w0
        solution = Solution(w0)
        if solution.update(problem, w0, *problem.penalised(w0), self.tol):
            return solution
        for _ in range(2):
            start = solution.n_iter
            self._run(problem, solution)
            if solution.converged or solution.separable or solution.n_iter in (start, self.max_iter):
                break
        if problem.objective.has_kinks and not (solution.converged or solution.separable):
            self._certify_at_kink(problem, solution)
        return solution

    def _certify_at_kink(self, problem: Problem, solution: Solution) -> None:
        """Certify a minimum at a kink, where no single gradient vanishes, by ever narrower rounding of the kinks.

        The rounded objective is nowhere larger, so its minimum, minus its own gap, is a lower bound. A gap of at most
        ``tol`` times the value at equal scores suffices. If the penalty is too weak for such a bound, rounding must
        change the value by no more than that, and the rounded problem must be solved to the precision of its value.
        """
        width, lowest, w, enough = WIDEST_KINK, -np.inf, solution.w, self.tol * problem.total
        while solution.n_iter < self.max_iter and not solution.converged and width > 2 * self.tol:
            width = max(width / SHARPEN, 2 * self.tol)
            rounded = problem.with_objective(problem.objective.smoothed(width))
            left = self.max_iter - solution.n_iter
            stage = LBFGS(left, 0.3 * self.tol, self.memory).solve(rounded, w)
            w, value = stage.w, problem.penalised(stage.w)[0]
            lowest = np.fmax(lowest, stage.value - stage.gap)  # a gap may be nan
            solved = value - stage.value <= enough and stage.n_iter < left
            if solved or value <= solution.value:
                solution.w, solution.value = w, value
            solution.grad_norm, solution.gap = stage.grad_norm, float(solution.value - lowest)
            solution.n_iter += stage.n_iter
            solution.history.append(solution.value)
            solution.converged = bool(solution.gap <= enough or solved)
            report(self.verbose, solution)

    def _run(self, problem: Problem, solution: Solution) -> None:
        coordinates = Coordinates(problem, solution.w)
        latest: dict[bytes, tuple[float, np.ndarray]] = {}

        def value_and_grad(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, grad = problem.value_and_grad(coordinates.to_w(x))
            if not (np.isfinite(value) and np.isfinite(grad).all()):
                return np.inf, np.zeros_like(x)  # the line search steps back
            latest[x.tobytes()] = value, grad
            return coordinates.value(value, x), coordinates.gradient(grad)

        def after_iteration(intermediate_result: OptimizeResult) -> None:
            x = intermediate_result.x
            w, (value, grad) = coordinates.to_w(x), latest[x.tobytes()]
            latest.clear()
            solution.n_iter += 1
            value += problem.penalty.rough(w)
            done = solution.update(problem, w, value, grad, self.tol)
            report(self.verbose, solution)
            if done:
                raise StopIteration

        minimize(
            value_and_grad,
            coordinates.of_start,
            jac=True,
            method="L-BFGS-B",
            bounds=coordinates.bounds,
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


class Coordinates:
    """Coordinates ``x = w·scale``, or with an L1 norm ``x⁺, x⁻ ≥ 0`` with ``w·scale = x⁺ − x⁻``, where it is linear.

    With a ridge, a design may provide better coordinates, ``w = start + whitening·x``.
    """

    def __init__(self, problem: Problem, start: np.ndarray) -> None:
        self.scale, penalty = problem.scale, problem.penalty
        self.split, (low, high) = penalty.l1 > 0, penalty.bounds
        self.bounds: Any = Bounds(low * self.scale, high * self.scale) if penalty.is_bounded else None
        self.cost, self.start, self.whitening = np.zeros(len(self.scale)), start, None
        if self.split:
            self.bounds = Bounds(0.0, np.concatenate([high * self.scale, -low * self.scale]))
            self.cost = penalty.l1 / np.tile(self.scale, 2)
        elif not problem.needs:
            self.whitening = problem.design.whitening(self.scale, penalty.convexity / problem.curvature)

    @property
    def of_start(self) -> np.ndarray:
        if self.whitening is not None:
            return np.zeros(len(self.start))
        u = self.start * self.scale
        return np.concatenate([np.maximum(u, 0), np.maximum(-u, 0)]) if self.split else u

    def to_w(self, x: np.ndarray) -> np.ndarray:
        if self.whitening is not None:
            return self.start + self.whitening @ x
        d = len(self.scale)
        return (x[:d] - x[d:] if self.split else x) / self.scale

    def value(self, value: float, x: np.ndarray) -> float:
        return value + float(self.cost @ x)

    def gradient(self, grad: np.ndarray) -> np.ndarray:
        if self.whitening is not None:
            return self.whitening.T @ grad
        u = grad / self.scale
        return np.concatenate([u, -u]) + self.cost if self.split else u
