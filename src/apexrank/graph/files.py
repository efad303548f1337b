"""Files of edges: CSV, tab- or blank-separated lists, Parquet.

Text files are read by a fast reader; only where it stumbles are the lines gone through one by one, to name the first
that is broken.
"""

from __future__ import annotations

import csv
import mmap
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.edges import (
    KNOWN_COLUMNS,
    Column,
    Edges,
    choose_columns,
    edges_of_arrays,
    edges_of_frame,
)
from apexrank.textfile import DAMAGED, is_gzip, not_utf8, numbered_lines, single_blanks, unpacked
from apexrank.validation import has_polars_threads

_WHOLE = re.compile(r"[+-]?\d{1,18}")
_PADDED = re.compile(r"[+-]?0\d")
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|nan|inf)", re.IGNORECASE)
_PADDED_FIELD = re.compile(rb"(?:\A|[\s,;\"])[+-]?0\d")
_LOOKED_AT = 100  # lines that tell how a file is laid out


def edges_of_file(
    path: str | Path, source: Column = None, target: Column = None, weight: Column = None
) -> Edges:
    r"""Read a Parquet file, or a text file of one edge a line, plain or gzip.

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
        File to read; Parquet by its suffix ``.parquet`` or ``.pq``.
    source, target, weight : str or int, optional
        Names or positions (from 0, also as text) of the columns; by default source or src or from, target or dst or
        to, weight or rating or value; for want of such names the first two columns and no weights.
        ``weight=False``: no weights.

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
    path = Path(path)
    if path.exists() and not path.is_dir() and not path.is_file():
        raise InputError(
            f"cannot read {str(path)!r}: a file of edges is read twice; save the stream to a file first"
        )
    if path.name.lower().endswith((".parquet", ".pq")):
        from apexrank.io.tables import read_table  # which loads polars

        return edges_of_frame(read_table(path).frame, source, target, weight, str(path))
    layout = _look_at(path, source, target, weight)
    columns = _read_fast(layout) or _read_carefully(layout)
    if not len(columns[0]):
        raise InputError(f"{path} has no edges: write one a line, source and target")
    edges = edges_of_arrays(*columns, lambda row: f"{path} line {_line_of(layout, row)}")
    _refuse_lost_edge(layout, edges)
    return edges


def guessed_columns(path: str | Path, source: Column, target: Column, weight: Column) -> str | None:
    """Describe the columns of a text file taken by position while others are left over; None if there are none."""
    path = Path(path)
    if path.name.lower().endswith((".parquet", ".pq")):
        return None
    layout = _look_at(path, source, target, weight)
    names, used = layout.names, layout.at
    known = [name for several in KNOWN_COLUMNS.values() for name in several]
    left = [name for i, name in enumerate(names) if i not in used]
    by_position = any(names[i].lower() not in known for i in used[:2]) or not layout.has_header
    if not left or None not in (source, target, weight) or not by_position:
        return None
    shown = ", ".join(map(repr, left[:8])) + (", ..." if len(left) > 8 else "")
    return f"links go from {names[used[0]]!r} to {names[used[1]]!r}; not used: {shown}"


def _refuse_lost_edge(layout: _Layout, edges: Edges) -> None:
    """Raise InputError where a first line was taken for names of columns although a vertex has one of them."""
    ends = [layout.names[i] for i in layout.at[:2]]
    if layout.has_header and edges.names is not None and edges.names.dtype.kind not in "iu":
        found = [end for end in ends if (edges.names == end).any()]
        if found:
            raise InputError(
                f"{layout.path} line 1 was taken for names of columns, but {found[0]!r} is also a vertex: "
                "begin the file with a line such as source,target"
            )


@dataclass(frozen=True)
class _Layout:
    """Layout of the lines of a text file; ``separator`` None is white space of any length."""

    path: Path
    separator: str | None
    regular: str | None  # the one character between fields on all lines looked at
    comment: str | None
    has_header: bool
    names: list[str]
    first: list[str]  # fields of the first edge
    begins_blank: bool
    at: tuple[int, int, int | None]  # columns of source, target and weight


def _look_at(path: Path, source: Column, target: Column, weight: Column) -> _Layout:
    lines: list[tuple[int, str]] = []
    comment, begins_blank = None, False
    for number, line in _lines(path):
        if not comment and not lines and line.startswith(("#", "%")):
            comment = line[0]
            if line.startswith("%%MatrixMarket"):
                raise InputError(
                    f"{path} is a Matrix Market file: read it with scipy.io.mmread, give the matrix"
                )
        if line.strip() and not (comment and line.startswith(comment)):
            lines.append((number, line))
        begins_blank |= not lines and not line.strip()
        if len(lines) >= _LOOKED_AT:
            break
    if not lines:
        raise InputError(f"{path} has no edges: write one a line, source and target")
    number, line = lines[0]
    separator = _separator(line)
    fields = [_fields(text, separator) for _, text in lines[:2]]
    if len(fields[0]) < 2:
        raise InputError(f"{path} line {number}: {line.strip()[:40]!r} is no edge; write source and target")
    named = any(isinstance(name, str) and not name.isdecimal() for name in (source, target, weight))
    has_header = named or _is_header(path, *fields)
    if has_header and len(lines) == 1:
        raise InputError(f"{path} has column names but no edges: write one a line")
    names = fields[0] if has_header else [f"column {i}" for i in range(len(fields[0]))]
    regular, first = _regular([text for _, text in lines], separator), fields[int(has_header)]
    at = choose_columns(names, source, target, weight, str(path))
    return _Layout(path, separator, regular, comment, has_header, names, first, begins_blank, at)


def _is_header(path: Path, first: list[str], second: list[str] | None = None) -> bool:
    lower = {field.lower() for field in first}
    if all(lower.intersection(KNOWN_COLUMNS[role]) for role in ("source", "target")):
        return True
    if _are_whole(first[:2]):
        return False
    has_suffix = re.search(r"\.[ct]sv(\.gz)?$", path.name.lower()) is not None
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


def _fields(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=separator))]
    except csv.Error:  # a line feed inside the line, or a field that is too long: no field of an edge is so
        return [field.strip() for field in line.split(separator)]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
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
    schema: dict[str, Any] = dict.fromkeys(columns, pl.String)
    schema |= {columns[i]: pl.Int64 if is_whole else pl.String for i in at[:2]}
    ids = [pl.col(columns[i]) if is_whole else pl.col(columns[i]).str.strip_chars() for i in at[:2]]
    chosen = dict(zip(("source", "target"), ids, strict=True))
    if at[2] is not None:
        schema[columns[at[2]]] = pl.Float64
        chosen["weight"] = pl.col(columns[at[2]])
    empty = pl.all_horizontal(pl.all().is_null())
    try:
        content = _to_scan(layout)
        if is_whole and _has_padded_numbers(content):
            return None
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
    return frame["source"], frame["target"], frame["weight"] if "weight" in chosen else None


def _has_padded_numbers(content: Path | bytes) -> bool:
    """Whether some field may be a number such as 007, which is another id than 7 though the fast reader drops zeros."""
    if isinstance(content, bytes):
        return _PADDED_FIELD.search(content) is not None
    with content.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        return _PADDED_FIELD.search(view) is not None


def _to_scan(layout: _Layout) -> Path | bytes:
    """The file for the fast reader, or its text where that must be unpacked or has irregular white space."""
    if not is_gzip(layout.path) and layout.regular:
        return layout.path
    content = unpacked(layout.path)
    return content if layout.regular else single_blanks(content.removeprefix(BOM_UTF8))


def _read_carefully(layout: _Layout) -> tuple[Any, Any, Any]:
    """The same columns line by line: slow, but it names the first line that is broken."""
    (i, j, k), width = layout.at, len(layout.names)
    sources: list[str] = []
    targets: list[str] = []
    weights: list[float] = []
    for line, fields in _records(layout):
        if len(fields) != width or not fields[i] or not fields[j]:
            raise InputError(f"{layout.path} line {line}: {_fault(layout, fields, i)}")
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


def _fault(layout: _Layout, fields: list[str], source: int) -> str:
    if len(fields) != len(layout.names):
        like = "the header" if layout.has_header else "the first edge"
        return f"the line has {len(fields)} field{'s' * (len(fields) != 1)}, {like} {len(layout.names)}; correct it"
    role = "target" if fields[source] else "source"
    return f"the {role} of the edge is missing; fill it in or take the line out"


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
        fields = _fields(line, layout.separator)
        if not any(fields):
            continue
        if not header:
            yield number, fields
        header = False


def _line_of(layout: _Layout, row: int) -> int:
    return next(line for index, (line, _) in enumerate(_records(layout)) if index == row)
