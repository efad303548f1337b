"""Progress of long loops: the library counts its steps, and the command line shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

Item = TypeVar("Item", covariant=True)
Tell = Callable[[int, int], None]
_LISTENER: ContextVar[Tell | None] = ContextVar("progress", default=None)


class Countable(Sized, Iterable[Item], Protocol[Item]):
    """Items whose number is known."""


@contextmanager
def listening(tell: Tell) -> Iterator[None]:
    """Call ``tell(done, total)`` at each step of the `steps` in a block."""
    token = _LISTENER.set(tell)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def steps(items: Countable[Item]) -> Iterable[Item]:
    """Iterate over items, telling who is `listening` how many are done; loops inside are not counted.

    Examples
    --------
    >>> with listening(lambda done, total: print(f"{done} of {total}")):
    ...     for letter in steps("ab"):
    ...         print(letter)
    0 of 2
    a
    1 of 2
    b
    2 of 2
    """
    tell = _LISTENER.get()
    return items if tell is None else _counted(items, tell)


def _counted(items: Countable[Item], tell: Tell) -> Iterator[Item]:
    _LISTENER.set(None)
    try:
        for done, item in enumerate(items):
            tell(done, len(items))
            yield item
        tell(len(items), len(items))
    finally:
        _LISTENER.set(tell)
