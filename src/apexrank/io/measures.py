"""The measures a report shows where nobody chose any."""

from __future__ import annotations

import math

import numpy as np

from apexrank import metrics
from apexrank.metrics.evaluation import find_measure

ABOVE_ZERO = math.ulp(0.0)  # the smallest grade that is one
_CUTS = (10, 50, 100)

ONE_LIST = (
    "auc",
    "partial_auc_0.1",
    "partial_auc_0.01",
    *(f"precision_at_{k}" for k in _CUTS),
    *(f"recall_at_{k}" for k in _CUTS),
    "tpr_at_fpr_0.01",
    "average_precision",
    "r_max",
    "average_reciprocal_rank",
    "push_dcg",
)
MANY_LISTS = (
    "ndcg",
    "ndcg_at_5",
    "ndcg_at_10",
    "average_precision",
    "mrr",
    "err",
    "winner_takes_all",
    "precision_at_5",
    "precision_at_10",
    "recall_at_10",
    "auc",
)


def default_measures(y: np.ndarray, groups: np.ndarray | None = None) -> list[str]:
    """Names of the measures that make sense for lists of this length and kind.

    Examples
    --------
    >>> default_measures(np.array([0, 1, 1]))[:2]
    ['auc', 'partial_auc_0.1']
    """
    if groups is not None or len(np.unique(y)) > 2:
        return list(MANY_LISTS)
    return [name for name in ONE_LIST if find_measure(name).options.get("k", 1) <= len(y)]


def top_measures(y: np.ndarray, scores: np.ndarray, groups: np.ndarray | None = None) -> dict[str, float]:
    """Every measure that makes sense for such lists, by its name.

    Examples
    --------
    >>> y, scores = np.array([1, 0, 1, 0]), np.array([0.9, 0.7, 0.4, 0.1])
    >>> top_measures(y, scores)["auc"]
    0.75
    """
    return metrics.evaluate(y, scores, default_measures(y, groups), groups=groups, relevant=ABOVE_ZERO)


def label(name: str) -> str:
    """What people call a measure."""
    return find_measure(name).label
