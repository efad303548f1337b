"""Baselines and classical centralities against dense solutions and networkx."""

import networkx as nx
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from apexrank import InputError, PageRank
from apexrank.datasets.crawl import make_crawl
from apexrank.graph import (
    HITS,
    EigenvectorRank,
    Graph,
    KatzRank,
    RobustPageRank,
    SpamMassRank,
    TruncatedPageRank,
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


class TestTruncatedPageRank:
    @pytest.mark.parametrize("seed", SEEDS)
    @pytest.mark.parametrize("truncate", [0, 1, 2, 5])
    def test_it_is_the_power_series_without_its_first_terms(self, seed, truncate):
        A = random_adjacency(seed, weighted=seed % 2 == 1)
        rng = np.random.default_rng(seed)
        v = rng.dirichlet(np.ones(len(A)))
        P = transitions(A)
        P[A.sum(axis=1) == 0] = v
        term, total = v, np.zeros(len(A))
        for t in range(600):
            total += term * (t >= truncate)
            term = 0.85 * term @ P
        ranks = TruncatedPageRank(truncate).fit(sparse_of(A), teleport=v)
        assert np.abs(ranks.scores_ - total / total.sum()).sum() <= ranks.error_bound_ <= 1e-9

    def test_several_teleports_and_a_warm_start(self):
        A = sparse_of(random_adjacency(3))
        columns = list(np.random.default_rng(0).dirichlet(np.ones(A.shape[0]), 3))
        together = TruncatedPageRank().fit(A, teleport=columns).scores_
        for column, scores in zip(columns, together.T, strict=True):
            alone = TruncatedPageRank().fit(A, teleport=column)
            assert scores == pytest.approx(alone.scores_, abs=1e-8)
            assert TruncatedPageRank().fit(A, teleport=column, start=alone).n_iter_ < alone.n_iter_ / 4

    def test_an_explanation_adds_up_to_the_score(self):
        A = random_adjacency(5)
        ranks = TruncatedPageRank(3).fit(sparse_of(A))
        for vertex, score in enumerate(ranks.scores_):
            assert sum(link.flow for link in ranks.explain(vertex)) == pytest.approx(score, abs=1e-8)

    @pytest.mark.parametrize("truncate", [-1, 1.5, True])
    def test_what_is_no_length_is_refused(self, truncate):
        with pytest.raises(InputError, match="`truncate` must be a whole number of at least 0"):
            TruncatedPageRank(truncate).fit(([0], [1]))


class TestRobustPageRank:
    @pytest.mark.parametrize("seed", SEEDS)
    @pytest.mark.parametrize("cap", [1.0, 0.1, 0.01])
    def test_contributions_are_capped(self, seed, cap):
        A = random_adjacency(seed, weighted=seed % 2 == 1)
        v = np.random.default_rng(seed).dirichlet(np.ones(len(A)))
        exact = v @ np.minimum(contributions(A), cap)
        for tol in (1e-1, 1e-3, 1e-7):
            ranks = RobustPageRank(cap, tol=tol).fit(sparse_of(A), teleport=v)
            assert np.abs(ranks.scores_ - exact / exact.sum()).sum() <= ranks.error_bound_ <= tol

    def test_no_cap_is_pagerank(self):
        A = sparse_of(random_adjacency(4))
        assert RobustPageRank(1.0, tol=1e-9).fit_predict(A) == pytest.approx(
            PageRank().fit_predict(A), abs=1e-8
        )

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

    @pytest.mark.parametrize("cap", [0, -1, 1.5, "much", np.nan])
    def test_bad_caps(self, cap):
        with pytest.raises(InputError, match="`cap` must be"):
            RobustPageRank(cap).fit(([0], [1]))


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


def strong_graph(seed):
    """Strongly connected and aperiodic."""
    web = nx.gnp_random_graph(40, 0.1, seed=seed, directed=True)
    nx.add_cycle(web, range(40))
    web.add_edge(0, 0)
    for k, (_, _, data) in enumerate(web.edges(data=True)):
        data["weight"] = 1 + k % 3
    return web


def values(ranks, web):
    return {node: float(ranks[node]) for node in web}


@pytest.mark.parametrize("seed", SEEDS)
class TestAgainstNetworkx:
    def test_hits(self, seed):
        web = strong_graph(seed)
        hubs, authorities = nx.hits(web)
        ranks = HITS(tol=1e-12).fit(web)
        assert values(ranks.scores_, web) == pytest.approx(authorities, abs=1e-9)
        assert values(ranks.hubs_, web) == pytest.approx(hubs, abs=1e-9)
        assert np.isnan(ranks.error_bound_)

    def test_eigenvector(self, seed):
        web = strong_graph(seed)
        found = nx.eigenvector_centrality_numpy(web, weight="weight")
        total = sum(found.values())
        ranks = EigenvectorRank(tol=1e-12).fit(web)
        assert values(ranks.scores_, web) == pytest.approx({k: v / total for k, v in found.items()}, abs=1e-9)

    def test_katz(self, seed):
        web = strong_graph(seed)
        largest = np.abs(np.linalg.eigvals(nx.to_numpy_array(web))).max()
        for alpha, start in ((None, None), (0.5 / largest, None), (0.99 / largest, np.arange(1.0, 41))):
            ranks = KatzRank(alpha, max_iter=5000).fit(web, start=start)
            assert 0 < ranks.alpha_ * largest < 1
            found = nx.katz_centrality_numpy(web, alpha=ranks.alpha_, weight="weight")
            exact = np.array([found[node] for node in range(40)])
            exact /= exact.sum()
            assert np.abs(ranks.scores_ - exact).sum() <= ranks.error_bound_ + 1e-12
            assert ranks.error_bound_ <= 1e-9
            # the default is not far below what it may be
            assert alpha is not None or ranks.alpha_ * largest > 0.84


class TestKatz:
    @pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-5])
    @pytest.mark.parametrize("seed", SEEDS)
    def test_the_bound_holds_for_a_coarse_answer(self, seed, tol):
        A = random_adjacency(seed, weighted=True)
        ranks = KatzRank(tol=tol).fit(sparse_of(A))
        exact = np.linalg.solve(np.eye(len(A)) - ranks.alpha_ * A.T, np.ones(len(A)))
        exact /= exact.sum()
        assert np.abs(ranks.scores_ - exact).sum() <= ranks.error_bound_ <= tol
        assert np.abs(np.log(ranks.scores_ / exact)).max() <= ranks.hilbert_bound_

    @pytest.mark.parametrize(("alpha", "max_iter"), [(0.6, 1000), (100.0, 1000), (0.5, 200)])
    def test_an_alpha_that_is_too_large_is_refused(self, alpha, max_iter):
        with pytest.raises(InputError, match=r"alpha = .* any below 0\.5 is$"):
            KatzRank(alpha, max_iter=max_iter).fit(nx.complete_graph(3))

    def test_a_graph_without_cycles_takes_any_alpha(self):
        assert KatzRank(10.0).fit(([0, 1], [1, 2])).scores_ * 123 == pytest.approx([1, 11, 111])


def test_no_cycle_no_eigenvector():
    with pytest.raises(InputError, match="without a cycle"):
        EigenvectorRank().fit(([0, 0], [1, 2]))
    assert EigenvectorRank().fit(([0, 0], [1, 0])).converged_


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
        with pytest.raises(InputError, match=message):
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


def test_katz_without_enough_steps_is_a_warning():
    web = nx.complete_graph(3)
    with pytest.warns(ConvergenceWarning, match="not converged after 2 steps"):
        ranks = KatzRank(0.45, max_iter=2).fit(nx.DiGraph([(0, 1), (1, 0), (1, 2), (2, 1), (2, 0)]))
    assert ranks.error_bound_ <= 2
    assert KatzRank(0.0).fit(web).scores_ == pytest.approx([1 / 3] * 3)
    with pytest.raises(InputError, match="`alpha` must be a finite number of at least 0"):
        KatzRank(-0.1).fit(web)
