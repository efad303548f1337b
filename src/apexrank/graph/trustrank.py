"""The established ranks with labels, under their own names: TrustRank, anti-TrustRank and demoted rank."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from apexrank.checks import check_finite
from apexrank.errors import InputError
from apexrank.graph.graph import Graph
from apexrank.graph.base import plain_graph, teleport_vectors
from apexrank.graph.pagerank import PageRank
from apexrank.graph.power import Fixpoint, Progress
from apexrank.graph.trust import DIRECTIONS, Direction


class TrustRank(PageRank):
    """PageRank that starts anew at trusted vertices only (Gyöngyi, Garcia-Molina and Pedersen, 2004).

    Parameters
    ----------
    damping, tol, max_iter, warm_start, verbose, callback
        As in :class:`PageRank`. Trust that ends at dangling vertices goes back to the trusted ones.

    Attributes
    ----------
    scores_ : array of shape (n_vertices,)
        Trust, summing to 1; 0 where no link leads from a trusted vertex.

    Examples
    --------
    >>> from apexrank.graph.trustrank import TrustRank
    >>> TrustRank().fit((["a", "b", "x"], ["b", "c", "c"]), trusted=["a"]).ranking_.tolist()
    ['a', 'b', 'c', 'x']
    """

    _seeds_are = "trusted"

    def fit(self, graph: Any, y: None = None, *, trusted: Any = None) -> Self:  # type: ignore[override]
        """Spread trust from vertices given by names, by a mapping of names to weights, or by one weight a vertex."""
        if trusted is None:
            raise InputError("TrustRank needs trusted vertices: fit(graph, trusted=[…])")
        return super().fit(graph, teleport=trusted)


class AntiTrustRank(PageRank):
    """Distrust that flows from spam to those who point at it (Krishnan and Raj, 2006).

    Parameters
    ----------
    damping : float
        What is left of distrust after one link.
    direction : {"against", "along"}
        Against the links, or along them, which lets spammers demote whomever they point at.
    tol, max_iter, verbose, callback
        As in :class:`PageRank`.

    Attributes
    ----------
    distrust_ : array of shape (n_vertices,)
        Distrust, summing to 1.
    scores_ : array of shape (n_vertices,)
        ``−distrust_``, so that larger is better here as everywhere.

    Examples
    --------
    >>> from apexrank.graph.trustrank import AntiTrustRank
    >>> ranks = AntiTrustRank().fit((["a", "b", "x"], ["b", "spam", "a"]), distrusted=["spam"])
    >>> ranks.ranking_.tolist()
    ['x', 'a', 'b', 'spam']
    """

    def __init__(
        self,
        damping: float = 0.85,
        *,
        direction: Direction = "against",
        tol: float = 1e-9,
        max_iter: int = 1000,
        verbose: int = 0,
        callback: Progress | None = None,
    ) -> None:
        super().__init__(damping, tol=tol, max_iter=max_iter, verbose=verbose, callback=callback)
        self.direction = direction

    def fit(self, graph: Any, y: None = None, *, distrusted: Any = None) -> Self:  # type: ignore[override]
        """Spread distrust from vertices given by names, by a mapping of names to weights, or by one weight a vertex."""
        self._check_numbers()
        read = plain_graph(graph)
        answer = self._distrust(read, distrusted)
        self._keep(read, answer._replace(scores=0.0 - answer.scores))
        self.distrust_ = answer.scores
        return self

    def _distrust(self, graph: Graph, distrusted: Any) -> Fixpoint:
        if distrusted is None:
            raise InputError(f"{type(self).__name__} needs distrusted vertices: fit(graph, distrusted=[…])")
        if self.direction not in DIRECTIONS:
            raise InputError(f"direction must be 'against' or 'along' the links, got {self.direction!r}")
        links = graph if self.direction == "along" else graph.reversed()
        return self._rank(links, self._seed_shares(graph, distrusted, "distrusted"))

    def _seed_shares(self, graph: Graph, seeds: Any, what: str) -> np.ndarray:
        shares = teleport_vectors(graph, seeds, what)
        if shares.ndim > 1:
            raise InputError(
                f"{type(self).__name__} takes one set of {what} vertices: fit others on their own"
            )
        return shares

    def explain(self, vertex: Any, top: int | None = None) -> Any:
        raise InputError(f"{type(self).__name__} does not add up in-links: see distrust_")


class DemotedRank(AntiTrustRank):
    """Trust less distrust (Wu, Goel and Davison, 2006): ``trust − beta·distrust``.

    Parameters
    ----------
    damping, direction, tol, max_iter, verbose, callback
        As in :class:`AntiTrustRank`.
    beta : float
        How much distrust weighs.

    Attributes
    ----------
    trust_, distrust_ : array of shape (n_vertices,)
        As in :class:`TrustRank` and :class:`AntiTrustRank`.
    scores_ : array of shape (n_vertices,)
        ``trust_ − beta·distrust_``.

    Examples
    --------
    >>> from apexrank.graph.trustrank import DemotedRank
    >>> ranks = DemotedRank().fit((["a", "b", "a"], ["b", "spam", "c"]), trusted=["a"], distrusted=["spam"])
    >>> ranks.ranking_.tolist()
    ['c', 'a', 'b', 'spam']
    """

    def __init__(
        self,
        damping: float = 0.85,
        *,
        beta: float = 1.0,
        direction: Direction = "against",
        tol: float = 1e-9,
        max_iter: int = 1000,
        verbose: int = 0,
        callback: Progress | None = None,
    ) -> None:
        super().__init__(
            damping,
            direction=direction,
            tol=tol,
            max_iter=max_iter,
            verbose=verbose,
            callback=callback,
        )
        self.beta = beta

    def fit(self, graph: Any, y: None = None, *, trusted: Any = None, distrusted: Any = None) -> Self:  # type: ignore[override]
        """Spread trust and distrust from vertices given as in :meth:`TrustRank.fit`."""
        self._check_numbers()
        check_finite("beta", self.beta, 0)
        if trusted is None:
            raise InputError("DemotedRank needs trusted vertices: fit(graph, trusted=[…], distrusted=[…])")
        read = plain_graph(graph)
        good = self._rank(read, self._seed_shares(read, trusted, "trusted"))
        bad = self._distrust(read, distrusted)
        both = Fixpoint(
            good.scores - self.beta * bad.scores,
            max(good.n_iter, bad.n_iter),
            good.converged and bad.converged,
            good.error_bound + self.beta * bad.error_bound,
            np.nan,
            [],
        )
        self._keep(read, both)
        self.trust_, self.distrust_ = good.scores, bad.scores
        return self

    def _tol(self) -> float:
        return self.tol / (1 + self.beta)  # the errors of trust and of distrust add up
