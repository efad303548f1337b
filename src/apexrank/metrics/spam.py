"""How much of a ranking spam gets hold of (Acharyya 2013, sec. 6.4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics._levels import ratio
from apexrank.metrics._rows import ScoredRows, Ties, check_rows


def spam_mass(spam: ArrayLike, scores: ArrayLike) -> float:
    """Share of the total score that spam items hold: Σ_spam s / Σ s.

    Parameters
    ----------
    spam : array-like of bool, shape (n,)
        Which items are spam.
    scores : array-like of shape (n,)
        Scores of at least 0, such as the probabilities of PageRank; they need not sum to 1.

    Examples
    --------
    >>> spam_mass([True, False, False], [0.2, 0.5, 0.3])
    0.2
    """
    rows = _spam_rows(spam, scores)
    if (rows.scores < 0).any() or not np.isfinite(rows.scores).all() or not rows.scores.any():
        raise InputError("spam_mass needs finite scores of at least 0, not all 0: they are shares of a total")
    share = rows.scores / rows.scores.max()  # sums of huge scores would overflow
    return float(share[rows.positive].sum() / share.sum())


def spam_met(
    spam: ArrayLike, scores: ArrayLike, m: ArrayLike, *, ties: Ties = "average"
) -> np.ndarray | float:
    """Number of spam items met in the first ``m`` ranks.

    Parameters
    ----------
    spam, scores
        As in `spam_mass`, but the scores may be any numbers: the largest stand first.
    m : int or array-like of int
        One or many numbers of ranks.
    ties : {"pessimistic", "average", "optimistic", "given"}
        Spam first among equals, the expected number, spam last, or the order of the rows.

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
        raise InputError("m must be numbers of ranks of at least 0")
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
