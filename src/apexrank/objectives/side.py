"""One side of a push: a price on each outer item's height over the inner items.

Top: outer negatives, inner positives, sign +1. Bottom is the same with the classes swapped and the scores negated,
``Σ_i g(Σ_k ℓ(f_i − g_k))``. With ``x = sign·s`` of the inner and ``t = sign·s`` of the outer items the height of an
outer item is always ``r_k = Σ_i u_i ℓ(x_i − t_k)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from apexrank.kernels.pairsums import HingeSums, LogisticSums
from apexrank.kernels.rows import RowSummer
from apexrank.losses import Hinge, Logistic, Loss, SquaredHinge
from apexrank.objectives.forms import Form, log_form
from apexrank.objectives.rows import ClassRows
from apexrank.prices import Price


class State(NamedTuple):
    """A side at given scores: value of each group, derivatives with respect to x and t, and ``log r``."""

    value: np.ndarray
    by_inner: np.ndarray
    by_outer: np.ndarray
    log_r: np.ndarray


class Scatter(NamedTuple):
    """A sum ``Σ c_i·(x_i − centre)(x_i − centre)ᵀ`` over the rows of one class.

    With t the exponent ``slope·s + shift``, c is ``u·e^t``, or ``u·σ(t)·σ(−t)`` for the softplus.
    """

    label: int
    slope: float
    shift: float
    centre: np.ndarray
    softplus: bool


@dataclass(frozen=True)
class Side:
    """Base class: what does not depend on the loss."""

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
        """``g(ℓ(0)) + Σ_k v_k·g(0)``, what a misranked pair of unit weight costs, in the form that is minimised.

        Minus infinity for a loss that reaches zero: its minimum is attained even when the data are separated.
        """
        if self.loss.reaches_zero:
            return -np.inf
        with np.errstate(divide="ignore"):
            tied, no_loss = self.price.log_value(np.array([np.log(self.loss.value(np.zeros(1)))[0], -np.inf]))
        log_risk = np.logaddexp(tied, no_loss + self.outer.log_total_weight)
        return float(self.form(log_risk, self.price.order)[0])


@dataclass(frozen=True)
class ExponentialSide(Side):
    """The exponential loss factorises, ``log r_k = LSE(−x) + t_k``: no sorting, and a Hessian of low rank."""

    def evaluate(self, scores: np.ndarray) -> State:
        outer, inner = self.outer, self.inner
        exponent = inner.log_weight - self.sign * scores[inner.rows]
        log_inner = inner.log_sum_exp(exponent)
        log_r = outer.spread(log_inner) + self.sign * scores[outer.rows]
        value, log_slope = self.risk(log_r)
        mass = np.exp(log_slope + log_r)
        softmax = np.exp(exponent - inner.spread(log_inner))
        return State(value, -inner.spread(outer.total(mass)) * softmax, mass, log_r)

    def hessian(self, state: State, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hessian ``diag(d) + U·S·Uᵀ`` with respect to the scores; one group only.

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
        """Value and gradient from sums over rows, without holding the scores; one group only."""
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
        ``M·Cov_a + Σ_k c_k·(x_k − μ)(x_k − μ)ᵀ``; with ``(1/p)·log R`` that is ``Cov_inner + p·Cov_outer``.
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
    """Any loss whose sums over pairs have a near-linear kernel: logistic, hinge, squared hinge."""

    def evaluate(self, scores: np.ndarray) -> State:
        outer, inner = self.outer, self.inner
        sums = PAIR_SUMS[type(self.loss)](
            self.sign * scores[inner.rows], inner.starts, self.sign * scores[outer.rows], outer.starts
        )
        weight = np.broadcast_to(np.exp(inner.log_weight), inner.rows.shape)
        r, slope = sums.forward(weight)
        with np.errstate(divide="ignore"):
            value, log_mass = self.risk(np.log(r))
        # where r = 0 no pair has a loss, and 0·∞ stands for 0
        mass = np.where(r > 0, np.exp(log_mass), 0.0)
        return State(value, weight * sums.backward(mass), -mass * slope, r)


PAIR_SUMS: dict[type[Loss], Callable[..., HingeSums | LogisticSums]] = {
    Logistic: LogisticSums,
    Hinge: HingeSums,
    SquaredHinge: HingeSums.squared,
}
