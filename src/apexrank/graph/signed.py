"""A rank of signed graphs, in which vertices rate one another positively or negatively.

It takes a :class:`SignedGraph`, or data that :func:`apexrank.graph.as_graph` can read as one. The weight of a link is a
rating, not a number of links: read files in which a pair may occur twice with ``repeated="once"``, because by
default repeated ratings are summed. A pair with a positive and a negative link counts as two ratings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from apexrank.errors import InputError
from apexrank.graph.base import InLink, IteratedRank
from apexrank.graph.graph import SignedGraph
from apexrank.graph.power import iterate
from apexrank.graph.reading import as_graph
from apexrank.parameters import checked, number


class Ratings(NamedTuple):
    """Ratings scaled to [-1, 1], and the numbers made and received by each vertex."""

    raters: np.ndarray
    rated: np.ndarray
    values: np.ndarray
    made: np.ndarray
    received: np.ndarray

    def check(self, n_vertices: int) -> None:
        """Raise InputError unless these are ratings between n_vertices vertices."""
        inside = max(self.raters.max(initial=0), self.rated.max(initial=0)) < n_vertices
        if not (inside and len(self.made) == n_vertices):
            raise InputError(f"the ratings are not those between {n_vertices} vertices")

    def smoothed_mean(self, trust: np.ndarray, smoothing: float) -> np.ndarray:
        """Return ``Σ trust(u)·W(u, v) / (received(v) + smoothing)``, 0 for vertices without ratings."""
        sums = np.bincount(self.rated, trust[self.raters] * self.values, len(self.received))
        return sums / np.where(self.received > 0, self.received + smoothing, 1.0)


def _ratings(graph: SignedGraph) -> Ratings:
    parts = [part.to_scipy().tocoo() for part in graph]
    raters, rated = (np.concatenate([getattr(part, end) for part in parts]) for end in ("row", "col"))
    values = np.concatenate(
        [sign * part.data.astype(float) for sign, part in zip((1, -1), parts, strict=True)]
    )
    largest = np.abs(values).max(initial=0.0) or 1.0
    made, received = (np.bincount(end, minlength=graph.positive.n) for end in (raters, rated))
    return Ratings(raters, rated, values / largest, made, received)


@dataclass(eq=False, repr=False)
class FairnessGoodness(IteratedRank):
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

    _parameter_constraints: ClassVar[dict] = IteratedRank._parameter_constraints | {"smoothing": [number(0)]}

    smoothing: float = 2.0
    # every step halves the error, so a warm start saves little
    warm_start: bool = field(default=False, init=False)
    error_norm = "maximum norm"

    def __sklearn_tags__(self):
        """Return scikit-learn tags: negative entries of a matrix are negative ratings."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags

    @checked
    def fit(self, graph: Any, y: None = None) -> Self:
        """Compute the goodness and fairness of the vertices of a signed graph."""
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
