"""Graphs that do not fit into memory: a synthetic web graph written as shards, and edge files packed into them.

``python -m benchmarks big_graph`` packs 50 million edges of text; `make_shards` writes graphs of any size.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from apexrank.graph.pack import pack_graph
from apexrank.graph.shards import LINKS, ShardedGraph, ShardWriter, open_shards, shard_rows, writing_shards
from apexrank.kernels.edges import Links
from apexrank.kernels.jit import kernel
from benchmarks.timing import report, status

PACKED_EDGES, PACKED_VERTICES = 50_000_000, 5_000_000
MEMORY = 2e9
LOCAL = 0.7  # share of links from pages nearby, as those inside a site
NEAR = 1000  # pages
MANY = 100  # links, from which on they come from everywhere
DANGLING = 8  # one page in so many has no out-links


def make_shards(
    folder: str | Path, n_vertices: int, n_edges: int, seed: int = 0, links: int = LINKS
) -> ShardedGraph:
    """Write a synthetic web graph with memory for its vertices and one shard.

    In-degrees follow a power law with the exponent 2.1 of web graphs (Broder et al. 2000). Most links come from pages
    nearby, the others from pages whose out-degrees follow a power law as well; every eighth page is dangling.
    """
    degrees = np.empty(n_vertices, np.int64)
    _in_degrees(degrees, n_edges, seed)
    ends = np.concatenate([[0], np.cumsum(degrees)])
    with writing_shards(folder) as temporary:
        writer = ShardWriter(temporary, n_vertices)
        for first, last in shard_rows(ends, links):
            indptr = ends[first : last + 1] - ends[first]
            indices = np.empty(indptr[-1], np.int32)
            _draw_sources(indptr, indices, first, n_vertices, seed)
            writer.add(Links(indptr, indices, None))
        writer.finish()
    return open_shards(folder)


@kernel()
def _uniform(state):
    """The next state and a number from 0 to 1: SplitMix64 (Steele et al. 2014)."""
    state += np.uint64(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return state, np.float64(z >> np.uint64(11)) * 2.0**-53


@kernel()
def _in_degrees(degrees, total, seed):
    """Degrees of a power law that add up to the total; none above a hundredth of the vertices."""
    state, n = np.uint64(seed), degrees.size
    most = max(n // 100, 4)
    drawn = 0
    for i in range(n):
        state, u = _uniform(state)
        degrees[i] = min(int(1000 * (1.0 - u) ** (-1 / 1.1)), 1000 * most)
        drawn += degrees[i]
    left = total
    for i in range(n):
        state, u = _uniform(state)
        degrees[i] = min(int(degrees[i] * (total / drawn) + u), most, left)
        left -= degrees[i]
    while left > 0:
        for i in range(n):
            if left > 0 and degrees[i] < most:
                degrees[i] += 1
                left -= 1


@kernel()
def _draw_sources(indptr, indices, first, n, seed):
    state = np.uint64(seed) + np.uint64(first + 1) * np.uint64(0xD1342543DE82EF95)
    for row in range(indptr.size - 1):
        start, end = indptr[row], indptr[row + 1]
        if end - start > MANY:  # from everywhere: one of each part of the graph, in order
            source = np.int64(0)
            for k in range(start, end):
                state, u = _uniform(state)
                place = (k - start + u) / (end - start)
                source = max(source + 1, np.int64(n * place * place * place))
                source += source % DANGLING == 0
                indices[k] = source
            continue
        kept = start
        while kept < end:
            for k in range(kept, end):
                source = np.int64(-1)
                while source < 0 or source >= n or source % DANGLING == 0:
                    state, u = _uniform(state)
                    state, place = _uniform(state)
                    if u < LOCAL:
                        step = 1 + np.int64(NEAR * place * place * place)
                        source = first + row + (step if u < LOCAL / 2 else -step)
                    else:
                        source = np.int64(n * place * place * place)
                indices[k] = source
            kept = start + _sort_distinct(indices[start:end])


@kernel()
def _sort_distinct(values):
    """Sort in place, and move repeated values to the end; return the number of distinct ones."""
    if values.size > 32:
        values.sort()
    else:
        for i in range(1, values.size):
            value, j = values[i], i
            while j > 0 and values[j - 1] > value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
    kept = 1
    for i in range(1, values.size):
        if values[i] != values[kept - 1]:
            values[kept] = values[i]
            kept += 1
    return kept


def write_edges(graph: ShardedGraph, path: Path, text: bool, seed: int = 0) -> None:
    """Write the links of a graph as a text file, in parts that are shuffled inside."""
    rng = np.random.default_rng(seed)
    with path.open("wb") as file:
        file.write(b"source\ttarget\n")
        for shard in graph.shards:
            links = shard.load()
            targets = np.repeat(np.arange(shard.first, shard.last), np.diff(links.indptr))
            for rows in np.array_split(rng.permutation(len(targets)), 1 + len(targets) // 1_000_000):
                frame = pl.DataFrame({"source": links.indices[rows], "target": targets[rows]})
                if text:
                    frame = frame.select(_address(end) for end in frame.columns)
                frame.write_csv(file, include_header=False, separator="\t")


def _address(end: str) -> pl.Expr:
    return pl.format("https://site{}.example/page{}", pl.col(end) % 100_000, pl.col(end)).alias(end)


def _pack(path: Path, folder: Path, pipe: Any) -> None:
    """In a process of its own: the peak of memory counts from the start of a process."""
    start = time.perf_counter()
    pack_graph(path, folder, memory=MEMORY)
    pipe.send((time.perf_counter() - start, time.process_time(), status("VmHWM")))


def packing(edges: int = PACKED_EDGES, vertices: int = PACKED_VERTICES) -> list[dict]:
    """Edges a second and peak memory of packing a file with ids of numbers and one of text."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        graph = make_shards(f"{folder}/graph", vertices, edges)
        made = time.perf_counter() - start
        rows.append({"what": "synthetic graph", "edges": edges, "M edges/s": edges / made / 1e6})
        for text in (False, True):
            path = Path(folder, "edges.tsv")
            write_edges(graph, path, text)
            context = multiprocessing.get_context("spawn")
            here, there = context.Pipe()
            process = context.Process(target=_pack, args=(path, Path(folder, "packed"), there))
            process.start()
            there.close()
            seconds, cpu_seconds, peak = here.recv()
            process.join()
            packed = open_shards(f"{folder}/packed")
            assert packed.n_edges == graph.n_edges
            rows.append(
                {
                    "what": f"graph pack, ids of {'text' if text else 'numbers'}",
                    "edges": edges,
                    "M edges/s": edges / seconds / 1e6,
                    "M edges/CPU s": edges / cpu_seconds / 1e6,
                    "file GB": path.stat().st_size / 1e9,
                    "peak GB": peak / 1e9,
                }
            )
    return rows


def main() -> list[dict]:
    rows = packing()
    keys = list(rows[-1])
    filled = [{key: row.get(key, "") for key in keys} for row in rows]
    return report("big_graph", "Graphs in shards", filled)


if __name__ == "__main__":
    main()
