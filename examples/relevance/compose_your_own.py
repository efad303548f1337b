"""Compose your own: listwise objective, coefficients that vary smoothly
=====================================================================

Each document of a query has the relevance that people gave it, and one feature for each of 24 hours: how often
it was read then. Neighbouring hours should have similar coefficients, none of them below 0. There is no
estimator of that name, but its two parts exist: the listwise objective of monotone retargeting, and a penalty
``w'Pw`` on the differences of neighbours with bounds.
"""

import matplotlib.pyplot as plt
import numpy as np

from apexrank import LinearRanker
from apexrank.penalties import NonNegative, Quadratic, Ridge

rng = np.random.default_rng(0)
truth = np.exp(-0.5 * ((np.arange(24) - 15) / 3) ** 2)  # what is read in the afternoon is relevant
X, queries = rng.normal(size=(600, 24)), np.repeat(np.arange(60), 10)
grades = np.digitize(X @ truth + 2 * rng.normal(size=600), [0.0, 2.0, 4.0])

# %%
# The composition: an objective from one family, a penalty from another.
steps = np.diff(np.eye(24), axis=0)
smooth = NonNegative(Quadratic(steps.T @ steps + 0.01 * np.eye(24), alpha=30.0))
composed = LinearRanker("retarget", smooth).fit(X, grades, groups=queries)
ridge = LinearRanker("retarget", Ridge(3.0)).fit(X, grades, groups=queries)

for name, ranker in (("ridge", ridge), ("smooth, at least 0", composed)):
    cosine = ranker.coef_ @ truth / np.linalg.norm(ranker.coef_) / np.linalg.norm(truth)
    print(f"{name:20} cosine with the truth {cosine:.3f}, duality gap {ranker.dual_gap_:.0e}")

# %%
# Both are minima with a certificate; the composed one looks like the truth.
fig, ax = plt.subplots(figsize=(7, 3.5))
for label, coef in (("truth", truth), ("ridge", ridge.coef_), ("smooth, at least 0", composed.coef_)):
    ax.plot(coef / np.abs(coef).max(), marker="o", label=label)
ax.set(xlabel="hour", ylabel="coefficient, largest = 1")
ax.legend()
plt.show()
