"""Draw ``docs/images/card.png``, the picture in link previews: ``python docs/_ext/draw_card.py``."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.figure
import numpy as np
from matplotlib.patches import FancyBboxPatch, Polygon

from apexrank import PNormPush, datasets

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#555555"


def draw_logo(figure):
    """Draw the shapes of ``_static/logo.svg``, which has a view box of 32 by 32."""
    ax = figure.add_axes((0.05, 0.70, 0.105, 0.20), xlim=(0, 32), ylim=(32, 0), aspect="equal")
    ax.axis("off")
    ax.add_patch(Polygon([(16, 3), (22, 11), (10, 11)], color=ORANGE, lw=0))
    for x, y, width, alpha in ((8, 13.5, 16, 1), (5, 19.5, 22, 0.65), (2, 25.5, 28, 0.4)):
        bar = FancyBboxPatch((x + 1, y + 1), width - 2, 2, "round,pad=1", color=BLUE, alpha=alpha, lw=0)
        ax.add_patch(bar)


def draw_curves(figure):
    """Draw the frauds found among the first false alarms: the example of the README."""
    X, y = datasets.make_push_example(4000, return_X_y=True)
    ax = figure.add_axes((0.57, 0.16, 0.38, 0.70))
    for p, colour, height, name in (
        (16, ORANGE, 57, "with a push (p = 16)"),
        (1, BLUE, 20, "without (p = 1)"),
    ):
        scores = PNormPush(p=p).fit(X[:2000], y[:2000]).decision_function(X[2000:])
        labels = y[2000:][np.argsort(-scores)]
        negatives, positives = np.cumsum(labels == 0), np.cumsum(labels == 1)
        shown = negatives <= 20
        ax.step(negatives[shown], positives[shown], where="post", color=colour, lw=4)
        ax.text(1.5, height, name, color=colour, fontsize=20, va="center")
    ax.set(xlim=(0, 20), ylim=(0, 66), xticks=(0, 10, 20))
    ax.set_xlabel("false alarms", fontsize=18, color=GREY)
    ax.set_title("frauds found", fontsize=18, color=GREY, loc="left")
    ax.tick_params(labelsize=15, colors=GREY)
    ax.spines[["top", "right"]].set_visible(False)


def main():
    """Write the picture, 1200 by 630 pixels."""
    figure = mpl.figure.Figure(figsize=(12, 6.3), dpi=100, facecolor="white")
    draw_logo(figure)
    figure.text(0.165, 0.755, "apexrank", fontsize=46, weight="bold", color="#222222")
    figure.text(
        0.05, 0.43, "Ranking by convex\noptimisation that gets the\ntop of the list right", fontsize=29
    )
    tagline = "learning to rank · graph ranks\nrank aggregation · Python and CLI"
    figure.text(0.05, 0.19, tagline, fontsize=20, color=GREY, linespacing=1.5)
    draw_curves(figure)
    figure.savefig(Path(__file__).parents[1] / "images/card.png", metadata={"Software": None})


if __name__ == "__main__":
    mpl.rcParams["font.family"] = "DejaVu Sans"
    main()
