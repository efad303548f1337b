"""``apexrank evaluate``: how good a list is on rows whose answer is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank.cli.output import note, print_frame, print_json, print_table, refuse_overwriting, split_names
from apexrank.cli.pictures import check_picture, save_roc
from apexrank.errors import InputError

if TYPE_CHECKING:
    from apexrank.io.judged import Judged

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
    groups: Annotated[
        str | None, typer.Option(help="Column of groups, one list each.", rich_help_panel=_SCORED)
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="TREC judgements of the run's documents.", rich_help_panel=_SCORED)
    ] = None,
    measures: Annotated[
        list[str] | None, typer.Option(help="Measures by name, such as auc,ndcg@10,map,p@5,partial_auc_0.01.")
    ] = None,
    relevant: Annotated[
        float | None, typer.Option(help="Grade from which on a row counts as positive; default: above 0.")
    ] = None,
    empty: Annotated[
        str, typer.Option(help="Groups without a relevant row: skip, zero, one or raise.")
    ] = "skip",
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
    from apexrank.io.measures import default_measures

    if roc is not None:
        check_picture(roc)
    _check_output(output, per_query, source, test)
    judged = _judge(source, test, target, positive, scores, groups, qrels)
    names = split_names(measures) or default_measures(judged.y, judged.groups)
    if roc is not None:
        _draw(judged, str(source), roc)
    if per_query:
        _per_query(judged, names, relevant, output, json)
    else:
        _means(judged, names, relevant, empty, confidence, str(test or source), json)


def _check_output(output: Path | None, per_query: bool, *inputs: Path | None) -> None:
    from apexrank.io.atomic import check_writable
    from apexrank.io.tables import check_suffix

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
    scores: str | None,
    groups: str | None,
    qrels: Path | None,
) -> Judged:
    """Answers and scores, from whichever of the three pairs of inputs was given."""
    from apexrank.io import load_model, read_table
    from apexrank.io.judged import judge_run, judge_scores, judge_table

    if qrels is not None:
        if test is not None or scores is not None or target is not None:
            raise InputError("--qrels goes with a TREC run alone: leave out TEST, --scores and --target")
        return judge_run(source, qrels)
    if scores is not None:
        if test is not None:
            raise InputError("--scores names a column of the table itself: leave out the model")
        table = read_table(source)
        target = target or table.roles.get("target")
        if target is None:
            raise InputError("--scores needs --target, the column with the answers")
        return judge_scores(
            table, scores, target, groups=groups or table.roles.get("groups"), positive=positive
        )
    if test is None:
        raise InputError(
            "give a model and a table (MODEL TEST), a table with --scores COLUMN, or a run with --qrels FILE"
        )
    if groups is not None:
        raise InputError("--groups goes with --scores: a model knows its own groups")
    ranker, table = load_model(source), read_table(test)
    judged = judge_table(ranker, table, target, positive)
    for sentence in ranker.check(table, known=[target]):
        note(sentence)
    return judged


def _draw(judged: Judged, name: str, path: Path) -> None:
    if judged.groups is not None:
        raise InputError("--roc draws one list, but these rows are ranked inside groups: leave it out")
    save_roc({name: judged.scores}, judged.y, path)


def _per_query(
    judged: Judged, names: list[str], relevant: float | None, output: Path | None, json: bool
) -> None:
    from apexrank.io import write_table
    from apexrank.metrics import per_group

    table = per_group(judged.y, judged.scores, names, groups=judged.groups, relevant=relevant)
    if output is not None:
        write_table(table, output)
    if json:
        print_json({"groups": len(table), "table": table.to_dicts()})
    elif output is not None:
        typer.echo(f"written: {output}, {len(table)} groups")
    else:
        print_frame(table)


def _means(
    judged: Judged,
    names: list[str],
    relevant: float | None,
    empty: str,
    confidence: float | None,
    source: str,
    json: bool,
) -> None:
    from apexrank.io.measures import label
    from apexrank.metrics import bootstrap
    from apexrank.metrics import evaluate as evaluate_measures

    options: dict[str, Any] = {"groups": judged.groups, "relevant": relevant, "empty": empty}
    values = evaluate_measures(judged.y, judged.scores, names, **options)
    summary = _summary(judged, relevant)
    intervals = {}
    if confidence is not None:
        intervals = {
            name: bootstrap(name, judged.y, judged.scores, confidence=confidence, **options) for name in names
        }
    if json:
        ends = {name: [found.low, found.high] for name, found in intervals.items()}
        print_json(
            summary | {"measures": values} | ({"confidence": confidence, "intervals": ends} if ends else {})
        )
        return
    headers = ["measure", "value"] + (["low", "high"] if intervals else [])
    rows = [[label(name), value] for name, value in values.items()]
    for row, name in zip(rows, names, strict=True):
        row += [intervals[name].low, intervals[name].high] if intervals else []
    print_table(headers, rows, f"{source}: {_sentence(summary)}")
    if intervals:
        drawn = "groups" if judged.groups is not None else "rows"
        typer.echo(f"low and high: {confidence:.0%} bootstrap intervals over {drawn}")


def _summary(judged: Judged, relevant: float | None) -> dict[str, int]:
    import numpy as np

    from apexrank.metrics import per_group

    counts = per_group(judged.y, judged.scores, "mrr", groups=judged.groups, relevant=relevant)
    summary = {"rows": len(judged.y), "positives": int(counts["relevant"].sum())}
    if judged.groups is not None:
        summary |= {"groups": len(counts), "empty_groups": int(np.sum(counts["relevant"].to_numpy() == 0))}
    return summary


def _sentence(summary: dict[str, int]) -> str:
    words = f"{summary['rows']} rows, {summary['positives']} of them positive"
    if "groups" not in summary:
        return words
    return f"{words}, in {summary['groups']} groups ({summary['empty_groups']} without a positive row)"
