"""Parquet files that Dask workers read themselves, each its own rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apexrank.distributed.blocks import DaskBlocks, dask_module
from apexrank.io.stream import Span, TableBlocks, load_span


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
    load = dask_module().delayed(load_span, pure=True, traverse=False)
    parts = [load(span, tables.make, tables.pieces) for span in tables.spans]
    return DaskBlocks(parts, names=tables.names)


def map_spans(tables: TableBlocks, function: Callable[..., Any], *args: Any) -> list[Any]:
    """``function(table, *args)`` of the tables of all blocks, by the workers, none of which keeps a table."""
    read = dask_module().delayed(_of_span, pure=False, traverse=False)
    pieces = [piece for span in tables.spans for piece in span.pieces(tables.pieces)]
    tasks = [read(span, function, *args) for span in pieces]
    return list(dask_module().compute(*tasks))


def _of_span(span: Span, function: Callable[..., Any], *args: Any) -> Any:
    return function(span.read(), *args)
