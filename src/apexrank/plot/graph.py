"""Plot of ranked graphs: the cumulative spam curve (Acharyya 2013, sec. 6.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics import roc_points
from apexrank.plot import style


class SpamCurve(NamedTuple):
    """Cumulative number of spam items along one ranking."""

    ranks: np.ndarray
    spam: np.ndarray


class CumulativeSpamDisplay(style.RankerDisplay):
    """Number of spam items among the first m ranks against m; curves closer to the x axis are better.

    The curve is ``Σ_{rank(v) ≤ m} spam(v)``, with the expected number under chance, ``m · spam / n``, as a thin line.
    Tied items are in random order, so within a tie the curve, an expected number, is straight. Create one with
    `from_scores` (several rankings at once), `from_predictions` or `from_estimator`; pass the ``ax_`` of an earlier
    display to draw over it.

    Parameters
    ----------
    curves : mapping of str to (ranks, spam)
        For each ranking, numbers of items from the top, including 0 and n, and the numbers of spam items among them.
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
    >>> spam, ax = [1, 0, 0, 1], Figure().subplots()
    >>> first = CumulativeSpamDisplay.from_predictions(spam, [4, 3, 2, 1], name="PageRank", ax=ax)
    >>> second = CumulativeSpamDisplay.from_predictions(spam, [1, 4, 3, 2], name="L_pq", ax=first.ax_)
    >>> [label.get_text() for label in ax.get_legend().get_texts()]
    ['PageRank', 'L_pq', 'chance, 50 % spam']
    """

    _unnamed = "ranking"

    def __init__(self, curves: style.Curves, *, share: bool = False) -> None:
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
        **options: Any,
    ) -> Self:
        """Draw several rankings of the same items, with ``scores`` by name; larger scores rank higher.

        ``spam`` is one flag per item; ``options`` are those of `plot`.
        """
        flags = _flags(spam)
        met = {name: roc_points(flags, values)[:2] for name, values in scores.items()}
        curves = {name: (others + caught, caught) for name, (others, caught) in met.items()}
        return cls(curves, share=share).plot(ax, **options)

    def plot(self, ax: Any = None, *, log_x: bool = False, log_y: bool = False, **line_options: Any) -> Self:
        """Draw into matplotlib axes, or into a new figure.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw into; curves of an earlier display and logarithmic axes are kept.
        log_x, log_y : bool
            Logarithmic ranks, to show the top; logarithmic spam, to distinguish good rankings. Below one spam item (or
            its share) the y axis stays linear, so that a top without any spam remains visible.
        **line_options
            Passed to matplotlib's ``Axes.plot``, for example ``linewidth=3``.

        Returns
        -------
        CumulativeSpamDisplay
            The display itself.
        """
        self.figure_, self.ax_ = style.one_axes(ax, (6.4, 4.4))
        self.lines_ = []
        for name, curve in self.curves.items():
            ranks, spam = style.drawn_counts(*curve)
            n, total = curve.ranks[-1], curve.spam[-1]
            unit = total if self.share else 1.0
            given = {"label": name, "marker": None} | line_options
            self.lines_.append(style.draw_line(self.ax_, ranks, spam / unit, **given)[0])
            ends = [line.get_xydata()[-1] for line in style.lines_of(self.ax_, style.CHANCE)]
            if not any(
                np.allclose(end, (n, total / unit)) for end in ends
            ):  # once for all curves with the same end
                chance = style.drawn_counts(np.array([0.0, n]), np.array([0.0, total / unit]))
                self.ax_.plot(*chance, label=f"chance, {100 * total / n:.3g} % spam", **style.CHANCE_LOOK)
        self._dress(log_x, log_y)
        return self

    def _dress(self, log_x: bool, log_y: bool) -> None:
        from matplotlib.ticker import FuncFormatter, StrMethodFormatter

        ax = self.ax_
        lines = style.lines_of(ax, style.LINE, style.CHANCE)
        right, highest = (max(line.get_xydata()[-1, axis] for line in lines) for axis in (0, 1))
        what = "Share of all spam" if self.share else "Spam items"
        ax.set(xlabel="m, ranks from the top", ylabel=f"{what} among the first m")
        style.light(ax)
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
        numbers, shares = StrMethodFormatter("{x:,.0f}"), FuncFormatter(lambda x, _: f"{100 * x:.4g} %")
        ax.xaxis.set_major_formatter(numbers)
        ax.yaxis.set_major_formatter(shares if self.share else numbers)
        handles = sorted(lines, key=lambda line: line.get_gid() == style.CHANCE)
        style.legend(ax, handles=handles, loc="best")


def _flags(spam: ArrayLike) -> np.ndarray:
    flags = np.asarray(spam)
    if flags.ndim != 1 or not len(flags) or not np.isin(flags, (0, 1)).all():
        raise InputError("spam needs one flag for each item: True or 1 for spam, False or 0 for the others")
    if flags.min() == flags.max():
        share = f"{int(flags.sum())} of {len(flags)} items are spam"
        raise InputError(f"there is no curve to draw: {share}, give some of both kinds")
    return flags.astype(bool)
