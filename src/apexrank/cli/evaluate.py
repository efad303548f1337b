"""``apexrank evaluate``: measures of a ranked list on labelled rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank import metrics
from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from apexrank.io.judge import Judged

_scored = opt.panel("Lists ranked elsewhere")
_MANY, _COLUMNS_SHOWN = 100, 10  # fewest rows for a meaningful PSI, and columns of its table


@dataclass(frozen=True)
class Inputs:
    """Labels and scores: a model with a table, a table of scores, or a TREC run with its judgements."""

    source: Annotated[
        Path, opt.argument("Model file; without TEST, a table with --scores or a TREC run with --qrels.")
    ]
    test: Annotated[Path | None, opt.argument("Labelled table, or a folder of them.")] = None
    target: str | None = opt.plain("Target column: a class or a grade of relevance (default: the model's).")
    positive: str | None = opt.plain("Positive value of the target (default: the model's).")
    relevant: float | None = opt.plain("Lowest grade that counts as positive (default: any above 0).")
    weight: str | None = opt.plain(
        "Column of row weights, which count as repetitions (default: the model's, if TEST has it)."
    )
    groups: str | None = opt.plain(
        "Column of groups, each ranked as its own list; for --scores, or a model without groups."
    )
    scores: str | None = _scored("Column of scores; larger is better.")
    qrels: Path | None = _scored("TREC relevance judgements for the run.")
    complete: bool = _scored("Count judged queries that are not in the run as 0.", default=False)

    def read(self, reading: opt.CsvOptions) -> Judged:
        """Read the labels and scores from whichever of the three pairs of inputs was given."""
        of_table = (self.test, self.scores, self.target, self.positive, self.groups, self.weight)
        of_run, of_scores = self.qrels is not None, self.scores is not None
        has_both = self.positive is not None and self.relevant is not None
        has_none = not of_run and not of_scores and self.test is None
        of_both = of_run and of_table.count(None) < len(of_table)
        alone = "TEST, --scores, --target, --positive, --groups and --weight"
        ways = "a model and a table (MODEL TEST), a table with --scores COLUMN, or a run with --qrels FILE"
        for wrong, message in (
            (has_both, "--positive names a class and --relevant a grade: give one of them"),
            (of_both, f"--qrels goes with a TREC run alone: leave out {alone}"),
            (
                self.complete and not of_run,
                "--complete applies to a TREC run: give --qrels, or leave out --complete",
            ),
            (of_scores and self.test, "--scores names a column of the table itself: leave out the model"),
            (has_none, f"give {ways}"),
        ):
            opt.refuse(wrong, message)
        reading.refuse(of_run, "a TREC run is not a CSV file")
        from apexrank.io.judge import judge_run, judge_scores, judge_table

        if self.qrels is not None:
            return judge_run(self.source, self.qrels, complete=self.complete)
        if self.scores is not None:
            table = reading.read_table(self.source, index="index")
            target = self.target or table.roles.get("target")
            groups = self.groups or table.roles.get("groups")
            if target is None:
                raise InputError("--scores needs the target column: name it with --target")
            roles = {"groups": groups, "positive": self.positive, "weight": self.weight}
            return judge_scores(table, self.scores, target, **roles)
        assert self.test is not None  # checked above
        ranker = opt.load_ranker(self.source, self.groups)
        if self.test.is_dir():
            from apexrank.io.stream import score_blocks

            reading.refuse(True, opt.FOLDER_IS_UTF8)
            asked = {"target": self.target or ranker.target, "weight": self.weight or ranker.weight}
            table, scores, notes = score_blocks(ranker, self.test, **asked)
        else:
            table, scores, notes = reading.read_table(self.test, index="index"), None, None
        judged = judge_table(
            ranker,
            table,
            self.target,
            self.positive,
            grades=self.relevant is not None,
            weight=self.weight,
            scores=scores,
        )
        if ranker.positive is None and judged.groups is None:
            out.note(
                "the model has no groups, so all rows are measured as one list: name their column with --groups"
            )
        known = [self.target, self.weight, self.groups]
        notes = ranker.check(table, known=known) if notes is None else notes
        if ranker.score_profile is not None and not self.test.is_dir():
            judged = judged._replace(drift=ranker.drift(table, judged.scores))
        return judged._replace(notes=(*judged.notes, *notes, *_drift_notes(judged)))


@dataclass(frozen=True)
class MeasureOptions:
    """Measures and output files."""

    measures: list[str] | None = opt.plain(
        "Measures by name, such as auc,ndcg@10,map,p@5,partial_auc_0.01. ndcg has the gain 2^grade - 1; ndcg_linear "
        "has the grade itself, as in trec_eval."
    )
    empty: str = opt.plain(
        "Groups without a relevant row: skip, zero, one or raise.",
        default="skip",
        choices=("skip", "zero", "one", "raise"),
    )
    ties: str | None = opt.plain(
        "Tied scores: average, pessimistic, optimistic, given (in the order given) or, for average precision, "
        "threshold (tied rows are one step). Default: the rule of each measure; for runs that of trec_eval.",
        choices=("average", "pessimistic", "optimistic", "given", "threshold"),
    )
    confidence: float | None = opt.plain("Add bootstrap confidence intervals at this level, such as 0.95.")
    drift: bool = opt.plain(
        "Show the drift from the training rows: population stability index (PSI) of the score and of each column.",
        default=False,
    )
    per_query: bool = opt.plain("Show the measures of each group instead of their means.", default=False)
    output: Path | None = opt.plain("CSV or Parquet file to write the table of --per-query to.")
    roc: Path | None = opt.plain("Picture of the ROC curve to write (.png, .svg or .pdf).")


@opt.option_groups
def evaluate(
    inputs: Inputs,
    *,
    options: MeasureOptions,
    costs: opt.CostOptions,
    reading: opt.CsvOptions,
    json: opt.Json = False,
) -> None:
    """Evaluate a ranking on labelled rows."""
    output, each, pair = options.output, options.per_query, costs.pair()
    out.check_picture(options.roc)
    costs_given, of_means = each and pair is not None, each and options.confidence is not None
    opt.refuse(costs_given, "--cost-false-alarm and --gain-hit apply to one list: leave out --per-query")
    opt.refuse(of_means, "--confidence applies to means: leave out --confidence or --per-query")
    of_table = "--output writes the table of --per-query: add --per-query, or leave out --output"
    opt.refuse(output is not None and not each, of_table)
    out.check_table(output, inputs.source, inputs.test, inputs.qrels)
    out.check_inputs(inputs.source, inputs.test, inputs.qrels)
    from apexrank.io.judge import ABOVE_ZERO, best_cut, default_measures
    from apexrank.metrics.confidence import check_level
    from apexrank.metrics.evaluation import find_measure

    chosen = opt.split_names(options.measures)
    for name in chosen:
        find_measure(name)
    if options.confidence is not None:
        check_level(options.confidence, n_resamples=2)
    judged = inputs.read(reading)

    if judged.groups is not None:
        many = "one list, but these rows are ranked inside groups"
        opt.refuse(pair is not None, f"--cost-false-alarm and --gain-hit cut {many}")
        opt.refuse(options.roc is not None, f"--roc draws {many}: leave it out")
    no_grade = inputs.relevant is not None and not judged.graded
    opt.refuse(no_grade, "--relevant is a grade, but the target is a class: leave it out")
    relevant = ABOVE_ZERO if judged.graded and inputs.relevant is None else inputs.relevant
    positives = judged.y >= relevant if judged.graded else judged.y > 0
    reading.note(*judged.notes)
    about: dict[str, Any] = {
        "groups": judged.groups,
        "sample_weight": judged.weight,
        "relevant": relevant,
        "ties": options.ties or judged.ties,
    }
    precise = bool(chosen) and all(
        find_measure(name).label.startswith("average precision") for name in chosen
    )
    alone = "--ties threshold applies to average precision only: add --measures map"
    opt.refuse(options.ties == "threshold" and not precise, alone)

    if each:
        names = chosen or default_measures(judged)
        table = metrics.per_group(judged.y, judged.scores, names, **about)
        out.write_frame(table, output)
    else:
        report = _report(judged, positives, chosen, about | {"empty": options.empty}, options.confidence)
        if options.drift:
            from apexrank.io.drift import RULE

            unknown = (
                "--drift compares a table with a model that knows its training rows: fit the model again"
            )
            opt.refuse(judged.drift is None, unknown)
            report |= {"drift": judged.drift, "rule": RULE}
        if pair is not None:
            report["best_cut"] = best_cut(positives, judged.scores, *pair, sample_weight=judged.weight)
    if options.roc is not None:
        out.save_roc({str(inputs.source): judged.scores}, positives, options.roc, judged.weight)
    # after the files are written, because the reader of stdout may close the pipe
    if not each and json:
        out.print_json(report)
    elif not each:
        _print(report, inputs.test or inputs.source, options.empty)
    elif json:
        out.print_json({"groups": len(table)}, table=table)
    elif output is None:
        out.print_frame(table)
    else:
        out.print_written(output, f", {out.plural(len(table), 'group')}")


def _drift_notes(judged: Judged) -> list[str]:
    """Return a note if the score distribution differs from training; with few rows it always does, so there is none."""
    from apexrank.io.drift import MUCH

    found = judged.drift["score"] if judged.drift is not None and len(judged.scores) >= _MANY else 0.0
    much = f"the scores have drifted from those of training (PSI {found:.2f}); --drift shows which columns"
    return [much] if found > MUCH else []


def _report(
    judged: Judged, positives: np.ndarray, names: list[str], about: dict[str, Any], confidence: float | None
) -> dict[str, Any]:
    """Return the size of the lists, the mean of each measure, and intervals if requested."""
    from apexrank.io.judge import default_measures, measurable, measure

    report: dict[str, Any] = {
        "rows": int((judged.scores > -math.inf).sum()),
        "positives": int(positives.sum()),
    }
    report |= {} if judged.positive is None else {"positive": judged.positive}
    if judged.weight is not None:
        report["weight"] = float(judged.weight.sum())
    if judged.graded:
        report["max_grade"] = float(judged.y.max())
    if judged.groups is not None:
        groups, with_positives = set(judged.groups.tolist()), set(judged.groups[positives].tolist())
        report |= {"groups": len(groups), "empty_groups": len(groups - with_positives)}
    if names:
        report["measures"] = metrics.evaluate(judged.y, judged.scores, names, **about)
    else:
        of_lists = {name: about[name] for name in ("relevant", "ties", "empty")}
        report["measures"], notes = measure(judged, **of_lists)
        if not report["measures"]:
            raise InputError("no measure is defined: there are no positive rows")
        out.note(*notes)
        unweighted = default_measures(judged._replace(weight=None))
        if left_out := [name for name in unweighted if not measurable([name], judged.weight)]:
            report["left_out"] = left_out
    if confidence is not None:
        names = names or list(report["measures"])
        with out.working("drawing bootstrap samples"):
            found: Any = metrics.bootstrap(names, judged.y, judged.scores, confidence=confidence, **about)
        intervals = {name: [found[name].low, found[name].high] for name in found}
        report |= {"confidence": confidence, "intervals": intervals, "drawn": next(iter(found.values())).n}
    return report


def _print(report: dict[str, Any], source: Path, empty: str) -> None:
    from apexrank.metrics.evaluation import find_measure

    title = f"{source}: {out.plural(report['rows'], 'row')}, {report['positives']} positive"
    title += f" ({report['positive']})" if "positive" in report else ""
    if "weight" in report:
        title += f", weighted ({report['weight']:.6g} rows in all)"
    if "groups" in report:
        title += f", in {out.plural(report['groups'], 'group')}"
    if without := report.get("empty_groups"):
        what = {"zero": "counted as 0", "one": "counted as 1"}
        what["skip"] = "left out; --empty zero counts them as 0"
        title += f", {without} of them without a positive row ({what.get(empty, empty)})"
    if "left_out" in report:
        left_out = ", ".join(find_measure(name).label for name in report["left_out"])
        title += f"\nleft out, as they go by ranks and need weights that are whole numbers: {left_out}"
    values, intervals = report["measures"], report.get("intervals", {})
    headers = ["measure", "value", "low", "high"] if intervals else ["measure", "value"]
    rows = [[find_measure(name).label, value, *intervals.get(name, ())] for name, value in values.items()]
    out.print_table(headers, rows, title)
    if intervals:
        drawn = "groups" if "groups" in report else "rows"
        if report["drawn"] == report.get("weight") and "groups" not in report:
            each = f"each drawn by itself: {report['weight']:.0f} in all"
            drawn += f"; a weight is a number of equal rows, {each}"
        typer.echo(f"low and high: {100 * report['confidence']:g}% bootstrap intervals over {drawn}")
    if "drift" in report:
        shown = list(report["drift"].items())[: _COLUMNS_SHOWN + 1]
        left = len(report["drift"]) - len(shown)
        more = f"; {out.plural(left, 'more column')} with less drift: --json" if left else ""
        out.print_table(
            ["drift of", "PSI"], [[name, f"{value:.3f}"] for name, value in shown], report["rule"] + more
        )
    if "best_cut" in report:
        cut = report["best_cut"]
        typer.echo(
            f"largest gain: {cut['gain']:.6g}, of a list of {cut['length']:.6g} rows with {cut['hits']:.6g} hits "
            f"(scores from {out.show(cut['score'])}); chosen on these rows: expect less of new ones"
            if cut["length"]
            else "largest gain: 0, of an empty list: at these costs no list of these rows gains anything"
        )
    if "max_grade" in report and any(name.startswith("err") for name in values):
        typer.echo(f"ERR takes {report['max_grade']:g} for the highest grade, as these rows do")
