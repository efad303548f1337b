"""Effects of the columns in an additive ranker, in the units of its table, with bands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from apexrank.errors import InputError
from apexrank.rankers.additive import PairShape, Shape

_SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)


class Effect(NamedTuple):
    """Effect of a column on the score.

    Attributes
    ----------
    name : str
        Name of the column.
    x : array of shape (k,)
        Values of a numeric column, or the positions 0, 1, … of the levels.
    effect : array of shape (3, k)
        Effect at each value, and the ends of its band (NaN if there is none); 0 on average over the training rows.
    knots : array
        Values between which the effect is linear; the positions of the levels.
    edges, counts : arrays
        Weight of the training rows between neighbouring edges, or at each level.
    levels : tuple of str
        Levels shown instead of numbers.
    missing : array of shape (3,) or None
        Effect of a missing value and the ends of its band; None if training had none.
    missing_count : float
        Weight of the training rows with a missing value.
    is_date : bool
        Whether ``x`` holds days since 1970.
    """

    name: str
    x: np.ndarray
    effect: np.ndarray
    knots: np.ndarray
    edges: np.ndarray
    counts: np.ndarray
    levels: tuple[str, ...] = ()
    missing: np.ndarray | None = None
    missing_count: float = 0.0
    is_date: bool = False

    @property
    def spread(self) -> float:
        """Standard deviation of the effect over the training rows, from the counts between the edges."""
        weight = np.append(self.counts, self.missing_count)
        heights = np.append(self.effect[0], 0.0 if self.missing is None else self.missing[0])
        if not self.levels:
            at = np.interp(self.edges, self.x, self.effect[0])
            middle = (at[:-1] + at[1:]) / 2 if len(at) > 1 else at
            heights = np.append(middle, heights[-1])
        if not weight.any():
            return 0.0
        mean = np.average(heights, weights=weight)
        return float(np.sqrt(np.average((heights - mean) ** 2, weights=weight)))

    @property
    def densities(self) -> np.ndarray:
        """Heights of the bars of the distribution, at most 1: rows per unit of width, or rows per level.

        A bar far higher than all others, such as that of zeros, is truncated so that the others remain visible.
        """
        heights = self.counts if self.levels else self.counts / np.diff(self.edges)
        if not self.levels and len(heights) > 2:
            second = np.sort(heights)[-2]
            heights = np.minimum(heights, 2 * second) if second > 0 else heights
        return heights / (heights.max() or 1.0)

    @property
    def window(self) -> tuple[float, float]:
        """Limits of the axis: the range of the column, cut short if its outermost part would take more than half."""
        low, high = float(self.edges[0]), float(self.edges[-1])
        if len(self.edges) > 4:
            second, last = float(self.edges[1]), float(self.edges[-2])
            reach = 0.35 * (last - second)
            if high - last > (high - low) / 2:
                high = last + reach
            elif second - low > (high - low) / 2:
                low = second - reach
        return low, high

    @property
    def shown(self) -> tuple[np.ndarray, np.ndarray]:
        """Values and effects inside the window."""
        low, high = self.window
        x = np.concatenate([[low], self.x[(self.x > low) & (self.x < high)], [high]])
        return x, np.array([np.interp(x, self.x, row) for row in self.effect])

    def main_levels(self, most: int) -> np.ndarray:
        """Positions of the ``most`` levels with the most rows, sorted by effect if there are more than two."""
        kept = np.sort(np.argsort(-self.counts, kind="stable")[:most])
        return kept[np.argsort(self.effect[0, kept], kind="stable")] if len(kept) > 2 else kept


class PairEffect(NamedTuple):
    """Joint effect of two columns, in addition to their separate effects.

    ``values`` has a row per knot or level of the first column and a column per knot or level of the second; ``texts``
    are the values there as text.
    """

    names: tuple[str, str]
    texts: tuple[list[str], list[str]]
    values: np.ndarray
    are_levels: tuple[bool, bool]

    def cells(self, number: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        """Edges of the cells of a heat map along both axes, and the effect in the middle of each.

        Knots and levels are at 0, 1, 2, …. A level has one cell, an interval between two knots ``number`` cells.
        """
        edges, values = [], self.values
        for axis, levels in enumerate(self.are_levels):
            places = np.arange(self.values.shape[axis])
            if levels or len(places) < 2:
                edges.append(np.arange(len(places) + 1) - 0.5)
                continue
            own = np.linspace(0, places[-1], number * places[-1] + 1)
            middle = (own[:-1] + own[1:]) / 2
            values = np.apply_along_axis(partial(np.interp, middle, places), axis, values)
            edges.append(own)
        return (edges[0], edges[1]), values


class Effects(NamedTuple):
    """Effects of an additive ranker: columns by decreasing importance, and pairs by decreasing size."""

    columns: list[Effect]
    pairs: list[PairEffect]

    @property
    def strongest(self) -> float:
        """Joint effect with the most intense colour: the largest, or a quarter of the largest effect of a column.

        This keeps negligible joint effects pale.
        """
        joint = max((float(np.abs(pair.values).max()) for pair in self.pairs), default=0.0)
        own = max((float(np.nanmax(np.abs(effect.effect[0]))) for effect in self.columns), default=0.0)
        return max(joint, own / 4) or 1.0


def additive_effects(
    model: Any,
    *,
    confidence: float = 0.9,
    simultaneous: bool = True,
    feature_names: Sequence[str] | None = None,
) -> Effects:
    """Effects of the columns and pairs of a fitted additive ranker, in the units of its input.

    Columns without an effect are omitted.

    Parameters
    ----------
    model : estimator, Pipeline or TableRanker
        A fitted ranker with ``shapes_``, such as `AdditiveRanker`, by itself, after a scaler, or of a table.
    confidence : float
        Probability of the bands, which `AdditiveRanker` gives with strengths by the data and the log loss.
    simultaneous : bool
        Whether a band holds the whole curve with this probability, or each of its values.
    feature_names : sequence of str, optional
        Names of the columns of X; by default those of the frame that the ranker was fitted on, or x0, x1, ….

    Examples
    --------
    >>> from apexrank.datasets import make_push_example
    >>> from apexrank.rankers import AdditiveRanker
    >>> X, y = make_push_example(500, return_X_y=True)
    >>> effects = additive_effects(AdditiveRanker().fit(X, y))
    >>> low, high = effects.columns[0].effect[1:]
    >>> bool((low < high).all())
    True
    """
    if not 0 < confidence < 1:
        raise InputError(f"`confidence` must be between 0 and 1, got {confidence!r}")
    table = model if hasattr(model, "encoder") else None
    model = getattr(model, "best_estimator_", model)
    steps = model[:-1] if isinstance(model, Pipeline) and len(model) > 1 else None
    ranker = model.estimator if table is not None else model[-1] if isinstance(model, Pipeline) else model
    if not hasattr(ranker, "shapes_"):
        raise InputError(f"{type(ranker).__name__} has no functions of columns: give a fitted AdditiveRanker")
    units = _TableUnits(table) if table is not None else _Units(ranker, steps, feature_names)
    columns = [
        units.one(shape, confidence, simultaneous)
        for shape in ranker.shapes_
        if np.append(shape.values, shape.missing).any()
    ]
    return Effects(
        sorted(columns, key=lambda effect: -effect.spread),
        sorted(map(units.pair, ranker.pairs_), key=lambda pair: -float(np.abs(pair.values).mean())),
    )


def value_text(value: float) -> str:
    """Format a value of a column, large ones without decimals and years without separators.

    Examples
    --------
    >>> value_text(30000.0), value_text(0.12345)
    ('30,000', '0.1235')
    """
    return f"{value:,.0f}" if 10_000 <= abs(value) < 1e12 else f"{value:.4g}"


def date_text(day: float) -> str:
    """Format a number of days since 1970 as a date.

    Examples
    --------
    >>> date_text(19358.0)
    '2023-01-01'
    """
    return str(np.datetime64(int(day), "D"))


def effect_limits(effects: Sequence[Effect]) -> tuple[float, float]:
    """Limits of an axis that includes all effects with their bands, and 0."""
    gaps = [effect.missing for effect in effects if effect.missing is not None]
    values = [effect.effect.ravel() for effect in effects] + gaps
    together = np.append(np.concatenate(values), 0.0)
    low, high = float(np.nanmin(together)), float(np.nanmax(together))
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


class _Units:
    """Names and units of the columns of X, before a scaler if there is one."""

    def __init__(self, ranker: Any, steps: Any = None, names: Sequence[str] | None = None) -> None:
        n = ranker.n_features_in_
        self.ranker, self.steps = ranker, steps
        given = getattr(ranker, "feature_names_in_", None)
        self.center, self.scale = np.zeros(n), np.ones(n)
        if steps is not None:
            given = getattr(steps, "feature_names_in_", None)
            if all(isinstance(step, _SCALERS) for step in steps.named_steps.values()):
                self.center = np.asarray(steps.inverse_transform(np.zeros((1, n))))[0]
                self.scale = np.asarray(steps.inverse_transform(np.ones((1, n))))[0] - self.center
            elif hasattr(steps, "get_feature_names_out"):
                given = steps.get_feature_names_out()
        given = given if names is None else names
        self.names = [f"x{j}" for j in range(n)] if given is None else [str(name) for name in given]
        # A column with fewer knots than the maximum, at equal steps, has no other values.
        self.n_knots = getattr(ranker, "n_knots", 2)

    def own(self, j: int, values: np.ndarray) -> np.ndarray:
        """Values of a feature in the column's original units."""
        found = self.center[j] + self.scale[j] * values
        # Scaling 0 there and back leaves only rounding error.
        return np.where(np.abs(found) > 1e-12 * np.abs(self.scale[j]), found, 0.0)

    def text(self, j: int, value: float) -> str:
        """Format a value of a feature."""
        return value_text(value)

    def levels(self, shape: Shape) -> tuple[str, ...]:
        """Levels of a column of text or of one or two numbers, otherwise none."""
        if shape.levels or len(shape.knots) > min(2, self.n_knots - 1):
            return shape.levels
        return tuple(value_text(value) for value in self.own(shape.feature, shape.knots))

    def one(self, shape: Shape, confidence: float, simultaneous: bool) -> Effect:
        """Effect of one feature: its levels, or a curve."""
        j, knots, levels, counts = shape.feature, shape.knots, self.levels(shape), shape.counts
        steps = np.diff(knots)
        if not shape.levels and 1 < len(knots) < self.n_knots and np.allclose(steps, steps[0]):
            counts = _masses(shape)
        at = np.append(knots, np.nan)
        found = np.vstack([shape(at), shape.band(at, confidence, simultaneous=simultaneous)])
        gaps = shape.missing_count
        missing = found[:, -1] if gaps else None
        x = edges = np.arange(len(knots)) if levels else self.own(j, knots)
        if not levels and len(counts) == len(x) > 1:
            edges = _around(x)
        return Effect(self.names[j], x, found[:, :-1], x, edges, counts, levels, missing, gaps)

    def pair(self, pair: PairShape) -> PairEffect:
        """Joint effect at its knots in the columns' original units."""
        levels = [self.levels(self.ranker.shapes_[j]) for j in pair.features]
        first, second = (
            list(names) or [self.text(j, value) for value in self.own(j, knots)]
            for j, knots, names in zip(pair.features, pair.knots, levels, strict=True)
        )
        names = (self.names[pair.features[0]], self.names[pair.features[1]])
        return PairEffect(names, (first, second), pair.values, (bool(levels[0]), bool(levels[1])))


class _TableUnits(_Units):
    """Columns of a table."""

    def __init__(self, table: Any) -> None:
        super().__init__(table.estimator, names=table.encoder.features)
        self.table, columns = table, table.encoder.columns
        # Columns scaled within queries have no units.
        in_queries = table.training["scale"] == "query"
        self.days = {j for j, column in enumerate(columns) if column.kind == "date" and not in_queries}

    def one(self, shape: Shape, confidence: float, simultaneous: bool) -> Effect:
        return super().one(shape, confidence, simultaneous)._replace(is_date=shape.feature in self.days)

    def text(self, j: int, value: float) -> str:
        return date_text(value) if j in self.days else super().text(j, value)

    def levels(self, shape: Shape) -> tuple[str, ...]:
        return tuple(level.strip() for level in super().levels(shape))


def _masses(shape: Shape) -> np.ndarray:
    """Weight at each knot of a column that has no other values.

    The last two knots are counted together. If there are no others, their shares follow from the mean effect, which is
    0; otherwise each gets half.
    """
    both, (low, high), share = float(shape.counts[-1]), shape.values[-2:], 0.5
    if len(shape.knots) == 2 and high != low and both:
        wanted = -shape.missing * shape.missing_count / both
        share = min(1.0, max(0.0, (wanted - low) / (high - low)))
    return np.append(shape.counts[:-1], [both * (1 - share), both * share])


def _around(values: np.ndarray) -> np.ndarray:
    """Edges halfway between neighbouring values, extended by the same distance at both ends."""
    middle = (values[:-1] + values[1:]) / 2
    return np.concatenate([[2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]])
