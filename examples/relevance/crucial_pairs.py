"""Learning from grades and from pairs
===================================

Flats are graded from 0 to 3, or the only data are answers to the question "which of these two would you take?".
Do the grades have to be cut into good and bad for a push? No: ``CrucialPairsPush`` accepts any number of
grades, or a list of pairs with weights. On these simulated flats, using all grades orders new flats slightly
better than a single cut. Many careless answers add some information to a few careful ones, most if they have a
lower weight.
"""

import matplotlib.pyplot as plt
import numpy as np

from apexrank import CrucialPairsPush, PNormPush, metrics
from apexrank.plot.style import COLOURS, light, line_style

N_DRAWS = 40


def flats(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Simulate six features, two of them irrelevant, and how much people like each flat."""
    X = rng.normal(size=(n, 6))
    return X, X @ [1.5, 1.0, 0.7, 0.4, 0.0, 0.0] + 0.6 * rng.normal(size=n)


# %%
# There are 300 flats with grades 0 to 3 (half of them 0, a tenth 3), and three ways to use the grades: all of
# them, the best against the rest, and the good ones against the rest. Kendall's tau measures how well 1,000
# new flats are ordered.
draws = [np.random.default_rng(seed) for seed in range(1000, 1000 + N_DRAWS)]
taus: dict[str, list[float]] = {"all grades": [], "3 against the rest": [], "1 or more against 0": []}
for rng in draws:
    X, liking = flats(rng, 300)
    grades = np.searchsorted(np.quantile(liking, [0.5, 0.75, 0.9]), liking)
    fits = [CrucialPairsPush(p=2, alpha=0.01).fit(X, grades)]
    fits += [PNormPush(p=2, alpha=0.01).fit(X, grades >= cut) for cut in (3, 1)]
    new, truth = flats(rng, 1000)
    for values, ranker in zip(taus.values(), fits, strict=True):
        values.append(float(metrics.kendall_tau(scores=(truth, new @ np.ravel(ranker.coef_)))))


def mean_and_error(values: list[float] | np.ndarray) -> tuple[float, float]:
    """Return the mean over the draws and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


print("Kendall's tau on new flats, mean of 40 draws (standard error)")
for name, values in taus.items():
    print(f"{name:20} {'{:.3f} ({:.3f})'.format(*mean_and_error(values))}")

# %%
# The pairs are 60 answers from careful visitors and 1,000 from careless ones, who mostly click at random. A
# third array gives each pair its weight. The weight of a careless answer varies from 0 (ignored) to 1 (same as
# a careful one). The careful answers are few, so that the weights matter: with 200 careful answers they change
# tau by only a few thousandths.
shares = [0, 0.03, 0.1, 0.3, 1]
by_weight: dict[float, list[float]] = {share: [] for share in shares}
careful = np.arange(1060) < 60
for rng in draws:
    X, liking = flats(rng, 300)
    left = rng.integers(0, 300, 1060)
    right = (left + rng.integers(1, 300, 1060)) % 300
    sure = np.where(careful, 3.0, 0.2) * (liking[left] - liking[right])
    wins = rng.random(1060) < 1 / (1 + np.exp(-sure))
    upper, lower = np.where(wins, left, right), np.where(wins, right, left)
    new, truth = flats(rng, 1000)
    for share in shares:
        ranker = CrucialPairsPush(p=1, alpha=0.01)
        ranker.fit(X, pairs=(upper, lower, np.where(careful, 1.0, share)))
        by_weight[share].append(float(metrics.kendall_tau(scores=(truth, ranker.predict(new)))))
print("\nKendall's tau by the weight of a careless answer")
for share, values in by_weight.items():
    print(f"weight {share:<4} {'{:.3f} ({:.3f})'.format(*mean_and_error(values))}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
axes[0].boxplot(list(taus.values()), tick_labels=[name.replace(" against", "\nagainst") for name in taus])
mean, error = np.transpose([mean_and_error(values) for values in by_weight.values()])
axes[1].plot(range(len(shares)), mean, **line_style(0))
axes[1].fill_between(range(len(shares)), mean - error, mean + error, color=COLOURS[0], alpha=0.2, linewidth=0)
axes[1].set_xticks(range(len(shares)), [f"{share:g}" for share in shares])
axes[0].set(ylabel="Kendall's tau, new flats", title="Grades: 40 draws")
axes[1].set(xlabel="weight of a careless answer", title="Pairs: mean ± standard error of 40 draws")
for ax in axes:
    light(ax)

# %%
cuts = [np.subtract(taus["all grades"], values) for name, values in taus.items() if name != "all grades"]
ends = [np.subtract(by_weight[0.1], by_weight[share]) for share in (0, 1)]
for what, gains in (
    ("All grades minus each of the two cuts", cuts),
    ("Weight 0.1 minus weights 0 and 1", ends),
):
    print(f"{what}:", " and ".join("{:+.3f} ± {:.3f}".format(*mean_and_error(gain)) for gain in gains))
