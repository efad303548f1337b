"""Losses of lists with graded relevance, for PyTorch: fixed targets, monotone retargeting, unknown links, orders."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from apexrank.errors import InputError
from apexrank.groups import segment
from apexrank.models.boosting.graded import check_retarget
from apexrank.models.torch_rows import (
    OnHost,
    Rows,
    ScoreLoss,
    Tensor,
    checked_target,
    group_log_sum_exp,
    like,
    to_numpy,
    torch,
    weighty_rows,
)
from apexrank.objectives.link import UnknownLink, check_margin
from apexrank.objectives.listwise import ideal_dcg
from apexrank.objectives.margins import Offsets
from apexrank.objectives.retarget import Retarget
from apexrank.objectives.swaps import order_likelihood, telling_lists
from apexrank.submodular import SetFunction, set_function

KINDS = ("listnet", "pointwise", "rank_cosine", "ndcg_consistent")
DIVERGENCES = ("squared", "i-divergence")


class ListwiseLoss(ScoreLoss):
    """The classical listwise losses of :class:`apexrank.ListwiseRanker`, all PyTorch, on the device of the scores.

    ``target`` is the relevance of each row. Only for "ndcg_consistent" it crosses to the host, where the best order of
    each list is sorted; the scores never do.

    Parameters
    ----------
    kind : {"listnet", "pointwise", "rank_cosine", "ndcg_consistent"}
        As ``loss`` of :class:`apexrank.ListwiseRanker`; its "unknown_link" is :class:`UnknownLinkLoss`.
    divergence : {"squared", "i-divergence"}
        Of the regressions "pointwise" and "ndcg_consistent".
    normalize : bool
        Divide the loss of each group by its number of rows.

    Examples
    --------
    >>> import torch
    >>> from apexrank.models.torch import ListwiseLoss
    >>> scores = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    >>> ListwiseLoss("pointwise")(scores, [1.0, 0.0]).backward()
    >>> scores.grad.tolist()
    [-0.5, 0.5]
    """

    def __init__(
        self, kind: str = "listnet", *, divergence: str = "squared", normalize: bool = False
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise InputError(f"unknown kind {kind!r}: use one of {', '.join(KINDS)}")
        if divergence not in DIVERGENCES:
            raise InputError(f"unknown divergence {divergence!r}: use one of {', '.join(DIVERGENCES)}")
        self.kind, self.divergence, self.normalize = kind, divergence, normalize

    def _loss(self, scores: Tensor, target: Any, groups: Any, weight: Any) -> Tensor:
        relevance = like("target", checked_target(target, len(scores)), scores)
        lists = weighty_rows(scores, groups, weight)
        s, y = scores[lists.kept], relevance[lists.kept]
        if self.kind == "rank_cosine":
            return _cosine(s, y, lists)
        count = lists.weight
        if self.normalize:
            lists = lists._replace(weight=count / lists.spread(lists.total(count)))
        if self.kind == "listnet":
            total = group_log_sum_exp(y + count.log(), lists.group, lists.n_groups)
            return _softmax(s, torch.exp(y - lists.spread(total)), lists)
        if self.kind == "ndcg_consistent":
            y = like("gain", _gain_shares(to_numpy(y), to_numpy(lists.group), to_numpy(count)), s)
        else:
            lists = lists._replace(group=torch.zeros_like(lists.group), n_groups=1)
        return (_squared if self.divergence == "squared" else _softmax)(s, y, lists)


def _squared(s: Tensor, target: Tensor, lists: Rows) -> Tensor:
    """``½·Σ w (s + β − t)²`` with the best offset β of each list."""
    error = s - target
    mean = lists.total(lists.weight * error) / lists.total(lists.weight)
    return 0.5 * (lists.weight * (error - lists.spread(mean)) ** 2).sum()


def _softmax(s: Tensor, target: Tensor, lists: Rows) -> Tensor:
    """``Σ T·KL(t/T ‖ softmax(s))``, T the sum of a list's targets."""
    if bool((target < 0).any()):
        raise InputError("targets of an I-divergence must not be negative: add a constant, or use 'squared'")
    total = group_log_sum_exp(s + lists.weight.log(), lists.group, lists.n_groups)
    mass = lists.total(lists.weight * target)
    entropy = (lists.weight * torch.xlogy(target, target)).sum() - torch.xlogy(mass, mass).sum()
    return entropy - (lists.weight * target * (s - lists.spread(total))).sum()


def _cosine(s: Tensor, target: Tensor, lists: Rows) -> Tensor:
    """``Σ ½·(1 − <t, s> / (|t|·√(|s|² + 1)))`` over the lists with a target other than 0."""
    size = lists.total(lists.weight * target**2).sqrt()
    if not bool((size > 0).any()):
        raise InputError("rank_cosine needs a row of relevance other than 0")
    length = (lists.total(lists.weight * s**2) + 1).sqrt()
    cosine = lists.total(lists.weight * target * s) / length
    return 0.5 * (1 - cosine[size > 0] / size[size > 0]).sum()


def _gain_shares(relevance: np.ndarray, groups: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Gain ``2^y − 1`` of each row in units of its list's best DCG; 0 where nothing is relevant."""
    if relevance.min() < 0:
        raise InputError("negative values of the relevance have no gain 2^y − 1: add a constant to it")
    gain = np.exp2(relevance.astype(np.float64)) - 1
    best = ideal_dcg(gain, groups, weight.astype(np.float64))
    return np.divide(gain, best, where=best > 0, out=np.zeros(len(gain)))


class RetargetLoss(ScoreLoss):
    """Monotone retargeting: the divergence of the scores from the nearest targets in the right order.

    See :class:`apexrank.objectives.Retarget`; ``target`` is the relevance. Computed on the host, the gradient is exact.

    Parameters
    ----------
    divergence, order, margin, offsets, reward, normalize, joint_convexity
        As in :class:`apexrank.objectives.Retarget`.

    Examples
    --------
    >>> import torch
    >>> from apexrank.models.torch import RetargetLoss
    >>> scores = torch.zeros(3, requires_grad=True)
    >>> RetargetLoss()(scores, torch.tensor([2, 1, 0])).backward()
    >>> scores.grad.tolist()
    [-1.0, 0.0, 1.0]
    """

    def __init__(
        self,
        divergence: str = "squared",
        *,
        order: Literal["hidden", "blocks"] = "hidden",
        margin: float = 1.0,
        offsets: Offsets = "linear",
        reward: float = 0.0,
        normalize: bool = False,
        joint_convexity: bool | tuple[float, float] = False,
    ) -> None:
        super().__init__()
        self.divergence, self.order, self.margin, self.offsets = divergence, order, margin, offsets
        self.reward, self.normalize, self.joint_convexity = reward, normalize, joint_convexity
        check_retarget(offsets, **self._options)

    @property
    def _options(self) -> dict[str, Any]:
        names = ("divergence", "order", "margin", "reward", "normalize", "joint_convexity")
        return {name: getattr(self, name) for name in names}

    def _objective(self, target: np.ndarray, groups: Any, weight: Any) -> Retarget:
        data: dict[str, Any] = {"groups": groups, "sample_weight": weight}
        return Retarget(target, offsets=self.offsets, **data, **self._options)


class UnknownLinkLoss(ScoreLoss):
    """How far the target is from being some increasing function of the scores, one per group.

    See :class:`apexrank.objectives.UnknownLink`. Computed on the host, with an exact gradient.

    Parameters
    ----------
    strong_convexity : float
        s > 0; the link is 1/s-Lipschitz.
    normalize : bool
        Divide the loss of each group by its number of rows.

    Examples
    --------
    >>> import torch
    >>> from apexrank.models.torch import UnknownLinkLoss
    >>> UnknownLinkLoss()(torch.tensor([6.0, 3.0, 0.0]), [1.0, 2.0, 4.0]).item()
    18.0
    """

    def __init__(self, strong_convexity: float = 1.0, *, normalize: bool = False) -> None:
        super().__init__()
        check_margin(strong_convexity)
        self.strong_convexity, self.normalize = strong_convexity, normalize

    def _objective(self, target: np.ndarray, groups: Any, weight: Any) -> UnknownLink:
        options: dict[str, Any] = {
            "strong_convexity": self.strong_convexity,
            "normalize": self.normalize,
        }
        return UnknownLink(target, groups=groups, sample_weight=weight, **options)


class SwapLikelihoodLoss(ScoreLoss):
    """Negative log-likelihood of judged lists in the Lovász–Mallows model (Iyer and Bilmes 2013, eq. 28 and 29).

    See :class:`apexrank.objectives.SwapLikelihood`: all swaps of two documents, or the exact likelihood where only the
    first rank counts (``f="top"`` with m = 1). Computed on the host, with an exact gradient; no weights.

    Parameters
    ----------
    f : str or SetFunction
        Function of the size, which gives the gains of the ranks.

    Examples
    --------
    >>> import torch
    >>> from apexrank.models.torch import SwapLikelihoodLoss
    >>> round(SwapLikelihoodLoss()(torch.zeros(2), [1.0, 0.0]).item(), 6)
    0.693147
    """

    def __init__(self, f: str | SetFunction = "sqrt") -> None:
        super().__init__()
        self.f = f
        self._function = set_function(f)

    def _loss(self, scores: Tensor, target: Any, groups: Any, weight: Any) -> Tensor:
        if weight is not None:
            raise InputError("SwapLikelihoodLoss takes no sample_weight: repeat the lists instead")
        relevance = to_numpy(checked_target(target, len(scores))).astype(np.float64)
        groups = None if groups is None else to_numpy(groups)
        rows, lists = telling_lists(relevance, segment(groups, len(scores)))
        chosen = scores[torch.from_numpy(rows).to(scores.device)]
        return OnHost.apply(chosen, order_likelihood(relevance[rows], self._function, lists))
