"""Options of the verbs that read ballots, and how a table or a PrefLib file becomes voters × items."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from apexrank.cli.edge_options import check_output
from apexrank.cli.output import note, split_names, working
from apexrank.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from apexrank.io import Table

READING, POINTS = "Reading", "Points"
KINDS = ("scores", "ranks", "orders")
_PREFLIB = (".soc", ".soi", ".toc", ".toi")
_TABLES = (".csv", ".tsv", ".parquet", ".pq")
_SUMS = ("combsum", "combmnz", "rrf")  # to which an item that a list leaves out is worth nothing
_ID_NAMES = {
    "columns": ("id", "voter", "voter_id", "user", "user_id", "ranker", "judge", "ballot", "name"),
    "rows": ("id", "item", "item_id", "doc", "docid", "document", "candidate", "alternative", "name"),
}
_WEIGHT_NAMES = ("weight", "weights", "count", "counts", "votes")
_UNEVEN = 10.0  # so many times wider is another scale


def _reading(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=READING, **more)


def _points(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=POINTS)


BallotFile = Annotated[
    Path,
    typer.Argument(
        help="Table with one row per voter and one column per item: CSV, TSV (also .gz) or Parquet; or a PrefLib file "
        ".soc, .soi, .toc or .toi (also .gz).",
        show_default=False,
    ),
]
Kind = Annotated[
    str | None,
    _reading(
        "What the cells hold: scores (larger is better, the default), ranks (1 is best), or orders: a row lists its "
        "items from the best on, and may stop early."
    ),
]
ItemsIn = Annotated[
    str | None,
    _reading("Where the items are: columns (the default), or rows of a table with one column per voter."),
]
Id = Annotated[
    str | None,
    _reading(
        "Column of the voters' names, with --items-in rows of the items'; by default the first if it is text, or has "
        "a name such as id, voter or item."
    ),
]
Weights = Annotated[
    str | None,
    _reading(
        "Column that says how often each ballot was cast; with --items-in rows weights of the columns, such as a=2,b=1."
    ),
]
Drop = Annotated[list[str] | None, _reading("Columns to leave out, such as a,b.")]
Normalize = Annotated[
    str | None,
    _points(
        "Put each voter on a scale of its own: minmax, sum, zscore, rank or borda; scores are raw by default."
    ),
]
Points = Annotated[
    str | None,
    _points(
        "What a place is worth with ranks and orders: borda (the default), linear, reciprocal, dcg, or 3,2,1."
    ),
]
Missing = Annotated[
    str | None,
    _points(
        "What a missing score means: ignore (no opinion), or last (below all others; the default of orders)."
    ),
]


class Profile(NamedTuple):
    """Ballots of a file: ``values`` are scores or ranks of voters × items, NaN where they are missing."""

    source: str
    values: np.ndarray
    kind: str
    items: list[str]
    voters: pl.DataFrame  # columns that tell the voters, and their weights
    weights: np.ndarray | None
    where: Callable[[int, int], str]  # place of a voter's score of an item, in words
    lists: bool = False  # whether the voters listed items, and may have stopped early
    title: str = ""
    notes: tuple[str, ...] = ()  # what was guessed

    @property
    def n_missing(self) -> int:
        import numpy as np

        return int(np.isnan(self.values).sum())

    @property
    def total(self) -> int | float:
        """Number of voters, or their weight where not all weights are whole numbers."""
        if self.weights is None:
            return len(self.values)
        total = float(self.weights.sum())
        return int(total) if (self.weights % 1 == 0).all() else total

    def missing(self, asked: str | None, method: str = "lovasz-bregman") -> Any:
        """What a missing score means to a method, unless it was said."""
        return asked or ("last" if self.lists and method not in _SUMS else "ignore")

    def sentence(self, missing: str) -> str:
        """The file, how many voters and items it has, and what is done about gaps."""
        n, total = len(self.values), self.total
        voters = f"{n} voters" if n > 1 else "1 voter"
        if isinstance(total, float):
            voters += f" of weight {total:.6g} in all"
        elif total != n:
            voters = f"{total} voters in {n} {'orders' if self.lists else 'ballots'}"
        title = f" ({self.title})" if self.title else ""
        about = f"{self.source}{title}: {voters}, {len(self.items)} items"
        if not self.n_missing:
            return about
        what = "places" if self.kind == "ranks" else "scores"
        rule = {"ignore": "no opinion", "last": "taken as last"}[missing]
        return f"{about}, {self.n_missing} of {self.values.size} {what} missing ({rule})"

    def tell(self, *, scales: bool) -> None:
        """Say what was guessed, and where voters score on scales of their own, of which the widest would decide."""
        import numpy as np

        for sentence in self.notes:
            note(f"{self.source}: {sentence}")
        if self.kind != "scores" or not scales:
            return
        ranges = np.nanmax(self.values, axis=1) - np.nanmin(self.values, axis=1)
        if (ranges > 0).any():
            low, high = np.quantile(ranges[ranges > 0], [0.1, 0.9], method="inverted_cdf")
            if high > _UNEVEN * low:
                note(
                    f"{self.source}: some voters' scores span {low:.3g}, others' {high:.3g}, and the widest weigh most "
                    "(--normalize minmax puts all on one scale)"
                )


class Ballots(NamedTuple):
    """The options that say how ballots are read."""

    kind: str | None
    items_in: str | None
    id: str | None
    weights: str | None
    drop: list[str] | None

    def read(self, path: Path) -> Profile:
        """Read a file; every error names it, and the line and column where there is one."""
        self._check()
        name = path.name.lower().removesuffix(".gz")
        if name.endswith(_PREFLIB):
            given = [option for option, value in self._asdict().items() if value]
            if given:
                option = given[0].replace("_", "-")
                raise InputError(f"{path} is a PrefLib file, which says all of itself: leave out --{option}")
            return _read_preflib(path)
        if not name.endswith(_TABLES):
            known = ", ".join((*_TABLES, *_PREFLIB))
            raise InputError(f"cannot tell the format of {str(path)!r} by its name: use one of {known}")
        from apexrank.io import read_table

        with working(f"reading {path}"):
            table = read_table(path)
            return self._in_rows(table) if self.items_in == "rows" else self._in_columns(table)

    def _check(self) -> None:
        if self.kind not in (None, *KINDS):
            raise InputError(f"unknown kind {self.kind!r}: use one of {', '.join(KINDS)}")
        if self.items_in not in (None, "columns", "rows"):
            raise InputError(f"--items-in must be columns or rows, got {self.items_in!r}")
        if self.items_in == "rows" and self.kind == "orders":
            raise InputError("an order has its items in its cells: leave out --items-in, one row per voter")

    def _in_columns(self, table: Table) -> Profile:
        """One row per voter."""
        import numpy as np
        import polars as pl

        weights = None if self.weights is None else _weights(table, self.weights)
        id, names, notes = self._columns(table, [] if self.weights is None else [self.weights])
        suspects = [name for name in names if self.weights is None and name.strip().lower() in _WEIGHT_NAMES]
        notes += [
            f"column {name!r} is read as an item (--weights {name}, or --drop {name})" for name in suspects
        ]
        voters = pl.DataFrame({"row": np.arange(1, len(table) + 1)} if id is None else {id: table.column(id)})
        if self.weights is not None:
            voters = voters.with_columns(pl.Series(self.weights, weights))
        known: dict[str, Any] = {
            "source": table.source,
            "voters": voters,
            "weights": weights,
            "notes": tuple(notes),
        }
        if self.kind == "orders":
            values, items = _listed(table, names)
            return Profile(
                values=values,
                kind="ranks",
                items=items,
                lists=True,
                where=lambda voter, _: _row(table, voter),
                **known,
            )
        values = np.column_stack([_cells(table, name, self.kind) for name in names])
        silent = np.isnan(values).all(axis=1)
        if silent.any():
            row = _row(table, int(silent.argmax()))
            raise InputError(f"{row}: this voter gives no score at all; take the row out")
        kind = self.kind or "scores"
        return Profile(
            values=values,
            kind=kind,
            items=names,
            where=lambda voter, item: table.where(voter, names[item]),
            **known,
        )

    def _in_rows(self, table: Table) -> Profile:
        """One row per item: the columns are the voters."""
        import numpy as np
        import polars as pl

        id, names, notes = self._columns(table, [])
        items = [f"row {row}" for row in range(1, len(table) + 1)] if id is None else _item_names(table, id)
        values = np.column_stack([_cells(table, name, self.kind) for name in names]).T
        silent = np.isnan(values).all(axis=1)
        if silent.any():
            name = names[int(silent.argmax())]
            raise InputError(
                f"{table.source}: column {name!r} gives no score at all; leave it out (--drop {name})"
            )
        voters, weights = pl.DataFrame({"voter": names}), None
        if self.weights is not None:
            weights = _weights_by_name(table, self.weights, names)
            voters = voters.with_columns(pl.Series("weight", weights))
        return Profile(
            source=table.source,
            values=np.ascontiguousarray(values),
            kind=self.kind or "scores",
            items=items,
            voters=voters,
            weights=weights,
            where=lambda voter, item: table.where(item, names[voter]),
            notes=tuple(notes),
        )

    def _columns(self, table: Table, used: list[str]) -> tuple[str | None, list[str], list[str]]:
        """The column of names, given or guessed, the columns of scores, and what was guessed."""
        dropped, notes = split_names(self.drop), []
        for name in [*dropped, *([self.id] if self.id else [])]:
            table.column(name)
        names = [name for name in table.names if name not in (*dropped, *used)]
        who, what = ("items", "voters") if self.items_in == "rows" else ("voters", "items")
        id = self.id
        if id is None and names and self._is_id(table, names[0]):
            id = names[0]
            notes.append(f"the first column, {id!r}, is read as the names of the {who} (--id chooses)")
        names = [name for name in names if name != id]
        if not names:
            raise InputError(f"{table.source} has no column left for {what}")
        return id, names, notes

    def _is_id(self, table: Table, name: str) -> bool:
        from apexrank.io.columns import is_text

        if name.strip().lower() in _ID_NAMES[self.items_in or "columns"]:
            return True
        return self.kind != "orders" and is_text(table, name)


def _read_preflib(path: Path) -> Profile:
    import numpy as np
    import polars as pl

    from apexrank.datasets.preflib import read_preflib

    with working(f"reading {path}"):
        profile = read_preflib(path)
        values = profile.ranks()
    names = profile.items
    twice = {name for name in names if names.count(name) > 1}
    items = [f"{name} ({number})" if name in twice else name for number, name in enumerate(names, start=1)]
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
    )


def _row(table: Table, row: int) -> str:
    """Where a row stands."""
    return table.where(row, "").rpartition(", column")[0]


def _cells(table: Table, name: str, kind: str | None) -> np.ndarray:
    from apexrank.io.columns import numbers

    values = numbers(table, name, f"; correct it, or leave the column out (--drop {name})")
    low = values < 1
    if kind == "ranks" and low.any():
        row = int(low.argmax())
        raise InputError(
            f"{table.where(row, name)}: {values[row]:g} is no rank, as 1 is the best; use --kind scores for scores"
        )
    return values


def _weights(table: Table, name: str) -> np.ndarray:
    from apexrank.io.columns import numbers

    weights = numbers(table, name)
    bad = ~(weights >= 0)
    if bad.any():
        raise InputError(f"{table.where(int(bad.argmax()), name)}: a weight must be a number of at least 0")
    return weights


def _weights_by_name(table: Table, text: str, names: list[str]) -> np.ndarray:
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


def _item_names(table: Table, id: str) -> list[str]:
    from apexrank.io.columns import texts

    names = texts(table, id)
    if names.null_count():
        raise InputError(
            f"{table.where(int(names.is_null().arg_max() or 0), id)}: the item has no name; name it"
        )
    again = (~names.is_first_distinct()).arg_true()
    if len(again):
        row = int(again[0])
        raise InputError(f"{table.where(row, id)}: the item {names[row]!r} is there twice; keep one")
    return names.to_list()


def _listed(table: Table, places: list[str]) -> tuple[np.ndarray, list[str]]:
    """Ranks of the items that each row lists, best first."""
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
        raise InputError(f"{_row(table, row)}: this voter names no item at all; take the row out")
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


def read_points(text: str | None, kind: str | None, path: Path) -> Any:
    """Points by name, or those of each place.

    Examples
    --------
    >>> read_points("dcg", "ranks", Path("a.csv")), read_points("5,3,1", "ranks", Path("a.csv"))
    ('dcg', [5.0, 3.0, 1.0])
    """
    if text is None:
        return None
    if (kind or "scores") == "scores" and not path.name.lower().removesuffix(".gz").endswith(_PREFLIB):
        raise InputError(
            "--points are for --kind ranks and orders: of scores use --normalize borda or another"
        )
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return text


def check_outputs(ballots: Path, *outputs: Path | None) -> None:
    """Refuse tables that cannot be written, before any work."""
    given = [output for output in outputs if output is not None]
    for output in given:
        check_output(output, ballots)
    if len({output.resolve() for output in given}) < len(given):
        raise InputError(f"two outputs are named {str(given[0])!r}: give each a name of its own")


def check_missing(missing: str | None) -> None:
    """Refuse an unknown rule early."""
    if missing not in (None, "ignore", "last"):
        raise InputError(f"--missing must be ignore or last, got {missing!r}")


@contextmanager
def about(profile: Profile) -> Iterator[None]:
    """Name the file in what the library says of its ballots, with its advice in the words of the command line."""
    try:
        yield
    except InputError as error:
        message = re.sub(r"missing='(\w+)'", r"--missing \1", str(error))
        raise InputError(f"{profile.source}: {message}") from None
