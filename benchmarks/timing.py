"""Timing and reporting shared by the benchmarks."""

from __future__ import annotations

import json
import platform
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numba
import numpy as np
import sklearn
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


def seconds(work: Callable[[], object], repeats: int = 5, *, warm_up: bool = True) -> float:
    """Best wall time of several runs, after one to warm up."""
    if warm_up:
        work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_megabytes(work: Callable[[], object]) -> float:
    """Peak of what Python and NumPy allocate while working, beyond what was there before."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - before) / 2**20


def status(field: str) -> int:
    """Bytes of this process as Linux counts them; getrusage would count the parent's peak as well."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def report(name: str, title: str, rows: list[dict]) -> list[dict]:
    """Print the rows as a table and write them to ``benchmarks/results/NAME.json``."""
    table = Table(title=title)
    for column in rows[0]:
        table.add_column(column)
    for row in rows:
        table.add_row(*(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()))
    Console(width=140).print(table)
    RESULTS.mkdir(exist_ok=True)
    machine = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": numba.config.NUMBA_NUM_THREADS,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
    found = {"date": datetime.now(UTC).date().isoformat(), "machine": machine, "rows": rows}
    (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1))
    return rows
