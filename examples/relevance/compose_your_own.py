"""A custom ranker: listwise objective with smooth coefficients
============================================================

Each document of a query has a relevance grade, and one feature for each of 24 hours: how often it was read in
that hour. Neighbouring hours should have similar coefficients, and none should be negative. No built-in
estimator does this, but its two parts exist: the listwise objective of monotone retargeting, and a penalty
``w'Pw`` on the differences between neighbours with bounds.
"""

import matplotlib.pyplot as plt
import numpy as np

from apexrank import LinearRanker
from apexrank.penalties import NonNegative, Quadratic, Ridge

rng = np.random.default_rng(0)
truth = np.exp(-0.5 * ((np.arange(24) - 15) / 3) ** 2)  # documents read in the afternoon are relevant
X, queries = rng.normal(size=(600, 24)), np.repeat(np.arange(60), 10)
grades = np.digitize(X @ truth + 2 * rng.normal(size=600), [0.0, 2.0, 4.0])

# %%
# Combine an objective from one family with a penalty from another.
steps = np.diff(np.eye(24), axis=0)
smooth = NonNegative(Quadratic(steps.T @ steps + 0.01 * np.eye(24), alpha=30.0))
composed = LinearRanker("retarget", smooth).fit(X, grades, groups=queries)
ridge = LinearRanker("retarget", Ridge(3.0)).fit(X, grades, groups=queries)

for name, ranker in (("ridge", ridge), ("smooth, non-negative", composed)):
    cosine = ranker.coef_ @ truth / np.linalg.norm(ranker.coef_) / np.linalg.norm(truth)
    print(f"{name:20} cosine similarity to the truth {cosine:.3f}, duality gap {ranker.dual_gap_:.0e}")

# %%
# Both fits are certified minima; the composed one resembles the truth.
fig, ax = plt.subplots(figsize=(7, 3.5))
for label, coef in (("truth", truth), ("ridge", ridge.coef_), ("smooth, non-negative", composed.coef_)):
    ax.plot(coef / np.abs(coef).max(), marker="o", label=label)
ax.set(xlabel="hour", ylabel="coefficient, largest = 1")
ax.legend()
plt.show()
