"""From a LETOR file to a matrix with relevance, query ids and document ids."""

from __future__ import annotations

import math
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_array
from sklearn.utils import Bunch

from apexrank.datasets.letor.lines import Rows, read_rows
from apexrank.errors import InputError
from apexrank.groups import segment

_NULL_CHOICES = ("raise", "nan", "zero", "min")
_MOST_NAMES = 1_000_000
_FEW_CELLS = 100_000_000  # of 0.8 GB


def read_letor(
    path: str | Path,
    *,
    n_features: int | None = None,
    null: str | float = "raise",
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
) -> Bunch:
    r"""Read a LETOR file, plain or gzip-compressed.

    Parameters
    ----------
    path : str or Path
        Lines ``relevance qid:ID feature:value ... # comment``. Empty lines and lines that only comment are passed over;
        the rows of a query need not stand together.
    n_features : int, optional
        Number of columns; default: the largest feature number of the file.
    null : {"raise", "nan", "zero", "min"} or float, default="raise"
        What a value ``NULL`` (or ``nan``) becomes. ``"min"`` is LETOR's own way: the smallest value that the feature
        has in the query, 0 when it has none there.
    sparse : bool, default=False
        Give ``data`` as a CSR array without its zeros.
    dtype : {float64, float32}, default=float64
        Type of ``data``.

    Returns
    -------
    Bunch
        With ``data``, ``target`` (relevance), ``groups`` (query ids, as text), ``docids`` (objects of type str: what
        ``docid = ...`` names in the comment, else its first word, else the number of the row, counted from 1),
        ``feature_names`` (``None`` for more than a million features) and ``source`` (the path).

    Raises
    ------
    InputError
        Naming file and line, for what cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank.datasets.letor import read_letor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "queries.txt"
    ...     _ = path.write_text("2 qid:7 1:0.5 3:NULL # docid = D1\n0 qid:7 2:1 3:4\n")
    ...     queries = read_letor(path, null="min")
    >>> queries.data.tolist(), queries.target.tolist()
    ([[0.5, 0.0, 4.0], [0.0, 1.0, 4.0]], [2.0, 0.0])
    >>> queries.groups.tolist(), queries.docids.tolist()
    (['7', '7'], ['D1', '2'])
    """
    _check_options(n_features, null, dtype)
    rows = read_rows(path)
    if not len(rows.lines):
        raise InputError(f"{path} has no rows: it needs lines such as '1 qid:7 1:0.5 2:3 # docid = D1'")
    if n_features is None and not len(rows.columns):
        raise InputError(f"{path} names no feature in any line: give n_features")
    groups = np.array(rows.qids)
    columns, values = np.frombuffer(rows.columns, np.intc) - 1, np.frombuffer(rows.values)
    width = int(columns.max() + 1 if n_features is None else n_features)
    _check_entries(path, rows, columns, values, width, null)
    indptr = np.frombuffer(rows.ends, np.int64)
    values = _filled(values, columns, indptr, groups, width, null)
    return Bunch(
        data=_matrix(path, (values, columns, indptr), (len(groups), width), sparse, dtype),
        target=np.array(rows.relevance),
        groups=groups,
        docids=np.array(rows.docids, dtype=object),
        feature_names=feature_names(width),
        source=str(path),
    )


def feature_names(width: int) -> list[str] | None:
    """``feature_1`` and so on, or ``None`` for more than a million."""
    # hashed features have numbers up to 2**31: their names would need more memory than the data
    return [f"feature_{j}" for j in range(1, width + 1)] if width <= _MOST_NAMES else None


def _check_options(n_features: Any, null: Any, dtype: DTypeLike) -> None:
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise InputError(f"dtype must be float32 or float64, got {np.dtype(dtype)}")
    if n_features is not None and (not isinstance(n_features, int | np.integer) or n_features < 1):
        raise InputError(f"n_features must be a whole number of at least 1, got {n_features!r}")
    if null not in _NULL_CHOICES and not (isinstance(null, Real) and math.isfinite(null)):
        raise InputError(f"unknown null {null!r}: use one of {', '.join(_NULL_CHOICES)}, or a finite number")


def _check_entries(
    path: str | Path, rows: Rows, columns: np.ndarray, values: np.ndarray, width: int, null: str | float
) -> None:
    def refuse(bad: np.ndarray, what: str) -> None:
        if bad.any():
            entry = int(np.argmax(bad))
            row = np.searchsorted(np.frombuffer(rows.ends, np.int64), entry, side="right") - 1
            raise InputError(f"{path} line {rows.lines[row]}: feature {columns[entry] + 1} {what}")

    refuse(np.isinf(values), "is infinite; give a finite number")
    refuse(columns >= width, f"is beyond n_features={width}; raise n_features or leave it out")
    if null == "raise":
        refuse(np.isnan(values), "is NULL; choose null='nan', 'zero', 'min' or a number to put there")


def _filled(
    values: np.ndarray,
    columns: np.ndarray,
    indptr: np.ndarray,
    groups: np.ndarray,
    width: int,
    null: str | float,
) -> np.ndarray:
    """Values with every NaN replaced as ``null`` says."""
    missing = np.isnan(values)
    if null in ("raise", "nan") or not missing.any():
        return values
    if null == "min":
        return np.where(missing, _query_minima(values, columns, indptr, groups, width), values)
    return np.where(missing, 0.0 if null == "zero" else float(null), values)


def _query_minima(
    values: np.ndarray, columns: np.ndarray, indptr: np.ndarray, groups: np.ndarray, width: int
) -> np.ndarray:
    """For each entry the smallest value of its feature in its query, 0 when all are NULL."""
    queries = segment(groups, len(groups))
    query = np.repeat(queries.of_rows(), np.diff(indptr))
    cells = segment(query * np.int64(width) + columns, len(values))
    low = np.fmin.reduceat(values[cells.order], cells.indptr[:-1])
    # a document that does not name the feature has a 0 there
    unnamed = np.diff(cells.indptr) < np.diff(queries.indptr)[cells.names // width]
    low = np.where(unnamed, np.fmin(low, 0.0), low)
    return np.nan_to_num(low)[cells.of_rows()]


def _matrix(
    path: str | Path, entries: tuple[np.ndarray, ...], shape: tuple[int, int], sparse: bool, dtype: DTypeLike
) -> Any:
    values, columns, indptr = entries
    matrix = csr_array((values.astype(dtype, copy=False), columns, indptr), shape=shape)
    if sparse:
        matrix.sort_indices()
        matrix.eliminate_zeros()
        return matrix
    most = max(_FEW_CELLS, 100 * len(values))
    if shape[0] * shape[1] > most:  # nearly all of them zeros that nobody wrote
        raise InputError(
            f"{path}: {shape[0]:,} x {shape[1]:,} numbers, nearly all of them zeros, are more than {most:,}; drop rows "
            "or features from the file, or read it in Python with sparse=True"
        )
    try:
        return matrix.toarray()
    except MemoryError:
        raise InputError(
            f"{path}: {shape[0]:,} x {shape[1]:,} numbers do not fit into memory; drop rows or features from the file, "
            "or read it in Python with sparse=True"
        ) from None
