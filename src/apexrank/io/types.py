"""Typed columns: which columns of a table are numbers, dates or categories, and which are useless and why.

:func:`choose_columns` decides from all rows, but not from the target: it detects formats and levels, and leaves out
constants, row counters, ids, and text that rarely repeats. A typed column reads its values as an array of numbers:
the numbers themselves, days since 1970, or the codes of levels; a missing value is NaN. Trees take these columns;
linear rankers take those of :mod:`apexrank.io.encode`. The other functions find common mistakes: columns that leak
the target, repeated rows, rows sorted by their target.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from math import isfinite
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import polars as pl

from apexrank.errors import InputError, first_of, quoted
from apexrank.io.columns import (
    MARKS,
    TEXT,
    dates,
    given_words,
    numbers,
    refuse_row,
    texts,
    utc_offsets,
    written_dates,
    written_numbers,
)
from apexrank.io.read import Table

if TYPE_CHECKING:
    from apexrank.io.table_ranker import Recipe

MAX_LEVELS = 1000  # maximum number of levels of a category
MOST_WORDS = 100_000  # maximum number of distinct texts of a column to inspect
FORMAT_SHARE = 0.95  # share of the values that determines the format of a column; the others are errors
TYPO_SHARE = 0.05  # share of texts among numbers that count as typing errors
LEVELS_AMONG_NUMBERS = 20  # maximum number of distinct values for a repeated text among numbers to be a level
FREQUENT_LEVELS = 100  # maximum number of levels of a text that is a category by default
LEAST_COUNTED = 10  # minimum number of rows for consecutive whole numbers to be a row counter
LEAK_AREA = 0.98  # area under the ROC curve above which a column may leak the target
LEAK_ROWS = 100_000  # maximum number of rows to search for such columns
SORTED_AREA = 0.95  # area under the ROC curve of the row number in a table sorted by its target
MOST_GROUPS = 20  # number of values up to which a column with an id-like name may be a category
OTHER = " other"  # level of rare and unknown values; no value of a table starts with a blank
_KEEP = "`features=['all', 'NAME']` keeps it"
_COUNTS = f"counts the rows; {_KEEP}"
_SURE = 4.0  # standard deviations of the area under chance
_OWNER = re.compile(r"(^|[_\-. ])(?i:ids?|key)$|[a-z]I[dD]$")
_ID_NAME = re.compile(
    r"(^|[_\-. ])(?i:id|ids|case|key|index|row|no|nr|number)$|[a-z]I[dD]$|(?i:^(row_?names?|unnamed: ?\d+)$)"
)
_CURRENCIES = ("USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "AUD", "CAD", "SEK", "NOK", "DKK")
UNITS = ("", *"$€£¥%‰", *_CURRENCIES)
_UNIT = rf"([$€£¥%‰]|\b(?:{'|'.join(_CURRENCIES)})\b)"
_NUMERIC_DAYS = (
    "%Y-%m-%d %Y/%m/%d %Y.%m.%d %d.%m.%Y %d.%m.%y %d/%m/%Y %m/%d/%Y %d/%m/%y %m/%d/%y %d-%m-%Y %m-%d-%Y"
)
_DAYS = (*_NUMERIC_DAYS.split(), "%d-%B-%Y", "%d-%B-%y", "%d %B %Y", "%B %d, %Y", "%B %d %Y")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M%z", " %H:%M:%S%z", " %I:%M %p", " %I:%M:%S %p")
DATE_FORMATS = tuple(day + time for day in _DAYS for time in _TIMES)
_LIKE_A_DATE = r"^(\d{1,4}[-/. ]\w{1,9}[-/. ]|[A-Za-z]{3,9} \d{1,2},? \d)"

Cells = dict[str, np.ndarray]  # typed values by column name


@dataclass(frozen=True)
class Column:
    """Column of a table whose values are read as numbers.

    For linear rankers, a value without a feature of its own gets the features ``fill``, and ``missing`` tells whether
    missing values have one (:class:`apexrank.io.encode.LinearFeatures`). If a value is ``required``, a missing one is
    an error.
    """

    name: str
    _: KW_ONLY
    fill: tuple[float, ...] | None = None
    missing: bool = False
    required: bool = False
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        """Raise InputError for a format that cannot be, or fill values that are not finite numbers, one per feature."""
        width = len(self.features if self.kind == "category" else self.parts)
        values = getattr(self, "values", ())
        finite = self.fill is None or (len(self.fill) == width and all(map(isfinite, self.fill)))
        known = all(getattr(self, own.name) in own.metadata["one_of"] for own in fields(self) if own.metadata)
        if not (finite and known and len(set(values)) == len(values)):
            raise InputError(f"column {self.name!r} contradicts itself")

    @property
    def parts(self) -> list[str]:
        """Names of the linear features, without that of missing values."""
        return [self.name]

    @property
    def features(self) -> list[str]:
        """Names of the linear features."""
        return [*self.parts, *[f"{self.name} missing"] * self.missing]

    def parse(self, table: Table, *, training: bool = False) -> np.ndarray:
        """Read the column as numbers; a missing value is NaN."""
        raise NotImplementedError

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """Numeric parts of typed values."""
        return [values]

    def shown(self, value: float) -> str:
        """Text of a typed value."""
        return f"{value:.6g}"


@dataclass(frozen=True)
class Number(Column):
    """Numeric column.

    ``decimal`` is "" for plain numbers, otherwise the decimal mark of formatted numbers, with thousands separators and
    a ``unit`` such as $ or %.
    """

    decimal: str = field(default="", metadata={"one_of": ("", ".", ",")})
    unit: str = field(default="", metadata={"one_of": UNITS})
    kind: ClassVar[str] = "number"

    def parse(self, table: Table, *, training: bool = False) -> np.ndarray:
        """Read the numbers."""
        advice = f"one-hot encode the column (`categorical=[{self.name!r}]`), leave it out (`drop=[{self.name!r}]`) or "
        advice = f"; {advice * training}correct it"
        return numbers(table, self.name, advice, marks=True, decimal=self.decimal, unit=self.unit)


@dataclass(frozen=True)
class Date(Column):
    """Dates and times, as days since 1970 in UTC.

    ``format`` is the format of dates stored as text. Linear rankers also get month, day of the week (Monday is 1), and
    the hour if there are times.
    """

    format: str = field(default="%Y-%m-%d", metadata={"one_of": DATE_FORMATS})
    kind: ClassVar[str] = "date"

    @property
    def timed(self) -> bool:
        """Whether there are times."""
        return " " in self.format and ":" in self.format

    @property
    def parts(self) -> list[str]:
        """Names of day, month, weekday, and hour if the format has times."""
        return [f"{self.name} {part}" for part in ("day", "month", "weekday", "hour")[: 3 + self.timed]]

    def parse(self, table: Table, *, training: bool = False) -> np.ndarray:
        """Read the days, with a fraction if there are times."""
        advice = f"; {f'leave the column out (`drop=[{self.name!r}]`) or ' * training}correct it"
        when = dates(table, self.name, self.format, advice).dt
        days = when.epoch("us").cast(pl.Float64) / 86_400e6
        return (days if self.timed else days.floor()).fill_null(np.nan).to_numpy()

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """Day, month, weekday, and hour if there are times."""
        # days of the year 9999 have an error of 20 microseconds
        milliseconds = (pl.Series(values).fill_nan(None) * 86_400e3).round().cast(pl.Int64)
        when = milliseconds.cast(pl.Datetime("ms")).dt
        parts = [when.month(), when.weekday()] + [when.hour() + when.minute() / 60] * self.timed
        return [values, *(part.cast(pl.Float64).fill_null(np.nan).to_numpy() for part in parts)]

    def shown(self, value: float) -> str:
        """Text of a day."""
        return str(np.datetime64(int(value), "D"))


@dataclass(frozen=True)
class Category(Column):
    """Category, as the positions of its ``values``; the code of any other value is their number.

    Rare and unknown values have a level of their own if there are enough of them to be an ``other`` level. The levels
    are those linear features that are indicators.
    """

    values: tuple[str, ...] = ()
    other: bool = False
    kind: ClassVar[str] = "category"

    @property
    def parts(self) -> list[str]:
        """Names of the indicators of the levels."""
        return [*(f"{self.name}={value}" for value in self.values), *[f"{self.name} other"] * self.other]

    @property
    def levels(self) -> tuple[str, ...]:
        """Texts of the levels."""
        return (*self.values, *(OTHER,) * self.other)

    def parse(self, table: Table, *, training: bool = False) -> np.ndarray:
        """Read the codes of the levels."""
        text = texts(table, self.name)
        codes = text.replace_strict(list(self.values), range(len(self.values)), default=len(self.values))
        return codes.cast(pl.Float64).set(text.is_null(), np.nan).to_numpy()

    def shown(self, value: float) -> str:
        """Text of a level."""
        return f"{(*self.values, 'other')[int(value)]:.40}"


def parse_columns(table: Table, columns: Sequence[Column], *, training: bool = False) -> Cells:
    """Read the typed values of columns; raise InputError for a missing value that is required."""
    cells = {}
    for column in columns:
        cells[column.name] = values = column.parse(table, training=training)
        if column.required:
            missing = "the value is missing; fill it in, or use `impute='median'`"
            refuse_row(table, column.name, np.isnan(values), missing)
    return cells


def take_rows(cells: Cells, rows: np.ndarray) -> Cells:
    """Select rows of typed values.

    Examples
    --------
    >>> take_rows({"x": np.array([1.0, 2.0, 3.0])}, np.array([2, 0]))["x"].tolist()
    [3.0, 1.0]
    """
    return {name: values[rows] for name, values in cells.items()}


def is_rare(weight: float, total: float) -> bool:
    """Return whether a value is too rare for a coefficient: fewer than 5 rows, or a tenth of the rows if under 50.

    Coefficients of fewer rows fit their labels, regardless of the penalty.

    Examples
    --------
    >>> is_rare(4, 1000), is_rare(5, 1000), is_rare(1, 10)
    (True, False, False)
    """
    return weight < min(5.0, total / 10) * (1 - 1e-9)


# ---------------------------------------------------------------- facts about the values of a column


class Facts(NamedTuple):
    """Mergeable facts about a column: kinds of values, their number and range, and their format.

    ``given`` and ``missing`` are weights. ``run`` is set for whole numbers that count the rows of the file, including
    rows that were left out: the value extrapolated to the first row of the file, and the values of the first and the
    last of these rows. ``words`` holds the distinct texts in row order, with the number and total weight of their rows.
    """

    kinds: frozenset[str]
    rows: int
    given: float
    missing: float
    low: float
    high: float
    run: tuple[float, float, float] | None
    words: pl.DataFrame

    @classmethod
    def of(cls, table: Table, name: str, weight: np.ndarray | None = None, *, levels: bool = False) -> Facts:
        """Collect the facts of a column; rows of weight 0 are ignored. Words also of numbers if they are ``levels``."""
        series = table.column(name)
        kind = _kind(series.dtype)
        text = None
        if kind == "text" or levels or (kind == "number" and _ID_NAME.search(name)):
            text = texts(Table(series.to_frame(), table.source), name)
        values = np.full(len(series), np.nan)
        if kind in _NUMERIC:  # a null becomes NaN
            values = (series if kind == "number" else series.to_physical()).cast(pl.Float64).to_numpy()
        elif text is not None:
            values = text.cast(pl.Float64, strict=False).to_numpy()
        run = _counted_rows(values, table) if kind in ("number", "text") else None
        weight = np.ones(len(series)) if weight is None else weight
        counted = weight > 0  # after detecting counters, which include rows of weight 0
        is_given = ~np.isnan(values) if kind in _NUMERIC else series.is_not_null().to_numpy()
        is_given = is_given if text is None else text.is_not_null().to_numpy()
        finite = values[np.isfinite(values) & counted]
        return cls(
            frozenset({kind} if kind else ()),
            int(counted.sum()),
            float(weight[is_given].sum()),
            float(weight[~is_given].sum()),
            float(finite.min(initial=np.inf)),
            float(finite.max(initial=-np.inf)),
            run,
            _NO_WORDS if text is None else _counted(text, weight),
        )

    def __or__(self, other: Facts) -> Facts:
        """Merge with the facts of the rows that follow."""
        if not (self.rows and other.rows):
            return self if self.rows else other
        follows = self.run is not None and other.run is not None and self.run[2] < other.run[1]
        both = pl.concat([self.words, other.words]).group_by("word", maintain_order=True)
        return Facts(
            self.kinds | other.kinds,
            self.rows + other.rows,
            self.given + other.given,
            self.missing + other.missing,
            min(self.low, other.low),
            max(self.high, other.high),
            (*self.run[:2], other.run[2]) if follows and self.run and other.run else None,
            both.agg(pl.col("rows", "weight").sum()).head(MOST_WORDS) if len(other.words) else self.words,
        )

    @property
    def total(self) -> float:
        """Total weight of the rows."""
        return self.given + self.missing

    @property
    def given_words(self) -> pl.DataFrame:
        """The words that are values, rather than marks of missing ones."""
        return self.words.filter(given_words(self.words["word"]))

    @property
    def is_text(self) -> bool:
        """Whether less than half of the words are numbers."""
        words = self.given_words
        return "text" in self.kinds and _share(words, written_numbers(words["word"])) < 0.5

    @property
    def is_constant(self) -> bool:
        """Whether there is a single value, and too few missing ones to be informative."""
        one = len(self.words) == 1 if self.kinds == {"text"} else self.low == self.high
        return one and (not self.missing or is_rare(self.missing, self.total))

    @property
    def is_counter(self) -> bool:
        """Whether the values number the rows, starting at 0 or 1."""
        return self.rows >= LEAST_COUNTED and self.run is not None and self.run[0] in (0, 1)

    def category(self, name: str) -> Category:
        """The column as a category, with a level for each of its frequent values."""
        if len(self.words) == MOST_WORDS:
            raise InputError(
                f"column {name!r} has {MOST_WORDS:,} or more different values: if they are ids or notes, leave it out "
                f"(`drop=[{name!r}]`)"
            )
        frequent = self.words.filter(
            pl.Series([not is_rare(w, self.total) for w in self.words["weight"]], dtype=pl.Boolean)
        )
        kept = frequent.sort(["weight", "word"], descending=[True, False]).head(MAX_LEVELS)
        rest = self.given - float(kept["weight"].sum())
        values = tuple(sorted(kept["word"]))
        return Category(name, values, bool(rest > 0 and not is_rare(rest, self.total)))


_NUMERIC = ("number", "date", "datetime", "zoned datetime")
_NO_WORDS = pl.DataFrame(schema={"word": pl.String, "rows": pl.UInt32, "weight": pl.Float64})


def _kind(dtype: pl.DataType) -> str:
    if dtype in TEXT:
        return "text"
    if dtype.is_numeric() or dtype == pl.Boolean:
        return "number"
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        return "zoned datetime"
    named = {pl.Date: "date", pl.Datetime: "datetime", pl.Null: ""}
    return next((name for kind, name in named.items() if dtype == kind), str(dtype))


def _counted_rows(values: np.ndarray, table: Table) -> tuple[float, float, float] | None:
    """Return ``Facts.run`` of a column, or None if its values do not increase by one per row of the file."""
    places = table.first + (np.arange(len(values)) if table.places is None else table.places)
    with np.errstate(invalid="ignore", over="ignore"):
        counts = len(values) and values[0] % 1 == 0 and (np.diff(values) == np.diff(places)).all()
    return (float(values[0] - places[0]), float(values[0]), float(values[-1])) if counts else None


def _counted(text: pl.Series, weight: np.ndarray) -> pl.DataFrame:
    frame = pl.DataFrame({"word": text, "weight": weight}).drop_nulls("word").filter(pl.col("weight") > 0)
    words = frame.group_by("word", maintain_order=True).agg(rows=pl.len(), weight=pl.col("weight").sum())
    return words.head(MOST_WORDS)


def table_facts(
    table: Table, names: Sequence[str], recipe: Recipe, weight: np.ndarray | None = None
) -> dict[str, Facts]:
    """Facts that the choice of columns needs: in LETOR files with grades all columns are numbers."""
    levels = recipe.categorical or ()
    if recipe.graded and table.unnamed is not None:
        names = [name for name in names if name in levels]
    return {name: Facts.of(table, name, weight, levels=name in levels) for name in names}


# ---------------------------------------------------------------- choice of the columns


class ColumnChoice(NamedTuple):
    """The feature columns, notes about what was done, the columns left out with the reasons, and the target's values.

    The positive one comes first; a target of grades has none.
    """

    columns: list[Column]
    notes: list[str]
    left_out: list[tuple[str, str]]
    classes: tuple[str, ...] = ()

    @property
    def positive(self) -> str | None:
        """The positive value of the target."""
        return self.classes[0] if self.classes else None


def table_columns(table: Table, recipe: Recipe, weight: np.ndarray | None = None) -> ColumnChoice:
    """Choose the feature columns of a table and their kinds.

    Text that is mostly numeric is read as numbers, with decimal commas, thousands separators, currencies, percent signs
    and marks such as "?" for missing values. Other text is a category if at most 100 frequent values cover half of the
    rows. Constants, row counters, ids and other text are left out, unless named in ``recipe.features`` or
    ``recipe.categorical``. For graded recipes and LETOR files all columns are plain numbers, except those named in
    ``categorical``; only row counters of graded tables are left out.

    Examples
    --------
    >>> from apexrank.io import Recipe
    >>> frame = pl.DataFrame({"price": ["$1,200", "$90", "?"], "shop": ["a", "b", "a"], "fraud": [0, 1, 0]})
    >>> chosen = table_columns(Table(frame), Recipe(target="fraud"))
    >>> chosen.columns[0].decimal, chosen.columns[0].unit, chosen.columns[1].values
    ('.', '$', ('a', 'b'))
    >>> for note in chosen.notes:
    ...     print(note)
    read with thousands separators or units: 'price'
    taken as missing: '?' in 'price' (1 row)
    categories: 'shop' (2 values)
    """
    names = recipe.feature_columns(table)
    facts = table_facts(table, names, recipe, weight)
    return choose_columns(names, facts, recipe, table.separator, table.source)


def choose_columns(
    names: Sequence[str], facts: Mapping[str, Facts], recipe: Recipe, separator: str | None, source: str
) -> ColumnChoice:
    """Choose columns from their facts, as in :func:`table_columns`; those without facts are plain numbers."""
    named = {name for name in recipe.categorical or () if name != "all" or "all" in names}
    all_text = "all" in (recipe.categorical or ()) and "all" not in names
    for name in sorted(named - set(names)):
        raise InputError(f"`categorical=[{name!r}]`: the column is not among the features")
    columns: list[Column] = []
    left_out: list[tuple[str, str]] = []
    done: dict[str, list[str]] = {}
    for name in names:
        known, asked = facts.get(name), name in {*recipe.features, *named}
        found: Column | str
        if known is None:
            found = Number(name)
        elif recipe.graded:
            is_category = name in named or (all_text and known.is_text)
            found = known.category(name) if is_category else Number(name)
            found = _COUNTS if known.is_counter and not asked else found
        else:
            found = _typed(name, known, separator, asked, name in named, all_text)
            if isinstance(found, str) and asked and not known.is_constant:
                raise InputError(
                    f"{source} column {name!r} cannot be used ({found}): leave it out (`drop=[{name!r}]`)"
                )
            for what, which in () if isinstance(found, str) else _remarks(found, known, name in named):
                done.setdefault(what, []).append(which)
        if isinstance(found, str):
            left_out.append((name, found))
        else:
            columns.append(replace(found, required=recipe.imputation == "none"))
    if not columns:
        name, reason = left_out[0]
        raise InputError(
            f"{source} has no column left to use as a feature: column {name!r} is left out ({reason})"
        )
    reasons: dict[str, list[str]] = {}
    for name, reason in left_out:
        reasons.setdefault(reason, []).append(repr(name))
    notes = [f"{what}: {first_of(which)}" for what, which in done.items()]
    notes += [f"left out: {', '.join(names)} ({reason})" for reason, names in reasons.items()]
    return ColumnChoice(columns, notes, left_out)


def _typed(
    name: str, facts: Facts, separator: str | None, asked: bool, named: bool, all_text: bool
) -> Column | str:
    """The typed column, or the reason to leave it out."""
    useless = _useless(facts) or (None if asked else _names_the_rows(name, facts))
    if useless is not None:
        return useless
    if named:
        return _levels(name, facts, asked)
    if "text" not in facts.kinds:
        zoned = "%z" * ("zoned datetime" in facts.kinds)
        timed = f" %H:%M:%S{zoned}" if facts.kinds & {"datetime", "zoned datetime"} else ""
        return Number(name) if "number" in facts.kinds else Date(name, f"%Y-%m-%d{timed}")
    words = facts.given_words
    if not len(words):
        return "no values"
    plain = _share(words, written_numbers(words["word"]))
    if plain == 1 or words["word"].str.to_lowercase().is_in(["true", "false"]).all():
        return Number(name)
    found = _written(name, words, plain, separator) or _dated(name, words["word"])
    if found is None and plain >= 0.5 and _are_slips(words, plain):
        return Number(name)  # parsing raises an error that names the line of the first typo
    return found or _levels(name, facts, asked or all_text)


def _written(name: str, words: pl.DataFrame, plain: float, separator: str | None) -> Number | str | None:
    """Format of numbers that are not plain; None if they are not numbers."""
    units = words["word"].str.extract(_UNIT, 1).drop_nulls().unique()
    if len(units) > 1:
        return None
    unit = "" if not len(units) else str(units[0])
    point, comma = (written_numbers(words["word"], decimal, unit) for decimal in ".,")
    shares = [_share(words, values) for values in (point, comma)]
    with_point, with_comma = (share if share >= FORMAT_SHARE else 0.0 for share in shares)
    if max(with_point, with_comma) <= plain:
        return None
    by_point, by_comma = (Number(name, decimal, unit) for decimal in ".,")
    cells = separator is not None and separator in ";\t"  # then a comma cannot separate columns
    differ = with_point and with_comma and not point.equals(comma)
    if cells and not differ:
        return by_point if with_point else by_comma
    if with_point and not cells:
        return by_point
    shown = ", ".join(map(repr, words["word"].filter(written_numbers(words["word"]).is_null())[:3]))
    return f"may be numbers written as text: {shown}, ...; write them as plain numbers such as 1234.5"


def _remarks(column: Column, facts: Facts, named: bool) -> list[tuple[str, str]]:
    """Actions on a column with its name; none for a category that was asked for."""
    name = repr(column.name)
    if isinstance(column, Category):
        return [] if named else [("categories", f"{name} ({len(facts.words):,} values)")]
    found = []
    if isinstance(column, Date):
        found.append(("dates", name))
    elif isinstance(column, Number) and column.decimal:
        commas = "decimal commas" if column.decimal == "," else "thousands separators or units"
        found.append((f"read with {commas}", name))
    codes = facts.words["word"].str.contains(r"^0\d+$")
    if codes.any():  # such as postcodes and telephone numbers
        shown = facts.words["word"].filter(codes)[0]
        found.append(("read as numbers", f"{shown!r} in {name} (codes? `categorical=[{column.name!r}]`)"))
    marks = facts.words.filter(facts.words["word"].str.to_lowercase().is_in(MARKS))
    if len(marks) and "text" in facts.kinds:
        rows = int(marks["rows"].sum())
        shown = quoted(sorted(marks["word"]), 3)
        found.append(("taken as missing", f"{shown} in {name} ({rows:,} row{'s' * (rows != 1)})"))
    return found


def _useless(facts: Facts) -> str | None:
    unknown = facts.kinds - {"text", *_NUMERIC}
    if unknown or ("text" not in facts.kinds and len(facts.kinds) > 1 and "number" in facts.kinds):
        return f"{', '.join(sorted(facts.kinds))} values, not numbers"
    if "zoned datetime" in facts.kinds and facts.kinds & {"date", "datetime"}:
        return "a time zone in some files and none in others"
    if facts.kinds > {"text"}:  # several files, one of which has text
        words = facts.given_words
        if len(words) and _share(words, written_numbers(words["word"])) < 1:
            return f"{', '.join(sorted(facts.kinds - {'text'}))} values in some files and text in others"
    if not facts.given:
        return "no values"
    return "one value only" if facts.is_constant else None


def _names_the_rows(name: str, facts: Facts) -> str | None:
    words = facts.words["word"]
    if facts.is_counter:
        return _COUNTS
    differ = len(words) > 1 and (facts.words["rows"] == 1).all() and words.str.contains(r"^[+-]?\d+$").all()
    if _ID_NAME.search(name) and differ:
        return f"a different number in every row, like an id; {_KEEP}"
    decimal = words.str.contains(r"^[+-]?\d*\.\d+$").any()
    if _OWNER.search(name) and not decimal and len(words) > max(MOST_GROUPS, facts.rows / 50):
        return f"an id that repeats; if its rows belong together, use `group_split='NAME'`; {_KEEP}"
    return None


def _are_slips(words: pl.DataFrame, plain: float) -> bool:
    """Whether a few texts among numbers are typing errors, rather than levels such as "other" and "7+"."""
    total = float(words["weight"].sum())
    texts_among = words.filter(written_numbers(words["word"]).is_null())
    if len(words) <= LEVELS_AMONG_NUMBERS and bool((texts_among["weight"] >= 5).any()):
        return False
    return plain >= 1 - TYPO_SHARE or (1 - plain) * total < 5


def _share(words: pl.DataFrame, values: pl.Series) -> float:
    """Weighted share of the words that were parsed."""
    total = float(words["weight"].sum())
    return 1.0 if not total else float(words["weight"].filter(values.is_not_null()).sum()) / total


def _dated(name: str, words: pl.Series) -> Date | str | None:
    """Format of dates; None if the words are not dates."""
    some = words.head(200)
    if not some.str.contains(_LIKE_A_DATE).mean() >= FORMAT_SHARE:  # type: ignore[operator]
        return None
    fits = [form for form in DATE_FORMATS if written_dates(some, form).is_not_null().mean() >= FORMAT_SHARE]  # type: ignore[operator]
    found = {form: written_dates(words, form) for form in fits}
    most = min((dates.null_count() for dates in found.values()), default=0)
    best = [form for form, dates in found.items() if dates.null_count() == most]
    if len(best) > 1 and not found[best[0]].equals(found[best[1]]):
        return f"dates such as {words[0]!r} in which day and month are ambiguous; write them as 2024-12-31"
    if not best and 0 < utc_offsets(words).null_count() < len(words):
        return "some times have an offset from UTC and others have none; write all of them with one"
    return Date(name, best[0]) if best else None


def _levels(name: str, facts: Facts, asked: bool) -> Category | str:
    """A category, if frequent values cover half of the rows; otherwise the reason to leave it out."""
    frequent = [weight for weight in facts.words["weight"] if not is_rare(weight, facts.total)]
    if frequent and (asked or (len(frequent) <= FREQUENT_LEVELS and 2 * sum(frequent) >= facts.given)):
        return facts.category(name)
    advice = "; `categorical=['NAME']` keeps its frequent values"
    return f"almost every value is unique{advice * bool(frequent)}"


# ---------------------------------------------------------------- common mistakes


def deciding_columns(
    cells: Cells, columns: Sequence[Column], y: np.ndarray, sample_weight: np.ndarray | None = None
) -> list[tuple[str, float]]:
    """Return columns that order the rows almost like the target, with their areas under the ROC curve.

    Levels of a category are ordered by their shares of positives, missing values are first or last. Columns with the
    largest area come first. In large tables, evenly spaced rows are used.

    Examples
    --------
    >>> cells = {"x": np.tile([0.5, 0.1], 50), "paid": np.tile([0.0, 1.0], 50)}
    >>> deciding_columns(cells, [Number("x"), Category("paid", ("no", "yes"))], np.arange(100) % 2)
    [('x', 1.0), ('paid', 1.0)]
    """
    some = slice(None, None, -(-len(y) // LEAK_ROWS))
    y = np.asarray(y)[some]
    weight = np.ones(len(y)) if sample_weight is None else sample_weight[some]
    positive = weight * (y > 0)
    found = []
    for column in columns:
        values = cells[column.name][some]
        if isinstance(column, Category):
            codes = np.nan_to_num(values, nan=len(column.values) + 1).astype(int)
            with np.errstate(invalid="ignore"):
                values = np.nan_to_num(np.bincount(codes, positive) / np.bincount(codes, weight))[codes]
        gaps = (-np.inf, np.inf) if np.isnan(values).any() else (0.0,)
        areas = [_area(np.nan_to_num(values, nan=gap), positive, weight - positive) for gap in gaps]
        area = max(max(area, 1 - area) for area in areas)
        if area >= LEAK_AREA and _is_sure(area, positive.sum(), weight.sum() - positive.sum()):
            found.append((column.name, area))
    return sorted(found, key=lambda item: -item[1])


def deciding_notes(found: Sequence[tuple[str, float]]) -> list[str]:
    """Return one note for each column of :func:`deciding_columns`."""
    return [
        f"column {name!r} alone ranks the rows almost perfectly (AUC {area:.3f}): is it known when you rank, or does "
        f"it give the target away? `drop=[{name!r}]` leaves it out"
        for name, area in found
    ]


def _area(values: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> float:
    """Area under the ROC curve with ties counted half; 0.5 for a single class."""
    codes = np.unique(values, return_inverse=True)[1]
    up, down = np.bincount(codes, positive), np.bincount(codes, negative)
    pairs = up.sum() * down.sum()
    return float(up @ (np.cumsum(down) - down / 2) / pairs) if pairs else 0.5


def _is_sure(area: float, positives: float, negatives: float) -> bool:
    """Whether an area is far beyond chance, by the variance of the Mann-Whitney statistic."""
    pairs = 12 * positives * negatives
    return bool(pairs) and abs(area - 0.5) >= _SURE * np.sqrt((positives + negatives + 1) / pairs)


def row_groups(table: Table, names: Sequence[str]) -> np.ndarray:
    """For each row, the index of the first row with the same values in these columns.

    Examples
    --------
    >>> row_groups(Table(pl.DataFrame({"x": [1, 2, 1], "c": ["a", "a", "a"]})), ["x", "c"]).tolist()
    [0, 1, 0]
    """
    columns = [table.column(name).alias(str(place)) for place, name in enumerate(names)]
    frame = pl.DataFrame(columns).with_row_index("row")
    first = pl.col("row").first().over([column.name for column in columns])
    return frame.select(first).to_series().to_numpy().astype(np.int64)


def row_notes(y: np.ndarray, groups: np.ndarray) -> list[str]:
    """Return notes about repeated rows (see :func:`row_groups`) and about rows sorted by their target.

    Examples
    --------
    >>> row_notes(np.repeat([0, 1], 50), np.arange(100))
    ['the rows are sorted by the target: do not take the first or last rows as a sample']
    """
    notes = []
    place = np.arange(len(y))
    repeated = int((groups != place).sum())
    if repeated:
        notes.append(f"{repeated:,} of {len(y):,} rows repeat an earlier row in all columns used")
    positive = (np.asarray(y) > 0).astype(float)
    area = _area(place, positive, 1 - positive)
    if max(area, 1 - area) >= SORTED_AREA and _is_sure(area, positive.sum(), len(y) - positive.sum()):
        notes.append("the rows are sorted by the target: do not take the first or last rows as a sample")
    return notes
