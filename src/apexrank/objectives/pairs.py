"""Crucial pairs: a push on any pairs that matter, ``Σ_k g(Σ_i ℓ(s_i − s_k)·π_ik)`` (JMLR 2009, sec. 7)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from apexrank.errors import InputError
from apexrank.groups import segment
from apexrank.losses import LOSSES, Exponential, Loss
from apexrank.objectives.base import HessianTerm, Objective
from apexrank.objectives.forms import form_of, log_form, natural_count
from apexrank.objectives.graded import GradedPairs
from apexrank.objectives.rows import ClassRows, log_weights
from apexrank.prices import PRICES, Price


class Pairs(Protocol):
    """Which item should stand above which, and the heights that follow."""

    def heights(self, scores: np.ndarray) -> tuple[np.ndarray, list[Any]]:
        """``log r`` of each item, and what :meth:`pull` needs."""

    def pull(self, log_r: np.ndarray, memory: list[Any], mass: np.ndarray) -> np.ndarray:
        """Gradient with respect to the scores, from ``mass = ∂/∂log r``."""

    def least_margin(self, scores: np.ndarray) -> float:
        """Smallest ``s_i − s_k`` over all pairs."""


class ListedPairs:
    """Pairs given one by one: item ``upper[j]`` should stand above item ``lower[j]``, with weight ``weight[j]``."""

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
        # in logarithms, because a tiny height has no inverse
        log_per_height = (np.log(mass) - np.where(mass > 0, log_r, 0.0))[self.lower]
        if isinstance(self.loss, Exponential):
            per_pair = -np.exp(self.by_item.log_weight - memory[0] + log_per_height)
        else:
            per_pair = self.weight * self.loss.slope(memory[0]) * np.exp(log_per_height)
        n = len(mass)
        return np.bincount(self.upper, per_pair, n) - np.bincount(self.lower, per_pair, n)

    def least_margin(self, scores: np.ndarray) -> float:
        counted = self.weight > 0
        return float((scores[self.upper] - scores[self.lower])[counted].min())


class CrucialPairs(Objective):
    """The push on graded relevance, or on pairs given one by one, as a convex function of the scores.

    Parameters
    ----------
    relevance : array, optional
        Larger is more relevant; every item should stand above all items of lower relevance of its group.
    pairs : tuple of arrays (upper, lower) or (upper, lower, weight), optional
        Row numbers: ``upper[j]`` should stand above ``lower[j]``. Given instead of ``relevance``.
    n : int, optional
        Number of rows; needed with ``pairs``.
    loss, price, sample_weight, groups
        As in :class:`Push`. A row's weight counts both as priced item and as item above others.

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
        self.loss, self.price = LOSSES.get(loss), PRICES.get(price)
        self.form = form_of(self.loss, self.price)
        self.log_weight = log_weights(sample_weight)
        size = len(relevance) if relevance is not None else n
        if size is None:
            raise InputError("pairs need n, the number of rows")
        self.positive = np.zeros(size, dtype=bool)  # no item is positive as such
        group = segment(groups, size).of_rows()
        self.pairs: Pairs
        if pairs is not None:
            upper, lower, weight = _checked_pairs(pairs, size)
            if self.log_weight is not None:
                weight = np.exp(self.log_weight)[upper] * (1.0 if weight is None else weight)
            self.pairs = ListedPairs(upper, lower, weight, self.loss)
        else:
            self.pairs = GradedPairs(np.asarray(relevance), group, self.loss, self.log_weight)
        self._priced(group)

    def _priced(self, group: np.ndarray) -> None:
        """Items with a height, sorted by group; groups without any have no voice."""
        weighty = np.ones(len(group), bool) if self.log_weight is None else self.log_weight > -np.inf
        has_height = np.isfinite(self.pairs.heights(np.zeros(len(group)))[0]) & weighty
        rows = np.flatnonzero(has_height)
        if not len(rows):
            raise InputError(
                f"no pair to rank: every group has rows of one relevance only (n_samples = {len(group)})"
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
        """Value, ``∂/∂log r`` and ``log r`` of each item, and what :meth:`Pairs.pull` needs."""
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
        """Whether :meth:`hessian` can be used: exponential loss, and relevance of few grades in few groups."""
        return (
            isinstance(self.loss, Exponential)
            and isinstance(self.pairs, GradedPairs)
            and self.pairs.is_coarse
        )

    def hessian(self, scores: np.ndarray) -> list[HessianTerm]:
        """Hessian ``diag(d) + U·S·Uᵀ`` with respect to the scores, U and S sparse.

        As for the bipartite push (:class:`~apexrank.objectives.side.ExponentialSide`), once for each level with the
        items above it as inner ones; ``− p·∇∇ᵀ`` once for each group.
        """
        assert isinstance(self.pairs, GradedPairs)
        _, mass, log_r, memory = self._evaluate(scores)
        gradient = self.pairs.pull(log_r, memory, mass)
        with np.errstate(over="ignore"):
            curvature = np.where(mass > 0, mass * self.price.elasticity(np.where(mass > 0, log_r, 0.0)), 0.0)
        order = self.price.order * self.n_groups if self.form is log_form else 0.0
        return [(1.0, *self.pairs.hessian(scores, mass, curvature, gradient, order))]

    @property
    def total(self) -> float:
        """Natural unit of value and gradient: 1 for ``log R``, the value of all-equal scores otherwise."""
        return 1.0 if self.form is log_form else self.value_and_grad(np.zeros(len(self.positive)))[0]

    @property
    def count(self) -> float:
        """1 for ``log R``; otherwise R or its root at equal scores, in units of the loss of a tied pair."""
        return natural_count(self)

    @property
    def priced_weight(self) -> float:
        """Weight of the priced items, mean over the groups."""
        return float(np.exp(self.items.log_weight).sum()) / self.n_groups

    @property
    def bounded_below(self) -> bool:  # type: ignore[override]
        return self.form is not log_form or self.price.name == "exponential"

    @property
    def separable_below(self) -> float:  # type: ignore[override]
        """Every value calls for a look at :meth:`separated`, unless the loss reaches zero."""
        return -np.inf if self.loss.reaches_zero else np.inf

    def separated(self, scores: np.ndarray) -> bool:
        """Whether every pair is ranked right, so that without a penalty there is no finite minimiser."""
        return self.pairs.least_margin(scores) > 0


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
        raise InputError(f"pairs names a row that is not there: rows are 0 to {n - 1}")
    if (upper == lower).any():
        raise InputError(f"pair {int((upper == lower).argmax())} sets a row above itself: drop it")
    if weight is not None and not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise InputError("weights of pairs must be finite numbers >= 0, and not all 0")
    return upper, lower, weight
