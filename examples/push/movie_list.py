"""The cost of a swap in a list of eight movies
============================================

Is it worse to swap two movies at the top of a recommendation list or at its bottom? For the AUC, both swaps
cost one pair. The P-Norm Push gives every bad movie the price ``height ** p``, where the height is the number
of good movies below it, so the swap at the top costs more. The pattern of the list and its prices are from C.
Rudin's talk *Ranking with a P-Norm Push* (Snowbird 2006) and Table 1 of her 2009 paper. The titles are also
from the talk, but their positions are our choice.
"""

import matplotlib.pyplot as plt
import numpy as np

from apexrank import metrics
from apexrank.plot import PairContributionDisplay
from apexrank.plot.style import COLOURS, light

# %%
# The list is sorted from best to worst; 1 marks a movie that she likes. Only the order of the scores matters.
titles = ["Amelie", "Big Fish", "Waterworld", "True Lies", "Spiderman", "Boogeyman", "Hitch", "Titanic"]
liked = np.array([1, 1, 0, 0, 1, 0, 1, 0])
scores = np.arange(8, 0, -1) / 2


def swapped(upper: int) -> np.ndarray:
    """Return the scores after swapping the movies at two neighbouring places."""
    new = scores.copy()
    new[[upper, upper + 1]] = scores[[upper + 1, upper]]
    return new


lists = {"original": scores, "swap at the bottom": swapped(6), "swap at the top": swapped(1)}

# %%
# Print the heights of the four bad movies, and the price of the whole list, R_p, for increasing p.
bad = [title for title, good in zip(titles, liked, strict=True) if not good]
print("heights            ", "  ".join(bad))
for name, s in lists.items():
    cells = [f"{h:{len(title)}.0f}" for h, title in zip(metrics.heights(liked, s), bad, strict=True)]
    print(f"{name:20}" + "  ".join(cells))

powers = (1, 2, 4, 8)
print("\nR_p                   AUC" + "".join(f"{f'p = {p}':>9}" for p in powers))
for name, s in lists.items():
    risks = "".join(f"{metrics.p_norm_risk(liked, s, p=p):9.0f}" for p in powers)
    print(f"{name:20}{metrics.auc(liked, s):6.3f}{risks}")

# %%
# Plot the price of each bad movie. With p = 1 the two swaps cost the same; with p = 4 the swap at the top
# triples the price.
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for ax, p in zip(axes, (1, 4), strict=True):
    left = np.zeros(len(lists))
    for number, title in enumerate(bad):
        price = np.array([metrics.heights(liked, s)[number] ** p for s in lists.values()])
        bars = ax.barh(list(lists), price, left=left, color=COLOURS[number], edgecolor="white", label=title)
        texts = [f"{x:.0f}" if x >= p else "" for x in price]  # no room for smaller ones
        ax.bar_label(bars, texts, label_type="center", color="white")
        left += price
    ax.invert_yaxis()
    ax.set(title=f"p = {p}", xlabel="price of the list, $R_p$")
    light(ax)
axes[1].tick_params(labelleft=False)
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)

# %%
# The objective is smooth, with ``exp(-z)`` for each pair instead of 0 or 1. The share of each pair shows where
# a fit concentrates: with p = 4, on the highest bad movie.
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, p in zip(axes, (1, 4), strict=True):
    display = PairContributionDisplay.from_predictions(liked, scores, p=p, name=f"p = {p}", ax=ax)
    print(f"p = {p}: {bad[0]} accounts for {display.contributions[:, 0].sum():.0%} of the objective")

# %%
for p in (1, 4):
    before, bottom, top = (metrics.p_norm_risk(liked, s, p=p) for s in lists.values())
    print(
        f"With p = {p} the swap at the bottom costs {bottom - before:.0f}, the swap at the top {top - before:.0f}."
    )
