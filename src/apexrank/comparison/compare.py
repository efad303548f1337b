"""Comparison of rankers on arrays."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array
from threadpoolctl import threadpool_limits

from apexrank.comparison import trials
from apexrank.comparison.candidates import Candidate, Estimator, default_candidates, model_size
from apexrank.comparison.profile import ColumnProfile, explain_rows, later_effects
from apexrank.comparison.result import Comparison, too_few
from apexrank.errors import InputError
from apexrank.metrics._labels import as_labels, distinct
from apexrank.metrics.confidence import resample_weights
from apexrank.parallel import n_threads
from apexrank.problem.blocks import Block, columns_of, joined_columns
from apexrank.problem.device import to_device, to_host
from apexrank.rankers.base import blocks_of, class_scores
from apexrank.validation import check_between, check_count, check_weights, is_device_array

MOST_ROWS = 100_000  # largest number of rows; more would only resolve irrelevant differences
_MOST_DRAWN = 5e7  # total number of rows in all bootstrap samples
_DRAWS = 1000
_MOST_NUMBERS = 1e8  # feature values of all splits that run in parallel

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """Options of a comparison; see `compare_rankers`."""

    candidates: Sequence[Candidate | Any] | None = None
    top: Any = None
    fpr: float | None = None
    folds: int = trials.FOLDS
    repeats: int | None = None
    confidence: float = 0.95
    random_state: int | None = 0
    progress: trials.Progress | None = None
    tell: Tell | None = None

    def checked(self) -> list[Candidate]:
        """Validate the options before any expensive work; return the candidates."""
        check_between("confidence", self.confidence, 0.5, 0.9999)
        trials.Top.of(self.top, n=2**53, positives=1, fpr=self.fpr)
        check_count("folds", self.folds, 2)
        if self.repeats is not None:
            check_count("repeats", self.repeats)
        if self.random_state is not None:
            check_count("random_state", self.random_state, 0, ", or None")
        given = default_candidates() if self.candidates is None else list(self.candidates)
        found = [each if isinstance(each, Candidate) else _wrapped(each) for each in given]
        names = [candidate.name for candidate in found]
        if not names or len(set(names)) < len(names):
            listed = ", ".join(map(repr, names)) or "none"
            raise InputError(f"candidates need different names, got {listed}")
        return found


def _wrapped(estimator: Any) -> Candidate:
    if not (hasattr(estimator, "fit") and is_classifier(estimator)):
        raise InputError(f"a candidate is a Candidate or a scikit-learn classifier, got {estimator!r}")
    return Estimator(type(estimator).__name__, given=estimator)


@dataclass
class Data:
    """Data of a comparison: labels, weights, groups, times, and features by ``rows(train, test, as_columns)``."""

    y: np.ndarray
    weight: np.ndarray | None
    rows: trials.Rows
    n_features: int
    row_names: list[str]
    groups: np.ndarray | None = None
    time: np.ndarray | None = None
    test: np.ndarray | None = None  # mask of a separate test set
    notes: list[str] = field(default_factory=list)


def compare_rankers(
    X: Any,
    y: ArrayLike,
    *,
    X_test: Any = None,
    y_test: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    row_names: Sequence[Any] | None = None,
    **options: Any,
) -> Comparison:
    """Compare rankers by the positives at the top of the list, with confidence intervals.

    Every candidate is fitted on the training rows of repeated stratified folds and measured on the test rows, with the
    settings that did best on the other folds. Intervals of differences account for the training rows shared by folds
    (`corrected_interval`). In simulations without any difference at most 5 in 100 comparisons claimed one; differences
    above ``1.5/sqrt(places)`` are nearly always found, those below ``1/sqrt(places)`` rarely, where ``places`` is the
    number of rows at the top of all rows.

    Parameters
    ----------
    X, y : array of numbers, and labels of two classes
        The larger label is positive. Features are scaled to mean 0 and standard deviation 1. From larger Dask
        collections, blocks (:class:`apexrank.problem.Blocks`, with y=None) and arrays on a device, 100,000 random rows
        are drawn and loaded into memory; the model is trained on them.
    X_test, y_test : as X and y, optional
        Test rows, instead of folds; the folds then only select settings.
    sample_weight : array, optional
        Number of times each row of X counts, in fitting and evaluation.
    groups : array, optional
        Rows of one group, such as a customer, are never on both sides of a split.
    time : array, optional
        Train on the past, test on the future.
    feature_names, row_names : sequences, optional
        By default a frame's columns, and "row 1", "row 2", ….
    candidates : sequence of Candidate or classifiers, optional
        By default logistic regression, a linear push, curves, boosted trees, and curves with trees.
    top : int, float or str, optional
        Definition of the top of the list: ``100`` rows of a list as long as this one, or ``"1%"``. By default as many
        rows as are positive, but from 1 to 10 % of all and at least 50.
    fpr : float, optional
        Measure the true positive rate at this false positive rate instead.
    folds, repeats : int
        Folds and repeats of the cross-validation; repeats are 5 by default, 3 from 3,000 rows, 2 from 8,000.
    confidence : float
        Confidence level of the intervals.
    random_state : int or None
        Seed of the folds.
    progress : callable, optional
        Called with the number of completed fits, their total, and the name of the ranker.
    tell : callable, optional
        Called with a sentence about the detectable differences, before the work starts.
    **options
        Keyword arguments from ``candidates`` on.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from apexrank.comparison import LinearPush, Logistic, compare_rankers
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = compare_rankers(X, y == 0, candidates=[Logistic(), LinearPush(ps=(1, 4))], repeats=1)
    >>> found.names[found.recommended], found.how
    ('logistic regression', '5 folds, once')
    """
    began = clock.perf_counter()
    given = Options(**options)
    candidates = given.checked()
    if (X_test is None) != (y_test is None):
        raise InputError("X_test and y_test belong together: give both or neither")
    drawn = drawn_rows(X, y, sample_weight, groups, random_state=given.random_state)
    if drawn.X is not X and not (time is None and row_names is None):
        raise InputError("`time` and `row_names` are for rows in memory: give arrays, or leave them out")
    X, y, sample_weight, groups, places, total = drawn
    notes = [f"{drawn.note}; the model learns from these"] if drawn.note else []
    if X_test is not None:
        extras = drawn_rows(X_test, y_test, random_state=given.random_state)
        X_test, y_test, places = extras.X, extras.y, np.append(places, total + extras.places)
        notes += [f"test rows: {extras.note}"] if extras.note else []
    matrix, (positive, classes) = _matrix("X", X), _positives(y)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    for name, column in {"y": positive, "sample_weight": weight, "groups": groups, "time": time}.items():
        if column is not None and np.shape(column) != (len(matrix),):
            raise InputError(f"{name} needs one value for each of the {len(matrix)} rows of X")
    if weight is not None:
        check_weights(weight)
    columns = getattr(X, "columns", ()) if feature_names is None else feature_names
    names = [str(name) for name in columns]
    names = names or [f"feature {j + 1}" for j in range(matrix.shape[1])]
    if len(names) != matrix.shape[1] or len(set(names)) < len(names):
        raise InputError(f"`feature_names` needs {matrix.shape[1]} different names, one for each column of X")
    test = None
    if X_test is not None:
        extra = _matrix("X_test", X_test)
        test = np.arange(len(matrix) + len(extra)) >= len(matrix)
        known, _ = _positives(y_test, classes)
        if len(known) != len(extra) or extra.shape[1] != matrix.shape[1]:
            of_X = f"the {matrix.shape[1]} columns of X"
            raise InputError(f"X_test needs {of_X}, and y_test a label for each row")
        matrix, positive = np.vstack([matrix, extra]), np.append(positive, known)
        weight = None if weight is None else np.append(weight, np.ones(len(extra)))

    def scaler_of(some: np.ndarray) -> StandardScaler:
        return StandardScaler().fit(matrix[some], sample_weight=None if weight is None else weight[some])

    def rows(train: np.ndarray, tested: np.ndarray, _: bool) -> tuple[np.ndarray, np.ndarray]:
        scaler = scaler_of(train)
        return scaler.transform(matrix[train]), scaler.transform(matrix[tested])

    names_of_rows = [f"row {place + 1}" for place in places] if row_names is None else row_names
    shown = [str(name) for name in names_of_rows]
    if len(shown) != len(positive):
        raise InputError(f"`row_names` needs {len(positive)} names, those of X_test last")
    given_groups, times = (None if column is None else np.asarray(column) for column in (groups, time))
    data = Data(positive, weight, rows, matrix.shape[1], shown, given_groups, times, test, notes)
    found = compare_data(data, candidates, given)
    fitted = np.flatnonzero(~test) if test is not None else np.arange(len(positive))
    own, scaler = None if weight is None else weight[fitted], scaler_of(fitted)

    def fit(i: int) -> Pipeline:
        X = scaler.transform(matrix[fitted])
        return make_pipeline(scaler, candidates[i].fit(X, positive[fitted], own, found.settings[i]))

    ranker = fit(found.recommended)
    effects = later_effects(found, ranker, fit, feature_names=names)
    tested = matrix[found.rows]
    frame = pl.DataFrame(tested, schema=names)

    def parts_of(some: np.ndarray) -> np.ndarray:
        return _contributions(ranker[-1], scaler.transform(tested[some]))

    found = explain_rows(found, frame.__getitem__, frame.__getitem__, parts_of)
    return replace(
        found,
        feature_names=names,
        columns=[ColumnProfile(name, "number", 0.0, frame[name].n_unique()) for name in names],
        model=ranker,
        effects=effects,
        seconds=clock.perf_counter() - began,
    )


def drawn_note(n: int, total: int) -> str | None:
    """Return a note if only a sample of the rows is used, else None."""
    return None if n == total else f"compared on {n:,} of the {total:,} rows, drawn at random"


class Drawn(NamedTuple):
    """Rows in memory, their row numbers in the data, and the total number of rows."""

    X: Any
    y: Any
    weight: Any
    groups: Any
    places: np.ndarray
    total: int

    @property
    def note(self) -> str | None:
        """Note about the sampling of rows, or None if all rows are used."""
        return drawn_note(len(self.places), self.total)


def drawn_rows(
    X: Any, y: Any, sample_weight: Any = None, groups: Any = None, *, random_state: int | None = 0
) -> Drawn:
    """Draw at most ``MOST_ROWS`` rows from blocks, Dask collections or a device; rows in memory are not sampled."""
    blocks = blocks_of(X, y, sample_weight, groups)
    if blocks is None and not is_device_array(X):
        return Drawn(X, y, sample_weight, groups, np.arange(np.size(y)), np.size(y))
    sizes = [len(X)] if blocks is None else blocks.map(_n_rows)
    total, rng = int(sum(sizes)), np.random.default_rng(random_state)
    rows = np.arange(total)
    if total > MOST_ROWS:
        rows = np.sort(rng.choice(total, MOST_ROWS, replace=False, shuffle=False))
    if blocks is None:
        columns = (y, sample_weight, groups)
        labels, weight, ids = (None if each is None else to_host(each)[rows] for each in columns)
        return Drawn(to_host(X[to_device(rows, X)]), labels, weight, ids, rows, total)
    own = np.split(rows, np.searchsorted(rows, np.cumsum(sizes)[:-1]))
    inside = [some - first for some, first in zip(own, np.cumsum([0, *sizes[:-1]]), strict=True)]
    parts = blocks.map_with(_take, inside)
    matrix: Any = np.concatenate([part.X for part in parts])
    if blocks.names is not None:
        matrix = pl.DataFrame(matrix, schema=list(blocks.names))
    return Drawn(matrix, *joined_columns([columns_of(part) for part in parts]), rows, total)


def _n_rows(block: Block) -> int:
    return len(block.y)


def _take(block: Block, rows: np.ndarray) -> Block:
    chosen: Any = (None if column is None else np.asarray(column)[rows] for column in block)
    return Block(*chosen)


def _contributions(model: Any, X: np.ndarray) -> np.ndarray:
    """Contributions of the features to the scores; the mean of scaled features is 0."""
    parts = model.contributions(X) if hasattr(model, "contributions") else X * np.ravel(model.coef_)
    return parts[:, : X.shape[1]]


def _matrix(name: str, X: Any) -> np.ndarray:
    try:
        return check_array(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be used: {str(error).strip().splitlines()[0]}") from None


def _positives(y: Any, classes: list[Any] | None = None) -> tuple[np.ndarray, list[Any]]:
    """Return a mask of positives and both labels; a test set uses the labels of the training rows."""
    labels = as_labels(np.asarray(y))
    found = distinct(labels)
    if len(found) != 2:
        raise InputError(f"y needs two classes, got {len(found)}: mark the wanted rows 1 and the others 0")
    if classes is not None and list(found) != list(classes):
        raise InputError(f"y_test has the labels {found}, y has {classes}: give the same two")
    return np.asarray(labels == found[1]), list(found)


def compare_data(data: Data, candidates: list[Candidate], options: Options) -> Comparison:
    """Compare candidates on loaded rows; the result has no model yet."""
    y, weight, notes = data.y, data.weight, data.notes
    known = np.arange(len(y)) if data.test is None else np.flatnonzero(~data.test)
    if len(known) > MOST_ROWS:
        rng = np.random.default_rng(options.random_state)
        notes.append(f"{drawn_note(MOST_ROWS, len(known))}; the model learns from all")
        known = np.sort(rng.permutation(known)[:MOST_ROWS])
    splits, how = _splits(data, known, options)
    listed = known if data.test is None else np.flatnonzero(data.test)
    counted = np.ones(len(y)) if weight is None else weight
    total, positives = float(counted[listed].sum()), float(counted[listed] @ y[listed])
    top = trials.Top.of(options.top, total, positives, options.fpr)
    of_folds = splits if data.test is None else []
    tested = np.unique(np.concatenate([split.test for split in of_folds])) if of_folds else listed
    _foretell(top, y[tested], counted[tested], of_folds, options, notes)
    threads = int(np.clip(_MOST_NUMBERS / (len(known) * data.n_features), 1, n_threads()))
    tried = trials.run_trials(candidates, y, weight, data.rows, splits, top, options.progress, threads)
    settings = [candidate.settings[trial.best()] for candidate, trial in zip(candidates, tried, strict=True)]
    ratio = _ratio(splits)
    n_train, draws = int(np.mean([len(split.train) for split in splits])), None
    tested = known[:1] if data.test is None else listed
    features = [data.rows(known, tested, candidate.takes_columns) for candidate in candidates]
    own = None if weight is None else weight[known]
    with threadpool_limits(limits=1, user_api="blas"):
        fits = [
            candidate.fit(X, y[known], own, setting)
            for candidate, setting, (X, _) in zip(candidates, settings, features, strict=True)
        ]
    if data.test is None:
        numbers = np.arange(len(splits))
        chosen = [trial.chosen(splits) for trial in tried]
        pairs = list(zip(tried, chosen, strict=True))
        values = np.array([trial.values[setting, numbers] for trial, setting in pairs])
        gains = np.array([trial.gains[setting, numbers] for trial, setting in pairs])
        scores = np.array([trial.scores[trial.best(), listed] for trial in tried])
        if np.isnan(scores).any():  # rows that are in no test set, such as the earliest
            tested = ~np.isnan(scores).any(axis=0)
            listed, scores = listed[tested], scores[:, tested]
    else:
        n_train, how = len(known), f"tested on {len(listed):,} rows of their own"
        scores = np.array([class_scores(fit, X) for fit, (_, X) in zip(fits, features, strict=True)])
        own = None if weight is None else weight[listed]
        values, gains, draws = _tested(y[listed], scores, own, top, options)
    return Comparison(
        candidates=candidates,
        settings=settings,
        sizes=[model_size(fitted) for fitted in fits],
        top=top,
        values=values,
        gains=gains,
        draws=draws,
        ratio=ratio,
        y=y[listed],
        scores=scores,
        weight=None if weight is None else weight[listed],
        row_names=[data.row_names[row] for row in listed],
        rows=listed,
        feature_names=[],
        n_train=n_train,
        how=how,
        confidence=options.confidence,
        notes=notes,
    )


def _splits(data: Data, known: np.ndarray, options: Options) -> tuple[list[trials.Split], str]:
    """Return splits of the known rows and their description."""
    y, n = data.y[known], len(known)
    if data.time is not None:
        splits = trials.later_rows(y, data.time[known], folds=options.folds)
        how = f"trained on the past, tested on {len(splits)} later parts"
    else:
        repeats = options.repeats or (5 if n < 3000 else 3 if n < 8000 else 2)
        groups = None if data.groups is None else data.groups[known]
        seed, folds = options.random_state, options.folds
        splits = trials.repeated_folds(y, folds=folds, repeats=repeats, groups=groups, seed=seed)
        # fewer than requested if a class has fewer rows
        cut = max(sum(split.repeat == repeat for split in splits) for repeat in range(repeats))
        how = f"{cut} folds, {'once' if repeats == 1 else f'{repeats} times'}"
    return [trials.Split(known[train], known[test], repeat) for train, test, repeat in splits], how


def _ratio(splits: list[trials.Split]) -> float:
    """Test rows over training rows."""
    return sum(len(split.test) for split in splits) / sum(len(split.train) for split in splits)


def _foretell(
    top: trials.Top,
    y: np.ndarray,
    weight: np.ndarray,
    splits: list[trials.Split],
    options: Options,
    notes: list[str],
) -> None:
    """Report the detectable differences before the work starts; without ``splits`` the rows are a test set."""
    n, positives = len(y), int(y.sum())
    few = too_few(positives, n - positives, top.places(n, positives))
    # with a false positive rate, the measure is over the positives
    counted = weight[y] if top.share is None else weight
    # effective sample size (Σw)²/Σw² of weighted rows
    shares = counted / (counted.sum() or 1.0)
    variance = 0.25 * float(shares @ shares or 1.0) / (top.share or 1.0)  # of a share of 1/2, the largest
    reach = 2.0 * np.sqrt(variance)
    if splits:
        # the interval that will be computed from the splits, whose variances are those of smaller test sets
        own = variance * n * len(splits) / sum(len(split.test) for split in splits)
        reach = trials.reach(len(splits), _ratio(splits), own, options.confidence)
    least = min(1.0, float(reach))
    points = f"{100 * least:.0f} points at the top"
    sentence = f"differences of up to about {points} can be due to chance; the intervals will tell"
    if few is not None:
        sentence = f"too few to tell rankers apart ({few}): treat the results as hints"
        notes.append(sentence)
    if options.tell is not None:
        options.tell(sentence)


def _tested(
    y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None, top: trials.Top, options: Options
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute measures and gains of a test set and of bootstrap samples of its rows."""
    values = np.array([[trials.measures_of(y, row, weight, top)] for row in scores])
    gains = np.array([[trials.gains_of(y, row, weight)] for row in scores])
    rng = np.random.default_rng(options.random_state)
    number = int(np.clip(_MOST_DRAWN / scores.size, 100, _DRAWS))
    draws: list[list[tuple[float, ...]]] = []
    while len(draws) < number:
        drawn = resample_weights(weight, len(y), rng)
        if drawn[y].any() and drawn[~y].any():
            draws.append(
                [(*trials.measures_of(y, row, drawn, top), *trials.gains_of(y, row, drawn)) for row in scores]
            )
    return values, gains, np.moveaxis(np.array(draws), 0, 1)
