"""``apexrank evaluate``: measures of a ranked list on rows whose answer is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError

if TYPE_CHECKING:
    from apexrank.io.judging import Judged

_scored = opt.panel("Lists ranked elsewhere")


@dataclass(frozen=True)
class Inputs:
    """Answers and scores: a model with a table, a table of scores, or a TREC run with its judgements."""

    source: Annotated[
        Path, opt.argument("Model file; or, without TEST, a table with --scores or a TREC run with --qrels.")
    ]
    test: Annotated[Path | None, opt.argument("Table of rows with the target.")] = None
    target: str | None = opt.plain("Target column: a class, or grades of relevance; default: the model's.")
    positive: str | None = opt.plain("Its positive value; default: the model's.")
    relevant: float | None = opt.plain("Grade from which on a row counts as positive; default: above 0.")
    weight: str | None = opt.plain(
        "Column of row weights, which count as repetitions; default: the model's, where TEST has it."
    )
    scores: str | None = _scored("Column of scores, larger is better.")
    groups: str | None = _scored("Column of groups, one list each.")
    qrels: Path | None = _scored("TREC judgements of the run's documents.")
    complete: bool = _scored("Count judged queries that the run lacks as 0.", "--complete", default=False)

    def read(self) -> Judged:
        """Read the answers and scores from whichever of the three pairs of inputs was given."""
        from apexrank.io import load_model, read_table
        from apexrank.io.judging import judge_run, judge_scores, judge_table

        if self.qrels is not None:
            others = (self.test, self.scores, self.target, self.positive, self.groups, self.weight)
            if any(given is not None for given in others):
                raise InputError(
                    "--qrels goes with a TREC run alone: leave out TEST, --scores, --target, --positive, --groups and "
                    "--weight"
                )
            return judge_run(self.source, self.qrels, complete=self.complete)
        if self.complete:
            raise InputError("--complete is about a TREC run: give --qrels, or leave it out")
        if self.scores is not None:
            if self.test is not None:
                raise InputError("--scores names a column of the table itself: leave out the model")
            table = read_table(self.source)
            target = self.target or table.roles.get("target")
            groups = self.groups or table.roles.get("groups")
            if target is None:
                raise InputError("--scores needs --target, the column with the answers")
            return judge_scores(
                table, self.scores, target, groups=groups, positive=self.positive, weight=self.weight
            )
        if self.test is None:
            raise InputError(
                "give a model and a table (MODEL TEST), a table with --scores COLUMN, or a run with --qrels FILE"
            )
        if self.groups is not None:
            raise InputError("--groups goes with --scores: a model knows its own groups")
        ranker, table = load_model(self.source), read_table(self.test)
        grades = self.relevant is not None
        judged = judge_table(ranker, table, self.target, self.positive, grades=grades, weight=self.weight)
        return judged._replace(notes=tuple(ranker.check(table, known=[self.target, self.weight])))


@dataclass(frozen=True)
class MeasureOptions:
    """Measures, and where they go."""

    measures: list[str] | None = opt.plain(
        "Measures by name, such as auc,ndcg@10,map,p@5,partial_auc_0.01. The gain of ndcg is 2^grade - 1; "
        "that of trec_eval's ndcg, the grade itself, is ndcg_linear."
    )
    empty: str = opt.plain(
        "Groups without a relevant row: skip (leave out), zero, one or raise.", default="skip"
    )
    ties: str | None = opt.plain(
        "Rows of equal scores: average, pessimistic, optimistic or given (their order); by default each "
        "measure has its own rule, runs have trec_eval's."
    )
    confidence: float | None = opt.plain("Add bootstrap intervals with this confidence, such as 0.95.")
    per_query: bool = opt.plain(
        "Show the measures of each group instead of their means.", "--per-query", default=False
    )
    output: Path | None = opt.plain("CSV or Parquet file for --per-query.", "--output", "-o")
    roc: Path | None = opt.plain("Picture of the ROC curve to write: .png, .svg or .pdf.")


@opt.option_groups
def evaluate(inputs: Inputs, *, options: MeasureOptions, json: opt.Json = False) -> None:
    """Measure a list on rows whose answer is known."""
    from apexrank.io.judging import default_measures

    out.check_picture(options.roc)
    if inputs.positive is not None and inputs.relevant is not None:
        raise InputError("--positive names a class and --relevant a grade: give one of them")
    if options.per_query and options.confidence is not None:
        raise InputError("--confidence is about means: leave it out, or leave out --per-query")
    if options.output is not None and not options.per_query:
        raise InputError("--output is for the table of --per-query: add that, or leave it out")
    out.check_table(options.output, inputs.source, inputs.test, inputs.qrels)
    judged = inputs.read()
    if options.roc is not None and judged.groups is not None:
        raise InputError("--roc draws one list, but these rows are ranked inside groups: leave it out")
    for sentence in judged.notes:
        out.note(sentence)
    chosen = opt.split_names(options.measures)
    names = chosen or default_measures(judged.y, judged.groups, judged.weight)
    about = _about_rows(judged, inputs.relevant, options.ties)
    if options.per_query:
        tell = _per_query(judged, names, about, options.output, json)
    else:
        names = chosen or _defined(judged, names, about)
        source = str(inputs.test or inputs.source)
        tell = _means(judged, names, about | {"empty": options.empty}, options.confidence, source, json)
    if options.roc is not None:
        positives = judged.y if not judged.graded else judged.y >= about["relevant"]
        out.save_roc({str(inputs.source): judged.scores}, positives, options.roc, judged.weight)
    tell()  # after the files are written, as the reader of stdout may leave


def _about_rows(judged: Judged, relevant: float | None, ties: str | None) -> dict[str, Any]:
    """Return the options of all measures."""
    from apexrank.io.judging import ABOVE_ZERO

    if relevant is not None and not judged.graded:
        raise InputError("--relevant is a grade, but the target is a class: leave it out")
    if judged.graded and relevant is None:
        relevant = ABOVE_ZERO
    found = {"groups": judged.groups, "sample_weight": judged.weight}
    return {**found, "relevant": relevant, "ties": ties or judged.ties}


def _defined(judged: Judged, names: list[str], options: dict[str, Any]) -> list[str]:
    """Leave out default measures that are not defined on these rows."""
    from apexrank.metrics import per_group

    found = per_group(judged.y, judged.scores, names, **options)
    kept = [name for name in names if found[name].null_count() < len(found)]
    if not kept:
        raise InputError("no measure is defined: the rows lack positive ones")
    if len(kept) < len(names):
        left = ", ".join(name for name in names if name not in kept)
        out.note(f"not defined on these rows and left out: {left}")
    return kept


def _per_query(
    judged: Judged, names: list[str], options: dict[str, Any], output: Path | None, json: bool
) -> Callable[[], None]:
    """Write the table of groups; return what prints it."""
    from apexrank.metrics import per_group

    table = per_group(judged.y, judged.scores, names, **options)
    out.write_frame(table, output)
    if json:
        return partial(out.print_json, {"groups": len(table), "table": table.to_dicts()})
    if output is not None:
        return partial(typer.echo, f"written: {output}, {len(table)} groups")
    return partial(out.print_frame, table)


def _means(
    judged: Judged,
    names: list[str],
    options: dict[str, Any],
    confidence: float | None,
    source: str,
    json: bool,
) -> Callable[[], None]:
    """Compute the means; return what prints them."""
    from apexrank.io.judging import label
    from apexrank.metrics import bootstrap
    from apexrank.metrics import evaluate as evaluate_measures

    values = evaluate_measures(judged.y, judged.scores, names, **options)
    intervals: Any = {}
    if confidence is not None:
        with out.working("drawing rows or groups again and again"):
            intervals = bootstrap(names, judged.y, judged.scores, confidence=confidence, **options)
    summary = _summary(judged, options)
    if json:
        ends = {name: [found.low, found.high] for name, found in intervals.items()}
        found = {"confidence": confidence, "intervals": ends} if ends else {}
        return partial(out.print_json, summary | {"measures": values} | found)
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
    out.print_table(headers, rows, title)
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
