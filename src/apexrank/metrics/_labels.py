"""What labels mean: two classes, or grades of relevance."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError


def as_labels(y_true: ArrayLike) -> np.ndarray:
    """Labels as an array; objects that are all numbers become numbers."""
    labels = np.asarray(y_true)
    if labels.ndim != 1 or not len(labels):
        raise InputError(f"y_true needs one label per row and at least one row, got shape {labels.shape}")
    if labels.dtype.kind == "O":
        plain = np.array(labels.tolist()) if all(isinstance(x, Real) for x in labels) else labels
        labels = plain if plain.dtype.kind in "biuf" else labels
    return labels


def are_classes(labels: np.ndarray) -> bool:
    """Whether labels only name two classes: one of two numbers is negative."""
    return labels.dtype.kind not in "biuf" or bool(labels.min() < 0 and len(distinct(labels)) == 2)


def relevant_rows(labels: np.ndarray, pos_label: Any, relevant: float | None) -> np.ndarray:
    """Which rows are relevant: those of at least the grade ``relevant``, or of the label ``pos_label``.

    With neither, numbers of at least 0 are grades, relevant when above 0; of two other labels the larger is. Two
    numbers above 0 may be either, and are refused.
    """
    if relevant is not None:
        if pos_label is not None:
            raise InputError("relevant and pos_label both say what is relevant: give one of them")
        return as_grades(labels) >= relevant
    if pos_label is not None or are_classes(labels):
        return two_classes(labels, pos_label)
    values = distinct(labels)
    if len(values) == 2 and values[0] > 0:
        raise InputError(
            f"y_true has the values {values[0]:g} and {values[1]:g} only: say relevant={values[0]:g} if they are "
            f"grades, or pos_label={values[1]:g} if they are classes"
        )
    return as_grades(labels) > 0


def grades_of(labels: np.ndarray) -> np.ndarray | None:
    """Grades of relevance; none for labels that only name two classes."""
    return None if are_classes(labels) else as_grades(labels)


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
                f"y_true has a single class, {values[0]!r}: give positives and negatives, or set pos_label"
            )
        pos_label = values[1]
    elif len(values) == 2 and pos_label not in values:
        raise InputError(
            f"pos_label={pos_label!r} is not in y_true: its labels are {values[0]!r}, {values[1]!r}"
        )
    return labels == pos_label


def distinct(labels: np.ndarray) -> list:
    """Sorted distinct labels; a missing one differs from itself or compares with nothing."""
    try:
        if labels.dtype.kind in "fO" and (labels != labels).any():
            raise TypeError
        if labels.dtype.kind in "biuf":
            low, high = labels.min(), labels.max()
            if ((labels == low) | (labels == high)).all():  # two values need no sort
                return [low.item()] if low == high else [low.item(), high.item()]
        return np.unique(labels).tolist()
    except TypeError:
        raise InputError("y_true has missing or mixed labels: fill or drop those rows") from None
