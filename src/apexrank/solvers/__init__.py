"""Solvers: ``solve(problem, w0) -> Solution``; ``takes`` lists the penalties and objectives each one supports."""

from apexrank.solvers.auto import SOLVERS, Auto, Continuation, solver_for
from apexrank.solvers.base import Solution, Solver
from apexrank.solvers.coordinate import CoordinateDescent
from apexrank.solvers.lbfgs import LBFGS
from apexrank.solvers.newton import Newton

__all__ = [
    "LBFGS",
    "SOLVERS",
    "Auto",
    "Continuation",
    "CoordinateDescent",
    "Newton",
    "Solution",
    "Solver",
    "solver_for",
]
