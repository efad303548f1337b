"""Rows of runs and judgements, however they are given, checked: what TREC files are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from apexrank.errors import InputError

Rows = pl.DataFrame | Mapping[str, Any] | Sequence[Any]

KEY = ["query", "document"]
_IDS = (pl.String, pl.Categorical, pl.Enum, pl.Null)


class Layout(NamedTuple):
    """The columns of one kind of file, and the one that holds numbers."""

    kind: str
    fields: tuple[str, ...]
    value: str
    reader: str


RUN = Layout("run", ("query", "Q0", "document", "rank", "score", "tag"), "score", "read_run")
QRELS = Layout("qrels", ("query", "iteration", "document", "relevance"), "relevance", "read_qrels")


def checked_rows(data: Rows, layout: Layout) -> pl.DataFrame:
    """Query, document and number of each row, each document once in a query."""
    query, document, value = _columns(data, layout)
    for ids in (query, document):
        if not (ids.dtype in _IDS or ids.dtype.is_integer()):
            raise InputError(f"{layout.kind} column {ids.name!r} holds {ids.dtype} values: ids are text")
        refuse_row(ids.is_null(), ids, layout.kind, "is missing; fill it in")
    if not (value.dtype.is_numeric() or value.dtype == pl.Null):
        raise InputError(f"{layout.kind} column {value.name!r} holds {value.dtype} values, not numbers")
    number = value.cast(pl.Float64)
    bad = ~number.is_finite().fill_null(False)
    refuse_row(bad, value, layout.kind, "is not a finite number; correct it")
    frame = pl.DataFrame([query.cast(pl.String), document.cast(pl.String), number])
    again = ~frame.select(pl.struct(KEY).is_first_distinct()).to_series()
    refuse_row(again, document, layout.kind, "is there twice in its query; keep one")
    return frame


def _columns(data: Rows, layout: Layout) -> list[pl.Series]:
    """The three columns by their names in a frame or mapping, or by position in a sequence."""
    names = [*KEY, layout.value]
    if isinstance(data, list | tuple):
        if len(data) != len(names):
            raise InputError(f"the {layout.kind} needs three arrays ({', '.join(names)}), got {len(data)}")
        data = dict(zip(names, data, strict=True))
    columns = [_series(data, name, layout.kind) for name in names]
    if len({len(column) for column in columns}) > 1:
        sizes = ", ".join(f"{len(column)} of {column.name}" for column in columns)
        raise InputError(f"the {layout.kind} needs columns of one length, got {sizes}")
    return columns


def _series(data: Any, name: str, kind: str) -> pl.Series:
    try:
        values = data[name]
    except (KeyError, IndexError, TypeError, pl.exceptions.ColumnNotFoundError):
        raise InputError(f"the {kind} has no column {name!r}") from None
    if isinstance(values, pl.Series):
        return values.alias(name)
    try:
        # Through a list: arrays of objects and pandas columns then need no special treatment. Whole numbers
        # and fractions may mix, but text and a pandas gap may not: the gap would become the id "NaN".
        listed = values.tolist() if hasattr(values, "tolist") else list(values)
        return pl.Series(name, listed, strict=name in KEY)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise InputError(
            f"{kind} column {name!r} needs one value a row, all of one kind and encodable as UTF-8"
        ) from None


def refuse_row(bad: pl.Series, column: pl.Series, kind: str, message: str) -> None:
    """Name the first bad row and what is wrong with it."""
    if bad.any():
        row = int(bad.to_numpy().argmax())
        raise InputError(f"{kind} row {row + 1}: {column.name} {column[row]!r} {message}")
