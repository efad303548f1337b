"""Clustering generous and strict raters by their preferences
==========================================================

Raters use a scale differently: some give 80 to dishes they like and 70 to dishes they do not, others 30 and 5.
Which raters agree with each other? k-means on the raw scores separates generous raters from strict ones.
``LovaszBregmanKMeans`` uses orders as cluster centres and finds raters with the same order; so does plain
k-means after each row has been standardised. The raters that either method misassigns use little of the scale.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from apexrank import LovaszBregmanKMeans
from apexrank.aggregation import elbow, silhouette
from apexrank.plot.style import COLOURS, light
from apexrank_papers.lovasz.plane import draw_frame, project

# %%
# Three camps order three dishes in three ways. Each rater has a level, from strict to generous, and uses 10 to
# 60 % of the scale.
rng = np.random.default_rng(0)
dishes, n = ["soup", "curry", "stew"], 300
tastes = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.5], [0.5, 0.0, 1.0]])
camp = rng.integers(3, size=n)
width = rng.uniform(0.1, 0.6, (n, 1))
level = rng.uniform(0, 1, (n, 1)) * (1 - width)
X = (level + width * tastes[camp] + 0.06 * rng.normal(size=(n, 3))).clip(0, 1)

# %%
# Measure the agreement of the clusters with the camps: 1 is perfect, 0 is chance.
standardised = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
ours = LovaszBregmanKMeans(3, random_state=0).fit(X)
evenly = LovaszBregmanKMeans(3, f="product", random_state=0).fit(X)  # gives all places equal weight
labels = {
    "KMeans, raw scores": KMeans(3, n_init=10, random_state=0).fit_predict(X),
    "KMeans, standardised rows": KMeans(3, n_init=10, random_state=0).fit_predict(standardised),
    "LovaszBregmanKMeans": ours.labels_,
    'LovaszBregmanKMeans, f="product"': evenly.labels_,
}
found = {name: adjusted_rand_score(camp, label) for name, label in labels.items()}
for name, label in labels.items():
    means = [X[label == k].mean() for k in range(3)]
    print(f"{name:33} agreement {found[name]:5.2f}, mean scores of the clusters {np.sort(means).round(2)}")
for order, size in zip(ours.orders_, np.bincount(ours.labels_), strict=True):
    print(f"{size:4} raters: " + " > ".join(dishes[i] for i in order))

# %%
# Plot the scores of three dishes along the diagonal of the cube. This projection hides generosity, and each of
# the six orders is a triangle (1 is soup, 2 curry, 3 stew). Colours are clusters.
figure, axes = plt.subplots(1, 2, figsize=(9.6, 4), layout="constrained")
for ax, name in zip(axes, ("KMeans, raw scores", "LovaszBregmanKMeans"), strict=True):
    draw_frame(ax)
    for k in range(3):
        ax.scatter(*project(X[labels[name] == k]).T, s=12, marker="os^"[k], color=COLOURS[k], zorder=5)
    ax.set_title(f"{name}: agreement {found[name]:.2f}", fontsize=10)
    ax.set_xlim(-1.3, 1.3)

# %%
# How many camps are there? The objective falls steeply up to three clusters. With six clusters, one per
# possible order, it is zero.
falls = elbow(X, range(1, 7), random_state=0)
print("objective: " + ", ".join(f"{k}: {value:.2f}" for k, value in falls.items()))
print(f"silhouette of three clusters: {silhouette(ours, X):.2f}")

figure, ax = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
ax.plot(list(falls), list(falls.values()), "o-", color=COLOURS[0])
ax.set(xlabel="clusters", ylabel="objective")
light(ax)

# %%
# Which raters are assigned to the wrong camp? With raw scores it can be anybody; with orders, those who use
# little of the scale.
for name, label in labels.items():
    main = np.array([np.bincount(camp[label == k]).argmax() for k in range(3)])
    wrong = main[label] != camp
    print(
        f"{name:33} {wrong.sum():3} wrong, using {width[wrong].mean():.0%} of the scale on average "
        f"(all raters {width.mean():.0%})"
    )

# %%
print(
    f"Agreement with the camps: {found['KMeans, raw scores']:.2f} for k-means on raw scores, "
    f"{found['LovaszBregmanKMeans']:.2f} for LovaszBregmanKMeans, {found['KMeans, standardised rows']:.2f} for k-means "
    f"on standardised rows."
)
