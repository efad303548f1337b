"""Parsing of table columns as numbers, text, labels, grades, groups or weights.

A value that cannot be used raises an error that names its line and column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np
import polars as pl

from apexrank.errors import InputError, first_of
from apexrank.io.read import Table

TEXT = (pl.String, pl.Categorical, pl.Enum)
_MISSING_WORDS = ["", "na", "n/a", "nan", "null", "none"]
_MISSING_TARGETS = ["na", "n/a", "nan", "null"]  # "none" may be a class
# marks for missing numbers
MARKS = ["-", "--", "–", "—", "?", ".", "..", "n.a.", "#n/a", "unknown", "missing"]
PERCENT = "%‰"
KNOWN = 20  # values of a target that a model remembers
_EXAMPLES = {".": "1,234.5", ",": "1.234,5"}
_DIGITS = {  # 1.234 is ambiguous: it may also be a plain number
    ".": r"(?:(?:\d+|\d{1,3}(?:,\d{3})+|\d{1,3}(?:['’\s]\d{3})+)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?",
    ",": r"(?:(?:\d+|\d{1,3}(?:['’\s]\d{3})+|\d{1,3}(?:\.\d{3}){2,})(?:,\d*)?|\d{1,3}\.\d{3},\d+|,\d+)"
    r"(?:[eE][+-]?\d+)?",
}
_SEPARATORS = {".": r"[(),'’\s]", ",": r"[().'’\s]"}
_OFFSET = r"(Z|UTC|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)"  # of ISO 8601
_BOOLEAN_WORDS = {"false": 0.0, "true": 1.0}
_SIGNS = {"0": "1", "-1": "1", "negative": "positive", "neg": "pos"}
_WORDS = {"false": "true", "no": "yes", "n": "y", "f": "t"}
# The obvious positive value of a pair of values (in lower case).
_POSITIVES = {frozenset(pair): pair[1] for pair in (_SIGNS | _WORDS).items()}


def numbers(
    table: Table, name: str, advice: str = "", *, marks: bool = False, decimal: str = "", unit: str = ""
) -> np.ndarray:
    """Read a column as floats, with missing values as NaN; true and false become 1 and 0.

    Parameters
    ----------
    table, name : Table, str
        The column; numbers of any type, or text.
    advice : str
        Advice appended to an error message.
    marks : bool
        Whether marks such as "?" and "-" denote missing values.
    decimal, unit : str
        Number format of text, as in :func:`written_numbers`.

    Raises
    ------
    InputError
        At the first value that is not a finite number, with its location.

    Examples
    --------
    >>> numbers(Table(pl.DataFrame({"x": ["1.5", "NA", " -2 "]})), "x").tolist()
    [1.5, nan, -2.0]
    """
    series = table.column(name)
    if series.dtype in TEXT:
        words = series.cast(pl.String).str.strip_chars()
        given = given_words(words, marks)
        values = _booleans(words, given)
        values = written_numbers(words, decimal, unit) if values is None else values
        failed = (given & values.is_null()).to_numpy()
        if failed.any():
            row = int(failed.argmax())
            hint = ""
            if re.fullmatch(r"[-+]?[\d.]*,[\d.,]+", words[row]):
                hint = " (decimal commas? `decimal=`; thousands separators? take them out)"
            if advice and failed.sum() == given.sum() > 1:
                text = f"{table.source} column {name!r} holds text such as {series[row]!r}"
                raise InputError(f"{text}{hint}{advice}")
            like = f" such as {_EXAMPLES[decimal]}{unit}, as in training" if decimal else ""
            like += hint
            raise InputError(f"{table.where(row, name)}: {series[row]!r} is not a number{like}{advice}")
        values = values.set(~given, None)
    elif series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null):
        values = series.cast(pl.Float64)
    else:
        raise InputError(f"{table.source} column {name!r} holds {series.dtype} values, not numbers{advice}")
    array = values.to_numpy().astype(np.float64)  # a null becomes NaN
    refuse_row(table, name, np.isinf(array), "the value is infinite; correct it")
    return array


def given_words(words: pl.Series, marks: bool = True) -> pl.Series:
    """Mask of the words that are values rather than missing."""
    lower = words.str.to_lowercase()
    return lower.is_not_null() & ~lower.is_in([*_MISSING_WORDS, *(MARKS if marks else ())]).fill_null(True)


def _booleans(words: pl.Series, given: pl.Series) -> pl.Series | None:
    """0 and 1 if all given words are false or true, else None."""
    lower = words.str.to_lowercase()
    if not given.any() or not lower.filter(given).is_in(list(_BOOLEAN_WORDS)).all():
        return None
    return lower.replace_strict(_BOOLEAN_WORDS, default=None, return_dtype=pl.Float64)


def written_numbers(words: pl.Series, decimal: str = "", unit: str = "") -> pl.Series:
    """Parse numbers; null if a word is not a number.

    Without ``decimal`` only plain numbers are parsed. With it they may have thousands separators, a sign or brackets
    around a negative number, and the ``unit``: an optional currency, or a mandatory percent sign.

    Examples
    --------
    >>> written_numbers(pl.Series(["$1,234.50", "($3)", "7", "€7"]), ".", "$").to_list()
    [1234.5, -3.0, 7.0, None]
    >>> written_numbers(pl.Series(["1.234,5", "1,5", "1.5"]), ",").to_list()
    [1234.5, 1.5, None]
    """
    if not decimal:
        return words.cast(pl.Float64, strict=False)
    words = words.str.strip_chars().str.replace(r"^(\(?\s*)[−–]", "${1}-")
    sign = rf"(?:{re.escape(unit)})?" if unit and unit not in PERCENT else ""
    end = re.escape(unit) if unit in PERCENT and unit else sign
    fits = words.str.contains(rf"^\(?[+-]?{sign}\s*[+-]?{_DIGITS[decimal]}\s*{end}\)?$").fill_null(False)
    plain = words.str.replace_all(unit, "", literal=True) if unit else words
    negative = plain.str.contains(r"^\(?-|^\(")
    plain = plain.str.replace_all(_SEPARATORS[decimal], "").str.replace(",", ".", literal=True)
    size = plain.cast(pl.Float64, strict=False).abs().set(~fits, None)
    return size.zip_with(~negative.fill_null(False), -size)


def dates(table: Table, name: str, format: str, advice: str = "") -> pl.Series:
    """Read a column as dates and times, in UTC if the ``format`` has offsets from it (``%z``).

    Raises
    ------
    InputError
        If a text does not have the format, or only one of the column and the format has offsets.
    """
    series, is_zoned = table.column(name), format.endswith("%z")
    if series.dtype in (pl.Date, pl.Datetime):
        if (getattr(series.dtype, "time_zone", None) is not None) != is_zoned:
            has, had = ("no time zone", "had one") if is_zoned else ("a time zone", "had none")
            raise InputError(
                f"{table.source} column {name!r} has {has}, but in training it {had}: convert it"
            )
        when = series.cast(pl.Datetime("us")) if series.dtype == pl.Date else series
        when = when.dt.convert_time_zone("UTC") if is_zoned else when
        return when.dt.replace_time_zone(None).cast(pl.Datetime("us"))
    if series.dtype not in (*TEXT, pl.Null):
        raise InputError(
            f"{table.source} column {name!r} holds {series.dtype} values, not dates as in training"
        )
    words = series.cast(pl.String).str.strip_chars()
    when = written_dates(words, format)
    failed = (given_words(words) & when.is_null()).to_numpy()
    if failed.any():
        row = int(failed.argmax())
        example = datetime(2024, 12, 31, 18, 30).strftime(format.replace("%z", "+01:00"))
        raise InputError(f"{table.where(row, name)}: {words[row]!r} is not a date such as {example}{advice}")
    return when


def written_dates(words: pl.Series, format: str) -> pl.Series:
    """Parse dates; null if a word is not a date. A T between date and time and fractional seconds are ignored.

    If the format ends in ``%z``, every word has an offset from UTC, such as Z or +02:00, and is converted to UTC.
    Otherwise none has.

    Examples
    --------
    >>> written_dates(pl.Series(["2024-03-01T10:00:30.5+02:00"]), "%Y-%m-%d %H:%M:%S%z").to_list()
    [datetime.datetime(2024, 3, 1, 8, 0, 30)]
    """
    plain = words.str.replace(r"(\d)T(\d)", "${1} ${2}")
    plain = plain.str.replace(rf"(:\d\d)(\.\d+)?\s*{_OFFSET}?$", "${1}")
    # %Y would read "24" as the year 24
    years = plain.str.contains(r"\d{4}") == ("%Y" in format)
    when = plain.str.strptime(pl.Datetime("us"), format.removesuffix("%z"), strict=False)
    offset = utc_offsets(words)
    fits = years.fill_null(False) & (offset.is_not_null() == format.endswith("%z"))
    return (when - offset.fill_null(0).cast(pl.Duration("us"))).set(~fits, None)


def utc_offsets(words: pl.Series) -> pl.Series:
    """Offset of each time from UTC in microseconds; null without one.

    Examples
    --------
    >>> times = pl.Series(["12:00+09:00", "03:00Z", "23:30:00.5 -0330", "12:00"])
    >>> (utc_offsets(times) / 3600e6).to_list()
    [9.0, 0.0, -3.5, None]
    """
    parts = words.str.extract_groups(rf":\d\d(?:\.\d+)?\s*{_OFFSET}$").struct.unnest()
    zone, sign, hours, minutes = parts.iter_columns()
    size = hours.cast(pl.Int64).fill_null(0) * 60 + minutes.cast(pl.Int64).fill_null(0)
    return (size.zip_with(sign != "-", -size) * 60_000_000).set(zone.is_null(), None)


def word_balance(table: Table, name: str) -> int:
    """Count the words of a text column that are not numbers minus those that are; 0 for other columns.

    The balances of several tables add up to that of all their rows. Above 0, the column holds words: one of numbers
    with a typing error does not, so the error is reported.
    """
    series = table.column(name)
    if series.dtype not in TEXT:
        return 0
    words = series.cast(pl.String).str.strip_chars().str.to_lowercase().drop_nulls()
    words = words.filter(~words.is_in([*_MISSING_WORDS, *_BOOLEAN_WORDS]))
    return 2 * words.cast(pl.Float64, strict=False).null_count() - len(words)


def is_text(table: Table, name: str) -> bool:
    """Return whether a column holds words, that is, less than half of its text parses as numbers."""
    return word_balance(table, name) > 0


def texts(table: Table, name: str) -> pl.Series:
    """Read a column as text, with missing values as null; 1 and 1.0 are the same text.

    Examples
    --------
    >>> texts(Table(pl.DataFrame({"x": [1.0, 2.5]})), "x").to_list()
    ['1', '2.5']
    """
    series = table.column(name)
    try:
        if series.dtype.is_nested():
            raise pl.exceptions.InvalidOperationError
        plain = (series.fill_nan(None) if series.dtype.is_float() else series).cast(pl.String)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):  # such as a date out of range
        raise InputError(
            f"{table.source}, column {name!r}: {series.dtype} values cannot be used; leave the column out"
        ) from None
    text = plain.str.strip_chars().str.replace(r"^(-?\d+)\.0*$", "${1}")
    return text.set(text == "", None)


def refuse_row(table: Table, name: str, bad: np.ndarray, message: str) -> None:
    """Raise InputError for the first bad row of a column, if any."""
    if bad.any():
        raise InputError(f"{table.where(int(bad.argmax()), name)}: {message}")


def target_values(table: Table, target: str) -> pl.Series:
    """Read the target as text; True and TRUE are the same as true of a boolean column."""
    text = texts(table, target)
    words = text.str.to_lowercase()
    text = text.set(words.is_in(_MISSING_TARGETS).fill_null(False), None)
    return words.zip_with(words.is_in(["false", "true"]), text)


def labelled_rows(table: Table, target: str) -> tuple[Table, list[str]]:
    """Return the rows with a target, and a note about those without.

    Examples
    --------
    >>> labelled, notes = labelled_rows(Table(pl.DataFrame({"y": ["yes", None, "no"]})), "y")
    >>> labelled.frame["y"].to_list(), notes
    (['yes', 'no'], ["left out: 1 of 3 rows of table, because the target 'y' is missing"])
    """
    known = target_values(table, target).is_not_null().to_numpy()
    if known.all():
        return table, []
    note = unlabelled_note(np.sum(~known), len(table), table.source, target)
    return table.take(np.flatnonzero(known)), [note]


def unlabelled_note(missing: int, rows: int, source: str, target: str) -> str:
    """Return a note about rows without a target."""
    return f"left out: {missing:,} of {rows:,} rows of {source}, because the target {target!r} is missing"


def target_counts(table: Table, target: str, values: pl.Series | None = None) -> dict[str, int]:
    """Count the values of the target; raise InputError if one is missing."""
    text = target_values(table, target) if values is None else values
    missing = text.is_null().to_numpy()
    refuse_row(table, target, missing, "the target is missing; fill it in or drop the row")
    return dict(text.alias("value").value_counts().iter_rows())


def weight_notes(weight: np.ndarray | None) -> list[str]:
    """Return a note if the weights are in a unit that repetitions of rows would hardly have.

    Examples
    --------
    >>> weight_notes(np.array([100.0, 500.0, 0.0]))
    ['weights count as repetitions, so these 2 rows stand for 600: divide the weights by 300 if only ratios matter']
    """
    used = np.count_nonzero(weight) if weight is not None else 0
    if weight is None or not used or 0.1 <= weight.sum() / used <= 10:
        return []
    total = weight.sum()
    return [
        f"weights count as repetitions, so these {used:,} rows stand for {total:,.6g}: divide the weights by "
        f"{total / used:.4g} if only ratios matter"
    ]


def negative_notes(counts: Mapping[str, int], positive: str) -> list[str]:
    """Return a note about the values that count as negative, if there are several.

    Examples
    --------
    >>> negative_notes({"good": 2, "BAD": 1, "bad": 1}, "bad")
    ["counted as negative: 'good' (2 rows), 'BAD' (1 row)"]
    """
    others = {value: count for value, count in counts.items() if value != positive}
    return [f"counted as negative: {_most_frequent(others)}"] if len(others) > 1 else []


def _most_frequent(counts: Mapping[str, int]) -> str:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return first_of([f"{value!r} ({count:,} row{'s' * (count > 1)})" for value, count in ranked])


def unknown_notes(counts: Mapping[str, int], known: Sequence[str]) -> list[str]:
    """Return a note about values of the target that training had not, if all of those are known.

    Examples
    --------
    >>> unknown_notes({"yes": 2, "yes?": 1, "no": 3}, ("yes", "no"))
    ["counted as negative, but unknown to the model: 'yes?' (1 row)"]
    """
    new = {value: count for value, count in counts.items() if value not in known}
    if not new or len(known) > KNOWN:
        return []
    shown = [f"{value!r} ({count:,} row{'s' * (count > 1)})" for value, count in new.items()]
    return [f"counted as negative, but unknown to the model: {first_of(shown)}"]


def choose_positive(counts: Mapping[str, int], source: str, target: str, positive: str | None) -> str:
    """Return the positive value of the target: the requested one, or the obvious one of two."""
    shown = _most_frequent(counts)
    if len(counts) < 2:
        only = f"only one value ({shown})" if counts else "no values"
        raise InputError(
            f"{source} column {target!r} has {only}: ranking needs both positive and negative rows"
        )
    if positive is not None:
        asked = target_values(Table(pl.DataFrame({"value": [positive]})), "value")[0] or ""
        if asked not in counts:
            raise InputError(f"{source} column {target!r} has no value {positive!r}; it has {shown}")
        return asked
    by_word = {value.lower(): value for value in counts}
    word = _POSITIVES.get(frozenset(by_word)) if len(counts) == 2 else None
    if len(counts) > 2 and pl.Series(counts.keys()).cast(pl.Float64, strict=False).is_not_null().all():
        raise InputError(
            f"{source} column {target!r} has {len(counts):,} distinct numbers, but this ranker learns from two "
            "classes: use one of grades (`graded=True`), or name the positive one with `positive=`"
        )
    if word is None:
        raise InputError(
            f"{source} column {target!r} has the values {shown}: name the positive one with `positive=`"
        )
    return by_word[word]


def read_target(
    table: Table, target: str, positive: str | None = None, *, graded: bool = False
) -> tuple[np.ndarray, str | None]:
    """Read labels 0 and 1 with the value that became 1, or relevance grades with None.

    Examples
    --------
    >>> y, positive = read_target(Table(pl.DataFrame({"fraud": ["No", "Yes", "No"]})), "fraud")
    >>> y.tolist(), positive
    ([0, 1, 0], 'Yes')
    """
    if graded:
        return grades(table, target), None
    values = target_values(table, target)
    found = choose_positive(target_counts(table, target, values), table.source, target, positive)
    return (values == found).to_numpy().astype(np.int64), found


def grades(table: Table, target: str) -> np.ndarray:
    """Read the relevance of each row, a non-negative number.

    Examples
    --------
    >>> grades(Table(pl.DataFrame({"stars": ["3", "0", "2.5"]})), "stars").tolist()
    [3.0, 0.0, 2.5]
    """
    values = numbers(table, target, "; grades of relevance are numbers")
    refuse_row(table, target, ~(values >= 0), "relevance must be a number of at least 0; correct it")
    return values


def group_ids(table: Table, name: str) -> np.ndarray:
    """Read the group of each row; raise InputError if one is missing."""
    text = texts(table, name)
    missing = text.is_null().to_numpy()
    refuse_row(table, name, missing, "the group is missing; fill it in or drop the row")
    return text.to_numpy().astype(str)


def row_weights(table: Table, name: str) -> np.ndarray:
    """Read the weight of each row, a non-negative number."""
    weight = numbers(table, name, "; weights are numbers")
    refuse_row(table, name, ~(weight >= 0), "a weight must be a number of at least 0")
    return weight


def feature_columns(
    table: Table, roles: Mapping[str, str | None], features: Sequence[str] = (), drop: Sequence[str] = ()
) -> list[str]:
    """Return the feature columns in table order: those named, or all others without a role that are not dropped.

    The name "all" stands for the latter, unless a column has this name.
    """
    has_all = "all" in features and "all" not in table.names
    features = [name for name in features if name != "all" or not has_all]
    taken: dict[str, str] = {}
    for role, column in roles.items():
        if column in taken:
            raise InputError(f"column {column!r} is the {taken[column]}: it cannot be the {role} as well")
        taken |= {} if column is None else {column: role}
    for name in (*taken, *drop, *features):
        table.column(name)
    for name in features:
        if name in taken:
            raise InputError(f"column {name!r} is the {taken[name]}: it cannot be a feature as well")
    # pandas writes the index of a frame to Parquet files under such a name, and to CSV files without a name
    index = table.roles.get("id")
    plain = [name for name in table.names if not re.fullmatch(r"__index_level_\d+__", name) and name != index]
    wanted = {*features, *(plain if has_all or not features else ())} - set(taken) - set(drop)
    if not wanted:
        raise InputError(f"{table.source} has no column left to use as a feature")
    return [name for name in table.names if name in wanted]
