"""Ranked rows whose answer is known: from a model and a table, a table with scores, or a TREC run and its qrels."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from apexrank.errors import InputError
from apexrank.io.columns import is_text, numbers
from apexrank.io.labels import answers, positive_value
from apexrank.io.ranker import TableRanker, group_ids
from apexrank.io.tables import Table
from apexrank.metrics._rows import Ties


class Judged(NamedTuple):
    """Answers and scores of rows: what measures are made of.

    ``graded`` answers are grades of relevance, others 0 and 1. ``ties`` is the rule of where the rows come from, and
    ``notes`` are sentences about what was left out.
    """

    y: np.ndarray
    scores: np.ndarray
    groups: np.ndarray | None
    graded: bool = False
    ties: Ties | None = None
    notes: tuple[str, ...] = ()


def judge_table(
    ranker: TableRanker,
    table: Table,
    target: str | None = None,
    positive: str | None = None,
    *,
    grades: bool = False,
) -> Judged:
    """Score the rows of a table that has the answers.

    The model's positive value goes with its own target only; ``grades`` asks for the target as grades of relevance.
    """
    if target is None or target == ranker.target:
        target, positive = ranker.target, positive or (None if grades else ranker.positive)
        positive = positive if positive is None else positive_value(table, target, positive)
    else:
        positive = _positive(table, target, positive)
    y = answers(table, target, positive)
    return Judged(y, ranker.score(table), ranker.group_ids(table), positive is None)


def judge_scores(
    table: Table, scores: str, target: str, *, groups: str | None = None, positive: str | None = None
) -> Judged:
    """Take the scores from a column of the table; larger is nearer to the top."""
    positive = _positive(table, target, positive)
    values = numbers(table, scores)
    missing = np.isnan(values)
    if missing.any():
        raise InputError(f"{table.where(int(missing.argmax()), scores)}: the score is missing; fill it in")
    ids = None if groups is None else group_ids(table, groups)
    return Judged(answers(table, target, positive), values, ids, positive is None)


def _positive(table: Table, target: str, positive: str | None) -> str | None:
    """The value that is asked for, the obvious one of two classes, or none of grades."""
    if positive is not None or is_text(table, target) or _has_negatives(table, target):
        return positive_value(table, target, positive)
    return None


def _has_negatives(table: Table, target: str) -> bool:
    return bool((numbers(table, target) < 0).any())


def judge_run(run: str | Path, qrels: str | Path, *, complete: bool = False) -> Judged:
    """Join a TREC run with its judgements, in the order of trec_eval and with its ties.

    ``complete`` counts the judged queries that the run lacks as well.
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
    """Sentences about queries and documents that only one of the files has."""
    asked, known = set(retrieved["query"]), set(judgements["query"])
    notes = []
    if known - asked and not complete:
        notes.append(
            f"{len(known - asked)} judged queries are not in the run and left out; --complete counts them as 0"
        )
    if asked - known:
        notes.append(f"{len(asked - known)} queries of the run are not judged and left out")
    found = retrieved.join(judgements, on=["query", "document"], how="semi")
    if not len(found):
        notes.append("no document of the run is judged: are its document ids those of the qrels?")
    return tuple(notes)
