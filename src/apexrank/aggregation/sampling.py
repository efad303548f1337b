"""Scores drawn from the Lovász–Mallows density over the box: exactly where the states can be listed, else by a chain.

As a threshold falls from 1 to 0, the set of items with scores above it grows from ∅ to V, and ``d(x‖σ)`` is the time
integral of D(S). So the density is that of a jump process on sets with the matrix M of
:mod:`apexrank.aggregation.normaliser`, from ∅ at time 0 to V at time 1. With ``P = I + M/λ``, which has no negative
entry for λ ≥ θ·max D,

    exp(M) = Σ_k e^{−λ}λ^k/k! · P^k:

draw the number of events k, a path of k steps of P, and k uniform times. No order needs to be listed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from apexrank.aggregation.divergence import LovaszBregman
from apexrank.aggregation.normaliser import Lattice, size_gains
from apexrank.errors import InputError
from apexrank.kernels.mallows import draw_levels, gibbs_sweeps, uniformised_powers

MAX_CELLS = 2**24  # states times events: 128 MiB
CHAINS = 32


def generator(random_state: Any) -> np.random.Generator:
    """A generator from a seed, None, a Generator or a RandomState.

    Examples
    --------
    >>> generator(0).integers(10) == np.random.default_rng(0).integers(10)
    np.True_
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def _most_events(theta: float, lattice: Lattice) -> tuple[float, int]:
    """The rate λ, and a number of events beyond which a share of less than e⁻⁴⁰ of Z lies.

    The k-th term is at most ``e^n`` times the Poisson probability with mean λ + n, and Z is at least 1/n!.
    """
    n = int(lattice.counts.sum())
    rate = theta * float(lattice.cost.max()) + n
    tail = 40.0 + n + float(gammaln(n + 1))
    return rate, math.ceil(rate + n + math.sqrt(2.0 * (rate + n) * tail) + tail)


def can_draw_exactly(theta: float, lattice: Lattice) -> bool:
    """Whether the exact draws' table is small enough."""
    return len(lattice.cost) * (_most_events(theta, lattice)[1] + 1) <= MAX_CELLS


def exact_scores(
    lattice: Lattice, theta: float, order: np.ndarray, n_samples: int, rng: np.random.Generator
) -> np.ndarray:
    """Independent draws from ``exp(−θ·d(x‖σ))/Z`` over [0, 1]ⁿ.

    Examples
    --------
    >>> lattice = Lattice.of_gains(np.array([1.0, 0.5, 0.25]))
    >>> draws = exact_scores(lattice, 1e3, np.array([2, 0, 1]), 4, np.random.default_rng(0))
    >>> np.argsort(-draws, axis=1).tolist()
    [[2, 0, 1], [2, 0, 1], [2, 0, 1], [2, 0, 1]]
    """
    rate, most = _most_events(theta, lattice)
    table = (lattice.cost, lattice.counts, lattice.strides)
    powers = uniformised_powers(theta, rate, *table, most)
    events = np.arange(most + 1)
    with np.errstate(divide="ignore"):  # fewer events than items cannot do
        logs = events * math.log(rate) - gammaln(events + 1) + np.log(powers[0])
    lengths = rng.choice(most + 1, size=n_samples, p=np.exp(logs - logsumexp(logs)))
    kinds, levels = draw_levels(theta, rate, *table, powers, lengths, rng)
    scores = np.empty((n_samples, len(order)))
    for kind, ranks in enumerate(lattice.ranks):  # items of one kind are alike: any of them joins next
        own = levels[kinds == kind].reshape(n_samples, len(ranks))
        scores[:, order[ranks]] = rng.permuted(own, axis=1)
    return scores


def chain_scores(
    divergence: LovaszBregman,
    theta: float,
    order: np.ndarray,
    n_samples: int,
    rng: np.random.Generator,
    *,
    burn_in: int | None = None,
    thin: int | None = None,
) -> np.ndarray:
    """Draws from up to 32 Markov chains, which start as uniform scores in the order σ.

    Gibbs sweeps where f is a function of the size of a set, else Metropolis sweeps with uniform proposals for one score
    at a time. ``burn_in`` (10·n) and ``thin`` (n) count sweeps over all items.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> chain_scores(LovaszBregman("sqrt"), 5.0, np.arange(30), 3, rng).shape
    (3, 30)
    """
    n = len(order)
    burn_in = 10 * n if burn_in is None else burn_in
    thin = n if thin is None else thin
    rows = min(n_samples, CHAINS)
    ranked = np.sort(rng.random((rows, n)), axis=1)[:, ::-1].copy()  # column j has rank j in σ
    gains = size_gains(divergence.f, n)
    found: list[np.ndarray] = []
    for sweeps in [burn_in, *[thin] * (math.ceil(n_samples / rows) - 1)]:
        if gains is not None:
            gibbs_sweeps(ranked, theta, gains, sweeps, rng)
        else:
            _metropolis_sweeps(ranked, divergence, theta, order, sweeps, rng)
        found.append(ranked.copy())
    scores = np.empty((n_samples, n))
    scores[:, order] = np.concatenate(found)[:n_samples]
    return scores


def _metropolis_sweeps(
    ranked: np.ndarray,
    divergence: LovaszBregman,
    theta: float,
    order: np.ndarray,
    sweeps: int,
    rng: np.random.Generator,
) -> None:
    """Sweeps in place, all chains at once; half of the proposals stay near the present score."""
    rows, n = ranked.shape
    rank = np.argsort(order)
    now = divergence.divergence(ranked[:, rank], order)
    for _ in range(sweeps * n):
        column = rng.integers(n)
        near = np.abs(ranked[:, column] + (rng.random(rows) - 0.5) * (2.0 / n))
        near = np.where(near > 1.0, 2.0 - near, near)  # reflected at both ends, which keeps it symmetric
        proposed = ranked.copy()
        proposed[:, column] = near if rng.random() < 0.5 else rng.random(rows)
        then = divergence.divergence(proposed[:, rank], order)
        accept = np.log(rng.random(rows)) < theta * (now - then)
        ranked[accept] = proposed[accept]
        now = np.where(accept, then, now)


def draw_scores(
    divergence: LovaszBregman,
    lattice: Lattice | None,
    theta: float,
    order: np.ndarray,
    n_samples: int,
    rng: np.random.Generator,
    method: str = "auto",
) -> np.ndarray:
    """Scores by the method named: "exact", "chain", or "auto", which is exact wherever that fits in memory."""
    if method not in ("auto", "exact", "chain"):
        raise InputError(f"unknown method {method!r}: use auto, exact or chain")
    exact = lattice is not None and can_draw_exactly(theta, lattice)
    if method == "exact" and not exact:
        raise InputError(
            f"exact draws of {len(order)} items at theta = {theta:g} need too large a table: use method='chain'"
        )
    if lattice is not None and exact and method != "chain":
        return exact_scores(lattice, theta, order, n_samples, rng)
    return chain_scores(divergence, theta, order, n_samples, rng)
