"""Choice of the feature columns of a table and of their kinds, without using the target.

:func:`prepare` decides from all rows which columns are numbers, categories or dates, detects their format, and drops
useless columns: constants, row counters, ids, and text that rarely repeats. The result is data that a model file
stores; :class:`apexrank.io.encode.Encoder` learns levels, fill values and scaling from training rows. The other
functions detect common mistakes: columns that leak the target, repeated rows, rows sorted by their target.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from apexrank.errors import InputError, first_of, quoted
from apexrank.io.columns import MARKS, TEXT, given_words, texts, utc_offsets, written_dates, written_numbers
from apexrank.io.encode import Category, Column, Date, Encoder, Number, is_rare
from apexrank.io.read import Table
from apexrank.problem.design import Matrix

if TYPE_CHECKING:
    from apexrank.io.table_ranker import Recipe

MOST_WORDS = 20_000  # maximum number of distinct texts of a column to inspect
MOST = 0.95  # share of the values that determines the format of a column; the others are errors
FEW = 0.05  # share of texts among numbers that count as typing errors
FEW_WORDS = 20  # maximum number of distinct values for a repeated text among numbers to be a level
FREQUENT_LEVELS = 100  # maximum number of levels of a text that is encoded by default
LEAST_COUNTED = 10  # minimum number of rows for consecutive whole numbers to be a row counter
DECIDES = 0.98  # area under the ROC curve above which a column may leak the target
MOST_ROWS = 100_000  # maximum number of rows to search for such columns
SORTED = 0.95  # area under the ROC curve of the row number in a table sorted by its target
MOST_GROUPS = 20  # number of values up to which a column with an id-like name may be a category
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
_DATES = (
    *(
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%Y.%m.%d",
        "%d.%m.%Y",
        "%d.%m.%y",
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d/%m/%y",
        "%m/%d/%y",
    ),
    *("%d-%m-%Y", "%m-%d-%Y", "%d-%B-%Y", "%d-%B-%y", "%d %B %Y", "%B %d, %Y", "%B %d %Y"),
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M%z", " %H:%M:%S%z", " %I:%M %p", " %I:%M:%S %p")
DATE_FORMATS = tuple(day + time for day in _DATES for time in _TIMES)
_LIKE_A_DATE = r"^(\d{1,4}[-/. ]\w{1,9}[-/. ]|[A-Za-z]{3,9} \d{1,2},? \d)"


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
    def of(cls, table: Table, name: str, weight: np.ndarray | None = None) -> Facts:
        """Collect the facts of a column; rows of weight 0 are ignored."""
        series = table.column(name)
        kind = _kind(series.dtype)
        text = None
        if kind == "text" or (kind == "number" and _ID_NAME.search(name)):
            text = texts(Table(series.to_frame(), table.source), name)
        values = np.full(len(series), np.nan)
        if kind in _NUMERIC:
            values = (
                (series if kind == "number" else series.to_physical()).cast(pl.Float64).to_numpy()
            )  # null becomes NaN
        elif text is not None:
            values = text.cast(pl.Float64, strict=False).to_numpy()
        run = _counted_rows(values, table) if kind in ("number", "text") else None
        if weight is not None:  # after detecting counters, which include rows of weight 0
            counted = weight > 0
            series, values, weight = series.filter(pl.Series(counted)), values[counted], weight[counted]
            text = None if text is None else text.filter(pl.Series(counted))
        weight = np.ones(len(series)) if weight is None else weight
        is_given = ~np.isnan(values) if kind in _NUMERIC else series.is_not_null().to_numpy()
        is_given = is_given if text is None else text.is_not_null().to_numpy()
        finite = values[np.isfinite(values)]
        return cls(
            frozenset({kind} if kind else ()),
            len(series),
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
        words = self.words
        if len(other.words):
            both = pl.concat([self.words, other.words]).group_by("word", maintain_order=True)
            words = both.agg(pl.col("rows", "weight").sum()).head(MOST_WORDS)
        return Facts(
            self.kinds | other.kinds,
            self.rows + other.rows,
            self.given + other.given,
            self.missing + other.missing,
            min(self.low, other.low),
            max(self.high, other.high),
            (*self.run[:2], other.run[2]) if follows and self.run and other.run else None,
            words,
        )

    @property
    def total(self) -> float:
        """Total weight of the rows."""
        return self.given + self.missing

    @property
    def is_constant(self) -> bool:
        """Whether there is a single value, and too few missing ones to be informative."""
        one = len(self.words) == 1 if self.kinds == {"text"} else self.low == self.high
        return one and (not self.missing or is_rare(self.missing, self.total))

    @property
    def is_counter(self) -> bool:
        """Whether the values number the rows, starting at 0 or 1."""
        return self.rows >= LEAST_COUNTED and self.run is not None and self.run[0] in (0, 1)

    @property
    def names_rows(self) -> bool:
        """Whether every row has a different whole number."""
        whole = self.words["word"].str.contains(r"^[+-]?\d+$").all()
        return bool(len(self.words) > 1 and whole and (self.words["rows"] == 1).all())


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
    frame = pl.DataFrame({"word": text, "weight": weight}).drop_nulls("word")
    words = frame.group_by("word", maintain_order=True).agg(rows=pl.len(), weight=pl.col("weight").sum())
    return words.head(MOST_WORDS)


def merge_facts(a: Mapping[str, Facts], b: Mapping[str, Facts]) -> dict[str, Facts]:
    """Merge the facts of two tables, with the rows of the first before those of the second."""
    return {name: facts | b[name] for name, facts in a.items()}


def table_facts(table: Table, names: Sequence[str], weight: np.ndarray | None = None) -> dict[str, Facts]:
    """Collect the facts of columns of a table."""
    return {name: Facts.of(table, name, weight) for name in names}


@dataclass
class Prepared:
    """Feature columns and their kinds, before anything is learned from their values.

    Attributes
    ----------
    columns : list of Number, Category or Date
        The columns to use, in table order.
    notes : list of str
        Descriptions of what was done, one sentence each.
    left_out : list of (str, str)
        Columns that are not used, with the reasons.
    """

    columns: list[Column] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def prepare(table: Table, recipe: Recipe, weight: np.ndarray | None = None) -> Prepared:
    """Choose the feature columns of a table and their kinds.

    Text that is mostly numeric is read as numbers, with decimal commas, thousands separators, currencies, percent signs
    and marks such as "?" for missing values. Dates become numbers. Other text is one-hot encoded if at most 100
    frequent values cover half of the rows. Constants, row counters, ids and other text are left out, unless named in
    ``recipe.features`` or ``recipe.categorical``. For graded recipes and LETOR files all columns are plain numbers,
    except those named in ``categorical``; only row counters of graded tables are left out.

    Examples
    --------
    >>> from apexrank.io import Recipe
    >>> frame = pl.DataFrame({"price": ["$1,200", "$90", "?"], "shop": ["a", "b", "a"], "fraud": [0, 1, 0]})
    >>> prepared = prepare(Table(frame), Recipe(target="fraud"))
    >>> prepared.columns[0]
    Number(name='price', fill=None, missing=False, decimal='.', unit='$')
    >>> for note in prepared.notes:
    ...     print(note)
    read with thousands separators or units: 'price'
    taken as missing: '?' in 'price' (1 row)
    one-hot encoded: 'shop' (2 values)
    """
    names = recipe.feature_columns(table)
    facts = {}
    if table.unnamed is None:
        facts = table_facts(table, names, weight)
    return choose_columns(names, facts, recipe, table.separator, table.source)


def needs_facts(recipe: Recipe, table: Table) -> bool:
    """Return whether the columns must be inspected: in LETOR files with grades, all columns are features."""
    return not recipe.graded or table.unnamed is None


def choose_columns(
    names: Sequence[str], facts: Mapping[str, Facts], recipe: Recipe, separator: str | None, source: str
) -> Prepared:
    """Choose columns from their facts, as in :func:`prepare`; without facts they are plain numbers."""
    named = {name for name in recipe.categorical or () if name != "all" or "all" in names}
    for name in sorted(named - set(names)):
        raise InputError(f"`categorical=[{name!r}]`: the column is not among the features")
    chooser = _Chooser(recipe, "all" in (recipe.categorical or ()) and "all" not in names, separator, source)
    for name in names:
        if recipe.graded and facts and name not in {*recipe.features, *named} and facts[name].is_counter:
            chooser.found.left_out.append((name, _COUNTS))
        elif recipe.graded or not facts:
            is_category = name in named or (chooser.all_text and name in facts and _is_text(facts[name]))
            chooser.found.columns.append(Category(name) if is_category else Number(name))
        else:
            chooser.choose(name, facts[name], name in named)
    if not chooser.found.columns:
        name, reason = chooser.found.left_out[0]
        raise InputError(
            f"{source} has no column left to use as a feature: column {name!r} is left out ({reason})"
        )
    return chooser.noted()


def _is_text(facts: Facts) -> bool:
    """Whether less than half of the words are numbers."""
    words = facts.words.filter(given_words(facts.words["word"]))
    return "text" in facts.kinds and _share(words, written_numbers(words["word"])) < 0.5


class _Chooser:
    """Chooser of columns, which decides about them one by one and collects the notes."""

    def __init__(self, recipe: Recipe, all_text: bool, separator: str | None, source: str) -> None:
        self.recipe, self.all_text, self.separator, self.source = recipe, all_text, separator, source
        self.found = Prepared()
        self.done: dict[str, list[str]] = {}

    def choose(self, name: str, facts: Facts, named: bool) -> None:
        """Add a column, or leave it out."""
        asked = named or name in self.recipe.features
        found: Column | str | None = _useless(facts) or (None if asked else _names_the_rows(name, facts))
        if found is None and named:
            found = _levels(name, facts, asked) if len(facts.words) else Category(name)
        elif found is None:
            found = self._read(name, facts, asked)
        if not isinstance(found, str):
            self.found.columns.append(found)
            self._tell(found, facts)
        elif asked and not facts.is_constant:
            raise InputError(
                f"{self.source} column {name!r} cannot be used ({found}): leave it out (`drop=[{name!r}]`)"
            )
        else:
            self.found.left_out.append((name, found))

    def _read(self, name: str, facts: Facts, asked: bool) -> Column | str:
        """Column with varying values, or the reason to leave it out."""
        if "text" not in facts.kinds:
            zoned = "%z" * ("zoned datetime" in facts.kinds)
            timed = f" %H:%M:%S{zoned}" if facts.kinds & {"datetime", "zoned datetime"} else ""
            return Number(name) if "number" in facts.kinds else Date(name, f"%Y-%m-%d{timed}")
        words = facts.words.filter(given_words(facts.words["word"]))
        if not len(words):
            return "no values"
        plain = _share(words, written_numbers(words["word"]))
        if plain == 1 or words["word"].str.to_lowercase().is_in(["true", "false"]).all():
            return Number(name)
        found = self._written(name, words, plain) or _dated(name, words["word"])
        if found is None and plain >= 0.5 and _are_slips(words, plain):
            return Number(name)  # parsing raises an error that names the line of the first typo
        return found or _levels(name, facts, asked or self.all_text)

    def _written(self, name: str, words: pl.DataFrame, plain: float) -> Number | str | None:
        """Format of numbers that are not plain; None if they are not numbers."""
        units = words["word"].str.extract(_UNIT, 1).drop_nulls().unique()
        if len(units) > 1:
            return None
        unit = "" if not len(units) else str(units[0])
        point, comma = (written_numbers(words["word"], decimal, unit) for decimal in ".,")
        shares = [_share(words, values) for values in (point, comma)]
        with_point, with_comma = (share if share >= MOST else 0.0 for share in shares)
        if max(with_point, with_comma) <= plain:
            return None
        cells = self.separator is not None and self.separator in ";\t"  # then a comma cannot separate columns
        shown = ", ".join(map(repr, words["word"].filter(written_numbers(words["word"]).is_null())[:3]))
        unclear = f"may be numbers written as text: {shown}, ...; write them as plain numbers such as 1234.5"
        if with_point and with_comma and not point.equals(comma):
            return unclear if cells else Number(name, decimal=".", unit=unit)
        if with_point:
            return Number(name, decimal=".", unit=unit)
        return Number(name, decimal=",", unit=unit) if cells else unclear

    def _tell(self, column: Column, facts: Facts) -> None:
        name = repr(column.name)
        if isinstance(column, Category) and column.name in (self.recipe.categorical or ()):
            return  # as requested
        if isinstance(column, Category):
            count = len(facts.words)
            self._note("one-hot encoded", f"{name} ({count:,} values)" if count else name)
        elif isinstance(column, Date):
            self._note(
                "dates as numbers (days since 1970, month, day of the week, and the hour if there are times)",
                name,
            )
        elif column.decimal:
            commas = "decimal commas" if column.decimal == "," else "thousands separators or units"
            self._note(f"read with {commas}", name)
        if isinstance(column, Category) or "text" not in facts.kinds:
            return
        marks = facts.words.filter(facts.words["word"].str.to_lowercase().is_in(MARKS))
        if len(marks):
            rows = int(marks["rows"].sum())
            shown = quoted(sorted(marks["word"]), 3)
            self._note("taken as missing", f"{shown} in {name} ({rows:,} row{'s' * (rows != 1)})")

    def _note(self, what: str, which: str) -> None:
        self.done.setdefault(what, []).append(which)

    def noted(self) -> Prepared:
        """Return the result, with one note for each kind of action."""
        reasons: dict[str, list[str]] = {}
        for name, reason in self.found.left_out:
            reasons.setdefault(reason, []).append(repr(name))
        self.found.notes = [f"{what}: {first_of(which)}" for what, which in self.done.items()]
        self.found.notes += [f"left out: {', '.join(names)} ({reason})" for reason, names in reasons.items()]
        return self.found


def _useless(facts: Facts) -> str | None:
    unknown = facts.kinds - {"text", *_NUMERIC}
    if unknown or ("text" not in facts.kinds and len(facts.kinds) > 1 and "number" in facts.kinds):
        return f"{', '.join(sorted(facts.kinds))} values, not numbers"
    if "zoned datetime" in facts.kinds and facts.kinds & {"date", "datetime"}:
        return "a time zone in some files and none in others"
    if facts.kinds > {"text"}:  # several files, one of which has text
        words = facts.words.filter(given_words(facts.words["word"]))
        if len(words) and _share(words, written_numbers(words["word"])) < 1:
            return f"{', '.join(sorted(facts.kinds - {'text'}))} values in some files and text in others"
    if not facts.given:
        return "no values"
    return "one value only" if facts.is_constant else None


def _names_the_rows(name: str, facts: Facts) -> str | None:
    if facts.is_counter:
        return _COUNTS
    if _ID_NAME.search(name) and facts.names_rows:
        return f"a different number in every row, like an id; {_KEEP}"
    decimal = facts.words["word"].str.contains(r"^[+-]?\d*\.\d+$").any()
    if _OWNER.search(name) and not decimal and len(facts.words) > max(MOST_GROUPS, facts.rows / 50):
        return f"an id that repeats; if its rows belong together, use `group_split='NAME'`; {_KEEP}"
    return None


def _are_slips(words: pl.DataFrame, plain: float) -> bool:
    """Whether a few texts among numbers are typing errors, rather than levels such as "other" and "7+"."""
    total = float(words["weight"].sum())
    texts_among = words.filter(written_numbers(words["word"]).is_null())
    if len(words) <= FEW_WORDS and bool((texts_among["weight"] >= 5).any()):
        return False
    return plain >= 1 - FEW or (1 - plain) * total < 5


def _share(words: pl.DataFrame, values: pl.Series) -> float:
    """Weighted share of the words that were parsed."""
    total = float(words["weight"].sum())
    return 1.0 if not total else float(words["weight"].filter(values.is_not_null()).sum()) / total


def _dated(name: str, words: pl.Series) -> Date | str | None:
    """Format of dates; None if the words are not dates."""
    some = words.head(200)
    if not some.str.contains(_LIKE_A_DATE).mean() >= MOST:  # type: ignore[operator]
        return None
    fits = [form for form in DATE_FORMATS if written_dates(some, form).is_not_null().mean() >= MOST]  # type: ignore[operator]
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
        return Category(name)
    advice = "; `categorical=['NAME']` keeps its frequent values"
    return f"text that hardly repeats{advice * bool(frequent)}"


def deciding_columns(
    encoder: Encoder, X: Matrix, y: np.ndarray, sample_weight: np.ndarray | None = None
) -> list[tuple[str, float]]:
    """Return columns that order the rows almost like the target, with their areas under the ROC curve.

    Levels of a category are ordered by their shares of positives. Columns with the largest area come first. In large
    tables, evenly spaced rows are used.

    Examples
    --------
    >>> frame = pl.DataFrame({"x": [0.5, 0.1] * 50, "paid": ["no", "yes"] * 50})
    >>> encoder, X = Encoder.fit_transform(Table(frame), [Number("x"), Category("paid")])
    >>> deciding_columns(encoder, X, np.arange(100) % 2)
    [('x', 1.0), ('paid', 1.0)]
    """
    some = slice(None, None, -(-len(y) // MOST_ROWS))
    X, y = X[some], np.asarray(y)[some]
    weight = np.ones(len(y)) if sample_weight is None else sample_weight[some]
    positive = weight * (y > 0)
    ends = [*encoder.starts[1:], X.shape[1]]
    found = []
    for column, start, end in zip(encoder.columns, encoder.starts, ends, strict=True):
        part = X[:, start:end]
        if isinstance(column, Category):
            with np.errstate(invalid="ignore"):
                part = part @ np.nan_to_num((positive @ part) / (weight @ part))[:, None]
        part = part.toarray() if sparse.issparse(part) else part
        areas = [_area(feature, positive, weight - positive) for feature in part.T]
        area = max(max(area, 1 - area) for area in areas)
        if area >= DECIDES and _is_sure(area, positive.sum(), weight.sum() - positive.sum()):
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
    if max(area, 1 - area) >= SORTED and _is_sure(area, positive.sum(), len(y) - positive.sum()):
        notes.append("the rows are sorted by the target: do not take the first or last rows as a sample")
    return notes
