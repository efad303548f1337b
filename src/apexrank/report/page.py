"""From a template to one file that needs nothing else: style and script are in it, and it may load nothing."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from apexrank import __version__
from apexrank.errors import MissingExtraError

TEMPLATES = Path(__file__).parent / "templates"
NAME_LENGTH = 48  # characters of a name that a page shows; all of them are in its title


def render(template: str, *, generated: datetime | None = None, **context: Any) -> str:
    """Fill one of the templates of this package.

    Everything that is put into it is escaped. The page's own policy forbids every request and every script but its
    own, whatever the data say.

    Parameters
    ----------
    template : str
        Name of a file in ``templates/``.
    generated : datetime, optional
        When the page was made; now by default.
    **context
        What the template asks for: ``title``, ``subtitle``, ``notes``, ``seconds``, ….
    """
    script = _read("report.js")
    page = _environment().get_template(template)
    when = generated or datetime.now().astimezone()
    return page.render(
        style=_read("report.css"),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        version=__version__,
        generated=when,
        **context,
    )


@cache
def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def check_extra() -> None:
    """Say early that a page could not be made."""
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
    environment.filters["number"] = number
    environment.filters["signed"] = signed
    environment.filters["percent"] = percent
    environment.filters["points"] = points
    environment.filters["shorten"] = shorten
    return environment


def number(value: float, digits: int = 3) -> str:
    """A number for a table: whole ones with separators, others with so many digits.

    Examples
    --------
    >>> number(1234567), number(0.123456), number(float("nan")), number(4.1e12)
    ('1,234,567', '0.123', '–', '4.1e+12')
    >>> number(1599.9999)
    '1,600'
    """
    if value != value:
        return "–"
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "−∞"
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}".replace("-", "−")
    shown = f"{value:,.{digits}g}"
    if abs(value) >= 1e9:
        return shown
    return (f"{value:,.0f}" if "e+" in shown else shown).replace("-", "−")


def signed(value: float, digits: int = 3) -> str:
    """A difference, with its sign.

    Examples
    --------
    >>> signed(0.25), signed(-3), signed(0)
    ('+0.25', '−3', '0')
    """
    text = number(value, digits)
    return f"+{text}" if value > 0 else text


def percent(value: float, digits: int = 3) -> str:
    """A share of a hundred.

    Examples
    --------
    >>> percent(0.1234), percent(1.0, digits=2)
    ('12.3 %', '100 %')
    """
    if value != value:
        return "–"
    shown = f"{100 * value:.{digits}g}"
    return f"{100 * value:.0f} %" if "e+" in shown else f"{shown} %"


def points(share: float, unit: str = " points") -> str:
    """A change of a share of a hundred, to one decimal; a dash where there is none.

    Examples
    --------
    >>> points(0.0312), points(-0.5), points(0.0001)
    ('+3.1 points', '−50.0 points', '–')
    """
    shown = f"{100 * share:+.1f}"
    return "–" if share != share or float(shown) == 0 else f"{shown.replace('-', '−')}{unit}"


def shorten(text: str, most: int = NAME_LENGTH) -> str:
    """A name cut in its middle, so that both its ends can be told from other names'.

    Examples
    --------
    >>> shorten("amount of the first payment", 12), shorten("amount")
    ('amount…yment', 'amount')
    """
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"
