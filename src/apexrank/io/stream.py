"""Tables larger than memory: Parquet files and folders of them, and CSV files, read some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.io.columns import is_text, numbers, texts
from apexrank.io.ranker import group_ids, row_weights
from apexrank.io.tables import (
    Table,
    _check_header,
    _check_readable,
    _check_widths,
    _first_line,
    _sniff,
    _text,
)
from apexrank.models.blocks import Block, Blocks, default_rows

PIECES = 8  # in which a block is read, so that the columns of a file and X are never in memory twice
LEAST_ROWS = 4096  # of a piece: opening a file takes its time
_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


@dataclass(frozen=True)
class Chunk(Table):
    """Some rows of a file; ``first`` of the file's rows come before them."""

    first: int = 0

    def where(self, row: int, column: str) -> str:
        """Where the value of a row stands in the file, in words."""
        return super().where(self.first + row, column)


class Span(NamedTuple):
    """Rows of a Parquet file: what one block is read from, here or on another machine that has the file."""

    path: str
    first: int
    rows: int

    def read(self, columns: Sequence[str] | None = None) -> Chunk:
        """The rows as a table."""
        try:
            frame = pl.scan_parquet(self.path).slice(self.first, self.rows)
            frame = frame if columns is None else frame.select(columns)
            return Chunk(frame.collect(), self.path, first=self.first)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(f"cannot read {self.path} as Parquet: {_first_line(error)}") from None

    def pieces(self, n: int) -> list[Span]:
        """The span in ``n`` pieces or fewer."""
        step = piece_rows(self.rows, n)
        return [Span(self.path, self.first + a, min(step, self.rows - a)) for a in range(0, self.rows, step)]


def piece_rows(rows: int, n: int) -> int:
    """Rows of a piece where a block of so many rows is read in ``n`` pieces or fewer."""
    return max(min(rows, LEAST_ROWS), -(-rows // n), 1)


Make = Callable[[Table], Block]


def load_span(span: Span, make: Make, pieces: int = PIECES) -> Block:
    """The block that ``make`` gives of the rows of a span, read in pieces."""
    return _joined((make(piece.read()) for piece in span.pieces(pieces)), span.rows)


def _joined(pieces: Iterator[Block], rows: int) -> Block:
    """One block of several, X filled as they come."""
    X, n = np.empty((0, 0)), 0
    columns: list[Any] = []
    for piece in pieces:
        if not columns:
            X = np.empty((rows, piece.X.shape[1]))
        X[n : n + len(piece.X)] = piece.X
        n += len(piece.X)
        columns.append(piece[1:])
        del piece
    y, weight, groups = (
        None if column[0] is None else np.concatenate(column) for column in zip(*columns, strict=True)
    )
    return Block(X[:n], y, weight, groups)  # type: ignore[arg-type]


class TableBlocks(Blocks):
    """Blocks made of the rows of files, read again in every pass.

    Parameters
    ----------
    path : path
        A Parquet file, a folder of them (taken in the order of their names), or a CSV file.
    make : callable
        From a table of some rows to a block.
    rows : int, optional
        Rows of a block; by default those of 64 MiB with all columns. A Parquet file is read fastest with row groups
        of at most that size.
    groups : str, optional
        The column of groups, which are kept whole: their rows have to stand together in one file.
    """

    def __init__(
        self, path: str | Path, make: Make, *, rows: int | None = None, groups: str | None = None
    ) -> None:
        self.path, self.make, self.groups = Path(path), make, groups
        self.pieces = 1 if groups is not None else PIECES  # a group is scaled as a whole
        self.is_csv = str(path).lower().endswith(_CSV)
        self.rows = rows or default_rows(len(self.head().names))
        self.spans = [] if self.is_csv else _spans(parquet_files(self.path), self.rows, groups)

    def head(self) -> Table:
        """The first rows, for the names of the columns."""
        if self.is_csv:
            return next(_csv_chunks(self.path, 100))
        return Span(str(parquet_files(self.path)[0]), 0, 100).read()

    def tables(self) -> Iterator[Table]:
        """All rows as tables of an eighth of a block; whole blocks where groups have to stay whole."""
        if self.is_csv:
            yield from _csv_chunks(self.path, piece_rows(self.rows, self.pieces), self.groups)
            return
        for span in self.spans:
            for piece in span.pieces(self.pieces):
                yield piece.read()

    def __iter__(self) -> Iterator[Block]:
        if not self.is_csv:
            for span in self.spans:
                yield load_span(span, self.make, self.pieces)
            return
        tables = self.tables()
        while some := list(islice(tables, -(-self.rows // piece_rows(self.rows, self.pieces)))):
            yield _joined(map(self.make, some), sum(map(len, some)))
            del some


def parquet_files(path: Path) -> list[Path]:
    """The Parquet files that a path stands for."""
    files = sorted(p for p in path.iterdir() if p.suffix.lower() in _PARQUET) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{str(path)!r} has no Parquet file: give a folder of .parquet files")
    for file in files:
        if file.suffix.lower() not in _PARQUET:
            raise InputError(
                f"cannot read {str(file)!r} in blocks: use .parquet, a folder of them, .csv or .csv.gz"
            )
        _check_readable(file)
        with file.open("rb") as opened:
            if opened.read(4) != b"PAR1":
                raise InputError(f"{file} is not a Parquet file: if it is text, name it .csv")
    return files


def _spans(files: list[Path], rows: int, groups: str | None) -> list[Span]:
    spans: list[Span] = []
    for file in files:
        n = int(pl.scan_parquet(file).select(pl.len()).collect().item())
        bounds = [*range(0, n, rows), n] if groups is None else _group_bounds(str(file), n, rows, groups)
        spans.extend(Span(str(file), a, b - a) for a, b in pairwise(bounds))
    if not spans:
        raise InputError(f"{files[0].parent if len(files) > 1 else files[0]} has no rows: add some")
    return spans


def _group_bounds(path: str, n: int, rows: int, groups: str) -> list[int]:
    """Bounds of blocks moved to where a group begins, from the column of groups alone."""
    Span(path, 0, 1).read().column(groups)  # whose error names the likely spelling
    bounds = [0]
    for a in range(0, n, rows):
        span = Span(path, a, min(rows + 1, n - a))
        ids = group_ids(span.read([groups]), groups)
        starts = np.flatnonzero(ids[1:] != ids[:-1]) + 1 + a
        if len(starts) and a + rows < n:
            bounds.append(int(starts[-1]))
    return [*sorted(set(bounds)), n]


def _csv_chunks(path: Path, rows: int, groups: str | None = None) -> Iterator[Chunk]:
    """Rows of a CSV file; a record ends where a line does and all quotes are closed."""
    _check_readable(path)
    separator = _sniff(path)
    header = _check_header(path, separator)
    first, rest, checked = 0, None, False
    for text in _csv_texts(path, rows):
        try:
            frame = pl.read_csv(BytesIO(text), separator=separator, infer_schema=False, encoding="utf8")
        except pl.exceptions.PolarsError as error:
            raise InputError(f"cannot read {path} as CSV: {_first_line(error)}") from None
        if not checked and frame[header[-1]].null_count():
            _check_widths(path, separator, len(header))  # the reader fills short lines and says nothing
            checked = True
        frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
        if rest is not None:
            frame, rest = pl.concat([rest, frame]), None
        chunk = Chunk(frame, str(path), separator, first=first)
        if groups is not None:
            ids = group_ids(chunk, groups)
            last = int(np.flatnonzero(ids != ids[-1])[-1]) + 1 if np.any(ids != ids[-1]) else 0
            rest, chunk = frame[last:], Chunk(frame[:last], str(path), separator, first=first)
        first += len(chunk)
        if len(chunk):
            yield chunk
    if rest is not None and rest.height:
        yield Chunk(rest, str(path), separator, first=first)


def _csv_texts(path: Path, rows: int) -> Iterator[bytes]:
    with _text(path) as file:
        header, some, n, open_quotes = "", [], 0, 0
        for line in file:
            if not header:
                header = line if line.strip() else ""
                continue
            some.append(line)
            open_quotes = (open_quotes + line.count('"')) % 2
            n += not open_quotes
            if n >= rows and not open_quotes:
                yield (header + "".join(some)).encode()
                some, n = [], 0
        if some:
            yield (header + "".join(some)).encode()


@dataclass(frozen=True)
class _Columns:
    """Makes a block of named columns, numbers as they are."""

    features: tuple[str, ...]
    target: str
    sample_weight: str | None
    groups: str | None

    def __call__(self, table: Table) -> Block:
        X = np.empty((len(table), len(self.features)))
        for j, name in enumerate(self.features):
            X[:, j] = numbers(table, name)
        y = (
            texts(table, self.target).to_numpy()
            if is_text(table, self.target)
            else numbers(table, self.target)
        )
        weight = None if self.sample_weight is None else row_weights(table, self.sample_weight)
        return Block(X, y, weight, None if self.groups is None else group_ids(table, self.groups))


def read_blocks(
    path: str | Path,
    target: str,
    *,
    features: Sequence[str] | None = None,
    sample_weight: str | None = None,
    groups: str | None = None,
    rows: int | None = None,
) -> TableBlocks:
    """Blocks of a file or folder that may be larger than memory, for :func:`apexrank.rankers.blocks.fit_blocks`.

    Parameters
    ----------
    path : path
        A Parquet file, a folder of them, or a CSV file.
    target : str
        The column of labels, or of relevance.
    features : sequence of str, optional
        Columns of numbers, all others by default. Missing values are refused by the fit.
    sample_weight, groups : str, optional
        Columns of weights and of groups; the rows of a group have to stand together.
    rows : int, optional
        Rows of a block; by default those of 64 MiB.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank.rankers.blocks import fit_blocks
    >>> from apexrank.rankers.push import PNormPush
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame = pl.DataFrame({"x": [0.0, 1.0, 2.0, 1.5], "fraud": [0, 0, 1, 0]})
    ...     frame.write_parquet(f"{folder}/rows.parquet")
    ...     blocks = read_blocks(folder, "fraud", rows=3)
    ...     ranker = fit_blocks(PNormPush(p=2, alpha=0.1), blocks)
    >>> ranker.converged_, ranker.feature_names_in_.tolist()
    (True, ['x'])
    """
    others = {target, sample_weight, groups}
    head = TableBlocks(path, _nothing, rows=rows).head()
    for name in (*(features or ()), *(name for name in others if name is not None)):
        head.column(name)
    names = tuple(features or (name for name in head.names if name not in others))
    make = _Columns(names, target, sample_weight, groups)
    blocks = TableBlocks(path, make, rows=rows or default_rows(len(names)), groups=groups)
    blocks.names = names
    return blocks


def _nothing(table: Table) -> Any:
    raise NotImplementedError
