"""Planted link farms in a web crawl: who lifts them, who does not (Acharyya 2013, sec. 6.4.2, Figures 6.4–6.10).

`farms` makes the crawl, `rankings` ranks it in every way there is. The spam is planted, so levels cannot agree with the
dissertation's, only orders and shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank_papers.figure import new_figure
from apexrank_papers.graphs.farms import DAMPING, GAMMA, RATIO, TOL, Farmed, farmed_crawl, labelled_sample
from apexrank_papers.graphs.rankings import (
    ANTITRUST,
    CHOSEN,
    DEPTHS,
    L_P_STEPS,
    L_P_TOL,
    PLAIN,
    TRUSTRANK,
    WORST_BOUND,
    Found,
    Key,
    Trial,
    first_small,
    labelled,
    measured,
    name_of,
    percent,
    plain_histories,
    powers,
    unlabelled,
)
from apexrank_papers.result import Result, Verdict, claim, signed_verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEGEND: dict[str, Any] = {"frameon": False, "handlelength": 3.2, "fontsize": "small"}


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
    return Result(table, _view(found), judged, _draw(found, farmed, trials, plain), _notes(farmed, found))


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


def verdicts(found: Found, plain: dict[float, np.ndarray]) -> Iterator[Verdict]:
    """The dissertation's claims, in its order; ``plain`` has the changes of plain iteration with q = p."""
    yield in_degree(found)
    yield falls(found, 1.0, "spam mass falls with p (L_p)")
    yield falls(found, RATIO, "spam mass falls with p (L_pq)")
    yield below_lp(found)
    yield best_ratio(found)
    yield faster(found, plain)
    yield honest_order(found)
    yield from (below_established(found, method) for method in (TRUSTRANK, ANTITRUST, "TrustRank"))
    yield as_good_without_labels(found)
    yield first_ranks(found)


def in_degree(found: Found) -> Verdict:
    """In-degree gives spam more than any other rank."""
    mass, plain = found("spam mass", "in-degree"), found("spam mass", *PLAIN)
    others = [found.lpq("spam mass", p, RATIO) for p in found.ps("L_pq")]
    why = (
        f"in-degree gives spam {percent([mass])}, PageRank {percent([plain])}, L_pq at most {percent([max(others)])}"
        "; in the dissertation 25.3, 20.7 %"
    )
    return claim("in-degree is worst", mass > max(plain, *others), why)


def falls(found: Found, ratio: float, row: str) -> Verdict:
    """Spam mass falls with p."""
    ps = [1.0, *found.ps("L_p")] if ratio == 1 else found.ps("L_pq")
    masses = [found.lpq("spam mass", p, ratio) for p in ps]
    return claim(row, bool((np.diff(masses) < 0).all()), f"{percent(masses)} at p = {powers(ps)}")


def below_lp(found: Found) -> Verdict:
    """L_pq gives spam less than L_p."""
    ps = found.ps("L_p")
    with_p, with_q = ([found.lpq("spam mass", p, ratio) for p in ps] for ratio in (1.0, RATIO))
    why = f"L_p {percent(with_p)}, L_pq {percent(with_q)} at p = {powers(ps)}"
    return claim("L_pq below L_p", all(q < p for p, q in zip(with_p, with_q, strict=True)), why)


def best_ratio(found: Found) -> Verdict:
    """A q a little above p is best (Figure 6.6), neither q = p nor a large q."""
    ratios = found.ratios(2.0)
    masses = [found.lpq("spam mass", 2.0, ratio) for ratio in ratios]
    best = ratios[int(np.argmin(masses))]
    why = f"at p = 2 spam has {percent(masses)} at q/p = {powers(ratios)}: least at {best:g}"
    return claim("best q close above p", 1 < best <= RATIO, why)


def faster(found: Found, plain: dict[float, np.ndarray]) -> Verdict:
    """A q above p needs a third of the steps of plain iteration with q = p, or fewer."""
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
    """On honest vertices L_pq stays near PageRank, in-degree does not."""
    ps = [p for p in found.ps("L_pq") if p > 1]
    distances = [found.lpq("footrule to PageRank", p, RATIO) for p in ps]
    far = found("footrule to PageRank", "in-degree")
    words = ", ".join(f"{distance:.3f}" for distance in distances)
    why = f"footrule to PageRank {words} at p = {powers(ps)}; in-degree {far:.3f}"
    return claim("L_pq nearer to PageRank than in-degree", max(distances) < far, why)


def below_established(found: Found, method: str) -> Verdict:
    """Lin-L_pq with p from 2 on gives spam less than an established method, at every share of labels."""
    p, ratio = (None, None) if method == "TrustRank" else (1.0, 1.0)
    ps = [power for power in found.ps("Lin-L_pq") if power >= 2]
    theirs = [found("spam mass", method, p, ratio, share) for share in found.labels]
    ours = [
        max(found("spam mass", "Lin-L_pq", power, RATIO, share) for power in ps) for share in found.labels
    ]
    names = {TRUSTRANK: "TrustRank as the dissertation has it", ANTITRUST: "its AntiTrustRank"}
    row = f"Lin-L_pq below {names.get(method, 'TrustRank proper')}"
    why = (
        f"with {percent(found.labels)} labels Lin-L_pq gives spam at most {percent(ours)} (p from 2 on), {method} "
        f"{percent(theirs)}"
    )
    gaps = np.array(ours) - theirs
    # where every farm holds a label both give spam nothing, and there is nothing to compare
    return signed_verdict(row, -1 if (gaps > 0).any() else 1 if (gaps < 0).any() else 0, why)


def as_good_without_labels(found: Found) -> Verdict:
    """L_4,4.8 without labels gives spam no more than PageRank with all labels there are."""
    without = found.lpq("spam mass", 4.0, RATIO)
    share = found.labels[-1]
    labelled = found("spam mass", ANTITRUST, 1.0, 1.0, share)
    why = f"spam has {percent([without])} with L_4,4.8 and {percent([labelled])} with PageRank and labels"
    row = f"L_pq without labels as good as PageRank with {percent([share])} of them"
    return claim(row, without <= labelled, why)


def first_ranks(found: Found) -> Verdict:
    """Figure 6.10: few spam vertices first with Lin-L_pq, many with PageRank, most with in-degree."""
    share = found.labels[-1]
    keys = (("in-degree",), PLAIN, ("Lin-L_pq", 2.0, RATIO, share))
    worst, plain, best = (
        np.array([found(f"spam in the first {depth}", *key) for depth in DEPTHS]) for key in keys
    )
    words = ["/".join(f"{number:.0f}" for number in line) for line in (DEPTHS, worst, plain, best)]
    why = (
        f"spam in the first {words[0]}: in-degree {words[1]}, PageRank {words[2]}, Lin-L_2,2.4 with "
        f"{percent([share])} labels {words[3]}"
    )
    holds = (best < plain).any() and (best <= plain).all() and (plain <= worst).all()
    return claim("spam among the first ranks", bool(holds), why)


def farm_verdicts(found: Found, farmed: Farmed) -> Iterator[Verdict]:
    """What farms should lose, and on cnr-2000 with the defaults the numbers they are known to have."""
    planted = len(farmed.targets), farmed.boosters, farmed.hijacked
    known = farmed.crawl == "cnr-2000" and planted == (50, 200, 0)
    before, after = (found("median target", *key) for key in (PLAIN, CHOSEN))
    why = f"median target at {before:,.0f} with PageRank, {after:,.0f} with L_2,2.4"
    if known:
        far, why = abs(before - 140) < 14 and after > 9000, f"{why}; expected about 140, and beyond 9,000"
    else:
        far = after > 10 * before
    yield claim("L_2,2.4 puts farms far down", far, why)
    yield among_ordinary(found)
    before, after = (found("spam mass", *key) for key in (PLAIN, CHOSEN))
    why = f"spam has {percent([before])} with PageRank, {percent([after])} with L_2,2.4"
    half = after < before / 2
    if known:
        half, why = half and abs(before - 0.043) < 0.001, f"{why}; expected 4.3 % and less than half"
    yield claim("less than half of the spam mass", half, why)


def among_ordinary(found: Found) -> Verdict:
    """A fall behind pages that link to themselves alone is no protection: do others overtake the farms as well?"""
    ps = [p for p in found.ps("L_pq") if p > 1]
    plain, at_two = (found("ordinary pages above", *key) for key in (PLAIN, CHOSEN))
    above = ", ".join(f"{found('ordinary pages above', 'L_pq', p, RATIO):,.0f}" for p in ps)
    why = (
        f"ordinary honest pages above the median target: {plain:,.0f} with PageRank, {above} with L_pq at p = "
        f"{powers(ps)}; those on closed cycles not counted"
    )
    return claim("L_2,2.4 puts farms down among ordinary pages", at_two > plain, why)


def _draw(
    found: Found, farmed: Farmed, trials: Mapping[Key, Trial], plain: dict[float, np.ndarray]
) -> Figure:
    """Spam mass against p and q/p, steps, convergence, and spam met down the ranking."""
    figure = new_figure(13.5, 8)
    axes = figure.subplots(2, 3)
    _draw_masses(axes[0, 0], found)
    _draw_ratios(axes[0, 1], found, "spam mass")
    _draw_ratios(axes[0, 2], found, "steps to a change of 1e-6")
    _draw_changes(axes[1, 0], trials, plain)
    _draw_curves(axes[1, 1:], found.labels[-1], farmed.spam, trials)
    figure.suptitle(farmed.name)
    return figure


def _draw_masses(ax: Any, found: Found) -> None:
    """Figures 6.4, 6.7 and 6.9 in one: spam mass against p."""
    lines = {"L_p": [(p, found.lpq("spam mass", p, 1.0)) for p in (1.0, *found.ps("L_p"))]}
    lines[f"L_pq, q/p = {RATIO}"] = [(p, found.lpq("spam mass", p, RATIO)) for p in found.ps("L_pq")]
    for share in found.few_and_many:
        line = [(p, found("spam mass", "Lin-L_pq", p, RATIO, share)) for p in found.ps("Lin-L_pq")]
        if any(mass > 0 for _, mass in line):  # the axis is logarithmic
            lines[f"Lin-L_pq, {100 * share:.3g} % labels"] = line
    flat = {"in-degree": found("spam mass", "in-degree"), "PageRank": found("spam mass", *PLAIN)}
    _p_lines(ax, lines, flat)
    ax.set(xlabel="p", ylabel="spam mass", title="Spam mass against p")


def _p_lines(ax: Any, lines: dict[str, list[tuple[float, float]]], flat: dict[str, float]) -> None:
    from apexrank.plot.style import light, line_style

    ps = sorted({p for line in lines.values() for p, _ in line})
    last = max(p for p in ps if np.isfinite(p))
    place = {p: np.log2(p if np.isfinite(p) else 2 * last) for p in ps}
    for number, (name, line) in enumerate(lines.items()):
        ax.plot([place[p] for p, _ in line], [y for _, y in line], label=name, **line_style(number))
    for number, (name, level) in enumerate(flat.items()):
        ax.axhline(level, color="0.35", linewidth=1, linestyle=("-", ":")[number], label=name)
    ax.set_xticks(list(place.values()), [powers([p]) for p in ps])
    light(ax)
    ax.set_yscale("log")
    ax.set_ylim(bottom=ax.get_ylim()[0] / 8)  # room for the legend
    ax.legend(loc="lower left", ncols=2, **_LEGEND)


def _draw_ratios(ax: Any, found: Found, measure: str) -> None:
    """Figure 6.6: spam mass, or steps, against q/p."""
    from apexrank.plot.style import light, line_style

    for number, p in enumerate(found.ps("L_pq")):
        points = [(ratio, found.lpq(measure, p, ratio)) for ratio in found.ratios(p)]
        points = [point for point in points if np.isfinite(point[1])]
        ax.plot(*zip(*points, strict=True), label=f"p = {powers([p])}", **line_style(number))
    what = "steps" if measure.startswith("steps") else measure
    ax.set(xlabel="q/p", ylabel=measure, title=f"{what.capitalize()} against q/p")
    light(ax)
    ax.legend(**_LEGEND)


def _draw_changes(ax: Any, trials: Mapping[Key, Trial], plain: dict[float, np.ndarray]) -> None:
    """Figures 6.5 and 6.8: change of each step."""
    from apexrank.plot.style import curve_style, light

    lines = {f"L_{p:g}, plain iteration": history for p, history in plain.items()}
    keys: list[Key] = [(*PLAIN, None), ("L_pq", 2.0, 1.05, None)]
    keys += [("L_pq", p, RATIO, None) for p in (2.0, 4.0, np.inf)]
    lines |= {name_of(*key): trials[key].history for key in keys if key in trials}
    for number, (name, history) in enumerate(lines.items()):
        ax.plot(np.arange(1, len(history) + 1), history, label=name, **curve_style(number))
    ax.set(
        yscale="log", xlabel="step t", ylabel="change of a step", title=r"Convergence: $|r_t - r_{t-1}|_1$"
    )
    low, high = ax.get_ylim()
    ax.set(xlim=(0, L_P_STEPS), ylim=(low / 1000, high))  # room for the legend
    light(ax)
    ax.legend(loc="lower right", **_LEGEND)


def _draw_curves(axes: Sequence[Any], share: float, spam: np.ndarray, trials: Mapping[Key, Trial]) -> None:
    """Figure 6.10: spam met down the ranking, linear and logarithmic."""
    from apexrank.plot import CumulativeSpamDisplay

    keys: list[Key] = [("in-degree", None, None, None), (*PLAIN, None)]
    keys += [("L_pq", p, RATIO, None) for p in (2.0, 4.0)]
    keys += [("TrustRank", None, None, share), (ANTITRUST, 1.0, 1.0, share), ("Lin-L_pq", 2.0, RATIO, share)]
    scores = {name_of(*key): trials[key].scores for key in keys}
    for ax, log in zip(axes, (False, True), strict=True):
        CumulativeSpamDisplay.from_scores(scores, spam, ax=ax, log_x=log, log_y=log)
        ax.set_title("Spam met, both axes logarithmic" if log else "Spam met down the ranking")
    axes[0].get_legend().remove()
    axes[0].locator_params(axis="x", nbins=4)
    axes[1].legend(loc="upper left", **_LEGEND)
