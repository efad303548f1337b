"""Ballots from disk: time of every rule and of a k-means step against one sequential read, and peak memory.

``python -m benchmarks votes`` needs 3 GB of disk for a while: ten million voters × 50 items in single precision as one
``.npy`` file, and the same marks from 0 to 100 in bytes as a folder of Parquet files.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from apexrank.aggregation import LovaszBregmanKMeans, aggregate, read_ballot_blocks
from apexrank.problem.blocks import ArrayBlocks
from benchmarks.blocks import status
from benchmarks.timing import report

VOTERS, ITEMS, CLUSTERS = 10_000_000, 50, 8
PART = 250_000  # voters of a Parquet file
NAMES = [f"item{j:02d}" for j in range(ITEMS)]
STEPS = 3  # of k-means at most
WORKS = {
    "npy": ("lovasz-bregman", "borda", "copeland", "median", "k-means, a pass"),
    "parquet": ("lovasz-bregman", "borda"),
}


def marks(k: int, n: int) -> np.ndarray:
    """Marks of part k from 0 to 100: voters of eight camps."""
    rng = np.random.default_rng(k)
    camps = np.random.default_rng(0).uniform(20, 80, (CLUSTERS, ITEMS))
    noise = rng.integers(-20, 21, (n, ITEMS), dtype=np.int8)
    return (camps[rng.integers(0, CLUSTERS, n)].astype(np.int8) + noise).astype(np.uint8)


def write(scratch: Path, n: int) -> None:
    import polars as pl

    (scratch / "parquet").mkdir()
    shape = n, ITEMS
    table = np.lib.format.open_memmap(scratch / "npy", mode="w+", dtype=np.float32, shape=shape)
    for k, a in enumerate(range(0, n, PART)):
        rows = marks(k, min(PART, n - a))
        table[a : a + len(rows)] = rows
        pl.DataFrame(rows, schema=NAMES).write_parquet(scratch / "parquet" / f"{k:03d}.parquet")
    table.flush()


def forget(files: list[Path]) -> None:
    """Drop the files from the page cache, so that each is read from the disk."""
    for file in files:
        with file.open("rb") as opened:
            os.fsync(opened)
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def sequential(files: list[Path]) -> float:
    forget(files)
    buffer, start = bytearray(2**24), time.perf_counter()
    for file in files:
        with file.open("rb", buffering=0) as opened:
            while opened.readinto(buffer):
                pass
    return time.perf_counter() - start


def run(name: str, blocks, rows: np.ndarray) -> float:
    """Seconds of a rule, or of one pass of k-means."""
    if not name.startswith("k-means"):
        start = time.perf_counter()
        aggregate(blocks, method=name)
        return time.perf_counter() - start
    model = LovaszBregmanKMeans(CLUSTERS, init=rows[:CLUSTERS], max_iter=STEPS, tol=0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(blocks)
    return (time.perf_counter() - start) / (
        2 + model.n_iter_
    )  # one for the constants, one before the first step


def _measure(kind: str, path: str, name: str, pipe) -> None:
    """In a process of its own: the peak counts from the start of a process."""
    rows = marks(0, 2000).astype(np.float32)
    run(name, ArrayBlocks(rows, rows=500), rows)  # compiles the kernels
    if kind == "parquet":
        next(iter(read_ballot_blocks(path, rows=1000)))
    before = status("VmHWM")
    blocks = ArrayBlocks(path) if kind == "npy" else read_ballot_blocks(path)
    pipe.send((run(name, blocks, rows), status("VmHWM") - before))


def measure(scratch: Path, n: int = VOTERS) -> list[dict]:
    write(scratch, n)
    spawn, found = multiprocessing.get_context("spawn"), []
    for kind, names in WORKS.items():
        path = scratch / kind
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        size = sum(file.stat().st_size for file in files)
        base = sequential(files)
        for name in names:
            forget(files)
            here, there = spawn.Pipe()
            process = spawn.Process(target=_measure, args=(kind, str(path), name, there))
            process.start()
            there.close()
            seconds, peak = here.recv()
            process.join()
            found.append(
                {
                    "voters": n,
                    "items": ITEMS,
                    "file": kind,
                    "file MB": size / 1e6,
                    "rule": name,
                    "seconds": seconds,
                    "of a sequential read": seconds / base,
                    "million voters a second": n / seconds / 1e6,
                    "peak above start, MB": peak / 1e6,
                }
            )
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        report("votes", "Ballots from disk in blocks of voters, one process", measure(Path(scratch)))


if __name__ == "__main__":
    main()
