"""Sums over the leaves of trees."""

from __future__ import annotations

from apexrank.kernels.jit import kernel


@kernel()
def leaf_sums(X, feature, threshold, left, right, value, roots, out):
    """Add to ``out`` the value of each row's leaf in the trees that begin at ``roots``; a leaf has no ``left`` (-1)."""
    for i in range(X.shape[0]):
        for root in roots:
            node = root
            while left[node] >= 0:
                node = left[node] if X[i, feature[node]] <= threshold[node] else right[node]
            out[i] += value[node]


@kernel()
def path_sums(X, feature, threshold, left, right, mean, roots, out):
    """Add to ``out`` (rows by features) how the mean changes with each question on the way to a row's leaf."""
    for i in range(X.shape[0]):
        for root in roots:
            node = root
            while left[node] >= 0:
                j = feature[node]
                below = left[node] if X[i, j] <= threshold[node] else right[node]
                out[i, j] += mean[below] - mean[node]
                node = below
