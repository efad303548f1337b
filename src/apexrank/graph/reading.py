"""One way in: everything that can be read as a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from apexrank.errors import InputError
from apexrank.graph.edges import (
    Column,
    Edges,
    alike,
    as_weights,
    edges_of_arrays,
    edges_of_frame,
    index_type,
    object_array,
    sorted_if_alike,
)
from apexrank.graph.files import edges_of_file
from apexrank.graph.graph import Graph, SignedGraph, as_names, build, check_rules, graph_of_rows


def as_graph(
    data: Any,
    *,
    directed: bool | None = None,
    source: Column = None,
    target: Column = None,
    weight: Column = None,
    repeated: str = "sum",
    self_loops: str = "keep",
    signed: bool = False,
) -> Any:
    """Read anything that is a graph.

    Parameters
    ----------
    data : Graph, SignedGraph, sparse or dense matrix, networkx or igraph graph, data frame, path, or tuple
        - a :class:`Graph` or :class:`SignedGraph` is returned as it is;
        - a square scipy sparse matrix, or numpy array of two dimensions: ``A[i, j]`` is the weight of the link from
          i to j, 0 is no link;
        - networkx: vertices sorted by name where all names can be compared, else in its order; igraph: vertices in
          its order, with the names in the vertex attribute ``name`` where there is one;
        - a pandas or polars data frame of edges, or the path of a CSV, TSV, white-space separated (as SNAP has
          them) or Parquet file, plain or gzip (see :func:`apexrank.graph.files.edges_of_file`); or a tuple
          ``(sources, targets)`` or ``(sources, targets, weights)`` of arrays. Ids may be text or whole numbers; the
          vertices are the ids that occur, sorted, so that the order of the edges does not matter.
    directed : bool, optional
        False: every edge is a link in both directions, a self-loop one link. By default what networkx or igraph say,
        else True. A symmetric matrix already holds both directions, and ``directed=False`` leaves it as it is.
    source, target : str or int, optional
        Columns of an edge table; by default those named source or src or from, and target or dst or to, in upper
        or lower case, else the first two. A whole number is a position, from 0.
    weight : str, int or False, optional
        Column of an edge table; by default one named weight or rating or value. For networkx and igraph the edge
        attribute, by default ``"weight"``; edges without it weigh 1. False: every link weighs 1.
    repeated : {"sum", "once", "error"}
        What an edge given several times is: one link with the sum of the weights (without weights it weighs their
        number), one link with the largest of the weights, or an error.
    self_loops : {"keep", "drop"}
        Whether a link from a vertex to itself is an ordinary link or none.
    signed : bool
        Return a :class:`SignedGraph`: links of positive weight, and links of negative weight with its absolute
        value. A pair with edges of both kinds is linked in both.

    Returns
    -------
    Graph, or SignedGraph when ``signed``

    Raises
    ------
    InputError
        Naming the edge, and its line in a file: a negative weight (unless ``signed``), a weight that is not finite, a
        missing id, a broken line; also a graph without vertices, or a matrix that is not square.

    Examples
    --------
    >>> graph = as_graph((["a", "b", "b"], ["b", "a", "c"]))
    >>> graph.names.tolist(), graph.n_edges
    (['a', 'b', 'c'], 3)
    >>> as_graph((["a", "b"], ["b", "a"], [1, -3]), signed=True).negative.weights.tolist()
    [3.0]
    """
    if isinstance(data, SignedGraph | Graph):
        if directed is False or self_loops != "keep":
            raise InputError("a Graph is ready: give directed= and self_loops= where it is made")
        return _with_no_negative(data) if signed and isinstance(data, Graph) else data
    check_rules(repeated, self_loops)
    if _is_plain_pattern(data) and directed is not False and not signed and self_loops == "keep":
        _refuse_columns("matrix", source=source, target=target, weight=weight or None)
        return graph_of_rows(data)
    edges, as_given = _edges(data, source, target, weight)
    if as_given is False and directed:
        raise InputError(
            "the graph is undirected: leave out directed=True, each edge counts in both directions"
        )
    both_ways = not (as_given if directed is None else directed)
    if both_ways and _is_matrix(data) and not (data != data.T).sum():
        both_ways = False

    def part(sign: int | None) -> Graph:
        return build(edges, not both_ways, repeated, self_loops, sign)

    if not signed:
        return part(None)
    if edges.weights is None:
        what = f"{data}: " if isinstance(data, str | Path) else ""
        raise InputError(
            f"{what}signed=True needs weights, negative ones for distrust: name their column with weight="
        )
    if repeated == "error":
        part(0)
    return SignedGraph(part(1), part(-1))


def _edges(data: Any, source: Column, target: Column, weight: Any) -> tuple[Edges, bool]:
    """Edges as given, and whether they are directed by themselves."""
    home = _home(data)
    if home == "networkx" and hasattr(data, "is_multigraph"):
        _refuse_columns(home, source=source, target=target)
        return _edges_of_networkx(data, weight), data.is_directed()
    if home == "igraph" and hasattr(data, "get_edgelist"):
        _refuse_columns(home, source=source, target=target)
        return _edges_of_igraph(data, weight), data.is_directed()
    if home in ("pandas", "polars") and "DataFrame" in (kind.__name__ for kind in type(data).__mro__):
        return edges_of_frame(data, source, target, weight), True
    if isinstance(data, str | Path):
        return edges_of_file(data, source, target, weight), True
    _refuse_columns(
        "matrix" if _is_matrix(data) else "tuple", source=source, target=target, weight=weight or None
    )
    if _is_matrix(data):
        return _edges_of_matrix(data, use_weights=weight is not False), True
    if isinstance(data, tuple) and len(data) in (2, 3):
        return edges_of_arrays(*(data[:2] if weight is False else data)), True
    raise InputError(
        f"cannot read {type(data).__name__} as a graph: give a sparse or square matrix, a networkx or igraph graph, "
        "a data frame or file of edges, or a tuple of arrays (sources, targets)"
    )


def _home(data: Any) -> str:
    """The library an object comes from, without importing it."""
    homes = [kind.__module__.partition(".")[0] for kind in type(data).__mro__]
    return next((home for home in homes if home in ("networkx", "igraph", "pandas", "polars")), "")


def _refuse_columns(kind: str, **columns: Column) -> None:
    for name, given in columns.items():
        if given is not None:
            raise InputError(f"{name}={given!r} names a column, but a {kind} graph has none: leave it out")


def _is_matrix(data: Any) -> bool:
    return sparse.issparse(data) or isinstance(data, np.ndarray)


def _is_plain_pattern(data: Any) -> bool:
    """Whether a matrix has its links by rows, sorted, each once and of weight 1: nothing to check or to merge."""
    return (
        sparse.issparse(data)
        and data.format == "csr"
        and len(data.shape) == 2
        and data.shape[0] == data.shape[1] > 0
        and data.dtype.kind in "biuf"
        and data.has_canonical_format
        and bool((data.data == 1).all())
    )


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


def _edges_of_matrix(matrix: Any, use_weights: bool) -> Edges:
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
    return Edges(sources, targets, None if weights is None else as_weights(weights, len(sources)), n)


def _edges_of_networkx(graph: Any, weight: Any) -> Edges:
    names = sorted_if_alike(list(graph))
    number = {name: i for i, name in enumerate(names)}
    m, index = graph.number_of_edges(), index_type(len(names))
    sources, targets = (
        np.fromiter((number[edge[end]] for edge in graph.edges()), index, m) for end in (0, 1)
    )
    edges = Edges(sources, targets, None, len(names), as_names(names, len(names)))

    def attribute(key: Any) -> list[Any]:
        return [value for *_, value in graph.edges(data=key, default=None)]

    return _with_attribute(edges, attribute, weight)


def _edges_of_igraph(graph: Any, weight: Any) -> Edges:
    n, m = graph.vcount(), graph.ecount()
    ends = np.fromiter((end for edge in graph.get_edgelist() for end in edge), np.int32, 2 * m)
    names = graph.vs["name"] if "name" in graph.vs.attributes() else None
    edges = Edges(ends[::2].copy(), ends[1::2].copy(), None, n, as_names(names, n))

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


def _with_no_negative(graph: Graph) -> SignedGraph:
    none = np.zeros(graph.n + 1, dtype=np.int64), graph.indices[:0], None, np.zeros(graph.n)
    return SignedGraph(graph, Graph(*none, graph.names))
