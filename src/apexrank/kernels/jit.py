"""How kernels are compiled: once for a machine, if it lets us keep the result."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when it is first called, without the interpreter's lock, and keep it for later processes.

    Where no folder can be written (a read-only installation and no home, a full disk) each process compiles anew.
    """

    def compile_later(function: Callable[..., Any]) -> Any:
        try:
            return _forgiving(njit(cache=True, nogil=True, **options)(function))
        except RuntimeError:
            return njit(nogil=True, **options)(function)

    return compile_later


def _forgiving(compiled: Any) -> Any:
    """Go on where the result cannot be kept, because a disk is full, say: it is in memory all the same."""
    kept = getattr(compiled, "_cache", None)
    save = getattr(kept, "save_overload", None)
    if kept is None or save is None:
        return compiled

    def save_if_possible(*args: Any) -> None:
        with suppress(OSError):
            save(*args)

    kept.save_overload = save_if_possible
    return compiled
