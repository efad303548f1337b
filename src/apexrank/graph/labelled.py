"""One table of edges with a column that tells their layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.edges import Column, choose_columns, edges_of_frame, is_missing, sorted_if_alike
from apexrank.graph.graph import Graph, build


def layers_of_table(
    table: Any,
    label: Column,
    *,
    source: Column = None,
    target: Column = None,
    weight: Column = None,
    directed: bool | None = None,
    repeated: str = "sum",
    self_loops: str = "keep",
) -> tuple[tuple[Graph, ...], tuple[str, ...]]:
    """Graphs of the rows of each label, over the vertices of all, and the labels."""
    what, where = "edge table", None
    if isinstance(table, str | Path):
        from apexrank.io.tables import read_table  # which loads polars

        what, read = str(table), read_table(Path(table))
        table, where = _typed(read), read.where
    if not hasattr(table, "columns"):
        raise InputError(f"label={label!r} names a column of one edge table: give a data frame or a file")
    names = [str(name) for name in table.columns]
    if isinstance(label, str) and label not in names:
        raise InputError(f"{what} has no column {label!r}; it has {', '.join(map(repr, names[:8]))}")
    at = names.index(label) if isinstance(label, str) else label
    if not isinstance(at, int | np.integer) or not 0 <= at < len(names):
        raise InputError(f"{what} has no column {label!r} counted from 0; it has {len(names)} columns")
    rest = [name for i, name in enumerate(table.columns) if i != at]
    if where is not None:
        _refuse_text(
            table, choose_columns([str(name) for name in rest], source, target, weight, what)[2], rest, where
        )
    edges = edges_of_frame(table[rest], source, target, weight, what)
    if where is not None:
        edges = replace(edges, place=lambda row: where(row, names[at]).rpartition(", column")[0])
    layer_of, values = _layers_of(table[table.columns[at]], what)

    def part(k: int) -> Graph:
        rows = np.flatnonzero(layer_of == k)
        chosen = replace(
            edges,
            sources=edges.sources[rows],
            targets=edges.targets[rows],
            weights=None if edges.weights is None else edges.weights[rows],
            place=lambda row: edges.place(int(rows[row])),
        )
        return build(chosen, directed is not False, repeated, self_loops)

    return tuple(part(k) for k in range(len(values))), tuple(map(str, values))


def _typed(table: Any) -> Any:
    """A table of text with columns of whole numbers, and of numbers, as such."""
    import polars as pl

    def typed(column: Any) -> Any:
        if column.dtype != pl.String:
            return column
        text = column.drop_nulls()
        if len(text) and text.str.contains(r"^[+-]?(0|[1-9][0-9]{0,17})$").all():
            return column.cast(pl.Int64)
        numbers = column.cast(pl.Float64, strict=False)
        return numbers if len(text) and numbers.null_count() == column.null_count() else column

    return table.frame.select(typed(column) for column in table.frame.get_columns())


def _refuse_text(table: Any, weight: int | None, names: list[Any], where: Callable[[int, str], str]) -> None:
    """Refuse a column of weights that has text, naming the line."""
    import polars as pl

    if weight is not None and table[names[weight]].dtype == pl.String:
        column = table[names[weight]]
        row = int((column.cast(pl.Float64, strict=False).is_null() & column.is_not_null()).arg_max() or 0)
        raise InputError(
            f"{where(row, names[weight])}: the weight {column[row]!r} is not a number; correct it"
        )


def _layers_of(column: Any, what: str) -> tuple[np.ndarray, list[Any]]:
    """Number of the layer of each row, and their labels: in the order of a category, else sorted if they can be."""
    values = column.to_numpy()
    if values.dtype.kind == "M":
        days = values.astype("datetime64[D]")
        missing = np.isnat(values)
        written = np.datetime_as_string(
            days if (days == values)[~missing].all() else values.astype("datetime64[s]")
        )
        listed = [None if empty else text for text, empty in zip(written.tolist(), missing, strict=True)]
    else:
        listed = values.tolist()
    empty = [row for row, value in enumerate(listed) if is_missing(value)]
    if empty:
        raise InputError(f"{what} row {empty[0] + 1} has no label: say which layer its edge belongs to")
    found = sorted_if_alike(list(dict.fromkeys(listed)))
    if hasattr(column, "cat") and hasattr(column.cat, "categories"):
        found = [value for value in column.cat.categories.tolist() if value in set(found)]
    number = {value: k for k, value in enumerate(found)}
    return np.array([number[value] for value in listed]), found
