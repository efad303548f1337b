"""Threads for compiled kernels, which release the interpreter's lock while they run.

These are Python threads, not numba's: numba's default threading layer ends the process when it forks, or when two
threads call it at once. Kernels cut their work independently of the number of threads and let no two threads add to
the same sum, so results are bit-identical for any number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import Any, Self, TypeVar

import numba
import numpy as np

Result = TypeVar("Result")

PARTS_A_THREAD = (
    4  # parts differ in cost, and other processes interfere: spare parts keep all threads busy to the end
)


_thread = local()


def in_pool() -> bool:
    """Whether this thread is one of a pool of `Threads`."""
    return getattr(_thread, "in_pool", False)


def n_threads() -> int:
    """Threads to use: ``NUMBA_NUM_THREADS``, which process pools such as joblib's set, or the number of cores.

    Inside a pool it is 1: the threads there have the cores already.
    """
    return 1 if in_pool() else int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


class Threads:
    """A pool of ``n`` threads; with one, and outside of a ``with`` block, the caller's thread does all the work.

    Examples
    --------
    >>> found = []
    >>> with Threads(1) as threads:
    ...     threads.share(lambda first, last: found.append((first, last)), [0, 3, 5])
    >>> found
    [(0, 5)]
    """

    def __init__(self, n: int) -> None:
        self.n = max(1, n)
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self.n > 1:
            self._pool = ThreadPoolExecutor(self.n, initializer=setattr, initargs=(_thread, "in_pool", True))
        return self

    def __exit__(self, *_: Any) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def map(self, function: Callable[..., Result], *arguments: Iterable[Any]) -> list[Result]:
        """Return ``list(map(function, *arguments))``, computed by all threads."""
        return list(map(function, *arguments) if self._pool is None else self._pool.map(function, *arguments))

    def share(self, work: Callable[[Any, Any], None], bounds: Sequence[Any] | np.ndarray) -> None:
        """Call ``work(first, last)`` for the ranges between neighbouring bounds; one thread takes them all at once."""
        if self._pool is None:
            work(bounds[0], bounds[-1])
        else:
            self.map(work, bounds[:-1], bounds[1:])

    def share_range(self, work: Callable[[int, int], None], n: int) -> None:
        """Call ``work(first, last)`` for ranges that make up ``range(n)``."""
        self.share(work, np.linspace(0, n, min(n, self.n * PARTS_A_THREAD) + 1).astype(int).tolist())
