"""Seven daily snapshots, two of them corrupted
============================================

A graph is crawled every day, and every crawl misses half of its links and adds some wrong ones. Should you rank
by a single day, by the union of all links, or by a weighted combination of the days? If all days are honest,
any method that uses the whole week beats a single day. If two days are junk, ``ConsensusRank("corroborate")``
detects them vertex by vertex: it weights a layer by how well the vertex's other layers support it. ``"blend"``
does not detect them, because a layer that links to everybody agrees with everybody.
"""

import matplotlib.pyplot as plt
import numpy as np

from apexrank import ConsensusRank, PageRank
from apexrank.metrics import kendall_tau
from apexrank.plot.style import COLOURS, light

# %%
# The true graph has 150 vertices. Each links to eight others, some of which are popular.
rng = np.random.default_rng(0)
n, degree = 150, 8
popularity = 0.3 + rng.pareto(1.5, n)
true = np.zeros((n, n))
for i in range(n):
    true[i, rng.choice(n, degree, replace=False, p=popularity / popularity.sum())] = 1
truth = PageRank().fit(true).scores_


def snapshot():
    """Sample half of the true links and add wrong ones, a third of the result."""
    return np.maximum(true * (rng.random((n, n)) < 0.5), rng.random((n, n)) < 0.25 * degree / n)


def junk():
    """Return a day on which the crawler linked vertices at random."""
    return (rng.random((n, n)) < 0.4).astype(float)


# %%
# Compare the distance to the true PageRank (smaller is better) and the Kendall τ with it (larger is better).
honest = [snapshot() for _ in range(7)]
weeks = {"seven honest days": honest, "two of them junk": [*honest[:3], junk(), *honest[4:6], junk()]}
methods = {"union": "all links", "mean": "mean of days", "blend": "blend", "corroborate": "corroborate"}
distance, tau, shares = {}, {}, {}
for week, days in weeks.items():
    answers = {"one day": PageRank().fit(days[0])}
    answers |= {name: ConsensusRank(method).fit(days) for method, name in methods.items()}
    distance[week] = {name: np.abs(rank.scores_ - truth).sum() for name, rank in answers.items()}
    tau[week] = {name: kendall_tau(scores=(rank.scores_, truth)) for name, rank in answers.items()}
    shares[week] = {name: answers[name].layer_shares_ for name in ("blend", "corroborate")}
    print(f"{week:18} L1 distance  Kendall's τ")
    for name in answers:
        print(f"  {name:16}{distance[week][name]:12.3f}{tau[week][name]:13.3f}")

# %%
# The right panel shows the weight that each method gives to each day of the second week.
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for number, (week, values) in enumerate(distance.items()):
    places = np.arange(len(values)) + 0.4 * number - 0.2
    axes[0].bar(places, list(values.values()), 0.38, color=COLOURS[number], label=week)
axes[0].set(xticks=range(len(values)), xticklabels=list(values), ylabel="L1 distance to the true ranks")
axes[0].tick_params(axis="x", labelsize=8)
for number, (name, share) in enumerate(shares["two of them junk"].items()):
    axes[1].bar(np.arange(1, 8) + 0.4 * number - 0.2, share, 0.38, color=COLOURS[number + 2], label=name)
axes[1].axhline(1 / 7, color="0.55", linewidth=0.9, label="equal shares")
axes[1].set(xlabel="day (4 and 7 are junk)", ylabel="share of the day")
for ax in axes:
    ax.legend(frameon=False, fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    ax.set_axisbelow(True)
    light(ax)

# %%
week = "two of them junk"
away, order = distance[week], tau[week]
print(
    f"With two junk days, corroborate gives them {shares[week]['corroborate'][[3, 6]].sum():.1%} of the weight. Its L1 "
    f"distance to the true ranks is {away['corroborate']:.2f}, against {away['all links']:.2f} for the union of all "
    f"links and {away['blend']:.2f} for blend; τ is "
    f"{order['corroborate']:.2f}, {order['all links']:.2f} and {order['blend']:.2f}."
)
