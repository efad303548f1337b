"""A model of voters: how sure is the order?
=========================================

Voters score items between 0 and 1 around an order that nobody sees. ``LovaszMallows`` is a density of such
scores, with one number, θ, that says how closely they keep to the order. Drawing from it shows what θ means;
fitted to a few voters it tells how sure each item's place is; and as a mixture it finds out how many opinions
there are.
"""

import matplotlib.pyplot as plt
import numpy as np

from apexrank import LovaszMallows
from apexrank.plot.style import COLOURS
from apexrank_papers.lovasz.plane import draw_frame, project

# %%
# What θ means: 300 voters on three items around the order 1 > 2 > 3. Each triangle is one of the six orders.
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
centre = [[0.9, 0.5, 0.1]] * 2
for ax, theta in zip(axes, (0, 5, 50), strict=True):
    voters = LovaszMallows(theta=theta).fit(centre).sample(300, random_state=0)
    kept = (np.argsort(-voters, axis=1) == [0, 1, 2]).all(axis=1).mean()
    draw_frame(ax)
    ax.scatter(*project(voters).T, s=7, color=COLOURS[0], zorder=5)
    ax.set_title(f"θ = {theta}: {kept:.0%} keep the order", fontsize=10)
    ax.set_xlim(-1.4, 1.4)
    print(f"theta {theta:2}: {kept:.0%} of 300 voters have the whole order right")

# %%
# Five items now. θ and the order come back from voters, and the posterior of the order says how sure it is:
# exactly, by sums over all 120 orders.
items = ["ash", "birch", "cedar", "elm", "fir"]
source = LovaszMallows(theta=20.0).fit([np.linspace(0.9, 0.1, 5)] * 2)
probable, places = {}, {}
for size in (5, 20, 80, 320):
    voters = source.sample(size, random_state=1)
    model = LovaszMallows().fit(voters)
    posterior = model.posterior(voters)
    probable[size], places[size] = posterior.probability([0, 1, 2, 3, 4]), posterior.rank_marginals()
    order, theta, error = model.orders_[0], model.thetas_[0], model.thetas_se_[0]
    print(f"{size:4} voters: {' > '.join(items[i] for i in order)}, θ {theta:.0f} ± {error:.0f}, ", end="")
    print(f"probability of the true order {probable[size]:.2f}")

# %%
# The chance of each item to be at each place. With eighty voters little but the order of cedar and elm is
# still open.
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained", sharey=True)
for ax, size in zip(axes, (5, 20, 80), strict=True):
    ax.imshow(places[size], cmap="Blues", vmin=0, vmax=1)
    for (row, column), chance in np.ndenumerate(places[size]):
        colour = "white" if chance > 0.5 else "black"
        ax.text(column, row, f"{chance:.2f}", ha="center", va="center", fontsize=8, color=colour)
    ax.set(xticks=range(5), xticklabels=range(1, 6), yticks=range(5), yticklabels=items, xlabel="place")
    ax.set_title(f"{size} voters", fontsize=10)

# %%
# Two opinions, one the other turned round, in a crowd of 300. One order cannot speak for both; the BIC
# says how many it takes.
turned = LovaszMallows(theta=20.0).fit([np.linspace(0.1, 0.9, 5)] * 2)
crowd = np.vstack([source.sample(200, random_state=2), turned.sample(100, random_state=3)])
mixtures = {k: LovaszMallows(n_components=k, random_state=0).fit(crowd) for k in (1, 2, 3)}
bic = {k: model.bic(crowd) for k, model in mixtures.items()}
best = mixtures[min(bic, key=lambda k: bic[k])]
print("BIC, smaller is better: " + ", ".join(f"{k} orders {value:.0f}" for k, value in bic.items()))
for share, order in sorted(zip(best.weights_, best.orders_.tolist(), strict=True), reverse=True):
    print(f"{share:.0%} around {' > '.join(items[i] for i in order)}")
right = (best.predict(crowd) == (np.arange(300) < 200)).mean()
print(f"{max(right, 1 - right):.0%} of the voters are given to the right opinion")

# %%
print(
    f"Five voters give the true order a probability of {probable[5]:.2f}, 320 voters {probable[320]:.2f}; "
    f"the crowd is best described by {len(best.weights_)} orders, the larger one for "
    f"{best.weights_.max():.0%} of the voters."
)
