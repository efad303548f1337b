"""Objectives and metrics for LightGBM and XGBoost; one object works with all of their interfaces.

An objective here is a function of the scores, and boosted trees need only its gradient and curvature in each row.
Neither package is imported here: their data objects are recognised by their methods.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank import metrics
from apexrank.divergences import Divergence
from apexrank.errors import InputError
from apexrank.losses import LOSSES, Exponential, Logistic, Loss
from apexrank.metrics.evaluation import find_measure
from apexrank.objectives import (
    CosineTargets,
    CrucialPairs,
    InfinitePush,
    PClassification,
    Push,
    Retarget,
    SoftmaxTargets,
    UnknownLink,
)
from apexrank.objectives.link import check_margin
from apexrank.objectives.margins import Offsets, level_offsets, offset_table
from apexrank.prices import Power
from apexrank.rankers.listwise import LOSSES as LISTWISE
from apexrank.rankers.listwise import listwise_objective
from apexrank.validation import check_choice, check_finite

__all__ = [
    "BoosterMetric",
    "BoosterObjective",
    "LinkObjective",
    "ListwiseObjective",
    "PClassificationObjective",
    "PairsObjective",
    "PushObjective",
    "RetargetObjective",
]


class BoosterRows(NamedTuple):
    """Labels, weights and group ids of rows; ``list_weight`` has one weight per list, repeated for its rows."""

    y: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray | None
    list_weight: np.ndarray | None

    @property
    def data(self) -> dict[str, Any]:
        """Weights and groups as arguments of an objective."""
        return {"sample_weight": self.weight, "groups": self.groups}

    def same(self, other: BoosterRows) -> bool:
        """Whether all arrays are equal."""
        return all(
            a is b or (a is not None and b is not None and np.array_equal(a, b))
            for a, b in zip(self, other, strict=True)
        )


# smallest data set on which parameters can be validated
TWO_ROWS = BoosterRows(np.array([1.0, 0.0]), None, None, None)
# minimum curvature of a row, relative to an initial mean of 1: a leaf of rows without influence does not move
FLOOR = 1e-3


def booster_rows(
    first: Any, second: Any, sample_weight: Any, group: Any, ids: ArrayLike | None
) -> tuple[np.ndarray, BoosterRows]:
    """Parse a call, either (scores, data) or (labels, scores, weights, group sizes), into scores and rows.

    ``ids`` are group ids given by the user; they replace the sizes.

    Examples
    --------
    >>> scores, rows = booster_rows([1, 0, 1], [0.5, 0.2, 0.1], None, [2, 1], None)
    >>> scores.tolist(), rows.y.tolist(), rows.groups.tolist()
    ([0.5, 0.2, 0.1], [1.0, 0.0, 1.0], [0, 0, 1])
    """
    if hasattr(second, "get_label"):
        scores, y = first, second.get_label()
        sample_weight, group = second.get_weight(), second.get_group()
    else:
        y, scores = first, second
    scores, y = (np.asarray(values, dtype=float).ravel() for values in (scores, y))
    if len(scores) != len(y):
        raise InputError(
            f"there are {len(scores)} scores for {len(y)} labels: several scores per row are not supported"
        )
    if not np.isfinite(y).all():
        raise InputError(
            f"the label is missing or infinite in row {int(np.argmin(np.isfinite(y)))}: fill or drop it"
        )
    sizes, weight, list_weight = _given(group), _given(sample_weight), None
    if weight is not None:
        weight = weight.astype(float)
        if sizes is not None and len(weight) == len(sizes) != len(y):  # XGBoost has one weight per query
            list_weight, weight = np.repeat(weight, sizes), None
        elif len(weight) != len(y):
            raise InputError(
                f"there are {len(weight)} weights for {len(y)} rows: give one per row, or one per group"
            )
    return scores, BoosterRows(y, weight, _ids(ids, sizes, len(y)), list_weight)


def _given(values: Any) -> np.ndarray | None:
    """Convert to an array or None; XGBoost uses empty arrays where LightGBM uses None."""
    return None if values is None or len(values) == 0 else np.asarray(values)


def _ids(ids: ArrayLike | None, sizes: np.ndarray | None, n: int) -> np.ndarray | None:
    if ids is not None:
        given = np.asarray(ids)
        if given.shape != (n,):
            raise InputError(
                f"`groups` needs one id per row: expected {n} ids, got shape {given.shape}; "
                "held-out rows need their own ids"
            )
        return given
    if sizes is None:
        return None
    if sizes.sum() != n:
        raise InputError(f"the sizes of the groups sum to {int(sizes.sum())}, but there are {n} rows")
    return np.repeat(np.arange(len(sizes)), sizes)


class _Built(NamedTuple):
    rows: BoosterRows
    objective: Any
    scale: float


@dataclass(frozen=True, eq=False)
class BoosterObjective:
    """Base class of objectives that work with every interface of LightGBM and XGBoost.

    =============================================== ======================================
    ``lightgbm.train({"objective": o}, data)``      groups and weights of the ``Dataset``
    ``lightgbm.LGBMRegressor(objective=o)``         also ``LGBMRanker``, with ``fit(..., group=sizes)``
    ``xgboost.train({}, data, obj=o)``              groups and weights of the ``DMatrix``
    ``xgboost.XGBRegressor(objective=o)``           no groups there: ``groups=ids`` here
    =============================================== ======================================

    ``xgboost.XGBRanker`` accepts no custom objective.

    **Units.** Gradient and curvature are multiplied by a constant such that the mean curvature of the rows that enter
    the objective is 1 at equal scores. So a leaf of m rows has a curvature of about m for any objective, as with the
    squared error, and the packages' defaults for learning rate, minimum curvature of a leaf and penalty are suitable.

    **Curvature.** Trees take a step −Σ gradient / Σ curvature in each leaf. Each class (except for hinge losses)
    provides an upper bound on the diagonal of the Hessian at the current scores; twice this bounds the Hessian itself,
    so steps are too short rather than too long at any learning rate below 1. No row has less than 1/1000 of the initial
    mean.

    Without groups all rows form one list of any length. If XGBoost has one weight per query, the objective is the
    weighted sum of the costs of the queries.

    Parameters
    ----------
    groups : array-like, optional
        One id per row of the training data, of any type and in any order. It replaces the group sizes of the data,
        whose rows then need not be sorted.
    """

    groups: ArrayLike | None = field(default=None, kw_only=True, repr=False)
    _built: _Built | None = field(default=None, init=False, repr=False)

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None, group: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and curvature of each row, for ``(labels, scores, weights, sizes)`` or ``(scores, data)``."""
        scores, rows = booster_rows(y_true, y_pred, sample_weight, group, self.groups)
        built = self._build(rows)
        grad, curvature = self._slopes(built.objective, scores)
        hess = np.maximum(built.scale * curvature, FLOOR)
        grad = built.scale * grad
        if rows.list_weight is None:
            return grad, hess
        return rows.list_weight * grad, np.maximum(rows.list_weight * hess, FLOOR)

    def value(self, y_true: Any, y_pred: Any, sample_weight: Any = None, group: Any = None) -> float:
        """Objective at the scores, unscaled; arguments as in a call."""
        scores, rows = booster_rows(y_true, y_pred, sample_weight, group, self.groups)
        if rows.list_weight is not None:
            raise InputError("the value of an objective has no weights of queries: give one weight per row")
        return self.value_of(rows, scores)

    def value_of(self, rows: BoosterRows, scores: np.ndarray) -> float:
        """Objective of parsed rows."""
        return self._build(rows).objective.value_and_grad(scores)[0]

    def _build(self, rows: BoosterRows) -> _Built:
        """Objective of these rows, cached because they are the same in each round."""
        built = self._built
        if built is None or not built.rows.same(rows):
            objective = self._objective(rows)
            curvature = self._slopes(objective, np.zeros(len(rows.y)))[1]
            total, count = float(curvature.sum()), int(np.count_nonzero(curvature))
            built = _Built(rows, objective, count / total if total > 0 else 1.0)
            object.__setattr__(self, "_built", built)
        return built

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_built": None}  # rebuilt from the rows

    def _objective(self, rows: BoosterRows) -> Any:
        raise NotImplementedError

    def _slopes(self, objective: Any, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient, and the diagonal that bounds the Hessian."""
        raise NotImplementedError


def options_of(made: Any) -> dict[str, Any]:
    """Parameters of an objective or loss that is a dataclass, except groups.

    Examples
    --------
    >>> options_of(PClassificationObjective(p=2))
    {'p': 2}
    """
    names = [one.name for one in fields(made) if one.init and one.name != "groups"]
    return {name: getattr(made, name) for name in names}


@dataclass(frozen=True, eq=False)
class PushObjective(BoosterObjective):
    """P-Norm Push (Rudin 2009) for boosted trees; rows with a label above 0 are the positives.

    It is :class:`apexrank.objectives.Push`, ``LSE(−f) + (1/p)·LSE(p·g)`` for the exponential loss. With
    a = softmax(−f) and q = softmax(p·g) its Hessian is ``diag(a) − a·aᵀ`` and ``p·(diag(q) − q·qᵀ)``, so a and p·q are
    upper bounds; a leaf of positives moves by the learning rate, one of negatives by 1/p of it. Other losses use
    ``R^{1/p}``, and p·|gradient| bounds the diagonal for the logistic loss, since ``ℓ'' ≤ |ℓ'| ≤ ℓ``. Hinge losses use
    it too, although it is not a bound: a step that is too long only reaches a region of zero loss.

    Parameters
    ----------
    p : float
        Larger values concentrate on the top of the list; 1 is RankBoost's objective. With ``inf`` only the highest
        negative counts, with the maximum smoothed by ``beta``.
    loss : {"exponential", "logistic", "squared_hinge", "hinge"} or atom
    side : {"top", "bottom", "both"}
    balance : float
        Weight of the bottom for "both".
    price : {"power", "log1p"}
        "log1p" is the discount of the IR Push, which has no p; exponential loss only.
    beta : float
        For p = ∞: the maximum is ``(1/β)·LSE(β·g)``.
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
            raise InputError(f"unknown `price` {self.price!r}: boosted trees take power or log1p")
        if self.p != np.inf:
            check_finite("p", self.p, 1)
        check_finite("beta", self.beta, 1)
        self._objective(TWO_ROWS)  # validates the combination of parameters before there are any data

    def _objective(self, rows: BoosterRows) -> Any:
        common = {"loss": self.loss, "side": self.side, "balance": self.balance, **rows.data}
        if self.price == "log1p":
            return Push(rows.y > 0, price="log1p", **common)
        if self.p == np.inf:
            return InfinitePush(rows.y > 0, beta=self.beta, **common)
        return Push(rows.y > 0, price=Power(self.p), **common)

    def _slopes(self, objective: Any, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grad = objective.value_and_grad(scores)[1]
        is_exponential = isinstance(LOSSES.get(self.loss), Exponential)
        # curvature relative to the gradient; for p = ∞, other losses of the highest negative's score add at most 1
        order = self.p if self.p != np.inf else self.beta + (not is_exponential)
        bound = np.abs(grad) * (1.0 if self.price == "log1p" else order)
        if is_exponential and self.side != "both":
            inner = objective.positive == (self.side == "top")
            bound[inner] = np.abs(grad[inner])
        return grad, bound


@dataclass(frozen=True, eq=False)
class PClassificationObjective(BoosterObjective):
    """P-Classification (Ertekin & Rudin 2011) for boosted trees: the push as a sum of exponentials over rows.

    It is :class:`apexrank.objectives.PClassification`, ``min_b Σ_i e^{−(f_i + b)} + (1/p)·Σ_k e^{p(g_k + b)}``. At the
    optimal b the curvatures of the sum, |gradient| for positives and p·|gradient| for negatives, bound the Hessian,
    because minimising over b only reduces curvature. It gives the same ranking as :class:`PushObjective`, but gradient
    and curvature decrease with the objective, so a minimum curvature of a leaf stops the growth of trees.

    Parameters
    ----------
    p : float
        As in :class:`PushObjective`; must be finite.
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

    def _objective(self, rows: BoosterRows) -> PClassification:
        return PClassification(Push(rows.y > 0, price=Power(self.p), **rows.data))

    def _slopes(self, objective: PClassification, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grad = objective.value_and_grad(scores)[1]
        return grad, np.abs(grad) * np.where(objective.positive, 1.0, self.p)


FIXED = tuple(name for name in LISTWISE if name != "unknown_link")  # "unknown_link" is LinkObjective
COLLAPSED = "without margins equal scores of all rows are a minimum: set margin > 0 and offsets that differ"


@dataclass(frozen=True, eq=False)
class PairsObjective(BoosterObjective):
    """Push on graded relevance for boosted trees: every row above all less relevant ones of its list.

    It is :class:`apexrank.objectives.CrucialPairs`. The gradient of a row is m − u: m for ranking above better rows, u
    for ranking below worse ones. ``p·(m + u)`` bounds its curvature; for the logistic loss m itself is a bound.

    Parameters
    ----------
    p : float
        Larger values concentrate on the highest misplaced rows.
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

    def _objective(self, rows: BoosterRows) -> CrucialPairs:
        return CrucialPairs(rows.y, loss=self.loss, price=Power(self.p), **rows.data)

    def _slopes(self, objective: CrucialPairs, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, mass, log_r, memory = objective._evaluate(scores)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            grad = objective.pairs.pull(log_r, memory, mass)
        return grad, self.p * (2 * mass - grad)


@dataclass(frozen=True, eq=False)
class RetargetObjective(BoosterObjective):
    """Monotone retargeting (Acharyya 2013, chapter 3) for boosted trees: fit the nearest correctly ordered targets.

    It is :class:`apexrank.objectives.Retarget`. The squared divergence has the gradient ``θ − Π(θ)``, the scores minus
    their targets; the derivative of a projection is at most the identity, so the curvature of a row is bounded by its
    weight, and each round is a regression on the current targets. The other divergences have the curvature of a
    softmax, bounded by its probabilities.

    Weights of the data are row weights: doubling them in all rows of a query doubles its cost, and larger weights on
    the more relevant rows correct the top of the list first. "kl" and related divergences treat them as repetitions of
    rows.

    Parameters
    ----------
    divergence, order, margin, offsets, bounds, normalize, joint_convexity
        As in :class:`apexrank.objectives.Retarget`; the margin must be positive.
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
    bounds: tuple[float | None, float | None] | None = None
    normalize: bool = False
    joint_convexity: bool | tuple[float, float] = True

    def __post_init__(self) -> None:
        check_retarget(**options_of(self))
        if self.margin == 0:
            raise InputError(COLLAPSED)

    def _objective(self, rows: BoosterRows) -> Retarget:
        objective = Retarget(rows.y, **rows.data, **options_of(self))
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
    """Raise InputError for parameters of :class:`apexrank.objectives.Retarget` that are invalid for any data.

    A function of the relevance is not called: it may be undefined for grades that the data do not have.

    Examples
    --------
    >>> check_retarget("sqrt", divergence="squared", margin=-1.0)
    Traceback (most recent call last):
    apexrank.errors.InputError: `margin` must be a finite number of at least 0, got -1.0
    """
    Retarget(TWO_ROWS.y, offsets=[0.0, 0.0], **options)  # the maximum width of margins depends on the data
    if not callable(offsets):
        n_grades = 2 if isinstance(offsets, str) else offset_table(offsets).size
        level_offsets(np.arange(float(n_grades)), offsets)


@dataclass(frozen=True, eq=False)
class LinkObjective(BoosterObjective):
    """Regression with an unknown increasing link (Acharyya 2013, chapter 4) for boosted trees.

    It is :class:`apexrank.objectives.UnknownLink`: the distance of y from an increasing, 1/s-Lipschitz function of the
    scores, one per group. Its gradient is a projection of the scores divided by s, so the curvature of a row is at most
    its weight divided by s.

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

    def _objective(self, rows: BoosterRows) -> UnknownLink:
        return UnknownLink(rows.y, **rows.data, **options_of(self))

    def _slopes(self, objective: UnknownLink, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order, bound = objective.order, np.zeros(len(scores))
        bound[order.rows] = order.spread(objective.factor) * order.weight / objective.s
        return objective.value_and_grad(scores)[1], bound


@dataclass(frozen=True, eq=False)
class ListwiseObjective(BoosterObjective):
    """Listwise losses with fixed targets for boosted trees: ListNet, NDCG-consistent regression, RankCosine.

    The losses are those of :class:`apexrank.ListwiseRanker`. The bounds on the Hessian are the fitted probabilities m
    of ``diag(m) − m·mᵀ`` for "listnet", the row weight w for the regressions, and ``3·w/(|s|² + 1)`` with the list's
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
        check_choice("loss", self.loss, FIXED)

    def _objective(self, rows: BoosterRows) -> Any:
        return listwise_objective(self.loss, rows.y, sample_weight=rows.weight, groups=rows.groups)

    def _slopes(self, objective: Any, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grad, weight = objective.value_and_grad(scores)[1], objective.weight
        if isinstance(objective, SoftmaxTargets):
            return grad, np.maximum(grad + weight * objective.targets, 0.0)
        if isinstance(objective, CosineTargets):
            length = objective.sums(weight * scores**2) + 1
            return grad, 3 * weight / length[objective.list_of_row]
        return grad, weight


_NO_GROUP = object()  # LightGBM's estimators always pass groups, those of XGBoost never


@dataclass(frozen=True, eq=False)
class BoosterMetric:
    """Metric by name, or the value of an objective, evaluated after each round of LightGBM or XGBoost.

    =================================================== =============================================
    ``lightgbm.train(..., feval=m)``                    only this one with ``"metric": "None"``
    ``lightgbm.LGBMRanker().fit(..., eval_metric=m)``   also the other estimators
    ``xgboost.train(..., custom_metric=m)``             only this with ``"disable_default_eval_metric": 1``
    ``xgboost.XGBRegressor(eval_metric=m)``             no groups there: ``groups=ids`` here
    =================================================== =============================================

    LightGBM is told whether larger is better. XGBoost guesses it from the name (a prefix "ndcg", "map", "auc" or "pre"
    means that larger is better), so for early stopping use
    ``xgboost.callback.EarlyStopping(rounds=n, maximize=m.greater_is_better)``.

    Parameters
    ----------
    measure : str or BoosterObjective
        A name accepted by :func:`apexrank.metrics.evaluate`, such as "ndcg@10", "auc" or "partial_auc_0.05"; or an
        objective, whose value is reported.
    options : dict, optional
        Options of :func:`apexrank.metrics.evaluate`, such as ``{"relevant": 2}`` or ``{"ties": "given"}``.
    weighted : bool
        Whether to use the weights of the rows. These are often meant for training only, so the default is False.
    groups : array-like, optional
        One id per row of the evaluated data, instead of the sizes there.

    Examples
    --------
    >>> metric = BoosterMetric("ndcg@10")
    >>> metric([1, 0, 1], [0.9, 0.5, 0.7])
    1.0
    >>> metric([1, 0, 1], [0.9, 0.5, 0.7], None, [3])
    ('ndcg@10', 1.0, True)
    """

    measure: str | BoosterObjective
    options: dict[str, Any] = field(default_factory=dict)
    weighted: bool = False
    groups: ArrayLike | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.measure, BoosterObjective):
            find_measure(self.measure)
        elif self.options:
            raise InputError("options apply only to a measure given by name: an objective has its own")

    @property
    def __name__(self) -> str:
        """Name in the logs of both packages."""
        return type(self.measure).__name__ if isinstance(self.measure, BoosterObjective) else self.measure

    @property
    def greater_is_better(self) -> bool:
        """Whether a larger value is better."""
        if isinstance(self.measure, BoosterObjective):
            return False
        return find_measure(self.measure).family.greater_is_better

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None, group: Any = _NO_GROUP) -> Any:
        """Value in the form that the caller expects: a number, (name, value), or (name, value, larger is better)."""
        sizes = None if group is _NO_GROUP else group
        value = self._value(y_true, y_pred, sample_weight, sizes)
        is_data = hasattr(y_pred, "get_label")
        if group is _NO_GROUP and not is_data:
            return value
        if is_data and hasattr(y_pred, "num_row"):  # XGBoost's
            return self.__name__, value
        return self.__name__, value, self.greater_is_better

    def _value(self, y_true: Any, y_pred: Any, sample_weight: Any, sizes: Any) -> float:
        scores, rows = booster_rows(y_true, y_pred, sample_weight, sizes, self.groups)
        weight = rows.weight if self.weighted else None
        if self.weighted and rows.list_weight is not None:
            raise InputError("measures have no weights of queries: give one weight per row")
        if isinstance(self.measure, BoosterObjective):
            return self.measure.value_of(rows._replace(weight=weight, list_weight=None), scores)
        found = metrics.evaluate(
            rows.y, scores, self.measure, groups=rows.groups, sample_weight=weight, **self.options
        )
        return next(iter(found.values()))
