"""L_p rank with q = p (ratio 1), found as the root of a scalar equation, with a bound on the error.

With ``B_ij = (α/d_j)^p`` the rank solves ``λ^p r_i^p = Σ_j B_ij r_j^p + (v_i τ)^p``, ``τ = Σ_i c_i r_i``, where
``c_i = 1 − α`` and 1 at dangling vertices. Scaled to τ = 1 and with μ = λ^p it is ``z(μ) = y(μ)^{1/p}``,
``y(μ) = (μI − B)^{-1} v^p``, at the root of ``φ(μ) = Σ c_i z_i(μ) = 1``; then ``r = z/Σz``.

Units: ``B' = B/α^p`` has column sums of at most 1, ``s = α^p/μ``, and ``b = v^p`` in a scale that keeps the powers in
range. So ``y = (s/α^p)·(I − sB')^{-1} b``, and everything grows with s.

*Far from the largest eigenvalue* ρ' of B' the map ``y ← sB'y + b``, s from φ(y) = 1, converges fast (`_power`; with
Anderson's mixing where it is slower, `_mixed`). *Near it* it does not, and real crawls are there: pages whose only link
leads to themselves, or round a cycle of such pages, have ρ' = 1 and hold most of the rank, and 1 − sρ' is 1e-4 at p = 2
and 3e-17 at p = 8 on a crawl of 325,557 pages. There `_Series` adds up ``Σ_k (sB')^k b`` until each vertex either has
decayed or repeats itself with a period L, ``u_{k+L} = t^L u_k`` with one t for all; the rest of the series is then
known in closed form, with δ = 1 − t as the unknown in place of μ, however small it is.

The bound. If ``|y − sB'y − b| ≤ κ·M/D`` with M, D such that ``(I − sB')^{-1} M ≤ D·y(s)``, then y is within a factor
1 ± κ of y(s) in every entry; here ``M = Σ_{m<d} q^m B'^m b`` and ``D = Σ_{m<d} (q/s)^m``. So φ(s) is known to ±ε, and
as every z_i grows with s, ``|z* − z(s)|₁ ≤ |φ(s*) − φ(s)|/(1 − α) ≤ ε/(1 − α)``: no derivative is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import exp, expm1, inf, log, log1p, nan

import numpy as np
from scipy.optimize import brentq

from apexrank.errors import InputError

Apply = Callable[[np.ndarray], np.ndarray]
Progress = Callable[[int, float], None]

_EPS = float(np.finfo(float).eps)
_LARGEST_EXPONENT = 280.0  # powers of ten on either side of 1 that are left to y
_TINY = 1e-300
_TIE = 1e-14  # terms that agree to this are the same up to rounding
_NEAR = 1e-4  # terms that agree to this may do so after averaging
_LOOSE = 1e-6  # terms that agree to this are looked at more closely
_FEW_STEPS = 40  # plain iteration goes on if it is so near the end
_POWER_STEPS = 12  # before its speed is judged
_ESTIMATE = 1e-4  # relative accuracy of the sum at which μ is first estimated
_MIXED = 8  # steps that are mixed
_PATIENCE = 40  # steps without progress before a series is tried
_GUESS = 300  # terms before a guess of s is given up
_ROUNDS = 30


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
    problem = _Problem(apply_B, v, dangling, p, damping, tol, max_iter, progress)
    with suppress(_Spent):
        _solve(problem, None if start is None else _check_start(start, problem.b))
    return problem.solution()


class _Spent(Exception):
    """No application of B is left."""


@dataclass(frozen=True)
class _Extra:
    """What a series adds to the bound: its neglected end (its part of Σz, φ, log z) and its closed form.

    ``slope`` is the derivative of φ by the logarithm of the closed part, ``gap`` its δ.
    """

    total: float = 0.0
    phi: float = 0.0
    relative: float = 0.0
    slope: float = inf
    gap: float = nan


class _Problem:
    """The data in the units of the module's docstring, the count of applications, and the best answer so far."""

    def __init__(
        self,
        apply_B: Apply,
        v: np.ndarray,
        dangling: np.ndarray,
        p: float,
        damping: float,
        tol: float,
        max_iter: int,
        progress: Progress | None,
    ) -> None:
        v = np.asarray(v, dtype=float)
        _check(v, dangling, p, damping)
        self.apply_B, self.p, self.damping, self.tol = apply_B, p, damping, tol
        self.max_iter, self.progress = max_iter, progress
        self.a = damping**p
        self.c = np.where(dangling, 1.0, 1.0 - damping)
        # v and 1/(1 − α), between which z lies, come to lie on either side of 1
        self.unit = ((1.0 - damping) / v[v > 0].min()) ** 0.5
        self.b = (v * self.unit) ** p
        self.n_iter = 0
        # at least ρ': no column sum of B' is larger than 1, and max_i (B'y)_i/y_i is at least ρ' for any y > 0
        self.rho = 1.0
        self.bound = self.relative = inf
        self.z, self.mu, self.gap = v, nan, nan

    @property
    def done(self) -> bool:
        return self.bound <= self.tol

    def step(self, y: np.ndarray) -> np.ndarray:
        """``B'y``: one iteration."""
        if self.n_iter >= self.max_iter:
            raise _Spent
        self.n_iter += 1
        if self.progress is not None:
            self.progress(self.n_iter, self.bound)
        return self.apply_B(y) / self.a

    def root(self, y: np.ndarray) -> np.ndarray:
        """``y^{1/p}`` in the units of v."""
        z = np.sqrt(y) if self.p == 2 else np.cbrt(y) if self.p == 3 else y ** (1.0 / self.p)
        return z / self.unit

    def prepare(self, q: float) -> tuple[np.ndarray, np.ndarray]:
        """Find M, the measure of what is left; returns its last term and ``Σ m·q^m B'^m b``."""
        self.q = min(self.s_of(self.root(self.b)), q)
        self.M, self.d, term = self.b, 1, self.b
        moment, reached = np.zeros_like(self.b), -1
        while self.d < 4 or int(np.count_nonzero(self.M)) > reached:
            reached = int(np.count_nonzero(self.M))
            term = self.q * self.step(term)
            moment += self.d * term
            self.M = self.M + term
            self.d += 1
        self.per_M = np.divide(1.0, self.M, out=np.zeros_like(self.M), where=self.M > 0)
        return term, moment

    def s_of(self, z: np.ndarray) -> float:
        """The s with φ = 1, for ``z = root(y)``."""
        return self.a / float(self.c @ z) ** self.p

    def D(self, s: float) -> float:
        return float(np.sum((self.q / s) ** np.arange(self.d)))

    def kappa(self, defect: float, s: float) -> float:
        """Relative distance from y(s) for ``|y − sB'y − b| ≤ defect·M``; inf if s might be beyond 1/ρ'.

        It is not: with ℓ the left eigenvector of ρ', ``sρ' ≥ 1`` would give ``ℓ·b ≤ defect·ℓ·M`` and the latter is
        ``defect·Σ (qρ')^m·ℓ·b``.
        """
        return self.D(s) * defect if defect * np.sum((self.q * self.rho) ** np.arange(self.d)) < 0.5 else inf

    def spread(self, y: np.ndarray, s: float, where: np.ndarray | bool = True) -> float:
        """κ for a unit relative change of s: ``sB'y = y − b``."""
        return self.D(s) * float(np.max((y - self.b) * self.per_M, where=where, initial=0.0))

    def offer(
        self, z: np.ndarray, s: float, kappa: float, spread: float, extra: _Extra | None = None
    ) -> None:
        """Note the answer z, within ``(1 ± κ)^{1/p}`` of z(s), or below it by ``extra``, if its bound is the best."""
        if not kappa < 0.5:
            if self.bound == inf:
                self.z, self.mu = z, self.a / s
            return
        extra = extra or _Extra()
        total, phi = float(z.sum()), float(self.c @ z)
        off = expm1(-log1p(-kappa) / self.p) + 4 * _EPS
        epsilon = abs(1.0 - phi) + off * phi + extra.phi
        bound = 2.0 * (off + (extra.total + epsilon / (1.0 - self.damping)) / total)
        if bound < self.bound:
            self.bound, self.z, self.mu, self.gap = bound, z, self.a / s, extra.gap
            self.relative = 2.0 * (off + extra.relative + self._move(epsilon, spread, extra.slope))

    def _move(self, epsilon: float, spread: float, slope: float) -> float:
        """How far log z can be from the root's, as φ grows at least like s^{1/p}, and with the closed part."""
        log_s = self.p * epsilon / (1.0 - min(epsilon, 0.5))
        change = log_s * (1.0 + 2.0 * spread) / self.p
        closed = 2.0 * epsilon / (self.p * slope)
        return change + closed if log_s * spread < 0.25 and closed < 0.25 else inf

    def solution(self) -> RootSolution:
        scores = self.z / self.z.sum()
        bounds = float(self.bound), float(self.relative)
        return RootSolution(scores, *bounds, self.n_iter, self.done, float(self.mu), float(self.gap))


def _solve(problem: _Problem, start: np.ndarray | None) -> None:
    terms = problem.prepare(1.0)
    y = problem.M
    if problem.q == 1.0 and problem.s_of(problem.root(y)) > 1.0:
        y = _rounds(problem, _Series.after(problem, terms), guess=True)
    elif start is not None:
        y = np.where(y > 0, (start / (problem.c @ start) * problem.unit) ** problem.p, 0.0)
    if not problem.done:
        y, s = _power(problem, y)
    if not problem.done:
        problem.prepare(s)
        y, s = _mixed(problem, y, _PATIENCE)
    if not problem.done:
        y = _rounds(problem, _Series(problem, s), guess=False)
    if not problem.done:
        _mixed(problem, y, 10 * _PATIENCE)


def _power(problem: _Problem, y: np.ndarray) -> tuple[np.ndarray, float]:
    """``y ← sB'y + b`` with s from φ(y) = 1, unless that is slow."""
    defects: list[float] = []
    while True:
        y, s, defect = _step(problem, y)
        defects.append(defect)
        if problem.done or (len(defects) >= _POWER_STEPS and _slow(defects, problem.tol)):
            return y, s


def _step(problem: _Problem, y: np.ndarray) -> tuple[np.ndarray, float, float]:
    """``sB'y + b``, offered as an answer, with s and ``|sB'y + b − y|`` in units of M."""
    s = problem.s_of(problem.root(y))
    image = problem.step(y)
    ratios = np.divide(image, y, where=y > 0, out=np.where(problem.M > 0, inf, 0.0))
    problem.rho = min(problem.rho, float(np.max(ratios)))
    new = s * image + problem.b
    defect = float(np.max((np.abs(new - y) + 8 * _EPS * new) * problem.per_M))
    scale = (s / problem.a) ** (1 / problem.p)
    problem.offer(scale * problem.root(new), s, problem.kappa(defect, s), problem.spread(new, s))
    return new, s, defect


def _slow(defects: list[float], tol: float) -> bool:
    """Whether the last steps, continued, leave more than a few to go."""
    last, before = defects[-1], defects[-5]
    return last >= before or 4 * log(min(tol / last, 1.0)) / log(last / before) > _FEW_STEPS


def _mixed(problem: _Problem, y: np.ndarray, patience: int) -> tuple[np.ndarray, float]:
    """The same map by Anderson's mixing of the last steps, in log y, which keeps y positive.

    Ends early if the change does not fall to a tenth in ``patience`` steps.
    """
    support = np.flatnonzero(problem.M)
    y = np.maximum(y, problem.M * 1e-3)
    x = np.log(y[support])
    dx: list[np.ndarray] = []
    df: list[np.ndarray] = []
    last_x, last_f, s, size = x, x, 1.0, inf
    sizes: list[float] = []
    for k in range(problem.max_iter):
        new, s, _ = _step(problem, y)
        f = np.log(new[support]) - x
        norm = float(np.linalg.norm(f))
        sizes.append(norm)
        if problem.done or (k > patience and min(sizes[-patience:]) >= 0.1 * min(sizes[:-patience])):
            return new, s
        if norm > 2 * size:
            dx, df = [], []
        elif k:
            dx, df = [*dx[1 - _MIXED :], x - last_x], [*df[1 - _MIXED :], f - last_f]
        last_x, last_f, size = x, f, norm
        x = x + f
        if df:
            weights = np.linalg.lstsq(np.array(df).T, f, rcond=1e-10)[0]
            change = weights @ (np.array(dx) + np.array(df))
            x = x - change * min(1.0, 5.0 / max(float(np.max(np.abs(change))), _TINY))
        y = np.zeros_like(y)
        y[support] = np.exp(x)
    return y, s


def _rounds(problem: _Problem, series: _Series, guess: bool) -> np.ndarray:
    """Series for fixed s, then ``δ = 1 − sρ'`` and with it s from φ = 1; again with that s until it stays.

    Returns the last sum. The first s may be a mere ``guess``.
    """
    seen: list[tuple[float, float]] = []
    for _ in range(_ROUNDS):
        found = series.run(first=not seen, guess=guess)
        if problem.done or found is None:
            break
        seen.append((series.s, found))
        series = _Series(problem, _next(seen), series.tie)
    return series.y


def _next(seen: list[tuple[float, float]]) -> float:
    """The s to try next: the one found, or a secant step (what is found falls with what was put in)."""
    s, found = seen[-1]
    if len(seen) == 1 or s == seen[-2][0]:
        return found
    slope = (found - seen[-2][1]) / (s - seen[-2][0])
    return s + (found - s) / (1.0 - min(slope, 0.0))


class _Series:
    """``y = Σ_{k≤K} u_k``, ``u_k = (sB')^k b``, and bounds on the rest; ``moment`` is ``Σ k·u_k``.

    With ``W₁``, ``W₂`` the sums of two successive runs of ``half`` terms and ``W₂ ≤ β·W₁ + ε·M``, what follows is at
    most ``β/(1−β)·W₂`` plus κ·y(s), ``κ = ε·D/(1−β)``. Vertices in ``inside`` repeat themselves and are exempt.
    """

    def __init__(self, problem: _Problem, s: float, tie: float = _LOOSE) -> None:
        self.problem, self.s, self.tie = problem, s, tie
        self.y, self.u, self.moment, self.K = problem.b.copy(), problem.b, np.zeros_like(problem.b), 0
        self.half, self.W = 4, [problem.b]
        self.inside = np.zeros(len(self.y), dtype=bool)
        self.small = problem.tol * problem.p / (32 * problem.D(s))

    @classmethod
    def after(cls, problem: _Problem, terms: tuple[np.ndarray, np.ndarray]) -> _Series:
        """The series with s = q after the terms that made up M."""
        series = cls(problem, problem.q)
        series.y, series.K = problem.M.copy(), problem.d - 1
        series.u, series.moment = terms
        return series

    def run(self, first: bool, guess: bool) -> float | None:
        """Sum until the bound is met, or s is known to be off; the s with φ = 1, None if nothing repeats itself."""
        problem, estimated, stuck = self.problem, not first, 0
        limit, before = _GUESS if guess else 10 * _GUESS, inf
        while True:
            loose = self._pass()
            z = problem.root(self.y)
            kappa, rest = self._rest()
            left = self._cost(z, rest) + 8 * kappa / problem.p
            if loose is None and guess and first and problem.s_of(z) < self.s:
                return None  # φ > 1 already: s is too large by far, the plain iteration does better
            if loose is not None and not estimated and left < _ESTIMATE:
                estimated = True
                found = self._close(loose)[0]
                if self._cost(z, self._curvature(found, 2 * self.K)) > problem.tol / 4:
                    return found
            if left < problem.tol / 2 and self.settled:
                if loose is None:
                    problem.offer((self.s / problem.a) ** (1 / problem.p) * z, self.s, inf, inf)
                    return None
                closed = self._finish()
                if closed is not None:
                    return closed
                self.tie = max(self.tie / 100, _TIE)
            stuck += not left < before / 2
            before = left
            if limit < self.K:
                return None
            if stuck == 4:
                self.half, stuck = 2 * self.half, 0

    def _pass(self) -> _Tail | None:
        """``2·half`` more terms; note the vertices that repeat themselves, and their tail as far as it is known."""
        keep = np.flatnonzero(self.u + self.W[-1] > self.small * self.problem.M)
        keep = keep if len(keep) <= max(len(self.u) // 4, 10_000) else keep[:0]
        terms, self.W = [self.u[keep]], []
        for _ in range(2):
            total = np.zeros_like(self.u)
            for _ in range(self.half):
                self._advance()
                total += self.u
                terms.append(self.u[keep])
            self.W.append(total)
        tail = _find_tail(keep, np.array(terms), self.tie)
        before = np.count_nonzero(self.inside)
        self.inside[:] = False
        if tail is not None:
            self.inside[tail.where] = True
        self.settled = np.count_nonzero(self.inside) == before
        return tail

    def _advance(self) -> None:
        self.u = self.s * self.problem.step(self.u)
        self.u[self.u < _TINY] = 0.0
        self.K += 1
        self.y += self.u
        self.moment += self.K * self.u

    def _rest(self) -> tuple[float, np.ndarray]:
        """κ, and the bound on what follows, 0 inside."""
        before, last = self.W
        last = np.where(self.inside, 0.0, last)
        large = last > self.small * self.problem.M
        beta = float(np.max(last[large] / np.maximum(before[large], _TINY), initial=0.0))
        if beta >= 0.98:
            return inf, last
        defect = float(np.max((last - beta * before) * self.problem.per_M)) / (1.0 - beta)
        return self.problem.kappa(max(defect, 0.0), self.s), beta / (1.0 - beta) * last

    def _cost(self, z: np.ndarray, rest: np.ndarray) -> float:
        """What a change of y by ``rest`` outside adds to the bound, to first order."""
        change = np.divide(
            z * rest, self.problem.p * self.y, where=~self.inside & (self.y > 0), out=np.zeros_like(z)
        )
        weights = 1.0 + self.problem.c / (1.0 - self.problem.damping)
        return 2.0 * float(weights @ change) / float(z.sum())

    def _at(self, s: float) -> np.ndarray:
        """A lower bound on ``Σ_{k≤K} (s/s₀)^k u_k`` for the s₀ of this series (Jensen)."""
        mean = np.divide(self.moment, self.y, where=self.y > 0, out=np.zeros_like(self.y))
        return self.y * np.exp(log(s / self.s) * mean)

    def _curvature(self, s: float, K: int) -> np.ndarray:
        """By how much that is too low at most: ``(1+h)^k − 1 − hk ≤ h²·k²/2·e^{|h|K}``."""
        h = abs(s / self.s - 1.0)
        return h * h * (K + 2) / 2 * exp(min(h * K, 50.0)) * self.moment

    def _finish(self) -> float | None:
        """The certificate with the closed form of what repeats itself, and its s; None if it does not after all.

        The look leaves out the rest; what would still flow in from there is part of κ.
        """
        state = self.u, self.y.copy(), self.moment.copy(), self.K
        tail = self._look()
        if tail is None:
            self.u, self.y, self.moment, self.K = state
            return None
        s, delta = self._close(tail)
        left_out = np.where(self.inside, 0.0, state[0])
        self.inside[:] = False
        self.inside[tail.where] = True
        kappa, rest = self._rest()
        late = self._late(tail, rest + left_out)
        kappa += late * exp(min(tail.longest * delta, 50.0)) + self._blur(tail)
        self._offer(s, delta, kappa, rest * exp(min(4 * self.K * max(s / self.s - 1.0, 0.0), 50.0)), tail)
        return s

    def _late(self, tail: _Tail, outside: np.ndarray) -> float:
        """κ of what flows from outside to where the terms repeat themselves: a multiple of M, or of their mean."""
        problem = self.problem
        share = outside * problem.per_M
        little = share <= self.small
        inflow = self.s * problem.step(np.where(little, 0.0, outside))[tail.where]
        of_mean = float(np.max(inflow / tail.mean(len(self.u))[tail.where]))
        return 2.0 * of_mean + problem.D(self.s) * float(np.max(share, where=little, initial=0.0))

    def _look(self) -> _Tail | None:
        """Go on with what repeats itself alone, until that can be seen in every digit."""
        self.u = np.where(self.inside, self.u, 0.0)
        history: list[tuple[np.ndarray, np.ndarray]] = []
        for k in range(16 * self.half):
            self._advance()
            index = np.flatnonzero(self.u)
            history.append((index, self.u[index]))
            if len(history) * len(index) > max(16 * len(self.u), 10**6):
                break
            if k >= 2 and (k < 9 or (k & 7) == 7):
                where = np.unique(np.concatenate([index for index, _ in history[-2 * self.half :]]))
                terms = _dense(history, where)
                for tie in (_TIE, _NEAR):
                    tail = _find_tail(where, terms, tie)
                    if tail is not None and len(tail.where) == len(where):
                        tail = self._settled(tail)
                        if tail is not None and self._blur(tail) < self.problem.tol / 16:
                            return tail
        return None

    def _blur(self, tail: _Tail) -> float:
        """κ of a tail that is not exact.

        If the mean m of its terms has ``|sB'm − t·m| ≤ uneven·m`` its sum is ``m/(1−t)`` up to ``uneven/(1−t)``. What
        is left of the terms repeats itself up to ``tie``, and the sum of that does not grow with 1/(1−t).
        """
        delta = self._close(tail)[1]
        uneven = tail.uneven / delta if tail.uneven > 2 * _TIE else 0.0
        return 2.0 * (tail.tie * tail.longest * delta + uneven)

    def _settled(self, tail: _Tail) -> _Tail | None:
        """The tail with the mean of its terms made an eigenvector of B', unless that takes long.

        It is one from the start unless a period was found by chance, or holds up to a slowly fading remainder, as of
        an eigenvalue near −ρ': averaging successive terms takes it out.
        """
        mean = tail.mean(len(self.u))
        first, before = mean, inf
        while True:
            image = self.s * self.problem.step(mean)
            top = int(np.argmax(mean))
            t = float(image[top] / mean[top])
            off = np.abs(image - t * mean)
            uneven = float(np.max(np.divide(off, mean, where=mean > 0, out=np.where(off > 0, inf, 0.0))))
            if uneven <= 2 * _TIE or not uneven < before / 10:
                change = (mean - first)[tail.where]
                blocks = [*tail.blocks, (1, np.arange(len(change)), change[None, :])]
                return _Tail(tail.where, t, blocks, tail.tie, uneven) if uneven < _NEAR else None
            mean, before = (mean + image / t) / 2, uneven

    def _close(self, tail: _Tail) -> tuple[float, float]:
        """Solve φ = 1 for δ; returns s and δ."""
        problem, p, where = self.problem, self.problem.p, tail.where
        rho = tail.t / self.s
        c, low = problem.c[where], self.y[where]
        mean = self.moment[where] / low
        s, delta = self.s, 0.0
        for _ in range(3):
            z = problem.root(self._at(s))
            weighed = problem.c * z
            weighed[where] = 0.0
            others = float(weighed.sum())
            power = float(weighed @ np.divide(self.moment, self.y, where=self.y > 0, out=np.zeros_like(z)))
            power /= p * max(others, _TINY)

            def log_phi(
                log_delta: float, base: float = s, others: float = others, power: float = power
            ) -> float:
                delta = exp(log_delta)
                log_s = log1p(-delta) - log(rho)
                log_h = log_s - log(self.s)
                with np.errstate(over="ignore"):
                    closed = low * np.exp(log_h * mean) + exp(self.K * log_h) * tail.sum(delta)
                    phi = others * exp(power * (log_s - log(base))) + float(c @ problem.root(closed))
                return min((log_s - log(problem.a)) / p + log(max(phi, _TINY)), 700.0)

            delta = exp(brentq(log_phi, -690.0, -1e-12, xtol=1e-14, rtol=4 * _EPS))
            s = (1.0 - delta) / rho
        return s, delta

    def _offer(self, s: float, delta: float, kappa: float, rest: np.ndarray, tail: _Tail) -> None:
        problem, where = self.problem, tail.where
        y = self._at(s)
        closed = (s / self.s) ** self.K * tail.sum(delta)
        y[where] += closed
        rest[where] = 0.0
        rest += self._curvature(s, self.K)
        scale = (s / problem.a) ** (1 / problem.p)
        z = scale * problem.root(y)
        more = scale * problem.root(y + rest) - z
        outside = np.ones(len(y), dtype=bool)
        outside[where] = False
        spread = problem.spread(y, s, outside)
        extra = _Extra(
            total=float(more.sum()),
            phi=float(problem.c @ more),
            relative=float(np.max(np.divide(more, z, where=z > 0, out=np.zeros_like(z)))),
            slope=float((problem.c[where] * z[where]) @ (closed / y[where])) / problem.p,
            gap=delta,
        )
        problem.offer(z, s, kappa + 8 * _EPS * (spread + self.K), spread, extra)


@dataclass(frozen=True)
class _Tail:
    """The end of a series in closed form: ``u_{k+L} = t^L u_k`` at the vertices ``where``.

    ``blocks`` has, for each period L, positions in ``where`` and the last L terms, scaled to t = 1; they add up.
    """

    where: np.ndarray
    t: float
    blocks: list[tuple[int, np.ndarray, np.ndarray]]
    tie: float
    uneven: float = 0.0

    @property
    def longest(self) -> int:
        return max(period for period, _, _ in self.blocks)

    def sum(self, delta: float) -> np.ndarray:
        """``Σ_{m≥1} u_{k+m}`` for t = 1 − δ."""
        total = np.zeros(len(self.where))
        log_t = log1p(-delta)
        for period, positions, terms in self.blocks:
            powers = np.exp(log_t * np.arange(1, period + 1))
            total[positions] += powers @ terms / -expm1(period * log_t)
        return total

    def mean(self, n: int) -> np.ndarray:
        """The terms' mean over a period: what sB' multiplies by t."""
        mean = np.zeros(n)
        for _, positions, terms in self.blocks:
            mean[self.where[positions]] += terms.mean(axis=0)
        return mean


def _find_tail(where: np.ndarray, U: np.ndarray, tie: float) -> _Tail | None:
    """The vertices whose terms (a column of U each) repeat themselves, up to a common growth t."""
    t = _growth(U[:, np.argmax(U[-1])], tie) if len(where) else None
    if t is None:
        return None
    n_terms = len(U)
    U = U * t ** np.arange(n_terms - 1, -1, -1.0)[:, None]
    unclear, found = np.arange(len(where)), []
    for period in range(1, n_terms):
        lags = min(max(period, n_terms // 2), n_terms - period)
        now, then = U[n_terms - lags :, unclear], U[n_terms - lags - period : n_terms - period, unclear]
        same = np.all(np.abs(now - then) <= tie * now, axis=0)
        same &= np.any(now > 0, axis=0)
        found.append((period, unclear[same]))
        unclear = unclear[~same]
    known = np.sort(np.concatenate([vertices for _, vertices in found]))
    blocks = [(L, np.searchsorted(known, k), U[n_terms - L :, k]) for L, k in found if len(k)]
    return _Tail(where[known], t, blocks, tie) if len(known) else None


def _dense(terms: list[tuple[np.ndarray, np.ndarray]], where: np.ndarray) -> np.ndarray:
    """One row for each term, given as indices and values, with its entries at ``where``."""
    rows = np.zeros((len(terms), len(where)))
    for row, (index, values) in zip(rows, terms, strict=True):
        known = np.isin(index, where, assume_unique=True)
        row[np.searchsorted(where, index[known])] = values[known]
    return rows


def _growth(u: np.ndarray, tie: float) -> float | None:
    """The t with ``u_{k+L} = t^L u_k`` for some L, as far back as a period or half of the terms."""
    n_terms = len(u)
    for period in range(1, n_terms - 1):
        lags = min(max(period, n_terms // 2), n_terms - period)
        now, then = u[n_terms - lags :], u[n_terms - lags - period : n_terms - period]
        if now[-1] > 0 and then[-1] > 0:
            ratio = float(now[-1] / then[-1])
            if np.all(np.abs(now - ratio * then) <= tie * now):
                t = ratio ** (1.0 / period)
                return 1.0 if abs(t - 1.0) <= tie else t
    return None


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
