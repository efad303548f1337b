"""Encode tables as feature matrices, new rows the same way as training rows.

scikit-learn's ColumnTransformer lacks what is needed here: errors that name the line of a bad value, imputation by the
median of weighted rows, statistics merged over the parts of a file, and an encoding that a model file holds as data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from apexrank.errors import InputError, quoted
from apexrank.io.columns import numbers, refuse_row, texts, word_balance
from apexrank.io.tables import Table

MAX_CATEGORIES = 1000
IMPUTERS = ("median", "mean")
SCALERS = ("standard", "minmax", "none")
MOST_VALUES, KEPT_VALUES = 2**17, 2**15  # of a column, for its median, where it is read in parts
_MISSING = "the value is missing; fill it in, or fit with --impute median"


def check_encoding(impute: str | None, scale: str) -> None:
    """Raise InputError for an unknown imputation or scaling."""
    if impute is not None and impute not in IMPUTERS:
        raise InputError(f"unknown imputation {impute!r}: use one of {', '.join(IMPUTERS)}")
    if scale not in SCALERS:
        raise InputError(f"unknown scale {scale!r}: use one of {', '.join(SCALERS)}")


@dataclass(frozen=True)
class Number:
    """One feature: the column's value; a missing one becomes ``fill`` when that is given."""

    name: str
    fill: float | None = None
    kind: ClassVar[str] = "number"

    @property
    def features(self) -> list[str]:
        """Names of the features this column becomes."""
        return [self.name]

    def parse(self, table: Table, advice: str | None = None) -> np.ndarray:
        """Read the column; a missing number is NaN, or an error if there is no value to fill it with.

        ``advice`` is for a value that is not a number, by default what can be done about training rows.
        """
        name = self.name
        training = (
            f"one-hot encode the column (--categorical {name}), leave it out (--drop {name}) or correct it"
        )
        values = numbers(table, name, f"; {training}" if advice is None else advice)
        if self.fill is None:
            refuse_row(table, self.name, np.isnan(values), _MISSING)
        return values

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Turn parsed values into one column of features."""
        filled = values if self.fill is None else np.where(np.isnan(values), self.fill, values)
        return filled[:, None]


@dataclass(frozen=True)
class Category:
    """One feature per known value: 1 where the column has it, else 0.

    A value never met in training is none of them; so is a missing one, where ``fill`` allows it.
    """

    name: str
    values: tuple[str, ...]
    fill: bool = False
    kind: ClassVar[str] = "category"

    @property
    def features(self) -> list[str]:
        """Names of the features this column becomes."""
        return [f"{self.name}={value}" for value in self.values]

    def parse(self, table: Table, advice: str | None = None) -> pl.Series:
        """Read the column; a missing text is null, or an error."""
        text = texts(table, self.name)
        if not self.fill:
            refuse_row(table, self.name, text.is_null().to_numpy(), _MISSING)
        return text

    def encode(self, text: pl.Series) -> np.ndarray:
        """Turn parsed texts into indicators, one column per known value."""
        codes = text.replace_strict(list(self.values), list(range(len(self.values))), default=-1)
        return (codes.to_numpy()[:, None] == np.arange(len(self.values))).astype(np.float64)

    def unknown(self, table: Table) -> list[str]:
        """Return the values of the column that training did not have."""
        found = texts(table, self.name).drop_nulls().unique().sort()
        return [value for value in found if value not in self.values]


Column = Number | Category
KINDS: dict[str, type[Number] | type[Category]] = {kind.kind: kind for kind in (Number, Category)}


class NumberStats(NamedTuple):
    """Mergeable summary of a column of numbers: moments, range, and a sample for the median.

    ``n`` and ``missing`` are the weights of the rows with and without a value. ``values`` with ``weights`` are there
    for the median, where one is wanted: all values, or where parts are merged up to 131,072 of them (2 MiB), then
    evenly spaced ones of the sorted values.
    """

    n: float
    missing: float
    mean: float
    squares: float
    low: float
    high: float
    values: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, column: np.ndarray, weight: np.ndarray | None = None, *, sampled: bool = True) -> NumberStats:
        """Summarise a column, NaN where a value is missing; weights count as repetitions."""
        weight = np.ones(len(column)) if weight is None else weight
        is_given = ~np.isnan(column) & (weight > 0)
        given, weights, nothing = column[is_given], weight[is_given], np.empty(0)
        missing = float(weight[np.isnan(column)].sum())
        if not given.size:
            return cls(0.0, missing, 0.0, 0.0, np.inf, -np.inf, nothing, nothing)
        n = float(weights.sum())
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(weights @ given) / n
            squares = float(weights @ (given - mean) ** 2)
        limits = float(given.min()), float(given.max())
        return cls(n, missing, mean, squares, *limits, *((given, weights) if sampled else (nothing, nothing)))

    def __or__(self, other: NumberStats) -> NumberStats:
        """Statistics of the rows of both."""
        n = self.n + other.n
        with np.errstate(over="ignore", invalid="ignore"):
            step, share = other.mean - self.mean, other.n / n if n else 0.0
            mean = self.mean + step * share
            squares = self.squares + other.squares + step**2 * self.n * share
        sample = _thinned(
            np.concatenate([self.values, other.values]), np.concatenate([self.weights, other.weights])
        )
        limits = min(self.low, other.low), max(self.high, other.high)
        return NumberStats(n, self.missing + other.missing, mean, squares, *limits, *sample)

    def fill(self, impute: str) -> float:
        """Return the mean, or the weighted median: that of rows repeated as often as their weights say."""
        if impute == "mean":
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
        """Return center and scale of the column with missing values filled; a constant column becomes 0."""
        if scale == "none":
            return 0.0, 1.0
        whole = self
        if self.missing and fill is not None:
            whole = self | NumberStats.of(np.array([fill]), sampled=False)._replace(n=self.missing)
        width = whole.high - whole.low
        center, spread = whole.low, width
        if scale == "standard":
            with np.errstate(over="ignore", invalid="ignore"):
                center, spread = whole.mean, float(np.sqrt(whole.squares / whole.n))
        return center, spread if width > 0 else 1.0


def _thinned(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(values) <= MOST_VALUES:
        return values, weights
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    middle = (np.arange(KEPT_VALUES) + 0.5) / KEPT_VALUES * below[-1]
    return values[order][np.searchsorted(below, middle)], np.full(KEPT_VALUES, below[-1] / KEPT_VALUES)


Stats = dict[str, NumberStats | set[str]]  # of a table: of its numbers, and the values of its categories


def merge_stats(a: Stats, b: Stats) -> Stats:
    """Merge the statistics of two tables."""
    return {name: found | b[name] for name, found in a.items()}  # type: ignore[operator]


def table_stats(
    table: Table,
    names: Sequence[str],
    chosen: set[str],
    impute: str | None,
    weight: np.ndarray | None = None,
    keep: dict[str, Any] | None = None,
) -> Stats:
    """Summarise columns, those ``chosen`` as categories; ``keep`` receives their parsed values."""
    found: Stats = {}
    for name in names:
        parsed: Any
        if name in chosen:
            parsed = Category(name, (), impute is not None).parse(table)
            counted = parsed if weight is None else parsed.filter(pl.Series(weight > 0))
            found[name] = values = set(counted.drop_nulls().unique())
            _check_count(table.source, name, len(values))
        else:
            parsed = Number(name, None if impute is None else 0.0).parse(table)
            found[name] = NumberStats.of(parsed, weight, sampled=impute == "median")
        if keep is not None:
            keep[name] = parsed
    return found


def _check_count(source: str, name: str, n: int) -> None:
    if n > MAX_CATEGORIES:
        raise InputError(
            f"{source} column {name!r} has {n} different values, more than {MAX_CATEGORIES}: "
            f"if they are ids or notes, --drop {name}"
        )


def one_hot_columns(names: Sequence[str], categorical: Sequence[str], balance: np.ndarray) -> set[str]:
    """Return the columns to one-hot encode: those named, and with "all" every column of words by its balance."""
    chosen = {name for name in categorical if name != "all" or "all" in names}
    for name in sorted(chosen - set(names)):
        raise InputError(f"--categorical {name}: the column is not among the features")
    if "all" in categorical:
        chosen.update(name for name, more in zip(names, balance, strict=True) if more > 0)
    return chosen


@dataclass(frozen=True)
class Encoder:
    """Columns, and the center and scale of the features they become.

    Examples
    --------
    >>> import polars as pl
    >>> table = Table(pl.DataFrame({"x": [1.0, 3.0], "city": ["Oslo", "Rome"]}))
    >>> encoder, X = Encoder.fit_transform(table, ["x", "city"], categorical=["city"])
    >>> encoder.features
    ['x', 'city=Oslo', 'city=Rome']
    >>> X.tolist()
    [[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """

    columns: tuple[Column, ...]
    center: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit_transform(
        cls,
        table: Table,
        names: Sequence[str],
        *,
        categorical: Sequence[str] = (),
        impute: str | None = None,
        scale: str = "standard",
        sample_weight: np.ndarray | None = None,
    ) -> tuple[Encoder, np.ndarray]:
        """Learn categories, fill values and scaling from the training table, and encode it.

        Parameters
        ----------
        table : Table
            Training rows.
        names : sequence of str
            Columns to use, in this order.
        categorical : sequence of str
            Those of them to one-hot encode; ``["all"]`` means every column of text.
        impute : {"median", "mean"}, optional
            What a missing number becomes. Without it a missing value is an error.
        scale : {"standard", "minmax", "none"}
            Numbers get mean 0 and standard deviation 1, or the range 0 to 1, or stay. Indicators stay.
        sample_weight : array, optional
            How many times each row counts.
        """
        check_encoding(impute, scale)
        for name in categorical:
            if name != "all":
                table.column(name)
        balance = word_balance(table, names) if "all" in categorical else np.zeros(0)
        chosen = one_hot_columns(names, categorical, balance)
        parsed: dict[str, Any] = {}
        stats = table_stats(table, names, chosen, impute, sample_weight, parsed)
        encoder = cls.of_stats(stats, names, impute, scale, table.source)
        return encoder, encoder.encode(table, parsed)

    @classmethod
    def learn(cls, table: Table, names: Sequence[str], **options: Any) -> Encoder:
        """Learn the encoding as :meth:`fit_transform` does."""
        return cls.fit_transform(table, names, **options)[0]

    @classmethod
    def of_stats(
        cls, stats: Stats, names: Sequence[str], impute: str | None, scale: str, source: str
    ) -> Encoder:
        """Make the encoder of rows with these statistics."""
        columns: list[Column] = []
        units: list[tuple[float, float]] = []
        for name in names:
            found = stats[name]
            if not (found.n if isinstance(found, NumberStats) else found):
                raise InputError(
                    f"{source} column {name!r} has no values at all: leave it out (--drop {name})"
                )
            if isinstance(found, set):
                _check_count(source, name, len(found))
                columns.append(Category(name, tuple(sorted(found)), impute is not None))
                units += [(0.0, 1.0)] * len(found)
                continue
            fill = None if impute is None else found.fill(impute)
            columns.append(Number(name, fill))
            units.append(found.scaling(fill, scale))
            if not np.isfinite(units[-1]).all():
                raise InputError(
                    f"{source} column {name!r} has values too large to scale: divide them or drop the column"
                )
        return cls(tuple(columns), *np.array(units).T.copy())

    @property
    def features(self) -> list[str]:
        """Names of the features, in the order of the matrix."""
        return [feature for column in self.columns for feature in column.features]

    @property
    def starts(self) -> np.ndarray:
        """Number of the first feature of every column."""
        widths = [len(column.features) for column in self.columns]
        return np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.intp)

    def encode(self, table: Table, parsed: dict[str, Any] | None = None) -> np.ndarray:
        """Return the feature matrix of the table's rows; unknown columns are ignored."""
        X = self.raw(table, parsed)
        with np.errstate(over="ignore", invalid="ignore"):
            X -= self.center
            X /= self.scale
        return X

    def raw(self, table: Table, parsed: dict[str, Any] | None = None) -> np.ndarray:
        """Return the features before scaling: numbers in the table's own units, and indicators.

        Columns that have been ``parsed`` before are taken out of that mapping.
        """
        X, start = np.empty((len(table), len(self.center))), 0
        for column in self.columns:
            values: Any = column.parse(table, "; correct it") if parsed is None else parsed.pop(column.name)
            features = column.encode(values)
            X[:, start : start + features.shape[1]] = features
            start += features.shape[1]
        return X

    def notes(self, table: Table) -> list[str]:
        """Return one sentence for each column with values that training did not have."""
        notes = []
        for column in self.columns:
            unknown = column.unknown(table) if isinstance(column, Category) else []
            if unknown:
                shown = quoted(unknown, 3)
                notes.append(
                    f"column {column.name!r} has values never met in training, taken as none: {shown}"
                )
        return notes
