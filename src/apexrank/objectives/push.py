"""Ranking with a push: ``R = Σ_k g(Σ_i ℓ(f_i − g_k))`` as a function of the scores (JMLR 2009, sec. 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from apexrank.checks import check_finite
from apexrank.errors import InputError
from apexrank.groups import segment
from apexrank.kernels.rows import RowSummer
from apexrank.losses import LOSSES, Exponential, Loss
from apexrank.objectives.base import HessianTerm, Objective
from apexrank.objectives.forms import form_of, log_form, natural_count
from apexrank.objectives.rows import log_weights, two_classes
from apexrank.objectives.side import ExponentialSide, PairSumSide
from apexrank.prices import PRICES, Price

STREAMED_PRICES = ("power", "identity", "log1p")


class Push(Objective):
    """The push as a convex function of the scores, near-linear in the number of rows.

    What is minimised is ``R = Σ_k g(Σ_i ℓ(f_i − g_k))`` in the form that is convex (:func:`form_of`): with the
    exponential loss and the power price ``(1/p)·log R = LSE(−f) + (1/p)·LSE(p·g)``, with other losses ``R^{1/p}``.

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
        check_finite("balance", balance, 0)
        self.positive = np.asarray(positive, dtype=bool)
        self.loss, self.price = LOSSES.get(loss), PRICES.get(price)
        self.form = form_of(self.loss, self.price)
        self.log_weight = log_weights(sample_weight)
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
        if side not in weighted:
            raise InputError(f"unknown side {side!r}: use one of {', '.join(weighted)}")
        self._sides: list[tuple[float, Any]] = weighted[side]  # of ExponentialSide or PairSumSide

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
    def has_hessian(self) -> bool:  # type: ignore[override]
        """Whether :meth:`hessian` can be used: exponential loss and one group."""
        return self.n_groups == 1 and isinstance(self.loss, Exponential)

    def hessian(self, scores: np.ndarray) -> list[HessianTerm]:
        """Terms ``factor·(diag(d) + U·S·Uᵀ)`` whose sum is the Hessian, U with three columns."""
        scores = np.asarray(scores, dtype=float)
        with np.errstate(over="ignore", invalid="ignore"):
            return [
                (factor, *side.hessian(side.evaluate(scores), len(scores))) for factor, side in self._sides
            ]

    @property
    def streams(self) -> bool:  # type: ignore[override]
        """Whether :meth:`stream` can be used: exponential loss, one group, a price that the row kernel knows."""
        return self.has_hessian and self.n_groups_skipped == 0 and self.price.name in STREAMED_PRICES

    def stream(self, sums: RowSummer) -> tuple[float, np.ndarray]:
        """Value and gradient for a model that can sum its rows by their scores."""
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

    @property
    def count(self) -> float:
        """1 for ``log R``; otherwise R or its root at equal scores, in units of the loss of a tied pair."""
        return natural_count(self)

    @property
    def priced_weight(self) -> float:
        """Weight of the priced rows, mean over the groups and sum over the sides."""
        return sum(
            factor * float(np.exp(side.outer.log_weight).sum()) / self.n_groups
            for factor, side in self._sides
        )

    @property
    def bounded_below(self) -> bool:  # type: ignore[override]
        return self.form is not log_form or self.price.name == "exponential"

    @property
    def total(self) -> float:
        """Natural unit of value and gradient: 1 for ``log R``, the value of all-equal scores otherwise."""
        return 1.0 if self.form is log_form else self.value_and_grad(np.zeros(len(self.positive)))[0]

    def example_weights(self, scores: np.ndarray) -> np.ndarray:
        """Weight of each example in the next round of boosting, summing to 1 in each class.

        The papers' pair weights ``d̃_ik = d_ik·(Σ_i' d_i'k)^{p−1}`` (JMLR 2009, Fig. 2), summed over the other
        class: for the exponential loss and the power price ``softmax(−f)`` and ``softmax(p·g)``.
        """
        weight = np.abs(self.value_and_grad(scores)[1])
        return weight / np.where(self.positive, weight[self.positive].sum(), weight[~self.positive].sum())

    @property
    def separable_below(self) -> float:  # type: ignore[override]
        """A value below this calls for a look at :meth:`separated`: it takes pairs that are no longer misranked."""
        return sum(factor * side.price_of_one_misrank() for factor, side in self._sides)

    def separated(self, scores: np.ndarray) -> bool:
        """Whether no group has a positive below a negative, and some group has all of them strictly above.

        Growing such scores lowers the objective for ever: without a penalty there is no finite minimiser.
        """
        side = self._sides[0][1]
        lowest = -side.inner.highest(-side.sign * scores[side.inner.rows])
        highest = side.outer.highest(side.sign * scores[side.outer.rows])
        return bool(np.all(lowest >= highest) and np.any(lowest > highest))
