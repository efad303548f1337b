"""One sentence on who wins, and how much that depends on the method and on the voters drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from apexrank.aggregation.bootstrap import RankBootstrap
from apexrank.aggregation.rank_aggregation import Aggregation
from apexrank.report.farm_rows import counted
from apexrank.report.page import shorten
from apexrank.report.votes_majorities import Majorities
from apexrank.report.votes_methods import SUMS, TITLES, comparable, has_gaps, one_ballot
from apexrank.report.votes_voters import VoterAgreement, uneven_scales

Kind = Literal["one ballot", "no order", "tie", "method", "unsettled", "agreed", "settled"]
_SURE = 0.95  # share of the draws from which a first place is settled
_LISTED, _TIES_TOLD = 4, 5
_LETTERS = 30  # of a name in a note: a phone has room for that
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


class Verdict(NamedTuple):
    """Who wins in one sentence, and what qualifies it.

    Parameters
    ----------
    kind : str
        "one ballot"; "no order" where all items are tied; "tie" of the first place; "method": another method has
        another winner; "unsettled": the first place changes with the voters drawn; "agreed": all methods have the
        winner first, but no voters were drawn; "settled": that, and it is first in 95% of the draws. All methods are
        those that treat missing scores alike, see `apexrank.report.votes_methods.comparable`.
    text : str
        The sentence.
    details : list of str
        More sentences: methods, draws, majorities.
    """

    kind: Kind
    text: str
    details: list[str]


def item_label(name: Any) -> str:
    """What texts call an item: its name, or its number.

    Examples
    --------
    >>> item_label("tea"), item_label(3)
    ('tea', 'item 3')
    """
    return f"item {name}" if isinstance(name, int | np.integer) else str(name)


def listed(names: Sequence[str]) -> str:
    """Names in a sentence, the last ones only counted where there are many.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"]), listed(list("abcdef"))
    ('a', 'a, b and c', 'a, b, c and 3 others')
    """
    if len(names) > _LISTED:
        names = [*names[: _LISTED - 1], f"{len(names) - _LISTED + 1:,} others"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def make_verdict(
    methods: dict[str, Aggregation], drawn: RankBootstrap | None, majorities: Majorities
) -> Verdict:
    """Judge the first place of the first of some methods.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> from apexrank.report.votes_majorities import count_majorities
    >>> result = aggregate([[3, 2, 1]] * 30, items=["tea", "rum", "ale"], method="borda")
    >>> make_verdict({"borda": result}, result.bootstrap(100), count_majorities(result)).text
    'tea wins by Borda, and in 100% of 100 draws of the voters.'
    """
    result = next(iter(methods.values()))
    methods = comparable(methods)
    labels = [shorten(item_label(name)) for name in result.items]
    first = np.flatnonzero(result.ranks == 1)
    if one_ballot(result):
        return Verdict(
            "one ballot", f"There is one ballot, whose order this is: {_on_top(first, labels)}.", []
        )
    by_methods, by_draws = _by_methods(methods, labels), _by_draws(drawn, labels)
    majority = _by_majorities(majorities, labels, first)
    details = [*by_methods, *by_draws, majority]
    if len(first) == len(labels):
        text = f"All {len(labels):,} items are tied: the ballots cancel each other out."
        return Verdict("no order", text, [majority])
    if len(first) > 1:
        return Verdict("tie", f"{_on_top(first, labels)} by {TITLES[result.method]}.", details)
    winner = int(first[0])
    if any(winner not in _firsts(each) for each in methods.values()):
        return Verdict("method", f"The winner depends on the method: {_winners(methods, labels)}.", details)
    wins = f"{labels[winner]} {_wins(methods)}"
    if drawn is None:
        return Verdict("agreed", f"{wins}.", details)
    share, n = float(drawn.first[winner]), len(drawn.ranks)
    if share >= _SURE:
        text = f"{wins}, and in {share:.0%} of {n:,} draws of the voters."
        return Verdict("settled", text, [*by_methods, majority])
    rival = max((number for number in range(len(labels)) if number != winner), key=lambda x: drawn.first[x])
    text = (
        f"The first place is not settled: {labels[winner]} leads, but is first in only {share:.0%} of {n:,} draws of "
        f"the voters, {labels[rival]} in {drawn.first[rival]:.0%}."
    )
    return Verdict("unsettled", text, details)


def _on_top(first: np.ndarray, labels: list[str]) -> str:
    names = [labels[number] for number in first.tolist()]
    return f"{names[0]} is first" if len(names) == 1 else f"{listed(names)} share the first place"


def _firsts(result: Aggregation) -> set[int]:
    return set(np.flatnonzero(result.ranks == 1).tolist())


def _winners(methods: dict[str, Aggregation], labels: list[str]) -> str:
    """Who is first by which methods, from the most methods on."""
    groups: dict[str, list[str]] = {}
    for name, each in methods.items():
        tops = [labels[number] for number in sorted(_firsts(each))]
        groups.setdefault(listed(tops) + (" tied" if len(tops) > 1 else ""), []).append(TITLES[name])
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return ", ".join(
        f"{tops} by {' and '.join(filter(None, [', '.join(by[:-1]), by[-1]]))}" for tops, by in ordered
    )


def _wins(methods: dict[str, Aggregation]) -> str:
    """By how many methods an item wins that is first by all of them, alone or tied."""
    n, alone = len(methods), sum(len(_firsts(each)) == 1 for each in methods.values())
    if n == 1:
        return f"wins by {TITLES[next(iter(methods))]}"
    if alone < n:
        rest = "others" if n - alone > 1 else "other"
        return f"wins by {_WORDS[alone]} of {_WORDS[n]} methods and shares the first place by the {rest}"
    return "wins by both methods" if n == 2 else f"wins by all {_WORDS[n]} methods"


def _by_methods(methods: dict[str, Aggregation], labels: list[str]) -> list[str]:
    """Methods by which the winners share their place, which is less than to win."""
    tied = {name: sorted(_firsts(each)) for name, each in methods.items() if len(_firsts(each)) > 1}
    return [
        f"By {TITLES[name]}, {listed([labels[number] for number in first])} share the first place."
        for name, first in tied.items()
    ]


def _by_draws(drawn: RankBootstrap | None, labels: list[str]) -> list[str]:
    if drawn is None:
        return []
    share = drawn.first
    top = [number for number in np.argsort(-share, kind="stable")[:3].tolist() if share[number] >= 0.005]
    chances = listed([f"{labels[number]} in {share[number]:.0%}" for number in top])
    return [f"First place when the voters are drawn anew: {chances} of {len(drawn.ranks):,} draws."]


def _by_majorities(found: Majorities, labels: list[str], first: np.ndarray) -> str:
    if found.winner is not None:
        though = "" if found.winner in first else ", though it is not first here"
        return f"A majority prefers {labels[found.winner]} to each other item{though} (Condorcet winner)."
    text = "No item is preferred to each other one by a majority (no Condorcet winner)"
    if found.circle is not None:
        a, b, c = (labels[number] for number in found.circle)
        text += f": majorities go in a circle, {a} over {b}, {b} over {c} and {c} over {a}"
    if found.smith is not None and len(found.smith) < len(labels):
        text += f"; {listed([labels[number] for number in found.smith.tolist()])} are preferred to all others"
    return f"{text}."


def doubts_of(methods: dict[str, Aggregation], majorities: Majorities, voters: VoterAgreement) -> list[str]:
    """What qualifies the numbers of the first of some methods: gaps, ties, what is not proven.

    Examples
    --------
    >>> from apexrank import aggregate
    >>> from apexrank.report.votes_majorities import count_majorities
    >>> from apexrank.report.votes_voters import voter_agreement
    >>> result = aggregate([[2, 1], [1, 2]], items="ab")
    >>> doubts_of({"lovasz-bregman": result}, count_majorities(result), voter_agreement(result, 0, []))
    ['Tied: a = b.']
    """
    result, doubts = next(iter(methods.values())), []
    ballots, labels = result.ballots, [shorten(item_label(name), _LETTERS) for name in result.items]
    support = result.support
    if (support < ballots.total).any():
        least = int(np.argmin(support))
        rule = "no opinion" if ballots.missing == "ignore" else "a place below all that are named"
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
        low = int(result.low_support.sum())
        rank = "ranks" if low == 1 else "rank"
        doubts.append(
            f"{counted(low, 'item')} {rank} last for less support than {result.rule.min_support:g}."
        )
    if voters.silent:
        put = "puts" if voters.silent == 1 else "put"
        doubts.append(f"{counted(voters.silent, 'ballot')} {put} no item before another.")
    if result.ties:
        groups = [
            " = ".join(shorten(item_label(name), _LETTERS) for name in group[:_TIES_TOLD])
            for group in result.ties[:_TIES_TOLD]
        ]
        if len(result.ties) > len(groups):
            groups.append(f"and {counted(len(result.ties) - len(groups), 'more group')}")
        doubts.append(f"Tied: {'; '.join(groups)}.")
    for each in methods.values():
        if each.proof is not None and not each.optimal:
            doubts.append(
                f"Kemeny's order is not proven best: it contradicts {each.cost:,.6g} preferences, and every "
                f"order at least {each.bound:,.6g}."
            )
    if majorities.winner is None and majorities.smith is None:
        doubts.append(
            "The items that majorities prefer to all others were not looked for: there are too many pairs."
        )
    return doubts


def _sums_with_gaps(methods: dict[str, Aggregation]) -> list[str]:
    """Which methods favour items that many scored, and which of the two kinds the verdict looks at."""
    result = next(iter(methods.values()))
    sums = [TITLES[name] for name in methods if name in SUMS]
    if not sums or not has_gaps(result):
        return []
    add, which = ("adds", "it is") if len(sums) == 1 else ("add", "they are")
    favour = f"{listed(sums)} {add} up over the voters, which favours items that many scored"
    if result.method not in SUMS:
        return [f"{favour}: {which} shown, but left out of the verdict."]
    others = len(methods) > len(sums)
    return [f"{favour}{': the other methods are shown, but left out of the verdict' if others else ''}."]
