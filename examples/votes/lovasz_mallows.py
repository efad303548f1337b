"""A probability model of voters and orders
========================================

Voters score items between 0 and 1 around a hidden order. ``LovaszMallows`` is a density over such scores with
one concentration parameter, θ. Samples from the model illustrate the meaning of θ. Fitted to a few voters, the
model shows how certain the place of each item is; as a mixture, it shows how many opinions there are.
"""

import matplotlib.pyplot as plt
import numpy as np

from apexrank.plot.style import COLOURS
from apexrank_papers.lovasz.mallows import LovaszMallows
from apexrank_papers.lovasz.plane import draw_frame, project

# %%
# To illustrate θ, sample 300 voters on three items around the order 1 > 2 > 3. Each triangle is one of the six
# orders.
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
centre = [[0.9, 0.5, 0.1]] * 2
for ax, theta in zip(axes, (0, 5, 50), strict=True):
    voters = LovaszMallows(theta=theta).fit(centre).sample(300, random_state=0)
    kept = (np.argsort(-voters, axis=1) == [0, 1, 2]).all(axis=1).mean()
    draw_frame(ax)
    ax.scatter(*project(voters).T, s=7, color=COLOURS[0], zorder=5)
    ax.set_title(f"θ = {theta}: {kept:.0%} keep the order", fontsize=10)
    ax.set_xlim(-1.4, 1.4)
    print(f"theta {theta:2}: {kept:.0%} of 300 voters have exactly this order")

# %%
# With five items, the fit recovers θ and the order from the voters. The posterior over orders, an exact sum
# over all 120 orders, shows how certain the order is.
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
# Plot the probability of each item at each place. With eighty voters, mainly the order of cedar and elm is still
# uncertain.
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained", sharey=True)
for ax, size in zip(axes, (5, 20, 80), strict=True):
    ax.imshow(places[size], cmap="Blues", vmin=0, vmax=1)
    for (row, column), chance in np.ndenumerate(places[size]):
        colour = "white" if chance > 0.5 else "black"
        ax.text(column, row, f"{chance:.2f}", ha="center", va="center", fontsize=8, color=colour)
    ax.set(xticks=range(5), xticklabels=range(1, 6), yticks=range(5), yticklabels=items, xlabel="place")
    ax.set_title(f"{size} voters", fontsize=10)

# %%
# A crowd of 300 voters holds two opposite opinions, which no single order can represent. The BIC selects the
# number of orders.
turned = LovaszMallows(theta=20.0).fit([np.linspace(0.1, 0.9, 5)] * 2)
crowd = np.vstack([source.sample(200, random_state=2), turned.sample(100, random_state=3)])
mixtures = {k: LovaszMallows(n_components=k, random_state=0).fit(crowd) for k in (1, 2, 3)}
bic = {k: model.bic(crowd) for k, model in mixtures.items()}
best = mixtures[min(bic, key=lambda k: bic[k])]
print("BIC, smaller is better: " + ", ".join(f"{k} orders {value:.0f}" for k, value in bic.items()))
for share, order in sorted(zip(best.weights_, best.orders_.tolist(), strict=True), reverse=True):
    print(f"{share:.0%} around {' > '.join(items[i] for i in order)}")
right = (best.predict(crowd) == (np.arange(300) < 200)).mean()
print(f"{max(right, 1 - right):.0%} of the voters are assigned to the correct opinion")

# %%
print(
    f"The probability of the true order is {probable[5]:.2f} with five voters and {probable[320]:.2f} with 320. The "
    f"BIC selects {len(best.weights_)} orders for the crowd, the larger with {best.weights_.max():.0%} of the voters."
)
