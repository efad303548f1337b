"""The rankers of the dissertation's listwise tables, their peers, and selection on validation queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch

from apexrank import metrics
from apexrank.datasets import Fold
from apexrank.problem.design import scores_of
from apexrank.rankers import CrucialPairsPush, ListwiseRanker, MonotoneRetargeting
from apexrank.validation import segment
from apexrank_papers.queries import TREES, Candidates, Scorer, by_query, lightgbm_candidates
from apexrank_papers.retargeting.published import PublishedRetargeting

PENALTIES = (1e-20, 1e-10, 1e-5, 1.0, 10.0)  # the dissertation's, sec. 3.4
ALPHAS = (0.01, 0.1, 1.0, 10.0, 100.0)
STARTS = ("relevance", "gain", "softmax")
MOST_ALTERNATIONS = 100  # the dissertation took 65 (I-div), 90 (KL) and 99 (SQ) on average, sec. 3.4
DIVERGENCES = {"I-div": "i-divergence", "SQ": "squared", "KL": "kl"}


class Method(NamedTuple):
    """A row of a table: the ranker, and the measure on validation queries that chooses its settings.

    ``family`` and ``divergence`` are the paper's row and column, if it has one.
    """

    family: str
    divergence: str
    candidates: Candidates
    chosen_by: str = "ndcg"

    @property
    def name(self) -> str:
        """Family and divergence as one name."""
        return f"{self.family}, {self.divergence}" if self.divergence else self.family


def grid(make: Callable[..., BaseEstimator], **choices: tuple[Any, ...]) -> Candidates:
    """Fit an estimator with every combination of the choices."""

    def candidates(train: Bunch, _validation: Bunch) -> Iterator[tuple[str, Scorer]]:
        for values in product(*choices.values()):
            options = dict(zip(choices, values, strict=True))
            ranker = make(**options)
            ranker.set_params(alpha=ranker.alpha / _summands(ranker, train))
            fitted = ranker.fit(train.data, train.target, groups=train.groups)
            yield ", ".join(f"{name}={value}" for name, value in options.items()), fitted.predict

    return candidates


def _summands(ranker: BaseEstimator, train: Bunch) -> float:
    """Return the number of terms that the dissertation sums and the ranker averages, to convert alpha."""
    lists = segment(train.groups, len(train.target))
    if isinstance(ranker, MonotoneRetargeting):
        return sum(np.ptp(train.target[lists.rows(q)]) > 0 for q in range(len(lists)))
    if isinstance(ranker, ListwiseRanker):
        return len(train.target) if ranker.loss == "pointwise" else len(lists)
    return 1.0


def alternations(divergence: str, normalize: bool, starts: tuple[str, ...] = ("relevance",)) -> Candidates:
    """Yield published monotone retargeting with every penalty, stopped after every alternation.

    The dissertation does not specify its first targets; the rows of the tables use the relevance itself.
    """

    def candidates(train: Bunch, _validation: Bunch) -> Iterator[tuple[str, Scorer]]:
        for start, alpha in product(starts, PENALTIES):
            options: Any = {"alpha": alpha, "start": start, "max_alternations": MOST_ALTERNATIONS}
            ranker = PublishedRetargeting(divergence, normalize=normalize, **options)
            ranker.fit(train.data, train.target, groups=train.groups)
            for k, coef in enumerate(ranker.coef_path_, start=1):
                settings = f"start={start}, alpha={alpha:g}, alternations={k}"
                yield settings, partial(scores_of, w=coef)

    return candidates


def published() -> Iterator[Method]:
    """Yield the rows of Tables 3.2–3.6: monotone retargeting stopped early, its baselines, and margins."""
    for normalize, family in ((False, "unnormalized MR"), (True, "normalized MR")):
        for column, divergence in DIVERGENCES.items():
            yield Method(family, column, alternations(divergence, normalize), "average_precision")
    baselines = {
        "I-div": partial(ListwiseRanker, "ndcg_consistent", divergence="i-divergence"),
        "SQ": partial(ListwiseRanker, "ndcg_consistent"),
        "KL": partial(ListwiseRanker, "listnet"),
    }
    for column, make in baselines.items():
        yield Method("baseline", column, grid(make, alpha=PENALTIES), "average_precision")
    for column, divergence in DIVERGENCES.items():
        yield Method("MEMR", column, grid(partial(MonotoneRetargeting, divergence), alpha=ALPHAS))


def ours() -> Iterator[Method]:
    """Yield linear rankers that are not in the dissertation."""
    search = grid(MonotoneRetargeting, offsets=("linear", "sqrt", "binary"), alpha=ALPHAS)
    yield Method("MEMR, offsets chosen", "", search)
    for column in ("SQ", "KL"):
        path = alternations(DIVERGENCES[column], False, STARTS)
        yield Method(f"unnormalized MR {column}, start chosen", "", path, "average_precision")
    for loss, family in (("pointwise", "pointwise ridge"), ("rank_cosine", "RankCosine")):
        yield Method(family, "", grid(partial(ListwiseRanker, loss), alpha=ALPHAS))
    yield Method("P-Norm Push of pairs", "", grid(CrucialPairsPush, p=(1, 2, 4), alpha=(1e-4, 1e-3, 1e-2)))


def peers() -> tuple[list[Method], list[str]]:
    """Return boosted trees of LightGBM and XGBoost, and a sentence for each library that is not installed."""
    lightgbm = [
        Method(f"LightGBM {name}", "", lightgbm_candidates(name)) for name in ("lambdarank", "rank_xendcg")
    ]
    found, missing = list[Method](), list[str]()
    for library, methods in (
        ("LightGBM", lightgbm),
        ("XGBoost", [Method("XGBoost rank:ndcg", "", _xgboost)]),
    ):
        if find_spec(library.lower()):
            found += methods
        else:
            missing.append(f'{library} is not installed: pip install "apexrank[boosting]"')
    return found, missing


def _xgboost(train: Bunch, validation: Bunch) -> Iterator[tuple[str, Scorer]]:
    import xgboost as xgb

    rows, other = by_query(train), by_query(validation)
    fixed: Any = {"objective": "rank:ndcg", "n_estimators": 500, "eval_metric": "ndcg@10"}
    fixed |= {"early_stopping_rounds": 50, "random_state": 0, "n_jobs": 1}
    held_out = {"eval_set": [(other.X, other.y)], "eval_group": [other.sizes], "verbose": False}
    for leaves, rate in product(*TREES.values()):
        depth = int(np.log2(leaves + 1))
        ranker = xgb.XGBRanker(max_depth=depth, learning_rate=rate, **fixed)
        ranker.fit(rows.X, rows.y, group=rows.sizes, **held_out)
        trees = ranker.best_iteration + 1
        yield f"max_depth={depth}, learning_rate={rate}, trees={trees}", ranker.predict


class Choice(NamedTuple):
    """The choice of the validation set: a description of its settings, and its scores of the test rows."""

    settings: str
    scores: np.ndarray


def choose(method: Method, fold: Fold) -> Choice:
    """Fit every candidate on the training queries and keep the best one on the validation queries."""
    validation = fold.validation

    def value(candidate: tuple[str, Scorer]) -> float:
        scores = candidate[1](validation.data)
        found = metrics.evaluate(validation.target, scores, method.chosen_by, groups=validation.groups)
        return found[method.chosen_by]

    settings, predict = max(method.candidates(fold.train, validation), key=value)
    return Choice(settings, predict(fold.test.data))
