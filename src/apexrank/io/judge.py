"""Scores and answers of labelled rows, from a model, a score column or a TREC run, and their default metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from apexrank.io.columns import (
    group_ids,
    is_text,
    labelled_rows,
    numbers,
    read_target,
    refuse_row,
    row_weights,
    target_counts,
    unknown_notes,
)
from apexrank.io.read import Table
from apexrank.metrics._labels import check_rows
from apexrank.metrics._rows import Empty, Ties
from apexrank.metrics.evaluation import find_measure

if TYPE_CHECKING:
    from apexrank.io.table_ranker import TableRanker

ABOVE_ZERO = math.ulp(0.0)  # smallest positive grade
_CUTS = (10, 50, 100)

ONE_LIST = (
    "auc",
    "partial_auc_0.1",
    "partial_auc_0.01",
    *(f"precision_at_{k}" for k in _CUTS),
    *(f"recall_at_{k}" for k in _CUTS),
    "tpr_at_fpr_0.01",
    "average_precision",
    "r_max",
    "average_reciprocal_rank",
    "push_dcg",
)
MANY_LISTS = (
    "ndcg",
    "ndcg_at_5",
    "ndcg_at_10",
    "average_precision",
    "mrr",
    "err",
    "winner_takes_all",
    "precision_at_5",
    "precision_at_10",
    "recall_at_10",
    "auc",
)
# printed by ``fit``
TOP_OF_ONE_LIST = ("auc", "partial_auc_0.1", "partial_auc_0.01", "precision_at_10", "tpr_at_fpr_0.01")
TOP_OF_MANY_LISTS = ("ndcg", "ndcg_at_10", "average_precision", "precision_at_5", "auc")
_OF_RANKS = {"average_reciprocal_rank", "push_dcg", "average_precision", "mrr", "err"}


class Judged(NamedTuple):
    """Answers and scores of rows, the input of metrics.

    ``graded`` answers are relevance grades, others are 0 and 1. ``ties`` is the tie rule of the data source, ``notes``
    tell what was omitted, and ``weight`` is the weight of each row. ``positive`` names the positive class, such as
    "fraud = yes"; ``drift`` is the result of :meth:`~apexrank.io.TableRanker.drift`.
    """

    y: np.ndarray
    scores: np.ndarray
    groups: np.ndarray | None = None
    graded: bool = False
    ties: Ties | None = None
    notes: tuple[str, ...] = ()
    weight: np.ndarray | None = None
    positive: str | None = None
    drift: dict[str, float] | None = None


def judge_table(
    ranker: TableRanker,
    table: Table,
    target: str | None = None,
    positive: str | None = None,
    *,
    grades: bool = False,
    weight: str | None = None,
    scores: np.ndarray | None = None,
) -> Judged:
    """Score the rows of a labelled table, unless ``scores`` are given.

    The model's positive value applies only to its own target; ``grades`` reads the target as relevance grades.
    ``weight`` is a column of weights, by default the model's, if the table has it. Rows without a class are left out.
    """
    if target is None or target == ranker.target:
        target, positive = ranker.target, positive or (None if grades else ranker.positive)
        graded = positive is None
    else:
        graded = _is_graded(table, target, positive)
    notes: list[str] = []
    if not graded:
        table, notes = labelled_rows(table, target)
    y, found = read_target(table, target, positive, graded=graded)
    if target == ranker.target and found is not None and found == ranker.positive:
        notes += unknown_notes(target_counts(table, target), (found, *ranker.negatives))
    weight = weight or (ranker.weight if ranker.weight in table.names else None)
    weights = None if weight is None else row_weights(table, weight)
    if scores is None:
        scores = ranker.score(table, weights)
    elif table.places is not None:
        scores = scores[table.places]
    groups = ranker.group_ids(table)
    named = None if found is None else f"{target} = {found}"
    return Judged(y, scores, groups, graded, notes=tuple(notes), weight=weights, positive=named)


def judge_scores(
    table: Table,
    scores: str,
    target: str,
    *,
    groups: str | None = None,
    positive: str | None = None,
    weight: str | None = None,
) -> Judged:
    """Read the scores from a column of the table; larger scores rank higher."""
    graded = _is_graded(table, target, positive)
    values = numbers(table, scores)
    refuse_row(table, scores, np.isnan(values), "the score is missing; fill it in")
    ids = None if groups is None else group_ids(table, groups)
    weights = None if weight is None else row_weights(table, weight)
    y, found = read_target(table, target, positive, graded=graded)
    return Judged(
        y, values, ids, graded, weight=weights, positive=None if found is None else f"{target} = {found}"
    )


def _is_graded(table: Table, target: str, positive: str | None) -> bool:
    """Whether a target holds grades: no positive value is given, and all values are non-negative numbers."""
    return positive is None and not is_text(table, target) and not (numbers(table, target) < 0).any()


def judge_run(run: str | Path, qrels: str | Path, *, complete: bool = False) -> Judged:
    """Join a TREC run with its judgements, in trec_eval's order and with its ties.

    ``complete`` is as in :func:`apexrank.io.trec.judged`.
    """
    from apexrank.io.trec import judged, read_qrels, read_run

    retrieved, judgements = read_run(run), read_qrels(qrels)
    frame = judged(retrieved, judgements, complete=complete)
    return Judged(
        frame["relevance"].to_numpy().astype(np.float64),
        frame["score"].to_numpy(),
        frame["query"].to_numpy().astype(str),
        graded=True,
        ties="given",
        notes=_left_out(retrieved, judgements, complete),
    )


def _left_out(retrieved: pl.DataFrame, judgements: pl.DataFrame, complete: bool) -> tuple[str, ...]:
    """Return notes about queries and documents that are in only one of the files."""
    asked, known = set(retrieved["query"]), set(judgements["query"])
    notes = []
    if known - asked and not complete:
        notes.append(
            f"{len(known - asked)} judged queries are not in the run and are left out; `complete=True` counts them as 0"
        )
    if asked - known:
        notes.append(f"{len(asked - known)} queries of the run are not judged and are left out")
    found = retrieved.join(judgements, on=["query", "document"], how="semi")
    if not len(found):
        notes.append("no document of the run is judged: are its document ids those of the qrels?")
    return tuple(notes)


def default_measures(judged: Judged, *, brief: bool = False) -> list[str]:
    """Return the names of the metrics that suit lists of this length and kind; about five if ``brief``.

    Examples
    --------
    >>> default_measures(Judged(np.array([0, 1, 1]), np.zeros(3)))[:2]
    ['auc', 'partial_auc_0.1']
    """
    one_list, many_lists = (TOP_OF_ONE_LIST, TOP_OF_MANY_LISTS) if brief else (ONE_LIST, MANY_LISTS)
    if judged.groups is not None or len(np.unique(judged.y[judged.y > 0])) > 1:
        return measurable(many_lists, judged.weight)
    rows = len(judged.y) if judged.weight is None else judged.weight.sum()
    names = (name for name in one_list if find_measure(name).options.get("k", 0) <= rows)
    return measurable(names, judged.weight)


def measurable(names: Iterable[str], sample_weight: np.ndarray | None) -> list[str]:
    """Return the metrics that the weights allow: sums over ranks need whole-number weights."""
    whole = sample_weight is None or (sample_weight == np.floor(sample_weight)).all()
    return [name for name in names if whole or not (name in _OF_RANKS or name.startswith("ndcg"))]


def measure(
    judged: Judged,
    *,
    brief: bool = False,
    relevant: float | None = ABOVE_ZERO,
    ties: Ties | None = None,
    empty: Empty = "skip",
) -> tuple[dict[str, float], list[str]]:
    """Compute the default metrics with a single sort; options as in :func:`apexrank.metrics.evaluate`.

    Returns
    -------
    values, notes
        Each metric that is defined on these rows, and a note that names the others.

    Examples
    --------
    >>> measure(Judged(np.array([1, 0, 1, 0]), np.array([0.9, 0.7, 0.4, 0.1])), brief=True)[0]["auc"]
    0.75
    """
    rows = check_rows(judged.y, judged.scores, None, judged.groups, judged.weight, relevant, graded=True)
    found = {name: find_measure(name).values(rows, ties) for name in default_measures(judged, brief=brief)}
    left = [name for name, values in found.items() if not (values.defined & rows.present).any()]
    means = {name: rows.mean(values, empty) for name, values in found.items() if name not in left}
    return means, [f"not defined on these rows and left out: {', '.join(left)}"] if left else []


def best_cut(
    positives: np.ndarray,
    scores: np.ndarray,
    cost: float,
    gain: float,
    *,
    sample_weight: np.ndarray | None = None,
) -> dict[str, float | None]:
    """Return the cut-off with the largest total gain, given the gain of a hit and the cost of a false alarm.

    Tied rows are either all in the list or all out. The cut-off is optimal for these very rows, so expect a smaller
    gain on new ones.

    Returns
    -------
    dict
        ``length`` and ``hits`` of the list, its lowest ``score`` (None if it is empty) and its ``gain``.

    Examples
    --------
    >>> best_cut(np.array([0, 1, 0, 1]), np.array([0.1, 0.7, 0.4, 0.9]), cost=5, gain=20)
    {'length': 2.0, 'hits': 2.0, 'score': 0.7, 'gain': 40.0}
    """
    weight = np.ones(len(scores)) if sample_weight is None else sample_weight
    values, rows = np.unique(-scores[weight > 0], return_inverse=True)
    hit = np.where(positives > 0, weight, 0.0)[weight > 0]
    length, hits = np.cumsum(np.bincount(rows, weight[weight > 0])), np.cumsum(np.bincount(rows, hit))
    gains = gain * hits - cost * (length - hits)
    best = int(gains.argmax())
    if gains[best] <= 0:
        return {"length": 0.0, "hits": 0.0, "score": None, "gain": 0.0}
    return {
        "length": float(length[best]),
        "hits": float(hits[best]),
        "score": float(-values[best]),
        "gain": float(gains[best]),
    }
