"""LETOR files (SVMlight lines with query ids): read them into a matrix, write them, and read the folds of a set.

A line is ``relevance qid:ID feature:value feature:value ... # comment``; features are numbered from 1, in any order,
and one that is not named is 0. scikit-learn's ``load_svmlight_file`` is faster, but reads no ``NULL``, no query ids
that are text and no document ids, and its errors name no line.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.sparse import csr_array, issparse, vstack
from sklearn.utils import Bunch

from apexrank.atomic import write_lines
from apexrank.errors import InputError
from apexrank.textfile import is_utf8, numbered_lines
from apexrank.validation import check_count, is_missing, segment

_NULL_CHOICES = ("raise", "nan", "zero", "min")
_MOST_NAMES = 1_000_000
_FEW_CELLS = 100_000_000  # of 0.8 GB
_SCANNED_ROWS = 4096
_ALIKE = 10  # rows with the same features before a last one with fewer counts as cut off
_DOCID = re.compile(rb"\bdocid\s*=\s*(\S+)")
_N_PARTS = 5
_PART_PREFIXES = ("S", "A")
_FOLD_FILES = (
    ("train.txt", "trainingset.txt"),
    ("vali.txt", "validationset.txt"),
    ("test.txt", "testset.txt"),
)


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
    rows = next(_row_batches(path), None)
    if rows is None:
        raise InputError(f"{path} has no rows: it needs lines such as '1 qid:7 1:0.5 2:3 # docid = D1'")
    if n_features is None and not len(rows.columns):
        raise InputError(f"{path} names no feature in any line: give n_features")
    return _bunch(path, rows, n_features, null, sparse, dtype)


def letor_batches(path: str | Path, rows: int, n_features: int) -> Iterator[Bunch]:
    r"""Read a LETOR file a number of rows at a time, each batch as :func:`read_letor` gives it, with NaN for NULL.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "queries.txt"
    ...     _ = path.write_text("2 qid:7 1:0.5\n0 qid:7 2:1\n1 qid:8 3:4\n")
    ...     width = letor_width(path)
    ...     [batch.data.tolist() for batch in letor_batches(path, 2, width)]
    [[[0.5, 0.0, 0.0], [0.0, 1.0, 0.0]], [[0.0, 0.0, 4.0]]]
    """
    for some in _row_batches(path, rows):
        yield _bunch(path, some, n_features, "nan", False, np.float64)


def letor_width(path: str | Path) -> int:
    """Largest feature number of a LETOR file, of which a few thousand rows are in memory at a time."""
    return max((max(rows.columns, default=0) for rows in _row_batches(path, _SCANNED_ROWS)), default=0)


def _bunch(
    path: str | Path,
    rows: _LetorRows,
    n_features: int | None,
    null: str | float,
    sparse: bool,
    dtype: DTypeLike,
) -> Bunch:
    groups = np.array(rows.qids)
    columns, values = np.frombuffer(rows.columns, np.intc) - 1, np.frombuffer(rows.values)
    width = int(columns.max() + 1 if n_features is None else n_features)
    matrix = csr_array((values, columns, np.frombuffer(rows.ends, np.int64)), shape=(len(groups), width))
    _check_entries(path, rows.lines, matrix, null)
    _fill_null(matrix, groups, null)
    matrix.data = matrix.data.astype(dtype, copy=False)
    if sparse:
        matrix.sort_indices()
        matrix.eliminate_zeros()
    return Bunch(
        data=matrix if sparse else _dense(path, matrix),
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
    if n_features is not None:
        check_count("n_features", n_features)
    if null not in _NULL_CHOICES and not (isinstance(null, Real) and math.isfinite(null)):
        raise InputError(f"unknown null {null!r}: use one of {', '.join(_NULL_CHOICES)}, or a finite number")


def _check_entries(path: str | Path, lines: array, matrix: csr_array, null: str | float) -> None:
    def refuse(bad: np.ndarray, what: str) -> None:
        if bad.any():
            entry = int(np.argmax(bad))
            line = lines[np.searchsorted(matrix.indptr, entry, side="right") - 1]
            raise InputError(f"{path} line {line}: feature {matrix.indices[entry] + 1} {what}")

    width = matrix.shape[1]
    refuse(np.isinf(matrix.data), "is infinite; give a finite number")
    refuse(matrix.indices >= width, f"is beyond n_features={width}; raise n_features or leave it out")
    if null == "raise":
        refuse(np.isnan(matrix.data), "is NULL; choose null='nan', 'zero', 'min' or a number to put there")


def _fill_null(matrix: csr_array, groups: np.ndarray, null: str | float) -> None:
    """Replace every NaN as ``null`` says."""
    missing = np.isnan(matrix.data)
    if null in ("raise", "nan") or not missing.any():
        return
    if null == "min":
        matrix.data[missing] = _query_minima(matrix, groups)[missing]
    else:
        matrix.data[missing] = 0.0 if null == "zero" else float(null)


def _query_minima(matrix: csr_array, groups: np.ndarray) -> np.ndarray:
    """Smallest value of each entry's feature in its query, 0 when all are NULL."""
    values, width = matrix.data, np.int64(matrix.shape[1])
    queries = segment(groups, len(groups))
    query = np.repeat(queries.of_rows(), np.diff(matrix.indptr))
    cells = segment(query * width + matrix.indices, len(values))
    low = np.fmin.reduceat(values[cells.order], cells.indptr[:-1])
    # a document that does not name the feature has a 0 there
    unnamed = np.diff(cells.indptr) < np.diff(queries.indptr)[cells.names // width]
    low = np.where(unnamed, np.fmin(low, 0.0), low)
    return np.nan_to_num(low)[cells.of_rows()]


def _dense(path: str | Path, matrix: csr_array) -> np.ndarray:
    most, size = max(_FEW_CELLS, 100 * matrix.nnz), "{:,} x {:,} numbers".format(*matrix.shape)
    advice = "drop rows or features from the file, or read it in Python with sparse=True"
    if matrix.shape[0] * matrix.shape[1] > most:  # nearly all of them zeros that nobody wrote
        raise InputError(f"{path}: {size}, nearly all of them zeros, are more than {most:,}; {advice}")
    try:
        return matrix.toarray()
    except MemoryError:
        raise InputError(f"{path}: {size} do not fit into memory; {advice}") from None


class _LetorRows(NamedTuple):
    """Content of a file; the features of row i are the entries from ``ends[i]`` to ``ends[i + 1]``."""

    lines: array
    relevance: array
    qids: list[str]
    docids: list[str]
    ends: array
    columns: array
    values: array


def _row_batches(path: str | Path, most: int | None = None) -> Iterator[_LetorRows]:
    """Parse the rows of a file, at most so many at a time; the first line that cannot be parsed raises InputError."""
    rows, n = _no_rows(), 0
    names: tuple[bytes, ...] = ()
    columns, n_alike = array("i"), 0
    for number, line in numbered_lines(path, whole=most is None):
        content, _, comment = line.partition(b"#")
        fields = content.split(None, 2)
        if not fields:
            continue
        try:
            relevance, query, *rest = fields
            grade = float(relevance)
            # Python would read 1_000 as a number
            if not 0 <= grade < math.inf or b"_" in b" ".join((relevance, *rest)):
                raise ValueError
            if not query.startswith(b"qid:") or query == b"qid:":
                raise ValueError
            rows.relevance.append(grade)
            rows.qids.append(query[4:].decode())
            if rest:
                pairs = [pair.split(b":") for pair in rest[0].replace(b"NULL", b"nan").split()]
                new_names, values = zip(*pairs, strict=True)
                # in most files every line names the same features
                if new_names != names:
                    ends = not comment and not line.endswith(b"\n") and new_names == names[: len(new_names)]
                    if ends and n == n_alike >= _ALIKE:
                        raise InputError(
                            f"{path} line {number}: the file ends in this line, after {len(new_names)} of the "
                            f"{len(names)} features that all others have; copy it again, or end the line"
                        )
                    n_alike = 0
                    names, columns = new_names, array("i", map(int, new_names))
                    if min(columns) < 1 or len(set(columns)) < len(columns):
                        raise ValueError
                rows.values.extend(map(float, values))
                rows.columns.extend(columns)
            n += 1
            n_alike += 1
            rows.lines.append(number)
            rows.docids.append(_docid(comment, n))
            rows.ends.append(len(rows.values))
        except InputError:
            raise
        except (ValueError, OverflowError):
            raise InputError(f"{path} line {number}: {_fault(line)}") from None
        if len(rows.lines) == most:
            yield rows
            rows = _no_rows()
    if len(rows.lines):
        yield rows


def _no_rows() -> _LetorRows:
    return _LetorRows(array("q"), array("d"), [], [], array("q", [0]), array("i"), array("d"))


def _docid(comment: bytes, row: int) -> str:
    named = _DOCID.search(comment)
    if named:
        return named[1].decode()
    words = comment.split(None, 1)
    return words[0].decode() if words else str(row)


def _fault(line: bytes) -> str:
    """Say what is wrong with a line that cannot be parsed, and what to do."""
    if b"\0" in line or not is_utf8(line):
        return "this is not UTF-8 text; give a text file, plain or gzip-compressed"
    relevance, *fields = line.partition(b"#")[0].split()
    if not _is(float, relevance):
        return f"the relevance {_shown(relevance)} is not a number; start the line with one"
    if not 0 <= float(relevance) < math.inf:
        return f"the relevance is {_shown(relevance)}; it must be a finite number of at least 0"
    if not fields or not fields[0].startswith(b"qid:") or fields[0] == b"qid:":
        return "there is no query id after the relevance; write it as qid:ID"
    seen: set[int] = set()
    for field in fields[1:]:
        name, colon, value = field.partition(b":")
        if not colon or not _is(int, name):
            return f"{_shown(field)} is not a feature; write number:value"
        if not 1 <= int(name) < 2**31:
            return f"{_shown(field)} has feature number {_shown(name)}; number the features from 1"
        if not _is(float, value.replace(b"NULL", b"nan")):
            return f"the value of feature {int(name)} is {_shown(value)}; write a number or NULL"
        if int(name) in seen:
            return f"feature {int(name)} stands there twice; take one of them out"
        seen.add(int(name))
    return "it cannot be read; write relevance qid:ID number:value ..."


def _is(kind: type, text: bytes) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return b"_" not in text


def _shown(text: bytes) -> str:
    return repr(text.decode() if len(text) <= 40 else text[:40].decode(errors="ignore") + "...")


def write_letor(
    path: str | Path,
    X: Any,
    y: ArrayLike,
    groups: ArrayLike,
    docids: ArrayLike | None = None,
    *,
    zeros: bool | None = None,
) -> None:
    """Write a LETOR file atomically, gzip-compressed if its name ends in ``.gz``.

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
    write_lines(path, lines)


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


class Fold(NamedTuple):
    """One round of cross-validation; each part is a bunch as :func:`read_letor` gives it."""

    name: str
    train: Bunch
    validation: Bunch
    test: Bunch


def letor_folds(
    folder: str | Path,
    *,
    n_features: int | None = None,
    null: str | float = "raise",
    sparse: bool = False,
    dtype: DTypeLike = np.float64,
) -> Iterator[Fold]:
    """Iterate over the folds of a LETOR set, all with the same number of features.

    The folder holds either the five parts ``S1.txt`` ... ``S5.txt`` (``A1.txt`` ... in the sets for rank aggregation),
    of which fold k trains on parts k, k + 1 and k + 2, validates on k + 3 and tests on k + 4, counted round; or the
    folds themselves, ``Fold1/train.txt``, ``Fold1/vali.txt``, ``Fold1/test.txt`` and so on (also ``trainingset.txt``,
    ``validationset.txt``, ``testset.txt``). Every file may end in ``.gz``. Parts are read once; of folds only one is
    held at a time, and the first one decides the number of features when ``n_features`` is not given.

    Parameters
    ----------
    folder : str or Path
        Where the files are.
    n_features, null, sparse, dtype
        As in :func:`read_letor`.

    Yields
    ------
    Fold
        ``(name, train, validation, test)``; the name is ``"Fold1"`` and so on.

    Examples
    --------
    >>> import tempfile
    >>> from apexrank.datasets import letor_folds, make_letor_example, write_letor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(1, 6):
    ...         part = make_letor_example(n_queries=4, random_state=k)
    ...         write_letor(Path(folder) / f"S{k}.txt", part.data, part.target, part.groups)
    ...     folds = list(letor_folds(folder))
    >>> [fold.name for fold in folds], folds[0].test.source.endswith("S5.txt")
    (['Fold1', 'Fold2', 'Fold3', 'Fold4', 'Fold5'], True)
    """
    folder = Path(folder)
    options = {"null": null, "sparse": sparse, "dtype": dtype}
    for prefix in _PART_PREFIXES:
        names = [f"{prefix}{k}.txt" for k in range(1, _N_PARTS + 1)]
        parts = [_existing(folder, name) for name in names]
        if all(parts):
            return _folds_of_parts([part for part in parts if part], n_features, options)
        if any(parts):
            missing = ", ".join(name for name, part in zip(names, parts, strict=True) if not part)
            raise InputError(
                f"{folder} lacks {missing} (or .gz): the folds need all of {names[0]} to {names[-1]}"
            )
    folds = sorted(path for path in folder.glob("Fold[0-9]*") if path.is_dir())
    if not folds:
        raise InputError(
            f"{folder} holds no LETOR folds: looked for S1.txt to S5.txt, A1.txt to A5.txt and Fold1/train.txt, "
            "Fold1/vali.txt, Fold1/test.txt, each also as .gz"
        )
    return _folds_of_folders([(fold.name, _files_of_fold(fold)) for fold in folds], n_features, options)


def _existing(folder: Path, *names: str) -> Path | None:
    paths = [folder / f"{name}{suffix}" for name in names for suffix in ("", ".gz")]
    return next((path for path in paths if path.is_file()), None)


def _files_of_fold(fold: Path) -> list[Path]:
    files = []
    for names in _FOLD_FILES:
        file = _existing(fold, *names)
        if file is None:
            raise InputError(f"{fold} is incomplete: looked for {' and '.join(names)}, each also as .gz")
        files.append(file)
    return files


def _read_alike(paths: list[Path], n_features: int | None, options: dict[str, Any]) -> list[Bunch]:
    """Read files and pad all of them to the width of the widest."""
    parts = [read_letor(path, n_features=n_features, **options) for path in paths]
    width = max(part.data.shape[1] for part in parts)
    for part in parts:
        n, own = part.data.shape
        if issparse(part.data):
            part.data.resize(n, width)
        elif own < width:
            part.data = np.pad(part.data, ((0, 0), (0, width - own)))
        part.feature_names = feature_names(width)
    return parts


def _joined(parts: list[Bunch]) -> Bunch:
    tables = [part.data for part in parts]
    return Bunch(
        data=vstack(tables, format="csr") if issparse(tables[0]) else np.concatenate(tables),
        **{key: np.concatenate([part[key] for part in parts]) for key in ("target", "groups", "docids")},
        feature_names=parts[0].feature_names,
        source=", ".join(part.source for part in parts),
    )


def _folds_of_parts(paths: list[Path], n_features: int | None, options: dict[str, Any]) -> Iterator[Fold]:
    parts = _read_alike(paths, n_features, options)
    for k in range(_N_PARTS):
        a, b, c, validation, test = (parts[(k + i) % _N_PARTS] for i in range(_N_PARTS))
        yield Fold(f"Fold{k + 1}", _joined([a, b, c]), validation, test)


def _folds_of_folders(
    folds: list[tuple[str, list[Path]]], n_features: int | None, options: dict[str, Any]
) -> Iterator[Fold]:
    for name, paths in folds:
        train, validation, test = _read_alike(paths, n_features, options)
        n_features = train.data.shape[1]
        yield Fold(name, train, validation, test)
