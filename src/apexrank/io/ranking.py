"""From a model and a table of new rows to a ranked list."""

from __future__ import annotations

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.io.ranker import TableRanker
from apexrank.io.tables import Table
from apexrank.validation import segment


def rank_table(
    ranker: TableRanker,
    table: Table,
    *,
    top: int | None = None,
    fpr: float | None = None,
    explain: bool = False,
    keep: bool = False,
    id: str | None = None,
) -> pl.DataFrame:
    """Rank the rows of a table, best first, inside each group when the model has groups.

    Parameters
    ----------
    ranker : TableRanker
        A fitted model.
    table : Table
        Rows to rank; has every feature column of the model.
    top : int, optional
        Keep so many rows (of each group).
    fpr : float, optional
        Keep the rows above the score that at most this share of the training negatives exceeded.
    explain : bool
        Add ``why_1`` to ``why_3``, the columns that lift the row most.
    keep : bool
        Add all other columns of the table.
    id : str, optional
        Column that names the rows; by default the model's, or the row number when the table lacks it.

    Returns
    -------
    polars.DataFrame
        The group and id columns, ``rank``, ``score``, then what was asked for.
    """
    _check_budget(ranker, top, fpr)
    scores = ranker.score(table)
    groups = ranker.group_ids(table)
    rows, ranks = _order(scores, groups)
    kept = np.ones(len(rows), dtype=bool) if top is None else ranks <= top
    if fpr is not None:
        assert ranker.thresholds is not None  # _check_budget has seen to it
        kept &= scores[rows] > ranker.thresholds.at(fpr)
    rows, ranks = rows[kept], ranks[kept]
    columns = _names(ranker, table, id, rows)
    columns += [pl.Series("rank", ranks), pl.Series("score", scores[rows])]
    if explain:
        columns += _why(ranker, Table(table.frame[rows], table.source))
    if keep:
        given = {column.name for column in columns if column.name not in ("rank", "score")}
        columns += [table.frame[name][rows] for name in table.names if name not in given]
    return _frame(table, columns)


def _check_budget(ranker: TableRanker, top: int | None, fpr: float | None) -> None:
    if top is not None and fpr is not None:
        raise InputError("--top and --fpr are two ways to set a budget: give one of them")
    if top is not None and top < 1:
        raise InputError(f"--top needs a number of at least 1, got {top}")
    if fpr is not None and ranker.thresholds is None:
        raise InputError("--fpr needs a model of two classes, but this one ranks by grades: use --top")
    if fpr is not None and ranker.groups is not None:
        raise InputError(
            "--fpr compares scores over the whole list, but the model ranks inside groups: use --top"
        )


def _order(scores: np.ndarray, groups: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers, best first inside each group, and their ranks; groups and ties keep the table's order."""
    segments = segment(groups, len(scores))
    first = segments.order[segments.indptr[:-1]][segments.of_rows()]
    best = np.lexsort((-scores, first))
    starts, sizes = np.unique(first[best], return_index=True, return_counts=True)[1:]
    return best, np.arange(len(scores)) - np.repeat(starts, sizes) + 1


def _names(ranker: TableRanker, table: Table, id: str | None, rows: np.ndarray) -> list[pl.Series]:
    """The columns that say which row it is."""
    names = [] if ranker.groups is None else [ranker.groups]
    if id is not None:
        table.column(id)
    wanted = id or ranker.id
    if wanted is not None and wanted in table.names and wanted not in names:
        names.append(wanted)
    columns = [table.frame[name][rows] for name in names]
    return columns if wanted in names else [*columns, pl.Series("row", rows + 1)]


def _why(ranker: TableRanker, table: Table) -> list[pl.Series]:
    reasons = ranker.explain(table)
    padded = [[*row, None, None, None] for row in reasons]
    return [pl.Series(f"why_{i + 1}", [row[i] for row in padded], dtype=pl.String) for i in range(3)]


def _frame(table: Table, columns: list[pl.Series]) -> pl.DataFrame:
    names = [column.name for column in columns]
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                f"{table.source} has a column {name!r} of its own: rename it, or leave out --keep"
            )
    return pl.DataFrame(columns)
