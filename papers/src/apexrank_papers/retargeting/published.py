"""Monotone retargeting as published: alternating fits of targets and coefficients, stopped early."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from apexrank.divergences import DIVERGENCES, Divergence, IDivergence, ShiftedIDivergence, Squared
from apexrank.errors import InputError
from apexrank.objectives.listwise import FixedTargets, SoftmaxTargets, SquaredTargets
from apexrank.objectives.retarget import Retarget
from apexrank.parameters import atom, checked, names, number, whole
from apexrank.problem.design import Training, scores_of
from apexrank.problem.problem import Problem
from apexrank.projections import onto_ordered_simplex
from apexrank.rankers.base import CollapsedWarning, Graded, LinearEstimator, read_rows
from apexrank.solvers import Solution, Solver, solver_for

Start = str | ArrayLike | Callable[[np.ndarray], np.ndarray]

STARTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relevance": lambda relevance: relevance,
    "gain": lambda relevance: np.exp2(relevance) - 1,
    "softmax": np.exp,
}


COLLAPSED = 1e-4  # share of the first coefficients below which there were too many alternations


class Alternation:
    """The two halves of one alternation, on the lists of a :class:`Retarget` objective without margins.

    The coefficients are fitted to the targets by ridge regression with an offset for each list ("squared"), by
    ListNet's likelihood ("kl"), or by Poisson regression with one offset for all lists ("i-divergence"), which with an
    offset for each list would equal "kl". The targets are the projection of the scores onto the ordered simplex, with
    hidden order or shared by the rows of a level.
    """

    def __init__(self, X: Any, objective: Retarget, alpha: float) -> None:
        self.objective, self.lists, self.alpha = objective, objective.lists, alpha
        self.X = X[self.lists.rows]
        number = self.lists.spread(np.arange(len(self.lists)))
        self.is_squared = isinstance(objective.divergence, Squared)
        one_offset = isinstance(objective.divergence, IDivergence | ShiftedIDivergence)
        self.offset_groups = None if one_offset else number
        self.factor = self.lists.spread(objective.factor / objective.mass)
        self.name = "squared" if self.is_squared else "kl"

    def start(self, start: Start, relevance: np.ndarray) -> np.ndarray:
        """Compute the first targets: a function of the relevance, divided by its sum in each list."""
        lists = self.lists
        if isinstance(start, str) and start not in STARTS:
            raise InputError(f"unknown `start` {start!r}: use {', '.join(STARTS)}, an array or a function")
        if isinstance(start, str) and start == "softmax":  # minus the highest, to avoid overflow
            grades = relevance[lists.rows]
            relevance = relevance.copy()
            relevance[lists.rows] -= lists.spread(np.maximum.reduceat(grades, lists.lists[:-1]))
        made = STARTS[start] if isinstance(start, str) else start
        with np.errstate(over="ignore"):
            values = np.asarray(made(relevance) if callable(made) else made, dtype=float)
        if values.shape != relevance.shape:
            raise InputError(
                f"`start` needs one number per row: expected {len(relevance)}, got {values.shape}"
            )
        values = values[lists.rows]
        total = lists.sums(lists.weight * values)
        if not np.isfinite(values).all() or values.min() < 0 or total.min() <= 0:
            raise InputError("first targets must be at least 0, not all 0 in a group: use `start='softmax'`")
        return values / lists.spread(total)

    def coefficients(self, targets: np.ndarray, w0: np.ndarray, solver: Solver) -> Solution:
        """Fit the coefficients to the targets."""
        kind: type[FixedTargets] = SquaredTargets if self.is_squared else SoftmaxTargets
        weight = self.lists.weight * self.factor
        objective = kind(targets, groups=self.offset_groups, weight=weight, count=1.0)
        return solver.solve(Problem(self.X, objective, self.alpha, self.lists.weight), w0)

    def targets(self, w: np.ndarray) -> np.ndarray:
        """Return the targets on the ordered simplex nearest to the scores."""
        lists, scores = self.lists, scores_of(self.X, w)
        if self.objective.margins.order == "hidden":
            order, targets = lists.sort(scores), np.empty(len(scores))
            targets[order] = onto_ordered_simplex(self.name, scores[order], lists.lists, lists.weight[order])
            return targets
        starts, sizes = lists.levels[:-1], np.diff(lists.levels)
        total = np.add.reduceat(lists.weight, starts)
        mean = np.add.reduceat(lists.weight * scores, starts) / total
        return np.repeat(onto_ordered_simplex(self.name, mean, lists.lists_in_levels(), total), sizes)

    def run(
        self, targets: np.ndarray, n: int, w0: np.ndarray, solver: Solver
    ) -> tuple[list[Solution], np.ndarray]:
        """Fit the coefficients ``n`` times, with new targets between the fits and after the last."""
        fits = [Solution(w0)]
        for _ in range(n):
            fits.append(self.coefficients(targets, fits[-1].w, solver))
            targets = self.targets(fits[-1].w)
        return fits[1:], targets


@dataclass(eq=False, repr=False)
class PublishedRetargeting(Graded, LinearEstimator):
    """Monotone retargeting as published (MR): alternating fits of coefficients and targets on the ordered simplex.

    The cost, a sum over the groups plus ``alpha/2·|w|²``, has a trivial minimum with equal targets and w = 0, and the
    alternations converge to it: the scores shrink each time. Their order survives, because near equal scores an
    alternation is a positively homogeneous map and acts like a power iteration; the best order comes earlier. Choose
    the number of alternations on held-out data with ``coef_path_``. :class:`apexrank.MonotoneRetargeting` has margins
    and a certificate.

    Parameters
    ----------
    divergence : {"squared", "kl", "i-divergence", "shifted-i-divergence"}
        With "i-divergence" all groups share one offset, because with one for each group it would equal "kl"; its final
        scores only distinguish groups by their size.
    order, normalize, solver, max_iter, tol, warm_start, verbose
        As in :class:`apexrank.MonotoneRetargeting`.
    alpha : float
        The penalty is ``alpha/2·|w|²``, added to a sum over the groups.
    max_alternations : int
        Number of fits of the coefficients, with new targets between the fits and after the last.
    start : {"relevance", "gain", "softmax"}, array or callable
        First targets, up to their sum in each group.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    coef_path_ : array of shape (max_alternations, n_features)
        Coefficients after each alternation.
    targets_ : array of shape (n_samples,)
        The last targets, on the simplex; nan for rows that do not count.
    history_, objective_, grad_norm_, converged_, n_iter_, n_groups_
        The cost after each alternation and after the last one, to which ``grad_norm_`` and ``converged_`` refer; the
        number of groups with rows of different relevance.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [1.5]]), [0, 1, 2, 1]
    >>> PublishedRetargeting(max_alternations=3).fit(X, y).coef_path_.shape
    (3, 1)
    """

    _parameter_constraints: ClassVar[dict] = LinearEstimator._parameter_constraints | {
        "divergence": atom(DIVERGENCES),
        "order": [names(("hidden", "blocks"))],
        "alpha": [number(0)],
        "normalize": ["boolean"],
        "max_alternations": [whole(1)],
        "start": [str, "array-like", callable],
    }

    divergence: str | Divergence = "squared"
    _: KW_ONLY
    order: Literal["hidden", "blocks"] = "hidden"
    alpha: float = 1.0
    normalize: bool = False
    max_alternations: int = 5
    start: Start = "relevance"

    @checked
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit on rows X with relevance y; arguments as in :meth:`apexrank.MonotoneRetargeting.fit`."""
        k = self.max_alternations
        w0 = self._warm()
        data = read_rows(self, X, y, sample_weight, groups, binary=False)
        if type(data) is not Training:
            raise InputError("PublishedRetargeting needs its rows in memory")
        relevance, weight, lists = data.columns()
        options: Any = {name: getattr(self, name) for name in ("divergence", "order", "normalize")}
        objective = Retarget(relevance, groups=lists, margin=0.0, sample_weight=weight, **options)
        steps = Alternation(data.X, objective, self.alpha)
        first = np.zeros(data.n_features) if w0 is None or len(w0) != data.n_features else w0
        solver = solver_for(self.solver, max_iter=self.max_iter, tol=self.tol, verbose=self.verbose)
        fits, targets = steps.run(steps.start(self.start, relevance), int(k), first, solver)
        self.coef_path_ = np.array([fit.w for fit in fits])
        self.history_ = np.array([fit.value for fit in fits])
        self.coef_, self.objective_, self.dual_gap_ = fits[-1].w, float(fits[-1].value), np.nan
        self.grad_norm_, self.converged_ = fits[-1].grad_norm, bool(fits[-1].converged)
        self.n_iter_, self.n_groups_ = len(fits), objective.n_groups
        self.targets_ = np.full(len(relevance), np.nan)
        self.targets_[objective.lists.rows] = targets
        size = np.abs(self.coef_path_).max(axis=1)
        if size[-1] < COLLAPSED * size[0]:
            warnings.warn(
                f"after {len(size)} alternations the scores have shrunk to {size[-1] / size[0]:.0e} of the first: "
                "without margins they vanish, and only their direction remains. Use fewer alternations, or "
                "MonotoneRetargeting.",
                CollapsedWarning,
                stacklevel=3,
            )
        return self
