"""Ranked lists, sorted once for all measures.

`ScoredRows` gives them in two forms: `Levels` of tied rows for counts of two classes, and `GradedLists` of single rows.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
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
FILLS = {"zero": 0.0, "one": 1.0}  # values of groups that have none


@dataclass(frozen=True)
class Levels:
    """Tied rows merged. A level is one score of one group; levels run by group, the largest score first.

    ``positive`` and ``negative`` hold the weight of each class in a level; group ``q`` owns the levels from
    ``indptr[q]`` up to ``indptr[q + 1]``. A score of minus infinity stands for rows that were never put on the list.
    """

    positive: np.ndarray
    negative: np.ndarray
    score: np.ndarray
    indptr: np.ndarray

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of one value per level over each group."""
        return np.add.reduceat(values, self.indptr[:-1])

    def spread(self, values: np.ndarray) -> np.ndarray:
        """One value per group, repeated for each of its levels."""
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
        """Weight of the positives below each level, a tie counted half."""
        # Summed upwards, not taken as "all minus above", so that rounding never makes a zero nonzero.
        upwards = (self.indptr[-1] - self.indptr)[::-1]
        strictly, inclusive = running_sums(self.positive[::-1], upwards)
        return (strictly[::-1] + inclusive[::-1]) / 2

    @cached_property
    def reverse_heights(self) -> np.ndarray:
        """Weight of the negatives above each level, a tie counted half."""
        strictly, inclusive = self.above(self.negative)
        return (strictly + inclusive) / 2

    @cached_property
    def ranks(self) -> np.ndarray:
        """Rank of the positives of each level, the worst of tied ones."""
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
        """Groups with a positive and a negative row."""
        return (self.total_positive > 0) & (self.total_negative > 0)

    def split(self, positives_first: bool) -> Levels:
        """Break every tie between the classes one way by giving each class a level of its own."""
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
    """Grades of the rows of every list from top to bottom; ``rows`` are their numbers.

    ``starts`` are the rows where a new level of tied rows begins, ``listed`` tells the rows that have a rank from
    those that were never put on the list; list ``q`` owns the rows from ``indptr[q]`` up to ``indptr[q + 1]``.
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
        """Number of the list each row is in."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def ranks(self) -> np.ndarray:
        """1 at the top of every list."""
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
        """Sum over the rows of the list above each row."""
        return running_sums(values, self.indptr)[0]

    def mean_of_ties(self, values: np.ndarray) -> np.ndarray:
        """Each value replaced by the mean over the rows tied with it."""
        if len(self.starts) == len(values):
            return values
        counts = np.diff(np.append(self.starts, len(values)))
        return np.repeat(np.add.reduceat(values, self.starts) / counts, counts)

    def graded(self, grades: np.ndarray) -> GradedLists:
        """The same lists with other grades, one for each row as given."""
        return replace(self, relevance=grades[self.rows])

    def sorted_ties(self, best_first: bool) -> np.ndarray:
        """Grades with every tie broken one way."""
        if len(self.starts) == len(self.relevance):
            return self.relevance
        counts = np.diff(np.append(self.starts, len(self.relevance)))
        level = np.repeat(np.arange(len(counts)), counts)
        sign = -1 if best_first else 1
        return self.relevance[np.lexsort((sign * self.relevance, level))]


def spread_out(times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Segment of each row, its place in it (from 0) and the start of each segment, given their lengths."""
    starts = np.cumsum(times) - times
    which = np.repeat(np.arange(len(times)), times)
    return which, np.arange(len(which)) - starts[which], starts


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Quotient, and 0 where there is nothing to divide by."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0)


class Values(NamedTuple):
    """Value of a measure for each group, and whether it has one."""

    value: np.ndarray
    defined: np.ndarray


class LogValues(Values):
    """Logarithms of values: the mean over the groups is taken before the logarithm."""


@dataclass(eq=False)
class ScoredRows:
    """Checked rows of one or many lists.

    ``positive`` marks the relevant rows, ``grades`` holds their relevance where the labels are numbers; ``weight``
    is None when every row counts once; ``grouped`` says whether the user gave groups; ``sample`` holds the rows that
    these were drawn from by a bootstrap, None for rows that were not drawn. ``judged`` is False for rows that nobody
    judged, None if there are none; ``intents`` has the relevance to each intent of a query, one column each.
    """

    positive: np.ndarray
    scores: np.ndarray
    groups: Segments
    weight: np.ndarray | None = None
    grades: np.ndarray | None = None
    grouped: bool = False
    sample: ScoredRows | None = None
    judged: np.ndarray | None = None
    intents: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.positive)

    @property
    def relevance(self) -> np.ndarray:
        """Grade of each row; 0 and 1 where the labels are not numbers."""
        return self.positive.astype(np.float64) if self.grades is None else self.grades

    def refuse(self, known: str | None) -> None:
        """Raise InputError for unjudged rows or several intents, unless the measure knows them."""
        if self.judged is not None and known != "unjudged":
            raise InputError(
                f"y_true is not finite in row {int((~self.judged).argmax())}: fill or drop it; only rbp, bpref and "
                "inf_ap take unjudged rows (NaN)"
            )
        if self.intents is not None and known != "intents":
            raise InputError(
                f"y_true needs one label per row, got shape {self.intents.shape}: only alpha_ndcg and err_ia take a "
                "column for each intent"
            )

    def counted(self, positive: np.ndarray, weight: np.ndarray | None) -> ScoredRows:
        """The same rows, sorted once, with other classes and weights."""
        other = self.drawn(weight)
        other.positive, other.sample = positive, self.sample
        return other

    def mirrored(self) -> ScoredRows:
        """The list turned upside down with the classes exchanged, so that its bottom becomes the top."""
        # the rows come in reverse as well, for ties in the order they are given
        order = np.argsort(self.groups.of_rows()[::-1], kind="stable")
        groups = Segments(order, self.groups.indptr, self.groups.names)
        weight = None if self.weight is None else self.weight[::-1]
        return ScoredRows(~self.positive[::-1], -self.scores[::-1], groups, weight)

    def lifted(self, margin: float) -> ScoredRows:
        """Every negative lifted by a margin θ, as ``f_i - g_k <= θ`` is ``f_i <= g_k + θ``."""
        if not np.isfinite(margin):
            raise InputError(f"margin must be a finite number, got {margin!r}")
        if margin == 0:
            return self
        keys = np.where(self.positive, self.scores, self.scores + margin)
        return ScoredRows(self.positive, keys, self.groups, self.weight)

    def drawn(self, weight: np.ndarray | None) -> Self:
        """Bootstrap sample: the same rows, sorted once for all samples, each repeated as often as it was drawn."""
        _ = self._sorted
        other = copy(self)
        other.weight, other.sample = weight, self
        for stale in ("_merged", "lists", "present"):
            other.__dict__.pop(stale, None)
        return other

    @cached_property
    def present(self) -> np.ndarray:
        """Groups with a row of nonzero weight. Others are not there, unless that is true of all of them."""
        if self.weight is None or not self.weight.any():
            return np.ones(len(self.groups), dtype=bool)
        return np.add.reduceat(self.weight[self.groups.order], self.groups.indptr[:-1]) > 0

    def counted_values(self, values: Values, empty: Empty) -> np.ndarray:
        """Values of the groups that take part in a mean, by the rule ``empty`` for groups that have none."""
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
                f"first {first!r}: drop them or set empty='skip'"
            )
        return value[defined]

    def mean(self, values: Values, empty: Empty) -> float:
        """Mean of a measure over the groups."""
        counted = self.counted_values(values, empty)
        if isinstance(values, LogValues):
            return float(logsumexp(counted) - np.log(len(counted)))
        return float(np.mean(counted))

    def repetitions(self, otherwise: str = "") -> np.ndarray | None:
        """Weights as numbers of repetitions, None if every row counts once; raise InputError if they are not."""
        weight = self.weight
        if weight is None:
            return None
        if (weight != np.floor(weight)).any():
            raise InputError(
                "sample_weight must be whole numbers for this measure: they repeat rows, and a rank is a whole number"
                + (f"; {otherwise}" if otherwise else "")
            )
        if weight.sum() > MOST_ROWS:
            raise InputError(
                f"sample_weight repeats the rows to {weight.sum():.3g} of them, too many for this measure: divide the "
                "weights"
            )
        return weight.astype(np.int64)

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers by group, the largest score first, and where a new score or group begins."""
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
        """Weights of the classes in each level: one score of one group, the largest first."""
        check_choice("ties", ties, Ties)
        if ties == "given":
            return self._make_levels(np.ones(len(self), dtype=bool))
        return self._merged.split(ties == "optimistic") if self._breaks(ties) else self._merged

    @cached_property
    def _merged(self) -> Levels:
        if len(self.groups) > 1 or self.weight is not None or "_sorted" in self.__dict__:
            return self._make_levels(self._sorted[1])
        # One list: to sort the classes apart and merge them takes half the time of sorting row numbers.
        upper, lower = np.sort(self.scores[self.positive]), np.sort(self.scores[~self.positive])
        keys = np.concatenate([upper, lower])
        order = np.argsort(keys, kind="stable")[::-1]  # which merges two sorted runs in linear time
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
        """Number of the level each row stands on."""
        order, first = self._sorted
        number = np.empty(len(order), dtype=np.intp)
        number[order] = np.arange(len(order)) if ties == "given" else np.cumsum(first) - 1
        if ties == "given" or not self._breaks(ties):
            return number
        return 2 * number + (self.positive != (ties == "optimistic"))

    def _breaks(self, ties: Ties) -> bool:
        """Whether there are ties between the classes to be broken one way: in a draw, whether the sample has some."""
        merged = self._merged if self.sample is None else self.sample._merged
        return ties != "average" and bool((merged.positive * merged.negative).any())

    @cached_property
    def lists(self) -> GradedLists:
        """Every list from top to bottom, with the grades of its rows."""
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
    """Mask of the values that differ from the one before; the first always does."""
    change = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=change[1:])
    return change
