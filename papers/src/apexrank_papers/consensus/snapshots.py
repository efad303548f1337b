"""Ranks from noisy daily snapshots of a slowly drifting graph (Acharyya 2013, chapter 5).

The experiment measures how stable ranks are from day to day and how close to the true ranks, if they come from a single
day or from the last days together.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.graph import ConsensusRank, PageRank
from apexrank.metrics import kendall_tau, spearman_footrule
from apexrank.plot.style import curve_style, light
from apexrank_papers.consensus import data
from apexrank_papers.result import Figure, Result, Verdict, panels, question, text_view, tidy
from apexrank_papers.splits import (
    check_repeated,
    mean_over_splits,
    mean_verdict,
    over_splits,
    spread,
    standard_error,
)

METHODS = ("the day", "union", "mean of transitions", "consensus", "corroborate")
DAY, UNION, MEAN, CONSENSUS, CORROBORATE = METHODS
# measures of a day: distances to the day before, then to the truth; 1: larger is better
MEASURES = {
    "L1 change": -1,
    "footrule change": -1,
    "L1 distance to the truth": -1,
    "Kendall's τ with the truth": 1,
}

TITLES = {"L1 change": "Change from the day before", "L1 distance to the truth": "Distance to the true ranks"}


def consensus_snapshots(
    *,
    n: int = 100,
    days: int = 28,
    window: int = 7,
    noise: float = 0.6,
    drift: float = 0.02,
    draws: int = 6,
    n_jobs: int | None = 2,
    random_state: int = 0,
) -> Result:
    """Measure how much the ranks change from day to day and how close they are to the truth.

    Parameters
    ----------
    n : int
        Vertices.
    days, window : int
        Number of days that are ranked, and number of last days used.
    noise : float
        Share of the links that are missing (half) or wrong (half) in the snapshot of a day.
    drift : float
        Share of the vertices that get a new popularity and new links every day, and of the other links that are
        redrawn.
    draws : int
        Number of histories.
    n_jobs : int
        Processes.
    random_state : int
        Where the seeds start.

    Examples
    --------
    >>> consensus_snapshots(n=40, days=3, window=2, draws=2, n_jobs=1).view.shape
    (5, 5)
    """
    check_repeated("draws", draws)
    if days < 2 or window < 2:
        raise InputError(f"`days` and `window` must be at least 2, got {days!r} and {window!r}")
    values = over_splits(partial(_measure_draw, n, days, window, noise, drift), draws, n_jobs, random_state)
    own = np.moveaxis(values[:, : len(METHODS)], 2, 3)  # draws x methods x measures x days
    columns = {"mean": own.mean(axis=0), "standard_error": standard_error(own)}
    table = tidy({"method": METHODS, "measure": MEASURES, "day": range(1, days + 1)}, columns)
    means = np.nanmean(values, axis=2)  # over the days
    pairs = [*((CONSENSUS, other, measure) for measure in MEASURES for other in (DAY, UNION))]
    pairs += [(CORROBORATE, UNION, measure) for measure in MEASURES]
    verdicts = [_better(means, *pair) for pair in pairs]
    notes = [
        f"{draws} histories of {days} days, {n} vertices; {noise:.0%} of the links in a snapshot are missing or wrong, "
        f"{drift:.0%} of the vertices change each day. All methods but the first use the last {window} days.",
        "Footrule: Spearman's, as a share of its largest value. Changes of the truth itself: "
        f"L1 {means[:, -1, 0].mean():.3f}, footrule {means[:, -1, 1].mean():.3f}.",
    ]
    known = table.filter(pl.col("mean").is_not_nan())
    over_days = tidy({"method": METHODS, "measure": MEASURES}, spread(means[:, : len(METHODS)]))
    view = text_view(over_days, "{mean:.3f} ± {standard_error:.3f}", on="measure", index="method")
    return Result(known, view, verdicts, _draw(values, window), notes)


def history(
    n: int, days: int, noise: float, drift: float, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the true links and the snapshot of each day.

    Examples
    --------
    >>> first, second = history(50, 2, 0.5, 0.1, np.random.default_rng(0))
    >>> 0 < int((first[0] != second[0]).any(axis=1).sum()) < 50
    True
    """
    links, popularity, community = data.true_graph(n, rng)
    found = []
    for _ in range(days):
        moved = np.flatnonzero(rng.random(n) < drift)
        popularity[moved] = 0.3 + rng.pareto(1.5, len(moved))
        gone = (links > 0) & ((rng.random((n, n)) < drift) | np.isin(np.arange(n), moved)[:, None])
        links = links * ~gone
        for i in np.flatnonzero(gone.any(axis=1)):
            chances = np.where(links[i] > 0, 0.0, data.chances(popularity, community, int(i)))
            count = int(gone[i].sum())
            links[i, rng.choice(n, count, replace=False, p=chances / chances.sum())] = 1.0
        found.append((links, data.noisy(links, noise, rng)))
    return found


def _measure_draw(n: int, days: int, window: int, noise: float, drift: float, seed: int) -> np.ndarray:
    """Measure one history: (methods and the truth) x days x measures; there is no change on the first day."""
    seen = history(n, days + window - 1, noise, drift, np.random.default_rng(seed))
    truth = [data.pagerank(data.shares(links)) for links, _ in seen[window - 1 :]]
    ranks = [_ranks([view for _, view in seen[day : day + window]]) for day in range(days)]
    found = np.full((len(METHODS) + 1, days, len(MEASURES)), np.nan)
    for day in range(days):
        for m, each in enumerate([*ranks[day], truth[day]]):
            if day > 0:
                before = [*ranks[day - 1], truth[day - 1]][m]
                footrule = spearman_footrule(scores=(each, before), normalize=True)
                found[m, day, :2] = np.abs(each - before).sum(), footrule
            found[m, day, 2:] = np.abs(each - truth[day]).sum(), kendall_tau(scores=(each, truth[day]))
    return found


def _ranks(views: list[np.ndarray]) -> list[np.ndarray]:
    layers = data.layers_of(views)
    return [
        data.pagerank(data.shares(views[-1])),
        PageRank(data.DAMPING).fit(layers.union()).scores_,
        ConsensusRank("mean").fit(layers).scores_,
        ConsensusRank("blend", tol=1e-5).fit(layers).scores_,
        ConsensusRank("corroborate", tol=1e-5).fit(layers).scores_,
    ]


def _better(means: np.ndarray, method: str, other: str, measure: str) -> Verdict:
    own, its = (means[:, METHODS.index(name), list(MEASURES).index(measure)] for name in (method, other))
    row = f"{method}: better {measure} than {other}"
    return mean_verdict(row, own - its, "difference {}", MEASURES[measure], question)


def _draw(values: np.ndarray, window: int) -> Figure:
    figure, axes = panels(11.0, 4.4, 1, 2)
    days = np.arange(1, values.shape[2] + 1)
    for ax, (measure, title) in zip(axes, TITLES.items(), strict=True):
        found = values[..., list(MEASURES).index(measure)]
        known = ~np.isnan(found[0, 0])
        for m, method in enumerate(METHODS):
            middle, noise, _ = np.transpose([mean_over_splits(day) for day in found[:, m, known].T])
            style = curve_style(m)
            ax.plot(days[known], middle, label=method, **style)
            band = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
            ax.fill_between(days[known], middle - noise, middle + noise, **band)
        ax.set(xlabel="day", ylabel="L1 distance", title=title)
        ax.set_ylim(bottom=0)
        light(ax)
    shown = axes[0].get_legend_handles_labels()
    figure.legend(*shown, frameon=False, loc="outside lower center", ncols=len(METHODS), handlelength=3.2)
    figure.suptitle(f"Ranks from daily snapshots: the day alone and the last {window} days (bands: 95 %)")
    return figure
