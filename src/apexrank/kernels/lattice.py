"""Sums over all maximal chains of a lattice of subsets, items of one kind counted together.

A state says how many items of each kind are in the set: number s has the digits ``s // strides[g] % (counts[g] + 1)``,
so larger sets have larger numbers. There are ``counts[g] − digit`` ways to add an item of kind g. With
``M = diag(−θ·cost) + (ways up)`` on the states, the entry (empty, full) of ``exp(M)`` is the sum over the n! chains of
the divided differences of exp at the values along each.
"""

from __future__ import annotations

import numpy as np

from apexrank.kernels.jit import kernel


@kernel()
def _step_down(digits, counts):
    """Digits of the state below."""
    for g in range(len(digits)):
        if digits[g] > 0:
            digits[g] -= 1
            return
        digits[g] = counts[g]


@kernel()
def resolvent(z, theta, cost, counts, strides, scale, out):
    """Entry (empty, full) of ``(z − M)⁻¹`` and its first two derivatives in θ, by back substitution.

    Every way up is multiplied by ``scale``; ``out`` is room for (states, 3) complex numbers.
    """
    digits = counts.copy()
    for s in range(len(cost) - 1, -1, -1):
        value = 1.0 + 0j if s == len(cost) - 1 else 0j
        slope = 0j
        bend = 0j
        for g in range(len(counts)):
            left = counts[g] - digits[g]
            if left > 0:
                up = s + strides[g]
                value += left * scale * out[up, 0]
                slope += left * scale * out[up, 1]
                bend += left * scale * out[up, 2]
        inverse = 1.0 / (z + theta * cost[s])
        out[s, 0] = value * inverse
        out[s, 1] = (slope - cost[s] * out[s, 0]) * inverse
        out[s, 2] = (bend - 2.0 * cost[s] * out[s, 1]) * inverse
        _step_down(digits, counts)
    return out[0, 0], out[0, 1], out[0, 2]


@kernel()
def uniformised_powers(theta, rate, cost, counts, strides, n_powers):
    """``(I + M/rate)^k e_full`` as (states, n_powers + 1), no entry negative where ``rate ≥ θ·max cost``."""
    states = len(cost)
    powers = np.zeros((states, n_powers + 1))
    powers[states - 1, 0] = 1.0
    digits = counts.copy()
    for s in range(states - 1, -1, -1):
        for g in range(len(counts)):
            ways = (counts[g] - digits[g]) / rate
            if ways > 0.0:
                up = s + strides[g]
                for k in range(n_powers):
                    powers[s, k + 1] += ways * powers[up, k]
        stay = max(0.0, 1.0 - theta * cost[s] / rate)
        for k in range(n_powers):
            powers[s, k + 1] += stay * powers[s, k]
        _step_down(digits, counts)
    return powers


@kernel()
def draw_levels(theta, rate, cost, counts, strides, powers, lengths, rng):
    """Kinds of the items from the top down and their scores, for each number of events in ``lengths``.

    A path of ``length`` events goes from the empty set to the full one; events lie at sorted uniform times, and an item
    that joins at time t has the score 1 − t.
    """
    n = counts.sum()
    kinds = np.empty((len(lengths), n), dtype=np.int64)
    scores = np.empty((len(lengths), n))
    for i in range(len(lengths)):
        times = np.sort(rng.random(lengths[i]))
        left = counts.copy()
        s = 0
        found = 0
        for event in range(lengths[i]):
            k = lengths[i] - event
            at = rng.random() * powers[s, k]
            at -= max(0.0, 1.0 - theta * cost[s] / rate) * powers[s, k - 1]
            if at < 0.0:
                continue
            chosen = -1
            for g in range(len(counts)):
                if left[g] == 0:
                    continue
                chance = left[g] / rate * powers[s + strides[g], k - 1]
                if chance > 0.0:  # rounding must not lead where no path goes on
                    chosen = g
                    at -= chance
                    if at < 0.0:
                        break
            if chosen < 0:  # rounding again: staying was the only way
                continue
            kinds[i, found] = chosen
            scores[i, found] = 1.0 - times[event]
            found += 1
            left[chosen] -= 1
            s += strides[chosen]
    return kinds, scores
