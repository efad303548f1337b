"""Measures of rankings: what stands at the top of the list, and how much of it is right."""

from apexrank.metrics.comparison import compare
from apexrank.metrics.confidence import Interval, adjust_p_values, bootstrap, paired_test
from apexrank.metrics.discounted_gain import dcg, err, ndcg
from apexrank.metrics.discounts import average_reciprocal_rank, push_dcg, rank_sum, ranks
from apexrank.metrics.permutation import (
    KendallCounts,
    kendall_counts,
    kendall_distance,
    kendall_tau,
    spearman_distance,
    spearman_footrule,
    weighted_kendall_distance,
)
from apexrank.metrics.precision import average_precision, mrr, winner_takes_all
from apexrank.metrics.push import auc, empty_groups, heights, p_norm_risk, r_max, reverse_heights
from apexrank.metrics.roc import partial_auc, precision_at, recall_at, roc_points, tpr_at_fpr
from apexrank.metrics.scorers import get_scorer, scorer_names
from apexrank.metrics.spam import spam_mass, spam_met
from apexrank.metrics.table import evaluate, per_group

__all__ = [
    "Interval",
    "KendallCounts",
    "adjust_p_values",
    "auc",
    "average_precision",
    "average_reciprocal_rank",
    "bootstrap",
    "compare",
    "dcg",
    "empty_groups",
    "err",
    "evaluate",
    "get_scorer",
    "heights",
    "kendall_counts",
    "kendall_distance",
    "kendall_tau",
    "mrr",
    "ndcg",
    "p_norm_risk",
    "paired_test",
    "partial_auc",
    "per_group",
    "precision_at",
    "push_dcg",
    "r_max",
    "rank_sum",
    "ranks",
    "recall_at",
    "reverse_heights",
    "roc_points",
    "scorer_names",
    "spam_mass",
    "spam_met",
    "spearman_distance",
    "spearman_footrule",
    "tpr_at_fpr",
    "weighted_kendall_distance",
    "winner_takes_all",
]
