"""Result of comparing graph ranks: ranks compared with PageRank, suspected farms, and a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import numpy as np

from apexrank.graph.base import best_vertices
from apexrank.graph.graph import Graph
from apexrank.report.page import listed, plural

if TYPE_CHECKING:
    import polars as pl

BASELINE = "PageRank"
MOST_USUAL = 0.5  # share of all flow from vertices without in-links above which these do not indicate a farm
_TABLE = (
    *("name", "base_rank", "rank", "base_score", "score", "reason", "suspicion", "excess", "cheap_share"),
    *("in_links", "unsupported", "unsupported_share", "linked_back", "closed", "self_loop"),
)
_RENAMED = {"name": "vertex", "base_rank": "pagerank_rank", "base_score": "pagerank_score"}


@dataclass(frozen=True)
class RankedVertex:
    """A vertex in a list: ``change`` is the number of ranks gained relative to PageRank; ties share the best rank.

    ``suspect`` tells whether it looks like the target of a link farm.
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
    """A possible target of a link farm, with the evidence; rank and score are those of the first rank compared.

    ``reason`` is the rule that flagged it: "excess", "unsupported", or "excess and unsupported". ``excess`` is the
    ratio of its PageRank to what :class:`~apexrank.graph.GuardedPageRank` allows, ``cheap_share`` the part contributed
    by walks from vertices with at most one in-link, ``unsupported_share`` the part of the flow through its in-links
    that comes from vertices without other in-links (``unsupported`` of ``in_links``), and ``suspicion`` is
    ``log(excess)·(1 + unsupported_share)·cheap_share``. ``linked_back`` is the share of its sources that it links to,
    and ``closed`` the share of them without in-links from outside the group.
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


class RankCertificate(NamedTuple):
    """L1 error bound of a rank's scores (nan if unknown), with its number of steps and seconds."""

    rank: str
    error_bound: float
    n_iter: int
    converged: bool
    seconds: float


class FarmVerdict(NamedTuple):
    """Verdict on link farms: a kind and a sentence.

    ``kind`` is "suspects", "nothing found", "cannot tell" if boosters would look like all other vertices, or "no links"
    if no vertex links to another one.
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
    """PageRank and other ranks of the same graph, compared; lists are indexed by the position of a rank in ``names``.

    Attributes
    ----------
    graph : Graph
        The ranked graph.
    names : list of str
        Names of the ranks, PageRank first.
    scores : list of arrays of shape (n_vertices,)
        Scores by each rank.
    ranks : list of arrays of shape (n_vertices,)
        Ranks from 1; ties share the best of their ranks.
    damping : float
        Damping factor of PageRank.
    certificates : list of RankCertificate
    head : int
        Only vertices up to this position in PageRank are examined.
    has_links : bool
        Whether any vertex links to another one.
    usual : float
        Share of PageRank's flow through all links that starts at vertices without in-links.
    least_excess : float
        Ratio of PageRank to what its guard allows above which a vertex is suspected.
    flagged : array of int
        Indices of all likely targets of farms, the most suspicious first.
    suspects : list of Suspect
        The first of them, with the evidence.
    closed : list of int
        For each rank, the number of its first ``top`` vertices that are on closed cycles.
    spam : array of bool, optional
        Labels, used only for evaluation.
    measures : list of dict
        For each rank with labels: ``spam_mass``, and ``spam_met`` among the first ``top``.
    notes : list of str
        Descriptions of what was skipped or assumed.
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
        """PageRank's first k vertices that are not among the first k in the i-th rank."""
        k = self.top if k is None else k
        base = best_vertices(self.scores[0], k)
        return self.rows(i, base[~np.isin(base, best_vertices(self.scores[i], k))], self.flagged)

    @property
    def converged(self) -> bool:
        """Whether all ranks converged."""
        return all(each.converged for each in self.certificates)

    @property
    def verdict(self) -> FarmVerdict:
        """Verdict as a sentence."""
        return judge_farms(self)

    def table(self) -> pl.DataFrame:
        """Suspects as a polars frame, one row each."""
        import polars as pl

        kinds = {int: pl.Int64, float: pl.Float64, bool: pl.Boolean, str: pl.String}
        types = get_type_hints(Suspect)
        columns = {name: [getattr(suspect, name) for suspect in self.suspects] for name in _TABLE}
        overrides = {name: kinds[types[name]] for name in _TABLE if types[name] in kinds}
        return pl.DataFrame(columns, schema_overrides=overrides).rename(_RENAMED)

    def to_dict(self) -> dict[str, Any]:
        """Everything except the scores of all vertices, as plain values."""
        return {
            "vertices": self.graph.n,
            "links": self.graph.n_edges,
            "damping": self.damping,
            "head": self.head,
            "usual_unsupported_share": self.usual,
            "least_excess": self.least_excess,
            "verdict": self.verdict._asdict(),
            "flagged": len(self.flagged),
            "suspects": [asdict(suspect) for suspect in self.suspects],
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


def judge_farms(found: RankComparison) -> FarmVerdict:
    """Summarise the findings, unconverged ranks, and closed cycles at the top of a rank.

    Examples
    --------
    >>> from apexrank.report import compare_ranks
    >>> judge_farms(compare_ranks(([0, 1], [0, 1]))).text
    'There are no links except self-loops, so there is nothing to examine.'
    """
    kind, text = _judge(found)
    closed = max(range(len(found.closed)), key=found.closed.__getitem__)
    if found.has_links and found.closed[closed] > found.closed[0] + found.top // 10:
        text += (
            f" {found.closed[closed]} of the first {found.top} with {found.names[closed]} are not honest pages but "
            f"parts of closed cycles, which retain their rank ({found.closed[0]} with PageRank)."
        )
    open_ends = [each.rank for each in found.certificates if not each.converged]
    if open_ends:
        text += f" The ranks have not converged ({listed(open_ends)}), so this may change: raise `max_iter` or `tol`."
    return FarmVerdict(kind, text)


def _judge(found: RankComparison) -> tuple[str, str]:
    if not found.has_links:
        but = " except self-loops" if found.graph.n_edges else ""
        return "no links", f"There are no links{but}, so there is nothing to examine."
    if len(found.flagged):
        return "suspects", _suspects(found)
    if found.usual >= MOST_USUAL:
        return "cannot tell", (
            f"Link farms can hardly be detected here: {found.usual:.0%} of the flow through all links starts at "
            "vertices without in-links, so such links do not indicate a farm."
        )
    return "nothing found", (
        f"Nothing suspicious found: none of PageRank's first {found.head:,} vertices gets most of its rank from "
        "vertices without other in-links, or much more from cheap ones than many independent links allow."
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
        "most of [its|their] rank comes from vertices without other in-links, or it is much more than many independent "
        f"links allow. With {found.names[1]} [its|their median] place changes from {before:,.0f} to {after:,.0f}."
    )
    return plural(text, len(vertices))
