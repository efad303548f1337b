"""Comparison of the consensus of layers (Acharyya 2013, chapter 5) with simpler methods on graphs with known truth.

The chapter has no experiments for its claims. Here the true graph is known, and layers are views of it with noise and
junk (`data`). All methods are compared with the PageRank of the mean of the layers' transitions, draw by draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.graph import ConsensusRank, PageRank
from apexrank.metrics import kendall_tau
from apexrank.plot.style import light, line_style
from apexrank_papers.consensus import data
from apexrank_papers.result import Figure, Result, Verdict, panels, question, text_view, tidy
from apexrank_papers.splits import check_repeated, mean_over_splits, over_splits, standard_error

NOISE, MANY = (0.2, 0.4, 0.6, 0.8), (2, 10, 20)
GROUPS: dict[str, dict[str, data.Views]] = {
    "link noise": {f"noise {100 * level:.0f} %": data.noisy_views(level, 5) for level in NOISE},
    "number of layers": {f"{m} layers, noise 60 %": data.noisy_views(0.6, m) for m in MANY},
    "junk layers": {
        "junk layers, even": data.junk_layers(data.even_junk),
        "junk layers, random": data.junk_layers(data.random_junk),
        "junk layers, narrow": data.junk_layers(data.narrow_junk),
    },
    "junk vertices": {
        "junk vertices, even": data.junk_rows(data.even_junk),
        "junk vertices, random": data.junk_rows(data.random_junk),
    },
    "concentrated junk": {
        "junk layers, concentrated": data.junk_layers(data.same_junk),
        "junk vertices, concentrated": data.junk_rows(data.same_junk),
    },
    "colluding junk": {
        f"junk layers, {bad} of 5 colluding": data.junk_layers(
            data.same_junk, good=5 - bad, bad=bad, colluding=True
        )
        for bad in (2, 1, 3)
    },
    "topics": {
        "topics, even": data.topic_layers(data.even_junk),
        "topics, wide": data.topic_layers(data.wide_junk),
        "topics, random": data.topic_layers(data.random_junk),
        "topics, narrow": data.topic_layers(data.narrow_junk),
    },
}
MEAN, UNION, MEDIAN = "mean of transitions", "union", "median"
BLEND, CORROBORATE = "blend", "corroborate"
PLAIN = "corroborate, plain"
PLAIN_BLEND: dict[str, Any] = {"method": "blend", "damping": data.DAMPING, "tol": 1e-5}
CONSENSUS: dict[str, dict[str, Any]] = {
    MEAN: {"method": "mean"},
    BLEND: {},
    MEDIAN: {"method": "median"},
    "fixed-point": {"method": "fixed-point"},
    "fixed-point, squared": {"method": "fixed-point", "divergence": "squared"},
    CORROBORATE: {"method": "corroborate"},
    "brew": {"method": "brew", "beta": 0.5, "tol": 1e-3},
    "pull 0.1": {"pull": 0.1},
    "pull 1": {"pull": 1.0},
    "entropy 0.8": {"entropy": 0.8},
    "entropy 0.5": {"entropy": 0.5},
    "entropy 0.5, pull 1": {"entropy": 0.5, "pull": 1.0},
    "entropy 0, pull 1": {"entropy": 0.0, "pull": 1.0},
    "entropy 0, pull 0.3": {"entropy": 0.0, "pull": 0.3},
}
BEST, AVERAGE = "best layer (oracle)", "average layer"
METHODS = (*CONSENSUS, PLAIN, "mean of PageRanks", UNION, BEST, AVERAGE)
MEASURES = {"L1 distance": -1, "Kendall's τ": 1, "top 10": 1, "top 50": 1}  # 1: larger is better
JUDGED = (BLEND, "entropy 0, pull 1", PLAIN, CORROBORATE)
SHOWN = (*JUDGED, MEDIAN, UNION, BEST)


def consensus_study(
    *,
    n: int = 200,
    groups: Sequence[str] = tuple(GROUPS),
    draws: int = 20,
    n_jobs: int | None = 2,
    random_state: int = 0,
) -> Result:
    """Compare ranks from noisy layers with the true PageRank, for many ways to combine the layers.

    Parameters
    ----------
    n : int
        Number of vertices of the true graph.
    groups : sequence of str
        Kinds of layers, any of "link noise", "number of layers", "junk layers", "junk vertices", "concentrated junk",
        "colluding junk", "topics".
    draws : int
        Number of true graphs, each with its own layers.
    n_jobs : int
        Processes.
    random_state : int
        Where the seeds start.

    Examples
    --------
    >>> result = consensus_study(n=30, groups=["colluding junk"], draws=2, n_jobs=1)
    >>> result.view.shape == (4 * 3, 3 + len(SHOWN))
    True
    """
    check_repeated("draws", draws)
    unknown = [group for group in groups if group not in GROUPS]
    if unknown or not groups:
        raise InputError(f"`groups` must be some of {', '.join(GROUPS)}, got {groups!r}")
    settings = [setting for group in groups for setting in GROUPS[group]]
    values = over_splits(partial(_measure_draw, n, tuple(groups)), draws, n_jobs, random_state)
    table = _tidy(values, settings)
    notes = [
        f"{draws} true graphs of {n} vertices, 8 links each on average, 5 communities. Noise: the share of links "
        "that are missing (half) or random (half). Junk: to all vertices (even), to 40 random ones (wide), to as many "
        "random ones as true links (random), to 2 random ones (narrow), to the same 3 for all (concentrated), the "
        "same in all junk layers (colluding). Junk layers: 2 of 5 unless stated; junk vertices: 40 % in each of 5 "
        "layers, redrawn; topics: 4 layers, each vertex has junk in all but one. The other links there have 30 % "
        "noise.",
        "Cells: mean over the draws, and + or − if it is better or worse than the mean of transitions, draw by "
        "draw, beyond noise (95 %). Top 10, 50: share of the true top found. The written table has more methods.",
        "Plain: weights ∝ exp of how much better the vertex's other layers predict a layer than the teleport does, "
        "not divided by the information in the layer (`apexrank_papers.consensus.data.corroborated`).",
        "The best layer is the best for that measure, which is unknown in practice.",
    ]
    verdicts = list(_verdicts(values, groups, settings))
    return Result(table, _view(table), verdicts, _draw(table, settings), notes)


def _measure_draw(n: int, groups: tuple[str, ...], seed: int) -> np.ndarray:
    """Measure one draw: settings x methods x measures; the draw of a group does not depend on the others."""
    links = data.true_graph(n, np.random.default_rng(seed)).links
    truth = data.pagerank(data.shares(links))
    found = []
    for group in groups:
        rng = np.random.default_rng([seed, list(GROUPS).index(group)])
        found += [_measure(views(links, rng), truth) for views in GROUPS[group].values()]
    return np.array(found)


def _measure(views: list[np.ndarray], truth: np.ndarray) -> list[np.ndarray]:
    layers = data.layers_of(views)
    ranks = [
        ConsensusRank(**{**PLAIN_BLEND, **options}).fit(layers).scores_ for options in CONSENSUS.values()
    ]
    ranks.append(data.corroborated(views, normalised=False)[0])
    single = [data.pagerank(data.shares(view)) for view in views]
    ranks += [np.mean(single, axis=0), PageRank(data.DAMPING).fit(layers.union()).scores_]
    alone = np.array([measures(each, truth) for each in single])
    signs = np.array(list(MEASURES.values()))
    best = (alone * signs).max(axis=0) * signs
    return [*(measures(each, truth) for each in ranks), best, alone.mean(axis=0)]


def measures(ranks: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Compute the `MEASURES` of ranks against the true ones.

    Examples
    --------
    >>> measures(np.array([0.5, 0.3, 0.2]), np.array([0.5, 0.2, 0.3])).round(3).tolist()
    [0.2, 0.333, 1.0, 1.0]
    """
    tops = [data.common_top(ranks, truth, min(k, len(truth))) for k in (10, 50)]
    return np.array([np.abs(ranks - truth).sum(), kendall_tau(scores=(ranks, truth)), *tops])


def _tidy(values: np.ndarray, settings: list[str]) -> pl.DataFrame:
    gaps = values - values[:, :, :1]
    noise = np.apply_along_axis(lambda gap: mean_over_splits(gap).noise, 0, gaps)
    columns = {"mean": values.mean(axis=0), "standard_error": standard_error(values)}
    columns |= {"difference": gaps.mean(axis=0), "difference_noise": noise}
    return tidy({"setting": settings, "method": METHODS, "measure": MEASURES}, columns)


def _view(table: pl.DataFrame) -> pl.DataFrame:
    """Return the methods that fit on a screen; the table has all."""

    def cell(measure: str, mean: float, difference: float, difference_noise: float, **_: Any) -> str:
        beyond = MEASURES[measure] * difference if abs(difference) > difference_noise else 0.0
        return f"{mean:.3f}" + (" +" if beyond > 0 else " −" if beyond < 0 else "")

    wide = text_view(table, cell, on="method", index=["measure", "setting"])
    shown = wide.select("measure", "setting", MEAN, *SHOWN)
    return pl.concat([shown.filter(measure=measure) for measure in MEASURES])


def _verdicts(values: np.ndarray, groups: Sequence[str], settings: list[str]) -> Iterator[Verdict]:
    """Answer whether a method is better than the mean of transitions in all settings of a group."""
    for method, group, measure in product(JUDGED, groups, list(MEASURES)[:2]):
        rows = [settings.index(setting) for setting in GROUPS[group]]
        yield _better(values[:, rows], method, group, measure)


def _better(values: np.ndarray, method: str, group: str, measure: str) -> Verdict:
    at, sign = list(MEASURES).index(measure), MEASURES[measure]
    beside = values[:, :, METHODS.index(method), at] - values[:, :, 0, at]
    gaps = {setting: mean_over_splits(gap) for setting, gap in zip(GROUPS[group], beside.T, strict=True)}
    why = ", ".join(f"{gap} ({setting})" for setting, gap in gaps.items())
    row = f"{method}, {group}: better {measure} than the mean of transitions"
    return question(row, min(sign * gap.sign for gap in gaps.values()), why)


def _draw(table: pl.DataFrame, settings: list[str]) -> Figure:
    figure, axes = panels(11.0, 1.5 + 0.33 * len(settings), 1, 2, sharey=True)
    places = -np.arange(len(settings), dtype=float)
    for ax, measure, better in zip(axes, list(MEASURES)[:2], ("smaller", "larger"), strict=True):
        for number, method in enumerate(SHOWN):
            part = table.filter(method=method, measure=measure)
            aside = 0.13 * ((len(SHOWN) - 1) / 2 - number)
            style = line_style(number) | {"linestyle": "none", "label": method, "capsize": 2}
            ax.errorbar(part["difference"], places + aside, xerr=part["difference_noise"], **style)
        ax.axvline(0, color="0.3", linewidth=1)
        ax.set(xlabel=f"difference from the {MEAN} ({better} is better)", title=measure)
        ax.set_yticks(places, settings)
        light(ax)
    shown = axes[0].get_legend_handles_labels()
    figure.legend(*shown, frameon=False, loc="outside lower center", ncols=len(SHOWN))
    return figure
