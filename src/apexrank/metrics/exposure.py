"""Expected exposure: equal attention for rows of equal relevance (Diaz et al. 2020)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics._labels import graded_rows, ranking_measure
from apexrank.metrics._rows import GradedLists, ScoredRows, Values
from apexrank.metrics.unjudged import check_persistence


class Exposure(NamedTuple):
    """Means over the groups, with ``loss = disparity − 2·relevance + |target|²``."""

    disparity: float
    relevance: float
    loss: float


@ranking_measure("grades")
def exposure_loss(rows: ScoredRows, *, persistence: float = 0.5) -> Values:
    """Squared distance between expected and target exposure, EE-L of Diaz et al. (2020); 0 is best.

    A reader continues from each rank to the next with probability γ = ``persistence``, so that rank r has the exposure
    γ^(r−1). Tied rows represent all of their orders and share the exposure of their ranks. The target gives each row
    the mean exposure of the rows of its grade in the ideal order: a list without ties, which prefers one of two equal
    rows, never attains the target. For policies that draw rankings see `expected_exposure`.

    Parameters
    ----------
    y_true, scores, empty, groups, sample_weight
        As in `apexrank.metrics.ndcg`.
    persistence : float in (0, 1)
        γ of the reader.

    Examples
    --------
    >>> exposure_loss([1, 1, 0], [2, 2, 1]), exposure_loss([1, 1, 0], [3, 2, 1])
    (0.0, 0.125)
    """
    lists = rows.lists
    own, target = _exposures(lists, check_persistence(persistence))
    return Values(lists.sums((own - target) ** 2), lists.highest > 0)


def _exposures(lists: GradedLists, persistence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected exposure of each row of the lists, and its target."""
    exposure = persistence ** (lists.ranks - 1.0)
    order = np.lexsort((-lists.relevance, lists.of_rows))
    grade, list_ = lists.relevance[order], lists.of_rows
    fresh = np.concatenate([[True], (grade[1:] != grade[:-1]) | (list_[1:] != list_[:-1])])
    level = np.cumsum(fresh) - 1
    target = np.empty(len(order))
    target[order] = (np.bincount(level, exposure) / np.bincount(level))[level]
    return lists.mean_of_ties(exposure) * lists.listed, target


def expected_exposure(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    persistence: float = 0.5,
    groups: ArrayLike | None = None,
) -> Exposure:
    """Disparity, relevance and loss of expected exposure: EE-D, EE-R and EE-L of Diaz et al. (2020).

    With ε the expected exposure of the rows of a query and ε* its target (`exposure_loss`): EE-D = |ε|², EE-R = ε·ε*,
    EE-L = |ε − ε*|². The values are not normalised.

    Parameters
    ----------
    y_true, groups
        As in `apexrank.metrics.ndcg`; groups without a relevant row are skipped.
    scores : array-like of shape (n,) or (n, m)
        Scores of one ranking, or of m rankings drawn from a stochastic policy, one in each column: the exposure is the
        mean over them.
    persistence : float in (0, 1)
        Probability that a reader continues to the next rank.

    Returns
    -------
    Exposure
        Named tuple (disparity, relevance, loss).

    Examples
    --------
    >>> expected_exposure([1, 1, 0], [[3, 2], [2, 3], [1, 1]])  # the two relevant rows take turns
    Exposure(disparity=1.1875, relevance=1.1875, loss=0.0)
    """
    gamma, drawn = check_persistence(persistence), np.asarray(scores)
    drawn = drawn[:, None] if drawn.ndim == 1 else drawn
    if drawn.ndim != 2 or not drawn.shape[1]:
        raise InputError(f"scores needs one column for each ranking, got shape {drawn.shape}")
    total: Any = 0.0
    for column in drawn.T:
        rows = graded_rows(y_true, column, groups)
        rows.refuse(None)
        own, target = (np.empty(len(rows)) for _ in range(2))
        own[rows.lists.rows], target[rows.lists.rows] = _exposures(rows.lists, gamma)
        total = total + own / drawn.shape[1]
    products = (total**2, total * target, (total - target) ** 2)
    lists, of_row = rows.lists, rows.groups.of_rows()
    return Exposure(
        *(rows.mean(Values(np.bincount(of_row, each), lists.highest > 0), "skip") for each in products)
    )
