"""The mean of trees and a linear score
====================================

A linear score is hard to beat on some sets of queries, and boosted trees on others. ``LetorRanker`` is the mean of
both: lambdarank trees and linear retargeting, fitted on folds of the queries. This page simulates three cases, in
which relevance is linear, nonlinear or an interaction, and compares it with the linear score alone. Without LightGBM,
this page fits nothing.
"""

from importlib.util import find_spec
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from apexrank.plot.style import COLOURS, light
from apexrank.rankers import LetorRanker, MonotoneRetargeting

N_QUERIES, N_DOCUMENTS = 60, 20
WORLDS = {
    "linear": lambda X: X[:, 0] + 0.5 * X[:, 1],
    "nonlinear": lambda X: np.abs(X[:, 0]) + np.sin(2 * X[:, 1]),
    "interaction": lambda X: 1.5 * X[:, 0] * X[:, 1],
}
RANKERS: dict[str, Any] = {"linear retargeting": MonotoneRetargeting(), "LetorRanker": LetorRanker()}


def queries(world: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate documents in random order, their grades 0 to 2, and their queries."""
    rng = np.random.default_rng(seed)
    n = N_QUERIES * N_DOCUMENTS
    X, group = rng.normal(size=(n, 6)), rng.permutation(np.repeat(np.arange(N_QUERIES), N_DOCUMENTS))
    return X, np.digitize(WORLDS[world](X) + 0.7 * rng.normal(size=n), [0.8, 1.8]), group


# %%
# Make the same call in every case, and measure the NDCG on new queries.
if find_spec("lightgbm") is None:
    print('LightGBM is not installed: pip install "apexrank[boosting]"')
found: dict[str, list[float]] = {name: [] for name in RANKERS}
for world in WORLDS if find_spec("lightgbm") else ():
    X, y, group = queries(world, 0)
    X_new, y_new, group_new = queries(world, 1)
    for name, ranker in RANKERS.items():
        found[name].append(ranker.fit(X, y, groups=group).score(X_new, y_new, groups=group_new))
        print(f"{world:12} {name:20} NDCG {found[name][-1]:.3f}")

# %%
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for colour, (name, values) in zip(COLOURS, found.items(), strict=False):
    ax.plot(values, list(WORLDS)[: len(values)], "o", color=colour, label=name)
ax.set(xlabel="NDCG", title="Rankers on new queries")
ax.invert_yaxis()
ax.legend(frameon=False)
light(ax)
