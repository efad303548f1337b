"""Power iteration of graph ranks, with bounds on the distance of the iterates from the solution.

``r_i ← g(Σ_{j→i} f(α·r_j·w_ij/d_j) + f(teleport_i))``, then normalised to sum 1. The teleport, which also redistributes
the rank of dangling vertices, is one more in-link, so that PageRank has f and g the identity. A footnote to eq. 6.1 of
the dissertation takes it out of the norm: ``outside=True``.

A rank has four parts: a `Map` converts the flows into a vertex to its score, a `Walk` is the step of the map on one
graph, `iterate` repeats the step, and a bound (`l1_bound`, `hilbert_bound`) determines when to stop. `Anderson`
extrapolates slow iterations.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.graph import Graph
from apexrank.kernels.csr import LinkSums

Progress = Callable[[int, float], None]
Bound = Callable[[np.ndarray, np.ndarray, float], tuple[float, float]]
Inflow = Callable[[np.ndarray, Any], np.ndarray]

_RIDGE = (
    1e-10  # relative ridge on the normal equations, because differences of late steps are nearly parallel
)


class Map(Protocol):
    """Map from the flows into a vertex to its score: ``r_i = g(Σ_j f(flow_j))``.

    A map is *homogeneous of degree h* if multiplying all flows by c multiplies the scores by c^h. With h < 1 every step
    reduces the distance of any two score vectors by the factor h in Hilbert's projective metric, the basis of the
    certificates. A flow depends only on its source, so f is evaluated once per vertex, and the links only need a sum.
    """

    @property
    def degree(self) -> float:
        """Degree of homogeneity; nan if unknown."""

    def on(self, links: LinkSums, rate: np.ndarray, teleport: np.ndarray) -> Inflow:
        """Return the inflow as a function of scores x and τ, for out-flows ``x·rate`` and in-flows ``τ·teleport``."""

    def terms(self, flow: np.ndarray) -> np.ndarray:
        """Contributions of single flows to the score of a vertex, up to a common factor."""


class Linear:
    """Linear map ``Σ_j flow_j`` of PageRank."""

    degree = 1.0

    def on(self, links: LinkSums, rate: np.ndarray, teleport: np.ndarray) -> Inflow:
        return lambda x, tau: links.sums(x * rate) + tau * teleport

    def terms(self, flow: np.ndarray) -> np.ndarray:
        return flow


class Fixpoint(NamedTuple):
    """Result of an iteration.

    ``error_bound`` bounds the L1 distance to the solution, ``hilbert_bound`` the error of the logarithm of any ratio of
    two scores; nan if nothing is known.
    """

    scores: np.ndarray
    n_iter: int
    converged: bool
    error_bound: float
    hilbert_bound: float
    history: list[float]


def stacked(found: list[Fixpoint]) -> Fixpoint:
    """Combine results of single teleport vectors: scores as columns, total steps, worst bounds."""
    return Fixpoint(
        np.stack([each.scores for each in found], axis=1),
        sum(each.n_iter for each in found),
        all(each.converged for each in found),
        max(each.error_bound for each in found),
        max(each.hilbert_bound for each in found),
        [change for each in found for change in each.history],
    )


class Walk:
    """Step of a map on one graph, for a damping factor and one or several teleport vectors (columns of a matrix).

    It is a context manager that starts and stops threads.
    """

    def __init__(
        self, graph: Graph, map: Map, damping: float, teleport: np.ndarray, *, outside: bool = False
    ) -> None:
        self.graph, self.map, self.damping, self.outside = graph, map, damping, outside
        self.teleport = teleport
        self._dangling = np.flatnonzero(graph.dangling)
        self.links, self.rate = shared_links(graph)
        if teleport.ndim > 1:
            self.rate = self.rate[:, None]
        self.rate = self.rate if outside else damping * self.rate
        self.inflow = map.on(self.links, self.rate, np.zeros_like(teleport) if outside else teleport)
        self.rounding = rounding_of(self.links)

    def __enter__(self) -> Self:
        self.links.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.links.__exit__(*error)

    def step(self, r: np.ndarray) -> np.ndarray:
        """Return the next scores, normalised, from scores that sum to 1."""
        a, held = self.damping, self.held(r)
        if self.outside:
            weak = (1 - a) + a * held**self.map.degree
            new = a * self.inflow(r, 0.0) + self.teleport * weak
        else:
            new = self.inflow(r, (1 - a) + a * held)
        return new / total(new)

    def held(self, r: np.ndarray) -> Any:
        """Score of dangling vertices; not by BLAS, whose threads would spin beside ours."""
        return total(r[self._dangling])

    def bound(self) -> Bound:
        """Bound on the distance to the fixed point; unknown for a nonlinear map of degree 1."""
        if isinstance(self.map, Linear):
            return l1_bound(self.damping, self.rounding)
        return hilbert_bound(self.map.degree, self.rounding) if self.map.degree < 1 else no_bound

    def solve(self, start: np.ndarray, tol: float, max_iter: int, progress: Progress | None) -> Fixpoint:
        """Repeat the step from ``start`` until the bound is at most ``tol``."""
        return iterate(self.step, start, self.bound(), tol, max_iter, progress)

    def flows_into(self, r: np.ndarray, vertex: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sources of a vertex's in-links, their flows (teleport last), and their shares of the score."""
        if self.outside:
            raise InputError(
                "a teleport outside the norm is not a link and cannot be explained: put it inside"
            )
        a = self.damping
        sources, weights = self.graph.links_into(vertex)
        flow = a * r[sources] * (weights / self.graph.out_weight[sources])
        flows = np.append(flow, self.teleport[vertex] * ((1 - a) + a * self.held(r)))
        terms = self.map.terms(flows)
        return sources, flows, terms / (terms.sum() or 1.0)


def total(x: np.ndarray) -> Any:
    """Pairwise sum of a vector or of each column; NumPy adds the rows of a matrix one after the other."""
    return x.sum() if x.ndim == 1 else np.array([column.sum() for column in x.T])


def shared_links(graph: Graph) -> tuple[LinkSums, np.ndarray]:
    """Return the in-links, and vertex rates such that sums of ``x·rate`` over in-links distribute x to the targets.

    Weights become shares of the out-weight of their source, with rates of 1; without weights the rate is 1 over the
    number of out-links.
    """
    d = graph.out_weight
    if graph.weighted:
        return graph.in_links(unit=None), np.ones(graph.n)
    rate = np.divide(1.0, d, out=np.zeros_like(d), where=d > 0)
    return graph.in_links(), rate


def iterate(
    step: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    bound: Bound,
    tol: float,
    max_iter: int,
    progress: Progress | None = None,
    between: Callable[[np.ndarray, np.ndarray], np.ndarray] = lambda old, new: new,
) -> Fixpoint:
    """Repeat a step until the bound on the L1 distance to its fixed point is at most ``tol``.

    ``bound(new, old, change)``, where change is ``|new − old|₁``, returns bounds on the new point's distance: in the L1
    norm, and in Hilbert's metric or nan. The next step starts at ``between(old, new)``, by default the new point.
    """
    r, history, error, hilbert, known = start, [], math.inf, math.nan, math.inf
    old = r
    for _ in range(max_iter):
        old = between(old, r)
        r = step(old)
        history.append(float(abs(r - old).sum(axis=0).max()))
        if not math.isfinite(history[-1]):
            raise InputError("the scores are no longer finite: weights of links or seeds are too far apart")
        error, hilbert = bound(r, old, history[-1])
        if progress is not None:
            progress(len(history), error)
        known = history[-1] if math.isnan(error) else error
        # if only rounding errors are left, further steps change nothing
        if known <= tol or history[-1] == 0:
            break
    return Fixpoint(r, len(history), known <= tol, error, hilbert, history)


def rounding_of(links: LinkSums) -> float:
    """Bound the rounding error of a step, relative to each score.

    The sum over in-links has ``links.roundings``. NumPy's pairwise sums over n vertices, one of the score of dangling
    vertices and one to normalise, have at most n or ``19 + log2(n)`` each (blocks of 128 in eight lanes, then a tree).
    Products, powers and quotients add a dozen. All terms are non-negative, so that relative errors do not grow.
    """
    pairwise = min(links.n, 19 + math.log2(max(links.n, 1)))
    return 0.5 * float(np.finfo(float).eps) * (links.roundings + 2 * pairwise + 12)


def l1_bound(factor: float, rounding: float = 0.0) -> Bound:
    """Bound for a step that contracts by ``factor`` (L1): ``|r_t − r*| ≤ factor/(1 − factor)·|r_t − r_{t−1}|``."""

    def bound(new: np.ndarray, old: np.ndarray, change: float) -> tuple[float, float]:
        return (factor * change + rounding * float(new.sum(axis=0).max())) / (1 - factor), math.nan

    return bound


def hilbert_bound(degree: float, rounding: float = 0.0) -> Bound:
    """Bound for a step homogeneous of degree h < 1: ``d_H(r_t, r*) ≤ h/(1 − h)·d_H(r_t, r_{t−1})``.

    Vectors that sum to 1 are then at most ``2·tanh(d_H/4)`` apart in the L1 norm. Entries that are 0 stay 0.
    """

    def bound(new: np.ndarray, old: np.ndarray, change: float) -> tuple[float, float]:
        d = (degree * hilbert_distance(new, old) + 2 * rounding) / (1 - degree)
        return 2 * math.tanh(d / 4), d

    return bound


def no_bound(new: np.ndarray, old: np.ndarray, change: float) -> tuple[float, float]:
    """Return no bound (nan), so that iteration stops when scores no longer change."""
    return math.nan, math.nan


def hilbert_distance(x: np.ndarray, y: np.ndarray) -> float:
    """Hilbert distance ``log max_i(x_i/y_i) − log min_i(x_i/y_i)`` over the support, the largest of all columns.

    Examples
    --------
    >>> hilbert_distance(np.array([0.5, 0.5]), np.array([0.25, 0.75])).__round__(6)
    1.098612
    """
    if x.min() > 0 and y.min() > 0:
        ratio = x / y
        return float(np.log(ratio.max(axis=0) / ratio.min(axis=0)).max())
    there = y > 0
    if ((x > 0) != there).any():
        return math.inf
    ratio = x / np.where(there, y, 1.0)
    high, low = ratio.max(axis=0), np.where(there, ratio, math.inf).min(axis=0)
    return float(np.log(high / low).max())


class Anderson:
    """Anderson acceleration: extrapolate the fixed point of a map from the last few points and their images.

    It returns the combination ``Σ γ_l g(x_l)``, ``Σ γ_l = 1``, whose residual ``Σ γ_l (g(x_l) − x_l)`` is smallest in
    the norm defined by ``scale`` (Walker and Ni 2011, type II).

    Examples
    --------
    >>> guess, g = Anderson(3), lambda x: np.array([[0.9, 0.1], [0.0, 0.5]]) @ x + 1
    >>> x = np.zeros(2)
    >>> for _ in range(4):
    ...     x = guess(x, g(x), np.ones(2))
    >>> bool(np.abs(g(x) - x).max() < 1e-6)
    True
    """

    def __init__(self, depth: int = 6) -> None:
        self._points: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=depth)

    def __call__(self, x: np.ndarray, mapped: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Add a point and its image; return the extrapolation, or the image itself while there are no other points."""
        self._points.append((mapped, mapped - x))
        if len(self._points) < 2:
            return mapped
        residual = self._points[-1][1]
        images = np.stack([image - mapped for image, _ in list(self._points)[:-1]])
        changes = np.stack([r - residual for _, r in list(self._points)[:-1]])
        weighted = changes * scale
        normal = weighted @ changes.T
        normal[np.diag_indices_from(normal)] += _RIDGE * normal.trace() + 1e-300
        return mapped - np.linalg.solve(normal, weighted @ residual) @ images

    def forget(self) -> None:
        """Discard all points, for example because the map has changed."""
        self._points.clear()
