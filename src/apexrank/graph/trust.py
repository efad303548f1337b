"""Ranks with labels: TrustRank, anti-TrustRank, demoted rank, propagation of trust, and spam thresholds.

`spread` solves (2013, sec. 6.3, eq. 6.5)

    x = γ·U(x) + s,

where s are the seeds, U is the propagation without teleport, and γ the decay of trust per link. Trust follows links,
because a vertex is rewarded for links from others. Distrust propagates against them, because a vertex is punished for
its own links: no one can demote a vertex by pointing at it. The final score is ``r·x₊/(x₊ + x₋)``.

The linear U passes on ``x_j·w_ij/d_j``, so ``|U(x)|₁ ≤ |x|₁`` and γ is the contraction factor in the L1 norm; by
Minkowski's inequality this holds for every p at ratio 1. With ratio > 1 the map is homogeneous of degree h = 1/ratio <
1; seeds are then scaled to sum to at least the number of vertices n, since by Jensen's inequality
``|U(x)|₁ ≤ n^{1−h}·|x|₁^h``, which is then at most ``|x|₁``. The map needs no rescaling in every step, which would
break its monotonicity, and contracts Thompson's metric ``max|log(x_i/y_i)|`` by h. (The dissertation's condition γ < λ
is reversed.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.graph.base import IteratedRank, plain_graph, reached_from, teleport_vectors
from apexrank.graph.graph import Graph
from apexrank.graph.pagerank import PageRank
from apexrank.graph.power import Bound, Fixpoint, Linear, Map, Progress, Walk, iterate, l1_bound
from apexrank.parameters import checked, names, number
from apexrank.validation import check_choice

Direction = Literal["along", "against"]


class TrustRank(PageRank):
    """PageRank with teleport to trusted vertices only (Gyöngyi, Garcia-Molina and Pedersen, 2004).

    Parameters
    ----------
    damping, tol, max_iter, warm_start, verbose, callback
        As in :class:`PageRank`. Trust at dangling vertices returns to the trusted ones.

    Attributes
    ----------
    scores_ : array of shape (n_vertices,)
        Trust, summing to 1; 0 for vertices not reachable from trusted ones.

    Examples
    --------
    >>> from apexrank.graph.trust import TrustRank
    >>> TrustRank().fit((["a", "b", "x"], ["b", "c", "c"]), trusted=["a"]).ranking_.tolist()
    ['a', 'b', 'c', 'x']
    """

    @checked
    def fit(self, graph: Any, y: None = None, *, trusted: Any = None) -> Self:
        """Propagate trust from vertices given by names, a mapping of names to weights, or one weight per vertex."""
        if trusted is None:
            raise InputError("TrustRank needs trusted vertices: fit(graph, `trusted=[…]`)")
        read = plain_graph(graph)
        self._keep(read, self._rank(read, teleport_vectors(read, trusted, "trusted")))
        return self


@dataclass(eq=False, repr=False)
class AntiTrustRank(IteratedRank):
    """Distrust propagated from spam to the vertices that link to it (Krishnan and Raj, 2006).

    Parameters
    ----------
    damping : float
        Decay of distrust per link.
    direction : {"against", "along"}
        Propagate against the links, or along them, which lets spammers demote the vertices they link to.
    tol, max_iter, verbose, callback
        As in :class:`PageRank`.

    Attributes
    ----------
    distrust_ : array of shape (n_vertices,)
        Distrust, summing to 1.
    scores_ : array of shape (n_vertices,)
        ``−distrust_``, so that larger is better.

    Examples
    --------
    >>> from apexrank.graph.trust import AntiTrustRank
    >>> ranks = AntiTrustRank().fit((["a", "b", "x"], ["b", "spam", "a"]), distrusted=["spam"])
    >>> ranks.ranking_.tolist()
    ['x', 'a', 'b', 'spam']
    """

    _parameter_constraints: ClassVar[dict] = IteratedRank._parameter_constraints | {
        "direction": [names(Direction)]
    }

    damping: float = 0.85
    direction: Direction = field(default="against", kw_only=True)
    warm_start: bool = field(default=False, init=False)  # negative scores are not valid initial ranks

    @checked
    def fit(self, graph: Any, y: None = None, *, distrusted: Any = None) -> Self:
        """Propagate distrust from vertices given by names, a mapping of names to weights, or one weight per vertex."""
        read = plain_graph(graph)
        answer = self._distrust(read, distrusted, self.tol)
        self._keep(read, answer._replace(scores=0.0 - answer.scores))
        self.distrust_ = answer.scores
        return self

    def _distrust(self, graph: Graph, distrusted: Any, tol: float) -> Fixpoint:
        if distrusted is None:
            raise InputError(f"{type(self).__name__} needs distrusted vertices: fit(graph, `distrusted=[…]`)")
        links = graph if self.direction == "along" else graph.reversed()
        return self._rank(links, self._seed_shares(graph, distrusted, "distrusted"), tol=tol)

    def _seed_shares(self, graph: Graph, seeds: Any, what: str) -> np.ndarray:
        shares = teleport_vectors(graph, seeds, what)
        if shares.ndim > 1:
            raise InputError(f"{type(self).__name__} takes one set of {what} vertices: fit others separately")
        return shares

    def explain(self, vertex: Any, top: int | None = None) -> Any:
        raise InputError(f"{type(self).__name__} is not a sum over in-links: see distrust_")


@dataclass(eq=False, repr=False)
class DemotedRank(AntiTrustRank):
    """Trust minus distrust (Wu, Goel and Davison, 2006): ``trust − beta·distrust``.

    Parameters
    ----------
    damping, direction, tol, max_iter, verbose, callback
        As in :class:`AntiTrustRank`.
    beta : float
        Weight of distrust.

    Attributes
    ----------
    trust_, distrust_ : array of shape (n_vertices,)
        As in :class:`TrustRank` and :class:`AntiTrustRank`.
    scores_ : array of shape (n_vertices,)
        ``trust_ − beta·distrust_``.

    Examples
    --------
    >>> from apexrank.graph.trust import DemotedRank
    >>> ranks = DemotedRank().fit((["a", "b", "a"], ["b", "spam", "c"]), trusted=["a"], distrusted=["spam"])
    >>> ranks.ranking_.tolist()
    ['c', 'a', 'b', 'spam']
    """

    _parameter_constraints: ClassVar[dict] = AntiTrustRank._parameter_constraints | {"beta": [number(0)]}

    beta: float = field(default=1.0, kw_only=True)

    @checked
    def fit(self, graph: Any, y: None = None, *, trusted: Any = None, distrusted: Any = None) -> Self:
        """Propagate trust and distrust from vertices given as in :meth:`TrustRank.fit`."""
        if trusted is None:
            raise InputError(
                "DemotedRank needs trusted vertices: fit(graph, `trusted=[…]`, `distrusted=[…]`)"
            )
        read = plain_graph(graph)
        tol = self.tol / (1 + self.beta)  # the errors of trust and of distrust add up
        good = self._rank(read, self._seed_shares(read, trusted, "trusted"), tol=tol)
        bad = self._distrust(read, distrusted, tol)
        scores = good.scores - self.beta * bad.scores
        bound = good.error_bound + self.beta * bad.error_bound
        steps, converged = max(good.n_iter, bad.n_iter), good.converged and bad.converged
        self._keep(read, Fixpoint(scores, steps, converged, bound, np.nan, []))
        self.trust_, self.distrust_ = good.scores, bad.scores
        return self


def spread(
    graph: Graph,
    seeds: np.ndarray,
    *,
    map: Map | None = None,
    gamma: float = 0.85,
    direction: Direction = "along",
    tol: float = 1e-9,
    max_iter: int = 1000,
    progress: Progress | None = None,
) -> Fixpoint:
    """Propagate trust from seeds: solve ``x = γ·U(x) + s`` for s >= 0.

    Parameters
    ----------
    graph : Graph
        Graph along whose links trust propagates.
    seeds : array of shape (n_vertices,)
        Weights of the seeds, 1 for a plain one. With a map of degree below 1 (``Lpq`` of a ratio above 1) they must sum
        to at least n_vertices.
    map : Map
        Propagation; linear by default.
    gamma : float
        Decay per link, at least 0 and below 1.
    direction : {"along", "against"}
        Direction of propagation relative to the links.
    tol, max_iter, progress
        Iteration stops when ``error_bound`` is at most tol times the sum of x.

    Returns
    -------
    Fixpoint
        ``scores`` is x; ``error_bound`` bounds the L1 distance as a share of the sum of x.

    Examples
    --------
    >>> graph = Graph.from_edges([0, 1], [1, 2])
    >>> spread(graph, np.array([1.0, 0.0, 0.0]), gamma=0.5).scores.tolist()
    [1.0, 0.5, 0.25]
    """
    if not 0 <= gamma < 1:
        raise InputError(f"`gamma` must be at least 0 and below 1, got {gamma!r}")
    check_choice("direction", direction, Direction)
    seeds = np.asarray(seeds, dtype=float)
    if seeds.shape != (graph.n,) or not np.isfinite(seeds).all() or (seeds < 0).any():
        raise InputError(f"seeds need one finite weight of at least 0 for each of the {graph.n} vertices")
    map_ = Linear() if map is None else map
    links = graph if direction == "along" else graph.reversed()
    start = seeds
    if map_.degree < 1:  # logarithms need the full support from the first step
        start = np.where(reached_from(links, seeds) > 0, np.maximum(start, 1.0), 0.0)
    nothing = np.zeros(graph.n)
    with Walk(links, map_, 1.0, nothing) as walk:
        rounding = walk.rounding
        bound = l1_bound(gamma, rounding) if map_.degree == 1 else _thompson_bound(map_.degree, rounding)

        def step(x: np.ndarray) -> np.ndarray:
            return gamma * walk.inflow(x, 0.0) + seeds

        def relative(new: np.ndarray, old: np.ndarray, change: float) -> tuple[float, float]:
            error, log_error = bound(new, old, change)
            return error / (new.sum() or 1.0), log_error

        return iterate(step, start, relative, tol, max_iter, progress)


def _thompson_bound(degree: float, rounding: float) -> Bound:
    """Bound ``max|log(x_t/x*)| ≤ h/(1 − h)·max|log(x_t/x_{t−1})|``, and from it the L1 distance ``|x|₁·(e^d − 1)``."""

    def bound(new: np.ndarray, old: np.ndarray, change: float) -> tuple[float, float]:
        there = new > 0
        if (there != (old > 0)).any():
            return math.inf, math.inf
        moved = float(np.abs(np.log(new[there] / old[there])).max(initial=0.0))
        d = (degree * moved + rounding) / (1 - degree)
        return float(new.sum()) * math.expm1(min(d, 700.0)), 2 * d

    return bound


def trust_share(trust: np.ndarray, distrust: np.ndarray, neutral: float) -> np.ndarray:
    """Share of trust ``x₊/(x₊ + x₋)``, or ``neutral`` where both are 0.

    Examples
    --------
    >>> trust_share(np.array([1.0, 0.0, 3.0]), np.array([0.0, 0.0, 1.0]), 0.5).tolist()
    [1.0, 0.5, 0.75]
    """
    total = trust + distrust
    return np.divide(trust, total, out=np.full_like(total, neutral), where=total > 0)


class Threshold(NamedTuple):
    """Spam threshold: scores at or below ``cut`` are spam; ``error`` is its error rate on the data it was chosen on.

    Examples
    --------
    >>> Threshold(0.3, 0.0).is_spam([0.2, 0.3, 0.4]).tolist()
    [True, True, False]
    """

    cut: float
    error: float

    def is_spam(self, scores: ArrayLike) -> np.ndarray:
        """Mask of the vertices classified as spam."""
        return np.asarray(scores, dtype=float) <= self.cut


def best_threshold(scores: ArrayLike, spam: ArrayLike) -> Threshold:
    """Find the threshold on a score that classifies spam with the fewest errors.

    Vertices at or below the cut are classified as spam. It takes one sort, O(n log n). The cut is a score that occurs,
    or −inf if classifying nothing as spam is best; equal scores are always on the same side. Among equally good cuts it
    is the lowest, which classifies the fewest vertices as spam.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of labelled vertices, larger is better.
    spam : array-like of bool, shape (n,)
        Mask of spam vertices.

    Returns
    -------
    Threshold
        ``(cut, error)``, with the error as a share of the n vertices.

    Examples
    --------
    >>> from apexrank.graph.trust import best_threshold
    >>> best_threshold([0.1, 0.2, 0.2, 0.9], [True, True, False, False])
    Threshold(cut=0.1, error=0.25)
    >>> cut, error = best_threshold([0.1, 0.5], [False, False])
    >>> cut, error
    (-inf, 0.0)
    """
    values, flags = np.asarray(scores, dtype=float), np.asarray(spam)
    if values.ndim != 1 or values.shape != flags.shape or not len(values):
        raise InputError("best_threshold needs one score and one label for each of at least one vertex")
    if flags.dtype.kind not in "biuf" or not np.isin(flags, (0, 1)).all():
        raise InputError("spam must say True or False (1 or 0) for each vertex")
    if not np.isfinite(values).all():
        raise InputError("best_threshold needs finite scores: leave out vertices without one")
    order = np.argsort(values, kind="stable")
    ordered, caught = values[order], np.cumsum(flags[order].astype(np.int64))
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    # spam left above the cut, and honest vertices at or below it
    wrong = (caught[-1] - caught[ends]) + (ends + 1 - caught[ends])
    errors = np.concatenate([[caught[-1]], wrong])
    best = int(errors.argmin())
    cut = -np.inf if best == 0 else float(ordered[ends[best - 1]])
    return Threshold(cut, float(errors[best] / len(values)))
