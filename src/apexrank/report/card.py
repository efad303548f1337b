"""HTML page of a scorecard: the points of every column, positives by sum of points, and the cost of rounding."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from apexrank.export.cards import Card
from apexrank.report.page import render

_SUMS = 12  # rows of the table of sums


def page(card: Card, *, title: str | None = None, loss: Any = None, measured_on: Any = None) -> str:
    """Create the HTML page of a scorecard.

    Parameters
    ----------
    card : Scorecard or BinnedScorecard
        The scorecard.
    title : str, optional
        Title of the page.
    loss : DataFrame, optional
        Result of :meth:`~apexrank.export.Scorecard.loss` on other rows; by default on the rows used for rounding.
    measured_on : str, optional
        Name of those other rows.

    Examples
    --------
    >>> from apexrank import AdditiveRanker, datasets, export
    >>> data = datasets.make_push_example(500, as_frame=True)
    >>> model = AdditiveRanker(alpha=0.01).fit(data.data, data.target)
    >>> html = page(export.round_scorecard(model, data.data, data.target))
    >>> "Add up the points" in html
    True
    """
    frame = card.to_frame()
    text = "bin" if "bin" in frame.columns else "rule"
    lines = list(zip(card.features, frame[text], frame.iter_rows(named=True), strict=True))
    by_column = [(name, list(block)) for name, block in groupby(lines, lambda line: line[0])]
    return render(
        "card.html",
        card,
        title or "Scorecard",
        blocks=by_column if text == "bin" else [("", lines)],
        most=int(np.abs(card.points).max()),
        loss=(card.loss() if loss is None else loss).to_dicts(),
        measured_on=measured_on,
        sums=_sums(card),
        rows=len(card.training[1]),
    )


def _sums(card: Card) -> list[dict[str, float]]:
    """Share of rows with at least certain sums, and the share of positives among them."""
    judged, points = card.training
    if judged.graded or judged.groups is not None:
        return []
    weight = np.ones(len(points)) if judged.weight is None else judged.weight
    order = np.argsort(-points, kind="stable")
    reached = np.cumsum(weight[order]) / weight.sum()
    at = np.searchsorted(reached, [0.01, 0.02, 0.05, *np.arange(1, 10) / 10])[:_SUMS]
    sums = sorted({float(points[order[i]]) for i in at}, reverse=True)
    found = []
    positive = weight * (judged.y > 0)
    for least in sums:
        above = points >= least
        n, hits = weight[above].sum(), positive[above].sum()
        shares = {"share": n / weight.sum(), "precision": hits / n, "found": hits / positive.sum()}
        found.append({"least": least, **shares})
    return found
