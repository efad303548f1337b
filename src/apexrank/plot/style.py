"""What all pictures share: colours and line styles, light axes, matplotlib on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from apexrank.errors import InputError, MissingExtraError
from apexrank.metrics.evaluation import ranking_scores as estimator_scores

# Okabe and Ito's colours, which colour-blind readers can tell apart (yellow left out: too light for a line);
# seven of them against eight line styles do not repeat a pair for 56 curves.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
STYLES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (6, 1.5, 1, 1.5, 1, 1.5)),
    (0, (8, 2)),
    (0, (2, 1)),
    (0, (4, 1, 1, 1)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


__all__ = [
    "COLOURS",
    "MARKERS",
    "STYLES",
    "curve_style",
    "estimator_scores",
    "light",
    "line_style",
    "one_axes",
    "pyplot",
    "two_axes",
]


def pyplot() -> Any:
    """Matplotlib's pyplot, or an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError('plots need matplotlib: pip install "apexrank[plot]"') from error
    return plt


def curve_style(number: int) -> dict[str, Any]:
    """Colour and line style of a curve of many points: either tells it from its neighbours."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": STYLES[number % len(STYLES)],
        "linewidth": 1.8,
    }


def line_style(number: int) -> dict[str, Any]:
    """Colour, line style and marker of a line: any one of them tells it from its neighbours."""
    return curve_style(number) | {"marker": MARKERS[number % len(MARKERS)], "markersize": 5}


def one_axes(ax: Any, size: tuple[float, float]) -> Any:
    plt = pyplot()
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def light(ax: Any) -> None:
    """Thin grid, no frame."""
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def two_axes(axes: Sequence[Any] | None) -> tuple[Any, Any]:
    """Two panels side by side, the given ones or new ones."""
    plt = pyplot()
    if axes is None:
        axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")[1]
    panels = tuple(np.ravel(np.asarray(axes, dtype=object)))
    if len(panels) != 2:
        raise InputError(
            f"axes must be two matplotlib axes, got {len(panels)}: pass plt.subplots(1, 2)[1] or display.axes_"
        )
    return panels[0], panels[1]
