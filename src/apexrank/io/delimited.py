"""Rows of delimited text as columns of text, with the line of every row: polars parses, and NumPy counts lines."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.files import File, check_is_text, is_utf8, not_utf8, opened, reading

_SEPARATORS = ",;\t"
_FEW_CELLS = 1 << 24
_LONGEST_HEADER = 1 << 27  # characters
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
    """Layout of a CSV file, as its first line tells it; it keeps the lines of the rows that were read."""

    path: Path
    names: list[str]
    separator: str
    first_line: int  # line of the file at which the rows begin
    dialect: Dialect = PLAIN
    roles: Mapping[str, str] = field(default_factory=dict)
    guesses: Sequence[str] = ()
    _lines: list[tuple[int, Sequence[int] | np.ndarray]] = field(
        default_factory=list, compare=False, repr=False
    )

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
        while top.count('"') % 2 and len(top) < _LONGEST_HEADER and (more := next(text, "")):
            top += more
        # commas may be in the numbers of a first row
        marks = [mark for mark in _SEPARATORS if mark != dialect.decimal and mark in top]
        mark = dialect.separator or max(marks or _SEPARATORS, key=top.count)
        if not top:
            raise InputError(f"{path} is empty: it needs a line of column names and at least one row")
        names = fields(top, mark)
        if names is None:
            raise InputError(f"{path} line {number}: {_QUOTES}")
        start = len(taken) if dialect.header else number - 1
        if top.endswith("\r\r\n") or ("\r" in top.rstrip("\r\n") and '"' not in top):
            raise InputError(
                f"{path} line {number} has carriage returns before its end: save it with plain line ends"
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

    def frame(self, rows: Iterable[bytes], line: int, first: int = 0) -> tuple[pl.DataFrame, list[str]]:
        """Parse rows that begin in a line of the file, after its ``first`` rows, into columns of text and notes."""
        frame, lines, notes, is_quoted = read_rows(self.path, rows, self.names, self.separator, line)
        self._lines.append((first, lines))
        if self.dialect.missing:
            is_mark = pl.all().str.strip_chars().is_in(self.dialect.missing)
            frame = frame.with_columns(pl.when(~is_mark).then(pl.all()))
        if is_quoted or self.separator != "," or self.dialect.decimal == ",":  # a cell may have a comma in it
            marks = "[.,]" if self.dialect.decimal == "," else ","
            with_marks = frame.select(pl.all().str.contains(marks).any())
            for name in (column.name for column in with_marks if column[0]):
                frame = frame.with_columns(self._one_mark(frame[name], lines, notes))
        return frame, notes

    def _one_mark(self, cells: pl.Series, lines: Sequence[int] | np.ndarray, notes: list[str]) -> pl.Series:
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
        """Return the line of a row that was read; both are counted from the first of the file."""
        first, lines = max(
            ((first, lines) for first, lines in self._lines if first <= row), key=lambda x: x[0]
        )
        return int(lines[row - first])


_QUOTES = "the quotes do not match; write a quote inside a quoted value twice"


def fields(record: str, separator: str) -> list[str] | None:
    """Split a record into its fields; None if its quotes do not match.

    Examples
    --------
    >>> fields('a,"b ""c"", d",', ",")
    ['a', 'b "c", d', '']
    """
    try:
        row = pl.read_csv(record.encode(), separator=separator, has_header=False, infer_schema=False).row(0)
    except pl.exceptions.PolarsError:
        return None if record.strip() else [""]
    return [value or "" for value in row]


class Rows(NamedTuple):
    """Columns of text, the lines at which their rows begin, notes, and whether there are quotes."""

    frame: pl.DataFrame
    lines: Sequence[int] | np.ndarray
    notes: list[str]
    is_quoted: bool


def read_rows(
    path: File,
    rows: Iterable[bytes],
    names: Sequence[str],
    separator: str,
    line: int,
    *,
    quotes: bool = True,
    like: str = "the header",
) -> Rows:
    r"""Parse rows of text that begin in a line of a file.

    Blank lines are no rows, and a row with another number of fields, not ``like`` the header, raises InputError. A note
    tells of values that may be rows between quotes.

    Examples
    --------
    >>> found = read_rows("t.csv", [b"1,x\n\n2,\n"], ["a", "b"], ",", 2)
    >>> found.frame.rows(), found.lines.tolist()
    ([('1', 'x'), ('2', None)], [2, 4])
    """
    width = len(names)
    # the width of the first line is that of all, so that it must not be blank
    text = b"".join([separator.join(map(str, range(width))).encode(), b"\n", *rows])
    n_lines = text.count(b"\n") - text.endswith(b"\n")
    if n_lines * width > max(_FEW_CELLS, 4 * len(text)):  # polars would fill short and blank lines with cells
        numbers, _ = _lines_of_rows(path, text, names, separator, line, quotes, like)
        if 2 * np.count_nonzero(numbers) < len(numbers):
            raise InputError(f"{path}: most of its {len(numbers)} lines are blank; remove them")
    try:
        mark = '"' if quotes else None
        frame = pl.read_csv(text, separator=separator, quote_char=mark, infer_schema=False, glob=False)
    except pl.exceptions.PolarsError as error:
        try:
            text.decode()
        except UnicodeDecodeError as fault:
            raise not_utf8(path, line - 1 + text.count(b"\n", 0, fault.start)) from None
        _lines_of_rows(path, text, names, separator, line, quotes, like)
        raise InputError(f"cannot read {path} as CSV: {first_line(error)}") from None
    frame.columns = list(names)
    n_separators, is_quoted = text.count(separator.encode()) - width + 1, quotes and b'"' in text
    if is_quoted:
        n_separators -= sum(frame.select(pl.all().str.count_matches(separator, literal=True).sum()).row(0))
    # polars fills lines with too few separators, and blank ones, with missing values
    is_ragged = n_separators != (width - 1) * frame.height or (
        width == 1 and frame.to_series().null_count() > 0
    )
    if not is_ragged and not (is_quoted and n_lines > frame.height):
        return Rows(frame, range(line, line + frame.height), [], is_quoted)
    numbers, notes = _lines_of_rows(path, text, names, separator, line, quotes, like)
    if len(numbers) != frame.height:
        raise InputError(f"cannot read {path} as CSV: its rows cannot be counted")
    return Rows(frame.filter(numbers > 0), numbers[numbers > 0], notes, is_quoted)


def _lines_of_rows(
    path: File, text: bytes, names: Sequence[str], separator: str, line: int, quotes: bool, like: str
) -> tuple[np.ndarray, list[str]]:
    """Return the line of each row below a header, 0 for a blank line, and the note of `read_rows`."""
    content, width = np.frombuffer(text, np.uint8), len(names)
    feeds, marks = np.flatnonzero(content == ord("\n")), np.flatnonzero(content == ord('"'))
    feeds, marks = (
        feeds if text.endswith(b"\n") else np.append(feeds, len(text)),
        marks if quotes else marks[:0],
    )

    def is_open(places: np.ndarray) -> np.ndarray:
        return np.searchsorted(marks, places) % 2 == 1

    separators = np.flatnonzero(content == ord(separator))
    separators, ends = separators[~is_open(separators)], feeds[~is_open(feeds)]
    starts = np.append(0, ends + 1)
    numbers = line - 1 + np.searchsorted(feeds, starts)
    widths = np.diff(np.searchsorted(separators, ends), prepend=0) + 1
    size = ends - starts[:-1]
    is_blank = (size == 0) | ((size == 1) & (content[ends - 1] == ord("\r")))
    wrong = np.flatnonzero(~is_blank & (widths != width))[:1]
    stray = _stray_quote(content, marks, separator)
    if stray is not None and not (len(wrong) and ends[wrong[0]] < stray):
        raise InputError(f"{path} line {numbers[np.searchsorted(ends, stray)]}: {_QUOTES}")
    for row in wrong.tolist():
        has = f"the row has {widths[row]} field{'s' if widths[row] > 1 else ''}, {like} {width}"
        advice = "fix the line" + " (a value that contains the separator needs quotes)" * quotes
        if width == 1:
            advice = "take out the lines above the one with the names of the columns"
        raise InputError(f"{path} line {numbers[row]}: {has}; {advice}")
    notes, inner = [], feeds[is_open(feeds)]
    if len(inner):
        rows = np.searchsorted(ends, inner)
        columns = np.searchsorted(separators, inner) - np.searchsorted(separators, starts[rows])
        values, counts = np.unique(rows * width + columns, return_counts=True)
        row, column = divmod(int(values[0]), width)
        notes = [
            f"{path} line {numbers[row]}, column {names[column]!r}: the value has {counts[0] + 1} lines (values with "
            f"line ends: {len(values):,}); if these are rows, correct the quotes"
        ]
    return np.where(is_blank, 0, numbers[:-1])[1:], notes


def _stray_quote(content: np.ndarray, marks: np.ndarray, separator: str) -> int | None:
    """Return the position of the first quote that neither encloses a value nor is one of two inside it, if any."""
    is_closing = np.arange(len(marks)) % 2 == 1
    # a quote inside a value is a closing and an opening one without anything between
    is_first = (np.diff(marks, append=-1) == 1) & is_closing
    beside = np.pad(content, 1, constant_values=ord("\n"))[marks + 2 * is_closing]
    is_edge = np.isin(beside, np.frombuffer(f"{separator}\n\r".encode(), np.uint8))
    stray = marks[~(is_edge | is_first | np.roll(is_first, 1))].tolist()
    return next(iter(stray + marks[-1:].tolist() * (len(marks) % 2)), None)


def single_blanks(content: bytes) -> bytes:
    r"""Reduce white space to one blank between fields, so that lines of them can be read as rows.

    Examples
    --------
    >>> single_blanks(b" a\t b\r\n\n c  d\n")
    b'a b\n\nc d\n'
    """
    text = content.translate(bytes.maketrans(b"\t\v\f\r", b"    "))
    for several, one in ((b"  ", b" "), (b" \n", b"\n"), (b"\n ", b"\n")):
        while several in text:
            text = text.replace(several, one)
    return text.strip(b" ")


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


def first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
