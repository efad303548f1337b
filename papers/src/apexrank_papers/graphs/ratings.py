"""Prediction of hidden ratings by ranks of signed graphs.

This experiment is not in the dissertation: 30 % of the ratings are hidden, at random or the last ones in time, and
ranks of the others predict whose hidden ratings are negative on average.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from apexrank.graph import (
    DemotedRank,
    FairnessGoodness,
    InDegree,
    LpqRank,
    SignedGraph,
    as_graph,
)
from apexrank.graph.neighbourhood import on_closed_cycle
from apexrank.metrics import auc
from apexrank_papers.graphs.baselines import mean_rating, modified_pagerank
from apexrank_papers.graphs.trust import LOADERS
from apexrank_papers.result import Result, Verdict, question, text_view
from apexrank_papers.splits import check_repeated, mean_verdict, standard_error

TOL = 1e-7
FIRST = 20
USERS = ("all", "rated")


class Split(NamedTuple):
    """Visible ratings, users with hidden ratings, those with visible ones too, and those with negative hidden means."""

    visible: SignedGraph
    asked: np.ndarray
    rated: np.ndarray
    negative: np.ndarray


def split(ratings: csr_array, hidden: np.ndarray) -> Split:
    """Hide some of the ratings, given by a mask over ``ratings.data``.

    Examples
    --------
    >>> found = split(csr_array(np.array([[0, 5, -1], [0, 0, 2], [0, -3, 0]])), np.array([True, False, False, True]))
    >>> found.asked.tolist(), found.rated.tolist(), found.negative.tolist()
    ([False, True, False], [False, False, True], [False, False, False])
    """
    coo, n = ratings.tocoo(), ratings.shape[0]
    seen = csr_array((coo.data[~hidden], (coo.row[~hidden], coo.col[~hidden])), shape=coo.shape, dtype=float)
    asked, rated = (np.bincount(coo.col[part], minlength=n) > 0 for part in (hidden, ~hidden))
    negative = np.bincount(coo.col[hidden], coo.data[hidden], n) < 0
    return Split(as_graph(seen, signed=True), asked, rated, negative)


def hidden_ratings(*, hidden: float = 0.3, repeats: int = 10, random_state: int = 0) -> Result:
    """Measure the AUC of "hidden ratings are negative on average" by ranks of the visible ratings.

    Parameters
    ----------
    hidden : float
        Share of the ratings to hide.
    repeats : int
        Number of random draws, at least 2.
    random_state : int
        Seed of the draws.
    """
    check_repeated("repeats", repeats)
    rows: list[tuple[Any, ...]] = []
    verdicts: list[Verdict] = []
    notes: list[str] = []
    for name, load in LOADERS.items():
        network = load()
        draws = np.random.default_rng(random_state).random((repeats, network.adjacency.nnz)) < hidden
        masks = {name: list(draws)}
        if "times" in network:
            masks[f"{name} (last {hidden:.0%})"] = [network.times > np.quantile(network.times, 1 - hidden)]
        for data, given in masks.items():
            measured = [_aucs(split(network.adjacency, mask)) for mask in given]
            for key in measured[0]:
                values = np.array([each[key] for each in measured])
                error = float(standard_error(values)) if len(values) > 1 else None
                rows.append((data, *key, float(values.mean()), error))
            if len(given) > 1:
                verdicts += _verdicts(data, measured)
        notes.append(f"{name}: {_closed_pairs(as_graph(network.adjacency, signed=True))}")
    table = pl.DataFrame(rows, ("data", "users", "method", "auc", "standard_error"), orient="row")

    def cell(auc: float, standard_error: float | None, **_: str) -> str:
        return f"{auc:.3f}" + ("" if standard_error is None else f" ± {standard_error:.3f}")

    view = text_view(table, cell, on="data", index=["users", "method"]).sort("users", maintain_order=True)
    notes += [
        f"Mean ± standard error over {repeats} draws; the last ratings in time are one split. All: users with "
        "hidden ratings; rated: those of them who have visible ones too. Users without visible ratings score 0 in "
        "InDegree, the mean rating and FairnessGoodness. DemotedRank starts from the visible ratings of users.",
        "Smoothing 2 of the mean rating and FairnessGoodness was chosen on draws 100 to 102 of epinions.",
    ]
    return Result(table, view, verdicts, notes=notes)


def _ranks(graph: SignedGraph) -> Iterator[tuple[str, np.ndarray]]:
    seeds: dict[str, Any] = {
        what: part.reversed().out_weight for what, part in zip(("trusted", "distrusted"), graph, strict=True)
    }
    yield "LpqRank", LpqRank(tol=TOL).fit(graph).scores_
    for way in ("against", "along"):
        rank = DemotedRank(tol=TOL, direction=way)
        yield f"DemotedRank, {way} the links", rank.fit(graph.positive, **seeds).scores_
    yield "modified PageRank", modified_pagerank(graph, TOL)
    yield "InDegree (net)", InDegree().fit(graph).scores_
    for smoothing in (0, 2):
        yield f"mean rating, smoothing {smoothing}", mean_rating(graph, smoothing)
        yield f"FairnessGoodness, smoothing {smoothing}", FairnessGoodness(smoothing).fit(graph).scores_


def _aucs(made: Split) -> dict[tuple[str, str], float]:
    groups = dict(zip(USERS, (made.asked, made.asked & made.rated), strict=True))
    return {
        (users, method): float(auc(made.negative[group], -scores[group]))
        for method, scores in _ranks(made.visible)
        for users, group in groups.items()
    }


def _verdicts(data: str, measured: list[dict[tuple[str, str], float]]) -> Iterator[Verdict]:
    best, plain = "FairnessGoodness, smoothing 2", "mean rating, smoothing 0"
    published, demoted = "FairnessGoodness, smoothing 0", "DemotedRank, along the links"
    for other in ("LpqRank", demoted, plain, published, "mean rating, smoothing 2", "InDegree (net)"):
        gaps = np.array([each[USERS[0], best] - each[USERS[0], other] for each in measured])
        yield mean_verdict(
            f"{data}: {best} is better than {other}", gaps, "difference of AUC {}", judge=question
        )


def _closed_pairs(graph: SignedGraph) -> str:
    """Count the first places of LpqRank that belong to pairs who rate nobody else above 0."""
    closed = np.flatnonzero(on_closed_cycle(graph.positive))
    links = graph.positive.to_scipy()[closed][:, closed]  # one from each
    pairs = closed[((links @ links).diagonal() > 0) & (links.diagonal() == 0)]
    first = np.argsort(-LpqRank(tol=TOL).fit(graph).scores_, kind="stable")[:FIRST]
    number = np.isin(first, pairs).sum()
    return f"{number} of the first {FIRST} of LpqRank belong to pairs who rate nobody else above 0."
