"""Mixtures of Lovász–Mallows densities by expectation and maximisation.

    p(x) = Σ_k w_k·exp(−θ_k·d(x‖σ_k))/Z(θ_k, σ_k).

Given the shares r_ik of the voters, the best order of component k is that of ``Σ_i r_ik x_i`` and its best θ solves
``E_θ[d] = Σ_i r_ik d(x_i‖σ_k)/Σ_i r_ik``. Both are exact where f is a function of the size of a set. Any other f has a
normaliser for each order; the order of the mean is then only a proposal, taken where it raises the likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from apexrank.aggregation.annealing import AnnealedNormaliser
from apexrank.aggregation.lovasz_bregman import LovaszBregman
from apexrank.aggregation.mallows_density import (
    MAX_STATES,
    BoxNormaliser,
    Normaliser,
    maximum_likelihood,
    n_states,
    size_gains,
    subset_values,
    too_large,
)
from apexrank.errors import InputError
from apexrank.submodular import orders_of

SMOOTHING = 0.1  # share of a voter that the start spreads over all components


class Normalisers:
    """The normaliser for each order: one for all where f is a function of the size of a set.

    Parameters
    ----------
    divergence : LovaszBregman
        Whose divergence.
    n : int
        Number of items.
    method : {"auto", "exact", "monte_carlo"}
        "auto" is exact where the states can be listed.
    n_particles : int
        Of the Monte Carlo method, see :class:`~apexrank.aggregation.annealing.AnnealedNormaliser`.

    Examples
    --------
    >>> normalisers = Normalisers(LovaszBregman("sqrt"), 4)
    >>> normalisers.of(np.arange(4)) is normalisers.of(np.arange(4)[::-1])
    True
    """

    def __init__(
        self, divergence: LovaszBregman, n: int, method: str = "auto", n_particles: int = 64
    ) -> None:
        if method not in ("auto", "exact", "monte_carlo"):
            raise InputError(f"unknown normaliser {method!r}: use auto, exact or monte_carlo")
        self.divergence, self.n = divergence, n
        self.by_size = size_gains(divergence.f, n) is not None
        self._values: np.ndarray | None = None
        self._known: dict[bytes, Normaliser] = {}
        fits = n_states(divergence.f, n) <= MAX_STATES
        if method == "exact" and not fits:
            raise too_large(n)
        if method == "monte_carlo" or not fits:
            self._known[b""] = AnnealedNormaliser(divergence.f, n, n_particles)

    def of(self, order: np.ndarray) -> Normaliser:
        """The normaliser of an order."""
        key = b"" if self.by_size else order.tobytes()
        if key not in self._known:
            if not self.by_size and self._values is None:
                self._values = subset_values(self.divergence.f, self.n)
            self._known[key] = BoxNormaliser(self.divergence.f, self.n, order, self._values)
        return self._known[key]


class Component(NamedTuple):
    """An order and how strongly voters hold to it."""

    order: np.ndarray
    theta: float


@dataclass(frozen=True, eq=False)
class Mixture:
    """Weights and components, with what is needed to evaluate them."""

    weights: np.ndarray
    components: list[Component]
    normalisers: Normalisers

    def log_joint(self, X: np.ndarray) -> np.ndarray:
        """``log w_k + log p(x_i|θ_k, σ_k)``, one row per voter."""
        orders = np.array([component.order for component in self.components])
        thetas = np.array([component.theta for component in self.components])
        log_z = [self.normalisers.of(order).at(theta).log_z for order, theta in self.components]
        with np.errstate(divide="ignore"):  # a component that nobody is in has weight 0
            constant = np.log(self.weights) - log_z
        return constant - thetas * self.normalisers.divergence.divergence(X, orders)


class Run(NamedTuple):
    """Where one start led, and the log-likelihood after each step."""

    mixture: Mixture
    history: list[float]
    converged: bool


def best_component(
    X: np.ndarray, shares: np.ndarray, normalisers: Normalisers, fixed: float | None, old: Component | None
) -> Component:
    """The component of largest weighted likelihood ``Σ_i r_i·log p(x_i|θ, σ)``; never one worse than the old one.

    Examples
    --------
    >>> X = np.array([[0.9, 0.5, 0.4], [0.6, 0.8, 0.1]])
    >>> order, theta = best_component(X, np.ones(2), Normalisers(LovaszBregman("sqrt"), 3), None, None)
    >>> order.tolist(), round(theta, 2)
    ([0, 1, 2], 6.45)
    """
    total = float(shares.sum())
    if old is not None and total <= 1e-10:
        return old

    def mean_divergence(order: np.ndarray) -> float:
        return float(shares @ normalisers.divergence.divergence(X, order)) / total

    def fitted(order: np.ndarray) -> Component:
        if fixed is not None:
            return Component(order, fixed)
        start = 1.0 if old is None else old.theta
        return Component(order, maximum_likelihood(normalisers.of(order), mean_divergence(order), start))

    def value(component: Component) -> float:
        moments = normalisers.of(component.order).at(component.theta)
        return -component.theta * mean_divergence(component.order) - moments.log_z

    new = fitted(orders_of(shares @ X))
    if old is None:
        return new
    candidates = [new, old] if normalisers.by_size else [new, fitted(old.order), old]
    return max(candidates, key=value)


def spread_start(X: np.ndarray, k: int, divergence: LovaszBregman, rng: np.random.Generator) -> np.ndarray:
    """First shares: voters drawn by their divergence from those before, and all others with the nearest of them."""
    orders = [orders_of(X[rng.integers(len(X))])]
    while len(orders) < k:
        nearest = np.min(divergence.divergence(X, np.array(orders)), axis=1)
        chance = nearest / nearest.sum() if nearest.sum() > 0 else None
        orders.append(orders_of(X[rng.choice(len(X), p=chance)]))
    nearest_order = np.argmin(divergence.divergence(X, np.array(orders)), axis=1)
    return np.eye(k)[nearest_order] * (1 - SMOOTHING) + SMOOTHING / k


def expectation_maximisation(
    X: np.ndarray,
    shares: np.ndarray,
    normalisers: Normalisers,
    fixed: np.ndarray | None = None,
    *,
    max_iter: int = 200,
    tol: float = 1e-6,
) -> Run:
    """Climb from the given shares (voters × components) until a step raises the mean log-likelihood by at most tol.

    A step finds the best components for the shares, then their shares. One component has its answer after one step.

    Examples
    --------
    >>> X = np.array([[0.9, 0.5, 0.4], [0.8, 0.7, 0.3], [0.1, 0.4, 0.8], [0.0, 0.5, 0.3]])
    >>> normalisers = Normalisers(LovaszBregman("sqrt"), 3)
    >>> run = expectation_maximisation(X, np.eye(2)[[0, 0, 1, 1]], normalisers, np.array([9.0, 9.0]))
    >>> [order.tolist() for order, theta in run.mixture.components], run.converged
    ([[0, 1, 2], [2, 1, 0]], True)
    """
    k = shares.shape[1]
    components: list[Component | None] = [None] * k
    history: list[float] = []
    while True:
        found = [
            best_component(
                X, shares[:, j], normalisers, None if fixed is None else float(fixed[j]), components[j]
            )
            for j in range(k)
        ]
        mixture = Mixture(shares.mean(axis=0), found, normalisers)
        joint = mixture.log_joint(X)
        total = logsumexp(joint, axis=1)
        history.append(float(total.sum()))
        gain = history[-1] - history[-2] if len(history) > 1 else np.inf
        converged = k == 1 or gain <= tol * len(X)
        if converged or len(history) >= max_iter:
            return Run(mixture, history, bool(converged))
        shares = np.exp(joint - total[:, None])
        components = list(found)
