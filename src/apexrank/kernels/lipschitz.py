"""Isotonic regression with bounded steps ``lower_i ≤ v_{i+1} − v_i ≤ upper_i``, exact, in O(n log n).

Dynamic programming on the derivative of the prefix cost. Let ``F_i(v)`` be the minimal cost of rows 0 to i with
``v_i = v``. Its derivative is piecewise linear and crosses zero at ``u_i``. The next row first widens it,

    G(v) = min F_i(v') over lower ≤ v − v' ≤ upper:    left of u it moves by ``lower``, right of it by ``upper``,

with a flat piece between, and then adds ``w·(v − y)``. Backwards, ``v_i`` is ``u_i`` clipped to the range that
``v_{i+1}`` allows.

The breakpoints on either side of u are kept in two splay trees (Sleator and Tarjan, 1985), ordered by position. A node
stores the sum of its subtree's slope changes, and of these times the distance to itself, so that the next zero is found
by descending from the root, and a shift of a whole side is recorded at its root. With two plain stacks, whose
breakpoints move across one by one, it would take O(n²) if u oscillates over many of them.

Steps are measured from the flattest feasible path, so that each side only moves outwards and u stays in the range of
the data; a bound wider than that range has no effect. The fit is then recomputed from its blocks, the runs of rows at a
bound of the step: each gets the weighted mean of its own rows, without rounding errors of the others.
"""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.kernels.jit import kernel
from apexrank.kernels.pav import check_row_weight, pav

LEFT, RIGHT = 0, 1


def lipschitz_isotonic(
    y: ArrayLike, lower: ArrayLike, upper: ArrayLike, weight: ArrayLike | None = None
) -> np.ndarray:
    """Isotonic regression with bounded steps: ``argmin_v Σ_i w_i (v_i − y_i)²``, ``lower_i ≤ v_{i+1} − v_i ≤ upper_i``.

    ``lower=0, upper=inf`` is isotonic regression, ``lower=-inf, upper=0`` its decreasing variant; ``lower=0`` and
    ``upper`` L times the distances of sorted points give the best increasing function with slope at most L.

    Parameters
    ----------
    y : array-like of shape (n,)
        Finite values.
    lower, upper : float or array-like of shape (n − 1,)
        Bounds of each step; ``lower`` may be −inf and ``upper`` inf.
    weight : array-like of shape (n,), optional
        Non-negative weights, one by default. A row of weight 0 has no influence and takes the flattest allowed step
        from the row before it. Only ratios count, so rows that all have weight 0 are fitted with equal weights. The fit
        is exact to rounding for weights within 16 powers of ten of each other.

    Returns
    -------
    ndarray of shape (n,)
        Fitted values; with ``lower=0`` they are exactly monotone.

    Examples
    --------
    >>> lipschitz_isotonic([0.0, 5.0, 1.0, 2.0], lower=0.0, upper=1.0).tolist()
    [1.25, 2.25, 2.25, 2.25]
    >>> lipschitz_isotonic([0.0, 5.0, 1.0], lower=[1.0, 0.0], upper=np.inf, weight=[1.0, 1.0, 3.0]).tolist()
    [0.0, 2.0, 2.0]
    """
    values = _check_values("y", y)
    n = len(values)
    low, high = _check_bound("lower", lower, n), _check_bound("upper", upper, n)
    has_room = (low <= high) & (low < math.inf) & (high > -math.inf)  # false for nan
    if not has_room.all():
        raise InputError("`lower` must not exceed upper: every step needs room, lower < inf and upper > -inf")
    weights = _check_weight(weight, n)
    if n < 2:
        return values.copy()
    if not low.any() and high.min() == math.inf:
        return pav(values, weight=weights)
    flattest = np.clip(0.0, low, high)
    path = np.concatenate([[0.0], np.cumsum(flattest)])
    with np.errstate(over="ignore", invalid="ignore"):
        target = values - path
        spread = np.ptp(target)
    if not np.isfinite(spread):
        raise InputError("y and the bounds are too far apart for floating point: divide them by a number")
    down, up = low - flattest, high - flattest
    down[down < -spread], up[up > spread] = -math.inf, math.inf
    return _fit(target, down, up, weights) + path


def lipschitz_isotonic_link(
    scores: ArrayLike,
    y: ArrayLike,
    slope: float = math.inf,
    weight: ArrayLike | None = None,
    *,
    rounding: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Least-squares fit of ``y`` by an increasing function of the scores with slope at most ``slope``.

    Rows with equal scores share one value.

    Parameters
    ----------
    scores, y : array-like of shape (n,)
        Arguments of the function, and target values.
    slope : float
        Largest slope; infinite for isotonic regression.
    weight : array-like of shape (n,), optional
        Non-negative weights, one by default.
    rounding : float
        Neighbouring scores that differ by at most this are considered equal.

    Returns
    -------
    knots, values : ndarray
        Distinct scores, increasing, and the values of the function.

    Examples
    --------
    >>> knots, values = lipschitz_isotonic_link([3.0, 0.0, 1.0, 2.0, 2.0], [2.0, 0.0, 5.0, 2.0, 0.0], slope=1.0)
    >>> knots.tolist(), values.tolist()
    ([0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 2.0, 2.0])
    """
    if not isinstance(slope, Real) or not slope > 0:
        raise InputError(f"`slope` must be above 0, got {slope!r}")
    at, values = _check_values("scores", scores), _check_values("y", y)
    if at.shape != values.shape:
        raise InputError(f"scores need one number per row: expected {len(values)}, got {len(at)}")
    weights = _check_weight(weight, len(values))
    knots, first, number = np.unique(at, return_index=True, return_inverse=True)
    if rounding > 0:
        new = np.diff(knots, prepend=-math.inf) > rounding
        knots, first, number = knots[new], first[new], (np.cumsum(new) - 1)[number]
    mass = np.bincount(number, weights, len(knots))
    start = values[first]  # sums of differences from a value of the knot avoid cancellation
    excess = np.bincount(number, weights * (values - start[number]), len(knots))
    mean = start + np.divide(excess, mass, out=np.zeros(len(knots)), where=mass > 0)
    upper = math.inf if math.isinf(slope) else slope * np.diff(knots)
    return knots, lipschitz_isotonic(mean, 0.0, upper, mass)


def _check_values(name: str, values: ArrayLike) -> np.ndarray:
    checked = np.ascontiguousarray(values, dtype=float)
    if np.ndim(values) != 1:
        raise InputError(f"{name} must be one-dimensional, got shape {np.shape(values)}")
    if not np.isfinite(checked).all():
        row, verb = int(np.argmin(np.isfinite(checked))), "are" if name.endswith("s") else "is"
        raise InputError(f"{name} {verb} missing or infinite in row {row}: fill or drop it")
    return checked


def _check_bound(name: str, bound: ArrayLike, n: int) -> np.ndarray:
    steps, bounds = max(0, n - 1), np.asarray(bound, dtype=float)
    if bounds.ndim and bounds.shape != (steps,):
        raise InputError(f"{name} needs one number, or one per step ({steps}), got shape {bounds.shape}")
    return np.broadcast_to(bounds, steps)


def _check_weight(weight: ArrayLike | None, n: int) -> np.ndarray:
    if weight is None:
        return np.ones(n)
    weights = check_row_weight(weight, n)
    return weights / weights.max() if weights.any() else np.ones(n)


@kernel()
def _fit(y, down, up, weight):
    zero = _prefix_minimisers(y - y[0], down, up, weight)  # values far from zero would lose precision in sums
    v, step = _go_back(zero + y[0], down, up, weight)
    _settle(y, down, up, weight, step, v)
    return v


@kernel()
def _prefix_minimisers(y, down, up, weight):
    """Compute the zeros ``u_i`` of the derivatives."""
    n = y.size
    child = np.zeros((2, 2 * n), np.int32)  # 0 means no node
    # of a node: position, pending shift of its children, change of slope from left to right, sum of these over the
    # subtree, and their sum times the distance to the node
    pos, shift, jump = np.zeros(2 * n), np.zeros(2 * n), np.zeros(2 * n)
    total, moment = np.zeros(2 * n), np.zeros(2 * n)
    tree, path = (child, pos, shift, jump, total, moment), np.empty(2 * n, np.int32)
    zero = np.empty(n)
    root = np.zeros(2, np.int32)
    used, u, slope = 1, y[0], weight[0]
    zero[0] = u
    for i in range(1, n):
        for side in range(2):
            move = up[i - 1] if side == RIGHT else down[i - 1]
            if math.isinf(move):
                root[side] = 0  # no bound: the flat piece extends to infinity, and no breakpoints are left
                continue
            if root[side] > 0:
                # the whole side moves in O(1): the shift is propagated to children lazily (_hand_down)
                pos[root[side]] += move
                shift[root[side]] += move
            if slope > 0.0:
                # at the end of the flat piece the derivative continues with the slope it had at u
                pos[used], jump[used] = u + move, slope if side == RIGHT else -slope
                child[side, used] = root[side]
                _sum_up(tree, used)
                root[side] = used
                used += 1
        # on the flat piece around u the derivative is only w·(v − y): its zero lies from u towards y
        slope = weight[i]
        if slope * (u - y[i]) != 0.0:
            side = RIGHT if y[i] > u else LEFT
            u, slope = _move_zero(tree, path, root, side, u, y[i], slope)
        zero[i] = u
    return zero


@kernel()
def _move_zero(tree, path, root, side, u, y, weight):
    """Move from u towards y until the derivative vanishes; breakpoints passed on the way change sides."""
    child, pos, _, jump, total, moment = tree
    sign = 1.0 if side == RIGHT else -1.0
    value, slope, at, limit = weight * abs(u - y), weight, u, y
    node, depth, passed = root[side], 0, False
    while node > 0:
        _hand_down(tree, node)
        path[depth] = node
        depth += 1
        near = child[1 - side, node]
        # |derivative| at the node after passing all breakpoints nearer to u: those of the subtree ``near`` change it
        # by their slopes times their distances, whose sums the subtree stores
        left_over = value - slope * abs(pos[node] - at)
        left_over += moment[near] + total[near] * (pos[near] - pos[node])
        passed = left_over > 0.0
        if passed:
            value, at = left_over, pos[node]
            slope += sign * (total[near] + jump[node])
            node = child[side, node]
        else:
            limit = pos[node]
            node = near
    if depth > 0:
        _splay(tree, path, depth)
        _change_sides(tree, path, root, side, path[0], passed)
    slope = max(slope, weight)  # every slope includes the row itself
    u = at + sign * value / slope
    # rounding must not move u past the next breakpoint or past y
    return (min(u, limit) if side == RIGHT else max(u, limit)), slope


@kernel()
def _change_sides(tree, path, root, side, top, passed):
    """Split the tree of ``side`` at its new root ``top`` and attach the passed part to the tree of the other side."""
    child = tree[0]
    near = 1 - side
    if passed:
        crossed, root[side] = top, child[side, top]
        child[side, top] = 0
        _sum_up(tree, top)
    else:
        crossed, root[side] = child[near, top], top
        child[near, top] = 0
        _sum_up(tree, top)
    if crossed == 0:
        return
    if root[near] == 0:
        root[near] = crossed
        return
    node, depth = root[near], 0
    while node > 0:  # node of the other side next to u
        _hand_down(tree, node)
        path[depth] = node
        depth += 1
        node = child[side, node]
    _splay(tree, path, depth)
    root[near] = path[0]
    child[side, path[0]] = crossed
    _sum_up(tree, path[0])


@kernel()
def _sum_up(tree, node):
    child, pos, _, jump, total, moment = tree
    a, b = child[0, node], child[1, node]
    total[node] = total[a] + jump[node] + total[b]
    below = moment[a] + total[a] * (pos[a] - pos[node])
    moment[node] = below + moment[b] + total[b] * (pos[b] - pos[node])


@kernel()
def _hand_down(tree, node):
    """Apply the pending shift to the children."""
    child, pos, shift = tree[:3]
    if shift[node] != 0.0:
        for side in range(2):
            below = child[side, node]
            if below > 0:
                pos[below] += shift[node]
                shift[below] += shift[node]
        shift[node] = 0.0


@kernel()
def _lift(tree, node, parent):
    """Rotate the node above its parent."""
    child = tree[0]
    side = 1 if child[1, parent] == node else 0
    child[side, parent] = child[1 - side, node]
    child[1 - side, node] = parent
    _sum_up(tree, parent)


@kernel()
def _splay(tree, path, depth):
    """Splay the last node of a path of ``depth`` nodes from the root (all shifts applied) to the root, ``path[0]``."""
    child = tree[0]
    node, i = path[depth - 1], depth - 1
    while i > 0:
        parent = path[i - 1]
        if i == 1:
            _lift(tree, node, parent)
            i = 0
            continue
        above = path[i - 2]
        side = 1 if child[1, above] == parent else 0
        if child[side, parent] == node:
            # zig-zig: rotating the parent first makes descents O(log n) amortised
            _lift(tree, parent, above)
            _lift(tree, node, parent)
        else:
            _lift(tree, node, parent)
            child[side, above] = node
            _lift(tree, node, above)
        i -= 2
        if i > 0:
            over = path[i - 1]
            child[1 if child[1, over] == above else 0, over] = node
    _sum_up(tree, node)
    path[0] = node


@kernel()
def _go_back(zero, down, up, weight):
    """Compute the fit from the last row to the first, and the active bound of each step, nan if none is active."""
    n = zero.size
    first = 0  # first row with weight
    while weight[first] == 0.0:
        first += 1
    v, step = zero.copy(), np.full(n, np.nan)
    for i in range(n - 2, -1, -1):
        lowest, highest = v[i + 1] - up[i], v[i + 1] - down[i]
        # tie by equality, so that rows of one value share it exactly: rows before the first weight, steps without any
        # room, and rows without weight
        if i < first or (down[i] == 0.0 and up[i] == 0.0) or (weight[i + 1] == 0.0 and v[i + 1] == zero[i]):
            v[i], step[i] = v[i + 1], 0.0
        elif zero[i] < lowest:
            v[i], step[i] = lowest, up[i]
        elif zero[i] > highest:
            v[i], step[i] = highest, down[i]
    return v, step


@kernel()
def _settle(y, down, up, weight, step, v):
    """Set each block, a run of rows connected by ``step``, to the mean of its own rows."""
    n, start = y.size, 0
    while start < n:
        end, offset, mass, excess = start, 0.0, 0.0, 0.0
        while True:
            mass += weight[end]
            excess += weight[end] * (y[end] - y[start] - offset)
            if math.isnan(step[end]):
                break
            offset += step[end]
            end += 1
        base = v[start] if mass == 0.0 else y[start] + excess / mass
        if start > 0:  # rounding must not violate a bound
            base = min(max(base, v[start - 1] + down[start - 1]), v[start - 1] + up[start - 1])
        offset = 0.0
        for i in range(start, end + 1):
            v[i] = base + offset
            offset += step[i]
        start = end + 1
