"""Charts as SVG text: what is drawn here looks the same on screen, on paper, in light and in dark.

Colours, dashes and fonts are classes that the page's style sheet gives a meaning to (``s0`` … ``s6`` for the
series, ``baseline`` for what one compares with). A part that belongs to one position of the page's slider is drawn
into that *frame*; the page shows one frame at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, inf, isfinite, log10
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError

SERIES = 7  # as many styles as the style sheet has
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 12, 46
_SHAPES = ("circle", "square", "triangle", "diamond", "cross", "down", "plus")


class Svg(str):
    """Text that is markup already: templates take it as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Axis:
    """One direction of a chart.

    Parameters
    ----------
    low, high : float
        Its ends; ``low`` may be the larger one, as for ranks.
    label : str
        What it shows.
    log : bool
        Logarithmic; both ends must be above 0.
    ticks : sequence of (float, str), optional
        Where to write what; round numbers by default.
    percent : bool
        Default ticks are written as shares of a hundred.

    Examples
    --------
    >>> Axis(0, 1, percent=True).marks()
    [(0.0, '0%'), (0.2, '20%'), (0.4, '40%'), (0.6, '60%'), (0.8, '80%'), (1.0, '100%')]
    >>> Axis(1, 1000, log=True).place([1, 10, 1000]).round(2).tolist()
    [0.0, 0.33, 1.0]
    """

    low: float
    high: float
    label: str = ""
    log: bool = False
    ticks: Sequence[tuple[float, str]] | None = None
    percent: bool = False

    def __post_init__(self) -> None:
        if not (isfinite(self.low) and isfinite(self.high)) or self.low == self.high:
            raise InputError(f"an axis needs two different finite ends, got {self.low} and {self.high}")
        if self.log and min(self.low, self.high) <= 0:
            raise InputError(f"a logarithmic axis needs ends above 0, got {self.low} and {self.high}")

    def place(self, values: ArrayLike) -> np.ndarray:
        """Position of the values, 0 at ``low`` and 1 at ``high``."""
        numbers = np.asarray(values, dtype=float)
        if not self.log:
            return (numbers - self.low) / (self.high - self.low)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(numbers / self.low) / np.log(self.high / self.low)

    def marks(self) -> list[tuple[float, str]]:
        """Ticks with their texts."""
        if self.ticks is not None:
            return [(float(value), str(text)) for value, text in self.ticks]
        low, high = sorted((self.low, self.high))
        values = _decades(low, high) if self.log else _round_numbers(low, high)
        return [(value, f"{100 * value:.4g}%" if self.percent else f"{value:,.6g}") for value in values]


def _round_numbers(low: float, high: float, about: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, about so many."""
    rough = (high - low) / about
    power = 10.0 ** floor(log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= 0.999 * rough)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [float(f"{number * step:.10g}") for number in range(first, last + 1)]


def _decades(low: float, high: float) -> list[float]:
    first, last = ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9)
    step = 1 + max(0, last - first) // 6
    powers = [10.0**power for power in range(first, last + 1, step)]
    return powers if len(powers) > 1 else _round_numbers(low, high)


class Chart:
    """A chart that is filled piece by piece and rendered once.

    Parameters
    ----------
    x, y : Axis
    title, description : str
        For those who cannot see it; the description says what there is to see.
    width, height : int
        In units of the drawing; the page scales it to the room there is.
    margins : tuple (left, right, top, bottom), optional
        Room around the data, for long labels.

    Examples
    --------
    >>> chart = Chart(Axis(0, 1, "p"), Axis(0, 1, "share"), title="A line", description="It rises.")
    >>> chart.line([0, 1], [0, 1])
    >>> chart.render().count("<polyline")
    1
    """

    def __init__(
        self,
        x: Axis,
        y: Axis,
        *,
        title: str,
        description: str = "",
        width: int = 440,
        height: int = 320,
        margins: tuple[float, float, float, float] = (_LEFT, _RIGHT, _TOP, _BOTTOM),
    ) -> None:
        self.x, self.y = x, y
        self.title, self.description = title, description
        self.width, self.height, self.margins = width, height, margins
        self._parts: list[tuple[int | None, str]] = []

    def line(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        series: int = 0,
        frame: int | None = None,
        label: str | None = None,
        classes: str = "",
    ) -> None:
        """Draw a line through the points; gaps are where a coordinate is not finite. ``label`` is a tooltip."""
        for part in _runs(*self._pixels(x, y)):
            self._add(
                frame,
                "polyline",
                {"class": _classes("line", series, classes), "points": _points(part)},
                title=label,
            )

    def band(
        self,
        x: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        *,
        series: int = 0,
        frame: int | None = None,
        classes: str = "",
    ) -> None:
        """Fill the room between two lines, where both have values."""
        left, below = self._pixels(x, low)
        _, above = self._pixels(x, high)
        known = np.isfinite(below) & np.isfinite(above)
        for piece in np.split(np.arange(len(left)), np.flatnonzero(~known)):
            own = piece[known[piece]]
            corners = np.column_stack(
                [np.r_[left[own], left[own][::-1]], np.r_[below[own], above[own][::-1]]]
            )
            if len(own):
                attributes = {"class": _classes("band", series, classes), "points": _points(corners)}
                self._add(frame, "polygon", attributes)

    def points(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        series: int = 0,
        frame: int | None = None,
        titles: Iterable[str] | None = None,
        size: float = 4,
        shape: str | None = None,
        classes: str = "",
    ) -> None:
        """Draw a mark at each point, of the series' own shape; ``titles`` are tooltips."""
        left, top = self._pixels(x, y)
        names = [None] * len(left) if titles is None else list(titles)
        style = _classes("mark", series, classes)
        for a, b, name in zip(left.tolist(), top.tolist(), names, strict=True):
            if isfinite(a) and isfinite(b):
                path = _shape(shape or _SHAPES[series % SERIES], a, b, size)
                self._add(frame, "path", {"class": style, "d": path}, title=name)

    def bar(
        self,
        x0: float,
        y0: float,
        x1: float,
        y1: float,
        *,
        series: int = 0,
        frame: int | None = None,
        title: str | None = None,
        classes: str = "",
    ) -> None:
        """Draw a rectangle between two corners."""
        (a, c), (b, d) = (values.tolist() for values in self._pixels([x0, x1], [y0, y1]))
        box = {
            "x": _short(min(a, c)),
            "y": _short(min(b, d)),
            "width": _short(abs(c - a)),
            "height": _short(abs(d - b)),
        }
        self._add(frame, "rect", {"class": _classes("bar", series, classes), **box}, title=title)

    def rule(
        self, x0: float, y0: float, x1: float, y1: float, *, frame: int | None = None, classes: str = ""
    ) -> None:
        """Draw a thin line to compare with."""
        self._add(
            frame,
            "polyline",
            {
                "class": f"rule {classes}".strip(),
                "points": _points(np.column_stack(self._pixels([x0, x1], [y0, y1]))),
            },
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: str = "start",
        frame: int | None = None,
        classes: str = "",
        dx: float = 0,
        dy: float = 0,
    ) -> None:
        """Write at a point, moved by ``dx`` and ``dy`` units of the drawing."""
        left, top = self._pixels([x], [y])
        place = {"x": _short(left[0] + dx), "y": _short(top[0] + dy), "text-anchor": anchor}
        self._add(frame, "text", {"class": f"label {classes}".strip(), **place}, text=text)

    def render(self, start: int = 0, *, spark: bool = False) -> Svg:
        """The drawing as text, with the parts of the frame ``start`` shown.

        ``spark`` is for a small one beside the numbers that it shows, which has nothing to say on its own.
        """
        body = self._axes() + "".join(_in_frame(part, frame, start) for frame, part in self._parts)
        if spark:
            return Svg(
                f'<svg class="spark" aria-hidden="true" viewBox="0 0 {self.width} {self.height}">{body}</svg>'
            )
        head = f"<title>{escape(self.title)}</title><desc>{escape(self.description)}</desc>"
        return Svg(
            f'<svg class="chart" role="img" viewBox="0 0 {self.width} {self.height}" '
            f'aria-label="{escape(f"{self.title}. {self.description}".strip())}">{head}{body}</svg>'
        )

    def _pixels(self, x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        left, right, top, bottom = self.margins
        wide, high = self.width - left - right, self.height - top - bottom
        return left + wide * self.x.place(x), top + high * (1 - self.y.place(y))

    def _add(
        self,
        frame: int | None,
        name: str,
        attributes: dict[str, Any],
        *,
        text: str | None = None,
        title: str | None = None,
    ) -> None:
        inner = escape(str(text)) if text is not None else ""
        inner += f"<title>{escape(str(title))}</title>" if title is not None else ""
        written = " ".join(f'{key}="{escape(str(value))}"' for key, value in attributes.items())
        self._parts.append((frame, f"<{name} {written}>{inner}</{name}>"))

    def _axes(self) -> str:
        left, right, top, bottom = self.margins
        end, foot = self.width - right, self.height - bottom
        parts = []
        for value, text in self.x.marks():
            at = _short(self._pixels([value], [self.y.low])[0][0])
            parts.append(f'<path class="grid" d="M{at} {top}V{foot}"/>')
            parts.append(
                f'<text class="tick" x="{at}" y="{foot + 17}" text-anchor="middle">{escape(text)}</text>'
            )
        for value, text in self.y.marks():
            height = float(self._pixels([self.x.low], [value])[1][0])
            parts.append(f'<path class="grid" d="M{left} {_short(height)}H{end}"/>')
            parts.append(
                f'<text class="tick" x="{left - 7}" y="{_short(height + 4)}" text-anchor="end">{escape(text)}</text>'
            )
        if self.x.label:
            parts.append(
                f'<text class="name" x="{_short((left + end) / 2)}" y="{self.height - 8}" '
                f'text-anchor="middle">{escape(self.x.label)}</text>'
            )
        if self.y.label:
            middle = _short((top + foot) / 2)
            parts.append(
                f'<text class="name" transform="translate(14 {middle}) rotate(-90)" '
                f'text-anchor="middle">{escape(self.y.label)}</text>'
            )
        return "".join(parts)


def thin(x: ArrayLike, y: ArrayLike, most: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """At most so many points of a rising curve, evenly spaced along it; the ends stay.

    Examples
    --------
    >>> x, y = thin(np.linspace(0, 1, 1001), np.linspace(0, 1, 1001), most=3)
    >>> x.tolist(), y.tolist()
    ([0.0, 0.5, 1.0], [0.0, 0.5, 1.0])
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(x) <= most:
        return x, y
    along = np.r_[0.0, np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))]
    kept = np.unique(np.searchsorted(along, np.linspace(0, along[-1], most)).clip(0, len(x) - 1))
    return x[kept], y[kept]


def padded(
    values: ArrayLike, share: float = 0.06, low: float = -inf, high: float = inf
) -> tuple[float, float]:
    """Ends of an axis that has room for the finite values, and a little more up to ``low`` and ``high``.

    Examples
    --------
    >>> padded([0.0, 1.0], share=0.1, high=1.0)
    (-0.1, 1.0)
    """
    numbers = np.asarray(values, dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return 0.0, 1.0
    least, most = float(numbers.min()), float(numbers.max())
    room = share * (most - least) or 0.5 * abs(most) or 1.0
    return max(low, least - room), min(high, most + room)


def _in_frame(part: str, frame: int | None, start: int) -> str:
    if frame is None:
        return part
    return f'<g class="frame{" on" if frame == start else ""}" data-frame="{frame}">{part}</g>'


def _classes(kind: str, series: int, more: str) -> str:
    return f"{kind} s{series % SERIES} {more}".strip()


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _points(pixels: np.ndarray) -> str:
    return " ".join(f"{_short(a)},{_short(b)}" for a, b in pixels.tolist())


def _runs(left: np.ndarray, top: np.ndarray) -> list[np.ndarray]:
    """Pieces of a line between its gaps."""
    pixels = np.column_stack([left, top])
    finite = np.isfinite(pixels).all(axis=1)
    pieces = np.split(np.arange(len(pixels)), np.flatnonzero(~finite))
    kept = [piece[finite[piece]] for piece in pieces]
    return [pixels[piece] for piece in kept if len(piece)]


def _shape(shape: str, a: float, b: float, r: float) -> str:
    """Path of a mark of about the same area whatever its shape."""
    x, y = _short(a), _short(b)
    match shape:
        case "circle":
            return f"M{_short(a - r)} {y}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z"
        case "square":
            s = 0.9 * r
            return f"M{_short(a - s)} {_short(b - s)}h{_short(2 * s)}v{_short(2 * s)}h{_short(-2 * s)}z"
        case "triangle" | "down":
            s = 1.2 * r if shape == "triangle" else -1.2 * r
            return f"M{x} {_short(b - s)}L{_short(a + 1.1 * r)} {_short(b + 0.7 * s)}H{_short(a - 1.1 * r)}z"
        case "diamond":
            s = 1.25 * r
            return f"M{x} {_short(b - s)}L{_short(a + s)} {y}L{x} {_short(b + s)}L{_short(a - s)} {y}z"
        case "cross":
            s = 0.9 * r
            return (
                f"M{_short(a - s)} {_short(b - s)}l{_short(2 * s)} {_short(2 * s)}"
                f"m{_short(-2 * s)} 0l{_short(2 * s)} {_short(-2 * s)}"
            )
        case "plus":
            return f"M{_short(a - r)} {y}h{_short(2 * r)}M{x} {_short(b - r)}v{_short(2 * r)}"
    raise InputError(f"unknown shape {shape!r}: use one of {', '.join(_SHAPES)}")
