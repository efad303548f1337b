"""Plot of an additive ranker: the effect of every column with its band, and heat maps of pairs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from apexrank.errors import InputError
from apexrank.plot.effects import (
    Effect,
    Effects,
    PairEffect,
    additive_effects,
    date_text,
    effect_limits,
    value_text,
)
from apexrank.plot.style import COLOURS, light, panels, short_name

_BLUE, _ORANGE = COLOURS[:2]
_STRIP = 0.16  # fraction of a panel, at its bottom, for the distribution of the data
_LEVELS = 10  # maximum number of levels in a panel, those with the most rows
_CELLS = 8  # cells of a heat map between neighbouring knots
_NUMBERS = 9  # maximum number of numbers along an axis of a heat map


class ShapeDisplay:
    """Effect of each column of an additive ranker on the score, and of pairs of columns as heat maps.

    There is one panel per column, the most important first, all on one scale: the curve with a bootstrap band, or a dot
    with a bar for each level of a category, and a diamond for missing values. The grey bars beneath are the
    distribution of the training rows; their area is the number of rows. If the last few rows would take more than half
    of a panel, it is truncated and annotated with the end of the column and its effect there. Heat maps show the joint
    effect of two columns in addition to their own effects, on axes with evenly spaced knots. Units are those of the
    table, also if the ranker follows a scaler. Create one with `from_estimator`.

    Parameters
    ----------
    effects : Effects
        As returned by `additive_effects`.

    Attributes
    ----------
    axes_, pair_axes_ : lists of matplotlib axes
        Panels of the columns and of the pairs.
    figure_ : matplotlib figure

    Examples
    --------
    >>> from apexrank.datasets import make_push_example
    >>> from apexrank.rankers import AdditiveRanker
    >>> X, y = make_push_example(500, return_X_y=True)
    >>> ranker = AdditiveRanker(alpha=0.01).fit(X, y)
    >>> display = ShapeDisplay.from_estimator(ranker, columns=["x0", "x1"])
    >>> [ax.get_title() for ax in display.axes_]
    ['x0', 'x1']
    """

    def __init__(self, effects: Effects) -> None:
        self.effects = effects
        if not effects.columns:
            raise InputError("there is nothing to draw: no column has an effect")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        columns: Sequence[str | int] | None = None,
        max_columns: int = 12,
        max_pairs: int = 6,
        axes: Sequence[Any] | None = None,
        **options: Any,
    ) -> Self:
        """Draw a fitted additive ranker, alone, in a Pipeline, or a TableRanker.

        Parameters
        ----------
        estimator : estimator, Pipeline or TableRanker
            The ranker.
        columns : sequence of str or int, optional
            Names of the columns to draw, in this order, or their positions by importance. By default the
            ``max_columns`` most important ones.
        max_columns, max_pairs : int
            Maximum number of panels of columns, and of pairs of drawn columns.
        axes : sequence of matplotlib axes, optional
            One per panel, pairs last; by default a new figure.
        **options
            Passed to `additive_effects`: ``confidence``, ``simultaneous`` and ``feature_names``.
        """
        found = additive_effects(estimator, **options)
        chosen = _chosen(found.columns, columns)[: None if columns is not None else max_columns]
        pairs = found.pairs
        if columns is not None:
            names = {effect.name for effect in chosen}
            pairs = [pair for pair in pairs if names.issuperset(pair.names)]
        return cls(Effects(chosen, pairs[:max_pairs])).plot(axes)

    def plot(self, axes: Sequence[Any] | None = None) -> Self:
        """Draw into matplotlib axes, one for each panel, or into a new figure."""
        columns, pairs = self.effects
        drawn = panels(axes, len(columns) + len(pairs), 3.7, 2.9)
        self.axes_, self.pair_axes_ = drawn[: len(columns)], drawn[len(columns) :]
        self.figure_ = drawn[0].figure
        limits = effect_limits(columns)
        for ax, effect in zip(self.axes_, columns, strict=True):
            _draw(ax, effect, limits)
        for ax, pair in zip(self.pair_axes_, pairs, strict=True):
            mesh = _draw_pair(ax, pair, self.effects.strongest)
        if pairs:
            bar = self.figure_.colorbar(mesh, ax=self.pair_axes_, shrink=0.9)
            bar.set_label("Joint effect")
            bar.outline.set_visible(False)
        return self


def _chosen(effects: list[Effect], columns: Sequence[str | int] | None) -> list[Effect]:
    if columns is None:
        return effects
    by_name: dict[Any, Effect] = {effect.name: effect for effect in effects} | dict(enumerate(effects))
    for name in columns:
        if name not in by_name:
            known = ", ".join(effect.name for effect in effects[:10])
            raise InputError(
                f"there is no column {name!r} with an effect: the most important ones are {known}"
            )
    return [by_name[name] for name in columns]


def _draw(ax: Any, effect: Effect, limits: tuple[float, float]) -> None:
    """Draw a column: its effect above, the distribution of the rows at the bottom."""
    low, high = limits
    ax.set_ylim(low - (high - low) * _STRIP / (1 - _STRIP), high)
    ax.axhline(0, color="0.6", linewidth=0.8, zorder=1)
    ax.set_title(short_name(effect.name), fontsize="medium")
    place = ax.get_subplotspec()
    if place is None or place.is_first_col():
        ax.set_ylabel("Effect on the score")
    light(ax)
    (_draw_levels if effect.levels else _draw_curve)(ax, effect)


def _draw_curve(ax: Any, effect: Effect) -> None:
    x, (middle, low, high) = effect.shown
    ax.plot(x, middle, color=_BLUE, linewidth=1.8)
    ax.fill_between(x, low, high, color=_BLUE, alpha=0.2, linewidth=0)
    heights = 0.9 * _STRIP * effect.densities
    _bars(ax, effect.edges[:-1], heights, np.diff(effect.edges), align="edge")
    (first, last), (start, end) = effect.window, effect.knots[[0, -1]]
    span = last - first
    small = {"fontsize": "small", "color": "0.35", "va": "top"}
    at = ax.get_xaxis_transform()
    if last < end:
        text = f"to {value_text(end)}: {effect.effect[0, -1]:+.2g} "
        ax.text(last, 0.99, text, transform=at, ha="right", **small)
    if first > start:
        text = f" from {value_text(start)}: {effect.effect[0, 0]:+.2g}"
        ax.text(first, 0.99, text, transform=at, ha="left", **small)
    right = last + 0.04 * span
    if effect.missing is not None:
        ax.axvspan(last + 0.06 * span, last + 0.24 * span, color="0.97", zorder=0)
        place, right = last + 0.15 * span, last + 0.24 * span
        _dots(ax, np.array([place]), effect.missing[:, None], "D", _ORANGE)
        ax.text(place, 0.02, "missing", transform=at, ha="center", rotation=90, **(small | {"va": "bottom"}))
    ax.set_xlim(first - 0.04 * span, right)
    if effect.is_date:
        days = first + span * np.array([0.1, 0.5, 0.9])
        ax.set_xticks(days, [date_text(day) for day in days], fontsize="small")


def _draw_levels(ax: Any, effect: Effect) -> None:
    kept = effect.main_levels(_LEVELS)
    names = [short_name(effect.levels[place], 14) for place in kept]
    values, counts = effect.effect[:, kept], effect.counts[kept]
    _dots(ax, np.arange(len(kept)), values, "o", _BLUE)
    if effect.missing is not None:
        _dots(ax, np.array([len(kept)]), effect.missing[:, None], "D", _ORANGE)
        names, counts = [*names, "missing"], np.append(counts, effect.missing_count)
    _bars(ax, np.arange(len(counts)), 0.9 * _STRIP * counts / (counts.max() or 1.0), 0.6)
    _name_ticks(ax, names)
    if len(kept) < len(effect.levels):
        ax.set_xlabel(f"{len(kept)} most frequent of {len(effect.levels)}", fontsize="small")
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.grid(visible=False, axis="x")


def _dots(ax: Any, x: np.ndarray, effect: np.ndarray, marker: str, colour: str) -> None:
    middle, low, high = effect
    ax.vlines(x, low, high, color=colour, linewidth=2, alpha=0.5)
    ax.plot(x, middle, marker, color=colour, markersize=5)


def _bars(ax: Any, x: np.ndarray, heights: np.ndarray, width: Any, align: str = "center") -> None:
    options = {"color": "0.8", "edgecolor": "white", "linewidth": 0.4, "zorder": 0.5}
    ax.bar(x, heights, width, align=align, transform=ax.get_xaxis_transform(), **options)


def _draw_pair(ax: Any, pair: PairEffect, largest: float) -> Any:
    edges, values = pair.cells(_CELLS)
    options = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest, "rasterized": True}
    mesh = ax.pcolormesh(*edges, values.T, **options)
    ax.set_title(short_name(" × ".join(pair.names), 34), fontsize="medium")
    ax.set(xlabel=short_name(pair.names[0], 24), ylabel=short_name(pair.names[1], 24))
    across, up = ([short_name(text, 12) for text in texts] for texts in pair.texts)
    for axis, texts, levels in zip("xy", (across, up), pair.are_levels, strict=True):
        _name_ticks(ax, texts, len(texts) if levels else _NUMBERS, axis)
    return mesh


def _name_ticks(ax: Any, names: Sequence[str], most: int = sys.maxsize, axis: str = "x") -> None:
    """Write names at 0, 1, 2, …, at most ``most`` of them at equal distances, rotated if they are long."""
    places = range(0, len(names), -(-(len(names) - 1) // (most - 1)) if len(names) > most else 1)
    shown = [names[place] for place in places]
    long = axis == "x" and sum(map(len, shown)) > 32
    slanted = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if long else {}
    getattr(ax, f"set_{axis}ticks")(places, shown, fontsize="small", **slanted)
