"""``apexrank demo``: the effect of a push on the top of a list, on synthetic data."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apexrank.cli.options import Json
from apexrank.cli.output import note, prepare_folder, print_json, print_table, save_roc, working
from apexrank.errors import MissingExtraError

if TYPE_CHECKING:
    from apexrank.io import Table, TableRanker

POWERS = (1, 2, 4, 8, 16)
_SHOWN = {
    "auc": "AUC",
    "partial_auc_0.01": "partial AUC 1%",
    "precision_at_10": "precision at 10",
    "precision_at_50": "precision at 50",
    "tpr_at_fpr_0.01": "TPR at 1% FPR",
    "r_max": "R_max",
}


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture and the sample tables.")] = Path("demo"),
    json: Json = False,
) -> None:
    """Show on made-up card payments how a push clears the top of the list."""
    from apexrank import PNormPush
    from apexrank.io import Recipe, TableRanker
    from apexrank.io.judging import judge_table, top_measures

    prepare_folder(out, "train.csv", "new.csv", "roc-top.png", "report.html")
    train, new = _tables()
    with working("fitting p = " + ", ".join(map(str, POWERS))):
        recipe = Recipe(target="fraud", id="case")
        rankers = {p: TableRanker.fit(train, recipe, PNormPush(p=float(p))) for p in POWERS}
    rows = {}
    for p, ranker in rankers.items():
        judged = judge_table(ranker, new)
        measures = top_measures(judged.y, judged.scores)
        rows[p] = {key: measures[key] for key in _SHOWN}
    files = _write(out, train, new, rankers)
    if json:
        table = [{"p": p, **measures} for p, measures in rows.items()]
        print_json({"table": table, "files": files, "next": _next(out)})
        return
    _print(rows, len(train), len(new), files, out)


def _tables() -> tuple[Table, Table]:
    """Generate card payments: one half to train on, the other to rank."""
    import polars as pl

    from apexrank.datasets import make_push_example
    from apexrank.io import Table

    example = make_push_example(n_samples=4000, random_state=0)
    features = {name: example.data[:, j].round(3) for j, name in enumerate(example.feature_names)}
    cases = [f"C{number:04d}" for number in range(len(example.target))]
    frame = pl.DataFrame({"case": cases, **features, "fraud": example.target})
    half = len(frame) // 2
    return Table(frame[:half], "train.csv"), Table(frame[half:], "new.csv")


def _write(out: Path, train: Table, new: Table, rankers: dict[int, TableRanker]) -> list[Path]:
    """Write the tables, and the picture and the report where what they need is installed."""
    from apexrank.io import write_table

    files = [out / "train.csv", out / "new.csv"]
    for table, path in zip((train, new), files, strict=True):
        write_table(table.frame, path)
    for name, make in (("roc-top.png", _picture), ("report.html", _report)):
        try:
            make(train, new, rankers, out / name)
            files.append(out / name)
        except MissingExtraError as error:
            note(f"no {name}: {error}")
    return files


def _picture(train: Table, new: Table, rankers: dict[int, TableRanker], path: Path) -> None:
    from apexrank.io.columns import read_target

    scores = {f"p = {p}": ranker.score(new) for p, ranker in rankers.items()}
    save_roc(scores, read_target(new, "fraud", "1")[0], path)


def _report(train: Table, new: Table, rankers: dict[int, TableRanker], path: Path) -> None:
    from apexrank.report import build, compare_table
    from apexrank.report.page import check_extra

    check_extra()
    with working("comparing pushes"):
        comparison = compare_table(train, test_table=new, target="fraud", id="case", ps=tuple(rankers))
    build(comparison, path, title="Does a push help? Made-up card payments")


def _next(out: Path) -> list[str]:
    """Return commands to try on the files just written."""
    path = {
        name: shlex.quote(str(out / name))
        for name in ("train.csv", "new.csv", "report.html", "model.apex", "top.csv")
    }
    return [
        f"apexrank compare {path['train.csv']} --test {path['new.csv']} --target fraud --id case "
        f"--report {path['report.html']}",
        f"apexrank fit {path['train.csv']} --target fraud --id case -p 16 -o {path['model.apex']}",
        f"apexrank rank {path['model.apex']} {path['new.csv']} --top 10 --explain -o {path['top.csv']}",
        f"apexrank evaluate {path['model.apex']} {path['new.csv']}",
    ]


def _print(rows: dict[int, dict[str, float]], n_train: int, n_new: int, files: list[Path], out: Path) -> None:
    typer.echo(
        f"Card payments, one in ten a fraud: fitted on {n_train}, measured on {n_new} others.\n"
        "p = 1 gives most to the whole list (AUC), a larger p to its top."
    )
    print_table(["p", *_SHOWN.values()], [[p, *measures.values()] for p, measures in rows.items()])
    first, last = rows[POWERS[0]], rows[POWERS[-1]]
    found = [round(50 * row["precision_at_50"]) for row in (first, last)]
    typer.echo(
        f"Of the first 50 payments {found[0]} are frauds with p = {POWERS[0]} "
        f"and {found[1]} with p = {POWERS[-1]}; the AUC goes from {first['auc']:.3f} to {last['auc']:.3f}."
    )
    typer.echo("written: " + ", ".join(map(str, files)))
    typer.echo("next:\n" + "\n".join(f"  {command}" for command in _next(out)))
