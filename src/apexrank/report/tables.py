"""From a table to a comparison of pushes: an ordinary table should do without any option."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.io.columns import is_text, numbers, texts
from apexrank.io.encode import Encoder
from apexrank.io.labels import labels, positive_value, target_values
from apexrank.io.ranker import Recipe, row_weights
from apexrank.io.tables import Table
from apexrank.metrics.top import auc
from apexrank.report.push_comparison import PushComparison
from apexrank.report.push_rows import check_counts, hold_out, note_of_split
from apexrank.report.pushes import compare_pushes

FEW_VALUES = 20  # different texts that are one-hot encoded without asking
NEARLY_PERFECT = 0.999
_LIKE_AN_ID = re.compile(r"(^|[_\-. ])(?i:id|ids|case|key|index|row|no|nr|number)$|[a-z]I[dD]$")


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
    out, and so are constant ones and whole numbers that only name the rows. Missing numbers become the median, and
    rows without a target are left out. The notes of the result say each of these.

    Parameters
    ----------
    table : Table
        The rows.
    target, positive, id, weight, features, drop
        As in `apexrank.io.Recipe`. What is named in ``features`` is not left out as text or as an id.
    categorical, impute, scale
        As in :meth:`apexrank.io.encode.Encoder.learn`; with ``categorical`` only the columns named there are one-hot
        encoded.
    test_table : Table, optional
        Held-out rows; by default a share of the table's.
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
    start, progress = perf_counter(), options.get("progress")
    if progress is not None:
        progress("encode")
    recipe = Recipe(
        target=target,
        positive=positive,
        id=id or table.roles.get("id"),
        groups=table.roles.get("groups"),
        weight=weight,
        features=features,
        drop=drop,
    )
    recipe.feature_columns(table)  # refuses names that are no columns before anything takes time
    weights = None if weight is None else row_weights(table, weight)
    notes: list[str] = []
    train, test = _parts(table, test_table, recipe, options, notes)
    whole = [table] if test_table is None else [table, test_table]
    names, one_hot = _columns(train.table, whole, recipe, categorical, notes)
    encoder = Encoder.learn(train.table, names, categorical=one_hot, impute=impute or "median", scale=scale)
    X, X_test = encoder.encode(train.table), encoder.encode(test.table)
    _note_missing(encoder, train, test, impute or "median", notes)
    notes += encoder.notes(test.table) + _leaks(encoder, X, train.y)
    seconds = perf_counter() - start
    found = compare_pushes(
        X,
        train.y,
        X_test=X_test,
        y_test=test.y,
        sample_weight=None if weights is None else weights[train.rows],
        feature_names=encoder.features,
        test_row_names=_names(table if test_table is None else test_table, recipe.id, test.rows),
        **options,
    )
    timed = {"encode": seconds, **found.seconds, "total": seconds + found.seconds["total"]}
    return replace(found, notes=notes + found.notes, seconds=timed)


class _Part(NamedTuple):
    """Rows with a target, which of them are positive, and their places in the input."""

    table: Table
    y: np.ndarray
    rows: np.ndarray

    def take(self, rows: np.ndarray) -> _Part:
        return _Part(replace(self.table, frame=self.table.frame[rows]), self.y[rows], self.rows[rows])


def _parts(
    table: Table, test_table: Table | None, recipe: Recipe, options: dict[str, Any], notes: list[str]
) -> tuple[_Part, _Part]:
    """Rows to train on and rows to measure on."""
    whole = _answered(table, recipe.target, recipe.positive, notes)
    if recipe.groups is not None:
        notes.append(f"column {recipe.groups!r} names groups: here rows of all groups are one list")
    if test_table is not None:
        value = positive_value(whole.table, recipe.target, recipe.positive)
        train, test = whole, _answered(test_table, recipe.target, value, notes)
    else:
        rows, held = hold_out(whole.y, options.get("holdout", 0.3), options.get("random_state", 0))
        train, test = whole.take(rows), whole.take(held)
        notes.append(note_of_split(len(held), len(whole.y)))
    check_counts(train.y, test.y)
    return train, test


def _answered(table: Table, target: str, positive: str | None, notes: list[str]) -> _Part:
    """The rows whose target is known."""
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
    y = labels(kept, target, positive_value(kept, target, positive)).astype(bool)
    return _Part(kept, y, rows)


def _names(table: Table, id: str | None, rows: np.ndarray) -> list[str]:
    """Names of rows by the id column, or by their place where there is none."""
    ids = [None] * len(table) if id is None else texts(table, id).to_list()
    return [ids[row] or f"row {row + 1}" for row in rows]


def _columns(
    train: Table, whole: list[Table], recipe: Recipe, categorical: Sequence[str] | None, notes: list[str]
) -> tuple[list[str], list[str]]:
    """Columns to use, and those of them to one-hot encode."""
    names, one_hot = [], []
    wanted = recipe.feature_columns(train)
    for name in categorical or ():
        if name not in wanted and name != "all":
            raise InputError(f"--categorical {name}: the column is not among the features")
    for name in wanted:
        asked = name in recipe.features
        encoded = _is_category(train, name, categorical)
        reason = _why_not_text(train, name) if encoded else _why_not(train, whole, name, asked)
        if reason is not None:
            notes.append(f"left out: column {name!r} ({reason})")
            continue
        names.append(name)
        one_hot += [name] * encoded
        if encoded and categorical is None:
            count = texts(train, name).drop_nulls().n_unique()
            notes.append(f"one-hot encoded: column {name!r} (text, {count} different values)")
    if not names:
        raise InputError(f"{train.source} has no column left to use as a feature: name some with --features")
    return names, one_hot


def _is_category(train: Table, name: str, categorical: Sequence[str] | None) -> bool:
    if categorical is not None:
        return name in categorical or ("all" in categorical and is_text(train, name))
    return is_text(train, name) and texts(train, name).drop_nulls().n_unique() <= FEW_VALUES


def _why_not_text(train: Table, name: str) -> str | None:
    # one value and gaps still tell the rows apart
    return "one value only in the training rows" if texts(train, name).n_unique() < 2 else None


def _why_not(train: Table, whole: list[Table], name: str, asked: bool) -> str | None:
    """Why a column that is not one-hot encoded is of no use, or None."""
    dtype = train.column(name).dtype
    if is_text(train, name) and not asked:
        return f"text, {texts(train, name).drop_nulls().n_unique():,} different values"
    countable = dtype.is_numeric() or dtype in (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null)
    if not countable and not asked:
        return f"{dtype} values, not numbers"
    advice = f"; one-hot encode the column (--categorical {name}), leave it out (--drop {name}) or correct it"
    for table in whole:
        numbers(table, name, advice)  # here a fault's place is still that in the file
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


def _note_missing(encoder: Encoder, train: _Part, test: _Part, impute: str, notes: list[str]) -> None:
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
