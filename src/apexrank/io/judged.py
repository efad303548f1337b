"""Ranked rows whose answer is known: from a model and a table, a table with scores, or a TREC run and its qrels."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from apexrank.errors import InputError
from apexrank.io.columns import is_text, numbers
from apexrank.io.labels import answers, positive_value
from apexrank.io.ranker import TableRanker, group_ids
from apexrank.io.tables import Table


class Judged(NamedTuple):
    """Answers and scores of rows: what measures are made of."""

    y: np.ndarray
    scores: np.ndarray
    groups: np.ndarray | None


def judge_table(
    ranker: TableRanker, table: Table, target: str | None = None, positive: str | None = None
) -> Judged:
    """Score the rows of a table that has the answers."""
    target, positive = target or ranker.target, positive or ranker.positive
    if positive is not None:
        positive = positive_value(table, target, positive)
    return Judged(answers(table, target, positive), ranker.score(table), ranker.group_ids(table))


def judge_scores(
    table: Table, scores: str, target: str, *, groups: str | None = None, positive: str | None = None
) -> Judged:
    """Take the scores from a column of the table; larger is nearer to the top."""
    if positive is not None or is_text(table, target):
        positive = positive_value(table, target, positive)
    y = answers(table, target, positive)
    values = numbers(table, scores)
    missing = np.isnan(values)
    if missing.any():
        raise InputError(f"{table.where(int(missing.argmax()), scores)}: the score is missing; fill it in")
    return Judged(y, values, None if groups is None else group_ids(table, groups))


def judge_run(run: str | Path, qrels: str | Path) -> Judged:
    """Join a TREC run with its judgements, in the order of trec_eval."""
    from apexrank.io.trec import judged, read_qrels, read_run

    frame = judged(read_run(run), read_qrels(qrels))
    if not len(frame):
        raise InputError(f"{qrels} judges no query of {run}: their query ids must be the same")
    return Judged(
        frame["relevance"].to_numpy().astype(np.float64),
        frame["score"].to_numpy(),
        frame["query"].to_numpy().astype(str),
    )
