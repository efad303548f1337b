"""Graphs with spam and random samples of labels, shared by the spam experiments.

The dissertation's crawl (Acharyya 2013, sec. 6.4.2) with its human labels is not public. Here the spam is planted:
farms of boosters that link to their target, which links back (`apexrank.datasets.crawl.plant_farms`), in cnr-2000
if it is in ``$APEXRANK_DATA``, or else in a synthetic crawl. A folder of WEBSPAM-UK has hosts with human judgements.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from apexrank.datasets.crawl import make_crawl, plant_farms
from apexrank.errors import InputError
from apexrank.graph import Graph, as_graph
from apexrank.graph.neighbourhood import on_closed_cycle
from apexrank_papers.data.networks import load_cnr_2000
from apexrank_papers.data.sources import data_path
from apexrank_papers.data.webspam import load_webspam

USUAL = "cnr-2000"  # the crawl of the recorded verdicts
CRAWLS = ("auto", USUAL, "synthetic")
RATIO = 1.2  # q/p, the dissertation's choice from Figure 6.6
DAMPING, GAMMA, NEUTRAL = 0.85, 0.85, 0.5
TOL = 1e-7  # on the L1 distance to the solution


class Web(NamedTuple):
    """A graph with spam.

    ``judged`` are the vertices known to be spam or honest, ``targets`` those that the spam promotes, and ``cycles`` is
    a mask of the vertices on closed cycles.
    """

    name: str
    graph: Graph
    spam: np.ndarray
    judged: np.ndarray
    targets: np.ndarray
    cycles: np.ndarray


def farmed_crawl(
    data: str,
    n: int,
    farms: int,
    boosters: int,
    hijacked: int,
    random_state: int,
    *,
    spam_share: float | None = None,
    self_loops: str = "keep",
) -> Web:
    """Plant farms in a named crawl: ``farms`` of them, or enough that ``spam_share`` of all vertices are spam.

    Examples
    --------
    >>> farmed_crawl("synthetic", 200, 2, 5, 0, random_state=0).name
    'a synthetic crawl (200 vertices, 2,000 links) with 2 farms of 5 boosters'
    """
    if data not in CRAWLS:
        return webspam(data, self_loops)
    name, adjacency = _crawl(data, n, random_state)
    if spam_share is not None:
        farms = max(1, round(spam_share / (1 - spam_share) * adjacency.shape[0] / (boosters + 1)))
    planted = plant_farms(
        adjacency, farms=farms, boosters=boosters, hijacked=hijacked, random_state=random_state
    )
    size = f"{adjacency.shape[0]:,} vertices, {adjacency.nnz:,} links"
    boosted = f"{boosters} booster{'s' if boosters > 1 else ''}"
    words = f"{name} ({size}) with {farms} farms of {boosted}"
    words += f", {hijacked} honest pages linking to each target" if hijacked else ""
    graph = as_graph(planted.adjacency, self_loops=self_loops)
    everyone = np.ones(graph.n, dtype=bool)
    return Web(words, graph, planted.spam, everyone, planted.target_vertices, on_closed_cycle(graph))


def webspam(folder: str, self_loops: str = "keep") -> Web:
    """Read the hosts of a WEBSPAM-UK folder; all spam hosts are targets."""
    if not Path(folder).is_dir():
        raise InputError(
            f"`data` must be one of {', '.join(CRAWLS)} or a folder of WEBSPAM-UK, got {folder!r}"
        )
    hosts = load_webspam(folder)
    spam, judged = hosts.labels == 1, hosts.labels >= 0
    if not (spam.any() and (judged & ~spam).any()):
        raise InputError(f"{folder} needs hosts labelled spam and others nonspam: add the label files")
    graph = as_graph(hosts.adjacency, self_loops=self_loops)
    name = f"{Path(folder).name} ({graph.n:,} hosts, {hosts.adjacency.nnz:,} links)"
    return Web(name, graph, spam, judged, np.flatnonzero(spam), on_closed_cycle(graph))


def _crawl(crawl: str, n: int, random_state: int) -> tuple[str, csr_array]:
    there = data_path("graphs", "cnr-2000.csr.npz") is not None
    if crawl == USUAL or (crawl == "auto" and there):
        return USUAL, load_cnr_2000().adjacency
    made = make_crawl(n, mean_degree=min(10.0, n / 20), random_state=random_state)
    return "a synthetic crawl", made.adjacency


def labelled_sample(
    spam: np.ndarray, share: float, rng: np.random.Generator, judged: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Draw a random sample of the judged vertices, by default all, as masks of honest and of spam vertices.

    A sample with only one kind is redrawn.

    Examples
    --------
    >>> spam = np.array([True, False] * 50)
    >>> trusted, distrusted = labelled_sample(spam, 0.1, np.random.default_rng(0))
    >>> int((trusted | distrusted).sum()), bool((trusted & spam).any())
    (10, False)
    """
    if not 0 < share < 1:
        raise InputError(
            f"`labels` must be shares of the judged vertices, above 0 and below 1, got {share!r}"
        )
    pool = np.arange(len(spam)) if judged is None else np.flatnonzero(judged)
    for _ in range(100):
        known = np.zeros(len(spam), dtype=bool)
        known[pool[rng.choice(len(pool), max(1, round(share * len(pool))), replace=False)]] = True
        trusted, distrusted = known & ~spam, known & spam
        if trusted.any() and distrusted.any():
            return trusted, distrusted
    raise InputError(
        f"{share:.3g} of {len(pool)} vertices, drawn at random, are all of one kind: use more labels"
    )
