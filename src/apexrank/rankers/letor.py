"""Mean of linear retargeting and a bag of lambdaranks, fitted on folds of the queries."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from apexrank.errors import InputError, MissingExtraError
from apexrank.metrics import ndcg
from apexrank.parameters import checked, whole
from apexrank.preprocessing.query import learn_standard, rescaled
from apexrank.problem.design import Training
from apexrank.rankers.base import Graded, from_zero, read_rows
from apexrank.rankers.forest import Forest, ForestRanker, fewest_in_leaf, repeated_rows, threads_for
from apexrank.rankers.retarget import MonotoneRetargeting
from apexrank.rankers.trees import LIGHTGBM_OPTIONS, lightgbm_trees
from apexrank.validation import segment

ALPHAS = (10.0, 1.0, 0.1, 0.01, 0.001)
# Alpha is chosen from powers of ten, so a loose tolerance is enough; L-BFGS reaches it before Newton has a Hessian.
CONVEX: dict[str, Any] = {"solver": "lbfgs", "tol": 1e-3}
ROUNDS, PATIENCE = 200, 50  # trees per fold, and trees without improvement after which it stops
GROWN = {"objective": "lambdarank", "metric": "None", "num_leaves": 7, "learning_rate": 0.1}
# Fraction of columns sampled per tree, and their minimum number: trees on one or two columns miss interactions.
COLUMNS, FEWEST = 0.3, 8
LONGEST = 10_000  # most rows per list for LightGBM's lambdarank
GRADES = 31  # number of grades for which LightGBM has gains


@dataclass(eq=False, repr=False)
class LetorRanker(ForestRanker, Graded, BaseEstimator):
    """Mean of linear retargeting and bagged lambdarank trees, for graded relevance; needs LightGBM.

    The queries are split into ``n_folds`` folds, and two rankers are fitted with each fold left out: LightGBM's
    lambdarank, stopped at the number of trees with the best NDCG on that fold, and :class:`MonotoneRetargeting` on
    standardised features, whose penalty is chosen by the NDCG of the out-of-fold scores. All of them are kept: the
    score of a row is the mean over the folds of each of the two, divided by the standard deviation of its out-of-fold
    scores within queries, and averaged. Nothing is refitted on all queries.

    Parameters
    ----------
    n_folds : int
        Number of folds. If there are fewer groups than folds, rows are split instead.
    random_state : int, RandomState or None
        Seed of the folds and the trees.

    Attributes
    ----------
    forest_ : Forest
        The trees of all folds as arrays.
    coef_ : array of shape (n_features,)
        Coefficients of the linear score; ``predict`` adds it to the score of the trees.
    mean_ : array of shape (n_features,)
        Mean of each column, which replaces missing values (NaN).
    alpha_ : float
        Penalty of the linear score.

    Notes
    -----
    Lists may have up to 10,000 rows, LightGBM's limit. Unless all labels are whole numbers from 0 to 30, the trees
    replace each label by its rank among the distinct labels, and merge neighbouring ranks if there are more than 31.
    Whole-number weights that sum to at most ten times the rows are exact repetitions of rows; others apply to the
    objectives only.

    Examples
    --------
    >>> from apexrank.datasets import make_letor_example
    >>> queries = make_letor_example(n_queries=60, random_state=0)
    >>> X, y, groups = queries.data, queries.target, queries.groups
    >>> LetorRanker().fit(X, y, groups=groups).score(X, y, groups=groups) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict] = {"n_folds": [whole(2)], "random_state": ["random_state"]}

    n_folds: int = 5
    _: KW_ONLY
    random_state: Any = 0

    @checked
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit on rows X with relevance y (larger is better) and one group id per row (one list by default)."""
        if find_spec("lightgbm") is None:
            raise MissingExtraError('LetorRanker needs LightGBM: pip install "apexrank[boosting]"')
        data = read_rows(self, X, y, sample_weight, groups, binary=False)
        if type(data) is not Training:
            raise InputError("LetorRanker needs its rows in memory: give an array or a data frame")
        taken, weight = repeated_rows(data.weight, len(data.labels))
        lists = segment(groups, len(data.labels)).of_rows()[taken]
        if (longest := np.bincount(lists).max()) > LONGEST:
            raise InputError(
                f"LightGBM's lambdarank takes lists of at most 10,000 rows, got {longest:,}: use MonotoneRetargeting"
            )
        # sorted by list, then by values: lambdarank breaks ties by the order of rows
        order = np.lexsort([data.labels[taken], *data.X[taken].T, lists])
        lists, weight = lists[order], np.ones(len(order)) if weight is None else weight[order]
        rows, y = data.X[taken[order]], from_zero(data.labels[taken[order]])
        self.mean_, scale = learn_standard(rows, weight)
        rows = np.where(np.isnan(rows), self.mean_, rows)
        random = check_random_state(self.random_state)
        fold, seed = self._folds(rows, y, lists, random), int(random.randint(2**31 - 1))
        scaled, labels = rescaled(rows, self.mean_, scale), grades(y)
        n, trees = int(fold.max()) + 1, []
        paths = np.empty((n, len(ALPHAS), rows.shape[1]))
        found = np.empty((1 + len(ALPHAS), len(y)))  # out-of-fold scores of the trees, and with each penalty
        for k in range(n):
            rest, held = fold != k, fold == k
            booster = lambdarank(rows, labels, lists, weight, held, seed)
            trees += lightgbm_trees(booster)
            found[0, held] = booster.predict(rows[held], raw_score=True)
            given = {"groups": lists[rest], "sample_weight": weight[rest]}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                for a, alpha in enumerate(ALPHAS):
                    linear = MonotoneRetargeting(alpha=alpha, **CONVEX).fit(scaled[rest], y[rest], **given)
                    paths[k, a] = linear.coef_
            found[1:, held] = paths[k] @ scaled[held].T
        best = int(np.argmax([ndcg_of(labels, scores, lists) for scores in found[1:]]))
        self.alpha_ = ALPHAS[best]
        coef = paths[:, best].mean(axis=0) / (2 * deviation(found[1 + best], lists))
        self.coef_ = np.divide(coef, scale, out=np.zeros(len(scale)), where=scale > 0)
        forest, share = Forest.of(trees, 0.0), 1 / (2 * n * deviation(found[0], lists))
        self.forest_ = forest._replace(value=share * forest.value, mean=share * forest.mean)
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Ranking score of each row: higher means nearer to the top of its group."""
        rows = self._rows(X)
        return self.forest_.scores(rows) + rows @ self.coef_

    def contributions(self, X: ArrayLike) -> np.ndarray:
        """Contribution of each feature to a row's score beyond the mean score, rows by features."""
        rows = self._rows(X)
        return self.forest_.contributions(rows) + (rows - self.mean_) * self.coef_

    def _rows(self, X: ArrayLike) -> np.ndarray:
        rows = super()._rows(X)
        return np.where(np.isnan(rows), self.mean_, rows)

    def _folds(
        self, rows: np.ndarray, y: np.ndarray, lists: np.ndarray, random: np.random.RandomState
    ) -> np.ndarray:
        """Fold of each row; rows of a list, or equal rows if there are too few lists, share a fold."""
        unit = np.unique(lists, return_inverse=True)[1]
        if unit.max() + 1 < self.n_folds:
            unit = np.unique(np.column_stack([y, rows]), axis=0, return_inverse=True)[1].ravel()
        n = int(unit.max()) + 1
        if n < 2:
            raise InputError(f"two different rows or more are needed, got n_samples = {n}")
        return (random.permutation(n) % min(self.n_folds, n))[unit]


def lambdarank(
    rows: np.ndarray,
    labels: np.ndarray,
    lists: np.ndarray,
    weight: np.ndarray,
    held: np.ndarray,
    seed: int,
) -> Any:
    """LightGBM booster of the rows that are not held out, with the number of trees that is best on those that are."""
    import lightgbm

    share = min(1.0, max(COLUMNS, FEWEST / rows.shape[1]))
    options = LIGHTGBM_OPTIONS | GROWN | {"seed": seed, "num_threads": threads_for(rows)}
    options |= {"feature_fraction": share, "min_data_in_leaf": fewest_in_leaf(int((~held).sum()))}
    parts = []
    for part in (~held, held):
        sizes = np.unique(lists[part], return_counts=True)[1]
        parts.append(lightgbm.Dataset(rows[part], labels[part], weight=weight[part], group=sizes))
    parts[1].set_reference(parts[0])

    def measure(scores: np.ndarray, _: Any) -> tuple[str, float, bool]:
        return "ndcg", ndcg_of(labels[held], scores, lists[held]), True

    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    return lightgbm.train(options, parts[0], ROUNDS, valid_sets=[parts[1]], feval=measure, callbacks=[stop])


def grades(y: np.ndarray) -> np.ndarray:
    """Grades from 0 to 30: the labels themselves, or the ranks of the distinct labels, merged if there are more.

    Examples
    --------
    >>> grades(np.array([-0.5, 2.0, 1e9, 2.0])).tolist()
    [0.0, 1.0, 2.0, 1.0]
    """
    if ((y == np.floor(y)) & (y >= 0) & (y < GRADES)).all():
        return y
    levels, number = np.unique(y, return_inverse=True)
    number = number if len(levels) <= GRADES else number * GRADES // len(levels)
    return number.astype(float)


def ndcg_of(labels: np.ndarray, scores: np.ndarray, lists: np.ndarray) -> float:
    """NDCG, 0 without a relevant row."""
    return float(ndcg(labels, scores, groups=lists)) if labels.any() else 0.0


def deviation(scores: np.ndarray, lists: np.ndarray) -> float:
    """Standard deviation of scores around the means of their lists; 1 if all are equal.

    Examples
    --------
    >>> deviation(np.array([1.0, 3.0, 7.0, 5.0]), np.array([0, 0, 1, 1]))
    1.0
    """
    mean = np.bincount(lists, scores) / np.maximum(np.bincount(lists), 1)
    return float(np.std(scores - mean[lists])) or 1.0
