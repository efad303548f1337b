"""A stacked ranker and the weights of its parts
=============================================

A linear score is hard to beat on some sets of queries, and boosted trees on others. ``LetorRanker`` fits linear
scores, additive curves and trees with three objectives on folds of the queries, and weights them by their
out-of-fold scores. This page simulates three cases, in which relevance is linear, nonlinear or an interaction,
and shows the weights. Without LightGBM there are no trees.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from apexrank.plot.style import COLOURS, light
from apexrank.rankers import BoostedRanker, LetorRanker, MonotoneRetargeting

N_QUERIES, N_DOCUMENTS = 60, 20
TREES = find_spec("lightgbm") is not None
PARTS = ["linear", "additive", *(["lambdarank", "rank_xendcg", "retarget"] if TREES else [])]
WORLDS = {
    "linear": lambda X: X[:, 0] + 0.5 * X[:, 1],
    "nonlinear": lambda X: np.abs(X[:, 0]) + np.sin(2 * X[:, 1]),
    "interaction": lambda X: 1.5 * X[:, 0] * X[:, 1],
}


def queries(world: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate documents in random order, their grades 0 to 2, and their queries."""
    rng = np.random.default_rng(seed)
    n = N_QUERIES * N_DOCUMENTS
    X, group = rng.normal(size=(n, 6)), rng.permutation(np.repeat(np.arange(N_QUERIES), N_DOCUMENTS))
    return X, np.digitize(WORLDS[world](X) + 0.7 * rng.normal(size=n), [0.8, 1.8]), group


# %%
# Make the same call in every case. ``oof_ndcg_`` holds the NDCG on held-out queries, and ``weights_`` the
# resulting stacking weights.
fits, found = {}, {}
for world in WORLDS:
    X, y, group = queries(world, 0)
    X_new, y_new, group_new = queries(world, 1)
    fits[world] = LetorRanker(PARTS).fit(X, y, groups=group)
    single = {"linear retargeting": MonotoneRetargeting()}
    if TREES:
        single["lambdarank"] = BoostedRanker("lambdarank", max_leaves=7)
    rankers = {name: ranker.fit(X, y, groups=group) for name, ranker in single.items()}
    rankers["LetorRanker"] = fits[world]
    found[world] = {name: ranker.score(X_new, y_new, groups=group_new) for name, ranker in rankers.items()}
    print(world, {name: round(value, 3) for name, value in found[world].items()})

# %%
# A time budget stops the fit after fewer folds, but not before two.
X, y, group = queries("nonlinear", 0)
quick = LetorRanker(PARTS, time_budget=0).fit(X, y, groups=group)
print(
    len(quick.models_),
    "folds, NDCG",
    round(quick.score(*queries("nonlinear", 1)[:2], groups=queries("nonlinear", 1)[2]), 3),
)

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left = np.zeros(len(WORLDS))
for colour, part in zip(COLOURS, PARTS, strict=False):
    width = np.array([ranker.weights_[part] for ranker in fits.values()])
    axes[0].barh(list(WORLDS), width, left=left, color=colour, label=part)
    left += width
axes[0].set(xlabel="weight", title="Parts of the stacked score", xlim=(0, 1))
axes[0].legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
for place, name in enumerate(found["linear"]):
    values = [found[world][name] for world in WORLDS]
    offset = np.arange(len(WORLDS)) + 0.15 * (place - 1)
    axes[1].plot(values, offset, "o", color=COLOURS[place], label=name)
axes[1].set_yticks(range(len(WORLDS)), list(WORLDS))
axes[1].set(xlabel="NDCG", title="Rankers on new queries")
axes[1].legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
for ax in axes:
    ax.invert_yaxis()
    light(ax)
