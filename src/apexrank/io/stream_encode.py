"""Learn the encoding of a table from passes over some of its rows at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.io.columns import (
    _BOOLEAN_WORDS,
    _MISSING_WORDS,
    _TEXT,
    IMPUTERS,
    MAX_CATEGORIES,
    Category,
    Number,
    _advice,
    _require_values,
    numbers,
    texts,
)
from apexrank.io.encode import SCALERS, Column, Encoder, check_name
from apexrank.io.labels import _counts, positive_value
from apexrank.io.tables import Table

MOST_VALUES, KEPT_VALUES = 2**17, 2**15  # of a column, for its median


class NumberStats(NamedTuple):
    """A column of numbers, summed up so that the sums of several tables can be merged.

    ``values`` with ``weights`` are a sample for the median, where one is wanted: all values up to 131,072 of them
    (2 MiB), then evenly spaced ones of the sorted values.
    """

    n: int
    missing: int
    mean: float
    squares: float
    low: float
    high: float
    values: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, column: np.ndarray, *, sampled: bool = True) -> NumberStats:
        given = column[~np.isnan(column)]
        nothing = np.empty(0)
        if not given.size:
            return cls(0, len(column), 0.0, 0.0, np.inf, -np.inf, nothing, nothing)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(given.mean())
            squares = float(((given - mean) ** 2).sum())
        limits = float(given.min()), float(given.max())
        sample = _thinned(given, np.ones(given.size)) if sampled else (nothing, nothing)
        return cls(given.size, len(column) - given.size, mean, squares, *limits, *sample)

    def merge(self, other: NumberStats) -> NumberStats:
        n = self.n + other.n
        with np.errstate(over="ignore", invalid="ignore"):
            step = other.mean - self.mean
            mean = self.mean + step * other.n / max(n, 1)
            squares = self.squares + other.squares + step**2 * self.n * other.n / max(n, 1)
        sample = _thinned(
            np.concatenate([self.values, other.values]), np.concatenate([self.weights, other.weights])
        )
        limits = min(self.low, other.low), max(self.high, other.high)
        return NumberStats(n, self.missing + other.missing, mean, squares, *limits, *sample)

    def fill(self, impute: str) -> float:
        """The column's mean, or its median: half of the weight of the sample lies below it."""
        if impute == "mean":
            return self.mean
        order = np.argsort(self.values, kind="stable")
        below = np.cumsum(self.weights[order])
        half = below[-1] / 2
        low, high = np.searchsorted(below, half * (1 - 1e-12)), np.searchsorted(below, half * (1 + 1e-12))
        pair = self.values[order][[min(low, len(below) - 1), min(high, len(below) - 1)]]
        return float(pair[0] + (pair[1] - pair[0]) / 2)

    def scaling(self, fill: float | None, scale: str) -> tuple[float, float]:
        """Center and scale of the column with missing values filled."""
        whole = self
        if self.missing and fill is not None:
            whole = self.merge(NumberStats.of(np.array([fill]), sampled=False)._replace(n=self.missing))
        width = whole.high - whole.low
        if scale == "none":
            return 0.0, 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            found = {
                "standard": (whole.mean, np.sqrt(whole.squares / whole.n)),
                "minmax": (whole.low, width),
            }[scale]
        return float(found[0]), float(found[1] if width > 0 else 1.0)


def _thinned(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(values) <= MOST_VALUES:
        return values, weights
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    middle = (np.arange(KEPT_VALUES) + 0.5) / KEPT_VALUES * below[-1]
    return values[order][np.searchsorted(below, middle)], np.full(KEPT_VALUES, below[-1] / KEPT_VALUES)


class TableStats(NamedTuple):
    """What a pass over tables finds in their columns."""

    rows: int
    numbers: dict[str, NumberStats]
    categories: dict[str, set[str]]


WordCounts = dict[str, tuple[int, int]]


def word_counts(table: Table, names: Sequence[str]) -> WordCounts:
    """For columns of text: words that are no numbers, and all words; see :func:`apexrank.io.columns.is_text`."""
    found = {}
    for name in names:
        series = table.column(name)
        if series.dtype in _TEXT:
            words = series.cast(pl.String).str.strip_chars().str.to_lowercase().drop_nulls()
            words = words.filter(~words.is_in([*_MISSING_WORDS, *_BOOLEAN_WORDS]))
            found[name] = words.cast(pl.Float64, strict=False).null_count(), len(words)
    return found


def merge_words(a: WordCounts, b: WordCounts) -> WordCounts:
    """Word counts of the rows of both."""
    merged = dict(a)
    for name, (wrong, words) in b.items():
        before = a.get(name, (0, 0))
        merged[name] = before[0] + wrong, before[1] + words
    return merged


def target_counts(table: Table, target: str) -> Counter[str]:
    """How often each value of the target occurs; none may be missing."""
    return Counter(_counts(table, target))


def table_stats(table: Table, names: Sequence[str], chosen: set[str], impute: str | None) -> TableStats:
    """Sums over the numbers of a table, and the values of its categories, those ``chosen``."""
    found, categories = {}, {}
    for name in names:
        if name in chosen:
            categories[name] = set(texts(table, name).drop_nulls().unique())
            if impute is None:
                Category(name, ("",)).read(table)  # refuses a missing value
            if len(categories[name]) > MAX_CATEGORIES:
                raise _too_many(table.source, name, len(categories[name]))
        else:
            values = numbers(table, name, _advice(name))
            if impute is None and np.isnan(values).any():
                Number(name).read(table)
            found[name] = NumberStats.of(values, sampled=impute == "median")
    return TableStats(len(table), found, categories)


def _too_many(source: str, name: str, n: int) -> InputError:
    return InputError(
        f"{source} column {name!r} has {n} different values, more than {MAX_CATEGORIES}: "
        f"if they are ids or notes, --drop {name}"
    )


def merge_stats(a: TableStats, b: TableStats) -> TableStats:
    """What a pass over the tables of both finds."""
    return TableStats(
        a.rows + b.rows,
        {name: stats.merge(b.numbers[name]) for name, stats in a.numbers.items()},
        {name: values | b.categories[name] for name, values in a.categories.items()},
    )


def words_in(counts: WordCounts, names: Sequence[str], categorical: Sequence[str]) -> set[str]:
    """Columns to one-hot encode: those named, and with "all" every column that is of words in all tables together."""
    chosen = {name for name in categorical if name != "all" or "all" in names}
    for name in sorted(chosen - set(names)):
        raise InputError(f"--categorical {name}: the column is not among the features")
    if "all" in categorical:
        chosen |= {name for name, (wrong, words) in counts.items() if 2 * wrong > words}
    return chosen


def build_encoder(
    whole: TableStats, names: Sequence[str], impute: str | None, scale: str, source: str
) -> Encoder:
    """The encoder that :meth:`Encoder.learn` finds in all rows at once, from the sums of their tables."""
    table = Table(pl.DataFrame(), source)
    columns: list[Column] = []
    centers: list[float] = []
    scales: list[float] = []
    for name in names:
        if name in whole.categories:
            values = sorted(whole.categories[name])
            _require_values(table, name, len(values))
            if len(values) > MAX_CATEGORIES:
                raise _too_many(source, name, len(values))
            columns.append(Category(name, tuple(values), impute is not None))
            centers.extend([0.0] * len(values))
            scales.extend([1.0] * len(values))
            continue
        number = whole.numbers[name]
        _require_values(table, name, number.n)
        fill = None if impute is None else number.fill(impute)
        center, width = number.scaling(fill, scale)
        if not (np.isfinite(center) and np.isfinite(width)):
            raise InputError(
                f"{source} column {name!r} has values too large to scale: divide them or drop the column"
            )
        columns.append(Number(name, fill))
        centers.append(center)
        scales.append(width)
    return Encoder(tuple(columns), np.array(centers), np.array(scales))


def check_choices(impute: str | None, scale: str) -> None:
    """Refuse unknown names."""
    if impute is not None:
        check_name("imputation", impute, list(IMPUTERS))
    check_name("scale", scale, list(SCALERS))


def positive_of(counts: Counter[str], target: str, positive: str | None, source: str) -> str:
    """The target's positive value, from the counts of all tables."""
    values = sorted(counts, key=lambda value: (-counts[value], value))
    found: Any = Table(pl.DataFrame({target: values}), source)
    return positive_value(found, target, positive)
