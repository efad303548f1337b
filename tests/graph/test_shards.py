"""Sharded graphs: exact round trips, and one-line errors for damaged folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apexrank.errors import InputError
from apexrank.graph import Graph
from apexrank.graph.shards import is_shards, open_shards, save_shards


def joined(folder: Path) -> Graph:
    """Graph of a folder of shards, assembled from its files by hand."""
    about = json.loads((folder / "graph.json").read_text())
    ends, indices, weights = [np.zeros(1, np.int64)], [], []
    for shard in about["shards"]:
        part = np.load(folder / f"{shard['name']}.indptr.npy")
        assert len(part) == shard["last"] - shard["first"] + 1
        ends.append(ends[-1][-1] + part[1:])
        indices.append(np.load(folder / f"{shard['name']}.indices.npy"))
        assert len(indices[-1]) == shard["n_edges"]
        assert (folder / f"{shard['name']}.weights.npy").exists() == about["weighted"]
        if about["weighted"]:
            weights.append(np.load(folder / f"{shard['name']}.weights.npy"))
    assert about["n_edges"] == sum(map(len, indices))
    names = open_shards(folder).names
    all_weights = np.concatenate(weights) if weights else None
    out_weight = np.load(folder / "out_weight.npy")
    return Graph(np.concatenate(ends), np.concatenate(indices), all_weights, out_weight, names)


def assert_same(found: Graph, expected: Graph) -> None:
    """Whether two graphs are bit-identical."""
    for part in ("indptr", "indices", "weights", "out_weight", "names"):
        one, other = getattr(found, part), getattr(expected, part)
        assert (one is None) == (other is None), part
        if one is not None:
            assert one.dtype == other.dtype, part
            assert one.tolist() == other.tolist(), part


def small(weighted: bool = False) -> Graph:
    weights = [2.0, 1.0, 0.5, 3.0] if weighted else None
    return Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 1], weights, names=["a", "b", "c", "d"])


@settings(max_examples=40, deadline=None)
@given(
    edges=st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from([1.0, 0.1, 2.5])), max_size=30
    ),
    weighted=st.booleans(),
    names=st.sampled_from([None, "text", "whole"]),
    links=st.integers(1, 12),
)
def test_a_saved_graph_is_read_as_it_was(tmp_path_factory, edges, weighted, names, links):
    folder = tmp_path_factory.mktemp("shards") / "a.shards"
    listed = {None: None, "text": list("hgfedcba"), "whole": [9, 7, 1, 2, 3, 4, 5, 100]}[names]
    ends = np.array([edge[:2] for edge in edges], dtype=int).reshape(-1, 2).T
    graph = Graph.from_edges(*ends, [edge[2] for edge in edges] if weighted else None, n=8, names=listed)
    save_shards(graph, folder, links=links)
    assert_same(joined(folder), graph)
    sharded = open_shards(folder)
    assert (sharded.n, sharded.n_edges, sharded.weighted) == (8, graph.n_edges, graph.weights is not None)
    assert sharded.dangling.tolist() == graph.dangling.tolist()
    assert sharded.number(graph.label(3)) == 3
    for shard in sharded.shards:
        loaded = shard.load()
        start, end = graph.indptr[[shard.first, shard.last]]
        assert loaded.indices.tolist() == graph.indices[start:end].tolist()
        assert shard.n_edges <= links or shard.last == shard.first + 1
        assert not loaded.indices.flags.writeable


def test_a_folder_of_other_files_is_not_replaced(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("keep")
    (tmp_path / "file").write_text("keep")
    with pytest.raises(InputError, match="folder with other files"):
        save_shards(small(), tmp_path / "notes")
    with pytest.raises(InputError, match="is a file"):
        save_shards(small(), tmp_path / "file")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["file", "notes"]
    assert (tmp_path / "notes" / "mine.txt").read_text() == "keep"


def test_an_empty_folder_and_an_earlier_graph_are_replaced(tmp_path):
    folder = tmp_path / "a.shards"
    folder.mkdir()
    save_shards(small(weighted=True), folder, links=1)
    save_shards(small(), folder)
    assert_same(joined(folder), small())
    assert [path.name for path in tmp_path.iterdir()] == ["a.shards"]


def test_a_failure_leaves_the_earlier_graph(tmp_path, monkeypatch):
    folder = tmp_path / "a.shards"
    save_shards(small(), folder)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("apexrank.graph.shards.write_array", full)
        with pytest.raises(InputError, match="no space left on device: free some space"):
            save_shards(small(weighted=True), folder)
    assert_same(joined(folder), small())
    assert [path.name for path in tmp_path.iterdir()] == ["a.shards"]


KILLED = """
import os, sys, time
from contextlib import suppress
from itertools import count
from pathlib import Path
from apexrank.graph import Graph
from apexrank.graph.shards import open_shards, save_shards, writing_shards

def rewrite(folder, moment):
    steps = count()
    def kill(event, args):
        if event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir") and next(steps) == moment:
            os._exit(9)
    sys.addaudithook(kill)
    save_shards(new, folder)
    os._exit(0)

old, new = Graph.from_edges([0], [1]), Graph.from_edges([0, 1], [1, 0])
for moment in count():
    parent = Path(sys.argv[1], str(moment))
    parent.mkdir()
    folder = parent / "a.shards"
    save_shards(old, folder)
    os.utime(folder, (0, time.time() - 1e6))  # long ago: hidden folders of that age are removed
    child = os.fork() or rewrite(folder, moment)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if moment % 2:
        with suppress(OSError), writing_shards(folder):
            raise OSError(5, "a later writer fails", "elsewhere")
    print(status, open_shards(folder).n_edges)
    if not status:
        break
    save_shards(new, folder)
    assert open_shards(folder).n_edges == 2
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_kill_at_any_step_leaves_the_old_or_the_new_graph(tmp_path):
    ran = subprocess.run([sys.executable, "-c", KILLED, tmp_path], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    states = [tuple(map(int, line.split())) for line in ran.stdout.splitlines()]
    assert set(states) == {(9, 1), (9, 2), (0, 2)}
    assert [edges for _, edges in states] == sorted(edges for _, edges in states)


def test_names_of_other_kinds_are_refused(tmp_path):
    graph = Graph.from_edges([0], [1], names=[("a", 1), "b"])
    with pytest.raises(InputError, match="neither text nor a whole number"):
        save_shards(graph, tmp_path / "a")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("weighted", [False, True])
def test_every_file_is_needed_in_full(tmp_path, weighted):
    folder = tmp_path / "a.shards"
    save_shards(small(weighted), folder, links=2)
    files = sorted(folder.iterdir())
    assert len(files) == 3 + 3 * (2 + weighted)
    for file in files:
        content = file.read_bytes()
        for broken in (None, b"", content[:20], content[:-1], content + b"\0", b"x" + content[1:]):
            file.unlink()
            if broken is not None:
                file.write_bytes(broken)
            # only the last line feed, or the magic bytes of a Parquet file, are missing
            if (file.suffix, broken) in ((".json", content[:-1]), (".parquet", b"x" + content[1:])):
                open_shards(folder)
                continue
            with pytest.raises(InputError, match=file.name) as refused:
                open_shards(folder)
            assert "\n" not in str(refused.value)
            file.write_bytes(b"")
        file.write_bytes(content)
    open_shards(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "its format is not"),
        ({"version": 2}, "version 2 of the format"),
        ({"n": -1}, "'n' is missing or wrong"),
        ({"n": True}, "'n' is missing or wrong"),
        ({"n": 5}, "counts do not add up"),
        ({"n_edges": 3}, "counts do not add up"),
        ({"weighted": 1}, "'weighted' is missing or wrong"),
        ({"weighted": True}, "cannot read .*weights.npy"),
        ({"names": "../../etc/names.npy"}, "counts do not add up"),
        ({"names": "names.npy"}, "cannot read .*names.npy"),
        ({"shards": None}, "'shards' is missing or wrong"),
        ({"shards": [3]}, "'name' is missing or wrong"),
        ({"shards": []}, "counts do not add up"),
    ],
)
def test_a_wrong_description_is_refused(tmp_path, change, message):
    folder = tmp_path / "a.shards"
    save_shards(small(), folder)
    path = folder / "graph.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=message):
        open_shards(folder)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("name", "../a", "do not follow"),
        ("first", 1, "do not follow"),
        ("last", -1, "'last' is missing"),
        ("bytes", "1", "'bytes' is missing"),
    ],
)
def test_a_wrong_shard_is_refused(tmp_path, key, value, message):
    folder = tmp_path / "a.shards"
    save_shards(small(), folder)
    about = json.loads((folder / "graph.json").read_text())
    about["shards"][0][key] = value
    (folder / "graph.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match=message):
        open_shards(folder)


def test_arrays_of_other_types_and_rows_out_of_order_are_refused(tmp_path):
    folder = tmp_path / "a.shards"
    save_shards(small(), folder)
    np.save(folder / "00000.indptr.npy", np.array([0, 3, 2, 3, 4]))
    with pytest.raises(InputError, match="rows do not add up"):
        open_shards(folder).shards[0].load()
    np.save(folder / "00000.indices.npy", np.zeros(4, np.int64))
    with pytest.raises(InputError, match="does not hold 4 numbers of type int32"):
        open_shards(folder)
    np.save(folder / "00000.indices.npy", np.array([{}] * 4), allow_pickle=True)
    with pytest.raises(InputError, match="damaged"):
        open_shards(folder)


def test_other_paths_are_no_graphs(tmp_path):
    with pytest.raises(InputError, match="has no graph"):
        open_shards(tmp_path)
    with pytest.raises(InputError, match="cannot read"):
        open_shards(tmp_path / "nowhere")
    assert not is_shards(tmp_path)
