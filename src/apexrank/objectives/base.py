"""Base classes of objectives, convex forms of a loss with a price, and sums over the rows of a class."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from apexrank.errors import InputError
from apexrank.losses import LOSSES, Exponential, Hinge, Loss, SmoothHinge
from apexrank.prices import PRICES, Identity, Power, Price
from apexrank.validation import Segments

HessianTerm = tuple[float, np.ndarray, Any, Any]
"""``factor, d, U, S`` of a term ``factor·(diag(d) + U·S·Uᵀ)`` in a Hessian with respect to the scores."""


class Objective:
    """Function of the scores of n rows, for given labels, groups and weights.

    A subclass defines ``value_and_grad``, ``positive`` and ``n_groups``, and declares its capabilities by attributes.

    Attributes
    ----------
    has_hessian, streams : bool
        Whether :meth:`hessian` and :meth:`stream` are available.
    is_convex, shift_invariant : bool
        Whether it is convex, and unchanged when all scores are shifted by a constant.
    lower_bound : float
        A number that it never falls below; minus infinity if there is none. A lasso requires one.
    is_exponential : bool
        Whether it is a multiple of ``e^{κV}`` with V positively homogeneous at infinity; this tightens a lasso's gap.
    has_kinks : bool
        Whether it has kinks, which :meth:`smoothed` rounds.
    is_smoothed : bool
        Whether it smooths a function with a kink; :class:`~apexrank.solvers.Continuation` finds the exact minimum.
    log_weight : array, optional
        Logarithm of the rows' weights, for :meth:`stream`.
    over_groups : {"", "sum", "mean"}
        Whether it is the sum or the mean of the same objective over each of its ``n_groups`` groups.
    lists : LevelOrder, optional
        Lists within which a design measures the spread of its columns.
    separable_below : float
        Threshold on the value below which :meth:`separated` is checked.
    """

    has_hessian = True
    streams = False
    is_convex = True
    shift_invariant = True
    lower_bound = 0.0
    is_exponential = False
    has_kinks = False
    is_smoothed = False
    over_groups = ""
    log_weight: np.ndarray | None = None
    lists: Any = None
    separable_below = -np.inf
    positive: np.ndarray
    n_groups: int

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient with respect to the scores."""
        raise NotImplementedError

    def hessian(self, scores: np.ndarray) -> list[HessianTerm]:
        """Terms ``factor·(diag(d) + U·S·Uᵀ)`` whose sum is the Hessian with respect to the scores."""
        raise NotImplementedError

    def stream(self, sums: Any) -> tuple[float, np.ndarray]:
        """Value and gradient with respect to the coefficients, from sums over the rows (``RowSummer``)."""
        raise NotImplementedError

    def stream_hessian(self, sums: Any) -> np.ndarray:
        """Hessian with respect to the coefficients, from sums over the rows."""
        raise NotImplementedError

    def separated(self, scores: np.ndarray) -> bool:
        """Whether scaling up the scores decreases the objective without bound, so that there is no minimiser."""
        return False

    def smoothed(self, width: float) -> Objective:
        """Objective with rounded kinks: nowhere larger, and smaller by at most ``width/2`` of ``total``."""
        raise NotImplementedError

    @cached_property
    def total(self) -> float:
        """Natural unit of value, gradient and duality gap: the value at equal scores."""
        return abs(self.value_and_grad(np.zeros(len(self.positive)))[0]) or 1.0

    @property
    def count(self) -> float:
        """Divisor that makes the objective a mean over rows or groups."""
        return 1.0

    @property
    def group_divisor(self) -> int:
        """Divisor of the sum over the groups."""
        return self.n_groups if self.over_groups == "mean" else 1

    @property
    def curvature(self) -> float:
        """Natural unit of the curvature with respect to the scores."""
        return self.total


# ---------------------------------------------------------------- losses with prices

Form = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]
"""``form(log R, p)`` returns the value to minimise and the logarithm of its derivative with respect to R."""


def log_form(log_risk: np.ndarray, order: float) -> tuple[np.ndarray, np.ndarray]:
    """``(1/p)·log R``."""
    return log_risk / order, -log_risk - np.log(order)


def root_form(log_risk: np.ndarray, order: float) -> tuple[np.ndarray, np.ndarray]:
    """``R^{1/p}``."""
    return np.exp(log_risk / order), (1 / order - 1) * log_risk - np.log(order)


def plain_form(log_risk: np.ndarray, order: float) -> tuple[np.ndarray, np.ndarray]:
    """R itself."""
    return np.exp(log_risk), np.zeros_like(log_risk)


def form_of(loss: Loss, price: Price) -> Form:
    """Choose the convex form for a loss and a price; raise InputError if there is none.

    ========================= ======================== ==========================
    price                     exponential loss         logistic and hinge losses
    ========================= ======================== ==========================
    power                     ``(1/p)·log R``          ``R^{1/p}``
    identity                  ``log R``                R
    exponential               ``log R``                ``log R``
    log1p                     R                        not convex
    a user's                  R                        R, if convex
    ========================= ======================== ==========================

    ``R = Σ g(Σ ℓ)`` is convex if g never decreases and its elasticity ``1 + r·g''/g'`` is at least 0 for the
    exponential loss, 1/2 for the squared hinge and 1 for the others (1 means that g itself is convex). With two or more
    positives, no loss makes a price that decreases somewhere convex (docs/notes-on-the-papers.md).
    """
    if loss.least_elasticity == np.inf:
        raise InputError(f"the {loss.name} loss evaluates rankings but cannot fit them: use another loss")
    if (elasticity := price.least_elasticity()) < loss.least_elasticity - 1e-6:
        if price.falls():
            hint = "no loss makes a falling price convex, use one that never falls"
        elif elasticity < Exponential.least_elasticity - 1e-6:
            hint = "use a price g for which g(exp(t)) is convex in t"
        else:
            hint = "use the exponential loss, or a steeper price"
        raise InputError(
            f"the {price.name} price with the {loss.name} loss is not convex in the scores: {hint}"
        )
    if isinstance(loss, Exponential):
        return log_form if price.log_convex else plain_form
    if isinstance(price, Power):
        return root_form
    return log_form if price.name == "exponential" else plain_form


class PricedObjective(Objective):
    """Base class of pairwise objectives with a loss and a price, in their convex form (:func:`form_of`).

    A subclass defines ``priced_weight``, the weight of the priced rows averaged over the groups, and ``lower_bound``,
    the value if no pair has a loss.
    """

    over_groups = "mean"
    priced_weight: float

    def __init__(self, loss: str | Loss, price: str | Price, sample_weight: np.ndarray | None) -> None:
        self.loss, self.price = LOSSES.get(loss), PRICES.get(price)
        self.form = form_of(self.loss, self.price)
        self.log_weight = log_weights(sample_weight)
        self.has_kinks = isinstance(self.loss, Hinge)

    def smoothed(self, width: float) -> Self:
        other = copy(self)
        other.has_kinks = False
        other._take_loss(SmoothHinge(width))
        return other

    def _take_loss(self, loss: Loss) -> None:
        """Replace the loss, keeping the natural units."""
        raise NotImplementedError

    @cached_property
    def total(self) -> float:
        """Natural unit: 1 for ``log R``, otherwise the value at equal scores."""
        return 1.0 if self.form is log_form else self.value_and_grad(np.zeros(len(self.positive)))[0]

    @property
    def count(self) -> float:
        """Divisor that makes the objective independent of the number of rows.

        1 for ``log R``. For the power and identity prices, the value at equal scores divided by the loss of a tied
        pair, ``I·K^{1/p}`` and ``I·K`` for I positives and K negatives; for other prices ``priced_weight``.
        """
        if self.form is log_form:
            return 1.0
        if isinstance(self.price, Power | Identity):
            return float(self.total / self.loss.value(np.zeros(1))[0])
        return self.priced_weight

    def _without_loss(self, items: ClassRows) -> np.ndarray:
        """Value of each group if no pair of these priced items has a loss."""
        with np.errstate(divide="ignore", invalid="ignore"):
            free = float(self.price.log_value(np.array([-np.inf]))[0])
            free = (
                -np.inf if np.isnan(free) else free
            )  # a user's g(0) may be undefined, but no price is negative
            return self.form(items.log_sum_exp(free + items.log_weight), self.price.order)[0]

    def falls_forever(self, margins: np.ndarray) -> bool:
        """Whether the objective decreases without bound along these scores, given each group's smallest pair margin.

        As the scores grow by a factor t, ``(1/p)·log R`` of a group behaves like −t times its smallest margin, so the
        mean tends to minus infinity exactly if the mean margin is positive: one well-separated group compensates for
        others that overlap. The other forms are at least 0 in each group, and no group may have a misranked pair.
        """
        if self.lower_bound == -np.inf:
            return bool(margins.sum() > 0)
        return bool((margins >= 0).all() and (margins > 0).any())


# ---------------------------------------------------------------- rows of a class


@dataclass(frozen=True)
class ClassRows:
    """Row numbers of one class sorted by group, with the logarithm of their weights.

    Group q owns ``rows[starts[q]:starts[q + 1]]``; no group is empty.
    """

    rows: np.ndarray
    starts: np.ndarray
    log_weight: np.ndarray

    def spread(self, per_group: np.ndarray) -> np.ndarray:
        """Repeat a per-group value for each row of the group."""
        return np.repeat(per_group, np.diff(self.starts))

    def total(self, x: np.ndarray) -> np.ndarray:
        """Sum of each group."""
        return np.add.reduceat(x, self.starts[:-1])

    def highest(self, x: np.ndarray) -> np.ndarray:
        """Maximum of each group."""
        return np.maximum.reduceat(x, self.starts[:-1])

    def log_sum_exp(self, t: np.ndarray) -> np.ndarray:
        """``log Σ exp(t)`` of each group."""
        highest = self.highest(t)
        base = np.where(np.isfinite(highest), highest, 0.0)
        with np.errstate(divide="ignore"):
            return base + np.log(self.total(np.exp(t - self.spread(base))))


def two_classes(
    label: np.ndarray, segments: Segments, log_weight: np.ndarray | None
) -> tuple[ClassRows, ClassRows, int]:
    """Rows of positive weight with label True and False, in groups that have both, and the number of other groups."""
    order, group = segments.order, np.repeat(np.arange(len(segments)), np.diff(segments.indptr))
    log_weight = np.zeros(len(order)) if log_weight is None else log_weight[order]
    chosen = [(log_weight > -np.inf) & (label[order] == c) for c in (True, False)]
    counts = [np.bincount(group[mask], minlength=len(segments)) for mask in chosen]
    usable = (counts[0] > 0) & (counts[1] > 0)
    true, false = (
        ClassRows(
            order[mask & usable[group]],
            np.concatenate([[0], np.cumsum(count[usable])]),
            log_weight[mask & usable[group]],
        )
        for mask, count in zip(chosen, counts, strict=True)
    )
    return true, false, int((~usable).sum())


def log_weights(sample_weight: np.ndarray | None) -> np.ndarray | None:
    """Logarithm of the row weights; InputError if one is negative."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=float)
    if (weight < 0).any():
        raise InputError(
            f"`sample_weight` is negative in row {int((weight < 0).argmax())}: weights must be >= 0"
        )
    with np.errstate(divide="ignore"):
        return np.log(weight)
