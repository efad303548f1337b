"""A push inside LightGBM
======================

Does a push help boosted trees? ``PushObjective`` lets LightGBM minimise the P-Norm Push. Ten small trees cannot
rank everything well, so the push decides how they spend their leaves: with p = 4 they find far more frauds at a
low false positive rate than with p = 1. A hundred large trees rank the whole list so well that p hardly
matters. Without LightGBM, this page shows only the linear rankers.
"""

from collections.abc import Callable
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

from apexrank import PNormPush, datasets, metrics
from apexrank.integrations.boosting import PushObjective
from apexrank.plot.style import light, line_style

ps = [1, 2, 4, 8, 16]
train, test = slice(0, 2000), slice(2000, 6000)
payments = [datasets.make_push_example(6000, random_state=seed, return_X_y=True) for seed in range(4)]
if not find_spec("lightgbm"):
    print('LightGBM is not installed, so its trees are omitted: pip install "apexrank[boosting]"')


# %%
# The same object works with ``LGBMRegressor(objective=...)``, ``xgboost.train(obj=...)`` and
# ``XGBRegressor(objective=...)``.
def trees(X: np.ndarray, y: np.ndarray, p: float, leaves: int, rounds: int, rate: float) -> Callable:
    """Fit boosted trees and return their predict function."""
    import lightgbm as lgb

    options = {"objective": PushObjective(p=p), "num_leaves": leaves, "learning_rate": rate}
    options |= {"num_threads": 1, "verbosity": -1, "seed": 0}
    return lgb.train(options, lgb.Dataset(X, y.astype(int)), rounds).predict


rankers = {"linear": lambda X, y, p: PNormPush(p=p).fit(X, y).decision_function}
if find_spec("lightgbm"):
    rankers["10 trees of 4 leaves"] = lambda X, y, p: trees(X, y, p, 4, 10, 0.3)
    rankers["100 trees of 31 leaves"] = lambda X, y, p: trees(X, y, p, 31, 100, 0.1)

# %%
# Average over four data sets of 2,000 training and 4,000 test payments.
measures = {"AUC": "auc", "TPR at 1 % FPR": "tpr_at_fpr_0.01"}
found = {name: np.zeros((len(ps), len(measures))) for name in rankers}
for name, fit in rankers.items():
    for X, y in payments:
        for row, p in zip(found[name], ps, strict=True):
            scores = fit(X[train], y[train], p)(X[test])
            row += list(metrics.evaluate(y[test], scores, list(measures.values())).values())
    found[name] /= len(payments)
    for column, label in enumerate(measures):
        line = "  ".join(f"p = {p}: {v:.3f}" for p, v in zip(ps, found[name][:, column], strict=True))
        print(f"{name:22} {label:14}  {line}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for column, (ax, label) in enumerate(zip(axes, measures, strict=True)):
    for number, (name, values) in enumerate(found.items()):
        ax.plot(ps, values[:, column], label=name, **line_style(number))
    ax.set_xscale("log", base=2)
    ax.set_xticks(ps, ps)
    ax.set(xlabel="p", title=label)
    light(ax)
axes[0].legend(frameon=False, loc="center right")
