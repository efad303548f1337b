"""The normaliser of the Lovász–Mallows density by Monte Carlo, where there are too many items for the exact sum.

Since ``d log Z/dθ = −E_θ[d]`` and Z(0) = 1, ``log Z(θ) = −∫_0^θ E_t[d] dt``. Particles start as uniform scores and are
led through rising values of t: weighted by ``exp(−Δt·d)``, drawn anew when the weights grow uneven, then moved by
Gibbs sweeps.
Several independent groups of particles give independent curves ``E_t[d]``, whose spread is the standard error.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicHermiteSpline

from apexrank.aggregation.normaliser import MAX_STRENGTH, Moments, size_gains
from apexrank.errors import InputError
from apexrank.kernels.mallows import gibbs_sweeps
from apexrank.submodular import SetFunction
from apexrank.validation import check_finite

STEP = 0.1  # of θ: as a share of θ, but at least of 1/(standard deviation of uniform scores' divergences)
SWEEPS = 4


class _Group(NamedTuple):
    """Particles that know nothing of the other groups, their log-weights, and their divergences' moments so far."""

    scores: np.ndarray
    log_weights: np.ndarray
    means: list[float]
    variances: list[float]


class AnnealedNormaliser:
    """An estimate of ``log Z(θ)`` and its standard error, for functions of the size of a set and any number of items.

    The same random numbers serve every θ, so the estimate is a smooth function of θ, whatever is asked first.

    Parameters
    ----------
    f : SetFunction
        A function of the size of a set; any other has a normaliser for each order.
    n : int
        The number of items.
    n_particles : int
        In each of the 8 groups. The standard error falls with its square root.
    random_state : int
        Seed.

    Examples
    --------
    >>> from apexrank.aggregation.normaliser import BoxNormaliser
    >>> from apexrank.submodular import Sqrt
    >>> estimate = AnnealedNormaliser(Sqrt(), 5)
    >>> error = abs(estimate.at(10.0).log_z - BoxNormaliser(Sqrt(), 5).at(10.0).log_z)
    >>> error < 4 * estimate.standard_error(10.0) < 0.2
    True
    """

    exact = False

    def __init__(
        self, f: SetFunction, n: int, n_particles: int = 64, random_state: int = 0, *, n_groups: int = 8
    ) -> None:
        gains = size_gains(f, n)
        if gains is None:
            raise InputError(
                f"no normaliser for {n} items and a set function that looks at more than the size of a set: "
                "use at most 20 items, or a function of the size such as 'sqrt'"
            )
        self._gains = gains
        self._rng = np.random.default_rng(random_state)
        # falling sorted uniform scores have the means n/(n + 1), …, 1/(n + 1)
        at_zero = float(gains @ (np.arange(n, 0.0, -1.0) / (n + 1) - 0.5))
        self._groups = [self._start(n_particles, at_zero) for _ in range(n_groups)]
        self.largest_theta = MAX_STRENGTH / (at_zero or 1.0)
        spread = math.sqrt(np.mean([group.variances[0] for group in self._groups]))
        self._first = STEP / (spread or 1.0)
        self._thetas = [0.0]
        self._reach(self._first)

    def at(self, theta: float) -> Moments:
        """``log Z(θ)``, and mean and variance of the divergence, from the mean curves of all groups."""
        check_finite("theta", theta, 0)
        self._reach(theta)
        return Moments(
            -float(self._integral(theta)),
            float(self._mean(theta)),
            float(np.interp(theta, self._thetas, self._variances)),
        )

    def standard_error(self, theta: float) -> float:
        """Standard error of ``log Z(θ)``, from the spread of the groups."""
        self._reach(theta)
        curves = [_curve(self._thetas, group.means, group.variances) for group in self._groups]
        values = [float(curve.antiderivative()(theta)) for curve in curves]
        return float(np.std(values, ddof=1) / math.sqrt(len(values)))

    def _start(self, n_particles: int, at_zero: float) -> _Group:
        scores = self._rng.random((n_particles, len(self._gains)))
        variance = float(np.mean((self._divergence(scores) - at_zero) ** 2))
        return _Group(scores, np.zeros(n_particles), [at_zero], [variance])

    def _divergence(self, scores: np.ndarray) -> np.ndarray:
        return (np.sort(scores, axis=1)[:, ::-1] - scores) @ self._gains

    def _reach(self, theta: float) -> None:
        while self._thetas[-1] < theta:
            self._thetas.append(self._thetas[-1] + max(self._first, STEP * self._thetas[-1]))
            self._extend()

    def _extend(self) -> None:
        """Lead every group to the last temperature."""
        old, new = self._thetas[-2:]
        for group in self._groups:
            group.log_weights[:] -= (new - old) * self._divergence(group.scores)
            weights = np.exp(group.log_weights - group.log_weights.max())
            if weights.sum() ** 2 < 0.5 * len(weights) * (weights @ weights):
                group.scores[:] = group.scores[_systematic(weights, self._rng)]
                group.log_weights[:] = 0.0
                weights = np.ones(len(weights))
            found = gibbs_sweeps(group.scores, new, self._gains, SWEEPS, self._rng)
            mean = float(found.mean(axis=0) @ weights / weights.sum())
            group.means.append(mean)
            group.variances.append(float(((found - mean) ** 2).mean(axis=0) @ weights / weights.sum()))
        means = np.mean([group.means for group in self._groups], axis=0)
        variances = np.mean([group.variances for group in self._groups], axis=0)
        self._mean = _curve(self._thetas, means, variances)
        self._integral = self._mean.antiderivative()
        self._variances = variances


def _curve(thetas: list[float], means: ArrayLike, variances: ArrayLike) -> CubicHermiteSpline:
    """``E_t[d]``, whose slope is ``−Var_t(d)``; later temperatures do not change what lies between earlier ones."""
    return CubicHermiteSpline(thetas, means, -np.asarray(variances))


def _systematic(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows drawn in proportion to their weights, with one random number for all."""
    edges = np.cumsum(weights) / weights.sum()
    return np.minimum(
        np.searchsorted(edges, (np.arange(len(weights)) + rng.random()) / len(weights)), len(weights) - 1
    )
