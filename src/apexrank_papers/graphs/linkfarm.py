"""Planted link farms in a web crawl: who lifts them, who does not (Acharyya 2013, sec. 6.4.2, Figures 6.4–6.10).

`farms` makes the crawl, `linkfarm_rankings` ranks it in every way there is, `linkfarm_table` measures, and
`linkfarm_claims` and `linkfarm_figure` judge and draw. Here are the run, what it prints and its notes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank_papers.graphs.farms import DAMPING, GAMMA, RATIO, TOL, Farmed, farmed_crawl, labelled_sample
from apexrank_papers.graphs.linkfarm_claims import farm_verdicts, verdicts
from apexrank_papers.graphs.linkfarm_figure import draw
from apexrank_papers.graphs.linkfarm_rankings import (
    ANTITRUST,
    L_P_TOL,
    TRUSTRANK,
    Key,
    labelled,
    name_of,
    plain_histories,
    unlabelled,
)
from apexrank_papers.graphs.linkfarm_table import (
    CHOSEN,
    DEPTHS,
    PLAIN,
    WORST_BOUND,
    Found,
    measured,
    percent,
    powers,
)
from apexrank_papers.result import Experiment, Result


def linkfarm(
    *,
    crawl: str = "auto",
    farms: int = 50,
    boosters: int = 200,
    hijacked: int = 0,
    ps: Sequence[float] = (1, 1.5, 2, 4, 8, np.inf),
    ratios: Sequence[float] = (1, 1.05, 1.2, 1.5, 2),
    labels: Sequence[float] = (0.01, 0.02, 0.05, 0.1),
    n: int = 100_000,
    random_state: int = 0,
) -> Result:
    """Rank a crawl with planted farms in every way there is, and see how much the farms get.

    Parameters
    ----------
    crawl : {"auto", "cnr-2000", "synthetic"}
        Auto takes cnr-2000 where ``$APEXRANK_DATA`` has it, and else makes up a crawl of ``n`` pages.
    farms, boosters : int
        Number of farms, and of boosters in each.
    hijacked : int
        Honest pages, drawn at random, that are made to link to each target: then trust gets into farms as well.
    ps, ratios : sequence of float
        Powers p, and ratios q/p; p = 1, 2, 4 and the ratios 1 and 1.2 are always among them.
    labels : sequence of float
        Shares of all vertices, drawn at random, whose labels are known.
    n : int
        Pages of a made-up crawl.
    random_state : int
        Where the made-up crawl and the labels come from.
    """
    if not labels:
        raise InputError("labels needs at least one share of labelled vertices, such as 0.1")
    farmed = farmed_crawl(crawl, n, farms, boosters, hijacked, random_state)
    all_ps, all_ratios = sorted({*map(float, ps), 1.0, 2.0, 4.0}), sorted({*map(float, ratios), 1.0, RATIO})
    bases = list(unlabelled(farmed.graph, all_ps, all_ratios))
    trials = {trial.key: trial for trial in bases}
    rng = np.random.default_rng(random_state)
    for share in sorted(labels):
        known = labelled_sample(farmed.spam, share, rng)
        trials |= {trial.key: trial for trial in labelled(farmed.graph, bases, share, *known)}
    reference = trials[*PLAIN, None].scores
    rows = [row for trial in trials.values() for row in measured(farmed, trial, reference)]
    table = pl.DataFrame(rows, schema_overrides={"p": pl.Float64, "ratio": pl.Float64, "labels": pl.Float64})
    found, plain = Found(table), plain_histories(farmed.graph)
    judged = [*verdicts(found, plain), *farm_verdicts(found, farmed)]
    return Result(table, _view(found), judged, draw(found, farmed, trials, plain), _notes(farmed, found))


def _view(found: Found) -> pl.DataFrame:
    lines: list[Key] = [("in-degree", None, None, None), (*PLAIN, None)]
    lines += [("L_p", p, 1.0, None) for p in found.ps("L_p")]
    lines += [("L_pq", p, RATIO, None) for p in found.ps("L_pq")]
    for share in found.few_and_many:
        lines += [("Lin-L_pq", p, RATIO, share) for p in found.ps("Lin-L_pq")]
        lines += [(method, 1.0, 1.0, share) for method in (ANTITRUST, TRUSTRANK)]
        lines += [(method, None, None, share) for method in ("TrustRank", "anti-TrustRank", "demoted rank")]
    return pl.DataFrame([_view_row(found, line) for line in lines])


def _view_row(found: Found, line: Key) -> dict[str, str]:
    def cell(measure: str, pattern: str) -> str:
        value = found(measure, *line)
        return "–" if np.isnan(value) else pattern.format(value)

    def share(measure: str, places: int) -> str:
        return cell(measure, f"{{:.{places}%}}").replace("%", " %")

    method, p, ratio, labels = line
    met = [cell(f"spam in the first {depth}", "{:.0f}") for depth in DEPTHS]
    return {
        "ranking": name_of(method, p, ratio),
        "labels": "–" if labels is None else percent([labels]),
        "spam mass": share("spam mass", 3),
        "in cycles": share("mass of closed cycles", 1),
        "median": cell("median target", "{:,.0f}"),
        "best": cell("best target", "{:,.0f}"),
        "ordinary": cell("ordinary pages above", "{:,.0f}"),
        "100/1k/10k": "–" if "–" in met else "/".join(met),
        "footrule": cell("footrule to PageRank", "{:.3f}"),
        "steps": cell("steps", "{:.0f}"),
    }


def _notes(farmed: Farmed, found: Found) -> list[str]:
    bounds = {p: found("error bound", "L_p", p, 1.0) for p in found.ps("L_p", "error bound")}
    missed = [f"{bound:.1e} at p = {powers([p])}" for p, bound in bounds.items() if bound > L_P_TOL]
    unsure = f" L_p's bound is {', '.join(missed)}; not measured above {WORST_BOUND:g}." if missed else ""
    notes = [
        f"{farmed.name}: {100 * farmed.spam.mean():.1f} % of {farmed.graph.n:,} vertices are spam, all of it planted. "
        "The dissertation's crawl has 20 % of human-labelled spam: only orders and shapes can agree.",
        "Columns: score that spam and closed cycles hold; median and best position of the farms' targets; ordinary "
        "honest pages (not on closed cycles) above the median target; spam among the first "
        f"{', '.join(f'{depth:,}' for depth in DEPTHS)}; footrule to PageRank on honest vertices over n², at most 1/2. "
        "Equal vertices share their mean position.",
        f"Damping {DAMPING}; scores to {TOL:g} in the L1 norm by certificate, L_p to {L_P_TOL:g}.{unsure}",
        "Lin-: times x₊/(x₊ + x₋), trust and distrust spread linearly from a random sample with true labels, γ = "
        f"{GAMMA}; distrust runs against the links unless it says along. anti-TrustRank and demoted rank have negative "
        "scores, so there is no mass.",
        *_on_cycles(farmed, found),
    ]
    if not farmed.hijacked:
        notes.append(
            "No honest page links into a farm, so TrustRank proper gives spam nothing by construction. The option "
            "hijacked makes honest pages link to targets."
        )
    return notes


def _on_cycles(farmed: Farmed, found: Found) -> list[str]:
    """What closed cycles are, and how many of the pages above the farms are on them."""
    closed, others = (
        [found(f"{pages} above", *key) for key in (CHOSEN, PLAIN)]
        for pages in ("closed cycles", "ordinary pages")
    )
    above = (
        f"Above the median target with L_2,2.4 stand {closed[0]:,.0f} honest pages on closed cycles and "
        f"{others[0]:,.0f} others; with PageRank {closed[1]:,.0f} and {others[1]:,.0f}."
    )
    if closed[0] > 0.9 * (closed[0] + others[0]):
        above += (
            " So nearly all pages above the farms under L_2,2.4 only link to themselves or round a cycle, and the "
            "position says little."
        )
    return [
        f"Closed cycles: {len(farmed.cycles):,} vertices that only link to themselves or round a cycle. What they hold "
        "comes back undivided, so rank gathers there as q nears p: spam gets less because all others do, and spammers "
        "can make such cycles as well (boosters=1).",
        above,
    ]


EXPERIMENTS = (
    Experiment("linkfarm", "Acharyya 2013, Figures 6.4–6.10: link farms planted in a web crawl", linkfarm),
)
