"""The answer of `apexrank.report.farms.compare_ranks`: ranks beside PageRank, suspected farms, a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from apexrank.graph.graph import Graph
from apexrank.report.farm_rows import Certificate, Item, Riser, Suspect, Verdict, first, plain
from apexrank.report.farm_verdict import make_verdict

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class RankComparison:
    """PageRank and L_pq ranks of the same graph, side by side; lists are by the number of a p in ``ps``.

    Attributes
    ----------
    graph : Graph
        What was ranked.
    ps : tuple of float
        Powers; the first is 1, PageRank itself.
    ratio, damping : float
        q/p of the others, and the share that follows links.
    scores : list of arrays of shape (n_vertices,)
        For each p, summing to 1.
    ranks : list of arrays of shape (n_vertices,)
        From 1; equals share the best of their ranks.
    certificates : list of Certificate
    chosen : int
        Number of the p that the verdict speaks of: the one that puts those flagged there furthest down, in the median;
        where none are, the smallest from 4 on, else the largest.
    head : int
        Only vertices of this PageRank or better are looked at.
    usual : float
        Part of PageRank's flow through all links that starts at vertices nobody links to.
    flagged : list of arrays of int
        Numbers of all vertices that look like targets of farms, the most suspicious first.
    unmoved : array of int
        Numbers of those whose in-links look like a farm, but whose score or place falls at no p.
    spam : array of bool, optional
        Labels, which only measure.
    measures : list of dict
        For each p with labels: ``spam_mass``, ``spam_met`` among the first ``top``, ``spam_among_suspects``.
    notes : list of str
        What was skipped or assumed.
    seconds : dict of str to float
    top : int
    title : str
    """

    graph: Graph
    ps: tuple[float, ...]
    ratio: float
    damping: float
    scores: list[np.ndarray]
    ranks: list[np.ndarray]
    certificates: list[Certificate]
    chosen: int
    head: int
    usual: float
    flagged: list[np.ndarray]
    unmoved: np.ndarray
    suspect_lists: list[list[Suspect]]
    riser_lists: list[list[Riser]]
    spam: np.ndarray | None
    measures: list[dict[str, float]]
    notes: list[str]
    seconds: dict[str, float]
    top: int = 30
    title: str = "Ranks and link farms"

    def top_items(self, i: int, k: int | None = None) -> list[Item]:
        """The first k vertices at the i-th p, by default ``top``."""
        return self._items(i, first(self.scores[i], self.top if k is None else k))

    def fallen(self, i: int, k: int | None = None) -> list[Item]:
        """PageRank's first k that are not among the first k at the i-th p."""
        k = self.top if k is None else k
        base = first(self.scores[0], k)
        return self._items(i, base[~np.isin(base, first(self.scores[i], k))])

    def _items(self, i: int, vertices: np.ndarray) -> list[Item]:
        flagged = set(self.flagged[i].tolist())
        now, base = self.ranks[i][vertices].tolist(), self.ranks[0][vertices].tolist()
        score, base_score = self.scores[i][vertices].tolist(), self.scores[0][vertices].tolist()
        names = self.graph.labels(vertices).tolist()
        columns = zip(vertices.tolist(), now, names, score, base, base_score, strict=True)
        return [Item(a, name, s, b, t, b - a, v in flagged) for v, a, name, s, b, t in columns]

    def suspects(self, i: int | None = None) -> list[Suspect]:
        """Suspected farms at the i-th p (by default ``chosen``), the most suspicious first; none at p = 1."""
        return self.suspect_lists[self.chosen if i is None else i]

    def risers(self, i: int | None = None) -> list[Riser]:
        """Vertices that gain most at the i-th p: not all of them deserve it."""
        return self.riser_lists[self.chosen if i is None else i]

    @property
    def verdict(self) -> Verdict:
        """What was found at the chosen p, in plain words."""
        return make_verdict(self)

    def table(self, i: int | None = None) -> pl.DataFrame:
        """Suspects as a polars frame, one row each, without their links."""
        import polars as pl

        suspects = self.suspects(i)
        return pl.DataFrame(
            [
                pl.Series(column, [getattr(suspect, name) for suspect in suspects], dtype=kind)
                for column, name, kind in (
                    ("vertex", "name", None),
                    ("pagerank_rank", "base_rank", pl.Int64),
                    ("rank", "rank", pl.Int64),
                    ("pagerank_score", "base_score", pl.Float64),
                    ("score", "score", pl.Float64),
                    ("fall", "fall", pl.Float64),
                    ("suspicion", "suspicion", pl.Float64),
                    ("in_links", "in_links", pl.Int64),
                    ("unsupported", "unsupported", pl.Int64),
                    ("unsupported_share", "unsupported_share", pl.Float64),
                    ("linked_back", "linked_back", pl.Float64),
                    ("closed", "closed", pl.Float64),
                    ("self_loop", "self_loop", pl.Boolean),
                )
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but the scores of all vertices, as plain values."""
        return {
            "vertices": self.graph.n,
            "links": self.graph.n_edges,
            "ratio": self.ratio,
            "damping": self.damping,
            "head": self.head,
            "usual_unsupported_share": self.usual,
            "unmoved": self.graph.labels(self.unmoved).tolist(),
            "verdict": self.verdict._asdict(),
            "chosen_p": plain(self.ps[self.chosen]),
            "ranks": [self._of_power(i) for i in range(len(self.ps))],
            "notes": list(self.notes),
            "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()},
        }

    def _of_power(self, i: int) -> dict[str, Any]:
        suspects = [
            suspect._asdict() | {"links": [link._asdict() for link in suspect.links]}
            for suspect in self.suspects(i)
        ]
        return {
            "certificate": self.certificates[i]._asdict() | {"p": plain(self.ps[i])},
            **({"measures": self.measures[i]} if self.measures else {}),
            "flagged": len(self.flagged[i]),
            "top": [item._asdict() for item in self.top_items(i)],
            "suspects": suspects,
            "risers": [riser._asdict() | {"note": riser.note} for riser in self.risers(i)],
        }
