"""Features of a fitted ranker as formulas of the columns of its table.

The steps of a scikit-learn pipeline are folded into them, so that each feature is a formula of one column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from scipy import sparse
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
from apexrank.io.encode import LinearFeatures
from apexrank.io.read import as_table
from apexrank.io.table_ranker import TableRanker
from apexrank.io.types import Category, Column
from apexrank.validation import is_missing

_REASONS = {
    "PushBoost": "its rounds are trees or other estimators, not coefficients",
    "LetorRanker": "its scores include trees; linear and additive rankers can be exported",
    "CurvesAndTrees": "its scores include trees; export its curves_",
    "TreeRanker": "its scores are sums over trees; linear and additive rankers can be exported",
    "TwoStagePush": "it ranks twice; export its first_ and second_",
    "UnknownLinkRegressor": "its predictions pass through a fitted link",
    "QueryNormalizer": "it scales inside each group, which needs all rows of the group",
}
_WHOLE = re.compile(r"-?\d+")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d+)?")


@dataclass(frozen=True)
class TableColumn:
    """Column of the table: numeric, or categorical if there are ``values``.

    Parameters
    ----------
    name, index : str, int
        Its name and its position among the model's columns.
    fill : value, optional
        Replacement of a missing value.
    values : tuple
        The known categories; None stands for missing values if they are a category.
    as_text : bool
        Whether categories are compared as text without surrounding blanks, 1.0 like 1, as in tables.
    knows_all, needs_value : bool
        Whether the model rejects unknown categories, or missing values.
    shares : tuple of (value, share)
        Features of an unknown value: 1 for `OTHER` if the model has such a level, else those of an average row.
    date : str
        The date column from which this column is computed.
    """

    name: str
    index: int
    fill: Any = None
    values: tuple[Any, ...] = ()
    as_text: bool = False
    knows_all: bool = False
    needs_value: bool = False
    shares: tuple[tuple[Any, float], ...] = ()
    date: str = ""

    def of(self, X: Any) -> np.ndarray:
        """The column of a frame by name, or of an array by position."""
        if hasattr(X, "columns"):
            if self.name not in list(X.columns):
                raise InputError(f"the table has no column {self.name!r}")
            return np.asarray(X[self.name])
        if X.ndim != 2 or X.shape[1] <= self.index:
            raise InputError(
                f"X must have rows and at least {self.index + 1} columns, got the shape {X.shape}"
            )
        return X[:, self.index]


class _Other:
    """Level of rare and unknown values."""

    def __repr__(self) -> str:
        return "other"


OTHER = _Other()


@dataclass(frozen=True)
class Feature:
    """``(u − center)/scale``, where u is a column's number or the indicator of one of its values.

    Examples
    --------
    >>> age = Feature(TableColumn("age", 0)).scaled(40.0, 10.0)
    >>> age.slope, age.center, age.label
    (0.1, 40.0, 'age')
    """

    column: TableColumn
    value: Any = None
    center: float = 0.0
    scale: float = 1.0

    @property
    def slope(self) -> float:
        """Change of the feature when u grows by one."""
        return 1.0 / self.scale

    @property
    def is_number(self) -> bool:
        """Whether u is the column's number."""
        return not (self.column.values or self.column.shares)

    @property
    def label(self) -> str:
        """Display name."""
        if self.is_number:
            return self.column.name
        return f"{self.column.name}={'missing' if self.value is None else self.value}"

    def scaled(self, center: float, scale: float) -> Feature:
        """The feature minus ``center``, divided by ``scale``."""
        moved = self.center + center * self.scale
        return replace(self, center=moved, scale=self.scale * scale)

    def read(self, X: Any, *, gaps: bool = False) -> np.ndarray:
        """Values u of the rows of an array or a frame; a missing number without a fill value is NaN, or an error."""
        values, name, fill = self.column.of(X), self.column.name, self.column.fill
        if not self.is_number:
            known = (fill if is_missing(value) else value for value in values.tolist())
            return np.array([value == self.value for value in known], dtype=float)
        try:
            numbers = values.astype(float)
        except (TypeError, ValueError):
            raise InputError(f"column {name!r} holds something other than numbers: correct it") from None
        missing = np.isnan(numbers)
        if missing.any() and not (gaps and fill is None):
            if fill is None:
                raise InputError(
                    f"column {name!r} has no value in row {int(missing.argmax()) + 1}; fill it in, "
                    "or put a SimpleImputer into the pipeline"
                )
            numbers[missing] = fill
        return numbers


def model_features(model: Any, feature_names: Sequence[str] | None = None) -> list[Feature]:
    """Features that the ranker at the end of a model receives, as formulas of the table's columns."""
    if isinstance(model, TableRanker):
        if feature_names is not None:
            raise InputError("the model knows the names of its columns: leave out `feature_names`")
        return _table_features(model)
    names = _column_names(model, feature_names)
    features = [Feature(TableColumn(name, j)) for j, name in enumerate(names)]
    return follow(model[:-1], features) if isinstance(model, Pipeline) else features


def found(model: Any) -> Any:
    """Best estimator of a search, or the model itself."""
    return getattr(model, "best_estimator_", model)


def last_step(model: Any) -> Any:
    """Ranker at the end of a model."""
    model = found(model)
    if isinstance(model, TableRanker):
        return model.estimator
    return found(model.steps[-1][1]) if isinstance(model, Pipeline) else model


def first_fitted(model: Any) -> Any:
    """First step of a pipeline that was fitted on X, skipping "passthrough"."""
    if not isinstance(model, Pipeline):
        return model
    return first_fitted(next(step for _, step in model.steps if not is_placeholder(step)))


def is_placeholder(step: Any) -> bool:
    """Whether a step is "passthrough", None or "drop" instead of an estimator."""
    return step is None or isinstance(step, str)


def refusal(step: Any, advice: str) -> InputError:
    """Create the error for a step or estimator that cannot be exported, with the reason."""
    name = type(step).__name__
    return InputError(f"{name} cannot be exported: {_REASONS.get(name, advice)}")


def _column_names(model: Any, given: Sequence[str] | None) -> list[str]:
    """Validated column names of X: those given, or those of the frame that the model was fitted on."""
    first = first_fitted(model)
    known = getattr(first, "feature_names_in_", None)
    if isinstance(given, str):
        raise InputError(f"`feature_names` must be a list of names, got the text {given!r}")
    names = [str(name) for name in (known if given is None and known is not None else given or ())]
    if not names:
        raise InputError(
            "the model was fitted on an array, whose columns have no names: give them as `feature_names`"
        )
    if len(names) != first.n_features_in_:
        raise InputError(f"`feature_names` has {len(names)} names, the model {first.n_features_in_} columns")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"`feature_names` has {twice!r} twice: columns need different names")
    return names


def _table_features(model: TableRanker) -> list[Feature]:
    """Features of the encoder of a model file."""
    if model.training.get("scale") == "query":
        raise InputError(
            "a model with `scale='query'` cannot be exported: scaling inside a group takes all rows of the group"
        )
    features: list[Feature] = []
    encoder: Any = model.encoder
    if not isinstance(encoder, LinearFeatures):
        return [Feature(_typed(index, column)) for index, column in enumerate(encoder.columns)]
    for index, column in enumerate(encoder.columns):
        gap = (None,) * column.missing
        date = column.name if column.kind == "date" else ""
        if not isinstance(column, Category):
            fills = column.fill or (None,) * len(column.parts)
            features += [
                Feature(TableColumn(name, index, fill, date=date))
                for name, fill in zip(column.parts, fills, strict=True)
            ]
            features += [Feature(TableColumn(column.name, index, values=gap, date=date))] * column.missing
            continue
        levels = (*column.values, *(OTHER,) * column.other, *gap)
        known = TableColumn(
            column.name,
            index,
            values=(*column.values, *gap),
            as_text=True,
            needs_value=column.required,
            shares=tuple(
                (value, share) for value, share in zip(levels, column.fill or (), strict=True) if share
            ),
        )
        features += [Feature(known, value) for value in levels]
    return _scaled(features, encoder.center, encoder.scale)


def _typed(index: int, column: Column) -> TableColumn:
    """A column that the ranker takes as it is."""
    of_text, date = isinstance(column, Category), column.name * (column.kind == "date")
    return TableColumn(column.name, index, as_text=of_text, needs_value=column.required, date=date)


def check_no_dates(columns: Iterable[TableColumn], what: str) -> None:
    """Raise InputError if the model splits dates into parts, which other languages do differently."""
    for column in columns:
        if column.date:
            raise InputError(
                f"column {column.date!r} holds dates, and {what} models take numbers and categories only: fit without "
                f"it (`drop=[{column.date!r}]`), or replace it by numbers such as its year and month"
            )


def raw_matrix(model: Any, features: Sequence[Feature], X: Any) -> np.ndarray:
    """Unscaled features u of the rows of X: numbers in the original units, and indicators."""
    if isinstance(model, TableRanker):
        encoder: Any = model.encoder
        return encoder.raw(as_table(X))
    if not hasattr(X, "columns"):
        X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return np.column_stack([feature.read(X) for feature in features])


# ---------------------------------------------------------------- spellings of categories


def spellings(value: str, values: Collection[str] = ()) -> list[str]:
    """Alternative spellings of a category, one of ``values``: 3 as 3.0, and true as 1 if all values are booleans.

    Examples
    --------
    >>> spellings("3"), spellings("Oslo"), spellings("1e16")
    (['3', '3.', '3.0', '3.00'], ['Oslo'], ['1e16', '1e+16'])
    >>> spellings("true", ["false", "true"])
    ['true', '1', 'True']
    """
    if are_booleans(values):
        ways = [value, str(int(value.lower() == "true")), value.capitalize()]
    elif is_whole(value):
        ways = [value, f"{value}.", f"{value}.0", f"{value}.00"]
    else:
        number = as_number(value)
        ways = [value] if number is None else [value, repr(number)]
    return list(dict.fromkeys(ways))


def are_booleans(values: Collection[str]) -> bool:
    """Whether the values are the words true and false."""
    words = {value.lower() for value in values}
    return bool(words) and words <= {"true", "false"} and len(words) == len(values)


def is_whole(value: str) -> bool:
    """Whether a text is a whole number."""
    return _WHOLE.fullmatch(value) is not None


def as_number(value: str) -> float | None:
    """Parse a number as a numeric column would hold it; None for texts such as 007 and integers beyond 2**53.

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


# ---------------------------------------------------------------- steps of pipelines


def follow(step: Any, features: Sequence[Feature]) -> list[Feature]:
    """Features after a fitted step.

    Raises
    ------
    InputError
        If the step has no linear form; the message names the step.

    Examples
    --------
    >>> scaler = StandardScaler().fit([[1.0], [3.0]])
    >>> [(f.slope, f.center) for f in follow(scaler, [Feature(TableColumn("x", 0))])]
    [(1.0, 2.0)]
    """
    if is_placeholder(step):
        return [] if step == "drop" else list(features)
    if type(step) not in _RULES:
        known = ", ".join(kind.__name__ for kind in _RULES if kind is not FunctionTransformer)
        raise refusal(step, f"use {known}")
    return _RULES[type(step)](step, features)


def _pipeline(step: Pipeline, features: Sequence[Feature]) -> list[Feature]:
    for _, part in step.steps:
        features = follow(part, features)
    return list(features)


def _columns(step: ColumnTransformer, features: Sequence[Feature]) -> list[Feature]:
    # Columns may be given by name, index, slice, mask or function; fit has converted them to indices.
    places = step._transformer_to_input_indices
    made: dict[str, list[Feature]] = {}
    for name, part, _ in step.transformers_:
        own = [features[j] for j in places[name]]
        made[name] = follow(part, own) if own else []  # a step without columns was never fitted
    ordered = sorted(step.output_indices_.items(), key=lambda item: item[1].start)
    return [feature for name, _ in ordered for feature in made.get(name, [])]


def _scale(step: Any, features: Sequence[Feature]) -> list[Feature]:
    center, scale = None, step.scale_
    if getattr(step, "clip", False):
        raise refusal(step, "`clip=True` is not a straight line; fit it with `clip=False`")
    if isinstance(step, MinMaxScaler):
        center, scale = -step.min_ / step.scale_, 1 / step.scale_
    elif isinstance(step, RobustScaler):
        center = step.center_
    elif isinstance(step, StandardScaler) and step.with_mean:
        center = step.mean_
    return _scaled(features, center, scale)


def _scaled(features: Sequence[Feature], center: Any, scale: Any) -> list[Feature]:
    centers = np.zeros(len(features)) if center is None else center
    scales = np.ones(len(features)) if scale is None else scale
    return [f.scaled(float(c), float(s)) for f, c, s in zip(features, centers, scales, strict=True)]


def _impute(step: SimpleImputer, features: Sequence[Feature]) -> list[Feature]:
    check_imputer(step)
    if not is_missing(step.missing_values):
        raise refusal(step, f"missing_values={step.missing_values!r} is not supported; use nan")
    filled = []
    for feature, value in zip(features, step.statistics_.tolist(), strict=True):
        if feature.is_number and feature.column.fill is None:
            # An earlier step may have scaled the column: convert the fill value to the column's own units.
            own = value if isinstance(value, str) else value * feature.scale + feature.center
            feature = replace(feature, column=replace(feature.column, fill=own))
        filled.append(feature)
    return filled


def check_imputer(step: SimpleImputer) -> None:
    """Raise InputError for an imputer that adds features or drops columns."""
    if step.add_indicator:
        raise refusal(step, "`add_indicator=True` is not supported; fit without it")
    for j, value in enumerate(step.statistics_.tolist()):
        if is_missing(value):
            name = getattr(step, "feature_names_in_", range(j + 1))[j]
            raise refusal(step, f"column {name!r} had no values at all; leave it out")


def _one_hot(step: OneHotEncoder, features: Sequence[Feature]) -> list[Feature]:
    check_categories(step)
    made = []
    for j, feature in enumerate(features):
        if not feature.is_number or (feature.center, feature.scale) != (0.0, 1.0):
            raise refusal(step, f"column {feature.column.name!r} is changed before it; encode it as it is")
        known = tuple(None if is_missing(value) else value for value in step.categories_[j].tolist())
        column = replace(feature.column, values=known, knows_all=step.handle_unknown == "error")
        made += [Feature(column, known[k]) for k in kept_categories(step, j)]
    return made


def kept_categories(step: OneHotEncoder, j: int) -> list[int]:
    """Indices of the categories of column j that are not dropped."""
    dropped = None if step.drop_idx_ is None else step.drop_idx_[j]
    return [k for k in range(len(step.categories_[j])) if k != dropped]


def check_categories(step: OneHotEncoder) -> None:
    """Raise InputError for encodings other than one indicator per category."""
    rare = getattr(step, "infrequent_categories_", None)
    if rare is not None and any(values is not None for values in rare):
        raise refusal(step, "min_frequency and max_categories are not supported; fit it without")
    if any(sum(map(is_missing, values.tolist())) > 1 for values in step.categories_):
        raise refusal(step, "it treats None and NaN as different missing values; use one of them")


def _identity(step: FunctionTransformer, features: Sequence[Feature]) -> list[Feature]:
    if step.func is not None:
        raise refusal(step, "its function is code; apply it to the table instead")
    return list(features)


_RULES: dict[type, Callable[[Any, Sequence[Feature]], list[Feature]]] = {
    **dict.fromkeys((StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler), _scale),
    SimpleImputer: _impute,
    OneHotEncoder: _one_hot,
    ColumnTransformer: _columns,
    Pipeline: _pipeline,
    FunctionTransformer: _identity,
}
