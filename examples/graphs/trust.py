"""Fighting spam with a few labelled pages
=======================================

A crawl contains link farms, and some honest pages were hijacked to link to them. You have time to check at most
a hundred pages. Which ones should you check, and how should you use the labels? A random sample finds few of
the farms, and trust that starts at a page with a link to a farm flows straight into the farm. Farms show up
among the top twenty pages of the ranking, and with labels for these pages ``LpqRank`` leaves the farms almost
no score.
"""

import numpy as np

from apexrank import LpqRank, PageRank, TrustRank, datasets, metrics
from apexrank.plot import CumulativeSpamDisplay

# %%
# There are ten farms with fifty boosters each. Five honest pages link to each target, like blogs with spam
# comments.
web = datasets.make_crawl(10_000, random_state=0).adjacency
crawl = datasets.plant_farms(web, farms=10, boosters=50, hijacked=5, random_state=0)
graph, spam, hijacked = crawl.adjacency, crawl.spam, crawl.hijacked_links[:, 0]


def labels(pages):
    """Return the labels from checking these pages by hand."""
    return {"trusted": pages[~spam[pages]], "distrusted": pages[spam[pages]]}


# %%
# Check either a hundred random pages or the top twenty of the ranking.
plain = LpqRank(p=2).fit(graph)
at_random = labels(np.random.default_rng(0).choice(len(spam), 100, replace=False))
on_top = labels(plain.ranking_[:20])
for way, found in (("at random", at_random), ("on top", on_top)):
    honest, risky = len(found["trusted"]), np.isin(found["trusted"], hijacked).sum()
    print(
        f"{way:10} {honest:3} honest pages ({risky} link to a farm), {len(found['distrusted']):2} farm pages"
    )

# %%
# Trust spreads along links and distrust against them: from a target to its boosters, but never to the pages
# that spam links to. TrustRank uses only trust.
ranks = {
    "PageRank": PageRank().fit(graph),
    "L_pq": plain,
    "TrustRank, at random": TrustRank().fit(graph, trusted=at_random["trusted"]),
    "L_pq, at random": LpqRank(p=2).fit(graph, **at_random),
    "TrustRank, on top": TrustRank().fit(graph, trusted=on_top["trusted"]),
    "L_pq, on top": LpqRank(p=2).fit(graph, **on_top),
}
share = {}
print("rank                  spam's share of the score  places of the ten targets    spam in the top 1000")
for name, rank in ranks.items():
    s = rank.scores_
    share[name] = metrics.spam_mass(spam, s)
    places = [(s > s[target]).sum() + 1 for target in crawl.target_vertices]
    met = metrics.spam_met(spam, s, 1000)
    print(f"{name:22}{share[name]:25.3%}{min(places):12} to {max(places):<11}{met:24.0f}")

# %%
# The curves count spam on the way down each list; lower is better.
scores = {name: rank.scores_ for name, rank in ranks.items()}
display = CumulativeSpamDisplay.from_scores(scores, spam, log_x=True, log_y=True)

# %%
# Why does a page rank where it does? ``explain`` decomposes its score into the contributions of its in-links.
target = int(crawl.target_vertices[0])
links = plain.explain(target)
from_spam = sum(link.share for link in links if link.source is not None and spam[link.source])
print(f"page {target} has {len(links) - 1} in-links; {from_spam:.1%} of its score comes from its own farm")

# %%
print(
    f"Twenty labels from the top reduce the farms' share of the score from {share['L_pq']:.1%} to "
    f"{share['L_pq, on top']:.3%} with L_pq and to {share['TrustRank, on top']:.3%} with TrustRank; a hundred random "
    f"labels leave {share['L_pq, at random']:.1%} and {share['TrustRank, at random']:.1%}."
)
