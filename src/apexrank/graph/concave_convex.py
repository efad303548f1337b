"""Concave-convex ranks: the mean of the k strongest in-links, and functions of one's own.

S. Acharyya, dissertation, 2013, sec. 6.2: a convex f favours few strong in-links over many weak ones, a concave g makes
returns diminish. Each rank is a map (`apexrank.graph.power.Map`) and an estimator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.base import IteratedRank
from apexrank.graph.graph import Graph
from apexrank.graph.lpq import Lpq, fast_power
from apexrank.graph.power import Inflow, Walk
from apexrank.kernels.csr import LinkSums

LARGEST_P_OF_MEAN = 8.0


@dataclass(frozen=True)
class TopMean:
    """Generalised mean ``(Σ_{k largest} flow^p / k)^{1/p}`` to the power 1/ratio (end of sec. 6.2).

    Links beyond the k strongest add nothing: k = 1 is the largest flow, ``Lpq(p=inf)``.
    """

    k: int = 10
    p: float = 1.0
    ratio: float = 1.2

    def __post_init__(self) -> None:
        Lpq(self.p, self.ratio)
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or self.k < 1:
            raise InputError(f"k must be a whole number of at least 1, got {self.k!r}")
        if not self.p <= LARGEST_P_OF_MEAN:
            raise InputError(
                f"the mean of the k strongest links takes p up to {LARGEST_P_OF_MEAN:g}, got {self.p!r}"
            )

    @property
    def degree(self) -> float:
        return 1.0 / self.ratio

    def on(self, links: LinkSums, rate: np.ndarray, teleport: np.ndarray) -> Inflow:
        powers = fast_power(teleport, self.p)
        k = min(self.k, links.most_links + 1)

        def inflow(x: np.ndarray, tau: Any) -> np.ndarray:
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
    >>> from apexrank.graph.concave_convex import TopMeanRank
    >>> TopMeanRank(k=2).fit((["a", "b", "c", "d"], ["b", "c", "b", "b"])).ranking_.tolist()
    ['b', 'c', 'a', 'd']
    """

    k: int = 10
    p: float = 1.0
    ratio: float = 1.2
    _: KW_ONLY
    damping: float = 0.85

    def _walk(self, graph: Graph, teleport: np.ndarray) -> Walk:
        return Walk(graph, TopMean(self.k, self.p, self.ratio), self.damping, teleport)


@dataclass(frozen=True)
class ConcaveConvex:
    """``g(Σ_j f(flow_j))`` for any convex f and concave g that take and give arrays (sec. 6.2).

    Both must be increasing with f(0) = 0. ``degree`` is the degree of homogeneity of the whole map, below 1 for a
    certificate; by default it is unknown, and there is none. Weighted links take a call of f a link.
    """

    f: Callable[[np.ndarray], np.ndarray]
    g: Callable[[np.ndarray], np.ndarray]
    degree: float = math.nan

    def __post_init__(self) -> None:
        if not (callable(self.f) and callable(self.g)):
            raise InputError("f and g must be functions from arrays to arrays")
        if not (math.isnan(self.degree) or self.degree > 0):
            raise InputError(
                f"degree must be a number above 0, or nan where it is unknown, got {self.degree!r}"
            )

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
        From arrays to arrays, increasing, f(0) = 0. :class:`LpqRank` has ``f = x^p``, ``g = x^{1/q}``.
    degree : float
        Degree h of homogeneity of ``g∘f``, if it is known and below 1: the certificate rests on it. Without it
        iteration ends when no score changes by more than ``tol`` in the L1 norm, and ``error_bound_`` is nan.
    damping, tol, max_iter, warm_start, verbose, callback
        As in :class:`PageRank`.

    Examples
    --------
    >>> import numpy as np
    >>> from apexrank.graph.concave_convex import ConcaveConvexRank
    >>> ranks = ConcaveConvexRank(np.square, lambda x: x**0.4, degree=0.8).fit((["a", "b"], ["b", "c"]))
    >>> ranks.ranking_.tolist(), ranks.error_bound_ < 1e-9
    (['c', 'b', 'a'], True)
    """

    f: Callable[[np.ndarray], np.ndarray] = np.square
    g: Callable[[np.ndarray], np.ndarray] = np.sqrt
    _: KW_ONLY
    degree: float = math.nan
    damping: float = 0.85

    def _walk(self, graph: Graph, teleport: np.ndarray) -> Walk:
        return Walk(graph, ConcaveConvex(self.f, self.g, self.degree), self.damping, teleport)
