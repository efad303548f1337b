"""Candidate rankers of a comparison: logistic regression, a linear push, curves, and boosted trees.

A candidate is a family of settings. It fits all of them on the training rows at once, because they share work: a path
over p starts each fit from the previous one, and trees of 50 rounds are the first part of those of 200.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import product
from typing import Any, ClassVar
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from apexrank.parallel import in_pool
from apexrank.rankers.additive import AdditiveRanker
from apexrank.rankers.base import class_scores
from apexrank.rankers.logistic import LogisticRanker
from apexrank.rankers.push import PNormPush, push_path
from apexrank.rankers.trees import TreeRanker

Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Candidate:
    """Family of rankers that differ in their settings.

    Parameters
    ----------
    name : str
        Name in tables and verdicts.
    """

    name: str
    form: ClassVar[str] = ""  # description of the model's readable form
    in_threads: ClassVar[bool] = False  # whether fits may run in parallel threads
    takes_columns: ClassVar[bool] = False  # whether rows of a table are its columns, as a data frame

    @property
    def settings(self) -> list[Setting]:
        """Settings to choose from, strongest penalty and weakest push first; the first of tied ones is chosen."""
        return [{}]

    def scores(
        self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, X_test: np.ndarray
    ) -> np.ndarray:
        """Fit every setting on the training rows; return scores of the test rows, shape (n_settings, n_test)."""
        fits = (self.fit(X, y, weight, setting) for setting in self.settings)
        return np.array([class_scores(fitted, X_test) for fitted in fits])

    def estimator(self, setting: Setting) -> Any:
        """Create the unfitted estimator of a setting."""
        raise NotImplementedError

    def fit(self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, setting: Setting) -> Any:
        """Fit one setting."""
        with quietly():
            return self.estimator(setting).fit(X, y, **({} if weight is None else {"sample_weight": weight}))


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress convergence warnings: settings that do not converge lose the comparison anyway.

    Warning filters are global to all threads; in a pool, the thread that started it has set them.
    """
    if in_pool():
        yield
        return
    with catch_warnings():
        simplefilter("ignore", ConvergenceWarning)
        yield


@dataclass(frozen=True)
class Estimator(Candidate):
    """User-defined ranker: any scikit-learn classifier with ``decision_function`` or ``predict_proba``."""

    given: Any = None

    def estimator(self, setting: Setting) -> Any:
        return clone(self.given)


@dataclass(frozen=True)
class Logistic(Candidate):
    """Logistic regression with a ridge penalty of selected strength."""

    name: str = "logistic regression"
    form = "one coefficient per feature"
    alphas: Sequence[float] = (1.0, 0.1, 1e-2, 1e-3, 1e-4)

    @property
    def settings(self) -> list[Setting]:
        return [{"alpha": alpha} for alpha in self.alphas]

    def estimator(self, setting: Setting) -> LogisticRanker:
        return LogisticRanker(**setting)


@dataclass(frozen=True)
class LinearPush(Candidate):
    """P-Norm Push with selected p and penalty."""

    name: str = "linear push"
    form = "one coefficient per feature"
    in_threads = True
    ps: Sequence[float] = (1.0, 4.0, 16.0, 64.0)
    alphas: Sequence[float] = (1.0, 0.1, 1e-2, 1e-3)
    # accurate enough to select a setting; the final model is fitted to full accuracy
    search: Setting = field(default_factory=lambda: {"max_iter": 200, "tol": 1e-4})

    @property
    def settings(self) -> list[Setting]:
        return [{"p": p, "alpha": alpha} for alpha, p in product(self.alphas, self.ps)]

    def scores(
        self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, X_test: np.ndarray
    ) -> np.ndarray:
        with quietly():
            given = {"sample_weight": weight, **self.search}
            paths = [push_path(X, y, self.ps, alpha=alpha, **given) for alpha in self.alphas]
        return np.array([ranker.decision_function(X_test) for path in paths for ranker in path])

    def estimator(self, setting: Setting) -> Any:
        return PNormPush(**setting)


@dataclass(frozen=True)
class Curves(Candidate):
    """Additive scores with the smoothness of each curve and the pairs of columns chosen by the data."""

    name: str = "curves"
    form = "one curve per feature"
    in_threads = True
    takes_columns = True

    def estimator(self, setting: Setting) -> AdditiveRanker:
        return AdditiveRanker()


@dataclass(frozen=True)
class Trees(Candidate):
    """Boosted trees of LightGBM, or of scikit-learn without it, with selected size and number of trees.

    ``ps`` are powers of a push; None is the log loss.
    """

    name: str = "boosted trees"
    form = "trees, readable only by programs"
    in_threads = True
    takes_columns = True
    ps: Sequence[float | None] = (None,)
    leaves: Sequence[int] = (4, 16)
    rounds: Sequence[int] = (10, 25, 50, 100, 200)

    @property
    def settings(self) -> list[Setting]:
        grid = product(self.ps, self.leaves, self.rounds)
        return [{"p": p, "leaves": leaves, "rounds": rounds} for p, leaves, rounds in grid]

    def scores(
        self, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, X_test: np.ndarray
    ) -> np.ndarray:
        most = max(self.rounds)
        stages = [
            self.fit(X, y, weight, {"p": p, "leaves": leaves, "rounds": most}).staged(X_test, self.rounds)
            for p, leaves in product(self.ps, self.leaves)
        ]
        return np.concatenate(stages)

    def estimator(self, setting: Setting) -> TreeRanker:
        return TreeRanker(**setting)


def default_candidates() -> list[Candidate]:
    """Return the candidates of ``apexrank compare``, most readable first; trees with a push need LightGBM."""
    pushed = [Trees("pushed trees", ps=(2.0,))] if find_spec("lightgbm") else []
    return [Logistic(), LinearPush(), Curves(), Trees(), *pushed]


def model_size(fitted: Any) -> int | None:
    """Count the parameters of a model; None if unknown.

    Parameters are non-zero coefficients, values of curves at their knots, and thresholds and leaves of trees.

    Examples
    --------
    >>> model_size(PNormPush(alpha=0.1).fit([[0.0, 1.0], [1.0, 1.0]], [0, 1]))
    1
    """
    if hasattr(fitted, "shapes_"):
        return sum(int(np.count_nonzero(part.values)) for part in (*fitted.shapes_, *fitted.pairs_))
    if hasattr(fitted, "forest_"):
        return len(fitted.forest_.value)
    return int(np.count_nonzero(fitted.coef_)) if hasattr(fitted, "coef_") else None
