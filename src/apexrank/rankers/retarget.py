"""Monotone retargeting: listwise learning to rank with any targets in the correct order."""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from apexrank.divergences import DIVERGENCES, Divergence
from apexrank.errors import InputError
from apexrank.objectives.margins import OFFSETS, LevelOrder, Offsets, counted_weights, offset_table
from apexrank.objectives.retarget import Retarget, joint_penalties, target_space
from apexrank.parameters import atom, checked, names, number
from apexrank.penalties import Penalty
from apexrank.problem.design import Training, pull_back, scores_of
from apexrank.rankers.base import Graded, read_rows
from apexrank.rankers.kernel import KernelEstimator
from apexrank.solvers.online import OnlineGradient, scatter_norm

COLLAPSES = (
    "without margins equal scores of all rows are a minimum: set `margin` > 0 and `offsets` that differ between "
    "levels, or `reward` > 0"
)


def _learns_online(ranker: Any) -> bool:
    """Whether the ranker supports ``partial_fit``."""
    if ranker.kernel is None:
        return True
    raise AttributeError("partial_fit learns linear scores: set `kernel=None`")


_CERTIFIED = ("objective_", "dual_gap_", "grad_norm_", "converged_", "n_iter_", "history_")
_FITTED = (
    "coef_",
    "dual_coef_",
    "X_fit_",
    "kernel_",
    "online_",
    "targets_",
    "n_groups_",
    *_CERTIFIED,
)


@dataclass(eq=False, repr=False)
class MonotoneRetargeting(Graded, KernelEstimator):
    """Listwise ranker: fit scores to the nearest targets in the correct order, with margins between relevance levels.

    Minimises the mean over groups q of ``min_r D_φ(r ‖ link(X_q·w))`` plus ``alpha/2·|w|²`` over w, where the targets r
    of a group are ordered by relevance with margins (Acharyya 2013, chapter 3: margin-equipped monotone retargeting,
    MEMR). For the squared divergence this is half the squared distance from the scores to the set of correctly ordered
    vectors: a smooth convex function of w, whose minimum is certified by ``dual_gap_``.
    :class:`apexrank.objectives.retarget.Retarget` documents the formulas.

    Parameters
    ----------
    divergence : {"squared", "kl", "i-divergence", "shifted-i-divergence"}
        Distance between targets and scores. "kl" treats a group as a distribution, independent of its size; the two
        others weight a group by the sum of its targets, "squared" by its size.
    order : {"hidden", "blocks"}
        Whether the order of rows of equal relevance within a group is free ("hidden"), or they should have equal scores
        ("blocks").
    margin : float
        Unit of the margins, which are differences of the offsets below. For "squared" it only scales the scores (for
        the same alpha). 0 is allowed only with ``reward``: without a margin, equal scores of all rows, w = 0, are a
        minimum.
    offsets : {"sqrt", "linear", "gain", "binary"}, array or callable
        Offset of relevance level r: ``√r``, ``r``, ``2^r − 1``, ``1[r > 0]``, or the offsets of relevance 0, 1, 2, …,
        or a function. Levels with equal offsets are ordered without a margin.
    alpha : float
        The penalty is ``alpha/2·|w|²``; the objective is a mean over the groups.
    reward : float
        Reward per unit of gap between adjacent levels, in addition to the fixed margins (3.23).
    bounds : (float or None, float or None), optional
        Lowest and highest target of every group (3.21, 3.22), for "squared" only. They give all groups a common zero of
        the scores; there is no intercept, so X may need a column of ones.
    normalize : bool
        Divide the cost of each group by its number of rows.
    joint_convexity : bool or (C_r, C_w)
        Regulariser of Lemma 8, which makes the objective convex for divergences other than "squared". True pulls the
        targets towards the offsets of their levels, so that "kl" is then close to ListNet with margins. Without it
        ``dual_gap_`` is nan, and the result is a stationary point.
    kernel : str or callable, optional
        Use scores ``Σ_i a_i k(x_i, x)`` instead of linear ones: "rbf", "poly", "linear", any other kernel of
        scikit-learn's ``pairwise_kernels``, or "precomputed" (X is then the kernel between the rows and the training
        rows). The penalty is alpha/2 times the squared norm in the kernel's space. At most 10,000 rows.
    gamma, degree, coef0, kernel_params
        Kernel parameters, as in scikit-learn's ``KernelRidge``.
    solver : {"auto", "lbfgs", "newton"} or solver
        "auto" uses Newton with the exact Hessian (3.20) for small problems, and L-BFGS otherwise.
    max_iter, tol
        Maximum number of iterations, and tolerance on the gradient relative to the objective at w = 0.
    warm_start : bool
        Start from the previous coefficients; not with a kernel.
    verbose : int
        1 prints one line per iteration.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Coefficients w; not with a kernel.
    dual_coef_, X_fit_, kernel_ : array of shape (n_samples,), the rows and the kernel of ``fit``
        Dual coefficients a of the kernel, many of them 0 if the kernel matrix has low rank.
    targets_ : array of shape (n_samples,)
        Targets of the training rows in units of the scores.
    objective_, dual_gap_, grad_norm_ : float
        Value of the objective, an upper bound on its distance from the minimum, and the scaled gradient norm.
    converged_, n_iter_, history_
        Whether ``tol`` was reached, the number of iterations, and the objective after each.
    n_groups_ : int
        Number of groups with rows of different relevance.
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

    _parameter_constraints: ClassVar[dict] = KernelEstimator._parameter_constraints | {
        "divergence": atom(DIVERGENCES),
        "order": [names(("hidden", "blocks"))],
        "margin": [number(0)],
        "offsets": [names(OFFSETS), "array-like", callable],
        "alpha": [number(0)],
        "reward": [number(0)],
        "bounds": [None, "array-like"],
        "normalize": ["boolean"],
        "joint_convexity": ["boolean", tuple, list],
    }

    divergence: str | Divergence = "squared"
    _: KW_ONLY
    order: Literal["hidden", "blocks"] = "hidden"
    margin: float = 1.0
    offsets: Offsets = "sqrt"
    alpha: float = 1e-3
    reward: float = 0.0
    bounds: tuple[float | None, float | None] | None = None
    normalize: bool = False
    joint_convexity: bool | tuple[float, float] = True

    def _validate_params(self) -> None:
        super()._validate_params()
        target_space(self.divergence, self.bounds)
        joint_penalties(self.joint_convexity)
        if self.reward and self.alpha == 0:
            raise InputError("reward > 0 has no minimum without a penalty: set `alpha` > 0")
        if self.margin == self.reward == 0:
            raise InputError(COLLAPSES)

    @checked
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        group_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit on rows X.

        Parameters
        ----------
        X : array or CSR matrix
            One row per item.
        y : array of numbers
            Relevance (larger is better).
        sample_weight : array, optional
            Weights; a row of weight 2 counts as two equal rows.
        groups : array, optional
            One id per row, in any order; only rows of the same group are compared. By default all rows form one list.
        group_weight : array, optional
            Weight of the row's group, the same for all of its rows.
        """
        data = read_rows(self, X, y, sample_weight, groups, binary=False)
        fitted, features = self._with_features(data)
        # a clone, because the targets of an earlier fit would be sent to the workers
        make = partial(clone(self)._objective, group_weight=group_weight)
        problem = self._minimise(fitted, make)
        self._drop_flat(fitted, problem)
        self._forget_kernel()
        self.__dict__.pop("online_", None)
        objective: Any = problem.objective
        self.targets_ = objective.targets(problem.scores(self.coef_)).natural
        self.n_groups_ = objective.n_groups
        if features is not None:
            self._keep_kernel(features, data.X)
        return self

    def _penalty_on(self, data: Training, objective: Any) -> Penalty:
        if objective.collapses:
            raise InputError(COLLAPSES)
        return super()._penalty_on(data, objective)

    def _forget(self) -> None:
        for name in _FITTED:
            self.__dict__.pop(name, None)

    def _objective(
        self, relevance: np.ndarray, weight: Any, groups: Any, group_weight: Any = None
    ) -> Retarget:
        return Retarget(
            relevance,
            groups=groups,
            divergence=self.divergence,
            order=self.order,
            margin=self.margin,
            offsets=self.offsets,
            reward=self.reward,
            bounds=self.bounds,
            normalize=self.normalize,
            joint_convexity=self.joint_convexity,
            sample_weight=weight,
            group_weight=group_weight,
        )

    @available_if(_learns_online)
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        group_weight: ArrayLike | None = None,
    ) -> Self:
        """Update the coefficients with one or more groups, by one gradient step per group in order of appearance.

        Each group has its own penalty ``alpha/2·|w|²``, so that a stream of groups gives the problem that ``fit``
        solves on all of them. Step lengths are ``1/(alpha·t + L)`` (``OnlineGradient``), and ``coef_`` is the mean of
        the iterates with weights t. After ``fit`` it continues from the fitted coefficients, and the certificates are
        dropped. Linear scores only; parameters as in ``fit``.
        """
        self._validate_params()  # also when fitted, unlike scikit-learn's decorator
        if self.alpha == 0:
            raise InputError("partial_fit takes steps 1/(alpha·t): set `alpha` > 0")
        given = not isinstance(self.offsets, str) and not callable(self.offsets)
        if self.reward == 0 and given and np.ptp(offset_table(self.offsets)) == 0:
            raise InputError(COLLAPSES)
        data = read_rows(self, X, y, sample_weight, groups, binary=False, reset=not hasattr(self, "coef_"))
        if type(data) is not Training:
            raise InputError("partial_fit takes rows in memory: give it one block after another")
        rows, relevance, weight = data.X, data.labels, data.weight
        lists = LevelOrder(relevance, groups, counted_weights(weight, group_weight, len(relevance)))
        stream = []
        for some in lists.in_order_of_appearance():
            parts = [None if part is None else np.asarray(part)[some] for part in (weight, group_weight)]
            stream.append((some, self._objective(relevance[some], parts[0], None, parts[1])))
        # take steps only now: an error in one group must not leave a partial update
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
    """Take one step on the rows of a list; dense rows are centred if the objective is shift-invariant."""
    free = objective.shift_invariant
    if free and not sparse.issparse(rows):
        rows = rows - rows.mean(axis=0, dtype=float)

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = objective.value_and_grad(scores_of(rows, w))
        return value, pull_back(rows, slope)

    online.play(loss, objective.smoothness * scatter_norm(rows, centred=free))
