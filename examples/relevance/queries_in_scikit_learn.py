"""Queries in scikit-learn
=======================

How do queries go through pipelines and searches? ``groups`` travel by scikit-learn's metadata routing: to the
splitter, so that folds hold whole queries, to the scaling inside queries, to the ranker, and to its score,
the NDCG. A scorer such as ``metrics.get_scorer("ndcg@10")`` gets them too, but scikit-learn hands none to
``predict`` then, so it goes with rankers without scaling inside queries.
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
# Scaling and retargeting in one pipeline, alpha chosen on whole queries.
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
# The measure against alpha, with one standard error of the five folds (their deviation, taken with 1/n, over
# the root of n - 1).
mean, error = search.cv_results_["mean_test_score"], search.cv_results_["std_test_score"] / 4**0.5
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.errorbar(alphas, mean, error, capsize=3, **line_style(0))
ax.set(xscale="log", xlabel="alpha", ylabel="NDCG, held-out queries", title="Five folds of whole queries")
light(ax)

# %%
# Measures of new queries, with intervals from queries drawn anew.
found = metrics.bootstrap(["ndcg", "ndcg@10", "map"], test.target, scores, groups=test.groups)
for name, interval in found.items():
    print(f"{name:8} {interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f}) on new queries")

# %%
print(
    f"From alpha to alpha the NDCG of the folds moves by {mean.max() - mean.min():.4f}, a small part of its standard "
    f"error of {error.mean():.3f}: on these queries any of them will do."
)
