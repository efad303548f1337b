"""Labels and scores of ranked lists: checked once, sorted once for all measures."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics._levels import GradedLists, Levels, Values
from apexrank.validation import Segments, check_choice, check_weights, on_host, segment

Ties = Literal["pessimistic", "average", "optimistic", "given"]
Empty = Literal["skip", "zero", "one", "raise"]

MOST_ROWS = 2e8
PLAIN = {"zero": 0.0, "one": 1.0}
_EXACT = 2**53  # the largest whole number up to which doubles hold all of them


@dataclass(eq=False)
class ScoredRows:
    """Checked rows of one or many lists.

    ``positive`` marks the relevant rows, ``grades`` holds their relevance where the labels are numbers; ``weight``
    is None when every row counts once; ``grouped`` says whether the user gave groups; ``sample`` holds the rows that
    these were drawn from by a bootstrap, None for rows that were not drawn.
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
    def names(self) -> np.ndarray:
        """Names of the groups."""
        return self.groups.names

    @property
    def relevance(self) -> np.ndarray:
        """Grade of each row; 0 and 1 where the labels are not numbers."""
        return self.positive.astype(np.float64) if self.grades is None else self.grades

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

    def drawn(self, weight: np.ndarray) -> Self:
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

    def counted_values(self, values: Values, empty: Empty, fills: Mapping[str, float] = PLAIN) -> np.ndarray:
        """Values of the groups that take part in a mean, by the rule ``empty`` for groups that have none."""
        check_choice("empty", empty, Empty)
        value, defined, names = (column[self.present] for column in (*values, self.names))
        if empty in fills:
            return np.where(defined, value, fills[empty])
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
        return float(np.mean(self.counted_values(values, empty)))

    def check_repetitions(self, otherwise: str = "") -> None:
        """Refuse weights that are no numbers of repetitions."""
        if self.weight is not None:
            _repetitions(self.weight, otherwise)

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
        if len(self.groups) == 1 and self.weight is None and "_sorted" not in self.__dict__:
            return self._levels_of_one_list()
        return self._make_levels(self._sorted[1])

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

    def _levels_of_one_list(self) -> Levels:
        """Sort the classes apart and merge them: half the time of sorting row numbers."""
        upper, lower = np.sort(self.scores[self.positive]), np.sort(self.scores[~self.positive])
        keys = np.concatenate([upper, lower])
        order = np.argsort(keys, kind="stable")[::-1]  # which merges two sorted runs in linear time
        keys, positive = keys[order], (order < len(upper)).astype(np.float64)
        first = _changes(keys)
        starts = np.flatnonzero(first)
        if len(starts) == len(keys):
            return Levels(positive, 1 - positive, keys, np.array([0, len(keys)]))
        return Levels(
            positive=np.add.reduceat(positive, starts),
            negative=np.add.reduceat(1 - positive, starts),
            score=keys[starts],
            indptr=np.array([0, len(starts)]),
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
        if self.weight is not None:
            times = _repetitions(self.weight)[rows]
            rows, group = np.repeat(rows, times), np.repeat(group, times)
        scores = self.scores[rows]
        return GradedLists(
            relevance=self.relevance[rows],
            listed=scores > -np.inf,
            starts=np.flatnonzero(_changes(scores) | _changes(group)),
            indptr=np.searchsorted(group, np.arange(len(sizes) + 1)),
        )


def _changes(values: np.ndarray) -> np.ndarray:
    """Where a value differs from the one before it; the first always does."""
    change = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=change[1:])
    return change


def _repetitions(weight: np.ndarray, otherwise: str = "") -> np.ndarray:
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


def check_rows(
    y_true: ArrayLike,
    scores: ArrayLike,
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    relevant: float | None = None,
    *,
    graded: bool = False,
) -> ScoredRows:
    """Check labels of two classes, or with ``graded`` perhaps grades of relevance, and the scores that rank them.

    Arrays on a device are copied to the host: they hold a few bytes a row, where the rows themselves have hundreds.
    """
    y_true, scores, groups, sample_weight = map(on_host, (y_true, scores, groups, sample_weight))
    labels = as_labels(y_true)
    n = len(labels)
    relevance = None
    if not graded:
        positive = two_classes(labels, pos_label)
    else:
        positive = relevant_rows(labels, pos_label, relevant)
        if pos_label is None and not are_classes(labels):
            relevance = as_grades(labels)
    weight = None
    if sample_weight is not None:
        weight = _column("sample_weight", sample_weight, n)
        if (weight < 0).any() or np.isinf(weight).any():
            raise InputError(
                "sample_weight has a negative or infinite weight: weights are numbers of repetitions"
            )
        check_weights(weight)  # pairs have products of weights
    return ScoredRows(positive, _scores(scores, n), segment(groups, n), weight, relevance, groups is not None)


def _scores(scores: ArrayLike, n: int) -> np.ndarray:
    """Scores as doubles; of whole numbers too large for those only the order is kept."""
    given = np.asarray(scores)
    if (
        given.dtype.kind in "iu"
        and given.shape == (n,)
        and max(abs(int(given.min())), int(given.max())) > _EXACT
    ):
        return np.unique(given, return_inverse=True)[1].astype(np.float64)
    return _column("scores", scores, n)


def _column(name: str, values: ArrayLike, n: int) -> np.ndarray:
    try:
        if np.asarray(values).dtype.kind in "USmM":
            raise TypeError
        column = np.asarray(np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan))
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, one for each of the {n} rows of y_true") from None
    if column.shape != (n,):
        raise InputError(
            f"{name} needs one number for each of the {n} rows of y_true, got shape {column.shape}"
        )
    if np.isnan(column).any():
        raise InputError(f"{name} is NaN in row {int(np.isnan(column).argmax())}: fill or drop it")
    return column


def as_labels(y_true: ArrayLike) -> np.ndarray:
    """Labels as an array; objects that are all numbers become numbers."""
    labels = np.asarray(y_true)
    if labels.ndim != 1 or not len(labels):
        raise InputError(f"y_true needs one label per row and at least one row, got shape {labels.shape}")
    if labels.dtype.kind == "O":
        plain = np.array(labels.tolist()) if all(isinstance(x, Real) for x in labels) else labels
        labels = plain if plain.dtype.kind in "biuf" else labels
    return labels


def are_classes(labels: np.ndarray) -> bool:
    """Whether labels only name two classes: one of two numbers is negative."""
    return labels.dtype.kind not in "biuf" or bool(labels.min() < 0 and len(distinct(labels)) == 2)


def relevant_rows(labels: np.ndarray, pos_label: Any, relevant: float | None) -> np.ndarray:
    """Which rows are relevant: those of at least the grade ``relevant``, or of the label ``pos_label``.

    With neither, numbers of at least 0 are grades, relevant when above 0; of two other labels the larger is. Two
    numbers above 0 may be either, and are refused.
    """
    if relevant is not None:
        if pos_label is not None:
            raise InputError("relevant and pos_label both say what is relevant: give one of them")
        return as_grades(labels) >= relevant
    if pos_label is not None or are_classes(labels):
        return two_classes(labels, pos_label)
    values = distinct(labels)
    if len(values) == 2 and values[0] > 0:
        raise InputError(
            f"y_true has the values {values[0]:g} and {values[1]:g} only: say relevant={values[0]:g} if they are "
            f"grades, or pos_label={values[1]:g} if they are classes"
        )
    return as_grades(labels) > 0


def as_grades(labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind not in "biuf":
        raise InputError("y_true must be numbers here, the grades of relevance")
    grades = labels.astype(np.float64)
    if not np.isfinite(grades).all():
        raise InputError(
            f"y_true is not finite in row {int((~np.isfinite(grades)).argmax())}: fill or drop it"
        )
    return grades


def two_classes(labels: np.ndarray, pos_label: Any) -> np.ndarray:
    values = distinct(labels)
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


def distinct(labels: np.ndarray) -> list:
    """Sorted distinct labels; a missing one differs from itself or compares with nothing."""
    try:
        if labels.dtype.kind in "fO" and (labels != labels).any():
            raise TypeError
        if labels.dtype.kind in "biuf":
            low, high = labels.min(), labels.max()
            if ((labels == low) | (labels == high)).all():  # two values need no sort
                return [low.item()] if low == high else [low.item(), high.item()]
        return np.unique(labels).tolist()
    except TypeError:
        raise InputError("y_true has missing or mixed labels: fill or drop those rows") from None
