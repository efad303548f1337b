"""Combining classifiers
=====================

Each of many weak classifiers orders the ten digits by how likely it finds them for an image: it is a voter,
and the digits are the candidates. Counting first choices wastes the rest of the order, and Borda's points
waste how sure a classifier is. The Lovász–Bregman aggregate keeps both: it is the order of the mean score, to
which a classifier that is unsure adds little (Iyer and Bilmes 2013, sections 1.1 and 4). With some labelled
images, ``LovaszAggregator`` also learns how much each classifier is worth.

The design (how many classifiers, and how many of them learn from noisy labels) was chosen while looking at the
same test images, so this is an illustration, not a measurement.
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
# Half of the images train the classifiers, a quarter weights, a quarter is for the test. A classifier is a
# tree of depth 4 that sees 12 of the 64 pixels. Two thirds of them were trained on labels of which nine in ten
# are random: their orders mean little, and their scores are nearly equal.
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
    """Scores of images × classifiers × digits."""
    return np.stack(
        [tree.predict_proba(images[:, seen]) for tree, seen in zip(trees, pixels, strict=True)], axis=1
    )


ballots = votes(X_test)
single = (ballots.argmax(axis=2) == y_test[:, None]).mean(axis=0)
print(f"a single classifier is right for {single.min():.0%} to {single.max():.0%} of {len(y_test)} images")

# %%
# Rules without labels: every image is an election of its own.
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
# Learnt weights: the ten digits of an image are a list in which one is relevant. With f = "top" only the first
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
print(f"mean weight {means[0]:.2f} of those with true labels, {means[1]:.2f} of the others")

# %%
# Share of images whose first digit is right.
for name, shares in right.items():
    print(f"{name:15}", " ".join(f"{share:.3f}" for share in shares))

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for number, (name, shares) in enumerate(right.items()):
    axes[0].plot(sizes, shares, label=name, **line_style(number))
axes[0].set(xlabel="classifiers", ylabel="images whose first digit is right", xscale="log")
axes[0].set_xticks(sizes, sizes)
axes[0].minorticks_off()
axes[0].legend(frameon=False)
for group, label, number in ((good, "trained on true labels", 0), (~good, "trained on random labels", 1)):
    style = line_style(number) | {"linestyle": "none"}
    axes[1].plot(single[group], model.weights_[group], label=label, **style)
axes[1].set(xlabel="images that it gets right alone", ylabel="learnt weight of a classifier")
axes[1].legend(frameon=False)
for ax in axes:
    light(ax)

# %%
error = np.sqrt(0.25 / len(y_test))
last = {name: shares[-1] for name, shares in right.items()}
print(
    f"With 24 classifiers first choices are right for {last['first choices']:.0%} of the images, Borda's points for "
    f"{last['Borda']:.0%}, mean scores for {last['Lovász–Bregman']:.0%}, learnt weights for "
    f"{last['learnt weights']:.0%}; a standard error is at most {error:.1%}."
)
