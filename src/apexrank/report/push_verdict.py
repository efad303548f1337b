"""Whether a push helps, in words, and what speaks against believing it."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from apexrank.metrics.confidence import Interval
from apexrank.metrics.evaluation import find_measure

if TYPE_CHECKING:
    from apexrank.report.push_comparison import PushComparison

FEW = 10  # rows of a class that are held out, or places that cross-validation looks at


class Verdict(NamedTuple):
    """Whether a push helps.

    ``kind`` is one of

    - "helps", "hurts": a push was chosen, and on the held-out rows the interval of its difference to p = 1 leaves
      out 0;
    - "no difference": a push was chosen and that interval has 0 in it, or p = 1 was chosen and is not better by more
      than one standard error over the folds;
    - "no push": p = 1 was chosen, and is better than every push by more than that;
    - "too few to tell": fewer than 10 positives or negatives are held out, or cross-validation looks at fewer than 10
      places in all.

    ``text`` says it with numbers, and each of ``caveats`` is a reason to doubt it.
    """

    kind: str
    text: str
    caveats: tuple[str, ...] = ()


def verdict_of(comparison: PushComparison) -> Verdict:
    """The verdict about the p that the training rows chose, so that it is not biased by choosing."""
    kind, opening, body = _no_push(comparison) if comparison.chosen == 0 else _push(comparison)
    few = _too_few(comparison)
    if few is not None:
        kind, opening = "too few to tell", f"Too few to tell ({few})"
    return Verdict(kind, f"{opening}: {body}", tuple(_caveats(comparison)))


def count(number: int, what: str) -> str:
    """A number with its noun and verb.

    Examples
    --------
    >>> count(1, "held-out row"), count(3, "training row")
    ('1 held-out row is', '3 training rows are')
    """
    return f"{number:,} {what}{' is' if number == 1 else 's are'}"


def _too_few(comparison: PushComparison) -> str | None:
    negatives = comparison.n_test - comparison.n_test_positives
    for word, number in (("positive", comparison.n_test_positives), ("negative", negatives)):
        if number < FEW:
            return f"only {count(number, 'held-out row')} {word}"
    if comparison.places is not None and comparison.places < FEW and len(comparison.ps) > 1:
        places = comparison.places
        return f"cross-validation looks at only {places} place{'' if places == 1 else 's'} in all folds"
    return None


def _caveats(comparison: PushComparison) -> list[str]:
    own = list(comparison.caveats)
    if not comparison.converged(comparison.chosen):
        own.append(f"The fit of p = {shown(comparison.ps[comparison.chosen])} did not converge.")
    if not isfinite(comparison.measures[comparison.decided_by][0].low):
        own.append("There are too few held-out rows of one class for intervals, so none is shown.")
    return own


def _push(comparison: PushComparison) -> tuple[str, str, str]:
    chosen = comparison.chosen
    gap = comparison.differences[comparison.decided_by][chosen]
    assert gap is not None
    sign = 1 if find_measure(comparison.decided_by).family.greater_is_better else -1
    low, high = sorted((sign * gap.low, sign * gap.high))
    kind = "helps" if low > 0 else "hurts" if high < 0 else "no difference"
    opening = {"no difference": "A push makes no clear difference"}.get(kind, f"A push {kind}")
    body = (
        f"with p = {shown(comparison.ps[chosen])} {_held_out(comparison, chosen)}. {_found(comparison, chosen)} of "
        f"their first {comparison.top} are positive against {_found(comparison, 0)}; AUC goes from "
        f"{comparison.auc(0):.3f} to {comparison.auc(chosen):.3f}."
    )
    return kind, opening, body


def _held_out(comparison: PushComparison, i: int) -> str:
    """The deciding measure of the held-out rows at p number i against p = 1."""
    name = comparison.decided_by
    values, gap = comparison.measures[name], comparison.differences[name][i]
    assert gap is not None
    return (
        f"the {find_measure(name).label} of the held-out rows is {values[i].value:.3f} against "
        f"{values[0].value:.3f} with p = 1 (difference {gap.value:+.3f}, {_spread(gap)})"
    )


def _spread(gap: Interval) -> str:
    if not isfinite(gap.low):
        return "too few held-out rows of one class for an interval"
    return f"{level(gap.confidence)} interval {gap.low:+.3f} to {gap.high:+.3f}"


def level(confidence: float) -> str:
    """A confidence with as many digits as it has.

    Examples
    --------
    >>> level(0.95), level(0.9999)
    ('95 %', '99.99 %')
    """
    return f"{100 * confidence:.6g} %"


def _no_push(comparison: PushComparison) -> tuple[str, str, str]:
    tail = (
        f"{_found(comparison, 0)} of the first {comparison.top} held-out rows are positive with p = 1, and AUC is "
        f"{comparison.auc(0):.3f}."
    )
    if len(comparison.ps) == 1:
        return "no push", "No push", f"p = 1 is the only one tried. {tail}"
    second = _best_push(comparison)
    if second is None:
        return "no push", "No push", f"no push that was tried could be chosen. {tail}"
    sign = 1 if comparison.larger_is_better else -1
    differences = sign * (comparison.cv_scores[second] - comparison.cv_scores[0])
    folds = len(differences)
    error = float(differences.std(ddof=1)) / sqrt(folds)
    means = comparison.cv_mean
    p = shown(comparison.ps[second])
    places = "" if comparison.places is None else f" with {comparison.places:,} places in all"
    numbers = (
        f"{comparison.scoring} is {means[0]:.3f} with p = 1 and {means[second]:.3f} with p = {p}, the best push "
        f"(difference {means[second] - means[0]:+.3f}, standard error {error:.3f} over {folds} folds{places})"
    )
    held = f"That p was not chosen; with it {_held_out(comparison, second)}."
    # where only one fold differs the two are equal, up to rounding
    if -differences.mean() > error * (1 + 1e-9):
        body = f"p = 1 does best in cross-validation on the training rows, where {numbers}. {held} {tail}"
        return "no push", "No push", body
    body = (
        "cross-validation on the training rows cannot tell p = 1 from a push, and p = 1 is the simpler one: "
        f"{numbers}. {held} {tail}"
    )
    return "no difference", "No clear difference", body


def _best_push(comparison: PushComparison) -> int | None:
    """Number of the push that did best in cross-validation, of those that may be chosen."""
    sign = 1 if comparison.larger_is_better else -1
    means = sign * np.array(comparison.cv_mean)
    means[np.array(comparison.collapsed)] = np.nan
    return None if np.isnan(means[1:]).all() else 1 + int(np.nanargmax(means[1:]))


def _found(comparison: PushComparison, i: int) -> str:
    return few_digits(comparison.found(i))


def few_digits(number: float) -> str:
    """A count, to one decimal where ties make it a mean.

    Examples
    --------
    >>> few_digits(26.0), few_digits(6.4999)
    ('26', '6.5')
    """
    return f"{number:.1f}".removesuffix(".0")


def shown(p: float) -> str:
    """A power as text."""
    return f"{p:g}"
