"""Graph ranks to 50 digits and more, by dense elimination or plain iteration in decimal arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, getcontext, localcontext

import numpy as np

DIGITS = 60
Vector = list[Decimal]


def exactly(call: Callable) -> Callable:
    """Run a function in decimal arithmetic of `DIGITS` digits."""

    def run(*args, **options):
        with localcontext() as context:
            context.prec, context.Emin, context.Emax = DIGITS, -(10**12), 10**12
            return call(*args, **options)

    return run


def decimals(x: np.ndarray) -> Vector:
    """Convert floats without rounding."""
    return [Decimal(value) for value in np.asarray(x, dtype=float).tolist()]


def shares_of(x: Vector) -> Vector:
    total = sum(x)
    return [value / total for value in x]


@exactly
def distance(scores: np.ndarray, truth: Vector) -> float:
    """L1 distance of floats from the truth."""
    return float(sum(abs(a - b) for a, b in zip(decimals(scores), truth, strict=True)))


@exactly
def log_distance(scores: np.ndarray, truth: Vector) -> float:
    """Hilbert distance of floats from the truth; infinite if the supports differ."""
    logs = []
    for a, b in zip(decimals(scores), truth, strict=True):
        if (a > 0) != (b > 0):
            return float("inf")
        if a > 0:
            logs.append((a / b).ln())
    return float(max(logs) - min(logs))


def solve(matrix: list[Vector], right: Vector) -> Vector:
    """Solve by elimination with partial pivoting."""
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            if factor:
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    x = [Decimal(0)] * n
    for k in reversed(range(n)):
        x[k] = (rows[k][n] - sum(rows[k][j] * x[j] for j in range(k + 1, n))) / rows[k][k]
    return x


def walk_matrix(A: np.ndarray, back_to: Vector | None = None) -> list[Vector]:
    """Share ``P[j][i]`` of j's mass that goes to i; dangling vertices return theirs to ``back_to``, or keep none."""
    P = []
    for row in A:
        weights = decimals(row)
        total = sum(weights)
        nowhere = back_to or [Decimal(0)] * len(A)
        P.append([weight / total for weight in weights] if total else list(nowhere))
    return P


def geometric_sum(P: list[Vector], factor: Decimal, start: Vector) -> Vector:
    """Return ``Σ_t (factor·Pᵀ)^t start``."""
    n = len(P)
    matrix = [[(i == j) - factor * P[j][i] for j in range(n)] for i in range(n)]
    return solve(matrix, start)


def moved(P: list[Vector], x: Vector) -> Vector:
    return [sum(x[j] * P[j][i] for j in range(len(P))) for i in range(len(P))]


@exactly
def pagerank(A: np.ndarray, damping: float, v: np.ndarray) -> Vector:
    teleport = shares_of(decimals(v))
    return shares_of(geometric_sum(walk_matrix(A, teleport), Decimal(damping), teleport))


@exactly
def spread(A: np.ndarray, gamma: float, seeds: Vector) -> Vector:
    """Solve ``x = γ·U(x) + s`` for linear U, where mass ends at dangling vertices."""
    return geometric_sum(walk_matrix(A), Decimal(gamma), seeds)


@exactly
def nonbacktracking(A: np.ndarray, damping: float, v: np.ndarray, truncate: int) -> Vector:
    """Sum over walks from step ``truncate`` on: a chain over links, and over vertices where a walk starts."""
    n, teleport = len(A), shares_of(decimals(v))
    links = list(zip(*(ends.tolist() for ends in np.nonzero(A)), strict=True))
    m, chain = len(links), []
    for came_from, at in [*links, *((None, i) for i in range(n))]:
        ahead = {e: Decimal(A[i, k]) for e, (i, k) in enumerate(links) if i == at and k != came_from}
        rest = sum(ahead.values())
        on_links = [ahead.get(e, Decimal(0)) / (rest or 1) for e in range(m)]
        chain.append(on_links + ([Decimal(0)] * n if ahead else teleport))
    mass = [Decimal(0)] * m + teleport
    for _ in range(truncate):
        mass = moved(chain, mass)
    mass = geometric_sum(chain, Decimal(damping), mass)
    on_vertices = mass[m:]
    for e, (_, at) in enumerate(links):
        on_vertices[at] += mass[e]
    return shares_of(on_vertices)


@exactly
def guarded(
    A: np.ndarray, damping: float, v: np.ndarray, min_links: float, truncate: int, early: float, limit: float
) -> Vector:
    """The smaller of PageRank and ``limit`` times the guard, by the guard's definition."""
    teleport, a = shares_of(decimals(v)), Decimal(damping)
    P = []
    for row in A:
        weights = decimals(row)
        total = max(sum(weights), Decimal(min_links) * max(weights))
        P.append([weight / total if total else Decimal(0) for weight in weights])
    late = teleport
    for _ in range(truncate):
        late = [a * value for value in moved(P, late)]
    start = [Decimal(early) * x + (1 - Decimal(early)) * y for x, y in zip(teleport, late, strict=True)]
    guard = shares_of(geometric_sum(P, a, shares_of(start)))
    plain = shares_of(geometric_sum(walk_matrix(A, teleport), a, teleport))
    return shares_of([min(x, Decimal(limit) * y) for x, y in zip(plain, guard, strict=True)])


@exactly
def capped(A: np.ndarray, damping: float, v: np.ndarray, cap: float) -> Vector:
    """``Σ_u v_u·min(cap, c(u→i))``, a solve for every u."""
    n, a, P, v = len(A), Decimal(damping), walk_matrix(A), shares_of(decimals(v))
    total = [Decimal(0)] * n
    for u in range(n):
        start = [(1 - a) * (i == u) for i in range(n)]
        for i, c in enumerate(geometric_sum(P, a, start)):
            total[i] += v[u] * min(Decimal(cap), c)
    return shares_of(total)


@exactly
def fixed_point(step: Callable[[Vector], Vector], start: np.ndarray, most: int = 5000) -> Vector:
    """Iterate until 40 digits stand still."""
    x = decimals(start)
    for _ in range(most):
        new = step(x)
        if all(abs(a - b) <= Decimal("1e-45") * abs(a) for a, b in zip(new, x, strict=True)):
            return new
        x = new
    raise AssertionError("the plain iteration has not converged")


def power(x: Decimal, exponent: Decimal) -> Decimal:
    return x**exponent if x else Decimal(0)


def lpq_step(A, damping, v, p, ratio, place="inside", top=None) -> Callable[[Vector], Vector]:
    """One step of eq. (6.1), link by link, for p up to infinity; ``top`` keeps the k largest flows, as their mean."""
    n, a = len(A), Decimal(damping)

    def norm(flows: Vector) -> Decimal:
        flows = sorted(flows, reverse=True)[:top]
        if np.isinf(p):
            return max(flows)
        inside = sum(power(flow, Decimal(p)) for flow in flows) / (top or 1)
        return power(inside, 1 / Decimal(p))

    def step(r: Vector) -> Vector:
        teleport, degree = shares_of(decimals(v)), 1 / Decimal(ratio)
        P = walk_matrix(A)
        is_dangling = [not A[j].any() for j in range(n)]
        held = sum(r[j] for j in range(n) if is_dangling[j])
        new = []
        for i in range(n):
            flows = [r[j] * P[j][i] for j in range(n)]
            if place == "inside":
                flows = [a * flow for flow in flows] + [teleport[i] * (1 - a + a * held)]
                new.append(power(norm(flows), degree))
            elif place == "outside":
                restart = (1 - a) + a * power(held, degree)
                new.append(a * power(norm(flows), degree) + teleport[i] * restart)
            else:
                weak = [r[j] * teleport[i] * (1 if is_dangling[j] else 1 - a) for j in range(n)]
                new.append(power(norm([a * x + y for x, y in zip(flows, weak, strict=True)]), degree))
        return shares_of(new)

    return step


def solve_below(mu: Decimal, B: list[Vector], right: Vector) -> Vector | None:
    """``(μI − B)^{-1} b`` by elimination without pivoting, None if μ is not above the largest eigenvalue."""
    n = len(right)
    A = [[(mu if i == j else 0) - B[i][j] for j in range(n)] for i in range(n)]
    y = list(right)
    for k in range(n):
        if A[k][k] <= 0:
            return None
        filled = [j for j in range(k + 1, n) if A[k][j]]
        for i in range(k + 1, n):
            if A[i][k]:
                factor = A[i][k] / A[k][k]
                for j in filled:
                    A[i][j] -= factor * A[k][j]
                y[i] -= factor * y[k]
    for k in reversed(range(n)):
        y[k] = (y[k] - sum(A[k][j] * y[j] for j in range(k + 1, n) if A[k][j])) / A[k][k]
    return y


@exactly
def lp_root(A: np.ndarray, damping: float, v: np.ndarray, p: float, digits: int = 150) -> Vector:
    """L_p rank at ratio 1, whose μ solves ``φ(μ)^{−p} = 1``, nearly linear near the pole of φ:

    Bisection and false position, with an elimination for each μ on the vertices that the teleport reaches. μ may be
    within 1e-30 of the largest eigenvalue.
    """
    getcontext().prec = digits
    reached = np.flatnonzero(v > 0).tolist()
    for i in reached:
        reached += [j for j in np.flatnonzero(A[i]).tolist() if j not in reached]
    teleport, a, power_ = shares_of(decimals(v)), Decimal(damping), Decimal(p)
    P = walk_matrix(A)
    B = [[power(a * P[j][i], power_) for j in reached] for i in reached]
    right = [power(teleport[i], power_) for i in reached]
    c = [1 - a if A[i].any() else Decimal(1) for i in reached]

    def excess(mu: Decimal) -> tuple[Decimal, Vector]:
        y = solve_below(mu, B, right)
        z = [power(value, 1 / power_) for value in y or []]
        return (sum(x * y for x, y in zip(c, z, strict=True)) ** -power_ if z else Decimal(0)) - 1, z

    low, high = Decimal(0), Decimal(2)
    below, (above, z), last = Decimal(-1), excess(high), Decimal(0)
    for k in range(1000):
        mu = (low + high) / 2 if k % 3 == 2 else (low * above - high * below) / (above - below)
        value, found = excess(mu)
        # an endpoint that stays twice counts half, otherwise it would stay forever
        if value < 0:
            low, below, above = mu, value, above / (2 if last < 0 else 1)
        else:
            high, above, below, z = mu, value, below / (2 if last >= 0 else 1), found
        last = value
        if (found and abs(value) < Decimal("1e-40")) or high - low < high * Decimal(10) ** (3 - digits):
            z = found or z
            break
    scores = [Decimal(0)] * len(A)
    for i, value in zip(reached, shares_of(z), strict=True):
        scores[i] = value
    return scores


@exactly
def weak_links_root(A: np.ndarray, damping: float, v: np.ndarray, p: float) -> Vector:
    """Rank with weak links at ratio 1: the Perron vector, by squaring the matrix of powers, shifted by its size."""
    n, a, teleport, P = len(A), Decimal(damping), shares_of(decimals(v)), walk_matrix(A)
    c = [Decimal(1) if not A[j].any() else 1 - a for j in range(n)]
    M = [[power(a * P[j][i] + c[j] * teleport[i], Decimal(p)) for j in range(n)] for i in range(n)]
    size = max(map(max, M))
    M = [[value + (size if i == j else 0) for j, value in enumerate(row)] for i, row in enumerate(M)]
    for _ in range(120):
        M = [[sum(M[i][k] * M[k][j] for k in range(n)) for j in range(n)] for i in range(n)]
        size = max(map(max, M))
        M = [[x / size for x in row] for row in M]
    return shares_of([power(sum(row), 1 / Decimal(p)) for row in M])


@exactly
def fairness_step(W: np.ndarray, smoothing: float) -> Callable[[Vector], Vector]:
    """One step of goodness and fairness for ratings W, 0 where there is none."""
    n, largest = len(W), Decimal(float(np.abs(W).max()))

    def step(goodness: Vector) -> Vector:
        fair = []
        for u in range(n):
            rated = np.flatnonzero(W[u])
            off = sum(abs(Decimal(W[u, i]) / largest - goodness[i]) for i in rated)
            fair.append(1 - off / (2 * len(rated)) if len(rated) else Decimal(1))
        new = []
        for i in range(n):
            raters = np.flatnonzero(W[:, i])
            inward = sum(fair[u] * Decimal(W[u, i]) / largest for u in raters)
            new.append(inward / (len(raters) + Decimal(smoothing)) if len(raters) else Decimal(0))
        return new

    return step
