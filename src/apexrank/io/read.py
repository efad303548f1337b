"""Reading of CSV, Parquet and LETOR files into tables that know the file and line of each value.

CSV fields stay text until a column is used as numbers, so ids such as ``007`` are preserved.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import time
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO, TypeVar

import numpy as np
import polars as pl

from apexrank.errors import InputError, MissingExtraError, near_name, quoted
from apexrank.textfile import (
    HEAD,
    check_is_text,
    check_readable,
    is_gzip,
    is_utf8,
    not_utf8,
    numbered_lines,
    opened,
    reading,
    unpacked,
)
from apexrank.validation import check_polars_threads

_SEPARATORS = ",;\t"
PARQUET = (".parquet", ".pq")
LETOR = tuple(f"{suffix}{gz}" for suffix in (".txt", ".svm", ".letor") for gz in ("", ".gz"))
LETOR_ROLES = {"target": "relevance", "groups": "qid", "id": "docid"}
_FOLD = ("train", "vali", "test")
_FEW_CELLS = 1 << 24
_LONGEST_FIELD = 1 << 27  # characters; the fast reader accepts fields of any length
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
    separator, encoding : str, optional
        The separator of a table read from text, whose rows have line numbers, and its encoding if not UTF-8.
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
    separator: str | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    unnamed: float | None = None
    first: int = 0
    places: np.ndarray | None = field(default=None, compare=False)
    encoding: str | None = None
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
        if self.separator is None:
            return f"{self.source} row {row + 1}, column {column!r}"
        every = csv_rows(Path(self.source), self.separator, self.encoding)
        rows = (line for line, fields in every if fields)
        line = next(islice(rows, row + 1, None), row + 2)  # skip the header; blank lines are not rows
        return f"{self.source} line {line}, column {column!r}"


def _hint(name: str, names: list[str]) -> str:
    near = near_name(name, names)
    return f"; it has {quoted(names, 8)}" if near is None else f"; did you mean {near!r}?"


def read_table(
    path: str | Path,
    *,
    index: str | None = None,
    encoding: str | None = None,
    separator: str | None = None,
) -> Table:
    """Read a CSV (``.csv``, ``.tsv``, also ``.gz``), Parquet or LETOR file with at least one row.

    A CSV file is UTF-8, or has the given ``encoding``; its ``separator`` is one ASCII character, by default the most
    frequent of comma, semicolon and tab in its header. A LETOR or SVMlight file (``.txt``, ``.svm``, ``.letor``, also
    ``.gz``) has the columns ``relevance``, ``qid``, ``docid``, ``feature_1`` …. A first CSV column without a name, as
    written by pandas for an index, is named by ``index`` and has the role ``id``; without ``index`` it is an error.

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
        table = _read_csv(path, index, _checked_encoding(encoding), _checked_separator(separator))
    elif encoding or separator:
        raise InputError(f"{path} is not a CSV file: leave out `encoding=` and `separator=`")
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


def _read_csv(
    path: Path, index: str | None = None, encoding: str | None = None, separator: str | None = None
) -> Table:
    file = CsvFile.open(path, index, encoding, separator)
    content: Path | bytes = path
    if encoding is not None:
        content = _as_utf8(path, encoding)
    elif is_gzip(path):
        with reading(path):
            content = unpacked(path)
    file.check_cells(content)
    roles = {"id": file.names[0]} if file.has_index else {}
    table = Table(file.frame(content), str(path), file.separator, roles, encoding=encoding)
    return replace(table, guesses=[*file.guesses, *long_value_notes(table, content)])


def long_value_notes(table: Table, content: Path | bytes) -> list[str]:
    """Return a note about values of several lines, which may be rows between two stray quotes."""
    if _count_lines(content) <= len(table) + 1:  # the header is a line, too
        return []
    is_long = table.frame.select(pl.all().str.contains("\n", literal=True).fill_null(False))
    count = int(is_long.select(pl.sum_horizontal(pl.all().sum())).item())
    if not count:
        return []
    name = next(column.name for column in is_long.iter_columns() if column.any())
    row = int(is_long[name].arg_max() or 0)
    lines = table.frame[name][row].count("\n") + 1
    return [
        f"{table.where(row, name)}: the value has {lines} lines (values with line ends: {count:,}); if these are rows, "
        "correct the quotes"
    ]


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


@dataclass
class CsvFile:
    """CSV file, plain or gzip-compressed, with the separator and the column names of its header.

    polars reads the rows; if it would ignore an error, or not report its line, the lines are checked one by one.
    """

    path: Path
    separator: str
    names: list[str]
    has_index: bool = False  # the first column has no name in the file
    has_widths: bool = False  # every line has been checked to have a field per name
    encoding: str | None = None  # None for UTF-8
    guesses: list[str] = field(default_factory=list)

    @classmethod
    def open(
        cls, path: Path, index: str | None = None, encoding: str | None = None, separator: str | None = None
    ) -> CsvFile:
        """Read the header; raise InputError for a repeated name, which polars would rename silently.

        A first column without a name is called ``index``, with underscores appended until it is unique.
        """
        with csv_text(path, encoding=encoding, streamed=True) as file:
            first: list[str] = []  # lines up to that of the names
            while not first or (first[-1] and not first[-1].strip()):
                first.append(file.readline())
            given, separator = separator, separator or max(_SEPARATORS, key=first[-1].count)
            rows = _split(path, chain(first, file), separator)
            header = next((fields for _, fields in rows if fields), [])
            second = file.readline().split(separator) if len(header) == 1 else []
        if not header:
            raise InputError(f"{path} is empty: it needs a line of column names and at least one row")
        for mark in "| " if given is None and len(header) == len(second) == 1 else "":
            if len(second[0].split(mark)) == len(header[0].split(mark)) > 1:
                raise InputError(
                    f"{path} line 1 has {mark!r} between words, but no comma, semicolon or tab: name the separator (a "
                    "comma if there is one column only) with `separator=`"
                )
        has_index, guesses = index is not None and not header[0], list[str]()
        own = "\t" if ".tsv" in path.name.lower() else ","
        if given is None and len(header) > 1 and separator != own:
            guesses.append(f"{path}: the columns are separated by {separator!r} (`separator=` names another)")
        if index is not None and has_index:
            while index in header:
                index += "_"
            header[0] = index
            guesses.append(f"{path}: the first column has no name: it is used as an id and called {index!r}")
        if all(re.fullmatch(r"-?\d+([.,]\d*)?", name) for name in header):
            guesses.append(f"{path}: line 1 is read as column names, although all of them are numbers")
        seen: set[str] = set()
        for position, name in enumerate(header):
            if not name.strip():
                raise InputError(f"{path} line 1: column {position + 1} has no name; name it or remove it")
            if name in seen:
                raise InputError(f"{path} line 1: two columns are named {name!r}; rename one")
            seen.add(name)
        return cls(path, separator, header, has_index, encoding=encoding, guesses=guesses)

    def frame(self, content: Path | bytes) -> pl.DataFrame:
        """Parse the file, or its header and some rows, into text columns; blank lines are skipped."""
        try:
            frame = pl.read_csv(content, separator=self.separator, infer_schema=False, glob=False)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._fault(error) from None
        frame = self._with_names(frame.rename({"": self.names[0]}) if self.has_index else frame)
        # The reader fills short lines with missing values silently: check if there could be one.
        if frame.height and frame[self.names[-1]].null_count():
            self._check_widths()
            if frame.select(pl.all_horizontal(pl.all().is_null()).any()).item():
                is_blank = self._blank_lines(content)
                if len(is_blank) != frame.height:
                    raise self._fault(ValueError("its rows cannot be counted"))
                frame = frame.filter(~is_blank)
        return frame

    def _blank_lines(self, content: Path | bytes) -> pl.Series:
        """Mask of the rows that are blank lines, not lines such as ``,,`` whose values are all missing."""
        lines: AbstractContextManager[TextIO] = csv_text(self.path, self.encoding, streamed=True)
        if isinstance(content, bytes):
            lines = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="\n")
        with lines as file:
            records = [not fields for _, fields in _split(self.path, file, self.separator)]
        return pl.Series(records[records.index(False) + 1 :], dtype=pl.Boolean)

    def check_cells(self, content: Path | bytes) -> None:
        """Raise InputError for masses of blank or short lines, which polars would fill with cells."""
        size = self.path.stat().st_size if isinstance(content, Path) else len(content)
        most = max(_FEW_CELLS, 4 * size) // len(self.names)
        if size <= most or _count_lines(content) <= most:
            return
        self._check_widths()
        rows = sum(1 for _ in csv_rows(self.path, self.separator, self.encoding))
        if rows > most:
            raise InputError(f"{self.path}: most of its {rows} lines are blank; remove them")

    def _check_widths(self) -> None:
        if self.has_widths:
            return
        width = len(self.names)
        for line, fields in csv_rows(self.path, self.separator, self.encoding):
            if fields and len(fields) != width:
                plural = "s" * (len(fields) != 1)
                advice = "fix the line (a value that contains the separator needs quotes)"
                if width == 1:
                    advice = "take out the lines above the one with the names of the columns"
                has = f"the row has {len(fields)} field{plural}, the header {width}"
                raise InputError(f"{self.path} line {line}: {has}; {advice}")
        self.has_widths = True

    def _fault(self, error: Exception) -> InputError:
        """Create the error for a file that polars cannot parse, with the line of the fault."""
        self._check_widths()
        # readers treat unmatched quotes differently
        with csv_text(self.path, self.encoding, streamed=True) as file:
            first = next((number for number, line in enumerate(file, start=1) if '"' in line), None)
        reason = first_line(error)
        if first is not None:
            reason = f"its quotes do not match from line {first} on; correct them"
        return InputError(f"cannot read {self.path} as CSV: {reason}")

    def _with_names(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Rename the columns as in the header; raise InputError if polars splits that line differently."""
        found, names = frame.columns, self.names
        # the fast reader leaves doubled quotes inside a name
        if len(found) == len(names) and all(
            name in (other, other.replace('""', '"')) for name, other in zip(names, found, strict=True)
        ):
            return frame.rename(dict(zip(found, names, strict=True)))
        if any(name.endswith("\r") for name in found):
            raise InputError(
                f"{self.path} line 1 ends in two carriage returns (\\r\\r\\n): save it with plain line ends"
            )
        raise InputError(
            f"{self.path} line 1: the quotes of the column names do not match, or something stands between a quote and "
            "the separator; correct them"
        )


@contextmanager
def csv_text(path: Path, encoding: str | None = None, *, streamed: bool = False) -> Iterator[TextIO]:
    """Open a CSV file as text; invalid bytes raise an error that names the line."""
    if encoding is not None:
        yield io.TextIOWrapper(io.BytesIO(_as_utf8(path, encoding)), encoding="utf-8", newline="\n")
        return
    try:
        with (
            reading(path),
            opened(path, streamed=streamed) as file,
            io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n") as text,
        ):
            yield text
    except UnicodeDecodeError:  # the exception does not tell the line
        lines = numbered_lines(path, whole=False)
        raise not_utf8(path, next((number for number, line in lines if not is_utf8(line)), 1)) from None


def _as_utf8(path: Path, encoding: str) -> bytes:
    """Read a whole file in another encoding and convert it to UTF-8."""
    with reading(path):
        content = unpacked(path, checked=False)
    try:
        text = content.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeError as error:  # some codecs do not report the position
        before = content[: getattr(error, "start", 0)].decode(encoding, errors="ignore")
        raise InputError(
            f"{path} line {before.count(chr(10)) + 1}: this is not {encoding} text; name another `encoding=`"
        ) from None
    check_is_text(path, text)
    return text


def csv_rows(path: Path, separator: str, encoding: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """Iterate over line numbers and fields of all rows, the header first."""
    with csv_text(path, encoding, streamed=True) as file:
        yield from _split(path, file, separator)


def _split(path: Path, lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Split lines into fields; a line that cannot be split raises an error that names it."""
    reader, line = csv.reader(lines, delimiter=separator), 1
    earlier = csv.field_size_limit(_LONGEST_FIELD)
    try:
        for fields in reader:
            yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        reason = str(error).partition(" - ")[0]
        raise InputError(f"{path} line {line}: {reason}; correct the line") from None
    finally:
        csv.field_size_limit(earlier)


def _count_lines(content: Path | bytes) -> int:
    with content.open("rb") if isinstance(content, Path) else io.BytesIO(content) as file:
        return sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 20), b""))


_READERS = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".csv.gz": _read_csv,
    ".tsv.gz": _read_csv,
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
}
_READERS |= dict.fromkeys(LETOR, _read_letor)
