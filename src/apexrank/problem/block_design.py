"""Rows that come in blocks, as a design: scores and sums of each block, put together in the order of the blocks."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import expit

from apexrank.kernels.rows import BOTH, RowSummer, RowSums
from apexrank.objectives.base import Objective, log_weights
from apexrank.objectives.push import Scatter
from apexrank.problem.blocks import Block, Blocks, Survey
from apexrank.problem.design import Design, curvature_products, pull_back, row_slices, scores_of

Request = tuple[str, tuple[float, ...], tuple[bool, ...], float]  # sum, slopes, active classes, shift


class Part(NamedTuple):
    """A block as kernels read it; label 1 for positives where the labels are of two classes."""

    X: np.ndarray
    label: np.ndarray
    log_weight: np.ndarray | None
    threads: int | None


def make_part(block: Block, positive: Any, threads: int | None) -> Part:
    """Rows of a block in double or single precision, row by row in memory."""
    X = block.X if block.X.dtype in (np.float64, np.float32) else np.asarray(block.X, dtype=np.float64)
    label = (np.asarray(block.y) == positive).astype(np.uint8)
    return Part(np.ascontiguousarray(X), label, log_weights(block.weight), threads)


def _move_part(part: Part, shift: np.ndarray) -> Part:
    return part._replace(X=part.X - shift)


class BlockDesign(Design):
    """Rows in :class:`Blocks`, one block at a time in memory, or wherever the blocks are.

    An objective of two rows, a positive and a negative that weigh as much as all of theirs, is evaluated by sums over
    the blocks alone: weights count as repetitions, so that its natural units are those of the whole. Value and gradient
    take one pass for the forms ``(1/p)·log R``, also of both sides. The log1p price takes two, as it needs the sum over
    the inner class before it can price a row of the outer one. Any other objective is evaluated in memory on the
    scores of all rows, with one pass for the scores and one for the gradient.

    Parameters
    ----------
    blocks : Blocks
    found : Survey
        Of the blocks.
    positive
        The value of y that is the positive class, for an objective of two rows.

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

    def __init__(self, blocks: Blocks, found: Survey, positive: Any = None) -> None:
        self.parts = blocks.prepared(make_part, positive, blocks.threads)
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
        block = np.searchsorted(self._bounds, rows, side="right") - 1
        own = [rows[block == k] - first for k, first in enumerate(self._bounds[:-1])]
        found = np.empty((len(rows), self.n_features))
        found[np.argsort(block, kind="stable")] = np.concatenate(self.parts.map_with(_part_rows, own))
        return found

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

    def hessian(self, objective: Objective, w: np.ndarray, centre: np.ndarray) -> np.ndarray:
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


def _part_curvature(part: Part, own: tuple[np.ndarray, Any], centre: np.ndarray) -> tuple[Any, Any]:
    return curvature_products(part.X, centre, *own)


def _part_column(part: Part, j: int) -> np.ndarray:
    return part.X[:, j].astype(np.float64)


def _part_rows(part: Part, rows: np.ndarray) -> np.ndarray:
    return part.X[rows].astype(np.float64)


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
