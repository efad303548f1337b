"""Many measures of the same rows with one sort: over all groups, or for each of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics._levels import Empty
from apexrank.metrics._rows import Rows, Ties, judged_rows
from apexrank.metrics.evaluation import Measure, find_measures

if TYPE_CHECKING:
    import polars as pl


def evaluate(
    y_true: ArrayLike,
    scores: ArrayLike,
    measures: str | Iterable[str],
    *,
    ties: Ties | None = None,
    empty: Empty = "skip",
    relevant: float | None = None,
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> dict[str, float]:
    """Several measures by name, with one sort for all of them.

    Parameters
    ----------
    y_true, scores, empty, pos_label, groups, sample_weight
        As in `apexrank.metrics.auc`; labels may also be grades of relevance, as in `apexrank.metrics.ndcg`.
    measures : str or iterable of str
        Names such as "auc", "ndcg", "ndcg_at_10" or "ndcg@10", "map", "precision_at_5", "p_norm_risk_16": any that
        `get_scorer` knows. Losses such as "r_max" keep their sign here.
    ties : {"pessimistic", "average", "optimistic", "given"}, optional
        One rule for all measures; by default each has its own. "given" repeats trec_eval on rows in its order.
    relevant : float, optional
        The grade from which on a row counts as positive in measures of two classes.

    Examples
    --------
    >>> evaluate([1, 0, 2, 0], [0.9, 0.7, 0.4, 0.1], ["auc", "ndcg@2", "map"])
    {'auc': 0.75, 'ndcg@2': 0.27541..., 'map': 0.8333...}
    """
    rows = judged_rows(y_true, scores, pos_label, relevant, groups, sample_weight)
    options = {} if ties is None else {"ties": ties}
    return {m.name: _mean(m, rows, empty, options) for m in find_measures(measures)}


def _mean(measure: Measure, rows: Rows, empty: Empty, options: dict[str, Any]) -> float:
    try:
        return measure.values(rows, **options).mean(empty, rows.names)
    except InputError as error:
        raise InputError(f"{measure.name}: {error}") from None


def per_group(
    y_true: ArrayLike,
    scores: ArrayLike,
    measures: str | Iterable[str],
    *,
    groups: ArrayLike | None = None,
    ties: Ties | None = None,
    relevant: float | None = None,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> pl.DataFrame:
    """Measures of each group (query) as a table. Parameters as in `evaluate`.

    Returns
    -------
    polars.DataFrame
        A row for each group, sorted by its id: ``group``, its number of rows ``n``, the number of them that are
        ``relevant``, and a column for each measure, null where it is not defined.

    Examples
    --------
    >>> table = per_group([1, 0, 0, 0], [0.9, 0.7, 0.4, 0.1], ["mrr", "auc"], groups=["a", "a", "b", "b"])
    >>> table.rows()
    [('a', 2, 1, 1.0, 1.0), ('b', 2, 0, None, None)]
    """
    import polars as pl

    rows = judged_rows(y_true, scores, pos_label, relevant, groups, sample_weight)
    options = {} if ties is None else {"ties": ties}
    starts = rows.groups.indptr[:-1]
    relevant_rows = np.add.reduceat(rows.positive[rows.groups.order].astype(np.int64), starts)
    columns = [
        pl.Series("group", rows.names),
        pl.Series("n", np.diff(rows.groups.indptr)),
        pl.Series("relevant", relevant_rows),
    ]
    for measure in find_measures(measures):
        value, defined = measure.values(rows, **options)
        columns.append(pl.Series(measure.name, np.where(defined, value, np.nan), nan_to_null=True))
    return pl.DataFrame(columns)
