"""HTML page of a comparison of rankers: verdict, gains at the top, main drivers, and the first rows of the list."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from functools import partial
from math import isfinite, sqrt
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri

from apexrank.comparison.profile import ColumnProfile
from apexrank.comparison.result import Comparison, Part, in_words
from apexrank.comparison.trials import SHARES
from apexrank.metrics.confidence import Interval, are_counts
from apexrank.plot.effects import Effect, Effects, PairEffect, date_text, effect_limits, value_text
from apexrank.report.charts import Axis, Chart, fit_name
from apexrank.report.page import level, number, render

_ROWS = 20  # rows of the list on the page; the download has more
_LONG = re.compile(r"-?\d+\.\d{4,}")  # a number in a text file with too many digits to display
_VALUES = 8  # columns whose values are shown beside the drivers of a row
_DRIVERS, _SHAPES = 15, 6
_EFFECTS, _PAIRS = 12, 6  # maximum number of panels of columns and of pairs
_STRIP = 0.16  # fraction of a panel for the distribution of the rows
_CELLS = 3  # cells of a heat map between neighbouring knots
_LEVELS, _STEPS = 7, 12  # levels of a category, and points of a number, in an effect chart
_COLUMNS = 200  # maximum number in tables of columns and in the download
_BINS = 30
_MOST_BYTES = 1_000_000  # maximum size of the download, which is embedded in the page


def page(found: Comparison, *, title: str | None = None) -> str:
    """Create the HTML page of a comparison."""
    own, base = found.recommended, found.base
    order = list(dict.fromkeys([own, base, *range(len(found.names))]))
    importance = _importance(found)
    largest = np.argsort(-importance, kind="stable").tolist()
    share = found.top.share
    end = 0.3 if share is None else min(1.0, max(0.1, 3 * share))
    listed, data = _download(found, sorted(largest[:_COLUMNS]))
    return render(
        "rankers.html",
        found,
        title or found.title,
        level=level(found.confidence),
        setting=in_words(found.settings[own]),
        rankers=[_measures(found, i) for i in range(len(found.names))],
        counts=found.weight is None or are_counts(found.weight),
        legend=[(f"s{place}", found.names[i]) for place, i in enumerate(order)],
        at_top=_at_top(found),
        gains=_gains(found, order, end),
        curves=[_gains(found, order, 1.0), _lift(found, order), _precision_recall(found, order)],
        histogram=_histogram(found),
        calibration=_calibration(found.parts(own), found),
        importance=importance,
        drivers=[j for j in largest if importance[j] > 0][:_DRIVERS],
        bar=partial(_bar, most=float(importance.max(initial=0)) or 1.0),
        effects=_effects(found),
        shapes=_shapes(found, largest[:_SHAPES]) if found.additive != own or found.effects is None else [],
        shown=largest[:_VALUES],
        first=range(0 if found.first is None else min(_ROWS, len(found.first.rows))),
        numeric=[column.kind != "category" for column in found.columns],
        cell=_cell,
        most=_COLUMNS,
        listed=listed,
        data=data,
    )


def _importance(found: Comparison) -> np.ndarray:
    """Mean absolute contribution of each column to a score, as a share of all columns; 0 if not available."""
    if found.sample is None or found.sample.parts is None:
        return np.zeros(len(found.columns))
    weight = None if found.weight is None else found.weight[found.sample.rows]
    if weight is not None and not weight.any():
        weight = None
    sizes = np.average(np.abs(found.sample.parts), axis=0, weights=weight)
    return sizes / (sizes.sum() or 1.0)


def _measures(found: Comparison, i: int) -> dict[str, Any]:
    """Row of the table of rankers."""
    gap = None if i == found.base else found.difference(i, found.base)
    return {
        "name": found.names[i],
        "value": _with_ends(found.value(i)),
        "gap": "" if gap is None else f"{100 * gap.value:+.1f} points".replace("-", "−"),
        "gap_ends": "" if gap is None else _ends(gap, "{:+.1f}"),
        "direction": "still" if gap is None else "up" if gap.low > 0 else "down" if gap.high < 0 else "still",
        "average_precision": found.value(i, "average_precision").value,
        "auc": found.value(i, "auc").value,
    }


def _with_ends(interval: Interval) -> tuple[str, str]:
    """Format a share as a percentage, with the ends of its interval."""
    kept = interval._replace(low=max(interval.low, 0.0), high=min(interval.high, 1.0))
    return f"{100 * interval.value:.1f} %", _ends(kept if isfinite(interval.low) else interval, "{:.1f}")


def _ends(interval: Interval, form: str) -> str:
    if not isfinite(interval.low):
        return ""
    low, high = (form.format(100 * end).replace("-", "−") for end in (interval.low, interval.high))
    return f"{low} to {high}"


def _gain(found: Comparison, i: int) -> np.ndarray:
    """Share of the positives found, and the ends of its interval, at each of ``SHARES``, as rows."""
    return np.clip(np.array([interval[:3] for interval in found.gain(i)]).T, 0, 1)


def _at_top(found: Comparison) -> str:
    """Sentence on the positives found at the top of the list."""
    name, share = found.names[found.recommended], found.top.share
    if share is None:
        text, ends = _with_ends(found.value(found.recommended))
        within = f" ({ends} %)" if ends else ""
        return f"At {number(100 * (found.top.fpr or 0))} % false alarms, {name} finds {text}{within} of the positives."
    value, low, high = (float(np.interp(share, SHARES, row)) for row in _gain(found, found.recommended))
    ends = f"{100 * low:.0f} to {100 * high:.0f} %"
    within = f" ({level(found.confidence)} interval {ends})" if low < high else ""
    read = number(100 * share)
    return (
        f"Reading the first {read} % of the list of {name} finds {100 * value:.0f} % of the positives{within}; "
        f"in random order it would be {read} %."
    )


def _mark_top(found: Comparison, chart: Chart) -> None:
    share = found.top.share
    if share is not None and share < chart.x.high:
        chart.rule(share, chart.y.low, share, chart.y.high)


def _gains(found: Comparison, order: list[int], end: float) -> Chart:
    """Positives found against rows read, with bands for the recommended ranker and the baseline."""
    seen = end * 1.001 >= SHARES
    curves = [_gain(found, i)[:, seen] for i in order]
    tops = [np.nanmax(curve) for curve in curves]
    high = 1.0 if end == 1 else min(1.0, 1.04 * float(max(*tops, end)))
    chart = Chart(Axis(0, end, "rows read", percent=True), Axis(0, high, "positives found", percent=True))
    for place, curve in enumerate(curves[:2] if end < 1 else []):
        if order[place] in (found.recommended, found.base):
            chart.band(SHARES[seen], curve[1], curve[2], series=place)
    chart.line([0, end], [0, min(end, high)], classes="baseline", title="random order")
    for place, curve in reversed(list(enumerate(curves))):
        chart.line(SHARES[seen], curve[0], series=place, title=found.names[order[place]])
    _mark_top(found, chart)
    if end < 1 and found.top.share is not None:
        chart.text(found.top.share, high, found.top.part, dx=5, dy=5, classes="soft")
    return chart


def _lift(found: Comparison, order: list[int]) -> Chart:
    """Lift: positives found relative to random order."""
    curves = [_gain(found, i)[0, 1:] / SHARES[1:] for i in order]
    chart = Chart(Axis(0, 1, "rows read", percent=True), Axis(0, 1.04 * float(np.max(curves)), "lift"))
    chart.line([0, 1], [1, 1], classes="baseline", title="random order")
    for place, curve in reversed(list(enumerate(curves))):
        chart.line(SHARES[1:], curve, series=place, title=found.names[order[place]])
    _mark_top(found, chart)
    return chart


def _precision_recall(found: Comparison, order: list[int]) -> Chart:
    chart = Chart(Axis(0, 1, "recall: positives found", percent=True), Axis(0, 1, "precision", percent=True))
    chart.line([0, 1], [found.base_rate] * 2, classes="baseline", title="base rate")
    for place, i in reversed(list(enumerate(order))):
        gain = _gain(found, i)[0, 1:]
        precision = np.minimum(found.base_rate * gain / SHARES[1:], 1)
        chart.line(gain, precision, series=place, title=found.names[i])
    return chart


def _histogram(found: Comparison) -> Chart:
    """Histogram of the recommended ranker's scores by class; extreme scores are in the outer bins."""
    scores = found.scores[found.recommended]
    low, high = np.quantile(scores, [0.002, 0.998])
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    weight = np.ones(len(scores)) if found.weight is None else found.weight
    shares = []
    for chosen in (found.y, ~found.y):
        counts = np.histogram(np.clip(scores[chosen], edges[0], edges[-1]), edges, weights=weight[chosen])[0]
        shares.append(counts / (counts.sum() or 1))
    ends = (edges[0], edges[-1])
    y_axis = Axis(0, 1.05 * float(np.max(shares)), "share of the class", percent=True)
    chart = Chart(Axis(*ends, "score"), y_axis)
    for place, share in enumerate(shares):
        x, y = np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(share, 2), [0.0]])
        chart.band(x, np.zeros(len(x)), y, series=place)
        chart.line(x, y, series=place, title=("positive rows", "negative rows")[place])
    return chart


def _calibration(parts: list[Part], found: Comparison) -> Chart:
    """Share of positives in each tenth of the list, against the predicted probability if there is one."""
    ends = [_wilson(part, found.confidence) for part in parts]
    high = min(1.0, 1.04 * max(*(end for _, end in ends), *(part.predicted or 0 for part in parts)))
    y = Axis(0, high, "positive", percent=True)
    if parts[0].predicted is None:
        ticks = [(k, str(k)) for k in range(1, len(parts) + 1)]
        chart = Chart(Axis(0.4, len(parts) + 0.6, "tenth of the list, from the top", ticks=ticks), y)
        chart.rule(0.4, found.base_rate, len(parts) + 0.6, found.base_rate)
    else:
        chart = Chart(Axis(0, high, "predicted probability", percent=True), y)
        chart.line([0, high], [0, high], classes="baseline", title="predicted = observed")
    for k, (part, (low, top)) in enumerate(zip(parts, ends, strict=True), 1):
        x = k if part.predicted is None else part.predicted
        chart.line([x, x], [low, top])
        told = f"tenth {k}: {part.positive:.1%} positive" + (
            "" if part.predicted is None else f", {part.predicted:.1%} predicted"
        )
        chart.points([x], [part.positive], titles=[told])
    return chart


def _wilson(part: Part, confidence: float) -> tuple[float, float]:
    """Wilson confidence interval of a share of positives.

    Examples
    --------
    >>> [round(end, 3) for end in _wilson(Part(100, 0.1, None), 0.95)]
    [0.055, 0.174]
    """
    z, n, share = float(ndtri((1 + confidence) / 2)), part.rows, part.positive
    middle, reach = share + z**2 / (2 * n), z * sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, (middle - reach) / (1 + z**2 / n)), min(1.0, (middle + reach) / (1 + z**2 / n))


def _shapes(found: Comparison, columns: list[int]) -> list[tuple[str, Chart]]:
    """Mean effect on the score against the values of each column, all on one scale."""
    if found.sample is None or found.sample.parts is None:
        return []
    weight = np.ones(len(found.y)) if found.weight is None else found.weight
    weight, drawn = weight[found.sample.rows], []
    for j in columns:
        column, values = found.columns[j], found.sample.values.to_series(j)
        known = values.is_not_null().to_numpy() & (weight > 0)
        if values.dtype.is_numeric():
            known &= np.isfinite(values.to_numpy())
        if known.any() and found.sample.parts[:, j].any():
            parts = found.sample.parts[known, j]
            drawn.append(_mean_effect(column, values.filter(known), parts, weight[known]))
    limits = effect_limits(drawn) if drawn else (0.0, 1.0)
    return [(effect.name, _effect(effect, limits)) for effect in drawn]


def _mean_effect(column: ColumnProfile, values: pl.Series, parts: np.ndarray, weight: np.ndarray) -> Effect:
    """Mean effects of the levels of a category, or of numbers in bins of about equal size; without a band."""
    if column.kind == "category":
        frame = pl.DataFrame({"value": values, "part": parts * weight, "weight": weight})
        sums = frame.group_by("value", maintain_order=True).sum()
        places, means = np.arange(len(sums)), (sums["part"] / sums["weight"]).to_numpy()
        rest = places, places, sums["weight"].to_numpy(), tuple(map(str, sums["value"]))
        return Effect(column.name, places, _without_band(means), *rest)
    numbers = values.to_numpy()
    different = np.unique(numbers)
    cuts = np.unique(np.quantile(numbers, np.linspace(0, 1, _STEPS + 1)[1:-1]))
    bins = np.searchsorted(
        different if len(different) <= _STEPS else cuts, numbers
    )  # equal values share a bin
    total = np.bincount(bins, weight)
    kept = total > 0
    x, heights = (np.bincount(bins, weight * each)[kept] / total[kept] for each in (numbers, parts))
    counts, edges = np.histogram(numbers, _STEPS, weights=weight)
    effect = Effect(column.name, x, _without_band(heights), x, edges, counts)
    return effect._replace(is_date=column.kind == "date")


def _without_band(heights: np.ndarray) -> np.ndarray:
    return np.vstack([heights, np.full((2, len(heights)), np.nan)])


def _effects(found: Comparison) -> dict[str, Any]:
    """Charts of the additive ranker by column and pair, with their names; empty if there is none."""
    if found.effects is None or found.additive is None:
        return {}
    columns, pairs = found.effects()
    columns, pairs = columns[:_EFFECTS], pairs[:_PAIRS]
    if not columns:
        return {}
    limits = effect_limits(columns)
    most = Effects(columns, pairs).strongest
    return {
        "name": found.names[found.additive],
        "setting": in_words(found.settings[found.additive]),
        "banded": bool(np.isfinite(columns[0].effect[1:]).all()),
        "columns": [(effect.name, _effect(effect, limits)) for effect in columns],
        "pairs": [(" × ".join(pair.names), _pair(pair, most)) for pair in pairs],
        "most": most,
    }


def _effect(effect: Effect, limits: tuple[float, float]) -> Chart:
    """Effect of a column, as a curve or one mark per level, with its band and the distribution of the rows."""
    low, high = limits
    foot = low - (high - low) * _STRIP / (1 - _STRIP)
    y = Axis(foot, high, "effect on the score")
    if effect.levels:
        return _effect_of_levels(effect, y)
    x, (middle, below, above) = effect.shown
    first, last = effect.window
    span = last - first
    right = last + (0.02 if effect.missing is None else 0.22) * span
    days = [first + part * span for part in (1 / 6, 1 / 2, 5 / 6)]
    dates = [(day, date_text(day)) for day in days] if effect.is_date else None
    chart = Chart(Axis(first - 0.02 * span, right, ticks=dates), y, height=240)
    for a, b, height in zip(effect.edges[:-1], effect.edges[1:], effect.densities, strict=True):
        if a < last and b > first:
            top = foot + 0.9 * height * (low - foot)
            chart.bar(max(a, first), foot, min(b, last), top, classes="baseline soft")
    chart.rule(first, 0, last, 0)
    chart.band(x, below, above)
    chart.line(x, middle)
    knots = effect.knots[(effect.knots >= first) & (effect.knots <= last)]
    heights = np.interp(knots, effect.x, effect.effect[0])
    titles = [f"{value_text(value)}: {number(size)}" for value, size in zip(knots, heights, strict=True)]
    chart.points(knots, heights, size=3, titles=None if dates else titles)
    for shown, place, end, anchor in (
        (last < effect.knots[-1], last, -1, "end"),
        (first > effect.knots[0], first, 0, "start"),
    ):
        if shown:
            height = number(effect.effect[0, end], 2)
            told = f"{'to' if end else 'from'} {value_text(effect.x[end])}: {height}"
            chart.text(place, high, told, anchor=anchor, dy=10, classes="soft")
    if effect.missing is not None:
        place, (size, least, most) = last + 0.12 * span, effect.missing
        chart.line([place, place], [least, most], series=1, classes="solid")
        chart.points([place], [size], series=1, shape="diamond", titles=[f"missing: {number(size)}"])
        chart.text(right, foot, "missing", anchor="end", dy=-4, classes="soft")
    return chart


def _effect_of_levels(effect: Effect, size: Axis) -> Chart:
    """One row per level, with the distribution on the left."""
    kept = effect.main_levels(_LEVELS)[::-1]
    rows = [(effect.levels[place], effect.effect[:, place], effect.counts[place]) for place in kept]
    if effect.missing is not None:
        rows.append(("missing", effect.missing, effect.missing_count))
    names = [(k, fit_name(name, 9)) for k, (name, _, _) in enumerate(rows)]
    if len(kept) < len(effect.levels):
        size = replace(size, label=f"effect of the {len(kept)} most frequent of {len(effect.levels)} values")
    chart = Chart(size, Axis(len(rows) - 0.4, -0.6, ticks=names, thin=False), height=240)
    width = 0.9 * _STRIP * (size.high - size.low) / (max(count for _, _, count in rows) or 1.0)
    chart.rule(0, len(rows) - 0.4, 0, -0.6)
    for k, (name, (middle, below, above), count) in enumerate(rows):
        missing = k == len(kept)
        chart.bar(size.low, k - 0.3, size.low + width * count, k + 0.3, classes="baseline soft")
        chart.line([below, above], [k, k], series=int(missing), classes="solid")
        shape = "diamond" if missing else None
        chart.points([middle], [k], series=int(missing), shape=shape, titles=[f"{name}: {number(middle)}"])
    return chart


def _pair(pair: PairEffect, most: float) -> Chart:
    """Heat map of a joint effect, with evenly spaced knots of both columns."""
    (across, up), values = pair.cells(_CELLS)
    ticks = [[(k, fit_name(text, 7)) for k, text in enumerate(texts)] for texts in pair.texts]
    x = Axis(across[0], across[-1], fit_name(pair.names[0], 20), ticks=ticks[0])
    y = Axis(up[0], up[-1], fit_name(pair.names[1], 14), ticks=ticks[1], thin=False)
    chart = Chart(x, y, height=300)
    chart.bar(x.low, y.low, x.high, y.high, classes="heat paper")  # covers the grid
    for i, j in np.ndindex(values.shape):
        ends, size = (*across[i : i + 2].tolist(), *up[j : j + 2].tolist()), float(values[i, j])
        box = (ends[0], ends[2], ends[1], ends[3])
        chart.bar(*box, series=int(size > 0), classes="heat", opacity=abs(size) / most)
    return chart


def _bar(share: float, most: float) -> str:
    chart = Chart(Axis(0, most, ticks=()), Axis(0, 1, ticks=()), width=160, height=16, margins=(2, 2, 0, 0))
    chart.bar(0, 0.2, share, 0.8)
    return chart.render()


def _cell(value: Any) -> str:
    """Format a table value; empty if it is missing."""
    if value is None or value != value:
        return ""
    if isinstance(value, str) and _LONG.fullmatch(value):
        value = float(value)
    return number(value, 4) if isinstance(value, float) else str(value)


def _download(found: Comparison, columns: list[int]) -> tuple[int, str]:
    """Number of rows in the download, and these rows as CSV in base64, with the values of the given columns."""
    if found.first is None:
        return 0, ""
    own, first = found.recommended, found.first
    reasons = [
        "; ".join(f"{name} = {_cell(value)}" for name, value, _ in first.drivers(place))
        for place in range(len(first.rows))
    ]
    given = {
        "place": np.arange(1, len(first.rows) + 1),
        "row": [found.row_names[row] for row in first.rows],
        "score": found.scores[own, first.rows],
        "positive": found.y[first.rows].astype(int),
        **({} if first.parts is None else {"main drivers": reasons}),
    }
    values = first.values[:, columns]
    named = {name + "_" * (name in values.columns): column for name, column in given.items()}
    frame = pl.concat([pl.DataFrame(named), values], how="horizontal")
    text = frame.write_csv()
    while len(text.encode()) > _MOST_BYTES and frame.height > _ROWS:
        frame = frame.head(frame.height // 2)
        text = frame.write_csv()
    return frame.height, base64.b64encode(text.encode()).decode()
