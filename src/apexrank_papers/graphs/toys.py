"""Acharyya 2013, Figures 6.2 and 6.3: two toy graphs on which one can see what p does.

The pictures are lost. The graphs are made after the text (see `apexrank.datasets.networks.toy_graph_1` and
``toy_graph_2``), which gives no scores, only orders; these are what is checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.stats import rankdata
from sklearn.base import clone

from apexrank.datasets.networks import toy_graph_1, toy_graph_2
from apexrank.graph import LpqRank, PageRank
from apexrank_papers.figure import new_figure
from apexrank_papers.result import Result, Verdict, claim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GRAPHS = {"Figure 6.2": toy_graph_1, "Figure 6.3": toy_graph_2}
NEAR_ONE = 1.01
DIGITS = 8  # scores that agree so far are equal; they are computed to a few more
SPAMMED, FARM = 6, (6, 7, 8, 9)
_EXACT: dict[str, Any] = {"tol": 1e-10, "max_iter": 20_000}
# by growing p at each ratio
RANKS: dict[str, LpqRank | PageRank] = {
    "PageRank": PageRank(**_EXACT),
    "L_2": LpqRank(2, 1, **_EXACT),
    "L_∞": LpqRank(np.inf, NEAR_ONE, **_EXACT),
    "L_2,2.4": LpqRank(2, 1.2, **_EXACT),
    "L_∞ at q/p = 1.2": LpqRank(np.inf, 1.2, **_EXACT),
}


def toy_graphs() -> Result:
    """Scores and positions of the vertices of both graphs, and the orders that the text names.

    Examples
    --------
    >>> [verdict.word for verdict in toy_graphs().verdicts]
    ['agrees', 'agrees', 'agrees', 'agrees', 'agrees']
    """
    table = pl.concat([_ranked(figure, rank) for figure in GRAPHS for rank in RANKS])
    first, second = (_scores(table, figure) for figure in GRAPHS)
    verdicts = [
        _equal_flow(first),
        _few_good_links(first),
        _farm_first(second),
        _demoted(second),
        _below(second),
    ]
    notes = [
        "The pictures of the graphs are lost: the links that the text leaves open are ours. It gives no scores to "
        "compare with, only orders. Cells: score (position; equals share the better one).",
        f"L_∞ with q = p has no unique answer and is refused; the row L_∞ takes q/p = {NEAR_ONE} instead.",
    ]
    return Result(table, _view(table), verdicts, _draw(table), notes)


def _ranked(figure: str, rank: str) -> pl.DataFrame:
    toy = GRAPHS[figure]()
    scores = clone(RANKS[rank]).fit(toy.adjacency).scores_
    position = rankdata(-scores.round(DIGITS), method="min").astype(int)
    return pl.DataFrame(
        {"figure": figure, "rank": rank, "vertex": toy.names, "score": scores, "position": position}
    )


def _scores(table: pl.DataFrame, figure: str) -> dict[str, dict[int, float]]:
    """Scores of the vertices by the name of the rank."""
    part = table.filter(figure=figure)
    return {rank: dict(part.filter(rank=rank).select("vertex", "score").rows()) for rank in RANKS}


def _equal_flow(scores: dict[str, dict[int, float]]) -> Verdict:
    one, two = (scores["PageRank"][vertex] for vertex in (1, 2))
    why = f"vertices 1 and 2 have {one:.4f} and {two:.4f}"
    return claim("6.2: PageRank ranks 1 and 2 equally", abs(one - two) < 10**-DIGITS, why)


def _few_good_links(scores: dict[str, dict[int, float]]) -> Verdict:
    ratios = {rank: s[1] / s[2] for rank, s in scores.items() if rank != "PageRank"}
    why = "score of 1 over that of 2: " + ", ".join(
        f"{ratio:.3f} by {rank}" for rank, ratio in ratios.items()
    )
    return claim("6.2: L_2 and L_∞ rank 1 above 2", all(ratio > 1 for ratio in ratios.values()), why)


def _position(scores: dict[int, float]) -> int:
    return 1 + sum(score > scores[SPAMMED] + 10**-DIGITS for score in scores.values())


def _farm_first(scores: dict[str, dict[int, float]]) -> Verdict:
    plain = scores["PageRank"]
    best = max(score for vertex, score in plain.items() if vertex != SPAMMED)
    why = f"it has {plain[SPAMMED]:.4f}, the next one {best:.4f}"
    return claim("6.3: PageRank puts the spammed 6 first", plain[SPAMMED] > best, why)


def _demoted(scores: dict[str, dict[int, float]]) -> Verdict:
    """The spammed vertex falls with p, at q = p (or nearly) and at q/p = 1.2."""
    position = {rank: _position(s) for rank, s in scores.items()}
    exact = [position[rank] for rank in ("PageRank", "L_2", "L_∞")]
    faster = [position[rank] for rank in ("L_2,2.4", "L_∞ at q/p = 1.2")]
    holds = exact == sorted(exact) and exact[0] < exact[-1] and faster == sorted(faster)
    why = "position of 6: " + ", ".join(f"{place} by {rank}" for rank, place in position.items())
    return claim("6.3: a larger p demotes 6", holds, why)


def _below(scores: dict[str, dict[int, float]]) -> Verdict:
    ranks = [rank for rank in scores if rank.startswith("L_∞")]
    lowest = {rank: min(s for v, s in scores[rank].items() if v not in FARM) for rank in ranks}
    why = ", ".join(
        f"{scores[rank][SPAMMED]:.4f} against {lowest[rank]:.4f} of the lowest legitimate one by {rank}"
        for rank in ranks
    )
    holds = all(scores[rank][SPAMMED] < lowest[rank] for rank in ranks)
    return claim("6.3: L_∞ puts 6 below all legitimate pages", holds, why)


def _view(table: pl.DataFrame) -> pl.DataFrame:
    cells = [f"{score:.4f} ({place})" for score, place in table.select("score", "position").rows()]
    return table.with_columns(pl.Series("cell", cells)).pivot(
        "rank", index=["figure", "vertex"], values="cell"
    )


def _draw(table: pl.DataFrame) -> Figure:
    from apexrank.plot.style import light, line_style

    figure = new_figure(10.5, 4.2)
    axes = figure.subplots(1, len(GRAPHS))
    for ax, name in zip(axes, GRAPHS, strict=True):
        for number, rank in enumerate(RANKS):
            part = table.filter(figure=name, rank=rank)
            # the vertices are no sequence, so markers side by side and no lines between them
            aside = 0.17 * (number - (len(RANKS) - 1) / 2)
            style = line_style(number) | {"linestyle": "none"}
            ax.plot(part["vertex"] + aside, part["score"], label=rank, **style)
        ax.set(xlabel="vertex", ylabel="score", title=f"Toy graph of {name}", xticks=part["vertex"].to_list())
        ax.set_ylim(bottom=0)
        light(ax)
    axes[1].axvspan(min(FARM) - 0.5, max(FARM) + 0.5, color="0.9", zorder=0)
    axes[1].text(
        np.mean(FARM), 0.97, "link farm", transform=axes[1].get_xaxis_transform(), ha="center", va="top"
    )
    axes[0].legend(frameon=False)
    return figure
