"""What stands in a table of ballots: scores and ranks, weights, names and orders, checked cell by cell."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from apexrank.cli.output import split_names
from apexrank.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from apexrank.io import Table

_VOTERS = "voter user ranker judge juror ballot respondent participant rater reviewer"
_ITEMS = "item doc document candidate alternative page url title movie film product"
VOTER_WORDS, ITEM_WORDS = set(_VOTERS.split()), set(_ITEMS.split())
_ANY_WORDS = {"id", "name", "index"}
_FEWEST_IDS, _FEWEST_RISING = 3, 5  # rows: fewer scores differ, or rise, too often
_FEW_CELLS, _MOST_CELLS = 100_000_000, 2**28  # of voters × items, 0.8 gigabytes and two


def has_word(name: str, words: set[str]) -> bool:
    """Whether a column is called by one of some words, perhaps with id or name behind it, in any spelling.

    Examples
    --------
    >>> [has_word(name, {"user"}) for name in ("User", "user_id", "USERID", "User name", "users left")]
    [True, True, True, True, False]
    """
    key = re.sub(r"[\W_]+", "", name.lower())
    return key in words or re.sub("(id|name)$", "", key) in words


def is_id_name(name: str, items_in: str | None) -> bool:
    """Whether a column is called as one of names of voters, or of items where those are in rows.

    Examples
    --------
    >>> [is_id_name(name, None) for name in ("movieId", "Respondent ID", "index", "Unnamed: 0", "Madrid", "film")]
    [True, True, True, True, False, False]
    """
    if has_word(name, (ITEM_WORDS if items_in == "rows" else VOTER_WORDS) | _ANY_WORDS):
        return True
    ends = re.search(r"(?i:[\W_]id)$|[a-z0-9]I[dD]$", name.strip())  # no item such as Madrid or Covid
    return bool(ends) or name.startswith(("Unnamed: 0", "__index_level_0__"))  # as pandas calls its index


def like_ids(table: Table, name: str) -> int:
    """How much a column looks like ids: 1 for a whole number of its own in each row, 2 where they rise as well.

    Examples
    --------
    >>> import polars as pl
    >>> from apexrank.io import Table
    >>> columns = {"a": [1, 2, 3, 4, 9], "b": [5, 4, 1, 2, 3], "c": [5, 4, 5, 3, 1]}
    >>> [like_ids(Table(pl.DataFrame(columns)), name) for name in columns]
    [2, 1, 0]
    """
    import polars as pl

    series = table.frame[name]
    if len(series) < _FEWEST_IDS or not (series.dtype.is_integer() or series.dtype == pl.String):
        return 0
    numbers = series.cast(pl.Float64, strict=False)
    if numbers.null_count() or not (numbers % 1 == 0).all() or not numbers.is_unique().all():
        return 0
    return 2 if len(numbers) >= _FEWEST_RISING and numbers.is_sorted() else 1


def row_place(table: Table, row: int) -> str:
    """Where a row stands."""
    return table.where(row, "").rpartition(", column")[0]


def read_cells(table: Table, name: str, kind: str | None, advice: str) -> np.ndarray:
    """Scores, or ranks from 1 on, of a column."""
    values = _numbers(table, name, advice)
    _check_ranks(table, name, values, kind)
    return values


def _numbers(table: Table, name: str, advice: str) -> np.ndarray:
    from apexrank.io.columns import numbers

    try:
        return numbers(table, name, advice)
    except InputError as error:
        raise InputError(_with_cause(str(error))) from None


def _check_ranks(table: Table, name: str, values: np.ndarray, kind: str | None) -> None:
    low = values < 1
    if kind == "ranks" and low.any():
        row = int(low.argmax())
        raise InputError(
            f"{table.where(row, name)}: {values[row]:g} is no rank, as 1 is the best; use --kind scores for scores"
        )


def _with_cause(message: str) -> str:
    """Say how people write the text that is not a number.

    Examples
    --------
    >>> _with_cause("a.csv line 2, column 'x': '1,5' is not a number; correct it")
    "a.csv line 2, column 'x': '1,5' is not a number (a decimal comma? write 1.5); correct it"
    """
    head, words, rest = message.partition(" is not a number")
    found = re.search(r"'\s*([-+]?\d[\d.,]*)\s*(%?)\s*'$", head)
    if not words or found is None:
        return message
    text, percent = found.groups()
    point = text.replace(",", ".")
    if percent:
        cause = f"a percent sign? write {point}"
    elif re.fullmatch(r"[-+]?\d{1,3},\d{3}", text):
        cause = f"a thousands separator? write {text.replace(',', '')}; a decimal comma? write {point}"
    elif re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", text):
        cause = f"a thousands separator? write {text.replace(',', '')}"
    elif re.fullmatch(r"[-+]?\d[\d.]*,\d+", text):
        cause = f"a decimal comma? write {text.replace('.', '').replace(',', '.')}"
    else:
        return message
    return f"{head}{words} ({cause}){rest}"


def read_columns(table: Table, names: list[str], kind: str | None, advice: str | None = None) -> np.ndarray:
    """Scores or ranks of several columns, side by side; ``advice`` says what to do about a cell that is no number."""
    import numpy as np

    values, odd = _read_plain(table, names)
    for place, name in enumerate(names):
        if odd[place]:
            cure = advice or f"; correct it, or leave the column out (--drop {name})"
            # a table of this column alone, as looking a name up takes time for each column there is
            values[:, place] = _numbers(replace(table, frame=table.frame.select(name)), name, cure)
    if kind == "ranks":
        for place in np.flatnonzero((values < 1).any(axis=0)).tolist():
            _check_ranks(table, names[place], values[:, place], kind)
    return values


def _read_plain(table: Table, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of all columns at once, and which columns hold something else and must be looked at one by one."""
    import numpy as np
    import polars as pl

    frame = table.frame.select(names)
    plain = np.array(
        [dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Null) for dtype in frame.dtypes]
    )
    kept = [name for name, fits in zip(names, plain, strict=True) if fits]
    numbers = frame.select(pl.col(kept).cast(pl.Float64, strict=False))
    values = np.full(frame.shape, np.nan)
    values[:, plain] = numbers.to_numpy()
    odd = ~plain | np.isinf(values).any(axis=0)
    odd[plain] |= numbers.null_count().to_numpy()[0] > frame.select(kept).null_count().to_numpy()[0]
    return values, odd


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
    check_cells(table.source, len(rows), len(number), len(rows) * len(places))
    ranks = np.full((len(rows), len(number)), np.nan)
    for row, names in enumerate(rows):
        given = [number[name] for name in names if name is not None]
        ranks[row, given] = np.arange(1.0, len(given) + 1)
    return ranks, list(number)


def check_cells(source: str, voters: int, items: int, given: int, most: int = _MOST_CELLS) -> None:
    """Refuse voters × items that need far more memory than the cells that are ``given``, nearly all of them missing."""
    cells, most = voters * items, min(most, max(_FEW_CELLS, 50 * given))
    if cells > most:
        raise InputError(
            f"{source}: {voters:,} voters times {items:,} items are {cells:,} cells of {8e-9 * cells:.1f} GB, and "
            f"{most:,} is the limit; write a file of fewer voters or items"
        )


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
