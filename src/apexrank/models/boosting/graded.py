"""Objectives of graded relevance for boosted trees: pairs, retargeting, unknown links, fixed targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from apexrank.checks import check_finite
from apexrank.divergences import Divergence
from apexrank.errors import InputError
from apexrank.losses import LOSSES, Exponential, Logistic, Loss
from apexrank.models.boosting.base import BoosterObjective
from apexrank.models.boosting.rows import TWO_ROWS, Judged
from apexrank.objectives import (
    CosineTargets,
    CrucialPairs,
    Retarget,
    SoftmaxTargets,
    SquaredTargets,
    UnknownLink,
)
from apexrank.objectives.link import check_margin
from apexrank.objectives.listwise import FixedTargets, ideal_dcg, softmax_of_lists
from apexrank.objectives.margins import Offsets, level_offsets, offset_table
from apexrank.prices import Power

FIXED = ("listnet", "ndcg_consistent", "pointwise", "rank_cosine")
COLLAPSED = "without margins equal scores of all rows are a minimum: set margin > 0 and offsets that differ"


@dataclass(frozen=True, eq=False)
class PairsObjective(BoosterObjective):
    """The push on graded relevance for boosted trees: every row above all less relevant ones of its list.

    It is :class:`apexrank.objectives.CrucialPairs`. A row's slope is m − u: m for standing above better rows, u for
    standing below worse ones. ``p·(m + u)`` bounds its curvature; for the logistic loss m is a bound itself.

    Parameters
    ----------
    p : float
        The larger, the more the highest misplaced rows count.
    loss : {"exponential", "logistic"} or atom
    groups : array-like, optional
        See :class:`BoosterObjective`.

    Examples
    --------
    >>> slope, curvature = PairsObjective(p=1)([2, 1, 0], [0.0, 0.0, 0.0])
    >>> bool(slope[0] < slope[1] < slope[2])
    True
    """

    p: float = 1.0
    loss: str | Loss = "exponential"

    def __post_init__(self) -> None:
        check_finite("p", self.p, 1)
        if not isinstance(LOSSES.get(self.loss), Exponential | Logistic):
            raise InputError(
                f"boosted trees take the exponential or logistic loss of pairs, got {self.loss!r}"
            )

    def _objective(self, rows: Judged) -> CrucialPairs:
        return CrucialPairs(
            rows.y, loss=self.loss, price=Power(self.p), sample_weight=rows.weight, groups=rows.groups
        )

    def _slopes(self, objective: CrucialPairs, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, mass, log_r, memory = objective._evaluate(scores)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            grad = objective.pairs.pull(log_r, memory, mass)
        return grad, self.p * (2 * mass - grad)


@dataclass(frozen=True, eq=False)
class RetargetObjective(BoosterObjective):
    """Monotone retargeting (Acharyya 2013, chapter 3) for boosted trees: the nearest scores in the right order.

    It is :class:`apexrank.objectives.Retarget`. The squared divergence has the slope ``θ − Π(θ)``, scores less their
    targets; the derivative of a projection is at most the identity, so a row's curvature is bounded by its weight, and
    each round is a regression on the current targets. The others have that of a softmax, at most its shares.

    Weights of the data are weights of rows: times 2 in all rows of a query they double its cost, and more for the more
    relevant rows they mend the top of the list first. "kl" and its like see them as repetitions of rows.

    Parameters
    ----------
    divergence, order, margin, offsets, normalize, joint_convexity
        As in :class:`apexrank.objectives.Retarget`; a margin above 0 is needed.
    groups : array-like, optional
        See :class:`BoosterObjective`.

    Examples
    --------
    >>> slope, curvature = RetargetObjective()([4, 1, 0], [0.0, 0.0, 0.0])
    >>> slope.tolist(), curvature.tolist()
    ([-1.0, 0.0, 1.0], [1.0, 1.0, 1.0])
    """

    divergence: str | Divergence = "squared"
    margin: float = 1.0
    offsets: Offsets = "sqrt"
    order: Any = "hidden"
    normalize: bool = False
    joint_convexity: bool | tuple[float, float] = True

    def __post_init__(self) -> None:
        check_retarget(self.offsets, **self._options)
        if self.margin == 0:
            raise InputError(COLLAPSED)

    @property
    def _options(self) -> dict[str, Any]:
        names = ("divergence", "order", "margin", "normalize", "joint_convexity")
        return {name: getattr(self, name) for name in names}

    def _objective(self, rows: Judged) -> Retarget:
        data: dict[str, Any] = {"groups": rows.groups, "sample_weight": rows.weight}
        objective = Retarget(rows.y, offsets=self.offsets, **data, **self._options)
        if objective.collapses:
            raise InputError(COLLAPSED)
        return objective

    def _slopes(self, objective: Retarget, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grad, lists = objective.value_and_grad(scores)[1], objective.lists
        if not objective.is_squared:
            return grad, objective.hessian(scores)[0][1]
        bound = np.zeros(len(scores))
        bound[lists.rows] = lists.spread(objective.factor) * lists.weight
        return grad, bound


def check_retarget(offsets: Offsets, **options: Any) -> None:
    """Refuse parameters of :class:`apexrank.objectives.Retarget` that no data would suit.

    A function of the relevance is not tried: it need not be defined for grades that the data do not have.

    Examples
    --------
    >>> check_retarget("sqrt", divergence="squared", margin=-1.0)
    Traceback (most recent call last):
    apexrank.errors.InputError: margin must be a finite number of at least 0, got -1.0
    """
    Retarget(TWO_ROWS.y, offsets=[0.0, 0.0], **options)  # how wide margins may be is up to the data
    if not callable(offsets):
        n_grades = 2 if isinstance(offsets, str) else offset_table(offsets).size
        level_offsets(np.arange(float(n_grades)), offsets)


@dataclass(frozen=True, eq=False)
class LinkObjective(BoosterObjective):
    """Regression with an unknown increasing link (Acharyya 2013, chapter 4) for boosted trees.

    It is :class:`apexrank.objectives.UnknownLink`: how far y is from some increasing, 1/s-Lipschitz function of the
    scores, one for each group. Its gradient is a projection of the scores divided by s, so the curvature of a row is
    at most its weight divided by s.

    Parameters
    ----------
    strong_convexity, normalize
        As in :class:`apexrank.objectives.UnknownLink`.
    groups : array-like, optional
        See :class:`BoosterObjective`.

    Examples
    --------
    >>> slope, curvature = LinkObjective()([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
    >>> slope.tolist(), curvature.tolist()
    ([1.0, 0.0, -1.0], [1.0, 1.0, 1.0])
    """

    strong_convexity: float = 1.0
    normalize: bool = False

    def __post_init__(self) -> None:
        check_margin(self.strong_convexity)

    def _objective(self, rows: Judged) -> UnknownLink:
        return UnknownLink(
            rows.y,
            groups=rows.groups,
            strong_convexity=self.strong_convexity,
            normalize=self.normalize,
            sample_weight=rows.weight,
        )

    def _slopes(self, objective: UnknownLink, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order, bound = objective.order, np.zeros(len(scores))
        bound[order.rows] = order.spread(objective.factor) * order.weight / objective.s
        return objective.value_and_grad(scores)[1], bound


@dataclass(frozen=True, eq=False)
class ListwiseObjective(BoosterObjective):
    """Fixed targets in each list for boosted trees: ListNet, NDCG-consistent regression, RankCosine.

    The losses are those of :class:`apexrank.ListwiseRanker`. Bounds of the Hessian: the fitted shares m of
    ``diag(m) − m·mᵀ`` for "listnet", a row's weight w for the regressions, and ``3·w/(|s|² + 1)`` with the list's
    scores s for "rank_cosine".

    Parameters
    ----------
    loss : {"listnet", "ndcg_consistent", "pointwise", "rank_cosine"}
    groups : array-like, optional
        See :class:`BoosterObjective`.

    Examples
    --------
    >>> slope, curvature = ListwiseObjective("pointwise")([1.0, 0.0], [0.0, 0.0])
    >>> slope.tolist(), curvature.tolist()
    ([-0.5, 0.5], [1.0, 1.0])
    """

    loss: str = "listnet"

    def __post_init__(self) -> None:
        if self.loss not in FIXED:
            raise InputError(f"unknown loss {self.loss!r}: use one of {', '.join(FIXED)}")

    def _objective(self, rows: Judged) -> FixedTargets:
        y, weight, groups = rows.y, rows.weight, rows.groups
        if self.loss == "listnet":
            return SoftmaxTargets(softmax_of_lists(y, groups, weight), groups=groups, weight=weight)
        if self.loss == "pointwise":
            return SquaredTargets(y, weight=weight)
        if self.loss == "rank_cosine":
            return CosineTargets(y, groups=groups, weight=weight)
        if y.min() < 0:
            raise InputError("negative relevance has no gain 2^y − 1: add a constant to it")
        gain = np.exp2(y) - 1
        best = ideal_dcg(gain, groups, weight)
        shares = np.divide(gain, best, where=best > 0, out=np.zeros(len(gain)))
        return SquaredTargets(shares, groups=groups, weight=weight)

    def _slopes(self, objective: FixedTargets, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grad, weight = objective.value_and_grad(scores)[1], objective.weight
        if isinstance(objective, SoftmaxTargets):
            return grad, np.maximum(grad + weight * objective.targets, 0.0)
        if isinstance(objective, CosineTargets):
            length = objective.sums(weight * scores**2) + 1
            return grad, 3 * weight / length[objective.list_of_row]
        return grad, weight
