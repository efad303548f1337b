"""Rows in blocks, read from disk one at a time or held by the workers of a cluster, and their survey before a fit."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from apexrank.errors import InputError
from apexrank.problem.design import Moments, moments_of, row_slices
from apexrank.validation import (
    check_count,
    check_not_huge,
    check_two_classes,
    check_weight_range,
    is_missing,
    weight_range,
)

ROWS_BYTES = 2**26  # default size of X in a block
MIXED_LABELS = "y has both words and numbers: give labels of one kind"


class Block(NamedTuple):
    """Rows of features, with labels or relevance, and optional weights and group ids."""

    X: np.ndarray
    y: Any
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None


class Blocks:
    """Blocks of rows that can be iterated any number of times, always in the same order.

    A subclass defines ``__iter__``, which reads one block at a time, or, if blocks are stored elsewhere, ``map`` and
    ``prepared``.

    Attributes
    ----------
    threads : int, optional
        Number of threads for the work on one block; None for all.
    persist : bool
        Whether prepared blocks are kept between passes.
    names : sequence of str, optional
        Names of the columns of X.
    """

    threads: int | None = None
    persist: bool = False
    names: Sequence[str] | None = None

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def map(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Apply ``function(block, *args)`` to every block, in order."""
        return self.map_with(_without_own, None, function, *args)

    def map_with(self, function: Callable[..., Any], own: Sequence[Any] | None, *args: Any) -> list[Any]:
        """Apply ``function(block, own[k], *args)`` to every block k, in order."""
        results: list[Any] = []
        for block in self:
            results.append(function(block, None if own is None else own[len(results)], *args))
            del block  # otherwise two blocks would be in memory during the next read
        return results

    def prepared(self, function: Callable[..., Any], *args: Any) -> Blocks:
        """Blocks of ``function(block, *args)``, to be used instead of these.

        Blocks in memory are prepared once, blocks that are read in every pass are prepared in every pass.
        """
        return _Prepared(self, function, args)


class _Prepared(Blocks):
    def __init__(self, source: Blocks, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.source, self.function, self.args = source, function, args
        self.threads, self.names = source.threads, source.names

    def __iter__(self) -> Iterator[Any]:
        for block in self.source:
            part = self.function(block, *self.args)
            del block
            yield part
            del part


def _without_own(block: Any, _: None, function: Callable[..., Any], *args: Any) -> Any:
    return function(block, *args)


class ArrayBlocks(Blocks):
    """Slices of an array, which may be a memory map of a file larger than memory.

    Pages of a memory map opened with mode "r" or "r+" are released after each block, so that at most one block of X is
    in memory.

    Parameters
    ----------
    X : array of shape (n, d), or path of a ``.npy`` file
        The rows; a file is memory-mapped.
    y : array of shape (n,)
        Labels or relevance.
    sample_weight, groups : arrays of shape (n,), optional
        Rows of a group must be contiguous; no block ends inside a group.
    rows : int, optional
        Number of rows per block; by default as many as fit in 64 MiB.

    Examples
    --------
    >>> blocks = ArrayBlocks(np.arange(10.0)[:, None], np.arange(10) % 2, rows=4)
    >>> blocks.map(lambda block: len(block.y))
    [4, 4, 2]
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        rows: int | None = None,
    ) -> None:
        self.X = _mapped(X) if isinstance(X, str) or hasattr(X, "__fspath__") else X
        if getattr(self.X, "ndim", 0) != 2 or not isinstance(self.X, np.ndarray):
            raise InputError("X must be an array of two dimensions, or the path of a .npy file with one")
        self.columns: list[Any] = [None if c is None else np.asarray(c) for c in (y, sample_weight, groups)]
        for name, column in zip(("y", "sample_weight", "groups"), self.columns, strict=True):
            if column is not None and column.shape != (len(self.X),):
                raise InputError(
                    f"{name} needs one value per row: expected {len(self.X)}, got {column.shape}"
                )
        if not len(self.X):
            raise InputError("X has no rows: give at least one")
        self.bounds = _bounds(len(self.X), block_rows(rows, self.X.shape[1]), self.columns[2])

    def __iter__(self) -> Iterator[Block]:
        for first, last in zip(self.bounds[:-1], self.bounds[1:], strict=True):
            columns: list[Any] = [None if c is None else c[first:last] for c in self.columns]
            yield Block(self.X[first:last], *columns)
            _give_back(self.X)


def block_rows(rows: Any, n_features: int) -> int:
    """Number of rows per block: the requested number, or as many as fit in 64 MiB in double precision."""
    if rows is None:
        return max(1, ROWS_BYTES // (8 * max(1, n_features)))
    check_count("rows", rows)
    return int(rows)


def _mapped(path: Any) -> np.ndarray:
    try:
        found = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or "it is not a .npy file of numbers"
        raise InputError(f"cannot read {str(path)!r} as an array: {reason}") from None
    if not isinstance(found, np.ndarray):  # an archive of several arrays
        found.close()
        raise InputError(f"{str(path)!r} holds several arrays: save only X as .npy")
    return found


def _bounds(n: int, rows: int, groups: np.ndarray | None) -> np.ndarray:
    """Bounds of blocks of about ``rows`` rows, moved back to the start of a group."""
    bounds = np.append(np.arange(0, n, rows), n)
    if groups is None:
        return bounds
    starts = np.concatenate([[0], 1 + np.flatnonzero(groups[1:] != groups[:-1]), [n]])
    return np.unique(starts[np.searchsorted(starts, bounds, side="right") - 1])


def _give_back(X: Any) -> None:
    """Release the pages of a shared memory map; modified pages of a copy-on-write map exist nowhere else."""
    if getattr(X, "mode", None) not in ("r", "r+") or not hasattr(mmap, "MADV_DONTNEED"):
        return
    base = X.base
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap):
        base.madvise(mmap.MADV_DONTNEED)


def merge_moments(a: Moments, b: Moments) -> Moments:
    """Moments of the rows of both, computed on values scaled to at most 1, because large squares would overflow."""
    weight = a.weight + b.weight
    largest = np.maximum(a.largest, b.largest)
    if weight == 0:
        return a._replace(largest=largest)
    unit = np.where(largest > 0, largest, 1.0)
    share, rest = a.weight / weight, b.weight / weight
    step = (b.mean / unit - a.mean / unit) * unit
    squares = (
        share * (a.spread / unit) ** 2 + rest * (b.spread / unit) ** 2 + share * rest * (step / unit) ** 2
    )
    return Moments(weight, a.mean + rest * step, unit * np.sqrt(squares), largest)


def column_moments(X: np.ndarray, weight: np.ndarray | None) -> Moments:
    """Moments of the columns, computed from a few megabytes of rows at a time; all entries must be finite."""
    parts = (
        _checked_moments(X[some], None if weight is None else weight[some], some.start)
        for some in row_slices(X)
    )
    return reduce(merge_moments, parts)


def _checked_moments(rows: np.ndarray, weight: np.ndarray | None, first: int) -> Moments:
    rows = np.asarray(rows, dtype=np.float64)
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise InputError(
            f"row {first + row} of a block is missing or infinite in column {column}: fill or drop it"
        )
    return moments_of(rows, weight)


class Survey(NamedTuple):
    """Statistics of all rows needed before a fit, from one pass over the blocks."""

    n_rows: int
    moments: Moments
    labels: dict[Any, float]  # total weight of each value of y; empty for relevance
    sizes: tuple[int, ...]  # number of rows per block
    label_type: np.dtype = np.dtype(object)  # dtype of y
    weights: tuple[float, float] = (np.inf, 0.0)  # the smallest positive and the largest
    grouped: bool = False  # whether there are group ids

    @property
    def n_features(self) -> int:
        return len(self.moments.mean)


def survey(blocks: Blocks, *, binary: bool) -> Survey:
    """Count and validate the rows of all blocks; ``binary`` also sums the weight of each label.

    Examples
    --------
    >>> found = survey(ArrayBlocks(np.array([[1.0], [3.0], [5.0]]), np.array([0, 1, 1]), rows=2), binary=True)
    >>> found.n_rows, found.moments.mean.tolist(), found.labels
    (3, [3.0], {0: 1.0, 1: 2.0})
    """
    every = blocks.map(_survey_block, binary)
    parts = [part for part in every if part.n_rows]
    if not parts:
        raise InputError("there is no row in any block")
    widths = {part.n_features for part in parts}
    if len(widths) > 1:
        raise InputError(f"blocks have different numbers of columns: {', '.join(map(str, sorted(widths)))}")
    labels: dict[Any, float] = {}
    for part in parts:
        for value, weight in part.labels.items():
            labels[value] = labels.get(value, 0.0) + weight
    lightest, heaviest = zip(*(part.weights for part in parts), strict=True)
    check_weight_range(min(lightest), max(heaviest))
    moments = reduce(merge_moments, (part.moments for part in parts))
    return Survey(
        sum(part.n_rows for part in parts),
        moments,
        labels,
        tuple(part.n_rows for part in every),
        _common_type([part.label_type for part in parts]),
        (min(lightest), max(heaviest)),
        any(part.grouped for part in parts),
    )


def gathered(blocks: Blocks) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Labels, weights and group ids of all rows in memory; blocks without weights get 1."""
    return joined_columns(blocks.map(columns_of))


def joined_columns(
    parts: Sequence[tuple[Any, Any, Any]],
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Join the labels, weights and group ids of blocks."""
    y, weight, groups = zip(*parts, strict=True)
    if any(own is None for own in groups) and not all(own is None for own in groups):
        raise InputError("some blocks have group ids and others have none: give one per row, or none at all")
    weights = None
    if any(own is not None for own in weight):
        weights = np.concatenate(
            [np.ones(len(v)) if own is None else own for v, own in zip(y, weight, strict=True)]
        )
    return np.concatenate(y), weights, None if groups[0] is None else np.concatenate(groups)


def columns_of(block: Block) -> tuple[Any, Any, Any]:
    """Labels, weights and group ids of a block."""
    weight = None if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    return labels_of(block), weight, None if block.groups is None else np.asarray(block.groups)


def labels_of(block: Block) -> np.ndarray:
    """Labels of a block; InputError if it has none."""
    if block.y is None:
        raise InputError("a block has no y: give one label per row")
    return np.asarray(block.y)


def cut_group(groups: list[np.ndarray]) -> tuple[Any, int, int] | None:
    """First group that is split between two blocks, and these blocks, given the groups of each block."""
    names = np.concatenate(groups)
    block = np.repeat(np.arange(len(groups)), [len(own) for own in groups])
    order = np.argsort(names, kind="stable")
    twice = np.flatnonzero(names[order][1:] == names[order][:-1])
    if not len(twice):
        return None
    first, second = block[order[twice[0] : twice[0] + 2]]
    return names[order[twice[0]]], first, second


def check_whole(groups: list[np.ndarray]) -> None:
    """Raise InputError if a group is split between two blocks."""
    cut = cut_group(groups)
    if cut is not None:
        raise InputError(
            f"group {cut[0]!s} has rows in block {cut[1]} and in block {cut[2]}: sort the rows "
            "by group, or with Dask use repartition_by_group"
        )


def groups_in(block: Block) -> np.ndarray:
    """Distinct group ids of a block."""
    return np.unique(np.asarray(block.groups))


def classes_of(found: Survey) -> list[Any]:
    """The two values of y, the positive one last; InputError if there are more or fewer."""
    try:
        classes = sorted(found.labels)
    except TypeError:
        raise InputError(MIXED_LABELS) from None
    check_two_classes(classes)
    return classes


def _common_type(types: list[np.dtype]) -> np.dtype:
    """Common dtype of all labels; object if words and numbers are mixed, which is detected by their values later."""
    if len({kind.kind in "SU" for kind in types}) > 1:
        return np.dtype(object)
    return np.result_type(*types)


def _survey_block(block: Block, binary: bool) -> Survey:
    y, weight = labels_of(block), block.weight
    n = len(y)
    if block.X.shape[0] != n or block.X.ndim != 2:
        raise InputError(f"a block has {block.X.shape[0]} rows of X but {n} of y: cut both at the same rows")
    if weight is not None and not (np.isfinite(weight).all() and (np.asarray(weight) >= 0).all()):
        raise InputError("`sample_weight` must be finite numbers of at least 0")
    if not n:
        nothing = np.zeros(block.X.shape[1])
        return Survey(0, Moments(0.0, nothing, nothing, nothing), {}, ())
    weights = weight_range(weight)
    # small weights are fine next to larger ones in other blocks
    check_weight_range(np.inf, max(weights[1], 1.0))
    labels = _label_weights(y, weight) if binary else {}
    # huge values raise an error only after all values are known to be finite
    with np.errstate(over="ignore", invalid="ignore"):
        moments = column_moments(block.X, weight)
    check_not_huge("X", block.X)
    return Survey(n, moments, labels, (n,), y.dtype, weights, block.groups is not None)


def _label_weights(y: np.ndarray, weight: np.ndarray | None) -> dict[Any, float]:
    """Total weight of each value of y."""
    missing = np.array([is_missing(value) for value in y]) if y.dtype == object else y != y
    if missing.any():
        raise InputError(f"row {int(missing.argmax())} of a block has no y: fill it in or drop the row")
    try:
        values, index = np.unique(y, return_inverse=True)
    except TypeError:
        raise InputError(MIXED_LABELS) from None
    if y.dtype.kind == "f" and np.any(values != np.trunc(values)):
        odd = values[values != np.trunc(values)][0]
        raise InputError(f"y has values such as {odd:g}, which are not classes: give labels with two values")
    return dict(zip(values.tolist(), np.bincount(index, weight).tolist(), strict=True))
