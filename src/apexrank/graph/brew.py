"""BreW, the penalty method of the dissertation (Fig. 5.6): a consensus without stationarity."""

from __future__ import annotations

import numpy as np

from apexrank.graph.agreement import Agreement, Choice
from apexrank.graph.blend import Consensus
from apexrank.graph.power import Progress
from apexrank.kernels.hulls import KL
from apexrank.projections import onto_simplex


def brew(
    problem: Agreement,
    weights: np.ndarray,
    start: np.ndarray,
    beta: float,
    tol: float,
    max_iter: int,
    progress: Progress | None = None,
) -> Consensus:
    """Minimise ``Σ_i w_i D_φ(t̂_i‖ρ) + (1 − β)/β·D_φ(w‖ρ)`` over ρ, w and the hulls in turn (eq. 5.38).

    ``ρ ← βΣ_i w_i t̂_i + (1 − β)w``; every t̂_i the projection of ρ; ``w ∝ ρ_i·exp(−β/(1 − β)·D_φ(t̂_i‖ρ))`` for the
    Kullback–Leibler divergence, for the squared distance the projection of ``ρ − β/(1 − β)·D`` onto the simplex. The
    cost never rises. Its minimum has ``w ≠ ρ``, and even for one layer, as β → 0, ρ is not PageRank.
    """
    w, values, history = start, [], []
    choice = _seen_from(problem, weights, w)
    ratio, kind = beta / (1 - beta), "kl" if problem.kind == KL else "squared"
    for _ in range(max_iter):
        flow = problem.step(choice.mixture, w)
        rho = beta * flow + (1 - beta) * w
        better = problem.improvement(choice, problem.gradient(rho), 0.01 * tol)
        choice = _seen_from(problem, better.weights, w)
        distances = problem.distances(choice.mixture, rho)
        w = onto_simplex(kind, problem.gradient(rho) - ratio * distances)
        choice = choice._replace(ranks=w)
        values.append(float((w * distances).sum() + _divergence(problem, w, rho) / ratio))
        change = float(np.abs(w - start).sum())
        start = w
        history.append(change)
        if progress is not None:
            progress(len(history), change)
        if change <= tol:
            break
    rho = beta * problem.step(choice.mixture, w) + (1 - beta) * w
    better = problem.improvement(choice, problem.gradient(rho), 0.01 * tol)
    final = choice._replace(ranks=rho, value=values[-1])
    return Consensus(final, better.gap, better.gaps, history[-1] <= tol, values, history)


def _seen_from(problem: Agreement, weights: np.ndarray, w: np.ndarray) -> Choice:
    """A choice with the weights w of the vertices in the place of stationary ranks."""
    return Choice(weights, problem.mix(weights), w, np.inf, np.zeros(0), np.inf)


def _divergence(problem: Agreement, w: np.ndarray, rho: np.ndarray) -> float:
    slope = problem.gradient(rho)
    found = (problem.phi(w) - problem.phi(rho) - slope * (w - rho)).sum()
    if problem.kind == KL:
        found -= (w - rho).sum()
    return float(max(found, 0.0))
