"""Measures of rankings: what stands at the top of the list, and how much of it is right."""

from apexrank.metrics.confidence import Interval, adjust_p_values, bootstrap, compare, paired_test
from apexrank.metrics.discounted_gain import dcg, err, ndcg
from apexrank.metrics.evaluation import empty_groups, evaluate, get_scorer, per_group, scorer_names
from apexrank.metrics.permutation import (
    KendallCounts,
    kendall_counts,
    kendall_distance,
    kendall_tau,
    spearman_distance,
    spearman_footrule,
    weighted_kendall_distance,
)
from apexrank.metrics.precision import average_precision, mrr, precision_at, recall_at, winner_takes_all
from apexrank.metrics.push import (
    average_reciprocal_rank,
    heights,
    p_norm_risk,
    push_dcg,
    r_max,
    rank_sum,
    ranks,
    reverse_heights,
)
from apexrank.metrics.roc import auc, partial_auc, roc_points, tpr_at_fpr
from apexrank.metrics.spam import spam_mass, spam_met

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
