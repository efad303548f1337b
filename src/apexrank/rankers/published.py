"""Monotone retargeting as published: targets and coefficients in turn, stopped early."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.divergences import IDivergence, ShiftedIDivergence, Squared
from apexrank.errors import InputError
from apexrank.models.linear import LinearProblem, scores_of
from apexrank.objectives.listwise import FixedTargets, SoftmaxTargets, SquaredTargets
from apexrank.objectives.retarget import Retarget
from apexrank.projections import onto_ordered_simplex
from apexrank.solvers import Solution, Solver

Start = str | ArrayLike | Callable[[np.ndarray], np.ndarray]

STARTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relevance": lambda relevance: relevance,
    "gain": lambda relevance: np.exp2(relevance) - 1,
    "softmax": np.exp,
}


class Path(NamedTuple):
    """Coefficients and cost after each alternation, the last targets, and the last fit of the coefficients."""

    coefs: np.ndarray
    costs: np.ndarray
    targets: np.ndarray
    last: Solution


class Alternation:
    """The two halves of one alternation, on the lists of a :class:`Retarget` objective without margins.

    The coefficients are fitted to the targets by ridge regression with an offset for each list ("squared"), by
    ListNet's likelihood ("kl"), or by Poisson regression with one offset for all lists ("i-divergence"): with an offset
    for each list that would be the same as "kl". The targets are the projection of the scores onto the ordered
    simplex, with hidden order or shared by the rows of a level.
    """

    def __init__(self, X: Any, objective: Retarget, alpha: float) -> None:
        self.objective, self.lists, self.alpha = objective, objective.lists, alpha
        self.X = X[self.lists.rows]
        number = self.lists.spread(np.arange(len(self.lists)))
        self.is_squared = isinstance(objective.divergence, Squared)
        one_offset = isinstance(objective.divergence, IDivergence | ShiftedIDivergence)
        self.offset_groups = None if one_offset else number
        self.factor = self.lists.spread(objective.factor / objective.mass)
        self.name = "squared" if self.is_squared else "kl"

    def start(self, start: Start, relevance: np.ndarray) -> np.ndarray:
        """First targets: a function of the relevance, divided by its sum in each list."""
        if isinstance(start, str):
            if start not in STARTS:
                raise InputError(
                    f"unknown start {start!r}: use one of {', '.join(STARTS)}, an array or a function"
                )
            values = self._named_start(start, relevance)
        else:
            values = np.asarray(start(relevance) if callable(start) else start, dtype=float)
            if values.shape != relevance.shape:
                raise InputError(
                    f"start needs one number per row: expected {len(relevance)}, got {values.shape}"
                )
        values = values[self.lists.rows]
        total = self.lists.sums(self.lists.weight * values)
        if not np.isfinite(values).all() or values.min() < 0 or total.min() <= 0:
            raise InputError(
                "the first targets must be at least 0, not all 0 in a group: use start='softmax'"
            )
        return values / self.lists.spread(total)

    def _named_start(self, start: str, relevance: np.ndarray) -> np.ndarray:
        if start != "softmax":
            with np.errstate(over="ignore"):
                return STARTS[start](relevance)
        lists, values = self.lists, np.zeros(len(relevance))
        grades = relevance[lists.rows]
        values[lists.rows] = np.exp(grades - lists.spread(np.maximum.reduceat(grades, lists.lists[:-1])))
        return values

    def coefficients(self, targets: np.ndarray, w0: np.ndarray, solver: Solver) -> Solution:
        """The coefficients that fit the targets best."""
        kind: type[FixedTargets] = SquaredTargets if self.is_squared else SoftmaxTargets
        weight = self.lists.weight * self.factor
        objective = kind(targets, groups=self.offset_groups, weight=weight)
        return solver.solve(LinearProblem(self.X, objective, self.alpha, self.lists.weight), w0)

    def targets(self, w: np.ndarray) -> np.ndarray:
        """The targets on the ordered simplex nearest to the scores."""
        lists, scores = self.lists, scores_of(self.X, w)
        if self.objective.margins.order == "hidden":
            order, targets = lists.sort(scores), np.empty(len(scores))
            targets[order] = onto_ordered_simplex(self.name, scores[order], lists.lists, lists.weight[order])
            return targets
        starts, sizes = lists.levels[:-1], np.diff(lists.levels)
        total = np.add.reduceat(lists.weight, starts)
        mean = np.add.reduceat(lists.weight * scores, starts) / total
        return np.repeat(onto_ordered_simplex(self.name, mean, lists.lists_in_levels(), total), sizes)

    def run(self, targets: np.ndarray, n: int, w0: np.ndarray, solver: Solver) -> Path:
        """``n`` fits of the coefficients, with new targets between them and after the last."""
        coefs, costs, solution = [], [], Solution(w0)
        for _ in range(n):
            solution = self.coefficients(targets, solution.w, solver)
            coefs.append(solution.w)
            costs.append(solution.value)
            targets = self.targets(solution.w)
        return Path(np.array(coefs), np.array(costs), targets, solution)
