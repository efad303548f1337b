"""Growing counts as curves: the points that matter for drawing them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_MOST_POINTS, _CELLS, _CELLS_PER_DOUBLING, _GRID = 4000, 1000, 50, 512


class Curve(NamedTuple):
    """One ranker's ROC curve in counts."""

    false_positives: np.ndarray
    true_positives: np.ndarray


def corners(curve: Curve) -> Curve:
    """Leave out the points inside straight stretches: a curve of a million rows stays quick to draw.

    Examples
    --------
    >>> corners(Curve(np.array([0, 0, 0, 1, 2]), np.array([0, 1, 1, 1, 1]))).true_positives.tolist()
    [0, 1, 1]
    """
    steps = np.diff(curve)
    # A level of weight 0 repeats its point, which would hide the corner there.
    moved = np.concatenate([[True], (steps != 0).any(axis=0)])
    x, y = np.asarray(curve)[:, moved]
    dx, dy = np.diff(x), np.diff(y)
    keep = np.ones(len(x), dtype=bool)
    keep[1:-1] = dx[1:] * dy[:-1] != dx[:-1] * dy[1:]
    return Curve(x[keep], y[keep])


def drawn_counts(rows: np.ndarray, hits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points at which to draw a growing count so that it looks right on linear and logarithmic axes alike.

    What is straight between its corners bends on a logarithmic axis and in a quotient, so a grid is added; and of
    more corners than anyone can see only the first in each small cell of both axes is kept.

    Examples
    --------
    >>> import numpy as np
    >>> rows, hits = drawn_counts(np.arange(1e6), np.arange(1e6) // 3)
    >>> len(rows) < 6000, float(np.abs(hits - rows // 3).max()) <= 1
    (True, True)
    """
    x, y = corners(Curve(rows, hits))
    if len(x) > _MOST_POINTS:
        cells = np.concatenate([_cells(x), _cells(y)])
        keep = np.concatenate([[True], (np.diff(cells) != 0).any(axis=0)])
        keep[-1] = True
        x, y = x[keep], y[keep]
    total = rows[-1]
    grid = np.geomspace(min(1.0, total / 1000), total, _GRID), np.arange(1.0, min(total, _CELLS))
    points = np.union1d(x, np.concatenate(grid))
    points = points[points <= total]
    return points, np.interp(points, rows, hits)


def _cells(values: np.ndarray) -> np.ndarray:
    """Number of the cell of each value on a linear and on a logarithmic axis."""
    highest = values[-1] if values[-1] > 0 else 1.0
    doublings = np.log2(np.maximum(values, highest / 2**30))
    return np.floor([_CELLS * values / highest, _CELLS_PER_DOUBLING * doublings])
