"""One ranking from graphs that disagree
=====================================

A vertex may link to others in several layers, such as review criteria, networks or kinds of links. Which layer
should count, and for whom? ``ConsensusRank("blend")`` gives every vertex a weight for each of its layers,
chosen so that the vertex's recommendations agree best with the resulting ranks. A criterion that nobody shares
loses its weight. Without a small pull towards equal weights, so does an honest criterion that is merely less
even than another.
"""

import matplotlib.pyplot as plt
import numpy as np

from apexrank import ConsensusRank, PageRank
from apexrank.graph import as_layers
from apexrank.plot.style import COLOURS, light

# %%
# Three authors grade each other's papers by two criteria. Bob also uses a third: how often a paper cites him.
AUTHORS = ["Alice", "Bob", "Carol"]


def reviews(marks):
    """Links from reviewers to authors, weighted by the marks."""
    reviewers = [reviewer for reviewer in marks for _ in AUTHORS]
    return reviewers, AUTHORS * len(marks), [mark for row in marks.values() for mark in row]


criteria = {
    "novelty": reviews({"Alice": (6, 2, 4), "Bob": (5, 4, 3), "Carol": (6, 2, 3)}),
    "clarity": reviews({"Alice": (5, 3, 4), "Bob": (4, 3, 4), "Carol": (4, 3, 5)}),
    "cites Bob": reviews({"Bob": (1, 9, 1)}),
}

# %%
# ``pull`` shrinks the weights towards equal weights: ``inf`` gives the PageRank of the mean of all criteria,
# and 0 lets agreement alone decide. The method minimises the disagreement.
ways = {"equal weights": np.inf, "small pull": 0.1, "consensus": 0.0}
found = {name: ConsensusRank("blend", pull=pull).fit(criteria) for name, pull in ways.items()}
print("                 Alice    Bob  Carol   disagreement   Bob's weights for", ", ".join(criteria))
for name, rank in found.items():
    scores, weights = "".join(f"{score:7.3f}" for score in rank.scores_), rank.layer_weights_[1].round(2)
    print(f"{name:15}{scores}{rank.disagreement_:15.4f}   {weights}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
places = np.arange(len(found))
left = np.zeros(len(found))
for k, name in enumerate(criteria):
    weights = np.array([rank.layer_weights_[1, k] for rank in found.values()])
    axes[0].barh(places, weights, left=left, color=COLOURS[k], edgecolor="white", label=name)
    left += weights
for k, name in enumerate(AUTHORS):
    ranks = [rank.scores_[k] for rank in found.values()]
    axes[1].plot(ranks, places, "osD"[k], color="black", markerfacecolor=COLOURS[k + 3], label=name)
axes[0].set(yticks=places, yticklabels=list(found), xlabel="Bob's weights for the criteria")
axes[1].set(xlabel="score of the author", ylim=(2.6, -0.6))
for ax in axes:
    ax.legend(frameon=False, fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    ax.set_axisbelow(True)
    light(ax)

# %%
# Networks are matched by the names of the people. A person who is missing in a network has no opinion and no
# weight there.
networks = {
    "work": (["ann", "ben", "cy", "ann", "dan"], ["ben", "ann", "ben", "cy", "ben"]),
    "music": (["cy", "dan", "eve", "eve"], ["eve", "eve", "cy", "dan"]),
}
people, union = ConsensusRank("blend").fit(networks), PageRank().fit(as_layers(networks).union())
print("consensus:", " > ".join(people.ranking_), "  union of all links:", " > ".join(union.ranking_))
for person, weights in zip(people.names_, people.layer_weights_, strict=True):
    print(
        f"{person}: " + ", ".join(f"{name} {w:.2f}" for name, w in zip(people.layers_, weights, strict=True))
    )

# %%
equal, chosen = found["equal weights"], found["consensus"]
print(
    f"The weight of Bob's own criterion falls from {equal.layer_weights_[1, 2]:.2f} to "
    f"{chosen.layer_weights_[1, 2]:.2f}, and his score from {equal.scores_[1]:.3f} to {chosen.scores_[1]:.3f}. "
    f"Without a pull, his weight for novelty also falls, to {chosen.layer_weights_[1, 0]:.2f}."
)
