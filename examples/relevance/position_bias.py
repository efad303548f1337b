"""Clicks: undoing the bias of positions
=====================================

Readers click what they see, and they see the top. A ranker trained on clicks learns the order in which the old
rankers showed the documents. Two weak rankers have logged some 40,000 clicks here. Documents that they showed at
different positions tell how often each position is examined, and labels corrected by that train a ranker as good
as the true grades do.
"""

import matplotlib.pyplot as plt
import numpy as np

from apexrank import LinearRanker, clicks, datasets, metrics
from apexrank.penalties import Ridge
from apexrank.plot.style import COLOURS, light, line_style

# %%
# Made-up queries. The logging rankers go by one weak feature each; readers examine position k with the chance 1/k.
train, test = (datasets.make_letor_example(200, random_state=seed, noise=1.5, spread=0.2) for seed in (0, 1))
log = datasets.make_clicks(train.target, train.data[:, [3, 4]], groups=train.groups, n_sessions=50_000)
counts = clicks.count_clicks(log.row, log.position, log.clicked)
print(f"{log.session[-1] + 1:,} sessions, {int(counts.clicked.sum()):,} clicks")

# %%
# Three curves of propensities: harvested from documents at several positions, regressed on the features, and the
# rate of clicks at each position. That rate is good enough for rankers as weak as these two. Better ones have good
# documents at the top, so that it falls for two reasons.
rate = np.bincount(counts.position, counts.clicked) / np.maximum(
    np.bincount(counts.position, counts.shown), 1
)
propensities = {
    "clicks as they are": np.ones(len(rate) - 1),
    "rate of clicks": rate[1:] / rate[1],
    "harvested": clicks.harvest_propensities(counts),
    "regressed": clicks.regress_propensities(counts, train.data, train.groups),
}
for name in ("harvested", "regressed"):
    error = np.abs(np.log(propensities[name] / log.propensities))[:10].max()
    print(f"{name}: within {np.expm1(error):.0%} of the truth at the first ten positions")

# %%
# A softmax ranker on the labels that each of them gives, and on the true grades.
labels = {name: clicks.click_labels(counts, p, len(train.target)) for name, p in propensities.items()}
labels["true grades"] = clicks.ClickLabels(train.target, np.ones(len(train.target)))
scores = {}
for name, (y, weight) in labels.items():
    ranker = LinearRanker(clicks.cross_entropy, Ridge(0.01))
    scores[name] = ranker.fit(train.data, y, sample_weight=weight, groups=train.groups).predict(test.data)
table = metrics.compare(
    scores, None, test.target, test.groups, measures=["ndcg@10"], baseline="clicks as they are"
)
for row in table.iter_rows(named=True):
    print(f"{row['ranker']:18} NDCG@10 {row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})")

# %%
# The curves, and what they are worth.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
places = np.arange(1, len(rate))
left.plot(places, log.propensities[: len(places)], color="0.6", linewidth=6, label="the truth, 1/k")
for i, name in enumerate(("rate of clicks", "harvested", "regressed")):
    left.plot(places, propensities[name], label=name, **line_style(i))
left.set(xlabel="position", ylabel="propensity, 1 at the top", xscale="log", yscale="log")
left.legend()
for i, row in enumerate(table.iter_rows(named=True)):
    right.plot([row["low"], row["high"]], [i, i], color=COLOURS[0], alpha=0.4, linewidth=5)
    right.plot(row["value"], i, "o", color=COLOURS[0])
right.set(
    yticks=range(len(table)), yticklabels=table["ranker"], xlabel="NDCG@10 of 200 new queries, 95 % interval"
)
right.margins(y=0.15)
right.invert_yaxis()
for ax in (left, right):
    light(ax)

# %%
gap = {row["ranker"]: row["difference"] for row in table.iter_rows(named=True)}
print(
    f"Harvested propensities recover {gap['harvested'] / gap['true grades']:.0%} of the gap to the true grades."
)
