"""P-Norm Push, its special cases, and cross-validated choice of p and alpha."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import _safe_indexing, column_or_1d, indexable
from threadpoolctl import threadpool_limits

from apexrank.errors import InputError
from apexrank.losses import LOSSES, Exponential, Loss
from apexrank.metrics import get_scorer
from apexrank.objectives import InfinitePush, Push
from apexrank.objectives.base import Objective
from apexrank.penalties import Penalty, elastic_net
from apexrank.prices import PRICES, Power, Price
from apexrank.problem.block_design import BlockTraining
from apexrank.problem.design import Training, of_two_rows
from apexrank.problem.problem import Problem
from apexrank.problem.together import rows_of
from apexrank.progress import steps
from apexrank.rankers.base import (
    LinearBinaryRanker,
    SeparableWarning,
    SolverOptions,
    Turned,
    measure,
    read_rows,
    with_minimum,
)
from apexrank.rankers.together import JointFit, can_join, fit_folds, held_out_scores
from apexrank.solvers import CoordinateDescent, Solution, Solver
from apexrank.validation import SMALLEST, check_choice, check_folds, on_host, own_errors


def alpha_of_noise(data: Training, objective: Any, l1_ratio: float = 0.0) -> float:
    """Default alpha ``d·H·(1/n₊ + 1/n₋)``, H the harmonic mean of the variances of the d non-constant columns.

    It is the variance of the difference of the class means if the classes do not differ, so that the penalty outweighs
    the noise. For standardised columns H is 1. The harmonic mean prevents a column of large numbers from setting the
    penalty of all others. An L1 norm acts on single entries of the gradient: with ``l1_ratio`` > 0 alpha is the
    standard deviation of one entry, ``√(H·(1/n₊ + 1/n₋))``.
    """
    variance = data.variances()
    variance = variance[variance > SMALLEST**2]
    if not len(variance):
        return 1.0  # all columns are constant
    noise = getattr(objective, "push", objective).noise
    harmonic = 1 / float(np.mean(1 / variance))
    return float(np.sqrt(harmonic * noise)) if l1_ratio > 0 else len(variance) * harmonic * noise


class AutoAlpha:
    """Mixin for ``alpha="auto"`` (:func:`alpha_of_noise`); ``alpha_`` is the value used."""

    _takes_auto = True
    _check_numbers: Any
    alpha: Any
    l1_ratio: float = 0.0

    def _penalty_on(self, data: Training, objective: Any) -> Penalty:
        auto = self.alpha == "auto"
        self.alpha_ = self._auto_alpha(data, objective) if auto else float(self.alpha)
        return elastic_net(self.alpha_, self.l1_ratio)

    def _auto_alpha(self, data: Training, objective: Any) -> float:
        return alpha_of_noise(data, objective, self.l1_ratio)

    def _penalty(self) -> Penalty:
        self._check_numbers()
        # before fit, "auto" may be any number: only the kind of penalty matters
        return elastic_net(
            getattr(self, "alpha_", 1.0) if self.alpha == "auto" else self.alpha, self.l1_ratio
        )


@dataclass(eq=False, repr=False)
class PNormPush(SolverOptions, AutoAlpha, LinearBinaryRanker):
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
    pos_label : label, optional
        The class to rank at the top; by default the one that sorts last, with a warning if its name suggests the
        opposite ("fraud" and "legit"). If it sorts first, scikit-learn's scorers need the same ``pos_label``, and tools
        without this parameter (``"roc_auc"``, ``CalibratedClassifierCV``) raise an error: give them ``y == pos_label``.
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
        The second class is the positive one.
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
        if self._is_infinite or not self.l1_ratio > 0:
            raise InputError("alpha_max needs `l1_ratio` > 0 and a finite p")
        ranker = clone(self).set_params(alpha=1.0)
        data = ranker._encoded(read_rows(ranker, X, y, sample_weight, groups, binary=True))
        design, objective = data.compose(ranker._objective)
        problem = Problem(design, objective, 0.0, data.weight)
        slope = problem.value_and_grad(np.zeros(problem.n_features))[1]
        return ranker._penalty_on(data, problem.objective).least_multiple(slope)


@dataclass(eq=False, repr=False)
class IRPush(SolverOptions, AutoAlpha, LinearBinaryRanker):
    """Linear ranker for the mean over positives of ``ln(1 + Σ_k e^{−(f_i − g_k)})``, the IR Push (JMLR 2009, eq. 2).

    The sign in the paper's formula is corrected. It lifts each positive with a discount like that of DCG, and behaves
    much like a P-Norm Push with large p.

    Parameters and attributes are those of :class:`PNormPush`.

    Examples
    --------
    >>> from apexrank import IRPush
    >>> IRPush().fit([[0.0], [1.0], [2.0], [1.5]], [0, 0, 1, 1]).predict([[3.0]])
    array([1])
    """

    _: KW_ONLY
    alpha: float | str = "auto"

    def _objective(self, positive: np.ndarray, weight: np.ndarray | None, groups: Any) -> Any:
        return Push(positive, price="log1p", side="bottom", sample_weight=weight, groups=groups)


@dataclass(eq=False, repr=False)
class RankBoost(LinearBinaryRanker):
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
    pos_label : label, optional
        The positive class, as in :class:`PNormPush`.

    Examples
    --------
    >>> from apexrank import RankBoost
    >>> ranker = RankBoost(t_max=10).fit([[0.0, 1.0], [1.0, 0.0], [0.0, 0.5], [0.5, 0.0]], [0, 1, 1, 0])
    >>> ranker.n_iter_ <= 10
    True
    """

    solver = "coordinate"

    t_max: int = 100
    _: KW_ONLY
    alpha: float = 0.0
    tol: float = 1e-6
    warm_start: bool = False
    verbose: int = 0

    def _objective(self, positive: np.ndarray, weight: np.ndarray | None, groups: Any) -> Any:
        return Push(positive, price="identity", sample_weight=weight, groups=groups)

    def _solver(self, problem: Problem) -> Solver:
        return CoordinateDescent(self.t_max, self.tol, self.verbose)

    def _power(self) -> tuple[float, float]:
        return 1.0, 1.0

    def _warn(self, solution: Solution) -> None:
        if solution.separable:
            super()._warn(solution)


SMALL = 1e6  # entries of X below which a search copies the rows
DEFAULT_PS = (1, 2, 4, 8, 16, 64)
ALPHA_FACTORS = (100.0, 10.0, 1.0, 0.1, 0.01)  # multiples of the "auto" alpha, strongest first


def alpha_grid(
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    l1_ratio: float = 0.0,
) -> list[float]:
    """Grid of alphas, strongest first: five powers of ten around that of ``alpha="auto"``.

    It is the default grid of every search over the alpha of a push.

    Examples
    --------
    >>> X, y = np.array([[-1.0], [1.0], [-1.0], [1.0]]), [0, 0, 1, 1]
    >>> alpha_grid(X, y)
    [100.0, 10.0, 1.0, 0.1, 0.01]
    """
    ranker = PNormPush(l1_ratio=l1_ratio)
    return _alphas_around(ranker, read_rows(ranker, X, y, sample_weight, groups, binary=True))


def _alphas_around(ranker: PNormPush, data: Training) -> list[float]:
    data = ranker._encoded(data)
    if type(data) is Training and data.groups is None:  # only the class weights matter
        weight = np.ones(len(data.labels)) if data.weight is None else data.weight
        objective = of_two_rows(ranker._objective, weight[data.labels].sum(), weight[~data.labels].sum())
    else:
        objective = data.compose(ranker._objective)[1]
    scale = ranker._auto_alpha(data, objective)
    return [factor * scale for factor in ALPHA_FACTORS]


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
    fit starts from the previous one. On large or out-of-core data, all fits with the exponential loss and a ridge
    penalty share their passes over the rows (:class:`PNormPushCV`).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> [ranker.p for ranker in push_path(X[:, :3], y, ps=[1, 4, 16])]
    [1, 4, 16]
    """
    ranker = PNormPush(**options)
    data = read_rows(ranker, X, y, sample_weight, groups, binary=True)
    if _is_small(data):
        return _path(ranker, data, ps)
    rankers = [copy(ranker).set_params(p=p) for p in ps]
    if not all(can_join(each, data) for each in rankers):
        return _path(ranker, data, ps)
    JointFit(data, rankers)
    return rankers


def _is_small(data: Training) -> bool:
    """Whether the rows are in memory and few enough that copying them is cheap."""
    return type(data) is Training and len(data.labels) * data.n_features < SMALL


def _path(ranker: Any, data: Training, ps: Iterable[float]) -> list[Any]:
    """Fit each p on rows that the ranker has read, each fit starting from the previous one."""
    ranker, path = copy(ranker).set_params(warm_start=True), []
    for p in ps:
        ranker.set_params(p=p)
        path.append(copy(ranker._finish(data, ranker._minimise(data, ranker._objective))))
    return path


@dataclass(eq=False, repr=False)
class PNormPushCV(LinearBinaryRanker):
    """P-Norm Push with p and alpha chosen by cross-validation on a top-of-list metric.

    The pair with the best mean score is refitted on all rows.

    X may be anything that :class:`PNormPush` accepts. A fold gives weight 0 to the held-out rows, so all fits share the
    rows: on large data (a million entries or more) and on out-of-core data, all pairs and folds pass over the rows
    jointly, computing each value and gradient in one pass, and fits that have converged drop out. They need few passes
    because they start from fits on a sample of the rows. This takes about 50 bytes per row besides the rows themselves,
    also for blocks: labels, folds and held-out scores. With groups, p = ∞, ``l1_ratio=1`` or ``alpha=0``, and on small
    data, the fits run one by one, each on a copy of its rows (in memory) or on weights of 0 (otherwise). The
    certificates are the same.

    Parameters
    ----------
    ps : sequence of float
        In increasing order, because each fit starts from the previous one.
    alphas : sequence of float or "auto"
        The grid; "auto" is :func:`alpha_grid`. Among pairs with equal scores the one with the largest alpha is chosen.
    scoring : str or callable
        A name accepted by :func:`apexrank.metrics.get_scorer` (``"partial_auc"``, ``"precision_at_100"``,
        ``"tpr_at_fpr_0.01"``, or one of scikit-learn's such as ``"roc_auc"``) or ``scorer(estimator, X, y)``. It
        receives the ``sample_weight`` and ``groups`` of the held-out rows if ``fit`` has them. A callable needs the
        rows in memory, and fits run on copies of them.
    cv : int, splitter or iterable, default 5
        Stratified folds; with ``groups``, whole groups are kept together.
    l1_ratio, max_iter, tol, verbose, pos_label
        As in :class:`PNormPush`.
    n_jobs : int, optional
        Number of processes for fits on copies of the rows; joint fits use all cores.

    Attributes
    ----------
    p_, alpha_, best_score_ : float
        The chosen pair and its mean score over the folds.
    cv_results_ : dict of arrays
        ``p``, ``alpha``, ``mean_test_score``, ``std_test_score``, ``split0_test_score`` …: one entry per pair.
    best_estimator_ : PNormPush
        Ranker fitted on all rows; its ``coef_``, ``intercept_``, ``classes_`` and certificates are copied here.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = PNormPushCV(ps=[1, 4], alphas=[1e-3], cv=3).fit(X[:, :6], y)
    >>> search.p_ in (1, 4)
    True
    """

    ps: Sequence[float] = DEFAULT_PS
    alphas: Sequence[float] | str = "auto"
    _: KW_ONLY
    scoring: str | Callable[..., float] = "partial_auc"
    cv: Any = 5
    l1_ratio: float = 0.0
    max_iter: int = 1000
    tol: float = 1e-6
    n_jobs: int | None = None
    verbose: int = 0

    _kind: ClassVar[type[PNormPush]] = PNormPush

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose p and alpha, then fit on all rows. Arguments as in :meth:`PNormPush.fit`."""
        data = read_rows(self, X, y, sample_weight, groups, binary=True)
        if not (len(self.ps) and len(self.alphas)):
            raise InputError("`ps` and `alphas` need at least one value each")
        ranker, alphas = self._ranker(), self.alphas
        ranker.__dict__ |= self._facts()
        if isinstance(alphas, str):
            check_choice("alphas", alphas, ("auto",))
            alphas = _alphas_around(ranker, data)
        rankers = [copy(ranker).set_params(p=p, alpha=alpha) for alpha in alphas for p in self.ps]
        if self._fits_apart(data, rankers):
            # scorers treat the label that sorts last as positive
            told, label = column_or_1d(on_host(y)), self.classes_.tolist()[1]
            if isinstance(self.classes_, Turned):
                told, label = data.columns()[0].astype(int), 1
            with own_errors():
                columns = indexable(X, told, sample_weight, groups)
            scores = self._cross_validate(columns, alphas, self._ranker(pos_label=label))
        else:
            scores = self._cross_validate_together(data, rankers)
        best = copy(rankers[self._choose(scores, alphas)])
        best.set_params(p=self.p_, alpha=self.alpha_, pos_label=self.classes_.tolist()[1])
        best.set_params(warm_start=True)  # continue from the joint fit on all rows, if there is one
        best._finish(data, best._minimise(data, best._objective)).set_params(warm_start=False)
        for name, value in vars(best).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(self, name, value)
        self.best_estimator_ = best
        return self

    def _facts(self) -> dict[str, Any]:
        """Attributes learned when the rows were read."""
        names = ("classes_", "n_features_in_", "feature_names_in_", "_levels")
        return {name: vars(self)[name] for name in names if name in vars(self)}

    def _ranker(self, **options: Any) -> PNormPush:
        """Candidate ranker, with the parameters shared with this class."""
        ranker = self._kind()
        own = self.get_params(deep=False)
        shared = {name: own[name] for name in ranker.get_params(deep=False) if name in own}
        return ranker.set_params(**shared | {"verbose": max(0, self.verbose - 1)} | options)

    def _fits_apart(self, data: Training, rankers: list[PNormPush]) -> bool:
        """Whether each fit gets a copy of its rows: small data, or fits that cannot be made or scored jointly."""
        if not isinstance(self.scoring, str):
            if isinstance(data, BlockTraining):
                raise InputError(
                    "a scorer that is a function needs the rows in memory: give the name of a measure"
                )
            return True
        if type(data) is not Training:
            return False
        if _is_small(data) or self._kind is not PNormPush:
            return True
        return not any(can_join(each, data) for each in rankers)

    def _folds(self, X: Any, y: Any, groups: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, Integral):
            check_folds(int(cv), y, groups)
            cv = cv if groups is None else GroupKFold(cv)
        return check_cv(cv, y, classifier=True).split(X, y, groups)

    def _cross_validate(
        self, columns: Sequence[Any], alphas: Sequence[float], ranker: PNormPush
    ) -> np.ndarray:
        """Scores of shape (folds, alphas · ps), with each fit on a copy of its rows."""
        X, y, _, groups = columns
        folds = list(self._folds(X, y, groups))
        scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        tasks = steps([(train, test, alpha) for train, test in folds for alpha in alphas])
        # for small matrix products, threads cost more to start and synchronise than they save
        threads = 1 if len(y) * np.shape(X)[1] < SMALL else None
        with threadpool_limits(limits=threads, user_api="blas"):
            rows = Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(
                delayed(_score_path)(
                    columns, train, test, self.ps, scorer, clone(ranker).set_params(alpha=alpha)
                )
                for train, test, alpha in tasks
            )
        return np.array(rows).reshape(len(folds), -1)

    def _cross_validate_together(self, data: Training, rankers: list[PNormPush]) -> np.ndarray:
        """Scores of shape (folds, alphas · ps), with all fits on the same rows and held-out rows weighted 0."""
        positive, weight, groups = data.columns()
        y = positive.astype(int)
        counts, tests = [], []
        for train, test in self._folds(y, y, groups):
            count = np.bincount(train, minlength=len(y))
            counts.append(count.astype(np.min_scalar_type(int(count.max()))))
            tests.append(test)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeparableWarning)  # the chosen pair warns when it is refitted
            fitted = fit_folds(data, rankers, np.array(counts))
        design, table = rows_of(data), []
        for test, own in zip(tests, fitted, strict=True):
            columns = (_take(column, test) for column in (y, weight, groups))
            table.append(held_out_scores(design, own, test, str(self.scoring), *columns))
        return np.array(table)

    def _choose(self, table: np.ndarray, alphas: Sequence[float]) -> int:
        """Store scores of shape (folds, alphas · ps) and return the index of the best pair."""
        alpha, p = (grid.ravel() for grid in np.meshgrid(alphas, self.ps, indexing="ij"))
        mean = table.mean(axis=0)
        if np.isnan(mean).all():
            raise InputError("the scorer gave no number on any fold: choose fewer folds or another scoring")
        equal = np.flatnonzero(mean == np.nanmax(mean))
        best = int(equal[np.argmax(alpha[equal])])
        self.p_, self.alpha_, self.best_score_ = p[best].item(), alpha[best].item(), float(mean[best])
        self.cv_results_ = {
            "p": p,
            "alpha": alpha,
            "mean_test_score": mean,
            "std_test_score": table.std(axis=0),
        }
        self.cv_results_ |= {f"split{i}_test_score": row for i, row in enumerate(table)}
        return best


def _score_path(
    columns: tuple[Any, ...],
    train: np.ndarray,
    test: np.ndarray,
    ps: Sequence[float],
    scorer: Callable[..., float],
    ranker: PNormPush,
) -> list[float]:
    """Scores on the test rows of the path over p fitted on the training rows."""
    X, y, sample_weight, groups = (_take(column, train) for column in columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeparableWarning)  # the chosen pair warns when it is refitted
        path = _path(ranker, read_rows(ranker, X, y, sample_weight, groups, binary=True), ps)
    held_out = [_take(column, test) for column in columns]
    return [measure(scorer, ranker, *held_out) for ranker in path]


def _take(column: Any, rows: np.ndarray) -> Any:
    return None if column is None else _safe_indexing(column, rows)
