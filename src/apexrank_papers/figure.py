"""Matplotlib figures of the experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apexrank.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new_figure(width: float, height: float) -> Figure:
    """Make a figure that belongs to its caller alone: pyplot would keep a reference and never free it."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError('figures need matplotlib: pip install "apexrank[plot]"') from None
    return Figure(figsize=(width, height), layout="constrained")
