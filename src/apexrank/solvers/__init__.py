"""Solvers: ``solve(problem, w0) -> Solution``. Each says in its docstring what it needs from a problem."""

from apexrank.solvers.auto import Auto
from apexrank.solvers.base import Problem, Solution, Solver
from apexrank.solvers.bounded import BoundedLBFGS, NonNegativeProblem
from apexrank.solvers.continuation import Continuation
from apexrank.solvers.coordinate import CoordinateDescent
from apexrank.solvers.gradient import AcceleratedGradient, GradientDescent
from apexrank.solvers.lbfgs import LBFGS
from apexrank.solvers.newton import Newton
from apexrank.solvers.sparse import OrthantNewton, SplitLBFGS

__all__ = [
    "LBFGS",
    "AcceleratedGradient",
    "Auto",
    "BoundedLBFGS",
    "Continuation",
    "CoordinateDescent",
    "GradientDescent",
    "Newton",
    "NonNegativeProblem",
    "OrthantNewton",
    "Problem",
    "Solution",
    "Solver",
    "SplitLBFGS",
]
