"""A few pages checked by hand
===========================

Link farms have got into a crawl, and some honest pages were made to link to them. You have time to look at a
hundred pages at most: which ones, and what to do with what you find? Pages at random find few of the farms,
and trust that starts at a page which links to a farm flows straight into it. The first twenty pages of the
ranking are where farms show, and with these labels ``LpqRank`` leaves them next to nothing.
"""

import numpy as np

from apexrank import LpqRank, PageRank, TrustRank, datasets, metrics
from apexrank.plot import CumulativeSpamDisplay

# %%
# Ten farms of fifty boosters; five honest pages link to each target, as comments in blogs do.
web = datasets.make_crawl(10_000, random_state=0).adjacency
crawl = datasets.plant_farms(web, farms=10, boosters=50, hijacked=5, random_state=0)
graph, spam, hijacked = crawl.adjacency, crawl.spam, crawl.hijacked_links[:, 0]


def labels(pages):
    """The labels that somebody gives who looks at these pages."""
    return {"trusted": pages[~spam[pages]], "distrusted": pages[spam[pages]]}


# %%
# Two ways to spend the time: a hundred pages at random, or the first twenty of the ranking.
plain = LpqRank(p=2).fit(graph)
at_random = labels(np.random.default_rng(0).choice(len(spam), 100, replace=False))
on_top = labels(plain.ranking_[:20])
for way, found in (("at random", at_random), ("on top", on_top)):
    honest, risky = len(found["trusted"]), np.isin(found["trusted"], hijacked).sum()
    print(f"{way:10} {honest:3} honest pages ({risky} link to a farm), {len(found['distrusted']):2} of farms")

# %%
# Trust spreads along links, distrust against them: from a target to its boosters, never to those whom spam
# points at. TrustRank knows trust only.
ranks = {
    "PageRank": PageRank().fit(graph),
    "L_pq": plain,
    "TrustRank, at random": TrustRank().fit(graph, trusted=at_random["trusted"]),
    "L_pq, at random": LpqRank(p=2).fit(graph, **at_random),
    "TrustRank, on top": TrustRank().fit(graph, trusted=on_top["trusted"]),
    "L_pq, on top": LpqRank(p=2).fit(graph, **on_top),
}
share = {}
print("rank                  spam's share of the score  places of the ten targets  spam in the first 1000")
for name, rank in ranks.items():
    s = rank.scores_
    share[name] = metrics.spam_mass(spam, s)
    places = [(s > s[target]).sum() + 1 for target in crawl.target_vertices]
    met = metrics.spam_met(spam, s, 1000)
    print(f"{name:22}{share[name]:25.3%}{min(places):12} to {max(places):<11}{met:24.0f}")

# %%
# Spam met on the way down each list; the nearer to the axis, the better.
scores = {name: rank.scores_ for name, rank in ranks.items()}
display = CumulativeSpamDisplay.from_scores(scores, spam, log_x=True, log_y=True)

# %%
# Why does a page stand where it does? ``explain`` takes a score apart into in-links.
target = int(crawl.target_vertices[0])
links = plain.explain(target)
from_spam = sum(link.share for link in links if link.source is not None and spam[link.source])
print(f"page {target} has {len(links) - 1} in-links; {from_spam:.1%} of its score come from its own farm")

# %%
print(
    f"Twenty labels from the top bring the farms' share from {share['L_pq']:.1%} to {share['L_pq, on top']:.3%} with "
    f"L_pq and to {share['TrustRank, on top']:.3%} with TrustRank; a hundred at random leave "
    f"{share['L_pq, at random']:.1%} and {share['TrustRank, at random']:.1%}."
)
