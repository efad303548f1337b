"""Bregman's algorithm: the Bregman projection onto ``A x ≤ b`` by projections onto one half-space at a time.

It is coordinate descent on the dual. The natural parameters are always ``θ − Aᵀμ``, with a multiplier ``μ_i ≥ 0`` for
each row; projecting onto row i's hyperplane changes ``μ_i`` alone, which stops at zero on its way down. Table 2.1 of
Acharyya 2013 has no way down, and so ends at a feasible point that need not be the nearest.

The parallel algorithm projects onto all rows from the same point, and moves each multiplier only part of the way: rows
that share a coordinate share the step. That is a convex combination of points of smaller dual cost; the table's sum of
all steps is not, and need not converge.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from apexrank.divergences import DIVERGENCES, Divergence, Separable
from apexrank.errors import InputError
from apexrank.projections import check_normal, hyperplane_multiplier, natural_parameters
from apexrank.validation import check_finite


@dataclass(frozen=True)
class BregmanResult:
    """A projection and its certificate.

    ``x`` is always the exact minimiser for its multipliers, ``∇φ(x) = θ − Aᵀμ`` with ``μ ≥ 0``; what is left to show is
    that x is feasible and that slack rows have no multiplier. ``residual`` is the larger of two numbers: the largest
    violation relative to ``Σ_j |a_ij x_j| + |b_i|``, and the mean distance from the bound, weighted by μ, in the same
    units. ``value`` is ``D_φ(x ‖ link(θ))`` and ``gap`` is ``<μ, b − A x>``; ``value − gap`` is the dual value, and
    what it lacks to the smallest value is at least ``D_φ(x*‖x)``, the divergence of the solution from x.
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
    """``argmin_y D_φ(y ‖ link(θ))`` over ``A y ≤ b``, by Bregman's sequential or parallel algorithm.

    Parameters
    ----------
    divergence : str or Divergence
        A name or an atom of :mod:`apexrank.divergences`.
    theta : array-like of shape (n,)
        Natural parameters of the point to project.
    A, b : array-like of shape (m, n) and (m,)
        The half-spaces. An equation is a row and its negative.
    parallel : bool
        Project onto all half-spaces from one point, instead of one after the other.
    max_iter, tol : int, float
        Stop after so many sweeps over the rows, or when the residual is at most ``tol``.
    natural : bool
        False where ``theta`` is the point itself.

    Returns
    -------
    BregmanResult
        With a ``ConvergenceWarning`` where ``tol`` was not reached.

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
        warnings.warn(
            f"Bregman's algorithm stopped after {result.n_iter} sweeps with residual {result.residual:.1e}: "
            "raise max_iter; if that does not help, no point may satisfy all constraints",
            ConvergenceWarning,
            stacklevel=2,
        )
    return result


@dataclass(frozen=True, eq=False)
class _Dual:
    """The point ``start`` to project, the half-spaces ``rows·x ≤ bounds``, and steps of their multipliers."""

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
        """Step sizes of the rows: those that meet in a coordinate sum to at most 1.

        The dual cost is a sum over the coordinates, each convex in the multipliers of its rows. On the simplex every
        row meets every other.
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
        raise InputError(f"A needs {n} columns and b one number per row, got {rows.shape}, {bounds.shape}")
    if not np.all(np.isfinite(bounds)):
        raise InputError("b must be finite: leave out rows without a bound")
    return check_normal(rows, rows.shape), bounds
