"""Push for p = ∞: only the highest negative counts, ``max_k Σ_i ℓ(f_i − g_k) = Σ_i ℓ(f_i − max_k g_k)``.

The maximum is smoothed by multipliers, without sorting: value, gradient and Hessian cost O(I + K) for every loss.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from apexrank.errors import InputError
from apexrank.losses import Exponential, Hinge, Logistic, Loss, SquaredHinge
from apexrank.objectives.base import ClassRows
from apexrank.objectives.push import Push
from apexrank.prices import Power

SHARPEN = 4.0  # factor by which smoothing decreases in each round of multipliers
CURVATURES = {
    Logistic: lambda z: expit(z) * expit(-z),
    SquaredHinge: lambda z: 2.0 * (z < 1.0),
}


class _Fit(NamedTuple):
    """Inner items at given margins: value and dual value of each group, ``−∂/∂z`` and ``∂²/∂z²`` of each item."""

    value: np.ndarray
    dual: np.ndarray
    pull: np.ndarray
    curvature: np.ndarray


@dataclass(frozen=True)
class _LogExponential:
    """``log Σ_i u_i e^{−(f_i − τ)} = LSE(−f) + τ``; the dual value is the entropy of ``a = softmax(−f)``."""

    in_log: ClassVar[bool] = True

    def value(self, inner: ClassRows, f: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return inner.log_sum_exp(inner.log_weight - f) + tau

    def evaluate(self, inner: ClassRows, f: np.ndarray, tau: np.ndarray) -> _Fit:
        lse = inner.log_sum_exp(inner.log_weight - f)
        a = np.exp(inner.log_weight - f - inner.spread(lse))
        a = a / inner.spread(inner.total(a))  # large scores leave rounding errors, and a dual point sums to 1
        return _Fit(lse + tau, lse + inner.total(a * f), a, a)

    def moved(self, inner: ClassRows, f: np.ndarray, tau: np.ndarray) -> _LogExponential:
        return self


@dataclass(frozen=True)
class _SmoothSum:
    """``Σ_i u_i ℓ(f_i − τ)`` of a smooth loss; by Fenchel–Young its dual value is ``Σ_i (u_i ℓ(z_i) + a_i z_i)``."""

    in_log: ClassVar[bool] = False
    loss: Loss

    def value(self, inner: ClassRows, f: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return inner.total(np.exp(inner.log_weight) * self.loss.value(f - inner.spread(tau)))

    def evaluate(self, inner: ClassRows, f: np.ndarray, tau: np.ndarray) -> _Fit:
        u, z = np.exp(inner.log_weight), f - inner.spread(tau)
        value, a = u * self.loss.value(z), -u * self.loss.slope(z)
        curvature = u * CURVATURES[type(self.loss)](z)
        return _Fit(inner.total(value), inner.total(value + a * z), a, curvature)

    def moved(self, inner: ClassRows, f: np.ndarray, tau: np.ndarray) -> _SmoothSum:
        return self


@dataclass(frozen=True)
class _HingeSum(_SmoothSum):
    """Hinge sum with its kink rounded over a width δ around the multipliers c of the previous round.

    ``max_{0≤a≤1} a·(1 − z) − (δ/2)·(a − c)²`` is a proximal step on the dual, whose value is ``Σ_i u_i a_i``.
    """

    width: float = 1.0
    centre: Any = 0.0

    def _multipliers(self, inner: ClassRows, f: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slack = 1.0 - f + inner.spread(tau)
        return slack, np.clip(self.centre + slack / self.width, 0.0, 1.0)

    def evaluate(self, inner: ClassRows, f: np.ndarray, tau: np.ndarray) -> _Fit:
        u = np.exp(inner.log_weight)
        slack, a = self._multipliers(inner, f, tau)
        value = u * (a * slack - 0.5 * self.width * (a - self.centre) ** 2)
        curvature = u * ((a > 0) & (a < 1)) / self.width
        return _Fit(inner.total(value), inner.total(u * a), u * a, curvature)

    def moved(self, inner: ClassRows, f: np.ndarray, tau: np.ndarray) -> _HingeSum:
        return replace(self, width=self.width / SHARPEN, centre=self._multipliers(inner, f, tau)[1])


def _fit_for(loss: Loss) -> Any:
    if isinstance(loss, Exponential):
        return _LogExponential()
    if isinstance(loss, Hinge):
        return _HingeSum(loss)
    if type(loss) in CURVATURES:
        return _SmoothSum(loss)
    raise InputError(f"p = inf cannot be fitted with the {loss.name} loss")


class _State(NamedTuple):
    fit: _Fit
    tau: np.ndarray
    log_q: np.ndarray


@dataclass(frozen=True)
class _Top:
    """One side: the ``inner`` items against a smooth maximum over the ``outer`` ones.

    ``τ = (1/β)·log Σ_k π_k e^{β·g_k}`` with multipliers π; its gradient q = softmax(β·g + log π) is the next π.
    """

    outer: ClassRows
    inner: ClassRows
    sign: float
    fit: Any
    beta: float = 1.0
    log_prior: Any = 0.0

    def split(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores = np.asarray(scores, dtype=float)
        return self.sign * scores[self.inner.rows], self.sign * scores[self.outer.rows]

    def evaluate(self, scores: np.ndarray) -> _State:
        f, g = self.split(scores)
        exponent = self.beta * g + self.log_prior
        lse = self.outer.log_sum_exp(exponent)
        tau, log_q = lse / self.beta, exponent - self.outer.spread(lse)
        log_q = log_q - self.outer.spread(self.outer.log_sum_exp(log_q))
        return _State(self.fit.evaluate(self.inner, f, tau), tau, log_q)

    def limit(self, scores: np.ndarray) -> np.ndarray:
        f, g = self.split(scores)
        return self.fit.value(self.inner, f, self.outer.highest(g))

    def gradient(self, state: _State, n: int) -> np.ndarray:
        grad = np.zeros(n)
        total = self.outer.spread(self.inner.total(state.fit.pull))
        grad[self.outer.rows] = self.sign * total * np.exp(state.log_q)
        grad[self.inner.rows] = -self.sign * state.fit.pull
        return grad

    def hessian(self, state: _State, n: int) -> tuple[np.ndarray, Any, Any]:
        """``diag(d) + U·S·Uᵀ``; U has two columns per group: the curvatures c and the softmax q.

        With A = Σ a and C = Σ c, the block of a group is ``diag(c) + A·β·diag(q) − cqᵀ − qcᵀ + (C − A·β)·qqᵀ``, and in
        logarithms also minus ``∇∇ᵀ`` with ∇ = (−c, q).
        """
        c, q, groups = state.fit.curvature, np.exp(state.log_q), np.arange(len(state.tau))
        beta_a = self.beta * self.inner.total(state.fit.pull)
        diagonal = np.zeros(n)
        diagonal[self.inner.rows], diagonal[self.outer.rows] = c, self.outer.spread(beta_a) * q
        rows = np.concatenate([self.inner.rows, self.outer.rows])
        columns = np.concatenate([self.inner.spread(2 * groups), self.outer.spread(2 * groups + 1)])
        U = sparse.csr_array((np.concatenate([c, q]), (rows, columns)), shape=(n, 2 * len(groups)))
        log = float(self.fit.in_log)
        corner = self.inner.total(c) - beta_a - log
        main = np.column_stack([np.full_like(corner, -log), corner]).ravel()
        beside = np.tile([log - 1.0, 0.0], len(groups))[:-1]
        S = sparse.diags_array([beside, main, beside], offsets=[-1, 0, 1], format="csr")
        return diagonal, U, S

    def sharpened(self, scores: np.ndarray) -> _Top:
        """Reduce the smoothing, centred on the multipliers at these scores."""
        state = self.evaluate(scores)
        fit = self.fit.moved(self.inner, self.split(scores)[0], state.tau)
        return replace(self, fit=fit, beta=SHARPEN * self.beta, log_prior=state.log_q)


class InfinitePush(Push):
    """Push with p = ∞ (R_max, infinite push) as a smoothed function of the scores, for any loss in O(I + K).

    It is ``Σ_i u_i ℓ(f_i − max_k g_k)``, or for the exponential loss its logarithm ``LSE(−f) + max g``: the limit of
    the objectives of :class:`Push` with a power price. The weight of a negative does not matter as long as it is
    positive. If the classes overlap strongly, equal scores for all rows (w = 0) are the minimum: any direction raises
    the highest negative by more than the mean gain of the positives.

    :meth:`value_and_grad` smooths the maximum (and the kink of the hinge); :meth:`sharpened` reduces the smoothing,
    centred on the multipliers of the last solution (the exponential method of multipliers, Tseng & Bertsekas 1993), so
    a moderate β suffices; :meth:`limit` is the exact value, and :meth:`dual_value` a lower bound for any penalty.

    Parameters
    ----------
    positive, loss, side, balance, sample_weight, groups
        As in :class:`Push`; each group has its own maximum.
    beta : float
        The smooth maximum is ``(1/β)·LSE(β·g)``.

    Examples
    --------
    >>> objective = InfinitePush([True, False, False], loss="squared_hinge", beta=100.0)
    >>> value, gradient = objective.value_and_grad(np.array([1.0, 0.5, 0.0]))
    >>> round(value, 6), objective.limit(np.array([1.0, 0.5, 0.0]))
    (0.25, 0.25)
    """

    has_hessian = True
    streams = False
    is_smoothed = True

    def __init__(
        self,
        positive: np.ndarray,
        *,
        loss: str | Loss = "exponential",
        side: str = "top",
        balance: float = 1.0,
        beta: float = 1.0,
        sample_weight: np.ndarray | None = None,
        groups: np.ndarray | None = None,
    ) -> None:
        self._common: dict[str, Any] = {
            "side": side,
            "balance": balance,
            "sample_weight": sample_weight,
            "groups": groups,
        }
        super().__init__(positive, loss=loss, price="identity", **self._common)
        self.has_kinks = False  # each round of multipliers is smooth
        fit = _fit_for(self.loss)
        self._tops = [
            (factor / self.n_groups, _Top(side_.outer, side_.inner, side_.sign, fit, beta))
            for factor, side_ in self._sides
        ]

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Smoothed objective and its gradient with respect to the scores."""
        value, grad = 0.0, np.zeros(len(scores))
        with np.errstate(over="ignore", invalid="ignore"):
            for factor, top in self._tops:
                state = top.evaluate(scores)
                value += factor * float(state.fit.value.sum())
                grad += factor * top.gradient(state, len(scores))
        return value, grad

    def hessian(self, scores: np.ndarray) -> list[tuple[float, np.ndarray, Any, Any]]:
        """Terms ``factor·(diag(d) + U·S·Uᵀ)`` whose sum is the Hessian; U has two sparse columns per group."""
        with np.errstate(over="ignore", invalid="ignore"):
            return [(factor, *top.hessian(top.evaluate(scores), len(scores))) for factor, top in self._tops]

    def limit(self, scores: np.ndarray) -> float:
        """The objective without smoothing."""
        return sum(factor * float(top.limit(scores).sum()) for factor, top in self._tops)

    def dual_value(self, scores: np.ndarray) -> float:
        """``−F*(∇)``: conjugate of the unsmoothed objective at the gradient of the smoothed one.

        The gradient is dual feasible: the pulls a of the inner items lie in the domain of the conjugate losses, the
        outer q ≥ 0, and both have the same sum.
        """
        return sum(factor * float(top.evaluate(scores).fit.dual.sum()) for factor, top in self._tops)

    def sharpened(self, scores: np.ndarray) -> InfinitePush:
        """The same objective with less smoothing, centred on the multipliers at these scores."""
        sharper = copy(self)
        sharper._tops = [(factor, top.sharpened(scores)) for factor, top in self._tops]
        return sharper

    def finite(self, p: float) -> Push:
        """Push with a finite p and the exponential loss on the same rows."""
        return Push(self.positive, price=Power(p), **self._common)

    @cached_property
    def total(self) -> float:
        """Natural unit of value and gradient: 1 in logarithms, otherwise the value at equal scores."""
        return 1.0 if isinstance(self.loss, Exponential) else self.limit(np.zeros(len(self.positive)))
