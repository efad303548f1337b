"""Ranks of signed graphs against loops over single ratings, and their bounds against exact solutions."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from apexrank.graph import (
    FairnessGoodness,
    InDegree,
    as_graph,
)


def random_ratings(seed, n=30, density=0.15):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, n)) < density, rng.integers(-10, 11, (n, n)), 0).astype(float)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([0, 0.5, 2]))
def test_no_score_is_further_off_than_the_bound(seed, steps, smoothing):
    A = csr_array(random_ratings(seed, n=15))
    if not A.nnz:
        return
    exact = FairnessGoodness(smoothing, tol=1e-13).fit(A)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        early = FairnessGoodness(smoothing, tol=0, max_iter=steps).fit(A)
    assert np.abs(early.scores_ - exact.scores_).max() <= early.error_bound_ + exact.error_bound_
    # a step halves it: the difference of the first two steps is at most 2
    assert early.error_bound_ <= 2.0 ** (1 - steps) + 1e-12
    assert (np.abs(exact.scores_) <= 1).all()
    assert ((exact.fairness_ >= 0) & (exact.fairness_ <= 1)).all()


def test_net_in_degree():
    A = random_ratings(4)
    signed = as_graph(csr_array(A), signed=True)
    assert InDegree().fit(signed).scores_ == pytest.approx(A.sum(axis=0) / np.abs(A).sum())
    count = np.sign(A).sum(axis=0) / (A != 0).sum()
    assert InDegree(weighted=False).fit(signed).scores_ == pytest.approx(count)


def test_the_parts_of_an_explanation_add_up():
    A = random_ratings(6)
    rank = FairnessGoodness().fit(csr_array(A))
    for vertex in range(len(A)):
        links = rank.explain(vertex)
        assert sum(link.flow for link in links) == pytest.approx(rank.scores_[vertex], abs=1e-9)
        assert {link.source for link in links} == set(np.flatnonzero(A[:, vertex]))
        assert sum(link.share for link in links) == pytest.approx(1 if links else 0)
    assert len(rank.explain(int((A != 0).sum(axis=0).argmax()), top=2)) == 2


def test_a_graph_without_negative_or_any_ratings():
    assert FairnessGoodness(0).fit((["a", "b"], ["b", "a"], [3, 3])).scores_.tolist() == [1, 1]
    nothing = FairnessGoodness().fit(np.zeros((3, 3)))
    assert (nothing.scores_.tolist(), nothing.fairness_.tolist()) == ([0, 0, 0], [1, 1, 1])
    assert nothing.converged_


def test_too_few_steps_are_told_in_the_norm_of_the_bound():
    with pytest.warns(ConvergenceWarning, match=r"after 2 steps: the scores may be .* \(maximum norm\) from"):
        FairnessGoodness(max_iter=2).fit(random_ratings(0))
