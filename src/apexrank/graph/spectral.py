"""Classical centralities as baselines: HITS, Katz and eigenvector centrality, with link weights as given.

Unlike PageRank they do not divide a vertex's score among its links: a vertex with many out-links passes its full score
along each of them. All are computed by power iteration on weights divided by the largest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.base import IteratedRank, plain_graph, teleport_vectors
from apexrank.graph.graph import Graph
from apexrank.graph.power import Bound, Fixpoint, iterate, no_bound, rounding_of
from apexrank.kernels.csr import LinkSums
from apexrank.validation import check_count, check_finite

_RADIUS_STEPS = 100


class WeightedRank(IteratedRank):
    """Base class of ranks that sum ``w_ij·x_j`` over in-links, without out-weights and teleport."""

    def fit(self, graph: Any, y: None = None, *, start: Any = None) -> Self:  # type: ignore[override]
        """Rank the vertices of a graph.

        Parameters
        ----------
        graph : Graph, scipy sparse matrix, networkx or igraph graph, edge table or path
            Any input of :func:`apexrank.graph.as_graph`. Undirected edges count in both directions.
        y : None
            Ignored.
        start : fitted rank, mapping of names to scores, or array, optional
            Initial scores, as in :meth:`PageRank.fit`.
        """
        check_finite("tol", self.tol, 0)
        check_count("max_iter", self.max_iter)
        read = plain_graph(graph)
        self._unit = read.in_links().weight_range[1]
        first = self._start(read, teleport_vectors(read, None), start)
        with read.in_links(self._unit) as links:
            answer = self._solve(read, links, first)
        self._keep(read, answer)
        return self

    def _solve(self, graph: Graph, links: LinkSums, first: np.ndarray) -> Fixpoint:
        raise NotImplementedError

    def explain(self, vertex: Any, top: int | None = None) -> Any:
        raise InputError(f"{type(self).__name__} has no explain: its links carry no shares of a score")


@dataclass(eq=False, repr=False)
class HITS(WeightedRank):
    """Hubs and authorities (Kleinberg, 1999): good hubs link to good authorities.

    Authorities are the leading eigenvector of ``AᵀA``. If it is not unique, as in a graph of several equal components,
    they are the limit of the iteration from equal scores. A densely linked farm receives the whole score.

    Parameters
    ----------
    tol : float
        Tolerance on the change of the scores in a step, in the L1 norm. It does not bound the error: ``error_bound_``
        is nan.
    max_iter, warm_start, verbose, callback
        As in :class:`PageRank`.

    Attributes
    ----------
    scores_, authorities_, hubs_ : array of shape (n_vertices,)
        Authorities, which are the scores, and hubs; each sums to 1.
    names_, ranking_, converged_, n_iter_, history_
        As in :class:`PageRank`.

    Examples
    --------
    >>> from apexrank.graph.spectral import HITS
    >>> ranks = HITS().fit((["a", "a", "b"], ["c", "d", "c"]))
    >>> ranks.ranking_[0], ranks.authorities_.round(3).tolist(), ranks.hubs_.round(3).tolist()
    ('c', [0.0, 0.0, 0.618, 0.382], [0.618, 0.382, 0.0, 0.0])
    """

    def _solve(self, graph: Graph, links: LinkSums, first: np.ndarray) -> Fixpoint:
        with graph.reversed().in_links(self._unit) as out:

            def step(x: np.ndarray) -> np.ndarray:
                return _shares(links.sums(out.sums(x)))

            answer = iterate(step, first, no_bound, self.tol, self.max_iter, self._progress)
            self.hubs_ = _shares(out.sums(answer.scores))
        self.authorities_ = answer.scores
        return answer


@dataclass(eq=False, repr=False)
class EigenvectorRank(WeightedRank):
    """Eigenvector centrality (Bonacich, 1972): the leading eigenvector of ``Aᵀ``, ``λ·x_i = Σ_{j→i} w_ij·x_j``.

    It is meant for strongly connected graphs. For others it may be 0 for most vertices, and convergence may be slow:
    use :class:`KatzRank`. Without a cycle all eigenvalues are 0, and the graph raises an error.

    Parameters
    ----------
    tol, max_iter, warm_start, verbose, callback
        As in :class:`HITS`.

    Examples
    --------
    >>> from apexrank.graph.spectral import EigenvectorRank
    >>> EigenvectorRank().fit((["a", "b", "b"], ["b", "a", "b"])).scores_.round(3).tolist()
    [0.382, 0.618]
    """

    def _solve(self, graph: Graph, links: LinkSums, first: np.ndarray) -> Fixpoint:
        from scipy.sparse.csgraph import connected_components

        count, _ = connected_components(graph.to_scipy(), connection="strong")
        if count == graph.n and not graph.to_scipy().diagonal().any():
            raise InputError("a graph without a cycle has no leading eigenvector: use KatzRank or PageRank")
        return iterate(
            lambda x: _shifted_step(links, x)[0], first, no_bound, self.tol, self.max_iter, self._progress
        )


@dataclass(eq=False, repr=False)
class KatzRank(WeightedRank):
    """Katz centrality (Katz, 1953): ``x_i = α·Σ_{j→i} w_ij·x_j + 1``, normalised to sum 1.

    Parameters
    ----------
    alpha : float, optional
        Attenuation per link, below 1 over the spectral radius of the adjacency matrix. None: 0.85 over an upper bound
        of the radius from 100 power steps, or over the largest weight if that is larger.
    tol : float
        Tolerance on the L1 distance to the exact scores.
    max_iter, warm_start, verbose, callback
        As in :class:`PageRank`.

    Attributes
    ----------
    alpha_ : float
        α used in the fit.
    error_bound_, hilbert_bound_ : float
        As in :class:`LpqRank`, bounds on the error and on the relative error of any score.
    names_, ranking_, scores_, converged_, n_iter_, history_
        As in :class:`PageRank`.

    Notes
    -----
    A point y whose residual ``αAᵀy + 1 − y`` is at most κ < 1 in every entry proves that α is small enough (Collatz
    and Wielandt), and is within the factor κ/(1 − κ) of the solution, which is the sum ``Σ_t (αAᵀ)^t 1``.

    Examples
    --------
    >>> from apexrank.graph.spectral import KatzRank
    >>> ranks = KatzRank(alpha=0.5).fit((["a", "b"], ["b", "c"]))
    >>> (4.25 * ranks.scores_).round(6).tolist()
    [1.0, 1.5, 1.75]
    """

    alpha: float | None = None

    def _solve(self, graph: Graph, links: LinkSums, first: np.ndarray) -> Fixpoint:
        # in units of the largest weight, which may be extreme
        radius = _spectral_radius_bound(links)
        if self.alpha is None:
            # with a cycle the radius is about a weight or more; without one it is 0, and any alpha is valid
            alpha = 0.85 / max(radius, 1.0)
        else:
            check_finite("alpha", self.alpha, 0)
            alpha = float(self.alpha) * self._unit
        # the sum of the solution y follows from its shape: Σy = α·Σ_j d_j·y_j + n
        handed_on = alpha * float((graph.out_weight / self._unit * first).sum())
        first = first * graph.n / (1 - handed_on if handed_on < 1 else 1.0)

        def step(y: np.ndarray) -> np.ndarray:
            new = alpha * links.sums(y) + 1.0
            if alpha * radius >= 1 and not np.isfinite(new).all():
                self._refuse(radius)
            return new

        with np.errstate(over="ignore", invalid="ignore"):
            self.alpha_ = float(np.float64(alpha) / self._unit)
            bound = _katz_bound(rounding_of(links))
            answer = iterate(step, first, bound, self.tol, self.max_iter, self._progress)
        if alpha * radius >= 1 and math.isinf(answer.hilbert_bound):
            self._refuse(radius)
        return answer._replace(scores=_shares(answer.scores))

    def _refuse(self, radius: float) -> None:
        raise InputError(
            f"alpha = {self.alpha_:.3g} is not known to be below 1 over the spectral radius of this graph: "
            f"any below {1 / radius / self._unit:.3g} is"
        )


def _katz_bound(rounding: float) -> Bound:
    def bound(new: np.ndarray, old: np.ndarray, change: float) -> tuple[float, float]:
        kappa = float(np.abs(new - old).max()) + rounding * float(new.max())
        if not kappa < 0.5:  # the factor κ/(1 − κ) is not informative yet
            return 2.0, math.inf  # the largest L1 distance of two distributions
        off = kappa / (1 - kappa)
        d = math.log1p(off) - math.log1p(-off)
        return 2 * math.tanh(d / 4), d

    return bound


def _spectral_radius_bound(links: LinkSums) -> float:
    """Upper bound ``max_i (Aᵀx)_i/x_i`` on the spectral radius, valid for any x > 0 (Collatz and Wielandt)."""
    x, least = np.ones(links.n), math.inf
    for _ in range(_RADIUS_STEPS):
        x, upper = _shifted_step(links, x)
        least = min(least, upper)
    return least * (1 + rounding_of(links))


def _shifted_step(links: LinkSums, x: np.ndarray) -> tuple[np.ndarray, float]:
    """Return ``(Aᵀ + c·I)x``, normalised, and ``max_i (Aᵀx)_i/x_i``. The shift c > 0 prevents oscillation."""
    flow = links.sums(x)
    upper = float(np.divide(flow, x, out=np.zeros_like(x), where=x > 0).max(initial=0.0))
    return _shares(flow + 0.1 * upper * x), upper


def _shares(x: np.ndarray) -> np.ndarray:
    """Divide by the sum; return equal shares if the sum is 0."""
    total = float(x.sum())
    return x / total if total > 0 else np.full(len(x), 1.0 / len(x))
