"""Tables larger than memory: files read in blocks of rows, fits on them, and their scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain, islice, pairwise, repeat
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from apexrank.datasets.letor import letor_batches, letor_width
from apexrank.errors import InputError, quoted
from apexrank.files import check_readable
from apexrank.io.columns import (
    TEXT,
    feature_columns,
    grades,
    group_ids,
    labelled_rows,
    numbers,
    refuse_row,
    row_weights,
    texts,
    weight_notes,
    word_balance,
)
from apexrank.io.delimited import PLAIN, Csv, csv_lines, first_line
from apexrank.io.encode import LinearFeatures, Stats, cell_stats, merge_stats
from apexrank.io.judge import Judged
from apexrank.io.read import (
    CSV,
    PARQUET,
    Table,
    check_no_fold,
    csv_table,
    files_of,
    is_letor,
    letor_table,
    reading_parquet,
)
from apexrank.io.table_ranker import Recipe, TableFacts, TableRanker, check_recipe
from apexrank.io.types import Column, parse_columns
from apexrank.problem.blocks import Block, Blocks, block_rows, check_whole, groups_in, joined_columns
from apexrank.problem.dask import Caught, DaskBlocks, checked_results, dask_module
from apexrank.problem.design import of_two_rows
from apexrank.rankers.search import search_blocks

PIECES = 8  # pieces per block: besides X, at most an eighth of its rows is in memory as columns of the file
LEAST_ROWS = 4096  # minimum number of rows per piece, because opening a file takes time
MERGED = 8  # number of results merged by one Dask task
BYTES_A_ROW, MANY_ROWS = 100, 1_000_000  # memory for sorting scores, and number of rows that deserve a note
_MOST_TEXT = 1 << 27  # maximum number of characters per piece of a CSV file; twice that for a single record


class Span(NamedTuple):
    """Range of rows of a Parquet file, read here or on another machine that has the file."""

    path: str
    first: int
    rows: int

    def read(self, columns: Sequence[str] | None = None) -> Table:
        """Read the rows as a table."""
        with reading_parquet(self.path):
            frame = pl.scan_parquet(self.path, glob=False).slice(self.first, self.rows)
            frame = frame if columns is None else frame.select(columns)
            return Table(frame.collect(), self.path, first=self.first)


Make = Callable[[Table], Block]
Merge = Callable[[Any, Any], Any]


def load_pieces(pieces: Sequence[Span], make: Make) -> Block:
    """Read pieces of a file one at a time, convert each to a block with ``make``, and join the blocks."""
    return _joined((make(piece.read()) for piece in pieces), sum(piece.rows for piece in pieces))


def _joined(pieces: Iterator[Block], rows: int) -> Block:
    """Join blocks into one, filling X as they arrive."""
    X, n = np.empty((0, 0)), 0
    columns: list[Any] = []
    for piece in pieces:
        if not columns:
            X = np.empty((rows, piece.X.shape[1]))
        X[n : n + len(piece.X)] = piece.X
        n += len(piece.X)
        columns.append(piece[1:])
        del piece
    return Block(X[:n], *joined_columns(columns))


class TableBlocks(Blocks):
    """Blocks of rows of files, read again in every pass.

    Parameters
    ----------
    path : path
        A Parquet file, a LETOR file, a folder of either (read in order of name), or a CSV file.
    make : callable, optional
        Function from a table to a block; needed only if blocks are read, not tables.
    rows : int, optional
        Rows per block; by default as many as fit in 64 MiB with all columns. Parquet files are read fastest with row
        groups of at most that size. Small files share a block, unless there are groups.
    groups : str, optional
        The column of groups; a group stays in one block if its rows are contiguous in one file.
    """

    def __init__(
        self,
        path: str | Path,
        make: Make | None = None,
        *,
        rows: int | None = None,
        groups: str | None = None,
    ) -> None:
        self.path = Path(path)
        self.make: Any = make
        self.texts = _text_files(self.path)
        self.files = [] if self.texts else parquet_files(self.path)
        self.width = max((letor_width(file) for file in self.texts if is_letor(file)), default=0)
        self._stamps = {
            file: _stamp(file) for file in (*self.texts, *(Path(file.path) for file in self.files))
        }
        self.split(rows, len(self.head().names), groups)

    def split(self, rows: int | None, width: int, groups: str | None) -> None:
        """Split the files into pieces, and these into blocks of ``rows`` rows, by default as fit in 64 MiB.

        A piece is an eighth of a block, because its columns are in memory beside the block. With groups it is a block:
        a group must be scaled as a whole, and one in two files must be in two blocks, so that it is detected.
        """
        self.rows, self.groups = block_rows(rows, width), groups
        self.piece = self.rows
        if groups is None:
            self.piece = max(min(self.rows, LEAST_ROWS), -(-self.rows // PIECES), 1)
        self.pieces: list[Span] = []
        self.shares: list[list[Span]] = []
        for file in self.files:
            bounds = [*range(0, file.rows, self.piece), file.rows]
            if groups is not None:
                bounds = _group_bounds(file.path, file.rows, self.rows, groups)
            self.pieces += [Span(file.path, a, b - a) for a, b in pairwise(bounds)]
        n = self.rows  # rows of the last block; full at first
        for piece in self.pieces:
            n += piece.rows
            if groups is not None or n > self.rows:
                self.shares.append([])
                n = piece.rows
            self.shares[-1].append(piece)

    def head(self) -> Table:
        """Read the first rows, for the column names."""
        if not self.texts:
            return Span(self.files[0].path, 0, 100).read()
        head = next(chain.from_iterable(_text_tables(path, 100, self.width) for path in self.texts), None)
        if head is None:
            raise InputError(f"{self.path} has column names but no rows: add some")
        return head

    def check_unchanged(self) -> None:
        """Raise InputError if a file has changed since it was opened, because all passes must see the same rows."""
        for path, stamp in self._stamps.items():
            if _stamp(path) != stamp:
                raise InputError(
                    f"{path} changed while it was being read: run this again once it no longer changes"
                )

    def note_later_columns(self, known: Collection[str | None]) -> None:
        """Warn about columns that are missing in the first file, except ``known`` ones."""
        for file in self.files[1:]:
            extra = [name for name in file.schema if name not in self.files[0].schema and name not in known]
            if extra:
                warnings.warn(
                    f"{file.path} has columns that {self.files[0].path} lacks; they are ignored: {quoted(extra)}",
                    stacklevel=3,
                )
                return

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[Table]:
        """Iterate over all rows as tables of an eighth of a block, or whole blocks if there are groups.

        For Parquet files, only ``columns`` are read.
        """
        self.check_unchanged()
        for path in self.texts:
            tables = _text_tables(path, self.piece, self.width)
            yield from tables if self.groups is None else _of_whole_groups(tables, self.groups)
        for piece in self.pieces:
            yield piece.read(columns)

    def __iter__(self) -> Iterator[Block]:
        self.check_unchanged()
        if not self.texts:
            for pieces in self.shares:
                yield load_pieces(pieces, self.make)
            return
        tables = self.tables()
        while some := list(islice(tables, -(-self.rows // self.piece))):
            yield _joined(map(self.make, some), sum(map(len, some)))
            del some


def sample_table(path: str | Path, n: int, seed: int | None = 0) -> tuple[Table, int]:
    """Draw ``n`` random rows from a file or folder larger than memory.

    Returns them in file order (all rows if there are no more than ``n``) and the total number of rows. It takes one
    pass, with at most twice ``n`` rows and one piece of a block in memory.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.DataFrame({"x": range(1000)}).write_parquet(f"{folder}/rows.parquet")
    ...     table, total = sample_table(folder, 3)
    >>> table.frame["x"].to_list() == table.places.tolist(), len(table), total
    (True, 3, 1000)
    """
    blocks, rng, total, limit = TableBlocks(path), np.random.default_rng(seed), 0, 1.0
    head = blocks.head()
    key, place = "\0key", "\0place"  # the rows with the smallest keys are drawn
    drawn = head.frame.clear().with_columns(pl.lit(0.0).alias(key), pl.lit(0).alias(place))
    for table in blocks.tables():
        columns = [table.column(name) for name in head.names]
        for known, column in zip(drawn.iter_columns(), columns, strict=False):
            numeric = known.dtype.is_numeric() and column.dtype.is_numeric()
            if not (numeric or known.dtype == column.dtype or pl.Null in (known.dtype, column.dtype)):
                raise InputError(
                    f"{table.source} column {known.name!r} is {column.dtype}, in files before it {known.dtype}: "
                    "write one type in all files"
                )
        columns += [
            pl.Series(key, rng.random(len(table))),
            pl.arange(total, total + len(table), eager=True).alias(place),
        ]
        drawn = pl.concat([drawn, pl.DataFrame(columns).filter(pl.col(key) <= limit)], how="vertical_relaxed")
        total += len(table)
        if len(drawn) > 2 * n:
            drawn = drawn.bottom_k(n, by=key)
            limit = drawn[key].to_numpy().max()
    drawn = drawn.bottom_k(n, by=key).sort(place)
    return replace(
        head, frame=drawn.select(head.names), source=str(path), places=drawn[place].to_numpy()
    ), total


class ParquetFile(NamedTuple):
    """Metadata of a Parquet file, from its footer."""

    path: str
    rows: int
    schema: dict[str, Any]


def parquet_files(path: Path) -> list[ParquetFile]:
    """Return the Parquet files of a path that have rows, after checking that all are readable."""
    found = []
    for file in files_of(path):
        if file.suffix.lower() not in PARQUET:
            raise InputError(
                f"cannot read {str(file)!r} in blocks: use .parquet, .csv, .csv.gz, or a folder of Parquet files"
            )
        check_readable(file)
        with reading_parquet(file):
            frame = pl.scan_parquet(file, glob=False)
            rows = int(frame.select(pl.len()).collect().item())
            found.append(ParquetFile(str(file), rows, dict(frame.collect_schema())))
    if not found:
        raise InputError(
            f"{str(path)!r} has no Parquet or LETOR file: give a folder of .parquet or .txt files, or one CSV file"
        )
    if not any(file.rows for file in found):
        raise InputError(f"{path} has no rows: add some")
    return [file for file in found if file.rows]


def _group_bounds(path: str, n: int, rows: int, groups: str) -> list[int]:
    """Return block bounds, moved to the start of a group."""
    Span(path, 0, 1).read().column(groups)  # its error suggests the likely spelling
    bounds = [0]
    for a in range(0, n, rows):
        span = Span(path, a, min(rows + 1, n - a))
        ids = group_ids(span.read([groups]), groups)
        starts = np.flatnonzero(ids[1:] != ids[:-1]) + 1 + a
        if len(starts) and a + rows < n:
            bounds.append(int(starts[-1]))
    return [*sorted(set(bounds)), n]


def _text_files(path: Path) -> list[Path]:
    """Return the CSV or LETOR files of a path, if any."""
    if str(path).lower().endswith(CSV):
        return [path]
    files = [file for file in files_of(path) if is_letor(file)]
    check_no_fold(path, files)
    return files


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return size and modification time, which distinguish versions of a file."""
    try:
        found = path.stat()
    except OSError:  # reading it will give the reason
        return None
    return found.st_size, found.st_mtime_ns


def _text_tables(path: Path, rows: int, width: int) -> Iterator[Table]:
    """Iterate over the rows of a CSV or LETOR file."""
    check_readable(path)
    return _letor_tables(path, rows, width) if width else _csv_tables(path, rows)


def _letor_tables(path: Path, rows: int, width: int) -> Iterator[Table]:
    first = 0
    for letor in letor_batches(path, rows, width):
        yield letor_table(letor, first)
        first += len(letor.target)


def _csv_tables(path: Path, rows: int) -> Iterator[Table]:
    """Iterate over the rows of a CSV file."""
    with csv_lines(path) as lines:
        layout, some = Csv.of_lines(path, lines, PLAIN, "index")
        first = 0
        for line, piece in _csv_pieces(path, chain(some, lines), layout.first_line, rows):
            table = csv_table(layout, piece, line, first)
            if len(table):
                yield table
            first += len(table)


def _of_whole_groups(tables: Iterator[Table], groups: str) -> Iterator[Table]:
    """Move the rows of the last group of each table to the next table."""
    rest = None
    for table in tables:
        if rest is not None:
            table = replace(rest, frame=pl.concat([rest.frame, table.frame]))
        ids = group_ids(table, groups)
        others = np.flatnonzero(ids != ids[-1])
        last = int(others[-1]) + 1 if len(others) else 0
        rest = replace(table, frame=table.frame[last:], first=table.first + last)
        if last:
            yield replace(table, frame=table.frame[:last])
    if rest is not None:
        yield rest


def _csv_pieces(
    path: Path, lines: Iterable[bytes], start: int, rows: int
) -> Iterator[tuple[int, list[bytes]]]:
    """Iterate over numbers of first lines and lines of some rows; a row ends where all quotes are closed."""
    some: list[bytes] = []
    n = size = open_quotes = 0
    for number, line in enumerate(lines, start):
        some.append(line)
        open_quotes = (open_quotes + line.count(b'"')) % 2
        n += not open_quotes
        size += len(line)
        if (n >= rows or size > _MOST_TEXT) and not open_quotes:
            yield start, some
            some, start, n, size = [], number + 1, 0, 0
        elif size > 2 * _MOST_TEXT:
            raise InputError(
                f"{path} line {number}: no quote closes the field that ends here; correct the quotes"
            )
    if some:
        yield start, some


def _block(
    table: Table, features: Sequence[str], target: str, words: bool, weight: str | None, groups: str | None
) -> Block:
    """Named columns of a table as a block; the target stays text if it holds ``words``."""
    X = np.empty((len(table), len(features)))
    for j, name in enumerate(features):
        X[:, j] = numbers(table, name)
    y = texts(table, target) if words else pl.Series(numbers(table, target), nan_to_null=True)
    refuse_row(table, target, y.is_null().to_numpy(), "the target is missing; fill it in or drop the row")
    weights = None if weight is None else row_weights(table, weight)
    return Block(X, y.to_numpy(), weights, None if groups is None else group_ids(table, groups))


def _is_of_words(blocks: TableBlocks, target: str) -> bool:
    """Return whether the target holds words (:func:`apexrank.io.columns.is_text`), judged on all rows."""
    if not blocks.texts and not any(file.schema.get(target) in TEXT for file in blocks.files):
        return False
    return sum(word_balance(table, target) for table in blocks.tables([target])) > 0


def read_blocks(
    path: str | Path,
    target: str | None = None,
    *,
    features: Sequence[str] | None = None,
    sample_weight: str | None = None,
    groups: str | None = None,
    rows: int | None = None,
) -> TableBlocks:
    """Read a file or folder larger than memory in blocks, for ``ranker.fit(blocks, None)``.

    Parameters
    ----------
    path : path
        A Parquet file, a LETOR file, a folder of either, or a CSV file. Text is parsed in every pass, which takes ten
        times as long as Parquet.
    target : str
        The column of labels, or of relevance. Deciding whether text holds numbers or words takes one more pass. LETOR
        files have a fixed target column, and their groups.
    features : sequence of str, optional
        Numeric columns; by default all other columns of the first file with rows. The fit rejects missing values.
    sample_weight, groups : str, optional
        Columns of weights and of groups.
    rows : int, optional
        Rows per block; by default as many as fit in 64 MiB.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank.rankers.push import PNormPush
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame = pl.DataFrame({"x": [0.0, 1.0, 2.0, 1.5], "fraud": [0, 0, 1, 0]})
    ...     frame.write_parquet(f"{folder}/rows.parquet")
    ...     blocks = read_blocks(folder, "fraud", rows=3)
    ...     ranker = PNormPush(p=2, alpha=0.1).fit(blocks, None)
    >>> ranker.converged_, ranker.feature_names_in_.tolist()
    (True, ['x'])
    """
    if isinstance(features, str):
        raise InputError(f"`features` must be a list of names, got {features!r}: put it in brackets")
    blocks = TableBlocks(path, rows=rows)
    head = blocks.head()
    target, groups = target or head.roles.get("target"), groups or head.roles.get("groups")
    if target is None:
        raise InputError(f"{path} does not say which column is the target: name it")
    roles = {"target": target, "sample_weight": sample_weight, "groups": groups}
    found = feature_columns(head, roles, features or ())
    blocks.names = names = tuple(found if features is None else features)
    if features is None:
        blocks.note_later_columns(roles.values())
    words = _is_of_words(blocks, target)
    blocks.make = partial(
        _block, features=names, target=target, words=words, weight=sample_weight, groups=groups
    )
    blocks.split(rows, len(names), groups)
    return blocks


def map_tables(
    tables: TableBlocks,
    function: Callable[..., Any],
    *args: Any,
    merge: Merge | None = None,
    dask: bool = False,
) -> Any:
    """Apply ``function(table, *args)`` to all rows, one table at a time, here or on Dask workers.

    Returns the list of results, or with ``merge`` one merged result; Dask workers merge in batches, so that only one
    result is transferred.

    Examples
    --------
    >>> import operator, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.DataFrame({"x": [0.0, 1.0, 2.0]}).write_parquet(f"{folder}/rows.parquet")
    ...     tables = TableBlocks(folder, rows=2)
    ...     map_tables(tables, len), map_tables(tables, len, merge=operator.add, dask=True)
    ([2, 1], 3)
    """
    if not dask:
        # not a generator expression, which would keep a table while the next is read
        found = map(function, tables.tables(), *map(repeat, args))
        return list(found) if merge is None else reduce(merge, found)
    tables.check_unchanged()
    delayed = dask_module().delayed
    read = delayed(Caught(_of_span), pure=False, traverse=False)
    tasks = [read(piece, function, *args) for piece in tables.pieces]
    if merge is None:
        return checked_results(dask_module().compute(*tasks))
    merged = delayed(Caught(_merge_some), pure=False, traverse=False)
    while len(tasks) > 1:
        tasks = [merged(merge, *tasks[a : a + MERGED]) for a in range(0, len(tasks), MERGED)]
    return checked_results(dask_module().compute(*tasks))[0]


def _merge_some(merge: Merge, *results: Any) -> Any:
    return reduce(merge, results)


def _of_span(span: Span, function: Callable[..., Any], *args: Any) -> Any:
    return function(span.read(), *args)


def span_blocks(tables: TableBlocks) -> DaskBlocks:
    """Blocks of Parquet files, read once by the workers that keep them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.DataFrame({"x": [0.0, 1.0, 2.0], "y": [0, 1, 1]}).write_parquet(f"{folder}/rows.parquet")
    ...     blocks = span_blocks(read_blocks(folder, "y", rows=2))
    ...     print(blocks.map(lambda block: block.X.ravel().tolist()))
    [[0.0, 1.0], [2.0]]
    """
    load = dask_module().delayed(Caught(load_pieces), pure=True, traverse=False)
    parts = [load(pieces, tables.make) for pieces in tables.shares]
    return DaskBlocks(parts, names=tables.names)


def fit_table_blocks(
    path: str | Path, recipe: Recipe, estimator: Any, *, rows: int | None = None, dask: bool = False
) -> tuple[TableRanker, Judged]:
    """Out-of-core :meth:`TableRanker.fit` on a file or folder.

    There is one pass for the target and the kinds of columns, one for the encoding, those of the fit, and one for the
    scores. The encoding equals that of the whole table up to rounding; a median of more than 131,072 values is off by
    about a thousandth of the rows. Scores and answers of all rows are gathered at the end, about 50 bytes per row while
    they are sorted.

    Parameters
    ----------
    path : path
        A Parquet file, a LETOR file, a folder of either, or a CSV file.
    recipe : Recipe
        Roles of the columns.
    estimator : linear ranker, PNormPushCV, or GridSearchCV over the alpha of a ranker of grades
        Fitted in place; the best ranker of a search is used.
    rows : int, optional
        Rows per block.
    dask : bool
        Whether Dask workers, which keep the rows of Parquet files, make the passes.

    Returns
    -------
    ranker, judged
        The fitted ranker, and answers, scores and groups of its training rows.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> from apexrank.rankers.push import PNormPush
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame = pl.DataFrame({"x": [0.0, 1.0, 2.0, 1.5], "fraud": [0, 0, 1, 0]})
    ...     frame.write_parquet(f"{folder}/rows.parquet")
    ...     ranker, judged = fit_table_blocks(folder, Recipe(target="fraud"), PNormPush(p=2, alpha=0.1))
    >>> ranker.positive, int(judged.scores.argmax())
    ('1', 2)
    """
    check_recipe(recipe, estimator)
    tables = TableBlocks(path, rows=rows, groups=recipe.groups)
    head = tables.head()
    names = recipe.feature_columns(head)
    if not recipe.features:
        tables.note_later_columns([*recipe.drop, recipe.target, recipe.id, recipe.groups, recipe.weight])
    facts = map_tables(tables, TableFacts.of, names, recipe, merge=or_, dask=dask)
    choice = facts.choose(names, recipe, head.separator, str(path))
    columns = choice.columns
    stats = map_tables(tables, _stats, columns, recipe, merge=merge_stats, dask=dask)
    encoder = LinearFeatures.learn(stats, columns, recipe, str(path))
    ranker = TableRanker.unfitted(recipe, estimator, encoder, choice.classes, head.names)
    tables.make = ranker.block
    blocks = span_blocks(tables) if dask else tables
    if recipe.scale == "query":  # features are scaled within the groups of a block
        check_whole(blocks.map(groups_in))
    if hasattr(estimator, "param_grid"):
        search_blocks(estimator, blocks)
    else:
        estimator.fit(blocks, None)
    ranker.estimator = getattr(estimator, "best_estimator_", estimator)
    sums, scores, answers = zip(*map_tables(tables, _score, ranker, dask=dask), strict=True)
    tables.check_unchanged()
    y, weight, groups = joined_columns(answers)
    ranker.mean = np.sum(sums, axis=0) / (len(y) if weight is None else weight.sum())
    notes = [*facts.guesses, *choice.notes, *weight_notes(weight)]
    if facts.rows >= MANY_ROWS and _gathers_scores(estimator, recipe):
        kept = f"labels and scores of all {facts.rows:,} rows were kept in memory"
        notes.append(f"{kept}: about {facts.rows * BYTES_A_ROW / 1e9:.1f} GB")
    judged = Judged(y, np.concatenate(scores), groups, recipe.graded, notes=tuple(notes), weight=weight)
    ranker.learn_from(judged)
    return ranker, judged


def _gathers_scores(estimator: Any, recipe: Recipe) -> bool:
    """Whether the fit needs the scores of all rows at once; with groups it does (:class:`BlockDesign`)."""
    if not hasattr(estimator, "_objective"):  # a search, which measures the held-out rows
        return True
    return recipe.graded or recipe.groups is not None or not of_two_rows(estimator._objective, 1, 1).streams


def _stats(table: Table, columns: list[Column], recipe: Recipe) -> Stats:
    """Statistics of the features; the same pass validates grades and weights."""
    if recipe.graded:
        grades(table, recipe.target)
    else:
        table, _ = labelled_rows(table, recipe.target)
    weight = None if recipe.weight is None else row_weights(table, recipe.weight)
    cells = parse_columns(table, columns, training=True)
    return cell_stats(cells, columns, recipe.imputation, weight)


def _score(table: Table, ranker: TableRanker) -> tuple[Any, ...]:
    X, y, weight, groups = ranker.block(table)
    total = X.sum(axis=0) if weight is None else weight @ X
    return total, ranker.score_rows(table, X), (y, weight, groups)


def score_blocks(
    ranker: TableRanker,
    path: str | Path,
    *,
    target: str | None = None,
    weight: str | None = None,
    id: str | None = None,
) -> tuple[Table, np.ndarray, list[str]]:
    """Score the rows of files larger than memory.

    Returns a table of all rows with only their group, id, target and weight, or without any of these the number of the
    row, their scores, and the notes of the first table that has any. With a two-class target, rows without a target
    have no score.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> from apexrank.rankers.push import PNormPush
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame = pl.DataFrame({"x": [0.0, 1.0, 2.0, 1.5], "fraud": [0, 0, 1, 0]})
    ...     frame.write_parquet(f"{folder}/rows.parquet")
    ...     ranker, judged = fit_table_blocks(folder, Recipe(target="fraud"), PNormPush(p=2, alpha=0.1))
    ...     table, scores, _ = score_blocks(ranker, folder, target="fraud")
    >>> table.names, bool(np.array_equal(scores, judged.scores))
    (['fraud'], True)
    """
    tables = TableBlocks(path, groups=ranker.groups)
    given = dict.fromkeys(filter(None, (ranker.groups, id or ranker.id, target, weight)))
    parts, scores, notes, groups, rows = [], [], list[str](), [], 0
    for table in tables.tables():
        kept = [name for name in given if name in table.names]
        # a frame without columns would not know how many rows it has
        number = pl.int_range(rows + 1, rows + len(table) + 1).alias("row")
        parts.append(table.frame.select(kept or number))
        rows += len(table)
        notes = notes or ranker.check(table, known=given)
        if target is not None and ranker.positive is not None:
            table, _ = labelled_rows(table, target)
        own = np.full(parts[-1].height, np.nan)
        weights = row_weights(table, weight) if weight in kept else None
        own[slice(None) if table.places is None else table.places] = ranker.score(table, weights)
        scores.append(own)
        ids = ranker.group_ids(table)
        if ids is not None and ranker.training["scale"] == "query":
            groups.append(np.unique(ids))
    tables.check_unchanged()
    if groups:
        check_whole(groups)
    try:
        frame = pl.concat(parts)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"the files of {path} differ in their columns: {first_line(error)}") from None
    return Table(frame, str(path), roles=table.roles), np.concatenate(scores), notes
