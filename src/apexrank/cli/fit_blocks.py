"""``apexrank fit --engine``: tables larger than memory, in one process or on several."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apexrank.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from apexrank.io import Recipe, TableRanker
    from apexrank.io.judging import Judged

ENGINES = ("blocks", "dask")


def fit_by_engine(
    train: Path, recipe: Recipe, estimator: Any, engine: str, workers: int | None
) -> tuple[TableRanker, Judged]:
    """Fit on a file or folder; what an engine cannot do is refused before anything is read."""
    from apexrank.io.stream_fit import fit_table_blocks

    if engine not in ENGINES:
        raise InputError(f"unknown engine {engine!r}: use one of {', '.join(ENGINES)}")
    if workers is not None and (engine != "dask" or workers < 1):
        raise InputError("--workers is a number of processes of --engine dask, at least 1")
    _check(recipe, estimator)
    if engine == "blocks":
        return fit_table_blocks(train, recipe, estimator)
    if train.suffix.lower() in (".csv", ".tsv", ".gz"):
        raise InputError("--engine dask reads Parquet files: use --engine blocks for CSV")
    return _fit_on_dask(train, recipe, estimator, workers)


def _check(recipe: Recipe, estimator: Any) -> None:
    from apexrank.rankers.base import LinearFit

    if hasattr(estimator, "cv") or hasattr(estimator, "param_grid"):
        raise InputError("--cv needs the table in memory: choose the parameters on some of the rows")
    if not isinstance(estimator, LinearFit) or getattr(estimator, "kernel", None) is not None:
        raise InputError("--engine takes linear models: others need the table in memory")


def _fit_on_dask(
    train: Path, recipe: Recipe, estimator: Any, workers: int | None
) -> tuple[TableRanker, Judged]:
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingExtraError('--engine dask needs Dask: pip install "apexrank[dask]"') from error
    from apexrank.distributed.files import map_spans, span_blocks
    from apexrank.io.stream_fit import fit_table_blocks

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,  # an error is one line, and the command says it
        ) as cluster,
        Client(cluster),
    ):
        return fit_table_blocks(train, recipe, estimator, source=span_blocks, mapped=map_spans)
