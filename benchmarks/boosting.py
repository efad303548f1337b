"""Our objectives inside LightGBM and XGBoost beside theirs: one long list, and gamma rays against hadrons.

The same trees (31 leaves, or depth 6), learning rate 0.1 and one thread for all. On MAGIC the number of rounds, at most
300, is the one with the best AUC on the validation rows; five splits into 60 % training, 20 % validation and 20 % test
rows. Differences are paired over the splits, with intervals from Student's t.

Needs ``pip install "apexrank[boosting]"``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import stats
from sklearn.model_selection import train_test_split

from apexrank import datasets, metrics
from apexrank.integrations.boosting import BoosterMetric, PushObjective
from apexrank_papers.data import load_magic
from benchmarks.timing import report

ROWS, ROUNDS, MOST_ROUNDS, SPLITS = 200_000, 100, 300, 5
OBJECTIVES: dict[str, Any] = {
    "binary": "binary",
    "push, p = 1": PushObjective(p=1),
    "push, p = 4": PushObjective(p=4),
    "push, p = 16": PushObjective(p=16),
}
TOP = "partial_auc_0.01"
DRAWS = 100  # of the bootstrap over test rows

Part = tuple[np.ndarray, np.ndarray]
Scorer = Callable[[np.ndarray], np.ndarray]


def lightgbm_fit(
    objective: Any, train: Part, held_out: Part | None, rounds: int, group: Any = None
) -> Scorer:
    import lightgbm as lgb

    data = lgb.Dataset(*train, group=group)
    options = {"objective": objective, "metric": "None", "num_threads": 1, "verbosity": -1, "seed": 0}
    if held_out is None:
        return lgb.train(options, data, rounds).predict
    other = lgb.Dataset(*held_out, reference=data)
    stop = lgb.early_stopping(rounds, verbose=False)  # never stops, but keeps the best round
    return lgb.train(
        options, data, rounds, valid_sets=[other], feval=BoosterMetric("auc"), callbacks=[stop]
    ).predict


def xgboost_fit(objective: Any, train: Part, held_out: Part | None, rounds: int, group: Any = None) -> Scorer:
    import xgboost as xgb

    data = xgb.DMatrix(*train, group=group)
    options: dict[str, Any] = {"nthread": 1, "learning_rate": 0.1, "max_depth": 6, "seed": 0}
    named = isinstance(objective, str)
    options |= {"objective": f"{objective}:logistic"} if named else {}
    more: dict[str, Any] = {} if named else {"obj": objective}
    if held_out is not None:
        metric = BoosterMetric("auc")
        options["disable_default_eval_metric"] = 1
        more |= {"custom_metric": metric, "evals": [(xgb.DMatrix(*held_out), "held")], "verbose_eval": False}
        more["callbacks"] = [xgb.callback.EarlyStopping(rounds=rounds, maximize=True, save_best=True)]
    booster = xgb.train(options, data, rounds, **more)
    return lambda X: booster.predict(xgb.DMatrix(X), output_margin=True)


LIBRARIES = {"lightgbm": lightgbm_fit, "xgboost": xgboost_fit}


def long_list() -> list[dict]:
    """One list of 200,000 training rows, and as many test rows."""
    X, y = datasets.make_push_example(2 * ROWS, return_X_y=True)
    y = y.astype(float)
    train, test = (X[:ROWS], y[:ROWS]), (X[ROWS:], y[ROWS:])
    rows = []
    for library, fit in LIBRARIES.items():
        theirs = {"lambdarank": "lambdarank"} if library == "lightgbm" else {}
        for name, objective in (theirs | OBJECTIVES).items():
            row: dict[str, Any] = {"library": library, "objective": name}
            start = time.process_time()
            try:
                group = [ROWS] if name == "lambdarank" else None
                scores = fit(objective, train, None, ROUNDS, group)(test[0])
            except Exception as error:  # LightGBM's own kind, which is not there without it
                rows.append(row | {"CPU s": "", "AUC": "", "partial AUC 1%": "", "note": str(error)})
                continue
            row["CPU s"] = time.process_time() - start
            found = metrics.bootstrap(["auc", TOP], *test[1:], scores, n_resamples=DRAWS)
            for label, interval in zip(("AUC", "partial AUC 1%"), found.values(), strict=True):
                row[label] = f"{interval.value:.4f} ± {(interval.high - interval.low) / 2:.4f}"
            rows.append(row | {"note": f"{ROUNDS} trees"})
    return rows


def magic() -> list[dict]:
    X, y = load_magic(return_X_y=True)
    y = np.asarray(y).astype(float)
    rows = []
    for library, fit in LIBRARIES.items():
        found = {name: np.empty((SPLITS, 3)) for name in OBJECTIVES}
        for seed in range(SPLITS):
            train, rest, *of_train = train_test_split(X, y, train_size=0.6, stratify=y, random_state=seed)
            held, test, *of_rest = train_test_split(
                rest, of_train[1], test_size=0.5, stratify=of_train[1], random_state=seed
            )
            for name, objective in OBJECTIVES.items():
                start = time.process_time()
                score = fit(objective, (train, of_train[0]), (held, of_rest[0]), MOST_ROUNDS)
                seconds = time.process_time() - start
                values = metrics.evaluate(of_rest[1], score(test), ["auc", TOP])
                found[name][seed] = values["auc"], values[TOP], seconds
        for name, values in found.items():
            change = values[:, :2] - found["binary"][:, :2]
            half = stats.t.ppf(0.975, SPLITS - 1) * change.std(axis=0, ddof=1) / np.sqrt(SPLITS)
            rows.append(
                {
                    "library": library,
                    "objective": name,
                    "CPU s": values[:, 2].mean(),
                    "AUC": f"{values[:, 0].mean():.4f}",
                    "less binary's": f"{change[:, 0].mean():+.4f} ± {half[0]:.4f}",
                    "partial AUC 1%": f"{values[:, 1].mean():.4f}",
                    "top less binary's": f"{change[:, 1].mean():+.4f} ± {half[1]:.4f}",
                }
            )
    return rows


def main() -> None:
    for package in list(LIBRARIES):
        if find_spec(package) is None:
            print(f'{package} is not installed, skipped: pip install "apexrank[boosting]"')
            del LIBRARIES[package]
    if not LIBRARIES:
        return
    report("boosting_long_list", f"One list of {ROWS:,} rows, and as many test rows", long_list())
    report("boosting_magic", f"MAGIC, means over {SPLITS} splits, rounds chosen on validation rows", magic())


if __name__ == "__main__":
    main()
