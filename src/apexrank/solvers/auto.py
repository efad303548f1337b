"""Composite solvers: the default, continuation for p = ∞ by increasingly sharp smoothing, and lookup by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from apexrank.errors import InputError
from apexrank.penalties import Ridge
from apexrank.solvers.base import Problem, Solution, Solver, report
from apexrank.solvers.coordinate import CoordinateDescent
from apexrank.solvers.lbfgs import LBFGS
from apexrank.solvers.newton import Newton

CHEAP = 1e8  # multiplications of a Hessian that takes a few milliseconds
DEAR = 1e12  # multiplications of a Hessian that pays off only for ill-conditioned problems
SLOW = 40  # Newton steps after which a path over the penalty is faster
PATIENCE = 100  # L-BFGS iterations after which a problem counts as ill-conditioned


def in_span(
    solve: Callable[[Problem, np.ndarray], Solution],
    problem: Problem,
    w0: np.ndarray,
    holds: Callable[[Problem, Solution], bool],
) -> Solution:
    """Solve the problem in the span of its rows if available, which reduces d > n variables to n.

    The span of sparse rows is computed from their products, in which columns 1e8 times smaller than others are lost.
    If its certificate does not hold in the columns of X, they are solved for from there.
    """
    reduced = problem.in_span()
    if reduced is None:
        return solve(problem, w0)
    solution = solve(reduced, reduced.to_v(w0))
    solution.w = reduced.to_w(solution.w)
    if not solution.converged or holds(problem, solution):
        return solution
    return _joined(solution, solve(problem, solution.w))


@dataclass(frozen=True)
class Auto:
    """Newton for small problems; otherwise L-BFGS, followed by Newton if L-BFGS has not converged.

    ``benchmarks/solvers.py`` compares the two on easy and ill-conditioned problems: on large well-conditioned data
    L-BFGS needs a few passes over X; on separable data with a small penalty it needs thousands where Newton needs tens.
    With more columns than rows and a ridge it works in the span of the rows. If Newton is slow it follows
    :func:`ridge_path`.
    """

    takes: ClassVar[frozenset[str]] = LBFGS.takes | Newton.takes
    max_iter: int = 1000
    tol: float = 1e-6
    verbose: int = 0

    def solve(self, problem: Problem, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``."""
        return in_span(self._solve, problem, w0, self._holds)

    def _holds(self, problem: Problem, solution: Solution) -> bool:
        return solution.certify(problem, solution.w, *problem.value_and_grad(solution.w), self.tol)

    def _solve(self, problem: Problem, w0: np.ndarray) -> Solution:
        if problem.hessian_cost <= CHEAP or "groups" in problem.needs:
            return self._newton(problem, w0, self.max_iter)
        can_hand_over = problem.hessian_cost <= DEAR
        patience = min(self.max_iter, PATIENCE) if can_hand_over else self.max_iter
        first = LBFGS(patience, self.tol, verbose=self.verbose).solve(problem, w0)
        left = self.max_iter - first.n_iter
        if first.converged or first.separable or not can_hand_over or left == 0:
            return first
        return _joined(first, self._newton(problem, first.w, left))

    def _newton(self, problem: Problem, w0: np.ndarray, max_iter: int) -> Solution:
        """Newton, and if it is slow for a ridge problem, Newton along a path of decreasing ridges."""
        first = Newton(min(max_iter, SLOW), self.tol, self.verbose).solve(problem, w0)
        left = max_iter - first.n_iter
        if first.converged or first.separable or first.n_iter < SLOW or left == 0:
            return first
        if problem.penalty.convexity > 0 and not problem.needs:
            return _joined(first, ridge_path(problem, left, self.tol, self.verbose))
        return _joined(first, Newton(left, self.tol, self.verbose).solve(problem, first.w))


def _joined(first: Solution, second: Solution) -> Solution:
    second.n_iter += first.n_iter
    second.history = first.history + second.history[1:]
    return second


def ridge_path(problem: Problem, max_iter: int, tol: float, verbose: int = 0) -> Solution:
    """Newton along ridges that decrease tenfold to that of the problem, each stage extrapolated from the last two.

    On separated classes a small alpha approaches the piecewise linear hard-margin problem, on which Newton's steps are
    short. There the minimiser is ``c/alpha + e`` up to terms that vanish with alpha: two points of the path determine c
    and e, and the next stage takes a step or two.
    """
    alpha, points, n_iter = problem.penalty.convexity, [(np.inf, np.zeros(problem.n_features))], 0
    strongest = problem.curvature * float(np.mean(problem.spread**2))
    for k in range(max(0, int(np.ceil(np.log10(strongest / alpha)))), -1, -1):
        ridge, (b, guess) = alpha * 10.0**k, points[-1]
        if len(points) > 2:
            a, before = points[-2]
            e = (a * before - b * guess) / (a - b)
            guess = b * (guess - e) / ridge + e
        stage = problem.with_penalty(Ridge(ridge)) if k else problem
        solution = Newton(max_iter - n_iter, tol, verbose).solve(stage, guess)
        n_iter += solution.n_iter
        points.append((ridge, solution.w))
    solution.n_iter = n_iter
    return solution


MAX_STAGES = 30
INNER_TOL = (
    1e-3  # fraction of tol: with a small ridge, the square of the remaining gradient becomes a large gap
)
MIN_PROGRESS = 0.5
NEARLY_INFINITE = 1e6
STAGE_ITER = 60  # a stage need not be exact: the next one starts from better multipliers


@dataclass(frozen=True)
class Continuation:
    """Solve a smoothed problem repeatedly, sharpening around its multipliers until the limit's duality gap closes.

    The gap is that of the problem without smoothing, with value ``Σ_i ℓ(f_i − max g) + h(w)`` and the multipliers
    ``(a, q)`` of the smooth problem as dual point. The sequence ends when the gap is at most ``tol``, or at most
    ``tol`` relative to the value and no longer decreasing. Without a penalty, or with one that leaves some directions
    free, there is no gap (nan), and the criterion is the smoothing error together with the gradient. If the classes
    overlap strongly, w = 0 is a minimum; the solution then has the direction of the solutions for large p, and
    ``collapsed`` is set.

    Needs a linear problem whose objective has ``limit``, ``dual_value`` and ``sharpened``
    (:class:`~apexrank.objectives.InfinitePush`).
    """

    takes: ClassVar[frozenset[str]] = Auto.takes | {"limit"}
    max_iter: int = 1000
    tol: float = 1e-6
    verbose: int = 0
    inner: Any = None

    def solve(self, problem: Problem, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``; the history holds the value of the limit after each stage."""
        if self.inner is not None:
            return self._solve(problem, w0)
        return in_span(self._solve, problem, w0, self._holds)

    def _holds(self, problem: Problem, solution: Solution) -> bool:
        unit = max(problem.total, abs(solution.value))
        return abs(self._limit(problem, solution.w) - solution.value) <= 0.1 * self.tol * unit

    def _solve(self, problem: Problem, w0: np.ndarray) -> Solution:
        total, previous = Solution(w0), np.inf
        for _ in range(MAX_STAGES):
            stage = self._solve_stage(problem, total)
            total.w, total.grad_norm, total.separable = stage.w, stage.grad_norm, stage.separable
            total.n_iter += stage.n_iter
            error = self._certify(problem, total)
            report(self.verbose, total)
            stalled = total.converged and error > MIN_PROGRESS * previous
            if (
                total.separable
                or error <= self.tol * problem.total
                or stalled
                or total.n_iter >= self.max_iter
            ):
                break
            previous = error
            sharper = problem.objective.sharpened(problem.design.scores(total.w))  # type: ignore[attr-defined]
            problem = problem.with_objective(sharper)
        if total.converged:
            self._point_somewhere(problem, total)
        return total

    def _point_somewhere(self, problem: Problem, total: Solution) -> None:
        """If w = 0 is as good, use the direction for large p, scaled as close to zero as ``tol`` requires.

        Solutions for p → ∞ then shrink to zero like v/p. Their direction v still ranks, while the direction of the
        solution itself is meaningless. With an L1 penalty the solution is zero: no feature is worth its penalty.
        """
        objective: Any = problem.objective
        zero = objective.limit(np.zeros(problem.design.n_rows)) / problem.count
        lowest = total.value - np.nan_to_num(total.gap)
        unit = problem.total
        if zero > total.value + self.tol * max(unit, abs(zero)):
            return
        w = 0 * total.w
        if problem.penalty.l1 == 0:
            growing = problem.with_objective(objective.finite(NEARLY_INFINITE))
            w = Auto(self.max_iter, self.tol).solve(growing, w).w
        enough = max(lowest + 0.9 * self.tol * unit, zero + 0.1 * self.tol * unit)
        while (value := self._limit(problem, w)) > enough:
            w = w / 4
        total.w, total.value, total.collapsed = w, value, True
        total.gap = value - lowest if not np.isnan(total.gap) else total.gap
        total.history.append(value)

    def _solve_stage(self, problem: Problem, total: Solution) -> Solution:
        kind = self.inner or (Newton if problem.hessian_cost <= DEAR else LBFGS)
        limit = min(STAGE_ITER, self.max_iter - total.n_iter)
        solver = kind(limit, INNER_TOL * self.tol, verbose=max(0, self.verbose - 1))
        return solver.solve(problem, total.w)

    def _certify(self, problem: Problem, total: Solution) -> float:
        """Record value and gap of the limit; return the gap, or the smoothing error if there is no gap.

        Scores are those of the stored rows: far from zero, those of the original rows would lose digits.
        """
        objective: Any = problem.objective
        dual = objective.dual_value(problem.design.scores(total.w)) / problem.count
        slope, penalty = problem.slope(total.w), problem.penalty.value(total.w)
        total.value = self._limit(problem, total.w)
        total.gap = float(np.maximum(total.value - problem.dual_bound(dual, slope), 0.0))  # nan stays nan
        total.history.append(total.value)
        no_gap = np.isnan(total.gap)
        # where −slope is a subgradient of the penalty h, h*(−slope) = −slope·w − h(w)
        error = total.value - (dual + slope @ total.w + penalty) if no_gap else total.gap
        small_gradient = total.grad_norm <= self.tol or not no_gap
        unit = max(problem.total, abs(total.value))
        total.converged = bool(error <= self.tol * unit and small_gradient)
        return error

    @staticmethod
    def _limit(problem: Problem, w: np.ndarray) -> float:
        """Full value at w without smoothing."""
        objective: Any = problem.objective
        return objective.limit(problem.design.scores(w)) / problem.count + problem.penalty.value(w)


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
    """Resolve a solver by name; raise InputError if it cannot fit the problem.

    Examples
    --------
    >>> solver_for("newton", max_iter=100, tol=1e-6)
    Newton(max_iter=100, tol=1e-06, verbose=0)
    """
    # by position, because the limit of coordinate descent has the papers' name, t_max
    solver: Any = SOLVERS[spec](max_iter, tol, verbose=verbose) if isinstance(spec, str) else spec
    needs = set() if problem is None else problem.needs
    name = spec if isinstance(spec, str) else type(spec).__name__
    takes: frozenset[str] = getattr(solver, "takes", frozenset())
    # the limit is handled by Continuation, around a solver that supports all penalties
    known = LBFGS.takes if "limit" in needs else needs
    able = [other for other, kind in SOLVERS.items() if known <= kind.takes]
    for need in sorted(needs - takes - ({"limit"} if name in able else set())):
        hint = " or Continuation" if need == "limit" else ""
        raise InputError(f"solver {name!r} cannot fit {NEEDS[need]}: use {', '.join(able)}{hint}")
    if "limit" in needs and not isinstance(solver, Continuation):
        inner = None if name == "auto" else type(solver)
        return Continuation(max_iter, tol, verbose, inner)
    return solver
