"""Ranks of signed graphs, in which vertices rate one another positively or negatively.

All of them take a :class:`SignedGraph`, or data that :func:`apexrank.graph.as_graph` can read as one. The weight of a
link is a rating, not a number of links: read files in which a pair may occur twice with ``repeated="once"``, because by
default repeated ratings are summed. A pair with a positive and a negative link counts as two ratings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from apexrank.errors import InputError
from apexrank.graph.base import GraphRank, InLink, IteratedRank, Teleport, teleport_vectors
from apexrank.graph.graph import SignedGraph
from apexrank.graph.pagerank import PageRank
from apexrank.graph.power import Fixpoint, iterate
from apexrank.graph.reading import as_graph
from apexrank.validation import check_count, check_finite


class _Ratings(NamedTuple):
    """Ratings scaled to [-1, 1], and the numbers made and received by each vertex."""

    raters: np.ndarray
    rated: np.ndarray
    values: np.ndarray
    made: np.ndarray
    received: np.ndarray
    largest: float  # largest absolute rating before scaling

    def smoothed_mean(self, trust: np.ndarray, smoothing: float) -> np.ndarray:
        """Return ``Σ trust(u)·W(u, v) / (received(v) + smoothing)``, 0 for vertices without ratings."""
        sums = np.bincount(self.rated, trust[self.raters] * self.values, len(self.received))
        return sums / np.where(self.received > 0, self.received + smoothing, 1.0)


def _ratings(graph: SignedGraph) -> _Ratings:
    parts = [part.to_scipy().tocoo() for part in graph]
    raters, rated = (np.concatenate([getattr(part, end) for part in parts]) for end in ("row", "col"))
    values = np.concatenate(
        [sign * part.data.astype(float) for sign, part in zip((1, -1), parts, strict=True)]
    )
    largest = np.abs(values).max(initial=0.0) or 1.0
    made, received = (np.bincount(end, minlength=graph.positive.n) for end in (raters, rated))
    return _Ratings(raters, rated, values / largest, made, received, largest)


class _OfRatings:
    """Mixin of ranks that accept negative entries of a matrix as negative ratings."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.positive_only = False
        return tags


@dataclass(eq=False, repr=False)
class MeanRating(_OfRatings, GraphRank):
    """Mean rating received by each vertex, shrunk towards 0: ``Σ W(u, v) / (received + smoothing)``.

    Ratings are divided by the largest absolute weight of the graph, so that -10 to 10 becomes -1 to 1.

    Parameters
    ----------
    smoothing : float
        Number of neutral ratings (0) added to those of every vertex, so that one bad rating of a newcomer counts less
        than ten of an established member. 0 is the plain mean; as it grows, the order approaches that of
        :class:`InDegree` on the signed graph. The default was chosen on the ratings of epinions.

    Attributes
    ----------
    scores_ : array of shape (n_vertices,)
        From -1 to 1; 0 for vertices without ratings.

    Examples
    --------
    >>> from apexrank.graph.signed import MeanRating
    >>> ratings = (["a", "b", "c", "a"], ["b", "c", "b", "d"], [10, 5, 10, -10])
    >>> rank = MeanRating().fit(as_graph(ratings, signed=True))
    >>> rank.top(4)
    [('b', 0.5), ('c', 0.16666666666666666), ('a', 0.0), ('d', -0.3333333333333333)]
    """

    smoothing: float = 2.0

    def fit(self, graph: Any, y: None = None) -> Self:
        """Average the ratings of a signed graph."""
        check_finite("smoothing", self.smoothing, 0)
        read = as_graph(graph, signed=True)
        self.graph_ = read.positive
        ratings = _ratings(read)
        # sums of integer ratings are exact, so that equal means compare equal; sums of scaled ratings are not
        net = read.positive.reversed().out_weight - read.negative.reversed().out_weight
        rated = np.where(ratings.received > 0, ratings.received + self.smoothing, 1.0)
        self.scores_ = net / (rated * ratings.largest)
        return self


@dataclass(eq=False, repr=False)
class FairnessGoodness(_OfRatings, IteratedRank):
    """Fairness of raters and goodness of rated vertices (Kumar, Spezzano, Subrahmanian and Faloutsos, 2016).

    Fair raters rate vertices close to their goodness, and the goodness of a vertex is its rating by fair raters:

    - goodness ``g(v) = Σ_u f(u)·W(u, v) / (received(v) + smoothing)``,
    - fairness ``f(u) = 1 − Σ_v |W(u, v) − g(v)| / (2·made(u))``.

    Ratings W are the weights divided by the largest absolute one, so that -10 to 10 becomes -1 to 1. A change of all g
    by at most δ changes f by at most δ/2, and g in the next step by no more, as |W| <= 1. So a step halves the error in
    the maximum norm, the solution is unique, and ``|g_t − g*| <= |g_t − g_{t−1}|``.

    Parameters
    ----------
    smoothing : float
        Number of neutral ratings (0) added to those of every vertex; 0 is the method as published. The default was
        chosen on the ratings of epinions.
    tol : float
        Tolerance on the error of any score.
    max_iter, verbose, callback
        As in :class:`PageRank`.

    Attributes
    ----------
    scores_ : array of shape (n_vertices,)
        Goodness, from -1 to 1; 0 for vertices without ratings.
    fairness_ : array of shape (n_vertices,)
        From 0 to 1; 1 for vertices that have not rated any.
    error_bound_ : float
        Upper bound on the error of any score, in the maximum norm.
    converged_, n_iter_, history_
        As in :class:`PageRank`.

    Examples
    --------
    Three members agree about "d"; "troll" contradicts them.

    >>> from apexrank.graph.signed import FairnessGoodness
    >>> raters, rated = ["a", "b", "c", "troll", "troll"], ["d", "d", "d", "d", "e"]
    >>> rank = FairnessGoodness(smoothing=0).fit(as_graph((raters, rated, [8, 10, 9, -10, 10]), signed=True))
    >>> rank.top(1)[0][0], rank.graph_.labels(rank.fairness_.argmin())
    ('e', 'troll')
    >>> rank.converged_, rank.explain("d", top=1)[0].source
    (True, 'b')
    """

    smoothing: float = 2.0
    warm_start: bool = field(
        default=False, init=False
    )  # every step halves the error, so a warm start saves little
    error_norm = "maximum norm"

    def fit(self, graph: Any, y: None = None) -> Self:  # type: ignore[override]
        """Compute the goodness and fairness of the vertices of a signed graph."""
        check_finite("smoothing", self.smoothing, 0)
        check_finite("tol", self.tol, 0)
        check_count("max_iter", self.max_iter)
        read = as_graph(graph, signed=True)
        ratings = self._ratings = _ratings(read)
        n, made = read.positive.n, np.maximum(ratings.made, 1)
        # bincount adds terms sequentially
        most = int(ratings.made.max(initial=0) + ratings.received.max(initial=0))
        rounding = float(np.finfo(float).eps) * (most + 8)

        def fairness(goodness: np.ndarray) -> np.ndarray:
            off = np.abs(ratings.values - goodness[ratings.rated])
            return 1 - np.bincount(ratings.raters, off, n) / (2 * made)

        def step(goodness: np.ndarray) -> np.ndarray:
            return ratings.smoothed_mean(fairness(goodness), self.smoothing)

        def bound(new: np.ndarray, old: np.ndarray, change: float) -> tuple[float, float]:
            return float(np.abs(new - old).max()) + rounding, np.nan

        start = ratings.smoothed_mean(np.ones(n), self.smoothing)
        self._keep(read.positive, iterate(step, start, bound, self.tol, self.max_iter, self._progress))
        self.fairness_ = fairness(self.scores_)
        return self

    def explain(self, vertex: Any, top: int | None = None) -> list[InLink]:
        """Return the ratings of a vertex by their part in its goodness, largest first; shares are of absolute parts."""
        check_is_fitted(self)
        number, ratings = self.graph_.number(vertex), self._ratings
        mine = np.flatnonzero(ratings.rated == number)
        raters = ratings.raters[mine]
        parts = self.fairness_[raters] * ratings.values[mine] / (len(mine) + self.smoothing)
        shares = np.abs(parts) / (np.abs(parts).sum() or 1.0)
        rows = zip(self.graph_.labels(raters).tolist(), parts.tolist(), shares.tolist(), strict=True)
        return sorted((InLink(*row) for row in rows), key=lambda link: -link.share)[:top]


@dataclass(eq=False, repr=False)
class ModifiedPageRank(_OfRatings, PageRank):
    """PageRank of the positive links minus PageRank of the negative ones (Shahriari and Jalili, 2014).

    Parameters
    ----------
    damping, tol, max_iter, verbose, callback
        As in :class:`PageRank`.

    Attributes
    ----------
    positive_, negative_ : array of shape (n_vertices,)
        PageRank of each part; each sums to 1.
    scores_ : array of shape (n_vertices,)
        ``positive_ − negative_``.

    Examples
    --------
    >>> from apexrank.graph.signed import ModifiedPageRank
    >>> ratings = as_graph((["a", "b", "c"], ["b", "c", "a"], [1, 1, -1]), signed=True)
    >>> ModifiedPageRank().fit(ratings).ranking_.tolist()
    ['c', 'b', 'a']
    """

    warm_start: bool = field(default=False, init=False)  # differences are not valid initial ranks

    def fit(self, graph: Any, y: None = None, *, teleport: Teleport = None) -> Self:  # type: ignore[override]
        """Rank the vertices of a signed graph; ``teleport`` as in :meth:`PageRank.fit`, for both parts."""
        self._check_numbers()
        read = as_graph(graph, signed=True)
        shares = teleport_vectors(read.positive, teleport)
        good, bad = (self._rank(part, shares, tol=self.tol / 2) for part in read)  # the errors add up
        steps, bound = max(good.n_iter, bad.n_iter), good.error_bound + bad.error_bound
        both = Fixpoint(good.scores - bad.scores, steps, good.converged and bad.converged, bound, np.nan, [])
        self._keep(read.positive, both)
        self.positive_, self.negative_ = good.scores, bad.scores
        return self

    def explain(self, vertex: Any, top: int | None = None) -> list[InLink]:
        raise InputError("ModifiedPageRank is not a sum over in-links: explain the PageRank of either part")
