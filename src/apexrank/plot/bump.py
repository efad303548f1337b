"""Bump chart of two rankers: the top items of each, and their ranks by the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics._labels import check_rows
from apexrank.plot import style

_GID = "apexrank-bump"
_ROW, _HIGHEST = 0.17, 20.0  # inches per row, and maximum height of a figure in inches
# A direction is encoded in colour, line style and marker, each of which suffices to recognise it.
_LOOKS: dict[str, dict[str, Any]] = {
    "up": {"color": style.COLOURS[0], "linestyle": "-", "marker": "^", "zorder": 2.2},
    "down": {"color": style.COLOURS[1], "linestyle": "--", "marker": "v", "zorder": 2.1},
    "stays": {"color": "0.4", "linestyle": ":", "marker": "o", "zorder": 2.0},
}


class BumpDisplay:
    """Ranks of the top items by one ranker on the left and by another on the right, with one line per item.

    Colour, line style and marker show whether an item moves up, down or stays. An item that only one of the rankers
    has among the first ``top`` ends below the other's top, where its true rank is written. Tied items, whose ranks have
    an equals sign, are in the order of the other ranker, then of the rows. Create one with `from_scores` or
    `from_estimators`.

    Parameters
    ----------
    ranks : mapping of str to array of shape (n,)
        Rank of each item, 1 at the top, by the names of the two rankers, the left one first.
    names : sequence of str, optional
        Name of each item; by default its row number.
    positive : array of bool of shape (n,), optional
        Mask of the positive items: they get filled markers, the others hollow ones.
    top : int
        Number of items in the top.

    Attributes
    ----------
    items : ndarray
        Row numbers of the items drawn, those in either top, in the order of the left ranker.
    counts : dict
        Numbers of items that moved "up" or "down", that "stays", and that "entered" and "left" the top.
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines
        One for each of ``items``.
    labels_ : pair of lists of matplotlib texts
        Ranks and names on the left and on the right.

    Examples
    --------
    >>> display = BumpDisplay({"p = 1": [1, 2, 3, 4, 5], "p = 16": [1, 5, 4, 3, 2]}, top=3)
    >>> display.items.tolist(), display.counts
    ([0, 1, 2, 3, 4], {'up': 2, 'down': 2, 'stays': 1, 'entered': 2, 'left': 2})
    """

    def __init__(
        self,
        ranks: Mapping[str, ArrayLike],
        *,
        names: Sequence[str] | None = None,
        positive: ArrayLike | None = None,
        top: int = 50,
    ) -> None:
        self.ranks = {str(name): style.number_column(repr(name), values) for name, values in ranks.items()}
        if len(self.ranks) != 2:
            raise InputError(f"a bump chart compares two rankers, got {len(self.ranks)}")
        n = len(next(iter(self.ranks.values())))
        self.names = None if names is None else list(names)
        self.positive = None if positive is None else np.asarray(positive, dtype=bool)
        parts: dict[str, Any] = self.ranks | {"names": self.names, "positive": self.positive}
        for what, values in parts.items():
            if values is not None and len(values) != n:
                raise InputError(f"one value for each of {n} items is needed, {what!r} has {len(values)}")
        if not isinstance(top, int | np.integer) or top < 1:
            raise InputError(f"`top` must be a whole number of items, 1 or more, got {top!r}")
        self.top = int(min(top, n))
        self._place()

    def _place(self) -> None:
        """Choose the items to draw and their heights: the position in the top, then one row each below it."""
        left, right = self.ranks.values()
        places = np.column_stack([style.places_of(left, right), style.places_of(right, left)])
        shown = np.flatnonzero(places.min(axis=1) <= self.top)
        self.items = shown[np.argsort(places[shown, 0])]
        self._places = places[self.items]
        self._heights = np.column_stack([style.bump_heights(side, self.top, 1.0) for side in self._places.T])
        self._moves = [_move(*pair) for pair in self._places.tolist()]
        beyond = self._places > self.top
        directions = {name: self._moves.count(name) for name in _LOOKS}
        self.counts = directions | {"entered": int(beyond[:, 0].sum()), "left": int(beyond[:, 1].sum())}

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, ArrayLike],
        *,
        names: Sequence[str] | None = None,
        y_true: ArrayLike | None = None,
        pos_label: Any = None,
        top: int = 50,
        ax: Any = None,
        **line_options: Any,
    ) -> BumpDisplay:
        """Draw two rankers of the same items, with ``scores`` by name; larger scores rank higher.

        ``y_true`` are two-class labels, the larger one positive unless ``pos_label`` is given; the rest as in the class
        and in `plot`.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> scores = {"A": [3, 3, 1], "B": [1, 2, 3]}
        >>> display = BumpDisplay.from_scores(scores, y_true=[0, 1, 1], top=2, ax=Figure().subplots())
        >>> [label.get_text() for label in display.labels_[0]]
        ['row 1  1=', 'row 0  2=', 'row 2  3']
        """
        from scipy.stats import rankdata

        columns = {name: style.number_column(repr(name), values) for name, values in scores.items()}
        ranks = {name: rankdata(-column, method="min") for name, column in columns.items()}
        any_scores: ArrayLike = next(iter(scores.values()), [])
        positive = None if y_true is None else check_rows(y_true, any_scores, pos_label=pos_label).positive
        return cls(ranks, names=names, positive=positive, top=top).plot(ax, **line_options)

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Any],
        X: Any,
        y: ArrayLike | None = None,
        *,
        pos_label: Any = None,
        **options: Any,
    ) -> BumpDisplay:
        """Draw two fitted rankers or classifiers on the rows of X; ``options`` are those of `from_scores`.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from apexrank import PNormPush
        >>> X, y = [[0.0, 1.0], [1.0, 0.0], [0.5, 2.0], [3.0, 1.0]], [0, 0, 1, 1]
        >>> push = {f"p = {p}": PNormPush(p=p).fit(X, y) for p in (1, 16)}
        >>> len(BumpDisplay.from_estimators(push, X, y, top=4, ax=Figure().subplots()).items)
        4
        """
        scores = {name: style.estimator_scores(model, X, pos_label) for name, model in estimators.items()}
        return cls.from_scores(scores, y_true=y, pos_label=pos_label, **options)

    def plot(self, ax: Any = None, **line_options: Any) -> BumpDisplay:
        """Draw into matplotlib axes, or into a new figure with room for all rows.

        Names are omitted, and only some ranks written, if the axes are too small for a label on each row. An existing
        bump chart in the axes is replaced. ``line_options`` are passed to ``Axes.plot``.
        """
        rows = self._heights.max()
        letters = max(len(self._name(item)) for item in self.items) + 6
        self.figure_, self.ax_ = style.one_axes(ax, (4.4 + 0.13 * letters, min(1.9 + _ROW * rows, _HIGHEST)))
        style.erase(self.ax_, _GID)
        self.lines_ = [self._draw(number, line_options) for number in range(len(self.items))]
        self.ax_.set(xlim=(-0.02, 1.02), ylim=(rows + 0.6, 0.4))
        self.ax_.set_axis_off()
        self.labels_ = self._label(0, rows), self._label(1, rows)
        self._dress()
        return self

    def _draw(self, number: int, options: dict[str, Any]) -> Any:
        look = _LOOKS[self._moves[number]] | {"linewidth": 1.2, "markersize": 5, "clip_on": False}
        hollow = self.positive is not None and not self.positive[self.items[number]]
        face = {"markerfacecolor": "white"} if hollow else {}
        return self.ax_.plot((0, 1), self._heights[number], gid=_GID, **(look | face | options))[0]

    def _label(self, side: int, rows: float) -> list[Any]:
        """Write rank and name beside each line, or only some ranks if there is no room."""
        points = self.ax_.get_window_extent().height / self.ax_.figure.dpi * 72 / rows
        size = min(8.0, 0.75 * points)
        room = size >= 5
        step = 1 if room else 5 * 2 ** max(0, int(np.ceil(np.log2(3 / points))))
        ranks = self._rank_texts(side)
        options = {"fontsize": size if room else 6}
        texts = []
        for number, height in enumerate(self._heights[:, side].tolist()):
            if room or self._has_mark(height, step):
                parts = [ranks[number], self._name(self.items[number])] if room else [ranks[number]]
                text = "  ".join(parts if side else parts[::-1])
                texts.append(self._write(side, height, text, **options))
        return texts

    def _name(self, item: int) -> str:
        return f"row {item}" if self.names is None else style.short_name(str(self.names[item]))

    def _has_mark(self, height: float, step: int) -> bool:
        near_the_border = bool(self.counts["left"]) and abs(height - self.top - 1) < step / 2
        return height == 1 or (height % step == 0 and not near_the_border)

    def _rank_texts(self, side: int) -> list[str]:
        ranks = list(self.ranks.values())[side]
        values, counts = np.unique(ranks, return_counts=True)
        tied = counts[np.searchsorted(values, ranks[self.items])] > 1
        places = self._places[:, side].tolist()
        return [f"{place:,}{'=' if equal else ''}" for place, equal in zip(places, tied, strict=True)]

    def _write(self, side: int, height: float, text: str, **options: Any) -> Any:
        offset, align = ((-7, 0), "right") if side == 0 else ((7, 0), "left")
        place = {"xytext": offset, "textcoords": "offset points", "ha": align, "va": "center"}
        return self.ax_.annotate(
            text, (side, height), gid=_GID, annotation_clip=False, parse_math=False, **place, **options
        )

    def _dress(self) -> None:
        first, second = self.ranks
        title = f"Top {self.top}: from {style.short_name(first)} to {style.short_name(second)}"
        self.ax_.set_title(title, pad=26 if self.positive is None else 38, parse_math=False)
        for side, name in enumerate(self.ranks):
            place = {"xytext": (0, 8), "textcoords": "offset points", "ha": "center", "va": "bottom"}
            text = style.short_name(name) + self._positives_on_top(side)
            options = {"fontweight": "bold", "fontsize": 9, "parse_math": False, "gid": _GID}
            self.ax_.annotate(text, (side, 0.4), annotation_clip=False, **place, **options)
        if self.counts["left"]:
            grey = {"color": "0.45", "fontsize": 7, "fontstyle": "italic"}
            for side in (0, 1):
                self._write(side, self.top + 1, f"beyond {self.top}", **grey)
            look = {"color": "0.7", "linewidth": 0.8, "linestyle": (0, (1, 3)), "zorder": 1}
            self.ax_.axhline(self.top + 1, gid=_GID, **look)
        self._legend()

    def _positives_on_top(self, side: int) -> str:
        if self.positive is None:
            return ""
        on_top = self.items[self._places[:, side] <= self.top]
        return f"\n{int(self.positive[on_top].sum())} of {self.top} positive"

    def _legend(self) -> None:
        from matplotlib.lines import Line2D

        crossed = {
            "up": f", {self.counts['entered']} of them into the top {self.top}",
            "down": f", {self.counts['left']} of them out of the top {self.top}",
        }
        texts = {
            move: f"{says}: {self.counts[move]}" + (crossed.get(move, "") if self.counts["left"] else "")
            for move, says in (("up", "moved up"), ("down", "moved down"), ("stays", "unchanged"))
        }
        handles = [Line2D([], [], label=texts[move], markersize=5, **look) for move, look in _LOOKS.items()]
        if self.positive is not None:
            dot: dict[str, Any] = {"color": "0.2", "linestyle": "", "marker": "o", "markersize": 5}
            handles.append(Line2D([], [], label="filled: positive", **dot))
            handles.append(Line2D([], [], label="hollow: negative", markerfacecolor="white", **dot))
        style.legend(self.ax_, handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0), fontsize=8)


def _move(left: int, right: int) -> str:
    return "stays" if left == right else "up" if right < left else "down"
