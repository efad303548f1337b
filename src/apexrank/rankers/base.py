"""What linear rankers share: solving, certificates and warnings; validation, scores and prediction."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
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

from apexrank.errors import InputError
from apexrank.losses import Hinge
from apexrank.models.device_arrays import (
    checked_labels,
    checked_matrix,
    checked_weights,
    chosen_classes,
    is_device_array,
    scores_on_device,
)
from apexrank.models.linear import LinearProblem, Objective, scores_of
from apexrank.rankers.threshold import balanced_threshold
from apexrank.solvers import Solution, Solver
from apexrank.validation import check_finite, check_frame, check_weights


class SeparableWarning(ConvergenceWarning):
    """The training data are separated and nothing holds the coefficients back."""


class CollapsedWarning(ConvergenceWarning):
    """The objective for p = inf has its minimum at equal scores for all rows."""


def checked_rows(ranker: BaseEstimator, X: ArrayLike) -> Any:
    """Rows to be scored by a fitted ranker."""
    check_is_fitted(ranker)
    if _stays_on_device(ranker, X):
        return _device_rows(ranker, X, reset=False)
    check_frame(X)
    return validate_data(ranker, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)


def _stays_on_device(ranker: Any, X: Any) -> bool:
    """Whether X is an array on a device and the ranker can work there; other rankers take what NumPy makes of it."""
    return getattr(ranker, "takes_device_arrays", False) and is_device_array(X)


def _device_rows(ranker: BaseEstimator, X: Any, *, reset: bool) -> Any:
    rows = checked_matrix(X)
    _check_feature_names(ranker, rows, reset=reset)
    _check_n_features(ranker, rows, reset=reset)
    return rows


class BinaryRanker(ClassifierMixin, BaseEstimator):
    """Base class of rankers of two classes: ``decision_function`` is the ranking score, ``predict`` its sign."""

    classes_: np.ndarray

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _validate(self, X, y, sample_weight):
        """Checked X, the mask of positives, and weights."""
        if _stays_on_device(self, X):
            X = _device_rows(self, X, reset=True)
            self.classes_, positive = checked_labels(y, X)
            return X, positive, None if sample_weight is None else checked_weights(sample_weight, X)
        check_frame(X)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, label = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise InputError(
                "Only binary classification is supported: the target has "
                f"{len(self.classes_)} values ({type_of_target(y)}); mark the wanted class as positive first"
            )
        if len(self.classes_) < 2:
            raise InputError(
                f"ranking needs positives and negatives, but the target has only one class: {self.classes_[0]!r}"
            )
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            check_weights(sample_weight)
        if not isinstance(X, np.ndarray):
            X = X.astype(np.float64, copy=False)
        return X, label == 1, sample_weight

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Class of each row: ``classes_[1]`` where the score is above 0."""
        above = self.decision_function(X) > 0
        if is_device_array(above):
            return chosen_classes(self.classes_, above)
        return self.classes_[above.astype(int)]

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        raise NotImplementedError


class LinearFit(BaseEstimator):
    """Base class of everything with linear scores: solves a problem, keeps answer and certificates, warns."""

    alpha: float
    coef_: np.ndarray

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _problem(self, X: Any, objective: Objective, weight: np.ndarray | None) -> LinearProblem:
        return LinearProblem(X, objective, self.alpha, weight)

    def _minimise(
        self, X: Any, objective: Any, weight: np.ndarray | None, w0: np.ndarray | None = None
    ) -> np.ndarray:
        """Fit the coefficients; returns the scores of the rows."""
        self._check_numbers()
        problem = self._problem(X, objective, weight)
        start = w0 if w0 is not None and len(w0) == X.shape[1] else np.zeros(X.shape[1])
        solution = self._solver().solve(problem, start)
        self.coef_ = solution.w
        self.objective_ = float(solution.value)
        self.dual_gap_ = float(solution.gap)
        self.grad_norm_ = float(solution.grad_norm)
        self.converged_ = bool(solution.converged)
        self.n_iter_ = max(1, solution.n_iter)
        self.history_ = np.array(solution.history)
        self._warn(solution)
        return problem.scores(solution.w)

    def _check_numbers(self) -> None:
        for name, lowest in (("alpha", 0), ("tol", 0), ("max_iter", 1), ("t_max", 1)):
            check_finite(name, getattr(self, name, lowest), lowest)

    def _warn(self, solution: Solution) -> None:
        if solution.separable:
            warnings.warn(
                "the training data are separated by the scores, so with alpha=0 the objective has no finite "
                "minimiser; the coefficients are a separating direction. Set alpha > 0 for a unique answer.",
                SeparableWarning,
                stacklevel=4,
            )
        elif solution.collapsed:
            warnings.warn(
                "the classes overlap so far that with p=inf equal scores for all rows (w = 0) are a minimum; the "
                "coefficients have the direction of those for growing p, close to zero. Use a finite p.",
                CollapsedWarning,
                stacklevel=4,
            )
        elif not solution.converged:
            hint = "; at a kink of the hinge loss it need not vanish" if _has_kinks(self) else ""
            warnings.warn(
                f"not converged after {solution.n_iter} iterations: scaled gradient norm "
                f"{solution.grad_norm:.1e} is above tol{hint}. Raise max_iter, tol or alpha.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _scores(self, X: ArrayLike) -> np.ndarray:
        rows, w = checked_rows(self, X), np.ravel(self.coef_)
        if is_device_array(rows):
            return scores_on_device(rows, w)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = scores_of(rows, w)
        if not np.isfinite(scores).all():
            row = int((~np.isfinite(scores)).argmax())
            raise InputError(f"row {row} of X has numbers too large to score: correct or scale them")
        return scores

    def _solver(self) -> Solver:
        raise NotImplementedError


def _has_kinks(ranker: Any) -> bool:
    loss = getattr(ranker, "loss", None)
    return isinstance(loss, Hinge) or loss == Hinge.name


class LinearRanker(BinaryRanker, LinearFit):
    """Base class of the linear rankers of two classes.

    A subclass says which objective it minimises (``_objective``) and with which solver (``_solver``).
    """

    warm_start: bool
    intercept_: np.ndarray

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit on rows X with two-valued labels y.

        ``sample_weight`` counts as repetitions of rows. With ``groups`` (one id per row) only rows of the same
        group are compared, and every group counts the same.
        """
        w0 = self.coef_[0].copy() if self.warm_start and hasattr(self, "coef_") else None
        rows, positive, weight = self._validate(X, y, sample_weight)
        scores = self._minimise(rows, self._objective(positive, weight, groups), weight, w0)
        self.coef_ = self.coef_[None, :]
        self.intercept_ = np.array([self._intercept(scores, positive, weight)])
        return self

    def _intercept(self, scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> float:
        return -balanced_threshold(scores, positive, weight)

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Ranking score of each row: higher means nearer to the top; above 0 is predicted positive."""
        return self._scores(X) + float(self.intercept_[0])

    def _objective(self, positive: np.ndarray, weight: np.ndarray | None, groups: Any) -> Any:
        raise NotImplementedError
