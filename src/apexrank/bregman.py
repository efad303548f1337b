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
    rows, bounds = _check_rows(A, b, len(start))
    check_finite("max_iter", max_iter, 0)
    check_finite("tol", tol, 0)
    sweep = _parallel_sweep if parallel else _sequential_sweep
    multipliers = np.zeros(len(bounds))
    result = _certify(atom, start, rows, bounds, multipliers, 0, tol)
    while not result.converged and result.n_iter < max_iter:
        multipliers = sweep(atom, start, rows, bounds, multipliers)
        result = _certify(atom, start, rows, bounds, multipliers, result.n_iter + 1, tol)
    if not result.converged:
        warnings.warn(
            f"Bregman's algorithm stopped after {result.n_iter} sweeps with residual {result.residual:.1e}: "
            "raise max_iter; if that does not help, no point may satisfy all constraints",
            ConvergenceWarning,
            stacklevel=2,
        )
    return result


def _sequential_sweep(
    atom: Divergence, start: np.ndarray, rows: np.ndarray, bounds: np.ndarray, multipliers: np.ndarray
) -> np.ndarray:
    multipliers = multipliers.copy()
    theta = start - multipliers @ rows
    for i, (row, bound) in enumerate(zip(rows, bounds, strict=True)):
        if multipliers[i] == 0 and row @ atom.grad_inv(theta) <= bound:
            continue
        moved = max(0.0, multipliers[i] - float(hyperplane_multiplier(atom, theta, row, bound)))
        theta = theta - (moved - multipliers[i]) * row
        multipliers[i] = moved
    return multipliers


def _parallel_sweep(
    atom: Divergence, start: np.ndarray, rows: np.ndarray, bounds: np.ndarray, multipliers: np.ndarray
) -> np.ndarray:
    theta = start - multipliers @ rows
    moving = (multipliers > 0) | (rows @ atom.grad_inv(theta) > bounds)
    normals = rows[moving]
    step = hyperplane_multiplier(atom, np.broadcast_to(theta, normals.shape), normals, bounds[moving])
    moved = np.maximum(0.0, multipliers[moving] - step)
    multipliers = multipliers.copy()
    multipliers[moving] += (moved - multipliers[moving]) * _shares(atom, normals)
    return multipliers


def _shares(atom: Divergence, normals: np.ndarray) -> np.ndarray:
    """How far each row may go: the shares of the rows that meet in a coordinate sum to at most 1.

    The dual cost is a sum over the coordinates, each convex in the multipliers of its rows. On the simplex every row
    meets every other.
    """
    if not isinstance(atom, Separable):
        return np.full(len(normals), 1 / len(normals))
    touches = normals != 0
    return 1 / np.max(touches * touches.sum(axis=0), axis=1)


def _certify(
    atom: Divergence,
    start: np.ndarray,
    rows: np.ndarray,
    bounds: np.ndarray,
    multipliers: np.ndarray,
    n_iter: int,
    tol: float,
) -> BregmanResult:
    x = atom.grad_inv(start - multipliers @ rows)
    slack = bounds - rows @ x
    unit = np.abs(rows) @ np.abs(x) + np.abs(bounds)
    unit = np.where(unit > 0, unit, 1.0)
    violation = float(np.max(-slack / unit, initial=0.0))
    priced = float(multipliers @ unit)
    idle = float(multipliers @ np.abs(slack)) / priced if priced > 0 else 0.0
    residual = max(violation, idle)
    value = float(atom.divergence(x, atom.grad_inv(start)))
    return BregmanResult(
        x, multipliers, value, float(multipliers @ slack), residual, n_iter, bool(residual <= tol)
    )


def _check_rows(A: ArrayLike, b: ArrayLike, n: int) -> tuple[np.ndarray, np.ndarray]:
    rows, bounds = np.asarray(A, dtype=float), np.asarray(b, dtype=float)
    if rows.ndim != 2 or rows.shape[1] != n or bounds.shape != rows.shape[:1]:
        raise InputError(
            f"A must have {n} columns and b one number for each row, got {rows.shape}, {bounds.shape}"
        )
    if not np.all(np.isfinite(bounds)):
        raise InputError("b must be finite: leave out rows without a bound")
    return check_normal(rows, rows.shape), bounds
