"""Recovery of the direction and the link by regression with an unknown link (Acharyya 2013, chapter 4).

It is compared with its convex first stage, with least squares, which has no link, and with the two Isotrons, which
also fit a link. The data are those of `data`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from apexrank.plot.style import curve_style, light
from apexrank.rankers.link import UnknownLinkRegressor
from apexrank_papers.link.data import LINKS, Sample, angle, skewed_rows
from apexrank_papers.link.isotron import Isotron
from apexrank_papers.result import Figure, Result, Verdict, panels, question, text_view, tidy
from apexrank_papers.splits import check_repeated, mean_over_splits, over_splits, spread

METHODS = ("unknown link", "convex stage", "least squares", "Isotron", "Lipschitz Isotron")
OURS, CONVEX, LEAST_SQUARES, ISOTRON, LIPSCHITZ = range(len(METHODS))
PLACES = {"angle to u, degrees": 2, "R² on fresh rows": 4, "seconds": 3}  # decimal places shown
MOST_DEGREES, MOST_TIME = 1.0, 1 / 3
MOST_OF_LEAST_SQUARES, CURVED = 1 / 3, ("logistic", "logistic of 3t", "signed root", "cube")


def link_recovery(
    *,
    n: int = 20_000,
    d: int = 20,
    draws: int = 6,
    noise: float = 0.1,
    steps: int = 100,
    random_state: int = 0,
) -> Result:
    """Recover direction and link from ``y = g(Xu)`` + noise, and measure their error and the fit on new rows.

    Parameters
    ----------
    n, d : int
        Rows and features.
    draws : int
        Number of samples, each with its own direction and all links. The Isotrons take nearly all of the time.
    noise : float
        Standard deviation of the noise as a share of that of ``g(Xu)``.
    steps : int
        Number of updates of both Isotrons, which have no stopping rule.
    random_state : int
        First seed.

    Examples
    --------
    >>> result = link_recovery(n=500, d=3, draws=2, steps=5)
    >>> result.view.shape
    (18, 7)
    """
    check_repeated("draws", draws)
    _measure_draw(60, 2, noise, 2, 0)  # load compiled code before timing
    values = over_splits(partial(_measure_draw, n, d, noise, steps), draws, 1, random_state)
    angles = dict(zip(LINKS, values[..., 0].swapaxes(0, 1), strict=True))  # draws x methods
    seconds = values[..., 2].mean(axis=(0, 1))
    asked = [(f"{name}: direction", angles[name][:, OURS], MOST_DEGREES, " degrees") for name in LINKS]
    for name in CURVED:
        ratios = angles[name][:, OURS] / angles[name][:, LEAST_SQUARES]
        asked.append((f"{name}: beside least squares", ratios, MOST_OF_LEAST_SQUARES, " of its angle"))
    ratios = values[..., 2][..., OURS] / values[..., 2][..., ISOTRON]
    asked.append(("seconds beside Isotron", ratios.mean(axis=1), MOST_TIME, " of its time"))
    verdicts = [*(_within(*each) for each in asked), _beside_isotron(angles)]
    worst = ", ".join(f"{name} {found[:, OURS].max():.2f}" for name, found in angles.items())
    isotrons = seconds[[ISOTRON, LIPSCHITZ]].sum() / seconds.sum()
    notes = [
        f"{n:,} rows of {d} standardised gamma features (shape 1/2), noise of {noise:.0%} of the deviation of g(x·u), "
        f"{draws} draws; mean ± standard error (worst draw). R² is that of g(x·u) without noise.",
        f"Worst angle of the unknown link in {draws} draws: {worst} degrees. Verdicts use the mean over the draws "
        "and its 95 % interval.",
        f"Isotrons: {steps} updates; the Lipschitz one with slopes of at most 1. They divide the rows by their largest "
        "norm, so their steps are short if features have long tails.",
        f"The Isotrons took {isotrons:.0%} of the time of all fits, which is why the default is 6 draws; more draws "
        "make the intervals narrower.",
    ]
    worst_draw = values.max(axis=0)
    worst_draw[..., 1] = values[..., 1].min(axis=0)  # R²: the smallest is the worst
    columns = spread(values) | {"worst": worst_draw}
    table = tidy({"link": LINKS, "method": METHODS, "measure": PLACES}, columns)
    figure = _draw_links(Sample.draw(n, d, random_state), noise)
    return Result(table, _view(table), verdicts, figure, notes)


def _measure_draw(n: int, d: int, noise: float, steps: int, seed: int) -> np.ndarray:
    """Measure one draw: links x methods x measures."""
    sample, fresh = Sample.draw(n, d, seed), skewed_rows(n, d, np.random.default_rng([seed, 1]))
    isotrons = Isotron(max_iter=steps), Isotron(lipschitz=1.0, max_iter=steps)
    ours = UnknownLinkRegressor(), UnknownLinkRegressor(refine=False)
    models = *ours, LinearRegression(), *isotrons
    measured = [
        [_measure(model, sample, sample.values(name, noise), fresh, g) for model in models]
        for name, g in LINKS.items()
    ]
    return np.array(measured)


def _measure(
    model: Any, sample: Sample, y: np.ndarray, fresh: np.ndarray, g: Callable[[np.ndarray], np.ndarray]
) -> list[float]:
    start = perf_counter()
    model.fit(sample.X, y)
    took = perf_counter() - start
    return [angle(model.coef_, sample.u), r2_score(g(fresh @ sample.u), model.predict(fresh)), took]


def _view(table: pl.DataFrame) -> pl.DataFrame:
    def cell(measure: str, mean: float, standard_error: float, worst: float, **_: Any) -> str:
        places = PLACES[measure]
        return f"{mean:.{places}f} ± {standard_error:.{places}f} ({worst:.{places}f})"

    wide = text_view(table, cell, on="method", index=["measure", "link"])
    return pl.concat([wide.filter(measure=measure) for measure in PLACES])


def _within(row: str, values: np.ndarray, limit: float, words: str) -> Verdict:
    """Judge "at most ``limit``" by the mean over the draws, and report the worst draw."""
    mean = mean_over_splits(values)
    sign = 1 if mean.value + mean.noise <= limit else -1 if mean.value - mean.noise > limit else 0
    why = f"mean {mean.value:.2f} ± {mean.noise:.2f}{words}, at most {limit:.2g} asked"
    return question(row, sign, f"{why}; worst of {len(values)} draws {values.max():.2f}")


def _beside_isotron(angles: dict[str, np.ndarray]) -> Verdict:
    """Judge "no further from u than Isotron", link by link."""
    signs = {
        name: mean_over_splits(found[:, OURS] - found[:, ISOTRON]).sign for name, found in angles.items()
    }
    further, nearer = ([name for name, s in signs.items() if s == sign] for sign in (1, -1))
    means = ", ".join(
        f"{found[:, ISOTRON].mean():.2f} against {found[:, OURS].mean():.2f} ({name})"
        for name, found in angles.items()
    )
    why = (
        f"Isotron's degrees against ours: {means}; ours further for {', '.join(further) or 'none'}; nearer for "
        f"{', '.join(nearer) or 'none'}"
    )
    return question("no further than Isotron", -1 if further else 1 if nearer else 0, why)


def _draw_links(sample: Sample, noise: float) -> Figure:
    figure, axes = panels(2.6 * len(LINKS), 5.2, 2, len(LINKS))
    for number, (column, name) in enumerate(zip(axes.T, LINKS, strict=True)):
        _draw_link(column, name, sample, sample.values(name, noise))
        if number > 0:
            for ax in column:
                ax.set_ylabel("")
    shown = axes[0, 0].get_legend_handles_labels()
    figure.legend(*shown, frameon=False, loc="outside lower center", ncols=3, handlelength=3.2)
    figure.suptitle(f"Recovered links and their φ, {len(sample.X):,} rows, {noise:.0%} noise, angle to u")
    return figure


def _draw_link(axes: Any, name: str, sample: Sample, y: np.ndarray) -> None:
    """Draw the fitted link, its interval and the true one through 1,000 of the rows, and its φ below."""
    model = UnknownLinkRegressor().fit(sample.X, y)
    index = model.index(sample.X)
    theta, v = (np.linspace(values.min(), values.max(), 1000) for values in (index, model.link_.values))
    axes[0].scatter(index[:1000], y[:1000], s=9, linewidths=0, alpha=0.15, color="0.35", rasterized=True)
    axes[0].plot(theta, model.link_(theta), label="fitted", **curve_style(0))
    interval = model.link_.interval(theta, y.min(), y.max())
    axes[0].fill_between(theta, *interval, alpha=0.25, linewidth=0, label="interval (§4.3)")
    axes[0].plot(theta, LINKS[name](theta / np.linalg.norm(model.coef_)), label="true g", **curve_style(1))
    axes[0].set(xlabel="θ = x·w", ylabel="y", title=f"{name}, {angle(model.coef_, sample.u):.2f}°")
    axes[1].plot(v, model.recovered_phi_(v), **curve_style(0))
    axes[1].set(xlabel="v, value of the link", ylabel="φ(v)")
    for ax in axes:
        light(ax)
