"""Toy graphs that show the effect of p (Acharyya 2013, Figures 6.2 and 6.3).

The pictures are lost. The graphs follow the text (see `apexrank_papers.data.networks.toy_graph_1` and ``toy_graph_2``),
which gives orders but no scores; the orders are checked. A third graph is ours: the legitimate pages of Figure 6.3 and
two pages that link to each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import block_diag, csr_array
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils import Bunch

from apexrank.graph import LpqRank, PageRank
from apexrank.plot.style import light, line_style
from apexrank_papers.data.networks import toy_graph_1, toy_graph_2
from apexrank_papers.result import Figure, Result, Verdict, claim, panels, text_view


def toy_pair() -> Bunch:
    """Return pages 1 to 5 of Figure 6.3 and, in place of the farm, two pages that link only to each other.

    Examples
    --------
    >>> toy_pair().adjacency.toarray()[4:].tolist()
    [[1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 1, 0]]
    """
    toy = toy_graph_2()
    pair = np.array([[0, 1], [1, 0]], dtype=np.int8)
    both = block_diag([toy.adjacency[:5, :5], pair], format="csr")
    return Bunch(adjacency=csr_array(both), names=toy.names[:7])


GRAPHS = {"Figure 6.2": toy_graph_1, "Figure 6.3": toy_graph_2, "6.3 with a pair": toy_pair}
NEAR_ONE = 1.01
DIGITS = 8  # scores are equal if they agree to this many digits; they are computed to a few more
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
    """Compute scores and positions of the vertices, and check the orders that the text names.

    Examples
    --------
    >>> [verdict.word for verdict in toy_graphs().verdicts]
    ['agrees', 'agrees', 'differs']
    """
    table = pl.concat([_ranked(figure, rank) for figure in GRAPHS for rank in RANKS])
    few, farm, pair = (_scores(table, figure) for figure in GRAPHS)
    notes = [
        "The pictures of the graphs are lost: the links that the text leaves open are ours. The text gives orders but "
        "no scores. Cells: score (position; ties share the better one).",
        f"L_∞ with q = p has no unique answer and raises an error; the row L_∞ takes q/p = {NEAR_ONE} instead.",
        "The farm of Figure 6.3 falls because 6 shares its rank among three boosters. A pair shares with nobody: a "
        "norm with p > 1 loses mass where links merge, and in the pair none do.",
    ]
    verdicts = [_few_good_links(few), _farm_falls(farm), _pair_gains(pair)]
    view = text_view(table, "{score:.4f} ({position})", on="rank", index=["figure", "vertex"])
    return Result(table, view, verdicts, _draw(table), notes)


def _ranked(figure: str, rank: str) -> pl.DataFrame:
    toy = GRAPHS[figure]()
    scores = clone(RANKS[rank]).fit(toy.adjacency).scores_
    position = rankdata(-scores.round(DIGITS), method="min").astype(int)
    columns = {"vertex": toy.names, "score": scores, "position": position}
    return pl.DataFrame({"figure": figure, "rank": rank} | columns)


def _scores(table: pl.DataFrame, figure: str) -> dict[str, dict[int, float]]:
    """Return the scores of the vertices by rank name."""
    part = table.filter(figure=figure)
    return {rank: dict(part.filter(rank=rank).select("vertex", "score").rows()) for rank in RANKS}


def _few_good_links(scores: dict[str, dict[int, float]]) -> Verdict:
    """Claim: of two pages with equal inflow PageRank prefers neither, a norm the one with fewer, better links."""
    gaps = {rank: s[1] - s[2] for rank, s in scores.items()}
    equal = abs(gaps.pop("PageRank")) < 10**-DIGITS
    why = "score of 1 over that of 2: " + ", ".join(
        f"{s[1] / s[2]:.3f} by {rank}" for rank, s in scores.items()
    )
    row = "6.2: PageRank ranks 1 and 2 equally, L_2 and L_∞ rank 1 above 2"
    return claim(row, equal and min(gaps.values()) > 0, why)


def _positions(scores: dict[str, dict[int, float]]) -> dict[str, int]:
    """Return the position of the spammed vertex by every rank."""
    return {
        rank: 1 + sum(score > s[SPAMMED] + 10**-DIGITS for score in s.values()) for rank, s in scores.items()
    }


def _farm_falls(scores: dict[str, dict[int, float]]) -> Verdict:
    """Claim: the spammed vertex is first with PageRank, falls with p, and is below the legitimate ones at ∞."""
    place = _positions(scores)
    falls = place["PageRank"] == 1 < place["L_2"] <= place["L_∞"]
    falls = falls and place["L_2,2.4"] <= place["L_∞ at q/p = 1.2"]
    strong = [s for rank, s in scores.items() if "∞" in rank]
    below = all(min(s[v] for v in s if v not in FARM) > s[SPAMMED] for s in strong)
    row = "6.3: 6 first with PageRank, demoted by a larger p, below all legitimate pages with L_∞"
    return claim(row, falls and below, _told(place))


def _pair_gains(scores: dict[str, dict[int, float]]) -> Verdict:
    """Claim: two pages are not enough to spam a rank that resists farms."""
    place = _positions(scores)
    holds = min(place[rank] for rank in place if rank != "PageRank") >= place["PageRank"]
    why = f"two pages that link each other are enough: {_told(place)}"
    return claim('6.3: with L_p spam "would take orders of magnitude more pages"', holds, why)


def _told(place: dict[str, int]) -> str:
    return "position of 6: " + ", ".join(f"{number} by {rank}" for rank, number in place.items())


def _draw(table: pl.DataFrame) -> Figure:
    figure, axes = panels(14, 4.2, 1, len(GRAPHS))
    for ax, name in zip(axes, GRAPHS, strict=True):
        for number, rank in enumerate(RANKS):
            part = table.filter(figure=name, rank=rank)
            # vertices have no natural order, so draw markers without lines between them
            aside = 0.17 * (number - (len(RANKS) - 1) / 2)
            style = line_style(number) | {"linestyle": "none"}
            ax.plot(part["vertex"] + aside, part["score"], label=rank, **style)
        ax.set(xlabel="vertex", ylabel="score", title=name, xticks=part["vertex"].to_list())
        ax.set_ylim(bottom=0)
        light(ax)
    for ax, spam, word in ((axes[1], FARM, "link farm"), (axes[2], FARM[:2], "pair")):
        ax.axvspan(min(spam) - 0.5, max(spam) + 0.5, color="0.9", zorder=0)
        ax.text(np.mean(spam), 0.02, word, transform=ax.get_xaxis_transform(), ha="center")
    axes[0].legend(frameon=False)
    return figure
