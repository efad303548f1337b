"""PageRank of walks that do not turn back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np

from apexrank.graph.base import IteratedRank
from apexrank.graph.graph import Graph
from apexrank.graph.power import Fixpoint, Progress, Walk, rounding_of
from apexrank.kernels.csr import NO_WEIGHTS, InLinks
from apexrank.kernels.jit import kernel
from apexrank.validation import check_count

EXPLAINED_STEPS = 100  # α^100 is 1e-7 at the usual damping: more digits than anybody reads


class State(NamedTuple):
    """Masses after a step: on vertices, of it by teleport; handed on by each, and on reciprocal links, in the step."""

    mass: np.ndarray
    fresh: np.ndarray
    handed: np.ndarray
    reciprocal: np.ndarray


class NonBacktrackingWalk(Walk):
    """Walkers who live on links, and never go back along the link they came by."""

    links: InLinks

    def __init__(self, graph: Graph, damping: float, teleport: np.ndarray, truncate: int) -> None:
        self.graph, self.damping, self.teleport, self.truncate = graph, damping, teleport, truncate
        self.links = InLinks(graph.indptr, graph.indices, graph.weights)
        self.reciprocal = np.empty(graph.n_edges, dtype=bool)
        counts = np.empty(graph.n, dtype=np.int64)
        found = graph.indptr, graph.indices, self.reciprocal, counts
        self.links.run(lambda a, b: mark_reciprocal(*found, int(a), int(b)))
        self.starts = np.concatenate([[0], np.cumsum(counts)])
        self.back = NO_WEIGHTS
        if graph.weights is not None:
            self.back = np.empty(int(self.starts[-1]))
            pattern = graph.indptr, graph.indices, graph.weights, self.reciprocal, self.starts, self.back
            self.links.run(lambda a, b: reverse_weights(*pattern, int(a), int(b)))

    def states(self, teleport: np.ndarray) -> Iterator[State]:
        """States after 0, 1, 2, … steps; the masses of step t sum to damping^t."""
        graph, a, n = self.graph, self.damping, self.graph.n
        weights = NO_WEIGHTS if graph.weights is None else graph.weights
        pattern = (
            graph.indptr,
            graph.indices,
            weights,
            self.reciprocal,
            self.starts,
            self.back,
            graph.out_weight,
        )
        rate = np.divide(a, graph.out_weight, out=np.zeros(n), where=~graph.dangling)
        masses = np.zeros(int(self.starts[-1])), np.zeros(int(self.starts[-1]))
        fresh, passed, before, held = teleport, np.zeros(n), np.zeros(n), 0.0
        yield State(fresh, fresh, before, masses[0])
        for step in count(1):
            handed = passed + rate * fresh
            arrived, passed, stuck = np.empty(n), np.empty(n), np.empty(n)
            arrays = handed, before, masses[step % 2], arrived, passed, stuck
            self.links.run(partial(_rows, pattern, a, arrays))
            fresh = a * (held + fresh[graph.dangling].sum()) * teleport
            held, before = stuck.sum(), handed
            yield State(arrived + fresh, fresh, handed, masses[step % 2])

    def solve(self, start: np.ndarray, tol: float, max_iter: int, progress: Progress | None) -> Fixpoint:
        """Add up the masses from step ``truncate`` on; ``start`` says nothing about links and is not used."""
        columns = self.teleport.reshape(self.graph.n, -1).T
        # what is left after t steps is damping^(t + 1)/(1 − damping) of damping^truncate/(1 − damping)
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
        """Sources of the links into a vertex; what flows through each, the teleport last; their shares of the score."""
        graph = self.graph
        inside = slice(graph.indptr[vertex], graph.indptr[vertex + 1])
        sources, both = graph.indices[inside], self.reciprocal[inside]
        weights = np.ones(len(sources)) if graph.weights is None else graph.weights[inside]
        own = slice(self.starts[vertex], self.starts[vertex + 1])
        flows = np.zeros(len(sources) + 1)
        with self:
            for step, state in enumerate(islice(self.states(self.teleport), self.truncate + EXPLAINED_STEPS)):
                if step >= self.truncate:
                    flow = weights * state.handed[sources]
                    flow[both] = state.reciprocal[own]
                    flows += np.append(flow if step else 0 * flow, state.fresh[vertex])
        flows *= r[vertex] / (flows.sum() or 1.0)
        return sources, flows, flows / (flows.sum() or 1.0)


def _rows(pattern: tuple[Any, ...], damping: float, arrays: tuple[Any, ...], first: Any, last: Any) -> None:
    walk_on(*pattern, damping, *arrays, int(first), int(last))


@dataclass(eq=False, repr=False)
class NonBacktrackingRank(IteratedRank):
    """PageRank of walks that do not turn back, without their first steps.

    A walker never goes back along the link it came by, so that a page gains nothing by linking back to its boosters;
    what it carries during its first ``truncate`` steps does not count, so that a booster's own link counts for nothing.
    Walkers who can only turn back, and those on dangling vertices, start anew by the teleport. A self-loop is its own
    reverse, and is crossed once. On a graph without reciprocal links ``truncate=0`` is PageRank.

    Farms made of triangles, or with a page between the boosters and the target, go round both: see
    :class:`GuardedPageRank`, which holds against more attacks.

    Parameters
    ----------
    truncate : int
        First step that counts.
    damping, tol, max_iter, verbose, callback
        As in :class:`PageRank`. ``tol`` decides the number of steps, which is the same for every graph.

    Attributes
    ----------
    scores_, names_, ranking_, error_bound_, converged_, n_iter_
        As in :class:`PageRank`.

    Notes
    -----
    A walker that has just crossed the link from j to i goes on along any other link of i with probability
    ``α·w_ik/(d_i − w_ij)``. The mass left after t steps is α^t, which bounds the error. A reciprocal link needs two
    numbers, any other none. Scores of an earlier graph say nothing of the masses on links, so ``start`` and
    ``warm_start`` do not save steps.

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
    """Mark and count the links (by target, sources sorted) whose reverse exists; a self-loop is its own reverse."""
    for k in range(first, last):
        counts[k] = 0
        for e in range(indptr[k], indptr[k + 1]):
            i = indices[e]
            at = indptr[i] + np.searchsorted(indices[indptr[i] : indptr[i + 1]], k)
            found[e] = at < indptr[i + 1] and indices[at] == k
            counts[k] += found[e]


@kernel()
def reverse_weights(indptr, indices, weights, reciprocal, starts, back, first, last):
    """Weight of the reverse of every reciprocal link, in their order; ``starts`` says where a row's begin."""
    for k in range(first, last):
        q = starts[k]
        for e in range(indptr[k], indptr[k + 1]):
            if reciprocal[e]:
                i = indices[e]
                back[q] = weights[indptr[i] + np.searchsorted(indices[indptr[i] : indptr[i + 1]], k)]
                q += 1


@kernel()
def walk_on(
    indptr,
    indices,
    weights,
    reciprocal,
    starts,
    back,
    out,
    damping,
    z,
    z_before,
    y,
    arrived,
    handed,
    stuck,
    first,
    last,
):
    """One step for the rows ``first`` to ``last``.

    ``y`` holds the masses of reciprocal links two steps before and is overwritten. ``arrived`` is the mass on each
    vertex, ``handed`` its new z without teleports, ``stuck`` the mass that has nowhere to go on to.
    """
    for k in range(first, last):
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
            mass = max(mass, 0.0)  # where all of i's mass came from k, rounding is all that is left
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
