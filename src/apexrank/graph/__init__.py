"""Ranking the vertices of a graph by its links, so that spammers gain little from making up links.

- `Graph`, `as_graph` and, for several graphs between the same vertices, `Layers`, `as_layers`;
- `PageRank` and `InDegree`; `LpqRank`, which resists link farms, `TopMeanRank` and `ConcaveConvexRank` in its manner;
- with labels: `TrustRank`, `AntiTrustRank`, `DemotedRank`, `spread`, `best_threshold`;
- `ConsensusRank` of several layers.

Names are imported when they are first used: networkx looks into this package whenever it is imported itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apexrank.graph.base import GraphRank, InLink
    from apexrank.graph.concave_convex import ConcaveConvexRank, TopMeanRank
    from apexrank.graph.consensus import ConsensusRank
    from apexrank.graph.graph import Graph, SignedGraph
    from apexrank.graph.layers import Layers, as_layers
    from apexrank.graph.lpq import LpqRank
    from apexrank.graph.pagerank import InDegree, PageRank
    from apexrank.graph.reading import as_graph
    from apexrank.graph.trust import AntiTrustRank, DemotedRank, TrustRank, best_threshold, spread

_NAMES = {  # by module
    "base": ("GraphRank", "InLink"),
    "concave_convex": ("ConcaveConvexRank", "TopMeanRank"),
    "consensus": ("ConsensusRank",),
    "graph": ("Graph", "SignedGraph"),
    "layers": ("Layers", "as_layers"),
    "lpq": ("LpqRank",),
    "pagerank": ("InDegree", "PageRank"),
    "reading": ("as_graph",),
    "trust": ("AntiTrustRank", "DemotedRank", "TrustRank", "best_threshold", "spread"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

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
