"""Candidate rankers of a comparison: logistic regression, a linear push, curves, trees, and both.

A candidate is a family of settings. It fits all of them on the training rows at once, because they may share work: a
path over p starts each fit from the previous one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from apexrank.parallel import in_pool
from apexrank.rankers.additive import AdditiveRanker
from apexrank.rankers.base import class_scores
from apexrank.rankers.curves_and_trees import CurvesAndTrees
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
class Averaged(Candidate):
    """Ranker without settings whose score is the mean over its parts; candidates that share a part share its fits."""

    in_threads = True
    takes_columns = True

    def parts(self) -> list[Any]:
        """Unfitted estimators of the parts."""
        return [self.estimator({})]

    def scores(
        self,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray | None,
        X_test: np.ndarray,
        known: dict[str, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Scores as in :class:`Candidate`; ``known`` holds those of parts that others have fitted on these rows."""
        found: dict[str, np.ndarray] = {} if known is None else known
        for part in self.parts():
            if repr(part) not in found:
                with quietly():
                    found[repr(part)] = class_scores(part.fit(X, y, sample_weight=weight), X_test)
        return np.mean([found[repr(part)] for part in self.parts()], axis=0)[None]


@dataclass(frozen=True)
class Curves(Averaged):
    """Additive scores with the smoothness of each curve and the pairs of columns chosen by the data."""

    name: str = "curves"
    form = "one curve per column"

    def estimator(self, setting: Setting) -> AdditiveRanker:
        return AdditiveRanker()


@dataclass(frozen=True)
class CurvesWithTrees(Averaged):
    """Mean of curves and of two bags of trees."""

    name: str = "curves and trees"
    form = "one curve per column, and trees"
    rounds: int = 2000

    def estimator(self, setting: Setting) -> CurvesAndTrees:
        return CurvesAndTrees(rounds=self.rounds)

    def parts(self) -> list[Any]:
        return list(self.estimator({}).parts())


@dataclass(frozen=True)
class Trees(Averaged):
    """A bag of boosted trees of LightGBM, or of scikit-learn without it."""

    name: str = "boosted trees"
    form = "trees, readable only by programs"
    rounds: int = 2000

    def estimator(self, setting: Setting) -> TreeRanker:
        return TreeRanker(rounds=self.rounds)


def default_candidates() -> list[Candidate]:
    """Return the candidates of ``apexrank compare``, most readable first."""
    return [Logistic(), LinearPush(), Curves(), CurvesWithTrees(), Trees()]


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
    if isinstance(fitted, CurvesAndTrees):
        return sum(model_size(part) or 0 for part in (fitted.curves_, fitted.trees_, fitted.extra_trees_))
    return int(np.count_nonzero(fitted.coef_)) if hasattr(fitted, "coef_") else None
