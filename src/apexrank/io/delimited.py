"""Rows of delimited text as columns of text, with the line of every fault: polars parses, and Python finds the line."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import polars as pl

from apexrank.errors import InputError
from apexrank.files import check_is_text, is_utf8, not_utf8, opened, reading

_SEPARATORS = ",;\t"
_FEW_CELLS = 1 << 24
_LONGEST_FIELD = 1 << 27  # characters; the fast reader accepts fields of any length
_WRITTEN = [  # numbers with a decimal comma, and with a decimal point; 1.234 may be either
    rf"^\s*[+-]?(?:(?:\d+|{digits})(?:[{mark}]\d*)?|[{mark}]\d+)(?:[eE][+-]?\d+)?\s*$"
    for mark, digits in ((",", r"[1-9]\d{0,2}(?:\.\d{3})+"), (".", r"[1-9]\d{0,2}(?:,\d{3})+"))
]


@dataclass(frozen=True)
class Dialect:
    """Options of :func:`~apexrank.io.read_table` for CSV files.

    Parameters
    ----------
    separator : str, optional
        One ASCII character; by default the first line tells it.
    header : bool
        Whether the first line holds the names of the columns.
    encoding : str, optional
        Encoding of the text; by default UTF-8.
    decimal : {".", ","}
        Decimal mark of the numbers; the other one may separate thousands.
    missing : str or sequence of str
        Marks of missing values.

    Examples
    --------
    >>> Dialect(separator=";", decimal=",", missing="NA")
    Dialect(separator=';', header=True, encoding=None, decimal=',', missing=('NA',))
    """

    separator: str | None = None
    header: bool = True
    encoding: str | None = None
    decimal: str = "."
    missing: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        mark = self.separator
        if mark is not None and (len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0'):
            raise InputError(f"`separator=` must be one ASCII character such as ; or |, got {mark!r}")
        if self.decimal not in (".", ","):
            raise InputError(f"`decimal` must be a point or a comma, got {self.decimal!r}")
        marks = (self.missing,) if isinstance(self.missing, str) else tuple(self.missing)
        object.__setattr__(self, "missing", marks)


PLAIN = Dialect()


@dataclass(frozen=True)
class Csv:
    """Layout of a CSV file, as its first line tells it; polars reads the rows.

    Python's own reader finds the line of a fault, and blank lines, once there are some.
    """

    path: Path
    names: list[str]
    separator: str
    first_line: int  # line of the file at which the rows begin
    dialect: Dialect = PLAIN
    roles: Mapping[str, str] = field(default_factory=dict)
    guesses: Sequence[str] = ()

    @classmethod
    def of_lines(
        cls, path: Path, lines: Iterable[bytes], dialect: Dialect, index: str | None = None
    ) -> tuple[Csv, list[bytes]]:
        """Read the first line that is not blank; return the layout, and lines of rows that were read on the way.

        A first column without a name is called ``index``, with underscores appended until it is unique.
        """
        taken: list[bytes] = []
        text = _decoded(path, lines, taken)
        top = next((line for line in text if line.strip()), "")
        number = len(taken)
        # commas may be in the numbers of a first row
        marks = [mark for mark in _SEPARATORS if mark != dialect.decimal and mark in top]
        mark = dialect.separator or max(marks or _SEPARATORS, key=top.count)
        names = next(_records(path, chain([top], text), mark, number), (0, []))[1]
        if not names:
            raise InputError(f"{path} is empty: it needs a line of column names and at least one row")
        start = len(taken) if dialect.header else number - 1
        if taken[-1].endswith(b"\r\r\n"):
            raise InputError(
                f"{path} line {number} ends in two carriage returns (\\r\\r\\n): save it with plain line ends"
            )
        guesses, roles = [], {}
        if dialect.separator is None:
            guesses = _separator_notes(path, number, names, mark, next(text, "") if len(names) == 1 else "")
        if not dialect.header:
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
        layout = cls(path, names, mark, start + 1, dialect, roles, guesses)
        return layout, taken[start:]

    def frame(self, rows: Iterable[bytes], line: int) -> tuple[pl.DataFrame, list[str]]:
        """Parse rows that begin in a line of the file into columns of text; also return notes about them."""
        width, mark = len(self.names), self.separator.encode()
        head = mark.join(b"%d" % column for column in range(width))
        text = b"\n".join([head, b"".join(rows)])
        ends = text.count(b"\n") - 1
        # polars would fill short and blank lines with cells
        if ends * width > max(_FEW_CELLS, 4 * len(text)):
            numbers, _ = self._lines(text, line)
            if 2 * numbers.count(0) > len(numbers):
                raise InputError(f"{self.path}: most of its {len(numbers)} lines are blank; remove them")
        try:
            frame = pl.read_csv(text, separator=self.separator, infer_schema=False, glob=False)
        except pl.exceptions.PolarsError as error:
            raise self._fault(text, line, error) from None
        frame.columns = self.names
        separators, is_quoted = text.count(mark) - (width - 1), b'"' in text
        if is_quoted:
            inside = frame.select(pl.all().str.count_matches(self.separator, literal=True).sum())
            separators -= sum(inside.row(0))
        # polars fills lines with too few separators, and blank ones, with missing values
        is_ragged = separators != (width - 1) * frame.height
        is_ragged |= width == 1 and frame[self.names[0]].null_count() > 0
        lines: Sequence[int] = range(line, line + frame.height)
        notes: list[str] = []
        if is_ragged or (is_quoted and ends > frame.height):
            numbers, notes = self._lines(text, line)
            if len(numbers) != frame.height:
                raise self._fault(text, line, ValueError("its rows cannot be counted"))
            kept = pl.Series(numbers, dtype=pl.Int64) > 0
            frame, lines = frame.filter(kept), [number for number in numbers if number]
        if self.dialect.missing:
            is_mark = pl.all().str.strip_chars().is_in(self.dialect.missing)
            frame = frame.with_columns(pl.when(~is_mark).then(pl.all()))
        if is_quoted or self.separator != "," or self.dialect.decimal == ",":  # a cell may have a comma in it
            marks = "[.,]" if self.dialect.decimal == "," else ","
            with_marks = frame.select(pl.all().str.contains(marks).any())
            for name in (column.name for column in with_marks if column[0]):
                frame = frame.with_columns(self._one_mark(frame[name], lines, notes))
        return frame, notes

    def _one_mark(self, cells: pl.Series, lines: Sequence[int], notes: list[str]) -> pl.Series:
        """Write the numbers of a column with a decimal point; those of both marks raise InputError.

        The point of 1.234 may be a decimal one or separate thousands: the other numbers of the column tell, else the
        dialect.
        """
        by_comma, by_point = (cells.str.contains(form).fill_null(False) for form in _WRITTEN)
        if 2 * (by_comma | by_point).sum() < cells.str.contains(r"\d").sum():
            return cells
        is_told, column = self.dialect.decimal == ",", f"column {cells.name!r}"
        has_comma, has_point = (cells.str.contains(mark, literal=True).fill_null(False) for mark in ",.")
        point, comma = by_point & ~by_comma, by_comma & (~by_point | (is_told & has_comma))
        if comma.any() and point.any():
            odd, other = (int(rows.to_numpy().argmax()) for rows in (point, comma))
            raise InputError(
                f"{self.path} line {lines[odd]}, {column}: {cells[odd]!r} has a decimal point, but {cells[other]!r} "
                f"in line {lines[other]} a decimal comma; write the numbers of the column alike"
            )
        grouped = by_comma & has_point
        if not is_told or not (comma | grouped | point).any():
            return cells
        first = cells.filter(point if point.any() else grouped).head(1).to_list()
        if point.any():
            told = f"{first[0]!r} is read with a decimal point, because no number has a comma"
            notes.append(f"{self.path} {column}: {told}")
            return cells
        if grouped.any() and not (grouped & ~by_point).any():
            told = f"{first[0]!r} is read as {first[0].replace('.', '')}, because of `decimal=`"
            notes.append(f"{self.path} {column}: {told}")
        plain = cells.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
        return plain.zip_with(by_comma, cells)

    def line_of(self, row: int) -> int:
        """Return the line of a row of the file, both counted from its first."""
        with csv_lines(self.path, self.dialect.encoding) as lines:
            rest = islice(lines, self.first_line - 1, None)
            numbers = (line for line, fields in self._records(rest, self.first_line) if fields)
            return next(islice(numbers, row, None), self.first_line + row)

    def _records(self, lines: Iterable[bytes], line: int) -> Iterator[tuple[int, list[str]]]:
        # polars takes a carriage return inside a line as part of a value
        text = (part.decode(errors="replace").replace("\r", "") for part in lines)
        return _records(self.path, text, self.separator, line)

    def _lines(self, text: bytes, line: int) -> tuple[list[int], list[str]]:
        """Return the lines of the rows, 0 for a blank line, and a note about values that may be rows between quotes.

        A row of another width raises InputError.
        """
        width = len(self.names)
        numbers, long = list[int](), list[tuple[int, str, int]]()
        for number, fields in self._records(islice(io.BytesIO(text), 1, None), line):
            if fields and len(fields) != width:
                has = f"the row has {len(fields)} field{'s' * (len(fields) != 1)}, the header {width}"
                advice = "fix the line (a value that contains the separator needs quotes)"
                if width == 1:
                    advice = "take out the lines above the one with the names of the columns"
                raise InputError(f"{self.path} line {number}: {has}; {advice}")
            numbers.append(number if fields else 0)
            cells = zip(self.names, fields, strict=False)
            long += [(number, name, value.count("\n") + 1) for name, value in cells if "\n" in value]
        notes = [
            f"{self.path} line {number}, column {name!r}: the value has {lines} lines (values with line ends: "
            f"{len(long):,}); if these are rows, correct the quotes"
            for number, name, lines in long[:1]
        ]
        return numbers, notes

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
    except (LookupError, ValueError):
        raise InputError(
            f"unknown `encoding` {encoding!r}: use a name such as latin-1, cp1252 or utf-16"
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


def first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
