"""LETOR files (SVMlight lines with query ids): read them into a matrix, write them, and iterate over their folds.

A line is ``relevance qid:ID feature:value feature:value ... # comment``; features are numbered from 1, in any order,
and a feature that is not listed is 0. A compiled parser reads plain lines; anything it does not handle, such as a
number with more digits than it can round correctly, is parsed by Python, whose errors name the line. scikit-learn's
``load_svmlight_file`` supports neither ``NULL`` nor text query ids nor document ids.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.sparse import csr_array, issparse, vstack
from sklearn.utils import Bunch

from apexrank.errors import InputError
from apexrank.files import is_utf8, numbered_blocks, write_lines
from apexrank.kernels.letor import parse_lines
from apexrank.validation import check_count, is_missing, segment

_NULL_CHOICES = ("raise", "nan", "zero", "min")
_MOST_NAMES = 1_000_000
_FEW_CELLS = 100_000_000  # 0.8 GB
_ANY_NUMBER = 4096  # rows per part if the file is not kept in memory
_ALIKE = 10  # rows with the same features before a shorter last row counts as truncated
_DOCID = re.compile(rb"\bdocid\s*=\s*(\S+)")
_N_PARTS = 5
_PART_PREFIXES = ("S", "A")
_FOLD_FILES = (
    ("train.txt", "trainingset.txt"),
    ("vali.txt", "valid.txt", "validationset.txt"),
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
        Lines ``relevance qid:ID feature:value ... # comment``. Empty lines and comment lines are skipped; the rows of a
        query need not be contiguous.
    n_features : int, optional
        Number of columns; default: the largest feature number in the file.
    null : {"raise", "nan", "zero", "min"} or float, default="raise"
        Replacement of a value ``NULL`` (or ``nan``). ``"min"`` is LETOR's own rule: the smallest value of the feature
        in the query, or 0 if it has none there.
    sparse : bool, default=False
        Whether ``data`` is a CSR array without explicit zeros.
    dtype : {float64, float32}, default=float64
        Data type of ``data``.

    Returns
    -------
    Bunch
        With ``data``, ``target`` (relevance), ``groups`` (query ids, as text), ``docids`` (objects of type str: the
        ``docid = ...`` of the comment, else its first word, else the row number, counted from 1), ``feature_names``
        (``None`` for more than a million features) and ``source`` (the path).

    Raises
    ------
    InputError
        For lines that cannot be parsed, naming file and line.

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
    gathered = _Gathered(path, n_features, null, sparse, dtype)
    for rows in _parsed(path):
        gathered.add(rows)
    if not gathered.n:
        raise InputError(f"{path} has no rows: it needs lines such as '1 qid:7 1:0.5 2:3 # docid = D1'")
    if not gathered.width:
        raise InputError(f"{path} names no feature in any line: give `n_features`")
    return gathered.bunch()


def letor_batches(path: str | Path, rows: int, n_features: int) -> Iterator[Bunch]:
    r"""Read a LETOR file in batches of rows, each like the result of :func:`read_letor`, with NaN for NULL.

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
    gathered = None
    for some in _parsed(path, rows):
        gathered = gathered or _Gathered(path, n_features, "nan", False, np.float64)
        gathered.add(some)
        if gathered.n == rows:
            yield gathered.bunch()
            gathered = None
    if gathered:
        yield gathered.bunch()


def letor_width(path: str | Path) -> int:
    """Largest feature number of a LETOR file, found with one block in memory at a time."""
    return max((rows.width for rows in _parsed(path, _ANY_NUMBER)), default=0)


@dataclass
class _Gathered:
    """Rows of a file collected while parsing: dense, or as a CSR array if requested.

    Python ``array`` objects grow in place, so that the memory peak is hardly above the size of the result.
    """

    path: str | Path
    n_features: int | None
    null: str | float
    sparse: bool
    dtype: DTypeLike

    def __post_init__(self) -> None:
        self.n = self.nnz = 0
        self.width = self.n_features or 0
        # the smallest value of a query is known only at the end
        self.as_csr = self.sparse or self.null == "min"
        self.relevance = array("d")
        self.qids: list[np.ndarray] = []
        self.docids: list[str] = []
        self.cells = array(np.dtype(self.dtype).char)  # entries of a dense matrix or of a CSR array
        self.columns, self.ends = array("i"), array("q", [0])

    def add(self, rows: _LetorRows) -> None:
        """Validate the values of some rows and append them."""
        values = _checked_values(self.path, rows, self.n_features, self.null, self.dtype)
        width = max(self.width, rows.width) if self.n_features is None else self.n_features
        _append(self.relevance, rows.relevance)
        self.qids.append(np.array(rows.qids))
        self.docids += rows.docids
        if self.as_csr:
            _append(self.cells, values)
            _append(self.columns, rows.columns)
            _append(self.ends, rows.ends[1:] + self.nnz)
        else:
            self._add_dense(csr_array((values, rows.columns, rows.ends), shape=(len(rows.lines), width)))
        self.n, self.nnz, self.width = self.n + len(rows.lines), self.nnz + len(values), width

    def _add_dense(self, rows: csr_array) -> None:
        width = rows.shape[1]
        with _fitting(self.path, (self.n + rows.shape[0], width), self.nnz + rows.nnz):
            if self.n and width > self.width:
                wider = np.zeros((self.n, width), self.dtype)
                wider[:, : self.width] = np.asarray(self.cells).reshape(self.n, self.width)
                self.cells = array(self.cells.typecode)
                _append(self.cells, wider)
            _append(self.cells, rows.toarray())

    def bunch(self) -> Bunch:
        """Return all rows as a bunch."""
        groups = np.concatenate(self.qids)
        data: Any = np.asarray(self.cells)
        if self.as_csr:
            data = csr_array((data, np.asarray(self.columns), np.asarray(self.ends)), (self.n, self.width))
            if self.null == "min":
                missing = np.isnan(data.data)
                data.data[missing] = _query_minima(data, groups)[missing]
            if self.sparse:
                data.sort_indices()
                data.eliminate_zeros()
            else:
                data = _dense(self.path, data)
        else:
            data = data.reshape(self.n, self.width)
        return Bunch(
            data=data,
            target=np.asarray(self.relevance),
            groups=groups,
            docids=np.array(self.docids, dtype=object),
            feature_names=feature_names(self.width),
            source=str(self.path),
        )


def _append(growing: array, values: np.ndarray) -> None:
    growing.frombytes(values.ravel().view(np.uint8).data)


def feature_names(width: int) -> list[str] | None:
    """``feature_1`` and so on, or ``None`` for more than a million features."""
    # hashed features have numbers up to 2**31: their names would take more memory than the data
    return [f"feature_{j}" for j in range(1, width + 1)] if width <= _MOST_NAMES else None


def _check_options(n_features: Any, null: Any, dtype: DTypeLike) -> None:
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise InputError(f"`dtype` must be float32 or float64, got {np.dtype(dtype)}")
    if n_features is not None:
        check_count("n_features", n_features)
    if null not in _NULL_CHOICES and not (isinstance(null, Real) and math.isfinite(null)):
        raise InputError(
            f"unknown `null` {null!r}: use one of {', '.join(_NULL_CHOICES)}, or a finite number"
        )


def _checked_values(
    path: str | Path, rows: _LetorRows, n_features: int | None, null: str | float, dtype: DTypeLike
) -> np.ndarray:
    """Values of some rows in the requested dtype, with NaN replaced unless that depends on other rows."""

    def refuse(bad: np.ndarray, what: str) -> None:
        if bad.any():
            entry = int(np.argmax(bad))
            line = rows.lines[np.searchsorted(rows.ends, entry, side="right") - 1]
            raise InputError(f"{path} line {line}: feature {rows.columns[entry] + 1} {what}")

    refuse(np.isinf(rows.values), "is infinite; give a finite number")
    with np.errstate(over="ignore"):
        values = rows.values.astype(dtype)
    refuse(np.isinf(values), f"is beyond {np.dtype(dtype)}; read the file with `dtype='float64'`")
    if n_features is not None:
        refuse(
            rows.columns >= n_features,
            f"is beyond `n_features={n_features}`; raise `n_features` or leave it out",
        )
    if null == "raise":
        refuse(np.isnan(values), "is NULL; choose `null='nan'`, 'zero', 'min' or a number to replace it")
    elif null not in ("nan", "min"):
        values[np.isnan(values)] = 0.0 if null == "zero" else null
    return values


def _query_minima(matrix: csr_array, groups: np.ndarray) -> np.ndarray:
    """Smallest value of each entry's feature in its query, or 0 if all are NULL."""
    values, width = matrix.data, np.int64(matrix.shape[1])
    queries = segment(groups, len(groups))
    query = np.repeat(queries.of_rows(), np.diff(matrix.indptr))
    cells = segment(query * width + matrix.indices, len(values))
    low = np.fmin.reduceat(values[cells.order], cells.indptr[:-1])
    # a document that does not list the feature has a 0 there
    unnamed = np.diff(cells.indptr) < np.diff(queries.indptr)[cells.names // width]
    low = np.where(unnamed, np.fmin(low, 0.0), low)
    return np.nan_to_num(low)[cells.of_rows()]


def _dense(path: str | Path, matrix: csr_array) -> np.ndarray:
    with _fitting(path, matrix.shape, matrix.nnz):
        return matrix.toarray()


@contextmanager
def _fitting(path: str | Path, shape: tuple[int, int], nnz: int) -> Iterator[None]:
    """Raise InputError if a dense matrix does not fit into memory, or would be nearly all zeros."""
    most, size = max(_FEW_CELLS, 100 * nnz), "{:,} x {:,} numbers".format(*shape)
    advice = "drop rows or features from the file, or read it in Python with `sparse=True`"
    if shape[0] * shape[1] > most:
        raise InputError(f"{path}: {size}, nearly all of them zeros, are more than {most:,}; {advice}")
    try:
        yield
    except MemoryError:
        raise InputError(f"{path}: {size} do not fit into memory; {advice}") from None


class _LetorRows(NamedTuple):
    """Some rows of a file; the features of row i are the entries ``ends[i]`` to ``ends[i + 1]``."""

    lines: np.ndarray
    relevance: np.ndarray
    qids: list[str]
    docids: list[str]
    ends: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @property
    def width(self) -> int:
        """Largest feature number."""
        return int(self.columns.max(initial=-1)) + 1


def _parsed(path: str | Path, most: int | None = None) -> Iterator[_LetorRows]:
    """Parse a file part by part; no part extends beyond a multiple of ``most`` rows.

    A part is valid until the next one is requested. A line that cannot be parsed raises InputError.
    """
    n, names = 0, None
    for line, text in numbered_blocks(path, whole=most is None):
        *_, end = text.rpartition(
            b"\n"
        )  # nonempty only at the end of the file: other blocks hold whole lines
        last = line + text.count(b"\n") if end and b"#" not in end else 0
        for rows in _parsed_block(path, text + b"\n" if end else text, line, n, most):
            names = _common_names(path, rows, n, names, is_cut=bool(rows.lines[-1] == last))
            n += len(rows.lines)
            yield rows


def _parsed_block(path: str | Path, text: bytes, line: int, n: int, most: int | None) -> Iterator[_LetorRows]:
    """Parse whole lines, starting at the given line number, of a file with n rows before them."""
    size, n_entries, at = text.count(b"\n"), text.count(b":"), 0
    relevance, lines, spans = np.empty(size), np.empty(size, np.int64), np.empty((size, 4), np.int64)
    ends, columns, values = np.zeros(size + 1, np.int64), np.empty(n_entries, np.intc), np.empty(n_entries)
    hard, view = np.empty((n_entries, 3), np.int64), np.frombuffer(text, np.uint8)
    while at < len(text):
        room = size if most is None else most - n % most
        state, start = np.array([0, 0, line - 1, 0]), at
        at = parse_lines(view, at, state, relevance[:room], lines, spans, ends, columns, values, hard)
        if at == start:
            at = text.index(b"\n", start) + 1
            yield _unusual_row(path, text[start:at], line, n)
            n, line = n + 1, line + 1
            continue
        n_rows, n_entries, n_lines, n_hard = state.tolist()
        try:
            for entry, a, b in hard[:n_hard].tolist():
                values[entry] = _read(float, text[a:b].replace(b"NULL", b"nan"))
            places = spans[:n_rows].tolist()
            qids = [text[a:b].decode() for a, b, _, _ in places]
            docids = [_docid(text[a:b], row) for row, (_, _, a, b) in enumerate(places, n + 1)]
        except ValueError:
            for number, one in enumerate(text[start:at].split(b"\n"), line):
                if one.partition(b"#")[0].strip():
                    _unusual_row(path, one, number, n)
            raise
        n, line = n + n_rows, n_lines + 1
        if n_rows:
            content = ends[: n_rows + 1], columns[:n_entries], values[:n_entries]
            yield _LetorRows(lines[:n_rows], relevance[:n_rows], qids, docids, *content)


def _unusual_row(path: str | Path, line: bytes, number: int, n: int) -> _LetorRows:
    """Parse one line by the full grammar; n rows precede it."""
    content, _, comment = line.partition(b"#")
    try:
        relevance, query, *features = content.split()
        names, texts = (
            zip(*(feature.split(b":") for feature in features), strict=True) if features else ((), ())
        )
        grade, columns = _read(float, relevance), [_read(int, name) for name in names]
        values = [_read(float, text.replace(b"NULL", b"nan")) for text in texts]
        if not 0 <= grade < math.inf or not query.startswith(b"qid:") or query == b"qid:":
            raise ValueError
        if (columns and not 1 <= min(columns) <= max(columns) < 2**31) or len(set(columns)) < len(columns):
            raise ValueError
        ids = [query[4:].decode()], [_docid(comment, n + 1)]
    except ValueError:
        raise InputError(f"{path} line {number}: {_fault(line)}") from None
    entries = np.array([0, len(columns)]), np.array(columns, np.intc) - 1, np.array(values, np.float64)
    return _LetorRows(np.array([number]), np.array([grade]), *ids, *entries)


def _common_names(
    path: str | Path, rows: _LetorRows, n: int, names: np.ndarray | None, is_cut: bool
) -> np.ndarray | None:
    """Features named by all rows so far, None if they differ; raises for a truncated last row with a prefix of them."""
    if n == 0:
        names = rows.columns[: rows.ends[1]].copy()
    if names is None or not len(names):
        return None
    last = len(rows.lines) - is_cut
    columns, found = np.split(rows.columns, rows.ends[[last]])
    if (np.diff(rows.ends[: last + 1]) != len(names)).any() or (
        columns.reshape(-1, len(names)) != names
    ).any():
        return None
    if 0 < len(found) < len(names) and n + last >= _ALIKE and (found == names[: len(found)]).all():
        raise InputError(
            f"{path} line {rows.lines[-1]}: the file ends in this line, after {len(found)} of the {len(names)} "
            "features that all others have; copy it again, or end the line"
        )
    return names


def _docid(comment: bytes, row: int) -> str:
    named = _DOCID.search(comment)
    if named:
        return named[1].decode()
    words = comment.split(None, 1)
    return words[0].decode() if words else str(row)


def _fault(line: bytes) -> str:
    """Describe the error in a line that cannot be parsed, and its fix."""
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
            return f"feature {int(name)} occurs twice; remove one of them"
        seen.add(int(name))
    return "it cannot be read; write relevance qid:ID number:value ..."


def _read(kind: type, text: bytes) -> Any:
    """Parse a number, rejecting forms such as 1_000 that Python accepts."""
    if b"_" in text:
        raise ValueError(text)
    return kind(text)


def _is(kind: type, text: bytes) -> bool:
    try:
        _read(kind, text)
    except ValueError:
        return False
    return True


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

    :func:`read_letor` restores the same numbers to the last bit; NaN is written as ``NULL``.

    Parameters
    ----------
    path : str or Path
        The file to write; an existing one is replaced.
    X : array, frame or sparse matrix of shape (n, d)
        Features.
    y : array of n numbers
        Relevance, non-negative.
    groups : array of n ids
        Query ids without blanks and without ``#``.
    docids : array of n ids, optional
        Ids without blanks, written as ``#docid = ID``.
    zeros : bool, optional
        Whether to write features that are 0; by default only for dense X. Without them the reader cannot detect
        trailing columns of zeros: pass it ``n_features``.

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
    # write grades as in LETOR, 2 instead of 2.0
    return [repr(int(grade)) if grade.is_integer() else repr(grade) for grade in relevance.tolist()]


def _checked_ids(name: str, ids: ArrayLike, n: int, forbidden: str = "") -> list[str]:
    found = np.asarray(ids)
    if found.shape != (n,):
        raise InputError(f"`{name}` needs one id per row: expected {n} ids, got shape {found.shape}")
    texts = [str(id_) for id_ in found.tolist()]
    for row, text in enumerate(texts):
        if is_missing(found[row]):
            raise InputError(f"{name} row {row}: the id is missing; fill it in or drop the row")
        if not text or any(
            c.isspace() or c in forbidden or "\ud800" <= c <= "\udfff" or c == "\0" for c in text
        ):
            marks = f" or {forbidden}" if forbidden else ""
            raise InputError(
                f"{name} row {row}: {text!r} cannot be written; an id is text without blanks{marks}"
            )
    return texts


def _feature_texts(rows: Any, zeros: bool) -> Iterator[str]:
    """Text of the features of each row, each preceded by a blank."""
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
    """One round of cross-validation; each part is a bunch as returned by :func:`read_letor`."""

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
    """Iterate over the folds of a LETOR set.

    The layout of the folder is recognised by its files, each of which may be gzip-compressed (``.gz``):

    - five parts ``S1.txt`` ... ``S5.txt`` (LETOR 4.0; ``A1.txt`` ... in the sets for rank aggregation): fold k trains
      on parts k, k + 1 and k + 2, validates on k + 3 and tests on k + 4, counted cyclically;
    - folds ``Fold1/train.txt``, ``Fold1/vali.txt``, ``Fold1/test.txt`` and so on (MSLR-WEB10K and 30K; also
      ``trainingset.txt``, ``validationset.txt``, ``testset.txt``);
    - sets ``set1.train.txt``, ``set1.valid.txt``, ``set1.test.txt`` and so on (Yahoo): each is a separate fold;
    - one split ``train.txt``, ``vali.txt``, ``test.txt`` (Istella). Without ``vali.txt``, as in the full Istella set,
      the validation part has no rows.

    Parts are read once; for the other layouts only one fold is held in memory at a time. All parts and all folds of a
    set have the same number of features, determined by the first fold unless ``n_features`` is given.

    Parameters
    ----------
    folder : str or Path
        Folder of the files.
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
    if folds := sorted(path for path in folder.glob("Fold[0-9]*") if path.is_dir()):
        return _folds_of_files([(fold.name, _files_of_fold(fold)) for fold in folds], n_features, options)
    names = sorted({path.name.partition(".")[0] for path in folder.glob("set[0-9]*.t*.txt*")})
    if names:
        sets = [[(name, _files_of_fold(folder, f"{name}."))] for name in names]
        return chain.from_iterable(_folds_of_files(one, n_features, options) for one in sets)
    if _existing(folder, *_FOLD_FILES[0]):
        split = folder.resolve().name, _files_of_fold(folder, needs_validation=False)
        return _folds_of_files([split], n_features, options)
    raise InputError(
        f"{folder} holds no LETOR folds: looked for S1.txt to S5.txt, A1.txt to A5.txt and Fold1/train.txt, "
        "Fold1/vali.txt, Fold1/test.txt, set1.train.txt, train.txt, each also as .gz"
    )


def _existing(folder: Path, *names: str) -> Path | None:
    paths = [folder / f"{name}{suffix}" for name in names for suffix in ("", ".gz")]
    return next((path for path in paths if path.is_file()), None)


def _files_of_fold(folder: Path, prefix: str = "", needs_validation: bool = True) -> list[Path | None]:
    """Files of the training, validation and test part; None for an optional validation part that is missing."""
    files = []
    for names in _FOLD_FILES:
        wanted = [prefix + name for name in names]
        file = _existing(folder, *wanted)
        if file is None and (needs_validation or names is not _FOLD_FILES[1]):
            raise InputError(f"{folder} is incomplete: looked for {' or '.join(wanted)}, each also as .gz")
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


def _folds_of_files(
    folds: list[tuple[str, list[Path | None]]], n_features: int | None, options: dict[str, Any]
) -> Iterator[Fold]:
    for name, paths in folds:
        parts = _read_alike([path for path in paths if path], n_features, options)
        if None in paths:
            rows = ("data", "target", "groups", "docids")
            parts.insert(1, Bunch(**{**parts[0], **{key: parts[0][key][:0] for key in rows}, "source": ""}))
        n_features = parts[0].data.shape[1]
        yield Fold(name, *parts)
