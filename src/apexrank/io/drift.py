"""Drift: binned distributions of the training rows, and the distance of new rows from them.

A model file stores one `Profile` per column and one for the scores. New rows are compared with them when they are
ranked or evaluated, because a model is unreliable on values that it has never seen.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from apexrank.errors import InputError, quoted
from apexrank.io.columns import texts

if TYPE_CHECKING:
    from apexrank.io.read import Table
    from apexrank.io.types import Column

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
        # the first bin holds only the minimum if that is frequent
        edges = np.concatenate([[low], inner, [high]])
        found = cls(edges, np.zeros(len(edges)))
        given = found.counts(values, weights)[:-1] if weights.any() else np.ones(1)
        return found._replace(shares=np.append((total - missing) * given / given.sum(), missing) / total)

    def counts(self, values: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Weight of the numbers, or codes of levels, in each bin, with missing values (NaN) last."""
        last, gaps = len(self.shares) - 1, np.isnan(values)
        if len(self.edges):
            bins = np.searchsorted(self.edges[1:-1], values, side="left")
        else:
            bins = np.where(gaps, last, values).astype(np.intp)
        return np.bincount(np.where(gaps, last, np.clip(bins, 0, last)), weights, last + 1).astype(float)


def psi(profile: Profile, counts: np.ndarray) -> float:
    """Population stability index ``Σ (a − e)·ln(a/e)`` of the shares e in training and a in new rows.

    It is the sum of the two Kullback-Leibler divergences; empty bins count as ``LITTLE``.
    """
    now, before = np.maximum(counts / max(counts.sum(), 1.0), LITTLE), np.maximum(profile.shares, LITTLE)
    return float(((now - before) * np.log(now / before)).sum())


def unlike_training(column: Column, profile: Profile, values: np.ndarray, table: Table) -> list[str]:
    """Return notes, with counts, about typed values that are far from those of training."""
    name, n = f"column {column.name!r}", len(values)
    counts, notes = profile.counts(values), list[str]()
    share, before, given = counts / max(n, 1), profile.shares, values[~np.isnan(values)]
    gone = int(counts[-1])
    if column.missing and _is_much(share[-1], before[-1], n):
        more = f"{share[-1]:.0%} instead of {before[-1]:.0%} in training"
        notes.append(f"{name}: {gone:,} of {n:,} values are missing, {more}")
    elif gone and not column.missing and column.kind != "category":
        fills = ", ".join(f"{fill:.6g}" for fill in column.fill or ())
        filled = f": filled with {fills}" if fills else ""
        gaps = f"{gone:,} missing value{'s' * (gone != 1)}"
        notes.append(f"{name} has {gaps}, but training had few or none{filled}")
    if len(profile.edges):
        low, high = float(profile.edges[0]), float(profile.edges[-1])
        far = (given < low - (high - low)) | (given > high + (high - low))
        if far.any():
            ends = "{} to {}, such as {}".format(*map(column.shown, (low, high, float(given[far][0]))))
            notes.append(
                f"{name}: {int(far.sum()):,} of {n:,} values are far outside the training range {ends}"
            )
    elif counts[:-1][-1:].any() and (
        not getattr(column, "other", False) or _is_much(share[-2], before[-2], n)
    ):
        rare = texts(table, column.name).filter(pl.Series(values == len(before) - 2)).unique().sort()
        more = f"{share[-2]:.0%} instead of {before[-2]:.0%}: {quoted(rare.to_list(), 3)}"
        notes.append(f"{name}: {int(counts[-2]):,} of {n:,} values are new or were rare in training, {more}")
    place = int(counts[:-1].argmax()) if len(counts) > 1 else 0
    alike = len(given) >= _FEW_ROWS and (given == given[0]).all()
    if alike and (counts > 0).sum() == 1 and before[place] ** len(given) < _BY_CHANCE:
        notes.append(
            f"{name} has one value in all {n:,} rows, {column.shown(given[0])}, but several in training"
        )
    return notes


def _is_much(share: float, before: float, n: int) -> bool:
    """Whether a share of n rows is far above that of training, by more than three standard deviations."""
    return share > 2 * before + 0.05 + 3 * math.sqrt(before * (1 - before) / n)
