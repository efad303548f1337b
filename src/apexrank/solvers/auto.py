"""The default: Newton where it is cheap or needed, L-BFGS elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from apexrank.solvers.base import Problem, Solution
from apexrank.solvers.lbfgs import LBFGS
from apexrank.solvers.newton import Newton

CHEAP = 1e8  # multiplications of a Hessian that takes a few milliseconds
DEAR = 1e12  # and of one that is worth its while only to a problem that is stiff
PATIENCE = 100  # L-BFGS iterations after which a problem counts as stiff


@dataclass(frozen=True)
class Auto:
    """Newton for small problems; otherwise L-BFGS, handing over to Newton when it has not converged by then.

    ``benchmarks/solvers.py`` shows the two on easy and stiff problems: on large well-conditioned data L-BFGS needs
    a handful of passes over X, on separable data with a small penalty it needs thousands where Newton needs tens.
    """

    takes: ClassVar[frozenset[str]] = LBFGS.takes & Newton.takes
    max_iter: int = 1000
    tol: float = 1e-6
    verbose: int = 0

    def solve(self, problem: Problem, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``."""
        if problem.hessian_cost <= CHEAP:
            return Newton(self.max_iter, self.tol, self.verbose).solve(problem, w0)
        can_hand_over = problem.hessian_cost <= DEAR
        patience = min(self.max_iter, PATIENCE) if can_hand_over else self.max_iter
        first = LBFGS(patience, self.tol, verbose=self.verbose).solve(problem, w0)
        left = self.max_iter - first.n_iter
        if first.converged or first.separable or not can_hand_over or left == 0:
            return first
        second = Newton(left, self.tol, self.verbose).solve(problem, first.w)
        second.n_iter += first.n_iter
        second.history = first.history + second.history[1:]
        return second
