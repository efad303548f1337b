"""Planted link farms in a web crawl, ranked without labels (Acharyya 2013, sec. 6.4.2, Figures 6.4–6.8).

`farms` builds the graphs. Three are ranked: the crawl as it is, the crawl without self-loops, and one in which a farm
is a pair of pages that link to each other. The measures of every ranking of every graph go into one tidy table, from
which the verdicts read them. The spam is planted, so only orders and shapes can agree with the dissertation.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
)
from apexrank.graph.lpq import Lpq
from apexrank.graph.power import Walk, iterate, no_bound
from apexrank.metrics import spam_mass, spam_met
from apexrank.plot import CumulativeSpamDisplay
from apexrank.plot.style import curve_style, legend, line_style
from apexrank_papers.graphs.baselines import TruncatedPageRank
from apexrank_papers.graphs.farms import CRAWLS, DAMPING, RATIO, TOL, USUAL, Web, farmed_crawl
from apexrank_papers.result import (
    Figure,
    Result,
    Verdict,
    claim,
    draw_lines,
    panels,
    question,
    signed_verdict,
)

SMALL_CHANGE = 1e-6  # change of a step at which the dissertation stops
L_P_TOL, L_P_STEPS = 1e-6, 200  # q = p takes far more steps, and not every solution gets a certificate
PLAIN_PS = (2.0, 4.0)  # powers for which plain iteration with q = p is recorded
DEPTHS = (100, 1000, 10_000)
WORST_BOUND = 1e-3  # scores with a larger error bound are not measured
CRAWLED, NO_LOOPS, PAIRS = "as crawled", "no self-loops", "pairs"  # the graphs

Key = tuple[str, float | None, float | None]
IN_DEGREE: Key = ("in-degree", None, None)
PLAIN: Key = ("PageRank", 1.0, 1.0)
CHOSEN: Key = ("L_pq", 2.0, RATIO)
WEAK: Key = ("L_2,2.4, weak links", None, None)
TRUNCATED: Key = ("truncated PageRank", None, None)
NON_BACKTRACKING: Key = ("non-backtracking", None, None)
GUARDED: Key = ("guarded PageRank", None, None)
OURS = (NON_BACKTRACKING, GUARDED)
# the other reading of eq. 6.1, and ranks that are not in the dissertation
RELATIVES: dict[Key, Any] = {
    WEAK: LpqRank(2, RATIO, DAMPING, teleport="weak-links", tol=TOL),
    TRUNCATED: TruncatedPageRank(2, damping=DAMPING, tol=TOL),
    NON_BACKTRACKING: NonBacktrackingRank(2, damping=DAMPING, tol=TOL),
    GUARDED: GuardedPageRank(damping=DAMPING, tol=TOL),
}


def linkfarm(
    *,
    data: str = "auto",
    farms: int = 50,
    boosters: int = 200,
    hijacked: int = 0,
    ps: Sequence[float] = (1, 1.5, 2, 4, 8, np.inf),
    ratios: Sequence[float] = (1, 1.05, 1.2, 1.5, 2),
    n: int = 100_000,
    random_state: int = 0,
) -> Result:
    """Rank a crawl with planted farms by every label-free method, and measure how much the farms gain.

    Parameters
    ----------
    data : {"auto", "cnr-2000", "synthetic"} or path
        "auto" uses cnr-2000 if it is in ``$APEXRANK_DATA``, and otherwise generates a crawl of ``n`` pages. In a folder
        of WEBSPAM-UK nothing is planted: the targets are the hosts labelled spam.
    farms, boosters : int
        Number of farms, and number of boosters in each.
    hijacked : int
        Number of random honest pages that link to each target.
    ps, ratios : sequence of float
        Powers p and ratios q/p; p = 1, 2, 4 and the ratios 1 and 1.2 are always included.
    n : int
        Number of pages of a synthetic crawl.
    random_state : int
        Seed of the synthetic crawl and the hijacked pages.
    """
    all_ps, all_ratios = sorted({*map(float, ps), 1.0, 2.0, 4.0}), sorted({*map(float, ratios), 1.0, RATIO})

    def web(size: int, self_loops: str) -> Web:
        return farmed_crawl(data, n, farms, size, hijacked, random_state, self_loops=self_loops)

    webs = {CRAWLED: web(boosters, "keep"), NO_LOOPS: web(boosters, "drop")}
    if data in CRAWLS:
        webs[PAIRS] = web(1, "drop")
    rows: list[dict[str, Any]] = []
    trials: dict[str, dict[Key, Trial]] = {}
    for graph, each in webs.items():
        # the grid of p and q/p is the dissertation's, for the crawl as it is
        grid = (all_ps, all_ratios) if graph == CRAWLED else ([p for p in all_ps if p > 1], [RATIO])
        trials[graph] = {trial.key: trial for trial in ranked(each.graph, *grid)}
        rows += [row for trial in trials[graph].values() for row in measured(graph, each, trial)]
        rows += footrules(graph, each, (trials[graph][key] for key in _compared(all_ps)))
    table = pl.DataFrame(rows, schema_overrides={"p": pl.Float64, "ratio": pl.Float64})
    found, plain = Found(table), plain_histories(webs[CRAWLED].graph)
    figure = _draw(found, webs[CRAWLED], trials[CRAWLED], plain)
    usual = webs[CRAWLED].name.startswith(USUAL)
    return Result(table, _view(found), list(verdicts(found, plain)), figure, _notes(webs, found), usual)


def _compared(ps: Sequence[float]) -> list[Key]:
    """List the rankings that are compared and measured on every graph."""
    return [IN_DEGREE, PLAIN, *RELATIVES, *(("L_pq", p, RATIO) for p in ps if p > 1)]


def _view(found: Found) -> pl.DataFrame:
    lines = _compared(found.ps("L_pq"))
    lp: list[Key] = [("L_p", p, 1.0) for p in found.ps("L_p")]
    keys = [(graph, key) for graph in found.graphs for key in (*lines, *(lp if graph == CRAWLED else []))]
    return pl.DataFrame([_view_row(found, *key) for key in keys])


def _view_row(found: Found, graph: str, line: Key) -> dict[str, str]:
    def cell(measure: str, pattern: str) -> str:
        value = found(measure, *line, graph)
        return "–" if np.isnan(value) else pattern.format(value)

    def share(measure: str, places: int) -> str:
        return cell(measure, f"{{:.{places}%}}").replace("%", " %")

    met = [cell(f"spam in the first {depth}", "{:.0f}") for depth in DEPTHS]
    return {
        "graph": graph,
        "ranking": name_of(*line),
        "spam mass": share("spam mass", 2),
        "in cycles": share("mass of closed cycles", 1),
        "closed": cell("closed cycles in the first 100", "{:.0f}"),
        "median": cell("median target", "{:,.0f}"),
        "ordinary": cell("ordinary pages above", "{:,.0f}"),
        "100/1k/10k": "/".join(met),
        "footrule": "0.000" if line == PLAIN else cell("footrule to PageRank", "{:.3f}"),
    }


def _notes(webs: Mapping[str, Web], found: Found) -> list[str]:
    bounds = {p: found("error bound", "L_p", p, 1.0) for p in found.ps("L_p", "error bound")}
    missed = [f"{bound:.1e} at p = {powers([p])}" for p, bound in bounds.items() if bound > L_P_TOL]
    unsure = f" L_p's bound is {', '.join(missed)}; not measured above {WORST_BOUND:g}." if missed else ""
    web = webs[CRAWLED]
    cycles = ", ".join(f"{each.cycles.sum():,} ({graph})" for graph, each in webs.items())
    pairs = f" Pairs: no self-loops, one booster per target ({webs[PAIRS].name})." if PAIRS in webs else ""
    return [
        f"{web.name}: {100 * web.spam.sum() / web.judged.sum():.1f} % of {web.judged.sum():,} judged vertices are "
        f"spam. The dissertation's crawl has 20 % of human-labelled spam: only orders and shapes can agree.{pairs}",
        "Columns: score held by spam and by closed cycles; pages on closed cycles among the first 100; median position "
        "of the targets; ordinary honest pages (not on closed cycles) above the median target; spam among the first "
        f"{', '.join(f'{depth:,}' for depth in DEPTHS)}; footrule to PageRank on honest vertices over n², at most 1/2. "
        "Equal vertices share their mean position.",
        f"Damping {DAMPING}; scores to {TOL:g} in the L1 norm by certificate, L_p to {L_P_TOL:g}.{unsure}",
        f"Closed cycles: vertices that link only to themselves or around a cycle, {cycles}. A norm with p > 1 loses "
        "mass where links merge and keeps it on closed cycles, so rank gathers there as q approaches p. Falling behind "
        "such pages is no protection, because spammers can create them too: pairs are such cycles.",
    ]


def verdicts(found: Found, plain: dict[float, np.ndarray]) -> Iterator[Verdict]:
    """Judge the dissertation's claims in its order, then ours; ``plain`` holds the changes of iteration with q = p."""
    yield in_degree(found)
    yield falls(found)
    yield best_ratio(found)
    yield faster(found, plain)
    yield honest_order(found)
    yield from (resists(found, graph) for graph in found.graphs)
    yield from (ours(found, key) for key in OURS)


def in_degree(found: Found) -> Verdict:
    """Claim: in-degree gives spam more than any other rank."""
    mass, plain = found("spam mass", *IN_DEGREE), found("spam mass", *PLAIN)
    others = [found.lpq("spam mass", p, RATIO) for p in found.ps("L_pq")]
    why = (
        f"in-degree gives spam {percent([mass])}, PageRank {percent([plain])}, L_pq at most {percent([max(others)])}"
        "; in the dissertation 25.3, 20.7 %"
    )
    return claim("in-degree is worst", mass > max(plain, *others), why)


def falls(found: Found) -> Verdict:
    """Claim: spam mass falls with p, with q = p and q = 1.2 p (Figures 6.4 and 6.7)."""
    lines = {"L_p": ([1.0, *found.ps("L_p")], 1.0), "L_pq": (found.ps("L_pq"), RATIO)}
    masses = {name: [found.lpq("spam mass", p, ratio) for p in ps] for name, (ps, ratio) in lines.items()}
    words = [f"{name} {percent(masses[name])} at p = {powers(ps)}" for name, (ps, _) in lines.items()]
    holds = all((np.diff(line) < 0).all() for line in masses.values())
    return claim("spam mass falls with p", holds, "; ".join(words))


def best_ratio(found: Found) -> Verdict:
    """Claim: a q slightly above p is best (Figure 6.6), neither q = p nor a large q."""
    ratios = found.ratios(2.0)
    masses = [found.lpq("spam mass", 2.0, ratio) for ratio in ratios]
    best = ratios[int(np.argmin(masses))]
    why = f"at p = 2 spam has {percent(masses)} at q/p = {powers(ratios)}: least at {best:g}"
    return claim("best q close above p, and below L_p", 1 < best <= RATIO, why)


def faster(found: Found, plain: dict[float, np.ndarray]) -> Verdict:
    """Claim: a q above p needs at most a third of the steps of plain iteration with q = p."""
    slow = [first_small(history) for history in plain.values()]
    fast = [found("steps to a change of 1e-6", "L_pq", p, RATIO) for p in plain]
    words = [f"more than {L_P_STEPS}" if np.isinf(steps) else f"{steps:.0f}" for steps in slow]
    why = (
        f"steps to a change of 1e-6 with q/p = {RATIO}: {', '.join(f'{steps:.0f}' for steps in fast)}; by plain "
        f"iteration with q = p: {', '.join(words)}; at p = {powers(plain)}"
    )
    holds = all(f * 3 <= s for f, s in zip(fast, slow, strict=True))
    return claim("q/p = 1.2 converges much faster", holds, why)


def honest_order(found: Found) -> Verdict:
    """Claim: on honest vertices L_pq stays close to PageRank and in-degree does not."""
    ps = [p for p in found.ps("L_pq") if p > 1]
    distances = [found.lpq("footrule to PageRank", p, RATIO) for p in ps]
    far = found("footrule to PageRank", *IN_DEGREE)
    words = ", ".join(f"{distance:.3f}" for distance in distances)
    why = f"footrule to PageRank {words} at p = {powers(ps)}; in-degree {far:.3f}"
    return claim("L_pq nearer to PageRank than in-degree", max(distances) < far, why)


def resists(found: Found, graph: str) -> Verdict:
    """Claim: more ordinary pages are above the targets with L_pq than with PageRank."""
    ps = [p for p in found.ps("L_pq") if p > 1]
    plain, weak, *above = (
        found("ordinary pages above", *key, graph) for key in (PLAIN, WEAK, *(("L_pq", p, RATIO) for p in ps))
    )
    closed = [found("closed cycles in the first 100", *key, graph) for key in (PLAIN, CHOSEN, WEAK)]
    why = (
        f"ordinary honest pages above the median target: {plain:,.0f} with PageRank, "
        f"{', '.join(f'{number:,.0f}' for number in above)} with L_pq at p = {powers(ps)}, {weak:,.0f} with "
        f"L_2,2.4 and weak links; of the first 100 "
        f"{closed[0]:.0f}, {closed[1]:.0f} (L_2,2.4) and {closed[2]:.0f} (weak links) are on closed cycles"
    )
    # the other graphs are ours
    judge = signed_verdict if graph == CRAWLED else question
    return claim(
        f"L_pq resists better than PageRank at every p, {graph}", min(weak, *above) > plain, why, judge
    )


def ours(found: Found, key: Key) -> Verdict:
    """Question: with our rank, are more ordinary pages above the targets and does spam have less, on every graph?"""
    holds, words = True, []
    for graph in found.graphs:
        above, mass = (
            [found(name, *each, graph) for each in (PLAIN, key)]
            for name in ("ordinary pages above", "spam mass")
        )
        holds &= above[1] > above[0] and mass[1] < mass[0]
        words.append(f"{above[0]:,.0f} and {above[1]:,.0f} {graph} (spam mass {percent(mass)})")
    near = found("footrule to PageRank", *key)
    why = (
        f"ordinary honest pages above the median target with PageRank and with it: {', '.join(words)}; footrule to "
        f"PageRank {near:.3f}"
    )
    return claim(f"ours: {name_of(*key)} resists better than PageRank", holds, why, question)


def _draw(found: Found, web: Web, trials: Mapping[Key, Trial], plain: dict[float, np.ndarray]) -> Figure:
    """Draw spam mass against p and q/p, places of the targets, convergence, footrule and spam down the ranking."""
    figure, axes = panels(14, 8.2, 2, 3)
    lines = {"L_p": [(p, found.lpq("spam mass", p, 1.0)) for p in (1.0, *found.ps("L_p"))]}
    lines[f"L_pq, q/p = {RATIO}"] = [(p, found.lpq("spam mass", p, RATIO)) for p in found.ps("L_pq")]
    flat = {name_of(*key): found("spam mass", *key) for key in (IN_DEGREE, PLAIN, *OURS)}
    _p_lines(axes[0, 0], lines, flat)
    axes[0, 0].set(ylabel="spam mass", title="Spam mass against p")
    _draw_ratios(axes[0, 1], found)
    ps = [p for p in found.ps("L_pq") if p > 1]
    lines = {
        f"L_pq, {graph}": [(p, 1 + found("ordinary pages above", "L_pq", p, RATIO, graph)) for p in ps]
        for graph in found.graphs
    }
    flat = {
        f"{name_of(*key)}, {graph}": 1 + found("ordinary pages above", *key, graph)
        for key, graph in ((PLAIN, NO_LOOPS), (PLAIN, PAIRS), *((key, NO_LOOPS) for key in OURS))
        if graph in found.graphs
    }
    _p_lines(axes[0, 2], lines, flat)
    axes[0, 2].set(ylabel="place", title="Median target among ordinary pages")
    _draw_changes(axes[1, 0], trials, plain)
    _draw_footrules(axes[1, 1], found)
    _draw_met(axes[1, 2], web, trials)
    figure.suptitle(web.name)
    return figure


def _p_lines(ax: Any, lines: dict[str, list[tuple[float, float]]], flat: dict[str, float]) -> None:
    ps = sorted({p for line in lines.values() for p, _ in line})
    last = max(p for p in ps if np.isfinite(p))
    place = {p: np.log2(p if np.isfinite(p) else 2 * last) for p in ps}
    placed = {name: ([place[p] for p, _ in line], [y for _, y in line]) for name, line in lines.items()}
    draw_lines(ax, placed, line_style, xlabel="p", yscale="log")
    for number, (name, level) in enumerate(flat.items()):
        ax.axhline(level, color="0.35", linewidth=1, linestyle=("-", ":", "--", "-.")[number], label=name)
    ax.set_xticks(list(place.values()), [powers([p]) for p in ps])
    low, high = ax.get_ylim()
    ax.set_ylim(bottom=low * (low / high) ** 0.9)  # room for the legend
    legend(ax, loc="lower left", fontsize="small")


def _draw_ratios(ax: Any, found: Found) -> None:
    """Draw spam mass against q/p (Figure 6.6)."""
    lines = {
        f"p = {powers([p])}": (found.ratios(p), [found.lpq("spam mass", p, r) for r in found.ratios(p)])
        for p in found.ps("L_pq")
    }
    draw_lines(ax, lines, line_style, xlabel="q/p", ylabel="spam mass", title="Spam mass against q/p")
    legend(ax, fontsize="small")


def _draw_changes(ax: Any, trials: Mapping[Key, Trial], plain: dict[float, np.ndarray]) -> None:
    """Draw the change in each step (Figures 6.5 and 6.8)."""
    histories = {f"L_{p:g}, plain iteration": history for p, history in plain.items()}
    keys: list[Key] = [PLAIN, *(("L_pq", p, RATIO) for p in (2.0, 4.0, np.inf))]
    histories |= {name_of(*key): trials[key].history for key in keys if key in trials}
    lines = {name: (np.arange(1, len(history) + 1), history) for name, history in histories.items()}
    labels = {"xlabel": "step t", "ylabel": "change of a step", "title": r"Convergence: $|r_t - r_{t-1}|_1$"}
    draw_lines(ax, lines, curve_style, yscale="log", **labels)
    low, high = ax.get_ylim()
    ax.set(xlim=(0, L_P_STEPS), ylim=(low / 1000, high))  # room for the legend
    legend(ax, loc="lower right", fontsize="small")


def _draw_footrules(ax: Any, found: Found) -> None:
    """Draw the footrule between all pairs of rankings (bottom of Figures 6.4 and 6.7)."""
    keys = _compared(found.ps("L_pq"))
    names = [name_of(*key) for key in keys]
    cells = [[0.0 if a == b else found(f"footrule to {name_of(*b)}", *a) for b in keys] for a in keys]
    ax.imshow(cells, cmap="Blues", vmin=0)
    middle = {"ha": "center", "va": "center", "fontsize": 7}
    for (i, j), value in np.ndenumerate(cells):
        ax.text(j, i, f"{value:.2f}", color="white" if value > 0.6 * np.max(cells) else "black", **middle)
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize="small")
    ax.set_yticks(range(len(names)), names, fontsize="small")
    ax.set_title("Footrule/n² on honest pages")


def _draw_met(ax: Any, web: Web, trials: Mapping[Key, Trial]) -> None:
    """Draw the spam met down the ranking."""
    keys = [IN_DEGREE, PLAIN, *RELATIVES, CHOSEN, ("L_pq", 4.0, RATIO)]
    scores = {name_of(*key): trials[key].scores[web.judged] for key in keys}
    CumulativeSpamDisplay.from_scores(scores, web.spam[web.judged], ax=ax, log_x=True, log_y=True)
    ax.set_title("Spam met down the ranking")
    legend(ax, loc="upper left", fontsize="small")


# ---------------------------------------------------------------- rankings


class Trial(NamedTuple):
    """One ranking of all vertices; parameters that do not apply are None, a missing history is empty."""

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
    """Compute in-degree, PageRank and its relatives, then every L_p and L_pq.

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
                continue  # PageRank, and cases without a unique solution
            key = "L_p" if ratio == 1 else "L_pq", p, ratio
            yield _trial(key, LpqRank(p, ratio, DAMPING, **limits), graph)


def _trial(key: Key, rank: Any, graph: Graph) -> Trial:
    with warnings.catch_warnings():
        # the table has the bound that was reached
        warnings.simplefilter("ignore", ConvergenceWarning)
        rank.fit(graph)
    return Trial(*key, rank.scores_, rank.n_iter_, rank.error_bound_, rank.history_)


def plain_histories(graph: Graph) -> dict[float, np.ndarray]:
    """Return the change in each step of plain iteration with q = p, which `LpqRank` replaces by root finding."""
    start = np.full(graph.n, 1 / graph.n)
    found = {}
    for p in PLAIN_PS:
        with Walk(graph, Lpq(p, 1.0), DAMPING, start) as walk:
            found[p] = np.array(iterate(walk.step, start, no_bound, SMALL_CHANGE, L_P_STEPS).history)
    return found


def first_small(history: np.ndarray) -> float:
    """Return the number of the first step that changes less than `SMALL_CHANGE`, or infinity.

    Examples
    --------
    >>> first_small(np.array([0.1, 1e-7, 1e-8])), first_small(np.array([0.1]))
    (2.0, inf)
    """
    small = np.flatnonzero(history < SMALL_CHANGE)
    return float(small[0] + 1) if len(small) else np.inf


def name_of(method: str, p: float | None = None, ratio: float | None = None) -> str:
    """Return the usual name of a ranking.

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
    """Yield one row for each number; a solution without a certificate has only its known values."""
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
    """Measure the shares of spam and closed cycles, and the places of the targets among the judged vertices."""
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
    """Compute Spearman's footrule over n² between all pairs of rankings on honest vertices (Figures 6.4 and 6.7)."""
    honest = web.judged & ~web.spam
    places = {trial.key: rankdata(-trial.scores[honest], method="average") for trial in trials}
    for (one, here), (other, there) in permutations(places.items(), 2):
        distance = np.abs(here - there).sum() / honest.sum() ** 2
        yield from _rows(graph, one, {f"footrule to {name_of(*other)}": distance})


class Found:
    """Look up a number in the table by measure, method and settings.

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
        self, measure: str, method: str, p: float | None, ratio: float | None, graph: str = CRAWLED
    ) -> float:
        """Return the number, or nan if there is none."""
        return self.values.get((measure, method, p, ratio, graph), np.nan)

    def ps(self, method: str, measure: str = "spam mass") -> list[float]:
        """Return the powers with which a method was measured."""
        return sorted({key[2] for key in self.values if key[:2] == (measure, method)})

    def ratios(self, p: float) -> list[float]:
        """Return the ratios with which the rank of a power was measured."""
        methods = ("L_p", "L_pq") if p > 1 else ("PageRank", "L_pq")
        wanted = [("spam mass", method, p) for method in methods]
        return sorted({key[3] for key in self.values if key[:3] in wanted})

    def lpq(self, measure: str, p: float, ratio: float) -> float:
        """Return the number of L_pq, which is PageRank or L_p at ratio 1."""
        method = "L_pq" if ratio > 1 else "PageRank" if p == 1 else "L_p"
        return self(measure, method, p, ratio)


def percent(values: Iterable[float]) -> str:
    """Format shares in percent.

    Examples
    --------
    >>> percent([0.01, 0.00382])
    '1, 0.382 %'
    """
    return ", ".join(f"{100 * value:.3g}" for value in values) + " %"


def powers(ps: Iterable[float]) -> str:
    """Format values of p.

    Examples
    --------
    >>> powers([1, 1.5, np.inf])
    '1, 1.5, ∞'
    """
    return ", ".join("∞" if np.isinf(p) else f"{p:g}" for p in ps)
