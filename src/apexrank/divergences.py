"""Bregman divergences ``D_φ(x‖y) = φ(x) − φ(y) − <∇φ(y), x − y>`` (Acharyya 2013, chapter 2).

``∇φ`` takes a point to its natural parameters θ, and its inverse, the link, takes them back; the link is the gradient
of the conjugate ``ψ(θ) = max_x <θ, x> − φ(x)``. A separable divergence (φ is a sum over the coordinates) is defined by
a few scalar formulas; only KL, which is defined on the simplex, is not separable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, logsumexp, rel_entr, softmax, xlog1py, xlogy

from apexrank.errors import InputError
from apexrank.validation import Registry

SUM_TOL = 1e-9  # allowed deviation of the sum of a point on the simplex from 1
NEAR = 0.5  # relative distance below which the plain formulas suffer from cancellation
SERIES = 1.0 / np.arange(3, 45, 2)  # atanh(s) − s = s³/3 + s⁵/5 + …, to double precision for |s| ≤ 1/3


def _atanh_rest(s: np.ndarray) -> np.ndarray:
    """Return ``atanh(s) − s`` for |s| ≤ 1/3."""
    return s**3 * np.polynomial.polynomial.polyval(s * s, SERIES)


def _nearness(y: np.ndarray, difference: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a mask of x near y, and ``u = (x − y)/y`` and ``s = u/(2 + u)`` there (0 elsewhere)."""
    near = np.abs(difference) < NEAR * y
    u = np.divide(difference, y, where=near, out=np.zeros(np.shape(near)))
    return near, u, u / (2 + u)


def _relative_entropy(x: np.ndarray, y: np.ndarray, difference: np.ndarray) -> np.ndarray:
    """Return ``x·log(x/y) − x + y``, given x − y as well, without cancellation.

    The value is ``y·((1 + u)·log(1 + u) − u)``; since ``log(1 + u) = 2·atanh(s)``, the bracket is
    ``u·s + 2·(1 + u)·(atanh(s) − s)``.
    """
    near, u, s = _nearness(y, difference)
    return np.where(near, y * (u * s + 2 * (1 + u) * _atanh_rest(s)), rel_entr(x, y) - x + y)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sum(a * b, axis=-1)


@dataclass(frozen=True)
class Divergence:
    """Base class of divergences, with ``phi``, ``grad``, ``grad_inv`` and a domain. Sums run along the last axis."""

    name: ClassVar[str]
    domain: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    domain_text: ClassVar[str] = "finite"

    def phi(self, x: ArrayLike) -> np.ndarray:
        """Generating function φ(x)."""
        raise NotImplementedError

    def grad(self, x: ArrayLike) -> np.ndarray:
        """Natural parameters ∇φ(x); infinite at the boundary of the domain."""
        raise NotImplementedError

    def grad_inv(self, theta: ArrayLike) -> np.ndarray:
        """Link (∇φ)⁻¹(θ), the point with natural parameters θ."""
        raise NotImplementedError

    def divergence(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        """Divergence ``D_φ(x‖y)``, infinite if y is on the boundary and x is not; accurate for x near y."""
        raise NotImplementedError

    def conjugate(self, theta: ArrayLike) -> np.ndarray:
        """Conjugate ``ψ(θ) = max_x <θ, x> − φ(x)``; the maximum is attained at the link."""
        raise NotImplementedError

    def conjugate_hess_dot(self, theta: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Product ``∇²ψ(θ) v``, the derivative of the link in the direction v."""
        raise NotImplementedError

    def conjugate_grad(self, theta: ArrayLike) -> np.ndarray:
        """Gradient ``∇ψ(θ)``, which is the link."""
        return self.grad_inv(theta)

    def fenchel_young(self, x: ArrayLike, theta: ArrayLike) -> np.ndarray:
        """Fenchel–Young loss ``φ(x) + ψ(θ) − <θ, x>``: ``D_φ(x ‖ link(θ))`` without the link, convex in θ."""
        return self.phi(x) + self.conjugate(theta) - _dot(np.asarray(theta, dtype=float), self.check(x))

    def check(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        """Return x as an array of floats; raise InputError for values outside the domain."""
        point = np.asarray(x, dtype=float)
        low, high = self.domain
        if not np.all(np.isfinite(point)) or np.any((point < low) | (point > high)):
            raise InputError(f"{self.name} needs {name} to be {self.domain_text} in every coordinate")
        return point


@dataclass(frozen=True)
class Separable(Divergence):
    """Weighted, identically separable divergence with ``φ(x) = Σ_i w_i f(x_i)``; w is 1 by default.

    A subclass defines f, f', the inverse of f', and the slope of that inverse. The conjugate of f and the divergence of
    two numbers follow from these; subclasses override them where the definition would lose digits.
    """

    theta_upper: ClassVar[float] = np.inf  # exclusive upper bound of the natural parameters
    weight: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.weight is None:
            return
        weight = np.asarray(self.weight, dtype=float)
        if weight.ndim != 1 or not np.all((weight > 0) & np.isfinite(weight)):
            raise InputError("`weight` must be a list of finite numbers above 0, one for each coordinate")
        object.__setattr__(self, "weight", tuple(weight.tolist()))

    @cached_property
    def weights(self) -> np.ndarray | float:
        """Weights as an array, or 1."""
        return 1.0 if self.weight is None else np.array(self.weight)

    def phi(self, x: ArrayLike) -> np.ndarray:
        return np.sum(self.weights * self._f(self.check(x)), axis=-1)

    def grad(self, x: ArrayLike) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return self.weights * self._grad(self.check(x))

    def grad_inv(self, theta: ArrayLike) -> np.ndarray:
        return self._apply(self._link, theta)

    def divergence(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        return np.sum(self.weights * self._distance(self.check(x), self.check(y, "y")), axis=-1)

    def conjugate(self, theta: ArrayLike) -> np.ndarray:
        return np.sum(self.weights * self._apply(self._conjugate, theta), axis=-1)

    def conjugate_hess_dot(self, theta: ArrayLike, v: ArrayLike) -> np.ndarray:
        return self.link_slope(theta) * np.asarray(v, dtype=float)

    def link_slope(self, theta: ArrayLike) -> np.ndarray:
        """Diagonal of ``∇²ψ(θ)``."""
        return self._apply(self._link_slope, theta) / self.weights

    def check(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        point = super().check(x, name)
        n = 0 if self.weight is None else len(self.weight)
        if n and point.shape[-1:] != (n,):
            raise InputError(f"{name} needs {n} coordinates, one for each weight, got {point.shape}")
        return point

    def _apply(self, formula: Callable[[np.ndarray], np.ndarray], theta: ArrayLike) -> np.ndarray:
        unit = np.asarray(theta, dtype=float) / self.weights
        if self.theta_upper < np.inf and np.any(unit >= self.theta_upper):
            raise InputError(f"{self.name} needs natural parameters below {self.theta_upper:g}")
        with np.errstate(over="ignore"):
            return formula(unit)

    def _f(self, x: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _grad(self, x: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _link(self, theta: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _link_slope(self, theta: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _conjugate(self, theta: np.ndarray) -> np.ndarray:
        x = self._link(theta)
        return theta * x - self._f(x)

    def _distance(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._f(x) - self._f(y) - self._grad(y) * (x - y)


@dataclass(frozen=True)
class Squared(Separable):
    """Squared distance ``½·Σ w_i (x_i − y_i)²``; the gradient is w·x, so without weights the link is the identity.

    Examples
    --------
    >>> float(Squared().divergence([1.0, 2.0], [0.0, 0.0]))
    2.5
    >>> float(Squared(weight=(1.0, 3.0)).divergence([1.0, 2.0], [0.0, 0.0]))
    6.5
    """

    name: ClassVar[str] = "squared"

    def _f(self, x):
        return 0.5 * x * x

    def _grad(self, x):
        return x.copy()

    def _link(self, theta):
        return theta

    def _link_slope(self, theta):
        return np.ones_like(theta)

    def _conjugate(self, theta):
        return 0.5 * theta * theta

    def _distance(self, x, y):
        return 0.5 * (x - y) ** 2


@dataclass(frozen=True)
class IDivergence(Separable):
    """Generalised I-divergence ``Σ x_i log(x_i/y_i) − x_i + y_i`` on x ≥ 0; link exp.

    Examples
    --------
    >>> float(IDivergence().divergence([0.0, 1.0], [2.0, 1.0]))
    2.0
    """

    name: ClassVar[str] = "i-divergence"
    domain: ClassVar[tuple[float, float]] = (0.0, np.inf)
    domain_text: ClassVar[str] = "finite and at least 0"

    def _f(self, x):
        return xlogy(x, x) - x

    def _grad(self, x):
        return np.log(x)

    def _link(self, theta):
        return np.exp(theta)

    def _link_slope(self, theta):
        return np.exp(theta)

    def _conjugate(self, theta):
        return np.exp(theta)

    def _distance(self, x, y):
        return _relative_entropy(x, y, x - y)


@dataclass(frozen=True)
class ShiftedIDivergence(Separable):
    """I-divergence of ``x − 1`` and ``y − 1`` on x ≥ 1; link ``1 + exp``, so that no target is ever 0.

    The dissertation's Table 3.1 prints this divergence beside the unshifted φ and link.

    Examples
    --------
    >>> ShiftedIDivergence().grad_inv([0.0, -40.0]).tolist()
    [2.0, 1.0]
    """

    name: ClassVar[str] = "shifted-i-divergence"
    domain: ClassVar[tuple[float, float]] = (1.0, np.inf)
    domain_text: ClassVar[str] = "finite and at least 1"

    def _f(self, x):
        return xlogy(x - 1, x - 1) - (x - 1)

    def _grad(self, x):
        return np.log(x - 1)

    def _link(self, theta):
        return 1 + np.exp(theta)

    def _link_slope(self, theta):
        return np.exp(theta)

    def _conjugate(self, theta):
        return theta + np.exp(theta)

    def _distance(self, x, y):
        return _relative_entropy(x - 1, y - 1, x - y)


@dataclass(frozen=True)
class ItakuraSaito(Separable):
    """Itakura–Saito divergence ``Σ x_i/y_i − log(x_i/y_i) − 1`` on x > 0; scale-invariant; link ``−1/θ`` for θ < 0.

    Examples
    --------
    >>> atom = ItakuraSaito()
    >>> float(atom.divergence([2.0], [1.0])) == float(atom.divergence([2e9], [1e9]))
    True
    """

    name: ClassVar[str] = "itakura-saito"
    domain: ClassVar[tuple[float, float]] = (np.nextafter(0.0, 1.0), np.inf)
    domain_text: ClassVar[str] = "finite and above 0"
    theta_upper: ClassVar[float] = 0.0

    def _f(self, x):
        return -np.log(x)

    def _grad(self, x):
        return -1 / x

    def _link(self, theta):
        return -1 / theta

    def _link_slope(self, theta):
        return theta**-2

    def _conjugate(self, theta):
        return -1 - np.log(-theta)

    def _distance(self, x, y):
        near, u, s = _nearness(y, x - y)
        with np.errstate(over="ignore", under="ignore"):
            ratio = x / y
        extreme = (ratio == 0) | np.isinf(ratio)
        log_ratio = np.where(extreme, np.log(x) - np.log(y), np.log(np.where(extreme, 1.0, ratio)))
        return np.where(near, u * s - 2 * _atanh_rest(s), ratio - log_ratio - 1)


@dataclass(frozen=True)
class Logistic(Separable):
    """Binary relative entropy ``Σ x_i log(x_i/y_i) + (1 − x_i) log((1 − x_i)/(1 − y_i))`` on 0 ≤ x ≤ 1; link sigmoid.

    Examples
    --------
    >>> round(float(Logistic().divergence([1.0], [0.5])), 12) == round(float(np.log(2)), 12)
    True
    """

    name: ClassVar[str] = "logistic"
    domain: ClassVar[tuple[float, float]] = (0.0, 1.0)
    domain_text: ClassVar[str] = "between 0 and 1"

    def _f(self, x):
        return xlogy(x, x) + xlog1py(1 - x, -x)

    def _grad(self, x):
        return logit(x)

    def _link(self, theta):
        return expit(theta)

    def _link_slope(self, theta):
        return expit(theta) * expit(-theta)

    def _conjugate(self, theta):
        return np.logaddexp(0.0, theta)

    def _distance(self, x, y):
        return _relative_entropy(x, y, x - y) + _relative_entropy(1 - x, 1 - y, y - x)


@dataclass(frozen=True)
class KL(Divergence):
    """Kullback–Leibler divergence ``Σ x_i log(x_i/y_i)`` on the simplex; link softmax, conjugate log-sum-exp.

    Natural parameters are determined up to a constant, because the gradient is taken along the simplex; ``grad``
    returns ``log x``.

    Examples
    --------
    >>> atom = KL()
    >>> float(atom.divergence([0.0, 1.0], [0.0, 1.0])), float(atom.divergence([0.5, 0.5], [0.0, 1.0]))
    (0.0, inf)
    >>> atom.grad_inv([1000.0, 1000.0]).tolist()
    [0.5, 0.5]
    """

    name: ClassVar[str] = "kl"
    domain: ClassVar[tuple[float, float]] = (0.0, np.inf)
    domain_text: ClassVar[str] = "finite and at least 0"

    def phi(self, x: ArrayLike) -> np.ndarray:
        point = self.check(x)
        return np.sum(xlogy(point, point), axis=-1)

    def grad(self, x: ArrayLike) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.check(x))

    def grad_inv(self, theta: ArrayLike) -> np.ndarray:
        return softmax(np.asarray(theta, dtype=float), axis=-1)

    def divergence(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        point, other = self.check(x), self.check(y, "y")
        # −x + y sums to 0 on the simplex, and adding it makes every term non-negative
        return np.sum(_relative_entropy(point, other, point - other), axis=-1)

    def conjugate(self, theta: ArrayLike) -> np.ndarray:
        return logsumexp(np.asarray(theta, dtype=float), axis=-1)

    def conjugate_hess_dot(self, theta: ArrayLike, v: ArrayLike) -> np.ndarray:
        point, direction = self.grad_inv(theta), np.asarray(v, dtype=float)
        return point * (direction - _dot(point, direction)[..., None])

    def check(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        point = super().check(x, name)
        total = np.sum(point, axis=-1)
        if np.any(np.abs(total - 1) > SUM_TOL):
            raise InputError(f"kl needs {name} to sum to 1 along its last axis: divide it by its sum")
        return point


DIVERGENCES: Registry[Divergence] = Registry(
    "`divergence`", Divergence, (Squared, KL, IDivergence, ShiftedIDivergence, ItakuraSaito, Logistic)
)
