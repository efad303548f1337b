"""The page of a comparison of pushes: what each position of the slider over p shows."""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from apexrank.metrics import roc_points
from apexrank.metrics.measure import FAMILIES, find_measure
from apexrank.plot.style import Curve, corners
from apexrank.report.page import render
from apexrank.report.push_comparison import share_text
from apexrank.report.push_verdict import few_digits, level
from apexrank.report.svg import Axis, Chart, Svg, padded, thin

if TYPE_CHECKING:
    from apexrank.report.pushes import PushComparison

_FEATURES_SHOWN = 30
_CHARTS = 6
_COUNTS = ("dcg", "dcg_at", "average_reciprocal_rank", "push_dcg", "r_max")
_SHARES = [family for name, family in FAMILIES.items() if name not in _COUNTS]  # never above 1


def page(comparison: PushComparison, *, title: str | None = None, **options: Any) -> str:
    """HTML of the comparison; ``options`` as in `apexrank.report.page.render`."""
    start = comparison.chosen
    numbers = range(len(comparison.ps))
    return render(
        "pushes.html",
        title=title or comparison.title,
        subtitle=_subtitle(comparison),
        comparison=comparison,
        verdict=comparison.verdict,
        labels=[_label(comparison, number) for number in numbers],
        level=level(comparison.confidence),
        start=start,
        roc=[chart.render(start) for chart in _roc(comparison)],
        rows=[_rows(comparison, number) for number in numbers],
        fallen=[comparison.fallen(number) for number in numbers],
        found=[few_digits(comparison.found(number)) for number in numbers],
        tradeoff=[(label, chart.render(start)) for label, chart in _tradeoff(comparison)],
        measures=[_measures(comparison, number) for number in numbers],
        coefficients=[_coefficients(comparison, number) for number in numbers],
        more_features=max(0, len(comparison.feature_names) - _FEATURES_SHOWN),
        notes=comparison.notes,
        seconds=comparison.seconds,
        **options,
    )


def power(p: float) -> str:
    """What people call a push.

    Examples
    --------
    >>> power(1.0), power(2.5), power(float("inf"))
    ('p = 1', 'p = 2.5', 'p = ∞')
    """
    return "p = ∞" if np.isinf(p) else f"p = {p:g}"


def _label(comparison: PushComparison, number: int) -> str:
    """What the page calls a push: one without a minimum is never more than a curiosity."""
    text = power(comparison.ps[number])
    return f"{text} (no minimum but 0)" if comparison.collapsed[number] else text


def _subtitle(comparison: PushComparison) -> str:
    n = len(comparison.feature_names)
    return (
        f"{comparison.n_train:,} rows to learn from ({comparison.n_train_positives:,} positive), "
        f"{comparison.n_test:,} held-out rows to measure on ({comparison.n_test_positives:,} positive), "
        f"{n:,} feature{'' if n == 1 else 's'}"
    )


def _roc(comparison: PushComparison) -> list[Chart]:
    """The whole ROC curve, and its leftmost part, where the top of the list is."""
    negatives = comparison.n_test - comparison.n_test_positives
    left = min(negatives, max(10, round(0.05 * negatives)))
    curves = [corners(Curve(*roc_points(comparison.y, row)[:2])) for row in comparison.scores]
    highest = max(float(curve.true_positives[curve.false_positives <= left].max()) for curve in curves)
    whole = Chart(
        Axis(0, max(negatives, 1), "false positives"),
        Axis(0, max(comparison.n_test_positives, 1), "true positives"),
        title="ROC curve of the held-out rows, whole list",
        description="True against false positives; the slider draws another p, dashed is p = 1.",
    )
    top = Chart(
        Axis(0, max(left, 1), "false positives"),
        Axis(0, max(highest, 1) * 1.05, "true positives"),
        title="ROC curve of the held-out rows, leftmost part",
        description=f"The same up to {left} false positives, the top of the list.",
    )
    whole.rule(0, 0, max(negatives, 1), max(comparison.n_test_positives, 1))
    for number, curve in enumerate(curves):
        inside = _cut(curve, left)
        for chart, part in ((whole, curve), (top, inside)):
            x, y = thin(part.false_positives, part.true_positives)
            if number == 0:
                chart.line(x, y, classes="baseline", label="p = 1")
            chart.line(x, y, series=0, frame=number, label=power(comparison.ps[number]))
    return [whole, top]


def _cut(curve: Curve, left: float) -> Curve:
    """The curve up to so many false positives, with a last point at the edge."""
    x, y = curve
    inside = x <= left
    edge = float(np.interp(left, x, y))
    return Curve(np.r_[x[inside], left], np.r_[y[inside], max(edge, float(y[inside].max()))])


def _tradeoff(comparison: PushComparison) -> list[tuple[str, Chart]]:
    """A chart for each measure: its value at each p with a band of confidence, and where the slider stands."""
    places = np.arange(len(comparison.ps), dtype=float)
    ticks = [(float(i), power(p).removeprefix("p = ")) for i, p in enumerate(comparison.ps)]
    charts = []
    for name in shown_measures(comparison):
        intervals = comparison.measures[name]
        value, low, high = (
            np.array([getattr(interval, part) for interval in intervals]) for part in ("value", "low", "high")
        )
        measure = find_measure(name)
        highest = 1.0 if measure.family in _SHARES else inf
        ends = np.r_[value, low, high]
        y = Axis(*padded(ends, low=0.0 if np.nanmin(ends) >= 0 else -inf, high=highest))
        chart = Chart(
            Axis(-0.3, len(places) - 0.7, "p", ticks=ticks),
            y,
            title=f"{measure.label} against p",
            description=f"On the held-out rows, with bands of {level(comparison.confidence)} confidence.",
            height=240,
        )
        chart.band(places, low, high)
        chart.rule(-0.3, value[0], len(places) - 0.7, value[0])
        chart.line(places, value)
        for number, interval in enumerate(intervals):
            text = f"{power(comparison.ps[number])}: {interval.value:.3f}"
            if isfinite(interval.low):
                text += f" ({interval.low:.3f} to {interval.high:.3f})"
            chart.points([number], [interval.value], classes="open", titles=[text])
            chart.points([number], [interval.value], size=6, frame=number, titles=[text])
        charts.append((measure.label, chart))
    return charts


def shown_measures(comparison: PushComparison) -> list[str]:
    """The measures to show where there is room for a few: the one p was chosen by and the AUC first."""
    first = [name for name in (comparison.decided_by, "auc") if name in comparison.measures]
    return list(dict.fromkeys([*first, *comparison.measures]))[:_CHARTS]


def _measures(comparison: PushComparison, number: int) -> list[dict[str, Any]]:
    rows = []
    for name, intervals in comparison.measures.items():
        measure, gap = find_measure(name), comparison.differences[name][number]
        sign = 1 if measure.family.greater_is_better else -1
        low, high = (0.0, 0.0) if gap is None else sorted((sign * gap.low, sign * gap.high))
        row = {"label": measure.label, "base": intervals[0], "now": intervals[number], "difference": gap}
        rows.append({**row, "better": low > 0, "worse": high < 0})
    return rows


def _rows(comparison: PushComparison, number: int) -> list[tuple[Any, list[tuple[str, str]]]]:
    """The first rows of the list, each with what lifts it."""
    items = comparison.top_items(number)
    reasons = comparison.lifts(number, len(items))
    return [
        (item, [(lift.name, share_text(lift.share)) for lift in lifts])
        for item, lifts in zip(items, reasons, strict=True)
    ]


def _coefficients(comparison: PushComparison, number: int) -> list[dict[str, Any]]:
    """Each feature's share of the sum of all |coefficients|, with its sign, here and at p = 1.

    The coefficients of different p differ in size, so only shares can be compared.
    """
    shares = np.array([_shares(row) for row in comparison.coef])
    largest = np.argsort(-np.abs(shares).max(axis=0), kind="stable")[:_FEATURES_SHOWN]
    most = float(np.abs(shares).max()) or 1.0
    return [
        {
            "name": comparison.feature_names[feature],
            "base": shares[0, feature],
            "now": shares[number, feature],
            "change": shares[number, feature] - shares[0, feature],
            "bar": _bar(shares[number, feature], shares[0, feature], most),
        }
        for feature in largest.tolist()
    ]


def _shares(coefficients: np.ndarray) -> np.ndarray:
    total = float(np.abs(coefficients).sum())
    return coefficients / total if total else coefficients


def _bar(now: float, base: float, most: float) -> Svg:
    """A bar from the middle to a share, and a mark where it was at p = 1."""
    chart = Chart(
        Axis(-most, most, ticks=()),
        Axis(0, 1, ticks=()),
        title="",
        width=160,
        height=16,
        margins=(2, 2, 0, 0),
    )
    chart.rule(0, 0, 0, 1)
    chart.bar(0, 0.2, now, 0.8, series=0 if now >= 0 else 1)
    chart.points([base], [0.5], size=4, shape="diamond", classes="baseline")
    return chart.render(spark=True)
