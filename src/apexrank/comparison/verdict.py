"""The verdict of a comparison in two sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apexrank.comparison.result import BASELINES, Comparison, Verdict
from apexrank.metrics.confidence import Interval


def judge(found: Comparison) -> Verdict:
    """Compare the best ranker with the baselines, and say which one to take."""
    names, best, few = found.names, found.best, found.too_few
    # the best of a user's own candidates has no baseline but the first of them
    bases = [names.index(name) for name in BASELINES if name in names] or [0]
    gaps = {base: found.difference(best, base) for base in bases if base != best}
    against = [
        f"with {names[base]} {_percent(found, base)} ({points(gap)}{'' if gap.low > 0 else ', maybe chance'})"
        for base, gap in gaps.items()
    ]
    opening = f"With {names[best]} {_percent(found, best)} {_of_what(found)}"
    first = ", ".join([opening, *against]) + "."
    if few is not None:
        return Verdict("too few to tell", f"Too few to tell ({few}). {first}", found.caveats, _costs(found))
    kind = "better" if any(gap.low > 0 for gap in gaps.values()) else "no difference"
    return Verdict(kind, f"{first} {_advice(found)}", found.caveats, _costs(found))


def _costs(found: Comparison) -> str:
    """For each ranker the AUC it falls short of the best, the numbers in its model, and what there is to read."""
    aucs = [found.value(i, "auc").value for i in range(len(found.names))]
    parts = []
    for candidate, auc, size in zip(found.candidates, aucs, found.sizes, strict=True):
        known = [None if size is None else f"{size:,}", candidate.form]
        parts.append(", ".join([f"{candidate.name} {max(aucs) - auc:.3f}", *filter(None, known)]))
    return f"What each costs (AUC, numbers in the model, reading): {'; '.join(parts)}."


def _percent(found: Comparison, i: int) -> str:
    return f"{100 * found.value(i).value:.0f} %"


def _of_what(found: Comparison) -> str:
    if found.top.share is None:
        return f"of the positives are found at {100 * (found.top.fpr or 0):.3g} % false alarms"
    return f"of the {found.top.part}{' of the list' * (found.top.rows is None)} are positive"


def points(gap: Interval) -> str:
    """A difference in points with its interval.

    Examples
    --------
    >>> points(Interval(0.07, 0.021, 0.119, 0.025, 0.95, 10))
    '+7 points, 95 % interval +2 to +12'
    """
    value, low, high = (f"{round(100 * x) if x == x else 0:+d}" for x in gap[:3])
    own = f"{value} point{'s' * (value not in ('+1', '-1'))}"
    return own if gap.low != gap.low else f"{own}, {100 * gap.confidence:.3g} % interval {low} to {high}"


def _advice(found: Comparison) -> str:
    own, best = found.recommended, found.best
    take = f"Take {found.names[own]}{in_words(found.settings[own])}"
    if own != best:
        share = "" if found.names[own] in BASELINES else f" ({_percent(found, own)})"
        return f"{take}{share}: it is simpler, and not clearly behind {found.names[best]}."
    near = [i for i in range(best) if not found.difference(best, i).low > 0]
    if not near:
        return f"{take}."
    first = max(near, key=lambda i: found.value(i, "average_precision").value)
    values = [found.value(i, "average_precision").value for i in (best, first)]
    return (
        f"{take}: at the top {found.names[first]} may be as good, over the whole list it is not (average precision "
        "{:.3f} against {:.3f}).".format(*values)
    )


def in_words(setting: Mapping[str, Any]) -> str:
    """A setting as it stands behind a name.

    Examples
    --------
    >>> in_words({"p": 4.0, "alpha": 0.001}), in_words({"p": None, "leaves": 4}), in_words({})
    (' (p = 4, alpha = 0.001)', ' (leaves = 4)', '')
    """
    parts = [f"{name} = {value:g}" for name, value in setting.items() if value is not None]
    return f" ({', '.join(parts)})" if parts else ""
