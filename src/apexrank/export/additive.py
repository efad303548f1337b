"""The form of an additive ranker in the columns of its table: a function of each column, and of pairs of them.

Exports write it as it is. A card of bins and points has the same form, with functions that are constant in each bin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from apexrank.export.linear import Feature, TableColumn, found, last_step, model_features
from apexrank.io.table_ranker import TableRanker

CLOSE = 1e-5  # gap between knots over the column's center below which that is subtracted first


@dataclass(frozen=True, eq=False)
class Curve:
    """Function of a column of numbers u, in pieces that are straight lines.

    From ``bounds[i − 1]`` to below ``bounds[i]`` it is ``values[i] + slopes[i]·(u − bounds[i − 1])``.

    Parameters
    ----------
    column : TableColumn
        The column.
    bounds, values, slopes : arrays of shape (m,), (m + 1,), (m + 1,)
        The pieces.
    missing : float, optional
        Value where the column has none; None where the model refuses such a row.
    center : float
        Taken off u first, where the digits of the bounds would be lost otherwise.
    place, gap : int
        The feature of the model that holds u, and the one that says whether it is missing, if there is one.
    """

    column: TableColumn
    bounds: np.ndarray
    values: np.ndarray
    slopes: np.ndarray
    missing: float | None
    center: float = 0.0
    place: int = 0
    gap: int | None = None

    def __call__(self, u: np.ndarray) -> np.ndarray:
        """Value of each number; NaN stays NaN."""
        u = u - self.center
        piece = np.searchsorted(self.bounds, u, side="right")
        return self.values[piece] + self.slopes[piece] * (u - np.append(0.0, self.bounds)[piece])

    @property
    def is_constant(self) -> bool:
        """Whether it has one value, which a missing number has, too."""
        return not (
            self.slopes.any()
            or np.ptp([*self.values, self.values[0] if self.missing is None else self.missing])
        )


@dataclass(frozen=True, eq=False)
class Levels:
    """A number for each category of a column, and one for a category that has none of its own.

    ``places`` are the model's features that are 1 for a category.
    """

    column: TableColumn
    weights: dict[Any, float]
    unknown: float = 0.0
    places: tuple[int, ...] = ()


class Side(NamedTuple):
    """A feature of a pair and its knots, in units of its column less ``center``; a column of text has its levels."""

    feature: Feature
    knots: np.ndarray
    center: float
    levels: tuple[str, ...]


class Pair(NamedTuple):
    """Bilinear function of two features, 0 where one of them is missing."""

    sides: tuple[Side, Side]
    values: np.ndarray


class AdditiveForm(NamedTuple):
    """``score = intercept + Σ effect + Σ pair``."""

    effects: list[Curve | Levels]
    pairs: list[Pair]
    intercept: float

    @property
    def columns(self) -> list[TableColumn]:
        """The column of each effect."""
        return [effect.column for effect in self.effects]


def is_additive(model: Any) -> bool:
    """Whether the ranker at the end of a model has a function for each feature."""
    return hasattr(last_step(model), "shapes_")


def additive_form(model: Any, feature_names: Sequence[str] | None = None) -> AdditiveForm:
    """Write an additive ranker, a pipeline that ends in one, or a model file's ranker in its table's own units.

    Examples
    --------
    >>> from apexrank import AdditivePush
    >>> X, y = np.array([[0.0], [1.0], [2.0], [1.5]]), [0, 0, 1, 0]
    >>> model = AdditivePush(alpha=0.1).fit(X, y)
    >>> form = additive_form(model, ["age"])
    >>> form.effects[0].bounds.tolist()
    [0.0, 1.0, 1.5, 2.0]
    >>> scores = form.intercept + form.effects[0](X[:, 0])
    >>> bool(np.allclose(scores, model.decision_function(X), atol=1e-12))
    True
    """
    model = found(model)
    ranker = last_step(model)
    check_is_fitted(ranker)
    features, shapes = model_features(model, feature_names), ranker.shapes_
    effects: list[Curve | Levels] = []
    intercept = float(np.ravel(getattr(ranker, "intercept_", 0.0))[0])
    groups: dict[TableColumn, list[int]] = {}
    weights: dict[Any, float]
    for j, (feature, shape) in enumerate(zip(features, shapes, strict=True)):
        if shape.levels:
            weights = dict(zip(shape.levels, shape.values.tolist(), strict=True))
            column = replace(feature.column, values=shape.levels)
            effects.append(Levels(column, weights, shape.missing, (j,)))
        elif feature.is_number:
            effects.append(_curve(feature, shape, j, isinstance(model, TableRanker)))
        else:
            groups.setdefault(feature.column, []).append(j)
    for column, places in groups.items():
        rises = {j: _rise(features[j], shapes[j], 1.0) for j in places}
        intercept += sum(float(_at(features[j], shapes[j], 0.0)) for j in places)
        of_gaps = [k for k, e in enumerate(effects) if isinstance(e, Curve) and e.column.name == column.name]
        if (
            column.values == (None,) and isinstance(model, TableRanker) and of_gaps
        ):  # the indicator of missing numbers
            curve: Any = effects[of_gaps[0]]
            effects[of_gaps[0]] = replace(curve, missing=curve.missing + rises[places[0]], gap=places[0])
            continue
        weights = {}
        for j in places:  # a column may have been encoded twice
            weights[features[j].value] = weights.get(features[j].value, 0.0) + rises[j]
        shares = dict(column.shares)
        unknown = sum(_rise(features[j], shapes[j], shares.get(features[j].value, 0.0)) for j in places)
        effects.append(Levels(column, weights, unknown, tuple(places)))
    effects.sort(key=lambda effect: effect.column.index)
    pairs = [_pair(pair, features, shapes) for pair in ranker.pairs_]
    return AdditiveForm(effects, pairs, intercept)


def _at(feature: Feature, shape: Any, u: float) -> float:
    return float(shape(np.array(feature.slope * (u - feature.center))))


def _rise(feature: Feature, shape: Any, u: float) -> float:
    """Effect of an indicator at u beyond that at 0."""
    return _at(feature, shape, u) - _at(feature, shape, 0.0)


def _curve(feature: Feature, shape: Any, place: int, of_table: bool) -> Curve:
    """Function of a column of numbers; a table's model fills its gaps or refuses them."""
    fill, center = feature.column.fill, 0.0
    missing = (
        None if fill is None and of_table else shape.missing if fill is None else _at(feature, shape, fill)
    )
    center, knots = own_units(feature, shape.knots)
    return Curve(feature.column, *pieces(knots, shape.values), missing, center, place)


def pieces(knots: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds, values and slopes of the function that is linear between knots and constant outside.

    Examples
    --------
    >>> [part.tolist() for part in pieces(np.array([0.0, 2.0]), np.array([1.0, 2.0]))]
    [[0.0, 2.0], [1.0, 1.0, 2.0], [0.0, 0.5, 0.0]]
    """
    slopes = np.diff(values) / np.diff(knots)
    return knots, np.append(values[0], values), np.concatenate([[0.0], slopes, [0.0]])


def own_units(feature: Feature, knots: np.ndarray) -> tuple[float, np.ndarray]:
    """Center, mostly 0, and knots in the column's own units less that center, with as few digits as tell them.

    Examples
    --------
    >>> scaled = Feature(TableColumn("age", 0)).scaled(41.7, 12.3)
    >>> own_units(scaled, (np.array([18.0, 33.5, 60.0]) - 41.7) / 12.3)
    (0.0, array([18. , 33.5, 60. ]))
    """
    exact = knots / feature.slope + feature.center
    if np.diff(exact).min(initial=np.inf) < CLOSE * abs(feature.center):
        return feature.center, knots / feature.slope
    gap, eps = np.diff(knots).min(initial=np.inf), np.finfo(float).eps
    return 0.0, np.array(
        [
            _shortest(u, feature, k, min(1e-12 * gap, 8 * eps * (abs(feature.slope * u) + abs(k))))
            for u, k in zip(exact, knots, strict=True)
        ]
    )


def _shortest(u: float, feature: Feature, wanted: float, slack: float) -> float:
    """The number of fewest digits that the scaling takes to ``wanted`` but for rounding."""
    ways = (float(f"{u:.{digits}e}") for digits in range(17))
    return next((way for way in ways if abs(feature.slope * (way - feature.center) - wanted) <= slack), u)


def _pair(pair: Any, features: Sequence[Feature], shapes: Sequence[Any]) -> Pair:
    sides = []
    for j, knots in zip(pair.features, pair.knots, strict=True):
        feature, levels = features[j], shapes[j].levels
        if levels:
            column = replace(feature.column, values=levels, knows_all=True)
            sides.append(Side(replace(feature, column=column), knots, 0.0, levels))
        else:
            center, own = own_units(feature, knots)
            sides.append(Side(feature, own, center, ()))
    return Pair((sides[0], sides[1]), pair.values)
