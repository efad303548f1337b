"""Alternating projections onto scores that put all rows in order (Acharyya 2013, section 4.4).

Rows without noise have a perfect order by construction; a little noise destroys it. The data are those of `data`. The
projections are compared with `UnknownLinkRegressor`, which minimises the cost that they replace.
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.objectives.link import UnknownLink
from apexrank.rankers.link import UnknownLinkRegressor
from apexrank_papers.link.data import Sample, angle, draw_gaps
from apexrank_papers.link.ordered import OrderedFit, perfectly_ordered
from apexrank_papers.result import Figure, Result, Verdict, claim, panels, question, signed_verdict
from apexrank_papers.splits import check_repeated

ORDER_LINKS = ("logistic of 3t", "cube")
SEARCHES = TURNS, MOMENTUM = "turns, as published", "turns with momentum"
REGRESSOR = "UnknownLinkRegressor"
DRAWN = 6  # draws in the figure
TINY = 1e-8  # penalty of the regressor, small enough to leave only the cost

Histories = dict[tuple[float, str], dict[str, np.ndarray]]


def link_order(
    *,
    n: int = 200,
    d: int = 5,
    draws: int = 5,
    noise: float = 0.01,
    max_iter: int = 20_000,
    random_state: int = 0,
) -> Result:
    """Run the alternating projections of §4.4 on rows with a perfect order, and on rows where noise rules it out.

    Parameters
    ----------
    n, d : int
        Rows and features.
    draws : int
        Number of samples.
    noise : float
        Standard deviation of the noise as a share of that of ``g(Xu)``.
    max_iter : int
        Largest number of steps.
    random_state : int
        First seed.

    Examples
    --------
    >>> link_order(n=40, d=2, draws=2, max_iter=2000).verdicts[2].word
    'agrees'
    """
    check_repeated("draws", draws)
    if not noise > 0:
        raise InputError(f"`noise` must be above 0, got {noise!r}: rows without noise are always included")
    rows, histories = list[dict[str, Any]](), Histories()
    for draw in range(draws):
        sample = Sample.draw(n, d, random_state + draw)
        for link, share in product(ORDER_LINKS, (0.0, noise)):
            case = {"draw": random_state + draw, "link": link, "noise": share}
            y = sample.values(link, share)
            fits = {
                method: perfectly_ordered(sample.X, y, momentum=method == MOMENTUM, max_iter=max_iter)
                for method in SEARCHES
            }
            rows += [case | row for row in _measure(sample, y, fits)]
            if link == "cube" and draw < DRAWN:
                for method, fit in fits.items():
                    histories.setdefault((share, method), {})[f"draw {draw + 1}"] = _relative(fit.history)
    table = pl.DataFrame(rows, infer_schema_length=None)
    notes = [
        f"{n} rows, {d} features, {draws} draws. Cells: medians over the draws (smallest–largest). Distance: of the "
        "scores from ordered ones with twice the margin, last over first; cost: m(θ) at the solution over m(0).",
        "With momentum the search ends as soon as all rows are in strict order, and w is scaled to reach the margins. "
        "Turns continue until the margins are reached, and look for a strict order only when they give up, so the two "
        "numbers of steps are not comparable.",
        f"{REGRESSOR}: alpha = {TINY:g}, not a method for perfect orders, but the cost that §4.4 replaces.",
    ]
    return Result(table, _view(table), _verdicts(table, max_iter), _draw_orders(histories, noise), notes)


def _measure(sample: Sample, y: np.ndarray, fits: dict[str, OrderedFit]) -> list[dict[str, Any]]:
    """Return one row for each search and one for the regressor."""
    rows = []
    for method, fit in fits.items():
        factors = dict(zip(("factor_before", "factor"), _late_factors(fit.history), strict=True))
        row = {"method": method, "ordered": fit.converged, "steps": fit.n_iter}
        row["distance"] = float(_relative(fit.history)[-1])
        rows.append(row | factors | _answer(sample, y, fit.coef))
    model = UnknownLinkRegressor(alpha=TINY, refine=False).fit(sample.X, y)
    return [*rows, {"method": REGRESSOR, "steps": model.n_iter_} | _answer(sample, y, model.coef_)]


def _answer(sample: Sample, y: np.ndarray, w: np.ndarray) -> dict[str, float]:
    """Return the distance of w, its cost, and the rounding error of the cost if it should be 0.

    The gradient of m is 1-Lipschitz, so scores at a distance e from scores without cost have a cost of at most
    ``|e|²/2``. The cost itself is the sum of ``(v − y)·(θ − (v + y)/2)``: v and y have a relative error of eps, which
    is multiplied by scores that may be much larger than y.
    """
    cost, eps, theta = UnknownLink(y), float(np.finfo(float).eps), sample.X @ w
    digits = (len(w) + 2) * eps * float((np.abs(sample.X) @ np.abs(w)).max())
    level, reach = np.abs(y - cost.middle[0]), np.abs(theta - theta.mean())
    return {
        "angle": angle(w, sample.u),
        "cost": cost.value_and_grad(theta)[0] / cost.total,
        "rounding": (len(y) * digits**2 / 2 + eps * float(level @ (reach + level))) / cost.total,
    }


def _relative(history: np.ndarray) -> np.ndarray:
    """Divide distances by the first; 0 if the start was in order."""
    return history / history[0] if len(history) else np.zeros(1)


def _late_factors(history: np.ndarray) -> tuple[float, float]:
    """Return the mean factor per step in the third and the last quarter."""
    cuts = np.linspace(0, len(history) - 1, 5).round().astype(int)[2:]
    if np.any(np.diff(cuts) < 2):
        return np.nan, np.nan
    before, after = (np.log(history[b] / history[a]) / (b - a) for a, b in pairwise(cuts))
    return float(np.exp(before)), float(np.exp(after))


def _view(table: pl.DataFrame) -> pl.DataFrame:
    rows = []
    forms = {"steps": ",.0f", "distance": ".1e", "1 − factor": ".1e", "angle": ".3f", "cost": ".1e"}
    told = table.with_columns((1 - pl.col("factor")).alias("1 − factor"))
    for part in told.partition_by("link", "noise", "method", maintain_order=True):
        ordered = "–" if part["ordered"].null_count() else f"{part['ordered'].sum()} of {len(part)}"
        row = part.select("link", "noise", "method").row(0, named=True) | {"ordered": ordered}
        rows.append(row | {name: _spread(part[name], form) for name, form in forms.items()})
    return pl.DataFrame(rows)


def _spread(values: pl.Series, form: str) -> str:
    """Format the median (smallest–largest)."""
    numbers = values.drop_nulls().drop_nans().to_numpy()
    if not len(numbers):
        return "–"
    if numbers.min() == numbers.max():
        return f"{numbers[0]:{form}}"
    return f"{np.median(numbers):{form}} ({numbers.min():{form}}–{numbers.max():{form}})"


def _verdicts(table: pl.DataFrame, max_iter: int) -> list[Verdict]:
    clean, noisy = table.filter(pl.col("noise") == 0), table.filter(pl.col("noise") > 0)
    turns, quick = clean.filter(method=TURNS), clean.filter(method=MOMENTUM)
    stuck = noisy.filter(pl.col("method") != REGRESSOR)
    theirs, ours = (noisy.filter(method=method)["cost"] for method in (MOMENTUM, REGRESSOR))
    return [
        _linear(turns.filter(link="cube")),
        claim(
            "a perfect w is found",
            bool(quick["ordered"].all()),
            f"{quick['ordered'].sum()} of {len(quick)} with momentum in {_spread(quick['steps'], ',.0f')} steps, "
            f"{turns['ordered'].sum()} of {len(turns)} as published in {_spread(turns['steps'], ',.0f')} steps, "
            f"at most {max_iter:,}",
            question,  # the momentum is ours
        ),
        _no_cost(clean),
        claim(
            "none is found with noise",
            not stuck["ordered"].any(),
            f"distance {_spread(stuck['distance'], '.2f')} of the first after {_spread(stuck['steps'], ',.0f')} steps",
            question,
        ),
        claim(
            "with noise it does not minimise the cost",
            bool((theirs > ours).all()),
            f"{_spread(theirs / ours, '.1f')} times the cost of {REGRESSOR}",
            question,
        ),
    ]


def _linear(part: pl.DataFrame) -> Verdict:
    """Judge "overall linear convergence": the same factor in the last two quarters of the steps."""
    slow, late = 1 - part["factor_before"].to_numpy(), 1 - part["factor"].to_numpy()
    straight = (late > 0.8 * slow) & (late < 1.25 * slow)
    sign = 1 if straight.all() else 0 if straight.any() else -1
    why = (
        f"cube: the same factor in the third and last quarter of the steps in {straight.sum()} of {len(part)} draws, "
        f"but so near to 1 that 1 − factor is {_spread(pl.Series(late), '.0e')}"
    )
    return signed_verdict("linear convergence in the end", sign, why)


def _no_cost(clean: pl.DataFrame) -> Verdict:
    """Judge "no cost" up to rounding, because the last digit of a score may violate a margin that is just met."""
    found = clean.filter(pl.col("ordered").fill_null(False))
    why = (
        f"cost {_spread(found['cost'], '.0e')} in {len(found)} answers, where rounding may leave "
        f"{_spread(found['rounding'], '.0e')}; {REGRESSOR} ends at "
        f"{_spread(clean.filter(method=REGRESSOR)['cost'], '.0e')}"
    )
    holds = bool((found["cost"] <= found["rounding"]).all())
    return claim("no cost where a perfect w is found", holds, why)


def _draw_orders(histories: Histories, noise: float) -> Figure:
    titles = {
        (0.0, TURNS): "Perfect order, turns as published",
        (0.0, MOMENTUM): "Perfect order, with momentum",
        (noise, MOMENTUM): f"{noise:.0%} noise, with momentum",
    }
    figure, axes = panels(12.5, 4, 1, len(titles), sharey=True)
    for ax, (key, title) in zip(axes, titles.items(), strict=True):
        draw_gaps(ax, histories[key], log_x=False)
        ax.set(title=title, xlabel="Step", ylabel="Distance from ordered scores, first = 1")
        ax.label_outer()
        ax.locator_params(axis="x", nbins=5)
        if ax is not axes[0]:
            ax.get_legend().remove()
    return figure
