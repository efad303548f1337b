"""Synthetic data of the consensus experiments: graphs with known truth, and views of them with noise and junk.

The dissertation (Acharyya 2013, chapter 5) has no experiments. The graphs have a few hundred vertices, so matrices are
dense, with 1 where i links to j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from apexrank.graph import Layers, as_layers

DAMPING = 0.85
WIDE = 40  # random targets of a vertex in a layer of wide junk
NETWORKS = ("work", "friends", "music")
HOME = {"engineer": "work", "musician": "music"}
SAME = 3  # targets of all vertices in a layer of concentrated junk


class Truth(NamedTuple):
    """A graph, the popularity from which its links were drawn, and its communities."""

    links: np.ndarray
    popularity: np.ndarray
    community: np.ndarray


def true_graph(n: int, rng: np.random.Generator, *, degree: float = 8.0, communities: int = 5) -> Truth:
    """Draw a graph with communities: 7 of 10 links stay inside, and targets are drawn by heavy-tailed popularity.

    Popularity is ``0.3 + x``, ``P(x > t) = (1 + t)^-1.5``; out-degrees are 1 + Poisson. There are no self-loops.

    Examples
    --------
    >>> truth = true_graph(100, np.random.default_rng(0))
    >>> truth.links.shape, float(truth.links.diagonal().sum()), bool(truth.links.sum(axis=1).min() >= 1)
    ((100, 100), 0.0, True)
    """
    popularity, community = 0.3 + rng.pareto(1.5, n), rng.integers(0, communities, n)
    degrees = np.minimum(1 + rng.poisson(degree - 1, n), n // 4)
    links = np.zeros((n, n))
    for i, size in enumerate(degrees):
        links[i, rng.choice(n, size, replace=False, p=chances(popularity, community, i))] = 1.0
    return Truth(links, popularity, community)


def chances(popularity: np.ndarray, community: np.ndarray, i: int) -> np.ndarray:
    """Return the probability of each vertex to be the target of a link of vertex i."""
    inside = community == community[i]
    found = np.zeros(len(popularity))
    for part, share in ((inside, 0.7), (~inside, 0.3)):
        weight = np.where(part, popularity, 0.0)
        weight[i] = 0.0
        if weight.any():
            found += share * weight / weight.sum()
    return found / found.sum()


def noisy(links: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    """Return a view of a graph with a share ``level`` of wrong links: half are missing, half have random targets.

    Examples
    --------
    >>> links = true_graph(100, np.random.default_rng(0)).links
    >>> view = noisy(links, 0.4, np.random.default_rng(1))
    >>> round(float((links * view).sum() / links.sum()), 1)
    0.6
    """
    draw = rng.random(links.shape)
    view = links * (draw >= level)
    sources = np.nonzero((links > 0) & (draw < level / 2))[0]
    view[sources, rng.integers(0, len(links), len(sources))] = 1.0
    np.fill_diagonal(view, 0.0)
    return view


def even_junk(links: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Link every vertex to all others."""
    return 1.0 - np.eye(len(links))


def wide_junk(links: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Link every vertex to `WIDE` random ones."""
    return random_rows(np.full(len(links), min(WIDE, len(links) - 1)), rng)


def random_junk(links: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Link every vertex to as many random ones as it has true links."""
    return random_rows(links.sum(axis=1).astype(int), rng)


def narrow_junk(links: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Link every vertex to 2 random ones."""
    return random_rows(np.full(len(links), 2), rng)


def same_junk(links: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Link all vertices to the same `SAME` random ones."""
    junk = np.zeros_like(links)
    junk[:, rng.choice(len(links), SAME, replace=False)] = 1.0
    return junk


def random_rows(degrees: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw links from every vertex to random others, as many as its degree."""
    n = len(degrees)
    order = rng.random((n, n))
    np.fill_diagonal(order, 2.0)  # last
    places = order.argsort(axis=1).argsort(axis=1)
    return (places < degrees[:, None]).astype(float)


Junk = Callable[[np.ndarray, np.random.Generator], np.ndarray]
Views = Callable[[np.ndarray, np.random.Generator], list[np.ndarray]]


def noisy_views(level: float, count: int) -> Views:
    """Make all layers noisy views."""
    return lambda links, rng: [noisy(links, level, rng) for _ in range(count)]


def junk_layers(junk: Junk, *, good: int = 3, bad: int = 2, colluding: bool = False) -> Views:
    """Make some layers views with 30 % noise and the others junk for all vertices, identical if they collude."""

    def views(links: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        first = [noisy(links, 0.3, rng) for _ in range(good)]
        drawn = [junk(links, rng) for _ in range(1 if colluding else bad)]
        return first + (drawn * bad if colluding else drawn)

    return views


def junk_rows(junk: Junk, *, share: float = 0.4, count: int = 5) -> Views:
    """Give a different share of the vertices junk in each layer, and the others 30 % noise."""

    def view(links: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        bad = rng.random(len(links)) < share
        return np.where(bad[:, None], junk(links, rng), noisy(links, 0.3, rng))

    return lambda links, rng: [view(links, rng) for _ in range(count)]


def topic_layers(junk: Junk, *, count: int = 4) -> Views:
    """Assign each vertex to one layer, where it has 30 % noise, and give it junk in all others."""

    def views(links: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        own = rng.integers(0, count, len(links))[:, None] == np.arange(count)
        return [np.where(mine[:, None], noisy(links, 0.3, rng), junk(links, rng)) for mine in own.T]

    return views


def common_top(ranks: np.ndarray, truth: np.ndarray, k: int) -> float:
    """Return the share of the top k items by one list of scores that are in the top k by another.

    Examples
    --------
    >>> common_top(np.array([0.5, 0.3, 0.2]), np.array([0.5, 0.2, 0.3]), 2)
    0.5
    """
    first, second = (set(np.argsort(-each, kind="stable")[:k].tolist()) for each in (ranks, truth))
    return len(first & second) / k


def layers_of(views: Sequence[np.ndarray]) -> Layers:
    """Convert the views to layers."""
    return as_layers([csr_array(view) for view in views])


def shares(links: np.ndarray) -> np.ndarray:
    """Divide rows by their sums; rows without links stay 0."""
    sums = links.sum(axis=1, keepdims=True)
    return np.divide(links, sums, out=np.zeros_like(links), where=sums > 0)


def pagerank(transitions: np.ndarray) -> np.ndarray:
    """Solve for the PageRank of rows that sum to 1, or to 0 if their rank goes to the teleport.

    Examples
    --------
    >>> pagerank(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [0.5, 0.5]
    """
    n = len(transitions)
    walk = np.where(transitions.sum(axis=1, keepdims=True) > 0, transitions, 1 / n)
    found = np.linalg.solve(np.eye(n) - DAMPING * walk.T, np.full(n, (1 - DAMPING) / n))
    return found / found.sum()


class People(NamedTuple):
    """Names, roles, links in each network, and the true ranks: the PageRank of the professional links."""

    names: list[str]
    roles: list[str]
    networks: dict[str, np.ndarray]
    truth: np.ndarray

    def contacts(self, network: str) -> tuple[list[str], list[str]]:
        """Return the links of a network as pairs of names."""
        sources, targets = np.nonzero(self.networks[network])
        return [self.names[i] for i in sources], [self.names[j] for j in targets]


def draw_people(engineers: int, musicians: int, rng: np.random.Generator) -> People:
    """Draw engineers linked at work, musicians linked in music, and random friendships among most of both.

    A third of the musicians are also at work and a quarter of the engineers in music, with two casual links each; a
    fifth of all people are missing from the network of friends.

    Examples
    --------
    >>> people = draw_people(6, 4, np.random.default_rng(0))
    >>> people.names[0], people.roles[-1], sorted(people.networks)
    ('engineer 1', 'musician', ['friends', 'music', 'work'])
    """
    roles = ["engineer"] * engineers + ["musician"] * musicians
    names = [f"engineer {i + 1}" for i in range(engineers)] + [f"musician {i + 1}" for i in range(musicians)]
    n, role = len(names), np.array(roles)
    popularity, chance = 0.3 + rng.pareto(1.5, n), {"engineer": 1 / 4, "musician": 1 / 3}
    true = np.zeros((n, n))
    links = {network: np.zeros((n, n)) for network in NETWORKS}
    for i in range(n):
        same = np.where(role == role[i], popularity, 0.0)
        same[i] = 0.0
        others = np.delete(np.arange(n), i)
        true[i, rng.choice(n, min(5, int(np.count_nonzero(same))), replace=False, p=same / same.sum())] = 1.0
        home = HOME[roles[i]]
        links[home][i] = noisy(true[i : i + 1].repeat(n, axis=0), 0.2, rng)[i]
        away = "music" if home == "work" else "work"
        if rng.random() < chance[roles[i]]:
            links[away][i, rng.choice(others, 2, replace=False)] = 1.0
        if rng.random() < 0.8:
            links["friends"][i, rng.choice(others, min(12, n - 1), replace=False)] = 1.0
    return People(names, roles, links, pagerank(shares(true)))


def corroborated(
    views: Sequence[np.ndarray], *, normalised: bool = True, tol: float = 1e-5, max_iter: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """Compute ``ConsensusRank("corroborate")`` with dense matrices: ranks and layer weights (vertices x layers).

    With ``t̂_ik = α t_i^k + (1 − α)s``, s the teleport, and the recommendations of vertex i in its other layers,
    ``r_ik = α Σ_{l≠k} λ_il t_i^l / Σ_{l≠k} λ_il + (1 − α)w``, the weights are
    ``λ_ik ∝ exp(<t̂_ik, log(r_ik/s)> / 0.3 D(t̂_ik‖s))``: how much better the other layers predict the layer than
    the teleport does, relative to the information in the layer. If not ``normalised`` they are
    ``∝ exp(<t̂_ik, log(r_ik/s)>)``, which the estimator does not offer. w is the PageRank of the mixture. Each step
    goes half of the way.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> links = true_graph(60, rng).links
    >>> ranks, weights = corroborated([noisy(links, 0.1, rng), noisy(links, 0.1, rng), random_junk(links, rng)])
    >>> bool(weights.mean(axis=0)[2] < 0.1)
    True
    """
    layers = np.stack([shares(view) for view in views])
    n, opinion = layers.shape[1], layers.any(axis=2)
    hats = DAMPING * layers + (1 - DAMPING) / n
    scale = 0.3 * np.maximum((hats * np.log(n * hats)).sum(axis=2), 0.01) if normalised else 1.0
    weights = opinion / np.maximum(opinion.sum(axis=0), 1)
    for _ in range(max_iter):
        mix = np.einsum("ki,kij->ij", weights, layers)
        references = np.stack(list(_elsewhere(layers, weights, mix, pagerank(mix))))
        exponents = np.where(opinion, (hats * np.log(n * references)).sum(axis=2) / scale, -np.inf)
        top = np.where(opinion.any(axis=0), exponents.max(axis=0), 0.0)
        chosen = np.exp(exponents - top)
        change = 0.5 * (chosen / np.maximum(chosen.sum(axis=0), 1.0) - weights)
        weights = weights + change
        if np.abs(change).max() <= tol:
            break
    return pagerank(np.einsum("ki,kij->ij", weights, layers)), weights.T


def _elsewhere(
    layers: np.ndarray, weights: np.ndarray, mix: np.ndarray, w: np.ndarray
) -> Iterator[np.ndarray]:
    """Return the r_ik of each layer k: only w if a vertex has no other layer."""
    for layer, mine in zip(layers, weights, strict=True):
        spoken = (weights.sum(axis=0) - mine)[:, None]
        others = np.maximum(mix - mine[:, None] * layer, 0.0)
        heard = spoken > 1e-9
        seen = np.divide(others, spoken, out=np.zeros_like(others), where=heard)
        yield DAMPING * seen + np.where(heard, 1 - DAMPING, 1.0) * w
