"""From a matrix with relevance and query ids to a LETOR file."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from apexrank.atomic import replacing
from apexrank.errors import InputError
from apexrank.validation import is_missing


def write_letor(
    path: str | Path,
    X: Any,
    y: ArrayLike,
    groups: ArrayLike,
    docids: ArrayLike | None = None,
    *,
    zeros: bool | None = None,
) -> None:
    """Write a LETOR file, whole or not at all, gzip-compressed when its name ends in ``.gz``.

    :func:`read_letor` gives back the same numbers to the last bit; NaN is written as ``NULL``.

    Parameters
    ----------
    path : str or Path
        The file to write; an old one is replaced.
    X : array, frame or sparse matrix of shape (n, d)
        Features.
    y : array of n numbers
        Relevance, at least 0.
    groups : array of n ids
        Query ids without blanks and without ``#``.
    docids : array of n ids, optional
        Ids without blanks, written as ``#docid = ID``.
    zeros : bool, optional
        Whether to write features that are 0; default: for dense X only. Without them the reader cannot see a last
        column of zeros: give it ``n_features``.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank.datasets.letor import write_letor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "queries.txt"
    ...     write_letor(path, [[0.1, 0], [0, 2]], [1, 0], ["q1", "q1"], ["D1", "D2"], zeros=False)
    ...     print(path.read_text(), end="")
    1 qid:q1 1:0.1 #docid = D1
    0 qid:q1 2:2.0 #docid = D2
    """
    rows = _checked_matrix(X)
    n = rows.shape[0]
    relevance = _checked_relevance(y, n)
    queries = _checked_ids("groups", groups, n, forbidden="#")
    comments = (
        [""] * n if docids is None else [f" #docid = {id_}" for id_ in _checked_ids("docids", docids, n)]
    )
    all_features = not issparse(X) if zeros is None else zeros
    lines = (
        f"{grade} qid:{query}{features}{comment}\n".encode()
        for grade, query, features, comment in zip(
            relevance, queries, _feature_texts(rows, all_features), comments, strict=True
        )
    )
    _write_whole(Path(path), lines)


def _checked_matrix(X: Any) -> Any:
    rows: Any = csr_array(X, dtype=np.float64) if issparse(X) else np.asarray(X, dtype=np.float64)
    if rows.ndim != 2:
        raise InputError(f"X needs one row per document: expected two dimensions, got shape {rows.shape}")
    if np.isinf(rows.data if issparse(rows) else rows).any():
        raise InputError(
            "X holds an infinite value: replace it by a finite number, or by NaN, which is written as NULL"
        )
    if issparse(rows):
        rows.sum_duplicates()
    return rows


def _checked_relevance(y: ArrayLike, n: int) -> list[str]:
    relevance = np.asarray(y, dtype=np.float64)
    if relevance.shape != (n,):
        raise InputError(f"y needs one relevance per row: expected {n} numbers, got shape {relevance.shape}")
    if not (np.isfinite(relevance) & (relevance >= 0)).all():
        raise InputError(
            "y holds a relevance that is negative or not finite: relevance is a number of at least 0"
        )
    # grades are written as LETOR has them, 2 and not 2.0
    return [repr(int(grade)) if grade.is_integer() else repr(grade) for grade in relevance.tolist()]


def _checked_ids(name: str, ids: ArrayLike, n: int, forbidden: str = "") -> list[str]:
    found = np.asarray(ids)
    if found.shape != (n,):
        raise InputError(f"{name} needs one id per row: expected {n} ids, got shape {found.shape}")
    texts = [str(id_) for id_ in found.tolist()]
    for row, text in enumerate(texts):
        if is_missing(found[row]):
            raise InputError(f"{name} row {row}: the id is missing; fill it in or take the row out")
        if not text or any(
            c.isspace() or c in forbidden or "\ud800" <= c <= "\udfff" or c == "\0" for c in text
        ):
            marks = f" or {forbidden}" if forbidden else ""
            raise InputError(
                f"{name} row {row}: {text!r} cannot be written; an id is text without blanks{marks}"
            )
    return texts


def _feature_texts(rows: Any, zeros: bool) -> Iterator[str]:
    """The features of each row, each after a blank."""
    for i in range(rows.shape[0]):
        if issparse(rows) and not zeros:
            entries = slice(*rows.indptr[i : i + 2])
            columns, values = rows.indices[entries].tolist(), rows.data[entries].tolist()
        else:
            values = (rows[[i]].toarray()[0] if issparse(rows) else rows[i]).tolist()
            columns = range(len(values))
        yield "".join(
            f" {j + 1}:{'NULL' if value != value else repr(value)}"
            for j, value in zip(columns, values, strict=True)
            if zeros or value != 0
        )


def _write_whole(path: Path, lines: Iterable[bytes]) -> None:
    with replacing(path) as temporary, ExitStack() as stack:
        file: Any = stack.enter_context(temporary.open("wb"))
        if path.suffix.lower() == ".gz":
            # neither time nor name goes into the file: same data, same bytes
            file = stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))
        file.writelines(lines)
