"""Read table columns as numbers, text, labels, grades, groups or weights.

A value that cannot be used raises an error that names its line and column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.io.tables import Table

TEXT = (pl.String, pl.Categorical, pl.Enum)
_MISSING_WORDS = ["", "na", "n/a", "nan", "null", "none"]
_MISSING_TARGETS = ["na", "n/a", "nan", "null"]  # "none" may be a class
_BOOLEAN_WORDS = {"false": 0.0, "true": 1.0}
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
_POSITIVES = {frozenset(pair): pair[1] for pair in _OBVIOUS}


def numbers(table: Table, name: str, advice: str = "") -> np.ndarray:
    """Read a column as floats, missing values as NaN; true and false become 1 and 0.

    Raises
    ------
    InputError
        At the first value that is not a finite number, naming its place; ``advice`` says what to do.

    Examples
    --------
    >>> numbers(Table(pl.DataFrame({"x": ["1.5", "NA", " -2 "]})), "x").tolist()
    [1.5, nan, -2.0]
    """
    series = table.column(name)
    if series.dtype in TEXT:
        values = _parsed(table, series.cast(pl.String), advice)
    elif series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null):
        values = series.cast(pl.Float64)
    else:
        raise InputError(f"{table.source} column {name!r} holds {series.dtype} values, not numbers{advice}")
    array = values.fill_null(np.nan).to_numpy().astype(np.float64)
    refuse_row(table, name, np.isinf(array), "the value is infinite; correct it")
    return array


def _parsed(table: Table, text: pl.Series, advice: str) -> pl.Series:
    words = text.str.strip_chars().str.to_lowercase()
    given = ~words.is_in(_MISSING_WORDS) & words.is_not_null()
    if given.any() and words.filter(given).is_in(list(_BOOLEAN_WORDS)).all():
        return words.replace_strict(_BOOLEAN_WORDS, default=None, return_dtype=pl.Float64)
    values = words.cast(pl.Float64, strict=False)
    failed = (given & values.is_null()).to_numpy()
    if failed.any():
        row = int(failed.argmax())
        raise InputError(f"{table.where(row, text.name)}: {text[row]!r} is not a number{advice}")
    return values


def word_balance(table: Table, names: Sequence[str]) -> np.ndarray:
    """Count, for each column of text, the words that are not numbers minus those that are; 0 for other columns.

    The balances of several tables add up to that of all their rows.
    """
    balance = np.zeros(len(names), dtype=np.int64)
    for j, name in enumerate(names):
        series = table.column(name)
        if series.dtype in TEXT:
            words = series.cast(pl.String).str.strip_chars().str.to_lowercase().drop_nulls()
            words = words.filter(~words.is_in([*_MISSING_WORDS, *_BOOLEAN_WORDS]))
            balance[j] = 2 * words.cast(pl.Float64, strict=False).null_count() - len(words)
    return balance


def is_text(table: Table, name: str) -> bool:
    """Return whether a column holds words: less than half of its text parses as numbers.

    A column of numbers with a typing error does not, so that the error is reported.
    """
    return bool(word_balance(table, [name])[0] > 0)


def texts(table: Table, name: str) -> pl.Series:
    """Read a column as text, missing values as null; 1 and 1.0 are the same text.

    Examples
    --------
    >>> texts(Table(pl.DataFrame({"x": [1.0, 2.5]})), "x").to_list()
    ['1', '2.5']
    """
    series = table.column(name)
    try:
        if series.dtype.is_nested():
            raise pl.exceptions.InvalidOperationError
        plain = (series.fill_nan(None) if series.dtype.is_float() else series).cast(pl.String)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):  # such as a date beyond all years
        raise InputError(
            f"{table.source}, column {name!r}: {series.dtype} values cannot be used; leave the column out"
        ) from None
    text = plain.str.strip_chars().str.replace(r"^(-?\d+)\.0*$", "${1}")
    return text.set(text == "", None)


def refuse_row(table: Table, name: str, bad: np.ndarray, message: str) -> None:
    """Raise InputError for the first bad row of a column, if there is one."""
    if bad.any():
        raise InputError(f"{table.where(int(bad.argmax()), name)}: {message}")


def target_values(table: Table, target: str) -> pl.Series:
    """Read the target as text; True and TRUE equal the true of a boolean column."""
    text = texts(table, target)
    words = text.str.to_lowercase()
    text = text.set(words.is_in(_MISSING_TARGETS).fill_null(False), None)
    return words.zip_with(words.is_in(["false", "true"]), text)


def target_counts(table: Table, target: str, values: pl.Series | None = None) -> dict[str, int]:
    """Count the values of the target, the most frequent first; a missing one raises InputError."""
    text = target_values(table, target) if values is None else values
    missing = text.is_null().to_numpy()
    refuse_row(table, target, missing, "the target is missing; fill it in or take the row out")
    counts = text.alias("value").value_counts().sort(["count", "value"], descending=[True, False])
    return dict(counts.iter_rows())


def choose_positive(counts: dict[str, int], source: str, target: str, positive: str | None) -> str:
    """Return the target's positive value: the one asked for, or the obvious one of two."""
    shown = ", ".join(map(repr, list(counts)[:5]))
    shown += f", ... ({len(counts)} in all)" if len(counts) > 5 else ""
    if len(counts) == 1:
        raise InputError(
            f"{source} column {target!r} has one value only ({shown}): "
            "ranking needs both positive and negative rows"
        )
    if positive is not None:
        asked = target_values(Table(pl.DataFrame({"value": [positive]})), "value")[0] or ""
        if asked not in counts:
            raise InputError(f"{source} column {target!r} has no value {positive!r}; it has {shown}")
        return asked
    by_word = {value.lower(): value for value in counts}
    word = _POSITIVES.get(frozenset(by_word)) if len(counts) == 2 else None
    if word is None:
        raise InputError(
            f"{source} column {target!r} has the values {shown}: say which one is positive with --positive VALUE"
        )
    return by_word[word]


def read_target(
    table: Table, target: str, positive: str | None = None, *, graded: bool = False
) -> tuple[np.ndarray, str | None]:
    """Read labels 0 and 1 and the value that became 1, or grades of relevance and None.

    Examples
    --------
    >>> y, positive = read_target(Table(pl.DataFrame({"fraud": ["No", "Yes", "No"]})), "fraud")
    >>> y.tolist(), positive
    ([0, 1, 0], 'Yes')
    """
    if graded:
        return grades(table, target), None
    values = target_values(table, target)
    found = choose_positive(target_counts(table, target, values), table.source, target, positive)
    return (values == found).to_numpy().astype(np.int64), found


def grades(table: Table, target: str) -> np.ndarray:
    """Read the relevance of each row, a number of at least 0.

    Examples
    --------
    >>> grades(Table(pl.DataFrame({"stars": ["3", "0", "2.5"]})), "stars").tolist()
    [3.0, 0.0, 2.5]
    """
    values = numbers(table, target, "; grades of relevance are numbers")
    refuse_row(table, target, ~(values >= 0), "relevance must be a number of at least 0; correct it")
    return values


def group_ids(table: Table, name: str) -> np.ndarray:
    """Read the group of each row; a missing one raises InputError."""
    text = texts(table, name)
    missing = text.is_null().to_numpy()
    refuse_row(table, name, missing, "the group is missing; fill it in or take the row out")
    return text.to_numpy().astype(str)


def row_weights(table: Table, name: str) -> np.ndarray:
    """Read how many times each row counts, a number of at least 0."""
    weight = numbers(table, name)
    refuse_row(table, name, ~(weight >= 0), "a weight must be a number of at least 0")
    return weight


def feature_columns(
    table: Table, roles: Mapping[str, str | None], features: Sequence[str] = (), drop: Sequence[str] = ()
) -> list[str]:
    """Return the feature columns in table order: those named, or all without a role that are not dropped."""
    taken: dict[str, str] = {}
    for role, column in roles.items():
        if column in taken:
            raise InputError(f"column {column!r} is the {taken[column]}: it cannot be the {role} as well")
        taken |= {} if column is None else {column: role}
    for name in (*taken, *drop, *features):
        table.column(name)
    for name in features:
        if name in taken:
            raise InputError(f"column {name!r} is the {taken[name]}: it cannot be a feature as well")
    # pandas writes the index of a frame into Parquet files under such a name
    plain = [name for name in table.names if not re.fullmatch(r"__index_level_\d+__", name)]
    wanted = set(features or plain) - set(taken) - set(drop)
    if not wanted:
        raise InputError(f"{table.source} has no column left to use as a feature")
    return [name for name in table.names if name in wanted]
