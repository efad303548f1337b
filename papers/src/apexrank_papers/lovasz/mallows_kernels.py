"""Sums over orders and samplers for the Lovász–Mallows model (Iyer and Bilmes 2013).

* Chains: Gibbs sweeps over scores and Metropolis swaps of orders, for f that depends only on the size of a set.
* Orders: sums over all n! orders by a dynamic programme over subsets, in 2ⁿ·n steps. Bit i of a set's number tells
  whether item i is in it. Placing item j after the set S has weight ``exp(y_j·(f(S ∪ j) − f(S)))``, so that an order
  has weight ``exp(<y, h_σ>)``.
* Lattice: sums over all maximal chains of a lattice of subsets, with items of one kind counted together. A state is the
  number of items of each kind in the set: state s has the digits ``s // strides[g] % (counts[g] + 1)``, so larger sets
  have larger numbers. There are ``counts[g] − digit`` ways to add an item of kind g. With
  ``M = diag(−θ·cost) + (ways up)`` on the states, the entry (empty, full) of ``exp(M)`` is the sum over the n! chains
  of the divided differences of exp at the values along each.
"""

from __future__ import annotations

from math import exp, log

import numpy as np

from apexrank.kernels.jit import kernel

# ---------------------------------------------------------------- chains


@kernel()
def _truncated_exponential(slope, width, rng):
    """Draw from [0, width] with density ∝ exp(slope·v)."""
    steep = abs(slope) * width
    u = rng.random()
    if steep < 1e-8:  # uniform up to rounding; the formula below would be 0/0
        return u * width
    # distance from the heavier end
    away = min(width, -log(1.0 - u * (1.0 - exp(-steep))) / abs(slope))
    return width - away if slope > 0 else away


@kernel()
def _redraw(ends, own_gain, theta, gains, rng, heights, masses):
    """Redraw one score given the others; its log-density ``−θ(f̂ − δ_i v)`` is concave and piecewise linear.

    ``ends`` are the others, decreasing, between 1 and 0.
    """
    n = len(gains)
    # heights at the others' scores, from the lowest up, relative to that at 0: between two of them the log-density is
    # linear, with a slope that depends on the number of scores above
    heights[n] = 0.0
    highest = 0.0
    for p in range(n - 1, -1, -1):  # p other scores lie above
        heights[p] = heights[p + 1] + theta * (own_gain - gains[p]) * (ends[p] - ends[p + 1])
        highest = max(highest, heights[p])
    total = 0.0
    for p in range(n):
        width = ends[p] - ends[p + 1]
        steep = abs(theta * (own_gain - gains[p])) * width
        # mass of a piece: width times the higher density of its ends times (1 − e^−s)/s, which never overflows
        share = 1.0 if steep < 1e-8 else (1.0 - exp(-steep)) / steep
        masses[p] = width * share * exp(max(heights[p], heights[p + 1]) - highest)
        total += masses[p]
    at = rng.random() * total
    chosen = 0
    for p in range(n):
        if masses[p] > 0.0:  # if rounding leaves a remainder, use the last piece with any mass
            chosen = p
            at -= masses[p]
            if at < 0.0:
                break
    low, slope = ends[chosen + 1], theta * (own_gain - gains[chosen])
    return low + _truncated_exponential(slope, ends[chosen] - low, rng)


@kernel()
def gibbs_sweeps(scores, theta, gains, sweeps, rng):
    """Redraw every score of every row ``sweeps`` times in place; column j is the item of rank j.

    Return the divergence of each row after each sweep, (sweeps, rows).
    """
    rows, n = scores.shape
    found = np.empty((sweeps, rows))
    heights = np.empty(n + 1)
    masses = np.empty(n)
    for r in range(rows):
        x = scores[r]
        falling = np.sort(x)[::-1].copy()
        ends = np.ones(n + 1)
        ends[n] = 0.0
        others = ends[1:n]
        for t in range(sweeps):
            for i in range(n):
                p = 0
                while falling[p] != x[i]:
                    p += 1
                others[:p] = falling[:p]
                others[p:] = falling[p + 1 :]
                x[i] = _redraw(ends, gains[i], theta, gains, rng, heights, masses)
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
    """Run a Metropolis chain over orders with density ∝ exp(Σ_j gains[j]·scores[order[j]]), starting at ``order``.

    Half of the proposals swap neighbours, half any two ranks, which may be equal: a swap changes the parity of an
    order, so a chain that swapped in every step would see only orders of one parity at even steps. Return every
    ``thin``-th order, its log-density relative to the start and the number of accepted changes.
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
        # Σ gains·scores changes in two places only: O(1) per step
        change = (scores[order[b]] - scores[order[a]]) * (gains[a] - gains[b])
        if change >= 0.0 or rng.random() < exp(change):
            order[a], order[b] = order[b], order[a]
            height += change
            accepted += a != b
        if (step + 1) % thin == 0:
            kept[(step + 1) // thin - 1] = order
            heights[(step + 1) // thin - 1] = height
    return kept, heights, accepted


# ---------------------------------------------------------------- orders


@kernel()
def completions(scores, values):
    """Compute the log of the total weight of all completions of each set; entry 0 is the log normaliser."""
    n = len(scores)
    logs = np.zeros(len(values))
    terms = np.empty(n)
    for s in range(len(values) - 2, -1, -1):
        top = -np.inf
        m = 0
        for j in range(n):
            if not (s >> j) & 1:
                up = s | (1 << j)
                terms[m] = scores[j] * (values[up] - values[s]) + logs[up]
                top = max(top, terms[m])
                m += 1
        total = 0.0
        for k in range(m):
            total += exp(
                terms[k] - top
            )  # relative to the largest term: no overflow, and the sum is at least 1
        logs[s] = top + log(total)
    return logs


@kernel()
def order_marginals(scores, values, logs):
    """Compute P(item j at rank k) as (items, ranks), and P(a before b) as (items, items)."""
    n = len(scores)
    reach = np.zeros(len(values))  # probability that an order starts with these items
    reach[0] = 1.0
    ranks = np.zeros((n, n))
    before = np.zeros((n, n))
    for s in range(len(values) - 1):
        if reach[s] == 0.0:
            continue
        size = 0
        for j in range(n):
            size += (s >> j) & 1
        for j in range(n):
            if (s >> j) & 1:
                continue
            up = s | (1 << j)
            chance = reach[s] * exp(scores[j] * (values[up] - values[s]) + logs[up] - logs[s])
            reach[up] += chance
            ranks[j, size] += chance
            for b in range(n):
                if not (up >> b) & 1:
                    before[j, b] += chance
    return ranks, before


@kernel()
def draw_orders(scores, values, logs, n_samples, rng):
    """Draw independent orders, rank by rank, in proportion to the completions."""
    n = len(scores)
    orders = np.empty((n_samples, n), dtype=np.int64)
    for i in range(n_samples):
        s = 0
        for rank in range(n):
            at = rng.random()
            chosen = -1
            for j in range(n):
                if not (s >> j) & 1:
                    up = s | (1 << j)
                    chance = exp(scores[j] * (values[up] - values[s]) + logs[up] - logs[s])
                    if chance > 0.0 or chosen < 0:
                        chosen = j
                    at -= chance
                    if at < 0.0:
                        break
            orders[i, rank] = chosen
            s |= 1 << chosen
    return orders


# ---------------------------------------------------------------- lattice


@kernel()
def _step_down(digits, counts):
    """Decrement the digits to those of the previous state."""
    for g in range(len(digits)):
        if digits[g] > 0:
            digits[g] -= 1
            return
        digits[g] = counts[g]


@kernel()
def resolvent(z, theta, cost, counts, strides, scale, out):
    """Compute the entry (empty, full) of ``(z − M)⁻¹`` and its first two derivatives in θ, by back substitution.

    Every transition is multiplied by ``scale``; ``out`` is a buffer of (states, 3) complex numbers.
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
        # M is upper triangular in the order of the states, so entries are computed from the full set down
        inverse = 1.0 / (z + theta * cost[s])
        out[s, 0] = value * inverse
        out[s, 1] = (slope - cost[s] * out[s, 0]) * inverse
        out[s, 2] = (bend - 2.0 * cost[s] * out[s, 1]) * inverse
        _step_down(digits, counts)
    return out[0, 0], out[0, 1], out[0, 2]


@kernel()
def uniformised_powers(theta, rate, cost, counts, strides, n_powers):
    """Compute ``(I + M/rate)^k e_full`` as (states, n_powers + 1), non-negative if ``rate ≥ θ·max cost``."""
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
        stay = max(0.0, 1.0 - theta * cost[s] / rate)  # uniformisation: terms never cancel
        for k in range(n_powers):
            powers[s, k + 1] += stay * powers[s, k]
        _step_down(digits, counts)
    return powers


@kernel()
def draw_levels(theta, rate, cost, counts, strides, powers, lengths, rng):
    """Draw the kinds of the items from the top down and their scores, for each number of events in ``lengths``.

    A path of ``length`` events leads from the empty set to the full one; events lie at sorted uniform times, and an
    item that joins at time t has the score 1 − t.
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
                if chance > 0.0:  # rounding must not lead to a dead end
                    chosen = g
                    at -= chance
                    if at < 0.0:
                        break
            if chosen < 0:  # by rounding; staying was the only option
                continue
            kinds[i, found] = chosen
            scores[i, found] = 1.0 - times[event]
            found += 1
            left[chosen] -= 1
            s += strides[chosen]
    return kinds, scores
