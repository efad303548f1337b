"""Drift: binned distributions of the training rows, and the distance of new rows from them.

A model file stores one `Profile` per column and one for the scores. New rows are compared with them when they are
ranked or evaluated, because a model is unreliable on values that it has never seen.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from apexrank.errors import InputError, quoted

if TYPE_CHECKING:
    from apexrank.io.encode import Column

BINS = 10
MOST_VALUES = 8192  # maximum number of values from which the bins of a column are built
RULE = "PSI below 0.1: little drift; 0.1 to 0.25: some; above 0.25: much"
LITTLE = 1e-4  # share assumed for an empty bin, whose logarithm would be infinite
MUCH = 0.25
_FEW_ROWS = 10
_BY_CHANCE = 1e-3


class Profile(NamedTuple):
    """Shares of the training rows in bins, with missing values last.

    For numbers, ``edges`` are the minimum, the distinct deciles, and the maximum. A category has no edges: its bins are
    its values, then all others.

    Examples
    --------
    >>> profile = Profile.of_numbers(np.array([1.0, 2.0, 2.0, 4.0]), np.ones(4), missing=1.0)
    >>> profile.edges.tolist(), profile.shares.tolist()
    ([1.0, 1.0, 2.0, 4.0], [0.2, 0.4, 0.2, 0.2])
    >>> psi(profile, np.array([1, 2, 1, 1])), round(psi(profile, np.array([2, 1, 1, 1])), 3)
    (0.0, 0.277)
    """

    edges: np.ndarray
    shares: np.ndarray

    def check_state(self) -> None:
        """Raise InputError unless there is a share for each bin between edges that do not fall."""
        sized = len(self.shares) == len(self.edges) > 1 or not len(self.edges)
        if not (
            sized and ((self.shares >= 0) & (self.shares <= 1)).all() and (np.diff(self.edges) >= 0).all()
        ):
            raise InputError("a profile has not a share from 0 to 1 for each bin")

    @classmethod
    def of_numbers(
        cls,
        values: np.ndarray,
        weights: np.ndarray,
        missing: float,
        low: float = np.inf,
        high: float = -np.inf,
    ) -> Profile:
        """Bins of weighted values; the range includes ``low`` to ``high``."""
        values, weights = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
        step = -(-len(values) // MOST_VALUES) or 1
        values, weights, total = values[::step], weights[::step], float(weights.sum()) + missing
        low, high = min(low, values.min(initial=np.inf)), max(high, values.max(initial=-np.inf))
        if not (low <= high and total > 0):
            return cls(np.zeros(0), np.ones(1))
        inner = np.zeros(0)
        if weights.any():
            order = np.argsort(values, kind="stable")
            below = np.cumsum(weights[order])
            at = np.searchsorted(below, np.arange(1, BINS) / BINS * below[-1] * (1 - 1e-12))
            inner = np.unique(values[order][at])
        inner = inner[(inner >= low) & (inner < high)]
        edges = np.concatenate(
            [[low], inner, [high]]
        )  # the first bin holds only the minimum if that is frequent
        found = cls(edges, np.zeros(len(edges)))
        given = found.counts(values, weights)[:-1] if weights.any() else np.ones(1)
        return found._replace(shares=np.append((total - missing) * given / given.sum(), missing) / total)

    def counts(self, values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Weight of the numbers in each bin, with missing values (NaN) last."""
        weights, last = np.ones(len(values)) if weights is None else weights, len(self.shares) - 1
        bins = np.searchsorted(self.edges[1:-1], values, side="left")
        return np.bincount(np.where(np.isnan(values), last, np.minimum(bins, last)), weights, last + 1)


def psi(profile: Profile, counts: np.ndarray) -> float:
    """Population stability index ``Σ (a − e)·ln(a/e)`` of the shares e in training and a in new rows.

    It is the sum of the two Kullback-Leibler divergences; empty bins count as ``LITTLE``.
    """
    now, before = np.maximum(counts / max(counts.sum(), 1.0), LITTLE), np.maximum(profile.shares, LITTLE)
    return float(((now - before) * np.log(now / before)).sum())


def binned(column: Column, profile: Profile, values: Any) -> np.ndarray:
    """Counts of the parsed values of a column in the bins of its profile."""
    if len(profile.edges):
        return profile.counts(values[:, 0])
    if not hasattr(column, "values"):
        return np.array([float(len(values))])
    known = {value: place for place, value in enumerate(column.values)}
    places = [len(known) + 1 if value is None else known.get(value, len(known)) for value in values]
    return np.bincount(places, minlength=len(profile.shares)).astype(np.float64)


def unlike_training(column: Column, profile: Profile, values: Any) -> list[str]:
    """Return notes, with counts, about parsed values that are far from those of training."""
    name, n, missing = f"column {column.name!r}", len(values), column.is_missing(values)
    counts, notes = binned(column, profile, values), list[str]()
    share, before = counts / max(n, 1), profile.shares
    if column.missing and _is_much(share[-1], before[-1], n):
        gone = f"{int(counts[-1]):,} of {n:,} values are missing"
        notes.append(f"{name}: {gone}, {share[-1]:.0%} instead of {before[-1]:.0%} in training")
    given = values.drop_nulls() if not isinstance(values, np.ndarray) else values[~missing, 0]
    if len(profile.edges):
        low, high = float(profile.edges[0]), float(profile.edges[-1])
        far = (given < low - (high - low)) | (given > high + (high - low))
        if far.any():
            shown = [_shown(column, number) for number in (low, high, float(given[far][0]))]
            ends = "{} to {}, such as {}".format(*shown)
            notes.append(
                f"{name}: {int(far.sum()):,} of {n:,} values are far outside the training range {ends}"
            )
    elif getattr(column, "other", False) and _is_much(share[-2], before[-2], n):
        rare = [value for value in given.unique().sort() if value not in set(column.values)]  # type: ignore[union-attr]
        notes.append(
            f"{name}: {int(counts[-2]):,} of {n:,} values are rare or new, {share[-2]:.0%} instead of "
            f"{before[-2]:.0%} in training: {quoted(rare, 3)}"
        )
    place = int(counts[:-1].argmax()) if len(counts) > 1 else 0
    alike = len(given) >= _FEW_ROWS and (given == given[0]).all()
    if alike and (counts > 0).sum() == 1 and before[place] ** len(given) < _BY_CHANCE:
        notes.append(f"{name} has one value in all {n:,} rows, {given[0]!s:.40}, but several in training")
    return notes


def _is_much(share: float, before: float, n: int) -> bool:
    """Whether a share of n rows is far above that of training, by more than three standard deviations."""
    return share > 2 * before + 0.05 + 3 * math.sqrt(before * (1 - before) / n)


def _shown(column: Column, number: float) -> str:
    return str(np.datetime64(int(number), "D")) if column.kind == "date" else f"{number:.6g}"
