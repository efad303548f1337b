"""Adapters for ir_datasets and PyTerrier: their judgements, runs and features as tables and rows of this library.

Neither package is imported: an ir_datasets dataset is recognised by its iterators, a PyTerrier frame by its columns
(``qid``, ``docno``, ``score``, ``label``, ``features``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from sklearn.utils import Bunch

from apexrank.datasets.letor import feature_names
from apexrank.errors import InputError
from apexrank.io.trec import KEY


def qrels_frame(source: Any) -> pl.DataFrame:
    """Convert the judgements of an ir_datasets dataset or a PyTerrier frame to a frame for :func:`apexrank.io.judged`.

    Parameters
    ----------
    source : dataset, data frame or iterable
        The result of ``ir_datasets.load``; a frame with ``qid``, ``docno`` and ``label``; or objects with ``query_id``,
        ``doc_id`` and ``relevance``, as read by ir_measures.

    Returns
    -------
    polars.DataFrame
        Columns ``query``, ``document`` and ``relevance``.

    Examples
    --------
    >>> import pandas as pd
    >>> from apexrank import io
    >>> run = pd.DataFrame({"qid": ["1", "1"], "docno": ["a", "b"], "score": [2.0, 1.0], "rank": [0, 1]})
    >>> qrels = pd.DataFrame({"qid": ["1"], "docno": ["b"], "label": [1]})
    >>> io.judged(run_frame(run), qrels_frame(qrels)).rows()
    [('1', 'a', 2.0, 0.0), ('1', 'b', 1.0, 1.0)]
    """
    return _frame(source, "qrels_iter", "relevance", "label")


def run_frame(source: Any) -> pl.DataFrame:
    """Convert the scored documents of an ir_datasets dataset, or PyTerrier results, to a run; see :func:`qrels_frame`.

    Parameters
    ----------
    source : dataset, data frame or iterable
        A dataset with scored documents; a frame with ``qid``, ``docno`` and ``score``; or objects with ``query_id``,
        ``doc_id`` and ``score``.

    Examples
    --------
    >>> from collections import namedtuple
    >>> ScoredDoc = namedtuple("ScoredDoc", "query_id doc_id score")
    >>> run_frame([ScoredDoc("1", "a", 2.0)]).rows()
    [('1', 'a', 2.0)]
    """
    return _frame(source, "scoreddocs_iter", "score", "score")


def _frame(source: Any, iterator: str, value: str, theirs: str) -> pl.DataFrame:
    if hasattr(source, "columns"):
        columns = [_column(source, name) for name in ("qid", "docno", theirs)]
    else:
        rows = getattr(source, iterator, source.__iter__ if hasattr(source, "__iter__") else None)
        if rows is None:
            raise InputError(
                f"a dataset without {iterator} has no {value}: give one that has, or a data frame"
            )
        columns = [
            list(c) for c in zip(*((r.query_id, r.doc_id, getattr(r, value)) for r in rows()), strict=True)
        ]
    if not columns or not len(columns[0]):
        raise InputError(f"there is no row with a {value}")
    return pl.DataFrame(dict(zip((*KEY, value), columns, strict=True))).with_columns(
        pl.col(KEY).cast(pl.String)
    )


def _column(frame: Any, name: str) -> list[Any]:
    if name not in frame.columns:
        raise InputError(f"the data frame has no column {name!r}: PyTerrier's frames have it")
    return list(frame[name])


def feature_rows(results: Any, qrels: Any = None) -> Bunch:
    """Convert PyTerrier results with features to rows like those of :func:`apexrank.datasets.read_letor`.

    Parameters
    ----------
    results : data frame
        ``qid``, ``docno`` and ``features``, an array in each row, as returned by ``bm25 >> (tf ** pl2)``.
    qrels : data frame or dataset, optional
        Judgements, as in :func:`qrels_frame`; an unjudged document, or one judged below 0, has relevance 0.
        Without them the column ``label`` of the results is used.

    Returns
    -------
    Bunch
        With ``data``, ``target``, ``groups``, ``docids``, ``feature_names`` and ``source``.

    Examples
    --------
    >>> import pandas as pd
    >>> results = pd.DataFrame({"qid": ["1", "1"], "docno": ["a", "b"], "features": [[3.0, 1.0], [2.0, 5.0]]})
    >>> rows = feature_rows(results, pd.DataFrame({"qid": ["1"], "docno": ["b"], "label": [2]}))
    >>> rows.data.tolist(), rows.target.tolist(), rows.groups.tolist(), rows.docids.tolist()
    ([[3.0, 1.0], [2.0, 5.0]], [0.0, 2.0], ['1', '1'], ['a', 'b'])
    """
    lists = _column(results, "features")
    if len({np.shape(row) for row in lists}) != 1:
        raise InputError("the rows have different numbers of features: give results of one pipeline")
    data = np.array(lists, dtype=np.float64)
    frame = pl.DataFrame({"query": _column(results, "qid"), "document": _column(results, "docno")}).cast(
        pl.String
    )
    if qrels is None:
        relevance = pl.Series("relevance", _column(results, "label"))
    else:
        relevance = frame.join(qrels_frame(qrels), on=KEY, how="left", maintain_order="left")["relevance"]
    return Bunch(
        data=data,
        target=relevance.cast(pl.Float64).fill_null(0.0).clip(0.0).to_numpy(),
        groups=frame["query"].to_numpy().astype(str),
        docids=frame["document"].to_numpy().astype(object),
        feature_names=feature_names(data.shape[1]),
        source="",
    )


@dataclass
class CountedGroups:
    """Ranker for callers that pass the sizes of consecutive queries, like PyTerrier, LightGBM and XGBoost.

    ``pt.ltr.apply_learned_model(CountedGroups(MonotoneRetargeting()), form="ltr")`` is a stage of a PyTerrier pipeline.
    With ``form="regression"`` the ranker would get no queries, and all rows would form one list.

    Parameters
    ----------
    ranker : estimator
        Estimator whose ``fit`` accepts ``groups``; it is fitted in place, not cloned.

    Examples
    --------
    >>> from apexrank import MonotoneRetargeting, datasets
    >>> rows = datasets.make_letor_example(random_state=0)
    >>> counts = np.unique(rows.groups, return_counts=True)[1]
    >>> ordered = np.argsort(rows.groups, kind="stable")
    >>> model = CountedGroups(MonotoneRetargeting()).fit(rows.data[ordered], rows.target[ordered], group=counts)
    >>> direct = MonotoneRetargeting().fit(rows.data, rows.target, groups=rows.groups)
    >>> bool(np.allclose(model.predict(rows.data), direct.predict(rows.data)))
    True
    """

    ranker: Any

    def fit(self, X: Any, y: Any, group: Any = None, **validation: Any) -> Self:
        """Fit on rows of consecutive queries with ``group`` rows each; validation rows are ignored."""
        if group is None or np.sum(group) != len(X):
            raise InputError(f"`group` must be the sizes of the queries, {len(X)} rows in all")
        self.ranker.fit(X, y, groups=np.repeat(np.arange(len(group)), group))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Score of each row."""
        return self.ranker.predict(X)
