"""Rows of a fit with their labels, wherever they are: in memory, in blocks, on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from apexrank.errors import InputError
from apexrank.objectives.base import Objective
from apexrank.problem.block_design import BlockDesign
from apexrank.problem.blocks import Blocks, Survey, gathered
from apexrank.problem.design import Design, Matrix, design_of
from apexrank.problem.device_arrays import namespace, to_host

Make = Callable[[np.ndarray, np.ndarray | None, Any], Objective]
"""``make(labels, sample_weight, groups)``, the labels being a mask of positives, relevance or values."""


class Training:
    """Rows in memory with their labels, weights and group ids."""

    def __init__(self, X: Matrix, labels: np.ndarray, weight: np.ndarray | None, groups: Any) -> None:
        self.X, self.labels, self.weight, self.groups = X, labels, weight, groups

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    def compose(self, make: Make, whole: bool = False) -> tuple[Design, Objective]:
        """The design, and the objective on it that ``make`` makes of the labels.

        ``whole``: of the scores of all rows, also where sums over the rows would do.
        """
        return design_of(self.X), make(*self.columns())

    def columns(self) -> tuple[np.ndarray, np.ndarray | None, Any]:
        """Labels, weights and groups of all rows, in memory."""
        return self.labels, self.weight, self.groups


class BlockTraining(Training):
    """Rows in blocks; their labels come to memory only for an objective that does not stream.

    ``classes`` are the two values of y, or None where y is relevance.
    """

    def __init__(self, blocks: Blocks, found: Survey, classes: list[Any] | None) -> None:
        self.blocks, self.found, self.classes = blocks, found, classes
        self.weight = None  # the survey has the units of the columns
        self._columns: tuple[np.ndarray, np.ndarray | None, Any] | None = None

    @property
    def n_features(self) -> int:
        return self.found.n_features

    def compose(self, make: Make, whole: bool = False) -> tuple[Design, Objective]:
        if self.classes is not None and not self.found.grouped and not whole:
            low, high = self.classes
            objective = _of_two_rows(make, self.found.labels[high], self.found.labels[low])
            if objective.streams:
                return BlockDesign(self.blocks, self.found, high), objective
        columns = self.columns()
        return BlockDesign(self.blocks, self.found), make(*columns)

    def columns(self) -> tuple[np.ndarray, np.ndarray | None, Any]:
        if self._columns is None:
            y, weight, groups = gathered(self.blocks)
            self._columns = (y if self.classes is None else y == self.classes[1]), weight, groups
        return self._columns


class DeviceTraining(Training):
    """Rows on a device, with labels and weights there; ``binary`` where the labels are a mask of positives."""

    def __init__(self, X: Any, labels: Any, weight: Any, groups: Any, binary: bool) -> None:
        super().__init__(X, labels, weight, groups)
        self.binary = binary

    def compose(self, make: Make, whole: bool = False) -> tuple[Design, Objective]:
        from apexrank.problem.device import DeviceDesign

        if self.binary and self.groups is None and not whole:
            xp = namespace(self.X)
            classes = (xp.astype(mask, xp.float64) for mask in (self.labels, ~self.labels))
            totals = [float(xp.sum(c if self.weight is None else c * self.weight)) for c in classes]
            objective = _of_two_rows(make, *totals)
            if objective.streams:
                return DeviceDesign(self.X, self.labels, self.weight), objective
        return DeviceDesign(self.X), make(*self.columns())

    def columns(self) -> tuple[np.ndarray, np.ndarray | None, Any]:
        groups = None if self.groups is None else to_host(self.groups)
        return to_host(self.labels), None if self.weight is None else to_host(self.weight), groups


def _of_two_rows(make: Make, up: float, down: float) -> Objective:
    """The objective of a positive and a negative that weigh as much as all of their class."""
    if up == 0 or down == 0:
        raise InputError("ranking needs rows of both classes, with positive weight, in at least one group")
    return make(np.array([True, False]), np.array([up, down]), None)
