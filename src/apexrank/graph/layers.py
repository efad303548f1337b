"""Several graphs between the same vertices: networks, kinds of links, days."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.adjacency import Graph, SignedGraph, as_names, build
from apexrank.graph.edges import (
    Column,
    Edges,
    alike,
    edges_of_frame,
    is_missing,
    object_array,
    sorted_if_alike,
)
from apexrank.graph.reading import as_graph
from apexrank.kernels.edges import looked_up
from apexrank.kernels.hulls import Hulls, stacked


@dataclass(frozen=True, eq=False, repr=False)
class Layers:
    """Graphs over one set of vertices, each with a name; made by :func:`as_layers`.

    Parameters
    ----------
    graphs : tuple of Graph
        All with the same vertices. A vertex without out-links in a layer has no opinion there.
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
        """Names of the vertices; None when they are 0 to n − 1."""
        return self.graphs[0].names

    @cached_property
    def hulls(self) -> Hulls:
        """What the vertices recommend in the layers, by vertex."""
        return stacked([graph.reversed()._links for graph in self.graphs])

    def union(self) -> Graph:
        """One graph with the links of all layers, their weights added up.

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
        Graphs are whatever :func:`apexrank.graph.as_graph` reads; vertices are matched by name, and one that is missing
        in a layer has no opinion there. With ``label`` one data frame, or the path of a CSV or Parquet file with names
        of columns.
    label : str or int, optional
        Column of the one edge table that says which layer an edge belongs to.
    **options
        As for :func:`apexrank.graph.as_graph`.

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
        return _of_table(layers, label, **options)
    if isinstance(layers, Mapping):
        names, given = tuple(map(str, layers)), list(layers.values())
    elif isinstance(layers, Iterable) and not isinstance(layers, str | tuple) and not _is_one_graph(layers):
        given = list(layers)
        names = _names_of(given)
    else:
        raise InputError(
            "layers must be a list of graphs, a mapping of names to graphs, or one edge table with label="
        )
    if not given:
        raise InputError("there are no layers: give at least one graph")
    if len(set(names)) < len(names):
        raise InputError(f"two layers are named {_first_repeated(names)!r}: rename one")
    _refuse_different_matrices(given)
    graphs = []
    for name, data in zip(names, given, strict=True):
        graph = as_graph(data, **options)
        if isinstance(graph, SignedGraph):
            raise InputError(f"layer {name!r} is a signed graph: give its .positive part")
        graphs.append(graph)
    return Layers(tuple(_over_shared_vertices(graphs)), names)


def _is_one_graph(data: Any) -> bool:
    return isinstance(data, Graph) or hasattr(data, "shape") or hasattr(data, "edges") or hasattr(data, "es")


def _names_of(given: list[Any]) -> tuple[str, ...]:
    """Files by their names where these differ, else numbers from 0."""
    if given and all(isinstance(each, str | Path) for each in given):
        stems = tuple(Path(each).name.split(".")[0] for each in given)
        return stems if len(set(stems)) == len(stems) else tuple(map(str, given))
    return tuple(str(k) for k in range(len(given)))


def _first_repeated(names: tuple[str, ...]) -> str:
    return next(name for k, name in enumerate(names) if name in names[:k])


def _refuse_different_matrices(given: list[Any]) -> None:
    shapes = {each.shape for each in given if hasattr(each, "shape") and not hasattr(each, "columns")}
    if len(shapes) > 1:
        raise InputError(
            f"matrices of layers must have one shape, that of their shared vertices, got {sorted(shapes)}"
        )


def _over_shared_vertices(graphs: list[Graph]) -> list[Graph]:
    """The same graphs with the vertices of all of them."""
    first = graphs[0]
    if all(_same_vertices(first, graph) for graph in graphs[1:]):
        return graphs
    listed = [np.arange(graph.n) if graph.names is None else graph.names for graph in graphs]
    if all(names.dtype.kind in "iu" for names in listed):
        shared: Any = np.unique(np.concatenate(listed))
        places = [np.searchsorted(shared, names) for names in listed]
    else:
        seen = dict.fromkeys(name for names in listed for name in names.tolist())
        shared = object_array(sorted_if_alike(list(seen)))
        number = {name: i for i, name in enumerate(shared.tolist())}
        places = [np.array([number[name] for name in names.tolist()], dtype=np.int64) for names in listed]
    n, names = len(shared), as_names(shared, len(shared))
    return [_moved(graph, place, n, names) for graph, place in zip(graphs, places, strict=True)]


def _same_vertices(one: Graph, other: Graph) -> bool:
    if one.n != other.n or (one.names is None) != (other.names is None):
        return False
    return one.names is None or bool((one.names == other.names).all())


def _moved(graph: Graph, place: np.ndarray, n: int, names: np.ndarray | None) -> Graph:
    sources, targets = (looked_up(end, place) for end in _ends(graph))
    edges = Edges(*alike(sources, targets, n), graph.weights, n, names)
    return build(edges, True, "sum", "keep")


def _ends(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    targets = np.repeat(np.arange(graph.n, dtype=graph.indices.dtype), np.diff(graph.indptr))
    return graph.indices, targets


def _of_table(
    table: Any,
    label: Column,
    *,
    source: Column = None,
    target: Column = None,
    weight: Column = None,
    directed: bool | None = None,
    repeated: str = "sum",
    self_loops: str = "keep",
) -> Layers:
    what = "edge table"
    if isinstance(table, str | Path):
        from apexrank.io.tables import read_table  # which loads polars

        what, table = str(table), read_table(Path(table)).frame
    if not hasattr(table, "columns"):
        raise InputError(f"label={label!r} names a column of one edge table: give a data frame or a file")
    names = [str(name) for name in table.columns]
    if isinstance(label, str) and label not in names:
        raise InputError(f"{what} has no column {label!r}; it has {', '.join(map(repr, names[:8]))}")
    at = names.index(label) if isinstance(label, str) else label
    if not isinstance(at, int | np.integer) or not 0 <= at < len(names):
        raise InputError(f"{what} has no column {label!r} counted from 0; it has {len(names)} columns")
    rest = [name for i, name in enumerate(table.columns) if i != at]
    edges = edges_of_frame(table[rest], source, target, weight, what)
    column = table[table.columns[at]].to_numpy()
    layer_of, values = _layers_of(column, what)

    def part(k: int) -> Graph:
        rows = np.flatnonzero(layer_of == k)
        chosen = replace(
            edges,
            sources=edges.sources[rows],
            targets=edges.targets[rows],
            weights=None if edges.weights is None else edges.weights[rows],
            place=lambda row: edges.place(int(rows[row])),
        )
        return build(chosen, directed is not False, repeated, self_loops)

    return Layers(tuple(part(k) for k in range(len(values))), tuple(map(str, values)))


def _layers_of(column: np.ndarray, what: str) -> tuple[np.ndarray, list[Any]]:
    """Number of the layer of each row, and their labels, sorted where they can be compared."""
    listed = column.tolist()
    missing = [row for row, value in enumerate(listed) if is_missing(value)]
    if missing:
        raise InputError(f"{what} row {missing[0] + 1} has no label: say which layer its edge belongs to")
    values = sorted_if_alike(list(dict.fromkeys(listed)))
    number = {value: k for k, value in enumerate(values)}
    return np.array([number[value] for value in listed]), values
