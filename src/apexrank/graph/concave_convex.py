"""How a vertex turns what flows in through its links into its score: ``r_i = g(Σ_j f(flow_j))``.

S. Acharyya, dissertation, 2013, sec. 6.2: a convex f favours few strong in-links over many weak ones, a concave g makes
returns diminish. A flow depends on its source alone, so f is taken once a vertex, and what remains for the links is a
sum. Weights are shares ``w_ij/d_j`` of what a vertex hands out.

A map is *homogeneous of degree h* when multiplying all flows by c multiplies the scores by c^h. With h < 1 every step
brings any two score vectors nearer by the factor h in Hilbert's projective metric, which is what certificates rest on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from apexrank.checks import check_finite
from apexrank.errors import InputError
from apexrank.kernels.csr import InLinks

Inflow = Callable[[np.ndarray, Any], np.ndarray]
# of p·|log flow|: powers of such flows and weights, their products and long sums of them are in range
SAFE_LOG = 650.0
LARGEST_P_OF_MEAN = 8.0


class Map(Protocol):
    """What ranks need to know: the degree of homogeneity (nan if unknown), and the map on given links."""

    @property
    def degree(self) -> float: ...

    def on(self, links: InLinks, rate: np.ndarray, teleport: np.ndarray) -> Inflow:
        """A function of the scores x and of τ: ``x·rate`` flows out of the vertices, ``τ·teleport`` into each more."""
        ...

    def terms(self, flow: np.ndarray) -> np.ndarray:
        """What single flows into one vertex contribute to it, up to a common factor."""
        ...


@dataclass(frozen=True)
class Lpq:
    """``(Σ_j flow_j^p)^{1/q}`` with ``q = ratio·p``; p = ∞ is the largest flow to the power 1/ratio (eq. 6.1)."""

    p: float = 2.0
    ratio: float = 1.2

    def __post_init__(self) -> None:
        if not self.p >= 1:
            raise InputError(f"p must be a number of at least 1, or inf, got {self.p!r}")
        check_finite("ratio", self.ratio, 1)

    @property
    def degree(self) -> float:
        return 1.0 / self.ratio

    def on(self, links: InLinks, rate: np.ndarray, teleport: np.ndarray) -> Inflow:
        if self.p == 1:
            return lambda x, tau: _power(links.sums(x * rate) + tau * teleport, self.degree)
        if math.isinf(self.p):
            return lambda x, tau: _power(np.maximum(links.largest(x * rate), tau * teleport), self.degree)
        with np.errstate(under="ignore"):
            weights, powers = links.weights**self.p, _power(teleport, self.p)
        parts = [_range(each) for each in (rate, links.weights, teleport)]

        def inflow(x: np.ndarray, tau: Any) -> np.ndarray:
            if not self._in_range(parts, x, tau):
                return _power(self._norms(links, x * rate, tau * teleport), self.degree)
            total = links.sums(_power(x * rate, self.p), weights) + tau**self.p * powers
            return _power(total, 1 / (self.ratio * self.p))

        return inflow

    def _in_range(self, parts: list[tuple[float, float]], x: np.ndarray, tau: Any) -> bool:
        """Whether powers of all flows, of weights and of their products are ordinary numbers."""
        taus = np.asarray(tau, dtype=float)
        (r_low, r_high), (w_low, w_high), (t_low, t_high), (x_low, x_high), (u_low, u_high) = (
            *parts,
            _range(x),
            _range(taus),
        )
        low = min(x_low + r_low, x_low + r_low + w_low, w_low, u_low + t_low, t_low)
        high = max(x_high + r_high, x_high + r_high + w_high, w_high, u_high + t_high, t_high)
        return self.p * max(-low, high) < SAFE_LOG

    def _norms(self, links: InLinks, flow: np.ndarray, extra: np.ndarray) -> np.ndarray:
        norms = links.norms(flow, self.p)
        largest = np.maximum(norms, extra)
        unit = np.where(largest > 0, largest, 1.0)
        return largest * _power(_power(norms / unit, self.p) + _power(extra / unit, self.p), 1 / self.p)

    def terms(self, flow: np.ndarray) -> np.ndarray:
        largest = flow.max(initial=0.0)
        if largest == 0:
            return np.zeros_like(flow)
        return np.where(flow == largest, 1.0, 0.0) if math.isinf(self.p) else _power(flow / largest, self.p)


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

    def on(self, links: InLinks, rate: np.ndarray, teleport: np.ndarray) -> Inflow:
        weights, powers = links.weights**self.p, _power(teleport, self.p)
        k = min(self.k, links.most_links + 1)

        def inflow(x: np.ndarray, tau: Any) -> np.ndarray:
            total = links.top_sums(_power(x * rate, self.p), tau**self.p * powers, k, weights)
            return _power(total / self.k, self.degree / self.p)

        return inflow

    def terms(self, flow: np.ndarray) -> np.ndarray:
        kept = np.zeros(len(flow))
        strongest = np.argsort(-flow, kind="stable")[: self.k]
        kept[strongest] = Lpq(self.p, self.ratio).terms(flow[strongest])
        return kept


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

    def on(self, links: InLinks, rate: np.ndarray, teleport: np.ndarray) -> Inflow:
        if links.weights.size:
            counts: np.ndarray = np.diff(links.indptr).astype(np.int64)
            rows = np.repeat(np.arange(links.n), counts)

            def total(flow: np.ndarray) -> np.ndarray:
                return np.bincount(rows, self.f(links.weights * flow[links.indices]), links.n)

        else:

            def total(flow: np.ndarray) -> np.ndarray:
                return links.sums(self.f(flow))

        def inflow(x: np.ndarray, tau: Any) -> np.ndarray:
            flow = x * rate
            flows = flow.T if flow.ndim > 1 else [flow]
            totals = np.stack([total(column) for column in flows], axis=-1).reshape(flow.shape)
            return self.g(totals + self.f(tau * teleport))

        return inflow

    def terms(self, flow: np.ndarray) -> np.ndarray:
        return self.f(flow)


def _range(x: np.ndarray) -> tuple[float, float]:
    """Logarithms of the smallest and the largest entry above 0; (0, 0) without one."""
    low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    if low <= 0 < high:
        low = float(np.min(x, where=x > 0, initial=math.inf))
    return (math.log(low), math.log(high)) if high > 0 else (0.0, 0.0)


def _power(x: np.ndarray, exponent: float) -> np.ndarray:
    """``x^exponent``; small whole exponents as products, which are ten times as fast."""
    if exponent == 1:
        return x
    if exponent in (2, 3, 4):
        square = x * x
        return square if exponent == 2 else square * (x if exponent == 3 else square)
    return x**exponent
