"""``apexrank evaluate``: how good a model's list is on rows whose answer is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from apexrank.cli.output import note, print_json, print_table
from apexrank.cli.pictures import check_picture, save_roc
from apexrank.errors import InputError


def evaluate(
    model: Annotated[Path, typer.Argument(help="Model file, written by 'apexrank fit'.", show_default=False)],
    test: Annotated[Path, typer.Argument(help="Table of rows with the target.", show_default=False)],
    target: Annotated[str | None, typer.Option(help="Target column; default: the model's.")] = None,
    positive: Annotated[str | None, typer.Option(help="Its positive value; default: the model's.")] = None,
    roc: Annotated[
        Path | None, typer.Option(help="Picture of the ROC curve to write: .png, .svg or .pdf.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure the top of a model's list on rows whose answer is known."""
    from apexrank.io import load_model, read_table
    from apexrank.io.labels import labels, positive_value
    from apexrank.io.measures import LABELS, top_measures

    if roc is not None:
        check_picture(roc)
    ranker = load_model(model)
    if roc is not None and ranker.groups is not None:
        raise InputError("--roc draws one list, but the model ranks inside groups: leave it out")
    table = read_table(test)
    target = target or ranker.target
    y = labels(table, target, positive_value(table, target, positive or ranker.positive))
    scores = ranker.score(table)
    measures = top_measures(y, scores, ranker.group_ids(table))
    for sentence in ranker.check(table, known=[target]):
        note(sentence)
    if roc is not None:
        save_roc({str(model): scores}, y, roc)
    if json:
        print_json({"rows": len(y), "positives": int(y.sum()), "measures": measures})
        return
    title = f"{test}: {len(y)} rows, {y.sum()} of them positive"
    print_table(["measure", "value"], [[LABELS[key], value] for key, value in measures.items()], title)
