"""The rows of one class, sorted by group, and sums over each group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apexrank.errors import InputError
from apexrank.validation import Segments


@dataclass(frozen=True)
class ClassRows:
    """Row numbers of one class sorted by group, with the logarithm of their weights.

    Group q owns ``rows[starts[q]:starts[q + 1]]``; no group is empty.
    """

    rows: np.ndarray
    starts: np.ndarray
    log_weight: np.ndarray

    def spread(self, per_group: np.ndarray) -> np.ndarray:
        """Repeat a value per group for each of its rows."""
        return np.repeat(per_group, np.diff(self.starts))

    def total(self, x: np.ndarray) -> np.ndarray:
        """Sum of each group."""
        return np.add.reduceat(x, self.starts[:-1])

    def highest(self, x: np.ndarray) -> np.ndarray:
        """Maximum of each group."""
        return np.maximum.reduceat(x, self.starts[:-1])

    def log_sum_exp(self, t: np.ndarray) -> np.ndarray:
        """``log Σ exp(t)`` of each group."""
        highest = self.highest(t)
        base = np.where(np.isfinite(highest), highest, 0.0)
        with np.errstate(divide="ignore"):
            return base + np.log(self.total(np.exp(t - self.spread(base))))

    @property
    def log_total_weight(self) -> float:
        """Logarithm of the weight of all rows."""
        return float(np.log(np.exp(self.log_weight).sum()))


def two_classes(
    label: np.ndarray, segments: Segments, log_weight: np.ndarray | None
) -> tuple[ClassRows, ClassRows, int]:
    """Rows of positive weight with label True and False, in the groups that have both, and the number that lack one."""
    order, group = segments.order, np.repeat(np.arange(len(segments)), np.diff(segments.indptr))
    log_weight = np.zeros(len(order)) if log_weight is None else log_weight[order]
    chosen = [(log_weight > -np.inf) & (label[order] == c) for c in (True, False)]
    counts = [np.bincount(group[mask], minlength=len(segments)) for mask in chosen]
    usable = (counts[0] > 0) & (counts[1] > 0)
    true, false = (
        ClassRows(
            order[mask & usable[group]],
            np.concatenate([[0], np.cumsum(count[usable])]),
            log_weight[mask & usable[group]],
        )
        for mask, count in zip(chosen, counts, strict=True)
    )
    return true, false, int((~usable).sum())


def log_weights(sample_weight: np.ndarray | None) -> np.ndarray | None:
    """Logarithm of the weights of the rows, checked."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=float)
    if (weight < 0).any():
        raise InputError(
            f"sample_weight is negative in row {int((weight < 0).argmax())}: weights must be >= 0"
        )
    with np.errstate(divide="ignore"):
        return np.log(weight)
