"""A week of snapshots, two of them broken
=======================================

A graph is crawled every day, and every crawl misses half of its links and shows some that are wrong. Should
you rank by one day, by all links together, or let the days be weighed? Any way to use the whole week beats
one day while all days are honest. When two days are junk, ``ConsensusRank("corroborate")`` finds them out,
vertex by vertex: a layer counts as far as the vertex's other layers bear it out. ``"blend"`` does not:
who links to everybody agrees with everybody.
"""

import matplotlib.pyplot as plt
import numpy as np

from apexrank import ConsensusRank, PageRank
from apexrank.metrics import kendall_tau
from apexrank.plot.style import COLOURS, light

# %%
# The true graph: 150 vertices, each links to eight others, some of which are popular.
rng = np.random.default_rng(0)
n, degree = 150, 8
popularity = 0.3 + rng.pareto(1.5, n)
true = np.zeros((n, n))
for i in range(n):
    true[i, rng.choice(n, degree, replace=False, p=popularity / popularity.sum())] = 1
truth = PageRank().fit(true).scores_


def snapshot():
    """Half of the true links, and a third of what is shown is wrong."""
    return np.maximum(true * (rng.random((n, n)) < 0.5), rng.random((n, n)) < 0.25 * degree / n)


def junk():
    """A day on which the crawler linked everybody to anybody."""
    return (rng.random((n, n)) < 0.4).astype(float)


# %%
# Distance to the true PageRank (smaller is better) and Kendall's τ with it (larger is better).
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
# Days that are junk, and what each method makes of them: the share of each day in the ranks of the second
# week.
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
    f"With two days of junk corroborate leaves them {shares[week]['corroborate'][[3, 6]].sum():.1%} of the weight and "
    f"is {away['corroborate']:.2f} from the true ranks, all links together {away['all links']:.2f} and blend "
    f"{away['blend']:.2f}; τ is {order['corroborate']:.2f}, {order['all links']:.2f} and {order['blend']:.2f}."
)
