"""Out-of-core fit of a table ranker; the model is the same as for a fit in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.io.columns import (
    choose_positive,
    grades,
    labelled_rows,
    row_weights,
    target_counts,
    weight_notes,
)
from apexrank.io.delimited import first_line
from apexrank.io.encode import Column, Encoder, Stats, check_encoding, merge_stats, table_stats
from apexrank.io.judging import Judged
from apexrank.io.prepare import Facts, choose_columns, merge_facts, needs_facts, table_facts
from apexrank.io.read import Table
from apexrank.io.stream import Span, TableBlocks, load_spans
from apexrank.io.table_ranker import NO_GROUPS, Recipe, TableRanker
from apexrank.problem.blocks import Blocks, check_whole, groups_in, joined_columns
from apexrank.problem.dask import Caught, DaskBlocks, checked_results, dask_module
from apexrank.problem.design import of_two_rows
from apexrank.rankers.base import fit_blocks
from apexrank.rankers.search import search_blocks

Source = Callable[[TableBlocks], Blocks]
Map = Callable[..., Any]
Merge = Callable[[Any, Any], Any]
MERGED = 8  # number of results merged by one Dask task
BYTES_A_ROW, MANY_ROWS = 100, 1_000_000  # memory for sorting scores, and number of rows that deserve a note


def map_tables(
    tables: TableBlocks, function: Callable[..., Any], *args: Any, merge: Merge | None = None
) -> Any:
    """Apply ``function(table, *args)`` to all rows, one table at a time.

    Returns the list of results, or with ``merge`` one merged result.

    Examples
    --------
    >>> import operator, tempfile
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.DataFrame({"x": [0.0, 1.0, 2.0]}).write_parquet(f"{folder}/rows.parquet")
    ...     tables = TableBlocks(folder, rows=2)
    ...     map_tables(tables, len), map_tables(tables, len, merge=operator.add)
    ([2, 1], 3)
    """
    found = _results(tables, function, args)
    return list(found) if merge is None else reduce(merge, found)


def _results(tables: TableBlocks, function: Callable[..., Any], args: tuple[Any, ...]) -> Iterator[Any]:
    for table in tables.tables():
        result = function(table, *args)
        del table  # otherwise two tables would be in memory during the next read
        yield result
        del result


def span_blocks(tables: TableBlocks) -> DaskBlocks:
    """Blocks of Parquet files, read once by the workers that keep them.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> from apexrank.io.stream import read_blocks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.DataFrame({"x": [0.0, 1.0, 2.0], "y": [0, 1, 1]}).write_parquet(f"{folder}/rows.parquet")
    ...     blocks = span_blocks(read_blocks(folder, "y", rows=2))
    ...     print(blocks.map(lambda block: block.X.ravel().tolist()))
    [[0.0, 1.0], [2.0]]
    """
    load = dask_module().delayed(Caught(load_spans), pure=True, traverse=False)
    parts = [load(spans, tables.make, tables.pieces) for spans in tables.shares]
    return DaskBlocks(parts, names=tables.names)


def map_spans(
    tables: TableBlocks, function: Callable[..., Any], *args: Any, merge: Merge | None = None
) -> Any:
    """:func:`map_tables` on Dask workers, none of which keeps a table.

    The workers also merge results in batches, so that only one is transferred.

    Examples
    --------
    >>> import operator, tempfile
    >>> import polars as pl
    >>> from apexrank.io.stream import read_blocks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.DataFrame({"x": [0.0, 1.0, 2.0], "y": [0, 1, 1]}).write_parquet(f"{folder}/rows.parquet")
    ...     map_spans(read_blocks(folder, "y", rows=2), len, merge=operator.add)
    3
    """
    tables.check_unchanged()
    dask = dask_module()
    read = dask.delayed(Caught(_of_span), pure=False, traverse=False)
    pieces = [piece for span in tables.spans for piece in span.pieces(tables.pieces)]
    tasks = [read(span, function, *args) for span in pieces]
    if merge is None:
        return checked_results(dask.compute(*tasks))
    merged = dask.delayed(Caught(_merge_some), pure=False, traverse=False)
    while len(tasks) > 1:
        tasks = [merged(merge, *tasks[a : a + MERGED]) for a in range(0, len(tasks), MERGED)]
    return checked_results(dask.compute(*tasks))[0]


def _merge_some(merge: Merge, *results: Any) -> Any:
    return reduce(merge, results)


def _of_span(span: Span, function: Callable[..., Any], *args: Any) -> Any:
    return function(span.read(), *args)


def fit_table_blocks(
    path: str | Path,
    recipe: Recipe,
    estimator: Any,
    *,
    rows: int | None = None,
    source: Source | None = None,
    mapped: Map = map_tables,
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
    source : callable, optional
        Function from the blocks of the files to blocks elsewhere, such as on Dask workers.
    mapped : callable, optional
        ``mapped(blocks, function, *args)`` returns the list of ``function(table, *args)`` over all tables, in order;
        with ``merge=`` it returns the merged result.

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
    scale = recipe.encoder_scale
    check_encoding(recipe.imputation, scale)
    searches_grades = hasattr(estimator, "param_grid")
    if searches_grades and recipe.groups is None:
        raise InputError(NO_GROUPS)
    tables = TableBlocks(path, rows=rows, groups=recipe.groups)
    head = tables.head()
    names = recipe.feature_columns(head)
    if not recipe.features:
        tables.note_later_columns(
            [*recipe.drop, recipe.target, *filter(None, (recipe.id, recipe.groups, recipe.weight))]
        )
    facts, counts, without, n, guesses = mapped(tables, _first_look, names, recipe, merge=_merge_looks)
    positive, notes = None, [*guesses]
    if n >= MANY_ROWS and _gathers_scores(estimator, recipe):
        gigabytes = n * BYTES_A_ROW / 1e9
        notes.append(f"labels and scores of all {n:,} rows were kept in memory: about {gigabytes:.1f} GB")
    if not recipe.graded:
        ordered = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
        if not ordered:
            raise InputError(f"{path} column {recipe.target!r} has no values: name another target")
        positive = choose_positive(ordered, str(path), recipe.target, recipe.positive)
    if without:
        notes.append(
            f"left out: {without:,} of {n:,} rows of {path}, because the target {recipe.target!r} is missing"
        )
    prepared = choose_columns(names, facts, recipe, head.separator, str(path))
    stats = mapped(tables, _checked_stats, prepared.columns, recipe, merge=merge_stats)
    encoder = Encoder.of_stats(stats, prepared.columns, recipe.imputation, scale, str(path))
    ranker = TableRanker.unfitted(recipe, estimator, encoder, positive, head.names)
    tables.make = ranker.block
    blocks = tables if source is None else source(tables)
    if recipe.scale == "query":  # features are scaled within the groups of a block
        check_whole(blocks.map(groups_in))
    (search_blocks if searches_grades else fit_blocks)(estimator, blocks)
    ranker.estimator = getattr(estimator, "best_estimator_", estimator)
    judged, mean = _judge(ranker, mapped(tables, _score, ranker))
    tables.check_unchanged()
    ranker.learn_from(judged, mean)
    return ranker, judged._replace(notes=(*notes, *weight_notes(judged.weight), *prepared.notes))


def _gathers_scores(estimator: Any, recipe: Recipe) -> bool:
    """Whether the fit needs the scores of all rows at once; with groups it does (:class:`BlockDesign`)."""
    if not hasattr(estimator, "_objective"):  # a search, which measures the held-out rows
        return True
    return recipe.graded or recipe.groups is not None or not of_two_rows(estimator._objective, 1, 1).streams


# facts of columns, counts of the target, number of rows without one, number of all rows, and guesses of the reader
Look = tuple[dict[str, Facts], Counter[str], int, int, Sequence[str]]


def _first_look(table: Table, names: list[str], recipe: Recipe) -> Look:
    """Facts of the columns in the rows with a target, and counts of the target values."""
    counts: Counter[str] = Counter()
    labelled = table
    if not recipe.graded:
        labelled, _ = labelled_rows(table, recipe.target, empty=True)
        counts.update(target_counts(labelled, recipe.target))
    weight = None if recipe.weight is None else row_weights(labelled, recipe.weight)
    facts = table_facts(labelled, names, weight) if needs_facts(recipe, table) else {}
    return facts, counts, len(table) - len(labelled), len(table), table.guesses


def _merge_looks(a: Look, b: Look) -> Look:
    guesses = max(a[4], b[4], key=len)  # a piece has those of the file, and perhaps one about its values
    return merge_facts(a[0], b[0]), a[1] + b[1], a[2] + b[2], a[3] + b[3], guesses


def _checked_stats(table: Table, columns: list[Column], recipe: Recipe) -> Stats:
    """Statistics of the features; the same pass validates grades and weights."""
    if recipe.graded:
        grades(table, recipe.target)
    else:
        table, _ = labelled_rows(table, recipe.target, empty=True)
    weight = None if recipe.weight is None else row_weights(table, recipe.weight)
    return table_stats(table, columns, recipe.imputation, weight)


def _score(table: Table, ranker: TableRanker) -> tuple[Any, ...]:
    X, y, weight, groups = ranker.block(table)
    total = X.sum(axis=0) if weight is None else weight @ X
    return total, ranker.score_rows(table, X), (y, weight, groups)


def _judge(ranker: TableRanker, parts: list[Any]) -> tuple[Judged, np.ndarray]:
    """Join the parts into all answers and scores, and the mean row."""
    sums, scores, columns = zip(*parts, strict=True)
    y, weight, groups = joined_columns(columns)
    mean = np.sum(sums, axis=0) / (len(y) if weight is None else weight.sum())
    return Judged(y, np.concatenate(scores), groups, ranker.positive is None, weight=weight), mean


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
            table, _ = labelled_rows(table, target, empty=True)
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
