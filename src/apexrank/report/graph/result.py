"""The result of comparing graph ranks: ranks beside PageRank, suspected farms, and a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import numpy as np

from apexrank.graph.base import InLink
from apexrank.graph.graph import Graph
from apexrank.report.page import json_power, listed, plural, power_label

if TYPE_CHECKING:
    import polars as pl

MOST_USUAL = 0.5  # part of all flow from vertices nobody links to, from which on these are no sign of a farm
_TABLE = (
    *("name", "base_rank", "rank", "base_score", "score", "fall", "suspicion"),
    *("in_links", "unsupported", "unsupported_share", "linked_back", "closed", "self_loop"),
)
_RENAMED = {"name": "vertex", "base_rank": "pagerank_rank", "base_score": "pagerank_score"}


@dataclass(frozen=True)
class RankedVertex:
    """A vertex in a list: ``change`` is places won against PageRank; equals share the best of their ranks.

    ``suspect`` says whether it looks like the target of a link farm.
    """

    rank: int
    name: Any
    score: float
    base_rank: int
    base_score: float
    change: int
    suspect: bool


@dataclass(frozen=True)
class Suspect(RankedVertex):
    """A vertex that may be the target of a link farm, and why.

    ``fall`` is the logarithm of PageRank's score over the score here, ``suspicion`` that times ``unsupported_share``,
    the part of what PageRank sends through its in-links that comes from vertices nobody else links to
    (``unsupported`` of ``in_links``). ``linked_back`` is the share of its sources that it links to, ``closed`` the
    share of them that nobody outside the group links to. ``links`` are the strongest in PageRank, less the teleport
    and a link to itself; ``among`` are links between the vertex (0) and their sources (1, 2, …).
    """

    fall: float
    suspicion: float
    in_links: int
    unsupported: int
    unsupported_share: float
    linked_back: float
    closed: float
    self_loop: bool
    links: list[InLink]
    among: list[tuple[int, int]]


@dataclass(frozen=True)
class Riser(RankedVertex):
    """A vertex that gains most: ``cycle`` is the length of the closed cycle it is on, 0 for none."""

    cycle: int
    self_loop: bool
    strongest: Any
    strongest_share: float

    @property
    def note(self) -> str:
        """What to keep in mind."""
        if self.cycle:
            return plural("[links to nobody but itself|on a closed cycle of # vertices]", self.cycle)
        return "links to itself, too" if self.self_loop else ""


class RankCertificate(NamedTuple):
    """How near the scores at one p are to the exact ones (L1), after how many steps and seconds."""

    p: float
    error_bound: float
    n_iter: int
    converged: bool
    seconds: float


class FarmVerdict(NamedTuple):
    """Verdict on link farms: a kind and a sentence.

    ``kind`` is "suspects", "nothing found", "nothing falls" where vertices are boosted but keep score or place, "cannot
    tell" where boosters would look like everybody else, or "no links" where no vertex links to another one.
    """

    kind: str
    text: str


@dataclass(frozen=True, eq=False)
class RankLists:
    """Scores and ranks of the vertices of a graph at several p, the first of which is PageRank."""

    graph: Graph
    scores: list[np.ndarray]
    ranks: list[np.ndarray]

    def rows(self, i: int, vertices: np.ndarray, flagged: np.ndarray) -> list[RankedVertex]:
        """Vertices with their ranks and scores at the i-th p and in PageRank."""
        now, base = self.ranks[i][vertices], self.ranks[0][vertices]
        columns = now, self.graph.labels(vertices), self.scores[i][vertices], base, self.scores[0][vertices]
        lists = [column.tolist() for column in (*columns, base - now, np.isin(vertices, flagged))]
        return [RankedVertex(*row) for row in zip(*lists, strict=True)]


@dataclass(frozen=True, eq=False)
class RankComparison(RankLists):
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
    certificates : list of RankCertificate
    chosen : int
        Number of the p that the verdict speaks of: the one that puts those flagged there furthest down, in the median;
        where none are, the smallest from 4 on, else the largest.
    head : int
        Only vertices of this PageRank or better are looked at.
    has_links : bool
        Whether any vertex links to another one.
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

    ps: tuple[float, ...]
    ratio: float
    damping: float
    certificates: list[RankCertificate]
    chosen: int
    head: int
    has_links: bool
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

    def top_items(self, i: int, k: int | None = None) -> list[RankedVertex]:
        """The first k vertices at the i-th p, by default ``top``."""
        return self.rows(i, first(self.scores[i], self.top if k is None else k), self.flagged[i])

    def fallen(self, i: int, k: int | None = None) -> list[RankedVertex]:
        """PageRank's first k that are not among the first k at the i-th p."""
        k = self.top if k is None else k
        base = first(self.scores[0], k)
        return self.rows(i, base[~np.isin(base, first(self.scores[i], k))], self.flagged[i])

    def suspects(self, i: int | None = None) -> list[Suspect]:
        """Suspected farms at the i-th p (by default ``chosen``), the most suspicious first; none at p = 1."""
        return self.suspect_lists[self.chosen if i is None else i]

    @property
    def converged(self) -> bool:
        """Whether the ranks converged at every p."""
        return all(each.converged for each in self.certificates)

    def risers(self, i: int | None = None) -> list[Riser]:
        """Vertices that gain most at the i-th p: not all of them deserve it."""
        return self.riser_lists[self.chosen if i is None else i]

    @property
    def verdict(self) -> FarmVerdict:
        """What was found at the chosen p, in plain words."""
        return judge_farms(self)

    def table(self, i: int | None = None) -> pl.DataFrame:
        """Suspects as a polars frame, one row each, without their links."""
        import polars as pl

        suspects = self.suspects(i)
        kinds, types = {int: pl.Int64, float: pl.Float64, bool: pl.Boolean}, get_type_hints(Suspect)
        columns = {name: [getattr(suspect, name) for suspect in suspects] for name in _TABLE}
        overrides = {name: kinds[types[name]] for name in _TABLE if types[name] in kinds}
        return pl.DataFrame(columns, schema_overrides=overrides).rename(_RENAMED)

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
            "chosen_p": json_power(self.ps[self.chosen]),
            "ranks": [self._of_power(i) for i in range(len(self.ps))],
            "notes": list(self.notes),
            "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()},
        }

    def _of_power(self, i: int) -> dict[str, Any]:
        suspects = [
            asdict(suspect) | {"links": [link._asdict() for link in suspect.links]}
            for suspect in self.suspects(i)
        ]
        return {
            "certificate": self.certificates[i]._asdict() | {"p": json_power(self.ps[i])},
            **({"measures": self.measures[i]} if self.measures else {}),
            "flagged": len(self.flagged[i]),
            "top": [asdict(item) for item in self.top_items(i)],
            "suspects": suspects,
            "risers": [asdict(riser) | {"note": riser.note} for riser in self.risers(i)],
        }


def first(scores: np.ndarray, k: int) -> np.ndarray:
    """Indices of the k largest scores, best first; ties in input order.

    Examples
    --------
    >>> first(np.array([1.0, 3.0, 3.0, 2.0]), 3).tolist()
    [1, 2, 3]
    """
    k = min(k, len(scores))
    if not k:
        return np.empty(0, dtype=np.int64)
    lowest = np.partition(scores, len(scores) - k)[len(scores) - k]
    candidates = np.flatnonzero(scores >= lowest)
    return candidates[np.argsort(-scores[candidates], kind="stable")[:k]]


def rank_label(p: float) -> str:
    """Label of a rank.

    Examples
    --------
    >>> rank_label(1.0), rank_label(2.5), rank_label(float("inf"))
    ('PageRank', 'p = 2.5', 'p = ∞')
    """
    return "PageRank" if p == 1 else power_label(p)


def judge_farms(found: RankComparison) -> FarmVerdict:
    """Say what was found at the chosen p, and whether the ranks it rests on have converged.

    Examples
    --------
    >>> from apexrank.report import compare_ranks
    >>> judge_farms(compare_ranks(([0, 1], [0, 1]))).text
    'There are no links but those of vertices to themselves: nothing to look at.'
    """
    kind, text = _judge(found)
    open_ends = [rank_label(each.p) for each in found.certificates if not each.converged]
    if open_ends:
        text += (
            f" The ranks have not converged ({listed(open_ends)}), so this may change: raise max_iter or tol."
        )
    return FarmVerdict(kind, text)


def _judge(found: RankComparison) -> tuple[str, str]:
    if not found.has_links:
        but = " but those of vertices to themselves" if found.graph.n_edges else ""
        return "no links", f"There are no links{but}: nothing to look at."
    if found.usual >= MOST_USUAL:
        return "cannot tell", (
            f"Link farms cannot be told here: {found.usual:.0%} of what flows through all links starts at vertices "
            "nobody links to, so that such in-links are no sign of a farm."
        )
    if len(found.flagged[found.chosen]):
        return "suspects", _suspects(found)
    head, n = f"{found.head:,}", len(found.unmoved)
    if not n:
        return "nothing found", (
            f"Nothing suspicious found: none of PageRank's first {head} vertices gets most of its rank from "
            "vertices nobody else links to."
        )
    text = (
        f"No suspects: # of PageRank's first {head} vertices [gets|get] most of [its|their] rank from vertices nobody "
        "else links to, but [it does|they do] not fall in both score and place at a p tried. A larger p or a smaller "
        "ratio may tell more."
    )
    return "nothing falls", plural(text, n)


def _suspects(found: RankComparison) -> str:
    flagged = found.flagged[found.chosen]
    at_top = flagged[np.isin(flagged, first(found.scores[0], found.top))]
    head, top = f"{found.head:,}", min(found.top, found.graph.n)
    if not len(at_top):
        nobody = plural(
            "[PageRank's first vertex does not look|None of PageRank's first # vertices looks] like the target of a "
            "link farm",
            top,
        )
        does = plural(f"# of its first {head} [does|do]", len(flagged))
        return f"{nobody}, but {does}: {_why(found, flagged)}"
    who = "PageRank's first vertex looks like the target of a link farm"
    if top > 1:
        look = "# [vertex that looks like the target of a link farm|vertices that look like targets of link farms]"
        who = f"PageRank's first {top:,} contain {plural(look, len(at_top))}"
    more = f" Among its first {head} there are {len(flagged):,}." if len(flagged) > len(at_top) else ""
    return f"{who}: {_why(found, at_top)}{more}"


def _why(found: RankComparison, vertices: np.ndarray) -> str:
    before, after = (float(np.median(found.ranks[i][vertices])) for i in (0, found.chosen))
    text = (
        f"most of [its|their] rank comes from vertices nobody else links to. At {rank_label(found.ps[found.chosen])}, "
        f"of the p tried the one that moves [it|them] furthest, [its|their median] place goes from {before:,.0f} to "
        f"{after:,.0f}."
    )
    return plural(text, len(vertices))
