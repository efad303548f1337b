"""How kernels are compiled: once for a machine, if it lets us keep the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when it is first called, without the interpreter's lock, and keep it for later processes.

    Where no folder can be written (a read-only installation and no home) it is compiled anew in each process.
    """

    def compile_later(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:
            return njit(nogil=True, **options)(function)

    return compile_later
