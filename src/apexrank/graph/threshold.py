"""The smallest spam classifier there is: one cut on one score (2013, Figure 6.11)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError


class Threshold(NamedTuple):
    """Call spam what scores at or below ``cut``; ``error`` is its share of wrong answers where it was found.

    Examples
    --------
    >>> Threshold(0.3, 0.0).is_spam([0.2, 0.3, 0.4]).tolist()
    [True, True, False]
    """

    cut: float
    error: float

    def is_spam(self, scores: ArrayLike) -> np.ndarray:
        """Which vertices are called spam."""
        return np.asarray(scores, dtype=float) <= self.cut


def best_threshold(scores: ArrayLike, spam: ArrayLike) -> Threshold:
    """Find the cut on one score that makes the fewest errors when everything at or below it is called spam.

    One sort, O(n log n). The cut is a score that occurs, or −inf where calling nothing spam is best; equal scores are
    always on the same side. Among equally good cuts it is the lowest, which calls the fewest vertices spam.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of labelled vertices, larger is better.
    spam : array-like of bool, shape (n,)
        Which of them are spam.

    Returns
    -------
    Threshold
        ``(cut, error)``, with the error as a share of the n vertices.

    Examples
    --------
    >>> from apexrank.graph.threshold import best_threshold
    >>> best_threshold([0.1, 0.2, 0.2, 0.9], [True, True, False, False])
    Threshold(cut=0.1, error=0.25)
    >>> cut, error = best_threshold([0.1, 0.5], [False, False])
    >>> cut, error
    (-inf, 0.0)
    """
    values, flags = _checked(scores, spam)
    order = np.argsort(values, kind="stable")
    ordered, caught = values[order], np.cumsum(flags[order])
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    # spam left above the cut, and honest vertices at or below it
    wrong = (caught[-1] - caught[ends]) + (ends + 1 - caught[ends])
    errors = np.concatenate([[caught[-1]], wrong])
    best = int(errors.argmin())
    cut = -np.inf if best == 0 else float(ordered[ends[best - 1]])
    return Threshold(cut, float(errors[best] / len(values)))


def error_rates(found: ArrayLike, spam: ArrayLike) -> tuple[float, float]:
    """Share of wrong answers, and the mean of the shares among spam and among the others (the balanced error).

    A classifier that always gives the same answer has a balanced error of 1/2, however rare spam is.

    Examples
    --------
    >>> from apexrank.graph.threshold import error_rates
    >>> error_rates([False, False, False, False], [True, False, False, False])
    (0.25, 0.5)
    """
    answers, flags = np.asarray(found, dtype=bool), np.asarray(spam, dtype=bool)
    if answers.shape != flags.shape or answers.ndim != 1:
        raise InputError("error_rates needs one answer and one label for each vertex")
    if not flags.any() or flags.all():
        raise InputError("error_rates needs both spam and other vertices: one of the kinds is missing")
    wrong = answers != flags
    return float(wrong.mean()), float((wrong[flags].mean() + wrong[~flags].mean()) / 2)


def _checked(scores: ArrayLike, spam: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    values, flags = np.asarray(scores, dtype=float), np.asarray(spam)
    if values.ndim != 1 or values.shape != flags.shape or not len(values):
        raise InputError("best_threshold needs one score and one label for each of at least one vertex")
    if flags.dtype.kind not in "biuf" or not np.isin(flags, (0, 1)).all():
        raise InputError("spam must say True or False (1 or 0) for each vertex")
    if not np.isfinite(values).all():
        raise InputError("best_threshold needs finite scores: leave out vertices without one")
    return values, flags.astype(np.int64)
