"""Rankers: thin scikit-learn estimators that store, validate, build, solve and expose."""

from apexrank.rankers.base import CollapsedWarning, SeparableWarning, fit_blocks
from apexrank.rankers.boost import PushBoost
from apexrank.rankers.compose import LinearRanker
from apexrank.rankers.isotron import Isotron
from apexrank.rankers.link import Link, UnknownLinkRegressor
from apexrank.rankers.listwise import ListwiseRanker
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
    "fit_blocks",
    "push_path",
]
