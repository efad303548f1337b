"""Ranked lists, sorted once and shared by all measures.

`ScoredRows` provides two forms: `Levels` of tied rows for counts of two classes, and `GradedLists` of single rows.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp

from apexrank.errors import InputError
from apexrank.kernels.pav import running_sums
from apexrank.validation import Segments, check_choice

Ties = Literal["pessimistic", "average", "optimistic", "given"]
Empty = Literal["skip", "zero", "one", "raise"]

MOST_ROWS = 2e8
FILLS = {"zero": 0.0, "one": 1.0}  # values assigned to groups without one


@dataclass(frozen=True)
class Levels:
    """Levels of tied rows: one score of one group each, sorted by group, largest score first.

    ``positive`` and ``negative`` hold the weight of each class in a level; group ``q`` has the levels from
    ``indptr[q]`` up to ``indptr[q + 1]``. A score of minus infinity marks rows that are not on the list.
    """

    positive: np.ndarray
    negative: np.ndarray
    score: np.ndarray
    indptr: np.ndarray

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of one value per level over each group."""
        return np.add.reduceat(values, self.indptr[:-1])

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Repeat one value per group for each of its levels."""
        return np.repeat(values, np.diff(self.indptr))

    def above(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums over the levels of the group strictly above, and at or above, each level."""
        return running_sums(values, self.indptr)

    @cached_property
    def rows_above(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the group strictly above, and at or above, each level."""
        return self.above(self.positive + self.negative)

    @cached_property
    def positives_above(self) -> tuple[np.ndarray, np.ndarray]:
        """Positives of the group strictly above, and at or above, each level."""
        return self.above(self.positive)

    @cached_property
    def heights(self) -> np.ndarray:
        """Weight of the positives below each level, with ties counted half."""
        # Summed upwards instead of "all minus above", so that rounding never makes a zero nonzero.
        upwards = (self.indptr[-1] - self.indptr)[::-1]
        strictly, inclusive = running_sums(self.positive[::-1], upwards)
        return (strictly[::-1] + inclusive[::-1]) / 2

    @cached_property
    def reverse_heights(self) -> np.ndarray:
        """Weight of the negatives above each level, with ties counted half."""
        strictly, inclusive = self.above(self.negative)
        return (strictly + inclusive) / 2

    @cached_property
    def ranks(self) -> np.ndarray:
        """Rank of the positives of each level, the worst one for ties."""
        return self.reverse_heights + self.positives_above[1]

    @cached_property
    def total_positive(self) -> np.ndarray:
        """Weight of the positives of each group."""
        return self.sums(self.positive)

    @cached_property
    def total_negative(self) -> np.ndarray:
        """Weight of the negatives of each group."""
        return self.sums(self.negative)

    @property
    def has_both(self) -> np.ndarray:
        """Mask of the groups with positives and negatives."""
        return (self.total_positive > 0) & (self.total_negative > 0)

    def split(self, positives_first: bool) -> Levels:
        """Break every tie between the classes in one direction, by giving each class its own level."""
        zero = np.zeros_like(self.positive)
        pairs = [(self.positive, zero), (zero, self.negative)]
        pairs = pairs if positives_first else pairs[::-1]
        return Levels(
            positive=np.column_stack([pair[0] for pair in pairs]).ravel(),
            negative=np.column_stack([pair[1] for pair in pairs]).ravel(),
            score=np.repeat(self.score, 2),
            indptr=2 * self.indptr,
        )


@dataclass(frozen=True)
class GradedLists:
    """Grades of the rows of every list from top to bottom; ``rows`` are their row numbers.

    ``starts`` are the rows where a new level of tied rows begins, ``listed`` marks the rows that have a rank, unlike
    those that are not on the list; list ``q`` has the rows from ``indptr[q]`` up to ``indptr[q + 1]``.
    """

    rows: np.ndarray
    relevance: np.ndarray
    listed: np.ndarray
    starts: np.ndarray
    indptr: np.ndarray

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.diff(self.indptr)

    @cached_property
    def of_rows(self) -> np.ndarray:
        """List number of each row."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def ranks(self) -> np.ndarray:
        """Rank of each row, 1 at the top of every list."""
        return np.arange(len(self.relevance)) - np.repeat(self.indptr[:-1], self.sizes) + 1

    @cached_property
    def ideal(self) -> np.ndarray:
        """Grades of every list in the best order."""
        return self.relevance[np.lexsort((-self.relevance, self.of_rows))]

    @cached_property
    def highest(self) -> np.ndarray:
        """Highest grade of each list."""
        highest = np.zeros(len(self.sizes))
        filled = self.sizes > 0
        highest[filled] = self.ideal[self.indptr[:-1][filled]]
        return highest

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum over the rows of each list."""
        return np.bincount(self.of_rows, values, minlength=len(self.sizes)).astype(np.float64)

    def before(self, values: np.ndarray) -> np.ndarray:
        """Sum over the rows above each row in its list."""
        return running_sums(values, self.indptr)[0]

    def mean_of_ties(self, values: np.ndarray) -> np.ndarray:
        """Replace each value by the mean over the rows tied with it."""
        if len(self.starts) == len(values):
            return values
        counts = np.diff(np.append(self.starts, len(values)))
        return np.repeat(np.add.reduceat(values, self.starts) / counts, counts)

    def sorted_ties(self, best_first: bool) -> np.ndarray:
        """Return the grades with every tie broken in one direction."""
        if len(self.starts) == len(self.relevance):
            return self.relevance
        counts = np.diff(np.append(self.starts, len(self.relevance)))
        level = np.repeat(np.arange(len(counts)), counts)
        sign = -1 if best_first else 1
        return self.relevance[np.lexsort((sign * self.relevance, level))]


def spread_out(times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the segment of each row, its position in it (from 0), and the starts of segments of given lengths."""
    starts = np.cumsum(times) - times
    which = np.repeat(np.arange(len(times)), times)
    return which, np.arange(len(which)) - starts[which], starts


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide, with 0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0)


class Values(NamedTuple):
    """Value of a measure for each group, and whether it is defined."""

    value: np.ndarray
    defined: np.ndarray


class LogValues(Values):
    """Logarithms of values; the mean over the groups is taken before the logarithm."""


@dataclass(eq=False)
class ScoredRows:
    """Validated rows of one or many lists.

    ``positive`` marks the relevant rows, ``grades`` holds their relevance if the labels are numbers; ``weight`` is None
    if every row counts once; ``grouped`` tells whether groups were given; ``sample`` holds the rows from which a
    bootstrap drew these, None for original rows.
    """

    positive: np.ndarray
    scores: np.ndarray
    groups: Segments
    weight: np.ndarray | None = None
    grades: np.ndarray | None = None
    grouped: bool = False
    sample: ScoredRows | None = None

    def __len__(self) -> int:
        return len(self.positive)

    @property
    def relevance(self) -> np.ndarray:
        """Grade of each row; 0 and 1 if the labels are not numbers."""
        return self.positive.astype(np.float64) if self.grades is None else self.grades

    def mirrored(self) -> ScoredRows:
        """Reverse the list and swap the classes, so that its bottom becomes the top."""
        # reverse the rows as well, for ties in input order
        order = np.argsort(self.groups.of_rows()[::-1], kind="stable")
        groups = Segments(order, self.groups.indptr, self.groups.names)
        weight = None if self.weight is None else self.weight[::-1]
        return ScoredRows(~self.positive[::-1], -self.scores[::-1], groups, weight)

    def lifted(self, margin: float) -> ScoredRows:
        """Raise every negative by a margin θ, as ``f_i - g_k <= θ`` is ``f_i <= g_k + θ``."""
        if not np.isfinite(margin):
            raise InputError(f"`margin` must be a finite number, got {margin!r}")
        if margin == 0:
            return self
        keys = np.where(self.positive, self.scores, self.scores + margin)
        return ScoredRows(self.positive, keys, self.groups, self.weight)

    def drawn(self, weight: np.ndarray | None) -> Self:
        """Return a bootstrap sample: the same rows, sorted once for all samples, repeated as often as drawn."""
        _ = self._sorted
        other = copy(self)
        other.weight, other.sample = weight, self
        for stale in ("_merged", "lists", "present"):
            other.__dict__.pop(stale, None)
        return other

    @cached_property
    def present(self) -> np.ndarray:
        """Mask of the groups with a row of nonzero weight; all groups if there is no such row."""
        if self.weight is None or not self.weight.any():
            return np.ones(len(self.groups), dtype=bool)
        return np.add.reduceat(self.weight[self.groups.order], self.groups.indptr[:-1]) > 0

    def counted_values(self, values: Values, empty: Empty) -> np.ndarray:
        """Return the values of the groups in a mean, with the rule ``empty`` for groups without a value."""
        check_choice("empty", empty, Empty)
        value, defined, names = (column[self.present] for column in (*values, self.groups.names))
        if empty in FILLS:
            with np.errstate(divide="ignore"):
                fill = np.log(FILLS[empty]) if isinstance(values, LogValues) else FILLS[empty]
            return np.where(defined, value, fill)
        if not defined.any():
            whose = "y_true" if len(names) == 1 else "every group"
            raise InputError(
                f"the measure is not defined: {whose} lacks positive rows of nonzero weight, or negative ones (for "
                "kendall_tau: scores that differ) where the measure compares the two"
            )
        if empty == "raise" and not defined.all():
            first = names[~defined].tolist()[0]
            raise InputError(
                f"{np.sum(~defined)} of {len(names)} groups lack positive rows (or negative ones to compare with), "
                f"first {first!r}: drop them or set `empty='skip'`"
            )
        return value[defined]

    def mean(self, values: Values, empty: Empty) -> float:
        """Mean of a measure over the groups."""
        counted = self.counted_values(values, empty)
        if isinstance(values, LogValues):
            return float(logsumexp(counted) - np.log(len(counted)))
        return float(np.mean(counted))

    def repetitions(self, otherwise: str = "") -> np.ndarray | None:
        """Return weights as repetition counts, None if every row counts once; raise InputError for other weights."""
        weight = self.weight
        if weight is None:
            return None
        if (weight != np.floor(weight)).any():
            raise InputError(
                "`sample_weight` must be whole numbers for this measure: they repeat rows, and a rank is a whole number"
                + (f"; {otherwise}" if otherwise else "")
            )
        if weight.sum() > MOST_ROWS:
            raise InputError(
                f"`sample_weight` repeats the rows to {weight.sum():.3g} of them, too many for this measure: "
                "divide the weights"
            )
        return weight.astype(np.int64)

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        """Return row numbers by group, largest score first, and the starts of new scores or groups."""
        if len(self.groups) == 1:
            order = np.argsort(-self.scores, kind="stable")
            group = np.zeros(len(self), dtype=np.intp)
        else:
            of_row = self.groups.of_rows()
            order = np.lexsort((-self.scores, of_row))
            group = of_row[order]
        keys = self.scores[order]
        return order, _changes(keys) | _changes(group)

    def levels(self, ties: Ties = "average") -> Levels:
        """Return the weights of the classes in each level, one score of one group, largest first."""
        check_choice("ties", ties, Ties)
        if ties == "given":
            return self._make_levels(np.ones(len(self), dtype=bool))
        return self._merged.split(ties == "optimistic") if self._breaks(ties) else self._merged

    @cached_property
    def _merged(self) -> Levels:
        if len(self.groups) > 1 or self.weight is not None or "_sorted" in self.__dict__:
            return self._make_levels(self._sorted[1])
        # One list: sorting the classes separately and merging takes half the time of sorting row numbers.
        upper, lower = np.sort(self.scores[self.positive]), np.sort(self.scores[~self.positive])
        keys = np.concatenate([upper, lower])
        order = np.argsort(keys, kind="stable")[::-1]  # merges two sorted runs in linear time
        keys, positive = keys[order], (order < len(upper)).astype(np.float64)
        starts = np.flatnonzero(_changes(keys))
        if len(starts) == len(keys):
            return Levels(positive, 1 - positive, keys, np.array([0, len(keys)]))
        return Levels(
            positive=np.add.reduceat(positive, starts),
            negative=np.add.reduceat(1 - positive, starts),
            score=keys[starts],
            indptr=np.array([0, len(starts)]),
        )

    def _make_levels(self, first: np.ndarray) -> Levels:
        order = self._sorted[0]
        starts = np.flatnonzero(first)
        positive = self.positive[order]
        weight = np.ones(len(order)) if self.weight is None else self.weight[order]
        return Levels(
            positive=np.add.reduceat(weight * positive, starts),
            negative=np.add.reduceat(weight * ~positive, starts),
            score=self.scores[order[starts]],
            indptr=np.searchsorted(starts, self.groups.indptr),
        )

    def level_of_rows(self, ties: Ties) -> np.ndarray:
        """Level number of each row."""
        order, first = self._sorted
        number = np.empty(len(order), dtype=np.intp)
        number[order] = np.arange(len(order)) if ties == "given" else np.cumsum(first) - 1
        if ties == "given" or not self._breaks(ties):
            return number
        return 2 * number + (self.positive != (ties == "optimistic"))

    def _breaks(self, ties: Ties) -> bool:
        """Return whether ties between the classes must be broken; for a draw, whether the original sample has any."""
        merged = self._merged if self.sample is None else self.sample._merged
        return ties != "average" and bool((merged.positive * merged.negative).any())

    @cached_property
    def lists(self) -> GradedLists:
        """All lists from top to bottom, with the grades of their rows."""
        rows, sizes = self._sorted[0], np.diff(self.groups.indptr)
        group = np.repeat(np.arange(len(sizes)), sizes)
        if (times := self.repetitions()) is not None:
            rows, group = np.repeat(rows, times[rows]), np.repeat(group, times[rows])
        scores = self.scores[rows]
        return GradedLists(
            rows=rows,
            relevance=self.relevance[rows],
            listed=scores > -np.inf,
            starts=np.flatnonzero(_changes(scores) | _changes(group)),
            indptr=np.searchsorted(group, np.arange(len(sizes) + 1)),
        )


def _changes(values: np.ndarray) -> np.ndarray:
    """Return a mask of the values that differ from the previous one, including the first."""
    change = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=change[1:])
    return change
