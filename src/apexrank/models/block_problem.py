"""A linear problem whose rows come in blocks: what the objectives share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from apexrank.checkpoints import remembered
from apexrank.errors import InputError
from apexrank.models.blocks import Block, Blocks, Survey
from apexrank.models.linear import (
    WIDEST_HESSIAN,
    LinearProblem,
    checked_total,
    curvature_products,
    pull_back,
    scores_of,
    usable_units,
)
from apexrank.objectives.margins import LevelOrder, checked_relevance


class BlockProblem(LinearProblem):
    """``min_w objective + (alpha/2)·|w|²`` with the certificates of :class:`LinearProblem`, and X nowhere in one piece.

    Solvers that ask for value, gradient and Hessian only (L-BFGS, Newton and "auto") take it as it is. A subclass has
    ``loss_and_grad``, the objective without its penalty.
    """

    def __init__(
        self,
        parts: Blocks,
        objective: Any,
        alpha: float,
        n_rows: int,
        spread: np.ndarray,
        shift: np.ndarray | None,
    ) -> None:
        self.parts, self.objective, self.alpha, self.n_rows = parts, objective, alpha, n_rows
        self.total = checked_total(objective.total)
        self.curvature = getattr(objective, "curvature", self.total)
        self.grad_unit = np.sqrt(self.total * self.curvature)
        self.value_unit = getattr(objective, "value_unit", 1.0)
        self.spread = usable_units(spread, lambda: np.ones(len(spread), bool))
        self._shift = shift
        self.scale = np.hypot(self.spread, np.sqrt(alpha / self.curvature))

    @property
    def n_features(self) -> int:
        return len(self.spread)

    def loss_and_grad(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective without its penalty, and its gradient."""
        raise NotImplementedError

    @remembered
    def value_and_grad(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Penalised objective and its gradient; not finite, without a word, where the scores are beyond all bounds."""
        with np.errstate(over="ignore", invalid="ignore"):
            value, grad = self.loss_and_grad(w)
            return value + 0.5 * self.alpha * float(w @ w), grad + self.alpha * w

    @property
    def hessian_cost(self) -> float:
        d = self.n_features
        return float(self.n_rows) * d * d if d <= WIDEST_HESSIAN else np.inf

    def offset(self, w: np.ndarray) -> float:
        """What the scores of the rows as given have more than those of the rows as kept."""
        return 0.0 if self._shift is None else float(self._shift @ w)

    def separated(self, w: np.ndarray) -> bool:
        """Whether ``w`` separates the classes."""
        return False

    def unbounded(self, value: float, w: np.ndarray) -> bool:
        return self.alpha == 0 and value < self.objective.separable_below and self.separated(w)


class ListPart(NamedTuple):
    """Rows of a block and the objective of its lists; None where no list has rows of different relevance."""

    X: np.ndarray
    objective: Any


class ListUnits(NamedTuple):
    """Natural units of the objective of some lists; of several parts they add up."""

    value: float
    curvature: float
    n_groups: int
    weight: float
    squares: np.ndarray  # of the distances from the means of the lists, in units of the columns


class ListObjective(NamedTuple):
    """What :class:`BlockProblem` asks of an objective, summed over the blocks."""

    total: float
    curvature: float
    value_unit: float
    n_groups: int
    is_convex: bool
    separable_below: float = -np.inf


def list_part(block: Block, make: Callable[..., Any], shift: np.ndarray | None) -> ListPart:
    """Rows of a block, less ``shift``, and ``make(relevance, groups, weight)``."""
    X = block.X if block.X.dtype in (np.float64, np.float32) else np.asarray(block.X, dtype=np.float64)
    X = np.ascontiguousarray(X) if shift is None else X - shift
    relevance = checked_relevance(block.y)
    weight = None if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    if not len(relevance) or not len(LevelOrder(relevance, block.groups, weight)):
        return ListPart(X, None)
    return ListPart(X, make(relevance, block.groups, weight))


def _part_units(part: ListPart, unit: np.ndarray) -> tuple[ListUnits, bool, bool] | None:
    objective = part.objective
    if objective is None:
        return None
    lists = objective.lists
    weight, squares = lists.weight, np.zeros(part.X.shape[1])
    for j in range(len(squares)):  # one column at a time, as a copy of all would be as large as the block
        x = part.X[lists.rows, j] / unit[j]
        x = x - lists.spread(lists.sums(weight * x) / lists.sums(weight))
        squares[j] = weight @ x**2
    value = float(objective.value_and_grad(np.zeros(objective.n))[0])
    units = ListUnits(value, objective.curvature, objective.n_groups, float(weight.sum()), squares)
    return units, objective.is_squared, objective.is_convex


def _part_loss(part: ListPart, w: np.ndarray) -> tuple[float, np.ndarray]:
    if part.objective is None:
        return 0.0, np.zeros(len(w))
    with np.errstate(over="ignore", invalid="ignore"):
        value, slope = part.objective.value_and_grad(scores_of(part.X, w))
        return value, pull_back(part.X, slope)


def _part_hessian(part: ListPart, w: np.ndarray, centre: np.ndarray) -> np.ndarray:
    total = np.zeros((len(w), len(w)))
    if part.objective is not None:
        for factor, diagonal, U, S in part.objective.hessian(scores_of(part.X, w)):
            gram, V = curvature_products(part.X, centre, diagonal, U)
            total += factor * (gram + V @ S @ V.T)
    return total


class ListBlocks(BlockProblem):
    """A sum of objectives of lists over blocks that keep their lists whole, such as monotone retargeting.

    Parameters
    ----------
    blocks : Blocks
        With group ids; no group may be in two blocks.
    found : Survey
        Of the blocks.
    make : callable
        ``make(relevance, groups, weight)`` is the objective of some lists,
        :class:`apexrank.objectives.retarget.Retarget`.
    alpha : float
        Ridge penalty.
    """

    def __init__(self, blocks: Blocks, found: Survey, make: Callable[..., Any], alpha: float) -> None:
        check_whole(blocks.map(_part_groups))
        shift, unit = found.moments.shift, found.moments.unit
        parts = blocks.prepared(list_part, make, shift)
        known = [units for units in parts.map(_part_units, unit) if units is not None]
        if not known:
            raise InputError(
                f"no pair to rank: every group has rows of one relevance only (n_samples = {found.n_rows})"
            )
        units = ListUnits(*(np.sum([part[0][k] for part in known], axis=0) for k in range(5)))
        is_squared, is_convex = known[0][1:]
        total = abs(float(units.value)) or 1.0
        objective = ListObjective(
            total,
            float(units.curvature) if is_squared else total,
            total if is_squared else 1.0,
            int(units.n_groups),
            is_convex,
        )
        spread = np.sqrt(units.squares / units.weight)
        spread = unit * np.where(spread > 1e-12, spread, 1.0)
        super().__init__(parts, objective, alpha, found.n_rows, spread, shift)
        self.centre = found.moments.mean if shift is None else 0 * shift

    def loss_and_grad(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        values, grads = zip(*self.parts.map(_part_loss, w), strict=True)
        return float(np.sum(values)), np.sum(grads, axis=0)

    @remembered
    def hessian(self, w: np.ndarray) -> np.ndarray:
        parts = self.parts.map(_part_hessian, w, self.centre)
        return self.alpha * np.eye(len(w)) + np.sum(parts, axis=0)


def _part_groups(block: Block) -> np.ndarray:
    if block.groups is None:
        raise InputError("rows in blocks are ranked inside groups: give one group id per row")
    return np.unique(np.asarray(block.groups))


def check_whole(groups: list[np.ndarray]) -> None:
    """Refuse a group of which two blocks have rows."""
    names = np.concatenate(groups)
    block = np.repeat(np.arange(len(groups)), [len(own) for own in groups])
    order = np.argsort(names, kind="stable")
    twice = np.flatnonzero(names[order][1:] == names[order][:-1])
    if len(twice):
        first, second = block[order[twice[0]]], block[order[twice[0] + 1]]
        raise InputError(
            f"group {names[order[twice[0]]]!s} has rows in block {first} and in block {second}: sort the rows "
            "by group, or with Dask use repartition_by_group"
        )
