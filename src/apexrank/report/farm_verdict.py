"""One sentence on whether a graph looks as if it had link farms, and what qualifies it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apexrank.report.farm_evidence import MOST_USUAL, has_links
from apexrank.report.farm_rows import Verdict, counted, first, power_of

if TYPE_CHECKING:
    from apexrank.report.graph.result import RankComparison


def make_verdict(found: RankComparison) -> Verdict:
    """What was found at the chosen p, and whether the ranks it rests on have converged.

    Examples
    --------
    >>> from apexrank.report.graph.compare import compare_ranks
    >>> make_verdict(compare_ranks(([0, 1], [0, 1])))
    Verdict(kind='no links', text='There are no links but those of vertices to themselves: nothing to look at.')
    """
    verdict = _judge(found)
    open_ends = [power_of(each.p) for each in found.certificates if not each.converged]
    if not open_ends:
        return verdict
    which = " and ".join(filter(None, [", ".join(open_ends[:-1]), open_ends[-1]]))
    doubt = f"The ranks have not converged ({which}), so this may change: raise max_iter or tol."
    return Verdict(verdict.kind, f"{verdict.text} {doubt}")


def _judge(found: RankComparison) -> Verdict:
    if not has_links(found.graph):
        but = " but those of vertices to themselves" if found.graph.n_edges else ""
        return Verdict("no links", f"There are no links{but}: nothing to look at.")
    if found.usual >= MOST_USUAL:
        return Verdict(
            "cannot tell",
            f"Link farms cannot be told here: {found.usual:.0%} of what flows through all links starts at vertices "
            "nobody links to, so that such in-links are no sign of a farm.",
        )
    if not len(found.flagged[found.chosen]):
        return _nothing(found)
    return Verdict("suspects", _suspects(found))


def _nothing(found: RankComparison) -> Verdict:
    head, n = f"{found.head:,}", len(found.unmoved)
    if not n:
        return Verdict(
            "nothing found",
            f"Nothing suspicious found: none of PageRank's first {head} vertices gets most of its rank from "
            "vertices nobody else links to.",
        )
    get, whose, they = ("gets", "its", "it does") if n == 1 else ("get", "their", "they do")
    return Verdict(
        "nothing falls",
        f"No suspects: {n:,} of PageRank's first {head} vertices {get} most of {whose} rank from vertices nobody else "
        f"links to, but {they} not fall in both score and place at a p tried. A larger p or a smaller ratio may tell "
        "more.",
    )


def _suspects(found: RankComparison) -> str:
    flagged = found.flagged[found.chosen]
    at_top = flagged[np.isin(flagged, first(found.scores[0], found.top))]
    head, top = f"{found.head:,}", min(found.top, found.graph.n)
    more = f" Among its first {head} there are {len(flagged):,}." if len(flagged) > len(at_top) else ""
    if not len(at_top):
        does = "does" if len(flagged) == 1 else "do"
        nobody = (
            "PageRank's first vertex does not look like the target of a link farm"
            if top == 1
            else f"None of PageRank's first {top:,} vertices looks like the target of a link farm"
        )
        return f"{nobody}, but {len(flagged):,} of its first {head} {does}: {_why(found, flagged)}"
    if top == 1:
        return f"PageRank's first vertex looks like the target of a link farm: {_why(found, at_top)}{more}"
    vertices = counted(len(at_top), "vertex", "vertices")
    look = "looks like the target of a link farm" if len(at_top) == 1 else "look like targets of link farms"
    return f"PageRank's first {top:,} contain {vertices} that {look}: {_why(found, at_top)}{more}"


def _why(found: RankComparison, vertices: np.ndarray) -> str:
    before, after = (float(np.median(found.ranks[i][vertices])) for i in (0, found.chosen))
    whose, place, them = ("its", "place", "it") if len(vertices) == 1 else ("their", "median place", "them")
    return (
        f"most of {whose} rank comes from vertices nobody else links to. At {power_of(found.ps[found.chosen])}, of the "
        f"p tried the one that moves {them} furthest, {whose} {place} goes from {before:,.0f} to {after:,.0f}."
    )
