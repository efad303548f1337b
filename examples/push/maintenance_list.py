"""A maintenance list: forty manholes a week, thirty events to learn from
======================================================================

A crew can open forty manholes a week in a district of six hundred. Which ones, when only 29 had a serious
event last year? A scorecard of five features with whole points, summed by hand, finds as many events in other
districts as the full model, and more than a count of past events does; one of three features lies in between.
How far may one push with so few events? Here p makes no difference that the data could show.
"""

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold

from apexrank import PNormPush, PNormPushCV, metrics
from apexrank.plot import PrecisionRecallTopDisplay, PTradeoffDisplay

# %%
# Made-up districts: old cables, many cables and past events raise the risk, a vented cover lowers it. Depth,
# years since the inspection and the service cables tell nothing: the events do not depend on them.
NAMES = [
    "cable age (decades)",
    "main cables",
    "service cables",
    "past smoke",
    "past fire",
    "vented",
    "depth",
    "inspected",
]


def district(rng: np.random.Generator, n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Features of n manholes, and which of them had a serious event in the year after."""
    age, mains, service = rng.gamma(3, 1.2, n), rng.poisson(3, n), rng.poisson(5, n)
    smoke, fire = rng.poisson(0.12 * age), rng.poisson(0.03 * (age + mains))
    vented, depth, inspected = rng.integers(0, 2, n), rng.normal(2, 0.4, n), rng.integers(0, 9, n)
    risk = -5.8 + 0.35 * age + 0.25 * mains + 0.7 * smoke + 0.9 * fire - 0.5 * vented
    X = np.column_stack([age, mains, service, smoke, fire, vented, depth, inspected])
    return X, (rng.random(n) < 1 / (1 + np.exp(-risk))).astype(int)


rng = np.random.default_rng(0)
X, y = district(rng)
others = [district(rng) for _ in range(20)]
spread = X.std(axis=0)
print(f"{len(y)} manholes, {y.sum()} with a serious event")

# %%
# Sparse rankers, fitted in standard deviations; their coefficients in the features' own units, rounded to
# points. With 29 events chance gets in, too: the larger card has a point for the inspection, on which nothing
# depends.
cards = {"past events": np.isin(NAMES, ["past smoke", "past fire"]).astype(float)}
for share in (0.3, 0.15):
    ranker = PNormPush(p=1, l1_ratio=0.9)
    ranker.set_params(alpha=share * ranker.alpha_max(X / spread, y)).fit(X / spread, y)
    weights = ranker.coef_[0] / spread
    points = np.round(10 * weights / np.abs(weights).max())
    print("scorecard:", ", ".join(f"{w:+.0f} {name}" for w, name in zip(points, NAMES, strict=True) if w))
    cards[f"scorecard of {np.count_nonzero(points)}"] = points
cards["full model"] = PNormPush(p=1, alpha=0.05).fit(X / spread, y).coef_[0] / spread

# %%
# Share with an event among the forty visited: mean over twenty other districts, and its standard error.
for name, w in cards.items():
    hits = [metrics.precision_at(events, rows @ w, k=40) for rows, events in others]
    print(f"{name:15} {np.mean(hits):.3f} ± {np.std(hits, ddof=1) / np.sqrt(len(hits)):.3f}")
print(f"{'chance':15} {np.mean([events.mean() for _, events in others]):.3f}")
rows, events = (np.concatenate(parts) for parts in zip(*others, strict=True))
PrecisionRecallTopDisplay.from_scores({name: rows @ w for name, w in cards.items()}, events, top=800)

# %%
# How far to push? The first eight places of held-out fifths stand for the forty, with five or six events
# each; the other districts show what cross-validation tries to guess. Bands are one standard error, that of
# the folds too small, as they share rows. Districts differ in height; what counts here is that neither curve
# rises or falls beyond its error.
ps = [1, 2, 4, 8, 16, 64]
folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0)
search = PNormPushCV(ps, [0.05], scoring="precision_at_8", cv=folds).fit(X / spread, y)
guess = [search.cv_results_[f"split{i}_test_score"] for i in range(20)]
fits = [PNormPush(p=p, alpha=0.05).fit(X / spread, y).coef_[0] / spread for p in ps]
truth = [[metrics.precision_at(events, rows @ w, k=40) for w in fits] for rows, events in others]
measure = "precision in the first 1/15"
display = PTradeoffDisplay.from_values(ps, {measure: guess}, name="cross-validation")
PTradeoffDisplay.from_values(ps, {measure: truth}, name="other districts", axes=display.axes_)
display.figure_.set_size_inches(6.4, 4)

# %%
for name, values in (("cross-validation", guess), ("other districts", truth)):
    change = np.array(values)[:, -1] - np.array(values)[:, 0]
    error = change.std(ddof=1) / np.sqrt(len(change))
    print(f"{name}: precision changes by {change.mean():+.3f} ± {error:.3f} from p = 1 to p = 64")
print(f"So p = {search.p_:g}, which cross-validation chooses, is no better founded than p = 1.")
