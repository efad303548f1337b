"""Fit a ranker of tables on files larger than memory: the model file is that of a fit in memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from apexrank.errors import InputError
from apexrank.io.judging import Judged
from apexrank.io.labels import grades, target_values
from apexrank.io.ranker import Recipe, TableRanker, Thresholds, _summary, row_weights
from apexrank.io.stream import TableBlocks
from apexrank.io.stream_encode import (
    TableStats,
    build_encoder,
    check_choices,
    merge_stats,
    merge_words,
    positive_of,
    table_stats,
    target_counts,
    word_counts,
    words_in,
)
from apexrank.io.tables import Table
from apexrank.problem.blocks import Block, Blocks, check_whole, groups_in
from apexrank.rankers.base import fit_blocks

Source = Callable[[TableBlocks], Blocks]
Map = Callable[..., Any]
Merge = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class _Encoded:
    """Makes a block of a table: features of the encoder, answers, weights and groups."""

    ranker: TableRanker
    weight: str | None

    def __call__(self, table: Table) -> Block:
        ranker = self.ranker
        if ranker.positive is None:
            y = grades(table, ranker.target)
        else:
            y = (target_values(table, ranker.target) == ranker.positive).to_numpy().astype(np.int64)
        weight = None if self.weight is None else row_weights(table, self.weight)
        return Block(ranker.features(table), y, weight, ranker.group_ids(table))


def map_tables(
    tables: TableBlocks, function: Callable[..., Any], *args: Any, merge: Merge | None = None
) -> Any:
    """``function(table, *args)`` of all rows, a table at a time.

    A list; with ``merge`` one result, merged as they come.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.DataFrame({"x": [0.0, 1.0, 2.0]}).write_parquet(f"{folder}/rows.parquet")
    ...     tables = TableBlocks(folder, _unused, rows=2)
    ...     map_tables(tables, len), map_tables(tables, len, merge=operator.add)
    ([2, 1], 3)
    """
    found = _results(tables, function, args)
    return list(found) if merge is None else reduce(merge, found)


def _results(tables: TableBlocks, function: Callable[..., Any], args: tuple[Any, ...]) -> Iterator[Any]:
    for table in tables.tables():
        result = function(table, *args)
        del table  # or two would be in memory while the next one is read
        yield result
        del result


def fit_table_blocks(
    path: str | Path,
    recipe: Recipe,
    estimator: Any,
    *,
    rows: int | None = None,
    source: Source | None = None,
    mapped: Map = map_tables,
) -> tuple[TableRanker, Judged]:
    """:meth:`TableRanker.fit` in passes over a file or folder: one for the target and the kinds of columns, one for the
    encoding, those of the fit, and one for the scores.

    The encoding is the one learnt from the whole table, to rounding; a median of more than 131,072 values is off by
    about a thousandth of the rows. Scores and answers of all rows come together in the end, about 50 bytes a
    row while they are sorted.

    Parameters
    ----------
    path : path
        A Parquet file, a folder of them, or a CSV file.
    recipe : Recipe
        What each column is for.
    estimator : PNormPush, IRPush or MonotoneRetargeting
        Fitted in place.
    rows : int, optional
        Rows of a block.
    source : callable, optional
        From the blocks of the files to blocks elsewhere, such as on Dask workers.
    mapped : callable, optional
        ``mapped(blocks, function, *args)`` lists ``function(table, *args)`` of all tables, in their order; with
        ``merge=`` it gives what remains when neighbours are merged.

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
    scale = "none" if recipe.scale == "query" else recipe.scale
    check_choices(recipe.impute, scale)
    if recipe.scale == "query" and recipe.groups is None:
        raise InputError("--scale query scales inside each group: name the column with --groups")
    tables = TableBlocks(path, _unused, rows=rows, groups=recipe.groups)
    head = tables.head()
    names = recipe.feature_columns(head)
    if not recipe.features:
        tables.note_later_columns(
            [*recipe.drop, recipe.target, *filter(None, (recipe.id, recipe.groups, recipe.weight))]
        )
    positive = None
    if not recipe.graded:
        counts = mapped(tables, target_counts, recipe.target, merge=operator.add)
        positive = positive_of(counts, recipe.target, recipe.positive, str(path))
    words = mapped(tables, word_counts, names, merge=merge_words) if "all" in recipe.categorical else {}
    chosen = words_in(words, names, recipe.categorical)
    stats = mapped(tables, _checked_stats, names, chosen, recipe, merge=merge_stats)
    encoder = build_encoder(stats, names, recipe.impute, scale, str(path))
    ranker = TableRanker(
        estimator=estimator,
        encoder=encoder,
        target=recipe.target,
        positive=positive,
        id=recipe.id,
        groups=recipe.groups,
        ignored=[name for name in head.names if name not in names],
        mean=np.zeros(len(encoder.features)),
        thresholds=None,
        training={"scale": recipe.scale},
        weight=recipe.weight,
    )
    tables.make = _Encoded(ranker, recipe.weight)
    blocks = tables if source is None else source(tables)
    if recipe.scale == "query":  # features are scaled inside the groups of a block
        check_whole(blocks.map(groups_in))
    fit_blocks(estimator, blocks)
    judged = _judge(ranker, mapped(tables, _score, ranker))
    all_rows: Any = judged.y  # only counted
    ranker.training = _summary(all_rows, recipe, judged.y, estimator)
    if positive is not None:
        ranker.thresholds = Thresholds.learn(judged.scores[judged.y == 0])
    return ranker, judged


def _checked_stats(table: Table, names: list[str], chosen: set[str], recipe: Recipe) -> TableStats:
    """Statistics of the features; grades and weights that cannot be used are found in the same pass."""
    if recipe.graded:
        grades(table, recipe.target)
    stats = table_stats(table, names, chosen, recipe.impute)
    if recipe.weight is not None:
        row_weights(table, recipe.weight)
    return stats


def _score(table: Table, ranker: TableRanker) -> tuple[np.ndarray, ...]:
    block = _Encoded(ranker, None)(table)
    return block.X.sum(axis=0), block.y, ranker._scores(block.X), block.groups  # type: ignore[return-value]


def _judge(ranker: TableRanker, parts: list[Any]) -> Judged:
    """All answers and scores; also takes the mean row."""
    sums, y, scores, groups = zip(*parts, strict=True)
    found = np.concatenate(y)
    ranker.mean = np.sum(sums, axis=0) / len(found)
    ids = None if ranker.groups is None else np.concatenate(groups)
    return Judged(found, np.concatenate(scores), ids, ranker.positive is None)


def _unused(table: Table) -> Block:
    raise NotImplementedError
