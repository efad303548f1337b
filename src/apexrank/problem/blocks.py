"""Rows that come in blocks: from disk one after another, or from the workers of a cluster.

What a block gives for given coefficients, scores or sums, is put together in the order of the blocks, whoever computed
it: the sums of a push are the same to the last bit in one process and on many workers.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import reduce
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import expit

from apexrank.errors import InputError
from apexrank.kernels.rows import BOTH, RowSummer, RowSums
from apexrank.objectives.base import Objective, log_weights
from apexrank.objectives.push import Scatter
from apexrank.problem.design import (
    BLOCK_BYTES,
    DenseDesign,
    Design,
    Make,
    Moments,
    Training,
    curvature_products,
    moments_of,
    of_two_rows,
    pull_back,
    row_slices,
    scores_of,
    tied_scores,
    usable_units,
)
from apexrank.validation import (
    check_not_huge,
    check_two_classes,
    check_weight_range,
    is_missing,
    weight_range,
)

ROWS_BYTES = 2**26  # of X in a block, where nobody says
MIXED_LABELS = "y has both words and numbers: give labels of one kind"


class Block(NamedTuple):
    """Some rows: features, labels or relevance (not of ballots), and where given weights and group ids."""

    X: np.ndarray
    y: Any = None
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None


class Blocks:
    """Blocks of rows that can be gone through any number of times, always in the same order.

    A subclass has ``__iter__``, which reads one block at a time; or, where blocks live elsewhere, ``map`` and
    ``prepared``.

    Attributes
    ----------
    threads : int, optional
        Threads that the work on one block may use; None for all.
    persist : bool
        Whether what is made of blocks is kept between passes.
    names : sequence of str, optional
        Names of the columns of X.
    """

    threads: int | None = None
    persist: bool = False
    names: Sequence[str] | None = None

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def map(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """``function(block, *args)`` of every block, in their order."""
        return self.map_with(_without_own, None, function, *args)

    def map_with(self, function: Callable[..., Any], own: Sequence[Any] | None, *args: Any) -> list[Any]:
        """``function(block, own[k], *args)`` of every block k, in their order."""
        results: list[Any] = []
        for block in self:
            results.append(function(block, None if own is None else own[len(results)], *args))
            del block  # or two would be in memory while the next one is read
        return results

    def prepared(self, function: Callable[..., Any], *args: Any) -> Blocks:
        """Blocks of ``function(block, *args)``, to be used instead of these.

        What is kept in memory is prepared once, what is read in every pass is prepared in every pass.
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
    """Slices of an array, which may be a memory-mapped file larger than memory.

    Pages of a memory map that was opened with mode "r" or "r+" are given back after each block, so that no more than
    one block of X is in memory.

    Parameters
    ----------
    X : array of shape (n, d), or path of a ``.npy`` file
        The rows; a file is memory-mapped.
    y : array of shape (n,), optional
        Labels or relevance, which a fit of linear models needs and ballots do not have.
    sample_weight, groups : arrays of shape (n,), optional
        With groups, whose rows have to stand together, no block ends inside one.
    rows : int, optional
        Rows of a block; by default those of 64 MiB.

    Examples
    --------
    >>> blocks = ArrayBlocks(np.arange(10.0)[:, None], np.arange(10) % 2, rows=4)
    >>> blocks.map(lambda block: len(block.y))
    [4, 4, 2]
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
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
        rows = default_rows(self.X.shape[1]) if rows is None else checked_rows(rows)
        self.bounds = _bounds(len(self.X), rows, self.columns[2])

    def __iter__(self) -> Iterator[Block]:
        for first, last in zip(self.bounds[:-1], self.bounds[1:], strict=True):
            columns: list[Any] = [None if c is None else c[first:last] for c in self.columns]
            yield Block(self.X[first:last], *columns)
            _give_back(self.X)


def default_rows(n_features: int) -> int:
    """Rows of a block where nobody says: 64 MiB of double precision."""
    return max(1, ROWS_BYTES // (8 * max(1, n_features)))


def checked_rows(rows: Any) -> int:
    """A number of rows that a block can have."""
    if not isinstance(rows, Integral) or rows < 1:
        raise InputError(f"rows must be a whole number of at least 1, got {rows!r}")
    return int(rows)


def _mapped(path: Any) -> np.ndarray:
    try:
        found = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or "it is no .npy file of numbers"
        raise InputError(f"cannot read {str(path)!r} as an array: {reason}") from None
    if not isinstance(found, np.ndarray):  # an archive of several
        found.close()
        raise InputError(f"{str(path)!r} holds several arrays: save X alone as .npy")
    return found


def _bounds(n: int, rows: int, groups: np.ndarray | None) -> np.ndarray:
    """Bounds of blocks of about so many rows, moved back to where a group begins."""
    bounds = np.append(np.arange(0, n, rows), n)
    if groups is None:
        return bounds
    starts = np.concatenate([[0], 1 + np.flatnonzero(groups[1:] != groups[:-1]), [n]])
    return np.unique(starts[np.searchsorted(starts, bounds, side="right") - 1])


def _give_back(X: Any) -> None:
    """Let the pages of a shared memory map go; those that a copy-on-write map has changed exist nowhere else."""
    if getattr(X, "mode", None) not in ("r", "r+") or not hasattr(mmap, "MADV_DONTNEED"):
        return
    base = X.base
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap):
        base.madvise(mmap.MADV_DONTNEED)


def merge_moments(a: Moments, b: Moments) -> Moments:
    """Moments of the rows of both; squares are of numbers of at most 1, as those of huge ones would overflow."""
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
    """Moments of the columns of finite rows, from a few megabytes of them at a time."""
    rows = max(1, BLOCK_BYTES // (8 * max(1, X.shape[1])))
    return reduce(
        merge_moments,
        (
            _checked_moments(X[a : a + rows], None if weight is None else weight[a : a + rows], a)
            for a in range(0, len(X), rows)
        ),
    )


def _checked_moments(rows: np.ndarray, weight: np.ndarray | None, first: int) -> Moments:
    rows = np.asarray(rows, dtype=np.float64)
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise InputError(
            f"row {first + row} of a block is missing or infinite in column {column}: fill or drop it"
        )
    return moments_of(rows, weight)


class Survey(NamedTuple):
    """What has to be known of all rows before a fit, from one pass over the blocks."""

    n_rows: int
    moments: Moments
    labels: dict[Any, float]  # weight of each value of y; empty for relevance
    sizes: tuple[int, ...]  # rows of each block
    label_type: np.dtype = np.dtype(object)  # of y
    weights: tuple[float, float] = (np.inf, 0.0)  # the smallest that is not 0, and the largest
    grouped: bool = False  # whether there are group ids

    @property
    def n_features(self) -> int:
        return len(self.moments.mean)


def survey(blocks: Blocks, *, binary: bool) -> Survey:
    """Count and check the rows of all blocks; ``binary`` also sums the weight of each label.

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
    usable_units(moments.unit, lambda: moments.varies)  # or the fit is refused
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
    """Labels, weights and group ids of all rows in memory; weights that some blocks lack are 1."""
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
    """Labels of a block, which it has to have."""
    if block.y is None:
        raise InputError("a block has no y: give one label per row")
    return np.asarray(block.y)


def cut_group(groups: list[np.ndarray]) -> tuple[Any, int, int] | None:
    """A group of which two blocks have rows, and these, given the groups of each block."""
    names = np.concatenate(groups)
    block = np.repeat(np.arange(len(groups)), [len(own) for own in groups])
    order = np.argsort(names, kind="stable")
    twice = np.flatnonzero(names[order][1:] == names[order][:-1])
    if not len(twice):
        return None
    first, second = block[order[twice[0] : twice[0] + 2]]
    return names[order[twice[0]]], first, second


def check_whole(groups: list[np.ndarray]) -> None:
    """Refuse a group of which two blocks have rows."""
    cut = cut_group(groups)
    if cut is not None:
        raise InputError(
            f"group {cut[0]!s} has rows in block {cut[1]} and in block {cut[2]}: sort the rows "
            "by group, or with Dask use repartition_by_group"
        )


def groups_in(block: Block) -> np.ndarray:
    """Group ids of a block, each once."""
    return np.unique(np.asarray(block.groups))


def classes_of(found: Survey) -> list[Any]:
    """The two values of y, the positive one last; more or fewer are refused."""
    try:
        classes = sorted(found.labels)
    except TypeError:
        raise InputError(MIXED_LABELS) from None
    check_two_classes(classes)
    return classes


def _common_type(types: list[np.dtype]) -> np.dtype:
    """The type that all labels fit in; words and numbers have none, and are told apart by their values later."""
    if len({kind.kind in "SU" for kind in types}) > 1:
        return np.dtype(object)
    return np.result_type(*types)


def _survey_block(block: Block, binary: bool) -> Survey:
    y, weight = labels_of(block), block.weight
    n = len(y)
    if block.X.shape[0] != n or block.X.ndim != 2:
        raise InputError(f"a block has {block.X.shape[0]} rows of X but {n} of y: cut both at the same rows")
    if weight is not None and not (np.isfinite(weight).all() and (np.asarray(weight) >= 0).all()):
        raise InputError("sample_weight must be finite numbers of at least 0")
    if not n:
        nothing = np.zeros(block.X.shape[1])
        return Survey(0, Moments(0.0, nothing, nothing, nothing), {}, ())
    weights = weight_range(weight)
    # small weights may stand beside larger ones of other blocks
    check_weight_range(np.inf, max(weights[1], 1.0))
    labels = _label_weights(y, weight) if binary else {}
    # huge numbers are refused once they are known to be finite
    with np.errstate(over="ignore", invalid="ignore"):
        moments = column_moments(block.X, weight)
    check_not_huge("X", block.X)
    return Survey(n, moments, labels, (n,), y.dtype, weights, block.groups is not None)


def _label_weights(y: np.ndarray, weight: np.ndarray | None) -> dict[Any, float]:
    """Weight of each value of y."""
    missing = np.array([is_missing(value) for value in y]) if y.dtype == object else y != y
    if missing.any():
        raise InputError(f"row {int(missing.argmax())} of a block has no y: fill it in or drop the row")
    try:
        values, index = np.unique(y, return_inverse=True)
    except TypeError:
        raise InputError(MIXED_LABELS) from None
    if y.dtype.kind == "f" and np.any(values != np.trunc(values)):
        odd = values[values != np.trunc(values)][0]
        raise InputError(f"y has values such as {odd:g}, which are no classes: give labels of two values")
    return dict(zip(values.tolist(), np.bincount(index, weight).tolist(), strict=True))


Request = tuple[str, tuple[float, ...], tuple[bool, ...], float]  # sum, slopes, active classes, shift


class Part(NamedTuple):
    """A block as kernels read it; label 1 for positives where the labels are of two classes."""

    X: np.ndarray
    label: np.ndarray
    log_weight: np.ndarray | None
    threads: int | None
    objective: Objective | None = None  # of the groups of this block


class OfBlock(NamedTuple):
    """The objective of the groups of a block alone, or None where they say nothing."""

    make: Make
    positive: Any  # None for relevance

    def __call__(self, block: Block) -> Objective | None:
        y, weight, groups = columns_of(block)
        try:
            return self.make(y if self.positive is None else y == self.positive, weight, groups)
        except InputError:
            # no group has two rows to compare: the objective of all rows has found no other fault
            return None


def make_part(block: Block, positive: Any, threads: int | None, objective_of: OfBlock | None = None) -> Part:
    """Rows of a block in double or single precision, row by row in memory."""
    X = block.X if block.X.dtype in (np.float64, np.float32) else np.asarray(block.X, dtype=np.float64)
    label = (labels_of(block) == positive).astype(np.uint8)
    own = objective_of(block) if objective_of is not None and len(label) else None
    return Part(np.ascontiguousarray(X), label, log_weights(block.weight), threads, own)


def _move_part(part: Part, shift: np.ndarray) -> Part:
    return part._replace(X=part.X - shift)


class _Reweighted(Blocks):
    """Parts with other weights, which are given to each part in every pass: the parts stay where they are."""

    def __init__(self, parts: Blocks, weights: list[np.ndarray]) -> None:
        self.parts, self.weights = parts, weights

    def map_with(self, function: Callable[..., Any], own: Sequence[Any] | None, *args: Any) -> list[Any]:
        others = [None] * len(self.weights) if own is None else own
        both = list(zip(self.weights, others, strict=True))
        return self.parts.map_with(_reweigh, both, function, *args)

    def prepared(self, function: Callable[..., Any], *args: Any) -> Blocks:
        return _Reweighted(self.parts.prepared(function, *args), self.weights)


def _reweigh(part: Part, own: tuple[np.ndarray, Any], function: Callable[..., Any], *args: Any) -> Any:
    return function(part._replace(log_weight=log_weights(own[0])), own[1], *args)


class BlockDesign(Design):
    """Rows in :class:`Blocks`, one block at a time in memory, or wherever the blocks are.

    An objective of two rows, a positive and a negative that weigh as much as all of theirs, is evaluated by sums over
    the blocks alone: weights count as repetitions, so that its natural units are those of the whole. Value and gradient
    take one pass for the forms ``(1/p)·log R``, also of both sides. The log1p price takes two, as it needs the sum over
    the inner class before it can price a row of the outer one. An objective that adds up over groups is evaluated
    where the blocks are, if they stay there between passes and no group is cut. Any other one is evaluated in memory on
    the scores of all rows, with one pass for the scores and one for the gradient.

    Parameters
    ----------
    blocks : Blocks
    found : Survey
        Of the blocks.
    positive
        The value of y that is the positive class, for an objective of two rows.
    objective_of : callable, optional
        From a block to the objective of its groups.

    Examples
    --------
    >>> from apexrank.objectives import Push
    >>> from apexrank.problem import ArrayBlocks, Problem, survey
    >>> blocks = ArrayBlocks(np.array([[2.0], [1.0], [0.0]]), np.array([1, 0, 0]), rows=2)
    >>> push = Push(np.array([True, False]), price="identity", sample_weight=np.array([1.0, 2.0]))
    >>> value, gradient = Problem(BlockDesign(blocks, survey(blocks, binary=True), 1), push).value_and_grad(np.zeros(1))
    >>> round(value, 6), gradient.tolist()
    (0.693147, [-1.5])
    """

    def __init__(
        self, blocks: Blocks, found: Survey, positive: Any = None, objective_of: OfBlock | None = None
    ) -> None:
        self.parts = blocks.prepared(make_part, positive, blocks.threads, objective_of)
        self.shared: Objective | None = None  # the objective that adds up from those of the blocks
        self.labelled = positive is not None
        self.found = found
        self.n_rows, self.n_features = found.n_rows, found.n_features
        self._latest: BlockSums | None = None

    def _joined(self, function: Any, *args: Any) -> np.ndarray:
        return np.concatenate(self.parts.map(function, *args))

    def scores(self, w: np.ndarray) -> np.ndarray:
        return self._joined(_part_scores, w)

    def pull_back(self, r: np.ndarray) -> np.ndarray:
        return np.sum(self.parts.map_with(_part_pull, self._split(r)), axis=0)

    def curvature(self, centre: np.ndarray, weight: np.ndarray, U: Any) -> tuple[np.ndarray, np.ndarray]:
        U = U.tocsr() if sparse.issparse(U) else U
        own = list(zip(self._split(weight), self._split(U), strict=True))
        grams, products = zip(*self.parts.map_with(_part_curvature, own, centre), strict=True)
        return np.sum(grams, axis=0), np.sum(products, axis=0)

    def column(self, j: int) -> np.ndarray:
        return self._joined(_part_column, j)

    def take(self, rows: np.ndarray) -> np.ndarray:
        block, own = self._places(rows)
        found = np.empty((len(rows), self.n_features))
        found[np.argsort(block, kind="stable")] = np.concatenate(self.parts.map_with(_part_rows, own))
        return found

    def scores_at(self, rows: np.ndarray, W: np.ndarray) -> np.ndarray:
        block, own = self._places(rows)
        found = np.empty((len(rows), W.shape[1]))
        found[np.argsort(block, kind="stable")] = np.concatenate(self.parts.map_with(_part_scores_at, own, W))
        return found

    def _places(self, rows: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Block of each row, and the row numbers inside each block."""
        block = np.searchsorted(self._bounds, rows, side="right") - 1
        return block, [rows[block == k] - first for k, first in enumerate(self._bounds[:-1])]

    def reweighted(self, weight: np.ndarray) -> Self:
        """The same rows with other weights."""
        other = copy(self)
        other.parts, other._latest = _Reweighted(self.parts, self._split(weight)), None
        return other

    @property
    def _bounds(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.found.sizes)])

    def _split(self, values: Any) -> list[Any]:
        return [values[a:b] for a, b in zip(self._bounds[:-1], self._bounds[1:], strict=True)]

    def units(self, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.found.moments.mean, self.found.moments.unit

    def varies(self) -> np.ndarray:
        return self.found.moments.varies

    def moved(self, shift: np.ndarray) -> Self:
        other = copy(self)
        other.parts, other.shift = self.parts.prepared(_move_part, shift), shift
        return other

    def sums(self, objective: Objective, w: np.ndarray) -> Any:
        """Sums at ``w``; those of the last point are remembered, because Newton asks for it twice."""
        if not self.labelled:
            return None
        if self._latest is None or not np.array_equal(self._latest.w, w):
            asked = _Asked()
            objective.stream(asked)
            self._latest = BlockSums(self.parts, w.copy(), asked.requests)
        return self._latest

    def share(self, objective: Objective) -> None:
        """Evaluate the objective where the blocks are, if their own ones see the same groups."""
        if sum(self.parts.map(_part_groups)) == objective.n_groups:
            self.shared = objective

    def evaluate(self, objective: Objective, w: np.ndarray) -> tuple[float, np.ndarray]:
        if objective is not self.shared:
            return super().evaluate(objective, w)
        values, slopes = zip(*self.parts.map(_part_evaluate, w), strict=True)
        n = objective.group_divisor
        return float(np.sum(values)) / n, np.sum(slopes, axis=0) / n

    def hessian(self, objective: Objective, w: np.ndarray, centre: np.ndarray) -> np.ndarray:
        if objective is self.shared:
            return np.sum(self.parts.map(_part_hessian, w, centre), axis=0) / objective.group_divisor
        if self.labelled and objective.streams:
            return objective.stream_hessian(self.sums(objective, w))
        return super().hessian(objective, w, centre)

    def separated(self, objective: Objective, w: np.ndarray) -> bool:
        if not (self.labelled and objective.streams):
            return super().separated(objective, w)
        lowest, highest = zip(*self.parts.map(_part_extremes, w), strict=True)
        return objective.separated(np.array([min(lowest), max(highest)]))


class BlockSums:
    """The sums of :class:`apexrank.kernels.rows.RowSummer` over all blocks, each computed once.

    ``ahead`` names sums that will be asked for: they take one pass together.
    """

    def __init__(self, parts: Blocks, w: np.ndarray, ahead: list[Request]) -> None:
        self.parts, self.w, self.ahead = parts, w, ahead
        self.known: dict[Request, RowSums] = {}

    def log_sum_exp(self, slope: ArrayLike, active: ArrayLike = BOTH) -> RowSums:
        return self._get(("log_sum_exp", _floats(slope), _flags(active), 0.0))

    def softplus(self, slope: ArrayLike, shift: float, active: ArrayLike = BOTH) -> RowSums:
        return self._get(("softplus", _floats(slope), _flags(active), float(shift)))

    def scatter(self, terms: list[Scatter]) -> np.ndarray:
        """Sums of outer products, stacked."""
        return np.sum(self.parts.map(_part_scatter, self.w, terms), axis=0)

    def _get(self, request: Request) -> RowSums:
        if request not in self.known:
            wanted = self.ahead if request in self.ahead else [request]
            found = self.parts.map(_part_sums, self.w, wanted)
            for number, key in enumerate(wanted):
                self.known[key] = _merge(key[0], [sums[number] for sums in found])
        return self.known[request]


class _Asked:
    """Notes which sums an objective asks for whatever the answers are."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def log_sum_exp(self, slope: ArrayLike, active: ArrayLike = BOTH) -> RowSums:
        self.requests.append(("log_sum_exp", _floats(slope), _flags(active), 0.0))
        return _no_rows(1, 0.0)

    def softplus(self, slope: ArrayLike, shift: float, active: ArrayLike = BOTH) -> RowSums:
        return _no_rows(1, 0.0)


def _floats(values: ArrayLike) -> tuple[float, ...]:
    return tuple(np.asarray(values, dtype=float).tolist())


def _flags(values: ArrayLike) -> tuple[bool, ...]:
    return tuple(np.asarray(values, dtype=bool).tolist())


def _part_scores(part: Part, w: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return scores_of(part.X, w) if len(part.X) else np.zeros(0)


def _part_pull(part: Part, r: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return pull_back(part.X, r) if len(part.X) else np.zeros(part.X.shape[1])


def _part_groups(part: Part) -> int:
    return 0 if part.objective is None else part.objective.n_groups


def _part_evaluate(part: Part, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Sum over the groups of the part, and its gradient with respect to w."""
    if part.objective is None:
        return 0.0, np.zeros(part.X.shape[1])
    n = part.objective.group_divisor
    with np.errstate(over="ignore", invalid="ignore"):
        value, slope = part.objective.value_and_grad(scores_of(part.X, w))
        return n * value, n * pull_back(part.X, slope)


def _part_hessian(part: Part, w: np.ndarray, centre: np.ndarray) -> np.ndarray:
    if part.objective is None:
        return np.zeros((len(w), len(w)))
    return part.objective.group_divisor * DenseDesign(part.X).hessian(part.objective, w, centre)


def _part_curvature(part: Part, own: tuple[np.ndarray, Any], centre: np.ndarray) -> tuple[Any, Any]:
    return curvature_products(part.X, centre, *own)


def _part_column(part: Part, j: int) -> np.ndarray:
    return part.X[:, j].astype(np.float64)


def _part_rows(part: Part, rows: np.ndarray) -> np.ndarray:
    return part.X[rows].astype(np.float64)


def _part_scores_at(part: Part, rows: np.ndarray, W: np.ndarray) -> np.ndarray:
    return DenseDesign(part.X).scores_at(rows, W)


def _part_sums(part: Part, w: np.ndarray, requests: list[Request]) -> list[RowSums]:
    if not len(part.X):
        return [_no_rows(len(w), -np.inf if request[0] == "log_sum_exp" else 0.0) for request in requests]
    sums = RowSummer(part.X, w, part.label, part.log_weight)
    sums.threads = min(sums.threads, part.threads or sums.threads)
    with np.errstate(all="ignore"):
        return [
            sums.log_sum_exp(slope, active) if kind == "log_sum_exp" else sums.softplus(slope, shift, active)
            for kind, slope, active, shift in requests
        ]


def _no_rows(n_features: int, value: float) -> RowSums:
    return RowSums(np.full(2, value), np.zeros(2), np.zeros((2, n_features)))


def _merge(kind: str, parts: list[RowSums]) -> RowSums:
    value, mass, rows = (np.array(field) for field in zip(*parts, strict=True))
    if kind == "softplus":
        return RowSums(value.sum(axis=0), mass.sum(axis=0), rows.sum(axis=0))
    highest = value.max(axis=0)
    with np.errstate(all="ignore"):
        present = value > -np.inf  # blocks without a row of the class have no mean
        share = np.where(present, np.exp(value - highest), 0.0)
        total = share.sum(axis=0)
        mean = (share[:, :, None] * np.where(present[:, :, None], rows, 0.0)).sum(axis=0) / total[:, None]
        return RowSums(highest + np.log(total), np.ones(2), mean)


def _part_scatter(part: Part, w: np.ndarray, terms: list[Scatter]) -> np.ndarray:
    d = part.X.shape[1]
    total = np.zeros((len(terms), d, d))
    for rows in row_slices(part.X):
        X = np.asarray(part.X[rows], dtype=np.float64)
        scores, label = X @ w, part.label[rows]
        log_u = np.zeros(len(X)) if part.log_weight is None else part.log_weight[rows]
        for number, term in enumerate(terms):
            own = label == term.label
            t = term.slope * scores[own] + term.shift
            with np.errstate(all="ignore"):
                c = np.exp(log_u[own]) * expit(t) * expit(-t) if term.softplus else np.exp(t + log_u[own])
            Z = (X[own] - term.centre) * np.sqrt(c)[:, None]
            total[number] += Z.T @ Z
    return total


def _part_extremes(part: Part, w: np.ndarray) -> tuple[float, float]:
    """Lowest score of a positive and highest score of a negative."""
    scores = _part_scores(part, w)
    counted = np.ones(len(scores), bool) if part.log_weight is None else part.log_weight > -np.inf
    positive = part.label == 1
    return (
        float(scores[positive & counted].min(initial=np.inf)),
        float(scores[~positive & counted].max(initial=-np.inf)),
    )


def _tied_scores(block: Block, w: np.ndarray) -> np.ndarray:
    return tied_scores(np.asarray(block.X), w)


class BlockTraining(Training):
    """Rows in blocks; their labels come to memory only for an objective that does not stream.

    ``classes`` are the two values of y, or None where y is relevance.
    """

    def __init__(self, blocks: Blocks, found: Survey, classes: list[Any] | None) -> None:
        self.blocks, self.found, self.classes = blocks, found, classes
        self.weight = None  # the survey has the units of the columns
        self._columns: tuple[np.ndarray, np.ndarray | None, Any] | None = None
        self._designs: dict[bool, BlockDesign] = {}
        self._other_weight: np.ndarray | None = None

    @property
    def n_features(self) -> int:
        return self.found.n_features

    def compose(self, make: Make, whole: bool = False) -> tuple[Design, Objective]:
        if self.classes is not None and not self.found.grouped and not whole:
            objective = of_two_rows(make, *self._totals())
            if objective.streams:
                return self.design(labelled=True), objective
        objective = make(*self.columns())
        # blocks know their own weights alone, so that their groups cannot take others
        adds_up = objective.over_groups and objective.n_groups > 1 and self.blocks.persist and not whole
        adds_up = adds_up and self._other_weight is None
        if not adds_up or cut_group(self.blocks.map(groups_in)) is not None:
            return self.design(), objective
        own = OfBlock(make, None if self.classes is None else self.classes[1])
        design = BlockDesign(self.blocks, self.found, objective_of=own)
        design.share(objective)
        return design, objective

    def design(self, *, labelled: bool = False) -> BlockDesign:
        """The design, made once; ``labelled`` for an objective of two rows."""
        if labelled not in self._designs:
            positive = self.classes[1] if labelled and self.classes is not None else None
            self._designs[labelled] = BlockDesign(self.blocks, self.found, positive)
        design, weight = self._designs[labelled], self._other_weight
        return design if weight is None else design.reweighted(weight)

    def _totals(self) -> tuple[float, float]:
        """Weight of the positives and of the negatives."""
        if self._other_weight is None:
            low, high = self.classes or []
            return self.found.labels[high], self.found.labels[low]
        positive = self.columns()[0]
        return float(self._other_weight[positive].sum()), float(self._other_weight[~positive].sum())

    def reweighted(self, weight: np.ndarray) -> Training:
        positive, _, groups = self.columns()
        other = copy(self)
        other._columns, other._other_weight = (positive, weight, groups), weight
        return other

    def variances(self) -> np.ndarray:
        return np.where(self.found.moments.varies, np.square(self.found.moments.spread), 0.0)

    def tied_scores(self, w: np.ndarray) -> np.ndarray:
        return np.concatenate(self.blocks.map(_tied_scores, w))

    def columns(self) -> tuple[np.ndarray, np.ndarray | None, Any]:
        if self._columns is None:
            y, weight, groups = gathered(self.blocks)
            self._columns = (y if self.classes is None else y == self.classes[1]), weight, groups
        return self._columns
