"""k-means with orders as centres beside scikit-learn's Lloyd iterations: the time of a step, and of a whole fit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from apexrank.aggregation.kmeans import LovaszBregmanKMeans
from benchmarks.timing import peak_megabytes, report

ROWS, ITEMS, CLUSTERS = 100_000, 100, 8
STEPS = (5, 25)  # neither has converged: the difference is 20 steps without the set-up
REPEATS = 5
LIMIT = 1.5  # of scikit-learn's time


def data() -> np.ndarray:
    """Voters without clusters, whose rows keep moving."""
    return np.random.default_rng(0).random((ROWS, ITEMS))


def timed(model: LovaszBregmanKMeans | KMeans, X: np.ndarray, steps: int) -> float:
    start = time.perf_counter()
    model.set_params(max_iter=steps).fit(X)
    passed = time.perf_counter() - start
    if model.n_iter_ != steps:
        raise RuntimeError(f"{model!r} ended after {model.n_iter_} steps, before {steps}")
    return passed


def row(name: str, ours: Callable[..., LovaszBregmanKMeans], X: np.ndarray) -> dict:
    """Best times of fits taken in turns, so that both meet the same load."""
    options = {"init": X[:CLUSTERS], "n_init": 1, "tol": 0}
    peers = {
        "apexrank": ours(CLUSTERS, **options),
        "scikit-learn": KMeans(CLUSTERS, algorithm="lloyd", **options),
    }
    best = {(peer, steps): np.inf for peer in peers for steps in STEPS}
    for repeat in range(REPEATS + 1):
        for (peer, steps), so_far in best.items():
            passed = timed(peers[peer], X, steps)
            if repeat:  # the first one warms up
                best[peer, steps] = min(so_far, passed)
    few, many = STEPS
    step = {peer: 1e3 * (best[peer, many] - best[peer, few]) / (many - few) for peer in peers}
    return {
        "data": name,
        **{f"{peer}, a step (ms)": value for peer, value in step.items()},
        "ratio": step["apexrank"] / step["scikit-learn"],
        "limit": LIMIT,
        f"ratio of fits of {many} steps": best["apexrank", many] / best["scikit-learn", many],
        "peak of a fit (MB)": peak_megabytes(lambda: timed(peers["apexrank"], X, few)),
        "X (MB)": X.nbytes / 2**20,
    }


def main() -> None:
    X = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # cut short on purpose
        rows = [
            row("orders, float64", LovaszBregmanKMeans, X),
            row("orders, float32", LovaszBregmanKMeans, X.astype(np.float32)),
            row(
                "orders and Euclidean, float64", lambda k, **o: LovaszBregmanKMeans(k, euclidean=1.0, **o), X
            ),
        ]
    report("kmeans", f"k-means of {ROWS:,} × {ITEMS} scores, {CLUSTERS} clusters", rows)


if __name__ == "__main__":
    main()
