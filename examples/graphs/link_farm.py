"""A link farm in a crawl
======================

Somebody makes up pages that do nothing but link to one page. How far does that page get? With PageRank its
score grows nearly in proportion to the number of boosters, and ten farms of fifty hold the first ten places
of 10,000 pages. The L_pq rank, where each further in-link counts for less, gives the farms about as much
score as they have pages. To move their targets down the list takes a large p, and that changes the order of
the honest pages, too.
"""

import matplotlib.pyplot as plt
import numpy as np

from apexrank import LpqRank, PageRank, datasets, metrics
from apexrank.plot import CumulativeSpamDisplay
from apexrank.plot.style import light, line_style

# %%
# A made-up crawl, and ten farms in it: fifty boosters link to a target, which links back to them.
web = datasets.make_crawl(10_000, random_state=0).adjacency
crawl = datasets.plant_farms(web, farms=10, boosters=50)
print(f"{crawl.spam.sum()} of {len(crawl.spam)} pages, {crawl.spam.mean():.1%}, belong to farms")

# %%
# What the farms gain, and what the cure costs: how many of the hundred pages that PageRank had first, before
# there were farms, are among the first hundred honest pages now?
ranks = {"PageRank": PageRank()} | {f"L_pq, p = {p}": LpqRank(p=p) for p in (2, 4, 8)}
scores = {name: rank.fit_predict(crawl.adjacency) for name, rank in ranks.items()}
before = PageRank().fit(web).ranking_[:100]
target = crawl.target_vertices[0]  # all ten have the same score
share, place = {}, {}
print("rank         share of the score  place of the targets  spam in the first 100  honest pages kept")
for name, s in scores.items():
    share[name], place[name] = metrics.spam_mass(crawl.spam, s), int((s > s[target]).sum()) + 1
    spam = metrics.spam_met(crawl.spam, s, 100)
    kept = len(np.intersect1d(before, np.argsort(-s[~crawl.spam], kind="stable")[:100]))
    print(f"{name:13}{share[name]:18.1%}{place[name]:22}{spam:23.0f}{kept:15} of 100")

# %%
# Spam met on the way down the list; the nearer to the axis, the better. The first ten are the targets, the
# rest their boosters, which PageRank lifts as well: their targets link back.
display = CumulativeSpamDisplay.from_scores(scores, crawl.spam, log_x=True, log_y=True)

# %%
# With p = 2 the targets hold little and still stand near the top. A norm likes few strong links, and those of
# a closed circle are strong: a farm is one, and so is a page that links to nobody but itself.
above = np.flatnonzero(scores["L_pq, p = 2"] > scores["L_pq, p = 2"][target])
alone = [page for page in above if crawl.adjacency[[page]].indices.tolist() == [page]]
print(f"{len(above)} pages stand above the targets with p = 2; {len(alone)} of them link to themselves alone")

# %%
# Does a larger farm help? One farm of more and more boosters: the score of its target, as a multiple of the
# mean score.
boosters = [3, 10, 30, 100, 300, 1000]
farms = [datasets.plant_farms(web, farms=1, boosters=m) for m in boosters]
lifted = {}
print("boosters     " + " ".join(f"{m:7}" for m in boosters))
for name in ("PageRank", "L_pq, p = 2", "L_pq, p = 8"):
    found = [(ranks[name].fit_predict(farm.adjacency), farm.target_vertices[0]) for farm in farms]
    lifted[name] = [len(s) * s[vertex] for s, vertex in found]
    print(f"{name:12} " + " ".join(f"{times:7.1f}" for times in lifted[name]))

figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for number, (name, times) in enumerate(lifted.items()):
    ax.plot(boosters, times, label=name, **line_style(number))
ax.set(xscale="log", yscale="log", xlabel="boosters of the farm", ylabel="score of the target / mean score")
ax.legend(frameon=False, handlelength=3.2)
light(ax)

# %%
print(
    f"A thousand boosters lift a page to {lifted['PageRank'][-1]:.0f} times the mean score with PageRank and to "
    f"{lifted['L_pq, p = 8'][-1]:.1f} times with p = 8; the targets of ten farms of fifty fall from place "
    f"{place['PageRank']} to {place['L_pq, p = 8']}, and the farms from {share['PageRank']:.1%} of the score to "
    f"{share['L_pq, p = 8']:.1%}."
)
