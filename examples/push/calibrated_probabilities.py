"""Calibrated probabilities from a push
====================================

The scores of a push define a ranking, not probabilities. How can you obtain probabilities without changing the
ranking? scikit-learn's ``CalibratedClassifierCV`` with ``ensemble=False`` fits the ranker once, on all training
rows, and learns one increasing function from scores to probabilities on out-of-fold scores (cross-validation).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.metrics import brier_score_loss

from apexrank import PNormPush, datasets, metrics
from apexrank.plot.style import light, line_style

# %%
# Fit on 10,000 payments and evaluate on 10,000 others.
X, y = datasets.make_push_example(20_000, return_X_y=True)
train, test = slice(0, 10_000), slice(10_000, 20_000)
ranker = PNormPush(p=4).fit(X[train], y[train])
scores = ranker.decision_function(X[test])

# %%
# "sigmoid" (Platt scaling) is strictly increasing and adds no ties. "isotonic" fits more shapes, but merges
# neighbouring scores into ties; use it only for probabilities, and rank by the score.
probabilities = {"squashed scores": expit(scores)}
for method in ("sigmoid", "isotonic"):
    calibrated = CalibratedClassifierCV(PNormPush(p=4), method=method, ensemble=False, cv=5)
    probabilities[method] = calibrated.fit(X[train], y[train]).predict_proba(X[test])[:, 1]

# %%
# Plot reliability on new cases in ten groups of equal size: calibrated probabilities lie on the diagonal.
figure, ax = plt.subplots(figsize=(5.4, 4.6), layout="constrained")
ax.plot([0, 1], [0, 1], color="0.7", linewidth=0.8)
print("Reliability on new cases, ten groups of equal size: mean probability -> share of frauds")
for number, (name, probability) in enumerate(probabilities.items()):
    share, mean = calibration_curve(y[test], probability, n_bins=10, strategy="quantile")
    cells = "  ".join(f"{m:.2f}->{s:.2f}" for m, s in zip(mean, share, strict=True))
    print(f"{name:16}{cells}")
    ax.plot(mean, share, label=name, **line_style(number))
ax.set(xlabel="mean probability", ylabel="share of frauds", title="Reliability on new payments")
light(ax)
ax.legend(frameon=False, handlelength=3.2)

# %%
# Better probabilities have a smaller Brier score; the ranking measures stay the same.
print("\n                Brier score      AUC   precision at 50")
for name, probability in probabilities.items():
    measures = metrics.auc(y[test], probability), metrics.precision_at(y[test], probability, k=50)
    print(f"{name:16}{brier_score_loss(y[test], probability):11.4f}{measures[0]:9.4f}{measures[1]:18.2f}")

# %%
same_order = np.array_equal(np.argsort(scores), np.argsort(probabilities["sigmoid"]))
print(f"\nThe sigmoid leaves the ranking unchanged: {same_order}")
