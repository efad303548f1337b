"""PageRank of non-backtracking walks.

Let ``y_t(j→i)`` be the mass that crosses a link at step t. A walker that came from j goes on to any other neighbour, so
that

    ``y_{t+1}(i→k) = w_ik·(Σ_{j≠k} α·y_t(j→i)/(d_i − w_ij) + α·fresh_t(i)/d_i)``.

The sum over all j but one is a sum of two, of those before and after k in the row of i. Subtracting k's term from the
total would be simpler, but where most of the mass at i came from k only rounding errors would remain, and a link that
holds most of the out-weight at both of its ends multiplies them in every step. Without subtractions every mass is
accurate relative to itself. Links without a reverse need no number of their own: they all get the total.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import count, islice
from typing import ClassVar, NamedTuple

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.base import IteratedRank
from apexrank.graph.graph import Graph
from apexrank.graph.power import Fixpoint, Progress, Walk, rounding_of
from apexrank.kernels.csr import NO_WEIGHTS, InLinks
from apexrank.kernels.edges import column_weights, index_type
from apexrank.kernels.jit import kernel
from apexrank.parameters import whole

EPS = float(np.finfo(float).eps)
EXPLAINED_STEPS = 100  # α^100 is 1e-7 at the usual damping, precise enough to display


class Paths(NamedTuple):
    """In-links with a mask of the reciprocal ones; rows of the latter start at ``starts``.

    ``reverse`` is the number of each reciprocal link's reverse, ``rest`` the out-weight that is left to a walker who
    crossed it, ``out`` the out-weights of the vertices. Without weights ``weights`` and ``rest`` are empty.
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    reciprocal: np.ndarray
    starts: np.ndarray
    reverse: np.ndarray
    rest: np.ndarray
    out: np.ndarray


class State(NamedTuple):
    """Masses after a step: on vertices and from the teleport; and per unit of weight of the links of that step.

    ``total`` is what a vertex passes along links without a reverse, ``started`` its part from the teleport, and
    ``others`` what is added to that part along a link with a reverse, stored with the reverse.
    """

    mass: np.ndarray
    fresh: np.ndarray
    total: np.ndarray
    started: np.ndarray
    others: np.ndarray


class NonBacktrackingWalk(Walk):
    """Walk on links that never returns along the link it just crossed."""

    links: InLinks

    def __init__(self, graph: Graph, damping: float, teleport: np.ndarray, truncate: int) -> None:
        self.graph, self.damping, self.teleport, self.truncate = graph, damping, teleport, truncate
        links = InLinks(*graph._links)
        unit = links.weight_range[1]
        self.links, self.out_weight = links.divided(unit), graph.out_weight / unit
        reciprocal, counts = np.empty(graph.n_edges, dtype=bool), np.empty(graph.n, dtype=np.int64)
        self.links.run(partial(mark_reciprocal, graph.indptr, graph.indices, reciprocal, counts))
        starts = np.concatenate([[0], np.cumsum(counts)])
        weights, size, light = self.links.weights, int(starts[-1]), NO_WEIGHTS
        if weights.size:
            # where one link has more than half of the out-weight, the sum of the others, not a difference, is exact
            few = np.where(2 * weights <= self.out_weight[graph.indices], weights, 0.0)
            light = column_weights(graph._links._replace(weights=few))
        reverse, rest = np.empty(size, index_type(size)), np.empty(size if weights.size else 0)
        pattern = graph.indptr, graph.indices, weights, reciprocal, starts
        self.paths = Paths(*pattern, reverse, rest, self.out_weight)
        numbers = np.cumsum(reciprocal, dtype=reverse.dtype)
        self.links.run(partial(find_reverse, self.paths, numbers, light))
        # products and quotients, and the addition of two partial sums, next to those that rounding_of counts
        self.rounding = rounding_of(self.links) + 8 * EPS

    def states(self, teleport: np.ndarray) -> Iterator[State]:
        """Iterate over the states after 0, 1, 2, … steps; the masses of step t sum to ``damping^(t − truncate)``.

        The masses of the steps before ``truncate``, which do not count, sum to 1: damped, they could underflow.
        """
        graph, n = self.graph, self.graph.n
        per_weight = np.divide(1.0, self.out_weight, out=np.zeros(n), where=~graph.dangling)
        others = np.zeros((2, len(self.paths.reverse)))
        fresh, passed, nothing, held = teleport, np.zeros(n), np.zeros(n), 0.0
        yield State(fresh, fresh, nothing, nothing, others[0])
        for step in count(1):
            a, next_a = (1.0 if t <= self.truncate else self.damping for t in (step, step + 1))
            started = a * (per_weight * fresh)
            total, before, after = passed + started, others[(step - 1) % 2], others[step % 2]
            arrived, passed, stuck = np.empty(n), np.empty(n), np.empty(n)
            arrays = total, started, before, after, arrived, passed, stuck
            self.links.run(partial(walk_on, self.paths, next_a, *arrays))
            fresh = a * (held + fresh[graph.dangling].sum()) * teleport
            held = stuck.sum()
            yield State(arrived + fresh, fresh, total, started, before)

    def solve(self, start: np.ndarray, tol: float, max_iter: int, progress: Progress | None) -> Fixpoint:
        """Sum the masses from step ``truncate`` on; ``start`` has no information about links and is ignored."""
        columns = self.teleport.reshape(self.graph.n, -1).T
        # the remainder after t steps is damping^(t + 1)/(1 − damping) of damping^truncate/(1 − damping)
        steps = 1 if self.damping == 0 else math.ceil(math.log(max(tol, 1e-300) / 4) / math.log(self.damping))
        steps = self.truncate + min(max_iter, max(steps, 1))
        found = np.stack([self._sum(column, steps, progress) for column in columns], axis=1)
        # the relative error of a mass grows with its steps, on average truncate + 1/(1 − damping)
        rounding = self.rounding * (self.truncate + 1 / (1 - self.damping)) + steps * EPS
        bound = 2 * self.damping ** (steps + 1 - self.truncate) + 2 * rounding
        return Fixpoint(found.reshape(self.teleport.shape), steps, bound <= tol, bound, math.nan, [])

    def _sum(self, teleport: np.ndarray, steps: int, progress: Progress | None) -> np.ndarray:
        total = np.zeros(self.graph.n)
        for step, state in enumerate(islice(self.states(teleport), steps + 1)):
            if step >= self.truncate:
                total += state.mass
            if progress is not None and step:
                progress(step, 2 * self.damping ** max(0, step + 1 - self.truncate))
        if not np.isfinite(total).all():
            raise InputError("the scores are no longer finite: weights of links are too far apart")
        return total / (total.sum() or 1.0)

    def flows_into(self, r: np.ndarray, vertex: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sources of a vertex's in-links, their flows (teleport last), and their shares of the score."""
        sources, weights = self.graph.links_into(vertex)
        both = self.paths.reciprocal[self.graph.indptr[vertex] : self.graph.indptr[vertex + 1]]
        reverse = self.paths.reverse[self.paths.starts[vertex] : self.paths.starts[vertex + 1]]
        weights = weights * (self.out_weight[sources] / self.graph.out_weight[sources])
        flows = np.zeros(len(sources) + 1)
        with self:
            for step, state in enumerate(islice(self.states(self.teleport), self.truncate + EXPLAINED_STEPS)):
                if step >= self.truncate:
                    onward = state.total[sources]
                    onward[both] = state.others[reverse] + state.started[sources[both]]
                    flows += np.append(weights * onward, state.fresh[vertex])
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
    ``α·w_ik/(d_i − w_ij)``. The mass left after t steps is α^t, which bounds the error. A reciprocal link needs three
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

    _parameter_constraints: ClassVar[dict] = IteratedRank._parameter_constraints | {"truncate": [whole(0)]}

    truncate: int = 2
    _: KW_ONLY
    damping: float = 0.85

    def _walk(self, graph: Graph, teleport: np.ndarray) -> NonBacktrackingWalk:
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
def find_reverse(paths, numbers, light, first, last):
    """Fill in the reverse of each reciprocal link, and the out-weight left to a walker who must not take it.

    ``numbers`` count the reciprocal links up to each link. ``light`` is the out-weight of each vertex in links with at
    most half of it.
    """
    indptr, indices, weights, reciprocal, starts, reverse, rest, out = paths
    for k in range(np.int64(first), np.int64(last)):
        q = starts[k]
        for e in range(indptr[k], indptr[k + 1]):
            if reciprocal[e]:
                i = indices[e]
                at = indptr[i] + np.searchsorted(indices[indptr[i] : indptr[i + 1]], k)
                reverse[q] = numbers[at] - 1
                if weights.size:
                    w = weights[at]
                    rest[q] = out[k] - w if 2.0 * w <= out[k] else light[k]
                q += 1


@kernel()
def walk_on(paths, damping, total, started, before, after, arrived, passed, stuck, first, last):
    """Take one step for the rows ``first`` to ``last``, from masses per unit of weight as in `State` to the next.

    ``arrived`` is the mass on each vertex, ``stuck`` the part of it that cannot continue; ``passed`` and ``after`` are
    the next ``total`` and ``others``, without teleports.
    """
    indptr, indices, weights, reciprocal, starts, reverse, rest, out = paths
    longest = np.int64(0)
    for k in range(np.int64(first), np.int64(last)):
        longest = max(longest, starts[k + 1] - starts[k])
    onward = np.empty(longest)
    for k in range(np.int64(first), np.int64(last)):
        free = free_lost = mass = mass_lost = held = 0.0
        q = starts[k]
        for e in range(indptr[k], indptr[k + 1]):
            i = indices[e]
            w = weights[e] if weights.size else 1.0
            if reciprocal[e]:
                y = w * (before[reverse[q]] + started[i])
                ahead = rest[q] if weights.size else out[k] - 1.0
                if ahead > 0.0:
                    onward[q - starts[k]] = damping * (y / ahead)
                else:
                    onward[q - starts[k]] = 0.0
                    held += y  # at most one link of a vertex is its only one
                mass, mass_lost = plus(mass, mass_lost, y)
                q += 1
            else:
                free, free_lost = plus(free, free_lost, w * total[i])
        free += free_lost
        if out[k] == 0.0:
            held += free
        arrived[k], stuck[k] = free + (mass + mass_lost), held
        # for each link the terms before it, then those behind it
        freely = damping * (free / out[k]) if out[k] > 0.0 else 0.0
        sum_, lost = freely, 0.0
        for q in range(starts[k], starts[k + 1]):
            after[q] = sum_ + lost
            sum_, lost = plus(sum_, lost, onward[q - starts[k]])
        passed[k] = sum_ + lost
        sum_, lost = 0.0, 0.0
        for q in range(starts[k + 1] - 1, starts[k] - 1, -1):
            after[q] += sum_ + lost
            sum_, lost = plus(sum_, lost, onward[q - starts[k]])


@kernel()
def plus(total, lost, term):
    """Add a term to the sum ``total + lost``, where ``lost`` collects the rounding errors of ``total`` (TwoSum)."""
    new = total + term
    share = new - total
    return new, lost + ((total - (new - share)) + (term - share))
