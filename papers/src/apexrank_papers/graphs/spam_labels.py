"""Spam mass and spam detection with few labels (Acharyya 2013, Figures 6.4, 6.7 and 6.9–6.11).

The dissertation prints the errors of its L_pq TrustRank and of TrustRank on a crawl that is not public. Its TrustRank
is PageRank weighted by trust and distrust, both along the links. It is compared with L_pq weighted in the same way,
and both are compared with distrust against the links. Here the spam is planted in farms (see `farms`), so only the
shape can agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.graph import (
    AntiTrustRank,
    DemotedRank,
    Graph,
    LpqRank,
    PageRank,
    TrustRank,
    best_threshold,
    spread,
)
from apexrank.graph.lpq import Lpq
from apexrank.graph.trust import Direction, trust_share
from apexrank.metrics import spam_mass
from apexrank.plot import CumulativeSpamDisplay
from apexrank.plot.style import legend, light, line_style
from apexrank_papers.graphs.farms import (
    DAMPING,
    GAMMA,
    NEUTRAL,
    RATIO,
    TOL,
    USUAL,
    Web,
    farmed_crawl,
    labelled_sample,
)
from apexrank_papers.printed import printed_table
from apexrank_papers.result import Figure, Result, Verdict, claim, panels, signed_verdict
from apexrank_papers.splits import check_repeated, mean_over_splits, mean_verdict, standard_error

BASES = {"PageRank": 1.0, "L_2,2.4": 2.0, "L_4,4.8": 4.0}  # p
WAYS: tuple[Direction, ...] = ("along", "against")
# ranks with a printed error, and their names in the dissertation
PRINTED = {"Lin-L_2,2.4, along": "L_pq TrustRank", "Lin-PageRank, along": "TrustRank"}
ERROR, MASS = "error", "spam mass"


def spam_labels(
    *,
    data: str = "auto",
    labels: Sequence[float] = (0.00625, 0.0125, 0.025, 0.05, 0.1),
    spam_share: float = 0.2,
    boosters: int = 200,
    hijacked: int = 10,
    self_loops: str = "keep",
    repeats: int = 5,
    n: int = 100_000,
    random_state: int = 0,
) -> Result:
    """Rank with few labels, and classify as spam what scores below a threshold learnt on them (Figure 6.11).

    Parameters
    ----------
    data, boosters, n
        As in ``linkfarm``.
    labels : sequence of float
        Shares of the judged vertices that are labelled. Non-linear trust is measured with the largest share.
    spam_share : float
        Farms are planted until this share of all vertices is spam.
    hijacked : int
        Number of honest pages that link to each target. With 0 no trust reaches the farms, and ranks by trust give
        spam nothing by construction.
    self_loops : {"keep", "drop"}
        Whether links from a page to itself count.
    repeats : int
        Number of random draws of the labelled vertices, at least 2.
    random_state : int
        Seed of the crawl and the draws.
    """
    check_repeated("repeats", repeats)
    if not labels:
        raise InputError("`labels` needs at least one share of labelled vertices, such as 0.1")
    if not 0 < spam_share < 1:
        raise InputError(f"`spam_share` must lie between 0 and 1, got {spam_share!r}")
    web = farmed_crawl(
        data, n, 0, boosters, hijacked, random_state, spam_share=spam_share, self_loops=self_loops
    )
    bases = {name: _base(web.graph, p) for name, p in BASES.items()}
    rng = np.random.default_rng(random_state)
    shares = sorted(labels)
    found: dict[tuple[str, str, float], list[float]] = {}  # by measure, ranking and share
    for _ in range(repeats):
        for share in shares:
            trusted, distrusted = labelled_sample(web.spam, share, rng, web.judged)
            scores = dict(rankings(web.graph, bases, trusted, distrusted, share == shares[-1]))
            for name, each in scores.items():
                for measure, value in _measures(web, each, trusted | distrusted).items():
                    found.setdefault((measure, name, share), []).append(100 * value)
    values = {key: np.array(draws) for key, draws in found.items()}
    table = _table(values)
    verdicts = list(_verdicts(Draws(values, shares), 100 * web.spam.sum() / web.judged.sum()))
    figure = _draw(table, shares, web, scores)
    usual = web.name.startswith(USUAL)
    return Result(table, _view(table, shares), verdicts, figure, _notes(web, repeats), usual)


def _base(graph: Graph, p: float) -> np.ndarray:
    rank = PageRank(DAMPING, tol=TOL) if p == 1 else LpqRank(p, RATIO, DAMPING, tol=TOL)
    return rank.fit(graph).scores_


def rankings(
    graph: Graph, bases: dict[str, np.ndarray], trusted: np.ndarray, distrusted: np.ndarray, non_linear: bool
) -> Iterator[tuple[str, np.ndarray]]:
    """Compute the scores of all rankings for one draw of labels."""
    yield from bases.items()
    for way, share in spread_labels(graph, trusted, distrusted):
        for name, ranks in bases.items():
            yield f"Lin-{name}, {way}", weighed(ranks, share)
    if non_linear:
        for name in list(BASES)[1:]:
            for way, share in spread_labels(graph, trusted, distrusted, Lpq(BASES[name], RATIO)):
                yield f"{name}, trust alike, {way}", weighed(bases[name], share)
    yield "TrustRank", TrustRank(DAMPING, tol=TOL).fit(graph, trusted=trusted).scores_
    yield "anti-TrustRank", AntiTrustRank(DAMPING, tol=TOL).fit(graph, distrusted=distrusted).scores_
    both: dict[str, Any] = {"trusted": trusted, "distrusted": distrusted}
    yield "demoted rank", DemotedRank(DAMPING, tol=TOL).fit(graph, **both).scores_


def spread_labels(
    graph: Graph, trusted: np.ndarray, distrusted: np.ndarray, map_: Lpq | None = None
) -> Iterator[tuple[str, np.ndarray]]:
    """Return ``x₊/(x₊ + x₋)`` with distrust along and against the links; linear without a map (sec. 6.3, eq. 6.5).

    `LpqRank` does the same for one direction; here ranks and trust are reused many times.

    Examples
    --------
    >>> graph = Graph.from_edges([0, 1], [1, 2])
    >>> for way, share in spread_labels(graph, np.array([True, False, False]), np.array([False, False, True])):
    ...     print(way, share.round(4).tolist())
    along [1.0, 1.0, 0.4195]
    against [0.5806, 0.5, 0.4195]
    """
    # a map of degree below 1 needs seeds that sum to n or more
    unit = 1.0 if map_ is None else graph.n / min(trusted.sum(), distrusted.sum())
    options: dict[str, Any] = {"map": map_, "gamma": GAMMA, "tol": TOL}
    trust = spread(graph, unit * trusted, **options).scores
    for way in WAYS:
        distrust = spread(graph, unit * distrusted, direction=way, **options).scores
        yield way, trust_share(trust, distrust, NEUTRAL)


def weighed(ranks: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Multiply ranks by the share of trust and normalise: the final score of sec. 6.3.

    Examples
    --------
    >>> weighed(np.array([0.5, 0.5]), np.array([1.0, 0.25])).tolist()
    [0.8, 0.2]
    """
    scores = ranks * share
    return scores / (scores.sum() or 1.0)


def _measures(web: Web, scores: np.ndarray, known: np.ndarray) -> dict[str, float]:
    """Return the error of a threshold, learnt on the known vertices, on the other judged ones, and the spam mass."""
    rest = web.judged & ~known
    called = best_threshold(scores[known], web.spam[known]).is_spam(scores[rest])
    values = {ERROR: float((called != web.spam[rest]).mean())}
    if (scores >= 0).all():
        values[MASS] = spam_mass(web.spam[web.judged], scores[web.judged])
    return values


def _table(values: dict[tuple[str, str, float], np.ndarray]) -> pl.DataFrame:
    printed = {row["algorithm"]: row for row in printed_table("spam_labels").to_dicts()}
    rows = []
    for (measure, name, share), draws in values.items():
        algorithm = PRINTED.get(name) if measure == ERROR else None
        there = printed.get(algorithm, {}).get(f"{100 * share:g}%")
        found = float(draws.mean()), float(standard_error(draws)), None if there is None else float(there)
        rows.append((share, name, measure, *found))
    schema = ["labels", "ranking", "measure", "mean", "standard_error", "printed"]
    return pl.DataFrame(rows, schema, schema_overrides={"printed": pl.Float64}, orient="row")


def _view(table: pl.DataFrame, shares: list[float]) -> pl.DataFrame:
    """Tabulate errors by share of labels, the printed errors, and spam mass with the most labels."""
    cells = [f"{mean:.2f} ± {error:.2f}" for mean, error in table.select("mean", "standard_error").rows()]
    told = table.with_columns(pl.Series("cell", cells))
    rows = []
    for name in dict.fromkeys(told.filter(labels=shares[-1])["ranking"]):
        part = told.filter(ranking=name)
        errors = dict(part.filter(measure=ERROR).select("labels", "cell").rows())
        mass = part.filter(measure=MASS, labels=shares[-1])["cell"].to_list()
        row = {_percent(share): errors.get(share, "–") for share in shares}
        rows.append({"ranking": name, **row, MASS: mass[0] if mass else "–"})
    for name, algorithm in PRINTED.items():
        printed = dict(told.filter(measure=ERROR, ranking=name).select("labels", "printed").rows())
        row = {_percent(share): "–" if printed[share] is None else f"{printed[share]}" for share in shares}
        rows.append({"ranking": f"{algorithm}, printed", **row, MASS: "–"})
    return pl.DataFrame(rows)


class Draws(NamedTuple):
    """Values of all draws by measure, ranking and share of labels, and these shares."""

    values: dict[tuple[str, str, float], np.ndarray]
    shares: list[float]

    def gaps(self, measure: str, ours: str, theirs: str) -> np.ndarray:
        """Return ours minus theirs, shares x draws."""
        return np.array(
            [self.values[measure, ours, share] - self.values[measure, theirs, share] for share in self.shares]
        )

    def most(self, measure: str, name: str) -> np.ndarray:
        """Return the values with the largest share of labels."""
        return self.values[measure, name, self.shares[-1]]


def _verdicts(draws: Draws, constant: float) -> Iterator[Verdict]:
    """Judge the dissertation's claims; ``constant`` is the error of calling nothing spam."""
    for way in WAYS:
        yield like_with_like(draws, way)
    yield few_are_enough(draws)
    yield useless(draws, constant)
    for way in WAYS:
        yield less_mass(draws, way)
    yield linear_is_better(draws)
    yield without_labels(draws)


def like_with_like(draws: Draws, way: str) -> Verdict:
    """Claim: Lin-L_pq makes fewer errors than Lin-PageRank, the dissertation's TrustRank (Figure 6.11)."""
    gaps = draws.gaps(ERROR, f"Lin-L_2,2.4, {way}", f"Lin-PageRank, {way}")
    means = zip(map(mean_over_splits, gaps), draws.shares, strict=True)
    words = ", ".join(f"{mean} at {_percent(share)}" for mean, share in means)
    row = f"Lin-L_pq makes fewer errors than Lin-PageRank, both {way}"
    why = f"difference in percent {{}} over all shares of labels; {words}"
    # a single test over all shares: with one test per share, a chance result among five would decide
    return mean_verdict(row, gaps.mean(axis=0), why, sign=-1)


def few_are_enough(draws: Draws) -> Verdict:
    """Claim: Lin-L_pq with the fewest labels is better than Lin-PageRank with the most."""
    ours, theirs = PRINTED
    few, many = draws.values[ERROR, ours, draws.shares[0]], draws.most(ERROR, theirs)
    why = (
        f"{ours} with {_percent(draws.shares[0])} labels has {few.mean():.2f} % errors, {theirs} with "
        f"{_percent(draws.shares[-1])} {many.mean():.2f} %; printed 7.548, 14.57 %"
    )
    return mean_verdict("a fraction of the labels is enough", many - few, why)


def useless(draws: Draws, constant: float) -> Verdict:
    """Claim: with few labels TrustRank is worse than calling nothing spam, as the printed errors are."""
    few = draws.values[ERROR, "TrustRank", draws.shares[0]].mean()
    why = (
        f"{few:.2f} % errors with {_percent(draws.shares[0])} labels, {constant:.2f} % if nothing is called spam; "
        "printed 65.103, about 20 %"
    )
    return claim("TrustRank with few labels is worse than no answer", bool(few > constant), why)


def less_mass(draws: Draws, way: str) -> Verdict:
    """Claim: Lin-L_pq gives spam less than Lin-PageRank and TrustRank itself (Figure 6.9)."""
    name = f"Lin-L_2,2.4, {way}"
    others = f"Lin-PageRank, {way}", "TrustRank"
    gaps = [mean_over_splits(draws.most(MASS, name) - draws.most(MASS, other)) for other in others]
    why = (
        f"spam has {draws.most(MASS, name).mean():.3g} % with {_percent(draws.shares[-1])} labels; the difference from "
        f"Lin-PageRank is {gaps[0]}, from TrustRank itself {gaps[1]}"
    )
    row = f"Lin-L_pq gives spam less than TrustRank, distrust {way}"
    return signed_verdict(row, -max(gap.sign for gap in gaps), why)


def linear_is_better(draws: Draws) -> Verdict:
    """Claim: linear trust is better than trust spread by the same norm as the rank (Figures 6.4 and 6.7)."""
    gaps, words = [], []
    for name in list(BASES)[1:]:
        for way in WAYS:
            linear, alike = (
                draws.most(MASS, row.format(name, way)) for row in ("Lin-{}, {}", "{}, trust alike, {}")
            )
            gaps.append(mean_over_splits(linear - alike))
            words.append(f"{name} {way} {linear.mean():.3g} and {alike.mean():.3g} %")
    why = f"spam mass with linear and with non-linear trust: {', '.join(words)}"
    return signed_verdict("linear trust is better than non-linear", -max(gap.sign for gap in gaps), why)


def without_labels(draws: Draws) -> Verdict:
    """Claim: L_4,4.8 without labels gives spam no more than PageRank with labels (Figure 6.7)."""
    without, labelled = (draws.most(MASS, name).mean() for name in ("L_4,4.8", "Lin-PageRank, against"))
    why = f"spam has {without:.3g} % with L_4,4.8 and {labelled:.3g} % with PageRank and labels"
    return claim("L_pq without labels as good as PageRank with them", bool(without <= labelled), why)


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _notes(web: Web, repeats: int) -> list[str]:
    share = f"{100 * web.spam.sum() / web.judged.sum():.1f} %"
    return [
        f"{web.name}: {share} of {web.judged.sum():,} judged vertices are spam. The dissertation's crawl is not "
        "public: only the shape can agree, not the level.",
        f"Errors in percent of the judged vertices without label, mean ± standard error over {repeats} draws of "
        f"labels; a constant answer has {share}. Spam mass in percent, with the largest share of labels; scores "
        "of anti-TrustRank and demoted rank are negative, so they have none.",
        "Lin-: the rank times x₊/(x₊ + x₋), trust x₊ along the links, distrust x₋ along or against them, both spread "
        f"linearly, γ = {GAMMA}. The dissertation calls Lin-PageRank, along, TrustRank. Trust alike: spread by "
        "the same norm as the rank.",
        "The labelled vertices are the seeds, and the threshold is learnt on them too. A trusted seed always has a "
        "share of the teleport, so TrustRank's threshold may lie just below it and call nearly all others spam, "
        "which may explain the printed 65 %.",
    ]


def _draw(table: pl.DataFrame, shares: list[float], web: Web, scores: dict[str, np.ndarray]) -> Figure:
    """Draw Figure 6.11 with distrust in either direction, and Figure 6.10 with the labels of the last draw."""
    figure, (*pair, last) = panels(14, 4.4, 1, 3)
    pair[1].sharey(pair[0])
    for ax, way in zip(pair, WAYS, strict=True):
        for number, name in enumerate((f"Lin-L_2,2.4, {way}", f"Lin-PageRank, {way}", "TrustRank")):
            part, style = table.filter(ranking=name, measure=ERROR), line_style(number)
            bars = {"yerr": part["standard_error"], "capsize": 2, "label": name}
            ax.errorbar(part["labels"], part["mean"], **bars, **style)
            if name in PRINTED:
                pale = style | {"alpha": 0.35, "marker": None}
                ax.plot(part["labels"], part["printed"], label=f"{PRINTED[name]}, printed", **pale)
        ax.set(xscale="log", yscale="log", xlabel="labelled vertices", title=f"Distrust {way} the links")
        ax.set_xticks(shares, [_percent(share) for share in shares])
        ax.yaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
        light(ax)
        legend(ax, fontsize="small")
    pair[0].set_ylabel("error, percent")
    linear = *(f"Lin-{base}, along" for base in BASES), "Lin-L_2,2.4, against"
    names = ["PageRank", "L_2,2.4", "TrustRank", *linear]
    chosen = {name: scores[name][web.judged] for name in names}
    CumulativeSpamDisplay.from_scores(chosen, web.spam[web.judged], ax=last, log_x=True, log_y=True)
    last.set_title(f"Spam met down the ranking, {_percent(shares[-1])} labels")
    legend(last, loc="upper left", fontsize="small")
    figure.suptitle(web.name, fontsize="medium")
    return figure
