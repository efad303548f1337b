"""``numba.njit`` wrapper with an on-disk cache, without which every process would compile for a minute."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function on its first call, to run without the interpreter's lock, and cache it on disk.

    Where nothing can be written (a read-only installation and no home, a full disk) each process compiles anew.
    """

    def compile_later(function: Callable[..., Any]) -> Any:
        try:
            return _forgiving(njit(cache=True, nogil=True, **options)(function))
        except RuntimeError:  # numba found no folder to cache in
            return njit(nogil=True, **options)(function)

    return compile_later


def _forgiving(compiled: Any) -> Any:
    """Ignore errors of writing the cache, such as a full disk: the compiled function is in memory all the same."""
    kept = getattr(compiled, "_cache", None)
    save = getattr(kept, "save_overload", None)
    if kept is None or save is None:
        return compiled

    def save_if_possible(*args: Any) -> None:
        with suppress(OSError):
            save(*args)

    kept.save_overload = save_if_possible
    return compiled
