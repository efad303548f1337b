"""Graded relevance as pairs: every item above all less relevant ones of its group."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax

from apexrank.errors import InputError
from apexrank.losses import Exponential, Loss
from apexrank.objectives.rows import ClassRows, two_classes
from apexrank.objectives.side import PAIR_SUMS
from apexrank.validation import segment

MOST_LEVELS = 500  # of all groups together, for which a Hessian is written out


class GradedPairs:
    """Every item of a group above all items of lower relevance in it, for any number of levels.

    Number the levels of a group 0, 1, 2 …. Two items of different levels differ in their numbers' highest unequal bit,
    so each pair is met exactly once, in the bipartite problem of that bit: those with the bit set above those without
    it, among items that agree in all higher bits. L levels take log₂ L bipartite sums.
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
            sums = PAIR_SUMS[type(self.loss)](
                scores[above.rows], above.starts, scores[below.rows], below.starts
            )
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
        # in logarithms, because a tiny height has no inverse
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
        """Whether the levels and the items above each are few enough to be written out for a Hessian."""
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
        """For each block the items of its group on higher levels."""
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

    def least_margin(self, scores: np.ndarray) -> float:
        margins = [
            (-above.highest(-scores[above.rows]) - below.highest(scores[below.rows])).min()
            for above, below in self.problems
        ]
        return float(min(margins))


def _level_numbers(relevance: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Rank of each item's relevance among the different ones of its group: 0, 1, 2 …."""
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
