"""Rankings that ``linkfarm`` compares, and their measures.

With and without labels, and plain iteration with q = p; measured into a tidy table, and looked up there again.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning

from apexrank.graph import AntiTrustRank, DemotedRank, Graph, InDegree, LpqRank, PageRank, TrustRank
from apexrank.graph.lpq import Lpq
from apexrank.graph.power import Walk, iterate, no_bound
from apexrank.metrics import spam_mass, spam_met, spearman_footrule
from apexrank_papers.graphs.farms import DAMPING, RATIO, TOL, Farmed, spread_labels, weighed

SMALL_CHANGE = 1e-6  # of a step, where the dissertation stops
L_P_TOL, L_P_STEPS = 1e-6, 200  # q = p costs far more steps, and not every answer gets a certificate
PLAIN_PS = (2.0, 4.0)  # where plain iteration with q = p is watched
TRUSTRANK = "Lin-PageRank, along"  # what the dissertation calls TrustRank
ANTITRUST = "Lin-PageRank"  # and what it calls AntiTrustRank
DEPTHS = (100, 1000, 10_000)
WORST_BOUND = 1e-3  # scores that may be further from the answer are not measured
PLAIN, CHOSEN = ("PageRank", 1.0, 1.0), ("L_pq", 2.0, RATIO)  # the two rankings that most claims compare

Key = tuple[str, float | None, float | None, float | None]


class Trial(NamedTuple):
    """One ranking of all vertices; what does not belong to it is None, a history that is not there is empty."""

    method: str
    p: float | None
    ratio: float | None
    labels: float | None
    scores: np.ndarray
    steps: int | None = None
    bound: float | None = None
    history: np.ndarray = np.empty(0)

    @property
    def key(self) -> Key:
        """Method, p, q/p and share of labels."""
        return self.method, self.p, self.ratio, self.labels


def unlabelled(graph: Graph, ps: list[float], ratios: list[float]) -> Iterator[Trial]:
    """In-degree, PageRank, then every L_p and L_pq.

    Examples
    --------
    >>> trials = unlabelled(Graph.from_edges([0, 1, 2], [1, 2, 0]), [1.0, 2.0], [1.0, 1.2])
    >>> [name_of(*trial.key) for trial in trials]
    ['in-degree', 'PageRank', 'L_2', 'L_1,1.2', 'L_2,2.4']
    """
    yield Trial("in-degree", None, None, None, InDegree().fit(graph).scores_)
    plain = PageRank(DAMPING, tol=TOL).fit(graph)
    yield Trial("PageRank", 1.0, 1.0, None, plain.scores_, plain.n_iter_, plain.error_bound_, plain.history_)
    for ratio in ratios:
        for p in ps:
            if ratio == 1 and (p == 1 or np.isinf(p)):
                continue  # PageRank, and what has no unique answer
            yield _lpq(graph, p, ratio)


def _lpq(graph: Graph, p: float, ratio: float) -> Trial:
    limits: dict[str, Any] = {"tol": L_P_TOL, "max_iter": L_P_STEPS} if ratio == 1 else {"tol": TOL}
    with warnings.catch_warnings():
        # the table has the bound that was reached
        warnings.simplefilter("ignore", ConvergenceWarning)
        rank = LpqRank(p, ratio, DAMPING, **limits).fit(graph)
    name = "L_p" if ratio == 1 else "L_pq"
    return Trial(name, p, ratio, None, rank.scores_, rank.n_iter_, rank.error_bound_, rank.history_)


def labelled(
    graph: Graph, bases: list[Trial], share: float, trusted: np.ndarray, distrusted: np.ndarray
) -> Iterator[Trial]:
    """PageRank and L_pq of ``bases``, weighed by labels, then the established ranks."""
    trust, against, along = spread_labels(graph, trusted, distrusted)
    for base in bases:
        if base.method == "PageRank":
            yield Trial(ANTITRUST, 1.0, 1.0, share, weighed(base.scores, trust, against))
            yield Trial(TRUSTRANK, 1.0, 1.0, share, weighed(base.scores, trust, along))
        elif base.ratio == RATIO:
            yield Trial("Lin-L_pq", base.p, RATIO, share, weighed(base.scores, trust, against))
    established = {
        "TrustRank": TrustRank(DAMPING, tol=TOL).fit(graph, trusted=trusted),
        "anti-TrustRank": AntiTrustRank(DAMPING, tol=TOL).fit(graph, distrusted=distrusted),
        "demoted rank": DemotedRank(DAMPING, tol=TOL).fit(graph, trusted=trusted, distrusted=distrusted),
    }
    for name, rank in established.items():
        yield Trial(name, None, None, share, rank.scores_, rank.n_iter_, rank.error_bound_)


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


def name_of(
    method: str, p: float | None = None, ratio: float | None = None, labels: float | None = None
) -> str:
    """Name of a ranking as people write it.

    Examples
    --------
    >>> name_of("Lin-L_pq", 2.0, 1.2, 0.05), name_of("L_p", 4.0, 1.0), name_of("L_pq", np.inf, 1.2)
    ('Lin-L_2,2.4, 5 % labels', 'L_4', 'L_∞, q/p = 1.2')
    """
    text = method
    if p is not None and ratio is not None and "L_p" in method:
        power = "∞" if np.isinf(p) else f"{p:g}"
        q = "" if ratio == 1 else f", q/p = {ratio:g}" if np.isinf(p) else f",{p * ratio:.4g}"
        text = method.partition("L_p")[0] + f"L_{power}{q}"
    return text if labels is None else f"{text}, {100 * labels:.3g} % labels"


def measured(farmed: Farmed, trial: Trial, reference: np.ndarray) -> Iterator[dict[str, Any]]:
    """One row for each number; of an answer without a certificate only what is known of it."""
    values: dict[str, float | None] = {"steps": trial.steps, "error bound": trial.bound}
    if trial.bound is None or trial.bound <= WORST_BOUND:
        values |= measures(farmed, trial.scores, reference)
    if len(trial.history):
        values["steps to a change of 1e-6"] = first_small(trial.history)
    names = dict(zip(("method", "p", "ratio", "labels"), trial.key, strict=True))
    for measure, value in values.items():
        if value is not None:
            yield {**names, "measure": measure, "value": float(value)}


def measures(farmed: Farmed, scores: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """What spam gets from a ranking, where the targets stand, and how far honest vertices are from ``reference``."""
    values = {}
    if (scores >= 0).all():
        values["spam mass"] = spam_mass(farmed.spam, scores)
        values["mass of closed cycles"] = float(scores[farmed.cycles].sum() / scores.sum())
    place = rankdata(-scores, method="average")[farmed.targets]
    values |= {"median target": float(np.median(place)), "best target": float(place.min())}
    values |= honest_above(farmed, scores)
    met = np.asarray(spam_met(farmed.spam, scores, DEPTHS))
    values |= {f"spam in the first {depth}": float(number) for depth, number in zip(DEPTHS, met, strict=True)}
    honest = ~farmed.spam
    distance = spearman_footrule(scores=(reference[honest], scores[honest]))
    return values | {"footrule to PageRank": float(distance) / int(honest.sum()) ** 2}


def honest_above(farmed: Farmed, scores: np.ndarray) -> dict[str, float]:
    """Honest pages above a target, on closed cycles and others; medians over the targets."""
    closed = np.zeros(len(scores), dtype=bool)
    closed[farmed.cycles] = True
    found = {}
    for name, pages in (("ordinary pages above", ~closed), ("closed cycles above", closed)):
        ascending = np.sort(scores[pages & ~farmed.spam])
        above = len(ascending) - np.searchsorted(ascending, scores[farmed.targets], side="right")
        found[name] = float(np.median(above))
    return found


class Found:
    """The table as a function: measure, method and its settings to the number.

    Examples
    --------
    >>> row = {"measure": "steps", "method": "L_pq", "p": 2.0, "ratio": 1.2, "labels": None, "value": 9.0}
    >>> found = Found(pl.DataFrame([row]))
    >>> found("steps", "L_pq", 2.0, 1.2), found("steps", "PageRank"), found.ps("L_pq", "steps")
    (9.0, nan, [2.0])
    """

    def __init__(self, table: pl.DataFrame) -> None:
        keys = ("measure", "method", "p", "ratio", "labels")
        self.values = {row[:-1]: row[-1] for row in table.select(*keys, "value").rows()}
        self.labels = sorted({key[-1] for key in self.values if key[-1] is not None})

    def __call__(
        self,
        measure: str,
        method: str,
        p: float | None = None,
        ratio: float | None = None,
        labels: float | None = None,
    ) -> float:
        """The number, or nan where there is none."""
        return self.values.get((measure, method, p, ratio, labels), np.nan)

    @property
    def few_and_many(self) -> list[float]:
        """The smallest and the largest share of labels; one where they are the same."""
        return sorted({self.labels[0], self.labels[-1]})

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
