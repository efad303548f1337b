"""HTML page of aggregated votes, with a slider over the methods."""

from __future__ import annotations

import numpy as np

from apexrank.plot.aggregation import METHOD_TITLES as TITLES
from apexrank.plot.style import short_name
from apexrank.report.charts import FONT, Axis, Chart, fit_name, width_of
from apexrank.report.page import counted, render
from apexrank.report.votes.methods import one_ballot
from apexrank.report.votes.summary import VoteSummary

_SHORT = {"median": "Median", "rrf": "RRF"}  # used if there is little space
_MOST_LISTED = 500  # maximum number of rows of a list, to keep the page small
_MOST_DRAWN, _BUMPED = 30, 12  # items in the chart of intervals, and in the bump chart
_LETTERS, _LETTERS_DRAWN = 80, 22  # maximum length of a name in a table, and in a chart
_LINE, _SIDE = 24, 200  # drawing units per item, and for names beside the chart


def page(summary: VoteSummary, *, title: str | None = None) -> str:
    """Create the HTML page of a summary.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> from apexrank.report import summarise_votes
    >>> summary = summarise_votes(aggregate([[3, 2, 1], [2, 3, 1]], items=["tea", "rum", "ale"]), bootstrap=20)
    >>> "tea and rum share the first place" in page(summary)
    True
    """
    votes, items = float(f"{summary.result.ballots.total:.6g}"), summary.result.items
    methods, results = list(summary.methods), list(summary.methods.values())
    listed = min(len(summary.shown), _MOST_LISTED)
    bump, beyond = _bump(summary)
    return render(
        "votes.html",
        summary,
        title or f"{counted(votes, 'vote')} on {counted(len(items), 'item')}",
        votes=votes,
        labels=[TITLES[name] + (" (the result)" if i == 0 else "") for i, name in enumerate(methods)],
        names=[TITLES[name] for name in methods],
        short=[_SHORT.get(name, TITLES[name]) for name in methods],
        start=0,
        alone=one_ballot(summary.result),
        bump=bump,
        beyond=beyond,
        intervals=_intervals(summary),
        orders=[np.argsort(each.ranks, kind="stable")[:listed].tolist() for each in results],
        ranks=[each.ranks.tolist() for each in results],
        scores=[each.scores.tolist() for each in results],
        tied=[(np.bincount(each.ranks)[each.ranks] > 1).tolist() for each in results],
        ends=_ends(summary),
        gaps=bool((summary.result.support < summary.result.ballots.total).any()),
        histogram=_histogram(summary),
        items=[short_name(label, _LETTERS) for label in summary.labels],
        letters=_LETTERS_DRAWN,
        camp_items=summary.shown[:_MOST_DRAWN].tolist(),
        shade=_shade,
    )


def _ends(summary: VoteSummary) -> list[list[float]] | None:
    """Ends of the interval of each rank, and the share of first ranks; None without a bootstrap."""
    drawn = summary.drawn
    return None if drawn is None else [drawn.low.tolist(), drawn.high.tolist(), drawn.first.tolist()]


def _places(ranks: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Positions 1, 2, … without ties, which are broken by the other ranks, then by the order of the items.

    Examples
    --------
    >>> _places(np.array([1, 1, 3]), np.array([2, 1, 3])).tolist()
    [2, 1, 3]
    """
    return np.argsort(np.lexsort((other, ranks))) + 1


def _bump_heights(places: np.ndarray, top: int) -> np.ndarray:
    """Heights of items in a bump chart: their positions, and beyond the top one row each, in order, below a gap.

    Examples
    --------
    >>> _bump_heights(np.array([1, 9, 2, 5]), 2).tolist()
    [1.0, 4.5, 2.0, 3.5]
    """
    heights = places.astype(float)
    beyond = np.flatnonzero(places > top)
    heights[beyond[np.argsort(places[beyond])]] = top + 1.5 + np.arange(len(beyond))
    return heights


def _bump(summary: VoteSummary) -> tuple[Chart, bool]:
    """Bump chart of the top items by method, and whether some are below the top, in one row each."""
    methods, labels = list(summary.methods), summary.labels
    places = np.array([_places(each.ranks, summary.result.ranks) for each in summary.methods.values()])
    top = min(_BUMPED, len(labels))
    items = np.flatnonzero((places[0] <= top) | (places.min(axis=0) == 1))
    items = items[np.argsort(places[0][items])]
    heights = np.array([_bump_heights(row[items], top) for row in places])
    lowest = float(heights.max()) + 0.6
    at = np.arange(len(methods), dtype=float)
    ticks = [(i, _SHORT.get(name, TITLES[name])) for i, name in enumerate(methods)]
    chart = Chart(
        Axis(-0.1, max(len(methods) - 0.9, 0.1), ticks=ticks, thin=False),
        Axis(lowest, 0.4, ticks=()),
        width=900,
        height=int(70 + _LINE * lowest),
        margins=(_SIDE, _SIDE, 8, 34),
    )
    beyond = lowest > top + 1
    if beyond:
        chart.rule(-0.1, top + 0.75, float(at[-1]) + 0.1, top + 0.75)
    for number, item in enumerate(items.tolist()):
        path = heights[:, number]
        told = f"{short_name(labels[item], _LETTERS_DRAWN)}: " + ", ".join(
            f"{TITLES[m]} {each.ranks[item]:,}" for m, each in summary.methods.items()
        )
        chart.line(at, path, series=number, title=told, classes="soft")
        chart.text(0, path[0], _placed(places[0, item], labels[item]), anchor="end", dx=-14, dy=4)
        if len(methods) > 1:
            chart.text(at[-1], path[-1], _placed(places[-1, item], labels[item]), dx=14, dy=4)
        for frame in range(len(methods)):
            if frame == 0 or places[frame, item] != places[0, item]:
                chart.line(at, path, series=number, frame=frame, title=told)
            chart.points([frame], [path[frame]], series=number, frame=frame, size=5, titles=[told])
    return chart, beyond


def _placed(place: int, name: str) -> str:
    """Format a rank and a name to fit beside the lines."""
    start = f"{place:,}  "
    return start + fit_name(name, (_SIDE - 14) / FONT - width_of(start))


def _intervals(summary: VoteSummary) -> Chart:
    """Rank of each item with its interval, and by the method of the slider."""
    items, result, ends = summary.shown[:_MOST_DRAWN].tolist(), summary.result, _ends(summary)
    names = [fit_name(summary.labels[i], (_SIDE - 10) / FONT) for i in items]
    ranks = [each.ranks[items] for each in summary.methods.values()]
    last = float(np.max(ranks if ends is None else [*ranks, np.array(ends[1])[items]]))
    chart = Chart(
        Axis(1 - 0.03 * last, 1.03 * last + 0.01, "rank, 1 is best", ticks=_rank_ticks(int(last))),
        Axis(len(items) - 0.4, -0.6, ticks=list(enumerate(names))),
        width=760,
        height=60 + _LINE * len(items),
        margins=(_SIDE, 60, 8, 46),
    )
    for y, item in enumerate(items):
        told = f"{names[y]}: rank {result.ranks[item]:,}"
        if ends is not None:
            low, high, first = (column[item] for column in ends)
            told += f", interval {low:,} to {high:,}, first in {first:.0%} of the samples"
            room = 0.006 * last  # makes an interval of one rank visible
            chart.bar(low - room, y - 0.16, high + room, y + 0.16, title=told, classes="soft")
            chart.text(1.03 * last, y, f"{first:.0%}", anchor="end", dx=50, dy=4)
        chart.points([result.ranks[item]], [y], size=5, titles=[told])
        for frame, each in enumerate(summary.methods.values()):
            if each.ranks[item] != result.ranks[item]:
                chart.points([each.ranks[item]], [y], series=3, frame=frame, size=5, classes="open")
    return chart


def _rank_ticks(last: int) -> list[tuple[float, str]]:
    """Round ranks, always including the first."""
    step = next(s for power in range(12) for s in (10**power, 2 * 10**power, 5 * 10**power) if 9 * s >= last)
    return [(float(rank), f"{rank:,}") for rank in sorted({1, *range(step, last + 1, step)})]


def _histogram(summary: VoteSummary) -> Chart:
    shares, ends = summary.voters.histogram()
    most = max(float(shares.max()) * 1.08, 0.01)
    up = Axis(0, most, "share of the voters", percent=True)
    chart = Chart(Axis(-1, 1, "Kendall's tau with the result"), up, height=260)
    for share, left, right in zip(shares.tolist(), ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        if share:
            chart.bar(left + 0.005, 0, right - 0.005, share, title=f"{left:.1f} to {right:.1f}: {share:.1%}")
    return chart


def _shade(share: float) -> int:
    """Percentage of colour behind a number, limited for legibility."""
    return 0 if np.isnan(share) else round(38 * min(max(float(share), 0.0), 1.0))
