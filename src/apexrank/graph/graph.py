"""Directed graphs as arrays of in-links, validated and without repeated links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from apexrank.errors import InputError, near_name
from apexrank.graph.edges import Edges, alike, as_names, as_weights, is_whole, label_of, object_array
from apexrank.kernels import edges as kernels
from apexrank.kernels.csr import InLinks, reached
from apexrank.kernels.edges import Links, index_type
from apexrank.validation import check_choice

_MOST_COMPARED = 20_000  # names compared to suggest a correction


class Vertices:
    """Vertices 0 to n − 1 with their names (None: the numbers) and total out-link weights."""

    names: Any
    out_weight: Any
    text_names: Any = None  # a polars Series if names are text in a file

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.out_weight)

    @cached_property
    def dangling(self) -> np.ndarray:
        """Mask of the vertices without out-links."""
        dangling = self.out_weight == 0
        dangling.flags.writeable = False
        return dangling

    def label(self, vertex: int) -> Any:
        """Name of a vertex number."""
        return label_of(self.names, vertex)

    def labels(self, vertices: Any = None) -> np.ndarray:
        """Names of the given vertex numbers; of all vertices by default."""
        if vertices is None:
            return np.arange(self.n) if self.names is None else self.names
        numbers = np.asarray(vertices, dtype=np.int64)
        return numbers if self.names is None else self.names[numbers]

    def number(self, name: Any) -> int:
        """Return the vertex number of a name; the error for an unknown name suggests a close match.

        Examples
        --------
        >>> from apexrank.graph import Graph
        >>> Graph.from_edges([0], [1], names=["page", "site"]).number("sites")
        Traceback (most recent call last):
        apexrank.errors.InputError: vertex 'sites' is not in the graph; did you mean 'site'?
        """
        return int(self.numbers(object_array([name]))[0])

    def numbers(self, names: Any, what: str = "vertex") -> np.ndarray:
        """Return the int64 vertex numbers of many names; ``what`` describes the names in errors.

        Examples
        --------
        >>> from apexrank.graph import Graph
        >>> Graph.from_edges([0], [1], names=["page", "site"]).numbers(["site", "page"]).tolist()
        [1, 0]
        """
        listed = [names] if np.isscalar(names) else names
        array = listed if isinstance(listed, np.ndarray) else np.asarray(object_array(listed))
        found = self.find(array)
        if (found < 0).any():
            unknown = array[found < 0].tolist()
            are = "is" if len(unknown) == 1 else f"and {len(unknown) - 1} more are"
            name = "vertex" if what == "vertex" else f"{what} vertex"
            raise InputError(f"{name} {unknown[0]!r} {are} not in the graph{self._hint(unknown[0])}")
        return found

    def has(self, names: Sequence[Any]) -> np.ndarray:
        """Return a mask of the names that are vertices.

        Examples
        --------
        >>> from apexrank.graph import Graph
        >>> Graph.from_edges([0], [1]).has([1, 2, "1"]).tolist()
        [True, False, False]
        """
        return self.find(object_array(names)) >= 0

    def find(self, array: np.ndarray) -> np.ndarray:
        """Return vertex numbers, -1 for unknown names."""
        if self.names is None or self.names.dtype.kind in "iu":
            return self._find_whole(array)
        return np.array([_get(self._number_of, name) for name in array.tolist()], dtype=np.int64)

    def _find_whole(self, array: np.ndarray) -> np.ndarray:
        if array.dtype.kind not in "iu":
            # no vertex has the lowest int64, so it marks names that are not whole numbers
            lowest = np.iinfo(np.int64).min
            fitting = [x if is_whole(x) and abs(int(x)) < 2**63 else lowest for x in array.tolist()]
            array = np.array(fitting, dtype=np.int64)
        array = array.astype(np.int64)
        if self.names is None:
            return np.where((array >= 0) & (array < self.n), array, -1)
        order, ascending = self._ascending
        at = np.minimum(np.searchsorted(ascending, array), self.n - 1)
        return np.where(ascending[at] == array, order[at], -1)

    @cached_property
    def _ascending(self) -> tuple[np.ndarray, np.ndarray]:
        names = np.asarray(self.names)
        order = np.argsort(names, kind="stable")
        return order, names[order]

    @cached_property
    def _number_of(self) -> dict[Any, int]:
        return {name: i for i, name in enumerate(np.asarray(self.names).tolist())}

    def _hint(self, name: Any) -> str:
        if self.names is None:
            return f"; its vertices are 0 to {self.n - 1}"
        text = str(name)
        likely = [each for each in self.names.tolist() if abs(len(str(each)) - len(text)) <= 2]
        if len(likely) > _MOST_COMPARED:
            likely = [each for each in likely if str(each)[:1] == text[:1] or str(each)[-2:] == text[-2:]]
        written = {str(each): each for each in likely[:_MOST_COMPARED]}
        near = near_name(text, written)
        return "" if near is None else f"; did you mean {written[near]!r}?"


def _get(known: dict[Any, int], name: Any) -> int:
    try:
        return known.get(name, -1)
    except TypeError:  # an unhashable object cannot be a name
        return -1


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Vertices):
    """Directed graph stored by in-links, in read-only arrays.

    Create it by :func:`as_graph` or :meth:`from_edges`, which validate; the constructor does not check its arrays.

    Parameters
    ----------
    indptr : ndarray of int64, n + 1
        The in-links of vertex i come from ``indices[indptr[i]:indptr[i + 1]]``.
    indices : ndarray of int32, one for each link
        Sources, ascending and unique for each vertex (int64 beyond 2³¹ vertices).
    weights : ndarray of float64, one for each link, optional
        Positive weights. None: every link has weight 1.
    out_weight : ndarray of float64, n
        Sum of the weights of a vertex's out-links; 0 for a dangling one.
    names : ndarray, optional
        Unique names of the vertices (text, whole numbers or objects). None: they are 0 to n − 1.

    Examples
    --------
    >>> graph = Graph.from_edges([0, 1, 1], [1, 0, 2])
    >>> graph
    Graph(3 vertices, 3 links)
    >>> graph.dangling.tolist(), graph.out_weight.tolist()
    ([False, False, True], [1.0, 2.0, 0.0])
    >>> graph.summary()["strong_components"]
    2
    """

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None
    out_weight: np.ndarray
    names: np.ndarray | None = field(default=None)

    def __post_init__(self) -> None:
        for name, value in vars(self).copy().items():
            if value is not None:
                view = value.view()
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    def check_state(self) -> None:
        """Raise InputError unless the arrays are those of a graph."""
        indptr, indices, n, m = self.indptr, self.indices, self.n, len(self.indices)
        if not (
            len(indptr) == n + 1 > 1 and indptr[0] == 0 and indptr[-1] == m and (np.diff(indptr) >= 0).all()
        ):
            raise InputError(f"the links of the graph are not those into {n} vertices")
        rises = np.diff(indices) > 0
        rises[indptr[(indptr > 0) & (indptr < m)] - 1] = True
        if not (rises.all() and indices.max(initial=0) < n):
            raise InputError("the sources of the links are not vertices in ascending order")
        if not np.allclose(self.out_weight, np.bincount(indices, self.weights, n), rtol=1e-9, atol=0):
            raise InputError("`out_weight` is not the sum of the weights of the links")
        if self.weights is not None and not (self.weights > 0).all():
            raise InputError("a weight of the graph is not positive")

    def __repr__(self) -> str:
        return f"Graph({self.n} vertices, {self.n_edges} links{', weighted' if self.weights is not None else ''})"

    @classmethod
    def from_edges(
        cls,
        sources: Any,
        targets: Any,
        weights: Any = None,
        *,
        n: int | None = None,
        names: Sequence[Any] | np.ndarray | None = None,
        directed: bool = True,
        repeated: str = "sum",
        self_loops: str = "keep",
    ) -> Graph:
        """Build a graph from vertex numbers.

        Parameters
        ----------
        sources, targets : array of int
            Ends of each link, from 0.
        weights : array, optional
            Weight of each link, at least 0; links of weight 0 are dropped.
        n : int, optional
            Number of vertices; by default the number of ``names``, else one more than the highest vertex number.
        names : sequence, optional
            Names of the vertices 0 to n − 1.
        directed, repeated, self_loops
            As in :func:`as_graph`.

        Notes
        -----
        In addition to the given arrays it needs 4 bytes per link (12 with weights) and 16 per vertex for the graph, and
        as much again during construction unless the links are sorted by source.

        Examples
        --------
        >>> Graph.from_edges([0, 0], [1, 1], names=["a", "b"]).weights.tolist()
        [2.0]
        """
        if n is None and names is not None:
            n = len(names)
        sources, targets = _whole_numbers(sources, "sources"), _whole_numbers(targets, "targets")
        m = len(sources)
        if m != len(targets):
            raise InputError(f"there are {m} sources but {len(targets)} targets: give one of each per link")
        if n is None:
            n = 1 + max(int(sources.max()), int(targets.max())) if m else 0
        if not isinstance(n, int | np.integer) or n < 0:
            raise InputError(f"`n` must be a whole number of vertices, got {n!r}")
        _check_range(sources, targets, n)
        given = None if weights is None else as_weights(weights, m, "position {}".format)
        sources, targets = alike(sources, targets, n)
        edges = Edges(sources, targets, given, n, as_names(names, n), "position {}".format)
        return build(edges, directed, repeated, self_loops)

    @property
    def n_edges(self) -> int:
        """Number of links; an undirected edge counts as two."""
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        """Memory of links and weights in bytes."""
        return sum(
            a.nbytes for a in (self.indptr, self.indices, self.weights, self.out_weight) if a is not None
        )

    def largest_out_weights(self) -> np.ndarray:
        """Largest out-link weight of each vertex, 0 for dangling vertices.

        Examples
        --------
        >>> Graph.from_edges([0, 0], [1, 2], [3.0, 2.0]).largest_out_weights().tolist()
        [3.0, 0.0, 0.0]
        """
        if self.weights is None:
            return (self.out_weight > 0).astype(float)
        largest = np.zeros(self.n)
        np.maximum.at(largest, self.indices, self.weights)
        return largest

    @property
    def weighted(self) -> bool:
        """Whether links have weights; without them all weights are 1."""
        return self.weights is not None

    def in_links(self, unit: float | None = 1.0) -> InLinks:
        """Return the links for sums over the in-links of each vertex, with weights divided by ``unit``.

        With None, weights are divided by the out-weight of their source.

        Examples
        --------
        >>> graph = Graph.from_edges([0, 0], [1, 2], [3.0, 1.0])
        >>> graph.in_links(unit=None).sums(np.array([100.0, 0.0, 0.0])).tolist()
        [0.0, 75.0, 25.0]
        """
        return InLinks(*self._links).divided(self.out_weight if unit is None else unit)

    def links_into(self, vertex: int) -> tuple[np.ndarray, np.ndarray]:
        """Sources and weights of the links into a vertex."""
        inside = slice(self.indptr[vertex], self.indptr[vertex + 1])
        sources = self.indices[inside]
        return sources, np.ones(len(sources)) if self.weights is None else self.weights[inside]

    def in_degrees(self) -> np.ndarray:
        """Number of links into each vertex."""
        return np.diff(self.indptr)

    def reached(self, seeds: np.ndarray) -> np.ndarray:
        """Return a mask of the vertices reachable from the seeds (a mask), inclusive."""
        out = self.reversed()
        return reached(out.indptr, out.indices, seeds)

    @property
    def _links(self) -> Links:
        return Links(self.indptr, self.indices, self.weights)

    @cached_property
    def _reversed(self) -> Graph:
        links = kernels.turned(self._links)
        return Graph(*links, kernels.column_weights(links), self.names)

    def reversed(self) -> Graph:
        """Return the graph with all links reversed, computed once.

        Examples
        --------
        >>> Graph.from_edges([0, 0], [1, 2]).reversed().indptr.tolist()
        [0, 2, 2, 2]
        """
        return self._reversed

    def to_scipy(self) -> sparse.csr_array:
        """Adjacency matrix ``A[source, target] = weight``.

        Examples
        --------
        >>> Graph.from_edges([0, 0], [1, 2]).to_scipy().toarray().tolist()
        [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
        """
        out = self.reversed()
        weights = np.ones(self.n_edges) if out.weights is None else out.weights.copy()
        return sparse.csr_array((weights, out.indices.copy(), out.indptr.copy()), shape=(self.n, self.n))

    def summary(self) -> dict[str, int | bool]:
        """Return counts of vertices, links and connected components.

        Returns
        -------
        dict
            ``vertices``, ``edges`` (links), ``weighted``, ``dangling`` (without out-links), ``isolated`` (without
            links), ``self_loops``, ``weak_components``, ``strong_components``, ``largest_in_degree``,
            ``largest_out_degree`` (numbers of links) and ``bytes``.

        Examples
        --------
        >>> summary = Graph.from_edges([0, 1, 2], [1, 0, 2], n=4).summary()
        >>> summary["isolated"], summary["self_loops"], summary["weak_components"]
        (1, 1, 3)
        """
        into, out = np.diff(self.indptr), np.diff(self.reversed().indptr)
        matrix = self.to_scipy()
        weak, strong = (
            sparse.csgraph.connected_components(matrix, connection=kind, return_labels=False)
            for kind in ("weak", "strong")
        )
        return {
            "vertices": self.n,
            "edges": self.n_edges,
            "weighted": self.weights is not None,
            "dangling": int(self.dangling.sum()),
            "isolated": int(((into == 0) & (out == 0)).sum()),
            "self_loops": int(np.count_nonzero(kernels.loop_weights(self._links))),
            "weak_components": int(weak),
            "strong_components": int(strong),
            "largest_in_degree": int(into.max()),
            "largest_out_degree": int(out.max()),
            "bytes": self.nbytes,
        }


class SignedGraph(NamedTuple):
    """Positive and negative links between the same vertices; the weights of both are positive numbers."""

    positive: Graph
    negative: Graph


def build(edges: Edges, directed: bool, repeated: str, self_loops: str, sign: int | None = None) -> Graph:
    """Build the graph of the edges with weights of a sign (0: either); with None a negative weight is an error."""
    check_rules(repeated, self_loops)
    if not edges.n:
        raise InputError("the graph has no vertices: give at least one")
    weights = check_weights(edges, sign)
    kept: dict[str, Any] = {"drop_loops": self_loops == "drop", "sign": 1 if sign is None else sign}
    links = kernels.in_links(edges.sources, edges.targets, weights, edges.n, both_ways=not directed, **kept)
    if repeated == "error":
        _refuse_repeated(edges, links, both_ways=not directed)
    links, _ = merge_links(links, repeated)
    return Graph(*links, kernels.column_weights(links), edges.names)


def merge_links(links: Links, repeated: str, total: float = 0.0) -> tuple[Links, float]:
    """Merge repeated links in place; return the links and ``total`` plus the sum of their weights."""
    links = kernels.merged(links, "sum" if repeated == "sum" else "largest")
    if links.weights is None:
        return links, total
    with np.errstate(over="ignore"):
        total += links.weights.sum()
    if not np.isfinite(total):
        raise InputError("the sum of the weights overflows: divide them by a large number")
    return links._replace(weights=None) if (links.weights == 1).all() else links, total


def check_rules(repeated: str, self_loops: str) -> None:
    """Raise InputError for unknown rules for repeated edges or self-loops."""
    check_choice("repeated", repeated, Literal["sum", "once", "error"])
    check_choice("self_loops", self_loops, Literal["keep", "drop"])


def graph_of_rows(matrix: sparse.csr_array) -> Graph:
    """Build the graph of a sorted CSR matrix of ones, without an intermediate edge list."""
    indices = matrix.indices.astype(index_type(matrix.shape[0]), copy=False)
    links = kernels.turned(Links(matrix.indptr.astype(np.int64, copy=False), indices, None))
    return Graph(*links, np.diff(matrix.indptr).astype(float))


def check_weights(edges: Edges, sign: int | None = None) -> np.ndarray | None:
    """Validate weights as finite and, if ``sign`` is None, non-negative; None if every edge has weight 1."""
    weights = edges.weights
    if weights is None or not weights.size:
        return None
    lowest, highest = weights.min(), weights.max()
    if not (np.isfinite(lowest) and np.isfinite(highest)):
        row = int(np.argmin(np.isfinite(weights)))
        problem = "is missing or not a number" if np.isnan(weights[row]) else f"is {weights[row]}"
        raise InputError(f"{edges.link(row)} has a weight that {problem}; give a finite one")
    if lowest < 0 and sign is None:
        row = int(np.argmax(weights < 0))
        raise InputError(
            f"{edges.link(row)} has the negative weight {weights[row]:g}; remove it, or "
            "read the graph with `signed=True` if negative weights are distrust"
        )
    return None if lowest == highest == 1 and sign != -1 else weights


def _refuse_repeated(edges: Edges, links: Links, both_ways: bool) -> None:
    found = kernels.first_repeated(links)
    if found is None:
        return
    target, source = found
    same = (edges.sources == source) & (edges.targets == target)
    if both_ways:
        same |= (edges.sources == target) & (edges.targets == source)
    if edges.weights is not None:
        same &= edges.weights != 0
    first, second = np.flatnonzero(same)[:2].tolist()
    raise repeated_link(edges.place(second), *edges.ends(second), edges.place(first))


def repeated_link(place: str, source: Any, target: Any, earlier: str) -> InputError:
    """Make the error for a link that occurs twice, at ``place`` and ``earlier``; both may be empty."""
    link = f"{f'{place}: ' if place else ''}the link from {source!r} to {target!r}"
    return InputError(
        f"{link} occurs already{f' ({earlier})' if earlier else ''}; remove one, or use `repeated='sum'` or 'once'"
    )


def _whole_numbers(ends: Any, what: str) -> np.ndarray:
    array = np.asarray(ends)
    if not array.size:
        array = np.empty(0, dtype=np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"{what} must be whole vertex numbers, one a link, got {array.dtype} of shape {array.shape}; "
            "as_graph takes ids of any kind"
        )
    return array


def _check_range(sources: np.ndarray, targets: np.ndarray, n: int) -> None:
    for array, what in ((sources, "source"), (targets, "target")):
        if array.size and (array.min() < 0 or array.max() >= n):
            row = int(np.argmax((array < 0) | (array >= n)))
            link = f"the link from {sources[row]} to {targets[row]}"
            raise InputError(f"position {row}: {link} has a {what} outside the vertices 0 to {n - 1}")
