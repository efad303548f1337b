"""Boosted trees with the log loss or a push, as a ranker like the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from apexrank.errors import InputError, MissingExtraError
from apexrank.kernels.trees import leaf_sums, path_sums
from apexrank.metrics.confidence import are_counts
from apexrank.parallel import n_threads
from apexrank.rankers.base import BinaryRanker, checked_rows
from apexrank.validation import check_count

_FEWEST_IN_LEAF = 20
_MOST_REPEATED = 10  # times the rows, where weights are counts
_LARGE = 5e6  # numbers of a table that is worth several threads


class Forest(NamedTuple):
    """Trees as arrays, one entry a node.

    A row goes ``left`` where its ``feature`` is at most the ``threshold``, else ``right``; a leaf has -1 for both. Its
    score is ``base`` plus the ``value`` of its leaf in each tree. ``mean`` is the mean value of the training rows that
    come through a node, and ``roots`` are the nodes at which trees begin.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    mean: np.ndarray
    roots: np.ndarray
    base: float

    @classmethod
    def of(cls, trees: Sequence[Sequence[Node]], base: float) -> Forest:
        """Join trees, each a list of nodes from the root on, with children after their parents."""
        sizes = np.array([len(nodes) for nodes in trees])
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        joined = np.array([node for nodes in trees for node in nodes], dtype=np.float64).reshape(
            -1, len(Node._fields)
        )
        feature, threshold, to_left, to_right, value, weight = joined.T
        start = np.repeat(roots, sizes)
        left, right = (np.where(to < 0, -1, to + start).astype(np.int64) for to in (to_left, to_right))
        mean = value.copy()
        for node in range(len(mean) - 1, -1, -1):
            if left[node] >= 0:
                below = [left[node], right[node]]
                mean[node] = np.average(mean[below], weights=np.maximum(weight[below], 1))
        return cls(feature.astype(np.int64), threshold, left, right, value, mean, roots, float(base))

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Scores of the rows."""
        return next(self.staged(X, [len(self.roots)]))

    def staged(self, X: np.ndarray, rounds: Iterable[int]) -> Iterator[np.ndarray]:
        """Scores of the rows after so many trees, for growing numbers of them."""
        out, nodes = np.full(len(X), self.base), (self.feature, self.threshold, self.left, self.right)
        for first, last in pairwise([0, *rounds]):
            leaf_sums(X, *nodes, self.value, self.roots[first:last], out)
            yield out.copy()

    def asked(self, n_features: int) -> np.ndarray:
        """Number of splits on each feature."""
        return np.bincount(self.feature[self.left >= 0], minlength=n_features)

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Contributions of features along the paths to the leaves (Saabas 2014): they sum to score less mean."""
        out = np.zeros(X.shape)
        path_sums(X, self.feature, self.threshold, self.left, self.right, self.mean, self.roots, out)
        return out


class Node(NamedTuple):
    """A node of one tree: children by their places in its list, -1 in a leaf, and how many training rows it has."""

    feature: int
    threshold: float
    left: int
    right: int
    value: float
    rows: float


class TreeRanker(BinaryRanker):
    """Boosted trees: LightGBM's where it is installed, scikit-learn's otherwise.

    The baseline that needs no idea of the data's shape. With ``p`` the trees minimise the P-Norm Push instead of the
    log loss (`apexrank.integrations.boosting.PushObjective`), which takes LightGBM.

    Parameters
    ----------
    p : float, optional
        Power of a push; None is the log loss.
    leaves, rounds : int
        Leaves of a tree, and number of trees.
    learning_rate : float
        Share of each tree's answer that is taken.
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

    forest_: Forest

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
        """Fit on rows X with two-valued labels y; weights that are whole numbers count as repetitions of rows."""
        check_count("leaves", self.leaves, 2)
        check_count("rounds", self.rounds)
        _refuse_sparse(X)
        rows, positive, weight = self._validate(X, y, sample_weight)
        if weight is not None and are_counts(weight) and weight.sum() <= _MOST_REPEATED * len(weight):
            # both libraries count rows, not weights, for bins and leaves
            again = np.repeat(np.arange(len(weight)), weight.astype(int))
            rows, positive, weight = rows[again], positive[again], None
        # 20 rows a leaf, as LightGBM has it, leave no tree of a small table
        fewest = int(np.clip(min(positive.sum(), (~positive).sum()) // 5, 1, _FEWEST_IN_LEAF))
        if find_spec("lightgbm") is None:
            if self.p is not None:
                raise MissingExtraError('trees with a push need LightGBM: pip install "apexrank[boosting]"')
            self.forest_ = self._scikit_learn(rows, positive, weight, fewest)
            return self
        import lightgbm

        from apexrank.integrations.boosting import PushObjective

        options = {
            "objective": "binary" if self.p is None else PushObjective(self.p),
            "num_leaves": self.leaves,
            "min_data_in_leaf": fewest,
            "learning_rate": self.learning_rate,
            "deterministic": True,
            "force_row_wise": True,
            # of small trees awaiting other threads takes longer than they save, many times so on a busy machine
            "num_threads": 1 if rows.size < _LARGE else n_threads(),
            "verbosity": -1,
        }
        data = lightgbm.Dataset(rows, positive.astype(float), weight=weight)
        booster = lightgbm.train(options, data, self.rounds)
        trees = [list(_lightgbm_nodes(tree["tree_structure"])) for tree in booster.dump_model()["tree_info"]]
        self.forest_ = Forest.of(trees, 0.0)
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

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Ranking score of each row; with the log loss its log-odds."""
        rows = self._rows(X)
        return self.forest_.scores(rows)

    def staged(self, X: ArrayLike, rounds: Sequence[int]) -> np.ndarray:
        """Scores after so many rounds, shape (len(rounds), n)."""
        each, place = np.unique(np.asarray(rounds, dtype=int), return_inverse=True)
        return np.array([*self.forest_.staged(self._rows(X), each.tolist())])[place]

    def contributions(self, X: ArrayLike) -> np.ndarray:
        """Contribution of each feature to a row's score beyond the mean score, rows by features."""
        rows = self._rows(X)
        return self.forest_.contributions(rows)

    def _rows(self, X: ArrayLike) -> np.ndarray:
        _refuse_sparse(X)
        return np.ascontiguousarray(checked_rows(self, X), dtype=np.float64)


def _refuse_sparse(X: Any) -> None:
    if sparse.issparse(X):
        raise InputError("sparse input is not supported by TreeRanker: give X.toarray()")


def _lightgbm_nodes(root: Mapping[str, Any]) -> Iterator[Node]:
    """Nodes of a tree of LightGBM's in the order of levels."""
    level, place = [root], 1
    while level:
        below: list[Mapping[str, Any]] = []
        for node in level:
            if "left_child" in node:
                below += [node["left_child"], node["right_child"]]
                yield Node(
                    node["split_feature"], node["threshold"], place, place + 1, 0.0, node["internal_count"]
                )
                place += 2
            else:
                yield Node(0, 0.0, -1, -1, node["leaf_value"], node.get("leaf_count", 1))
        level = below
