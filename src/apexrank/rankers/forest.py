"""Tree ensembles stored as arrays, and the base class of rankers that use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.kernels.trees import leaf_sums, path_sums
from apexrank.metrics.confidence import are_counts
from apexrank.parallel import n_threads
from apexrank.rankers.base import checked_rows

_FEWEST_IN_LEAF = 20
_MOST_REPEATED = 10  # times the number of rows, if weights are counts
MOST = float(np.finfo(float).max)
_LARGE = 5e6  # number of table entries above which several threads pay off


class Columns(NamedTuple):
    """Columns on which trees are trained: columns of X, and indicators that a column of X lies in an interval.

    Training column k is column ``column[k]`` itself if ``low[k]`` is NaN, else the indicator of the interval from
    ``low[k]`` to ``high[k]``, in which missing values never are.

    Examples
    --------
    >>> columns = Columns.of_levels({1: ("Oslo", "Rome")}, np.array([[0.5, 1.0], [np.nan, 0.0], [0.7, np.nan]]))
    >>> columns.of(np.array([[0.5, 1.0], [np.nan, np.nan]])).tolist()
    [[0.5, 0.0, 1.0, 1.0], [nan, 0.0, 0.0, 0.0]]
    """

    column: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of_levels(cls, levels: Mapping[int, Sequence[str]], rows: np.ndarray) -> Columns:
        """Columns of numbers as they are; an indicator of each level, and of all of them if a row has none."""
        columns = []
        for j, values in enumerate(rows.T):
            if j not in levels:
                columns.append((j, np.nan, np.nan))
                continue
            columns += [(j, code, code) for code in range(len(levels[j]))]
            if np.isnan(values).any():
                columns.append((j, -MOST, MOST))
        column, low, high = np.array(columns, dtype=float).T
        return cls(column.astype(np.int64), low, high)

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Training columns of the rows."""
        values = rows[:, self.column]
        return np.where(np.isnan(self.low), values, (self.low <= values) & (values <= self.high))


class Node(NamedTuple):
    """A node of one tree: children as indices into its node list (-1 in a leaf), and the number of training rows.

    A row goes left if its value is at most ``threshold``, or if it is missing and ``missing_left`` is true.
    """

    feature: int
    threshold: float
    missing_left: bool
    left: int
    right: int
    value: float
    rows: float


class Forest(NamedTuple):
    """Tree ensemble as arrays, one entry per node.

    A row goes ``left`` if its ``feature`` lies between ``low`` and ``high``, both included, else ``right``; a missing
    value (NaN) lies in no interval. Both children are -1 in a leaf. The score of a row is ``base`` plus the ``value``
    of its leaf in each tree. ``mean`` is the mean value of the training rows that pass through a node, and ``roots``
    are the root nodes.
    """

    feature: np.ndarray
    low: np.ndarray
    high: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    mean: np.ndarray
    roots: np.ndarray
    base: float

    @classmethod
    def of(cls, trees: Sequence[Sequence[Node]], base: float) -> Forest:
        """Join trees, each a list of nodes that starts at the root, with children after their parents."""
        sizes = [len(tree) for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        nodes = np.array([node for tree in trees for node in tree], dtype=float)
        feature, threshold, missing_left, left, right, value, rows = nodes.T
        start, above = np.repeat(roots, sizes), missing_left > 0
        left, right = (np.where(link < 0, -1, link.astype(np.int64) + start) for link in (left, right))
        mean, rows = value.copy(), np.maximum(rows, 1e-9)
        for node in np.flatnonzero(left >= 0)[::-1]:
            a, b = left[node], right[node]
            share = rows[a] / (rows[a] + rows[b])
            mean[node] = share * mean[a] + (1 - share) * mean[b]
        # missing values go right: where they go left, the children are swapped and the interval is the other one
        left, right = np.where(above, [right, left], [left, right])
        low, high = np.where(above, np.nextafter(threshold, MOST), -MOST), np.where(above, MOST, threshold)
        return cls(feature.astype(np.int64), low, high, left, right, value.copy(), mean, roots, float(base))

    def on_columns(self, columns: Columns) -> Forest:
        """Forest on the rows themselves, for a forest on ``columns.of(rows)``."""
        low, high = columns.low[self.feature], columns.high[self.feature]
        is_indicator = ~np.isnan(low)
        # an indicator is 0 or 1; rows with 1 are those in its interval, and have to go left
        left, right = np.where(
            is_indicator & (self.low < 0), [self.right, self.left], [self.left, self.right]
        )
        low, high = np.where(is_indicator, [low, high], [self.low, self.high])
        return self._replace(feature=columns.column[self.feature], low=low, high=high, left=left, right=right)

    def check(self, n_features: int) -> None:
        """Raise InputError unless every row of ``n_features`` numbers reaches a leaf with a finite value."""
        nodes = np.arange(np.size(self.left))
        for name, array in zip(self._fields[:-1], self[:-1], strict=True):
            kind = np.dtype(np.float64 if name in ("low", "high", "value", "mean") else np.int64)
            if not (isinstance(array, np.ndarray) and array.dtype == kind and array.ndim == 1):
                raise InputError(f"`{name}` of the trees is not a list of {kind.name} numbers")
            if name != "roots" and len(array) != len(nodes):
                raise InputError(f"`{name}` of the trees has {len(array)} entries for {len(nodes)} nodes")
            if not np.isfinite(array).all():
                raise InputError(f"`{name}` of the trees has values that are not finite")
        if not (isinstance(self.base, float) and np.isfinite(self.base)):
            raise InputError(f"`base` of the trees is not a finite number: {self.base!r}")
        if ((self.feature < 0) | (self.feature >= n_features)).any():
            raise InputError(f"`feature` of the trees is not below {n_features}, the number of features")
        inner = np.flatnonzero((self.left != -1) | (self.right != -1))
        below = np.concatenate([self.left[inner], self.right[inner]])
        # every node is a root or the child of one earlier node, so no path returns to a node
        once = np.array_equal(np.sort(np.concatenate([self.roots, below])), nodes)
        if not (once and (below > np.tile(inner, 2)).all()):
            raise InputError("`left`, `right` and `roots` of the trees do not lead to leaves")

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Score of each row."""
        out = np.full(len(X), self.base)
        leaf_sums(X, *self[:5], self.value, self.roots, out)
        return out

    def asked(self, n_features: int) -> np.ndarray:
        """Number of splits on each feature."""
        return np.bincount(self.feature[self.left >= 0], minlength=n_features)

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Feature contributions along the paths to the leaves (Saabas 2014); they sum to the score minus the mean."""
        out = np.zeros(X.shape)
        path_sums(X, *self[:5], self.mean, self.roots, out)
        return out


def table_of(tree: Any) -> np.ndarray:
    """Nodes of a ``tree_`` of scikit-learn, one per row: their fields, and the value of each class."""
    nodes, values = tree.__getstate__()["nodes"], tree.value
    return np.column_stack([*(nodes[name] for name in nodes.dtype.names), values.reshape(len(nodes), -1)])


def tree_of(n_features: int, table: np.ndarray) -> Any:
    """``tree_`` of scikit-learn of a table of nodes, checked, because scikit-learn follows nodes blindly.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> fitted = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1])
    >>> tree_of(1, table_of(fitted.tree_)).predict(np.array([[0.2]], dtype=np.float32)).tolist()
    [[1.0, 0.0]]
    """
    from sklearn.tree._tree import NODE_DTYPE, Tree

    size = len(NODE_DTYPE.names)
    nodes, values = np.zeros(len(table), NODE_DTYPE), table[:, size:].copy()
    with np.errstate(invalid="ignore"):
        for name, column in zip(NODE_DTYPE.names, table[:, :size].T, strict=True):
            nodes[name] = column
            if table.dtype != np.float64 or (nodes[name] != column).any():
                raise InputError(f"`{name}` of a tree has another type")
    left, right = nodes["left_child"].copy(), nodes["right_child"].copy()
    feature, roots = np.where(left < 0, 0, nodes["feature"]), np.zeros(1, np.int64)
    threshold = np.clip(nodes["threshold"], -MOST, MOST)  # infinite if it separates the missing values
    largest = np.abs(values).max(axis=1)
    Forest(feature, threshold, threshold, left, right, largest, largest, roots, 0.0).check(n_features)
    depth = np.zeros(len(table), np.int64)
    for node in np.flatnonzero(left >= 0):
        depth[[left[node], right[node]]] = depth[node] + 1
    tree = Tree(n_features, np.array([values.shape[1]]), 1)
    state = {"max_depth": int(depth.max()), "node_count": len(table), "nodes": nodes}
    tree.__setstate__(state | {"values": values[:, None, :]})
    return tree


class ForestRanker:
    """Mixin for rankers whose scores are those of ``forest_``."""

    takes_device_arrays = False
    forest_: Forest

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        return tags

    def contributions(self, X: ArrayLike) -> np.ndarray:
        """Contribution of each feature to a row's score beyond the mean score, rows by features."""
        rows = self._rows(X)  # raises before fit
        return self.forest_.contributions(rows)

    def _as_numbers(self, X: Any, reset: bool) -> Any:
        return X

    def _rows(self, X: ArrayLike) -> np.ndarray:
        return checked_rows(self, X)


def fewest_in_leaf(n: int) -> int:
    """Minimum number of rows in a leaf for ``n`` relevant rows; LightGBM's default of 20 never splits small data."""
    return int(np.clip(n // 5, 1, _FEWEST_IN_LEAF))


def threads_for(X: np.ndarray) -> int:
    """Number of threads to use: for small data, synchronisation costs more than threads save."""
    return 1 if X.size < _LARGE else n_threads()


def repeated_rows(weight: np.ndarray | None, n: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Row indices and weights, with count weights turned into repetitions and rows of weight 0 dropped.

    The libraries count rows, not weights, when they build bins and leaves.

    Examples
    --------
    >>> repeated_rows(np.array([2.0, 0.0, 1.0]), 3)
    (array([0, 0, 2]), None)
    >>> repeated_rows(np.array([0.5, 0.0, 1.0]), 3)
    (array([0, 2]), array([0.5, 1. ]))
    """
    if weight is None:
        return np.arange(n), None
    if are_counts(weight) and weight.sum() <= _MOST_REPEATED * n:
        return np.repeat(np.arange(n), weight.astype(int)), None
    kept = np.flatnonzero(weight)
    return kept, weight[kept]
