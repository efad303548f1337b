"""Small examples of Acharyya 2013, chapter 5: three reviewers, people in three networks, and BreW of one layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from apexrank.graph import ConsensusRank, Layers, PageRank, as_layers
from apexrank.metrics import kendall_tau
from apexrank_papers.consensus import data
from apexrank_papers.result import Result, Verdict, claim, question
from apexrank_papers.splits import check_repeated, mean_verdict, standard_error

AUTHORS = ("Alice", "Bob", "Carol")
OWN = "cites Bob"
# for each criterion and reviewer: marks for the papers of the three authors
REVIEWS: dict[str, dict[str, tuple[int, int, int]]] = {
    "novelty": {"Alice": (6, 2, 4), "Bob": (5, 4, 3), "Carol": (6, 2, 3)},
    "clarity": {"Alice": (5, 3, 4), "Bob": (4, 3, 4), "Carol": (4, 3, 5)},
    OWN: {"Bob": (1, 9, 1)},
}
EQUAL, CONSENSUS = "equal weights", "consensus"
WAYS: dict[str, dict[str, Any]] = {
    EQUAL: {"method": "mean"},
    CONSENSUS: {"method": "blend"},
    "consensus, pull 0.1": {"method": "blend", "pull": 0.1},
}
RESIDUAL = "residual of the identity"
BETAS = (0.1, 0.03, 0.01)


def review_layers() -> Layers:
    """Return the criteria as layers with links from reviewer to author, weighted by the mark.

    Examples
    --------
    >>> review_layers()
    Layers(3 vertices, 3 layers, 21 links)
    """
    return as_layers({criterion: _marks(given) for criterion, given in REVIEWS.items()})


def _marks(given: dict[str, tuple[int, int, int]]) -> tuple[list[str], list[str], list[int]]:
    reviewers = [reviewer for reviewer in given for _ in AUTHORS]
    return reviewers, list(AUTHORS) * len(given), [mark for marks in given.values() for mark in marks]


def consensus_reviewers() -> Result:
    """Rank three authors who mark all papers by several criteria; one of Bob's is how often a paper cites him.

    Examples
    --------
    >>> [verdict.word for verdict in consensus_reviewers().verdicts]
    ['yes', 'yes', 'yes']
    """
    layers = review_layers()
    found = {way: ConsensusRank(**options).fit(layers) for way, options in WAYS.items()}
    parts = []
    for way, rank in found.items():
        known: dict[str, Any] = {"way": way, "reviewer": list(map(str, rank.names_)), "rank": rank.scores_}
        known |= {f"weight of {name}": rank.layer_weights_[:, k] for k, name in enumerate(rank.layers_)}
        parts.append(pl.DataFrame(known | {"disagreement": rank.vertex_disagreement_}))
    table = pl.concat(parts)
    bob, own = AUTHORS.index("Bob"), list(REVIEWS).index(OWN)
    equal, chosen = found[EQUAL], found[CONSENSUS]
    weights = equal.layer_weights_[bob, own], chosen.layer_weights_[bob, own]
    verdicts = [
        claim(
            "Bob's own criterion loses its weight",
            bool(weights[1] < 0.01 < weights[0]),
            f"{weights[0]:.2f} with equal weights, {weights[1]:.2f} by consensus",
            question,
        ),
        claim(
            "Bob gains nothing from it",
            bool(chosen.scores_[bob] < equal.scores_[bob]),
            f"his rank is {equal.scores_[bob]:.3f} with equal weights, {chosen.scores_[bob]:.3f} by consensus",
            question,
        ),
        claim(
            "the reviewers agree better",
            chosen.disagreement_ < equal.disagreement_,
            f"disagreement {equal.disagreement_:.4f} nats with equal weights, {chosen.disagreement_:.4f} by consensus",
            question,
        ),
    ]
    notes = [
        "The dissertation has the example without marks; the marks are ours. A paper's rank is its author's weight as "
        "a reviewer.",
        "Without a pull, novelty loses nearly all its weight as well: clarity has more even marks, and even marks "
        "agree with everybody. A small pull keeps both.",
    ]
    return Result(table, table.with_columns(pl.col(pl.Float64).round(3)), verdicts, None, notes)


UNION, CORROBORATE = "union", "corroborate"
JOINED: dict[str, dict[str, Any]] = {
    UNION: {},
    EQUAL: {"method": "mean"},
    CONSENSUS: {"method": "blend"},
    "consensus, entropy 0, pull 1": {"method": "blend", "entropy": 0.0, "pull": 1.0},
    CORROBORATE: {"method": "corroborate"},
}


def consensus_networks(
    *, engineers: int = 24, musicians: int = 16, draws: int = 20, random_state: int = 0
) -> Result:
    """Rank people in three networks, not all of whom are in each network.

    Parameters
    ----------
    engineers, musicians : int
        Number of people of each role.
    draws : int
        Number of draws; the top people are those of the first.
    random_state : int
        First seed.

    Examples
    --------
    >>> consensus_networks(draws=2).table.columns[:4]
    ['way', 'top people', 'share of work', 'share of friends']
    """
    check_repeated("draws", draws)
    worlds = [
        data.draw_people(engineers, musicians, np.random.default_rng(random_state + s)) for s in range(draws)
    ]
    rows, taus = [], {}
    for way in JOINED:
        tops, shares, agreement = zip(*(_joined(world, way) for world in worlds), strict=True)
        taus[way] = np.array(agreement)
        named = zip(data.NETWORKS, np.mean(shares, axis=0), strict=True)
        row = {"way": way, "top people": ", ".join(tops[0])} | {f"share of {name}": x for name, x in named}
        rows.append(row | {"Kendall's τ": taus[way].mean(), "standard_error": standard_error(taus[way])})
    table = pl.DataFrame(rows)
    verdicts = [
        mean_verdict(
            f"{way}: nearer to the true order than {EQUAL}",
            gaps,
            "difference of Kendall's τ {}",
            judge=question,
        )
        for way, gaps in ((way, taus[way] - taus[EQUAL]) for way in JOINED if way != EQUAL)
    ]
    notes = [
        f"{engineers} engineers and {musicians} musicians, {draws} draws; top people of the first. The truth is "
        "the PageRank of the professional links, which are at work for engineers and in music for musicians; friends "
        "are random and many. Shares: of the links for the union, of the weights (by rank) for the others.",
        "People are matched by name; a person missing from a network has no opinion there.",
    ]
    return Result(table, table.with_columns(pl.col(pl.Float64).round(3)), verdicts, None, notes)


def _joined(people: data.People, way: str) -> tuple[list[str], np.ndarray, float]:
    """Return the top five people, the shares of the networks, and Kendall's τ with the truth."""
    layers = as_layers({network: people.contacts(network) for network in data.NETWORKS})
    rank: Any
    if way == UNION:
        rank = PageRank().fit(layers.union())
        links = np.array([graph.n_edges for graph in layers.graphs])
        shares = links / links.sum()
    else:
        rank = ConsensusRank(tol=1e-6, **JOINED[way]).fit(layers)
        shares = rank.layer_shares_
    by_name = dict(zip(rank.names_.tolist(), rank.scores_.tolist(), strict=True))
    scores = np.array([by_name[name] for name in people.names])
    return rank.ranking_[:5].tolist(), shares, float(kendall_tau(scores=(scores, people.truth)))


def consensus_brew(*, n: int = 30, degree: float = 5.0, draws: int = 4, random_state: int = 0) -> Result:
    """Compare BreW of one layer, where there is nothing to choose, with PageRank: it lowers its cost and moves away.

    Parameters
    ----------
    n, degree : int, float
        Number of vertices and mean out-degree of random graphs.
    draws : int
        Number of graphs.
    random_state : int
        First seed.

    Examples
    --------
    >>> consensus_brew(n=10, degree=3, draws=2).table.shape
    (6, 7)
    """
    check_repeated("draws", draws)
    rows = [
        {"draw": seed, "beta": beta} | _brewed(n, degree, beta, seed)
        for seed in range(random_state, random_state + draws)
        for beta in BETAS
    ]
    table = pl.DataFrame(rows)
    by_beta = table.group_by("beta", maintain_order=True).mean().drop("draw")
    verdicts = _brew_verdicts(table)
    notes = [
        f"{draws} random graphs of {n} vertices with {degree:g} links on average. Cost: Σ_i ρ_i D(t̂_i‖ρ), d_i = "
        "D(t̂_i‖ρ), of BreW's ranks ρ; stationarity |Tρ − ρ|₁. The table shows means over the graphs."
    ]
    return Result(table, by_beta.with_columns(pl.col(pl.Float64).round(4)), verdicts, None, notes)


def _brew_verdicts(table: pl.DataFrame) -> list[Verdict]:
    last, before = (table.filter(beta=beta) for beta in (BETAS[-1], BETAS[-2]))
    distance, left = last["L1 from PageRank"].to_numpy(), last[RESIDUAL].to_numpy()
    saved = (last["cost of PageRank"] - last["cost"]).to_numpy()
    order = np.log(before[RESIDUAL].to_numpy() / left) / np.log(BETAS[-2] / BETAS[-1])
    return [
        claim(
            "BreW of one layer is PageRank",
            bool(distance.max() < 0.01),
            f"L1 distance {distance.min():.2f} to {distance.max():.2f} at β = {BETAS[-1]:g}",
        ),
        claim(
            "its cost is below that of PageRank",
            bool((saved > 0).all()),
            f"by {saved.min():.2f} to {saved.max():.2f} nats at β = {BETAS[-1]:g}",
            question,
        ),
        claim(
            "Tw − w = w∘(d − <w, d>) as β → 0",
            bool((order > 0.9).all() and left.max() < 0.01),
            f"the two sides are {left.max():.4f} apart (L1) at β = {BETAS[-1]:g}, and between the last two β the gap "
            f"falls like β^{order.min():.2f} or faster",
            question,
        ),
    ]


def _brewed(n: int, degree: float, beta: float, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    shares = data.shares(data.random_rows(np.minimum(1 + rng.poisson(degree - 1, n), n - 1), rng))
    walk, plain = data.DAMPING * shares + (1 - data.DAMPING) / n, data.pagerank(shares)
    rank = ConsensusRank("brew", beta=beta, tol=1e-5 * beta, max_iter=100_000).fit([shares])
    w = rank.scores_

    def distances(ranks: np.ndarray) -> np.ndarray:
        return (walk * np.log(walk / ranks)).sum(axis=1)

    d, flow = distances(w), w @ walk - w
    return {
        "L1 from PageRank": float(np.abs(w - plain).sum()),
        "cost": float(w @ d),
        "cost of PageRank": float(plain @ distances(plain)),
        "stationarity": float(np.abs(flow).sum()),
        RESIDUAL: float(np.abs(flow - w * (d - w @ d)).sum()),
    }
