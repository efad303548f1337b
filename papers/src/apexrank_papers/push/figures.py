"""Contributions of pairs to the objectives, discounts, and Lemma 7 (JMLR 2009, Figures 1, 3, 4 and 8); deterministic.

Figures 1 and 4 use the list of sec. 3.3. The text does not say which p Figure 1 shows; ours are those of Tables 3 to 5.
In Figure 4 each contribution is the product of one factor for the positive and one for the negative, so the lightest
square of *every* such figure is the upper left one, the lowest positive against the highest negative. The slant is in
the rest: compared with RankBoost (p = 1) the IR Push moves weight to the pairs in the lower left, which are the pairs
at the top of the list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from apexrank.plot import PairContributionDisplay, pair_contributions
from apexrank.plot.style import curve_style, legend
from apexrank_papers.push.fitting import P_VALUES
from apexrank_papers.result import Figure, Result, Verdict, claim, draw_lines, panels, tidy

LABELS = np.array([1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0, 0, 0])
SCORES = np.arange(20, 0, -1) / 20
HIGHEST = 2  # highest of the eight negatives: the leftmost quarter of Figure 1
P_8, A_8 = 4, 0.4  # values in the caption of Figure 8
PAPER_DISCOUNTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "1 / ln(1 + z), DCG": lambda z: 1 / np.log1p(z),
    "1 / z, AveR": lambda z: 1 / z,
    "−ln(1 + z), IR Push": lambda z: -np.log1p(z),
}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "IR Push": {"price": "log1p", "side": "bottom"},
    "RankBoost (p = 1)": {"price": "identity"},
}


def _percent(values: Any, places: int = 0) -> str:
    return ", ".join(f"{100 * value:.{places}f}" for value in values) + " %"


def figure1() -> Result:
    """Check that contributions move to the highest negatives as p grows.

    Examples
    --------
    >>> print(figure1().verdicts[0])
    shift to the left: agrees: the 2 highest of 8 negatives have 36, 48, 69, 91, 99, 100 % at p = 1, 2, 4, 8, 16, 64
    """
    maps = {p: pair_contributions(LABELS, SCORES, p=p) for p in P_VALUES}
    shares = np.array([contribution.sum(axis=0) for contribution in maps.values()])
    table = tidy({"p": P_VALUES, "negative": range(1, shares.shape[1] + 1)}, {"share": shares})
    view = table.with_columns(pl.col("share").round(4), pl.format("negative {}", "negative"))
    verdicts = [_shift(shares), _worst_pair(maps)]
    return Result(table, view.pivot("negative", index="p", values="share"), verdicts, _draw_maps(maps))


def _shift(shares: np.ndarray) -> Verdict:
    highest = shares[:, :HIGHEST].sum(axis=1)
    why = (
        f"the {HIGHEST} highest of {shares.shape[1]} negatives have {_percent(highest)} "
        f"at p = {', '.join(map(str, P_VALUES))}"
    )
    return claim("shift to the left", bool((np.diff(highest) > 0).all()), why)


def _worst_pair(maps: dict[int, np.ndarray]) -> Verdict:
    largest = [np.unravel_index(c.argmax(), c.shape) == (c.shape[0] - 1, 0) for c in maps.values()]
    why = (
        f"lowest positive against highest negative is the lightest square at {sum(largest)} of {len(maps)} p"
    )
    return claim("upper left corner", all(largest), why)


def _draw_maps(maps: dict[int, np.ndarray]) -> Figure:
    figure, axes = panels(10.5, 6.6, 2, 3, sharex=True, sharey=True)
    for (p, contributions), ax in zip(maps.items(), axes.flat, strict=True):
        display = PairContributionDisplay(contributions, name=f"p = {p}").plot(ax)
        display.colorbar_.set_label("")
        ax.label_outer()
    figure.suptitle(r"Share of each positive–negative pair in $R_{p,\exp}$")
    return figure


def figure3() -> Result:
    """Compare three discounts, of which only that of the IR Push gives a convex objective.

    Examples
    --------
    >>> [verdict.word for verdict in figure3().verdicts]
    ['agrees', 'agrees', 'agrees']
    """
    z = np.arange(1, 11)
    values = [discount(z.astype(float)) for discount in PAPER_DISCOUNTS.values()]
    table = tidy({"discount": PAPER_DISCOUNTS, "z": z.tolist()}, {"value": values})
    view = table.with_columns(pl.col("value").round(4)).pivot("z", index="discount", values="value")
    verdicts = [_order(), _decreasing_convex(), _convex_with_exponential()]
    return Result(table, view, verdicts, _draw_discounts())


def _draw_discounts() -> Figure:
    (figure, ax), z = panels(6.4, 4.2), np.linspace(0.4, 10, 200)
    lines = {name: (z, discount(z)) for name, discount in PAPER_DISCOUNTS.items()}
    draw_lines(ax, lines, curve_style, xlabel="z, rank or reverse height", ylabel="Discount")
    ax.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    legend(ax)
    return figure


def _order() -> Verdict:
    z = np.geomspace(1e-3, 1e3, 601)
    upper, middle, lower = (discount(z) for discount in PAPER_DISCOUNTS.values())
    holds = bool(((upper > middle) & (middle > lower)).all())
    return claim("upper, middle, lower", holds, "1/ln(1 + z), 1/z, −ln(1 + z) from z = 0.001 to 1000")


def _decreasing_convex() -> Verdict:
    z = np.linspace(0.1, 50, 2000)
    values = [discount(z) for discount in PAPER_DISCOUNTS.values()]
    good = [bool((np.diff(v) < 0).all() and (np.diff(v, 2) > 0).all()) for v in values]
    return claim("decreasing and convex", all(good), f"{sum(good)} of {len(good)} discounts")


def _convex_with_exponential() -> Verdict:
    """Check which negated discounts are convex in t at z = exp(t), as the objective requires."""
    t = np.linspace(-8, 8, 1601)
    dips = {name: np.diff(-discount(np.exp(t)), 2).min() for name, discount in PAPER_DISCOUNTS.items()}
    convex = [name for name, dip in dips.items() if dip >= 0]
    why = f"negated, at z = exp(t), convex in t: {' and '.join(convex) or 'none'}"
    return claim("convex objective", convex == list(PAPER_DISCOUNTS)[-1:], why)


def figure4() -> Result:
    """Check that the IR Push is biased towards the top of the list.

    Examples
    --------
    >>> print(figure4().verdicts[0])
    lower left: agrees: pairs at the top of the list have 28.5 %, those at its bottom 20.2 %; with p = 1: 24.6, 22.6 %
    """
    maps = {name: pair_contributions(LABELS, SCORES, **how) for name, how in OBJECTIVES.items()}
    corners = {name: _corners(contributions) for name, contributions in maps.items()}
    rows = [{"objective": name, **corner} for name, corner in corners.items()]
    view = pl.DataFrame(rows).with_columns(pl.selectors.float().round(4))
    positives, negatives = (range(1, n + 1) for n in np.bincount(LABELS)[::-1].tolist())
    axes = {"objective": maps, "positive": positives, "negative": negatives}
    table = tidy(axes, {"share": list(maps.values())})
    notes = ["A corner is six of the twelve positives against four of the eight negatives."]
    return Result(table, view, [_slant(corners), _leftwards(corners)], _draw_objectives(maps), notes)


def _corners(c: np.ndarray) -> dict[str, float]:
    """Return the shares of the four corners, named as in the figure: low and left stand for high scores."""
    rows = zip(("lower", "upper"), np.vsplit(c, 2), strict=True)
    return {
        f"{row} {side}": float(part.sum())
        for row, half in rows
        for side, part in zip(("left", "right"), np.hsplit(half, 2), strict=True)
    }


def _slant(corners: dict[str, dict[str, float]]) -> Verdict:
    ir, plain = ([c["lower left"], c["upper right"]] for c in corners.values())
    why = (
        f"pairs at the top of the list have {_percent(ir[:1], 1)}, those at its bottom {_percent(ir[1:], 1)}; "
        f"with p = 1: {_percent(plain, 1)}"
    )
    return claim("lower left", ir[0] > ir[1] and ir[0] > plain[0], why)


def _leftwards(corners: dict[str, dict[str, float]]) -> Verdict:
    ir = next(iter(corners.values()))
    left = ir["lower left"] + ir["upper left"]
    return claim("left", left > 0.5, f"the higher half of the negatives has {_percent([left], 1)}")


def _draw_objectives(maps: dict[str, np.ndarray]) -> Figure:
    figure, axes = panels(10, 4.4, 1, 2, sharey=True)
    values = np.stack(list(maps.values()))
    options = {"vmin": values.min(), "vmax": values.max()}
    for (name, contributions), ax in zip(maps.items(), axes, strict=True):
        PairContributionDisplay(contributions, name=name).plot(ax, colorbar=ax is axes[-1], **options)
        ax.label_outer()
    return figure


def lemma7(a: np.ndarray, b: np.ndarray, p: float) -> dict[str, np.ndarray]:
    """Compute the three functions of JMLR 2009, Lemma 7, and the first term of its minimum.

    Examples
    --------
    >>> {name: round(float(value), 4) for name, value in lemma7(np.array(0.4), np.array(0.2), 4).items()}
    {'difference of roots': 0.1265, 'minimum': 0.3976, 'root of difference': 0.6687, 'scaled': 0.3976}
    """
    gap = np.abs(a - b)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(gap > 0, gap * a ** (1 / p - 1), 0.0)
    root = gap ** (1 / p)
    return {
        "difference of roots": np.abs(a ** (1 / p) - b ** (1 / p)),
        "minimum": np.minimum(scaled, root),
        "root of difference": root,
        "scaled": scaled,
    }


def figure8() -> Result:
    """Check the inequality by which p enters the generalisation bounds.

    Examples
    --------
    >>> print(figure8().verdicts[1])
    most cases: agrees: the first term is the smaller one for 80 % of b at a = 0.4, and on 75 % of the unit square
    """
    b = np.linspace(0, 1, 11)
    curves = lemma7(np.full_like(b, A_8), b, P_8)
    table = pl.DataFrame({"b": b, **curves}).unpivot(index="b", variable_name="curve")
    view = pl.DataFrame({"b": b, **curves}).select(pl.all().round(4))
    notes = [
        "The two terms cross at b = 2a whatever p is: |a − b|·a^{1/p − 1} is the smaller one as long as b < 2a."
    ]
    return Result(table, view, [_inequality(), _most_cases()], _draw_lemma7(), notes)


def _inequality() -> Verdict:
    a, b = np.meshgrid(np.linspace(0, 1, 401), np.linspace(0, 1, 401), indexing="ij")
    worst = max(
        float((curves["difference of roots"] - curves["minimum"]).max())
        for curves in (lemma7(a, b, p) for p in (1, 1.5, *P_VALUES[1:]))
    )
    why = f"largest excess of the left side {max(worst, 0.0):.0e} on a grid of a and b, p from 1 to {P_VALUES[-1]}"
    return claim("inequality", worst < 1e-12, why)


def _most_cases() -> Verdict:
    # Midpoints of small cells: boundary points would bias a measured share.
    inside = (np.arange(400) + 0.5) / 400
    line = lemma7(np.full_like(inside, A_8), inside, P_8)
    square = lemma7(inside[:, None], inside[None, :], P_8)
    shares = [float(np.mean(c["scaled"] <= c["root of difference"])) for c in (line, square)]
    why = (
        f"the first term is the smaller one for {_percent(shares[:1])} of b at a = {A_8}, "
        f"and on {_percent(shares[1:])} of the unit square"
    )
    return claim("most cases", min(shares) > 0.5, why)


def _draw_lemma7() -> Figure:
    (figure, ax), b = panels(6.4, 4.2), np.linspace(0, 1, 501)
    curves = lemma7(np.full_like(b, A_8), b, P_8)
    lines = {
        r"$|a - b|^{1/p}$": (b, curves["root of difference"]),
        r"$\min(|a - b|\,a^{1/p - 1},\ |a - b|^{1/p})$": (b, curves["minimum"]),
        r"$|a^{1/p} - b^{1/p}|$": (b, curves["difference of roots"]),
    }
    labels = {"xlabel": "b", "title": f"Lemma 7 with p = {P_8} and a = {A_8}"}
    draw_lines(ax, lines, curve_style, xlim=(0, 1), ylim=(0, 1.2), **labels)
    legend(ax, loc="upper left", ncols=3, columnspacing=1.2)
    return figure
