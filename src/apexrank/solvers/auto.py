"""The default: Newton where it is cheap or needed, L-BFGS elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apexrank.models.linear import LinearProblem
from apexrank.solvers.base import Solution
from apexrank.solvers.lbfgs import LBFGS
from apexrank.solvers.newton import Newton

CHEAP_GRAM = 10**8  # rows · features²: a Hessian costs a few milliseconds
WIDEST_GRAM = 2000  # features
PATIENCE = 100  # L-BFGS iterations after which a problem counts as stiff


@dataclass(frozen=True)
class Auto:
    """Newton for small problems; otherwise L-BFGS, handing over to Newton when it has not converged by then.

    ``benchmarks/solvers.py`` shows the two on easy and stiff problems: on large well-conditioned data L-BFGS needs
    a handful of passes over X, on separable data with a small penalty it needs thousands where Newton needs tens.
    """

    max_iter: int = 1000
    tol: float = 1e-6
    verbose: int = 0

    def solve(self, problem: LinearProblem, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``."""
        n, d = problem.X.shape
        if problem.has_hessian and n * d * d <= CHEAP_GRAM:
            return Newton(self.max_iter, self.tol, self.verbose).solve(problem, w0)
        can_hand_over = problem.has_hessian and d <= WIDEST_GRAM
        patience = min(self.max_iter, PATIENCE) if can_hand_over else self.max_iter
        first = LBFGS(patience, self.tol, verbose=self.verbose).solve(problem, w0)
        left = self.max_iter - first.n_iter
        if first.converged or first.separable or not can_hand_over or left == 0:
            return first
        second = Newton(left, self.tol, self.verbose).solve(problem, first.w)
        second.n_iter += first.n_iter
        second.history = first.history + second.history[1:]
        return second
