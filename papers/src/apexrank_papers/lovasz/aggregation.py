"""Aggregation of 25 rankers' lists on MQ2008-agg: unsupervised fusion and learnt weights (Iyer and Bilmes 2013).

The paper has no numbers here. Every query is a test query once. Unsupervised methods see only its lists. The best
single ranker is chosen on the training queries of the fold. Weights are learnt on the same queries, with a penalty
chosen on the validation queries, as are the leaves, the learning rate and the number of LightGBM's trees on the same
ranks. Values are means over the queries with a relevant document.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.utils import Bunch

from apexrank import metrics
from apexrank.aggregation.learn import LovaszAggregator
from apexrank.aggregation.rank_aggregation import aggregate
from apexrank.datasets import Fold, letor_folds
from apexrank.errors import InputError
from apexrank.validation import segment
from apexrank_papers.data.sources import DATA_VARIABLE, MissingDataError, data_path
from apexrank_papers.queries import lightgbm_candidates
from apexrank_papers.result import Result, Verdict, claim, interval_verdict, question
from apexrank_papers.splits import gap_text, over_folds

N_RANKERS = 25
MEASURES = {"ndcg": "NDCG", "ndcg@10": "NDCG at 10"}
ALPHAS = (1e-4, 1e-3, 1e-2)
BASELINE = "Borda"
SINGLE = "best single ranker"
LEARNT = "learnt, sqrt"
RECIPE = "learnt, top 1, reciprocal, listed"
TREES = "LightGBM lambdarank"
# Inputs are the places in each list ("ranks"), or minus the ranks as scores. Unlisted documents are tied last in a list
# ("last"), or the list does not count for them ("ignore"), so it adds nothing to a sum.
FUSIONS: dict[str, dict[str, Any]] = {
    BASELINE: {"method": "borda", "missing": "last"},
    "Borda, listed only": {"method": "borda", "missing": "ignore"},
    "median rank": {"method": "median", "missing": "last"},
    "Copeland": {"method": "copeland", "missing": "last"},
    "Kemeny": {"method": "kemeny", "missing": "last", "max_exact": 20},
    "RRF": {"method": "rrf"},
    "CombSUM, min-max": {"method": "combsum", "kind": "scores", "normalize": "minmax"},
    "CombMNZ, min-max": {"method": "combmnz", "kind": "scores", "normalize": "minmax"},
    "Lovász–Bregman, Borda points": {"missing": "last"},
    "Lovász–Bregman, min-max": {"kind": "scores", "normalize": "minmax", "missing": "last"},
    "Lovász–Bregman, z-scores": {"kind": "scores", "normalize": "zscore", "missing": "last"},
    "Lovász–Bregman, sums to 1": {"kind": "scores", "normalize": "sum", "missing": "last"},
    "Lovász–Bregman, DCG points": {"points": "dcg", "missing": "last"},
    "Lovász–Bregman, min-max, listed only": {"kind": "scores", "normalize": "minmax", "missing": "ignore"},
}
MODELS: dict[str, dict[str, Any]] = {
    LEARNT: {"f": "sqrt"},
    "learnt, sqrt, listed": {"f": "sqrt", "missing": "indicator"},
    "learnt, sqrt, weights ≥ 0": {"f": "sqrt", "nonnegative": True},
    "learnt, top 1": {"f": "top"},
    "learnt, top 1, weights ≥ 0": {"f": "top", "nonnegative": True},
    RECIPE: {"f": "top", "normalize": "reciprocal", "missing": "indicator"},
    f"{RECIPE}, weights ≥ 0": {
        "f": "top",
        "normalize": "reciprocal",
        "missing": "indicator",
        "nonnegative": True,
    },
}


def aggregate_letor(*, data: str = "", n_jobs: int | None = None) -> Result:
    """Aggregate the lists of MQ2008-agg, from ``$APEXRANK_DATA/aggregation/MQ2008-agg`` or the folder ``data``."""
    folds = [_told(fold) for fold in mq2008_agg_folds(data or None)]
    return run_folds(folds, n_jobs=n_jobs)


def run_folds(folds: list[Fold], *, n_jobs: int | None = None) -> Result:
    """Rank the test queries of all folds by every method and compare the results."""
    y, groups = (np.concatenate([fold.test[key] for fold in folds]) for key in ("target", "groups"))
    merged = over_folds(lambda options, fold: fused(fold.test, options), FUSIONS.values(), folds, n_jobs)
    scores = {name: np.concatenate(parts) for name, parts in zip(FUSIONS, merged, strict=True)}
    chosen = [best_ranker(fold.train) for fold in folds]
    single = [_listed(fold.test.data)[:, j] for fold, j in zip(folds, chosen, strict=True)]
    scores[SINGLE] = np.concatenate(single)
    fits = over_folds(lambda options, fold: learnt(fold, options), MODELS.values(), folds, n_jobs)
    models = dict(zip(MODELS, fits, strict=True))
    scores |= {name: np.concatenate([found for found, _ in parts]) for name, parts in models.items()}
    has_trees = find_spec("lightgbm") is not None
    if has_trees:
        scores[TREES] = np.concatenate(over_folds(lambda _, fold: boosted(fold), [None], folds, n_jobs)[0])
    table = metrics.compare(scores, None, y, groups, measures=list(MEASURES), baseline=BASELINE)
    notes = [
        f"{len(folds)} folds, {len(np.unique(groups))} test queries with a relevant document; intervals (95 %) from a "
        f"bootstrap over queries, differences from {BASELINE} paired by query, p-values adjusted (Holm)",
        f"best single ranker, chosen on training queries: {', '.join(str(j + 1) for j in chosen)}",
        *(f"{name}: alpha {', '.join(f'{alpha:g}' for _, alpha in own)}" for name, own in models.items()),
    ]
    verdicts = list(_verdicts(table, scores))
    if has_trees:
        both = {name: scores[name] for name in (TREES, RECIPE)}
        verdicts.append(
            _beside_trees(metrics.compare(both, None, y, groups, measures=["ndcg"], baseline=TREES))
        )
    else:
        notes.append('LightGBM is not installed: pip install "apexrank[boosting]"')
    return Result(table, _view(table), verdicts, notes=notes)


def fused(lists: Bunch, options: dict[str, Any]) -> np.ndarray:
    """Score each document with a method of :func:`~apexrank.aggregation.aggregate` within its query."""
    queries = segment(lists.groups, len(lists.groups))
    kind = options.get("kind", "ranks")
    scores = np.empty(len(lists.groups))
    for q in range(len(queries)):
        rows = queries.rows(q)
        ballots = lists.data[rows].T
        ballots = ballots[
            ~np.isnan(ballots).all(axis=1)
        ]  # rankers that list none of the documents do not vote
        merged = aggregate(ballots if kind == "ranks" else -ballots, **{"kind": kind, **options})
        scores[rows] = -merged.ranks
    return scores


def best_ranker(lists: Bunch) -> int:
    """Return the column with the highest mean NDCG."""
    values = [metrics.ndcg(lists.target, column, groups=lists.groups) for column in _listed(lists.data).T]
    return int(np.argmax(values))


def learnt(fold: Fold, options: dict[str, Any]) -> tuple[np.ndarray, float]:
    """Score the test documents with the model that has the highest validation NDCG; return its penalty too."""

    def value(model: LovaszAggregator) -> float:
        model.fit(fold.train.data, fold.train.target, groups=fold.train.groups)
        return model.score(fold.validation.data, fold.validation.target, groups=fold.validation.groups)

    best = max((LovaszAggregator(kind="ranks", alpha=alpha, **options) for alpha in ALPHAS), key=value)
    return best.predict(fold.test.data, groups=fold.test.groups), best.alpha


def boosted(fold: Fold) -> np.ndarray:
    """Score the test documents with the LightGBM candidate that has the highest validation NDCG."""

    def value(candidate: tuple[str, Any]) -> float:
        lists = fold.validation
        return metrics.ndcg(lists.target, candidate[1](lists.data), groups=lists.groups)

    candidates = lightgbm_candidates("lambdarank")(fold.train, fold.validation)
    return max(candidates, key=value)[1](fold.test.data)


def _told(fold: Fold) -> Fold:
    """Keep only the test queries with a relevant document, because NDCG leaves out the others."""
    test = fold.test
    kept = np.isin(test.groups, test.groups[test.target > 0])
    own = {key: test[key][kept] for key in ("data", "target", "groups", "docids")}
    return fold._replace(test=Bunch(**{**test, **own}))


def _listed(ranks: np.ndarray) -> np.ndarray:
    """Return scores that order a ranker's documents, with unlisted ones tied at the end."""
    return np.where(np.isnan(ranks), -np.nanmax(ranks) - 1, -ranks)


def _view(table: pl.DataFrame) -> pl.DataFrame:
    """Show a row for each method: value and difference from the baseline, each with its interval."""
    columns: dict[str, list[Any]] = {"method": table["ranker"].unique(maintain_order=True).to_list()}
    for measure, name in zip(table["measure"].unique(maintain_order=True), MEASURES.values(), strict=True):
        part = table.filter(measure=measure)
        columns[name] = [f"{value:.4f}" for value in part["value"]]
        columns[f"{name} less {BASELINE}"] = [gap_text(row) for row in part.iter_rows(named=True)]
    return pl.DataFrame(columns)


def _verdicts(table: pl.DataFrame, scores: dict[str, np.ndarray]) -> Iterator[Verdict]:
    for name, other in (("Borda points", BASELINE), ("min-max", "CombSUM, min-max")):
        same = np.array_equal(scores[f"Lovász–Bregman, {name}"], scores[other])
        why = f"{'the same' if same else 'not the same'} ranks of all documents"
        yield claim(f"Lovász–Bregman, {name}, orders as {other}", same, why)
    for name, sign, words in (
        (SINGLE, -1, f"{BASELINE} ranks better than the best single ranker"),
        (LEARNT, 1, f"learnt weights rank better than {BASELINE}"),
    ):
        row = table.filter(ranker=name, measure=table["measure"][0]).row(0, named=True)
        low, high = sorted((sign * row["difference_low"], sign * row["difference_high"]))
        why = f"NDCG {sign * row['difference']:+.4f} ({low:+.4f} to {high:+.4f})"
        yield interval_verdict(words, low, high, why, question)


def _beside_trees(table: pl.DataFrame) -> Verdict:
    row = table.row(1, named=True)
    ends = row["difference_low"], row["difference_high"]
    return interval_verdict(f"{RECIPE} ranks better than {TREES}", *ends, f"NDCG {gap_text(row)}", question)


def mq2008_agg_folds(path: str | Path | None = None) -> Iterator[Fold]:
    """Yield the five folds: fold k trains on parts k to k + 2, validates on k + 3 and tests on k + 4, modulo 5.

    MQ2008-agg has 15,211 documents of 784 queries, ranked by 25 rankers. ``data[i, j]`` is the position of document
    i in ranker j's list for its query, **1 for the best**, and NaN if the list lacks the document (``NULL`` in the
    files, 65 % of the entries). Positions refer to the rankers' own long lists (up to 530), not only to the documents
    included here; no two documents of a query share one. The labels show what the numbers mean: among all pairs of
    documents of one query with different relevance, ranked by the same ranker, the more relevant one has the
    **smaller** number in 62.6 % (22 of the 25 rankers, all but 1, 7 and 17, have more than half), and the mean NDCG of
    the best ranker is 0.747 with small numbers first and 0.658 with large ones first. Being in a list at all is
    equally informative: the mean relevance is higher inside the list than outside for every ranker but 13, 20, 24
    and 25.

    The queries, documents, relevance (0, 1, 2) and five parts are those of MQ2008; 220 queries have no relevant
    document. Source: LETOR 4.0 (Qin and Liu, 2009). Nothing was cleaned.

    Parameters
    ----------
    path : str or Path, optional
        Folder with ``A1.txt`` to ``A5.txt`` (or ``.gz``); by default ``aggregation/MQ2008-agg`` in the folder named by
        the environment variable ``APEXRANK_DATA``.

    Yields
    ------
    Fold
        ``(name, train, validation, test)``; each part is a bunch with ``data``, ``target``, ``groups`` and ``docids``.

    Examples
    --------
    >>> import tempfile
    >>> ranks = " ".join(f"{j}:{j}" for j in range(1, 26))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for k in range(1, 6):
    ...         _ = (Path(folder) / f"A{k}.txt").write_text(f"{k} qid:{k} {ranks} #docid = D{k}")
    ...     folds = list(mq2008_agg_folds(folder))
    >>> [(fold.train.docids.tolist(), fold.validation.docids[0], fold.test.docids[0]) for fold in folds][1]
    (['D2', 'D3', 'D4'], 'D5', 'D1')
    """
    folder = data_path("aggregation", "MQ2008-agg") if path is None else Path(path)
    if folder is None:
        raise MissingDataError(
            "MQ2008-agg is missing: put A1.txt to A5.txt (or .gz) into a folder aggregation/MQ2008-agg below "
            f"{DATA_VARIABLE}, or name their folder with path="
        )
    return map(_of_ranks, letor_folds(folder, n_features=N_RANKERS, null="nan"))


def _of_ranks(fold: Fold) -> Fold:
    for bunch in fold[1:]:
        _check_ranks(bunch)
        bunch.feature_names = [f"ranker_{j}" for j in range(1, N_RANKERS + 1)]
    return fold


def _check_ranks(bunch: Bunch) -> None:
    known = np.where(np.isnan(bunch.data), 1.0, bunch.data)
    bad = (known < 1) | (known % 1 != 0)
    if bad.any():
        row, ranker = np.argwhere(bad)[0]
        raise InputError(
            f"{bunch.source}: document {bunch.docids[row]} of query {bunch.groups[row]} has the rank "
            f"{bunch.data[row, ranker]:g} for ranker {ranker + 1}; write a whole number of at least 1, or NULL"
        )
