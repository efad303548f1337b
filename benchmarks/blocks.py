"""Rows in blocks: memory out of core, and time on one and two Dask workers.

``python -m benchmarks blocks`` needs 5 GB of disk for a while, and a machine whose cores have nothing else to do.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from apexrank.distributed import DaskBlocks
from apexrank.io.stream import read_blocks
from apexrank.problem.blocks import ArrayBlocks, Block
from apexrank.rankers import PNormPush
from apexrank.solvers import LBFGS
from benchmarks.timing import report, status

FILE_ROWS, FILE_COLUMNS = 10_000_000, 50  # 4 GB
BLOCK_ROWS = 320_000  # 128 MB
DASK_ROWS, DASK_COLUMNS, DASK_BLOCKS = 12_000_000, 50, 16
MODEL = {"p": 4, "alpha": 1e-4, "solver": "lbfgs"}
ROUGH = {**MODEL, "tol": 1e-3}  # memory does not depend on the number of passes


def rows_of(k: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of block k, the same wherever they are made."""
    rng = np.random.default_rng(k)
    X = rng.normal(size=(n, d))
    X[:, 1:] += 0.95 * X[:, :1]  # columns that resemble each other take more passes
    return X, (X[:, :5].sum(axis=1) + 3 * rng.normal(size=n) > 6).astype(np.int8)


def write_file(path: Path, n: int) -> np.ndarray:
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(n, FILE_COLUMNS))
    labels = []
    for k, a in enumerate(range(0, n, BLOCK_ROWS)):
        rows, y = rows_of(k, min(BLOCK_ROWS, n - a), FILE_COLUMNS)
        X[a : a + len(y)] = rows
        labels.append(y)
    X.flush()
    return np.concatenate(labels)


def write_folder(folder: Path, n: int) -> None:
    import polars as pl

    names = [f"x{j}" for j in range(FILE_COLUMNS)]
    for k, a in enumerate(range(0, n, BLOCK_ROWS)):
        rows, y = rows_of(k, min(BLOCK_ROWS, n - a), FILE_COLUMNS)
        frame = pl.DataFrame(rows, schema=names).with_columns(pl.Series("y", y))
        frame.write_parquet(folder / f"{k:03d}.parquet", row_group_size=BLOCK_ROWS // 8)


def _measure(kind: str, path: str, y: np.ndarray | None, pipe) -> None:
    """In a process of its own: the peak counts from the start of a process."""
    X, labels = rows_of(0, 2000, FILE_COLUMNS)
    PNormPush(**MODEL).fit(ArrayBlocks(X, labels, rows=1000), None)  # compiles the kernels
    if kind == "parquet":
        next(read_blocks(path, "y", rows=10_000).tables())
    before, start = status("VmHWM"), time.perf_counter()
    # more would be an error; Polars reserves memory for each of its threads, most of which it never touches
    limit = status("VmData") + (2 if kind == "npy" else 6) * BLOCK_ROWS * FILE_COLUMNS * 8
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    blocks = (
        ArrayBlocks(path, y, rows=BLOCK_ROWS) if kind == "npy" else read_blocks(path, "y", rows=BLOCK_ROWS)
    )
    ranker = PNormPush(**ROUGH).fit(blocks, None)
    pipe.send((time.perf_counter() - start, status("VmHWM") - before, ranker.n_iter_, ranker.coef_))


def out_of_core(scratch: Path, n: int = FILE_ROWS) -> list[dict]:
    y = write_file(scratch / "X.npy", n)
    (scratch / "folder").mkdir()
    write_folder(scratch / "folder", n)
    block = BLOCK_ROWS * FILE_COLUMNS * 8
    found, coefs = [], []
    spawn = multiprocessing.get_context("spawn")
    for kind, path in (("npy", scratch / "X.npy"), ("parquet", scratch / "folder")):
        here, there = spawn.Pipe()
        process = spawn.Process(target=_measure, args=(kind, str(path), y if kind == "npy" else None, there))
        process.start()
        there.close()
        seconds, peak, n_iter, coef = here.recv()
        process.join()
        coefs.append(coef)
        found.append(
            {
                "rows": n,
                "columns": FILE_COLUMNS,
                "file": kind,
                "data MB": n * FILE_COLUMNS * 8 / 1e6,
                "block MB": block / 1e6,
                "peak above start, MB": peak / 1e6,
                "in blocks": peak / block,
                "iterations": n_iter,
                "seconds": seconds,
            }
        )
    assert np.allclose(coefs[0], coefs[1], rtol=1e-8)
    return found


def make_block(k: int) -> Block:
    return Block(*rows_of(k, DASK_ROWS // DASK_BLOCKS, DASK_COLUMNS))


@dataclass(frozen=True)
class KillOne(LBFGS):
    """Kills a process in the middle of a fit."""

    victims: ClassVar[list[int]] = []

    def solve(self, problem, w0):
        calls, plain = [], problem.value_and_grad

        def value_and_grad(w):
            calls.append(w)
            if len(calls) == 4 and self.victims:
                os.kill(self.victims.pop(), signal.SIGKILL)
            return plain(w)

        problem.value_and_grad = value_and_grad
        return super().solve(problem, w0)


def worker_memory() -> int:
    import psutil

    return psutil.Process().memory_info().rss


def on_dask() -> list[dict]:
    import dask
    from distributed import Client, LocalCluster, wait

    found, coefs, base = [], [], 0.0
    for workers, kill in ((1, False), (2, False), (2, True)):
        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=0
            ) as cluster,
            Client(cluster) as client,
        ):
            small = DaskBlocks([dask.delayed(Block)(*rows_of(k, 2000, DASK_COLUMNS)) for k in range(4)])
            PNormPush(**MODEL).fit(small, None)  # every worker imports and compiles
            before = max(client.run(worker_memory).values())
            blocks = DaskBlocks([dask.delayed(make_block)(k) for k in range(DASK_BLOCKS)])
            wait(blocks.parts)
            held = max(client.run(worker_memory).values()) - before
            if kill:
                KillOne.victims.append(next(iter(client.run(os.getpid).values())))
            start = time.perf_counter()
            ranker = PNormPush(**{**MODEL, "solver": KillOne()}).fit(blocks, None)
            seconds = time.perf_counter() - start
        base = base or seconds
        coefs.append(ranker.coef_)
        found.append(
            {
                "rows": DASK_ROWS,
                "columns": DASK_COLUMNS,
                "workers": workers,
                "one killed": "yes" if kill else "no",
                "iterations": ranker.n_iter_,
                "seconds": seconds,
                "of one worker": seconds / base,
                "most MB of a worker": held / 1e6,
                "largest difference": float(np.abs(ranker.coef_ - coefs[0]).max()),
            }
        )
    return found


def main() -> None:
    report("blocks_dask", "P-Norm Push on Dask workers of one thread", on_dask())
    with tempfile.TemporaryDirectory() as scratch:
        report("blocks_memory", "P-Norm Push out of core, one process", out_of_core(Path(scratch)))


if __name__ == "__main__":
    main()
