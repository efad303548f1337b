"""Search for the integer points of a scorecard that increase the ranker's own objective least."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from apexrank.errors import InputError
from apexrank.io.judge import Judged
from apexrank.penalties import Penalty

_SCALES = 64  # number of scales at which the coefficients are rounded before single points are changed
_WIDEST = 6.0  # the best scale is searched within a factor e^6 of the model's own
_NEAR = 0.1  # step of the log scale for testing whether another scale may help
_PASSES = 50


class Rounded(NamedTuple):
    """Points, the scale that converts them to coefficients, and the objective of these coefficients."""

    points: np.ndarray
    scale: float
    value: float


class CardObjective:
    """The ranker's penalised objective of the coefficients ``s·w·points``, minimised over s > 0.

    Parameters
    ----------
    ranker : ranker
        Provides the objective of the judged rows and the penalty.
    judged : Judged
        Labels, groups and weights of the rows.
    V : array of shape (n_rows, n_features)
        Contribution of one point of each feature to the score of each row.
    w : array of shape (n_features,) or (n_coefficients, n_features)
        Contribution of one point to the ranker's own coefficients.
    scores, coef : arrays
        Scores and coefficients of the model, which set the initial scale s.
    signs : array of shape (n_coefficients,), optional
        Coefficients that must not be negative (1) or positive (−1).
    penalty : Penalty, optional
        Penalty of the coefficients, if it is not the ranker's.
    """

    def __init__(
        self,
        ranker: Any,
        judged: Judged,
        V: Any,
        w: np.ndarray,
        scores: np.ndarray,
        coef: np.ndarray,
        signs: np.ndarray | None = None,
        penalty: Penalty | None = None,
    ) -> None:
        if not hasattr(ranker, "_objective") or getattr(ranker, "truth", None) is not None:
            raise InputError(
                f"{type(ranker).__name__} cannot become a scorecard: it has no objective of labels that rounding "
                "could minimise"
            )
        labels = judged.y if judged.graded else judged.y > 0
        self.objective = ranker._objective(labels, judged.weight, judged.groups)
        self.penalty = ranker._penalty() if penalty is None else penalty
        self.V, self.w, self.signs = V, w, signs
        self.size = float(np.linalg.norm(coef))
        self.of_model = self._value(scores, coef)
        nothing = self._value(np.zeros(len(scores)), np.zeros(len(coef)))
        slack = getattr(ranker, "tol", 0.0) * max(1.0, abs(nothing))
        if hasattr(self.objective, "limit") and nothing <= self.of_model + slack:
            raise InputError(
                "with p=inf equal scores for all these rows are as good as the model's: there is nothing to round by, "
                "fit it with a finite p"
            )

    def _value(self, scores: np.ndarray, coef: np.ndarray) -> float:
        # for p = ∞, value_and_grad smooths the objective
        exact = getattr(self.objective, "limit", None)
        with np.errstate(over="ignore", invalid="ignore"):
            value = self.objective.value_and_grad(scores)[0] if exact is None else exact(scores)
            total = float(value) / self.objective.count + self.penalty.value(coef)
        return total if np.isfinite(total) else np.inf

    def coef(self, points: np.ndarray) -> np.ndarray:
        """Coefficients of the points at scale 1."""
        return self.w * points if self.w.ndim == 1 else self.w @ points

    def allows(self, points: np.ndarray) -> bool:
        """Whether the coefficients of the points satisfy the sign constraints."""
        return self.signs is None or not (self.signs * self.coef(points) < 0).any()

    def at(self, scores: np.ndarray, points: np.ndarray, s: float) -> float:
        """Objective of the points at scale s, given their scores."""
        return self._value(s * scores, s * self.coef(points))

    def may_help(self, scores: np.ndarray, points: np.ndarray, now: Rounded) -> bool:
        """Whether the points may have a lower objective than ``now`` at their own best scale.

        A parabola through three scales predicts the decrease; twice that must suffice. This avoids nine tenths of the
        searches for a scale.
        """
        left, middle, right = (self.at(scores, points, now.scale * np.exp(t)) for t in (-_NEAR, 0.0, _NEAR))
        curvature, slope = left - 2 * middle + right, (right - left) / 2
        return not np.isfinite(curvature) or curvature <= 0 or middle - slope * slope / curvature < now.value

    def best(self, points: np.ndarray) -> Rounded:
        """Minimise over the scale: the objective is convex in s, hence unimodal in log s."""
        scores = self.V @ points
        middle = np.log(self.size / (np.linalg.norm(self.coef(points)) or self.size))
        s = np.exp(_golden(lambda t: self.at(scores, points, np.exp(t)), middle - _WIDEST, middle + _WIDEST))
        return Rounded(points, float(s), self.at(scores, points, s))


def _golden(f: Callable[[float], float], low: float, high: float, steps: int = 30) -> float:
    """Minimise a unimodal function by golden-section search.

    scipy's bounded search may discard the wrong end if values are infinite, as they may be for large scales.

    Examples
    --------
    >>> round(float(_golden(lambda t: (t - 1) ** 2 if t < 2 else np.inf, -6.0, 6.0)), 4)
    1.0
    """
    share = (np.sqrt(5) - 1) / 2
    left, right = high - share * (high - low), low + share * (high - low)
    at_left, at_right = f(left), f(right)
    for _ in range(steps):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - share * (high - low)
            at_left = f(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + share * (high - low)
            at_right = f(right)
    return left if at_left <= at_right else right


def naive_points(wanted: np.ndarray, max_points: int) -> np.ndarray:
    """Scale the largest coefficient to ``max_points`` and round.

    Examples
    --------
    >>> naive_points(np.array([0.9, -0.31, 0.1]), 3).tolist()
    [3, -1, 0]
    """
    return np.round(wanted * (max_points / np.abs(wanted).max())).astype(np.int64)


def search_points(objective: CardObjective, wanted: np.ndarray, max_points: int) -> Rounded:
    """Round at many scales, then change single points of the best two cards by one while the objective decreases.

    ``wanted`` are the coefficients in units of a point; features where it is 0 keep 0 points. Naive rounding is also
    improved in this way, so the result is never worse.
    """
    steps = np.linspace(0.51, max_points + 0.49, _SCALES)
    ratios = wanted / np.abs(wanted).max()
    candidates = {tuple(np.round(ratios * t).astype(np.int64).tolist()) for t in steps}
    rounded = [objective.best(np.array(points)) for points in sorted(candidates)]
    starts = sorted(rounded, key=lambda one: one.value)[:2]
    starts.append(objective.best(naive_points(wanted, max_points)))
    # the largest coefficients first: in the order of the columns, the same table with columns moved had another card
    order = np.argsort(-np.abs(wanted), kind="stable")[: np.count_nonzero(wanted)]
    improved = (_by_ones(objective, start, order, max_points) for start in starts)
    best = min(improved, key=lambda one: one.value)
    divisor = int(np.gcd.reduce(best.points))
    return Rounded(best.points // divisor, best.scale * divisor, best.value)


def _by_ones(objective: CardObjective, best: Rounded, order: np.ndarray, max_points: int) -> Rounded:
    """Coordinate descent in steps of one point, until no step lowers the objective at its own best scale."""
    for _ in range(_PASSES):
        before = best.value
        best = _one_pass(objective, best, order, max_points, quick=True)
        if best.value >= before:
            best = _one_pass(objective, best, order, max_points, quick=False)
        if best.value >= before:
            break
    return best


def _one_pass(
    objective: CardObjective, best: Rounded, order: np.ndarray, max_points: int, quick: bool
) -> Rounded:
    """Try a step up and down for each feature; ``quick`` skips those that do not help at the current scale."""
    scores = objective.V @ best.points
    for j in order:
        for step in (1, -1):
            points = best.points.copy()
            points[j] += step
            if abs(points[j]) > max_points or not points.any() or not objective.allows(points):
                continue
            moved = scores + step * objective.V[:, j]
            if quick and objective.at(moved, points, best.scale) >= best.value:
                continue
            if not quick and not objective.may_help(moved, points, best):
                continue
            better = objective.best(points)
            if better.value < best.value:
                best, scores = better, moved
    return best
