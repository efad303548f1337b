"""Labels and scores, checked, and sorted once for all measures: the start of every measure of a ranked list."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from apexrank.errors import InputError
from apexrank.metrics._labels import as_labels, grades_of, relevant_rows, two_classes
from apexrank.metrics._levels import Levels, Lists
from apexrank.validation import Segments, check_weights, on_host, segment

Ties = Literal["pessimistic", "average", "optimistic", "given"]

MOST_ROWS = 2e8
_EXACT = 2**53  # the largest whole number up to which doubles hold all of them


def check_choice(name: str, value: str, choices: Any) -> None:
    """Refuse a ``value`` that is none of the ``Literal`` type ``choices``."""
    if value not in get_args(choices):
        raise InputError(f"unknown {name} {value!r}: use one of {', '.join(get_args(choices))}")


def check_number(name: str, value: float, low: float, high: float) -> float:
    """Refuse a number that is not in the closed interval from ``low`` to ``high``."""
    if not low <= value <= high:
        raise InputError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
    return float(value)


class Rows:
    """Checked rows of one or many lists.

    ``positive`` marks the relevant rows, ``relevance`` holds their grades where the labels are numbers; ``weight``
    is None when every row counts once; ``grouped`` says whether the user gave groups.
    """

    def __init__(
        self,
        positive: np.ndarray,
        scores: np.ndarray,
        groups: Segments,
        weight: np.ndarray | None = None,
        relevance: np.ndarray | None = None,
        grouped: bool = False,
    ) -> None:
        self.positive, self.scores, self.groups, self.grouped = positive, scores, groups, grouped
        self.weight, self._relevance = weight, relevance

    def __len__(self) -> int:
        return len(self.positive)

    @property
    def names(self) -> np.ndarray:
        """Names of the groups."""
        return self.groups.names

    @property
    def relevance(self) -> np.ndarray:
        """Grade of each row; 0 and 1 where the labels are not numbers."""
        return self.positive.astype(np.float64) if self._relevance is None else self._relevance

    def mirrored(self) -> Rows:
        """The list turned upside down with the classes exchanged, so that its bottom becomes the top."""
        # the rows come in reverse as well, for ties in the order they are given
        order = np.argsort(self.groups.of_rows()[::-1], kind="stable")
        groups = Segments(order, self.groups.indptr, self.groups.names)
        weight = None if self.weight is None else self.weight[::-1]
        return Rows(~self.positive[::-1], -self.scores[::-1], groups, weight)

    def lifted(self, margin: float) -> Rows:
        """Every negative lifted by a margin θ, as ``f_i - g_k <= θ`` is ``f_i <= g_k + θ``."""
        if not np.isfinite(margin):
            raise InputError(f"margin must be a finite number, got {margin!r}")
        if margin == 0:
            return self
        keys = np.where(self.positive, self.scores, self.scores + margin)
        return Rows(self.positive, keys, self.groups, self.weight)

    def sort(self) -> None:
        """Sort now, so that rows reweighted later share the order."""
        _ = self._sorted

    def reweighted(self, weight: np.ndarray) -> Self:
        """The same rows in the same order with other weights."""
        other = copy(self)
        other.weight = weight
        other.__dict__.pop("_merged", None)
        other.__dict__.pop("lists", None)
        return other

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
        """Whether there are ties between the classes to be broken one way."""
        return ties != "average" and bool((self._merged.positive * self._merged.negative).any())

    @cached_property
    def lists(self) -> Lists:
        """Every list from top to bottom, with the grades of its rows."""
        rows, sizes = self._sorted[0], np.diff(self.groups.indptr)
        group = np.repeat(np.arange(len(sizes)), sizes)
        if self.weight is not None:
            times = _repetitions(self.weight)[rows]
            rows, group = np.repeat(rows, times), np.repeat(group, times)
        scores = self.scores[rows]
        return Lists(
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
    *,
    pos_label: Any = None,
    relevant: float | None = None,
    graded: bool = False,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Rows:
    """Check what the user passed; every fault is an `InputError` of one line.

    ``graded`` says that labels may be grades: see `relevant_rows`. Arrays on a device come to the host: they are a few
    bytes a row, where the rows themselves have hundreds.
    """
    y_true, scores, groups, sample_weight = map(on_host, (y_true, scores, groups, sample_weight))
    labels = as_labels(y_true)
    n = len(labels)
    relevance = None
    if graded:
        positive = relevant_rows(labels, pos_label, relevant)
        relevance = grades_of(labels) if pos_label is None else None
    else:
        positive = two_classes(labels, pos_label)
    weight = None if sample_weight is None else _column("sample_weight", sample_weight, n)
    if weight is not None and ((weight < 0).any() or np.isinf(weight).any()):
        raise InputError(
            "sample_weight has a negative or infinite weight: weights are numbers of repetitions"
        )
    if weight is not None:
        check_weights(weight)  # pairs have products of weights
    return Rows(positive, _scores(scores, n), segment(groups, n), weight, relevance, groups is not None)


def check_binary(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    pos_label: Any = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Rows:
    """Rows of two classes."""
    return check_rows(y_true, scores, pos_label=pos_label, groups=groups, sample_weight=sample_weight)


def judged_rows(
    y_true: ArrayLike,
    scores: ArrayLike,
    pos_label: Any,
    relevant: float | None,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> Rows:
    """Rows of two classes or of grades."""
    options: dict[str, Any] = {"groups": groups, "sample_weight": sample_weight}
    return check_rows(y_true, scores, pos_label=pos_label, relevant=relevant, graded=True, **options)


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
