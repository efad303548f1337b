"""Detection of distrusted people in networks of ratings.

This experiment tests the claims of the dissertation (Acharyya 2013) about ranks and labels on signed networks in which
nobody farms links. In a folder of WEBSPAM-UK the distrusted vertices are the hosts that people have judged to be spam.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from apexrank.errors import InputError
from apexrank.graph import (
    AntiTrustRank,
    DemotedRank,
    Graph,
    InDegree,
    LpqRank,
    SignedGraph,
    TrustRank,
    as_graph,
)
from apexrank.metrics import auc
from apexrank.plot.style import COLOURS, light
from apexrank_papers.data.networks import load_bitcoin_otc, load_epinions
from apexrank_papers.graphs.farms import DAMPING, GAMMA, RATIO, TOL, labelled_sample, webspam
from apexrank_papers.result import Figure, Result, Verdict, panels, question, text_view, tidy
from apexrank_papers.splits import check_repeated, mean_verdict, spread

LOADERS: dict[str, Callable[[], Any]] = {"bitcoin-otc": load_bitcoin_otc, "epinions": load_epinions}
BASES = {"PageRank": (1.0, 1.0), "L_2,2.4": (2.0, RATIO)}  # p and q/p


class Judged(NamedTuple):
    """A signed network: links of trust and of distrust, rated vertices, and those with more distrust than trust."""

    positive: Graph
    negative: csr_array
    rated: np.ndarray
    distrusted: np.ndarray


def judged(ratings: csr_array) -> Judged:
    """Split a signed network; vertices with more negative than positive ratings are distrusted.

    Examples
    --------
    >>> found = judged(csr_array(np.array([[0, 5, -1], [0, 0, 2], [0, -3, 0]])))
    >>> found.rated.tolist(), found.distrusted.tolist()
    ([False, True, True], [False, False, False])
    """
    plus, minus = (csr_array(ratings.multiply(kept)) for kept in (ratings > 0, ratings < 0))
    good, bad = ((part != 0).sum(axis=0) for part in (plus, minus))
    return Judged(as_graph(plus.astype(float)), abs(minus).astype(float), good + bad > 0, bad > good)


def judged_hosts(folder: str) -> Judged:
    """Read the hosts of a WEBSPAM-UK folder: links are trust, spam is distrusted, there are no negative ratings."""
    web = webspam(folder)
    nothing = csr_array((web.graph.n, web.graph.n), dtype=float)
    return Judged(web.graph, nothing, web.judged, web.spam)


def trust(*, data: str = "both", labels: float = 0.1, repeats: int = 10, random_state: int = 0) -> Result:
    """Measure the AUC of "receives distrust": whether distrusted vertices score low.

    Parameters
    ----------
    data : {"both", "bitcoin-otc", "epinions"} or path
        Network from ``$APEXRANK_DATA``, or a folder of WEBSPAM-UK.
    labels : float
        Share of the rated vertices, drawn at random, with a known label.
    repeats : int
        Number of random draws, at least 2.
    random_state : int
        Seed of the draws.
    """
    check_repeated("repeats", repeats)
    if data in (*LOADERS, "both"):
        names = list(LOADERS) if data == "both" else [data]
        networks = {name: judged(LOADERS[name]().adjacency) for name in names}
    elif Path(data).is_dir():
        networks = {Path(data).name: judged_hosts(data)}
    else:
        raise InputError(
            f"`data` must be both, bitcoin-otc, epinions, or a folder of WEBSPAM-UK, got {data!r}"
        )
    values = {name: _aucs(network, labels, repeats, random_state) for name, network in networks.items()}
    parts = [
        tidy({"data": [name], "method": found}, spread(np.stack(list(found.values()), axis=1)))
        for name, found in values.items()
    ]
    table = pl.concat(parts).drop("standard_deviation").rename({"mean": "auc"})
    view = text_view(table, "{auc:.3f} ± {standard_error:.3f}", on="data", index="method")
    verdicts = [verdict for name, found in values.items() for verdict in _verdicts(name, found)]
    return Result(table, view, verdicts, _draw(table), _notes(networks, labels, repeats))


def _notes(networks: dict[str, Judged], labels: float, repeats: int) -> list[str]:
    sizes = [
        f"{name}: {network.positive.n:,} vertices, {network.positive.n_edges:,} positive and {network.negative.nnz:,} "
        f"negative links; {network.rated.sum():,} judged vertices, {network.distrusted.sum():,} of them distrusted."
        for name, network in networks.items()
    ]
    drawn = (
        f"{100 * labels:g} % of the judged vertices have known labels; AUC (lower score, distrusted; ties count half) "
        f"on the other judged ones, mean ± standard error over {repeats} draws of labels, not of networks."
    )
    if not any(network.negative.nnz for network in networks.values()):
        return [*sizes, f"Distrusted: judged to be spam; hosts that nobody judged are left out. {drawn}"]
    return [
        *sizes,
        f"Distrusted: more negative than positive ratings received; vertices that nobody rated are left out. {drawn}",
        "Ranks see the positive ratings, as weights, and the labels. 'signed' ones see, instead of labels of distrust, "
        "the negative ratings that labelled vertices received; those of other vertices are hidden. The positive "
        "ratings of a vertex are part of its label, so counting them is a strong baseline.",
        "No verdict is about a printed number: the dissertation has no such experiment. Its claims about spam are "
        "tested on networks in which nobody farms links.",
    ]


def _aucs(network: Judged, labels: float, repeats: int, random_state: int) -> dict[str, np.ndarray]:
    """Compute the AUC of each method, one value per draw."""
    rng = np.random.default_rng(random_state)
    free = dict(_without_labels(network.positive))
    draws = []
    for _ in range(repeats):
        known = labelled_sample(network.distrusted, labels, rng, network.rated)
        scores = free | dict(_with_labels(network, *known))
        held_out = network.rated & ~known[0] & ~known[1]
        draws.append([auc(network.distrusted[held_out], -found[held_out]) for found in scores.values()])
    return dict(zip(scores, np.transpose(draws), strict=True))


def _without_labels(graph: Graph) -> Iterator[tuple[str, np.ndarray]]:
    yield "in-degree", InDegree().fit(graph).scores_
    for name, (p, ratio) in BASES.items():
        yield name, LpqRank(p, ratio, DAMPING, tol=TOL).fit(graph).scores_


def _with_labels(
    network: Judged, trusted: np.ndarray, distrusted: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    graph = network.positive
    both: dict[str, Any] = {"trusted": trusted, "distrusted": distrusted}
    yield "TrustRank", TrustRank(DAMPING, tol=TOL).fit(graph, trusted=trusted).scores_
    yield "anti-TrustRank", AntiTrustRank(DAMPING, tol=TOL).fit(graph, distrusted=distrusted).scores_
    yield "demoted rank", DemotedRank(DAMPING, tol=TOL).fit(graph, **both).scores_
    for name in BASES:
        yield f"Lin-{name}", _lin(name).fit(graph, **both).scores_
        yield f"Lin-{name}, along", _lin(name, distrust="along").fit(graph, **both).scores_
    if not network.negative.nnz:
        return  # nobody has rated anybody negatively
    # negative ratings of other vertices would reveal the answer
    known = csr_array(network.negative.multiply((trusted | distrusted)[None, :].astype(float)))
    known.eliminate_zeros()
    signed = SignedGraph(graph, as_graph(known))
    for meaning in ("seeds", "edges"):
        for name in BASES:
            scores = _lin(name, negative=meaning).fit(signed, trusted=trusted).scores_
            yield f"signed {meaning}, Lin-{name}", scores


def _lin(name: str, **options: Any) -> LpqRank:
    p, ratio = BASES[name]
    return LpqRank(p, ratio, DAMPING, gamma=GAMMA, tol=TOL, **options)


def _verdicts(name: str, found: dict[str, np.ndarray]) -> Iterator[Verdict]:
    claims = {
        "the non-linear rank is better": ("L_2,2.4", "PageRank"),
        "labels help": ("Lin-L_2,2.4", "L_2,2.4"),
        "Lin-L_pq is better than TrustRank": ("Lin-L_2,2.4", "TrustRank"),
        "Lin-L_pq is better than Lin-PageRank": ("Lin-L_2,2.4", "Lin-PageRank"),
    }
    for row, (better, worse) in claims.items():
        why = f"AUC of {better} less that of {worse}: {{}}"
        yield mean_verdict(f"{name}: {row}", found[better] - found[worse], why, judge=question)


def _draw(table: pl.DataFrame) -> Figure:
    parts = table.partition_by("data", maintain_order=True)
    size = 3.2 + 4.2 * len(parts), 4.8
    figure, axes = panels(*size, 1, len(parts), sharex=True, sharey=True, squeeze=False)
    for ax, part in zip(axes[0], parts, strict=True):
        height = np.arange(part.height)[::-1]
        ax.errorbar(part["auc"], height, xerr=part["standard_error"], fmt="o", capsize=2, color=COLOURS[0])
        ax.axvline(0.5, color="0.55", linewidth=0.9)
        ax.set(title=part["data"][0], xlabel='AUC of "receives distrust"')
        ax.set_yticks(height, part["method"].to_list())
        light(ax)
    return figure
