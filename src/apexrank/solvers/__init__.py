"""Solvers: ``solve(problem, w0) -> Solution``. Each says by ``takes`` which penalties and objectives it knows."""

from __future__ import annotations

from typing import Any

from apexrank.errors import InputError
from apexrank.problem.problem import Problem
from apexrank.solvers.auto import Auto, Continuation
from apexrank.solvers.base import Solution, Solver
from apexrank.solvers.coordinate import CoordinateDescent
from apexrank.solvers.lbfgs import LBFGS
from apexrank.solvers.newton import Newton
from apexrank.validation import check_choice

__all__ = [
    "LBFGS",
    "Auto",
    "Continuation",
    "CoordinateDescent",
    "Newton",
    "Solution",
    "Solver",
    "solver_for",
]

SOLVERS: dict[str, Any] = {
    "auto": Auto,
    "lbfgs": LBFGS,
    "newton": Newton,
    "coordinate": CoordinateDescent,
}
NEEDS = {
    "l1": "an L1 penalty",
    "groups": "a group lasso",
    "bounds": "bounds on the coefficients",
    "quadratic": "a quadratic penalty other than ridge",
    "limit": "p=inf",
}


def solver_for(
    spec: str | Solver, problem: Problem | None = None, *, max_iter: int, tol: float, verbose: int = 0
) -> Solver:
    """Resolve a solver by name, or check ``spec`` itself; raise InputError for what it cannot fit.

    Examples
    --------
    >>> solver_for("newton", max_iter=100, tol=1e-6)
    Newton(max_iter=100, tol=1e-06, verbose=0, keep=0.0)
    """
    if isinstance(spec, str):
        check_choice("solver", spec, SOLVERS)
    elif not hasattr(spec, "solve"):
        raise InputError(
            f"solver must be a name or have a method solve, got {spec!r}: use one of {', '.join(SOLVERS)}"
        )
    # by position: the limit of coordinate descent has the papers' name, t_max
    solver: Any = SOLVERS[spec](max_iter, tol, verbose=verbose) if isinstance(spec, str) else spec
    needs = set() if problem is None else problem.needs
    name = spec if isinstance(spec, str) else type(spec).__name__
    takes: frozenset[str] = getattr(solver, "takes", frozenset())
    # the limit is the work of Continuation, around a solver that knows all penalties
    known = LBFGS.takes if "limit" in needs else needs
    able = [other for other, kind in SOLVERS.items() if known <= kind.takes]
    for need in sorted(needs - takes - ({"limit"} if name in able else set())):
        hint = " or Continuation" if need == "limit" else ""
        raise InputError(f"solver {name!r} cannot fit {NEEDS[need]}: use {', '.join(able)}{hint}")
    if "limit" in needs and not isinstance(solver, Continuation):
        inner = None if name == "auto" else type(solver)
        return Continuation(max_iter, tol, verbose, inner)
    return solver
