"""Calibration: probabilities from ranking scores by isotonic regression on out-of-fold scores."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from apexrank.errors import InputError
from apexrank.io.columns import group_ids, labelled_rows, read_target, row_weights
from apexrank.kernels.pav import pav
from apexrank.progress import steps

if TYPE_CHECKING:
    from apexrank.io.read import Table
    from apexrank.io.table_ranker import Recipe, TableRanker


class Calibration(NamedTuple):
    """Increasing map from scores to probabilities, linear between knots and constant outside them.

    Attributes
    ----------
    scores, probabilities : arrays
        The knots, both increasing.
    """

    scores: np.ndarray
    probabilities: np.ndarray

    @classmethod
    def learn(cls, scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> Calibration:
        """Fit centred isotonic regression (Oron and Flournoy 2017) of labels 0 and 1 on scores.

        A knot is the mean score of a block and its share of positives, so probabilities tie only outside the first and
        last block. One extra row with the base rate at the lowest and at the highest score keeps probabilities away
        from 0 and 1. Weights count as repetitions.

        Examples
        --------
        >>> found = Calibration.learn(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 1, 0, 1]))
        >>> found.at(np.array([-9.0, 1.5, 9.0])).round(2).tolist()
        [0.25, 0.5, 0.75]
        """
        weight = np.ones(len(y)) if weight is None else weight
        counted = weight > 0
        values, rows = np.unique(scores[counted], return_inverse=True)
        size: np.ndarray = np.bincount(rows, weight[counted])
        hits: np.ndarray = np.bincount(rows, (weight * (y > 0))[counted])
        base_rate = hits.sum() / size.sum()
        size[[0, -1]] += 1.0
        hits[[0, -1]] += base_rate
        fitted = pav(hits / size, weight=size)
        starts = np.flatnonzero(np.diff(fitted, prepend=-1.0) > 0)
        centers = np.add.reduceat(size * values, starts) / np.add.reduceat(size, starts)
        return cls(centers, fitted[starts])

    def at(self, scores: np.ndarray) -> np.ndarray:
        """Return the probability of each score."""
        return np.interp(scores, self.scores, self.probabilities)


def check_one_list(recipe: Recipe) -> None:
    """Raise InputError unless the target has two classes and all rows form one list."""
    if recipe.graded:
        raise InputError("probabilities need a target of two classes, and this one holds grades")
    if recipe.groups is not None:
        raise InputError("probabilities need one list: scores inside groups do not compare")


def calibrate(
    ranker: TableRanker,
    table: Table,
    recipe: Recipe,
    *,
    folds: int = 5,
    group_split: str | None = None,
) -> Calibration:
    """Calibrate the scores of a ranker on the rows it was fitted on.

    Scores of training rows would be overconfident. So each of ``folds`` stratified folds is scored by a ranker with the
    same parameters fitted on the others, encoding included. Rows with the same value in the column ``group_split``,
    such as those of one customer, are kept in one fold, because a ranker that has seen the customer would also be
    overconfident.

    Raises
    ------
    InputError
        If the target holds grades, rows are ranked within groups, or a class has too few rows.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    from apexrank.io.table_ranker import fit_table

    check_one_list(recipe)
    table, _ = labelled_rows(table, ranker.target)
    y, _ = read_target(table, ranker.target, ranker.positive)
    if min(fewest := int(y.sum()), len(y) - fewest) < folds:
        raise InputError(f"probabilities need at least {folds} rows of each class: give more rows")
    scores, recipe = np.empty(len(y)), replace(recipe, positive=ranker.positive)
    groups = None if group_split is None else group_ids(table, group_split)
    kind: Any = StratifiedKFold if groups is None else StratifiedGroupKFold
    splits = kind(folds, shuffle=True, random_state=0).split(y, y, groups)
    for train, test in steps(list(splits)):
        some, others = table.take(train), table.take(test)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the ranker itself has already warned
            scores[test] = fit_table(some, recipe, clone(ranker.estimator))[0].score(others)
    return Calibration.learn(scores, y, None if recipe.weight is None else row_weights(table, recipe.weight))
