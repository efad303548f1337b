"""Rows whose answers are known, for any kind of model: labels or grades, scores, and what to measure."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from apexrank.errors import InputError
from apexrank.export.linear import as_table, last_step
from apexrank.io.labels import answers
from apexrank.io.ranker import TableRanker
from apexrank.metrics.evaluation import find_measure, ranking_scores

OF_ONE_LIST = ("auc", "partial_auc_0.1", "precision_at_50", "average_precision")
OF_MANY_LISTS = ("ndcg", "ndcg_at_10", "average_precision")


class Answers(NamedTuple):
    """Labels 0 and 1 or grades of rows, and what goes with them."""

    y: np.ndarray
    groups: np.ndarray | None
    weight: np.ndarray | None
    graded: bool


def answers_of(model: Any, X: Any, y: Any, groups: Any, sample_weight: Any) -> Answers:
    """Labels of the model's positive class, or grades; those of a table where a TableRanker is given no others.

    Examples
    --------
    >>> from apexrank import IRPush
    >>> ranker = IRPush().fit([[0.0], [1.0], [2.0], [1.5]], ["no", "no", "yes", "yes"])
    >>> answers_of(ranker, None, ["yes", "no"], None, None).y.tolist()
    [1, 0]
    """
    if isinstance(model, TableRanker):
        table = as_table(X)
        y = answers(table, model.target, model.positive) if y is None else y
        groups = model.group_ids(table) if groups is None else groups
    if y is None:
        raise InputError("y is missing: give the labels or grades of the rows of X")
    ranker, y = last_step(model), np.asarray(y)
    weight = (
        None if sample_weight is None else _check_sample_weight(sample_weight, y, ensure_non_negative=True)
    )
    groups = None if groups is None else np.asarray(groups)
    classes = getattr(ranker, "classes_", None)
    if classes is None:
        return Answers(y.astype(float), groups, weight, True)
    if not np.isin(y, classes).all():
        raise InputError(f"y has labels that the model does not know: it knows {classes.tolist()}")
    return Answers((y == classes[1]).astype(np.int64), groups, weight, False)


def model_scores(model: Any, X: Any) -> np.ndarray:
    """Ranking scores of the rows by the model itself."""
    return model.score(as_table(X)) if isinstance(model, TableRanker) else ranking_scores(model, X)


def default_measures(known: Answers) -> list[str]:
    """Names of measures that make sense for such answers and so many rows."""
    names = OF_MANY_LISTS if known.graded or known.groups is not None else OF_ONE_LIST
    return [
        name
        for name in names
        if known.groups is not None or find_measure(name).options.get("k", 1) <= len(known.y)
    ]
