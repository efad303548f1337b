"""Plot of an aggregated ranking: rank of each item, its confidence interval, and the ranks given by the voters."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.plot.style import COLOURS, erase, item_label, legend, light, number_column, one_axes, short_name

_GID = "apexrank-aggregation"
_ROW, _HIGHEST = 0.3, 20.0  # inches per row, and maximum height of a figure in inches
_MOST_VOTERS, _MOST_PLACES = 5_000, 60  # maximum number of voters used, and of bubbles side by side
_LARGEST = 230.0  # area of a bubble for all voters, in square points
_REACH = 1.5  # factor beyond the last rank of the result up to which the voters' ranks are drawn separately
METHOD_TITLES = {
    "lovasz-bregman": "Lovász–Bregman",
    "borda": "Borda",
    "copeland": "Copeland",
    "kemeny": "Kemeny",
    "median": "Median rank",
    "combsum": "CombSUM",
    "combmnz": "CombMNZ",
    "rrf": "Reciprocal rank fusion",
}


class AggregationDisplay:
    """Items from best to worst, each with its rank, the interval of the rank, and the ranks given by the voters.

    The area of a bubble is the share of the voters who give the item that rank, so that five voters and a hundred
    thousand look alike; ranks far below those drawn share the last bubble. On the right are the score and, with a
    bootstrap, the share of resamples in which the item was first. Create one with `from_result` or ``result.plot()``.

    Parameters
    ----------
    names : sequence of str
        Name of each item.
    ranks : array of shape (n,)
        Rank of each item, 1 is best.
    scores : array of shape (n,), optional
        Scores that were sorted, written beside the items.
    low, high : arrays of shape (n,), optional
        Interval of each rank.
    first : array of shape (n,), optional
        Share of the resamples in which the item is first.
    voter_ranks : array of shape (voters, n), optional
        Rank of each item on each ballot, NaN if not ranked.
    weights : array of shape (voters,), optional
        Number of times each ballot was cast.
    title : str, optional
        Title of the plot.
    top : int
        Number of items to draw.
    level : float
        Confidence level of the intervals, shown in the legend.

    Attributes
    ----------
    items : ndarray
        Indices of the items drawn, best first.
    ax_, figure_ : matplotlib axes and figure
    points_, bubbles_ : matplotlib collections
        Ranks of the items, and of the voters (None without ``voter_ranks``).
    intervals_ : matplotlib collection
        Intervals of the ranks, or None.

    Examples
    --------
    >>> display = AggregationDisplay(["ann", "bob", "cy"], [2, 1, 3], voter_ranks=[[1, 2, 3], [2, 1, 3]], top=2)
    >>> display.items.tolist(), [label.get_text() for label in display.plot().ax_.get_yticklabels()]
    ([1, 0], ['bob  1', 'ann  2'])
    """

    def __init__(
        self,
        names: Sequence[Any],
        ranks: ArrayLike,
        *,
        scores: ArrayLike | None = None,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        first: ArrayLike | None = None,
        voter_ranks: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        title: str | None = None,
        top: int = 20,
        level: float = 0.95,
    ) -> None:
        self.names = [item_label(name) for name in names]
        n = len(self.names)
        self.ranks = number_column("ranks", ranks, n)
        self.scores, self.low, self.high, self.first = (
            None if values is None else number_column(what, values, n)
            for what, values in (("scores", scores), ("low", low), ("high", high), ("first", first))
        )
        if (self.low is None) != (self.high is None):
            raise InputError("an interval needs both ends: give low and high, or neither")
        if not isinstance(top, int | np.integer) or top < 1:
            raise InputError(f"`top` must be a whole number of items, 1 or more, got {top!r}")
        self.items = np.argsort(self.ranks, kind="stable")[:top]
        self.voter_ranks, self.weights = _voters(voter_ranks, weights, n)
        self.title, self.level = title, level

    @classmethod
    def from_result(
        cls,
        result: Any,
        *,
        top: int = 20,
        bootstrap: Any = 1000,
        level: float = 0.95,
        random_state: Any = 0,
        ax: Any = None,
        **point_options: Any,
    ) -> AggregationDisplay:
        """Draw the result of `apexrank.aggregation.aggregate`.

        Parameters
        ----------
        result : Aggregation
            The aggregated ranking.
        top : int
            Number of items to draw.
        bootstrap : int or RankBootstrap
            Number of bootstrap resamples for the intervals, or the result of ``result.bootstrap()``; 0 draws none. A
            single voter has no interval.
        level : float in (0, 1)
            Confidence level of the intervals.
        random_state : int, Generator or None
            Seed of the bootstrap.
        ax : matplotlib axes, optional
            Axes to draw into; by default a new figure.
        point_options
            Passed to ``Axes.scatter`` for the ranks of the items.
        """
        n_voters = len(result.voters)
        parts: dict[str, Any] = {}
        if bootstrap and n_voters > 1:
            drawn = bootstrap
            if isinstance(bootstrap, Integral):
                drawn = result.bootstrap(bootstrap, confidence=level, random_state=random_state)
            level = drawn.confidence
            parts = {"low": drawn.low, "high": drawn.high, "first": drawn.first}
        rows = np.unique(np.linspace(0, n_voters - 1, _MOST_VOTERS).round().astype(int))
        voters = result.ballots.voters_said
        display = cls(
            result.items,
            result.ranks,
            scores=result.scores,
            voter_ranks=result.voter_ranks(rows),
            weights=result.ballots.weight(rows),
            title=f"{METHOD_TITLES[result.method]} of {voters}, confidence {result.confidence:.2f}",
            top=top,
            level=level,
            **parts,
        )
        return display.plot(ax, **point_options)

    def plot(self, ax: Any = None, **point_options: Any) -> AggregationDisplay:
        """Draw into matplotlib axes, replacing an earlier plot of this kind, or into a new figure."""
        k = len(self.items)
        letters = max(len(self._label(item)) for item in self.items)
        self.figure_, self.ax_ = one_axes(ax, (6.0 + 0.085 * letters, min(1.8 + _ROW * k, _HIGHEST)))
        erase(self.ax_, _GID)
        height = np.arange(k)
        self.bubbles_ = self._draw_voters(height)
        self.intervals_ = self._draw_intervals(height)
        style = {"s": 34, "color": COLOURS[0], "edgecolor": "white", "linewidths": 0.8, "zorder": 4}
        label = {"label": "rank of the result", "gid": _GID}
        self.points_ = self.ax_.scatter(self.ranks[self.items], height, **(style | label | point_options))
        self._dress(height)
        return self

    def _draw_voters(self, height: np.ndarray) -> Any:
        if self.voter_ranks is None:
            return None
        places, rows, shares = self._bubbles(height)
        style = {"s": np.maximum(_LARGEST * shares, 1.5), "color": "0.72", "linewidths": 0, "zorder": 2}
        return self.ax_.scatter(places, rows, label="voters (area: share)", gid=_GID, **style)

    def _bubbles(self, height: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions, heights and shares of the voters; close positions are merged into one bubble if there are many."""
        last = self._last_place()
        width = 0.5 if last <= _MOST_PLACES else np.ceil(last / _MOST_PLACES)
        parts = []
        for row, item in zip(height, self.items, strict=True):
            ranks = self.voter_ranks[:, item]
            given = ~np.isnan(ranks)
            near = 1 + width * np.round((ranks[given] - 1) / width)
            near[ranks[given] > last] = self._beyond()
            places, number = np.unique(near, return_inverse=True)
            weight = np.bincount(number, self.weights[given], len(places))
            parts.append((places, np.full(len(places), row), weight / self.weights.sum()))
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))  # type: ignore[return-value]

    def _draw_intervals(self, height: np.ndarray) -> Any:
        if self.low is None or self.high is None:
            return None
        # the ends are ranks inside the interval; padding makes an interval of a single rank visible
        low, high = self.low[self.items] - 0.12, self.high[self.items] + 0.12
        style = {"color": COLOURS[0], "linewidth": 2.6, "alpha": 0.75, "zorder": 3}
        label = f"{self.level:.0%} bootstrap interval"
        return self.ax_.hlines(height, low, high, label=label, gid=_GID, **style)

    def _label(self, item: int) -> str:
        tied = (self.ranks == self.ranks[item]).sum() > 1
        return f"{short_name(self.names[item])}  {self.ranks[item]:,.0f}{'=' if tied else ''}"

    def _dress(self, height: np.ndarray) -> None:
        ax, k, n = self.ax_, len(self.items), len(self.ranks)
        light(ax)
        ax.grid(visible=False, axis="y")
        ax.set_yticks(height, [self._label(item) for item in self.items], parse_math=False)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set_ylim(k - 0.4, -0.6)
        self._mark_ranks(n)
        ax.set_xlabel(f"rank among {n:,} items, 1 is best" + (f"; first {k:,} shown" if k < n else ""))
        self._columns(height)
        if self.title is not None:
            ax.set_title(self.title, pad=24, fontsize=11, parse_math=False)
        self._legend()

    def _mark_ranks(self, n: int) -> None:
        from matplotlib.ticker import MaxNLocator

        last, beyond = self._last_place(), self._beyond()
        ticks = [tick for tick in MaxNLocator(integer=True, nbins=8).tick_values(1, last) if 1 < tick <= last]
        labels = ["1", *(f"{tick:,.0f}" for tick in ticks)]
        if self.voter_ranks is not None and last < n:
            while ticks and ticks[-1] > last - 0.05 * last:
                del ticks[-1], labels[-1]
            self.ax_.set_xticks([1, *ticks, beyond], [*labels, f"> {last:,.0f}"])
        else:
            self.ax_.set_xticks([1, *ticks], labels)
            beyond = last
        room = max(0.6, 0.03 * last)
        self.ax_.set_xlim(1 - room, beyond + room)

    def _legend(self) -> None:
        from matplotlib.transforms import ScaledTranslation

        below = self.ax_.transAxes + ScaledTranslation(0, -38 / 72, self.figure_.dpi_scale_trans)
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "bbox_transform": below, "ncols": 3}
        legend(self.ax_, fontsize=8, handlelength=2, handletextpad=0.5, columnspacing=1.4, **place)

    def _last_place(self) -> float:
        """Last rank that is drawn at its own position."""
        ends = self.ranks if self.high is None else np.maximum(self.ranks, self.high)
        return float(min(len(self.ranks), np.ceil(_REACH * ends[self.items].max())))

    def _beyond(self) -> float:
        """Position of the ranks beyond the last one."""
        return self._last_place() + max(1.0, 0.08 * self._last_place())

    def _columns(self, height: np.ndarray) -> None:
        """Write scores and shares of first ranks beside the rows."""
        columns = []
        if self.scores is not None:
            columns.append(("score", _written(self.scores[self.items])))
        if self.first is not None:
            columns.append(("first", [f"{share:.0%}" for share in self.first[self.items]]))
        for number, (head, texts) in enumerate(columns):
            offset = 50 + 38 * number
            place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "ha": "right"}
            style = {"fontsize": 8, "va": "center", "color": "0.25", "gid": _GID, "annotation_clip": False}
            for row, text in zip([-0.95, *height.tolist()], [head, *texts], strict=True):
                weight = "bold" if text == head else "normal"
                self.ax_.annotate(text, (1, row), (offset, 0), fontweight=weight, **place, **style)


def _written(values: np.ndarray) -> list[str]:
    """Format numbers with the same decimals, four digits for the largest unless fewer suffice."""
    largest = float(np.abs(values).max())
    if 0 < largest < 1e-3 or largest >= 1e9:
        return [f"{value:.3g}" for value in values]
    most = max(0, 3 - int(np.floor(np.log10(largest)))) if largest else 0
    enough = (d for d in range(most) if np.abs(values - values.round(d)).max() <= 1e-9 * largest)
    decimals = next(enough, most)
    return [f"{value:,.{decimals}f}" for value in values]


def _voters(voter_ranks: ArrayLike | None, weights: ArrayLike | None, n: int) -> tuple[Any, Any]:
    if voter_ranks is None:
        return None, None
    ranks = np.asarray(voter_ranks, dtype=float)
    if ranks.ndim != 2 or ranks.shape[1] != n:
        raise InputError(f"`voter_ranks` must be a table of voters × {n} items, got shape {ranks.shape}")
    return ranks, np.ones(len(ranks)) if weights is None else number_column("weights", weights, len(ranks))
