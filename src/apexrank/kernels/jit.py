"""``numba.njit`` wrapper with an on-disk cache, which saves a minute of compilation in every process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function on its first call, to run without the GIL, and cache it on disk.

    If the cache cannot be written (read-only installation without a home, full disk), each process compiles again.
    """

    def compile_later(function: Callable[..., Any]) -> Any:
        try:
            return _forgiving(njit(cache=True, nogil=True, **options)(function))
        except RuntimeError:  # numba found no folder to cache in
            return njit(nogil=True, **options)(function)

    return compile_later


def _forgiving(compiled: Any) -> Any:
    """Ignore errors in writing the cache, such as a full disk, because the compiled function is in memory anyway."""
    kept = getattr(compiled, "_cache", None)
    save = getattr(kept, "save_overload", None)
    if kept is None or save is None:
        return compiled

    def save_if_possible(*args: Any) -> None:
        with suppress(OSError):
            save(*args)

    kept.save_overload = save_if_possible
    return compiled
