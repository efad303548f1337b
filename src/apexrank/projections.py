"""Bregman projections ``argmin_{y in S} D_φ(y ‖ x)`` of a point given by its natural parameters ``θ = ∇φ(x)``.

S is the set of ordered vectors, the simplex, the intersection of the two, a hyperplane, a half-space or any number of
half-spaces. A divergence is a name or an atom of :mod:`apexrank.divergences`. With ``natural=False`` the point x is
passed instead of θ. Projections onto the first three sets process many groups at once: segment ``q`` consists of the
rows ``indptr[q]:indptr[q + 1]``; by default all rows form one segment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from apexrank.divergences import DIVERGENCES, KL, Divergence, IDivergence, Separable, Squared
from apexrank.errors import InputError, warn
from apexrank.kernels.pav import check_indptr, clip, pav
from apexrank.validation import check_finite

QUADRATIC, ROUNDING = (
    1e-10,
    1e-13,
)  # relative residuals below which Newton converges quadratically, and below which only rounding is left
MAX_STEPS = 300
BELOW_ZERO = -1e-300


def onto_monotone(
    divergence: str | Divergence,
    theta: ArrayLike,
    indptr: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    *,
    increasing: bool = True,
    lower: float | None = None,
    upper: float | None = None,
    natural: bool = True,
) -> np.ndarray:
    """Project onto ordered vectors: minimise ``Σ_i w_i d(y_i ‖ link(θ_i))`` over ``lower ≤ y_1 ≤ … ≤ upper``.

    The solution in every segment is the link of ``PAV(θ)``, clipped to the bounds, for every divergence (Acharyya 2013,
    Corollary 1; with weights, of the weighted PAV). If the atom has weights of its own, they multiply ``weight``. For
    "kl" the minimum is over the ordered simplex, see :func:`onto_ordered_simplex`, and bounds are not supported.

    Examples
    --------
    >>> onto_monotone("squared", [3.0, 1.0, 4.0]).tolist()
    [2.0, 2.0, 4.0]
    >>> onto_monotone("i-divergence", [8.0, 2.0, 9.0], natural=False).round(9).tolist()
    [4.0, 4.0, 9.0]
    """
    atom = DIVERGENCES.get(divergence)
    if not isinstance(atom, Separable):
        if lower is not None or upper is not None:
            raise InputError(f"{atom.name} takes no bounds: leave out lower and upper, or use i-divergence")
        return onto_ordered_simplex(atom, theta, indptr, weight, increasing=increasing, natural=natural)
    if (lower is not None and lower > atom.domain[1]) or (upper is not None and upper < atom.domain[0]):
        raise InputError(f"no value from {lower!r} to {upper!r} is {atom.domain_text}, as {atom.name} needs")
    unit = natural_parameters(atom, theta, natural) / atom.weights
    if atom.weight is not None:
        weight = atom.weights * np.asarray(1.0 if weight is None else weight, dtype=float)
    y = replace(atom, weight=None).grad_inv(pav(unit, indptr, weight, increasing=increasing))
    return clip(y, lower, upper)


def onto_simplex(
    divergence: str | Divergence,
    theta: ArrayLike,
    indptr: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    *,
    natural: bool = True,
) -> np.ndarray:
    """Project onto the simplex: minimise ``Σ_i w_i d(y_i ‖ link(θ_i))`` over ``y ≥ 0``, ``Σ_i w_i y_i = 1``.

    Row i represents ``w_i`` equal items, one by default. The solution in every segment is the softmax of θ for "kl" and
    "i-divergence", ``max(0, x − τ)`` for "squared", and ``link(θ + λ)`` for the others. An atom with weights of its own
    cannot be combined with ``weight``; its weights enter the divergence only, not the sum.

    Examples
    --------
    >>> onto_simplex("kl", [1.0, 1.0, 0.0, 0.0], [0, 2, 4]).tolist()
    [0.5, 0.5, 0.5, 0.5]
    >>> onto_simplex("squared", [1.0, 0.5, -2.0]).tolist()
    [0.75, 0.25, 0.0]
    """
    atom = DIVERGENCES.get(divergence)
    values = natural_parameters(atom, theta, natural)
    bounds = check_indptr(indptr, len(values))
    counts = np.ones(len(values)) if weight is None else _positive(weight, len(values))
    own = getattr(atom, "weight", None)
    if own is not None and weight is not None:
        raise InputError(f"{atom.name} already has weights: leave out either those or `weight`")
    if isinstance(atom, KL) or (isinstance(atom, IDivergence) and own is None):
        return _segment_softmax(values, bounds, counts)
    assert isinstance(atom, Separable)
    if isinstance(atom, Squared):
        return _threshold(values / atom.weights, bounds, counts, 1 / (atom.weights * np.ones(len(values))))
    inside = counts if own is None else np.array(own)
    unit = values / atom.weights
    y = np.empty(len(values))
    for i, j in pairwise(bounds):
        if i < j:
            part, point = replace(atom, weight=tuple(inside[i:j])), inside[i:j] * unit[i:j]
            multiplier = hyperplane_multiplier(part, point, counts[i:j], 1.0)
            y[i:j] = part.grad_inv(point + multiplier * counts[i:j])
    return y


def onto_ordered_simplex(
    divergence: str | Divergence,
    theta: ArrayLike,
    indptr: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    *,
    increasing: bool = True,
    natural: bool = True,
) -> np.ndarray:
    """Project onto the ordered simplex ``0 ≤ y_1 ≤ y_2 ≤ …``, ``Σ_i w_i y_i = 1``.

    It minimises ``Σ_i w_i d(y_i ‖ link(θ_i))``. Row i represents ``w_i`` equal items. The solution in every segment is
    the projection of ``PAV(θ)`` onto the simplex, because PAV commutes with adding a constant; for "kl" it is
    softmax(PAV(θ)).

    Examples
    --------
    >>> onto_ordered_simplex("kl", [0.0, 0.0, 5.0], increasing=False).round(9).tolist()
    [0.333333333, 0.333333333, 0.333333333]
    """
    atom = DIVERGENCES.get(divergence)
    if getattr(atom, "weight", None) is not None:
        raise InputError("onto_ordered_simplex needs a divergence without weights: pass `weight` instead")
    fitted = pav(natural_parameters(atom, theta, natural), indptr, weight, increasing=increasing)
    return onto_simplex(atom, fitted, indptr, weight)


def onto_hyperplane(
    divergence: str | Divergence, theta: ArrayLike, a: ArrayLike, b: float, *, natural: bool = True
) -> np.ndarray:
    """Project onto the hyperplane ``<a, y> = b``: ``argmin_y D_φ(y ‖ link(θ))``.

    The solution is the link of ``θ + λ·a`` (Acharyya 2013, Lemma 2).

    Examples
    --------
    >>> onto_hyperplane("squared", [1.0, 0.0], [1.0, 1.0], 3.0).tolist()
    [2.0, 1.0]
    >>> onto_hyperplane("i-divergence", [1.0, 2.0], [1.0, 1.0], 6.0, natural=False).round(9).tolist()
    [2.0, 4.0]
    """
    atom = DIVERGENCES.get(divergence)
    values = natural_parameters(atom, theta, natural)
    normal = check_normal(a, values.shape)
    return atom.grad_inv(values + hyperplane_multiplier(atom, values, normal, b) * normal)


def onto_halfspace(
    divergence: str | Divergence, theta: ArrayLike, a: ArrayLike, b: float, *, natural: bool = True
) -> np.ndarray:
    """Project onto the half-space ``<a, y> ≤ b``: ``argmin_y D_φ(y ‖ link(θ))``.

    The solution is the point itself if it is feasible, else its projection onto the boundary.

    Examples
    --------
    >>> onto_halfspace("squared", [1.0, 0.0], [1.0, 1.0], 3.0).tolist()
    [1.0, 0.0]
    """
    atom = DIVERGENCES.get(divergence)
    values = natural_parameters(atom, theta, natural)
    x = atom.grad_inv(values)
    return x if check_normal(a, values.shape) @ x <= b else onto_hyperplane(atom, values, a, b)


@dataclass(frozen=True)
class BregmanResult:
    """Bregman projection with its certificate.

    ``x`` is always the exact minimiser for its multipliers, ``∇φ(x) = θ − Aᵀμ`` with ``μ ≥ 0``. It is optimal if it is
    also feasible and slack rows have zero multipliers. ``residual`` is the larger of two numbers: the largest violation
    relative to ``Σ_j |a_ij x_j| + |b_i|``, and the mean distance from the bound, weighted by μ, in the same units.
    ``value`` is ``D_φ(x ‖ link(θ))`` and ``gap`` is ``<μ, b − A x>``. ``value − gap`` is the dual value; it is below
    the optimal value by at least ``D_φ(x*‖x)``, the divergence of the solution from x.
    """

    x: np.ndarray
    multipliers: np.ndarray
    value: float
    gap: float
    residual: float
    n_iter: int
    converged: bool


def bregman_projection(
    divergence: str | Divergence,
    theta: ArrayLike,
    A: ArrayLike,
    b: ArrayLike,
    *,
    parallel: bool = False,
    max_iter: int = 1000,
    tol: float = 1e-10,
    natural: bool = True,
) -> BregmanResult:
    """Project onto half-spaces ``A y ≤ b`` by Bregman's sequential or parallel algorithm.

    It minimises ``D_φ(y ‖ link(θ))``. The algorithm is coordinate descent on the dual. The natural parameters are
    always ``θ − Aᵀμ``, with a multiplier ``μ_i ≥ 0`` for each row; the projection onto the hyperplane of row i changes
    only ``μ_i``, which may decrease to zero but not below. Table 2.1 of Acharyya 2013 never decreases a multiplier, so
    it can end at a feasible point that is not the nearest.

    The parallel algorithm projects onto all rows from the same point and moves each multiplier only part of the way:
    rows that share a coordinate share the step. The result is a convex combination of points of smaller dual cost. The
    table adds the full steps, which need not converge.

    Parameters
    ----------
    divergence : str or Divergence
        A name or an atom of :mod:`apexrank.divergences`.
    theta : array-like of shape (n,)
        Natural parameters of the point to project.
    A, b : array-like of shape (m, n) and (m,)
        Half-spaces. Write an equation as a row and its negative.
    parallel : bool
        Project onto all half-spaces from one point, instead of one after the other.
    max_iter, tol : int, float
        Stop after ``max_iter`` sweeps over the rows, or when the residual is at most ``tol``.
    natural : bool
        Pass False if ``theta`` is the point itself.

    Returns
    -------
    BregmanResult
        A ``ConvergenceWarning`` is issued if ``tol`` was not reached.

    Examples
    --------
    >>> result = bregman_projection("squared", [2.0, 1.0], [[1.0, 0.0], [1.0, 1.0]], [1.0, 1.5])
    >>> result.x.round(6).tolist(), result.multipliers.round(6).tolist()
    ([1.0, 0.5], [0.5, 0.5])
    """
    atom = DIVERGENCES.get(divergence)
    start = natural_parameters(atom, theta, natural)
    dual = _Dual(atom, start, *_check_rows(A, b, len(start)))
    check_finite("max_iter", max_iter, 0)
    check_finite("tol", tol, 0)
    sweep = dual.parallel if parallel else dual.sequential
    result = dual.certify(np.zeros(len(dual.bounds)), 0, tol)
    while not result.converged and result.n_iter < max_iter:
        result = dual.certify(sweep(result.multipliers.copy()), result.n_iter + 1, tol)
    if not result.converged:
        warn(
            f"Bregman's algorithm stopped after {result.n_iter} sweeps with residual {result.residual:.1e}: "
            "raise `max_iter`; if that does not help, no point may satisfy all constraints",
            ConvergenceWarning,
        )
    return result


@dataclass(frozen=True, eq=False)
class _Dual:
    """Dual problem: the point ``start`` to project, the half-spaces ``rows·x ≤ bounds``, and updates of multipliers."""

    atom: Divergence
    start: np.ndarray
    rows: np.ndarray
    bounds: np.ndarray

    def sequential(self, multipliers: np.ndarray) -> np.ndarray:
        """Project onto one half-space after the other."""
        theta = self.start - multipliers @ self.rows
        for i, (row, bound) in enumerate(zip(self.rows, self.bounds, strict=True)):
            if multipliers[i] == 0 and row @ self.atom.grad_inv(theta) <= bound:
                continue
            moved = max(0.0, multipliers[i] - float(hyperplane_multiplier(self.atom, theta, row, bound)))
            theta = theta - (moved - multipliers[i]) * row
            multipliers[i] = moved
        return multipliers

    def parallel(self, multipliers: np.ndarray) -> np.ndarray:
        """Project onto all half-spaces from one point."""
        theta = self.start - multipliers @ self.rows
        moving = (multipliers > 0) | (self.rows @ self.atom.grad_inv(theta) > self.bounds)
        normals = self.rows[moving]
        point = np.broadcast_to(theta, normals.shape)
        step = hyperplane_multiplier(self.atom, point, normals, self.bounds[moving])
        moved = np.maximum(0.0, multipliers[moving] - step)
        multipliers[moving] += (moved - multipliers[moving]) * self._shares(normals)
        return multipliers

    def _shares(self, normals: np.ndarray) -> np.ndarray:
        """Return step sizes such that those of the rows that share a coordinate sum to at most 1.

        The dual cost is a sum over the coordinates, each convex in the multipliers of its rows. On the simplex all rows
        share coordinates.
        """
        if not isinstance(self.atom, Separable):
            return np.full(len(normals), 1 / len(normals))
        touches = normals != 0
        return 1 / np.max(touches * touches.sum(axis=0), axis=1)

    def certify(self, multipliers: np.ndarray, n_iter: int, tol: float) -> BregmanResult:
        x = self.atom.grad_inv(self.start - multipliers @ self.rows)
        slack = self.bounds - self.rows @ x
        unit = np.abs(self.rows) @ np.abs(x) + np.abs(self.bounds)
        unit = np.where(unit > 0, unit, 1.0)
        violation = float(np.max(-slack / unit, initial=0.0))
        priced = float(multipliers @ unit)
        idle = float(multipliers @ np.abs(slack)) / priced if priced > 0 else 0.0
        residual = max(violation, idle)
        value = float(self.atom.divergence(x, self.atom.grad_inv(self.start)))
        gap = float(multipliers @ slack)
        return BregmanResult(x, multipliers, value, gap, residual, n_iter, bool(residual <= tol))


def _check_rows(A: ArrayLike, b: ArrayLike, n: int) -> tuple[np.ndarray, np.ndarray]:
    rows, bounds = np.asarray(A, dtype=float), np.asarray(b, dtype=float)
    if rows.ndim != 2 or rows.shape[1] != n or bounds.shape != rows.shape[:1]:
        raise InputError(f"`A` needs {n} columns and b one number per row, got {rows.shape}, {bounds.shape}")
    if not np.all(np.isfinite(bounds)):
        raise InputError("b must be finite: leave out rows without a bound")
    return check_normal(rows, rows.shape), bounds


# ---------------------------------------------------------------- the simplex


def _segment_softmax(theta: np.ndarray, indptr: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return ``exp(θ_i) / Σ_j c_j exp(θ_j)`` in every segment."""
    starts, rows = _segments(indptr)
    if len(theta) == 0:
        return theta
    top = np.maximum.reduceat(theta, starts)
    if not np.all(np.isfinite(top)):
        raise InputError("`theta` needs a finite largest value in every segment")
    y = np.exp(theta - top[rows])
    return y / np.add.reduceat(counts * y, starts)[rows]


def _threshold(x: np.ndarray, indptr: np.ndarray, counts: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return ``y = max(0, x − τ·slope)``, with τ in each segment such that ``Σ counts·y = 1``.

    Rows with negative y are dropped and τ is solved for again (Michelot 1986). As τ only increases, this terminates
    with the active rows.
    """
    if len(x) == 0:
        return x
    starts, rows = _segments(indptr)
    # τ is near the largest x; subtracting that first avoids cancellation
    top = np.maximum.reduceat(x / slope, starts)[rows] * slope
    x, active = x - top, np.ones(len(x), dtype=bool)
    while True:
        tau = (np.add.reduceat(counts * x * active, starts) - 1) / np.add.reduceat(
            counts * slope * active, starts
        )
        y = x - tau[rows] * slope
        if not np.any(active & (y < 0)):
            return np.maximum(y, 0.0)
        active &= y >= 0


def _segments(indptr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows of the non-empty segments, and the number of each row's segment among these."""
    sizes = np.diff(indptr)
    return indptr[:-1][sizes > 0], np.repeat(np.arange(np.sum(sizes > 0)), sizes[sizes > 0])


# ---------------------------------------------------------------- the hyperplane


def hyperplane_multiplier(atom: Divergence, theta: np.ndarray, a: np.ndarray, b: ArrayLike) -> np.ndarray:
    """Solve ``<a, link(θ + λ·a)> = b`` for λ by bracketed Newton steps, vectorised over leading axes.

    On the simplex ``<a, x> = b`` is equivalent to ``<a − b, x> = 0``, which has the same λ without the normalisation.
    There KL is the I-divergence.
    """
    b = np.asarray(b, dtype=float)
    if isinstance(atom, KL):
        theta = theta - logsumexp(theta, axis=-1, keepdims=True)
        return hyperplane_multiplier(IDivergence(), theta, a - b[..., None], np.zeros_like(b))
    assert isinstance(atom, Separable)
    _check_crossing(atom, theta, a, b)
    low, high = _multiplier_range(atom, theta, a)
    multiplier = np.zeros(low.shape)
    for _ in range(MAX_STEPS):
        excess, slope = _excess(atom, theta + multiplier[..., None] * a, a, b)
        low, high = np.where(excess < 0, multiplier, low), np.where(excess > 0, multiplier, high)
        with np.errstate(all="ignore"):
            newton = multiplier - excess / slope
        inside = (newton > low) & (newton < high)  # false for nan
        small_step = np.abs(newton - multiplier) <= 1e-6 * np.abs(newton)
        done = (np.abs(excess) <= ROUNDING) | ((np.abs(excess) <= QUADRATIC) & small_step)
        multiplier = np.where(inside, newton, np.where(done, multiplier, _between(low, high)))
        if np.all(done):
            break
    return multiplier


def _excess(
    atom: Separable, theta: np.ndarray, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the excess of ``<a, link(θ)>`` over b, relative to its terms, and its slope along a.

    For positive x both sides of ``<a⁺, x> + b⁻ = <a⁻, x> + b⁺`` are positive, and the difference of their logarithms is
    nearly linear; it is exactly linear for links and normals with a closed form.
    """
    if atom.theta_upper == 0:
        theta = np.minimum(theta, BELOW_ZERO)
    x, slope = atom.grad_inv(theta), atom.link_slope(theta)
    up, down = np.maximum(a, 0), np.maximum(-a, 0)
    left, right = np.sum(up * x, axis=-1), np.sum(down * x, axis=-1)
    left_slope, right_slope = np.sum(up * a * slope, axis=-1), np.sum(down * a * slope, axis=-1)
    if atom.domain[0] < 0:
        scale = np.sum(np.abs(a * x), axis=-1) + np.abs(b)
        scale = np.where(scale > 0, scale, 1.0)
        return (left - right - b) / scale, (left_slope - right_slope) / scale
    left, right = left + np.maximum(-b, 0), right + np.maximum(b, 0)
    with np.errstate(all="ignore"):
        excess = np.log(left) - np.log(right)
        return np.where(left == right, 0.0, excess), left_slope / left - right_slope / right


def _between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the middle of a bracket, or a point twice as far out if only one end is finite."""
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (low + high)
        middle = np.where(np.isinf(high), low + 1 + np.abs(low), middle)
        return np.where(np.isinf(low), high - 1 - np.abs(high), middle)


def _multiplier_range(atom: Separable, theta: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the range of multipliers that keep natural parameters inside their domain."""
    with np.errstate(all="ignore"):
        reach = (atom.theta_upper * np.ones_like(theta) - theta) / a
    return np.max(np.where(a < 0, reach, -np.inf), axis=-1), np.min(np.where(a > 0, reach, np.inf), axis=-1)


def _check_crossing(atom: Separable, theta: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Raise InputError if the hyperplane misses the interior of the domain; coordinates on the boundary stay fixed."""
    fixed = np.isinf(theta)
    x = atom.grad_inv(np.where(fixed, theta, -1.0))
    low, high = (np.where(fixed, x, end) for end in atom.domain)
    with np.errstate(invalid="ignore"):
        least = np.sum(np.where(a > 0, a * low, np.where(a < 0, a * high, 0.0)), axis=-1)
        most = np.sum(np.where(a > 0, a * high, np.where(a < 0, a * low, 0.0)), axis=-1)
    crossed = ((least < b) & (b < most)) | ((least == b) & (b == most))
    if not np.all(crossed):
        raise InputError(f"the hyperplane <a, x> = {b[~crossed][0]:g} does not cross the domain's interior")


# ---------------------------------------------------------------- checks


def natural_parameters(atom: Divergence, theta: ArrayLike, natural: bool) -> np.ndarray:
    values = np.asarray(theta, dtype=float)
    if values.ndim != 1:
        raise InputError(f"`theta` must be one-dimensional, got shape {values.shape}")
    if np.any(np.isnan(values)):
        raise InputError(f"`theta` has a missing value in row {int(np.argmax(np.isnan(values)))}")
    if natural:
        return values
    # with KL each segment has its own sum, so the check that everything sums to 1 does not apply
    return IDivergence().grad(values) if isinstance(atom, KL) else atom.grad(values)


def _positive(weight: ArrayLike, n: int) -> np.ndarray:
    weights = np.asarray(weight, dtype=float)
    if weights.shape != (n,) or not np.all((weights > 0) & np.isfinite(weights)):
        raise InputError(f"`weight` must be {n} finite numbers above 0, one for each row")
    return weights


def check_normal(a: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Raise InputError for normals of hyperplanes (the last axis) that are zero, not finite, or of the wrong length."""
    normal = np.asarray(a, dtype=float)
    if normal.shape != shape or not np.all(np.isfinite(normal)):
        raise InputError(f"a normal must be {shape[-1]} finite numbers, one for each coordinate")
    if not np.all(np.any(normal != 0, axis=-1)):
        raise InputError("a normal must not be all zeros")
    return normal
