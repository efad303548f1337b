"""Precision against recall for the whole list, and against the number of rows looked at for its top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics import roc_points
from apexrank.plot.curves import Curve, drawn_counts
from apexrank.plot.style import curve_style, estimator_scores, light, two_axes

_CURVE, _CHANCE, _CUT = "apexrank-precision", "apexrank-chance", "apexrank-cut"


class PrecisionRecallTopDisplay:
    """Precision in two panels: against recall for the whole list, against the rows looked at for its top.

    Of m rows from the top t are positive: precision is ``t / m``, recall ``t / I`` with I the number of all
    positives. Rows of equal score stand in random order, and the curve shows the expected number of positives among
    them. A thin line marks the precision of chance, the share of positives; a dot on each curve of the first panel
    marks where the second one ends. Make one with `from_scores` (several rankers at once), `from_predictions` or
    `from_estimator`; pass the ``axes_`` of an earlier display to draw over it.

    Parameters
    ----------
    curves : mapping of str to (false positives, true positives)
        One ROC curve in counts for each ranker, as `apexrank.metrics.roc_points` gives it.
    top : float, optional
        Rows shown in the second panel (their weight, where rows have weights); by default 5% of the rows, but at
        least 20.

    Attributes
    ----------
    axes_ : pair of matplotlib axes
        The panels: the whole list, its top.
    figure_ : matplotlib figure
        The figure they are in.
    lines_ : list of pairs of matplotlib lines
        One pair for each ranker of this display, its line in either panel.

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
    """

    def __init__(
        self, curves: Mapping[str, tuple[ArrayLike, ArrayLike]], *, top: float | None = None
    ) -> None:
        if not curves:
            raise InputError("there is no curve to draw: give the scores of at least one ranker")
        if top is not None and not 0 < top < np.inf:
            raise InputError(f"top must be a number of rows above 0, got {top!r}")
        self.curves = {str(name): Curve(*map(np.asarray, curve)) for name, curve in curves.items()}
        self.top = top

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, ArrayLike],
        y_true: ArrayLike,
        *,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        top: float | None = None,
        axes: Sequence[Any] | None = None,
        **line_options: Any,
    ) -> PrecisionRecallTopDisplay:
        """Draw the curves of several rankers, ``scores`` by their name, on the same rows.

        ``pos_label`` and ``sample_weight`` as in `apexrank.metrics.auc`, the rest as in `plot`.
        """
        options = {"pos_label": pos_label, "sample_weight": sample_weight}
        curves = {name: roc_points(y_true, values, **options)[:2] for name, values in scores.items()}
        return cls(curves, top=top).plot(axes, **line_options)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, scores: ArrayLike, *, name: str | None = None, **options: Any
    ) -> PrecisionRecallTopDisplay:
        """Draw the curve of one ranker from its scores; ``options`` are those of `from_scores`."""
        return cls.from_scores({"ranker" if name is None else name: scores}, y_true, **options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        pos_label: Any = None,
        **options: Any,
    ) -> PrecisionRecallTopDisplay:
        """Draw the curve of a fitted ranker or classifier; ``options`` are those of `from_scores`.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
        >>> model, panels = GaussianNB().fit(X, y), Figure().subplots(1, 2)
        >>> list(PrecisionRecallTopDisplay.from_estimator(model, X, y, axes=panels).curves)
        ['GaussianNB']
        """
        name = type(estimator).__name__ if name is None else name
        scores = estimator_scores(estimator, X, pos_label)
        return cls.from_predictions(y, scores, name=name, pos_label=pos_label, **options)

    def plot(self, axes: Sequence[Any] | None = None, **line_options: Any) -> PrecisionRecallTopDisplay:
        """Draw into two matplotlib axes, or into a new figure.

        Parameters
        ----------
        axes : pair of matplotlib axes, optional
            For the whole list and for its top. Curves that an earlier display drew there stay, and the new
            ones get colours and line styles of their own.
        **line_options
            Passed to matplotlib's ``Axes.plot``, for example ``linewidth=3``.

        Returns
        -------
        PrecisionRecallTopDisplay
            The display itself.
        """
        self.axes_ = two_axes(axes)
        self.figure_ = self.axes_[0].figure
        self.lines_ = [self._draw(name, curve, line_options) for name, curve in self.curves.items()]
        for curve in self.curves.values():
            _chance(self.axes_, curve)
        _finish(self.axes_, self._rows_shown())
        return self

    def _draw(self, name: str, curve: Curve, options: dict[str, Any]) -> tuple[Any, Any]:
        number = len(_lines_in(self.axes_[0], _CURVE))
        style = curve_style(number)
        rows, recall, precision = _precision_curve(curve)
        whole, top = (
            ax.plot(x, precision, label=name, gid=_CURVE, **(style | options))[0]
            for ax, x in zip(self.axes_, (recall, rows), strict=True)
        )
        return whole, top

    def _rows_shown(self) -> float:
        if self.top is not None:
            return self.top
        rows = max(curve.false_positives[-1] + curve.true_positives[-1] for curve in self.curves.values())
        return min(rows, max(20.0, np.ceil(0.05 * rows)))


def _precision_curve(curve: Curve) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows looked at, recall and precision, from the share of positives in the first tie on."""
    rows, true = drawn_counts(curve.false_positives + curve.true_positives, curve.true_positives)
    precision = true[1:] / rows[1:]
    return rows, true / true[-1], np.concatenate([precision[:1], precision])


def _lines_in(ax: Any, gid: str) -> list[Any]:
    return [line for line in ax.lines if line.get_gid() == gid]


def _chance(axes: tuple[Any, Any], curve: Curve) -> None:
    """Draw the share of positives, once for all rankers of the same rows."""
    share = curve.true_positives[-1] / (curve.true_positives[-1] + curve.false_positives[-1])
    if any(np.isclose(line.get_ydata()[0], share) for line in _lines_in(axes[0], _CHANCE)):
        return
    style = {
        "color": "0.55",
        "linewidth": 0.9,
        "zorder": 1.5,
        "label": f"chance, {100 * share:.3g} % positive",
    }
    for ax in axes:
        ax.axhline(share, gid=_CHANCE, **style)


def _finish(axes: tuple[Any, Any], top: float) -> None:
    """Limits, dots, labels and legend, from all the curves that are in the panels now."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    whole, first = axes
    visible = [line.get_ydata()[line.get_xdata() <= top] for line in _lines_in(first, _CURVE)]
    drawn = [line.get_ydata() for line in _lines_in(whole, _CURVE)]
    chance = max(line.get_ydata()[0] for line in _lines_in(whole, _CHANCE))
    whole.set(title=f"Whole list, dot: the first {top:,g} rows", xlabel="Recall", xlim=(-0.02, 1.02))
    first.set(title=f"Top: the first {top:,g} rows", xlabel="Rows looked at", xlim=(0, top))
    for ax, values in ((whole, drawn), (first, visible)):
        highest = max(chance, *(precision.max() for precision in values))
        ax.set(ylabel="Precision", ylim=(-0.02 * highest, 1.04 * highest))
        light(ax)
    first.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=top >= 2, steps=[1, 2, 5, 10]))
    first.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    _mark_cuts(axes, top)
    handles = _lines_in(whole, _CURVE) + _lines_in(whole, _CHANCE)
    whole.legend(handles=handles, loc="best", frameon=False, handlelength=3.2)


def _mark_cuts(axes: tuple[Any, Any], top: float) -> None:
    """Replace the dots at the last row that the second panel shows."""
    whole, first = axes
    for old in _lines_in(whole, _CUT):
        old.remove()
    for line, counted in zip(_lines_in(whole, _CURVE), _lines_in(first, _CURVE), strict=True):
        rows, precision = counted.get_data()
        cut = min(top, rows[-1])
        point = np.interp(cut, rows, line.get_xdata()), np.interp(cut, rows, rows * precision) / cut
        whole.plot(*point, marker="o", markersize=6, color=line.get_color(), gid=_CUT)
