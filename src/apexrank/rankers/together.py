"""Joint fits of many pushes on the same rows: a path over p, or a search with all of its folds."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from apexrank.errors import InputError
from apexrank.metrics import get_scorer
from apexrank.metrics.evaluation import evaluate, find_measure
from apexrank.objectives.base import log_form
from apexrank.parallel import Lockstep, Threads, n_threads
from apexrank.problem.block_design import BlockTraining
from apexrank.problem.blocks import Blocks
from apexrank.problem.design import Design, Training, design_of, of_two_rows
from apexrank.problem.problem import Problem
from apexrank.problem.together import EVERYTHING, ColumnDesign, joint_rows, rows_of
from apexrank.rankers.base import GivenScores, measure, read_rows
from apexrank.solvers import LBFGS, Auto, Solution
from apexrank.validation import check_folds

SAMPLE_ROWS = 8192  # rows per class in the sample that provides starting points
SAMPLE_TOL, SAMPLE_ITER = 1e-2, 100
SAMPLE_PATH = 5  # consecutive fits on the sample, each starting from the previous one
START_TOL = 3e-3
NEAR = 0.02  # largest difference of exponents, in standard deviations, at which two fits share a Hessian
SCORE_BYTES = 2**26  # memory for scores of held-out rows, or one score each
KEEP = 0.3  # keep a Hessian while a step reduces the gradient below this fraction


def can_join(ranker: Any, data: Training) -> bool:
    """Whether a ranker can be fitted jointly with others.

    This requires an objective ``(1/p)·log R`` of one list, a penalty with a ridge part, and the default solver.
    """
    grouped = data.found.grouped if isinstance(data, BlockTraining) else data.groups is not None
    if grouped or getattr(ranker, "solver", "auto") != "auto" or ranker._penalty().convexity <= 0:
        return False
    objective: Any = ranker._objective(np.array([True, False]), None, None)
    return objective.streams and objective.form is log_form


class JointFit:
    """Joint fits of rankers on the same rows, computing each value and gradient for all of them in one pass.

    They start from fits on a sample of the rows. Newton's method then needs few passes: fits close to each other share
    a Hessian, which is kept while it works, and the Hessian on all rows provides that of each fold.

    Parameters
    ----------
    data : Training
    rankers : list of rankers
        Fitted in place on all rows; neighbours in the list should be close to each other.
    times : array of shape (n_folds, n), optional
        Number of times each row counts in the training set of each fold.
    """

    def __init__(self, data: Training, rankers: list[Any], times: np.ndarray | None = None) -> None:
        self.data, self.rankers = data, rankers
        self.positive, self.weight, _ = data.columns()
        self.n_folds = 0 if times is None else len(times)
        self.times, self.rows = times, joint_rows(data, times)
        self.steps = Lockstep(self.rows.answer)
        self.penalties = [
            ranker._penalty_on(data, of_two_rows(ranker._objective, *self._totals[EVERYTHING]))
            for ranker in rankers
        ]
        starts = self._sample_fits()
        self._near = self._neighbours(starts)
        looks = [self._look(k, w) for k, w in enumerate(starts)]
        found = self.steps.run(looks)
        tasks = [self._task(k, EVERYTHING, w, found[self._near[k]]) for k, w in enumerate(starts)]
        self._starts, self._hessians, self._fits = starts, found, self.steps.run(tasks)
        for ranker, (problem, solution) in zip(rankers, self._fits, strict=True):
            self._finish(ranker, problem, solution)

    def fold_fits(self) -> list[list[Any]]:
        """Fit the rankers on the training set of each fold, starting from the fits on all rows."""
        found = [[copy(ranker) for ranker in self.rankers] for _ in range(self.n_folds)]
        columns = [(fold, k) for fold in range(self.n_folds) for k in range(len(self.rankers))]
        near = sorted(set(self._near))
        known = {(fold, k): self._hessians[k] for fold in range(self.n_folds) for k in near}
        if self.rows.knows_folds(2 * len(near)):
            looks = [self._look(k, self._starts[k], fold) for fold, k in known]
            known = dict(zip(known, self.steps.run(looks), strict=True))
        tasks = [self._task(k, fold, self._fits[k][1].w, known[fold, self._near[k]]) for fold, k in columns]
        for (fold, k), (problem, solution) in zip(columns, self.steps.run(tasks), strict=True):
            self._finish(found[fold][k], problem, solution)
        return found

    def _problem(self, k: int, fold: int, known: np.ndarray | None = None) -> Problem:
        n_columns = len(self.rankers) * max(1, self.n_folds)
        design = ColumnDesign(self.rows, self.steps, fold, n_columns, known)
        objective = of_two_rows(self.rankers[k]._objective, *self._totals[fold])
        return Problem(design, objective, self.penalties[k])

    def _look(self, k: int, w: np.ndarray, fold: int = EVERYTHING) -> Any:
        """Function that returns the Hessian of a ranker's objective at w, or None if no other fit shares it."""
        problem = self._problem(k, fold)

        def look() -> np.ndarray | None:
            problem.value_and_grad(w)
            if k not in self._near or problem.hessian_cost == np.inf:
                return None
            return problem.design.hessian(problem.objective, w, problem.centre)

        return look

    def _task(self, k: int, fold: int, start: np.ndarray, known: np.ndarray | None) -> Any:
        """Function that solves the problem of a ranker and returns problem and solution."""
        ranker, problem = self.rankers[k], self._problem(k, fold, known)
        # if folds follow, a fit on all rows only provides their starting point
        starts = fold == EVERYTHING and self.n_folds > 0
        tol = max(ranker.tol, START_TOL) if starts else ranker.tol
        return lambda: (problem, Auto(ranker.max_iter, tol, keep=KEEP).solve(problem, start))

    def _neighbours(self, starts: list[np.ndarray]) -> list[int]:
        """Index of the ranker whose Hessian each one uses: the first with the same exponents and similar scores."""
        found: list[int] = []
        for k, (ranker, w) in enumerate(zip(self.rankers, starts, strict=True)):
            power, scale = ranker._power(), self.rows.spread
            same = (
                other
                for other in sorted(set(found))
                if power is not None
                and self.rankers[other]._power() == power
                and power[0] * np.linalg.norm((w - starts[other]) * scale) <= NEAR
            )
            found.append(next(same, k))
        return found

    @cached_property
    def _totals(self) -> list[tuple[float, float]]:
        """Weight of the positives and negatives in the fits of each fold, and last in the fits on all rows."""
        every = np.ones(len(self.positive), dtype=np.uint8)
        found = []
        for count in [*([] if self.times is None else self.times), every]:
            weight = count if self.weight is None else count * self.weight
            found.append((float(weight[self.positive].sum()), float(weight[~self.positive].sum())))
        return found

    def _finish(self, ranker: Any, problem: Problem, solution: Solution) -> None:
        solution.stalled = solution.n_iter < ranker.max_iter
        ranker._keep_solution(problem, solution)
        ranker._finish(self.data, problem)

    def _sample_fits(self) -> list[np.ndarray]:
        """Coefficients fitted on a sample of each class, weighted to represent the whole class."""
        weight = np.ones(len(self.positive)) if self.weight is None else self.weight
        rng, chosen, shares = np.random.default_rng(0), [], []
        for own in (self.positive, ~self.positive):
            own = np.flatnonzero(own & (weight > 0))
            total = weight[own].sum()
            some = own if len(own) <= SAMPLE_ROWS else np.sort(rng.choice(own, SAMPLE_ROWS, replace=False))
            chosen.append(some)
            shares.append(weight[some] * (total / weight[some].sum()))
        sample, share = np.concatenate(chosen), np.concatenate(shares)
        positive, design = self.positive[sample], design_of(self.rows.design.take(sample))

        def path(first: int) -> list[np.ndarray]:
            found: list[np.ndarray] = [np.zeros(self.rows.n_features)]
            own = slice(first, first + SAMPLE_PATH)
            for ranker, penalty in zip(self.rankers[own], self.penalties[own], strict=True):
                problem = Problem(design, ranker._objective(positive, share, None), penalty, share)
                found.append(LBFGS(SAMPLE_ITER, SAMPLE_TOL).solve(problem, found[-1]).w)
            return found[1:]

        # products are small, so BLAS threads would only wait for each other
        with threadpool_limits(limits=1, user_api="blas"), Threads(n_threads()) as threads:
            starts = range(0, len(self.rankers), SAMPLE_PATH)
            paths = threads.map(path, starts)
        return [w for found in paths for w in found]


def fit_folds(data: Training, rankers: list[Any], times: np.ndarray) -> list[list[Any]]:
    """Fit copies of the rankers on the training set of each fold: jointly where possible, the others one by one.

    ``times``, of shape (n_folds, n), is the number of times each row counts in the fits of a fold.
    """
    joint = [k for k, ranker in enumerate(rankers) if can_join(ranker, data)]
    found = [[copy(ranker) for ranker in rankers] for _ in times]
    if joint:
        for own, fitted in zip(
            found, JointFit(data, [rankers[k] for k in joint], times).fold_fits(), strict=True
        ):
            for k, ranker in zip(joint, fitted, strict=True):
                own[k] = ranker
    weight = data.columns()[1]
    for own, count in zip(found, times, strict=True):
        some = data.reweighted(count * (1.0 if weight is None else weight))
        for k, ranker in enumerate(own):
            if k not in joint:
                ranker._finish(some, ranker._minimise(some, ranker._objective))
    return found


def held_out_scores(
    design: Design,
    rankers: list[Any],
    rows: np.ndarray,
    scoring: str,
    y: np.ndarray,
    weight: Any,
    groups: Any,
) -> list[float]:
    """Metric ``scoring`` of each ranker on held-out rows, with only their scores in memory.

    ``y``, ``weight`` and ``groups`` are those of these rows; labels are 0 and 1.
    """
    scorer, plain = get_scorer(scoring), weight is None and groups is None and 0 < y.sum() < len(y)
    limit = _highest_fpr(scoring) if plain else 1.0
    at_once = max(1, SCORE_BYTES // (8 * len(rows)))
    found: list[float] = []

    def of_scores(scores: np.ndarray) -> float:
        if limit == 1:
            return measure(scorer, GivenScores(scores), scores, y, weight, groups)
        top, labels, count = top_of_list(scores, y, limit)
        return evaluate(labels, top, scoring, pos_label=1, sample_weight=count)[scoring]

    for first in range(0, len(rankers), at_once):
        some = rankers[first : first + at_once]
        scores = design.scores_at(rows, np.column_stack([ranker.coef_[0] for ranker in some]))
        scores += np.concatenate([ranker.intercept_ for ranker in some])
        with Threads(n_threads()) as threads:
            found += threads.map(of_scores, np.ascontiguousarray(scores.T))
    return found


def _highest_fpr(scoring: str) -> float:
    """False positive rate up to which a metric depends on the list: 1 if it depends on all of it."""
    try:
        options = find_measure(scoring).options
    except InputError:  # one of scikit-learn's
        return 1.0
    return options.get("max_fpr", options.get("fpr", 1.0))


def top_of_list(scores: np.ndarray, y: np.ndarray, fpr: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, labels and weights of a list in which rows beyond a false positive rate are merged into one per class.

    The ROC curve up to that rate is unchanged, and only the top needs to be sorted.

    Examples
    --------
    >>> scores, labels, weight = top_of_list(np.array([4.0, 3.0, 2.0, 1.0, 0.0]), np.array([1, 0, 0, 0, 1]), 0.3)
    >>> scores.round().tolist(), labels.tolist(), weight.tolist()
    ([4.0, 3.0, 2.0, 2.0, 2.0], [1, 0, 0, 0, 1], [1.0, 1.0, 1.0, 1.0, 1.0])
    """
    negative = scores[y == 0]
    beyond = max(0, len(negative) - 1 - int(np.ceil(fpr * len(negative))))
    lowest = np.partition(negative, beyond)[beyond]
    top = scores >= lowest
    below = [np.sum(~top & (y == label)) for label in (0, 1)]
    scores = np.append(scores[top], [np.nextafter(lowest, -np.inf)] * 2)
    return scores, np.append(y[top], [0, 1]), np.append(np.ones(len(scores) - 2), below)


def search_blocks(search: Any, blocks: Blocks) -> None:
    """Fit a scikit-learn grid search over alpha of a graded ranker on blocks, one fit at a time.

    Folds consist of whole groups. ``search`` gets ``best_estimator_`` and ``best_score_``, as in memory.
    """
    data = read_rows(search.estimator, blocks, None, None, None, binary=False)
    relevance, weight, groups = data.columns()
    alphas, scores = search.param_grid["alpha"], []
    check_folds(search.cv.n_splits, relevance, groups)
    for train, test in search.cv.split(relevance, relevance, groups):
        times = np.bincount(train, minlength=len(relevance))
        some = data.reweighted(times * (1.0 if weight is None else weight))
        rankers = [clone(search.estimator).set_params(alpha=alpha) for alpha in alphas]
        for ranker in rankers:
            ranker._minimise(some, ranker._objective)
        whole = (
            None if weight is None or (weight % 1).any() else weight[test]
        )  # rank metrics need whole-number weights
        held_out = relevance[test], whole, groups[test]
        columns = rows_of(data).scores_at(test, np.column_stack([ranker.coef_ for ranker in rankers])).T
        scores.append([measure(search.scoring, GivenScores(own), own, *held_out) for own in columns])
    mean = np.mean(scores, axis=0)
    search.best_score_ = float(mean.max())
    best = clone(search.estimator).set_params(alpha=alphas[int(mean.argmax())])
    search.best_estimator_ = best.fit(blocks, None)
