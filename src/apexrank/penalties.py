"""Penalties on the coefficients of a linear model.

A penalty is ``½·w'Aw + l1·|w|₁`` on a box ``low ≤ w ≤ high`` that contains 0. Subclasses define A, l1 and the box; the
base class derives value, gradient, proximal operator, least-norm subgradient and duality gap from them. So a solver
that supports the L1 norm and bounds supports every penalty. The group lasso uses norms of groups instead of |w|₁.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from apexrank.errors import InputError
from apexrank.validation import check_between, check_finite

__all__ = ["Bounded", "ElasticNet", "GroupLasso", "Lasso", "NonNegative", "Penalty", "Quadratic", "Ridge"]

INFINITE = (-np.inf, np.inf)


class Penalty:
    """Base class of penalties: ``h(w) = ½·w'Aw + l1·|w|₁`` for ``low ≤ w ≤ high``, infinite elsewhere.

    Attributes
    ----------
    curvature : float or array of shape (d, d)
        A, positive semi-definite; a number stands for a multiple of the identity.
    convexity : float
        The smallest eigenvalue μ of A: h is μ-strongly convex.
    l1 : float
        Weight of the L1 norm.
    bounds : (float or array, float or array)
        The box, low ≤ 0 ≤ high: scalars for all coefficients or arrays with an entry for each.
    """

    l1: float = 0.0
    bounds: tuple[Any, Any] = INFINITE
    is_grouped: ClassVar[bool] = False

    @property
    def curvature(self) -> Any:
        raise NotImplementedError

    @property
    def convexity(self) -> float:
        return float(self.curvature)

    @property
    def is_bounded(self) -> bool:
        """Whether any coefficient has a finite bound."""
        low, high = self.bounds
        return bool(np.any(np.isfinite(low)) or np.any(np.isfinite(high)))

    @property
    def is_smooth(self) -> bool:
        """Whether the penalty is only quadratic, without L1 norm and bounds."""
        return self.l1 == 0 and not self.is_bounded

    def check(self, n_features: int) -> None:
        """Raise InputError if the parameters are invalid for ``n_features`` coefficients."""
        check_finite("alpha", getattr(self, "alpha", 0.0), 0)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as a scikit-learn estimator does; ``deep`` adds those of an inner penalty."""
        names: list[str] = [each.name for each in fields(self)] if is_dataclass(self) else []
        own: dict[str, Any] = {name: getattr(self, name) for name in names}
        if deep and isinstance(inner := own.get("base"), Penalty):
            own |= {f"base__{name}": value for name, value in inner.get_params().items()}
        return own

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, such as ``alpha`` or ``base__alpha``; GridSearchCV does so on a copy.

        Examples
        --------
        >>> Bounded(Ridge(1.0)).set_params(base__alpha=3.0).base
        Ridge(alpha=3.0)
        """
        known = self.get_params(deep=False)
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in known:
                raise InputError(f"{type(self).__name__} has no parameter {name!r}: use {', '.join(known)}")
            # change a copy of the inner penalty, because other penalties may share it
            known[name] = copy(known[name]).set_params(**{inner: value}) if inner else value
        self.__dict__.clear()  # drop cached properties of the old parameters
        self.__dict__.update(known)
        return self

    def smooth(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Return ``½·w'Aw`` and its gradient ``Aw``."""
        A = self.curvature
        slope = A @ w if isinstance(A, np.ndarray) else A * w
        return 0.5 * float(w @ slope), slope

    def value(self, w: np.ndarray) -> float:
        """Value ``h(w)``."""
        low, high = self.bounds
        if np.any(w < low) or np.any(w > high):
            return float("inf")
        return self.smooth(w)[0] + self.rough(w)

    def rough(self, w: np.ndarray) -> float:
        """Non-smooth part ``h(w) − ½·w'Aw`` inside the box."""
        return self.l1 * float(np.abs(w).sum()) if self.l1 else 0.0

    def hessian(self, n_features: int) -> np.ndarray:
        """Hessian A of the smooth part."""
        A = self.curvature
        return A.copy() if isinstance(A, np.ndarray) else A * np.eye(n_features)

    def diagonal(self, n_features: int) -> np.ndarray:
        """Diagonal of A."""
        A = self.curvature
        return np.diag(A) if isinstance(A, np.ndarray) else np.full(n_features, float(A))

    def least_multiple(self, slope: np.ndarray) -> float:
        """Smallest multiple of the non-smooth part for which 0 is a minimum, given the gradient at 0."""
        return float(np.abs(slope).max()) / self.l1

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """Proximal operator ``argmin_u ½·|u − v|² + step·(h(u) − ½·u'Au)`` of the non-smooth part.

        Examples
        --------
        >>> Lasso(1.0).prox(np.array([3.0, 0.5]), 2.0).tolist()
        [1.0, 0.0]
        """
        shrunk = np.sign(v) * np.maximum(np.abs(v) - step * self.l1, 0.0)
        return np.clip(shrunk, *self.bounds)

    def subgradient(self, w: np.ndarray, grad: np.ndarray) -> np.ndarray:
        """Least-norm subgradient of the whole problem at w, given the gradient of its smooth parts; 0 at a minimum.

        At a bound, components that point out of the box are 0.
        """
        if self.is_smooth:
            return grad
        low, high = self.bounds
        # with a bound at 0, only one of the two one-sided derivatives at the kink of |w| applies
        falls = np.where(w < high, np.minimum(grad + np.where(w < 0, -self.l1, self.l1), 0.0), 0.0)
        rises = np.where(w > low, np.maximum(grad + np.where(w > 0, self.l1, -self.l1), 0.0), 0.0)
        return falls + rises

    def gap(self, w: np.ndarray, grad: np.ndarray) -> float:
        """Upper bound on the suboptimality at w, given the gradient of the smooth parts; nan if there is no bound.

        With μ the convexity, ``g = ∇ − μ·w`` is the gradient of a convex function. By Fenchel's inequality the
        suboptimality is at most ``k(w) + <w, g> + k*(−g)``, where ``k = μ/2·|w|² + l1·|w|₁`` on the box and k* is its
        conjugate. Without l1 and bounds it is ``|∇|²/(2μ)``.
        """
        mu = self.convexity
        if self.l1 == 0:
            slope = self.subgradient(w, grad)
            return float(slope @ slope) / (2 * mu) if mu > 0 else float("nan")
        g = grad - mu * w
        return 0.5 * mu * float(w @ w) + self.rough(w) + float(w @ g) + self.conjugate(-g)

    def conjugate(self, v: np.ndarray) -> float:
        """Conjugate ``k*(v) = max_u <u, v> − k(u)`` of ``k = μ/2·|u|² + l1·|u|₁`` on the box; possibly infinite."""
        mu, (low, high) = self.convexity, self.bounds
        if mu > 0:
            excess = np.sign(v) * np.maximum(np.abs(v) - self.l1, 0.0)
            with np.errstate(over="ignore", invalid="ignore"):
                u = np.clip(excess / mu, low, high)
                most = float((excess * u - 0.5 * mu * u**2).sum())
            return np.inf if np.isnan(most) else most  # overflow
        # the tolerance keeps v on the edge of the dual box inside despite rounding
        excess = np.sign(v) * np.maximum(np.abs(v) - (1 + 1e-12) * self.l1, 0.0)
        with np.errstate(invalid="ignore"):
            return float(np.where(excess == 0, 0.0, excess * np.where(excess > 0, high, low)).sum())

    def shrink(self, v: np.ndarray) -> float:
        """Largest s ≤ 1 with a finite conjugate at ``s·v``, for a penalty without a quadratic part."""
        low, high = self.bounds
        endless = np.where(v > 0, np.equal(high, np.inf), np.equal(low, -np.inf))
        largest = float(np.abs(v).max(initial=0.0, where=endless))
        return min(1.0, self.l1 / max(largest, np.finfo(float).tiny))


@dataclass(frozen=True)
class Ridge(Penalty):
    """Ridge penalty ``alpha/2·|w|²``.

    Examples
    --------
    >>> Ridge(2.0).value(np.array([1.0, 3.0]))
    10.0
    """

    alpha: float = 1.0

    @property
    def curvature(self) -> float:
        return self.alpha


class _Mixed(Penalty):
    """Base class of mixed penalties: ``l1_ratio·alpha`` weights non-smooth norms, the rest of ``alpha`` a ridge."""

    alpha: float
    l1_ratio: float

    @property
    def curvature(self) -> float:
        return (1 - self.l1_ratio) * self.alpha

    @property
    def l1(self) -> float:  # type: ignore[override]
        return self.l1_ratio * self.alpha


@dataclass(frozen=True)
class ElasticNet(_Mixed):
    """Elastic net ``alpha·[(1 − l1_ratio)/2·|w|² + l1_ratio·|w|₁]``.

    Examples
    --------
    >>> ElasticNet(2.0, l1_ratio=0.5).value(np.array([1.0, -3.0]))
    9.0
    """

    alpha: float = 1.0
    l1_ratio: float = 0.5

    def check(self, n_features: int) -> None:
        super().check(n_features)
        check_between("l1_ratio", self.l1_ratio, 0, 1)


@dataclass(frozen=True)
class Lasso(Penalty):
    """Lasso penalty ``alpha·|w|₁``; the objective must be bounded below.

    Examples
    --------
    >>> Lasso(2.0).value(np.array([1.0, -3.0]))
    8.0
    """

    alpha: float = 1.0
    curvature: ClassVar[float] = 0.0

    @property
    def l1(self) -> float:  # type: ignore[override]
        return self.alpha


@dataclass(frozen=True, eq=False)
class GroupLasso(_Mixed):
    """Group lasso ``alpha·[(1 − l1_ratio)/2·|w|² + l1_ratio·Σ_g √d_g·|w_g|]`` over groups g of d_g coefficients.

    Whole groups become exactly zero. The ridge part is required (``l1_ratio`` < 1), because it certifies the minimum.

    Parameters
    ----------
    groups : array of int of shape (d,)
        Group of each coefficient, 0, 1, 2, ….
    alpha, l1_ratio : float

    Examples
    --------
    >>> penalty = GroupLasso([0, 0, 1], alpha=2.0, l1_ratio=0.5)
    >>> round(penalty.value(np.array([3.0, 4.0, 0.0])) - 12.5, 6) == round(5 * 2**0.5, 6)
    True
    """

    groups: Any
    alpha: float = 1.0
    l1_ratio: float = 0.5
    is_grouped: ClassVar[bool] = True

    def check(self, n_features: int) -> None:
        super().check(n_features)
        if len(np.asarray(self.groups)) != n_features:
            raise InputError(f"`groups` needs an entry for each of the {n_features} coefficients")
        if not 0 < self.l1_ratio < 1:
            raise InputError(f"a group lasso needs `l1_ratio` above 0 and below 1, got {self.l1_ratio!r}")

    @cached_property
    def weights(self) -> np.ndarray:
        """Weight of the norm of each group."""
        return self.l1 * np.sqrt(np.bincount(self.groups))

    def norms(self, w: np.ndarray) -> np.ndarray:
        """Euclidean norm of each group."""
        return np.sqrt(np.bincount(self.groups, np.square(w)))

    def rough(self, w: np.ndarray) -> float:
        return float(self.weights @ self.norms(w))

    def least_multiple(self, slope: np.ndarray) -> float:
        kept = self.weights > 0  # ignore group numbers without coefficients
        return float((self.norms(slope)[kept] / self.weights[kept]).max())

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        norms = self.norms(v)
        kept = np.maximum(norms - step * self.weights, 0.0) / np.where(norms > 0, norms, 1.0)
        return v * kept[self.groups]

    def subgradient(self, w: np.ndarray, grad: np.ndarray) -> np.ndarray:
        norms = self.norms(w)
        unit = (self.weights / np.where(norms > 0, norms, 1.0))[self.groups] * w
        return np.where((norms > 0)[self.groups], grad + unit, self.prox(grad, 1.0))

    def conjugate(self, v: np.ndarray) -> float:
        return float(np.square(np.maximum(self.norms(v) - self.weights, 0.0)).sum()) / (2 * self.convexity)


@dataclass(frozen=True, eq=False)
class Quadratic(Penalty):
    """Quadratic penalty ``alpha/2·w'Pw`` with a symmetric positive semi-definite P, such as squared differences.

    Only a positive definite P certifies the suboptimality (``dual_gap_``); otherwise the solver stops by the scaled
    gradient.

    Parameters
    ----------
    P : array of shape (d, d)
    alpha : float

    Examples
    --------
    >>> neighbours = np.diff(np.eye(3), axis=0)
    >>> Quadratic(neighbours.T @ neighbours).value(np.array([1.0, 2.0, 4.0]))
    2.5
    """

    P: Any
    alpha: float = 1.0

    def check(self, n_features: int) -> None:
        super().check(n_features)
        P = np.asarray(self.P, dtype=float)
        if P.shape != (n_features, n_features):
            raise InputError(
                f"`P` needs a row and a column for each of the {n_features} features, got shape {P.shape}"
            )
        if not np.isfinite(P).all() or not np.allclose(P, P.T, rtol=1e-10, atol=1e-12 * np.abs(P).max()):
            raise InputError("`P` must be symmetric, of finite numbers")
        if self._eigenvalues[0] < -1e-10 * max(self._eigenvalues[-1], 0.0):
            raise InputError(
                f"`P` must be positive semi-definite, but has the eigenvalue {self._eigenvalues[0]:.3g}"
            )

    @cached_property
    def curvature(self) -> np.ndarray:
        P = np.asarray(self.P, dtype=float)
        return self.alpha * 0.5 * (P + P.T)

    @cached_property
    def _eigenvalues(self) -> np.ndarray:
        return np.linalg.eigvalsh(np.asarray(self.P, dtype=float))

    @property
    def convexity(self) -> float:
        lowest, highest = self._eigenvalues[[0, -1]]
        return self.alpha * float(lowest) if lowest > 1e-12 * highest else 0.0


@dataclass(frozen=True)
class Bounded(Penalty):
    """Penalty ``base`` restricted to the box ``low ≤ w ≤ high``, which must contain 0; bounds are scalars or arrays.

    Examples
    --------
    >>> Bounded(Ridge(1.0), low=-1.0, high=2.0).value(np.array([0.0, 3.0]))
    inf
    """

    base: Penalty = Ridge()
    low: Any = -np.inf
    high: Any = np.inf

    def check(self, n_features: int) -> None:
        self.base.check(n_features)
        low, high = np.asarray(self.low), np.asarray(self.high)
        for shape in {low.shape, high.shape} - {(), (n_features,)}:
            raise InputError(
                f"`bounds` are numbers, or one for each of the {n_features} features, got {shape}"
            )
        if not (np.all(low <= 0) and np.all(high >= 0) and np.all(low < high)):
            raise InputError(f"`bounds` must have low <= 0 <= high, got {self.low!r} and {self.high!r}")
        if self.base.is_bounded:
            raise InputError("a penalty has one pair of bounds: give low and high once")

    @property
    def curvature(self) -> Any:
        return self.base.curvature

    @property
    def convexity(self) -> float:
        return self.base.convexity

    @property
    def l1(self) -> float:  # type: ignore[override]
        return self.base.l1

    @property
    def bounds(self) -> tuple[Any, Any]:  # type: ignore[override]
        return self.low, self.high


@dataclass(frozen=True)
class NonNegative(Bounded):
    """Penalty ``base`` with non-negative coefficients.

    Examples
    --------
    >>> NonNegative(Ridge(1.0)).value(np.array([-1.0]))
    inf
    """

    low: Any = 0.0


def elastic_net(alpha: float, l1_ratio: float) -> Penalty:
    """Return the penalty of an estimator with ``alpha`` and ``l1_ratio``: ridge, lasso or elastic net.

    Examples
    --------
    >>> elastic_net(0.1, 0.0), elastic_net(0.1, 1.0)
    (Ridge(alpha=0.1), Lasso(alpha=0.1))
    """
    if l1_ratio * alpha == 0:
        return Ridge(alpha)
    return Lasso(alpha) if l1_ratio == 1 else ElasticNet(alpha, l1_ratio)
