"""Ranks of links on a device: PyTorch on the host, and a CUDA device if there is one."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from apexrank.errors import InputError  # noqa: E402
from apexrank.graph import Graph, InDegree, LpqRank, PageRank, as_graph, to_device  # noqa: E402

PLACES = pytest.mark.parametrize("place", ["cpu", "cuda"])
RANKS = [
    PageRank(),
    LpqRank(p=2),
    LpqRank(p=2.4, ratio=1.1, teleport="outside"),
    LpqRank(p=60),  # powers out of range, so that norms are taken
    LpqRank(p=np.inf),
    LpqRank(p=1, ratio=1.3),
]


def crawl(weighted=False, n=200, m=1500):
    rng = np.random.default_rng(0)
    sources, targets = (n * rng.random(m) ** 2).astype(int), (n * rng.random(m) ** 4).astype(int)
    weights = rng.random(m) + 0.1 if weighted else None
    return Graph.from_edges(sources, targets, weights, n=n, repeated="once")


def moved(graph, place, dtype="float64"):
    if place == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    return to_device(graph, place, dtype)


@PLACES
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rank", RANKS, ids=str)
def test_scores_are_those_of_the_host(place, weighted, rank):
    graph = crawl(weighted)
    there = moved(graph, place)
    for teleport in (None, [{0: 1.0}, {5: 1.0, 7: 2.0}, {1: 1.0}]):
        wanted = rank.fit(graph, teleport=teleport).scores_.copy()
        found = rank.fit(there, teleport=teleport)
        assert isinstance(found.scores_, np.ndarray)
        assert found.converged_
        np.testing.assert_allclose(found.scores_, wanted, rtol=1e-8, atol=1e-300)


@PLACES
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "rank", [PageRank(tol=3e-4), LpqRank(p=2, tol=3e-4), LpqRank(p=9, tol=3e-4)], ids=str
)
def test_bounds_hold_in_single_precision(place, weighted, rank):
    graph = crawl(weighted)
    found = rank.fit(moved(graph, place, "float32"))
    assert found.converged_
    scores, bound = found.scores_, found.error_bound_
    exact = rank.set_params(tol=1e-12).fit(graph).scores_
    rank.set_params(tol=3e-4)
    assert scores.dtype == np.float64
    assert np.abs(scores - exact).sum() <= bound


def test_single_precision_agrees_to_five_digits():
    graph = crawl()
    rank = PageRank(tol=2e-5).fit(to_device(graph, "cpu", "float32"))
    np.testing.assert_allclose(
        rank.scores_, PageRank().fit(graph).scores_, rtol=0, atol=1e-5 * rank.scores_.max()
    )


def test_start_explain_and_names():
    there = to_device((["a", "b", "c"], ["b", "c", "b"]), "cpu")
    first = LpqRank(p=2).fit(there)
    again = LpqRank(p=2).fit(there, start=first)
    assert again.n_iter_ < first.n_iter_
    assert again.ranking_.tolist() == ["b", "c", "a"]
    assert first.explain("c")[0].source == "b"


def test_labels_and_signed_graphs():
    signed = as_graph((["a", "b", "c", "a"], ["b", "c", "b", "c"], [1.0, 1.0, 1.0, -0.5]), signed=True)
    there = to_device(signed, "cpu")
    for options in ({}, {"trusted": ["a"]}):
        wanted = LpqRank(p=2).fit(signed, **options).scores_.copy()
        np.testing.assert_allclose(LpqRank(p=2).fit(there, **options).scores_, wanted, rtol=1e-8)


@pytest.mark.parametrize(
    "rank", [LpqRank(p=2, ratio=1), LpqRank(p=2, teleport="weak-links"), InDegree()], ids=str
)
def test_other_ranks_take_the_links_on_the_host(rank):
    graph = crawl()
    wanted = rank.fit(graph).scores_.copy()
    assert rank.fit(to_device(graph, "cpu")).scores_.tolist() == wanted.tolist()


def test_unknown_devices_are_refused():
    for device in ("nowhere", "cuda:99"):
        with pytest.raises(InputError, match=f"cannot be copied to the device '{device}'"):
            to_device(crawl(), device)
    with pytest.raises(InputError, match="dtype"):
        to_device(crawl(), "cpu", "float16")


def test_command_line(tmp_path):
    from typer.testing import CliRunner

    from apexrank.cli.app import app

    edges = tmp_path / "edges.csv"
    edges.write_text("source,target\na,b\nb,c\nc,b\n")
    plain, there, other = (
        CliRunner().invoke(app, ["graph", "rank", str(edges), "--json", "--method", *words])
        for words in (["pagerank"], ["pagerank", "--device", "cpu"], ["guarded", "--device", "cpu"])
    )
    scores = [[row["score"] for row in json.loads(done.stdout)["ranking"]] for done in (plain, there)]
    np.testing.assert_allclose(*scores, rtol=1e-8)
    assert other.exit_code != 0
    assert "--method guarded has no --device: leave it out" in other.stderr
