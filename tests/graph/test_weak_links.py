"""L_pq rank with weak links from all vertices, against a dense sum over all n² of them."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from apexrank import LpqRank
from apexrank.graph import as_graph
from apexrank.graph.lpq import Lpq
from apexrank.graph.power import hilbert_distance
from apexrank.graph.weak_links import WeakLinksWalk
from tests.graph.oracles import random_adjacency, reach, sparse_of


def weak(p=2.0, ratio=1.2, **options):
    return LpqRank(p, ratio, teleport="weak-links", **options)


def entries(A, damping=0.85, v=None):
    """``α·w_ij/d_j + c_j·v_i`` for all i and j, in extended precision."""
    n, d = len(A), A.sum(axis=1)
    v = np.full(n, 1 / n) if v is None else v / v.sum()
    share = np.divide(A, d[:, None], out=np.zeros_like(A), where=d[:, None] > 0)
    return (damping * share + np.where(d == 0, 1, 1 - damping)[:, None] * v).T.astype(np.longdouble)


def perron(A, p, v=None):
    """Rank at q = p from the Perron vector of the p-th powers of all entries, by repeated squaring."""
    M = entries(A, v=v) ** p
    there = reach(A, np.ones(len(A)) if v is None else v)
    M[:, ~there] = 0.0
    M /= M.max()
    # the shift separates ρ from −ρ, which cycles of two approach
    M += np.abs(np.linalg.eigvals(M.astype(float))).max() * np.eye(len(M))
    for _ in range(60):
        M = M @ M
        M /= M.max()
    r = np.where(there, M[:, there].sum(axis=1), 0) ** (1 / np.longdouble(p))
    return r / r.sum()


def random_problem(seed):
    rng = np.random.default_rng(seed)
    A = random_adjacency(seed, weighted=bool(rng.integers(2)))
    v = None if rng.integers(2) else rng.random(len(A)) * (rng.random(len(A)) < 0.5) + np.eye(len(A))[0]
    return rng, A, v


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("part", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 3))])
def test_the_perron_vector_at_ratio_one(part):
    converged = 0
    for seed in range(20 * part, 20 * (part + 1)):
        rng, A, v = random_problem(seed)
        p = rng.choice([1.5, 2.0, 4.0, 8.0])
        ranks = weak(p, 1, tol=10.0 ** -rng.integers(1, 9)).fit(sparse_of(A), teleport=v)
        exact = perron(A, p, v=v)
        assert np.abs(ranks.scores_ - exact).sum() <= ranks.error_bound_
        assert hilbert_distance(ranks.scores_, exact.astype(float)) <= ranks.hilbert_bound_ + 1e-14
        converged += ranks.converged_
    assert converged >= 18


def test_ratio_one_is_linear_in_the_powers():
    """Section 6.2 of the dissertation."""
    A = random_adjacency(3)
    y = weak(3, 1, tol=1e-12).fit_predict(sparse_of(A)) ** 3
    image = entries(A).astype(float) ** 3 @ y
    assert image / y == pytest.approx(np.full(len(y), image[0] / y[0]), rel=1e-9)


def test_a_gap_too_small_for_steps_is_said():
    """Two closed cycles with the same growth: the small teleport between them determines their shares."""
    A = np.zeros((60, 60))
    A[range(58), range(2, 60)] = A[58, 58] = A[59, 59] = 1.0
    A[0, 3] = 1.0
    with pytest.warns(match="A ratio of 1.05 always converges"):
        ranks = weak(8, 1).fit(sparse_of(A))
    assert ranks.error_bound_ > 1e-9
    assert np.abs(ranks.scores_ - perron(A, 8)).sum() <= ranks.error_bound_


@pytest.mark.parametrize("p", [1.0 + 1e-9, 2.0, 30.0, 1e4])
@pytest.mark.parametrize(("a", "b"), [(0.85, 1e-9), (1e-9, 0.15), (1e-200, 1e-3), (0.3, 1e-300), (0.5, 0.0)])
def test_differences_of_powers_keep_their_digits(p, a, b):
    walk = WeakLinksWalk(as_graph(([0], [1])), Lpq(p, 1.2), 0.85, np.full(2, 0.5))
    with localcontext() as context:
        context.prec = 600
        exact = ((Decimal(a) + Decimal(b)) ** Decimal(p) - Decimal(b) ** Decimal(p)) ** (1 / Decimal(p))
    assert walk._more(np.array([a]), np.array([b]))[0] == pytest.approx(float(exact), rel=4e-15, abs=0)


def test_large_p_comes_near_the_largest_entry():
    A = sparse_of(random_adjacency(6))
    assert weak(1e5, 1.5).fit_predict(A) == pytest.approx(weak(np.inf, 1.5).fit_predict(A), abs=1e-4)


@pytest.mark.parametrize("ratio", [1.0, 1.2])
def test_explain_adds_up_to_the_score(ratio):
    A = random_adjacency(4, weighted=True)
    v = np.random.default_rng(0).random(len(A))
    ranks = weak(2, ratio, tol=1e-12).fit(sparse_of(A), teleport=v)
    explained = [ranks.explain(i) for i in range(len(A))]
    for vertex, links in enumerate(explained):
        assert {link.source for link in links} == {*np.flatnonzero(A[:, vertex]), None}
        assert sum(link.share for link in links) == pytest.approx(1)
    made = np.array([sum(link.flow**2 for link in links) for links in explained]) ** (1 / (2 * ratio))
    assert made / made.sum() == pytest.approx(ranks.scores_, abs=1e-11)
