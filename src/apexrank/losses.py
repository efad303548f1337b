"""Losses ℓ(z) of a positive–negative pair with margin ``z = f_i − g_k`` (JMLR 2009, sec. 2).

All are convex, non-negative and decreasing except :class:`ZeroOne`, which is for evaluation only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from apexrank.errors import InputError
from apexrank.validation import Registry


@dataclass(frozen=True)
class Loss:
    """Base class of losses, with a value and a slope.

    ``least_elasticity`` is the smallest elasticity ``1 + r·g''/g'`` of a price for which ``Σ g(Σ ℓ)`` is convex.
    ``reaches_zero`` tells whether the loss is exactly 0 for large margins.
    """

    name: ClassVar[str]
    least_elasticity: ClassVar[float] = 1.0
    reaches_zero: ClassVar[bool] = False

    def value(self, z: np.ndarray) -> np.ndarray:
        """Loss ℓ(z)."""
        raise NotImplementedError

    def slope(self, z: np.ndarray) -> np.ndarray:
        """Derivative ℓ'(z)."""
        raise NotImplementedError


@dataclass(frozen=True)
class Exponential(Loss):
    """Exponential loss ℓ(z) = exp(−z) of RankBoost and the P-Norm Push.

    Examples
    --------
    >>> float(Exponential().value(0.0))
    1.0
    """

    name: ClassVar[str] = "exponential"
    least_elasticity: ClassVar[float] = 0.0

    def value(self, z: np.ndarray) -> np.ndarray:
        return np.exp(-np.asarray(z))

    def slope(self, z: np.ndarray) -> np.ndarray:
        return -np.exp(-np.asarray(z))


@dataclass(frozen=True)
class Logistic(Loss):
    """Logistic loss ℓ(z) = ln(1 + exp(−z)), with the natural logarithm as in the papers' Tables 1 and 2.

    It bounds the 0-1 loss only after division by ln 2.
    """

    name: ClassVar[str] = "logistic"

    def value(self, z: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, -np.asarray(z))

    def slope(self, z: np.ndarray) -> np.ndarray:
        return -np.exp(-np.logaddexp(0.0, np.asarray(z)))


@dataclass(frozen=True)
class Hinge(Loss):
    """Hinge loss ℓ(z) = max(0, 1 − z), with slope 0 at the kink z = 1."""

    name: ClassVar[str] = "hinge"
    reaches_zero: ClassVar[bool] = True

    def value(self, z: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, 1.0 - np.asarray(z))

    def slope(self, z: np.ndarray) -> np.ndarray:
        return np.where(np.asarray(z) < 1.0, -1.0, 0.0)


@dataclass(frozen=True)
class SmoothHinge(Loss):
    """Hinge loss smoothed over ``width``: never larger than the hinge, and smaller by at most ``width/2``.

    ℓ(z) = (1 − z)²/(2·width) for 0 ≤ 1 − z ≤ width, and 1 − z − width/2 for larger losses. It is used to certify fits
    with the hinge.

    Examples
    --------
    >>> SmoothHinge(0.5).value(np.array([1.0, 0.5, 0.0])).tolist()
    [0.0, 0.25, 0.75]
    """

    name: ClassVar[str] = "smooth_hinge"
    reaches_zero: ClassVar[bool] = True
    width: float = 1.0

    def value(self, z: np.ndarray) -> np.ndarray:
        part = np.clip(1.0 - np.asarray(z), 0.0, self.width)
        return part * (2 * np.maximum(0.0, 1.0 - np.asarray(z)) - part) / (2 * self.width)

    def slope(self, z: np.ndarray) -> np.ndarray:
        return -np.clip((1.0 - np.asarray(z)) / self.width, 0.0, 1.0)


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """Squared hinge loss ℓ(z) = max(0, 1 − z)²."""

    name: ClassVar[str] = "squared_hinge"
    least_elasticity: ClassVar[float] = 0.5
    reaches_zero: ClassVar[bool] = True

    def value(self, z: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, 1.0 - np.asarray(z)) ** 2

    def slope(self, z: np.ndarray) -> np.ndarray:
        return -2.0 * np.maximum(0.0, 1.0 - np.asarray(z))


@dataclass(frozen=True)
class ZeroOne(Loss):
    """0-1 loss ℓ(z) = 1[z ≤ 0], for evaluation only; a tie counts as a misrank, as in the papers."""

    name: ClassVar[str] = "zero_one"
    least_elasticity: ClassVar[float] = np.inf
    reaches_zero: ClassVar[bool] = True

    def value(self, z: np.ndarray) -> np.ndarray:
        return (np.asarray(z) <= 0).astype(float)

    def slope(self, z: np.ndarray) -> np.ndarray:
        raise InputError("the zero-one loss has no useful slope: it evaluates rankings but cannot fit them")


LOSSES: Registry[Loss] = Registry(
    "`loss`", Loss, (Exponential, Logistic, Hinge, SquaredHinge, ZeroOne), unlisted=("zero_one",)
)
