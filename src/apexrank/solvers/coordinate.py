"""Coordinate descent of the papers (JMLR 2009, Fig. 2) with exact steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq

from apexrank.losses import Exponential
from apexrank.prices import Identity, Power
from apexrank.solvers.base import Problem, Solution, report

WIDEST_STEP = 1e12


@dataclass(frozen=True)
class CoordinateDescent:
    """Coordinate descent: each of ``t_max`` rounds moves along the column with the largest absolute derivative.

    The step solves ``dR/dα = 0`` exactly (JMLR 2009, eq. 1): in closed form for a two-valued column
    (:func:`two_valued_step`), otherwise by bracketing and Brent's method on the derivative. The pair weights ``d_ik``
    of the papers are never formed: per example they sum to the gradient with respect to the scores. The choice of
    column depends on the units of the columns; the papers scale features to [0, 1].

    Requires a linear problem: scores, single columns, and the gradient with respect to the scores.
    """

    takes: ClassVar[frozenset[str]] = frozenset()
    needs_scores: ClassVar[bool] = True
    t_max: int = 100
    tol: float = 1e-6
    verbose: int = 0

    def solve(self, problem: Problem, w0: np.ndarray) -> Solution:
        """Minimise from ``w0``."""
        solution, w, scores = Solution(w0), w0.copy(), problem.design.scores(w0)
        while True:
            value, slope = problem.objective.value_and_grad(scores)
            own, pull = problem.penalty.smooth(w)
            value = value / problem.count + own
            grad = problem.design.pull_back(slope) / problem.count + pull
            done = solution.update(problem, w.copy(), value, grad, self.tol)
            report(self.verbose, solution)
            if done or solution.n_iter >= self.t_max:
                return solution
            j = int(np.abs(grad).argmax())
            column = problem.design.column(j)
            step = self._length(problem, scores, slope, j, column, w)
            w[j] += step
            scores = scores + step * column
            solution.n_iter += 1

    @staticmethod
    def _length(
        problem: Problem,
        scores: np.ndarray,
        slope: np.ndarray,
        j: int,
        column: np.ndarray,
        w: np.ndarray,
    ) -> float:
        """Step length along column j."""
        # the first trial step is 1, which is reasonable in units of the column's spread
        unit, alpha = problem.spread[j], problem.penalty.convexity * problem.count
        direction = column / unit

        def comes_apart(step: float) -> bool:
            return alpha == 0 and problem.objective.separated(scores + step * direction)

        ridge = alpha / unit**2
        step = line_search(problem.objective, scores, slope, direction, comes_apart, ridge, w[j] * unit)
        return step / unit


def line_search(
    objective: Any,
    scores: np.ndarray,
    slope: np.ndarray,
    direction: np.ndarray,
    endless: Callable[[float], bool],
    alpha: float = 0.0,
    w: float = 0.0,
) -> float:
    """``argmin_a objective(scores + a·direction) + (alpha/2)·(w + a)²`` (JMLR 2009, eq. 1).

    ``slope`` is the objective's gradient at ``scores``. Steps of increasing length are tried until the derivative
    changes sign; a step for which ``endless`` holds is returned as is.

    Examples
    --------
    >>> from apexrank.objectives import Push
    >>> objective, scores = Push([True, True, False, False], price="identity"), np.zeros(4)
    >>> slope = objective.value_and_grad(scores)[1]
    >>> round(line_search(objective, scores, slope, np.array([1.0, 0.4, 0.9, 0.1]), lambda step: False), 6)
    0.824219
    """
    if alpha == 0 and (closed := two_valued_step(objective, slope, direction)) is not None:
        return closed

    def derivative(step: float) -> float:
        return float(objective.value_and_grad(scores + step * direction)[1] @ direction) + alpha * (w + step)

    def too_far(step: float) -> bool:
        return abs(step) > WIDEST_STEP or endless(step)

    return exact_step(derivative, -np.sign(float(slope @ direction) + alpha * w), too_far)


def two_valued_step(objective: Any, slope: np.ndarray, direction: np.ndarray) -> float | None:
    """Exact step along a weak ranker with two values, ``a`` and ``a + c``, or None if there is no closed form.

    With the exponential loss and the price r**p, the pair weights at the current scores factorise: positive i and
    negative k have ``u_i·v_k``, where u and v are the absolute gradient entries of the objective. Let U₁, U₀ be the
    shares of u where the ranker outputs ``a + c`` and ``a``, and V₁, V₀ those of v. The objective along the step α is
    ``log(U₀ + U₁·e^{−cα}) + (1/p)·log(V₀ + V₁·e^{pcα})`` plus a constant, with its minimum at

        α = ln(W₊ / W₋) / (c·(p + 1)),    W₊ = U₁·V₀ and W₋ = U₀·V₁,

    the weights of the pairs that the ranker orders correctly and incorrectly. p = 1 is RankBoost's ``½·ln(W₊/W₋)``.
    JMLR 2009, sec. 5, states the closed form for p = 1 only; it holds for every p, and for the bottom of the list,
    where the classes swap roles.

    There is no closed form for other losses and prices, for both sides at once, for several groups, or for a ranker
    that orders no pair correctly, or none incorrectly.
    """
    p = _order_of_a_single_push(objective, slope)
    low, high = direction.min(), direction.max()
    says_high = direction == high
    if p is None or low == high or not np.all(says_high | (direction == low)):
        return None
    up, down = objective.positive, ~objective.positive
    shares = [abs(slope[c & says].sum()) for c in (up, down) for says in (says_high, ~says_high)]
    if min(shares) == 0:
        return None
    u1, u0, v1, v0 = np.log(shares)
    return float((u1 + v0 - u0 - v1) / ((high - low) * (p + 1)))


def _order_of_a_single_push(objective: Any, slope: np.ndarray) -> float | None:
    """The p of ``(1/p)·log R`` on one side of one group, or None for any other objective."""
    price = getattr(objective, "price", None)
    if not (isinstance(price, Power | Identity) and isinstance(objective.loss, Exponential)):
        return None
    # with both sides at once, the gradient sums to more than one for each class
    one_side = np.isclose(slope[~objective.positive].sum(), 1.0, rtol=1e-9, atol=0)
    return price.order if objective.n_groups == 1 and one_side and np.isfinite(price.order) else None


def exact_step(derivative: Callable[[float], float], sign: float, endless: Callable[[float], bool]) -> float:
    """Root of an increasing function in the direction of ``sign``, or the first trial step that is ``endless``."""
    near, far = 0.0, sign
    while sign * derivative(far) < 0:
        if endless(far):
            return far
        near, far = far, 4 * far
    return float(brentq(derivative, near, far, xtol=1e-14, rtol=1e-14))
