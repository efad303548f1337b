"""Ranks of sharded graphs, from disk and on Dask, equal those of the same graph in memory."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from apexrank.errors import InputError
from apexrank.graph import (
    AntiTrustRank,
    ConcaveConvexRank,
    DemotedRank,
    Graph,
    GuardedPageRank,
    InDegree,
    LpqRank,
    NonBacktrackingRank,
    PageRank,
    RobustPageRank,
    SpamMassRank,
    TopMeanRank,
    TrustRank,
    as_graph,
    open_shards,
    save_shards,
)

RANKS = {
    "PageRank": PageRank(),
    "GuardedPageRank": GuardedPageRank(),
    "L_1,1.2": LpqRank(1.0),
    "L_2,2.4": LpqRank(),
    "L_2.5,3": LpqRank(2.5),
    "L_inf": LpqRank(np.inf),
    "L_2,2": LpqRank(2.0, 1.0),
    "L_2,2.4 outside": LpqRank(teleport="outside"),
    "L_600,720": LpqRank(600.0),  # powers beyond the range of numbers
    "TopMeanRank": TopMeanRank(3, 2.0),
    "ConcaveConvexRank": ConcaveConvexRank(np.square, lambda x: x**0.4, degree=0.8),
    "InDegree": InDegree(),
    "InDegree of links": InDegree(weighted=False),
}


def random_graph(seed: int = 0, n: int = 60, links: int = 300, weighted: bool = False, names=None) -> Graph:
    rng = np.random.default_rng(seed)
    sources, targets = rng.integers(0, n, links), np.minimum(rng.geometric(0.1, links), n) - 1
    weights = rng.lognormal(size=links) if weighted else None
    return Graph.from_edges(
        sources, targets, weights, n=n, names=names, repeated="once" if not weighted else "sum"
    )


def in_shards(graph: Graph, folder: Path, links: int = 40, **options):
    save_shards(graph, folder / "edges.shards", links=links)
    return open_shards(folder / "edges.shards", **options)


def assert_same(found, expected) -> None:
    np.testing.assert_array_equal(found.scores_, expected.scores_)
    for name in ("n_iter_", "error_bound_", "converged_"):
        if hasattr(expected, name):
            np.testing.assert_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", RANKS)
def test_ranks_of_shards_have_the_bits_of_memory(name, weighted, tmp_path):
    graph = random_graph(weighted=weighted)
    sharded = in_shards(graph, tmp_path)
    assert len(sharded.shards) > 5
    rank = RANKS[name]
    assert_same(clone(rank).fit(sharded), clone(rank).fit(graph))


@pytest.mark.parametrize("weighted", [False, True])
def test_labels_and_teleports(weighted, tmp_path):
    names = [f"page {i}" for i in range(60)]
    graph = random_graph(1, weighted=weighted, names=names)
    sharded = in_shards(graph, tmp_path)
    some = {"page 3": 2.0, "page 50": 1.0}
    for rank, given_ in (
        (PageRank, {"teleport": some}),
        (PageRank, {"teleport": [some, ["page 1"], np.linspace(0, 1, 60)]}),
        (LpqRank, {"teleport": some}),
        (LpqRank, {"teleport": [some, ["page 1"]]}),
        (LpqRank, {"trusted": ["page 7"]}),
        (TrustRank, {"trusted": some}),
        (SpamMassRank, {"trusted": some}),
    ):
        assert_same(rank().fit(sharded, **given_), rank().fit(graph, **given_))
    for options in ({"distrust": "along"}, {"distrust": "along", "trust": "same"}):
        given_ = {"trusted": ["page 7"], "distrusted": ["page 9"]}
        assert_same(LpqRank(**options).fit(sharded, **given_), LpqRank(**options).fit(graph, **given_))
    along = AntiTrustRank(direction="along")
    assert_same(
        along.fit(sharded, distrusted=some), AntiTrustRank(direction="along").fit(graph, distrusted=some)
    )
    both = {"trusted": ["page 7"], "distrusted": ["page 9"]}
    demoted = DemotedRank(direction="along")
    assert_same(demoted.fit(sharded, **both), DemotedRank(direction="along").fit(graph, **both))


@settings(max_examples=30, deadline=None)
@given(
    edges=st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from([1.0, 0.25, 3.0])), max_size=25
    ),
    links=st.integers(1, 12),
    seed=st.integers(0, 7),
)
def test_random_graphs(edges, links, seed, tmp_path_factory):
    sources, targets, weights = zip(*edges, strict=True) if edges else ([], [], None)
    graph = Graph.from_edges(np.array(sources, int), np.array(targets, int), weights, n=8)
    sharded = in_shards(graph, tmp_path_factory.mktemp("graph"), links)
    for rank, given_ in ((PageRank, {}), (LpqRank, {}), (TrustRank, {"trusted": [seed]}), (InDegree, {})):
        assert_same(rank().fit(sharded, **given_), rank().fit(graph, **given_))


def test_long_rows_and_all_processors(tmp_path):
    """Rows longer than a run of the summation, and shards with links for several threads."""
    rng = np.random.default_rng(0)
    n, links = 20_000, 1_000_000
    sources, targets = rng.integers(0, n, links), rng.zipf(1.3, links) % n
    graph = Graph.from_edges(sources, targets, rng.uniform(1, 2, links), n=n)
    sharded = in_shards(graph, tmp_path, 450_000)
    assert len(sharded.shards) == 2
    assert sharded.in_links().most_links > 10_000
    for rank in (PageRank, lambda: LpqRank(2.5), lambda: TopMeanRank(5)):
        assert_same(rank().fit(sharded), rank().fit(graph))


def test_the_folder_itself_can_be_ranked_and_a_vertex_explained(tmp_path):
    graph = random_graph(2, weighted=True, names=[f"page {i}" for i in range(60)])
    in_shards(graph, tmp_path)
    for rank in (PageRank, LpqRank, GuardedPageRank):
        found, expected = rank().fit(tmp_path / "edges.shards"), rank().fit(graph)
        assert found.top(5) == expected.top(5)
        assert found.names_.tolist() == expected.names_.tolist()
        for vertex in (expected.ranking_[0], expected.ranking_[-1]):
            assert found.explain(vertex) == expected.explain(vertex)
    assert found.fit(str(tmp_path / "edges.shards")).graph_.n == 60


def test_a_fitted_rank_can_be_pickled(tmp_path):
    ranks = PageRank().fit(in_shards(random_graph(links=30_000, n=400), tmp_path))
    stored = pickle.dumps(ranks)
    assert len(stored) < 20_000  # two vectors, no links
    assert pickle.loads(stored).explain(3) == ranks.explain(3)


@pytest.mark.parametrize("engine", ["blocks", "dask"])
def test_a_folder_that_is_written_again_is_another_graph(engine, tmp_path):
    before, after = random_graph(7), random_graph(8)
    sharded = in_shards(before, tmp_path, engine=engine)
    kept = PageRank().fit(sharded)
    again = in_shards(after, tmp_path, engine=engine)
    assert_same(PageRank().fit(again), PageRank().fit(after))
    if engine == "blocks":  # whose maps are those of the files that are gone
        assert_same(PageRank().fit(sharded), kept)


def test_warm_starts(tmp_path):
    graph = random_graph(3)
    before = PageRank().fit(graph)
    ranks = PageRank(warm_start=True).fit(in_shards(graph, tmp_path))
    assert ranks.fit(ranks.graph_).n_iter_ < before.n_iter_
    assert PageRank().fit(ranks.graph_, start=before).n_iter_ == ranks.n_iter_


@pytest.mark.parametrize(
    ("rank", "arguments"),
    [
        (NonBacktrackingRank(), {}),
        (RobustPageRank(), {}),
        (AntiTrustRank(), {"distrusted": [1]}),
        (LpqRank(), {"distrusted": [1]}),
        (LpqRank(teleport="weak-links"), {"teleport": [1]}),
    ],
)
def test_ranks_that_need_memory_say_which_do_not(rank, arguments, tmp_path):
    with pytest.raises(InputError, match=r"graph in shards.* ranked by PageRank, .*InDegree") as error:
        rank.fit(in_shards(random_graph(), tmp_path), **arguments)
    assert "\n" not in str(error.value)


def test_weak_links_of_an_even_teleport(tmp_path):
    graph = random_graph(4)
    rank = LpqRank(teleport="weak-links")
    expected = rank.fit(graph).scores_
    np.testing.assert_array_equal(rank.fit(in_shards(graph, tmp_path)).scores_, expected)


def damaged(folder: Path, part: str, change) -> None:
    path = folder / "edges.shards" / f"00002.{part}.npy"
    values = np.load(path)
    change(values)
    np.save(path, values)


@pytest.mark.parametrize("engine", ["blocks", "dask"])
@pytest.mark.parametrize(
    ("part", "position", "value", "message"),
    [
        ("indices", 5, 60, r"00002.indices.npy is damaged: it has links from no vertex"),
        ("indices", 0, -1, r"00002.indices.npy is damaged: it has links from no vertex"),
        ("indptr", 1, 1 << 40, r"00002.indptr.npy is damaged: its rows do not add up"),
        ("weights", 3, np.nan, r"00002.weights.npy is damaged: some weights are not positive"),
        ("weights", 3, -1.0, r"00002.weights.npy is damaged: some weights are not positive"),
    ],
)
def test_a_damaged_shard_is_named_before_it_is_used(part, position, value, message, engine, tmp_path):
    in_shards(random_graph(weighted=True), tmp_path)
    damaged(tmp_path, part, lambda values: values.__setitem__(position, value))
    with pytest.raises(InputError, match=message) as error:
        PageRank().fit(open_shards(tmp_path / "edges.shards", engine=engine))
    assert "\n" not in str(error.value)


def test_rules_for_edges_belong_to_packing(tmp_path):
    sharded = in_shards(random_graph(), tmp_path)
    for rules in ({"directed": False}, {"weight": False}, {"signed": True}, {"format": "text"}):
        with pytest.raises(InputError, match="when packing it"):
            as_graph(sharded.folder, **rules)
    with pytest.raises(InputError, match="unknown `engine`"):
        open_shards(sharded.folder, engine="spark")


# ---------------------------------------------------------------- Dask


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes with one thread each."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    from distributed import Client

    with Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


@pytest.mark.slow
def test_workers_of_dask_give_the_bits_of_memory(client, tmp_path):
    graph = random_graph(5, weighted=True)
    sharded = in_shards(graph, tmp_path, engine="dask")
    for rank, given_ in (
        (PageRank(), {}),
        (PageRank(), {"teleport": [{3: 1.0}, {5: 1.0, 6: 2.0}]}),
        (GuardedPageRank(), {}),
        (LpqRank(2.5), {}),
        (TopMeanRank(3), {}),
        (ConcaveConvexRank(np.square, lambda x: x**0.4, degree=0.8), {}),
        (TrustRank(), {"trusted": [4]}),
        (InDegree(), {}),
    ):
        assert_same(clone(rank).fit(sharded, **given_), clone(rank).fit(graph, **given_))


@pytest.mark.slow
def test_no_worker_holds_the_shards_of_another(client, tmp_path):
    sharded = in_shards(random_graph(), tmp_path, engine="dask")
    PageRank().fit(sharded)
    parts = sharded.in_links()._blocks.parts
    homes = client.who_has(parts)
    assert len(homes) == len(sharded.shards)
    assert all(len(workers) == 1 for workers in homes.values())
    assert len({worker for workers in homes.values() for worker in workers}) == 2


@pytest.mark.slow
def test_a_killed_worker_costs_time_only(client, tmp_path):
    graph = random_graph(6, weighted=True)
    sharded = in_shards(graph, tmp_path, engine="dask")
    victims = [*client.run(os.getpid).values()][:1]

    def kill(step, bound):
        if step == 4:
            os.kill(victims.pop(), signal.SIGKILL)

    assert_same(PageRank(callback=kill).fit(sharded), PageRank().fit(graph))
    assert not victims
    client.wait_for_workers(2)
