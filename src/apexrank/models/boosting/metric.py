"""Our measures, and values of our objectives, where LightGBM and XGBoost ask for a metric."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import ArrayLike

from apexrank import metrics
from apexrank.errors import InputError
from apexrank.metrics.evaluation import find_measure
from apexrank.models.boosting.base import BoosterObjective
from apexrank.models.boosting.rows import judged_rows

_NO_GROUP = object()  # LightGBM's estimators always say what the groups are, those of XGBoost never


@dataclass(frozen=True, eq=False)
class BoosterMetric:
    """A measure by name, or the value of an objective, after each round of LightGBM or XGBoost.

    =================================================== =============================================
    ``lightgbm.train(..., feval=m)``                    with ``"metric": "None"`` only this one
    ``lightgbm.LGBMRanker().fit(..., eval_metric=m)``   also the other estimators
    ``xgboost.train(..., custom_metric=m)``             with ``"disable_default_eval_metric": 1`` only this
    ``xgboost.XGBRegressor(eval_metric=m)``             no groups there: ``groups=ids`` here
    =================================================== =============================================

    LightGBM is told whether more is better. XGBoost guesses from the name ("ndcg", "map", "auc" and "pre" at its
    beginning are for more), so stop it early with
    ``xgboost.callback.EarlyStopping(rounds=n, maximize=m.greater_is_better)``.

    Parameters
    ----------
    measure : str or BoosterObjective
        A name that :func:`apexrank.metrics.evaluate` knows, such as "ndcg@10", "auc" or "partial_auc_0.05"; or an
        objective, whose value is measured.
    options : dict, optional
        Options of :func:`apexrank.metrics.evaluate`, such as ``{"relevant": 2}`` or ``{"ties": "given"}``.
    weighted : bool
        Count rows by their weights. They often are for training only, so by default they are not used.
    groups : array-like, optional
        One id per row of the data that is measured, in place of the sizes there.

    Examples
    --------
    >>> metric = BoosterMetric("ndcg@10")
    >>> metric([1, 0, 1], [0.9, 0.5, 0.7])
    1.0
    >>> metric([1, 0, 1], [0.9, 0.5, 0.7], None, [3])
    ('ndcg@10', 1.0, True)
    """

    measure: str | BoosterObjective
    options: dict[str, Any] = field(default_factory=dict)
    weighted: bool = False
    groups: ArrayLike | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.measure, BoosterObjective):
            find_measure(self.measure)
        elif self.options:
            raise InputError("options are those of a measure by name: an objective has its own")

    @property
    def __name__(self) -> str:
        """Name in the tables of both packages."""
        return type(self.measure).__name__ if isinstance(self.measure, BoosterObjective) else self.measure

    @property
    def greater_is_better(self) -> bool:
        """Whether a larger value is better."""
        if isinstance(self.measure, BoosterObjective):
            return False
        return find_measure(self.measure).family.greater_is_better

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None, group: Any = _NO_GROUP) -> Any:
        """Value in the form that the caller takes: a number, (name, value), or (name, value, more is better)."""
        sizes = None if group is _NO_GROUP else group
        value = self._value(y_true, y_pred, sample_weight, sizes)
        is_data = hasattr(y_pred, "get_label")
        if group is _NO_GROUP and not is_data:
            return value
        if is_data and hasattr(y_pred, "num_row"):  # XGBoost's
            return self.__name__, value
        return self.__name__, value, self.greater_is_better

    def _value(self, y_true: Any, y_pred: Any, sample_weight: Any, sizes: Any) -> float:
        scores, rows = judged_rows(y_true, y_pred, sample_weight, sizes, self.groups)
        weight = rows.weight if self.weighted else None
        if self.weighted and rows.list_weight is not None:
            raise InputError("measures have no weights of queries: give one weight per row")
        if isinstance(self.measure, BoosterObjective):
            return self.measure.value_of(rows._replace(weight=weight, list_weight=None), scores)
        found = metrics.evaluate(
            rows.y, scores, self.measure, groups=rows.groups, sample_weight=weight, **self.options
        )
        return next(iter(found.values()))
