"""Plot of a fitted link of ``y ≈ g(x·w)``: the rows, g through them, and its convex function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.plot.style import curve_style, legend, light, lines_of, panels
from apexrank.rankers.link import ConvexFunction, Link

_LINE = "apexrank-link"
_GRID, _MOST_KNOTS = 1000, 1000
_MARGIN, _HEADROOM = 0.04, 0.2  # room for the legend above a link that rises early


class LinkDisplay:
    """Left, y against the index θ = x·w with the fitted link and its interval; right, its convex function φ.

    The band is the interval of Acharyya 2013, §4.3: the range of all links through the same knots. It is an interval
    for a new row but does not reflect noise. φ has the gradient ``g⁻¹`` and is 0 at its left end; it is determined up
    to a linear function. Create one with `from_estimator`; pass the ``axes_`` of an earlier display to draw over it.

    Parameters
    ----------
    theta, y : arrays of shape (n,)
        Index and value of each row.
    link : Link
        The fitted function.
    output_range : (low, high), optional
        Range of y, to which the band is clipped.
    name : str, optional
        Name of the link in the legend.
    n_points : int
        Maximum number of rows to draw, evenly spaced in the order of θ; the link is that of all rows.

    Attributes
    ----------
    axes_ : pair of matplotlib axes
        The panels: link, φ.
    figure_ : matplotlib figure
    lines_ : pair of matplotlib lines
        The link and φ.
    points_, band_ : matplotlib collections
        The rows and the interval.

    Examples
    --------
    >>> import numpy as np
    >>> from apexrank.rankers.link import UnknownLinkRegressor
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.tanh(X @ [0.6, 0.8])
    >>> display = LinkDisplay.from_estimator(UnknownLinkRegressor().fit(X, y), X, y)
    >>> [ax.get_ylabel() for ax in display.axes_]
    ['y', 'φ(v)']
    """

    def __init__(
        self,
        theta: ArrayLike,
        y: ArrayLike,
        link: Link,
        *,
        output_range: tuple[float, float] | None = None,
        name: str | None = None,
        n_points: int = 2000,
    ) -> None:
        self.theta, self.y = np.asarray(theta, dtype=float), np.asarray(y, dtype=float)
        if self.theta.shape != self.y.shape or self.theta.ndim != 1 or not len(self.theta):
            raise InputError(
                f"`theta` and `y` need one number for each row: got shapes {self.theta.shape} and {self.y.shape}"
            )
        if not n_points >= 2:
            raise InputError(f"`n_points` must be at least 2, got {n_points!r}")
        self.link, self.name, self.n_points = link, name, int(n_points)
        self.output_range = (-np.inf, np.inf) if output_range is None else output_range

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        n_points: int = 2000,
        axes: Sequence[Any] | None = None,
        **line_options: Any,
    ) -> LinkDisplay:
        """Draw a fitted `UnknownLinkRegressor` or `Isotron` on rows X with values y, those of ``fit`` or others.

        It may be the last step of a pipeline, or the best estimator of a search.

        Examples
        --------
        >>> import numpy as np
        >>> from apexrank.rankers.isotron import Isotron
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> y = np.tanh(X @ [0.6, 0.8])
        >>> LinkDisplay.from_estimator(Isotron().fit(X, y), X, y).name
        'Isotron'
        """
        estimator = getattr(estimator, "best_estimator_", estimator)
        if hasattr(estimator, "steps"):  # a pipeline
            X, estimator = estimator[:-1].transform(X), estimator[-1]
        if not hasattr(estimator, "index"):
            raise InputError(
                f"{type(estimator).__name__} has no link to draw: give a fitted UnknownLinkRegressor or Isotron"
            )
        theta = estimator.index(X)
        name = type(estimator).__name__ if name is None else name
        output_range = getattr(estimator, "output_range", None)
        display = cls(theta, y, _link_of(estimator), output_range=output_range, name=name, n_points=n_points)
        return display.plot(axes, **line_options)

    def plot(self, axes: Sequence[Any] | None = None, **line_options: Any) -> LinkDisplay:
        """Draw into two matplotlib axes, or into a new figure; ``line_options`` go to ``Axes.plot``."""
        self.axes_ = tuple(panels(axes, 2, 4.8, 4.4))
        self.figure_ = self.axes_[0].figure
        number = len(lines_of(self.axes_[0], _LINE))
        options = curve_style(number) | {"gid": _LINE, "label": self.name} | line_options
        self.lines_ = self._draw_link(number > 0, options), self._draw_phi(options)
        for ax in self.axes_:
            light(ax)
        legend(self.axes_[0], loc="upper left", handlelength=2.4)
        return self

    def _draw_link(self, over: bool, options: dict[str, Any]) -> Any:
        ax, colour = self.axes_[0], options["color"]
        low, high = self._frame(ax, over)
        theta = self._grid()
        (line,) = ax.plot(theta, self.link(theta), **options)
        below, above = (np.clip(side, low, high) for side in self.link.interval(theta, *self.output_range))
        label = None if over else "interval (§4.3)"
        style = {"color": colour, "alpha": 0.25, "linewidth": 0, "label": label}
        self.band_ = ax.fill_between(theta, below, above, **style)
        rows, n = _few(np.argsort(self.theta, kind="stable"), self.n_points), len(self.y)
        style = {"s": 9, "linewidths": 0, "alpha": min(0.6, max(0.15, 150 / len(rows)))}
        style |= {"color": colour if over else "0.35", "zorder": 1, "rasterized": True}
        self.points_ = ax.scatter(self.theta[rows], self.y[rows], **style)
        title = f"Link; {len(rows):,} of {n:,} rows drawn" if len(rows) < n else f"Link and {n:,} rows"
        ax.set(xlabel="θ = x·w", ylabel="y", title=title, ylim=(low, high))
        return line

    def _draw_phi(self, options: dict[str, Any]) -> Any:
        ax, values = self.axes_[1], self.link.values
        v = np.union1d(np.linspace(values[0], values[-1], _GRID), _few(values))
        (line,) = ax.plot(v, ConvexFunction(self.link)(v), **options)
        ax.set(xlabel="v, value of the link", ylabel="φ(v)", title="Recovered φ, gradient g⁻¹")
        return line

    def _frame(self, ax: Any, over: bool) -> tuple[float, float]:
        """Limits of the plot: those of y, of the link, and of an earlier display."""
        shown = np.concatenate([self.y, self.link.values])
        unit = np.ptp(shown) or 1.0
        low, high = float(shown.min() - _MARGIN * unit), float(shown.max() + _HEADROOM * unit)
        earlier = ax.get_ylim() if over else (low, high)
        return min(low, earlier[0]), max(high, earlier[1])

    def _grid(self) -> np.ndarray:
        """Points where link and interval can bend: both sides of the knots, and a grid between and beyond them."""
        knots = _few(self.link.knots)
        ends = min(self.theta.min(), knots[0]), max(self.theta.max(), knots[-1])
        margin = _MARGIN * ((ends[1] - ends[0]) or 1.0)
        grid = np.linspace(ends[0] - margin, ends[1] + margin, _GRID)
        sides = [np.nextafter(knots, -np.inf), knots, np.nextafter(knots, np.inf)]
        return np.unique(np.concatenate([grid, *sides]))


def _few(values: np.ndarray, most: int = _MOST_KNOTS) -> np.ndarray:
    """Thin values to a number that is visually indistinguishable."""
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).round().astype(int)]


def _link_of(estimator: Any) -> Link:
    if hasattr(estimator, "link_"):
        return estimator.link_
    return Link(estimator.knots_, estimator.values_, slope=estimator.lipschitz or np.inf)
