"""Threshold features 1[x > t], the binary weak rankers of COLT 2006, Figure 2."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from apexrank.errors import InputError
from apexrank.validation import check_frame


def _cuts(column: np.ndarray, n_thresholds: int) -> np.ndarray:
    """Values after which to cut: those whose share of rows at or below is nearest to 1/(n+1), …, n/(n+1).

    Only values that occur, the largest excepted, are candidates: two cuts then never split the rows alike
    and none leaves all rows on one side, however often a value repeats.
    """
    values, counts = np.unique(column, return_counts=True)
    candidates, below = values[:-1], np.cumsum(counts)[:-1] / len(column)
    free = np.ones(len(candidates), dtype=bool)
    for share in np.arange(1, min(n_thresholds, len(candidates)) + 1) / (n_thresholds + 1):
        free[np.argmin(np.where(free, np.abs(below - share), np.inf))] = False
    return candidates[~free]


def _new(column: np.ndarray, seen: set[bytes]) -> bool:
    """Whether a 0/1 column ranks the rows unlike all columns seen, up to its sign; remembers it."""
    key = np.packbits(column != column[0]).tobytes()
    new = key not in seen
    seen.add(key)
    return new


class ThresholdFeatures(TransformerMixin, BaseEstimator):
    """Turn each feature into binary features ``1[x > t]``, up to ``n_thresholds`` of them.

    The thresholds lie near the quantiles 1/(n+1), …, n/(n+1) of the training data. No feature made is
    constant on the training data and no two are equivalent there, as COLT 2006, Figure 2, asks: a feature
    that equals another one, or its negation (the same ranker with the other sign), is left out. A column
    with few distinct values gives fewer features than ``n_thresholds``.

    Parameters
    ----------
    n_thresholds : int, default=4
        Most thresholds a feature gets.

    Attributes
    ----------
    features_ : ndarray of shape (n_features_out,)
        Input column of each threshold feature.
    thresholds_ : ndarray of shape (n_features_out,)
        Its threshold t.
    n_features_in_ : int
        Number of input columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the input columns, when they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from apexrank_papers.push.thresholds import ThresholdFeatures
    >>> X = np.array([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0], [4.0, 8.0]])
    >>> thresholds = ThresholdFeatures(n_thresholds=2).fit(X)
    >>> thresholds.get_feature_names_out(["age", "size"]).tolist()
    ['age > 1.0', 'age > 3.0']
    >>> thresholds.transform([[2.5, 9.0]]).tolist()
    [[1.0, 0.0]]

    ``size > 7.0`` is missing: on these rows it says the same as ``age > 3.0``.
    """

    _parameter_constraints: ClassVar[dict] = {"n_thresholds": [Interval(Integral, 1, None, closed="left")]}

    def __init__(self, n_thresholds: int = 4) -> None:
        self.n_thresholds = n_thresholds

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: Any = None) -> ThresholdFeatures:
        """Choose the thresholds from the training rows ``X``; ``y`` is ignored."""
        check_frame(X)
        rows = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        seen: set[bytes] = set()
        chosen = [
            (j, cut)
            for j, column in enumerate(rows.T)
            for cut in _cuts(column, self.n_thresholds)
            if _new(column > cut, seen)
        ]
        if not chosen:
            raise InputError("no threshold can be set: every column of X is constant")
        features, thresholds = zip(*chosen, strict=True)
        self.features_ = np.array(features, dtype=np.intp)
        self.thresholds_ = np.array(thresholds)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Give the 0/1 features of the rows ``X``, as floats."""
        check_is_fitted(self)
        check_frame(X)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return (rows[:, self.features_] > self.thresholds_).astype(np.float64)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Name each feature after what it asks: ``"glucose > 127.0"``."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        pairs = zip(self.features_, self.thresholds_, strict=True)
        return np.array([f"{names[j]} > {float(t)!r}" for j, t in pairs], dtype=object)


def threshold_features(
    X: ArrayLike, n_thresholds: int = 4, X_test: ArrayLike | None = None
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Threshold features of ``X`` and, if given, of ``X_test`` with the thresholds of ``X``.

    Shorthand for :class:`ThresholdFeatures`, which also names the features.

    Examples
    --------
    >>> from apexrank_papers.push.thresholds import threshold_features
    >>> train, test = threshold_features([[1], [2], [3], [4]], n_thresholds=1, X_test=[[2.5]])
    >>> train.ravel().tolist(), test.ravel().tolist()
    ([0.0, 0.0, 1.0, 1.0], [1.0])
    """
    transformer = ThresholdFeatures(n_thresholds).fit(X)
    train = transformer.transform(X)
    return train if X_test is None else (train, transformer.transform(X_test))
