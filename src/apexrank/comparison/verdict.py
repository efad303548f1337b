"""The verdict of a comparison in two sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apexrank.comparison.result import BASELINES, Comparison, Verdict
from apexrank.metrics.confidence import Interval


def judge(found: Comparison) -> Verdict:
    """Compare the best ranker with the baselines, and the recommended one with the best."""
    few = found.too_few
    names, best = found.names, found.best
    # the best ranker of a user's own candidates has no baseline but the first of them
    bases = [names.index(name) for name in BASELINES if name in names] or [0]
    gaps = {base: found.difference(best, base) for base in bases if base != best}
    clear = [base for base, gap in gaps.items() if gap.low > 0]
    opening = f"{_capital(names[best])} {_has(found, best)}"
    against = "; ".join(f"{names[base]} {_against(found, base, gap)}" for base, gap in gaps.items())
    first = f"{opening}; {against}." if against else f"{opening}."
    if few is not None:
        return Verdict("too few to tell", f"Too few to tell: {few}. {first}", found.caveats)
    kind = "better" if clear else "no difference"
    return Verdict(kind, f"{first} {_advice(found, clear)}", found.caveats)


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def _has(found: Comparison, i: int) -> str:
    value = found.value(i).value
    if found.top.share is None:
        return f"finds {value:.0%} of the positives at {found.top.fpr:.3g} false alarms per negative"
    return f"is right in {value:.0%} of the first {_share(found.top.share)} of the list"


def _share(share: float) -> str:
    return f"{100 * share:.3g} %"


def _against(found: Comparison, base: int, gap: Interval) -> str:
    sure = "" if gap.low > 0 else ", which may be chance"
    return f"in {found.value(base).value:.0%} ({points(gap)}{sure})"


def points(gap: Interval) -> str:
    """A difference in points with its interval.

    Examples
    --------
    >>> points(Interval(0.07, 0.021, 0.119, 0.025, 0.95, 10))
    '+7 points, 95 % interval +2 to +12'
    """
    if gap.low != gap.low:
        return f"{100 * gap.value:+.0f} points"
    level = f"{100 * gap.confidence:.3g} %"
    return f"{100 * gap.value:+.0f} points, {level} interval {100 * gap.low:+.0f} to {100 * gap.high:+.0f}"


def _advice(found: Comparison, clear: list[int]) -> str:
    names, own = found.names, found.recommended
    take = f"{names[own]}{in_words(found.settings[own])}"
    if own == found.best and clear:
        return f"Take {take}."
    if own == found.best:
        return f"Take {take}: nothing else is clearly better."
    return f"Take {take}: it is simpler, and nothing is clearly better."


def in_words(setting: Mapping[str, Any]) -> str:
    """A setting as it stands behind a name.

    Examples
    --------
    >>> in_words({"p": 4.0, "alpha": 0.001}), in_words({"p": None, "leaves": 4}), in_words({})
    (' (p = 4, alpha = 0.001)', ' (leaves = 4)', '')
    """
    parts = [f"{name} = {value:g}" for name, value in setting.items() if value is not None]
    return f" ({', '.join(parts)})" if parts else ""
