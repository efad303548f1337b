"""Markov chains of the Lovász–Mallows model where f depends on the size of a set alone: scores and orders."""

from __future__ import annotations

from math import exp, log

import numpy as np

from apexrank.kernels.jit import kernel


@kernel()
def _truncated_exponential(slope, width, rng):
    """A draw from [0, width] with density ∝ exp(slope·v)."""
    steep = abs(slope) * width
    u = rng.random()
    if steep < 1e-8:
        return u * width
    # distance from the heavier end
    away = min(width, -log(1.0 - u * (1.0 - exp(-steep))) / abs(slope))
    return width - away if slope > 0 else away


@kernel()
def _redraw(others, own_gain, theta, gains, rng, heights, masses):
    """One score given the others (falling): its log-density ``−θ(f̂ − δ_i v)`` is concave, linear between them."""
    n = len(gains)
    heights[n] = 0.0
    highest = 0.0
    for p in range(n - 1, -1, -1):  # p others lie above the score
        low = others[p] if p < n - 1 else 0.0
        high = others[p - 1] if p > 0 else 1.0
        heights[p] = heights[p + 1] + theta * (own_gain - gains[p]) * (high - low)
        highest = max(highest, heights[p])
    total = 0.0
    for p in range(n):
        low = others[p] if p < n - 1 else 0.0
        high = others[p - 1] if p > 0 else 1.0
        steep = abs(theta * (own_gain - gains[p])) * (high - low)
        share = 1.0 if steep < 1e-8 else (1.0 - exp(-steep)) / steep
        masses[p] = (high - low) * share * exp(max(heights[p], heights[p + 1]) - highest)
        total += masses[p]
    at = rng.random() * total
    chosen = 0
    for p in range(n):
        if masses[p] > 0.0:
            chosen = p
            at -= masses[p]
            if at < 0.0:
                break
    low = others[chosen] if chosen < n - 1 else 0.0
    high = others[chosen - 1] if chosen > 0 else 1.0
    return low + _truncated_exponential(theta * (own_gain - gains[chosen]), high - low, rng)


@kernel()
def gibbs_sweeps(scores, theta, gains, sweeps, rng):
    """Redraw every score of every row ``sweeps`` times, in place; column j has rank j in the order.

    Returns the divergence of each row after each sweep, (sweeps, rows).
    """
    rows, n = scores.shape
    found = np.empty((sweeps, rows))
    heights = np.empty(n + 1)
    masses = np.empty(n)
    for r in range(rows):
        x = scores[r]
        falling = np.sort(x)[::-1].copy()
        others = np.empty(n - 1)
        for t in range(sweeps):
            for i in range(n):
                p = 0
                while falling[p] != x[i]:
                    p += 1
                others[:p] = falling[:p]
                others[p:] = falling[p + 1 :]
                x[i] = _redraw(others, gains[i], theta, gains, rng, heights, masses)
                p = 0
                while p < n - 1 and others[p] > x[i]:
                    falling[p] = others[p]
                    p += 1
                falling[p] = x[i]
                falling[p + 1 :] = others[p:]
            total = 0.0
            for j in range(n):
                total += (falling[j] - x[j]) * gains[j]
            found[t, r] = total
    return found


@kernel()
def swap_chain(order, scores, gains, steps, thin, rng):
    """Metropolis chain over orders with density ∝ exp(Σ_j gains[j]·scores[order[j]]); ``order`` is where it starts.

    Half of the proposals swap neighbours, half any two ranks, which may be one and the same: a swap changes the parity
    of an order, so a chain that swapped in every step would see orders of one parity at all even steps. Returns every
    ``thin``-th order, its log-density relative to the start and the number of steps that changed the order.
    """
    n = len(order)
    kept = np.empty((steps // thin, n), dtype=np.int64)
    heights = np.empty(steps // thin)
    height = 0.0
    accepted = 0
    for step in range(steps):
        if rng.random() < 0.5:
            a = rng.integers(0, n - 1)
            b = a + 1
        else:
            a = rng.integers(0, n)
            b = rng.integers(0, n)
        change = (scores[order[b]] - scores[order[a]]) * (gains[a] - gains[b])
        if change >= 0.0 or rng.random() < exp(change):
            order[a], order[b] = order[b], order[a]
            height += change
            accepted += a != b
        if (step + 1) % thin == 0:
            kept[(step + 1) // thin - 1] = order
            heights[(step + 1) // thin - 1] = height
    return kept, heights, accepted
