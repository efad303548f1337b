"""Numerical checks of the propositions of chapter 5 (Acharyya 2013), each on its own random problems.

Rows of T are the recommendations t̂_i with their teleport. ``c = (1 − β)/β`` weighs the penalty of secs. 5.2 and 5.3,
``ρ_*(w) = wT`` is the unconstrained minimiser (5.7), and ``D`` a divergence of :mod:`apexrank.divergences`. The notes
on the papers explain the errors and give corrected statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import logsumexp, softmax, xlogy

from apexrank.divergences import KL, Divergence, Squared
from apexrank.errors import InputError
from apexrank_papers.consensus.data import DAMPING
from apexrank_papers.result import Result, Verdict, claim

SIZE = 8
ROUNDS = (100, 1000, 10_000)  # rounds of the game
LARGER = 2.0  # bound on the prices, in units of the smallest bound that gives PageRank


def recommendations(n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the rows of a random walk with a teleport; no entry is below (1 − α)/n."""
    return DAMPING * rng.dirichlet(np.full(n, 0.5), size=n) + (1 - DAMPING) / n


def stationary(T: np.ndarray) -> np.ndarray:
    """Solve ``w = wT`` for the w that sums to 1."""
    n = len(T)
    return np.linalg.solve(np.eye(n) - T.T + np.ones((n, n)), np.ones(n))


def affine_gap(atom: Divergence, x: np.ndarray, weights: np.ndarray, y: np.ndarray) -> float:
    """Compute ``Σ_i w_i D(x_i‖y)`` minus its value at the affine centre minus ``Σw·D(centre‖y)``, 0 by (C.8).

    Examples
    --------
    >>> x = np.array([[0.2, 0.8], [0.5, 0.5], [0.4, 0.6]])
    >>> abs(affine_gap(KL(), x, np.array([2.0, -0.5, 1.0]), np.array([0.3, 0.7]))) < 1e-14
    True
    """
    total = weights.sum()
    centre = weights @ x / total
    least = weights @ atom.divergence(x, centre)
    return float(weights @ atom.divergence(x, y) - least - total * atom.divergence(centre, y))


def bounded_weights(rho: np.ndarray, d: np.ndarray, c: float, least: float) -> np.ndarray:
    """Minimise ``<w, d> + c·KL(w‖ρ)`` over distributions with ``w_i ≥ least`` (5.15).

    The solution is ``max(least, κ·ρ_i·exp(−d_i/c))``. The multipliers that (5.16) leaves to a numerical search are one
    number κ, which a sort finds.

    Examples
    --------
    >>> bounded_weights(np.array([0.5, 0.5]), np.array([0.0, 9.0]), 1.0, 0.1).round(3).tolist()
    [0.9, 0.1]
    """
    if not 0 <= least * len(rho) <= 1:
        raise InputError(f"`least` must be from 0 to 1/{len(rho)}, got {least!r}")
    free = softmax(np.log(rho) - d / c)
    order = np.argsort(free)
    for held in range(len(rho)):  # the smallest entries are at the bound
        kappa = (1 - held * least) / free[order[held:]].sum()
        if kappa * free[order[held]] >= least:
            break
    return np.maximum(least, kappa * free)


def surrogate(atom: Divergence, T: np.ndarray, rho: np.ndarray, c: float) -> tuple[float, float, np.ndarray]:
    """Return ``F(ρ, ρ)``, ``J(ρ) = min_w <w, d> + c·D(w‖ρ)`` of (5.20), and d, for KL or half the squared distance."""
    d = atom.divergence(T, rho)
    if isinstance(atom, KL):
        return float(rho @ d), float(-c * logsumexp(-d / c, b=rho)), d
    w = rho - (d - d.mean()) / c  # on Σw = 1, where (5.17) has no other constraint
    return float(rho @ d), float(w @ d + c * atom.divergence(w, rho)), d


class Game(NamedTuple):
    """State of the game of sec. 5.3.2 after some rounds: bounds on its value, regret, and the average ranks."""

    upper: float
    lower: float
    between: float
    regret: float
    ranks: np.ndarray


def play(T: np.ndarray, radius: float, rounds: tuple[int, ...]) -> dict[int, Game]:
    """Play the game of Theorem 12: prices s are the best response in a ball, weights w follow the leader (5.29–5.33).

    ``M(s, w) = <w, φ(t)> − φ(w) − <s, wT − w>`` with φ(t) = Σ t log t. Both responses have closed forms.
    """
    phi = xlogy(T, T).sum(axis=1)

    def value(s: np.ndarray, w: np.ndarray) -> float:
        return float(w @ phi - xlogy(w, w).sum() - s @ (w @ T - w))

    n = len(T)
    w, ranks, prices, total, found = np.full(n, 1 / n), np.zeros(n), np.zeros(n), 0.0, {}
    for t in range(1, max(rounds) + 1):
        rest = w @ T - w
        s = radius * rest / max(float(np.linalg.norm(rest)), 1e-300)
        total += value(s, w)
        ranks, prices = ranks + (w - ranks) / t, prices + (s - prices) / t
        if t in rounds:
            upper = float(logsumexp(phi + prices - T @ prices))
            away = float(np.linalg.norm(ranks @ T - ranks))
            lower = value(np.zeros(n), ranks) - radius * away
            found[t] = Game(upper, lower, value(prices, ranks), t * upper - total, ranks)
        w = softmax(phi + prices - T @ prices)
    return found


def saddle(T: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the value of the game, which is V of one layer, and the shortest prices that attain it."""
    w, phi = stationary(T), xlogy(T, T).sum(axis=1)
    cost = float(w @ phi - xlogy(w, w).sum())
    s = np.linalg.lstsq(np.eye(len(T)) - T, np.log(w) - phi + cost, rcond=None)[0]
    return cost, s - s.mean()


def consensus_theorems(*, draws: int = 200, random_state: int = 0) -> Result:
    """Check Lemmas 18 and 19, Propositions 4, 6 and 7, Theorems 12 and 17 and Table 5.1 numerically.

    Parameters
    ----------
    draws : int
        Number of random problems for each check.
    random_state : int
        Seed.

    Examples
    --------
    >>> result = consensus_theorems(draws=5)
    >>> {verdict.word for verdict in result.verdicts} == {"agrees", "differs"}
    True
    """
    rng = np.random.default_rng(random_state)
    verdicts = [
        verdict
        for check in (_centres, _penalties, _surrogates, _distances, _games)
        for verdict in check(rng, draws)
    ]
    table = pl.DataFrame([verdict._asdict() for verdict in verdicts])
    return Result(table, table, verdicts, notes=[f"{draws} random problems of {SIZE} vertices for each row."])


def _centres(rng: np.random.Generator, draws: int) -> Iterator[Verdict]:
    worst, falls = 0.0, []
    for _ in range(draws):
        x, y = rng.dirichlet(np.ones(SIZE), size=4), rng.dirichlet(np.ones(SIZE))
        weights = np.array([3.0, *rng.uniform(-0.3, 0.3, 3)])
        if (weights @ x).min() > 0:
            worst = max(worst, *(abs(affine_gap(atom, x, weights, y)) for atom in (KL(), Squared())))
        weights -= weights.mean()
        fewest = np.argmax(weights @ x)
        ends = [np.where(np.arange(SIZE) == fewest, 1.0, share) for share in (1e-3, 1e-6)]
        falls.append(np.diff([weights @ KL().divergence(x, end / end.sum()) for end in ends])[0])
    yield claim(
        "Theorem 17, (C.3) and (C.4): the best second argument is the affine centre",
        worst < 1e-10,
        f"(C.8) holds to {worst:.0e} with negative weights among them",
    )
    yield claim(
        "Theorem 17, (C.7): with weights that sum to 0 there is a closed form",
        max(falls) >= 0,
        f"on the simplex the cost falls without end: by {-max(falls):.2g} or more from the share 1e-3 to 1e-6",
    )


def _penalties(rng: np.random.Generator, draws: int) -> Iterator[Verdict]:
    ratio, margin, relation, kl = 0.0, np.inf, 0.0, KL()
    for _ in range(draws):
        p, q, least = _floored(rng)
        ratio = max(ratio, float(kl.divergence(p, q) / kl.divergence(q, p)) * least / 2)
        for delta in (0.1, 0.5, 0.9, 0.99):
            c, near = (2 + delta / (1 - delta)) / least, p + (1 - delta) * (q - p)
            needed = float((kl.divergence(q, p) - kl.divergence(q, near)) / kl.divergence(p, near))
            margin = min(margin, c / needed)
        T, w, beta = recommendations(SIZE, rng), rng.dirichlet(np.ones(SIZE)), rng.uniform(0.01, 0.99)
        rho = beta * w @ T + (1 - beta) * w
        seen = np.linalg.norm(w @ T - rho) / np.linalg.norm(w - rho)
        relation = max(relation, float(abs(seen * beta / (1 - beta) - 1)))
    yield claim(
        "Lemma 18: KL(p‖q)/KL(q‖p) ≤ 2/ε", ratio <= 1, f"the ratio is at most {ratio:.2f} of the bound"
    )
    yield claim(
        "Lemma 19: (1 − β)/β ≥ (2 + δ/(1 − δ))/ε is enough",
        margin >= 1,
        f"{margin:.3g} times what is needed or more",
    )
    yield claim(
        "Proposition 4: w and ρ come as near as one likes",
        relation < 1e-9,
        f"at the minimum |ρ_*(w) − ρ|/|w − ρ| is (1 − β)/β itself, to {relation:.0e}",
    )


def _floored(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Draw two distributions with a common lower bound on their entries, which at least one entry attains."""
    n, least = int(rng.integers(2, 6)), float(rng.choice([0.01, 0.05, 0.15]))
    p, q = (least + (1 - n * least) * rng.dirichlet(np.full(n, rng.choice([0.1, 1.0]))) for _ in range(2))
    return p, q, float(min(p.min(), q.min()))


def _surrogates(rng: np.random.Generator, draws: int) -> Iterator[Verdict]:
    tight = printed = 0.0
    for _ in range(draws):
        T, c = recommendations(SIZE, rng), float(rng.choice([1, 10, 100]))
        rho = 1e-6 + (1 - SIZE * 1e-6) * rng.dirichlet(np.full(SIZE, 0.2))
        for atom in (KL(), Squared()):
            own, lower, d = surrogate(atom, T, rho, c)
            tight = max(tight, (own - lower) / (d @ d / (2 * c)))
            printed = max(printed, (own - lower) / (2 / c))  # the simplex has the diameter √2
    yield claim(
        "Proposition 6: 0 ≤ F(ρ, ρ) − J(ρ) ≤ |dom φ|²/(sc)",
        printed <= 1,
        f"up to {printed:.3g} times that bound, and at most {tight:.3g} of |d|²/(2sc), d_i = D(t_i‖ρ)",
    )


def _distances(rng: np.random.Generator, draws: int) -> Iterator[Verdict]:
    delta, atom, needed = 0.5, Squared(), 0.0
    for _ in range(draws):
        p, q = rng.dirichlet(np.ones(SIZE), size=2)
        near = p + (1 - delta) * (q - p)
        needed = float((atom.divergence(q, p) - atom.divergence(q, near)) / atom.divergence(p, near))
    yield claim(
        "Proposition 7: with (1 − β)/β ≥ L(1/s + δ/(1 − δ)) no point so far away costs less",
        needed <= 1 / (1 - delta) + 1e-9,
        f"squared distance, δ = {delta}: {1 / (1 - delta):.3g} by the formula, {needed:.3g} needed, (1 + δ)/(1 − δ)",
    )


def _games(rng: np.random.Generator, draws: int) -> Iterator[Verdict]:
    slack, growth, below, far, near = np.inf, [], 0.0, [], []
    for _ in range(max(2, draws // 40)):
        T = recommendations(SIZE, rng)
        cost, prices = saddle(T)
        radius = LARGER * float(np.linalg.norm(prices))
        games = play(T, radius, ROUNDS)
        slack = min(slack, *(game.regret / t - (game.upper - game.lower) for t, game in games.items()))
        growth.append([game.upper - game.lower for game in games.values()])
        below = min(below, *(game.between - cost for game in games.values()))
        near.append(float(np.abs(games[ROUNDS[-1]].ranks - stationary(T)).sum()))
        short = play(T, 0.5 * radius / LARGER, ROUNDS)
        far.append(float(np.abs(short[ROUNDS[-1]].ranks - stationary(T)).sum()))
    gaps = np.array(growth)
    times = (gaps[:, :-1] / gaps[:, 1:]).min()
    told = ", ".join(f"{gap:.1e}" for gap in gaps.mean(axis=0))
    yield claim(
        "Theorem 12: the averages are within C(τ)/τ, C(τ) = O(log τ)",
        slack > -1e-9 and times > 5,
        f"gap {told} after {', '.join(map(str, ROUNDS))} rounds, never above regret/τ",
    )
    yield claim(
        "Theorem 12: the value is at most M at the averages",
        below > -1e-12,
        f"M is up to {-below:.1e} below it",
    )
    yield claim(
        "Proposition 8: the saddle point is PageRank",
        max(near) < 0.01,
        f"L1 distance {max(near):.1e} where the bound 1/ε is {LARGER:g} times the prices needed; {min(far):.2f} and "
        "more where it is half of them",
    )
    yield claim(
        "Table 5.1: the saddle point takes logarithmically many iterations",
        times > 100,
        f"ten times the rounds divide the gap by {times:.3g} or more, not by a power of what is left",
    )
