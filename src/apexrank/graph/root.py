"""L_p rank with q = p (ratio 1), found as the root of a scalar equation, with a bound on the error.

With ``B_ij = (α/d_j)^p`` the rank solves ``λ^p r_i^p = Σ_j B_ij r_j^p + (v_i τ)^p``, ``τ = Σ_i c_i r_i``, where
``c_i = 1 − α`` and 1 at dangling vertices. Scaled to τ = 1 and with μ = λ^p it is ``z(μ) = y(μ)^{1/p}``,
``y(μ) = (μI − B)^{-1} v^p``, at the root of ``φ(μ) = Σ c_i z_i(μ) = 1``; then ``r = z/Σz``.

Plain power steps may take for ever here: unlike at larger ratios the map does not contract. What is quick depends on
how near μ comes to the largest eigenvalue of B. `graph/mixing.py` has the equation with its bound, and steps for μ far
from it; `graph/series.py` has a series with its end in closed form for μ near it. This module tries them in turn.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.lp_equation import Apply, OutOfSteps, Problem, Progress, mixed_steps, plain_steps
from apexrank.graph.lp_root import Series

_LARGEST_EXPONENT = 280.0  # powers of ten on either side of 1 that are left to y
_PATIENCE = 40  # mixed steps without progress before a series is tried; ten times as many after it
_ROUNDS = 30  # series, each with a better s; on random graphs six were the most


@dataclass(frozen=True)
class RootSolution:
    """Rank with its certificate.

    Attributes
    ----------
    scores : ndarray
        r, non-negative with sum 1.
    error_bound : float
        At least ``|r − r*|₁``, up to rounding; inf where nothing can be said.
    relative_bound : float
        At least ``max_i |log(r_i/r*_i)|`` over the vertices that are reached from the teleport vector.
    n_iter : int
        Applications of B.
    converged : bool
        Whether ``error_bound ≤ tol``.
    mu : float
        μ = λ^p.
    gap : float
        ``1 − ρ(B)/μ`` where the end of the series was taken in closed form (it may lie far below rounding); nan
        elsewhere. The bound then holds for growth factors that are equal, not just equal up to
        rounding (2e-14), if the gap is below about 1e-13/tol. Without weights they are equal where they are close
        to 1: the factor of a cycle of single links is exactly 1, any other at most ``2^{−p/n}``.
    """

    scores: np.ndarray
    error_bound: float
    relative_bound: float
    n_iter: int
    converged: bool
    mu: float
    gap: float = nan


def solve_ratio_one(
    apply_B: Apply,
    v: np.ndarray,
    dangling: np.ndarray,
    p: float,
    damping: float,
    *,
    tol: float = 1e-9,
    max_iter: int = 1000,
    start: np.ndarray | None = None,
    progress: Progress | None = None,
) -> RootSolution:
    """Solve ``λ r_i = (Σ_j B_ij r_j^p + (v_i τ)^p)^{1/p}``, ``|r|₁ = 1``, for p = q.

    Parameters
    ----------
    apply_B : callable
        ``y ↦ B y`` for y ≥ 0, ``B_ij = (α w_ij/d_j)^p``. It must not underflow:
        ``(α w_ij/d_j)^p`` has to be a normal number.
    v : ndarray
        Teleport vector: non-negative, sum 1. Vertices that cannot be reached from its support get 0.
    dangling : ndarray of bool
        Vertices without out-links; their rank is shared out by v.
    p : float
        At least 1. At most about ``560/log10(1/((1 − α)·min v))``, 87 for 400,000 vertices: powers leave the range of
        floating point beyond.
    damping : float in (0, 1)
        α.
    tol : float
        Wanted bound on ``|r − r*|₁``.
    max_iter : int
        Most applications of B.
    start : ndarray, optional
        A rank to start from, as of a similar graph; helps only far from ρ(B).
    progress : callable, optional
        Called as ``progress(n_iter, error_bound)`` at each application, with the best bound so far.

    Notes
    -----
    Not converged, with an `error_bound` above `tol` (inf if nothing is known, and the scores may then be far off): μ is
    so near ρ(B) that rounding decides, and the growth factors of the leading cycles are nearly but not quite equal, so
    that no number of steps within `max_iter` tells them apart. A ratio of 1.05 contracts and has no such case.

    Examples
    --------
    Two pages that link each other, and one that links the first of them:

    >>> import numpy as np
    >>> B = 0.85**2 * np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> solution = solve_ratio_one(lambda y: B @ y, np.full(3, 1 / 3), np.zeros(3, bool), 2, 0.85)
    >>> print(solution.scores.round(6), solution.converged, solution.error_bound < 1e-9)
    [0.471811 0.470037 0.058152] True True
    """
    v = np.asarray(v, dtype=float)
    _check(v, dangling, p, damping)
    first = None if start is None else _check_start(start, v)
    problem = Problem(apply_B, v, dangling, p, damping, tol, max_iter, progress)
    with suppress(OutOfSteps):
        _solve(problem, first)
    return RootSolution(
        scores=problem.z / problem.z.sum(),
        error_bound=float(problem.bound),
        relative_bound=float(problem.relative),
        n_iter=problem.n_iter,
        converged=problem.done,
        mu=float(problem.mu),
        gap=float(problem.gap),
    )


def _solve(problem: Problem, start: np.ndarray | None) -> None:
    """One method after the other, from the quickest to the most patient, until the bound is met.

    ρ' is at most 1, and is 1 where there are cycles of single links. If the first terms leave φ below 1 at s = 1, the
    root may be near 1/ρ', and the series comes first.
    """
    terms = problem.prepare(1.0)
    y = problem.M
    if problem.q == 1.0 and problem.s_of(problem.root(y)) > 1.0:
        y = _rounds(problem, Series.after(problem, terms), guess=True)
    elif start is not None:
        y = np.where(y > 0, (start / (problem.c @ start) * problem.unit) ** problem.p, 0.0)
    if not problem.done:
        y, s = plain_steps(problem, y)
    if not problem.done:
        problem.prepare(s)
        y, s = mixed_steps(problem, y, _PATIENCE)
    if not problem.done:
        y = _rounds(problem, Series(problem, s), guess=False)
    if not problem.done:
        mixed_steps(problem, y, 10 * _PATIENCE)


def _rounds(problem: Problem, series: Series, guess: bool) -> np.ndarray:
    """Series for fixed s, then ``δ = 1 − sρ'`` and with it s from φ = 1; again with that s until it stays.

    Returns the last sum. The first s may be a mere ``guess``.
    """
    seen: list[tuple[float, float]] = []
    for _ in range(_ROUNDS):
        found = series.run(first=not seen, guess=guess)
        if problem.done or found is None:
            break
        seen.append((series.s, found))
        series = Series(problem, _next(seen), series.tie)
    return series.y


def _next(seen: list[tuple[float, float]]) -> float:
    """The s to try next: the one found, or a secant step (what is found falls with what was put in)."""
    s, found = seen[-1]
    if len(seen) == 1 or s == seen[-2][0]:
        return found
    slope = (found - seen[-2][1]) / (s - seen[-2][0])
    return s + (found - s) / (1.0 - min(slope, 0.0))


def _check_start(start: np.ndarray, like: np.ndarray) -> np.ndarray:
    start = np.asarray(start, dtype=float)
    if start.shape != like.shape or not (np.isfinite(start).all() and (start >= 0).all() and start.sum() > 0):
        raise InputError(f"start must be {len(like)} non-negative scores, not all 0")
    return start


def _check(v: np.ndarray, dangling: np.ndarray, p: float, damping: float) -> None:
    if not 0 < damping < 1:
        raise InputError(f"damping must lie between 0 and 1, got {damping!r}")
    if not 1 <= p < inf:
        raise InputError(f"ratio 1 needs a finite p of at least 1, got {p!r}: use a ratio above 1")
    if (
        v.ndim != 1
        or len(v) == 0
        or not (np.isfinite(v).all() and (v >= 0).all() and abs(v.sum() - 1) <= 1e-9)
    ):
        raise InputError("the teleport vector must be non-negative with sum 1")
    if np.shape(dangling) != v.shape:
        raise InputError(f"dangling has shape {np.shape(dangling)}, the teleport vector {v.shape}")
    largest = 2 * _LARGEST_EXPONENT / -np.log10((1 - damping) * v[v > 0].min())
    if p > largest or p * np.log10(damping) < -_LARGEST_EXPONENT:
        raise InputError(
            f"p = {p:g} is too large for ratio 1 (here at most about {largest:.0f}), powers leave the range of "
            "floating point: use a smaller p or a ratio of 1.05"
        )
