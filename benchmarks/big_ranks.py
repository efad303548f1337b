"""Ranks of a billion edges from disk: time of a step beside one read of the edge files, and memory; peers beside it.

``python -m benchmarks.big_ranks 1e8 4e6`` takes other numbers of edges and vertices. Everything runs in processes whose
memory, but for mapped files, is limited to 8 GB (RLIMIT_DATA). Before a cold step or read the pages of the edge files
are taken out of the system's cache (POSIX_FADV_DONTNEED), as if the files were larger than memory.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from apexrank.graph import LpqRank, PageRank, ShardedGraph, open_shards
from apexrank.graph.lpq import Lpq
from apexrank.graph.power import Linear, Walk
from benchmarks.big_graph import make_shards
from benchmarks.timing import report

EDGES, VERTICES = 1_000_000_000, 40_000_000
MEMORY = 8_000_000_000
TOL = 1e-6
TIMED_STEPS = 3
BUFFER = 1 << 23


def edge_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.indices.npy"), *folder.glob("*.indptr.npy")])


def forget(folder: Path) -> None:
    """Take the edge files out of the cache."""
    for path in edge_files(folder):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(folder: Path) -> float:
    """Seconds of one sequential read of all edge files."""
    start, buffer = time.perf_counter(), bytearray(BUFFER)
    for path in edge_files(folder):
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return time.perf_counter() - start


def steps(say: Callable[[str], None], folder: Path, name: str) -> dict[str, Any]:
    """Time of steps with a cold and a warm cache, and steps to the tolerance."""
    map_, rank = {"PageRank": (Linear(), PageRank), "L_2,2.4": (Lpq(2.0, 1.2), LpqRank)}[name]
    graph = open_shards(folder)
    x = np.full(graph.n, 1 / graph.n)
    taken: dict[str, list[float]] = {"cold": [], "cached": []}
    with Walk(graph, map_, 0.85, x) as walk:
        walk.step(x)  # compiles, and checks the shards
        for cache, seconds in taken.items():
            say(f"steps, {cache}")
            for _ in range(TIMED_STEPS):
                if cache == "cold":
                    forget(folder)
                start = time.perf_counter()
                walk.step(x)
                seconds.append(time.perf_counter() - start)
    del walk
    say("ranking")
    start = time.perf_counter()
    fitted = rank(tol=TOL).fit(graph)
    return {
        **{f"s a step, {cache}": float(np.median(seconds)) for cache, seconds in taken.items()},
        "steps": fitted.n_iter_,
        "s in all": time.perf_counter() - start,
        "error bound": fitted.error_bound_,
    }


def scipy_rank(say: Callable[[str], None], folder: Path) -> dict[str, Any]:
    """The usual lines: a CSR matrix of float64 in memory and products with it."""
    from scipy import sparse

    graph = open_shards(folder)
    say("reading the indices")
    indptr, indices = whole(graph)
    say("the matrix's float64 entries")
    matrix = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(graph.n, graph.n))
    say("steps")
    x = np.full(graph.n, 1 / graph.n)
    taken = []
    for _ in range(TIMED_STEPS):
        start = time.perf_counter()
        x = 0.85 * (matrix @ (x / np.maximum(graph.out_weight, 1))) + 0.15 / graph.n
        taken.append(time.perf_counter() - start)
    return {"s a step, cached": float(np.median(taken))}


def igraph_rank(say: Callable[[str], None], folder: Path) -> dict[str, Any]:
    """igraph from an array of edges."""
    import igraph

    graph = open_shards(folder)
    say("reading the indices")
    indptr, indices = whole(graph)
    say("the array of edges")
    edges = np.empty((len(indices), 2), dtype=np.int64)
    edges[:, 0] = indices
    edges[:, 1] = np.repeat(np.arange(graph.n), np.diff(indptr))
    say("the graph")
    made = igraph.Graph(graph.n, edges, directed=True)
    say("PageRank")
    start = time.perf_counter()
    made.pagerank()
    return {"seconds": time.perf_counter() - start}


def whole(graph: ShardedGraph) -> tuple[np.ndarray, np.ndarray]:
    indices, indptr = np.empty(graph.n_edges, np.int32), np.zeros(graph.n + 1, np.int64)
    done = 0
    for shard in graph.shards:
        links = shard.load()
        indices[done : done + shard.n_edges] = links.indices
        indptr[shard.first + 1 : shard.last + 1] = done + links.indptr[1:]
        done += shard.n_edges
    return indptr, indices


def limited(function: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
    """Run in a process with limited memory; where it fails, the row says at what."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_limited, args=(there, function, *args))
    process.start()
    there.close()
    stage, row = "start", {}
    try:
        while True:
            kind, value = here.recv()
            if kind == "stage":
                stage = value
            else:
                row = value
    except EOFError:
        process.join()
    if "failed" in row or not row:
        row = {
            "outcome": f"{row.get('failed', f'ended by signal {-(process.exitcode or 0)}')} at: {stage}"
        } | row
        row.pop("failed", None)
    return row


def _limited(pipe: Any, function: Callable[..., dict[str, Any]], *args: Any) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    try:
        found = function(lambda stage: pipe.send(("stage", stage)), *args)
    except (MemoryError, ImportError) as error:
        found = {"failed": f"{type(error).__name__} ({error})"}
    except Exception as error:  # igraph has errors of its own
        found = {"failed": f"{type(error).__name__} ({str(error).splitlines()[0]})"}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    pipe.send(("row", found | {"peak GB": peak}))
    pipe.close()


def main(edges: int = EDGES, vertices: int = VERTICES) -> list[dict]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "edges.shards")
        start = time.perf_counter()
        graph = make_shards(folder, vertices, edges)
        print(f"{graph} written in {time.perf_counter() - start:.0f} s", flush=True)
        os.sync()  # pages that are not yet written cannot be taken out of the cache
        size = sum(path.stat().st_size for path in edge_files(folder))
        forget(folder)
        cold, cached = read(folder), read(folder)
        print(
            f"{size / 1e9:.2f} GB of edges: read in {cold:.1f} s, from the cache in {cached:.1f} s",
            flush=True,
        )
        rows: list[dict] = [
            {"what": "one read of the edge files", "s a step, cold": cold, "s a step, cached": cached}
        ]
        for name in ("PageRank", "L_2,2.4"):
            row = {"what": f"{name} from disk", **limited(steps, folder, name)}
            row["ratio"], row["limit"] = row["peak GB"] / (MEMORY / 1e9), 1.0
            row["of a read"] = row["s a step, cold"] / cold
            rows.append(row)
            print(row, flush=True)
        for name, peer in (("scipy", scipy_rank), ("igraph", igraph_rank)):
            rows.append({"what": f"{name} in memory", **limited(peer, folder)})
            print(rows[-1], flush=True)
    keys = list(dict.fromkeys(key for row in rows for key in row))
    filled = [{"edges": edges} | {key: row.get(key, "") for key in keys} for row in rows]
    return report("big_ranks", f"Ranks of {edges:,} edges from disk", filled)


if __name__ == "__main__":
    main(*(int(float(number)) for number in sys.argv[1:3]))
