"""Methods of consensus: least disagreement (dissertation, eq. 5.23 and 5.39), projection of the ranks, BreW (Fig. 5.6).

All of them move every vertex to the point of its hull that is nearest to something: ``blend`` to the prices s of
Poisson's equation, along which the cost V falls, ``fixed_point`` and ``brew`` to the ranks themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from apexrank.graph.agreement import Agreement, Choice, Improvement
from apexrank.graph.power import Anderson, Progress
from apexrank.kernels.hulls import KL, SMALLEST
from apexrank.projections import onto_simplex

ARMIJO = 1e-4  # share of the promised descent that a step must keep
SHORTEST, LONGEST = 2.0**-30, 2.0**20
FLAT = 1e-11  # descents below this, relative to V, are lost in its rounding

LITTLE = 1e-8  # descent that V may be too inexact to show
STALLED = 60  # steps in that range without a smaller gap, and it is over
CIRCLING = 15  # steps of the fixed point without a smaller gap
CRAWLING = (
    30  # plain steps that do not halve the gap: where the answer is degenerate they fall like 1/t, for ever
)


class Limits(NamedTuple):
    """Stopping rule of a method, and the callback for its steps."""

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
    """Descend from ``weights`` to a local minimum of V: its first-order gap is at most ``tol``.

    In a step all vertices move to their improvements, or part of the way where V would not fall. V is not convex, so
    that other weights to begin with may lead to another minimum.
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
    """The choice after the boldest step that makes V fall enough; None where none does.

    These are a guess from the steps before, then 1, ½, ¼ … of the way to the improvement. Where what is left to gain
    is below the rounding of V, the guess is taken.
    """
    exact, value = 1e-3 * -better.slope, choice.value
    way = better.weights - choice.weights
    bold = _guessed(problem, guess, choice, better)
    new = problem.at(bold, choice.ranks, exact)
    if new.value <= value + ARMIJO * better.slope:
        return new
    if flat:
        # a step gains less than V can show, but many in its direction may gain enough
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
    # what is left to gain is little, and V not exact enough to show it
    return problem.at(better.weights, choice.ranks, exact) if -better.slope <= LITTLE else None


def _lengthened(problem: Agreement, choice: Choice, way: np.ndarray, new: Choice, exact: float) -> Choice:
    """The full step, or 2, 4, 8 … of it while V falls further: near a saddle point full steps are short."""
    length = 2.0
    while length <= LONGEST:
        weights = problem.onto_simplices(choice.weights + length * way)
        further = problem.at(weights, new.ranks, exact)
        if further.value >= new.value:
            break
        new, length = further, 2 * length
    return new


def _guessed(problem: Agreement, guess: Anderson, choice: Choice, better: Improvement) -> np.ndarray:
    """A guess of where the steps lead: of weights, or, where a pull keeps them off 0, of their logarithms."""
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
    """Alternate the projection of the ranks onto every hull and the ranks that follow.

    The gap is that of the projections: 0 where no vertex would move.
    """

    def projected(choice: Choice, fine: float) -> Improvement:
        return problem.improvement(choice, problem.gradient(choice.ranks), 0.02 * fine)

    return _repeated(projected, problem, weights, start, limits)


def corroborated(
    problem: Agreement, weights: np.ndarray, start: np.ndarray, temperature: float, limits: Limits
) -> Consensus:
    """Alternate weights by corroboration and the ranks that follow; the gap is how far weights would move."""

    def moved(choice: Choice, fine: float) -> Improvement:
        return problem.corroborated(choice, temperature)

    # several weights may bear out one another: half steps from the beginning lead to those it is nearest to
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
    """Repeat a step of all vertices, of a part ``length`` of the way, until they stay where they are.

    Where the gap is below ``bold_below``, guesses from several steps (Anderson) stand in for a step. Nothing falls
    along the steps, which may circle: then the guesses end, and later a smaller part of the way is gone. Plain steps
    may also crawl: then guesses begin anew.
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
            length = length if guess is not None else max(length / 2, 1 / 64)
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
    """Minimise ``Σ_i w_i D_φ(t̂_i‖ρ) + (1 − β)/β·D_φ(w‖ρ)`` over ρ, w and the hulls in turn (eq. 5.38).

    ``ρ ← βΣ_i w_i t̂_i + (1 − β)w``; every t̂_i the projection of ρ; ``w ∝ ρ_i·exp(−β/(1 − β)·D_φ(t̂_i‖ρ))`` for the
    Kullback–Leibler divergence, for the squared distance the projection of ``ρ − β/(1 − β)·D`` onto the simplex. The
    cost never rises. Its minimum has ``w ≠ ρ``, and even for one layer, as β → 0, ρ is not PageRank.
    """

    def seen_from(w: np.ndarray, weights: np.ndarray) -> Choice:
        """A choice with the weights w of the vertices in the place of stationary ranks."""
        return Choice(weights, problem.mix(weights), w, np.inf, np.zeros(0), np.inf)

    tol, w, values, history = limits.tol, start, [], []
    choice = seen_from(w, weights)
    ratio, kind = beta / (1 - beta), "kl" if problem.kind == KL else "squared"
    for _ in range(limits.max_iter):
        rho = beta * problem.step(choice.mixture, w) + (1 - beta) * w
        better = problem.improvement(choice, problem.gradient(rho), 0.01 * tol)
        choice = seen_from(w, better.weights)
        distances = problem.distances(choice.mixture, rho)
        old, w = w, onto_simplex(kind, problem.gradient(rho) - ratio * distances)
        choice = choice._replace(ranks=w)
        values.append(float((w * distances).sum() + _divergence(problem, w, rho) / ratio))
        history.append(float(np.abs(w - old).sum()))
        limits.progress(len(history), history[-1])
        if history[-1] <= tol:
            break
    rho = beta * problem.step(choice.mixture, w) + (1 - beta) * w
    better = problem.improvement(choice, problem.gradient(rho), 0.01 * tol)
    final = choice._replace(ranks=rho, value=values[-1])
    return Consensus(final, better.gap, better.gaps, history[-1] <= tol, values, history)


def _divergence(problem: Agreement, w: np.ndarray, rho: np.ndarray) -> float:
    slope = problem.gradient(rho)
    found = (problem.phi(w) - problem.phi(rho) - slope * (w - rho)).sum()
    if problem.kind == KL:
        found -= (w - rho).sum()
    return float(max(found, 0.0))
