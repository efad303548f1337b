"""Conversion of data of any kind to graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from apexrank.errors import InputError
from apexrank.graph.edges import (
    Column,
    Edges,
    edges_of_arrays,
    edges_of_frame,
    edges_of_igraph,
    edges_of_matrix,
    edges_of_networkx,
    is_matrix,
    refuse_columns,
)
from apexrank.graph.files import edges_of_file
from apexrank.graph.graph import Graph, SignedGraph, build, check_rules, graph_of_rows
from apexrank.graph.shards import ShardedGraph, is_shards, open_shards


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
    format: str | None = None,
) -> Any:
    """Convert data of any supported kind to a graph.

    Parameters
    ----------
    data : Graph, SignedGraph, sparse or dense matrix, networkx or igraph graph, data frame, path, or tuple
        - a :class:`Graph`, :class:`SignedGraph` or :class:`ShardedGraph` is returned unchanged;
        - a square scipy sparse matrix, or numpy array of two dimensions: ``A[i, j]`` is the weight of the link from
          i to j, 0 is no link;
        - networkx: vertices are sorted by name if all names can be compared, else in its order; igraph: vertices are in
          its order, with the names of the vertex attribute ``name`` if there is one;
        - a pandas or polars data frame of edges, or a tuple ``(sources, targets)`` or ``(sources, targets, weights)``
          of arrays. Ids may be text or whole numbers; the vertices are the ids that occur, sorted, so that the order
          of the edges does not matter;
        - the path of a file of edges: CSV, TSV, white-space separated (as SNAP has them), JSON lines or Parquet (see
          :func:`apexrank.graph.files.edges_of_file`), a folder or pattern (``parts/*.csv``) of such files, ``-`` for
          standard input; or of a graph: GraphML, GEXF and GML (which need networkx), Pajek, Matrix Market (vertices
          are named from 1, as in the file), scipy's ``.npz``, an adjacency list; or of a folder of shards, which is
          opened as a :class:`ShardedGraph`.
    directed : bool, optional
        False: every edge is a link in both directions, a self-loop one link. By default the value of networkx or
        igraph, else True. A symmetric matrix already holds both directions, and ``directed=False`` does not change it.
    source, target : str or int, optional
        Columns of an edge table; by default those named source or src or from, and target or dst or to, in upper or
        lower case, else the first two. An integer is a position, from 0.
    weight : str, int or False, optional
        Column of an edge table; by default one named weight or rating or value. For networkx and igraph the edge
        attribute, by default ``"weight"``; edges without it have weight 1. False: every link has weight 1.
    repeated : {"sum", "once", "error"}
        Treatment of repeated edges: one link with the sum of the weights (without weights, their number), one link with
        the largest weight, or an error.
    self_loops : {"keep", "drop"}
        Keep or drop links from a vertex to itself.
    signed : bool
        Return a :class:`SignedGraph`: links of positive weight, and links of negative weight with their absolute
        values. A pair with edges of both signs is linked in both.
    format : str, optional
        Format of a file, one of text, jsonl, parquet, adjacency, graphml, gexf, gml, pajek, matrix-market and npz; by
        default detected from its content and name. An adjacency list (``a b c`` is a link from a to b and one from a
        to c) looks like an edge list, so it must be specified here unless the file name ends in ``.adjlist``.

    Returns
    -------
    Graph, SignedGraph (with ``signed``) or ShardedGraph

    Raises
    ------
    InputError
        With the edge, and its line in a file, for a negative weight (unless ``signed``), a weight that is not finite, a
        missing id, or a broken line; also for a graph without vertices, or a matrix that is not square.

    Examples
    --------
    >>> graph = as_graph((["a", "b", "b"], ["b", "a", "c"]))
    >>> graph.names.tolist(), graph.n_edges
    (['a', 'b', 'c'], 3)
    >>> as_graph((["a", "b"], ["b", "a"], [1, -3]), signed=True).negative.weights.tolist()
    [3.0]
    """
    if isinstance(data, str | Path) and is_shards(data):
        data = open_shards(data)
    if isinstance(data, ShardedGraph):
        rules = (directed, source, target, weight, format, repeated, self_loops, signed)
        if rules != (None, None, None, None, None, "sum", "keep", False):
            raise InputError(f"{data.folder} is a graph in shards: give columns and rules when packing it")
        return data
    if isinstance(data, SignedGraph | Graph):
        if directed is False or self_loops != "keep":
            raise InputError("a Graph is already built: give `directed=` and `self_loops=` when building it")
        return _with_no_negative(data) if signed and isinstance(data, Graph) else data
    check_rules(repeated, self_loops)
    if _is_plain_pattern(data) and directed is not False and not signed and self_loops == "keep":
        refuse_columns("matrix", source=source, target=target, weight=weight or None)
        return graph_of_rows(data)
    edges = _edges(data, source, target, weight, format)
    if not edges.directed and directed:
        raise InputError(
            "the graph is undirected, each edge is a link in both directions: leave out `directed=True`"
        )
    both_ways = counts_both_ways(edges, directed)

    def part(sign: int | None) -> Graph:
        return build(edges, not both_ways, repeated, self_loops, sign)

    if not signed:
        return part(None)
    if edges.weights is None:
        what = f"{edges.origin}: " if edges.origin else ""
        raise InputError(
            f"{what}`signed=True` needs weights, some negative: name their column with `weight=`"
        )
    if repeated == "error":
        part(0)
    return SignedGraph(part(1), part(-1))


def counts_both_ways(edges: Edges, directed: bool | None) -> bool:
    """Return whether each edge becomes two links; a symmetric matrix already contains both."""
    both_ways = not (edges.directed if directed is None else directed)
    if both_ways and edges.is_matrix:
        values = np.ones(len(edges.sources)) if edges.weights is None else edges.weights
        matrix = sparse.csr_array((values, (edges.sources, edges.targets)), shape=(edges.n, edges.n))
        return bool((matrix != matrix.T).sum())
    return both_ways


def _edges(data: Any, source: Column, target: Column, weight: Any, format: str | None) -> Edges:
    if isinstance(data, str | Path):
        return edges_of_file(data, source, target, weight, format)
    if format is not None:
        raise InputError(f"`format={format!r}` is for files, not for {type(data).__name__}: leave it out")
    if isinstance(data, Edges):
        return data
    home = _home(data)
    if home == "networkx" and hasattr(data, "is_multigraph"):
        refuse_columns(home, source=source, target=target)
        return edges_of_networkx(data, weight)
    if home == "igraph" and hasattr(data, "get_edgelist"):
        refuse_columns(home, source=source, target=target)
        return edges_of_igraph(data, weight)
    if home in ("pandas", "polars") and "DataFrame" in (kind.__name__ for kind in type(data).__mro__):
        return edges_of_frame(data, source, target, weight)
    refuse_columns(
        "matrix" if is_matrix(data) else "tuple", source=source, target=target, weight=weight or None
    )
    if is_matrix(data):
        return edges_of_matrix(data, use_weights=weight is not False)
    if isinstance(data, tuple) and len(data) in (2, 3):
        return edges_of_arrays(*(data[:2] if weight is False else data))
    raise InputError(
        f"cannot read {type(data).__name__} as a graph: give a sparse or square matrix, a networkx or igraph graph, "
        "a data frame or file of edges, or a tuple of arrays (sources, targets)"
    )


def _home(data: Any) -> str:
    """Return the name of the library of an object, without importing it."""
    homes = [kind.__module__.partition(".")[0] for kind in type(data).__mro__]
    return next((home for home in homes if home in ("networkx", "igraph", "pandas", "polars")), "")


def _is_plain_pattern(data: Any) -> bool:
    """Return whether a matrix has sorted, unique links of weight 1 by row, so that it needs no checks or merging."""
    return (
        sparse.issparse(data)
        and data.format == "csr"
        and len(data.shape) == 2
        and data.shape[0] == data.shape[1] > 0
        and data.dtype.kind in "biuf"
        and data.has_canonical_format
        and bool((data.data == 1).all())
    )


def _with_no_negative(graph: Graph) -> SignedGraph:
    none = np.zeros(graph.n + 1, dtype=np.int64), graph.indices[:0], None, np.zeros(graph.n)
    return SignedGraph(graph, Graph(*none, graph.names))
