"""Relation: number of threads of compiled kernels."""

from collections.abc import Iterator
from contextlib import contextmanager

import numba


@contextmanager
def with_threads(n: int | None) -> Iterator[None]:
    """Use this many threads; None leaves the number unchanged."""
    before = numba.config.NUMBA_NUM_THREADS
    numba.config.NUMBA_NUM_THREADS = before if n is None else n
    try:
        yield
    finally:
        numba.config.NUMBA_NUM_THREADS = before
