"""PageRank compared with ranks that resist link farms, and detection of likely targets of farms.

Only PageRank's *head* is examined, its first hundred vertices or first hundredth, as far as they are above the average.
A vertex is *flagged* for either of two reasons:

* its *excess*, the ratio of PageRank to what :class:`~apexrank.graph.GuardedPageRank` allows it,
  ``pagerank_i/(limit·guard_i)``, is above 5 and above 10 times the lower quartile of the head, and c, the part of its
  PageRank contributed by walks from *cheap* vertices, those with at most one in-link, is closer to 1 than to the usual
  value in the graph; or
* u, the part of PageRank's flow into it that comes from vertices without other in-links, like boosters, is closer to 1
  than to the usual value, and at least five such vertices link to it. If half of all flow starts at such vertices, as
  when many vote for few, this rule is not used.

They are ordered by suspicion, ``log(excess_i)·(1 + u_i)·c_i``. Neither depends on the ranks that are compared.

The table shows the share of the attackers' vertices among the first 10, 30 and 50 suspects, and the number of targets
among all suspects, with 50 targets (17 in wiki-Vote) attacked by `apexrank.datasets.attack`, self-loops dropped
(``python -m benchmarks.farms``). The rule was chosen on other graphs (links of manuals, dependencies of packages,
ratings, a smaller synthetic crawl); these four were looked at twice, and c was added after the first look.

=========================  =====================  =====================  =====================  =====================
planted                    wiki-Vote              epinions, trust        synthetic crawl        cnr-2000
=========================  =====================  =====================  =====================  =====================
200 boosters, linked back  1.00, .61, .61; all    1.00, 1.00, .96; all   1.00, 1.00, 1.00; all  1.00, 1.00, .92; all
200 boosters               1.00, .94, .94; all    .80, .93, .90; all     1.00, 1.00, 1.00; all  .00, .00, .00; all
50 boosters, linked back   1.00, .71, .71; all    1.00, 1.00, .96; all   1.00, 1.00, 1.00; all  .90, .93, .82; all
triangles                  1.00, .59, .59; 16     .90, .93, .94; 48      1.00, 1.00, 1.00; all  .00, .00, .00; all
funnels                    1.00, 1.00, .96; 14    .70, .90, .94; 48      1.00, 1.00, 1.00; all  .00, .00, .00; 49
cycles of three            1.00, 1.00, 1.00; all  1.00, 1.00, 1.00; 48   1.00, 1.00, 1.00; all  .00, .53, .60; all
exchange of farms          1.00, .71, .71; all    1.00, 1.00, .96; all   1.00, 1.00, 1.00; all  .00, .00, .00; all
nothing: suspects of head  6 of 100               8 of 1,318             0 of 1,000             426 of 3,255
=========================  =====================  =====================  =====================  =====================

In cnr-2000, sites are built like farms: the median suspect without any planted farm links back to 93 % of its sources,
and 89 % of them have no in-links from outside the group. All targets but one are suspected there, but only those that
link back come first. Boosters with several in-links each, as in a mesh or in an honest site, are not found.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from apexrank.errors import InputError
from apexrank.graph import neighbourhood as nearby
from apexrank.graph.base import GraphRank, best_vertices, plain_graph, seed_vector
from apexrank.graph.graph import Graph
from apexrank.graph.nonbacktracking import NonBacktrackingRank
from apexrank.graph.pagerank import GuardedPageRank, PageRank
from apexrank.graph.trust import TrustRank
from apexrank.metrics.precision import spam_mass, spam_met
from apexrank.report.graph.result import (
    BASELINE,
    MOST_USUAL,
    RankCertificate,
    RankComparison,
    RankLists,
    Suspect,
)
from apexrank.report.page import Stages, plural
from apexrank.validation import check_count

HEAD_LEAST, HEAD_SHARE = 100, 0.01  # part of PageRank's list that is examined
BOOSTERS = 5  # minimum number of boosters of a farm
CHEAP = 1  # maximum number of in-links of a vertex that an attacker can create at no cost
LEAST_EXCESS, BEYOND_QUARTILE = 5.0, 10.0  # chosen on graphs other than those of the table

# the thresholds below were chosen with this guard
SUSPECTS_GUARD: dict[str, Any] = {"min_links": 15.0, "early": 0.2, "keep": 0.85}


def compare_ranks(
    graph: Any,
    *,
    ranks: Mapping[str, GraphRank] | None = None,
    damping: float = 0.85,
    top: int = 30,
    suspects: int = 30,
    spam: Any = None,
    trusted: Any = None,
    tol: float = 1e-7,
    max_iter: int = 1000,
    progress: Callable[[str], None] | None = None,
) -> RankComparison:
    """Rank a graph by PageRank and by ranks that resist link farms, and search for farms.

    Parameters
    ----------
    graph : anything accepted by :func:`apexrank.graph.as_graph`
        Undirected edges count in both directions.
    ranks : mapping of str to GraphRank, optional
        Unfitted ranks to compare with PageRank, by name; default: `GuardedPageRank` and `NonBacktrackingRank`, and
        `TrustRank` if ``trusted`` is given.
    damping, tol, max_iter
        As in `PageRank`, for PageRank itself and for the default ranks.
    top : int
        Number of vertices in the lists shown.
    suspects : int
        Maximum number of suspects listed.
    spam : names, mapping of names to weights, or array of one bool a vertex, optional
        Vertices known to be spam, used only for evaluation: no rank and no suspicion depends on them. Names that are
        not in the graph are ignored, with a note.
    trusted : in the same form, optional
        Trusted vertices: passed to every rank that accepts them, and never suspected.
    progress : callable, optional
        Called with the name of each stage.

    Returns
    -------
    RankComparison

    Examples
    --------
    >>> from apexrank.datasets.crawl import make_crawl, plant_farms
    >>> from apexrank.report import compare_ranks
    >>> web = make_crawl(1000, random_state=0).adjacency
    >>> crawl = plant_farms(web, farms=2, boosters=30)
    >>> found = compare_ranks(crawl.adjacency)
    >>> [suspect.name for suspect in found.suspects], crawl.target_vertices.tolist()
    ([1000, 1031], [1000, 1031])
    >>> compare_ranks(web).verdict.kind
    'nothing found'
    """
    for name, value in (("top", top), ("suspects", suspects)):
        check_count(name, value)
    options: dict[str, Any] = {"damping": damping, "tol": tol, "max_iter": max_iter}
    plain = PageRank(**options)
    if ranks is None:
        ranks = {kind.__name__: kind(**options) for kind in (GuardedPageRank, NonBacktrackingRank)}
        if trusted is not None:
            ranks |= {"TrustRank": TrustRank(**options)}
    elif not ranks or BASELINE in ranks:
        raise InputError(f"ranks needs at least one rank to compare PageRank with, and none named {BASELINE}")
    stage = Stages(progress)
    with stage("reading", "reading the graph"):
        read = plain_graph(graph)
        bad, strangers = (None, 0) if spam is None else spam_vertices(read, spam)
        good = None if trusted is None else seed_vector(read, trusted, "trusted") > 0
        if bad is not None and bad.all() | ~bad.any():
            raise InputError(
                "spam must be some of the vertices, not none or all of them: leave it out otherwise"
            )
    fits: list[Any] = []
    certificates, measures = [], []
    for name, rank in {BASELINE: plain, **ranks}.items():
        with stage("ranking", f"ranking {read.n} vertices, {name}"):
            fits.append(clone(rank))
            certificates.append(_fit(fits[-1], read, name, trusted))
    with stage("looking at links", "looking at who links to whom"):
        scores = [fit.scores_ for fit in fits]
        places = [rankdata(-each, method="min").astype(int) for each in scores]
        lists = RankLists(read, [each.rank for each in certificates], scores, places)
        _fit(guard := GuardedPageRank(**SUSPECTS_GUARD, **options), read, "", None)
        search = FarmSearch(lists, fits[0], guard, good)
        cycles = nearby.on_closed_cycle(read)
        closed = [int(cycles[best_vertices(each, top)].sum()) for each in scores]
        if bad is not None:
            measures = [
                {"spam_mass": spam_mass(bad, each), "spam_met": float(spam_met(bad, each, min(top, read.n)))}
                for each in scores
            ]
    notes = search.rule(good is not None) if nearby.has_links(read) else []
    notes += [
        f"{each.rank} has not converged after {plural('# [step|steps]', each.n_iter)}: raise `max_iter` or `tol`."
        for each in certificates
        if not each.converged
    ]
    notes += _about_links(read, search.loops) + _about_labels(search.flagged, suspects, bad, strangers, good)
    return RankComparison(
        **vars(lists),
        damping=float(damping),
        certificates=certificates,
        head=search.head,
        has_links=nearby.has_links(read),
        usual=search.usual,
        least_excess=search.least_excess,
        flagged=search.flagged,
        suspects=search.suspects(search.flagged[:suspects]),
        closed=closed,
        spam=bad,
        measures=measures,
        notes=notes,
        seconds=stage.with_total,
        top=int(top),
    )


def _fit(rank: GraphRank, graph: Graph, name: str, trusted: Any) -> RankCertificate:
    began = time.perf_counter()
    takes = trusted is not None and "trusted" in signature(rank.fit).parameters
    labels = {"trusted": trusted} if takes else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # reported by the certificate and a note
        rank.fit(graph, **labels)
    bound, steps = float(getattr(rank, "error_bound_", np.nan)), int(getattr(rank, "n_iter_", 1))
    converged = bool(getattr(rank, "converged_", True))
    return RankCertificate(name, bound, steps, converged, time.perf_counter() - began)


class FarmSearch:
    """Evidence of link farms among the vertices in PageRank's head; ``flagged`` are their indices, worst first."""

    def __init__(
        self, lists: RankLists, plain: PageRank, guard: GuardedPageRank, trusted: np.ndarray | None
    ) -> None:
        graph, base = lists.graph, lists.scores[0]
        self.lists, self.loops = lists, nearby.self_loops(graph)
        self.head = min(graph.n, max(HEAD_LEAST, int(HEAD_SHARE * graph.n)))
        eligible = (lists.ranks[0] <= self.head) & (base > 1 / graph.n)
        if trusted is not None:
            eligible &= ~trusted
        self.vertices = np.flatnonzero(eligible)
        self.excess = guard.pagerank_[self.vertices] / (guard.limit_ * guard.guard_[self.vertices])
        quartile = float(np.quantile(self.excess, 0.25)) if len(self.vertices) else 0.0
        self.least_excess = max(LEAST_EXCESS, BEYOND_QUARTILE * quartile)
        cheap = nearby.origin_share(plain, np.diff(graph.indptr) - self.loops <= CHEAP)
        self.cheap, self.least_cheap = cheap[self.vertices], (1 + float(cheap @ base)) / 2
        self.support = nearby.support(graph, base, self.vertices)
        self.usual = nearby.unsupported_share(graph, base)
        self.least_share = (1 + self.usual) / 2
        boosted = (self.support.share >= self.least_share) & (self.support.unsupported >= BOOSTERS)
        self.boosted = boosted & (self.usual < MOST_USUAL)
        self.generous = (self.excess > self.least_excess) & (self.cheap >= self.least_cheap)
        self.suspicion = np.log(self.excess) * (1 + self.support.share) * self.cheap
        chosen = np.flatnonzero(self.boosted | self.generous)
        self.flagged = self.vertices[chosen[np.argsort(-self.suspicion[chosen], kind="stable")]]

    def suspects(self, flagged: np.ndarray) -> list[Suspect]:
        """Evidence about flagged vertices."""
        found = []
        for v, vertex in zip(flagged.tolist(), self.lists.rows(1, flagged, flagged), strict=True):
            at = int(np.searchsorted(self.vertices, v))
            sources, unsupported, share, back = (column[at].item() for column in self.support)
            rules = {"excess": self.generous[at], "unsupported": self.boosted[at]}
            suspect = Suspect(
                **vars(vertex),
                reason=" and ".join(name for name, holds in rules.items() if holds),
                suspicion=float(self.suspicion[at]),
                excess=float(self.excess[at]),
                cheap_share=float(self.cheap[at]),
                in_links=sources,
                unsupported=unsupported,
                unsupported_share=share,
                linked_back=back / max(1, sources),
                closed=nearby.closed_share(self.lists.graph, v),
                self_loop=bool(self.loops[v]),
            )
            found.append(suspect)
        return found

    def rule(self, trusted: bool) -> list[str]:
        """Sentences that describe the rule and the vertices examined."""
        few = plural("PageRank's first # [vertex|vertices], those above the average", self.head)
        boosted = (
            f", or if it gets at least {self.least_share:.0%} of what PageRank sends through its in-links from "
            f"{BOOSTERS} or more vertices that nobody else links to (over all links it is {self.usual:.1%})"
        )
        return [
            f"A vertex is suspected if its PageRank is more than {self.least_excess:.3g} times what many independent "
            f"links allow and {self.least_cheap:.0%} of it starts at vertices with at most one in-link"
            f"{boosted if self.usual < MOST_USUAL else ''}. Farms built like honest sites are not found, and a site of "
            "pages that only its own pages link to looks like a farm: check before you judge.",
            f"Examined: {len(self.vertices):,} of {few}{' and not trusted' if trusted else ''}.",
        ]


def spam_vertices(graph: Graph, spam: Any) -> tuple[np.ndarray, int]:
    """Mask of labelled vertices, and the number of labels that match no vertex; InputError if none matches.

    Examples
    --------
    >>> graph = Graph.from_edges([0, 1], [1, 0], names=["page", "shop"])
    >>> labels, strangers = spam_vertices(graph, ["shop", "casino"])
    >>> labels.tolist(), strangers
    ([False, True], 1)
    """
    try:
        return seed_vector(graph, spam, "spam") > 0, 0
    except InputError:
        pairs = _pairs(spam)
        known = graph.has([name for name, _ in pairs]).tolist()
        if not any(known) or all(known):
            raise
    kept = {name: weight for (name, weight), is_known in zip(pairs, known, strict=True) if is_known}
    return seed_vector(graph, kept, "spam") > 0, known.count(False)


def _pairs(spam: Any) -> list[tuple[Any, Any]]:
    """Names with their weights."""
    weighted = getattr(getattr(spam, "dtype", None), "kind", "O") in "fb" and hasattr(spam, "items")
    if isinstance(spam, Mapping) or weighted:
        return list(spam.items())
    if isinstance(spam, str) or not isinstance(spam, Iterable) or hasattr(spam, "columns"):
        return []
    return [(name, 1.0) for name in spam]


def _about_links(graph: Graph, loops: np.ndarray) -> list[str]:
    texts = (
        (
            graph.dangling,
            "# [vertex has|vertices have] no out-links; [its|their] rank is shared by all vertices.",
        ),
        (
            loops,
            "# [vertex links to itself and so retains|vertices link to themselves and so retain] rank: drop self-loops "
            "if they have no meaning.",
        ),
    )
    return [plural(text, int(those.sum())) for those, text in texts if those.any()]


def _about_labels(
    flagged: np.ndarray, shown: int, spam: np.ndarray | None, strangers: int, trusted: np.ndarray | None
) -> list[str]:
    """Notes on unlisted suspects and on labels; ``strangers`` is the number of labels that match no vertex."""
    notes = []
    if len(flagged) > shown:
        listed = plural("[most suspicious is|# most suspicious are] listed", shown)
        notes.append(f"{len(flagged):,} suspects were found; the {listed}.")
    if spam is not None:
        text = "[The spam label was|# spam labels were] used only for evaluation"
        known = f"; {spam[flagged].sum():,} of {len(flagged):,} suspects are among them"
        among = known if len(flagged) else ""
        notes.append(f"{plural(text, spam.sum())}{among}.")
    if strangers:
        text = "# spam [label matches|labels match] no vertex of this graph and [is|are] ignored."
        notes.append(plural(text, strangers))
    if trusted is not None:
        text = "# trusted [vertex is|vertices are] used by ranks that support trust, and never suspected."
        notes.append(plural(text, trusted.sum()))
    return notes
