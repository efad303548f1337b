"""Triton kernels that evaluate objectives on a CUDA device, where scores and gradient stay.

* Retargeting: each program loads one list into registers. Rows of a level are unordered among themselves, so the
  nearest targets in level a are ``clip(y, t_a, t_{a+1})``, where y are the scores minus their offsets and the
  thresholds t increase with the level. Each threshold minimises a convex function of the two levels it separates, and
  decreasing thresholds are pooled as in isotonic regression. No sort is needed.
* The push with the logistic loss: the panels of :mod:`apexrank.kernels.pairsums`. The rows of a panel become Chebyshev
  moments, one matrix product maps these to Chebyshev series on all panels, and each row evaluates its series.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from apexrank.kernels.pairsums import NODES, chebyshev_between
from apexrank.kernels.triton import jit, power_of_two, tl
from apexrank.losses import Logistic
from apexrank.objectives.base import Objective
from apexrank.objectives.push import Push
from apexrank.objectives.retarget import Retarget
from apexrank.prices import Identity, Power
from apexrank.problem.triton_rows import has_kernel

Tensor = Any

LONGEST_LIST = 4096
SHORTEST_TILE = 32
MOST_PANELS = 128  # the product has (28·panels) × (14·panels) entries
TILE = 2048  # scores per program
MOST_PROGRAMS = 2048
MOMENTS = 16  # NODES, padded to a power of two


def objective_on_device(objective: Objective, X: Any) -> Any:
    """Function from scores on the device of X to value and gradient, or None if the host must evaluate it."""
    if not has_kernel(X):
        return None
    kinds: tuple[Any, ...] = (DeviceRetarget, DeviceLogisticPush)
    for kind in kinds:
        if kind.takes(objective):
            return kind(objective, X.device)
    return None


class DeviceRetarget:
    """:class:`~apexrank.objectives.retarget.Retarget` of a tensor of scores; rows of a level may be in any order."""

    def __init__(self, objective: Retarget, device: Any) -> None:
        import torch

        lists, margins = objective.lists, objective.margins
        sizes = np.diff(lists.lists)
        level_of = np.repeat(np.arange(len(lists.levels) - 1), np.diff(lists.levels))
        self.n, self.n_lists = objective.n, len(sizes)
        self.is_squared = objective.is_squared
        self.penalties = objective.target_penalty, objective.score_penalty

        def put(values: np.ndarray, dtype: Any) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(values)).to(device, dtype)

        self.bounds = put(lists.lists, torch.int64)
        self.rows = put(lists.rows, torch.int64)
        self.level = put(level_of - lists.spread(lists.lists_in_levels()[:-1]), torch.int32)
        self.offset = put(margins.offset, torch.float64)
        self.weight = put(lists.weight, torch.float64)
        self.pooling = self.weight if self.is_squared else put(lists.weight * margins.tilt, torch.float64)
        self.factor = put(objective.factor, torch.float64)
        self.constants = torch.tensor(self.penalties, dtype=torch.float64, device=device)
        tiles = [max(SHORTEST_TILE, power_of_two(int(size))) for size in np.unique(sizes)]
        tile_of = np.array(tiles)[np.unique(sizes, return_inverse=True)[1]]
        self.lists = {int(t): put(np.flatnonzero(tile_of == t), torch.int64) for t in np.unique(tile_of)}

    @staticmethod
    def takes(objective: Objective) -> bool:
        return (
            isinstance(objective, Retarget)
            and objective.margins.order == "hidden"
            and not objective.margins.reward.any()
            and objective.shift_invariant
            and int(np.diff(objective.lists.lists).max()) <= LONGEST_LIST
        )

    def value_and_grad(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Value and gradient as tensors."""
        slope, value = scores.new_zeros(self.n), scores.new_empty(self.n_lists)
        for tile, lists in self.lists.items():
            _retarget_lists[(len(lists),)](
                scores,
                self.rows,
                self.level,
                self.offset,
                self.weight,
                self.pooling,
                self.factor,
                self.constants,
                lists,
                self.bounds,
                slope,
                value,
                L=tile,
                SQUARED=self.is_squared,
                num_warps=max(1, min(8, tile // 128)),
            )
        return value.sum(), slope


@jit
def _threshold(y, weight, level, low, high):
    """Threshold t between level ``low - 1`` and level ``high``, with all levels in between at t.

    Rows of the lower level below t and rows of the upper level above t cost nothing, so t is the mean of the others.
    This is Newton's method for an increasing piecewise linear function of t, kept inside a bracket because it may
    cycle; working with differences from t preserves the digits of scores far from zero.
    """
    lower = level == low - 1
    upper = level == high
    between = (level >= low) & (level < high)
    ours = lower | upper | between
    mass = tl.sum(tl.where(ours, weight, 0.0), axis=0)
    left = tl.min(tl.where(ours, y, float("inf")), axis=0)
    right = tl.max(tl.where(ours, y, float("-inf")), axis=0)
    small = 1e-15 * tl.maximum(tl.abs(left), tl.abs(right))
    t = left + tl.sum(tl.where(ours, weight * (y - left), 0.0), axis=0) / mass
    steps = 0
    while steps < 100:
        active = between | (lower & (y > t)) | (upper & (y < t))
        mass = tl.sum(tl.where(active, weight, 0.0), axis=0)
        step = tl.sum(tl.where(active, weight * (y - t), 0.0), axis=0) / tl.maximum(mass, 1e-300)
        left = tl.where(step > 0, t, left)
        right = tl.where(step < 0, t, right)
        new = t + step
        new = tl.where((new > left) & (new < right), new, 0.5 * (left + right))
        done = tl.abs(step) <= small
        t = tl.where(done, t + step, new)
        steps = tl.where(done, 100, steps + 1)
    return t


@jit
def _log_softmax(theta, weight, there):
    """``θ − log Σ w e^θ`` over the rows of a list."""
    moved = theta - tl.max(tl.where(there, theta, float("-inf")), axis=0)
    total = tl.sum(tl.where(there, weight * tl.exp(tl.where(there, moved, 0.0)), 0.0), axis=0)
    return tl.where(there, moved - tl.log(total), 0.0)


@jit
def _retarget_lists(  # type: ignore[no-untyped-def]
    scores,
    rows,
    levels,
    offsets,
    weights,
    pooling,
    factors,
    constants,
    lists,
    bounds,
    slopes,
    values,
    L: tl.constexpr,
    SQUARED: tl.constexpr,
):
    number = tl.load(lists + tl.program_id(0))
    first = tl.load(bounds + number)
    lane = tl.arange(0, L)
    there = lane < tl.load(bounds + number + 1) - first
    at = first + lane
    row = tl.load(rows + at, mask=there, other=0)
    theta = tl.load(scores + row, mask=there, other=0.0)
    level = tl.load(levels + at, mask=there, other=-2)
    offset = tl.load(offsets + at, mask=there, other=0.0)
    weight = tl.load(weights + at, mask=there, other=0.0)
    pool = tl.load(pooling + at, mask=there, other=0.0)
    factor = tl.load(factors + number)
    target_penalty = tl.load(constants)
    score_penalty = tl.load(constants + 1)
    y = (theta - offset) / (1.0 + target_penalty)
    top_level = tl.max(level, axis=0)
    # stack of pooled thresholds: the index of the first threshold of a pool, and the pooled value
    begins = tl.zeros([L], tl.int32)
    heights = tl.zeros([L], tl.float64)
    count = tl.sum(begins, axis=0)  # 0, with the type of sums
    a = count + 1
    while a <= top_level:
        begin = a
        t = _threshold(y, pool, level, begin, a)
        before = tl.sum(tl.where(lane == count - 1, heights, 0.0), axis=0)
        falls = (count > 0) & (before > t)
        while falls:
            begin = tl.sum(tl.where(lane == count - 1, begins, 0), axis=0)
            count -= 1
            t = _threshold(y, pool, level, begin, a)
            before = tl.sum(tl.where(lane == count - 1, heights, 0.0), axis=0)
            falls = (count > 0) & (before > t)
        begins = tl.where(lane == count, begin, begins)
        heights = tl.where(lane == count, t, heights)
        count += 1
        a += 1
    floor = tl.full([L], float("-inf"), tl.float64)
    ceiling = tl.full([L], float("inf"), tl.float64)
    b = count * 0
    while b < count:
        begin = tl.sum(tl.where(lane == b, begins, 0), axis=0)
        t = tl.sum(tl.where(lane == b, heights, 0.0), axis=0)
        floor = tl.where(level >= begin, t, floor)
        ceiling = tl.where((level + 1 >= begin) & (level < top_level), t, ceiling)
        b += 1
    fitted = tl.minimum(tl.maximum(y, floor), ceiling)
    if SQUARED:
        distance = tl.where(there, y - fitted, 0.0)
        slope = factor * weight * distance
        value = 0.5 * tl.sum(slope * distance, axis=0)
    else:
        log_p = _log_softmax(theta, weight, there)
        log_r = _log_softmax(offset + fitted, weight, there)
        log_q = _log_softmax(offset, weight, there)
        r = tl.exp(log_r)
        cost = weight * (log_r - log_p) + target_penalty * weight * (log_r - log_q)
        count_of = tl.where(
            there, tl.maximum(weight, 1.0), 0.0
        )  # smaller values would violate the bound of Lemma 8
        mean = tl.sum(count_of * theta, axis=0) / tl.sum(count_of, axis=0)
        pull = score_penalty * count_of * (theta - mean)
        value = factor * tl.sum(tl.where(there, r * cost + 0.5 * pull * (theta - mean), 0.0), axis=0)
        slope = factor * (weight * (tl.exp(log_p) - r) + pull)
    tl.store(slopes + row, slope, mask=there)
    tl.store(values + number, value)


class DeviceLogisticPush:
    """:class:`~apexrank.objectives.push.Push` of a tensor of scores, with the logistic loss and a power price."""

    def __init__(self, objective: Push, device: Any) -> None:
        import torch

        self.p, self.device = objective.price.order, device

        def put(rows: Any) -> tuple[Tensor, Tensor | None]:
            where = torch.from_numpy(rows.rows).to(device)
            plain = not rows.log_weight.any()
            return where, None if plain else torch.from_numpy(np.exp(rows.log_weight)).to(device)

        self.sides = [
            (factor, side.sign, *put(side.outer), *put(side.inner)) for factor, side in objective._sides
        ]

    @staticmethod
    def takes(objective: Objective) -> bool:
        return (
            isinstance(objective, Push)
            and objective.n_groups == 1
            and type(objective.loss) is Logistic
            and isinstance(objective.price, Power | Identity)
        )

    def value_and_grad(self, scores: Tensor) -> tuple[Tensor, Tensor] | None:
        """Value and gradient as tensors; None if scores are infinite or span too many panels."""
        import torch

        low, high = (float(end) for end in torch.aminmax(scores))
        if not (high - low < MOST_PANELS - 1 and max(-low, high) < 2**31):
            return None
        lowest, highest = math.floor(low), math.floor(high)
        value, slope = scores.new_zeros(()), torch.zeros_like(scores)
        for factor, sign, outer, v, inner, u in self.sides:
            x, t = scores[inner], scores[outer]
            r, pull = self._sums(x, u, t, sign, lowest, highest)
            top = r.max()  # heights are positive, so powers of ratios to the maximum are at most 1
            power = (r / top) ** self.p
            norm = top * (power if v is None else v * power).sum() ** (1 / self.p)
            mass = (r / norm) ** (self.p - 1)
            mass = mass if v is None else v * mass
            push = self._sums(t, mass, x, -sign, lowest, highest)[1]
            value += factor * norm
            slope[outer] += factor * sign * mass * pull
            slope[inner] -= factor * sign * (push if u is None else u * push)
        return value, slope

    def _sums(
        self, x: Tensor, weight: Tensor | None, t: Tensor, sign: float, lowest: int, highest: int
    ) -> tuple[Tensor, Tensor]:
        """``Σ_i w_i softplus(±(t_k − x_i))`` and the same with the sigmoid, for each t."""
        if sign < 0:  # panels of −s; they differ from those of s if a score is a whole number
            lowest, highest = -highest - 1, -lowest
        panels = highest - lowest + 1
        series = (
            _between_panels(panels, self.device) @ panel_moments(x, weight, sign, lowest, panels).flatten()
        )
        return panel_series(t, sign, lowest, series.reshape(2, panels, NODES))


@lru_cache(maxsize=8)
def _between_panels(panels: int, device: Any) -> Tensor:
    """Matrix that maps the moments of all panels to the coefficients of softplus and sigmoid on all panels."""
    import torch

    table = chebyshev_between(np.arange(-panels + 1, panels))
    number = np.arange(panels)
    blocks = table[:, number[:, None] - number[None, :] + panels - 1]  # kind, target, source, k, l
    return torch.from_numpy(
        blocks.transpose(0, 1, 3, 2, 4).reshape(2 * panels * NODES, panels * NODES).copy()
    ).to(device)


def panel_moments(x: Tensor, weight: Tensor | None, sign: float, lowest: int, panels: int) -> Tensor:
    """``Σ w T_l(ξ)`` over the points ``±x`` of each panel, of shape (panels, NODES)."""
    programs = min(MOST_PROGRAMS, max(1, -(-len(x) // TILE)))
    partial = x.new_zeros((programs, panels, MOMENTS))
    _sum_moments[(programs,)](
        x,
        x if weight is None else weight,
        partial,
        len(x),
        int(sign),
        lowest,
        panels,
        TILE=TILE,
        MOMENTS=MOMENTS,
        NODES=NODES,
        WEIGHTED=weight is not None,
        num_warps=4,
    )
    return partial.sum(0)[:, :NODES]


def panel_series(t: Tensor, sign: float, lowest: int, series: Tensor) -> tuple[Tensor, Tensor]:
    """Evaluate both series of its panel at each point ``±t``."""
    value, slope = t.new_empty(len(t)), t.new_empty(len(t))
    if len(t):
        _evaluate_series[(-(-len(t) // TILE),)](
            t,
            series,
            value,
            slope,
            len(t),
            int(sign),
            lowest,
            series.shape[1],
            TILE=TILE,
            NODES=NODES,
            num_warps=4,
        )
    return value, slope


@jit
def _sum_moments(  # type: ignore[no-untyped-def]
    x,
    weights,
    partial,
    n,
    sign,
    lowest,
    panels,
    TILE: tl.constexpr,
    MOMENTS: tl.constexpr,
    NODES: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    program = tl.program_id(0)
    degree = tl.arange(0, MOMENTS)
    for tile in range(program, tl.cdiv(n, TILE), tl.num_programs(0)):
        at = tl.arange(0, TILE).to(tl.int64) + tile * TILE
        there = at < n
        point = sign * tl.load(x + at, mask=there, other=0.0) - lowest
        panel = tl.floor(point)
        xi = 2.0 * (point - panel) - 1.0
        weight = tl.zeros([TILE], tl.float64) + 1.0
        if WEIGHTED:
            weight = tl.load(weights + at, mask=there, other=0.0)
        first = tl.min(tl.where(there, panel, 1e9), axis=0).to(tl.int32)
        last = tl.max(tl.where(there, panel, -1e9), axis=0).to(tl.int32)
        for p in range(first, last + 1):
            before = tl.where(there & (panel == p), weight, 0.0)
            now = before * xi
            sums = tl.where(degree == 0, tl.sum(before, axis=0), 0.0)
            sums += tl.where(degree == 1, tl.sum(now, axis=0), 0.0)
            for number in tl.static_range(2, NODES):
                new = 2.0 * xi * now - before
                before = now
                now = new
                sums += tl.where(degree == number, tl.sum(now, axis=0), 0.0)
            place = partial + (program * panels + p) * MOMENTS + degree
            tl.store(place, tl.load(place) + sums)
            tl.debug_barrier()


@jit
def _evaluate_series(  # type: ignore[no-untyped-def]
    t, series, value, slope, n, sign, lowest, panels, TILE: tl.constexpr, NODES: tl.constexpr
):
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    there = at < n
    point = sign * tl.load(t + at, mask=there, other=0.0) - lowest
    panel = tl.floor(point)
    xi = 2.0 * (point - panel) - 1.0
    # Clenshaw's recurrence for both series
    place = series + tl.where(there, panel, 0.0).to(tl.int32) * NODES
    other = place + panels * NODES
    one = tl.zeros([TILE], tl.float64)
    two = tl.zeros([TILE], tl.float64)
    own = tl.zeros([TILE], tl.float64)
    own_two = tl.zeros([TILE], tl.float64)
    for number in tl.static_range(1, NODES):
        new = 2.0 * xi * one - two + tl.load(place + (NODES - number))
        two = one
        one = new
        new = 2.0 * xi * own - own_two + tl.load(other + (NODES - number))
        own_two = own
        own = new
    tl.store(value + at, xi * one - two + tl.load(place), mask=there)
    tl.store(slope + at, xi * own - own_two + tl.load(other), mask=there)
