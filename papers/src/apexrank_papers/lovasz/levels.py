"""Sub-level sets of the extended Lovász–Bregman divergence (Iyer and Bilmes 2013, Figure 2); deterministic.

The text does not specify f. Ours is √|X|, as in Figure 3, because the extended divergence needs a monotone f.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from apexrank.aggregation.lovasz_bregman import LovaszBregman
from apexrank.plot.style import COLOURS
from apexrank_papers.result import Figure, Result, Verdict, claim, panels, question, text_view, tidy

SQRT = LovaszBregman("sqrt")
Y_VALUES = {"y = (1, 2)": (1.0, 2.0), "y = (2, 1)": (2.0, 1.0), "y = 0": (0.0, 0.0)}
DEGREES = np.arange(0, 360, 15)
REACH = 3.0  # limit of the axes
SHADES = "Blues"
ORDERED = list(Y_VALUES.values())[:2]
ROUNDING = 1e-12


def extended(x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """Compute ``d(x, y)`` for the vectors x and one or several y (eq. 14, for signed vectors).

    Examples
    --------
    >>> extended([[1, 3], [3, 1], [-1, -3]], [1, 2]).round(3).tolist()
    [0.0, 1.172, 6.828]
    """
    return np.asarray(SQRT.extended_divergence(x, y))


def lovasz_figure2() -> Result:
    """Compute sub-level sets of the extended divergence, which are unbounded where x has the order and signs of y.

    Examples
    --------
    >>> [verdict.word for verdict in lovasz_figure2().verdicts]
    ['agrees', 'agrees', 'yes', 'agrees']
    """
    turn = np.deg2rad(DEGREES)
    rays = np.column_stack([np.cos(turn), np.sin(turn)])
    rays[np.abs(rays) < 1e-15] = 0.0
    found = extended(rays, list(Y_VALUES.values()))
    columns = {"divergence": np.where(found < 1e-12, 0.0, found)}
    table = tidy({"degrees": DEGREES.tolist(), "y": Y_VALUES}, columns).select("y", "degrees", "divergence")

    def leaves(divergence: float, **_: Any) -> str:
        return "∞" if divergence == 0 else f"{1 / divergence:.3f}"

    view = text_view(table, leaves, on="y", index="degrees")
    notes = [
        "f(X) = √|X|, φ(x) = f̂(|x|), d(x, y) = φ(x) − ⟨x, ∇φ(y)⟩. Table: d of the unit vector at each angle, "
        "counted from the first axis. View: where the ray at this angle leaves {d ≤ 1}; it leaves {d ≤ c} c times as "
        "far.",
        "“Open” in the paper means unbounded: the sets {d ≤ c} contain their boundary.",
    ]
    return Result(table, view, [_endless(), _prefers(), _mirrored(), _norm()], _draw(), notes)


def _plane(m: int = 301) -> np.ndarray:
    values = np.linspace(-REACH, REACH, m)
    return np.stack(np.meshgrid(values, values, indexing="xy"), axis=-1).reshape(-1, 2)


def _endless() -> Verdict:
    """Check that d is 0 on all multiples of y, and otherwise only on vectors with its order and signs."""
    x, holds, worst = _plane(), True, 0.0
    for y in ORDERED:
        above, below = x[:, np.argmax(y)], x[:, np.argmin(y)]
        holds &= bool(((extended(x, y) < ROUNDING) == ((above >= below) & (below >= 0))).all())
        worst = max(worst, float(extended(np.outer([1, 10, 1e6], y), y).max()))
    why = (
        f"d = {worst:.0e} at y, 10·y and 10⁶·y; d = 0 {'exactly' if holds else 'not exactly'} where x has the order "
        "and the signs of y, a cone of 45 degrees that every {d ≤ c} contains"
    )
    return claim("sub-level sets are “open”", holds and worst < 1e-9, why)


def _prefers() -> Verdict:
    """Claim: of x and x with swapped scores, the one in y's order is closer, by a fixed multiple of |x_1 − x_2|."""
    x = _plane()
    x = x[x[:, 0] != x[:, 1]]
    rates = [
        (extended(x[:, ::-1], y) - extended(x, y)) / (x[:, np.argmax(y)] - x[:, np.argmin(y)])
        for y in ORDERED
    ]
    low, high = float(np.min(rates)), float(np.max(rates))
    why = f"out of y's order x costs {low:.4f} to {high:.4f} times |x_1 − x_2| more than in it, in all four quadrants"
    return claim("they prefer the order of y", low > 0, why)


def _mirrored() -> Verdict:
    x = _plane()
    gap = float(np.abs(extended(x, ORDERED[0]) - extended(x[:, ::-1], ORDERED[1])).max())
    return claim(
        "left and right are mirror images", gap < ROUNDING, f"they differ by {gap:.0e} at most", question
    )


def _norm() -> Verdict:
    x = _plane()
    gap = float(np.abs(extended(x, [0, 0]) - SQRT.extension(np.abs(x))).max())
    why = f"d(x, 0) and f̂(|x|) differ by {gap:.0e} at most"
    return claim("y = 0 gives the norm f̂(|x|)", gap < ROUNDING, why)


def _draw() -> Figure:
    figure, axes = panels(13.5, 5.0, 1, len(Y_VALUES), sharey=True)
    levels = np.arange(0, 10)
    x = _plane().reshape(301, 301, 2)
    for ax, (name, y) in zip(axes, Y_VALUES.items(), strict=True):
        d = extended(x.reshape(-1, 2), y).reshape(301, 301)
        drawn = ax.contourf(x[..., 0], x[..., 1], d, levels=levels, cmap=SHADES)
        ax.contour(x[..., 0], x[..., 1], d, levels=levels[1:], colors="0.15", linewidths=0.8)
        _draw_y(ax, y)
        ax.set(title=name, xlabel="$x_1$", aspect="equal", xlim=(-REACH, REACH), ylim=(-REACH, REACH))
    axes[0].set_ylabel("$x_2$")
    figure.colorbar(drawn, ax=axes, label="$d(x, y)$", shrink=0.85)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, loc="outside lower center", ncols=len(labels))
    figure.suptitle("Sub-level sets of the extended divergence, f(X) = √|X|")
    return figure


def _draw_y(ax: Any, y: tuple[float, float]) -> None:
    ax.axhline(0, color="0.5", linewidth=0.6)
    ax.axvline(0, color="0.5", linewidth=0.6)
    if any(y):
        cone = 2 * REACH * np.array([[0, 0], [1, 1], np.eye(2)[int(np.argmax(y))]])
        style: Any = {"facecolor": "none", "edgecolor": COLOURS[1], "hatch": r"\\", "linewidth": 1.2}
        ax.fill(*cone.T, label="d = 0: order and signs of y", **style)
    dot: Any = {"marker": "o", "markersize": 8, "color": COLOURS[1], "markeredgecolor": "black"}
    ax.plot(*y, linestyle="none", label="y", **dot)
