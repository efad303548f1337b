"""Boosted trees with the log loss or a push, as a ranker like the others."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError, MissingExtraError
from apexrank.rankers.base import BinaryRanker, checked_rows
from apexrank.validation import check_count

_FEWEST_IN_LEAF = 20
_LARGE = 5e6  # numbers of a table that is worth several threads


class TreeRanker(BinaryRanker):
    """Boosted trees: LightGBM's where it is installed, scikit-learn's otherwise.

    The baseline that needs no idea of the data's shape. With ``p`` the trees minimise the P-Norm Push instead of the
    log loss (`apexrank.integrations.boosting.PushObjective`), which takes LightGBM.

    Parameters
    ----------
    p : float, optional
        Power of a push; None is the log loss.
    leaves, rounds : int
        Leaves of a tree, and number of trees.
    learning_rate : float
        Share of each tree's answer that is taken.

    Attributes
    ----------
    booster_ : lightgbm.Booster or sklearn.ensemble.HistGradientBoostingClassifier
        The trees.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from apexrank.metrics import auc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = TreeRanker(rounds=20).fit(X[::2], y[::2])
    >>> auc(y[1::2], ranker.decision_function(X[1::2])) > 0.97
    True
    """

    booster_: Any

    def __init__(
        self, p: float | None = None, *, leaves: int = 16, rounds: int = 100, learning_rate: float = 0.1
    ) -> None:
        self.p = p
        self.leaves = leaves
        self.rounds = rounds
        self.learning_rate = learning_rate

    def fit(self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """Fit on rows X with two-valued labels y."""
        check_count("leaves", self.leaves, 2)
        check_count("rounds", self.rounds)
        rows, positive, weight = self._validate(X, y, sample_weight)
        # a twentieth of the smaller class: 20 rows a leaf, LightGBM's own, leave no tree of a small table
        fewest = int(np.clip(min(positive.sum(), (~positive).sum()) // 5, 1, _FEWEST_IN_LEAF))
        if find_spec("lightgbm") is None:
            if self.p is not None:
                raise MissingExtraError('trees with a push need LightGBM: pip install "apexrank[boosting]"')
            self.booster_ = self._scikit_learn(fewest).fit(rows, positive, sample_weight=weight)
            return self
        import lightgbm

        from apexrank.integrations.boosting import PushObjective

        options = {
            "objective": "binary" if self.p is None else PushObjective(self.p),
            "num_leaves": self.leaves,
            "min_data_in_leaf": fewest,
            "learning_rate": self.learning_rate,
            "deterministic": True,
            "force_row_wise": True,
            # of small trees awaiting other threads takes longer than they save, many times so on a busy machine
            "num_threads": 1 if rows.size < _LARGE else 0,
            "verbosity": -1,
        }
        data = lightgbm.Dataset(rows, positive.astype(float), weight=weight)
        self.booster_ = lightgbm.train(options, data, self.rounds)
        return self

    def _scikit_learn(self, fewest: int) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.rounds,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=fewest,
            early_stopping=False,
            random_state=0,
        )

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Ranking score of each row; with the log loss its log-odds."""
        return self.staged(X, [self.rounds])[0]

    def staged(self, X: ArrayLike, rounds: Sequence[int]) -> np.ndarray:
        """Scores after so many rounds, shape (len(rounds), n)."""
        rows = checked_rows(self, X)
        if hasattr(self.booster_, "staged_decision_function"):
            stages = list(self.booster_.staged_decision_function(rows))
            return np.array([np.ravel(stages[min(number, len(stages)) - 1]) for number in rounds])
        return np.array([self.booster_.predict(rows, raw_score=True, num_iteration=n) for n in rounds])

    def contributions(self, X: ArrayLike) -> np.ndarray:
        """What each feature adds to the score of a row above the mean score (TreeSHAP), rows by features."""
        rows = checked_rows(self, X)
        if not hasattr(self.booster_, "num_trees"):
            raise InputError(
                'reasons of trees need LightGBM: pip install "apexrank[boosting]", and fit again'
            )
        return self.booster_.predict(rows, pred_contrib=True)[:, :-1]
