"""Learning from clicks with position bias on MQ2008, with and without correction.

Two logging rankers, each trained on five labelled queries of a fold, show all documents of a query. Readers examine
position k with probability 1/k; of the documents they examine, they click all relevant ones and one in ten irrelevant
ones. Linear rankers are then trained on all training queries: on the true labels, on the uncorrected clicks, and on
labels and weights corrected by propensities that are known, harvested from the two rankers, or regressed. In every case
the penalty is chosen by the true labels of the validation queries, and NDCG@10 is measured on the test queries. The
setup (numbers of labelled queries, rankers and sessions, penalties) was chosen on validation queries.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from apexrank import metrics
from apexrank.clicks import (
    ClickLabels,
    click_labels,
    count_clicks,
    cross_entropy,
    harvest_propensities,
    regress_propensities,
)
from apexrank.datasets import Fold, make_clicks
from apexrank.penalties import Ridge
from apexrank.progress import steps
from apexrank.rankers import LinearRanker, ListwiseRanker, MonotoneRetargeting
from apexrank_papers.result import Result, Verdict, interval_verdict, question
from apexrank_papers.splits import check_repeated, mq2008_folds

SESSIONS, ETA, NOISE = 120_000, 1.0, 0.1  # about 100,000 clicks
LOGGERS, LABELLED = 2, 5
ENOUGH = 0.9  # share of the gap
DRAWS = 2000
TRUE, NAIVE = "true labels", "clicks as they are"
KNOWN, HARVESTED, REGRESSED = "known propensities", "harvested", "regressed"
ALPHAS = (3e-3, 1e-2, 3e-2, 0.1)
ROUNDED = "retargeting, labels in quarters"
LOSSES: dict[str, Callable[[float], Any]] = {
    "cross entropy": lambda alpha: LinearRanker(cross_entropy, Ridge(alpha)),
    "regression": lambda alpha: ListwiseRanker("pointwise", alpha=alpha / 10),
    "retargeting": lambda alpha: MonotoneRetargeting(alpha=10 * alpha, offsets="linear"),
    ROUNDED: lambda alpha: MonotoneRetargeting(alpha=10 * alpha, offsets="linear"),
}
UNBIASED = ("cross entropy", "regression")  # linear in the labels


class Cell(NamedTuple):
    """One fold with one draw of clicks: number of clicks, and NDCG@10 of each test query by loss and label."""

    clicks: float
    values: dict[tuple[str, str], np.ndarray]


def clicks(*, n_splits: int = 10, n_jobs: int | None = None, random_state: int = 0) -> Result:
    """Measure the share of the gap between naive training and true labels that each correction recovers."""
    check_repeated("n_splits", n_splits)
    folds, seeds = mq2008_folds(), range(random_state, random_state + n_splits)
    tasks = steps(list(product(seeds, folds)))
    with threadpool_limits(limits=1, user_api="blas"):
        cells = Parallel(n_jobs=n_jobs)(delayed(one_fold)(fold, seed) for seed, fold in tasks)
    draws = [cells[i : i + len(folds)] for i in range(0, len(cells), len(folds))]
    values = {
        key: np.array([np.concatenate([cell.values[key] for cell in draw]) for draw in draws])
        for key in cells[0].values
    }
    return summary(values, [cell.clicks for cell in cells])


def one_fold(fold: Fold, seed: int) -> Cell:
    """Train on every kind of labels of a fold and evaluate on its test queries."""
    train, n = fold.train, len(fold.train.target)
    rng = np.random.default_rng([seed, int(train.target.sum())])
    log = make_clicks(
        train.target,
        _loggers(train, rng),
        groups=train.groups,
        n_sessions=SESSIONS,
        eta=ETA,
        noise=NOISE,
        random_state=rng,
    )
    found = count_clicks(log.row, log.position, log.clicked)
    gain = (2.0**train.target - 1) / (2.0 ** train.target.max() - 1)
    labels = {TRUE: ClickLabels(gain, np.ones(n))}
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # the last positions of the longest list share no document
        harvested = harvest_propensities(found)
    propensities = {
        NAIVE: np.ones(found.position.max()),
        KNOWN: log.propensities,
        HARVESTED: harvested,
        REGRESSED: regress_propensities(found, train.data, train.groups),
    }
    labels |= {name: click_labels(found, p, n) for name, p in propensities.items()}
    values = {
        (loss, name): _chosen(loss, fold, own, gain.mean())
        for loss, (name, own) in product(LOSSES, labels.items())
    }
    return Cell(float(found.clicked.sum()), values)


def _loggers(train: Bunch, rng: np.random.Generator) -> np.ndarray:
    """Return the scores of rankers trained on a few labelled queries each."""
    known = np.unique(train.groups[train.target > 0])
    columns = []
    for _ in range(LOGGERS):
        own = np.isin(train.groups, rng.choice(known, LABELLED, replace=False))
        ranker = MonotoneRetargeting(alpha=1.0)
        ranker.fit(train.data[own], train.target[own], groups=train.groups[own])
        columns.append(ranker.predict(train.data))
    return np.column_stack(columns)


def _chosen(loss: str, fold: Fold, labels: ClickLabels, mean: float) -> np.ndarray:
    """Return NDCG@10 of the test queries for the penalty that is best on the validation queries."""
    # a common scale of labels and weights, so that penalties are comparable
    y = labels.relevance * mean / np.average(labels.relevance, weights=labels.weight)
    y = np.round(4 * np.clip(y, 0, 1)) / 4 if loss == ROUNDED else y
    weight = labels.weight / labels.weight.mean()
    best, chosen = -1.0, None
    for alpha in ALPHAS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            ranker = LOSSES[loss](alpha).fit(
                fold.train.data, y, sample_weight=weight, groups=fold.train.groups
            )
        value = _queries(fold.validation, ranker.predict(fold.validation.data)).mean()
        if value > best:
            best, chosen = value, ranker
    assert chosen is not None
    return _queries(fold.test, chosen.predict(fold.test.data))


def _queries(part: Bunch, scores: np.ndarray) -> np.ndarray:
    """Return NDCG@10 of the queries that have a relevant document."""
    table = metrics.per_group(part.target, scores, "ndcg@10", groups=part.groups)
    return table["ndcg@10"].drop_nulls().to_numpy()


def summary(values: dict[tuple[str, str], np.ndarray], n_clicks: list[float]) -> Result:
    """Build tables and verdicts from values of shape (draws of clicks, test queries)."""
    n_draws, n_queries = values[next(iter(values))].shape
    rng = np.random.default_rng(0)
    drawn = [(rng.integers(0, n_draws, n_draws), rng.integers(0, n_queries, n_queries)) for _ in range(DRAWS)]
    means = {
        key: np.array([own.mean(), *(own[np.ix_(*pair)].mean() for pair in drawn)])
        for key, own in values.items()
    }
    records = []
    for (loss, name), own in means.items():
        low, high = np.quantile(own[1:], [0.025, 0.975])
        gap = means[loss, TRUE] - means[loss, NAIVE]
        share: tuple[float | None, ...] = (None, None, None)
        if name not in (TRUE, NAIVE):
            shares = (own - means[loss, NAIVE]) / gap
            share = (float(shares[0]), *np.quantile(shares[1:], [0.025, 0.975]).tolist())
        records.append((loss, name, own[0], low, high, *share))
    columns = ["loss", "labels", "ndcg@10", "low", "high", "recovered", "recovered_low", "recovered_high"]
    table = pl.DataFrame(records, columns, orient="row")
    verdicts: list[Verdict] = []
    wanted = table.filter(pl.col("recovered").is_not_null() & pl.col("loss").is_in(UNBIASED))
    for row in wanted.iter_rows(named=True):
        for claim, least in (("better than clicks as they are", 0.0), (f"at least {ENOUGH:.0%}", ENOUGH)):
            ends = row["recovered_low"] - least, row["recovered_high"] - least
            why = f"{_share(row)} of the gap is recovered"
            verdicts.append(
                interval_verdict(f"{row['loss']}, {row['labels']}, {claim}", *ends, why, question)
            )
    view = pl.DataFrame(
        {
            "loss": table["loss"],
            "labels": table["labels"],
            "NDCG@10": [
                f"{r['ndcg@10']:.4f} ({r['low']:.4f} to {r['high']:.4f})" for r in table.iter_rows(named=True)
            ],
            "recovered": ["" if r["recovered"] is None else _share(r) for r in table.iter_rows(named=True)],
        }
    )
    notes = [
        f"{n_draws} draws of clicks (about {np.mean(n_clicks):,.0f} each), {n_queries} test queries with a relevant "
        "document; intervals from a bootstrap over draws and queries",
        f"examination 1/k^{ETA:g}, noise {NOISE:g}, {LOGGERS} logging rankers of {LABELLED} labelled queries each; the "
        "test queries were used twice, the second time to add retargeting with labels rounded to quarters",
        "retargeting orders documents by any difference of their labels, even if it is noise; labels rounded to "
        "quarters leave most such pairs tied",
    ]
    return Result(table, view, verdicts, None, notes)


def _share(row: dict[str, Any]) -> str:
    return f"{row['recovered']:.0%} ({row['recovered_low']:.0%} to {row['recovered_high']:.0%})"
