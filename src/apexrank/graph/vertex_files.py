"""Files that name vertices: seeds of trust and teleport, labels, and ranks written earlier."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.graph.graph import Graph
from apexrank.io.columns import numbers
from apexrank.io.tables import read_table


def named_vertex(graph: Graph, text: str) -> Any:
    """Convert text to the name of a vertex: a whole number where the graph's names are numbers."""
    numbered = graph.names is None or graph.names.dtype.kind in "iu"
    return int(text) if numbered and re.fullmatch(r"[+-]?\d{1,19}", text, re.ASCII) else text


def seed_weights(path: Path, graph: Graph, what: str) -> dict[Any, float]:
    """Read the weights of the vertices that a file names; an unknown vertex is an error with its line."""
    rows = [(line, named_vertex(graph, name), weight) for line, name, weight in read_seeds(path)]
    try:
        graph.numbers([vertex for _, vertex, _ in rows], what=what)
    except InputError:
        for line, vertex, _ in rows:
            try:
                graph.numbers([vertex], what=what)
            except InputError as error:
                hint = "; a CSV file needs a column named vertex" if "," in str(vertex) else ""
                raise InputError(f"{path} line {line}: {error}{hint}") from None
    seeds: dict[Any, float] = {}
    for line, vertex, weight in rows:
        if seeds.setdefault(vertex, weight) != weight:
            raise InputError(
                f"{path} line {line}: {vertex!r} has another weight further up; keep one of them"
            )
    return seeds


def read_seeds(path: Path) -> list[tuple[int, str, float]]:
    r"""Read line, name and weight of the vertices of a file: plain lines, or CSV with ``vertex`` and maybe ``weight``.

    Blank lines and those that begin with ``#`` are left out. A plain line is a name of weight 1 as it stands, less
    quotes around it. A ranking that was written earlier has a column ``vertex``, too.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "good.csv"
    ...     _ = path.write_text("# checked by hand\nvertex,weight\nexample.org,2\n")
    ...     read_seeds(path)
    [(3, 'example.org', 2.0)]
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except IsADirectoryError:
        raise InputError(f"cannot read {str(path)!r}: it is a folder; give a file in it") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path} is not UTF-8 text (line {line}): save it as UTF-8") from None
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {(error.strerror or 'it fails').lower()}") from None
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    header = _fields(lines[0][1], ",") if lines else []
    if "vertex" in [name.lower() for name in header]:
        rows = [
            _seed_of_csv(path, number, line, [name.lower() for name in header]) for number, line in lines[1:]
        ]
    else:
        rows = [(number, line.strip('"') or line, 1.0) for number, line in lines]
    if not rows:
        raise InputError(f"{path} names no vertex: write one a line")
    return rows


def _fields(line: str, separator: str) -> list[str]:
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=separator))]
    except csv.Error:  # a line feed inside the line, or a field that is too long: no name is so
        return [field.strip() for field in line.split(separator)]


def _seed_of_csv(path: Path, number: int, line: str, header: list[str]) -> tuple[int, str, float]:
    fields = _fields(line, ",")
    if len(fields) != len(header):
        has = f"{len(fields)} field{'s' * (len(fields) != 1)}"
        raise InputError(f"{path} line {number}: the row has {has}, the header {len(header)}")
    row = dict(zip(header, fields, strict=True))
    try:
        weight = float(row.get("weight", 1.0))
    except ValueError:
        weight = math.nan
    if not 0 <= weight < math.inf:
        raise InputError(
            f"{path} line {number}: {row['weight']!r} is no weight; write a number of at least 0"
        )
    return number, row["vertex"], weight


def earlier_scores(path: Path, graph: Graph) -> np.ndarray:
    """Read the scores of a file of ranks by the names of the vertices; 0 for vertices that it lacks."""
    table = read_table(path)
    known = {"vertex": table.column("vertex").cast(pl.String), "score": numbers(table, "score")}
    earlier = pl.DataFrame(known)
    if (twice := earlier["vertex"].is_duplicated()).any():
        raise InputError(
            f"{path} has more than one row of vertex {earlier['vertex'].filter(twice)[0]!r}: keep one"
        )
    names = _series(np.arange(graph.n) if graph.names is None else graph.names).cast(pl.String)
    vertices = pl.DataFrame({"vertex": names}).with_row_index()
    found = vertices.join(earlier, on="vertex", how="left").sort("index")["score"]
    scores = found.fill_null(0.0).fill_nan(0.0).to_numpy()
    if not (scores > 0).any():
        raise InputError(f"{path} has no positive score of a vertex of this graph: leave out --start")
    return scores


def ranking_frame(
    graph: Graph, scores: np.ndarray, top: int | None = None, **more: np.ndarray
) -> pl.DataFrame:
    """Return the ``top`` vertices, best first, with their scores and ``more`` columns; equals keep the graph's order.

    Examples
    --------
    >>> from apexrank.graph.graph import Graph
    >>> graph = Graph.from_edges([0, 1], [1, 0], names=["page", "shop"])
    >>> ranking_frame(graph, np.array([0.4, 0.6])).rows()
    [(1, 'shop', 0.6), (2, 'page', 0.4)]
    """
    order = np.argsort(-scores, kind="stable")[:top]
    ranks, vertices = np.arange(1, len(order) + 1), _series(graph.labels(order))
    columns = {name: values[order] for name, values in ({"score": scores} | more).items()}
    return pl.DataFrame({"rank": ranks, "vertex": vertices, **columns})


def _series(names: np.ndarray) -> pl.Series:
    """Convert names to a polars column; objects become text or numbers again."""
    return pl.Series(names.tolist() if names.dtype == object else names)
