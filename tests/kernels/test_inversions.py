"""Counts and sums over inverted pairs against loops over all pairs."""

from itertools import combinations

import numpy as np
import pytest

from apexrank.kernels.inversions import count_pairs, mean_ranks, sort_rows, sum_inversions


def brute(first, second, weight=lambda i, j: 1):
    """Inverted pairs, then those tied in the first, the second and both lists."""
    sums = [0, 0, 0, 0]
    for i, j in combinations(range(len(first)), 2):
        tied = first[i] == first[j], second[i] == second[j]
        inverted = (first[i] < first[j]) != (second[i] < second[j]) and not any(tied)
        for k, holds in enumerate((inverted, *tied, all(tied))):
            sums[k] += weight(i, j) * holds
    return sums


def test_a_dominant_weight_hides_no_small_one():
    """Of three items only the two light ones are inverted; a sum that subtracts would give 0."""
    first, second = sort_rows(np.array([[0, 1, 2]])), sort_rows(np.array([[0, 2, 1]]))
    assert sum_inversions(first, second, np.array([[1e200, 1e-30, 1e-30]])).item() == 1e-30 * 1e-30
    assert sum_inversions(first, second, np.array([[1e200, 1e-30, 1e-30]]), additive=True).item() == 2e-30


@pytest.mark.parametrize("make", [np.asfortranarray, lambda x: x[:, ::-1], lambda x: x.astype(np.float32)])
def test_any_memory_layout(make):
    rng = np.random.default_rng(1)
    first, second = make(rng.integers(0, 9, (5, 30))), make(rng.integers(0, 9, (5, 30)))
    counts = np.array(count_pairs(sort_rows(first), sort_rows(second)))
    assert counts.T.tolist() == [brute(*rows) for rows in zip(first, second, strict=True)]


def test_no_rows():
    none, one = sort_rows(np.empty((0, 3))), sort_rows(np.arange(3)[None])
    assert np.shape(count_pairs(none, one)) == (4, 0)
    assert sum_inversions(one, none, np.ones((1, 3))).shape == (0,)
    assert mean_ranks(none).shape == (0, 3)
