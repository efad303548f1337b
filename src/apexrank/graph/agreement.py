"""Consensus algorithms: the cost of layer weights, the dual prices by which vertices improve, and descent methods.

Vertex i follows ``t̂_i = α Σ_k λ_ik t_i^k + (1 − α)·teleport`` (dissertation, chapter 5). For weights λ the ranks are
``w = Σ_i w_i t̂_i``, PageRank, and the cost is

``V(λ) = Σ_i w_i c_i − φ(w)``, ``c_i = entropy·φ(t̂_i) + pull·KL(λ_i‖prior_i)``.

With entropy 1 and pull 0 it is ``Σ_i w_i D_φ(t̂_i‖w)``, the disagreement: for φ(t) = Σ t log t the mutual information
of two steps of the walk. The change of V with w is given by prices s, which solve Poisson's equation

``(I − T) s = ∇φ(w) − c + const``; then ``∂V/∂λ_ik = w_i·(∂c_i/∂λ_ik − α<t_i^k, s>)``.

`Agreement` computes the cost and the prices. Each method moves every vertex to the point of its hull nearest to a
target: for `blend` the prices, along which V decreases (eq. 5.23 and 5.39), for `fixed_point` and `brew` (Fig. 5.6) the
ranks themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from apexrank.divergences import DIVERGENCES, Divergence
from apexrank.errors import InputError, unknown
from apexrank.graph.power import Anderson, Progress, iterate, l1_bound, rounding_of
from apexrank.kernels import hulls as kernels
from apexrank.kernels.csr import InLinks
from apexrank.kernels.edges import Links, turned
from apexrank.kernels.hulls import SMALLEST, TINY, Hulls
from apexrank.projections import onto_simplex

Penalty = Callable[[np.ndarray], tuple[float, np.ndarray]]  # additional cost of the ranks: value and gradient
# on the simplex the I-divergence equals KL
KINDS = {
    "kl": kernels.KL,
    "i-divergence": kernels.KL,
    "squared": kernels.SQUARED,
    "itakura-saito": kernels.ITAKURA_SAITO,
    "logistic": kernels.LOGISTIC,
}
MOST_STEPS = 10_000  # steps of a solution of Poisson's equation, whose error bound stops it much earlier
ARMIJO = 1e-4  # share of the predicted descent that a step must achieve
SHORTEST, LONGEST = 2.0**-30, 2.0**20
FLAT = 1e-11  # descents below this, relative to V, are lost in rounding
LITTLE = 1e-8  # descent that may be below the precision of V
STALLED = 60  # stop after this many steps in that range without a smaller gap
CIRCLING = 15  # fixed-point steps without a smaller gap
# plain steps that do not halve the gap: for degenerate solutions the gap decreases only like 1/t
CRAWLING = 30


def divergence_of_ranks(divergence: str | Divergence) -> Divergence:
    """Look up a separable Bregman divergence between distributions over the vertices.

    Examples
    --------
    >>> divergence_of_ranks("itakura-saito")
    ItakuraSaito(weight=None)
    >>> divergence_of_ranks("shifted-i-divergence")
    Traceback (most recent call last):
    apexrank.errors.InputError: shifted-i-divergence needs coordinates of at least 1, and those of ranks are below...
    """
    name = divergence if isinstance(divergence, str) else getattr(divergence, "name", None)
    if name == "shifted-i-divergence":
        raise InputError(
            f"{name} needs coordinates of at least 1, and those of ranks are below: use 'i-divergence'"
        )
    # kernels implement the library's classes, not user-defined ones
    if name not in KINDS or type(divergence) not in (str, DIVERGENCES.members[name]):
        raise unknown("`divergence`", divergence, KINDS)
    return DIVERGENCES.get(divergence)


class Choice(NamedTuple):
    """Layer weights with the ranks and costs that follow from them.

    ``mixture`` holds the weights of the union's links, ``ranks`` the stationary ranks w with their L1 error bound
    ``error``, ``costs`` the c_i and ``value`` the cost V.
    """

    weights: np.ndarray
    mixture: np.ndarray
    ranks: np.ndarray
    error: float
    costs: np.ndarray
    value: float


class Improvement(NamedTuple):
    """Step of all vertices: new weights, first-order gap Σ_i w_i·gap_i, and the derivative of V along the step."""

    weights: np.ndarray
    gap: float
    slope: float
    gaps: np.ndarray


@dataclass(eq=False)
class Agreement:
    """Cost of layer weights on given hulls; a context manager that starts and stops threads.

    Parameters
    ----------
    hulls : Hulls
        Candidates of every vertex.
    teleport : ndarray
        Teleport distribution, which also redistributes the rank of vertices without candidates.
    damping, divergence, entropy, pull, prior
        α, the divergence of φ, weights of the costs, and a prior weight for each candidate.
    penalty : callable, optional
        Additional cost of the ranks.
    """

    hulls: Hulls
    teleport: np.ndarray
    damping: float
    _: KW_ONLY
    prior: np.ndarray
    divergence: str | Divergence = "kl"
    entropy: float = 1.0
    pull: float = 0.0
    penalty: Penalty | None = None

    def __post_init__(self) -> None:
        hulls, self.n, self.atom = self.hulls, len(self.teleport), divergence_of_ranks(self.divergence)
        self.kind = KINDS[self.atom.name]
        self.scale = np.ones(self.n) * getattr(self.atom, "weights", 1.0)
        self.base = (1 - self.damping) * self.teleport
        opinions = np.diff(hulls.first)
        self.dangling = np.flatnonzero(opinions == 0)
        self._vertex = np.repeat(np.arange(self.n), opinions)
        self.out = InLinks(hulls.indptr, hulls.indices)
        places = Links(hulls.indptr, hulls.indices, np.arange(len(hulls.indices), dtype=float))
        into = turned(places)
        self.into = InLinks(into.indptr, into.indices)
        self._places = into.weights.astype(np.int64)  # type: ignore[union-attr]
        self._of_base, self._of_teleport = self.phi(self.base).sum(), self.phi(self.teleport).sum()
        self._rounding = 2 * rounding_of(self.into)  # the teleport gets what 1 is above a rounded sum

    def __enter__(self) -> Self:
        self.out.__enter__()
        self.into.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.out.__exit__(*error)
        self.into.__exit__(*error)

    def phi(self, t: np.ndarray) -> np.ndarray:
        """Return φ of each coordinate."""
        return kernels.generated(self.kind, self.scale, t, False)

    def gradient(self, t: np.ndarray) -> np.ndarray:
        """Gradient ∇φ."""
        return kernels.generated(self.kind, self.scale, t, True)

    def of_vertices(self, values: np.ndarray) -> np.ndarray:
        """Repeat the value of each vertex for each of its candidates."""
        return values[self._vertex]

    def onto_simplices(self, weights: np.ndarray) -> np.ndarray:
        """Clip negative weights and normalise the sum of each vertex to 1."""
        kept = np.maximum(weights, 0.0)
        return kept / np.bincount(self._vertex, kept, self.n)[self._vertex]

    def at(self, weights: np.ndarray, start: np.ndarray, tol: float) -> Choice:
        """Evaluate weights, with ranks within ``tol`` (L1)."""
        mixture = self.mix(weights)
        ranks, error = self.ranks(mixture, start, tol)
        costs = self.costs(weights, mixture)
        return Choice(weights, mixture, ranks, error, costs, self.value(ranks, costs))

    def refined(self, choice: Choice, tol: float) -> Choice:
        """Return the same choice with more accurate ranks."""
        if choice.error <= tol:
            return choice
        ranks, error = self.ranks(choice.mixture, choice.ranks, tol)
        return choice._replace(ranks=ranks, error=error, value=self.value(ranks, choice.costs))

    def mix(self, weights: np.ndarray) -> np.ndarray:
        """Compute the weights of the union's links."""
        out = np.empty(len(self.hulls.indices))
        self.out.run(partial(kernels.mix, self.hulls.rows, self.hulls.first, weights, out))
        return out

    def ranks(self, mixture: np.ndarray, start: np.ndarray, tol: float) -> tuple[np.ndarray, float]:
        """Compute the stationary ranks and a bound on their L1 error."""
        shares = mixture[self._places]
        tol = max(tol, 1.5 * self._rounding / (1 - self.damping))
        bound, a = l1_bound(self.damping, self._rounding), self.damping
        # every step contracts the change, which is at most 2 in the first, by the damping
        steps = 2 + (math.ceil(math.log(tol * (1 - a) / 8, a)) if a > 0 else 0)
        answer = iterate(partial(self._next, shares), start, bound, tol, max(steps, 2))
        return answer.scores, answer.error_bound

    def step(self, mixture: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Take one step of the walk, ``Σ_i w_i t̂_i``."""
        return self._next(mixture[self._places], w)

    def _next(self, shares: np.ndarray, w: np.ndarray) -> np.ndarray:
        new = self.damping * self.into.weighted_sums(w, shares)
        return new + self.teleport * (1 - new.sum())

    def stationarity(self, choice: Choice) -> float:
        """Stationarity residual ``|Tw − w|₁``."""
        return float(np.abs(self.step(choice.mixture, choice.ranks) - choice.ranks).sum())

    def convex_costs(self, mixture: np.ndarray) -> np.ndarray:
        """Return φ(t̂_i) of every vertex."""
        found, given = np.empty(self.n), (self.hulls.indptr, self.hulls.indices, mixture)
        self.out.run(
            partial(kernels.convex_costs, self.kind, self.scale, *given, self.base, self.damping, found)
        )
        found += self._of_base
        found[self.dangling] = self._of_teleport
        return found

    def costs(self, weights: np.ndarray, mixture: np.ndarray) -> np.ndarray:
        """Costs c_i of the vertices."""
        found = self.entropy * self.convex_costs(mixture)
        if self.pull > 0:
            logs = np.log(np.maximum(weights, TINY) / self.prior)
            found += self.pull * np.bincount(self._vertex, weights * logs, self.n)
        return found

    def value(self, ranks: np.ndarray, costs: np.ndarray) -> float:
        """Cost V of given ranks and vertex costs."""
        extra = 0.0 if self.penalty is None else self.penalty(ranks)[0]
        return float((ranks * costs).sum() - self.phi(ranks).sum()) + extra

    def distances(self, mixture: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        """Divergence ``D_φ(t̂_i‖ranks)`` of every vertex from the consensus."""
        slope = self.gradient(ranks)
        inner = self.damping * self.out.weighted_sums(slope, mixture) + (self.base * slope).sum()
        inner[self.dangling] = (self.teleport * slope).sum()
        of_ranks = self.phi(ranks).sum() - (slope * ranks).sum()
        return np.maximum(self.convex_costs(mixture) - inner - of_ranks, 0.0)

    def prices(self, choice: Choice, start: np.ndarray, tol: float) -> np.ndarray:
        """Solve Poisson's equation for s with ``<teleport, s> = 0``, each entry within ``tol``.

        With this normalisation ``T s`` is ``α Σ_j p_ij s_j``, a contraction by α in the maximum norm.
        """
        s, a, w = start, self.damping, choice.ranks
        right = self.gradient(w) - choice.costs
        if self.penalty is not None:
            right -= self.penalty(w)[1]
        right -= (w * right).sum()
        for _ in range(MOST_STEPS):
            new = a * self.out.weighted_sums(s, choice.mixture) + right
            change = np.abs(new - s).max()
            s = new
            if change * a <= tol * (1 - a) or change <= 1e-15 * np.abs(s).max():
                break
        return s

    def corroborated(self, choice: Choice, temperature: float) -> Improvement:
        """Weight each layer of a vertex by its corroboration by the vertex's other layers; see the kernel."""
        h, w = self.hulls, choice.ranks
        new, moves = np.empty_like(choice.weights), np.empty(self.n)
        background = (1 - self.damping) * w
        far = (self.base * (self.gradient(self.base) - self.gradient(background))).sum()
        given = h.rows, h.first, choice.weights, self.prior, w, self.base, self.damping, far, self._of_base
        self.out.run(partial(kernels.corroborate, *given, temperature, new, moves))
        return Improvement(new, float((w * moves).sum()), np.nan, moves)

    def gradients(self, weights: np.ndarray, prices: np.ndarray) -> np.ndarray:
        """Gradient ``∂c_i/∂λ_ik − α<t_i^k, s>`` of every candidate, up to a constant for each vertex."""
        h = self.hulls
        t = self.damping * self.mix(weights) + self.base[h.indices]
        steep = kernels.generated(self.kind, self.scale[h.indices], t, True)
        slopes = self.damping * (self.entropy * steep - prices[h.indices])
        place = np.repeat(np.arange(len(h.indices)), np.diff(h.entries))
        candidate = np.repeat(h.first[:-1], np.diff(h.indptr))[place] + h.candidate
        pulled = self.pull * np.log(np.maximum(weights, SMALLEST) / self.prior)
        return pulled + np.bincount(candidate, h.share * slopes[place], len(weights))

    def least(self, values: np.ndarray) -> np.ndarray:
        """Minimum over the candidates of each vertex; 0 if it has none."""
        found = np.full(self.n, np.inf)
        np.minimum.at(found, self._vertex, values)
        return np.where(np.isfinite(found), found, 0.0)

    def corrected(self, choice: Choice, prices: np.ndarray) -> Choice:
        """Correct the value to ``V − <s, Tw − w>``, with an error quadratic in that of the ranks."""
        rest = self.step(choice.mixture, choice.ranks) - choice.ranks
        return choice._replace(value=choice.value - float((prices * rest).sum()))

    def improvement(self, choice: Choice, prices: np.ndarray, tol: float) -> Improvement:
        """Find the points of all hulls nearest to the prices."""
        h, costs = self.hulls, (self.base, self.damping, self.entropy, self.pull)
        given = self.kind, self.scale, h.rows, h.first, choice.weights, self.prior, prices, *costs
        new, gaps, slopes = np.empty_like(choice.weights), np.empty(self.n), np.empty(self.n)
        self.out.run(partial(kernels.project, *given, tol, new, gaps, slopes))
        w = choice.ranks
        return Improvement(new, float((w * gaps).sum()), float((w * slopes).sum()), gaps)


class Limits(NamedTuple):
    """Stopping rule of a method and callback for its steps."""

    tol: float
    max_iter: int
    progress: Progress = lambda step, gap: None


class Consensus(NamedTuple):
    """Result of a method: the choice, its first-order gap, the number of steps, and cost and gap of each step."""

    choice: Choice
    gap: float
    gaps: np.ndarray
    converged: bool
    values: list[float]
    history: list[float]


def blend(problem: Agreement, weights: np.ndarray, start: np.ndarray, limits: Limits) -> Consensus:
    """Descend from ``weights`` to a local minimum of V with a first-order gap of at most ``tol``.

    In each step all vertices move to their improvements, or part of the way if V would not decrease. V is not convex,
    so that other initial weights may lead to another minimum.
    """
    tol, gap, s, flat, guess = limits.tol, 0.1, np.zeros(problem.n), False, Anderson()
    choice = problem.at(weights, start, 1e-6)
    values: list[float] = []
    history: list[float] = []
    best: tuple[Choice, Improvement] | None = None
    for _ in range(limits.max_iter):
        fine = max(0.02 * min(gap, 1.0), 0.02 * tol)
        choice = problem.refined(choice, 0.0 if flat else 0.1 * fine)
        s = problem.prices(choice, s, fine)
        choice = problem.corrected(choice, s)
        better = problem.improvement(choice, s, 0.02 * fine)
        gap, flat = better.gap, -better.slope <= _rounding(problem, choice)
        values.append(choice.value)
        history.append(gap)
        limits.progress(len(history), gap)
        if not flat or best is None or gap <= best[1].gap:
            best = choice, better
        if gap <= tol and fine <= 0.05 * max(gap, tol):
            break
        if flat and min(history[-STALLED:]) > best[1].gap:
            break
        if flat and gap > 2 * min(history[-2:]):
            guess.forget()
        moved = _descended(problem, choice, better, flat, guess)
        if moved is None:
            break
        choice = moved
    choice, better = best  # type: ignore[misc]
    return Consensus(
        problem.refined(choice, 1e-3 * tol), better.gap, better.gaps, better.gap <= tol, values, history
    )


def _descended(
    problem: Agreement, choice: Choice, better: Improvement, flat: bool, guess: Anderson
) -> Choice | None:
    """Return the choice after the longest step with sufficient decrease of V, or None if there is none.

    Candidates are an extrapolation from previous steps, then 1, ½, ¼ … of the way to the improvement. If the possible
    gain is below the rounding error of V, the extrapolation is accepted.
    """
    exact, value = 1e-3 * -better.slope, choice.value
    way = better.weights - choice.weights
    bold = _guessed(problem, guess, choice, better)
    new = problem.at(bold, choice.ranks, exact)
    if new.value <= value + ARMIJO * better.slope:
        return new
    if flat:
        # a step gains less than the precision of V, but a multiple of it may gain enough
        far = _lengthened(problem, choice, way, problem.at(better.weights, choice.ranks, exact), exact)
        if far.value < value or new.value > value + _rounding(problem, choice):
            guess.forget()
            return far
        return new
    length = 1.0
    while length >= SHORTEST:
        new = problem.at(choice.weights + length * way, choice.ranks, exact * length)
        if new.value <= value + ARMIJO * length * better.slope:
            return new if length < 1 else _lengthened(problem, choice, way, new, exact)
        length /= 2
    # the remaining gain is below the precision of V
    return problem.at(better.weights, choice.ranks, exact) if -better.slope <= LITTLE else None


def _lengthened(problem: Agreement, choice: Choice, way: np.ndarray, new: Choice, exact: float) -> Choice:
    """Take the full step, or 2, 4, 8 … times it while V decreases: near a saddle point full steps are short."""
    length = 2.0
    while length <= LONGEST:
        weights = problem.onto_simplices(choice.weights + length * way)
        further = problem.at(weights, new.ranks, exact)
        if further.value >= new.value:
            break
        new, length = further, 2 * length
    return new


def _guessed(problem: Agreement, guess: Anderson, choice: Choice, better: Improvement) -> np.ndarray:
    """Extrapolate the steps, in the weights or, if a pull keeps them positive, in their logarithms."""
    scale = problem.of_vertices(choice.ranks)
    if problem.pull == 0:
        return problem.onto_simplices(guess(choice.weights, better.weights, scale))
    old, new = (np.log(np.maximum(weights, SMALLEST)) for weights in (choice.weights, better.weights))
    logs = guess(old, new, scale * better.weights)
    logs -= problem.of_vertices(-problem.least(-logs))
    return problem.onto_simplices(np.maximum(np.exp(logs), SMALLEST))


def _rounding(problem: Agreement, choice: Choice) -> float:
    """Bound on the rounding error of V."""
    return FLAT * (1 + abs(choice.value) + problem.pull)


def fixed_point(problem: Agreement, weights: np.ndarray, start: np.ndarray, limits: Limits) -> Consensus:
    """Alternate between projecting the ranks onto every hull and recomputing the ranks.

    The gap is that of the projections, 0 if no vertex would move.
    """

    def projected(choice: Choice, fine: float) -> Improvement:
        return problem.improvement(choice, problem.gradient(choice.ranks), 0.02 * fine)

    return _repeated(projected, problem, weights, start, limits)


def corroborated(
    problem: Agreement, weights: np.ndarray, start: np.ndarray, temperature: float, limits: Limits
) -> Consensus:
    """Alternate between weights by corroboration and recomputed ranks; the gap is the change of the weights."""

    def moved(choice: Choice, fine: float) -> Improvement:
        return problem.corroborated(choice, temperature)

    # there may be several fixed points: half steps lead to the one nearest to the start
    return _repeated(moved, problem, weights, start, limits, length=0.5, bold_below=1e-4)


def _repeated(
    improve: Callable[[Choice, float], Improvement],
    problem: Agreement,
    weights: np.ndarray,
    start: np.ndarray,
    limits: Limits,
    *,
    length: float = 1.0,
    bold_below: float = np.inf,
) -> Consensus:
    """Repeat a step of all vertices, by a fraction ``length`` of the way, until they no longer move.

    If the gap is below ``bold_below``, Anderson extrapolations replace plain steps. There is no objective that the
    steps decrease, and they may cycle: then extrapolation stops, and later the fraction is reduced. Plain steps may
    also become slow: then extrapolation starts again.
    """
    tol, gap, lowest, since, plain = limits.tol, 0.1, np.inf, 0, 0
    guess: Anderson | None = Anderson()
    choice = problem.at(weights, start, 1e-4)
    values: list[float] = []
    history: list[float] = []
    for _ in range(limits.max_iter):
        fine = max(0.02 * min(gap, 1.0), 0.02 * tol)
        choice = problem.refined(choice, 0.1 * fine)
        better = improve(choice, fine)
        gap = better.gap
        values.append(choice.value)
        history.append(gap)
        limits.progress(len(history), gap)
        if gap <= tol and fine <= 0.05 * max(gap, tol):
            break
        since = 0 if gap < lowest else since + 1
        lowest = min(lowest, gap)
        if since >= CIRCLING:
            cycles = max(history[-CIRCLING:]) > 1.1 * min(history[-CIRCLING:])  # else they are slow
            length = max(length / 2, 1 / 64) if guess is None and cycles else length
            guess, lowest, since, plain = None, np.inf, 0, 0
        elif guess is None and plain >= CRAWLING:
            guess = Anderson() if gap > 0.5 * history[-CRAWLING] else None
            plain = 0
        plain += guess is None
        new = choice.weights + length * (better.weights - choice.weights)
        if guess is not None and gap <= bold_below:
            new = _guessed(problem, guess, choice, better)
        choice = problem.at(new, choice.ranks, fine)
    return Consensus(problem.refined(choice, 1e-3 * tol), gap, better.gaps, gap <= tol, values, history)


def brew(
    problem: Agreement, weights: np.ndarray, start: np.ndarray, beta: float, limits: Limits
) -> Consensus:
    """Minimise ``Σ_i w_i D_φ(t̂_i‖ρ) + (1 − β)/β·D_φ(w‖ρ)`` alternately over ρ, the hulls and w (eq. 5.38).

    ``ρ ← βΣ_i w_i t̂_i + (1 − β)w``; every t̂_i is the projection of ρ; ``w ∝ ρ_i·exp(−β/(1 − β)·D_φ(t̂_i‖ρ))`` for the
    Kullback–Leibler divergence, and the projection of ``ρ − β/(1 − β)·D`` onto the simplex for the squared distance.
    The cost never increases. Its minimum has ``w ≠ ρ``, and even for one layer, as β → 0, ρ is not PageRank.
    """

    def seen_from(w: np.ndarray, weights: np.ndarray) -> Choice:
        """Return a choice with the vertex weights w instead of stationary ranks."""
        return Choice(weights, problem.mix(weights), w, np.inf, np.zeros(0), np.inf)

    tol, w, values, history = limits.tol, start, [], []
    choice = seen_from(w, weights)
    ratio = beta / (1 - beta)
    for _ in range(limits.max_iter):
        rho = beta * problem.step(choice.mixture, w) + (1 - beta) * w
        better = problem.improvement(choice, problem.gradient(rho), 0.01 * tol)
        choice = seen_from(w, better.weights)
        distances = problem.distances(choice.mixture, rho)
        # unreached vertices: a logarithm of −inf minus an infinite distance would be nan
        natural = problem.atom.grad(np.maximum(rho, TINY)) - ratio * distances
        old, w = w, onto_simplex(problem.atom, natural)
        choice = choice._replace(ranks=w)
        values.append(float((w * distances).sum() + problem.atom.divergence(w, rho) / ratio))
        history.append(float(np.abs(w - old).sum()))
        limits.progress(len(history), history[-1])
        if history[-1] <= tol:
            break
    rho = beta * problem.step(choice.mixture, w) + (1 - beta) * w
    better = problem.improvement(choice, problem.gradient(rho), 0.01 * tol)
    final = choice._replace(ranks=rho, value=values[-1])
    return Consensus(final, better.gap, better.gaps, history[-1] <= tol, values, history)
