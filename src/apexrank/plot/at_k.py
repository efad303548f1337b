"""Plot of metrics at k against k, to show at which depth of the list one ranker is better than another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from apexrank.errors import InputError
from apexrank.metrics import per_group
from apexrank.plot.style import RankerDisplay, draw_line, legend, light, one_axes

_CAPITALS = {"ndcg", "dcg", "err", "map", "mrr"}
_MOST_MARKERS = 20


class MeasureAtKDisplay(RankerDisplay):
    """Metric at cut-off k against k, one line per ranker.

    With several lists (queries) the line is the mean over them, and the band its Student confidence interval
    ``mean ± z · s / √n``, with s the standard deviation over the n queries for which the metric is defined. Create one
    with `from_scores` (several rankers at once), `from_predictions` or `from_estimator`; pass the ``ax_`` of an earlier
    display to draw over it.

    Parameters
    ----------
    k : array of shape (m,)
        The cut-offs.
    mean : mapping of str to array of shape (m,)
        Value of the metric at each cut-off, by name of the ranker.
    low, high : mapping of str to array of shape (m,), optional
        Lower and upper end of the band, for some or all rankers.
    measure : str
        Name of the metric on the y axis, such as "ndcg".
    title : str, optional
        Title of the plot.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines
        One for each ranker of this display.
    bands_ : list of matplotlib bands or None
        The band of each ranker, or None.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> y, groups = [1, 0, 0, 0, 1, 0], [1, 1, 1, 2, 2, 2]
    >>> scores = {"A": [3, 2, 1, 3, 2, 1], "B": [3, 2, 1, 1, 3, 2]}
    >>> options = {"measure": "precision", "k": [1, 2], "groups": groups, "ax": Figure().subplots()}
    >>> display = MeasureAtKDisplay.from_scores(scores, y, **options)
    >>> display.mean["A"].tolist(), display.mean["B"].tolist()
    ([0.5, 0.5], [1.0, 0.5])
    >>> [label.get_text() for label in display.ax_.get_legend().get_texts()], display.ax_.get_title()
    (['A', 'B'], 'Mean of 2 queries, 95 % interval')
    >>> options = {"measure": "recall", "k": [1, 2, 3], "ax": Figure().subplots()}
    >>> display = MeasureAtKDisplay.from_predictions([0, 1, 1], [3, 2, 1], **options)
    >>> display.mean["ranker"].tolist(), display.bands_
    ([0.0, 0.5, 1.0], [None])
    """

    def __init__(
        self,
        k: ArrayLike,
        mean: Mapping[str, ArrayLike],
        low: Mapping[str, ArrayLike] | None = None,
        high: Mapping[str, ArrayLike] | None = None,
        *,
        measure: str = "ndcg",
        title: str | None = None,
    ) -> None:
        self.k = np.asarray(k)
        self.mean, self.low, self.high = (
            {str(name): np.asarray(values, dtype=float) for name, values in (part or {}).items()}
            for part in (mean, low, high)
        )
        self.measure, self.title = measure, title
        if not self.mean or not self.k.size:
            raise InputError("there is nothing to draw: give at least one ranker and one cut-off k")
        if self.low.keys() != self.high.keys() or not self.low.keys() <= self.mean.keys():
            raise InputError(
                "a band has two ends: give low and high for the same rankers, all of them in mean"
            )
        for values in (*self.mean.values(), *self.low.values(), *self.high.values()):
            if values.shape != self.k.shape:
                raise InputError(f"{len(self.k)} cut-offs k need as many values, got shape {values.shape}")

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, ArrayLike],
        y_true: ArrayLike,
        *,
        measure: str = "ndcg",
        k: Iterable[int] = range(1, 11),
        groups: ArrayLike | None = None,
        confidence: float = 0.95,
        ties: Any = None,
        relevant: float | None = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
        **line_options: Any,
    ) -> MeasureAtKDisplay:
        """Draw several rankers, with ``scores`` by name, on the same rows.

        Parameters
        ----------
        scores : mapping of str to array-like of shape (n,)
            Scores of each ranker.
        y_true : array-like of shape (n,)
            Relevance of each row.
        measure : str
            Name of the metric: "ndcg", "precision", "recall" or another metric with a cut-off supported by
            `apexrank.metrics.per_group`.
        k : iterable of int
            The cut-offs, at least 1 each.
        groups : array-like of shape (n,), optional
            One query id per row, in any order; by default all rows form one list, which has no band.
        confidence : float in (0, 1)
            Confidence level of the band.
        ties, relevant, pos_label, sample_weight
            As in `apexrank.metrics.per_group`.
        ax : matplotlib axes, optional
            Axes to draw into; lines drawn by an earlier display are kept.
        **line_options
            Passed to matplotlib's ``Axes.plot``.
        """
        if not 0 < confidence < 1:
            raise InputError(f"`confidence` must be between 0 and 1, got {confidence!r}")
        cuts = _cut_offs(k)
        names = [f"{measure}_at_{cut}" for cut in cuts]
        options = {"ties": ties, "relevant": relevant, "pos_label": pos_label, "sample_weight": sample_weight}
        options["groups"] = groups
        tables = {name: per_group(y_true, values, names, **options) for name, values in scores.items()}
        spans = {
            name: np.transpose([_interval(table[column].to_numpy(), confidence) for column in names])
            for name, table in tables.items()
        }
        queries = max((int(span[3].max()) for span in spans.values()), default=1)
        if not queries:
            raise InputError(f"{measure} is not defined in any list: give lists that have a relevant row")
        mean, low, high = ({name: span[part] for name, span in spans.items()} for part in range(3))
        display = cls(cuts, mean, measure=measure)
        if queries > 1:
            title = f"Mean of {queries:,} queries, {100 * confidence:g} % interval"
            display = cls(cuts, mean, low, high, measure=measure, title=title)
        return display.plot(ax, **line_options)

    def plot(self, ax: Any = None, **line_options: Any) -> MeasureAtKDisplay:
        """Draw into matplotlib axes, or into a new figure; ``line_options`` go to ``Axes.plot``."""
        self.figure_, self.ax_ = one_axes(ax, (6.4, 4.2))
        self.lines_, self.bands_ = [], []
        order = np.argsort(self.k)
        for name, mean in self.mean.items():
            ends = (self.low[name][order], self.high[name][order]) if name in self.low else None
            options = {"label": name, "markevery": -(-len(order) // _MOST_MARKERS)} | line_options
            line, band = draw_line(self.ax_, self.k[order], mean[order], ends, **options)
            self.lines_.append(line)
            self.bands_.append(band)
        self._dress()
        return self

    def _dress(self) -> None:
        from matplotlib.ticker import MaxNLocator

        words = self.measure.replace("_", " ")
        label = words.upper() if words in _CAPITALS else words.capitalize()
        self.ax_.set(xlabel="k, rows from the top", ylabel=f"{label} at k")
        if self.title is not None:
            self.ax_.set_title(self.title)
        locator = MaxNLocator(nbins=10, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1)
        self.ax_.xaxis.set_major_locator(locator)
        light(self.ax_)
        legend(self.ax_)


def _cut_offs(k: Iterable[int]) -> np.ndarray:
    cuts = np.unique(np.asarray(list(k)))
    if not len(cuts) or cuts.dtype.kind not in "iu" or cuts[0] < 1:
        raise InputError("`k` must be whole numbers of rows, 1 or more, for example range(1, 11)")
    return cuts


def _interval(values: np.ndarray, confidence: float) -> tuple[float, float, float, int]:
    """Mean over the queries where the metric is defined, ends of its interval (NaN for one query), and their number."""
    defined = values[np.isfinite(values)]
    n = len(defined)
    if n < 2:
        return (defined[0] if n else np.nan), np.nan, np.nan, n
    mean = defined.mean()
    half = stdtrit(n - 1, (1 + confidence) / 2) * defined.std(ddof=1) / np.sqrt(n)
    return mean, mean - half, mean + half, n
