"""Mallows model of orders with the Kendall distance: ``p(σ) = exp(−θ·d_T(σ, σ₀))/Z(θ)`` (Iyer and Bilmes 2013, eq. 4).

Repeated insertion of the items of σ₀ generates an order. The j-th item passes r of the j − 1 before it, which adds r to
the Kendall distance, so the r are independent, with probabilities proportional to ``e^{−θr}`` for r < j. This gives
exact draws and ``Z(θ) = Π_j (1 + e^{−θ} + … + e^{−(j−1)θ}) = Π_j (1 − e^{−jθ})/(1 − e^{−θ})``
(Fligner and Verducci 1986).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from apexrank.aggregation.ballots import Ballots, read_weights
from apexrank.aggregation.kemeny import kemeny
from apexrank.aggregation.pairwise import pairwise_counts
from apexrank.errors import InputError, warn
from apexrank.metrics.permutation import kendall_distance
from apexrank.submodular import check_orders
from apexrank.validation import check_count, check_finite


class DivergenceMoments(NamedTuple):
    """``log Z(θ)``, and the mean and variance of the divergence, its first two derivatives up to sign."""

    log_z: float
    mean: float
    variance: float


class Normaliser:
    """Base class of normalisers ``Z(θ, σ)``; ``largest_theta`` is practically infinite."""

    largest_theta: float

    def at(self, theta: float) -> DivergenceMoments:
        """Return ``log Z(θ)``, and the mean and variance of the divergence under the density."""
        raise NotImplementedError


class KendallNormaliser(Normaliser):
    """Normaliser ``Z(θ)`` of the Mallows model of n items with the Kendall distance, the same for every central order.

    Examples
    --------
    >>> np.exp(KendallNormaliser(3).at(0.0).log_z).round(12)
    np.float64(6.0)
    """

    def __init__(self, n: int) -> None:
        self.passed = np.arange(n, dtype=float)
        self.largest_theta = 500.0  # where a swap has probability 1e-217; larger θ would underflow

    def at(self, theta: float) -> DivergenceMoments:
        # sums instead of (1 − q^j)/(1 − q), which is 0/0 at θ = 0 and inaccurate near it
        chances = np.exp(-theta * self.passed)
        z, first, second = (np.cumsum(self.passed**k * chances) for k in range(3))
        mean = first / z
        return DivergenceMoments(
            float(np.log(z).sum()), float(mean.sum()), float((second / z - mean**2).sum())
        )


def maximum_likelihood(normaliser: Normaliser, mean_divergence: float, start: float = 1.0) -> float:
    """Solve for the θ whose mean divergence is the observed one: the minimum of the convex ``θ·d̄ + log Z(θ)``.

    It uses bracketed Newton steps on ``E_θ[d]^{−1/2}``, which is nearly linear. The result is 0 if the scores are at
    least as far from the order as uniform noise, and at most ``largest_theta``.

    Examples
    --------
    >>> normaliser = KendallNormaliser(3)
    >>> round(maximum_likelihood(normaliser, normaliser.at(0.7).mean), 9)
    0.7
    """
    if mean_divergence >= normaliser.at(0.0).mean:
        return 0.0
    low, high = 0.0, math.inf
    most = normaliser.largest_theta
    theta = min(max(float(start), 1e-6 * most), most)
    for _ in range(200):
        _, mean, variance = normaliser.at(theta)
        low, high = (theta, high) if mean > mean_divergence else (low, theta)
        if low == most:
            return most
        ratio = math.sqrt(mean / mean_divergence) if mean_divergence > 0 else math.inf
        new = theta + 2.0 * mean * (ratio - 1.0) / variance if variance > 0 else math.inf
        if abs(new - theta) <= 1e-7 * theta:  # convergence is quadratic
            return new
        theta = min(new, 10.0 * theta, most)  # estimates are more expensive for larger θ
        if not low < theta < high:
            theta = math.sqrt(max(low, 1e-15 * most) * min(high, most))
    return theta


def generator(random_state: Any) -> np.random.Generator:
    """Create a Generator from a seed, None, a Generator or a RandomState.

    Examples
    --------
    >>> generator(0).integers(10) == np.random.default_rng(0).integers(10)
    np.True_
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


class KendallMallows:
    """Mallows model ``p(σ) = exp(−θ·d_T(σ, σ₀))/Z(θ)`` over the orders σ of n items, with the Kendall distance d_T.

    Parameters
    ----------
    order : array-like of shape (n,)
        Central order σ₀: the item at each rank, best first.
    theta : float
        Concentration θ ≥ 0; with 0 all orders are equally likely.

    Examples
    --------
    >>> model = KendallMallows([0, 1, 2], theta=1.0)
    >>> model.probability([[0, 1, 2], [1, 0, 2], [2, 1, 0]]).round(3).tolist()
    [0.486, 0.179, 0.024]
    >>> votes = model.sample(2000, random_state=0)
    >>> found = KendallMallows.fit(votes)
    >>> found.order.tolist(), round(found.theta, 2)
    ([0, 1, 2], 1.04)
    """

    def __init__(self, order: ArrayLike, theta: float) -> None:
        self.order = check_orders(order)
        if self.order.ndim != 1:
            raise InputError(f"order must be one order, got shape {self.order.shape}")
        check_finite("theta", theta, 0)
        self.theta = float(theta)

    def __repr__(self) -> str:
        return f"KendallMallows({self.order.tolist()}, {self.theta:g})"

    @classmethod
    def fit(cls, orders: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """Fit by maximum likelihood: σ₀ minimises the total distance to the orders (Kemeny), and θ matches its mean.

        Parameters
        ----------
        orders : array-like of int, shape (n_voters, n_items)
            Each lists all items, best first.
        sample_weight : array-like of shape (n_voters,), optional
            Number of times each order was given.
        """
        checked = check_orders(orders)
        if checked.ndim != 2:
            raise InputError(f"orders must be a table of voters and ranks, got shape {checked.shape}")
        weights = read_weights(sample_weight, len(checked), None)
        n = checked.shape[1]
        ballots = Ballots(-np.argsort(checked, axis=1).astype(float), list(range(n)), weights=weights)
        central = kemeny(pairwise_counts(ballots), ballots.total)
        normaliser = KendallNormaliser(n)
        theta = maximum_likelihood(normaliser, central.cost / ballots.total)
        doubts = {
            "the central order is not proven to be the best": not central.optimal,
            "theta is 0: these orders agree no more than random ones": theta == 0,
            "all voters agree, so the likelihood grows with theta without end": theta
            == normaliser.largest_theta,
        }
        for doubt, holds in doubts.items():
            if holds:
                warn(doubt, ConvergenceWarning)
        return cls(central.order, theta)

    def moments(self) -> DivergenceMoments:
        """Return ``log Z(θ)``, and the mean and variance of the distance from the central order."""
        return KendallNormaliser(len(self.order)).at(self.theta)

    def log_probability(self, orders: ArrayLike) -> float | np.ndarray:
        """Log-probability of one order, or of each row of a table of orders."""
        checked = check_orders(orders, len(self.order))
        distance = kendall_distance(rankings=(np.argsort(self.order), np.argsort(checked, axis=-1)))
        found = -self.theta * np.asarray(distance) - self.moments().log_z
        return float(found) if found.ndim == 0 else found

    def probability(self, orders: ArrayLike) -> float | np.ndarray:
        """Probability of one order, or of each row of a table of orders."""
        found = np.exp(self.log_probability(orders))
        return float(found) if np.ndim(found) == 0 else found

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw independent orders by repeated insertion, one per row."""
        check_count("n_samples", n_samples)
        rng, n = generator(random_state), len(self.order)
        edges = np.cumsum(np.exp(-self.theta * np.arange(n)))
        uniform = (
            rng.random((n_samples, n)) * edges
        )  # for item j, uniform up to the sum of the first j probabilities
        passed = np.searchsorted(edges, uniform, side="right")
        found = np.empty((n_samples, n), dtype=np.intp)
        for row, jumps in zip(found, passed.tolist(), strict=True):
            made: list[int] = []
            for item, jump in zip(self.order.tolist(), jumps, strict=True):
                made.insert(len(made) - jump, item)
            row[:] = made
        return found
