"""The P-Norm Push on a matrix that stays on its device: only w, the gradient and a few numbers cross.

The solvers are those of the host; they see NumPy vectors of one entry per feature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from apexrank.checkpoints import remembered
from apexrank.errors import InputError
from apexrank.losses import LOSSES, Exponential
from apexrank.models.device_arrays import (
    Array,
    column_units,
    host_hint,
    is_tensor,
    namespace,
    row_blocks,
    scores_on_device,
    to_device,
    to_host,
)
from apexrank.models.linear import FAR, WIDEST_HESSIAN, LinearProblem, usable_units
from apexrank.prices import PRICES, Identity, Power
from apexrank.validation import check_finite, check_not_huge, check_weight_range

CLOSE = 1e-6  # values between which rounding in single precision may hide the difference
SIDES = {"top": (1.0,), "bottom": (-1.0,), "both": (1.0, -1.0)}  # sign of the scores


class ClassSums(NamedTuple):
    """For negatives and positives: ``log Σ u·exp(slope·s)`` and the mean row under these weights."""

    value: np.ndarray
    rows: np.ndarray


class DeviceRows:
    """Sums over the rows of a matrix on a device, in two passes over it: scores, then the weighted sum of rows.

    Everything is in double precision; of a matrix in single precision one block at a time is converted.
    """

    is_rough = False

    def __init__(self, X: Array, positive: Array, weight: Array | None) -> None:
        self.X, self.positive, self.xp = X, positive, namespace(X)
        self.log_weight = None if weight is None else self.xp.log(weight)

    def log_sum_exp(self, w: np.ndarray, slope: tuple[float, float]) -> ClassSums:
        """Sums of both classes, negatives first, for the exponents ``slope_c·s + log u``."""
        xp = self.xp
        tops, weights = self._softmaxes(w, slope)
        mass, rows = xp.sum(weights, axis=0), self._pull_back(weights)
        top, total, sums = (to_host(part) for part in (tops, mass, rows))
        with np.errstate(invalid="ignore", divide="ignore"):
            return ClassSums(top + np.log(total), sums.T / total[:, None])

    def _softmaxes(self, w: np.ndarray, slope: tuple[float, float]) -> tuple[Array, Array]:
        """Highest exponent of each class, and ``exp(exponent − highest)`` as columns, 0 outside the class."""
        xp = self.xp
        s = scores_on_device(self.X, w)
        tops, columns = [], []
        for factor, mask in zip(slope, (~self.positive, self.positive), strict=True):
            t = factor * s if self.log_weight is None else factor * s + self.log_weight
            t = xp.where(mask, t, xp.full_like(t, -np.inf))
            tops.append(xp.max(t))
            columns.append(xp.exp(t - tops[-1]))
        return xp.stack(tops), xp.stack(columns, axis=1)

    def _pull_back(self, columns: Array) -> Array:
        """``Xᵀ @ columns``."""
        xp = self.xp
        return sum(xp.astype(self.X[block], xp.float64).T @ columns[block] for block in row_blocks(self.X))

    def covariances(self, w: np.ndarray, slope: tuple[float, float], centre: np.ndarray) -> np.ndarray:
        """Covariance of the rows of each class under its weights, of X less ``centre``, which keeps the digits."""
        xp, middle = self.xp, to_device(centre, self.X)
        weights = self._softmaxes(w, slope)[1]
        weights = weights / xp.sum(weights, axis=0)
        grams, means = [0.0, 0.0], 0.0
        for block in row_blocks(self.X):
            Z, q = xp.astype(self.X[block], xp.float64) - middle, weights[block]
            means = means + q.T @ Z
            grams = [gram + (Z * q[:, c : c + 1]).T @ Z for c, gram in enumerate(grams)]
        return np.stack(
            [to_host(gram) - np.outer(m, m) for gram, m in zip(grams, to_host(means), strict=True)]
        )


class DevicePush:
    """The push with the exponential loss and the power or identity price, on labels that are on a device.

    Parameters
    ----------
    positive : array of bool
        On the device of X.
    loss, price, p, side, balance
        As in :class:`apexrank.PNormPush`; what needs a sort or sums over pairs is refused.
    weight : array, optional
        Weights of the rows, on the device of X.
    """

    total = value_unit = 1.0

    def __init__(
        self,
        positive: Array,
        *,
        loss: Any = "exponential",
        price: Any = "power",
        p: float = 4.0,
        side: str = "top",
        balance: float = 1.0,
        weight: Array | None = None,
    ) -> None:
        hint = f"not for arrays on a device: bring X to the host with {host_hint(positive)}"
        if not isinstance(LOSSES.get(loss), Exponential):
            raise InputError(f"loss {loss!r} is {hint}, or use the exponential loss")
        if price == "power" and p == np.inf:
            raise InputError(f"p=inf is {hint}, or use a finite p")
        self.price = PRICES.get(price, p=p)
        if not isinstance(self.price, Power | Identity):
            raise InputError(f"price {price!r} is {hint}, or use the power price")
        if side not in SIDES:
            raise InputError(f"unknown side {side!r}: use one of {', '.join(SIDES)}")
        check_finite("balance", balance, 0)
        self.positive, self.weight = positive, weight
        xp = namespace(positive)
        if not all(bool(xp.any(rows)) for rows in self._classes()):
            raise InputError(
                "ranking needs rows of both classes, with positive weight, in at least one group"
            )
        self.sides = [(balance if side == "both" and sign < 0 else 1.0, sign) for sign in SIDES[side]]

    def slopes(self, sign: float) -> tuple[float, float]:
        """Slopes of the exponents of negatives and positives: the price is on the negatives for the top."""
        order = self.price.order
        return (order, -1.0) if sign > 0 else (1.0, -order)

    def value_and_grad(self, rows: Any, w: np.ndarray) -> tuple[float, np.ndarray]:
        """``LSE(−f) + (1/p)·LSE(p·g)`` or its mirror, and the gradient with respect to w: a difference of means."""
        value, grad = 0.0, np.zeros(len(w))
        for factor, sign in self.sides:
            slope = self.slopes(sign)
            sums = rows.log_sum_exp(w, slope)
            value += factor * float((sums.value / np.abs(slope)).sum())
            grad += factor * (sums.rows[0] - sums.rows[1])
        return value, grad

    def separated(self, scores: Array) -> bool:
        """Whether every positive of positive weight stands above every negative of positive weight."""
        xp = namespace(scores)
        above, below = self._classes()
        infinite = xp.full_like(scores, np.inf)
        lowest, highest = (
            xp.min(xp.where(above, scores, infinite)),
            xp.max(xp.where(below, scores, -infinite)),
        )
        return bool(lowest > highest)

    def _classes(self) -> tuple[Array, Array]:
        """Positives and negatives of positive weight."""
        if self.weight is None:
            return self.positive, ~self.positive
        return self.positive & (self.weight > 0), ~self.positive & (self.weight > 0)


class DeviceProblem(LinearProblem):
    """``min_w push(X·w) + (alpha/2)·|w|²`` for X on a device, with the certificates of :class:`LinearProblem`.

    A row-major CUDA matrix of up to 1024 columns is read once per value and gradient where Triton is there
    (:mod:`apexrank.models.triton_rows`); everything else takes two passes.

    Parameters
    ----------
    X : array of shape (n, d)
        PyTorch tensor, CuPy array, or array of another library that follows the array API standard.
    objective : DevicePush
    alpha : float
        Ridge penalty.
    fused : bool, optional
        False: two passes also where one would do.

    Examples
    --------
    >>> import torch
    >>> X = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    >>> problem = DeviceProblem(X, DevicePush(torch.tensor([False, True])), alpha=1.0)
    >>> value, gradient = problem.value_and_grad(np.zeros(1))
    >>> value, gradient.tolist()
    (0.0, [-1.0])
    """

    objective: Any

    def __init__(self, X: Array, objective: DevicePush, alpha: float = 0.0, fused: bool = True) -> None:
        self.X, self.objective, self.alpha = X, objective, alpha
        self.total = self.curvature = self.grad_unit = self.value_unit = 1.0
        ends = _ends_of_columns(X)
        check_not_huge("X", ends)
        if objective.weight is not None:
            check_weight_range(*_ends_of_weights(objective.weight))
        centre, spread = column_units(X, objective.weight)
        self.spread = usable_units(spread, lambda: ends[0] < ends[1])
        self._shift = None
        if np.any(np.abs(centre) > FAR * self.spread):
            # so far from zero that scores would lose the digits that rank: the objective does not see the shift
            shift = to_device(centre, X, X.dtype)
            self.X, self._shift, centre = X - shift, to_host(shift).astype(np.float64), 0 * centre
        self.centre = centre
        self.scale = np.hypot(self.spread, np.sqrt(alpha))
        self.rows = rows_of(self.X, objective.positive, objective.weight, fused)
        self._last: tuple[np.ndarray, float, np.ndarray] | None = None

    def value_and_grad(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Penalised objective and its gradient; not finite, without a word, where the scores are beyond all bounds."""
        value, grad = self._rough_value_and_grad(w)
        return self._steadied(w, value, grad) if self.rows.is_rough else value, grad

    @remembered
    def _rough_value_and_grad(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        with np.errstate(over="ignore", invalid="ignore"):
            value, grad = self.objective.value_and_grad(self.rows, w)
            return value + 0.5 * self.alpha * float(w @ w), grad + self.alpha * w

    def _steadied(self, w: np.ndarray, value: float, grad: np.ndarray) -> float:
        """The value, without rounding noise relative to that of the point before if the two are close.

        In single precision the value is known to about 1e-8, which hides what a step close to the minimum gains. The
        gradient still tells: the gain is ``½·(∇ + ∇before)·step``, up to the third power of the step.
        """
        if self._last is not None:
            before, value_before, grad_before = self._last
            steady = value_before + 0.5 * float((grad + grad_before) @ (w - before))
            if max(abs(value - value_before), abs(value - steady)) <= CLOSE:
                value = steady
        self._last = w.copy(), value, grad
        return value

    @property
    def hessian_cost(self) -> float:
        """Multiplications that :meth:`hessian` takes; infinite for too many features."""
        n, d = self.X.shape
        return float(n) * d * d if d <= WIDEST_HESSIAN else np.inf

    @remembered
    def hessian(self, w: np.ndarray) -> np.ndarray:
        """``p·Cov`` of the class that the price is on plus ``Cov`` of the other, for each side, plus alpha."""
        total = self.alpha * np.eye(self.n_features)
        rows = DeviceRows(self.X, self.objective.positive, self.objective.weight)
        for factor, sign in self.objective.sides:
            slope = self.objective.slopes(sign)
            for size, covariance in zip(np.abs(slope), rows.covariances(w, slope, self.centre), strict=True):
                total += factor * size * covariance
        return total

    def scores(self, w: np.ndarray) -> Array:
        """Scores of the rows as they were given, on their device."""
        scores = scores_on_device(self.X, w)
        return scores if self._shift is None else scores + float(self._shift @ w)

    def unbounded(self, value: float, w: np.ndarray) -> bool:
        """Whether w separates the classes while no penalty holds it back."""
        return self.alpha == 0 and value < 0 and self.objective.separated(scores_on_device(self.X, w))


def _ends_of_columns(X: Array) -> np.ndarray:
    """Least and largest number of each column."""
    xp = namespace(X)
    return to_host(xp.stack([xp.min(X, axis=0), xp.max(X, axis=0)]))


def _ends_of_weights(weight: Array) -> tuple[float, float]:
    """The smallest weight that is not 0, and the largest."""
    xp = namespace(weight)
    counted = xp.where(weight > 0, weight, xp.full_like(weight, np.inf))
    return float(xp.min(counted)), float(xp.max(weight))


def rows_of(X: Array, positive: Array, weight: Array | None, fused: bool = True) -> Any:
    """Sums over rows in one pass where there is a kernel for X, in two elsewhere."""
    if fused and (X.is_cuda if is_tensor(X) else hasattr(X, "__cuda_array_interface__")):
        from apexrank.models.triton_rows import fused_rows

        rows = fused_rows(X, positive, weight)
        if rows is not None:
            return rows
    return DeviceRows(X, positive, weight)
