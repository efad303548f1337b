"""MQ2008-agg, LETOR's set for rank aggregation: where 25 rankers put the documents of each query."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from apexrank.datasets import Fold, letor_folds
from apexrank.datasets.sources import DATA_VARIABLE, data_path
from apexrank.errors import InputError, MissingDataError

N_RANKERS = 25
_PARTS = (1, 2, 3, 4, 5)


def load_mq2008_agg(part: int | None = None, *, path: str | Path | None = None) -> Bunch:
    """MQ2008-agg: 15,211 documents of 784 queries, ranked by 25 rankers.

    ``data[i, j]`` is the position of document i in the list that ranker j gave for its query, **1 for the best**, and
    NaN where the list lacks the document (``NULL`` in the files, 65 % of the entries). Positions are those of the
    rankers' own long lists (up to 530) and not only of the documents that are here; no two documents of a query share
    one. The labels decide what the numbers mean: of all pairs of documents of one query, of different relevance and
    ranked by the same ranker, the more relevant one has the **smaller** number in 62.6 % (22 of the 25 rankers, all but
    1, 7 and 17, have more than half); and the mean NDCG of the best ranker is 0.747 with small numbers first, 0.658
    with large ones first. Being in a list at all tells as much: the mean relevance is higher in the list than outside
    for every ranker but 13, 20, 24 and 25.

    The queries, documents, relevance (0, 1, 2) and five parts are those of MQ2008; 220 queries have no relevant
    document. Source: LETOR 4.0 (Qin and Liu, 2009). Nothing was cleaned.

    Parameters
    ----------
    part : {1, 2, 3, 4, 5}, optional
        One of the parts A1 to A5; default: all of them.
    path : str or Path, optional
        The folder with ``A1.txt`` to ``A5.txt`` (or ``.gz``); default: ``aggregation/MQ2008-agg`` below the folder that
        the environment variable ``APEXRANK_DATA`` names.

    Returns
    -------
    Bunch
        With ``data`` (positions), ``target`` (relevance), ``groups`` (query ids), ``docids``, ``part`` (1 to 5 for each
        row), ``feature_names``, ``source`` and ``DESCR``.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank_papers.lovasz.mq2008_agg import load_mq2008_agg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(1, 6):
    ...         ranks = " ".join(f"{j}:{j}" for j in range(2, 26))
    ...         _ = (Path(folder) / f"A{k}.txt").write_text(f"{k} qid:{k} 1:NULL {ranks} #docid = D{k}")
    ...     lists = load_mq2008_agg(path=folder)
    >>> lists.data.shape, lists.data[0, :3].tolist(), lists.target.tolist(), lists.docids[4]
    ((5, 25), [nan, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0, 5.0], 'D5')
    """
    if part is not None and part not in _PARTS:
        raise InputError(f"part must be 1, 2, 3, 4 or 5, or left out for all of them, got {part!r}")
    # fold k tests on part k + 4, counted round, so the five test sets are the five parts
    parts = {(k + 3) % 5 + 1: fold.test for k, fold in enumerate(mq2008_agg_folds(path), 1)}
    chosen = {k: parts[k] for k in _PARTS if part in (None, k)}
    return Bunch(
        **{
            key: np.concatenate([bunch[key] for bunch in chosen.values()])
            for key in ("data", "target", "groups", "docids")
        },
        part=np.concatenate([np.full(len(bunch.target), k) for k, bunch in chosen.items()]),
        feature_names=parts[1].feature_names,
        source=", ".join(bunch.source for bunch in chosen.values()),
        DESCR=cleandoc(load_mq2008_agg.__doc__ or ""),
    )


def mq2008_agg_folds(path: str | Path | None = None) -> Iterator[Fold]:
    """Give the five folds: number k trains on parts k to k + 2, validates on k + 3, tests on k + 4, counted round.

    Parameters
    ----------
    path : str or Path, optional
        As in :func:`load_mq2008_agg`, which says what the numbers are.

    Yields
    ------
    Fold
        ``(name, train, validation, test)``; each part is a bunch with ``data``, ``target``, ``groups`` and ``docids``.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank_papers.lovasz.mq2008_agg import mq2008_agg_folds
    >>> ranks = " ".join(f"{j}:{j}" for j in range(1, 26))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(1, 6):
    ...         _ = (Path(folder) / f"A{k}.txt").write_text(f"{k} qid:{k} {ranks} #docid = D{k}")
    ...     folds = list(mq2008_agg_folds(folder))
    >>> [(fold.train.docids.tolist(), fold.validation.docids[0], fold.test.docids[0]) for fold in folds][1]
    (['D2', 'D3', 'D4'], 'D5', 'D1')
    """
    folder = data_path("aggregation", "MQ2008-agg") if path is None else Path(path)
    if folder is None:
        raise MissingDataError(
            "MQ2008-agg is not there: put A1.txt to A5.txt (or .gz) into a folder aggregation/MQ2008-agg below "
            f"{DATA_VARIABLE}, or name their folder with path="
        )
    return map(_of_ranks, letor_folds(folder, n_features=N_RANKERS, null="nan"))


def _of_ranks(fold: Fold) -> Fold:
    for bunch in fold[1:]:
        _check_ranks(bunch)
        bunch.feature_names = [f"ranker_{j}" for j in range(1, N_RANKERS + 1)]
    return fold


def _check_ranks(bunch: Bunch) -> None:
    known = np.where(np.isnan(bunch.data), 1.0, bunch.data)
    bad = (known < 1) | (known % 1 != 0)
    if bad.any():
        row, ranker = np.argwhere(bad)[0]
        raise InputError(
            f"{bunch.source}: document {bunch.docids[row]} of query {bunch.groups[row]} has the rank "
            f"{bunch.data[row, ranker]:g} for ranker {ranker + 1}; write a whole number of at least 1, or NULL"
        )
