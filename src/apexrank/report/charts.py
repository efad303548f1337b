"""Charts as SVG text, with the same look on screen and on paper, in light and in dark mode.

Colours, dashes and fonts are CSS classes that the style sheet of the page defines (``s0`` … ``s6`` for the series,
``baseline`` for a reference). An element that belongs to one position of the page's slider is drawn into that *frame*;
the page shows one frame at a time. Text widths are upper estimates, because the reader's font is unknown.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import ceil, floor, isfinite, log10
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.report.page import few_digits, fill, number
from apexrank.validation import check_choice

SERIES = 7  # number of styles in the style sheet
FONT = 15.0  # in drawing units: the larger of the two sizes in the style sheet, for phones
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 12, 46
_NAME_WIDTH, _GAP = 24.0, 10.0  # beside a vertical axis: width of its label, and space between texts
_NARROW, _BROAD = frozenset(" !'(),-./:;I[]fijlrt|"), frozenset("%@MW…mw")
_BOLD = 1.1
# corners of the marks around (0, 0), of about equal area; a second list is a second stroke
_SHAPES: dict[str, list[list[tuple[float, float]]]] = {
    "circle": [],
    "square": [[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]],
    "triangle": [[(0, -1.2), (1.1, 0.84), (-1.1, 0.84)]],
    "diamond": [[(0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)]],
    "cross": [[(-0.9, -0.9), (0.9, 0.9)], [(0.9, -0.9), (-0.9, 0.9)]],
    "down": [[(0, 1.2), (1.1, -0.84), (-1.1, -0.84)]],
    "plus": [[(-1, 0), (1, 0)], [(0, -1), (0, 1)]],
}


class Style(TypedDict, total=False):
    """Options of drawn elements: series, frame, extra CSS classes and a tooltip; options of marks and of texts."""

    series: int
    frame: int | None
    classes: str
    title: str | None
    size: float
    shape: str | None
    anchor: str
    dx: float
    dy: float


@dataclass(frozen=True)
class Axis:
    """An axis of a chart.

    Parameters
    ----------
    low, high : float
        Its ends; ``low`` may be the larger one, as for ranks.
    label : str
        Label of the axis.
    log : bool
        Whether it is logarithmic; both ends must be positive.
    ticks : sequence of (float, str), optional
        Positions and texts of ticks; round numbers by default.
    percent : bool
        Whether default ticks are written as percentages.
    thin : bool
        Whether to omit the texts of some ticks if they would overlap; False for names that must all be shown.

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
    thin: bool = True

    def __post_init__(self) -> None:
        if not (isfinite(self.low) and isfinite(self.high)) or self.low == self.high:
            raise InputError(f"an axis needs two different finite ends, got {self.low} and {self.high}")
        if self.log and min(self.low, self.high) <= 0:
            raise InputError(f"a logarithmic axis needs ends above 0, got {self.low} and {self.high}")

    def place(self, values: ArrayLike) -> np.ndarray:
        """Relative position of the values, 0 at ``low`` and 1 at ``high``."""
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
        return [(value, f"{100 * value:.4g}%" if self.percent else number(value, 6)) for value in values]

    def shown(self, length: float, *, horizontal: bool = True) -> list[tuple[float, str]]:
        """Ticks of an axis of this length; every n-th keeps its text so that texts do not overlap.

        Examples
        --------
        >>> Axis(1, 4, ticks=[(p, f"{1000 * p}") for p in (1, 2, 3, 4)]).shown(100)
        [(1.0, '1000'), (2.0, ''), (3.0, '3000'), (4.0, '')]
        """
        marks = self.marks()
        at = length * self.place([value for value, _ in marks])
        wide = [FONT * width_of(text) if horizontal else FONT - _GAP / 2 for _, text in marks]
        room = np.array(wide) + _GAP
        step = 1
        while self.thin and _overlap(at[::step], room[::step]):
            step += 1
        return [(value, text if i % step == 0 else "") for i, (value, text) in enumerate(marks)]


def _overlap(at: np.ndarray, room: np.ndarray) -> bool:
    return bool((np.abs(np.diff(at)) < (room[1:] + room[:-1]) / 2).any())


def _round_numbers(low: float, high: float, about: int = 5) -> list[float]:
    """About ``about`` multiples of 1, 2 or 5 times a power of ten."""
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


@dataclass(eq=False)
class Chart:
    """Chart that is built element by element and rendered once.

    Parameters
    ----------
    x, y : Axis
    width, height : int
        In drawing units; the page scales it to the available space.
    margins : tuple (left, right, top, bottom), optional
        Space around the data; by default enough on the left for the ticks and the label of y.

    Examples
    --------
    >>> chart = Chart(Axis(0, 1, "p"), Axis(0, 1, "share"))
    >>> chart.line([0, 1], [0, 1])
    >>> chart.render(title="A line", description="It rises.").count("<polyline")
    1
    """

    x: Axis
    y: Axis
    _: KW_ONLY
    width: int = 440
    height: int = 320
    margins: tuple[float, ...] = ()
    parts: list[dict[str, Any]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if not self.margins:
            ticks = FONT * max((width_of(text) for _, text in self.y.marks()), default=0.0)
            left = max(_LEFT, ticks + _GAP + (_NAME_WIDTH if self.y.label else 0))
            self.margins = (left, _RIGHT, _TOP, _BOTTOM)

    def line(self, x: ArrayLike, y: ArrayLike, **style: Unpack[Style]) -> None:
        """Draw a line through the points; non-finite coordinates are gaps."""
        pixels = np.column_stack(self._pixels(x, y))
        for run in _runs(np.isfinite(pixels).all(axis=1)):
            self._add("polyline", "line", {"points": _points(pixels[run])}, style)

    def band(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, **style: Unpack[Style]) -> None:
        """Fill the area between two lines, where both have values."""
        below, above = (np.column_stack(self._pixels(x, end)) for end in (low, high))
        for run in _runs(np.isfinite(below[:, 1]) & np.isfinite(above[:, 1])):
            corners = np.concatenate([below[run], above[run][::-1]])
            self._add("polygon", "band", {"points": _points(corners)}, style)

    def points(
        self, x: ArrayLike, y: ArrayLike, titles: Iterable[str] | None = None, **style: Unpack[Style]
    ) -> None:
        """Draw a mark of the given ``size`` at each point, in the series' ``shape``; ``titles`` are tooltips."""
        left, top = self._pixels(x, y)
        names = [None] * len(left) if titles is None else list(titles)
        shape = style.get("shape") or list(_SHAPES)[style.get("series", 0) % SERIES]
        for a, b, name in zip(left.tolist(), top.tolist(), names, strict=True):
            if isfinite(a) and isfinite(b):
                style["title"] = name
                self._add("path", "mark", {"d": _mark(shape, a, b, style.get("size", 4))}, style)

    def bar(
        self, x0: float, y0: float, x1: float, y1: float, *, opacity: float = 1.0, **style: Unpack[Style]
    ) -> None:
        """Draw a rectangle between two corners."""
        (a, c), (b, d) = (np.sort(ends).tolist() for ends in self._pixels([x0, x1], [y0, y1]))
        box = {"x": a, "y": b, "width": c - a, "height": d - b}
        shown = {name: few_digits(value) for name, value in box.items()}
        self._add("rect", "bar", shown | ({} if opacity == 1 else {"fill-opacity": f"{opacity:.2f}"}), style)

    def rule(self, x0: float, y0: float, x1: float, y1: float) -> None:
        """Draw a thin reference line."""
        ends = np.column_stack(self._pixels([x0, x1], [y0, y1]))
        self._add("polyline", "rule", {"points": _points(ends)}, {})

    def text(self, x: float, y: float, text: str, **style: Unpack[Style]) -> None:
        """Write text at a point, offset by ``dx`` and ``dy`` drawing units; ``anchor`` as in SVG."""
        left, top = self._pixels([x], [y])
        place = {"x": few_digits(left[0] + style.get("dx", 0)), "y": few_digits(top[0] + style.get("dy", 0))}
        place["text-anchor"] = style.get("anchor", "start")
        self._add("text", "label", place, style, text)

    def render(self, start: int = 0, title: str = "", description: str = "") -> str:
        """Render the chart as SVG, with the elements of frame ``start`` visible.

        ``title`` and ``description`` are for screen readers. Without a title the chart is decorative, next to the
        numbers it shows, and is not read aloud.
        """
        left, right, top, bottom = self.margins
        end, foot = self.width - right, self.height - bottom
        shown = {"left": left, "end": end, "top": top, "foot": foot, "start": start}
        told = {"title": title, "description": description}
        across, down = self.x.shown(end - left), self.y.shown(foot - top, horizontal=False)
        columns = [(left + (end - left) * self.x.place(value), text) for value, text in across]
        rows = [(top + (foot - top) * (1 - self.y.place(value)), text) for value, text in down]
        return fill("chart.svg", chart=self, columns=columns, rows=rows, **shown, **told)

    def _pixels(self, x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        left, right, top, bottom = self.margins
        wide, high = self.width - left - right, self.height - top - bottom
        return left + wide * self.x.place(x), top + high * (1 - self.y.place(y))

    def _add(self, tag: str, kind: str, attributes: dict[str, Any], style: Style, text: str = "") -> None:
        series = "" if kind in ("label", "rule") else f"s{style.get('series', 0) % SERIES}"
        classes = " ".join(filter(None, [kind, series, style.get("classes")]))
        part = {"tag": tag, "attributes": {"class": classes, **attributes}, "text": text}
        self.parts.append({**part, "frame": style.get("frame"), "title": style.get("title")})


def padded(values: ArrayLike) -> tuple[float, float]:
    """Axis limits that enclose the finite values with some padding.

    Examples
    --------
    >>> padded([0.0, 1.0])
    (-0.06, 1.06)
    """
    numbers = np.asarray(values, dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return 0.0, 1.0
    least, most = float(numbers.min()), float(numbers.max())
    room = 0.06 * (most - least) or 0.5 * abs(most) or 1.0
    return least - room, most + room


def width_of(text: str, *, bold: bool = False) -> float:
    """Upper estimate of the width of a line of text, in ems.

    Examples
    --------
    >>> round(width_of("ill"), 2), round(width_of("www"), 2), round(width_of("東京"), 2)
    (1.35, 3.0, 2.0)
    """
    return sum(map(_em, text)) * (_BOLD if bold else 1.0)


def _em(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if letter in _BROAD or unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in _NARROW:
        return 0.45
    return 0.8 if letter.isupper() or letter in "#&+<=>~" else 0.65


def fit_name(name: Any, ems: float, *, bold: bool = False) -> str:
    """Shorten a name to at most ``ems`` ems by cutting out its middle, because many names differ only at their ends.

    Examples
    --------
    >>> fit_name("http://example.org/a/long/way", 7), fit_name(7, 8)
    ('http://…way', '7')
    """
    text = " ".join(str(name).split())
    if width_of(text, bold=bold) <= ems:
        return text
    for kept in range(len(text) - 1, 0, -1):
        tail = kept // 3
        short = f"{text[: kept - tail]}…{text[len(text) - tail :]}"
        if width_of(short, bold=bold) <= ems:
            return short
    return "…"


def _points(pixels: np.ndarray) -> str:
    return " ".join(f"{few_digits(a)},{few_digits(b)}" for a, b in pixels.tolist())


def _runs(known: np.ndarray) -> list[np.ndarray]:
    """Indices of the points of each run without gaps."""
    pieces = np.split(np.arange(len(known)), np.flatnonzero(~known))
    return [piece for piece in (piece[known[piece]] for piece in pieces) if len(piece)]


def _mark(shape: str, a: float, b: float, r: float) -> str:
    """SVG path of a mark."""
    check_choice("shape", shape, _SHAPES)
    if shape == "circle":
        return f"M{few_digits(a - r)} {few_digits(b)}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z"
    corners = [[(a + r * x, b + r * y) for x, y in stroke] for stroke in _SHAPES[shape]]
    strokes = [[f"{few_digits(x)} {few_digits(y)}" for x, y in stroke] for stroke in corners]
    return "".join(f"M{'L'.join(stroke)}{'z' if len(stroke) > 2 else ''}" for stroke in strokes)
