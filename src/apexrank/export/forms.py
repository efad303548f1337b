"""Form of a fitted ranker in terms of the columns of its table, from which every export starts.

It is a sum of functions of single columns and of pairs of columns. The function of a numeric column is a straight line
in a linear ranker, piecewise linear in an additive one, and piecewise constant in a binned card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from apexrank.errors import InputError
from apexrank.export.features import OTHER, Feature, TableColumn, found, last_step, model_features, refusal
from apexrank.io import types
from apexrank.io.table_ranker import TableRanker
from apexrank.rankers.base import Graded, LinearEstimator, TwoClasses

FAR = 1e3  # distance from zero, in units of a column, beyond which its center is subtracted before scaling
CLOSE = 1e-5  # ratio of knot gap to column center below which knots stay in the units of the feature


@dataclass(frozen=True, eq=False)
class Curve:
    """Piecewise linear function of ``u = (x − center)/scale``, where x is the number in a column.

    From ``bounds[i − 1]`` to below ``bounds[i]`` it is ``values[i] + slopes[i]·(u − bounds[i − 1])``.

    Parameters
    ----------
    column : TableColumn
        The column.
    bounds, values, slopes : arrays of shape (m,), (m + 1,), (m + 1,)
        The pieces.
    missing : float, optional
        Value for a missing number; None if the model rejects such a row.
    center, scale : float
        0 and 1, unless digits would be lost: if knots are a few roundings apart, only the operations of the model place
        a number on the same side of each.
    """

    column: TableColumn
    bounds: np.ndarray
    values: np.ndarray
    slopes: np.ndarray
    missing: float | None
    center: float = 0.0
    scale: float = 1.0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Value of each number; NaN stays NaN."""
        u = (x - self.center) / self.scale
        piece = np.searchsorted(self.bounds, u, side="right")
        return self.values[piece] + self.slopes[piece] * (u - np.append(0.0, self.bounds)[piece])

    @property
    def is_line(self) -> bool:
        """Whether it is a single straight line, also for imputed values."""
        return not len(self.bounds) and (self.missing is None) == (self.column.fill is None)

    @property
    def is_constant(self) -> bool:
        """Whether it is constant, including for missing values."""
        missing = self.values[0] if self.missing is None else self.missing
        return not (self.slopes.any() or np.ptp([*self.values, missing]))


@dataclass(frozen=True, eq=False)
class Levels:
    """A number for each category of a column, and one for unknown categories."""

    column: TableColumn
    weights: dict[Any, float]
    unknown: float = 0.0


class Side(NamedTuple):
    """A feature of a pair and its knots in the units of a `Curve`.

    A text column has the knot of each level, and that of unknown values, NaN if they count as missing.
    """

    feature: Feature
    knots: np.ndarray
    center: float
    scale: float
    levels: dict[Any, float]
    unknown: float = np.nan


class Pair(NamedTuple):
    """Bilinear function of two features, 0 if either is missing."""

    sides: tuple[Side, Side]
    values: np.ndarray


class Form(NamedTuple):
    """``score = intercept + Σ effect + Σ pair``."""

    effects: list[Curve | Levels]
    pairs: list[Pair]
    intercept: float

    @property
    def columns(self) -> list[TableColumn]:
        """Column of each effect."""
        return [effect.column for effect in self.effects]


class LinearForm(NamedTuple):
    """``score = intercept + Σ_j weight_j·(u_j − center_j)`` over the features u of a table's columns."""

    features: tuple[Feature, ...]
    weights: np.ndarray
    intercept: float

    def form(self, of_table: bool) -> Form:
        """Express the features as functions of their columns."""
        lines = [_Line(w * f.scale) for f, w in zip(self.features, self.weights.tolist(), strict=True)]
        return _sum(self.features, lines, self.intercept, of_table)


class _Line(NamedTuple):
    """Contribution of a feature to the score of a linear ranker."""

    coef: float
    levels: tuple[str, ...] = ()

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return self.coef * x


def is_additive(model: Any) -> bool:
    """Whether the ranker at the end of a model has a function per feature."""
    return hasattr(last_step(model), "shapes_")


def coefficients(ranker: Any) -> tuple[np.ndarray, float]:
    """Coefficients and intercept of a fitted linear ranker; raise InputError for anything else."""
    check_linear(ranker)
    check_is_fitted(ranker)
    if not hasattr(ranker, "coef_"):
        raise refusal(ranker, "with a kernel its scores are not linear; fit it with `kernel=None`")
    return np.ravel(ranker.coef_).astype(float), _intercept(ranker)


def is_linear(kind: type) -> bool:
    """Whether a class is a linear ranker of this library; the predictions of its regressors are not linear."""
    return issubclass(kind, LinearEstimator) and issubclass(kind, TwoClasses | Graded)


def check_linear(ranker: Any) -> None:
    """Raise InputError unless ``ranker`` is a linear ranker of this library."""
    if not is_linear(type(ranker)):
        raise refusal(ranker, "it is not a linear ranker of this library")


def _intercept(ranker: Any) -> float:
    return float(np.ravel(getattr(ranker, "intercept_", 0.0))[0])


def linear_form(model: Any, feature_names: Sequence[str] | None = None) -> LinearForm:
    """Express a fitted linear ranker, a pipeline that ends in one, or the ranker of a model file as a linear form.

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
    coef, intercept = coefficients(last_step(model))
    features = model_features(model, feature_names)
    if len(features) != len(coef):
        raise InputError(
            f"the steps before the ranker make {len(features)} features, but it has {len(coef)} coefficients"
        )
    return LinearForm(tuple(features), coef * [feature.slope for feature in features], intercept)


def model_form(model: Any, feature_names: Sequence[str] | None = None) -> Form:
    """Express a ranker, pipeline, model file's ranker or scorecard in the original units of its table.

    Examples
    --------
    >>> from apexrank import AdditiveRanker
    >>> X, y = np.array([[0.0], [1.0], [2.0], [1.5]]), [0, 0, 1, 0]
    >>> model = AdditiveRanker(alpha=0.1).fit(X, y)
    >>> form = model_form(model, ["age"])
    >>> form.effects[0].bounds.tolist()
    [0.0, 1.0, 1.5, 2.0]
    >>> scores = form.intercept + form.effects[0](X[:, 0])
    >>> bool(np.allclose(scores, model.decision_function(X), atol=1e-12))
    True
    """
    if hasattr(model, "points_form"):
        return model.points_form
    model = found(model)
    of_table = isinstance(model, TableRanker)
    if not is_additive(model):
        return linear_form(model, feature_names).form(of_table)
    ranker = last_step(model)
    check_is_fitted(ranker)
    features, shapes = model_features(model, feature_names), ranker.shapes_
    form = _sum(features, shapes, _intercept(ranker), of_table)
    return form._replace(pairs=[_pair(pair, features, shapes) for pair in ranker.pairs_])


def _sum(features: Sequence[Feature], shapes: Sequence[Any], intercept: float, of_table: bool) -> Form:
    """Sum functions of features into functions of the columns of a table or array."""
    effects: list[Curve | Levels] = []
    groups: dict[TableColumn, list[int]] = {}
    for j, (feature, shape) in enumerate(zip(features, shapes, strict=True)):
        if shape.levels:
            effects.append(_levels(feature.column, shape))
        elif feature.is_number:
            effects.append(_curve(feature, shape))
        else:
            groups.setdefault(feature.column, []).append(j)
    for column, places in groups.items():
        rises = {j: _rise(features[j], shapes[j], 1.0) for j in places}
        intercept += sum(_at(features[j], shapes[j], 0.0) for j in places)
        if column.values == (None,) and of_table:  # indicator of missing numbers
            _add_gap(effects, column, rises[places[0]])
            continue
        weights: dict[Any, float] = {}
        for j in places:  # a column may have been encoded twice
            weights[features[j].value] = weights.get(features[j].value, 0.0) + rises[j]
        shares = dict(column.shares)
        unknown = sum(_rise(features[j], shapes[j], shares.get(features[j].value, 0.0)) for j in places)
        effects.append(Levels(column, weights, unknown))
    effects.sort(key=lambda effect: effect.column.index)
    return Form(effects, [], intercept)


def _levels(column: TableColumn, shape: Any) -> Levels:
    """Function of a text column; missing values are unknown ones, unless rare and unknown values have a level."""
    weights, unknown = _by_level(column, shape.levels, shape.values), shape.missing
    if OTHER in weights:
        unknown = weights[OTHER]
        weights[None] = shape.missing
    values = tuple(value for value in weights if value is not OTHER)
    return Levels(replace(column, values=values), weights, unknown)


def _by_level(column: TableColumn, levels: Sequence[str], values: np.ndarray) -> dict[Any, float]:
    """The value of each level; in a table, that of rare and unknown values is last."""
    found: dict[Any, float] = dict(zip(levels, values.tolist(), strict=True))
    if column.as_text and types.OTHER in found:
        found[OTHER] = found.pop(types.OTHER)
    return found


def _add_gap(effects: list[Curve | Levels], column: TableColumn, rise: float) -> None:
    """Add the effect of an indicator of missing numbers to the function of its column."""
    for k, effect in enumerate(effects):
        if isinstance(effect, Curve) and effect.column.name == column.name:
            unfilled = replace(effect.column, fill=None)
            effects[k] = replace(effect, column=unfilled, missing=(effect.missing or 0.0) + rise)
            return
    nothing = np.zeros(1)  # a card may have points only for missing values
    effects.append(Curve(replace(column, values=()), np.empty(0), nothing, nothing, rise))


def _at(feature: Feature, shape: Any, u: float) -> float:
    return float(shape(np.array((u - feature.center) / feature.scale)))


def _rise(feature: Feature, shape: Any, u: float) -> float:
    """Effect of an indicator at u minus that at 0."""
    return _at(feature, shape, u) - _at(feature, shape, 0.0)


def _curve(feature: Feature, shape: Any) -> Curve:
    """Function of a numeric column; a linear ranker imputes missing values or rejects them."""
    fill = feature.column.fill
    missing = None if fill is None else _at(feature, shape, fill)
    if isinstance(shape, _Line):
        far, weight = abs(feature.center / feature.scale) > FAR, shape.coef / feature.scale
        start = 0.0 if far else -weight * feature.center
        line = np.empty(0), np.array([start]), np.array([weight])
        return Curve(feature.column, *line, missing, feature.center if far else 0.0)
    if fill is None and not feature.column.needs_value:
        missing = shape.missing
    center, scale, knots = own_units(feature, shape.knots)
    return Curve(feature.column, *pieces(knots, shape.values), missing, center, scale)


Pieces = tuple[np.ndarray, np.ndarray, np.ndarray]  # bounds, values and slopes


def pieces(knots: np.ndarray, values: np.ndarray) -> Pieces:
    """Bounds, values and slopes of the function that is linear between knots and constant outside.

    Examples
    --------
    >>> [part.tolist() for part in pieces(np.array([0.0, 2.0]), np.array([1.0, 2.0]))]
    [[0.0, 2.0], [1.0, 1.0, 2.0], [0.0, 0.5, 0.0]]
    """
    slopes = np.diff(values) / np.diff(knots)
    return knots, np.append(values[0], values), np.concatenate([[0.0], slopes, [0.0]])


def own_units(feature: Feature, knots: np.ndarray) -> tuple[float, float, np.ndarray]:
    """Center and scale (usually 0 and 1) and knots of ``(x − center)/scale``, with as few digits as needed.

    Examples
    --------
    >>> scaled = Feature(TableColumn("age", 0)).scaled(41.7, 12.3)
    >>> own_units(scaled, (np.array([18.0, 33.5, 60.0]) - 41.7) / 12.3)
    (0.0, 1.0, array([18. , 33.5, 60. ]))
    """
    exact = knots * feature.scale + feature.center
    if np.diff(exact).min(initial=np.inf) < CLOSE * abs(feature.center):
        return feature.center, feature.scale, knots
    gap, eps = np.diff(knots).min(initial=np.inf), np.finfo(float).eps
    return (
        0.0,
        1.0,
        np.array(
            [
                _shortest(u, feature, k, min(1e-12 * gap, 8 * eps * (abs(u / feature.scale) + abs(k))))
                for u, k in zip(exact, knots, strict=True)
            ]
        ),
    )


def _shortest(u: float, feature: Feature, wanted: float, slack: float) -> float:
    """Number with the fewest digits that the scaling maps to ``wanted`` up to rounding."""
    ways = (float(f"{u:.{digits}e}") for digits in range(17))
    return next((way for way in ways if abs((way - feature.center) / feature.scale - wanted) <= slack), u)


def _pair(pair: Any, features: Sequence[Feature], shapes: Sequence[Any]) -> Pair:
    sides = []
    for j, knots in zip(pair.features, pair.knots, strict=True):
        feature, levels = features[j], shapes[j].levels
        if levels:
            places = _by_level(feature.column, levels, knots)
            knows_all, unknown = OTHER not in places, places.pop(OTHER, np.nan)
            column = replace(feature.column, values=tuple(places), knows_all=knows_all, needs_value=True)
            sides.append(Side(replace(feature, column=column), knots, 0.0, 1.0, places, unknown))
        else:
            center, scale, own = own_units(feature, knots)
            sides.append(Side(feature, own, center, scale, {}))
    return Pair((sides[0], sides[1]), pair.values)
