"""Equation of the L_p rank at ratio 1 with its error bound, and its solution by plain or mixed steps.

The equation (from `graph/lp_root.py`) is ``z(μ) = y(μ)^{1/p}``, ``y(μ) = (μI − B)^{-1} v^p``, at the
root of ``φ(μ) = Σ c_i z_i(μ) = 1``. Units: ``B' = B/α^p`` has column sums of at most 1, ``s = α^p/μ``, and ``b = v^p``
is scaled to keep powers in range. So ``y = (s/α^p)·(I − sB')^{-1} b``, and every quantity increases with s.

Error bound: if ``|y − sB'y − b| ≤ κ·M/D`` with M, D such that ``(I − sB')^{-1} M ≤ D·y(s)``, then y is within a factor
1 ± κ of y(s) in every entry; here ``M = Σ_{m<d} q^m B'^m b`` and ``D = Σ_{m<d} (q/s)^m``. So φ(s) is known to ±ε, and
as every z_i increases with s, ``|z* − z(s)|₁ ≤ |φ(s*) − φ(s)|/(1 − α) ≤ ε/(1 − α)``: no derivative is needed.

Far from the largest eigenvalue of B' the map ``y ← sB'y + b``, with s from φ(y) = 1, converges fast (`plain_steps`). If
it is slower, Anderson acceleration combines each step with the last few (`mixed_steps`), which needs no more of B' than
the plain map and often converges where that is slow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from math import exp, expm1, inf, log, log1p, nan

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.power import Anderson, Progress

Apply = Callable[[np.ndarray], np.ndarray]

EPS = float(np.finfo(float).eps)
ROUNDING = 8 * EPS  # allowed relative error of an entry per step
TINY = 1e-300  # just above the denormal range
_LARGEST_EXPONENT = 280.0  # range of y in powers of ten on either side of 1
_LARGEST_LOG_S = 690.0  # slightly inside the range of floating point
_FEW_STEPS = 40  # with at most this many steps left, plain steps continue: mixing would hardly save any
_POWER_STEPS = 12  # before their speed is judged, because the first ones converge faster
_MIXED = 8  # steps that are mixed; more are nearly dependent and need memory
_LONGEST_MOVE = 5.0  # largest change of log y by mixing; larger ones result from nearly dependent steps


class OutOfSteps(Exception):
    """Raised when the limit on applications of B is reached."""


class NoClosedForm(Exception):
    """Raised when no s has φ = 1 with the tail that terms of a series seem to have."""


@dataclass(frozen=True)
class Extra:
    """Contribution of a series to the bound: its neglected tail (in Σz, φ, log z) and its closed form.

    ``slope`` is the derivative of φ by the logarithm of the closed part, ``gap`` its δ.
    """

    total: float = 0.0
    phi: float = 0.0
    relative: float = 0.0
    slope: float = inf
    gap: float = nan


@dataclass(eq=False)
class LpRoot:
    """Problem data in the units of the module's docstring, and the best solution so far with its certificate.

    Parameters
    ----------
    apply_B : callable
        ``y ↦ B y`` for y ≥ 0, ``B_ij = (α w_ij/d_j)^p``. It must not underflow:
        ``(α w_ij/d_j)^p`` has to be a normal number.
    v : ndarray
        Teleport vector: non-negative, sum 1. Vertices not reachable from its support get 0.
    dangling : ndarray of bool
        Vertices without out-links; their rank is redistributed by v.
    p : float
        At least 1, and at most about ``560/log10(1/((1 − α)·min v))``, 87 for 400,000 vertices: beyond it powers leave
        the range of floating point.
    damping : float in (0, 1)
        α.
    tol : float
        Tolerance on ``|r − r*|₁``.
    max_iter : int
        Maximum number of applications of B.
    single : ndarray of bool, optional
        Vertices with a single out-link, whose share is exact.
    progress : callable, optional
        Called as ``progress(n_iter, error_bound)`` at each application, with the best bound so far.

    Attributes
    ----------
    scores : ndarray
        r, non-negative with sum 1.
    error_bound : float
        Upper bound on ``|r − r*|₁``, up to rounding; inf if nothing is known.
    relative_bound : float
        Upper bound on ``max_i |log(r_i/r*_i)|`` over the vertices reachable from the teleport vector.
    n_iter : int
        Number of applications of B.
    converged : bool
        Whether ``error_bound ≤ tol``.
    mu : float
        μ = λ^p.
    gap : float
        ``1 − ρ(B)/μ`` if the end of the series was taken in closed form (it may be far below rounding); nan otherwise.
        If the gap is below about 1e-13/tol, rounding would decide how several sets of vertices that grow equally fast
        share the rank. The bound then holds only if these are cycles of single links, whose factors are exactly 1, or
        if there is a single set.
    """

    apply_B: Apply
    v: np.ndarray
    dangling: np.ndarray
    p: float
    damping: float
    _: KW_ONLY
    tol: float = 1e-9
    max_iter: int = 1000
    single: np.ndarray | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        v, p, damping = self.v, self.p, self.damping
        if not 0 < damping < 1:
            raise InputError(f"`damping` must lie between 0 and 1, got {damping!r}")
        largest = 2 * _LARGEST_EXPONENT / -np.log10((1 - damping) * v[v > 0].min())
        if p > largest or p * np.log10(damping) < -_LARGEST_EXPONENT:
            raise self._out_of_range(f" (here at most about {largest:.0f})")
        self.a = damping**p
        self.c = np.where(self.dangling, 1.0, 1.0 - damping)
        # puts v and 1/(1 − α), between which z lies, on either side of 1
        self.unit = ((1.0 - damping) / v[v > 0].min()) ** 0.5
        self.b = (v * self.unit) ** p
        self.n_iter = 0
        # upper bound on ρ': column sums of B' are at most 1, and max_i (B'y)_i/y_i is at least ρ' for any y > 0
        self.rho = 1.0
        self.error_bound = self.relative_bound = inf
        self.z, self.mu, self.gap = v, nan, nan

    @property
    def scores(self) -> np.ndarray:
        return self.z / self.z.sum()

    @property
    def converged(self) -> bool:
        return self.error_bound <= self.tol

    def step(self, y: np.ndarray) -> np.ndarray:
        """Compute ``B'y``, one iteration."""
        if self.n_iter >= self.max_iter:
            raise OutOfSteps
        self.n_iter += 1
        if self.progress is not None:
            self.progress(self.n_iter, self.error_bound)
        return self.apply_B(y) / self.a

    def root(self, y: np.ndarray) -> np.ndarray:
        """Return ``y^{1/p}`` in the units of v."""
        z = np.sqrt(y) if self.p == 2 else np.cbrt(y) if self.p == 3 else y ** (1.0 / self.p)
        return z / self.unit

    def z_of(self, y: np.ndarray, s: float) -> np.ndarray:
        """Return ``z(s)`` for ``y = (I − sB')^{-1} b``."""
        return (s / self.a) ** (1 / self.p) * self.root(y)

    def s_of(self, z: np.ndarray) -> float:
        """Return the s with φ = 1, for ``z = root(y)``."""
        log_s = self.p * (log(self.damping) - log(float(self.c @ z)))
        if not abs(log_s) < _LARGEST_LOG_S:
            raise self._out_of_range()
        return exp(log_s)

    def _out_of_range(self, limit: str = "") -> InputError:
        return InputError(
            f"p = {self.p:g} is too large for ratio 1{limit}, powers leave the range of floating point: "
            "use a smaller p or a ratio of 1.05"
        )

    def prepare(self, q: float, terms: int = 4) -> tuple[np.ndarray, np.ndarray]:
        """Compute M, the unit of residuals; return its last term and ``Σ m·q^m B'^m b``.

        M has at least 4 terms, and up to ``terms`` while the last one is a large part of it anywhere: where y is far
        above M, as at the end of long chains, its rounding error alone is large in units of M.
        """
        self.q = min(self.s_of(self.root(self.b)), q)
        self.M, self.d, term = self.b, 1, self.b
        moment, reached = np.zeros_like(self.b), -1
        while (
            self.d < 4
            or int(np.count_nonzero(self.M)) > reached
            or (self.d < terms and np.any(term > 0.1 * self.M))
        ):
            reached = int(np.count_nonzero(self.M))
            term = self.q * self.step(term)
            moment += self.d * term
            self.M = self.M + term
            self.d += 1
        self.per_M = over(1.0, self.M)
        return term, moment

    def D(self, s: float) -> float:
        return self._geometric(self.q / s)

    def _geometric(self, x: float) -> float:
        """Return ``Σ_{m<d} x^m``."""
        with np.errstate(over="ignore"):
            return float(np.sum(x ** np.arange(self.d)))

    def kappa(self, defect: float, s: float) -> float:
        """Bound the relative distance from y(s) given ``|y − sB'y − b| ≤ defect·M``; inf if s may exceed 1/ρ'.

        A finite bound excludes that: with ℓ the left eigenvector of ρ', ``sρ' ≥ 1`` would give ``ℓ·b ≤ defect·ℓ·M``,
        where the latter is ``defect·Σ (qρ')^m·ℓ·b``.
        """
        return self.D(s) * defect if defect * self._geometric(self.q * self.rho) < 0.5 else inf

    def spread(self, y: np.ndarray, s: float, where: np.ndarray | bool = True) -> float:
        """Return κ for a unit relative change of s, using ``sB'y = y − b``."""
        return self.D(s) * float(np.max((y - self.b) * self.per_M, where=where, initial=0.0))

    def offer(self, z: np.ndarray, s: float, kappa: float, spread: float, extra: Extra | None = None) -> None:
        """Record z, within ``(1 ± κ)^{1/p}`` of z(s) or below it by ``extra``, if its bound is the best so far."""
        if not kappa < 0.5:
            if self.error_bound == inf:
                self.z, self.mu = z, self.a / s
            return
        extra = extra or Extra()
        total, phi = float(z.sum()), float(self.c @ z)
        off = expm1(-log1p(-kappa) / self.p) + 4 * EPS
        epsilon = abs(1.0 - phi) + off * phi + extra.phi
        bound = 2.0 * (off + (extra.total + epsilon / (1.0 - self.damping)) / total)
        if bound < self.error_bound:
            self.error_bound, self.z, self.mu, self.gap = bound, z, self.a / s, extra.gap
            self.relative_bound = 2.0 * (off + extra.relative + self._move(epsilon, spread, extra.slope))

    def _move(self, epsilon: float, spread: float, slope: float) -> float:
        """Bound the distance of log z from that of the root, as φ grows at least like s^{1/p}, with the closed part."""
        log_s = self.p * epsilon / (1.0 - min(epsilon, 0.5))
        change = log_s * (1.0 + 2.0 * spread) / self.p
        closed = 2.0 * epsilon / (self.p * slope)
        return change + closed if log_s * spread < 0.25 and closed < 0.25 else inf


def over(x: np.ndarray | float, y: np.ndarray) -> np.ndarray:
    """Return ``x/y``, 0 where y is 0.

    >>> over(1.0, np.array([0.0, 4.0]))
    array([0.  , 0.25])
    """
    return np.divide(x, y, where=y > 0, out=np.zeros_like(y))


def plain_steps(problem: LpRoot, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Iterate ``y ← sB'y + b`` with s from φ(y) = 1 until converged or slow; return the last y and s."""
    defects: list[float] = []
    while True:
        y, s, defect = step_of(problem, y)
        defects.append(defect)
        if problem.converged or (len(defects) >= _POWER_STEPS and _slow(defects, problem.tol)):
            return y, s


def step_of(problem: LpRoot, y: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Compute ``sB'y + b``, record it as a solution, and return it with s and ``|sB'y + b − y|`` in units of M."""
    s = problem.s_of(problem.root(y))
    image = problem.step(y)
    ratios = np.divide(image, y, where=y > 0, out=np.where(problem.M > 0, inf, 0.0))
    problem.rho = min(problem.rho, float(np.max(ratios)))
    new = s * image + problem.b
    defect = float(np.max((np.abs(new - y) + ROUNDING * new) * problem.per_M))
    problem.offer(problem.z_of(new, s), s, problem.kappa(defect, s), problem.spread(new, s))
    return new, s, defect


def _slow(defects: list[float], tol: float) -> bool:
    """Return whether extrapolating the last steps leaves more than a few to go."""
    last, before = defects[-1], defects[-5]
    return last >= before or 4 * log(max(min(tol / last, 1.0), TINY)) / log(last / before) > _FEW_STEPS


def mixed_steps(problem: LpRoot, y: np.ndarray, patience: int) -> tuple[np.ndarray, float]:
    """Iterate the same map with Anderson acceleration in log y, which keeps y positive.

    It stops early if the change does not decrease to a tenth in ``patience`` steps.
    """
    support = np.flatnonzero(problem.M)
    y = np.maximum(y, problem.M * 1e-3)  # y may be 0 where the solution is not
    x = np.log(y[support])
    guess, sizes, even = Anderson(_MIXED + 1), [inf], np.ones(len(x))
    while True:
        new, s, _ = step_of(problem, y)
        image = np.log(new[support])
        sizes.append(float(np.linalg.norm(image - x)))
        stalled = len(sizes) > patience + 2 and min(sizes[-patience:]) >= 0.1 * min(sizes[:-patience])
        if problem.converged or stalled:
            return new, s
        if sizes[-1] > 2 * sizes[-2]:  # previous steps are not informative here
            guess.forget()
        change = guess(x, image, even) - image
        x = image + change * min(1.0, _LONGEST_MOVE / max(float(np.max(np.abs(change))), TINY))
        y = np.zeros_like(y)
        y[support] = np.exp(x)
