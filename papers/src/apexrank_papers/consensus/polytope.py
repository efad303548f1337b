"""Bregman divergence on any polytope, defined by its corners (the recipe of sec. 5.3, Acharyya 2013).

``φ(x) = max_θ <x, θ> − log Σ_i exp<θ, y_i>`` over corners y_i (printed ``exp(θ_i, y_i)``). Its conjugate is a
log-sum-exp, so the link is the mean of the corners with softmax weights, and φ is strongly convex: the Hessian of the
conjugate is a covariance of the corners, at most a quarter of the squared diameter. The corners of the simplex give KL.
φ is not a sum over coordinates, and evaluating it is an inner minimisation over all of them. This implementation is for
a few dozen coordinates, and :class:`apexrank.ConsensusRank` does not offer it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist
from scipy.special import logsumexp, softmax

from apexrank.divergences import Divergence
from apexrank.errors import InputError

STEPS, EXACT, ROUNDING = 200, 1e-12, 1e-14


@dataclass(frozen=True, eq=False)
class PolytopeDivergence(Divergence):
    """Bregman divergence inside the convex hull of some points.

    Parameters
    ----------
    corners : array of shape (k, n)
        The points.

    Examples
    --------
    >>> atom = PolytopeDivergence(np.eye(3))
    >>> from apexrank.divergences import KL
    >>> x, y = [0.2, 0.3, 0.5], [0.4, 0.4, 0.2]
    >>> round(float(atom.divergence(x, y) - KL().divergence(x, y)), 9)
    0.0
    """

    corners: np.ndarray
    name: ClassVar[str] = "polytope"

    @property
    def modulus(self) -> float:
        """Lower bound on the strong convexity of φ in the Euclidean norm: 4 divided by the squared diameter."""
        return 4 / float(pdist(self.corners).max()) ** 2

    def conjugate(self, theta: ArrayLike) -> np.ndarray:
        return logsumexp(np.asarray(theta, dtype=float) @ self.corners.T, axis=-1)

    def grad_inv(self, theta: ArrayLike) -> np.ndarray:
        return softmax(np.asarray(theta, dtype=float) @ self.corners.T, axis=-1) @ self.corners

    def grad(self, x: ArrayLike) -> np.ndarray:
        return np.apply_along_axis(self._natural, -1, self.check(x))

    def phi(self, x: ArrayLike) -> np.ndarray:
        theta = self.grad(x)
        return np.sum(theta * np.asarray(x), axis=-1) - self.conjugate(theta)

    def divergence(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        slope = self.grad(y)
        return self.phi(x) - self.phi(y) - np.sum(slope * (np.asarray(x) - np.asarray(y)), axis=-1)

    def _natural(self, x: np.ndarray) -> np.ndarray:
        """Find the shortest θ with link x by Newton's method with decreasing steps."""
        theta = np.zeros_like(x)
        for _ in range(STEPS):
            weights = softmax(self.corners @ theta)
            rest = x - weights @ self.corners
            if np.abs(rest).max() <= EXACT:
                return theta
            centred = self.corners - weights @ self.corners
            step = np.linalg.lstsq(centred.T @ (weights[:, None] * centred), rest, rcond=1e-13)[0]
            here, length = float(self.conjugate(theta) - theta @ x), 1.0
            while length > EXACT:
                there = self.conjugate(theta + length * step) - (theta + length * step) @ x
                if there <= here - 1e-4 * length * step @ rest + ROUNDING * (1 + abs(here)):
                    break
                length /= 2
            theta = theta + length * step
        raise InputError("polytope needs points inside the hull of its corners, not on its edge")
