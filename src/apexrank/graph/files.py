"""Readers of edge tables: CSV, tab- or blank-separated lists, JSON lines and Parquet, in one file or several parts.

Text files are read by polars into typed columns; only if that fails, or a line is asked for, are they read as text by
`apexrank.io.delimited`, which names the first broken line.
"""

from __future__ import annotations

import glob
import json
import re
import shutil
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from apexrank.errors import InputError, one_line, quoted
from apexrank.files import (
    DAMAGED,
    File,
    Stream,
    bounded,
    check_readable,
    is_gzip,
    not_utf8,
    numbered_blocks,
    opened,
    reading,
    unpacked,
)
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
from apexrank.graph.formats import FORMATS, read_foreign, recognise
from apexrank.kernels.edges import has_padded_number
from apexrank.validation import check_choice, check_polars_threads

if TYPE_CHECKING:
    from apexrank.io.delimited import Rows

_WHOLE = r"[+-]?(?:0|[1-9][0-9]{0,17})"
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|nan|inf)", re.IGNORECASE)
_LOOKED_AT = 100  # lines that determine the layout of a file
_LONGEST_RECORD = 1 << 16  # characters of a record with line feeds inside a field


Columns = tuple[Column, Column, Column]  # source, target and weight


@dataclass(frozen=True)
class EdgeTable:
    """Source, target and weight columns of a file or a part of one, with the locations of its rows."""

    file: File
    names: list[str]
    at: tuple[int, int, int | None]
    columns: tuple[Any, Any, Any]
    place: Place
    has_header: bool | None = None  # None if the format itself names the columns
    dubious: str | None = None  # a comment that looks like an edge


class _NoEdgesError(InputError):
    """Raised for a file without edges, unless it is one of several parts."""


class MostlyTextError(InputError):
    """Raised if most ids of a file read in chunks are text, unlike its first edge; it must be read again as text."""

    def __init__(self, file: File) -> None:
        super().__init__(f"{file}: most ids are text, but not those of the first edge")
        self.file = file


def edges_of_file(
    path: str | Path,
    source: Column = None,
    target: Column = None,
    weight: Column = None,
    format: str | None = None,
) -> Edges:
    r"""Read edges from a file of any format in :data:`apexrank.graph.formats.FORMATS`, or a table in several parts.

    Fields of a text file are separated by tabs, semicolons, commas or white space, as determined by the first edge. If
    the file begins with ``#`` or ``%``, lines that begin with it are comments. The first other line is a header

    - if ``source``, ``target`` or ``weight`` is a name, or it contains typical names of a source and a target column,
    - or if its first two fields are not both whole numbers, and either those of the next line are or the file name ends
      in ``.csv`` or ``.tsv``;

    otherwise it is an edge. Ids are whole numbers if both ids of the first edge are (007 is text); a later id that is
    not is then an error, unless most are not.

    Parameters
    ----------
    path : str or Path
        A file (text also gzip), a folder of parts, a pattern such as ``parts/*.csv``, or ``-`` for standard input.
        Parts are tables (text, JSON lines, Parquet) with the same columns; empty parts, and files of a folder whose
        names begin with ``.`` or ``_``, are skipped.
    source, target, weight : str or int, optional
        Names or positions (from 0, also as text) of the columns; by default source or src or from, target or dst or
        to, weight or rating or value; without such names the first two columns and no weights. ``weight=False``: no
        weights.
    format : str, optional
        One of :data:`apexrank.graph.formats.FORMATS`; by default detected from the content and the name of the file.

    Raises
    ------
    InputError
        With file and line: for a line with too few or too many fields, a missing id, or text instead of a number.

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
    files = files_of_edges(path)
    kind = format or recognise(files[0])
    if kind not in _READERS and len(files) == 1:
        return replace(read_foreign(files[0], kind, source, target, weight), origin=str(path))
    tables = [*edge_tables(files, source, target, weight, format)]
    edges = _edges_of_tables(tables)
    return replace(edges, origin=str(path), assumed=assumed(tables[0], (source, target, weight)))


def edge_tables(
    files: Sequence[File],
    source: Column = None,
    target: Column = None,
    weight: Column = None,
    format: str | None = None,
    size: int | None = None,
    as_text: Collection[str] = (),
) -> Iterator[EdgeTable]:
    """Read edge tables from files, each at once or in chunks of about ``size`` bytes of text.

    Ids of the files in ``as_text`` are read as text, regardless of the first edge.

    Raises
    ------
    InputError
        As in `edges_of_file`; `MostlyTextError` for a file that must be read as text.
    """
    first, empty = None, None
    for file in files:
        kind = format or recognise(file)
        if kind not in _READERS:
            raise InputError(f"{file} is of the format {kind}, which has no parts: give one file")
        read, unit = _READERS[kind]
        found = False
        try:
            for table in read(file, (source, target, weight), size, str(file) in as_text):
                first = first or table
                if (table.names, table.at) != (first.names, first.at):
                    raise InputError(
                        f"{table.file} has the columns {quoted(table.names)}, but {first.file} has "
                        f"{quoted(first.names)}: all parts need the same columns, by name and order"
                    )
                found = True
                yield table
            if not found:
                raise _NoEdgesError(f"{file} has no edges: write one {unit}, source and target")
        except _NoEdgesError as error:
            empty = empty or error
    if first is None:
        raise empty or InputError("there are no files of edges: give at least one")


def _edges_of_tables(tables: list[EdgeTable]) -> Edges:
    """Concatenate the parts of an edge table."""
    starts = np.cumsum([0, *(len(table.columns[0]) for table in tables)])

    def place(row: int) -> str:
        part = int(np.searchsorted(starts, row, side="right")) - 1
        return tables[part].place(row - int(starts[part]))

    sources, targets, weights = tables[0].columns
    if len(tables) > 1:
        sources, targets = _joined_ids(tables, 0, "source"), _joined_ids(tables, 1, "target")
        if weights is not None:
            parts = ((table.columns[2], len(table.columns[2]), table.place) for table in tables)
            weights = np.concatenate([as_weights(*part) for part in parts])
    edges = edges_of_arrays(sources, targets, weights, place)
    names = edges.names
    if names is not None and names.dtype.kind not in "iu":
        for table in tables:
            refuse_lost_edge(table, lambda end: end in names)
    return edges


def _joined_ids(tables: list[EdgeTable], k: int, role: str) -> Any:
    """Concatenate the ids of all parts, which must be all whole numbers or all text."""
    import polars as pl

    parts = [plain_ids(table.columns[k], role, table.place) for table in tables]
    for table, part in zip(tables, parts, strict=True):
        refuse_other_ids(tables[0].file, type(parts[0]), table.file, part)
    if isinstance(parts[0], list):
        return [name for part in parts for name in part]
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pl.concat(parts)


def refuse_other_ids(first: File, first_kind: type, file: File, ids: Any) -> None:
    """Raise InputError if one table has whole numbers as ids and another has text."""
    if type(ids) is not first_kind:
        kinds = ["whole numbers" if kind is np.ndarray else "text" for kind in (first_kind, type(ids))]
        raise InputError(f"ids are {kinds[0]} in {first}, but {kinds[1]} in {file}: write them alike")


def files_of_edges(path: str | Path, spool: Path | None = None) -> list[Path | Stream]:
    """List the files of a path: a file, a folder, a pattern, or standard input (``-``).

    Streams that can be read only once are read into memory, or written to the file ``spool``.
    """
    path, text = Path(path), str(path)
    if text == "-":
        return [_stream("standard input", sys.stdin.buffer, spool)]
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
        if path.is_char_device() and path.resolve() != Path("/dev/stdin").resolve():  # may be endless
            raise InputError(f"{text!r} is a device: give a file, a pipe or -")
        if path.exists() and not path.is_file():  # a pipe
            with path.open("rb") as pipe:
                return [_stream(text, pipe, spool)]
    return [path]


def _stream(name: str, content: Any, spool: Path | None) -> Stream:
    if spool is None:
        return Stream(name, bounded(content, name).read())
    with spool.open("wb") as file:
        shutil.copyfileobj(content, file, 1 << 20)
    return Stream(name, spool)


def assumed(table: EdgeTable, given: Columns) -> str | None:
    """Describe columns chosen by position from several, and comments that look like edges; None if there are none."""
    choose = "`source=`, `target=` and `weight=` choose"
    if table.dubious is not None:
        mark, shown = table.dubious[0], table.dubious.strip()[:40]
        taken = f"lines that begin with {mark!r} are read as comments, among them {shown!r}"
        return f"{table.file}: {taken} ({choose})"
    names, used = table.names, table.at
    known = [name for several in KNOWN_COLUMNS.values() for name in several]
    left = [name for i, name in enumerate(names) if i not in used]
    by_position = any(names[i].lower() not in known for i in used[:2]) or table.has_header is False
    if None not in given[:2] or not by_position:
        return None
    if not left:
        took = f"line 1 is read as column names, {names[used[0]]!r} and {names[used[1]]!r}"
        return f"{table.file}: {took} ({choose})" if table.has_header else None
    if table.has_header is False and used[2] is None:
        choose += f", such as `weight={names.index(left[0])}`"
    ends = f"{names[used[0]]!r} to {names[used[1]]!r}"
    return f"{table.file}: links go from {ends}; not used: {quoted(left)} ({choose})"


def _tables_of_text(file: File, columns: Columns, size: int | None, as_text: bool) -> Iterator[EdgeTable]:
    check_polars_threads("edges are read")
    layout = _look_at(file, *columns)
    if as_text:
        layout = replace(layout, is_whole=False)
    for part in _parts(layout, size):
        found = _read_fast(part) or _read_carefully(part)
        if len(found[0]):
            place = partial(_text_place, part)
            about = layout.has_header, layout.dubious
            yield EdgeTable(file, layout.names, layout.at, found, place, *about)


def _text_place(layout: _Layout, row: int) -> str:
    return f"{layout.file} line {_rows(layout).lines[row]}"


def _chunks(file: File, size: int, quoted: bool = False) -> Iterator[tuple[int, bytes]]:
    """Iterate over chunks of complete lines, about ``size`` bytes each, with the number of lines before each."""
    before = 0
    with reading(file), opened(file, streamed=True, checked=False) as content:
        while chunk := content.read(size):
            rest = content.readline()
            open_quotes = quoted and chunk.count(b'"') % 2
            # a quoted field may contain line feeds
            while open_quotes != quoted * rest.count(b'"') % 2 and len(rest) < _LONGEST_RECORD:
                if not (line := content.readline()):
                    break
                rest += line
            chunk += rest
            yield before, chunk
            before += chunk.count(b"\n")


def _table_of_frame(
    frame: Any, file: File, names: list[str], at: tuple[int, int, int | None], place: Place
) -> EdgeTable:
    sources, targets = (frame[names[i]] for i in at[:2])
    weights = None if at[2] is None else frame[names[at[2]]]
    for ids in (sources, targets):
        if ids.dtype.is_nested():
            raise InputError(f"{file}: the column {ids.name!r} holds lists or objects; use text or numbers")
    if weights is not None and not weights.dtype.is_numeric():
        weights = weights.to_list()  # so that the error can name the row
    return EdgeTable(file, names, at, (sources, targets, weights), place)


def _tables_of_parquet(file: File, columns: Columns, size: int | None, as_text: bool) -> Iterator[EdgeTable]:
    import polars as pl

    from apexrank.io.read import read_table, reading_parquet

    if isinstance(file, Stream) or not str(file).lower().endswith((".parquet", ".pq")):
        raise InputError(f"{file} is a Parquet file: save it under a name that ends in .parquet")
    if size is None:
        frame = read_table(file).frame
        at = choose_columns(frame.columns, *columns, str(file))
        yield _table_of_frame(frame, file, frame.columns, at, partial(_parquet_place, file, 0))
        return
    check_readable(Path(file))
    with reading_parquet(file):
        lazy, step = pl.scan_parquet(file, glob=False), max(1, size // 16)  # an edge is about 16 characters
        n, names = lazy.select(pl.len()).collect().item(), lazy.collect_schema().names()
    at = choose_columns(names, *columns, str(file))
    needed = [names[i] for i in at if i is not None]
    for first in range(0, n, step):
        with reading_parquet(file):
            frame = lazy.slice(first, step).select(needed).collect()
        yield _table_of_frame(frame, file, names, at, partial(_parquet_place, file, first))


def _parquet_place(file: File, first: int, row: int) -> str:
    return f"{file} row {first + row + 1}"


def _tables_of_json_lines(
    file: File, columns: Columns, size: int | None, as_text: bool
) -> Iterator[EdgeTable]:
    import polars as pl

    check_polars_threads("JSON lines are read")
    with reading(file):
        chunks = [(0, unpacked(file, checked=False))] if size is None else _chunks(file, size)
        first: EdgeTable | None = None
        for before, content in chunks:
            part = Stream(str(file), content.removeprefix(BOM_UTF8))
            try:
                frame = pl.read_ndjson(part.content, infer_schema_length=None)
            except pl.exceptions.PolarsError as error:
                _refuse_broken_json(part, before)
                raise InputError(f"cannot read {file} as JSON lines: {one_line(str(error))}") from None
            if frame.is_empty():
                continue
            # objects may have their keys in any order, and polars uses the order of any of them
            keys = [*json.loads(next(line for _, line in _lines(part) if line.strip()))]
            names = [*keys, *(name for name in frame.columns if name not in keys)]
            at = choose_columns(names, *columns, str(file))
            table = _table_of_frame(frame, file, names, at, partial(_json_place, part, before))
            if first is None:
                first = table
                columns = (table.names[at[0]], table.names[at[1]], columns[2])
            elif (table.at[2] is None) != (first.at[2] is None):
                raise InputError(
                    f"{table.place(0)}: weights begin or end here; give every edge a weight, or none"
                )
            yield replace(table, names=first.names, at=first.at)


def _json_place(part: Stream, before: int, row: int) -> str:
    filled = (number for number, line in _lines(part) if line.strip())
    return f"{part} line {before + next(islice(filled, row, None))}"


def _refuse_broken_json(file: File, before: int) -> None:
    """Raise InputError for the first line that is not a JSON object; ``before`` lines precede these."""
    for number, line in _lines(file):
        try:
            found = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            shown = repr(line.strip()[:40])
            raise InputError(
                f'{file} line {before + number}: {shown} is not a JSON object such as {{"source": 0, "target": 1}}'
            )


_READERS: dict[str, tuple[Callable[..., Iterator[EdgeTable]], str]] = {
    "text": (_tables_of_text, "a line"),
    "jsonl": (_tables_of_json_lines, "JSON object a line"),
    "parquet": (_tables_of_parquet, "a row"),
}
TABLES = tuple(_READERS)


def refuse_lost_edge(table: EdgeTable, is_vertex: Callable[[str], bool]) -> None:
    """Raise InputError if a first line was read as a header although one of its fields is a vertex."""
    ends = [table.names[i] for i in table.at[:2]] if table.has_header else []
    for end in filter(is_vertex, ends):
        raise InputError(
            f"{table.file} line 1 was read as column names, but {end!r} is also a vertex: "
            "start the file with a header such as source,target"
        )


@dataclass(frozen=True)
class _Layout:
    """Layout of the lines of a text file; ``separator`` None is white space of any length."""

    file: File
    separator: str | None
    regular: str | None  # the single character between fields on all inspected lines
    comment: str | None
    has_header: bool
    names: list[str]
    at: tuple[int, int, int | None]  # positions of the source, target and weight columns
    is_whole: bool  # whether ids are whole numbers
    above: int  # lines above the first edge
    before: int = 0  # lines of the file before this part
    parts: Callable[[], Iterator[_Layout]] | None = None  # all parts of the file, if this is one of them
    dubious: str | None = None  # a comment that looks like an edge


def _look_at(file: File, source: Column, target: Column, weight: Column) -> _Layout:
    lines: list[tuple[int, str]] = []
    comment, comments = None, list[str]()
    for number, line in _lines(file):
        if not comment and not lines and line.startswith(("#", "%")):
            comment = line[0]
        if line.strip() and not (comment and line.startswith(comment)):
            lines.append((number, line))
        elif line[1:2].strip():
            comments.append(line)
        if len(lines) >= _LOOKED_AT:
            break
    if not lines:
        raise _NoEdgesError(f"{file} has no edges: write source and target of one edge per line")
    number, line = lines[0]
    separator = _separator(line)
    top, *below = (_fields(text, separator) for _, text in lines[:2])
    if len(top) < 2:
        raise InputError(
            f"{file} line {number}: {line.strip()[:40]!r} is not an edge; write source and target"
        )
    named = any(isinstance(name, str) and not name.isdecimal() for name in (source, target, weight))
    has_header = named or _is_header(file, top, *below)
    if has_header and len(lines) == 1:
        raise _NoEdgesError(f"{file} has column names but no edges: write one edge per line")
    names, first = (top, below[0]) if has_header else ([f"column {i}" for i in range(len(top))], top)
    at = choose_columns(names, source, target, weight, str(file))
    if has_header and names[at[0]] == names[at[1]]:
        raise InputError(f"{file} line {number}: two columns are named {names[at[0]]!r}; rename one")
    regular, above = _regular([text for _, text in lines], separator), lines[has_header][0] - 1
    is_whole = len(first) == len(names) and _are_whole([first[i] for i in at[:2]])
    dubious = next((text for text in comments if len(_fields(text, separator)) == len(top)), None)
    layout = file, separator, regular, comment, has_header, names, at, is_whole, above
    return _Layout(*layout, dubious=dubious)


def _parts(layout: _Layout, size: int | None) -> Iterator[_Layout]:
    """Iterate over the layout of a file, or those of its chunks."""
    if size is None:
        yield layout
        return
    parts = partial(_parts, replace(layout, is_whole=False), size)
    for before, chunk in _chunks(layout.file, size, layout.separator is not None):
        above = max(0, layout.above - before)
        if above < chunk.count(b"\n") + (not chunk.endswith(b"\n")):
            part = Stream(str(layout.file), chunk)
            yield replace(layout, file=part, above=above, before=before, parts=parts)


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
        # numbers may be separated by tabs and blanks, but text may contain blanks
        return None if all(map(_NUMBER.fullmatch, line.split())) else "\t"
    points = re.sub(r"(?<=\d),(?=\d)", ".", line).split()
    if len(points) > 2 and all(map(_NUMBER.fullmatch, points)):
        return None  # numbers with decimal commas
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
    return re.fullmatch(_WHOLE, field) is not None


def _fields(line: str, separator: str | None) -> list[str]:
    from apexrank.io.delimited import fields

    found = line.split() if separator is None else fields(line, separator)
    return [field.strip() for field in (line.split(separator) if found is None else found)]


def _lines(file: File) -> Iterator[tuple[int, str]]:
    """Iterate over numbered lines of plain or gzip text, without line ends."""
    # the format of a stream was checked for the whole stream
    for first, block in numbered_blocks(file, whole=False, checked=not isinstance(file, Stream)):
        for number, line in enumerate(block.removesuffix(b"\n").split(b"\n"), first):
            try:
                yield number, line.decode().rstrip("\r")
            except UnicodeDecodeError:
                raise not_utf8(file, number) from None


def _read_fast(layout: _Layout) -> tuple[Any, Any, Any] | None:
    """Read the source, target and weight columns fast; return None if any line is irregular."""
    import polars as pl

    at, columns = layout.at, [f"field {i}" for i in range(len(layout.names))]
    try:
        content = _to_scan(layout)
        # the reader would parse 007 as 7: if any field may be such a number, ids are read as text and compared
        as_text = not layout.is_whole or _has_padded_numbers(content)
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
                skip_lines=layout.above,
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
    # the reader silently pads a short line with missing values
    if frame["is_short"].any() or any(frame[name].null_count() for name in chosen):
        return None
    if layout.is_whole and as_text:
        if not all(frame[end].str.contains(f"^{_WHOLE}$").all() for end in ("source", "target")):
            return None
        frame = frame.with_columns(pl.col("source", "target").str.to_integer())
    return frame["source"], frame["target"], frame["weight"] if "weight" in chosen else None


def _has_padded_numbers(content: Path | bytes) -> bool:
    """Return whether any field may be a number such as 007."""
    if isinstance(content, bytes):
        return has_padded_number(np.frombuffer(content, np.uint8))
    return has_padded_number(np.memmap(content, np.uint8, mode="r"))


def _to_scan(layout: _Layout) -> Path | bytes:
    """Return the file for the fast reader, or its text if it must be decompressed or has irregular white space."""
    from apexrank.io.delimited import single_blanks

    if isinstance(layout.file, Path) and not is_gzip(layout.file) and layout.regular:
        return layout.file
    content = unpacked(layout.file).removeprefix(BOM_UTF8)
    return content if layout.regular else single_blanks(content)


def _rows(layout: _Layout) -> Rows:
    """Read all columns as text, with the line of every edge; the first line of another width raises an error."""
    import polars as pl

    from apexrank.io.delimited import Rows, read_rows, single_blanks

    with reading(layout.file):
        content = unpacked(layout.file, checked=False).removeprefix(BOM_UTF8)
    comment = b"" if layout.comment is None else layout.comment.encode() + rb"[^\n]*"
    content = re.sub(rb"(?m)^(?:%s|[ \t\r]+)$" % comment, b"", content.split(b"\n", layout.above)[-1])
    if layout.separator is None:
        content = single_blanks(content)
    rows = read_rows(
        layout.file,
        [content],
        [str(i) for i in range(len(layout.names))],
        layout.separator or " ",
        layout.before + layout.above + 1,
        quotes=layout.separator is not None,
        like="the header" if layout.has_header else "the first edge",
    )
    frame = rows.frame.select(pl.all().str.strip_chars().replace("", None))
    kept = ~frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    return Rows(frame.filter(kept), np.asarray(rows.lines)[kept.to_numpy()], rows.notes, rows.is_quoted)


def _read_carefully(layout: _Layout) -> tuple[Any, Any, Any]:
    """Read the same columns as text, to report the first broken line."""
    import polars as pl

    rows = _rows(layout)
    columns: list[Any] = [None if i is None else rows.frame.to_series(i) for i in layout.at]
    sources, targets, weights = columns
    numbers = None if weights is None else weights.cast(pl.Float64, strict=False)
    is_wrong = sources.is_null() | targets.is_null()
    if numbers is not None:
        is_wrong |= numbers.is_null()
    for row in is_wrong.arg_true().head(1):
        fault = _fault(*(None if column is None else column[row] for column in columns))
        raise InputError(f"{layout.file} line {rows.lines[row]}: {fault}")
    if layout.is_whole:
        sources, targets = _whole_numbers(layout, rows, sources, targets)
    return sources, targets, numbers


def _fault(source: str | None, target: str | None, weight: str | None) -> str:
    """Describe the error in an edge and its fix."""
    if source is None or target is None:
        role = "target" if source else "source"
        return f"the {role} of the edge is missing; fill it in or drop the line"
    if weight is None:
        return "the weight of the edge is missing; fill it in or drop the line"
    comma = _NUMBER.fullmatch(weight.replace(",", ".", 1))
    return f"the weight {weight!r} is not a number; {'write a decimal point' if comma else 'correct it'}"


def _whole_numbers(layout: _Layout, rows: Rows, *ends: Any) -> Any:
    """Convert ids to whole numbers, unless most of a file are text."""
    odd = [~ids.str.contains(f"^{_WHOLE}$") for ids in ends]
    is_odd = odd[0] | odd[1]
    if layout.parts is None and 2 * is_odd.sum() > len(is_odd):
        return ends
    for row in is_odd.arg_true().head(1):
        if layout.parts is not None and _are_mostly_text(layout.parts()):
            raise MostlyTextError(layout.file)
        text = ends[0 if odd[0][row] else 1][row]
        raise InputError(
            f"{layout.file} line {rows.lines[row]}: {text!r} is not a whole number as the ids before it; "
            "correct it, or give a data frame with ids of text"
        )
    return [ids.str.strip_chars_start("+").str.to_integer().to_numpy() for ids in ends]


def _are_mostly_text(parts: Iterator[_Layout]) -> bool:
    """Return whether most edges of a file have an id that is not a whole number."""
    balance = 0
    for part in parts:
        sources, targets, _ = _read_fast(part) or _read_carefully(part)
        is_whole = sources.str.contains(f"^{_WHOLE}$") & targets.str.contains(f"^{_WHOLE}$")
        balance += len(is_whole) - 2 * int(is_whole.sum())
    return balance > 0
