"""Likelihood of the order of judged lists as a convex function of the scores (Iyer and Bilmes 2013, eq. 28 and 29).

In the model ``p(σ|z) ∝ exp(Σ_r δ_r·z[σ(r)])``, where δ are the gains of a cardinality-based function, the order of the
scores z is the most likely one. Its normaliser is a permanent, unless only the first rank counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from apexrank.errors import InputError
from apexrank.objectives.base import Objective
from apexrank.objectives.listwise import SoftmaxTargets
from apexrank.objectives.push import Push
from apexrank.validation import Segments

if TYPE_CHECKING:
    from apexrank.submodular import SetFunction

MOST_TERMS = 10_000_000  # maximum number of rows over all pairs of levels


class SwapLikelihood(Objective):
    """Composite likelihood of an order: mean negative log-likelihood over all swaps of two documents.

    For documents a above b at ranks r < s, the odds of the order against the same order with the two swapped are
    ``exp((δ_r − δ_s)(z_a − z_b))`` in the model. They do not contain its normaliser, and the likelihood is convex in
    the scores z. Documents of equal relevance get the mean h of the gains of their ranks, as for all ties, so the
    objective is

    ``mean over lists of the mean over pairs y_a > y_b of log(1 + exp(−(h_a − h_b)(z_a − z_b)))``.

    All pairs of two levels have the same difference of gains, so they form a bipartite problem of
    :class:`~apexrank.objectives.push.Push` with the logistic loss: L levels take ``L(L − 1)/2`` near-linear sums.

    Parameters
    ----------
    relevance : array of shape (n,)
        Relevance of each document.
    f : SetFunction
        Cardinality-based function, or a sum of such functions, that provides the gains.
    lists : Segments
        Documents of each list; every list must have documents of different relevance (:func:`telling_lists`).

    Examples
    --------
    >>> from apexrank.validation import segment
    >>> from apexrank.submodular import Sqrt
    >>> objective = SwapLikelihood(np.array([1.0, 0.0]), Sqrt(), segment(None, 2))
    >>> value, gradient = objective.value_and_grad(np.zeros(2))
    >>> round(value, 6), gradient.round(4).tolist()
    (0.693147, [-0.2929, 0.2929])
    """

    has_hessian = False
    total = float(np.log(2))  # the value at equal scores
    separable_below = np.inf  # always check `separated`

    def __init__(self, relevance: np.ndarray, f: SetFunction, lists: Segments) -> None:
        self.positive = np.zeros(len(relevance), dtype=bool)  # there is no positive class
        self.n_groups = len(lists)
        of_lists = [lists.rows(q) for q in range(self.n_groups)]
        size = sum(len(rows) * (len(np.unique(relevance[rows])) - 1) for rows in of_lists)
        if size > MOST_TERMS:
            raise InputError(
                f"lists with this many grades make {size} terms, too many: round the relevance, or use `f='top'`"
            )
        terms = [term for rows in of_lists for term in _terms(relevance, f, rows)]
        if not terms:
            raise InputError(
                "`f` has the same gain for all ranks that the lists tell apart: use 'sqrt' or a larger m"
            )
        self.rows, above, self.gain, share = (np.concatenate(part) for part in zip(*terms, strict=True))
        block = np.repeat(np.arange(len(terms)), [len(term[0]) for term in terms])
        # the push is a mean over blocks of sums over pairs; the weight of a pair is the product of its weights
        weight = np.where(above, share * len(terms) / self.n_groups, 1.0)
        self.push = Push(above, loss="logistic", price="identity", sample_weight=weight, groups=block)

    def value_and_grad(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Objective and its gradient with respect to the scores."""
        value, slope = self.push.value_and_grad(self.gain * scores[self.rows])
        return value, np.bincount(self.rows, self.gain * slope, len(scores))

    def separated(self, scores: np.ndarray) -> bool:
        """Whether every pair is in order, so that without a penalty there is no finite minimiser."""
        return self.push.separated(self.gain * scores[self.rows])


def _terms(relevance: np.ndarray, f: SetFunction, rows: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Pairs of levels: rows, mask of the upper level, difference of gains, and one over the list's number of pairs."""
    y = relevance[rows]
    gains = f.subgradient(y)
    levels = [rows[y == value] for value in np.unique(y)]
    gain_of = [gains[y == value][0] for value in np.unique(y)]
    pairs = (len(y) ** 2 - sum(len(level) ** 2 for level in levels)) // 2
    for low, high in combinations(range(len(levels)), 2):
        both = np.concatenate([levels[high], levels[low]])
        difference = gain_of[high] - gain_of[low]
        if difference > 0:
            above = np.arange(len(both)) < len(levels[high])
            yield both, above, np.full(len(both), difference), np.full(len(both), 1 / pairs)


def order_likelihood(
    relevance: np.ndarray, f: SetFunction, lists: Segments
) -> SoftmaxTargets | SwapLikelihood:
    """Negative log-likelihood of judged lists: exact if only the first rank counts, else that of swaps.

    The exact one is a softmax whose targets are shared equally by the most relevant documents of a list; it requires
    gain 1 for the first rank.

    Examples
    --------
    >>> from apexrank.validation import segment
    >>> from apexrank.submodular import Top
    >>> order_likelihood(np.array([1.0, 0.0, 1.0]), Top(m=1), segment(None, 3)).targets.tolist()
    [0.5, 0.0, 0.5]
    """
    sizes = np.unique(np.diff(lists.indptr))
    if f.n is not None and np.any(sizes != f.n):
        raise InputError(f"f has gains for lists of {f.n} documents: give it `m=`, or lists of that length")
    if not all(_is_first_only(f.gains(np.arange(n))) for n in sizes):
        return SwapLikelihood(relevance, f, lists)
    targets = np.empty(len(relevance))
    for q in range(len(lists)):
        targets[lists.rows(q)] = f.subgradient(relevance[lists.rows(q)])
    weight = np.full(len(relevance), 1 / len(lists))
    return SoftmaxTargets(targets, groups=lists.of_rows(), weight=weight, count=1.0)


def _is_first_only(deltas: np.ndarray) -> bool:
    return bool(deltas[0] == 1 and not deltas[1:].any())


def telling_lists(relevance: np.ndarray, lists: Segments) -> tuple[np.ndarray, Segments]:
    """Select the lists with documents of different relevance; returns the kept rows and the lists of those rows.

    Examples
    --------
    >>> from apexrank.validation import segment
    >>> rows, lists = telling_lists(np.array([1.0, 1.0, 0.0, 2.0]), segment(["a", "a", "b", "b"], 4))
    >>> rows.tolist(), lists.names.tolist()
    ([2, 3], ['b'])
    """
    chosen = [q for q in range(len(lists)) if np.ptp(relevance[lists.rows(q)]) > 0]
    if not chosen:
        raise InputError(
            f"there is no pair to rank: all documents of a list have the same relevance (n_samples = {len(relevance)})"
        )
    kept = np.concatenate([lists.rows(q) for q in chosen])
    sizes = np.diff(lists.indptr)[chosen]
    return kept, Segments(np.arange(len(kept)), np.concatenate([[0], np.cumsum(sizes)]), lists.names[chosen])
