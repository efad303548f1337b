"""Ranking measures, with a focus on the top of the list."""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.metrics.confidence import Interval as Interval
    from apexrank.metrics.confidence import adjust_p_values as adjust_p_values
    from apexrank.metrics.confidence import bootstrap as bootstrap
    from apexrank.metrics.confidence import compare as compare
    from apexrank.metrics.confidence import paired_test as paired_test
    from apexrank.metrics.counterfactual import counterfactual_dcg as counterfactual_dcg
    from apexrank.metrics.discounted_gain import dcg as dcg
    from apexrank.metrics.discounted_gain import err as err
    from apexrank.metrics.discounted_gain import ndcg as ndcg
    from apexrank.metrics.evaluation import empty_groups as empty_groups
    from apexrank.metrics.evaluation import evaluate as evaluate
    from apexrank.metrics.evaluation import get_scorer as get_scorer
    from apexrank.metrics.evaluation import per_group as per_group
    from apexrank.metrics.evaluation import scorer_names as scorer_names
    from apexrank.metrics.permutation import KendallCounts as KendallCounts
    from apexrank.metrics.permutation import kendall_counts as kendall_counts
    from apexrank.metrics.permutation import kendall_distance as kendall_distance
    from apexrank.metrics.permutation import kendall_tau as kendall_tau
    from apexrank.metrics.permutation import spearman_distance as spearman_distance
    from apexrank.metrics.permutation import spearman_footrule as spearman_footrule
    from apexrank.metrics.permutation import weighted_kendall_distance as weighted_kendall_distance
    from apexrank.metrics.precision import average_precision as average_precision
    from apexrank.metrics.precision import mrr as mrr
    from apexrank.metrics.precision import precision_at as precision_at
    from apexrank.metrics.precision import recall_at as recall_at
    from apexrank.metrics.precision import spam_mass as spam_mass
    from apexrank.metrics.precision import spam_met as spam_met
    from apexrank.metrics.precision import winner_takes_all as winner_takes_all
    from apexrank.metrics.push import average_reciprocal_rank as average_reciprocal_rank
    from apexrank.metrics.push import heights as heights
    from apexrank.metrics.push import p_norm_risk as p_norm_risk
    from apexrank.metrics.push import push_dcg as push_dcg
    from apexrank.metrics.push import r_max as r_max
    from apexrank.metrics.push import rank_sum as rank_sum
    from apexrank.metrics.push import ranks as ranks
    from apexrank.metrics.push import reverse_heights as reverse_heights
    from apexrank.metrics.roc import auc as auc
    from apexrank.metrics.roc import partial_auc as partial_auc
    from apexrank.metrics.roc import roc_points as roc_points
    from apexrank.metrics.roc import tpr_at_fpr as tpr_at_fpr
else:
    __getattr__, __dir__, __all__ = attach(__name__)
