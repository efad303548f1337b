"""What boosting keeps from round to round, and when a measure on held-out rows stops it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin

from apexrank.errors import InputError
from apexrank.metrics import get_scorer
from apexrank.models.linear import Matrix


def output_of(estimator: Any, X: Matrix) -> np.ndarray:
    """What a fitted estimator of two classes ranks by: decision function, probability or prediction."""
    if hasattr(estimator, "decision_function"):
        output = estimator.decision_function(X)
    elif hasattr(estimator, "predict_proba"):
        output = estimator.predict_proba(X)[:, 1]
    else:
        output = estimator.predict(X)
    return np.asarray(output, dtype=np.float64).reshape(X.shape[0])


class Rows(NamedTuple):
    """Rows with labels, weights and groups."""

    X: Matrix
    positive: np.ndarray
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Rows:
        weight, groups = (None if part is None else part[rows] for part in (self.weight, self.groups))
        return Rows(self.X[rows], self.positive[rows], weight, groups)


class _Scored(ClassifierMixin, BaseEstimator):
    """Scores that are already there, in the shape that a scorer asks for."""

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = scores
        self.classes_ = np.array([False, True])

    def decision_function(self, X: Any) -> np.ndarray:
        return self.scores


@dataclass
class Rounds:
    """The weak rankers so far, their steps, and value and measure after each round, the start included."""

    held_out: Rows | None
    scoring: str | Callable[..., float]
    weak: list[Any] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    measures: list[float] = field(default_factory=list)
    stop_reason: str = ""

    def __post_init__(self) -> None:
        self.scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        self.held_out_scores = np.zeros(0 if self.held_out is None else len(self.held_out.positive))

    def add(self, weak: Any, step: float, value: float) -> None:
        """Note a round."""
        self.weak.append(weak)
        self.steps.append(step)
        if self.held_out is not None:
            self.held_out_scores = self.held_out_scores + step * output_of(weak, self.held_out.X)
        self.note(value)

    def note(self, value: float) -> None:
        """Note the objective, and measure the held-out rows."""
        self.values.append(value)
        self.measures.append(float("nan") if self.held_out is None else self._measure(self.held_out))

    def _measure(self, rows: Rows) -> float:
        extra = {"groups": rows.groups, "sample_weight": rows.weight}
        given = {name: column for name, column in extra.items() if column is not None}
        with config_context(enable_metadata_routing=True):  # so that a scorer takes groups
            measure = self.scorer(_Scored(self.held_out_scores), rows.X, rows.positive, **given)
        if np.isnan(measure):
            raise InputError("scoring gives no number on the held-out rows: they need rows of both classes")
        return measure

    @property
    def best(self) -> int:
        """Round with the best measure, the first of them, and at least one."""
        return 1 + int(np.argmax(self.measures[1:])) if self.weak else 0

    def limit(self, n_estimators: int, n_iter_no_change: int) -> None:
        """Stop after the last round, or when the measure has not improved for long."""
        if self.stop_reason == "" and len(self.weak) >= n_estimators:
            self.stop_reason = "n_estimators"
        if self.held_out is not None and len(self.weak) - self.best >= n_iter_no_change:
            self.stop_reason = "validation"
