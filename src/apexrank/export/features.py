"""Features of a model as formulas of a table's columns, followed through the steps of a scikit-learn pipeline."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from apexrank.errors import InputError
from apexrank.validation import is_missing

_WHOLE = re.compile(r"-?\d+")
_REASONS = {
    "PushBoost": "its rounds are trees or other estimators, not coefficients",
    "TwoStagePush": "it ranks twice; export its first_ and second_",
    "UnknownLinkRegressor": "its predictions pass through a fitted link",
    "Isotron": "its predictions pass through a fitted link",
    "QueryNormalizer": "it scales inside each group, which needs all rows of the group",
}
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


def follow(step: Any, features: Sequence[Feature]) -> list[Feature]:
    """What a fitted step makes of the features.

    Raises
    ------
    InputError
        When the step is not one that can be followed; it is named.

    Examples
    --------
    >>> scaler = StandardScaler().fit([[1.0], [3.0]])
    >>> [(f.slope, f.center) for f in follow(scaler, [Feature(NumberColumn("x", 0))])]
    [(1.0, 2.0)]
    """
    if step is None or isinstance(step, str):
        return [] if step == "drop" else list(features)
    if type(step) not in _RULES:
        known = ", ".join(kind.__name__ for kind in _RULES if kind is not FunctionTransformer)
        raise refusal(step, f"use {known}")
    return _RULES[type(step)](step, features)


def refusal(step: Any, advice: str) -> InputError:
    """Error that names a step or estimator which cannot be written as a sum over columns, and says why."""
    name = type(step).__name__
    return InputError(f"{name} cannot be exported: {_REASONS.get(name, advice)}")


def _pipeline(step: Pipeline, features: Sequence[Feature]) -> list[Feature]:
    for _, part in step.steps:
        features = follow(part, features)
    return list(features)


def _columns(step: ColumnTransformer, features: Sequence[Feature]) -> list[Feature]:
    made: dict[str, list[Feature]] = {}
    for name, part, wanted in step.transformers_:
        places = _places(wanted, features)
        made[name] = follow(part, [features[j] for j in places]) if places else []
    ordered = sorted(step.output_indices_.items(), key=lambda item: item[1].start)
    return [feature for name, _ in ordered for feature in made.get(name, [])]


def _places(wanted: Any, features: Sequence[Feature]) -> list[int]:
    """Places of the columns that a ColumnTransformer was given by name, number, slice or mask."""
    names = [feature.column.name for feature in features]
    if isinstance(wanted, str | int | np.integer):
        wanted = [wanted]
    if isinstance(wanted, slice):
        ends = [names.index(end) if isinstance(end, str) else end for end in (wanted.start, wanted.stop)]
        last = isinstance(wanted.stop, str)  # a slice of names holds its end
        return list(range(len(names)))[ends[0] : ends[1] + 1 if last else ends[1] : wanted.step]
    listed = list(wanted)
    if any(isinstance(one, str) for one in listed):
        return [names.index(one) for one in listed]
    return np.arange(len(names))[np.asarray(listed, dtype=None if listed else int)].tolist()


def _scale(features: Sequence[Feature], center: Any, scale: Any) -> list[Feature]:
    centers = np.zeros(len(features)) if center is None else np.asarray(center, dtype=float)
    scales = np.ones(len(features)) if scale is None else np.asarray(scale, dtype=float)
    return [f.scaled(float(c), float(s)) for f, c, s in zip(features, centers, scales, strict=True)]


def _standard(step: StandardScaler, features: Sequence[Feature]) -> list[Feature]:
    return _scale(features, step.mean_ if step.with_mean else None, step.scale_)


def _robust(step: RobustScaler, features: Sequence[Feature]) -> list[Feature]:
    return _scale(features, step.center_, step.scale_)


def _minmax(step: MinMaxScaler, features: Sequence[Feature]) -> list[Feature]:
    _refuse_clipping(step)
    return _scale(features, -step.min_ / step.scale_, 1 / step.scale_)


def _maxabs(step: MaxAbsScaler, features: Sequence[Feature]) -> list[Feature]:
    _refuse_clipping(step)
    return _scale(features, None, step.scale_)


def _refuse_clipping(step: Any) -> None:
    if getattr(step, "clip", False):
        raise refusal(step, "clip=True is no straight line; fit it with clip=False")


def _impute(step: SimpleImputer, features: Sequence[Feature]) -> list[Feature]:
    if step.add_indicator:
        raise refusal(step, "add_indicator=True is not supported; fit it without")
    if not is_missing(step.missing_values):
        raise refusal(step, f"missing_values={step.missing_values!r} is not supported; use nan")
    filled = []
    for feature, value in zip(features, step.statistics_.tolist(), strict=True):
        if is_missing(value):
            raise refusal(step, f"column {feature.column.name!r} had no values at all; leave it out")
        if feature.is_number and feature.column.fill is None:
            # A step before this one may have scaled the column: its fill is told in the column's own units.
            own = value if isinstance(value, str) else value / feature.slope + feature.center
            feature = replace(feature, column=replace(feature.column, fill=own))
        filled.append(feature)
    return filled


def _one_hot(step: OneHotEncoder, features: Sequence[Feature]) -> list[Feature]:
    check_categories(step)
    drop = [None] * len(features) if step.drop_idx_ is None else list(step.drop_idx_)
    made = []
    for feature, values, dropped in zip(features, step.categories_, drop, strict=True):
        if not feature.is_number or (feature.slope, feature.center) != (1.0, 0.0):
            raise refusal(step, f"column {feature.column.name!r} is changed before it; encode it as it is")
        known = tuple(_plain(value) for value in values.tolist())
        column = CategoryColumn(
            feature.column.name,
            feature.column.index,
            known,
            fill=feature.column.fill,
            knows_all=step.handle_unknown == "error",
        )
        made += [Feature(column, value) for j, value in enumerate(known) if j != dropped]
    return made


def check_categories(step: OneHotEncoder) -> None:
    """Refuse what an indicator of a column's values cannot say."""
    rare = getattr(step, "infrequent_categories_", None)
    if rare is not None and any(values is not None for values in rare):
        raise refusal(step, "min_frequency and max_categories are not supported; fit it without")
    if any(sum(map(is_missing, values.tolist())) > 1 for values in step.categories_):
        raise refusal(step, "it tells None from NaN, which both are missing values; use one of them")


def _plain(value: Any) -> Any:
    return None if is_missing(value) else value


def _identity(step: FunctionTransformer, features: Sequence[Feature]) -> list[Feature]:
    if step.func is not None:
        raise refusal(step, "its function is code; apply it to the table instead")
    return list(features)


_RULES: dict[type, Callable[[Any, Sequence[Feature]], list[Feature]]] = {
    StandardScaler: _standard,
    MinMaxScaler: _minmax,
    MaxAbsScaler: _maxabs,
    RobustScaler: _robust,
    SimpleImputer: _impute,
    OneHotEncoder: _one_hot,
    ColumnTransformer: _columns,
    Pipeline: _pipeline,
    FunctionTransformer: _identity,
}
