"""The measures a report shows, most of them about the top of the list."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from apexrank import metrics


class Measure(NamedTuple):
    """A measure with its name for machines and for people; ``rows`` is the shortest list it makes sense for."""

    key: str
    label: str
    function: Callable[..., float]
    rows: int = 1


_CUTS = (10, 50, 100)

MEASURES = (
    Measure("auc", "AUC", metrics.auc),
    Measure("partial_auc_10", "partial AUC (FPR <= 10%)", partial(metrics.partial_auc, max_fpr=0.1)),
    Measure("partial_auc_1", "partial AUC (FPR <= 1%)", partial(metrics.partial_auc, max_fpr=0.01)),
    *(
        Measure(f"precision_at_{k}", f"precision at {k}", partial(metrics.precision_at, k=k), k)
        for k in _CUTS
    ),
    *(Measure(f"recall_at_{k}", f"recall at {k}", partial(metrics.recall_at, k=k), k) for k in _CUTS),
    Measure("tpr_at_fpr_1", "TPR at 1% FPR", partial(metrics.tpr_at_fpr, fpr=0.01)),
    Measure("r_max", "R_max (positives below the highest negative)", metrics.r_max),
    Measure("average_reciprocal_rank", "AveR (sum of 1/rank)", metrics.average_reciprocal_rank),
    Measure("push_dcg", "DCG (sum of 1/ln(1 + rank))", metrics.push_dcg),
)
LABELS = {measure.key: measure.label for measure in MEASURES}


def top_measures(y: np.ndarray, scores: np.ndarray, groups: np.ndarray | None = None) -> dict[str, float]:
    """Every measure that makes sense for lists of this length, by its key.

    Examples
    --------
    >>> y, scores = np.array([1, 0, 1, 0]), np.array([0.9, 0.7, 0.4, 0.1])
    >>> top_measures(y, scores)["auc"]
    0.75
    """
    longest = len(y) if groups is None else int(np.unique(groups, return_counts=True)[1].max())
    return {m.key: float(m.function(y, scores, groups=groups)) for m in MEASURES if m.rows <= longest}
