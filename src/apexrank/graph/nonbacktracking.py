"""PageRank of non-backtracking walks.

Let ``y_t(i→k)`` be the mass that crosses a link at step t. A walker that came from k does not go back to k, so that

    ``y_t(i→k) = w_ik·z_t(i) − b_ik·y_{t−1}(k→i)``,   ``b_ik = α·w_ik/(d_i − w_ik)``,

where z(i) is the mass that i passes on per unit of weight. Links without a reverse need no variable. For a reciprocal
link the reverse's mass is eliminated, ``y_{t−1}(k→i) = w_ki·z_{t−1}(k) − b_ki·y_{t−2}(i→k)``: so a link reads and
writes its own mass of two steps before, in order, without lookups.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from apexrank.graph.base import IteratedRank
from apexrank.graph.graph import Graph
from apexrank.graph.power import Fixpoint, Progress, Walk, rounding_of
from apexrank.kernels.csr import NO_WEIGHTS, InLinks
from apexrank.kernels.jit import kernel
from apexrank.validation import check_count

EXPLAINED_STEPS = 100  # α^100 is 1e-7 at the usual damping, precise enough to display


class Paths(NamedTuple):
    """In-links with a mask of the reciprocal ones; rows of the latter start at ``starts``.

    ``back`` are the weights of the reverse links, ``out`` the out-weights of the vertices; without weights both lists
    of weights are empty.
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    reciprocal: np.ndarray
    starts: np.ndarray
    back: np.ndarray
    out: np.ndarray


class State(NamedTuple):
    """Masses after a step: on vertices, from the teleport, passed on by each vertex, and on reciprocal links."""

    mass: np.ndarray
    fresh: np.ndarray
    handed: np.ndarray
    reciprocal: np.ndarray


class NonBacktrackingWalk(Walk):
    """Walk on links that never returns along the link it just crossed."""

    links: InLinks

    def __init__(self, graph: Graph, damping: float, teleport: np.ndarray, truncate: int) -> None:
        self.graph, self.damping, self.teleport, self.truncate = graph, damping, teleport, truncate
        self.links = InLinks(*graph._links)
        reciprocal, counts = np.empty(graph.n_edges, dtype=bool), np.empty(graph.n, dtype=np.int64)
        self.links.run(partial(mark_reciprocal, graph.indptr, graph.indices, reciprocal, counts))
        starts = np.concatenate([[0], np.cumsum(counts)])
        weights, back = NO_WEIGHTS, NO_WEIGHTS
        if graph.weights is not None:
            weights, back = graph.weights, np.empty(int(starts[-1]))
        self.paths = Paths(graph.indptr, graph.indices, weights, reciprocal, starts, back, graph.out_weight)
        if graph.weights is not None:
            self.links.run(partial(reverse_weights, self.paths))

    def states(self, teleport: np.ndarray) -> Iterator[State]:
        """Iterate over the states after 0, 1, 2, … steps; the masses of step t sum to damping^t."""
        graph, a, n = self.graph, self.damping, self.graph.n
        rate = np.divide(a, graph.out_weight, out=np.zeros(n), where=~graph.dangling)
        masses = np.zeros((2, int(self.paths.starts[-1])))
        fresh, passed, before, held = teleport, np.zeros(n), np.zeros(n), 0.0
        yield State(fresh, fresh, before, masses[0])
        for step in count(1):
            handed = passed + rate * fresh
            arrived, passed, stuck = np.empty(n), np.empty(n), np.empty(n)
            arrays = handed, before, masses[step % 2], arrived, passed, stuck
            self.links.run(partial(walk_on, self.paths, a, *arrays))
            fresh = a * (held + fresh[graph.dangling].sum()) * teleport
            held, before = stuck.sum(), handed
            yield State(arrived + fresh, fresh, handed, masses[step % 2])

    def solve(self, start: np.ndarray, tol: float, max_iter: int, progress: Progress | None) -> Fixpoint:
        """Sum the masses from step ``truncate`` on; ``start`` has no information about links and is ignored."""
        columns = self.teleport.reshape(self.graph.n, -1).T
        # the remainder after t steps is damping^(t + 1)/(1 − damping) of damping^truncate/(1 − damping)
        steps = 1 if self.damping == 0 else math.ceil(math.log(max(tol, 1e-300) / 4) / math.log(self.damping))
        steps = self.truncate + min(max_iter, max(steps, 1))
        found = np.stack([self._sum(column, steps, progress) for column in columns], axis=1)
        rounding = rounding_of(self.links) / (1 - self.damping)
        bound = 2 * self.damping ** (steps + 1 - self.truncate) + 2 * rounding
        return Fixpoint(found.reshape(self.teleport.shape), steps, bound <= tol, bound, math.nan, [])

    def _sum(self, teleport: np.ndarray, steps: int, progress: Progress | None) -> np.ndarray:
        total = np.zeros(self.graph.n)
        for step, state in enumerate(islice(self.states(teleport), steps + 1)):
            if step >= self.truncate:
                total += state.mass
            if progress is not None and step:
                progress(step, 2 * self.damping ** max(0, step + 1 - self.truncate))
        return total / (total.sum() or 1.0)

    def flows_into(self, r: np.ndarray, vertex: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sources of a vertex's in-links, their flows (teleport last), and their shares of the score."""
        sources, weights = self.graph.links_into(vertex)
        both = self.paths.reciprocal[self.graph.indptr[vertex] : self.graph.indptr[vertex + 1]]
        own = slice(self.paths.starts[vertex], self.paths.starts[vertex + 1])
        flows = np.zeros(len(sources) + 1)
        with self:
            for step, state in enumerate(islice(self.states(self.teleport), self.truncate + EXPLAINED_STEPS)):
                if step >= self.truncate:
                    flow = weights * state.handed[sources]
                    flow[both] = state.reciprocal[own]
                    flows += np.append(flow if step else 0 * flow, state.fresh[vertex])
        flows *= r[vertex] / (flows.sum() or 1.0)
        return sources, flows, flows / (flows.sum() or 1.0)


@dataclass(eq=False, repr=False)
class NonBacktrackingRank(IteratedRank):
    """PageRank of non-backtracking walks, without their first steps.

    A walker never returns along the link it just crossed, so that a page gains nothing by linking back to its boosters.
    The mass of its first ``truncate`` steps does not count, so that a booster's own link is worth nothing. Walkers that
    could only turn back, and those on dangling vertices, restart by the teleport. A self-loop is its own reverse and is
    crossed once. On a graph without reciprocal links ``truncate=0`` is PageRank.

    Farms of triangles, or with a page between the boosters and the target, evade both defences: see
    :class:`GuardedPageRank`, which resists more attacks.

    Parameters
    ----------
    truncate : int
        First step that counts.
    damping, tol, max_iter, verbose, callback
        As in :class:`PageRank`. ``tol`` determines the number of steps, which is the same for every graph.

    Attributes
    ----------
    scores_, names_, ranking_, error_bound_, converged_, n_iter_
        As in :class:`PageRank`.

    Notes
    -----
    A walker that has just crossed the link from j to i continues along any other link of i with probability
    ``α·w_ik/(d_i − w_ij)``. The mass left after t steps is α^t, which bounds the error. A reciprocal link needs two
    numbers, any other none. Scores of an earlier graph contain no information about the masses on links, so ``start``
    and ``warm_start`` do not save steps.

    Examples
    --------
    >>> from apexrank.graph.nonbacktracking import NonBacktrackingRank
    >>> sources = ["hub", "a", "b", *"stuvwxyz", *["farm"] * 8]   # eight boosters, linked back
    >>> targets = ["a", "b", "hub", *["farm"] * 8, *"stuvwxyz"]
    >>> NonBacktrackingRank().fit((sources, targets)).ranking_[:3].tolist()
    ['a', 'b', 'hub']
    """

    truncate: int = 2
    _: KW_ONLY
    damping: float = 0.85

    def _walk(self, graph: Graph, teleport: np.ndarray) -> NonBacktrackingWalk:
        check_count("truncate", self.truncate, 0)
        return NonBacktrackingWalk(graph, self.damping, teleport, int(self.truncate))


@kernel()
def mark_reciprocal(indptr, indices, found, counts, first, last):
    """Mark and count reciprocal links (by target, sources sorted); a self-loop is its own reverse."""
    for k in range(np.int64(first), np.int64(last)):
        counts[k] = 0
        for e in range(indptr[k], indptr[k + 1]):
            i = indices[e]
            at = indptr[i] + np.searchsorted(indices[indptr[i] : indptr[i + 1]], k)
            found[e] = at < indptr[i + 1] and indices[at] == k
            counts[k] += found[e]


@kernel()
def reverse_weights(paths, first, last):
    """Fill in the weight of the reverse of each reciprocal link, in order."""
    indptr, indices, weights, reciprocal, starts, back, _ = paths
    for k in range(np.int64(first), np.int64(last)):
        q = starts[k]
        for e in range(indptr[k], indptr[k + 1]):
            if reciprocal[e]:
                i = indices[e]
                back[q] = weights[indptr[i] + np.searchsorted(indices[indptr[i] : indptr[i + 1]], k)]
                q += 1


@kernel()
def walk_on(paths, damping, z, z_before, y, arrived, handed, stuck, first, last):
    """Take one step for the rows ``first`` to ``last``.

    ``y`` holds the masses of reciprocal links two steps before and is overwritten. ``arrived`` is the mass on each
    vertex, ``handed`` its new z without teleports, ``stuck`` the mass that cannot continue.
    """
    indptr, indices, weights, reciprocal, starts, back, out = paths
    for k in range(np.int64(first), np.int64(last)):
        free = turning = lost = passed = 0.0
        q = starts[k]
        for e in range(indptr[k], indptr[k + 1]):
            i = indices[e]
            w = weights[e] if weights.size else 1.0
            if not reciprocal[e]:
                free += w * z[i]
                continue
            v = back[q] if weights.size else 1.0
            rest_i, rest_k = out[i] - w, out[k] - v
            reverse = v * z_before[k]
            if rest_k > 0.0:
                reverse -= damping * v / rest_k * y[q]
            mass = w * z[i]
            if rest_i > 0.0:
                mass -= damping * w / rest_i * reverse
            mass = max(mass, 0.0)  # if all of i's mass came from k, only rounding errors are left
            y[q] = mass
            q += 1
            turning += mass
            if rest_k > 0.0:
                passed += mass / rest_k
            else:
                lost += mass
        if out[k] > 0.0:
            passed += free / out[k]
        else:
            lost += free
        arrived[k] = free + turning
        handed[k] = damping * passed
        stuck[k] = lost
