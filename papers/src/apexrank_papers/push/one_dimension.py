"""Exact analysis and simulation of a one-dimensional example in which rare rows decide R_max (JMLR 2009, sec. 10.1).

Rows are negatives on [−1, 0] and positives on [0, 1]; with a small probability ε they are positives on [−2, −1] or
negatives on [1, 2]. The two rankers are x and −x.

* Their true risks are ``R_p(x) = (ε + (1 − ε)·ε^p)^{1/p}``, which tends to 1, and ``R_p(−x) = (1 − ε)^{(p + 1)/p}``,
  which tends to 1 − ε. Hence −x is the right choice for R_max, but x for the AUC and for every moderate p.
* On m training rows R_max wrongly chooses x if there is no negative in [1, 2], and cannot distinguish the two rankers
  if there is one but no positive in [−2, −1]. If it then tosses a coin, it is wrong with probability
  ``(3·(1 − ε/2)^m − (1 − ε)^m)/2``. The paper's ``(1 − ε)^m``, the probability of no rare row, is a lower bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from apexrank.metrics import auc, p_norm_risk
from apexrank.plot.style import curve_style, legend, light, line_style
from apexrank_papers.result import Figure, Result, Verdict, claim, panels, signed_verdict, text_view, tidy
from apexrank_papers.splits import mean_over_splits, over_splits, spread, standard_error

EPSILON = 0.02
SIZES = (25, 50, 100, 200, 400, 800)
POWERS = (1.0, 4.0, 16.0, 64.0, np.inf)
SMALL = 100  # rows, usually too few to contain both rare parts
MISSED = 0.1  # a training risk at most this far below the true one counts as learnt
CLOSE = 0.95  # an AUC that "is close to 1"


def _name(p: float) -> str:
    return "p = ∞" if p == np.inf else f"p = {p:g}"


def draw(m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw m rows x and their labels from the distribution of sec. 10.1.

    Examples
    --------
    >>> x, y = draw(1000, np.random.default_rng(0))
    >>> bool(np.all((x > 0)[abs(x) < 1] == y[abs(x) < 1])), bool(np.all((x < 0)[abs(x) > 1] == y[abs(x) > 1]))
    (True, True)
    """
    parts = rng.choice(4, size=m, p=[(1 - EPSILON) / 2, (1 - EPSILON) / 2, EPSILON / 2, EPSILON / 2])
    start, label = np.array([-1.0, 0.0, -2.0, 1.0]), np.array([0, 1, 1, 0])
    return start[parts] + rng.random(m), label[parts]


def true_risk(p: float) -> float:
    """Compute R_p of the increasing ranker on the whole distribution.

    Examples
    --------
    >>> [round(true_risk(p), 4) for p in (1, 16, np.inf)]
    [0.0396, 0.7831, 1.0]
    """
    return float((EPSILON + (1 - EPSILON) * EPSILON**p) ** (1 / p))


def wrong_choice(m: float) -> float:
    """Compute the probability that R_max on m rows prefers the increasing ranker; ties count half.

    Examples
    --------
    >>> round(wrong_choice(100), 3), round((1 - EPSILON) ** 100, 3)
    (0.483, 0.133)
    """
    return float((3 * (1 - EPSILON / 2) ** m - (1 - EPSILON) ** m) / 2)


def one_dimension(*, n_splits: int = 400, random_state: int = 0) -> Result:
    """Simulate training: it underestimates the risk for a large p until rare rows occur; the AUC hardly changes.

    Parameters
    ----------
    n_splits : int
        Number of training sets of each size.
    random_state : int
        First seed.
    """
    values = over_splits(_measure, n_splits, n_jobs=1, random_state=random_state)
    missed, wrong, aucs = values[:, :, : len(POWERS)], values[:, :, -2], values[:, :, -1]
    names = [*(f"R_true − R_train, {_name(p)}" for p in POWERS), "R_max chooses wrongly", "AUC"]
    table = tidy({"m": SIZES, "measure": names}, spread(values)).select("measure", pl.exclude("measure"))
    named = table.with_columns(m=pl.format("m = {}", "m"))
    view = text_view(named, "{mean:.3f} ± {standard_error:.3f}", on="m", index="measure")
    verdicts = [_wrong_verdict(wrong), _data_verdict(missed), _auc_verdict(aucs)]
    notes = [
        f"ε = {EPSILON:g}; means over {n_splits} training sets of each size m, ± standard error. "
        f"The decreasing ranker is the right one for R_max, and for R_p from p = {_crossing()} on."
    ]
    return Result(table, view, verdicts, _draw_figure(missed, wrong), notes)


def _measure(seed: int) -> list[list[float]]:
    """Measure for each size the missed risk at each p, whether R_max chooses wrongly, and the AUC."""
    rng = np.random.default_rng(seed)
    rows = []
    for m in SIZES:
        x, y = draw(m, rng)
        missed = [true_risk(p) - p_norm_risk(y, x, p, normalize=True) for p in POWERS]
        up, down = (p_norm_risk(y, scores, np.inf) for scores in (x, -x))
        rows.append([*missed, 1.0 if up < down else 0.5 if up == down else 0.0, auc(y, x)])
    return rows


def _crossing() -> int:
    """Return the smallest integer p for which the decreasing ranker has the smaller true risk."""
    return next(p for p in range(1, 10_000) if (1 - EPSILON) ** ((p + 1) / p) < true_risk(p))


def _wrong_verdict(wrong: np.ndarray) -> Verdict:
    """Judge "with probability (1 − ε)^m the increasing function will be (wrongly) chosen": at least so often."""
    means, least = [mean_over_splits(column) for column in wrong.T], [(1 - EPSILON) ** m for m in SIZES]
    # If an event never occurred in n trials, its probability may still be about 3/n.
    noise = [max(mean.noise, 3 / len(wrong)) for mean in means]
    holds = all(mean.value + n >= low for mean, n, low in zip(means, noise, least, strict=True))
    seen, low = (", ".join(f"{v:.2f}" for v in part) for part in ([mean.value for mean in means], least))
    why = f"share of wrong choices {seen} at m = {', '.join(map(str, SIZES))}, at least (1 − ε)^m = {low}"
    return claim("R_max chooses wrongly", holds and means[0].value > 0.5, why)


def _data_verdict(missed: np.ndarray) -> Verdict:
    """Judge "more examples are required for larger p" by the risk missed from each p to the next, for small m."""
    small = missed[:, np.array(SIZES) <= SMALL].mean(axis=1)
    steps = [mean_over_splits(column).sign for column in np.diff(small, axis=1).T]
    whole = mean_over_splits(small[:, -1] - small[:, 0]).sign
    sign = 1 if min(steps) > 0 else -1 if whole < 0 else 0
    learnt = missed.mean(axis=0).T <= MISSED
    needed = ", ".join(f"{SIZES[int(row.argmax())] if row.any() else np.inf:g}" for row in learnt)
    why = f"m with at most {MISSED:g} of R_p missed in training: {needed} at p = 1, 4, 16, 64, ∞"
    return signed_verdict("a larger p needs more data", sign, why)


def _auc_verdict(aucs: np.ndarray) -> Verdict:
    worst, true = min(mean_over_splits(column) for column in aucs.T), (1 - EPSILON) ** 2
    why = f"mean training AUC at least {worst.value:.3f}, true AUC {true:.3f}"
    reached = [min(value, true) > CLOSE for value in (worst.value, worst.value + worst.noise)]
    return Verdict("AUC hardly affected", ("differs", "within noise", "agrees")[sum(reached)], why)


def _draw_figure(missed: np.ndarray, wrong: np.ndarray) -> Figure:
    figure, (density, choice, risk) = panels(13, 4, 1, 3)
    _draw_density(density)
    _draw_choice(choice, wrong)
    for number, (p, values) in enumerate(zip(POWERS, np.moveaxis(missed, 2, 0), strict=True)):
        mean, error, style = values.mean(axis=0), standard_error(values), line_style(number)
        risk.plot(SIZES, mean, label=_name(p), **style)
        risk.fill_between(SIZES, mean - error, mean + error, color=style["color"], alpha=0.2, linewidth=0)
    risk.set(title="Risk that training misses", ylabel=r"$R_{true} - R_{train}$ of the increasing ranker")
    for ax in (choice, risk):
        ax.set(xlabel="m, training rows", xscale="log")
        ax.set_xticks(SIZES, map(str, SIZES))
        ax.minorticks_off()
        light(ax)
        legend(ax)
    return figure


def _draw_density(ax: Any) -> None:
    spans = {"negatives": (-1, 1, "//"), "positives": (0, -2, "..")}
    for number, (name, (common, rare, hatch)) in enumerate(spans.items()):
        heights = [(1 - EPSILON) / 2, EPSILON / 2]
        style = {"color": line_style(number)["color"], "hatch": hatch, "alpha": 0.6, "edgecolor": "white"}
        ax.bar([common, rare], heights, width=1, align="edge", label=name, **style)
    ax.set(title=f"The distribution, ε = {EPSILON:g}", xlabel="x", ylabel="Density", yscale="log")
    ax.set(ylim=(EPSILON / 8, 3))
    light(ax)
    ax.legend(frameon=False, loc="upper center", ncols=2)


def _draw_choice(ax: Any, wrong: np.ndarray) -> None:
    m = np.geomspace(SIZES[0], SIZES[-1], 200)
    bars = {"fmt": "o", "capsize": 3, "color": line_style(0)["color"]}
    ax.errorbar(SIZES, wrong.mean(axis=0), standard_error(wrong), label="simulated ± s.e.", **bars)
    ax.plot(m, [wrong_choice(size) for size in m], label="exact", **curve_style(1))
    ax.plot(m, (1 - EPSILON) ** m, label=r"the paper's $(1 - \varepsilon)^m$", **curve_style(2))
    ax.set(title=r"$R_{\max}$ chooses the wrong ranker", ylabel="Probability", ylim=(-0.03, 1.03))
