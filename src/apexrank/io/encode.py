"""Encoding of tables for rankers, identical for training rows and new rows.

:class:`TypedColumns` hands the columns of :mod:`apexrank.io.types` to trees and curves as they are: one column of the
model per column of the table. :class:`LinearFeatures` turns them into features of a linear ranker: imputed and scaled
numbers, indicators of missing values, and an indicator per level. scikit-learn's ColumnTransformer lacks what is needed
here: imputation by the weighted median, and statistics merged over the parts of a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import or_
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import polars as pl
from scipy import sparse

from apexrank.errors import InputError
from apexrank.io.drift import MOST_VALUES, Profile, unlike_training
from apexrank.io.read import Table
from apexrank.io.types import Category, Cells, Column, is_rare, parse_columns
from apexrank.problem.design import Matrix

if TYPE_CHECKING:
    from apexrank.io.table_ranker import Recipe

MOST_KEPT = 2**17  # values kept for the median of a column that is read in parts
MOST_DENSE = 100  # features that are always a dense matrix


class NumberStats(NamedTuple):
    """Mergeable summary of numbers: moments, range, and a sample for the median and the deciles.

    ``n`` and ``missing`` are the weights of the rows with and without a value. ``values`` and ``weights`` are the
    sample, all values at first. If parts are merged, there are at most ``most``; then they are thinned to evenly spaced
    ones of the sorted values.
    """

    n: float
    missing: float
    mean: float
    squares: float
    low: float
    high: float
    values: np.ndarray
    weights: np.ndarray
    most: int = MOST_KEPT

    @classmethod
    def of(cls, column: np.ndarray, weight: np.ndarray | None = None, *, median: bool = True) -> NumberStats:
        """Summarise a column in which missing values are NaN; weights count as repetitions.

        Without the ``median``, a sample of evenly spaced rows is enough.
        """
        weight = np.ones(len(column)) if weight is None else weight
        is_given = ~np.isnan(column) & (weight > 0)
        given, weights = column[is_given], weight[is_given]
        n, missing = float(weights.sum()), float(weight[np.isnan(column)].sum())
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(weights @ given) / (n or 1.0)
            squares = float(weights @ (given - mean) ** 2)
        limits = float(given.min(initial=np.inf)), float(given.max(initial=-np.inf))
        if not median:
            step = -(-len(given) // MOST_VALUES) or 1
            given, weights = given[::step], weights[::step]
            weights = weights * (n / (weights.sum() or 1.0))
        return cls(n, missing, mean, squares, *limits, given, weights, MOST_KEPT if median else MOST_VALUES)

    def __or__(self, other: NumberStats) -> NumberStats:
        """Merge with the statistics of other rows."""
        n = self.n + other.n
        with np.errstate(over="ignore", invalid="ignore"):
            step, share = other.mean - self.mean, other.n / n if n else 0.0
            mean = self.mean + step * share
            # step**2 would raise OverflowError
            squares = self.squares + other.squares + step * step * self.n * share
        values, weights = (np.concatenate(pair) for pair in zip(self[6:8], other[6:8], strict=True))
        if len(values) > self.most:
            order, kept = np.argsort(values, kind="stable"), self.most // 4
            below = np.cumsum(weights[order])
            middle = (np.arange(kept) + 0.5) / kept * below[-1]
            values, weights = values[order][np.searchsorted(below, middle)], np.full(kept, below[-1] / kept)
        limits = min(self.low, other.low), max(self.high, other.high)
        return NumberStats(
            n, self.missing + other.missing, mean, squares, *limits, values, weights, self.most
        )

    def fill(self, impute: str) -> float:
        """Return the mean, or the weighted median, in which weights count as repetitions."""
        if impute == "mean" or not self.n:
            return self.mean
        if (self.weights == self.weights[0]).all():
            return float(np.median(self.values))
        order = np.argsort(self.values, kind="stable")
        below = np.cumsum(self.weights[order])
        half = below[-1] / 2
        low, high = np.searchsorted(below, half * (1 - 1e-12)), np.searchsorted(below, half * (1 + 1e-12))
        pair = self.values[order][[min(low, len(below) - 1), min(high, len(below) - 1)]]
        return float(pair[0] + (pair[1] - pair[0]) / 2)

    def scaling(self, fill: float | None, scale: str) -> tuple[float, float]:
        """Return centre and scale of the column after imputation; a constant column becomes 0."""
        if scale not in ("standard", "minmax") or not self.n:
            return 0.0, 1.0
        whole = self
        if self.missing and fill is not None:
            moments = self._replace(values=np.empty(0), weights=np.empty(0))
            whole = moments | NumberStats.of(np.array([fill]), np.array([self.missing]))
        width = whole.high - whole.low
        center, spread = whole.low, width
        if scale == "standard":
            with np.errstate(over="ignore", invalid="ignore"):
                center, spread = whole.mean, float(np.sqrt(whole.squares / whole.n))
        return center, spread if width > 0 else 1.0


# of each column: summaries of its numeric parts, or the weights of its levels, of other and of missing values
Stats = dict[str, Any]


def cell_stats(
    cells: Cells, columns: Sequence[Column], impute: str, weight: np.ndarray | None = None
) -> Stats:
    """Summarise typed values of columns."""
    stats: Stats = {}
    for column in columns:
        values = cells[column.name]
        if isinstance(column, Category):
            codes = np.nan_to_num(values, nan=len(column.values) + 1).astype(np.intp)
            stats[column.name] = np.bincount(codes, weight, len(column.values) + 2).astype(float)
        else:
            parts = column.split(values)
            stats[column.name] = [NumberStats.of(part, weight, median=impute == "median") for part in parts]
    return stats


def merge_stats(a: Stats, b: Stats) -> Stats:
    """Merge the statistics of two tables."""
    return {
        name: own + b[name] if isinstance(own, np.ndarray) else [*map(or_, own, b[name])]
        for name, own in a.items()
    }


@dataclass(frozen=True, eq=False)
class TypedColumns:
    """Columns that a ranker takes as they are, with the distributions of their training values.

    Examples
    --------
    >>> columns = TypedColumns((Category("city", ("Oslo", "Rome")),))
    >>> columns.encode(Table(pl.DataFrame({"city": ["Rome", "Lima", None]})))["city"].to_list()
    ['Rome', None, None]
    """

    columns: tuple[Column, ...]
    profiles: tuple[Profile, ...] = field(default=(), repr=False)  # one per column, or none

    @classmethod
    def learn(cls, stats: Stats, columns: Sequence[Column], recipe: Recipe, source: str) -> Self:
        """Learn from the statistics of training rows (:func:`cell_stats`)."""
        profiles = profiles_of(stats, columns)
        known = zip(columns, profiles, strict=True)
        return cls(tuple(replace(column, missing=bool(p.shares[-1])) for column, p in known), profiles)

    @classmethod
    def of_cells(
        cls,
        cells: Cells,
        columns: Sequence[Column],
        recipe: Recipe,
        source: str,
        weight: np.ndarray | None = None,
    ) -> Self:
        """Learn from the typed values of training rows."""
        return cls.learn(cell_stats(cells, columns, recipe.imputation, weight), columns, recipe, source)

    def check_state(self) -> None:
        """Raise InputError if a name is there twice, or a profile is not that of its column."""
        bins = [len(column.values) + 2 if isinstance(column, Category) else 0 for column in self.columns]
        sizes = [0 if len(profile.edges) else len(profile.shares) for profile in self.profiles]
        fits = all(size == n or (not n and size == 1) for size, n in zip(sizes, bins, strict=False))
        if not (
            fits
            and len(sizes) in (0, len(bins))
            and 0 < len(bins) == len({column.name for column in self.columns})
        ):
            raise InputError("the profiles or the names are not those of different columns")

    @property
    def features(self) -> list[str]:
        """Names of the features, in matrix order."""
        return [column.name for column in self.columns]

    @property
    def starts(self) -> np.ndarray:
        """Index of the first feature of each column."""
        return np.arange(len(self.columns))

    def encode(self, table: Table) -> Any:
        """Features of a table, for the ranker; unknown columns are ignored."""
        return self.transform(parse_columns(table, self.columns))

    def transform(self, cells: Cells) -> Any:
        """Data frame of typed values: numbers, and levels as an enumeration; values without a level are missing.

        It empties the cells, so that rows are not in memory twice.
        """
        frame = []
        for column in self.columns:
            values = cells.pop(column.name)
            if isinstance(column, Category):
                codes = pl.Series(np.where(values < len(column.levels), values, np.nan)).fill_nan(None)
                levels = pl.Series(column.name, column.levels, pl.Enum(column.levels))
                frame.append(levels.gather(codes.cast(pl.UInt32)))
            else:
                frame.append(pl.Series(column.name, values))
        return pl.DataFrame(frame)

    def mean(self, X: Any, weight: np.ndarray | None) -> np.ndarray:
        """Reference of the features in the contributions of columns: 0, as these rankers have their own."""
        return np.zeros(len(self.columns))

    def notes(self, table: Table) -> list[str]:
        """Return notes about values unlike those of training."""
        cells = parse_columns(table, self.columns)
        known = zip(self.columns, self.profiles, strict=False)
        return [note for column, p in known for note in unlike_training(column, p, cells[column.name], table)]


@dataclass(frozen=True, eq=False)
class LinearFeatures(TypedColumns):
    """Features of linear rankers, and their centre and scale.

    Examples
    --------
    >>> from apexrank.io.table_ranker import Recipe
    >>> from apexrank.io.types import Number
    >>> table = Table(pl.DataFrame({"x": [1.0, 3.0], "city": ["Oslo", "Rome"]}))
    >>> columns = [Number("x"), Category("city", ("Oslo", "Rome"))]
    >>> encoder = LinearFeatures.of_cells(parse_columns(table, columns), columns, Recipe("fraud"), "table")
    >>> encoder.features
    ['x', 'city=Oslo', 'city=Rome']
    >>> encoder.encode(table).tolist()
    [[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    >>> encoder.encode(Table(pl.DataFrame({"x": [None], "city": ["Lima"]}))).tolist()
    [[0.0, 0.5, 0.5]]
    """

    center: np.ndarray = field(default_factory=lambda: np.zeros(0))
    scale: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def check_state(self) -> None:
        """Raise InputError if the scaling, a fill value or a profile is not that of the columns."""
        super().check_state()
        filled = all(
            column.fill or (column.required and column.kind != "category") for column in self.columns
        )
        sized = len(self.center) == len(self.scale) == len(self.features)
        if not (filled and sized and (self.scale > 0).all()):
            raise InputError("the fill values or the scaling are not those of the features")

    @classmethod
    def learn(cls, stats: Stats, columns: Sequence[Column], recipe: Recipe, source: str) -> Self:
        """Learn fill values, levels for missing values and scaling. Indicators are not scaled."""
        made: list[Column] = []
        units: list[tuple[float, float]] = []
        for column in columns:
            own, more = _learnt(column, stats[column.name], recipe.imputation, recipe.scale)
            made.append(own)
            units += more
            if not (np.isfinite(more).all() and all(spread > 0 for _, spread in more)):
                raise InputError(
                    f"{source} column {column.name!r} has values too large or too small to scale: "
                    f"give them in another unit, or leave the column out (`drop=[{column.name!r}]`)"
                )
        center, spread = np.reshape(units, (-1, 2)).T.copy()
        return cls(tuple(made), profiles_of(stats, columns), center, spread)

    @property
    def features(self) -> list[str]:
        """Names of the features, in matrix order."""
        return [feature for column in self.columns for feature in column.features]

    @property
    def starts(self) -> np.ndarray:
        """Index of the first feature of each column."""
        widths = [len(column.features) for column in self.columns]
        return np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.intp)

    @property
    def is_sparse(self) -> bool:
        """Whether :meth:`encode` returns a sparse matrix: of many features, under a tenth are nonzero in a row."""
        nonzero = sum(1 if isinstance(column, Category) else len(column.features) for column in self.columns)
        return len(self.center) > max(MOST_DENSE, 10 * nonzero)

    def transform(self, cells: Cells) -> Matrix:
        """Feature matrix of typed rows, dense or CSR; empties the cells, too."""
        if not self.is_sparse:
            return self._scaled(self._raw(cells), slice(None))
        parts = []
        for column, start in zip(self.columns, self.starts, strict=True):
            part = _expanded(column, cells.pop(column.name))
            if not isinstance(column, Category):  # indicators are not scaled
                part = self._scaled(part, slice(start, start + len(column.features)))
            parts.append(sparse.csr_array(part))
        return sparse.hstack(parts, format="csr")

    def mean(self, X: Matrix, weight: np.ndarray | None) -> np.ndarray:
        """Weighted mean of each feature in training."""
        if not sparse.issparse(X):
            return np.average(X, axis=0, weights=weight)
        counts = np.ones(X.shape[0]) if weight is None else weight
        return counts @ X / counts.sum()

    def _scaled(self, X: np.ndarray, own: slice) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            X -= self.center[own]
            X /= self.scale[own]
        return X

    def raw(self, table: Table) -> np.ndarray:
        """Return the features before scaling, as a dense matrix: numbers in the original units, and indicators."""
        return self._raw(parse_columns(table, self.columns))

    def _raw(self, cells: Cells) -> np.ndarray:
        X = np.zeros((len(next(iter(cells.values()))), len(self.center)))
        for column, start in zip(self.columns, self.starts, strict=True):
            part = _expanded(column, cells.pop(column.name))
            if sparse.issparse(part):
                part = part.tocoo()
                X[part.row, start + part.col] = part.data
            else:
                X[:, start : start + part.shape[1]] = part
        return X


def _learnt(column: Column, found: Any, impute: str, scale: str) -> tuple[Column, list[tuple[float, float]]]:
    """The column with its fill values, and centre and scale of its features.

    Indicators are not scaled: divided by its standard deviation, that of a rare level would be large and hardly
    penalised.
    """
    of_levels = isinstance(column, Category)
    gaps, given = (found[-1], found[:-1].sum()) if of_levels else (found[0].missing, found[0].n)
    total = gaps + given
    missing = bool(impute != "none" and gaps > 0 and not is_rare(gaps, total))
    if isinstance(column, Category):
        rest = found[-2] + gaps * (not missing)
        column = replace(column, missing=missing, other=bool(rest > 0 and not is_rare(rest, total)))
        width = len(column.features)
        weights = np.append(found[:-2], [gaps] * missing)
        if column.other:
            weights = np.eye(width)[len(column.values)]
        return replace(column, fill=tuple((weights / weights.sum()).tolist())), [(0.0, 1.0)] * width
    fill = None if impute == "none" else tuple(part.fill(impute) for part in found)
    units = [part.scaling(None if fill is None else fill[j], scale) for j, part in enumerate(found)]
    return replace(column, fill=fill, missing=missing), units + [(0.0, 1.0)] * missing


def _expanded(column: Column, values: np.ndarray) -> Any:
    """Features of typed values before scaling; those of a category are sparse."""
    gaps = np.isnan(values)
    if not isinstance(column, Category):
        parts = np.column_stack(column.split(values))
        filled = parts if column.fill is None else np.where(gaps[:, None], column.fill, parts)
        return np.column_stack([filled, gaps]) if column.missing else filled
    width = len(column.features)
    codes = np.where(values < len(column.values), values, width)  # the last row is that of other values
    codes[gaps] = width - column.missing
    rows = [sparse.eye_array(width), sparse.csr_array(np.reshape(np.array(column.fill), (1, width)))]
    return sparse.vstack(rows, format="csr")[codes.astype(np.intp)]


def profiles_of(stats: Stats, columns: Sequence[Column]) -> tuple[Profile, ...]:
    """Distribution of the training values of each column."""
    profiles = []
    for column in columns:
        found = stats[column.name]
        if isinstance(column, Category):
            profiles.append(Profile(np.zeros(0), found / found.sum()))
        else:
            own = found[0]
            profiles.append(Profile.of_numbers(own.values, own.weights, own.missing, own.low, own.high))
    return tuple(profiles)
