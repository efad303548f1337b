"""Boosted trees for queries without data preparation
==================================================

Can you pass a table of search results to boosted trees without preparing it? ``BoostedRanker`` accepts the
hotels of many searches in any row order, a text column, missing ratings, and the constraint that a better
rating never lowers a hotel's score. Whole searches are held out to choose the number of trees. Without
LightGBM, this page fits nothing.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

from apexrank import metrics
from apexrank.plot.style import COLOURS, light
from apexrank.rankers import BoostedRanker

N_SEARCHES, N_HOTELS = 150, 20


def searches(seed: int) -> tuple[pl.DataFrame, np.ndarray, np.ndarray]:
    """Simulate hotels, their grades (0 ignored, 1 viewed, 2 booked), and the search of each hotel."""
    rng = np.random.default_rng(seed)
    n = N_SEARCHES * N_HOTELS
    price, rating, distance = rng.gamma(3, 40, n), rng.normal(3.6, 0.7, n).clip(1, 5), rng.exponential(3, n)
    kind = rng.choice(["hotel", "hostel", "flat", "cabin", "villa"], n)
    group = rng.permutation(np.repeat([f"search {i}" for i in range(N_SEARCHES)], N_HOTELS))
    liking = 1.2 * rating - 0.012 * price - 0.6 * np.log1p(distance) + np.isin(kind, ["flat", "villa"])
    liking += 1.2 * rng.normal(size=n)
    # hotels with few guests have no rating, and are rather good
    missing = rng.random(n) < 0.25
    liking[missing] += 0.8
    table = pl.DataFrame({"price": price, "rating": rating, "distance": distance, "kind": kind})
    rated = pl.Series("rating", np.where(missing, np.nan, rating))
    return table.with_columns(rated), np.digitize(liking, [3.2, 4.8]), group


train, grades, group = searches(0)
new, new_grades, new_group = searches(1)
print(train.head(4))

# %%
# Fit one estimator with four objectives: monotone retargeting, pairs, ListNet, and LightGBM's own
# ``lambdarank``. Training stops when NDCG@10 on the held-out fifth of the searches has not improved for 30
# rounds.
OBJECTIVES = ["retarget", "pairs", "listnet", "lambdarank"] if find_spec("lightgbm") else []
if not OBJECTIVES:
    print('LightGBM is not installed: pip install "apexrank[boosting]"')
fits = {}
for name in OBJECTIVES:
    ranker = BoostedRanker(
        name,
        n_estimators=300,
        learning_rate=0.05,
        max_leaves=8,
        eval_metric="ndcg@10",
        early_stopping_rounds=30,
        validation_fraction=0.2,
    )
    fits[name] = ranker.fit(train, grades, groups=group)
    found = metrics.evaluate(new_grades, ranker.predict(new), "ndcg@10", groups=new_group)
    print(f"{name:10} {ranker.n_iter_:3} trees, NDCG@10 on new searches {found['ndcg@10']:.3f}")

# %%
# A better rating should never lower a hotel's score. Without a constraint, the trees sometimes fit noise;
# ``monotonic_cst`` prevents that.
at = pl.DataFrame({"price": 100.0, "rating": np.linspace(1.5, 5, 200), "distance": 2.0, "kind": "flat"})
curves = {}
for label, signs in {"unconstrained": None, "monotone": {"rating": 1}}.items() if OBJECTIVES else ():
    ranker = BoostedRanker(n_estimators=100, max_leaves=8, monotonic_cst=signs)
    ranker.fit(train, grades, groups=group)
    curves[label] = ranker.predict(at)
    found = metrics.evaluate(new_grades, ranker.predict(new), "ndcg@10", groups=new_group)
    falls = int((np.diff(curves[label]) < 0).sum())
    print(f"rating {label:14} score falls {falls:2} times, NDCG@10 on new searches {found['ndcg@10']:.3f}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for colour, (name, ranker) in zip(COLOURS, fits.items(), strict=False):
    values = ranker.validation_scores_
    axes[0].plot(np.arange(1, len(values) + 1), values, color=colour, label=name)
    axes[0].plot(ranker.n_iter_, ranker.best_score_, "o", color=colour)
axes[0].set(xlabel="trees", ylabel="NDCG@10 on held-out searches", title="Early stopping (dot: chosen size)")
for colour, style, (label, scores) in zip(COLOURS, ("-", "--"), curves.items(), strict=False):
    axes[1].plot(at["rating"], scores, style, color=colour, label=label)
axes[1].set(xlabel="rating of a flat at 100 per night", ylabel="score", title="Effect of the rating")
for ax in axes:
    light(ax)
    if fits:
        ax.legend(frameon=False, loc="lower right")
