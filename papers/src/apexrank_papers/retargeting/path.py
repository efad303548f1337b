"""Path of published monotone retargeting on MQ2008, alternation by alternation (Acharyya 2013, Figure 3.1).

The penalty is fixed, so nothing is chosen: the whole path is measured on the test queries of each fold.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl
from sklearn.exceptions import ConvergenceWarning

from apexrank import metrics
from apexrank.datasets import Fold
from apexrank.plot.style import curve_style, legend
from apexrank_papers.result import Figure, Result, Verdict, claim, draw_lines, panels, text_view, tidy
from apexrank_papers.retargeting.methods import DIVERGENCES
from apexrank_papers.retargeting.published import PublishedRetargeting
from apexrank_papers.splits import labels_of_tests, mq2008_folds, over_folds

SHOWN = (1, 2, 5, 10, 20, 40, 65, 90, 99)  # the dissertation took 65 (I-div), 90 (KL) and 99 (SQ) on average
ROUNDING = 1e-6  # tolerance of the fits, relative to the first cost


class Path(NamedTuple):
    """Scores of the test rows, length of the coefficients, cost, and cosine with the last, by alternation."""

    scores: np.ndarray
    size: np.ndarray
    cost: np.ndarray
    cosine: np.ndarray


def mr_path(*, alternations: int = 100, alpha: float = 1.0, n_jobs: int | None = None) -> Result:
    """Measure NDCG, cost and length of the coefficients after each alternation on MQ2008."""
    return run_folds(mq2008_folds(), alternations, alpha, n_jobs)


def run_folds(folds: list[Fold], alternations: int, alpha: float, n_jobs: int | None) -> Result:
    """Follow the three divergences over all folds."""
    follow = partial(_path, alternations=alternations, alpha=alpha)
    found = over_folds(follow, DIVERGENCES.values(), folds, n_jobs)
    paths = [Path(*map(_joined, zip(*of_folds, strict=True))) for of_folds in found]
    y, groups = labels_of_tests(folds)
    values = {"ndcg": [[metrics.ndcg(y, scores, groups=groups) for scores in path.scores] for path in paths]}
    values |= {name: [getattr(path, name).mean(axis=1) for path in paths] for name in Path._fields[1:]}
    table = tidy({"divergence": DIVERGENCES, "alternation": range(1, alternations + 1)}, values)
    shown = table.filter(pl.col("alternation").is_in(SHOWN))
    view = text_view(shown, "{ndcg:.4f} ({size:.0e})", "alternation", "divergence")
    notes = [
        f"alpha = {alpha:g}, {len(folds)} folds, first targets: the relevance. NDCG of the test queries, and in "
        "brackets the length of the coefficients relative to the first ones, means over the folds",
        *_told(table),
    ]
    verdicts = list(map(_verdict, DIVERGENCES, paths))
    return Result(table, view, verdicts, _figure(table), notes)


def _path(divergence: str, fold: Fold, alternations: int, alpha: float) -> Path:
    train = fold.train
    ranker = PublishedRetargeting(divergence, alpha=alpha, max_alternations=alternations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # vanishing scores are expected here
        w = ranker.fit(train.data, train.target, groups=train.groups).coef_path_
    length = np.linalg.norm(w, axis=1)
    cosine = w @ w[-1] / (length * length[-1])
    return Path(w @ fold.test.data.T, length / length[0], ranker.history_, cosine)


def _joined(parts: tuple[np.ndarray, ...]) -> np.ndarray:
    return np.hstack([part if part.ndim == 2 else part[:, None] for part in parts])


def _verdict(name: str, path: Path) -> Verdict:
    rise = float((np.diff(path.cost, axis=0) / path.cost[0]).max())
    fell = path.cost[-1].sum() / path.cost[0].sum()
    why = f"should never rise (sec. 3.3.1): ends at {fell:.0e} of the first"
    return claim(f"cost, {name}", rise <= ROUNDING, why)


def _told(table: pl.DataFrame) -> Iterator[str]:
    for (name,), rows in table.group_by("divergence", maintain_order=True):
        first, best, last = (rows.row(i, named=True) for i in (0, rows["ndcg"].arg_max(), -1))
        yield (
            f"{name}: NDCG {first['ndcg']:.4f} at first, {best['ndcg']:.4f} at best (alternation "
            f"{best['alternation']}), {last['ndcg']:.4f} at last. The last alternation multiplies the length of the "
            f"coefficients by {last['size'] / rows['size'][-2]:.3f}; halfway their cosine with the last ones is "
            f"{rows['cosine'][len(rows) // 2]:.4f}"
        )


def _figure(table: pl.DataFrame) -> Figure:
    figure, axes = panels(9, 3.6, 1, 2)
    drawn = {"ndcg": "NDCG of the test queries", "size": "length of w, first = 1"}
    for ax, (column, label) in zip(axes, drawn.items(), strict=True):
        lines = {
            str(name): (rows["alternation"], rows[column])
            for (name,), rows in table.group_by("divergence", maintain_order=True)
        }
        draw_lines(ax, lines, curve_style, xlabel="alternation", ylabel=label)
    axes[1].set_yscale("log")
    legend(axes[0])
    return figure
