"""``apexrank evaluate``: how good a list is on rows whose answer is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank.cli.output import (
    note,
    print_frame,
    print_json,
    print_table,
    refuse_overwriting,
    split_names,
    working,
)
from apexrank.cli.pictures import check_picture, save_roc
from apexrank.errors import InputError

if TYPE_CHECKING:
    from apexrank.io.judging import Judged

_SCORED = "Lists ranked elsewhere"


def evaluate(
    source: Annotated[
        Path,
        typer.Argument(
            help="Model file; or, without TEST, a table with --scores or a TREC run with --qrels.",
            show_default=False,
        ),
    ],
    test: Annotated[
        Path | None, typer.Argument(help="Table of rows with the target.", show_default=False)
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Target column: a class, or grades of relevance; default: the model's.")
    ] = None,
    positive: Annotated[str | None, typer.Option(help="Its positive value; default: the model's.")] = None,
    scores: Annotated[
        str | None, typer.Option(help="Column of scores, larger is better.", rich_help_panel=_SCORED)
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(
            help="Column of row weights, which count as repetitions; default: the model's, where TEST has it."
        ),
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column of groups, one list each.", rich_help_panel=_SCORED)
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="TREC judgements of the run's documents.", rich_help_panel=_SCORED)
    ] = None,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete", help="Count judged queries that the run lacks as 0.", rich_help_panel=_SCORED
        ),
    ] = False,
    measures: Annotated[
        list[str] | None,
        typer.Option(
            help="Measures by name, such as auc,ndcg@10,map,p@5,partial_auc_0.01. The gain of ndcg is 2^grade - 1; "
            "that of trec_eval's ndcg, the grade itself, is ndcg_linear."
        ),
    ] = None,
    relevant: Annotated[
        float | None, typer.Option(help="Grade from which on a row counts as positive; default: above 0.")
    ] = None,
    empty: Annotated[
        str, typer.Option(help="Groups without a relevant row: skip (leave out), zero, one or raise.")
    ] = "skip",
    ties: Annotated[
        str | None,
        typer.Option(
            help="Rows of equal scores: average, pessimistic, optimistic or given (their order); by default each "
            "measure has its own rule, runs have trec_eval's."
        ),
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="Add bootstrap intervals with this confidence, such as 0.95.")
    ] = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", help="Show the measures of each group instead of their means.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV or Parquet file for --per-query.")
    ] = None,
    roc: Annotated[
        Path | None, typer.Option(help="Picture of the ROC curve to write: .png, .svg or .pdf.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a list on rows whose answer is known."""
    from apexrank.io.judging import default_measures

    if roc is not None:
        check_picture(roc)
    if positive is not None and relevant is not None:
        raise InputError("--positive names a class and --relevant a grade: give one of them")
    _check_output(output, per_query, confidence, source, test, qrels)
    judged = _judge(source, test, target, positive, relevant, weight, scores, groups, qrels, complete)
    if roc is not None and judged.groups is not None:
        raise InputError("--roc draws one list, but these rows are ranked inside groups: leave it out")
    for sentence in judged.notes:
        note(sentence)
    chosen = split_names(measures)
    names = chosen or default_measures(judged.y, judged.groups, judged.weight)
    options = _options(judged, relevant, ties)
    if per_query:
        tell = _per_query(judged, names, options, output, json)
    else:
        names = _defined(judged, names, options, chosen=bool(chosen))
        tell = _means(judged, names, {**options, "empty": empty}, confidence, str(test or source), json)
    if roc is not None:
        positives = judged.y if not judged.graded else judged.y >= options["relevant"]
        save_roc({str(source): judged.scores}, positives, roc, judged.weight)
    tell()  # at last: the reader may leave


def _check_output(
    output: Path | None, per_query: bool, confidence: float | None, *inputs: Path | None
) -> None:
    from apexrank.atomic import check_writable
    from apexrank.io.tables import check_suffix

    if per_query and confidence is not None:
        raise InputError("--confidence is about means: leave it out, or leave out --per-query")
    if output is None:
        return
    if not per_query:
        raise InputError("--output is for the table of --per-query: add that, or leave it out")
    check_suffix(output)
    check_writable(output)
    refuse_overwriting(output, *(path for path in inputs if path is not None))


def _judge(
    source: Path,
    test: Path | None,
    target: str | None,
    positive: str | None,
    relevant: float | None,
    weight: str | None,
    scores: str | None,
    groups: str | None,
    qrels: Path | None,
    complete: bool,
) -> Judged:
    """Answers and scores, from whichever of the three pairs of inputs was given."""
    from apexrank.io import load_model, read_table
    from apexrank.io.judging import judge_run, judge_scores, judge_table

    if qrels is not None:
        if any(given is not None for given in (test, scores, target, positive, groups, weight)):
            raise InputError(
                "--qrels goes with a TREC run alone: leave out TEST, --scores, --target, --positive, --groups and "
                "--weight"
            )
        return judge_run(source, qrels, complete=complete)
    if complete:
        raise InputError("--complete is about a TREC run: give --qrels, or leave it out")
    if scores is not None:
        if test is not None:
            raise InputError("--scores names a column of the table itself: leave out the model")
        table = read_table(source)
        target = target or table.roles.get("target")
        if target is None:
            raise InputError("--scores needs --target, the column with the answers")
        groups = groups or table.roles.get("groups")
        return judge_scores(table, scores, target, groups=groups, positive=positive, weight=weight)
    if test is None:
        raise InputError(
            "give a model and a table (MODEL TEST), a table with --scores COLUMN, or a run with --qrels FILE"
        )
    if groups is not None:
        raise InputError("--groups goes with --scores: a model knows its own groups")
    ranker, table = load_model(source), read_table(test)
    judged = judge_table(ranker, table, target, positive, grades=relevant is not None, weight=weight)
    return judged._replace(notes=tuple(ranker.check(table, known=[target, weight])))


def _options(judged: Judged, relevant: float | None, ties: str | None) -> dict[str, Any]:
    """What measures are told of the rows."""
    from apexrank.io.judging import ABOVE_ZERO

    if relevant is not None and not judged.graded:
        raise InputError("--relevant is a grade, but the target is a class: leave it out")
    if judged.graded and relevant is None:
        relevant = ABOVE_ZERO
    found = {"groups": judged.groups, "sample_weight": judged.weight}
    return {**found, "relevant": relevant, "ties": ties or judged.ties}


def _defined(judged: Judged, names: list[str], options: dict[str, Any], *, chosen: bool) -> list[str]:
    """Leave out default measures that these rows have no value of; what was asked for is computed or refused."""
    from apexrank.metrics import per_group

    if chosen:
        return names
    found = per_group(judged.y, judged.scores, names, **options)
    kept = [name for name in names if found[name].null_count() < len(found)]
    if not kept:
        raise InputError("no measure is defined: the rows lack positive ones")
    if len(kept) < len(names):
        left = ", ".join(name for name in names if name not in kept)
        note(f"not defined on these rows and left out: {left}")
    return kept


def _per_query(
    judged: Judged, names: list[str], options: dict[str, Any], output: Path | None, json: bool
) -> Callable[[], None]:
    """Write the table, and say how to tell of it."""
    from apexrank.io import write_table
    from apexrank.metrics import per_group

    table = per_group(judged.y, judged.scores, names, **options)
    if output is not None:
        write_table(table, output)
    if json:
        return partial(print_json, {"groups": len(table), "table": table.to_dicts()})
    if output is not None:
        return partial(typer.echo, f"written: {output}, {len(table)} groups")
    return partial(print_frame, table)


def _means(
    judged: Judged,
    names: list[str],
    options: dict[str, Any],
    confidence: float | None,
    source: str,
    json: bool,
) -> Callable[[], None]:
    """Compute the means, and say how to tell of them."""
    from apexrank.io.judging import label
    from apexrank.metrics import bootstrap
    from apexrank.metrics import evaluate as evaluate_measures

    values = evaluate_measures(judged.y, judged.scores, names, **options)
    intervals: Any = {}
    if confidence is not None:
        with working("drawing rows or groups again and again"):
            intervals = bootstrap(names, judged.y, judged.scores, confidence=confidence, **options)
    summary = _summary(judged, options)
    if json:
        ends = {name: [found.low, found.high] for name, found in intervals.items()}
        found = {"confidence": confidence, "intervals": ends} if ends else {}
        return partial(print_json, summary | {"measures": values} | found)
    headers = ["measure", "value"] + (["low", "high"] if intervals else [])
    rows = [
        [label(name), value] + ([intervals[name].low, intervals[name].high] if intervals else [])
        for name, value in values.items()
    ]
    remarks = []
    if intervals:
        drawn = "groups" if judged.groups is not None else "rows"
        remarks.append(f"low and high: {100 * (confidence or 0):g}% bootstrap intervals over {drawn}")
    if judged.graded and any(name.startswith("err") for name in values):
        remarks.append(f"ERR takes {summary['max_grade']:g} for the highest grade, as these rows do")
    title = f"{source}: {_sentence(summary, options['empty'])}"
    return partial(_print_means, headers, rows, title, remarks)


def _print_means(headers: list[str], rows: list[list[Any]], title: str, remarks: list[str]) -> None:
    print_table(headers, rows, title)
    for remark in remarks:
        typer.echo(remark)


def _summary(judged: Judged, options: dict[str, Any]) -> dict[str, Any]:
    from apexrank.metrics import per_group

    known = {name: options[name] for name in ("groups", "relevant")}
    counts = per_group(judged.y, judged.scores, "mrr", **known)
    summary: dict[str, Any] = {
        "rows": int((judged.scores > -math.inf).sum()),
        "positives": int(counts["relevant"].sum()),
    }
    if judged.graded:
        summary["max_grade"] = float(judged.y.max())
    if judged.groups is not None:
        summary |= {"groups": len(counts), "empty_groups": int((counts["relevant"] == 0).sum())}
    return summary


def _sentence(summary: dict[str, Any], empty: str) -> str:
    words = f"{summary['rows']} rows, {summary['positives']} positive"
    if "groups" not in summary:
        return words
    what = {"skip": "left out; --empty zero counts them as 0", "zero": "counted as 0", "one": "counted as 1"}
    without = summary["empty_groups"]
    rest = f", {without} of them without a positive row ({what.get(empty, empty)})" if without else ""
    return f"{words}, in {summary['groups']} groups{rest}"
