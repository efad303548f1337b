"""What stands in a table of ballots: scores and ranks, weights, names and orders, checked cell by cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apexrank.cli.output import split_names
from apexrank.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from apexrank.io import Table


def row_place(table: Table, row: int) -> str:
    """Where a row stands."""
    return table.where(row, "").rpartition(", column")[0]


def read_cells(table: Table, name: str, kind: str | None, advice: str) -> np.ndarray:
    """Scores, or ranks from 1 on, of a column."""
    from apexrank.io.columns import numbers

    values = numbers(table, name, advice)
    low = values < 1
    if kind == "ranks" and low.any():
        row = int(low.argmax())
        raise InputError(
            f"{table.where(row, name)}: {values[row]:g} is no rank, as 1 is the best; use --kind scores for scores"
        )
    return values


def read_columns(table: Table, names: list[str], kind: str | None) -> np.ndarray:
    """Scores or ranks of several columns, side by side."""
    import numpy as np

    advice = "; correct it, or leave the column out (--drop {})"
    return np.column_stack([read_cells(table, name, kind, advice.format(name)) for name in names])


def silent_voter(values: np.ndarray) -> int | None:
    """Number of the first voter who gives no score at all."""
    import numpy as np

    silent = np.flatnonzero(np.isnan(values).all(axis=1))
    return int(silent[0]) if len(silent) else None


def read_weights(table: Table, name: str) -> np.ndarray:
    """A column of weights."""
    from apexrank.io.columns import numbers

    weights = numbers(table, name)
    bad = ~(weights >= 0)
    if bad.any():
        raise InputError(f"{table.where(int(bad.argmax()), name)}: a weight must be a number of at least 0")
    return weights


def weights_by_name(table: Table, text: str, names: list[str]) -> np.ndarray:
    """Weights of columns from text such as ``a=2,b=1``; a column that it does not name weighs 1."""
    import numpy as np

    found: dict[str, float] = {}
    for part in split_names([text]):
        name, _, value = part.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = np.nan
        if name not in names or not 0 <= found[name] < np.inf:
            raise InputError(
                f"with --items-in rows --weights must be weights of columns of {table.source} such as "
                f"{names[0]}=2, got {part!r}"
            )
    return np.array([found.get(name, 1.0) for name in names])


def read_names(table: Table, column: str, what: str) -> pl.Series:
    """A column of names, none of which is empty."""
    from apexrank.io.columns import texts

    names = texts(table, column)
    if names.null_count():
        row = int(names.is_null().arg_max() or 0)
        raise InputError(f"{table.where(row, column)}: the {what} has no name; name it")
    return names


def item_names(table: Table, column: str) -> list[str]:
    """A column of names, each of which is there once."""
    names = read_names(table, column, "item")
    again = (~names.is_first_distinct()).arg_true()
    if len(again):
        row = int(again[0])
        raise InputError(f"{table.where(row, column)}: the item {names[row]!r} is there twice; keep one")
    return names.to_list()


def read_orders(table: Table, places: list[str]) -> tuple[np.ndarray, list[str]]:
    """Ranks of the items that each row lists, best first, and the items."""
    import numpy as np

    from apexrank.io.columns import texts

    rows = list(zip(*(texts(table, place).to_list() for place in places), strict=True))
    number: dict[str, int] = {}
    for row, names in enumerate(rows):
        _check_order(table, row, places, names)
        for name in names:
            if name is not None:
                number.setdefault(name, len(number))
    ranks = np.full((len(rows), len(number)), np.nan)
    for row, names in enumerate(rows):
        given = [number[name] for name in names if name is not None]
        ranks[row, given] = np.arange(1.0, len(given) + 1)
    return ranks, list(number)


def _check_order(table: Table, row: int, places: list[str], names: tuple[str | None, ...]) -> None:
    given = [name for name in names if name is not None]
    if not given:
        raise InputError(f"{row_place(table, row)}: this voter names no item at all; take the row out")
    if None in names[: len(given)]:
        gap = names.index(None)
        raise InputError(
            f"{table.where(row, places[gap])}: the place is empty but later ones are not; move them up"
        )
    if len(set(given)) < len(given):
        second = next(place for place, name in enumerate(given) if name in given[:place])
        raise InputError(
            f"{table.where(row, places[second])}: {given[second]!r} is in the order twice; keep one"
        )
