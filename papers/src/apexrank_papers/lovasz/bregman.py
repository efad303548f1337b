"""Generalised Bregman divergences by subgradient maps, and k-means with any Bregman divergence (Iyer and Bilmes 2013).

Both serve for comparison with the Lovász–Bregman divergence: section 2.1 defines its class, and section 4 adds other
Bregman divergences to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from apexrank.aggregation.kmeans import Centres, Cost, LovaszBregmanKMeans
from apexrank.aggregation.lovasz_bregman import LovaszBregman
from apexrank.divergences import DIVERGENCES, Divergence
from apexrank.errors import InputError
from apexrank.kernels.assign import Costs, Table
from apexrank.submodular import Cardinality, SetFunction

MODULAR = Cardinality("linear")


@dataclass(frozen=True)
class SubgradientBregman:
    """``d(x, y) = φ(x) − φ(y) − <H(y), x − y>`` of a convex φ and a subgradient map H(y) ∈ ∂φ(y) (eq. 6).

    Where φ is differentiable, H is its gradient and d the Bregman divergence. Elsewhere different maps give different
    divergences, all convex in x, and all with d(x, a) − d(x, b) affine in x (Theorem 2.1).

    Parameters
    ----------
    phi : callable
        φ of a vector, or of each row of a table.
    subgradient : callable
        H(y) of a vector.

    Examples
    --------
    Example 2.1: the l1 norm, with H(0) = 0 and with H(0) = (1, −1).

    >>> def l1(x):
    ...     return np.abs(x).sum(axis=-1)
    >>> SubgradientBregman(l1, np.sign).divergence([3.0, -2.0], [0.0, 0.0])
    5.0
    >>> other = SubgradientBregman(l1, lambda y: np.where(y == 0, [1.0, -1.0], np.sign(y)))
    >>> other.divergence([[3.0, -2.0], [-3.0, 2.0]], [0.0, 0.0]).tolist()
    [0.0, 10.0]
    """

    phi: Callable[[np.ndarray], np.ndarray]
    subgradient: Callable[[np.ndarray], np.ndarray]

    def divergence(self, x: ArrayLike, y: ArrayLike) -> float | np.ndarray:
        """Compute ``d(x, y)`` for one vector x or for each row of a table."""
        points, centre = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        found = self.phi(points) - self.phi(centre) - (points - centre) @ self.subgradient(centre)
        return float(found) if np.ndim(found) == 0 else found


@dataclass(frozen=True)
class SumCost(Cost):
    """``d_f(x‖σ) + D_φ(x‖μ) = [f̂(x) + φ(x)] + [<∇φ(μ), μ> − φ(μ)] − x·(h_σ + ∇φ(μ))``, linear but for a constant."""

    bregman: Divergence

    def centres(self, means: np.ndarray, orders: np.ndarray | None = None) -> Centres:
        """Return the means with their own orders, or with given ones."""
        if orders is None:
            orders = np.argsort(-means, axis=1, kind="stable")
        slopes, nothing = self.bregman.grad(means), np.zeros(len(means))
        if not np.isfinite(slopes).all():
            raise InputError(
                f"a centre is on the boundary of the domain of {self.bregman.name}: move X inside"
            )
        bias = np.einsum("ij,ij->i", slopes, means) - self.bregman.phi(means)
        return Centres(means, orders, Costs(self.divergence.gradients(orders) + slopes, bias, nothing, 0.0))

    def table(self, X: np.ndarray) -> Table:
        """Return the rows unchanged, because D_φ depends on their means."""
        return Table(X, np.zeros(len(X)), self.divergence.extension(X) + self.bregman.phi(X))


@dataclass(eq=False, repr=False)
class BregmanKMeans(LovaszBregmanKMeans):
    """k-means with a Bregman divergence D_φ(x‖μ), to which a Lovász–Bregman divergence may be added.

    The mean is the best centre for every Bregman divergence, so the steps are those of `LovaszBregmanKMeans`.

    Parameters
    ----------
    bregman : str or Divergence
        φ: "squared", "i-divergence" or another of :mod:`apexrank.divergences`.
    f : str or SetFunction
        Set function; by default modular, with Lovász–Bregman divergence 0.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((50, 3))
    >>> both = BregmanKMeans(4, bregman="squared", f="sqrt", random_state=0).fit(X)
    >>> same = LovaszBregmanKMeans(4, f="sqrt", euclidean=1.0, random_state=0).fit(X)
    >>> abs(both.inertia_ - same.inertia_) < 1e-12
    True
    """

    _parameter_constraints: ClassVar[dict] = LovaszBregmanKMeans._parameter_constraints | {
        "bregman": [str, Divergence]
    }

    f: str | SetFunction = MODULAR
    bregman: str | Divergence = "squared"

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the nearest centre of each row."""
        return self.transform(X).argmin(axis=1)

    def _cost(self) -> Cost:
        return SumCost(LovaszBregman(self.f), 1.0, DIVERGENCES.get(self.bregman))
