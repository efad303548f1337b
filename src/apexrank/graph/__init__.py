"""Ranking the vertices of a graph by its links, so that spammers gain little from making up links.

Names are imported when they are first used: networkx looks into this package whenever it is imported itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apexrank.graph.graph import Graph, SignedGraph
    from apexrank.graph.base import GraphRank, InLink
    from apexrank.graph.consensus import ConsensusRank
    from apexrank.graph.indegree import InDegree
    from apexrank.graph.layers import Layers, as_layers
    from apexrank.graph.lpq import LpqRank
    from apexrank.graph.pagerank import ConcaveConvexRank, PageRank, TopMeanRank
    from apexrank.graph.reading import as_graph
    from apexrank.graph.threshold import best_threshold
    from apexrank.graph.trust import spread
    from apexrank.graph.trustrank import AntiTrustRank, DemotedRank, TrustRank

_HOME = {
    "Graph": "graph",
    "SignedGraph": "graph",
    "as_graph": "reading",
    "GraphRank": "base",
    "InLink": "base",
    "ConsensusRank": "consensus",
    "InDegree": "indegree",
    "Layers": "layers",
    "as_layers": "layers",
    "LpqRank": "lpq",
    "ConcaveConvexRank": "pagerank",
    "PageRank": "pagerank",
    "TopMeanRank": "pagerank",
    "best_threshold": "threshold",
    "spread": "trust",
    "AntiTrustRank": "trustrank",
    "DemotedRank": "trustrank",
    "TrustRank": "trustrank",
}

__all__ = [
    "AntiTrustRank",
    "ConcaveConvexRank",
    "ConsensusRank",
    "DemotedRank",
    "Graph",
    "GraphRank",
    "InDegree",
    "InLink",
    "Layers",
    "LpqRank",
    "PageRank",
    "SignedGraph",
    "TopMeanRank",
    "TrustRank",
    "as_graph",
    "as_layers",
    "best_threshold",
    "spread",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"apexrank.graph.{_HOME[name]}"), name)
    raise AttributeError(f"module 'apexrank.graph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
