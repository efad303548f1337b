"""Feasible linear scores that put every pair of rows in order, by alternating projections.

S. Acharyya, *Learning to Rank in Supervised and Unsupervised Settings using Convexity and Monotonicity*, dissertation,
2013, section 4.4.
"""

from __future__ import annotations

from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr, solve_triangular
from sklearn.utils import check_array

from apexrank.errors import InputError
from apexrank.objectives.margins import LevelOrder, Margins, checked_relevance
from apexrank.validation import check_count, check_finite, check_frame, check_not_huge

AIM = 2.0  # target margins, in units of the margin that ends the search


class OrderedFit(NamedTuple):
    """Result of :func:`perfectly_ordered`.

    ``coef`` are the coefficients, ``converged`` says whether their scores have every pair of rows in order, ``reason``
    why the search ended, ``n_iter`` is the number of steps, and ``history`` the distance at each of them between
    the scores and the nearest vector in order with twice the margin.
    """

    coef: np.ndarray
    converged: bool
    n_iter: int
    history: np.ndarray
    reason: str


def perfectly_ordered(
    X: ArrayLike,
    y: ArrayLike,
    *,
    margin: float = 1.0,
    momentum: bool = True,
    max_iter: int = 10_000,
    tol: float = 1e-6,
) -> OrderedFit:
    """Find w with ``(Xw)_i − (Xw)_j ≥ margin·(y_i − y_j)`` for all ``y_i > y_j``, if there is one.

    One exists if y is an increasing function of ``Xu`` for some u; rows of equal y may have any scores between their
    neighbours. The algorithm alternates projections onto two convex sets: the vectors in y's order with margins
    (subtract them, sort inside the levels of y, pool adjacent violators) and the range of X, with centred columns
    because the order is invariant to shifts. A step takes O(n·n_features + n log n).

    If a perfect w exists, the distance eventually falls by a constant factor per step, which may be very close to 1.
    Two alternating projections are a gradient step of length one on half the squared distance of the scores from the
    ordered vectors, so Nesterov's momentum improves the factor. Any larger multiple of w is perfect too: the
    projections aim at twice the margin, and reach half of that after finitely many steps.

    If no perfect w exists, the distance tends to that of the two sets, and w to the least-squares fit of the nearest
    ordered scores. That is not a minimiser of the cost of :class:`apexrank.objectives.link.UnknownLink`.

    Parameters
    ----------
    X : array-like of shape (n, n_features)
        Rows, dense.
    y : array-like of shape (n,)
        Values that define the order.
    margin : float
        Above 0; it sets the length of w.
    momentum : bool
        Extrapolate from the last point, with restarts if that increases the distance; False is the published method.
    max_iter : int
        Largest number of steps.
    tol : float
        Give up when a step moves the scores by at most this fraction of the distance between the two points, which
        means that the sets do not intersect.

    Returns
    -------
    OrderedFit

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> y = np.exp(X @ [0.6, 0.8])
    >>> fit = perfectly_ordered(X, y)
    >>> fit.converged, np.array_equal(np.argsort(X @ fit.coef), np.argsort(y))
    (True, True)
    >>> perfectly_ordered(X, rng.normal(size=40)).reason
    'no w orders the rows: their scores stay 11.7 away from ordered ones'
    """
    check_frame(X)
    rows, values = check_array(X, dtype=np.float64), checked_relevance(y)
    _check_numbers(margin, max_iter, tol, len(rows), len(values))
    check_not_huge("X", rows)
    check_not_huge("y", values)
    order = LevelOrder(values)
    if not len(order):
        raise InputError("there is no order to find: y has only one value")
    least = margin * (values - values.mean())
    span, wanted, history = _Range(rows), AIM * least, list[float]()
    allowed = Margins(order, wanted[order.rows], "hidden", 0.0, exponential=False)
    ahead = before = span.coordinates(wanted)
    a = 1.0
    for t in range(max_iter):
        w = span.coefficients(ahead)
        scores = span.Z @ w
        if _is_ordered(scores - least, order):
            return OrderedFit(w, True, t, np.array(history), "every pair of rows is in order")
        longer = _stretch(scores, least, order) if momentum else None
        if longer is not None:
            return OrderedFit(longer * w, True, t, np.array(history), "every pair of rows is in order")
        nearest = _project(allowed, scores)
        reached = span.coordinates(nearest)
        step, distance = reached - ahead, float(np.linalg.norm(nearest - scores))
        history.append(distance)
        if np.linalg.norm(step) <= tol * distance:
            if _stretch(scores, least, order) is not None:
                break
            reason = f"no w orders the rows: their scores stay {distance:.3g} away from ordered ones"
            return OrderedFit(w, False, t + 1, np.array(history), reason)
        if not momentum or step @ (reached - before) < 0:
            a = 1.0
        run, a = a - 1, (1 + np.sqrt(4 * a**2 + 1)) / 2
        ahead, before = reached + run / a * (reached - before), reached
    longer = _stretch(scores, least, order)
    if longer is not None:
        return OrderedFit(longer * w, True, len(history), np.array(history), "every pair of rows is in order")
    reason = f"undecided after {max_iter} steps at a distance of {history[-1]:.3g}: raise max_iter"
    return OrderedFit(w, False, max_iter, np.array(history), reason)


def _check_numbers(margin: float, max_iter: int, tol: float, n_rows: int, n_values: int) -> None:
    if n_rows != n_values:
        raise InputError(f"y needs one number per row: expected {n_rows}, got {n_values}")
    if not isinstance(margin, Real) or not 0 < float(margin) < np.inf:
        raise InputError(
            f"`margin` must be finite and above 0, got {margin!r}: with 0, equal scores would be in order"
        )
    check_count("max_iter", max_iter)
    check_finite("tol", tol, 0)


def _project(allowed: Margins, scores: np.ndarray) -> np.ndarray:
    found, nearest = allowed.project(scores), np.empty(len(scores))
    nearest[found.rows] = found.target
    return nearest


def _is_ordered(excess: np.ndarray, order: LevelOrder) -> bool:
    """Return whether scores minus margins never decrease from one level of y to a higher one."""
    sorted_, starts = excess[order.rows], order.levels[:-1]
    lowest, highest = np.minimum.reduceat(sorted_, starts), np.maximum.reduceat(sorted_, starts)
    return bool(np.all(lowest[1:] >= np.maximum.accumulate(highest)[:-1]))


def _stretch(scores: np.ndarray, least: np.ndarray, order: LevelOrder) -> float | None:
    """Return the factor that gives scores their margins if they increase with the levels of y, otherwise None."""
    sorted_, starts = scores[order.rows], order.levels[:-1]
    lowest, highest = np.minimum.reduceat(sorted_, starts), np.maximum.reduceat(sorted_, starts)
    gaps = lowest[1:] - highest[:-1]
    rounding = 64 * np.finfo(float).eps * float(np.abs(scores).max())
    if not (gaps > rounding).all():
        return None
    factor = float((np.diff(least[order.rows][starts]) / gaps).max()) * (1 + 1e-9)
    return factor if _is_ordered(factor * scores - least, order) else None


class _Range:
    """Least squares on the centred columns of X, by one QR decomposition with pivoting."""

    def __init__(self, X: np.ndarray) -> None:
        self.Z = X - X.mean(axis=0)
        size = np.linalg.norm(self.Z, axis=0)
        rounding = max(X.shape) * np.finfo(float).eps
        self.unit = np.where(size > rounding * np.abs(X).max(axis=0) * np.sqrt(len(X)), size, np.inf)
        Q, R, pivot = qr(self.Z / self.unit, mode="economic", pivoting=True)
        rank = int(np.sum(np.abs(np.diag(R)) > rounding))
        self.Q, self.R, self.pivot = Q[:, :rank], R[:rank, :rank], pivot[:rank]

    def coordinates(self, scores: np.ndarray) -> np.ndarray:
        """Return the nearest point of the range in an orthonormal basis of it."""
        return self.Q.T @ scores

    def coefficients(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the w of that point; linearly dependent columns get 0."""
        w = np.zeros(self.Z.shape[1])
        w[self.pivot] = solve_triangular(self.R, coordinates)
        return w / self.unit
