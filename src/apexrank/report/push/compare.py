"""Comparison of pushes: p chosen by cross-validation on training rows, measured on held-out rows against p = 1."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from apexrank.errors import InputError
from apexrank.metrics import get_scorer, precision_at
from apexrank.metrics._labels import check_rows
from apexrank.metrics.confidence import LEAST_DEFINED, Interval, check_level, draw_rows, interval_of_draws
from apexrank.metrics.evaluation import Measure, find_measure, find_measures
from apexrank.metrics.roc import auc
from apexrank.rankers.base import CollapsedWarning, SeparableWarning
from apexrank.rankers.push import DEFAULT_PS, PNormPush, push_path
from apexrank.report.page import Stages, level, percent, plural, read_powers
from apexrank.report.push.result import FEW, PushComparison, push_bounds
from apexrank.report.push.rows import PushRows, read_rows
from apexrank.validation import check_count

HARDEST = 1e4  # a finite p beyond it differs from inf by rounding only, and takes for ever
TOP = "top"
# Stronger than those of PNormPushCV: with as many features as rows its weaker ones take hundreds of iterations and
# do worse, with few features they do the same. Of equals the first is taken, so the strongest comes first.
ALPHAS = (1.0, 3e-2, 1e-3)
# Enough to tell which p does better; the fits that are shown are exact.
SEARCH_ITERATIONS, SEARCH_TOL = 200, 1e-4
_FEWEST_PLACES = 5
_OTHER_NAMES = {"roc_auc": "auc"}  # scikit-learn's, of a measure that has one here
MOST_DRAWN = 5e7  # rows drawn in all: about five seconds
FEWEST_DRAWS = 200
FEWEST_OF_A_CLASS = 5  # held-out rows: of fewer the draws tell nothing
_CUTS = (10, 50, 100)


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
    progress: Callable[[str], None] | None = None,
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
    check_level(confidence, n_resamples)
    if top is not None:
        check_count("top", top)
    check_seed(random_state)
    stage = Stages(progress)
    powers = read_powers(ps)
    hard = [p for p in powers if HARDEST < p < inf]
    if hard:
        raise InputError(f"ps: a finite p is at most {HARDEST:,.0f}, got {hard[0]:g}; use inf")
    notes = [] if 1 in np.ravel(ps) else ["p = 1 was added: it is what every push is compared with"]
    with stage("read"):
        names = feature_names, row_names, test_row_names
        data = read_rows(X, y, X_test, y_test, sample_weight, names, holdout, random_state)
        notes += data.notes
        n_test, n_folds = len(data.y_test), _number_of_folds(data.y, folds, notes)
        top = _length(top, n_test, notes)
        own = read_scoring(scoring, top, n_test, len(data.y) // n_folds)
    # of many small products of matrices starting and awaiting threads takes longer than they save
    with threadpool_limits(limits=1, user_api="blas"):
        with stage("choose p and alpha"):
            best_alphas, cv_scores = cross_validate(data, powers, alphas, own, n_folds, random_state, notes)
        with stage("fit"):
            fits = [fit(data, p, alpha, notes) for p, alpha in zip(powers, best_alphas, strict=True)]
            rankers, collapsed = [ranker for ranker, _ in fits], [flag for _, flag in fits]
            chosen = choose(cv_scores, powers, collapsed, notes)
            scores = np.array([ranker.decision_function(data.X_test) for ranker in rankers])
    with stage("measure"):
        found, decided_by = chosen_measures(measures, own.measure, top, n_test, notes)
        n_resamples = _number_of_draws(n_resamples, n_test * len(powers), notes)
        draws: dict[str, Any] = {
            "confidence": confidence,
            "n_resamples": n_resamples,
            "random_state": random_state,
        }
        values, gaps = paired_intervals(data.y_test, scores, found, **draws)
        if decided_by != f"precision_at_{top}":
            _note_top(powers, chosen, gaps, top, notes)
        _note_ties(powers, chosen, scores, top, notes)
        _note_few(data.y_test, confidence, n_resamples, notes)
    with stage("bound"):
        misranked, positives = 1 - auc(data.y_test, scores[0]), int(data.y.sum())
        counts = positives, len(data.y) - positives
        bound, factor, advice = push_bounds(powers, data.X.shape[1], misranked, *counts)
    return PushComparison(
        ps=powers,
        chosen=chosen,
        scoring=own.name,
        decided_by=decided_by,
        alphas=best_alphas,
        cv_scores=own.sign * cv_scores,
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
        n_train_positives=positives,
        n_test=n_test,
        n_test_positives=int(data.y_test.sum()),
        notes=notes,
        seconds=stage.with_total,
        top=top,
        confidence=confidence,
        n_resamples=n_resamples,
    )


def check_seed(random_state: int | None) -> None:
    """Raise InputError unless NumPy takes the seed."""
    if random_state is not None:
        check_count("random_state", random_state, 0, ", or None")


def _length(top: int | None, n_test: int, notes: list[str]) -> int:
    """Length of the top list: more than a third of all rows is no top."""
    most = max(1, n_test // 3)
    if top is not None and top > most:
        notes.append(
            f"the top list has {most:,} places instead of {top:,}: a third of the {n_test:,} held-out rows"
        )
    return min(most, max(5, min(30, n_test // 10)) if top is None else int(top))


class Scoring(NamedTuple):
    """Criterion by which cross-validation chooses p.

    ``score(ranker, X, y)`` is better when larger; times ``sign`` it is what ``name`` says. ``measure`` is the same of
    a whole list, None where it is no measure of this library, and ``places`` how many rows of a fold count, None
    where all do.
    """

    name: str
    score: Callable[..., float]
    measure: Measure | None
    sign: int = 1
    places: int | None = None

    def of(self, ranker: PNormPush, X: np.ndarray, y: np.ndarray) -> float:
        """Score of a ranker on the rows of a fold."""
        try:
            return float(self.score(ranker, X, y))
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError(f"the scoring {self.name!r} failed on a fold: {reason}") from error


def _number_of_folds(y: np.ndarray, folds: int, notes: list[str]) -> int:
    """Number of folds: as many as asked for, at most as many as the smaller class has rows."""
    check_count("folds", folds, 2)
    fewest = int(min(y.sum(), (~y).sum()))
    if fewest < folds:
        notes.append(f"{fewest} folds instead of {folds}: one class has only {fewest} training rows")
    return min(int(folds), fewest)


def read_scoring(scoring: Any, top: int, n_test: int, fold: int) -> Scoring:
    """Read a scoring: "top", a name or a function; ``fold`` is the number of rows of the smallest fold."""
    if isinstance(scoring, str) and scoring == TOP:
        share = top / n_test
        places = places_of_share(share, fold)
        floor = places > round(share * fold)
        words = f"first {places} rows of each fold" if floor else f"first {percent(share, 2)} of the rows"
        measure = find_measure(f"precision_at_{top}")
        return Scoring(f"precision in the {words}", precision_of_share(share), measure, 1, places)
    if not isinstance(scoring, str):
        if not callable(scoring):
            raise InputError(
                f'scoring must be "top", a name or a function scorer(ranker, X, y), got {scoring!r}'
            )
        return Scoring(getattr(scoring, "__name__", "scoring"), scoring, None)
    scorer = get_scorer(scoring)
    try:
        measure = find_measure(_OTHER_NAMES.get(scoring, scoring))
    except InputError:
        return Scoring(scoring, scorer, None)
    k = measure.options.get("k", 0)
    whole = int(k) if k >= 1 else None
    if whole is not None and whole > min(fold, n_test):
        raise InputError(
            f"the scoring {scoring!r} looks at {whole:,} rows, a fold or the held-out rows are only "
            f"{min(fold, n_test):,}: choose a smaller number"
        )
    return Scoring(scoring, scorer, measure, 1 if measure.family.greater_is_better else -1, whole)


def places_of_share(share: float, n: int) -> int:
    """Number of first places that a share of n rows stands for, at least 5."""
    return min(n, max(_FEWEST_PLACES, round(share * n)))


def precision_of_share(share: float) -> Callable[..., float]:
    """Scorer of the precision in a share of the first places, at least 5.

    A fixed number of places would reach far deeper into a fold than into the list it stands for.
    """

    def scorer(ranker: Any, X: np.ndarray, y: np.ndarray) -> float:
        return precision_at(y, ranker.decision_function(X), k=places_of_share(share, len(y)))

    return scorer


def cross_validate(
    data: PushRows,
    ps: Sequence[float],
    alphas: Sequence[float],
    scoring: Scoring,
    folds: int,
    random_state: int | None,
    notes: list[str],
) -> tuple[list[float], np.ndarray]:
    """Score a path over p for each alpha in every fold of the training rows.

    Returns the best alpha of each p, and its scores in each fold, shape (n_ps, folds); larger is better.
    """
    if not len(alphas):
        raise InputError("alphas needs at least one value")
    cv = StratifiedKFold(folds, shuffle=True, random_state=random_state)
    scores = np.empty((len(alphas), len(ps), folds))
    options = {"max_iter": SEARCH_ITERATIONS, "tol": SEARCH_TOL}
    with convergence() as troubles:
        for number, (train, test) in enumerate(cv.split(data.X, data.y)):
            y, weight = data.y[train], None if data.weight is None else data.weight[train]
            if weight is not None and not (weight[y].any() and weight[~y].any()):
                raise InputError(
                    "in one fold a class has no row to learn from with a weight above 0: use fewer folds, or give more "
                    "rows a weight"
                )
            for i, alpha in enumerate(alphas):
                path = push_path(data.X[train], y, ps, sample_weight=weight, alpha=alpha, **options)
                scores[i, :, number] = [scoring.of(ranker, data.X[test], data.y[test]) for ranker in path]
    _note_troubles(troubles, scores.size, notes)
    mean = scores.mean(axis=2)
    if np.isnan(mean).all():
        raise InputError("the scorer gave no number on any fold: choose fewer folds or another scoring")
    best = np.where(np.isnan(mean), -inf, mean).argmax(axis=0)
    return [float(alphas[i]) for i in best], scores[best, np.arange(len(ps))]


def _note_troubles(troubles: list[ConvergenceWarning], fits: int, notes: list[str]) -> None:
    """Note the warnings of cross-validation, except those about p = inf, which the final fit repeats."""
    separable = [str(trouble) for trouble in troubles if isinstance(trouble, SeparableWarning)]
    if separable:
        notes.append(
            f"{len(separable)} of the {fits} fits of cross-validation came with a warning: {separable[0]}"
        )
    early = sum(not isinstance(trouble, SeparableWarning | CollapsedWarning) for trouble in troubles)
    if early:
        notes.append(
            f"{early} of the {fits} fits of cross-validation were stopped after {SEARCH_ITERATIONS} iterations, so "
            "their scores are approximate: with fewer columns or smaller p they would be exact"
        )


def choose(scores: np.ndarray, ps: Sequence[float], collapsed: Sequence[bool], notes: list[str]) -> int:
    """Index of the p with the best mean score, the smallest of equals; never one without a minimum."""
    mean = scores.mean(axis=1)
    chosen = int(np.where(np.isnan(mean) | np.array(collapsed), -inf, mean).argmax())
    if chosen == len(ps) - 1 > 0 and ps[-1] < inf:
        notes.append(
            f"p = {ps[-1]:g} is the hardest push tried and did best: a harder one may do better still"
        )
    return chosen


def fit(data: PushRows, p: float, alpha: float, notes: list[str]) -> tuple[PNormPush, bool]:
    """Fit on all training rows, and tell whether the only minimum is 0, as with p = inf."""
    with convergence() as troubles:
        ranker = PNormPush(p, alpha=alpha).fit(data.X, data.y, sample_weight=data.weight)
    collapsed = any(isinstance(trouble, CollapsedWarning) for trouble in troubles)
    if collapsed:
        notes.append(
            f"p = {p:g} has no minimum but 0, because the classes overlap too far: its list is that of a very "
            "large p, and it is never chosen"
        )
    elif any(isinstance(trouble, SeparableWarning) for trouble in troubles):
        notes.append(f"p = {p:g}: {troubles[0]}")
    elif troubles:
        notes.append(
            f"p = {p:g}: the fit did not converge in {ranker.n_iter_:,} iterations, so its list is approximate: "
            "compare smaller p, or use fewer columns"
        )
    return ranker, collapsed


@contextmanager
def convergence() -> Iterator[list[ConvergenceWarning]]:
    """Collect convergence warnings; other warnings pass."""
    troubles: list[ConvergenceWarning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        yield troubles
    for warning in caught:
        if isinstance(warning.message, ConvergenceWarning):
            troubles.append(warning.message)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def chosen_measures(
    names: str | Iterable[str] | None, own: Measure | None, top: int, n: int, notes: list[str]
) -> tuple[list[Measure], str]:
    """Measures to compute, and the name of the deciding one: ``own``, by which p was chosen, if it is a measure."""
    if names is None:
        cuts = sorted({k for k in _CUTS if 3 * k <= n} | {top})
        precisions = [f"precision_at_{k}" for k in cuts]
        names = ["auc", "partial_auc_0.1", *precisions, "tpr_at_fpr_0.01", "average_precision"]
    found = find_measures(names)
    if own is None:
        own = find_measure("partial_auc_0.1")
        notes.append(f"the scoring is no measure of this library: the verdict is about the {own.label}")
    for measure in found:
        if measure.family is own.family and measure.options == own.options:
            return found, measure.name
    return [*found, own], own.name


def _number_of_draws(n_resamples: int, rows: int, notes: list[str]) -> int:
    """Number of bootstrap samples, limited so that they take seconds."""
    most = max(FEWEST_DRAWS, int(MOST_DRAWN / rows))
    if n_resamples > most:
        notes.append(
            f"the intervals are of {most} draws instead of {n_resamples}, to save time with so many rows"
        )
    return min(n_resamples, most)


def paired_intervals(
    y: np.ndarray,
    scores: np.ndarray,
    measures: list[Measure],
    *,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: int | None = 0,
) -> tuple[dict[str, list[Interval]], dict[str, list[Interval | None]]]:
    """Bootstrap intervals of several rankers on the same rows, and of their differences to the first ranker.

    All share the draws of rows, so an interval of a difference is that of the differences in each draw. Where most
    draws have no value, or a class has fewer than 5 rows, the ends of an interval are NaN.

    Examples
    --------
    >>> y, scores = np.array([1, 0, 1, 0, 0]), np.array([[1.0, 2, 3, 0, 0], [3.0, 2, 3, 0, 0]])
    >>> values, gaps = paired_intervals(y, scores, find_measures("auc"), n_resamples=50)
    >>> [round(interval.value, 3) for interval in values["auc"]], round(gaps["auc"][1].value, 3)
    ([0.833, 1.0], 0.167)
    """
    lists = [check_rows(y, row, graded=True) for row in scores]
    draws = np.full((n_resamples, len(lists), len(measures)), np.nan)
    if min(np.sum(y), np.sum(~np.asarray(y, dtype=bool))) >= FEWEST_OF_A_CLASS:
        draws = draw_rows(lists, measures, n_resamples, random_state)

    def interval(value: float, drawn: np.ndarray) -> Interval:
        if np.sum(~np.isnan(drawn)) < max(2, LEAST_DEFINED * len(drawn)):
            return Interval(value, np.nan, np.nan, np.nan, confidence, len(y))
        return interval_of_draws(value, drawn, confidence, "percentile", len(y))

    values: dict[str, list[Interval]] = {}
    gaps: dict[str, list[Interval | None]] = {}
    for measure, drawn in zip(measures, np.moveaxis(draws, 2, 0), strict=True):
        (base, first), *others = own = [(measure.mean(rows), drawn[:, i]) for i, rows in enumerate(lists)]
        values[measure.name] = [interval(*each) for each in own]
        gaps[measure.name] = [None, *(interval(value - base, column - first) for value, column in others)]
    return values, gaps


def _note_top(
    ps: tuple[float, ...], chosen: int, gaps: dict[str, list[Interval | None]], top: int, notes: list[str]
) -> None:
    """Note where another p does better at the very top, if p was chosen by something else."""
    name = f"precision_at_{top}"
    better = [(gap.value, p) for p, gap in zip(ps, gaps.get(name, ()), strict=False) if gap and gap.low > 0]
    if chosen == 0 and better:
        notes.append(
            f"with p = {max(better)[1]:g} more of the first {top} held-out rows are positive than with p = 1 (a "
            f"hint, no fair estimate): if only they matter, choose p by scoring {name}"
        )


def _note_ties(ps: tuple[float, ...], chosen: int, scores: np.ndarray, top: int, notes: list[str]) -> None:
    """Note where the end of the top list splits rows of the same score."""
    for i in sorted({0, chosen}):
        falling = -np.sort(-scores[i])
        if top < len(falling) and falling[top - 1] == falling[top]:
            tied = int(np.sum(scores[i] == falling[top]))
            notes.append(
                f"p = {ps[i]:g}: {tied:,} rows share the score at place {top}; the list shows them in input "
                "order, the measure counts their mean"
            )


def _note_few(y: np.ndarray, confidence: float, n_resamples: int, notes: list[str]) -> None:
    """Note few held-out rows of a class, and too few draws for the confidence."""
    for word, number in (("positive", int(y.sum())), ("negative", int((~y).sum()))):
        if number < FEW:
            rough = "no intervals are shown" if number < FEWEST_OF_A_CLASS else "the intervals are rough"
            notes.append(plural(f"only # held-out [row is|rows are] {word}: {rough}", number))
    if (1 - confidence) / 2 * n_resamples < 1 - 1e-9:
        notes.append(
            f"{n_resamples:,} draws are too few for intervals of {level(confidence)} confidence: they end at the most "
            "extreme draws"
        )
