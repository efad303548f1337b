"""Plain and accelerated gradient descent, which use gradients and never compare values.

A. Nemirovski, *Efficient methods in convex programming*, 1994; S. Acharyya, dissertation, 2013, Table 4.2. There the
accelerated method is printed with steps 1/t, which must be 1/l, and with a superfluous square in
``a ← (1 + √(4a² + 1))/2``, which removes the acceleration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from apexrank.errors import InputError
from apexrank.problem.design import WIDEST_HESSIAN
from apexrank.problem.problem import Problem
from apexrank.solvers.base import Solution, report


def gradient_lipschitz(problem: Problem, smoothness: float | None = None) -> float:
    """Lipschitz constant of the gradient with respect to ``u = w·scale``, the coordinates solvers work in.

    It is the largest eigenvalue of ``(l·ZᵀZ + alpha)/scale²``. l bounds the curvature with respect to the scores (the
    objective's ``smoothness`` unless given, divided as the objective is). Z is X, minus its column means if the
    objective is invariant to shifts.

    Examples
    --------
    >>> from apexrank.objectives.retarget import Retarget
    >>> problem = Problem(np.array([[1.0], [3.0]]), Retarget([0, 1]), penalty=0.5)
    >>> float(gradient_lipschitz(problem) * problem.scale[0] ** 2)
    2.5
    """
    bound = getattr(problem.objective, "smoothness", math.inf) if smoothness is None else smoothness
    if not isinstance(bound, Real) or not 0 < float(bound) < math.inf:
        raise InputError(
            "steps 1/L need an objective with a Lipschitz gradient: give `lipschitz`, its bound with respect to the "
            "scores, or use GradientDescent(step=(a, b)) or solver='lbfgs'"
        )
    bound = float(bound) / problem.count
    seen = not getattr(problem.objective, "shift_invariant", True)
    centre = np.zeros_like(problem.centre) if seen else problem.centre
    scale, d = problem.scale, problem.n_features
    if d <= WIDEST_HESSIAN:
        n = problem.design.n_rows
        gram, _ = problem.design.curvature(centre, np.ones(n), np.zeros((n, 0)))
        curvature = (bound * gram + problem.penalty.hessian(d)) / np.outer(scale, scale)
        return float(np.linalg.eigvalsh(curvature)[-1])

    def product(v: np.ndarray) -> np.ndarray:
        v = v.ravel() / scale
        scores = problem.design.scores(v) - centre @ v
        pulled = problem.design.pull_back(scores) - centre * scores.sum()
        return (bound * pulled + problem.penalty.smooth(v)[1]) / scale

    operator = LinearOperator((d, d), product, dtype=float)
    found = eigsh(operator, 1, v0=np.ones(d), tol=1e-2, return_eigenvectors=False)
    return 1.02 * float(found[0])  # with a margin for the tolerance: longer steps could diverge


@dataclass(frozen=True)
class GradientDescent:
    """``u ← u − step·∇`` in the coordinates ``u = w·scale``, where every column has unit spread.

    With steps 1/L the value at step t is within ``L·|u0 − u*|²/(2t)`` of the minimum. Steps ``a/(b + √t)`` work for
    any convex objective, smooth or not; the best value so far is then within O(log(t)/√t). Needs
    ``value_and_grad``; the value is reported but not used.

    Parameters
    ----------
    max_iter, tol
        Maximum number of steps, and tolerance of the certificate.
    step : (a, b), optional
        Steps ``a/(b + √t)``, t = 0, 1, …; 1/L by default, which needs an objective with ``smoothness``.
    lipschitz : float, optional
        l, a bound on the objective's curvature with respect to the scores (1/s for an s-strongly convex φ), if it
        differs from the objective's own bound.
    verbose : int
        1 prints a line per step.

    Examples
    --------
    >>> from apexrank.objectives.retarget import Retarget
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
    >>> solution = GradientDescent().solve(Problem(X, Retarget([0, 1, 1, 2]), penalty=0.1), np.zeros(2))
    >>> solution.w.round(4).tolist(), bool(solution.converged)
    ([0.6488, -0.309], True)
    """

    takes: ClassVar[frozenset[str]] = frozenset({"quadratic"})
    max_iter: int = 1000
    tol: float = 1e-6
    step: tuple[float, float] | None = None
    lipschitz: float | None = None
    verbose: int = 0

    @np.errstate(over="ignore", invalid="ignore")
    def solve(self, problem: Problem, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``; stop without convergence if steps are so long that the value overflows."""
        length_of, solution, w = self._step_lengths(problem), Solution(w0), w0
        while (grad := _visit(self, problem, solution, w)) is not None:
            w = w - length_of(solution.n_iter) * grad / problem.scale**2
            solution.n_iter += 1
        return solution

    def _step_lengths(self, problem: Problem) -> Callable[[int], float]:
        if self.step is None:
            constant = 1 / gradient_lipschitz(problem, self.lipschitz)
            return lambda t: constant
        try:
            a, b = map(float, self.step)
        except (TypeError, ValueError):
            a = b = math.nan
        if not (0 < a < math.inf and 0 < b < math.inf):
            raise InputError(f"`step` must be two finite numbers (a, b) above 0, got {self.step!r}")
        return lambda t: a / (b + math.sqrt(t))


@dataclass(frozen=True)
class AcceleratedGradient:
    """Nesterov's accelerated gradient: steps 1/L from extrapolated points.

        x_t = u_t − ∇(u_t)/L,    a_{t+1} = (1 + √(4a_t² + 1))/2,    u_{t+1} = x_t + (a_t − 1)/a_{t+1}·(x_t − x_{t−1})

    in the coordinates ``u = w·scale``. After t steps the value at x is within ``2L·|u0 − u*|²/(t + 1)²`` of the minimum
    (Beck and Teboulle, 2009). Needs ``value_and_grad`` and an objective with a Lipschitz gradient; the value is
    reported but not used. The history has the values at u_t, where gradients are computed, and finally at x if
    ``max_iter`` is reached.

    Parameters
    ----------
    max_iter, tol, lipschitz, verbose
        As in :class:`GradientDescent`.
    restart : bool
        Restart with a = 1 if the momentum points uphill (O'Donoghue and Candès, 2015), which gives linear convergence
        on strongly convex problems without knowing the modulus. False is the method as published.

    Examples
    --------
    >>> from apexrank.objectives.retarget import Retarget
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
    >>> solution = AcceleratedGradient().solve(Problem(X, Retarget([0, 1, 1, 2]), penalty=0.1), np.zeros(2))
    >>> solution.w.round(4).tolist(), bool(solution.converged)
    ([0.6488, -0.309], True)
    """

    takes: ClassVar[frozenset[str]] = frozenset({"quadratic"})
    max_iter: int = 1000
    tol: float = 1e-6
    lipschitz: float | None = None
    restart: bool = True
    verbose: int = 0

    @np.errstate(over="ignore", invalid="ignore")
    def solve(self, problem: Problem, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``."""
        unit = gradient_lipschitz(problem, self.lipschitz) * problem.scale**2
        solution, w, reached, a = Solution(w0), w0, w0, 1.0
        while (grad := _visit(self, problem, solution, w)) is not None:
            before, reached = reached, w - grad / unit
            if self.restart and grad @ (reached - before) > 0:
                a = 1.0
            momentum = a - 1
            a = (1 + math.sqrt(4 * a**2 + 1)) / 2
            solution.n_iter += 1
            last = solution.n_iter >= self.max_iter
            w = reached if last else reached + momentum / a * (reached - before)
        return solution


def _visit(solver: Any, problem: Problem, solution: Solution, w: np.ndarray) -> np.ndarray | None:
    """Record a point in the solution; return the gradient there, or None if it was the last point."""
    value, grad = problem.value_and_grad(w)
    if not (np.isfinite(value) and np.isfinite(grad).all()):
        return None
    done = solution.update(problem, w, value, grad, solver.tol)
    report(solver.verbose, solution)
    return None if done or solution.n_iter >= solver.max_iter else grad
