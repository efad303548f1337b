"""Least squares for single-index regression ``y ≈ g(x·w)``: Gauss–Newton steps on direction and link together.

The convex cost of :class:`apexrank.objectives.link.UnknownLink` leads near the direction whatever g is, but its
minimiser is not an efficient estimate. The squared error with g profiled out,

    S(w) = min over increasing g of Σ_i c_i·(y_i − g(x_i·w))²,

is not convex, but from there a few Gauss–Newton steps reach a minimum. If w moves by δ, the fitted value of a row
moves by ``g'(θ)·(x − E[x|θ])·δ``, because g follows the conditional mean of x. The normal equations of these rows are
the efficient score of the model (Balabdaoui, Groeneboom and Hendrickx, *Score estimation in the monotone single-index
model*, 2019). Isotonic regression has no derivative, so g' and E[x|θ] are taken over bins of neighbouring scores.
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
"""``solve(data, start)``: the convex problem of the rows, and its minimiser."""

FEWEST = 5  # different scores of which bins can be made
BINS = 0.45  # exponent of the number of bins: smooth links would do with fewer, links with jumps like more
MOST_STEPS, SHORTEST = 20, 1 / 16
SETTLED = 1.0  # of the residual variance: a smaller gain is less than one row tells
ROUNDING = (
    1e-10  # of an error: few rows have few orders, and many orders have the same error but for rounding
)
DAMPING = 1e-6  # of the mean curvature; w itself, whose length any link makes up for, has next to none


class IsotonicFit(NamedTuple):
    """Isotonic regression of y on scores: rows by score, those scores that differ, and what is fitted there."""

    order: np.ndarray
    level: np.ndarray  # number of the score of each sorted row
    knots: np.ndarray
    values: np.ndarray
    mass: np.ndarray  # weight of each score
    residual: np.ndarray  # of the sorted rows
    error: float  # weighted sum of squares

    def binned(self) -> Bins:
        """Means over bins of neighbouring scores."""
        # of equally many scores, not of equal weight: weights are repetitions, and their unit plays no part
        n = len(self.knots)
        n_bins = min(max(FEWEST - 1, round(n**BINS)), n)
        number = np.arange(n) * n_bins // n
        mass = np.bincount(number, self.mass)
        middle, height = (np.bincount(number, self.mass * x) / mass for x in (self.knots, self.values))
        return Bins(number[self.level], mass, middle, height)


class Bins(NamedTuple):
    """Bins of neighbouring scores, with weight, mean score and mean of the link in each."""

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
    """Rows of a single-index regression: all of ``data`` that have a weight above 0.

    ``problem`` is any problem of these rows: it gives the design and the units of the columns.
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
        """The increasing function of the scores that is nearest to y; equal scores share a value."""
        order = np.argsort(theta)
        t, y, c = theta[order], self.y[order], self.weight[order]
        new = np.append(True, t[1:] > t[:-1])
        level = np.cumsum(new) - 1
        mass = np.bincount(level, c)
        values = pav(np.bincount(level, c * y) / mass, weight=mass)
        residual = y - values[level]
        return IsotonicFit(order, level, t[new], values, mass, residual, float(c @ residual**2))

    def step(self, at: IsotonicFit, w: np.ndarray) -> np.ndarray:
        """The Gauss–Newton step of the coefficients; 0 where the link is flat, which leaves no equations."""
        problem, design, bins = self.problem, self.problem.design, at.binned()
        rows, c, own, n_bins = self.rows[at.order], self.weight[at.order], bins.number, len(bins.mass)
        span, rise = bins.spans
        if not (span > 0 and rise > 0):
            return np.zeros(len(w))
        slope = (
            bins.slopes()
        )  # without a unit, as squares of tiny or huge ones would leave the floating point range
        # rows and residuals less their means over a bin are what no change of the link can do
        missed = at.residual - (np.bincount(own, c * at.residual) / bins.mass)[own]
        gradient, curvature = np.zeros((2, design.n_rows))
        gradient[rows], curvature[rows] = -c * slope[own] * missed, c * slope[own] ** 2
        U = sparse.csr_array((curvature[rows], (rows, own)), shape=(design.n_rows, n_bins))
        gram, V = design.curvature(problem.centre, curvature, U)
        total = bins.mass * slope**2
        hessian = gram - (V * np.divide(1, total, out=np.zeros(n_bins), where=total > 0)) @ V.T
        slope_of_w = design.pull_back(gradient)
        if not slope_of_w.any() or not np.isfinite(hessian).all():  # the Hessian may be 0, too
            return np.zeros(len(w))
        return span / rise * newton_step(hessian, slope_of_w, problem.scale, DAMPING, 1 / rise)

    def minimise(self, w: np.ndarray) -> np.ndarray:
        """Gauss–Newton steps from w, halved until the error falls, for as long as they gain anything."""
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
        """Squared error on other rows of the link that joins the means of the bins.

        The isotonic regression itself is so rough that its noise would hide which of two directions is better.
        """
        bins = self.fit(self.scores(w)).binned()
        predicted = np.interp(others.scores(w), bins.middle, bins.height) + (self.mean - others.mean)
        return float(others.weight @ (others.y - predicted) ** 2)


def refined_coefficients(data: Training, problem: Problem, solve: Solve, w: np.ndarray) -> np.ndarray | None:
    """Coefficients of least squares, in the length of w; None where they predict held-out rows no better than w does.

    To compare, either half of the rows predicts the other one: with the coefficients that ``solve`` finds for it, and
    after Gauss–Newton steps from there.
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
    """A copy of some rows where they are in memory, elsewhere all rows, of which the others have weight 0."""
    if type(data) is Training:
        return data.take(rows)
    spread = np.zeros(len(data.columns()[0]))
    spread[rows] = weight
    return data.reweighted(spread)


def _halves(y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """0 or 1 by turns in the order of y and θ; equal rows stay together, as weights are repetitions."""
    order = np.lexsort((theta, y))
    new = np.append(False, (np.diff(y[order]) > 0) | (np.diff(theta[order]) > 0))
    part = np.empty(len(y), dtype=int)
    part[order] = np.cumsum(new) % 2
    return part
