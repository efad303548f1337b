"""Ranking by convex optimisation that gets the top of the list right.

Names are imported on first use, which keeps ``import apexrank`` fast.
"""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank import aggregation as aggregation
    from apexrank import clicks as clicks
    from apexrank import datasets as datasets
    from apexrank import distributed as distributed
    from apexrank import divergences as divergences
    from apexrank import export as export
    from apexrank import graph as graph
    from apexrank import integrations as integrations
    from apexrank import io as io
    from apexrank import losses as losses
    from apexrank import metrics as metrics
    from apexrank import objectives as objectives
    from apexrank import penalties as penalties
    from apexrank import plot as plot
    from apexrank import preprocessing as preprocessing
    from apexrank import prices as prices
    from apexrank import problem as problem
    from apexrank import projections as projections
    from apexrank import rankers as rankers
    from apexrank import report as report
    from apexrank import solvers as solvers
    from apexrank import submodular as submodular
    from apexrank.aggregation import LovaszBregman as LovaszBregman
    from apexrank.aggregation import LovaszBregmanKMeans as LovaszBregmanKMeans
    from apexrank.aggregation import aggregate as aggregate
    from apexrank.errors import ApexrankError as ApexrankError
    from apexrank.errors import InputError as InputError
    from apexrank.graph import AntiTrustRank as AntiTrustRank
    from apexrank.graph import ConsensusRank as ConsensusRank
    from apexrank.graph import DemotedRank as DemotedRank
    from apexrank.graph import GuardedPageRank as GuardedPageRank
    from apexrank.graph import InDegree as InDegree
    from apexrank.graph import LpqRank as LpqRank
    from apexrank.graph import NonBacktrackingRank as NonBacktrackingRank
    from apexrank.graph import PageRank as PageRank
    from apexrank.graph import TrustRank as TrustRank
    from apexrank.io.model_file import load as load
    from apexrank.io.model_file import save as save
    from apexrank.rankers import AdditiveRanker as AdditiveRanker
    from apexrank.rankers import AdditiveRetargeting as AdditiveRetargeting
    from apexrank.rankers import CrucialPairsPush as CrucialPairsPush
    from apexrank.rankers import CurvesAndTrees as CurvesAndTrees
    from apexrank.rankers import IRPush as IRPush
    from apexrank.rankers import LetorRanker as LetorRanker
    from apexrank.rankers import LinearRanker as LinearRanker
    from apexrank.rankers import ListwiseRanker as ListwiseRanker
    from apexrank.rankers import LogisticRanker as LogisticRanker
    from apexrank.rankers import MonotoneRetargeting as MonotoneRetargeting
    from apexrank.rankers import PNormPush as PNormPush
    from apexrank.rankers import PNormPushCV as PNormPushCV
    from apexrank.rankers import PushBoost as PushBoost
    from apexrank.rankers import RankBoost as RankBoost
    from apexrank.rankers import TreeRanker as TreeRanker
    from apexrank.rankers import TwoStagePush as TwoStagePush
    from apexrank.rankers import UnknownLinkRegressor as UnknownLinkRegressor
    from apexrank.rankers import push_path as push_path
else:
    __getattr__, __dir__, __all__ = attach(__name__)

__version__ = "0.2.0"
