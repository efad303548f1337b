"""L_p rank with q = p (ratio 1) as the root of a scalar equation, with an error bound.

With ``B_ij = (α/d_j)^p`` the rank solves ``λ^p r_i^p = Σ_j B_ij r_j^p + (v_i τ)^p``, ``τ = Σ_i c_i r_i``, where
``c_i = 1 − α`` and 1 at dangling vertices. Scaled to τ = 1 and with μ = λ^p it is ``z(μ) = y(μ)^{1/p}``,
``y(μ) = (μI − B)^{-1} v^p``, at the root of ``φ(μ) = Σ c_i z_i(μ) = 1``; then ``r = z/Σz``.

Plain power steps may not converge here: unlike at larger ratios, the map is not a contraction. The best method depends
on the distance of μ from the largest eigenvalue of B. `graph/lp_equation.py` has the equation with its bound and units,
and methods for μ far from the eigenvalue. Near it no iteration converges in practice, and real crawls are in this
regime: pages whose only link leads to themselves, or around a cycle of such pages, have ρ' = 1 and hold most of the
rank, and 1 − sρ' is 1e-4 at p = 2 and 3e-17 at p = 8 on a crawl of 325,557 pages. There `Series` sums ``Σ_k (sB')^k b``
until each vertex has either decayed or become periodic with a period L, ``u_{k+L} = t^L u_k`` with a common t; such a
`Tail` has a sum in closed form, with δ = 1 − t as the unknown instead of μ, however small it is.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import exp, expm1, inf, log, log1p

import numpy as np
from scipy.optimize import brentq

from apexrank.graph import lp_equation as equation
from apexrank.graph.lp_equation import (
    TINY,
    LpRoot,
    over,
)

_PATIENCE = 40  # mixed steps without progress before a series is tried, and ten times as many after it
_TERMS = 100  # terms of M when stalled steps are judged
_ROUNDS = 30  # series, each with a better s; random graphs needed at most six
_TIE = 1e-14  # relative difference of terms that are equal up to rounding
_LOOSE = 1e-6  # relative difference of terms that are inspected further
_NEAR = 1e-4  # relative difference of terms that may agree after averaging
_ESTIMATE = 1e-4  # relative accuracy of the sum at which μ is first estimated
_GUESS = 300  # terms before a guess of s is abandoned, and ten times as many if s is known better
_SLOWEST = 0.98  # decay factor between runs of terms above which the remainder cannot be bounded
_LEAST_LOG_DELTA, _LARGEST_LOG = -690.0, 700.0  # slightly inside the range of floating point
_USELESS = 50.0  # logarithm of a factor that makes a bound useless


def solve_ratio_one(problem: LpRoot) -> LpRoot:
    """Solve ``λ r_i = (Σ_j B_ij r_j^p + (v_i τ)^p)^{1/p}``, ``|r|₁ = 1``, for p = q.

    Notes
    -----
    If it does not converge, `error_bound` stays above `tol` (inf if nothing is known; the scores may then be far off):
    μ is so close to ρ(B) that rounding decides, and the growth factors of the leading cycles are nearly but not exactly
    equal, so that no number of steps within `max_iter` separates them. A ratio of 1.05 contracts and avoids the case.

    Examples
    --------
    Two pages that link to each other, and one that links to the first of them:

    >>> import numpy as np
    >>> B = 0.85**2 * np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> solution = solve_ratio_one(LpRoot(lambda y: B @ y, np.full(3, 1 / 3), np.zeros(3, bool), 2, 0.85))
    >>> print(solution.scores.round(6), solution.converged, solution.error_bound < 1e-9)
    [0.471811 0.470037 0.058152] True True
    """
    with suppress(equation.OutOfSteps):
        _solve(problem)
    return problem


def _solve(problem: LpRoot) -> None:
    """Try the methods from the fastest to the most robust until the bound is met.

    ρ' is at most 1, and is 1 if there are cycles of single links. If the first terms leave φ below 1 at s = 1, the root
    may be near 1/ρ', and the series is tried first.
    """
    terms = problem.prepare(1.0)
    y = problem.M
    if problem.q == 1.0 and problem.s_of(problem.root(y)) > 1.0:
        y = _rounds(problem, Series.after(problem, terms), guess=True)
    if not problem.converged:
        y, s = equation.plain_steps(problem, y)
    if not problem.converged:
        problem.prepare(s)
        y, s = equation.mixed_steps(problem, y, _PATIENCE)
    if not problem.converged:  # y may be accurate, but M of an early s too small to show it
        problem.prepare(s, _TERMS)
        y, s, _ = equation.step_of(problem, y)
    if not problem.converged:
        y = _rounds(problem, Series(problem, s), guess=False)
    if not problem.converged:
        equation.mixed_steps(problem, y, 10 * _PATIENCE)


def _rounds(problem: LpRoot, series: Series, guess: bool) -> np.ndarray:
    """Sum the series for fixed s, solve φ = 1 for ``δ = 1 − sρ'`` and a new s, and repeat until s is stable.

    Return the last sum. The first s may be a ``guess``.
    """
    seen: list[tuple[float, float]] = []
    for _ in range(_ROUNDS):
        try:
            found = series.run(first=not seen, guess=guess)
        except equation.NoClosedForm:
            break
        if problem.converged or found is None:
            break
        seen.append((series.s, found))
        series = Series(problem, _next(seen), series.tie)
    return series.y


def _next(seen: list[tuple[float, float]]) -> float:
    """Return the next s to try: the last result, or a secant step (the result decreases with the input)."""
    s, found = seen[-1]
    if len(seen) == 1 or s == seen[-2][0]:
        return found
    slope = (found - seen[-2][1]) / (s - seen[-2][0])
    return s + (found - s) / (1.0 - min(slope, 0.0))


class Series:
    """Partial sum ``y = Σ_{k≤K} u_k``, ``u_k = (sB')^k b``, with bounds on the remainder; ``moment`` is ``Σ k·u_k``.

    With ``W₁``, ``W₂`` the sums of two successive runs of ``half`` terms and ``W₂ ≤ β·W₁ + ε·M``, the remainder is at
    most ``β/(1−β)·W₂`` plus κ·y(s), ``κ = ε·D/(1−β)``. Vertices in ``inside`` are periodic and exempt.
    """

    def __init__(self, problem: LpRoot, s: float, tie: float = _LOOSE) -> None:
        self.problem, self.s, self.tie = problem, s, tie
        self.y, self.u, self.moment, self.K = problem.b.copy(), problem.b, np.zeros_like(problem.b), 0
        self.half, self.W = 4, [problem.b]
        self.inside, self.settled = np.zeros(len(self.y), dtype=bool), True
        self.left, self.stuck = inf, 0
        self.small = problem.tol * problem.p / (32 * problem.D(s))

    @classmethod
    def after(cls, problem: LpRoot, terms: tuple[np.ndarray, np.ndarray]) -> Series:
        """Start the series with s = q after the terms of M."""
        series = cls(problem, problem.q)
        series.y, series.K = problem.M.copy(), problem.d - 1
        series.u, series.moment = terms
        return series

    def run(self, first: bool, guess: bool) -> float | None:
        """Sum until the bound is met or s is found wrong; return the s with φ = 1, or None if no terms are periodic."""
        problem, estimate = self.problem, first
        began = problem.n_iter
        while True:
            tail = self._pass()
            z = problem.root(self.y)
            left = self._left(z)
            if tail is None and guess and first and problem.s_of(z) < self.s:
                return None  # φ > 1 already: s is far too large, and plain iteration is better
            if tail is not None and estimate and left < _ESTIMATE:
                estimate = False
                found = self._close(tail)[0]
                if self._cost(z, self._curvature(found, 2 * self.K)) > problem.tol / 4:
                    return found
            if left < problem.tol / 2 and self.settled:
                if tail is None:
                    problem.offer(problem.z_of(self.y, self.s), self.s, inf, inf)
                    return None
                closed = self._finish()
                if closed is not None:
                    return closed
                self.tie = max(self.tie / 100, _TIE)
            # unsuccessful looks discard their terms but not their steps, which are too many for a guess
            if self.K > 10 * _GUESS or (guess and problem.n_iter - began > _GUESS):
                return None
            # a period may be longer than the runs: double these after four that did not halve the remainder
            self.stuck += not left < self.left / 2
            self.left = left
            if self.stuck == 4:
                self.half, self.stuck = 2 * self.half, 0

    def _pass(self) -> Tail | None:
        """Add ``2·half`` terms; record periodic vertices and their tail, if known."""
        keep = np.flatnonzero(self.u + self.W[-1] > self.small * self.problem.M)
        # storing terms of too many vertices would need much memory: wait until more have decayed
        keep = keep if len(keep) <= max(len(self.u) // 4, 10_000) else keep[:0]
        terms, self.W = [self.u[keep]], []
        for _ in range(2):
            total = np.zeros_like(self.u)
            for _ in range(self.half):
                self._advance()
                total += self.u
                terms.append(self.u[keep])
            self.W.append(total)
        tail = find_tail(keep, np.array(terms), self.tie)
        before = np.count_nonzero(self.inside)
        self._enclose(tail)
        self.settled = np.count_nonzero(self.inside) == before
        return tail

    def _advance(self) -> None:
        self.u = self.s * self.problem.step(self.u)
        self.u[self.u < TINY] = 0.0
        self.K += 1
        self.y += self.u
        self.moment += self.K * self.u

    def _enclose(self, tail: Tail | None) -> None:
        self.inside[:] = False
        if tail is not None:
            self.inside[tail.where] = True

    def _left(self, z: np.ndarray) -> float:
        """Contribution of the remaining terms to the bound, without the closed form."""
        kappa, rest = self._rest()
        return self._cost(z, rest) + 8 * kappa / self.problem.p

    def _rest(self) -> tuple[float, np.ndarray]:
        """Return κ and the bound on the remainder, which is 0 inside."""
        before, last = self.W
        last = np.where(self.inside, 0.0, last)
        large = last > self.small * self.problem.M
        beta = float(np.max(last[large] / np.maximum(before[large], TINY), initial=0.0))
        if beta >= _SLOWEST:
            return inf, last
        defect = float(np.max((last - beta * before) * self.problem.per_M)) / (1.0 - beta)
        return self.problem.kappa(max(defect, 0.0), self.s), beta / (1.0 - beta) * last

    def _cost(self, z: np.ndarray, rest: np.ndarray) -> float:
        """First-order effect on the bound if y changes by ``rest`` outside."""
        change = over(z * np.where(self.inside, 0.0, rest), self.problem.p * self.y)
        weights = 1.0 + self.problem.c / (1.0 - self.problem.damping)
        return 2.0 * float(weights @ change) / float(z.sum())

    def _at(self, s: float) -> np.ndarray:
        """Lower bound on ``Σ_{k≤K} (s/s₀)^k u_k`` for the s₀ of this series (Jensen)."""
        return self.y * np.exp(log(s / self.s) * over(self.moment, self.y))

    def _curvature(self, s: float, K: int) -> np.ndarray:
        """Bound on the error of the first-order effect: ``(1+h)^k − 1 − hk ≤ h²·k²/2·e^{|h|K}``."""
        h = abs(s / self.s - 1.0)
        return h * h * (K + 2) / 2 * _capped_exp(h * K) * self.moment

    def _finish(self) -> float | None:
        """Certify the sum with the closed form of its periodic part and return s; None if it is not periodic.

        The look ignores other vertices; the flow that would still come from them is part of κ.
        """
        state = self.u, self.y.copy(), self.moment.copy(), self.K
        tail = self._look()
        if tail is None:
            self.u, self.y, self.moment, self.K = state
            return None
        s, delta = self._close(tail)
        left_out = np.where(self.inside, 0.0, state[0])
        self._enclose(tail)
        kappa, rest = self._rest()
        late = self._late(tail, rest + left_out)
        kappa += late * _capped_exp(tail.longest * delta) + self._blur(tail) + self._rounded(tail, delta)
        self._offer(s, delta, kappa, rest * _capped_exp(4 * self.K * max(s / self.s - 1.0, 0.0)), tail)
        return s

    def _look(self) -> Tail | None:
        """Continue with the periodic part only, until its period is exact in every digit."""
        self.u = np.where(self.inside, self.u, 0.0)
        history: list[tuple[np.ndarray, np.ndarray]] = []
        for k in range(16 * self.half):
            self._advance()
            index = np.flatnonzero(self.u)
            history.append((index, self.u[index]))
            if len(history) * len(index) > max(16 * len(self.u), 10**6):
                return None  # too much memory
            if 2 <= k < 9 or k % 8 == 7:
                tail = self._exact_tail(history)
                if tail is not None:
                    return tail
        return None

    def _exact_tail(self, history: list[tuple[np.ndarray, np.ndarray]]) -> Tail | None:
        """Return the tail of the terms (indices and values of each) if it reproduces all of them in every digit."""
        where = np.unique(np.concatenate([index for index, _ in history[-2 * self.half :]]))
        terms = _dense(history, where)
        for tie in (_TIE, _NEAR):
            tail = find_tail(where, terms, tie)
            if tail is None or len(tail.where) < len(where):
                continue
            tail = self._settled_tail(tail)
            if tail is not None and self._blur(tail) < self.problem.tol / 16:
                return tail
        return None

    def _settled_tail(self, tail: Tail) -> Tail | None:
        """Make the mean of the tail's terms an eigenvector of B', unless that takes too long.

        It is one from the start unless a period was found by chance, or holds up to a slowly decaying remainder, as for
        an eigenvalue near −ρ': averaging successive terms removes it.
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
                return Tail(tail.where, t, blocks, tail.tie, uneven) if uneven < _NEAR else None
            mean, before = (mean + image / t) / 2, uneven

    def _late(self, tail: Tail, outside: np.ndarray) -> float:
        """Return κ for the flow from outside into the periodic vertices, as a multiple of M or of their mean."""
        problem = self.problem
        share = outside * problem.per_M
        little = share <= self.small
        inflow = self.s * problem.step(np.where(little, 0.0, outside))[tail.where]
        of_mean = float(np.max(inflow / tail.mean(len(self.u))[tail.where]))
        return 2.0 * of_mean + problem.D(self.s) * float(np.max(share, where=little, initial=0.0))

    def _blur(self, tail: Tail) -> float:
        """Return κ for a tail that is not exact.

        If the mean m of its terms has ``|sB'm − t·m| ≤ uneven·m``, its sum is ``m/(1−t)`` up to ``uneven/(1−t)``. The
        rest of the terms is periodic up to ``tie``, and its sum does not grow with 1/(1−t).
        """
        delta = self._close(tail)[1]
        uneven = tail.uneven / delta if tail.uneven > 2 * _TIE else 0.0
        return 2.0 * (tail.tie * tail.longest * delta + uneven)

    def _rounded(self, tail: Tail, delta: float) -> float:
        """Return κ for the rounding of B' and of the mean m of the tail, which more steps would not reduce.

        Rounding by ε moves the sum by at most ``ε/(1−t)``, and m by ``k/(1−β)·ε`` if ``(sK)^k m ≤ β·t^k·m`` for B'
        without what the vertex of the largest entry passes on, K (`graph/weak_links.py`). If several sets of vertices
        grow by t there is no such β. The shares of cycles of single links are exact.
        """
        if self.problem.single is not None and self.problem.single[tail.where].all():
            return 0.0
        uneven = tail.uneven if tail.uneven <= 2 * _TIE else 0.0
        factor, k, beta = 1 / delta, 0, 1.0
        x, mean = tail.mean(len(self.u)), tail.mean(len(self.u))[tail.where]
        top = int(np.argmax(x))
        while beta > 0.5 and 10 * (k + 1) < factor and k < _TERMS:
            x[top] = 0.0
            x, k = self.s * self.problem.step(x) / tail.t, k + 1
            beta = float(np.max(x[tail.where] / mean))
        if beta <= 0.5:
            factor = min(factor, k / (1 - beta))
        return 2.0 * (uneven + 4 * (self.problem.p + 2) * equation.EPS) * factor

    def _close(self, tail: Tail) -> tuple[float, float]:
        """Solve φ = 1 for δ; return s and δ."""
        s, delta = self.s, 0.0
        # few rounds are enough: s hardly changes, and the part outside the tail depends on it weakly
        for _ in range(3):
            delta = self._delta(tail, s)
            s = (1.0 - delta) / (tail.t / self.s)
        return s, delta

    def _delta(self, tail: Tail, base: float) -> float:
        """Return the δ with φ = 1 if the part outside the tail grows with s as it does at ``base``."""
        problem, p, where = self.problem, self.problem.p, tail.where
        rho, c, low = tail.t / self.s, problem.c[where], self.y[where]
        mean_k = over(self.moment, self.y)
        mean_low = mean_k[where]
        weighed = problem.c * problem.root(self._at(base))
        weighed[where] = 0.0
        others = float(weighed.sum())
        power = float(weighed @ mean_k) / (p * max(others, TINY))

        def log_phi(log_delta: float) -> float:
            delta = exp(log_delta)
            log_s = log1p(-delta) - log(rho)
            log_h = log_s - log(self.s)
            with np.errstate(over="ignore", invalid="ignore"):
                closed = low * np.exp(log_h * mean_low) + exp(self.K * log_h) * tail.sum(delta)
                phi = others * exp(power * (log_s - log(base))) + float(c @ problem.root(closed))
            return min((log_s - log(problem.a)) / p + log(max(phi, TINY)), _LARGEST_LOG)

        try:
            return exp(brentq(log_phi, _LEAST_LOG_DELTA, -1e-12, xtol=1e-14, rtol=4 * equation.EPS))
        except (
            ValueError,
            OverflowError,
        ) as error:  # φ − 1 has one sign, or powers of this tail leave the range
            raise equation.NoClosedForm from error

    def _offer(self, s: float, delta: float, kappa: float, rest: np.ndarray, tail: Tail) -> None:
        problem, where = self.problem, tail.where
        y = self._at(s)
        closed = (s / self.s) ** self.K * tail.sum(delta)
        y[where] += closed
        z = problem.z_of(y, s)
        more = problem.z_of(y + (rest + self._curvature(s, self.K)), s) - z
        spread = problem.spread(y, s, ~self.inside)
        extra = equation.Extra(
            total=float(more.sum()),
            phi=float(problem.c @ more),
            relative=float(np.max(over(more, z))),
            slope=float((problem.c[where] * z[where]) @ (closed / y[where])) / problem.p,
            gap=delta,
        )
        problem.offer(z, s, kappa + equation.ROUNDING * (spread + self.K), spread, extra)


@dataclass(frozen=True)
class Tail:
    """Tail of a series in closed form: ``u_{k+L} = t^L u_k`` at the vertices ``where``.

    ``blocks`` has, for each period L, positions in ``where`` and the last L terms, scaled to t = 1; they are summed.
    ``tie`` is the relative difference of the terms, ``uneven`` that of their mean from an eigenvector.
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
        """Return ``Σ_{m≥1} u_{k+m}`` for t = 1 − δ."""
        total = np.zeros(len(self.where))
        log_t = log1p(-delta)
        for period, positions, terms in self.blocks:
            powers = np.exp(log_t * np.arange(1, period + 1))
            total[positions] += powers @ terms / -expm1(period * log_t)
        return total

    def mean(self, n: int) -> np.ndarray:
        """Mean of the terms over a period, an eigenvector of sB' with eigenvalue t."""
        mean = np.zeros(n)
        for _, positions, terms in self.blocks:
            mean[self.where[positions]] += terms.mean(axis=0)
        return mean


def find_tail(where: np.ndarray, U: np.ndarray, tie: float) -> Tail | None:
    """Find the vertices whose terms (a column of U each) are periodic up to a common growth factor t.

    >>> U = np.array([[1.0, 3.0, 1.0], [2.0, 3.0, 0.6], [1.0, 3.0, 0.3], [2.0, 3.0, 0.1]])
    >>> tail = find_tail(np.array([10, 20, 30]), U, 1e-14)
    >>> tail.where, tail.t, tail.longest
    (array([10, 20]), 1.0, 2)
    """
    t = _growth(U[:, np.argmax(U[-1])], tie) if len(where) else None
    if t is None:
        return None
    n_terms = len(U)
    U = U * t ** np.arange(n_terms - 1, -1, -1.0)[:, None]
    unclear, found = np.arange(len(where)), []
    for period in range(1, n_terms):
        late, early = _windows(n_terms, period)
        now, then = U[late, unclear], U[early, unclear]
        same = np.all(np.abs(now - then) <= tie * now, axis=0) & np.any(now > 0, axis=0)
        found.append((period, unclear[same]))
        unclear = unclear[~same]
    known = np.sort(np.concatenate([vertices for _, vertices in found]))
    blocks = [(L, np.searchsorted(known, k), U[n_terms - L :, k]) for L, k in found if len(k)]
    return Tail(where[known], t, blocks, tie) if len(known) else None


def _growth(u: np.ndarray, tie: float) -> float | None:
    """Return the t with ``u_{k+L} = t^L u_k`` for some L, over the last period or half of the terms."""
    for period in range(1, len(u) - 1):
        late, early = _windows(len(u), period)
        now, then = u[late], u[early]
        if now[-1] > 0 and then[-1] > 0:
            ratio = float(now[-1] / then[-1])
            if np.all(np.abs(now - ratio * then) <= tie * now):
                t = ratio ** (1.0 / period)
                return 1.0 if abs(t - 1.0) <= tie else t
    return None


def _windows(n_terms: int, period: int) -> tuple[slice, slice]:
    """Return slices of the last terms, a period or half of them, and of those one period earlier."""
    lags = min(max(period, n_terms // 2), n_terms - period)
    return slice(n_terms - lags, None), slice(n_terms - lags - period, n_terms - period)


def _dense(terms: list[tuple[np.ndarray, np.ndarray]], where: np.ndarray) -> np.ndarray:
    """Convert terms, given as indices and values, to dense rows of their entries at ``where``."""
    rows = np.zeros((len(terms), len(where)))
    for row, (index, values) in zip(rows, terms, strict=True):
        known = np.isin(index, where, assume_unique=True)
        row[np.searchsorted(where, index[known])] = values[known]
    return rows


def _capped_exp(x: float) -> float:
    return exp(min(x, _USELESS))
