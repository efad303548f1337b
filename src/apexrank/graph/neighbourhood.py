"""In-links of vertices, as evidence of link farms.

A booster in a link farm is a page that no other page links to, except perhaps the page it boosts (Gyöngyi and
Garcia-Molina, "Link spam alliances", 2005). Such a source is called *unsupported* here.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from apexrank.graph.graph import Graph
from apexrank.graph.pagerank import PageRank
from apexrank.kernels.edges import loop_weights
from apexrank.kernels.jit import kernel


class Support(NamedTuple):
    """In-link statistics of some vertices, ignoring self-loops.

    ``sources`` is the number of in-links, ``unsupported`` the number from vertices that no one else links to, ``share``
    the part of the flow from the latter, ``back`` the number of sources linked in return.
    """

    sources: np.ndarray
    unsupported: np.ndarray
    share: np.ndarray
    back: np.ndarray


def support(graph: Graph, scores: np.ndarray, vertices: np.ndarray) -> Support:
    """Compute in-link statistics of vertices, in time linear in the number of their links.

    The flow through a link is ``r_j·w_ij/d_j``, where r are the given scores.

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
    # the top vertices may have most links of a large graph: one pass without temporary arrays of that size
    linked = np.full(indptr.size - 1, -1, np.int64)  # the last of the given vertices that links there
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
    """Share of the total flow that starts at vertices without in-links, the base rate of a graph.

    Self-loops count neither as in-links nor as flow; 0 if there is no flow.

    Examples
    --------
    >>> unsupported_share(Graph.from_edges([0, 1, 2], [1, 2, 1]), np.array([0.2, 0.5, 0.3]))
    0.2
    >>> unsupported_share(Graph.from_edges([0], [0]), np.array([1.0]))
    0.0
    """
    kept = loop_weights(graph._links)
    leaving = np.divide(
        graph.out_weight - kept, graph.out_weight, out=np.zeros(graph.n), where=graph.out_weight > 0
    )
    flow = scores * leaving
    alone = np.diff(graph.indptr) - (kept > 0) == 0
    total = flow.sum()
    return float(flow[alone].sum() / total) if total > 0 else 0.0


def origin_share(rank: PageRank, starts: np.ndarray) -> np.ndarray:
    """Share of each vertex's score in a fitted PageRank due to walks that start at some vertices (a mask).

    Every walk starts at a random vertex, also after dangling ones. With P the links divided by out-weights, a score is
    ``s·(I − αP)⁻¹v``, where s is the rate of new walks and v the teleport vector. The share is the ratio of two such
    scores, each divided by its rate.

    Examples
    --------
    >>> from apexrank.graph.pagerank import PageRank
    >>> rank = PageRank(damping=0.5).fit(([0, 1, 2], [2, 2, 1]))
    >>> origin_share(rank, np.array([True, False, False])).round(3).tolist()
    [1.0, 0.143, 0.25]
    """
    if not starts.any():
        return np.zeros(len(starts))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the rank itself has already warned
        part = clone(rank).fit(rank.graph_, teleport=starts.astype(float))
    dangling = rank.graph_.dangling
    rates = [1 - rank.damping + rank.damping * each.scores_[dangling].sum() for each in (rank, part)]
    return starts.mean() * part.scores_ / rates[1] * rates[0] / rank.scores_


def self_loops(graph: Graph) -> np.ndarray:
    """Mask of the vertices that link to themselves.

    Examples
    --------
    >>> self_loops(Graph.from_edges([0, 1], [1, 1])).tolist()
    [False, True]
    """
    return loop_weights(graph._links) > 0


def has_links(graph: Graph) -> bool:
    """Return whether any vertex links to another one.

    Examples
    --------
    >>> has_links(Graph.from_edges([0, 1], [0, 1])), has_links(Graph.from_edges([0, 1], [1, 1]))
    (False, True)
    """
    # more links than vertices cannot all be self-loops
    return graph.n_edges > graph.n or graph.n_edges > int(self_loops(graph).sum())


def closed_share(graph: Graph, vertex: int) -> float:
    """Share of a vertex's sources without in-links from outside the vertex and its sources.

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


def on_closed_cycle(graph: Graph) -> np.ndarray:
    """Mask of the vertices on closed cycles, in which each vertex has one link only; self-loops included.

    Their rank returns to them undivided.

    Examples
    --------
    >>> on_closed_cycle(Graph.from_edges([0, 1, 2, 3, 4, 4], [0, 2, 1, 2, 4, 0])).tolist()
    [True, True, True, False, False]
    """
    out = graph.reversed()
    single = np.flatnonzero(np.diff(out.indptr) == 1)
    ahead = np.full(graph.n + 1, graph.n)  # the last entry is a dead end
    ahead[single] = out.indices[out.indptr[single]]
    # pointer doubling, until all are on a cycle or at the dead end
    for _ in range(int(graph.n).bit_length()):
        ahead = ahead[ahead]
    closed = np.zeros(graph.n + 1, dtype=bool)
    closed[ahead] = True
    return closed[:-1]
