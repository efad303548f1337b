"""Exception classes, with one-line messages that state the problem and the fix, and warnings at the user's line."""

import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

_MOST_CHARACTERS = 2000
_INNER = ("apexrank", "sklearn", "joblib")


class ApexrankError(Exception):
    r"""Base class of the exceptions that apexrank raises.

    Examples
    --------
    >>> str(ApexrankError("column 'a\nb': correct it"))
    "column 'a b': correct it"
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*(one_line(arg) if isinstance(arg, str) else arg for arg in args), **kwargs)


def one_line(message: str) -> str:
    """Make a message one readable line: escape control characters and shorten long quoted names and values."""
    message = printable(message[: 2 * _MOST_CHARACTERS] + message[2 * _MOST_CHARACTERS :][-_MOST_CHARACTERS:])
    if len(message) > _MOST_CHARACTERS:
        message = f"{message[: _MOST_CHARACTERS // 2]} ... {message[-_MOST_CHARACTERS // 3 :]}"
    return message


def printable(text: str) -> str:
    r"""Escape control characters and replace white space by blanks, for safe printing in a terminal.

    Examples
    --------
    >>> print(printable("\x1b[2Jred\tcell"))
    \x1b[2Jred cell
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else repr(c)[1:-1] for c in text)


def quoted(names: Sequence[str], most: int = 5) -> str:
    """Format the first ``most`` names as a quoted list for a message.

    Examples
    --------
    >>> quoted(["a", "b", "c"], most=2)
    "'a', 'b', ..."
    """
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def first_of(names: Sequence[str], most: int = 5) -> str:
    """Join the first ``most`` names for a message, with the number of all if there are more.

    Examples
    --------
    >>> first_of(["a", "b", "c"], most=2)
    'a, b, ... (3 in all)'
    """
    return ", ".join(names[:most]) + (f", ... ({len(names):,} in all)" if len(names) > most else "")


def near_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to ``name``, or None if more than about a third of the letters differ.

    Examples
    --------
    >>> near_name("Amuont", ["amount", "hour"]), near_name("grade", ["fraud", "hour"])
    ('amount', None)
    """
    from difflib import SequenceMatcher, get_close_matches

    wanted, folded = name.casefold(), {one.casefold(): one for one in known}
    for close in get_close_matches(wanted, folded, n=3):
        steps = SequenceMatcher(None, wanted, close).get_opcodes()
        changed = sum(max(b - a, d - c) for kind, a, b, c, d in steps if kind != "equal")
        if 3 * changed <= max(len(wanted), len(close)) + 2:
            return folded[close]
    return None


class InputError(ApexrankError, ValueError):
    """Raised when the data or an argument cannot be used as given."""


def unknown(what: str, name: Any, known: Iterable[str], use: str = "one of", more: str = "") -> InputError:
    """Return the error about a name that is not among the known ones, with the closest of them if one is close.

    Examples
    --------
    >>> print(unknown("`loss`", "hings", ["hinge", "logistic"]))
    unknown `loss` 'hings': did you mean 'hinge'? Use one of hinge, logistic
    """
    near = near_name(name, known := list(known)) if isinstance(name, str) else None
    hint = "use" if near is None else f"did you mean {near!r}? Use"
    return InputError(f"unknown {what} {name!r}: {hint} {use} {', '.join(known)}{more}")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, the innermost one outside of this package and of scikit-learn, which wraps methods."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _INNER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class MissingExtraError(ApexrankError, ImportError):
    """Raised when an optional dependency is not installed."""
