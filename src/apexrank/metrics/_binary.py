"""Binary labels and scores, checked and sorted once: the start of every measure of the top of the list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.groups import Segments, segment

Ties = Literal["pessimistic", "average", "optimistic"]
Empty = Literal["skip", "zero", "one", "raise"]


def check_choice(name: str, value: str, choices: Any) -> None:
    """Refuse a ``value`` that is none of the ``Literal`` type ``choices``."""
    if value not in get_args(choices):
        raise InputError(f"unknown {name} {value!r}: use one of {', '.join(get_args(choices))}")


def check_number(name: str, value: float, low: float, high: float) -> float:
    """Refuse a number that is not in the closed interval from ``low`` to ``high``."""
    if not low <= value <= high:
        raise InputError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
    return float(value)


class Binary(NamedTuple):
    """Checked input: which rows are positive, their scores, weights and groups."""

    positive: np.ndarray
    scores: np.ndarray
    weight: np.ndarray
    groups: Segments

    def mirrored(self) -> Binary:
        """The list turned upside down with the classes exchanged, so that its bottom becomes the top."""
        return self._replace(positive=~self.positive, scores=-self.scores)


def check_binary(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Binary:
    """Check what the user passed; every fault is an `InputError` of one line."""
    positive = _positives(np.asarray(y_true), pos_label)
    n = len(positive)
    weight = np.ones(n) if sample_weight is None else _column("sample_weight", sample_weight, n)
    if (weight < 0).any() or np.isinf(weight).any():
        raise InputError(
            "sample_weight has a negative or infinite weight: weights are numbers of repetitions"
        )
    return Binary(positive, _column("scores", scores, n), weight, segment(groups, n))


def _positives(labels: np.ndarray, pos_label: Any) -> np.ndarray:
    if labels.ndim != 1 or not len(labels):
        raise InputError(f"y_true needs one label per row and at least one row, got shape {labels.shape}")
    values = _distinct(labels)
    if len(values) > 2:
        raise InputError(
            f"y_true has {len(values)} distinct labels: make it binary, e.g. y_true == {values[-1]!r}"
        )
    if pos_label is None:
        if len(values) < 2:
            raise InputError(
                f"y_true has a single class, {values[0]!r}: give positives and negatives, or set pos_label"
            )
        pos_label = values[1]
    elif len(values) == 2 and pos_label not in values:
        raise InputError(
            f"pos_label={pos_label!r} is not in y_true: its labels are {values[0]!r}, {values[1]!r}"
        )
    return labels == pos_label


def _distinct(labels: np.ndarray) -> list:
    """Sorted distinct labels; a missing one differs from itself or compares with nothing."""
    try:
        if labels.dtype.kind in "fO" and (labels != labels).any():
            raise TypeError
        return np.unique(labels).tolist()
    except TypeError:
        raise InputError("y_true has missing or mixed labels: fill or drop those rows") from None


def _column(name: str, values: ArrayLike, n: int) -> np.ndarray:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, one for each of the {n} rows of y_true") from None
    if column.shape != (n,):
        raise InputError(
            f"{name} needs one number for each of the {n} rows of y_true, got shape {column.shape}"
        )
    if np.isnan(column).any():
        raise InputError(f"{name} is NaN in row {int(np.isnan(column).argmax())}: fill or drop it")
    return column


class Levels(NamedTuple):
    """Tied rows merged. A level is one score of one group; levels run by group, the largest score first.

    ``positive`` and ``negative`` hold the weight of each class in a level, ``of_row`` the level of each row;
    group ``q`` owns the levels from ``indptr[q]`` up to ``indptr[q + 1]``.
    """

    positive: np.ndarray
    negative: np.ndarray
    score: np.ndarray
    of_row: np.ndarray
    indptr: np.ndarray
    names: np.ndarray

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of one value per level over each group."""
        return np.add.reduceat(values, self.indptr[:-1])

    def spread(self, values: np.ndarray) -> np.ndarray:
        """One value per group, repeated for each of its levels."""
        return np.repeat(values, np.diff(self.indptr))

    def above(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums over the levels of the group strictly above, and at or above, each level."""
        total = np.concatenate([[0.0], np.cumsum(values)])
        start = self.spread(total[self.indptr[:-1]])
        return total[:-1] - start, total[1:] - start

    def below(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums over the levels of the group strictly below, and at or below, each level."""
        # Summed upwards, not taken as "all minus above", so that rounding never makes a zero nonzero.
        total = np.concatenate([[0.0], np.cumsum(values[::-1])])[::-1]
        end = self.spread(total[self.indptr[1:]])
        return total[1:] - end, total[:-1] - end

    def heights(self) -> np.ndarray:
        """Weight of the positives below each level, a tie counted half."""
        strictly, inclusive = self.below(self.positive)
        return (strictly + inclusive) / 2

    def reverse_heights(self) -> np.ndarray:
        """Weight of the negatives above each level, a tie counted half."""
        strictly, inclusive = self.above(self.negative)
        return (strictly + inclusive) / 2

    def has_both(self) -> np.ndarray:
        """Groups with a positive and a negative row."""
        return self.has_positive() & (self.sums(self.negative) > 0)

    def has_positive(self) -> np.ndarray:
        """Groups with a positive row."""
        return self.sums(self.positive) > 0


def sort_levels(data: Binary, ties: Ties = "average", margin: float = 0.0) -> Levels:
    """Sort once and merge ties; a margin θ lifts every negative, as ``f_i - g_k <= θ`` is ``f_i <= g_k + θ``."""
    check_choice("ties", ties, Ties)
    if not np.isfinite(margin):
        raise InputError(f"margin must be a finite number, got {margin!r}")
    keys = np.where(data.positive, data.scores, data.scores + margin)
    group = data.groups.of_rows()
    order = np.argsort(-keys) if len(data.groups) == 1 else np.lexsort((-keys, group))
    keys, group = keys[order], group[order]
    first = np.concatenate([[True], (keys[1:] != keys[:-1]) | (group[1:] != group[:-1])])
    starts = np.flatnonzero(first)
    weight, positive = data.weight[order], data.positive[order]
    of_row = np.empty(len(order), dtype=np.intp)
    of_row[order] = np.cumsum(first) - 1
    merged = Levels(
        positive=np.add.reduceat(weight * positive, starts),
        negative=np.add.reduceat(weight * ~positive, starts),
        score=keys[starts],
        of_row=of_row,
        indptr=np.searchsorted(group[starts], np.arange(len(data.groups) + 1)),
        names=data.groups.names,
    )
    return merged if ties == "average" else _split(merged, data.positive, ties == "optimistic")


def _split(levels: Levels, positive: np.ndarray, positives_first: bool) -> Levels:
    """Break every tie between the classes one way by giving each class a level of its own."""
    zero = np.zeros_like(levels.positive)
    pairs = [(levels.positive, zero), (zero, levels.negative)]
    pairs = pairs if positives_first else pairs[::-1]
    return levels._replace(
        positive=np.column_stack([pair[0] for pair in pairs]).ravel(),
        negative=np.column_stack([pair[1] for pair in pairs]).ravel(),
        score=np.repeat(levels.score, 2),
        of_row=2 * levels.of_row + (positive != positives_first),
        indptr=2 * levels.indptr,
    )


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Quotient, and 0 where there is nothing to divide by."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0)


_PLAIN = {"zero": 0.0, "one": 1.0}


def fill_empty(
    values: np.ndarray,
    defined: np.ndarray,
    empty: Empty,
    names: np.ndarray,
    fills: Mapping[str, float] = _PLAIN,
) -> np.ndarray:
    """Values of the groups that take part in the mean, by the rule ``empty`` for groups that have none."""
    check_choice("empty", empty, Empty)
    if empty in fills:
        return np.where(defined, values, fills[empty])
    if not defined.any():
        whose = "y_true" if len(names) == 1 else "every group"
        raise InputError(
            f"the measure is not defined: {whose} lacks positive or negative rows of nonzero weight"
        )
    if empty == "raise" and not defined.all():
        first = names[~defined].tolist()[0]
        raise InputError(
            f"{np.sum(~defined)} of {len(names)} groups lack positive or negative rows, first {first!r}: "
            "drop them or set empty='skip'"
        )
    return values[defined]


def mean_over_groups(levels: Levels, values: np.ndarray, defined: np.ndarray, empty: Empty) -> float:
    """Mean of the measure over the groups."""
    return float(np.mean(fill_empty(values, defined, empty, levels.names)))
