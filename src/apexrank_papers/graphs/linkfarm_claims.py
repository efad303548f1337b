"""What ``linkfarm`` says to the claims of Acharyya 2013, sec. 6.4.2, and to what its farms are known to get.

The spam is planted, so levels cannot agree with the dissertation's, only orders and shapes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from apexrank_papers.graphs.farms import RATIO, Farmed
from apexrank_papers.graphs.linkfarm_rankings import ANTITRUST, L_P_STEPS, TRUSTRANK, first_small
from apexrank_papers.graphs.linkfarm_table import CHOSEN, DEPTHS, PLAIN, Found, percent, powers
from apexrank_papers.push.push_figures import claim
from apexrank_papers.result import Verdict


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
    word = "differs" if (gaps > 0).any() else "agrees" if (gaps < 0).any() else "within noise"
    return Verdict(row, word, why)


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
    known = farmed.crawl == "cnr-2000" and (len(farmed.targets), farmed.boosters, farmed.hijacked) == (
        50,
        200,
        0,
    )
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
