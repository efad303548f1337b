"""``apexrank demo``: the effect of a push on the top of a list, on synthetic data."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

import apexrank
from apexrank import io
from apexrank.cli.options import Json
from apexrank.cli.output import (
    draw_without_screen,
    note,
    prepare_folder,
    print_json,
    print_table,
    save_figure,
    working,
)
from apexrank.errors import MissingExtraError

POWERS = (1, 2, 4, 8, 16)
_SHOWN = {
    "auc": "AUC",
    "partial_auc_0.01": "partial AUC 1%",
    "precision_at_10": "precision at 10",
    "precision_at_50": "precision at 50",
    "tpr_at_fpr_0.01": "TPR at 1% FPR",
    "r_max": "R_max",
}
_NEXT = (
    "apexrank compare {train.csv} --test {new.csv} --target fraud --id case --top 50 --report {report.html}",
    "apexrank fit {train.csv} --target fraud --id case -p 16 -o {model.apex}",
    "apexrank rank {model.apex} {new.csv} --top 10 --explain -o {top.csv}",
    "apexrank evaluate {model.apex} {new.csv}",
)


def demo(
    out: Annotated[
        Path, typer.Option(metavar="PATH", help="Folder for the picture and the sample tables.")
    ] = Path("demo"),
    json: Json = False,
) -> None:
    """Show the effect of the push on synthetic card payments."""
    from apexrank import PNormPush
    from apexrank.io.judge import judge_table
    from apexrank.metrics import evaluate

    names = ("train.csv", "new.csv", "precision.png", "report.html")
    files = [out / name for name in names]
    prepare_folder(out, *names)
    train, new = _tables()
    with working("fitting p = " + ", ".join(map(str, POWERS))):
        recipe = io.Recipe(target="fraud", id="case")
        rankers = {p: io.TableRanker.fit(train, recipe, PNormPush(p=float(p))) for p in POWERS}
    judged = {p: judge_table(ranker, new) for p, ranker in rankers.items()}
    rows = {p: evaluate(found.y, found.scores, _SHOWN) for p, found in judged.items()}
    for table, path in zip((train, new), files[:2], strict=True):
        io.write_table(table.frame, path)
    for path, make in zip(files[2:], (_picture, _report), strict=True):
        try:
            make(train, new, judged, path)
        except MissingExtraError as error:
            files.remove(path)
            note(f"no {path.name}: {error}")

    def at(found: re.Match[str]) -> str:
        return shlex.quote(str(out / found[1]))

    commands = [re.sub("{(.*?)}", at, command) for command in _NEXT]
    if json:
        shown = [{"p": p, **measures} for p, measures in rows.items()]
        print_json({"table": shown, "files": files, "next": commands})
        return
    typer.echo(
        f"Card payments, one in ten a fraud: fitted on {len(train)}, measured on {len(new)} others.\n"
        "p = 1 gives most to the whole list (AUC), a larger p to its top."
    )
    print_table(["p", *_SHOWN.values()], [[p, *measures.values()] for p, measures in rows.items()])
    first, last = rows[POWERS[0]], rows[POWERS[-1]]
    frauds = [round(50 * row["precision_at_50"]) for row in (first, last)]
    typer.echo(
        f"Of the first 50 payments {frauds[0]} are frauds with p = {POWERS[0]} "
        f"and {frauds[1]} with p = {POWERS[-1]}; the AUC goes from {first['auc']:.3f} to {last['auc']:.3f}."
    )
    typer.echo("written: " + ", ".join(map(str, files)))
    typer.echo("next:\n" + "\n".join(f"  {command}" for command in commands))


def _tables() -> tuple[io.Table, io.Table]:
    """Generate card payments: one half to train on, the other to rank."""
    import polars as pl

    example = apexrank.datasets.make_push_example(n_samples=4000, random_state=0)
    features = {name: example.data[:, j].round(3) for j, name in enumerate(example.feature_names)}
    cases = [f"C{number:04d}" for number in range(len(example.target))]
    frame = pl.DataFrame({"case": cases, **features, "fraud": example.target})
    half = len(frame) // 2
    return io.Table(frame[:half], "train.csv"), io.Table(frame[half:], "new.csv")


def _picture(train: io.Table, new: io.Table, judged: dict[int, Any], path: Path) -> None:
    draw_without_screen()
    from apexrank.metrics import evaluate
    from apexrank.plot.style import legend, light, line_style, one_axes

    figure, ax = one_axes(None, (6.4, 4.2))
    depths = range(1, 101)
    for number, p in enumerate((POWERS[0], POWERS[-1])):
        precision = evaluate(judged[p].y, judged[p].scores, [f"precision_at_{k}" for k in depths])
        ax.plot(depths, list(precision.values()), label=f"p = {p}", markevery=5, **line_style(number))
    ax.set(xlabel="k, rows from the top", ylabel="Precision at k")
    light(ax)
    legend(ax)
    save_figure(figure, path)


def _report(train: io.Table, new: io.Table, judged: dict[int, Any], path: Path) -> None:
    from apexrank.comparison import LinearPush, Logistic, Trees, compare_table
    from apexrank.report.page import check_extra

    check_extra()
    with working("comparing rankers"):
        recipe, rankers = io.Recipe(target="fraud", id="case"), [Logistic(), LinearPush(), Trees()]
        comparison = compare_table(train, recipe, test_table=new, top=50, candidates=rankers, repeats=1)
    apexrank.report.build(comparison, path, title="Which ranker? Simulated card payments")
