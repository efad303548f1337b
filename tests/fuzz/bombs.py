"""Decompression bombs: each is read once, and the reader must stop within limits of time and memory."""

from __future__ import annotations

import gzip
import io
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import apexrank
from apexrank.cli.options import BallotOptions
from apexrank.datasets import read_letor, read_preflib
from apexrank.errors import ApexrankError
from apexrank.graph.reading import as_graph
from apexrank.graph.vertex_files import read_seeds
from apexrank.io import read_qrels, read_run, read_table
from apexrank_papers.data.networks import load_cnr_2000
from apexrank_papers.data.webspam import load_webspam
from tests.fuzz.runner import check_message
from tests.fuzz.work import peak_bytes
from tests.io.model_files import pack

MEGABYTE = 1 << 20
Reader = Callable[[Path], Any]


def _packed(line: bytes) -> bytes:
    """One line repeated and compressed to at most a megabyte, which expands to about a gigabyte."""
    part = gzip.compress(line * (10 * MEGABYTE // len(line)), 9, mtime=0)
    return part * (MEGABYTE // len(part))


def _wide(n: int, rows: int = 1) -> bytes:
    names = ",".join(map(str, range(n)))
    return (names + "\n" + (",".join("1" * n) + "\n") * rows).encode()


def _npz() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file, file.open("indptr.npy", "w") as entry:
        head = {"descr": "<i8", "fortran_order": False, "shape": (40_000_000,)}
        np.lib.format.write_array_header_1_0(entry, head)
        for _ in range(320):
            entry.write(bytes(1_000_000))
    return buffer.getvalue()


def _claimed(kind: str, size: int) -> bytes:
    """An array of a few bytes that claims to be of a type and size."""
    text = f"{{'descr': {kind}, 'fortran_order': False, 'shape': ({size},), }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def _packed_model() -> bytes:
    """Model file whose JSON, mostly blanks, is compressed."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("model.json", "w", force_zip64=True) as entry,
    ):
        for _ in range(300):
            entry.write(b" " * MEGABYTE)
    return buffer.getvalue()


def _orders(path: Path) -> Any:
    return BallotOptions(kind="orders", id="v").read(path)


def _long(path: Path) -> Any:
    return BallotOptions(long="u,f,s").read(path)


def _hosts(path: Path) -> Any:
    (path.parent / "labels").write_text("0 spam\n")
    return load_webspam(path.parent, graph=path, labels="labels")


def _names(n: int) -> str:
    return "".join(f"# ALTERNATIVE NAME {i}: {i}\n" for i in range(1, n + 1))


# name: file name, bytes, reader
BOMBS: dict[str, tuple[str, Callable[[], bytes], Reader]] = {
    "LETOR, packed zeros": ("b.txt.gz", lambda: _packed(b"\0"), read_letor),
    "LETOR, packed rows": ("b.txt.gz", lambda: _packed(b"0 qid:1\n"), lambda p: read_letor(p, n_features=1)),
    "LETOR, packed long line": ("b.txt.gz", lambda: _packed(b" 1:1"), read_letor),
    "LETOR, feature 999999999": ("b.txt", lambda: b"1 qid:1 999999999:1\n", read_letor),
    "LETOR, feature 999999999 as table": ("b.txt", lambda: b"1 qid:1 999999999:1\n", read_table),
    "LETOR, feature 1000000 in 1,000 rows": ("b.txt", lambda: b"1 qid:1 1000000:1\n" * 1000, read_table),
    "LETOR, line of 1 MB": ("b.txt", lambda: b"1 qid:1" + b" 1:1" * 250_000, read_letor),
    "CSV, packed": ("b.csv.gz", lambda: gzip.compress(b"a,b\n") + _packed(b"1,1\n"), read_table),
    "CSV, packed long line": ("b.csv.gz", lambda: _packed(b"1,"), read_table),
    "CSV, packed quote": ("b.csv.gz", lambda: _packed(b'"'), read_table),
    "CSV, 100,000 columns": ("b.csv", lambda: _wide(100_000), read_table),
    "CSV, 100,000 columns of one name": ("b.csv", lambda: b"a," * 100_000 + b"a\n", read_table),
    "CSV, wide and blank lines": ("b.csv", lambda: _wide(50_000) + b"\n" * 500_000, read_table),
    "CSV, wide and short lines": ("b.csv", lambda: _wide(50_000) + b"1\n" * 250_000, read_table),
    "CSV, field of 1 MB": ("b.csv", lambda: b"a,b\n" + b"x" * MEGABYTE + b",1\n", read_table),
    "CSV, line of 1 MB of quotes": ("b.csv", lambda: b"a,b\n" + b'"' * (MEGABYTE + 1) + b",1\n", read_table),
    "edges, packed": ("b.edges.gz", lambda: _packed(b"1 2\n"), as_graph),
    "edges, packed long line": ("b.edges.gz", lambda: _packed(b"1"), as_graph),
    "edges, vertex 10^18": ("b.edges", lambda: b"0 1000000000000000000\n1 7\n", as_graph),
    "edges, vertices below 2^31": ("b.edges", lambda: b"0 2147483646\n" * 3, as_graph),
    "edges, line of 1 MB": ("b.edges", lambda: b"1 2\n" + b"3 " * 500_000, as_graph),
    "PrefLib, 10^9 alternatives": ("b.soc", lambda: b"1000000000\n1,a\n1,1,1\n1,1\n", read_preflib),
    "PrefLib, 10^9 alternatives claimed": (
        "b.soc",
        lambda: b"# NUMBER ALTERNATIVES: 1000000000\n# ALTERNATIVE NAME 1: a\n1: 1\n",
        read_preflib,
    ),
    "PrefLib, long order": (
        "b.toi",
        lambda: (_names(1) + "1: " + ",".join(map(str, range(1, 150_000))) + "\n").encode(),
        read_preflib,
    ),
    "PrefLib, long order with one twice": (
        "b.toi",
        lambda: (_names(40_000) + "1: " + ",".join(map(str, [*range(1, 40_001), 40_000])) + "\n").encode(),
        read_preflib,
    ),
    "PrefLib, orders times items": (
        "b.soi",
        lambda: (_names(20_000) + "1: 1\n" * 20_000).encode(),
        BallotOptions().read,
    ),
    "PrefLib, packed": ("b.soi.gz", lambda: _packed(b"1: 1\n"), read_preflib),
    "TREC, line of 1 MB": ("b.run", lambda: b"q Q0 " + b"d" * MEGABYTE + b" 1 x t\n", read_run),
    "TREC, blanks": ("b.qrels", lambda: b"q 0 d 1\n" + b" " * MEGABYTE, read_qrels),
    "TREC, blank lines": ("b.qrels", lambda: b"q 0 d 1\n" + b"\n \t" * 300_000, read_qrels),
    "TREC, packed": ("b.run.gz", lambda: _packed(b"q Q0 d 1 1 t\n"), read_run),
    "ballots, orders": (
        "b.csv",
        lambda: b"v,first\n" + b"".join(b"%d,x%d\n" % (i, i) for i in range(60_000)),
        _orders,
    ),
    "ballots, long": (
        "b.csv",
        lambda: b"u,f,s\n" + b"".join(b"%d,%d,1\n" % (i, i) for i in range(16_000)),
        _long,
    ),
    "ballots, packed": ("b.csv.gz", lambda: _packed(b",1\n"), BallotOptions().read),
    "hosts, number 2^31 - 2": ("b.graph", lambda: b"0 -> 2147483646:1\n", _hosts),
    "hosts, claimed": ("b.graph", lambda: b"2147483647\n1:1\n", _hosts),
    "seeds, line of 1 MB": ("b.txt", lambda: b"vertex,weight\n" + b"a" * MEGABYTE + b",1\n", read_seeds),
    "crawl, packed zeros": ("b.npz", _npz, load_cnr_2000),
    "model, deep": ("b.apex", lambda: pack("[" * 500_000 + "]" * 500_000, []), apexrank.load),
    "model, number of 1 MB": ("b.apex", lambda: pack("9" * MEGABYTE, []), apexrank.load),
    "model, many lists": (
        "b.apex",
        lambda: pack('{"format": 6, "model": [' + "[]," * (MEGABYTE // 3) + "[]]}", []),
        apexrank.load,
    ),
    "model, huge array": (
        "b.apex",
        lambda: pack({"format": 6, "model": {"array": 0}}, [_claimed("'<f8'", 10**15)]),
        apexrank.load,
    ),
    "model, huge text": (
        "b.apex",
        lambda: pack({"format": 6, "model": {"array": 0}}, [_claimed("'<U99999999'", 4)]),
        apexrank.load,
    ),
    "model, packed": ("b.apex", _packed_model, apexrank.load),
}


def explode() -> dict[str, Any]:
    """Read each bomb: outcome, size and seconds; and the peak memory, including their creation."""
    outcomes, sizes, seconds = {}, {}, {}
    before = peak_bytes()
    with tempfile.TemporaryDirectory() as root:
        for number, (name, (file, make, read)) in enumerate(BOMBS.items()):
            folder = Path(root, f"input-{number}")  # which messages must name
            folder.mkdir()
            path = folder / file
            path.write_bytes(make())
            sizes[name] = path.stat().st_size
            began = time.perf_counter()
            outcomes[name] = _read(read, path)
            seconds[name] = round(time.perf_counter() - began, 2)
            path.unlink()
    return {"peak": peak_bytes() - before, "outcomes": outcomes, "bytes": sizes, "seconds": seconds}


def _read(read: Reader, path: Path) -> str:
    try:
        read(path)
    except ApexrankError as error:
        check_message(str(error))
        return str(error).replace(str(path), path.name)
    return "value"
