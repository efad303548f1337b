"""Tree ensembles stored as arrays, and the base class of rankers that use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from apexrank.errors import InputError
from apexrank.kernels.trees import leaf_sums, path_sums
from apexrank.metrics.confidence import are_counts
from apexrank.parallel import n_threads
from apexrank.rankers.base import checked_rows

_FEWEST_IN_LEAF = 20
_MOST_REPEATED = 10  # times the number of rows, if weights are counts
_LARGE = 5e6  # number of table entries above which several threads pay off


class Node(NamedTuple):
    """A node of one tree: children as indices into its node list (-1 in a leaf), and the number of training rows.

    A row goes left if its value is at most ``threshold``.
    """

    feature: int
    threshold: float
    left: int
    right: int
    value: float
    rows: float


class Forest(NamedTuple):
    """Tree ensemble as arrays, one entry per node.

    A row goes ``left`` if its ``feature`` is at most the ``threshold``, else ``right``; both are -1 in a leaf. The
    score of a row is ``base`` plus the ``value`` of its leaf in each tree. ``mean`` is the mean value of the training
    rows that pass through a node, and ``roots`` are the root nodes.
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
        """Join trees, each a list of nodes that starts at the root, with children after their parents."""
        sizes = [len(tree) for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        feature, threshold, left, right, value, rows = np.array([node for tree in trees for node in tree]).T
        start = np.repeat(roots, sizes)
        left, right = (np.where(link < 0, -1, link.astype(np.int64) + start) for link in (left, right))
        mean, rows = value.copy(), np.maximum(rows, 1e-9)
        for node in np.flatnonzero(left >= 0)[::-1]:
            a, b = left[node], right[node]
            share = rows[a] / (rows[a] + rows[b])
            mean[node] = share * mean[a] + (1 - share) * mean[b]
        return cls(feature.astype(np.int64), threshold, left, right, value, mean, roots, float(base))

    def scores(self, X: np.ndarray) -> np.ndarray:
        """Score of each row."""
        return next(self.staged(X, [len(self.roots)]))

    def staged(self, X: np.ndarray, rounds: Iterable[int]) -> Iterator[np.ndarray]:
        """Scores of the rows after each number of trees in ``rounds``, which must increase."""
        out, nodes = np.full(len(X), self.base), (self.feature, self.threshold, self.left, self.right)
        for first, last in pairwise([0, *rounds]):
            leaf_sums(X, *nodes, self.value, self.roots[first:last], out)
            yield out.copy()

    def asked(self, n_features: int) -> np.ndarray:
        """Number of splits on each feature."""
        return np.bincount(self.feature[self.left >= 0], minlength=n_features)

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Feature contributions along the paths to the leaves (Saabas 2014); they sum to the score minus the mean."""
        out = np.zeros(X.shape)
        path_sums(X, self.feature, self.threshold, self.left, self.right, self.mean, self.roots, out)
        return out


class ForestRanker:
    """Mixin for rankers whose scores are those of ``forest_``."""

    forest_: Forest

    def contributions(self, X: ArrayLike) -> np.ndarray:
        """Contribution of each feature to a row's score beyond the mean score, rows by features."""
        rows = self._rows(X)
        return self.forest_.contributions(rows)

    def _rows(self, X: ArrayLike) -> np.ndarray:
        """Validate rows and convert them to contiguous double precision."""
        self._refuse_sparse(X)
        return np.ascontiguousarray(checked_rows(self, X), dtype=np.float64)

    def _refuse_sparse(self, X: Any) -> None:
        if sparse.issparse(X):
            raise InputError(f"sparse input is not supported by {type(self).__name__}: give X.toarray()")


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
