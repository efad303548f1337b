"""Thread pools for compiled kernels, which release the GIL while they run.

They use Python threads instead of numba's, because numba's default threading layer terminates the process after a fork
or when two threads call it at once. Kernels split their work independently of the number of threads, and no two threads
add to the same sum, so results are bit-identical for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Thread, local
from typing import Any, Self, TypeVar

import numba
import numpy as np

Result = TypeVar("Result")

PARTS_A_THREAD = (
    4  # parts differ in cost, and other processes interfere: several parts per thread balance the load
)


_thread = local()
_ABANDONED: list[Thread] = []


def has_abandoned_work() -> bool:
    """Return whether an interruption left threads running, which the interpreter would wait for at exit."""
    return any(thread.is_alive() for thread in _ABANDONED)


def in_pool() -> bool:
    """Return whether the current thread belongs to a pool of `Threads`."""
    return getattr(_thread, "in_pool", False)


def n_threads() -> int:
    """Return the number of threads to use: ``NUMBA_NUM_THREADS``, set by joblib's workers, or the number of cores.

    Inside a pool it is 1, because the threads of the pool already use the cores.
    """
    return 1 if in_pool() else int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


class Threads:
    """Pool of ``n`` threads; with ``n=1``, or outside a ``with`` block, the caller's thread does the work.

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

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if self._pool is not None:
            # on an interrupt, do not wait for running tasks and cancel those that have not started
            stopped = kind is not None and not issubclass(kind, Exception)
            self._pool.shutdown(wait=not stopped, cancel_futures=stopped)
            if stopped:
                _ABANDONED.extend(self._pool._threads)
            self._pool = None

    def map(self, function: Callable[..., Result], *arguments: Iterable[Any]) -> list[Result]:
        """Return ``list(map(function, *arguments))``, computed in parallel."""
        return list(map(function, *arguments) if self._pool is None else self._pool.map(function, *arguments))

    def share(self, work: Callable[[Any, Any], None], bounds: Sequence[Any] | np.ndarray) -> None:
        """Call ``work(first, last)`` for the ranges between successive bounds, or once for all with a single thread."""
        if self._pool is None:
            work(bounds[0], bounds[-1])
        else:
            self.map(work, bounds[:-1], bounds[1:])

    def share_range(self, work: Callable[[int, int], None], n: int) -> None:
        """Call ``work(first, last)`` for ranges that partition ``range(n)``."""
        self.share(work, np.linspace(0, n, min(n, self.n * PARTS_A_THREAD) + 1).astype(int).tolist())
