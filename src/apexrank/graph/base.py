"""Base classes of graph ranks: input graphs, teleport vectors, fitted scores and explanations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from apexrank.errors import InputError, warn
from apexrank.graph.graph import Graph, SignedGraph
from apexrank.graph.power import Fixpoint, Linear, Progress, Walk
from apexrank.graph.reading import as_graph
from apexrank.parameters import between, checked, number, whole
from apexrank.validation import check_count

Teleport = ArrayLike | Mapping[Any, float] | Iterable[Any] | None


class InLink(NamedTuple):
    """Contribution to a score: its source (None for the teleport), its flow, and its share of the total."""

    source: Any
    flow: float
    share: float


class GraphRank(BaseEstimator):
    """Base class of vertex ranks; the parameters of a rank are dataclass fields.

    Attributes
    ----------
    scores_ : array of shape (n_vertices,), or (n_vertices, n_teleports)
        Score of each vertex, larger is better.
    names_ : array of shape (n_vertices,)
        Names of the vertices, or their numbers if the graph has no names.
    ranking_ : array of shape (n_vertices,)
        Names from best to worst; ties are in the order of the vertices.
    n_features_in_ : int
        Number of vertices; scikit-learn's name for the columns of a square matrix.
    """

    _parameter_constraints: ClassVar[dict] = {
        "damping": [between(0, 1, closed="left")],
        "tol": [number(0)],
        "max_iter": [whole(1)],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "callback": [None, callable],
    }

    def __sklearn_tags__(self):
        """Return scikit-learn tags: of all kinds of graphs it supports square matrices without negative entries."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.positive_only = tags.input_tags.sparse = True
        return tags

    def fit_predict(self, graph: Any, y: None = None, **arguments: Any) -> np.ndarray:
        """Fit and return the scores."""
        return self.fit(graph, **arguments).scores_

    def fit(self, graph: Any, y: None = None) -> Self:
        raise NotImplementedError

    @property
    def names_(self) -> np.ndarray:
        check_is_fitted(self)
        return self.graph_.labels()

    @property
    def n_features_in_(self) -> int:
        check_is_fitted(self)
        return self.graph_.n

    @property
    def ranking_(self) -> np.ndarray:
        check_is_fitted(self)
        return self.graph_.labels(np.argsort(-self._one_column(), kind="stable"))

    def top(self, k: int, column: int | None = None) -> list[tuple[Any, float]]:
        """Return the k best vertices and their scores; ``column`` selects one of several teleport vectors."""
        check_is_fitted(self)
        check_count("k", k)
        scores = self._one_column(column)
        best = best_vertices(scores, k)
        return list(zip(self.graph_.labels(best).tolist(), scores[best].tolist(), strict=True))

    def explained(self, vertex: Any) -> tuple[str, str]:
        """Describe the quantity that `explain` decomposes for a vertex, and its source None."""
        return "the score", "teleport"

    def _progress(self, step: int, left: float) -> None:
        """Report progress after a step: an error bound or a gap."""
        if self.verbose:
            what = "error at most" if isinstance(self, IteratedRank) else "gap"
            print(f"step {step}: {what} {left:.3g}", flush=True)
        if self.callback is not None:
            self.callback(step, left)

    def _one_column(self, column: int | None = None) -> np.ndarray:
        if self.scores_.ndim == 1:
            return self.scores_
        if column is None:
            raise InputError(
                f"there are {self.scores_.shape[1]} columns of scores: choose one by top(k, column=…), or sort scores_"
            )
        if not isinstance(column, int | np.integer) or not 0 <= column < self.scores_.shape[1]:
            raise InputError(f"column must be a number from 0 to {self.scores_.shape[1] - 1}, got {column!r}")
        return self.scores_[:, column]


@dataclass(eq=False, repr=False, kw_only=True)
class IteratedRank(GraphRank):
    """Base class of ranks that are fixed points of a power iteration.

    A subclass may define the step: ``_walk(graph, teleport)`` returns a :class:`~apexrank.graph.power.Walk`, by default
    that of PageRank.

    Attributes
    ----------
    error_bound_ : float
        Upper bound on the distance ``|scores_ − exact|₁``; nan if none is known.
    hilbert_bound_ : float
        Upper bound on the error of the logarithm of any ratio of two scores; nan if none is known.
    converged_, n_iter_, history_
        Whether ``error_bound_`` is within ``tol``, number of steps, and the change ``|r_t − r_{t−1}|₁`` of each.
    """

    error_norm = "L1"  # norm of `error_bound_`
    tol: float = 1e-9
    max_iter: int = 1000
    warm_start: bool = False
    verbose: int = 0
    callback: Progress | None = None

    def _walk(self, graph: Graph, teleport: np.ndarray) -> Walk:
        return Walk(graph, Linear(), self.damping, teleport)

    @checked
    def fit(self, graph: Any, y: None = None, *, teleport: Teleport = None, start: Any = None) -> Self:
        """Rank the vertices of a graph.

        Parameters
        ----------
        graph : Graph, scipy sparse matrix, networkx or igraph graph, edge table or path
            Any input of :func:`apexrank.graph.as_graph`. Undirected edges count in both directions.
        y : None
            Ignored.
        teleport : array, mapping of names to weights, names, or a list of several of them
            Distribution of restarts of the walk, uniform by default. An array of floats, one for each vertex, gives
            weights; whole numbers and text are names. Several vectors give a matrix of scores, computed together.
        start : fitted rank, mapping of names to scores, or array, optional
            Initial scores, from an earlier state of the graph; vertices it does not contain start with an equal share.
            The result is the same, after fewer steps; not used at ratio 1 with p > 1.
        """
        read = plain_graph(graph)
        self._keep(read, self._rank(read, teleport_vectors(read, teleport), start))
        return self

    def _rank(
        self, graph: Graph, teleport: np.ndarray, start: Any = None, tol: float | None = None
    ) -> Fixpoint:
        walk, first = self._walk(graph, teleport), self._start(graph, teleport, start)
        self._teleport = teleport
        with walk:
            return walk.solve(first, self.tol if tol is None else tol, self.max_iter, self._progress)

    def explain(self, vertex: Any, top: int | None = None) -> list[InLink]:
        """Return the links that make up a vertex's score, strongest first, and the teleport (source None).

        The share of a link is its part of the sum ``Σ f(flow) + f(teleport)``; for p = ∞ the strongest flow has all of
        it.
        """
        number = self._explained_vertex(vertex)
        walk, ranks = self._reasons(number)
        sources, flows, shares = walk.flows_into(ranks, number)
        names = [*self.graph_.labels(sources).tolist(), None]
        links = [InLink(*row) for row in zip(names, flows.tolist(), shares.tolist(), strict=True)]
        return sorted(links, key=lambda link: -link.flow)[:top]

    def _explained_vertex(self, vertex: Any) -> int:
        check_is_fitted(self)
        if self._teleport.ndim > 1:
            raise InputError("explain needs a single teleport vector: fit with only that one")
        return self.graph_.number(vertex)

    def _reasons(self, vertex: int) -> tuple[Walk, np.ndarray]:
        """Return the walk and the ranks that explain a vertex, based on links only, without labels."""
        return self._walk(self.graph_, self._teleport), getattr(self, "ranks_", self.scores_)

    def _keep(self, graph: Graph, answer: Fixpoint, advice: str = "") -> None:
        self.graph_, self.scores_ = graph, answer.scores
        self.n_iter_, self.converged_ = answer.n_iter, answer.converged
        self.error_bound_, self.hilbert_bound_ = answer.error_bound, answer.hilbert_bound
        self.history_ = np.array(answer.history)
        if not answer.converged:
            known = (
                "are not known to be near"
                if not np.isfinite(answer.error_bound)
                else f"may be {answer.error_bound:.1e} ({self.error_norm}) from"
            )
            # more steps do not help an iteration that stopped before its limit or stagnates by rounding
            changes = answer.history
            stuck = min(changes[-10:], default=0) >= min(changes[:-10], default=np.inf)
            at_rest = answer.n_iter < self.max_iter or (stuck and np.isfinite(answer.error_bound))
            cure = "More steps will not help: raise `tol`." if at_rest else "Raise `max_iter` or `tol`."
            warn(
                f"not converged after {answer.n_iter} steps: the scores {known} the exact ones. {cure}{advice}",
                ConvergenceWarning,
            )

    def _start(self, graph: Graph, teleport: np.ndarray, start: Any = None) -> np.ndarray:
        """Return equal scores of all vertices that the teleport reaches, or earlier scores by vertex name."""
        support = np.ones_like(teleport) if teleport.all() else reached_from(graph, teleport)
        first = support / support.sum(axis=0)
        earlier = self._earlier(graph, start)
        if earlier is not None:
            if earlier.shape != first.shape:
                raise InputError(f"`start` has shape {earlier.shape}, but the scores will have {first.shape}")
            first = np.where((earlier > 0) & (support > 0), earlier, first)
            first /= first.sum(axis=0)
        return first

    def _earlier(self, graph: Graph, start: Any) -> np.ndarray | None:
        if start is None:
            known = self.warm_start and hasattr(self, "scores_")
            return _carried_over(self.graph_, self.scores_, graph) if known else None
        if isinstance(start, GraphRank):
            check_is_fitted(start)
            return _carried_over(start.graph_, start.scores_, graph)
        if isinstance(start, Mapping):
            start = np.array([start.get(name, 0.0) for name in graph.labels().tolist()], dtype=float)
        try:
            scores = np.asarray(start, dtype=float)
        except (TypeError, ValueError):
            scores = np.zeros(0)
        if scores.shape[:1] != (graph.n,) or not np.isfinite(scores).all():
            raise InputError(
                f"`start` needs a finite score for each of {graph.n} vertices, or a mapping of names"
            )
        return scores


def best_vertices(scores: np.ndarray, k: int | None = None) -> np.ndarray:
    """Return the numbers of the k best vertices (default: all), best first; ties are in the order of the vertices.

    Examples
    --------
    >>> best_vertices(np.array([0.2, 0.3, 0.1, 0.3, 0.1]), 3).tolist()
    [1, 3, 0]
    """
    if k is None or k >= len(scores):
        return np.argsort(-scores, kind="stable")
    lowest = np.partition(scores, len(scores) - k)[len(scores) - k]
    candidates = np.flatnonzero(scores >= lowest)
    return candidates[np.argsort(-scores[candidates], kind="stable")[:k]]


def read_graph(graph: Any) -> Graph | SignedGraph:
    """Read a graph; a matrix with negative entries raises the message that scikit-learn expects of estimators."""
    entries = graph
    if sparse.issparse(graph):  # the data array of these formats holds exactly the entries
        entries = graph.data if graph.format in ("csr", "csc", "coo") else graph.tocoo().data
    if isinstance(entries, np.ndarray) and entries.dtype.kind in "if" and (entries < 0).any():
        raise InputError(
            "Negative values in data: links of a matrix must weigh 0 or more; if negative weights are "
            "distrust, read it by as_graph with `signed=True`"
        )
    return as_graph(graph)


def plain_graph(graph: Any) -> Graph:
    """Read a graph for ranks that do not support negative links."""
    read = read_graph(graph)
    if isinstance(read, SignedGraph):
        raise InputError("this rank takes no signed graph: give its .positive part, or use FairnessGoodness")
    return read


def teleport_vectors(graph: Graph, teleport: Any, what: str = "teleport") -> np.ndarray:
    """Return teleport distributions over the vertices: one vector, or a column for each of several.

    None is uniform; an array has one weight per vertex; a mapping of names to weights, or just names, gives 0 to all
    other vertices; a list or tuple of such mappings or arrays gives columns.
    """
    if teleport is None:
        return np.full(graph.n, 1.0 / graph.n)
    several = isinstance(teleport, list | tuple) and len(teleport) > 0
    if several and all(isinstance(each, Mapping | np.ndarray | set | list) for each in teleport):
        return np.stack([teleport_vectors(graph, each, what) for each in teleport], axis=1)
    weights = seed_vector(graph, teleport, what)
    if weights.ndim > 2 or not weights.size or not weights.any(axis=0).all():
        raise InputError(f"{what} must have a positive weight for at least one vertex")
    return as_shares(weights)


def as_shares(weights: np.ndarray) -> np.ndarray:
    """Divide weights by their sum without overflow."""
    scaled = weights / weights.max(axis=0)
    return scaled / scaled.sum(axis=0)


def seed_vector(graph: Graph, seeds: Any, what: str) -> np.ndarray:
    """Read vertex weights from floats for all vertices, a mapping from names, or the names of those with weight 1."""
    if hasattr(seeds, "columns"):
        raise InputError(f"{what} must be one column: give only the names, or a mapping of names to weights")
    # a pandas series of floats maps names to weights, any other is a column of names
    holds_weights = hasattr(seeds, "items") and getattr(getattr(seeds, "dtype", None), "kind", "O") in "fb"
    if isinstance(seeds, Mapping) or holds_weights:
        pairs = list(seeds.items())
        weights = np.zeros(graph.n)
        try:
            weights[graph.numbers([name for name, _ in pairs], what=what)] = [
                float(value) for _, value in pairs
            ]
        except (TypeError, ValueError) as error:
            raise InputError(f"{what} weights must be numbers: {error}") from None
    elif isinstance(seeds, np.ndarray) and seeds.dtype.kind in "fb" and seeds.shape[:1] == (graph.n,):
        weights = seeds.astype(float)
    else:
        weights = np.zeros(graph.n)
        weights[graph.numbers(_names_of(graph, seeds, what), what=what)] = 1.0
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InputError(f"{what} weights must be finite and not negative")
    return weights


def _names_of(graph: Graph, seeds: Any, what: str) -> list[Any]:
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        return [seeds]
    names = list(seeds)
    whole = len(names) == graph.n and all(isinstance(name, int | np.integer) for name in names)
    if whole and len({int(name) for name in names}) < len(names):
        raise InputError(f"{what} has {len(names)} whole numbers, some of them twice: weights must be floats")
    return names


def reached_from(graph: Graph, weights: np.ndarray) -> np.ndarray:
    """Return 1 for vertices reachable from those of positive weight, inclusive, and 0 for others."""
    if weights.ndim > 1:
        return np.stack([reached_from(graph, column) for column in weights.T], axis=1)
    return graph.reached(weights > 0).astype(float)


def _carried_over(old: Graph, scores: np.ndarray, new: Graph) -> np.ndarray:
    """Transfer scores to another graph by vertex name; vertices not in the old graph get 0."""
    found = np.zeros((new.n, *scores.shape[1:]))
    place = old.find(new.labels())
    found[place >= 0] = scores[place[place >= 0]]
    return found
