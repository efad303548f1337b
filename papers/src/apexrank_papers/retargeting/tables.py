"""Listwise learning to rank on five-fold LETOR sets (Acharyya 2013, Tables 3.2–3.6 and Figures 3.3–3.10).

Every ranker is fitted on the training queries of a fold, and its settings (penalty, number of alternations, offsets,
trees) are chosen on the validation queries, never on the test queries. Each query is a test query once; values are
means over those that have a relevant document, with bootstrap intervals over queries.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.exceptions import ConvergenceWarning

from apexrank import metrics
from apexrank.datasets import Fold, letor_folds
from apexrank.plot.style import legend, line_style
from apexrank.validation import check_choice
from apexrank_papers.data.sources import MissingDataError
from apexrank_papers.printed import printed_table
from apexrank_papers.result import (
    Figure,
    Result,
    Verdict,
    draw_lines,
    interval_verdict,
    panels,
    signed_verdict,
)
from apexrank_papers.retargeting.methods import DIVERGENCES, Choice, Method, choose, ours, peers, published
from apexrank_papers.splits import gap_text, labels_of_tests, mq2008_folds, over_folds

MEASURES = {"NDCG": "ndcg", "MAP": "average_precision", "ERR": "err"}
PAPERS = ("mq2007", "mq2008", "ohsumed")
FIGURES = {  # the paper's, by divergence; the captions of 3.9 and 3.10 both say I-divergence
    "mq2007": {"I-div": "3.3", "SQ": "3.4", "KL": "3.5"},
    "mq2008": {"I-div": "3.6", "KL": "3.7", "SQ": "3.8"},
    "ohsumed": {"I-div": "3.9 or 3.10"},
}
CLAIMS = (("unnormalized MR", "baseline", "sec. 3.4"), ("MEMR", "unnormalized MR", "sec. 3.5"))
CLOSE = 0.01  # tolerance in NDCG for "as printed", because the printed number has no error


class Trial(NamedTuple):
    """One ranker on the test rows of all folds."""

    method: Method
    settings: list[str]
    scores: np.ndarray


def mq2008(*, trees: bool = True, n_jobs: int | None = None) -> Result:
    """Reproduce Tables 3.3 and 3.5 from the five files of MQ2008 in ``$APEXRANK_DATA/letor/MQ2008``."""
    folds = mq2008_folds(hint=", or run 'apexrank reproduce letor --data DIR'")
    return run_folds(folds, "mq2008", trees=trees, n_jobs=n_jobs)


def letor(*, data: str = "", paper: str = "mq2008", trees: bool = True, n_jobs: int | None = None) -> Result:
    """Run the same on any five-fold LETOR folder, next to the printed numbers of one of the dissertation's sets."""
    if not data:
        raise MissingDataError("letor needs a folder of five folds: name it with --data DIR")
    check_choice("paper", paper, PAPERS)
    return run_folds(list(letor_folds(data, null="min")), paper, trees=trees, n_jobs=n_jobs)


def run_folds(folds: list[Fold], paper: str, *, trees: bool, n_jobs: int | None) -> Result:
    """Choose, test and compare every ranker."""
    boosted, notes = peers() if trees else ([], [])
    methods = [*published(), *ours(), *boosted]
    y, groups = labels_of_tests(folds)
    trials = [
        Trial(method, [c.settings for c in found], np.concatenate([c.scores for c in found]))
        for method, found in zip(methods, over_folds(_quiet_choice, methods, folds, n_jobs), strict=True)
    ]
    table = pl.concat([_rows(trial, y, groups, _printed(paper, trial.method)) for trial in trials])
    relevant = len(np.unique(groups[y > 0]))
    told = [
        f"{len(folds)} folds, {len(np.unique(groups))} test queries, {relevant} of them with a relevant document: "
        "means are over those, intervals from a bootstrap over queries",
        "MR starts with the relevance as targets; in the rows 'start chosen' the start is chosen by validation too",
        *(f"{trial.method.name}, chosen on validation: {'; '.join(trial.settings)}" for trial in trials),
    ]
    verdicts = [*_verdicts(table), *_orders(trials, y, groups)]
    return Result(table, _view(table), verdicts, _figure(trials, y, groups, paper), [*told, *notes])


def _quiet_choice(method: Method, fold: Fold) -> Choice:
    """Choose without convergence warnings, because these methods rely on early stopping."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return choose(method, fold)


def _printed(paper: str, method: Method) -> dict[str, float | None]:
    own = printed_table(f"retargeting_{paper}").filter(method=method.family, divergence=method.divergence)
    row = own.row(0, named=True) if len(own) else {}
    return {name: float(row[name]) if row.get(name) else None for name in MEASURES}


def _rows(trial: Trial, y: np.ndarray, groups: np.ndarray, printed: dict[str, float | None]) -> pl.DataFrame:
    """Return one row for each measure, with its bootstrap interval over the queries."""
    rows = []
    for name, measure in MEASURES.items():
        interval: Any = metrics.bootstrap(measure, y, trial.scores, groups=groups)
        rows.append((trial.method.name, name, *interval[:3], printed[name]))
    schema = ["method", "measure", "value", "low", "high", "printed"]
    return pl.DataFrame(rows, schema, schema_overrides={"printed": pl.Float64}, orient="row")


def _view(table: pl.DataFrame) -> pl.DataFrame:
    """Show a row for each ranker: ours with the half-width of the interval, and the printed number."""
    columns: dict[str, list[Any]] = {"method": table["method"].unique(maintain_order=True).to_list()}
    for name in MEASURES:
        part = table.filter(measure=name)
        half = (part["high"] - part["low"]) / 2
        columns[name] = [f"{v:.4f} ± {h:.3f}" for v, h in zip(part["value"], half, strict=True)]
        columns[f"{name} printed"] = ["" if p is None else f"{p:.4f}" for p in part["printed"]]
    return pl.DataFrame(columns)


def _verdicts(table: pl.DataFrame) -> Iterator[Verdict]:
    for row in table.filter(pl.col("printed").is_not_null(), measure="NDCG").iter_rows(named=True):
        gap = row["value"] - row["printed"]
        sign = 1 if abs(gap) <= CLOSE else 0 if row["low"] <= row["printed"] <= row["high"] else -1
        why = f"NDCG {row['value']:.4f}, printed {row['printed']:.4f} ({gap:+.4f})"
        yield signed_verdict(row["method"], sign, f"{why}, inside the interval" if sign == 0 else why)


def _orders(trials: list[Trial], y: np.ndarray, groups: np.ndarray) -> Iterator[Verdict]:
    """Judge which method is better, as the text claims, by paired differences over the test queries."""
    scores = {(trial.method.family, trial.method.divergence): trial.scores for trial in trials}
    for (better, worse, where), divergence in product(CLAIMS, DIVERGENCES):
        pair = {name: scores[name, divergence] for name in (worse, better)}
        table = metrics.compare(pair, None, y, groups, measures=["ndcg"], baseline=worse, correction="none")
        row = table.filter(ranker=better).row(0, named=True)
        why = f"{where}: NDCG differs by {gap_text(row)}"
        gap = row["difference_low"], row["difference_high"]
        yield interval_verdict(f"{better} above {worse}, {divergence}", *gap, why)


def _figure(trials: list[Trial], y: np.ndarray, groups: np.ndarray, paper: str) -> Figure:
    """Draw NDCG and precision at 1 to 10 for each divergence (Figures 3.3–3.10)."""
    (figure, axes), cuts = panels(10, 11, 3, 2), range(1, 11)
    for row, divergence in zip(axes, ("I-div", "KL", "SQ"), strict=True):
        scores = {t.method.name: t.scores for t in trials if t.method.divergence == divergence}
        for ax, measure in zip(row, ("NDCG", "precision"), strict=True):
            names = [f"{measure.lower()}_at_{k}" for k in cuts]
            lines = {
                method: (cuts, list(metrics.evaluate(y, s, names, groups=groups, relevant=1).values()))
                for method, s in scores.items()
            }
            number = FIGURES[paper].get(divergence)
            title = divergence if number is None else f"{divergence} (Figure {number})"
            draw_lines(ax, lines, line_style, xlabel="k", ylabel=f"{measure} at k", title=title)
            legend(ax)
    return figure
