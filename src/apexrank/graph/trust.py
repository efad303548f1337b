"""Trust and distrust that spread from labelled vertices (2013, sec. 6.3, eq. 6.5).

    x = γ·U(x) + s,

s the seeds, U the propagation without teleport, γ what is left of trust after one link. Trust follows links, because
a vertex is rewarded for what others say of it. Distrust runs against them, because a vertex is punished for what it
says itself: nobody can be demoted by someone pointing at them. A final score is ``r·x₊/(x₊ + x₋)``.

The linear U hands on ``x_j·w_ij/d_j``, so ``|U(x)|₁ ≤ |x|₁`` and γ is the contraction in the L1 norm; by Minkowski's
inequality so it is for every p at ratio 1. With ratio > 1 the map is homogeneous of degree h = 1/ratio < 1; seeds are
then scaled to sum to at least the number of vertices n, since by Jensen's inequality ``|U(x)|₁ ≤ n^{1−h}·|x|₁^h``, at
most ``|x|₁`` from there on. The map then needs no rescaling in every step, which would cost its monotonicity, and
contracts Thompson's metric ``max|log(x_i/y_i)|`` by h. (The dissertation's condition γ < λ is the wrong way round.)
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Literal

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.graph import Graph
from apexrank.graph.base import reached_from
from apexrank.graph.concave_convex import Lpq
from apexrank.graph.power import Bound, Fixpoint, Progress, Walk, iterate, l1_bound

Direction = Literal["along", "against"]
DIRECTIONS = ("along", "against")


def spread(
    graph: Graph,
    seeds: np.ndarray,
    *,
    map: Lpq | None = None,
    gamma: float = 0.85,
    direction: Direction = "along",
    tol: float = 1e-9,
    max_iter: int = 1000,
    progress: Progress | None = None,
) -> Fixpoint:
    """Solve ``x = γ·U(x) + s`` for seeds s >= 0.

    Parameters
    ----------
    graph : Graph
        Whose links carry it.
    seeds : array of shape (n_vertices,)
        Weights of the seeds, 1 for a plain one. With ``map.ratio > 1`` they must sum to at least n_vertices.
    map : Lpq
        Propagation; linear by default.
    gamma : float
        What is left after one link, at least 0 and below 1.
    direction : {"along", "against"}
        Which way it spreads.
    tol, max_iter, progress
        Ends when ``error_bound`` is at most tol times the sum of x.

    Returns
    -------
    Fixpoint
        ``scores`` is x; ``error_bound`` bounds the L1 distance as a share of the sum of x.

    Examples
    --------
    >>> graph = Graph.from_edges([0, 1], [1, 2])
    >>> spread(graph, np.array([1.0, 0.0, 0.0]), gamma=0.5).scores.tolist()
    [1.0, 0.5, 0.25]
    """
    if not isinstance(gamma, Real) or not 0 <= gamma < 1:
        raise InputError(f"gamma is what is left of trust after one link: 0 <= gamma < 1, got {gamma!r}")
    if direction not in DIRECTIONS:
        raise InputError(f"direction must be 'along' or 'against' the links, got {direction!r}")
    seeds = np.asarray(seeds, dtype=float)
    if seeds.shape != (graph.n,) or not np.isfinite(seeds).all() or (seeds < 0).any():
        raise InputError(f"seeds need one finite weight of at least 0 for each of the {graph.n} vertices")
    map_ = Lpq(1.0, 1.0) if map is None else map
    links = graph if direction == "along" else graph.reversed()
    start = seeds
    if map_.degree < 1:  # logarithms need the support from the first step on
        start = np.where(reached_from(links, seeds) > 0, np.maximum(start, 1.0), 0.0)
    nothing = np.zeros(graph.n)
    with Walk(links, map_, 1.0, nothing) as walk:
        rounding = walk.rounding
        bound = l1_bound(gamma, rounding) if map_.degree == 1 else _thompson_bound(map_.degree, rounding)

        def step(x: np.ndarray) -> np.ndarray:
            return gamma * walk.inflow(x, 0.0) + seeds

        def relative(new: np.ndarray, old: np.ndarray, change: float) -> tuple[float, float]:
            error, log_error = bound(new, old, change)
            return error / (new.sum() or 1.0), log_error

        return iterate(step, start, relative, tol, max_iter, progress)


def _thompson_bound(degree: float, rounding: float) -> Bound:
    """``max|log(x_t/x*)| ≤ h/(1 − h)·max|log(x_t/x_{t−1})|``, and from it the L1 distance ``|x|₁·(e^d − 1)``."""

    def bound(new: np.ndarray, old: np.ndarray, change: float) -> tuple[float, float]:
        there = new > 0
        if (there != (old > 0)).any():
            return math.inf, math.inf
        moved = float(np.abs(np.log(new[there] / old[there])).max(initial=0.0))
        d = (degree * moved + rounding) / (1 - degree)
        return float(new.sum()) * math.expm1(min(d, 700.0)), 2 * d

    return bound


def trust_share(trust: np.ndarray, distrust: np.ndarray, neutral: float) -> np.ndarray:
    """``x₊/(x₊ + x₋)``, and ``neutral`` where neither has come.

    Examples
    --------
    >>> trust_share(np.array([1.0, 0.0, 3.0]), np.array([0.0, 0.0, 1.0]), 0.5).tolist()
    [1.0, 0.5, 0.75]
    """
    total = trust + distrust
    return np.divide(trust, total, out=np.full_like(total, neutral), where=total > 0)
