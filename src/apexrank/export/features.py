"""Columns of a table as a model sees them, and the features that they become."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from apexrank.errors import InputError

_WHOLE = re.compile(r"-?\d+")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d+)?")


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers; a missing one becomes ``fill`` where that is given."""

    name: str
    index: int
    fill: Any = None


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories.

    Parameters
    ----------
    name, index : str, int
        Its name and its place among the model's columns.
    values : tuple
        The known values; None stands for a missing one that is a category of its own.
    fill : value, optional
        What a missing value becomes.
    as_text : bool
        Values are compared as text without blanks around it, 1.0 like 1, as in tables.
    knows_all, needs_value : bool
        The model refuses a value that is not known, or a missing one.
    """

    name: str
    index: int
    values: tuple[Any, ...]
    fill: Any = None
    as_text: bool = False
    knows_all: bool = False
    needs_value: bool = False


Column = NumberColumn | CategoryColumn


@dataclass(frozen=True)
class Feature:
    """``slope·(u − center)``, u a column's number or the indicator of one of its values.

    Examples
    --------
    >>> age = Feature(NumberColumn("age", 0)).scaled(40.0, 10.0)
    >>> age.slope, age.center, age.label
    (0.1, 40.0, 'age')
    """

    column: Column
    value: Any = None
    slope: float = 1.0
    center: float = 0.0

    @property
    def is_number(self) -> bool:
        """Whether u is the column's number."""
        return isinstance(self.column, NumberColumn)

    @property
    def label(self) -> str:
        """Name for people."""
        if self.is_number:
            return self.column.name
        return f"{self.column.name}={'missing' if self.value is None else self.value}"

    def scaled(self, center: float, scale: float) -> Feature:
        """The feature less ``center``, divided by ``scale``."""
        moved = self.center + center / self.slope
        return Feature(self.column, self.value, self.slope / scale, moved)

    def read(self, X: Any) -> np.ndarray:
        """The values u of all rows of an array or a frame."""
        values = column_of(X, self.column)
        return _numbers(values, self.column) if self.is_number else _indicator(values, self)


def column_of(X: Any, column: Column) -> np.ndarray:
    """One column by its name in a frame, by its place in an array."""
    if hasattr(X, "columns"):
        if column.name not in list(X.columns):
            raise InputError(f"the table has no column {column.name!r}")
        return np.asarray(X[column.name])
    array = np.asarray(X)
    if array.ndim != 2 or array.shape[1] <= column.index:
        raise InputError(
            f"X must have rows and at least {column.index + 1} columns, got the shape {array.shape}"
        )
    return array[:, column.index]


def spellings(value: str, values: Collection[str] = ()) -> list[str]:
    """How a table may write a category, one of ``values``: 3 as 3.0, and true as 1 where there is nothing but booleans.

    Examples
    --------
    >>> spellings("3"), spellings("Oslo"), spellings("1e16")
    (['3', '3.', '3.0', '3.00'], ['Oslo'], ['1e16', '1e+16'])
    >>> spellings("true", ["false", "true"])
    ['true', '1', 'True']
    """
    if are_booleans(values):
        number = str(int(value.lower() == "true"))
        return list(dict.fromkeys([value, number, value.lower().capitalize()]))
    if is_whole(value):
        return [value, f"{value}.", f"{value}.0", f"{value}.00"]
    number_ = as_number(value)
    return [value] if number_ is None else list(dict.fromkeys([value, repr(number_)]))


def are_booleans(values: Collection[str]) -> bool:
    """Whether a column of texts was one of true and false."""
    words = {value.lower() for value in values}
    return bool(words) and words <= {"true", "false"} and len(words) == len(values)


def is_whole(value: str) -> bool:
    """Whether a text is a whole number."""
    return _WHOLE.fullmatch(value) is not None


def as_number(value: str) -> float | None:
    """The number that a text is, where a column of numbers may have it: 007 is none, nor are numbers of 17 digits.

    Examples
    --------
    >>> as_number("1.50"), as_number("007"), as_number("9007199254740993"), as_number("Oslo")
    (1.5, None, None, None)
    """
    if not _NUMBER.fullmatch(value):
        return None
    number = float(value)
    exact = not is_whole(value) or abs(number) < 2**53
    return number if exact and isfinite(number) else None


def _numbers(values: np.ndarray, column: Column) -> np.ndarray:
    try:
        numbers = values.astype(float)
    except (TypeError, ValueError):
        raise InputError(f"column {column.name!r} holds something other than numbers: correct it") from None
    missing = np.isnan(numbers)
    if missing.any() and column.fill is None:
        raise InputError(
            f"column {column.name!r} has no value in row {int(missing.argmax()) + 1}; fill it in, "
            "or put a SimpleImputer into the pipeline"
        )
    return np.where(missing, column.fill, numbers).astype(float) if missing.any() else numbers


def _indicator(values: np.ndarray, feature: Feature) -> np.ndarray:
    fill = feature.column.fill
    known = [fill if is_missing(value) else value for value in values.tolist()]
    return np.array([value == feature.value for value in known], dtype=float)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or pandas' NA."""
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ == "NAType"
