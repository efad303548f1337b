"""Choosing a ranker with Optuna
=============================

Which margins, which penalty and which scaling within queries work best? Optuna tries combinations and learns
where to look next. Each trial computes NDCG@10 by cross-validation over whole queries; the best combination is
then evaluated once, on queries that no trial has seen. Without Optuna, the page says so and shows only the
default.
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GroupKFold

from apexrank import MonotoneRetargeting, datasets, metrics
from apexrank.plot.style import light
from apexrank.preprocessing import QueryNormalizer

# %%
# Simulate queries in the form of a LETOR file. To use your own ``train.txt``, read it with
# ``datasets.read_letor``.
train, test = (datasets.make_letor_example(120, random_state=seed, noise=1.5) for seed in (0, 1))
folds = list(GroupKFold(4).split(train.data, groups=train.groups))


def scores(part, rows, fitted_on, scaling, **options):
    """Fit a ranker on some rows and return its scores for other rows."""
    scaled = [
        QueryNormalizer(scaling).fit_transform(data.data[chosen], groups=data.groups[chosen])
        for data, chosen in ((train, fitted_on), (part, rows))
    ]
    ranker = MonotoneRetargeting(**options).fit(
        scaled[0], train.target[fitted_on], groups=train.groups[fitted_on]
    )
    return ranker.predict(scaled[1])


def validated(**options):
    """Return the mean NDCG@10 over the folds."""
    found = [
        metrics.ndcg(train.target[b], scores(train, b, a, **options), groups=train.groups[b], k=10)
        for a, b in folds
    ]
    return float(np.mean(found))


# %%
# The search space is a function of the trial. Options of the ranker are plain arguments, so no Optuna
# integration is needed.
start = {"scaling": "standard", "alpha": 1.0, "offsets": "sqrt"}
tried = [validated(**start)]
chosen = {"default": start}
if find_spec("optuna") is None:
    print("Optuna is not installed: pip install optuna")
else:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial):
        return validated(
            scaling=trial.suggest_categorical("scaling", ["standard", "minmax", "rank"]),
            alpha=trial.suggest_float("alpha", 1e-4, 10, log=True),
            offsets=trial.suggest_categorical("offsets", ["sqrt", "linear", "gain", "binary"]),
        )

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.enqueue_trial(start)
    study.optimize(objective, n_trials=25)
    tried = [trial.value for trial in study.trials]
    chosen["chosen by Optuna"] = study.best_params
    print("best of", len(tried), "trials:", study.best_params)

# %%
# Look at the test queries once.
everything = [slice(None), slice(None)]
lists = {name: scores(test, *everything, **options) for name, options in chosen.items()}
table = metrics.compare(lists, None, test.target, test.groups, measures=["ndcg@10"])
for row in table.iter_rows(named=True):
    print(f"{row['ranker']:18} NDCG@10 {row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})")

# %%
figure, ax = plt.subplots(figsize=(7.4, 3.8), layout="constrained")
ax.plot(np.arange(1, len(tried) + 1), tried, "o", label="trial")
ax.step(np.arange(1, len(tried) + 1), np.maximum.accumulate(tried), where="post", label="best so far")
ax.set(xlabel="trial", ylabel="NDCG@10, cross-validated", title="Progress of the search")
light(ax)
ax.legend(frameon=False)
