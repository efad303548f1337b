"""Merging search engines
======================

Five search engines answer the same queries. Each lists fifteen documents, with scores on its own scale, and
their quality differs. How should their lists be merged? Without labels, merge by ranks (RRF, Borda) or by
scores on a common scale. These rules perform similarly and about as well as the best single engine, whereas
adding raw scores is a serious mistake. With some judged queries, ``LovaszAggregator`` learns a weight for each
engine, which brings a larger improvement here.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from apexrank import aggregate, metrics
from apexrank.aggregation import LovaszAggregator
from apexrank.plot.style import COLOURS, light

# %%
# There are forty documents per query, most of them irrelevant. Each engine sees their relevance through its own
# noise. Documents that an engine does not list are NaN, and documents that no engine lists are dropped.
noise, scale = np.array([0.8, 1.0, 1.5, 3.0, 8.0]), np.array([1.0, 10.0, 100.0, 0.1, 1000.0])


def answers(n_queries, seed):
    """Return scores (documents × engines), relevance and queries of the documents."""
    rng = np.random.default_rng(seed)
    relevance = rng.choice([0, 1, 2], (n_queries, 40), p=[0.75, 0.17, 0.08])
    scores = scale * (relevance[..., None] + noise * rng.normal(size=(n_queries, 40, 5)))
    scores[scores < np.sort(scores, axis=1)[:, [-15]]] = np.nan
    listed = ~np.isnan(scores).all(axis=2)
    return scores[listed], relevance[listed], np.nonzero(listed)[0]


X, y, queries = answers(100, seed=1)

# %%
# Apply the unsupervised rules query by query: engines are the voters, documents the items. In retrieval, an
# unlisted document ranks last (``missing="last"``); RRF gives it no points.
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
# A hundred other queries have been judged. Learn one weight per engine from them, to a certified minimum.
judged, relevance, lists = answers(100, seed=0)
model = LovaszAggregator(nonnegative=True).fit(judged, relevance, groups=lists)
merged["learnt weights"] = model.predict(X, groups=queries)
print(f"weights {model.weights_.round(2)}, gap {model.dual_gap_:.0e}, noise of the engines {noise}")

# %%
# Compute NDCG at 10 with 95 % bootstrap intervals over queries.
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
# The intervals overlap because queries differ; paired differences on the same queries are clearer.
rival = max(rules, key=lambda name: measured[name].value)
values = {
    name: metrics.per_group(y, s, "ndcg@10", groups=queries)["ndcg@10"].to_numpy()
    for name, s in merged.items()
}
for a, b in (("best engine", rival), (rival, "learnt weights")):
    gain, p_value = (values[b] - values[a]).mean(), metrics.paired_test(values[b], values[a])
    print(f"{b} minus {a}: {gain:+.3f}, p-value {p_value:.4f}")

# %%
ndcg = {name: f"{interval.value:.3f}" for name, interval in measured.items()}
print(
    f"The best unsupervised rule, {rival}, has an NDCG of {ndcg[rival]}, the best engine {ndcg['best engine']} and "
    f"learnt weights {ndcg['learnt weights']}; the sum of raw scores has {ndcg['raw scores']}."
)
