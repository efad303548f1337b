"""Escape plain text in docstrings, such as the norm ``|w|`` or ``coef_``, that reStructuredText reads as markup.

Outside code, the bars and the underscores at the ends of names are escaped before reStructuredText sees them; and a
summary does not end at "sec.".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CODE = re.compile(r"(``.*?``|:[\w:]+:`[^`]*`|`[^`]*`_{0,2})")
BAR = re.compile(r"(?<!\\)\|")
NAME = re.compile(r"(?<![\w\\.])([A-Za-z]\w*)_(?!\w)")


def escaped(text: str) -> str:
    """Escape bars and trailing underscores of a line outside code and roles."""
    parts = CODE.split(text)
    parts[::2] = [NAME.sub(r"\1\\_", BAR.sub(r"\\|", part)) for part in parts[::2]]
    return "".join(parts)


def escaped_lines(lines: list[str]) -> Iterator[str]:
    """Escape the lines of a docstring, except examples and directives."""
    example = False
    for line in lines:
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        yield line if example or line.lstrip().startswith("..") else escaped(line)


def prepare(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Escape a docstring in place, after numpydoc has formatted it."""
    lines[:] = list(escaped_lines(lines))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to docstrings, and list abbreviations that do not end a sentence in summary tables."""
    from sphinx.ext import autosummary

    autosummary.WELL_KNOWN_ABBREVIATIONS += ("sec.", "eq.", "ch.")
    app.connect("autodoc-process-docstring", prepare, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
