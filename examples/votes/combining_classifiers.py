"""Combining classifiers
=====================

Each of many weak classifiers orders the ten digits by their probability for an image. It acts as a voter, and
the digits are the candidates. Counting first choices ignores the rest of the order, and Borda points ignore the
confidence of a classifier. The Lovász–Bregman aggregate uses both: it is the order of the mean score, to which
an uncertain classifier contributes little (Iyer and Bilmes 2013, sections 1.1 and 4). With some labelled
images, ``LovaszAggregator`` also learns a weight for each classifier.

The design (the number of classifiers, and how many of them learn from noisy labels) was chosen while looking at
the same test images, so this is an illustration, not a measurement.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from apexrank import aggregate
from apexrank.aggregation import LovaszAggregator
from apexrank.plot.style import light, line_style

# %%
# Half of the images train the classifiers, a quarter trains the weights, and a quarter is for testing. Each
# classifier is a tree of depth 4 that sees 12 of the 64 pixels. Two thirds of the classifiers were trained on
# labels of which nine in ten are random: their orders mean little, and their scores are nearly equal.
X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
X_judged, X_test, y_judged, y_test = train_test_split(
    X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0
)
rng = np.random.default_rng(0)
trees, pixels = [], [rng.choice(64, 12, replace=False) for _ in range(24)]
for number, seen in enumerate(pixels):
    wrong = rng.random(len(y_train)) < (0.0 if number % 3 == 0 else 0.9)
    labels = np.where(wrong, rng.integers(0, 10, len(y_train)), y_train)
    trees.append(DecisionTreeClassifier(max_depth=4, random_state=number).fit(X_train[:, seen], labels))


def votes(images):
    """Return scores with shape images × classifiers × digits."""
    return np.stack(
        [tree.predict_proba(images[:, seen]) for tree, seen in zip(trees, pixels, strict=True)], axis=1
    )


ballots = votes(X_test)
single = (ballots.argmax(axis=2) == y_test[:, None]).mean(axis=0)
print(f"a single classifier is correct on {single.min():.0%} to {single.max():.0%} of {len(y_test)} images")

# %%
# Apply the unsupervised rules: every image is a separate election.
RULES = {
    "first choices": lambda image: np.bincount(image.argmax(axis=1), minlength=10).argmax(),
    "Borda": lambda image: aggregate(image, method="borda").order[0],
    "Lovász–Bregman": lambda image: aggregate(image).order[0],
}
sizes = (6, 12, 24)
right: dict[str, list[float]] = {name: [] for name in (*RULES, "learnt weights")}
for size in sizes:
    for name, rule in RULES.items():
        winners = np.array([rule(image[:size]) for image in ballots])
        right[name].append(np.mean(winners == y_test))

# %%
# Learn weights: the ten digits of an image form a list with one relevant item. With f = "top" only the first
# place counts, and the likelihood is a softmax.
lists = np.repeat(np.arange(len(y_judged)), 10)
relevant = (np.tile(np.arange(10), len(y_judged)) == np.repeat(y_judged, 10)).astype(int)
for size in sizes:
    rows = votes(X_judged)[:, :size].transpose(0, 2, 1).reshape(-1, size)
    model = LovaszAggregator("top", normalize=None, alpha=1e-3).fit(rows, relevant, groups=lists)
    scores = model.predict(ballots[:, :size].transpose(0, 2, 1).reshape(-1, size)).reshape(-1, 10)
    right["learnt weights"].append(np.mean(scores.argmax(axis=1) == y_test))
good = np.arange(24) % 3 == 0
means = model.weights_[good].mean(), model.weights_[~good].mean()
print(f"mean weight: {means[0]:.2f} for classifiers trained on true labels, {means[1]:.2f} for the others")

# %%
# Compute the share of images whose first digit is correct.
for name, shares in right.items():
    print(f"{name:15}", " ".join(f"{share:.3f}" for share in shares))

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for number, (name, shares) in enumerate(right.items()):
    axes[0].plot(sizes, shares, label=name, **line_style(number))
axes[0].set(xlabel="classifiers", ylabel="share of images classified correctly", xscale="log")
axes[0].set_xticks(sizes, sizes)
axes[0].minorticks_off()
axes[0].legend(frameon=False)
for group, label, number in ((good, "trained on true labels", 0), (~good, "trained on random labels", 1)):
    style = line_style(number) | {"linestyle": "none"}
    axes[1].plot(single[group], model.weights_[group], label=label, **style)
axes[1].set(xlabel="accuracy of the classifier alone", ylabel="learnt weight")
axes[1].legend(frameon=False)
for ax in axes:
    light(ax)

# %%
error = np.sqrt(0.25 / len(y_test))
last = {name: shares[-1] for name, shares in right.items()}
print(
    f"With 24 classifiers, first choices are correct for {last['first choices']:.0%} of the images, Borda for "
    f"{last['Borda']:.0%}, mean scores for {last['Lovász–Bregman']:.0%} and learnt weights for "
    f"{last['learnt weights']:.0%}; the standard error is at most {error:.1%}."
)
