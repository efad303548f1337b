"""Vertex ranking by the links of a graph, with and without labels of spam and trust.

- `ShardedGraph`, `open_shards`, `save_shards` and `pack_graph` for graphs larger than memory;
- `Graph`, `as_graph` and, for several graphs between the same vertices, `Layers`, `as_layers`;
- `PageRank` and `InDegree`; `GuardedPageRank`, which resists most link farms, `NonBacktrackingRank`;
- `RobustPageRank`, and `LpqRank`, `TopMeanRank`, `ConcaveConvexRank`, which emphasise few strong links;
- `local_rank`, personalised PageRank computed in a neighbourhood;
- with labels: `SpamMassRank`, `TrustRank`, `AntiTrustRank`, `DemotedRank`, `spread`, `best_threshold`;
- with negative links: `FairnessGoodness`;
- `ConsensusRank` for several layers;
- `attack_ranks`, which measures how far link spam lifts vertices.

Names are imported on first use, because networkx loads this package whenever it is imported.
"""

from typing import TYPE_CHECKING

from apexrank.lazy import attach

if TYPE_CHECKING:
    from apexrank.graph.base import GraphRank as GraphRank
    from apexrank.graph.base import InLink as InLink
    from apexrank.graph.consensus import ConsensusRank as ConsensusRank
    from apexrank.graph.contributions import LocalRank as LocalRank
    from apexrank.graph.contributions import RobustPageRank as RobustPageRank
    from apexrank.graph.contributions import SpamMassRank as SpamMassRank
    from apexrank.graph.contributions import local_rank as local_rank
    from apexrank.graph.contributions import local_ranks as local_ranks
    from apexrank.graph.graph import Graph as Graph
    from apexrank.graph.graph import SignedGraph as SignedGraph
    from apexrank.graph.layers import Layers as Layers
    from apexrank.graph.layers import as_layers as as_layers
    from apexrank.graph.lpq import ConcaveConvexRank as ConcaveConvexRank
    from apexrank.graph.lpq import LpqRank as LpqRank
    from apexrank.graph.lpq import TopMeanRank as TopMeanRank
    from apexrank.graph.nonbacktracking import NonBacktrackingRank as NonBacktrackingRank
    from apexrank.graph.pack import pack_graph as pack_graph
    from apexrank.graph.pagerank import GuardedPageRank as GuardedPageRank
    from apexrank.graph.pagerank import InDegree as InDegree
    from apexrank.graph.pagerank import PageRank as PageRank
    from apexrank.graph.reading import as_graph as as_graph
    from apexrank.graph.robustness import AttackStudy as AttackStudy
    from apexrank.graph.robustness import attack_ranks as attack_ranks
    from apexrank.graph.shards import ShardedGraph as ShardedGraph
    from apexrank.graph.shards import open_shards as open_shards
    from apexrank.graph.shards import save_shards as save_shards
    from apexrank.graph.signed import FairnessGoodness as FairnessGoodness
    from apexrank.graph.trust import AntiTrustRank as AntiTrustRank
    from apexrank.graph.trust import DemotedRank as DemotedRank
    from apexrank.graph.trust import TrustRank as TrustRank
    from apexrank.graph.trust import best_threshold as best_threshold
    from apexrank.graph.trust import spread as spread
else:
    __getattr__, __dir__, __all__ = attach(__name__)
