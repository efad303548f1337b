"""PageRank, PageRank guarded against link farms, and in-degree."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.base import GraphRank, IteratedRank, Teleport, plain_graph, read_graph, teleport_vectors
from apexrank.graph.graph import Graph, SignedGraph
from apexrank.graph.power import Fixpoint, Linear, Walk, total
from apexrank.parameters import between, checked, number, whole


@dataclass(eq=False, repr=False)
class PageRank(IteratedRank):
    """PageRank: ``r_i = α·Σ_{j→i} r_j·w_ij/d_j + teleport_i`` (Brin and Page, 1998).

    The rank of dangling vertices, those without out-links, is redistributed by the teleport vector.

    Parameters
    ----------
    damping : float
        Probability α of following a link.
    tol : float
        Tolerance on the L1 distance to the exact scores, not, as elsewhere, on the change between iterates.
    max_iter : int
        Maximum number of steps.
    warm_start : bool
        Start from the last scores, matched by vertex name, for a graph that has changed a little.
    verbose : int
        1 prints a line per step.
    callback : callable, optional
        Called after each step with its number and the error bound.

    Attributes
    ----------
    scores_, names_, ranking_, error_bound_, converged_, n_iter_, history_
        Common to all iterative ranks; scores sum to 1.

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


@dataclass(eq=False, repr=False)
class InDegree(GraphRank):
    """In-link weight of each vertex as a share of the total; not robust against link farms.

    In a signed graph negative links count against a vertex (net in-degree).

    Parameters
    ----------
    weighted : bool
        False counts links regardless of their weights.

    Examples
    --------
    >>> from apexrank.graph.pagerank import InDegree
    >>> InDegree().fit((["a", "b", "c"], ["b", "c", "b"])).scores_.round(3).tolist()
    [0.0, 0.667, 0.333]
    """

    _parameter_constraints: ClassVar[dict] = {"weighted": ["boolean"]}

    weighted: bool = True

    @checked
    def fit(self, graph: Any, y: None = None) -> Self:
        """Count the in-links of a graph, any input of :func:`apexrank.graph.as_graph`."""
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


class SpreadWalk(Walk):
    """PageRank step in which no link passes on more than a share ``1/min_links``, and first steps count little.

    Rank that a vertex with few links does not pass on restarts, as from a dangling vertex. Walks whose first
    ``truncate`` steps count ``early`` times as much as later ones are PageRank with another teleport vector: a share
    ``early`` of the original, the rest at the positions of walkers after ``truncate`` steps.
    """

    def __init__(
        self,
        graph: Graph,
        damping: float,
        teleport: np.ndarray,
        min_links: float,
        truncate: int,
        early: float,
    ) -> None:
        with np.errstate(over="ignore"):
            floor = np.maximum(graph.out_weight, min_links * graph.largest_out_weights())
        if not np.isfinite(floor).all():
            raise InputError(
                "`min_links` times the largest weight overflows: divide the weights by a large number"
            )
        super().__init__(graph, Linear(), damping, teleport)
        self.graph = replace(graph, out_weight=floor)  # for explanations
        share = np.divide(graph.out_weight, floor, out=np.zeros(graph.n), where=floor > 0)
        self.rate = self.rate * (share if teleport.ndim == 1 else share[:, None])
        self._kept = 1 - share
        late = teleport
        for _ in range(truncate):
            late = self.links.sums(late * self.rate)
        starts = early * teleport + (1 - early) * late
        if not starts.any(axis=0).all():
            starts = teleport  # there are no walks of that length
        self.teleport = starts / total(starts)
        self.inflow = Linear().on(self.links, self.rate, self.teleport)

    def held(self, r: np.ndarray) -> Any:
        """Score that is not passed on."""
        return total(r * (self._kept if r.ndim == 1 else self._kept[:, None]))


@dataclass(eq=False, repr=False)
class GuardedPageRank(IteratedRank):
    """PageRank limited by the support from many independent links, which resists most link farms.

    A *guard* is computed in addition to PageRank: the same walk, but a vertex passes on at most ``1/min_links`` of its
    rank through any link, and the first ``truncate`` steps of a walk hardly count. So the pages of a farm pass at most
    ``1/min_links`` of their rank to their target, whatever their link structure: boosters with a single link, cycles,
    chains and funnels lose most. The score is the smaller of PageRank and ``limit_`` times the guard, where ``limit_``
    is chosen such that a share ``keep`` of the vertices keep their PageRank.

    Parameters
    ----------
    min_links : float
        Minimum number of links that every vertex is assumed to have. 1 has no effect.
    truncate : int
        Number of first steps of a walk, which are weighted by ``early``.
    early : float
        Weight of these steps, above 0 and at most 1.
    keep : float
        Share of the vertices that keep their PageRank, from 0 to 1. Larger values are closer to PageRank.
    damping, tol, max_iter, warm_start, verbose, callback
        As in :class:`PageRank`.

    Attributes
    ----------
    scores_ : array of shape (n_vertices,), or (n_vertices, n_teleports)
        ``min(pagerank_, limit_·guard_)``, divided by its sum.
    pagerank_, guard_ : arrays of the same shape
        The two ranks, summing to 1.
    limit_ : float, or array of shape (n_teleports,)
        Factor of the guard.
    limited_ : array of bool
        Vertices whose score is below their PageRank; those with a high PageRank deserve inspection.
    names_, ranking_, error_bound_, converged_, n_iter_, history_
        As in :class:`PageRank`; the bound holds for this ``limit_``. `explain` decomposes PageRank, or the guard if it
        limits a vertex; `explained` tells which. The source None of the guard is the start of the walks that count:
        teleport and first steps.

    Notes
    -----
    No rank based only on links can detect a farm that is built like an honest site, with pages that link to one another
    as much as to the target. It ranks like an honest site of the same number of pages.

    Examples
    --------
    >>> from apexrank.datasets import make_crawl, plant_farms
    >>> from apexrank.graph import GuardedPageRank, PageRank
    >>> crawl = plant_farms(make_crawl(5000, mean_degree=20, random_state=0).adjacency, farms=1, boosters=50)
    >>> [int((rank.scores_ > rank.scores_[5000]).sum()) + 1   # place of the target
    ...  for rank in (PageRank().fit(crawl.adjacency), GuardedPageRank().fit(crawl.adjacency))]
    [1, 384]
    """

    _parameter_constraints: ClassVar[dict] = IteratedRank._parameter_constraints | {
        "min_links": [number(1)],
        "truncate": [whole(0)],
        "early": [
            between(0, 1, closed="right")
        ],  # at 0 all vertices that no long walk reaches would be equal
        "keep": [between(0, 1)],
    }

    min_links: float = 20.0
    _: KW_ONLY
    truncate: int = 2
    early: float = 0.05
    keep: float = 0.9
    damping: float = 0.85

    def _guard(self, graph: Graph, teleport: np.ndarray) -> SpreadWalk:
        return SpreadWalk(graph, self.damping, teleport, self.min_links, int(self.truncate), self.early)

    @checked
    def fit(self, graph: Any, y: None = None, *, teleport: Teleport = None, start: Any = None) -> Self:
        """Rank the vertices of a graph; parameters as in :meth:`PageRank.fit`, with ``start`` for both ranks."""
        read = plain_graph(graph)
        shares = teleport_vectors(read, teleport)
        plain = self._rank(read, shares, start, tol=self.tol / 8)
        steps, history = plain.n_iter, plain.history
        with self._guard(read, shares) as walk:
            exact = walk.rounding / (1 - self.damping)  # attainable accuracy
            guard = walk.solve(plain.scores, self.tol / 8, self.max_iter, self._progress)
            steps += guard.n_iter
            limit, scores = self._limited(plain.scores, guard.scores)
            # the limit and the sum of the scores determine the accuracy that both ranks need
            needed = self.tol * total(scores) / 8
            if plain.error_bound > np.min(needed) and plain.converged:
                plain = self._rank(read, shares, plain.scores, tol=float(np.min(needed)))
                steps, history = steps + plain.n_iter, history + plain.history
            if guard.error_bound > np.min(needed / limit) and guard.converged:
                tol = max(float(np.min(needed / limit)), 2 * exact)
                guard = walk.solve(guard.scores, tol, self.max_iter, self._progress)
                steps += guard.n_iter
        limit, scores = self._limited(plain.scores, guard.scores)
        sums = total(scores)
        # |min(a, b) − min(a', b')| ≤ |a − a'| + |b − b'|, and normalisation at most doubles it
        bound = min(2.0, float(np.max(2 * (plain.error_bound + limit * guard.error_bound) / sums)))
        self.pagerank_, self.guard_, self.limit_ = plain.scores, guard.scores, limit
        self.limited_ = scores < plain.scores
        self._keep(read, Fixpoint(scores / sums, steps, bound <= self.tol, bound, np.nan, history))
        return self

    def _limited(self, plain: np.ndarray, guard: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return the factor of the guard, and the smaller of PageRank and that multiple of the guard."""
        ratio = np.divide(plain, guard, out=np.zeros_like(plain), where=guard > 0)
        ratio = np.where(plain > 0, ratio, np.nan)
        limit = np.nanquantile(ratio, self.keep, axis=0, method="higher")
        return limit, np.where(ratio > limit, limit * guard, plain)

    def _reasons(self, vertex: int) -> tuple[Walk, np.ndarray]:
        if self.limited_[vertex]:
            return self._guard(self.graph_, self._teleport), self.guard_
        return self._walk(self.graph_, self._teleport), self.pagerank_

    def explained(self, vertex: Any) -> tuple[str, str]:
        number = self._explained_vertex(vertex)
        pagerank, guard = self.pagerank_[number], self.guard_[number]
        if not self.limited_[number]:
            return f"PageRank {pagerank:.3g}, which the guard does not limit", "teleport"
        limited = f"PageRank {pagerank:.3g} is limited to {self.limit_:.3g} times that"
        steps = f"{self.truncate} steps" if self.truncate > 1 else "step"
        start = f"teleport and first {steps}" if self.truncate else "teleport"
        return f"the guard {guard:.3g} ({limited})", start
