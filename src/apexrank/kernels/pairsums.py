"""Sums over all pairs of sources and targets in near-linear time.

For sources x with weights w and targets t, compute ``Σ_i w_i ℓ(x_i − t_k)`` and ``Σ_i w_i ℓ'(x_i − t_k)`` for every k
without visiting all pairs. Rows are sorted by group; ``starts`` holds the first row of each group and the end.

* Hinge and squared hinge: iterate over the sorted scores and update the sums from gap to gap. Every step adds positive
  terms, so there is no cancellation, however far the scores are from zero.
* Logistic: ``softplus(t − x)`` is analytic in a strip of half-width π around the real line. Scores are divided into
  panels of width 1. The sources of each panel become 14 Chebyshev moments, panels interact through a fixed 14 x 14
  matrix for each distance, and distant panels through a line and three exponentials. The result is a Chebyshev series
  evaluated at each target: full double precision, without sorting.
"""

from __future__ import annotations

import math
from copy import copy
from functools import partial
from typing import NamedTuple

import numpy as np

from apexrank.kernels.jit import kernel
from apexrank.kernels.pav import sort_inside
from apexrank.parallel import Threads, n_threads


class PairSums(NamedTuple):
    """Sums over rows for each target k: ``Σ_i w_i ℓ(x_i − t_k)`` and ``Σ_i w_i ℓ'(x_i − t_k)``."""

    value: np.ndarray
    slope: np.ndarray


# ---------------------------------------------------------------- hinge and squared hinge


@kernel()
def _hinge_sums(x, w, x_order, x_starts, t, t_order, t_starts, squared, value, slope):
    for q in range(x_starts.size - 1):
        i, i_end = x_starts[q], x_starts[q + 1]
        weight, first, second, here = 0.0, 0.0, 0.0, -np.inf
        for b in range(t_starts[q], t_starts[q + 1]):
            k = t_order[b]
            reach = t[k] + 1.0
            # sources below t + 1 have a margin below 1 and contribute; sums are updated from source to source,
            # H2 += 2δ·H1 + W·δ² before H1 += W·δ, without any subtraction
            while i < i_end and x[x_order[i]] < reach:
                gap = x[x_order[i]] - here if weight > 0.0 else 0.0
                second += gap * (2.0 * first + weight * gap)
                first += weight * gap
                weight += w[x_order[i]]
                here = x[x_order[i]]
                i += 1
            gap = reach - here if weight > 0.0 else 0.0  # −inf before the first source
            at_first = first + weight * gap
            if squared:
                value[k] = second + gap * (2.0 * first + weight * gap)
                slope[k] = -2.0 * at_first
            else:
                value[k] = at_first
                slope[k] = -weight


class HingeSums:
    """Sums of ``max(0, 1 − z)``, ``z = x_i − t_k``; the slope at the kink z = 1 is 0.

    With ``H1(s) = Σ_{x_i < s} w_i (s − x_i)`` and ``H2`` the sum of squares, a step of δ that passes no source is
    ``H2 += 2δ·H1 + W·δ²`` and ``H1 += W·δ``. Forward and backward share one sort of each side.
    """

    def __init__(
        self,
        x: np.ndarray,
        x_starts: np.ndarray,
        t: np.ndarray,
        t_starts: np.ndarray,
        *,
        squared: bool = False,
    ) -> None:
        self.x, self.t, self.x_starts, self.t_starts, self.is_squared = x, t, x_starts, t_starts, squared
        with Threads(min(2, n_threads())) as threads:
            sort = partial(sort_inside, stable=False)
            self.x_order, self.t_order = threads.map(sort, (x, t), (x_starts, t_starts))

    @classmethod
    def squared(cls, *scores: np.ndarray) -> HingeSums:
        """Sums of ``max(0, 1 − z)²``."""
        return cls(*scores, squared=True)

    def forward(self, w: np.ndarray) -> PairSums:
        """Sum over the sources, with weights w, for each target."""
        value, slope = np.zeros(len(self.t)), np.zeros(len(self.t))
        _hinge_sums(
            self.x, w, self.x_order, self.x_starts,
            self.t, self.t_order, self.t_starts,
            self.is_squared, value, slope,
        )  # fmt: skip
        return PairSums(value, slope)

    def backward(self, m: np.ndarray) -> np.ndarray:
        """Compute ``Σ_k m_k ℓ'(x_i − t_k)`` for each source, by the same pass from the other end."""
        value, slope = np.zeros(len(self.x)), np.zeros(len(self.x))
        _hinge_sums(
            -self.t, m, self.t_order[::-1], len(self.t) - self.t_starts[::-1],
            -self.x, self.x_order[::-1], len(self.x) - self.x_starts[::-1],
            self.is_squared, value, slope,
        )  # fmt: skip
        return slope


class SmoothHingeSums:
    """Sums of :class:`~apexrank.losses.SmoothHinge`: ``[max(0, 1 − z)² − max(0, 1 − width − z)²]/(2·width)``.

    The difference loses precision for small widths: its error is about 1e-16 divided by the width.
    """

    def __init__(
        self, x: np.ndarray, x_starts: np.ndarray, t: np.ndarray, t_starts: np.ndarray, width: float
    ) -> None:
        self.near, self.width = HingeSums(x, x_starts, t, t_starts, squared=True), width
        self.far = copy(self.near)  # shares the sort
        self.far.t = t - width

    def forward(self, w: np.ndarray) -> PairSums:
        """Sum over the sources, with weights w, for each target."""
        pairs = zip(self.near.forward(w), self.far.forward(w), strict=True)
        return PairSums(*((near - far) / (2 * self.width) for near, far in pairs))

    def backward(self, m: np.ndarray) -> np.ndarray:
        """Compute ``Σ_k m_k ℓ'(x_i − t_k)`` for each source."""
        return (self.near.backward(m) - self.far.backward(m)) / (2 * self.width)


# ---------------------------------------------------------------- logistic

# softplus is singular at ±iπ: on a panel of width 1 the Bernstein ellipse through these points has the parameter
# ρ = 2π + √(4π² + 1) ≈ 12.6, and Chebyshev series of degree 13 err by about ρ^−14 < 4e-16
NODES = 14
REACH = 14  # panels further apart than this interact through the far field
FEW_PAIRS = 64  # groups with fewer pairs per row are summed pair by pair
NODE = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
TERMS = 3  # exponentials of the far field: the remainder is below e^(−TERMS · REACH) < 1e-18 of the first


def _chebyshev_of_nodes() -> np.ndarray:
    """Return the matrix from values at the Chebyshev nodes to Chebyshev coefficients."""
    angle = np.pi * (np.arange(NODES) + 0.5) / NODES
    matrix = 2 / NODES * np.cos(np.outer(np.arange(NODES), angle))
    matrix[0] /= 2
    return matrix


def chebyshev_between(distance: np.ndarray) -> np.ndarray:
    """Return matrices from the moments of a source panel to Chebyshev coefficients ``distance`` panels above it.

    The first axis is the function, softplus and sigmoid; the second the distance.
    """
    to_coefficients = _chebyshev_of_nodes()
    z = distance[:, None, None] + (NODE[:, None] - NODE[None, :]) / 2
    at_nodes = np.stack([np.logaddexp(0.0, z), np.exp(-np.logaddexp(0.0, -z))])
    return to_coefficients @ at_nodes @ to_coefficients.T


def _tables() -> tuple[np.ndarray, np.ndarray]:
    """Compute Chebyshev coefficients of softplus and sigmoid between panels, and of exp(±jξ/2) on one.

    ``near[s, δ, k, l]`` maps the l-th moment of a source panel to the k-th coefficient δ panels above it (s = 0:
    softplus, s = 1: sigmoid); ``far[j, k]`` are the coefficients of ``exp(j·ξ/2)``, j from −TERMS to TERMS.
    """
    powers = np.arange(-TERMS, TERMS + 1)[:, None]
    near = chebyshev_between(np.arange(-REACH, REACH + 1))
    return near, np.exp(powers * NODE / 2) @ _chebyshev_of_nodes().T


_NEAR, _FAR = _tables()


@kernel()
def _moments(x, w, panel, centre, moments):
    """Add ``Σ w T_l(ξ)`` of every source to the moments of its panel, with ξ in [−1, 1] on the panel."""
    for i in range(x.size):
        p = panel[i]
        xi = 2.0 * (x[i] - centre[p])
        before, now = 1.0, xi
        moments[p, 0] += w[i]
        moments[p, 1] += w[i] * xi
        for degree in range(2, NODES):
            before, now = now, 2.0 * xi * now - before
            moments[p, degree] += w[i] * now


@kernel()
def _evaluate(t, panel, centre, series, sign, out):
    """Evaluate the Chebyshev series of each target's panel at the target (Clenshaw)."""
    for k in range(t.size):
        p = panel[k]
        xi = 2.0 * (t[k] - centre[p])
        one, two = 0.0, 0.0
        for degree in range(NODES - 1, 0, -1):
            one, two = 2.0 * xi * one - two + series[p, degree], one
        out[k] = sign * (xi * one - two + series[p, 0])


@kernel()
def _panels_to_panels(source, moments, target, near, far, value, slope):
    """Compute Chebyshev series of softplus and sigmoid sums on each target panel; panel numbers are sorted."""
    n_source, n_target = source.size, target.size
    first = 0
    for p in range(n_target):
        while first < n_source and source[first] < target[p] - REACH:
            first += 1
        s = first
        while s < n_source and source[s] <= target[p] + REACH:
            distance = int(target[p] - source[s]) + REACH
            for k in range(NODES):
                v, g = 0.0, 0.0
                for m in range(NODES):
                    v += near[0, distance, k, m] * moments[s, m]
                    g += near[1, distance, k, m] * moments[s, m]
                value[p, k] += v
                slope[p, k] += g
            s += 1
    _far_field(source, moments, target, far, 1, value, slope)
    _far_field(source, moments, target, far, -1, value, slope)


@kernel()
def _far_field(source, moments, target, far, side, value, slope):
    """Add sums over sources far below the targets (side = 1) or far above them (side = −1).

    ``softplus(z) = max(z, 0) + e^{−|z|} − e^{−2|z|}/2 + e^{−3|z|}/3``, sums about the target's centre.
    """
    sums = np.zeros(TERMS + 1)
    weight, lever, here = 0.0, 0.0, 0.0
    s, p, seen = (0, 0, False) if side > 0 else (source.size - 1, target.size - 1, False)
    while 0 <= p < target.size:
        lever += weight * (target[p] - here)
        for j in range(1, TERMS + 1):
            # sums are relative to the target's panel: factors are at most 1 and cannot overflow
            sums[j] *= math.exp(-j * side * (target[p] - here)) if seen else 0.0
        here = target[p]
        while 0 <= s < source.size and side * (target[p] - source[s]) > REACH:
            gap = side * (target[p] - source[s])
            weight += moments[s, 0]
            lever += moments[s, 0] * gap - 0.5 * moments[s, 1]
            for j in range(1, TERMS + 1):
                total = 0.0
                for m in range(NODES):
                    total += far[TERMS + side * j, m] * moments[s, m]
                sums[j] += math.exp(-j * gap) * total
            s += side
            seen = True
        if side > 0:  # the line max(z, 0)
            value[p, 0] += lever
            value[p, 1] += 0.5 * weight
            slope[p, 0] += weight
        for j in range(1, TERMS + 1):
            sign = 1.0 if j % 2 == 1 else -1.0
            for k in range(NODES):
                value[p, k] += sign / j * sums[j] * far[TERMS - side * j, k]
                slope[p, k] -= side * sign * sums[j] * far[TERMS - side * j, k]
        p += side


@kernel()
def _panels(x):
    """Return the sorted numbers of the non-empty panels, and the index of each point's panel among them."""
    low, high = np.floor(x.min()), np.floor(x.max())
    index = np.empty(x.size, np.int64)
    # a table of all panels in the range takes linear time, unless the scores are too sparse for it to fit
    if high - low > 4.0 * x.size + 64.0:
        numbers = np.unique(np.floor(x))
        index[:] = np.searchsorted(numbers, np.floor(x))
        return numbers, index
    compact = np.zeros(int(high - low) + 1, np.int64)
    for i in range(x.size):
        index[i] = int(np.floor(x[i]) - low)
        compact[index[i]] = 1
    numbers = np.empty(compact.sum())
    found = 0
    for b in range(compact.size):
        if compact[b]:
            numbers[found] = low + b
            compact[b] = found
            found += 1
    for i in range(x.size):
        index[i] = compact[index[i]]
    return numbers, index


@kernel()
def _logistic_by_pairs(x, w, t, value, slope):
    for k in range(t.size):
        v, g = 0.0, 0.0
        for i in range(x.size):
            z = t[k] - x[i]
            e = math.exp(-abs(z))  # a negative exponent never overflows
            v += w[i] * (max(z, 0.0) + math.log1p(e))
            g += w[i] * (1.0 if z > 0.0 else e) / (1.0 + e)
        value[k] = v
        slope[k] = -g


@kernel()
def _logistic_by_panels(x, w, t, near, far, value, slope):
    source, x_panel = _panels(x)
    target, t_panel = _panels(t)
    moments = np.zeros((source.size, NODES))
    series = np.zeros((2, target.size, NODES))
    _moments(x, w, x_panel, source + 0.5, moments)
    _panels_to_panels(source, moments, target, near, far, series[0], series[1])
    _evaluate(t, t_panel, target + 0.5, series[0], 1.0, value)
    _evaluate(t, t_panel, target + 0.5, series[1], -1.0, slope)


@kernel()
def _logistic_groups(x, w, x_starts, t, t_starts, near, far, value, slope):
    for q in range(x_starts.size - 1):
        a, b, c, d = x_starts[q], x_starts[q + 1], t_starts[q], t_starts[q + 1]
        if (b - a) * (d - c) <= FEW_PAIRS * (b - a + d - c):
            _logistic_by_pairs(x[a:b], w[a:b], t[c:d], value[c:d], slope[c:d])
        else:
            _logistic_by_panels(x[a:b], w[a:b], t[c:d], near, far, value[c:d], slope[c:d])


class LogisticSums:
    """Sums of ``ln(1 + e^{−z})``, ``z = x_i − t_k``, to full double precision."""

    def __init__(self, x: np.ndarray, x_starts: np.ndarray, t: np.ndarray, t_starts: np.ndarray) -> None:
        self.x, self.t, self.x_starts, self.t_starts = x, t, x_starts, t_starts

    def forward(self, w: np.ndarray) -> PairSums:
        """Sum over the sources, with weights w, for each target."""
        value, slope = np.empty(len(self.t)), np.empty(len(self.t))
        _logistic_groups(self.x, w, self.x_starts, self.t, self.t_starts, _NEAR, _FAR, value, slope)
        return PairSums(value, slope)

    def backward(self, m: np.ndarray) -> np.ndarray:
        """Compute ``Σ_k m_k ℓ'(x_i − t_k)`` for each source."""
        mirrored = LogisticSums(-self.t, self.t_starts, -self.x, self.x_starts)
        return mirrored.forward(m).slope
