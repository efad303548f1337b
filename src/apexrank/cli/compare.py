"""``apexrank compare``: which ranker puts the most positives on top of the list."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import apexrank
from apexrank import io
from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import unknown

if TYPE_CHECKING:
    from apexrank.comparison import Candidate, Comparison

_compare, _engine = opt.panel("Comparison"), opt.panel("Larger than memory")
RANKERS = {
    "logistic": "logistic regression",
    "push": "linear push",
    "curves": "curves",
    "curves-and-trees": "curves and trees",
    "trees": "boosted trees",
}


@dataclass(frozen=True)
class CompareOptions:
    """Options of the comparison."""

    models: list[str] | None = _compare(f"Rankers to compare: {', '.join(RANKERS)} (default: all).")
    top: str | None = _compare(
        "Length of the top of the list: a number of rows such as 100, for a list as long as this table, or a share "
        "such as 1% (default: the number of positive rows, but 1 to 10% and at least 50 rows).",
        metavar="N|N%",
    )
    fpr: float | None = _compare("Instead of --top: share of positives found at this false positive rate.")
    p: str | None = _compare("Values of p to choose from for the linear push (default: 1,4,16,64).")
    test: Path | None = _compare("Table to measure on (default: repeated cross-validation on the rows).")
    group_split: str | None = _compare(
        "Column such as a customer, whose rows stay on one side of a split; not used as a feature."
    )
    time: str | None = _compare(
        "Column of times: train on the past, test on the future; not used as a feature."
    )
    folds: int = _compare("Number of cross-validation folds.", min=2, default=5)
    repeats: int | None = _compare(
        "Repetitions of the cross-validation (default: 5; 3 or 2 for many rows).", min=1
    )
    confidence: float = _compare("Confidence level of the intervals.", default=0.95)
    seed: int = _compare(
        "Random seed for the folds and for sampling rows of a large table.", min=0, default=0
    )
    engine: str | None = _engine(
        "blocks samples 100,000 rows of a table larger than memory (default for a folder).",
        choices=("blocks",),
    )

    def candidates(self) -> list[Candidate] | None:
        """Return the rankers to compare, None for the default."""
        from apexrank.comparison.candidates import LinearPush, default_candidates

        if self.models is None and self.p is None:
            return None
        known = {candidate.name: candidate for candidate in default_candidates()}
        if self.p is not None:
            ps = opt.split_powers(self.p, "1,4,16")
            for p in ps:
                opt.refuse(not p >= 1, f"-p takes numbers of at least 1, got {p:g}")
            known["linear push"] = LinearPush(ps=tuple(sorted(ps)))
        names = opt.split_names(self.models) or [*RANKERS]
        for name in names:
            if name not in RANKERS:
                raise unknown("--models", name, [*RANKERS], "some of")
        return [known[full] for name, full in RANKERS.items() if name in names]

    def read(self, path: Path, reading: opt.CsvOptions) -> tuple[io.Table, str | None]:
        """Read a table, or sample rows of one larger than memory; also return a sentence about the sampling, if any."""
        from apexrank.comparison.compare import MOST_ROWS, drawn_note
        from apexrank.io.stream import sample_table

        if self.engine is None and not path.is_dir():
            return reading.read_table(path, index="index"), None
        reading.refuse(True, "--engine and folders need plain UTF-8 files")
        table, total = sample_table(path, MOST_ROWS, self.seed)
        return table, drawn_note(len(table), total)


@opt.option_groups
def compare(
    train: Annotated[Path, opt.argument("Labelled table: CSV, Parquet, or a folder of Parquet files.")],
    *,
    target: Annotated[
        str,
        typer.Option(metavar="TEXT", help="Target column: the class of each row.", show_default=False),
    ],
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Model file to write: the recommended ranker, fitted on all rows.",
            show_default=False,
        ),
    ] = None,
    page: opt.ReportOptions,
    columns: opt.FeatureColumns,
    options: CompareOptions,
    reading: opt.CsvOptions,
    json: opt.Json = False,
) -> None:
    """Compare rankers by the number of positives they put on top, on held-out rows."""
    out.check_report(page.report, train, options.test, save)
    out.check_file(save, train, options.test)
    out.check_inputs(train, options.test)
    from apexrank.comparison import compare_table
    from apexrank.comparison.compare import Options

    chosen = {name: getattr(options, name) for name in ("top", "fpr", "folds", "repeats", "confidence")}
    chosen |= {"candidates": options.candidates(), "random_state": options.seed}
    Options(**chosen).checked()
    table, drawn = options.read(train, reading)
    other, also = (None, None) if options.test is None else options.read(options.test, reading)
    given = {"target": target, "id": columns.id or table.roles.get("id")}
    given["scale"] = columns.scale or "standard"
    recipe = io.Recipe(**columns.arguments(table.names) | given)
    with out.working(f"comparing rankers on {len(table):,} rows") as status:
        found = compare_table(
            table,
            recipe,
            test_table=other,
            group_split=options.group_split,
            time=options.time,
            tell=None if json else out.note if status is None else status.note,
            progress=None if status is None else lambda done, total, what: status.update(what, done, total),
            **chosen,
        )
    told = [(drawn, f"{drawn}; the model learns from these"), (also, f"test rows: {also}")]
    notes = [*(sentence for some, sentence in told if some), *found.notes]
    found = replace(
        found,
        notes=[*map(out.in_options, notes)],
        caveats=tuple(map(out.in_options, found.caveats)),
        left_out=[(name, out.in_options(reason)) for name, reason in found.left_out],
    )
    if reading.strict:
        reading.note(*found.notes)
    if save is not None:
        apexrank.save(found.model, save)
    if page.report is not None:
        apexrank.report.build(found, page.report, title=page.title or f"Which ranker? {train.name}")
    apart = [name for name in (options.group_split, options.time) if name is not None]
    recipe = replace(recipe, drop=[*recipe.drop, *(name for name in apart if name not in recipe.drop)])
    command: str | None = fit_command(train, recipe, found, engine=options.engine, **reading.given())
    if (options.engine or train.is_dir()) and found.names[found.recommended] != RANKERS["push"]:
        command = None  # only the linear push can be fitted in blocks
    elif save is not None:
        command = f"{command} -o {shlex.quote(str(save))}"
    if json:
        out.print_json({**found.to_dict(), "fit": command, "report": page.report, "model": save})
        return
    _print(found, train, options.test)
    if command is not None:
        typer.echo(f"{'the same model' if drawn is None else 'a model of all rows'}: {command}")
    for path in (save, page.report):
        out.print_written(path)


def fit_command(train: Path, recipe: io.Recipe, found: Comparison, **more: Any) -> str:
    """Return the ``fit`` command for the recommended model; ``more`` are options for reading the table."""
    best = found.recommended
    recipe = recipe.of_columns if found.candidates[best].takes_columns else recipe
    short = {full: name for name, full in RANKERS.items()}.get(found.names[best], found.names[best])
    names = ("target", "positive", "id", "weight", "impute", "scale", "features", "drop", "categorical")
    options = {name: getattr(recipe, name) for name in names} | more
    options |= {"scale": None} if recipe.scale == "standard" else {}
    options |= {"model": short, **found.settings[best]}
    return shlex.join(["apexrank", "fit", str(train), *opt.as_words(options)])


def _print(found: Comparison, train: Path, test: Path | None) -> None:
    from apexrank.comparison.result import in_words

    features = out.plural(len(found.feature_names), "feature")
    meaning = f" ({found.positive})" * bool(found.positive)
    tested = f"{len(found.y):,} rows, {found.n_positives:,} of them positive{meaning}"
    if test is not None:
        typer.echo(f"{train}: {found.n_train:,} rows, {features}; tested on {test}: {tested}")
    else:
        typer.echo(f"{train}: {found.how}, in all on {tested}; {features}")
    rows = []
    for i, name in enumerate(found.names):
        shown = ["", ""]
        if i != found.base:
            gap = found.difference(i, found.base)
            shown = [f"{gap.value:+.3f}", f"{gap.low:+.3f} to {gap.high:+.3f}"]
        top, *others = (f"{found.value(i, m).value:.3f}" for m in ("top", "average_precision", "auc"))
        marked = f"{name}{' *' if i == found.recommended else ''}"
        rows.append([marked, top, *shown, *others, in_words(found.settings[i]).strip(" ()")])
    against = f"difference to {found.names[found.base]}"
    headers = ["ranker", found.top.label, against, "its interval", "avg. precision", "AUC", "chosen"]
    out.print_table(headers, rows)
    typer.echo(
        "* recommended: the simplest ranker that is not clearly worse than the best one, at the top or by average "
        "precision"
    )
    out.note(*found.notes)
    verdict = found.verdict
    new = [caveat for caveat in verdict.caveats if caveat not in found.notes]
    for sentence in (verdict.text, verdict.costs, *new):
        typer.echo(sentence)
    if found.left_out:
        left = out.plural(len(found.left_out), "column")
        reasons = "; ".join(f"{name!r} ({reason})" for name, reason in found.left_out[:5])
        typer.echo(f"{left} left out: {reasons}{'; …' * (len(found.left_out) > 5)}")
