"""Does a push help on these data, and how hard should one push?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from numbers import Integral, Real
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from apexrank.errors import InputError
from apexrank.metrics import precision_at
from apexrank.metrics.confidence import check_level
from apexrank.metrics.top import auc
from apexrank.rankers.push import PNormPush
from apexrank.rankers.select import DEFAULT_ALPHAS, DEFAULT_PS, PNormPushCV
from apexrank.report.push_bounds import push_bounds
from apexrank.report.push_comparison import PushComparison, shown
from apexrank.report.push_measures import chosen_measures, n_draws, note_top, paired_intervals
from apexrank.report.push_rows import PushRows, read_rows

FEW_POSITIVES = 10
TOP = "top"
_FEWEST_PLACES = 5

Progress = Callable[[str], None]


def compare_pushes(
    X: Any,
    y: ArrayLike,
    *,
    ps: Sequence[float] = DEFAULT_PS,
    X_test: Any = None,
    y_test: ArrayLike | None = None,
    holdout: float = 0.3,
    alphas: Sequence[float] = DEFAULT_ALPHAS,
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
        Powers of at least 1, ``inf`` allowed; 1 is always among them.
    X_test, y_test : as X and y, optional
        Held-out rows.
    holdout : float
        Without them, the share of each class that is drawn at random and held out.
    alphas, folds
        As in `apexrank.PNormPushCV`.
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
        How many rows somebody will look at; by default a tenth of the held-out rows, from 5 to 30.
    confidence, n_resamples
        Of the bootstrap intervals; of many rows fewer draws are made, and a note says so.
    random_state : int or None
        Seed of the split, the folds and the draws.
    progress : callable, optional
        Called with the name of each stage as it begins.

    Returns
    -------
    PushComparison

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
        n_test = len(data.y_test)
        top = min(n_test, max(5, min(30, n_test // 10)) if top is None else top)
    with clock.stage("choose p and alpha"), _one_thread():
        scorer = precision_of_share(top / n_test) if scoring == TOP else scoring
        search = _search(data, powers, list(alphas), scorer, folds, random_state, notes)
    with clock.stage("fit"), _one_thread():
        rankers = [_fit(data, p, alpha, notes) for p, alpha in zip(powers, search.alphas, strict=True)]
        scores = np.array([ranker.decision_function(data.X_test) for ranker in rankers])
    with clock.stage("measure"):
        own = f"precision_at_{top}" if scoring == TOP else scoring
        found, decided_by = chosen_measures(measures, own, top, n_test, notes)
        n_resamples = n_draws(n_resamples, n_test * len(powers), notes)
        values, gaps = paired_intervals(
            data.y_test,
            scores,
            found,
            confidence=confidence,
            n_resamples=n_resamples,
            random_state=random_state,
        )
        note_top(powers, search.chosen, gaps, top, notes)
    with clock.stage("bound"):
        negatives = int((~data.y).sum())
        bound, factor, advice = push_bounds(
            powers, data.X.shape[1], 1 - auc(data.y_test, scores[0]), int(data.y.sum()), negatives
        )
    if data.y_test.sum() < FEW_POSITIVES:
        notes.append(f"only {data.y_test.sum()} held-out rows are positive: the intervals are rough")
    return PushComparison(
        ps=powers,
        chosen=search.chosen,
        scoring=_scoring_name(scoring, top / n_test),
        decided_by=decided_by,
        alphas=search.alphas,
        cv_mean=search.mean,
        cv_std=search.std,
        rankers=rankers,
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


def precision_of_share(share: float) -> Callable[..., float]:
    """Scorer: how many of a list's first places, so large a share of it but at least 5, are positive.

    A fixed number of places would reach far deeper into a fold than into the list it stands for.
    """

    def scorer(ranker: Any, X: np.ndarray, y: np.ndarray) -> float:
        k = min(len(y), max(_FEWEST_PLACES, round(share * len(y))))
        return precision_at(y, ranker.decision_function(X), k=k)

    return scorer


def _scoring_name(scoring: Any, share: float) -> str:
    if scoring == TOP:
        return f"precision in the first {100 * share:.2g} % of the rows"
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "scoring")


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


def _check_options(top: int | None, confidence: float, n_resamples: int, random_state: int | None) -> None:
    check_level(confidence, n_resamples)
    if top is not None and (not isinstance(top, Integral) or top < 1):
        raise InputError(f"top must be a whole number of at least 1, got {top!r}")
    if random_state is not None and not (isinstance(random_state, Integral) and random_state >= 0):
        raise InputError(f"random_state must be a whole number of at least 0, or None, got {random_state!r}")


def _powers(ps: Sequence[float]) -> tuple[tuple[float, ...], list[str]]:
    """The powers in growing order with 1 among them, and a note if it was not."""
    given = list(ps)
    for p in given:
        if not isinstance(p, Real) or not p >= 1:
            raise InputError(f"ps must be numbers of at least 1 (inf allowed), got {p!r}")
    notes = [] if 1 in given else ["p = 1 was added: it is what every push is compared with"]
    return tuple(sorted({1.0, *map(float, given)})), notes


class _Search(NamedTuple):
    chosen: int
    alphas: list[float]
    mean: list[float]
    std: list[float]


def _search(
    data: PushRows,
    ps: tuple[float, ...],
    alphas: list[float],
    scoring: Any,
    folds: int,
    random_state: int | None,
    notes: list[str],
) -> _Search:
    """Cross-validate on the training rows: the best alpha of each p, then the best p."""
    if not isinstance(folds, Integral) or folds < 2:
        raise InputError(f"folds must be a whole number of at least 2, got {folds!r}")
    fewest = int(min(data.y.sum(), (~data.y).sum()))
    if fewest < folds:
        notes.append(f"{fewest} folds instead of {folds}: one class has only {fewest} training rows")
        folds = fewest
    cv = StratifiedKFold(folds, shuffle=True, random_state=random_state)
    search = PNormPushCV(ps, alphas, scoring=scoring, cv=cv)
    with _convergence() as messages:
        search.fit(data.X, data.y, sample_weight=data.weight)
    if messages:
        fits = folds * len(alphas) * len(ps) + 1  # and the one on all training rows at the end
        notes.append(
            f"{len(messages)} of the {fits} fits of cross-validation came with a warning, the first: {messages[0]}"
        )
    mean, std = (
        search.cv_results_[name].reshape(len(alphas), len(ps))
        for name in ("mean_test_score", "std_test_score")
    )
    known = np.where(np.isnan(mean), -inf, mean)
    best, columns = known.argmax(axis=0), np.arange(len(ps))
    chosen = int(known[best, columns].argmax())
    found = _Search(
        chosen,
        [float(alphas[i]) for i in best],
        mean[best, columns].tolist(),
        std[best, columns].tolist(),
    )
    if chosen == len(ps) - 1 > 0 and ps[-1] < inf:
        notes.append(
            f"p = {shown(ps[-1])} is the hardest push tried and did best: a harder one may do better still"
        )
    return found


@contextmanager
def _convergence() -> Iterator[list[str]]:
    """What the solvers warn of, as texts; other warnings pass."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        yield messages
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            messages.append(str(warning.message))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _fit(data: PushRows, p: float, alpha: float, notes: list[str]) -> PNormPush:
    with _convergence() as messages:
        ranker = PNormPush(p, alpha=alpha).fit(data.X, data.y, sample_weight=data.weight)
    notes += [f"p = {shown(p)}: {message}" for message in messages]
    return ranker
