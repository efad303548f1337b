"""Generalised linear models with an unknown link: the cost of scores under their best convex function.

S. Acharyya, *Learning to Rank in Supervised and Unsupervised Settings using Convexity and Monotonicity*,
dissertation, 2013, chapter 4. The gradient printed there (y projected onto the monotone, 1/s-Lipschitz vectors in the
order of the scores) is not the gradient of its cost; the formulas here are derived from the cost itself.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.kernels.permutahedron import SortedFit, Staircase
from apexrank.objectives.base import HessianTerm
from apexrank.objectives.margins import LevelOrder, OrderedLists
from apexrank.validation import check_finite


def check_margin(strong_convexity: Any) -> None:
    """Raise InputError unless s is finite and positive, as needed to fit a model.

    Examples
    --------
    >>> check_margin(0.0)
    Traceback (most recent call last):
    apexrank.errors.InputError: `strong_convexity` must be a finite number above 0, got 0.0: at 0 the minimum is w = 0
    """
    if not isinstance(strong_convexity, Real) or not 0 < float(strong_convexity) < np.inf:
        raise InputError(
            f"`strong_convexity` must be a finite number above 0, got {strong_convexity!r}: at 0 the minimum is w = 0"
        )


class LinkKnots(NamedTuple):
    """Knots of an increasing, piecewise linear link: index θ and value."""

    theta: np.ndarray
    value: np.ndarray


class UnknownLink(OrderedLists):
    """``Σ_q min_φ Σ_{i in q} [φ(y_i) + φ*(θ_i) − y_i θ_i]`` over all s-strongly convex functions φ.

    It measures how far y is from an increasing, 1/s-Lipschitz function of the scores θ, the gradient of φ*. With P(y)
    the permutahedron of y, the convex hull of its permutations, Kantorovich duality and Moreau smoothing give

        m_s(θ) = max_{v in P(y)} [<v,θ> − (s/2)·|v|²] + (s/2)·|y|² − <y,θ>,    ∇m_s(θ) = v − y,  v = Π_{P(y)}(θ/s).

    It is convex with a 1/s-Lipschitz gradient, takes one sort and one PAV, and is zero exactly if
    ``θ_i − θ_j ≥ s·(y_i − y_j)`` for all y_i > y_j: s is a margin. Since ``m_s(s·u) = s·m_1(u)``, s only scales the
    scores. For s = 0 it is ``<θ↓,y↓> − <θ,y>``, the Lovász–Bregman divergence of a cardinality-based function, and is
    0 for equal scores.

    The chapter's variant for ranking also minimises over increasing transforms of y; equal targets for all rows then
    solve it unless there is a margin. :class:`apexrank.objectives.retarget.Retarget` has margins.

    Parameters
    ----------
    y : array-like of shape (n,)
        Values, or relevance grades (larger is better).
    groups : array-like of shape (n,), optional
        One id per row; each group has its own link. By default there is one link for all rows. Groups with a single
        value of y are ignored.
    strong_convexity : float
        s; the link is 1/s-Lipschitz.
    normalize : bool
        Divide the cost of each group by its number of rows; with one group the objective is a mean.
    sample_weight : array-like of shape (n,), optional
        Weights; a row of weight 2 counts as two equal rows.
    group_weight : array-like of shape (n,), optional
        Weight of the row's group, the same for all of its rows.

    Examples
    --------
    >>> objective = UnknownLink([1.0, 2.0, 4.0])
    >>> objective.value_and_grad(np.array([0.0, 2.0, 5.0]))
    (0.0, array([0., 0., 0.]))
    >>> value, gradient = objective.value_and_grad(np.array([6.0, 3.0, 0.0]))
    >>> value, gradient.tolist()
    (18.0, [3.0, 0.0, -3.0])
    """

    def __init__(
        self,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        strong_convexity: float = 1.0,
        normalize: bool = False,
        sample_weight: ArrayLike | None = None,
        group_weight: ArrayLike | None = None,
    ) -> None:
        check_finite("strong_convexity", strong_convexity, 0)
        nothing = "there is no link to fit: y has only one value in every group"
        super().__init__(y, groups, sample_weight, group_weight, normalize, nothing)
        self.y, self.s = self.relevance, float(strong_convexity)
        values = self.y[self.order.rows]
        # the cost is invariant to shifts of y: centring keeps the digits of values far from zero
        self.middle = values[(self.order.lists[:-1] + self.order.lists[1:]) // 2]
        self.staircase = Staircase(
            values - self.order.spread(self.middle), self.order.lists, self.order.weight
        )

    @property
    def lists(self) -> LevelOrder | None:
        """Lists within which a model measures the spread of its columns; None for a single list."""
        return self.order if self.n_groups > 1 else None

    @property
    def has_hessian(self) -> bool:  # type: ignore[override]
        return self.s > 0

    @property
    def smoothness(self) -> float:
        """Upper bound on the curvature with respect to the scores, in every direction."""
        highest = float((self.order.spread(self.factor) * self.order.weight).max())
        return highest / self.s if self.s > 0 else np.inf

    def project(self, scores: np.ndarray) -> SortedFit:
        """``Π_{P(y)}(θ/s)`` of all lists, sorted by list and score: one sort and one PAV."""
        return self.staircase.project(np.asarray(scores, dtype=float)[self.order.rows], self.s)

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient with respect to the scores.

        The value is ``Σ c·(v − y)·(θ − (s/2)·(v + y))``, a sum of terms that are small near the minimum. Because
        ``Σ c·(v − y) = 0`` in each list, θ may be centred in each list.
        """
        order, at = self.order, self.project(scores)
        y, c = self.staircase.y[at.order], order.weight[at.order]
        slope = order.spread(self.factor) * c * (at.values - y)
        centred = at.theta - order.spread(order.sums(c * at.theta) / order.sums(c))
        value = float(slope @ (centred - 0.5 * self.s * (at.values + y)))
        return max(value, 0.0) if value == value else value, self._by_row(order.rows[at.order], slope)

    def fitted(self, scores: np.ndarray) -> np.ndarray:
        """Values v of the best link, by row; y itself in groups with a single value, nan for rows of weight 0."""
        at = self.project(scores)
        v = self.y.copy() if self.weight is None else np.where(self.weight > 0, self.y, np.nan)
        v[self.order.rows[at.order]] = at.values + self.order.spread(self.middle)
        return v

    def link(self, scores: np.ndarray) -> LinkKnots:
        """Optimal link at these scores; for a single list only.

        A PAV block is a segment of slope 1/s through its points (θ, v), from the block's lowest y to its highest;
        segments are joined by straight lines. φ is quadratic with curvature s exactly where a value of v is a mixture
        of values of y, as optimality requires.
        """
        if self.n_groups > 1:
            raise InputError(f"there are {self.n_groups} groups with a link each: fit them one by one")
        at = self.project(scores)
        first = np.flatnonzero(np.diff(at.block, prepend=-1))
        last = np.append(first[1:], len(at.block)) - 1
        rows, value = np.stack([first, last], axis=1), np.stack([at.low[first], at.high[last]], axis=1)
        theta = at.theta[rows] + self.s * (value - at.values[rows])
        return LinkKnots(np.maximum.accumulate(theta.ravel()), value.ravel() + self.middle[0])

    def hessian(self, scores: np.ndarray) -> list[HessianTerm]:
        """``diag(d) + U·S·Uᵀ`` with respect to the scores, valid away from changes of the pooled blocks.

        It is ``1/s`` times (identity minus block means) on blocks of more than one row, and 0 elsewhere.
        """
        at = self.project(scores)
        weight = self.order.spread(self.factor) * self.order.weight[at.order] / self.s
        return self._block_means(self.order.rows[at.order], weight, at.block)

    @property
    def curvature(self) -> float:
        """Natural unit of the curvature with respect to the scores."""
        return super().curvature / (self.s or 1.0)
