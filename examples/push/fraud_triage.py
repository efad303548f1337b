"""Fraud triage: fifty cases a day
===============================

A bank can review fifty card payments a day. Which ranker finds the most frauds among those fifty? On this
synthetic data set it is not the one with the best AUC: a few honest big spenders look most suspicious of all
and take the top places. A push (p = 16) removes them from the top, at the cost of frauds further down the list,
where nobody looks anyway.
"""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import rankdata

from apexrank import PNormPush, datasets, metrics
from apexrank.plot import RocTopDisplay
from apexrank.plot.style import COLOURS

# %%
# Fit rankers for the whole list (p = 1) and for its top (p = 16) on 2,000 payments, and score 2,000 others.
payments = datasets.make_push_example(4000)
X, y, kind = payments.data, payments.target, payments.segment
train, today = slice(0, 2000), slice(2000, 4000)
rankers = {f"p = {p}": PNormPush(p=p).fit(X[train], y[train]) for p in (1, 16)}
scores = {name: ranker.decision_function(X[today]) for name, ranker in rankers.items()}

# %%
# Which payments are in the top fifty?
found = {}
for name, s in scores.items():
    first = np.argsort(-s)[:50]
    found[name] = int(y[today][first].sum())
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(kind[today][first].tolist()).most_common())
    print(f"{name:6}: {found[name]} frauds in 50 cases ({kinds})")

# %%
# Show where the top twenty of either ranker are in the other's list; frauds are orange, honest customers blue.
places = np.array([rankdata(-s, method="ordinal") for s in scores.values()])
figure, ax = plt.subplots(figsize=(5, 5), layout="constrained")
for case in np.flatnonzero(places.min(axis=0) <= 20):
    ax.plot((0, 1), places[:, case], marker="o", color=COLOURS[y[today][case]])
ax.set(xticks=(0, 1), xticklabels=scores, ylabel="place in the list", yscale="log")
ax.invert_yaxis()

# %%
# Is the difference due to chance? Compute bootstrap intervals over rows, and a paired test on the same rows.
table = metrics.compare(rankers, X[today], y[today], measures=["precision_at_50", "auc"])
print("ranker  measure            value  95 % interval    difference")
for row in table.iter_rows(named=True):
    line = f"{row['ranker']:7} {row['measure']:16} {row['value']:7.3f}  {row['low']:.3f} to {row['high']:.3f}"
    if row["difference"] is not None:
        line += f"  {row['difference']:+.3f} ({row['difference_low']:+.3f} to {row['difference_high']:+.3f})"
    print(line)

# %%
# The ROC curves show both sides of the trade-off; the right panel enlarges the left edge of the left panel.
RocTopDisplay.from_scores(scores, y[today])

# %%
lost = table.filter(measure="auc")["difference"][1]
print(
    f"The push finds {found['p = 16']} frauds a day instead of {found['p = 1']}, at a cost of {-lost:.3f} in AUC."
)
