"""PageRank, PageRank without its first steps, and the count of in-links."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from apexrank.graph.base import GraphRank, IteratedRank, read_graph, start_of_walks
from apexrank.graph.graph import Graph, SignedGraph
from apexrank.graph.power import Linear, TruncatedWalk, Walk
from apexrank.validation import check_count


@dataclass(eq=False, repr=False)
class PageRank(IteratedRank):
    """PageRank: ``r_i = α·Σ_{j→i} r_j·w_ij/d_j + teleport_i`` (Brin and Page, 1998).

    Dangling vertices, those without out-links, hand out what they hold by the teleport vector.

    Parameters
    ----------
    damping : float
        Share α that follows links.
    tol : float
        Iteration ends when the distance to the exact scores is at most this, in the L1 norm: not, as elsewhere, when
        two iterates are close.
    max_iter : int
        Most steps.
    warm_start : bool
        Begin with the last scores, matched by the vertices' names, when the graph has changed a little.
    verbose : int
        1 prints a line a step.
    callback : callable, optional
        Called with the number of the step and the bound on the error after each.

    Attributes
    ----------
    scores_, names_, ranking_, error_bound_, converged_, n_iter_, history_
        As in every rank of this module: scores sum to 1.

    Examples
    --------
    >>> from apexrank.graph.pagerank import PageRank
    >>> ranks = PageRank().fit((["a", "b", "c"], ["b", "c", "b"]))
    >>> ranks.ranking_.tolist()
    ['b', 'c', 'a']
    >>> ranks.error_bound_ < 1e-9
    True
    """

    damping: float = 0.85

    def _walk(self, graph: Graph, teleport: np.ndarray) -> Walk:
        return Walk(graph, Linear(), self.damping, teleport)


@dataclass(eq=False, repr=False)
class TruncatedPageRank(IteratedRank):
    """PageRank without walks of fewer than ``truncate`` links (Becchetti et al., 2008).

    A booster that links to its target gives nothing at ``truncate=2``: only what reaches it from further away counts.
    A farm whose target links back to the boosters keeps its gain, since walks go back and forth.

    Parameters
    ----------
    truncate : int
        Length of the shortest walks that count; 0 is PageRank. The paper's T counts walks of *more* than T links:
        its T is ``truncate − 1``.
    damping, tol, max_iter, warm_start, verbose, callback
        As in :class:`PageRank`.

    Attributes
    ----------
    scores_ : array of shape (n_vertices,)
        Scores, summing to 1; 0 for vertices that no walk of this length leads to.
    names_, ranking_, error_bound_, converged_, n_iter_, history_
        As in :class:`PageRank`.

    Examples
    --------
    >>> from apexrank.graph.pagerank import PageRank, TruncatedPageRank
    >>> links = (["hub", "a", "b", *"stuvwxyz"], ["a", "b", "hub", *["farm"] * 8])
    >>> PageRank().fit(links).ranking_[0], TruncatedPageRank().fit(links).ranking_[:4].tolist()
    ('farm', ['a', 'b', 'hub', 'farm'])
    """

    truncate: int = 2
    _: KW_ONLY
    damping: float = 0.85

    def _walk(self, graph: Graph, teleport: np.ndarray) -> Walk:
        check_count("truncate", self.truncate, 0)
        return TruncatedWalk(graph, self.damping, teleport, self.truncate)

    def explained(self, vertex: Any) -> tuple[str, str]:
        return "the score", start_of_walks(self.truncate)


@dataclass(eq=False, repr=False)
class InDegree(GraphRank):
    """Weight of the links into each vertex, as a share of all; defenceless against farms.

    In a signed graph negative links count against a vertex (net in-degree).

    Parameters
    ----------
    weighted : bool
        False counts links whatever they weigh.

    Examples
    --------
    >>> from apexrank.graph.pagerank import InDegree
    >>> InDegree().fit((["a", "b", "c"], ["b", "c", "b"])).scores_.round(3).tolist()
    [0.0, 0.667, 0.333]
    """

    weighted: bool = True

    def fit(self, graph: Any, y: None = None) -> Self:
        """Count the links of a graph, which may be anything :func:`apexrank.graph.as_graph` reads."""
        read = read_graph(graph)
        parts = read if isinstance(read, SignedGraph) else [read]
        degrees = [self._degree(part) for part in parts]
        net = degrees[0] if len(degrees) == 1 else degrees[0] - degrees[1]
        self.graph_, self.scores_ = parts[0], net / (sum(degree.sum() for degree in degrees) or 1.0)
        return self

    def _degree(self, graph: Graph) -> np.ndarray:
        if self.weighted and graph.weighted:
            return graph.in_links().sums(np.ones(graph.n))
        return graph.in_degrees().astype(float)
