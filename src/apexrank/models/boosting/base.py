"""An objective of scores as LightGBM and XGBoost call it: slope and curvature of each row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.models.boosting.rows import Judged, judged_rows

FLOOR = (
    1e-3  # least curvature of a row, the mean row having 1 at first: a leaf of rows without a say stays put
)


class ScoreObjective(Protocol):
    """What :mod:`apexrank.objectives` has."""

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient with respect to the scores."""


class _Built(NamedTuple):
    rows: Judged
    objective: Any
    scale: float


@dataclass(frozen=True, eq=False)
class BoosterObjective:
    """Base class: the same object serves each interface of LightGBM and XGBoost.

    =============================================== ======================================
    ``lightgbm.train({"objective": o}, data)``      groups and weights of the ``Dataset``
    ``lightgbm.LGBMRegressor(objective=o)``         also ``LGBMRanker``, with ``fit(..., group=sizes)``
    ``xgboost.train({}, data, obj=o)``              groups and weights of the ``DMatrix``
    ``xgboost.XGBRegressor(objective=o)``           no groups there: ``groups=ids`` here
    =============================================== ======================================

    **Units.** Slope and curvature are multiplied by one number, for which the mean curvature of the rows that have a
    say is 1 at equal scores. So a leaf of m rows has a curvature of about m whatever the objective, as with the
    squared error, and the packages' defaults for learning rate, least curvature of a leaf and penalty fit.

    **Curvature.** Trees take a step −Σ slope / Σ curvature in each leaf. Each class (but for hinge losses) has an upper
    bound of the Hessian's diagonal at the current scores, twice which bounds the Hessian itself: steps are too short
    rather than too long at any learning rate below 1. No row has less than 1/1000 of the first mean.

    Without groups all rows are one list of any length. Where XGBoost has one weight per query, the objective is the
    sum of the queries' costs with these weights.

    Parameters
    ----------
    groups : array-like, optional
        One id per row of the training data, of any kind and in any order. It takes the place of sizes in the data,
        whose rows need not be sorted then.
    """

    groups: ArrayLike | None = field(default=None, kw_only=True, repr=False)
    _built: _Built | None = field(default=None, init=False, repr=False)

    def __call__(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None, group: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Slope and curvature of each row, for ``(labels, scores, weights, sizes)`` or ``(scores, data)``."""
        scores, rows = judged_rows(y_true, y_pred, sample_weight, group, self.groups)
        built = self._build(rows)
        grad, curvature = self._slopes(built.objective, scores)
        hess = np.maximum(built.scale * curvature, FLOOR)
        grad = built.scale * grad
        if rows.list_weight is None:
            return grad, hess
        return rows.list_weight * grad, np.maximum(rows.list_weight * hess, FLOOR)

    def value(self, y_true: Any, y_pred: Any, sample_weight: Any = None, group: Any = None) -> float:
        """Objective at the scores, not scaled; arguments as in a call."""
        scores, rows = judged_rows(y_true, y_pred, sample_weight, group, self.groups)
        if rows.list_weight is not None:
            raise InputError("the value of an objective has no weights of queries: give one weight per row")
        return self.value_of(rows, scores)

    def value_of(self, rows: Judged, scores: np.ndarray) -> float:
        """Objective of rows that have been read."""
        return self._build(rows).objective.value_and_grad(scores)[0]

    def _build(self, rows: Judged) -> _Built:
        """The objective of these rows, which are the same in each round."""
        if self._built is None or not self._built.rows.same(rows):
            objective = self._objective(rows)
            curvature = self._slopes(objective, np.zeros(len(rows.y)))[1]
            total, count = float(curvature.sum()), int(np.count_nonzero(curvature))
            scale = count / total if total > 0 else 1.0
            object.__setattr__(self, "_built", _Built(rows, objective, scale))
        assert self._built is not None
        return self._built

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_built": None}  # made again from the rows

    def _objective(self, rows: Judged) -> ScoreObjective:
        raise NotImplementedError

    def _slopes(self, objective: Any, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient, and the diagonal that bounds the Hessian."""
        raise NotImplementedError
