"""TREC run and qrels files: rankings and judgements as exchanged by trec_eval, ranx and ir-measures.

A run has the columns ``query Q0 document rank score tag``, qrels have ``query iteration document relevance``, separated
by blanks or tabs, in plain UTF-8 text or gzip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from apexrank.errors import InputError
from apexrank.files import read_bytes, write_lines
from apexrank.io.delimited import first_line, read_rows, single_blanks

# Characters at which some reader of these files splits, or which it drops, such as a byte order mark.
_BREAKS_A_LINE = r"[\s\p{Cc}\x{FEFF}]"
_UNFIT = "is empty or has white space in it, which the format cannot hold; rename it"
Rows = pl.DataFrame | Mapping[str, Any] | Sequence[Any]

KEY = ["query", "document"]


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
    listed = retrieved.join(judgements.select("query"), on="query", how="semi")
    listed = listed.join(judgements, on=KEY, how="left")
    # judged documents that count although they were not retrieved, numbered after the rows of the run
    judgements = judgements.with_row_index("row", offset=retrieved.height)
    relevant = judgements.filter(pl.col("relevance") > 0).join(retrieved, on=KEY, how="anti")
    if complete:
        hopeless = judgements.filter(pl.col("relevance").max().over("query") == 0)
        lacking = pl.concat([relevant, hopeless.join(retrieved, on="query", how="anti")])
    else:
        lacking = relevant.join(retrieved, on="query", how="semi")
    columns = ["row", "query", "document", "score", "relevance"]
    lacking = lacking.with_columns(score=-math.inf)
    rows = pl.concat([listed.select(columns), lacking.select(columns)])
    if not rows.height:
        raise InputError(
            "no query of the run is judged: the query ids of run and qrels must be written alike"
        )
    rows = rows.with_columns(pl.col("row").min().over("query"), pl.col("relevance").fill_null(0.0))
    return rows.sort("row", "score", "document", descending=[False, True, True]).drop("row")


def _read(path: Path, layout: Layout) -> pl.DataFrame:
    content, other = single_blanks(read_bytes(path)), QRELS if layout is RUN else RUN
    rest = content.lstrip(b"\n")
    if not rest:
        raise InputError(f"{path} is empty: a {layout.kind} file has lines of {' '.join(layout.fields)!r}")
    if (n := len(rest.partition(b"\n")[0].split(b" "))) == len(other.fields):
        raise InputError(
            f"{path} line {1 + len(content) - len(rest)}: has {n} columns like a {other.kind} file, not {layout.kind}: "
            f"exchange the two files, or read it with read_{other.kind}"
        )
    like = f"a {layout.kind} file"
    rows = read_rows(path, [content], layout.fields, " ", 1, quotes=False, like=like)
    return _checked(rows.frame, layout, lambda row: f"{path} line {rows.lines[row]}")


def _checked(frame: pl.DataFrame, layout: Layout, place: Callable[[int], str]) -> pl.DataFrame:
    """Refuse the first row with a missing id, a number that is not finite, or the same query and document again."""
    number = frame[layout.value].cast(pl.Float64, strict=False)
    again = frame.select(~pl.struct(KEY).is_first_distinct()).to_series()
    faults = [(frame[name].is_null(), name, "is missing; fill it in") for name in KEY]
    faults += [
        (~number.is_finite().fill_null(False), layout.value, "is not a finite number; correct it"),
        (again, "document", "occurs twice in its query; keep one"),
    ]
    for bad, name, message in faults:
        for row in bad.arg_true().head(1).to_list():
            raise InputError(f"{place(row)}: {name} {frame[name][row]!r} {message}")
    return frame.with_columns(number)


def _checked_rows(data: Any, layout: Layout) -> pl.DataFrame:
    """Query, document and number of each row, by name in a frame or mapping, or by position in a sequence."""
    names = [*KEY, layout.value]
    try:
        if isinstance(data, list | tuple):
            data = dict(zip(names, data, strict=True))
        frame = pl.DataFrame([_series(name, data[name]) for name in names])
    except (KeyError, IndexError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"the {layout.kind} needs columns {', '.join(names)} of one length, each of one kind: {first_line(error)}"
        ) from None
    for name, kind in frame.schema.items():
        is_text = kind in (pl.String, pl.Categorical, pl.Enum)
        fits = is_text or kind.is_integer() if name in KEY else kind.is_numeric()
        if not (fits or kind == pl.Null):
            wanted = "ids are text" if name in KEY else "it needs numbers"
            raise InputError(f"{layout.kind} column {name!r} holds {kind} values: {wanted}")
    frame = frame.with_columns(pl.col(KEY).cast(pl.String))
    return _checked(frame, layout, lambda row: f"{layout.kind} row {row + 1}")


def _series(name: str, values: Any) -> pl.Series:
    if isinstance(values, pl.Series):
        return values.alias(name)
    # Via a list, so that arrays of objects and pandas columns need no special treatment. Whole numbers and fractions
    # may mix, but text and a pandas gap may not: the gap would become the id "NaN".
    return pl.Series(name, values.tolist() if hasattr(values, "tolist") else list(values), strict=name in KEY)


def _writable(data: Rows, layout: Layout) -> pl.DataFrame:
    """Check that ids contain no white space, at which readers split the lines."""
    frame = _checked_rows(data, layout)
    if not frame.height:
        raise InputError(f"the {layout.kind} has no rows: there is nothing to write")
    for name in KEY:
        for row in _breaks_a_line(frame[name]).arg_true().head(1).to_list():
            raise InputError(f"{layout.kind} row {row + 1}: {name} {frame[name][row]!r} {_UNFIT}")
    return frame


def _breaks_a_line(words: pl.Series) -> pl.Series:
    return (words == "") | words.str.contains(_BREAKS_A_LINE)


def _text(lines: pl.DataFrame) -> str:
    return lines.write_csv(separator=" ", include_header=False, quote_style="never")
