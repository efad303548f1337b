"""Logistic regression, the ranker that every other one has to beat."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from apexrank.errors import InputError
from apexrank.rankers.base import BinaryRanker, checked_rows

_MOST_NEWTON = 1000  # features whose Hessian is cheap


class LogisticRanker(BinaryRanker):
    """scikit-learn's logistic regression with a penalty in the units of the other rankers.

    Minimises ``(1/n)·Σ_i log(1 + e^{−y_i (x_i·w + b)}) + (alpha/2)·|w|²`` with y = ±1: as n grows, alpha keeps its
    meaning, where scikit-learn's ``C = 1/(alpha·n)`` does not.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, above 0.
    pos_label : label, optional
        The class to rank on top, as in :class:`PNormPush`.
    max_iter, tol
        Of `sklearn.linear_model.LogisticRegression`.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, n_features) and (1,)
        The model.
    grad_norm_, n_iter_, converged_
        Largest component of the gradient at the answer, iterations, and whether they ended by themselves.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = LogisticRanker(alpha=0.01).fit((X - X.mean(0)) / X.std(0), y)
    >>> ranker.grad_norm_ < 1e-6
    True
    """

    coef_: np.ndarray
    intercept_: np.ndarray

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __init__(
        self, alpha: float = 1e-2, *, pos_label: Any = None, max_iter: int = 1000, tol: float = 1e-8
    ) -> None:
        self.alpha = alpha
        self.pos_label = pos_label
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on rows X with two-valued labels y; ``sample_weight`` counts as repetitions of rows."""
        if not 0 < self.alpha < np.inf:
            raise InputError(f"alpha must be a finite number above 0, got {self.alpha!r}")
        rows, positive, weight = self._validate(X, y, sample_weight)
        weight = np.ones(len(positive)) if weight is None else weight
        total, few = float(weight.sum()), rows.shape[1] <= min(_MOST_NEWTON, rows.shape[0])
        model = LogisticRegression(
            C=1 / (self.alpha * total),
            solver="newton-cholesky" if few else "lbfgs",
            max_iter=self.max_iter,
            tol=self.tol,
        ).fit(rows, positive, sample_weight=weight)
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        self.n_iter_ = int(model.n_iter_[0])
        self.converged_ = self.n_iter_ < self.max_iter
        slope = weight * (expit(self._raw(rows)) - positive) / total
        gradient = np.append(rows.T @ slope + self.alpha * self.coef_[0], slope.sum())
        self.grad_norm_ = float(np.abs(gradient).max())
        return self

    def _raw(self, rows: Any) -> np.ndarray:
        return rows @ self.coef_[0] + self.intercept_[0]

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Log-odds of each row."""
        return self._raw(checked_rows(self, X))
