"""Comparison of pushes on the rows of a table, which needs no option for an ordinary one.

The feature columns are chosen here: numbers as people write them, categories, and what is of no use.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.io.columns import numbers, read_target, row_weights, target_values, texts, word_balance
from apexrank.io.encode import Category, Encoder, Number
from apexrank.io.table_ranker import Recipe
from apexrank.io.tables import Table
from apexrank.metrics.roc import auc
from apexrank.report.page import Stages, counted, plural
from apexrank.report.push.compare import check_seed, compare_pushes
from apexrank.report.push.result import PushComparison
from apexrank.report.push.rows import check_counts, hold_out, note_of_split

NEARLY_PERFECT = 0.999
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


def compare_table(
    table: Table,
    *,
    target: str,
    positive: str | None = None,
    id: str | None = None,
    weight: str | None = None,
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    categorical: Sequence[str] | None = None,
    impute: str | None = None,
    scale: str = "standard",
    test_table: Table | None = None,
    **options: Any,
) -> PushComparison:
    """Compare pushes on the rows of a table; its encoding, too, is learnt from the training rows alone.

    Where nothing is said, text columns of few values are one-hot encoded. Other columns that are no numbers are left
    out, and so are dates, constant columns, and whole numbers that only name the rows: another one in every row, under
    a name such as ``case_id``, ``key`` or ``row``. Numbers with decimal commas are read in files that are separated by
    semicolons or tabs; other numbers written as text are left out. Missing numbers become the median, and rows without
    a target are left out. The notes of the result say each of these.

    Parameters
    ----------
    table : Table
        The rows.
    target, positive, id, weight, features, drop
        As in `apexrank.io.Recipe`. What is named in ``features`` is not left out as text or as an id.
    categorical, impute, scale
        As in :meth:`apexrank.io.encode.Encoder.fit_transform`; with ``categorical`` only the columns named there are
        one-hot encoded.
    test_table : Table, optional
        Held-out rows; by default a share of the table's. It needs the columns that are used, no others.
    **options
        Those of `compare_pushes`: ``ps``, ``holdout``, ``scoring``, ``progress``, ….

    Examples
    --------
    >>> from apexrank.datasets import make_push_example
    >>> example = make_push_example(400)
    >>> columns = dict(zip(example.feature_names, example.data.T))
    >>> frame = pl.DataFrame({**columns, "shop": ["a", "b"] * 200, "fraud": example.target})
    >>> found = compare_table(Table(frame), target="fraud", ps=(1, 4), n_resamples=50)
    >>> found.feature_names[-2:], found.notes[1]
    (['shop=a', 'shop=b'], "one-hot encoded: column 'shop' (text, 2 different values)")
    """
    stage = Stages(options.get("progress"))
    check_seed(options.get("random_state", 0))
    notes: list[str] = []
    with stage("encode"):
        recipe = Recipe(
            target=target,
            positive=positive,
            id=id or table.roles.get("id"),
            groups=table.roles.get("groups"),
            weight=weight,
            features=features,
            drop=drop,
        )
        wanted = recipe.feature_columns(table)  # refuses names that are no columns before anything takes time
        table = plain_numbers(table, wanted if weight is None else [*wanted, weight], notes)
        weights = None if weight is None else _weights(table, weight)
        train, test, used, caveats = _parts(table, test_table, recipe, categorical, options, notes)
        filling, weighed = impute or "median", None if weights is None else weights[train.rows]
        encoder, X = Encoder.fit_transform(
            train.table,
            [Category(name) if name in used.one_hot else Number(name) for name in used.names],
            impute=filling,
            scale=scale,
            sample_weight=weighed,
        )
        X_test = encoder.encode(test.table)
        _note_missing(encoder, train, test, filling, notes)
        notes += encoder.notes(test.table) + _leaks(encoder, X, train.y)
    found = compare_pushes(
        X,
        train.y,
        X_test=X_test,
        y_test=test.y,
        sample_weight=weighed,
        feature_names=encoder.features,
        test_row_names=_names(table if test_table is None else test_table, recipe.id, test.rows),
        **options,
    )
    if used.as_text:
        although = plural("although [it looks|they look] like numbers written as text", len(used.as_text))
        caveats.append(f"Left out {although}: {', '.join(map(repr, used.as_text))}.")
    left = plural(f"# of {len(wanted):,} columns [was|were] left out; the notes say why.", len(used.left_out))
    total = stage.seconds["encode"] + found.seconds["total"]
    return replace(
        found,
        notes=notes + found.notes,
        seconds={**stage.seconds, **found.seconds, "total": total},
        caveats=tuple(caveats),
        left_out=left if used.left_out else "",
    )


def one_hot_columns(names: Sequence[str], categorical: Sequence[str], balance: np.ndarray) -> set[str]:
    """Return the columns to one-hot encode: those named, and with "all" every column of words by its balance."""
    chosen = {name for name in categorical if name != "all" or "all" in names}
    for name in sorted(chosen - set(names)):
        raise InputError(f"--categorical {name}: the column is not among the features")
    if "all" in categorical:
        chosen.update(name for name, more in zip(names, balance, strict=True) if more > 0)
    return chosen


def _weights(table: Table, name: str) -> np.ndarray:
    weights = row_weights(table, name)
    if not weights.any():
        raise InputError(
            f"{table.source} column {name!r}: all weights are 0; give some rows a weight above 0"
        )
    return weights


class _TablePart(NamedTuple):
    """Rows with a target, which of them are positive, and their places in the input."""

    table: Table
    y: np.ndarray
    rows: np.ndarray

    def take(self, rows: np.ndarray) -> _TablePart:
        return _TablePart(replace(self.table, frame=self.table.frame[rows]), self.y[rows], self.rows[rows])


def _parts(
    table: Table,
    test_table: Table | None,
    recipe: Recipe,
    categorical: Sequence[str] | None,
    options: dict[str, Any],
    notes: list[str],
) -> tuple[_TablePart, _TablePart, Features, list[str]]:
    """Training rows, held-out rows, the columns chosen by the former, and caveats."""
    whole = _answered(table, recipe.target, recipe.positive, notes)
    if recipe.groups is not None:
        notes.append(f"column {recipe.groups!r} names groups: here rows of all groups are one list")
    if test_table is None:
        rows, held = hold_out(whole.y, options.get("holdout", 0.3), options.get("random_state", 0))
        train, test = whole.take(rows), whole.take(held)
        notes.append(note_of_split(len(held), len(whole.y)))
        check_counts(train.y, test.y)
        return train, test, choose_columns(train.table, table, recipe, categorical, notes), []
    used = choose_columns(whole.table, table, recipe, categorical, notes)
    _check_has(test_table, [recipe.target, *([recipe.id] if recipe.id else []), *used.names])
    other = plain_numbers(test_table, used.names, notes, f" of {test_table.source}")
    for name in used.names:
        if name not in used.one_hot:
            check_numbers(other, name)
    _, value = read_target(whole.table, recipe.target, recipe.positive)
    test = _answered(other, recipe.target, value, notes)
    check_counts(whole.y, test.y)
    return whole, test, used, _same_rows(table, other)


def _check_has(test_table: Table, names: Sequence[str]) -> None:
    """Raise InputError if the test table lacks columns that are used, naming all of them."""
    open_ended = test_table.unnamed is not None
    missing = [
        name
        for name in names
        if name not in test_table.names and not (open_ended and name.startswith("feature_"))
    ]
    if missing:
        raise InputError(
            f"{test_table.source} has no column {', '.join(map(repr, missing))}: it needs every column that is used; "
            "add what is missing, or leave features out (--drop)"
        )


def _same_rows(table: Table, test_table: Table) -> list[str]:
    """Caveat if most test rows are training rows.

    Rows that the training table has twice do not count: with few different values they meet by chance.
    """
    shared = [
        name for name in table.names if name in test_table.names and not table.column(name).dtype.is_nested()
    ]
    own, other = (
        part.frame.select(pl.col(shared).cast(pl.String, strict=False)) for part in (table, test_table)
    )
    once = own.filter(own.is_unique())
    again = other.join(once, on=shared, how="semi", nulls_equal=True).height
    if own.equals(other) or 2 * again > other.height:
        return ["The test rows are training rows, so nothing here says how new rows are ranked."]
    return []


def _answered(table: Table, target: str, positive: str | None, notes: list[str]) -> _TablePart:
    """Rows with a known target."""
    known = target_values(table, target).is_not_null().to_numpy()
    if not known.any():
        raise InputError(f"{table.source} column {target!r} has no values: name another target")
    if not known.all():
        notes.append(
            f"left out: {np.sum(~known):,} rows of {table.source} whose target {target!r} is missing"
        )
    rows = np.flatnonzero(known)
    # without a separator: line numbers of the file would be wrong for a part of its rows
    kept = replace(table, frame=table.frame[rows], separator=None)
    y, _ = read_target(kept, target, positive)
    return _TablePart(kept, y.astype(bool), rows)


def _names(table: Table, id: str | None, rows: np.ndarray) -> list[str]:
    """Names of rows by the id column, or by their place where there is none."""
    ids = [None] * len(table) if id is None else texts(table, id).to_list()
    return [ids[row] or f"row {row + 1}" for row in rows]


def _note_missing(
    encoder: Encoder, train: _TablePart, test: _TablePart, impute: str, notes: list[str]
) -> None:
    for column in encoder.columns:
        if column.kind == "number":
            count = sum(int(np.isnan(numbers(part.table, column.name)).sum()) for part in (train, test))
            text = f"filled: column {column.name!r} ({count:,} missing numbers, with the training {impute})"
        else:
            count = sum(texts(part.table, column.name).null_count() for part in (train, test))
            text = f"column {column.name!r} has {count:,} missing values, taken as none of its values"
        if count:
            notes.append(text)


def _leaks(encoder: Encoder, X: np.ndarray, y: np.ndarray) -> list[str]:
    """Notes about columns that order the training rows almost perfectly by themselves."""
    notes = []
    for start, column in zip(encoder.starts, encoder.columns, strict=True):
        areas = [auc(y, X[:, start + j]) for j in range(len(column.features))]
        if max(areas) > NEARLY_PERFECT or min(areas) < 1 - NEARLY_PERFECT:
            notes.append(
                f"column {column.name!r} alone separates the classes almost perfectly: "
                "check that it is known when you rank (leak?)"
            )
    return notes


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
        notes.append(f"read with decimal commas: {_in_words(commas)}{whose}")
    return replace(table, frame=table.frame.with_columns(changed))


def _in_words(names: Sequence[str]) -> str:
    return f"{plural('[column|columns]', len(names))} {', '.join(map(repr, names))}"


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
    balance = word_balance(train, wanted)
    named_columns = one_hot_columns(wanted, categorical or (), balance)
    found = Features()
    for name, more_words in zip(wanted, balance, strict=True):
        asked, text, named = name in recipe.features, bool(more_words > 0), name in named_columns
        few = text and texts(train, name).drop_nulls().n_unique() <= FEW_VALUES
        encoded = named or (categorical is None and few)
        reason = None if named or asked else _why_not_plain(train, name, found)
        if reason is None:
            reason = (
                _why_not_text(train, name) if encoded else _why_not_number(train, whole, name, asked, text)
            )
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
            like = plural("[looks|look] like numbers written as text", len(found.as_text))
            hint = f"{_in_words(found.as_text)} {like}; write them as plain numbers such as 1234.5"
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


def _why_not_number(train: Table, whole: Table, name: str, asked: bool, text: bool) -> str | None:
    """Reason why a column that is not one-hot encoded cannot be used, or None."""
    dtype = train.column(name).dtype
    if text and not asked:
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
    values = Number(name).parse(table, training=True)
    sizes = np.abs(values[~np.isnan(values)])
    largest = float(sizes.max(initial=0.0))
    if largest > _LARGEST or 0 < largest < _SMALLEST:
        raise InputError(
            f"{table.source} column {name!r} has numbers of size {largest:.0e}, too "
            f"{'large' if largest > 1 else 'small'} to use: give them in another unit, or leave the column out "
            f"(--drop {name})"
        )
