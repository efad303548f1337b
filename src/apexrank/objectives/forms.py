"""Which function of R is minimised, and which combinations of loss and price are convex in the scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from apexrank.errors import InputError
from apexrank.losses import Exponential, Loss
from apexrank.prices import Identity, Power, Price

Form = Callable[[np.ndarray, float], tuple[np.ndarray, np.ndarray]]
"""``form(log R, p)`` gives the value to minimise and the logarithm of its derivative with respect to R."""


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
    """Choose the form for a loss and a price, and refuse what is not convex.

    ========================= ======================== ==========================
    price                     exponential loss         logistic and hinge losses
    ========================= ======================== ==========================
    power                     ``(1/p)·log R``          ``R^{1/p}``
    identity                  ``log R``                R
    exponential               ``log R``                ``log R``
    log1p                     R                        not convex
    a user's                  R                        R, if convex
    ========================= ======================== ==========================

    ``R = Σ g(Σ ℓ)`` is convex when the price's elasticity ``1 + r·g''/g'`` is at least 0 for the exponential loss, 1/2
    for the squared hinge and 1 for the others (1 means that g itself is convex).
    """
    if loss.least_elasticity == np.inf:
        raise InputError(f"the {loss.name} loss evaluates rankings, it cannot fit them: use another loss")
    if price.least_elasticity() < loss.least_elasticity - 1e-6:
        raise InputError(
            f"the {price.name} price with the {loss.name} loss is not convex in the scores: "
            "use the exponential loss, or a steeper price"
        )
    if isinstance(loss, Exponential):
        return log_form if price.log_convex else plain_form
    if isinstance(price, Power):
        return root_form
    return log_form if price.name == "exponential" else plain_form


def natural_count(objective: Any) -> float:
    """What a problem divides an objective with a loss and a price by, so that it does not grow with the rows.

    1 for ``log R``. For the power and the identity price the value at equal scores in units of the loss of a tied
    pair, ``I·K^{1/p}`` and ``I·K`` for I positives and K negatives; for other prices the mean over groups of the
    weight of the rows that are priced.
    """
    if objective.form is log_form:
        return 1.0
    if isinstance(objective.price, Power | Identity):
        return float(objective.total / objective.loss.value(np.zeros(1))[0])
    return objective.priced_weight
