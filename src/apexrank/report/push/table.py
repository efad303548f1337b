"""Comparison of pushes on the rows of a table, which needs no option for an ordinary one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.io.columns import numbers, read_target, row_weights, target_values, texts
from apexrank.io.encode import Encoder
from apexrank.io.table_ranker import Recipe
from apexrank.io.tables import Table
from apexrank.metrics.roc import auc
from apexrank.report.page import Stages
from apexrank.report.push.columns import Features, check_numbers, choose_columns, plain_numbers
from apexrank.report.push.compare import check_seed, compare_pushes
from apexrank.report.push.result import PushComparison
from apexrank.report.push.rows import check_counts, hold_out, note_of_split

NEARLY_PERFECT = 0.999


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
        filling = impute or "median"
        encoder, X = Encoder.fit_transform(
            train.table,
            used.names,
            categorical=used.one_hot,
            impute=filling,
            scale=scale,
            sample_weight=None if weights is None else weights[train.rows],
        )
        X_test = encoder.encode(test.table)
        _note_missing(encoder, train, test, filling, notes)
        notes += encoder.notes(test.table) + _leaks(encoder, X, train.y)
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
    if used.as_text:
        look = "it looks" if len(used.as_text) == 1 else "they look"
        names = ", ".join(map(repr, used.as_text))
        caveats.append(f"Left out although {look} like numbers written as text: {names}.")
    left, were = len(used.left_out), "was" if len(used.left_out) == 1 else "were"
    total = stage.seconds["encode"] + found.seconds["total"]
    return replace(
        found,
        notes=notes + found.notes,
        seconds={**stage.seconds, **found.seconds, "total": total},
        caveats=tuple(caveats),
        left_out=f"{left:,} of {len(wanted):,} columns {were} left out; the notes say why." if left else "",
    )


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
