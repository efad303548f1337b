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
SAFE_P = 8.0  # up to here the powers of all flows are ordinary numbers
SAFE_RANGE = 600.0  # of p·log(flow), between the largest and the smallest flow


class Map(Protocol):
    """What ranks need to know: the degree of homogeneity (nan if unknown), and the map on given links."""

    @property
    def degree(self) -> float: ...

    def on(self, links: InLinks, teleport: np.ndarray) -> Inflow:
        """A function of the flows out of the vertices and of τ, where ``τ·teleport`` is one more flow into each."""
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

    def on(self, links: InLinks, teleport: np.ndarray) -> Inflow:
        if self.p == 1:
            return lambda flow, tau: _power(links.sums(flow) + tau * teleport, self.degree)
        if math.isinf(self.p):
            return lambda flow, tau: _power(np.maximum(links.largest(flow), tau * teleport), self.degree)
        weights = links.weights**self.p
        if self.p <= SAFE_P:
            powers = _power(teleport, self.p)
            return lambda flow, tau: _power(
                links.sums(_power(flow, self.p), weights) + tau**self.p * powers, 1 / (self.ratio * self.p)
            )

        def inflow(flow: np.ndarray, tau: Any) -> np.ndarray:
            extra = tau * teleport
            unit = self._unit(flow, extra)
            if unit is None:
                return _power(self._norms(links, flow, extra), self.degree)
            total = links.sums((flow / unit) ** self.p, weights) + (extra / unit) ** self.p
            return _power(total, 1 / (self.ratio * self.p)) * unit**self.degree

        return inflow

    def _unit(self, flow: np.ndarray, extra: np.ndarray) -> float | None:
        """A flow by which the others are divided so that their powers stay in range; None where there is none."""
        present = [x[x > 0] for x in (flow, extra)]
        high = max((float(x.max()) for x in present if x.size), default=1.0)
        low = min((float(x.min()) for x in present if x.size), default=1.0)
        return math.sqrt(high) * math.sqrt(low) if self.p * math.log(high / low) < SAFE_RANGE else None

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
        if not self.p <= SAFE_P:
            raise InputError(f"the mean of the k strongest links takes p up to {SAFE_P:g}, got {self.p!r}")

    @property
    def degree(self) -> float:
        return 1.0 / self.ratio

    def on(self, links: InLinks, teleport: np.ndarray) -> Inflow:
        weights, powers = links.weights**self.p, _power(teleport, self.p)

        def inflow(flow: np.ndarray, tau: Any) -> np.ndarray:
            total = links.top_sums(_power(flow, self.p), tau**self.p * powers, self.k, weights)
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

    def on(self, links: InLinks, teleport: np.ndarray) -> Inflow:
        if links.weights.size:
            counts: np.ndarray = np.diff(links.indptr).astype(np.int64)
            rows = np.repeat(np.arange(links.n), counts)

            def total(flow: np.ndarray) -> np.ndarray:
                return np.bincount(rows, self.f(links.weights * flow[links.indices]), links.n)

        else:

            def total(flow: np.ndarray) -> np.ndarray:
                return links.sums(self.f(flow))

        def inflow(flow: np.ndarray, tau: Any) -> np.ndarray:
            flows = flow.T if flow.ndim > 1 else [flow]
            totals = np.stack([total(column) for column in flows], axis=-1).reshape(flow.shape)
            return self.g(totals + self.f(tau * teleport))

        return inflow

    def terms(self, flow: np.ndarray) -> np.ndarray:
        return self.f(flow)


def _power(x: np.ndarray, exponent: float) -> np.ndarray:
    """``x^exponent``; small whole exponents as products, which are ten times as fast."""
    if exponent == 1:
        return x
    if exponent in (2, 3, 4):
        square = x * x
        return square if exponent == 2 else square * (x if exponent == 3 else square)
    return x**exponent
