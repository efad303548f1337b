"""Our objectives and the built-in ones in LightGBM and XGBoost on the five folds of MQ2008.

Trees are fitted on the training queries of a fold. The number of rounds, the trees' settings, and for our objectives
the margins of the levels and the weights of rows and queries are chosen on its validation queries, never on its test
queries. Each query is a test query once. All objectives have the same choice of trees. A hundred validation queries
cannot distinguish one round from the next (early stopping ends after anything from 3 to 300 rounds), so the choice is
among a few numbers of rounds. This rule was adopted after early stopping had been tested (NDCG 0.7479 for retargeting,
0.7446 for lambdarank), so its values are not from a first look at the test queries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.utils import Bunch

from apexrank import metrics
from apexrank.datasets import Fold
from apexrank.errors import MissingExtraError
from apexrank.integrations.boosting import ListwiseObjective, PairsObjective, RetargetObjective
from apexrank.validation import check_choice
from apexrank_papers.queries import Queries, Scorer, by_query
from apexrank_papers.result import Result, Verdict, interval_verdict, question
from apexrank_papers.retargeting.methods import Method, choose
from apexrank_papers.splits import gap_text, labels_of_tests, mq2008_folds, over_folds

LEAVES, RATE = (4, 7), 0.05
ROUNDS = (25, 50, 100, 200, 300)
SHARES = {"feature_fraction": 0.3, "bagging_fraction": 0.5, "bagging_freq": 1}
MARGINS: dict[str, tuple[Any, ...]] = {"offsets": ("linear", "gain"), "top": (0.0, 1.0), "size": (0.0, 0.5)}
ENOUGH = 0.75  # NDCG that linear retargeting also reaches
Path = Callable[..., np.ndarray]  # from rows and a number of rounds to scores
MEASURES = ("ndcg", "average_precision", "ndcg_at_10")
RETARGET = "retargeting"


class Task(NamedTuple):
    """An objective with all its settings: a built-in one by name, or ours with row weights."""

    settings: str
    objective: Any
    top: float = 0.0
    size: float = 0.0

    def weights(self, queries: Queries) -> np.ndarray | None:
        """Compute ``(1 + top·relevance) / rows^size``: more for relevant rows, less for rows of long queries."""
        if not self.top and not self.size:
            return None
        length = np.repeat(queries.sizes, queries.sizes).astype(float)
        return (1 + self.top * queries.y) / length**self.size


def retargeting() -> Iterator[Task]:
    """Yield settings: margins of the levels, weight of relevant rows, weight of long queries."""
    for offsets, top, size in product(*MARGINS.values()):
        settings = f"offsets={offsets}, top={top:g}, size={size:g}"
        yield Task(settings, RetargetObjective(offsets=offsets), top, size)


TASKS = {
    RETARGET: retargeting,
    "retargeting, KL": lambda: [
        Task(f"offsets={o}", RetargetObjective("kl", offsets=o)) for o in MARGINS["offsets"]
    ],
    "push of pairs": lambda: [
        Task(f"p={p}, {loss}", PairsObjective(p=p, loss=loss))
        for p, loss in product((1, 4), ("exponential", "logistic"))
    ],
    "ListNet": lambda: [Task("", ListwiseObjective("listnet"))],
}
THEIRS = {"lightgbm": "lambdarank", "xgboost": "rank:ndcg"}


def _lightgbm(task: Task, leaves: int, train: Queries) -> Path:
    import lightgbm as lgb

    options = SHARES | {"objective": task.objective, "num_leaves": leaves, "learning_rate": RATE}
    options |= {"seed": 0, "num_threads": 1, "verbose": -1}
    data = lgb.Dataset(train.X, train.y, group=train.sizes, weight=task.weights(train))
    booster = lgb.train(options, data, max(ROUNDS))
    return lambda X, rounds: booster.predict(X, num_iteration=rounds)


def _xgboost(task: Task, leaves: int, train: Queries) -> Path:
    import xgboost as xgb

    options: dict[str, Any] = {"max_depth": int(np.log2(leaves + 1)), "learning_rate": RATE}
    options |= {"colsample_bytree": SHARES["feature_fraction"], "subsample": SHARES["bagging_fraction"]}
    options |= {"seed": 0, "nthread": 1}
    data, objective, weight = xgb.DMatrix(train.X, train.y), task.objective, task.weights(train)
    if isinstance(objective, str):
        options["objective"], objective = objective, None
    if weight is None:
        data.set_group(train.sizes)
    else:  # with groups XGBoost takes only query weights, so the objective holds the groups
        data.set_weight(weight)
        objective = replace(objective, groups=np.repeat(np.arange(len(train.sizes)), train.sizes))
    booster = xgb.train(options, data, max(ROUNDS), obj=objective)
    return lambda X, rounds: booster.predict(xgb.DMatrix(X), output_margin=True, iteration_range=(0, rounds))


LIBRARIES = {"lightgbm": _lightgbm, "xgboost": _xgboost}


def _method(library: str, name: str) -> Method:
    def candidates(train: Bunch, _validation: Bunch) -> Iterator[tuple[str, Scorer]]:
        rows = by_query(train)
        tasks = [Task("", name)] if name not in TASKS else TASKS[name]()
        for task, leaves in product(tasks, LEAVES):
            path = LIBRARIES[library](task, leaves, rows)
            for rounds in ROUNDS:
                parts = [task.settings, f"num_leaves={leaves}", f"trees={rounds}"]
                yield ", ".join(filter(None, parts)), partial(path, rounds=rounds)

    return Method(name, "", candidates)


class _Trial(NamedTuple):
    settings: str
    scores: np.ndarray
    seconds: float


def _trial(library: str, name: str, fold: Fold) -> _Trial:
    start = time.process_time()
    choice = choose(_method(library, name), fold)
    return _Trial(choice.settings, choice.scores, time.process_time() - start)


def boosted_letor(*, library: str = "lightgbm", n_folds: int = 5, n_jobs: int | None = None) -> Result:
    """Run the comparison on MQ2008 from ``$APEXRANK_DATA/letor/MQ2008``."""
    check_choice("library", library, LIBRARIES)
    return run_folds(mq2008_folds()[:n_folds], library, n_jobs=n_jobs)


def run_folds(folds: list[Fold], library: str, *, n_jobs: int | None = None) -> Result:
    """Choose, test and compare every objective inside one library."""
    try:
        __import__(library)
    except ImportError:
        raise MissingExtraError(f'{library} is not installed: pip install "apexrank[boosting]"') from None
    names = [THEIRS[library], *TASKS]
    found = over_folds(partial(_trial, library), names, folds, n_jobs)
    trials: dict[str, list[_Trial]] = dict(zip(names, found, strict=True))
    y, groups = labels_of_tests(folds)
    scores = {name: np.concatenate([t.scores for t in of_folds]) for name, of_folds in trials.items()}
    table = metrics.compare(scores, None, y, groups, measures=MEASURES, baseline=names[0], correction="none")
    took = [sum(t.seconds for t in trials[name]) for name in names]
    seconds = pl.DataFrame({"ranker": names, "CPU seconds": took})
    relevant = len(np.unique(groups[y > 0]))
    notes = [
        f"{library}, {len(folds)} folds, {len(np.unique(groups))} test queries, {relevant} of them with a relevant "
        "document: means are over those; seconds are for all fits of the search",
        *(f"{name}, chosen on validation: {'; '.join(t.settings for t in trials[name])}" for name in names),
    ]
    return Result(table.join(seconds, on="ranker"), _view(table, seconds), _verdicts(table), notes=notes)


def _view(table: pl.DataFrame, seconds: pl.DataFrame) -> pl.DataFrame:
    columns: dict[str, list[Any]] = {"objective": table["ranker"].unique(maintain_order=True).to_list()}
    for name in MEASURES:
        part = table.filter(measure=name)
        half = (part["high"] - part["low"]) / 2
        columns[name] = [f"{v:.4f} ± {h:.3f}" for v, h in zip(part["value"], half, strict=True)]
        if name == MEASURES[0]:
            columns["less theirs"] = [gap_text(row) for row in part.iter_rows(named=True)]
    return pl.DataFrame(columns).with_columns(seconds["CPU seconds"].round(1))


def _verdicts(table: pl.DataFrame) -> list[Verdict]:
    row = table.filter(ranker=RETARGET, measure="ndcg").row(0, named=True)
    enough = 1 if row["low"] >= ENOUGH else 0 if row["high"] >= ENOUGH else -1
    gap = row["difference_low"], row["difference_high"]
    return [
        question(RETARGET, enough, f"NDCG {row['value']:.4f}, should be at least {ENOUGH}"),
        interval_verdict(f"{RETARGET} beside theirs", *gap, f"NDCG differs by {gap_text(row)}", question),
    ]
