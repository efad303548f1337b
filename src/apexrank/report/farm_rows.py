"""Rows of the lists in a `apexrank.report.graph.result.RankComparison`, and what they are made with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from apexrank.graph.base import InLink


class Item(NamedTuple):
    """A vertex in a list: ``change`` is places won against PageRank; equals share the best of their ranks."""

    rank: int
    name: Any
    score: float
    base_rank: int
    base_score: float
    change: int
    suspect: bool


class Suspect(NamedTuple):
    """A vertex that may be the target of a link farm, and why.

    ``fall`` is the logarithm of PageRank's score over the score here, ``suspicion`` that times ``unsupported_share``,
    the part of what PageRank sends through its in-links that comes from vertices nobody else links to
    (``unsupported`` of ``in_links``). ``linked_back`` is the share of its sources that it links to, ``closed`` the
    share of them that nobody outside the group links to. ``links`` are the strongest in PageRank, less the teleport
    and a link to itself; ``among`` are links between the vertex (0) and their sources (1, 2, …).
    """

    rank: int
    name: Any
    score: float
    base_rank: int
    base_score: float
    change: int
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


class Riser(NamedTuple):
    """A vertex that gains most: ``cycle`` is the length of the closed cycle it is on, 0 for none."""

    rank: int
    name: Any
    score: float
    base_rank: int
    change: int
    cycle: int
    self_loop: bool
    strongest: Any
    strongest_share: float

    @property
    def note(self) -> str:
        """What to keep in mind."""
        if self.cycle:
            return (
                "links to nobody but itself"
                if self.cycle == 1
                else f"on a closed cycle of {self.cycle} vertices"
            )
        return "links to itself, too" if self.self_loop else ""


class Certificate(NamedTuple):
    """How near the scores at one p are to the exact ones (L1), after how many steps and seconds."""

    p: float
    error_bound: float
    n_iter: int
    converged: bool
    seconds: float


class Verdict(NamedTuple):
    """What was found, in one word and in plain ones.

    ``kind`` is "suspects", "nothing found", "nothing falls" where vertices are boosted but keep score or place, "cannot
    tell" where boosters would look like everybody else, or "no links" where no vertex links to another one.
    """

    kind: str
    text: str


def first(scores: np.ndarray, k: int) -> np.ndarray:
    """Numbers of the k best; equals in their order.

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


def counted(number: float, one: str, many: str | None = None) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "vertex", "vertices"), counted(1234, "vertex", "vertices"), counted(0, "ballot")
    ('1 vertex', '1,234 vertices', '0 ballots')
    """
    return f"{number:,.15g} {one if number == 1 else many or f'{one}s'}"


def power_of(p: float) -> str:
    """What people call a rank.

    Examples
    --------
    >>> power_of(1.0), power_of(2.5), power_of(float("inf"))
    ('PageRank', 'p = 2.5', 'p = ∞')
    """
    return "PageRank" if p == 1 else "p = ∞" if np.isinf(p) else f"p = {p:g}"


def plain(p: float) -> float | str:
    """A power as JSON can hold it.

    Examples
    --------
    >>> plain(2.0), plain(float("inf"))
    (2.0, 'inf')
    """
    return "inf" if np.isinf(p) else float(p)
