"""Projection of the scores of three items along (1, 1, 1) into a plane, which keeps only their differences.

Orders and Lovász–Bregman divergences depend only on differences, so the view loses nothing. The unit cube becomes a
regular hexagon, and each of the six orders one of its six triangles.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.submodular import check_scores

_ANGLES = np.deg2rad([90.0, 210.0, 330.0])
# images of the three unit vectors; lengths in the plane are preserved
AXES = np.sqrt(2 / 3) * np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)])


def project(scores: ArrayLike) -> np.ndarray:
    """Project score vectors into the plane; the first item points upwards, the others follow anticlockwise.

    Parameters
    ----------
    scores : array-like of shape (..., 3)
        One score for each item.

    Returns
    -------
    ndarray of shape (..., 2)

    Examples
    --------
    >>> project([[1, 0, 0], [5, 4, 4]]).round(3).tolist()
    [[0.0, 0.816], [0.0, 0.816]]
    """
    return check_scores(scores, 3) @ AXES


def lift(places: ArrayLike, level: float = 0.5) -> np.ndarray:
    """Return the score vectors with the given mean that `project` maps to the given positions.

    Examples
    --------
    >>> lift(project([0.2, 0.9, 0.4])).round(3).tolist()
    [0.2, 0.9, 0.4]
    """
    return check_scores(places, 2, "places") @ AXES.T + level


def order_cells(n: int) -> tuple[np.ndarray, np.ndarray]:
    """List all orders of n items with the corners 0, e_σ(1), e_σ(1) + e_σ(2), …, 1 of their parts of the unit cube.

    The Lovász extension of any set function is linear on each part, and so is the divergence to any order.

    Returns
    -------
    orders : ndarray of shape (n!, n)
    corners : ndarray of shape (n!, n + 1, n)

    Examples
    --------
    >>> orders, corners = order_cells(2)
    >>> orders.tolist(), corners[1].tolist()
    ([[0, 1], [1, 0]], [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    """
    orders = np.array(list(permutations(range(n))))
    corners = np.zeros((len(orders), n + 1, n))
    corners[:, 1:] = np.cumsum(np.eye(n)[orders], axis=1)
    return orders, corners


def order_name(order: ArrayLike) -> str:
    """Format an order with items counted from 1, best first.

    Examples
    --------
    >>> order_name([1, 0, 2])
    '2 > 1 > 3'
    """
    return " > ".join(str(int(item) + 1) for item in np.asarray(order))


def draw_frame(ax: Any, *, walls: bool = True) -> None:
    """Draw the hexagon of the unit cube, the boundaries between orders, and the names of corners and orders."""
    orders, corners = order_cells(3)
    for order, cell in zip(orders, project(corners), strict=True):
        first, second = cell[1], cell[2]
        ax.plot(*np.transpose([first, second]), color="0.15", linewidth=1.0, zorder=4)
        if walls:
            ax.plot(*np.transpose([cell[0], first]), color="0.15", linewidth=0.8, linestyle="--", zorder=4)
            ax.plot(*np.transpose([cell[0], second]), color="0.15", linewidth=0.8, linestyle="--", zorder=4)
        _beside(ax, (first + second) / 2, order_name(order), 1.06, color="0.0")
    for corner in np.unique(corners[:, 1:3].reshape(-1, 3), axis=0):
        name = "({:.0f}, {:.0f}, {:.0f})".format(*corner)
        _beside(ax, project(corner), name, 1.05, color="0.4", fontsize="small")
    ax.set(xlim=(-1.12, 1.12), ylim=(-0.95, 0.95), xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)


def _beside(ax: Any, place: np.ndarray, text: str, factor: float, **style: Any) -> None:
    """Write text outside the hexagon, away from its centre."""
    x, y = (0.0 if abs(value) < 1e-9 else float(value) for value in place)
    across = "center" if x == 0 else "left" if x > 0 else "right"
    along = "center" if abs(y) < 0.1 else "bottom" if y > 0 else "top"
    ax.text(x * factor, y * factor, text, ha=across, va=along, **style)
