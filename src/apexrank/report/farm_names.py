"""Names as a chart has room for them; widths are guessed on the safe side, as nobody knows the reader's font."""

from __future__ import annotations

import unicodedata
from typing import Any

FONT = 15.0  # units of a drawing: the larger of the two sizes that the style sheet has, that of phones
_NARROW = frozenset(" !'(),-./:;I[]fijlrt|")
_BROAD = frozenset("%@MW…mw")
_BOLD = 1.1


def width_of(text: str, *, bold: bool = False) -> float:
    """Width of a line in ems, at least what wide fonts take.

    Examples
    --------
    >>> round(width_of("ill"), 2), round(width_of("www"), 2), round(width_of("東京"), 2)
    (1.35, 3.0, 2.0)
    """
    return sum(map(_em, text)) * (_BOLD if bold else 1.0)


def fit_name(name: Any, ems: float, *, bold: bool = False) -> str:
    """A name that is at most so many ems wide; a long one loses its middle, as many differ in their ends only.

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


def _em(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if letter in _BROAD or unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in _NARROW:
        return 0.45
    return 0.8 if letter.isupper() or letter in "#&+<=>~" else 0.65
