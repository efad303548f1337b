"""Which vertices look like the targets of link farms, and which gain by links that go round in circles.

The rule and how well it works: `apexrank.report.farms`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from apexrank.graph.base import IteratedRank
from apexrank.graph.graph import Graph
from apexrank.report.farm_evidence import (
    MOST_USUAL,
    Support,
    closed_share,
    cycle_length,
    links_among,
    self_loops,
    support,
    unsupported_share,
)
from apexrank.report.farm_rows import Riser, Suspect, first

HEAD_LEAST, HEAD_SHARE = 100, 0.01  # how far down PageRank's list a fall means something
BOOSTERS = 5  # fewer make no farm
RISERS = 10


def ranks_of(scores: np.ndarray) -> np.ndarray:
    """Ranks from 1; equals share the best of theirs.

    Examples
    --------
    >>> ranks_of(np.array([0.1, 0.4, 0.4, 0.1])).tolist()
    [3, 1, 1, 3]
    """
    return np.searchsorted(np.sort(-scores), -scores) + 1


class Look:
    """What the links say about the vertices in PageRank's head."""

    def __init__(
        self, graph: Graph, fits: list[IteratedRank], ranks: list[np.ndarray], trusted: np.ndarray | None
    ) -> None:
        self.graph, self.fits, self.ranks = graph, fits, ranks
        self.head = min(graph.n, max(HEAD_LEAST, int(HEAD_SHARE * graph.n)))
        base = fits[0].scores_
        eligible = (ranks[0] <= self.head) & (base > 1 / graph.n)
        if trusted is not None:
            eligible &= ~trusted
        self.vertices = np.flatnonzero(eligible)
        self.support = support(graph, base, self.vertices)
        self.usual = unsupported_share(graph, base)
        self.loops = self_loops(graph)
        self.least_share = (1 + self.usual) / 2
        self._links: dict[int, list[Any]] = {}
        boosted = (self.support.share >= self.least_share) & (self.support.unsupported >= BOOSTERS)
        self._boosted = boosted & (self.usual < MOST_USUAL)

    @property
    def boosted(self) -> np.ndarray:
        """Vertices whose rank comes mostly from unsupported ones, whether they fall or not."""
        return self.vertices[self._boosted]

    def flagged(self, i: int) -> np.ndarray:
        """Vertices that look like targets of farms, the most suspicious first."""
        falls = self._falls(i)
        # where one vertex takes all score, as with a large ratio, every score falls and every place may rise
        behind = self.ranks[i][self.vertices] > self.ranks[0][self.vertices]
        chosen = np.flatnonzero(self._boosted & (falls > 0) & behind)
        suspicion = falls[chosen] * self.support.share[chosen]
        return self.vertices[chosen[np.argsort(-suspicion, kind="stable")]]

    def _falls(self, i: int) -> np.ndarray:
        base, now = self.fits[0].scores_[self.vertices], self.fits[i].scores_[self.vertices]
        # without trust a score may be 0: an endless fall
        with np.errstate(divide="ignore"):
            return np.log(base) - np.log(now)

    def suspect(self, v: int, i: int, neighbours: int) -> Suspect:
        at = int(np.searchsorted(self.vertices, v))
        seen = Support(*(column[at] for column in self.support))
        score, base = (float(self.fits[number].scores_[v]) for number in (i, 0))
        rank, base_rank = int(self.ranks[i][v]), int(self.ranks[0][v])
        fall = float(self._falls(i)[at])
        links, closed, among = self._about(v, neighbours)
        return Suspect(
            rank,
            self.graph.label(v),
            score,
            base_rank,
            base,
            base_rank - rank,
            fall,
            fall * float(seen.share),
            int(seen.sources),
            int(seen.unsupported),
            float(seen.share),
            float(seen.back / max(1, seen.sources)),
            closed,
            bool(self.loops[v]),
            links,
            among,
        )

    def _about(self, v: int, neighbours: int) -> Any:
        """What is the same at every p: the strongest in-links, whether they are a closed group, links among them."""
        if v not in self._links:
            name = self.graph.label(v)
            links = [link for link in self.fits[0].explain(name) if link.source not in (None, name)][
                :neighbours
            ]
            sources = self.graph.numbers([link.source for link in links])
            among = links_among(self.graph, [v, *sources.tolist()])
            self._links[v] = [links, closed_share(self.graph, v), among]
        return self._links[v]

    def risers(self, i: int) -> list[Riser]:
        """Vertices that gain most, of those that come into a head of the same length."""
        if not i:
            return []
        now, base = self.ranks[i], self.ranks[0]
        inside = first(self.fits[i].scores_, self.head)
        inside = inside[now[inside] < base[inside]]
        gain = np.log(base[inside] / now[inside])
        return [self._riser(int(v), i) for v in inside[np.argsort(-gain, kind="stable")[:RISERS]]]

    def _riser(self, v: int, i: int) -> Riser:
        rank, base_rank, name = int(self.ranks[i][v]), int(self.ranks[0][v]), self.graph.label(v)
        strongest = self.fits[i].explain(name, top=1)[0]
        return Riser(
            rank,
            name,
            float(self.fits[i].scores_[v]),
            base_rank,
            base_rank - rank,
            cycle_length(self.graph, v),
            bool(self.loops[v]),
            strongest.source,
            strongest.share,
        )
