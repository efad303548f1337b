"""Crucial pairs: a push on arbitrary weighted pairs, ``Σ_k g(Σ_i ℓ(s_i − s_k)·π_ik)`` (JMLR 2009, sec. 7)."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.special import softmax

from apexrank.errors import InputError
from apexrank.losses import Exponential, Loss
from apexrank.objectives.base import ClassRows, HessianTerm, PricedObjective, log_form, two_classes
from apexrank.objectives.push import pair_sums
from apexrank.prices import Price
from apexrank.validation import segment

MOST_LEVELS = 500  # maximum number of levels over all groups for an explicit Hessian


class Pairs(Protocol):
    """Pairs of items in their desired order, and the resulting heights."""

    loss: Loss

    def heights(self, scores: np.ndarray) -> tuple[np.ndarray, list[Any]]:
        """``log r`` of each item, and intermediate results for :meth:`pull`."""

    def pull(self, log_r: np.ndarray, memory: list[Any], mass: np.ndarray) -> np.ndarray:
        """Gradient with respect to the scores, from ``mass = ∂/∂log r``."""

    def least_margins(self, scores: np.ndarray) -> np.ndarray:
        """Smallest ``s_i − s_k`` over the items i that should rank above item k, for each k; ∞ if there are none."""


class ListedPairs:
    """Explicit pairs: item ``upper[j]`` should rank above item ``lower[j]``, with weight ``weight[j]``."""

    def __init__(self, upper: np.ndarray, lower: np.ndarray, weight: np.ndarray | None, loss: Loss) -> None:
        order = np.argsort(lower, kind="stable")
        self.upper, self.lower, self.loss = upper[order], lower[order], loss
        self.weight = np.ones(len(order)) if weight is None else weight[order]
        self.items, starts = np.unique(self.lower, return_index=True)
        with np.errstate(divide="ignore"):
            self.by_item = ClassRows(self.lower, np.append(starts, len(order)), np.log(self.weight))

    def heights(self, scores: np.ndarray) -> tuple[np.ndarray, list[Any]]:
        margin = scores[self.upper] - scores[self.lower]
        log_r = np.full(len(scores), -np.inf)
        with np.errstate(divide="ignore"):
            log_loss = -margin if isinstance(self.loss, Exponential) else np.log(self.loss.value(margin))
        log_r[self.items] = self.by_item.log_sum_exp(log_loss + self.by_item.log_weight)
        return log_r, [margin]

    def pull(self, log_r: np.ndarray, memory: list[Any], mass: np.ndarray) -> np.ndarray:
        # in logarithms, because the inverse of a tiny height overflows
        log_per_height = (np.log(mass) - np.where(mass > 0, log_r, 0.0))[self.lower]
        if isinstance(self.loss, Exponential):
            per_pair = -np.exp(self.by_item.log_weight - memory[0] + log_per_height)
        else:
            per_pair = self.weight * self.loss.slope(memory[0]) * np.exp(log_per_height)
        n = len(mass)
        return np.bincount(self.upper, per_pair, n) - np.bincount(self.lower, per_pair, n)

    def least_margins(self, scores: np.ndarray) -> np.ndarray:
        margins = np.full(len(scores), np.inf)
        counted = self.weight > 0
        np.minimum.at(margins, self.lower[counted], (scores[self.upper] - scores[self.lower])[counted])
        return margins


class GradedPairs:
    """Every item of a group above all items of lower relevance in it, for any number of levels.

    Number the levels of a group 0, 1, 2 …. Two items of different levels differ in the highest unequal bit of their
    numbers, so each pair occurs exactly once, in the bipartite problem of that bit: items with the bit set above those
    without it, among items that agree in all higher bits. L levels take log₂ L bipartite sums.
    """

    def __init__(
        self, relevance: np.ndarray, group: np.ndarray, loss: Loss, log_weight: np.ndarray | None = None
    ) -> None:
        self.loss, self.group, self.log_weight = loss, group, log_weight
        self.level = level = _level_numbers(relevance, group)
        self.problems: list[tuple[ClassRows, ClassRows]] = []
        for bit in range(int(level.max()).bit_length()):
            block = np.unique(np.column_stack([group, level >> (bit + 1)]), axis=0, return_inverse=True)[1]
            above, below, _ = two_classes(
                (level >> bit & 1).astype(bool), segment(block.ravel(), len(level)), log_weight
            )
            if len(above.rows):
                self.problems.append((above, below))

    def heights(self, scores: np.ndarray) -> tuple[np.ndarray, list[Any]]:
        if isinstance(self.loss, Exponential):
            return self._exponential_heights(scores)
        r, memory = np.zeros(len(scores)), []
        for above, below in self.problems:
            sums = pair_sums(self.loss, scores[above.rows], above.starts, scores[below.rows], below.starts)
            weight = np.exp(above.log_weight)
            value, slope = sums.forward(weight)
            r[below.rows] += value
            memory.append((sums, weight, slope))
        with np.errstate(divide="ignore"):
            return np.log(r), memory

    def _exponential_heights(self, scores: np.ndarray) -> tuple[np.ndarray, list[Any]]:
        log_r, memory = np.full(len(scores), -np.inf), []
        for above, below in self.problems:
            exponent = above.log_weight - scores[above.rows]
            log_above = above.log_sum_exp(exponent)
            part = below.spread(log_above) + scores[below.rows]
            log_r[below.rows] = np.logaddexp(log_r[below.rows], part)
            memory.append((np.exp(exponent - above.spread(log_above)), part))
        return log_r, memory

    def pull(self, log_r: np.ndarray, memory: list[Any], mass: np.ndarray) -> np.ndarray:
        if isinstance(self.loss, Exponential):
            return self._exponential_pull(log_r, memory, mass)
        grad = np.zeros(len(mass))
        # in logarithms, because the inverse of a tiny height overflows
        per_height = np.exp(np.log(mass) - np.where(mass > 0, log_r, 0.0))
        for (above, below), (sums, weight, slope) in zip(self.problems, memory, strict=True):
            grad[below.rows] -= per_height[below.rows] * slope
            grad[above.rows] += weight * sums.backward(per_height[below.rows])
        return grad

    def _exponential_pull(self, log_r: np.ndarray, memory: list[Any], mass: np.ndarray) -> np.ndarray:
        grad = mass.copy()
        for (above, below), (shares, part) in zip(self.problems, memory, strict=True):
            share = mass[below.rows] * np.exp(part - log_r[below.rows])
            grad[above.rows] -= above.spread(below.total(share)) * shares
        return grad

    @cached_property
    def is_coarse(self) -> bool:
        """Whether the levels and the items above each are few enough for an explicit Hessian."""
        n_levels = len(np.unique(np.column_stack([self.group, self.level]), axis=0))
        return n_levels <= MOST_LEVELS and sum(map(len, self.items_above)) <= 8 * len(self.level)

    @cached_property
    def blocks(self) -> list[np.ndarray]:
        """Items of each level of each group that has a higher one, lowest first; see :attr:`items_above`."""
        order = np.lexsort((self.level, self.group))
        changes = (np.diff(self.group[order]) != 0) | (np.diff(self.level[order]) != 0)
        every = np.split(order, np.flatnonzero(changes) + 1)
        return [low for low, high in pairwise(every) if self.group[low[0]] == self.group[high[0]]]

    @cached_property
    def items_above(self) -> list[np.ndarray]:
        """Items on higher levels of the group of each block."""
        order = np.lexsort((self.level, self.group))
        ends = np.searchsorted(self.group[order], np.arange(self.group.max() + 1), side="right")
        position = np.empty(len(order), dtype=np.intp)
        position[order] = np.arange(len(order))
        return [order[position[block].max() + 1 : ends[self.group[block[0]]]] for block in self.blocks]

    def hessian(
        self, scores: np.ndarray, mass: np.ndarray, curvature: np.ndarray, gradient: np.ndarray, order: float
    ) -> tuple[np.ndarray, Any, Any]:
        """``diag(d) + U·S·Uᵀ``: each block's curvatures c and its softmax a of the items above, then ∇ by group."""
        log_weight = np.zeros(len(scores)) if self.log_weight is None else self.log_weight
        diagonal, columns, corners = curvature.copy(), [], []
        for block, above in zip(self.blocks, self.items_above, strict=True):
            if mass[block].sum() == 0:
                continue
            a = softmax(log_weight[above] - scores[above])
            M, C = mass[block].sum(), curvature[block].sum()
            diagonal[above] += M * a
            columns += [(block, curvature[block]), (above, a)]
            corners.append(np.array([[0.0, -1.0], [-1.0, C - M]]))
        for rows in np.split(np.argsort(self.group, kind="stable"), np.cumsum(np.bincount(self.group))[:-1]):
            columns.append((rows, gradient[rows]))
            corners.append(np.array([[-order]]))
        starts = np.cumsum([0, *(len(rows) for rows, _ in columns)])
        index, values = (np.concatenate(parts) for parts in zip(*columns, strict=True))
        U = sparse.csc_array((values, index, starts), shape=(len(scores), len(columns)))
        return diagonal, U, sparse.block_diag(corners, format="csr")

    def least_margins(self, scores: np.ndarray) -> np.ndarray:
        margins = np.full(len(scores), np.inf)
        for above, below in self.problems:
            lowest = below.spread(-above.highest(-scores[above.rows]))
            margins[below.rows] = np.minimum(margins[below.rows], lowest - scores[below.rows])
        return margins


def _level_numbers(relevance: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Rank of each item's relevance among the distinct values in its group: 0, 1, 2 …."""
    if relevance.dtype.kind == "f" and np.isnan(relevance).any():
        raise InputError(f"relevance is missing in row {int(np.isnan(relevance).argmax())}: fill or drop it")
    order = np.lexsort((relevance, group))
    sorted_group, sorted_relevance = group[order], relevance[order]
    new_group = np.concatenate([[True], sorted_group[1:] != sorted_group[:-1]])
    rises = np.concatenate([[False], sorted_relevance[1:] != sorted_relevance[:-1]]) & ~new_group
    steps = np.cumsum(rises)
    starts = np.flatnonzero(new_group)
    level = np.empty(len(group), dtype=np.int64)
    level[order] = steps - np.repeat(steps[starts], np.diff(np.append(starts, len(group))))
    return level


class CrucialPairs(PricedObjective):
    """Push on graded relevance, or on explicit pairs, as a convex function of the scores.

    Parameters
    ----------
    relevance : array, optional
        Relevance (larger is better); every item should rank above all items of lower relevance in its group.
    pairs : tuple of arrays (upper, lower) or (upper, lower, weight), optional
        Row numbers: ``upper[j]`` should rank above ``lower[j]``. Used instead of ``relevance``.
    n : int, optional
        Number of rows; required with ``pairs``.
    loss, price, sample_weight, groups
        As in :class:`Push`. The weight of a row counts both as a priced item and as an item above others.

    Examples
    --------
    >>> objective = CrucialPairs([2, 1, 0])
    >>> value, gradient = objective.value_and_grad(np.zeros(3))
    >>> bool(gradient[0] < gradient[1] < gradient[2])
    True
    """

    def __init__(
        self,
        relevance: np.ndarray | None = None,
        *,
        pairs: tuple[np.ndarray, ...] | None = None,
        n: int | None = None,
        loss: str | Loss = "exponential",
        price: str | Price = "power",
        sample_weight: np.ndarray | None = None,
        groups: np.ndarray | None = None,
    ) -> None:
        if (relevance is None) == (pairs is None):
            raise InputError("give either relevance or pairs")
        super().__init__(loss, price, sample_weight)
        size = len(relevance) if relevance is not None else n
        if size is None:
            raise InputError("pairs need n, the number of rows")
        self.positive = np.zeros(size, dtype=bool)  # there is no positive class
        group = segment(groups, size).of_rows()
        self.pairs: Pairs
        if pairs is not None:
            upper, lower, weight = _checked_pairs(pairs, size)
            if self.log_weight is not None:
                weight = np.exp(self.log_weight)[upper] * (1.0 if weight is None else weight)
            self.pairs = ListedPairs(upper, lower, weight, self.loss)
            self.over_groups = ""  # pairs refer to row numbers across all groups
        else:
            self.pairs = GradedPairs(np.asarray(relevance), group, self.loss, self.log_weight)
        self._priced(group)

    def _priced(self, group: np.ndarray) -> None:
        """Find the items with a height, sorted by group; groups without any are ignored."""
        weighty = np.ones(len(group), bool) if self.log_weight is None else self.log_weight > -np.inf
        has_height = np.isfinite(self.pairs.heights(np.zeros(len(group)))[0]) & weighty
        rows = np.flatnonzero(has_height)
        if not len(rows):
            raise InputError(
                f"there is no pair to rank: in every group all rows have the same relevance (n_samples = {len(group)})"
            )
        rows = rows[np.argsort(group[rows], kind="stable")]
        _, counts = np.unique(group[rows], return_counts=True)
        log_weight = np.zeros(len(rows)) if self.log_weight is None else self.log_weight[rows]
        self.items = ClassRows(rows, np.concatenate([[0], np.cumsum(counts)]), log_weight)
        self.n_groups = len(counts)
        self.n_groups_skipped = len(np.unique(group)) - self.n_groups

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient with respect to the scores."""
        value, mass, log_r, memory = self._evaluate(scores)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return value, self.pairs.pull(log_r, memory, mass)

    def _evaluate(self, scores: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, list[Any]]:
        """Value, ``∂/∂log r`` and ``log r`` of each item, and intermediate results for :meth:`Pairs.pull`."""
        scores, items = np.asarray(scores, dtype=float), self.items
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            log_r, memory = self.pairs.heights(scores)
            at = log_r[items.rows]
            log_risk = items.log_sum_exp(self.price.log_value(at) + items.log_weight)
            value, log_factor = self.form(log_risk, self.price.order)
            log_mass = self.price.log_slope(at) + at + items.log_weight + items.spread(log_factor)
            mass = np.zeros(len(scores))
            mass[items.rows] = np.where(at > -np.inf, np.exp(log_mass), 0.0) / self.n_groups
        return float(value.mean()), mass, log_r, memory

    @property
    def has_hessian(self) -> bool:  # type: ignore[override]
        """Whether :meth:`hessian` is available: exponential loss, and relevance with few grades in few groups."""
        return (
            isinstance(self.loss, Exponential)
            and isinstance(self.pairs, GradedPairs)
            and self.pairs.is_coarse
        )

    def hessian(self, scores: np.ndarray) -> list[HessianTerm]:
        """Hessian ``diag(d) + U·S·Uᵀ`` with respect to the scores, with sparse U and S.

        Like the Hessian of the bipartite push (:class:`~apexrank.objectives.push.ExponentialSide`), once per level with
        the items above it as inner ones; ``− p·∇∇ᵀ`` once per group.
        """
        assert isinstance(self.pairs, GradedPairs)
        _, mass, log_r, memory = self._evaluate(scores)
        gradient = self.pairs.pull(log_r, memory, mass)
        with np.errstate(over="ignore"):
            curvature = np.where(mass > 0, mass * self.price.elasticity(np.where(mass > 0, log_r, 0.0)), 0.0)
        order = self.price.order * self.n_groups if self.form is log_form else 0.0
        return [(1.0, *self.pairs.hessian(scores, mass, curvature, gradient, order))]

    def _take_loss(self, loss: Loss) -> None:
        self.pairs = copy(self.pairs)
        self.pairs.loss = loss

    @property
    def priced_weight(self) -> float:  # type: ignore[override]
        """Weight of the priced items, averaged over the groups."""
        return float(np.exp(self.items.log_weight).sum()) / self.n_groups

    @property
    def lower_bound(self) -> float:  # type: ignore[override]
        return float(self._without_loss(self.items).mean())

    @property
    def separable_below(self) -> float:  # type: ignore[override]
        """Infinite, so that :meth:`separated` is always checked, unless the loss reaches zero."""
        return -np.inf if self.loss.reaches_zero else np.inf

    def separated(self, scores: np.ndarray) -> bool:
        margins = self.pairs.least_margins(scores)[self.items.rows]
        return self.falls_forever(-self.items.highest(-margins))


def _checked_pairs(pairs: tuple[np.ndarray, ...], n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    if (
        not isinstance(pairs, tuple | list)
        or len(pairs) not in (2, 3)
        or any(np.ndim(part) != 1 for part in pairs)
    ):
        raise InputError(
            "pairs must be a tuple of one-dimensional arrays: (upper, lower) or (upper, lower, weight)"
        )
    upper, lower = (np.asarray(index) for index in pairs[:2])
    weight = None if len(pairs) == 2 else np.asarray(pairs[2], dtype=float)
    sizes = {len(column) for column in (upper, lower, weight) if column is not None}
    if len(sizes) != 1 or sizes == {0}:
        raise InputError("pairs needs arrays of one length, with at least one pair")
    if upper.dtype.kind not in "iu" or lower.dtype.kind not in "iu":
        raise InputError("pairs holds row numbers: whole numbers from 0")
    if min(upper.min(), lower.min()) < 0 or max(upper.max(), lower.max()) >= n:
        raise InputError(f"pairs names a row that does not exist: rows are 0 to {n - 1}")
    if (upper == lower).any():
        raise InputError(f"pair {int((upper == lower).argmax())} sets a row above itself: drop it")
    if weight is not None and not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise InputError("weights of pairs must be finite numbers >= 0, and not all 0")
    return upper, lower, weight
