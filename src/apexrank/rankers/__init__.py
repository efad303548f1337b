"""Rankers: thin scikit-learn estimators that store, validate, build, solve and expose."""

from apexrank.rankers.base import CollapsedWarning, LinearRanker, SeparableWarning
from apexrank.rankers.boost import PushBoost
from apexrank.rankers.isotron import Isotron
from apexrank.rankers.link import Link, UnknownLinkRegressor
from apexrank.rankers.listwise import ListwiseRanker
from apexrank.rankers.ordered import perfectly_ordered
from apexrank.rankers.pairs import CrucialPairsPush
from apexrank.rankers.push import IRPush, PNormPush, RankBoost
from apexrank.rankers.rerank import TwoStagePush
from apexrank.rankers.retarget import MonotoneRetargeting
from apexrank.rankers.select import PNormPushCV, push_path

__all__ = [
    "CollapsedWarning",
    "CrucialPairsPush",
    "IRPush",
    "Isotron",
    "LinearRanker",
    "Link",
    "ListwiseRanker",
    "MonotoneRetargeting",
    "PNormPush",
    "PNormPushCV",
    "PushBoost",
    "RankBoost",
    "SeparableWarning",
    "TwoStagePush",
    "UnknownLinkRegressor",
    "perfectly_ordered",
    "push_path",
]
