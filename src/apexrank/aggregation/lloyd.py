"""Lloyd's algorithm for score vectors with orders as centres: starts, steps, and clusters that lose all their rows.

The cost of row x in a cluster with order σ and mean μ is, with a = ``euclidean``,

    d(x‖σ) + a/2·|x − μ|²  =  [f̂(x) + a/2·|x|²]  +  a/2·|μ|²  −  x·(h_σ + a·μ):

a constant of the row, computed once, a constant of the centre, and one product. The best centre of given rows is
their weighted mean μ with the order of its entries, for both terms at once. (Iyer and Bilmes 2013, section 4.)

d(x‖σ) does not change when a number is added to a row. So x and μ stand for themselves less their means x̄ and μ̄ over
the n items, which keeps the digits of rows far from zero, and ``a·n/2·(x̄ − μ̄)²`` is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from apexrank.aggregation.lovasz_bregman import LovaszBregman
from apexrank.kernels.assign import Assignment, Costs, Table, all_costs, assign

BLOCK = 4096  # rows sorted at a time: the sorted copies stay small
GOLDEN = (1 + 5**0.5) / 2


class Centres(NamedTuple):
    """k centres: mean score vectors, their orders, and what they cost."""

    means: np.ndarray
    orders: np.ndarray
    costs: Costs


class Run(NamedTuple):
    """Where one start led: centres, the nearest of each row, and the objective before the first step and after each."""

    centres: Centres
    labels: np.ndarray
    history: list[float]
    converged: bool

    @property
    def inertia(self) -> float:
        """Objective at the centres: each row counts at the nearest."""
        return self.history[-1]


@dataclass(frozen=True)
class Cost:
    """``d_f(x‖σ) + euclidean/2·|x − μ|²``."""

    divergence: LovaszBregman
    euclidean: float

    def centres(self, means: np.ndarray, orders: np.ndarray | None = None) -> Centres:
        """The means with their own orders, or given ones; tied items are in the order of their columns."""
        if orders is None:
            orders = np.argsort(-means, axis=1, kind="stable")
        level = means.mean(axis=1)
        centred = means - level[:, None]
        slopes = self.divergence.gradients(orders) + self.euclidean * centred
        bias = 0.5 * self.euclidean * np.einsum("ij,ij->i", centred, centred)
        return Centres(means, orders, Costs(slopes, bias, level, 0.5 * self.euclidean * means.shape[1]))

    def table(self, X: np.ndarray) -> Table:
        """Read the rows once for their means and constants."""
        means, constant = X.mean(axis=1, dtype=np.float64), np.empty(len(X))
        for first in range(0, len(X), BLOCK):
            part = slice(first, first + BLOCK)
            centred = X[part] - means[part, None]
            squares = np.einsum("ij,ij->i", centred, centred)
            constant[part] = self.divergence.extension(centred) + 0.5 * self.euclidean * squares
        return Table(X, means, constant)


class Rows:
    """Score vectors with their weights, and what does not change from step to step."""

    def __init__(self, X: np.ndarray, weight: np.ndarray, cost: Cost) -> None:
        self.X, self.weight, self.cost = X, weight, cost
        self.table = cost.table(X)
        n_items, span = X.shape[1], float(X.max()) - float(X.min())
        length = np.abs(cost.divergence.gradients(np.arange(n_items))).sum() + cost.euclidean * n_items * span
        self.noise = n_items * np.finfo(np.float64).eps * span * float(length)  # rounding of a cost

    def assign(self, centres: Centres) -> Assignment:
        """Each row to its nearest centre."""
        return assign(self.table, self.weight, centres.costs)

    def centres_at(self, chosen: np.ndarray | list[int]) -> Centres:
        """Some of the rows as centres."""
        return self.cost.centres(self.X[chosen].astype(np.float64))


# ---------------------------------------------------------------- steps


def lloyd(rows: Rows, centres: Centres, *, max_iter: int, tol: float, verbose: bool = False) -> Run:
    """Move centres to the means of their rows, and rows to the nearest centres, until nothing changes.

    Neither half of a step raises the objective. It ends when no row changes its centre, or when the objective falls by
    no more than ``tol`` times its value.
    """
    found = rows.assign(centres)
    history = [found.value]
    converged = False
    while not converged and len(history) <= max_iter:
        found = refill(rows, found)
        centres = _means(rows, found, centres)
        before, found = found, rows.assign(centres)
        history.append(found.value)
        if verbose:
            print(f"step {len(history) - 1}: objective {history[-1]:.6g}", flush=True)
        fall = history[-2] - history[-1]
        converged = fall <= tol * history[-1] or np.array_equal(before.labels, found.labels)
    return Run(centres, found.labels, history, converged)


def _means(rows: Rows, found: Assignment, centres: Centres) -> Centres:
    """Centres at the weighted means of their rows; one without rows stays where it is."""
    full = found.mass > 0
    means = centres.means.copy()
    means[full] = found.sums[full] / found.mass[full, None]
    return rows.cost.centres(means)


def refill(rows: Rows, found: Assignment) -> Assignment:
    """Give each empty cluster the row farthest from its centre, and all rows equal to it.

    Only rows that leave others behind in their cluster, and that are farther than rounding, are taken: the objective
    falls. Where there are none, clusters stay empty.
    """
    empty = np.flatnonzero(found.mass == 0)
    if not len(empty):
        return found
    labels, mass, sums = found.labels.copy(), found.mass.copy(), found.sums.copy()
    far = np.where((rows.weight > 0) & (found.costs > rows.noise), found.costs, 0.0)
    for c in empty:
        while far.any():
            i = int(np.argmax(far))
            old = labels[i]
            equal = np.flatnonzero((far == far[i]) & (labels == old))
            equal = equal[(rows.X[equal] == rows.X[i]).all(axis=1)]
            far[equal] = 0.0
            if np.count_nonzero((labels == old) & (rows.weight > 0)) > len(equal):
                weight = rows.weight[equal].sum()
                moved = weight * rows.X[i].astype(np.float64)
                labels[equal], mass[c], sums[c] = c, weight, moved
                mass[old] -= weight
                sums[old] -= moved
                break
    return found._replace(labels=labels, mass=mass, sums=sums)


# ---------------------------------------------------------------- starts


def start(rows: Rows, k: int, rng: np.random.RandomState, *, spread: bool) -> Centres:
    """Rows as first centres, drawn one after the other.

    With ``spread`` (k-means++ with the cost in place of the squared distance) a row is drawn in proportion to its
    weight times its cost at the nearest centre so far, the best of 2 + ⌊ln k⌋ draws; without, to its weight alone
    among the rows that cost anything. Weights act as repetitions and the order of rows does not matter, because the
    draws go by an order that depends on the rows' values only.
    """
    n_items = rows.X.shape[1]
    # a generic direction: rows that differ have different places
    direction = ((np.arange(1, n_items + 1) * GOLDEN) % 1).astype(rows.X.dtype)
    sequence = np.argsort(np.einsum("ij,j->i", rows.X, direction), kind="stable")
    trials = 2 + int(np.log(k)) if spread else 1
    nearest = np.full(len(rows.X), np.inf)
    chosen: list[int] = []
    for _ in range(k):
        share = rows.weight * (nearest if chosen and spread else nearest > 0)
        if not share.any():  # all rows are at a centre
            share = rows.weight
        candidates = _draws(share, sequence, rng.random_sample(trials))
        costs = all_costs(rows.table, rows.centres_at(candidates).costs)
        costs[costs <= rows.noise] = 0.0
        np.minimum(costs, nearest[:, None], out=costs)
        best = int(np.argmin(np.einsum("i,ij->j", rows.weight, costs)))
        chosen.append(int(candidates[best]))
        nearest = costs[:, best].copy()
    return rows.centres_at(chosen)


def _draws(share: np.ndarray, sequence: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Rows at the given quantiles of the shares, which are added up along the sequence."""
    total = np.cumsum(share[sequence])
    last = np.searchsorted(total, total[-1])
    return sequence[np.minimum(np.searchsorted(total, uniform * total[-1], side="right"), last)]
