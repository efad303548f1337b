"""Every reader rejects JSON, HTML, binary and compressed files with an error that names them, whatever their name."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import sqlite3
import tarfile
import zipfile
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread

import numpy as np
import polars as pl
import pytest

import apexrank
from apexrank import files
from apexrank.cli.graph_studies import _spam_labels
from apexrank.cli.options import BallotOptions
from apexrank.datasets import read_letor
from apexrank.errors import InputError
from apexrank.files import HEAD, check_is_text
from apexrank.graph.files import edges_of_file
from apexrank.graph.reading import as_graph
from apexrank.graph.vertex_files import earlier_scores, seed_weights
from apexrank.io import read_qrels, read_run, read_table
from apexrank.io.stream import read_blocks

CSV = b"source,target,weight,y\na,b,1,0\nb,c,2,1\nc,a,1,0\n"
FRAME = pl.read_csv(CSV)
GRAPH = as_graph((["a", "b", "c"], ["b", "c", "a"]))


def _saved(write) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def _zip(*names: str) -> bytes:
    def write(buffer):
        with zipfile.ZipFile(buffer, "w") as archive:
            for name in names:
                archive.writestr(name, "x" * 50)

    return _saved(write)


def _tar() -> bytes:
    def write(buffer):
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            entry = tarfile.TarInfo("t.csv")
            entry.size = len(CSV)
            archive.addfile(entry, io.BytesIO(CSV))

    return _saved(write)


def _sqlite() -> bytes:
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE t (a, b)")
        return database.serialize()


PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head>\n<body>a, b</body></html>\n"
FILES = {  # content, and words of the error that every reader gives unless the format is its own
    "JSON lines": (b'{"source": "a", "target": "b"}\n{"source": "b", "target": "c"}\n', "a JSON file"),
    "JSON array": (b'[{"source": "a", "target": "b"}]\n', "a JSON file"),
    "JSON of numbers": (b"[1, 2, 3]\n", "a JSON file"),
    "JSON document": (b'{\n  "nodes": [],\n  "links": []\n}\n', "a JSON file"),
    "GraphML": (b'<?xml version="1.0"?>\n<graphml><graph edgedefault="directed"/></graphml>\n', "XML file"),
    "HTML": (PAGE, "an HTML or XML file"),
    "SVG": (b'<svg xmlns="http://www.w3.org/2000/svg">\n</svg>\n', "XML file"),
    "Excel": (_zip("[Content_Types].xml", "xl/workbook.xml"), "Excel workbook"),
    "old Excel": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "binary"),
    "zip": (_zip("t.csv"), "zip archive"),
    "tar": (_tar(), "binary"),
    "pickle": (pickle.dumps({"a": 1}), "binary"),
    "UTF-16": (CSV.decode().encode("utf-16"), "UTF-16"),
    "UTF-16 without a mark": (CSV.decode().encode("utf-16-be"), "UTF-16"),
    "UTF-32": (CSV.decode().encode("utf-32"), "UTF-16 or UTF-32"),
    "page in gzip": (gzip.compress(PAGE), "an HTML or XML file"),
    "gzip twice": (gzip.compress(gzip.compress(CSV)), "a compressed file"),
    "truncated gzip": (gzip.compress(CSV * 50)[:-20], "gzip data end early"),
    "bzip2": (bz2.compress(CSV), "a compressed file"),
    "xz": (lzma.compress(CSV), "a compressed file"),
    "PNG": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(40), "binary"),
    "SQLite": (_sqlite(), "binary"),
    "npy": (_saved(lambda file: np.save(file, np.eye(3))), "binary"),
    "Parquet": (_saved(FRAME.write_parquet), "Parquet"),
    "Feather": (_saved(FRAME.write_ipc), "binary"),
    "program": (b"\x7fELF\x02\x01\x01" + bytes(50), "binary"),
    "noise": (np.random.default_rng(0).bytes(3000), "binary"),
    "zeros": (bytes(3000), "binary"),
}
OTHER_ROWS = {  # text of another kind in the place of a table
    "judgements": (b"q1 0 d1 1\nq1 0 d2 0\n", "name the separator"),
    "preamble": (b"Sales\nby finance\n\na,b,y\n1,2,0\n", "take out the lines above"),
    "bars": (b"a|b|y\n1|2|0\n", "name the separator"),
}
TABLES = {
    "table.csv": lambda path: read_table(path, index="index"),
    "blocks.csv": lambda path: [*read_blocks(path, "y")],
    "scores.csv": BallotOptions().read,
    "orders.csv": BallotOptions(kind="orders").read,
}
READERS = TABLES | {
    "table.parquet": read_table,
    "table.xyz": read_table,
    "rows.txt": read_letor,
    "edges.csv": edges_of_file,
    "edges.adjlist": edges_of_file,
    "edges.mtx": edges_of_file,
    "edges.txt": lambda path: edges_of_file(path, format="text"),
    "ballots.soi": BallotOptions().read,
    "documents.run": read_run,
    "judgements.qrels": read_qrels,
    "model.apex": apexrank.load,
    "trusted.txt": lambda path: seed_weights(path, GRAPH, "trusted"),
    "spam.csv": lambda path: _spam_labels(path, GRAPH),
    "start.csv": lambda path: earlier_scores(path, GRAPH),
}
# Formats that the edge reader reads, whatever the name, or rejects with its own message.
_OF_EDGES = ("JSON lines", "GraphML", "Parquet", "Excel", "zip")


@pytest.mark.parametrize("kind", FILES)
def test_no_reader_takes_another_format_for_its_own(tmp_path, kind):
    content, words = FILES[kind]
    for name, read in READERS.items():
        path = tmp_path / name
        path.write_bytes(content)
        own = kind == "Parquet" and name == "table.parquet"
        if own or (name.startswith("edges") and kind in _OF_EDGES and name != "edges.txt"):
            continue
        with pytest.raises(InputError) as caught:
            read(path)
        message = str(caught.value)
        # these two have a mark of their own, and the messages of a damaged file
        known = words in message or name in ("table.parquet", "model.apex")
        packed = name.endswith("xyz") and kind in ("truncated gzip", "page in gzip")
        assert known or packed, f"{name}: {message}"
        assert str(path) in message


@pytest.mark.parametrize("kind", OTHER_ROWS)
def test_tables_are_no_lists_of_another_format(tmp_path, kind):
    content, words = OTHER_ROWS[kind]
    for name, read in TABLES.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=words):
            read(tmp_path / name)


@pytest.mark.parametrize(
    "content",
    [
        CSV,
        b"cat\ndog\np1\n",
        b"[1] [2]\n{a} {b}\n",
        b"x,y\n1,2\n",
        b"BZh,2\n",
        b"<a> <b>\n",
        "Ünïcode,né\n".encode(),
        "Ünïcode,né\n".encode("latin-1"),
        b"",
    ],
)
def test_text_may_be_a_table(content):
    check_is_text("t.csv", content)


@pytest.mark.parametrize("part", [b" ", b"\n", b"<", b"[", b"{", b"a\0", b"a b ", b"PK"])
def test_recognising_any_text_takes_no_time(part):
    """No pattern backtracks exponentially, which would take forever."""
    for tail in (b"", b"x", b"\0"):
        with suppress(InputError):
            check_is_text("t.csv", part * HEAD + tail)


def test_edges_whose_columns_have_one_name_are_refused(tmp_path):
    (tmp_path / "e.csv").write_bytes(b"sales,sales,costs\nnet,gross,net\n1,2,3\n")
    with pytest.raises(InputError, match="line 1: two columns are named 'sales'"):
        edges_of_file(tmp_path / "e.csv")
    assert len(edges_of_file(tmp_path / "e.csv", source=1, target=2).sources) == 2


def test_comments_that_could_be_edges_are_told(tmp_path):
    (tmp_path / "tags.txt").write_bytes(b"#cats #dogs\ncats dogs\n#dogs #birds\n")
    assert (
        "'#' are read as comments, among them '#cats #dogs'" in edges_of_file(tmp_path / "tags.txt").assumed
    )
    (tmp_path / "snap.txt").write_bytes(b"# FromNodeId ToNodeId\n1 2\n")
    assert edges_of_file(tmp_path / "snap.txt").assumed is None


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_devices_that_never_end_are_refused(tmp_path, device):
    if not Path(device).exists():
        pytest.skip("this system has no such device")
    for name, read in READERS.items():
        (tmp_path / name).symlink_to(device)
        with pytest.raises(InputError):
            read(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
@pytest.mark.parametrize("name", [name for name in READERS if name != "edges.txt"])
def test_pipes_that_never_end_are_refused(tmp_path, monkeypatch, name):
    """Their text is valid; only its end is missing. Readers that need a regular file report an error at once."""
    monkeypatch.setattr(files, "MOST_OF_A_PIPE", 1 << 21)
    line = (
        b"1 qid:1 1:0.5\n" if name == "rows.txt" else b"q Q0 d 1 2 t\n" if name.endswith("run") else b"a b\n"
    )
    pipe = tmp_path / name
    os.mkfifo(pipe)

    def write():
        with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as file:
            while True:
                file.write(line * 5000)

    writer = Thread(target=write, daemon=True)  # one that no reader opens waits until the tests end
    writer.start()
    with pytest.raises(InputError) as caught:
        READERS[name](pipe)
    assert any(
        words in str(caught.value)
        for words in ("save the part that is needed", "read twice", "device or a pipe")
    )
