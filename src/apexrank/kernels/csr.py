"""Sums, maxima and norms over the in-links of every vertex of a graph, the inner loop of graph ranking.

Row i of a compressed sparse row (CSR) matrix lists its columns in ``indices[indptr[i]:indptr[i + 1]]``. A graph
without weights stores no values: only four bytes per link are read.

Threads divide the rows, not the links of a row, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np

from apexrank.kernels.jit import kernel
from apexrank.parallel import PARTS_A_THREAD, Threads, n_threads

NO_WEIGHTS = np.empty(0)
LINKS_A_THREAD = 200_000  # with fewer, starting a thread costs more than it saves


class LinkSums:
    """Base class of links in memory or in shards on disk, with sums, maxima and norms over in-links.

    Vectors hold one number for each source, or several (the columns of a matrix); results have one row for each target.
    A subclass defines ``_each``, which runs the kernel of a given name on all rows.

    Attributes
    ----------
    n : int
        Number of rows.
    weighted : bool
        Whether links have weights; without them all weights are 1.
    most_links : int
        Number of links of the longest row.
    weight_range : tuple of two floats
        Smallest and largest weight.
    """

    n: int
    weighted: bool
    most_links: int
    weight_range: tuple[float, float]

    @property
    def roundings(self) -> int:
        """Bound on the number of rounding errors in a row's sum of non-negative terms, relative to the partial sums."""
        k, run = self.most_links, int(RUN)
        return k if k <= run else run + -(-k // run)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def sums(self, x: np.ndarray, power: float = 1.0) -> np.ndarray:
        """Return ``Σ_j w_ij^power x_j`` for every row i."""
        return self._each("sums", x, power)

    def largest(self, x: np.ndarray) -> np.ndarray:
        """Return ``max_j w_ij x_j`` for every row i, 0 for an empty row; x >= 0."""
        return self._each("largest", x)

    def norms(self, x: np.ndarray, p: float) -> np.ndarray:
        """Return ``(Σ_j (w_ij x_j)^p)^{1/p}`` for every row i without overflow or underflow; one power per link."""
        return self._each("norms", x, 1.0, p)

    def top_sums(self, x: np.ndarray, extra: np.ndarray, k: int, power: float = 1.0) -> np.ndarray:
        """Return the sum of the k largest of ``w_ij^power x_j`` and ``extra_i`` for every row i; x, extra >= 0."""
        return self._each("top_sums", x, power, k, own=extra)

    def mapped_sums(self, x: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return ``Σ_j f(w_ij x_j)`` for every row i, for one vector x and links with weights."""
        raise NotImplementedError

    def _each(self, name: str, x: Any, power: float = 1.0, *args: Any, own: Any = None) -> Any:
        """Run a kernel with weights raised to a power; ``own`` has one row per target."""
        raise NotImplementedError


class InLinks(LinkSums):
    """CSR pattern with optional weights, with rows summed in parallel.

    Parameters
    ----------
    indptr, indices : integer arrays
        Pattern; rows need not be sorted.
    weights : array of floats, optional
        Weight of each link; 1 by default.
    threads : int, optional
        Number of threads, by default that of :func:`apexrank.parallel.n_threads`; fewer for few links.

    Examples
    --------
    >>> with InLinks(np.array([0, 2, 3, 3]), np.array([1, 2, 0], dtype=np.int32)) as links:
    ...     links.sums(np.array([1.0, 10.0, 100.0])), links.largest(np.array([1.0, 10.0, 100.0]))
    (array([110.,   1.,   0.]), array([100.,   1.,   0.]))
    """

    def __init__(
        self,
        indptr: np.ndarray,
        indices: np.ndarray,
        weights: np.ndarray | None = None,
        threads: int | None = None,
    ) -> None:
        # unsigned indices spare the loop the check for negative indices
        self.indptr = np.ascontiguousarray(indptr, dtype=np.int64).view(np.uint64)
        self.indices = np.ascontiguousarray(indices)
        self.indices = self.indices.view(f"u{self.indices.itemsize}")
        self.weights = NO_WEIGHTS if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        self.n, self.weighted = len(self.indptr) - 1, self.weights.size > 0
        self._powers = {1.0: self.weights}
        links = len(self.indices)
        self.threads = Threads(min(threads or n_threads(), 1 + links // LINKS_A_THREAD))
        # parts have about equal numbers of links, not of rows: a few rows may have most links
        cuts = np.linspace(0, links, self.threads.n * PARTS_A_THREAD + 1)[1:-1]
        rows = np.searchsorted(self.indptr, cuts.astype(np.uint64))
        self._bounds = np.unique(np.concatenate([[0], rows, [self.n]])).astype(np.uint64)

    @property
    def most_links(self) -> int:  # type: ignore[override]
        return int(np.diff(self.indptr.view(np.int64)).max(initial=0))

    @property
    def weight_range(self) -> tuple[float, float]:  # type: ignore[override]
        # treat a share that has underflowed to 0 as the smallest positive number
        return (max(self.weights.min(), 5e-324), self.weights.max()) if self.weighted else (1.0, 1.0)

    def __enter__(self) -> Self:
        self.threads.__enter__()  # one pool for all passes of an iteration
        return self

    def __exit__(self, *error: Any) -> None:
        self.threads.__exit__(*error)

    def divided(self, per: Any) -> InLinks:
        """Return the links with weights divided by ``per``, a number or one for each source."""
        if not self.weighted or (np.isscalar(per) and per == 1):
            return self
        weights, other = np.empty_like(self.weights), copy(self)

        def divide(first: Any, last: Any) -> None:
            inside = slice(self.indptr[first], self.indptr[last])
            by = per[self.indices[inside]] if np.ndim(per) else per
            np.divide(self.weights[inside], by, out=weights[inside])

        self.run(divide)
        other.weights, other._powers = weights, {1.0: weights}
        return other

    def weighted_sums(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return ``Σ_j w_ij x_j`` for every row i, with the given weights instead of the links' own."""
        return self._run("sums", x, weights)

    def mapped_sums(self, x: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        rows = np.repeat(np.arange(self.n), np.diff(self.indptr).astype(np.int64))
        return np.bincount(rows, function(self.weights * x[self.indices]), self.n)

    def _each(self, name: str, x: Any, power: float = 1.0, *args: Any, own: Any = None) -> Any:
        power = power if self.weighted else 1.0
        if power not in self._powers:
            self._powers[power] = np.empty_like(self.weights)
            self.run(partial(self._raise, power))
        more = () if own is None else (np.ascontiguousarray(own).reshape(self.n, -1),)
        return self._run(name, x, self._powers[power], *more, *args)

    def _raise(self, power: float, first: Any, last: Any) -> None:
        inside = slice(self.indptr[first], self.indptr[last])
        with np.errstate(under="ignore"):
            self._powers[power][inside] = self.weights[inside] ** power

    def _run(self, name: str, x: np.ndarray, weights: np.ndarray, *args: Any) -> np.ndarray:
        x = np.ascontiguousarray(x, dtype=np.float64)
        kernel_ = _OF_VECTORS.get(name) if x.ndim == 1 else None
        flat = x if kernel_ else x.reshape(len(x), -1)
        kernel_ = kernel_ or _OF_COLUMNS[name]
        out = np.empty((self.n, *flat.shape[1:]))
        self.run(lambda a, b: kernel_(self.indptr, self.indices, weights, flat, *args, out, a, b))
        return out.reshape(self.n, *x.shape[1:])

    def run(self, part: Callable[[Any, Any], None]) -> None:
        """Call ``part(first, last)`` in parallel for ranges that partition the rows."""
        self.threads.share(part, self._bounds)


ONE = np.uint64(1)  # in numba, uint64 + int64 would be float64
# Long rows are summed in runs of this many links: k terms have RUN + k/RUN rounding errors instead of k, which tightens
# the error bound (Higham 2002, sec. 4.2, blocked summation).
RUN = np.uint64(512)


# the terms of a run may be reassociated, but never those of two runs, so each run is a separate call
@kernel(fastmath={"reassoc"})
def _run(indices, weights, x, first, last):
    total = 0.0
    if weights.size:
        for k in range(first, last):
            total += weights[k] * x[indices[k]]
    else:
        for k in range(first, last):
            total += x[indices[k]]
    return total


@kernel(fastmath={"reassoc"})
def _short_sums(indptr, indices, weights, x, out, first, last):
    """Sum rows of a single run inline, because a call per row would take as long as its sum."""
    weighted = weights.size > 0
    for i in range(first, last):
        start, end = indptr[i], indptr[i + ONE]
        if end - start > RUN:
            continue
        total = 0.0
        if weighted:
            for k in range(start, end):
                total += weights[k] * x[indices[k]]
        else:
            for k in range(start, end):
                total += x[indices[k]]
        out[i] = total


@kernel()
def _sums(indptr, indices, weights, x, out, first, last):
    _short_sums(indptr, indices, weights, x, out, first, last)
    for i in range(first, last):
        start, end = indptr[i], indptr[i + ONE]
        if end - start > RUN:
            total = 0.0
            while start < end:
                stop = min(start + RUN, end)
                total += _run(indices, weights, x, start, stop)
                start = stop
            out[i] = total


# not reassociated: the columns of a row are contiguous and vectorise anyway
@kernel()
def _column_sums(indptr, indices, weights, x, out, first, last):
    columns = x.shape[1]
    part = np.empty(columns)
    for i in range(first, last):
        for c in range(columns):
            out[i, c] = 0.0
        start, end = indptr[i], indptr[i + ONE]
        while start < end:
            stop = min(start + RUN, end)
            for c in range(columns):
                part[c] = 0.0
            for k in range(start, stop):
                w = weights[k] if weights.size else 1.0
                j = indices[k]
                for c in range(columns):
                    part[c] += w * x[j, c]
            for c in range(columns):
                out[i, c] += part[c]
            start = stop


@kernel()
def _largest(indptr, indices, weights, x, out, first, last):
    for i in range(first, last):
        top = 0.0
        for k in range(indptr[i], indptr[i + ONE]):
            value = x[indices[k]]
            if weights.size:
                value *= weights[k]
            if value > top:
                top = value
        out[i] = top


@kernel()
def _column_largest(indptr, indices, weights, x, out, first, last):
    columns = x.shape[1]
    for i in range(first, last):
        for c in range(columns):
            out[i, c] = 0.0
        for k in range(indptr[i], indptr[i + ONE]):
            w = weights[k] if weights.size else 1.0
            j = indices[k]
            for c in range(columns):
                out[i, c] = max(out[i, c], w * x[j, c])


@kernel()
def _norms(indptr, indices, weights, x, p, out, first, last):
    _column_largest(indptr, indices, weights, x, out, first, last)
    for i in range(first, last):
        for c in range(x.shape[1]):
            top = out[i, c]
            if top > 0.0:
                # powers relative to the largest term cannot overflow, and the sum is at least 1
                total = part = 0.0
                left = RUN
                for k in range(indptr[i], indptr[i + ONE]):
                    w = weights[k] if weights.size else 1.0
                    part += (w * x[indices[k], c] / top) ** p
                    left -= ONE
                    if left == 0:
                        total, part, left = total + part, 0.0, RUN
                out[i, c] = top * (total + part) ** (1.0 / p)


@kernel()
def _top_sums(indptr, indices, weights, x, extra, size, out, first, last):
    kept = np.empty(size)
    for i in range(first, last):
        for c in range(x.shape[1]):
            kept[0], count = extra[i, c], 1
            for k in range(indptr[i], indptr[i + ONE]):
                value = (weights[k] if weights.size else 1.0) * x[indices[k], c]
                if count == size and value <= kept[count - 1]:
                    continue  # most links stop here; k is small, so insertion beats a heap
                place = count if count < size else count - 1
                while place > 0 and kept[place - 1] < value:
                    kept[place] = kept[place - 1]
                    place -= 1
                kept[place] = value
                count = min(count + 1, size)
            out[i, c] = kept[:count].sum()


_OF_VECTORS = {"sums": _sums, "largest": _largest}
_OF_COLUMNS = {"sums": _column_sums, "largest": _column_largest, "norms": _norms, "top_sums": _top_sums}


def reached(indptr: np.ndarray, indices: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Return a mask of the rows reachable from the seeds (a mask) through the pattern, inclusive.

    Examples
    --------
    >>> reached(np.array([0, 1, 2, 2]), np.array([1, 2]), np.array([False, True, False])).tolist()
    [False, True, True]
    """
    found = np.array(seeds, dtype=bool)
    _spread(indptr, indices, found)
    return found


@kernel()
def _spread(indptr, indices, found):
    waiting = np.empty(found.size, np.int64)
    size = 0
    for i in range(found.size):
        if found[i]:
            waiting[size] = i
            size += 1
    while size > 0:
        size -= 1
        i = waiting[size]
        for k in range(indptr[i], indptr[i + 1]):
            if not found[indices[k]]:
                found[indices[k]] = True
                waiting[size] = indices[k]
                size += 1
