"""The default: Newton where it is cheap or needed, L-BFGS elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from apexrank.models.linear import LinearProblem
from apexrank.solvers.base import Solution
from apexrank.solvers.lbfgs import LBFGS
from apexrank.solvers.newton import Newton
from apexrank.solvers.sparse import OrthantNewton, SplitLBFGS

CHEAP = 1e8  # multiplications of a Hessian that takes a few milliseconds
DEAR = 1e12  # and of one that is worth its while only to a problem that is stiff
PATIENCE = 100  # L-BFGS iterations after which a problem counts as stiff


def solvers_for(problem: LinearProblem) -> tuple[Any, Any]:
    """The Newton and the L-BFGS that fit the problem's penalty."""
    return (OrthantNewton, SplitLBFGS) if problem.l1 > 0 else (Newton, LBFGS)


@dataclass(frozen=True)
class Auto:
    """Newton for small problems; otherwise L-BFGS, handing over to Newton when it has not converged by then.

    ``benchmarks/solvers.py`` shows the two on easy and stiff problems: on large well-conditioned data L-BFGS needs
    a handful of passes over X, on separable data with a small penalty it needs thousands where Newton needs tens.
    With an L1 penalty the two are :class:`OrthantNewton` and :class:`SplitLBFGS`.
    """

    takes_l1: ClassVar[bool] = True
    max_iter: int = 1000
    tol: float = 1e-6
    verbose: int = 0

    def solve(self, problem: Any, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``."""
        newton, lbfgs = solvers_for(problem)
        if problem.hessian_cost <= CHEAP:
            return newton(self.max_iter, self.tol, self.verbose).solve(problem, w0)
        can_hand_over = problem.hessian_cost <= DEAR
        patience = min(self.max_iter, PATIENCE) if can_hand_over else self.max_iter
        first = lbfgs(patience, self.tol, verbose=self.verbose).solve(problem, w0)
        left = self.max_iter - first.n_iter
        if first.converged or first.separable or not can_hand_over or left == 0:
            return first
        second = newton(left, self.tol, self.verbose).solve(problem, first.w)
        second.n_iter += first.n_iter
        second.history = first.history + second.history[1:]
        return second
