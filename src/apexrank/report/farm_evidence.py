"""What the links into a vertex look like: who supports its supporters, and whether they are a closed group.

A booster of a link farm is a page that nobody links to, except perhaps the page it boosts (Gyöngyi and Garcia-Molina,
"Link spam alliances", 2005). Here such a source is called *unsupported*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from apexrank.graph.graph import Graph
from apexrank.kernels.jit import kernel

MOST_USUAL = 0.5  # part of all flow from unsupported vertices, from which on these are no sign of a farm
LONGEST_CYCLE = 100  # steps that are followed to see whether a walk comes back
NO_WEIGHTS = np.empty(0)


class Support(NamedTuple):
    """Who links to each of some vertices; links to oneself are left out everywhere.

    ``sources`` is the number of in-links, ``unsupported`` that of those from vertices that nobody else links to,
    ``share`` the part of the flow that comes through the latter, ``back`` the number of sources linked in return.
    """

    sources: np.ndarray
    unsupported: np.ndarray
    share: np.ndarray
    back: np.ndarray


def support(graph: Graph, scores: np.ndarray, vertices: np.ndarray) -> Support:
    """Look at the in-links of vertices, in time linear in the number of their links.

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
    weights = NO_WEIGHTS if graph.weights is None else graph.weights
    loops = self_loops(graph)
    _support(
        graph.indptr, graph.indices, weights, out.indptr, out.indices, rate, loops, vertices, found, share
    )
    return Support(found[:, 0], found[:, 1], share, found[:, 2])


@kernel()
def _support(indptr, indices, weights, out_indptr, out_indices, rate, loops, vertices, found, share):
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
    """Part of all flow through links that starts at vertices nobody links to: what is usual in this graph.

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
    """Which vertices link to themselves.

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
    _add_loops(graph.indptr, graph.indices, NO_WEIGHTS if graph.weights is None else graph.weights, found)
    return found


@kernel()
def _add_loops(indptr, indices, weights, found):
    for i in range(found.size):
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] == i:
                found[i] += weights[k] if weights.size else 1.0


def closed_share(graph: Graph, vertex: int) -> float:
    """Share of the vertices that link to one which have no in-links from outside it and them.

    Examples
    --------
    >>> closed_share(Graph.from_edges([1, 2, 1, 2, 3], [0, 0, 2, 1, 2]), 0)   # 3 links to 2
    0.5
    """
    inside = np.zeros(graph.n, dtype=bool)
    sources = graph.indices[graph.indptr[vertex] : graph.indptr[vertex + 1]]
    sources = sources[sources != vertex]
    inside[sources] = inside[vertex] = True
    return float(_closed(graph.indptr, graph.indices, sources, inside) / max(1, len(sources)))


@kernel()
def _closed(indptr, indices, sources, inside):
    count = 0
    for j in sources:
        closed = True
        for k in range(indptr[j], indptr[j + 1]):
            if not inside[indices[k]]:
                closed = False
                break
        count += closed
    return count


def cycle_length(graph: Graph, vertex: int) -> int:
    """Steps after which a walk along only links comes back to the vertex; 0 where it does not, or one has a choice.

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
