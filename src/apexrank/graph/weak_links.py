"""L_pq rank with the teleport as weak links from every vertex to every other: eq. (6.1) read entry by entry.

``r_i ← (Σ_j (α·r_j·w_ij/d_j + c_j·r_j·v_i)^p)^{1/q}`` over all j, with ``c_j = 1 − α``, or 1 at dangling vertices.
Without a link, j contributes ``(c_j·r_j·v_i)^p``; with a link, additionally ``(k_ij·r_j)^p``,
``k_ij^p = (a + b)^p − b^p`` with ``a = α·w_ij/d_j`` and ``b = (1 − α)·v_i``. So the step is that of `Lpq` on links of
weight k with a teleport of ``v_i·(Σ_j (c_j·r_j)^p)^{1/p}``, and takes no longer than with a teleport inside the norm.

At q = p it is linear in ``y = r^p``, as noted in sec. 6.2 of the dissertation: ``λy = Ky + u·(c^p·y)``, ``u = v^p``, a
Perron vector. `PerronBound` certifies it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from apexrank.graph import power
from apexrank.graph.graph import Graph
from apexrank.graph.power import (
    Fixpoint,
    Progress,
    Walk,
)
from apexrank.kernels.csr import InLinks


class WeakLinksWalk(Walk):
    """Walk of an `Lpq` map with p > 1; several teleport vectors are separate walks, run in sequence."""

    map: Any  # an Lpq; its module imports this one

    def __init__(self, graph: Graph, map: Any, damping: float, teleport: np.ndarray) -> None:
        self.graph, self.map, self.damping, self.teleport = graph, map, damping, teleport
        self.links, rate = power.shared_links(graph)
        self.weak = np.where(graph.dangling, 1.0, 1.0 - damping)
        if teleport.ndim > 1:
            return
        if not graph.weighted and np.ptp(teleport) == 0:  # k depends only on the source
            rate = self._more(damping * rate, (1 - damping) * teleport)
        else:
            flow, b = (
                damping * rate[graph.indices],
                (1 - damping) * np.repeat(teleport, np.diff(graph.indptr)),
            )
            flow = flow if graph.weights is None else flow * self.links.weights  # type: ignore[attr-defined]
            self.links, rate = InLinks(graph.indptr, graph.indices, self._more(flow, b)), np.ones(graph.n)
        self.inflow = map.on(self.links, rate, teleport)
        # computing k takes a dozen rounded operations
        self.rounding = power.rounding_of(self.links) + 6 * float(np.finfo(float).eps)

    def _more(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Compute ``((a + b)^p − b^p)^{1/p}`` without cancellation, overflow or underflow."""
        if math.isinf(self.map.p):
            return a + b
        ratio = np.divide(a, b, out=np.full_like(a, math.inf), where=b > 0)
        with np.errstate(over="ignore"):
            return (a + b) * (-np.expm1(-self.map.p * np.log1p(ratio))) ** (1 / self.map.p)

    def step(self, r: np.ndarray) -> np.ndarray:
        new = self.next_of(r)
        return new / power.total(new)

    def next_of(self, r: np.ndarray) -> np.ndarray:
        """Return the next scores, not normalised."""
        return self.inflow(r, self._norm(self.weak * r))

    def _norm(self, x: np.ndarray) -> float:
        largest = float(x.max(initial=0.0))
        if largest == 0 or math.isinf(self.map.p):
            return largest
        with np.errstate(under="ignore"):
            return largest * float(power.total((x / largest) ** self.map.p)) ** (1 / self.map.p)

    def solve(self, start: np.ndarray, tol: float, max_iter: int, progress: Progress | None) -> Fixpoint:
        if start.ndim == 1 and self.map.degree < 1:
            return super().solve(start, tol, max_iter, progress)
        if start.ndim == 1:
            return power.iterate(self.step, start, PerronBound(self), tol, max_iter, progress, self._midway)
        found = []
        for v, first in zip(self.teleport.T, start.T, strict=True):
            with WeakLinksWalk(self.graph, self.map, self.damping, v) as walk:
                found.append(walk.solve(first, tol, max_iter, progress))
        return power.stacked(found)

    def _midway(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Average old and new in r^p, because eigenvalues near −ρ, as of cycles of two, would make steps oscillate."""
        low, high = np.minimum(old, new), np.maximum(old, new)
        share = np.divide(low, high, out=np.zeros_like(low), where=high > 0)
        with np.errstate(under="ignore"):
            mean = high * ((1 + share**self.map.p) / 2) ** (1 / self.map.p)
        return mean / power.total(mean)

    def flows_into(self, r: np.ndarray, vertex: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return flows as in `Walk`; a link includes its weak link, and the norm of all other weak links comes last."""
        sources, weights = self.graph.links_into(vertex)
        shares = weights / self.graph.out_weight[sources]
        weak = self.weak * r * self.teleport[vertex]
        flow = self.damping * r[sources] * shares + weak[sources]
        weak[sources] = 0.0
        flows = np.append(flow, self._norm(weak))
        terms = self.map.terms(flows)
        return sources, flows, terms / (terms.sum() or 1.0)


class PerronBound:
    """Bound on the distance to the Perron vector of a non-negative matrix M in Hilbert's metric, at any y > 0.

    Let ``M = K + u·c``, c a row, K ≥ 0, ``λ⁻ ≤ (My)/y ≤ λ⁺`` (Collatz and Wielandt), and ``K^m y ≤ β(λ⁻)^m y`` for some
    m and β < 1. As ``Ky ≤ λ⁺y``, ``H = Σ_{a<m} K^a y (λ⁻)^{−a−1}/(1 − β)`` has ``(λ⁻ − K)H ≥ y`` and is at most
    ``A·y/λ⁻``, ``A = m(λ⁺/λ⁻)^m/(1 − β)``. Scale y to ``c·y = 1``. Then ``y + (λ⁺ − λ⁻)H`` has ``(λ⁻ − K)x ≥ u``, so
    that it is above the Perron vector ``(ρ − K)^{-1}u``, and ``y − (λ⁺ − λ⁻)H``, with ``(λ⁺ − K)x ≤ u``, is below it.
    Hence y is exact up to a factor of ``1 ± κ``, ``κ = (λ⁺/λ⁻ − 1)·A``. An A found at another y is valid, too,
    multiplied by their distance.

    There are two choices of u·c: the teleport, and everything that the vertex of the largest score passes on, which is
    better if one strong component holds most of the rank. A is searched for after 8, 16, 32, … steps, with as many.
    """

    def __init__(self, walk: WeakLinksWalk) -> None:
        self.walk, self.steps, self.due = walk, 0, 8
        self.A, self.at = math.inf, np.zeros(0)

    def __call__(self, new: np.ndarray, old: np.ndarray, change: float) -> tuple[float, float]:
        p, rounding = self.walk.map.p, self.walk.rounding
        spread = p * (power.hilbert_distance(new, old) + 2 * rounding)  # log λ⁺/λ⁻
        self.steps += 1
        if self.steps == self.due:
            self.due *= 2
            if spread < 1:
                self.A, self.at = self._decay(old, spread) * math.exp(spread), old
        if not math.isfinite(self.A):
            return math.inf, math.inf
        moved = min(p * power.hilbert_distance(old, self.at), 700.0)
        kappa = math.expm1(min(spread, 1.0)) * self.A * math.exp(moved)
        # κ/(1 − κ): by rounding λ⁻ may have decreased slightly since A was found
        d = 2 * math.atanh(kappa / (1 - kappa)) / p + 2 * rounding if kappa < 0.5 else math.inf
        return 2 * math.tanh(d / 4), d

    def _decay(self, r: np.ndarray, spread: float) -> float:
        """Find the smallest A."""
        walk, p, there = self.walk, self.walk.map.p, r > 0
        others = np.arange(len(r)) != np.argmax(r)
        lowest = float((walk.next_of(r)[there] / r[there]).min()) * math.exp(-2 * walk.rounding)
        best = math.inf
        for apply in (lambda x: walk.inflow(x, 0.0), lambda x: walk.next_of(x * others)):
            x = r
            for m in range(1, self.steps + 1):
                x = np.maximum(apply(x) / lowest, 1e-9 * r)  # an upper bound, so that powers stay in range
                # the power of a ratio above 1, as of a long chain, may be out of range
                log_beta = p * (math.log(float((x[there] / r[there]).max())) + m * walk.rounding)
                if log_beta < 0:
                    best = min(best, m * math.exp(min(m * spread, 700.0)) / -math.expm1(log_beta))
                if log_beta < -math.log(2):
                    break
        return best
