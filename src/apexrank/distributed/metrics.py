"""Ranking measures for Dask collections.

Without groups the scores and labels of all rows are collected at the caller: two columns, 16 bytes per row, plus about
three times as much while they are sorted; 100 million rows need about 6 GB. With groups every partition evaluates its
own groups, and one number per group and measure is returned.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from apexrank import metrics
from apexrank.errors import InputError
from apexrank.problem.blocks import Block, check_whole
from apexrank.problem.dask import collection_blocks, dask_module

if TYPE_CHECKING:
    import polars as pl


def evaluate(
    y_true: Any, scores: Any, measures: str | Iterable[str], *, groups: Any = None, **options: Any
) -> dict[str, float]:
    """Evaluate measures on Dask arrays or series, like :func:`apexrank.metrics.evaluate`.

    Parameters
    ----------
    y_true, scores : Dask arrays or series
        Labels or relevance, and scores.
    measures : str or iterable of str
        Names such as "auc" or "ndcg_at_10".
    groups : Dask array or series, optional
        Group ids; each group must be in a single partition. The mean is over the groups where a measure is defined.
    options
        ``ties``, ``relevant`` and ``pos_label`` of :func:`apexrank.metrics.evaluate`.

    Examples
    --------
    >>> import dask.array as da
    >>> y, scores = da.from_array([1, 0, 1, 0], chunks=2), da.from_array([0.9, 0.7, 0.4, 0.1], chunks=2)
    >>> evaluate(y, scores, "auc")
    {'auc': 0.75}
    >>> evaluate(y, scores, "auc", groups=da.from_array([1, 1, 2, 2], chunks=2))
    {'auc': 1.0}
    """
    names = [measures] if isinstance(measures, str) else list(measures)
    if groups is None:
        y, s = dask_module().compute(y_true, scores)
        return metrics.evaluate(np.asarray(y), np.asarray(s), names, **options)
    table = per_group(y_true, scores, names, groups=groups, **options)
    found: dict[str, Any] = {name: table[name].mean() for name in table.columns[3:]}
    for name, value in found.items():
        if value is None:
            raise InputError(f"{name}: no group has what the measure needs, such as rows of both classes")
    return {name: float(value) for name, value in found.items()}


def per_group(
    y_true: Any, scores: Any, measures: str | Iterable[str], *, groups: Any, **options: Any
) -> pl.DataFrame:
    """Evaluate measures by group on Dask arrays or series, like :func:`apexrank.metrics.per_group`.

    Examples
    --------
    >>> import dask.array as da
    >>> y, scores = da.from_array([1, 0, 1, 0], chunks=2), da.from_array([0.9, 0.7, 0.1, 0.4], chunks=2)
    >>> per_group(y, scores, "mrr", groups=da.from_array(["a", "a", "b", "b"], chunks=2)).rows()
    [('a', 2, 1, 1.0), ('b', 2, 1, 0.5)]
    """
    import polars as pl

    names = [measures] if isinstance(measures, str) else list(measures)
    column = scores[:, None] if hasattr(scores, "chunks") else scores.to_frame()
    blocks = collection_blocks(column, y_true, groups, persist=False)
    tables = [table for table in blocks.map(_measure, names, options) if table is not None]
    check_whole([table["group"].to_numpy() for table in tables])
    return pl.concat(tables).sort("group")


def _measure(block: Block, names: list[str], options: dict[str, Any]) -> pl.DataFrame | None:
    if not len(block.y):
        return None
    return metrics.per_group(block.y, block.X[:, 0], names, groups=block.groups, **options)


def auc(y_true: Any, scores: Any, *, groups: Any = None) -> float:
    """Area under the ROC curve of Dask arrays or series.

    Examples
    --------
    >>> import dask.array as da
    >>> auc(da.from_array([1, 0, 0], chunks=2), da.from_array([0.9, 0.7, 0.4], chunks=2))
    1.0
    """
    return evaluate(y_true, scores, "auc", groups=groups)["auc"]


def partial_auc(y_true: Any, scores: Any, max_fpr: float = 0.1, *, groups: Any = None) -> float:
    """Area under the ROC curve up to a false positive rate, of Dask arrays or series.

    Examples
    --------
    >>> import dask.array as da
    >>> partial_auc(da.from_array([1, 0, 0], chunks=2), da.from_array([0.9, 0.7, 0.4], chunks=2), max_fpr=0.5)
    1.0
    """
    return _one(f"partial_auc_{max_fpr:g}", y_true, scores, groups)


def precision_at(y_true: Any, scores: Any, k: int, *, groups: Any = None) -> float:
    """Share of positives among the first k, of Dask arrays or series.

    Examples
    --------
    >>> import dask.array as da
    >>> precision_at(da.from_array([1, 0, 0], chunks=2), da.from_array([0.9, 0.7, 0.4], chunks=2), k=2)
    0.5
    """
    return _one(f"precision_at_{k}", y_true, scores, groups)


def ndcg(y_true: Any, scores: Any, k: int | None = None, *, groups: Any = None) -> float:
    """Normalised discounted cumulative gain of Dask arrays or series.

    Examples
    --------
    >>> import dask.array as da
    >>> ndcg(da.from_array([2, 1, 0], chunks=2), da.from_array([0.9, 0.7, 0.4], chunks=2))
    1.0
    """
    return _one("ndcg" if k is None else f"ndcg_at_{k}", y_true, scores, groups)


def _one(name: str, y_true: Any, scores: Any, groups: Any) -> float:
    return next(iter(evaluate(y_true, scores, name, groups=groups).values()))
