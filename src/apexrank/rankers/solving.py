"""From a name to the solver that can do the job: ridge, L1 penalty, p = ∞."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apexrank.errors import InputError
from apexrank.solvers import (
    LBFGS,
    Auto,
    Continuation,
    CoordinateDescent,
    Newton,
    OrthantNewton,
    Solver,
    SplitLBFGS,
)
from apexrank.solvers.gradient import AcceleratedGradient, GradientDescent

SOLVERS: dict[str, Callable[..., Solver]] = {
    "auto": Auto,
    "lbfgs": LBFGS,
    "newton": Newton,
    "coordinate": CoordinateDescent,
    "gradient": GradientDescent,
    "accelerated": AcceleratedGradient,
}
L1_SOLVERS: dict[str, Callable[..., Solver]] = {"auto": Auto, "lbfgs": SplitLBFGS, "newton": OrthantNewton}


def solver_for(spec: str | Solver, *, l1: bool, infinite: bool, **options: Any) -> Solver:
    """The solver that ``spec`` names, or ``spec`` itself; what it cannot fit is refused by name.

    Examples
    --------
    >>> solver_for("newton", l1=True, infinite=False, max_iter=100, tol=1e-6, verbose=0)
    OrthantNewton(max_iter=100, tol=1e-06, verbose=0)
    """
    if isinstance(spec, str) and spec not in SOLVERS:
        raise InputError(f"unknown solver {spec!r}: use one of {', '.join(SOLVERS)}")
    if not isinstance(spec, str) and not hasattr(spec, "solve"):
        raise InputError(
            f"solver must be a name or have a method solve, got {spec!r}: use one of {', '.join(SOLVERS)}"
        )
    solver = _named(spec, l1, options) if isinstance(spec, str) else spec
    name = spec if isinstance(spec, str) else type(spec).__name__
    if l1 and not getattr(solver, "takes_l1", False):
        raise InputError(f"solver {name!r} cannot fit l1_ratio > 0: use {', '.join(L1_SOLVERS)}")
    if not infinite or isinstance(solver, Continuation):
        return solver
    if name not in L1_SOLVERS:
        raise InputError(f"solver {name!r} cannot fit p=inf: use {', '.join(L1_SOLVERS)} or Continuation")
    return Continuation(inner=None if name == "auto" else type(solver), **options)


def _named(name: str, l1: bool, options: dict[str, Any]) -> Solver:
    kind = {**SOLVERS, **(L1_SOLVERS if l1 else {})}[name]
    # by position: the limit of coordinate descent has the papers' name, t_max
    return kind(options["max_iter"], options["tol"], verbose=options["verbose"])
