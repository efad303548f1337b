"""Shared parts of all plots: colours, line styles, axes, labels, and thinning of curves to visible detail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError, MissingExtraError
from apexrank.metrics.evaluation import ranking_scores as estimator_scores

# Okabe and Ito's colours, distinguishable by colour-blind readers (without yellow, which is too light for a line);
# seven colours and eight line styles do not repeat a combination for 56 curves.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
STYLES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (6, 1.5, 1, 1.5, 1, 1.5)),
    (0, (8, 2)),
    (0, (2, 1)),
    (0, (4, 1, 1, 1)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINE, CHANCE = "apexrank-line", "apexrank-chance"  # kinds of lines, matplotlib's gid
CHANCE_LOOK = {"gid": CHANCE, "color": "0.55", "linewidth": 0.9, "zorder": 1.5}
_MOST_POINTS, _CELLS, _CELLS_PER_DOUBLING, _GRID = 4000, 1000, 50, 512


def pyplot() -> Any:
    """Import matplotlib's pyplot, or raise an error with the install command."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError('plots need matplotlib: pip install "apexrank[plot]"') from error
    return plt


def curve_style(number: int) -> dict[str, Any]:
    """Colour and line style of a curve with many points: each alone distinguishes it from its neighbours."""
    colour, line = COLOURS[number % len(COLOURS)], STYLES[number % len(STYLES)]
    return {"color": colour, "linestyle": line, "linewidth": 1.8}


def line_style(number: int) -> dict[str, Any]:
    """Colour, line style and marker of a line: each alone distinguishes it from its neighbours."""
    return curve_style(number) | {"marker": MARKERS[number % len(MARKERS)], "markersize": 5}


def one_axes(ax: Any, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return the given axes with their figure, or those of a new figure of this size in inches."""
    plt = pyplot()
    return plt.subplots(figsize=size, layout="constrained") if ax is None else (ax.figure, ax)


def light(ax: Any) -> None:
    """Draw a thin grid and no frame."""
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def panels(axes: Sequence[Any] | None, n: int, width: float, height: float) -> list[Any]:
    """Return the n given axes, or n new panels of this size in inches, up to three in a row."""
    plt = pyplot()
    if axes is None:
        columns = min(n, 3)
        rows = -(-n // columns)
        size = (width * columns + 0.4, height * rows)
        axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)[1].ravel()
        for spare in axes[n:]:
            spare.remove()
        return list(axes[:n])
    given = list(np.ravel(np.asarray(axes, dtype=object)))
    if len(given) != n:
        raise InputError(
            f"`axes` must be {n} matplotlib axes, one for each panel, got {len(given)}: pass "
            f"plt.subplots(1, {n})[1] or display.axes_"
        )
    return given


def erase(ax: Any, kind: str) -> None:
    """Remove everything that a display has drawn into the axes, by its kind (matplotlib's gid)."""
    for artist in [artist for artist in ax.get_children() if artist.get_gid() == kind]:
        artist.remove()


def legend(ax: Any, **options: Any) -> None:
    """Draw a legend without a frame, with lines long enough to distinguish line styles."""
    ax.legend(**({"frameon": False, "handlelength": 3.2} | options))


def lines_of(ax: Any, *kinds: str) -> list[Any]:
    """Lines drawn by displays, by their kind (matplotlib's gid); the user's own lines have none."""
    return [line for line in ax.lines if line.get_gid() in kinds]


def draw_line(ax: Any, x: Any, y: Any, ends: Any = None, **options: Any) -> tuple[Any, Any]:
    """Draw the next line of a display in its own style, with a band between two ``ends`` if given."""
    style = line_style(len(lines_of(ax, LINE))) | options
    (line,) = ax.plot(x, y, gid=LINE, **style)
    look = {"color": line.get_color(), "alpha": 0.18, "linewidth": 0}
    return line, None if ends is None else ax.fill_between(x, *ends, **look)


def shorten(text: str, most: int = 48) -> str:
    """Shorten a name by cutting out its middle, because many names differ only at their ends.

    Examples
    --------
    >>> shorten("amount of the first payment", 12), shorten("amount", 12)
    ('amount…yment', 'amount')
    """
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def short_name(name: str, most: int = 30) -> str:
    """Shorten a name to one line of at most ``most`` letters.

    Examples
    --------
    >>> short_name("a name that goes on and on, number 1")
    'a name that goe…d on, number 1'
    """
    return shorten(" ".join(name.split()), most)


def item_label(name: Any) -> str:
    """Label of an item: its name, or its number.

    Examples
    --------
    >>> item_label("tea"), item_label(3)
    ('tea', 'item 3')
    """
    return f"item {name}" if isinstance(name, int | np.integer) else str(name)


def number_column(what: str, values: ArrayLike, n: int | None = None) -> np.ndarray:
    """Convert one number per item (``n`` items if given) to an array; raise InputError naming ``what`` if invalid."""
    try:
        column = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        column = np.empty(0)
    if column.ndim != 1 or not len(column) or np.isnan(column).any() or n not in (None, len(column)):
        items = "item" if n is None else f"of the {n} items"
        raise InputError(f"{what} needs one number for each {items}, none of them missing")
    return column


class RankerDisplay:
    """Base class of displays that compare rankers; subclasses define ``from_scores(scores, y_true, **options)``."""

    from_scores: Callable[..., Self]
    _unnamed = "ranker"  # default name

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, scores: ArrayLike, *, name: str | None = None, **options: Any
    ) -> Self:
        """Draw one ranker from its scores; ``options`` are those of `from_scores`."""
        return cls.from_scores({cls._unnamed if name is None else name: scores}, y_true, **options)

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
    ) -> Self:
        """Draw a fitted ranker or classifier; ``options`` are those of `from_scores`."""
        name = type(estimator).__name__ if name is None else name
        options |= {} if pos_label is None else {"pos_label": pos_label}
        return cls.from_predictions(y, estimator_scores(estimator, X, pos_label), name=name, **options)


Curves = Mapping[str, tuple[ArrayLike, ArrayLike]]


class Curve(NamedTuple):
    """ROC curve of one ranker, in counts."""

    false_positives: np.ndarray
    true_positives: np.ndarray


def corners(curve: Curve) -> Curve:
    """Remove the points inside straight segments, so that a curve of a million rows is fast to draw.

    Examples
    --------
    >>> corners(Curve(np.array([0, 0, 0, 1, 2]), np.array([0, 1, 1, 1, 1]))).true_positives.tolist()
    [0, 1, 1]
    """
    steps = np.diff(curve)
    # A level of weight 0 repeats its point, which would hide the corner there.
    moved = np.concatenate([[True], (steps != 0).any(axis=0)])
    x, y = np.asarray(curve)[:, moved]
    dx, dy = np.diff(x), np.diff(y)
    keep = np.ones(len(x), dtype=bool)
    keep[1:-1] = dx[1:] * dy[:-1] != dx[:-1] * dy[1:]
    return Curve(x[keep], y[keep])


def drawn_counts(rows: np.ndarray, hits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points at which to draw a cumulative count so that it looks right on linear and logarithmic axes.

    A segment that is straight on a linear axis bends on a logarithmic axis and in a quotient, so a grid is added; if
    there are more corners than can be seen, only the first in each small cell of both axes is kept.

    Examples
    --------
    >>> import numpy as np
    >>> rows, hits = drawn_counts(np.arange(1e6), np.arange(1e6) // 3)
    >>> len(rows) < 6000, float(np.abs(hits - rows // 3).max()) <= 1
    (True, True)
    """
    x, y = corners(Curve(rows, hits))
    if len(x) > _MOST_POINTS:
        cells = np.concatenate([_cells(x), _cells(y)])
        keep = np.concatenate([[True], (np.diff(cells) != 0).any(axis=0)])
        keep[-1] = True
        x, y = x[keep], y[keep]
    total = rows[-1]
    grid = np.geomspace(min(1.0, total / 1000), total, _GRID), np.arange(1.0, min(total, _CELLS))
    points = np.union1d(x, np.concatenate(grid))
    points = points[points <= total]
    return points, np.interp(points, rows, hits)


def _cells(values: np.ndarray) -> np.ndarray:
    """Cell index of each value on a linear and on a logarithmic axis."""
    highest = values[-1] if values[-1] > 0 else 1.0
    doublings = np.log2(np.maximum(values, highest / 2**30))
    return np.floor([_CELLS * values / highest, _CELLS_PER_DOUBLING * doublings])
