"""ROC curves in counts, whole and zoomed in on the top of the list (JMLR 2009, fig. 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics import roc_points
from apexrank.plot.curves import Curve, corners
from apexrank.plot.style import curve_style, estimator_scores, two_axes

_CURVE, _FRAME = "apexrank-curve", "apexrank-zoom"


class RocTopDisplay:
    """True against false positives in two panels: the whole list, and the leftmost part of the curve.

    The leftmost part is the top of the list, where rankers with equal AUC differ; a light frame in the first
    panel marks what the second one shows. Make one with `from_scores` (several rankers at once),
    `from_predictions` or `from_estimator`; pass the ``axes_`` of an earlier display to draw over it.

    Parameters
    ----------
    curves : mapping of str to (false positives, true positives)
        One ROC curve in counts for each ranker, as `apexrank.metrics.roc_points` gives it.
    max_false_positives : float, optional
        Width of the zoom; by default 5% of the negatives, but at least 10.

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
    >>> y = [1, 1, 0, 1, 0, 1, 0, 0]
    >>> display = RocTopDisplay.from_scores({"A": [8, 7, 6, 5, 4, 3, 2, 1], "B": [5, 8, 1, 4, 7, 6, 3, 2]}, y)
    >>> [label.get_text() for label in display.axes_[0].get_legend().get_texts()]
    ['A', 'B']
    """

    def __init__(
        self,
        curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
        *,
        max_false_positives: float | None = None,
    ) -> None:
        if not curves:
            raise InputError("there is no curve to draw: give the scores of at least one ranker")
        self.curves = {str(name): Curve(*map(np.asarray, curve)) for name, curve in curves.items()}
        if max_false_positives is not None and not 0 < max_false_positives < np.inf:
            raise InputError(f"max_false_positives must be a number above 0, got {max_false_positives!r}")
        self.max_false_positives = max_false_positives

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, ArrayLike],
        y_true: ArrayLike,
        *,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        max_false_positives: float | None = None,
        axes: Sequence[Any] | None = None,
        **line_options: Any,
    ) -> RocTopDisplay:
        """Draw the curves of several rankers, ``scores`` by their name, on the same rows.

        ``pos_label`` and ``sample_weight`` as in `apexrank.metrics.auc`, the rest as in `plot`.

        Examples
        --------
        >>> y, scores = [1, 0, 1, 0], {"p = 1": [4, 3, 2, 1], "p = 16": [4, 2, 3, 1]}
        >>> RocTopDisplay.from_scores(scores, y, max_false_positives=1).curves["p = 1"].true_positives.tolist()
        [0.0, 1.0, 1.0, 2.0, 2.0]
        """
        options = {"pos_label": pos_label, "sample_weight": sample_weight}
        curves = {name: roc_points(y_true, values, **options)[:2] for name, values in scores.items()}
        return cls(curves, max_false_positives=max_false_positives).plot(axes, **line_options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        scores: ArrayLike,
        *,
        name: str | None = None,
        **options: Any,
    ) -> RocTopDisplay:
        """Draw the curve of one ranker from its scores; ``options`` are those of `from_scores`.

        Examples
        --------
        >>> first = RocTopDisplay.from_predictions([1, 0, 1, 0], [4, 3, 2, 1], name="first")
        >>> both = RocTopDisplay.from_predictions([1, 0, 1, 0], [4, 2, 3, 1], name="second", axes=first.axes_)
        >>> [label.get_text() for label in both.axes_[0].get_legend().get_texts()]
        ['first', 'second']
        """
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
    ) -> RocTopDisplay:
        """Draw the curve of a fitted ranker or classifier; ``options`` are those of `from_scores`.

        Examples
        --------
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
        >>> list(RocTopDisplay.from_estimator(GaussianNB().fit(X, y), X, y).curves)
        ['GaussianNB']
        """
        name = type(estimator).__name__ if name is None else name
        scores = estimator_scores(estimator, X, pos_label)
        return cls.from_predictions(y, scores, name=name, pos_label=pos_label, **options)

    def plot(self, axes: Sequence[Any] | None = None, **line_options: Any) -> RocTopDisplay:
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
        RocTopDisplay
            The display itself.
        """
        self.axes_ = two_axes(axes)
        self.figure_ = self.axes_[0].figure
        self.lines_ = [self._draw(name, curve, line_options) for name, curve in self.curves.items()]
        _finish(self.axes_, self._zoom_width())
        return self

    def _draw(self, name: str, curve: Curve, options: dict[str, Any]) -> tuple[Any, ...]:
        number = len(_curves_in(self.axes_[0]))
        style = curve_style(number)
        points = corners(curve)
        return tuple(ax.plot(*points, label=name, gid=_CURVE, **(style | options))[0] for ax in self.axes_)

    def _zoom_width(self) -> float:
        if self.max_false_positives is not None:
            return self.max_false_positives
        negatives = max(curve.false_positives[-1] for curve in self.curves.values())
        return min(negatives, max(10.0, np.ceil(0.05 * negatives)))


def _curves_in(ax: Any) -> list[Any]:
    return [line for line in ax.lines if line.get_gid() == _CURVE]


def _finish(axes: tuple[Any, Any], width: float) -> None:
    """Limits, frame, labels and legend, from all the curves that are in the panels now."""
    whole, top = axes
    curves = [line.get_xydata().T for line in _curves_in(whole)]
    xlim, ylim = _zoom_limits(curves, width)
    right, highest = max(x[-1] for x, _ in curves), max(y[-1] for _, y in curves)
    whole.set(title="Whole list", xlim=(-0.02 * right, 1.02 * right), ylim=(-0.02 * highest, 1.04 * highest))
    top.set(title=f"Top: the first {width:,g} false positives", xlim=xlim, ylim=ylim)
    _mark(whole, xlim, ylim)
    whole.legend(loc="lower right", frameon=False, handlelength=3.2)
    for ax in axes:
        _dress(ax)


def _zoom_limits(curves: list[np.ndarray], width: float) -> tuple[tuple[float, float], tuple[float, float]]:
    # Before the first false positive every curve is a vertical line, of which only the upper end tells.
    low = min(np.interp(0, x, y) for x, y in curves)
    high = max(np.interp(width, x, y) for x, y in curves)
    pad = 0.06 * max(high - low, 1.0)
    return (-0.02 * width, width), (low - pad, high + pad)


def _dress(ax: Any) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    ax.set(xlabel="False positives", ylabel="True positives")
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=7, integer=True, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _mark(ax: Any, xlim: tuple[float, float], ylim: tuple[float, float]) -> None:
    """Replace the frame around the zoomed part."""
    from matplotlib.patches import Rectangle

    for old in [patch for patch in ax.patches if patch.get_gid() == _FRAME]:
        old.remove()
    size = xlim[1] - xlim[0], ylim[1] - ylim[0]
    frame = Rectangle((xlim[0], ylim[0]), *size, gid=_FRAME, facecolor="0.95", edgecolor="0.7", zorder=0.5)
    ax.add_patch(frame)
