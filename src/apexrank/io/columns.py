"""The kinds of columns a model reads: numbers and categories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.io.tables import Table

MAX_CATEGORIES = 1000
_MISSING_WORDS = ["", "na", "n/a", "nan", "null", "none"]
_TEXT = (pl.String, pl.Categorical, pl.Enum)
_BOOLEAN_WORDS = {"false": 0.0, "true": 1.0}

IMPUTERS: dict[str, Callable[[np.ndarray], Any]] = {"median": np.median, "mean": np.mean}


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
    if series.dtype in _TEXT:
        values = _parse(table, series.cast(pl.String), advice)
    elif series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null):
        values = series.cast(pl.Float64)
    else:
        raise InputError(f"{table.source} column {name!r} holds {series.dtype} values, not numbers{advice}")
    array = values.fill_null(np.nan).to_numpy().astype(np.float64)
    _refuse(table, name, np.isinf(array), "the value is infinite; correct it")
    return array


def _parse(table: Table, text: pl.Series, advice: str) -> pl.Series:
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


def is_text(table: Table, name: str) -> bool:
    """Whether a column is of words: text of which less than half reads as numbers.

    A column of numbers with a slip of the pen in it is not, so that the slip is reported.
    """
    series = table.column(name)
    if series.dtype not in _TEXT:
        return False
    words = series.cast(pl.String).str.strip_chars().str.to_lowercase().drop_nulls()
    words = words.filter(~words.is_in([*_MISSING_WORDS, *_BOOLEAN_WORDS]))
    return 2 * words.cast(pl.Float64, strict=False).null_count() > len(words)


def texts(table: Table, name: str) -> pl.Series:
    """Read a column as text, missing values as null; 1 and 1.0 are the same text.

    Examples
    --------
    >>> texts(Table(pl.DataFrame({"x": [1.0, 2.5]})), "x").to_list()
    ['1', '2.5']
    """
    series = table.column(name)
    if series.dtype.is_nested():
        raise InputError(
            f"{table.source}, column {name!r}: {series.dtype} values cannot be used; leave the column out"
        )
    if series.dtype.is_float():
        series = series.fill_nan(None)
    try:
        plain = series.cast(pl.String)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):  # such as a date beyond all years
        raise InputError(
            f"{table.source}, column {name!r}: {series.dtype} values cannot be used; leave the column out"
        ) from None
    text = plain.str.strip_chars().str.replace(r"^(-?\d+)\.0*$", "${1}")
    return text.set(text == "", None)


def _refuse(table: Table, name: str, bad: np.ndarray, message: str) -> None:
    if bad.any():
        raise InputError(f"{table.where(int(bad.argmax()), name)}: {message}")


def _require_values(table: Table, name: str, count: int) -> None:
    if not count:
        raise InputError(f"{table.source} column {name!r} has no values at all: leave it out (--drop {name})")


@dataclass(frozen=True)
class Number:
    """One feature: the column's value; a missing one becomes ``fill`` when that is given."""

    name: str
    fill: float | None = None
    kind: ClassVar[str] = "number"

    @classmethod
    def learn(cls, table: Table, name: str, impute: str | None) -> Number:
        """Take the fill value from the training table."""
        if impute is None:
            return cls(name)
        values = numbers(table, name, _advice(name))
        given = values[~np.isnan(values)]
        _require_values(table, name, given.size)
        return cls(name, float(IMPUTERS[impute](given)))

    @property
    def features(self) -> list[str]:
        """Names of the features this column becomes."""
        return [self.name]

    def read(self, table: Table) -> np.ndarray:
        """Features of every row, one column."""
        values = numbers(table, self.name, _advice(self.name))
        missing = np.isnan(values)
        if self.fill is None:
            _refuse(
                table, self.name, missing, "the value is missing; fill it in, or fit with --impute median"
            )
            return values[:, None]
        return np.where(missing, self.fill, values)[:, None]


@dataclass(frozen=True)
class Category:
    """One feature per known value: 1 where the column has it, else 0.

    A value never met in training is none of them; so is a missing one, where ``fill`` allows it.
    """

    name: str
    values: tuple[str, ...]
    fill: bool = False
    kind: ClassVar[str] = "category"

    @classmethod
    def learn(cls, table: Table, name: str, impute: str | None) -> Category:
        """Take the known values from the training table."""
        values = texts(table, name).drop_nulls().unique().sort().to_list()
        _require_values(table, name, len(values))
        if len(values) > MAX_CATEGORIES:
            raise InputError(
                f"{table.source} column {name!r} has {len(values)} different values, more than "
                f"{MAX_CATEGORIES}: if they are ids or notes, --drop {name}"
            )
        return cls(name, tuple(values), impute is not None)

    @property
    def features(self) -> list[str]:
        """Names of the features this column becomes."""
        return [f"{self.name}={value}" for value in self.values]

    def read(self, table: Table) -> np.ndarray:
        """Indicators of every row, one column per known value."""
        text = texts(table, self.name)
        if not self.fill:
            missing = text.is_null().to_numpy()
            _refuse(
                table, self.name, missing, "the value is missing; fill it in, or fit with --impute median"
            )
        codes = text.replace_strict(list(self.values), list(range(len(self.values))), default=-1)
        return (codes.to_numpy()[:, None] == np.arange(len(self.values))).astype(np.float64)

    def unknown(self, table: Table) -> list[str]:
        """Values of the column that were never met in training."""
        return [
            value
            for value in texts(table, self.name).drop_nulls().unique().sort()
            if value not in self.values
        ]


def _advice(name: str) -> str:
    return f"; one-hot encode the column (--categorical {name}), leave it out (--drop {name}) or correct it"


KINDS: dict[str, type[Number] | type[Category]] = {kind.kind: kind for kind in (Number, Category)}
