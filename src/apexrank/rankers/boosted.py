"""Gradient-boosted trees for graded relevance with this package's objectives, via LightGBM, XGBoost or CatBoost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from apexrank.errors import InputError
from apexrank.integrations.boosting import (
    FIXED,
    BoosterMetric,
    BoosterObjective,
    LinkObjective,
    ListwiseObjective,
    PairsObjective,
    PClassificationObjective,
    PushObjective,
    RetargetObjective,
)
from apexrank.preprocessing.ramps import coded
from apexrank.problem.blocks import Blocks
from apexrank.rankers.base import GradedScore, from_zero, is_dask, monotone_signs, place_of, read_rows
from apexrank.rankers.forest import Forest, ForestRanker
from apexrank.rankers.libraries import THEIRS, Lists, Task, Trees, Watch, grow
from apexrank.validation import check_between, check_choice, check_count, check_finite

OBJECTIVES: dict[str, Callable[[], BoosterObjective]] = {
    "retarget": RetargetObjective,
    "pairs": PairsObjective,
    "push": PushObjective,
    "p_classification": PClassificationObjective,
    "unknown_link": LinkObjective,
    **{name: partial(ListwiseObjective, name) for name in FIXED},
}


@dataclass(eq=False, repr=False)
class BoostedRanker(ForestRanker, GradedScore, BaseEstimator):
    """Gradient-boosted trees for graded relevance in queries, trained with LightGBM, XGBoost or CatBoost.

    Rows may be in any order, and ``groups`` may be ids of any type. With the objectives of this package, lists may have
    any length and relevance may be any number (larger is better). The trees are stored as arrays, so ``predict`` does
    not need the library.

    Parameters
    ----------
    objective : str or BoosterObjective
        An objective of this package: "retarget", "pairs", "push", "p_classification", "unknown_link", "listnet",
        "ndcg_consistent", "pointwise", "rank_cosine", or an instance with its own parameters, such as
        ``RetargetObjective(offsets="linear")``. "push" and "p_classification" rank labels above 0 over the others. Or
        an objective of the library: "lambdarank" (called "rank:ndcg" in XGBoost, "LambdaMart" in CatBoost), LightGBM's
        "rank_xendcg", XGBoost's "rank:pairwise", CatBoost's "YetiRank" and "QueryRMSE". These need small grades: unless
        all labels are whole numbers from 0 to 30, each label is replaced by its rank among the distinct labels, and
        neighbouring ranks are merged if there are more than 31. LightGBM's accept lists of at most 10,000 rows.
    library : {"lightgbm", "xgboost", "catboost"}
    n_estimators : int
        Number of rounds; each adds one tree.
    learning_rate : float
        Factor on the values of each tree.
    max_leaves : int
        Maximum number of leaves of a tree. CatBoost's trees are symmetric, with the nearest power of two.
    min_samples_leaf : int, optional
        Minimum number of rows in a leaf. The default is 20, or a fifth of the rows if there are fewer than 100. XGBoost
        limits the sum of the curvature instead, which is about the number of rows for our objectives; its own
        objectives keep its default of 1. CatBoost's symmetric trees have no such limit.
    l2 : float
        L2 penalty on the values of leaves.
    subsample, colsample : float
        Share of the rows and of the columns that are sampled for each tree.
    monotonic_cst : dict or sequence of int, optional
        1 for columns in which scores must not decrease, −1 for columns in which they must not increase, 0 for others; a
        dict by name or index, or one value per column. CatBoost supports this only with its own objectives.
    categorical_features : sequence, optional
        Names or indices of numeric columns that hold categories. Text and categorical columns of a pandas or polars
        frame are always treated as categories. A value not seen in training belongs to none of them.
    eval_metric : str or BoosterObjective
        Metric on the held-out queries: a name accepted by :func:`apexrank.metrics.evaluate`, such as "ndcg@10", or an
        objective, whose value is minimised.
    early_stopping_rounds : int, optional
        With held-out queries the best number of rounds is kept. Training stops after this many rounds without
        improvement; None trains all rounds, as CatBoost always does.
    validation_fraction : float, optional
        Share of the groups held out at random, unless ``fit`` is given an ``eval_set``.
    random_state : int, RandomState or None
        Seed of held-out queries, ``subsample`` and ``colsample``; the same seed gives the same trees.
    library_params : dict, optional
        Further parameters of the library, by its own names.

    Attributes
    ----------
    forest_ : Forest
        The trees as arrays.
    n_iter_ : int
        Number of rounds kept.
    best_score_, validation_scores_ : float, array
        Metric on the held-out queries at ``n_iter_`` and after each round; only with held-out queries.
    feature_importances_ : array of shape (n_features,)
        Share of each column in the total gain of the splits.

    Notes
    -----
    Missing values go to the side of a split that fits best (in CatBoost, below all numbers). In a column without
    missing values in training they raise an error. Whole-number weights that sum to at most ten times the rows are
    exact repetitions of rows. Other weights apply to the objective only, while bins, ``min_samples_leaf`` and metrics
    on held-out queries count rows. The built-in objectives of XGBoost and CatBoost accept one such weight per query.
    Those of LightGBM and XGBoost break ties by row order, so their trees depend on it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.normal(size=(400, 3)), rng.integers(20, size=400)
    >>> y = np.digitize(X[:, 0] + np.abs(X[:, 1]), [0.5, 1.5])
    >>> ranker = BoostedRanker(n_estimators=30).fit(X, y, groups=groups)
    >>> ranker.score(X, y, groups=groups) > 0.95
    True
    """

    objective: str | BoosterObjective = "retarget"
    _: KW_ONLY
    library: str = "lightgbm"
    n_estimators: int = 100
    learning_rate: float = 0.1
    max_leaves: int = 31
    min_samples_leaf: int | None = None
    l2: float = 0.0
    subsample: float = 1.0
    colsample: float = 1.0
    monotonic_cst: Mapping[Any, int] | Sequence[int] | None = None
    categorical_features: Sequence[Any] | None = None
    eval_metric: str | BoosterObjective = "ndcg"
    early_stopping_rounds: int | None = 50
    validation_fraction: float | None = None
    random_state: Any = 0
    library_params: Mapping[str, Any] | None = None

    takes_device_arrays = False
    _checks: ClassVar[dict[str, Any]] = {
        "accept_sparse": False,
        "dtype": np.float64,
        "ensure_all_finite": "allow-nan",
    }
    # defaults for a model loaded from a file, whose table has no categories
    _categories = cast("Mapping[int, np.ndarray]", {})
    _levels = cast("Mapping[int, Sequence[str]]", {})

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        eval_set: Sequence[Any] | None = None,
    ) -> Self:
        """Fit on rows X with relevance y (larger is better) and one group id per row (one list by default).

        ``sample_weight`` counts as repetitions of rows, as far as the library allows. ``eval_set`` holds out queries:
        ``(X, y, groups)``, or ``(X, y)`` for a single list if ``fit`` has no groups either.
        """
        objective, metric = self._checked()
        train, held = self._read(X, y, sample_weight, groups, reset=True), None
        random = check_random_state(self.random_state)
        if eval_set is not None:
            if len(eval_set) != 2 + (groups is not None) or isinstance(eval_set[0], tuple | list):
                wanted = "(X, y)" if groups is None else "(X, y, groups), as fit has groups"
                raise InputError(f"`eval_set` must be one tuple {wanted}")
            X_held, y_held, *rest = eval_set
            held = self._read(X_held, y_held, None, rest[0] if rest else None, reset=False)
        elif self.validation_fraction is not None:
            train, held = train.split(self.validation_fraction, random)
        signs = self._learn_columns(train.X, held)
        watch = None
        if held is not None:
            metric = replace(metric, groups=held.groups)
            labels = from_zero(held.y) if isinstance(self.eval_metric, str) else held.y
            watch = Watch(self._coded(held.X), labels, metric, self.early_stopping_rounds)
        task = Task(
            ranker=self,
            lists=train._replace(X=self._coded(train.X)),
            objective=objective,
            watch=watch,
            signs=signs,
            categories={j: len(known) for j, known in self._categories.items()},
            missing=np.flatnonzero(self._missing).tolist(),
            seed=int(random.randint(2**31 - 1)),
        )
        self._keep(grow(self.library, task), task)
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Ranking score of each row: higher means nearer to the top of its group."""
        rows = self._rows(X)
        return self.forest_.scores(rows)

    def _rows(self, X: ArrayLike) -> np.ndarray:
        return np.ascontiguousarray(self._coded(super()._rows(X)))

    def _checked(self) -> tuple[BoosterObjective | str, BoosterMetric]:
        """Validate the parameters; return the objective, or its name in the library, and the metric."""
        check_choice("library", self.library, THEIRS)
        check_count("n_estimators", self.n_estimators)
        check_count("max_leaves", self.max_leaves, 2)
        for name in ("min_samples_leaf", "early_stopping_rounds"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), 1, " or None")
        for name in ("learning_rate", "l2"):
            check_finite(name, getattr(self, name), 0)
        for name in ("subsample", "colsample"):
            check_between(name, getattr(self, name), 1e-6, 1)
        metric = BoosterMetric(self.eval_metric)
        if isinstance(self.objective, BoosterObjective):
            if self.objective.groups is not None:
                raise InputError("the objective already has groups: give them to fit instead")
            return self.objective, metric
        theirs = THEIRS[self.library]
        check_choice("objective", self.objective, (*OBJECTIVES, *theirs))
        made = OBJECTIVES.get(self.objective)
        return (theirs[self.objective] if made is None else made()), metric

    def _read(self, X: Any, y: Any, weight: Any, groups: Any, *, reset: bool) -> Lists:
        self._refuse_sparse(X)
        if isinstance(X, Blocks) or is_dask(X):
            raise InputError("BoostedRanker needs its rows in memory: give an array or a data frame")
        data = read_rows(self, X, y, weight, groups, binary=False, reset=reset)
        return Lists.of(data.X, data.labels, data.weight, groups)

    def _as_numbers(self, X: Any, reset: bool) -> Any:
        """Convert the text columns of a frame to numbers."""
        X, levels = coded(X, None if reset else self._levels)
        self._levels = levels if reset else self._levels
        return X

    def _learn_columns(self, X: np.ndarray, held: Lists | None) -> list[int] | None:
        """Record columns with missing values and categories; return the signs of monotone columns, if any."""
        d, given = X.shape[1], () if self.categorical_features is None else self.categorical_features
        columns = sorted({*self._levels, *(place_of(self, c, d, "categorical_features") for c in given)})
        self._categories = {j: np.unique(X[~np.isnan(X[:, j]), j]) for j in columns}
        signs = monotone_signs(self, d)
        if signs.keys() & self._categories:
            j = min(signs.keys() & self._categories)
            raise InputError(f"`monotonic_cst` is for columns of numbers, but column {j} holds categories")
        self._missing = np.isnan(X).any(axis=0)
        if held is not None:
            self._missing |= np.isnan(held.X).any(axis=0)
        return [signs.get(j, 0) for j in range(d)] if signs else None

    def _coded(self, X: np.ndarray) -> np.ndarray:
        """Encode categories as whole numbers; unseen ones share one more code."""
        X = X.copy() if self._categories else X
        for j, known in self._categories.items():
            place = np.searchsorted(known, X[:, j])
            code = np.where(np.append(known, np.nan)[place] == X[:, j], place, len(known))
            X[:, j] = np.where(np.isnan(X[:, j]) & self._missing[j], np.nan, code)
        unseen = np.isnan(X).any(axis=0) & ~self._missing
        if unseen.any():
            raise InputError(
                f"column {int(unseen.argmax())} has missing values, but had none in training: fill them"
            )
        return X

    def _keep(self, trees: Trees, task: Task) -> None:
        """Truncate the trees to the best number of rounds."""
        self.n_iter_ = len(trees)
        for name in ("best_score_", "validation_scores_"):
            self.__dict__.pop(name, None)
        if task.watch is not None:
            values = self.validation_scores_ = np.array(task.watch.values)
            self.n_iter_ = 1 + int(np.argmax(values if task.watch.greater_is_better else -values))
            self.best_score_ = float(values[self.n_iter_ - 1])
        trees = trees[: self.n_iter_]
        self.forest_ = Forest.of(trees, 0.0, task.missing)
        gain = np.zeros(self.n_features_in_)
        for node in (node for tree in trees for node in tree):
            gain[node.feature] += node.gain
        self.feature_importances_ = gain / (gain.sum() or 1.0)
