"""Measures of rankings: what stands at the top of the list, and how much of it is right."""

from apexrank.metrics.cuts import partial_auc, precision_at, recall_at, roc_points, tpr_at_fpr
from apexrank.metrics.discounts import average_reciprocal_rank, push_dcg, ranks
from apexrank.metrics.scorers import get_scorer
from apexrank.metrics.top import auc, empty_groups, heights, p_norm_risk, r_max, reverse_heights

__all__ = [
    "auc",
    "average_reciprocal_rank",
    "empty_groups",
    "get_scorer",
    "heights",
    "p_norm_risk",
    "partial_auc",
    "precision_at",
    "push_dcg",
    "r_max",
    "ranks",
    "recall_at",
    "reverse_heights",
    "roc_points",
    "tpr_at_fpr",
]
