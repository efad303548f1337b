"""Boosted-tree rankers with the log loss or a push."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from apexrank.errors import MissingExtraError
from apexrank.parameters import above, checked, number, whole
from apexrank.preprocessing.ramps import coded
from apexrank.rankers.base import TwoClasses
from apexrank.rankers.forest import (
    MOST,
    Columns,
    Forest,
    ForestRanker,
    Node,
    fewest_in_leaf,
    repeated_rows,
    threads_for,
)

LIGHTGBM_OPTIONS = {"deterministic": True, "force_row_wise": True, "verbosity": -1}


@dataclass(eq=False, repr=False)
class TreeRanker(ForestRanker, TwoClasses, BaseEstimator):
    """Gradient-boosted trees, trained with LightGBM if installed and with scikit-learn otherwise.

    A baseline without assumptions on the shape of the data. Columns hold numbers, or text and categories if X is a data
    frame; missing values and texts not seen in training are allowed. With ``p`` the trees minimise the P-Norm Push
    instead of the log loss (`apexrank.integrations.boosting.PushObjective`), which requires LightGBM.

    Parameters
    ----------
    p : float, optional
        Exponent of the push; None is the log loss.
    leaves, rounds : int
        Maximum number of leaves per tree, and number of trees.
    learning_rate : float
        Factor on the values of each tree.

    Attributes
    ----------
    forest_ : Forest
        The trees as arrays.
    levels_ : dict
        Values of each text column, by position.

    Notes
    -----
    A split of a text column separates one of its values, or the missing ones, from all others. A split of a column of
    numbers learns the side of missing values; if training had none, they go with the majority of the training rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from apexrank.metrics import auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = TreeRanker(rounds=20).fit(X[::2], y[::2])
    >>> auc(y[1::2], ranker.decision_function(X[1::2])) > 0.97
    True
    """

    # those of a table as they are, without imputation and indicators
    takes_columns: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict] = {
        "p": [None, number(1)],
        "leaves": [whole(2)],
        "rounds": [whole(1)],
        "learning_rate": [above(0)],
    }

    p: float | None = None
    _: KW_ONLY
    leaves: int = 16
    rounds: int = 100
    learning_rate: float = 0.1

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _as_numbers(self, X: Any, reset: bool) -> Any:
        """Convert the text columns of a frame to codes."""
        X, levels = coded(X, None if reset else self.levels_)
        if reset:
            self.levels_: dict[int, Sequence[str]] = levels
        return X

    @checked
    def fit(self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on rows X with two-class labels y; whole-number weights count as repetitions of rows."""
        rows, positive, weight = self._in_memory(X, y, sample_weight)
        taken, weight = repeated_rows(weight, len(rows))
        rows, positive = rows[taken], positive[taken]
        self.levels_ = present_levels(rows, self.levels_)
        columns = Columns.of_levels(self.levels_, rows)
        rows = columns.of(rows)
        fewest = fewest_in_leaf(min(positive.sum(), (~positive).sum()))
        if find_spec("lightgbm") is not None:
            forest = self._lightgbm(rows, positive, weight, fewest)
        elif self.p is not None:
            raise MissingExtraError('trees with a push need LightGBM: pip install "apexrank[boosting]"')
        else:
            forest = self._scikit_learn(rows, positive, weight, fewest)
        self.forest_ = forest.on_columns(columns)
        return self

    def _lightgbm(
        self, rows: np.ndarray, positive: np.ndarray, weight: np.ndarray | None, fewest: int
    ) -> Forest:
        import lightgbm

        from apexrank.integrations.boosting import PushObjective

        options = LIGHTGBM_OPTIONS | {
            "objective": "binary" if self.p is None else PushObjective(self.p),
            "num_leaves": self.leaves,
            "min_data_in_leaf": fewest,
            "learning_rate": self.learning_rate,
            "num_threads": threads_for(rows),
        }
        data = lightgbm.Dataset(rows, positive.astype(float), weight=weight)
        return Forest.of(lightgbm_trees(lightgbm.train(options, data, self.rounds)), 0.0)

    def _scikit_learn(
        self, rows: np.ndarray, positive: np.ndarray, weight: np.ndarray | None, fewest: int
    ) -> Forest:
        from sklearn.ensemble import HistGradientBoostingClassifier

        rows = np.where(
            np.isnan(rows).all(axis=0), 0.0, rows
        )  # scikit-learn raises on a column without values
        model = HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.rounds,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=fewest,
            early_stopping=False,
            random_state=0,
        ).fit(rows, positive, sample_weight=weight)
        fields = ["feature_idx", "num_threshold", "missing_go_to_left", "left", "right", "value", "count"]
        trees = []
        for (predictor,) in model._predictors:
            nodes = np.column_stack([predictor.nodes[name].astype(float) for name in fields])
            nodes[predictor.nodes["is_leaf"] == 1, 3:5] = -1
            # a split of the missing values from all others has an infinite threshold
            nodes[:, 1] = np.minimum(nodes[:, 1], MOST)
            trees.append([Node(*row) for row in nodes.tolist()])
        return Forest.of(trees, float(np.ravel(model._baseline_prediction)[0]))

    def staged(self, X: ArrayLike, rounds: Sequence[int]) -> np.ndarray:
        """Scores after each number of rounds, shape (len(rounds), n)."""
        each, place = np.unique(np.asarray(rounds, dtype=int), return_inverse=True)
        return np.array([*self.forest_.staged(self._rows(X), each.tolist())])[place]

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Ranking score of each row; with the log loss, its log-odds."""
        rows = self._rows(X)  # raises before fit
        return self.forest_.scores(rows)


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
