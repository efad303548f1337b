"""The P-Norm Push and its named relatives as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from apexrank.errors import InputError
from apexrank.losses import Loss
from apexrank.objectives import Push
from apexrank.prices import PRICES, Power, Price
from apexrank.rankers.base import LinearRanker
from apexrank.rankers.threshold import p_classification_intercept
from apexrank.solvers import LBFGS, Auto, CoordinateDescent, Newton, Solution, Solver

SOLVERS: dict[str, Callable[..., Solver]] = {
    "auto": Auto,
    "lbfgs": LBFGS,
    "newton": Newton,
    "coordinate": CoordinateDescent,
}


class PNormPush(LinearRanker):
    """Linear ranker that concentrates at the top of the list (JMLR 2009).

    With positives' scores f and negatives' scores g it minimises

        LSE(−f) + (1/p)·LSE(p·g) + (alpha/2)·|w|²,

    which is ``(1/p)·log Σ_k (Σ_i e^{−(f_i − g_k)})^p`` plus a penalty. p = 1 is RankBoost's objective (the whole
    list); the larger p, the more only the highest negatives count, and the more data it takes to generalise.

    Parameters
    ----------
    p : float, default 4
        How hard to push, at least 1.
    loss : str or :class:`~apexrank.losses.Loss`
        Only the exponential loss can be fitted so far.
    price : str or :class:`~apexrank.prices.Price`
        ``"power"`` (with ``p``), ``"identity"``, ``"exponential"``, ``"log1p"`` or a
        :class:`~apexrank.prices.Custom`.
    side : {"top", "bottom", "both"}
        Push the negatives down from the top, lift the positives off the bottom, or both.
    balance : float
        Weight of the bottom for ``side="both"``.
    alpha : float
        Ridge penalty. With 0 the certificate ``dual_gap_`` is nan, and separable data have no finite minimiser.
    solver : {"auto", "lbfgs", "newton", "coordinate"} or a solver
        ``auto`` takes Newton for small or stiff problems and L-BFGS for the rest. ``coordinate`` is the papers'
        algorithm, ``max_iter`` its ``t_max``; it depends on the features' units (scale them to [0, 1] first).
    max_iter, tol : int, float
        Stop when the gradient, in standard deviations of each feature, is at most ``tol``, or when the relative
        duality gap is at most ``tol**2``.
    warm_start : bool
        Start from the coefficients of the previous fit.
    verbose : int
        1 prints a line per iteration.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, n_features) and (1,)
        The intercept does not change the ranking; it makes 0 a threshold for ``predict`` (P-Classification).
    classes_ : array
        The second one is the positive class.
    objective_, dual_gap_, grad_norm_ : float
        Penalised objective, an upper bound on its distance from the minimum, and the scaled gradient norm.
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
    """

    def __init__(
        self,
        p: float = 4.0,
        *,
        loss: str | Loss = "exponential",
        price: str | Price = "power",
        side: str = "top",
        balance: float = 1.0,
        alpha: float = 1e-6,
        solver: str | Solver = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.p = p
        self.loss = loss
        self.price = price
        self.side = side
        self.balance = balance
        self.alpha = alpha
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose

    def _price(self) -> Price:
        return PRICES.get(self.price, p=self.p)

    def _objective(self, positive: np.ndarray, weight: np.ndarray | None, groups: Any) -> Push:
        return Push(
            positive,
            loss=self.loss,
            price=self._price(),
            side=self.side,
            balance=self.balance,
            sample_weight=weight,
            groups=groups,
        )

    def _solver(self) -> Solver:
        if not isinstance(self.solver, str):
            return self.solver
        if self.solver not in SOLVERS:
            raise InputError(f"unknown solver {self.solver!r}: use one of {', '.join(SOLVERS)}")
        return SOLVERS[self.solver](self.max_iter, self.tol, verbose=self.verbose)

    def _intercept(self, scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> float:
        """P-Classification's for a power price on one side (mirrored at the bottom), least balanced error else."""
        price = self._price()
        if isinstance(price, Power) and self.side == "top":
            return p_classification_intercept(scores, positive, weight, price.order)
        if isinstance(price, Power) and self.side == "bottom":
            return -p_classification_intercept(-scores, ~positive, weight, price.order)
        return super()._intercept(scores, positive, weight)


class IRPush(LinearRanker):
    """Linear ranker for ``Σ_i ln(1 + Σ_k e^{−(f_i − g_k)})``, the IR Push (JMLR 2009, eq. 2, sign corrected).

    It lifts each positive by a discount like that of DCG, and behaves much like a P-Norm Push with a large p.

    Parameters and attributes are those of :class:`PNormPush`.

    Examples
    --------
    >>> from apexrank import IRPush
    >>> IRPush().fit([[0.0], [1.0], [2.0], [1.5]], [0, 0, 1, 1]).predict([[3.0]])
    array([1])
    """

    def __init__(
        self,
        *,
        alpha: float = 1e-6,
        max_iter: int = 1000,
        tol: float = 1e-6,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose

    def _objective(self, positive: np.ndarray, weight: np.ndarray | None, groups: Any) -> Push:
        return Push(positive, price="log1p", side="bottom", sample_weight=weight, groups=groups)

    def _solver(self) -> Solver:
        return Auto(self.max_iter, self.tol, self.verbose)


class RankBoost(LinearRanker):
    """RankBoost: coordinate descent on the exponential pairwise misranking loss, a push with p = 1.

    ``t_max`` rounds are part of the method (fewer rounds regularise), so reaching them is not a failure to
    converge; ``converged_`` still says whether the minimum was reached. Scale features to [0, 1] first.

    Parameters
    ----------
    t_max : int, default 100
        Rounds of boosting.
    alpha : float, default 0
        Ridge penalty.
    tol : float
        Stop earlier when the scaled gradient is at most this.

    Examples
    --------
    >>> from apexrank import RankBoost
    >>> ranker = RankBoost(t_max=10).fit([[0.0, 1.0], [1.0, 0.0], [0.0, 0.5], [0.5, 0.0]], [0, 1, 1, 0])
    >>> ranker.n_iter_ <= 10
    True
    """

    def __init__(
        self,
        t_max: int = 100,
        *,
        alpha: float = 0.0,
        tol: float = 1e-6,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.t_max = t_max
        self.alpha = alpha
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose

    def _objective(self, positive: np.ndarray, weight: np.ndarray | None, groups: Any) -> Push:
        return Push(positive, price="identity", sample_weight=weight, groups=groups)

    def _solver(self) -> Solver:
        return CoordinateDescent(self.t_max, self.tol, self.verbose)

    def _intercept(self, scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> float:
        return p_classification_intercept(scores, positive, weight, p=1.0)

    def _warn(self, solution: Solution) -> None:
        if solution.separable:
            super()._warn(solution)
