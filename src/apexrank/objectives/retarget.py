"""Monotone retargeting: divergence of the scores from the nearest correctly ordered targets.

S. Acharyya, *Learning to Rank in Supervised and Unsupervised Settings using Convexity and Monotonicity*,
dissertation, 2013, chapter 3.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.divergences import DIVERGENCES, KL, Divergence, IDivergence, ShiftedIDivergence, Squared
from apexrank.errors import InputError
from apexrank.objectives.base import HessianTerm
from apexrank.objectives.margins import Margins, Offsets, OrderedLists, Projection, level_offsets
from apexrank.validation import check_finite

UNBOUNDED = -np.inf, np.inf
TARGET_PENALTY = 99.0  # C_r of joint_convexity=True, which gives C_w = 1/200


class Targets(NamedTuple):
    """Targets of the rows in units of the scores, and as values of the first argument of the divergence."""

    natural: np.ndarray
    primal: np.ndarray


class Retarget(OrderedLists):
    """``Σ_q min_r D_φ(r ‖ link(θ_q))`` over correctly ordered targets r, with margins between relevance levels.

    Scores θ are the natural parameters of the divergence. The targets z of a list, in units of the scores, lie in

        C = {z : z_i − z_j ≥ margin·(o_i − o_j) whenever i is more relevant than j},  o the offsets of the levels,

    and r is their link. "squared" gives ``½·dist²(θ_q, C)``: a convex function with gradient ``θ − Π_C(θ)``. Π_C is
    exact: subtract the offsets, sort within the levels, pool adjacent violators (PAV), and add the offsets back.

    With "kl", r is on the simplex and z is a logarithm, so a margin m requires e^m times the probability; the targets
    are ``softmax(o + PAV(θ − o))``, with PAV weights e^o (the cost of a level is ``e^o·D(θ − o ‖ z − o)``). The
    I-divergence needs a group offset β, because ``D(e^z ‖ e^θ)`` falls to 0 with θ; with the sum of the targets of a
    list fixed at ``Σ e^o`` (o relative to the lowest level), the best β leaves that sum times the KL divergence. The
    shifted I-divergence is the same function, with targets larger by 1. No other divergence has an exact projection
    with margins.

    Parameters
    ----------
    relevance : array-like of shape (n,)
        Relevance of each row (larger is better).
    groups : array-like of shape (n,), optional
        One id per row; only rows of the same group are compared. By default all rows form one list. Groups with a
        single relevance are ignored.
    divergence : {"squared", "kl", "i-divergence", "shifted-i-divergence"} or atom
        D_φ; "squared" and "kl" are invariant to a shift of all scores of a group, the others are made so.
    order : {"hidden", "blocks"}
        Whether rows of equal relevance in a group have separate targets in any order ("hidden"), or share one
        ("blocks").
    margin : float
        Unit of the margins; 0 requires only the order, which equal scores of all rows satisfy.
    offsets : {"linear", "gain", "sqrt", "binary"}, array or callable
        See :func:`apexrank.objectives.margins.level_offsets`.
    reward : float
        c in ``− c·Σ gap`` (3.23), where the gap is between the lowest target of a level and the highest of the level
        below. One PAV of ``θ + Gᵀc``, with G the difference operator, gives the minimiser. A reward on the largest
        target with only an upper bound on it (3.24) has no minimum and is not available. The objective may be negative
        and needs a penalty on w.
    bounds : (float or None, float or None), optional
        Lowest and highest target of every list (3.21, 3.22), for "squared" only: C is then also bounded, and Π_C clips
        the targets. The objective is then no longer shift-invariant. If the bounds are exactly as far apart as the
        largest margins, the targets of a list with these margins are low + o, which is regression.
    normalize : bool
        Divide each list by its number of rows.
    joint_convexity : bool or (C_r, C_w)
        Lemma 8, for divergences other than "squared": add ``C_r·D_φ(r ‖ link(o))`` and ``C_w/2·|θ − mean|²``. The
        function of r and θ is jointly convex if ``s·(C_r + 1)·C_w ≥ 1`` with φ s-strongly convex, and then so is the
        function of θ. On the simplex s = 2, because the covariance of a distribution is at most 1/2. True means
        (99, 1/200), which keeps the targets close to the offsets; C_w has more effect on larger lists. Rows of weight
        below 1 count as 1 in its term. Without it only a stationary point can be certified, see :attr:`is_convex`.
    sample_weight : array-like of shape (n,), optional
        Weights; a row of weight 2 counts as two equal rows.
    group_weight : array-like of shape (n,), optional
        Weight of the row's group, the same for all of its rows.

    Examples
    --------
    >>> objective = Retarget([2, 1, 0])
    >>> objective.targets(np.array([0.0, 0.0, 0.0])).natural.tolist()
    [1.0, 0.0, -1.0]
    >>> objective.value_and_grad(np.array([0.0, 0.0, 0.0]))
    (1.0, array([-1.,  0.,  1.]))
    """

    def __init__(
        self,
        relevance: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        divergence: str | Divergence = "squared",
        order: Literal["hidden", "blocks"] = "hidden",
        margin: float = 1.0,
        offsets: Offsets = "linear",
        reward: float = 0.0,
        bounds: tuple[float | None, float | None] | None = None,
        normalize: bool = False,
        joint_convexity: bool | tuple[float, float] = False,
        sample_weight: ArrayLike | None = None,
        group_weight: ArrayLike | None = None,
    ) -> None:
        check_finite("margin", margin, 0)
        check_finite("reward", reward, 0)
        nothing = "there is no pair to rank: in every group all rows have the same relevance"
        super().__init__(relevance, groups, sample_weight, group_weight, normalize, nothing)
        self.divergence, limits = target_space(divergence, bounds)
        offset = margin * level_offsets(self.relevance, offsets)[self.order.rows]
        self.shift_invariant = limits == UNBOUNDED
        self.margins = Margins(self.order, offset, order, reward, not self.is_squared, limits)
        self.mass = np.ones(self.n_groups)  # sum of the targets of each list
        if isinstance(self.divergence, IDivergence | ShiftedIDivergence):
            self.mass = self.order.sums(self.order.weight * np.exp(self.margins.offset))
        self.factor = self.factor * self.mass
        penalties = joint_penalties(joint_convexity)
        self.target_penalty, self.score_penalty = (0.0, 0.0) if self.is_squared else penalties

    @property
    def is_squared(self) -> bool:
        return isinstance(self.divergence, Squared)

    @property
    def lower_bound(self) -> float:  # type: ignore[override]
        return -np.inf if self.margins.reward.any() else 0.0

    @property
    def is_convex(self) -> bool:  # type: ignore[override]
        """Whether the objective is known to be convex: squared, or by Lemma 8."""
        product = 2 * (self.target_penalty + 1) * self.score_penalty
        return self.is_squared or product >= 1 - 1e-12

    @property
    def smoothness(self) -> float:
        """Upper bound on the curvature with respect to the scores, in every direction."""
        curvature = self.order.weight
        if not self.is_squared:  # the covariance of a distribution is at most 1/2
            curvature = 0.5 + self.score_penalty * np.maximum(curvature, 1.0)
        return float((self.order.spread(self.factor) * curvature).max())

    def project(self, scores: np.ndarray) -> Projection:
        """Nearest targets of all lists: one sort within the levels and one PAV."""
        return self.margins.project(np.asarray(scores, dtype=float), self.target_penalty)

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient with respect to the scores, which is that of the divergence at fixed targets."""
        at = self.project(scores)
        value, slope = self._squared_cost(at) if self.is_squared else self._simplex_cost(at)
        return value, self._by_row(at.rows, slope)

    def _squared_cost(self, at: Projection) -> tuple[float, np.ndarray]:
        factor = self.order.spread(self.factor)
        distance = at.theta - at.target
        slope = factor * at.weight * distance
        return float(0.5 * (slope @ distance) - (factor * self.margins.reward) @ at.target), slope

    def _simplex_cost(self, at: Projection) -> tuple[float, np.ndarray]:
        lists, factor = self.order, self.order.spread(self.factor)
        log_p, log_r = self._log_softmax(at.theta, at.weight), self._log_softmax(at.target, at.weight)
        r = np.exp(log_r)
        cost = at.weight * (log_r - log_p) - self.margins.reward
        slope = at.weight * (np.exp(log_p) - r)
        if self.target_penalty:
            log_q = self._log_softmax(self.margins.offset, at.weight)
            cost += self.target_penalty * at.weight * (log_r - log_q)
        value = (factor * r) @ cost
        if self.score_penalty:
            count = np.maximum(at.weight, 1.0)  # smaller values would violate the bound of Lemma 8
            mean = lists.sums(count * at.theta) / lists.sums(count)
            centred = at.theta - lists.spread(mean)
            pull = self.score_penalty * count * centred
            value += 0.5 * (factor * pull) @ centred
            slope += pull
        return float(value), factor * slope

    def _log_softmax(self, theta: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """``θ − log Σ w e^θ`` in each list."""
        lists = self.order
        moved = theta - lists.spread(np.maximum.reduceat(theta, lists.lists[:-1]))
        return moved - lists.spread(np.log(lists.sums(weight * np.exp(moved))))

    def targets(self, scores: np.ndarray) -> Targets:
        """Targets of the rows, in row order.

        ``natural`` are in units of the scores (free up to a constant per group if the divergence is not squared),
        ``primal`` their link: the same for "squared", probabilities for "kl". Rows that do not enter the objective keep
        their own scores and have no probability (nan).
        """
        scores = np.asarray(scores, dtype=float)
        at = self.project(scores)
        natural = scores.copy()
        natural[at.rows] = at.target
        if self.is_squared:
            return Targets(natural, natural)
        shift = 1.0 if isinstance(self.divergence, ShiftedIDivergence) else 0.0
        share = np.exp(self._log_softmax(at.target, at.weight))
        primal = np.full(self.n, np.nan)
        primal[at.rows] = shift + self.order.spread(self.mass) * share
        return Targets(natural, primal)

    def hessian(self, scores: np.ndarray) -> list[HessianTerm]:
        """``diag(d) + U·S·Uᵀ`` with respect to the scores, valid away from changes of the pooled blocks (3.20).

        The targets move with the mean of their block, except those at a bound. For "squared" it is identity minus block
        means. Otherwise, with p the softmax of the scores and r the targets, it is
        ``diag(p) − p·pᵀ − (Σ_B r_B·r_Bᵀ/|r_B| − r·rᵀ)/(1 + C_r)`` plus the curvature of Lemma 8's term; it may have
        negative eigenvalues where the objective is not convex.
        """
        at, factor = self.project(scores), self.order.spread(self.factor)
        if self.is_squared:
            return self._block_means(at.rows, factor * at.weight, at.block, at.held)
        p = at.weight * np.exp(self._log_softmax(at.theta, at.weight))
        r = at.weight * np.exp(self._log_softmax(at.target, at.weight))
        share, penalty = 1 / (1 + self.target_penalty), self.score_penalty * np.maximum(at.weight, 1.0)
        number = self.order.spread(np.arange(len(self.order)))
        columns = [(factor * r, at.block, -share), (factor * r, number, share), (factor * p, number, -1.0)]
        if self.score_penalty:
            columns.append((factor * penalty, number, -1.0))
        diagonal = self._by_row(at.rows, factor * (p + penalty))
        return [(1.0, diagonal, *self._low_rank(at.rows, columns))]

    @property
    def curvature(self) -> float:
        """Natural unit of the curvature with respect to the scores."""
        return super().curvature if self.is_squared else self.total

    @property
    def collapses(self) -> bool:
        """Whether equal scores of all rows are a minimum, without margin and reward."""
        return not (self.margins.offset.any() or self.margins.reward.any())


def checked_bounds(bounds: Any) -> tuple[float, float]:
    """Lowest and highest target, infinite if unbounded.

    Examples
    --------
    >>> checked_bounds((0, None))
    (0.0, inf)
    """
    if bounds is None:
        return UNBOUNDED
    try:
        low, high = (end if own is None else float(own) for own, end in zip(bounds, UNBOUNDED, strict=True))
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not low <= high or low == np.inf or high == -np.inf:
        raise InputError(f"`bounds` must be two numbers in order, or None for no bound, got {bounds!r}")
    return low, high


def joint_penalties(joint_convexity: bool | tuple[float, float]) -> tuple[float, float]:
    """C_r and C_w of Lemma 8.

    Examples
    --------
    >>> joint_penalties(True), joint_penalties(False)
    ((99.0, 0.005), (0.0, 0.0))
    """
    if isinstance(joint_convexity, bool):
        return (TARGET_PENALTY, 0.5 / (1 + TARGET_PENALTY)) if joint_convexity else (0.0, 0.0)
    if not isinstance(joint_convexity, tuple | list) or len(joint_convexity) != 2:
        raise InputError(f"`joint_convexity` must be True, False or (C_r, C_w), got {joint_convexity!r}")
    for name, value in zip(("C_r", "C_w"), joint_convexity, strict=True):
        check_finite(f"{name} of joint_convexity", value, 0)
    return float(joint_convexity[0]), float(joint_convexity[1])


def target_space(divergence: str | Divergence, bounds: Any) -> tuple[Divergence, tuple[float, float]]:
    """Divergence and bounds of the targets; only for "squared" can they be bounded."""
    found, limits = known_divergence(divergence), checked_bounds(bounds)
    if limits != UNBOUNDED and not isinstance(found, Squared):
        raise InputError(
            f"{found.name} takes no bounds, because its targets have a fixed sum in every group: "
            "use `divergence='squared'`"
        )
    return found, limits


def known_divergence(divergence: str | Divergence) -> Divergence:
    """Return the divergence if it has an exact projection with margins on the natural parameter."""
    atom = DIVERGENCES.get(divergence)
    if not isinstance(atom, Squared | KL | IDivergence | ShiftedIDivergence):
        reason = {
            "itakura-saito": "its natural parameters are negative, scores are not",
            "logistic": "its set of targets with margins is not convex",
        }.get(atom.name, "its projection with margins is not known")
        raise InputError(
            f"retargeting cannot use {atom.name}: {reason}; use squared, kl, i-divergence or shifted-i-divergence"
        )
    if getattr(atom, "weight", None) is not None:
        raise InputError(f"retargeting needs {atom.name} without its own weights: use `sample_weight`")
    return atom
