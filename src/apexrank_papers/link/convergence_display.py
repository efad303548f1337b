"""Convergence of solvers: the objective less its minimum against the iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.plot.style import curve_style, legend, light, lines_of, one_axes

_LINE, _GUIDE = "apexrank-solver", "apexrank-guide"
_RATES = {0.5: "1/√t", 1.0: "1/t", 2.0: "1/t²"}
_MOST_POINTS = 1000


class ConvergenceDisplay:
    """Objective minus its minimum against the iteration, a line for each solver, on logarithmic scales.

    Make one with `from_histories`; pass the ``ax_`` of an earlier display to draw over it. What is not above the
    minimum, to rounding, is not drawn: a line ends where its solver is done.

    Parameters
    ----------
    gaps : mapping of str to array
        For each solver how far it is above the minimum before the first iteration, after it, after the second, ….

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_, guides_ : list of matplotlib lines
        Those of the solvers and of the rates.

    Examples
    --------
    >>> display = ConvergenceDisplay.from_histories({"halving": [9.0, 5.0, 3.0, 2.0]}, best=1.0)
    >>> display.gaps["halving"].tolist()
    [8.0, 4.0, 2.0, 1.0]
    """

    def __init__(self, gaps: Mapping[str, ArrayLike]) -> None:
        self.gaps = {str(name): np.asarray(values, dtype=float) for name, values in gaps.items()}
        if not self.gaps or any(values.ndim != 1 or not len(values) for values in self.gaps.values()):
            raise InputError("there is nothing to draw: give each solver's values, one for each iteration")

    @classmethod
    def from_histories(
        cls,
        histories: Mapping[str, ArrayLike],
        *,
        best: float | None = None,
        ax: Any = None,
        log_x: bool = True,
        guides: Sequence[float] = (),
        **line_options: Any,
    ) -> ConvergenceDisplay:
        """Draw histories of the objective, such as the ``history_`` of estimators that minimise the same one.

        Parameters
        ----------
        histories : mapping of str to array-like
            The objective at the start and after each iteration, by solver.
        best : float, optional
            The minimum; by default the lowest value of all, so that the solver that found it seems to be exact.
        ax, log_x, guides, **line_options
            As in `plot`.
        """
        if not histories:
            raise InputError("there is nothing to draw: give the history of at least one solver")
        values = {name: np.asarray(history, dtype=float) for name, history in histories.items()}
        if best is None:
            best = min(float(np.nanmin(history, initial=np.inf)) for history in values.values())
        display = cls({name: history - best for name, history in values.items()})
        return display.plot(ax, log_x=log_x, guides=guides, **line_options)

    def plot(
        self, ax: Any = None, *, log_x: bool = True, guides: Sequence[float] = (), **line_options: Any
    ) -> ConvergenceDisplay:
        """Draw into matplotlib axes, or into a new figure.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Lines that an earlier display drew there stay.
        log_x : bool
            Powers of t are straight lines with True, which has no place for the start, and powers of a constant are
            with False.
        guides : sequence of float
            Rates to compare with: 0.5 for 1/√t, 1 for 1/t, 2 for 1/t²; drawn from the highest line's first point.
        **line_options
            Passed to ``Axes.plot``.
        """
        self.ax_ = one_axes(ax, (6.4, 4.2))
        self.figure_ = self.ax_.figure
        drawn = [self._points(values, log_x) for values in self.gaps.values()]
        self.lines_ = [
            self._draw(name, points, line_options) for name, points in zip(self.gaps, drawn, strict=True)
        ]
        self.guides_ = self._draw_guides(guides, drawn)
        self.ax_.set(xlabel="Iteration t", ylabel="Objective − minimum", yscale="log")
        self.ax_.set_xscale("log" if log_x else "linear")
        light(self.ax_)
        legend(self.ax_)
        return self

    def _points(self, values: np.ndarray, log_x: bool) -> tuple[np.ndarray, np.ndarray]:
        """Iterations to draw: all of them, or so many that the eye cannot tell."""
        last, first = len(values) - 1, int(log_x)
        t = np.arange(first, last + 1)
        if len(t) > _MOST_POINTS:
            spaced = np.geomspace(1, last, _MOST_POINTS) if log_x else np.linspace(0, last, _MOST_POINTS)
            t = np.unique(spaced.round().astype(int))
        with np.errstate(invalid="ignore"):
            shown = np.where(values[t] > 0, values[t], np.nan)
        return t, shown

    def _draw(self, name: str, points: tuple[np.ndarray, np.ndarray], options: dict[str, Any]) -> Any:
        number = len(lines_of(self.ax_, _LINE))
        return self.ax_.plot(*points, label=name, gid=_LINE, **(curve_style(number) | options))[0]

    def _draw_guides(self, guides: Sequence[float], drawn: list[tuple[np.ndarray, np.ndarray]]) -> list[Any]:
        starts = [values[0] for _, values in drawn if len(values) and values[0] > 0]
        if not starts:
            return []
        t = np.geomspace(1, max(t[-1] for t, _ in drawn if len(t)), 100)
        style = {"color": "0.6", "linewidth": 0.9, "zorder": 0.5, "gid": _GUIDE}
        lines = []
        for number, rate in enumerate(guides):
            label, dash = _RATES.get(float(rate), f"1/t^{rate:g}"), (0, (1 + 3 * number, 2))
            lines += self.ax_.plot(t, max(starts) * t ** -float(rate), label=label, linestyle=dash, **style)
        return lines
