"""Anderson's acceleration of a fixed-point iteration."""

from __future__ import annotations

from collections import deque

import numpy as np

RIDGE = 1e-10  # relative, on the normal equations: differences of late steps are nearly parallel


class Anderson:
    """Guess the fixed point of a map from the last few points and where the map took them.

    The combination ``Σ γ_l g(x_l)``, ``Σ γ_l = 1``, whose residual ``Σ γ_l (g(x_l) − x_l)`` is least in the norm that
    ``scale`` gives (Walker and Ni 2011, type II).

    Examples
    --------
    >>> guess, g = Anderson(3), lambda x: np.array([[0.9, 0.1], [0.0, 0.5]]) @ x + 1
    >>> x = np.zeros(2)
    >>> for _ in range(4):
    ...     x = guess(x, g(x), np.ones(2))
    >>> bool(np.abs(g(x) - x).max() < 1e-6)
    True
    """

    def __init__(self, depth: int = 6) -> None:
        self._points: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=depth)

    def __call__(self, x: np.ndarray, mapped: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Take in a point and its image; the guess is the image itself while nothing else is known."""
        self._points.append((mapped, mapped - x))
        if len(self._points) < 2:
            return mapped
        residual = self._points[-1][1]
        images = np.stack([image - mapped for image, _ in list(self._points)[:-1]])
        changes = np.stack([r - residual for _, r in list(self._points)[:-1]])
        weighted = changes * scale
        normal = weighted @ changes.T
        normal[np.diag_indices_from(normal)] += RIDGE * normal.trace() + 1e-300
        return mapped - np.linalg.solve(normal, weighted @ residual) @ images

    def forget(self) -> None:
        """Begin anew: the map was not what it seemed."""
        self._points.clear()
