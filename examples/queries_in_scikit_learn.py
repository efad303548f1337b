"""Queries in scikit-learn: query-level scaling and retargeting in a pipeline, alpha chosen on whole queries.

``groups`` travel by scikit-learn's metadata routing: to the splitter, the scaling, the ranker and its score, the NDCG.
A scorer such as ``metrics.get_scorer("ndcg@10")`` gets them too, but scikit-learn hands none to ``predict`` then, so it
goes with rankers without scaling inside queries.
"""

import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline

from apexrank import MonotoneRetargeting, datasets, metrics
from apexrank.preprocessing import QueryNormalizer


def main() -> None:
    """Print the chosen alpha, and measures of new queries with their intervals."""
    train, test = (datasets.make_letor_example(150, random_state=seed, noise=1.5) for seed in (0, 1))
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = MonotoneRetargeting().set_fit_request(groups=True).set_score_request(groups=True)
        pipeline = make_pipeline(QueryNormalizer(), ranker)
        alphas = {"monotoneretargeting__alpha": [0.1, 1.0, 10.0, 100.0]}
        search = GridSearchCV(pipeline, alphas, cv=GroupKFold(5))
        search.fit(train.data, train.target, groups=train.groups)
        scores = search.best_estimator_.predict(test.data, groups=test.groups)
    alpha = search.best_params_["monotoneretargeting__alpha"]
    print(f"alpha {alpha:g}: NDCG {search.best_score_:.3f} on held-out queries")
    found = metrics.bootstrap(["ndcg", "ndcg@10", "map"], test.target, scores, groups=test.groups)
    for name, interval in found.items():
        print(f"{name:8} {interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f}) on new queries")


if __name__ == "__main__":
    main()
