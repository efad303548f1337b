"""Lovász–Bregman divergence of the cut and Kendall's distance (Iyer and Bilmes 2013, Figure 1); deterministic.

The figure has no scale in the paper, so the statements of its text are checked. The cut function is that of section 3,
``f(X) = |X||V∖X|``. The cube is drawn as seen along (1, 1, 1): neither divergence changes in this direction, so one
view shows everything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from apexrank.aggregation.lovasz_bregman import LovaszBregman
from apexrank.metrics import kendall_distance
from apexrank.plot.style import curve_style, light
from apexrank_papers.lovasz.plane import draw_frame, lift, order_cells, order_name, project
from apexrank_papers.result import Figure, Result, Verdict, claim, panels, question

CUT = LovaszBregman("product")
LB, KENDALL = "Lovász–Bregman", "Kendall"
GRID = np.linspace(0, 1, 5)  # values of each score in the table
FINE = {2: 200, 3: 40}  # values of each score where shares are measured, by the number of items
SPREADS = (1.0, 0.5, 0.25)
# anticlockwise in the plane, from the order that is compared with
AROUND = ((0, 1, 2), (1, 0, 2), (1, 2, 0), (2, 1, 0), (2, 0, 1), (0, 2, 1))
SHADES = "Blues"
ROUNDING = 1e-12


def both_divergences(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``d_f̂(x‖σ)`` of the cut and ``d_T(σ_x, σ)`` for σ = (1, 2, …, n); tied scores agree with any order.

    Examples
    --------
    >>> [values.round(3).tolist() for values in both_divergences(np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.6]]))]
    [[0.0, 1.6, 0.2], [0.0, 1.0, 1.0]]
    """
    n = x.shape[-1]
    kendall = kendall_distance(scores=(x, np.arange(n, 0.0, -1)))
    return np.asarray(CUT.divergence(x, np.arange(n))), np.asarray(kendall)


def lovasz_figure1() -> Result:
    """Compare the cut's divergence with Kendall's distance over the unit square and the unit cube.

    Examples
    --------
    >>> [verdict.word for verdict in lovasz_figure1().verdicts]
    ['agrees', 'agrees', 'yes', 'differs', 'differs']
    """
    table = pl.concat([_on_grid(n) for n in (3, 2)], how="diagonal").sort("items", maintain_order=True)
    verdicts = [_alike(), _scores_count(), _continuous(), _equation_17(), _bound()]
    notes = [
        "σ = (1, 2) and (1, 2, 3), f(X) = |X||V∖X|. Shares are those of the volume of the square and of the cube.",
        "The cube is seen along (1, 1, 1). Both are the same for x and x + (c, c, c), so nothing is hidden.",
        "View: points of the table without ties, by Kendall's distance.",
    ]
    return Result(table, _view(table), verdicts, _draw(), notes)


def _on_grid(n: int) -> pl.DataFrame:
    x = np.stack(np.meshgrid(*[GRID] * n, indexing="ij"), axis=-1).reshape(-1, n)
    names = [f"x{item + 1}" for item in range(n)]
    found = pl.DataFrame(dict(zip((LB, KENDALL), both_divergences(x), strict=True)))
    wide = pl.DataFrame(x, schema=names).hstack(found).with_columns(items=pl.lit(n))
    return wide.unpivot([LB, KENDALL], index=["items", *names], variable_name="divergence")


def _view(table: pl.DataFrame) -> pl.DataFrame:
    scores = ["x1", "x2", "x3"]
    wide = table.pivot("divergence", index=["items", *scores], values="value")
    different = wide.filter(pl.concat_list(scores).list.drop_nulls().list.n_unique() == pl.col("items"))
    value = pl.col(LB)
    numbers = {"least": value.min(), "mean": value.mean(), "largest": value.max()}
    told = {f"{LB}, {name}": number.round(4) for name, number in numbers.items()}
    return different.group_by("items", KENDALL).agg(points=pl.len(), **told).sort("items", KENDALL)


def _inside(n: int) -> np.ndarray:
    """Return score vectors evenly over the unit cube, without ties: scores have different offsets in grid cells."""
    m = FINE[n]
    values = [(np.arange(m) + (item + 1) / (n + 1)) / m for item in range(n)]
    return np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, n)


def _alike() -> Verdict:
    apart, growing, parts = 0, True, []
    for n in FINE:
        lb, kendall = both_divergences(_inside(n))
        apart += int(np.count_nonzero((lb > ROUNDING) != (kendall > 0)))
        steps = np.unique(kendall)
        means = [lb[kendall == step].mean() for step in steps]
        growing &= bool((np.diff(means) > 0).all())
        parts.append(
            f"with {n} items its mean is {', '.join(f'{mean:.2f}' for mean in means)} at Kendall's "
            f"{', '.join(f'{step:.0f}' for step in steps)}, correlation {np.corrcoef(lb, kendall)[0, 1]:.2f}"
        )
    why = f"{apart} points at which one is 0 and the other is not; {'; '.join(parts)}"
    return claim("similar to Kendall's distance", apart == 0 and growing, why)


def _scores_count() -> Verdict:
    """Claim: halving all differences halves the divergence and does not change Kendall's distance."""
    off, changed = 0.0, 0.0
    for n in FINE:
        x = _inside(n)
        (lb, kendall), (half, same) = both_divergences(x), both_divergences(0.5 + (x - 0.5) / 2)
        off = max(off, float(np.abs(half - lb / 2).max()))
        changed = max(changed, float(np.mean(same != kendall)))
    why = (
        f"with half of all differences it is half as large (to {off:.0e}), while Kendall's distance changes for "
        f"{changed:.0%} of the points"
    )
    return claim("depends on the scores", off < ROUNDING and changed == 0, why)


def _circle(steps: int, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Return angles from the middle of σ's part, and score vectors around the centre of the cube, without ties."""
    angle = (np.arange(steps) + 0.5) / steps * 2 * np.pi
    turn = angle + np.deg2rad(120.0)
    return np.rad2deg(angle), lift(radius * np.column_stack([np.cos(turn), np.sin(turn)]))


def _continuous() -> Verdict:
    jumps = []
    for steps in (1000, 2000):
        values = both_divergences(_circle(steps, 0.5)[1])
        jumps.append([float(np.abs(np.diff(value, append=value[:1])).max()) for value in values])
    (lb, kendall), (finer_lb, finer_kendall) = jumps
    holds = finer_lb < 0.51 * lb and kendall == finer_kendall == 1.0
    why = (
        f"largest change from point to point on a circle in the cube: {lb:.4f} and {finer_lb:.4f} with 1000 and 2000 "
        f"points; Kendall's {kendall:.0f} and {finer_kendall:.0f}"
    )
    return claim("no jumps, where Kendall's distance has steps", holds, why, question)


def _printed_sum(x: np.ndarray) -> np.ndarray:
    """Sum |x_i − x_j| over the pairs i < j that x orders opposite to σ: eq. 17 as printed."""
    first, second = np.triu_indices(x.shape[1], 1)
    return np.maximum(x[:, second] - x[:, first], 0.0).sum(axis=1)


def _equation_17() -> Verdict:
    ratios = []
    for n in FINE:
        x = _inside(n)
        lb, printed = both_divergences(x)[0], _printed_sum(x)
        ratios.append(lb[printed > 0] / printed[printed > 0])
    low, high = min(map(np.min, ratios)), max(map(np.max, ratios))
    why = f"⟨x, h_σx − h_σ⟩ is {low:.6f} to {high:.6f} times the printed sum, in which each pair counts once"
    return claim("eq. 17 as printed", abs(low - 1) < 1e-9 and abs(high - 1) < 1e-9, why)


def _bound() -> Verdict:
    beyond, worst = [], 0.0
    for n in FINE:
        x = _inside(n)
        lb, kendall = both_divergences(x)
        limit = np.ptp(x, axis=1) * kendall
        beyond.append(float(np.mean(lb > limit + ROUNDING)))
        worst = max(worst, float((lb - 2 * limit).max()))
    shares = " and ".join(
        f"{share:.0%} of the {name}" for share, name in zip(beyond, ("square", "cube"), strict=True)
    )
    why = f"d ≤ ε·d_T fails on {shares}; d ≤ 2ε·d_T holds {'everywhere' if worst < ROUNDING else 'not everywhere'}"
    return claim("bound of section 3 as printed", max(beyond) == 0, why)


def _draw() -> Figure:
    figure, axes = panels(14.0, 8.6, 2, 3, width_ratios=(1, 1.3, 1.1))
    for row, draw in zip(axes, (_draw_smooth, _draw_steps), strict=True):
        for ax, n in zip(row, FINE, strict=False):
            draw(ax, n)
            _finish_cells(ax, n)
    for ax, n in zip(axes[:, 2], FINE, strict=True):
        _draw_lines(ax, n)
    shown = axes[0, 2].get_legend_handles_labels()
    figure.legend(*shown, frameon=False, loc="outside lower center", ncols=len(shown[1]), handlelength=3.2)
    figure.suptitle("Divergence of the cut from the order σ = (1, 2, …), and Kendall's distance")
    return figure


def _cells(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the triangles of the figure, one for each order: score vectors at the corners, positions, indices."""
    corners = order_cells(n)[1][:, :3]
    places = (project(corners) if n == 3 else corners).reshape(-1, 2)
    return corners, places, np.arange(len(places)).reshape(-1, 3)


def _draw_smooth(ax: Any, n: int) -> None:
    """Draw the divergence, which is linear on each triangle, from its values at the corners."""
    corners, places, triangles = _cells(n)
    values = both_divergences(corners.reshape(-1, n))[0]
    levels = np.linspace(0, values.max(), 9)
    drawn = ax.tricontourf(*places.T, triangles, values, levels=levels, cmap=SHADES)
    ax.tricontour(*places.T, triangles, values, levels=levels[1:], colors="0.25", linewidths=0.7)
    label = r"$d_{\hat f}(x\,\Vert\,\sigma)$"
    ax.figure.colorbar(drawn, ax=ax, shrink=0.8, pad=0.03, label=label, ticks=levels[::2])
    agreeing = places[triangles[0]].mean(axis=0)
    ax.text(*agreeing, "0", ha="center", va="center")
    ax.set_title(f"Lovász–Bregman, {n} items")


def _draw_steps(ax: Any, n: int) -> None:
    """Draw Kendall's distance, one number for each order."""
    import matplotlib as mpl

    _, places, triangles = _cells(n)
    steps = both_divergences(order_cells(n)[1].mean(axis=1))[1]
    highest = int(steps.max())
    shades = mpl.colormaps[SHADES].resampled(highest + 1)
    edges = mpl.colors.BoundaryNorm(np.arange(highest + 2) - 0.5, shades.N)
    drawn = ax.tripcolor(*places.T, triangles, facecolors=steps, cmap=shades, norm=edges)
    label = r"$d_T(\sigma_x, \sigma)$, pairs in opposite order"
    ax.figure.colorbar(drawn, ax=ax, shrink=0.8, pad=0.03, label=label, ticks=np.arange(highest + 1))
    for step, triangle in zip(steps, triangles, strict=True):
        colour = "white" if step > highest / 2 else "black"
        ax.text(*places[triangle].mean(axis=0), f"{step:.0f}", ha="center", va="center", color=colour)
    ax.set_title(f"Kendall, {n} items")


def _finish_cells(ax: Any, n: int) -> None:
    if n == 3:
        draw_frame(ax)
        ax.set_xlabel("unit cube, seen along (1, 1, 1)")
    else:
        ax.plot([0, 1], [0, 1], color="0.15", linewidth=0.8, linestyle="--")
        ax.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal", xlim=(0, 1), ylim=(0, 1))


def _draw_lines(ax: Any, n: int) -> None:
    """Draw both along a line through the square or a circle in the cube, for several spreads of the scores."""
    for number, spread in enumerate(SPREADS):
        place, x = _line(spread) if n == 2 else _circle(1440, spread * np.sqrt(0.5))
        lb, kendall = both_divergences(x)
        ax.plot(place, lb, label=f"Lovász–Bregman, spread {spread:g}", **curve_style(number))
    ax.plot(place, kendall, label="Kendall, any spread", color="black", linewidth=1.2, linestyle=(0, (1, 1)))
    ax.set(ylabel="divergence")
    if n == 2:
        ax.set(title="2 items, line across the square", xlabel="$t$ in $x$ = ½ + spread · (½ − $t$, $t$ − ½)")
    else:
        ax.set(title="3 items, circle of radius spread/√2", xlabel="order of $x$, around (½, ½, ½)")
        names = [order_name(order) for order in (*AROUND, AROUND[0])]
        ax.set_xticks(60 * np.arange(len(names)), names, rotation=30, ha="right")
    light(ax)


def _line(spread: float) -> tuple[np.ndarray, np.ndarray]:
    t = (np.arange(1000) + 0.5) / 1000
    return t, 0.5 + spread * np.column_stack([0.5 - t, t - 0.5])
