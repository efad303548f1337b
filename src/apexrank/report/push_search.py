"""Which p? Cross-validation on the training rows: what it looks at, and the fits it takes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from apexrank.errors import InputError
from apexrank.metrics import get_scorer, precision_at
from apexrank.metrics.evaluation import Measure, find_measure
from apexrank.rankers.base import CollapsedWarning, SeparableWarning
from apexrank.rankers.push import PNormPush
from apexrank.rankers.select import push_path
from apexrank.report.page import percent
from apexrank.report.push_rows import PushRows
from apexrank.report.push_verdict import shown

TOP = "top"
# Stronger than those of PNormPushCV: with as many features as rows its weaker ones take hundreds of iterations and
# do worse, with few features they do the same. Of equals the first is taken, so the strongest comes first.
ALPHAS = (1.0, 3e-2, 1e-3)
# Enough to tell which p does better; the fits that are shown are exact.
SEARCH_ITERATIONS, SEARCH_TOL = 200, 1e-4
_FEWEST_PLACES = 5
_OTHER_NAMES = {"roc_auc": "auc"}  # scikit-learn's, of a measure that has one here


class Scoring(NamedTuple):
    """What p is chosen by.

    ``score(ranker, X, y)`` is better when larger; times ``sign`` it is what ``name`` says. ``measure`` is the same of
    a whole list, None where it is no measure of this library, and ``places`` how many rows of a fold count, None
    where all do.
    """

    name: str
    score: Callable[..., float]
    measure: Measure | None
    sign: int = 1
    places: int | None = None


class Search(NamedTuple):
    """For each p the alpha that did best, and its scores in each fold, shape (n_ps, folds); larger is better."""

    alphas: list[float]
    scores: np.ndarray


def number_of_folds(y: np.ndarray, folds: int, notes: list[str]) -> int:
    """As many folds as asked for, or as both classes allow."""
    if not isinstance(folds, Integral) or folds < 2:
        raise InputError(f"folds must be a whole number of at least 2, got {folds!r}")
    fewest = int(min(y.sum(), (~y).sum()))
    if fewest < folds:
        notes.append(f"{fewest} folds instead of {folds}: one class has only {fewest} training rows")
    return min(int(folds), fewest)


def read_scoring(scoring: Any, top: int, n_test: int, fold: int) -> Scoring:
    """What p is chosen by: "top", a name or a function; ``fold`` is how many rows the smallest fold has."""
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
    """How many first places of n rows stand for so large a share of them: at least 5."""
    return min(n, max(_FEWEST_PLACES, round(share * n)))


def precision_of_share(share: float) -> Callable[..., float]:
    """Scorer: how many of a list's first places, so large a share of it but at least 5, are positive.

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
) -> Search:
    """Score a path over p for each alpha in every fold of the training rows, and keep the best alpha of each p."""
    if not len(alphas):
        raise InputError("alphas needs at least one value")
    cv = StratifiedKFold(folds, shuffle=True, random_state=random_state)
    scores = np.empty((len(alphas), len(ps), folds))
    with convergence() as troubles:
        for number, (train, test) in enumerate(cv.split(data.X, data.y)):
            for i, alpha in enumerate(alphas):
                path = _path(data, train, ps, alpha)
                scores[i, :, number] = [_score(scoring, ranker, data, test) for ranker in path]
    _note_troubles(troubles, scores.size, notes)
    mean = scores.mean(axis=2)
    if np.isnan(mean).all():
        raise InputError("the scorer gave no number on any fold: choose fewer folds or another scoring")
    best = np.where(np.isnan(mean), -inf, mean).argmax(axis=0)
    return Search([float(alphas[i]) for i in best], scores[best, np.arange(len(ps))])


def _path(data: PushRows, train: np.ndarray, ps: Sequence[float], alpha: float) -> list[PNormPush]:
    weight = None if data.weight is None else data.weight[train]
    y = data.y[train]
    if weight is not None and not (weight[y].any() and weight[~y].any()):
        raise InputError(
            "in one fold a class has no row to learn from with a weight above 0: use fewer folds, or give more rows a "
            "weight"
        )
    options: dict[str, Any] = {"alpha": alpha, "max_iter": SEARCH_ITERATIONS, "tol": SEARCH_TOL}
    return push_path(data.X[train], y, ps, sample_weight=weight, **options)


def _score(scoring: Scoring, ranker: PNormPush, data: PushRows, test: np.ndarray) -> float:
    try:
        return float(scoring.score(ranker, data.X[test], data.y[test]))
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"the scoring {scoring.name!r} failed on a fold: {reason}") from error


def _note_troubles(troubles: list[ConvergenceWarning], fits: int, notes: list[str]) -> None:
    """Of p = inf without a minimum the fit on all training rows tells."""
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


def choose(search: Search, ps: Sequence[float], collapsed: Sequence[bool], notes: list[str]) -> int:
    """Number of the p with the best mean score, of equals the smallest; never one without a minimum."""
    mean = search.scores.mean(axis=1)
    chosen = int(np.where(np.isnan(mean) | np.array(collapsed), -inf, mean).argmax())
    if chosen == len(ps) - 1 > 0 and ps[-1] < inf:
        notes.append(
            f"p = {shown(ps[-1])} is the hardest push tried and did best: a harder one may do better still"
        )
    return chosen


def fit(data: PushRows, p: float, alpha: float, notes: list[str]) -> tuple[PNormPush, bool]:
    """Fit on all training rows; whether it has no minimum but 0, as p = inf may."""
    with convergence() as troubles:
        ranker = PNormPush(p, alpha=alpha).fit(data.X, data.y, sample_weight=data.weight)
    collapsed = any(isinstance(trouble, CollapsedWarning) for trouble in troubles)
    if collapsed:
        notes.append(
            f"p = {shown(p)} has no minimum but 0, because the classes overlap too far: its list is that of a very "
            "large p, and it is never chosen"
        )
    elif any(isinstance(trouble, SeparableWarning) for trouble in troubles):
        notes.append(f"p = {shown(p)}: {troubles[0]}")
    elif troubles:
        notes.append(
            f"p = {shown(p)}: the fit did not converge in {ranker.n_iter_:,} iterations, so its list is approximate: "
            "compare smaller p, or use fewer columns"
        )
    return ranker, collapsed


@contextmanager
def convergence() -> Iterator[list[ConvergenceWarning]]:
    """What the solvers warn of; other warnings pass."""
    troubles: list[ConvergenceWarning] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        yield troubles
    for warning in caught:
        if isinstance(warning.message, ConvergenceWarning):
            troubles.append(warning.message)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
