"""A link farm in a crawl
======================

A spammer creates pages that do nothing but link to one target page. How far does the target rise? With PageRank
its score grows nearly in proportion to the number of boosters, and the targets of ten farms with fifty boosters
each take the first ten places of 10,000 pages. The L_pq rank, where each further in-link counts for less, gives
the farms a share of the score close to their share of the pages. Moving their targets down the list takes a
large p, which also changes the order of the honest pages.
"""

import matplotlib.pyplot as plt
import numpy as np

from apexrank import LpqRank, PageRank, datasets, metrics
from apexrank.plot import CumulativeSpamDisplay
from apexrank.plot.style import light, line_style

# %%
# A simulated crawl contains ten farms: fifty boosters link to each target, which links back to them.
web = datasets.make_crawl(10_000, random_state=0).adjacency
crawl = datasets.plant_farms(web, farms=10, boosters=50)
print(f"{crawl.spam.sum()} of {len(crawl.spam)} pages, {crawl.spam.mean():.1%}, belong to farms")

# %%
# The table shows the gain of the farms and the cost of the defence: how many of the top hundred pages before
# the attack, ranked by PageRank, are still among the top hundred honest pages?
ranks = {"PageRank": PageRank()} | {f"L_pq, p = {p}": LpqRank(p=p) for p in (2, 4, 8)}
scores = {name: rank.fit_predict(crawl.adjacency) for name, rank in ranks.items()}
before = PageRank().fit(web).ranking_[:100]
target = crawl.target_vertices[0]  # all ten have the same score
share, place = {}, {}
print("rank         share of the score  place of the targets     spam in the top 100  honest pages kept")
for name, s in scores.items():
    share[name], place[name] = metrics.spam_mass(crawl.spam, s), int((s > s[target]).sum()) + 1
    spam = metrics.spam_met(crawl.spam, s, 100)
    kept = len(np.intersect1d(before, np.argsort(-s[~crawl.spam], kind="stable")[:100]))
    print(f"{name:13}{share[name]:18.1%}{place[name]:22}{spam:23.0f}{kept:15} of 100")

# %%
# The curves count spam on the way down the list; lower is better. The first ten are the targets, the rest are
# their boosters, which PageRank also lifts because the targets link back.
display = CumulativeSpamDisplay.from_scores(scores, crawl.spam, log_x=True, log_y=True)

# %%
# With p = 2 the targets have a small share of the score but are still near the top. A norm favours few strong
# links, and the links in a closed cycle are strong. A farm is such a cycle, and so is a page that links only to
# itself.
above = np.flatnonzero(scores["L_pq, p = 2"] > scores["L_pq, p = 2"][target])
alone = [page for page in above if crawl.adjacency[[page]].indices.tolist() == [page]]
print(f"{len(above)} pages rank above the targets with p = 2; {len(alone)} of them link only to themselves")

# %%
# Does a larger farm help? For a single farm with a growing number of boosters, compute the score of its target
# as a multiple of the mean score.
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
    f"A thousand boosters raise a page to {lifted['PageRank'][-1]:.0f} times the mean score with PageRank and to "
    f"{lifted['L_pq, p = 8'][-1]:.1f} times with p = 8. From PageRank to p = 8, the targets of ten farms of fifty fall "
    f"from place {place['PageRank']} to {place['L_pq, p = 8']}, and the farms' share of the score from "
    f"{share['PageRank']:.1%} to {share['L_pq, p = 8']:.1%}."
)
