"""Bags of boosted trees, each stopped early on the fold that it has not seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from apexrank.errors import InputError
from apexrank.parameters import above, checked, whole
from apexrank.preprocessing.ramps import coded
from apexrank.rankers.base import TwoClasses
from apexrank.rankers.forest import MOST, Columns, Forest, ForestRanker, Node, repeated_rows, threads_for

LIGHTGBM_OPTIONS = {"deterministic": True, "force_row_wise": True, "verbosity": -1}
PATIENCE = 50  # trees without improvement after which a model stops
ROWS_IN_LEAF = 10
MIXED = 0.1  # share of the rows with equals that have both labels, from which these are no copies
SHARE = 0.8  # of the rows and of the columns, drawn for each tree
FEW_COLUMNS = 0.3  # drawn for each split of extra trees by scikit-learn, which has no random thresholds


class Part(NamedTuple):
    """Rows of one side of a fold: columns of the trees, labels, and weights if they are not all 1."""

    rows: np.ndarray
    positive: np.ndarray
    weight: np.ndarray | None

    def take(self, some: np.ndarray) -> Part:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[some]
        return Part(self.rows[some], self.positive[some], weight)


class OfColumns(TwoClasses):
    """Mixin for two-class rankers of the columns of a table as they are: numbers with gaps, text and categories."""

    takes_columns: ClassVar[bool] = True
    takes_device_arrays = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _as_numbers(self, X: Any, reset: bool) -> Any:
        """Convert the text columns of a frame to codes."""
        X, levels = coded(X, None if reset else self.levels_)
        if reset:
            self.levels_: dict[int, Sequence[str]] = levels
        return X


@dataclass(eq=False, repr=False)
class TreeRanker(OfColumns, ForestRanker, BaseEstimator):
    """Bag of gradient-boosted trees, without assumptions on the shape of the data and with nothing to tune.

    The rows are split into stratified folds, and a model is boosted on all but one of them, until the log loss on that
    one no longer falls. All models are kept: the score is the mean of their log-odds. Nothing is refitted on all rows,
    and ``oof_scores_`` are there for free. The trees are LightGBM's if it is installed, and otherwise those of
    scikit-learn's ``HistGradientBoostingClassifier``: on 18 public tables these lost 0.005 of average precision and
    took twice as long (``python -m benchmarks.trees``). Columns hold numbers, or text and categories if X is a data
    frame; missing values and texts not seen in training are allowed.

    Parameters
    ----------
    leaves, rounds : int
        Maximum number of leaves per tree, and of trees per model.
    learning_rate : float
        Factor on the values of each tree.
    folds : int
        Number of folds and models; fewer if a class has fewer rows.
    extra : bool
        Whether splits choose from one random threshold for each column (extremely randomised trees). scikit-learn has
        none: it chooses from fewer columns instead.

    Attributes
    ----------
    forest_ : Forest
        The trees of all models as arrays.
    oof_scores_ : array of shape (n,)
        Score of each training row by the model that has not seen it; the mean over copies of a row, and the score of
        all models if its weight is 0.
    levels_ : dict
        Values of each text column, by position.

    Notes
    -----
    A split of a text column separates one of its values, or the missing ones, from all others. A split of a column of
    numbers learns the side of missing values; if training had none, they go with the majority of the training rows.

    Whole-number weights are repetitions. Copies of a row share a fold, unless equal rows often have both labels, as in
    a table of few different rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from apexrank.metrics import auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = TreeRanker().fit(X[::2], y[::2])
    >>> auc(y[1::2], ranker.decision_function(X[1::2])) > 0.98
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "leaves": [whole(2)],
        "rounds": [whole(1)],
        "learning_rate": [above(0)],
        "folds": [whole(2)],
        "extra": ["boolean"],
    }

    leaves: int = 16
    _: KW_ONLY
    rounds: int = 2000
    learning_rate: float = 0.03
    folds: int = 5
    extra: bool = False

    @checked
    def fit(self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on rows X with two-class labels y; whole-number weights count as repetitions of rows."""
        rows, positive, weight = self._in_memory(X, y, sample_weight)
        row, weight = repeated_rows(weight, len(rows))
        # equal rows have one number, and numbers are in sorted order: folds do not depend on the order of the rows
        key = np.column_stack([np.where(np.isnan(rows), np.inf, rows), positive])
        different, number = np.unique(key, axis=0, return_inverse=True)
        number = number.ravel()
        order = np.argsort(number[row], kind="stable")
        row, weight = row[order], None if weight is None else weight[order]
        rows, positive = rows[row], positive[row]
        fewest = int(min(positive.sum(), (~positive).sum()))
        if fewest < 2:
            raise InputError(f"{type(self).__name__} needs 2 rows of each class or more, one to stop on")
        self.levels_ = present_levels(rows, self.levels_)
        columns = Columns.of_levels(self.levels_, rows)
        data = Part(columns.of(rows), positive, weight)
        copies = np.append(0, np.cumsum((different[1:, :-1] != different[:-1, :-1]).any(axis=1)))[number[row]]
        folds = stratified_folds(positive, copies, min(self.folds, fewest))
        boost = self._scikit_learn if find_spec("lightgbm") is None else self._lightgbm
        models = [boost(data.take(known), data.take(held)) for known, held in folds]
        bases = [base for _, base in models]
        forest = Forest.of([tree for trees, _ in models for tree in trees], float(np.mean(bases)))
        roots = np.split(forest.roots, np.cumsum([len(trees) for trees, _ in models])[:-1])
        scores = np.empty(len(row))
        for (_, held), base, own in zip(folds, bases, roots, strict=True):
            scores[held] = forest._replace(roots=own, base=base).scores(data.rows[held])
        value, mean = forest.value / len(models), forest.mean / len(models)
        self.forest_ = forest._replace(value=value, mean=mean).on_columns(columns)
        times, total = (np.bincount(number[row], part, len(different)) for part in (None, scores))
        self.oof_scores_ = np.divide(total, times, out=np.zeros(len(total)), where=times > 0)[number]
        if not times.all():
            self.oof_scores_ = np.where(times[number] > 0, self.oof_scores_, self.decision_function(X))
        return self

    def _lightgbm(self, known: Part, held: Part) -> tuple[list[list[Node]], float]:
        """Trees and base of a model."""
        import lightgbm

        options = LIGHTGBM_OPTIONS | {
            "objective": "binary",
            "num_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": rows_in_leaf(known),
            "bagging_fraction": SHARE,
            "bagging_freq": 1,
            "feature_fraction": SHARE,
            "lambda_l2": 1.0,
            "extra_trees": self.extra,
            "seed": 0,
            "num_threads": threads_for(known.rows),
        }
        data = lightgbm.Dataset(known.rows, known.positive.astype(float), weight=known.weight)
        other = data.create_valid(held.rows, held.positive.astype(float), weight=held.weight)
        stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        booster = lightgbm.train(options, data, self.rounds, valid_sets=[other], callbacks=[stop])
        return lightgbm_trees(booster), 0.0

    def _scikit_learn(self, known: Part, held: Part) -> tuple[list[list[Node]], float]:
        """Trees and base of a model."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        empty = np.isnan(known.rows).all(axis=0)  # scikit-learn raises on a column without values
        model = HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.rounds,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=rows_in_leaf(known),
            l2_regularization=1.0,
            max_features=FEW_COLUMNS if self.extra else SHARE,
            early_stopping=True,
            n_iter_no_change=PATIENCE,
            tol=0.0,
            random_state=0,
        )
        with threadpool_limits(threads_for(known.rows), user_api="openmp"):
            model.fit(
                np.where(empty, 0.0, known.rows),
                known.positive,
                sample_weight=known.weight,
                X_val=np.where(empty, 0.0, held.rows),
                y_val=held.positive,
                sample_weight_val=held.weight,
            )
        fields = ["feature_idx", "num_threshold", "missing_go_to_left", "left", "right", "value", "count"]
        trees = []
        for (predictor,) in model._predictors[: max(1, int(np.argmax(model.validation_score_)))]:
            nodes = np.column_stack([predictor.nodes[name].astype(float) for name in fields])
            nodes[predictor.nodes["is_leaf"] == 1, 3:5] = -1
            # a split of the missing values from all others has an infinite threshold
            nodes[:, 1] = np.minimum(nodes[:, 1], MOST)
            trees.append([Node(*row) for row in nodes.tolist()])
        return trees, float(np.ravel(model._baseline_prediction)[0])

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Log-odds of each row, which are its ranking score."""
        rows = self._rows(X)  # raises before fit
        return self.forest_.scores(rows)


def stratified_folds(
    positive: np.ndarray, copies: np.ndarray, folds: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Known and held rows of each fold; rows of one number in ``copies`` share a fold if they are really copies.

    A model that has seen copies of the held rows would never stop. But in a table of few different rows, equal rows are
    independent, and each must be known: there most of them have both labels, or there are fewer than ``folds``.

    Examples
    --------
    >>> positive, copies = np.array([False, True] * 4), np.repeat(np.arange(4), 2)
    >>> [held.tolist() for _, held in stratified_folds(np.repeat([False, True], 4), copies, 2)]
    [[2, 3, 4, 5], [0, 1, 6, 7]]
    >>> [held.tolist() for _, held in stratified_folds(positive, copies, 2)]
    [[1, 4, 5, 6], [0, 2, 3, 7]]
    """
    copies = np.unique(copies, return_inverse=True)[1]
    size, ones = np.bincount(copies), np.bincount(copies, positive)
    label, both = ones > 0, (ones > 0) & (ones < size)
    few = min(label.sum(), (~label).sum()) < folds
    if few or size[both].sum() > MIXED * size[size > 1].sum():
        copies, label = np.arange(len(positive)), positive
    split = StratifiedKFold(folds, shuffle=True, random_state=0)
    held = [np.isin(copies, units) for _, units in split.split(label, label)]
    return [(np.flatnonzero(~some), np.flatnonzero(some)) for some in held]


def rows_in_leaf(known: Part) -> int:
    """Fewest rows in a leaf; small data would have no splits with the usual number."""
    return int(np.clip(len(known.rows) // 10, 1, ROWS_IN_LEAF))


def present_levels(rows: np.ndarray, levels: Mapping[int, Sequence[str]]) -> dict[int, Sequence[str]]:
    """Levels that some row has, whose codes are renumbered in place; rows of weight 0 may have had others.

    Examples
    --------
    >>> rows = np.array([[2.0], [np.nan], [0.0]])
    >>> present_levels(rows, {0: ("a", "b", "c")}), rows.ravel().tolist()
    ({0: ('a', 'c')}, [1.0, nan, 0.0])
    """
    present: dict[int, Sequence[str]] = {}
    for j, names in levels.items():
        known = ~np.isnan(rows[:, j])
        codes, rows[known, j] = np.unique(rows[known, j].astype(int), return_inverse=True)
        present[j] = tuple(names[code] for code in codes)
    return present


def lightgbm_trees(booster: Any) -> list[list[Node]]:
    """Parse the trees of a LightGBM booster, trained on numbers."""
    return [[*_lightgbm_nodes(tree["tree_structure"])] for tree in booster.dump_model()["tree_info"]]


def _lightgbm_nodes(root: Mapping[str, Any]) -> Iterator[Node]:
    """Nodes of a tree in breadth-first order."""
    level, place = [root], 1
    while level:
        below: list[Mapping[str, Any]] = []
        for node in level:
            if "left_child" not in node:
                yield Node(0, 0.0, False, -1, -1, node["leaf_value"], _n_rows(node))
                continue
            children = node["left_child"], node["right_child"]
            # without missing values in training, LightGBM would take them for 0
            learned = node["missing_type"] == "NaN"
            missing_left = node["default_left"] if learned else _n_rows(children[0]) > _n_rows(children[1])
            yield Node(
                node["split_feature"], node["threshold"], missing_left, place, place + 1, 0.0, _n_rows(node)
            )
            below += children
            place += 2
        level = below


def _n_rows(node: Mapping[str, Any]) -> int:
    return node.get("internal_count", node.get("leaf_count", 1))
