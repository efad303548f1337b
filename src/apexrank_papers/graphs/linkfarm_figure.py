"""The picture of ``linkfarm``: Figures 6.4–6.10 of Acharyya 2013 in six panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from apexrank_papers.graphs.farms import RATIO, Farmed
from apexrank_papers.graphs.linkfarm_rankings import ANTITRUST, L_P_STEPS, Key, Trial, name_of
from apexrank_papers.graphs.linkfarm_table import PLAIN, Found, powers
from apexrank_papers.push.push_figures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEGEND: dict[str, Any] = {"frameon": False, "handlelength": 3.2, "fontsize": "small"}


def draw(found: Found, farmed: Farmed, trials: Mapping[Key, Trial], plain: dict[float, np.ndarray]) -> Figure:
    """Spam mass against p and q/p, steps, convergence, and spam met down the ranking."""
    figure = new_figure(13.5, 8)
    axes = figure.subplots(2, 3)
    _draw_masses(axes[0, 0], found)
    _draw_ratios(axes[0, 1], found, "spam mass")
    _draw_ratios(axes[0, 2], found, "steps to a change of 1e-6")
    _draw_changes(axes[1, 0], trials, plain)
    _draw_curves(axes[1, 1:], found.labels[-1], farmed.spam, trials)
    figure.suptitle(farmed.name)
    return figure


def _draw_masses(ax: Any, found: Found) -> None:
    """Figures 6.4, 6.7 and 6.9 in one: spam mass against p."""
    lines = {"L_p": [(p, found.lpq("spam mass", p, 1.0)) for p in (1.0, *found.ps("L_p"))]}
    lines[f"L_pq, q/p = {RATIO}"] = [(p, found.lpq("spam mass", p, RATIO)) for p in found.ps("L_pq")]
    for share in found.few_and_many:
        line = [(p, found("spam mass", "Lin-L_pq", p, RATIO, share)) for p in found.ps("Lin-L_pq")]
        if any(mass > 0 for _, mass in line):  # the axis is logarithmic
            lines[f"Lin-L_pq, {100 * share:.3g} % labels"] = line
    flat = {"in-degree": found("spam mass", "in-degree"), "PageRank": found("spam mass", *PLAIN)}
    _p_lines(ax, lines, flat)
    ax.set(xlabel="p", ylabel="spam mass", title="Spam mass against p")


def _p_lines(ax: Any, lines: dict[str, list[tuple[float, float]]], flat: dict[str, float]) -> None:
    from apexrank.plot.style import light, line_style

    ps = sorted({p for line in lines.values() for p, _ in line})
    last = max(p for p in ps if np.isfinite(p))
    place = {p: np.log2(p if np.isfinite(p) else 2 * last) for p in ps}
    for number, (name, line) in enumerate(lines.items()):
        ax.plot([place[p] for p, _ in line], [y for _, y in line], label=name, **line_style(number))
    for number, (name, level) in enumerate(flat.items()):
        ax.axhline(level, color="0.35", linewidth=1, linestyle=("-", ":")[number], label=name)
    ax.set_xticks(list(place.values()), [powers([p]) for p in ps])
    light(ax)
    ax.set_yscale("log")
    ax.set_ylim(bottom=ax.get_ylim()[0] / 8)  # room for the legend
    ax.legend(loc="lower left", ncols=2, **_LEGEND)


def _draw_ratios(ax: Any, found: Found, measure: str) -> None:
    """Figure 6.6: spam mass, or steps, against q/p."""
    from apexrank.plot.style import light, line_style

    for number, p in enumerate(found.ps("L_pq")):
        points = [(ratio, found.lpq(measure, p, ratio)) for ratio in found.ratios(p)]
        points = [point for point in points if np.isfinite(point[1])]
        ax.plot(*zip(*points, strict=True), label=f"p = {powers([p])}", **line_style(number))
    what = "steps" if measure.startswith("steps") else measure
    ax.set(xlabel="q/p", ylabel=measure, title=f"{what.capitalize()} against q/p")
    light(ax)
    ax.legend(**_LEGEND)


def _draw_changes(ax: Any, trials: Mapping[Key, Trial], plain: dict[float, np.ndarray]) -> None:
    """Figures 6.5 and 6.8: change of each step."""
    from apexrank.plot.style import curve_style, light

    lines = {f"L_{p:g}, plain iteration": history for p, history in plain.items()}
    keys: list[Key] = [(*PLAIN, None), ("L_pq", 2.0, 1.05, None)]
    keys += [("L_pq", p, RATIO, None) for p in (2.0, 4.0, np.inf)]
    lines |= {name_of(*key): trials[key].history for key in keys if key in trials}
    for number, (name, history) in enumerate(lines.items()):
        ax.plot(np.arange(1, len(history) + 1), history, label=name, **curve_style(number))
    ax.set(
        yscale="log", xlabel="step t", ylabel="change of a step", title=r"Convergence: $|r_t - r_{t-1}|_1$"
    )
    low, high = ax.get_ylim()
    ax.set(xlim=(0, L_P_STEPS), ylim=(low / 1000, high))  # room for the legend
    light(ax)
    ax.legend(loc="lower right", **_LEGEND)


def _draw_curves(axes: Sequence[Any], share: float, spam: np.ndarray, trials: Mapping[Key, Trial]) -> None:
    """Figure 6.10: spam met down the ranking, linear and logarithmic."""
    from apexrank.plot import CumulativeSpamDisplay

    keys: list[Key] = [("in-degree", None, None, None), (*PLAIN, None)]
    keys += [("L_pq", p, RATIO, None) for p in (2.0, 4.0)]
    keys += [("TrustRank", None, None, share), (ANTITRUST, 1.0, 1.0, share), ("Lin-L_pq", 2.0, RATIO, share)]
    scores = {name_of(*key): trials[key].scores for key in keys}
    for ax, log in zip(axes, (False, True), strict=True):
        CumulativeSpamDisplay.from_scores(scores, spam, ax=ax, log_x=log, log_y=log)
        ax.set_title("Spam met, both axes logarithmic" if log else "Spam met down the ranking")
    axes[0].get_legend().remove()
    axes[0].locator_params(axis="x", nbins=4)
    axes[1].legend(loc="upper left", **_LEGEND)
