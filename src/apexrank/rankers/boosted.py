"""Boosted trees for graded relevance: any objective of the package, in LightGBM, XGBoost or CatBoost."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from apexrank.errors import InputError, MissingExtraError
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
from apexrank.rankers.forest import (
    Forest,
    ForestRanker,
    Node,
    catboost_trees,
    fewest_in_leaf,
    lightgbm_trees,
    repeated_rows,
    threads_for,
    xgboost_trees,
)
from apexrank.validation import check_between, check_choice, check_count, check_finite, segment

OBJECTIVES: dict[str, Callable[[], BoosterObjective]] = {
    "retarget": RetargetObjective,
    "pairs": PairsObjective,
    "push": PushObjective,
    "p_classification": PClassificationObjective,
    "unknown_link": LinkObjective,
    **{name: partial(ListwiseObjective, name) for name in FIXED},
}
# what each library has of its own, by our names
THEIRS = {
    "lightgbm": {"lambdarank": "lambdarank", "rank_xendcg": "rank_xendcg"},
    "xgboost": {"lambdarank": "rank:ndcg", "rank:ndcg": "rank:ndcg", "rank:pairwise": "rank:pairwise"},
    "catboost": {"lambdarank": "LambdaMart", "YetiRank": "YetiRank", "QueryRMSE": "QueryRMSE"},
}
_EXTRAS = {
    "lightgbm": '"apexrank[boosting]"',
    "xgboost": '"apexrank[boosting]"',
    "catboost": '"apexrank[catboost]"',
}
LONGEST = 10_000  # rows of a list that LightGBM's own objectives take
_GRADES = 31  # that the libraries have gains for
_EXACT = 2**24  # row numbers that single precision can tell apart


class Lists(NamedTuple):
    """Rows with labels, weights and the number of their list."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, groups: Any) -> Lists:
        """Rows in the order of their lists, repeated where weights are counts, without those of weight 0."""
        rows, weight = repeated_rows(weight, len(y))
        lists = segment(segment(groups, len(y)).of_rows()[rows], len(rows))
        rows = rows[lists.order]
        numbers = np.repeat(np.arange(len(lists)), np.diff(lists.indptr))
        return cls(X[rows], y[rows], None if weight is None else weight[lists.order], numbers)

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows of each list."""
        return np.bincount(self.groups)

    def split(self, share: float, random: np.random.RandomState) -> tuple[Lists, Lists]:
        """Hold out a share of the lists, chosen at random."""
        check_between("validation_fraction", share, 0, 1)
        n, chosen = len(self.sizes), round(share * len(self.sizes))
        if not 0 < chosen < n:
            raise InputError(
                f"validation_fraction={share} holds out {chosen} of {n} groups: give more groups, or an eval_set"
            )
        held = np.isin(self.groups, random.permutation(n)[:chosen])
        rest, out = (Lists.of(self.X[part], self.y[part], None, self.groups[part]) for part in (~held, held))
        return rest if self.weight is None else rest._replace(weight=self.weight[~held]), out


@dataclass(eq=False, repr=False)
class BoostedRanker(ForestRanker, GradedScore, BaseEstimator):
    """Boosted trees for graded relevance in queries: one estimator for three libraries and all objectives.

    The trees are those of LightGBM, XGBoost or CatBoost, kept as arrays: to predict takes none of these libraries.
    Rows come in any order, ``groups`` are ids of any kind, and with the objectives of this package a list has any
    length and relevance is any number, larger is better.

    Parameters
    ----------
    objective : str or BoosterObjective
        "retarget", "pairs", "push", "p_classification", "unknown_link", "listnet", "ndcg_consistent", "pointwise" or
        "rank_cosine"; an instance such as ``RetargetObjective(offsets="linear")`` has parameters of its own. Also
        "lambdarank" (XGBoost's "rank:ndcg", CatBoost's "LambdaMart"); LightGBM's "rank_xendcg", XGBoost's
        "rank:pairwise", CatBoost's "YetiRank" and "QueryRMSE". Those of the libraries take grades: labels that are not
        whole numbers from 0 to 30 are replaced by the numbers of the distinct labels in rising order, joined to 31
        where there are more. LightGBM's take lists of at most 10,000 rows.
    library : {"lightgbm", "xgboost", "catboost"}
    n_estimators : int
        Number of rounds, one tree each.
    learning_rate : float
        Share of each tree's answer that is taken.
    max_leaves : int
        Most leaves of a tree. CatBoost's trees are symmetric: the nearest power of two.
    min_samples_leaf : int, optional
        Fewest rows of a leaf; 20 by default, and a fifth of the rows where they are few. XGBoost takes the sum of the
        curvature instead, which for our objectives is about the number of rows, and for its own 1. CatBoost's
        symmetric trees have no such limit.
    l2 : float
        Penalty of the squared values of leaves.
    subsample, colsample : float
        Share of the rows that each tree is grown from, and of the columns.
    monotonic_cst : dict or sequence of int, optional
        1 for columns in which scores must not fall, −1 for those in which they must not rise, 0 for others; by name or
        place, or one for each column. CatBoost takes them for its own objectives alone.
    categorical_features : sequence, optional
        Names or places of columns of numbers that are categories. Columns of text and categoricals of a pandas or
        polars frame are always. Values that training did not have are like none of those that it had.
    eval_metric : str or BoosterObjective
        What is measured on held-out queries: a name that :func:`apexrank.metrics.evaluate` knows, such as "ndcg@10",
        or an objective, whose value is measured.
    early_stopping_rounds : int, optional
        With held-out queries the best number of rounds is kept, and growth ends after so many without a better
        value; None grows them all, and so does CatBoost.
    validation_fraction : float, optional
        Share of the groups to hold out, chosen at random; not used where ``fit`` is given an ``eval_set``.
    random_state : int, RandomState or None
        Of the held-out queries, ``subsample`` and ``colsample``. Equal data and numbers give equal trees.
    library_params : dict, optional
        Further parameters of the library, by its own names.

    Attributes
    ----------
    forest_ : Forest
        The trees as arrays.
    n_iter_ : int
        Number of rounds that are kept.
    best_score_, validation_scores_ : float, array
        Of the held-out queries, if there are any: value at ``n_iter_``, and after each round.
    feature_importances_ : array of shape (n_features,)
        Share of each column in the gain of all splits.

    Notes
    -----
    Missing values go where they fit best (with CatBoost below all numbers); in a column that had none in training they
    are refused. Whole-number weights are repetitions of rows, exactly, if they sum to at most ten times the rows;
    others weigh the objective's rows, but bins, ``min_samples_leaf`` and measures of held-out queries count rows. Own
    objectives of XGBoost and CatBoost take one weight per query. Those of LightGBM begin with equal scores in the order
    of the rows, on which their trees depend.

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
    # of a model from a file, whose table has neither missing values nor categories
    _missing = cast("Any", np.False_)
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
        """Fit on rows X with relevance y, larger is better, and one group id per row (one list by default).

        ``sample_weight`` counts as repetitions of rows, as far as the library allows. ``eval_set`` are held-out
        queries, ``(X, y)`` or ``(X, y, groups)``.
        """
        objective, metric = self._checked()
        train, held = self._read(X, y, sample_weight, groups, reset=True), None
        random = check_random_state(self.random_state)
        if eval_set is not None:
            X_held, y_held, *rest = eval_set
            held = self._read(X_held, y_held, None, rest[0] if rest else None, reset=False)
        elif self.validation_fraction is not None:
            train, held = train.split(self.validation_fraction, random)
        self._learn_columns(train.X, held)
        watch = None
        if held is not None:
            metric = replace(metric, groups=held.groups)
            watch = Watch(self._coded(held.X), from_zero(held.y), metric, self.early_stopping_rounds)
        task = Task(train._replace(X=self._coded(train.X)), objective, watch, int(random.randint(2**31 - 1)))
        self._keep(_LIBRARIES[self.library](self, task), watch)
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Ranking score of each row: higher means nearer to the top of its group."""
        rows = self._rows(X)
        return self.forest_.scores(rows)

    def _rows(self, X: ArrayLike) -> np.ndarray:
        return np.ascontiguousarray(self._coded(super()._rows(X)))

    def _checked(self) -> tuple[BoosterObjective | str, BoosterMetric]:
        """The objective, or its name in the library, and the measure; parameters that are wrong are refused."""
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
                raise InputError("the objective has groups of its own: give them to fit instead")
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
        """A frame with columns of text as one of numbers."""
        X, levels = coded(X, None if reset else self._levels)
        self._levels = levels if reset else self._levels
        return X

    def _learn_columns(self, X: np.ndarray, held: Lists | None) -> None:
        """Which columns have missing values, which are constrained, and which are categories."""
        d, given = X.shape[1], () if self.categorical_features is None else self.categorical_features
        columns = sorted({*self._levels, *(place_of(self, c, d, "categorical_features") for c in given)})
        self._categories = {j: np.unique(X[~np.isnan(X[:, j]), j]) for j in columns}
        signs = monotone_signs(self, d)
        if signs.keys() & self._categories:
            j = min(signs.keys() & self._categories)
            raise InputError(f"monotonic_cst is for columns of numbers, but column {j} holds categories")
        self._signs = [signs.get(j, 0) for j in range(d)] if signs else None
        self._missing = np.isnan(X).any(axis=0)
        if held is not None:
            self._missing |= np.isnan(held.X).any(axis=0)

    def _coded(self, X: np.ndarray) -> np.ndarray:
        """Rows with categories as whole numbers, those that training did not have as one more."""
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

    def _keep(self, trees: list[list[Node]], watch: Watch | None) -> None:
        """Keep the best number of rounds."""
        self.n_iter_ = len(trees)
        for name in ("best_score_", "validation_scores_"):
            self.__dict__.pop(name, None)
        if watch is not None:
            self.validation_scores_ = np.array(
                watch.values or watch.after(Forest.of(trees, 0.0, self._absent))
            )
            sign = 1 if watch.metric.greater_is_better else -1
            self.n_iter_ = int(np.argmax(sign * self.validation_scores_)) + 1
            self.best_score_ = float(self.validation_scores_[self.n_iter_ - 1])
        trees = trees[: self.n_iter_]
        self.forest_ = Forest.of(trees, 0.0, self._absent)
        gain = np.zeros(self.n_features_in_)
        for node in (node for tree in trees for node in tree):
            gain[node.feature] += node.gain
        self.feature_importances_ = gain / (gain.sum() or 1.0)

    @property
    def _absent(self) -> list[int]:
        """Columns with missing values."""
        return np.flatnonzero(self._missing).tolist()


# ---------------------------------------------------------------- growing trees in the libraries


@dataclass
class Watch:
    """A measure of held-out rows after each round."""

    X: np.ndarray
    y: np.ndarray
    metric: BoosterMetric
    patience: int | None

    def __post_init__(self) -> None:
        self.values: list[float] = []

    def __call__(self, scores: np.ndarray) -> float:
        self.values.append(self.metric(self.y, scores))
        return self.values[-1]

    def after(self, forest: Forest) -> list[float]:
        """Values after each round of trees that are grown."""
        for scores in forest.staged(np.ascontiguousarray(self.X), range(1, len(forest.roots) + 1)):
            self(scores)
        return self.values


class Task(NamedTuple):
    """What a library is asked for; ``objective`` is the name of one of its own, or ours."""

    lists: Lists
    objective: BoosterObjective | str
    watch: Watch | None
    seed: int

    @property
    def labels(self) -> np.ndarray:
        """Labels for the objective: grades for those of the libraries."""
        y = self.lists.y
        if isinstance(self.objective, str):
            return grades(y)
        gains = isinstance(self.objective, ListwiseObjective) and self.objective.loss == "ndcg_consistent"
        return from_zero(y) if gains else y

    def slopes(self) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """Slope and curvature of our objective as a function of the scores; labels stay in double precision."""
        assert isinstance(self.objective, BoosterObjective)
        bound = replace(self.objective, groups=self.lists.groups)
        return partial(_slopes, bound, self.labels, self.lists.weight)

    def list_weights(self, library: str) -> np.ndarray | None:
        """One weight per list, for objectives that have no others."""
        weight, first = self.lists.weight, np.concatenate([[0], np.cumsum(self.lists.sizes)[:-1]])
        if weight is None:
            return None
        if (weight != np.repeat(weight[first], self.lists.sizes)).any():
            raise InputError(
                f"{library}'s {self.objective} takes one weight per group: give its rows equal weights, or whole "
                "numbers, or use an objective of apexrank such as 'retarget'"
            )
        return weight[first]


def _slopes(
    objective: BoosterObjective,
    y: np.ndarray,
    weight: np.ndarray | None,
    scores: np.ndarray,
    data: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    return objective(y, scores, weight)


def grades(y: np.ndarray) -> np.ndarray:
    """Grades from 0 to 30: the labels themselves, or the numbers of the distinct ones, some joined if they are more.

    Examples
    --------
    >>> grades(np.array([-0.5, 2.0, 1e9, 2.0])).tolist()
    [0.0, 1.0, 2.0, 1.0]
    """
    if ((y == np.floor(y)) & (y >= 0) & (y < _GRADES)).all():
        return y
    levels, number = np.unique(y, return_inverse=True)
    number = number if len(levels) <= _GRADES else number * _GRADES // len(levels)
    return number.astype(float)


def _module(library: str) -> Any:
    try:
        return import_module(library)
    except ImportError:
        raise MissingExtraError(
            f"library={library!r} is not installed: pip install {_EXTRAS[library]}"
        ) from None


def _grow_lightgbm(ranker: BoostedRanker, task: Task) -> list[list[Node]]:
    lightgbm, lists, watch = _module("lightgbm"), task.lists, task.watch
    theirs = isinstance(task.objective, str)
    if theirs and lists.sizes.max() > LONGEST:
        raise InputError(
            f"LightGBM's {task.objective} takes lists of at most 10,000 rows, got {lists.sizes.max():,}: use an "
            "objective of apexrank such as 'retarget'"
        )
    options: dict[str, Any] = {
        "objective": task.objective if theirs else task.slopes(),
        "num_leaves": ranker.max_leaves,
        "learning_rate": ranker.learning_rate,
        "min_data_in_leaf": ranker.min_samples_leaf or fewest_in_leaf(len(lists.y)),
        "lambda_l2": ranker.l2,
        "bagging_fraction": ranker.subsample,
        "bagging_freq": int(ranker.subsample < 1),
        "feature_fraction": ranker.colsample,
        "seed": task.seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": threads_for(lists.X),
        "metric": "None",
        "verbosity": -1,
    }
    if ranker._signs:
        options["monotone_constraints"] = ranker._signs
    data = lightgbm.Dataset(
        lists.X,
        task.labels,
        weight=lists.weight if theirs else None,
        group=lists.sizes if theirs else None,
        categorical_feature=[*ranker._categories],
    )
    held: dict[str, Any] = {}
    if watch is not None:
        better = watch.metric.greater_is_better
        held = {
            "valid_sets": [lightgbm.Dataset(watch.X, watch.y, reference=data)],
            "feval": lambda scores, _: ("measure", watch(scores), better),
        }
        if watch.patience is not None:
            held["callbacks"] = [lightgbm.early_stopping(watch.patience, verbose=False)]
    options |= dict(ranker.library_params or {})
    try:
        return lightgbm_trees(lightgbm.train(options, data, ranker.n_estimators, **held))
    except lightgbm.basic.LightGBMError as error:
        if "num_features" not in str(error):
            raise
        raise InputError(
            f"no column splits the rows (n_samples={len(lists.y)}) into two parts of at least "
            f"{options['min_data_in_leaf']}: lower min_samples_leaf, or give more rows"
        ) from None


def _grow_xgboost(ranker: BoostedRanker, task: Task) -> list[list[Node]]:
    xgboost, lists, watch = _module("xgboost"), task.lists, task.watch
    theirs = isinstance(task.objective, str)
    fewest = ranker.min_samples_leaf or fewest_in_leaf(len(lists.y))
    options: dict[str, Any] = {
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_depth": 0,
        "max_leaves": ranker.max_leaves,
        "learning_rate": ranker.learning_rate,
        "min_child_weight": 1 if theirs else fewest,
        "reg_lambda": ranker.l2,
        "subsample": ranker.subsample,
        "colsample_bytree": ranker.colsample,
        "base_score": 0.0,
        "seed": task.seed,
        "nthread": threads_for(lists.X),
        "verbosity": 0,
        "disable_default_eval_metric": 1,
        **({"objective": task.objective} if theirs else {}),
    }
    if ranker._signs:
        options["monotone_constraints"] = tuple(ranker._signs)
    kinds = ["c" if j in ranker._categories else "q" for j in range(lists.X.shape[1])]
    make = partial(xgboost.DMatrix, feature_types=kinds, enable_categorical=True)
    data = make(lists.X, task.labels)
    if theirs:
        data.set_group(lists.sizes)
        data.set_info(weight=task.list_weights("XGBoost"))
    held: dict[str, Any] = {}
    if watch is not None:
        better, patience = watch.metric.greater_is_better, watch.patience
        held = {
            "evals": [(make(watch.X, watch.y), "held")],
            "custom_metric": lambda scores, _: ("measure", watch(scores)),
            "verbose_eval": False,
        }
        if patience is not None:
            held["callbacks"] = [xgboost.callback.EarlyStopping(rounds=patience, maximize=better)]
    objective = None if theirs else task.slopes()
    options |= dict(ranker.library_params or {})
    return xgboost_trees(xgboost.train(options, data, ranker.n_estimators, obj=objective, **held))


class _CatBoostSlopes:
    """Slopes of an objective of whole lists for CatBoost, which asks for those of a few rows at a time.

    A measure, on the other hand, gets the scores of all rows after each round. So this is both: as the measure it
    learns the scores, and as the objective it looks up the slopes at these scores. Labels are row numbers. CatBoost
    maximises, so signs are turned.
    """

    def __init__(self, slopes: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], n: int) -> None:
        self.slopes, self.scores = slopes, np.zeros(n)
        self.found = np.column_stack(slopes(self.scores))

    def calc_ders_range(self, approxes: Any, targets: Any, weights: Any) -> np.ndarray:
        rows = np.asarray(targets).astype(np.int64)
        if not np.array_equal(self.scores[rows], approxes):
            raise InputError(
                "CatBoost asks for slopes at scores that it has not told: use library='lightgbm'"
            )
        return -self.found[rows]

    def evaluate(self, approxes: Any, targets: Any, weights: Any) -> tuple[float, float]:
        self.scores[np.asarray(targets).astype(np.int64)] = approxes[0]
        self.found = np.column_stack(self.slopes(self.scores))
        return 0.0, 1.0

    def is_max_optimal(self) -> bool:
        return True

    def get_final_error(self, error: float, weight: float) -> float:
        return error


def _grow_catboost(ranker: BoostedRanker, task: Task) -> list[list[Node]]:
    catboost, lists = _module("catboost"), task.lists
    theirs, n = isinstance(task.objective, str), len(lists.y)
    # categories as columns of 0 and 1, since its own encoding of them is not a question about a row alone
    codes = {j: range(len(known)) for j, known in ranker._categories.items()}
    columns = [(j, code) for j in range(lists.X.shape[1]) for code in codes.get(j, [None])]
    X = np.column_stack([lists.X[:, j] if c is None else lists.X[:, j] == c for j, c in columns])
    options: dict[str, Any] = {
        "iterations": ranker.n_estimators,
        "learning_rate": ranker.learning_rate,
        "depth": max(1, round(np.log2(ranker.max_leaves))),
        "l2_leaf_reg": ranker.l2,
        "rsm": ranker.colsample,
        "boosting_type": "Plain",
        "random_strength": 0,
        "random_seed": task.seed,
        "has_time": True,
        "thread_count": threads_for(X),
        "allow_writing_files": False,
        "verbose": False,
        "bootstrap_type": "No" if ranker.subsample == 1 else "Bernoulli",
    }
    if ranker.subsample < 1:
        options["subsample"] = ranker.subsample
    if ranker._signs:
        options["monotone_constraints"] = [ranker._signs[j] for j, _ in columns]
    if theirs:
        options["loss_function"] = task.objective
        weight = task.list_weights("CatBoost")
        weight = None if weight is None else np.repeat(weight, lists.sizes)
        pool = catboost.Pool(X, task.labels, group_id=lists.groups, group_weight=weight)
    else:
        if n > _EXACT or ranker._signs:
            raise InputError(
                f"CatBoost takes objectives of apexrank without monotonic_cst, for at most {_EXACT:,} rows: use "
                "another library, or an objective of its own such as 'YetiRank'"
            )
        both = _CatBoostSlopes(task.slopes(), n)
        options |= {"loss_function": both, "eval_metric": both}
        options |= {"leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1}
        pool = catboost.Pool(X, np.arange(float(n)))
    booster = catboost.CatBoost(options | dict(ranker.library_params or {}))
    with warnings.catch_warnings():  # that numba cannot compile the objective
        warnings.simplefilter("ignore")
        booster.fit(pool)
    return catboost_trees(booster, columns)


_LIBRARIES: dict[str, Callable[[BoostedRanker, Task], list[list[Node]]]] = {
    "lightgbm": _grow_lightgbm,
    "xgboost": _grow_xgboost,
    "catboost": _grow_catboost,
}
