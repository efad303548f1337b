"""The loops of the dissertation (Figs. 5.7 and 5.8) for the consensus of least disagreement, put right.

As printed, weights w of the vertices play against prices s and choices T, in the order ``max_w min_{s,T}``, which has
no lower bound. Put right it is ``min_T`` of the saddle point in s and w, and T learns by an update of small regret: the
exponentiated gradient ``λ_ik ∝ λ_ik·exp(−g_ik)``. The step 1 is safe, as mixing loses information:
``D_φ(t(λ)‖t(λ')) ≤ KL(λ‖λ')``.
"""

from __future__ import annotations

import numpy as np

from apexrank.graph.agreement import Agreement
from apexrank.graph.blend import Consensus
from apexrank.graph.power import Progress

STOP = 0.5  # of tol, by a loop's own figures: the certificate at the end is more exact


def double_loop(
    problem: Agreement,
    weights: np.ndarray,
    start: np.ndarray,
    tol: float,
    max_iter: int,
    progress: Progress | None = None,
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
        if progress is not None:
            progress(len(history), gap)
        if gap <= STOP * tol:
            break
    return _certified(problem, weights, w, s, tol, history)


def single_loop(
    problem: Agreement,
    weights: np.ndarray,
    start: np.ndarray,
    tol: float,
    max_iter: int,
    progress: Progress | None = None,
) -> Consensus:
    """One step of the ranks, one of the prices and one of the vertices in each round; no inner loop."""
    s, w = np.zeros(problem.n), start
    history: list[float] = []
    for _ in range(max_iter):
        mixture = problem.mix(weights)
        new = problem.step(mixture, w)
        change, w = float(np.abs(new - w).sum()), new
        s = problem.price_step(mixture, w, problem.costs(weights, mixture), s)
        s -= (problem.teleport * s).sum()
        gap, weights = _exponentiated(problem, weights, w, s)
        history.append(max(gap, change))
        if progress is not None:
            progress(len(history), history[-1])
        if history[-1] <= STOP * tol:
            break
    return _certified(problem, weights, w, s, tol, history)


def _exponentiated(
    problem: Agreement, weights: np.ndarray, w: np.ndarray, s: np.ndarray
) -> tuple[float, np.ndarray]:
    """First-order gap of the weights, and their next step."""
    g = problem.gradients(weights, s)
    least = problem.least(g)
    above = g - problem.of_vertices(least)
    gap = float((problem.of_vertices(w) * weights * above).sum())
    return gap, problem.onto_simplices(weights * np.exp(-above))


def _certified(
    problem: Agreement,
    weights: np.ndarray,
    w: np.ndarray,
    s: np.ndarray,
    tol: float,
    history: list[float],
) -> Consensus:
    choice = problem.at(weights, w, 1e-3 * tol)
    better = problem.improvement(choice, problem.prices(choice, s, 0.02 * tol), 0.01 * tol)
    return Consensus(choice, better.gap, better.gaps, better.gap <= tol, [choice.value], history)
