"""The search for whole numbers of points that keep a ranker's objective low."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from apexrank.errors import InputError
from apexrank.rankers.base import LinearBinaryRanker
from apexrank.rankers.listwise import ListwiseRanker
from apexrank.rankers.pairs import CrucialPairsPush
from apexrank.rankers.retarget import MonotoneRetargeting

_SCALES = 64  # scales at which the coefficients are rounded, before single points are changed
_WIDEST = 6.0  # the best scale is looked for within a factor e^6 of the model's own
_PASSES = 50


class Rounded(NamedTuple):
    """Points, the scale that makes coefficients of them, and the objective of these coefficients."""

    points: np.ndarray
    scale: float
    value: float


def nice_unit(spread: float) -> float:
    """The number 1, 2 or 5 times a power of ten that is nearest in ratio.

    Examples
    --------
    >>> [nice_unit(spread) for spread in (0.7, 34.0, 1400.0, 0.0031)]
    [0.5, 50.0, 1000.0, 0.002]
    """
    exponent = int(np.floor(np.log10(spread)))
    choices = [float(f"{digit}e{power}") for power in (exponent, exponent + 1) for digit in (1, 2, 5)]
    return min(choices, key=lambda unit: abs(np.log(unit / spread)))


def training_objective(ranker: Any, X: np.ndarray, y: np.ndarray, groups: Any, weight: Any) -> Any:
    """The function of scores that the ranker's ``fit`` minimises on these rows; y is 0/1, or grades."""
    if isinstance(ranker, LinearBinaryRanker):
        return ranker._objective(y > 0, weight, groups)
    if isinstance(ranker, ListwiseRanker | CrucialPairsPush | MonotoneRetargeting) and (
        getattr(ranker, "truth", None) is None
    ):
        return ranker._objective(y, weight, groups)
    raise InputError(
        f"{type(ranker).__name__} cannot become a scorecard: it was fitted without an objective of labels to round by"
    )


class CardObjective:
    """The ranker's penalised objective of the coefficients ``s·points_j/unit_j``, at the best s > 0.

    Parameters
    ----------
    objective : objective of the scores
    V : array of shape (n_rows, n_features)
        What a point of each feature adds to the score of each row.
    w : array of shape (n_features,)
        What a point of each feature adds to the ranker's own coefficient of it.
    coef : array of shape (n_features,)
        The ranker's own coefficients, for the range of s.
    alpha, l1_ratio : float
        The ranker's penalty.
    """

    def __init__(
        self, objective: Any, V: np.ndarray, w: np.ndarray, coef: np.ndarray, alpha: float, l1_ratio: float
    ) -> None:
        self.objective, self.V, self.w = objective, V, w
        self.size = float(np.linalg.norm(coef))
        self.ridge, self.lasso = alpha * (1 - l1_ratio), alpha * l1_ratio

    def at(self, scores: np.ndarray, points: np.ndarray, s: float) -> float:
        """Objective of the points at the scale s, given their scores."""
        w = s * self.w * points
        penalty = self.ridge / 2 * float(w @ w) + self.lasso * float(np.abs(w).sum())
        with np.errstate(over="ignore", invalid="ignore"):
            value = self._of_scores(s * scores) + penalty
        return value if np.isfinite(value) else np.inf

    def _of_scores(self, scores: np.ndarray) -> float:
        # For p = ∞ value_and_grad is of a smoothed objective.
        exact = getattr(self.objective, "limit", None)
        value = self.objective.value_and_grad(scores)[0] if exact is None else exact(scores)
        return float(value) / self.objective.count

    def best(self, points: np.ndarray) -> Rounded:
        """Find the best scale: the objective is convex in it, so it falls, then rises, in log s as well."""
        scores = self.V @ points
        middle = np.log(self.size / np.linalg.norm(self.w * points))
        s = np.exp(_golden(lambda t: self.at(scores, points, np.exp(t)), middle - _WIDEST, middle + _WIDEST))
        return Rounded(points, float(s), self.at(scores, points, s))


def _golden(f: Callable[[float], float], low: float, high: float, steps: int = 30) -> float:
    """Minimum of a function that falls, then rises, by golden sections.

    Values may be infinite towards the upper end, where parabolas and slopes would not do.

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
    """Round at many scales, then change single points of the best two cards by one while the objective falls.

    ``wanted`` are the coefficients in units of a point; features where it is 0 keep 0 points. Simple rounding is
    improved in the same way, so the result is never worse than it.
    """
    steps = np.linspace(0.51, max_points + 0.49, _SCALES)
    ratios = wanted / np.abs(wanted).max()
    candidates = {tuple(np.round(ratios * t).astype(np.int64).tolist()) for t in steps}
    rounded = [objective.best(np.array(points)) for points in sorted(candidates)]
    starts = sorted(rounded, key=lambda one: one.value)[:2]
    starts.append(objective.best(naive_points(wanted, max_points)))
    improved = (_by_ones(objective, start, wanted != 0, max_points) for start in starts)
    best = min(improved, key=lambda one: one.value)
    divisor = int(np.gcd.reduce(best.points))
    return Rounded(best.points // divisor, best.scale * divisor, best.value)


def _by_ones(objective: CardObjective, best: Rounded, free: np.ndarray, max_points: int) -> Rounded:
    """Coordinate descent in steps of one point, until no step lowers the objective at its own best scale."""
    for _ in range(_PASSES):
        before = best.value
        best = _one_pass(objective, best, free, max_points, quick=True)
        if best.value >= before:
            best = _one_pass(objective, best, free, max_points, quick=False)
        if best.value >= before:
            break
    return best


def _one_pass(
    objective: CardObjective, best: Rounded, free: np.ndarray, max_points: int, quick: bool
) -> Rounded:
    """Try a step up and down for each feature; ``quick`` leaves out those that do not help at the present scale."""
    scores = objective.V @ best.points
    for j in np.flatnonzero(free):
        for step in (1, -1):
            points = best.points.copy()
            points[j] += step
            if abs(points[j]) > max_points or not points.any():
                continue
            moved = scores + step * objective.V[:, j]
            if quick and objective.at(moved, points, best.scale) >= best.value:
                continue
            better = objective.best(points)
            if better.value < best.value:
                best, scores = better, moved
    return best
