"""Which method computes which score, in one place for a first result and for its resamples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from apexrank.aggregation.ballots import Ballots
from apexrank.aggregation.fusion import LINEAR, check_hits, linear_scores, median_scores
from apexrank.aggregation.kemeny import Kemeny, kemeny, tied_places
from apexrank.aggregation.pairwise import copeland_scores, margins, pairwise_counts
from apexrank.aggregation.points import Rule


class Scored(NamedTuple):
    """Score of each item, the error that rounding can make in it, and what ``kemeny`` knows of its order."""

    scores: np.ndarray
    tolerance: np.ndarray
    proof: Kemeny | None = None


def score_items(ballots: Ballots, rule: Rule) -> Scored:
    """Score of each item by the method of the rule, larger is better.

    Examples
    --------
    >>> ballots = Ballots(np.array([[3, 2, 1], [3, 1, 2], [1, 2, 3]]), list("abc"))
    >>> score_items(ballots, Rule("copeland")).scores.tolist()
    [2.0, 0.0, 1.0]
    """
    if rule.method in LINEAR:
        return Scored(*linear_scores(ballots, rule))
    if rule.method == "median":
        return Scored(*median_scores(ballots, rule))
    if ballots.missing == "ignore":
        check_hits(ballots, ballots.support())
    return score_pairs(ballots, rule)


def score_pairs(ballots: Ballots, rule: Rule) -> Scored:
    """Score of each item by a method that needs all pairs; one that no voter scored draws with all others.

    Examples
    --------
    >>> score_pairs(Ballots(np.array([[3, np.nan, 1]]), list("abc")), Rule("copeland")).scores.tolist()
    [1.5, 1.0, 0.5]
    """
    counts, total, exact = pairwise_counts(ballots), ballots.total, np.zeros(ballots.n_items)
    if rule.method == "copeland":
        return Scored(copeland_scores(counts, total), exact)
    proof = kemeny(counts, total, max_exact=rule.max_exact, time_limit=rule.time_limit)
    return Scored(ballots.n_items - tied_places(proof.order, margins(counts, total)), exact, proof)
