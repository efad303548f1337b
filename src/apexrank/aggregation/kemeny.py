"""Kemeny order: the order that contradicts the fewest pairwise preferences.

``cost(σ) = Σ_{i before j in σ} (weight of the voters who prefer j to i)`` is the weighted sum of Kendall distances to
the ballots; a pair that a ballot ties or does not compare costs nothing (Kemeny 1959).

Items fall into groups such that each member of a group beats all members of the groups below; every optimal order ranks
the groups in this order (extended Condorcet criterion, Truchon 1998). Within a group a local search, which moves one
item at a time, starts from the Borda and Copeland orders. A group of at most ``max_exact`` items is then solved
exactly: a small one by dynamic programming over its subsets (Held and Karp 1962), a larger one as an integer programme
over the pairs with one row for each triple (Grötschel, Jünger and Reinelt 1984). The solver stops at a small gap, so
that a proof for a larger group needs margins that are multiples of a common number, as those of votes are.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from apexrank.aggregation.pairwise import margins
from apexrank.kernels.jit import kernel

_MOST_CYCLES = 500  # largest group for which all triples are enumerated for the bound
_MOST_SUBSETS = 16  # largest group for which all subsets are enumerated
_UNIT = 1e3  # largest margin in the integer programme
_GAP, _REDUCED = 1e-6, 1e-7  # its absolute gap, and the error of the reduced cost of a pair
_ROUNDING = 1e-12  # relative to the total weight of the voters
_TIME_LIMIT = 1  # status code of the solver
_COMMON = 1e-9  # relative to the largest margin: smaller values may be rounding errors


class Kemeny(NamedTuple):
    """Kemeny order with its cost and certificate.

    Parameters
    ----------
    order : ndarray
        Number of the item at each rank, best first.
    cost : float
        Total weight of the pairwise preferences that it contradicts.
    bound : float
        Lower bound on the cost of every order.
    optimal : bool
        Whether the order is proven optimal.
    circle : int
        Number of items of the largest group that beat each other in a cycle; 0 if there is none. A proof needs
        ``max_exact`` of at least this size.
    late : bool
        Whether the time limit stopped an exact solution.
    """

    order: np.ndarray
    cost: float
    bound: float
    optimal: bool
    circle: int = 0
    late: bool = False


def kemeny(
    counts: np.ndarray, total: float | None = None, *, max_exact: int = 40, time_limit: float = 60.0
) -> Kemeny:
    """Find the order of least cost, proven for groups of up to ``max_exact`` items, else by local search.

    Parameters
    ----------
    counts : array of shape (n, n)
        Weight of the voters who prefer item i to item j, from `apexrank.aggregation.pairwise.pairwise_counts`.
    total : float, optional
        Weight of all voters; margins below its rounding error are draws. By default the largest of
        ``counts + counts.T``.
    max_exact : int
        Largest group to solve exactly; 0 uses local search only, which still proves orders that attain the bound.
    time_limit : float
        Seconds for the exact solution of a group; after that the best known order and bound are returned.

    Examples
    --------
    >>> found = kemeny(np.array([[0, 3, 2], [2, 0, 4], [3, 1, 0]]))
    >>> found.order.tolist(), found.cost, found.optimal
    ([0, 1, 2], 6.0, True)
    """
    counts = np.asarray(counts, dtype=np.float64)
    total = float((counts + counts.T).max()) if total is None else total
    margin = margins(counts, total)
    tolerance = _ROUNDING * max(total, 1e-300) * len(counts)
    orders, least, circle, late = [], 0.0, 0, False
    for group in _groups(margin):
        inside = margin[np.ix_(group, group)]
        order, bound, stopped = _solve_group(inside, max_exact, time_limit, tolerance)
        late = late or stopped
        if _excess(order, inside) > 0:
            circle = max(circle, len(group))
        orders.append(group[order])
        least += bound
    order = np.concatenate(orders)
    unavoidable = float(np.minimum(counts, counts.T).sum() / 2)
    excess = _excess(order, margin)
    optimal = excess <= least + tolerance
    bound = excess if optimal else least
    return Kemeny(order, unavoidable + excess, unavoidable + bound, bool(optimal), circle, late)


def _groups(margin: np.ndarray) -> list[np.ndarray]:
    """Return groups of items that beat or draw with each other in a cycle, starting with the group that beats all."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n, label = connected_components(csr_array(margin >= 0), connection="strong")
    wins = np.sign(margin).sum(axis=1)
    best = np.full(n, -np.inf)
    np.maximum.at(best, label, wins)
    return [np.flatnonzero(label == number) for number in np.argsort(-best, kind="stable")]


def _solve_group(
    margin: np.ndarray, max_exact: int, time_limit: float, tolerance: float
) -> tuple[np.ndarray, float, bool]:
    """Return a group's order, a lower bound on its excess over the pairwise minorities, and whether time ran out."""
    order = search(margin, tolerance)
    excess = _excess(order, margin)
    if excess == 0:
        return order, 0.0, False
    if len(margin) <= max_exact:
        if len(margin) <= _MOST_SUBSETS and time_limit > 0:  # 2ⁿ·n steps, without a time limit
            exact = np.empty(len(margin), dtype=np.int64)
            _order_subsets(np.maximum(margin, 0.0), exact)
            bound, late = _excess(exact, margin), False
        else:
            exact, bound, late = _solve_programme(margin, time_limit)
        return min(order, exact, key=lambda each: _excess(each, margin)), bound, late
    return order, _pack_cycles(np.maximum(margin, 0.0)) if len(margin) <= _MOST_CYCLES else 0.0, False


def search(margin: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
    """Find an order that no move of a single item improves: the better of the searches from Borda and Copeland.

    Examples
    --------
    >>> search(np.array([[0.0, 1.0, -1.0], [-1.0, 0.0, 3.0], [1.0, -3.0, 0.0]])).tolist()
    [0, 1, 2]
    """
    starts = margin.sum(axis=1), np.sign(margin).sum(axis=1)
    found = [np.argsort(-start, kind="stable") for start in starts]
    for order in found:
        _insert(order, np.ascontiguousarray(margin, dtype=np.float64), tolerance)
    return min(found, key=lambda order: _excess(order, margin))


def _excess(order: np.ndarray, margin: np.ndarray) -> float:
    """Sum of the margins that the order contradicts."""
    return float(np.maximum(np.triu(-margin[np.ix_(order, order)], 1), 0.0).sum())


def _solve_programme(margin: np.ndarray, time_limit: float) -> tuple[np.ndarray, float, bool]:
    """Return the solver's best order and bound on the excess, and whether it ran out of time before a proof."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    n = len(margin)
    first, second = np.triu_indices(n, 1)
    number = np.zeros((n, n), dtype=np.int64)
    number[first, second] = np.arange(len(first))
    a, b, c = np.array(list(combinations(range(n), 3))).T
    # x is 1 if the first of a pair comes before the second; without cycles 0 ≤ x_ab + x_bc − x_ac ≤ 1
    columns = np.column_stack([number[a, b], number[b, c], number[a, c]]).ravel()
    rows = np.repeat(np.arange(len(a)), 3)
    matrix = csr_array((np.tile([1.0, 1.0, -1.0], len(a)), (rows, columns)), shape=(len(a), len(first)))
    unit = _UNIT / np.abs(margin).max()
    found = milp(
        -margin[first, second] * unit,
        integrality=np.ones(len(first)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, 0, 1),
        options={"mip_rel_gap": 0.0, "time_limit": time_limit},
    )
    x = np.zeros(len(first)) if found.x is None else found.x.round()
    before = np.zeros((n, n))
    before[first, second], before[second, first] = x, 1 - x
    order = np.argsort(-before.sum(axis=1), kind="stable")
    known = -np.inf if found.mip_dual_bound is None else found.mip_dual_bound
    gap = _GAP + _REDUCED * len(first)
    bound = max(0.0, float(np.maximum(margin[first, second], 0.0).sum() + (known - gap) / unit))
    step = _common_unit(np.abs(margin[first, second]))
    late = found.status == _TIME_LIMIT
    return order, bound if step is None else float(np.ceil(bound / step) * step), late


def _common_unit(margins: np.ndarray) -> float | None:
    """Greatest common divisor of the margins up to rounding, by Euclid's algorithm; None if it is too small."""
    values = np.unique(margins[margins > 0])
    near = _COMMON * values[-1]
    unit = values[0]
    for value in values[1:].tolist():
        larger, smaller = value, unit
        while smaller > near:
            larger, smaller = smaller, abs(larger - round(larger / smaller) * smaller)
        unit = larger
    unit = values[-1] / round(values[-1] / unit)  # removes the rounding errors of the steps
    misses = np.abs(values - np.round(values / unit) * unit).max()
    return float(unit) if misses <= _ROUNDING * values[-1] else None


def tied_places(order: np.ndarray, margin: np.ndarray) -> np.ndarray:
    """Mean place of each item, 1 on top; neighbours that can be swapped at the same cost are tied.

    Examples
    --------
    >>> tied_places(np.array([1, 0, 2]), np.array([[0, 0, 1], [0, 0, 1], [-1, -1, 0]])).tolist()
    [1.5, 1.5, 3.0]
    """
    places, start, n = np.empty(len(order)), 0, len(order)
    for end in range(1, n + 1):
        if end == n or margin[order[end], order[start:end]].any():
            places[order[start:end]] = (start + 1 + end) / 2
            start = end
    return places


@kernel()
def _insert(order, margin, tolerance):
    """Move each item to its best place until no move gains more than rounding errors."""
    n, moved = order.size, True
    while moved:
        moved = False
        for p in range(n):
            item, best, target = order[p], -tolerance, p
            change = 0.0
            for q in range(p - 1, -1, -1):
                change += margin[order[q], item]
                if change < best:
                    best, target = change, q
            change = 0.0
            for q in range(p + 1, n):
                change += margin[item, order[q]]
                if change < best:
                    best, target = change, q
            step = 1 if target > p else -1
            for q in range(p, target, step):
                order[q] = order[q + step]
            order[target] = item
            moved = moved or target != p


@kernel()
def _pack_cycles(left):
    """Lower bound on the excess: each 3-cycle loses a margin, and disjoint cycles add up."""
    n, bound = left.shape[0], 0.0
    for a in range(n):
        for b in range(a + 1, n):
            for c in range(a + 1, n):
                least = min(left[a, b], left[b, c], left[c, a])
                if least > 0:
                    left[a, b] -= least
                    left[b, c] -= least
                    left[c, a] -= least
                    bound += least
    return bound


@kernel()
def _order_subsets(against, order):
    """Find the best order of every subset: one of its items last, below the best order of the others."""
    n = order.size
    least, last = np.zeros(1 << n), np.zeros(1 << n, dtype=np.int64)
    for subset in range(1, 1 << n):
        least[subset] = np.inf
        for item in range(n):
            if subset >> item & 1:
                rest = subset ^ (1 << item)
                cost = least[rest]
                for other in range(n):
                    if rest >> other & 1:
                        cost += against[item, other]
                if cost < least[subset]:
                    least[subset], last[subset] = cost, item
    subset = (1 << n) - 1
    for place in range(n - 1, -1, -1):
        order[place] = last[subset]
        subset ^= 1 << last[subset]
