"""Two-class log loss with the intercept profiled out."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit

from apexrank.errors import InputError
from apexrank.objectives.base import HessianTerm, Objective

ROUNDING = 4 * float(np.finfo(float).eps)  # of a sum of scores and intercept
STEPS = 200  # more than enough bisections for any bracket of doubles


class LogLoss(Objective):
    """Logistic regression without penalty on b: ``min_b Σ_i u_i·log(1 + e^{∓(s_i + b)})``, minus for positives.

    Parameters
    ----------
    positive : array-like of shape (n,)
        Mask of the positives.
    sample_weight : array-like of shape (n,), optional
        Weights; a row of weight 2 counts as two equal rows.

    Examples
    --------
    >>> objective = LogLoss([True, False, False])
    >>> value, gradient = objective.value_and_grad(np.zeros(3))
    >>> round(value, 6), gradient.round(6).tolist(), round(objective.intercept(np.zeros(3)), 6)
    (1.909543, [-0.666667, 0.333333, 0.333333], -0.693147)
    """

    n_groups = 1

    def __init__(self, positive: ArrayLike, *, sample_weight: np.ndarray | None = None) -> None:
        self.positive = np.asarray(positive, dtype=bool)
        self.weight = (
            np.ones(len(self.positive)) if sample_weight is None else np.asarray(sample_weight, float)
        )
        self.up, self._count = float(self.weight[self.positive].sum()), float(self.weight.sum())
        if not 0 < self.up < self._count:
            raise InputError("ranking needs rows of both classes, with positive weight")

    def intercept(self, scores: np.ndarray) -> float:
        """Optimal b by Newton's method, with bisection whenever a step would leave the bracket."""
        counted = self.weight > 0
        odds = np.log(self.up / (self._count - self.up))
        low, high = odds - scores[counted].max(), odds - scores[counted].min()
        b = odds - float(self.weight @ scores) / self._count
        for _ in range(STEPS):
            p = expit(scores + b)
            excess = float(self.weight @ p) - self.up
            low, high = (low, b) if excess > 0 else (b, high)
            curvature = float(self.weight @ (p * (1 - p)))
            step = b - excess / curvature if curvature > 0 else np.nan
            new = step if low <= step <= high else low + (high - low) / 2
            moved, b = abs(new - b), new
            # Newton's error is squared in each step. It counts in absolute terms: times a column far from zero it is
            # an error of the gradient. Non-finite scores also end here.
            if not moved > max(1e-8, ROUNDING * abs(b)):
                break
        return float(b)

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient with respect to the scores."""
        scores = np.asarray(scores, dtype=float)
        margin = np.where(self.positive, 1.0, -1.0) * (scores + self.intercept(scores))
        slope = -self.weight * expit(-margin)
        return -float(self.weight @ log_expit(margin)), np.where(self.positive, slope, -slope)

    def hessian(self, scores: np.ndarray) -> list[HessianTerm]:
        """``diag(h) − h·hᵀ/|h|``, because the intercept moves with the scores."""
        p = expit(scores + self.intercept(scores))
        h = self.weight * p * (1 - p)
        return [(1.0, h, h[:, None], np.array([[-1.0 / max(h.sum(), np.finfo(float).tiny)]]))]

    @property
    def count(self) -> float:
        """Total weight of the rows."""
        return self._count
