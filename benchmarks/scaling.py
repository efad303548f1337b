"""What a row costs in each pass of a fit, on one core, two cores, two Dask workers, from disk and on a GPU.

``python -m benchmarks scaling`` measures all but the GPU here; its figures come from ``python benchmarks/gpu.py`` on a
machine that has one, as they were kept in ``docs/_data/benchmarks.json``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.blocks import rows_of
from benchmarks.timing import report

ROWS, COLUMNS, BLOCKS = 4_000_000, 64, 16
PASSES = 25  # of a fit, about what L-BFGS takes to 1e-6 on data such as those of these benchmarks
KEPT = Path(__file__).parent.parent / "docs" / "_data" / "benchmarks.json"


def pass_seconds(threads: int, dtype: str) -> float:
    """Time of one value and gradient in a process that has so many threads."""
    code = f"from benchmarks.scaling import one_pass; print(one_pass({dtype!r}))"
    environment = {**os.environ, "NUMBA_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def one_pass(dtype: str) -> float:
    from apexrank.objectives import Push
    from apexrank.prices import Power
    from apexrank.problem import Problem
    from benchmarks.timing import seconds

    parts = [rows_of(k, ROWS // BLOCKS, COLUMNS) for k in range(BLOCKS)]
    X = np.concatenate([X.astype(dtype) for X, _ in parts])
    positive = np.concatenate([y for _, y in parts]) == 1
    del parts
    problem = Problem(X, Push(positive, price=Power(4)), 1e-4)
    w = np.full(COLUMNS, 1e-2)
    return seconds(lambda: problem.value_and_grad(w))


def counting_solver() -> tuple[object, list[float]]:
    """L-BFGS that keeps the time of each value and gradient."""
    from dataclasses import dataclass

    from apexrank.solvers import LBFGS

    times: list[float] = []

    @dataclass(frozen=True)
    class Timed(LBFGS):
        def solve(self, problem, w0):
            plain = problem.value_and_grad

            def value_and_grad(w):
                start = time.perf_counter()
                found = plain(w)
                times.append(time.perf_counter() - start)
                return found

            problem.value_and_grad = value_and_grad
            return super().solve(problem, w0)

    return Timed(), times


def block_seconds(blocks) -> float:
    from apexrank import PNormPush

    solver, times = counting_solver()
    PNormPush(p=4, alpha=1e-4, solver=solver).fit(blocks, None)
    return float(np.median(times))


def make_block(k: int):
    from apexrank.problem.blocks import Block

    return Block(*rows_of(k, ROWS // BLOCKS, COLUMNS))


def dask_seconds(workers: int) -> float:
    import dask
    from distributed import Client, LocalCluster, wait

    from apexrank.distributed import DaskBlocks

    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster):
        blocks = DaskBlocks([dask.delayed(make_block)(k) for k in range(BLOCKS)])
        wait(blocks.parts)
        block_seconds(blocks)  # every worker compiles
        return block_seconds(blocks)


def file_seconds() -> float:
    from apexrank.problem.blocks import ArrayBlocks

    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "X.npy"
        X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(ROWS, COLUMNS))
        labels, step = [], ROWS // BLOCKS
        for k in range(BLOCKS):
            X[k * step : (k + 1) * step], y = rows_of(k, step, COLUMNS)
            labels.append(y)
        X.flush()
        del X
        return block_seconds(ArrayBlocks(path, np.concatenate(labels), rows=step))


def row(where: str, precision: str, columns: int, nanoseconds: float) -> dict:
    """Cost of a row, and what it makes for a billion rows of 64 columns, at the same bytes per second."""
    size = {"float32": 4, "float64": 8}[precision]
    speed = columns * size / nanoseconds  # GB/s
    billion = 1e9 * 64 * size / (1e9 * speed)
    return {
        "where": where,
        "precision": precision,
        "columns": columns,
        "ns a row": nanoseconds,
        "GB/s": speed,
        "1e9 rows (GB)": 64.0 * size,
        "a pass (s)": billion,
        f"{PASSES} passes (min)": PASSES * billion / 60,
    }


def main() -> None:
    rows = [
        row(f"{threads} core{'s' * (threads > 1)}", dtype, COLUMNS, 1e9 * pass_seconds(threads, dtype) / ROWS)
        for dtype in ("float64", "float32")
        for threads in (1, 2)
    ]
    rows.append(row("one process, from a .npy file", "float64", COLUMNS, 1e9 * file_seconds() / ROWS))
    rows += [
        row(f"Dask, {w} worker{'s' * (w > 1)}", "float64", COLUMNS, 1e9 * dask_seconds(w) / ROWS)
        for w in (1, 2)
    ]
    if KEPT.exists():
        for found in json.loads(KEPT.read_text())["benchmarks"]["gpu"]["rows"]:
            n, d = found["rows"], found["columns"]
            per_row = 1e6 * found["value and gradient (ms)"] / n
            rows.append(row(f"GPU, {n:,} rows", found["precision"], d, per_row))
    report("scaling", "Cost of a row in each pass of a fit, p = 4", rows)


if __name__ == "__main__":
    main()
