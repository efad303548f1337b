"""P-Norm Push, its special cases, and the path over p."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from apexrank.errors import InputError
from apexrank.losses import LOSSES, Exponential, Loss
from apexrank.objectives import InfinitePush, Push
from apexrank.objectives.base import Objective
from apexrank.objectives.push import SIDES
from apexrank.parameters import atom, between, names, number, whole
from apexrank.prices import PRICES, Power, Price
from apexrank.problem.design import Training
from apexrank.problem.problem import Problem
from apexrank.rankers.base import (
    LinearEstimator,
    TwoClasses,
    read_rows,
    with_minimum,
)
from apexrank.solvers import CoordinateDescent, Solution, Solver

AUTO_ALPHA: list[Any] = [names(("auto",)), number(0)]


@dataclass(eq=False, repr=False)
class PNormPush(TwoClasses, LinearEstimator):
    """Linear ranker that concentrates on the top of the list (JMLR 2009).

    With scores f of the positives and g of the negatives it minimises

        LSE(−f) + (1/p)·LSE(p·g) + alpha·[(1 − l1_ratio)/2·|w|² + l1_ratio·|w|₁],

    which is ``(1/p)·log Σ_k (Σ_i e^{−(f_i − g_k)})^p`` plus a penalty. p = 1 is RankBoost's objective (the whole
    list); with larger p only the highest negatives matter, and more data are needed to generalise. In the limit p = ∞
    (R_max, infinite push) only the highest negative matters: ``LSE(−f) + max g``, and ``Σ_i ℓ(f_i − max g)`` for the
    other losses.

    A PyTorch tensor or CuPy array X stays on its device; scores and predictions are then arrays of the same type.

    Parameters
    ----------
    p : float, default 4
        Strength of the push, at least 1; ``np.inf`` is the limit, solved to its own duality gap. If the classes overlap
        strongly, the limit has its minimum at w = 0; the ranking is then that of large p, with a warning.
    loss : str or :class:`~apexrank.losses.Loss`
        ``"exponential"``, ``"logistic"``, ``"hinge"`` or ``"squared_hinge"``. With the last three and the power price
        the objective is ``R^{1/p}``, because ``log R`` is not convex for them.
    price : str or :class:`~apexrank.prices.Price`
        ``"power"`` (with ``p``), ``"identity"``, ``"exponential"``, ``"log1p"`` or a
        :class:`~apexrank.prices.Custom`.
    side : {"top", "bottom", "both"}
        Push negatives down from the top, lift positives off the bottom, or both.
    balance : float
        Weight of the bottom for ``side="both"``.
    alpha : float or "auto"
        Strength of the penalty. ``"auto"`` is ``d·(1/n₊ + 1/n₋)`` for n₊ positives, n₋ negatives and d standardised
        columns, so that the penalty outweighs the noise in the difference of the class means; for other columns it is
        multiplied by the harmonic mean of their variances. With groups, ``1/n₊ + 1/n₋`` is summed over the groups and
        divided by the square of their number; with ``l1_ratio`` > 0 alpha is the square root, without d. Standardising
        the columns and choosing alpha with :class:`PNormPushCV` still helps. With 0 the certificate ``dual_gap_`` is
        nan, and separable data have no finite minimiser.
    l1_ratio : float, default 0
        Share of the L1 norm in the penalty: 0 is ridge, values in between elastic net; above 0 many coefficients are
        exactly zero. With 1 (lasso) ``(1/p)·log R`` has no minimum, so the penalty is added to the P-Classification
        form of the same push, ``(1 + 1/p)·(R/R₀)^{1/(p+1)}`` with R₀ the value of R at w = 0, where both forms have
        the same gradient. :meth:`alpha_max` gives the scale.
    solver : {"auto", "lbfgs", "newton", "coordinate"} or a solver
        ``auto`` uses Newton for small or ill-conditioned problems and L-BFGS otherwise. ``coordinate`` is the papers'
        algorithm, with ``max_iter`` as its ``t_max``; it depends on the features' units (scale them to [0, 1] first)
        and supports neither an L1 penalty nor p = ∞.
    max_iter, tol : int, float
        Stop when the gradient, in units of each feature's standard deviation, is at most ``tol``, or when the relative
        duality gap is at most ``tol**2``; for p = ∞, when the duality gap is at most ``tol``, or at most ``tol`` times
        the objective and no longer decreasing. A minimum at a kink of the hinge loss is certified by a duality gap of
        at most ``tol``, or as small as rounding allows.
    warm_start : bool
        Start from the coefficients of the previous fit.
    verbose : int
        1 prints one line per iteration.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, n_features) and (1,)
        The intercept does not change the ranking; it puts the threshold of ``predict`` at 0. It is the closed form of
        P-Classification if there is one. The limit of that form for p = ∞ would label positive only rows above every
        negative, so for p = ∞, and for other losses and prices, the threshold minimises the balanced training error.
    classes_ : array
        The two classes, sorted. The second one is positive, with a warning if its name suggests the opposite ("fraud"
        and "legit"): then fit with ``y == "fraud"``.
    objective_, dual_gap_, grad_norm_ : float
        Penalised objective, an upper bound on its distance from the minimum, and the scaled gradient norm.
    alpha_ : float
        The alpha used.
    converged_, n_iter_, history_ : bool, int, array

    Examples
    --------
    >>> from apexrank import PNormPush
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = PNormPush(p=16, alpha=1e-3).fit(X[:, :6], y)
    >>> ranker.converged_
    True
    >>> ranker.decision_function(X[:2, :6]).shape
    (2,)
    >>> sparse = PNormPush(p=16, alpha=0.1, l1_ratio=0.9).fit(X[:, :6], y)
    >>> int((sparse.coef_ != 0).sum())
    4
    """

    _parameter_constraints: ClassVar[dict] = LinearEstimator._parameter_constraints | {
        "p": [between(1, np.inf)],
        "loss": atom(LOSSES),
        "price": atom(PRICES),
        "side": [names(SIDES)],
        "balance": [number(0)],
        "alpha": AUTO_ALPHA,
        "l1_ratio": [between(0, 1)],
    }

    p: float = 4.0
    _: KW_ONLY
    loss: str | Loss = "exponential"
    price: str | Price = "power"
    side: str = "top"
    balance: float = 1.0
    alpha: float | str = "auto"
    l1_ratio: float = 0.0

    @property
    def _is_infinite(self) -> bool:
        return self.price == "power" and self.p == np.inf

    def _objective(self, positive: np.ndarray, weight: np.ndarray | None, groups: Any) -> Objective:
        common: dict[str, Any] = {"loss": self.loss, "side": self.side, "balance": self.balance}
        common |= {"sample_weight": weight, "groups": groups}
        if self._is_infinite:
            push: Push = InfinitePush(positive, **common)
        else:
            push = Push(positive, price=PRICES.get(self.price, p=self.p), **common)
        return with_minimum(push, self._penalty())

    def _power(self) -> tuple[float, float] | None:
        """Order and side of P-Classification's intercept: exponential loss, power price and one side only."""
        price = None if self._is_infinite else PRICES.get(self.price, p=self.p)
        exponential = isinstance(LOSSES.get(self.loss), Exponential)
        if isinstance(price, Power) and exponential and self.side != "both":
            return price.order, 1.0 if self.side == "top" else -1.0
        return None

    def alpha_max(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> float:
        """Smallest alpha for which all coefficients vanish: ``max_j |∂F/∂w_j| / l1_ratio`` at w = 0.

        Use it as the start of a grid of alphas for ``l1_ratio`` > 0; the estimator's own ``alpha`` is ignored.
        Not available for p = ∞, whose objective has a kink at w = 0.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> ranker = PNormPush(l1_ratio=0.5)
        >>> highest = ranker.alpha_max(X, y)
        >>> [int((ranker.set_params(alpha=a * highest).fit(X, y).coef_ != 0).sum()) for a in (1.001, 0.9)]
        [0, 1]
        """
        ranker = clone(self).set_params(alpha=1.0)
        ranker._validate_params()
        if self._is_infinite or not self.l1_ratio > 0:
            raise InputError("alpha_max needs `l1_ratio` > 0 and a finite p")
        data = read_rows(ranker, X, y, sample_weight, groups, binary=True)
        design, objective = data.compose(ranker._objective)
        problem = Problem(design, objective, 0.0, data.weight)
        slope = problem.value_and_grad(np.zeros(problem.n_features))[1]
        return ranker._penalty_on(data, problem.objective).least_multiple(slope)


@dataclass(eq=False, repr=False)
class IRPush(TwoClasses, LinearEstimator):
    """Linear ranker for the mean over positives of ``ln(1 + Σ_k e^{−(f_i − g_k)})``, the IR Push (JMLR 2009, eq. 2).

    The sign in the paper's formula is corrected. It lifts each positive with a discount like that of DCG, and behaves
    much like a P-Norm Push with large p.

    ``alpha`` and the solver's parameters, and the attributes, are those of :class:`PNormPush`.

    Examples
    --------
    >>> from apexrank import IRPush
    >>> IRPush().fit([[0.0], [1.0], [2.0], [1.5]], [0, 0, 1, 1]).predict([[3.0]])
    array([1])
    """

    _parameter_constraints: ClassVar[dict] = LinearEstimator._parameter_constraints | {"alpha": AUTO_ALPHA}

    _: KW_ONLY
    alpha: float | str = "auto"

    def _objective(self, positive: np.ndarray, weight: np.ndarray | None, groups: Any) -> Any:
        return Push(positive, price="log1p", side="bottom", sample_weight=weight, groups=groups)


@dataclass(eq=False, repr=False)
class RankBoost(TwoClasses, LinearEstimator):
    """RankBoost: coordinate descent on the exponential pairwise misranking loss, a push with p = 1.

    ``t_max`` is part of the method (fewer rounds regularise), so reaching it is not a convergence failure;
    ``converged_`` still tells whether the minimum was reached. Scale features to [0, 1] first.

    Parameters
    ----------
    t_max : int, default 100
        Number of boosting rounds.
    alpha : float, default 0
        Ridge penalty.
    tol : float
        Stop early when the scaled gradient is at most this.

    Examples
    --------
    >>> from apexrank import RankBoost
    >>> ranker = RankBoost(t_max=10).fit([[0.0, 1.0], [1.0, 0.0], [0.0, 0.5], [0.5, 0.0]], [0, 1, 1, 0])
    >>> ranker.n_iter_ <= 10
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **{name: LinearEstimator._parameter_constraints[name] for name in ("tol", "warm_start", "verbose")},
        "t_max": [whole(1)],
        "alpha": [number(0)],
    }

    # no parameters: the solver is the method
    solver: ClassVar[str] = "coordinate"  # type: ignore[misc]
    max_iter: ClassVar[int]  # type: ignore[misc]

    t_max: int = 100
    _: KW_ONLY
    alpha: float = 0.0

    def _objective(self, positive: np.ndarray, weight: np.ndarray | None, groups: Any) -> Any:
        return Push(positive, price="identity", sample_weight=weight, groups=groups)

    def _solver(self, problem: Problem) -> Solver:
        return CoordinateDescent(self.t_max, self.tol, self.verbose)

    def _power(self) -> tuple[float, float]:
        return 1.0, 1.0

    def _warn(self, solution: Solution) -> None:
        if solution.separable:
            super()._warn(solution)


DEFAULT_PS = (1, 2, 4, 8, 16, 64)


def push_path(
    X: ArrayLike,
    y: ArrayLike,
    ps: Iterable[float] = DEFAULT_PS,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **options: Any,
) -> list[PNormPush]:
    """One fitted :class:`PNormPush` for each p.

    ``options`` are those of :class:`PNormPush`, and X may be anything that it accepts. Pass p in increasing order: each
    fit starts from the previous one.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> [ranker.p for ranker in push_path(X[:, :3], y, ps=[1, 4, 16])]
    [1, 4, 16]
    """
    ranker = PNormPush(**options)
    ranker._validate_params()
    return fit_path(ranker, read_rows(ranker, X, y, sample_weight, groups, binary=True), ps)


def fit_path(ranker: Any, data: Training, ps: Iterable[float]) -> list[Any]:
    """Fit each p on rows that the ranker has read, each fit starting from the previous one."""
    ranker, path = copy(ranker).set_params(warm_start=True), []
    for p in ps:
        ranker.set_params(p=p)
        path.append(copy(ranker._finish(data, ranker._minimise(data, ranker._objective))))
    return path
