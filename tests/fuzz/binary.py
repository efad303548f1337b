"""Generators of binary files: Parquet tables, models and packed arrays, made by their own writers."""

from __future__ import annotations

import io
import tempfile
from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl

import apexrank
from apexrank import AdditiveRanker, MonotoneRetargeting, PageRank, PNormPush
from apexrank.io import Recipe, Table, TableRanker
from tests.io.model_files import at, pack, places, unpack

NASTY_JSON: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**31, 2**53, 2**63, 10**30, 10**400, 0.5, -0.0, 1e308, 5e-324),
    *("", "x", "inf", "nan"),
    *("\ud800", "a\nb", "A" * 3000, [], {}, [[]], [None], [1], ["a", "a"], {"a": 1}, {"name": "x"}),
)
ROWS = Table(
    pl.DataFrame(
        {
            "id": ["r1", "r2", "r3", "r4"],
            "x": [0.0, 1.0, 2.0, 1.5],
            "city": ["Oslo", "Rome", "Rome", "Oslo"],
            "price": ["$1", "$2,000", "", "$4"],
            "when": ["2024-01-31", "", "2023-05-01", "2024-02-29"],
            "query": ["a", "a", "b", "b"],
            "fraud": [0, 0, 1, 0],
        }
    ),
    "input rows",
)


@cache
def _parquet_files() -> list[bytes]:
    frame = pl.DataFrame(
        {
            "source": ["a", "b", "c", "a"] * 5,
            "target": ["b", "c", "a", None] * 5,
            "weight": [0.5, -1.0, None, float("nan")] * 5,
            "count": list(range(20)),
            "fraud": [True, False, False, None] * 5,
            "day": pl.Series(range(20), dtype=pl.Int32).cast(pl.Date),
            "kind": pl.Series(["x", "y"] * 10, dtype=pl.Categorical),
            "parts": [[1, 2], [], None, [3]] * 5,
            "both": [{"u": 1, "v": "a"}] * 20,
            "bytes": [b"\xff\x00"] * 20,
            "price": pl.Series(["1.5"] * 20).cast(pl.Decimal(10, 2)),
        }
    )
    plain = frame.select("source", "target", "weight", "count")
    files = []
    for part in (frame, plain, plain.head(1), plain.head(0), frame.select("count")):
        for compression in ("uncompressed", "zstd", "snappy", "gzip"):
            buffer = io.BytesIO()
            part.write_parquet(buffer, compression=compression, row_group_size=8)
            files.append(buffer.getvalue())
    return files


def parquet_file(rng: Random) -> bytes:
    return rng.choice(_parquet_files())


@cache
def _models() -> list[bytes]:
    two = TableRanker.fit(
        ROWS,
        Recipe(target="fraud", id="id", drop=["query"], categorical=["city"], impute="median"),
        PNormPush(p=2, alpha=0.1),
    )
    graded = TableRanker.fit(
        ROWS,
        Recipe(target="fraud", id="id", groups="query", graded=True, features=["x"], scale="query"),
        MonotoneRetargeting(alpha=1.0),
    )
    additive = TableRanker.fit(
        ROWS,
        Recipe(target="fraud", id="id", features=["x", "city"], categorical=["city"]),
        AdditiveRanker(alpha=0.1, n_pairs=1),
    )
    graph = PageRank().fit(([0, 1, 2], [1, 2, 0]))
    files = []
    with tempfile.TemporaryDirectory() as folder:
        for model in (two, graded, additive, graph):
            apexrank.save(model, f"{folder}/m.apex")
            files.append(Path(folder, "m.apex").read_bytes())
    return files


def model_file(rng: Random) -> bytes:
    """Model file, mostly with a fault in its JSON or arrays but checksums that are right."""
    content = rng.choice(_models())
    style = rng.random()
    if style < 0.1:
        return content
    tree, arrays = unpack(content)
    if style < 0.7:
        for _ in range(rng.choice((1, 1, 2))):
            *path, key = rng.choice([*places(tree)])
            if rng.random() < 0.2:
                del at(tree, path)[key]
            else:
                at(tree, path)[key] = deepcopy(rng.choice(NASTY_JSON))
    elif style < 0.85:
        number = rng.randrange(len(arrays))
        arrays[number] = _spoilt_array(arrays[number], rng)
    else:
        body = bytearray(content)
        start = rng.randrange(len(body))
        body[start : start + rng.choice((0, 1, 5))] = rng.randbytes(rng.choice((0, 1, 3)))
        return bytes(body)
    return pack(tree, arrays)


def _spoilt_array(array: np.ndarray, rng: Random) -> np.ndarray:
    array = np.array(array, ndmin=1)
    array = np.append(array, array[:1]) if rng.random() < 0.3 else array
    array = array[: rng.randrange(len(array) + 1)] if rng.random() < 0.3 else array
    if rng.random() < 0.2:
        return array.astype(np.int64 if array.dtype.kind == "f" else np.float64)
    if array.size and array.dtype.kind == "f":
        array.flat[rng.randrange(array.size)] = rng.choice((-1.0, 0.0, 1e308, -1e308, 5e-324, np.nan, np.inf))
    elif array.dtype.kind == "i" and array.size:
        array.flat[rng.randrange(array.size)] = rng.choice((-1, 0, 2**30, 7))
    return array


@cache
def _crawls() -> list[bytes]:
    files = []
    for save in (np.savez, np.savez_compressed):
        buffer = io.BytesIO()
        save(buffer, indptr=np.array([0, 2, 2, 3]), indices=np.array([1, 2, 0]), shape=np.array([3, 3]))
        files.append(buffer.getvalue())
    return files


def crawl_file(rng: Random) -> bytes:
    if rng.random() < 0.6:
        return rng.choice(_crawls())
    wild = [np.array([0, 2, 2, 3]), np.array([1, 2, 0]), np.array([3, 3])]
    at = rng.randrange(3)
    good = wild[at]
    bad = (good * 10**9, -good, good + 0.5, good[:1], good[:0], np.array(["a"]), np.array(7))
    wild[at] = rng.choice(bad)
    buffer = io.BytesIO()
    np.savez(buffer, **dict(zip(("indptr", "indices", "shape"), wild, strict=True)))
    return buffer.getvalue()
