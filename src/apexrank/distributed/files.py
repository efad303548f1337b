"""Parquet files that Dask workers read themselves, each its own rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from apexrank.io.stream import Span, TableBlocks, load_spans
from apexrank.problem.dask import Caught, DaskBlocks, checked_results, dask_module

MERGED = 8  # results that one task merges


def span_blocks(tables: TableBlocks) -> DaskBlocks:
    """Blocks of Parquet files, read once by the workers that then keep them.

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
    tables: TableBlocks,
    function: Callable[..., Any],
    *args: Any,
    merge: Callable[[Any, Any], Any] | None = None,
) -> Any:
    """``function(table, *args)`` of the tables of all blocks, by the workers, none of which keeps a table.

    A list; with ``merge`` one result, which the workers merge too, some at a time, so that it is all that comes back.

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


def _merge_some(merge: Callable[[Any, Any], Any], *results: Any) -> Any:
    return reduce(merge, results)


def _of_span(span: Span, function: Callable[..., Any], *args: Any) -> Any:
    return function(span.read(), *args)
