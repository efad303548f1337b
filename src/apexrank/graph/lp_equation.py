"""The equation of L_p rank at ratio 1 with its bound on the error, and its solution by steps, plain or mixed.

The equation (from `graph/lp_root.py`) is ``z(μ) = y(μ)^{1/p}``, ``y(μ) = (μI − B)^{-1} v^p``, at the
root of ``φ(μ) = Σ c_i z_i(μ) = 1``. Units: ``B' = B/α^p`` has column sums of at most 1, ``s = α^p/μ``, and ``b = v^p``
in a scale that keeps the powers in range. So ``y = (s/α^p)·(I − sB')^{-1} b``, and everything grows with s.

The bound. If ``|y − sB'y − b| ≤ κ·M/D`` with M, D such that ``(I − sB')^{-1} M ≤ D·y(s)``, then y is within a factor
1 ± κ of y(s) in every entry; here ``M = Σ_{m<d} q^m B'^m b`` and ``D = Σ_{m<d} (q/s)^m``. So φ(s) is known to ±ε, and
as every z_i grows with s, ``|z* − z(s)|₁ ≤ |φ(s*) − φ(s)|/(1 − α) ≤ ε/(1 − α)``: no derivative is needed.

Far from the largest eigenvalue of B' the map ``y ← sB'y + b``, s from φ(y) = 1, converges fast (`plain_steps`). Where
it is slower, each step is mixed with the last few as Anderson does (`mixed_steps`), which needs no more of B' than the
plain map and often converges where that crawls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from math import expm1, inf, log, log1p, nan

import numpy as np

from apexrank.errors import InputError
from apexrank.graph.power import Anderson, Progress

Apply = Callable[[np.ndarray], np.ndarray]

EPS = float(np.finfo(float).eps)
ROUNDING = 8 * EPS  # what one step is allowed to lose of an entry
TINY = 1e-300  # just above where numbers lose digits
_LARGEST_EXPONENT = 280.0  # powers of ten on either side of 1 that are left to y
_FEW_STEPS = 40  # plain steps go on if they are so near the end: mixing would hardly save any
_POWER_STEPS = 12  # before their speed is judged: the first ones fall faster than the rest
_MIXED = 8  # steps that are mixed: more are nearly dependent and cost memory
_LONGEST_MOVE = 5.0  # of log y by mixing; larger ones come from nearly dependent steps


class OutOfSteps(Exception):
    """No application of B is left."""


@dataclass(frozen=True)
class Extra:
    """Share of a series in the bound: its neglected tail (its part of Σz, φ, log z) and its closed form.

    ``slope`` is the derivative of φ by the logarithm of the closed part, ``gap`` its δ.
    """

    total: float = 0.0
    phi: float = 0.0
    relative: float = 0.0
    slope: float = inf
    gap: float = nan


@dataclass(eq=False)
class LpRoot:
    """The data in the units of the module's docstring, and the best answer so far with its certificate.

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
    progress : callable, optional
        Called as ``progress(n_iter, error_bound)`` at each application, with the best bound so far.

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

    apply_B: Apply
    v: np.ndarray
    dangling: np.ndarray
    p: float
    damping: float
    _: KW_ONLY
    tol: float = 1e-9
    max_iter: int = 1000
    progress: Progress | None = None

    def __post_init__(self) -> None:
        v, p, damping = self.v, self.p, self.damping
        if not 0 < damping < 1:
            raise InputError(f"damping must lie between 0 and 1, got {damping!r}")
        largest = 2 * _LARGEST_EXPONENT / -np.log10((1 - damping) * v[v > 0].min())
        if p > largest or p * np.log10(damping) < -_LARGEST_EXPONENT:
            raise InputError(
                f"p = {p:g} is too large for ratio 1 (here at most about {largest:.0f}), powers leave the range of "
                "floating point: use a smaller p or a ratio of 1.05"
            )
        self.a = damping**p
        self.c = np.where(self.dangling, 1.0, 1.0 - damping)
        # v and 1/(1 − α), between which z lies, come to lie on either side of 1
        self.unit = ((1.0 - damping) / v[v > 0].min()) ** 0.5
        self.b = (v * self.unit) ** p
        self.n_iter = 0
        # at least ρ': no column sum of B' is larger than 1, and max_i (B'y)_i/y_i is at least ρ' for any y > 0
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
        """``B'y``: one iteration."""
        if self.n_iter >= self.max_iter:
            raise OutOfSteps
        self.n_iter += 1
        if self.progress is not None:
            self.progress(self.n_iter, self.error_bound)
        return self.apply_B(y) / self.a

    def root(self, y: np.ndarray) -> np.ndarray:
        """``y^{1/p}`` in the units of v."""
        z = np.sqrt(y) if self.p == 2 else np.cbrt(y) if self.p == 3 else y ** (1.0 / self.p)
        return z / self.unit

    def z_of(self, y: np.ndarray, s: float) -> np.ndarray:
        """``z(s)`` for ``y = (I − sB')^{-1} b``."""
        return (s / self.a) ** (1 / self.p) * self.root(y)

    def s_of(self, z: np.ndarray) -> float:
        """The s with φ = 1, for ``z = root(y)``."""
        return self.a / float(self.c @ z) ** self.p

    def prepare(self, q: float, terms: int = 4) -> tuple[np.ndarray, np.ndarray]:
        """Find M, the measure of what is left; returns its last term and ``Σ m·q^m B'^m b``.

        M has at least 4 terms, and up to ``terms`` while the last one is a large part of it anywhere: where y is far
        above M, as at the end of long chains, its rounding alone is large in units of M.
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
        """``Σ_{m<d} x^m``."""
        return float(np.sum(x ** np.arange(self.d)))

    def kappa(self, defect: float, s: float) -> float:
        """Relative distance from y(s) for ``|y − sB'y − b| ≤ defect·M``; inf if s might be beyond 1/ρ'.

        It is not: with ℓ the left eigenvector of ρ', ``sρ' ≥ 1`` would give ``ℓ·b ≤ defect·ℓ·M`` and the latter is
        ``defect·Σ (qρ')^m·ℓ·b``.
        """
        return self.D(s) * defect if defect * self._geometric(self.q * self.rho) < 0.5 else inf

    def spread(self, y: np.ndarray, s: float, where: np.ndarray | bool = True) -> float:
        """κ for a unit relative change of s: ``sB'y = y − b``."""
        return self.D(s) * float(np.max((y - self.b) * self.per_M, where=where, initial=0.0))

    def offer(self, z: np.ndarray, s: float, kappa: float, spread: float, extra: Extra | None = None) -> None:
        """Note the answer z, within ``(1 ± κ)^{1/p}`` of z(s), or below it by ``extra``, if its bound is the best."""
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
        """Bound on the distance of log z from the root's, as φ grows at least like s^{1/p}, with the closed part."""
        log_s = self.p * epsilon / (1.0 - min(epsilon, 0.5))
        change = log_s * (1.0 + 2.0 * spread) / self.p
        closed = 2.0 * epsilon / (self.p * slope)
        return change + closed if log_s * spread < 0.25 and closed < 0.25 else inf


def over(x: np.ndarray | float, y: np.ndarray) -> np.ndarray:
    """``x/y``, 0 where y is.

    >>> over(1.0, np.array([0.0, 4.0]))
    array([0.  , 0.25])
    """
    return np.divide(x, y, where=y > 0, out=np.zeros_like(y))


def plain_steps(problem: LpRoot, y: np.ndarray) -> tuple[np.ndarray, float]:
    """``y ← sB'y + b`` with s from φ(y) = 1 until done, or found to be slow; returns the last y and s."""
    defects: list[float] = []
    while True:
        y, s, defect = step_of(problem, y)
        defects.append(defect)
        if problem.converged or (len(defects) >= _POWER_STEPS and _slow(defects, problem.tol)):
            return y, s


def step_of(problem: LpRoot, y: np.ndarray) -> tuple[np.ndarray, float, float]:
    """``sB'y + b``, offered as an answer, with s and ``|sB'y + b − y|`` in units of M."""
    s = problem.s_of(problem.root(y))
    image = problem.step(y)
    ratios = np.divide(image, y, where=y > 0, out=np.where(problem.M > 0, inf, 0.0))
    problem.rho = min(problem.rho, float(np.max(ratios)))
    new = s * image + problem.b
    defect = float(np.max((np.abs(new - y) + ROUNDING * new) * problem.per_M))
    problem.offer(problem.z_of(new, s), s, problem.kappa(defect, s), problem.spread(new, s))
    return new, s, defect


def _slow(defects: list[float], tol: float) -> bool:
    """Whether the last steps, continued, leave more than a few to go."""
    last, before = defects[-1], defects[-5]
    return last >= before or 4 * log(min(tol / last, 1.0)) / log(last / before) > _FEW_STEPS


def mixed_steps(problem: LpRoot, y: np.ndarray, patience: int) -> tuple[np.ndarray, float]:
    """The same map by Anderson's mixing of the last steps, in log y, which keeps y positive.

    Ends early if the change does not fall to a tenth in ``patience`` steps.
    """
    support = np.flatnonzero(problem.M)
    y = np.maximum(y, problem.M * 1e-3)  # y may be 0 where the answer is not
    x = np.log(y[support])
    guess, sizes, even = Anderson(_MIXED + 1), [inf], np.ones(len(x))
    while True:
        new, s, _ = step_of(problem, y)
        image = np.log(new[support])
        sizes.append(float(np.linalg.norm(image - x)))
        stalled = len(sizes) > patience + 2 and min(sizes[-patience:]) >= 0.1 * min(sizes[:-patience])
        if problem.converged or stalled:
            return new, s
        if sizes[-1] > 2 * sizes[-2]:  # the steps so far are no guide here
            guess.forget()
        change = guess(x, image, even) - image
        x = image + change * min(1.0, _LONGEST_MOVE / max(float(np.max(np.abs(change))), TINY))
        y = np.zeros_like(y)
        y[support] = np.exp(x)
