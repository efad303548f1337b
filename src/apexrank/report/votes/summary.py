"""Summary of aggregated ballots: the order and its uncertainty, other methods, majorities, voters, and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np

from apexrank.aggregation.bootstrap import RankBootstrap
from apexrank.aggregation.fusion import Method
from apexrank.aggregation.rank_aggregation import Aggregation
from apexrank.errors import InputError
from apexrank.plot.aggregation import METHOD_TITLES as TITLES
from apexrank.plot.style import item_label, shorten
from apexrank.report.page import Stages, counted, listed, plural
from apexrank.report.votes.methods import (
    MOST_CHEAP,
    SUMS,
    comparable,
    draw_voters,
    has_gaps,
    method_taus,
    one_ballot,
    other_methods,
)
from apexrank.report.votes.voters import (
    Camps,
    Majorities,
    VoterAgreement,
    count_majorities,
    find_camps,
    uneven_scales,
    voter_agreement,
)
from apexrank.validation import check_choice, check_count

METHODS: tuple[Method, ...] = ("lovasz-bregman", "borda", "copeland", "kemeny", "median", "rrf")
Kind = Literal["one ballot", "no order", "tie", "method", "unsettled", "agreed", "settled"]
_SURE = 0.95  # share of bootstrap samples above which a first place is settled
_LISTED, _TIES_TOLD = 4, 5
_LETTERS = 30  # maximum length of a name in a note, for phones
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


class VoteVerdict(NamedTuple):
    """Verdict on the winner: a kind, a sentence, and qualifications.

    Parameters
    ----------
    kind : str
        "one ballot"; "no order" if all items are tied; "tie" for the first place; "method": another method has a
        different winner; "unsettled": the first place varies in the bootstrap; "agreed": all methods rank the winner
        first, but there is no bootstrap; "settled": they do, and it is first in 95% of the samples. All methods are
        those that treat missing scores alike, see `apexrank.report.votes.methods.comparable`.
    text : str
        The verdict as a sentence.
    details : list of str
        Further sentences: methods, bootstrap, majorities.
    """

    kind: Kind
    text: str
    details: list[str]


@dataclass(frozen=True, eq=False, repr=False)
class VoteSummary:
    """Content of the report on an aggregation, computed by `summarise_votes`.

    Attributes
    ----------
    result : Aggregation
        The reported result.
    methods : dict of str to Aggregation
        The same ballots aggregated by several methods, that of the result first.
    taus : ndarray of shape (methods, methods)
        Kendall's τ_b between the orders of the methods.
    shown : ndarray
        Indices of the items shown, in the order of the result: its first ones, and the first three of each method.
    drawn : RankBootstrap or None
        Confidence intervals of the ranks and shares of first ranks.
    voters : VoterAgreement
        Agreement of the voters with the result.
    majorities : Majorities
        Pairwise preferences among the first items, the Condorcet winner, and cycles.
    camps : Camps or None
        Two groups of voters, meaningful only if ``camps.clear``.
    confidence : float or None
        Confidence of the result, see `apexrank.aggregation.Aggregation`; None if voters ignore items, because means
        are then over different voters, for a single ballot, which always agrees with itself, and if it takes too long.
    verdict : VoteVerdict
        The winner, in one sentence. If scores are missing, methods that sum over the voters, which favours items that
        many scored, are not compared with those that do not: see `apexrank.report.votes.methods`.
    notes : list of str
        Omissions and sampling, with the reasons.
    seconds : dict of str to float
        Time per stage.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> summary = summarise_votes(aggregate([[3, 2, 1]] * 30, items=["tea", "rum", "ale"]), bootstrap=100)
    >>> summary
    VoteSummary: tea wins by all six methods and is first in 100% of 100 bootstrap samples of the voters.
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
    verdict: VoteVerdict
    notes: list[str]
    seconds: dict[str, float]

    @property
    def labels(self) -> list[str]:
        """Labels of the items."""
        return [item_label(name) for name in self.result.items]

    def voter_label(self, row: int) -> str:
        """Label of a voter."""
        names = self.result.ballots.voters
        return f"voter {row + 1}" if names is None else str(names[row])

    def disagreements(self) -> list[tuple[str, str, float]]:
        """Pairs of methods with different orders and their τ, the most different first.

        Examples
        --------
        >>> from apexrank import aggregate
        >>> close = aggregate([[1.9, 2], [1.8, 2], [2.5, 1.2]])
        >>> summarise_votes(close, methods=["borda"], bootstrap=0).disagreements()
        [('lovasz-bregman', 'borda', -1.0)]
        """
        pairs = combinations(enumerate(self.methods), 2)
        taus = [(one, other, float(self.taus[i, j])) for (i, one), (j, other) in pairs]
        return sorted((pair for pair in taus if pair[2] < 1), key=lambda pair: pair[2])

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain values, with items by name; only the items shown."""
        labels, shown = self.labels, self.shown.tolist()
        known = [[None if np.isnan(tau) else tau for tau in row] for row in self.taus.tolist()]
        taus = zip(self.methods, known, strict=True)
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
            "method_tau": {name: dict(zip(self.methods, row, strict=True)) for name, row in taus},
            "agreement": {
                "mean": None if one_ballot(self.result) else self.voters.mean,
                "voters": len(self.voters.rows),
                "silent": self.voters.silent,
            },
            "majorities": self.majorities.to_dict(labels),
            "notes": list(self.notes),
            "seconds": dict(self.seconds),
        }
        if self.drawn is not None:
            ends = {name: getattr(self.drawn, name).tolist() for name in ("low", "high", "first")}
            found["bootstrap"] = {
                "draws": len(self.drawn.ranks),
                "confidence": self.drawn.confidence,
                "ranks": {labels[i]: {name: column[i] for name, column in ends.items()} for i in shown},
            }
        if self.camps is not None:
            found["camps"] = self.camps.to_dict(labels, len(shown))
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
    """Compute the report on an aggregation; anything that would take minutes is sampled or omitted, with a note.

    Parameters
    ----------
    result : Aggregation
        Result of `apexrank.aggregation.aggregate`.
    methods : sequence of str
        Methods to compare it with, on the same ballots.
    bootstrap : int or RankBootstrap
        Number of bootstrap samples of the voters, or the result of ``result.bootstrap()``; 0 for none.
    clusters : 2 or None
        Whether to look for two camps of voters. They are clear if their silhouette is at least halfway from that of
        shuffled ballots to 1, Kendall's τ of their orders is at most 0.25, and each has at least 10% of the voters.
    top : int
        Number of first items to show.
    random_state : int, Generator or None
        Seed of all random draws.
    progress : callable, optional
        Called with the name of each stage when it begins.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> result = aggregate([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2 + [["c", "a", "b"]] * 2, kind="orders")
    >>> summary = summarise_votes(result, bootstrap=0, clusters=None)
    >>> summary.verdict.kind, summary.majorities.winner, summary.majorities.circle
    ('agreed', None, (0, 1, 2))
    """
    _check(result, methods, bootstrap, clusters, top)
    notes: list[str] = []
    stage = Stages(progress)
    with stage("methods"):
        results = other_methods(result, methods, notes, stage.tell)
        taus = method_taus(results)
    with stage("bootstrap"):
        drawn = draw_voters(result, bootstrap, random_state, notes)
    with stage("majorities"):
        majorities = count_majorities(result)
    with stage("agreement"):
        voters = voter_agreement(result, random_state, notes)
    with stage("camps"):
        camps = None if clusters is None else find_camps(result, random_state, notes)
    with stage("confidence"):
        confidence = _confidence(result, notes)
    return VoteSummary(
        result=result,
        methods=results,
        taus=taus,
        shown=_shown(results, int(top)),
        drawn=drawn,
        voters=voters,
        majorities=majorities,
        camps=camps,
        confidence=confidence,
        verdict=judge_votes(results, drawn, majorities),
        notes=doubts_of(results, majorities, voters) + notes,
        seconds=stage.seconds,
    )


def _confidence(result: Aggregation, notes: list[str]) -> float | None:
    ballots = result.ballots
    if one_ballot(result):
        return None
    if result.rule.takes_places(ballots) and ballots.scores.size > MOST_CHEAP:
        notes.append("The confidence was not computed: it would sort all ballots twice more.")
        return None
    return None if has_gaps(result) else result.confidence


def _check(result: Any, methods: Any, bootstrap: Any, clusters: Any, top: Any) -> None:
    if not isinstance(result, Aggregation):
        raise InputError(f"`result` must be the result of aggregate(), got {type(result).__name__}")
    if isinstance(methods, str):
        raise InputError(f"`methods` must be a list of names, such as [{methods!r}]")
    for method in methods:
        check_choice("method", method, Method)
    whole = isinstance(bootstrap, Integral) and int(bootstrap) >= 0 and bootstrap != 1
    if not isinstance(bootstrap, RankBootstrap) and not whole:
        raise InputError(
            f"`bootstrap` must be a number of draws, 2 or more, or 0 for none, got {bootstrap!r}"
        )
    if clusters not in (None, 2):
        raise InputError(f"`clusters` must be 2 or None, got {clusters!r}")
    check_count("top", top)


def _shown(results: dict[str, Aggregation], top: int) -> np.ndarray:
    """First items of the result and the first three of each other method, in the order of the result."""
    order = np.argsort(next(iter(results.values())).ranks, kind="stable")
    first = [np.argsort(each.ranks, kind="stable")[:3] for each in results.values()]
    return order[np.isin(order, np.concatenate([order[:top], *first]))]


def judge_votes(
    methods: dict[str, Aggregation], drawn: RankBootstrap | None, majorities: Majorities
) -> VoteVerdict:
    """Judge the winner of the first of several methods.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> result = aggregate([[3, 2, 1]] * 30, items=["tea", "rum", "ale"], method="borda")
    >>> judge_votes({"borda": result}, result.bootstrap(100), count_majorities(result)).text
    'tea wins by Borda and is first in 100% of 100 bootstrap samples of the voters.'
    """
    result = next(iter(methods.values()))
    labels = [shorten(item_label(name)) for name in result.items]
    firsts = {name: np.flatnonzero(each.ranks == 1).tolist() for name, each in comparable(methods).items()}
    first = next(iter(firsts.values()))
    shared_by = f"{_names(first, labels)} share the first place"
    on_top = f"{labels[first[0]]} is first" if len(first) == 1 else shared_by
    if one_ballot(result):
        return VoteVerdict("one ballot", f"There is only one ballot, and this is its order: {on_top}.", [])
    majority = _by_majorities(majorities, labels, first)
    tied = {TITLES[name]: _names(tops, labels) for name, tops in firsts.items() if len(tops) > 1}
    shared = [f"By {name}, {tops} share the first place." for name, tops in tied.items()]
    details = [*shared, *_by_draws(drawn, labels), majority]
    if len(first) == len(labels):
        text = f"All {len(labels):,} items are tied: the ballots cancel each other out."
        return VoteVerdict("no order", text, [majority])
    if len(first) > 1:
        return VoteVerdict("tie", f"{on_top} by {TITLES[result.method]}.", details)
    winner = first[0]
    if any(winner not in tops for tops in firsts.values()):
        text = f"The winner depends on the method: {_winners(firsts, labels)}."
        return VoteVerdict("method", text, details)
    counted_methods = "methods" if len(firsts) == len(methods) else "comparable methods"
    wins = f"{labels[winner]} {_wins(firsts, counted_methods)}"
    if drawn is None:
        return VoteVerdict("agreed", f"{wins}.", details)
    chances, n = drawn.first, len(drawn.ranks)
    share = float(chances[winner])
    if share >= _SURE:
        text = f"{wins} and is first in {share:.0%} of {n:,} bootstrap samples of the voters."
        return VoteVerdict("settled", text, [*shared, majority])
    rival = max((number for number in range(len(labels)) if number != winner), key=lambda x: chances[x])
    text = (
        f"The first place is not settled: {labels[winner]} leads, but is first in only {share:.0%} of {n:,} "
        f"bootstrap samples of the voters, {labels[rival]} in {chances[rival]:.0%}."
    )
    return VoteVerdict("unsettled", text, details)


def _names(numbers: Sequence[int], labels: list[str]) -> str:
    return listed([labels[number] for number in numbers])


def _winners(firsts: dict[str, list[int]], labels: list[str]) -> str:
    """Winners with the methods that rank them first, most methods first."""
    groups: dict[str, list[str]] = {}
    for name, tops in firsts.items():
        groups.setdefault(_names(tops, labels) + (" tied" if len(tops) > 1 else ""), []).append(TITLES[name])
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return ", ".join(f"{tops} by {listed(by, len(by))}" for tops, by in ordered)


def _wins(firsts: dict[str, list[int]], methods: str) -> str:
    """Clause on the number of methods by which an item wins that is first by all of them, alone or tied."""
    n, alone = len(firsts), sum(len(tops) == 1 for tops in firsts.values())
    if n == 1:
        return f"wins by {TITLES[next(iter(firsts))]}"
    if alone < n:
        most = f"wins by {_WORDS[alone]} of {_WORDS[n]} {methods}"
        return plural(f"{most} and shares the first place by the [other|others]", n - alone)
    return f"wins by {'both' if n == 2 else f'all {_WORDS[n]}'} {methods}"


def _by_draws(drawn: RankBootstrap | None, labels: list[str]) -> list[str]:
    if drawn is None:
        return []
    share = drawn.first
    top = [number for number in np.argsort(-share, kind="stable")[:3].tolist() if share[number] >= 0.005]
    chances = listed([f"{labels[number]} in {share[number]:.0%}" for number in top])
    return [f"First place in the bootstrap: {chances} of {len(drawn.ranks):,} samples of the voters."]


def _by_majorities(found: Majorities, labels: list[str], first: list[int]) -> str:
    if found.winner is not None:
        though = "" if found.winner in first else ", although it is not first here"
        return f"A majority prefers {labels[found.winner]} to every other item{though} (Condorcet winner)."
    text = "No item is preferred to every other one by a majority (no Condorcet winner)"
    if found.circle is not None:
        a, b, c = (labels[number] for number in found.circle)
        text += f": majorities form a cycle, {a} over {b}, {b} over {c} and {c} over {a}"
    if found.smith is not None and len(found.smith) < len(labels):
        text += f"; {_names(found.smith.tolist(), labels)} are preferred to all others"
    return f"{text}."


def doubts_of(methods: dict[str, Aggregation], majorities: Majorities, voters: VoterAgreement) -> list[str]:
    """Notes that qualify the result: missing scores, ties, and orders not proven optimal.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> result = aggregate([[2, 1], [1, 2]], items="ab")
    >>> doubts_of({"lovasz-bregman": result}, count_majorities(result), voter_agreement(result, 0, []))
    ['Tied: a = b.']
    """
    result, doubts = next(iter(methods.values())), []
    ballots, labels = result.ballots, [shorten(item_label(name), _LETTERS) for name in result.items]
    support = result.support
    if (support < ballots.total).any():
        least = int(np.argmin(support))
        rule = "no opinion" if ballots.missing == "ignore" else "a place below all ranked items"
        doubts.append(
            f"Some scores are missing, which counts as {rule}; {labels[least]} has the fewest: "
            f"{support[least]:,.6g} of {counted(ballots.total, 'voter')}."
        )
        doubts += _sums_with_gaps(methods)
    scales = uneven_scales(result, voters.rows)
    if scales is not None:
        doubts.append(
            f"Some voters' scores span {scales[0]:.3g}, others' {scales[1]:.3g}, and the widest weigh most; normalised "
            "scores would put all on one scale."
        )
    if result.low_support is not None and result.low_support.any():
        text = f"# [item ranks|items rank] last because [its|their] support is below {result.rule.min_support:g}."
        doubts.append(plural(text, result.low_support.sum()))
    if voters.silent:
        doubts.append(plural("# [ballot ranks|ballots rank] no item above another.", voters.silent))
    if result.ties:
        groups = [
            " = ".join(shorten(item_label(name), _LETTERS) for name in group[:_TIES_TOLD])
            for group in result.ties[:_TIES_TOLD]
        ]
        if len(result.ties) > len(groups):
            groups.append(plural("and # more [group|groups]", len(result.ties) - len(groups)))
        doubts.append(f"Tied: {'; '.join(groups)}.")
    for each in methods.values():
        if each.proof is not None and not each.optimal:
            doubts.append(
                f"Kemeny's order is not proven best: it contradicts {each.cost:,.6g} preferences, and every "
                f"order at least {each.bound:,.6g}."
            )
    if majorities.winner is None and majorities.smith is None:
        doubts.append(
            "The search for items that majorities prefer to all others was skipped: there are too many pairs."
        )
    return doubts


def _sums_with_gaps(methods: dict[str, Aggregation]) -> list[str]:
    """Note on methods that favour items with many scores."""
    result = next(iter(methods.values()))
    sums = [TITLES[name] for name in methods if name in SUMS]
    if not sums or not has_gaps(result):
        return []
    adds = "[sums|sum] over the voters, which favours items that many scored"
    if result.method not in SUMS:
        adds += ": [it is|they are] shown, but left out of the verdict"
    elif len(methods) > len(sums):
        adds += ": the other methods are shown, but left out of the verdict"
    return [f"{listed(sums)} {plural(adds, len(sums))}."]
