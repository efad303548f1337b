"""PyTorch losses for every objective of the scores: ``loss(scores, target, groups=None, sample_weight=None)``.

Scores are flat, with a group per row, or a padded batch with one row per query and ``mask=``, True for documents.

Pushes with the exponential loss and the losses with fixed targets are PyTorch operations and stay on the device of the
scores. The others need a sort, a projection or sums over pairs: the scores are copied to the host, where value and
exact gradient are computed in near-linear time, and the gradient is copied back.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from apexrank.errors import InputError
from apexrank.integrations.boosting import FIXED, check_retarget, options_of
from apexrank.losses import LOSSES, Exponential, Loss
from apexrank.objectives.base import form_of
from apexrank.objectives.infinite_push import InfinitePush
from apexrank.objectives.link import UnknownLink, check_margin
from apexrank.objectives.margins import Offsets
from apexrank.objectives.pairs import CrucialPairs
from apexrank.objectives.push import Push
from apexrank.objectives.retarget import Retarget
from apexrank.objectives.swaps import order_likelihood, telling_lists
from apexrank.prices import PRICES, Identity, Power, Price
from apexrank.rankers.listwise import OF_TARGETS, gain_shares
from apexrank.submodular import SetFunction, set_function
from apexrank.validation import check_choice, check_finite, on_host, segment

try:
    import torch
    from torch.autograd.function import once_differentiable
except ImportError as error:
    raise ImportError("apexrank.integrations.torch needs PyTorch: pip install torch") from error

__all__ = [
    "CrucialPairsLoss",
    "InfinitePushLoss",
    "ListwiseLoss",
    "PClassificationLoss",
    "PushLoss",
    "RetargetLoss",
    "ScoreLoss",
    "SwapLikelihoodLoss",
    "UnknownLinkLoss",
]

Tensor = Any  # torch.Tensor, which may be unavailable during type checking


class OnHost(torch.autograd.Function):
    """Objective of the scores whose value and exact gradient are computed by NumPy and numba.

    The scores are copied to the host and the gradient back, n numbers each way.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, objective: Any) -> Tensor:
        value, slope = objective.value_and_grad(to_numpy(scores).astype(np.float64))
        ctx.save_for_backward(torch.from_numpy(np.ascontiguousarray(slope)).to(scores))
        return scores.new_tensor(value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return upstream * ctx.saved_tensors[0], None


@dataclass(eq=False, repr=False)
class ScoreLoss(torch.nn.Module):
    """Base class of losses: ``forward(scores, target, groups=None, sample_weight=None, mask=None)`` returns a scalar.

    A subclass defines ``_loss``, or ``_objective`` if the loss is computed on the host. The losses are not sums over
    rows: a batch is treated as a separate data set, so it needs rows of both classes (or of different relevance), and
    whole groups.

    Parameters
    ----------
    reduction : {"objective", "mean"}
        "objective" combines the groups as the objective does: pushes, pairs and swaps average over groups, the others
        sum. "mean" divides these sums by the number of groups, so that the batch size does not change the scale of the
        gradient.
    """

    _: KW_ONLY
    reduction: Literal["objective", "mean"] = "objective"
    is_sum: ClassVar[bool] = False  # whether the objective sums over the groups

    def __post_init__(self) -> None:
        super().__init__()  # the losses are dataclasses
        check_choice("reduction", self.reduction, ("objective", "mean"))
        self._prepare()

    def _prepare(self) -> None:
        """Validate the parameters."""

    def forward(
        self, scores: Tensor, target: Any, groups: Any = None, sample_weight: Any = None, mask: Any = None
    ) -> Tensor:
        """Loss of the scores; only the scores receive a gradient.

        Parameters
        ----------
        scores : tensor of shape (n,) or (n, 1), or of shape (queries, documents)
            Scores of rows, or of a padded batch.
        target, sample_weight : array or tensor
            One number per score; padded entries are never read.
        groups : array or tensor of shape (n,), optional
            Group of each row; by default all rows form one group. The groups of a padded batch are its rows.
        mask : array or tensor of shape (queries, documents), optional
            True for documents, False for padding; by default there is no padding.
        """
        if mask is not None or (getattr(scores, "ndim", 1) == 2 and scores.shape[1] != 1):
            scores, target, groups, sample_weight = unpadded(scores, target, groups, sample_weight, mask)
        scores = as_column(scores)
        value = self._loss(scores, target, groups, sample_weight)
        if self.reduction == "mean" and self.is_sum:
            return value / weighty_rows(scores, groups, sample_weight).n_groups
        return value

    def _options(self) -> dict[str, Any]:
        """Parameters of the objective."""
        return {name: value for name, value in options_of(self).items() if name != "reduction"}

    def _loss(self, scores: Tensor, target: Any, groups: Any, weight: Any) -> Tensor:
        target = to_numpy(checked_target(target, len(scores)))
        return OnHost.apply(scores, self._objective(target, to_numpy(groups), to_numpy(weight)))

    def _objective(self, target: Any, groups: Any, weight: Any) -> Any:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Parameters shown by ``print``."""
        return ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if k[0] != "_" and k != "training")


def unpadded(
    scores: Tensor, target: Any, groups: Any, weight: Any, mask: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Scores, targets, groups and weights of the documents of a padded batch.

    Examples
    --------
    >>> scores, mask = torch.tensor([[3.0, 1.0], [2.0, 0.0]]), torch.tensor([[True, True], [True, False]])
    >>> [values.tolist() for values in unpadded(scores, [[1, 0], [1, -1]], None, None, mask)[:3]]
    [[3.0, 1.0, 2.0], [1.0, 0.0, 1.0], [0, 0, 1]]
    """
    if not isinstance(scores, torch.Tensor) or scores.ndim != 2:
        raise InputError("a padded batch has scores of shape (queries, documents), a PyTorch tensor")
    if groups is not None or isinstance(target, tuple):
        raise InputError(
            "the groups of a padded batch are its rows: leave out groups; pairs are for flat scores"
        )

    def beside(name: str, values: Any) -> Tensor:
        values = values if isinstance(values, torch.Tensor) else torch.from_numpy(numbers(name, values))
        if values.shape != scores.shape:
            shapes = f"{tuple(scores.shape)}, got {tuple(values.shape)}"
            raise InputError(f"{name} needs the shape of the scores, {shapes}")
        return values.detach().to(scores.device)

    grades = beside("target", target)
    kept = torch.ones_like(grades) != 0 if mask is None else beside("mask", mask) != 0
    if not bool(kept.any()) or bool((grades[kept] < 0).any() and (grades[~kept] >= 0).any()):
        raise InputError("mask must be True for documents and False for padding: invert it")
    weights = None if weight is None else beside("sample_weight", weight)[kept]
    return scores[kept], grades[kept], torch.nonzero(kept)[:, 0], weights


def as_column(scores: Tensor) -> Tensor:
    """Scores of shape (n,) from (n,) or (n, 1), in at least single precision, because sums of halves lose digits.

    The gradient is returned in the precision of the scores.

    Examples
    --------
    >>> as_column(torch.zeros(3, 1)).shape
    torch.Size([3])
    """
    if not isinstance(scores, torch.Tensor) or not scores.is_floating_point():
        raise InputError("scores must be a PyTorch tensor of floating point numbers")
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.ndim != 1 or not len(scores):
        raise InputError(f"scores needs shape (n,) or (n, 1) with n >= 1, got {tuple(scores.shape)}")
    return scores.float() if scores.dtype.itemsize < 4 else scores


def check_length(name: str, values: Any, n: int) -> None:
    """Raise InputError unless there is one value per score."""
    if tuple(values.shape) != (n,):
        raise InputError(
            f"{name} needs one value for each of the {n} scores, got shape {tuple(values.shape)}"
        )


def checked_target(target: Any, n: int) -> Any:
    """One finite number per score: a tensor unchanged, anything else in double precision on the host."""
    values = target.detach() if isinstance(target, torch.Tensor) else numbers("target", target)
    check_length("target", values, n)
    finite = (torch if isinstance(values, torch.Tensor) else np).isfinite(values)
    if not bool(finite.all()):
        row = int(np.argmin(to_numpy(finite)))
        raise InputError(f"the target is missing or infinite in row {row}: fill or drop it")
    return values


def to_numpy(values: Any) -> Any:
    """Copy a tensor or array-like to the host; None is returned unchanged."""
    if not isinstance(values, torch.Tensor):
        return None if values is None else np.asarray(on_host(values))
    tensor = values.detach().cpu()
    return (tensor.double() if tensor.is_floating_point() else tensor).numpy()  # NumPy has no bfloat16


def numbers(name: str, values: Any) -> np.ndarray:
    """Copy of the values in double precision on the host.

    Examples
    --------
    >>> numbers("target", ["good", "bad"])
    Traceback (most recent call last):
    apexrank.errors.InputError: target must be numbers, one for each score
    """
    try:
        return np.array(to_numpy(values), dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, one for each score") from None


def like(name: str, values: Any, scores: Tensor) -> Tensor:
    """Convert values to a tensor on the device of the scores, in their precision."""
    tensor = values if isinstance(values, torch.Tensor) else torch.from_numpy(numbers(name, values))
    return tensor.detach().to(scores.dtype).to(scores.device)


class TensorRows(NamedTuple):
    """Rows of positive weight: their indices, weights, and group indices, counted from 0."""

    kept: Tensor
    weight: Tensor
    group: Tensor
    n_groups: int

    def total(self, values: Tensor) -> Tensor:
        """Sum of each group."""
        return group_sums(values, self.group, self.n_groups)

    def spread(self, per_group: Tensor) -> Tensor:
        """Repeat a per-group value for each row of the group."""
        return per_group[self.group]


def weighty_rows(scores: Tensor, groups: Any, weight: Any) -> TensorRows:
    """Rows of positive weight, on the device of the scores."""
    n = len(scores)
    if weight is None:
        kept, weights = torch.arange(n, device=scores.device), scores.new_ones(n)
    else:
        weights = like("sample_weight", weight, scores)
        check_length("sample_weight", weights, n)
        if not bool(torch.isfinite(weights).all()) or bool((weights < 0).any()):
            raise InputError("`sample_weight` needs one finite number >= 0 per row")
        kept = torch.nonzero(weights > 0)[:, 0]
        weights = weights[kept]
        if not len(kept):
            raise InputError("all rows have weight 0: give at least one row a weight above 0")
    return renumbered(kept, weights, group_numbers(groups, scores)[kept])


def renumbered(kept: Tensor, weight: Tensor, group: Tensor) -> TensorRows:
    """Renumber groups without gaps."""
    names, number = torch.unique(group, return_inverse=True)
    return TensorRows(kept, weight, number, len(names))


def group_numbers(groups: Any, scores: Tensor) -> Tensor:
    """Group index of each row."""
    n = len(scores)
    if groups is None:
        return torch.zeros(n, dtype=torch.int64, device=scores.device)
    if not isinstance(groups, torch.Tensor):
        return torch.from_numpy(segment(groups, n).of_rows()).to(scores.device)
    check_length("groups", groups, n)
    return torch.unique(groups.detach().to(scores.device), return_inverse=True)[1]


def group_sums(values: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """Sum per group, in double precision if the device supports it, because single precision loses digits."""
    wide = values if values.device.type == "mps" else values.double()
    return wide.new_zeros(n_groups).index_add(0, group, wide).to(values.dtype)


def group_log_sum_exp(t: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """``log Σ exp(t)`` of each group, shifted by its maximum t.

    Examples
    --------
    >>> t = torch.tensor([0.0, 0.0, 1000.0], dtype=torch.float64)
    >>> [round(x, 6) for x in group_log_sum_exp(t, torch.tensor([0, 0, 1]), 2).tolist()]
    [0.693147, 1000.0]
    """
    lowest = t.new_full((n_groups,), -torch.inf)
    highest = lowest.scatter_reduce(0, group, t.detach(), "amax")
    return highest + group_sums(torch.exp(t - highest[group]), group, n_groups).log()


SIDES = {"top": (1.0,), "bottom": (-1.0,), "both": (1.0, -1.0)}  # sign of the scores


@dataclass(eq=False, repr=False)
class PushLoss(ScoreLoss):
    """Push of :class:`apexrank.objectives.Push` (JMLR 2009, sec. 2) as a loss on the scores of a network.

    With f the scores of the positives (``target > 0``) and g those of the negatives it is, for the exponential loss and
    the power price, ``LSE(−f) + (1/p)·LSE(p·g)``, in PyTorch operations on the device of the scores, differentiable any
    number of times. For other losses and prices the sums over pairs are computed on the host, with an exact gradient.

    Parameters
    ----------
    p : float, default 4
        Strength of the push, at least 1.
    loss, price, side, balance
        As in :class:`apexrank.PNormPush`.

    Examples
    --------
    >>> import torch
    >>> from apexrank.integrations.torch import PushLoss
    >>> scores = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    >>> PushLoss(p=1)(scores, torch.tensor([1, 0, 0])).backward()
    >>> scores.grad.tolist()
    [-1.0, 0.5, 0.5]
    """

    p: float = 4.0
    _: KW_ONLY
    loss: str | Loss = "exponential"
    price: str | Price = "power"
    side: str = "top"
    balance: float = 1.0

    def _prepare(self) -> None:
        self._price, self._of_pair = PRICES.get(self.price, p=self.p), LOSSES.get(self.loss)
        form_of(self._of_pair, self._price)
        check_finite("balance", self.balance, 0)
        check_choice("side", self.side, SIDES)

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


def _two_classes(rows: TensorRows, positive: Tensor) -> tuple[TensorRows, Tensor]:
    """Rows of the groups that have both classes, and the mask of the positives."""
    positive = positive[rows.kept]
    above = rows.total(positive.to(rows.weight))
    usable = (above > 0) & (rows.total(torch.ones_like(rows.weight)) > above)
    if not bool(usable.any()):
        raise InputError("ranking needs rows of both classes, with positive weight, in at least one group")
    chosen = usable[rows.group]
    kept = renumbered(rows.kept[chosen], rows.weight[chosen], rows.group[chosen])
    return kept, positive[chosen]


def _log_sums(t: Tensor, mask: Tensor, rows: TensorRows) -> Tensor:
    return group_log_sum_exp(t[mask], rows.group[mask], rows.n_groups)


class PClassificationLoss(PushLoss):
    """P-Classification (Ertekin & Rudin 2011): ``(1 + 1/p)·e^{p/(p+1)·V}`` with V the exponential push.

    It gives the same ranking as the push and is bounded below by 0: :class:`apexrank.objectives.PClassification`.
    Computed entirely in PyTorch, on the device of the scores.

    Parameters
    ----------
    p, side, balance
        As in :class:`PushLoss`.

    Examples
    --------
    >>> import torch
    >>> from apexrank.integrations.torch import PClassificationLoss
    >>> PClassificationLoss(p=1)(torch.zeros(2), [1, 0]).item()
    2.0
    """

    def __init__(self, p: float = 4.0, *, side: str = "top", balance: float = 1.0, **reduction: Any) -> None:
        super().__init__(p, side=side, balance=balance, **reduction)

    def _loss(self, scores: Tensor, target: Any, groups: Any, weight: Any) -> Tensor:
        p = self._price.order
        return (1 + 1 / p) * torch.exp(p / (p + 1) * super()._loss(scores, target, groups, weight))


@dataclass(eq=False, repr=False)
class InfinitePushLoss(ScoreLoss):
    """Push with p = ∞, ``Σ_i ℓ(f_i − max_k g_k)``, with a smoothed maximum: only the highest negatives count.

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
    >>> from apexrank.integrations.torch import InfinitePushLoss
    >>> loss = InfinitePushLoss(loss="squared_hinge", beta=100.0)
    >>> round(loss(torch.tensor([1.0, 0.5, 0.0]), [1, 0, 0]).item(), 6)
    0.25
    """

    _: KW_ONLY
    loss: str | Loss = "exponential"
    side: str = "top"
    balance: float = 1.0
    beta: float = 16.0

    def _prepare(self) -> None:
        check_finite("beta", self.beta, 0)
        if self.beta == 0:
            raise InputError("`beta` must be above 0, got 0")
        self._objective(np.array([1.0, 0.0]), None, None)  # validates the combination of parameters

    def _objective(self, target: np.ndarray, groups: Any, weight: Any) -> InfinitePush:
        return InfinitePush(target > 0, sample_weight=weight, groups=groups, **self._options())


@dataclass(eq=False, repr=False)
class CrucialPairsLoss(ScoreLoss):
    """Push on graded relevance, or on explicit pairs: :class:`apexrank.objectives.CrucialPairs`.

    ``target`` is the relevance of each row, or a tuple ``(upper, lower)`` or ``(upper, lower, weight)`` of row numbers:
    row ``upper[j]`` should rank above ``lower[j]``. Computed on the host, with an exact gradient.

    Parameters
    ----------
    p, loss, price
        As in :class:`PushLoss`.

    Examples
    --------
    >>> import torch
    >>> from apexrank.integrations.torch import CrucialPairsLoss
    >>> scores = torch.zeros(3, requires_grad=True)
    >>> CrucialPairsLoss()(scores, torch.tensor([2, 1, 0])).backward()
    >>> bool(scores.grad[0] < scores.grad[1] < scores.grad[2])
    True
    """

    p: float = 4.0
    _: KW_ONLY
    loss: str | Loss = "exponential"
    price: str | Price = "power"

    def _prepare(self) -> None:
        self._price = PRICES.get(self.price, p=self.p)
        form_of(LOSSES.get(self.loss), self._price)

    def _loss(self, scores: Tensor, target: Any, groups: Any, weight: Any) -> Tensor:
        if not isinstance(target, tuple):
            return super()._loss(scores, target, groups, weight)
        named = {"pairs": tuple(map(to_numpy, target)), "n": len(scores)}
        return OnHost.apply(scores, self._objective(None, to_numpy(groups), to_numpy(weight), **named))

    def _objective(self, target: Any, groups: Any, weight: Any, **pairs: Any) -> CrucialPairs:
        options: dict[str, Any] = {"loss": self.loss, "price": self._price, **pairs}
        return CrucialPairs(target, groups=groups, sample_weight=weight, **options)


@dataclass(eq=False, repr=False)
class ListwiseLoss(ScoreLoss):
    """Classical listwise losses of :class:`apexrank.ListwiseRanker`, in PyTorch on the device of the scores.

    ``target`` is the relevance of each row. Only for "ndcg_consistent" it is copied to the host, where the ideal order
    of each list is sorted; the scores never are.

    Parameters
    ----------
    kind : {"listnet", "pointwise", "rank_cosine", "ndcg_consistent"}
        As ``loss`` of :class:`apexrank.ListwiseRanker`; for its "unknown_link" use :class:`UnknownLinkLoss`.
    divergence : {"squared", "i-divergence"}
        Divergence of the regressions "pointwise" and "ndcg_consistent".
    normalize : bool
        Divide the loss of each group by its number of rows.

    Examples
    --------
    >>> import torch
    >>> from apexrank.integrations.torch import ListwiseLoss
    >>> scores = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    >>> ListwiseLoss("pointwise")(scores, [1.0, 0.0]).backward()
    >>> scores.grad.tolist()
    [-0.5, 0.5]
    """

    kind: str = "listnet"
    _: KW_ONLY
    divergence: str = "squared"
    normalize: bool = False
    is_sum: ClassVar[bool] = True

    def _prepare(self) -> None:
        check_choice("kind", self.kind, FIXED)
        check_choice("divergence", self.divergence, OF_TARGETS)

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
            relevance, weights = (to_numpy(values).astype(np.float64) for values in (y, count))
            y = like("gain", gain_shares(relevance, to_numpy(lists.group), weights), s)
        else:
            lists = lists._replace(group=torch.zeros_like(lists.group), n_groups=1)
        return (_squared if self.divergence == "squared" else _softmax)(s, y, lists)


def _squared(s: Tensor, target: Tensor, lists: TensorRows) -> Tensor:
    """``½·Σ w (s + β − t)²`` with the best offset β of each list."""
    error = s - target
    mean = lists.total(lists.weight * error) / lists.total(lists.weight)
    return 0.5 * (lists.weight * (error - lists.spread(mean)) ** 2).sum()


def _softmax(s: Tensor, target: Tensor, lists: TensorRows) -> Tensor:
    """``Σ T·KL(t/T ‖ softmax(s))``, where T is the sum of a list's targets."""
    if bool((target < 0).any()):
        raise InputError("targets of an I-divergence must not be negative: add a constant, or use 'squared'")
    total = group_log_sum_exp(s + lists.weight.log(), lists.group, lists.n_groups)
    mass = lists.total(lists.weight * target)
    entropy = (lists.weight * torch.xlogy(target, target)).sum() - torch.xlogy(mass, mass).sum()
    return entropy - (lists.weight * target * (s - lists.spread(total))).sum()


def _cosine(s: Tensor, target: Tensor, lists: TensorRows) -> Tensor:
    """``Σ ½·(1 − <t, s> / (|t|·√(|s|² + 1)))`` over the lists with a nonzero target."""
    size = lists.total(lists.weight * target**2).sqrt()
    if not bool((size > 0).any()):
        raise InputError("rank_cosine needs a row of relevance other than 0")
    length = (lists.total(lists.weight * s**2) + 1).sqrt()
    cosine = lists.total(lists.weight * target * s) / length
    return 0.5 * (1 - cosine[size > 0] / size[size > 0]).sum()


@dataclass(eq=False, repr=False)
class RetargetLoss(ScoreLoss):
    """Monotone retargeting: divergence of the scores from the nearest correctly ordered targets.

    See :class:`apexrank.objectives.Retarget`; ``target`` is the relevance. Computed on the host, with an exact
    gradient.

    Parameters
    ----------
    divergence, order, margin, offsets, reward, bounds, normalize, joint_convexity
        As in :class:`apexrank.objectives.Retarget`.

    Examples
    --------
    >>> import torch
    >>> from apexrank.integrations.torch import RetargetLoss
    >>> scores = torch.zeros(3, requires_grad=True)
    >>> RetargetLoss()(scores, torch.tensor([2, 1, 0])).backward()
    >>> scores.grad.tolist()
    [-1.0, 0.0, 1.0]
    """

    divergence: str = "squared"
    _: KW_ONLY
    order: Literal["hidden", "blocks"] = "hidden"
    margin: float = 1.0
    offsets: Offsets = "linear"
    reward: float = 0.0
    bounds: tuple[float | None, float | None] | None = None
    normalize: bool = False
    joint_convexity: bool | tuple[float, float] = False
    is_sum: ClassVar[bool] = True

    def _prepare(self) -> None:
        check_retarget(**self._options())

    def _objective(self, target: np.ndarray, groups: Any, weight: Any) -> Retarget:
        return Retarget(target, groups=groups, sample_weight=weight, **self._options())


@dataclass(eq=False, repr=False)
class UnknownLinkLoss(ScoreLoss):
    """Distance of the target from the increasing functions of the scores, one function per group.

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
    >>> from apexrank.integrations.torch import UnknownLinkLoss
    >>> UnknownLinkLoss()(torch.tensor([6.0, 3.0, 0.0]), [1.0, 2.0, 4.0]).item()
    18.0
    """

    strong_convexity: float = 1.0
    _: KW_ONLY
    normalize: bool = False
    is_sum: ClassVar[bool] = True

    def _prepare(self) -> None:
        check_margin(self.strong_convexity)

    def _objective(self, target: np.ndarray, groups: Any, weight: Any) -> UnknownLink:
        return UnknownLink(target, groups=groups, sample_weight=weight, **self._options())


@dataclass(eq=False, repr=False)
class SwapLikelihoodLoss(ScoreLoss):
    """Negative log-likelihood of judged lists in the Lovász–Mallows model (Iyer and Bilmes 2013, eq. 28 and 29).

    See :class:`apexrank.objectives.SwapLikelihood`: all swaps of two documents, or the exact likelihood if only the
    first rank counts (``f="top"`` with m = 1). Computed on the host, with an exact gradient; weights are not supported.

    Parameters
    ----------
    f : str or SetFunction
        Cardinality-based function that provides the gains of the ranks.

    Examples
    --------
    >>> import torch
    >>> from apexrank.integrations.torch import SwapLikelihoodLoss
    >>> round(SwapLikelihoodLoss()(torch.zeros(2), [1.0, 0.0]).item(), 6)
    0.693147
    """

    f: str | SetFunction = "sqrt"

    def _prepare(self) -> None:
        self._function = set_function(self.f)

    def _loss(self, scores: Tensor, target: Any, groups: Any, weight: Any) -> Tensor:
        if weight is not None:
            raise InputError("SwapLikelihoodLoss takes no `sample_weight`: repeat the lists instead")
        relevance = to_numpy(checked_target(target, len(scores))).astype(np.float64)
        rows, lists = telling_lists(relevance, segment(to_numpy(groups), len(scores)))
        chosen = scores[torch.from_numpy(rows).to(scores.device)]
        return OnHost.apply(chosen, order_likelihood(relevance[rows], self._function, lists))
