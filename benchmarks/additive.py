"""Fits of curves beside LightGBM's 200 trees on the same rows: time, memory beside the data, and growth.

30 columns with 33 knots each, strengths and pairs by the data; half of the columns matter, some by curves and one pair
together. Both use all cores.
Then additive retargeting on many lists of 6 rows by either solver: Newton's Hessian has a column for each pooled block.

Needs ``pip install "apexrank[boosting]"``.
"""

from __future__ import annotations

import time

import numpy as np

from apexrank import AdditiveRanker
from apexrank.rankers import AdditiveRetargeting
from benchmarks.timing import peak_megabytes, report, seconds

ROWS, COLUMNS, TREES = (100_000, 300_000, 1_000_000), 30, 200
LISTS, KNOTS = (1_000, 4_000), 17


def make_rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with curved effects, 4 % of them positive."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    lift = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 - np.abs(X[:, 2]) + 0.3 * X[:, 3:10].sum(axis=1)
    return X, rng.random(n) < 1 / (1 + np.exp(4 - lift - 0.5 * X[:, 10] * X[:, 11]))


def many_lists() -> None:
    """Time and memory of additive retargeting on many short lists."""
    rows = []
    for n in LISTS:
        X, y = make_rows(6 * n)
        line: dict[str, float] = {"lists": n}
        for solver in ("newton", "lbfgs"):

            def fit(solver: str = solver, X: np.ndarray = X, y: np.ndarray = y) -> None:
                ranker = AdditiveRetargeting(n_knots=KNOTS, alpha=0.01, solver=solver)
                ranker.fit(X, y, groups=np.arange(len(y)) // 6)

            line[f"{solver}, seconds"] = seconds(fit, 3)
            line[f"{solver}, megabytes"] = peak_megabytes(fit)
        rows.append(line)
    report("additive_lists", "Additive retargeting on lists of 6 rows", rows)


def main() -> None:
    import lightgbm as lgb

    many_lists()

    AdditiveRanker().fit(*make_rows(2000))  # compiles
    rows = []
    for n in ROWS:
        X, y = make_rows(n)
        start = time.perf_counter()
        ranker = AdditiveRanker().fit(X, y)
        own = time.perf_counter() - start
        start = time.perf_counter()
        lgb.train({"objective": "binary", "verbosity": -1}, lgb.Dataset(X, y.astype(float)), TREES)
        trees = time.perf_counter() - start
        rows.append(
            {
                "rows": n,
                "seconds": own,
                "iterations": ranker.n_iter_,
                "duality gap": ranker.dual_gap_,
                "LightGBM, seconds": trees,
                "ratio": own / trees,
                "pairs": len(ranker.pairs_),
                "megabytes beside the data": peak_megabytes(
                    lambda X=X, y=y: AdditiveRanker().fit(X, y)  # type: ignore[misc]
                ),
            }
        )
    report("additive_fit", f"Curves of {COLUMNS} columns beside {TREES} trees", rows)


if __name__ == "__main__":
    main()
