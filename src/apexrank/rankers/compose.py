"""Linear ranker composed of any objective of the scores and any penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from apexrank.errors import InputError
from apexrank.objectives import CrucialPairs, InfinitePush, Push, Retarget, UnknownLink
from apexrank.objectives.base import Objective
from apexrank.parameters import names
from apexrank.penalties import Penalty, Ridge
from apexrank.prices import Power
from apexrank.problem.design import Training
from apexrank.problem.problem import Problem
from apexrank.rankers.base import (
    Graded,
    LinearEstimator,
    TwoClasses,
    with_minimum,
)
from apexrank.rankers.listwise import LOSSES as LISTWISE
from apexrank.rankers.listwise import listwise_objective


def _unknown_link(
    y: np.ndarray, *, groups: Any = None, normalize: bool | None = None, **options: Any
) -> UnknownLink:
    """Unknown-link objective; with a single link for all rows it is a regression, averaged over the rows."""
    return UnknownLink(
        y, groups=groups, normalize=groups is None if normalize is None else normalize, **options
    )


OBJECTIVES: dict[str, Callable[..., Objective]] = {
    "push": Push,
    "infinite_push": InfinitePush,
    "pairs": CrucialPairs,
    "retarget": Retarget,
    **{name: partial(listwise_objective, name) for name in LISTWISE},
    "unknown_link": _unknown_link,
}


def _is_binary(ranker: Any) -> bool:
    """Whether the objective ranks two classes."""
    kind = OBJECTIVES.get(ranker.objective) if isinstance(ranker.objective, str) else ranker.objective
    while isinstance(kind, partial):
        kind = kind.func
    return isinstance(kind, type) and issubclass(kind, Push)


def _has_classes(ranker: Any) -> bool:
    if _is_binary(ranker):
        return True
    raise AttributeError(
        "decision_function is for objectives of two classes: use predict, which gives the scores"
    )


@dataclass(eq=False, repr=False)
class LinearRanker(Graded, LinearEstimator):
    """Linear ranker that minimises ``objective(X·w)/count + penalty(w)`` for a given objective and penalty.

    With a two-class objective (the pushes) it is a classifier: ``decision_function`` is the ranking score and
    ``predict`` the class. With any other objective ``predict`` is the ranking score. The objective is averaged over
    groups or rows, so the penalty has the same meaning for any number of them.

    Parameters
    ----------
    objective : str or callable
        "push", "infinite_push", "pairs", "retarget", "listnet", "pointwise", "rank_cosine", "ndcg_consistent" or
        "unknown_link"; or an objective class, or any callable ``objective(labels, sample_weight=..., groups=...)`` that
        returns an :class:`~apexrank.objectives.base.Objective`, such as ``functools.partial(Retarget,
        divergence="kl")``.
    penalty : Penalty, optional
        A penalty from :mod:`apexrank.penalties`; ``Ridge(1e-3)`` by default.
    objective_params : dict, optional
        Further arguments of the objective; "push" also accepts ``p``.
    solver : {"auto", "lbfgs", "newton", "coordinate"} or a solver
        An error is raised if the solver cannot handle the problem.
    max_iter, tol, warm_start, verbose
        As in :class:`PNormPush`.

    Attributes
    ----------
    coef_ : array of shape (n_features,), or (1, n_features) for two classes
    classes_, intercept_ : arrays
        Only for two classes; the second class is the positive one.
    objective_, dual_gap_, grad_norm_, converged_, n_iter_, history_
        As in :class:`PNormPush`.

    Examples
    --------
    >>> from apexrank import LinearRanker
    >>> from apexrank.penalties import Lasso, NonNegative, Ridge
    >>> rng = np.random.default_rng(0)
    >>> X, queries = rng.normal(size=(60, 4)), np.repeat(np.arange(6), 10)
    >>> y = np.digitize(X[:, 0] - X[:, 1], [0.0, 1.0])
    >>> lasso = LinearRanker("retarget", Lasso(0.3)).fit(X, y, groups=queries)
    >>> lasso.coef_.round(3).tolist()
    [0.696, -0.688, 0.0, 0.0]
    >>> LinearRanker("listnet", NonNegative(Ridge(0.1))).fit(X, y, groups=queries).coef_.round(3).tolist()
    [0.386, 0.0, 0.0, 0.0]
    """

    _parameter_constraints: ClassVar[dict] = LinearEstimator._parameter_constraints | {
        "objective": [names(OBJECTIVES), callable],
        "penalty": [None, Penalty],
        "objective_params": [None, dict],
    }

    objective: str | Callable[..., Objective] = "push"
    penalty: Penalty | None = None
    _: KW_ONLY
    objective_params: dict[str, Any] | None = None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if _is_binary(self):
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=False)
        tags.target_tags.positive_only = self.objective == "ndcg_consistent"
        return tags

    @property
    def _ranks_classes(self) -> bool:
        return _is_binary(self)

    def _penalty(self) -> Penalty:
        return Ridge(1e-3) if self.penalty is None else self.penalty

    def _penalty_on(self, data: Training, objective: Any) -> Penalty:
        return self._penalty()

    def _drop_flat(self, data: Training, problem: Problem) -> None:
        """Keep all coefficients: a penalty may couple a column that is constant in every list to others."""

    def _objective(self, labels: np.ndarray, weight: np.ndarray | None, groups: Any) -> Objective:
        make, options = self.objective, dict(self.objective_params or {})
        if isinstance(make, str):
            make = OBJECTIVES[make]
        if make in (Push, CrucialPairs) and "p" in options:
            options["price"] = Power(options.pop("p"))
        known = signature(UnknownLink if make is _unknown_link else make).parameters
        unknown = [name for name in options if name not in known]
        if unknown and not any(each.kind is each.VAR_KEYWORD for each in known.values()):
            use = ["p"] * (make in (Push, CrucialPairs))
            use += [name for name, each in known.items() if each.kind is each.KEYWORD_ONLY]
            raise InputError(
                f"unknown `objective_params` {', '.join(unknown)}: the objective takes "
                f"{', '.join(name for name in use if name not in ('sample_weight', 'groups')) or 'none'}"
            )
        objective = make(labels, sample_weight=weight, groups=groups, **options)
        return with_minimum(objective, self._penalty())

    @available_if(_has_classes)
    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Ranking score of each row: higher means nearer to the top; above 0 is predicted positive."""
        return TwoClasses.decision_function(self, X)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Class of each row for a two-class objective, else its ranking score."""
        check_is_fitted(self)
        if _is_binary(self):
            return TwoClasses.predict(self, X)
        return super().predict(X)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> float:
        """Accuracy for two classes, else the mean NDCG over the groups."""
        if _is_binary(self):
            return TwoClasses.score(self, X, y, sample_weight)
        return super().score(X, y, sample_weight=sample_weight, groups=groups)
