"""Measures of held-out rows at each p, with intervals, and the differences to p = 1 in the same draws."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from apexrank.metrics._rows import check_rows
from apexrank.metrics.confidence import LEAST_DEFINED, Interval, draw_rows, interval_of_draws
from apexrank.metrics.evaluation import Measure, find_measure, find_measures
from apexrank.report.push_verdict import level, shown

MOST_DRAWN = 5e7  # rows drawn in all: about five seconds
FEWEST_DRAWS = 200
_CUTS = (10, 50, 100)
FEWEST_OF_A_CLASS = 5  # held-out rows: of fewer the draws tell nothing


def chosen_measures(
    names: str | Iterable[str] | None, own: Measure | None, top: int, n: int, notes: list[str]
) -> tuple[list[Measure], str]:
    """What is measured, and the name of the one that decides: ``own``, what p was chosen by, where it is a measure."""
    if names is None:
        cuts = sorted({k for k in _CUTS if 3 * k <= n} | {top})
        precisions = [f"precision_at_{k}" for k in cuts]
        names = ["auc", "partial_auc_0.1", *precisions, "tpr_at_fpr_0.01", "average_precision"]
    found = find_measures(names)
    if own is None:
        own = find_measure("partial_auc_0.1")
        notes.append(f"the scoring is no measure of this library: the verdict is about the {own.label}")
    for measure in found:
        if measure.family is own.family and measure.options == own.options:
            return found, measure.name
    return [*found, own], own.name


def n_draws(n_resamples: int, rows: int, notes: list[str]) -> int:
    """How often to draw, so that it takes seconds."""
    most = max(FEWEST_DRAWS, int(MOST_DRAWN / rows))
    if n_resamples > most:
        notes.append(
            f"the intervals are of {most} draws instead of {n_resamples}, to save time with so many rows"
        )
    return min(n_resamples, most)


def paired_intervals(
    y: np.ndarray,
    scores: np.ndarray,
    measures: list[Measure],
    *,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: int | None = 0,
) -> tuple[dict[str, list[Interval]], dict[str, list[Interval | None]]]:
    """Bootstrap intervals of several rankers on the same rows, and of their differences to the first ranker.

    All share the draws of rows, so an interval of a difference is that of the differences in each draw. Where most
    draws have no value, or a class has fewer than 5 rows, the ends of an interval are NaN.

    Examples
    --------
    >>> y, scores = np.array([1, 0, 1, 0, 0]), np.array([[1.0, 2, 3, 0, 0], [3.0, 2, 3, 0, 0]])
    >>> values, gaps = paired_intervals(y, scores, find_measures("auc"), n_resamples=50)
    >>> [round(interval.value, 3) for interval in values["auc"]], round(gaps["auc"][1].value, 3)
    ([0.833, 1.0], 0.167)
    """
    lists = [check_rows(y, row, graded=True) for row in scores]
    if min(np.sum(y), np.sum(~np.asarray(y, dtype=bool))) < FEWEST_OF_A_CLASS:
        draws = np.full((n_resamples, len(lists), len(measures)), np.nan)
    else:
        draws = draw_rows(lists, measures, n_resamples, random_state, {})
    values: dict[str, list[Interval]] = {}
    gaps: dict[str, list[Interval | None]] = {}
    for j, measure in enumerate(measures):
        points = [measure.mean(rows) for rows in lists]
        interval = partial(_interval, confidence=confidence, n=len(y))
        values[measure.name] = [interval(point, draws[:, i, j]) for i, point in enumerate(points)]
        gaps[measure.name] = [None] + [
            interval(points[i] - points[0], draws[:, i, j] - draws[:, 0, j]) for i in range(1, len(lists))
        ]
    return values, gaps


def _interval(value: float, draws: np.ndarray, confidence: float, n: int) -> Interval:
    if np.sum(~np.isnan(draws)) < max(2, LEAST_DEFINED * len(draws)):
        return Interval(value, np.nan, np.nan, np.nan, confidence, n)
    return interval_of_draws(value, draws, confidence, "percentile", n)


def note_top(
    ps: tuple[float, ...], chosen: int, gaps: dict[str, list[Interval | None]], top: int, notes: list[str]
) -> None:
    """Say where another p than the chosen one does better at the very top, by which p was not chosen."""
    name = f"precision_at_{top}"
    better = [(gap.value, p) for p, gap in zip(ps, gaps.get(name, ()), strict=False) if gap and gap.low > 0]
    if chosen == 0 and better:
        notes.append(
            f"with p = {shown(max(better)[1])} more of the first {top} held-out rows are positive than with p = 1 (a "
            f"hint, no fair estimate): if only they matter, choose p by scoring {name}"
        )


def note_ties(ps: tuple[float, ...], chosen: int, scores: np.ndarray, top: int, notes: list[str]) -> None:
    """Say where the end of the top list parts rows of the same score."""
    for i in sorted({0, chosen}):
        falling = -np.sort(-scores[i])
        if top < len(falling) and falling[top - 1] == falling[top]:
            tied = int(np.sum(scores[i] == falling[top]))
            notes.append(
                f"p = {shown(ps[i])}: {tied:,} rows share the score at place {top}; the list shows them in input "
                "order, the measure counts their mean"
            )


def note_draws(confidence: float, n_resamples: int, notes: list[str]) -> None:
    """Say where an interval is the range of all draws, or nearly."""
    if (1 - confidence) / 2 * n_resamples < 1 - 1e-9:
        notes.append(
            f"{n_resamples:,} draws are too few for intervals of {level(confidence)} confidence: they end at the most "
            "extreme draws"
        )
