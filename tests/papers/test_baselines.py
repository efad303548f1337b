"""Ranks of earlier papers against power series and single ratings."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from apexrank.graph import PageRank, as_graph
from apexrank_papers.graphs.baselines import TruncatedPageRank, mean_rating, modified_pagerank
from tests.graph.oracles import random_adjacency, sparse_of


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("truncate", [0, 1, 2, 5])
def test_truncated_pagerank_is_the_power_series_without_its_first_terms(seed, truncate):
    A = random_adjacency(seed, weighted=seed % 2 == 1)
    v = np.random.default_rng(seed).dirichlet(np.ones(len(A)))
    d = A.sum(axis=1, keepdims=True)
    P = np.divide(A, d, out=np.tile(v, (len(A), 1)), where=d > 0)
    term, total = v, np.zeros(len(A))
    for t in range(600):
        total += term * (t >= truncate)
        term = 0.85 * term @ P
    ranks = TruncatedPageRank(truncate).fit(sparse_of(A), teleport=v)
    assert np.abs(ranks.scores_ - total / total.sum()).sum() <= ranks.error_bound_ <= 1e-9


@pytest.fixture
def ratings():
    rng = np.random.default_rng(3)
    return np.where(rng.random((30, 30)) < 0.15, rng.integers(-10, 11, (30, 30)), 0).astype(float)


def test_mean_rating(ratings):
    signed, received = as_graph(csr_array(ratings), signed=True), (ratings != 0).sum(axis=0)
    plain = mean_rating(signed, 0)
    assert plain == pytest.approx(ratings.sum(axis=0) / np.maximum(received, 1))
    assert mean_rating(signed, 3) == pytest.approx(ratings.sum(axis=0) / (received + 3))


def test_a_pair_of_both_signs_has_rated_twice():
    signed = as_graph((["a", "a", "b"], ["c", "c", "c"], [10, -10, 10]), signed=True)
    assert mean_rating(signed, 0).max() == pytest.approx(10 / 3)


def test_modified_pagerank_is_a_difference(ratings):
    parts = [
        PageRank(tol=1e-12).fit(csr_array(part)).scores_
        for part in (np.maximum(ratings, 0), np.maximum(-ratings, 0))
    ]
    found = modified_pagerank(as_graph(csr_array(ratings), signed=True), 1e-11)
    assert found == pytest.approx(parts[0] - parts[1], abs=1e-11)
