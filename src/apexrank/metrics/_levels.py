"""Sorted lists: levels of tied rows for counts of two classes, single rows for grades."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from apexrank.kernels.segments import running_sums


@dataclass(frozen=True)
class Levels:
    """Tied rows merged. A level is one score of one group; levels run by group, the largest score first.

    ``positive`` and ``negative`` hold the weight of each class in a level; group ``q`` owns the levels from
    ``indptr[q]`` up to ``indptr[q + 1]``.
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

    def below(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums over the levels of the group strictly below, and at or below, each level."""
        # Summed upwards, not taken as "all minus above", so that rounding never makes a zero nonzero.
        upwards = (self.indptr[-1] - self.indptr)[::-1]
        strictly, inclusive = running_sums(values[::-1], upwards)
        return strictly[::-1], inclusive[::-1]

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
        strictly, inclusive = self.below(self.positive)
        return (strictly + inclusive) / 2

    def reverse_heights(self) -> np.ndarray:
        """Weight of the negatives above each level, a tie counted half."""
        strictly, inclusive = self.above(self.negative)
        return (strictly + inclusive) / 2

    def listed(self) -> np.ndarray:
        """Levels on the list: a score of minus infinity stands for rows that were never put on it."""
        return self.score > -np.inf

    @cached_property
    def total_positive(self) -> np.ndarray:
        """Weight of the positives of each group."""
        return self.sums(self.positive)

    @cached_property
    def total_negative(self) -> np.ndarray:
        """Weight of the negatives of each group."""
        return self.sums(self.negative)

    def has_both(self) -> np.ndarray:
        """Groups with a positive and a negative row."""
        return self.has_positive() & (self.total_negative > 0)

    def has_positive(self) -> np.ndarray:
        """Groups with a positive row."""
        return self.total_positive > 0

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
    """Grades of the rows of every list from top to bottom.

    ``starts`` are the rows where a new level of tied rows begins, ``listed`` tells the rows that have a rank from
    those that were never put on the list; list ``q`` owns the rows from ``indptr[q]`` up to ``indptr[q + 1]``.
    """

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

    def sorted_ties(self, best_first: bool) -> np.ndarray:
        """Grades with every tie broken one way."""
        if len(self.starts) == len(self.relevance):
            return self.relevance
        counts = np.diff(np.append(self.starts, len(self.relevance)))
        level = np.repeat(np.arange(len(counts)), counts)
        sign = -1 if best_first else 1
        return self.relevance[np.lexsort((sign * self.relevance, level))]


def spread_out(times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For numbers of rows: which of them each row belongs to, its place there (from 0), and where each begins."""
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
