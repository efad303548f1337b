"""What a report on merged ballots tells: the order and how sure it is, other methods, majorities and voters."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from apexrank.aggregation.bootstrap import RankBootstrap
from apexrank.aggregation.fusion import Method
from apexrank.aggregation.rank_aggregation import Aggregation
from apexrank.checks import check_choice
from apexrank.errors import InputError
from apexrank.report.votes_majorities import Majorities, count_majorities
from apexrank.report.votes_methods import (
    MOST_CHEAP,
    draw_voters,
    has_gaps,
    method_taus,
    one_ballot,
    other_methods,
)
from apexrank.report.votes_verdict import Verdict, doubts_of, item_label, make_verdict
from apexrank.report.votes_voters import Camps, VoterAgreement, find_camps, voter_agreement

METHODS: tuple[Method, ...] = ("lovasz-bregman", "borda", "copeland", "kemeny", "median", "rrf")


@dataclass(frozen=True, eq=False, repr=False)
class VoteSummary:
    """All that the report on an aggregation shows, computed by `summarise_votes`.

    Attributes
    ----------
    result : Aggregation
        The result that is reported on.
    methods : dict of str to Aggregation
        The same ballots by several methods, that of the result first.
    taus : ndarray of shape (methods, methods)
        Kendall's τ_b between the orders of the methods.
    shown : ndarray
        Numbers of the items shown, in the order of the result: its first ones, and the first three of each method.
    drawn : RankBootstrap or None
        Intervals of the ranks and chances to be first.
    voters : VoterAgreement
        How far the voters agree with the result.
    majorities : Majorities
        Who is preferred to whom among the first items, the Condorcet winner, circles.
    camps : Camps or None
        Two groups of voters, which are worth a word only if ``camps.clear``.
    confidence : float or None
        That of the result, see `apexrank.aggregation.Aggregation`; None where voters ignore items, as their
        means are not of the same voters then, for one ballot, which always agrees with itself, and where it takes long.
    verdict : Verdict
        Who wins, in one sentence. Where voters have gaps it does not hold methods that add up over the voters, which
        favours items that many scored, against those that do not: see `apexrank.report.votes_methods`.
    notes : list of str
        What was left out or sampled, and why.
    seconds : dict of str to float
        Time by part.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> summary = summarise_votes(aggregate([[3, 2, 1]] * 30, items=["tea", "rum", "ale"]), bootstrap=100)
    >>> summary
    VoteSummary: tea wins by all six methods, and in 100% of 100 draws of the voters.
    """

    result: Aggregation
    methods: dict[str, Aggregation]
    taus: np.ndarray
    shown: np.ndarray
    drawn: RankBootstrap | None
    voters: VoterAgreement
    majorities: Majorities
    camps: Camps | None
    confidence: float | None
    verdict: Verdict
    notes: list[str]
    seconds: dict[str, float]

    @property
    def labels(self) -> list[str]:
        """What the items are called, by number."""
        return [item_label(name) for name in self.result.items]

    def voter_label(self, row: int) -> str:
        """What a voter is called."""
        names = self.result.ballots.voters
        return f"voter {row + 1}" if names is None else str(names[row])

    def disagreements(self) -> list[tuple[str, str, float]]:
        """Pairs of methods whose orders differ, with their τ, those that differ most first.

        Examples
        --------
        >>> from apexrank import aggregate
        >>> close = aggregate([[1.9, 2], [1.8, 2], [2.5, 1.2]])
        >>> summarise_votes(close, methods=["borda"], bootstrap=0).disagreements()
        [('lovasz-bregman', 'borda', -1.0)]
        """
        names = list(self.methods)
        pairs = [
            (names[i], names[j], float(self.taus[i, j]))
            for i in range(len(names))
            for j in range(i + 1, len(names))
        ]
        return sorted((pair for pair in pairs if pair[2] < 1), key=lambda pair: pair[2])

    def to_dict(self) -> dict[str, Any]:
        """The same in plain types, with the items by their names; of the items shown only."""
        labels, shown = self.labels, self.shown.tolist()
        found: dict[str, Any] = {
            "method": self.result.method,
            "verdict": self.verdict._asdict(),
            "voters": self.result.ballots.total,
            "items": len(labels),
            "confidence": self.confidence,
            "ranks": {
                name: {labels[number]: int(each.ranks[number]) for number in shown}
                for name, each in self.methods.items()
            },
            "method_tau": {
                name: _by_name(self.methods, row) for name, row in zip(self.methods, self.taus, strict=True)
            },
            "agreement": {
                "mean": None if one_ballot(self.result) else self.voters.mean,
                "voters": len(self.voters.rows),
                "silent": self.voters.silent,
            },
            "majorities": _majorities(self.majorities, labels),
            "notes": list(self.notes),
            "seconds": dict(self.seconds),
        }
        if self.drawn is not None:
            low, high, first = self.drawn.low, self.drawn.high, self.drawn.first
            found["bootstrap"] = {
                "draws": len(self.drawn.ranks),
                "confidence": self.drawn.confidence,
                "ranks": {
                    labels[i]: {"low": int(low[i]), "high": int(high[i]), "first": float(first[i])}
                    for i in shown
                },
            }
        if self.camps is not None:
            found["camps"] = _camps(self.camps, labels, len(shown))
        return found

    def __repr__(self) -> str:
        return f"VoteSummary: {self.verdict.text}"


def summarise_votes(
    result: Aggregation,
    *,
    methods: Sequence[Method] = METHODS,
    bootstrap: int | RankBootstrap = 500,
    clusters: int | None = 2,
    top: int = 30,
    random_state: Any = 0,
    progress: Callable[[str], None] | None = None,
) -> VoteSummary:
    """Compute what a report on merged ballots shows; what would take minutes is sampled or left out, and said so.

    Parameters
    ----------
    result : Aggregation
        What `apexrank.aggregation.aggregate` gave.
    methods : sequence of str
        Methods to compare it with, on the same ballots read the same way.
    bootstrap : int or RankBootstrap
        How often to draw the voters anew, or what ``result.bootstrap()`` gave; 0 draws none.
    clusters : 2 or None
        Whether to look for two camps of voters. They are clear where their silhouette is at least half way from that
        of shuffled ballots to 1, Kendall's τ of their orders at most 0.25, and neither has less than 10% of the voters.
    top : int
        How many of the first items are shown.
    random_state : int, Generator or None
        Seed of all draws.
    progress : callable, optional
        Called with the name of each part as it begins.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> result = aggregate([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2 + [["c", "a", "b"]] * 2, kind="orders")
    >>> summary = summarise_votes(result, bootstrap=0, clusters=None)
    >>> summary.verdict.kind, summary.majorities.winner, summary.majorities.circle
    ('agreed', None, (0, 1, 2))
    """
    _check(result, methods, bootstrap, clusters, top)
    tell: Callable[[str], None] = progress or (lambda stage: None)
    notes: list[str] = []
    clock = _Clock(tell)
    with clock("methods"):
        results = other_methods(result, methods, notes, tell)
        taus = method_taus(results)
    with clock("bootstrap"):
        drawn = draw_voters(result, bootstrap, random_state, notes)
    with clock("majorities"):
        majorities = count_majorities(result)
    with clock("agreement"):
        voters = voter_agreement(result, random_state, notes)
    with clock("camps"):
        camps = None if clusters is None else find_camps(result, random_state, notes)
    with clock("confidence"):
        confidence = _confidence(result, notes)
    notes[:0] = doubts_of(results, majorities, voters)
    verdict = make_verdict(results, drawn, majorities)
    shown = _shown(results, int(top))
    return VoteSummary(
        result,
        results,
        taus,
        shown,
        drawn,
        voters,
        majorities,
        camps,
        confidence,
        verdict,
        notes,
        clock.seconds,
    )


def _confidence(result: Aggregation, notes: list[str]) -> float | None:
    ballots = result.ballots
    if one_ballot(result):
        return None
    if result.rule.takes_places(ballots) and ballots.scores.size > MOST_CHEAP:
        notes.append("The confidence is left out: it would sort all ballots twice more.")
        return None
    return None if has_gaps(result) else result.confidence


class _Clock:
    """Seconds of each part."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._tell = tell

    @contextmanager
    def __call__(self, part: str) -> Any:
        self._tell(part)
        began = time.perf_counter()
        yield
        self.seconds[part] = time.perf_counter() - began


def _check(result: Any, methods: Any, bootstrap: Any, clusters: Any, top: Any) -> None:
    if not isinstance(result, Aggregation):
        raise InputError(f"result must be what aggregate() gives, got {type(result).__name__}")
    if isinstance(methods, str):
        raise InputError(f"methods must be a list of names, such as [{methods!r}]")
    for method in methods:
        check_choice("method", method, Method)
    if not isinstance(bootstrap, RankBootstrap) and not _is_number_of_draws(bootstrap):
        raise InputError(f"bootstrap must be a number of draws, 2 or more, or 0 for none, got {bootstrap!r}")
    if clusters not in (None, 2):
        raise InputError(f"clusters must be 2 or None, got {clusters!r}")
    if not isinstance(top, Integral) or top < 1:
        raise InputError(f"top must be a whole number of items, 1 or more, got {top!r}")


def _is_number_of_draws(value: Any) -> bool:
    return isinstance(value, Integral) and int(value) >= 0 and value != 1


def _shown(results: dict[str, Aggregation], top: int) -> np.ndarray:
    """The first items of the result and the first three of each other method, in the order of the result."""
    order = np.argsort(next(iter(results.values())).ranks, kind="stable")
    first = [np.argsort(each.ranks, kind="stable")[:3] for each in results.values()]
    return order[np.isin(order, np.concatenate([order[:top], *first]))]


def _by_name(names: Any, values: np.ndarray) -> dict[str, float | None]:
    return {name: None if np.isnan(x) else float(x) for name, x in zip(names, values.tolist(), strict=True)}


def _majorities(found: Majorities, labels: list[str]) -> dict[str, Any]:
    smith, circle = found.smith, found.circle
    return {
        "items": [labels[number] for number in found.items.tolist()],
        "shares": found.shares.tolist(),
        "condorcet_winner": None if found.winner is None else labels[found.winner],
        "smith": None if smith is None else [labels[number] for number in smith.tolist()],
        "circle": None if circle is None else [labels[number] for number in circle],
    }


def _camps(camps: Camps, labels: list[str], most: int) -> dict[str, Any]:
    return {
        "clear": camps.clear,
        "silhouette": camps.silhouette,
        "threshold": camps.threshold,
        "tau": camps.tau,
        "shares": camps.shares.tolist(),
        "orders": [[labels[number] for number in order[:most].tolist()] for order in camps.orders],
    }
