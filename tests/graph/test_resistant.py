"""NonBacktrackingRank against a dense solve over links, GuardedPageRank against its definition, and their limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from apexrank.datasets import make_crawl, plant_farms
from apexrank.graph import GuardedPageRank, NonBacktrackingRank, PageRank
from tests.graph.oracles import random_adjacency


def nonbacktracking_oracle(A, damping, truncate, teleport):
    """Sum over walks from step ``truncate`` on: a Markov chain over links and over teleported vertices."""
    n, links = len(A), list(zip(*(ends.tolist() for ends in np.nonzero(A)), strict=True))
    m = len(links)
    chain = np.zeros((m + n, m + n))
    for row, (came_from, at) in enumerate([*links, *((None, i) for i in range(n))]):
        ahead = [(e, A[at, k]) for e, (i, k) in enumerate(links) if i == at and k != came_from]
        rest = sum(weight for _, weight in ahead)
        for e, weight in ahead:
            chain[row, e] = weight / rest
        if not ahead:
            chain[row, m:] = teleport
    start = np.concatenate([np.zeros(m), teleport])
    start = np.linalg.matrix_power(damping * chain.T, truncate) @ start
    mass = np.linalg.solve(np.eye(m + n) - damping * chain.T, start)
    on_vertices = mass[m:].copy()
    for e, (_, at) in enumerate(links):
        on_vertices[at] += mass[e]
    return on_vertices / on_vertices.sum(), mass[:m] / on_vertices.sum(), links


def some_graph(seed):
    rng = np.random.default_rng(seed)
    A = random_adjacency(
        seed, n=int(rng.integers(2, 9)), weighted=seed % 3 == 0, density=rng.uniform(0.1, 0.6)
    )
    if seed % 4 == 0:
        A = np.maximum(A, A.T)  # every link is reciprocal
    v = rng.random(len(A))
    return A, v / v.sum(), rng


@pytest.mark.parametrize("seed", range(8))
def test_nonbacktracking_is_the_dense_solve_over_links(seed):
    A, v, rng = some_graph(seed)
    truncate, damping = int(rng.integers(0, 4)), float(rng.choice([0.5, 0.85]))
    exact, on_links, links = nonbacktracking_oracle(A, damping, truncate, v)
    ranks = NonBacktrackingRank(truncate, damping=damping, tol=1e-12).fit(A, teleport=v)
    error = np.abs(ranks.scores_ - exact).sum()
    assert error <= ranks.error_bound_ <= 1e-12
    assert_allclose(ranks.scores_, exact, atol=1e-12)
    loose = NonBacktrackingRank(truncate, damping=damping, tol=1e-3).fit(A, teleport=v)
    assert np.abs(loose.scores_ - exact).sum() <= loose.error_bound_ <= 1e-3
    vertex = int(rng.integers(len(A)))
    flows = {link.source: link.flow for link in ranks.explain(vertex)}
    for e, (source, target) in enumerate(links):
        if target == vertex:
            assert flows[source] == pytest.approx(on_links[e], abs=1e-6)
    assert sum(flows.values()) == pytest.approx(ranks.scores_[vertex])


def test_without_reciprocal_links_it_is_pagerank():
    A = np.triu(random_adjacency(3, n=30, density=0.3), 1)
    ranks = NonBacktrackingRank(0, tol=1e-12).fit(A)
    assert_allclose(ranks.scores_, PageRank(tol=1e-12).fit(A).scores_, atol=1e-12)


def test_tree_and_cycle():
    path = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)  # walkers reach one end and restart
    ranks = NonBacktrackingRank(0, tol=1e-12).fit(path).scores_
    exact = nonbacktracking_oracle(path, 0.85, 0, np.full(5, 0.2))[0]
    assert_allclose(ranks, exact, atol=1e-12)
    ring = np.roll(np.eye(6), 1, axis=1)
    for A in (ring, ring + ring.T):
        assert_allclose(NonBacktrackingRank(3).fit(A).scores_, np.full(6, 1 / 6))


def test_a_self_loop_is_crossed_once():
    A = np.array([[1.0, 1.0], [0.0, 0.0]])
    exact = nonbacktracking_oracle(A, 0.85, 0, np.full(2, 0.5))[0]
    assert_allclose(NonBacktrackingRank(0, tol=1e-12).fit(A).scores_, exact, atol=1e-12)


@pytest.mark.parametrize("kind", [NonBacktrackingRank, GuardedPageRank])
def test_several_teleports_are_those_one_by_one(kind):
    A = random_adjacency(5, n=25, weighted=True)
    rng = np.random.default_rng(0)
    several = [rng.random(25), rng.random(25) * (np.arange(25) < 4)]
    together = kind(tol=1e-10).fit(A, teleport=several)
    for column, teleport in enumerate(several):
        alone = kind(tol=1e-10).fit(A, teleport=teleport)
        assert_allclose(together.scores_[:, column], alone.scores_, atol=2e-10)


def guard_oracle(A, min_links, truncate, early, damping, teleport):
    d = A.sum(axis=1)
    floor = np.maximum(d, min_links * A.max(axis=1))
    shares = damping * np.divide(A, floor[:, None], out=np.zeros_like(A), where=floor[:, None] > 0).T
    starts = early * teleport + (1 - early) * np.linalg.matrix_power(shares, truncate) @ teleport
    mass = np.linalg.solve(np.eye(len(A)) - shares, starts)
    return mass / mass.sum()


@pytest.mark.parametrize("seed", range(8))
def test_guarded_pagerank_is_its_definition(seed):
    A, v, rng = some_graph(seed)
    options = {"min_links": float(rng.integers(1, 12)), "truncate": int(rng.integers(0, 4))}
    options |= {"early": float(rng.choice([0.05, 0.5, 1.0])), "keep": float(rng.choice([0.0, 0.5, 0.9, 1.0]))}
    ranks = GuardedPageRank(**options, tol=1e-11).fit(A, teleport=v)
    guard = guard_oracle(A, options["min_links"], options["truncate"], options["early"], 0.85, v)
    plain = guard_oracle(A, 1, 0, 1.0, 0.85, v)
    assert_allclose(ranks.guard_, guard, atol=1e-11)
    assert_allclose(ranks.pagerank_, plain, atol=1e-11)
    limit = np.quantile(plain / guard, options["keep"], method="higher")
    assert ranks.limit_ == pytest.approx(limit, rel=1e-8)
    exact = np.minimum(plain, ranks.limit_ * guard)
    error = np.abs(ranks.scores_ - exact / exact.sum()).sum()
    assert error <= ranks.error_bound_ <= 1e-11
    kept = ~ranks.limited_
    assert kept.mean() >= options["keep"] - 1e-12
    shares = ranks.scores_[kept] / ranks.pagerank_[kept]
    assert_allclose(shares, shares[0])


def test_no_link_hands_on_more_than_its_share():
    A = random_adjacency(7, n=30, weighted=True)
    ranks = GuardedPageRank(10, keep=0.0).fit(A)
    for vertex in np.flatnonzero(ranks.limited_):
        for link in ranks.explain(int(vertex)):
            if link.source is not None:
                assert link.flow <= 0.85 * ranks.guard_[link.source] / 10 * (1 + 1e-9)


@pytest.mark.parametrize("leaves", [20, 30, 50, 100])
def test_small_graphs_converge_although_the_guard_limits_most_of_the_score(leaves):
    star = [*range(2, leaves + 2), 0, 1], [*[0] * leaves, 1, 0]  # its middle and another vertex are a cycle
    ranks = GuardedPageRank().fit(star)
    A = ranks.graph_.to_scipy().toarray()
    v = np.full(len(A), 1 / len(A))
    exact = np.minimum(
        guard_oracle(A, 1, 0, 1.0, 0.85, v), ranks.limit_ * guard_oracle(A, 20, 2, 0.05, 0.85, v)
    )
    assert exact.sum() < 0.2
    assert ranks.converged_
    assert np.abs(ranks.scores_ - exact / exact.sum()).sum() <= ranks.error_bound_ <= 1e-9


@pytest.mark.parametrize("truncate", [0, 1, 2])
def test_explained_flows_add_up_to_the_rank_that_decides(truncate):
    A = random_adjacency(12, n=30, weighted=True)
    ranks = GuardedPageRank(10, keep=0.5, truncate=truncate, tol=1e-12).fit(A)
    seen = set()
    for vertex in range(30):
        what, start = ranks.explained(vertex)
        decides = ranks.guard_ if ranks.limited_[vertex] else ranks.pagerank_
        assert sum(link.flow for link in ranks.explain(vertex)) == pytest.approx(decides[vertex], rel=1e-9)
        assert what.startswith("the guard" if ranks.limited_[vertex] else "PageRank")
        seen.add(start)
    late = {0: "teleport", 1: "teleport and first step", 2: "teleport and first 2 steps"}[truncate]
    assert seen == {"teleport", late}


def test_keeping_everything_is_pagerank():
    A = random_adjacency(9, n=30)
    ranks = GuardedPageRank(keep=1.0).fit(A)
    assert_allclose(ranks.scores_, PageRank().fit(A).scores_, atol=1e-9)
    assert not ranks.limited_.any()


def test_farms_fall_and_pagerank_stays():
    web = make_crawl(4000, mean_degree=20, random_state=3).adjacency
    crawl = plant_farms(web, farms=3, boosters=60)
    plain, guarded = PageRank().fit(crawl.adjacency), GuardedPageRank().fit(crawl.adjacency)
    places = [
        np.median([(rank.scores_ > rank.scores_[target]).sum() for target in crawl.target_vertices])
        for rank in (plain, guarded)
    ]
    assert places[1] > 10 * (places[0] + 1)
    assert guarded.limited_[crawl.target_vertices].all()
    clean = [rank.fit(web).scores_ for rank in (PageRank(), GuardedPageRank())]
    ranks = [np.argsort(np.argsort(scores)) for scores in clean]
    assert np.corrcoef(ranks)[0, 1] > 0.97


def test_start_saves_steps():
    A = random_adjacency(11, n=200, density=0.05)
    first = GuardedPageRank().fit(A)
    again = GuardedPageRank().fit(A, start=first)
    assert_allclose(again.scores_, first.scores_, atol=2e-9)
    assert again.n_iter_ < first.n_iter_
