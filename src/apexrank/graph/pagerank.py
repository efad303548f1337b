"""Ranks whose step is one map on all vertices: PageRank, and concave-convex ranks of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from apexrank.errors import InputError
from apexrank.graph.graph import Graph
from apexrank.graph.base import InLink, IteratedRank, Teleport, plain_graph, teleport_vectors
from apexrank.graph.concave_convex import ConcaveConvex, Lpq, Map, TopMean
from apexrank.graph.power import Bound, Fixpoint, Progress, Walk, hilbert_bound, iterate, l1_bound, no_bound

SMALLEST_LOG = 690.0  # of a share to the power p


class MappedRank(IteratedRank):
    """Base class: a subclass says which map (``_map``)."""

    teleport: Literal["inside", "outside"] = "inside"
    _seeds_are = "teleport"  # in the words of messages

    def _map(self) -> Map:
        raise NotImplementedError

    def fit(self, graph: Any, y: None = None, *, teleport: Teleport = None, start: Any = None) -> Self:
        """Rank the vertices of a graph.

        Parameters
        ----------
        graph : Graph, scipy sparse matrix, networkx or igraph graph, edge table or path
            Whatever :func:`apexrank.graph.as_graph` reads. Undirected edges count in both directions.
        y : None
            There is nothing to learn.
        teleport : array, mapping of names to weights, names, or a list of several of them
            Where the walk starts anew: everywhere alike by default. An array of floats, one for each vertex, is
            weights; whole numbers and text are names. Several give a matrix of scores, computed together.
        start : fitted rank, mapping of names to scores, or array, optional
            Scores to begin with, from an earlier state of the graph; vertices it does not know begin with an equal
            share. The answer is the same, after fewer steps; at ratio 1 with p > 1 it is not used.
        """
        self._check_numbers()
        read = plain_graph(graph)
        self._keep(read, self._rank(read, teleport_vectors(read, teleport, self._seeds_are), start))
        return self

    def _rank(self, graph: Graph, teleport: np.ndarray, start: Any = None) -> Fixpoint:
        walk, first = self._walk(graph, teleport), self._start(graph, teleport, start)
        self._teleport = teleport
        options: dict[str, Any] = {"tol": self._tol(), "max_iter": self.max_iter, "progress": self._progress}
        with walk:
            if _at_ratio_one(walk.map):
                return _roots(walk, **options)
            return iterate(walk.step, first, _bound(walk), **options)

    def _tol(self) -> float:
        """Where one iteration ends."""
        return self.tol

    def _walk(self, graph: Graph, teleport: np.ndarray) -> Walk:
        map_ = self._map()
        if self.teleport not in ("inside", "outside"):
            raise InputError(
                f"teleport must be 'inside' or 'outside' the norm, got {self.teleport!r}; vertices go to fit"
            )
        outside = self.teleport == "outside" and not _is_linear(map_)
        if outside and not map_.degree < 1:
            raise InputError("teleport='outside' needs ratio > 1: only then is the answer known to be unique")
        return Walk(graph, map_, self.damping, teleport, outside=outside)

    def explain(self, vertex: Any, top: int | None = None) -> list[InLink]:
        """The links that make up a vertex's score, the strongest first, and the teleport (source None).

        The share of a link is its part in the sum ``Σ f(flow) + f(teleport)``; for p = ∞ all of it belongs to the
        strongest flow.
        """
        check_is_fitted(self)
        if self._teleport.ndim > 1:
            raise InputError("explain is for one teleport vector: fit with that one alone")
        walk = self._walk(self.graph_, self._teleport)
        if walk.outside:
            raise InputError("explain is for teleport='inside', where the teleport is one of the links")
        i = self.graph_.number(vertex)
        sources, flow, jump = walk.flows_into(self._ranks(), i)
        flows = np.append(flow, jump)
        terms = walk.map.terms(flows)
        shares = terms / (terms.sum() or 1.0)
        names = [*self.graph_.labels(sources).tolist(), None]
        links = [InLink(*row) for row in zip(names, flows.tolist(), shares.tolist(), strict=True)]
        return sorted(links, key=lambda link: -link.flow)[:top]

    def _ranks(self) -> np.ndarray:
        """Scores before anything but links changed them."""
        return self.scores_


def _is_linear(map_: Map) -> bool:
    return isinstance(map_, Lpq) and map_.p == 1 and map_.ratio == 1


def _at_ratio_one(map_: Map) -> bool:
    return isinstance(map_, Lpq) and map_.p > 1 and map_.ratio == 1


def _bound(walk: Walk) -> Bound:
    if _is_linear(walk.map):
        return l1_bound(walk.damping, walk.rounding)
    return hilbert_bound(walk.map.degree, walk.rounding) if walk.map.degree < 1 else no_bound


def _roots(walk: Walk, **options: Any) -> Fixpoint:
    """Scores at ratio 1 and p > 1, where plain iteration is slow and has no certificate."""
    from apexrank.graph.root import solve_ratio_one

    p, a = walk.map.p, walk.damping  # type: ignore[attr-defined]
    smallest = np.log(walk.rate[walk.rate > 0].min(initial=1.0)) + np.log(walk.links.weights.min(initial=1.0))
    if p * smallest < -SMALLEST_LOG:
        raise InputError(
            f"p = {p:g} with ratio 1 is beyond what powers of this graph's shares can hold: use a ratio above 1"
        )
    weights, rate = walk.links.weights**p, walk.rate.reshape(len(walk.rate)) ** p

    def apply(y: np.ndarray) -> np.ndarray:
        return walk.links.sums(rate * y, weights)

    columns = walk.teleport.reshape(len(walk.teleport), -1).T
    found = [solve_ratio_one(apply, v, walk.graph.dangling, p, a, **options) for v in columns]
    scores = np.stack([each.scores for each in found], axis=1).reshape(walk.teleport.shape)
    worst = max(found, key=lambda each: each.error_bound)
    return Fixpoint(
        scores,
        sum(each.n_iter for each in found),
        all(each.converged for each in found),
        worst.error_bound,
        max(each.relative_bound for each in found),
        [],
    )


class PageRank(MappedRank):
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

    def __init__(
        self,
        damping: float = 0.85,
        *,
        tol: float = 1e-9,
        max_iter: int = 1000,
        warm_start: bool = False,
        verbose: int = 0,
        callback: Progress | None = None,
    ) -> None:
        self.damping = damping
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    def _map(self) -> Map:
        return Lpq(1.0, 1.0)


class ConcaveConvexRank(MappedRank):
    """Rank by any increasing convex f and concave g: ``r_i ← g(Σ_j f(flow_j) + f(teleport_i))`` (2013, sec. 6.2).

    Parameters
    ----------
    f, g : callable
        From arrays to arrays, increasing, f(0) = 0. :class:`LpqRank` has ``f = x^p``, ``g = x^{1/q}``.
    degree : float
        Degree h of homogeneity of ``g∘f``, if it is known and below 1: the certificate rests on it. Without it
        iteration ends when no score changes by more than ``tol`` in the L1 norm, and ``error_bound_`` is nan.
    damping, tol, max_iter, warm_start, verbose, callback
        As in :class:`PageRank`.

    Examples
    --------
    >>> import numpy as np
    >>> from apexrank.graph.pagerank import ConcaveConvexRank
    >>> ranks = ConcaveConvexRank(np.square, lambda x: x**0.4, degree=0.8).fit((["a", "b"], ["b", "c"]))
    >>> ranks.ranking_.tolist(), ranks.error_bound_ < 1e-9
    (['c', 'b', 'a'], True)
    """

    def __init__(
        self,
        f: Callable[[np.ndarray], np.ndarray] = np.square,
        g: Callable[[np.ndarray], np.ndarray] = np.sqrt,
        *,
        degree: float = math.nan,
        damping: float = 0.85,
        tol: float = 1e-9,
        max_iter: int = 1000,
        warm_start: bool = False,
        verbose: int = 0,
        callback: Progress | None = None,
    ) -> None:
        self.f = f
        self.g = g
        self.degree = degree
        self.damping = damping
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    def _map(self) -> Map:
        return ConcaveConvex(self.f, self.g, self.degree)


class TopMeanRank(MappedRank):
    """Rank by the generalised mean of the k strongest in-flows, to the power 1/ratio (2013, end of sec. 6.2).

    Whatever a farm adds beyond k links is lost; a page with fewer good links is not ahead of one with more of them
    up to k.

    Parameters
    ----------
    k : int
        Number of in-flows that count, the teleport among them.
    p : float
        Exponent of the mean; 1 is the plain one.
    ratio : float
        As in :class:`LpqRank`; above 1 there is a certificate.
    damping, tol, max_iter, warm_start, verbose, callback
        As in :class:`PageRank`.

    Examples
    --------
    >>> from apexrank.graph.pagerank import TopMeanRank
    >>> TopMeanRank(k=2).fit((["a", "b", "c", "d"], ["b", "c", "b", "b"])).ranking_.tolist()
    ['b', 'c', 'a', 'd']
    """

    def __init__(
        self,
        k: int = 10,
        p: float = 1.0,
        ratio: float = 1.2,
        *,
        damping: float = 0.85,
        tol: float = 1e-9,
        max_iter: int = 1000,
        warm_start: bool = False,
        verbose: int = 0,
        callback: Progress | None = None,
    ) -> None:
        self.k = k
        self.p = p
        self.ratio = ratio
        self.damping = damping
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    def _map(self) -> Map:
        return TopMean(self.k, self.p, self.ratio)
