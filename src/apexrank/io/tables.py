"""Read CSV, Parquet and LETOR files into named columns that remember where each value stands in its file.

CSV fields stay text until a column is used as numbers, so ids such as ``007`` travel unchanged.
"""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TextIO, TypeVar

import polars as pl

from apexrank.atomic import replacing
from apexrank.datasets.letor import read_letor
from apexrank.errors import InputError
from apexrank.io.parquet_size import check_size
from apexrank.textfile import is_gzip, not_utf8, opened, reading, unpacked
from apexrank.validation import check_polars_threads

_SEPARATORS = ",;\t"
PARQUET = (".parquet", ".pq")
_FEW_CELLS = 1 << 24
_LONGEST_FIELD = 1 << 27  # characters; the fast reader takes fields of any length
_ZLIB_MARK = "x\x01"  # the fast reader would unpack such a file, however large it becomes
# garbage inside a Parquet file makes its reader panic instead of raise
PARQUET_FAULTS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
_T = TypeVar("_T")


@dataclass(frozen=True)
class Table:
    """A data frame and the file it came from.

    Parameters
    ----------
    frame : polars.DataFrame
        The columns.
    source : str
        What error messages call the table: its path.
    separator : str, optional
        Given for a table read from text, whose rows stand on numbered lines.
    roles : mapping of str to str
        What a format says of its columns: the names of the ``target``, ``groups`` and ``id`` columns.
    unnamed : float, optional
        What a feature is that the file does not name, where the format says so: 0 in LETOR files.
    first : int
        How many rows of the file come before these.

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

    def __len__(self) -> int:
        return self.frame.height

    @property
    def names(self) -> list[str]:
        """Column names."""
        return self.frame.columns

    def column(self, name: str) -> pl.Series:
        """One column, or an error that names the likely spelling."""
        check_polars_threads("columns are read")
        if name not in self.names and self.unnamed is not None and name.startswith("feature_"):
            return pl.Series(name, [self.unnamed], dtype=pl.Float64).new_from_index(0, len(self))
        if name not in self.names:
            raise InputError(f"{self.source} has no column {name!r}{_hint(name, self.names)}")
        return self.frame[name]

    def where(self, row: int, column: str) -> str:
        """Where the value of a row (counted from 0) stands, in words."""
        row += self.first
        if self.separator is None:
            return f"{self.source} row {row + 1}, column {column!r}"
        return f"{self.source} line {_line_of_row(Path(self.source), self.separator, row)}, column {column!r}"


def _hint(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    return f"; it has {shown}"


def read_table(path: str | Path, *, index: str | None = None) -> Table:
    """Read a CSV (``.csv``, ``.tsv``, also ``.gz``), Parquet or LETOR file with at least one row.

    The separator of a CSV file is the one its header uses most: comma, semicolon or tab. A LETOR or SVMlight file
    (``.txt``, ``.svm``, ``.letor``, also ``.gz``) has the columns ``relevance``, ``qid``, ``docid``, ``feature_1`` ….
    A first column of a CSV file without a name, as pandas writes an index, is called ``index`` and has the role ``id``;
    without ``index`` it is refused.

    Raises
    ------
    InputError
        When the file is missing, unreadable, empty, ragged or names a column twice.
    """
    path = Path(path)
    read = _by_suffix(path, _READERS)
    check_readable(path)
    check_polars_threads("tables are read")
    table = read(path, index) if read is _read_csv else read(path)
    if not len(table):
        raise InputError(f"{path} has column names but no rows: add some")
    return table


def files_of(path: Path) -> list[Path]:
    """The files that are read of a path: the Parquet files of a folder, or the path itself.

    Examples
    --------
    >>> [file.name for file in files_of(Path("rows.csv"))]
    ['rows.csv']
    """
    return sorted(p for p in path.iterdir() if p.suffix.lower() in PARQUET) if path.is_dir() else [path]


def write_table(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a frame as CSV or Parquet, by the suffix of ``path``, whole or not at all."""
    write = _by_suffix(Path(path), _WRITERS)
    check_polars_threads("tables are written")
    with replacing(path) as temporary:
        write(frame, temporary)


def check_flat(frame: pl.DataFrame) -> None:
    """Refuse lists and structs, which CSV cannot hold."""
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    if nested:
        raise InputError(
            f"column {nested[0]!r} holds {frame.schema[nested[0]]} values, which CSV cannot: write .parquet"
        )


def check_suffix(path: str | Path) -> None:
    """Say early that :func:`write_table` could not tell the format of ``path``."""
    _by_suffix(Path(path), _WRITERS)


def _by_suffix(path: Path, choices: dict[str, _T]) -> _T:
    name = path.name.lower()
    for suffix, choice in choices.items():
        if name.endswith(suffix):
            return choice
    known = ", ".join(choices)
    raise InputError(f"cannot tell the format of {str(path)!r} by its name: use one of {known}")


def check_readable(path: Path) -> None:
    """Refuse a path that is no file with something in it."""
    with reading(path):
        if path.exists() and not path.is_dir() and not path.is_file():
            raise InputError(
                f"cannot read {str(path)!r}: a table is read twice; save the stream to a file first"
            )
        with path.open("rb") as file:
            empty = not file.read(1)
    if any("\ud800" <= letter <= "\udfff" for letter in str(path)):
        raise InputError(f"cannot read {str(path)!r}: its name is not UTF-8 text; rename it")
    if empty:
        raise InputError(f"{path} is empty: it needs a line of column names and at least one row")


def _read_parquet(path: Path) -> Table:
    try:
        check_size(path)
        return Table(pl.read_parquet(path, glob=False), str(path))
    except PARQUET_FAULTS as error:
        raise InputError(f"cannot read {path} as Parquet: {first_line(error)}") from None


def _read_csv(path: Path, index: str | None = None) -> Table:
    separator, header = csv_header(path, index)
    with reading(path):
        content = unpacked(path) if is_gzip(path) else path
    _check_cells(path, content, separator, len(header))
    try:
        frame = pl.read_csv(content, separator=separator, infer_schema=False, glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise csv_fault(path, separator, len(header), error) from None
    unnamed = not frame.columns[0]
    frame = with_header(path, frame.rename({"": header[0]}) if unnamed else frame, header)
    # The reader fills a short line with missing values and says nothing: look when one could hide.
    if frame.height and frame[frame.columns[-1]].null_count():
        check_widths(path, separator, len(header))
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    return Table(frame, str(path), separator, {"id": header[0]} if unnamed else {})


def _read_letor(path: Path) -> Table:
    letor = read_letor(path, null="nan")
    roles = {"target": "relevance", "groups": "qid", "id": "docid"}
    names = pl.DataFrame({"relevance": letor.target, "qid": letor.groups, "docid": letor.docids})
    features = pl.DataFrame(letor.data, schema=letor.feature_names or [], orient="row")
    return Table(pl.concat([names, features], how="horizontal"), str(path), roles=roles, unnamed=0.0)


def _check_cells(path: Path, content: Path | bytes, separator: str, width: int) -> None:
    """Refuse blank and short lines before the reader fills each of them with a cell for every column."""
    size = path.stat().st_size if isinstance(content, Path) else len(content)
    most = max(_FEW_CELLS, 4 * size) // width
    if size <= most or _count_lines(content) <= most:
        return
    check_widths(path, separator, width)
    rows = sum(1 for _ in _lines(path, separator))
    if rows > most:
        raise InputError(f"{path}: most of its {rows} lines are blank; take them out")


def _count_lines(content: Path | bytes) -> int:
    if isinstance(content, bytes):
        return content.count(b"\n")
    with content.open("rb") as file:
        return sum(part.count(b"\n") for part in iter(lambda: file.read(1 << 20), b""))


def first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


@contextmanager
def csv_text(path: Path, streamed: bool = False) -> Iterator[TextIO]:
    """Open a CSV file's text; what cannot be decoded is an error of one line."""
    try:
        with (
            reading(path),
            opened(path, streamed=streamed) as file,
            io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n") as text,
        ):
            yield text
    except UnicodeDecodeError:
        raise not_utf8(path, _undecodable(path)) from None


def csv_header(path: Path, index: str | None = None) -> tuple[str, list[str]]:
    """Separator and column names, each given once: the reader would rename a second one silently.

    A first column without a name is called ``index``, with as many underscores as tell it from the others.
    """
    with csv_text(path) as file:
        first: list[str] = []  # lines up to that of the names
        while not first or (first[-1] and not first[-1].strip()):
            first.append(file.readline())
        separator = max(_SEPARATORS, key=first[-1].count)
        rows = _split(path, chain(first, file), separator)
        header = next((fields for _, fields in rows if fields), [])
    if not header:
        raise InputError(f"{path} is empty: it needs a line of column names and at least one row")
    if header[0].startswith(_ZLIB_MARK):
        raise InputError(f"{path} is no text but packed by zlib: unpack it, or pack it by gzip")
    if index is not None and not header[0]:
        while index in header:
            index += "_"
        header[0] = index
    seen: set[str] = set()
    for position, name in enumerate(header):
        if not name.strip():
            raise InputError(f"{path} line 1: column {position + 1} has no name; name it or take it out")
        if name in seen:
            raise InputError(f"{path} line 1: two columns are named {name!r}; rename one")
        seen.add(name)
    return separator, header


def _records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every row below the header; empty rows are left out."""
    seen_header = False
    for line, fields in _lines(path, separator, streamed=True):
        if any(fields) and seen_header:
            yield line, fields
        seen_header = seen_header or any(fields)


def _lines(path: Path, separator: str, streamed: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every row."""
    with csv_text(path, streamed) as file:
        yield from _split(path, file, separator)


def _split(path: Path, lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of rows; one that cannot be split is an error with its line."""
    reader, line = csv.reader(lines, delimiter=separator), 1
    try:
        for fields in reader:
            yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        reason = str(error).partition(" - ")[0]
        raise InputError(f"{path} line {line}: {reason}; correct the line") from None


def check_widths(path: Path, separator: str, width: int) -> None:
    earlier = csv.field_size_limit(_LONGEST_FIELD)
    try:
        for line, fields in _lines(path, separator, streamed=True):
            if len(fields) > width or (any(fields) and len(fields) < width):
                raise InputError(
                    f"{path} line {line}: the row has {len(fields)} fields, the header {width}; "
                    "fix the line (a value that contains the separator needs quotes)"
                )
    finally:
        csv.field_size_limit(earlier)


def csv_fault(path: Path, separator: str, width: int, error: Exception) -> InputError:
    """What is wrong with a file that the fast reader gave up on, and in which line."""
    check_widths(path, separator, width)
    with csv_text(
        path, streamed=True
    ) as file:  # readers take quotes in different ways where they do not match
        first = next((number for number, line in enumerate(file, start=1) if '"' in line), None)
    if first is None:
        return InputError(f"cannot read {path} as CSV: {first_line(error)}")
    return InputError(
        f"cannot read {path} as CSV: its quotes do not match from line {first} on; correct them"
    )


def with_header(path: Path, frame: pl.DataFrame, header: list[str]) -> pl.DataFrame:
    """The frame with the names of ``header``; refuse a line of names that two readers split in two ways."""
    if frame.columns == header:
        return frame
    if len(frame.columns) == len(header) and all(map(_same_name, frame.columns, header)):
        return frame.rename(dict(zip(frame.columns, header, strict=True)))
    if any(name.endswith("\r") for name in frame.columns):
        raise InputError(
            f"{path} line 1 ends in two carriage returns (\\r\\r\\n): save it with plain line ends"
        )
    raise InputError(
        f"{path} line 1: the quotes of the column names do not match, or something stands between a quote and the "
        "separator; correct them"
    )


def _same_name(name: str, wanted: str) -> bool:
    """Whether a name is the wanted one but for its quotes, which the fast reader leaves doubled."""
    return name == wanted or name.replace('""', '"') == wanted


def _undecodable(path: Path) -> int:
    """Number of the first line that is not UTF-8."""
    number = 0
    try:
        with reading(path), opened(path, streamed=True) as file:
            for number, line in enumerate(file, start=1):  # noqa: B007
                line.decode()
    except UnicodeDecodeError:
        return number
    return 1


def _line_of_row(path: Path, separator: str, row: int) -> int:
    for index, (line, _) in enumerate(_records(path, separator)):
        if index == row:
            return line
    return row + 2


def _write_csv(frame: pl.DataFrame, path: Path) -> None:
    check_flat(frame)
    frame.write_csv(path)


def _write_parquet(frame: pl.DataFrame, path: Path) -> None:
    frame.write_parquet(path)


_READERS = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".csv.gz": _read_csv,
    ".tsv.gz": _read_csv,
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
}
_READERS |= {f"{suffix}{gz}": _read_letor for suffix in (".txt", ".svm", ".letor") for gz in ("", ".gz")}
_WRITERS = {".csv": _write_csv, ".parquet": _write_parquet, ".pq": _write_parquet}
