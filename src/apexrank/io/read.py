"""Reading of CSV, Parquet and LETOR files into tables that know the file and line of each value.

CSV fields stay text until a column is used as numbers, so ids such as ``007`` are preserved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import time
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from apexrank.errors import InputError, near_name, quoted
from apexrank.files import HEAD, check_is_text, check_readable
from apexrank.io.delimited import PLAIN, Csv, Dialect, csv_lines, first_line
from apexrank.validation import check_polars_threads

CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
PARQUET = (".parquet", ".pq")
LETOR = tuple(f"{suffix}{gz}" for suffix in (".txt", ".svm", ".letor") for gz in ("", ".gz"))
LETOR_ROLES = {"target": "relevance", "groups": "qid", "id": "docid"}
_FOLD = ("train", "vali", "test")
_PART = 1 << 24  # bytes
_T = TypeVar("_T")


@dataclass(frozen=True)
class Table:
    """Data frame together with the file it came from.

    Parameters
    ----------
    frame : polars.DataFrame
        The columns; a pandas frame is converted.
    source : str
        Name of the table in error messages: its path.
    layout : Csv, optional
        The layout of a CSV file, whose rows have line numbers.
    roles : mapping of str to str
        Roles that the format defines: the names of the ``target``, ``groups`` and ``id`` columns.
    unnamed : float, optional
        Value of features that a row does not list, if the format defines one: 0 in LETOR files.
    first : int
        Number of rows of the file before these.
    places : array, optional
        Positions of these rows in the file, if they are a selection.
    guesses : sequence of str
        Notes about assumptions made by the reader.

    Examples
    --------
    >>> table = Table(pl.DataFrame({"amount": [3.5, 1.0]}))
    >>> table.where(1, "amount")
    "table row 2, column 'amount'"
    """

    frame: pl.DataFrame
    source: str = "table"
    layout: Csv | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    unnamed: float | None = None
    first: int = 0
    places: np.ndarray | None = field(default=None, compare=False)
    guesses: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.frame, pl.DataFrame):
            object.__setattr__(self, "frame", as_table(self.frame).frame)

    def __len__(self) -> int:
        return self.frame.height

    @property
    def names(self) -> list[str]:
        """Column names."""
        return self.frame.columns

    @property
    def dialect(self) -> Dialect | None:
        """Options with which a CSV file was read: ``read_table(path, **asdict(dialect))`` reads another one alike."""
        return None if self.layout is None else self.layout.dialect

    @property
    def separator(self) -> str | None:
        """Separator of a CSV file."""
        return None if self.layout is None else self.layout.separator

    def column(self, name: str) -> pl.Series:
        """Return a column, or raise an error that suggests the likely spelling."""
        check_polars_threads("columns are read")
        try:  # searching all names would make reading all columns quadratic
            return self.frame[name]
        except (
            pl.exceptions.ColumnNotFoundError,
            UnicodeEncodeError,
        ):  # a name in a model file may not be encodable
            pass
        if self.unnamed is not None and name.startswith("feature_"):
            return pl.Series(name, [self.unnamed], dtype=pl.Float64).new_from_index(0, len(self))
        raise InputError(f"{self.source} has no column {name!r}{_hint(name, self.names)}")

    def take(self, rows: np.ndarray) -> Table:
        """Return a selection of the rows, which keep their line numbers."""
        places = rows if self.places is None else self.places[rows]
        return replace(self, frame=self.frame[rows], places=places)

    def place(self, row: int) -> str:
        """Describe the location of a row (counted from 0): file, and line or row."""
        row = self.first + (row if self.places is None else int(self.places[row]))
        line = f"row {row + 1}" if self.layout is None else f"line {self.layout.line_of(row)}"
        return f"{self.source} {line}"

    def where(self, row: int, column: str) -> str:
        """Describe the location of a value: that of its row, and the column."""
        return f"{self.place(row)}, column {column!r}"


def _hint(name: str, names: list[str]) -> str:
    near = near_name(name, names)
    return f"; it has {quoted(names, 8)}" if near is None else f"; did you mean {near!r}?"


def read_table(
    path: str | Path,
    *,
    index: str | None = None,
    encoding: str | None = None,
    separator: str | None = None,
    header: bool = True,
    decimal: str = ".",
    missing: str | Sequence[str] = (),
) -> Table:
    """Read a CSV (``.csv``, ``.tsv``, also ``.gz``), Parquet or LETOR file with at least one row.

    A CSV file is UTF-8, or has the given ``encoding``; its ``separator`` is one ASCII character, by default the most
    frequent of comma, semicolon and tab in its header. A LETOR or SVMlight file (``.txt``, ``.svm``, ``.letor``, also
    ``.gz``) has the columns ``relevance``, ``qid``, ``docid``, ``feature_1`` …. A first CSV column without a name, as
    written by pandas for an index, is named by ``index`` and has the role ``id``; without ``index`` it is an error.

    Three options are for CSV files as others write them. Without a ``header`` the columns are called ``column_1``,
    ``column_2`` …. With ``decimal=","``, numbers such as 1,5 and 1.234,5 are read as 1.5 and 1234.5, and 1.234 as 1234
    unless other numbers of its column have a decimal point and none a comma. Values that are one of the ``missing``
    marks, such as "NA" or "?", are missing.

    Raises
    ------
    InputError
        If the file is missing, unreadable, empty, ragged or has a repeated column name, or a column has numbers with a
        decimal comma and others with a decimal point.
    """
    path = Path(path)
    check_readable(path)
    try:
        read = by_suffix(path, _READERS)
    except InputError:
        with path.open("rb") as file:
            check_is_text(path, file.read(HEAD))
        raise
    check_polars_threads("tables are read")
    if read is _read_csv:
        table = _read_csv(path, Dialect(separator, header, encoding, decimal, missing), index)
    elif encoding or separator or not header or decimal != "." or missing:
        raise InputError(
            f"{path} is not a CSV file: leave out `encoding=`, `separator=` and other options of CSV files"
        )
    else:
        table = read(path)
    if not len(table):
        raise InputError(f"{path} has column names but no rows: add some")
    return table


def as_table(data: Any) -> Table:
    """Convert a polars or pandas data frame or the path of a file to a `Table`; a `Table` is returned unchanged.

    Examples
    --------
    >>> as_table(pl.DataFrame({"x": [1.0]})).names
    ['x']
    """
    if isinstance(data, Table):
        return data
    if isinstance(data, str | Path):
        return read_table(data)
    if isinstance(data, pl.DataFrame):
        return Table(data)
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        columns = [_of_pandas(str(name), column) for name, column in data.items()]
        try:
            frame = pl.DataFrame(columns)
        except pl.exceptions.DuplicateError as error:
            raise InputError(f"{first_line(error)}: rename one of them") from None
        times = [column for column in frame.iter_columns() if column.dtype == pl.Datetime]
        times = [column for column in times if getattr(column.dtype, "time_zone", None) is None]
        days = [column.name for column in times if column.dt.time().drop_nulls().eq(time.min).all()]
        return Table(frame.with_columns(pl.col(days).cast(pl.Date)))  # pandas has no dates without times
    raise InputError(f"a table is a data frame or the path of a file, not {type(data).__name__}")


def _of_pandas(name: str, column: Any) -> pl.Series:
    """Column of a pandas frame, also without pyarrow, which polars asks for to read text and categories."""
    if column.dtype.kind in "biufM" and isinstance(column.dtype, np.dtype):
        return pl.Series(name, column.to_numpy(), nan_to_null=True)
    values = column.astype(object).where(column.notna(), None)
    return pl.Series(name, values.tolist(), strict=False)


def files_of(path: Path) -> list[Path]:
    """Return the files of a path: those of a folder (Parquet, or LETOR if there are none), or the path itself.

    Examples
    --------
    >>> [file.name for file in files_of(Path("rows.csv"))]
    ['rows.csv']
    """
    if not path.is_dir():
        return [path]
    names = sorted(path.iterdir())
    return [p for p in names if p.suffix.lower() in PARQUET] or [p for p in names if is_letor(p)]


def is_letor(file: Path) -> bool:
    """Return whether a file has the suffix of a LETOR file."""
    return file.name.lower().endswith(LETOR)


def check_no_fold(folder: Path, files: list[Path]) -> None:
    """Raise InputError for a LETOR fold, whose test rows must not be used for training."""
    kinds = {kind: file.name for file in files for kind in _FOLD if file.name.lower().startswith(kind)}
    if folder.is_dir() and "train" in kinds and len(kinds) > 1:
        raise InputError(
            f"{folder} has {quoted(sorted(kinds.values()))}, a fold of training and test rows: "
            f"give {str(folder / kinds['train'])!r}"
        )


def by_suffix(path: Path, choices: dict[str, _T]) -> _T:
    """Return the choice for the suffix of a file name."""
    name = path.name.lower()
    for suffix, choice in choices.items():
        if name.endswith(suffix):
            return choice
    known = ", ".join(choices)
    raise InputError(f"cannot tell the format of {str(path)!r} by its name: use one of {known}")


def _read_parquet(path: Path) -> Table:
    with reading_parquet(path):
        return Table(pl.read_parquet(path, glob=False), str(path))


@contextmanager
def reading_parquet(path: str | Path) -> Iterator[None]:
    """Convert errors in reading a Parquet file to a line; damaged data can make polars panic instead of raising."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, MemoryError) as error:
        raise InputError(f"cannot read {path} as Parquet: {first_line(error)}") from None


def _read_csv(path: Path, dialect: Dialect = PLAIN, index: str | None = None) -> Table:
    with csv_lines(path, dialect.encoding, streamed=False) as lines:
        layout, first = Csv.of_lines(path, lines, dialect, index)
        parts = iter(partial(lines.read, _PART), b"")  # so that only their sum stays in memory
        return csv_table(layout, chain(first, parts), layout.first_line)


def csv_table(layout: Csv, rows: Iterable[bytes], line: int, first: int = 0) -> Table:
    """Parse rows of a CSV file that begin in a line, after its ``first`` rows."""
    frame, notes = layout.frame(rows, line, first)
    guesses = [*layout.guesses, *notes]
    return Table(frame, str(layout.path), layout, layout.roles, first=first, guesses=guesses)


def _read_letor(path: Path) -> Table:
    from apexrank.datasets.letor import read_letor  # lazy, because it imports scikit-learn

    return letor_table(read_letor(path, null="nan"))


def letor_table(letor: Any, first: int = 0) -> Table:
    """Convert the result of :func:`~apexrank.datasets.read_letor` to a table."""
    names = pl.DataFrame({"relevance": letor.target, "qid": letor.groups, "docid": letor.docids})
    if letor.feature_names is None:
        raise InputError(
            f"{letor.source} has a feature {letor.data.shape[1]:,}, and a table has at most 1,000,000: number the "
            "features without gaps, or read the file in Python with `sparse=True`"
        )
    features = pl.DataFrame(letor.data, schema=letor.feature_names, orient="row")
    frame = pl.concat([names, features], how="horizontal")
    return Table(frame, letor.source, roles=LETOR_ROLES, unnamed=0.0, first=first)


_READERS = (
    dict.fromkeys(CSV, _read_csv) | dict.fromkeys(PARQUET, _read_parquet) | dict.fromkeys(LETOR, _read_letor)
)
