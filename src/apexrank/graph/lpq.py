"""Ranks that emphasise few strong in-links over many weak ones: L_pq, top-k means, and user-defined functions.

S. Acharyya, dissertation, 2013, sec. 6.2: a convex f favours few strong in-links over many weak ones, a concave g gives
diminishing returns. Each rank is a map (`apexrank.graph.power.Map`) and an estimator; `LpqRank` also supports labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from apexrank.errors import InputError, warn
from apexrank.graph.base import IteratedRank, Teleport, read_graph, seed_vector, teleport_vectors
from apexrank.graph.graph import Graph, SignedGraph
from apexrank.graph.power import Fixpoint, Inflow, Linear, Map, Progress, Walk, shared_links, stacked
from apexrank.graph.trust import Direction, spread, trust_share
from apexrank.graph.weak_links import WeakLinksWalk
from apexrank.kernels.csr import LinkSums
from apexrank.parameters import above, between, checked, names, number, whole

Propagation = Literal["linear", "same"]
Negative = Literal["edges", "seeds"]
Place = Literal["inside", "outside", "weak-links"]
Seeds = Any  # names, a mapping of names to weights, or one weight per vertex
# largest p·|log flow| for which powers of flows and weights, their products and long sums stay in range
SAFE_LOG = 650.0
SMALLEST_LOG = 690.0  # minus the smallest logarithm of a share to the power p
LARGEST_P_OF_MEAN = 8.0


@dataclass(frozen=True)
class Lpq:
    """Map ``(Σ_j flow_j^p)^{1/q}`` with ``q = ratio·p``; p = ∞ is the largest flow to the power 1/ratio (eq. 6.1)."""

    p: float = 2.0
    ratio: float = 1.2

    @property
    def degree(self) -> float:
        return 1.0 / self.ratio

    def on(self, links: LinkSums, rate: np.ndarray, teleport: np.ndarray) -> Inflow:
        if self.p == 1:
            return lambda x, tau: fast_power(links.sums(x * rate) + tau * teleport, self.degree)
        if math.isinf(self.p):
            return lambda x, tau: fast_power(np.maximum(links.largest(x * rate), tau * teleport), self.degree)
        with np.errstate(under="ignore"):
            powers = fast_power(teleport, self.p)
        parts = [_range(each) for each in (rate, np.array(links.weight_range), teleport)]

        def inflow(x: np.ndarray, tau: Any) -> np.ndarray:
            if not self._in_range(parts, x, tau):
                return fast_power(self._norms(links, x * rate, tau * teleport), self.degree)
            total = links.sums(fast_power(x * rate, self.p), power=self.p) + tau**self.p * powers
            return fast_power(total, 1 / (self.ratio * self.p))

        return inflow

    def _in_range(self, parts: list[tuple[float, float]], x: np.ndarray, tau: Any) -> bool:
        """Return whether powers of all flows, weights and their products are in floating-point range."""
        (r_low, r_high), (w_low, w_high), (t_low, t_high), (x_low, x_high), (u_low, u_high) = (
            *parts,
            _range(x),
            _range(np.asarray(tau, dtype=float)),
        )
        low = min(x_low + r_low, x_low + r_low + w_low, w_low, u_low + t_low, t_low)
        high = max(x_high + r_high, x_high + r_high + w_high, w_high, u_high + t_high, t_high)
        return self.p * max(-low, high) < SAFE_LOG

    def _norms(self, links: LinkSums, flow: np.ndarray, extra: np.ndarray) -> np.ndarray:
        norms = links.norms(flow, self.p)
        largest = np.maximum(norms, extra)
        unit = np.where(largest > 0, largest, 1.0)
        return largest * fast_power(
            fast_power(norms / unit, self.p) + fast_power(extra / unit, self.p), 1 / self.p
        )

    def terms(self, flow: np.ndarray) -> np.ndarray:
        largest = flow.max(initial=0.0)
        if largest == 0:
            return np.zeros_like(flow)
        return (
            np.where(flow == largest, 1.0, 0.0) if math.isinf(self.p) else fast_power(flow / largest, self.p)
        )


def _range(x: np.ndarray) -> tuple[float, float]:
    """Return the logarithms of the smallest and the largest positive entry; (0, 0) if there is none."""
    low, high = (float(x.min()), float(x.max())) if math.prod(x.shape) else (0.0, 0.0)
    if low <= 0 < high:
        low = float(np.where(x > 0, x, math.inf).min())
    return (math.log(low), math.log(high)) if high > 0 else (0.0, 0.0)


def fast_power(x: np.ndarray, exponent: float) -> np.ndarray:
    """Compute ``x^exponent``, with small whole exponents as products, which is ten times as fast."""
    if exponent == 1:
        return x
    if exponent in (2, 3, 4):
        square = x * x
        return square if exponent == 2 else square * (x if exponent == 3 else square)
    return x**exponent


class RatioOneWalk(Walk):
    """Walk with q = p > 1, solved by root finding, because plain iteration is slow and has no certificate."""

    def solve(self, start: np.ndarray, tol: float, max_iter: int, progress: Progress | None) -> Fixpoint:
        from apexrank.graph.lp_equation import LpRoot
        from apexrank.graph.lp_root import solve_ratio_one

        p, links = self.map.p, self.links  # type: ignore[attr-defined]
        smallest = np.log(self.rate[self.rate > 0].min(initial=1.0)) + np.log(links.weight_range[0])
        if p * smallest < -SMALLEST_LOG:
            raise InputError(
                f"p = {p:g} with ratio 1 is beyond what powers of this graph's shares can hold: use a ratio above 1"
            )
        rate = self.rate.reshape(len(self.rate)) ** p
        columns = self.teleport.reshape(len(self.teleport), -1).T
        limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "progress": progress}
        if not self.graph.weighted:
            limits["single"] = self.graph.out_weight == 1
        elif isinstance(self.graph, Graph):
            limits["single"] = np.bincount(self.graph.indices, minlength=self.graph.n) == 1
        found = []
        for v in columns:
            root = LpRoot(
                lambda y: links.sums(rate * y, p), v, self.graph.dangling, p, self.damping, **limits
            )
            each = solve_ratio_one(root)
            bounds = each.error_bound, each.relative_bound
            found.append(Fixpoint(each.scores, each.n_iter, each.converged, *bounds, []))
        answer = stacked(found)
        return answer._replace(scores=answer.scores.reshape(self.teleport.shape))


@dataclass(eq=False, repr=False)
class LpqRank(IteratedRank):
    """L_pq rank ``r_i ← (Σ_{j→i} (α·r_j·w_ij/d_j)^p + teleport_i^p)^{1/q}``, normalised (2013, eq. 6.1).

    Few strong in-links count more than many weak ones (p > 1), and each further one counts less than the one before
    (q > p). p = q = 1 is PageRank.

    It does not protect against link farms. A link is strong if its source has few others: a booster whose only link
    leads to the target makes a stronger one than an honest page with thirty. A norm with p > 1 of several flows is less
    than their sum, so that rank accumulates where flows do not merge: self-loops, cycles of pages without other links,
    chains. On web crawls such closed cycles fill the top places, and one accomplice that links back lifts a page
    further than with PageRank. Farms of many boosters rank lower than with PageRank on some crawls and higher on
    others. On graphs without link farms, PageRank orders better.

    Parameters
    ----------
    p : float
        At least 1; inf uses only the strongest in-link.
    ratio : float
        ``q/p``, at least 1. Above 1 the solution is unique, and the error shrinks by 1/ratio per step. 1 gives the L_p
        rank, computed by root finding, or with weak links as a Perron vector, whose error bound is loose if there are
        many closed cycles (5e-5 in cnr-2000). p = inf then has no unique solution and raises an error.
    damping : float
        Probability α of following a link.
    teleport : {"inside", "outside", "weak-links"}
        "inside": the teleport is one more in-link. "outside": it is added after the norm (footnote to eq. 6.1), which
        requires ratio > 1. "weak-links": every vertex has a weak link to every other one, added to its link if there is
        one: ``r_i ← (Σ_j (α·r_j·w_ij/d_j + (1 − α)·r_j·v_i)^p)^{1/q}`` over all j, where v is the teleport vector, with
        1 instead of 1 − α for vertices without out-links. Weak links demote large farms the most: in cnr-2000 with 50
        farms of 200 boosters, p = 2, these hold .04 % of the mass and their targets rank at 57,000 (PageRank: 4.3 %,
        place 117). They also favour closed cycles most, which fill the first 100 places with 75 % of the mass, 92 % on
        another crawl, so that the top is not a list of the best pages. A cycle of two lifts a page to place 1,900
        (PageRank: 16,000).
    trust : {"linear", "same"}
        Propagation of trust and distrust: linear, best in the dissertation since labels are not farmed (Lin-L_pq), or
        by the L_pq map.
    gamma : float
        Decay of trust and distrust per link.
    distrust : {"against", "along"}
        Distrust propagates against the links, to those who point at spam, or along them, which lets a spammer demote a
        page by pointing at it.
    neutral : float
        Factor, from 0 to 1, for vertices that neither trust nor distrust reaches.
    negative : {"edges", "seeds"}
        Use of the negative edges of a signed graph as seeds of distrust at their targets. "edges": weighted by n times
        the rank that flows through them, so that accounts of low rank count little. "seeds": by their weight, whoever
        gave it, which lets anyone demote anyone. From there distrust propagates as from ``distrusted``; without trusted
        vertices, every vertex is trusted with weight 1.
    tol, max_iter, warm_start, verbose, callback
        As in :class:`PageRank`.

    Attributes
    ----------
    scores_ : array of shape (n_vertices,)
        Scores, summing to 1; with labels ``ranks_·trust/(trust + distrust)``, normalised again.
    ranks_ : array of shape (n_vertices,)
        Scores by links only, without labels.
    trust_, distrust_ : array of shape (n_vertices,)
        Trust and distrust that reached each vertex; only with labels.
    names_, ranking_, error_bound_, hilbert_bound_, converged_, n_iter_, history_
        As in :class:`PageRank`; the bounds are those of ``ranks_``.

    Examples
    --------
    >>> import numpy as np
    >>> from apexrank.graph.lpq import LpqRank
    >>> sources = ["hub", "a", "b", *"stuvwxyz"]   # a cycle of three, and eight pages that link to "farm"
    >>> targets = ["a", "b", "hub", *["farm"] * 8]
    >>> LpqRank(p=1, ratio=1).fit((sources, targets)).ranking_[0]
    'farm'
    >>> LpqRank(p=2).fit((sources, targets)).ranking_[:4].tolist()
    ['a', 'b', 'hub', 'farm']
    """

    _parameter_constraints: ClassVar[dict] = IteratedRank._parameter_constraints | {
        "p": [between(1, math.inf)],
        "ratio": [number(1)],
        "teleport": [names(Place)],
        "trust": [names(Propagation)],
        "gamma": [between(0, 1, closed="left")],
        "distrust": [names(Direction)],
        "neutral": [between(0, 1)],
        "negative": [names(Negative)],
    }

    p: float = 2.0
    ratio: float = 1.2
    damping: float = 0.85
    _: KW_ONLY
    teleport: Place = "inside"
    trust: Propagation = "linear"
    gamma: float = 0.85
    distrust: Direction = "against"
    neutral: float = 0.5
    negative: Negative = "edges"

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.ratio == 1 < self.p and self.teleport == "outside":
            raise InputError("a teleport outside the norm needs `ratio` above 1, for a unique answer")
        if self.ratio == 1 and self.p == math.inf:
            raise InputError("`p=inf` with `ratio=1` can cycle forever: set `ratio` above 1")

    def _map(self) -> Map:
        return Linear() if self.p == self.ratio == 1 else Lpq(float(self.p), float(self.ratio))

    def _walk(self, graph: Graph, teleport: np.ndarray) -> Walk:
        map_ = self._map()
        if self.p == 1 and (self.ratio == 1 or self.teleport == "weak-links"):
            return Walk(graph, map_, self.damping, teleport)  # for a sum, inside and outside are the same
        if self.teleport == "weak-links":
            return WeakLinksWalk(graph, map_, self.damping, teleport)
        if self.ratio == 1:
            return RatioOneWalk(graph, map_, self.damping, teleport)
        return Walk(graph, map_, self.damping, teleport, outside=self.teleport == "outside")

    @checked
    def fit(
        self,
        graph: Any,
        y: None = None,
        *,
        teleport: Teleport = None,
        trusted: Seeds = None,
        distrusted: Seeds = None,
        start: Any = None,
    ) -> Self:
        """Rank the vertices of a graph.

        Parameters
        ----------
        graph : Graph, SignedGraph, or anything :func:`apexrank.graph.as_graph` reads
            Undirected edges count in both directions. Negative edges of a signed graph are distrust.
        y : None
            Ignored.
        teleport : array, mapping, names, or a list of several of them
            As in :meth:`PageRank.fit`.
        trusted, distrusted : names, mapping of names to weights, or array of one weight per vertex
            Labelled vertices. An array of floats or bools, one for each vertex, gives weights; any other gives names.
            If only distrusted ones are given, all others are trusted equally, with the same total. If only trusted ones
            are given, the factor is 1 wherever trust arrives, however little, and ``neutral`` elsewhere; TrustRank is
            gradual instead.
        start : fitted rank, mapping of names to scores, or array, optional
            As in :meth:`PageRank.fit`.
        """
        read = read_graph(graph)
        positive = read.positive if isinstance(read, SignedGraph) else read
        plus = _seeds(positive, trusted, "trusted")
        minus = _seeds(positive, distrusted, "distrusted")
        if plus is not None and minus is not None and (both := np.flatnonzero((plus > 0) & (minus > 0))).size:
            raise InputError(f"vertex {positive.label(int(both[0]))!r} is both trusted and distrusted")
        shares = teleport_vectors(positive, teleport)
        labelled = plus is not None or minus is not None or isinstance(read, SignedGraph)
        if shares.ndim > 1 and labelled:
            raise InputError("labels take one teleport vector: fit the others separately")
        answer = self._rank(positive, shares, start)
        self._keep(positive, answer, " A ratio of 1.05 always converges." if self.ratio == 1 < self.p else "")
        self.ranks_ = answer.scores
        if isinstance(read, SignedGraph):
            if plus is None and minus is None:
                plus = np.ones(positive.n)
            received = self._received(read)
            minus = received if minus is None else minus + received
        self._weigh(positive, plus, minus)
        return self

    def _received(self, graph: SignedGraph) -> np.ndarray:
        """Distrust received through negative edges."""
        if self.negative == "edges":
            links, rate = shared_links(graph.negative)
            return links.sums(self.ranks_ * rate) * graph.negative.n
        return graph.negative.reversed().out_weight

    def _weigh(self, graph: Graph, plus: np.ndarray | None, minus: np.ndarray | None) -> None:
        """Multiply the ranks by the share of trust."""
        for name in ("trust_", "distrust_"):
            self.__dict__.pop(name, None)
        if plus is None and minus is None:
            return
        minus = np.zeros(graph.n) if minus is None else minus
        if plus is None:  # as much trust as distrust, shared by all vertices that are not distrusted
            others = minus == 0
            if not others.any():
                raise InputError("every vertex is distrusted: leave some out, or name trusted ones")
            plus = np.where(others, minus.sum() / others.sum(), 0.0)
        map_ = Linear() if self.trust == "linear" else self._map()
        # seeds of one unit each, or scaled as the bound for maps of degree below 1 requires
        with np.errstate(over="ignore"):
            given = [float(seeds.sum()) for seeds in (plus, minus) if seeds.any()]
        if not np.isfinite(given).all():
            raise InputError("the sum of the label weights overflows: divide them by a large number")
        unit = 1.0 if map_.degree == 1 or not given else graph.n / min(given)
        self.trust_ = self._spread(graph, unit * plus, map_, "along")
        self.distrust_ = self._spread(graph, unit * minus, map_, self.distrust)
        scores = self.ranks_ * trust_share(self.trust_, self.distrust_, self.neutral)
        self.scores_ = scores / (scores.sum() or 1.0)

    def _spread(self, graph: Graph, seeds: np.ndarray, map_: Map, direction: Direction) -> np.ndarray:
        if not seeds.any():
            return seeds
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
        found = spread(graph, seeds, map=map_, gamma=self.gamma, direction=direction, **limits)
        if not found.converged:
            self.converged_ = False
            warn(
                f"the spread of labels has not converged after {found.n_iter} steps. Raise `max_iter` or `tol`.",
                ConvergenceWarning,
            )
        return found.scores


def _seeds(graph: Graph, seeds: Seeds, what: str) -> np.ndarray | None:
    if seeds is None:
        return None
    vector = seed_vector(graph, seeds, what)
    if not vector.any():
        raise InputError(f"{what} is empty: name at least one vertex, or leave it out")
    return vector


@dataclass(frozen=True)
class TopMean:
    """Generalised mean ``(Σ_{k largest} flow^p / k)^{1/p}`` of the top k flows, to the power 1/ratio (sec. 6.2).

    Links beyond the k strongest add nothing; k = 1 is the largest flow, ``Lpq(p=inf)``.
    """

    k: int = 10
    p: float = 1.0
    ratio: float = 1.2

    @property
    def degree(self) -> float:
        return 1.0 / self.ratio

    def on(self, links: LinkSums, rate: np.ndarray, teleport: np.ndarray) -> Inflow:
        with np.errstate(under="ignore"):
            powers = fast_power(teleport, self.p)
        k, norm = min(self.k, links.most_links + 1), Lpq(self.p, self.ratio)
        parts = [_range(each) for each in (rate, np.array(links.weight_range), teleport)]

        def inflow(x: np.ndarray, tau: Any) -> np.ndarray:
            if not norm._in_range(parts, x, tau):
                raise InputError(
                    f"p = {self.p:g} is too large for this graph: powers of its flows leave the range of floating "
                    "point. Use a smaller p"
                )
            total = links.top_sums(fast_power(x * rate, self.p), tau**self.p * powers, k, self.p)
            return fast_power(total / self.k, self.degree / self.p)

        return inflow

    def terms(self, flow: np.ndarray) -> np.ndarray:
        kept = np.zeros(len(flow))
        strongest = np.argsort(-flow, kind="stable")[: self.k]
        kept[strongest] = Lpq(self.p, self.ratio).terms(flow[strongest])
        return kept


@dataclass(eq=False, repr=False)
class TopMeanRank(IteratedRank):
    """Rank by the generalised mean of the k strongest in-flows, to the power 1/ratio (2013, end of sec. 6.2).

    Links of a farm beyond the k strongest add nothing; up to k, a page with more good links is not behind one with
    fewer.

    Parameters
    ----------
    k : int
        Number of in-flows that count, including the teleport.
    p : float
        Exponent of the mean; 1 is the arithmetic mean.
    ratio : float
        As in :class:`LpqRank`; above 1 there is a certificate.
    damping, tol, max_iter, warm_start, verbose, callback
        As in :class:`PageRank`.

    Examples
    --------
    >>> from apexrank.graph.lpq import TopMeanRank
    >>> TopMeanRank(k=2).fit((["a", "b", "c", "d"], ["b", "c", "b", "b"])).ranking_.tolist()
    ['b', 'c', 'a', 'd']
    """

    _parameter_constraints: ClassVar[dict] = LpqRank._parameter_constraints | {
        "k": [whole(1)],
        "p": [between(1, LARGEST_P_OF_MEAN)],
    }

    k: int = 10
    p: float = 1.0
    ratio: float = 1.2
    _: KW_ONLY
    damping: float = 0.85

    def _walk(self, graph: Graph, teleport: np.ndarray) -> Walk:
        return Walk(graph, TopMean(self.k, self.p, self.ratio), self.damping, teleport)


@dataclass(frozen=True)
class ConcaveConvex:
    """Map ``g(Σ_j f(flow_j))`` for any vectorised convex f and concave g (sec. 6.2).

    Both must be increasing with f(0) = 0. ``degree`` is the degree of homogeneity of the whole map; a degree below 1
    gives a certificate. By default it is unknown, and there is none. Weighted links need one evaluation of f per link.
    """

    f: Callable[[np.ndarray], np.ndarray]
    g: Callable[[np.ndarray], np.ndarray]
    degree: float = math.nan

    def on(self, links: LinkSums, rate: np.ndarray, teleport: np.ndarray) -> Inflow:
        def total(flow: np.ndarray) -> np.ndarray:
            return links.mapped_sums(flow, self.f) if links.weighted else links.sums(self.f(flow))

        def inflow(x: np.ndarray, tau: Any) -> np.ndarray:
            flow = x * rate
            flows = flow.T if flow.ndim > 1 else [flow]
            totals = np.stack([total(column) for column in flows], axis=-1).reshape(flow.shape)
            return self.g(totals + self.f(tau * teleport))

        return inflow

    def terms(self, flow: np.ndarray) -> np.ndarray:
        return self.f(flow)


@dataclass(eq=False, repr=False)
class ConcaveConvexRank(IteratedRank):
    """Rank by any increasing convex f and concave g: ``r_i ← g(Σ_j f(flow_j) + f(teleport_i))`` (2013, sec. 6.2).

    Parameters
    ----------
    f, g : callable
        Vectorised, increasing, f(0) = 0. :class:`LpqRank` has ``f = x^p``, ``g = x^{1/q}``.
    degree : float
        Degree h of homogeneity of ``g∘f``, if known and below 1; the certificate depends on it. Without it iteration
        stops when the scores change by at most ``tol`` in the L1 norm, and ``error_bound_`` is nan.
    damping, tol, max_iter, warm_start, verbose, callback
        As in :class:`PageRank`.

    Examples
    --------
    >>> import numpy as np
    >>> from apexrank.graph.lpq import ConcaveConvexRank
    >>> ranks = ConcaveConvexRank(np.square, lambda x: x**0.4, degree=0.8).fit((["a", "b"], ["b", "c"]))
    >>> ranks.ranking_.tolist(), ranks.error_bound_ < 1e-9
    (['c', 'b', 'a'], True)
    """

    _parameter_constraints: ClassVar[dict] = IteratedRank._parameter_constraints | {
        "f": [callable],
        "g": [callable],
        "degree": ["nan", above(0)],
    }

    f: Callable[[np.ndarray], np.ndarray] = np.square
    g: Callable[[np.ndarray], np.ndarray] = np.sqrt
    _: KW_ONLY
    degree: float = math.nan
    damping: float = 0.85

    def _walk(self, graph: Graph, teleport: np.ndarray) -> Walk:
        return Walk(graph, ConcaveConvex(self.f, self.g, self.degree), self.damping, teleport)
