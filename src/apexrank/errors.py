"""The errors apexrank raises on purpose: one line that says what is wrong and what to do."""

from collections.abc import Iterable, Sequence

_MOST_CHARACTERS = 2000


class ApexrankError(Exception):
    r"""Base class of every error apexrank raises on purpose.

    Examples
    --------
    >>> str(ApexrankError("column 'a\nb': correct it"))
    "column 'a b': correct it"
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*(one_line(arg) if isinstance(arg, str) else arg for arg in args), **kwargs)


def one_line(message: str) -> str:
    """A message in one line that can be read: names and values that it quotes may be of any length and kind."""
    message = printable(message[: 2 * _MOST_CHARACTERS] + message[2 * _MOST_CHARACTERS :][-_MOST_CHARACTERS:])
    if len(message) > _MOST_CHARACTERS:
        message = f"{message[: _MOST_CHARACTERS // 2]} ... {message[-_MOST_CHARACTERS // 3 :]}"
    return message


def printable(text: str) -> str:
    r"""Escape characters that a terminal would obey instead of showing them; white space becomes blanks.

    Examples
    --------
    >>> print(printable("\x1b[2Jred\tcell"))
    \x1b[2Jred cell
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else repr(c)[1:-1] for c in text)


def quoted(names: Sequence[str], most: int = 5) -> str:
    """List the first of some names in quotes, for a message.

    Examples
    --------
    >>> quoted(["a", "b", "c"], most=2)
    "'a', 'b', ..."
    """
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def near_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant: no more than about a third of the letters differ.

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
    """The data or an argument cannot be used as given."""


class MissingDataError(InputError):
    """A data set that is not part of apexrank is not on this machine."""


class MissingExtraError(ApexrankError, ImportError):
    """A feature needs an optional dependency that is not installed."""
