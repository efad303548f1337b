"""The push for boosted trees: two classes, and the top of each list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from apexrank.checks import check_finite
from apexrank.errors import InputError
from apexrank.losses import LOSSES, Exponential, Loss
from apexrank.models.boosting.base import BoosterObjective
from apexrank.models.boosting.rows import TWO_ROWS, Judged
from apexrank.objectives import InfinitePush, PClassification, Push
from apexrank.prices import Power


@dataclass(frozen=True, eq=False)
class PushObjective(BoosterObjective):
    """P-Norm Push (Rudin 2009) for boosted trees; rows with a label above 0 are the positives.

    It is :class:`apexrank.objectives.Push`, ``LSE(−f) + (1/p)·LSE(p·g)`` for the exponential loss. With
    a = softmax(−f) and q = softmax(p·g) its Hessian is ``diag(a) − a·aᵀ`` and ``p·(diag(q) − q·qᵀ)``, so a and p·q
    are upper bounds; a leaf of positives moves by the learning rate, one of negatives by 1/p of it. Other losses have
    ``R^{1/p}``, and p·|slope| bounds the diagonal for the logistic one, since ``ℓ'' ≤ |ℓ'| ≤ ℓ``. Hinge losses take it
    as well, though it is no bound: a step too far only reaches where nothing is to pay.

    Parameters
    ----------
    p : float
        The larger, the more only the top of the list counts; 1 is RankBoost's objective. ``inf`` counts the highest
        negative alone, its maximum smoothed with ``beta``.
    loss : {"exponential", "logistic", "squared_hinge", "hinge"} or atom
    side : {"top", "bottom", "both"}
    balance : float
        Weight of the bottom for "both".
    price : {"power", "log1p"}
        "log1p" is the discount of the IR Push, without a p; exponential loss only.
    beta : float
        Of p = ∞: the maximum is ``(1/β)·LSE(β·g)``.
    groups : array-like, optional
        See :class:`BoosterObjective`.

    Examples
    --------
    >>> objective = PushObjective(p=4)
    >>> slope, curvature = objective([1, 0, 0], [0.0, 0.0, 0.0])
    >>> slope.round(3).tolist(), curvature.round(3).tolist()
    ([-0.6, 0.3, 0.3], [0.6, 1.2, 1.2])
    """

    p: float = 4.0
    loss: str | Loss = "exponential"
    side: str = "top"
    balance: float = 1.0
    price: str = "power"
    beta: float = 16.0

    def __post_init__(self) -> None:
        if self.price not in ("power", "log1p"):
            raise InputError(f"unknown price {self.price!r}: boosted trees take power or log1p")
        if self.p != np.inf:
            check_finite("p", self.p, 1)
        check_finite("beta", self.beta, 1)
        self._objective(TWO_ROWS)  # refuses what does not go together before there are any data

    def _objective(self, rows: Judged) -> Any:
        common: dict[str, Any] = {
            "loss": self.loss,
            "side": self.side,
            "balance": self.balance,
            "sample_weight": rows.weight,
            "groups": rows.groups,
        }
        if self.price == "log1p":
            return Push(rows.y > 0, price="log1p", **common)
        if self.p == np.inf:
            return InfinitePush(rows.y > 0, beta=self.beta, **common)
        return Push(rows.y > 0, price=Power(self.p), **common)

    @property
    def _order(self) -> float:
        """Curvature of the outer class in units of its slope."""
        if self.price == "log1p":
            return 1.0
        is_exponential = isinstance(LOSSES.get(self.loss), Exponential)
        # other losses of the highest negative's score are curved themselves, by at most their slope
        return self.p if self.p != np.inf else self.beta + (not is_exponential)

    def _slopes(self, objective: Any, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grad = objective.value_and_grad(scores)[1]
        inner = np.zeros(len(grad), dtype=bool)
        if self.side != "both" and isinstance(LOSSES.get(self.loss), Exponential):
            inner = objective.positive == (self.side == "top")
        return grad, np.abs(grad) * np.where(inner, 1.0, self._order)


@dataclass(frozen=True, eq=False)
class PClassificationObjective(BoosterObjective):
    """P-Classification (Ertekin & Rudin 2011) for boosted trees: the push as a sum of exponentials over rows.

    It is :class:`apexrank.objectives.PClassification`, ``min_b Σ_i e^{−(f_i + b)} + (1/p)·Σ_k e^{p(g_k + b)}``. For
    the best b the curvatures of the sum, |slope| for positives and p·|slope| for negatives, bound the Hessian: to
    minimise over b only takes curvature away. It ranks as :class:`PushObjective` does, but slope and curvature fall
    with the objective, so that a least curvature of a leaf ends the growth of trees.

    Parameters
    ----------
    p : float
        As in :class:`PushObjective`, finite.
    groups : array-like, optional
        See :class:`BoosterObjective`.

    Examples
    --------
    >>> slope, curvature = PClassificationObjective(p=1)([1, 0, 0], [0.0, 0.0, 0.0])
    >>> slope.tolist(), curvature.tolist()
    ([-1.5, 0.75, 0.75], [1.5, 0.75, 0.75])
    """

    p: float = 4.0

    def __post_init__(self) -> None:
        check_finite("p", self.p, 1)

    def _objective(self, rows: Judged) -> PClassification:
        push = Push(rows.y > 0, price=Power(self.p), sample_weight=rows.weight, groups=rows.groups)
        return PClassification(push)

    def _slopes(self, objective: PClassification, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grad = objective.value_and_grad(scores)[1]
        return grad, np.abs(grad) * np.where(objective.positive, 1.0, self.p)
