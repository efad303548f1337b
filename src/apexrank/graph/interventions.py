"""Orders that are known beforehand: of what one vertex recommends, or of the ranks themselves.

That vertex i puts a at or above b, ``t̂_ia ≥ t̂_ib``, cuts its hull by a half-space: what is left is again a hull, of
the corners that stay and of new ones on the cut. That the ranks keep ``w_a ≥ w_b`` is a constraint on the whole walk,
met by the method of multipliers: one more cost of the ranks, whose prices push the vertices in the right direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.graph import Graph
from apexrank.graph.power import Anderson
from apexrank.kernels.hulls import Hulls, gathered

MOST_CORNERS = 500
ROUNDING = 1e-13
GAIN, PATIENCE, STIFFER = 0.7, 5, 4.0  # a round shall leave so much of the violation; rounds; factor
Pairs = Sequence[tuple[int, int]]


def cut_hulls(
    hulls: Hulls, base: np.ndarray, damping: float, keep: Mapping[int, Pairs], graph: Graph
) -> tuple[Hulls, dict[int, np.ndarray]]:
    """Hulls cut by the orders of some vertices, and the corners of each as weights of its layers' candidates.

    A hull that keeps the orders already stays as it is, and has no corners here.
    """
    corners = {i: _corners(hulls, base, damping, i, pairs, graph) for i, pairs in sorted(keep.items())}
    corners = {i: found for i, found in corners.items() if found.size}
    return (_recut(hulls, corners) if corners else hulls), corners


def _corners(
    hulls: Hulls, base: np.ndarray, damping: float, i: int, pairs: Pairs, graph: Graph
) -> np.ndarray:
    shares = damping * row_shares(hulls, i)
    columns = hulls.indices[hulls.indptr[i] : hulls.indptr[i + 1]].tolist()
    # a vertex without links follows the teleport, as a hull of one point does
    corners, is_cut = np.eye(len(shares)) if len(shares) else np.ones((1, 0)), False
    for a, b in pairs:
        lead = np.full(len(shares), base[a] - base[b])
        for vertex, sign in ((a, 1.0), (b, -1.0)):
            if vertex in columns:
                lead += sign * shares[:, columns.index(vertex)]
        lead = corners @ lead if len(shares) else np.array([base[a] - base[b]])
        is_cut |= bool((lead < -ROUNDING).any())
        corners = _cut(corners, lead)
        if not len(corners):
            raise InputError(
                f"no mix of its layers lets vertex {graph.label(i)!r} put {graph.label(a)!r} at or above "
                f"{graph.label(b)!r}: take that order out"
            )
        if len(corners) > MOST_CORNERS:
            raise InputError(f"vertex {graph.label(i)!r} has too many orders to keep at once: give fewer")
    return corners if is_cut else np.empty((0, 0))


def _cut(corners: np.ndarray, lead: np.ndarray) -> np.ndarray:
    """Corners with a lead of at least 0, but for rounding, and the points of no lead between those and the others."""
    inside, outside = lead >= -ROUNDING, lead < -ROUNDING
    kept = [corners[inside]]
    for p in np.flatnonzero(lead > 0):
        share = lead[p] / (lead[p] - lead[outside])
        kept.append((1 - share)[:, None] * corners[p] + share[:, None] * corners[outside])
    return np.unique(np.concatenate(kept), axis=0)


def row_shares(hulls: Hulls, i: int) -> np.ndarray:
    """Candidates of a row over the columns of its union."""
    low, high = hulls.indptr[i], hulls.indptr[i + 1]
    found = np.zeros((hulls.first[i + 1] - hulls.first[i], high - low))
    for u in range(low, high):
        inside = slice(hulls.entries[u], hulls.entries[u + 1])
        found[hulls.candidate[inside], u - low] = hulls.share[inside]
    return found


def _recut(hulls: Hulls, corners: Mapping[int, np.ndarray]) -> Hulls:
    """The hulls with some rows made of their corners, which belong to no layer (−1)."""
    n, cut = len(hulls.first) - 1, np.array(list(corners))
    place = np.repeat(np.arange(len(hulls.indices)), np.diff(hulls.entries))
    row = np.repeat(np.arange(n, dtype=hulls.indices.dtype), np.diff(hulls.indptr))[place]
    kept = ~np.isin(row, cut)
    parts = [(row[kept], hulls.indices[place[kept]], hulls.candidate[kept], hulls.share[kept])]
    for i, mixes in corners.items():
        shares = mixes @ row_shares(hulls, i)
        candidate, at = np.nonzero(shares)
        columns = hulls.indices[hulls.indptr[i] + at]
        parts.append((np.full_like(columns, i), columns, candidate, shares[candidate, at]))
    sizes, vertex = np.diff(hulls.first), np.repeat(np.arange(n), np.diff(hulls.first))
    sizes[cut] = [len(mixes) for mixes in corners.values()]
    layer = np.full(sizes.sum(), -1, dtype=hulls.layer.dtype)
    layer[~np.isin(np.repeat(np.arange(n), sizes), cut)] = hulls.layer[~np.isin(vertex, cut)]
    return gathered(parts, sizes, layer)


class RankOrder:
    """Cost of ranks out of order: ``Σ (max(0, μ + ς·x)² − μ²)/(2ς)``, x the lead ``n·(w_b − w_a)`` of b over a.

    The multipliers μ are those of the orders where all are kept at least cost. The stiffness ς is small at first, as a
    stiff cost makes for short steps; guesses from several rounds (Anderson) make up for it.

    Parameters
    ----------
    pairs : sequence of pairs
        Vertices a, b whose ranks shall keep ``w_a ≥ w_b``.
    n : int
        Number of vertices.

    Examples
    --------
    >>> cost = RankOrder([(0, 1)], 2)
    >>> value, slope = cost(np.array([0.25, 0.75]))
    >>> cost.violation(np.array([0.25, 0.75])), slope.tolist()
    (1.0, [-1.0, 1.0])
    """

    def __init__(self, pairs: Pairs, n: int) -> None:
        self.a, self.b = (np.array([pair[k] for pair in pairs]) for k in (0, 1))
        self.n, self.stiffness = n, 1.0 / n
        self.multipliers = np.zeros(len(pairs))
        self._guess, self._last, self._stuck = Anderson(), np.inf, 0

    def __call__(self, ranks: np.ndarray) -> tuple[float, np.ndarray]:
        """Cost and its gradient."""
        force = self._forces(ranks)
        value = (force**2 - self.multipliers**2).sum() / (2 * self.stiffness)
        gradient = np.zeros(self.n)
        np.add.at(gradient, self.b, self.n * force)
        np.add.at(gradient, self.a, -self.n * force)
        return float(value), gradient

    def _leads(self, ranks: np.ndarray) -> np.ndarray:
        return self.n * (ranks[self.b] - ranks[self.a])

    def _forces(self, ranks: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, self.multipliers + self.stiffness * self._leads(ranks))

    def violation(self, ranks: np.ndarray) -> float:
        """The largest lead of a b over its a, in units of the mean rank 1/n; 0 where all orders are kept."""
        return float(max(0.0, self._leads(ranks).max()))

    def is_settled(self, ranks: np.ndarray, tol: float) -> bool:
        """Whether all orders are kept within ``tol``, and none is pushed further than it need be."""
        return bool(np.abs(self._forces(ranks) - self.multipliers).max() <= tol * self.stiffness)

    def advance(self, ranks: np.ndarray) -> None:
        """Take the next multipliers; where several rounds gained little, the cost becomes stiffer."""
        broken = self.violation(ranks)
        self._stuck = self._stuck + 1 if broken > GAIN * self._last else 0
        self._last = broken
        if self._stuck >= PATIENCE:
            self.stiffness, self._stuck = STIFFER * self.stiffness, 0
            self._guess.forget()
        guessed = self._guess(self.multipliers, self._forces(ranks), np.ones(len(self.multipliers)))
        self.multipliers = np.maximum(guessed, 0.0)
