"""Which rows are positive, or how relevant they are: from a target column to numbers."""

from __future__ import annotations

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.io.columns import numbers, texts
from apexrank.io.tables import Table

# Pairs of values (in lower case) whose positive one needs no asking: the second.
_OBVIOUS = (
    ("0", "1"),
    ("-1", "1"),
    ("false", "true"),
    ("no", "yes"),
    ("n", "y"),
    ("f", "t"),
    ("negative", "positive"),
    ("neg", "pos"),
)
_MISSING = ["na", "n/a", "nan", "null"]
_POSITIVES = {frozenset(pair): pair[1] for pair in _OBVIOUS}


def positive_value(table: Table, target: str, positive: str | None = None) -> str:
    """Return the target's positive value: the one asked for, or the obvious one of two.

    Examples
    --------
    >>> positive_value(Table(pl.DataFrame({"fraud": ["No", "Yes", "No"]})), "fraud")
    'Yes'
    """
    counts = _counts(table, target)
    shown = _shown(counts)
    if len(counts) == 1:
        raise InputError(
            f"{table.source} column {target!r} has one value only ({shown}): "
            "ranking needs both positive and negative rows"
        )
    if positive is None:
        return _obvious(table, target, counts)
    value = _canonical(positive)
    if value not in counts:
        raise InputError(f"{table.source} column {target!r} has no value {positive!r}; it has {shown}")
    return value


def labels(table: Table, target: str, positive: str) -> np.ndarray:
    """One 0 or 1 per row: 1 where the target has the positive value. Both must occur.

    Examples
    --------
    >>> labels(Table(pl.DataFrame({"fraud": ["no", "yes", "no"]})), "fraud", "yes").tolist()
    [0, 1, 0]
    """
    positive_value(table, target, positive)
    return (target_values(table, target) == positive).to_numpy().astype(np.int64)


def grades(table: Table, target: str) -> np.ndarray:
    """Relevance of each row as a number of at least 0.

    Examples
    --------
    >>> grades(Table(pl.DataFrame({"stars": ["3", "0", "2.5"]})), "stars").tolist()
    [3.0, 0.0, 2.5]
    """
    values = numbers(table, target, "; grades of relevance are numbers")
    bad = ~(values >= 0)
    if bad.any():
        raise InputError(
            f"{table.where(int(bad.argmax()), target)}: relevance must be a number of at least 0; correct it"
        )
    return values


def answers(table: Table, target: str, positive: str | None) -> np.ndarray:
    """Labels of the positive value, or grades where there is none."""
    return grades(table, target) if positive is None else labels(table, target, positive)


def _canonical(value: str) -> str:
    return target_values(Table(pl.DataFrame({"value": [value]})), "value")[0] or ""


def target_values(table: Table, target: str) -> pl.Series:
    """The target as text; True and TRUE are the same as the true of a column of booleans."""
    text = texts(table, target)
    words = text.str.to_lowercase()
    text = text.set(words.is_in(_MISSING).fill_null(False), None)
    return words.zip_with(words.is_in(["false", "true"]), text)


def _counts(table: Table, target: str) -> dict[str, int]:
    text = target_values(table, target)
    if text.null_count():
        row = int(text.is_null().to_numpy().argmax())
        raise InputError(f"{table.where(row, target)}: the target is missing; fill it in or take the row out")
    values = text.alias("value").value_counts().sort(["count", "value"], descending=[True, False])
    return dict(values.iter_rows())


def _obvious(table: Table, target: str, counts: dict[str, int]) -> str:
    by_word = {value.lower(): value for value in counts}
    word = _POSITIVES.get(frozenset(by_word)) if len(counts) == 2 else None
    if word is None:
        raise InputError(
            f"{table.source} column {target!r} has the values {_shown(counts)}: "
            "say which one is positive with --positive VALUE"
        )
    return by_word[word]


def _shown(counts: dict[str, int]) -> str:
    values = [repr(value) for value in counts]
    return ", ".join(values[:5]) + (f", ... ({len(values)} in all)" if len(values) > 5 else "")
