"""Writing of tables as CSV or Parquet files, and text that is safe in a spreadsheet program."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from apexrank.errors import InputError
from apexrank.files import replacing
from apexrank.io.read import by_suffix
from apexrank.validation import check_polars_threads


def write_table(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a frame atomically as CSV (also ``.csv.gz``) or Parquet, by the suffix of ``path``."""
    write = by_suffix(Path(path), _WRITERS)
    check_polars_threads("tables are written")
    with replacing(path) as temporary:
        write(frame, temporary)


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Prefix text that a spreadsheet program would interpret as a formula with '.

    Such text begins with =, +, -, @, a tab or a carriage return and is not a number. Column names are also prefixed.

    Examples
    --------
    >>> without_formulas(pl.DataFrame({"id": ["=1+1", "-3", "a"], "@x": [1, 2, 3]})).rows(named=True)[0]
    {'id': "'=1+1", "'@x": 1}
    """
    texts = [name for name, kind in frame.schema.items() if kind in (pl.String, pl.Categorical, pl.Enum)]

    def guarded(text: Any) -> Any:
        is_number = text.str.contains(r"^[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?$")
        return pl.when(text.str.contains(r"^[=+\-@\t\r]") & ~is_number).then("'" + text).otherwise(text)

    names = pl.DataFrame({"name": frame.columns}, schema={"name": pl.String}).select(guarded(pl.col("name")))
    safe = frame.with_columns(guarded(pl.col(name).cast(pl.String)).alias(name) for name in texts)
    return safe.rename(dict(zip(frame.columns, names.to_series(), strict=True)))


def check_flat(frame: pl.DataFrame) -> None:
    """Raise InputError for nested columns, which CSV cannot hold."""
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    if nested:
        raise InputError(
            f"column {nested[0]!r} holds {frame.schema[nested[0]]} values, which CSV cannot store: write .parquet"
        )


def check_suffix(path: str | Path) -> None:
    """Raise InputError if :func:`write_table` does not support the format of ``path``."""
    by_suffix(Path(path), _WRITERS)


def _write_csv(frame: pl.DataFrame, path: Path) -> None:
    with path.open("wb") as file:
        file.writelines(_csv_parts(frame))


def _write_packed_csv(frame: pl.DataFrame, path: Path) -> None:
    # omit time and name, so that the same data give the same bytes
    with path.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        packed.writelines(_csv_parts(frame))


def _csv_parts(frame: pl.DataFrame) -> Iterator[bytes]:
    """Iterate over parts of a CSV file; the writer of polars before 1.42 does not notice a full disk."""
    check_flat(frame)
    for number, part in enumerate(frame.iter_slices(100_000) if len(frame) else [frame]):
        yield part.write_csv(include_header=not number).encode()


def _write_parquet(frame: pl.DataFrame, path: Path) -> None:
    frame.write_parquet(path)


_WRITERS = {
    ".csv": _write_csv,
    ".csv.gz": _write_packed_csv,
    ".parquet": _write_parquet,
    ".pq": _write_parquet,
}
