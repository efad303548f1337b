"""Rankings that ``linkfarm`` compares, and their measures.

Every ranking of every graph is measured into a tidy table, and looked up there again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from apexrank.graph import (
    Graph,
    GuardedPageRank,
    InDegree,
    LpqRank,
    NonBacktrackingRank,
    PageRank,
    TruncatedPageRank,
)
from apexrank.graph.lpq import Lpq
from apexrank.graph.power import Walk, iterate, no_bound
from apexrank.metrics import spam_mass, spam_met
from apexrank_papers.graphs.farms import DAMPING, RATIO, TOL, Web

SMALL_CHANGE = 1e-6  # of a step, where the dissertation stops
L_P_TOL, L_P_STEPS = 1e-6, 200  # q = p costs far more steps, and not every answer gets a certificate
PLAIN_PS = (2.0, 4.0)  # where plain iteration with q = p is watched
DEPTHS = (100, 1000, 10_000)
WORST_BOUND = 1e-3  # scores that may be further from the answer are not measured
CRAWLED, NO_LOOPS, PAIRS = "as crawled", "no self-loops", "pairs"  # the graphs

Key = tuple[str, float | None, float | None]
IN_DEGREE: Key = ("in-degree", None, None)
PLAIN: Key = ("PageRank", 1.0, 1.0)
CHOSEN: Key = ("L_pq", 2.0, RATIO)
WEAK: Key = ("L_2,2.4, weak links", None, None)
TRUNCATED: Key = ("truncated PageRank", None, None)
NON_BACKTRACKING: Key = ("non-backtracking", None, None)
GUARDED: Key = ("guarded PageRank", None, None)
# eq. 6.1 in its other reading, and ranks that are not the dissertation's
RELATIVES: dict[Key, Any] = {
    WEAK: LpqRank(2, RATIO, DAMPING, teleport="weak-links", tol=TOL),
    TRUNCATED: TruncatedPageRank(2, damping=DAMPING, tol=TOL),
    NON_BACKTRACKING: NonBacktrackingRank(2, damping=DAMPING, tol=TOL),
    GUARDED: GuardedPageRank(damping=DAMPING, tol=TOL),
}


class Trial(NamedTuple):
    """One ranking of all vertices; what does not belong to it is None, a history that is not there is empty."""

    method: str
    p: float | None
    ratio: float | None
    scores: np.ndarray
    steps: int | None = None
    bound: float | None = None
    history: np.ndarray = np.empty(0)

    @property
    def key(self) -> Key:
        """Method, p and q/p."""
        return self.method, self.p, self.ratio


def ranked(graph: Graph, ps: Iterable[float], ratios: Iterable[float]) -> Iterator[Trial]:
    """In-degree, PageRank and its relatives, then every L_p and L_pq.

    Examples
    --------
    >>> trials = ranked(Graph.from_edges([0, 1, 2], [1, 2, 0]), [1.0, 2.0], [1.0, 1.2])
    >>> [name_of(*trial.key) for trial in trials][-4:]
    ['guarded PageRank', 'L_2', 'L_1,1.2', 'L_2,2.4']
    """
    yield Trial(*IN_DEGREE, InDegree().fit(graph).scores_)
    yield _trial(PLAIN, PageRank(DAMPING, tol=TOL), graph)
    for key, rank in RELATIVES.items():
        yield _trial(key, clone(rank), graph)
    for ratio in ratios:
        limits: dict[str, Any] = {"tol": L_P_TOL, "max_iter": L_P_STEPS} if ratio == 1 else {"tol": TOL}
        for p in ps:
            if ratio == 1 and (p == 1 or np.isinf(p)):
                continue  # PageRank, and what has no unique answer
            key = "L_p" if ratio == 1 else "L_pq", p, ratio
            yield _trial(key, LpqRank(p, ratio, DAMPING, **limits), graph)


def _trial(key: Key, rank: Any, graph: Graph) -> Trial:
    with warnings.catch_warnings():
        # the table has the bound that was reached
        warnings.simplefilter("ignore", ConvergenceWarning)
        rank.fit(graph)
    return Trial(*key, rank.scores_, rank.n_iter_, rank.error_bound_, rank.history_)


def plain_histories(graph: Graph) -> dict[float, np.ndarray]:
    """Change of each step of plain iteration with q = p, which `LpqRank` replaces by root finding."""
    start = np.full(graph.n, 1 / graph.n)
    found = {}
    for p in PLAIN_PS:
        with Walk(graph, Lpq(p, 1.0), DAMPING, start) as walk:
            found[p] = np.array(iterate(walk.step, start, no_bound, SMALL_CHANGE, L_P_STEPS).history)
    return found


def first_small(history: np.ndarray) -> float:
    """Number of the first step that changes less than `SMALL_CHANGE`, infinite where there is none.

    Examples
    --------
    >>> first_small(np.array([0.1, 1e-7, 1e-8])), first_small(np.array([0.1]))
    (2.0, inf)
    """
    small = np.flatnonzero(history < SMALL_CHANGE)
    return float(small[0] + 1) if len(small) else np.inf


def name_of(method: str, p: float | None = None, ratio: float | None = None) -> str:
    """Name of a ranking as people write it.

    Examples
    --------
    >>> name_of("L_pq", 2.0, 1.2), name_of("L_p", 4.0, 1.0), name_of("L_pq", np.inf, 1.2)
    ('L_2,2.4', 'L_4', 'L_∞, q/p = 1.2')
    """
    if p is None or ratio is None or not method.startswith("L_p"):
        return method
    q = "" if ratio == 1 else f", q/p = {ratio:g}" if np.isinf(p) else f",{p * ratio:.4g}"
    return f"L_{powers([p])}{q}"


def measured(graph: str, web: Web, trial: Trial) -> Iterator[dict[str, Any]]:
    """One row for each number; of an answer without a certificate only what is known of it."""
    values: dict[str, float | None] = {"steps": trial.steps, "error bound": trial.bound}
    if trial.bound is None or trial.bound <= WORST_BOUND:
        values |= measures(web, trial.scores)
    if len(trial.history):
        values["steps to a change of 1e-6"] = first_small(trial.history)
    yield from _rows(graph, trial.key, {name: value for name, value in values.items() if value is not None})


def _rows(graph: str, key: Key, values: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    names = dict(zip(("graph", "method", "p", "ratio"), (graph, *key), strict=True))
    return ({**names, "measure": measure, "value": float(value)} for measure, value in values.items())


def measures(web: Web, scores: np.ndarray) -> dict[str, float]:
    """Share of spam and closed cycles in a ranking, and the places of the targets among the judged vertices."""
    closed = web.cycles
    spam, judged = web.spam[web.judged], scores[web.judged]
    place = rankdata(-judged, method="average")[np.searchsorted(np.flatnonzero(web.judged), web.targets)]
    values = {
        "spam mass": spam_mass(spam, judged),
        "mass of closed cycles": float(scores[closed].sum() / scores.sum()),
        "closed cycles in the first 100": float(spam_met(closed, scores, 100)),
        "median target": float(np.median(place)),
        "best target": float(place.min()),
    }
    for name, pages in (("ordinary pages above", ~closed), ("closed cycles above", closed)):
        ascending = np.sort(scores[pages & web.judged & ~web.spam])
        above = len(ascending) - np.searchsorted(ascending, scores[web.targets], side="right")
        values[name] = float(np.median(above))
    met = np.asarray(spam_met(spam, judged, DEPTHS))
    return values | {f"spam in the first {depth}": float(k) for depth, k in zip(DEPTHS, met, strict=True)}


def footrules(graph: str, web: Web, trials: Iterable[Trial]) -> Iterator[dict[str, Any]]:
    """Spearman's footrule over n² between all pairs of rankings, on honest vertices (Figures 6.4 and 6.7)."""
    honest = web.judged & ~web.spam
    places = {trial.key: rankdata(-trial.scores[honest], method="average") for trial in trials}
    for (one, here), (other, there) in permutations(places.items(), 2):
        distance = np.abs(here - there).sum() / honest.sum() ** 2
        yield from _rows(graph, one, {f"footrule to {name_of(*other)}": distance})


class Found:
    """The table as a function: measure, method and its settings to the number.

    Examples
    --------
    >>> row = {"graph": CRAWLED, "measure": "steps", "method": "L_pq", "p": 2.0, "ratio": 1.2, "value": 9.0}
    >>> found = Found(pl.DataFrame([row]))
    >>> found("steps", *CHOSEN), found("steps", *PLAIN), found.ps("L_pq", "steps")
    (9.0, nan, [2.0])
    """

    def __init__(self, table: pl.DataFrame) -> None:
        keys = ("measure", "method", "p", "ratio", "graph")
        self.values = {row[:-1]: row[-1] for row in table.select(*keys, "value").rows()}
        self.graphs = table["graph"].unique(maintain_order=True).to_list()

    def __call__(
        self,
        measure: str,
        method: str,
        p: float | None = None,
        ratio: float | None = None,
        graph: str = CRAWLED,
    ) -> float:
        """The number, or nan where there is none."""
        return self.values.get((measure, method, p, ratio, graph), np.nan)

    def ps(self, method: str, measure: str = "spam mass") -> list[float]:
        """Powers with which a method was measured."""
        return sorted({key[2] for key in self.values if key[:2] == (measure, method)})

    def ratios(self, p: float) -> list[float]:
        """Ratios with which the rank of a power was measured."""
        methods = ("L_p", "L_pq") if p > 1 else ("PageRank", "L_pq")
        return sorted(
            {key[3] for key in self.values if key[0] == "spam mass" and key[1] in methods and key[2] == p}
        )

    def lpq(self, measure: str, p: float, ratio: float) -> float:
        """The number of L_pq, which is PageRank or L_p at ratio 1."""
        method = "L_pq" if ratio > 1 else "PageRank" if p == 1 else "L_p"
        return self(measure, method, p, ratio)


def percent(values: Iterable[float]) -> str:
    """Shares in percent.

    Examples
    --------
    >>> percent([0.01, 0.00382])
    '1, 0.382 %'
    """
    return ", ".join(f"{100 * value:.3g}" for value in values) + " %"


def powers(ps: Iterable[float]) -> str:
    """Values of p.

    Examples
    --------
    >>> powers([1, 1.5, np.inf])
    '1, 1.5, ∞'
    """
    return ", ".join("∞" if np.isinf(p) else f"{p:g}" for p in ps)
