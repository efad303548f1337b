"""Fit candidates on the training rows of every split and measure them on its test rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from threading import Lock

import numpy as np
from threadpoolctl import threadpool_limits

from apexrank.comparison.candidates import Candidate, quietly
from apexrank.comparison.splits import Split, Top
from apexrank.errors import InputError
from apexrank.metrics import auc, average_precision
from apexrank.parallel import Threads

MEASURES = ("top", "average_precision", "auc")
# shares of the rows read, dense at the top, at which the share of the positives found is noted
SHARES = np.unique(np.concatenate([np.linspace(0, 0.1, 21), np.linspace(0.1, 1, 37)]))

Rows = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Trials:
    """What all settings of a candidate did on all splits.

    ``values`` has the shape (n_settings, n_splits, n_measures), ``gains`` (n_settings, n_splits, n_shares) the shares
    of the positives found, and ``scores`` (n_settings, n) the scores of every row in the first repeat, from a fit that
    had not seen it (NaN for rows that no split tests).
    """

    values: np.ndarray
    gains: np.ndarray
    scores: np.ndarray

    def best(self, splits: np.ndarray | slice = slice(None)) -> int:
        """Setting that does best on some of the splits, the first of equals.

        By the measure of the top plus average precision: a few places alone are so noisy that on 39 public tables
        settings chosen by both had the better top.
        """
        return int(self.values[:, splits, :2].mean(axis=1).sum(axis=1).argmax())

    def chosen(self, splits: Sequence[Split]) -> np.ndarray:
        """For each split the setting that did best on the others of its repeat.

        So no split has a say in the choice that is measured on it.
        """
        repeat = np.array([split.repeat for split in splits])
        number = np.arange(len(splits))
        return np.array([self.best((repeat == repeat[s]) & (number != s)) for s in number])


def run_trials(
    candidates: Sequence[Candidate],
    y: np.ndarray,
    weight: np.ndarray | None,
    rows: Rows,
    splits: Sequence[Split],
    top: Top,
    progress: Progress | None = None,
    threads: int = 1,
) -> list[Trials]:
    """Fit and measure every setting of every candidate on every split; ``rows`` gives the features of both parts.

    Splits run in several ``threads``, but for candidates whose fits may not. The result does not depend on their
    number.
    """
    shapes = [(len(candidate.settings), len(splits), len(MEASURES)) for candidate in candidates]
    values = [np.empty(shape) for shape in shapes]
    gains = [np.empty((*shape[:2], len(SHARES))) for shape in shapes]
    scores = [np.full((shape[0], len(y)), np.nan) for shape in shapes]
    total, started, lock = len(splits) * len(candidates), count(), Lock()

    def try_all(numbers: list[int], s: int) -> None:
        train, test, repeat = splits[s]
        X, X_test = rows(train, test)
        w, w_test = (None, None) if weight is None else (weight[train], weight[test])
        if w is not None and not (w[y[train]].any() and w[~y[train]].any()):
            raise InputError(
                "in one split a class has no training row with a weight above 0: use fewer folds, or give more "
                "rows a weight"
            )
        for c in numbers:
            if progress is not None:
                with lock:
                    progress(next(started), total, candidates[c].name)
            found = candidates[c].scores(X, y[train], w, X_test)
            for i, row in enumerate(found):
                values[c][i, s] = measures_of(y[test], row, w_test, top)
                gains[c][i, s] = gains_of(y[test], row, w_test)
            if repeat == 0:
                scores[c][:, test] = found

    # of many small products of matrices starting and awaiting threads takes longer than they save
    with threadpool_limits(limits=1, user_api="blas"), quietly():
        for in_threads in (False, True):
            numbers = [c for c, candidate in enumerate(candidates) if candidate.in_threads == in_threads]
            if numbers:
                with Threads(threads if in_threads else 1) as pool:
                    pool.map(partial(try_all, numbers), range(len(splits)))
    return [Trials(*arrays) for arrays in zip(values, gains, scores, strict=True)]


def measures_of(y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None, top: Top) -> tuple[float, ...]:
    """Values of ``MEASURES``."""
    counts = weight is None or bool((weight == np.floor(weight)).all())
    whole = float(auc(y, scores, sample_weight=weight))
    # sums over ranks need whole weights; with others the area under the ROC curve takes their place
    precision = float(average_precision(y, scores, sample_weight=weight)) if counts else whole
    return top.measure(y, scores, weight), precision, whole


def gains_of(y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Share of the positives found in the first ``SHARES`` of the rows, of tied rows their mean.

    Examples
    --------
    >>> found = gains_of(np.array([True, False, True, False]), np.array([3.0, 2.0, 1.0, 1.0]))
    >>> np.interp([0.25, 0.5, 0.75, 1], SHARES, found).tolist()
    [0.5, 0.5, 0.75, 1.0]
    """
    weight = np.ones(len(y)) if weight is None else weight
    _, level = np.unique(-scores, return_inverse=True)
    read, found = np.cumsum(np.bincount(level, weight)), np.cumsum(np.bincount(level, weight * y))
    return np.interp(SHARES * read[-1], np.append(0, read), np.append(0, found) / found[-1])
