"""Plots of a push: metrics against p, and the share of each pair in the objective (JMLR 2009, figs. 1 and 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from apexrank.errors import InputError
from apexrank.losses import LOSSES, Exponential, Loss
from apexrank.metrics import bootstrap
from apexrank.metrics._labels import check_rows
from apexrank.metrics.evaluation import find_measures
from apexrank.plot.style import draw_line, estimator_scores, legend, light, one_axes, panels
from apexrank.prices import PRICES, Price
from apexrank.validation import check_choice


class PTradeoffDisplay:
    """Metrics against p, one panel each, as means over splits with a band of one standard error.

    Create one with `from_scores` or `from_estimators` (one set of rows), `from_values` or `from_table` (several
    splits); pass the ``axes_`` of an earlier display to draw another ranker, or the training rows, over it.

    Parameters
    ----------
    ps : array of shape (n,)
        Values of p; ``np.inf`` is drawn to the right of the others.
    mean, error : mapping of str to array of shape (n,)
        Mean and standard error of each metric.
    name : str, optional
        Name in the legend.

    Attributes
    ----------
    axes_ : list of matplotlib axes
        The panels, in the order of the metrics.
    figure_ : matplotlib figure
    lines_, bands_ : list of matplotlib lines and bands
        Lines and bands of this display, one for each metric.

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
    def from_values(cls, ps: ArrayLike, values: Mapping[str, ArrayLike], **options: Any) -> Self:
        """Draw metrics given as arrays of shape (splits, ps); ``options`` are ``name`` and those of `plot`."""
        arrays = {measure: np.atleast_2d(np.asarray(v, dtype=float)) for measure, v in values.items()}
        columns = {measure: [_summary(column) for column in array.T] for measure, array in arrays.items()}
        return cls._draw_summaries(ps, columns, **options)

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
    ) -> Self:
        """Draw metrics of the same rows ranked with each p, with a band of one bootstrap standard error.

        Parameters
        ----------
        scores : mapping of float to array-like of shape (n,)
            Scores of the rows for each p.
        y_true : array-like of shape (n,)
            Labels or relevance.
        measures : str or iterable of str
            Names as in `apexrank.metrics.evaluate`.
        n_resamples : int
            Number of bootstrap resamples of rows, or of ``groups`` if given.
        name, axes
            Name in the legend, and one matplotlib axes per metric.
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
        found_at = {m.label: [drawn[p][m.name] for p in scores] for m in found}
        columns = {label: [(one.value, one.standard_error) for one in row] for label, row in found_at.items()}
        return cls._draw_summaries(list(scores), columns, name=name, axes=axes)

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[float, Any], X: Any, y: ArrayLike, *, pos_label: Any = None, **options: Any
    ) -> Self:
        """Draw rankers fitted with each p, such as those of `apexrank.push_path`; ``options`` as in `from_scores`.

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
        cls, table: Any, *, p: str = "p", measure: str = "measure", value: str = "value", **options: Any
    ) -> Self:
        """Draw a tidy table with one row per split, p and metric; ``p``, ``measure``, ``value`` name its columns.

        The table is a polars or pandas frame or a dict of columns; ``options`` are ``name`` and those of `plot`.

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
        return cls._draw_summaries(ps, columns, **options)

    @classmethod
    def _draw_summaries(
        cls, ps: Any, columns: dict[str, list[Any]], name: str | None = None, axes: Any = None, **options: Any
    ) -> Self:
        mean, error = ({m: [one[part] for one in c] for m, c in columns.items()} for part in (0, 1))
        return cls(ps, mean, error, name=name).plot(axes, **options)

    def plot(self, axes: Sequence[Any] | None = None, **line_options: Any) -> Self:
        """Draw into one matplotlib axes per metric, or into a new figure.

        ``line_options`` are passed to ``Axes.plot``.
        """
        self.axes_ = panels(axes, len(self.mean), 3.6, 2.9)
        self.figure_ = self.axes_[0].figure
        drawn = [self._draw(ax, m, line_options) for ax, m in zip(self.axes_, self.mean, strict=True)]
        self.lines_, self.bands_ = [line for line, _ in drawn], [band for _, band in drawn]
        if self.name is not None:
            legend(self.axes_[0])
        return self

    def _draw(self, ax: Any, measure: str, options: dict[str, Any]) -> tuple[Any, Any]:
        order = np.argsort(self.ps)
        x, mean, error = _positions(self.ps)[order], self.mean[measure][order], self.error[measure][order]
        drawn = draw_line(ax, x, mean, (mean - error, mean + error), **{"label": self.name} | options)
        ax.set_xticks(x, ["∞" if p == inf else f"{p:g}" for p in self.ps[order]])
        ax.set(title=measure, xlabel="p")
        light(ax)
        return drawn


def _summary(values: np.ndarray) -> tuple[float, float]:
    if len(values) < 2:
        raise InputError(f"a spread of a measure needs at least two splits at every p, got {len(values)}")
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _positions(ps: np.ndarray) -> np.ndarray:
    """Values of p on a log2 scale, with infinity one doubling after the last."""
    finite = ps[np.isfinite(ps)]
    return np.log2(np.where(np.isfinite(ps), ps, 2 * finite.max() if len(finite) else 1.0))


_MOST_PAIRS = 10_000_000
_SIDES = {"top": np.array([1, 0]), "bottom": np.array([0, 1]), "both": np.array([1, 1])}


def pair_contributions(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    price: str | Price = "power",
    p: float = 4.0,
    loss: str | Loss = "exponential",
    side: str = "top",
    balance: float = 1.0,
    pos_label: Any = None,
) -> np.ndarray:
    """Share of each positive–negative pair in the objective (JMLR 2009, sec. 3.3 and fig. 4).

    On the top side the negative k costs ``g(r_k)``, ``r_k = Σ_i ℓ(f_i − g_k)``, to which the positive i contributes the
    share ``ℓ(f_i − g_k) / r_k``. On the bottom side the classes swap roles: the positive i costs
    ``g(Σ_k ℓ(f_i − g_k))``. All shares sum to 1, unless the total cost is zero.

    Parameters
    ----------
    y_true, scores, pos_label
        As in `apexrank.metrics.auc`.
    price, loss, side, balance
        As in `apexrank.objectives.Push`, for one group without weights.
    p : float
        Exponent of the price "power".

    Returns
    -------
    ndarray of shape (I, K)
        One row per positive and one column per negative, both from the highest score to the lowest.

    Examples
    --------
    >>> y, scores = [1, 0, 1, 0], [3.0, 2.0, 1.0, 0.0]
    >>> pair_contributions(y, scores, p=1).round(3).tolist()
    [[0.105, 0.014], [0.776, 0.105]]
    >>> pair_contributions(y, scores, p=4).round(3).tolist()
    [[0.119, 0.0], [0.881, 0.0]]
    """
    check_choice("side", side, _SIDES)
    log_loss = _log_losses(y_true, scores, LOSSES.get(loss), pos_label)
    priced = PRICES.get(price, p=p)
    factors = _SIDES[side] * np.array([1.0, balance])
    sides = [(axis, factor) for axis, factor in enumerate(factors) if factor]
    logs = [np.log(factor) + _log_parts(log_loss, priced, axis) for axis, factor in sides]
    contribution = np.logaddexp.reduce(logs)
    highest = contribution.max()
    if highest == -np.inf:
        return np.zeros_like(contribution)
    relative = np.exp(contribution - highest)
    return relative / relative.sum()


def _log_losses(y_true: ArrayLike, scores: ArrayLike, loss: Loss, pos_label: Any) -> np.ndarray:
    """``ln ℓ(f_i − g_k)``, both classes from the highest score down."""
    data = check_rows(y_true, scores, pos_label=pos_label)
    f, g = (np.sort(data.scores[c])[::-1] for c in (data.positive, ~data.positive))
    if not len(f) or not len(g) or len(f) * len(g) > _MOST_PAIRS:
        raise InputError(
            f"{len(f)} positives and {len(g)} negatives cannot be drawn pair by pair: "
            f"give some of both and at most {_MOST_PAIRS:,} pairs, for example a random part of the rows"
        )
    margins = f[:, None] - g[None, :]
    if isinstance(loss, Exponential):
        return -margins  # log of an exponential that may overflow
    with np.errstate(divide="ignore"):
        return np.log(loss.value(margins))


def _log_parts(log_loss: np.ndarray, price: Price, axis: int) -> np.ndarray:
    """``ln( g(r)·ℓ/r )``, where r is the sum of the losses along ``axis``."""
    log_r = np.asarray(logsumexp(log_loss, axis=axis, keepdims=True))
    costs = np.isfinite(log_r)
    safe = np.where(costs, log_r, 0.0)
    return np.where(costs, price.log_value(safe) + log_loss - safe, -np.inf)


class PairContributionDisplay:
    """Heat map of the share of each positive–negative pair in the objective (JMLR 2009, figs. 1 and 4).

    As in the paper, the highest negatives are on the left, the highest positives at the bottom, and lighter means more.
    Rows at the top of the list meet in the lower left corner, the worst pairs are in the upper left one. Create one
    with `from_predictions` or `from_estimator`.

    Parameters
    ----------
    contributions : array of shape (I, K)
        As returned by `pair_contributions`.
    name : str, optional
        Title of the map.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    image_ : matplotlib image
    colorbar_ : matplotlib colour bar or None

    Examples
    --------
    >>> display = PairContributionDisplay.from_predictions([1, 0, 1, 0], [3.0, 2.0, 1.0, 0.0], p=4)
    >>> display.contributions.shape
    (2, 2)
    """

    def __init__(self, contributions: ArrayLike, *, name: str | None = None) -> None:
        self.contributions = np.asarray(contributions, dtype=float)
        self.name = name
        if self.contributions.ndim != 2 or not self.contributions.size:
            raise InputError(
                f"`contributions` need a row for each positive and a column for each negative, "
                f"got shape {self.contributions.shape}"
            )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        scores: ArrayLike,
        *,
        name: str | None = None,
        ax: Any = None,
        colorbar: bool = True,
        image_options: Mapping[str, Any] | None = None,
        **objective: Any,
    ) -> PairContributionDisplay:
        """Draw the map of a ranked list; ``objective`` takes the options of `pair_contributions`.

        Examples
        --------
        >>> y, scores = [1, 0, 1, 0], [3.0, 2.0, 1.0, 0.0]
        >>> ir = PairContributionDisplay.from_predictions(y, scores, price="log1p", side="bottom", name="IR Push")
        >>> ir.ax_.get_title()
        'IR Push'
        """
        display = cls(pair_contributions(y_true, scores, **objective), name=name)
        return display.plot(ax, colorbar=colorbar, **(image_options or {}))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, pos_label: Any = None, **options: Any
    ) -> PairContributionDisplay:
        """Draw the map of a fitted ranker's list; ``options`` are those of `from_predictions`.

        Examples
        --------
        >>> from apexrank import PNormPush
        >>> X, y = [[0.0], [1.0], [0.5], [3.0]], [0, 0, 1, 1]
        >>> PairContributionDisplay.from_estimator(PNormPush().fit(X, y), X, y).ax_.get_title()
        'PNormPush'
        """
        options.setdefault("name", type(estimator).__name__)
        scores = estimator_scores(estimator, X, pos_label)
        return cls.from_predictions(y, scores, pos_label=pos_label, **options)

    def plot(self, ax: Any = None, *, colorbar: bool = True, **image_options: Any) -> PairContributionDisplay:
        """Draw into matplotlib axes, or into a new figure; ``image_options`` are passed to ``Axes.imshow``."""
        self.figure_, self.ax_ = one_axes(ax, (5.4, 4.6))
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        n_positives, n_negatives = self.contributions.shape
        options = {"cmap": "viridis", "vmin": 0.0, "aspect": "auto", "interpolation": "nearest"}
        extent = (0.5, n_negatives + 0.5, 0.5, n_positives + 0.5)
        options |= {"origin": "lower", "extent": extent} | image_options
        self.image_ = self.ax_.imshow(self.contributions, **options)
        self.colorbar_: Any = None
        if colorbar:
            percent = FuncFormatter(lambda share, _: f"{100 * share:.4g} %")
            ticks = {"ticks": MaxNLocator(5), "format": percent}
            self.colorbar_ = self.figure_.colorbar(self.image_, ax=self.ax_, **ticks)
            self.colorbar_.set_label("Share of the objective")
            self.colorbar_.outline.set_visible(False)
        across, up = "Negatives, highest score on the left", "Positives, highest score at the bottom"
        self.ax_.set(xlabel=across, ylabel=up, title=self.name or "")
        for axis, n in ((self.ax_.xaxis, n_negatives), (self.ax_.yaxis, n_positives)):
            axis.set_major_locator(MaxNLocator(nbins=min(n, 8), integer=True))
        return self
