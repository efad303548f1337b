"""Monotone retargeting: the segmented PAV beside a loop over SciPy's, and a fit beside LightGBM's lambdarank.

``pip install lightgbm`` for the second part.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.optimize import isotonic_regression
from sklearn.utils import Bunch

from apexrank import MonotoneRetargeting
from apexrank.datasets import letor_folds, make_letor_example
from apexrank.kernels.pav import pav
from apexrank_papers.data.sources import data_path
from benchmarks.timing import report, seconds


def many_groups(n_groups: int = 10_000) -> list[dict]:
    rng = np.random.default_rng(0)
    indptr = np.concatenate([[0], np.cumsum(rng.integers(1, 24, n_groups))])
    y, weight = rng.normal(size=indptr[-1]), rng.uniform(0.5, 2, indptr[-1])
    rows = []
    for name, w in (("PAV", None), ("weighted PAV", weight)):

        def loop(w: np.ndarray | None = w) -> list[np.ndarray]:
            cuts = pairwise(indptr)
            return [isotonic_regression(y[a:b], weights=None if w is None else w[a:b]).x for a, b in cuts]

        found, expected = pav(y, indptr, w), np.concatenate(loop())
        error = float(np.abs(found - expected).max())
        ours, theirs = seconds(lambda w=w: pav(y, indptr, w)), seconds(loop, repeats=2)
        rows.append(
            _row(f"{name}, {n_groups:,} groups (error {error:.0e})", ours, "SciPy in a loop", theirs, 0.2)
        )
    return rows


def training_data() -> tuple[Bunch, str]:
    folder = data_path("letor", "MQ2008")
    if folder is not None:
        return next(iter(letor_folds(folder))).train, "MQ2008, fold 1"
    return make_letor_example(n_queries=470, n_features=46, max_documents=40), "470 synthetic queries"


def one_fold() -> list[dict]:
    train, name = training_data()
    X, y, groups = train.data, train.target, train.groups
    ours = seconds(lambda: MonotoneRetargeting().fit(X, y, groups=groups))
    peer = _lambdarank(X, y, groups)
    if peer is None:
        print("LightGBM is not installed: pip install lightgbm for its time")
        return []
    theirs = seconds(peer, repeats=3)
    return [_row(f"{name}: {len(y):,} documents, one fit", ours, "LightGBM, 500 trees", theirs, 1.0)]


def _lambdarank(X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> Callable[[], object] | None:
    try:
        from lightgbm import LGBMRanker
    except ImportError:
        return None
    order = np.argsort(groups, kind="stable")
    sizes = np.unique(groups, return_counts=True)[1]
    ranker = LGBMRanker(objective="lambdarank", n_estimators=500, verbose=-1)
    return lambda: ranker.fit(X[order], y[order].astype(int), group=sizes)


def _row(what: str, ours: float, beside: str, theirs: float, limit: float) -> dict:
    return {
        "what": what,
        "ours (s)": ours,
        "beside": beside,
        "that (s)": theirs,
        "ratio": ours / theirs,
        "limit": limit,
    }


def main() -> None:
    report("retarget", "Monotone retargeting", [*many_groups(), *one_fold()])


if __name__ == "__main__":
    main()
