"""What the PyTorch losses share: rows and groups as tensors, sums over groups, objectives computed on the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from apexrank.checks import on_host
from apexrank.errors import InputError
from apexrank.groups import segment

try:
    import torch
    from torch.autograd.function import once_differentiable
except ImportError as error:
    raise ImportError("apexrank.models.torch needs PyTorch: pip install torch") from error

Tensor = Any  # torch.Tensor, which need not be installed where types are checked


class OnHost(torch.autograd.Function):
    """An objective of the scores whose value and exact gradient are computed by NumPy and numba.

    The scores cross to the host and the gradient back, n numbers each way.
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


class ScoreLoss(torch.nn.Module):
    """Base class: ``forward(scores, target, groups=None, sample_weight=None)`` gives a scalar to minimise.

    A subclass has ``_loss``, or ``_objective`` if the loss is computed on the host. The losses are no sums over rows:
    the loss of a batch is that of a data set of its own, so a batch needs rows of both classes (or of different
    relevance), and whole groups.
    """

    def forward(self, scores: Tensor, target: Any, groups: Any = None, sample_weight: Any = None) -> Tensor:
        """Loss of the scores, of shape (n,) or (n, 1); the gradient goes to the scores only."""
        column = as_column(scores)
        return self._loss(column, target, groups, sample_weight)

    def _loss(self, scores: Tensor, target: Any, groups: Any, weight: Any) -> Tensor:
        target = to_numpy(checked_target(target, len(scores)))
        groups, weight = (None if x is None else to_numpy(x) for x in (groups, weight))
        return OnHost.apply(scores, self._objective(target, groups, weight))

    def _objective(self, target: Any, groups: Any, weight: Any) -> Any:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """The parameters, for ``print``."""
        return ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if k[0] != "_" and k != "training")


def as_column(scores: Tensor) -> Tensor:
    """Scores of shape (n,) from (n,) or (n, 1), in single precision at least: sums of halves lose their digits.

    The gradient comes back in the precision of the scores.

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
    """Refuse what has not one value per score."""
    if tuple(values.shape) != (n,):
        raise InputError(
            f"{name} needs one value for each of the {n} scores, got shape {tuple(values.shape)}"
        )


def checked_target(target: Any, n: int) -> Any:
    """One finite number per score: a tensor as it is, anything else in double precision on the host."""
    values = target.detach() if isinstance(target, torch.Tensor) else numbers("target", target)
    check_length("target", values, n)
    finite = (torch if isinstance(values, torch.Tensor) else np).isfinite(values)
    if not bool(finite.all()):
        row = int(np.argmin(to_numpy(finite)))
        raise InputError(f"the target is missing or infinite in row {row}: fill or drop it")
    return values


def to_numpy(values: Any) -> np.ndarray:
    """A tensor, or anything like an array, on the host."""
    if not isinstance(values, torch.Tensor):
        return np.asarray(on_host(values))
    tensor = values.detach().cpu()
    return (tensor.double() if tensor.is_floating_point() else tensor).numpy()  # NumPy has no bfloat16


def numbers(name: str, values: Any) -> np.ndarray:
    """A copy of the values in double precision on the host.

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
    """Values as a tensor beside the scores, of their precision."""
    tensor = values if isinstance(values, torch.Tensor) else torch.from_numpy(numbers(name, values))
    return tensor.detach().to(scores.dtype).to(scores.device)


class Rows(NamedTuple):
    """Rows of weight above 0: their numbers, their weights, and the number of their group, counted from 0."""

    kept: Tensor
    weight: Tensor
    group: Tensor
    n_groups: int

    def total(self, values: Tensor) -> Tensor:
        """Sum of each group."""
        return group_sums(values, self.group, self.n_groups)

    def spread(self, per_group: Tensor) -> Tensor:
        """A value per group, repeated for its rows."""
        return per_group[self.group]


def weighty_rows(scores: Tensor, groups: Any, weight: Any) -> Rows:
    """Rows that count, on the device of the scores."""
    n = len(scores)
    if weight is None:
        kept, weights = torch.arange(n, device=scores.device), scores.new_ones(n)
    else:
        weights = like("sample_weight", weight, scores)
        check_length("sample_weight", weights, n)
        if not bool(torch.isfinite(weights).all()) or bool((weights < 0).any()):
            raise InputError("sample_weight needs one finite number >= 0 per row")
        kept = torch.nonzero(weights > 0)[:, 0]
        weights = weights[kept]
        if not len(kept):
            raise InputError("all rows have weight 0: give at least one row a weight above 0")
    return renumbered(kept, weights, group_numbers(groups, scores)[kept])


def renumbered(kept: Tensor, weight: Tensor, group: Tensor) -> Rows:
    """Rows whose groups are numbered without gaps."""
    names, number = torch.unique(group, return_inverse=True)
    return Rows(kept, weight, number, len(names))


def group_numbers(groups: Any, scores: Tensor) -> Tensor:
    """Number of the group of each row."""
    n = len(scores)
    if groups is None:
        return torch.zeros(n, dtype=torch.int64, device=scores.device)
    if not isinstance(groups, torch.Tensor):
        return torch.from_numpy(segment(groups, n).of_rows()).to(scores.device)
    check_length("groups", groups, n)
    return torch.unique(groups.detach().to(scores.device), return_inverse=True)[1]


def group_sums(values: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """Sum of the values of each group, in double precision where the device has it: single loses digits one by one."""
    wide = values if values.device.type == "mps" else values.double()
    return wide.new_zeros(n_groups).index_add(0, group, wide).to(values.dtype)


def group_log_sum_exp(t: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """``log Σ exp(t)`` of each group, shifted by its highest t.

    Examples
    --------
    >>> t = torch.tensor([0.0, 0.0, 1000.0], dtype=torch.float64)
    >>> [round(x, 6) for x in group_log_sum_exp(t, torch.tensor([0, 0, 1]), 2).tolist()]
    [0.693147, 1000.0]
    """
    lowest = t.new_full((n_groups,), -torch.inf)
    highest = lowest.scatter_reduce(0, group, t.detach(), "amax")
    return highest + group_sums(torch.exp(t - highest[group]), group, n_groups).log()
