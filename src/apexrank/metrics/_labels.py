"""Validation of labels and scores, and the decorator that turns a formula into a public measure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from numbers import Real
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics._rows import Empty, ScoredRows, Values
from apexrank.validation import check_weights, on_host, segment

_EXACT = 2**53  # all integers up to this are exact in double precision


def check_rows(
    y_true: ArrayLike,
    scores: ArrayLike,
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    relevant: float | None = None,
    *,
    graded: bool = False,
) -> ScoredRows:
    """Validate labels of two classes (with ``graded``, also grades of relevance) and the scores that rank them.

    Arrays on a device are copied to the host: they hold a few bytes per row, whereas the rows themselves have hundreds.
    """
    y_true, scores, groups, sample_weight = map(on_host, (y_true, scores, groups, sample_weight))
    labels = as_labels(y_true)
    n = len(labels)
    relevance = None
    if not graded:
        positive = two_classes(labels, pos_label)
    else:
        positive = relevant_rows(labels, pos_label, relevant)
        if pos_label is None and not are_classes(labels):
            relevance = as_grades(labels)
    weight = None
    if sample_weight is not None:
        weight = _column("sample_weight", sample_weight, n)
        if (weight < 0).any() or np.isinf(weight).any():
            raise InputError(
                "`sample_weight` has a negative or infinite weight: weights are numbers of repetitions"
            )
        check_weights(weight)  # pairs use products of weights
    lists = segment(groups, n)
    return ScoredRows(positive, _scores(scores, n), lists, weight, relevance, groups is not None)


def _scores(scores: ArrayLike, n: int) -> np.ndarray:
    """Convert scores to doubles; for integers too large for doubles only the order is kept."""
    given = np.asarray(scores)
    if (
        given.dtype.kind in "iu"
        and given.shape == (n,)
        and max(abs(int(given.min())), int(given.max())) > _EXACT
    ):
        return np.unique(given, return_inverse=True)[1].astype(np.float64)
    return _column("scores", scores, n)


def _column(name: str, values: ArrayLike, n: int) -> np.ndarray:
    try:
        if np.asarray(values).dtype.kind in "USmM":
            raise TypeError
        column = np.asarray(np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan))
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, one for each of the {n} rows of y_true") from None
    if column.shape != (n,):
        raise InputError(
            f"{name} needs one number for each of the {n} rows of y_true, got shape {column.shape}"
        )
    if np.isnan(column).any():
        raise InputError(f"{name} is NaN in row {int(np.isnan(column).argmax())}: fill or drop it")
    return column


def as_labels(y_true: ArrayLike) -> np.ndarray:
    """Convert labels to an array; objects that are all numbers become numbers."""
    labels = np.asarray(y_true)
    if labels.ndim != 1 or not len(labels):
        raise InputError(f"y_true needs one label per row and at least one row, got shape {labels.shape}")
    if labels.dtype.kind == "O":
        plain = np.array(labels.tolist()) if all(isinstance(x, Real) for x in labels) else labels
        labels = plain if plain.dtype.kind in "biuf" else labels
    return labels


def are_classes(labels: np.ndarray) -> bool:
    """Return whether labels are names of two classes: two numbers, one of them negative."""
    return labels.dtype.kind not in "biuf" or bool(labels.min() < 0 and len(distinct(labels)) == 2)


def relevant_rows(labels: np.ndarray, pos_label: Any, relevant: float | None) -> np.ndarray:
    """Return a mask of the relevant rows: at least the grade ``relevant``, or the label ``pos_label``.

    With neither, numbers of at least 0 are grades, relevant if above 0; of two other labels the larger is relevant. Two
    numbers above 0 are ambiguous and raise an error.
    """
    if relevant is not None:
        if pos_label is not None:
            raise InputError("`relevant` and `pos_label` both define the relevant rows: give one of them")
        return as_grades(labels) >= relevant
    if pos_label is not None or are_classes(labels):
        return two_classes(labels, pos_label)
    values = distinct(labels)
    if len(values) == 2 and values[0] > 0:
        raise InputError(
            f"y_true has the values {values[0]:g} and {values[1]:g} only: say `relevant={values[0]:g}` if they are "
            f"grades, or `pos_label={values[1]:g}` if they are classes"
        )
    return as_grades(labels) > 0


def as_grades(labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind not in "biuf":
        raise InputError("y_true must be numbers here, the grades of relevance")
    grades = labels.astype(np.float64)
    if not np.isfinite(grades).all():
        raise InputError(
            f"y_true is not finite in row {int((~np.isfinite(grades)).argmax())}: fill or drop it"
        )
    return grades


def two_classes(labels: np.ndarray, pos_label: Any) -> np.ndarray:
    values = distinct(labels)
    if len(values) > 2:
        raise InputError(
            f"y_true has {len(values)} distinct labels: make it binary, e.g. y_true == {values[-1]!r}"
        )
    if pos_label is None:
        if len(values) < 2:
            raise InputError(
                f"y_true has a single class, {values[0]!r}: give positives and negatives, or set `pos_label`"
            )
        pos_label = values[1]
    elif len(values) == 2 and pos_label not in values:
        raise InputError(
            f"`pos_label={pos_label!r}` is not in y_true: its labels are {values[0]!r}, {values[1]!r}"
        )
    return labels == pos_label


def distinct(labels: np.ndarray) -> list:
    """Return the sorted distinct labels; raise InputError for missing or mixed labels."""
    try:
        if labels.dtype.kind in "fO" and (labels != labels).any():
            raise TypeError
        if labels.dtype.kind in "biuf":
            low, high = labels.min(), labels.max()
            if ((labels == low) | (labels == high)).all():  # with two values no sort is needed
                return [low.item()] if low == high else [low.item(), high.item()]
        return np.unique(labels).tolist()
    except TypeError:
        raise InputError("y_true has missing or mixed labels: fill or drop those rows") from None


def graded_rows(
    y_true: ArrayLike,
    scores: ArrayLike,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> ScoredRows:
    """Validate rows with non-negative relevance."""
    labels = as_labels(y_true)
    # the threshold does not matter here; requesting grades prevents 1 and 2 from being read as classes
    relevant = 0.0 if labels.dtype.kind in "biuf" and not are_classes(labels) else None
    rows = check_rows(labels, scores, None, groups, sample_weight, relevant, graded=True)
    check_grades(rows.relevance)
    return rows


def check_grades(relevance: np.ndarray) -> None:
    """Raise InputError for a negative grade, whose gain is undefined."""
    negative = relevance < 0
    if negative.any():
        raise InputError(
            f"y_true is negative in row {int(negative.argmax())}: shift the grades so that 0 is worst"
        )


class RankMeasure(Protocol):
    """Public function of a measure; its ``formula`` maps validated rows to the values of the groups."""

    formula: Callable[..., Values]

    def __call__(self, y_true: ArrayLike, scores: ArrayLike, *args: Any, **options: Any) -> float: ...


_READERS: dict[str, tuple[Callable[..., ScoredRows], tuple[str, ...]]] = {
    "classes": (check_rows, ("pos_label", "groups", "sample_weight")),
    "relevance": (partial(check_rows, graded=True), ("relevant", "pos_label", "groups", "sample_weight")),
    "grades": (graded_rows, ("groups", "sample_weight")),
}


def ranking_measure(
    labels: Literal["classes", "relevance", "grades"],
) -> Callable[[Callable[..., Values]], RankMeasure]:
    """Create the public function of a measure from its formula ``formula(rows, **own_options) -> Values``.

    The function takes labels and scores instead of ``rows``, the options of the formula, ``empty``, and those of its
    kind of labels: ``groups``, ``sample_weight``, ``pos_label`` except for grades, and ``relevant`` for relevance.
    """
    return partial(_of_labels, labels=labels, averaged=True)  # type: ignore[return-value]


def row_measure(formula: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Create the public function of a formula that returns a value for each row of two classes."""
    return _of_labels(formula, labels="classes", averaged=False)


def _of_labels(formula: Callable[..., Any], labels: str, averaged: bool) -> Callable[..., Any]:
    read, shared = _READERS[labels]

    @wraps(formula)
    def function(y_true: ArrayLike, scores: ArrayLike, *args: Any, **options: Any) -> Any:
        empty = options.pop("empty", "skip") if averaged else None
        rows = read(y_true, scores, **{name: options.pop(name) for name in shared if name in options})
        found = formula(rows, *args, **options)
        return found if empty is None else rows.mean(found, empty)

    given = signature(check_rows).parameters
    both = [given["y_true"], given["scores"], *list(signature(formula).parameters.values())[1:]]
    options = [given[name].replace(kind=Parameter.KEYWORD_ONLY) for name in shared]
    if averaged:
        options = [Parameter("empty", Parameter.KEYWORD_ONLY, default="skip", annotation=Empty), *options]
    returns = "float" if averaged else "np.ndarray"
    function.__dict__["__signature__"] = Signature([*both, *options], return_annotation=returns)
    function.__dict__["formula"] = formula
    return function
