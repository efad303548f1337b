"""Interfaces between solvers and problems."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from apexrank.problem.problem import Problem

__all__ = ["Problem", "Solution", "Solver", "report"]


@dataclass
class Solution:
    """A solver's answer: ``value`` at ``w`` with its gradient norm, duality gap and history of values."""

    w: np.ndarray
    value: float = np.inf
    grad_norm: float = np.inf
    gap: float = np.nan
    n_iter: int = 0
    converged: bool = False
    separable: bool = False
    collapsed: bool = False
    stalled: bool = False  # it ended before its iterations did
    history: list[float] = field(default_factory=list)

    def update(self, problem: Problem, w: np.ndarray, value: float, grad: np.ndarray, tol: float) -> bool:
        """Note the state after an iteration; True when there is nothing left to do.

        Done means: scaled gradient norm at most ``tol``, or relative duality gap at most ``tol**2`` (the value is
        quadratic around the minimum, so both ask for the same accuracy of w), or no finite minimiser.
        """
        self.w, self.value = w, value
        self.grad_norm, self.gap, unit = problem.certificate(w, value, grad)
        self.converged = self.grad_norm <= tol or self.gap <= tol**2 * unit
        self.separable = problem.unbounded(value, w)
        self.history.append(value)
        return self.converged or self.separable


class Solver(Protocol):
    """Minimises a problem from a starting point.

    It may have ``takes``, the names of what it knows besides a smooth objective with a ridge penalty
    (:attr:`Problem.needs`), and ``needs_scores``, which says that it evaluates the objective on scores of its own.
    """

    def solve(self, problem: Any, w0: np.ndarray) -> Solution: ...


def report(verbose: int, solution: Solution) -> None:
    """One line per iteration for ``verbose > 0``."""
    if verbose:
        print(
            f"iteration {solution.n_iter:5d}  value {solution.value:.12g}  "
            f"gradient {solution.grad_norm:.2e}  gap {solution.gap:.2e}"
        )
