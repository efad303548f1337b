"""``apexrank demo``: what a push does to the top of a list, on bundled data."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apexrank.cli.output import note, print_json, print_table, working
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
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show on made-up card payments how a push clears the top of the list."""
    from apexrank.cli.pictures import prepare_folder

    prepare_folder(out, "train.csv", "new.csv", "roc-top.png", "report.html")
    train, new = _tables()
    with working("fitting p = " + ", ".join(map(str, POWERS))):
        rankers = {p: _fit(train, p) for p in POWERS}
    rows = {p: _measure(ranker, new) for p, ranker in rankers.items()}
    files = _write(out, train, new, rankers)
    if json:
        table = [{"p": p, **measures} for p, measures in rows.items()]
        print_json({"table": table, "files": list(map(str, files)), "next": _next(out)})
        return
    _print(rows, len(train), len(new), files, out)


def _tables() -> tuple[Table, Table]:
    """Card payments: one half to train on, the other with known answers to rank."""
    import polars as pl

    from apexrank.datasets import make_push_example
    from apexrank.io import Table

    example = make_push_example(n_samples=4000, random_state=0)
    features = {name: example.data[:, j].round(3) for j, name in enumerate(example.feature_names)}
    cases = [f"C{number:04d}" for number in range(len(example.target))]
    frame = pl.DataFrame({"case": cases, **features, "fraud": example.target})
    half = len(frame) // 2
    return Table(frame[:half], "train.csv"), Table(frame[half:], "new.csv")


def _fit(train: Table, p: float) -> TableRanker:
    from apexrank import PNormPush
    from apexrank.io import Recipe, TableRanker

    return TableRanker.fit(train, Recipe(target="fraud", id="case"), PNormPush(p=float(p)))


def _measure(ranker: TableRanker, new: Table) -> dict[str, float]:
    from apexrank.io.judging import judge_table, top_measures

    judged = judge_table(ranker, new)
    measures = top_measures(judged.y, judged.scores, judged.groups)
    return {key: measures[key] for key in _SHOWN}


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
    from apexrank.cli.pictures import save_roc
    from apexrank.io.columns import labels

    scores = {f"p = {p}": ranker.score(new) for p, ranker in rankers.items()}
    save_roc(scores, labels(new, "fraud", "1"), path)


def _report(train: Table, new: Table, rankers: dict[int, TableRanker], path: Path) -> None:
    from apexrank.report import build, compare_table
    from apexrank.report.page import check_extra

    check_extra()
    with working("comparing pushes"):
        comparison = compare_table(train, test_table=new, target="fraud", id="case", ps=tuple(rankers))
    build(comparison, path, title="Does a push help? Made-up card payments")


def _next(out: Path) -> list[str]:
    """Commands to try on the files just written."""
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
    typer.echo(_conclusion(rows[POWERS[0]], rows[POWERS[-1]]))
    typer.echo("written: " + ", ".join(map(str, files)))
    typer.echo("next:\n" + "\n".join(f"  {command}" for command in _next(out)))


def _conclusion(first: dict[str, float], last: dict[str, float]) -> str:
    found = [round(50 * row["precision_at_50"]) for row in (first, last)]
    return (
        f"Of the first 50 payments {found[0]} are frauds with p = {POWERS[0]} "
        f"and {found[1]} with p = {POWERS[-1]}; the AUC goes from {first['auc']:.3f} to {last['auc']:.3f}."
    )
