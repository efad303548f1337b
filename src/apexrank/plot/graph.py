"""Pictures of ranked graphs: the cumulative spam curve (Acharyya 2013, sec. 6.4), and who links to a vertex."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from apexrank.errors import InputError
from apexrank.graph.neighbourhood import Neighbourhood, neighbourhood
from apexrank.metrics import roc_points
from apexrank.plot.style import (
    COLOURS,
    drawn_counts,
    estimator_scores,
    legend,
    light,
    line_style,
    lines_of,
    one_axes,
    short_name,
)
from apexrank.validation import check_count

_LINE, _CHANCE = "apexrank-spam", "apexrank-chance"
_TARGET, _UNSUPPORTED, _SUPPORTED = COLOURS[4], COLOURS[1], COLOURS[0]
_THINNEST, _THICKEST = 0.6, 3.0  # arrows of in-links, in points


class SpamCurve(NamedTuple):
    """Spam items met down one ranking."""

    ranks: np.ndarray
    spam: np.ndarray


class CumulativeSpamDisplay:
    """Number of spam items among the first m ranks against m: the nearer to the x axis, the better.

    A curve of ``Σ_{rank(v) ≤ m} spam(v)``, with the number that chance would put there, ``m · spam / n``, as a thin
    line. Tied items stand in random order, so inside a tie the curve, an expected number, is straight. Make one with
    `from_scores` (several rankings at once) or `from_predictions`; pass the ``ax_`` of an earlier display to draw
    over it.

    Parameters
    ----------
    curves : mapping of str to (ranks, spam)
        For each ranking some numbers of items from the top, 0 and all n among them, and the spam met there.
    share : bool
        Draw the share of all spam items instead of their number.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines
        One for each ranking of this display.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> spam, scores = [False, True, False, True], {"in-degree": [1, 4, 2, 3], "PageRank": [4, 2, 3, 1]}
    >>> display = CumulativeSpamDisplay.from_scores(scores, spam, ax=Figure().subplots())
    >>> display.curves["in-degree"].spam.tolist(), display.curves["PageRank"].spam.tolist()
    ([0.0, 1.0, 2.0, 2.0, 2.0], [0.0, 0.0, 0.0, 1.0, 2.0])
    """

    def __init__(self, curves: Mapping[str, tuple[ArrayLike, ArrayLike]], *, share: bool = False) -> None:
        if not curves:
            raise InputError("there is no curve to draw: give the scores of at least one ranking")
        self.curves = {str(name): SpamCurve(*map(np.asarray, curve)) for name, curve in curves.items()}
        self.share = share

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, ArrayLike],
        spam: ArrayLike,
        *,
        share: bool = False,
        ax: Any = None,
        log_x: bool = False,
        log_y: bool = False,
        **line_options: Any,
    ) -> CumulativeSpamDisplay:
        """Draw several rankings of the same items, ``scores`` by their name; larger scores stand nearer the top.

        ``spam`` is one flag per item, the rest as in `plot`.
        """
        flags = _flags(spam)
        curves = {name: _spam_curve(flags, values) for name, values in scores.items()}
        return cls(curves, share=share).plot(ax, log_x=log_x, log_y=log_y, **line_options)

    @classmethod
    def from_predictions(
        cls, spam: ArrayLike, scores: ArrayLike, *, name: str | None = None, **options: Any
    ) -> CumulativeSpamDisplay:
        """Draw one ranking; ``options`` are those of `from_scores`.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> spam, ax = [1, 0, 0, 1], Figure().subplots()
        >>> first = CumulativeSpamDisplay.from_predictions(spam, [4, 3, 2, 1], name="PageRank", ax=ax)
        >>> second = CumulativeSpamDisplay.from_predictions(spam, [1, 4, 3, 2], name="L_pq", ax=first.ax_)
        >>> [label.get_text() for label in ax.get_legend().get_texts()]
        ['PageRank', 'L_pq', 'chance, 50 % spam']
        """
        return cls.from_scores({"ranking" if name is None else name: scores}, spam, **options)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, spam: ArrayLike, *, name: str | None = None, **options: Any
    ) -> CumulativeSpamDisplay:
        """Draw the ranking of a fitted estimator; ``options`` are those of `from_scores`."""
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(spam, estimator_scores(estimator, X), name=name, **options)

    def plot(
        self, ax: Any = None, *, log_x: bool = False, log_y: bool = False, **line_options: Any
    ) -> CumulativeSpamDisplay:
        """Draw into matplotlib axes, or into a new figure.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Curves that an earlier display drew there stay, and so do logarithmic axes.
        log_x, log_y : bool
            Logarithmic ranks, to see the top; logarithmic spam, to tell good rankings apart. Below one spam item
            (or its share) the y axis stays linear, so that a top without any spam is still seen.
        **line_options
            Passed to matplotlib's ``Axes.plot``, for example ``linewidth=3``.

        Returns
        -------
        CumulativeSpamDisplay
            The display itself.
        """
        self.ax_ = one_axes(ax, (6.4, 4.4))
        self.figure_ = self.ax_.figure
        self.lines_ = [self._draw(name, curve, line_options) for name, curve in self.curves.items()]
        for curve in self.curves.values():
            self._chance(curve)
        self._dress(log_x, log_y)
        return self

    def _draw(self, name: str, curve: SpamCurve, options: dict[str, Any]) -> Any:
        style = line_style(len(lines_of(self.ax_, _LINE))) | {"marker": None}
        ranks, spam = drawn_counts(*curve)
        return self.ax_.plot(ranks, spam / self._unit(curve), label=name, gid=_LINE, **(style | options))[0]

    def _unit(self, curve: SpamCurve) -> float:
        return curve.spam[-1] if self.share else 1.0

    def _chance(self, curve: SpamCurve) -> None:
        """Draw the straight line to the end of the curve, once for all rankings that end there."""
        n, end = curve.ranks[-1], curve.spam[-1] / self._unit(curve)
        drawn = [line.get_xydata()[-1] for line in lines_of(self.ax_, _CHANCE)]
        if any(np.allclose(point, (n, end)) for point in drawn):
            return
        ranks, spam = drawn_counts(np.array([0.0, n]), np.array([0.0, end]))
        style = {"color": "0.55", "linewidth": 0.9, "zorder": 1.5}
        self.ax_.plot(
            ranks, spam, label=f"chance, {100 * curve.spam[-1] / n:.3g} % spam", gid=_CHANCE, **style
        )

    def _dress(self, log_x: bool, log_y: bool) -> None:
        ax = self.ax_
        lines = lines_of(ax, _LINE, _CHANCE)
        right, highest = (max(line.get_xydata()[-1, axis] for line in lines) for axis in (0, 1))
        what = "Share of all spam" if self.share else "Spam items"
        ax.set(xlabel="m, ranks from the top", ylabel=f"{what} among the first m")
        light(ax)
        if log_x or ax.get_xscale() == "log":
            ax.set(xscale="log", xlim=(1, right))
        else:
            ax.set(xlim=(-0.02 * right, 1.02 * right))
        if log_y or ax.get_yscale() == "symlog":
            one = 1 / max(curve.spam[-1] for curve in self.curves.values()) if self.share else 1.0
            ax.set_yscale("symlog", linthresh=one, linscale=0.4)
            ax.set_ylim(-0.1 * one, 1.3 * highest)
        else:
            ax.set(ylim=(-0.02 * highest, 1.04 * highest))
        self._ticks()
        handles = sorted(lines, key=lambda line: line.get_gid() == _CHANCE)
        legend(ax, handles=handles, loc="best")

    def _ticks(self) -> None:
        from matplotlib.ticker import FuncFormatter, StrMethodFormatter

        numbers = StrMethodFormatter("{x:,.0f}")
        shares = FuncFormatter(lambda share, _: f"{100 * share:.4g} %")
        self.ax_.xaxis.set_major_formatter(numbers)
        self.ax_.yaxis.set_major_formatter(shares if self.share else numbers)


def _flags(spam: ArrayLike) -> np.ndarray:
    flags = np.asarray(spam)
    if flags.ndim != 1 or not len(flags) or not np.isin(flags, (0, 1)).all():
        raise InputError("spam needs one flag for each item: True or 1 for spam, False or 0 for the others")
    if flags.min() == flags.max():
        raise InputError(
            f"there is no curve to draw: {int(flags.sum())} of {len(flags)} items are spam, give some of both kinds"
        )
    return flags.astype(bool)


def _spam_curve(flags: np.ndarray, scores: ArrayLike) -> SpamCurve:
    others, spam, _ = roc_points(flags, scores)
    return SpamCurve(others + spam, spam)


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
