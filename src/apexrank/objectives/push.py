"""Push objective ``R = Σ_k g(Σ_i ℓ(f_i − g_k))`` as a function of the scores (JMLR 2009, sec. 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from apexrank.errors import InputError
from apexrank.kernels.pairsums import HingeSums, LogisticSums, SmoothHingeSums
from apexrank.kernels.rows import RowSummer
from apexrank.losses import Exponential, Hinge, Logistic, Loss, SmoothHinge, SquaredHinge
from apexrank.objectives.base import ClassRows, Form, HessianTerm, PricedObjective, log_form, two_classes
from apexrank.prices import Identity, Power, Price
from apexrank.validation import check_choice, check_finite, segment

SIDES = ("top", "bottom", "both")
STREAMED_PRICES = ("power", "identity", "log1p")
LARGE_LOG = 1e4  # logarithm whose rounding, 1e-12, is a noticeable factor


class Push(PricedObjective):
    """Push as a convex function of the scores, near-linear in the number of rows.

    It minimises ``R = Σ_k g(Σ_i ℓ(f_i − g_k))`` in its convex form (:func:`form_of`): with the exponential loss and the
    power price ``(1/p)·log R = LSE(−f) + (1/p)·LSE(p·g)``, with other losses ``R^{1/p}``.

    Parameters
    ----------
    positive : array of bool
        True for the positives.
    loss, price : str or atom
    side : {"top", "bottom", "both"}
        ``top``: price on the height of each negative; ``bottom``: on the reverse height of each positive;
        ``both``: top + ``balance`` · bottom (JMLR 2009, sec. 7).
    sample_weight : array, optional
        Weights count as repetitions of a row.
    groups : array, optional
        The objective is the mean of the objectives of the groups. Groups without one of the two classes have no pairs
        and are skipped; ``n_groups_skipped`` counts them.

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
        check_finite("balance", balance, 0)
        self.positive = np.asarray(positive, dtype=bool)
        super().__init__(loss, price, sample_weight)
        segments = segment(groups, len(self.positive))
        positives, negatives, self.n_groups_skipped = two_classes(self.positive, segments, self.log_weight)
        self.n_groups = len(positives.starts) - 1
        if self.n_groups == 0:
            raise InputError(
                "ranking needs rows of both classes, with positive weight, in at least one group"
            )
        kind = ExponentialSide if isinstance(self.loss, Exponential) else PairSumSide
        shared = self.loss, self.price, self.form
        top = kind(negatives, positives, +1.0, False, *shared)
        bottom = kind(positives, negatives, -1.0, True, *shared)
        weighted = {"top": [(1.0, top)], "bottom": [(1.0, bottom)], "both": [(1.0, top), (balance, bottom)]}
        check_choice("side", side, weighted)
        self._sides: list[tuple[float, Any]] = weighted[side]  # sides are ExponentialSide or PairSumSide

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient with respect to the scores."""
        scores, value, grad = np.asarray(scores, dtype=float), 0.0, np.zeros(len(scores))
        with np.errstate(over="ignore", invalid="ignore"):
            for factor, side in self._sides:
                state = side.evaluate(scores)
                value += factor * float(state.value.mean())
                grad += factor / len(state.value) * side.gradient(state, len(scores))
        return value, grad

    @property
    def noise(self) -> float:
        """Variance of the group-averaged difference between the mean positive and the mean negative.

        For rows of unit variance: ``1/n₊ + 1/n₋`` without groups. Weights count as repetitions; a total weight below
        one row counts as one.
        """
        side = self._sides[0][1]
        counts = [np.maximum(each.total(np.exp(each.log_weight)), 1) for each in (side.outer, side.inner)]
        return float(sum((1 / count).sum() for count in counts)) / self.n_groups**2

    @property
    def has_hessian(self) -> bool:  # type: ignore[override]
        """Whether :meth:`hessian` is available: exponential loss and one group."""
        return self.n_groups == 1 and isinstance(self.loss, Exponential)

    def hessian(self, scores: np.ndarray) -> list[HessianTerm]:
        """Terms ``factor·(diag(d) + U·S·Uᵀ)`` whose sum is the Hessian; U has three columns."""
        scores = np.asarray(scores, dtype=float)
        with np.errstate(over="ignore", invalid="ignore"):
            return [
                (factor, *side.hessian(side.evaluate(scores), len(scores))) for factor, side in self._sides
            ]

    @property
    def streams(self) -> bool:  # type: ignore[override]
        """Whether :meth:`stream` is available: exponential loss, one group, a price supported by the row kernel."""
        return self.has_hessian and self.n_groups_skipped == 0 and self.price.name in STREAMED_PRICES

    def stream(self, sums: RowSummer) -> tuple[float, np.ndarray]:
        """Value and gradient for a model that can sum its rows by score."""
        parts = [(factor, *side.stream(sums)) for factor, side in self._sides]
        value = sum(factor * v for factor, v, _ in parts)
        return float(value), np.sum([factor * g for factor, _, g in parts], axis=0)

    def stream_hessian(self, sums: Any) -> np.ndarray:
        """Hessian with respect to the coefficients, from one more pass over the rows."""
        terms = [
            (factor * own, term) for factor, side in self._sides for own, term in side.stream_curvature(sums)
        ]
        return np.tensordot(
            [factor for factor, _ in terms], sums.scatter([term for _, term in terms]), axes=1
        )

    def _take_loss(self, loss: Loss) -> None:
        self._sides = [(factor, replace(side, loss=loss)) for factor, side in self._sides]

    @property
    def priced_weight(self) -> float:  # type: ignore[override]
        """Weight of the priced rows, averaged over the groups and summed over the sides."""
        return sum(
            factor * float(np.exp(side.outer.log_weight).sum()) / self.n_groups
            for factor, side in self._sides
        )

    @property
    def lower_bound(self) -> float:  # type: ignore[override]
        return sum(
            factor * float(self._without_loss(side.outer).mean())
            for factor, side in self._sides
            if factor > 0
        )

    def example_weights(self, scores: np.ndarray) -> np.ndarray:
        """Weight of each example in the next round of boosting, summing to 1 in each class.

        These are the papers' pair weights ``d̃_ik = d_ik·(Σ_i' d_i'k)^{p−1}`` (JMLR 2009, Fig. 2), summed over the
        other class: for the exponential loss and the power price ``softmax(−f)`` and ``softmax(p·g)``.
        """
        weight = np.abs(self.value_and_grad(scores)[1])
        return weight / np.where(self.positive, weight[self.positive].sum(), weight[~self.positive].sum())

    @property
    def separable_below(self) -> float:  # type: ignore[override]
        """Threshold on the value below which :meth:`separated` is checked."""
        return sum(factor * side.price_of_one_misrank() for factor, side in self._sides)

    def separated(self, scores: np.ndarray) -> bool:
        side = self._sides[0][1]
        lowest = -side.inner.highest(-side.sign * scores[side.inner.rows])
        return self.falls_forever(lowest - side.outer.highest(side.sign * scores[side.outer.rows]))


# ---------------------------------------------------------------- one side
#
# A side puts a price on the height of each outer item over the inner items. Top: outer negatives, inner positives, sign
# +1. Bottom is the same with the classes swapped and the scores negated, ``Σ_i g(Σ_k ℓ(f_i − g_k))``. With
# ``x = sign·s`` of the inner and ``t = sign·s`` of the outer items, the height of an outer item is always
# ``r_k = Σ_i u_i ℓ(x_i − t_k)``.


class State(NamedTuple):
    """State of a side at given scores: value of each group, derivatives with respect to x and t, and ``log r``."""

    value: np.ndarray
    by_inner: np.ndarray
    by_outer: np.ndarray
    log_r: np.ndarray


class Scatter(NamedTuple):
    """Sum ``Σ c_i·(x_i − centre)(x_i − centre)ᵀ`` over the rows of one class.

    With the exponent t = ``slope·s + shift``, c is ``u·e^t``, or ``u·σ(t)·σ(−t)`` for the softplus.
    """

    label: int
    slope: float
    shift: float
    centre: np.ndarray
    softplus: bool


@dataclass(frozen=True)
class Side:
    """Base class of sides, independent of the loss."""

    outer: ClassRows
    inner: ClassRows
    sign: float
    outer_is_positive: bool
    loss: Loss
    price: Price
    form: Form

    def evaluate(self, scores: np.ndarray) -> State:
        """Value and derivatives at the scores of all rows."""
        raise NotImplementedError

    def gradient(self, state: State, n: int) -> np.ndarray:
        """Gradient with respect to the scores of all n rows, summed over groups."""
        grad = np.zeros(n)
        grad[self.outer.rows] = self.sign * state.by_outer
        grad[self.inner.rows] = self.sign * state.by_inner
        return grad

    def risk(self, log_r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Value of each group, and ``log ∂value/∂r`` of each outer item."""
        log_risk = self.outer.log_sum_exp(self.price.log_value(log_r) + self.outer.log_weight)
        value, log_factor = self.form(log_risk, self.price.order)
        return value, self.price.log_slope(log_r) + self.outer.log_weight + self.outer.spread(log_factor)

    def price_of_one_misrank(self) -> float:
        """``g(ℓ(0)) + Σ_k v_k·g(0)``: the cost of a tied pair of unit weight, in the form that is minimised.

        Minus infinity for a loss that reaches zero: its minimum is attained even if the data are separated.
        """
        if self.loss.reaches_zero:
            return -np.inf
        with np.errstate(divide="ignore"):
            tied, no_loss = self.price.log_value(np.array([np.log(self.loss.value(np.zeros(1)))[0], -np.inf]))
        log_risk = np.logaddexp(tied, no_loss + np.log(np.exp(self.outer.log_weight).sum()))
        return float(self.form(log_risk, self.price.order)[0])


@dataclass(frozen=True)
class ExponentialSide(Side):
    """Side with the exponential loss, which factorises, ``log r_k = LSE(−x) + t_k``: no sorting, low-rank Hessian."""

    def evaluate(self, scores: np.ndarray) -> State:
        outer, inner = self.outer, self.inner
        exponent = inner.log_weight - self.sign * scores[inner.rows]
        log_inner = inner.log_sum_exp(exponent)
        log_r = outer.spread(log_inner) + self.sign * scores[outer.rows]
        value, log_slope = self.risk(log_r)
        mass = np.exp(log_slope + log_r)
        softmax = np.exp(exponent - inner.spread(log_inner))
        if np.abs(log_r).max(initial=0.0) > LARGE_LOG:
            # rounding of such a logarithm is a factor of all weights of its group
            softmax /= inner.spread(inner.total(softmax))
            if self.form is log_form and isinstance(self.price, Power | Identity):
                mass /= outer.spread(outer.total(mass))
        return State(value, -inner.spread(outer.total(mass)) * softmax, mass, log_r)

    def hessian(self, state: State, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hessian ``diag(d) + U·S·Uᵀ`` with respect to the scores; for one group only.

        With a the inner softmax, m the mass of the outer items, c = m·elasticity, M and C their sums and ∇ the
        gradient, it is ``diag(c) + M·diag(a) − caᵀ − acᵀ + (C − M)·aaᵀ``, and for ``log(R)/p`` also ``− p·∇∇ᵀ``.
        """
        a, c = np.zeros(n), np.zeros(n)
        M = state.by_outer.sum()
        a[self.inner.rows] = -state.by_inner / max(M, np.finfo(float).tiny)
        c[self.outer.rows] = state.by_outer * self.price.elasticity(state.log_r)
        C = c.sum()
        order = self.price.order if self.form is log_form else 0.0
        S = np.array([[0.0, -1.0, 0.0], [-1.0, C - M, 0.0], [0.0, 0.0, -order]])
        return c + M * a, np.column_stack([c, a, self.gradient(state, n)]), S

    def stream(self, sums: RowSummer) -> tuple[float, np.ndarray]:
        """Value and gradient from sums over rows, without storing the scores; for one group only."""
        out, inn = int(self.outer_is_positive), int(not self.outer_is_positive)
        if self.form is log_form:
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

    def stream_curvature(self, sums: Any) -> list[tuple[float, Scatter]]:
        """Terms ``factor·Σ c·(x − centre)(x − centre)ᵀ`` of the Hessian with respect to the coefficients.

        With a the inner softmax, μ its mean row, c = mass · elasticity of the outer rows and M their mass, it is
        ``M·Cov_a + Σ_k c_k·(x_k − μ)(x_k − μ)ᵀ``; for ``(1/p)·log R`` this is ``Cov_inner + p·Cov_outer``.
        """
        out, inn = int(self.outer_is_positive), int(not self.outer_is_positive)
        if self.form is log_form:
            slope = np.empty(2)
            slope[out], slope[inn] = self.sign * self.price.order, -self.sign
            both = sums.log_sum_exp(slope)
            return [
                (scale, Scatter(label, slope[label], -both.value[label], both.rows[label], False))
                for label, scale in ((inn, 1.0), (out, self.price.order))
            ]
        is_inner = np.arange(2) == inn
        inner = sums.log_sum_exp(np.full(2, -self.sign), active=is_inner)
        outer = sums.softplus(np.full(2, self.sign), shift=inner.value[inn], active=~is_inner)
        centre, shift = inner.rows[inn], inner.value[inn]
        return [
            (outer.mass[out], Scatter(inn, -self.sign, -shift, centre, False)),
            (1.0, Scatter(out, self.sign, shift, centre, True)),
        ]


@dataclass(frozen=True)
class PairSumSide(Side):
    """Side with any loss that has a near-linear kernel for sums over pairs: logistic, hinge, squared hinge."""

    def evaluate(self, scores: np.ndarray) -> State:
        outer, inner = self.outer, self.inner
        x, t = self.sign * scores[inner.rows], self.sign * scores[outer.rows]
        sums = pair_sums(self.loss, x, inner.starts, t, outer.starts)
        weight = np.broadcast_to(np.exp(inner.log_weight), inner.rows.shape)
        r, slope = sums.forward(weight)
        with np.errstate(divide="ignore"):
            value, log_mass = self.risk(np.log(r))
        # if r = 0 no pair has a loss, and 0·∞ must be 0
        mass = np.where(r > 0, np.exp(log_mass), 0.0)
        return State(value, weight * sums.backward(mass), -mass * slope, r)


PAIR_SUMS: dict[type[Loss], Callable[..., Any]] = {
    Logistic: LogisticSums,
    Hinge: HingeSums,
    SquaredHinge: HingeSums.squared,
}


def pair_sums(
    loss: Loss, x: np.ndarray, x_starts: np.ndarray, t: np.ndarray, t_starts: np.ndarray
) -> HingeSums | LogisticSums | SmoothHingeSums:
    """Sums of the loss over all pairs of sources x and targets t of a group."""
    if isinstance(loss, SmoothHinge):
        return SmoothHingeSums(x, x_starts, t, t_starts, loss.width)
    return PAIR_SUMS[type(loss)](x, x_starts, t, t_starts)
