"""What a larger p gives and what it costs: measures against p, and examples needed against p."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.bounds import LogCovering, negatives_needed
from apexrank.errors import InputError
from apexrank.metrics import bootstrap
from apexrank.metrics.evaluation import find_measures
from apexrank.plot.style import estimator_scores, light, line_style, one_axes, pyplot

_LINE = "apexrank-line"


class PTradeoffDisplay:
    """Measures against p, a panel for each, as means over splits with a band of one standard error.

    Make one with `from_scores` or `from_estimators` (one set of rows), `from_values` or `from_table` (several splits);
    pass the ``axes_`` of an earlier display to draw another ranker, or the training rows, over it.

    Parameters
    ----------
    ps : array of shape (n,)
        The powers; ``np.inf`` is drawn to the right of the others.
    mean, error : mapping of str to array of shape (n,)
        Mean and standard error of each measure.
    name : str, optional
        Name in the legend.

    Attributes
    ----------
    axes_ : list of matplotlib axes
        The panels, in the order of the measures.
    figure_ : matplotlib figure
    lines_, bands_ : list of matplotlib lines and bands
        Those of this display, one for each measure.

    Examples
    --------
    >>> values = {"AUC": [[0.90, 0.88, 0.85], [0.92, 0.89, 0.84]], "precision": [[0.5, 0.6, 0.7], [0.4, 0.6, 0.9]]}
    >>> display = PTradeoffDisplay.from_values([1, 4, 16], values)
    >>> [ax.get_title() for ax in display.axes_], display.mean["AUC"].round(3).tolist()
    (['AUC', 'precision'], [0.91, 0.885, 0.845])
    """

    def __init__(
        self,
        ps: ArrayLike,
        mean: Mapping[str, ArrayLike],
        error: Mapping[str, ArrayLike],
        *,
        name: str | None = None,
    ) -> None:
        self.ps = np.asarray(ps, dtype=float)
        self.mean = {str(measure): np.asarray(values, dtype=float) for measure, values in mean.items()}
        self.error = {str(measure): np.asarray(values, dtype=float) for measure, values in error.items()}
        self.name = name
        if not self.mean or not len(self.ps) or not (self.ps > 0).all():
            raise InputError("there is nothing to draw: give at least one measure, and powers above 0")

    @classmethod
    def from_values(
        cls,
        ps: ArrayLike,
        values: Mapping[str, ArrayLike],
        *,
        name: str | None = None,
        axes: Sequence[Any] | None = None,
        **line_options: Any,
    ) -> PTradeoffDisplay:
        """Draw measures given as arrays of shape (splits, powers)."""
        arrays = {measure: np.atleast_2d(np.asarray(v, dtype=float)) for measure, v in values.items()}
        columns = {measure: [_summary(column) for column in array.T] for measure, array in arrays.items()}
        return cls._from_summaries(ps, columns, name).plot(axes, **line_options)

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[float, ArrayLike],
        y_true: ArrayLike,
        *,
        measures: str | Iterable[str] = ("auc", "precision_at_10"),
        n_resamples: int = 200,
        name: str | None = None,
        axes: Sequence[Any] | None = None,
        **options: Any,
    ) -> PTradeoffDisplay:
        """Draw measures of the same rows ranked with each p, with a band of one bootstrap standard error.

        Parameters
        ----------
        scores : mapping of float to array-like of shape (n,)
            Scores of the rows for each p.
        y_true : array-like of shape (n,)
            Labels or relevance.
        measures : str or iterable of str
            Names as in `apexrank.metrics.evaluate`.
        n_resamples : int
            Draws of rows, or of ``groups`` where they are given.
        name, axes
            As in `from_values`.
        **options
            Passed to `apexrank.metrics.bootstrap`: ``groups``, ``pos_label``, ``relevant``, ``ties``, ….

        Examples
        --------
        >>> y, scores = [1, 0, 1, 0, 0], {1: [3, 2, 1, 0, 0], 4: [3, 1, 2, 0, 0]}
        >>> display = PTradeoffDisplay.from_scores(scores, y, measures="auc", n_resamples=20)
        >>> display.mean["AUC"].round(3).tolist()
        [0.833, 1.0]
        """
        found = find_measures(measures)
        names = [measure.name for measure in found]
        drawn: dict[float, Any] = {
            p: bootstrap(names, y_true, values, n_resamples=n_resamples, **options)
            for p, values in scores.items()
        }
        columns = {
            m.label: [(drawn[p][m.name].value, drawn[p][m.name].standard_error) for p in scores]
            for m in found
        }
        return cls._from_summaries(list(scores), columns, name).plot(axes)

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[float, Any], X: Any, y: ArrayLike, *, pos_label: Any = None, **options: Any
    ) -> PTradeoffDisplay:
        """Draw rankers fitted with each p, such as `apexrank.push_path` gives; ``options`` as in `from_scores`.

        Examples
        --------
        >>> from apexrank import datasets, push_path
        >>> X, y = datasets.make_push_example(400, return_X_y=True)
        >>> path = {ranker.p: ranker for ranker in push_path(X, y, ps=[1, 4])}
        >>> display = PTradeoffDisplay.from_estimators(path, X, y, measures="auc", n_resamples=20)
        >>> bool(display.mean["AUC"][0] > display.mean["AUC"][1])
        True
        """
        scores = {p: estimator_scores(ranker, X, pos_label) for p, ranker in estimators.items()}
        return cls.from_scores(scores, y, pos_label=pos_label, **options)

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        p: str = "p",
        measure: str = "measure",
        value: str = "value",
        name: str | None = None,
        axes: Sequence[Any] | None = None,
        **line_options: Any,
    ) -> PTradeoffDisplay:
        """Draw a tidy table with a row for each split, p and measure; ``p``, ``measure``, ``value`` name columns.

        The table is a polars or pandas frame or a dict of columns.

        Examples
        --------
        >>> table = {"p": [1, 1, 4, 4], "measure": ["AUC"] * 4, "value": [0.90, 0.92, 0.88, 0.89]}
        >>> PTradeoffDisplay.from_table(table).error["AUC"].round(3).tolist()
        [0.01, 0.005]
        """
        powers, measures = np.asarray(table[p], dtype=float), np.asarray(table[measure])
        numbers = np.asarray(table[value], dtype=float)
        ps = np.unique(powers)
        columns = {
            str(m): [_summary(numbers[(powers == power) & (measures == m)]) for power in ps]
            for m in dict.fromkeys(measures.tolist())
        }
        return cls._from_summaries(ps, columns, name).plot(axes, **line_options)

    @classmethod
    def _from_summaries(
        cls, ps: ArrayLike, columns: dict[str, list[tuple[float, float]]], name: str | None
    ) -> PTradeoffDisplay:
        parts = [{m: [summary[part] for summary in c] for m, c in columns.items()} for part in (0, 1)]
        return cls(ps, *parts, name=name)

    def plot(self, axes: Sequence[Any] | None = None, **line_options: Any) -> PTradeoffDisplay:
        """Draw into one matplotlib axes for each measure, or into a new figure.

        ``line_options`` go to ``Axes.plot``.
        """
        self.axes_ = _panels(axes, len(self.mean))
        self.figure_ = self.axes_[0].figure
        drawn = [self._draw(ax, m, line_options) for ax, m in zip(self.axes_, self.mean, strict=True)]
        self.lines_, self.bands_ = [line for line, _ in drawn], [band for _, band in drawn]
        if self.name is not None:
            self.axes_[0].legend(frameon=False, handlelength=3.2)
        return self

    def _draw(self, ax: Any, measure: str, options: dict[str, Any]) -> tuple[Any, Any]:
        number = sum(line.get_gid() == _LINE for line in ax.lines)
        order = np.argsort(self.ps)
        x, mean, error = _positions(self.ps)[order], self.mean[measure][order], self.error[measure][order]
        (line,) = ax.plot(x, mean, label=self.name, gid=_LINE, **(line_style(number) | options))
        band = ax.fill_between(x, mean - error, mean + error, color=line.get_color(), alpha=0.2, linewidth=0)
        ax.set_xticks(x, ["∞" if p == inf else f"{p:g}" for p in self.ps[order]])
        ax.set(title=measure, xlabel="p")
        light(ax)
        return line, band


def _summary(values: np.ndarray) -> tuple[float, float]:
    if len(values) < 2:
        raise InputError(
            f"a spread needs each measure from at least two splits at every p, got {len(values)}"
        )
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _positions(ps: np.ndarray) -> np.ndarray:
    """Powers on a scale of doublings, infinity one doubling after the last."""
    finite = ps[np.isfinite(ps)]
    return np.log2(np.where(np.isfinite(ps), ps, 2 * finite.max() if len(finite) else 1.0))


def _panels(axes: Sequence[Any] | None, n: int) -> list[Any]:
    plt = pyplot()
    if axes is not None:
        panels = list(np.ravel(np.asarray(axes, dtype=object)))
        if len(panels) != n:
            raise InputError(f"axes must be {n} matplotlib axes, one for each measure, got {len(panels)}")
        return panels
    columns = min(n, 3)
    rows = -(-n // columns)
    size = (3.6 * columns + 0.4, 2.9 * rows)
    grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)[1].ravel()
    for spare in grid[n:]:
        spare.remove()
    return list(grid[:n])


class SampleSizeDisplay:
    """Negatives that a generalisation bound asks for against p, on a logarithmic scale (JMLR 2009, sec. 4).

    Parameters
    ----------
    ps : array of shape (n,)
        The powers.
    needed : mapping of str to array of shape (n,)
        Numbers of examples, a line for each name; infinite ones are left out.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines

    Examples
    --------
    >>> display = SampleSizeDisplay.from_bounds([1, 2, 3], [0.4], theta=0.1, log_covering=0.0)
    >>> display.needed["ε = 0.4"].tolist()
    [185.0, 18445.0, 1844440.0]
    """

    def __init__(self, ps: ArrayLike, needed: Mapping[str, ArrayLike]) -> None:
        self.ps = np.asarray(ps, dtype=float)
        self.needed = {str(name): np.asarray(values, dtype=float) for name, values in needed.items()}
        if not self.needed:
            raise InputError("there is no line to draw: give at least one epsilon")

    @classmethod
    def from_bounds(
        cls,
        ps: Sequence[float],
        epsilons: Sequence[float],
        *,
        theta: float,
        log_covering: LogCovering,
        delta: float = 0.05,
        r_min: float = 0.0,
        n_positives: float = inf,
        ax: Any = None,
        **line_options: Any,
    ) -> SampleSizeDisplay:
        """Draw a line for each ε; parameters as in `apexrank.bounds.negatives_needed`."""
        options = {"n_positives": n_positives, "r_min": r_min}
        needed = {
            f"ε = {epsilon:g}": [
                negatives_needed(epsilon, delta, theta, p, log_covering, **options) for p in ps
            ]
            for epsilon in epsilons
        }
        return cls(ps, needed).plot(ax, **line_options)

    def plot(self, ax: Any = None, **line_options: Any) -> SampleSizeDisplay:
        """Draw into matplotlib axes, or into a new figure; ``line_options`` go to ``Axes.plot``."""
        self.ax_ = one_axes(ax, (6.4, 4.2))
        self.figure_ = self.ax_.figure
        self.lines_ = [self._draw(name, values, line_options) for name, values in self.needed.items()]
        self.ax_.set(xlabel="p", ylabel="Negatives needed", yscale="log")
        self.ax_.set_xticks(self.ps, [f"{p:g}" for p in self.ps])
        light(self.ax_)
        self.ax_.legend(frameon=False, handlelength=3.2, loc="upper left")
        return self

    def _draw(self, name: str, values: np.ndarray, options: dict[str, Any]) -> Any:
        number = sum(line.get_gid() == _LINE for line in self.ax_.lines)
        shown = np.where(np.isfinite(values), values, np.nan)
        return self.ax_.plot(self.ps, shown, label=name, gid=_LINE, **(line_style(number) | options))[0]
