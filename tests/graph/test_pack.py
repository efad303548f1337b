"""Edge files packed into shards: the same graph as from as_graph, for any memory limit."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apexrank.errors import InputError
from apexrank.graph import Graph, as_graph, pack_graph, save_shards
from apexrank.graph.pack import _TextIds
from tests.graph.test_shards import assert_same, joined

TINY = 400  # bytes: chunks of one or two lines, buckets of a few links
WHOLE = st.one_of(st.integers(0, 9), st.sampled_from([-5, 40, 10**6, 2**31, 2**40, 10**17]))
DENSE = st.integers(0, 6)
TEXT = st.one_of(
    st.sampled_from(["a", "b", "c", "zebra", "é", "Z", "a b"]), st.from_regex(r"[a-d]{1,3}", fullmatch=True)
)
WEIGHTS = st.sampled_from(["1", "0", "0.1", "2.5", "1e3", "0.30000000000000004"])


@st.composite
def edge_lists(draw):
    ids = draw(st.sampled_from([WHOLE, DENSE, TEXT]))
    return draw(st.lists(st.tuples(ids, ids, WEIGHTS), min_size=1, max_size=40)), ids is TEXT


RULES = st.fixed_dictionaries(
    {
        "directed": st.sampled_from([None, False]),
        "repeated": st.sampled_from(["sum", "once"]),
        "self_loops": st.sampled_from(["keep", "drop"]),
    }
)


def write_text(path: Path, edges, separator: str, weighted: bool) -> None:
    header = separator.join(["source", "target", "weight"][: 2 + weighted])
    lines = (separator.join(map(str, edge[: 2 + weighted])) for edge in edges)
    content = "\n".join([header, *lines, ""]).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_parquet(path: Path, edges, separator: str, weighted: bool) -> None:
    columns = {"source": [a for a, _, _ in edges], "target": [b for _, b, _ in edges]}
    frame = pl.DataFrame(columns | ({"weight": [float(w) for *_, w in edges]} if weighted else {}))
    frame.write_parquet(path)


def write_json(path: Path, edges, separator: str, weighted: bool) -> None:
    write_parquet(path.with_suffix(".parquet"), edges, separator, weighted)
    pl.read_parquet(path.with_suffix(".parquet")).write_ndjson(path)
    path.with_suffix(".parquet").unlink()


WRITERS = {"csv": write_text, "csv.gz": write_text, "parquet": write_parquet, "jsonl": write_json}


@settings(max_examples=60, deadline=None)
@given(
    given_edges=edge_lists(),
    weighted=st.booleans(),
    rules=RULES,
    parts=st.integers(1, 3),
    kind=st.sampled_from(sorted(WRITERS)),
    separator=st.sampled_from([",", "\t"]),
    memory=st.sampled_from([TINY, 3000, 1e9]),
    links=st.sampled_from([1, 3, 1000]),
)
def test_the_packed_graph_is_the_one_read_into_memory(
    tmp_path_factory, given_edges, weighted, rules, parts, kind, separator, memory, links
):
    folder = tmp_path_factory.mktemp("pack")
    (folder / "edges").mkdir()
    edges, _ = given_edges
    for i in range(parts):
        if some := edges[i::parts]:
            WRITERS[kind](folder / "edges" / f"{i}.{kind}", some, separator, weighted)
    expected = as_graph(folder / "edges", **rules)
    packed = pack_graph(folder / "edges", folder / "a.shards", memory=memory, links=links, **rules)
    assert_same(joined(folder / "a.shards"), expected)
    assert packed.n_edges == expected.n_edges
    assert sorted(path.name for path in folder.iterdir()) == ["a.shards", "edges"]


@pytest.mark.parametrize("memory", [2_000, 20_000, 1e9])
@pytest.mark.parametrize("ids", ["dense", "spread", "text"])
def test_many_edges_with_repeats_in_lists_with_white_space(tmp_path, memory, ids):
    rng = np.random.default_rng(0)
    ends = rng.zipf(1.5, (600, 2)) % 200
    written = {"dense": ends, "spread": ends * 10**12 - 7, "text": np.char.add("page-", ends.astype(str))}[
        ids
    ]
    weights = rng.random(600).round(3)
    edges = enumerate(zip(*written.T, weights, strict=True))
    lines = [f"{a}  {b}\t{w}" if i % 7 else f"{a} {b} {w}\n" for i, (a, b, w) in edges]
    path = tmp_path / "edges.txt"
    path.write_text("# a comment\n" + "\n".join(lines))
    pack_graph(path, tmp_path / "a", weight=2, memory=memory, links=50)
    assert_same(joined(tmp_path / "a"), as_graph(path, weight=2))


def test_several_paths_are_one_graph(tmp_path):
    for name, content in (("a.txt", "1 2\n2 3\n"), ("b.txt", "3 1\n1 2\n"), ("c.txt", "")):
        (tmp_path / name).write_text(content)
    pack_graph([tmp_path / "a.txt", tmp_path / "[bc].txt"], tmp_path / "out")
    assert_same(joined(tmp_path / "out"), as_graph((np.array([1, 2, 3, 1]), np.array([2, 3, 1, 2]))))


def test_a_graph_of_another_format_is_packed_from_memory(tmp_path):
    graph = Graph.from_edges([0, 1], [1, 2])
    path = tmp_path / "edges.net"
    path.write_text("*Vertices 3\n*Arcs\n1 2\n2 3\n")
    pack_graph(path, tmp_path / "out")
    assert joined(tmp_path / "out").indices.tolist() == graph.indices.tolist()


def test_ids_that_are_mostly_text_are_text_although_the_first_is_a_number(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("1 2\n" + "".join(f"a{i} b{i}\n" for i in range(30)))
    pack_graph(path, tmp_path / "out", memory=TINY)
    assert_same(joined(tmp_path / "out"), as_graph(path))


def test_names_with_equal_hashes_stay_apart(tmp_path, monkeypatch):
    path = tmp_path / "edges.csv"
    path.write_text("source,target\n" + "".join(f"a{i},b{i % 5}\n" for i in range(20)))
    seeds = []

    def hashed(self, names):
        seeds.append(self._seed)
        return names.hash(self._seed).to_numpy().view(np.int64) % (5 if self._seed < 2 else 2**62)

    monkeypatch.setattr(_TextIds, "_hash", hashed)
    pack_graph(path, tmp_path / "out", memory=TINY)
    assert set(seeds) == {0, 1, 2}
    assert_same(joined(tmp_path / "out"), as_graph(path))


def test_a_field_in_quotes_may_have_line_feeds(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target\np,q\nr,s\n" + "".join(f'"a\n{i},x",b{i}\n' for i in range(40)))
    for memory in range(400, 1200, 100):
        pack_graph(path, tmp_path / "out", memory=memory)
        assert_same(joined(tmp_path / "out"), as_graph(path))


def test_keys_of_json_objects_may_come_in_any_order(tmp_path):
    path = tmp_path / "edges.jsonl"
    path.write_text('{"a": 1, "b": 2}\n' * 3 + '{"b": 3, "a": 4, "more": "x"}\n' * 30)
    pack_graph(path, tmp_path / "out", memory=TINY)
    assert_same(joined(tmp_path / "out"), as_graph(path))


WEIGHTED, JSON = "source,target,weight\n" + "1,2,3\n" * 50, '{"source": 1, "target": 2}\n' * 90
BROKEN = {
    "short line": ("a.txt", "1 2\n" * 50 + "3\n", "a.txt line 51: the row has 1 field"),
    "cut off": ("a.csv", WEIGHTED + "3,4", "a.csv line 52: the row has 2 fields"),
    "text for a number": ("a.txt", "1 2\n" * 50 + "3 x\n", "a.txt line 51: 'x' is not a whole number"),
    "padded number": ("a.txt", "1 2\n" * 50 + "3 007\n", "a.txt line 51: '007' is not a whole number"),
    "missing id": ("a.csv", "source,target\n" + "a,b\n" * 50 + "a,\n", "a.csv line 52: the target of"),
    "negative weight": ("a.csv", WEIGHTED + "1,7,-1\n", "line 52: the link from 1 to 7"),
    "no weight": ("a.csv", WEIGHTED.replace("1", "a") + "a,c,nan\n", "line 52: the link from 'a' to 'c'"),
    "text for a weight": ("a.csv", WEIGHTED + "1,2,x\n", "line 52: the weight 'x'"),
    "overflow": ("a.csv", WEIGHTED.replace("3", "1e308"), "the sum of the weights overflows"),
    "no edges": ("a.csv", "source,target\n", "no edges"),
    "lost edge": (
        "a.csv",
        "x,y\n" + "a,b\n" * 50 + "a,x\n",
        "line 1 was read as column names, but 'x'",
    ),
    "broken JSON": ("a.jsonl", JSON + '{"source": 1,\n', "a.jsonl line 91: "),
    "JSON without id": ("a.jsonl", JSON + '{"source": 1, "target": null}\n', "line 91: the target"),
    "weights begin": ("a.jsonl", JSON + '{"source": 1, "target": 3, "weight": 2}\n' * 9, "line 9[01]: "),
}


@pytest.mark.parametrize("memory", [TINY, 1e9])
@pytest.mark.parametrize("case", sorted(BROKEN))
def test_broken_input_is_one_line_and_leaves_nothing(tmp_path, case, memory):
    name, content, message = BROKEN[case]
    (tmp_path / name).write_text(content)
    columns = {"source": 0, "target": 1, "weight": False} if case == "lost edge" else {}
    if case == "weights begin" and memory == 1e9:
        message = "has a weight that is missing"
    with pytest.raises(InputError, match=message) as refused:
        pack_graph(tmp_path / name, tmp_path / "out", memory=memory, **columns)
    assert "\n" not in str(refused.value)
    with pytest.raises(InputError):
        as_graph(tmp_path / name, **columns)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("directed", [None, False])
@pytest.mark.parametrize("ids", ["whole", "text"])
def test_a_repeated_link_is_named_with_both_of_its_lines(tmp_path, ids, directed):
    edges = [(i, i + 1) for i in range(60)] + [(8, 7), (7, 8)]
    path = tmp_path / "edges.txt"
    path.write_text("".join(f"{a} {b}\n" if ids == "whole" else f"v{a} v{b}\n" for a, b in edges))
    messages = []
    for read in (as_graph, lambda *a, **b: pack_graph(*a, tmp_path / "out", memory=TINY, **b)):
        with pytest.raises(InputError, match="occurs already") as refused:
            read(path, repeated="error", directed=directed)
        messages.append(str(refused.value))
    assert messages[0] == messages[1]


def test_parts_of_different_kinds_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("1 2\n")
    (tmp_path / "b.txt").write_text("x y\n")
    with pytest.raises(InputError, match=r"ids are whole numbers in .*a.txt, but text in .*b.txt"):
        pack_graph([tmp_path / "a.txt", tmp_path / "b.txt"], tmp_path / "out")
    (tmp_path / "c.csv").write_text("from,to\n1,2\n")
    with pytest.raises(InputError, match="all parts need the same columns"):
        pack_graph([tmp_path / "a.txt", tmp_path / "c.csv"], tmp_path / "out")


def test_damaged_gzip_and_parquet_files_are_refused(tmp_path):
    packed = gzip.compress(b"".join(b"%d %d\n" % (i, i * i) for i in range(20_000)))
    (tmp_path / "a.txt.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputError, match=r"a.txt.gz.*gzip data end early"):
        pack_graph(tmp_path / "a.txt.gz", tmp_path / "out", memory=20_000)
    write_parquet(tmp_path / "b.parquet", [(1, 2, 1.0)] * 99, ",", weighted=False)
    (tmp_path / "b.parquet").write_bytes((tmp_path / "b.parquet").read_bytes()[:-9])
    with pytest.raises(InputError, match=r"b.parquet"):
        pack_graph(tmp_path / "b.parquet", tmp_path / "out", memory=TINY)
    assert len(list(tmp_path.iterdir())) == 2


def test_columns_taken_by_position_are_told(tmp_path):
    (tmp_path / "a.csv").write_text("user,friend,time\n1,2,3\n")
    with pytest.warns(UserWarning, match="links go from 'user' to 'friend'; not used: 'time'"):
        pack_graph(tmp_path / "a.csv", tmp_path / "out")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pack_graph(tmp_path / "a.csv", tmp_path / "out", source="user", target="friend", weight=False)


def test_an_earlier_graph_stays_when_packing_fails(tmp_path):
    graph = Graph.from_edges([0], [1])
    save_shards(graph, tmp_path / "out")
    (tmp_path / "a.txt").write_text("1 2\n3\n")
    with pytest.raises(InputError, match="line 2"):
        pack_graph(tmp_path / "a.txt", tmp_path / "out")
    assert_same(joined(tmp_path / "out"), graph)
