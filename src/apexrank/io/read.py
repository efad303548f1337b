"""Reading of CSV, Parquet and LETOR files into tables that know the file and line of each value.

CSV fields stay text until a column is used as numbers, so ids such as ``007`` are preserved.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import time
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from apexrank.errors import InputError, MissingExtraError, near_name, quoted
from apexrank.textfile import (
    HEAD,
    check_is_text,
    check_readable,
    is_utf8,
    not_utf8,
    opened,
    reading,
)
from apexrank.validation import check_polars_threads

_SEPARATORS = ",;\t"
PARQUET = (".parquet", ".pq")
LETOR = tuple(f"{suffix}{gz}" for suffix in (".txt", ".svm", ".letor") for gz in ("", ".gz"))
LETOR_ROLES = {"target": "relevance", "groups": "qid", "id": "docid"}
_FOLD = ("train", "vali", "test")
_FEW_CELLS = 1 << 24
_PART = 1 << 24  # bytes
_LONGEST_FIELD = 1 << 27  # characters; the fast reader accepts fields of any length
_DECIMAL_COMMA = (
    r"^\s*[+-]?((\d+|\d{1,3}(\.\d{3})+)?,\d+([eE][+-]?\d+)?|\d{1,3}(\.\d{3})+)\s*$"  # or thousands
)
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

    def where(self, row: int, column: str) -> str:
        """Describe the location of a value in a row (counted from 0): file, line or row, and column."""
        row = self.first + (row if self.places is None else int(self.places[row]))
        if self.layout is None:
            return f"{self.source} row {row + 1}, column {column!r}"
        return f"{self.source} line {self.layout.line_of(row)}, column {column!r}"


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
    missing: Sequence[str] = (),
) -> Table:
    """Read a CSV (``.csv``, ``.tsv``, also ``.gz``), Parquet or LETOR file with at least one row.

    A CSV file is UTF-8, or has the given ``encoding``; its ``separator`` is one ASCII character, by default the most
    frequent of comma, semicolon and tab in its header. A LETOR or SVMlight file (``.txt``, ``.svm``, ``.letor``, also
    ``.gz``) has the columns ``relevance``, ``qid``, ``docid``, ``feature_1`` …. A first CSV column without a name, as
    written by pandas for an index, is named by ``index`` and has the role ``id``; without ``index`` it is an error.

    Three options are for CSV files as others write them. Without a ``header`` the columns are called ``column_1``,
    ``column_2`` …. With ``decimal=","``, numbers such as 1,5 and 1.234,5 are read as 1.5 and 1234.5. Values that are
    one of the ``missing`` marks, such as "NA" or "?", are missing.

    Raises
    ------
    InputError
        If the file is missing, unreadable, empty, ragged or has a repeated column name.
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
        if decimal not in (".", ","):
            raise InputError(f"`decimal` must be a point or a comma, got {decimal!r}")
        separator = _checked_separator(separator)
        values = {"decimal": decimal, "missing": tuple(missing)}
        table = _read_csv(
            path, _checked_encoding(encoding), index=index, separator=separator, header=header, **values
        )
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
        try:
            frame = pl.from_pandas(data)
        except ModuleNotFoundError:
            raise MissingExtraError("tables of pandas frames need pyarrow: pip install pyarrow") from None
        times = [column for column in frame.iter_columns() if column.dtype == pl.Datetime]
        times = [column for column in times if getattr(column.dtype, "time_zone", None) is None]
        days = [column.name for column in times if column.dt.time().drop_nulls().eq(time.min).all()]
        return Table(frame.with_columns(pl.col(days).cast(pl.Date)))  # pandas has no dates without times
    raise InputError(f"a table is a data frame or the path of a file, not {type(data).__name__}")


def _checked_encoding(encoding: str | None) -> str | None:
    """Return the encoding, or None for UTF-8."""
    if encoding is None:
        return None
    try:
        b"ab".decode(encoding, "ignore")  # raises for codecs that are not text encodings
        return None if codecs.lookup(encoding).name in ("utf-8", "utf-8-sig") else encoding
    except (LookupError, ValueError):
        raise InputError(
            f"unknown `encoding` {encoding!r}: use a name such as latin-1, cp1252 or utf-16"
        ) from None


def _checked_separator(separator: str | None) -> str | None:
    if separator is None or (len(separator) == 1 and separator.isascii() and separator not in '"\r\n\0'):
        return separator
    raise InputError(f"`separator=` must be one ASCII character such as ; or |, got {separator!r}")


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


def _read_csv(path: Path, encoding: str | None = None, **options: Any) -> Table:
    with csv_lines(path, encoding, streamed=False) as lines:
        layout, first = Csv.of_lines(path, lines, encoding=encoding, **options)
        parts = iter(partial(lines.read, _PART), b"")  # so that only their sum stays in memory
        return layout.table(chain(first, parts), layout.first_line)


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


def first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


@dataclass(frozen=True)
class Csv:
    """Layout of a CSV file, as its first line tells it; polars reads the rows.

    Python's own reader finds the line of a fault, and blank lines, once there are some.
    """

    path: Path
    names: list[str]
    separator: str
    first_line: int  # line of the file at which the rows begin
    encoding: str | None = None  # None for UTF-8
    decimal: str = "."
    missing: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    guesses: Sequence[str] = ()

    @classmethod
    def of_lines(
        cls,
        path: Path,
        lines: Iterable[bytes],
        *,
        index: str | None = None,
        encoding: str | None = None,
        separator: str | None = None,
        header: bool = True,
        decimal: str = ".",
        missing: tuple[str, ...] = (),
    ) -> tuple[Csv, list[bytes]]:
        """Read the first line that is not blank; return the layout, and lines of rows that were read on the way.

        A first column without a name is called ``index``, with underscores appended until it is unique.
        """
        taken: list[bytes] = []
        text = _decoded(path, lines, taken)
        top = next((line for line in text if line.strip()), "")
        number = len(taken)
        # commas may be in the numbers of a first row
        marks = [mark for mark in _SEPARATORS if mark != decimal and mark in top]
        mark = separator or max(marks or _SEPARATORS, key=top.count)
        names = next(_records(path, chain([top], text), mark, number), (0, []))[1]
        if not names:
            raise InputError(f"{path} is empty: it needs a line of column names and at least one row")
        start = len(taken) if header else number - 1
        if taken[-1].endswith(b"\r\r\n"):
            raise InputError(
                f"{path} line {number} ends in two carriage returns (\\r\\r\\n): save it with plain line ends"
            )
        guesses, roles = [], {}
        if separator is None:
            guesses = _separator_notes(path, number, names, mark, next(text, "") if len(names) == 1 else "")
        if not header:
            names = [f"column_{position}" for position in range(1, len(names) + 1)]
        if index is not None and not names[0]:
            while index in names:
                index += "_"
            names[0] = roles["id"] = index
            guesses.append(f"{path}: the first column has no name: it is used as an id and called {index!r}")
        if all(re.fullmatch(r"-?\d+([.,]\d*)?", name) for name in names):
            guesses.append(
                f"{path}: line {number} is read as column names, although all of them are numbers (if it is a row: "
                "`header=`)"
            )
        seen: set[str] = set()
        for position, name in enumerate(names, start=1):
            if not name.strip():
                raise InputError(f"{path} line {number}: column {position} has no name; name it or remove it")
            if name in seen:
                raise InputError(f"{path} line {number}: two columns are named {name!r}; rename one")
            seen.add(name)
        layout = cls(path, names, mark, start + 1, encoding, decimal, missing, roles, guesses)
        return layout, taken[start:]

    def table(self, rows: Iterable[bytes], line: int, first: int = 0) -> Table:
        """Parse rows that begin in a line of the file, after its ``first`` rows, into columns of text."""
        width, mark = len(self.names), self.separator.encode()
        head = mark.join(b"%d" % column for column in range(width))
        text = b"\n".join([head, b"".join(rows)])
        ends = text.count(b"\n") - 1
        if ends * width > max(
            _FEW_CELLS, 4 * len(text)
        ):  # polars would fill short and blank lines with cells
            numbers = self._lines(text, line)
            if 2 * numbers.count(0) > len(numbers):
                raise InputError(f"{self.path}: most of its {len(numbers)} lines are blank; remove them")
        try:
            frame = pl.read_csv(text, separator=self.separator, infer_schema=False, glob=False)
        except pl.exceptions.PolarsError as error:
            raise self._fault(text, line, error) from None
        frame.columns = self.names
        long, cells = [], text.count(mark) - (width - 1)
        if b'"' in text:
            cells -= sum(frame.select(pl.all().str.count_matches(self.separator, literal=True).sum()).row(0))
            long = self._long_values(frame, text, line) if ends > frame.height else []
        # polars fills lines with too few separators, and blank ones, with missing values
        if cells != (width - 1) * frame.height or (width == 1 and frame[self.names[0]].null_count()):
            numbers = self._lines(text, line)
            if len(numbers) != frame.height:
                raise self._fault(text, line, ValueError("its rows cannot be counted"))
            frame = frame.filter(pl.Series(numbers, dtype=pl.Int64) > 0)
        frame = self._values(frame)
        return Table(frame, str(self.path), self, self.roles, first=first, guesses=[*self.guesses, *long])

    def _values(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Remove missing marks, and write numbers with a decimal comma with a point."""
        text = pl.all()
        if self.missing:
            frame = frame.with_columns(pl.when(~text.str.strip_chars().is_in(self.missing)).then(text))
        if self.decimal == ",":
            plain = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
            frame = frame.with_columns(pl.when(text.str.contains(_DECIMAL_COMMA)).then(plain).otherwise(text))
        return frame

    def line_of(self, row: int) -> int:
        """Return the line of a row of the file, both counted from its first."""
        with csv_lines(self.path, self.encoding) as lines:
            rest = islice(lines, self.first_line - 1, None)
            numbers = (line for line, fields in self._records(rest, self.first_line) if fields)
            return next(islice(numbers, row, None), self.first_line + row)

    def _records(self, lines: Iterable[bytes], line: int) -> Iterator[tuple[int, list[str]]]:
        # polars takes a carriage return inside a line as part of a value
        text = (part.decode(errors="replace").replace("\r", "") for part in lines)
        return _records(self.path, text, self.separator, line)

    def _lines(self, text: bytes, line: int) -> list[int]:
        """Return the lines of the rows, 0 for a blank line; raise InputError for a row of another width."""
        width, numbers = len(self.names), []
        for number, fields in self._records(islice(io.BytesIO(text), 1, None), line):
            if fields and len(fields) != width:
                has = f"the row has {len(fields)} field{'s' * (len(fields) != 1)}, the header {width}"
                advice = "fix the line (a value that contains the separator needs quotes)"
                if width == 1:
                    advice = "take out the lines above the one with the names of the columns"
                raise InputError(f"{self.path} line {number}: {has}; {advice}")
            numbers.append(number if fields else 0)
        return numbers

    def _long_values(self, frame: pl.DataFrame, text: bytes, line: int) -> list[str]:
        """Return a note about values of several lines, which may be rows between two stray quotes."""
        is_long = frame.select(pl.all().str.contains("\n", literal=True).fill_null(False))
        count = sum(is_long.sum().row(0))
        if not count:
            return []
        name = next(column.name for column in is_long.iter_columns() if column.any())
        row = int(is_long[name].arg_max() or 0)
        lines, number = frame[name][row].count("\n") + 1, self._lines(text, line)[row]
        return [
            f"{self.path} line {number}, column {name!r}: the value has {lines} lines (values with line ends: "
            f"{count:,}); if these are rows, correct the quotes"
        ]

    def _fault(self, text: bytes, line: int, error: Exception) -> InputError:
        """Make the error for rows that polars cannot parse, with the line of the fault."""
        try:
            text.decode()
        except UnicodeDecodeError as fault:
            return not_utf8(self.path, line + text.count(b"\n", 0, fault.start) - 1)
        self._lines(text, line)
        return InputError(f"cannot read {self.path} as CSV: {first_line(error)}")


def _separator_notes(path: Path, number: int, names: list[str], mark: str, second: str) -> list[str]:
    """Return a note on a separator that the name of the file does not suggest; the ``second`` line may tell another."""
    for other in "| " if len(names) == 1 else "":
        if len(second.split(other)) == len(names[0].split(other)) > 1:
            raise InputError(
                f"{path} line {number} has {other!r} between words, but no comma, semicolon or tab: name the separator "
                "(a comma if there is one column only) with `separator=`"
            )
    if len(names) == 1 or mark == ("\t" if ".tsv" in path.name.lower() else ","):
        return []
    return [f"{path}: the columns are separated by {mark!r} (`separator=` names another)"]


def _decoded(path: Path, lines: Iterable[bytes], taken: list[bytes]) -> Iterator[str]:
    """Decode the first lines of a file one by one, and keep those that were ``taken``."""
    for line in lines:
        taken.append(line if taken else line.removeprefix(codecs.BOM_UTF8))
        if not is_utf8(line):
            raise not_utf8(path, len(taken))
        yield taken[-1].decode()


@contextmanager
def csv_lines(path: Path, encoding: str | None = None, *, streamed: bool = True) -> Iterator[Any]:
    """Open a CSV file as lines of UTF-8; a gzip file that is not ``streamed`` has a limit of its whole size."""
    with reading(path), opened(path, streamed=streamed, checked=encoding is None) as file:
        yield file if encoding is None else io.BytesIO(_as_utf8(path, file.read(), encoding))


def _as_utf8(path: Path, content: bytes, encoding: str) -> bytes:
    """Convert a whole file in another encoding."""
    try:
        text = content.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeError as error:  # some codecs do not report the position
        before = content[: getattr(error, "start", 0)].decode(encoding, errors="ignore")
        raise InputError(
            f"{path} line {before.count(chr(10)) + 1}: this is not {encoding} text; name another `encoding=`"
        ) from None
    check_is_text(path, text)
    return text


def _records(path: Path, lines: Iterable[str], separator: str, line: int) -> Iterator[tuple[int, list[str]]]:
    """Iterate over the fields of records and the lines where they begin; one that cannot be split raises an error."""
    reader, number = csv.reader(lines, delimiter=separator, strict=True), line
    earlier = csv.field_size_limit(_LONGEST_FIELD)
    try:
        for fields in reader:
            yield number, fields
            number = line + reader.line_num
    except csv.Error as error:
        reason = str(error).partition(" - ")[0].replace("unexpected end of data", "no quote closes the field")
        raise InputError(f"{path} line {number}: {reason}; correct the line") from None
    finally:
        csv.field_size_limit(earlier)


_READERS = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".csv.gz": _read_csv,
    ".tsv.gz": _read_csv,
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
}
_READERS |= dict.fromkeys(LETOR, _read_letor)
