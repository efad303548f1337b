"""Graphs of other libraries as edges: matrices of NumPy and scipy, networkx and igraph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from apexrank.errors import InputError
from apexrank.graph.edges import Column, Edges, alike, as_weights, object_array, sorted_if_alike
from apexrank.graph.graph import as_names
from apexrank.kernels.edges import index_type


def refuse_columns(kind: str, **columns: Column) -> None:
    """Raise InputError for columns of a graph that has none."""
    for name, given in columns.items():
        if given is not None:
            raise InputError(f"{name}={given!r} names a column, but a {kind} graph has none: leave it out")


def is_matrix(data: Any) -> bool:
    """Whether data are a sparse or dense matrix."""
    return sparse.issparse(data) or isinstance(data, np.ndarray)


def _as_numbers(matrix: Any) -> Any:
    """A matrix of Python objects as floats; a table that is no graph is refused as scikit-learn refuses any table."""
    if matrix.dtype.kind == "O":
        return matrix.astype(np.float64)
    if len(matrix.shape) == 2 and matrix.shape[0] != matrix.shape[1]:
        try:
            check_array(matrix, accept_sparse=True)
        except ValueError as error:
            raise InputError(str(error).splitlines()[0]) from None
    return matrix


def edges_of_matrix(matrix: Any, use_weights: bool) -> Edges:
    """Read the entries of a square matrix that are not 0."""
    matrix = _as_numbers(matrix)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        advice = (
            "; for a list of edges give (edges[:, 0], edges[:, 1])"
            if matrix.shape[1:] in ((2,), (3,))
            else ""
        )
        raise InputError(f"an adjacency matrix must be square, got shape {matrix.shape}{advice}")
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"an adjacency matrix must hold numbers, got {matrix.dtype} values")
    n = matrix.shape[0]
    if sparse.issparse(matrix):
        entries = matrix.tocoo()
        sources, targets, weights = entries.row, entries.col, entries.data
    else:
        matrix = np.asarray(matrix)
        sources, targets = np.nonzero(matrix)
        weights = matrix[sources, targets]
    if not use_weights:
        weights = weights != 0
    if weights.dtype.kind == "b" and weights.all():
        weights = None
    sources, targets = alike(sources, targets, n)
    given = None if weights is None else as_weights(weights, len(sources))
    return Edges(sources, targets, given, n, is_matrix=True)


def edges_of_networkx(graph: Any, weight: Any) -> Edges:
    """Read a networkx graph with an edge attribute as weights."""
    names = sorted_if_alike(list(graph))
    number = {name: i for i, name in enumerate(names)}
    m, index = graph.number_of_edges(), index_type(len(names))
    sources, targets = (
        np.fromiter((number[edge[end]] for edge in graph.edges()), index, m) for end in (0, 1)
    )
    edges = Edges(
        sources, targets, None, len(names), as_names(names, len(names)), directed=graph.is_directed()
    )

    def attribute(key: Any) -> list[Any]:
        return [value for *_, value in graph.edges(data=key, default=None)]

    return _with_attribute(edges, attribute, weight)


def edges_of_igraph(graph: Any, weight: Any) -> Edges:
    """Read an igraph graph with an edge attribute as weights."""
    n, m = graph.vcount(), graph.ecount()
    ends = np.fromiter((end for edge in graph.get_edgelist() for end in edge), np.int32, 2 * m)
    names = graph.vs["name"] if "name" in graph.vs.attributes() else None
    ends_of = ends[::2].copy(), ends[1::2].copy()
    edges = Edges(*ends_of, None, n, as_names(names, n), directed=graph.is_directed())

    def attribute(key: Any) -> list[Any]:
        return graph.es[key] if key in graph.es.attributes() else [None] * m

    return _with_attribute(edges, attribute, weight)


def _with_attribute(edges: Edges, attribute: Callable[[Any], list[Any]], weight: Any) -> Edges:
    """Edges with an attribute of theirs as weights, 1 where an edge has none."""
    if weight is False:
        return edges
    values = attribute("weight" if weight is None else weight)
    if all(value is None for value in values):
        if weight is not None and values:
            raise InputError(f"no edge has the attribute {weight!r}: name another with weight=")
        return edges
    given = object_array(1.0 if value is None else value for value in values)
    weights = as_weights(given, len(values), lambda row: "edge {!r} to {!r}".format(*edges.ends(row)))
    return replace(edges, weights=weights)
