"""Rank aggregation, clustering and models of rankings: Lovász–Bregman methods and classic voting and fusion rules.

Names are imported on first use.
"""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.aggregation.bootstrap import RankBootstrap as RankBootstrap
    from apexrank.aggregation.kemeny import Kemeny as Kemeny
    from apexrank.aggregation.kendall_mallows import KendallMallows as KendallMallows
    from apexrank.aggregation.kmeans import LovaszBregmanKMeans as LovaszBregmanKMeans
    from apexrank.aggregation.kmeans import elbow as elbow
    from apexrank.aggregation.kmeans import silhouette as silhouette
    from apexrank.aggregation.learn import LovaszAggregator as LovaszAggregator
    from apexrank.aggregation.lovasz_bregman import LovaszBregman as LovaszBregman
    from apexrank.aggregation.rank_aggregation import Aggregation as Aggregation
    from apexrank.aggregation.rank_aggregation import aggregate as aggregate
else:
    __getattr__, __dir__, __all__ = attach(__name__)
