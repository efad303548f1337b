"""The linear form of a fitted ranker in the columns of its table: what all exports begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from apexrank.errors import InputError
from apexrank.export.features import CategoryColumn, Feature, NumberColumn, follow, refusal
from apexrank.io.encode import Encoder, Number
from apexrank.io.table_ranker import TableRanker
from apexrank.io.tables import Table
from apexrank.rankers.base import GradedRanker, LinearBinaryRanker

_LINEAR = (LinearBinaryRanker, GradedRanker)


class LinearForm(NamedTuple):
    """``score = intercept + Σ_j weight_j·(u_j − center_j)`` over the features u of a table's columns.

    The centres stay apart: adding them to the intercept would lose digits of columns far from zero.
    """

    features: tuple[Feature, ...]
    weights: np.ndarray
    intercept: float


def linear_form(model: Any, feature_names: Sequence[str] | None = None) -> LinearForm:
    """Write a fitted ranker, a pipeline that ends in one, or a model file's ranker as a linear form.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> from apexrank import IRPush
    >>> X, y = [[0.0], [10.0], [20.0], [15.0]], [0, 0, 1, 1]
    >>> model = make_pipeline(MinMaxScaler(), IRPush(alpha=0.1)).fit(X, y)
    >>> form = linear_form(model, ["age"])
    >>> bool(np.isclose(form.weights[0], model[-1].coef_[0, 0] / 20))
    True
    """
    model = found(model)
    if isinstance(model, TableRanker):
        if feature_names is not None:
            raise InputError("the model knows the names of its columns: leave out feature_names")
        coef, intercept = coefficients(model.estimator)
        features = table_features(model)
    else:
        steps = list(model.steps) if isinstance(model, Pipeline) else [("ranker", model)]
        coef, intercept = coefficients(last_step(model))
        names = column_names(model, feature_names)
        features = [Feature(NumberColumn(name, j)) for j, name in enumerate(names)]
        for _, step in steps[:-1]:
            features = follow(step, features)
    if len(features) != len(coef):
        raise InputError(
            f"the steps before the ranker make {len(features)} features, but it has {len(coef)} coefficients"
        )
    return LinearForm(tuple(features), coef * [feature.slope for feature in features], intercept)


def found(model: Any) -> Any:
    """The best estimator of a search, or the model itself."""
    return getattr(model, "best_estimator_", model)


def last_step(model: Any) -> Any:
    """The ranker at the end of a model."""
    model = found(model)
    if isinstance(model, TableRanker):
        return model.estimator
    return found(model.steps[-1][1]) if isinstance(model, Pipeline) else model


def coefficients(ranker: Any) -> tuple[np.ndarray, float]:
    """Coefficients and intercept of a fitted linear ranker; anything else is refused by its name."""
    check_linear(ranker)
    check_is_fitted(ranker)
    if not hasattr(ranker, "coef_"):
        raise refusal(ranker, "with a kernel its scores are not linear; fit it with kernel=None")
    intercept = getattr(ranker, "intercept_", 0.0)
    return np.ravel(ranker.coef_).astype(float), float(np.ravel(intercept)[0])


def check_linear(ranker: Any) -> None:
    """Refuse what has no coefficients, by its name."""
    if not isinstance(ranker, _LINEAR):
        raise refusal(ranker, "it is no linear ranker of this library")


def column_names(model: Any, given: Sequence[str] | None) -> list[str]:
    """Names of the columns of X, checked: those given, or those of the frame the model was fitted on."""
    first = first_fitted(model)
    known = getattr(first, "feature_names_in_", None)
    if isinstance(given, str):
        raise InputError(f"feature_names must be a list of names, got the text {given!r}")
    names = [str(name) for name in (known if given is None and known is not None else given or ())]
    if not names:
        raise InputError(
            "the model was fitted on an array, whose columns have no names: give them as feature_names"
        )
    if len(names) != first.n_features_in_:
        raise InputError(f"feature_names has {len(names)} names, the model {first.n_features_in_} columns")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"feature_names has {twice!r} twice: columns need names of their own")
    return names


def first_fitted(model: Any) -> Any:
    """The first step of a pipeline that has seen X; "passthrough" has not."""
    if not isinstance(model, Pipeline):
        return model
    return first_fitted(next(step for _, step in model.steps if not (step is None or isinstance(step, str))))


def table_features(model: TableRanker) -> list[Feature]:
    """Features of a model file, as its encoder makes them."""
    if model.training.get("scale") == "query":
        raise InputError(
            "a model with --scale query cannot be exported: it scales inside each group, which needs all its rows"
        )
    features = raw_features(model.encoder)
    centers, scales = model.encoder.center.tolist(), model.encoder.scale.tolist()
    return [feature.scaled(c, s) for feature, c, s in zip(features, centers, scales, strict=True)]


def raw_features(encoder: Encoder) -> list[Feature]:
    """Features before scaling."""
    features: list[Feature] = []
    for index, column in enumerate(encoder.columns):
        if isinstance(column, Number):
            features.append(Feature(NumberColumn(column.name, index, column.fill)))
            continue
        known = CategoryColumn(column.name, index, column.values, as_text=True, needs_value=not column.fill)
        features += [Feature(known, value) for value in column.values]
    return features


def raw_matrix(model: Any, form: LinearForm, X: Any) -> np.ndarray:
    """The features u of the rows of X: numbers in the table's own units, and indicators."""
    if isinstance(model, TableRanker):
        return model.encoder.raw(as_table(X))
    if not hasattr(X, "columns"):
        X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return np.column_stack([feature.read(X) for feature in form.features])


def as_table(X: Any) -> Table:
    """A table, from one or from a frame."""
    import polars as pl

    if isinstance(X, Table):
        return X
    return Table(X if isinstance(X, pl.DataFrame) else pl.DataFrame(X))
