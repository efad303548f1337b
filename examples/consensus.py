"""One ranking from several uncertain graphs.

A vertex may link to others in several layers: criteria, networks, days. ``ConsensusRank`` gives every vertex a weight
for each of its layers, such that what they recommend agrees best with the ranks that follow. Three stories, and what
the consensus does and does not do in them.
"""

import numpy as np

from apexrank import ConsensusRank, PageRank
from apexrank.graph import as_layers
from apexrank.metrics import kendall_tau

# 1. Three authors review each other's papers. One of Bob's criteria is how often a paper cites him.
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
print("Reviewers            Alice    Bob  Carol   Bob's weights of", ", ".join(criteria))
for name, pull in (("equal weights", np.inf), ("small pull to them", 0.1), ("consensus", 0)):
    rank = ConsensusRank(pull=pull).fit(criteria)
    bob = rank.layer_weights_[1]
    print(f"{name:19}" + "".join(f"{score:7.3f}" for score in rank.scores_), "  ", bob.round(2))

# 2. Networks of the same people, matched by name. Not everybody is everywhere: no opinion, no weight.
networks = {
    "work": (["ann", "ben", "cy", "ann", "dan"], ["ben", "ann", "ben", "cy", "ben"]),
    "music": (["cy", "dan", "eve", "eve"], ["eve", "eve", "cy", "dan"]),
}
rank = ConsensusRank().fit(networks)
union = PageRank().fit(as_layers(networks).union())
print(
    "\nPeople from the best to the worst:",
    " ".join(rank.ranking_),
    "| of the union:",
    " ".join(union.ranking_),
)
for person, weights in zip(rank.names_, rank.layer_weights_, strict=True):
    print(f"{person}: {dict(zip(rank.layers_, weights.round(2).tolist(), strict=True))}")

# 3. A week of snapshots of one graph: each misses half of the links, and a third of what it shows is wrong.
rng = np.random.default_rng(0)
n, degree = 150, 8
popularity = 0.3 + rng.pareto(1.5, n)
true = np.zeros((n, n))
for i in range(n):
    true[i, rng.choice(n, degree, replace=False, p=popularity / popularity.sum())] = 1

days = []
for _ in range(7):
    seen, wrong = true * (rng.random((n, n)) < 0.5), rng.random((n, n)) < 0.25 * degree / n
    days.append(np.maximum(seen, wrong))
truth = PageRank().fit(true).scores_
answers = {
    "the last day alone": PageRank().fit(days[-1]),
    "union of 7 days": PageRank().fit(as_layers(days).union()),
    "consensus of 7 days": ConsensusRank().fit(days),
}
distance = {name: np.abs(answer.scores_ - truth).sum() for name, answer in answers.items()}
tau = {name: kendall_tau(scores=(answer.scores_, truth)) for name, answer in answers.items()}
print("\nSnapshots            L1 distance to the truth   Kendall's tau")
for name in answers:
    print(f"{name:21}{distance[name]:24.3f}{tau[name]:16.3f}")
print(f"Nearest ranks: {min(distance, key=distance.get)}; best order: {max(tau, key=tau.get)}")
