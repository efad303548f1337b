"""Readers by name: each writes the bytes of an input to a file and reads it as users would.

Options (suffix, kind of ballots, columns) are derived from the bytes, so the bytes alone reproduce a run.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import apexrank
from apexrank.cli.graph_studies import _spam_labels
from apexrank.cli.options import BallotOptions, EdgeOptions
from apexrank.cli.output import working
from apexrank.datasets import read_letor, read_preflib
from apexrank.graph.layers import layers_of_table
from apexrank.graph.reading import as_graph
from apexrank.graph.vertex_files import earlier_scores, seed_weights
from apexrank.io import TableRanker, rank_table, read_qrels, read_run, read_table
from apexrank.io.columns import grades, is_text, numbers, read_target, texts
from apexrank.io.stream import read_blocks
from apexrank_papers.data.networks import load_bitcoin_otc, load_cnr_2000
from apexrank_papers.data.webspam import load_webspam
from tests.fuzz.binary import ROWS

GRAPH = as_graph((["a", "b", "c"], ["b", "c", "a"]))
NUMBERED = as_graph(([0, 1, 2], [1, 2, 0]))
_GZIP = b"\x1f\x8b"


def read(target: str, data: bytes, folder: Path) -> Any:
    """Read the bytes with options derived from them."""
    return TARGETS[target](data, folder, Random(zlib.crc32(data)))


def _saved(data: bytes, folder: Path, suffix: str) -> Path:
    path = folder / f"input{suffix}{'.gz' if data[:2] == _GZIP else ''}"
    path.write_bytes(data)
    return path


def _letor(data: bytes, folder: Path, rng: Random) -> Any:
    path = _saved(data, folder, rng.choice((".txt", ".svm", ".letor")))
    if rng.random() < 0.3:
        return _use(read_table(path), rng)
    null = rng.choice(("raise", "nan", "zero", "min", 0.5))
    n_features = rng.choice((None, None, 4))
    return read_letor(path, null=null, sparse=rng.random() < 0.5, n_features=n_features)


def _csv(data: bytes, folder: Path, rng: Random) -> Any:
    return _any_table(_saved(data, folder, rng.choice((".csv", ".csv", ".tsv"))), rng)


def _parquet(data: bytes, folder: Path, rng: Random) -> Any:
    path = folder / f"input{rng.choice(('.parquet', '.pq'))}"
    path.write_bytes(data)
    kind = rng.randrange(6)
    if kind == 0:
        return _graph(path, rng)
    if kind == 1:
        return BallotOptions(kind=rng.choice((None, "ranks", "orders"))).read(path)
    return _any_table(path, rng)


def _any_table(path: Path, rng: Random) -> Any:
    if rng.random() < 0.25:
        target = rng.choice(("fraud", "y", "x", "count", "weight"))
        groups = rng.choice((None, None, "id", "source"))
        blocks = read_blocks(path, target, rows=rng.choice((1, 3, None)), groups=groups)
        return [block.X.shape for block in blocks]
    return _use(read_table(path), rng)


def _use(table: Any, rng: Random) -> Any:
    """Use a column as the verbs do."""
    name = rng.choice(table.names)
    is_text(table, name)
    return rng.choice((numbers, texts, grades, read_target))(table, name)


def _edges(data: bytes, folder: Path, rng: Random) -> Any:
    return _graph(_saved(data, folder, rng.choice((".txt", ".csv", ".tsv", ".edges"))), rng)


def _graph(path: Path, rng: Random) -> Any:
    if rng.random() < 0.15 and path.name.removesuffix(".gz").endswith(("csv", "tsv", "parquet")):
        with working("reading"):  # guessed columns are a note
            return layers_of_table(path, rng.choice(("day", "count", 0)))
    columns = rng.choice(
        ((None, None, None), (None, None, None), ("0", "1", "2"), ("source", "target", "weight"))
    )
    repeated, signed = rng.choice(("sum", "once", "error")), rng.random() < 0.4
    options = EdgeOptions(*columns, rng.random() < 0.3, repeated, rng.random() < 0.3)
    return options.read(path, signed=signed)


def _preflib(data: bytes, folder: Path, rng: Random) -> Any:
    path = _saved(data, folder, rng.choice((".soc", ".soi", ".toc", ".toi", ".toi")))
    return BallotOptions().read(path) if rng.random() < 0.3 else read_preflib(path)


def _run(data: bytes, folder: Path, rng: Random) -> Any:
    return read_run(_saved(data, folder, ".run"))


def _qrels(data: bytes, folder: Path, rng: Random) -> Any:
    return read_qrels(_saved(data, folder, ".qrels"))


def _ballots(data: bytes, folder: Path, rng: Random) -> Any:
    path = _saved(data, folder, rng.choice((".csv", ".csv", ".tsv")))
    ways: tuple[dict[str, str], ...] = (
        {},
        {"weights": "weight"},
        {"kind": "ranks"},
        {"kind": "orders"},
        {"items_in": "rows"},
        {"items_in": "rows", "kind": "ranks"},
        {"long": "user,film,stars"},
        {"long": "user,film,stars", "kind": "ranks", "weights": "stars"},
    )
    return BallotOptions(**rng.choice(ways)).read(path)


def _seeds(data: bytes, folder: Path, rng: Random) -> Any:
    path = folder / f"input{rng.choice(('.csv', '.csv', '.txt'))}"
    path.write_bytes(data)
    graph = rng.choice((GRAPH, GRAPH, NUMBERED))
    kind = rng.randrange(3)
    if kind == 0 and path.suffix == ".csv":
        return earlier_scores(path, graph)
    return seed_weights(path, graph, "trusted") if kind == 1 else _spam_labels(path, graph)


def _hosts(data: bytes, folder: Path, rng: Random) -> Any:
    path = _saved(data, folder, ".hostgraph.txt")
    (folder / "labels.txt").write_text("0 nonspam\n1 spam\n")
    return load_webspam(folder, graph=path, labels="labels.txt")


def _host_labels(data: bytes, folder: Path, rng: Random) -> Any:
    path = _saved(data, folder, ".labels.txt")
    (folder / "graph.txt").write_text("4\n1:2\n\n0\n2:1\n")
    return load_webspam(folder, graph="graph.txt", labels=path)


def _ratings(data: bytes, folder: Path, rng: Random) -> Any:
    return load_bitcoin_otc(_saved(data, folder, ".csv"))


def _crawl(data: bytes, folder: Path, rng: Random) -> Any:
    path = folder / "input.npz"
    path.write_bytes(data)
    return load_cnr_2000(path)


def _model(data: bytes, folder: Path, rng: Random) -> Any:
    path = folder / "input.apex"
    path.write_bytes(data)
    model = apexrank.load(path)
    known = isinstance(model, TableRanker) and _knows(model)
    return rank_table(model, ROWS, explain=rng.random() < 0.5) if known else model


def _knows(model: Any) -> bool:
    """Whether the model fits the given rows; otherwise an error would be about them."""
    return {column.name for column in model.encoder.columns} <= {"x", "city"}


TARGETS: dict[str, Callable[[bytes, Path, Random], Any]] = {
    "LETOR": _letor,
    "CSV": _csv,
    "Parquet": _parquet,
    "edge list": _edges,
    "PrefLib": _preflib,
    "TREC run": _run,
    "TREC qrels": _qrels,
    "ballots": _ballots,
    "seeds": _seeds,
    "host graph": _hosts,
    "host labels": _host_labels,
    "ratings": _ratings,
    "crawl": _crawl,
    "model": _model,
}
