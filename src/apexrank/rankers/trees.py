"""Boosted-tree rankers with the log loss or a push."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import MissingExtraError
from apexrank.rankers.base import BinaryRanker
from apexrank.rankers.forest import Forest, ForestRanker, Node, fewest_in_leaf, repeated_rows, threads_for
from apexrank.validation import check_count

LIGHTGBM_OPTIONS = {"deterministic": True, "force_row_wise": True, "verbosity": -1}


class TreeRanker(ForestRanker, BinaryRanker):
    """Gradient-boosted trees, trained with LightGBM if installed and with scikit-learn otherwise.

    A baseline without assumptions on the shape of the data. With ``p`` the trees minimise the P-Norm Push instead of
    the log loss (`apexrank.integrations.boosting.PushObjective`), which requires LightGBM.

    Parameters
    ----------
    p : float, optional
        Exponent of the push; None is the log loss.
    leaves, rounds : int
        Maximum number of leaves per tree, and number of trees.
    learning_rate : float
        Factor on the values of each tree.
    pos_label : label, optional
        The class to rank on top, as in :class:`PNormPush`.

    Attributes
    ----------
    forest_ : Forest
        The trees as arrays.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from apexrank.metrics import auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = TreeRanker(rounds=20).fit(X[::2], y[::2])
    >>> auc(y[1::2], ranker.decision_function(X[1::2])) > 0.97
    True
    """

    def __init__(
        self,
        p: float | None = None,
        *,
        leaves: int = 16,
        rounds: int = 100,
        learning_rate: float = 0.1,
        pos_label: Any = None,
    ) -> None:
        self.p = p
        self.pos_label = pos_label
        self.leaves = leaves
        self.rounds = rounds
        self.learning_rate = learning_rate

    def fit(self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on rows X with two-class labels y; whole-number weights count as repetitions of rows."""
        check_count("leaves", self.leaves, 2)
        check_count("rounds", self.rounds)
        self._refuse_sparse(X)
        rows, positive, weight = self._validate(X, y, sample_weight)
        again, weight = repeated_rows(weight, len(rows))
        rows, positive = rows[again], positive[again]
        fewest = fewest_in_leaf(min(positive.sum(), (~positive).sum()))
        if find_spec("lightgbm") is None:
            if self.p is not None:
                raise MissingExtraError('trees with a push need LightGBM: pip install "apexrank[boosting]"')
            self.forest_ = self._scikit_learn(rows, positive, weight, fewest)
            return self
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
        booster = lightgbm.train(options, data, self.rounds)
        self.forest_ = Forest.of(lightgbm_trees(booster), 0.0)
        return self

    def _scikit_learn(
        self, rows: np.ndarray, positive: np.ndarray, weight: np.ndarray | None, fewest: int
    ) -> Forest:
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.rounds,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=fewest,
            early_stopping=False,
            random_state=0,
        ).fit(rows, positive, sample_weight=weight)
        fields = ["feature_idx", "num_threshold", "left", "right", "value", "count"]
        trees = []
        for (predictor,) in model._predictors:
            nodes = np.column_stack([predictor.nodes[name].astype(float) for name in fields])
            nodes[predictor.nodes["is_leaf"] == 1, 2:4] = -1
            trees.append([Node(*row) for row in nodes.tolist()])
        return Forest.of(trees, float(np.ravel(model._baseline_prediction)[0]))

    def staged(self, X: ArrayLike, rounds: Sequence[int]) -> np.ndarray:
        """Scores after each number of rounds, shape (len(rounds), n)."""
        each, place = np.unique(np.asarray(rounds, dtype=int), return_inverse=True)
        return np.array([*self.forest_.staged(self._rows(X), each.tolist())])[place]

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Ranking score of each row; with the log loss, its log-odds."""
        rows = self._rows(X)
        return self.forest_.scores(rows)


def lightgbm_trees(booster: Any) -> list[list[Node]]:
    """Parse the trees of a LightGBM booster, trained on numbers without missing values."""
    return [[*_lightgbm_nodes(tree["tree_structure"])] for tree in booster.dump_model()["tree_info"]]


def _lightgbm_nodes(root: Mapping[str, Any]) -> Iterator[Node]:
    """Nodes of a tree in breadth-first order."""
    level, place = [root], 1
    while level:
        below: list[Mapping[str, Any]] = []
        for node in level:
            if "left_child" not in node:
                yield Node(0, 0.0, -1, -1, node["leaf_value"], node.get("leaf_count", 1))
                continue
            below += [node["left_child"], node["right_child"]]
            yield Node(
                node["split_feature"], node["threshold"], place, place + 1, 0.0, node["internal_count"]
            )
            place += 2
        level = below
