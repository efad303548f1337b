"""HTML pages of graph ranks: a comparison with a slider over the ranks, and a study of ranks under attack."""

from __future__ import annotations

from math import log

import numpy as np

from apexrank.datasets.attacks import KINDS
from apexrank.graph.base import best_vertices
from apexrank.graph.robustness import AttackResult, AttackStudy
from apexrank.metrics.precision import spam_met
from apexrank.report.charts import FONT, Axis, Chart, Style, fit_name, width_of
from apexrank.report.graph.result import BASELINE, RankComparison, RankedVertex
from apexrank.report.page import render

_POINTS = 900  # number of points in the chart of rank against rank, without suspects
_LINE_OF_TEXT = 15.0  # drawing units between two names
_SLOPE_MARGINS = (200.0, 150.0, 12.0, 46.0)
_GAP = 8.0  # space between a name and its neighbours
_DARKEST = 45  # maximum percentage of colour behind a number, for legibility


def page(comparison: RankComparison, *, title: str | None = None) -> str:
    """Create the HTML page of a comparison."""
    return render(
        "graph.html",
        comparison,
        title or comparison.title,
        labels=comparison.names,
        start=1,
        slopes=_slopes(comparison),
        scatter=_scatter(comparison),
        spam_met=None if comparison.spam is None else _spam_met(comparison),
        rows=[comparison.top_items(i) for i in range(len(comparison.names))],
    )


def _slopes(comparison: RankComparison) -> Chart:
    """Lines from the rank in PageRank to the current rank, for all vertices at the top of either."""
    lists = [[*comparison.top_items(i), *comparison.fallen(i)] for i in range(len(comparison.names))]
    deepest = max(max(item.rank, item.base_rank) for items in lists for item in items)
    across, down = Axis(0, 1, ticks=[(0, "PageRank"), (1, "now")]), Axis(max(2, deepest), 1, log=True)
    chart = Chart(across, down, width=540, height=540, margins=_SLOPE_MARGINS)
    for i, items in enumerate(lists):
        for item in items:
            way = f"{item.name}: {item.base_rank:,} to {item.rank:,}"
            series, classes = (1, "") if item.suspect else (0, "soft")
            ends = [item.base_rank, item.rank]
            chart.line([0, 1], ends, frame=i, series=series, classes=classes, title=way)
        _write_names(chart, items, i)
    return chart


def _write_names(chart: Chart, items: list[RankedVertex], i: int) -> None:
    """Write names at both ends of the lines, suspects first, then the best, as long as they do not overlap."""
    left, right, top, bottom = _SLOPE_MARGINS
    high = chart.height - top - bottom
    ticks = max(width_of(text) for _, text in chart.y.marks()) * FONT + 2 * _GAP
    for x, anchor, dx, room, place in (
        (0, "end", -ticks, left - ticks, "base_rank"),
        (1, "start", _GAP, right - _GAP, "rank"),
    ):
        taken: list[float] = []
        for item in sorted(items, key=lambda item: (not item.suspect, getattr(item, place))):
            rank = getattr(item, place)
            at = float(high * (1 - chart.y.place([rank])[0]))
            if all(abs(at - other) >= _LINE_OF_TEXT for other in taken):
                name = fit_name(item.name, room / FONT, bold=item.suspect)
                strong = "strong" if item.suspect else ""
                chart.text(x, rank, name, anchor=anchor, frame=i, classes=strong, dx=dx, dy=4)
                taken.append(at)


def _scatter(comparison: RankComparison) -> Chart:
    """Current rank against rank in PageRank, for a sample that is uniform on the logarithmic axes."""
    n = comparison.graph.n
    end = max(2, n)
    across, down = Axis(1, end, "place in PageRank", log=True), Axis(end, 1, "place now", log=True)
    chart = Chart(across, down, width=560, height=460)
    chart.rule(1, 1, end, end)
    # ranks in PageRank with evenly spaced logarithms
    places = np.unique(np.geomspace(1, n, _POINTS).round().astype(np.int64)) - 1
    sample = best_vertices(comparison.scores[0], n)[places]
    for i in range(len(comparison.names)):
        x, y = comparison.ranks[0][sample], comparison.ranks[i][sample]
        chart.points(x, y, size=2, frame=i, classes="soft")
        for each in comparison.rows(i, comparison.flagged[: len(comparison.suspects)], comparison.flagged):
            titles = [f"{each.name}: {each.base_rank:,} to {each.rank:,}"]
            look: Style = {"series": 1, "shape": "triangle", "size": 5, "frame": i}
            chart.points([each.base_rank], [each.rank], titles=titles, **look)
    return chart


def _spam_met(comparison: RankComparison) -> Chart:
    """Share of spam among the first m vertices against m."""
    n, spam = comparison.graph.n, comparison.spam
    m = np.unique(np.geomspace(1, n, 120).round().astype(np.int64))
    assert spam is not None
    met = [np.asarray(spam_met(spam, scores, m)) / m for scores in comparison.scores]
    most = max(0.05, 1.05 * float(max(each.max() for each in met)))
    across = Axis(1, max(2, n), "first vertices of the list", log=True)
    chart = Chart(across, Axis(0, most, "share of spam", percent=True), height=300)
    for i, share in enumerate(met):
        chart.line(m, share, frame=i, title=comparison.names[i])
    chart.line(m, met[0], classes="baseline", title=BASELINE)
    return chart


def attack_page(study: AttackStudy, *, title: str | None = None) -> str:
    """Create the HTML page of a study of ranks under attack: a table of attacks and ranks, coloured by the rise."""
    attacks = study.attacks
    return render(
        "attack.html",
        study,
        title or study.title,
        names=[row.rank for row in study.agreement],
        columns=[f"#{row.rank}" for row in study.agreement],
        before=[study.of_rank(row.rank)[0].before for row in study.agreement],
        rows=[[each for each in study.results if each.attack == attack] for attack in attacks],
        about=[KINDS[attack.partition(":")[0]].about for attack in attacks],
        shade=_shade,
    )


def _shade(result: AttackResult) -> int:
    """Percentage of colour: the share of the way to the first place that an attack gains, on a logarithmic scale.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> [_shade(SimpleNamespace(before=100, after=after)) for after in (1, 10, 100, 200)]
    [45, 22, 0, 0]
    """
    if result.after >= result.before:
        return 0
    return round(_DARKEST * log(result.before / result.after) / log(result.before))
