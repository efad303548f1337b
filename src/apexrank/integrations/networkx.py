"""PageRank backend for networkx: ``nx.pagerank(G, backend="apexrank")``.

networkx dispatches calls to packages that register through entry points. Once apexrank is installed nothing needs to be
imported, and ``nx.config.backend_priority.algos = ["apexrank"]`` dispatches every call.

Arguments have the same meaning as in networkx, with three differences:

- Iteration stops when the L1 distance to the exact scores is guaranteed to be at most ``tol``, by the bound
  ``α/(1 − α)·|r_t − r_{t−1}|₁``. networkx stops when the last change is below ``len(G)·tol``, which for a million nodes
  and its default ``tol`` is almost no condition. On every graph ``log(tol·(1 − α)/2)/log(α)`` steps suffice, and one
  fewer without ``nstart``: at most 100 for the default ``alpha`` and ``tol``, as many as ``max_iter`` allows.
- Negative or non-finite weights raise an error, for edges as well as in ``personalization``, ``dangling`` and
  ``nstart``.
- ``weight`` is the name of an edge attribute or None, not a function.

At ``alpha = 1`` there is no bound: iteration stops when scores change by at most ``tol``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from apexrank.errors import InputError

# numpy and the ranks are imported lazily, because importing networkx runs this module for get_info
if TYPE_CHECKING:
    import numpy as np

    from apexrank.graph.graph import Graph

NAME = "apexrank"
WEIGHT_POSITION = 6  # position of weight among the arguments of nx.pagerank


@dataclass(eq=False, repr=False)
class ConvertedGraph:
    """Edges of a networkx graph as arrays, which networkx caches for later calls.

    An undirected edge is stored in both directions, a self-loop once, parallel edges separately.

    Parameters
    ----------
    nodes : list
        The nodes in networkx's order.
    sources, targets : integer arrays
        Indices of the source and target node of each edge.
    weights : dict of arrays
        Values of the requested edge attributes.
    directed, multigraph : bool
        Kind of the networkx graph.

    Examples
    --------
    >>> import networkx as nx
    >>> graph = BackendInterface.convert_from_nx(nx.Graph([("a", "b"), ("b", "b")]))
    >>> graph.nodes, graph.sources.tolist(), graph.targets.tolist()
    (['a', 'b'], [0, 1, 1], [1, 0, 1])
    """

    __networkx_backend__ = NAME

    nodes: list[Any]
    sources: np.ndarray
    targets: np.ndarray
    weights: dict[Any, np.ndarray]
    _: KW_ONLY
    directed: bool
    multigraph: bool
    _links: dict[Any, Graph] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.nodes)

    def is_directed(self) -> bool:
        """Whether edges are directed."""
        return self.directed

    def is_multigraph(self) -> bool:
        """Whether there may be several edges between two nodes."""
        return self.multigraph

    def links(self, weight: Any = None) -> Graph:
        """Links weighted by an edge attribute, or all equally (None); parallel edges are summed."""
        if weight not in self._links:
            if weight is not None and weight not in self.weights:
                raise InputError(
                    f"this graph was converted without the edge attribute {weight!r}: "
                    f"convert it with `edge_attrs=`{{{weight!r}: 1}}, or use `weight=None`"
                )
            from apexrank.graph.graph import Graph

            values = None if weight is None else self.weights[weight]
            self._links[weight] = Graph.from_edges(self.sources, self.targets, values, names=self.nodes)
        return self._links[weight]


class BackendInterface:
    """Backend interface of networkx, its entry point ``networkx.backends``.

    Examples
    --------
    >>> import networkx as nx
    >>> graph = BackendInterface.convert_from_nx(nx.DiGraph([("a", "b"), ("c", "b"), ("b", "c")]))
    >>> {node: round(rank, 3) for node, rank in BackendInterface.pagerank(graph, weight=None).items()}
    {'a': 0.05, 'b': 0.486, 'c': 0.464}
    """

    @staticmethod
    def can_run(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool | str:
        """True, or the reason why networkx must handle a call itself."""
        weight = args[WEIGHT_POSITION] if len(args) > WEIGHT_POSITION else kwargs.get("weight")
        return "weight must be the name of an edge attribute or None" if callable(weight) else True

    @staticmethod
    def convert_from_nx(
        graph: Any, *, edge_attrs: Mapping[Any, float] | None = None, **not_needed: Any
    ) -> ConvertedGraph:
        """Convert a networkx graph, with the edge attributes (and defaults) in ``edge_attrs``."""
        import numpy as np

        number = {node: i for i, node in enumerate(graph)}
        neighbours = [near for _, near in graph.adjacency()]
        degrees = np.fromiter(map(len, neighbours), np.int64, len(number))
        targets = np.fromiter(
            map(number.__getitem__, chain.from_iterable(neighbours)), np.int32, degrees.sum()
        )
        sources = np.repeat(np.arange(len(number), dtype=np.int32), degrees)
        edges = list(chain.from_iterable(near.values() for near in neighbours))
        if graph.is_multigraph():
            parallel = np.fromiter(map(len, edges), np.int64, len(edges))
            sources, targets = np.repeat(sources, parallel), np.repeat(targets, parallel)
            edges = list(chain.from_iterable(keys.values() for keys in edges))
        weights = {
            attribute: _attribute(edges, attribute, default)
            for attribute, default in (edge_attrs or {}).items()
        }
        kind = {"directed": graph.is_directed(), "multigraph": graph.is_multigraph()}
        return ConvertedGraph(list(number), sources, targets, weights, **kind)

    @staticmethod
    def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
        """Convert back to networkx; anything but a converted graph is returned unchanged."""
        if not isinstance(result, ConvertedGraph):
            return result
        import networkx as nx

        kind = f"{'Multi' if result.multigraph else ''}{'Di' if result.directed else ''}Graph"
        graph = getattr(nx, kind)()
        graph.add_nodes_from(result.nodes)
        weights = {attribute: values.tolist() for attribute, values in result.weights.items()}
        for k, (i, j) in enumerate(zip(result.sources.tolist(), result.targets.tolist(), strict=True)):
            if result.directed or i <= j:
                attributes = {attribute: values[k] for attribute, values in weights.items()}
                graph.add_edges_from([(result.nodes[i], result.nodes[j], attributes)])
        return graph

    @staticmethod
    def pagerank(
        G: ConvertedGraph,
        alpha: float = 0.85,
        personalization: Mapping[Any, float] | None = None,
        max_iter: int = 100,
        tol: float = 1.0e-6,
        nstart: Mapping[Any, float] | None = None,
        weight: Any = "weight",
        dangling: Mapping[Any, float] | None = None,
    ) -> dict[Any, float]:
        """PageRank with the arguments of ``nx.pagerank``; scores are within ``tol`` of the exact ones, in L1 norm."""
        if len(G) == 0:
            return {}
        from networkx import PowerIterationFailedConvergence

        from apexrank.graph.power import Linear, Walk, iterate, l1_bound, no_bound

        teleport = _shares(G.nodes, personalization, "personalization")
        start = teleport if nstart is None else _shares(G.nodes, nstart, "nstart")
        handed = teleport if dangling is None else _shares(G.nodes, dangling, "dangling")
        jump = (1 - alpha) * teleport
        with Walk(G.links(weight), Linear(), alpha, teleport) as walk:

            def step(r: np.ndarray) -> np.ndarray:
                """``α·(inflow(r) + held·handed) + (1 − α)·teleport``, where held is the sum over dangling nodes."""
                return walk.links.sums(r * walk.rate) + jump + (alpha * walk.held(r)) * handed

            bound = l1_bound(abs(alpha)) if abs(alpha) < 1 else no_bound
            answer = iterate(step, start, bound, tol, max_iter)
        if not answer.converged:
            raise PowerIterationFailedConvergence(max_iter)
        return dict(zip(G.nodes, answer.scores.tolist(), strict=True))


def get_info() -> dict[str, Any]:
    """Description of the backend, the entry point ``networkx.backend_info``.

    Examples
    --------
    >>> list(get_info()["functions"])
    ['pagerank']
    """
    return {
        "backend_name": NAME,
        "project": "apexrank",
        "package": "apexrank",
        "short_summary": "PageRank with a bound on its error.",
        "functions": {
            "pagerank": {
                "additional_docs": "Iteration ends when the L1 distance to the exact scores is at most `tol`.\n"
                "Weights that are negative or not finite raise an error; `weight` must not be a function."
            }
        },
    }


def _attribute(edges: list[Mapping[Any, Any]], attribute: Any, default: float) -> np.ndarray:
    import numpy as np

    values = [edge.get(attribute, default) for edge in edges]
    try:
        return np.fromiter(values, np.float64, len(values))
    except (TypeError, ValueError, OverflowError):
        wrong = next(value for value in values if not _is_number(value))
        raise InputError(
            f"the edge attribute {attribute!r} must be a number, got {wrong!r}: correct it, or use `weight=None`"
        ) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _shares(nodes: list[Any], values: Mapping[Any, float] | None, what: str) -> np.ndarray:
    """Values of all nodes (0 if not given), divided by their sum; uniform for None."""
    import numpy as np

    if values is None:
        return np.full(len(nodes), 1.0 / len(nodes))
    weights = np.fromiter((values.get(node, 0.0) for node in nodes), np.float64, len(nodes))
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InputError(f"{what} weights must be finite and not negative")
    if not weights.any():
        raise ZeroDivisionError(f"{what} must have a positive weight for at least one node of the graph")
    from apexrank.graph.base import as_shares

    return as_shares(weights)
