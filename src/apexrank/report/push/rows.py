"""Training rows and held-out rows of arrays: checks, and the split."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from apexrank.errors import InputError
from apexrank.metrics._labels import as_labels, distinct
from apexrank.plot.style import number_column
from apexrank.report.page import plural


class PushRows(NamedTuple):
    """Checked training rows and held-out rows."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    X_test: np.ndarray
    y_test: np.ndarray
    row_names: list[str]
    feature_names: list[str]
    notes: list[str]


def hold_out(
    y: np.ndarray, share: float = 0.3, random_state: int | None = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Stratified random split: indices of training rows and of held-out rows.

    Examples
    --------
    >>> train, test = hold_out(np.array([True, False, True, False, True, False]), 0.34)
    >>> len(train), len(test)
    (4, 2)
    """
    if not isinstance(share, Real) or not 0 < share < 1:
        raise InputError(f"holdout must be a share between 0 and 1, got {share!r}")
    rng = np.random.default_rng(random_state)
    classes = (np.flatnonzero(y), np.flatnonzero(~y))
    test = np.sort(np.concatenate([rng.permutation(rows)[: round(share * len(rows))] for rows in classes]))
    return np.setdiff1d(np.arange(len(y)), test), test


def read_rows(
    X: Any,
    y: ArrayLike,
    X_test: Any,
    y_test: ArrayLike | None,
    sample_weight: ArrayLike | None,
    names: tuple[Sequence[Any] | None, ...],
    holdout: float,
    random_state: int | None,
) -> PushRows:
    """Check the input of `apexrank.report.compare_pushes` and split it; ``names`` are of features, rows, test rows."""
    feature_names, row_names, test_row_names = names
    rows = _matrix("X", X)
    positive, classes = _positives("y", y, len(rows))
    weight = None if sample_weight is None else _weight(sample_weight, len(rows))
    features = _names("feature_names", feature_names, rows.shape[1], "feature", _columns(X))
    shown = _names("row_names", row_names, len(rows), "row")
    notes = []
    if (X_test is None) != (y_test is None):
        raise InputError("X_test and y_test come together: give both or neither")
    if X_test is None:
        train, test = hold_out(positive, holdout, random_state)
        notes.append(note_of_split(len(test), len(rows)))
        new, known, shown = rows[test], positive[test], [shown[row] for row in test]
        rows, positive, weight = rows[train], positive[train], None if weight is None else weight[train]
    else:
        _check_columns(X, X_test)
        new = _matrix("X_test", X_test)
        if new.shape[1] != rows.shape[1]:
            raise InputError(f"X_test has {new.shape[1]} columns, X {rows.shape[1]}: give the same columns")
        known, _ = _positives("y_test", y_test, len(new), classes)
        shown = _names("test_row_names", test_row_names, len(new), "row")
    if weight is not None:
        notes.append("row weights count in fitting only: choosing p and measuring count every row once")
    check_counts(positive, known)
    return PushRows(rows, positive, weight, new, known, shown, features, notes)


def _matrix(name: str, X: Any) -> np.ndarray:
    try:
        rows = check_array(X, dtype=np.float64, order="C", ensure_all_finite=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be used: {str(error).strip().splitlines()[0]}") from None
    bad = ~np.isfinite(rows)
    if bad.any():
        row, column = np.argwhere(bad)[0] + 1
        raise InputError(
            f"{name} has a missing or infinite value in row {row}, column {column}: fill it in or take the row out"
        )
    return rows


def _positives(
    name: str, y: ArrayLike | None, n: int, classes: list | None = None
) -> tuple[np.ndarray, list]:
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise InputError(f"{name} needs one label for each of the {n} rows, got shape {labels.shape}")
    try:
        labels = as_labels(labels)
        found = distinct(labels)
    except InputError:
        raise InputError(f"{name} has missing or mixed labels: fill or drop those rows") from None
    if classes is None and len(found) != 2:
        raise InputError(
            f"{name} needs two classes, got {len(found)}: mark the wanted rows 1 and the others 0"
        )
    classes = found if classes is None else classes
    strange = [label for label in found if label not in classes]
    if strange:
        raise InputError(f"{name} has the label {strange[0]!r}, which y does not: correct it")
    return np.asarray(labels == classes[1]), classes


def _weight(sample_weight: ArrayLike, n: int) -> np.ndarray:
    weight = number_column(sample_weight)
    if weight is None or len(weight) != n or not (np.isfinite(weight) & (weight >= 0)).all():
        raise InputError("sample_weight must be numbers of at least 0, one for each row of X")
    if not weight.any():
        raise InputError("sample_weight is 0 in all rows: give some a weight above 0")
    return weight


def _columns(X: Any) -> list[str] | None:
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(column) for column in columns]


def _check_columns(X: Any, X_test: Any) -> None:
    for own, other in zip(_columns(X) or (), _columns(X_test) or (), strict=False):
        if own != other:
            raise InputError(
                f"X_test has the column {other!r} where X has {own!r}: give the same columns in order"
            )


def _names(
    what: str, given: Sequence[Any] | None, n: int, word: str, columns: list[str] | None = None
) -> list[str]:
    if given is None:
        return columns or [f"{word} {i}" for i in range(1, n + 1)]
    if len(given) != n:
        raise InputError(f"{what} needs {n} names, got {len(given)}")
    return [str(name) for name in given]


def note_of_split(n_test: int, n: int) -> str:
    """Note on the assumption behind a random split."""
    return (
        f"{n_test:,} of {n:,} rows are held out at random: if they are ordered in time, "
        "measure on later rows instead (a test set of your own)"
    )


def check_counts(y: np.ndarray, y_test: np.ndarray) -> None:
    """Raise InputError if a class has too few training or held-out rows."""
    for word, train, test in (("positive", y.sum(), y_test.sum()), ("negative", (~y).sum(), (~y_test).sum())):
        if train < 2:
            few = plural(f"only # training [row is|rows are] {word}", train)
            raise InputError(f"{few}, choosing p needs at least 2: give more rows, or hold out fewer")
        if test < 1:
            raise InputError(f"none of the held-out rows is {word}: give more rows, or hold out more of them")
