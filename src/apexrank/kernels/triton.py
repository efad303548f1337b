"""Optional Triton; without it, Triton kernels are plain functions that are never called."""

from __future__ import annotations

from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None


def jit(function: Any) -> Any:
    """Compile a kernel on its first call."""
    return function if triton is None else triton.jit(function)


def power_of_two(n: int) -> int:
    """Return the smallest power of two that is at least n.

    Examples
    --------
    >>> power_of_two(1), power_of_two(5)
    (1, 8)
    """
    return 1 << max(0, n - 1).bit_length()
