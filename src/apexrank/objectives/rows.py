"""The rows of one class, sorted by group, and sums over each group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
