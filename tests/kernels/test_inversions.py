"""Counts and sums over inverted pairs against loops over all pairs."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

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


@st.composite
def tables(draw, most_items=12):
    m, n = draw(st.integers(1, 4)), draw(st.integers(0, most_items))
    levels = st.integers(-3, draw(st.sampled_from([0, 5, 1000])))
    return tuple(draw(arrays(np.int64, (m, n), elements=levels)) for _ in range(2))


@given(tables())
def test_counts_are_those_of_all_pairs(pair):
    first, second = pair
    counts = np.array(count_pairs(sort_rows(first), sort_rows(second)))
    assert counts.T.tolist() == [brute(*rows) for rows in zip(first.tolist(), second.tolist(), strict=True)]


@given(tables(), st.booleans(), st.data())
def test_sums_are_those_of_all_pairs(pair, additive, data):
    first, second = pair
    w = data.draw(arrays(np.int64, first.shape, elements=st.integers(0, 1000)))
    sums = sum_inversions(sort_rows(first), sort_rows(second), w, additive=additive)
    for r, row in enumerate(w.tolist()):

        def weight(i, j, row=row):
            return row[i] + row[j] if additive else row[i] * row[j]

        assert sums[r] == brute(first[r], second[r], weight)[0]


@given(tables())
def test_mean_ranks_are_scipys(pair):
    np.testing.assert_array_equal(
        mean_ranks(sort_rows(pair[0])), rankdata(pair[0], axis=1).reshape(pair[0].shape)
    )
    largest_first = mean_ranks(sort_rows(pair[0], descending=True))
    np.testing.assert_array_equal(largest_first, rankdata(-pair[0], axis=1).reshape(pair[0].shape))


@pytest.mark.parametrize("additive", [False, True])
def test_one_row_is_compared_with_each(additive):
    rng = np.random.default_rng(0)
    one, many, w = sort_rows(rng.integers(0, 9, (1, 20))), rng.integers(0, 9, (6, 20)), rng.random((6, 20))
    for which in (slice(None), slice(None, None, -1)):
        whole = [one, sort_rows(many)][which]
        rows = [[one, sort_rows(row[None])][which] for row in many]
        np.testing.assert_array_equal(count_pairs(*whole), np.hstack([count_pairs(*pair) for pair in rows]))
        weighted = [sum_inversions(*pair, w[r, None], additive=additive) for r, pair in enumerate(rows)]
        np.testing.assert_array_equal(sum_inversions(*whole, w, additive=additive), np.concatenate(weighted))
        shared = [sum_inversions(*pair, w[:1], additive=additive) for pair in rows]
        np.testing.assert_array_equal(
            sum_inversions(*whole, w[:1], additive=additive), np.concatenate(shared)
        )


def test_counts_beyond_32_bits():
    n = 200_000
    ascending, constant = sort_rows(np.arange(n)[None]), sort_rows(np.zeros((1, n)))
    pairs = n * (n - 1) // 2
    assert pairs > 2**33
    reverse = sort_rows(-np.arange(n)[None])
    assert np.ravel(count_pairs(ascending, reverse)).tolist() == [pairs, 0, 0, 0]
    assert np.ravel(count_pairs(constant, constant)).tolist() == [0, pairs, pairs, pairs]
    assert sum_inversions(ascending, reverse, np.ones((1, n)), additive=True).item() == 2 * pairs


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
