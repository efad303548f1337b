"""Default ridge penalty of the P-Norm Push, on held-out halves of tables of numbers.

    python -m benchmarks.default_penalty FOLDER [--halves 6] [--factors]

FOLDER has one Parquet file per table: numbers in all columns, and ``target`` of 0 and 1. Each table (at most 6,000
rows of it) is cut into random halves again and again; models are fitted on one half, with columns standardised there,
and rank the other. The measures are the precision in the first 5 % of the held-out rows (the share of positives where
that is smaller) and average precision, as means over the tables; *below* counts the tables on which a model is more
than one point of average precision below ``LogisticRegression()``. ``--factors`` shows multiples of ``alpha="auto"``
instead of the models.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from apexrank import PNormPush, PNormPushCV

LARGEST, TOP, REFERENCE = 6000, 0.05, "LogisticRegression, C = 1"
FACTORS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
GRID = (100.0, 10.0, 1.0, 0.1, 0.01)  # multiples of "auto" among which a search chooses


def models(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """The models compared, by name."""
    grid = [factor * PNormPush().fit(X, y).alpha_ for factor in GRID]
    logistic = LogisticRegression(max_iter=1000)
    search = GridSearchCV(logistic, {"C": np.logspace(-4, 1, 6)}, scoring="average_precision")
    found: dict[str, Any] = {REFERENCE: logistic, "LogisticRegression, C by validation": search}
    for p in (1, 4):
        found[f"push p = {p}, alpha = 1e-6"] = PNormPush(p, alpha=1e-6)
        found[f"push p = {p}, alpha = auto"] = PNormPush(p)
        found[f"push p = {p}, alpha by validation"] = PNormPushCV([p], grid, scoring="average_precision")
    return found


def multiples(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Pushes with multiples of the alpha of "auto"."""
    auto = PNormPush().fit(X, y).alpha_
    found = {f"push p = {p}, {f:g}·auto": PNormPush(p, alpha=f * auto) for p in (1, 4) for f in FACTORS}
    return {REFERENCE: LogisticRegression(max_iter=1000), **found}


def measures(y: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """Precision at the top, and average precision."""
    k = max(1, round(min(TOP, y.mean()) * len(y)))
    first = np.argsort(-scores, kind="stable")[:k]
    return float(y[first].mean()), float(average_precision_score(y, scores))


def halves(path: Path, n: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Random halves of a table: rows and labels to fit on, rows and labels to rank."""
    table = pl.read_parquet(path)
    y, X = table["target"].to_numpy().astype(int), table.drop("target").to_numpy().astype(float)
    rows = np.random.default_rng(0).permutation(len(y))[:LARGEST]
    X, y = X[rows], y[rows]
    for a, b in StratifiedShuffleSplit(n, test_size=0.5, random_state=0).split(X, y):
        scale = StandardScaler().fit(X[a])
        yield scale.transform(X[a]), y[a], scale.transform(X[b]), y[b]


def study(path: Path, n: int, factors: bool) -> dict[str, np.ndarray]:
    """Mean measures of each model over the halves of a table."""
    found: dict[str, list[tuple[float, float]]] = {}
    for X, y, others, truth in halves(path, n):
        for name, model in (multiples if factors else models)(X, y).items():
            scores = model.fit(X, y).decision_function(others)
            found.setdefault(name, []).append(measures(truth, scores))
    return {name: np.mean(values, axis=0) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--halves", type=int, default=6)
    parser.add_argument("--factors", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = {
        path.stem: study(path, given.halves, given.factors) for path in sorted(given.folder.glob("*.parquet"))
    }
    reference = np.array([found[REFERENCE] for found in tables.values()])
    print(f"{len(tables)} tables, {given.halves} halves each\n")
    print(f"{'':38s}{'top 5 %':>9s}{'AP':>8s}{'below':>7s}{'above':>7s}{'worst':>8s}")
    for name in next(iter(tables.values())):
        values = np.array([found[name] for found in tables.values()])
        top, ap = values.mean(axis=0)
        gain = (values - reference)[:, 1]
        below, above = int((gain < -0.01).sum()), int((gain > 0.01).sum())
        print(f"{name:38s}{top:9.4f}{ap:8.4f}{below:7d}{above:7d}{gain.min():8.3f}")


if __name__ == "__main__":
    main()
