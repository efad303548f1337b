"""Ballots from a long table: one row for each voter and item."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apexrank.cli.ballot_cells import (
    ITEM_WORDS,
    VOTER_WORDS,
    check_cells,
    has_word,
    read_cells,
    read_names,
    read_weights,
    row_place,
    silent_voter,
)
from apexrank.cli.output import split_names
from apexrank.cli.profile import Profile
from apexrank.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from apexrank.io import Table

_SCORE_WORDS = {"rating", "score", "star", "stars", "rank", "value", "points", "grade", "relevance"}
_MOST_COLUMNS = 5  # of a table that is taken for a long one: with a time and a weight
_MOST_CELLS = 2**28  # of voters × items, two gigabytes


def long_columns(text: str) -> tuple[str, str, str]:
    """Names of the columns of ``--long``.

    Examples
    --------
    >>> long_columns("user,film,stars")
    ('user', 'film', 'stars')
    """
    names = split_names([text])
    if len(names) != 3 or len(set(names)) < 3:
        raise InputError(
            f"--long must name the columns of voter, item and score such as user,film,stars, got {text!r}"
        )
    return names[0], names[1], names[2]


def long_guess(names: list[str]) -> str | None:
    """What ``--long`` would be for a table whose columns are called as voter, item and score.

    Examples
    --------
    >>> long_guess(["userId", "movieId", "rating", "timestamp"]), long_guess(["user", "tea", "rum"])
    ('userId,movieId,rating', None)
    """
    kinds = (VOTER_WORDS, ITEM_WORDS, _SCORE_WORDS)
    found = [next((name for name in names if has_word(name, words)), None) for words in kinds]
    parts = [name for name in found if name is not None and "," not in name]
    return ",".join(parts) if len(parts) == len(kinds) and len(names) <= _MOST_COLUMNS else None


def read_long(table: Table, columns: str, kind: str | None, weights: str | None) -> Profile:
    """Voters and items in the order in which the table first names them; what it does not name is missing."""
    import numpy as np
    import polars as pl

    voter, item, score = long_columns(columns)
    cells = read_cells(table, score, kind, "; correct it")
    voters, items = _number(table, voter, "voter"), _number(table, item, "item")
    check_cells(table.source, len(voters.names), len(items.names), len(table), _MOST_CELLS)
    _check_once(table, voters, items)
    values = np.full((len(voters.names), len(items.names)), np.nan)
    values[voters.numbers, items.numbers] = cells
    silent = silent_voter(values)
    if silent is not None:
        place = row_place(table, int(voters.rows[silent]))
        raise InputError(f"{place}: this voter gives no score at all; take the row out")
    told = pl.DataFrame({voter: table.column(voter).gather(voters.rows)})
    weight = None if weights is None else _voter_weights(table, weights, voters)
    if weights is not None:
        told = told.with_columns(pl.Series(weights, weight))
    return Profile(
        table.source,
        values,
        kind or "scores",
        items.names,
        told,
        weight,
        lambda row, _: f"{table.source}, voter {voters.names[row]!r}",
        cure="add a row with it, or put it last (--missing last)",
        without="take its rows out",
    )


class _Numbered(NamedTuple):
    """Different names of a column, the number of each row's name, and the row where each name is first."""

    names: list[str]
    numbers: np.ndarray
    rows: np.ndarray


def _number(table: Table, column: str, what: str) -> _Numbered:
    import polars as pl

    text = read_names(table, column, what)
    names = text.unique(maintain_order=True)
    numbers = text.cast(pl.Enum(names)).to_physical().cast(pl.Int64)
    return _Numbered(names.to_list(), numbers.to_numpy(), text.is_first_distinct().arg_true().to_numpy())


def _check_once(table: Table, voters: _Numbered, items: _Numbered) -> None:
    import polars as pl

    cells = pl.Series(voters.numbers * len(items.names) + items.numbers)
    again = (~cells.is_first_distinct()).arg_true()
    if len(again):
        row = int(again[0])
        voter, item = voters.names[voters.numbers[row]], items.names[items.numbers[row]]
        raise InputError(
            f"{row_place(table, row)}: voter {voter!r} has a row for {item!r} already; keep one of them"
        )


def _voter_weights(table: Table, column: str, voters: _Numbered) -> np.ndarray:
    """One weight a voter, the same in all its rows."""
    weights = read_weights(table, column)
    own = weights[voters.rows]
    odd = weights != own[voters.numbers]
    if odd.any():
        row = int(odd.argmax())
        number = voters.numbers[row]
        raise InputError(
            f"{table.where(row, column)}: voter {voters.names[number]!r} has weight {weights[row]:g} here and "
            f"{own[number]:g} before; give it one"
        )
    return own
