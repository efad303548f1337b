"""Progress reporting for long loops, which the command line displays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

Item = TypeVar("Item", covariant=True)
Tell = Callable[[int, int], None]
_LISTENER: ContextVar[Tell | None] = ContextVar("progress", default=None)


class Countable(Sized, Iterable[Item], Protocol[Item]):
    """Iterable with a known length."""


@contextmanager
def listening(tell: Tell) -> Iterator[None]:
    """Call ``tell(done, total)`` at each step of the `steps` loops in the block."""
    token = _LISTENER.set(tell)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def steps(items: Countable[Item]) -> Iterable[Item]:
    """Iterate over items and report progress to the `listening` callback; nested loops are not reported.

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
