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
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from apexrank.errors import InputError
from apexrank.graph.base import IteratedRank, plain_graph, seed_vector
from apexrank.graph.graph import Graph
from apexrank.graph.lpq import LpqRank
from apexrank.graph.pagerank import PageRank
from apexrank.metrics.spam import spam_mass, spam_met
from apexrank.report.farm_comparison import RankComparison
from apexrank.report.farm_labels import spam_vertices
from apexrank.report.farm_notes import notes_of
from apexrank.report.farm_rows import Certificate, power_of
from apexrank.report.farm_suspects import Look, ranks_of


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
    >>> from apexrank.report.farms import compare_ranks
    >>> web = make_crawl(1000, random_state=0).adjacency
    >>> crawl = plant_farms(web, farms=2, boosters=30)
    >>> found = compare_ranks(crawl.adjacency, ps=(2, 8))
    >>> [suspect.name for suspect in found.suspects()], crawl.target_vertices.tolist()
    ([1000, 1031], [1000, 1031])
    >>> compare_ranks(web, ps=(4,)).verdict.kind
    'nothing found'
    """
    powers = _powers(ps)
    for name, value, least in (("top", top, 1), ("suspects", suspects, 1), ("neighbours", neighbours, 0)):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    tell = progress or (lambda stage: None)
    began = time.perf_counter()
    tell("reading the graph")
    read = plain_graph(graph)
    bad, strangers = (None, 0) if spam is None else spam_vertices(read, spam)
    good = None if trusted is None else seed_vector(read, trusted, "trusted") > 0
    if bad is not None and bad.all() | ~bad.any():
        raise InputError("spam must be some of the vertices, not none or all of them: leave it out otherwise")
    seconds = {"reading": time.perf_counter() - began}
    options: dict[str, Any] = {"damping": damping, "tol": tol, "max_iter": max_iter}
    fits, certificates = [], []
    for p in powers:
        tell(f"ranking {read.n} vertices, {power_of(p)}")
        estimator = PageRank(**options) if p == 1 else LpqRank(p, ratio, **options)
        certificates.append(_fit(estimator, read, p, None if p == 1 else trusted))
        fits.append(estimator)
    seconds["ranking"] = sum(certificate.seconds for certificate in certificates)
    tell("looking at who links to whom")
    looked = time.perf_counter()
    scores = [fit.scores_ for fit in fits]
    ranks = [ranks_of(each) for each in scores]
    look = Look(read, fits, ranks, good)
    flagged = [look.flagged(i) for i in range(len(powers))]
    found = [[look.suspect(int(v), i, neighbours) for v in flagged[i][:suspects]] for i in range(len(powers))]
    risers = [look.risers(i) for i in range(len(powers))]
    seconds["looking at links"] = time.perf_counter() - looked
    seconds["total"] = time.perf_counter() - began
    return RankComparison(
        read,
        powers,
        float(ratio),
        float(damping),
        scores,
        ranks,
        certificates,
        _chosen(powers, ranks, flagged),
        look.head,
        look.usual,
        flagged,
        np.setdiff1d(look.boosted, np.concatenate(flagged)),
        found,
        risers,
        bad,
        [] if bad is None else [_measures(bad, *pair, top) for pair in zip(scores, flagged, strict=True)],
        notes_of(look, flagged, risers, certificates, suspects, bad, strangers, good),
        seconds,
        int(top),
    )


def _powers(ps: Sequence[float]) -> tuple[float, ...]:
    """The powers in order, 1 first."""
    given = [ps] if isinstance(ps, Real) else list(ps)
    for p in given:
        if not isinstance(p, Real) or not float(p) >= 1:
            raise InputError(f"each p must be a number of at least 1, or inf, got {p!r}")
    powers = sorted({1.0, *map(float, given)})
    if len(powers) == 1:
        raise InputError("ps needs a power above 1 to compare PageRank with, such as 4")
    return tuple(powers)


def _fit(estimator: IteratedRank, graph: Graph, p: float, trusted: Any) -> Certificate:
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate and a note say it
        if trusted is None:
            estimator.fit(graph)
        else:
            estimator.fit(graph, trusted=trusted)  # type: ignore[call-arg]
    bound, steps = float(estimator.error_bound_), int(estimator.n_iter_)
    return Certificate(p, bound, steps, bool(estimator.converged_), time.perf_counter() - began)


def _chosen(powers: tuple[float, ...], ranks: list[np.ndarray], flagged: list[np.ndarray]) -> int:
    """The p that puts suspects furthest down."""
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
