"""Consensus ranks as the dissertation computes them: BreW (Fig. 5.6) and its two loops (Figs. 5.7 and 5.8), put right.

They are here to be studied beside ``blend``, which is quicker. As printed, the loops let weights w of the vertices play
against prices s and choices T, in the order ``max_w min_{s,T}``, which has no lower bound. Put right it is ``min_T`` of
the saddle point in s and w, and T learns by an update of small regret: the exponentiated gradient
``λ_ik ∝ λ_ik·exp(−g_ik)``. The step 1 is safe, as mixing loses information: ``D_φ(t(λ)‖t(λ')) ≤ KL(λ‖λ')``.
"""

from __future__ import annotations

import numpy as np

from apexrank.graph.agreement import Agreement, Choice
from apexrank.graph.blend import Consensus
from apexrank.graph.power import Progress
from apexrank.kernels.hulls import KL
from apexrank.projections import onto_simplex

STOP = 0.5  # of tol, by a loop's own figures: the certificate at the end is more exact


def brew(
    problem: Agreement,
    weights: np.ndarray,
    start: np.ndarray,
    beta: float,
    tol: float,
    max_iter: int,
    progress: Progress,
) -> Consensus:
    """Minimise ``Σ_i w_i D_φ(t̂_i‖ρ) + (1 − β)/β·D_φ(w‖ρ)`` over ρ, w and the hulls in turn (eq. 5.38).

    ``ρ ← βΣ_i w_i t̂_i + (1 − β)w``; every t̂_i the projection of ρ; ``w ∝ ρ_i·exp(−β/(1 − β)·D_φ(t̂_i‖ρ))`` for the
    Kullback–Leibler divergence, for the squared distance the projection of ``ρ − β/(1 − β)·D`` onto the simplex. The
    cost never rises. Its minimum has ``w ≠ ρ``, and even for one layer, as β → 0, ρ is not PageRank.
    """

    def seen_from(w: np.ndarray, weights: np.ndarray) -> Choice:
        """A choice with the weights w of the vertices in the place of stationary ranks."""
        return Choice(weights, problem.mix(weights), w, np.inf, np.zeros(0), np.inf)

    w, values, history = start, [], []
    choice = seen_from(w, weights)
    ratio, kind = beta / (1 - beta), "kl" if problem.kind == KL else "squared"
    for _ in range(max_iter):
        rho = beta * problem.step(choice.mixture, w) + (1 - beta) * w
        better = problem.improvement(choice, problem.gradient(rho), 0.01 * tol)
        choice = seen_from(w, better.weights)
        distances = problem.distances(choice.mixture, rho)
        old, w = w, onto_simplex(kind, problem.gradient(rho) - ratio * distances)
        choice = choice._replace(ranks=w)
        values.append(float((w * distances).sum() + _divergence(problem, w, rho) / ratio))
        history.append(float(np.abs(w - old).sum()))
        progress(len(history), history[-1])
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


def double_loop(
    problem: Agreement, weights: np.ndarray, start: np.ndarray, tol: float, max_iter: int, progress: Progress
) -> Consensus:
    """Solve for ranks and prices in an inner loop, then take one exponentiated step with all vertices."""
    s, w, gap = np.zeros(problem.n), start, 0.1
    history: list[float] = []
    for _ in range(max_iter):
        fine = 0.02 * max(min(gap, 1.0), tol)
        choice = problem.at(weights, w, 0.1 * fine)
        w, s = choice.ranks, problem.prices(choice, s, fine)
        gap, weights = _exponentiated(problem, weights, w, s)
        history.append(gap)
        progress(len(history), gap)
        if gap <= STOP * tol:
            break
    return _certified(problem, weights, w, s, tol, history)


def single_loop(
    problem: Agreement, weights: np.ndarray, start: np.ndarray, tol: float, max_iter: int, progress: Progress
) -> Consensus:
    """One step of the ranks, one of the prices and one of the vertices in each round; no inner loop."""
    s, w = np.zeros(problem.n), start
    history: list[float] = []
    for _ in range(max_iter):
        mixture = problem.mix(weights)
        old, w = w, problem.step(mixture, w)
        s = problem.price_step(mixture, w, problem.costs(weights, mixture), s)
        s -= (problem.teleport * s).sum()
        gap, weights = _exponentiated(problem, weights, w, s)
        history.append(max(gap, float(np.abs(w - old).sum())))
        progress(len(history), history[-1])
        if history[-1] <= STOP * tol:
            break
    return _certified(problem, weights, w, s, tol, history)


def _exponentiated(
    problem: Agreement, weights: np.ndarray, w: np.ndarray, s: np.ndarray
) -> tuple[float, np.ndarray]:
    """First-order gap of the weights, and their next step."""
    g = problem.gradients(weights, s)
    above = g - problem.of_vertices(problem.least(g))
    gap = float((problem.of_vertices(w) * weights * above).sum())
    return gap, problem.onto_simplices(weights * np.exp(-above))


def _certified(
    problem: Agreement, weights: np.ndarray, w: np.ndarray, s: np.ndarray, tol: float, history: list[float]
) -> Consensus:
    choice = problem.at(weights, w, 1e-3 * tol)
    better = problem.improvement(choice, problem.prices(choice, s, 0.02 * tol), 0.01 * tol)
    return Consensus(choice, better.gap, better.gaps, better.gap <= tol, [choice.value], history)
