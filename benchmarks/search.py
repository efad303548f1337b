"""A search over p, alpha and folds against one fit: all fits together, and each on a copy of its rows.

``python -m benchmarks search`` takes 2 GB of memory and about ten minutes on two cores that have nothing else to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from apexrank.rankers import PNormPush, PNormPushCV
from apexrank.rankers import push as push_module
from benchmarks.blocks import status
from benchmarks.timing import report, seconds

ROWS, COLUMNS = 1_000_000, 64
GRID: dict[str, Any] = {"ps": [1, 2, 4, 8, 16], "alphas": "auto", "cv": 5}  # 5 alphas
RESEMBLANCE = {"independent": 0.0, "alike": 0.95}  # share of the first column in the others


def rows_of(share: float, n: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    X[:, 1:] += share * X[:, :1]
    return X, (X @ rng.normal(size=COLUMNS) / 8 + rng.normal(size=n) > 1.5).astype(np.int8)


def measured(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, seconds, and the most bytes above those at the start."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before, start = status("VmRSS"), time.perf_counter()
    found = work()
    return found, time.perf_counter() - start, status("VmHWM") - before


def searches(n: int = ROWS) -> list[dict]:
    found = []
    small, few = push_module.SMALL, rows_of(0.0, 20_000)
    PNormPush(p=4).fit(*few)  # compiles
    PNormPushCV(**GRID).fit(*few)
    for columns, share in RESEMBLANCE.items():
        X, y = rows_of(share, n)
        once = seconds(lambda X=X, y=y: PNormPush(p=4).fit(X, y), 3)
        tables = []
        for way, limit in (("together", small), ("one by one", np.inf)):
            push_module.SMALL = limit
            search, taken, peak = measured(lambda X=X, y=y: PNormPushCV(**GRID).fit(X, y))
            tables.append(search.cv_results_["mean_test_score"])
            found.append(
                {
                    "rows": n,
                    "columns": f"{COLUMNS} {columns}",
                    "fits": way,
                    "seconds of one fit": once,
                    "seconds": taken,
                    "ratio": taken / once,
                    "MB above X": peak / 1e6,
                    "p": search.p_,
                    "alpha": search.alpha_,
                    "largest difference of scores": float(np.abs(tables[-1] - tables[0]).max()),
                }
            )
        push_module.SMALL = small
    return found


def main() -> None:
    report(
        "search", "PNormPushCV, 5 p x 5 alphas x 5 folds, in fits of PNormPush on the same rows", searches()
    )


if __name__ == "__main__":
    main()
