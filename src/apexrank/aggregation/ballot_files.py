"""Reading ballots from files: tables with one row per voter, item or score, and PrefLib files.

Errors name the file and, where possible, the line and column.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from apexrank.aggregation.ballots import uneven_ranges
from apexrank.aggregation.fusion import SUMS
from apexrank.datasets.preflib import KINDS as PREFLIB
from apexrank.datasets.preflib import is_preflib as is_preflib
from apexrank.datasets.preflib import read_preflib
from apexrank.errors import InputError
from apexrank.io import columns
from apexrank.io.read import Table

_TABLES = (".csv", ".tsv", ".parquet", ".pq")
_VOTERS = "voter user ranker judge juror ballot respondent participant rater reviewer"
_ITEMS = "item doc document candidate alternative page url title movie film product"
_VOTER_WORDS, _ITEM_WORDS, _ID_WORDS = set(_VOTERS.split()), set(_ITEMS.split()), {"id", "name", "index"}
_SCORE_WORDS = {"rating", "score", "star", "stars", "rank", "value", "points", "grade", "relevance"}
_WEIGHT_NAMES = ("weight", "weights", "count", "counts", "votes")
_MOST_LONG_COLUMNS = 5  # voter, item, score, and perhaps a time and a weight
_FEWEST_IDS, _FEWEST_RISING = 3, 5  # in fewer rows scores are often distinct, or increasing
_FEW_CELLS, _MOST_CELLS = 100_000_000, 2**28  # voters × items: 0.8 and 2 gigabytes
_SILENT_ROW = "gives no score at all; drop the row"
_CURE_OF_LISTS = "leave out `missing='ignore'`, so that it is last"


@dataclass(frozen=True, eq=False, repr=False)
class BallotFile:
    """Ballots of a file, with the details that messages need.

    Attributes
    ----------
    source : str
        The file.
    values : ndarray of shape (voters, items)
        Scores, or ranks if ``kind`` is "ranks"; NaN is missing.
    items : list of str
        Names of the items.
    voters : polars.DataFrame
        Columns that identify the voters, and their weights.
    weights : ndarray of shape (voters,), optional
        Number of times each ballot was cast.
    where : callable
        Describes the location of a voter's score of an item.
    lists : bool
        Whether voters listed items best first, and may have stopped early.
    notes : tuple of str
        Assumptions made about the file.
    cure : str
        Advice for a missing score.
    """

    source: str
    values: np.ndarray
    items: list[str]
    voters: pl.DataFrame
    weights: np.ndarray | None
    where: Callable[[int, int], str]
    kind: str = "scores"
    lists: bool = False
    title: str = ""
    notes: tuple[str, ...] = ()
    cure: str = "fill it in, put it last (`missing='last'`), or leave out the column (`drop=`)"

    @property
    def n_voters(self) -> int:
        """Number of distinct ballots."""
        return len(self.values)

    @cached_property
    def n_missing(self) -> int:
        """Number of missing scores."""
        return int(np.isnan(self.values).sum())

    @property
    def total(self) -> int | float:
        """Number of voters, or their total weight if some weights are not whole numbers."""
        if self.weights is None:
            return self.n_voters
        total = float(self.weights.sum())
        return int(total) if (self.weights % 1 == 0).all() else total

    @property
    def repeated(self) -> bool:
        """Whether any ballot was cast more than once."""
        return isinstance(self.total, int) and self.total != self.n_voters

    def missing_rule(self, asked: str | None, method: str = "lovasz-bregman") -> Any:
        """Return the rule for missing scores: the one asked for, or the default of the method."""
        return asked or ("last" if self.lists and method not in SUMS else "ignore")

    def to_dict(self, missing: str) -> dict[str, Any]:
        """Return the size of the profile as a dict of plain types."""
        return {
            "ballots_file": self.source,
            **({"title": self.title} if self.title else {}),
            "ballots": self.n_voters,
            "voters": self.total,
            "items": len(self.items),
            "missing": {"number": self.n_missing, "rule": missing},
        }

    def sentence(self, missing: str, method: str = "") -> str:
        """Describe the file: its number of voters and items, and the treatment of missing scores."""
        n, total = self.n_voters, self.total
        voters = f"{n} voters" if n > 1 else "1 voter"
        if isinstance(total, float):
            voters += f" of weight {total:.6g} in all"
        elif self.repeated:
            voters = f"{total} voters in {n} {'orders' if self.lists else 'ballots'}"
        title = f" ({self.title})" if self.title else ""
        gaps = self.gaps(missing, method)
        return f"{self.source}{title}: {voters}, {len(self.items)} items" + (f", {gaps}" if gaps else "")

    def gaps(self, missing: str, method: str = "") -> str:
        """Describe the missing scores and their treatment by a method; empty if none is missing."""
        if not self.n_missing:
            return ""
        what = "places" if self.kind == "ranks" else "scores"
        rule = {"ignore": "no opinion", "last": "taken as last"}[missing]
        if missing == "ignore" and method in SUMS:
            rule = "worth 0 in the sum, which counts against the item"
        once = f", each {'order' if self.lists else 'ballot'} counted once" if self.repeated else ""
        return f"{self.n_missing} of {self.n_voters * len(self.items)} {what} missing{once} ({rule})"

    def uneven_scales(self) -> str | None:
        """Describe voters with scales of different widths, where the widest would dominate; None if there are none."""
        if self.kind != "scores":
            return None
        ranges = uneven_ranges(self.values)
        if ranges is None:
            return None
        return (
            f"some voters' scores span {ranges[0]:.3g}, others' {ranges[1]:.3g}, and the widest weigh most "
            "(`normalize='minmax'` puts all on one scale)"
        )


def read_preflib_ballots(path: Path) -> BallotFile:
    """Read the orders of a PrefLib file as ranks; items of the same name are numbered."""
    profile = read_preflib(path)
    given = sum(map(len, profile.orders))
    check_cells(str(path), len(profile.orders), len(profile.items), given)
    count = Counter(profile.items)
    items = [f"{x} ({n})" if count[x] > 1 else x for n, x in enumerate(profile.items, start=1)]
    numbers = np.arange(1, len(profile.orders) + 1)
    voters = pl.DataFrame({"row": numbers, "count": profile.counts})
    weights = profile.counts.astype(np.float64)

    def where(voter: int, item: int) -> str:
        return f"{path} order {voter + 1}"

    ballots = str(path), profile.ranks(), items, voters, weights, where, "ranks", True, profile.title
    return BallotFile(*ballots, cure=_CURE_OF_LISTS)


def check_ballot_table(path: Path) -> None:
    """Raise InputError unless the file name has the extension of a table."""
    if not path.name.lower().removesuffix(".gz").endswith(_TABLES):
        known = ", ".join((*_TABLES, *(f".{kind}" for kind in PREFLIB)))
        raise InputError(f"cannot tell the format of {str(path)!r} by its name: use one of {known}")


class Columns(NamedTuple):
    """Column of names, if any, columns of scores, and notes about assumptions."""

    id: str | None
    names: list[str]
    notes: list[str]


@dataclass(frozen=True)
class BallotLayout:
    """Layout of the ballots in a table.

    Parameters
    ----------
    kind : {"scores", "ranks", "orders"}
        Content of the cells; a row of orders lists items, best first, and may stop early.
    items_in : {"columns", "rows"}
        Items are columns (a row is a voter) or rows (a row is an item).
    id : str, optional
        Column of the names of voters, or of items if these are in rows; guessed by default.
    weights : str, optional
        Column with the number of times each ballot was cast; with items in rows, weights of the columns such as
        "a=2,b=1".
    drop : sequence of str
        Columns to leave out.
    long : (voter, item, score), optional
        Columns of a table with one row per voter and item.

    Examples
    --------
    >>> table = Table(pl.DataFrame({"voter": ["ann", "bob"], "tea": [3, 1], "rum": [2, None]}))
    >>> found = BallotLayout().read(table)
    >>> found.items, found.values.tolist(), found.notes
    (['tea', 'rum'], [[3.0, 2.0], [1.0, nan]], ("the first column, 'voter', is read as the names of the voters (`id=` \
chooses)",))
    """

    kind: str = "scores"
    items_in: str = "columns"
    id: str | None = None
    weights: str | None = None
    drop: Sequence[str] = ()
    long: tuple[str, str, str] | None = None

    def read(self, table: Table) -> BallotFile:
        """Read the ballots of a table."""
        if self.long is not None:
            found = self._read_long(table, *self.long)
        elif self.items_in == "rows":
            found = self._read_items(table)
        else:
            found = self._read_voters(table)
        if found.weights is None:
            return found
        weights = pl.Series("weight" if self.items_in == "rows" else self.weights, found.weights)
        return replace(found, voters=found.voters.with_columns(weights))

    def _read_voters(self, table: Table) -> BallotFile:
        """Read a table with one row per voter; rows without a score are left out."""
        if self.weights is not None:
            table.column(self.weights)  # raises an error that suggests a spelling if the name is unknown
        id, names, notes = self._columns(table, [] if self.weights is None else [self.weights])
        notes += self._like_weights(names)
        weights = None if self.weights is None else _read_weights(table, self.weights)
        voters = pl.DataFrame({"row": np.arange(1, len(table) + 1)} if id is None else {id: table.column(id)})
        lists = self.kind == "orders"
        values, items = _read_orders(table, names) if lists else (self._read_scores(table, names), names)
        voiced = ~np.isnan(values).all(axis=1)
        if not voiced.any():
            _refuse_silent(values, lambda voter: f"{table.place(voter)}: this voter {_SILENT_ROW}")
        elif not voiced.all():
            notes = [*notes, f"left out: {(~voiced).sum():,} of {len(table):,} voters, who gave no score"]
            weights = None if weights is None else weights[voiced]
            table, values, voters = table.take(np.flatnonzero(voiced)), values[voiced], voters.filter(voiced)
        kind, cure = ("ranks", _CURE_OF_LISTS) if lists else (self.kind, BallotFile.cure)

        def where(voter: int, item: int) -> str:
            return table.place(voter) if lists else table.where(voter, names[item])

        ballots = table.source, values, items, voters, weights, where, kind
        return BallotFile(*ballots, lists=lists, notes=tuple(notes), cure=cure)

    def _read_items(self, table: Table) -> BallotFile:
        """Read a table with one row per item and one column per voter."""
        id, names, notes = self._columns(table, [])
        items = [f"row {row}" for row in range(1, len(table) + 1)] if id is None else _item_names(table, id)
        if id is None:
            notes.append("no column names the items, which are called row 1, row 2, ... (`id=` chooses one)")
        values = np.ascontiguousarray(self._read_scores(table, names).T)

        def silent(voter: int) -> str:
            name = names[voter]
            return f"{table.source}: column {name!r} gives no score at all; leave it out (`drop={name!r}`)"

        def where(voter: int, item: int) -> str:
            return table.where(item, names[voter])

        _refuse_silent(values, silent)
        voters = pl.DataFrame({"voter": names})
        weights = None if self.weights is None else _weights_by_name(table, self.weights, names)
        ballots = table.source, values, items, voters, weights, where, self.kind
        return BallotFile(*ballots, notes=tuple(notes))

    def _read_long(self, table: Table, voter: str, item: str, score: str) -> BallotFile:
        """Read a table with one row per voter and item; both keep the order of first appearance."""
        table.column(score)  # raises an error that suggests a spelling if the name is unknown
        cells = _read_columns(table, [score], self.kind, "; correct it")[:, 0]
        voters, items = _Names(_named(table, voter, "voter")), _Names(_named(table, item, "item"))
        n_voters, n_items = len(voters.names), len(items.names)
        check_cells(table.source, n_voters, n_items, len(table))
        again = (~pl.Series(voters.codes * n_items + items.codes).is_first_distinct()).arg_true()
        if len(again):
            row = int(again[0])
            twice = f"voter {voters.at(row)!r} has a row for {items.at(row)!r} already; keep one of them"
            raise InputError(f"{table.place(row)}: {twice}")
        values = np.full((n_voters, n_items), np.nan)
        values[voters.codes, items.codes] = cells
        first = voters.rows
        _refuse_silent(values, lambda voter: f"{table.place(first[voter])}: this voter {_SILENT_ROW}")
        told = pl.DataFrame({voter: table.column(voter).gather(first)})
        weights = None if self.weights is None else _voter_weights(table, self.weights, voters)

        def where(voter: int, item: int) -> str:
            return f"{table.source}, voter {voters.names[voter]!r}"

        cure = "add a row with it, or put it last (`missing='last'`)"
        ballots = table.source, values, items.names, told, weights, where, self.kind
        return BallotFile(*ballots, cure=cure)

    def _read_scores(self, table: Table, names: list[str]) -> np.ndarray:
        guess = long_guess(table.names)
        advice = None if guess is None else f"; this looks like a long table: `long={guess!r}`"
        return _read_columns(table, names, self.kind, advice)

    def _columns(self, table: Table, used: list[str]) -> Columns:
        """Return the column of names, given or guessed, the columns of scores, and notes about assumptions."""
        notes = []
        for name in [*self.drop, *([self.id] if self.id else [])]:
            table.column(name)
        names = [name for name in table.names if name not in (*self.drop, *used)]
        who, what = ("items", "voters") if self.items_in == "rows" else ("voters", "items")
        id, unnamed = self.id, table.roles.get("id")
        first = names[0] if names and id is None else None
        if first is not None and (
            first == unnamed
            or is_id_name(first, self.items_in)
            or (self.kind != "orders" and columns.is_text(table, first))
        ):
            id = first
            told = "which has no name" if id == unnamed else repr(id)
            notes.append(f"the first column, {told}, is read as the names of the {who} (`id=` chooses)")
        elif unnamed in names and unnamed != id:
            names.remove(unnamed)
            notes.append("the first column, which has no name, is left out")
        names = [name for name in names if name != id]
        if not names:
            raise InputError(f"{table.source} has no column left for {what}")
        if self.id is None:
            notes += self._doubts(table, names if id is None else [])
        return Columns(id, names, notes)

    def _doubts(self, table: Table, names: list[str]) -> list[str]:
        """Return notes on a table, or a first column among ``names``, that may have been misread."""
        guess = long_guess(table.names)
        notes = [] if guess is None else [f"this looks like a long table: `long={guess!r}`"]
        likeness = like_ids(table, names[0]) if names and not self._like_weights(names[:1]) else 0
        named = self.kind == "orders" and len(names) > 1 and _apart(table, names)
        if not named and (not likeness or any(like_ids(table, name) >= likeness for name in names[1:])):
            return notes
        first, role = names[0], "a voter" if self.items_in == "rows" else "an item"
        role = "the first place" if self.kind == "orders" else role
        return [*notes, f"column {first!r} is read as {role} (`id={first!r}`, or `drop={first!r}`)"]

    def _like_weights(self, names: list[str]) -> list[str]:
        """Return notes on items that look like weights."""
        suspects = [] if self.weights else [name for name in names if name.strip().lower() in _WEIGHT_NAMES]
        return [f"column {x!r} is read as an item (`weights={x!r}`, or `drop={x!r}`)" for x in suspects]


def _apart(table: Table, names: list[str]) -> bool:
    """Return whether the first column has distinct values, none of which occurs in the other columns."""
    first, *others = (columns.texts(table, name) for name in names)
    distinct = len(first) > 1 and first.null_count() == 0 and first.is_unique().all()
    return distinct and set(first).isdisjoint(value for other in others for value in other)


def has_word(name: str, words: set[str]) -> bool:
    """Return whether a column name is one of some words, in any case, optionally followed by id or name.

    Examples
    --------
    >>> [has_word(name, {"user"}) for name in ("User", "user_id", "USERID", "User name", "users left")]
    [True, True, True, True, False]
    """
    key = re.sub(r"[\W_]+", "", name.lower())
    return key in words or re.sub("(id|name)$", "", key) in words


def is_id_name(name: str, items_in: str = "columns") -> bool:
    """Return whether a column name is typical of names of voters, or of items if those are in rows.

    Examples
    --------
    >>> [is_id_name(name) for name in ("movieId", "Respondent ID", "index", "Unnamed: 0", "Madrid", "film")]
    [True, True, True, True, False, False]
    """
    if has_word(name, (_ITEM_WORDS if items_in == "rows" else _VOTER_WORDS) | _ID_WORDS):
        return True
    ends = re.search(
        r"(?i:[\W_]id)$|[a-z0-9]I[dD]$", name.strip()
    )  # do not match items such as Madrid or Covid
    return bool(ends) or name.startswith(
        ("Unnamed: 0", "__index_level_0__")
    )  # names that pandas gives to an index


def like_ids(table: Table, name: str) -> int:
    """Rate how much a column looks like ids: 1 for distinct whole numbers, 2 if they also increase.

    Examples
    --------
    >>> data = {"a": [1, 2, 3, 4, 9], "b": [5, 4, 1, 2, 3], "c": [5, 4, 5, 3, 1]}
    >>> [like_ids(Table(pl.DataFrame(data)), name) for name in data]
    [2, 1, 0]
    """
    series = table.frame[name]
    if len(series) < _FEWEST_IDS or not (series.dtype.is_integer() or series.dtype == pl.String):
        return 0
    numbers = series.cast(pl.Float64, strict=False)
    if numbers.null_count() or not (numbers % 1 == 0).all() or not numbers.is_unique().all():
        return 0
    return 2 if len(numbers) >= _FEWEST_RISING and numbers.is_sorted() else 1


def long_guess(names: list[str]) -> str | None:
    """Guess the voter, item and score columns of a long table from their names.

    Examples
    --------
    >>> long_guess(["userId", "movieId", "rating", "timestamp"]), long_guess(["user", "tea", "rum"])
    ('userId,movieId,rating', None)
    """
    kinds = (_VOTER_WORDS, _ITEM_WORDS, _SCORE_WORDS)
    found = [next((name for name in names if has_word(name, words)), None) for words in kinds]
    parts = [name for name in found if name is not None and "," not in name]
    return ",".join(parts) if len(parts) == len(kinds) and len(names) <= _MOST_LONG_COLUMNS else None


def check_cells(source: str, voters: int, items: int, given: int) -> None:
    """Raise InputError if voters × items needs far more memory than the ``given`` cells, because most are missing."""
    cells, most = voters * items, min(_MOST_CELLS, max(_FEW_CELLS, 50 * given))
    if cells > most:
        raise InputError(
            f"{source}: {voters:,} voters times {items:,} items are {cells:,} cells of {8e-9 * cells:.1f} GB, and "
            f"{most:,} is the limit; write a file of fewer voters or items"
        )


def _refuse_silent(values: np.ndarray, message: Callable[[int], str]) -> None:
    """Raise InputError if a voter has no score at all."""
    silent = np.flatnonzero(np.isnan(values).all(axis=1))
    if len(silent):
        raise InputError(message(int(silent[0])))


def _read_columns(table: Table, names: list[str], kind: str, advice: str | None) -> np.ndarray:
    """Read columns of scores or ranks; ``advice`` is the fix to suggest for a cell that is not a number."""
    values, odd = _read_plain(table, names)
    for place in np.flatnonzero(odd).tolist():
        name = names[place]
        cure = advice or f"; correct it, or leave the column out (`drop={name!r}`)"
        # a table of this column only, because looking up a name takes time linear in the number of columns
        values[:, place] = columns.numbers(replace(table, frame=table.frame.select(name)), name, cure)
    if kind == "ranks":
        place = int((values < 1).any(axis=0).argmax())
        low = values[:, place] < 1
        told = f"{values[low.argmax(), place]:g} is not a rank: the best rank is 1; use `kind='scores'` for scores"
        columns.refuse_row(table, names[place], low, told)
    return values


def _read_plain(table: Table, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Read all columns at once, and flag those with other content, which must be read one by one."""
    frame = table.frame.select(names)
    plain = np.array(
        [dtype.is_numeric() or dtype in (pl.String, pl.Boolean, pl.Null) for dtype in frame.dtypes]
    )
    kept = [name for name, fits in zip(names, plain, strict=True) if fits]
    numbers = frame.select(pl.col(kept).cast(pl.Float64, strict=False))
    values = numbers.to_numpy(order="c", writable=True)
    if not plain.all():
        read, values = values, np.full(frame.shape, np.nan)
        values[:, plain] = read
    odd = ~plain | np.isinf(values).any(axis=0)
    odd[plain] |= numbers.null_count().to_numpy()[0] > frame.select(kept).null_count().to_numpy()[0]
    return values, odd


def _read_weights(table: Table, name: str) -> np.ndarray:
    weights = columns.numbers(table, name)
    columns.refuse_row(table, name, ~(weights >= 0), "a weight must be a number of at least 0")
    return weights


def _weights_by_name(table: Table, text: str, names: list[str]) -> np.ndarray:
    """Read weights of columns from text such as ``a=2,b=1``; columns that are not named have weight 1."""
    weights = dict.fromkeys(names, 1.0)
    for part in filter(None, (part.strip() for part in next(csv.reader([text]), []))):
        name, _, value = part.rpartition("=")
        try:
            weight = float(value)
        except ValueError:
            weight = np.nan
        if name not in weights or not 0 <= weight < np.inf:
            told = f"weights of columns of {table.source} such as {names[0]}=2, got {part!r}"
            raise InputError(f"with `items_in='rows'` `weights=` must be {told}")
        weights[name] = weight
    return np.array(list(weights.values()))


def _named(table: Table, column: str, what: str) -> pl.Series:
    """Read a column of names; empty names raise InputError."""
    names = columns.texts(table, column)
    columns.refuse_row(table, column, names.is_null().to_numpy(), f"the {what} has no name; name it")
    return names


def _item_names(table: Table, column: str) -> list[str]:
    names = _named(table, column, "item")
    again = (~names.is_first_distinct()).to_numpy()
    name = names[int(again.argmax())]
    columns.refuse_row(table, column, again, f"the item {name!r} occurs twice; keep one")
    return names.to_list()


class _Names:
    """Distinct names of a column in order of appearance, each row's index among them (-1 for null), and first rows."""

    def __init__(self, text: pl.Series) -> None:
        names = text.drop_nulls().unique(maintain_order=True)
        codes = text.cast(pl.Enum(names)).to_physical().cast(pl.Int64).fill_null(-1)
        self.names, self.codes = names.to_list(), codes.to_numpy()
        self.rows = text.is_first_distinct().arg_true().to_numpy()

    def at(self, row: int) -> str:
        return self.names[self.codes[row]]


def _voter_weights(table: Table, column: str, voters: _Names) -> np.ndarray:
    """Read one weight per voter, which must be the same in all its rows."""
    weights = _read_weights(table, column)
    own = weights[voters.rows]
    odd = weights != own[voters.codes]
    row = int(odd.argmax())
    here, before = f"{weights[row]:g} here", f"{own[voters.codes[row]]:g} before"
    told = f"voter {voters.at(row)!r} has weight {here} and {before}; give it one"
    columns.refuse_row(table, column, odd, told)
    return own


def _read_orders(table: Table, places: list[str]) -> tuple[np.ndarray, list[str]]:
    """Return the ranks of the items listed in each row, best first, and the items."""
    found = _listed(table, places)
    items, codes = found.names, found.codes.reshape(len(table), len(places))
    _check_header(table, places, items)
    _check_orders(table, places, items, codes)
    check_cells(table.source, len(codes), len(items), codes.size)
    row, place = np.nonzero(codes >= 0)
    ranks = np.full((len(codes), len(items)), np.nan)
    ranks[row, codes[row, place]] = place + 1.0
    return ranks, items


def _listed(table: Table, places: list[str]) -> _Names:
    lists = pl.DataFrame({str(n): columns.texts(table, place) for n, place in enumerate(places)})
    return _Names(lists.select(pl.concat_list(pl.all())).to_series().explode())


def _check_header(table: Table, places: list[str], items: list[str]) -> None:
    """Raise InputError if the first line of a text file may be a ballot: all its entries are items of later lines."""
    others = set(table.names).difference(places)
    is_header = any(is_id_name(name) or name.strip().lower() in _WEIGHT_NAMES for name in others)
    if table.separator is not None and set(places) <= set(items) and not is_header:
        raise InputError(
            f"{table.source} line 1 is read as the header, but names items of the lines below, as a ballot does: put a "
            "header line such as 1st,2nd,3rd above it, or in its place"
        )


def _check_orders(table: Table, places: list[str], items: list[str], codes: np.ndarray) -> None:
    """Raise InputError for the first row that is empty, has a gap, or lists an item twice."""
    given = codes >= 0
    gap = np.any(given[:, 1:] & ~given[:, :-1], axis=1)
    ordered = np.sort(codes, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    bad = ~given.any(axis=1) | gap | twice
    if not bad.any():
        return
    row = int(bad.argmax())
    if not given[row].any():
        raise InputError(f"{table.place(row)}: this voter names no item; remove the row")
    if gap[row]:
        where = table.where(row, places[int(given[row].argmin())])
        raise InputError(f"{where}: this place is empty, but later ones are not; move them up")
    listed = codes[row].tolist()
    second = next(place for place, code in enumerate(listed) if code in listed[:place])
    name = items[listed[second]]
    advice = "; keep one"
    if name.replace(".", "", 1).isdigit():
        advice = ": with `kind='orders'` cells name items; keep one, or use `kind='scores'` or `kind='ranks'`"
    raise InputError(f"{table.where(row, places[second])}: {name!r} is in the order twice{advice}")
