"""Solvers: ``solve(problem, w0) -> Solution``. Each says in its docstring what it needs from a problem."""

from apexrank.solvers.base import Problem, Solution
from apexrank.solvers.coordinate import CoordinateDescent
from apexrank.solvers.lbfgs import LBFGS

__all__ = ["LBFGS", "CoordinateDescent", "Problem", "Solution"]
