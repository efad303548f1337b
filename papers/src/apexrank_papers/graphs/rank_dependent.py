"""L_pq ranks with a power p that depends on the rank of a vertex (Acharyya 2013, sec. 6.4.2), with a certificate.

The dissertation finds less spam at the top with p = 2 and further down with p = 4, and suggests "a strategy that
chooses between these two cases depending on the rank". In this version every vertex has its own powers,

``r_i ← (Σ_{j→i} flow_j^{p_i} + teleport_i^{p_i})^{1/q_i}``, ``q_i > p_i``.

Each coordinate is increasing in r and sub-homogeneous of degree ``h = max_i p_i/q_i``: ``U(cr) ≤ c^h·U(r)`` for c ≥ 1.
For two vectors that sum to 1, ``m = min x/y ≤ 1 ≤ max x/y = M``, hence ``m^h·U(y) ≤ U(x) ≤ M^h·U(y)``, and Hilbert's
metric ``log M/m`` shrinks by h in every step. The certificate is the same as with one p and q for all. With a p that
followed the ranks of the same iteration the map would not be increasing, so the order comes from an earlier rank.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.stats import rankdata

from apexrank.errors import InputError
from apexrank.graph import Graph, LpqRank
from apexrank.graph.lpq import Lpq
from apexrank.graph.power import Inflow, Walk
from apexrank.kernels.csr import LinkSums
from apexrank.metrics import spam_mass, spam_met
from apexrank.parameters import above, between, names
from apexrank_papers.graphs.farms import DAMPING, RATIO, TOL, Web, farmed_crawl, labelled_sample
from apexrank_papers.graphs.spam_labels import spread_labels, weighed
from apexrank_papers.result import Result, Verdict, claim, question, text_view, tidy
from apexrank_papers.splits import check_repeated, mean_over_splits, over_splits


@dataclass(frozen=True, eq=False)
class VertexLpq:
    """Map of `apexrank.graph.lpq.Lpq` with a p for each vertex and a ratio q/p for all vertices or for each.

    The links are summed once for each distinct pair of p and ratio.

    Examples
    --------
    >>> VertexLpq(np.array([2.0, 4.0]), np.array([1.25, 2.0])).degree
    0.8
    """

    p: np.ndarray
    ratio: float | np.ndarray = RATIO

    @property
    def degree(self) -> float:
        """The largest p/q."""
        return float(1.0 / np.min(self.ratio))

    def on(self, links: LinkSums, rate: np.ndarray, teleport: np.ndarray) -> Inflow:
        pairs = np.stack(np.broadcast_arrays(self.p, self.ratio), axis=1)
        values, which = np.unique(pairs, axis=0, return_inverse=True)
        inflows = [Lpq(*pair).on(links, rate, teleport) for pair in values.tolist()]
        at = which.ravel(), np.arange(len(pairs))
        return lambda x, tau: np.stack([inflow(x, tau) for inflow in inflows])[at]

    def terms(self, flow: np.ndarray) -> np.ndarray:
        raise InputError(
            "ranks with a power for each vertex cannot be explained: explain a rank with a single power"
        )


@dataclass(eq=False, repr=False)
class RankDependentLpq(LpqRank):
    """L_pq rank with one power for the top vertices, as ranked by L_pq with that power, and another for the rest.

    Parameters
    ----------
    p : float
        Power of the top vertices, and of the rank that determines them.
    rest : float
        Power of the other vertices.
    share : float
        Share of the vertices at the top.

    Examples
    --------
    >>> rank = RankDependentLpq(2.0, rest=4.0, share=0.4).fit(([0, 1, 2, 3, 4], [1, 2, 0, 0, 0]))
    >>> rank.powers_.tolist(), bool(rank.error_bound_ < 1e-8)
    ([2.0, 2.0, 4.0, 4.0, 4.0], True)
    """

    _parameter_constraints: ClassVar[dict] = LpqRank._parameter_constraints | {
        "ratio": [above(1)],
        "teleport": [names(("inside",))],
        "rest": [between(1, math.inf)],
        "share": [between(0, 1, closed="neither")],
    }

    _: KW_ONLY
    rest: float = 4.0
    share: float = 0.01

    def _walk(self, graph: Graph, teleport: np.ndarray) -> Walk:
        with Walk(graph, Lpq(self.p, self.ratio), self.damping, teleport) as first:
            scores = first.solve(np.full(graph.n, 1 / graph.n), self.tol, self.max_iter, None).scores
        place = rankdata(-scores, method="min")  # equal vertices have equal powers
        self.powers_ = np.where(place <= self.share * graph.n, float(self.p), float(self.rest))
        return Walk(graph, VertexLpq(self.powers_, self.ratio), self.damping, teleport)


LOW, HIGH, SPLICED = "p = 2", "p = 4", "list of 2, then of 4"
FALLING, RISING = "2 at the top, 4 below", "4 at the top, 2 below"
METHODS = (LOW, HIGH, SPLICED, FALLING, RISING)
TOP, SHARE, LABELS = 0.01, 0.2, 0.00625
DEPTHS = (0.001, 0.01, 0.1, 0.5)
MATTERS = 0.0005  # smaller shares of spam are irrelevant in practice
MEASURES = ("spam mass", *(f"spam in the first {100 * depth:g} %" for depth in DEPTHS))


def rank_dependent_p(
    *, data: str = "auto", n: int = 100_000, boosters: int = 200, repeats: int = 5, random_state: int = 0
) -> Result:
    """Measure spam down the ranking of Lin-L_pq with p = 2, p = 4, and a p that depends on the rank.

    Parameters
    ----------
    data, n, boosters, random_state
        As in ``spam-labels``, with the same crawl: a fifth of the vertices are spam, 0.625 % are labelled.
    repeats : int
        Number of draws of the labels.
    """
    check_repeated("repeats", repeats)
    web = farmed_crawl(data, n, 0, boosters, 10, random_state, spam_share=SHARE)
    bases = dict(_bases(web.graph))
    values = over_splits(lambda seed: _measured(web, bases, seed), repeats, 1, random_state)
    table = tidy({"method": METHODS, "measure": MEASURES}, {"mean": values.mean(axis=0)})
    view = text_view(table, _percent, on="measure", index="method")
    notes = [
        f"{web.name}; {100 * LABELS:g} % labels, {repeats} draws, distrust along the links. The first "
        f"{100 * TOP:.0f} % by p = 2 are the top. Cells: score held by spam, and share of spam among the first "
        f"vertices. Every rank is certified: error bound below {TOL:g} (L1).",
    ]
    return Result(table, view, list(_verdicts(values)), notes=notes)


def _percent(mean: float, **_: Any) -> str:
    return "–" if np.isnan(mean) else f"{100 * mean:.3f} %"


def _bases(graph: Graph) -> Iterator[tuple[str, np.ndarray]]:
    options: dict[str, Any] = {"ratio": RATIO, "damping": DAMPING, "tol": TOL}
    for name, p in ((LOW, 2.0), (HIGH, 4.0)):
        yield name, LpqRank(p, **options).fit(graph).ranks_
    yield FALLING, RankDependentLpq(2.0, rest=4.0, share=TOP, **options).fit(graph).ranks_
    yield RISING, RankDependentLpq(4.0, rest=2.0, share=TOP, **options).fit(graph).ranks_


def _measured(web: Web, bases: dict[str, np.ndarray], seed: int) -> list[list[float]]:
    labels = labelled_sample(web.spam, LABELS, np.random.default_rng([seed, 7]), web.judged)
    trust = dict(spread_labels(web.graph, *labels))["along"]
    scores = {name: weighed(ranks, trust) for name, ranks in bases.items()}
    scores[SPLICED] = spliced(scores[LOW], scores[HIGH], TOP)
    rest = web.judged & ~(labels[0] | labels[1])
    spam, counts = web.spam[rest], [max(1, round(depth * rest.sum())) for depth in DEPTHS]
    found = []
    for name in METHODS:
        met = np.asarray(spam_met(spam, scores[name][rest], counts)) / counts
        # the two lists have no common scale
        mass = np.nan if name == SPLICED else spam_mass(spam, scores[name][rest])
        found.append([mass, *met.tolist()])
    return found


def spliced(first: np.ndarray, second: np.ndarray, share: float) -> np.ndarray:
    """Return scores for a list with the top vertices by one rank, then the others in the order of another.

    Examples
    --------
    >>> spliced(np.array([0.1, 0.9, 0.5]), np.array([0.3, 0.1, 0.2]), 0.34).argsort()[::-1].tolist()
    [1, 0, 2]
    """
    place = rankdata(-first, method="min")
    at_top = place <= max(1, share * len(first))
    return np.where(at_top, 2 - place / len(first), rankdata(second) / len(second))


def _verdicts(values: np.ndarray) -> Iterator[Verdict]:
    at = {name: k for k, name in enumerate(METHODS)}
    levels = {name: values[:, at[name], 1:].mean(axis=0) for name in (LOW, HIGH)}
    crosses = levels[LOW][0] < levels[HIGH][0] and levels[LOW][-1] > levels[HIGH][-1]
    told = "; ".join(f"{name}: " + ", ".join(f"{x:.3%}" for x in each) for name, each in levels.items())
    depths = ", ".join(f"{depth:.1%}" for depth in DEPTHS)
    yield claim(
        "p = 2 has less spam first, and more further down, than p = 4", bool(crosses), f"{told} in {depths}"
    )
    for name in (SPLICED, FALLING, RISING):
        better = np.minimum(values[:, at[LOW]], values[:, at[HIGH]])
        gaps = {m: mean_over_splits(values[:, at[name], k] - better[:, k]) for k, m in enumerate(MEASURES)}
        gaps = {measure: gap for measure, gap in gaps.items() if not np.isnan(gap.value)}
        told = ", ".join(f"{100 * gap.value:+.3f} ± {100 * gap.noise:.3f} ({m})" for m, gap in gaps.items())
        worse = any(gap.value - gap.noise > MATTERS for gap in gaps.values())
        gains = any(gap.value + gap.noise < -MATTERS for gap in gaps.values())
        useless = all(gap.value - gap.noise > -MATTERS for gap in gaps.values())
        row = f"{name}: less spam somewhere than the better of p = 2 and 4, and nowhere more"
        yield question(row, -1 if worse or useless else 1 if gains else 0, f"in percent {told}")
