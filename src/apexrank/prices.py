"""Prices g(r) of the height of an item (JMLR 2009, sec. 2); a steeper price pushes harder at the top.

Prices are computed in logarithms of value and argument, so that ``r ** 1024`` never overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from apexrank.errors import InputError
from apexrank.validation import Registry


def softplus(t: np.ndarray) -> np.ndarray:
    """Compute ln(1 + exp(t)) without overflow."""
    return np.logaddexp(0.0, t)


_GRID = np.linspace(-6, 6, 1201) * np.log(10)  # logarithms of the heights at which a price is checked


@dataclass(frozen=True)
class Price:
    """Base class of prices: ``log g(r)`` and ``log g'(r)`` as functions of ``log r``.

    With the exponential loss an objective minimises ``log(R) / order`` if ``log_convex`` is True, that is, if this is
    convex in the scores, and ``R`` itself otherwise.
    """

    name: ClassVar[str]
    log_convex: ClassVar[bool] = False

    @property
    def order(self) -> float:
        """Exponent p of ``R ** (1/p)``; 1 unless the price is a power."""
        return 1.0

    def log_value(self, log_r: np.ndarray) -> np.ndarray:
        """Logarithm of g(r)."""
        raise NotImplementedError

    def log_slope(self, log_r: np.ndarray) -> np.ndarray:
        """Logarithm of g'(r)."""
        raise NotImplementedError

    def elasticity(self, log_r: np.ndarray) -> np.ndarray:
        """Elasticity ``1 + r·g''(r)/g'(r)``, the slope of ``log(r·g'(r))`` in ``log r``, by a central difference."""
        h = 1e-5
        return 1.0 + (self.log_slope(log_r + h) - self.log_slope(log_r - h)) / (2 * h)

    def falls(self) -> bool:
        """Return whether g' is negative anywhere on a grid of r from 1e-6 to 1e6."""
        with np.errstate(all="ignore"):
            return bool(np.isnan(self.log_slope(_GRID)).any())

    def least_elasticity(self) -> float:
        """Smallest mean elasticity between neighbours on a grid of r from 1e-6 to 1e6; minus infinity if g decreases.

        Means between grid points are used instead of values at the points, so as not to miss a drop of the slope
        between two of them.
        """
        with np.errstate(all="ignore"):
            steps = 1.0 + np.diff(self.log_slope(_GRID)) / np.diff(_GRID)
        return -np.inf if self.falls() else float(np.min(steps[~np.isnan(steps)], initial=np.inf))

    def value(self, r: np.ndarray) -> np.ndarray:
        """Price g(r)."""
        with np.errstate(divide="ignore"):
            return np.exp(self.log_value(np.log(r)))

    def slope(self, r: np.ndarray) -> np.ndarray:
        """Derivative g'(r)."""
        with np.errstate(divide="ignore"):
            return np.exp(self.log_slope(np.log(r)))


@dataclass(frozen=True)
class Power(Price):
    """Power price g(r) = r**p; a larger p pushes harder at the top (JMLR 2009, sec. 2).

    Examples
    --------
    >>> round(float(Power(4).value(3.0)), 9)
    81.0
    """

    name: ClassVar[str] = "power"
    log_convex: ClassVar[bool] = True
    p: float = 4.0

    def __post_init__(self) -> None:
        if not isinstance(self.p, Real) or not 1 <= float(self.p) < np.inf:
            raise InputError(f"`p` must be a finite number of at least 1, got {self.p!r}")

    @property
    def order(self) -> float:
        return float(self.p)

    def log_value(self, log_r: np.ndarray) -> np.ndarray:
        return self.p * log_r

    def log_slope(self, log_r: np.ndarray) -> np.ndarray:
        # p = 1 has slope 1 everywhere, also at log r = −inf, where (p − 1)·log r would be nan
        return np.log(self.p) + (self.p - 1) * log_r if self.p > 1 else np.zeros_like(log_r)

    def elasticity(self, log_r: np.ndarray) -> np.ndarray:
        return np.full_like(log_r, self.p)


@dataclass(frozen=True)
class Identity(Price):
    """Identity price g(r) = r, without a push, as in RankBoost."""

    name: ClassVar[str] = "identity"
    log_convex: ClassVar[bool] = True

    def log_value(self, log_r: np.ndarray) -> np.ndarray:
        return log_r

    def log_slope(self, log_r: np.ndarray) -> np.ndarray:
        return np.zeros_like(log_r)

    def elasticity(self, log_r: np.ndarray) -> np.ndarray:
        return np.ones_like(log_r)


@dataclass(frozen=True)
class Exponential(Price):
    """Exponential price g(r) = exp(r), steeper than any power."""

    name: ClassVar[str] = "exponential"
    log_convex: ClassVar[bool] = True

    def log_value(self, log_r: np.ndarray) -> np.ndarray:
        return np.exp(log_r)

    def log_slope(self, log_r: np.ndarray) -> np.ndarray:
        return np.exp(log_r)

    def elasticity(self, log_r: np.ndarray) -> np.ndarray:
        return 1.0 + np.exp(log_r)


@dataclass(frozen=True)
class Log1p(Price):
    """Logarithmic price g(r) = ln(1 + r) of the IR Push (JMLR 2009, sec. 7); convex with the exponential loss."""

    name: ClassVar[str] = "log1p"

    def log_value(self, log_r: np.ndarray) -> np.ndarray:
        # ln(1 + r) = r to double precision below exp(−37), where softplus would lose its logarithm
        return np.where(log_r < -37, log_r, np.log(softplus(np.maximum(log_r, -37))))

    def log_slope(self, log_r: np.ndarray) -> np.ndarray:
        return -softplus(log_r)

    def elasticity(self, log_r: np.ndarray) -> np.ndarray:
        return np.exp(-softplus(log_r))


@dataclass(frozen=True)
class Custom(Price):
    """User-defined price, a pair of vectorised callables ``g(r)`` and ``g'(r)`` for r > 0.

    Whether the objective is convex depends on the loss; :func:`apexrank.objectives.form_of` checks it.

    Examples
    --------
    >>> quadratic = Custom(lambda r: r + r**2, lambda r: 1 + 2 * r)
    >>> round(float(quadratic.value(2.0)), 9)
    6.0
    """

    name: ClassVar[str] = "custom"
    g: Callable[[np.ndarray], np.ndarray]
    dg: Callable[[np.ndarray], np.ndarray]

    def log_value(self, log_r: np.ndarray) -> np.ndarray:
        return np.log(self.g(np.exp(log_r)))

    def log_slope(self, log_r: np.ndarray) -> np.ndarray:
        return np.log(self.dg(np.exp(log_r)))


PRICES: Registry[Price] = Registry("`price`", Price, (Power, Identity, Exponential, Log1p))
