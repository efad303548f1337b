"""The shape of every effect
=========================

Card payments are riskier at night, and a customer of unknown age is a risk as well. Large payments are risky in
Spain, and small ones abroad, where thieves test stolen cards. A linear score cannot express any of this.
``AdditiveRanker`` fits a function for each column, and for the pairs of columns that the data call for.
``ShapeDisplay`` plots each function with its band, the distribution of the rows, and a separate marker for
missing values.
"""

import numpy as np
import pandas as pd

from apexrank import AdditiveRanker, PNormPush, metrics
from apexrank.plot import ShapeDisplay


# %%
# There are 8,000 payments, a few percent of them fraudulent.
def payments(rng: np.random.Generator, n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Simulate amount, hour, customer age and country of payments, and fraud labels."""
    amount, hour = np.exp(rng.normal(4, 1, n)), rng.uniform(0, 24, n)
    age = np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 90, n))
    country = rng.choice(["Chile", "Kenya", "Nepal", "Spain"], n, p=[0.1, 0.2, 0.2, 0.5])
    night = np.cos(2 * np.pi * (hour - 2) / 24)
    risk = 1.5 * night + (country == "Chile") + np.isnan(age) - np.abs(np.nan_to_num(age, nan=40) - 40) / 30
    risk += np.where(country == "Spain", 1, -1) * (np.log(amount) - 4)
    frame = pd.DataFrame({"amount": amount, "hour": hour, "age": age, "country": country})
    return frame, rng.random(n) < 1 / (1 + np.exp(4.5 - 1.3 * risk))


rng = np.random.default_rng(0)
(X, y), (X_new, y_new) = payments(rng, 8000), payments(rng, 8000)
print(f"{y.sum()} frauds among {len(y):,} payments")

# %%
# The additive ranker accepts text and missing values directly; the linear ranker needs them encoded as numbers.
dummies = [pd.get_dummies(part.fillna({"age": 40}), dtype=float) for part in (X, X_new)]
linear = PNormPush(alpha=1e-3).fit(dummies[0], y)
additive = AdditiveRanker().fit(X, y)
found = {"linear": linear.decision_function(dummies[1]), "additive": additive.decision_function(X_new)}
for name, scores in found.items():
    first = metrics.precision_at(y_new, scores, k=100)
    print(f"{name:9} AUC {metrics.auc(y_new, scores):.3f}, frauds in the top 100: {100 * first:.0f}")

# %%
# Effects average 0 over the training rows, and all panels share one scale, so heights are comparable.
display = ShapeDisplay.from_estimator(additive)
night = display.effects.columns[0]
print(f"most important: {night.name}, from {night.effect[0].min():.2f} to {night.effect[0].max():+.2f}")

# %%
# A score is a constant plus the contributions of the columns. What raises the score of the top-ranked new
# payment?
top = int(np.argmax(found["additive"]))
for name, value, part in zip(X_new, X_new.iloc[top], additive.contributions(X_new)[top], strict=True):
    print(f"{name:8} {value!s:>20.7}  {part:+.2f}")
