"""Measures for incomplete judgements: rank-biased precision with its residual, bpref and infAP.

An unjudged row has the label NaN. Only these measures support such rows; all others raise an error. Parameters not
documented here are those of `apexrank.metrics.precision_at`.
"""

from __future__ import annotations

import numpy as np

from apexrank.errors import InputError
from apexrank.metrics._labels import ranking_measure
from apexrank.metrics._rows import ScoredRows, Ties, Values, ratio
from apexrank.metrics.discounted_gain import NoMean, check_no_mean

_EPSILON = 1e-5  # trec_eval's smoothing of the share of relevant rows in infAP


def check_persistence(value: float) -> float:
    """Raise InputError unless the persistence is between 0 and 1."""
    if not 0 < value < 1:
        raise InputError(f"`persistence` must be a number between 0 and 1, got {value!r}")
    return float(value)


@ranking_measure("relevance", known="unjudged")
def rbp(rows: ScoredRows, *, persistence: float = 0.8, ties: Ties = "average") -> Values:
    """Rank-biased precision ``(1 − p)·Σ_r p^(r−1)·rel_r`` (Moffat and Zobel 2008).

    It is the expected share of relevant rows for a reader who continues from each row to the next with probability
    p = ``persistence``. An unjudged row keeps its rank and counts 0: the value is a lower bound, and `rbp_residual` is
    the largest amount that unjudged rows could add to it.

    Parameters
    ----------
    y_true, scores, relevant, ties, empty, pos_label, groups, sample_weight
        As in `apexrank.metrics.precision_at`; NaN marks an unjudged row.
    persistence : float in (0, 1)
        0.5 models an impatient reader, 0.95 one who reads twenty rows on average.

    Examples
    --------
    >>> round(rbp([1, 0, float("nan"), 1], [4, 3, 2, 1], persistence=0.5), 6)
    0.5625
    """
    levels = rows.levels(ties)
    return Values(_rank_biased(rows, persistence, ties), levels.total_positive > 0)


@ranking_measure("relevance", known="unjudged")
def rbp_residual(rows: ScoredRows, *, persistence: float = 0.8, ties: Ties = "average") -> Values:
    """Residual of `rbp`: its increase if all unjudged rows, and all rows below the end of the list, were relevant.

    ``(1 − p)·Σ_{r unjudged} p^(r−1) + p^n`` for a list of n rows. The true value is between ``rbp`` and ``rbp +
    rbp_residual``, with the same rule for ties. Parameters as in `rbp`.

    Examples
    --------
    >>> rbp_residual([1, 0, float("nan"), 1], [4, 3, 2, 1], persistence=0.5)
    0.1875
    """
    levels = rows.levels()
    length = levels.sums((levels.positive + levels.negative) * (levels.score > -np.inf))
    residual = check_persistence(persistence) ** length
    if rows.judged is not None:
        highest = rows.counted(rows.positive | ~rows.judged, rows.weight)
        residual += _rank_biased(highest, persistence, ties) - _rank_biased(rows, persistence, ties)
    return Values(residual, levels.total_positive > 0)


def _rank_biased(rows: ScoredRows, persistence: float, ties: Ties) -> np.ndarray:
    """Sum (1 − p)·p^(r−1) over the positives; c tied rows below n others share (p^n − p^(n+c)) / (1 − p)."""
    p, levels = check_persistence(persistence), rows.levels(ties)
    before, through = levels.rows_above
    share = ratio(levels.positive, through - before) * (levels.score > -np.inf)
    return levels.sums(share * (p**before - p**through))


@ranking_measure("relevance", known="unjudged")
def bpref(rows: ScoredRows, *, ties: Ties = "average") -> Values:
    """Binary preference, from judged rows only (Buckley and Voorhees 2004; trec_eval's definition).

    ``(1/R)·Σ_{relevant r} (1 − min(n_r, R) / min(N, R))``, where n_r is the number of rows judged irrelevant above r,
    and R and N are the numbers of rows judged relevant and irrelevant, on the list or not. A relevant row that is not
    on the list (score -inf) adds 0. Unjudged rows are ignored.

    Parameters as in `rbp`; weights must be whole numbers.

    Examples
    --------
    >>> bpref([1, 0, float("nan"), 1, 0], [5, 4, 3, 2, 1])
    0.75
    """
    rows.repetitions()
    if rows.judged is not None:
        rows = rows.counted(rows.positive, (1.0 if rows.weight is None else rows.weight) * rows.judged)
    levels = rows.levels(ties)
    cap = levels.spread(levels.total_positive)
    a, u = levels.above(levels.negative)[0], levels.negative
    # for a relevant row tied with u irrelevant ones, 0, 1, …, u of them are above it with equal probability
    small = np.clip(cap - a, 0, u + 1)
    capped = (small * a + small * (small - 1) / 2 + (u + 1 - small) * cap) / (u + 1)
    least = levels.spread(np.minimum(levels.total_positive, levels.total_negative))
    terms = levels.positive * (1 - ratio(capped, least)) * (levels.score > -np.inf)
    return Values(ratio(levels.sums(terms), levels.total_positive), levels.total_positive > 0)


@ranking_measure("relevance", known="unjudged")
def inf_ap(rows: ScoredRows, *, ties: NoMean = "pessimistic") -> Values:
    """Inferred average precision: `average_precision` estimated from sampled judgements (Yilmaz and Aslam 2006).

    It is the mean over relevant rows of the expected precision at their rank k: ``1/k + m/k · (r + ε) / (r + n + 2ε)``,
    with r and n the rows judged relevant and irrelevant above it, m the rows above it in the pool, and ε = 1e-5.
    Unjudged rows (NaN) must be a random sample of the pool, the rows that could have been judged. A row with a label
    below 0 is outside the pool and counts as irrelevant. Without unjudged rows it is the average precision up to ε.

    Parameters as in `rbp`, except ``ties``: the expectation over random orders has no closed form here. "pessimistic"
    puts irrelevant rows first, then unjudged ones, "optimistic" relevant ones.

    Examples
    --------
    >>> round(inf_ap([1, 0, float("nan"), 1], [4, 3, 2, 1]), 4)
    0.8125
    """
    check_no_mean("inf_ap", ties)
    judged = True if rows.judged is None else rows.judged
    kind = np.where(judged, np.where(rows.relevance < 0, -1.0, 2.0 * rows.positive), 1.0)
    lists = rows.lists
    coded = lists.graded(kind)
    found = coded.relevance if ties == "given" else coded.sorted_ties(best_first=ties == "optimistic")
    relevant, irrelevant = (np.equal(found, code).astype(np.float64) for code in (2, 0))
    above = lists.before(relevant)
    known = above + lists.before(irrelevant)
    pooled = lists.before(np.greater_equal(found, 0).astype(np.float64))
    precision = (1 + pooled * (above + _EPSILON) / (known + 2 * _EPSILON)) / lists.ranks
    total = lists.sums(relevant)
    return Values(ratio(lists.sums(precision * relevant * lists.listed), total), total > 0)
