"""Readers of files that name vertices: seeds of trust and teleport, labels, and earlier ranks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.files import read_bytes
from apexrank.graph.base import best_vertices
from apexrank.graph.graph import Graph
from apexrank.io.columns import numbers
from apexrank.io.delimited import fields, read_rows
from apexrank.io.read import read_table


def named_vertex(graph: Graph, text: str) -> Any:
    """Convert text to a vertex name: a whole number if the graph's names are numbers."""
    numbered = graph.names is None or graph.names.dtype.kind in "iu"
    return int(text) if numbered and re.fullmatch(r"[+-]?\d{1,19}", text, re.ASCII) else text


def seed_weights(path: Path, graph: Graph, what: str) -> tuple[dict[Any, float], str | None]:
    """Read vertex weights from a file, with a note about names that are not in the graph.

    Lists of seeds and labels come from other sources and may name vertices that a crawl lacks; it is an error if all
    are unknown.
    """
    rows = [(line, named_vertex(graph, name), weight) for line, name, weight in read_seeds(path)]
    seeds: dict[Any, float] = {}
    for line, vertex, weight in rows:
        if seeds.setdefault(vertex, weight) != weight:
            raise InputError(f"{path} line {line}: {vertex!r} has another weight further up; keep one")
    known = graph.has(list(seeds))
    unknown = [vertex for vertex, is_known in zip(seeds, known, strict=True) if not is_known]
    if not unknown:
        return seeds, None
    line = next(line for line, vertex, _ in rows if vertex == unknown[0])
    try:
        graph.numbers(unknown[:1], what=what)
    except InputError as error:
        first = f"{path} line {line}: {error}"
    if len(unknown) == len(seeds):
        hint = "; a CSV file needs a column named vertex" if "," in str(unknown[0]) else ""
        raise InputError(
            f"{first}{'' if len(seeds) == 1 else ', nor is any other that the file names'}{hint}"
        )
    some = f"{len(unknown)} of {len(seeds)} vertices that {path} names are not in the graph and left out"
    kept = {vertex: weight for vertex, weight in seeds.items() if vertex not in {*unknown}}
    return kept, f"{some}; {first}"


def read_seeds(path: Path) -> list[tuple[int, str, float]]:
    r"""Read line number, name and weight of vertices from plain lines, or CSV with ``vertex`` and optional ``weight``.

    Blank lines and lines that begin with ``#`` are skipped. A plain line is a name with weight 1, without enclosing
    quotes. A previously written ranking also has a column ``vertex``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "good.csv"
    ...     _ = path.write_text("# checked by hand\nvertex,weight\nexample.org,2\n")
    ...     read_seeds(path)
    [(3, 'example.org', 2.0)]
    """
    content = re.sub(rb"(?m)^[ \t]*(?:#[^\n]*|\r?)$", b"", read_bytes(path))
    above, top = next(((n, line) for n, line in enumerate(content.split(b"\n"), 1) if line), (0, b""))
    header = [name.strip().lower() for name in fields(top.decode(), ",") or []]
    if "vertex" in header:
        if len({*header}) < len(header):
            raise InputError(f"{path} line {above}: two columns have the same name; rename one")
        rows = read_rows(path, [content.split(b"\n", above)[-1]], header, ",", above + 1)
        names = rows.frame["vertex"].fill_null("").str.strip_chars()
    else:
        rows = read_rows(path, [content], ["vertex"], "\0", 1, quotes=False)
        names = rows.frame["vertex"].str.strip_chars()
        names = names.str.replace(r'^"*([^"].*?)"*$', "${1}")
    if not len(names):
        raise InputError(f"{path} names no vertex: write one per line")
    weights = (
        rows.frame["weight"] if "weight" in rows.frame.columns else pl.repeat("1", len(names), eager=True)
    )
    values = weights.str.strip_chars().cast(pl.Float64, strict=False)
    for row in (~((values >= 0) & values.is_finite()).fill_null(False)).arg_true().head(1):
        told = f"{weights[row]!r} is not a weight; write a number >= 0"
        raise InputError(f"{path} line {rows.lines[row]}: {told}")
    return [*zip(np.asarray(rows.lines).tolist(), names.to_list(), values.to_list(), strict=True)]


def earlier_scores(path: Path, graph: Graph) -> np.ndarray:
    """Read scores from a file of ranks by vertex name; 0 for vertices that it lacks."""
    table = read_table(path)
    vertices = table.column("vertex").cast(pl.String)
    if (twice := vertices.is_duplicated()).any():
        raise InputError(f"{path} has more than one row of vertex {vertices.filter(twice)[0]!r}: keep one")
    known = dict(zip(vertices.to_list(), np.nan_to_num(numbers(table, "score")).tolist(), strict=True))
    scores = np.array([known.get(str(name), 0.0) for name in graph.labels().tolist()])
    if not (scores > 0).any():
        raise InputError(f"{path} has no positive score for any vertex of this graph: leave out `start`")
    return scores


def ranking_frame(
    graph: Graph, scores: np.ndarray, top: int | None = None, **more: np.ndarray
) -> pl.DataFrame:
    """Return the ``top`` vertices, best first, with scores and ``more`` columns; ties keep the graph's order.

    Examples
    --------
    >>> from apexrank.graph.graph import Graph
    >>> graph = Graph.from_edges([0, 1], [1, 0], names=["page", "shop"])
    >>> ranking_frame(graph, np.array([0.4, 0.6])).rows()
    [(1, 'shop', 0.6), (2, 'page', 0.4)]
    """
    order = best_vertices(scores, top)
    vertices: Any = None if graph.text_names is None else graph.text_names.gather(order)
    if vertices is None:
        names = graph.labels(order)
        vertices = (
            names.tolist() if names.dtype == object else names
        )  # converts objects back to text or numbers
    columns = {name: values[order] for name, values in ({"score": scores} | more).items()}
    return pl.DataFrame({"rank": np.arange(1, len(order) + 1), "vertex": vertices, **columns})
