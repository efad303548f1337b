"""Monotone retargeting: listwise learning to rank with targets that only have to be in the right order."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.metaestimators import available_if

from apexrank.divergences import Divergence
from apexrank.errors import InputError
from apexrank.models.kernel import KernelFeatures
from apexrank.models.linear import pull_back, scores_of
from apexrank.objectives.margins import LevelOrder, Offsets, offset_table
from apexrank.objectives.retarget import Retarget, row_weights
from apexrank.rankers.base import CollapsedWarning
from apexrank.rankers.kernelised import MOST_ROWS_FOR_KERNEL, KernelFit
from apexrank.rankers.listwise import GradedRanker
from apexrank.rankers.published import Alternation, Start
from apexrank.solvers import Solver
from apexrank.solvers.online import OnlineGradient, scatter_norm
from apexrank.validation import check_finite

COLLAPSES = (
    "without margins equal scores of all rows are a minimum: set margin > 0 and offsets that differ between levels, "
    "or reward > 0, or max_alternations for monotone retargeting as published"
)
COLLAPSED = 1e-4  # of the first coefficients, below which alternations have gone too far


def _learns_online(ranker: Any) -> bool:
    """Whether the ranker has ``partial_fit``."""
    if ranker.kernel is None and ranker.max_alternations is None:
        return True
    raise AttributeError(
        "partial_fit learns linear scores by MEMR: set kernel=None and max_alternations=None"
    )


_CERTIFIED = ("objective_", "dual_gap_", "grad_norm_", "converged_", "n_iter_", "history_")
_FITTED = (
    "coef_",
    "coef_path_",
    "dual_coef_",
    "X_fit_",
    "kernel_",
    "online_",
    "targets_",
    "n_groups_",
    *_CERTIFIED,
)


class MonotoneRetargeting(KernelFit, GradedRanker):
    """Listwise ranker: scores close to *some* targets in the right order, with a margin between levels of relevance.

    Minimises ``Σ_q min_r D_φ(r ‖ link(X_q·w)) + alpha/2·|w|²`` over w, the targets r of a group q ordered by its
    relevance with margins (Acharyya 2013, chapter 3: margin-equipped monotone retargeting, MEMR). For the squared
    divergence that is half the squared distance of the scores to the vectors in the right order: one smooth convex
    function of w, with the minimum certified by ``dual_gap_``. :class:`apexrank.objectives.retarget.Retarget` has
    the formulas.

    Parameters
    ----------
    divergence : {"squared", "kl", "i-divergence", "shifted-i-divergence"}
        Distance of targets and scores. "kl" sees a group as one distribution, whatever its size; the two others weigh
        it by the sum of its targets, "squared" by its size.
    order : {"hidden", "blocks"}
        Rows of a group of equal relevance are free among themselves, or should have equal scores.
    margin : float
        Unit of the margins, which are differences of the offsets below. For "squared" it only scales the scores
        (alpha being the same). 0 is allowed with ``reward`` or ``max_alternations`` only: without a margin equal
        scores of all rows, w = 0, are a minimum.
    offsets : {"sqrt", "linear", "gain", "binary"}, array or callable
        Offset of a level of relevance r: ``√r``, ``r``, ``2^r − 1``, ``1[r > 0]``, or the offsets of relevance 0, 1,
        2, …, or a function. Levels of equal offsets are ordered without a margin.
    alpha : float
        The penalty is ``alpha/2·|w|²``; the objective is a sum over the groups, so more groups need more of it.
    reward : float
        Reward of each unit of gap between adjacent levels, besides the fixed margins (3.23).
    normalize : bool
        Divide the cost of each group by its number of rows.
    joint_convexity : bool or (C_r, C_w)
        Lemma 8's regulariser, which makes the objective convex for divergences other than "squared". True holds the
        targets close to the offsets of their levels, so that "kl" is then close to ListNet with margins. Without it
        ``dual_gap_`` is nan, and the answer a stationary point.
    max_alternations : int, optional
        Fit monotone retargeting as published (MR) instead: ``margin`` must be 0, targets are on the ordered simplex,
        and coefficients and targets are fitted in turn this many times, beginning with ``start``. The cost of MR has
        a trivial minimum, all targets equal and w = 0, and the alternations go there: the scores shrink with each.
        What ranks well is the early part of the path; choose the number on held-out data by ``coef_path_``. With
        "i-divergence" all groups share one offset, as with one for each it would be "kl"; what remains in the end
        are scores that tell groups by their size.
    start : {"relevance", "gain", "softmax"}, array or callable
        First targets of MR, up to their sum in each group.
    kernel : str or callable, optional
        Scores are ``Σ_i a_i k(x_i, x)`` instead of linear: "rbf", "poly", "linear", any other of scikit-learn's
        ``pairwise_kernels``, or "precomputed" (X is then the kernel of the rows and the rows of ``fit``). The penalty
        is alpha/2 times the squared norm in the kernel's space. At most 10,000 rows.
    gamma, degree, coef0, kernel_params
        Of the kernel, as in scikit-learn's ``KernelRidge``.
    solver : {"auto", "lbfgs", "newton"} or solver
        "auto" takes Newton for small problems, with the exact Hessian (3.20), and L-BFGS otherwise.
    max_iter, tol
        Limits of the solver: iterations, and gradient in units of the objective at w = 0.
    warm_start : bool
        Start from the last coefficients; not with a kernel.
    verbose : int
        1 prints a line per iteration.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Coefficients w; not with a kernel.
    dual_coef_, X_fit_, kernel_ : array of shape (n_samples,), the rows and the kernel of ``fit``
        Coefficients a of the kernel, many of them 0 where the kernel matrix is of low rank.
    targets_ : array of shape (n_samples,)
        Targets of the rows of ``fit`` in units of the scores; on the simplex for MR.
    objective_, dual_gap_, grad_norm_ : float
        Value of the objective, an upper bound on its distance to the minimum, and the scaled gradient norm.
    converged_, n_iter_, history_
        Whether ``tol`` was met, iterations (alternations for MR), and the objective after each.
    n_groups_ : int
        Groups with rows of different relevance.
    coef_path_ : array of shape (max_alternations, n_features)
        Coefficients after each alternation of MR.
    online_ : OnlineGradient
        State of ``partial_fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from apexrank.rankers.retarget import MonotoneRetargeting
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.normal(size=(60, 3)), np.repeat(np.arange(6), 10)
    >>> y = np.digitize(X[:, 0] - X[:, 1], [0.0, 1.0])
    >>> ranker = MonotoneRetargeting(alpha=0.1).fit(X, y, groups=groups)
    >>> round(ranker.score(X, y, groups=groups), 3)
    1.0
    >>> ranker.dual_gap_ < 1e-9
    True
    """

    def __init__(
        self,
        divergence: str | Divergence = "squared",
        *,
        order: Literal["hidden", "blocks"] = "hidden",
        margin: float = 1.0,
        offsets: Offsets = "sqrt",
        alpha: float = 1.0,
        reward: float = 0.0,
        normalize: bool = False,
        joint_convexity: bool | tuple[float, float] = True,
        max_alternations: int | None = None,
        start: Start = "relevance",
        kernel: str | Callable[..., float] | None = None,
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        solver: str | Solver = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.divergence = divergence
        self.order = order
        self.margin = margin
        self.offsets = offsets
        self.alpha = alpha
        self.reward = reward
        self.normalize = normalize
        self.joint_convexity = joint_convexity
        self.max_alternations = max_alternations
        self.start = start
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        group_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit on rows X.

        Parameters
        ----------
        X : array or CSR matrix
            One row per item.
        y : array of numbers
            Relevance, larger is better.
        groups : array, optional
            One id per row, in any order; only rows of a group are compared. One list of all rows by default.
        sample_weight : array, optional
            Rows of weight 2 count as two equal rows.
        group_weight : array, optional
            Weight of the row's group, the same for all of its rows.
        """
        w0 = self.coef_.copy() if self.warm_start and hasattr(self, "coef_") else None
        rows, relevance, weight = self._validate(X, y, sample_weight)
        objective = self._objective(relevance, groups, weight, group_weight)
        if self.max_alternations is None and objective.collapses:
            raise InputError(COLLAPSES)
        features: KernelFeatures | None = None
        if self.kernel is not None:
            features = self._kernel_features(rows, MOST_ROWS_FOR_KERNEL)
        Z = rows if features is None else features.Z
        self._forget()
        if self.max_alternations is None:
            scores = self._minimise(Z, objective, weight, w0)
            self.targets_ = objective.targets(scores).natural
        else:
            self._alternate(Z, relevance, objective, w0)
        self.n_groups_ = objective.n_groups
        if features is not None:
            self._keep_kernel(features, rows)
            self.__dict__.pop("coef_path_", None)
        return self

    def _forget(self) -> None:
        for name in _FITTED:
            self.__dict__.pop(name, None)

    def _objective(self, relevance: np.ndarray, groups: Any, weight: Any, group_weight: Any) -> Retarget:
        if self.max_alternations is not None:
            self._check_alternations()
        if self.reward and self.alpha == 0:
            raise InputError("reward > 0 has no minimum without a penalty: set alpha > 0")
        return Retarget(
            relevance,
            groups=groups,
            divergence=self.divergence,
            order=self.order,
            margin=self.margin,
            offsets=self.offsets,
            reward=self.reward,
            normalize=self.normalize,
            joint_convexity=self.joint_convexity,
            sample_weight=weight,
            group_weight=group_weight,
        )

    def _check_alternations(self) -> None:
        k = self.max_alternations
        if not isinstance(k, Integral) or k < 1:
            raise InputError(f"max_alternations must be a whole number of at least 1, got {k!r}")
        if self.margin != 0 or self.reward != 0:
            raise InputError(
                "max_alternations is for monotone retargeting as published: set margin=0 and reward=0"
            )

    def _alternate(self, X: Any, relevance: np.ndarray, objective: Retarget, w0: np.ndarray | None) -> None:
        self._check_numbers()
        assert self.max_alternations is not None
        steps = Alternation(X, objective, self.alpha)
        first = np.zeros(X.shape[1]) if w0 is None or len(w0) != X.shape[1] else w0
        path = steps.run(steps.start(self.start, relevance), self.max_alternations, first, self._solver())
        self.coef_, self.coef_path_, self.history_ = path.coefs[-1], path.coefs, path.costs
        self.objective_, self.dual_gap_, self.grad_norm_ = float(path.costs[-1]), np.nan, path.last.grad_norm
        self.converged_, self.n_iter_ = bool(path.last.converged), len(path.costs)
        self.targets_ = np.full(len(relevance), np.nan)
        self.targets_[objective.lists.rows] = path.targets
        size = np.abs(path.coefs).max(axis=1)
        if size[-1] < COLLAPSED * size[0]:
            warnings.warn(
                f"after {len(size)} alternations the scores have shrunk to {size[-1] / size[0]:.0e} of the first: "
                "monotone retargeting without margins ends at equal scores. Use fewer alternations, or margin > 0.",
                CollapsedWarning,
                stacklevel=3,
            )

    @available_if(_learns_online)
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        group_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from one or several groups more, one gradient step for each in the order they appear.

        Each group carries the penalty ``alpha/2·|w|²`` of its own, so that a stream of T groups is the problem that
        ``fit`` solves with ``T·alpha``. Steps are ``1/(alpha·t + L)`` (``OnlineGradient``), and ``coef_`` is the
        mean of the points reached with weights t. After ``fit`` it goes on from there, and what ``fit`` certified is
        dropped. Linear scores only; parameters as in ``fit``.
        """
        check_finite("alpha", self.alpha, 0)
        if self.alpha == 0:
            raise InputError("partial_fit takes steps 1/(alpha·t): set alpha > 0")
        given = not isinstance(self.offsets, str) and not callable(self.offsets)
        if self.reward == 0 and (self.margin == 0 or (given and np.ptp(offset_table(self.offsets)) == 0)):
            raise InputError(COLLAPSES)
        rows, relevance, weight = self._validate(X, y, sample_weight, reset=not hasattr(self, "coef_"))
        lists = LevelOrder(relevance, groups, row_weights(weight, group_weight, len(relevance)))
        stream = []
        for some in lists.in_order_of_appearance():
            parts = [None if part is None else np.asarray(part)[some] for part in (weight, group_weight)]
            stream.append((some, self._objective(relevance[some], None, *parts)))
        # only now, as a fault in one group must not leave the steps of others behind
        online = copy(getattr(self, "online_", None)) or self._first_state(rows.shape[1])
        online.sigma = self.alpha
        for some, objective in stream:
            _play(online, rows[some], objective)
        self._forget()
        self.online_, self.coef_ = online, online.average.copy()
        return self

    def _first_state(self, n_features: int) -> OnlineGradient:
        if not hasattr(self, "coef_"):
            return OnlineGradient(self.alpha, np.zeros(n_features))
        return OnlineGradient(self.alpha, self.coef_, rounds=self.n_groups_)


def _play(online: OnlineGradient, rows: Any, objective: Retarget) -> None:
    """One step on the rows of a list; dense ones less their mean, which the objective does not see."""
    if not sparse.issparse(rows):
        rows = rows - rows.mean(axis=0, dtype=float)

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = objective.value_and_grad(scores_of(rows, w))
        return value, pull_back(rows, slope)

    online.play(loss, objective.smoothness * scatter_norm(rows))
