"""How a table or a PrefLib file becomes voters × items."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from apexrank.cli.ballot_cells import (
    check_cells,
    is_id_name,
    item_names,
    like_ids,
    read_columns,
    read_orders,
    read_weights,
    row_place,
    silent_voter,
    weights_by_name,
)
from apexrank.cli.ballot_options import PREFLIB, is_preflib
from apexrank.cli.long_ballots import long_columns, long_guess, read_long
from apexrank.cli.output import split_names, working
from apexrank.cli.profile import Profile
from apexrank.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from apexrank.io import Table

KINDS = ("scores", "ranks", "orders")
_TABLES = (".csv", ".tsv", ".parquet", ".pq")
_WEIGHT_NAMES = ("weight", "weights", "count", "counts", "votes")
_CURE_OF_LISTS = "leave out --missing ignore, so that it is last"


class Ballots(NamedTuple):
    """The options that say how ballots are read."""

    kind: str | None = None
    items_in: str | None = None
    id: str | None = None
    weights: str | None = None
    drop: list[str] | None = None
    long: str | None = None

    def read(self, path: Path) -> Profile:
        """Read a file; every error names it, and the line and column where there is one."""
        self._check()
        if is_preflib(path):
            self._refuse(f"{path} is a PrefLib file, which says all of itself", *self._fields)
            return _read_preflib(path)
        if not path.name.lower().removesuffix(".gz").endswith(_TABLES):
            known = ", ".join((*_TABLES, *PREFLIB))
            raise InputError(f"cannot tell the format of {str(path)!r} by its name: use one of {known}")
        with working(f"reading {path}"):
            table = _read_named(path)
            if self.long is not None:
                return read_long(table, self.long, self.kind, self.weights)
            return self._in_rows(table) if self.items_in == "rows" else self._in_columns(table)

    def _check(self) -> None:
        if self.kind not in (None, *KINDS):
            raise InputError(f"--kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if self.items_in not in (None, "columns", "rows"):
            raise InputError(f"--items-in must be columns or rows, got {self.items_in!r}")
        if self.long is not None:
            long_columns(self.long)
            self._refuse("--long names the columns itself", "items_in", "id", "drop")
        if self.kind == "orders" and (self.items_in == "rows" or self.long is not None):
            option = "--items-in" if self.long is None else "--long"
            raise InputError(f"an order has its items in its cells: leave out {option}, one row per voter")

    def _refuse(self, reason: str, *names: str) -> None:
        """Refuse options where they do not apply."""
        given = [name for name in names if getattr(self, name)]
        if given:
            raise InputError(f"{reason}: leave out --{given[0].replace('_', '-')}")

    def _in_columns(self, table: Table) -> Profile:
        """One row per voter."""
        weights = None if self.weights is None else read_weights(table, self.weights)
        id, names, notes = self._columns(table, [] if self.weights is None else [self.weights])
        notes += self._like_weights(names)
        voters = self._voters(table, id, weights)
        if self.kind == "orders":
            values, items = read_orders(table, names)
            return Profile(
                table.source,
                values,
                "ranks",
                items,
                voters,
                weights,
                lambda voter, _: row_place(table, voter),
                lists=True,
                notes=tuple(notes),
                cure=_CURE_OF_LISTS,
            )
        values = read_columns(table, names, self.kind, self._long_advice(table))
        silent = silent_voter(values)
        if silent is not None:
            raise InputError(
                f"{row_place(table, silent)}: this voter gives no score at all; take the row out"
            )
        return Profile(
            table.source,
            values,
            self.kind or "scores",
            names,
            voters,
            weights,
            lambda voter, item: table.where(voter, names[item]),
            notes=tuple(notes),
        )

    def _in_rows(self, table: Table) -> Profile:
        """One row per item: the columns are the voters."""
        import numpy as np
        import polars as pl

        id, names, notes = self._columns(table, [])
        items = [f"row {row}" for row in range(1, len(table) + 1)] if id is None else item_names(table, id)
        if id is None:
            notes.append("no column names the items, which are called row 1, row 2, ... (--id chooses one)")
        values = np.ascontiguousarray(read_columns(table, names, self.kind, self._long_advice(table)).T)
        silent = silent_voter(values)
        if silent is not None:
            name = names[silent]
            raise InputError(
                f"{table.source}: column {name!r} gives no score at all; leave it out (--drop {name})"
            )
        voters, weights = pl.DataFrame({"voter": names}), None
        if self.weights is not None:
            weights = weights_by_name(table, self.weights, names)
            voters = voters.with_columns(pl.Series("weight", weights))
        return Profile(
            table.source,
            values,
            self.kind or "scores",
            items,
            voters,
            weights,
            lambda voter, item: table.where(item, names[voter]),
            notes=tuple(notes),
            without="take the row out",
        )

    def _columns(self, table: Table, used: list[str]) -> tuple[str | None, list[str], list[str]]:
        """The column of names, given or guessed, the columns of scores, and what was guessed."""
        dropped, notes = split_names(self.drop, table.names), []
        for name in [*dropped, *([self.id] if self.id else [])]:
            table.column(name)
        names = [name for name in table.names if name not in (*dropped, *used)]
        who, what = ("items", "voters") if self.items_in == "rows" else ("voters", "items")
        id, unnamed = self.id, table.roles.get("id")
        if id is None and names and self._is_id(table, names[0]):
            id = names[0]
            told = "which has no name" if id == unnamed else repr(id)
            notes.append(f"the first column, {told}, is read as the names of the {who} (--id chooses)")
        elif unnamed in names and unnamed != id:
            names.remove(unnamed)
            notes.append("the first column, which has no name, is left out")
        names = [name for name in names if name != id]
        if not names:
            raise InputError(f"{table.source} has no column left for {what}")
        if self.id is None:
            notes += self._doubts(table, names if id is None else [])
        return id, names, notes

    def _doubts(self, table: Table, names: list[str]) -> list[str]:
        """Notes of a table, and of a first column among ``names``, that may be something else."""
        guess = long_guess(table.names)
        notes = [] if guess is None else [f"this looks like a long table: --long {shlex.quote(guess)}"]
        likeness = like_ids(table, names[0]) if names and not self._like_weights(names[:1]) else 0
        if not likeness or any(like_ids(table, name) >= likeness for name in names[1:]):
            return notes
        first, role = names[0], "a voter" if self.items_in == "rows" else "an item"
        role = "the first place" if self.kind == "orders" else role
        return [*notes, f"column {first!r} is read as {role} (--id {first}, or --drop {first})"]

    @staticmethod
    def _long_advice(table: Table) -> str | None:
        guess = long_guess(table.names)
        return None if guess is None else f"; this looks like a long table: --long {shlex.quote(guess)}"

    def _is_id(self, table: Table, name: str) -> bool:
        from apexrank.io.columns import is_text

        if name == table.roles.get("id") or is_id_name(name, self.items_in):
            return True
        return self.kind != "orders" and is_text(table, name)

    def _like_weights(self, names: list[str]) -> list[str]:
        """Notes of items that may be weights."""
        if self.weights is not None:
            return []
        suspects = [name for name in names if name.strip().lower() in _WEIGHT_NAMES]
        return [
            f"column {name!r} is read as an item (--weights {name}, or --drop {name})" for name in suspects
        ]

    def _voters(self, table: Table, id: str | None, weights: np.ndarray | None) -> pl.DataFrame:
        """Names or numbers of the rows, and their weights."""
        import numpy as np
        import polars as pl

        voters = pl.DataFrame({"row": np.arange(1, len(table) + 1)} if id is None else {id: table.column(id)})
        return voters if self.weights is None else voters.with_columns(pl.Series(self.weights, weights))


def _read_named(path: Path) -> Table:
    """Read a table; a first column without a name, as ``DataFrame.to_csv`` writes the index, has the role ``id``."""
    from apexrank.io import read_table

    try:
        return read_table(path)
    except InputError:
        text = _text_of(path)
        unnamed = re.match(r'(?:"")?(?=[,;\t])', text)
        if unnamed is None:
            raise
    from tempfile import TemporaryDirectory

    rest, name = text[unnamed.end() :], "row"
    while name in re.split(r'[,;\t"]', rest.partition("\n")[0].strip()):
        name += "_"
    with TemporaryDirectory() as folder:
        copy = Path(folder, "named.csv")
        copy.write_bytes(f"{name}{rest}".encode())
        try:
            table = read_table(copy)
        except InputError as error:
            raise InputError(str(error).replace(str(copy), str(path))) from None
    return replace(table, source=str(path), roles={"id": name})


def _text_of(path: Path) -> str:
    """Text of a CSV file, empty where it has none."""
    from apexrank.textfile import DAMAGED, unpacked

    try:
        return unpacked(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError, *DAMAGED):
        return ""


def _read_preflib(path: Path) -> Profile:
    import numpy as np
    import polars as pl

    from apexrank.datasets.preflib import read_preflib

    with working(f"reading {path}"):
        profile = read_preflib(path)
        given = sum(len(order) for order in profile.orders)
        check_cells(str(path), len(profile.orders), len(profile.items), given)
        values = profile.ranks()
    count = Counter(profile.items)
    items = [
        f"{name} ({number})" if count[name] > 1 else name
        for number, name in enumerate(profile.items, start=1)
    ]
    voters = {"row": np.arange(1, len(values) + 1), "count": profile.counts}
    return Profile(
        str(path),
        values,
        "ranks",
        items,
        pl.DataFrame(voters),
        profile.counts.astype(np.float64),
        lambda voter, _: f"{path} order {voter + 1}",
        lists=True,
        title=profile.title,
        cure=_CURE_OF_LISTS,
        without="take it out of the file",
    )
