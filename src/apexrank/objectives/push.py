"""Ranking with a push: ``R = Σ_k g(Σ_i ℓ(f_i − g_k))`` as a function of the scores (JMLR 2009, sec. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from apexrank.errors import InputError
from apexrank.groups import Segments, segment
from apexrank.kernels.rows import RowSummer
from apexrank.losses import LOSSES, Exponential, Loss
from apexrank.prices import PRICES, Log1p, Price

SIDES = ("top", "bottom", "both")


@dataclass(frozen=True)
class _Class:
    """The rows of one class sorted by group, with the logarithm of their weights."""

    rows: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    log_weight: np.ndarray

    def spread(self, per_group: np.ndarray) -> np.ndarray:
        return np.repeat(per_group, self.counts)

    def total(self, x: np.ndarray) -> np.ndarray:
        return np.add.reduceat(x, self.starts)

    def log_sum_exp(self, t: np.ndarray) -> np.ndarray:
        highest = np.maximum.reduceat(t, self.starts)
        return highest + np.log(self.total(np.exp(t - self.spread(highest))))


class _State(NamedTuple):
    """One side at given scores: value of each group, ``∂/∂log r`` of each outer item, softmax of the inner ones."""

    value: np.ndarray
    mass: np.ndarray
    softmax: np.ndarray
    log_r: np.ndarray


@dataclass(frozen=True)
class _Side:
    """One side of the push: a price on each ``outer`` item's height over the ``inner`` items.

    Top: outer negatives, inner positives, sign +1. Bottom is the same with the classes swapped and the scores
    negated: ``Σ_i g(Σ_k e^{−(f_i − g_k)})``.
    """

    outer: _Class
    inner: _Class
    sign: float
    price: Price
    outer_is_positive: bool

    def evaluate(self, scores: np.ndarray) -> _State:
        """Value of each group and its derivatives with respect to ``log r``, in O(I + K).

        The exponential loss factorises: ``log r_k = LSE(−f) + g_k``.
        """
        price, outer, inner = self.price, self.outer, self.inner
        t_inner = inner.log_weight - self.sign * scores[inner.rows]
        log_inner = inner.log_sum_exp(t_inner)
        log_r = outer.spread(log_inner) + self.sign * scores[outer.rows]
        log_risk = outer.log_sum_exp(price.log_value(log_r) + outer.log_weight)
        log_mass = price.log_slope(log_r) + log_r + outer.log_weight
        softmax = np.exp(t_inner - inner.spread(log_inner))
        if price.log_convex:
            mass = np.exp(log_mass - outer.spread(log_risk)) / price.order
            return _State(log_risk / price.order, mass, softmax, log_r)
        return _State(np.exp(log_risk), np.exp(log_mass), softmax, log_r)

    def gradient(self, state: _State, n: int) -> np.ndarray:
        """Gradient with respect to the scores, summed over groups."""
        grad = np.zeros(n)
        grad[self.outer.rows] = self.sign * state.mass
        grad[self.inner.rows] = -self.sign * self.inner.spread(self.outer.total(state.mass)) * state.softmax
        return grad

    def hessian(self, state: _State, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hessian ``diag(d) + U·S·Uᵀ`` with respect to the scores; one group only.

        With a the inner softmax, m the mass, c = m·elasticity, M and C their sums and ∇ the gradient, it is
        ``diag(c) + M·diag(a) − caᵀ − acᵀ + (C − M)·aaᵀ``, and for ``log(R)/p`` also ``− p·∇∇ᵀ``.
        """
        a, c = np.zeros(n), np.zeros(n)
        a[self.inner.rows] = state.softmax
        c[self.outer.rows] = state.mass * self.price.elasticity(state.log_r)
        M, C = state.mass.sum(), c.sum()
        order = self.price.order if self.price.log_convex else 0.0
        S = np.array([[0.0, -1.0, 0.0], [-1.0, C - M, 0.0], [0.0, 0.0, -order]])
        return c + M * a, np.column_stack([c, a, self.gradient(state, n)]), S

    def price_of_one_misrank(self) -> float:
        """``g(1) + Σ_k v_k·g(0)``, what a misranked pair of unit weight costs, in the form that is minimised."""
        log_total = np.log(np.exp(self.outer.log_weight + np.zeros(len(self.outer.rows))).sum())
        with np.errstate(divide="ignore"):
            at_one, at_zero = self.price.log_value(np.array([0.0, -np.inf]))
        log_risk = np.logaddexp(at_one, at_zero + log_total)
        return float(log_risk / self.price.order if self.price.log_convex else np.exp(log_risk))

    def stream(self, sums: RowSummer) -> tuple[float, np.ndarray]:
        """Value and gradient from sums over rows, without holding the scores; one group only."""
        out, inn = int(self.outer_is_positive), int(not self.outer_is_positive)
        if self.price.log_convex:
            slope = np.empty(2)
            slope[out], slope[inn] = self.sign * self.price.order, -self.sign
            both = sums.log_sum_exp(slope)
            value = both.value[inn] + both.value[out] / self.price.order
            return float(value), self.sign * (both.rows[out] - both.rows[inn])
        is_inner = np.arange(2) == inn
        inner = sums.log_sum_exp(np.full(2, -self.sign), active=is_inner)
        outer = sums.softplus(np.full(2, self.sign), shift=inner.value[inn], active=~is_inner)
        gradient = self.sign * (outer.rows[out] - outer.mass[out] * inner.rows[inn])
        return float(outer.value[out]), gradient


class Push:
    """The push as a convex function of the scores, any price, exponential loss, in O(I + K).

    With ``L = LSE(−f)`` the height of negative k is ``r_k = e^{L + g_k}`` and the objective is

    * power ``r**p``: ``(1/p)·log R = LSE(−f) + (1/p)·LSE(p·g)``,
    * identity and exponential: ``log R``,
    * any other price: ``R`` itself.

    Parameters
    ----------
    positive : array of bool
        True for the positives.
    loss, price : str or atom
    side : {"top", "bottom", "both"}
        ``top``: price on each negative's height; ``bottom``: on each positive's reverse height;
        ``both``: top + ``balance`` · bottom (JMLR 2009, sec. 7).
    sample_weight : array, optional
        Weights count as repetitions of a row.
    groups : array, optional
        The objective is the mean over the groups of each group's own objective. Groups that lack one of the two
        classes have no pairs and are left out; ``n_groups_skipped`` counts them.

    Examples
    --------
    >>> objective = Push([True, False, False], price="identity")
    >>> value, gradient = objective.value_and_grad(np.zeros(3))
    >>> round(value, 6), gradient.tolist()
    (0.693147, [-1.0, 0.5, 0.5])
    """

    def __init__(
        self,
        positive: np.ndarray,
        *,
        loss: str | Loss = "exponential",
        price: str | Price = "power",
        side: str = "top",
        balance: float = 1.0,
        sample_weight: np.ndarray | None = None,
        groups: np.ndarray | None = None,
    ) -> None:
        self.positive = np.asarray(positive, dtype=bool)
        self.loss, self.price = LOSSES.get(loss), PRICES.get(price)
        if not isinstance(self.loss, Exponential):
            raise InputError(f"the {self.loss.name} loss cannot be fitted yet: use loss='exponential'")
        if side not in SIDES:
            raise InputError(f"unknown side {side!r}: use one of {', '.join(SIDES)}")
        self.log_weight = _log_weights(sample_weight)
        segments = segment(groups, len(self.positive))
        positives, negatives, self.n_groups_skipped = self._classes(segments)
        self.n_groups = len(positives.starts)
        top = _Side(negatives, positives, +1.0, self.price, outer_is_positive=False)
        bottom = _Side(positives, negatives, -1.0, self.price, outer_is_positive=True)
        weighted_sides = {
            "top": [(1.0, top)],
            "bottom": [(1.0, bottom)],
            "both": [(1.0, top), (balance, bottom)],
        }
        self._sides: list[tuple[float, _Side]] = weighted_sides[side]

    def _classes(self, segments: Segments) -> tuple[_Class, _Class, int]:
        """Positives and negatives of positive weight, in the groups that have both."""
        order, group = segments.order, np.repeat(np.arange(len(segments)), np.diff(segments.indptr))
        label = self.positive[order]
        weighty = np.ones(len(order), bool) if self.log_weight is None else self.log_weight[order] > -np.inf
        counts = [np.bincount(group[weighty & (label == c)], minlength=len(segments)) for c in (True, False)]
        usable = (counts[0] > 0) & (counts[1] > 0)
        if not usable.any():
            raise InputError(
                "ranking needs rows of both classes, with positive weight, in at least one group"
            )
        classes = []
        for c, count in zip((True, False), counts, strict=True):
            rows = order[weighty & (label == c) & usable[group]]
            log_weight = np.zeros(1) if self.log_weight is None else self.log_weight[rows]
            count = count[usable]
            classes.append(_Class(rows, np.cumsum(count) - count, count, log_weight))
        return classes[0], classes[1], int((~usable).sum())

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient with respect to the scores."""
        value, grad = 0.0, np.zeros(len(scores))
        with np.errstate(over="ignore", invalid="ignore"):
            for factor, side in self._sides:
                state = side.evaluate(scores)
                value += factor * float(state.value.mean())
                grad += factor / len(state.value) * side.gradient(state, len(scores))
        return value, grad

    def hessian(self, scores: np.ndarray) -> list[tuple[float, np.ndarray, np.ndarray, np.ndarray]]:
        """Terms ``factor·(diag(d) + U·S·Uᵀ)`` whose sum is the Hessian, U with three columns; one group only."""
        with np.errstate(over="ignore", invalid="ignore"):
            return [
                (factor, *side.hessian(side.evaluate(scores), len(scores))) for factor, side in self._sides
            ]

    @property
    def streams(self) -> bool:
        """Whether :meth:`stream` can be used: one group, and a price that the row kernel knows."""
        return self.n_groups == 1 and self.n_groups_skipped == 0 and _row_kernel_knows(self.price)

    def stream(self, sums: RowSummer) -> tuple[float, np.ndarray]:
        """Value and gradient for a model that can sum its rows by their scores."""
        parts = [(factor, *side.stream(sums)) for factor, side in self._sides]
        value = sum(factor * v for factor, v, _ in parts)
        return float(value), np.sum([factor * g for factor, _, g in parts], axis=0)

    @property
    def total(self) -> float:
        """Size of the gradient's natural unit: 1 for ``log R``, the weight of the priced items for ``R``."""
        if self.price.log_convex:
            return 1.0
        return sum(
            f * float(np.exp(s.outer.log_weight + np.zeros(len(s.outer.rows))).sum()) for f, s in self._sides
        )

    @property
    def separable_below(self) -> float:
        """A value below this calls for a look at :meth:`separated`: it takes pairs that are no longer misranked."""
        return sum(factor * side.price_of_one_misrank() for factor, side in self._sides)

    def separated(self, scores: np.ndarray) -> bool:
        """Whether no group has a positive below a negative, and some group has all of them strictly above.

        Growing such scores lowers the objective for ever: without a penalty there is no finite minimiser.
        """
        side = self._sides[0][1]
        lowest = np.minimum.reduceat(side.sign * scores[side.inner.rows], side.inner.starts)
        highest = np.maximum.reduceat(side.sign * scores[side.outer.rows], side.outer.starts)
        return bool(np.all(lowest >= highest) and np.any(lowest > highest))


def _row_kernel_knows(price: Price) -> bool:
    return price.name in ("power", "identity") or isinstance(price, Log1p)


def _log_weights(sample_weight: np.ndarray | None) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=float)
    if (weight < 0).any():
        raise InputError(
            f"sample_weight is negative in row {int((weight < 0).argmax())}: weights must be >= 0"
        )
    with np.errstate(divide="ignore"):
        return np.log(weight)
