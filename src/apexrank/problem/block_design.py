"""Designs of rows stored in blocks.

The scores or sums of the blocks are combined in block order, regardless of which worker computed them: the sums of a
push are bit-identical in one process and on many workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import expit

from apexrank.errors import InputError
from apexrank.kernels.rows import BOTH, RowSummer, RowSums, merge_log_sums
from apexrank.objectives.base import Objective, log_weights
from apexrank.objectives.push import Scatter
from apexrank.problem.blocks import (
    Block,
    Blocks,
    Survey,
    columns_of,
    cut_group,
    gathered,
    groups_in,
    labels_of,
)
from apexrank.problem.design import (
    DenseDesign,
    Design,
    Make,
    Training,
    curvature_products,
    of_two_rows,
    pull_back,
    row_slices,
    scores_of,
    tied_scores,
)

Request = tuple[str, tuple[float, ...], tuple[bool, ...], float]  # sum, slopes, active classes, shift


class Part(NamedTuple):
    """A block in the form that kernels read; label 1 marks positives if there are two classes."""

    X: np.ndarray
    label: np.ndarray
    log_weight: np.ndarray | None
    threads: int | None
    objective: Objective | None = None  # objective of the groups of this block


class OfBlock(NamedTuple):
    """Objective of the groups of a single block, or None if they contain no pairs."""

    make: Make
    positive: Any  # None if y is relevance

    def __call__(self, block: Block) -> Objective | None:
        y, weight, groups = columns_of(block)
        try:
            return self.make(y if self.positive is None else y == self.positive, weight, groups)
        except InputError:
            # no group has two rows to compare; other errors were already found by the objective of all rows
            return None


def make_part(block: Block, positive: Any, threads: int | None, objective_of: OfBlock | None = None) -> Part:
    """Convert the rows of a block to row-major double or single precision."""
    X = block.X if block.X.dtype in (np.float64, np.float32) else np.asarray(block.X, dtype=np.float64)
    label = (labels_of(block) == positive).astype(np.uint8)
    own = objective_of(block) if objective_of is not None and len(label) else None
    return Part(np.ascontiguousarray(X), label, log_weights(block.weight), threads, own)


def _move_part(part: Part, shift: np.ndarray) -> Part:
    return part._replace(X=part.X - shift)


class _Reweighted(Blocks):
    """Parts with replaced weights, passed to each part in every pass; the parts themselves do not move."""

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
    """Rows in :class:`Blocks`, loaded one block at a time or processed where the blocks are.

    An objective of two rows, one positive and one negative that carry the total weight of their class, is evaluated
    from sums over the blocks alone: weights count as repetitions, so its natural units are those of all rows. Value and
    gradient take one pass for the forms ``(1/p)·log R``, also for both sides. The log1p price takes two, because it
    needs the sum over the inner class before it can price a row of the outer one. An objective that is a sum over
    groups is evaluated where the blocks are, if they stay there between passes and no group is split between blocks.
    Any other objective is evaluated in memory on the scores of all rows, with one pass for the scores and one for the
    gradient.

    Parameters
    ----------
    blocks : Blocks
    found : Survey
        Survey of the blocks.
    positive
        Value of y that is the positive class, for an objective of two rows.
    objective_of : callable, optional
        Function that returns the objective of a block's groups.

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
        self.shared: Objective | None = None  # objective that is the sum of those of the blocks
        self.labelled = positive is not None
        self.found = found
        self.n_rows, self.n_features = found.n_rows, found.n_features
        self._latest: BlockSums | None = None

    def _each(self, method: str, *args: Any, own: list[Any] | None = None) -> list[Any]:
        """Call a method of each part's design; ``own`` holds a separate first argument for each part."""
        return self.parts.map_with(_ask, own, method, *args)

    def _at(self, rows: np.ndarray, method: str, *args: Any) -> np.ndarray:
        """Call a method for selected rows and return the results in their order."""
        block = np.searchsorted(self._bounds, rows, side="right") - 1
        own = [rows[block == k] - first for k, first in enumerate(self._bounds[:-1])]
        values = np.concatenate(self._each(method, *args, own=own))
        found = np.empty_like(values)
        found[np.argsort(block, kind="stable")] = values
        return found

    def scores(self, w: np.ndarray) -> np.ndarray:
        return np.concatenate(self._each("scores", w))

    def pull_back(self, r: np.ndarray) -> np.ndarray:
        return np.sum(self._each("pull_back", own=self._split(r)), axis=0)

    def curvature(self, centre: np.ndarray, weight: np.ndarray, U: Any) -> tuple[np.ndarray, np.ndarray]:
        U = U.tocsr() if sparse.issparse(U) else U
        own = list(zip(self._split(weight), self._split(U), strict=True))
        grams, products = zip(*self.parts.map_with(_part_curvature, own, centre), strict=True)
        return np.sum(grams, axis=0), np.sum(products, axis=0)

    def column(self, j: int) -> np.ndarray:
        return np.concatenate(self._each("column", j))

    def take(self, rows: np.ndarray) -> np.ndarray:
        return self._at(rows, "take")

    def reweighted(self, weight: np.ndarray) -> Self:
        """The same rows with different weights."""
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
        """Sums at ``w``; those of the last point are cached, because Newton requests them twice."""
        if not self.labelled:
            return None
        if self._latest is None or not np.array_equal(self._latest.w, w):
            asked = _Asked()
            objective.stream(asked)
            self._latest = BlockSums(self.parts, w.copy(), asked.requests)
        return self._latest

    def share(self, objective: Objective) -> None:
        """Evaluate the objective where the blocks are, if the blocks' own objectives see the same groups."""
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
    """Sums of :class:`apexrank.kernels.rows.RowSummer` over all blocks, each computed once.

    ``ahead`` lists sums that will be requested; they are computed in a single pass.
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
    """Recorder of the sums that an objective requests regardless of the values returned."""

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


def _ask(part: Part, own: Any, method: str, *args: Any) -> Any:
    given = args if own is None else (own, *args)
    with np.errstate(over="ignore", invalid="ignore"):
        return getattr(DenseDesign(part.X), method)(*given)


def _part_groups(part: Part) -> int:
    return 0 if part.objective is None else part.objective.n_groups


def _part_evaluate(part: Part, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Sum of the objective over the groups of the part, and its gradient with respect to w."""
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
    present = value > -np.inf  # blocks without rows of the class have no mean
    return merge_log_sums(value, present, np.where(present[:, :, None], rows, 0.0))


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
    scores = _ask(part, None, "scores", w)
    counted = np.ones(len(scores), bool) if part.log_weight is None else part.log_weight > -np.inf
    positive = part.label == 1
    return (
        float(scores[positive & counted].min(initial=np.inf)),
        float(scores[~positive & counted].max(initial=-np.inf)),
    )


def _tied_scores(block: Block, w: np.ndarray) -> np.ndarray:
    return tied_scores(np.asarray(block.X), w)


class BlockTraining(Training):
    """Training rows in blocks; labels are loaded into memory only for an objective that does not stream.

    ``classes`` are the two values of y, or None if y is relevance.
    """

    def __init__(self, blocks: Blocks, found: Survey, classes: list[Any] | None) -> None:
        self.blocks, self.found, self.classes = blocks, found, classes
        self.weight = None  # the survey provides the units of the columns
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
        # blocks know only their own weights, so their groups cannot use replaced ones
        adds_up = objective.over_groups and objective.n_groups > 1 and self.blocks.persist and not whole
        adds_up = adds_up and self._other_weight is None
        if not adds_up or cut_group(self.blocks.map(groups_in)) is not None:
            return self.design(), objective
        own = OfBlock(make, None if self.classes is None else self.classes[1])
        design = BlockDesign(self.blocks, self.found, objective_of=own)
        design.share(objective)
        return design, objective

    def design(self, *, labelled: bool = False) -> BlockDesign:
        """Design of the blocks, built once; ``labelled`` for an objective of two rows."""
        if labelled not in self._designs:
            positive = self.classes[1] if labelled and self.classes is not None else None
            self._designs[labelled] = BlockDesign(self.blocks, self.found, positive)
        design, weight = self._designs[labelled], self._other_weight
        return design if weight is None else design.reweighted(weight)

    def _totals(self) -> tuple[float, float]:
        """Total weights of the positives and the negatives."""
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
