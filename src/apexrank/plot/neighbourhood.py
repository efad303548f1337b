"""The neighbourhood of a vertex: who links to it, and who of them link to one another."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from apexrank.errors import InputError
from apexrank.graph.neighbourhood import Neighbourhood, neighbourhood
from apexrank.plot.style import COLOURS, legend, one_axes, short_name
from apexrank.validation import check_count

_TARGET, _UNSUPPORTED, _SUPPORTED = COLOURS[4], COLOURS[1], COLOURS[0]
_THINNEST, _THICKEST = 0.6, 3.0  # arrows of in-links, in points


class NeighbourhoodDisplay:
    """A vertex, its strongest in-links, and the links among their sources: what a link farm looks like.

    An arrow into the vertex is the thicker the more of the score comes through it, and has two heads where the vertex
    links back. Sources that nobody but the vertex links to, as boosters of a farm, are orange squares, others blue
    circles; links among sources are thin and grey.

    Parameters
    ----------
    vertex : object
        Name of the vertex.
    around : Neighbourhood
        Its in-links, from `from_rank` or a suspect of `compare_ranks`.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from apexrank.graph import PageRank
    >>> from apexrank.plot import NeighbourhoodDisplay
    >>> rank = PageRank().fit((["a", "b", "c", "farm", "c"], ["farm", "farm", "farm", "a", "b"]))
    >>> display = NeighbourhoodDisplay.from_rank(rank, "farm", ax=Figure().subplots())
    >>> [link.source for link in display.around.links], display.around.unsupported
    (['a', 'b', 'c'], [True, False, True])
    """

    def __init__(self, vertex: Any, around: Neighbourhood) -> None:
        if not around.links:
            raise InputError(f"there is nothing to draw: nobody links to {vertex!r}")
        self.vertex, self.around = vertex, around

    @classmethod
    def from_rank(cls, rank: Any, vertex: Any, *, top: int = 12, ax: Any = None) -> NeighbourhoodDisplay:
        """Draw the ``top`` strongest in-links of a vertex in a fitted rank that can `explain` its scores."""
        check_is_fitted(rank)
        check_count("top", top)
        if not hasattr(rank, "explain"):
            raise InputError(f"{type(rank).__name__} does not explain its scores: use PageRank")
        return cls(vertex, neighbourhood(rank, rank.graph_.number(vertex), top)).plot(ax)

    def plot(self, ax: Any = None) -> NeighbourhoodDisplay:
        """Draw into matplotlib axes, or into a new figure; return the display itself."""
        self.ax_ = one_axes(ax, (6.4, 5.2))
        self.figure_ = self.ax_.figure
        links, unsupported, among = self.around
        angles = 2 * np.pi * np.arange(len(links)) / len(links)
        spots = np.vstack([[0, 0], np.column_stack([np.sin(angles), np.cos(angles)])])
        strongest = max(link.share for link in links)
        for a, b in among:
            if b == 0 or a:
                width = _THINNEST
                if b == 0:
                    width += (_THICKEST - _THINNEST) * links[a - 1].share / strongest
                style = "<|-|>" if b == 0 and (0, a) in among else "-|>"
                self._arrow(spots[a], spots[b], style, width, "0.35" if b == 0 else "0.7")
        for lone, colour, marker, label in (
            (True, _UNSUPPORTED, "s", "nobody else links to it"),
            (False, _SUPPORTED, "o", "others link to it, too"),
        ):
            chosen = spots[1:][np.array(unsupported) == lone]
            if len(chosen):
                self.ax_.scatter(*chosen.T, s=70, color=colour, marker=marker, label=label, zorder=3)
        self.ax_.scatter([0], [0], s=140, color=_TARGET, marker="^", zorder=3)
        for link, (x, y) in zip(links, spots[1:], strict=True):
            side = "center" if abs(x) < 0.2 else "left" if x > 0 else "right"
            text = f"{short_name(str(link.source))} ({link.share:.1%})"
            self.ax_.text(1.1 * x, 1.13 * y, text, ha=side, va="center", fontsize=8)
        self.ax_.set(
            xlim=(-2, 2), ylim=(-1.35, 1.35), title=f"Strongest in-links of {short_name(str(self.vertex))}"
        )
        self.ax_.set_axis_off()
        legend(self.ax_, loc="lower center", bbox_to_anchor=(0.5, -0.06), ncols=2, handlelength=1)
        return self

    def _arrow(self, start: np.ndarray, end: np.ndarray, style: str, width: float, colour: str) -> None:
        look = {"arrowstyle": style, "linewidth": width, "color": colour, "shrinkA": 7, "shrinkB": 8}
        self.ax_.annotate("", xy=end, xytext=start, arrowprops=look, zorder=2)
