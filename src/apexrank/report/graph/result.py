"""The result of comparing graph ranks: ranks beside PageRank, suspected farms, and a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import numpy as np

from apexrank.graph.base import best_vertices
from apexrank.graph.graph import Graph
from apexrank.graph.neighbourhood import Neighbourhood
from apexrank.report.page import listed, plural

if TYPE_CHECKING:
    import polars as pl

BASELINE = "PageRank"
MOST_USUAL = 0.5  # part of all flow from vertices nobody links to, from which on these are no sign of a farm
_TABLE = (
    *("name", "base_rank", "rank", "base_score", "score", "reason", "suspicion", "excess", "cheap_share"),
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
    """A vertex that may be the target of a link farm, and why; its rank and score are those of the first rank compared.

    ``reason`` is the rule that flagged it: "excess", "unsupported", or "excess and unsupported". ``excess`` is its
    PageRank over what :class:`~apexrank.graph.GuardedPageRank` allows, ``cheap_share`` the part of it
    that walks from vertices with at most one in-link bring, ``unsupported_share`` the part of what comes through its
    in-links from vertices nobody else links to (``unsupported`` of ``in_links``), ``suspicion``
    ``log(excess)·(1 + unsupported_share)·cheap_share``. ``linked_back`` is the share of its sources that it links to,
    ``closed`` the share of them that nobody outside the group links to, ``around`` its strongest in-links in PageRank
    and the links among their sources.
    """

    reason: str
    suspicion: float
    excess: float
    cheap_share: float
    in_links: int
    unsupported: int
    unsupported_share: float
    linked_back: float
    closed: float
    self_loop: bool
    around: Neighbourhood


class RankCertificate(NamedTuple):
    """L1 error bound of a rank's scores (nan if unknown), with its steps and seconds."""

    rank: str
    error_bound: float
    n_iter: int
    converged: bool
    seconds: float


class FarmVerdict(NamedTuple):
    """Verdict on link farms: a kind and a sentence.

    ``kind`` is "suspects", "nothing found", "cannot tell" where boosters would look like everybody else, or "no links"
    where no vertex links to another one.
    """

    kind: str
    text: str


@dataclass(frozen=True, eq=False)
class RankLists:
    """Scores and ranks of the vertices of a graph by several ranks, the first of which is PageRank."""

    graph: Graph
    names: list[str]
    scores: list[np.ndarray]
    ranks: list[np.ndarray]

    def rows(self, i: int, vertices: np.ndarray, flagged: np.ndarray) -> list[RankedVertex]:
        """Vertices with their ranks and scores in the i-th rank and in PageRank."""
        now, base = self.ranks[i][vertices], self.ranks[0][vertices]
        columns = now, self.graph.labels(vertices), self.scores[i][vertices], base, self.scores[0][vertices]
        lists = [column.tolist() for column in (*columns, base - now, np.isin(vertices, flagged))]
        return [RankedVertex(*row) for row in zip(*lists, strict=True)]


@dataclass(frozen=True, eq=False)
class RankComparison(RankLists):
    """PageRank and other ranks of the same graph, side by side; lists are by the number of a rank in ``names``.

    Attributes
    ----------
    graph : Graph
        What was ranked.
    names : list of str
        Names of the ranks, PageRank first.
    scores : list of arrays of shape (n_vertices,)
        For each rank.
    ranks : list of arrays of shape (n_vertices,)
        From 1; equals share the best of their ranks.
    damping : float
        Share that follows links in PageRank.
    certificates : list of RankCertificate
    head : int
        Only vertices of this PageRank or better are looked at.
    has_links : bool
        Whether any vertex links to another one.
    usual : float
        Part of PageRank's flow through all links that starts at vertices nobody links to.
    least_excess : float
        PageRank over what its guard allows, from which on a vertex is suspected.
    flagged : array of int
        Numbers of all vertices that look like targets of farms, the most suspicious first.
    suspects : list of Suspect
        The first of them, and the evidence.
    closed : list of int
        For each rank, how many of its first ``top`` vertices are on closed cycles.
    spam : array of bool, optional
        Labels, which only measure.
    measures : list of dict
        For each rank with labels: ``spam_mass``, and ``spam_met`` among the first ``top``.
    notes : list of str
        What was skipped or assumed.
    seconds : dict of str to float
    top : int
    title : str
    """

    damping: float
    certificates: list[RankCertificate]
    head: int
    has_links: bool
    usual: float
    least_excess: float
    flagged: np.ndarray
    suspects: list[Suspect]
    closed: list[int]
    spam: np.ndarray | None
    measures: list[dict[str, float]]
    notes: list[str]
    seconds: dict[str, float]
    top: int = 30
    title: str = "Ranks and link farms"

    def top_items(self, i: int, k: int | None = None) -> list[RankedVertex]:
        """The first k vertices in the i-th rank, by default ``top``."""
        return self.rows(i, best_vertices(self.scores[i], self.top if k is None else k), self.flagged)

    def fallen(self, i: int, k: int | None = None) -> list[RankedVertex]:
        """PageRank's first k that are not among the first k in the i-th rank."""
        k = self.top if k is None else k
        base = best_vertices(self.scores[0], k)
        return self.rows(i, base[~np.isin(base, best_vertices(self.scores[i], k))], self.flagged)

    @property
    def converged(self) -> bool:
        """Whether all ranks converged."""
        return all(each.converged for each in self.certificates)

    @property
    def verdict(self) -> FarmVerdict:
        """The finding in plain words."""
        return judge_farms(self)

    def table(self) -> pl.DataFrame:
        """Suspects as a polars frame, one row each, without their links."""
        import polars as pl

        kinds = {int: pl.Int64, float: pl.Float64, bool: pl.Boolean, str: pl.String}
        types = get_type_hints(Suspect)
        columns = {name: [getattr(suspect, name) for suspect in self.suspects] for name in _TABLE}
        overrides = {name: kinds[types[name]] for name in _TABLE if types[name] in kinds}
        return pl.DataFrame(columns, schema_overrides=overrides).rename(_RENAMED)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the scores of all vertices, as plain values."""
        return {
            "vertices": self.graph.n,
            "links": self.graph.n_edges,
            "damping": self.damping,
            "head": self.head,
            "usual_unsupported_share": self.usual,
            "least_excess": self.least_excess,
            "verdict": self.verdict._asdict(),
            "flagged": len(self.flagged),
            "suspects": [_suspect_dict(suspect) for suspect in self.suspects],
            "ranks": [self._of_rank(i) for i in range(len(self.names))],
            "notes": list(self.notes),
            "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()},
        }

    def _of_rank(self, i: int) -> dict[str, Any]:
        return {
            "certificate": self.certificates[i]._asdict(),
            **({"measures": self.measures[i]} if self.measures else {}),
            "closed": self.closed[i],
            "top": [asdict(item) for item in self.top_items(i)],
        }


def _suspect_dict(suspect: Suspect) -> dict[str, Any]:
    around = suspect.around
    links = [link._asdict() for link in around.links]
    own = {name: value for name, value in vars(suspect).items() if name != "around"}
    return own | {"links": links, "among": around.among}


def judge_farms(found: RankComparison) -> FarmVerdict:
    """Say what was found, whether the ranks have converged, and where closed cycles stand on top of them.

    Examples
    --------
    >>> from apexrank.report import compare_ranks
    >>> judge_farms(compare_ranks(([0, 1], [0, 1]))).text
    'There are no links but those of vertices to themselves: nothing to look at.'
    """
    kind, text = _judge(found)
    closed = max(range(len(found.closed)), key=found.closed.__getitem__)
    if found.has_links and found.closed[closed] > found.closed[0] + found.top // 10:
        text += (
            f" {found.closed[closed]} of the first {found.top} with {found.names[closed]} are not honest pages but "
            f"closed cycles, which keep what they hold ({found.closed[0]} with PageRank)."
        )
    open_ends = [each.rank for each in found.certificates if not each.converged]
    if open_ends:
        text += (
            f" The ranks have not converged ({listed(open_ends)}), so this may change: raise max_iter or tol."
        )
    return FarmVerdict(kind, text)


def _judge(found: RankComparison) -> tuple[str, str]:
    if not found.has_links:
        but = " but those of vertices to themselves" if found.graph.n_edges else ""
        return "no links", f"There are no links{but}: nothing to look at."
    if len(found.flagged):
        return "suspects", _suspects(found)
    if found.usual >= MOST_USUAL:
        return "cannot tell", (
            f"Link farms can hardly be told here: {found.usual:.0%} of what flows through all links starts at vertices "
            "nobody links to, so that such in-links are no sign of a farm."
        )
    return "nothing found", (
        f"Nothing suspicious found: none of PageRank's first {found.head:,} vertices gets most of its rank from "
        "vertices nobody else links to, or much more from cheap ones than many independent links allow."
    )


def _suspects(found: RankComparison) -> str:
    flagged = found.flagged
    at_top = flagged[np.isin(flagged, best_vertices(found.scores[0], found.top))]
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
    before, after = (float(np.median(found.ranks[i][vertices])) for i in (0, 1))
    text = (
        "most of [its|their] rank comes from vertices nobody else links to, or it is much more than many independent "
        f"links allow. With {found.names[1]} [its|their median] place goes from {before:,.0f} to {after:,.0f}."
    )
    return plural(text, len(vertices))
