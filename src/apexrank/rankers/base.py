"""Base of linear estimators, and mixins of rankers of two classes and of graded relevance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import logsumexp
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from apexrank.errors import InputError, warn
from apexrank.objectives.base import Objective
from apexrank.objectives.classification import PClassification
from apexrank.objectives.margins import checked_relevance
from apexrank.objectives.pairs import CrucialPairs
from apexrank.objectives.push import Push
from apexrank.parameters import HasMethods, checked, names, number, whole
from apexrank.penalties import Penalty, elastic_net
from apexrank.problem.block_design import BlockTraining
from apexrank.problem.blocks import Blocks, classes_of, survey
from apexrank.problem.design import Make, Matrix, Training, tied_scores
from apexrank.problem.device import (
    DeviceTraining,
    checked_labels,
    checked_matrix,
    checked_weights,
    chosen_classes,
    scores_on_device,
    to_host,
)
from apexrank.problem.problem import Problem
from apexrank.solvers import SOLVERS, Solution, Solver, solver_for
from apexrank.validation import (
    SMALLEST,
    canonical,
    check_frame,
    check_two_classes,
    check_weights,
    is_device_array,
    on_host,
    segment,
)

Power = tuple[float, float]
_TINY_EFFECT = 1e-6  # effect, relative to the largest, below which a coefficient may be numerical error


class SeparableWarning(ConvergenceWarning):
    """The training data are separable (within groups, on average) and the regularisation is too weak."""


class CollapsedWarning(ConvergenceWarning):
    """The objective for p = inf attains its minimum at equal scores for all rows."""


class PositiveLabelWarning(UserWarning):
    """The label that sorts last is taken as positive, but its name suggests the opposite."""


# label names that usually denote the negative class
ORDINARY = re.compile(
    "alive|clean|clear|control|genuine|good|harmless|healthy|honest|legal|legit|legitimate|low|miss|negative|nein|"
    "normal|ok|okay|paid|pass|passed|real|regular|retained|safe|stay|stayed|survived|valid|well|"
    "(no|not|non)[ _-].*|(non|never|without).*"
)


def warn_of_label(classes: Sequence[Any]) -> None:
    """Warn if the label that sorts last, the positive one, has the name of a negative class."""
    low, high = classes
    if isinstance(high, str) and ORDINARY.fullmatch(high.strip().lower()):
        warn(
            f"{high!r} is taken as the positive class, as it sorts after {low!r}: to rank {low!r} on top, fit with "
            f"y == {low!r}",
            PositiveLabelWarning,
        )


# ---------------------------------------------------------------- reading rows


def validated(estimator: BaseEstimator, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """scikit-learn's ``validate_data`` for rows of numbers, dense or CSR, in single or double precision.

    Estimators that accept text and missing values define a method ``_as_numbers(X, reset)``; they take dense rows only.
    """
    check_frame(X)
    if hasattr(estimator, "_as_numbers"):
        X = estimator._as_numbers(X, options.get("reset", True))
        options = {"accept_sparse": False, "dtype": np.float64, "order": "C", **options}
        options["ensure_all_finite"] = "allow-nan"
    options = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], **options}
    found = validate_data(estimator, X, y, **options)
    rows, *rest = found if isinstance(found, tuple) else (found,)
    if sparse.issparse(rows):
        rows = canonical(rows.astype(np.float64, copy=False))
    return (rows, *rest) if rest else rows


def validated_weight(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Check that there is one finite, non-negative weight per row."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    check_weights(weight)
    return weight


def checked_rows(ranker: BaseEstimator, X: ArrayLike) -> Any:
    """Validate the rows to be scored by a fitted estimator."""
    check_is_fitted(ranker)
    return _rows(ranker, X, reset=False)


def _rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Validate rows without labels; a device array stays on its device if the estimator supports that."""
    if not (getattr(estimator, "takes_device_arrays", False) and is_device_array(X)):
        return validated(estimator, X, reset=reset)
    rows = checked_matrix(X)
    _check_feature_names(estimator, rows, reset=reset)
    _check_n_features(estimator, rows, reset=reset)
    return rows


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection."""
    return hasattr(X, "__dask_graph__")


def blocks_of(X: Any, y: Any, sample_weight: Any, groups: Any) -> Blocks | None:
    """X itself if it is ``Blocks``, the blocks of Dask collections, or None for rows in memory."""
    if isinstance(X, Blocks):
        if any(column is not None for column in (y, sample_weight, groups)):
            raise InputError("blocks have their own labels, weights and groups: give `y=None`")
        return X
    if is_dask(X):
        from apexrank.problem.dask import collection_blocks

        return collection_blocks(X, y, groups, sample_weight)
    if any(map(is_dask, (y, sample_weight, groups))):
        raise InputError("X must be a Dask array or data frame, as the others are: give all of one kind")
    return None


def read_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any, *, binary: bool, reset: bool = True
) -> Training:
    """Validate rows and labels; labels become the mask of positives (which sets ``classes_``) or float relevance."""
    blocks = blocks_of(X, y, sample_weight, groups)
    if reset:
        estimator._had_groups = groups is not None
    if blocks is not None:
        return _block_training(estimator, blocks, binary)
    if y is None and not binary:
        raise InputError("requires y to be passed, but the target y is None: give the relevance of each row")
    if getattr(estimator, "takes_device_arrays", False) and is_device_array(X):
        X = _rows(estimator, X, reset=reset)
        if binary:
            estimator.classes_, labels = checked_labels(y, X)
            warn_of_label(estimator.classes_.tolist())
        else:
            labels = checked_relevance(to_host(y))
        weight = None if sample_weight is None else checked_weights(sample_weight, X)
        return DeviceTraining(X, labels, weight, groups, binary)
    X, y = validated(estimator, X, y, y_numeric=not binary, reset=reset)
    if binary:
        check_classification_targets(y)
        estimator.classes_, label = np.unique(y, return_inverse=True)
        check_two_classes(estimator.classes_.tolist(), f" ({type_of_target(y)})")
        warn_of_label(estimator.classes_.tolist())
    labels = label == 1 if binary else checked_relevance(y)
    return Training(X, labels, validated_weight(sample_weight, X), groups)


def _block_training(estimator: Any, blocks: Blocks, binary: bool) -> BlockTraining:
    found = survey(blocks, binary=binary)
    estimator._had_groups = found.grouped
    classes = classes_of(found) if binary else None
    estimator.n_features_in_ = found.n_features
    estimator.__dict__.pop("feature_names_in_", None)
    if blocks.names is not None:
        estimator.feature_names_in_ = np.array(list(blocks.names), dtype=object)
    if classes is not None:
        warn_of_label(classes)
        estimator.classes_ = np.array(classes, dtype=found.label_type)
    return BlockTraining(blocks, found, classes)


def class_scores(fitted: Any, X: Any) -> np.ndarray:
    """Scores of any classifier: its decision function, or the probability of the positive class."""
    if hasattr(fitted, "decision_function"):
        return np.ravel(fitted.decision_function(X))
    if not hasattr(fitted, "predict_proba"):
        raise InputError(
            f"{type(fitted).__name__} has neither decision_function nor predict_proba: it gives no scores"
        )
    return np.asarray(fitted.predict_proba(X))[:, 1]


# ---------------------------------------------------------------- objectives under a lasso


def with_minimum(objective: Objective, penalty: Penalty) -> Objective:
    """Return the objective, or under a pure L1 penalty an increasing transform of it that is bounded below.

    Without a lower bound there is no minimum.
    """
    if penalty.l1 == 0 or penalty.convexity > 0 or objective.lower_bound > -np.inf:
        return objective
    if isinstance(objective, Push | CrucialPairs) and not objective.is_smoothed:
        return PClassification(objective)
    raise InputError(
        f"{type(objective).__name__} with this loss decreases without bound along some scores, so it has no minimum "
        "under a pure L1 penalty: use an elastic net (`l1_ratio` < 1) or another loss"
    )


# ---------------------------------------------------------------- penalties and thresholds


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


def p_classification_intercept(
    scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None, p: float
) -> float:
    """Closed-form intercept ``b = [LSE(−f) − LSE(p·g)] / (p + 1)`` of P-Classification.

    It minimises ``Σ_i e^{−(f_i + b)} + (1/p)·Σ_k e^{p(g_k + b)}`` (Ertekin & Rudin 2011).
    """
    up, down = (None, None) if weight is None else (weight[positive], weight[~positive])
    positives = logsumexp(-scores[positive], b=up)
    negatives = logsumexp(p * scores[~positive], b=down)
    return float((positives - negatives) / (p + 1))


def balanced_threshold(scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> float:
    """Threshold with the minimum balanced training error, that is, the largest true minus false positive rate.

    The threshold is the midpoint between two neighbouring scores.
    """
    weight = np.ones(len(scores)) if weight is None else weight
    scores, positive, weight = scores[weight > 0], positive[weight > 0], weight[weight > 0]
    order = np.argsort(-scores, kind="stable")
    s, up, down = scores[order], (weight * positive)[order], (weight * ~positive)[order]
    advantage = np.cumsum(up) / up.sum() - np.cumsum(down) / down.sum()
    cuts = np.flatnonzero(s[:-1] > s[1:])
    if not len(cuts):
        return float(s[0])
    best = cuts[np.argmax(advantage[cuts])]
    return float(s[best + 1] + (s[best] - s[best + 1]) / 2)


def intercept_of(
    scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None, power: Power | None
) -> float:
    """Intercept of P-Classification for a one-sided push; with ``power`` None, the minimum balanced error."""
    if power is None:
        return -balanced_threshold(scores, positive, weight)
    p, sign = power
    if sign > 0:
        return p_classification_intercept(scores, positive, weight, p)
    return -p_classification_intercept(-scores, ~positive, weight, p)


# ---------------------------------------------------------------- base classes


class TwoClasses(ClassifierMixin):
    """Mixin for rankers of two classes: ``decision_function`` is the ranking score, ``predict`` its sign.

    ``classes_`` is sorted, and the label that sorts last is the positive class.
    """

    classes_: np.ndarray
    _scores: Any

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _in_memory(self, X: Any, y: Any, sample_weight: Any) -> tuple[Matrix, np.ndarray, np.ndarray | None]:
        """Validated X, the mask of positives, and weights, all in memory."""
        if isinstance(X, Blocks) or is_dask(X):
            raise InputError(
                f"{type(self).__name__} needs its rows in memory: give an array or a sparse matrix"
            )
        data = read_rows(self, X, y, sample_weight, None, binary=True)
        return data.X, data.labels, data.weight

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Class of each row: ``classes_[1]`` where the score is above 0."""
        if is_dask(X):
            return lazy_result(self, "predict", X, self.classes_.dtype)
        above = self.decision_function(X) > 0
        if is_device_array(above):
            return chosen_classes(self.classes_, above)
        return self.classes_[above.astype(int)]

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Weighted share of rows whose class is predicted correctly."""
        if not is_dask(X):
            validated_weight(on_host(sample_weight), y)
            return ClassifierMixin.score(self, X, y, sample_weight)
        from apexrank.problem.dask import accuracy

        return accuracy(self, X, y, sample_weight)

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Ranking score of each row: higher means nearer to the top; above 0 is predicted positive."""
        if is_dask(X):
            return lazy_result(self, "decision_function", X, np.float64)
        return self._scores(X) + float(np.ravel(self.intercept_)[0])


class GivenScores(TwoClasses, BaseEstimator):
    """Ranker that returns precomputed scores, for use with a scorer."""

    def __init__(self, scores: np.ndarray, classes: Sequence[Any] = (0, 1)) -> None:
        self.scores, self.classes_ = scores, np.array(classes)

    def decision_function(self, X: Any) -> np.ndarray:
        return self.scores


def measure(scorer: Any, ranker: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> float:
    """Evaluate a scorer on a fitted ranker, passing weights and groups if given."""
    columns = {"sample_weight": sample_weight, "groups": groups}
    given = {name: column for name, column in columns.items() if column is not None}
    with config_context(enable_metadata_routing=True):  # needed to pass metadata to a scorer
        return scorer(ranker, X, y, **given)


def fold_weight(weight: np.ndarray | None) -> np.ndarray | None:
    """Weights to score the rows of a fold with: None unless they are whole numbers, which measures of ranks need."""
    return None if weight is None or (weight % 1).any() else weight


def lazy_result(ranker: Any, method: str, X: Any, dtype: Any) -> Any:
    """``ranker.method(X)`` of a Dask collection, computed lazily by its workers."""
    from apexrank.problem.dask import lazy

    check_is_fitted(ranker)
    return lazy(ranker, method, X, dtype)


@dataclass(eq=False, repr=False)
class LinearEstimator(BaseEstimator):
    """Base class of estimators with linear scores: solves a problem, stores solution and certificates, and warns.

    A subclass defines ``_objective(labels, weight, groups)``, and has ``alpha`` or ``_penalty``. It is a
    :class:`TwoClasses` or :class:`Graded` ranker, or has its own ``fit``.
    """

    _parameter_constraints: ClassVar[dict] = {
        "solver": [names(SOLVERS), HasMethods("solve")],
        "max_iter": [whole(1)],
        "tol": [number(0)],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    takes_device_arrays: ClassVar[bool] = True
    _objective: ClassVar[Any]

    _: KW_ONLY
    solver: str | Solver = "auto"
    max_iter: int = 1000
    tol: float = 1e-6
    warm_start: bool = False
    verbose: int = 0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @checked
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit on rows X with labels y: two classes, or relevance, where larger is better.

        ``sample_weight`` counts as repetitions of rows. With ``groups`` (one id per row), only rows of the same group
        are compared, and all groups have equal weight. X may be an array, a sparse matrix, a data frame, Dask
        collections (y and the rest too), or :class:`~apexrank.problem.Blocks` (with y=None).
        """
        return self._fit(X, read_rows(self, X, y, sample_weight, groups, binary=self._ranks_classes))

    def _fit(self, X: Any, data: Training) -> Self:
        """Fit on rows that have been read from X."""
        return self._finish(data, self._minimise(data, self._objective))

    @property
    def _ranks_classes(self) -> bool:
        return isinstance(self, TwoClasses)

    def _solver(self, problem: Problem) -> Solver:
        return solver_for(self.solver, problem, max_iter=self.max_iter, tol=self.tol, verbose=self.verbose)

    def _minimise(self, data: Training, make: Make, start: np.ndarray | None = None) -> Problem:
        """Fit the coefficients and return the solved problem."""
        w0 = self._warm() if start is None else start
        solver = SOLVERS[self.solver] if isinstance(self.solver, str) else self.solver
        design, objective = data.compose(make, getattr(solver, "needs_scores", False))
        return self._solve(Problem(design, objective, self._penalty_on(data, objective), data.weight), w0)

    def _penalty(self: Any) -> Penalty:
        """Penalty of the last fit; before it, ``alpha="auto"`` stands for 1."""
        alpha = getattr(self, "alpha_", 1.0) if self.alpha == "auto" else float(self.alpha)
        return elastic_net(alpha, getattr(self, "l1_ratio", 0.0))

    def _penalty_on(self: Any, data: Training, objective: Any) -> Penalty:
        """Penalty for these rows, on which ``alpha="auto"`` depends."""
        auto = self.alpha == "auto"
        self.alpha_ = self._auto_alpha(data, objective) if auto else float(self.alpha)
        return self._penalty()

    def _auto_alpha(self: Any, data: Training, objective: Any) -> float:
        return alpha_of_noise(data, objective, getattr(self, "l1_ratio", 0.0))

    def _solve(self, problem: Problem, w0: np.ndarray | None = None) -> Problem:
        d = problem.n_features
        start = w0 if w0 is not None and len(w0) == d else np.zeros(d)
        solver: Any = self._solver(problem)
        solution = solver.solve(problem, start)
        solution.stalled = solution.n_iter < getattr(solver, "max_iter", 0)
        self._keep_solution(problem, solution)
        return problem

    def _keep_solution(self, problem: Problem, solution: Solution) -> None:
        """Store the solution and its certificates, and warn if needed."""
        self.coef_: np.ndarray = solution.w
        self.objective_ = float(solution.value)
        self.dual_gap_ = float(solution.gap)
        self.grad_norm_ = float(solution.grad_norm)
        self.converged_ = bool(solution.converged)
        self.n_iter_ = max(1, solution.n_iter)
        self.history_ = np.array(solution.history)
        self._warn(solution)
        if not solution.separable and problem.held_by_penalty(solution.value, solution.w):
            warn(
                "without a penalty the objective over these groups has no minimum: their mean smallest margin between "
                "a pair is above 0 and grows with the scores. The coefficients, up to "
                f"{np.abs(solution.w).max():.2g}, are of the order of 1/alpha: set a larger alpha.",
                SeparableWarning,
            )

    def _warm(self) -> np.ndarray | None:
        """Coefficients for a warm start, if any."""
        return np.ravel(self.coef_).copy() if self.warm_start and hasattr(self, "coef_") else None

    def _warn(self, solution: Solution) -> None:
        if solution.separable:
            warn(
                "the scores separate the training data (inside their groups, on average), so the objective with "
                "`alpha=0` has no finite minimiser; the coefficients are a separating direction. Set `alpha` above 0 "
                "for a unique answer.",
                SeparableWarning,
            )
        elif solution.collapsed:
            reason = (
                "the classes overlap so far that with `p=inf` equal scores for all rows (w = 0) are a minimum; the "
                "coefficients have the direction of those for growing p, close to zero. Use a finite `p`."
            )
            if not solution.w.any():
                reason = (
                    "all coefficients are 0: with `p=inf` no feature is worth this L1 penalty. Use a finite `p` or a "
                    "smaller `alpha`."
                )
            warn(reason, CollapsedWarning)
        elif not solution.converged:
            reason, remedy = ", where rounding hides all progress", "`tol` or `alpha`"
            if not solution.stalled:
                reason, remedy = "", "`max_iter`, `tol` or `alpha`"
            warn(
                f"not converged after {solution.n_iter} iterations{reason}: scaled gradient norm "
                f"{solution.grad_norm:.1e} is above `tol`. Raise {remedy}.",
                ConvergenceWarning,
            )

    def _finish(self, data: Training, problem: Problem) -> Self:
        """Compute the intercept of two classes, or drop the columns that cannot change an order."""
        if self._ranks_classes:
            w, self.coef_ = self.coef_, self.coef_[None, :]
            self.intercept_ = np.array([self._intercept(data, problem, w)])
        else:
            self._drop_flat(data, problem)
        return self

    def _power(self) -> Power | None:
        """The p of a closed-form intercept and its side, 1 for the top of the list or −1 for the bottom, if any."""
        return None

    def _intercept(self, data: Training, problem: Problem, w: np.ndarray) -> float:
        """Intercept of the scores, computed from sums over the rows if these are not in memory."""
        power, objective = self._power(), problem.objective
        sums = problem.design.sums(objective, w) if power is not None and objective.streams else None
        if power is None or sums is None:
            positive, weight, _ = data.columns()
            return intercept_of(problem.scores(w), positive, weight, power)
        p, sign = power
        outer, inner = (0, 1) if sign > 0 else (1, 0)
        slope = np.empty(2)
        slope[outer], slope[inner] = sign * p, -sign
        found = sums.log_sum_exp(slope).value
        return sign * float((found[inner] - found[outer]) / (p + 1)) - problem.design.offset(w)

    def _drop_flat(self, data: Training, problem: Problem) -> None:
        """Set the coefficients of columns that are constant in every list to exactly 0; solvers leave small errors."""
        in_memory = type(data) is Training and isinstance(data.X, np.ndarray)
        additive = data.n_features != len(self.coef_)
        if not in_memory or additive or not problem.objective.shift_invariant:
            return
        effect = np.abs(self.coef_) * problem.spread
        lists = segment(data.groups, len(data.X))
        first = lists.order[lists.indptr[:-1]][lists.of_rows()]  # first row of each row's list
        for j in np.flatnonzero(effect < _TINY_EFFECT * effect.max()):
            if (data.X[:, j] == data.X[first, j]).all():
                self.coef_[j] = 0.0

    def _scores(self, X: ArrayLike) -> np.ndarray:
        rows, w = checked_rows(self, X), np.ravel(self.coef_)
        if is_device_array(rows):
            return scores_on_device(rows, w)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = tied_scores(rows, w)  # equal rows must tie: rounding must not separate them
        if not np.isfinite(scores).all():
            row = int((~np.isfinite(scores)).argmax())
            raise InputError(f"row {row} of X has numbers too large to score: correct or scale them")
        return scores


class Graded:
    """Mixin for rankers of graded relevance: ``predict`` is the ranking score, ``score`` the NDCG."""

    _scores: Any

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        return tags

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Ranking score of each row: higher means nearer to the top of its group."""
        return lazy_result(self, "predict", X, np.float64) if is_dask(X) else self._scores(X)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> float:
        """Mean NDCG over the groups that have a relevant row (gain 2^y − 1, discount 1/log2(1 + rank)).

        Without ``groups`` all rows form one list; after a fit with groups this warns, because scores of different
        groups are not comparable. scikit-learn's searches pass groups by metadata routing:
        ``set_score_request(groups=True)``. Negative relevance has no gain, so if there is any, relevance is measured
        from its minimum.
        """
        from apexrank.metrics import ndcg

        if groups is None and getattr(self, "_had_groups", False):
            warn(
                "fit had groups, but score has none and ranks all rows as one list: pass groups, in a search by "
                "set_score_request(groups=True)",
            )
        relevance = from_zero(checked_relevance(y))
        return ndcg(relevance, self._in_groups(X, groups), groups=groups, sample_weight=sample_weight)

    def _in_groups(self, X: ArrayLike, groups: ArrayLike | None) -> np.ndarray:
        """Ranking score of each row in its group; groups are ignored unless a subclass uses them."""
        return self.predict(X)


def from_zero(relevance: np.ndarray) -> np.ndarray:
    """Shift relevance so that its minimum is 0 if it is negative."""
    return relevance - min(0.0, float(relevance.min(initial=0.0)))


def monotone_signs(ranker: Any, n_features: int) -> dict[int, int]:
    """Sign of each column constrained by ``monotonic_cst``, by position."""
    given: Any = {} if ranker.monotonic_cst is None else ranker.monotonic_cst
    if not isinstance(given, Mapping):
        if len(given) != n_features:
            raise InputError(f"`monotonic_cst` has {len(given)} entries, X {n_features} columns")
        given = dict(enumerate(given))
    found = {}
    for key, sign in given.items():
        if sign not in (-1, 0, 1):
            raise InputError(f"`monotonic_cst` must be 1, -1 or 0 for each column, got {sign!r}")
        found[_place_of(ranker, key, n_features)] = int(sign)
    return {key: sign for key, sign in found.items() if sign}


def _place_of(ranker: Any, column: Any, n_features: int) -> int:
    """Position of a column given by name or position."""
    names = list(getattr(ranker, "feature_names_in_", ()))
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, str) or not 0 <= column < n_features:
        raise InputError(f"`monotonic_cst` names the column {column!r}, which X does not have")
    return int(column)
