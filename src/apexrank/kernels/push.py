"""Local push: personalised PageRank from one vertex, or contributions to one vertex, touching a neighbourhood alone.

Andersen, Chung and Lang (2006) push along out-links, Andersen et al. (2008) against in-links. Mass is residual until
it is pushed: of what a vertex pushes, the share 1 − damping settles there, and the rest goes on as residual.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from apexrank.kernels.jit import kernel

UNTOUCHED, TOUCHED, WAITING = np.uint8(0), np.uint8(1), np.uint8(2)


class Pattern(NamedTuple):
    """Links in the direction of a push (CSR; weights may be empty), and the sums of out-weights they are shared by."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    out_weight: np.ndarray


class Workspace(NamedTuple):
    """Dense arrays of one thread. A push clears what the last one touched, so that its cost is that of a neighbourhood.

    ``counts`` are the numbers of touched vertices and of the additions made.
    """

    settled: np.ndarray
    residual: np.ndarray
    state: np.ndarray
    queue: np.ndarray
    touched: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, n: int) -> Workspace:
        """Return the workspace of a graph of n vertices."""
        masses = np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.uint8)
        return cls(*masses, np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(2, np.int64))


@kernel()
def begin(space, vertex):
    """Clear what was touched, and put a residual of 1 on a vertex."""
    for k in range(space.counts[0]):
        i = space.touched[k]
        space.settled[i] = space.residual[i] = 0.0
        space.state[i] = UNTOUCHED
    space.counts[0], space.counts[1] = 1, 0
    space.touched[0], space.residual[vertex], space.state[vertex] = vertex, 1.0, TOUCHED


@kernel()
def _sweep(pattern, space, damping, threshold, home):
    """Push, first come, first served, until no residual is above its threshold.

    Along out-links, ``home`` receives what leaves dangling vertices. Against in-links it is −1: walks end there.
    """
    # one loop, without calls: handing on the arrays of a tuple costs more than an addition
    indptr, indices, weights, out_weight = pattern
    settled, residual, state, queue, touched, counts = space
    forward, head, size, found, n = home >= 0, 0, 0, counts[0], len(queue)
    for k in range(found):
        queue[k], state[touched[k]] = touched[k], WAITING
    size = found
    while size > 0:
        i = queue[head]
        head = head + 1 if head + 1 < n else 0
        size -= 1
        state[i] = TOUCHED
        start, end = indptr[i], indptr[i + 1]
        # a push costs as much as there are links, so along them it must be worth that much
        if residual[i] <= (threshold * max(end - start, 1) if forward else threshold):
            continue
        mass = damping * residual[i]
        settled[i] += (1 - damping) * residual[i]
        residual[i] = 0.0
        counts[1] += end - start + 1
        dangling = start == end
        if forward:
            end = start + 1 if dangling else end
            mass = mass if dangling else mass / out_weight[i]
        for k in range(start, end):
            j = home if dangling else indices[k]
            share = mass if forward else mass / out_weight[j]
            if weights.size and not dangling:
                share *= weights[k]
            residual[j] += share
            if state[j] == UNTOUCHED:
                state[j] = TOUCHED
                touched[found] = j
                found += 1
            if state[j] == TOUCHED and residual[j] > threshold:
                state[j] = WAITING
                tail = head + size
                queue[tail if tail < n else tail - n] = j
                size += 1
    counts[0] = found


@kernel()
def push_out(pattern, space, seed, damping, tol):
    """Settle the personalised PageRank of a seed until at most ``tol`` of its mass is left; return what is left."""
    begin(space, seed)
    left, threshold = 1.0, tol
    while left > tol:
        _sweep(pattern, space, damping, threshold, seed)
        left = 0.0
        for k in range(space.counts[0]):
            left += space.residual[space.touched[k]]
        threshold *= 0.25
    return left


@kernel()
def push_in(pattern, space, damping, threshold):
    """Settle contributions to the vertex begun with until none is off by more than ``threshold``; return how much."""
    _sweep(pattern, space, damping, threshold, -1)
    off = 0.0
    for k in range(space.counts[0]):
        off = max(off, space.residual[space.touched[k]])
    return off


@kernel()
def capped_sums(pattern, space, teleport, ranks, damping, cap, tol, out, errors, first, last):
    """``Σ_u v_u·min(cap, c(u→i))`` for a range of vertices i, each within the share ``tol`` of itself.

    ``ranks`` are the sums without a cap. What the cap takes off is settled by sources near or above the cap, long
    before all small contributions are known: with each c off by at most ε, it lies between ``Σ v·(c − cap)₊`` and
    ``Σ v·(c + ε − cap)₊``.
    """
    for i in range(first, last):
        begin(space, i)
        threshold = 0.25 * cap
        while True:
            off = push_in(pattern, space, damping, threshold)
            least = most = 0.0
            for k in range(space.counts[0]):
                u = space.touched[k]
                least += teleport[u] * max(space.settled[u] - cap, 0.0)
                most += teleport[u] * max(space.settled[u] + off - cap, 0.0)
            if most - least <= tol * (ranks[i] - most) or threshold < 1e-12 * cap:
                break
            threshold *= 0.25
        out[i] = max(ranks[i] - 0.5 * (least + most), 0.0)
        errors[i] = 0.5 * (most - least)
