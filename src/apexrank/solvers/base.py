"""Interfaces between solvers and problems."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from apexrank.problem.problem import Problem

__all__ = ["Problem", "Solution", "Solver", "report"]


@dataclass
class Solution:
    """Result of a solver: ``value`` at ``w`` with its gradient norm, duality gap and history of values."""

    w: np.ndarray
    value: float = np.inf
    grad_norm: float = np.inf
    gap: float = np.nan
    n_iter: int = 0
    converged: bool = False
    separable: bool = False
    collapsed: bool = False
    stalled: bool = False  # it stopped before reaching max_iter
    history: list[float] = field(default_factory=list)

    def update(self, problem: Problem, w: np.ndarray, value: float, grad: np.ndarray, tol: float) -> bool:
        """Record the state after an iteration; return True if the solver should stop.

        It stops if it has converged, or if there is no finite minimiser.
        """
        self.certify(problem, w, value, grad, tol)
        self.separable = problem.unbounded(value, w)
        self.history.append(value)
        return self.converged or self.separable

    def certify(self, problem: Problem, w: np.ndarray, value: float, grad: np.ndarray, tol: float) -> bool:
        """Record a point with its certificate; return True if it has converged.

        That is so if the scaled gradient norm is at most ``tol``, or the relative duality gap at most ``tol**2`` (the
        value is quadratic around the minimum, so both imply the same accuracy of w).
        """
        self.w, self.value = w, value
        self.grad_norm, self.gap, unit = problem.certificate(w, value, grad)
        self.converged = self.grad_norm <= tol or self.gap <= tol**2 * unit
        return self.converged


class Solver(Protocol):
    """Interface of solvers, which minimise a problem from a starting point.

    A solver may have ``takes``, the names of supported features besides a smooth objective with a ridge penalty
    (:attr:`Problem.needs`), and ``needs_scores``, if it evaluates the objective on its own scores.
    """

    def solve(self, problem: Any, w0: np.ndarray) -> Solution: ...


def report(verbose: int, solution: Solution) -> None:
    """Print one line per iteration if ``verbose > 0``."""
    if verbose:
        print(
            f"iteration {solution.n_iter:5d}  value {solution.value:.12g}  "
            f"gradient {solution.grad_norm:.2e}  gap {solution.gap:.2e}"
        )
