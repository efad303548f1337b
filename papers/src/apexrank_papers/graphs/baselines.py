"""Ranks of earlier papers that only experiments compare with: truncated and modified PageRank, and the mean rating."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from apexrank.graph import Graph, PageRank, SignedGraph
from apexrank.graph.base import IteratedRank
from apexrank.graph.power import Linear, Walk, total
from apexrank.parameters import whole


class TruncatedWalk(Walk):
    """Linear walk without its first steps; its fixed point is the sum of ``(αP)^t v`` over t >= ``truncate``.

    This sum is PageRank started from ``P^truncate v`` instead of v, so the step contracts as that of PageRank does. The
    rank of dangling vertices is still redistributed by v.
    """

    def __init__(self, graph: Graph, damping: float, teleport: np.ndarray, truncate: int) -> None:
        super().__init__(graph, Linear(), damping, teleport)
        self._late = teleport
        with Walk(graph, Linear(), 1.0, teleport) as undamped:
            for _ in range(truncate):
                self._late = undamped.step(self._late)
        self.rounding *= 1 + truncate

    def step(self, r: np.ndarray) -> np.ndarray:
        new = self.inflow(r, self.damping * self.held(r)) + (1 - self.damping) * self._late
        return new / total(new)


@dataclass(eq=False, repr=False)
class TruncatedPageRank(IteratedRank):
    """PageRank without walks of fewer than ``truncate`` links (Becchetti et al., 2008).

    A booster that links to its target contributes nothing at ``truncate=2``: only mass from further away counts. A farm
    whose target links back to the boosters keeps its gain, because walks go back and forth. In the paper, walks of
    *more* than T links count: its T is ``truncate − 1``.

    Examples
    --------
    >>> links = (["hub", "a", "b", *"stuvwxyz"], ["a", "b", "hub", *["farm"] * 8])
    >>> PageRank().fit(links).ranking_[0], TruncatedPageRank().fit(links).ranking_[:4].tolist()
    ('farm', ['a', 'b', 'hub', 'farm'])
    """

    _parameter_constraints: ClassVar[dict] = IteratedRank._parameter_constraints | {"truncate": [whole(0)]}

    truncate: int = 2
    _: KW_ONLY
    damping: float = 0.85

    def _walk(self, graph: Graph, teleport: np.ndarray) -> Walk:
        return TruncatedWalk(graph, self.damping, teleport, self.truncate)


def modified_pagerank(graph: SignedGraph, tol: float) -> np.ndarray:
    """Return PageRank of the positive links minus PageRank of the negative ones (Shahriari and Jalili, 2014).

    Examples
    --------
    >>> from apexrank.graph import as_graph
    >>> ratings = as_graph((["a", "b", "c"], ["b", "c", "a"], [1, 1, -1]), signed=True)
    >>> scores = modified_pagerank(ratings, 1e-9)
    >>> ratings.positive.labels(np.argsort(-scores)).tolist()
    ['c', 'b', 'a']
    """
    good, bad = (PageRank(tol=tol / 2).fit(part).scores_ for part in graph)
    return good - bad


def mean_rating(graph: SignedGraph, smoothing: float) -> np.ndarray:
    """Return the mean rating of each vertex, shrunk towards 0: ``Σ W(u, v) / (received + smoothing)``.

    Examples
    --------
    >>> from apexrank.graph import as_graph
    >>> ratings = as_graph((["a", "b", "c", "a"], ["b", "c", "b", "d"], [10, 5, 10, -10]), signed=True)
    >>> mean_rating(ratings, 2).round(3).tolist()
    [0.0, 5.0, 1.667, -3.333]
    """
    good, bad = (part.reversed().out_weight for part in graph)
    received = sum(part.in_degrees() for part in graph)
    return (good - bad) / np.where(received > 0, received + smoothing, 1.0)
