"""Logistic regression, the baseline ranker."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from apexrank.errors import InputError
from apexrank.objectives.log_loss import LogLoss
from apexrank.parameters import above
from apexrank.problem.design import Training
from apexrank.problem.problem import Problem
from apexrank.rankers.base import LinearEstimator, TwoClasses


@dataclass(eq=False, repr=False)
class LogisticRanker(TwoClasses, LinearEstimator):
    """Logistic regression with the penalty scaled as in the other rankers.

    Minimises ``(1/n)·Σ_i log(1 + e^{−y_i (x_i·w + b)}) + (alpha/2)·|w|²`` with y = ±1. Unlike scikit-learn's
    ``C = 1/(alpha·n)``, alpha does not depend on n. Groups are not supported: all rows share one intercept.

    Parameters
    ----------
    alpha : float
        Weight of the penalty; must be positive.
    solver, max_iter, tol, warm_start, verbose
        As in :class:`PNormPush`.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (1, n_features) and (1,)
        The model; scores are log-odds.
    objective_, dual_gap_, grad_norm_, converged_, n_iter_, history_
        As in :class:`PNormPush`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = LogisticRanker(alpha=0.01).fit((X - X.mean(0)) / X.std(0), y)
    >>> ranker.dual_gap_ < 1e-9
    True
    """

    _parameter_constraints: ClassVar[dict] = LinearEstimator._parameter_constraints | {"alpha": [above(0)]}

    alpha: float = 1e-2
    _: KW_ONLY
    tol: float = 1e-8

    def _objective(self, positive: np.ndarray, weight: np.ndarray | None, groups: Any) -> LogLoss:
        if groups is not None:
            raise InputError("logistic regression has one intercept for all rows: leave out groups")
        return LogLoss(positive, sample_weight=weight)

    def _intercept(self, data: Training, problem: Problem, w: np.ndarray) -> float:
        objective: Any = problem.objective
        return objective.intercept(problem.scores(w))
