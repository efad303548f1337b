"""TREC run and qrels files: rankings and judgements as exchanged by trec_eval, ranx and ir-measures.

A run has the columns ``query Q0 document rank score tag``, qrels have ``query iteration document relevance``, separated
by blanks or tabs, in plain UTF-8 text or gzip.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from apexrank.errors import InputError
from apexrank.files import read_bytes, write_lines
from apexrank.io.delimited import first_line

# Characters at which some reader of these files splits, or which it drops, such as a byte order mark.
_BREAKS_A_LINE = r"[\s\p{Cc}\x{FEFF}]"
_UNFIT = "is empty or has white space in it, which the format cannot hold; rename it"
Rows = pl.DataFrame | Mapping[str, Any] | Sequence[Any]

KEY = ["query", "document"]
_IDS = (pl.String, pl.Categorical, pl.Enum, pl.Null)


class Layout(NamedTuple):
    """Columns of a kind of file, and the numeric one."""

    kind: str
    fields: tuple[str, ...]
    value: str


RUN = Layout("run", ("query", "Q0", "document", "rank", "score", "tag"), "score")
QRELS = Layout("qrels", ("query", "iteration", "document", "relevance"), "relevance")


def read_run(path: str | Path) -> pl.DataFrame:
    r"""Read a TREC run: the documents a system retrieved for each query, with their scores.

    Returns
    -------
    polars.DataFrame
        ``query``, ``document`` (text), ``score`` (float), ``rank`` (as given; null if it is not a whole number),
        ``tag``; rows in file order. As in trec_eval, the score determines the order, not the rank.

    Raises
    ------
    InputError
        Naming the line, if a line does not have six fields, a score is not a finite number, or a query has the same
        document twice; also if the file is empty, not UTF-8 text, or a qrels file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "bm25.run"
    ...     _ = path.write_text("q1 Q0 d7 1 2.5 bm25\nq1\tQ0\td3  2  1.25\tbm25\n")
    ...     read_run(path).rows()
    [('q1', 'd7', 2.5, 1, 'bm25'), ('q1', 'd3', 1.25, 2, 'bm25')]
    """
    rank = pl.col("rank").cast(pl.Int64, strict=False)
    return _read(Path(path), RUN).select("query", "document", "score", rank, "tag")


def read_qrels(path: str | Path) -> pl.DataFrame:
    r"""Read TREC qrels: the relevance of the judged documents of each query.

    Returns
    -------
    polars.DataFrame
        ``query``, ``document`` (text), ``relevance`` (float); rows in file order. Negative judgements (-1, -2 for junk
        or for documents outside the pool) are kept here; :func:`judged` counts them as 0.

    Raises
    ------
    InputError
        As in :func:`read_run`, for lines of four fields.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "web.qrels"
    ...     _ = path.write_text("q1 0 d7 2\nq1 0 d9 -2\n")
    ...     read_qrels(path).rows()
    [('q1', 'd7', 2.0), ('q1', 'd9', -2.0)]
    """
    return _read(Path(path), QRELS).select("query", "document", "relevance")


def write_run(run: Rows, path: str | Path, tag: str = "apexrank") -> None:
    """Write a TREC run atomically, gzip-compressed if ``path`` ends in ``.gz``.

    Queries are in order of their first rows, and documents by descending score, with ranks from 1. Equal scores keep
    their row order, which the rank then records; trec_eval ignores it and breaks ties by descending document id. Scores
    are written so that reading restores every bit.

    Parameters
    ----------
    run : data frame, mapping, or sequence of three arrays
        ``query``, ``document`` (text or whole numbers) and ``score``.
    path : str or Path
        File to write.
    tag : str
        Name of the run, its last column.

    Raises
    ------
    InputError
        If an id is empty or contains white space, a score is not a finite number, a query has the same document twice,
        or there are no rows.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.run"
    ...     write_run((["q1", "q1"], ["d3", "d7"], [0.1, 2.5]), path, tag="push")
    ...     print(path.read_text(), end="")
    q1 Q0 d7 1 2.5 push
    q1 Q0 d3 2 0.1 push
    """
    write_lines(path, [run_text(run, tag).encode()])


def run_text(run: Rows, tag: str = "apexrank") -> str:
    """Format a TREC run as text; parameters and order as in :func:`write_run`."""
    frame = _writable(run, RUN)
    if _breaks_a_line(pl.Series([str(tag)])).any():
        raise InputError(f"tag {tag!r} {_UNFIT}")
    first = pl.col("row").min().over("query").alias("first")
    ranked = (
        frame.with_row_index("row")
        .with_columns(first)
        .sort("first", "score", "row", descending=[False, True, False])
    )
    rank = pl.int_range(1, pl.len() + 1).over("first").alias("rank")
    lines = ranked.with_columns(rank, pl.lit("Q0").alias("Q0"), pl.lit(tag).alias("tag"))
    return _text(lines.select(RUN.fields))


def write_qrels(qrels: Rows, path: str | Path) -> None:
    """Write TREC qrels atomically in row order, gzip-compressed if ``path`` ends in ``.gz``.

    Parameters
    ----------
    qrels : data frame, mapping, or sequence of three arrays
        ``query``, ``document`` (text or whole numbers) and ``relevance``; whole numbers are written as integers, the
        only form that trec_eval reads.
    path : str or Path
        File to write.

    Raises
    ------
    InputError
        As in :func:`write_run`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.qrels"
    ...     write_qrels({"query": [1, 1], "document": ["d3", "d7"], "relevance": [0.0, 2.0]}, path)
    ...     print(path.read_text(), end="")
    1 0 d3 0
    1 0 d7 2
    """
    frame = _writable(qrels, QRELS)
    value = pl.col("relevance")
    whole = (value == value.floor()) & (value.abs() < 2.0**53)
    as_integer = value.cast(pl.Int64, strict=False).cast(pl.String)
    grade = pl.when(whole).then(as_integer).otherwise(value.cast(pl.String)).alias("relevance")
    lines = frame.with_columns(grade, pl.lit("0").alias("iteration")).select(QRELS.fields)
    write_lines(path, [_text(lines).encode()])


def judged(run: Rows, qrels: Rows, *, complete: bool = False) -> pl.DataFrame:
    """Join a run with its judgements into the rows that metrics need, following trec_eval.

    Each retrieved document is a row; an unjudged document, or one judged below 0, has relevance 0. Each relevant
    document (relevance above 0) that was not retrieved is also a row, with score -inf: not in the list, but counted as
    relevant. Queries without judgements are left out.

    Parameters
    ----------
    run : data frame, mapping, or sequence of three arrays
        ``query``, ``document`` and ``score``, as returned by :func:`read_run`.
    qrels : data frame, mapping, or sequence of three arrays
        ``query``, ``document`` and ``relevance``, as returned by :func:`read_qrels`.
    complete : bool
        Keep judged queries that the run lacks (``trec_eval -c``): their relevant documents, or all judged ones if none
        is relevant, have score -inf.

    Returns
    -------
    polars.DataFrame
        ``query``, ``document``, ``score``, ``relevance``. Queries in the order of the run, then those it lacks in the
        order of the qrels; within a query by descending score, ties by descending document id.

    Raises
    ------
    InputError
        If a query has the same document twice, a number is not finite, or no row is left.

    Notes
    -----
    Older releases of trec_eval, including pytrec_eval, keep scores in single precision, so scores that agree in about
    seven digits are ties. To reproduce this, round first: ``run.with_columns(pl.col("score").cast(pl.Float32))``.
    trec_eval also reads a relevance of 0.5 as 0; here any relevance above 0 is relevant.

    Examples
    --------
    >>> run = (["q1", "q1", "q2"], ["d3", "d7", "d1"], [0.5, 2.5, 1.0])
    >>> qrels = (["q1", "q1", "q1"], ["d3", "d7", "d8"], [1, -2, 2])
    >>> judged(run, qrels).rows()
    [('q1', 'd7', 2.5, 0.0), ('q1', 'd3', 0.5, 1.0), ('q1', 'd8', -inf, 2.0)]
    """
    retrieved = _checked_rows(run, RUN).with_row_index("row")
    judgements = _checked_rows(qrels, QRELS).with_columns(pl.col("relevance").clip(0.0))
    found = retrieved.join(judgements.select("query"), on="query", how="semi").join(
        judgements, on=KEY, how="left"
    )
    lacking = _not_retrieved(retrieved, judgements, complete)
    columns = ["row", "query", "document", "score", "relevance"]
    rows = pl.concat([found.select(columns), lacking.select(columns)])
    if not rows.height:
        raise InputError(
            "no query of the run is judged: the query ids of run and qrels must be written alike"
        )
    first = pl.col("row").min().over("query").alias("row")
    ordered = rows.with_columns(first, pl.col("relevance").fill_null(0.0)).sort(
        "row", "score", "document", descending=[False, True, True]
    )
    return ordered.drop("row")


def _not_retrieved(retrieved: pl.DataFrame, judgements: pl.DataFrame, complete: bool) -> pl.DataFrame:
    """Judged documents that count although they were not retrieved; their rows are numbered after the run's."""
    numbered = judgements.with_row_index("row", offset=retrieved.height)
    relevant = numbered.filter(pl.col("relevance") > 0).join(retrieved, on=KEY, how="anti")
    in_run = retrieved.select("query")
    if complete:
        hopeless = numbered.filter(pl.col("relevance").max().over("query") == 0)
        lacking = pl.concat([relevant, hopeless.join(in_run, on="query", how="anti")])
    else:
        lacking = relevant.join(in_run, on="query", how="semi")
    return lacking.with_columns(pl.lit(-math.inf).alias("score"))


def _read(path: Path, layout: Layout) -> pl.DataFrame:
    """Read all columns of a file as text, and the numeric one as numbers; the first fault raises an error."""
    # a zero byte separates nothing, because no text has one
    lines = pl.read_csv(b"text\n" + read_bytes(path), separator="\0", quote_char=None, infer_schema=False)
    lines = lines.with_row_index("line", 1).with_columns(
        pl.col("text").str.extract_all(r"[^\t\v\f\r ]+").alias("fields")
    )
    rows = lines.filter(pl.col("fields").list.len() > 0)
    if not rows.height:
        raise InputError(f"{path} is empty: a {layout.kind} file has lines of {' '.join(layout.fields)!r}")
    _check_widths(path, rows, layout)
    frame = rows.select(
        "line", *(pl.col("fields").list.get(k).alias(name) for k, name in enumerate(layout.fields))
    )
    value = pl.col(layout.value).cast(pl.Float64, strict=False)
    bad = frame.filter(~value.is_finite().fill_null(False))
    for line, text in bad.select("line", layout.value).head(1).rows():
        raise InputError(f"{path} line {line}: {layout.value} {text!r} is not a finite number; correct it")
    again = frame.filter(~pl.struct(KEY).is_first_distinct())
    for line, query, document in again.select("line", *KEY).head(1).rows():
        earlier = frame.filter(query=query, document=document)["line"][0]
        raise InputError(
            f"{path} line {line}: query {query!r} has document {document!r} already in line {earlier}; keep one of them"
        )
    return frame.with_columns(value)


def _check_widths(path: Path, rows: pl.DataFrame, layout: Layout) -> None:
    width, other = len(layout.fields), QRELS if layout is RUN else RUN
    widths = rows.select("line", pl.col("fields").list.len())
    for line, n in widths.filter(pl.col("fields") != width).head(1).rows():
        if line == widths["line"][0] and n == len(other.fields):
            raise InputError(
                f"{path} line {line}: has {n} columns like a {other.kind} file, not {layout.kind}: exchange the two "
                f"files, or read it with read_{other.kind}"
            )
        raise InputError(
            f"{path} line {line}: the row has {n} field{'s' * (n != 1)}, a {layout.kind} file {width} "
            f"({' '.join(layout.fields)}); fix the line"
        )


def _checked_rows(data: Rows, layout: Layout) -> pl.DataFrame:
    """Query, document and number of each row, each document once per query."""
    query, document, value = _columns(data, layout).iter_columns()
    for ids in (query, document):
        if not (ids.dtype in _IDS or ids.dtype.is_integer()):
            raise InputError(f"{layout.kind} column {ids.name!r} holds {ids.dtype} values: ids are text")
        _refuse_row(ids.is_null(), ids, layout.kind, "is missing; fill it in")
    if not (value.dtype.is_numeric() or value.dtype == pl.Null):
        raise InputError(f"{layout.kind} column {value.name!r} holds {value.dtype} values, not numbers")
    number = value.cast(pl.Float64)
    bad = ~number.is_finite().fill_null(False)
    _refuse_row(bad, value, layout.kind, "is not a finite number; correct it")
    frame = pl.DataFrame([query.cast(pl.String), document.cast(pl.String), number])
    again = ~frame.select(pl.struct(KEY).is_first_distinct()).to_series()
    _refuse_row(again, document, layout.kind, "occurs twice in its query; keep one")
    return frame


def _columns(data: Any, layout: Layout) -> pl.DataFrame:
    """The three columns, by name in a frame or mapping, or by position in a sequence."""
    names = [*KEY, layout.value]
    try:
        if isinstance(data, list | tuple):
            data = dict(zip(names, data, strict=True))
        return pl.DataFrame([_series(name, data[name]) for name in names])
    except (KeyError, IndexError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"the {layout.kind} needs columns {', '.join(names)} of one length, each of one kind: {first_line(error)}"
        ) from None


def _series(name: str, values: Any) -> pl.Series:
    if isinstance(values, pl.Series):
        return values.alias(name)
    # Via a list, so that arrays of objects and pandas columns need no special treatment. Whole numbers and fractions
    # may mix, but text and a pandas gap may not: the gap would become the id "NaN".
    return pl.Series(name, values.tolist() if hasattr(values, "tolist") else list(values), strict=name in KEY)


def _refuse_row(bad: pl.Series, column: pl.Series, kind: str, message: str) -> None:
    """Raise InputError for the first bad row, if any."""
    if bad.any():
        row = int(bad.to_numpy().argmax())
        raise InputError(f"{kind} row {row + 1}: {column.name} {column[row]!r} {message}")


def _writable(data: Rows, layout: Layout) -> pl.DataFrame:
    """Check that ids contain no white space, at which readers split the lines."""
    frame = _checked_rows(data, layout)
    if not frame.height:
        raise InputError(f"the {layout.kind} has no rows: there is nothing to write")
    for name in KEY:
        bad = _breaks_a_line(frame[name])
        _refuse_row(bad, frame[name], layout.kind, _UNFIT)
    return frame


def _breaks_a_line(words: pl.Series) -> pl.Series:
    return (words == "") | words.str.contains(_BREAKS_A_LINE)


def _text(lines: pl.DataFrame) -> str:
    return lines.write_csv(separator=" ", include_header=False, quote_style="never")
