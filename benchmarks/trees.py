"""Bags of trees and curves on the public tables for choosing: half of each table, at most 3,600 rows, for training.

``python -m benchmarks.trees FOLDER [TABLE ...]``; FOLDER has the files of ``python -m benchmarks.tables FOLDER``. Means
over the tables, and the difference in average precision from curves and trees with an interval. The trees are those of
LightGBM, and once those of scikit-learn, which stand in where LightGBM is not installed. Needs
``pip install "apexrank[boosting]"``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl
from sklearn.model_selection import train_test_split

from apexrank.io import Recipe, TableRanker
from apexrank.metrics import auc, average_precision, partial_auc
from apexrank.metrics.confidence import interval_of_mean
from apexrank.rankers import AdditiveRanker, CurvesAndTrees, TreeRanker
from benchmarks.tables import TARGET, names
from benchmarks.timing import report

MOST = 3600
BEST = "curves and trees"
RANKERS = {
    "curves": (AdditiveRanker(), "lightgbm"),
    "bag": (TreeRanker(), "lightgbm"),
    "bag of extra trees": (TreeRanker(extra=True), "lightgbm"),
    BEST: (CurvesAndTrees(), "lightgbm"),
    "bag by scikit-learn": (TreeRanker(), None),
    f"{BEST} by scikit-learn": (CurvesAndTrees(), None),
}


def measured(frame: pl.DataFrame) -> list[list[float]]:
    """Average precision, partial AUC, AUC and CPU seconds of each ranker."""
    y = frame[TARGET].to_numpy()
    size = min(MOST, len(y) // 2)
    train, test = train_test_split(np.arange(len(y)), train_size=size, stratify=y, random_state=0)
    found = []
    for ranker, library in RANKERS.values():
        began = time.process_time()
        with patch("apexrank.rankers.trees.find_spec", return_value=library):
            fitted = TableRanker.fit(frame[train], Recipe(TARGET, positive="1"), ranker)
        seconds, scores = time.process_time() - began, fitted.score(frame[test])
        top = partial_auc(y[test], scores, max_fpr=0.05)
        found.append([average_precision(y[test], scores), top, auc(y[test], scores), seconds])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("tables", nargs="*")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    files = [given.folder / f"{name}.parquet" for name in given.tables or names("choose")]
    values = np.array([measured(pl.read_parquet(file)) for file in files if file.exists()])
    gaps = values[:, [*RANKERS].index(BEST), 0, None] - values[:, :, 0]
    rows = []
    for i, name in enumerate(RANKERS):
        ap, top, area, seconds = values[:, i].mean(axis=0)
        gap = interval_of_mean(gaps[:, i], 10_000, 0.95, "percentile", 0)
        shown = {"ahead by": gap.value, "from": gap.low, "to": gap.high}
        rows.append({"ranker": name, "AP": ap, "pAUC 5 %": top, "AUC": area, "CPU seconds": seconds, **shown})
    report("trees", f"Trees and curves on {len(values)} tables", rows)


if __name__ == "__main__":
    main()
