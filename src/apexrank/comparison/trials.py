"""Splits of the rows, measures of a list, and trials of all candidates on all splits, with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from apexrank.comparison.candidates import Averaged, Candidate, quietly
from apexrank.errors import InputError
from apexrank.metrics import auc, average_precision, precision_at, tpr_at_fpr
from apexrank.metrics.confidence import Interval
from apexrank.parallel import Threads
from apexrank.validation import check_count

_DEFAULT_TOP = (0.01, 0.1)  # smallest and largest share of the rows
_FEWEST_PLACES = 10  # in a fold, by default
MEASURES = ("top", "average_precision", "auc")
# shares of the rows, dense at the top, at which the share of the positives found is recorded
SHARES = np.unique(np.concatenate([np.linspace(0, 0.1, 21), np.linspace(0.1, 1, 37)]))

Rows = Callable[[np.ndarray, np.ndarray, bool], tuple[Any, Any]]
Progress = Callable[[int, int, str], None]
FOLDS = 5  # default, lowered if a class has fewer rows


@dataclass(frozen=True)
class Top:
    """Top of a list: its first rows, as a ``share`` of all, or the rows above a false positive rate ``fpr``.

    Examples
    --------
    >>> top = Top.of("2%", n=5000, positives=100)
    >>> top.share, top.label
    (0.02, 'precision in the first 2 %')
    >>> top.measure(np.array([True, False, False, True]), np.array([3.0, 2.0, 1.0, 0.0]))
    1.0
    """

    share: float | None = None
    fpr: float | None = None
    rows: int | None = None  # if the top was given as a number of rows

    @classmethod
    def of(cls, given: Any, n: float, positives: float, fpr: float | None = None) -> Top:
        """Parse ``100``, ``"100"``, ``"1%"`` or ``0.01``; by default as many rows as are positive.

        The default is at least 1 % and 50 rows, and at most 10 %, or a third if 50 rows are more than that.
        """
        if fpr is not None:
            if given is not None:
                raise InputError("`top` and `fpr` are alternatives: give one of them")
            if not 0 < fpr < 1:
                raise InputError(f"`fpr` must be a share between 0 and 1, got {fpr!r}")
            return cls(fpr=float(fpr))
        if given is None:
            share = float(np.clip(positives / n, *_DEFAULT_TOP))
            return cls(share=min(max(share, 5 * _FEWEST_PLACES / n), 1 / 3))
        text = str(given).strip()
        try:
            share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            raise InputError(
                f"`top` must be a number of rows such as 100 or a share such as 1%, got {given!r}"
            ) from None
        rows = round(share) if share >= 1 and not text.endswith("%") else None
        share = share if rows is None else share / n
        if not 0 < share <= 1 / 3:
            raise InputError(f"`top` must be above 0 and at most a third of the rows, got {given!r}")
        return cls(share=share, rows=rows)

    def places(self, n: float, positives: float) -> float:
        """Number of rows at the top of n, or of negatives allowed by the false positive rate."""
        return self.share * n if self.share is not None else (self.fpr or 0.0) * (n - positives)

    @property
    def part(self) -> str:
        """Description of the first rows."""
        return f"first {100 * (self.share or 0):.3g} %" if self.rows is None else f"first {self.rows:,} rows"

    @property
    def label(self) -> str:
        """Name of the measure."""
        if self.share is None:
            return f"positives found at {100 * (self.fpr or 0):.3g} % false alarms"
        return f"precision in the {self.part}"

    def measure(self, y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None = None) -> float:
        """Precision in the first rows, or true positive rate at the false positive rate."""
        if self.share is None:
            return float(tpr_at_fpr(y, scores, fpr=self.fpr, sample_weight=weight))
        # at least one row
        return float(precision_at(y, scores, k=max(self.share, 1 / len(y)), sample_weight=weight))


class Split(NamedTuple):
    """Training rows, test rows, and the number of the repeat."""

    train: np.ndarray
    test: np.ndarray
    repeat: int


def repeated_folds(
    y: np.ndarray, *, folds: int, repeats: int, groups: np.ndarray | None = None, seed: int | None = 0
) -> list[Split]:
    """Make repeated stratified folds; all rows of a group are on one side of a split.

    Groups are stratified like rows: a group with a positive row counts as positive. If nearly all groups have rows of
    both classes, the half with the larger shares of positives does.
    """
    check_count("folds", folds, 2)
    check_count("repeats", repeats)
    unit = np.arange(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1]
    share = np.bincount(unit, y) / np.bincount(unit)
    fewest, what = int(min((share > 0).sum(), (share < 1).sum())), "row" if groups is None else "group"
    if fewest < 2:
        raise InputError(f"a comparison needs at least 2 {what}s of each class to train and test: give more")
    if fewest < folds and folds != FOLDS:
        raise InputError(
            f"`folds` is {folds:,}, but one class has {fewest:,} {what}s: use at most {fewest:,} folds"
        )
    label, rng, splits = share > 0, np.random.default_rng(seed), []
    if (~label).sum() < min(folds, fewest):
        label = np.argsort(np.argsort(share, kind="stable")) >= len(share) / 2
    for repeat in range(repeats):
        cut = StratifiedKFold(min(folds, fewest), shuffle=True, random_state=int(rng.integers(2**31)))
        for _, chosen in cut.split(label, label):
            tested = np.isin(unit, chosen)
            split = Split(np.flatnonzero(~tested), np.flatnonzero(tested), repeat)
            if all(y[part].any() and not y[part].all() for part in split[:2]):
                splits.append(split)
    if len(splits) < 2:
        raise InputError("too few splits have rows of both classes on both sides: give more rows or groups")
    return splits


def later_rows(y: np.ndarray, time: np.ndarray, *, folds: int) -> list[Split]:
    """Make chronological splits: the later half of the rows in parts, each tested after training on all earlier rows.

    Rows with equal times stay together.
    """
    if len(y) < 2 * folds and folds != FOLDS:
        raise InputError(
            f"`folds` is {folds:,}, but there are {len(y):,} rows: use at most {len(y) // 2:,} folds"
        )
    order = np.argsort(time, kind="stable")
    cuts = np.linspace(len(y) / 2, len(y), folds + 1)
    first = time[order][np.minimum(cuts[:-1].astype(int), len(y) - 1)]
    edges = np.unique(np.searchsorted(time[order], first))
    edges = np.append(edges[edges > 0], len(y))
    splits = [Split(np.sort(order[:start]), np.sort(order[start:end]), 0) for start, end in pairwise(edges)]
    splits = [s for s in splits if all(part.any() and not part.all() for part in (y[s.train], y[s.test]))]
    if len(splits) < 2:
        raise InputError("the later half of the rows has too few times, or only one class: leave out time")
    return splits


def corrected_interval(
    values: Sequence[float] | np.ndarray, ratio: float, confidence: float, comparisons: int = 1
) -> Interval:
    """Confidence interval of the mean of values from splits that share training rows.

    Because training rows are shared, the variance of the mean of J values of variance s² is not s²/J but about
    ``(1/J + ratio)·s²``, where ``ratio`` is the number of test rows over that of training rows (Nadeau and Bengio,
    "Inference for the generalization error", Machine Learning 2003). With several ``comparisons`` the interval is
    widened to hold for all of them at once (Bonferroni).

    Examples
    --------
    >>> interval = corrected_interval([0.1, 0.2, 0.15, 0.12, 0.18], 0.25, 0.95)
    >>> f"{interval.value:.2f} {interval.low:.2f} {interval.high:.2f}"
    '0.15 0.08 0.22'
    """
    given = np.asarray(values, dtype=float)
    n, mean = len(given), float(given.mean())
    variance = float(given.var(ddof=1)) if n > 1 else np.inf
    width = reach(n, ratio, variance, confidence, comparisons)
    error = float(np.sqrt((1 / n + ratio) * variance))
    return Interval(mean, mean - width, mean + width, error, confidence, n)


def reach(n: int, ratio: float, variance: float, confidence: float, comparisons: int = 1) -> float:
    """Half the width of a :func:`corrected_interval` of ``n`` values of a given variance."""
    level = 1 - (1 - confidence) / 2 / comparisons
    return float(stdtrit(max(n - 1, 1), level) * np.sqrt((1 / n + ratio) * variance))


@dataclass(frozen=True)
class Trials:
    """Results of all settings of a candidate on all splits.

    ``values`` has the shape (n_settings, n_splits, n_measures), ``gains`` (n_settings, n_splits, n_shares) the shares
    of the positives found, and ``scores`` (n_settings, n) the held-out scores of every row in the first repeat (NaN
    for rows that are in no test set).
    """

    values: np.ndarray
    gains: np.ndarray
    scores: np.ndarray

    def best(self, splits: np.ndarray | slice = slice(None)) -> int:
        """Return the best setting on the given splits, the first of tied ones.

        The criterion is the measure of the top plus average precision: a few top places alone are so noisy that on 39
        public tables settings chosen by both had the better top.
        """
        return int(self.values[:, splits, :2].mean(axis=1).sum(axis=1).argmax())

    def chosen(self, splits: Sequence[Split]) -> np.ndarray:
        """Choose for each split the setting that did best on the other splits of its repeat.

        So the choice that is evaluated on a split does not depend on it.
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
    """Fit and evaluate every setting of every candidate on every split; ``rows`` returns the features of both parts.

    Splits run in several ``threads``, except for candidates whose fits may not run in parallel. The result does not
    depend on the number of threads.
    """
    shapes = [(len(candidate.settings), len(splits), len(MEASURES)) for candidate in candidates]
    values = [np.empty(shape) for shape in shapes]
    gains = [np.empty((*shape[:2], len(SHARES))) for shape in shapes]
    scores = [np.full((shape[0], len(y)), np.nan) for shape in shapes]
    total, started, lock = len(splits) * len(candidates), count(), Lock()

    def try_all(numbers: list[int], s: int) -> None:
        train, test, repeat = splits[s]
        kinds = {candidates[c].takes_columns for c in numbers}
        features = {kind: rows(train, test, kind) for kind in kinds}
        w, w_test = (None, None) if weight is None else (weight[train], weight[test])
        if w is not None and not (w[y[train]].any() and w[~y[train]].any()):
            raise InputError(
                "in one split a class has no training row with a weight above 0: use fewer folds, or give more "
                "rows a weight"
            )
        known: dict[str, np.ndarray] = {}
        for c in numbers:
            if progress is not None:
                with lock:
                    progress(next(started), total, candidates[c].name)
            X, X_test = features[candidates[c].takes_columns]
            shared = {"known": known} if isinstance(candidates[c], Averaged) else {}
            found = candidates[c].scores(X, y[train], w, X_test, **shared)
            for i, row in enumerate(found):
                values[c][i, s] = measures_of(y[test], row, w_test, top)
                gains[c][i, s] = gains_of(y[test], row, w_test)
            if repeat == 0:
                scores[c][:, test] = found

    # for many small matrix products, BLAS threads cost more than they save
    with threadpool_limits(limits=1, user_api="blas"), quietly():
        for in_threads in (False, True):
            numbers = [c for c, candidate in enumerate(candidates) if candidate.in_threads == in_threads]
            if numbers:
                with Threads(threads if in_threads else 1) as pool:
                    pool.map(partial(try_all, numbers), range(len(splits)))
    return [Trials(*arrays) for arrays in zip(values, gains, scores, strict=True)]


def measures_of(y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None, top: Top) -> tuple[float, ...]:
    """Compute the values of ``MEASURES``."""
    counts = weight is None or bool((weight == np.floor(weight)).all())
    whole = float(auc(y, scores, sample_weight=weight))
    # sums over ranks need whole weights; otherwise use the area under the ROC curve instead
    precision = float(average_precision(y, scores, sample_weight=weight)) if counts else whole
    return top.measure(y, scores, weight), precision, whole


def gains_of(y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Share of the positives found in the first ``SHARES`` of the rows, averaged over tied rows.

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
