"""Correcting clicks for position bias
===================================

Readers click what they see, and they see the top. A ranker trained on raw clicks learns the order in which the
old rankers showed the documents. Here two weak rankers have logged some 40,000 clicks. Documents that they
showed at different positions reveal how often readers examine each position. A ranker trained on labels
corrected for this is as good as one trained on the true grades.
"""

import matplotlib.pyplot as plt
import numpy as np

from apexrank import LinearRanker, clicks, datasets, metrics
from apexrank.penalties import Ridge
from apexrank.plot.style import COLOURS, light, line_style

# %%
# Simulate queries. Each logging ranker sorts by one weak feature; readers examine position k with probability
# 1/k.
train, test = (datasets.make_letor_example(200, random_state=seed, noise=1.5, spread=0.2) for seed in (0, 1))
log = datasets.make_clicks(train.target, train.data[:, [3, 4]], groups=train.groups, n_sessions=50_000)
counts = clicks.count_clicks(log.row, log.position, log.clicked)
print(f"{log.session[-1] + 1:,} sessions, {int(counts.clicked.sum()):,} clicks")

# %%
# Estimate three propensity curves: harvested from documents at several positions, regressed on the features,
# and the click rate at each position. The click rate is good enough for logging rankers as weak as these two.
# Better rankers place good documents at the top, so the rate would fall for two reasons.
rate = np.bincount(counts.position, counts.clicked) / np.maximum(
    np.bincount(counts.position, counts.shown), 1
)
propensities = {
    "raw clicks": np.ones(len(rate) - 1),
    "click rate": rate[1:] / rate[1],
    "harvested": clicks.harvest_propensities(counts),
    "regressed": clicks.regress_propensities(counts, train.data, train.groups),
}
for name in ("harvested", "regressed"):
    error = np.abs(np.log(propensities[name] / log.propensities))[:10].max()
    print(f"{name}: within {np.expm1(error):.0%} of the truth at the first ten positions")

# %%
# Train a softmax ranker on the labels from each propensity estimate, and on the true grades.
labels = {name: clicks.click_labels(counts, p, len(train.target)) for name, p in propensities.items()}
labels["true grades"] = clicks.ClickLabels(train.target, np.ones(len(train.target)))
scores = {}
for name, (y, weight) in labels.items():
    ranker = LinearRanker(clicks.cross_entropy, Ridge(0.01))
    scores[name] = ranker.fit(train.data, y, sample_weight=weight, groups=train.groups).predict(test.data)
table = metrics.compare(scores, None, test.target, test.groups, measures=["ndcg@10"], baseline="raw clicks")
for row in table.iter_rows(named=True):
    print(f"{row['ranker']:18} NDCG@10 {row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})")

# %%
# Plot the propensities and the resulting NDCG@10.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
places = np.arange(1, len(rate))
left.plot(places, log.propensities[: len(places)], color="0.6", linewidth=6, label="truth, 1/k")
for i, name in enumerate(("click rate", "harvested", "regressed")):
    left.plot(places, propensities[name], label=name, **line_style(i))
left.set(xlabel="position", ylabel="propensity, 1 at the top", xscale="log", yscale="log")
left.legend()
for i, row in enumerate(table.iter_rows(named=True)):
    right.plot([row["low"], row["high"]], [i, i], color=COLOURS[0], alpha=0.4, linewidth=5)
    right.plot(row["value"], i, "o", color=COLOURS[0])
right.set(
    yticks=range(len(table)), yticklabels=table["ranker"], xlabel="NDCG@10 on 200 new queries, 95 % interval"
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
