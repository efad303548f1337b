"""Encoding of tables as feature matrices, identical for training rows and new rows.

The kind of a column (:func:`apexrank.io.prepare.prepare`) is kept separate from what is learned from its values: fill
values, levels and scaling. A model file stores both as data. scikit-learn's ColumnTransformer lacks features needed
here: errors that name the line of a bad value, imputation by the weighted median, and statistics merged over the parts
of a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from apexrank.errors import InputError, quoted
from apexrank.io.columns import dates, numbers, refuse_row, texts
from apexrank.io.drift import MOST_VALUES, Profile, unlike_training
from apexrank.io.read import Table
from apexrank.problem.design import Matrix
from apexrank.validation import check_choice

MAX_LEVELS = 1000  # maximum number of levels of a category
MAX_VALUES = (
    100_000  # maximum number of distinct values of a category, the most frequent of which become levels
)
IMPUTERS = ("median", "mean", "none")
SCALERS = ("standard", "minmax", "none")
MOST_KEPT, KEPT_VALUES = 2**17, 2**15  # values kept for the median of a column that is read in parts
MOST_DENSE = 100  # features that are always a dense matrix
_MISSING = "the value is missing; fill it in, or use `impute='median'`"


def check_encoding(impute: str, scale: str) -> None:
    """Raise InputError for an unknown imputation or scaling."""
    check_choice("impute", impute, IMPUTERS)
    check_choice("scale", scale, SCALERS)


def is_rare(weight: float, total: float) -> bool:
    """Return whether a value is too rare for a coefficient: fewer than 5 rows, or a tenth of the rows if under 50.

    Coefficients of fewer rows fit their labels, regardless of the penalty.

    Examples
    --------
    >>> is_rare(4, 1000), is_rare(5, 1000), is_rare(1, 10)
    (True, False, False)
    """
    return weight < min(5.0, total / 10) * (1 - 1e-9)


class _Measured:
    """Numeric column: one or several parts, and an indicator of missing values if training had enough of them."""

    name: str
    missing: bool

    @property
    def parts(self) -> list[str]:
        """Names of the numeric features."""
        raise NotImplementedError

    @property
    def fills(self) -> tuple[float, ...] | None:
        """Encoding of a missing value; None raises an error."""
        raise NotImplementedError

    @property
    def required(self) -> bool:
        """Whether a missing value is an error."""
        return self.fills is None

    def check_state(self) -> None:
        """Raise InputError if the column contradicts itself."""
        fills = self.fills
        if fills is not None and not (len(fills) == len(self.parts) and np.isfinite(fills).all()):
            raise InputError(f"column {self.name!r} has fill values that do not fit its parts")
        if (self.missing and fills is None) or not self._is_known():
            raise InputError(f"column {self.name!r} contradicts itself")

    def _is_known(self) -> bool:
        """Whether the format of the values is one that is read."""
        raise NotImplementedError

    @property
    def features(self) -> list[str]:
        """Names of the features of this column."""
        return [*self.parts, *[f"{self.name} missing"] * self.missing]

    def is_missing(self, values: np.ndarray) -> np.ndarray:
        """Mask of the missing parsed values."""
        return np.isnan(values[:, 0])

    def stats(
        self, values: np.ndarray, weight: np.ndarray | None, impute: str, *, merged: bool = True
    ) -> ColumnStats:
        """Summarise parsed values, one summary per part, always with sampled values unless ``merged``."""
        parts = [NumberStats.of(part, weight, sampled=impute == "median") for part in values.T]
        if impute != "median" and not merged:
            some = slice(None, None, -(-len(values) // MOST_VALUES) or 1)
            sample = NumberStats.of(values[some, 0], None if weight is None else weight[some])
            parts[0] = parts[0]._replace(values=sample.values, weights=sample.weights)
        return ColumnStats(tuple(parts), {})

    def learnt(self, found: ColumnStats, impute: str, scale: str) -> tuple[Any, list[tuple[float, float]]]:
        """Return the column with its fill values, and centre and scale of its features."""
        stats = found.parts
        missing, total = stats[0].missing, stats[0].missing + stats[0].n
        filled = impute != "none"
        has_level = filled and missing > 0 and not is_rare(missing, total)
        fills = tuple(part.fill(impute) for part in stats) if filled else None
        units = [part.scaling(None if fills is None else fills[j], scale) for j, part in enumerate(stats)] + [
            (0.0, 1.0)
        ] * has_level
        return self._filled(fills, has_level), units

    def _filled(self, fills: tuple[float, ...] | None, missing: bool) -> Any:
        raise NotImplementedError

    def profile(self, found: ColumnStats) -> Profile:
        """Return the distribution of the training rows."""
        stats = found.parts[0]
        sample = stats.values, stats.weights * (stats.n / (stats.weights.sum() or 1.0))
        return Profile.of_numbers(*sample, stats.missing, stats.low, stats.high)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Encode parsed values as feature columns."""
        missing = np.isnan(values)
        filled = values if self.fills is None else np.where(missing, self.fills, values)
        return np.column_stack([filled, missing[:, 0]]) if self.missing else filled

    def note(self, values: np.ndarray) -> str | None:
        """Return a note about missing values if training had none."""
        count = 0 if self.missing else int(self.is_missing(values).sum())
        filled = "" if self.fills is None else f" with {', '.join(f'{fill:.6g}' for fill in self.fills)}"
        text = f"column {self.name!r} has {count:,} missing value{'s' * (count != 1)}"
        return f"{text}, but training had few or none: filled{filled}" if count else None


@dataclass(frozen=True)
class Number(_Measured):
    """Numeric column; a missing value becomes ``fill`` and sets the feature ``NAME missing``, if there is one.

    ``decimal`` is "" for plain numbers, otherwise the decimal mark of formatted numbers, with thousands separators and
    a ``unit`` such as $ or %.
    """

    name: str
    fill: float | None = None
    missing: bool = False
    decimal: str = ""
    unit: str = ""
    kind: ClassVar[str] = "number"

    @property
    def parts(self) -> list[str]:
        """Name of the column itself."""
        return [self.name]

    @property
    def fills(self) -> tuple[float, ...] | None:
        """Encoding of a missing value; None raises an error."""
        return None if self.fill is None else (self.fill,)

    def parse(self, table: Table, *, training: bool = False) -> np.ndarray:
        """Read the column as an array with one column; missing numbers are NaN."""
        advice = f"one-hot encode the column (`categorical=[{self.name!r}]`), leave it out (`drop=[{self.name!r}]`)"
        advice = f"; {advice} or correct it" if training else "; correct it"
        return numbers(table, self.name, advice, marks=True, decimal=self.decimal, unit=self.unit)[:, None]

    def _is_known(self) -> bool:
        from apexrank.io.prepare import UNITS  # which imports this module

        return self.decimal in ("", ".", ",") and self.unit in UNITS

    def _filled(self, fills: tuple[float, ...] | None, missing: bool) -> Number:
        return replace(self, fill=None if fills is None else fills[0], missing=missing)


@dataclass(frozen=True)
class Date(_Measured):
    """Date encoded as numbers: days since 1970, month, day of the week (Monday is 1), and the hour if there are times.

    ``format`` is the format of dates stored as text.
    """

    name: str
    format: str = "%Y-%m-%d"
    fill: tuple[float, ...] | None = None
    missing: bool = False
    kind: ClassVar[str] = "date"

    @property
    def parts(self) -> list[str]:
        """Names of day, month, weekday, and hour if the format has times."""
        return [
            f"{self.name} {part}" for part in ("day", "month", "weekday", "hour")[: 4 if self.timed else 3]
        ]

    @property
    def timed(self) -> bool:
        """Whether there are times."""
        return " " in self.format and ":" in self.format

    @property
    def fills(self) -> tuple[float, ...] | None:
        """Encoding of a missing value; None raises an error."""
        return self.fill

    def parse(self, table: Table, *, training: bool = False) -> np.ndarray:
        """Read the parts as columns of an array; those of a missing date are NaN."""
        advice = (
            f"; leave the column out (`drop=[{self.name!r}]`) or correct it" if training else "; correct it"
        )
        when = dates(table, self.name, self.format, advice).dt
        days = when.epoch("us").cast(pl.Float64) / 86_400e6
        parts = [days if self.timed else days.floor(), when.month(), when.weekday()]
        parts += [when.hour() + when.minute() / 60] if self.timed else []
        return np.column_stack([part.cast(pl.Float64).fill_null(np.nan).to_numpy() for part in parts])

    def _is_known(self) -> bool:
        from apexrank.io.prepare import DATE_FORMATS  # which imports this module

        return self.format in DATE_FORMATS

    def _filled(self, fills: tuple[float, ...] | None, missing: bool) -> Date:
        return replace(self, fill=fills, missing=missing)


@dataclass(frozen=True)
class Category:
    """One-hot encoded column: one feature per level.

    Levels are the known ``values``; with ``other`` one for rare and unseen values, and with ``missing`` one for missing
    values. A value without a level gets the features ``fill``, those of an average row.
    """

    name: str
    values: tuple[str, ...] = ()
    fill: tuple[float, ...] = ()
    missing: bool = False
    other: bool = False
    required: bool = False
    kind: ClassVar[str] = "category"

    @property
    def features(self) -> list[str]:
        """Names of the features of this column."""
        known = [f"{self.name}={value}" for value in self.values]
        return [*known, *[f"{self.name} other"] * self.other, *[f"{self.name} missing"] * self.missing]

    def check_state(self) -> None:
        """Raise InputError if the column contradicts itself."""
        width = len(self.features)
        if not (
            len(set(self.values)) == len(self.values)
            and len(self.fill) == width > 0
            and np.isfinite(self.fill).all()
        ):
            raise InputError(f"column {self.name!r} contradicts itself")

    def parse(self, table: Table, *, training: bool = False) -> pl.Series:
        """Read the column as text; missing values are null."""
        return texts(table, self.name)

    def is_missing(self, text: pl.Series) -> np.ndarray:
        """Mask of the missing parsed values."""
        return text.is_null().to_numpy()

    def stats(
        self, text: pl.Series, weight: np.ndarray | None, impute: str, *, merged: bool = True
    ) -> ColumnStats:
        """Sum the row weights of each value."""
        weight = np.ones(len(text)) if weight is None else weight
        given = text.filter(pl.Series(weight > 0)).drop_nulls().unique().sort()
        codes = text.replace_strict(given, np.arange(1, len(given) + 1), default=0).to_numpy()
        sums = np.bincount(codes, weight, len(given) + 1)
        missing = float(weight[self.is_missing(text)].sum())
        return ColumnStats((), dict(zip(given.to_list(), sums[1:].tolist(), strict=True)), missing)

    def learnt(
        self, found: ColumnStats, impute: str, scale: str
    ) -> tuple[Category, list[tuple[float, float]]]:
        """Return the column with its levels, and centre and scale of its features: indicators are not scaled.

        Divided by its standard deviation, the indicator of a rare level would be large and hardly penalised.
        """
        total = sum(found.levels.values()) + found.missing
        frequent = [item for item in found.levels.items() if not is_rare(item[1], total)]
        kept = dict(sorted(sorted(frequent), key=lambda item: -item[1])[:MAX_LEVELS])
        values = tuple(sorted(kept))
        missing = impute != "none" and found.missing > 0 and not is_rare(found.missing, total)
        weights = [kept[value] for value in values]
        rest = total - sum(weights) - found.missing * missing
        other = rest > 0 and not is_rare(rest, total)
        if other:
            fill = [0.0] * len(values) + [1.0] + [0.0] * missing
        else:
            weights += [found.missing] * missing
            fill = [weight / sum(weights) for weight in weights]
        column = replace(
            self, values=values, fill=tuple(fill), missing=missing, other=other, required=impute == "none"
        )
        return column, [(0.0, 1.0)] * len(fill)

    def profile(self, found: ColumnStats) -> Profile:
        """Return the distribution of the training rows."""
        known = [found.levels[value] for value in self.values]
        shares = np.array([*known, sum(found.levels.values()) - sum(known), found.missing])
        return Profile(np.zeros(0), np.maximum(shares, 0) / shares.sum())

    def encode(self, text: pl.Series) -> sparse.csr_array:
        """Encode parsed texts as indicators."""
        width = len(self.fill)
        known = text.replace_strict(list(self.values), list(range(len(self.values))), default=width)
        codes = known.to_numpy().copy()
        if self.missing:
            codes[self.is_missing(text)] = width - 1
        levels = [sparse.eye_array(width), sparse.csr_array(np.reshape(self.fill, (1, width)))]
        return sparse.vstack(levels, format="csr")[codes]

    def note(self, text: pl.Series) -> str | None:
        """Return a note about values not seen in training."""
        if self.other:
            return None
        found = text.drop_nulls().unique().sort()
        unknown = [value for value in found if value not in set(self.values)]
        if not unknown:
            return None
        rows = f"{int(text.is_in(unknown).sum()):,} of {len(text):,} rows"
        new = f"values that are new or were rare in training, such as {quoted(unknown, 3)}"
        return f"column {self.name!r}: {rows} have {new}; for them the column is set to its average"


Column = Number | Category | Date
KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (Number, Category, Date)}
Cells = dict[str, Any]  # parsed values by column name


def parse_columns(table: Table, columns: Sequence[Column], *, required: bool | None = None) -> Cells:
    """Parse columns of a table.

    In training, ``required`` tells whether a missing value is an error; fitted columns know it themselves.
    """
    cells: Cells = {}
    for column in columns:
        values: Any = column.parse(table, training=required is not None)
        cells[column.name] = values
        if column.required if required is None else required:
            refuse_row(table, column.name, column.is_missing(values), _MISSING)
    return cells


def take_rows(cells: Cells, rows: np.ndarray) -> Cells:
    """Select rows of the parsed values.

    Examples
    --------
    >>> take_rows({"x": np.array([[1.0], [2.0], [3.0]])}, np.array([2, 0]))["x"].tolist()
    [[3.0], [1.0]]
    """
    return {name: values[rows] for name, values in cells.items()}


class NumberStats(NamedTuple):
    """Mergeable summary of a numeric column: moments, range, and a sample for the median.

    ``n`` and ``missing`` are the weights of the rows with and without a value. ``values`` and ``weights`` are kept if a
    median is needed: all values or, if parts are merged, up to 131,072 of them (2 MiB), then evenly spaced ones of the
    sorted values.
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
        """Summarise a column in which missing values are NaN; weights count as repetitions."""
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
        """Merge with the statistics of other rows."""
        n = self.n + other.n
        with np.errstate(over="ignore", invalid="ignore"):
            step, share = other.mean - self.mean, other.n / n if n else 0.0
            mean = self.mean + step * share
            squares = (
                self.squares + other.squares + step * step * self.n * share
            )  # step**2 would raise OverflowError
        sample = _thinned(
            np.concatenate([self.values, other.values]), np.concatenate([self.weights, other.weights])
        )
        limits = min(self.low, other.low), max(self.high, other.high)
        return NumberStats(n, self.missing + other.missing, mean, squares, *limits, *sample)

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
        if scale == "none" or not self.n:
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
    if len(values) <= MOST_KEPT:
        return values, weights
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    middle = (np.arange(KEPT_VALUES) + 0.5) / KEPT_VALUES * below[-1]
    return values[order][np.searchsorted(below, middle)], np.full(KEPT_VALUES, below[-1] / KEPT_VALUES)


class ColumnStats(NamedTuple):
    """Mergeable summary of a column: of its numeric parts, or the weights of its values."""

    parts: tuple[NumberStats, ...]
    levels: dict[str, float]
    missing: float = 0.0

    def __or__(self, other: ColumnStats) -> ColumnStats:
        """Merge with the summary of other rows."""
        parts = tuple(own | more for own, more in zip(self.parts, other.parts, strict=True))
        levels = dict(self.levels)
        for value, weight in other.levels.items():
            levels[value] = levels.get(value, 0.0) + weight
        return ColumnStats(parts, levels, self.missing + other.missing)


Stats = dict[str, ColumnStats]


def merge_stats(a: Stats, b: Stats) -> Stats:
    """Merge the statistics of two tables."""
    merged = {name: found | b[name] for name, found in a.items()}
    for name, found in merged.items():
        if len(found.levels) > MAX_VALUES:
            raise InputError(
                f"column {name!r} has more than {MAX_VALUES:,} different values: if they are ids or notes, "
                f"leave it out (`drop=[{name!r}]`)"
            )
    return merged


def table_stats(
    table: Table, columns: Sequence[Column], impute: str, weight: np.ndarray | None = None
) -> Stats:
    """Summarise the columns of a table."""
    cells = parse_columns(table, columns, required=impute == "none")
    return {column.name: column.stats(cells[column.name], weight, impute) for column in columns}


def _is_profile_of(size: int, width: int) -> bool:
    """Whether a profile without edges has a bin for each value of a category, or one of a column without numbers."""
    return size == width if width else size in (0, 1)


@dataclass(frozen=True)
class Encoder:
    """Columns, and the centre and scale of their features.

    Examples
    --------
    >>> table = Table(pl.DataFrame({"x": [1.0, 3.0], "city": ["Oslo", "Rome"]}))
    >>> encoder, X = Encoder.fit_transform(table, [Number("x"), Category("city")])
    >>> encoder.features
    ['x', 'city=Oslo', 'city=Rome']
    >>> X.tolist()
    [[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    >>> encoder.encode(Table(pl.DataFrame({"x": [None], "city": ["Lima"]}))).tolist()
    [[0.0, 0.5, 0.5]]
    """

    columns: tuple[Column, ...]
    center: np.ndarray
    scale: np.ndarray
    profiles: tuple[Profile, ...] = field(default=(), repr=False, compare=False)  # one per column, or none

    @classmethod
    def fit(
        cls,
        cells: Cells,
        columns: Sequence[Column],
        *,
        impute: str = "median",
        scale: str = "standard",
        sample_weight: np.ndarray | None = None,
        source: str = "table",
    ) -> Encoder:
        """Learn levels, fill values and scaling from parsed training rows (:func:`parse_columns`).

        Parameters
        ----------
        cells : dict
            Parsed values of the columns.
        columns : sequence of Number, Category or Date
            Columns to use, in this order.
        impute : {"median", "mean", "none"}
            Imputation of missing numbers. With "none" a missing value in a new row raises an error.
        scale : {"standard", "minmax", "none"}
            Scale numbers to mean 0 and standard deviation 1, or to the range 0 to 1, or not. Indicators are not scaled.
        sample_weight : array, optional
            Weight of each row.
        source : str
            Name of the table in error messages.
        """
        check_encoding(impute, scale)
        stats = {
            column.name: column.stats(cells[column.name], sample_weight, impute, merged=False)
            for column in columns
        }
        return cls.of_stats(stats, columns, impute, scale, source)

    @classmethod
    def fit_transform(
        cls, table: Table, columns: Sequence[Column], *, impute: str = "median", **options: Any
    ) -> tuple[Encoder, Matrix]:
        """Parse a training table, learn its encoding as in :meth:`fit`, and encode it."""
        cells = parse_columns(table, columns, required=impute == "none")
        encoder = cls.fit(cells, columns, impute=impute, source=table.source, **options)
        return encoder, encoder._encoded(cells)

    @classmethod
    def of_stats(
        cls, stats: Stats, columns: Sequence[Column], impute: str, scale: str, source: str
    ) -> Encoder:
        """Build the encoder from column statistics."""
        made: list[Column] = []
        units: list[tuple[float, float]] = []
        profiles: list[Profile] = []
        for column in columns:
            own, more = column.learnt(stats[column.name], impute, scale)
            made.append(own)
            units += more
            profiles.append(own.profile(stats[column.name]))
            if not (np.isfinite(more).all() and all(spread > 0 for _, spread in more)):
                raise InputError(
                    f"{source} column {column.name!r} has values too large or too small to scale: "
                    f"give them in another unit, or leave the column out (`drop=[{column.name!r}]`)"
                )
        center, spread = np.reshape(units, (-1, 2)).T.copy()
        return cls(tuple(made), center, spread, tuple(profiles))

    def check_state(self) -> None:
        """Raise InputError if the scaling or the profiles are not those of the columns."""
        names, n_features = [column.name for column in self.columns], len(self.features)
        if not 0 < len(names) == len(set(names)):
            raise InputError("the columns of an Encoder are none, or have one name twice")
        if not (len(self.scale) == n_features and (self.scale > 0).all()):
            raise InputError(f"the scaling is not that of {n_features} features")
        widths = [len(column.values) + 2 if isinstance(column, Category) else 0 for column in self.columns]
        sizes = [len(profile.shares) if not len(profile.edges) else 0 for profile in self.profiles]
        if self.profiles and not (len(sizes) == len(widths) and all(map(_is_profile_of, sizes, widths))):
            raise InputError("the profiles are not those of the columns")

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

    def encode(self, table: Table) -> Matrix:
        """Return the feature matrix of a table, dense or CSR; unknown columns are ignored."""
        return self._encoded(parse_columns(table, self.columns))

    def _encoded(self, cells: Cells) -> Matrix:
        if not self.is_sparse:
            return self._scaled(cells)
        parts = []
        for column, start in zip(self.columns, self.starts, strict=True):
            part, own = column.encode(cells.pop(column.name)), slice(start, start + len(column.features))
            if not isinstance(column, Category):  # indicators are not scaled
                with np.errstate(over="ignore", invalid="ignore"):
                    part = (part - self.center[own]) / self.scale[own]
            parts.append(sparse.csr_array(part))
        return sparse.hstack(parts, format="csr")

    def transform(self, cells: Cells) -> np.ndarray:
        """Return the dense feature matrix of parsed rows."""
        return self._scaled(dict(cells))

    def _scaled(self, cells: Cells) -> np.ndarray:
        X = self._raw(cells)
        with np.errstate(over="ignore", invalid="ignore"):
            X -= self.center
            X /= self.scale
        return X

    def raw(self, table: Table) -> np.ndarray:
        """Return the features before scaling, as a dense matrix: numbers in the original units, and indicators."""
        return self._raw(parse_columns(table, self.columns))

    def _raw(self, cells: Cells) -> np.ndarray:
        """Features before scaling; consumes the cells, so that rows are not in memory twice."""
        X = np.zeros((len(next(iter(cells.values()))), len(self.center)))
        for column, start in zip(self.columns, self.starts, strict=True):
            part: Matrix = column.encode(cells.pop(column.name))
            if isinstance(column, Category):
                part = part.tocoo()
                X[part.row, start + part.col] = part.data
            else:
                X[:, start : start + part.shape[1]] = part
        return X

    def notes(self, table: Table) -> list[str]:
        """Return one note per column with values not seen in training."""
        cells = parse_columns(table, self.columns, required=False)
        found = [column.note(cells[column.name]) for column in self.columns]
        for column, profile in zip(self.columns, self.profiles, strict=False):
            found += unlike_training(column, profile, cells[column.name])
        return [note for note in found if note is not None]
