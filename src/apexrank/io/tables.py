"""Read CSV, Parquet and LETOR files into named columns that remember where each value stands in its file.

CSV fields stay text until a column is used as numbers, so ids such as ``007`` travel unchanged.
"""

from __future__ import annotations

import csv
import difflib
import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO, TypeVar

import polars as pl

from apexrank.datasets.letor import read_letor
from apexrank.errors import InputError
from apexrank.io.atomic import replacing

_SEPARATORS = ",;\t"
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

    def __len__(self) -> int:
        return self.frame.height

    @property
    def names(self) -> list[str]:
        """Column names."""
        return self.frame.columns

    def column(self, name: str) -> pl.Series:
        """One column, or an error that names the likely spelling."""
        if name not in self.names and self.unnamed is not None and name.startswith("feature_"):
            return pl.Series(name, [self.unnamed], dtype=pl.Float64).new_from_index(0, len(self))
        if name not in self.names:
            raise InputError(f"{self.source} has no column {name!r}{_hint(name, self.names)}")
        return self.frame[name]

    def where(self, row: int, column: str) -> str:
        """Where the value of a row (counted from 0) stands, in words."""
        if self.separator is None:
            return f"{self.source} row {row + 1}, column {column!r}"
        return f"{self.source} line {_line_of_row(Path(self.source), self.separator, row)}, column {column!r}"


def _hint(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    return f"; it has {shown}"


def read_table(path: str | Path) -> Table:
    """Read a CSV (``.csv``, ``.tsv``, also ``.gz``), Parquet or LETOR file with at least one row.

    The separator of a CSV file is the one its header uses most: comma, semicolon or tab. A LETOR or SVMlight file
    (``.txt``, ``.svm``, ``.letor``, also ``.gz``) has the columns ``relevance``, ``qid``, ``docid``, ``feature_1`` ….

    Raises
    ------
    InputError
        When the file is missing, unreadable, empty, ragged or names a column twice.
    """
    path = Path(path)
    read = _by_suffix(path, _READERS)
    _check_readable(path)
    table = read(path)
    if not len(table):
        raise InputError(f"{path} has column names but no rows: add some")
    return table


def write_table(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a frame as CSV or Parquet, by the suffix of ``path``, whole or not at all."""
    write = _by_suffix(Path(path), _WRITERS)
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


def _check_readable(path: Path) -> None:
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except IsADirectoryError:
        raise InputError(f"cannot read {str(path)!r}: it is a folder; give a file in it") from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InputError(f"cannot read {str(path)!r}: {reason}") from None
    if empty:
        raise InputError(f"{path} is empty: it needs a line of column names and at least one row")


def _read_parquet(path: Path) -> Table:
    try:
        # Garbage makes the reader panic instead of raise, so the format's mark is looked at first.
        with path.open("rb") as file:
            if file.read(4) != b"PAR1":
                raise InputError(f"{path} is not a Parquet file: if it is text, name it .csv")
        return Table(pl.read_parquet(path), str(path))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"cannot read {path} as Parquet: {_first_line(error)}") from None


def _read_csv(path: Path) -> Table:
    separator = _sniff(path)
    header = _check_header(path, separator)
    try:
        frame = pl.read_csv(path, separator=separator, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        _check_widths(path, separator, len(header))
        raise InputError(f"cannot read {path} as CSV: {_first_line(error)}") from None
    # The reader fills a short line with missing values and says nothing: look when one could hide.
    if frame.height and frame[frame.columns[-1]].null_count():
        _check_widths(path, separator, len(header))
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
    return Table(frame, str(path), separator)


def _read_letor(path: Path) -> Table:
    letor = read_letor(path, null="nan")
    roles = {"target": "relevance", "groups": "qid", "id": "docid"}
    names = pl.DataFrame({"relevance": letor.target, "qid": letor.groups, "docid": letor.docids})
    features = pl.DataFrame(letor.data, schema=letor.feature_names or [], orient="row")
    return Table(pl.concat([names, features], how="horizontal"), str(path), roles=roles, unnamed=0.0)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


@contextmanager
def _text(path: Path) -> Iterator[TextIO]:
    """Open a CSV file's text; what cannot be decoded or split is an error of one line."""
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text: save it as UTF-8 CSV") from None
    except (OSError, EOFError, csv.Error) as error:
        raise InputError(f"cannot read {path} as CSV: {_first_line(error)}") from None


def _sniff(path: Path) -> str:
    with _text(path) as file:
        header = next((line for line in file if line.strip()), "")
    return max(_SEPARATORS, key=header.count)


def _check_header(path: Path, separator: str) -> list[str]:
    """Column names, each given once: the reader would rename a second one silently."""
    with _text(path) as file:
        header = next((fields for fields in csv.reader(file, delimiter=separator) if fields), [])
    for position, name in enumerate(header):
        if not name.strip():
            raise InputError(f"{path} line 1: column {position + 1} has no name; name it or take it out")
        if name in header[:position]:
            raise InputError(f"{path} line 1: two columns are named {name!r}; rename one")
    return header


def _records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every row below the header; empty rows are left out."""
    with _text(path) as file:
        reader = csv.reader(file, delimiter=separator)
        start, seen_header = 1, False
        for fields in reader:
            if any(fields) and seen_header:
                yield start, fields
            seen_header = seen_header or any(fields)
            start = reader.line_num + 1


def _check_widths(path: Path, separator: str, width: int) -> None:
    for line, fields in _records(path, separator):
        if len(fields) != width:
            raise InputError(
                f"{path} line {line}: the row has {len(fields)} fields, the header {width}; "
                "fix the line (a value that contains the separator needs quotes)"
            )


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
