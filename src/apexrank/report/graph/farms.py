"""Search for targets of link farms in the head of PageRank's list, and for vertices that gain by closed cycles.

A booster of a link farm is a page that nobody links to, except perhaps the page it boosts (Gyöngyi and Garcia-Molina,
"Link spam alliances", 2005). Here such a source is called *unsupported*. The rule and how well it works:
`apexrank.report.graph.compare`.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from apexrank.graph.base import InLink, IteratedRank
from apexrank.graph.graph import Graph
from apexrank.kernels.jit import kernel
from apexrank.report.graph.result import MOST_USUAL, RankLists, Riser, Suspect, first

LONGEST_CYCLE = 100  # steps that are followed to see whether a walk comes back
HEAD_LEAST, HEAD_SHARE = 100, 0.01  # how far down PageRank's list a fall means something
BOOSTERS = 5  # fewer make no farm
RISERS = 10


class Support(NamedTuple):
    """In-link statistics of some vertices; self-loops do not count anywhere.

    ``sources`` is the number of in-links, ``unsupported`` that of those from vertices that nobody else links to,
    ``share`` the part of the flow that comes through the latter, ``back`` the number of sources linked in return.
    """

    sources: np.ndarray
    unsupported: np.ndarray
    share: np.ndarray
    back: np.ndarray


def support(graph: Graph, scores: np.ndarray, vertices: np.ndarray) -> Support:
    """Compute in-link statistics of vertices, in time linear in the number of their links.

    What flows through a link is ``r_j·w_ij/d_j``, with r the given scores.

    Examples
    --------
    >>> graph = Graph.from_edges([0, 1, 2, 3, 3], [3, 3, 3, 0, 2])   # 1 has no in-links, 0 and 2 only those from 3
    >>> found = support(graph, np.full(4, 0.25), np.array([3, 0]))
    >>> found.sources.tolist(), found.unsupported.tolist(), found.share.tolist(), found.back.tolist()
    ([3, 1], [3, 0], [1.0, 0.0], [2, 1])
    """
    out = graph.reversed()
    rate = np.divide(scores, graph.out_weight, out=np.zeros(graph.n), where=graph.out_weight > 0)
    found = np.zeros((len(vertices), 3), dtype=np.int64)
    share = np.zeros(len(vertices))
    weights = np.empty(0) if graph.weights is None else graph.weights
    loops = self_loops(graph)
    _support(
        graph.indptr, graph.indices, weights, out.indptr, out.indices, rate, loops, vertices, found, share
    )
    return Support(found[:, 0], found[:, 1], share, found[:, 2])


@kernel()
def _support(indptr, indices, weights, out_indptr, out_indices, rate, loops, vertices, found, share):
    # the head may hold most links of a large graph: one pass without temporary arrays of their number
    linked = np.full(indptr.size - 1, -1, np.int64)  # the last of the vertices that links there
    for a in range(vertices.size):
        v = vertices[a]
        for k in range(out_indptr[v], out_indptr[v + 1]):
            linked[out_indices[k]] = a
        total, lone = 0.0, 0.0
        for k in range(indptr[v], indptr[v + 1]):
            j = indices[k]
            if j == v:
                continue
            back = linked[j] == a
            flow = rate[j] * (weights[k] if weights.size else 1.0)
            total += flow
            found[a, 0] += 1
            found[a, 2] += back
            if indptr[j + 1] - indptr[j] - back - loops[j] == 0:
                found[a, 1] += 1
                lone += flow
        if total > 0.0:
            share[a] = lone / total


def unsupported_share(graph: Graph, scores: np.ndarray) -> float:
    """Share of all flow through links that starts at vertices nobody links to: the graph's usual level.

    A link to oneself is no support, and what stays with a vertex by one is no flow; 0 where nothing flows.

    Examples
    --------
    >>> unsupported_share(Graph.from_edges([0, 1, 2], [1, 2, 1]), np.array([0.2, 0.5, 0.3]))
    0.2
    >>> unsupported_share(Graph.from_edges([0], [0]), np.array([1.0]))
    0.0
    """
    kept = _loop_weights(graph)
    leaving = np.divide(
        graph.out_weight - kept, graph.out_weight, out=np.zeros(graph.n), where=graph.out_weight > 0
    )
    flow = scores * leaving
    alone = np.diff(graph.indptr) - (kept > 0) == 0
    total = flow.sum()
    return float(flow[alone].sum() / total) if total > 0 else 0.0


def self_loops(graph: Graph) -> np.ndarray:
    """Mask of the vertices that link to themselves.

    Examples
    --------
    >>> self_loops(Graph.from_edges([0, 1], [1, 1])).tolist()
    [False, True]
    """
    return _loop_weights(graph) > 0


def has_links(graph: Graph) -> bool:
    """Whether any vertex links to another one.

    Examples
    --------
    >>> has_links(Graph.from_edges([0, 1], [0, 1])), has_links(Graph.from_edges([0, 1], [1, 1]))
    (False, True)
    """
    # more links than vertices cannot all be loops
    return graph.n_edges > graph.n or graph.n_edges > int(self_loops(graph).sum())


def _loop_weights(graph: Graph) -> np.ndarray:
    found = np.zeros(graph.n)
    _add_loops(graph.indptr, graph.indices, np.empty(0) if graph.weights is None else graph.weights, found)
    return found


@kernel()
def _add_loops(indptr, indices, weights, found):
    for i in range(found.size):
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] == i:
                found[i] += weights[k] if weights.size else 1.0


def closed_share(graph: Graph, vertex: int) -> float:
    """Share of a vertex's sources that have no in-links from outside the vertex and its sources.

    Examples
    --------
    >>> closed_share(Graph.from_edges([1, 2, 1, 2, 3], [0, 0, 2, 1, 2]), 0)   # 3 links to 2
    0.5
    """
    sources = graph.indices[graph.indptr[vertex] : graph.indptr[vertex + 1]]
    sources = sources[sources != vertex]
    starts = graph.indptr[sources]
    counts = graph.indptr[sources + 1] - starts
    owner = np.repeat(np.arange(len(sources)), counts)
    links = np.arange(len(owner)) + (starts - np.cumsum(counts) + counts)[owner]
    outside = ~np.isin(graph.indices[links], np.append(sources, vertex))
    return float((np.bincount(owner, outside, len(sources)) == 0).sum() / max(1, len(sources)))


def cycle_length(graph: Graph, vertex: int) -> int:
    """Length of the closed cycle of only links through a vertex; 0 if there is none.

    1 is a vertex whose only link leads to itself. What such vertices hold comes back undivided, which a norm favours.

    Examples
    --------
    >>> graph = Graph.from_edges([0, 1, 2, 3, 3], [0, 2, 1, 3, 0])
    >>> [cycle_length(graph, v) for v in range(4)]
    [1, 2, 2, 0]
    """
    out, at = graph.reversed(), vertex
    for step in range(1, LONGEST_CYCLE + 1):
        if out.indptr[at + 1] - out.indptr[at] != 1:
            return 0
        at = int(out.indices[out.indptr[at]])
        if at == vertex:
            return step
    return 0


def links_among(graph: Graph, vertices: list[int]) -> list[tuple[int, int]]:
    """Links between some vertices, as pairs of positions in their list (source, target), none to oneself.

    Examples
    --------
    >>> links_among(Graph.from_edges([0, 1, 2, 2], [1, 0, 0, 2]), [2, 0])
    [(0, 1)]
    """
    pairs = []
    for b, target in enumerate(vertices):
        sources = graph.indices[graph.indptr[target] : graph.indptr[target + 1]]
        pairs += [(a, b) for a in np.flatnonzero(np.isin(vertices, sources)).tolist() if a != b]
    return sorted(pairs)


def ranks_of(scores: np.ndarray) -> np.ndarray:
    """Ranks from 1; ties share their best rank.

    Examples
    --------
    >>> ranks_of(np.array([0.1, 0.4, 0.4, 0.1])).tolist()
    [3, 1, 1, 3]
    """
    return np.searchsorted(np.sort(-scores), -scores) + 1


class FarmSearch:
    """Evidence of link farms among the vertices in PageRank's head."""

    def __init__(self, lists: RankLists, fits: list[IteratedRank], trusted: np.ndarray | None) -> None:
        self.lists, self.fits = lists, fits
        self.graph, self.scores, self.ranks = lists.graph, lists.scores, lists.ranks
        graph, base = lists.graph, lists.scores[0]
        self.head = min(graph.n, max(HEAD_LEAST, int(HEAD_SHARE * graph.n)))
        eligible = (lists.ranks[0] <= self.head) & (base > 1 / graph.n)
        if trusted is not None:
            eligible &= ~trusted
        self.vertices = np.flatnonzero(eligible)
        self.support = support(graph, base, self.vertices)
        self.usual = unsupported_share(graph, base)
        self.loops = self_loops(graph)
        self.least_share = (1 + self.usual) / 2
        self._neighbourhood = cache(self._look_around)  # the same at every p
        boosted = (self.support.share >= self.least_share) & (self.support.unsupported >= BOOSTERS)
        self._boosted = boosted & (self.usual < MOST_USUAL)

    @property
    def boosted(self) -> np.ndarray:
        """Vertices whose rank comes mostly from unsupported ones, whether they fall or not."""
        return self.vertices[self._boosted]

    def flagged(self, i: int) -> np.ndarray:
        """Vertices that look like targets of farms, the most suspicious first."""
        falls = self._falls(i)
        # where one vertex takes all score, as with a large ratio, every score falls and every place may rise
        behind = self.ranks[i][self.vertices] > self.ranks[0][self.vertices]
        chosen = np.flatnonzero(self._boosted & (falls > 0) & behind)
        suspicion = falls[chosen] * self.support.share[chosen]
        return self.vertices[chosen[np.argsort(-suspicion, kind="stable")]]

    def _falls(self, i: int) -> np.ndarray:
        base, now = self.scores[0][self.vertices], self.scores[i][self.vertices]
        # without trust a score may be 0: an endless fall
        with np.errstate(divide="ignore"):
            return np.log(base) - np.log(now)

    def suspects(self, i: int, flagged: np.ndarray, neighbours: int) -> list[Suspect]:
        """Evidence about flagged vertices at the i-th p, with so many in-links of each."""
        found, falls = [], self._falls(i)
        for v, vertex in zip(flagged.tolist(), self.lists.rows(i, flagged, flagged), strict=True):
            at = int(np.searchsorted(self.vertices, v))
            sources, unsupported, share, back = (column[at].item() for column in self.support)
            fall = float(falls[at])
            links, closed, among = self._neighbourhood(v, neighbours)
            suspect = Suspect(
                **vars(vertex),
                fall=fall,
                suspicion=fall * share,
                in_links=sources,
                unsupported=unsupported,
                unsupported_share=share,
                linked_back=back / max(1, sources),
                closed=closed,
                self_loop=bool(self.loops[v]),
                links=links,
                among=among,
            )
            found.append(suspect)
        return found

    def _look_around(self, v: int, most: int) -> tuple[list[InLink], float, list[tuple[int, int]]]:
        """The strongest in-links, the closed share, and the links among their sources."""
        name = self.graph.label(v)
        links = [link for link in self.fits[0].explain(name) if link.source not in (None, name)][:most]
        sources = self.graph.numbers([link.source for link in links])
        return links, closed_share(self.graph, v), links_among(self.graph, [v, *sources.tolist()])

    def risers(self, i: int) -> list[Riser]:
        """Vertices that gain most, of those that come into a head of the same length."""
        if not i:
            return []
        now, base = self.ranks[i], self.ranks[0]
        inside = first(self.scores[i], self.head)
        inside = inside[now[inside] < base[inside]]
        gain = np.log(base[inside] / now[inside])
        most = inside[np.argsort(-gain, kind="stable")[:RISERS]]
        found = []
        for v, vertex in zip(most.tolist(), self.lists.rows(i, most, self.flagged(i)), strict=True):
            strongest = self.fits[i].explain(vertex.name, top=1)[0]
            riser = Riser(
                **vars(vertex),
                cycle=cycle_length(self.graph, v),
                self_loop=bool(self.loops[v]),
                strongest=strongest.source,
                strongest_share=strongest.share,
            )
            found.append(riser)
        return found
