"""What a comparison of graph ranks skipped or assumed, a sentence each."""

from __future__ import annotations

import numpy as np

from apexrank.graph.graph import Graph
from apexrank.report.farm_evidence import MOST_USUAL, has_links
from apexrank.report.farm_rows import Certificate, Riser, counted, power_of
from apexrank.report.farm_suspects import BOOSTERS, Look
from apexrank.report.page import shorten

_NAMED, _LETTERS = 5, 30  # vertices that a sentence lists, and of each name: a phone has room for that


def notes_of(
    look: Look,
    flagged: list[np.ndarray],
    risers: list[list[Riser]],
    certificates: list[Certificate],
    shown: int,
    spam: np.ndarray | None,
    strangers: int,
    trusted: np.ndarray | None,
) -> list[str]:
    """All sentences; ``strangers`` is the number of spam labels of no vertex."""
    notes = _rule(look, trusted) if has_links(look.graph) else []
    notes += [
        f"Not converged at {power_of(each.p)} after {counted(each.n_iter, 'step')}: raise max_iter or tol."
        for each in certificates
        if not each.converged
    ]
    notes += _about_links(look.graph, look.loops)
    notes += _unmoved(look, flagged)
    notes += _circling(risers, [each.p for each in certificates])
    most = max(map(len, flagged))
    if most > shown:
        listed = "most suspicious is" if shown == 1 else f"{shown} most suspicious are"
        notes.append(f"Up to {counted(most, 'suspect')} were found at one p; the {listed} listed.")
    if spam is not None:
        labels = int(spam.sum())
        were = "label was" if labels == 1 else f"{labels:,} labels were"
        notes.append(f"The spam {were} used to measure, for nothing else.")
    if strangers:
        name, are = ("names", "is") if strangers == 1 else ("name", "are")
        notes.append(f"{counted(strangers, 'spam label')} {name} no vertex of this graph and {are} left out.")
    if trusted is not None:
        notes.append(
            f"{_vertices(int(trusted.sum()), 'trusted ')}: the L_pq scores of vertices that no trust reaches are "
            "halved, PageRank's are as they are."
        )
    return notes


def _rule(look: Look, trusted: np.ndarray | None) -> list[str]:
    suspected = (
        f"Suspected is whose score and place fall, and who gets at least {look.least_share:.0%} of what PageRank sends "
        f"through its in-links from {BOOSTERS} or more vertices that nobody else links to; over all links it is "
        f"{look.usual:.1%}. Boosters that link to one another are not found, and an honest page whose visitors come "
        "from pages that nobody links to looks the same: look before you judge."
    )
    if look.usual >= MOST_USUAL:
        suspected = (
            f"Nobody is suspected where {MOST_USUAL:.0%} of all flow starts at vertices nobody links to."
        )
    seen = len(look.vertices)
    return [
        suspected,
        f"Looked at: {seen:,} of PageRank's first {_vertices(look.head)}, those above the average"
        f"{' and not trusted' if trusted is not None else ''}; falls further down mean nothing.",
    ]


def _about_links(graph: Graph, loops: np.ndarray) -> list[str]:
    notes, dangling, looping = [], int(graph.dangling.sum()), int(loops.sum())
    if dangling:
        link, they = ("links", "it holds") if dangling == 1 else ("link", "they hold")
        notes.append(f"{_vertices(dangling)} {link} to nobody; what {they} goes to all.")
    if looping:
        link = "links to itself" if looping == 1 else "link to themselves"
        notes.append(
            f"{_vertices(looping)} {link}, which an L_pq norm favours: drop such links where they mean nothing."
        )
    return notes


def _unmoved(look: Look, flagged: list[np.ndarray]) -> list[str]:
    unmoved = np.setdiff1d(look.boosted, np.concatenate(flagged))
    if not len(unmoved):
        return []
    names = [shorten(str(look.graph.label(int(v))), _LETTERS) for v in unmoved[:_NAMED]]
    more = f" and {len(unmoved) - len(names):,} more" if len(unmoved) > len(names) else ""
    get, whose = ("gets", "its") if len(unmoved) == 1 else ("get", "their")
    return [
        f"{_vertices(len(unmoved))} ({', '.join(names)}{more}) {get} most of {whose} rank from vertices nobody else "
        "links to, but at no p tried do both score and place fall: not suspected."
    ]


def _circling(risers: list[list[Riser]], powers: list[float]) -> list[str]:
    circling = [sum(riser.cycle > 0 for riser in each) for each in risers]
    i = int(np.argmax(circling))
    if not circling[i]:
        return []
    power, rising = power_of(powers[i]), len(risers[i])
    if circling[i] == rising == 1:
        who = f"The vertex that rises at {power}"
    else:
        who = f"{circling[i]} of the {rising} vertices that rise most at {power}"
    link, themselves = ("links", "itself") if circling[i] == 1 else ("link", "themselves")
    whose = "its" if circling[i] == 1 else "their"
    return [f"{who} {link} to nobody but {themselves} or round a closed cycle: {whose} rise is no merit."]


def _vertices(n: int, kind: str = "") -> str:
    return counted(n, f"{kind}vertex", f"{kind}vertices")
