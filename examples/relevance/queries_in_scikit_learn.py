"""Queries in scikit-learn
=======================

How can you use queries in scikit-learn pipelines and searches? Metadata routing passes ``groups`` to the
splitter, so that folds hold whole queries, to the scaling within queries, to the ranker, and to its score, the
NDCG. A scorer such as ``metrics.get_scorer("ndcg@10")`` also receives them, but scikit-learn then passes none
to ``predict``, so use it only with rankers that do not scale within queries.
"""

import matplotlib.pyplot as plt
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline

from apexrank import MonotoneRetargeting, datasets, metrics
from apexrank.plot.style import light, line_style
from apexrank.preprocessing import QueryNormalizer

train, test = (datasets.make_letor_example(150, random_state=seed, noise=1.5) for seed in (0, 1))

# %%
# Combine scaling and retargeting in one pipeline, and choose alpha by cross-validation over whole queries.
alphas = [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0]
with sklearn.config_context(enable_metadata_routing=True):
    ranker = MonotoneRetargeting().set_fit_request(groups=True).set_score_request(groups=True)
    pipeline = make_pipeline(QueryNormalizer(), ranker)
    search = GridSearchCV(pipeline, {"monotoneretargeting__alpha": alphas}, cv=GroupKFold(5))
    search.fit(train.data, train.target, groups=train.groups)
    scores = search.best_estimator_.predict(test.data, groups=test.groups)
alpha = search.best_params_["monotoneretargeting__alpha"]
print(f"alpha {alpha:g}: NDCG {search.best_score_:.3f} on held-out queries")

# %%
# Plot NDCG against alpha, with one standard error over the five folds (their standard deviation, computed with
# 1/n, divided by the square root of n - 1).
mean, error = search.cv_results_["mean_test_score"], search.cv_results_["std_test_score"] / 4**0.5
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.errorbar(alphas, mean, error, capsize=3, **line_style(0))
ax.set(xscale="log", xlabel="alpha", ylabel="NDCG, held-out queries", title="Five folds of whole queries")
light(ax)

# %%
# Evaluate on new queries, with bootstrap intervals over queries.
found = metrics.bootstrap(["ndcg", "ndcg@10", "map"], test.target, scores, groups=test.groups)
for name, interval in found.items():
    print(f"{name:8} {interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f}) on new queries")

# %%
print(
    f"Over all alphas, the NDCG varies by only {mean.max() - mean.min():.4f}, a fraction of its standard error "
    f"of {error.mean():.3f}: on these queries any of them will do."
)
