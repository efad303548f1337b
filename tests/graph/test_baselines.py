"""Capped contributions, spam mass and local ranks against dense solutions."""

import numpy as np
import pytest

from apexrank import InputError, PageRank
from apexrank.datasets.crawl import make_crawl
from apexrank.graph import (
    Graph,
    RobustPageRank,
    SpamMassRank,
    local_rank,
    local_ranks,
)
from tests.graph.oracles import dense_pagerank, random_adjacency, sparse_of

SEEDS = range(12)


def transitions(A):
    """Row-stochastic matrix; rows of vertices without out-links are 0."""
    d = A.sum(axis=1, keepdims=True)
    return np.divide(A, d, out=np.zeros_like(A), where=d > 0)


def contributions(A, damping=0.85):
    """``c[u, i]``: share of the walks from u that end at i; walks that end at dangling vertices are lost."""
    return (1 - damping) * np.linalg.inv(np.eye(len(A)) - damping * transitions(A))


class TestRobustPageRank:
    def test_an_explanation_names_the_contributors(self):
        A = random_adjacency(1)
        ranks = RobustPageRank(0.05, tol=1e-8).fit(sparse_of(A))
        share = np.minimum(contributions(A), 0.05) / len(A)
        share /= share.sum()
        vertex = int(ranks.ranking_[0])
        found = ranks.explain(vertex)
        assert [link.flow for link in found] == pytest.approx(
            [share[link.source, vertex] for link in found], abs=1e-3 / len(A)
        )
        assert {u for u in range(len(A)) if share[u, vertex] > 0.1 * share.max()} <= {x.source for x in found}
        assert ranks.explain(vertex, top=2) == found[:2]


class TestSpamMass:
    @pytest.mark.parametrize("seed", SEEDS)
    def test_it_is_what_the_core_does_not_contribute(self, seed):
        A = random_adjacency(seed, weighted=seed % 2 == 1)
        n, core = len(A), np.arange(0, len(A), 3)
        C = contributions(A)
        p, good = C.mean(axis=0), 0.7 * C[core].mean(axis=0)
        masses = SpamMassRank(good_share=0.7).fit(sparse_of(A), trusted=core.tolist())
        assert masses.pagerank_ / masses.pagerank_.sum() == pytest.approx(dense_pagerank(A), abs=1e-8)
        assert np.abs(masses.absolute_mass_ - (p - good)).sum() <= masses.error_bound_ <= 1e-9
        assert masses.relative_mass_ == pytest.approx(1 - good / p, abs=1e-6)
        assert masses.suspects(0.5, 2.0) == sorted(
            np.flatnonzero((1 - good / p >= 0.5) & (p >= 2 * 0.15 / n)).tolist(), key=lambda i: -p[i]
        )

    def test_it_needs_a_core(self):
        for trusted in (None, {0: 0.0}):
            with pytest.raises(InputError, match="trusted"):
                SpamMassRank().fit(([0], [1]), trusted=trusted)


def test_a_local_rank_touches_a_neighbourhood():
    """Many small communities with few links between them."""
    rng = np.random.default_rng(0)
    n, size = 20_000, 20
    sources = np.repeat(np.arange(n), 5)
    targets = sources // size * size + rng.integers(0, size, len(sources))
    graph = Graph.from_edges(
        np.append(sources, rng.integers(0, n, 200)), np.append(targets, rng.integers(0, n, 200)), n=n
    )
    found = local_ranks(graph, [3, 5000], k=5, tol=1e-5)
    for each in found:
        assert each.touched < n / 20
        exact = PageRank(tol=1e-12).fit(graph, teleport=[each.seed])
        assert [name for name, _ in each.top] == [name for name, _ in exact.top(5)]
        assert each.certain == 5


def test_local_ranks_of_bad_input():
    graph = Graph.from_edges([0, 1], [1, 2], names=["a", "b", "c"])
    assert local_ranks(graph, []) == []
    assert local_rank(graph, "a", 9).top == local_ranks(graph, "a", 9)[0].top
    for arguments, message in (
        ({"seeds": ["x"]}, "seed vertex 'x' is not in the graph"),
        ({"seeds": ["a"], "tol": 0}, "`tol` must be above 0"),
        ({"seeds": ["a"], "damping": 1}, "damping"),
        ({"seeds": ["a"], "k": 0}, "`k` must be"),
    ):
        with pytest.raises(ValueError, match=message):
            local_ranks(graph, **arguments)


def test_an_update_has_the_same_bound_and_takes_fewer_steps():
    before = make_crawl(3000, random_state=0).adjacency.tolil()
    rng = np.random.default_rng(1)
    after = before.copy()
    for source, target in rng.integers(0, 3000, (300, 2)):  # about 1 % of the links
        after[source, target] = 1.0
    earlier, anew = PageRank().fit(before.tocsr()), PageRank().fit(after.tocsr())
    updated = PageRank().fit(after.tocsr(), start=earlier)
    exact = dense_pagerank(after.toarray())
    assert np.abs(updated.scores_ - exact).sum() <= updated.error_bound_ <= 1e-9
    assert updated.n_iter_ < anew.n_iter_
