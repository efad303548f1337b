"""ROC curves in counts (JMLR 2009, fig. 5) and precision–recall curves, whole and zoomed in on the top of the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics import roc_points
from apexrank.plot import style

_CURVE, _FRAME = "apexrank-curve", "apexrank-zoom"
_PRECISION, _CUT = "apexrank-precision", "apexrank-cut"
Points = tuple[np.ndarray, ...]


class TwoPanelDisplay(style.RankerDisplay):
    """Base class of displays of ROC curves in counts: one panel for the whole list, one for its top."""

    _kind: str  # kind of its lines, matplotlib's gid
    _reach: str  # option that sets the extent of the second panel

    def __init__(self, curves: style.Curves, extent: float | None) -> None:
        if not curves:
            raise InputError("there is no curve to draw: give the scores of at least one ranker")
        self.curves = {str(name): style.Curve(*map(np.asarray, curve)) for name, curve in curves.items()}
        self._extent = extent
        if extent is not None and not 0 < extent < np.inf:
            raise InputError(f"{self._reach} must be a number above 0, got {extent!r}")

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, ArrayLike],
        y_true: ArrayLike,
        *,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        axes: Sequence[Any] | None = None,
        **options: Any,
    ) -> Self:
        """Draw the curves of several rankers, with ``scores`` by name, on the same rows.

        ``pos_label`` and ``sample_weight`` as in `apexrank.metrics.auc`; ``options`` are those of the class and of
        `plot`.
        """
        rows = {"pos_label": pos_label, "sample_weight": sample_weight}
        curves = {name: roc_points(y_true, values, **rows)[:2] for name, values in scores.items()}
        return cls(curves, **{cls._reach: options.pop(cls._reach, None)}).plot(axes, **options)

    def plot(self, axes: Sequence[Any] | None = None, **line_options: Any) -> Self:
        """Draw into two matplotlib axes, or into a new figure.

        Parameters
        ----------
        axes : pair of matplotlib axes, optional
            Axes for the whole list and for its top. Curves of an earlier display are kept, and the new ones get their
            own colours and line styles.
        **line_options
            Passed to matplotlib's ``Axes.plot``, for example ``linewidth=3``.

        Returns
        -------
        TwoPanelDisplay
            The display itself.
        """
        self.axes_ = tuple(style.panels(axes, 2, 4.8, 4.4))
        self.figure_ = self.axes_[0].figure
        self.lines_ = []
        for name, curve in self.curves.items():
            look = style.curve_style(len(style.lines_of(self.axes_[0], self._kind))) | line_options
            drawn = zip(self.axes_, self._points(curve), strict=True)
            lines = (ax.plot(*points, label=name, gid=self._kind, **look)[0] for ax, points in drawn)
            self.lines_.append(tuple(lines))
        self._finish()
        return self

    def _points(self, curve: style.Curve) -> tuple[Points, Points]:
        """Points of a curve in both panels."""
        raise NotImplementedError

    def _top(self, total: float, least: float) -> float:
        """Right end of the second panel: the requested one, or 5% of the total but at least ``least``."""
        return min(total, max(least, np.ceil(0.05 * total))) if self._extent is None else self._extent

    def _finish(self) -> None:
        """Set limits, marks, labels and legend, for all curves in the panels."""
        raise NotImplementedError


class RocTopDisplay(TwoPanelDisplay):
    """True against false positives in two panels: the whole list, and the leftmost part of the curve.

    The leftmost part is the top of the list, where rankers with equal AUC differ; a light frame in the first panel
    marks the area of the second. Create one with `from_scores` (several rankers at once), `from_predictions` or
    `from_estimator`; pass the ``axes_`` of an earlier display to draw over it.

    Parameters
    ----------
    curves : mapping of str to (false positives, true positives)
        One ROC curve in counts per ranker, as returned by `apexrank.metrics.roc_points`.
    max_false_positives : float, optional
        Width of the zoom; by default 5% of the negatives, but at least 10.

    Attributes
    ----------
    axes_ : pair of matplotlib axes
        The panels: the whole list, its top.
    figure_ : matplotlib figure
        Figure of the panels.
    lines_ : list of pairs of matplotlib lines
        One pair per ranker of this display, with its line in each panel.

    Examples
    --------
    >>> y, scores = [1, 0, 1, 0], {"p = 1": [4, 3, 2, 1], "p = 16": [4, 2, 3, 1]}
    >>> RocTopDisplay.from_scores(scores, y, max_false_positives=1).curves["p = 1"].true_positives.tolist()
    [0.0, 1.0, 1.0, 2.0, 2.0]
    >>> y = [1, 1, 0, 1, 0, 1, 0, 0]
    >>> display = RocTopDisplay.from_scores({"A": [8, 7, 6, 5, 4, 3, 2, 1], "B": [5, 8, 1, 4, 7, 6, 3, 2]}, y)
    >>> [label.get_text() for label in display.axes_[0].get_legend().get_texts()]
    ['A', 'B']
    >>> later = RocTopDisplay.from_predictions(y, [8, 1, 7, 2, 6, 3, 5, 4], name="C", axes=display.axes_)
    >>> [label.get_text() for label in later.axes_[0].get_legend().get_texts()]
    ['A', 'B', 'C']
    """

    _kind, _reach = _CURVE, "max_false_positives"

    def __init__(self, curves: style.Curves, *, max_false_positives: float | None = None) -> None:
        super().__init__(curves, max_false_positives)
        self.max_false_positives = max_false_positives

    def _points(self, curve: style.Curve) -> tuple[Points, Points]:
        points = style.corners(curve)
        return points, points

    def _finish(self) -> None:
        from matplotlib.patches import Rectangle
        from matplotlib.ticker import MaxNLocator, StrMethodFormatter

        whole, top = self.axes_
        width = self._top(max(curve.false_positives[-1] for curve in self.curves.values()), 10.0)
        curves = [line.get_xydata().T for line in style.lines_of(whole, _CURVE)]
        # Before the first false positive every curve is a vertical line, of which only the upper end is informative.
        low = min(np.interp(0, x, y) for x, y in curves)
        high = max(np.interp(width, x, y) for x, y in curves)
        pad = 0.06 * max(high - low, 1.0)
        xlim, ylim = (-0.02 * width, width), (low - pad, high + pad)
        right, highest = max(x[-1] for x, _ in curves), max(y[-1] for _, y in curves)
        limits = {"xlim": (-0.02 * right, 1.02 * right), "ylim": (-0.02 * highest, 1.04 * highest)}
        whole.set(title="Whole list", **limits)
        top.set(title=f"Top: the first {width:,g} false positives", xlim=xlim, ylim=ylim)
        style.erase(whole, _FRAME)
        corner, size = (xlim[0], ylim[0]), (xlim[1] - xlim[0], ylim[1] - ylim[0])
        frame = Rectangle(corner, *size, gid=_FRAME, facecolor="0.95", edgecolor="0.7", zorder=0.5)
        whole.add_patch(frame)
        style.legend(whole, loc="lower right")
        for ax in self.axes_:
            ax.set(xlabel="False positives", ylabel="True positives")
            style.light(ax)
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_major_locator(MaxNLocator(nbins=7, integer=True, steps=[1, 2, 5, 10]))
                axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


class PrecisionRecallTopDisplay(TwoPanelDisplay):
    """Precision in two panels: against recall for the whole list, against the number of rows for its top.

    If t of the first m rows are positive, precision is ``t / m`` and recall ``t / I``, where I is the number of all
    positives. Tied rows are in random order, and the curve shows the expected number of positives among them. A thin
    line marks the precision of chance, the share of positives; a dot on each curve of the first panel marks the end of
    the second. Create one with `from_scores` (several rankers at once), `from_predictions` or `from_estimator`; pass
    the ``axes_`` of an earlier display to draw over it.

    Parameters
    ----------
    curves : mapping of str to (false positives, true positives)
        One ROC curve in counts per ranker, as returned by `apexrank.metrics.roc_points`.
    top : float, optional
        Number of rows in the second panel (or their weight, if rows have weights); by default 5% of the rows, but at
        least 20.

    Attributes
    ----------
    axes_ : pair of matplotlib axes
        The panels: the whole list, its top.
    figure_ : matplotlib figure
        Figure of the panels.
    lines_ : list of pairs of matplotlib lines
        One pair per ranker of this display, with its line in each panel.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> y = [1, 1, 0, 1, 0, 1, 0, 0]
    >>> scores = {"A": [8, 7, 6, 5, 4, 3, 2, 1], "B": [5, 8, 1, 4, 7, 6, 3, 2]}
    >>> display = PrecisionRecallTopDisplay.from_scores(scores, y, top=4, axes=Figure().subplots(1, 2))
    >>> [label.get_text() for label in display.axes_[0].get_legend().get_texts()]
    ['A', 'B', 'chance, 50 % positive']
    >>> display.axes_[1].get_title()
    'Top: the first 4 rows'
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> model, panels = GaussianNB().fit(X, y), Figure().subplots(1, 2)
    >>> list(PrecisionRecallTopDisplay.from_estimator(model, X, y, axes=panels).curves)
    ['GaussianNB']
    """

    _kind, _reach = _PRECISION, "top"

    def __init__(self, curves: style.Curves, *, top: float | None = None) -> None:
        super().__init__(curves, top)
        self.top = top

    def _points(self, curve: style.Curve) -> tuple[Points, Points]:
        """Precision against recall and against the number of rows, starting with the precision of the first tie."""
        rows, true = style.drawn_counts(curve.false_positives + curve.true_positives, curve.true_positives)
        precision = true[1:] / rows[1:]
        precision = np.concatenate([precision[:1], precision])
        return (true / true[-1], precision), (rows, precision)

    def _finish(self) -> None:
        from matplotlib.ticker import MaxNLocator, StrMethodFormatter

        for curve in self.curves.values():
            share = curve.true_positives[-1] / (curve.true_positives[-1] + curve.false_positives[-1])
            if any(
                np.isclose(line.get_ydata()[0], share) for line in style.lines_of(self.axes_[0], style.CHANCE)
            ):
                continue  # drawn for another ranker of the same rows
            for ax in self.axes_:
                ax.axhline(share, label=f"chance, {100 * share:.3g} % positive", **style.CHANCE_LOOK)
        whole, first = self.axes_
        top = self._top(max(np.sum(curve, axis=0)[-1] for curve in self.curves.values()), 20.0)
        visible = [line.get_ydata()[line.get_xdata() <= top] for line in style.lines_of(first, _PRECISION)]
        drawn = [line.get_ydata() for line in style.lines_of(whole, _PRECISION)]
        chance = max(line.get_ydata()[0] for line in style.lines_of(whole, style.CHANCE))
        whole.set(title=f"Whole list, dot: the first {top:,g} rows", xlabel="Recall", xlim=(-0.02, 1.02))
        first.set(title=f"Top: the first {top:,g} rows", xlabel="Rows from the top", xlim=(0, top))
        for ax, values in ((whole, drawn), (first, visible)):
            highest = max(chance, *(precision.max() for precision in values))
            ax.set(ylabel="Precision", ylim=(-0.02 * highest, 1.04 * highest))
            style.light(ax)
        first.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=top >= 2, steps=[1, 2, 5, 10]))
        first.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        self._mark_cuts(top)
        handles = style.lines_of(whole, _PRECISION) + style.lines_of(whole, style.CHANCE)
        style.legend(whole, handles=handles, loc="best")

    def _mark_cuts(self, top: float) -> None:
        """Redraw the dots at the last row shown in the second panel."""
        whole, first = self.axes_
        style.erase(whole, _CUT)
        for line, counted in zip(
            style.lines_of(whole, _PRECISION), style.lines_of(first, _PRECISION), strict=True
        ):
            rows, precision = counted.get_data()
            cut = min(top, rows[-1])
            point = np.interp(cut, rows, line.get_xdata()), np.interp(cut, rows, rows * precision) / cut
            whole.plot(*point, marker="o", markersize=6, color=line.get_color(), gid=_CUT)
