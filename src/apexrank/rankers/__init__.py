"""Rankers: scikit-learn estimators that validate their input, build a problem, solve it and expose the result."""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.rankers.additive import AdditiveRanker as AdditiveRanker
    from apexrank.rankers.additive import AdditiveRetargeting as AdditiveRetargeting
    from apexrank.rankers.base import CollapsedWarning as CollapsedWarning
    from apexrank.rankers.base import PositiveLabelWarning as PositiveLabelWarning
    from apexrank.rankers.base import SeparableWarning as SeparableWarning
    from apexrank.rankers.boost import PushBoost as PushBoost
    from apexrank.rankers.compose import LinearRanker as LinearRanker
    from apexrank.rankers.curves_and_trees import CurvesAndTrees as CurvesAndTrees
    from apexrank.rankers.letor import LetorRanker as LetorRanker
    from apexrank.rankers.link import Link as Link
    from apexrank.rankers.link import UnknownLinkRegressor as UnknownLinkRegressor
    from apexrank.rankers.listwise import ListwiseRanker as ListwiseRanker
    from apexrank.rankers.logistic import LogisticRanker as LogisticRanker
    from apexrank.rankers.pairs import CrucialPairsPush as CrucialPairsPush
    from apexrank.rankers.push import IRPush as IRPush
    from apexrank.rankers.push import PNormPush as PNormPush
    from apexrank.rankers.push import RankBoost as RankBoost
    from apexrank.rankers.push import push_path as push_path
    from apexrank.rankers.rerank import TwoStagePush as TwoStagePush
    from apexrank.rankers.retarget import MonotoneRetargeting as MonotoneRetargeting
    from apexrank.rankers.search import PNormPushCV as PNormPushCV
    from apexrank.rankers.trees import TreeRanker as TreeRanker
else:
    __getattr__, __dir__, __all__ = attach(__name__)
