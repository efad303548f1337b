"""Corrected versions of the dissertation's two loops for the consensus of least disagreement (Figs. 5.7 and 5.8).

They are for study; :class:`apexrank.ConsensusRank` is faster. As printed, the loops play weights w of the vertices
against prices s and choices T in the order ``max_w min_{s,T}``, which has no lower bound. The correct order is
``min_T`` of the saddle point in s and w, and T follows a low-regret update, the exponentiated gradient
``λ_ik ∝ λ_ik·exp(−g_ik)``. Step size 1 is safe because mixing loses information: ``D_φ(t(λ)‖t(λ')) ≤ KL(λ‖λ')``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from apexrank.graph import ConsensusRank
from apexrank.graph.agreement import Agreement, Choice, Consensus, Limits
from apexrank.graph.consensus import Method
from apexrank.parameters import names

Variant = Literal["double-loop", "single-loop"]
Solved = tuple[np.ndarray, np.ndarray, float]  # ranks, prices, and how far the ranks moved
STOP = 0.5  # factor of tol for a loop's own estimate: the final certificate is more accurate


@dataclass(eq=False, repr=False)
class LoopedConsensusRank(ConsensusRank):
    """Consensus rank with method "blend" by a loop of the dissertation, starting from the prior weights.

    Parameters
    ----------
    variant : {"double-loop", "single-loop"}
        Fig. 5.7 or Fig. 5.8. Other parameters as in :class:`apexrank.ConsensusRank`.

    Examples
    --------
    >>> layers = [(["ann", "bob", "cy"], ["bob", "ann", "ann"]), (["cy"], ["bob"])]
    >>> LoopedConsensusRank(variant="single-loop").fit(layers).ranking_.tolist()
    ['ann', 'bob', 'cy']
    """

    _parameter_constraints: ClassVar[dict] = ConsensusRank._parameter_constraints | {
        "method": [names(("blend",))],
        "divergence": [names(("kl", "squared"))],  # others may have more curvature than KL of the weights
        "variant": [names(Variant)],
    }

    method: Method = "blend"
    variant: Variant = field(default="double-loop", kw_only=True)

    def _first_weights(self, problem: Agreement, start: np.ndarray) -> np.ndarray:
        return problem.prior

    def _descend(self, *arguments: Any) -> Consensus:
        return LOOPS[self.variant](*arguments)


def double_loop(problem: Agreement, weights: np.ndarray, start: np.ndarray, limits: Limits) -> Consensus:
    """Solve for ranks and prices in an inner loop, then take one exponentiated step with all vertices."""

    def solved(weights: np.ndarray, w: np.ndarray, s: np.ndarray, gap: float) -> Solved:
        fine = 0.02 * max(min(gap, 1.0), limits.tol)
        choice = problem.at(weights, w, 0.1 * fine)
        return choice.ranks, problem.prices(choice, s, fine), 0.0

    return _loop(problem, weights, start, limits, solved)


def single_loop(problem: Agreement, weights: np.ndarray, start: np.ndarray, limits: Limits) -> Consensus:
    """Take one step of the ranks, one of the prices and one of the vertices per round, without an inner loop."""

    def stepped(weights: np.ndarray, w: np.ndarray, s: np.ndarray, gap: float) -> Solved:
        mixture = problem.mix(weights)
        moved = problem.step(mixture, w)
        now = Choice(weights, mixture, moved, np.inf, problem.costs(weights, mixture), np.nan)
        s = problem.prices(now, s, np.inf)  # one step
        return moved, s - (problem.teleport * s).sum(), float(np.abs(moved - w).sum())

    return _loop(problem, weights, start, limits, stepped)


def _loop(
    problem: Agreement, weights: np.ndarray, w: np.ndarray, limits: Limits, solve: Callable[..., Solved]
) -> Consensus:
    """Alternate updates of ranks and prices with exponentiated steps of the weights until the gap is small."""
    s, history = np.zeros(problem.n), list[float]()
    for _ in range(limits.max_iter):
        w, s, moved = solve(weights, w, s, history[-1] if history else 0.1)
        gap, weights = _exponentiated(problem, weights, w, s)
        history.append(max(gap, moved))
        limits.progress(len(history), history[-1])
        if history[-1] <= STOP * limits.tol:
            break
    choice = problem.at(weights, w, 1e-3 * limits.tol)
    prices = problem.prices(choice, s, 0.02 * limits.tol)
    better = problem.improvement(choice, prices, 0.01 * limits.tol)
    return Consensus(choice, better.gap, better.gaps, better.gap <= limits.tol, [choice.value], history)


def _exponentiated(
    problem: Agreement, weights: np.ndarray, w: np.ndarray, s: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the first-order gap of the weights and the weights after the next step."""
    g = problem.gradients(weights, s)
    above = g - problem.of_vertices(problem.least(g))
    gap = float((problem.of_vertices(w) * weights * above).sum())
    return gap, problem.onto_simplices(weights * np.exp(-above))


LOOPS = {"double-loop": double_loop, "single-loop": single_loop}
