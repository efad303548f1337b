"""Linear problem: a design, an objective of its scores and a penalty, with certificates of optimality."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from apexrank.errors import InputError
from apexrank.objectives.base import Objective
from apexrank.penalties import Penalty, Ridge
from apexrank.problem.design import (
    FAR,
    NEAR,
    WIDEST_HESSIAN,
    DenseDesign,
    Design,
    design_of,
    spread_inside,
    usable_units,
)

LEAST_TOTAL = 1e-290  # an objective at equal scores must lie between this and its inverse
CLOSE = 1e-6  # largest difference of values that single-precision rounding may hide


class Certificate(NamedTuple):
    """Optimality certificate: scaled gradient norm, duality gap, and the natural unit of the gap."""

    grad_norm: float
    gap: float
    unit: float


class Problem:
    """``min_w objective(X·w)/count + penalty(w)``.

    ``value_and_grad`` and ``hessian`` cover the smooth part, which excludes the L1 norm and the bounds of the penalty;
    solvers take those from ``penalty``.

    Parameters
    ----------
    design : Design or matrix
        The rows; a matrix is converted to a :class:`DenseDesign` or :class:`SparseDesign`.
    objective : Objective
        Function of the scores of all rows; it is divided by its ``count``.
    penalty : Penalty or float
        A number is the alpha of a :class:`~apexrank.penalties.Ridge`.
    sample_weight : array, optional
        Weights of the rows, used only for the units of the columns.

    Attributes
    ----------
    scale, spread, centre : arrays of shape (n_features,)
        Units of the columns with and without the penalty, and their means.
    total, curvature, grad_unit : float
        Natural units of value and duality gap, of curvature, and of the gradient.
    lower_bound : float
        Lower bound of the objective, divided by its count.

    Examples
    --------
    >>> from apexrank.objectives import Push
    >>> from apexrank.penalties import NonNegative
    >>> problem = Problem(np.array([[-1.0], [1.0]]), Push([True, False]), NonNegative(Ridge(1.0)))
    >>> problem.certificate(np.zeros(1), *problem.value_and_grad(np.zeros(1))).gap
    0.0
    """

    def __init__(
        self,
        design: Design | Any,
        objective: Objective,
        penalty: Penalty | float = 0.0,
        sample_weight: Any = None,
    ) -> None:
        self.design: Design = design if isinstance(design, Design) else design_of(design)
        self.penalty = penalty if isinstance(penalty, Penalty) else Ridge(penalty)
        self.n_features = self.design.n_features
        self.n_repeated = 0.0 if sample_weight is None else float(sample_weight.sum())
        self.penalty.check(self.n_features)
        self.objective, self.count, total = objective, objective.count, objective.total
        if not LEAST_TOTAL <= total <= 1 / LEAST_TOTAL:  # it is squared later
            raise InputError(
                f"at equal scores the objective is {total:.3g}, out of the range of computation: "
                "divide the weights by their mean, or scale the target"
            )
        self.total = total / self.count
        # effect of a unit change of the scores: the value itself, unless the objective is quadratic
        self.curvature = objective.curvature / self.count
        self.grad_unit = np.sqrt(self.total * self.curvature)
        self.lower_bound = objective.lower_bound / self.count
        self._last: tuple[np.ndarray, float, np.ndarray] | None = None
        centre, spread = self.design.units(sample_weight)
        if not objective.shift_invariant:  # the Hessian and the units refer to uncentred rows
            centre, spread = 0 * centre, np.hypot(centre, spread)
        elif objective.lists is not None and self.design.can_move:
            spread = spread_inside(self.design, objective.lists)
        unseen = objective.shift_invariant and self.design.can_move and self.design.shift is None
        # the gap for p = ∞ is a difference of large sums of scores
        if unseen and np.any(np.abs(centre) > (NEAR if objective.is_smoothed else FAR) * spread):
            # so far from zero that scores would lose significant digits; the objective is invariant to the shift
            self.design, centre = self.design.moved(centre), 0 * centre
            if objective.lists is None:  # after centring, rounding no longer hides the spread
                spread = self.design.units(sample_weight)[1]
        self.spread = usable_units(spread, self.design.varies)
        self.centre = centre
        self.scale = np.hypot(self.spread, np.sqrt(self.penalty.diagonal(self.n_features) / self.curvature))

    def in_span(self) -> SpanProblem | None:
        """Problem in the span of its rows, if that has fewer variables and a ridge keeps the minimiser there."""
        # a row of weight 3 counts as three rows, so that weighted and repeated rows take the same path
        n = max(self.design.n_rows, self.n_repeated)
        ridge = self.penalty.convexity > 0 and not self.needs - {"limit"}
        # Newton's steps do not depend on the coordinates; those of L-BFGS depend on the basis of the span
        ridge = ridge and (self.objective.has_hessian or "limit" in self.needs)
        narrow = n < self.n_features and n <= WIDEST_HESSIAN
        return SpanProblem(self) if ridge and narrow and self.design.has_span else None

    def with_objective(self, objective: Objective) -> Self:
        """Copy of the problem with another objective of the same kind, in the same units."""
        other = copy(self)
        other.objective, other.count = objective, objective.count
        return other

    def with_penalty(self, penalty: Penalty) -> Self:
        """Copy of the problem with another penalty."""
        other = copy(self)
        other.penalty, other._last = penalty, None
        other.scale = np.hypot(self.spread, np.sqrt(penalty.diagonal(self.n_features) / self.curvature))
        return other

    def value_and_grad(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Smooth part and its gradient; non-finite, without a warning, if the scores overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            value, grad = self.design.evaluate(self.objective, w)
            if self.count != 1:
                value, grad = value / self.count, grad / self.count
            own, slope = self.penalty.smooth(w)
            value, grad = value + own, grad + slope
        return self._steadied(w, value, grad) if self.design.is_rough else value, grad

    def _steadied(self, w: np.ndarray, value: float, grad: np.ndarray) -> float:
        """Value corrected for rounding noise relative to the previous point, if the two are close.

        In single precision the value is accurate to about 1e-8, which hides the gain of a step near the minimum. The
        gradient still shows it: the gain is ``½·(∇ + ∇before)·step``, up to third order in the step.
        """
        if self._last is not None:
            before, value_before, grad_before = self._last
            steady = value_before + 0.5 * float((grad + grad_before) @ (w - before))
            if max(abs(value - value_before), abs(value - steady)) <= CLOSE:
                value = steady
        self._last = w.copy(), value, grad
        return value

    def penalised(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Full value, and the gradient of the smooth part."""
        value, grad = self.value_and_grad(w)
        return value + self.penalty.rough(w), grad

    @property
    def needs(self) -> set[str]:
        """Features that a solver must support besides a ridge: "l1", "groups", "bounds", "quadratic" or "limit"."""
        penalty, grouped = self.penalty, self.penalty.is_grouped
        found = {"l1": penalty.l1 > 0 and not grouped, "groups": grouped, "bounds": penalty.is_bounded}
        found["limit"] = self.objective.is_smoothed
        found["quadratic"] = not np.isscalar(penalty.curvature)
        return {name for name, needed in found.items() if needed}

    @property
    def hessian_cost(self) -> float:
        """Number of multiplications for :meth:`hessian`; infinite without a formula or with too many features."""
        known = self.objective.has_hessian and self.n_features <= WIDEST_HESSIAN
        return self.design.hessian_work if known else np.inf

    def hessian(self, w: np.ndarray) -> np.ndarray:
        """Hessian of the smooth part, a dense n_features x n_features matrix."""
        return self.penalty.hessian(self.n_features) + (
            self.design.hessian(self.objective, w, self.centre) / self.count
        )

    def slope(self, w: np.ndarray) -> np.ndarray:
        """Gradient of the objective alone."""
        return self.design.pull_back(self.objective.value_and_grad(self.design.scores(w))[1]) / self.count

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Scores of the original rows."""
        scores = self.design.scores(w)
        return scores if self.design.shift is None else scores + self.design.offset(w)

    def grad_norm(self, grad: np.ndarray) -> float:
        """Largest gradient entry in units of its column's standard deviation.

        For ``log R`` without penalty, it is the remaining distance, in standard deviations, between the weighted means
        of the positives and the negatives. A penalty adds its own curvature to the unit.
        """
        return float(np.abs(grad / self.scale).max(initial=0.0)) / self.grad_unit

    def certificate(self, w: np.ndarray, value: float, grad: np.ndarray) -> Certificate:
        """Certificate at ``w``, given the full value and the gradient of the smooth part there.

        Without an L1 norm, the unit at w = 0, where all rows are tied, is only the spread of the columns: a penalty
        must not hide a nonzero gradient. Without a quadratic part everything is relative to the value above the lower
        bound of the objective, which may be far smaller than at w = 0.
        """
        penalty = self.penalty
        slope = penalty.subgradient(w, grad)
        norm, gap = self.grad_norm(slope), self.dual_gap(w, value, grad)
        if penalty.l1 == 0:
            if not w.any():
                norm = float(np.abs(slope / self.spread).max(initial=0.0)) / self.grad_unit
                gap = gap if norm == 0 else np.inf
            return Certificate(norm, gap, max(self.total, abs(value)))
        if penalty.convexity > 0:
            return Certificate(norm, gap, max(self.total, abs(value)))
        unit = np.clip(value - self.lower_bound, np.finfo(float).eps * self.total, self.total)
        return Certificate(norm * self.total / unit, gap, unit)

    def dual_gap(self, w: np.ndarray, value: float, grad: np.ndarray) -> float:
        """Upper bound on value − minimum, using the gradient of the objective as dual point; nan if there is none.

        A lasso needs a dual point in its box ``|Xᵀθ| ≤ l1``, so θ is scaled down to ``s·θ``; an objective F ≥ L gives
        ``−F*(sθ) ≥ s·dual + (1 − s)·L`` by convexity, and an exponential one ``−F*(sθ) ≥ s·dual − s·log(s)·F``.
        """
        penalty, objective = self.penalty, self.objective
        if not objective.is_convex:
            return float("nan")
        if penalty.l1 == 0 or penalty.convexity > 0:
            return max(penalty.gap(w, grad), 0.0) if penalty.l1 else penalty.gap(w, grad)
        if self.lower_bound == -np.inf:
            return float("nan")
        size, s = penalty.value(w), penalty.shrink(-grad)
        loss = value - size
        shrunk = (
            (1 - s + s * np.log(s)) * loss
            if objective.is_exponential
            else (1 - s) * (loss - self.lower_bound)
        )
        return max(size + s * float(w @ grad) + shrunk + penalty.conjugate(-s * grad), 0.0)

    def dual_bound(self, dual: float, slope: np.ndarray) -> float:
        """Lower bound on the minimum from a dual point of the objective with value ``dual`` and ``Xᵀθ = slope``."""
        penalty = self.penalty
        if not np.isscalar(penalty.curvature):
            definite = penalty.convexity > 0 and not penalty.is_bounded
            return (
                dual - 0.5 * float(slope @ np.linalg.solve(penalty.curvature, slope)) if definite else np.nan
            )
        if penalty.convexity > 0:
            return dual - penalty.conjugate(-slope)
        if penalty.l1 == 0 or self.lower_bound == -np.inf:
            return float("nan")
        s = penalty.shrink(-slope)
        return s * dual + (1 - s) * self.lower_bound - penalty.conjugate(-s * slope)

    def unbounded(self, value: float, w: np.ndarray) -> bool:
        """Whether w separates the classes and no penalty bounds it."""
        return (
            value * self.count < self.objective.separable_below
            and self.penalty.value(w) == 0
            and self.design.separated(self.objective, w)
        )

    def held_by_penalty(self, value: float, w: np.ndarray) -> bool:
        """Whether w proves that an objective over groups has no minimum without the penalty; ``value`` is that at w.

        ``(1/p)·log R`` of a group is at least minus the smallest margin of its pairs. If the mean over the groups is
        below 0, the mean margin is therefore above 0, and the objective decreases without bound along w
        (:meth:`~apexrank.objectives.base.PricedObjective.falls_forever`). If it is below 0 including the penalty, the
        coefficients are of the order of one over its strength. At p = inf this holds for any strength: there the
        penalty sets only the scale of the scores, not their order.
        """
        objective = self.objective
        unbounded = self.lower_bound == -np.inf and not objective.is_smoothed and objective.n_groups > 1
        return unbounded and value < 0 and self.design.separated(objective, w)


class SpanProblem(Problem):
    """Ridge problem of n rows in n variables, since its minimiser is a linear combination of the rows.

    With ``X = L·Qᵀ`` and ``w = Q·v``, scores and norms are unchanged, and so are value and duality gap: the design is
    L, and certificates are those of the problem in the columns of X. A shift-invariant objective has its minimiser in
    the span of the centred rows.

    Attributes
    ----------
    full : Problem
        The problem in the columns of X.
    to_w, to_v : callables
        Maps from the variables to the coefficients of the columns and back.

    Examples
    --------
    >>> from apexrank.objectives import Push
    >>> full = Problem(np.array([[-1.0, 0.0, 2.0], [1.0, 1.0, 1.0]]), Push([True, False]), 1.0)
    >>> reduced, v = full.in_span(), np.array([1.0, 2.0])
    >>> bool(np.isclose(reduced.value_and_grad(v)[0], full.value_and_grad(reduced.to_w(v))[0]))
    True
    """

    def __init__(self, full: Problem) -> None:
        design = full.design
        if full.objective.shift_invariant and design.can_move and design.shift is None:
            design = design.moved(full.centre)
        L, self.to_w, self.to_v = design.span()
        self.full = full
        super().__init__(DenseDesign(L), full.objective, full.penalty)

    def certificate(self, w: np.ndarray, value: float, grad: np.ndarray) -> Certificate:
        return self.full.certificate(self.to_w(w), value, self.to_w(grad))

    def with_penalty(self, penalty: Penalty) -> Self:
        other = super().with_penalty(penalty)
        other.full = self.full.with_penalty(penalty)
        return other
