"""Does a push help on these data, and how hard should one push?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from numbers import Integral, Real
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from apexrank.errors import InputError
from apexrank.metrics.confidence import check_level
from apexrank.metrics.roc import auc
from apexrank.rankers.select import DEFAULT_PS
from apexrank.report.push_bounds import push_bounds
from apexrank.report.push_comparison import PushComparison
from apexrank.report.push_measures import (
    FEWEST_OF_A_CLASS,
    chosen_measures,
    n_draws,
    note_draws,
    note_ties,
    note_top,
    paired_intervals,
)
from apexrank.report.push_rows import read_rows
from apexrank.report.push_search import (
    ALPHAS,
    TOP,
    choose,
    cross_validate,
    fit,
    number_of_folds,
    read_scoring,
)
from apexrank.report.push_verdict import FEW, count

HARDEST = 1e4  # a finite p beyond it differs from inf by rounding only, and takes for ever

Progress = Callable[[str], None]


def compare_pushes(
    X: Any,
    y: ArrayLike,
    *,
    ps: Sequence[float] = DEFAULT_PS,
    X_test: Any = None,
    y_test: ArrayLike | None = None,
    holdout: float = 0.3,
    alphas: Sequence[float] = ALPHAS,
    scoring: str | Callable[..., float] = TOP,
    folds: int = 5,
    measures: str | Iterable[str] | None = None,
    sample_weight: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    row_names: Sequence[Any] | None = None,
    test_row_names: Sequence[Any] | None = None,
    top: int | None = None,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: int | None = 0,
    progress: Progress | None = None,
) -> PushComparison:
    """Fit a P-Norm Push for each p and measure on held-out rows what it gains over p = 1.

    The alpha of each p and the p itself are chosen by cross-validation on the training rows; the held-out rows are
    used once, to measure. So the verdict about the chosen p is not biased by the choice.

    Parameters
    ----------
    X, y : array or frame, and labels of two classes
        The larger label is positive. Bring the features to one scale first: the penalty depends on their units.
    ps : sequence of float
        Powers from 1 to 10,000, and ``inf``; 1 is always among them.
    X_test, y_test : as X and y, optional
        Held-out rows.
    holdout : float
        Without them, the share of each class that is drawn at random and held out.
    alphas : sequence of float
        Penalties to choose from for each p, of equals the first.
    folds : int
        Folds of the cross-validation; fewer where a class has fewer rows. Its fits stop after 200 iterations, those
        that are shown are exact.
    scoring : str or callable
        What p is chosen by, as in `apexrank.PNormPushCV`. The default, "top", is the share of positives in the first
        places, of each fold as many as ``top`` are of the held-out rows (at least 5).
    measures : str or iterable of str, optional
        Names as in `apexrank.metrics.evaluate`; by default AUC, partial AUC, precision at the top, ….
    sample_weight : array-like of shape (n,), optional
        Weights of the rows of X in fitting.
    feature_names, row_names, test_row_names : sequences, optional
        By default a frame's columns, and "row 1", "row 2", ….
    top : int, optional
        How many rows somebody will look at; by default a tenth of the held-out rows, from 5 to 30. At most a third of
        them.
    confidence, n_resamples
        Of the bootstrap intervals; of many rows fewer draws are made, and a note says so. With fewer than 5 held-out
        rows of a class there are none.
    random_state : int or None
        Seed of the split, the folds and the draws.
    progress : callable, optional
        Called with the name of each stage as it begins.

    Returns
    -------
    PushComparison
        Its ``verdict`` is of the kind "helps", "hurts", "no difference", "no push" or "too few to tell".

    Examples
    --------
    >>> from apexrank.datasets import make_push_example
    >>> X, y = make_push_example(4000, return_X_y=True)
    >>> found = compare_pushes(X, y, ps=(1, 8), n_resamples=100)
    >>> found.verdict.kind, found.n_test
    ('helps', 1200)
    """
    _check_options(top, confidence, n_resamples, random_state)
    clock = _Clock(progress)
    powers, notes = _powers(ps)
    with clock.stage("read"):
        data = read_rows(
            X,
            y,
            X_test,
            y_test,
            holdout,
            sample_weight,
            feature_names,
            row_names,
            test_row_names,
            random_state,
        )
        notes += data.notes
        n_test, n_folds = len(data.y_test), number_of_folds(data.y, folds, notes)
        top = _length(top, n_test, notes)
        own = read_scoring(scoring, top, n_test, len(data.y) // n_folds)
    with clock.stage("choose p and alpha"), _one_thread():
        search = cross_validate(data, powers, list(alphas), own, n_folds, random_state, notes)
    with clock.stage("fit"), _one_thread():
        fits = [fit(data, p, alpha, notes) for p, alpha in zip(powers, search.alphas, strict=True)]
        rankers, collapsed = [ranker for ranker, _ in fits], [flag for _, flag in fits]
        chosen = choose(search, powers, collapsed, notes)
        scores = np.array([ranker.decision_function(data.X_test) for ranker in rankers])
    with clock.stage("measure"):
        found, decided_by = chosen_measures(measures, own.measure, top, n_test, notes)
        n_resamples = n_draws(n_resamples, n_test * len(powers), notes)
        values, gaps = paired_intervals(
            data.y_test,
            scores,
            found,
            confidence=confidence,
            n_resamples=n_resamples,
            random_state=random_state,
        )
        if decided_by != f"precision_at_{top}":
            note_top(powers, chosen, gaps, top, notes)
        note_ties(powers, chosen, scores, top, notes)
        _note_few(data.y_test, notes)
        note_draws(confidence, n_resamples, notes)
    with clock.stage("bound"):
        negatives = int((~data.y).sum())
        bound, factor, advice = push_bounds(
            powers, data.X.shape[1], 1 - auc(data.y_test, scores[0]), int(data.y.sum()), negatives
        )
    return PushComparison(
        ps=powers,
        chosen=chosen,
        scoring=own.name,
        decided_by=decided_by,
        alphas=search.alphas,
        cv_scores=own.sign * search.scores,
        larger_is_better=own.sign > 0,
        places=None if own.places is None else own.places * n_folds,
        rankers=rankers,
        collapsed=collapsed,
        feature_names=data.feature_names,
        y=data.y_test,
        scores=scores,
        X=data.X_test,
        mean=data.X.mean(axis=0),
        row_names=data.row_names,
        measures=values,
        differences=gaps,
        bound=bound,
        bound_factor=factor,
        advice=advice,
        n_train=len(data.y),
        n_train_positives=int(data.y.sum()),
        n_test=n_test,
        n_test_positives=int(data.y_test.sum()),
        notes=notes,
        seconds={**clock.seconds, "total": sum(clock.seconds.values())},
        top=top,
        confidence=confidence,
        n_resamples=n_resamples,
    )


class _Clock:
    """Names each stage as it begins and keeps its time."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress, self.seconds = progress, dict[str, float]()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        if self.progress is not None:
            self.progress(name)
        start = perf_counter()
        yield
        self.seconds[name] = perf_counter() - start


def _one_thread() -> threadpool_limits:
    """Many small products of matrices: starting and awaiting threads takes longer than they save."""
    return threadpool_limits(limits=1, user_api="blas")


def _length(top: int | None, n_test: int, notes: list[str]) -> int:
    """Length of the top list: more than a third of all rows is no top."""
    most = max(1, n_test // 3)
    if top is not None and top > most:
        notes.append(
            f"the top list has {most:,} places instead of {top:,}: a third of the {n_test:,} held-out rows"
        )
    return min(most, max(5, min(30, n_test // 10)) if top is None else int(top))


def _note_few(y: np.ndarray, notes: list[str]) -> None:
    """Say where few rows of a class are held out."""
    for word, number in (("positive", int(y.sum())), ("negative", int((~y).sum()))):
        if number < FEW:
            rough = "no intervals are shown" if number < FEWEST_OF_A_CLASS else "the intervals are rough"
            notes.append(f"only {count(number, 'held-out row')} {word}: {rough}")


def check_seed(random_state: int | None) -> None:
    """Refuse what NumPy would refuse later."""
    if random_state is not None and not (isinstance(random_state, Integral) and random_state >= 0):
        raise InputError(f"random_state must be a whole number of at least 0, or None, got {random_state!r}")


def _check_options(top: int | None, confidence: float, n_resamples: int, random_state: int | None) -> None:
    check_level(confidence, n_resamples)
    if top is not None and (not isinstance(top, Integral) or top < 1):
        raise InputError(f"top must be a whole number of at least 1, got {top!r}")
    check_seed(random_state)


def _powers(ps: Sequence[float]) -> tuple[tuple[float, ...], list[str]]:
    """The powers in growing order with 1 among them, and a note if it was not."""
    given = list(ps)
    for p in given:
        if not isinstance(p, Real) or not p >= 1:
            raise InputError(f"ps must be numbers of at least 1 (inf allowed), got {p!r}")
        if HARDEST < p < inf:
            raise InputError(f"ps: a finite p is at most {HARDEST:,.0f}, got {p:g}; use inf")
    notes = [] if 1 in given else ["p = 1 was added: it is what every push is compared with"]
    return tuple(sorted({1.0, *map(float, given)})), notes
