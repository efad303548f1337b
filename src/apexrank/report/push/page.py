"""HTML page of a comparison of pushes, with a slider over p."""

from __future__ import annotations

from functools import partial
from math import inf, isfinite

import numpy as np

from apexrank.metrics import roc_points
from apexrank.metrics.confidence import Interval
from apexrank.metrics.evaluation import FAMILIES, find_measure
from apexrank.plot.style import Curve, corners
from apexrank.report.charts import Axis, Chart, padded, steps_chart, thin
from apexrank.report.page import few_digits, level, power_label, render
from apexrank.report.push.result import PushComparison

_FEATURES_SHOWN = 30
_CHARTS = 6
_COUNTS = ("dcg", "dcg_at", "average_reciprocal_rank", "push_dcg", "r_max")
_SHARES = [family for name, family in FAMILIES.items() if name not in _COUNTS]  # never above 1


def page(comparison: PushComparison, *, title: str | None = None) -> str:
    """HTML of the comparison."""
    start = comparison.chosen
    numbers = range(len(comparison.ps))
    totals = np.abs(comparison.coef).sum(axis=1, keepdims=True)
    shares = comparison.coef / np.where(totals, totals, 1.0)  # coefficients of different p differ in size
    return render(
        "push.html",
        comparison,
        title or comparison.title,
        labels=[_label(comparison, number) for number in numbers],
        level=level(comparison.confidence),
        start=start,
        roc=_roc(comparison),
        rows=[list(zip(comparison.top_items(i), comparison.lifts(i), strict=True)) for i in numbers],
        found=[few_digits(comparison.found(number)) for number in numbers],
        tradeoff={name: _tradeoff(comparison, name) for name in shown_measures(comparison)},
        measure_labels={name: find_measure(name).label for name in comparison.measures},
        shares=shares,
        largest=np.argsort(-np.abs(shares).max(axis=0), kind="stable")[:_FEATURES_SHOWN].tolist(),
        bar=partial(_bar, most=float(np.abs(shares).max()) or 1.0),
        more_features=max(0, len(comparison.feature_names) - _FEATURES_SHOWN),
    )


def _label(comparison: PushComparison, number: int) -> str:
    """Label of a push on the page."""
    text = power_label(comparison.ps[number])
    return f"{text} (no minimum but 0)" if comparison.collapsed[number] else text


def _roc(comparison: PushComparison) -> list[Chart]:
    """The whole ROC curve, and its leftmost part, where the top of the list is."""
    positives = max(comparison.n_test_positives, 1)
    negatives = max(comparison.n_test - comparison.n_test_positives, 1)
    left = min(negatives, max(10, round(0.05 * negatives)))
    curves = [corners(Curve(*roc_points(comparison.y, row)[:2])) for row in comparison.scores]
    highest = max(float(curve.true_positives[curve.false_positives <= left].max()) for curve in curves)
    whole = Chart(Axis(0, negatives, "false positives"), Axis(0, positives, "true positives"))
    top = Chart(Axis(0, left, "false positives"), Axis(0, max(highest, 1) * 1.05, "true positives"))
    whole.rule(0, 0, negatives, positives)
    for frame, curve in enumerate(curves):
        for chart, part in ((whole, curve), (top, _cut(curve, left))):
            x, y = thin(part.false_positives, part.true_positives)
            if frame == 0:
                chart.line(x, y, classes="baseline", title="p = 1")
            chart.line(x, y, frame=frame, title=power_label(comparison.ps[frame]))
    return [whole, top]


def _cut(curve: Curve, left: float) -> Curve:
    """The curve up to so many false positives, with a last point at the edge."""
    x, y = curve
    inside = x <= left
    edge = float(np.interp(left, x, y))
    return Curve(np.r_[x[inside], left], np.r_[y[inside], max(edge, float(y[inside].max()))])


def _tradeoff(comparison: PushComparison, name: str) -> Chart:
    """A measure at each p with a band of confidence, and where the slider stands."""
    intervals = comparison.measures[name]
    value, low, high = np.array([interval[:3] for interval in intervals]).T
    ends = np.r_[value, low, high]
    highest = 1.0 if find_measure(name).family in _SHARES else inf
    return steps_chart(
        [power_label(p) for p in comparison.ps],
        Axis(*padded(ends, low=0.0 if np.nanmin(ends) >= 0 else -inf, high=highest)),
        value,
        [_with_ends(interval) for interval in intervals],
        bands=(low, high),
        height=240,
    )


def _with_ends(interval: Interval) -> str:
    ends = f" ({interval.low:.3f} to {interval.high:.3f})" if isfinite(interval.low) else ""
    return f"{interval.value:.3f}{ends}"


def shown_measures(comparison: PushComparison) -> list[str]:
    """The most important measures: the deciding one and the AUC first."""
    first = [name for name in (comparison.decided_by, "auc") if name in comparison.measures]
    return list(dict.fromkeys([*first, *comparison.measures]))[:_CHARTS]


def _bar(now: float, base: float, most: float) -> str:
    """A bar from the middle to a share, and a mark where it was at p = 1."""
    x, y = Axis(-most, most, ticks=()), Axis(0, 1, ticks=())
    chart = Chart(x, y, width=160, height=16, margins=(2, 2, 0, 0))
    chart.rule(0, 0, 0, 1)
    chart.bar(0, 0.2, now, 0.8, series=0 if now >= 0 else 1)
    chart.points([base], [0.5], size=4, shape="diamond", classes="baseline")
    return chart.render()
