"""Layers in practice: numeric and text ids in different files, dates and numbers as labels."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from apexrank import ConsensusRank, InputError, PageRank
from apexrank.graph import as_layers


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numbers.csv").write_text("source,target\n1,2\n2,3\n3,1\n")
    (tmp_path / "text.csv").write_text("source,target\n1,A7\nA7,2\n2,1\n")
    return tmp_path


def test_files_of_numbers_and_of_text_share_their_vertices(folder):
    layers = as_layers(["numbers.csv", "text.csv"])
    assert layers.vertex_names.tolist() == ["1", "2", "3", "A7"]
    assert [graph.n_edges for graph in layers.graphs] == [3, 3]
    alone = as_layers({"one": "numbers.csv", "two": "numbers.csv"})
    assert alone.vertex_names.tolist() == [1, 2, 3]


def test_frames_of_numbers_and_of_text_are_refused(folder):
    frames = {name: pd.read_csv(f"{name}.csv") for name in ("numbers", "text")}
    with pytest.raises(InputError, match="'text' names a vertex by text '1', layer 'numbers' by a number"):
        as_layers(frames)


def test_names_that_are_no_digits_may_stand_beside_numbers():
    layers = as_layers([([0, 1], [1, 0]), (["a"], ["b"])])
    assert layers.n == 4


def test_labelled_file_with_weights(folder):
    path = folder / "labelled.csv"
    path.write_text("source,target,week,weight\na,b,1,1\nb,a,10,2.5\na,c,2,3\na,b,10,1\n")
    layers = as_layers(path, label="week")
    assert layers.names == ("1", "2", "10")
    assert layers.graphs[2].weights.tolist() == [2.5, 1.0]
    assert layers.vertex_names.tolist() == ["a", "b", "c"]


def test_labelled_file_of_whole_numbers_as_ids(folder):
    path = folder / "labelled.csv"
    path.write_text("source,target,day\n10,9,mon\n9,10,tue\n")
    assert as_layers(path, label="day").vertex_names.tolist() == [9, 10]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_dates_are_written_as_dates(frame):
    days = pd.to_datetime(["2024-01-02", "2024-01-01", "2024-01-02"])
    table = pd.DataFrame({"source": ["a", "b", "a"], "target": ["b", "a", "c"], "day": days})
    assert as_layers(frame(table), label="day").names == ("2024-01-01", "2024-01-02")
    table["day"] += pd.Timedelta("12h")
    assert as_layers(frame(table), label="day").names == ("2024-01-01T12:00:00", "2024-01-02T12:00:00")
    table.loc[1, "day"] = pd.NaT
    with pytest.raises(InputError, match="row 2 has no label"):
        as_layers(frame(table), label="day")


def test_categories_keep_their_order():
    kinds = pd.Categorical(["late", "late", "early"], categories=["late", "unused", "early"])
    table = pd.DataFrame({"source": ["a", "b", "a"], "target": ["b", "a", "c"], "kind": kinds})
    assert as_layers(table, label="kind").names == ("late", "early")


def test_union_is_pagerank_of_all_links(folder):
    rng = np.random.default_rng(0)
    layers = as_layers([rng.random((9, 9)) * (rng.random((9, 9)) < 0.4) for _ in range(3)])
    rank = ConsensusRank("union").fit(layers)
    np.testing.assert_allclose(rank.scores_, PageRank(tol=1e-12).fit(layers.union()).scores_, atol=1e-11)
    assert rank.converged_
    tripled = ConsensusRank("union").fit(layers, layer_prior=[3, 1, 1])
    heavier = as_layers([3 * layers.graphs[0].to_scipy(), *(g.to_scipy() for g in layers.graphs[1:])])
    np.testing.assert_allclose(tripled.scores_, ConsensusRank("union").fit(heavier).scores_, atol=1e-11)


def test_recent_layers_count_for_more():
    rng = np.random.default_rng(1)
    layers = [rng.random((9, 9)) * (rng.random((9, 9)) < 0.4) for _ in range(4)]
    recent = ConsensusRank(half_life=2).fit(layers)
    weighted = sum(2 ** (-age / 2) * layer for age, layer in zip((3, 2, 1, 0), layers, strict=True))
    assert recent.method == "union"
    np.testing.assert_allclose(recent.scores_, PageRank(tol=1e-12).fit(weighted).scores_, atol=1e-11)
    prior = ConsensusRank("mean", half_life=2).fit(layers, layer_prior=[5, 1, 1, 1])
    given = ConsensusRank("mean").fit(layers, layer_prior=[5 * 2**-1.5, 2**-1, 2**-0.5, 1])
    np.testing.assert_allclose(prior.scores_, given.scores_, atol=1e-11)
    # where every vertex has links in the last layer, older ones vanish; links of a layer that vanished are still links
    full = [*layers[:3], rng.random((9, 9)) + 0.1]
    last = ConsensusRank(half_life=1e-3).fit(full)
    np.testing.assert_allclose(last.scores_, PageRank(tol=1e-12).fit(full[-1]).scores_, atol=1e-11)
    old = ConsensusRank(half_life=1e-3).fit([layers[0], np.zeros((9, 9))])
    np.testing.assert_allclose(old.scores_, PageRank(tol=1e-12).fit(layers[0]).scores_, atol=1e-11)


def test_median_of_the_layers():
    rng = np.random.default_rng(2)
    layers = [rng.random((12, 12)) * (rng.random((12, 12)) < 0.4) for _ in range(5)]
    teleport = rng.random(12)
    rank = ConsensusRank("median", damping=0.8).fit(layers, teleport=teleport)
    alone = np.array([PageRank(0.8, tol=1e-13).fit(x, teleport=teleport).scores_ for x in layers])
    median = np.median(alone, axis=0)
    np.testing.assert_allclose(rank.scores_, median / median.sum(), atol=1e-10)
    assert np.abs(rank.scores_ - median / median.sum()).sum() <= rank.error_bound_ + 1e-12
    assert rank.error_bound_ < 1e-8
    # weights are repetition
    prior = ConsensusRank("median").fit(layers, layer_prior=[3, 1, 2, 1, 1])
    repeated = ConsensusRank("median").fit([layers[k] for k in (0, 0, 0, 1, 2, 2, 3, 4)])
    np.testing.assert_allclose(prior.scores_, repeated.scores_, atol=1e-10)
    # two of five layers are arbitrary
    honest = alone[2:]
    for junk in (np.eye(12), np.ones((12, 1)) @ np.eye(12)[:1]):
        attacked = ConsensusRank("median", damping=0.8).fit([junk, junk, *layers[2:]], teleport=teleport)
        unscaled = np.median([*[PageRank(0.8).fit(junk, teleport=teleport).scores_] * 2, *honest], axis=0)
        assert (unscaled <= honest.max(axis=0) + 1e-9).all()
        np.testing.assert_allclose(attacked.scores_, unscaled / unscaled.sum(), atol=1e-8)
    with pytest.raises(InputError, match="`method='median'` cannot keep orders"):
        ConsensusRank("median").fit(layers, keep_at={0: [(1, 2)]})


def test_shares_of_layers_sum_to_one_with_vertices_that_say_nothing():
    layers = [(["a", "b"], ["c", "c"]), (["a"], ["b"])]
    assert ConsensusRank().fit(layers).layer_shares_.sum() == pytest.approx(1)
    assert ConsensusRank().fit([np.zeros((3, 3))] * 2).layer_shares_.tolist() == [0, 0]


def test_mean_is_an_infinite_pull():
    rng = np.random.default_rng(0)
    layers = [rng.random((9, 9)) * (rng.random((9, 9)) < 0.4) for _ in range(3)]
    prior = [1, 2, 3]
    mean = ConsensusRank("mean").fit(layers, layer_prior=prior)
    pulled = ConsensusRank("blend", pull=np.inf).fit(layers, layer_prior=prior)
    np.testing.assert_allclose(mean.scores_, pulled.scores_, atol=1e-12)
    P = sum(
        p * x / np.maximum(x.sum(axis=1, keepdims=True), 1e-300) for p, x in zip(prior, layers, strict=True)
    )
    assert (mean.graph_.to_scipy().toarray() - P / P.sum(axis=1, keepdims=True)).max() < 1e-12


def test_fixed_weights_take_no_pull():
    with pytest.raises(InputError, match="`method='blend'` or `method='fixed-point'`"):
        ConsensusRank("union", pull=1.0).fit([([0], [1]), ([1], [0])])
