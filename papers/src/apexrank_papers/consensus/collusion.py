"""Effect of colluding layers on the rank of a target, by the share of such layers and the strength of the attack.

The colluders control their layers. In each of them a share of the vertices, the strength, links only to the target; the
others link as before. A weak attack is hard to detect and a strong one raises the target further, so every method is
judged by the strength that hurts it most. The threshold 1.5 was chosen on draws 1000 to 1007 of the synthetic graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import csr_array, diags_array
from scipy.stats import rankdata

from apexrank.errors import InputError
from apexrank.graph import ConsensusRank, PageRank, as_layers
from apexrank.plot.style import line_style
from apexrank_papers.consensus import data
from apexrank_papers.data.networks import load_bitcoin_otc, load_wiki_vote
from apexrank_papers.data.sources import data_path
from apexrank_papers.result import (
    Figure,
    Result,
    Verdict,
    claim,
    draw_lines,
    panels,
    question,
    text_view,
    tidy,
)
from apexrank_papers.splits import check_repeated, mean_over_splits, over_splits

LAYERS, NOISE, TRIM = 9, 0.3, 1.5
STRENGTHS = (0.05, 0.1, 0.2, 0.5, 1.0)
UNION, MEDIAN, TRIMMED, BOTH = "union", "median", f"union, trim {TRIM}", f"median, trim {TRIM}"
METHODS: dict[str, dict[str, Any]] = {
    UNION: {},
    "mean": {"method": "mean"},
    "corroborate": {"method": "corroborate", "tol": 1e-3},
    MEDIAN: {"method": "median"},
    TRIMMED: {"trim": TRIM},
    f"corroborate, trim {TRIM}": {"method": "corroborate", "tol": 1e-3, "trim": TRIM},
    BOTH: {"method": "median", "trim": TRIM},
}
PLACE, DISTANCE = "share of vertices below the target", "L1 distance"
SYNTHETIC, VOTES, RATINGS = "synthetic", "wiki-Vote", "bitcoin-otc"
FILES = {VOTES: "wiki-Vote.txt.gz", RATINGS: "soc-sign-bitcoinotc.csv.gz"}
COLLUDING = tuple(range(6))


class Honest(NamedTuple):
    """Honest views of all layers, the true ranks, and a vertex in their lower half."""

    views: list[csr_array]
    truth: np.ndarray
    target: int


def synthetic(n: int, seed: int) -> Honest:
    """Draw a graph and views of it with 30 % noise."""
    rng = np.random.default_rng(seed)
    links = data.true_graph(n, rng).links
    views = [csr_array(data.noisy(links, NOISE, rng)) for _ in range(LAYERS)]
    return _aimed(views, data.pagerank(data.shares(links)), rng)


def votes(seed: int) -> Honest:
    """Draw samples of 70 % of the votes of wiki-Vote; the true ranks are the PageRank of all votes."""
    rng = np.random.default_rng(seed)
    links = load_wiki_vote().adjacency.tocoo()
    samples = (rng.random(links.nnz) >= NOISE for _ in range(LAYERS))
    views = [csr_array((links.data[s], (links.row[s], links.col[s])), shape=links.shape) for s in samples]
    return _aimed(views, PageRank().fit_predict(links.tocsr()), rng)


def ratings(seed: int) -> Honest:
    """Split the positive ratings of bitcoin-otc into time windows; the true ranks are the PageRank of all ratings."""
    network = load_bitcoin_otc()
    given = network.adjacency.tocoo()
    positive = np.flatnonzero(given.data > 0)
    parts = np.array_split(positive[np.argsort(network.times[positive], kind="stable")], LAYERS)
    views = [csr_array((given.data[p] * 1.0, (given.row[p], given.col[p])), shape=given.shape) for p in parts]
    truth = PageRank().fit_predict(sum(views[1:], views[0]))
    return _aimed(views, truth, np.random.default_rng(seed))


def _aimed(views: list[csr_array], truth: np.ndarray, rng: np.random.Generator) -> Honest:
    lower = np.argsort(truth)[len(truth) // 10 : len(truth) // 2]
    return Honest(views, truth, int(rng.choice(lower)))


def pushed(view: csr_array, target: int, strength: float, rng: np.random.Generator) -> csr_array:
    """Return the view with a random share of the vertices linking only to the target.

    Examples
    --------
    >>> pushed(csr_array(np.eye(3)), 0, 1.0, np.random.default_rng(0)).toarray().tolist()
    [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    n = view.shape[0]
    push = rng.random(n) < strength
    push[target] = False
    rows = np.flatnonzero(push)
    links = csr_array((np.ones(len(rows)), (rows, np.full(len(rows), target))), shape=view.shape)
    return csr_array(diags_array((~push).astype(float)) @ view + links)


def consensus_collusion(
    *,
    graphs: Sequence[str] = (SYNTHETIC, VOTES, RATINGS),
    n: int = 200,
    draws: int = 20,
    real_draws: int = 4,
    n_jobs: int | None = 2,
    random_state: int = 0,
) -> Result:
    """Measure the place of the target and the distance to the true ranks while 0 to 5 of 9 layers collude.

    Parameters
    ----------
    graphs : sequence of str
        Any of "synthetic", "wiki-Vote", "bitcoin-otc"; graphs without a data file are left out.
    n : int
        Number of vertices of the synthetic graph.
    draws, real_draws : int
        Draws of graph, layers and target; for the other graphs, of layers, target and colluders.
    n_jobs, random_state : int
        Number of processes, and first seed.
    """
    check_repeated("draws", min(draws, real_draws))
    kinds: dict[str, Callable[[int], Honest]] = {
        SYNTHETIC: partial(synthetic, n),
        VOTES: votes,
        RATINGS: ratings,
    }
    if not graphs or not set(graphs) <= set(kinds):
        raise InputError(f"`graphs` must be some of {', '.join(kinds)}, got {graphs!r}")
    there = [name for name in graphs if name == SYNTHETIC or data_path("graphs", FILES[name]) is not None]
    found = {
        name: over_splits(
            partial(_measure, kinds[name]), draws if name == SYNTHETIC else real_draws, n_jobs, random_state
        )
        for name in there
    }
    axes = {
        "colluding layers": COLLUDING,
        "strength": STRENGTHS,
        "method": METHODS,
        "measure": (PLACE, DISTANCE),
    }
    table = pl.concat(
        tidy({"graph": [name], **axes}, {"mean": each.mean(axis=0)}) for name, each in found.items()
    )
    worst = worst_case(table)
    view = text_view(worst, "{mean:.2f}", on="method", index=["graph", "measure", "colluding layers"])
    missing = [name for name in graphs if name not in there]
    notes = [
        f"{LAYERS} layers. Made-up: {draws} graphs of {n} vertices, layers with {100 * NOISE:.0f} % noise. wiki-Vote: "
        f"samples of {100 - 100 * NOISE:.0f} % of the votes; bitcoin-otc: time windows ({real_draws} draws each). "
        "The target is drawn from the lower half of the true ranks.",
        f"Cells: mean over the draws at the strength, out of {', '.join(map(str, STRENGTHS))}, that raises the target "
        "most, or moves the ranks furthest; for the answers the strength is chosen in each draw. Place 1 is the top, 0 "
        f"the bottom. The threshold {TRIM} was chosen on draws 1000 to 1007 of the synthetic graph.",
        *([f"Missing data: {', '.join(missing)}."] if missing else []),
    ]
    verdicts = [verdict for name, each in found.items() for verdict in _verdicts(name, each)]
    return Result(table, view, verdicts, _draw(worst, there), notes)


def _measure(honest: Callable[[int], Honest], seed: int) -> np.ndarray:
    """Measure one draw: colluding layers x strengths x methods x measures."""
    views, truth, target = honest(seed)
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(LAYERS)  # colluders may be in any time window
    found = []
    for bad in COLLUDING:
        row = []
        for strength in STRENGTHS if bad else STRENGTHS[:1]:
            given = list(views)
            for k in order[:bad]:
                given[k] = pushed(views[k], target, strength, rng)
            layers = as_layers(given)
            ranks = [ConsensusRank(**options).fit(layers).scores_ for options in METHODS.values()]
            row.append([_judged(each, truth, target) for each in ranks])
        found.append(row if bad else row * len(STRENGTHS))
    return np.array(found)


def _judged(ranks: np.ndarray, truth: np.ndarray, target: int) -> tuple[float, float]:
    return (rankdata(ranks)[target] - 1) / (len(ranks) - 1), float(np.abs(ranks - truth).sum())


def worst_case(table: pl.DataFrame) -> pl.DataFrame:
    """Keep the strength that does most harm; for both measures larger is worse."""
    return table.group_by("graph", "measure", "colluding layers", "method", maintain_order=True).agg(
        pl.col("mean").max()
    )


def _verdicts(graph: str, values: np.ndarray) -> Iterator[Verdict]:
    """Answer our own questions; ``values`` are draws x colluding layers x strengths x methods x measures."""
    names = list(METHODS)
    harm = values.max(axis=2)  # the colluders know the method and the draw
    place, distance = (harm[..., k] for k in (0, 1))
    minority = [k for k in COLLUDING if 0 < 2 * k < LAYERS]
    for robust, plain in ((TRIMMED, UNION), (BOTH, MEDIAN)):
        gaps = {
            k: mean_over_splits(place[:, k, names.index(robust)] - place[:, k, names.index(plain)])
            for k in minority
        }
        why = ", ".join(f"{gap} ({k} of {LAYERS})" for k, gap in gaps.items())
        sign = -max(gap.sign for gap in gaps.values())
        yield question(
            f"{graph}: {robust} holds the target lower than {plain}, any minority", sign, f"place {why}"
        )
        cost = mean_over_splits(distance[:, 0, names.index(robust)] - distance[:, 0, names.index(plain)])
        yield question(
            f"{graph}: {robust} costs nothing without colluders",
            1 if cost.sign <= 0 else -1,
            f"L1 distance {cost}",
        )
    top = place[:, COLLUDING.index(LAYERS // 2 + 1)].mean(axis=0)
    why = ", ".join(f"{level:.2f} ({name})" for name, level in zip(names, top, strict=True))
    row = f"{graph}: a majority of colluders defeats every method"
    yield claim(row, bool(top.min() > 0.95), f"mean place of the target with 5 of 9: {why}", judge=question)


def _draw(worst: pl.DataFrame, graphs: list[str]) -> Figure:
    figure, axes = panels(4.6 * len(graphs), 7.0, 2, len(graphs), squeeze=False, sharex=True)
    for column, graph in enumerate(graphs):
        for ax, measure in zip(axes[:, column], (PLACE, DISTANCE), strict=True):
            part = worst.filter(graph=graph, measure=measure)
            lines = {
                name: ([k / LAYERS for k in COLLUDING], part.filter(method=name)["mean"].to_list())
                for name in METHODS
            }
            draw_lines(ax, lines, line_style, ylabel=measure if column == 0 else "")
            ax.axvline(0.5, color="0.5", linewidth=1, linestyle=":")
        axes[0, column].set_title(graph)
        axes[1, column].set_xlabel("share of colluding layers")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=4)
    return figure
