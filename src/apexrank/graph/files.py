"""Tables of edges in files: CSV, tab- or blank-separated lists, JSON lines, Parquet; one file or several parts.

Text files are read by a fast reader; only where it stumbles are the lines gone through one by one, to name the first
that is broken.
"""

from __future__ import annotations

import csv
import glob
import json
import re
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from apexrank.errors import InputError, one_line, quoted
from apexrank.graph.edges import (
    KNOWN_COLUMNS,
    Column,
    Edges,
    Place,
    as_weights,
    choose_columns,
    edges_of_arrays,
    plain_ids,
)
from apexrank.graph.formats import FORMATS, read_foreign, recognise, webgraph_base
from apexrank.kernels.edges import has_padded_number
from apexrank.textfile import (
    DAMAGED,
    File,
    Stream,
    is_gzip,
    not_utf8,
    numbered_lines,
    reading,
    single_blanks,
    unpacked,
)
from apexrank.validation import check_choice, check_polars_threads, has_polars_threads

_WHOLE = re.compile(r"[+-]?\d{1,18}")
_PADDED = re.compile(r"[+-]?0\d")
_WHOLE_TEXT = r"^-?(0|[1-9]\d{0,17})$"
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|nan|inf)", re.IGNORECASE)
_LOOKED_AT = 100  # lines that tell how a file is laid out


@dataclass(frozen=True)
class _Table:
    """Columns of sources, targets and weights of one file, and where its rows stand."""

    file: File
    names: list[str]
    at: tuple[int, int, int | None]
    columns: tuple[Any, Any, Any]
    place: Place
    has_header: bool | None = None  # None: the format names its columns


class _NoEdgesError(InputError):
    """A file without edges: an error unless it is one of several parts."""


def edges_of_file(
    path: str | Path,
    source: Column = None,
    target: Column = None,
    weight: Column = None,
    format: str | None = None,
) -> Edges:
    r"""Read a file of edges of any format of :data:`apexrank.graph.formats.FORMATS`, or a table in several parts.

    Fields of a text file are divided by tabs, semicolons, commas or white space, whichever the first edge has. If the
    file begins with ``#`` or ``%``, lines that begin so are comments. The first other line holds the names of columns

    - when ``source``, ``target`` or ``weight`` is a name, or it has a column for source and one for target by name,
    - or its first two fields are not both whole numbers, and either those of the next line are or the file is called
      ``.csv`` or ``.tsv``;

    else it is an edge. Ids are whole numbers if both of the first edge are (007 is text), and then a later one that
    is not is an error, unless most are not.

    Parameters
    ----------
    path : str or Path
        A file (text also gzip), a folder of parts, a pattern such as ``parts/*.csv``, or ``-`` for standard input.
        Parts are tables (text, JSON lines, Parquet) with the same columns; those without edges, and files of a folder
        whose names begin with ``.`` or ``_``, are left out.
    source, target, weight : str or int, optional
        Names or positions (from 0, also as text) of the columns; by default source or src or from, target or dst or
        to, weight or rating or value; for want of such names the first two columns and no weights.
        ``weight=False``: no weights.
    format : str, optional
        One of :data:`apexrank.graph.formats.FORMATS`; by default the content and the name of the file decide.

    Raises
    ------
    InputError
        Naming file and line: a line of too few or too many fields, a missing id, text for a number.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "votes.txt"
    ...     _ = path.write_text("# FromNodeId ToNodeId\n30\t1412\n30\t3352\n")
    ...     edges_of_file(path).names.tolist()
    [30, 1412, 3352]
    """
    if format is not None:
        check_choice("format", format, FORMATS)
    files: list[Any] = [base] if (base := webgraph_base(path, format)) else files_of_edges(path)
    tables, empty = [], None
    for file in files:
        kind = format or ("webgraph" if base else recognise(file))
        if kind not in _READERS:
            if len(files) > 1:
                raise InputError(f"{file} is of the format {kind}, which has no parts: give one file")
            return replace(read_foreign(file, kind, source, target, weight), origin=str(path))
        try:
            tables.append(_READERS[kind](file, source, target, weight))
        except _NoEdgesError as error:
            empty = empty or error
    if not tables:
        raise empty or InputError(f"{path} has no edges")
    edges = _edges_of_tables(tables)
    return replace(edges, origin=str(path), assumed=_assumed(tables[0], (source, target, weight)))


def _edges_of_tables(tables: list[_Table]) -> Edges:
    """Join the parts of a table of edges."""
    first = tables[0]
    starts = np.cumsum([0, *(len(table.columns[0]) for table in tables)])

    def place(row: int) -> str:
        part = int(np.searchsorted(starts, row, side="right")) - 1
        return tables[part].place(row - int(starts[part]))

    sources, targets, weights = first.columns
    if len(tables) > 1:
        for table in tables:
            if (table.names, table.at) != (first.names, first.at):
                raise InputError(
                    f"{table.file} has the columns {quoted(table.names)}, but {first.file} has "
                    f"{quoted(first.names)}: all parts need the same columns, by name and order"
                )
        sources, targets = _joined_ids(tables, 0, "source"), _joined_ids(tables, 1, "target")
        if weights is not None:
            parts = ((table.columns[2], len(table.columns[2]), table.place) for table in tables)
            weights = np.concatenate([as_weights(*part) for part in parts])
    edges = edges_of_arrays(sources, targets, weights, place)
    for table in tables:
        _refuse_lost_edge(table, edges)
    return edges


def _joined_ids(tables: list[_Table], k: int, role: str) -> Any:
    """Ids of all parts, one after the other; they must be whole numbers in all of them, or text in all."""
    import polars as pl

    parts = [plain_ids(table.columns[k], role, table.place) for table in tables]
    for table, part in zip(tables, parts, strict=True):
        if type(part) is not type(parts[0]):
            first, other = (
                "whole numbers" if isinstance(x, np.ndarray) else "text" for x in (parts[0], part)
            )
            raise InputError(
                f"ids are {first} in {tables[0].file}, but {other} in {table.file}: write them alike"
            )
    if isinstance(parts[0], list):
        return [name for part in parts for name in part]
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pl.concat(parts)


def files_of_edges(path: str | Path) -> list[Path | Stream]:
    """List the files that a path names: a file, those of a folder or a pattern, or standard input (``-``)."""
    path, text = Path(path), str(path)
    if text == "-":
        return [Stream("standard input", sys.stdin.buffer.read())]
    with reading(path):
        if path.is_dir():
            found = [file for file in sorted(path.iterdir()) if file.is_file() and file.name[0] not in "._"]
            if not found:
                raise InputError(f"cannot read {text!r}: it is a folder without files of edges")
            return [*found]
        if not path.exists() and glob.has_magic(text):
            found = [file for file in sorted(map(Path, glob.glob(text, recursive=True))) if file.is_file()]
            if not found:
                raise InputError(f"no file matches {text!r}: correct the pattern")
            return [*found]
        if path.is_char_device() and path.resolve() != Path("/dev/stdin").resolve():  # it may never end
            raise InputError(f"{text!r} is a device: give a file, a pipe or -")
        if path.exists() and not path.is_file():  # a pipe
            return [Stream(text, path.read_bytes())]
    return [path]


def _assumed(table: _Table, given: tuple[Column, ...]) -> str | None:
    """Describe columns taken by position while others are left over; None if there are none."""
    names, used = table.names, table.at
    known = [name for several in KNOWN_COLUMNS.values() for name in several]
    left = [name for i, name in enumerate(names) if i not in used]
    by_position = any(names[i].lower() not in known for i in used[:2]) or table.has_header is False
    if None not in given or not by_position:
        return None
    if not left:
        took = f"{table.file}: line 1 is taken for the names of columns, {names[used[0]]!r} and {names[used[1]]!r}"
        return took if table.has_header else None
    shown = ", ".join(map(repr, left[:8])) + (", ..." if len(left) > 8 else "")
    return f"{table.file}: links go from {names[used[0]]!r} to {names[used[1]]!r}; not used: {shown}"


def _table_of_text(file: File, source: Column, target: Column, weight: Column) -> _Table:
    layout = _look_at(file, source, target, weight)
    columns = _read_fast(layout) or _read_carefully(layout)
    if not len(columns[0]):
        raise _NoEdgesError(f"{file} has no edges: write one a line, source and target")

    def place(row: int) -> str:
        return f"{file} line {_line_of(layout, row)}"

    return _Table(file, layout.names, layout.at, columns, place, layout.has_header)


def _table_of_frame(frame: Any, file: File, columns: tuple[Column, ...], place: Place) -> _Table:
    source, target, weight = columns
    i, j, k = at = choose_columns(frame.columns, source, target, weight, str(file))
    sources, targets = (frame.to_series(end) for end in (i, j))
    for ids in (sources, targets):
        if ids.dtype.is_nested():
            raise InputError(
                f"{file}: the column {ids.name!r} holds lists or objects; ids are text or numbers"
            )
    weights = None if k is None else frame.to_series(k)
    if weights is not None and not weights.dtype.is_numeric():
        weights = weights.to_list()  # so that the error names the row
    return _Table(file, frame.columns, at, (sources, targets, weights), place)


def _table_of_parquet(file: File, *columns: Column) -> _Table:
    from apexrank.io.tables import read_table  # which loads polars

    if isinstance(file, Stream) or not str(file).lower().endswith((".parquet", ".pq")):
        raise InputError(f"{file} is a Parquet file: save it under a name that ends in .parquet")
    return _table_of_frame(read_table(file).frame, file, columns, lambda row: f"{file} row {row + 1}")


def _table_of_json_lines(file: File, *columns: Column) -> _Table:
    import polars as pl

    with reading(file):
        content = unpacked(file).removeprefix(BOM_UTF8)
    try:
        check_polars_threads("JSON lines are read")
        frame = pl.read_ndjson(content, infer_schema_length=None)
    except pl.exceptions.PolarsError as error:
        _refuse_broken_json(file)
        raise InputError(f"cannot read {file} as JSON lines: {one_line(str(error))}") from None
    if frame.is_empty():
        raise _NoEdgesError(f"{file} has no edges: write one JSON object a line, with source and target")

    def place(row: int) -> str:
        filled = (number for number, line in _lines(file) if line.strip())
        return f"{file} line {next(islice(filled, row, None))}"

    return _table_of_frame(frame, file, columns, place)


def _refuse_broken_json(file: File) -> None:
    """Raise InputError naming the first line that is not a JSON object."""
    for number, line in _lines(file):
        try:
            found = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise InputError(
                f'{file} line {number}: {line.strip()[:40]!r} is no JSON object such as {{"source": 0, "target": 1}}'
            )


_READERS: dict[str, Callable[..., _Table]] = {
    "text": _table_of_text,
    "jsonl": _table_of_json_lines,
    "parquet": _table_of_parquet,
}


def _refuse_lost_edge(table: _Table, edges: Edges) -> None:
    """Raise InputError where a first line was taken for names of columns although a vertex has one of them."""
    ends = [table.names[i] for i in table.at[:2]]
    if table.has_header and edges.names is not None and edges.names.dtype.kind not in "iu":
        found = [end for end in ends if (edges.names == end).any()]
        if found:
            raise InputError(
                f"{table.file} line 1 was taken for names of columns, but {found[0]!r} is also a vertex: "
                "begin the file with a line such as source,target"
            )


@dataclass(frozen=True)
class _Layout:
    """Layout of the lines of a text file; ``separator`` None is white space of any length."""

    path: File
    separator: str | None
    regular: str | None  # the one character between fields on all lines looked at
    comment: str | None
    has_header: bool
    names: list[str]
    first: list[str]  # fields of the first edge
    begins_blank: bool
    at: tuple[int, int, int | None]  # columns of source, target and weight


def _look_at(path: File, source: Column, target: Column, weight: Column) -> _Layout:
    lines: list[tuple[int, str]] = []
    comment, begins_blank = None, False
    for number, line in _lines(path):
        if not comment and not lines and line.startswith(("#", "%")):
            comment = line[0]
        if line.strip() and not (comment and line.startswith(comment)):
            lines.append((number, line))
        begins_blank |= not lines and not line.strip()
        if len(lines) >= _LOOKED_AT:
            break
    if not lines:
        raise _NoEdgesError(f"{path} has no edges: write one a line, source and target")
    number, line = lines[0]
    separator = _separator(line)
    fields = [fields_of(text, separator) for _, text in lines[:2]]
    if len(fields[0]) < 2:
        raise InputError(f"{path} line {number}: {line.strip()[:40]!r} is no edge; write source and target")
    named = any(isinstance(name, str) and not name.isdecimal() for name in (source, target, weight))
    has_header = named or _is_header(path, *fields)
    if has_header and len(lines) == 1:
        raise _NoEdgesError(f"{path} has column names but no edges: write one a line")
    names = fields[0] if has_header else [f"column {i}" for i in range(len(fields[0]))]
    regular, first = _regular([text for _, text in lines], separator), fields[int(has_header)]
    at = choose_columns(names, source, target, weight, str(path))
    return _Layout(path, separator, regular, comment, has_header, names, first, begins_blank, at)


def _is_header(path: File, first: list[str], second: list[str] | None = None) -> bool:
    lower = {field.lower() for field in first}
    if all(lower.intersection(KNOWN_COLUMNS[role]) for role in ("source", "target")):
        return True
    if _are_whole(first[:2]) or any(map(_NUMBER.fullmatch, first[2:])):
        return False
    has_suffix = re.search(r"\.[ct]sv(\.gz)?$", str(path).lower()) is not None
    return has_suffix or (second is not None and _are_whole(second[:2]))


def _separator(line: str) -> str | None:
    if "\t" in line:
        # a tab may stand beside blanks between numbers, but text may have blanks in it
        return None if all(map(_NUMBER.fullmatch, line.split())) else "\t"
    return max(";,", key=line.count) if "," in line or ";" in line else None


def _regular(lines: list[str], separator: str | None) -> str | None:
    if separator is not None:
        return separator
    for character in "\t ":
        if all(line.split(character) == line.split() for line in lines):
            return character
    return None


def _are_whole(fields: list[str]) -> bool:
    return len(fields) >= 2 and all(map(_is_whole, fields))


def _is_whole(field: str) -> bool:
    return bool(_WHOLE.fullmatch(field)) and not _PADDED.match(field)


def fields_of(line: str, separator: str | None) -> list[str]:
    """Fields of a line without white space around them; ``separator`` None is white space of any length."""
    if separator is None:
        return line.split()
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=separator))]
    except csv.Error:  # a line feed inside the line, or a field that is too long: no field of an edge is so
        return [field.strip() for field in line.split(separator)]


def _lines(path: File) -> Iterator[tuple[int, str]]:
    """Numbered lines without their ends, of plain or gzip text."""
    for number, line in numbered_lines(path, whole=False):
        try:
            yield number, line.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise not_utf8(path, number) from None


def _read_fast(layout: _Layout) -> tuple[Any, Any, Any] | None:
    """Columns of sources, targets and weights; None when any line is out of the ordinary."""
    import polars as pl

    at, columns = layout.at, [f"field {i}" for i in range(len(layout.names))]
    # the fast reader would take a blank line before the header for the header
    odd = len(layout.first) != len(columns) or (layout.has_header and layout.begins_blank)
    if odd or not has_polars_threads():
        return None
    is_whole = _are_whole([layout.first[i] for i in at[:2]])
    try:
        content = _to_scan(layout)
        # the reader would take 007 for 7: where some field may be such a number, ids are read as text and compared
        as_text = not is_whole or _has_padded_numbers(content)
    except (OSError, *DAMAGED):
        return None
    schema: dict[str, Any] = dict.fromkeys(columns, pl.String)
    schema |= {columns[i]: pl.String if as_text else pl.Int64 for i in at[:2]}
    ids = [pl.col(columns[i]).str.strip_chars() if as_text else pl.col(columns[i]) for i in at[:2]]
    chosen = dict(zip(("source", "target"), ids, strict=True))
    if at[2] is not None:
        schema[columns[at[2]]] = pl.Float64
        chosen["weight"] = pl.col(columns[at[2]])
    empty = pl.all_horizontal(pl.all().is_null())
    try:
        frame = (
            pl.scan_csv(
                content,
                separator=layout.regular or " ",
                has_header=False,
                skip_rows=int(layout.has_header),
                comment_prefix=layout.comment,
                quote_char=None if layout.separator is None else '"',
                schema=schema,
                glob=False,
            )
            .select(**chosen, is_short=pl.col(columns[-1]).is_null(), is_empty=empty)
            .collect()
        )
    except (pl.exceptions.PolarsError, OSError, *DAMAGED):
        return None
    if frame["is_empty"].any():
        frame = frame.filter(~pl.col("is_empty"))
    # the reader fills a short line with missing values and says nothing
    if frame["is_short"].any() or any(frame[name].null_count() for name in chosen):
        return None
    if is_whole and as_text:
        if not all(frame[end].str.contains(_WHOLE_TEXT).all() for end in ("source", "target")):
            return None
        frame = frame.with_columns(pl.col("source", "target").str.to_integer())
    return frame["source"], frame["target"], frame["weight"] if "weight" in chosen else None


def _has_padded_numbers(content: Path | bytes) -> bool:
    """Whether some field may be a number such as 007."""
    if isinstance(content, bytes):
        return has_padded_number(np.frombuffer(content, np.uint8))
    return has_padded_number(np.memmap(content, np.uint8, mode="r"))


def _to_scan(layout: _Layout) -> Path | bytes:
    """The file for the fast reader, or its text where that must be unpacked or has irregular white space."""
    if isinstance(layout.path, Path) and not is_gzip(layout.path) and layout.regular:
        return layout.path
    content = unpacked(layout.path).removeprefix(BOM_UTF8)
    return content if layout.regular else single_blanks(content)


def _read_carefully(layout: _Layout) -> tuple[Any, Any, Any]:
    """The same columns line by line: slow, but it names the first line that is broken."""
    (i, j, k), width = layout.at, len(layout.names)
    sources: list[str] = []
    targets: list[str] = []
    weights: list[float] = []
    for line, fields in _records(layout):
        if len(fields) != width:
            like = "the header" if layout.has_header else "the first edge"
            has = f"{len(fields)} field{'s' * (len(fields) != 1)}"
            raise InputError(f"{layout.path} line {line}: the line has {has}, {like} {width}; correct it")
        if not fields[i] or not fields[j]:
            role = "target" if fields[i] else "source"
            raise InputError(
                f"{layout.path} line {line}: the {role} of the edge is missing; fill it in or take the line out"
            )
        sources.append(fields[i])
        targets.append(fields[j])
        if k is not None:
            if not _NUMBER.fullmatch(fields[k]):
                raise InputError(
                    f"{layout.path} line {line}: the weight {fields[k]!r} is not a number; correct it"
                )
            weights.append(float(fields[k]))
    ids = (sources, targets)
    if sources and _are_whole([sources[0], targets[0]]):
        ids = _whole_numbers(layout, *ids)
    return *ids, None if k is None else weights


def _whole_numbers(layout: _Layout, sources: list[str], targets: list[str]) -> Any:
    odd = [row for row, ids in enumerate(zip(sources, targets, strict=True)) if not _are_whole(list(ids))]
    if 2 * len(odd) > len(sources):
        return sources, targets
    if odd:
        text = next(ids[odd[0]] for ids in (sources, targets) if not _is_whole(ids[odd[0]]))
        raise InputError(
            f"{layout.path} line {_line_of(layout, odd[0])}: {text!r} is not a whole number as the ids before it; "
            "correct it, or give a data frame with ids of text"
        )
    return tuple(np.fromiter(map(int, ids), np.int64, len(ids)) for ids in (sources, targets))


def _records(layout: _Layout) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each edge; lines of empty fields are left out."""
    header = layout.has_header
    for number, line in _lines(layout.path):
        if layout.comment and line.startswith(layout.comment):
            continue
        fields = fields_of(line, layout.separator)
        if not any(fields):
            continue
        if not header:
            yield number, fields
        header = False


def _line_of(layout: _Layout, row: int) -> int:
    return next(line for index, (line, _) in enumerate(_records(layout)) if index == row)
