"""Ballots in blocks of voters give the same results as in memory, for every rule, block size and file format."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apexrank import aggregate
from apexrank.aggregation import LovaszBregmanKMeans, elbow, kmeans, read_ballot_blocks, silhouette
from apexrank.aggregation.ballot_files import BallotBlocks, BallotLayout
from apexrank.errors import InputError
from apexrank.io.tables import Table
from apexrank.problem.blocks import ArrayBlocks, Block, Blocks
from tests.aggregation.test_properties import CLAIMS, elections, missing_rules

every_rule = pytest.mark.parametrize("method", CLAIMS)
sizes = st.integers(1, 7)


def same(here, there):
    """Compare two results item by item."""
    assert there.items == here.items
    np.testing.assert_array_equal(there.ranks, here.ranks)
    np.testing.assert_allclose(there.scores, here.scores, rtol=1e-12)
    assert there.confidence == pytest.approx(here.confidence, rel=1e-12)
    np.testing.assert_allclose(there.pairwise, here.pairwise, rtol=1e-12)
    np.testing.assert_allclose(there.support, here.support, rtol=1e-12)
    np.testing.assert_array_equal(there.agreement, here.agreement)
    assert there.condorcet_winner == here.condorcet_winner
    assert (there.cost, there.optimal) == (here.cost, here.optimal)
    assert repr(there) == repr(here)


@every_rule
@settings(max_examples=15)
@given(election=elections(gaps=True), missing=missing_rules, rows=sizes, silent=st.booleans())
def test_blocks_give_what_memory_gives(method, election, missing, rows, silent):
    table, weights = election
    if silent:
        weights[1:] = 0  # whole blocks of voters with weight 0
    here = aggregate(table, weights, method=method, missing=missing)
    same(
        here, aggregate(ArrayBlocks(table, sample_weight=weights, rows=rows), method=method, missing=missing)
    )


@pytest.mark.parametrize("normalize", ["minmax", "sum", "zscore", "rank", "borda"])
@settings(max_examples=10)
@given(election=elections(gaps=True), missing=missing_rules, rows=sizes)
def test_every_scale_of_scores(normalize, election, missing, rows):
    table, weights = election
    options = {"method": "combmnz", "normalize": normalize, "missing": missing, "min_support": 0.3}
    here = aggregate(table, weights / 3, **options)
    there = aggregate(ArrayBlocks(table, sample_weight=weights / 3, rows=rows), **options)
    np.testing.assert_allclose(there.scores, here.scores, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(there.ranks, here.ranks)


@every_rule
def test_ranks_orders_and_single_precision(method):
    rng = np.random.default_rng(0)
    orders = np.array([rng.permutation(5) for _ in range(40)])
    for kind, data in (("orders", orders), ("ranks", orders + 1), ("scores", orders.astype(np.float32))):
        here = aggregate(data, kind=kind, method=method)
        same(here, aggregate(ArrayBlocks(data, rows=7), kind=kind, method=method))


@pytest.mark.parametrize("method", sorted({*CLAIMS} - {"median"}))
@pytest.mark.parametrize("unit", [1.0, 0.5])
def test_a_bootstrap_is_the_rule_on_poisson_weights(method, unit):
    rng = np.random.default_rng(3)
    table, weights = rng.integers(0, 5, (60, 4)).astype(float), unit * rng.integers(0, 4, 60)
    table[rng.random(table.shape) < 0.2] = np.nan
    table[:, 0] = 1.0
    blocks = [ArrayBlocks(table, sample_weight=weights, rows=rows) for rows in (1, 17, 60)]
    drawn = [aggregate(each, method=method).bootstrap(30, random_state=5).ranks for each in blocks]
    np.testing.assert_array_equal(drawn[0], drawn[2])
    np.testing.assert_array_equal(drawn[1], drawn[2])
    # the oracle draws the same numbers and merges the ballots again; fractional weights are not counts of voters
    draws, counted = np.random.default_rng(5), unit == 1
    times = draws.poisson(weights[:, None] if counted else 1.0, (60, 30)) * (
        1 if counted else weights[:, None]
    )
    expected = [aggregate(table, w, method=method, max_exact=0).ranks for w in times.T]
    np.testing.assert_array_equal(drawn[2], expected)


def test_a_bootstrap_of_blocks_is_near_that_in_memory():
    rng = np.random.default_rng(0)
    table = rng.normal(np.array([0.3, 0.25, 0.2, 0.0, -1.0]), size=(400, 5))
    there = aggregate(ArrayBlocks(table, rows=33)).bootstrap(2000)
    here = aggregate(table).bootstrap(2000)
    np.testing.assert_allclose(there.first, here.first, atol=0.05)


def test_what_blocks_refuse():
    table = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    blocks = ArrayBlocks(table, rows=1)
    with pytest.raises(
        InputError, match=r"a bootstrap of medians needs all ballots in memory.*use one of lovasz"
    ):
        aggregate(blocks, method="median").bootstrap(10)
    with pytest.raises(InputError, match="draw at most 3,728,270, or use one of lovasz-bregman, borda"):
        aggregate(blocks, method="kemeny").bootstrap(10**7)
    with pytest.raises(
        InputError, match=r"resamples of 3 items do not fit into memory: draw at most 11,184,810$"
    ):
        aggregate(blocks, method="borda").bootstrap(2 * 10**7)
    for ask in (lambda r: r.voter_ranks(), lambda r: r.plot()):
        with pytest.raises(InputError, match="blocks of voters keep only sums"):
            ask(aggregate(blocks))
    with pytest.raises(InputError, match="give them as `sample_weight` of the blocks"):
        aggregate(blocks, [1, 2])
    with pytest.raises(InputError, match="voter 1 gives 'b' an infinite score"):
        aggregate(ArrayBlocks(np.array([[1.0, 2.0], [1.0, np.inf]]), rows=1), items="ab")
    with pytest.raises(InputError, match="voter 1 gives no score at all"):
        aggregate(ArrayBlocks(np.array([[1.0, 2.0], [np.nan, np.nan]]), rows=1))
    with pytest.raises(InputError, match="weights are all zero"):
        aggregate(ArrayBlocks(table, sample_weight=[0, 0], rows=1))
    with pytest.raises(InputError, match="weights must be finite numbers of at least 0, got -1"):
        aggregate(ArrayBlocks(table, sample_weight=[1, -1], rows=1))


class Uneven(Blocks):
    def __init__(self, *blocks):
        self.blocks = blocks

    def __iter__(self):
        return iter(self.blocks)


def test_blocks_of_other_items_or_elsewhere_are_refused_and_empty_ones_skipped():
    table = np.array([[1.0, 2.0], [3.0, 1.0]])
    with pytest.raises(InputError, match="the block of voter 2 has other items"):
        aggregate(Uneven(Block(table), Block(np.ones((1, 3)))))
    with pytest.raises(InputError, match="there is no ballot in any block"):
        aggregate(Uneven())
    with pytest.raises(InputError, match="ballots are read in one process"):
        aggregate(Blocks())
    parts = Uneven(Block(table[:1]), Block(np.empty((0, 2))), Block(table[1:], weight=np.array([2.0])))
    same(aggregate(table, [1, 2]), aggregate(parts))
    frames = Uneven(Block(pl.DataFrame({"a": [1], "b": [2]})), Block(pl.DataFrame({"a": [3], "b": [1]})))
    same(aggregate(table, items="ab"), aggregate(frames))


def test_rows_without_labels_are_no_training_rows():
    from apexrank.rankers import PNormPush
    from apexrank.rankers.base import fit_blocks

    with pytest.raises(InputError, match="a block has no y: give one label per row"):
        fit_blocks(PNormPush(), ArrayBlocks(np.ones((3, 2))))


def test_a_memory_map_is_read_once_by_every_rule(tmp_path, monkeypatch):
    np.save(tmp_path / "votes.npy", np.random.default_rng(0).integers(0, 9, (50, 4)).astype(np.uint8))
    blocks = ArrayBlocks(tmp_path / "votes.npy", rows=10)
    passes = []
    plain = ArrayBlocks.__iter__
    monkeypatch.setattr(ArrayBlocks, "__iter__", lambda self: passes.append(1) or plain(self))
    for method in CLAIMS:
        passes.clear()
        aggregate(blocks, method=method, min_support=1)
        assert len(passes) == 2  # the first pass reads the names of the items and ends after one block


# k-means


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), rows=sizes, euclidean=st.sampled_from([0.0, 1.0]), k=st.integers(1, 5))
@pytest.mark.filterwarnings("ignore:only . of . clusters have rows")
def test_k_means_of_blocks_is_that_in_memory(seed, rows, euclidean, k):
    rng = np.random.default_rng(seed)
    X, weights = rng.random((20, 4)), rng.integers(0, 3, 20)
    weights[:5] = 1
    blocks = ArrayBlocks(X, sample_weight=weights, rows=rows)
    model = LovaszBregmanKMeans(k, init=X[:k], euclidean=euclidean, tol=0.0)
    here = model.fit(X, sample_weight=weights)
    centres, labels, history = here.cluster_centers_, here.labels_, here.history_
    there = model.fit(blocks)
    np.testing.assert_array_equal(there.labels_, labels)
    np.testing.assert_allclose(there.cluster_centers_, centres, rtol=1e-12)
    np.testing.assert_allclose(there.history_, history, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(there.predict(blocks), labels)
    if k > 1:
        assert silhouette(there, blocks) == pytest.approx(silhouette(there, X, weights), rel=1e-12)


def test_few_rows_are_their_own_sample():
    rng = np.random.default_rng(1)
    X, weights = rng.random((80, 5)), rng.integers(0, 3, 80)
    blocks = ArrayBlocks(X, sample_weight=weights, rows=9)
    for options in ({}, {"init": "random"}, {"init": lambda X, k, random_state: X[:k]}):
        model = LovaszBregmanKMeans(4, random_state=0, **options)
        here = model.fit(X, sample_weight=weights).inertia_
        assert model.fit(blocks).inertia_ == pytest.approx(here, rel=1e-12)
    assert elbow(blocks, [2], random_state=0)[2] == pytest.approx(
        elbow(X, [2], sample_weight=weights, random_state=0)[2]
    )


def planted(n, rng):
    """Voters with two opposite orders, one of them cast 50 times as often."""
    camps = rng.integers(0, 2, n)
    order = np.array([[4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0]])
    return order[camps] + 0.1 * rng.random((n, 4)), camps


def test_a_sample_starts_the_steps_over_all_rows(monkeypatch):
    monkeypatch.setattr(kmeans, "SAMPLE", 40)
    monkeypatch.setattr(kmeans, "PER_CLUSTER", 5)
    X, camps = planted(1000, np.random.default_rng(0))
    model = LovaszBregmanKMeans(2, random_state=0).fit(ArrayBlocks(X, rows=77))
    assert len(set(zip(camps.tolist(), model.labels_.tolist(), strict=True))) == 2
    weights = np.where(np.arange(1000) < 10, 1e6, 1e-6)
    rows = model._all_rows(ArrayBlocks(X, sample_weight=weights, rows=77), None)
    sample = rows.sample(10, np.random.RandomState(0))
    assert len(sample.X) == 10  # those of weight, as often as they weigh
    np.testing.assert_array_equal(sample.X, X[:10])
    assert sample.weight.tolist() == [1.0] * 10


def test_an_empty_cluster_gets_a_row_of_whatever_block():
    X = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.1], [1.0, 2.0, 3.0], [2.0, 3.0, 1.0]])
    init = np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
    model = LovaszBregmanKMeans(3, init=init)
    here = model.fit(X).labels_
    np.testing.assert_array_equal(model.fit(ArrayBlocks(X, rows=1)).labels_, here)
    assert len(set(here.tolist())) == 3


def test_what_k_means_of_blocks_refuses():
    X = np.ones((4, 2))
    with pytest.raises(InputError, match="give `sample_weight` to the blocks"):
        LovaszBregmanKMeans(2).fit(ArrayBlocks(X), sample_weight=np.ones(4))
    with pytest.raises(InputError, match="there is no row in any block"):
        LovaszBregmanKMeans(2).fit(Uneven(Block(np.empty((0, 2)))))
    with pytest.raises(InputError, match="all rows have weight 0"):
        LovaszBregmanKMeans(2).fit(ArrayBlocks(X, sample_weight=np.zeros(4), rows=2))
    with pytest.raises(InputError, match="n_samples=4 should be >= `n_clusters=5`"):
        LovaszBregmanKMeans(5).fit(ArrayBlocks(X, rows=2))
    with pytest.raises(ValueError, match="NaN"):
        LovaszBregmanKMeans(2).fit(ArrayBlocks(np.array([[1.0, 2.0], [np.nan, 1.0]]), rows=1))


# Files


@pytest.fixture
def votes():
    rng = np.random.default_rng(7)
    scores = {name: rng.integers(1, 6, 30) for name in ("tea", "rum", "ale", "gin")}
    frame = pl.DataFrame(scores | {"count": rng.integers(0, 3, 30)})
    gaps = pl.Series(rng.random(30) < 0.3)
    return frame.with_columns(pl.when(gaps).then(None).otherwise(pl.col("gin")).alias("gin"))


def long_of(frame):
    numbered = frame.with_row_index("user").with_columns(pl.format("v{}", "user").alias("user"))
    long = numbered.unpivot(index=["user", "count"], variable_name="film", value_name="stars").drop_nulls()
    return long.sort(pl.col("user").str.tail(-1).cast(pl.Int64), maintain_order=True)


def write_folder(path, frame, rows):
    path.mkdir()
    for number, part in enumerate(frame.iter_slices(rows)):
        part.write_parquet(path / f"{number:03d}.parquet")
    return path


def in_memory(frame, layout):
    found = layout.read(Table(frame))
    kind = found.kind
    return lambda **more: aggregate(found.values, found.weights, kind=kind, items=found.items, **more)


@pytest.mark.parametrize("rows", [1, 4, 100])
@pytest.mark.parametrize("form", ["folder", "parquet", "csv", "csv.gz"])
def test_one_row_per_voter(votes, tmp_path, form, rows):
    from apexrank.io import write_table

    path = tmp_path / f"votes.{form}"
    if form == "folder":
        write_folder(path, votes, 8)
    else:
        write_table(votes, path)
    blocks = read_ballot_blocks(path, weights="count", rows=rows)
    assert blocks.names == ["tea", "rum", "ale", "gin"]
    merge = in_memory(votes, BallotLayout(weights="count"))
    for method in ("borda", "kemeny"):
        same(merge(method=method), aggregate(blocks, method=method))


@pytest.mark.parametrize("rows", [1, 3, 10, 1000])
@pytest.mark.parametrize("form", ["folder", "csv"])
def test_voters_of_a_long_table_straddle_blocks_and_files(votes, tmp_path, monkeypatch, form, rows):
    monkeypatch.setattr("apexrank.io.stream.LEAST_ROWS", 1)
    monkeypatch.setattr("apexrank.aggregation.ballot_files._BLOCK_CELLS", 20)
    long = long_of(votes)
    path = tmp_path / f"long.{form}"
    if form == "folder":
        write_folder(path, long, 5)
    else:
        long.write_csv(path)
    columns = ("user", "film", "stars")
    blocks = read_ballot_blocks(path, long=columns, weights="count", rows=rows)
    merge = in_memory(long, BallotLayout(long=columns, weights="count"))
    assert max(len(block.X) for block in blocks) <= 5
    same(merge(method="borda", missing="last"), aggregate(blocks, method="borda", missing="last"))


@pytest.mark.parametrize("rows", [1, 3])
def test_orders_of_a_folder(tmp_path, monkeypatch, rows):
    monkeypatch.setattr("apexrank.aggregation.ballot_files._BLOCK_CELLS", 4)
    lists = [["tea", "rum", None], ["gin", None, None], ["rum", "ale", "tea"], ["ale", "gin", None]]
    frame = pl.DataFrame(lists, schema=["first", "second", "third"], orient="row")
    layout = BallotLayout("orders")
    blocks = BallotBlocks(write_folder(tmp_path / "orders", frame, rows), layout)
    found = layout.read(Table(frame))
    assert blocks.names == found.items
    np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), found.values)
    assert [part.voters["row"].item() for part in blocks.parts()] == [1, 2, 3, 4]


def test_guesses_are_told(votes, tmp_path):
    votes.write_csv(tmp_path / "votes.csv")
    with pytest.warns(
        UserWarning, match=r"column 'count' is read as an item \(`weights='count'`, or `drop='count'`\)"
    ):
        assert read_ballot_blocks(tmp_path / "votes.csv").names[-1] == "count"


def test_what_is_wrong_with_files(votes, tmp_path):
    long, columns = long_of(votes), ("user", "film", "stars")
    apart = pl.concat([long, long[:1].with_columns(film=pl.lit("port"))])
    apart.write_csv(tmp_path / "apart.csv")
    last = len(apart) + 1
    with pytest.raises(
        InputError, match=f"apart.csv line {last}: voter 'v0' has rows further up.*sort the rows"
    ):
        read_ballot_blocks(tmp_path / "apart.csv", long=columns, rows=10)
    folder = write_folder(tmp_path / "twice", pl.concat([long[:1], long[:1]]), 1)
    with pytest.raises(InputError, match=r"000.parquet and on row 2: voter 'v0' has a row for 'tea' already"):
        aggregate(read_ballot_blocks(folder, long=columns))
    folder = write_folder(tmp_path / "lacking", votes, 10)
    votes[:3].drop("ale").write_parquet(folder / "001.parquet")
    with pytest.raises(InputError, match=r"001.parquet has no column 'ale'"):
        read_ballot_blocks(folder)
    folder = write_folder(tmp_path / "types", long, 2)
    long[2:4].with_columns(pl.Series("user", [[1], [2]])).write_parquet(folder / "001.parquet")
    with pytest.raises(InputError, match=r"001.parquet"):
        read_ballot_blocks(folder, long=columns)
    with pytest.raises(InputError, match="one row per voter"):
        BallotBlocks(folder, BallotLayout(items_in="rows"))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.parquet").write_bytes(b"PAR1 no more PAR1")
    with pytest.raises(InputError, match=r"a.parquet"):
        read_ballot_blocks(tmp_path / "broken")
    votes.with_columns(pl.Series("tea", ["x"] * 30)).write_csv(tmp_path / "words.csv")
    with pytest.raises(InputError, match=r"words.csv column 'tea' holds text such as 'x'"):
        aggregate(read_ballot_blocks(tmp_path / "words.csv", drop=["count"], id="rum", rows=5))
