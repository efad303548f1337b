"""Sums over all orders by a dynamic programme over subsets: 2ⁿ·n steps instead of n!.

Bit i of a set's number says whether item i is in it. An order's weight is the product of those of its steps: placing
item j after the set S weighs ``exp(y_j·(f(S ∪ j) − f(S)))``, so that the whole order weighs ``exp(<y, h_σ>)``.
"""

from __future__ import annotations

from math import exp, log

import numpy as np

from apexrank.kernels.jit import kernel


@kernel()
def completions(scores, values):
    """Log of the summed weights of all ways to complete each set; entry 0 is the log normaliser."""
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
            total += exp(terms[k] - top)
        logs[s] = top + log(total)
    return logs


@kernel()
def order_marginals(scores, values, logs):
    """P(item j at rank k) as (items, ranks), and P(a before b) as (items, items)."""
    n = len(scores)
    reach = np.zeros(len(values))  # the chance that the first items of an order are these
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
    """Independent orders, one rank after the other by the completions' shares."""
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
