"""The papers' coordinate descent (JMLR 2009, Fig. 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from apexrank.models.linear import LinearProblem, pull_back
from apexrank.solvers.base import Solution, report

WIDEST_STEP = 1e12


@dataclass(frozen=True)
class CoordinateDescent:
    """In each of ``t_max`` rounds move along the weak ranker (column) with the largest |derivative|.

    The step solves ``dR/dα = 0`` exactly (JMLR 2009, eq. 1), by bracketing and Brent's method on the derivative.
    The pair weights ``d_ik`` of the papers are never formed: per example they sum to the gradient with respect to
    the scores. Which column moves depends on the columns' units; the papers scale features to [0, 1].

    Needs a linear problem: scores, single columns, and the gradient with respect to the scores.
    """

    t_max: int = 100
    tol: float = 1e-6
    verbose: int = 0

    def solve(self, problem: LinearProblem, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``."""
        solution, w, scores = Solution(w0), w0.copy(), problem.scores(w0)
        while True:
            value, slope = problem.objective.value_and_grad(scores)
            value += 0.5 * problem.alpha * float(w @ w)
            grad = pull_back(problem.X, slope) + problem.alpha * w
            done = solution.update(problem, w.copy(), value, grad, self.tol)
            report(self.verbose, solution)
            if done or solution.n_iter >= self.t_max:
                return solution
            j = int(np.abs(grad).argmax())
            step = self._line_search(problem, scores, problem.column(j), w[j], -np.sign(grad[j]))
            w[j] += step
            scores = scores + step * problem.column(j)
            solution.n_iter += 1

    @staticmethod
    def _line_search(
        problem: LinearProblem, scores: np.ndarray, column: np.ndarray, w_j: float, sign: float
    ) -> float:
        def derivative(step: float) -> float:
            slope = problem.objective.value_and_grad(scores + step * column)[1]
            return float(slope @ column) + problem.alpha * (w_j + step)

        def endless(step: float) -> bool:
            return abs(step) > WIDEST_STEP or (
                problem.alpha == 0 and problem.objective.separated(scores + step * column)
            )

        return exact_step(derivative, sign, endless)


def exact_step(derivative: Callable[[float], float], sign: float, endless: Callable[[float], bool]) -> float:
    """Root of an increasing function in the direction of ``sign``, or the first ``endless`` step tried."""
    near, far = 0.0, sign
    while sign * derivative(far) < 0:
        if endless(far):
            return far
        near, far = far, 4 * far
    return float(brentq(derivative, near, far, xtol=1e-14, rtol=1e-14))
