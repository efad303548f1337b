"""Choosing p by cross-validation
==============================

How large should p be? ``PNormPushCV`` chooses p by a measure on held-out rows, and the choice depends on the
measure: AUC favours p = 1, and the true positive rate at 1 % false positives favours a large p. The curve is
flat for large p, so the exact value hardly matters. With 200 rows, about twenty of them frauds,
cross-validation often chooses too small a p, yet its choice still beats p = 1 on average.
"""

import matplotlib.pyplot as plt
import numpy as np

from apexrank import PNormPush, PNormPushCV, datasets, metrics
from apexrank.plot import PTradeoffDisplay
from apexrank.plot.style import COLOURS, light

ps = [1, 2, 4, 8, 16, 64]
new = [datasets.make_push_example(4000, random_state=seed, return_X_y=True) for seed in range(100, 103)]


def on_new_payments(X: np.ndarray, y: np.ndarray, measure: str) -> np.ndarray:
    """Evaluate rankers fitted on the given rows; return an array of new data sets × powers."""
    rankers = [PNormPush(p=p, alpha=1e-3).fit(X, y) for p in ps]
    scorer = metrics.get_scorer(measure)
    return np.array([[scorer(ranker, *rows) for ranker in rankers] for rows in new])


# %%
# Run two searches on the same 2,000 payments, one per measure, and compare with the performance of the same
# rankers on new payments. Bands are one standard error, over folds and over data sets.
X, y = datasets.make_push_example(2000, return_X_y=True)
held_out, reached = {}, {}
for scoring, label in (("tpr_at_fpr_0.01", "TPR at 1 % FPR"), ("auc", "AUC")):
    search = PNormPushCV(ps, [1e-3], scoring=scoring, cv=5).fit(X, y)
    held_out[label] = [search.cv_results_[f"split{i}_test_score"] for i in range(5)]
    reached[label] = on_new_payments(X, y, scoring)
    print(f"by {label:15} p = {search.p_:2}, {search.best_score_:.3f} on held-out rows")

display = PTradeoffDisplay.from_values(ps, held_out, name="held-out folds")
PTradeoffDisplay.from_values(ps, reached, name="new payments", axes=display.axes_)
display.figure_.set_size_inches(9, 3.8)

# %%
# Repeat with fewer rows: five training sets of each size.
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
means = {}
for place, n in enumerate((200, 2000)):
    chosen, rows = [], []
    for seed in range(1, 6):
        X, y = datasets.make_push_example(n, random_state=seed, return_X_y=True)
        chosen.append(PNormPushCV(ps, [1e-3], scoring="tpr_at_fpr_0.01", cv=5).fit(X, y).p_)
        rows.append(on_new_payments(X, y, "tpr_at_fpr_0.01").mean(axis=0))
    first, best = np.array(rows)[:, 0], np.max(rows, axis=1)
    got = np.array([row[ps.index(p)] for row, p in zip(rows, chosen, strict=True)])
    means[n] = first.mean(), got.mean(), best.mean()
    print(f"{n:4} rows: chosen p = {', '.join(map(str, sorted(chosen)))}")
    for x, values, mark, name in (
        (-0.12, first, "o", "p = 1"),
        (0, got, "^", "chosen p"),
        (0.12, best, "_", "best p in hindsight"),
    ):
        colour = COLOURS["o^_".index(mark)]
        ax.plot(np.full(len(values), place + x), values, mark, color=colour, label=None if place else name)
ax.set_xticks(range(2), [f"{n:,} rows" for n in means])
ax.set(ylabel="TPR at 1 % FPR, new payments", title="Five training sets of each size")
light(ax)
ax.legend(frameon=False, loc="center")

# %%
print("\nTPR at 1 % FPR on new payments, means:  p = 1  chosen p  best p in hindsight")
for n, (first, got, best) in means.items():
    print(f"{n:4} rows {first:36.3f} {got:9.3f} {best:20.3f}")
lost = [1 - got / best for _, got, best in means.values()]
print(f"The chosen p loses {lost[0]:.0%} of the best rate with 200 rows and {lost[1]:.0%} with 2,000.")
