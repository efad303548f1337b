"""Contributions of single vertices to PageRank: capped, from a trusted core, or from one seed.

PageRank is a sum over the vertices where a walk starts: ``r_i ∝ Σ_u v_u·c(u→i)`` with teleport v and
``c = (1 − α)·Σ_t (αP)^t``, where walks end at dangling vertices. (Returning their rank to the teleport instead
multiplies all r_i by a common factor.)

Personalised PageRank from one vertex, and contributions to one vertex, are computed by local push, which visits only a
neighbourhood: along out-links (Andersen, Chung and Lang 2006) or against in-links (Andersen et al. 2008). Mass is
residual until it is pushed: when a vertex pushes, the share 1 − damping settles there, and the rest moves on as
residual.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from apexrank.errors import InputError
from apexrank.graph.base import InLink, IteratedRank, as_shares, plain_graph, seed_vector
from apexrank.graph.graph import Graph
from apexrank.graph.pagerank import PageRank
from apexrank.graph.power import Fixpoint
from apexrank.graph.trust import spread
from apexrank.kernels.csr import NO_WEIGHTS
from apexrank.kernels.jit import kernel
from apexrank.parallel import PARTS_A_THREAD, Threads, n_threads
from apexrank.parameters import between, checked
from apexrank.validation import check_count

_EPS = float(np.finfo(float).eps)
_VERTICES_A_CALL = 1000  # a kernel call cannot be interrupted, so it processes few vertices
_EXPLAINED = 0.01  # precision of explained contributions, relative to the cap
UNTOUCHED, TOUCHED, WAITING = np.uint8(0), np.uint8(1), np.uint8(2)


@dataclass(eq=False, repr=False)
class RobustPageRank(IteratedRank):
    """PageRank with capped contributions: ``r_i ∝ Σ_u v_u·min(cap, c(u→i))`` (Andersen et al., 2008).

    ``c(u→i)`` is the PageRank of i for a walk that restarts only at u, at most 1. A booster whose only link goes to its
    target contributes at least 0.85·0.15, a page with 30 links a thirtieth of that. With a cap, a high rank needs many
    contributors; the vertex itself is one of them.

    Parameters
    ----------
    cap : float
        Largest contribution of one vertex to another, above 0 and at most 1; 1 is PageRank.
    damping : float
        As in :class:`PageRank`.
    tol : float
        L1 distance to the exact scores.
    max_iter, warm_start, verbose, callback
        Parameters of the PageRank computed first.

    Notes
    -----
    Each vertex needs a local push against its in-links, a hundred times the work of PageRank: a minute of one core for
    the 325,557 pages of cnr-2000, and more for a lower cap. Memory is a few vectors of vertices per thread. The default
    cap was chosen on wiki-Vote and a synthetic crawl.

    Examples
    --------
    >>> from apexrank.graph.contributions import RobustPageRank
    >>> links = [(f"reader {i}", hub) for i in range(20) for hub in "xyz"]  # twenty readers of three hubs
    >>> links += [(hub, page) for hub in "xyz" for page in ("good", *(f"{hub} {i}" for i in range(4)))]
    >>> links += [(f"booster {i}", "farm") for i in range(8)]
    >>> edges = tuple(zip(*links))
    >>> [RobustPageRank(cap).fit(edges).ranking_[0] for cap in (1.0, 0.02)]
    ['farm', 'good']
    """

    _parameter_constraints: ClassVar[dict] = IteratedRank._parameter_constraints | {
        "cap": [between(0, 1, closed="right")]
    }

    cap: float = 0.01
    _: KW_ONLY
    damping: float = 0.85
    tol: float = field(default=1e-3, kw_only=True)

    def _rank(
        self, graph: Graph, teleport: np.ndarray, start: Any = None, tol: float | None = None
    ) -> Fixpoint:
        if teleport.ndim > 1:
            raise InputError("RobustPageRank takes one teleport vector: fit the others separately")
        # capped sums total at least the contributions of vertices to themselves
        share = min(self.cap, 1 - self.damping)
        plain = super()._rank(graph, teleport, start, 0.1 * self.tol * share)
        held = float(plain.scores[graph.dangling].sum())
        # r = (1 − α + α·held)·c·v, and c·v is the sum of contributions
        ranks = plain.scores * (1 - self.damping) / (1 - self.damping + self.damping * held)
        sums, errors = np.empty(graph.n), np.empty(graph.n)
        pattern, threads = _pattern(graph, graph.out_weight), Threads(n_threads())

        def work(first: int, last: int) -> None:
            numbers = self.damping, float(self.cap), 0.4 * self.tol
            capped_sums(pattern, Workspace.of(graph.n), teleport, ranks, *numbers, sums, errors, first, last)

        bounds = [*range(0, graph.n, _VERTICES_A_CALL), graph.n]
        with threads:
            threads.map(work, bounds[:-1], bounds[1:])
        self._total = float(sums.sum())
        off = float(errors.sum()) + plain.error_bound * float(ranks.sum())
        bound = 2 * off / self._total
        return Fixpoint(
            sums / self._total, plain.n_iter, bool(bound <= self.tol), bound, np.nan, plain.history
        )

    def explain(self, vertex: Any, top: int | None = None) -> list[InLink]:
        """Return the vertices that contribute most to a score, linked directly or not, and their shares."""
        check_is_fitted(self)
        graph, number = self.graph_, self.graph_.number(vertex)
        space = Workspace.of(graph.n)
        begin(space, number)
        push_in(_pattern(graph, graph.out_weight), space, self.damping, _EXPLAINED * self.cap)
        sources = space.touched[: space.counts[0]]
        flows = self._teleport[sources] * np.minimum(space.settled[sources], self.cap) / self._total
        order = np.argsort(-flows, kind="stable")[:top]
        shares = flows / (self.scores_[number] or 1.0)
        rows = zip(graph.labels(sources[order]).tolist(), flows[order], shares[order], strict=True)
        return [InLink(name, float(flow), float(share)) for name, flow, share in rows if flow > 0]


@dataclass(eq=False, repr=False)
class SpamMassRank(IteratedRank):
    """Estimated spam mass: the PageRank that does not come from a trusted core (Gyöngyi et al., 2006).

    ``absolute_mass_ = p − p′`` and ``relative_mass_ = 1 − p′/p``, where p is PageRank and p′ the part from walks that
    start in the trusted core, scaled as if the core represented all good vertices.
    :func:`apexrank.metrics.spam_mass` is different: the score held by known spam.

    Parameters
    ----------
    good_share : float
        Estimated share of good vertices among all vertices, represented by the core.
    damping, tol, max_iter, verbose, callback
        As in :class:`PageRank`.

    Attributes
    ----------
    scores_ : array of shape (n_vertices,)
        ``−relative_mass_``, so that vertices that owe the least to spam come first. Relative mass means little for a
        vertex of low PageRank: see :meth:`suspects`.
    pagerank_, absolute_mass_, relative_mass_ : array of shape (n_vertices,)
        PageRank whose walks end at dangling vertices, and the estimates, negative near the core.
    error_bound_ : float
        Upper bound on the L1 error of ``absolute_mass_``.

    Examples
    --------
    >>> from apexrank.graph.contributions import SpamMassRank
    >>> links = (["hub", "a", "b", *"stuvwxyz"], ["a", "b", "hub", *["farm"] * 8])
    >>> masses = SpamMassRank().fit(links, trusted=["hub"])
    >>> masses.suspects(relative=0.9, least=2)
    ['farm']
    """

    _parameter_constraints: ClassVar[dict] = IteratedRank._parameter_constraints | {
        "good_share": [between(0, 1)]
    }

    damping: float = 0.85
    _: KW_ONLY
    good_share: float = 0.85
    warm_start: bool = field(default=False, init=False)

    @checked
    def fit(self, graph: Any, y: None = None, *, trusted: Any = None) -> Self:
        """Estimate masses from trusted vertices: names, a mapping of names to weights, or one weight per vertex."""
        if trusted is None:
            raise InputError("SpamMassRank needs trusted vertices: fit(graph, `trusted=[…]`)")
        read = plain_graph(graph)
        core = seed_vector(read, trusted, "trusted")
        if core.ndim > 1 or not core.any():
            raise InputError("`trusted` must have a positive weight for at least one vertex")
        options: dict[str, Any] = {
            "gamma": self.damping,
            "max_iter": self.max_iter,
            "progress": self._progress,
        }
        tol, seeds = self.tol / 2, (1 - self.damping) * np.full(read.n, 1 / read.n)
        every = spread(read, seeds, tol=tol, **options)
        good = spread(read, (1 - self.damping) * self.good_share * as_shares(core), tol=tol, **options)
        self.pagerank_ = every.scores
        self.absolute_mass_ = every.scores - good.scores
        self.relative_mass_ = self.absolute_mass_ / every.scores
        bound = every.error_bound * every.scores.sum() + good.error_bound * good.scores.sum()
        steps, converged = every.n_iter + good.n_iter, every.converged and good.converged
        self._keep(read, Fixpoint(0.0 - self.relative_mass_, steps, converged, float(bound), np.nan, []))
        return self

    def suspects(self, relative: float = 0.98, least: float = 10.0) -> list[Any]:
        """Return the names of vertices with a relative mass of at least ``relative``, highest PageRank first.

        ``least`` is the smallest PageRank of a suspect, in multiples of that of a vertex without in-links.
        """
        check_is_fitted(self)
        lowest = least * (1 - self.damping) / self.graph_.n
        found = np.flatnonzero((self.relative_mass_ >= relative) & (self.pagerank_ >= lowest))
        return self.graph_.labels(found[np.argsort(-self.pagerank_[found], kind="stable")]).tolist()

    def explain(self, vertex: Any, top: int | None = None) -> Any:
        raise InputError("SpamMassRank is not a sum over in-links: see pagerank_ and absolute_mass_")


class LocalRank(NamedTuple):
    """Vertices nearest to a seed by personalised PageRank.

    ``top`` contains pairs of name and score, best first. Exact scores are larger, in total by at most ``error_bound``.
    The first ``certain`` of them are the first of the exact ranking, in some order: ties and gaps below the bound leave
    the others open. ``touched`` is the number of visited vertices.
    """

    seed: Any
    top: list[tuple[Any, float]]
    error_bound: float
    certain: int
    touched: int


def local_ranks(
    graph: Any, seeds: Iterable[Any], k: int = 10, *, damping: float = 0.85, tol: float = 1e-3
) -> list[LocalRank]:
    """Personalised PageRank of many seeds, each computed in its neighbourhood (Andersen, Chung and Lang, 2006).

    The scores are those of ``PageRank().fit(graph, teleport=[seed])``. The cost depends on the neighbourhood, not on
    the size of the graph, once it is read: pass a :class:`Graph` for repeated calls.

    Parameters
    ----------
    graph : Graph, or anything :func:`apexrank.graph.as_graph` reads
        Links are followed in their direction.
    seeds : names of vertices
        One result for each.
    k : int
        Number of vertices to return.
    damping : float
        Probability of following a link.
    tol : float
        Bound on the total error of the scores, above 0. Lower it if ``certain`` is too small.

    Examples
    --------
    >>> from apexrank.graph.contributions import local_ranks
    >>> near = local_ranks((["a", "b", "b", "c"], ["b", "a", "c", "d"]), ["a"], k=2, tol=1e-6)[0]
    >>> [name for name, _ in near.top], near.certain
    (['a', 'b'], 2)
    """
    check_count("k", k)
    PageRank(damping, tol=tol)._validate_params()
    if tol == 0:
        raise InputError("`tol` must be above 0: PageRank gives the exact answer")
    read = plain_graph(graph)
    names = [seeds] if isinstance(seeds, str) else list(seeds)
    numbers = read.numbers(names, what="seed")
    pattern, threads = _pattern(read.reversed(), read.out_weight), Threads(n_threads())

    def work(part: np.ndarray) -> list[LocalRank]:
        space = Workspace.of(read.n)
        return [_local_rank(read, pattern, space, int(seed), k, float(damping), float(tol)) for seed in part]

    with threads:
        parts = threads.map(work, np.array_split(numbers, min(len(numbers), threads.n * PARTS_A_THREAD) or 1))
    return [each for part in parts for each in part]


def local_rank(graph: Any, seed: Any, k: int = 10, *, damping: float = 0.85, tol: float = 1e-3) -> LocalRank:
    """Personalised PageRank of one seed; see :func:`local_ranks` for the parameters.

    Examples
    --------
    >>> from apexrank.graph.contributions import local_rank
    >>> local_rank((["a", "b", "c"], ["b", "a", "d"]), "c", k=2).top[0][0]
    'c'
    """
    return local_ranks(graph, [seed], k, damping=damping, tol=tol)[0]


def _local_rank(
    graph: Graph, pattern: Pattern, space: Workspace, seed: int, k: int, damping: float, tol: float
) -> LocalRank:
    left = push_out(pattern, space, seed, damping, tol)
    touched, additions = space.counts.tolist()
    # adding to a residual of at most 1 loses at most half an ulp, which later pushes cannot amplify
    bound = left + _EPS * additions
    found = space.touched[:touched]
    found = np.sort(found[space.settled[found] > 0])  # ties in the order of the vertices
    best = found[np.argsort(-space.settled[found], kind="stable")[: k + 1]]
    scores = space.settled[best]
    gaps = scores[:k] - np.append(scores[1:], 0.0)[:k]
    certain = int(1 + np.flatnonzero(gaps > bound).max(initial=-1))
    top = list(zip(graph.labels(best[:k]).tolist(), scores[:k].tolist(), strict=True))
    return LocalRank(graph.label(seed), top, bound, certain, touched)


def _pattern(links: Graph, out_weight: np.ndarray) -> Pattern:
    weights = NO_WEIGHTS if links.weights is None else links.weights
    return Pattern(links.indptr, links.indices, weights, out_weight)


class Pattern(NamedTuple):
    """Links in the direction of a push (CSR; weights may be empty), and the sums of out-weights that divide them."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    out_weight: np.ndarray


class Workspace(NamedTuple):
    """Dense arrays of one thread; a push clears only the entries of the last one, so that its cost stays local.

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
    """Clear the touched entries and put a residual of 1 on a vertex."""
    for k in range(space.counts[0]):
        i = space.touched[k]
        space.settled[i] = space.residual[i] = 0.0
        space.state[i] = UNTOUCHED
    space.counts[0], space.counts[1] = 1, 0
    space.touched[0], space.residual[vertex], space.state[vertex] = vertex, 1.0, TOUCHED


@kernel()
def _sweep(pattern, space, damping, threshold, home):
    """Push from a queue until no residual is above its threshold.

    Along out-links, ``home`` receives the mass of dangling vertices. Against in-links it is −1: walks end at them.
    """
    # one loop without calls, because passing a tuple of arrays costs more than an addition
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
        # the cost of a push is the number of links, so its threshold along out-links is proportional to that
        if residual[i] <= (threshold * max(end - start, 1) if forward else threshold):
            continue
        mass = damping * residual[i]
        settled[i] += (1 - damping) * residual[i]
        residual[i] = 0.0
        counts[1] += end - start + 1
        dangling = start == end
        if forward and dangling:
            end = start + 1
        for k in range(start, end):
            j = home if dangling else indices[k]
            if dangling:
                residual[j] += mass
            else:  # divide first: weights may be denormal
                weight = weights[k] if weights.size else 1.0
                residual[j] += mass * (weight / out_weight[i if forward else j])
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
    """Push the personalised PageRank of a seed until the residual is at most ``tol``; return the residual."""
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
    """Push contributions to the start vertex until no error is above ``threshold``; return the largest error."""
    _sweep(pattern, space, damping, threshold, -1)
    off = 0.0
    for k in range(space.counts[0]):
        off = max(off, space.residual[space.touched[k]])
    return off


@kernel()
def capped_sums(pattern, space, teleport, ranks, damping, cap, tol, out, errors, first, last):
    """Compute ``Σ_u v_u·min(cap, c(u→i))`` for a range of vertices i, each with a relative error of at most ``tol``.

    ``ranks`` are the sums without a cap. The reduction by the cap is determined by sources near or above the cap, long
    before all small contributions are known: with an error of at most ε in each c, it lies between ``Σ v·(c − cap)₊``
    and ``Σ v·(c + ε − cap)₊``.
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
