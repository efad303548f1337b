"""Least squares for single-index regression ``y ≈ g(x·w)``: joint Gauss–Newton steps on direction and link.

The minimiser of the convex cost of :class:`apexrank.objectives.link.UnknownLink` is close to the true direction for any
g, but it is not an efficient estimate. The squared error with g profiled out,

    S(w) = min over increasing g of Σ_i c_i·(y_i − g(x_i·w))²,

is not convex, but from that start a few Gauss–Newton steps reach a minimum. If w moves by δ, the fitted value of a row
moves by ``g'(θ)·(x − E[x|θ])·δ``, because g follows the conditional mean of x. The normal equations of these rows are
the efficient score of the model (Balabdaoui, Groeneboom and Hendrickx, *Score estimation in the monotone single-index
model*, 2019). Isotonic regression has no derivative, so g' and E[x|θ] are estimated in bins of neighbouring scores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from apexrank.kernels.pav import pav
from apexrank.problem import Problem
from apexrank.problem.design import Training
from apexrank.solvers.newton import newton_step

Solve = Callable[[Training, np.ndarray], tuple[Problem, np.ndarray]]
"""``solve(data, start)`` returns the convex problem of the rows and its minimiser."""

FEWEST = 5  # minimum number of distinct scores for binning
BINS = 0.45  # exponent of the number of bins: smooth links need fewer bins, links with jumps more
MOST_STEPS, SHORTEST = 20, 1 / 16
SETTLED = 1.0  # in units of the residual variance: a smaller gain is less than the information in one row
ROUNDING = (
    1e-10  # relative to an error: few rows have few orders, many of them with the same error up to rounding
)
DAMPING = 1e-6  # relative to the mean curvature, which is near 0 along w, since any link absorbs its length


class IsotonicFit(NamedTuple):
    """Isotonic regression of y on scores: the order of the rows, the distinct scores, and the fitted values."""

    order: np.ndarray
    level: np.ndarray  # index of the distinct score of each sorted row
    knots: np.ndarray
    values: np.ndarray
    mass: np.ndarray  # total weight at each distinct score
    residual: np.ndarray  # residuals of the sorted rows
    error: float  # weighted sum of squares

    def binned(self) -> Bins:
        """Means over bins of neighbouring scores."""
        # bins hold equally many distinct scores, not equal weight: weights are repetitions and have no natural scale
        n = len(self.knots)
        n_bins = min(max(FEWEST - 1, round(n**BINS)), n)
        number = np.arange(n) * n_bins // n
        mass = np.bincount(number, self.mass)
        middle, height = (np.bincount(number, self.mass * x) / mass for x in (self.knots, self.values))
        return Bins(number[self.level], mass, middle, height)


class Bins(NamedTuple):
    """Bins of neighbouring scores, with the weight, mean score and mean link value of each."""

    number: np.ndarray  # bin of the sorted rows
    mass: np.ndarray
    middle: np.ndarray
    height: np.ndarray

    @property
    def spans(self) -> tuple[float, float]:
        """Ranges of the scores and of the link."""
        return float(self.middle[-1] - self.middle[0]), float(self.height[-1] - self.height[0])

    def slopes(self) -> np.ndarray:
        """Slope of the link in each bin, in units of the spans: central differences, one-sided at the ends."""
        run, rise = (
            (np.append(x[1:], x[-1]) - np.append(x[0], x[:-1])) / span
            for x, span in zip((self.middle, self.height), self.spans, strict=True)
        )
        return np.divide(rise, run, out=np.zeros(len(run)), where=run > 0)


class SingleIndex:
    """Single-index regression on the rows of ``data`` with positive weight.

    ``problem`` is any problem on these rows; it provides the design and the scale of the columns.
    """

    def __init__(self, data: Training, problem: Problem) -> None:
        self.data, self.problem = data, problem
        y, weight, _ = data.columns()
        weight = np.ones(len(y)) if weight is None else weight
        self.rows = np.flatnonzero(weight > 0)
        self.weight = weight[self.rows]
        self.mean = float(np.average(y[self.rows], weights=self.weight))
        self.y = y[self.rows] - self.mean

    def scores(self, w: np.ndarray) -> np.ndarray:
        return self.data.tied_scores(w)[self.rows]

    def fit(self, theta: np.ndarray) -> IsotonicFit:
        """Increasing function of the scores closest to y; equal scores share a value."""
        order = np.argsort(theta)
        t, y, c = theta[order], self.y[order], self.weight[order]
        new = np.append(True, t[1:] > t[:-1])
        level = np.cumsum(new) - 1
        mass = np.bincount(level, c)
        values = pav(np.bincount(level, c * y) / mass, weight=mass)
        residual = y - values[level]
        return IsotonicFit(order, level, t[new], values, mass, residual, float(c @ residual**2))

    def step(self, at: IsotonicFit, w: np.ndarray) -> np.ndarray:
        """Gauss–Newton step of the coefficients; 0 if the link is flat, which leaves no equations."""
        problem, design, bins = self.problem, self.problem.design, at.binned()
        rows, c, own, n_bins = self.rows[at.order], self.weight[at.order], bins.number, len(bins.mass)
        span, rise = bins.spans
        if not (span > 0 and rise > 0):
            return np.zeros(len(w))
        slope = bins.slopes()  # dimensionless, because squares of extreme slopes would overflow or underflow
        # changes of the link can absorb bin means, so subtract them from rows and residuals
        missed = at.residual - (np.bincount(own, c * at.residual) / bins.mass)[own]
        gradient, curvature = np.zeros((2, design.n_rows))
        gradient[rows], curvature[rows] = -c * slope[own] * missed, c * slope[own] ** 2
        U = sparse.csr_array((curvature[rows], (rows, own)), shape=(design.n_rows, n_bins))
        gram, V = design.curvature(problem.centre, curvature, U)
        total = bins.mass * slope**2
        hessian = gram - (V * np.divide(1, total, out=np.zeros(n_bins), where=total > 0)) @ V.T
        slope_of_w = design.pull_back(gradient)
        if not slope_of_w.any() or not np.isfinite(hessian).all():  # the Hessian may also be 0
            return np.zeros(len(w))
        return span / rise * newton_step(hessian, slope_of_w, problem.scale, DAMPING, 1 / rise)

    def minimise(self, w: np.ndarray) -> np.ndarray:
        """Gauss–Newton steps from w with step halving, until the gain in squared error is negligible."""
        theta = self.scores(w)
        at = self.fit(theta)
        for _ in range(MOST_STEPS if len(at.knots) >= FEWEST else 0):
            step = self.step(at, w)
            if not step.any():
                break
            change, length, trial = self.scores(step), 2.0, at
            lower = at.error * (1 - ROUNDING)
            while trial.error >= lower and length > SHORTEST:
                length /= 2
                trial = self.fit(theta + length * change)
            gain = at.error - trial.error
            if trial.error < lower:
                w, theta, at = w + length * step, theta + length * change, trial
            if gain <= SETTLED * at.error / len(at.knots):
                break
        return w

    def error_on(self, others: SingleIndex, w: np.ndarray) -> float:
        """Squared error on other rows of the link interpolated between bin means.

        The isotonic regression itself is too rough: its noise would mask the difference between two directions.
        """
        bins = self.fit(self.scores(w)).binned()
        predicted = np.interp(others.scores(w), bins.middle, bins.height) + (self.mean - others.mean)
        return float(others.weight @ (others.y - predicted) ** 2)


def refined_coefficients(data: Training, problem: Problem, solve: Solve, w: np.ndarray) -> np.ndarray | None:
    """Least-squares coefficients, rescaled to the norm of w; None if they predict held-out rows no better than w.

    For the comparison, each half of the rows predicts the other half, with the coefficients that ``solve`` finds for it
    and with those after Gauss–Newton steps from there.
    """
    whole = SingleIndex(data, problem)
    part = _halves(whole.y, whole.scores(w))
    if any(len(np.unique(whole.y[part == k])) < 2 for k in (0, 1)):
        return None
    halves = [_some_rows(data, whole.rows[part == k], whole.weight[part == k]) for k in (0, 1)]
    problems, starts = zip(*(solve(half, w) for half in halves), strict=True)
    if not all(start.any() for start in starts):
        return None
    one, other = (SingleIndex(half, own) for half, own in zip(halves, problems, strict=True))
    before = after = 0.0
    for own, others, start in ((one, other, starts[0]), (other, one, starts[1])):
        before += own.error_on(others, start)
        after += own.error_on(others, own.minimise(start))
    if not after < before * (1 - ROUNDING):
        return None
    better = whole.minimise(w)
    return better * float(np.linalg.norm(w * problem.scale) / np.linalg.norm(better * problem.scale))


def _some_rows(data: Training, rows: np.ndarray, weight: np.ndarray) -> Training:
    """Copy the rows if they are in memory; otherwise keep all rows and set the weight of the others to 0."""
    if type(data) is Training:
        return data.take(rows)
    spread = np.zeros(len(data.columns()[0]))
    spread[rows] = weight
    return data.reweighted(spread)


def _halves(y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Alternate 0 and 1 in the order of y and θ; equal rows get the same value, because weights are repetitions."""
    order = np.lexsort((theta, y))
    new = np.append(False, (np.diff(y[order]) > 0) | (np.diff(theta[order]) > 0))
    part = np.empty(len(y), dtype=int)
    part[order] = np.cumsum(new) % 2
    return part
