"""A crawl with planted link farms and a random sample of labels: what ``linkfarm`` and ``spam-labels`` both need.

The dissertation's crawl (Acharyya 2013, sec. 6.4.2) with its human labels is not public. Here the crawl is cnr-2000
where ``$APEXRANK_DATA`` has it, or a made-up one, and the spam is planted: farms of boosters that link to their target,
which links back (`apexrank.datasets.crawl.plant_farms`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from apexrank.datasets.crawl import make_crawl, plant_farms
from apexrank.datasets.networks import load_cnr_2000
from apexrank.datasets.sources import data_path
from apexrank.errors import InputError
from apexrank.graph import Graph, as_graph, spread
from apexrank.graph.trust import trust_share

CRAWLS = ("auto", "cnr-2000", "synthetic")
RATIO = 1.2  # q/p, the dissertation's choice from Figure 6.6
DAMPING, GAMMA, NEUTRAL = 0.85, 0.85, 0.5
TOL = 1e-7  # on the L1 distance to the answer


class Farmed(NamedTuple):
    """A crawl with farms in it.

    ``links`` counts those of the crawl alone, ``cycles`` are the vertices that `closed_cycles` finds, ``hijacked`` is
    the number of honest pages that link to each target.
    """

    crawl: str
    links: int
    boosters: int
    hijacked: int
    graph: Graph
    spam: np.ndarray
    targets: np.ndarray
    cycles: np.ndarray

    @property
    def name(self) -> str:
        """The crawl and its farms in words."""
        size = f"{(~self.spam).sum():,} vertices, {self.links:,} links"
        words = f"{self.crawl} ({size}) with {len(self.targets)} farms of {self.boosters} boosters"
        return f"{words}, {self.hijacked} honest pages linking to each target" if self.hijacked else words


def farmed_crawl(
    crawl: str,
    n: int,
    farms: int,
    boosters: int,
    hijacked: int,
    random_state: int,
    spam_share: float | None = None,
) -> Farmed:
    """The crawl by name, with ``farms`` farms, or with so many that ``spam_share`` of all vertices are spam.

    Examples
    --------
    >>> farmed_crawl("synthetic", 200, 2, 5, 0, random_state=0).name
    'a made-up crawl (200 vertices, 2,000 links) with 2 farms of 5 boosters'
    """
    name, adjacency = _crawl(crawl, n, random_state)
    if spam_share is not None:
        farms = max(1, round(spam_share / (1 - spam_share) * adjacency.shape[0] / (boosters + 1)))
    planted = plant_farms(
        adjacency, farms=farms, boosters=boosters, hijacked=hijacked, random_state=random_state
    )
    graph = as_graph(planted.adjacency)
    cycles = closed_cycles(graph)
    return Farmed(
        name, adjacency.nnz, boosters, hijacked, graph, planted.spam, planted.target_vertices, cycles
    )


def _crawl(crawl: str, n: int, random_state: int) -> tuple[str, csr_array]:
    if crawl not in CRAWLS:
        raise InputError(f"crawl must be one of {', '.join(CRAWLS)}, got {crawl!r}")
    there = data_path("graphs", "cnr-2000.csr.npz") is not None
    if crawl == "cnr-2000" or (crawl == "auto" and there):
        return "cnr-2000", load_cnr_2000().adjacency
    made = make_crawl(n, mean_degree=min(10.0, n / 20), random_state=random_state)
    return "a made-up crawl", made.adjacency


def closed_cycles(graph: Graph) -> np.ndarray:
    """Vertices whose only link leads to themselves, or round a cycle of vertices with one link each.

    What they hold comes back undivided, so that with q = p rank gathers there.

    Examples
    --------
    >>> closed_cycles(Graph.from_edges([0, 1, 2, 3, 4, 4], [0, 2, 1, 2, 4, 0])).tolist()
    [0, 1, 2]
    """
    out = graph.reversed()
    single = np.diff(out.indptr) == 1
    ahead = np.full(graph.n, -1, dtype=np.int64)
    ahead[single] = out.indices[out.indptr[:-1][single]]
    # each round looks twice as far ahead, until all are on a cycle or lost
    for _ in range(int(graph.n).bit_length()):
        ahead = np.where(ahead >= 0, ahead[ahead], -1)
    return np.unique(ahead[ahead >= 0])


def labelled_sample(
    spam: np.ndarray, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Honest and spam vertices, as masks, of a random sample of all.

    Examples
    --------
    >>> spam = np.array([True, False] * 50)
    >>> trusted, distrusted = labelled_sample(spam, 0.1, np.random.default_rng(0))
    >>> int((trusted | distrusted).sum()), bool((trusted & spam).any())
    (10, False)
    """
    if not 0 < share < 1:
        raise InputError(f"labels are shares of all vertices, above 0 and below 1, got {share!r}")
    known = np.zeros(len(spam), dtype=bool)
    known[rng.choice(len(spam), max(1, round(share * len(spam))), replace=False)] = True
    trusted, distrusted = known & ~spam, known & spam
    if not (trusted.any() and distrusted.any()):
        raise InputError(
            f"{share:.3g} of {len(spam)} vertices drawn at random are all of one kind: take more labels"
        )
    return trusted, distrusted


class Spread(NamedTuple):
    """Trust that has spread along the links, distrust against them and, as others have it, along them."""

    trust: np.ndarray
    against: np.ndarray
    along: np.ndarray


def spread_labels(graph: Graph, trusted: np.ndarray, distrusted: np.ndarray) -> Spread:
    """Spread both kinds of labels linearly (sec. 6.3, eq. 6.5).

    Examples
    --------
    >>> graph = Graph.from_edges([0, 1], [1, 2])
    >>> found = spread_labels(graph, np.array([True, False, False]), np.array([False, False, True]))
    >>> found.trust.round(4).tolist(), found.against.round(4).tolist()
    ([1.0, 0.85, 0.7225], [0.7225, 0.85, 1.0])
    """
    options: dict[str, Any] = {"gamma": GAMMA, "tol": TOL}
    bad = distrusted.astype(float)
    return Spread(
        spread(graph, trusted.astype(float), **options).scores,
        spread(graph, bad, direction="against", **options).scores,
        spread(graph, bad, direction="along", **options).scores,
    )


def weighed(ranks: np.ndarray, trust: np.ndarray, distrust: np.ndarray) -> np.ndarray:
    """``r·x₊/(x₊ + x₋)``, normalised: the final score of sec. 6.3.

    Examples
    --------
    >>> weighed(np.array([0.5, 0.5]), np.array([1.0, 1.0]), np.array([0.0, 3.0])).tolist()
    [0.8, 0.2]
    """
    scores = ranks * trust_share(trust, distrust, NEUTRAL)
    return scores / (scores.sum() or 1.0)
