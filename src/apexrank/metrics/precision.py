"""Precision and recall of the first rows, average precision, and reciprocal rank of the first positive.

Parameters not documented here are those of `precision_at` and `apexrank.metrics.auc`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics._labels import check_rows, ranking_measure
from apexrank.metrics._rows import Levels, ScoredRows, Ties, Values, ratio, spread_out
from apexrank.metrics.discounted_gain import check_cut
from apexrank.validation import check_choice

ThresholdTies = Literal["pessimistic", "average", "optimistic", "given", "threshold"]


@ranking_measure("relevance")
def precision_at(rows: ScoredRows, k: float, *, ties: Ties = "average") -> Values:
    """Share of positives among the first ``k`` rows.

    Parameters
    ----------
    y_true, scores, empty, pos_label, groups, sample_weight
        As in `apexrank.metrics.auc`, except that a group needs no negatives and that labels may be grades: with more
        than two numbers, those above 0 are positive. A score of -inf means that a row is not on the list.
    k : int, or float in (0, 1)
        Number of rows, or the fraction of the (group's) rows, which need not be a whole number of rows. A list shorter
        than ``k`` is padded with negatives, as in trec_eval.
    relevant : float, optional
        Lowest grade that counts as positive.
    ties : {"pessimistic", "average", "optimistic", "given"}
        Order of rows tied at the cut: negatives first, the expected value under random order, positives first, or the
        order of the rows.

    Examples
    --------
    >>> precision_at([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5], k=3)
    0.6666666666666666
    >>> precision_at([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5], k=0.4)
    1.0
    >>> precision_at([2, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5], k=2, relevant=2)
    0.5
    """
    levels = rows.levels(ties)
    found, taken = _hits(levels, k)
    return Values(ratio(found, taken), levels.total_positive > 0)


@ranking_measure("relevance")
def recall_at(rows: ScoredRows, k: float, *, ties: Ties = "average") -> Values:
    """Share of all positives that are among the first ``k`` rows. Parameters as in `precision_at`.

    Examples
    --------
    >>> recall_at([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5], k=3)
    0.6666666666666666
    """
    levels = rows.levels(ties)
    found, _ = _hits(levels, k)
    return Values(ratio(found, levels.total_positive), levels.total_positive > 0)


def _hits(levels: Levels, k: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the positives and rows before the cut in each group; a level at the cut counts proportionally."""
    if not (0 < k < 1 or (k >= 1 and k == np.floor(k) and np.isfinite(k))):
        raise InputError(f"`k` must be a number of rows (1, 2, ...) or a fraction between 0 and 1, got {k!r}")
    (before, through), listed = levels.rows_above, levels.score > -np.inf
    rows = np.full(len(levels.indptr) - 1, float(k))
    if k < 1:
        rows = k * levels.sums((levels.positive + levels.negative) * listed)
    end = len(before)
    if len(rows) == 1:  # for one long list only the levels down to the cut matter
        end = min(end, int(np.searchsorted(through, rows[0])) + 1)
    before, through, listed = before[:end], through[:end], listed[:end]
    limit = rows[0] if len(rows) == 1 else levels.spread(rows)
    taken = np.clip(limit, before, through) - before
    found = levels.positive[:end] * ratio(taken, through - before) * listed
    return np.add.reduceat(found, levels.indptr[:-1]), rows


@ranking_measure("relevance")
def average_precision(rows: ScoredRows, *, k: int | None = None, ties: ThresholdTies = "average") -> Values:
    """Average precision, the mean precision at the ranks of the positives; with groups its mean, MAP.

    Parameters
    ----------
    y_true, scores, relevant, empty, pos_label, groups, sample_weight
        As in `apexrank.metrics.precision_at`.
    k : int, optional
        Positives below rank k contribute nothing; the sum is still divided by the number of all positives, as in
        trec_eval's ``map_cut``.
    ties : {"pessimistic", "average", "optimistic", "given", "threshold"}
        As in `apexrank.metrics.precision_at`; "average" is the expected value under random order (McSherry and
        Najork 2008). "threshold" treats tied rows as one step, as scikit-learn's ``average_precision_score`` does;
        weights then need not be whole numbers.

    Examples
    --------
    >>> round(average_precision([1, 0, 1, 0], [0.9, 0.7, 0.4, 0.1]), 6)
    0.833333
    >>> round(average_precision([1, 0, 1, 0], [0.9, 0.7, 0.4, 0.1], k=2), 6)
    0.5
    """
    check_choice("ties", ties, ThresholdTies)
    if ties != "threshold":
        rows.repetitions("or use `ties='threshold'`")
    levels = rows.levels("average" if ties == "threshold" else ties)
    cut = np.inf if k is None else check_cut(k)
    m, c = levels.positive, levels.positive + levels.negative
    r, n = levels.positives_above[0], levels.rows_above[0]
    if ties == "threshold":
        sums = m * ratio(r + m, n + c) * (n + c <= cut)
    else:
        # Expected sum of the precisions at the positives of a level with its rows in random order: with n rows and r
        # positives above, and m positives among its c rows, position j of the level is a positive with probability
        # m/c, and has r + (j − 1)(m − 1)/(c − 1) other positives above it on average.
        sums = m * ratio(r + 1, n + 1) * (n < cut)
        several = np.flatnonzero((c > 1) & (m > 0))
        which, i, starts = spread_out(c[several].astype(np.int64))
        level, j = several[which], i + 1
        above = r[level] + i * (m[level] - 1) / (c[level] - 1)
        terms = m[level] / c[level] * (above + 1) / (n[level] + j) * (n[level] + j <= cut)
        sums[several] = np.add.reduceat(terms, starts)
    total = levels.sums(sums * (levels.score > -np.inf))
    return Values(ratio(total, levels.total_positive), levels.total_positive > 0)


@ranking_measure("relevance")
def mrr(rows: ScoredRows, *, k: int | None = None, ties: Ties = "average") -> Values:
    """Reciprocal rank of the first positive; with groups its mean, MRR.

    Parameters as in `average_precision`, except ``ties``, which has no "threshold"; a first positive below rank
    ``k`` counts 0.

    Examples
    --------
    >>> mrr([0, 0, 1, 1], [0.9, 0.7, 0.4, 0.1])
    0.3333333333333333
    >>> mrr([0, 1], [0.5, 0.5])  # first or second with the same chance
    0.75
    """
    rows.repetitions()
    levels = rows.levels(ties)
    cut = np.inf if k is None else check_cut(k)
    m, c = levels.positive, levels.positive + levels.negative
    first = np.flatnonzero((m > 0) & (levels.above(m)[0] == 0) & (levels.score > -np.inf))
    value = np.zeros(len(levels.indptr) - 1)
    group = np.searchsorted(levels.indptr, first, side="right") - 1
    value[group] = _first_positive(levels.above(c)[0][first], c[first], m[first], cut)
    return Values(value, levels.total_positive > 0)


def _first_positive(n: np.ndarray, c: np.ndarray, m: np.ndarray, cut: float) -> np.ndarray:
    """Expected 1/rank of the first of m positives among c randomly ordered rows below n others.

    The probability that none of the first j − 1 rows is positive and the next one is:
    Π_{i<j} (c − m − i + 1)/(c − i + 1) · m/(c − j + 1).
    """
    level, i, starts = spread_out((c - m).astype(np.int64) + 1)  # i rows before the first positive
    with np.errstate(divide="ignore"):
        log_miss = np.where(i > 0, np.log((c - m)[level] - i + 1) - np.log(c[level] - i + 1), 0.0)
    total = np.cumsum(log_miss)
    missed = np.exp(total - total[starts][level])
    rank = n[level] + i + 1
    return np.add.reduceat(missed * m[level] / (c[level] - i) / rank * (rank <= cut), starts)


@ranking_measure("relevance")
def winner_takes_all(rows: ScoredRows, *, ties: Ties = "average") -> Values:
    """Winner takes all: 1 if the first row is positive, else 0; with groups the share of such lists.

    It is one minus the "winner take all" loss of JMLR 2009, sec. 2, 1[max_i f_i <= max_k g_k], with
    ``ties="pessimistic"``. Parameters as in `apexrank.metrics.precision_at`.

    Examples
    --------
    >>> winner_takes_all([1, 0, 0, 1], [0.9, 0.2, 0.7, 0.4], groups=["a", "a", "b", "b"])
    0.5
    """
    return precision_at.formula(rows, k=1, ties=ties)


def spam_mass(spam: ArrayLike, scores: ArrayLike) -> float:
    """Share of the total score held by spam items, Σ_spam s / Σ s.

    Parameters
    ----------
    spam : array-like of bool, shape (n,)
        Mask of spam items.
    scores : array-like of shape (n,)
        Non-negative scores, such as the probabilities of PageRank; they need not sum to 1.

    Examples
    --------
    >>> spam_mass([True, False, False], [0.2, 0.5, 0.3])
    0.2
    """
    rows = _spam_rows(spam, scores)
    if (rows.scores < 0).any() or not np.isfinite(rows.scores).all() or not rows.scores.any():
        raise InputError("spam_mass needs finite scores of at least 0, not all 0: they are shares of a total")
    share = rows.scores / rows.scores.max()  # avoids overflow of sums of huge scores
    return float(share[rows.positive].sum() / share.sum())


def spam_met(
    spam: ArrayLike, scores: ArrayLike, m: ArrayLike, *, ties: Ties = "average"
) -> np.ndarray | float:
    """Number of spam items in the first ``m`` ranks.

    Parameters
    ----------
    spam, scores
        As in `spam_mass`, but the scores may be any numbers; the largest are first.
    m : int or array-like of int
        One or many numbers of ranks.
    ties : {"pessimistic", "average", "optimistic", "given"}
        Order of tied rows: spam first, the expected number, spam last, or the order of the rows.

    Examples
    --------
    >>> spam_met([1, 0, 0, 1], [0.9, 0.5, 0.3, 0.1], 2)
    1.0
    >>> spam_met([1, 0, 0, 1], [0.9, 0.5, 0.3, 0.1], [1, 2, 4]).tolist()
    [1.0, 1.0, 2.0]
    """
    turned: dict[str, Ties] = {"pessimistic": "optimistic", "optimistic": "pessimistic"}
    levels = _spam_rows(spam, scores).levels(turned.get(ties, ties))
    wanted = np.asarray(m)
    if wanted.dtype.kind not in "iuf" or not (wanted >= 0).all():
        raise InputError("`m` must be numbers of ranks of at least 0")
    size = levels.positive + levels.negative
    before, met = levels.above(size)[0], levels.positives_above[0]
    level = np.clip(np.searchsorted(before, wanted, side="right") - 1, 0, None)
    inside = np.minimum(wanted - before[level], size[level])
    found = met[level] + levels.positive[level] * ratio(inside, size[level])
    return float(found) if found.ndim == 0 else found


def _spam_rows(spam: ArrayLike, scores: ArrayLike) -> ScoredRows:
    labels = np.asarray(spam)
    if labels.dtype.kind not in "biuf" or not np.isin(labels, (0, 1)).all():
        raise InputError("spam must say True or False (1 or 0) for each item")
    return check_rows(labels.astype(bool), scores, relevant=1, graded=True)
