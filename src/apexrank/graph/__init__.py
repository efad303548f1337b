"""Ranking the vertices of a graph by its links, so that spammers gain little from making up links.

Names are imported when they are first used: networkx looks into this package whenever it is imported itself.
"""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.graph.adjacency import Graph as Graph
    from apexrank.graph.adjacency import SignedGraph as SignedGraph
    from apexrank.graph.base import GraphRank as GraphRank
    from apexrank.graph.base import InLink as InLink
    from apexrank.graph.consensus import ConsensusRank as ConsensusRank
    from apexrank.graph.indegree import InDegree as InDegree
    from apexrank.graph.layers import Layers as Layers
    from apexrank.graph.layers import as_layers as as_layers
    from apexrank.graph.lpq import LpqRank as LpqRank
    from apexrank.graph.mapped import ConcaveConvexRank as ConcaveConvexRank
    from apexrank.graph.mapped import PageRank as PageRank
    from apexrank.graph.mapped import TopMeanRank as TopMeanRank
    from apexrank.graph.reading import as_graph as as_graph
    from apexrank.graph.threshold import best_threshold as best_threshold
    from apexrank.graph.trust import spread as spread
    from apexrank.graph.trustrank import AntiTrustRank as AntiTrustRank
    from apexrank.graph.trustrank import DemotedRank as DemotedRank
    from apexrank.graph.trustrank import TrustRank as TrustRank
else:
    __getattr__, __dir__, __all__ = attach(__name__)
