"""PageRank and L_pq ranks side by side: who falls, and who of them looks like the target of a link farm.

A fall alone says little. Ranks fall for many reasons, and far down the list by hundreds of thousands of places for
none. So only PageRank's *head* is looked at, its first hundred vertices or first hundredth, as far as they are above
the average, and a fall counts as much as boosters explain it:

    ``suspicion_i = log(pagerank_i / score_i) · u_i``,

where u is the part of PageRank's flow into i that comes from vertices nobody but i links to, which is what boosters
are. A vertex is *flagged* when its score and its place fall, at least five such vertices link to it, and u is nearer
to 1 than to what is usual in the graph. Where half of all flow starts at such vertices, as in votes of many for few,
nobody is.

Share of true targets among the first 10, 30 and 50, farms planted in the crawl cnr-2000 (50 of 200 boosters with links
back; without; 50 of 50 boosters), at p = 4 (q/p = 1.2, damping 0.85):

====================================  ==================  ==================  ==================
rule                                  200, links back     200, none back      50, links back
====================================  ==================  ==================  ==================
log(rank / PageRank's rank)           0.00, 0.00, 0.00    0.00, 0.00, 0.00    0.00, 0.00, 0.00
log(pagerank / score)                 0.00, 0.00, 0.00    0.00, 0.00, 0.00    0.00, 0.00, 0.00
… times share of unsupported links    1.00, 1.00, 1.00    0.00, 0.47, 0.68    0.00, 0.57, 0.74
… times share of their flow (ours)    1.00, 1.00, 1.00    0.60, 0.87, 0.92    0.70, 0.90, 0.94
… one more in-link allowed            0.10, 0.70, 0.82    0.00, 0.00, 0.00    0.00, 0.00, 0.06
====================================  ==================  ==================  ==================

What it does not find: boosters that link to one another have in-links, and are not taken for boosters. What it finds
beside farms: pages whose visitors come from pages that the crawl found no links to. In cnr-2000 itself, where nobody
planted anything, it flags 275 of the first 3,255 pages, in wiki-Vote 6 of the first 100, in polblogs none; in sixty
made-up crawls of 500 to 10,000 pages (`apexrank.datasets.make_crawl`) none.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from apexrank.errors import InputError
from apexrank.graph.base import IteratedRank, plain_graph, seed_vector
from apexrank.graph.graph import Graph
from apexrank.graph.lpq import LpqRank
from apexrank.graph.pagerank import PageRank
from apexrank.metrics.precision import spam_mass, spam_met
from apexrank.report.graph.farms import BOOSTERS, FarmSearch, has_links, ranks_of
from apexrank.report.graph.result import (
    MOST_USUAL,
    RankCertificate,
    RankComparison,
    RankLists,
    Riser,
    rank_label,
)
from apexrank.report.page import Stages, plural, read_powers, shorten
from apexrank.validation import check_count

_NAMED, _LETTERS = 5, 30  # vertices that a sentence lists, and of each name: a phone has room for that


def compare_ranks(
    graph: Any,
    *,
    ps: Sequence[float] = (1, 2, 4, 8),
    ratio: float = 1.2,
    damping: float = 0.85,
    top: int = 30,
    suspects: int = 30,
    neighbours: int = 8,
    spam: Any = None,
    trusted: Any = None,
    tol: float = 1e-7,
    max_iter: int = 1000,
    progress: Callable[[str], None] | None = None,
) -> RankComparison:
    """Rank a graph by PageRank and by `LpqRank` at each p, and look for link farms.

    Parameters
    ----------
    graph : anything :func:`apexrank.graph.as_graph` reads
        Undirected edges count in both directions.
    ps : sequence of float
        Powers. 1 stands for PageRank itself, and is always among them.
    ratio, damping, tol, max_iter
        As in `LpqRank`; PageRank has ratio 1.
    top : int
        Length of the lists that are shown.
    suspects, neighbours : int
        Most suspects at each p, and in-links shown of each.
    spam : names, mapping of names to weights, or array of one bool a vertex, optional
        Vertices known to be spam. They only measure: no rank and no suspicion depends on them. Names that the graph
        does not have are left out, with a note.
    trusted : in the same form, optional
        Vertices to trust: given to `LpqRank`, which keeps less of what no trust reaches, and never suspected.
    progress : callable, optional
        Called with a word on what is being done.

    Returns
    -------
    RankComparison

    Examples
    --------
    >>> from apexrank.datasets.crawl import make_crawl, plant_farms
    >>> from apexrank.report import compare_ranks
    >>> web = make_crawl(1000, random_state=0).adjacency
    >>> crawl = plant_farms(web, farms=2, boosters=30)
    >>> found = compare_ranks(crawl.adjacency, ps=(2, 8))
    >>> [suspect.name for suspect in found.suspects()], crawl.target_vertices.tolist()
    ([1000, 1031], [1000, 1031])
    >>> compare_ranks(web, ps=(4,)).verdict.kind
    'nothing found'
    """
    powers = read_powers(ps)
    if len(powers) == 1:
        raise InputError("ps needs a power above 1 to compare PageRank with, such as 4")
    for name, value, least in (("top", top, 1), ("suspects", suspects, 1), ("neighbours", neighbours, 0)):
        check_count(name, value, least)
    stage = Stages(progress)
    with stage("reading", "reading the graph"):
        read = plain_graph(graph)
        bad, strangers = (None, 0) if spam is None else spam_vertices(read, spam)
        good = None if trusted is None else seed_vector(read, trusted, "trusted") > 0
        if bad is not None and bad.all() | ~bad.any():
            raise InputError(
                "spam must be some of the vertices, not none or all of them: leave it out otherwise"
            )
    fits: list[IteratedRank] = []
    certificates, measures = [], []
    for p in powers:
        with stage("ranking", f"ranking {read.n} vertices, {rank_label(p)}"):
            options: dict[str, Any] = {"damping": damping, "tol": tol, "max_iter": max_iter}
            fits.append(PageRank(**options) if p == 1 else LpqRank(p, ratio, **options))
            certificates.append(_fit(fits[-1], read, p, None if p == 1 else trusted))
    with stage("looking at links", "looking at who links to whom"):
        scores = [fit.scores_ for fit in fits]
        lists = RankLists(read, scores, [ranks_of(each) for each in scores])
        search = FarmSearch(lists, fits, good)
        flagged = [search.flagged(i) for i in range(len(powers))]
        unmoved = np.setdiff1d(search.boosted, np.concatenate(flagged))
        found = [search.suspects(i, those[:suspects], neighbours) for i, those in enumerate(flagged)]
        risers = [search.risers(i) for i in range(len(powers))]
        if bad is not None:
            measures = [_measures(bad, scores[i], flagged[i], top) for i in range(len(powers))]
    notes = _rule(search, good) if has_links(read) else []
    notes += [
        f"Not converged at {rank_label(each.p)} after {plural('# [step|steps]', each.n_iter)}: raise max_iter or tol."
        for each in certificates
        if not each.converged
    ]
    notes += _about_links(read, search.loops) + _unmoved(read, unmoved) + _circling(risers, powers)
    notes += _about_lists(max(map(len, flagged)), suspects, bad, strangers, good)
    return RankComparison(
        **vars(lists),
        ps=powers,
        ratio=float(ratio),
        damping=float(damping),
        certificates=certificates,
        chosen=_chosen(powers, lists.ranks, flagged),
        head=search.head,
        has_links=has_links(read),
        usual=search.usual,
        flagged=flagged,
        unmoved=unmoved,
        suspect_lists=found,
        riser_lists=risers,
        spam=bad,
        measures=measures,
        notes=notes,
        seconds=stage.with_total,
        top=int(top),
    )


def _fit(estimator: IteratedRank, graph: Graph, p: float, trusted: Any) -> RankCertificate:
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate and a note say it
        if trusted is None:
            estimator.fit(graph)
        else:
            estimator.fit(graph, trusted=trusted)  # type: ignore[call-arg]
    bound, steps = float(estimator.error_bound_), int(estimator.n_iter_)
    return RankCertificate(p, bound, steps, bool(estimator.converged_), time.perf_counter() - began)


def _chosen(powers: tuple[float, ...], ranks: list[np.ndarray], flagged: list[np.ndarray]) -> int:
    """Index of the p that moves suspects furthest down."""
    depth = [
        float(np.median(rank[those])) if len(those) else 0.0
        for rank, those in zip(ranks, flagged, strict=True)
    ]
    if any(depth):
        return int(np.argmax(depth))
    return next((i for i, p in enumerate(powers) if p >= 4), len(powers) - 1)


def _measures(spam: np.ndarray, scores: np.ndarray, flagged: np.ndarray, top: int) -> dict[str, float]:
    return {
        "spam_mass": spam_mass(spam, scores),
        "spam_met": float(spam_met(spam, scores, min(top, len(spam)))),
        "spam_among_suspects": float(spam[flagged].mean()) if len(flagged) else float("nan"),
    }


def spam_vertices(graph: Graph, spam: Any) -> tuple[np.ndarray, int]:
    """Mask of labelled vertices, and the number of labels that name no vertex; an error if none does.

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


def _rule(search: FarmSearch, trusted: np.ndarray | None) -> list[str]:
    suspected = (
        f"Suspected is whose score and place fall, and who gets at least {search.least_share:.0%} of what PageRank "
        f"sends through its in-links from {BOOSTERS} or more vertices that nobody else links to; over all links it is "
        f"{search.usual:.1%}. Boosters that link to one another are not found, and an honest page whose visitors come "
        "from pages that nobody links to looks the same: look before you judge."
    )
    if search.usual >= MOST_USUAL:
        suspected = (
            f"Nobody is suspected where {MOST_USUAL:.0%} of all flow starts at vertices nobody links to."
        )
    looked = plural("PageRank's first # [vertex|vertices], those above the average", search.head)
    return [
        suspected,
        f"Looked at: {len(search.vertices):,} of {looked}{' and not trusted' if trusted is not None else ''}; falls "
        "further down mean nothing.",
    ]


def _about_links(graph: Graph, loops: np.ndarray) -> list[str]:
    texts = (
        (graph.dangling, "# [vertex links|vertices link] to nobody; what [it holds|they hold] goes to all."),
        (
            loops,
            "# [vertex links to itself|vertices link to themselves], which an L_pq norm favours: drop such links where "
            "they mean nothing.",
        ),
    )
    return [plural(text, int(those.sum())) for those, text in texts if those.any()]


def _unmoved(graph: Graph, unmoved: np.ndarray) -> list[str]:
    if not len(unmoved):
        return []
    names = [shorten(str(graph.label(int(v))), _LETTERS) for v in unmoved[:_NAMED]]
    more = f" and {len(unmoved) - len(names):,} more" if len(unmoved) > len(names) else ""
    text = (
        "[gets|get] most of [its|their] rank from vertices nobody else links to, but at no p tried do both score and "
        "place fall: not suspected."
    )
    who = plural("# [vertex|vertices]", len(unmoved))
    return [f"{who} ({', '.join(names)}{more}) {plural(text, len(unmoved))}"]


def _circling(risers: list[list[Riser]], powers: Sequence[float]) -> list[str]:
    circling = [sum(riser.cycle > 0 for riser in each) for each in risers]
    i = int(np.argmax(circling))
    n, rising = circling[i], len(risers[i])
    if not n:
        return []
    who = "The vertex that rises" if n == rising == 1 else f"# of the {rising} vertices that rise most"
    text = (
        f"{who} at {rank_label(powers[i])} [links|link] to nobody but [itself|themselves] or round a closed cycle: "
        "[its|their] rise is no merit."
    )
    return [plural(text, n)]


def _about_lists(
    most: int, shown: int, spam: np.ndarray | None, strangers: int, trusted: np.ndarray | None
) -> list[str]:
    """Notes on suspects that are not listed and on labels; ``strangers`` is the number of labels of no vertex."""
    notes = []
    if most > shown:
        listed = plural("[most suspicious is|# most suspicious are] listed", shown)
        notes.append(f"Up to {most:,} suspects were found at one p; the {listed}.")
    if spam is not None:
        notes.append(
            plural("The spam [label was|# labels were] used to measure, for nothing else.", spam.sum())
        )
    if strangers:
        text = "# spam [label names|labels name] no vertex of this graph and [is|are] left out."
        notes.append(plural(text, strangers))
    if trusted is not None:
        text = (
            "# trusted [vertex|vertices]: the L_pq scores of vertices that no trust reaches are halved, PageRank's are "
            "as they are."
        )
        notes.append(plural(text, trusted.sum()))
    return notes
