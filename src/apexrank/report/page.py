"""Shared parts of report pages: templates, formatting of numbers and names, and timing of stages.

A page is a self-contained file: style and script are embedded, and it loads no external resources.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from apexrank import __version__
from apexrank.errors import MissingExtraError
from apexrank.plot.style import shorten as shorten

TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, result: Any, title: str, **context: Any) -> str:
    """Render the page template for a result.

    All inserted values are escaped. The content security policy of the page forbids all requests and all scripts except
    its own, whatever the data contain.

    Parameters
    ----------
    template : str
        Name of a file in ``templates/``.
    result : Comparison, RankComparison or VoteSummary
        Subject of the page; every page shows its ``notes`` and ``seconds``.
    title : str
        Title of the page.
    **context
        Further variables of the template.
    """
    script = _read("report.js")
    page = fill(
        template,
        style=_read("report.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        version=__version__,
        generated=datetime.now().astimezone(),
        result=result,
        title=title,
        **context,
    )
    return str(page)


def fill(template: str, **context: Any) -> str:
    """Render a template; the result is markup, which other templates insert without escaping."""
    environment = _environment()
    from markupsafe import Markup

    return Markup(environment.get_template(template).render(**context))


@cache
def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def check_extra() -> None:
    """Raise MissingExtraError early if Jinja2 is missing."""
    _environment()


@cache
def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtraError('reports need Jinja2: pip install "apexrank[report]"') from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for text_of in (number, percent, whole_percent, few_digits, shorten, counted, code):
        environment.filters[text_of.__name__] = text_of
    return environment


def code(message: str) -> str:
    """Escape a message of the library and mark up its parameters, which are in backticks, as code.

    Examples
    --------
    >>> print(code("raise `tol`, if a < b"))
    raise <code>tol</code>, if a &lt; b
    """
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`(\w+(?:=[^`]*)?)`", r"<code>\1</code>", str(escape(message))))


_FORMS = re.compile(r"\[([^|]*)\|([^]]*)\]")
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 3) -> str:
    """Format a number: integers with separators, others with ``digits`` digits, huge ones as powers of ten.

    Examples
    --------
    >>> number(1234567), number(0.123456), number(float("nan")), number(4.1e12)
    ('1,234,567', '0.123', '–', '4.1 × 10¹²')
    >>> number(1599.9999), number(1e-7)
    ('1,600', '10⁻⁷')
    """
    if value != value:
        return "–"
    sign, size = "−" if value < 0 else "", abs(value)
    if size == inf:
        return f"{sign}∞"
    text = f"{size:,.{digits}g}"
    if size < 1e9 and (float(size).is_integer() or "e+" in text):
        text = f"{round(size):,}"
    shown, _, power = text.partition("e")
    if not power:
        return f"{sign}{shown}"
    return f"{sign}{'' if shown == '1' else f'{shown} × '}10{str(int(power)).translate(_SUPERSCRIPTS)}"


def percent(value: float, digits: int = 3) -> str:
    """Format a share as a percentage.

    Examples
    --------
    >>> percent(0.1234), percent(1.0, digits=2)
    ('12.3 %', '100 %')
    """
    if value != value:
        return "–"
    shown = f"{100 * value:.{digits}g}"
    return f"{100 * value:.0f} %" if "e+" in shown else f"{shown} %"


def whole_percent(share: float) -> str:
    """Format a share as a whole percentage.

    Examples
    --------
    >>> whole_percent(0.617), whole_percent(0.001)
    ('62 %', '< 1 %')
    """
    return "< 1 %" if share < 0.005 else f"{100 * share:.0f} %"


def level(confidence: float) -> str:
    """Format a confidence level with as many digits as it has.

    Examples
    --------
    >>> level(0.95), level(0.9999)
    ('95 %', '99.99 %')
    """
    return f"{100 * confidence:.6g} %"


def few_digits(value: float) -> str:
    """Format a number with at most one decimal.

    Examples
    --------
    >>> few_digits(26.0), few_digits(6.4999)
    ('26', '6.5')
    """
    return f"{value:.1f}".removesuffix(".0")


def counted(number: float, one: str, many: str | None = None) -> str:
    """Format a number with its noun.

    Examples
    --------
    >>> counted(1, "vertex", "vertices"), counted(1234, "vertex", "vertices"), counted(0, "ballot")
    ('1 vertex', '1,234 vertices', '0 ballots')
    """
    return f"{number:,.15g} {one if number == 1 else many or f'{one}s'}"


def plural(text: str, n: float) -> str:
    """Format a sentence about a count: ``#`` becomes the number, and ``[one|many]`` the form that agrees with it.

    Examples
    --------
    >>> plural("# [vertex links|vertices link] to nobody", 1), plural("# [row is|rows are] held out", 1200)
    ('1 vertex links to nobody', '1,200 rows are held out')
    """
    return _FORMS.sub(r"\1" if n == 1 else r"\2", text).replace("#", f"{n:,.15g}")


def listed(names: Sequence[str], most: int = 4) -> str:
    """Join names for a sentence; beyond ``most`` names the rest are only counted.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"]), listed(list("abcdef"))
    ('a', 'a, b and c', 'a, b, c and 3 others')
    """
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1:,} others"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


class Stages:
    """Timer for the stages of a computation, each announced to ``progress`` when it begins."""

    def __init__(self, progress: Callable[[str], None] | None) -> None:
        self.tell: Callable[[str], None] = progress or (lambda stage: None)
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str, told: str | None = None) -> Iterator[None]:
        self.tell(told or name)
        began = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began

    @property
    def with_total(self) -> dict[str, float]:
        """Seconds of each stage, and their sum as ``total``."""
        return {**self.seconds, "total": sum(self.seconds.values())}
