"""Sums over the leaves of trees."""

from __future__ import annotations

from apexrank.kernels.jit import kernel

BLOCK = 512  # rows


@kernel()
def leaf_sums(X, feature, low, high, left, right, value, roots, out):
    """Add the value of each row's leaf in the trees with the given ``roots`` to ``out``; a leaf has ``left`` -1.

    A tree and a block of rows fit into the cache together; all trees do not.
    """
    for start in range(0, X.shape[0], BLOCK):
        for root in roots:
            for i in range(start, min(start + BLOCK, X.shape[0])):
                node = root
                while left[node] >= 0:
                    node = left[node] if low[node] <= X[i, feature[node]] <= high[node] else right[node]
                out[i] += value[node]


@kernel()
def path_sums(X, feature, low, high, left, right, mean, roots, out):
    """Add the change of the mean at each split on the path to a row's leaf to ``out`` (rows by features)."""
    for i in range(X.shape[0]):
        for root in roots:
            node = root
            while left[node] >= 0:
                j = feature[node]
                below = left[node] if low[node] <= X[i, j] <= high[node] else right[node]
                out[i, j] += mean[below] - mean[node]
                node = below
