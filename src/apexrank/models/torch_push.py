"""Pushes as PyTorch losses: the top of the list for any network that gives a score per row."""

from __future__ import annotations

from typing import Any

import numpy as np

from apexrank.checks import check_finite
from apexrank.errors import InputError
from apexrank.losses import LOSSES, Exponential, Loss
from apexrank.models.torch_rows import (
    OnHost,
    Rows,
    ScoreLoss,
    Tensor,
    checked_target,
    group_log_sum_exp,
    renumbered,
    to_numpy,
    torch,
    weighty_rows,
)
from apexrank.objectives.forms import form_of
from apexrank.objectives.infinite_push import InfinitePush
from apexrank.objectives.pairs import CrucialPairs
from apexrank.objectives.push import Push
from apexrank.prices import PRICES, Identity, Power, Price

SIDES = {"top": (1.0,), "bottom": (-1.0,), "both": (1.0, -1.0)}  # sign of the scores


class PushLoss(ScoreLoss):
    """The push of :class:`apexrank.objectives.Push` (JMLR 2009, sec. 2) as a loss of a network's scores.

    With f the scores of the positives (``target > 0``) and g those of the negatives it is, for the exponential loss and
    the power price, ``LSE(−f) + (1/p)·LSE(p·g)``: PyTorch operations on the device of the scores, differentiable as
    often as wanted. Other losses and prices have their sums over pairs computed on the host, with an exact gradient.

    Parameters
    ----------
    p : float, default 4
        How hard to push, at least 1.
    loss, price, side, balance
        As in :class:`apexrank.PNormPush`.

    Examples
    --------
    >>> import torch
    >>> from apexrank.models.torch import PushLoss
    >>> scores = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    >>> PushLoss(p=1)(scores, torch.tensor([1, 0, 0])).backward()
    >>> scores.grad.tolist()
    [-1.0, 0.5, 0.5]
    """

    def __init__(
        self,
        p: float = 4.0,
        *,
        loss: str | Loss = "exponential",
        price: str | Price = "power",
        side: str = "top",
        balance: float = 1.0,
    ) -> None:
        super().__init__()
        self.p, self.loss, self.price, self.side, self.balance = p, loss, price, side, balance
        self._price, self._of_pair = PRICES.get(price, p=p), LOSSES.get(loss)
        form_of(self._of_pair, self._price)
        check_finite("balance", balance, 0)
        if side not in SIDES:
            raise InputError(f"unknown side {side!r}: use one of {', '.join(SIDES)}")

    @property
    def is_native(self) -> bool:
        """Whether the loss stays on the device: exponential loss, power or identity price."""
        return isinstance(self._of_pair, Exponential) and isinstance(self._price, Power | Identity)

    def _loss(self, scores: Tensor, target: Any, groups: Any, weight: Any) -> Tensor:
        if not self.is_native:
            return super()._loss(scores, target, groups, weight)
        positive = torch.as_tensor(checked_target(target, len(scores)) > 0, device=scores.device)
        rows, positive = _two_classes(weighty_rows(scores, groups, weight), positive)
        s, log_weight, value = scores[rows.kept], rows.weight.log(), scores.new_zeros(())
        for sign in SIDES[self.side]:
            inner, outer = (positive, ~positive) if sign > 0 else (~positive, positive)
            part = _log_sums(log_weight - sign * s, inner, rows)
            order = self._price.order
            part = part + _log_sums(log_weight + order * sign * s, outer, rows) / order
            factor = self.balance if self.side == "both" and sign < 0 else 1.0
            value = value + factor * part.mean()
        return value

    def _objective(self, target: np.ndarray, groups: Any, weight: Any) -> Push:
        options: dict[str, Any] = {"loss": self._of_pair, "price": self._price, "side": self.side}
        return Push(target > 0, **options, balance=self.balance, sample_weight=weight, groups=groups)


def _two_classes(rows: Rows, positive: Tensor) -> tuple[Rows, Tensor]:
    """Rows of the groups that have both classes, and which of them are positive."""
    positive = positive[rows.kept]
    above = rows.total(positive.to(rows.weight))
    usable = (above > 0) & (rows.total(torch.ones_like(rows.weight)) > above)
    if not bool(usable.any()):
        raise InputError("ranking needs rows of both classes, with positive weight, in at least one group")
    chosen = usable[rows.group]
    kept = renumbered(rows.kept[chosen], rows.weight[chosen], rows.group[chosen])
    return kept, positive[chosen]


def _log_sums(t: Tensor, mask: Tensor, rows: Rows) -> Tensor:
    return group_log_sum_exp(t[mask], rows.group[mask], rows.n_groups)


class PClassificationLoss(PushLoss):
    """P-Classification (Ertekin & Rudin 2011): ``(1 + 1/p)·e^{p/(p+1)·V}`` with V the exponential push.

    It ranks as the push does and is bounded below by 0: :class:`apexrank.objectives.PClassification`. All of it is
    PyTorch, on the device of the scores.

    Parameters
    ----------
    p, side, balance
        As in :class:`PushLoss`.

    Examples
    --------
    >>> import torch
    >>> from apexrank.models.torch import PClassificationLoss
    >>> PClassificationLoss(p=1)(torch.zeros(2), [1, 0]).item()
    2.0
    """

    def __init__(self, p: float = 4.0, *, side: str = "top", balance: float = 1.0) -> None:
        super().__init__(p, side=side, balance=balance)

    def _loss(self, scores: Tensor, target: Any, groups: Any, weight: Any) -> Tensor:
        p = self._price.order
        return (1 + 1 / p) * torch.exp(p / (p + 1) * super()._loss(scores, target, groups, weight))


class InfinitePushLoss(ScoreLoss):
    """The push with p = ∞, ``Σ_i ℓ(f_i − max_k g_k)``, its maximum smoothed: only the highest negatives count.

    See :class:`apexrank.objectives.InfinitePush`. Computed on the host, with an exact gradient.

    Parameters
    ----------
    loss, side, balance
        As in :class:`PushLoss`.
    beta : float, default 16
        The smooth maximum is ``(1/β)·LSE(β·g)``.

    Examples
    --------
    >>> import torch
    >>> from apexrank.models.torch import InfinitePushLoss
    >>> loss = InfinitePushLoss(loss="squared_hinge", beta=100.0)
    >>> round(loss(torch.tensor([1.0, 0.5, 0.0]), [1, 0, 0]).item(), 6)
    0.25
    """

    def __init__(
        self,
        *,
        loss: str | Loss = "exponential",
        side: str = "top",
        balance: float = 1.0,
        beta: float = 16.0,
    ) -> None:
        super().__init__()
        check_finite("beta", beta, 0)
        if beta == 0:
            raise InputError("beta must be above 0, got 0")
        self.loss, self.side, self.balance, self.beta = loss, side, balance, beta
        self._objective(np.array([1.0, 0.0]), None, None)  # refuses what does not go together

    def _objective(self, target: np.ndarray, groups: Any, weight: Any) -> InfinitePush:
        options: dict[str, Any] = {"loss": self.loss, "side": self.side, "balance": self.balance}
        return InfinitePush(target > 0, **options, beta=self.beta, sample_weight=weight, groups=groups)


class CrucialPairsLoss(ScoreLoss):
    """The push on graded relevance, or on listed pairs: :class:`apexrank.objectives.CrucialPairs`.

    ``target`` is the relevance of each row, or a tuple ``(upper, lower)`` or ``(upper, lower, weight)`` of row numbers:
    row ``upper[j]`` should stand above ``lower[j]``. Computed on the host, with an exact gradient.

    Parameters
    ----------
    p, loss, price
        As in :class:`PushLoss`.

    Examples
    --------
    >>> import torch
    >>> from apexrank.models.torch import CrucialPairsLoss
    >>> scores = torch.zeros(3, requires_grad=True)
    >>> CrucialPairsLoss()(scores, torch.tensor([2, 1, 0])).backward()
    >>> bool(scores.grad[0] < scores.grad[1] < scores.grad[2])
    True
    """

    def __init__(
        self, p: float = 4.0, *, loss: str | Loss = "exponential", price: str | Price = "power"
    ) -> None:
        super().__init__()
        self.p, self.loss, self.price = p, loss, price
        self._price = PRICES.get(price, p=p)
        form_of(LOSSES.get(loss), self._price)

    def _loss(self, scores: Tensor, target: Any, groups: Any, weight: Any) -> Tensor:
        if not isinstance(target, tuple):
            return super()._loss(scores, target, groups, weight)
        pairs = tuple(to_numpy(part) for part in target)
        groups, weight = (None if x is None else to_numpy(x) for x in (groups, weight))
        options: dict[str, Any] = {"loss": self.loss, "price": self._price, "sample_weight": weight}
        return OnHost.apply(scores, CrucialPairs(pairs=pairs, n=len(scores), groups=groups, **options))

    def _objective(self, target: np.ndarray, groups: Any, weight: Any) -> CrucialPairs:
        options: dict[str, Any] = {"loss": self.loss, "price": self._price, "sample_weight": weight}
        return CrucialPairs(target, groups=groups, **options)
