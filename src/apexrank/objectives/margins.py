"""Relevance levels within groups: their rows, the margins between them, and projection onto targets that keep these."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from apexrank.errors import InputError
from apexrank.kernels.pav import pav_blocks, sort_inside
from apexrank.objectives.base import HessianTerm, Objective
from apexrank.validation import segment

Offsets = str | ArrayLike | Callable[[np.ndarray], np.ndarray]

WIDEST = 300.0  # largest margin whose squared exponential is still a finite double
OFFSETS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda relevance: relevance.copy(),
    "gain": lambda relevance: np.exp2(relevance) - 1,
    "sqrt": lambda relevance: np.sign(relevance) * np.sqrt(np.abs(relevance)),
    "binary": lambda relevance: (relevance > 0).astype(float),
}


def level_offsets(relevance: np.ndarray, offsets: Offsets = "linear") -> np.ndarray:
    """Offset of the level of each row; the margin between two levels is the difference of their offsets.

    Margins must add up over levels (0 → 2 is 0 → 1 plus 1 → 2), so they are differences of offsets, and offsets must
    not decrease with relevance. Two levels with equal offsets are ordered without a margin.

    Parameters
    ----------
    relevance : array of float
        Relevance of each row.
    offsets : {"linear", "gain", "sqrt", "binary"}, array or callable
        ``r``, ``2^r − 1``, ``√r`` (with its sign) or ``1[r > 0]`` of the relevance r; an array holds the offsets of
        relevance 0, 1, 2, …; a callable takes the array of relevances.

    Examples
    --------
    >>> level_offsets(np.array([0.0, 1.0, 2.0]), "gain").tolist()
    [0.0, 1.0, 3.0]
    >>> level_offsets(np.array([2.0, 0.0, 1.0]), [0.0, 5.0, 6.0]).tolist()
    [6.0, 0.0, 5.0]
    """
    if isinstance(offsets, str):
        if offsets not in OFFSETS:
            raise InputError(
                f"unknown `offsets` {offsets!r}: use one of {', '.join(OFFSETS)}, an array or a function"
            )
        with np.errstate(over="ignore"):
            found = OFFSETS[offsets](relevance)
    elif callable(offsets):
        found = np.asarray(offsets(relevance), dtype=float)
    else:
        found = _by_number(relevance, offset_table(offsets))
    if found.shape != relevance.shape or not np.isfinite(found).all():
        raise InputError(
            "`offsets` must be one finite number for each relevance: use smaller grades or 'sqrt'"
        )
    order = np.argsort(relevance, kind="stable")
    rise, step = np.diff(found[order]), np.diff(relevance[order])
    if np.any(rise < 0) or np.any(rise[step == 0] != 0):
        raise InputError(
            "`offsets` must not fall where the relevance rises, and be equal for equal relevance"
        )
    return found


def offset_table(offsets: Any) -> np.ndarray:
    """Convert the offsets of relevance 0, 1, 2, … to an array of numbers."""
    try:
        return np.asarray(offsets, dtype=float)
    except (TypeError, ValueError):
        raise InputError(
            f"`offsets` must be one of {', '.join(OFFSETS)}, a list of numbers or a function, got {offsets!r}"
        ) from None


def _by_number(relevance: np.ndarray, table: np.ndarray) -> np.ndarray:
    if table.ndim != 1 or not len(table):
        raise InputError(
            "offsets as an array are the offsets of relevance 0, 1, 2, …: give a list of numbers"
        )
    number = relevance.astype(np.int64)
    if np.any(number != relevance) or number.min() < 0 or number.max() >= len(table):
        raise InputError(
            f"`offsets` has {len(table)} entries, for relevance 0 to {len(table) - 1}: "
            "the relevance has other values"
        )
    return table[number]


def checked_relevance(relevance: Any) -> np.ndarray:
    """Convert relevance to floats; raise InputError for missing, infinite or non-numeric values."""
    try:
        values = np.asarray(relevance, dtype=float)
    except (TypeError, ValueError):
        raise InputError("relevance must be numbers, larger is better") from None
    if values.ndim != 1:
        raise InputError(f"relevance needs one number per row, got shape {values.shape}")
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise InputError(f"relevance is missing or infinite in row {row}: fill or drop it")
    return values


class LevelOrder:
    """Rows sorted by group and relevance; list ``q`` is ``lists[q]:lists[q + 1]`` and consists of whole levels.

    Rows of weight 0 are dropped, and so are groups that are left with a single relevance: they have no order to learn.

    Attributes
    ----------
    rows : array
        Row numbers in this order.
    weight : array
        Weight of each of ``rows``, 1 by default.
    lists, levels : arrays
        Bounds of the lists and of the levels in ``rows``.
    group : array
        Index of the group of each list in :func:`apexrank.validation.segment`.
    """

    def __init__(self, relevance: np.ndarray, groups: Any = None, weight: np.ndarray | None = None) -> None:
        segments = segment(groups, len(relevance))
        group = segments.of_rows()
        rows = np.arange(len(relevance)) if weight is None else np.flatnonzero(weight > 0)
        rows = rows[np.lexsort((relevance[rows], group[rows]))]
        new_list = _changes(group[rows])
        new_level = new_list | _changes(relevance[rows])
        n_levels = np.bincount(group[rows], new_level, len(segments))
        kept = n_levels[group[rows]] > 1
        self.rows = rows[kept]
        self.lists = np.append(np.flatnonzero(new_list[kept]), len(self.rows))
        self.levels = np.append(np.flatnonzero(new_level[kept]), len(self.rows))
        self.group = group[self.rows[self.lists[:-1]]]
        self.n_groups = len(segments)
        self.weight = np.ones(len(self.rows)) if weight is None else weight[self.rows]

    def __len__(self) -> int:
        return len(self.lists) - 1

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum over each list."""
        return np.add.reduceat(values, self.lists[:-1])

    def spread(self, per_list: np.ndarray) -> np.ndarray:
        """Repeat a per-list value for each row of the list."""
        return np.repeat(per_list, np.diff(self.lists))

    def factors(self, normalize: bool, group_weight: ArrayLike | None) -> tuple[np.ndarray, float]:
        """Factor of each list, and the total weight of the lists: their number without ``group_weight`` (per row)."""
        factor = 1 / self.sums(self.weight) if normalize else np.ones(len(self))
        if group_weight is None:
            return factor, float(len(self))
        given = np.asarray(group_weight, dtype=float)[self.rows]
        own = given[self.lists[:-1]]
        if np.any(given != self.spread(own)):
            raise InputError("`group_weight` must be the same for all rows of a group")
        return factor * own, float(own.sum())

    def sort(self, values: np.ndarray) -> np.ndarray:
        """Positions that sort ``values`` within each level, lowest first."""
        return sort_inside(values, self.levels)

    def in_order_of_appearance(self) -> list[np.ndarray]:
        """Row numbers of each list in the original order, with lists ordered by their first row."""
        lists = [np.sort(self.rows[first:last]) for first, last in pairwise(self.lists)]
        return sorted(lists, key=lambda rows: int(rows[0]))

    def lists_in_levels(self) -> np.ndarray:
        """Bounds of the lists as indices of levels."""
        return np.searchsorted(self.levels, self.lists)


def _changes(values: np.ndarray) -> np.ndarray:
    """Mask of values that differ from their predecessor; True at the start."""
    return np.concatenate([np.ones(min(1, len(values)), bool), values[1:] != values[:-1]])


def counted_weights(
    sample_weight: ArrayLike | None, group_weight: ArrayLike | None, n: int
) -> np.ndarray | None:
    """Row weights, set to 0 in groups of weight 0."""
    weight = None if sample_weight is None else _per_row("sample_weight", sample_weight, n)
    if group_weight is None:
        return weight
    counted = _per_row("group_weight", group_weight, n) > 0
    return np.where(counted, 1.0 if weight is None else weight, 0.0)


def _per_row(name: str, weight: ArrayLike, n: int) -> np.ndarray:
    values = np.asarray(weight, dtype=float)
    if values.shape != (n,) or not np.isfinite(values).all() or values.min(initial=0.0) < 0:
        raise InputError(f"`{name}` needs one finite number >= 0 for each of the {n} rows")
    return values


class OrderedLists(Objective):
    """Base class of objectives that sum over lists of rows ordered by relevance.

    Parameters
    ----------
    relevance, groups, sample_weight, group_weight : arrays of shape (n,), all but the first optional
        As in :class:`~apexrank.objectives.retarget.Retarget`.
    normalize : bool
        Divide each list by its number of rows.
    nothing : str
        Error message if no list has rows of different relevance.

    Attributes
    ----------
    order : LevelOrder
        The lists.
    factor, group_total : array and float
        Factor of each list, and the total weight of all lists.
    """

    over_groups = "sum"

    def __init__(
        self,
        relevance: Any,
        groups: Any,
        sample_weight: Any,
        group_weight: Any,
        normalize: bool,
        nothing: str,
    ) -> None:
        self.relevance = checked_relevance(relevance)
        self.n = len(self.relevance)
        self.positive = np.zeros(self.n, dtype=bool)  # there is no positive class
        self.weight = counted_weights(sample_weight, group_weight, self.n)
        self.order = LevelOrder(self.relevance, groups, self.weight)
        self.n_groups = len(self.order)
        if not self.n_groups:
            raise InputError(f"{nothing} (n_samples = {self.n})")
        self.factor, self.group_total = self.order.factors(normalize, group_weight)

    @property
    def lists(self) -> Any:
        """Lists within which a design measures the spread of its columns."""
        return self.order

    @property
    def count(self) -> float:
        """Total weight of the informative groups: their number without ``group_weight``."""
        return self.group_total

    @property
    def curvature(self) -> float:
        """Natural unit of the curvature with respect to the scores: that of half the squared distance."""
        return float(self.factor @ self.order.sums(self.order.weight))

    def _by_row(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        by_row = np.zeros(self.n)
        by_row[rows] = values
        return by_row

    def _block_means(
        self, rows: np.ndarray, weight: np.ndarray, block: np.ndarray, held: np.ndarray | None = None
    ) -> list[HessianTerm]:
        """``diag(w) − w·wᵀ/|w|`` on each pooled block, 0 on rows that are not pooled, ``diag(w)`` on held ones."""
        held = np.zeros(len(rows), bool) if held is None else held
        size = np.bincount(block)
        own = np.where((size[block] > 1) & ~held, weight, 0.0)
        # rows alone in their block get no column: there may be as many as rows
        column = np.maximum(np.cumsum(size > 1) - 1, 0)[block]
        diagonal = self._by_row(rows, np.where(held, weight, own))
        return [(1.0, diagonal, *self._low_rank(rows, [(own, column, -1.0)]))]

    def _low_rank(
        self, rows: np.ndarray, parts: list[tuple[np.ndarray, np.ndarray, float]]
    ) -> tuple[Any, Any]:
        """U and S of ``Σ sign·u·uᵀ/|u|`` over parts (u, the column index of each row, sign)."""
        columns = [sparse.csr_array((u, (rows, k)), shape=(self.n, int(k[-1]) + 1)) for u, k, _ in parts]
        with np.errstate(divide="ignore"):
            scales = np.concatenate([sign / np.bincount(k, u) for u, k, sign in parts])
        S = sparse.diags_array(np.where(np.isfinite(scales), scales, 0.0))
        return sparse.hstack(columns, format="csr"), S


class Projection(NamedTuple):
    """Nearest targets to the scores, with everything sorted by list, level and (with hidden order) score."""

    rows: np.ndarray  # row numbers
    theta: np.ndarray  # their scores
    weight: np.ndarray
    target: np.ndarray  # in units of the scores
    block: np.ndarray  # index of the pooled block
    held: np.ndarray  # whether the target is at a bound


class Margins:
    """Feasible targets of each list, ``z_i − z_j ≥ o_i − o_j`` for i above j, and the projection onto them.

    Parameters
    ----------
    lists : LevelOrder
        The lists.
    offset : array
        Offsets o of ``lists.rows``; stored relative to the lowest level of each list.
    order : {"hidden", "blocks"}
        Whether rows of a level have separate targets ("hidden") or share one ("blocks").
    reward : float
        Reward per unit of gap between adjacent levels.
    exponential : bool
        Whether the cost of a row is ``e^o·D(θ − o ‖ z − o)``, as for divergences with an exponential link. PAV, which
        minimises ``Σ v_i·D(x_i ‖ y_i)`` for any divergence, then needs the weights e^o.
    bounds : (float, float)
        Lowest and highest target.
    """

    def __init__(
        self,
        lists: LevelOrder,
        offset: np.ndarray,
        order: str,
        reward: float,
        exponential: bool,
        bounds: tuple[float, float] = (-np.inf, np.inf),
    ) -> None:
        if order not in ("hidden", "blocks"):
            raise InputError(f"order must be 'hidden' or 'blocks', got {order!r}")
        self.lists, self.order = lists, order
        self.offset = offset - lists.spread(offset[lists.lists[:-1]])
        highest = self.offset[lists.lists[1:] - 1]
        if exponential and highest.max() > WIDEST:
            raise InputError(
                f"margins of {highest.max():.0f} are too wide for a divergence that takes their exponential: "
                "use a smaller margin, other offsets, or `divergence='squared'`"
            )
        low, high = bounds
        if low + highest.max() > high:
            raise InputError(
                f"`bounds` of {low:g} and {high:g} leave no room for margins of {highest.max():g}: "
                "widen them, or use a smaller margin"
            )
        self.low, self.high = low, lists.spread(high - highest)
        self.tilt = np.exp(self.offset - lists.spread(highest)) if exponential else np.ones(len(offset))
        self.reward = np.zeros(len(offset))
        starts, ends = lists.levels[:-1], lists.levels[1:]
        self.reward[starts[~np.isin(starts, lists.lists)]] += reward
        self.reward[ends[~np.isin(ends, lists.lists)] - 1] -= reward

    def project(self, scores: np.ndarray, target_penalty: float = 0.0) -> Projection:
        """Minimise ``D(z ‖ θ) + C·D(z ‖ o) − reward·gaps`` over the targets z, C the penalty.

        This takes one sort within the levels and one PAV of ``(θ + C·o)/(1 + C) − o`` (Lemma 9) plus the rewards.
        Targets minus their offsets are ordered, so a bound on the lowest or highest target bounds all of them. Clipping
        is then exact: the set of rows above a number b between the bounds depends only on the slopes of the costs at b.
        """
        lists = self.lists
        theta, weight, rows = scores[lists.rows], lists.weight, lists.rows
        if self.order == "hidden":
            order = lists.sort(theta)
            theta, weight, rows = theta[order], weight[order], rows[order]
        wanted = (theta - self.offset) / (1 + target_penalty)
        if self.order == "hidden":
            reward = self.reward / ((1 + target_penalty) * weight)
            fitted, block = pav_blocks(wanted + reward, lists.lists, weight * self.tilt)
        else:
            fitted, block = self._pool_levels(wanted, weight, target_penalty)
        held = (fitted < self.low) | (fitted > self.high)
        fitted = np.clip(fitted, self.low, self.high)
        return Projection(rows, theta, weight, self.offset + fitted, block, held)

    def _pool_levels(
        self, wanted: np.ndarray, weight: np.ndarray, target_penalty: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """PAV of the level means."""
        starts, sizes = self.lists.levels[:-1], np.diff(self.lists.levels)
        total = np.add.reduceat(weight, starts)
        nearby = wanted[starts]  # summing differences from a value of the level keeps the digits
        mean = nearby + np.add.reduceat(weight * (wanted - np.repeat(nearby, sizes)), starts) / total
        reward = np.add.reduceat(self.reward, starts) / ((1 + target_penalty) * total)
        fitted, block = pav_blocks(mean + reward, self.lists.lists_in_levels(), total * self.tilt[starts])
        return np.repeat(fitted, sizes), np.repeat(block, sizes)
