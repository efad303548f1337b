"""Merging search engines
======================

Five engines answer the same queries. Each lists fifteen documents, with scores on a scale of its own, and
they are not equally good. How should one list be made? Without labels, by places (RRF, Borda) or by scores on
one scale: these rules are near each other and near the best engine alone, and adding raw scores is a bad
mistake. With some judged queries, ``LovaszAggregator`` learns how much each engine is worth, which here is
the larger step.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from apexrank import aggregate, metrics
from apexrank.aggregation import LovaszAggregator
from apexrank.plot.style import COLOURS, light

# %%
# Forty documents a query, most of no use. An engine sees their relevance through noise of its own; what it
# does not list is NaN, and documents that nobody lists are left out.
noise, scale = np.array([0.8, 1.0, 1.5, 3.0, 8.0]), np.array([1.0, 10.0, 100.0, 0.1, 1000.0])


def answers(n_queries, seed):
    """Scores of documents × engines, their relevance and their queries."""
    rng = np.random.default_rng(seed)
    relevance = rng.choice([0, 1, 2], (n_queries, 40), p=[0.75, 0.17, 0.08])
    scores = scale * (relevance[..., None] + noise * rng.normal(size=(n_queries, 40, 5)))
    scores[scores < np.sort(scores, axis=1)[:, [-15]]] = np.nan
    listed = ~np.isnan(scores).all(axis=2)
    return scores[listed], relevance[listed], np.nonzero(listed)[0]


X, y, queries = answers(100, seed=1)

# %%
# Rules without labels, query by query: engines are the voters, documents the items. In retrieval not to be
# listed is to be last, which ``missing="last"`` says; RRF gives no points.
rules: dict[str, dict[str, Any]] = {
    "raw scores": {"method": "lovasz-bregman", "missing": "last"},
    "RRF": {"method": "rrf"},
    "Borda": {"method": "borda", "missing": "last"},
    "Lovász–Bregman": {"method": "lovasz-bregman", "normalize": "minmax", "missing": "last"},
    "CombMNZ": {"method": "combmnz", "normalize": "minmax"},
}
merged = {"best engine": np.nan_to_num(X[:, 0], nan=-100)} | {name: np.empty(len(y)) for name in rules}
for query in np.unique(queries):
    rows = queries == query
    for name, rule in rules.items():
        merged[name][rows] = aggregate(X[rows].T, **rule).scores

# %%
# A hundred other queries have been judged. One weight per engine is learnt from them, to a certified minimum.
judged, relevance, lists = answers(100, seed=0)
model = LovaszAggregator(nonnegative=True).fit(judged, relevance, groups=lists)
merged["learnt weights"] = model.predict(X, groups=queries)
print(f"weights {model.weights_.round(2)}, gap {model.dual_gap_:.0e}, noise of the engines {noise}")

# %%
# NDCG at 10, with 95 % intervals over queries.
measured = {name: metrics.bootstrap("ndcg@10", y, s, groups=queries) for name, s in merged.items()}
for name, interval in measured.items():
    print(f"{name:15} {interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})")

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=(3, 2))
low, value, high = np.array([(found.low, found.value, found.high) for found in measured.values()]).T
axes[0].errorbar(value, list(measured), xerr=(value - low, high - value), fmt="o", color=COLOURS[0])
axes[0].invert_yaxis()
axes[0].set(xlabel="NDCG at 10", xlim=(0, 1))
axes[1].bar([f"{sd:g}" for sd in noise], model.weights_, color=COLOURS[1])
axes[1].set(xlabel="noise of the engine", ylabel="learnt weight")
axes[1].set_axisbelow(True)
for ax in axes:
    light(ax)

# %%
# Intervals of rules overlap because queries differ; on the same queries differences are clearer.
rival = max(rules, key=lambda name: measured[name].value)
values = {
    name: metrics.per_group(y, s, "ndcg@10", groups=queries)["ndcg@10"].to_numpy()
    for name, s in merged.items()
}
for a, b in (("best engine", rival), (rival, "learnt weights")):
    gain, p_value = (values[b] - values[a]).mean(), metrics.paired_test(values[b], values[a])
    print(f"{b} against {a}: {gain:+.3f}, p-value {p_value:.4f}")

# %%
ndcg = {name: f"{interval.value:.3f}" for name, interval in measured.items()}
print(
    f"The best rule without labels, {rival}, has an NDCG of {ndcg[rival]}, the best engine {ndcg['best engine']}, "
    f"learnt weights {ndcg['learnt weights']}; raw scores added up have {ndcg['raw scores']}."
)
