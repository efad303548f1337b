"""Learning to rank search results
===============================

Documents of 200 queries have grades 0, 1 and 2, and people look at the first ten. Which linear ranker orders
the documents of new queries best? ``MonotoneRetargeting`` asks only that scores fit some numbers in the right
order, with a margin between the grades; the baselines fit the grades themselves, a distribution made of them,
or a cosine. On these made-up queries, where a linear score is the truth, the four are equal within noise, and
scaling the features inside each query is worth more than the choice among them.
"""

from apexrank import ListwiseRanker, MonotoneRetargeting, datasets, metrics
from apexrank.plot import MeasureAtKDisplay
from apexrank.preprocessing import QueryNormalizer

# %%
# Made-up queries in the form of a LETOR file. Features compare only inside a query, so they are scaled there.
train, test = (datasets.make_letor_example(200, random_state=seed, noise=1.5) for seed in (0, 1))
X, X_test = (QueryNormalizer().fit_transform(part.data, groups=part.groups) for part in (train, test))
print(f"{len(set(train.groups))} queries for training with {len(train.target)} documents")
print(f"{len(set(test.groups))} new queries with {len(test.target)} documents")

# %%
# All rankers are linear, with a small penalty. The cosine is not convex: no duality gap can certify it.
rankers = {
    "retargeting": MonotoneRetargeting(alpha=5e-3),
    "ListNet": ListwiseRanker("listnet", alpha=5e-3),
    "cosine": ListwiseRanker("rank_cosine", alpha=5e-3),
    "regression": ListwiseRanker("pointwise", alpha=5e-4),
}
scores = {}
for name, ranker in rankers.items():
    scores[name] = ranker.fit(X, train.target, groups=train.groups).predict(X_test)
    print(f"{name:12} converged {ranker.converged_}, duality gap {ranker.dual_gap_:.0e}")
raw = MonotoneRetargeting(alpha=5e-3).fit(train.data, train.target, groups=train.groups)
scores["retargeting, unscaled"] = raw.predict(test.data)

# %%
# NDCG of the first ten with its interval, from whole queries drawn anew, and a paired test against
# retargeting.
table = metrics.compare(scores, None, test.target, test.groups, measures=["ndcg@10"])
print("ranker                 NDCG@10  95 % interval    difference from retargeting")
for row in table.iter_rows(named=True):
    line = f"{row['ranker']:21} {row['value']:8.3f}  {row['low']:.3f} to {row['high']:.3f}"
    if row["difference"] is not None:
        line += f"  {row['difference']:+.3f}, p-value {row['p_adjusted']:.4f}"
    print(line)

# %%
# The mean over the queries at each cut-off.
shown = {name: scores[name] for name in ("retargeting", "regression", "retargeting, unscaled")}
MeasureAtKDisplay.from_scores(shown, test.target, groups=test.groups, measure="ndcg", k=range(1, 11))

# %%
*losses, scaling = table["difference"].drop_nulls().abs()
print(f"The four losses differ by at most {max(losses):.3f}, scaling inside queries by {scaling:.3f}.")
