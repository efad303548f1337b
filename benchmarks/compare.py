"""``apexrank compare`` on tables of numbers and text, 5 % positive: wall and CPU seconds with the default candidates.

``python -m benchmarks.compare --only 5000`` measures one of the sizes. Run it on two versions of the package, one after
the other (``PYTHONPATH=src``), for the ratio. Needs ``pip install "apexrank[boosting]"``.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import polars as pl

from apexrank.comparison import compare_table
from apexrank.io import Recipe, Table
from benchmarks.timing import report

SIZES = ((5_000, 20), (50_000, 30))  # rows and columns
TEXTS = 4  # of the columns, with six values each


def make_table(n: int, d: int, seed: int = 0) -> Table:
    """Linear, curved, joint and categorical effects."""
    rng = np.random.default_rng(seed)
    X, words = rng.normal(size=(n, d - TEXTS)), rng.integers(0, 6, size=(n, TEXTS))
    X[:, ::5] = np.exp(X[:, ::5])
    slopes = rng.normal(size=X.shape[1]) * (rng.random(X.shape[1]) < 0.6)
    score = 0.4 * X @ slopes + np.sin(2 * X[:, 1]) + 0.5 * X[:, 2] * X[:, 3] + rng.logistic(size=n)
    score += 0.5 * rng.normal(size=(TEXTS, 6))[np.arange(TEXTS), words].sum(axis=1)
    columns = {f"x{j}": column.round(4) for j, column in enumerate(X.T)}
    columns |= {f"c{j}": np.array(list("abcdef"))[column] for j, column in enumerate(words.T)}
    return Table(pl.DataFrame({**columns, "y": score > np.quantile(score, 0.95)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, choices=[n for n, _ in SIZES], help="rows")
    only = parser.parse_args().only
    compare_table(make_table(400, 10), Recipe(target="y"), repeats=1)  # compiles
    rows = []
    for n, d in SIZES:
        if only in (None, n):
            table, wall, cpu = make_table(n, d), time.perf_counter(), time.process_time()
            found = compare_table(table, Recipe(target="y"))
            rows.append(
                {
                    "rows": n,
                    "columns": d,
                    "seconds": time.perf_counter() - wall,
                    "CPU seconds": time.process_time() - cpu,
                    "recommended": found.names[found.recommended],
                    "precision at the top": found.value(found.recommended).value,
                }
            )
    report("compare", "Comparison of the default candidates", rows)


if __name__ == "__main__":
    main()
