"""Comparison of rankers on the rows of a table, with sensible defaults for all options."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from apexrank.comparison.compare import Data, Options, compare_data
from apexrank.comparison.profile import ColumnProfile, explain_rows, later_effects
from apexrank.comparison.result import Comparison
from apexrank.errors import InputError
from apexrank.io.columns import (
    group_ids,
    labelled_rows,
    read_target,
    refuse_row,
    row_weights,
    target_counts,
    texts,
    unknown_notes,
)
from apexrank.io.encode import LinearFeatures, TypedColumns
from apexrank.io.read import Table, as_table
from apexrank.io.table_ranker import Recipe, TableFacts, TableRanker, fit_table
from apexrank.io.types import (
    Category,
    Cells,
    deciding_columns,
    deciding_notes,
    parse_columns,
    row_groups,
    row_notes,
    table_columns,
    take_rows,
)

_MANY_REPEATED = 0.5  # share of repeated rows above which repetition is considered normal for the table,
_AGREE = 0.98  # unless they nearly always repeat the target as well


def compare_table(
    table: Any,
    recipe: Recipe,
    *,
    test_table: Any = None,
    group_split: str | None = None,
    time: str | None = None,
    **options: Any,
) -> Comparison:
    """Compare rankers on the rows of a table; the encoding is learnt from the training rows of each split, too.

    Columns are selected and parsed as in `apexrank.io.fit_table`, so that the final model, fitted on all rows with the
    best settings, is the same as that of ``apexrank fit``.

    Parameters
    ----------
    table : data frame, path or Table
        Rows: a polars or pandas frame, or a CSV, Parquet or LETOR file.
    recipe : Recipe
        Roles of the columns.
    test_table : data frame, path or Table, optional
        Test rows, with the used columns and the target.
    group_split : str, optional
        Column such as a customer, none of whom is on both sides of a split. Not a feature.
    time : str, optional
        Column of times or numbers: train on the past, test on the future. Not a feature.
    **options
        Options of `compare_rankers`: ``candidates``, ``top``, ``fpr``, ``folds``, ….

    Examples
    --------
    >>> from apexrank.comparison import Logistic, Trees
    >>> from apexrank.datasets import make_push_example
    >>> example = make_push_example(600)
    >>> columns = dict(zip(example.feature_names, example.data.T))
    >>> frame = pl.DataFrame({**columns, "shop": ["a", "b"] * 300, "fraud": example.target})
    >>> rankers = [Logistic(), Trees(rounds=10)]
    >>> found = compare_table(frame, Recipe(target="fraud"), candidates=rankers, repeats=1)
    >>> found.feature_names[-2:]
    ['shop=a', 'shop=b']
    """
    began = clock.perf_counter()
    table, test_table = as_table(table), None if test_table is None else as_table(test_table)
    given = Options(**options)
    candidates = given.checked()
    kept_apart = [name for name in (group_split, time) if name is not None]
    for name in kept_apart:
        table.column(name)
    recipe = replace(recipe, drop=[*recipe.drop, *(name for name in kept_apart if name not in recipe.drop)])
    names = recipe.feature_columns(table)
    choice = TableFacts.of(table, names, recipe).choose(names, recipe, table.separator, table.source)
    table, _ = labelled_rows(table, recipe.target)
    y, _ = read_target(table, recipe.target, choice.positive)
    y = y.astype(bool)
    weight = None if recipe.weight is None else row_weights(table, recipe.weight)
    cells = parse_columns(table, choice.columns, training=True)

    def encoder(kind: type[TypedColumns], own: Cells, weights: np.ndarray | None) -> TypedColumns:
        return kind.of_cells(own, choice.columns, recipe, table.source, weights)

    whole = encoder(LinearFeatures, cells, weight)
    leaks = deciding_notes(deciding_columns(cells, choice.columns, y, weight))
    names = [column.name for column in choice.columns]
    repeats = row_groups(table, names)
    notes = [*leaks, *choice.notes, *row_notes(y, repeats)]

    def rows(train: np.ndarray, test: np.ndarray, as_columns: bool) -> tuple[Any, Any]:
        own = take_rows(cells, train)
        other = take_rows(cells, test) if test[-1] < len(y) else take_rows(test_cells or {}, test - len(y))
        learnt = encoder(
            TypedColumns if as_columns else LinearFeatures, own, None if weight is None else weight[train]
        )
        return learnt.transform(own), learnt.transform(other)

    data = Data(y, weight, rows, len(whole.features), _names(table, recipe.id), notes=notes)
    if group_split is not None:
        data.groups = group_ids(table, group_split)
    elif copied(y, repeats):
        data.groups = repeats
        notes.append("rows that repeat others are kept on one side of every split")
    if time is not None:
        data.time = _times(table, time, recipe.target)
    tested = None
    if test_table is not None:
        tested = _append_test(data, test_table, recipe, choice.classes, names)
        notes += [f"test rows: {note}" for note in whole.notes(tested)]
    test_cells = None if tested is None else parse_columns(tested, whole.columns)
    found = compare_data(data, candidates, given)

    def fit(i: int) -> TableRanker:
        own = recipe.of_columns if candidates[i].takes_columns else recipe
        return fit_table(table, own, candidates[i].estimator(found.settings[i]))[0]

    ranker = fit(found.recommended)
    caveats = leaks + _same_rows(table, tested, names)
    listed = (table, cells, 0) if tested is None or test_cells is None else (tested, test_cells, len(y))
    return replace(
        _explained(found, ranker, *listed),
        model=ranker,
        feature_names=whole.features,
        left_out=choice.left_out,
        columns=[ColumnProfile.of(column, cells, weight) for column in whole.columns],
        effects=later_effects(found, ranker, fit),
        caveats=tuple(caveats),
        positive=f"{recipe.target} = {choice.positive}",
        seconds=clock.perf_counter() - began,
    )


def copied(y: np.ndarray, repeats: np.ndarray) -> bool:
    """Return whether repeated rows are copies, rather than a consequence of columns with few distinct values.

    Examples
    --------
    >>> copied(np.array([True, False, True, False]), np.array([0, 1, 0, 1]))
    True
    """
    again = repeats != np.arange(len(y))
    few = again.mean() < _MANY_REPEATED
    return bool(again.any() and (few or np.mean(y[again] == y[repeats[again]]) >= _AGREE))


def _explained(found: Comparison, ranker: TableRanker, table: Table, cells: Cells, before: int) -> Comparison:
    """Explain test rows of a table; ``before`` rows of the data precede it."""
    columns, place = ranker.encoder.columns, found.rows - before
    values = pl.DataFrame([table.column(column.name).alias(column.name) for column in columns])
    return explain_rows(
        found,
        lambda some: values[place[some]],
        lambda some: TypedColumns(columns).transform(take_rows(cells, place[some])),
        lambda some: ranker.contributions(replace(table, frame=table.frame[place[some]], places=None))[
            :, : len(columns)
        ],
    )


def _names(table: Table, id: str | None) -> list[str]:
    """Return row names from the id column, or row numbers without one."""
    ids: Sequence[str | None] = [None] * len(table) if id is None else texts(table, id).to_list()
    places = np.arange(len(table)) if table.places is None else table.places
    return [name or f"row {row + 1}" for row, name in zip(places, ids, strict=True)]


def _times(table: Table, name: str, target: str) -> np.ndarray:
    """Parse the times of the rows as numbers, in any format of a feature."""
    try:
        (column,) = table_columns(table, Recipe(target=target, features=[name])).columns
    except InputError:
        column = Category(name)
    if isinstance(column, Category):
        raise InputError(
            f"{table.source} column {name!r}: write times as numbers or dates such as 2024-12-31"
        )
    times = column.parse(table, training=True)
    refuse_row(table, name, np.isnan(times), "the time is missing: fill it in or drop the row")
    return times


def _append_test(
    data: Data, test_table: Table, recipe: Recipe, classes: Sequence[str], names: Sequence[str]
) -> Table:
    """Add the rows of a test table to the data; return those with a target."""
    missing = [name for name in (recipe.target, *names) if name not in test_table.names]
    if missing and test_table.unnamed is None:
        raise InputError(
            f"{test_table.source} has no column {', '.join(map(repr, missing))}: a test table needs every column "
            "that is used; add it, or leave it out of the features (`drop=`)"
        )
    tested, notes = labelled_rows(test_table, recipe.target)
    y, _ = read_target(tested, recipe.target, classes[0])
    notes += unknown_notes(target_counts(tested, recipe.target), classes)
    own = len(data.y)
    data.y = np.append(data.y, y.astype(bool))
    data.test = np.arange(len(data.y)) >= own
    data.row_names += _names(tested, recipe.id if recipe.id in tested.names else None)
    data.notes += notes
    if data.weight is not None:
        has = recipe.weight is not None and recipe.weight in tested.names
        extra = row_weights(tested, recipe.weight) if has and recipe.weight else np.ones(len(y))
        data.weight = np.append(data.weight, extra)
        if not has:
            data.notes.append(f"{tested.source} has no weights: each of its rows counts once")
    return tested


def _same_rows(table: Table, tested: Table | None, names: Sequence[str]) -> list[str]:
    """Return a caveat about test rows that are also training rows, beyond repetitions within the training table."""
    if tested is None:
        return []
    texts_of = pl.col(list(names)).cast(pl.String, strict=False)
    own, other = (part.frame.select(texts_of) for part in (table, tested))
    once = own.filter(own.is_unique())
    again = other.join(once, on=list(names), how="semi", nulls_equal=True).height
    if own.equals(other) or 2 * again > other.height:
        return ["The test rows are training rows, so these results say nothing about new rows."]
    counted = f"{again:,} of {other.height:,} test rows repeat a training row in all columns used"
    return [f"{counted}: the measures are better than on new rows."] if again else []
