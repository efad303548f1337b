"""The mean of curves and of two bags of trees, which err differently."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from apexrank.parameters import checked, whole
from apexrank.rankers.additive import AdditiveRanker
from apexrank.rankers.base import checked_rows
from apexrank.rankers.trees import OfColumns, TreeRanker


@dataclass(eq=False, repr=False)
class CurvesAndTrees(OfColumns, BaseEstimator):
    """Mean of the log-odds of curves, a bag of trees and a bag of extra trees.

    :class:`AdditiveRanker` finds smooth effects of single columns and pairs, :class:`TreeRanker` steps and interactions
    of several columns. Their errors differ, so that the mean is usually better than either, and none of the three
    has anything to tune. ``readable_share_`` says how much of the scores can be read as curves.

    Parameters
    ----------
    rounds, folds : int
        Of both bags, as in :class:`TreeRanker`.

    Attributes
    ----------
    curves_ : AdditiveRanker
    trees_, extra_trees_ : TreeRanker
        The second with ``extra=True``.
    readable_share_ : float
        Share of the variance of the training scores that the curves carry, their covariance with the scores divided
        by the variance of these; out-of-fold scores stand for those of the trees. 1 if all scores are equal.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from apexrank.metrics import auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = CurvesAndTrees().fit(X[::2], y[::2])
    >>> auc(y[1::2], ranker.decision_function(X[1::2])) > 0.98
    True
    >>> 0.2 < ranker.readable_share_ < 0.6
    True
    """

    _parameter_constraints: ClassVar[dict] = {"rounds": [whole(1)], "folds": [whole(2)]}

    _: KW_ONLY
    rounds: int = 2000
    folds: int = 5

    @checked
    def fit(self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on rows X with two-class labels y; whole-number weights count as repetitions of rows."""
        _, positive, weight = self._in_memory(X, y, sample_weight)
        fitted = (part.fit(X, positive, sample_weight=weight) for part in self.parts())
        self.curves_, self.trees_, self.extra_trees_ = fitted
        curves = self.curves_.decision_function(X)
        scores = curves + self.trees_.oof_scores_ + self.extra_trees_.oof_scores_
        (_, shared), (_, total) = np.cov(curves, scores, aweights=weight, ddof=0)
        self.readable_share_ = float(shared / total) if total > 0 else 1.0
        return self

    def parts(self) -> tuple[AdditiveRanker, TreeRanker, TreeRanker]:
        """The three rankers, unfitted."""
        bag: Any = {"rounds": self.rounds, "folds": self.folds}
        return AdditiveRanker(), TreeRanker(**bag), TreeRanker(**bag, extra=True)

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Log-odds of each row, which are its ranking score."""
        checked_rows(self, X)  # its errors name this class
        return np.mean([ranker.decision_function(X) for ranker in self._rankers], axis=0)

    def contributions(self, X: ArrayLike) -> np.ndarray:
        """Contributions to a row's score beyond the mean score: of the curves of each column, and last of all trees."""
        checked_rows(self, X)
        curves, trees, extra = (ranker.contributions(X) for ranker in self._rankers)
        return np.column_stack([curves, (trees + extra).sum(axis=1)]) / 3

    @property
    def _rankers(self) -> tuple[AdditiveRanker, TreeRanker, TreeRanker]:
        return self.curves_, self.trees_, self.extra_trees_
