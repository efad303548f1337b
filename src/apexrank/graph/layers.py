"""Several graphs over the same vertices, such as networks, kinds of links or days."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from apexrank.errors import InputError, warn
from apexrank.graph.edges import (
    Column,
    Edges,
    alike,
    choose_columns,
    column_position,
    edges_of_frame,
    is_blank,
    object_array,
    sorted_if_alike,
)
from apexrank.graph.files import EdgeTable, assumed, edges_of_file
from apexrank.graph.graph import Graph, SignedGraph, build
from apexrank.graph.reading import as_graph
from apexrank.graph.shards import is_shards
from apexrank.kernels.edges import looked_up
from apexrank.kernels.hulls import Hulls, stacked

_COLUMNS = ("source", "target", "weight", "format")  # options for reading a file of edges


@dataclass(frozen=True, eq=False, repr=False)
class Layers:
    """Named graphs over a common set of vertices; created by :func:`as_layers`.

    Parameters
    ----------
    graphs : tuple of Graph
        Graphs with the same vertices. A vertex without out-links in a layer has no opinion there.
    names : tuple of str
        Names of the layers.

    Examples
    --------
    >>> layers = as_layers({"mon": (["a", "b"], ["b", "a"]), "tue": (["a"], ["c"])})
    >>> layers
    Layers(3 vertices, 2 layers, 3 links)
    >>> layers.graphs[1].dangling.tolist()
    [False, True, True]
    """

    graphs: tuple[Graph, ...]
    names: tuple[str, ...]

    def __repr__(self) -> str:
        links = sum(graph.n_edges for graph in self.graphs)
        return f"Layers({self.n} vertices, {len(self.graphs)} layers, {links} links)"

    def __len__(self) -> int:
        return len(self.graphs)

    @property
    def n(self) -> int:
        """Number of vertices."""
        return self.graphs[0].n

    @property
    def vertex_names(self) -> np.ndarray | None:
        """Names of the vertices; None if they are 0 to n − 1."""
        return self.graphs[0].names

    @cached_property
    def hulls(self) -> Hulls:
        """Recommendations of each vertex in all layers."""
        return stacked([graph.reversed()._links for graph in self.graphs])

    def union(self) -> Graph:
        """Return one graph with the links of all layers, with their weights summed.

        Examples
        --------
        >>> as_layers([([0, 1], [1, 0]), ([0, 1], [1, 0])]).union().weights.tolist()
        [2.0, 2.0]
        """
        ends = [_ends(graph) for graph in self.graphs]
        sources, targets = (np.concatenate([each[k] for each in ends]) for k in (0, 1))
        weights = np.concatenate(
            [np.ones(g.n_edges) if g.weights is None else g.weights for g in self.graphs]
        )
        return build(Edges(sources, targets, weights, self.n, self.vertex_names), True, "sum", "keep")


def as_layers(layers: Any, *, label: Column = None, **options: Any) -> Layers:
    """Read several graphs over a shared set of vertices.

    Parameters
    ----------
    layers : Layers, list of graphs, mapping of names to graphs, or one edge table
        Graphs are any input of :func:`apexrank.graph.as_graph`; vertices are matched by name, and a vertex missing in a
        layer has no opinion there. With ``label``: one data frame, or the path of a CSV or Parquet file with column
        names.
    label : str or int, optional
        Column of the edge table with the layer of each edge.
    **options
        Options of :func:`apexrank.graph.as_graph`.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"from": ["a", "b", "a"], "to": ["b", "a", "c"], "day": ["mon", "mon", "tue"]})
    >>> as_layers(table, label="day").names
    ('mon', 'tue')
    """
    if isinstance(layers, Layers):
        return layers
    if label is not None:
        return layers_of_table(layers, label, **options)
    if isinstance(layers, Mapping):
        names, given = tuple(map(str, layers)), list(layers.values())
    elif isinstance(layers, Iterable) and not isinstance(layers, str | tuple) and not _is_one_graph(layers):
        given = list(layers)
        names = _names_of(given)
    else:
        raise InputError("layers must be a list or a mapping of graphs, or one edge table with `label=`")
    if not given:
        raise InputError("there are no layers: give at least one graph")
    if len(set(names)) < len(names):
        repeated = next(name for k, name in enumerate(names) if name in names[:k])
        raise InputError(f"two layers are named {repeated!r}: rename one")
    _refuse_different_matrices(given)
    graphs, columns = [], {name: options.pop(name, None) for name in _COLUMNS}
    for name, data in zip(names, given, strict=True):
        if isinstance(data, str | Path) and not is_shards(data):
            edges = edges_of_file(data, **columns)
            _warn(edges.assumed)
            graph = as_graph(edges, **options)
        else:
            graph = as_graph(data, **columns, **options)
        if isinstance(graph, SignedGraph):
            raise InputError(f"layer {name!r} is a signed graph: give its .positive part")
        graphs.append(graph)
    graphs = _named_alike(graphs, names, are_files=all(isinstance(data, str | Path) for data in given))
    return Layers(tuple(_over_shared_vertices(graphs)), names)


def layers_of_table(
    table: Any,
    label: str | int,
    *,
    source: Column = None,
    target: Column = None,
    weight: Column = None,
    directed: bool | None = None,
    repeated: str = "sum",
    self_loops: str = "keep",
    format: str | None = None,
) -> Layers:
    """Read an edge table with a column of layers; every layer has the vertices of the whole table."""
    what, where = "edge table", None
    if format is not None:
        raise InputError(f"`label={label!r}` names a column of a table: leave out `format=`")
    if isinstance(table, str | Path):
        from apexrank.io.read import read_table  # loads polars

        what, read = str(table), read_table(Path(table))
        table, where = _typed(read), read.where
    if not hasattr(table, "columns"):
        raise InputError(f"`label={label!r}` names a column of one edge table: give a data frame or a file")
    names = [str(name) for name in table.columns]
    at = column_position(label, names, what)
    rest = [name for i, name in enumerate(table.columns) if i != at]
    if where is not None:
        chosen = choose_columns([str(name) for name in rest], source, target, weight, what)
        _refuse_text(table, chosen[2], rest, where)
        _warn(assumed(EdgeTable(Path(what), rest, chosen, (None, None, None), str), (source, target, weight)))
    edges = edges_of_frame(table[rest], source, target, weight, what)
    if where is not None:
        edges = replace(edges, place=lambda row: where(row, names[at]).rpartition(", column")[0])
    layer_of, values = _layers_of(table[table.columns[at]], what)
    parts = [edges.of_rows(np.flatnonzero(layer_of == k)) for k in range(len(values))]
    graphs = tuple(build(part, directed is not False, repeated, self_loops) for part in parts)
    return Layers(graphs, tuple(map(str, values)))


def _warn(note: str | None) -> None:
    if note is not None:
        warn(note)


def _typed(table: Any) -> Any:
    """Convert columns of a text table that are whole numbers or numbers."""
    import polars as pl

    def typed(column: Any) -> Any:
        if column.dtype != pl.String:
            return column
        text = column.drop_nulls()
        if len(text) and text.str.contains(r"^[+-]?(0|[1-9][0-9]{0,17})$").all():
            return column.cast(pl.Int64)
        numbers = column.cast(pl.Float64, strict=False)
        return numbers if len(text) and numbers.null_count() == column.null_count() else column

    return table.frame.select(typed(column) for column in table.frame.get_columns())


def _refuse_text(table: Any, weight: int | None, names: list[Any], where: Callable[[int, str], str]) -> None:
    """Raise InputError with the line if a column of weights contains text."""
    import polars as pl

    if weight is not None and table[names[weight]].dtype == pl.String:
        column = table[names[weight]]
        row = int((column.cast(pl.Float64, strict=False).is_null() & column.is_not_null()).arg_max() or 0)
        raise InputError(
            f"{where(row, names[weight])}: the weight {column[row]!r} is not a number; correct it"
        )


def _layers_of(column: Any, what: str) -> tuple[np.ndarray, list[Any]]:
    """Return the layer number of each row and the labels, in the order of a categorical, else sorted if comparable."""
    values = column.to_numpy()
    if values.dtype.kind == "M":
        days = values.astype("datetime64[D]")
        missing = np.isnat(values)
        written = np.datetime_as_string(
            days if (days == values)[~missing].all() else values.astype("datetime64[s]")
        )
        listed = [None if empty else text for text, empty in zip(written.tolist(), missing, strict=True)]
    else:
        listed = values.tolist()
    empty = [row for row, value in enumerate(listed) if is_blank(value)]
    if empty:
        raise InputError(f"{what} row {empty[0] + 1} has no label: say which layer its edge belongs to")
    found = sorted_if_alike(list(dict.fromkeys(listed)))
    if hasattr(column, "cat") and hasattr(column.cat, "categories"):
        found = [value for value in column.cat.categories.tolist() if value in set(found)]
    number = {value: k for k, value in enumerate(found)}
    return np.array([number[value] for value in listed]), found


def _named_alike(graphs: list[Graph], names: tuple[str, ...], are_files: bool) -> list[Graph]:
    """Make the vertex names of all graphs numbers, or all text.

    The number 7 of one file matches the text 7 of another; for layers from other sources, mixed names are an error.
    """
    is_whole = [graph.names is None or graph.names.dtype.kind in "iu" for graph in graphs]
    if all(is_whole) or not any(is_whole):
        return graphs
    labels = [graph.labels().tolist() for graph in graphs]
    if are_files:
        return [
            replace(graph, names=object_array(map(str, own))) if whole else graph
            for graph, own, whole in zip(graphs, labels, is_whole, strict=True)
        ]
    numbers = {str(name) for own, whole in zip(labels, is_whole, strict=True) if whole for name in own}
    for layer, own in zip(names, labels, strict=True):
        meant = [name for name in own if isinstance(name, str) and name in numbers]
        if meant:
            raise InputError(
                f"layer {layer!r} names a vertex by text {meant[0]!r}, layer {names[is_whole.index(True)]!r} by a "
                "number: make the ids of all layers text, or make them all numbers"
            )
    return graphs


def _is_one_graph(data: Any) -> bool:
    return isinstance(data, Graph) or hasattr(data, "shape") or hasattr(data, "edges") or hasattr(data, "es")


def _names_of(given: list[Any]) -> tuple[str, ...]:
    """Name layers by their file names if these differ, else by numbers from 0."""
    if given and all(isinstance(each, str | Path) for each in given):
        stems = tuple(Path(each).name.split(".")[0] for each in given)
        return stems if len(set(stems)) == len(stems) else tuple(map(str, given))
    return tuple(str(k) for k in range(len(given)))


def _refuse_different_matrices(given: list[Any]) -> None:
    shapes = {each.shape for each in given if hasattr(each, "shape") and not hasattr(each, "columns")}
    if len(shapes) > 1:
        raise InputError(f"matrices of layers must have one shape, got {sorted(shapes)}: share the vertices")


def _over_shared_vertices(graphs: list[Graph]) -> list[Graph]:
    """Extend all graphs to the union of their vertices."""
    listed = [graph.labels() for graph in graphs]
    if all(np.array_equal(names, listed[0]) for names in listed[1:]):
        return graphs
    if all(names.dtype.kind in "iu" for names in listed):
        shared: Any = np.unique(np.concatenate(listed))
    else:
        seen = dict.fromkeys(name for names in listed for name in names.tolist())
        shared = object_array(sorted_if_alike(list(seen)))
    bare = Graph.from_edges([], [], names=shared)
    return [_moved(graph, bare.find(names), bare) for graph, names in zip(graphs, listed, strict=True)]


def _moved(graph: Graph, place: np.ndarray, bare: Graph) -> Graph:
    """Renumber the vertices of a graph by their numbers in another one."""
    sources, targets = (looked_up(end, place) for end in _ends(graph))
    return build(
        Edges(*alike(sources, targets, bare.n), graph.weights, bare.n, bare.names), True, "sum", "keep"
    )


def _ends(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    targets = np.repeat(np.arange(graph.n, dtype=graph.indices.dtype), np.diff(graph.indptr))
    return graph.indices, targets
