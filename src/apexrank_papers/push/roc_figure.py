"""Four panels of ROC curves in counts, as in JMLR 2009, Figures 5 to 7."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apexrank.errors import MissingExtraError
from apexrank.plot import RocTopDisplay

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scores = dict[str, np.ndarray]


def draw_panels(title: str, sides: dict[str, tuple[np.ndarray, Scores]]) -> Figure:
    """Draw each side (train, test) in a row: the whole curves and their leftmost part.

    Parameters
    ----------
    title : str
        Written above.
    sides : dict
        For each row of panels its name, the labels, and the scores of each ranker.

    Examples
    --------
    >>> y = np.array([0, 1, 0, 1])
    >>> figure = draw_panels("An example", {"test": (y, {"p=1": np.arange(4), "p=2": -np.arange(4)})})
    >>> [ax.get_title() for ax in figure.axes]
    ['test, whole list', 'test, top: the first 2 false positives']
    """
    figure = _new_figure(len(sides))
    axes = figure.subplots(len(sides), 2, squeeze=False)
    for (side, (y, scores)), pair in zip(sides.items(), axes, strict=True):
        RocTopDisplay.from_scores(scores, y, axes=pair)
        for ax in pair:
            ax.set_title(f"{side}, {ax.get_title().lower()}")
    figure.suptitle(title)
    return figure


def _new_figure(n_rows: int) -> Figure:
    # A bare figure belongs to its caller alone: pyplot would keep a reference and never free it.
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError('figures need matplotlib: pip install "apexrank[plot]"') from None
    return Figure(figsize=(10, 4.4 * n_rows), layout="constrained")
