"""Solvers: ``solve(problem, w0) -> Solution``. Each says in its docstring what it needs from a problem."""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.solvers.auto import Auto as Auto
    from apexrank.solvers.base import Problem as Problem
    from apexrank.solvers.base import Solution as Solution
    from apexrank.solvers.base import Solver as Solver
    from apexrank.solvers.bounded import BoundedLBFGS as BoundedLBFGS
    from apexrank.solvers.bounded import NonNegativeProblem as NonNegativeProblem
    from apexrank.solvers.continuation import Continuation as Continuation
    from apexrank.solvers.coordinate import CoordinateDescent as CoordinateDescent
    from apexrank.solvers.gradient import AcceleratedGradient as AcceleratedGradient
    from apexrank.solvers.gradient import GradientDescent as GradientDescent
    from apexrank.solvers.lbfgs import LBFGS as LBFGS
    from apexrank.solvers.newton import Newton as Newton
    from apexrank.solvers.sparse import OrthantNewton as OrthantNewton
    from apexrank.solvers.sparse import SplitLBFGS as SplitLBFGS
else:
    __getattr__, __dir__, __all__ = attach(__name__)
