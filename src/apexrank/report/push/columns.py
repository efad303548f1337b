"""Choice of the feature columns of a table: numbers as people write them, categories, and what is of no use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.io.columns import is_text, numbers, text_columns, texts, word_counts
from apexrank.io.encode import one_hot_columns
from apexrank.io.table_ranker import Recipe
from apexrank.io.tables import Table
from apexrank.report.page import counted

FEW_VALUES = 20  # different texts that are one-hot encoded without asking
MOST = 0.95  # share of a column's values that says what it holds
FEW_MARKS = 0.05  # share of cells that may stand for a missing number
_MISSING = ["", "na", "n/a", "nan", "null", "none"]  # read as missing anywhere
_MARKS = ["-", "--", "–", "—", "?", ".", "..", "n.a.", "#n/a", "unknown", "missing"]
_LARGEST, _SMALLEST = 1e150, 1e-150  # beyond them the squares of scaling overflow, or vanish
_LIKE_AN_ID = re.compile(r"(^|[_\-. ])(?i:id|ids|case|key|index|row|no|nr|number)$|[a-z]I[dD]$")
_DECIMAL_COMMA = r"^[+-]?(\d+(,\d+)?|\d{1,3}(\.\d{3})+,\d+)([eE][+-]?\d+)?$"
_THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+$"
_LIKE_A_NUMBER = (
    r"^[(]?[+\-−]?\s*([$€£¥]|[A-Z]{3})?\s*[+\-−]?\d[\d.,'’\s]*([eE][+-]?\d+)?\s*(%|‰|[$€£¥]|[A-Z]{3})?[)]?$"
)
_DATE = r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))([T ]\d{1,2}:\d{2}.*)?$"
DATES = "dates: if the rows are ordered in time, measure on later rows with --test"


@dataclass
class Features:
    """Feature columns of a table: used, one-hot encoded and left out."""

    names: list[str] = field(default_factory=list)
    one_hot: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    as_text: list[str] = field(default_factory=list)


def plain_numbers(table: Table, names: Sequence[str], notes: list[str], whose: str = "") -> Table:
    """Convert numbers written as text: decimal commas, and marks such as "-" for missing values.

    A comma is a decimal one only where it cannot part columns, in a file separated by semicolons or tabs.

    Examples
    --------
    >>> frame = pl.DataFrame({"x": ["1,5", "2", "1.000,25"]})
    >>> plain_numbers(Table(frame, separator=";"), ["x"], notes := []).frame["x"].to_list(), notes
    (['1.5', '2', '1000.25'], ["read with decimal commas: column 'x'"])
    """
    changed, commas = [], []
    for name in names:
        series = table.frame[name] if name in table.names else None
        if series is None or series.dtype != pl.String or not _Cells(series).unread.any():
            continue
        if table.separator in (";", "\t") and _has_decimal_commas(series):
            commas.append(name)
            series = _without_commas(series)
        cells = _Cells(series)
        few, numbers_mostly = int(cells.marks.sum()), 2 * cells.unread.sum() <= cells.given.sum()
        if 0 < few <= FEW_MARKS * len(series) and numbers_mostly:
            found = ", ".join(map(repr, cells.words.filter(cells.marks).unique().sort()))
            notes.append(f"taken as missing: {counted(few, 'cell')} of column {name!r}{whose} ({found})")
            series = series.set(cells.marks, None)
        changed.append(series)
    if commas:
        notes.append(f"read with decimal commas: {_columns(commas)}{whose}")
    return replace(table, frame=table.frame.with_columns(changed))


def _columns(names: Sequence[str]) -> str:
    return f"column{'' if len(names) == 1 else 's'} {', '.join(map(repr, names))}"


class _Cells:
    """Cells of a column of text: its words, which of them are given, and which of those are not numbers."""

    def __init__(self, series: pl.Series) -> None:
        self.words = series.str.strip_chars()
        lower = self.words.str.to_lowercase()
        self.given = lower.is_not_null() & ~lower.is_in(_MISSING).fill_null(True)
        self.unread = self.given & self.words.cast(pl.Float64, strict=False).is_null()
        self.marks = lower.is_in(_MARKS).fill_null(False)


def _share(words: pl.Series, pattern: str) -> float:
    return float(words.str.contains(pattern).sum()) / max(1, len(words))


def _has_decimal_commas(series: pl.Series) -> bool:
    cells = _Cells(series)
    words = cells.words.filter(cells.given)
    fits = words.str.contains(_DECIMAL_COMMA)
    with_comma = words.filter(fits & words.str.contains(",", literal=True))
    # a number with a decimal point beside those with commas leaves open what either means
    pointed = words.filter(~fits).cast(pl.Float64, strict=False).is_not_null()
    thousands = len(with_comma) and with_comma.str.contains(_THOUSANDS).all()
    return bool(fits.mean() >= MOST and len(with_comma) and not pointed.any() and not thousands)  # type: ignore[operator]


def _without_commas(series: pl.Series) -> pl.Series:
    words = series.str.strip_chars()
    plain = words.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return plain.zip_with(words.str.contains(_DECIMAL_COMMA).fill_null(False), words).alias(series.name)


def choose_columns(
    train: Table, whole: Table, recipe: Recipe, categorical: Sequence[str] | None, notes: list[str]
) -> Features:
    """Choose feature columns by the training rows; ``whole`` is their table, with the line numbers of the file."""
    wanted = recipe.feature_columns(train)
    counts = word_counts(train, wanted)
    named_columns = one_hot_columns(wanted, categorical or (), counts)
    found = Features()
    for name in wanted:
        asked, text, named = name in recipe.features, name in text_columns(counts), name in named_columns
        few = text and texts(train, name).drop_nulls().n_unique() <= FEW_VALUES
        encoded = named or (categorical is None and few)
        reason = None if named or asked else _why_not_plain(train, name, found)
        if reason is None:
            reason = _why_not_text(train, name) if encoded else _why_not_number(train, whole, name, asked)
        if reason is not None:
            found.left_out.append(name)
            notes.append(f"left out: column {name!r} ({reason})")
            continue
        found.names.append(name)
        found.one_hot += [name] * encoded
        if encoded and categorical is None:
            notes.append(f"one-hot encoded: column {name!r} (text, {_different(train, name)})")
    if not found.names:
        hint = "name some with --features"
        if found.as_text:
            look = "looks" if len(found.as_text) == 1 else "look"
            like = f"{_columns(found.as_text)} {look} like numbers written as text"
            hint = f"{like}; write them as plain numbers such as 1234.5"
        raise InputError(f"{train.source} has no column left to use as a feature: {hint}")
    return found


def _different(train: Table, name: str) -> str:
    return counted(texts(train, name).drop_nulls().n_unique(), "different value")


def _why_not_plain(train: Table, name: str, found: Features) -> str | None:
    """Reason why a column that was not asked for is neither a category nor a plain number, or None."""
    series = train.column(name)
    if series.dtype.is_temporal():
        return DATES if series.dtype in (pl.Date, pl.Datetime) else f"{series.dtype} values, not numbers"
    if series.dtype != pl.String:
        return None
    cells = _Cells(series)
    words, unread = cells.words.filter(cells.given), int(cells.unread.sum())
    if not unread:
        return None
    if _share(words, _DATE) >= MOST:
        return DATES
    # a slip of the pen among plain numbers is an error that names its line
    if (
        unread > FEW_MARKS * len(words)
        and _share(cells.words.filter(cells.given & ~cells.marks), _LIKE_A_NUMBER) >= MOST
    ):
        found.as_text.append(name)
        shown = ", ".join(map(repr, series.filter(cells.unread).unique(maintain_order=True)[:3]))
        return f"looks like numbers written as text: {shown}, …; write them as plain numbers such as 1234.5"
    return None


def _why_not_text(train: Table, name: str) -> str | None:
    # one value and gaps still tell the rows apart
    return "one value only in the training rows" if texts(train, name).n_unique() < 2 else None


def _why_not_number(train: Table, whole: Table, name: str, asked: bool) -> str | None:
    """Reason why a column that is not one-hot encoded cannot be used, or None."""
    dtype = train.column(name).dtype
    if is_text(train, name) and not asked:
        return f"text, {_different(train, name)}"
    countable = dtype.is_numeric() or dtype in (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null)
    if not countable and not asked:
        return f"{dtype} values, not numbers"
    check_numbers(whole, name)
    values = numbers(train, name)
    given = values[~np.isnan(values)]
    if not len(given):
        return "no values in the training rows"
    if np.ptp(given) == 0:
        return "one value only in the training rows"
    own = len(np.unique(given)) == len(values) and (given == np.floor(given)).all()
    if own and not asked and _LIKE_AN_ID.search(name):
        return "another whole number in every row, like an id: name it in --features to keep it"
    return None


def check_numbers(table: Table, name: str) -> None:
    """Raise InputError for a value that is not a number, naming its line, and for numbers that cannot be scaled."""
    advice = f"; one-hot encode the column (--categorical {name}), leave it out (--drop {name}) or correct it"
    values = numbers(table, name, advice)
    sizes = np.abs(values[~np.isnan(values)])
    largest = float(sizes.max(initial=0.0))
    if largest > _LARGEST or 0 < largest < _SMALLEST:
        raise InputError(
            f"{table.source} column {name!r} has numbers of size {largest:.0e}, too "
            f"{'large' if largest > 1 else 'small'} to use: give them in another unit, or leave the column out "
            f"(--drop {name})"
        )
