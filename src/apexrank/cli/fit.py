"""``apexrank fit``: from a table to a model file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apexrank.cli.output import (
    note,
    print_json,
    print_table,
    refuse_overwriting,
    show,
    split_names,
    warnings_as_notes,
    working,
)
from apexrank.errors import InputError

if TYPE_CHECKING:
    from apexrank.io import Recipe, TableRanker
    from apexrank.io.judging import Judged
    from apexrank.io.tables import Table

_COLUMNS, _MODEL, _ENGINE = "Columns", "Model", "Larger than memory"
_SHOWN_OF_GROUPS = ("ndcg", "ndcg_at_10", "average_precision", "precision_at_5")
_SHOWN = ("auc", "partial_auc_0.1", "partial_auc_0.01", "precision_at_10", "tpr_at_fpr_0.01")


def fit(
    train: Annotated[
        Path,
        typer.Argument(
            help="Training table: CSV, Parquet or LETOR (.txt), or a folder of Parquet files.",
            show_default=False,
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            help="Column that says which rows are positive, or how relevant; LETOR files have one.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")] = Path("model.apex"),
    positive: Annotated[
        str | None,
        typer.Option(help="Its positive value; all others are negative.", rich_help_panel=_COLUMNS),
    ] = None,
    id: Annotated[
        str | None, typer.Option(help="Column that names the rows; not a feature.", rich_help_panel=_COLUMNS)
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(help="Column of groups; rows are ranked inside each.", rich_help_panel=_COLUMNS),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(help="Column of row weights; not a feature.", rich_help_panel=_COLUMNS)
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(help="Columns to use, such as a,b; all others by default.", rich_help_panel=_COLUMNS),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Columns to leave out, such as a,b.", rich_help_panel=_COLUMNS)
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to one-hot encode, or 'all' for every column of text.", rich_help_panel=_COLUMNS
        ),
    ] = None,
    impute: Annotated[
        str | None,
        typer.Option(help="Fill missing numbers with the column's median or mean.", rich_help_panel=_COLUMNS),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            help="Scaling of numbers: standard (mean 0, deviation 1), minmax (0 to 1, as in the papers), query "
            "(0 to 1 inside each group) or none; by default standard, for rankboost minmax.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="For two classes: push (P-Norm Push), ir (IR Push) or rankboost. For grades of relevance: "
            "retarget (monotone retargeting), pairs (P-Norm Push on pairs) or listwise (baselines by --loss).",
            rich_help_panel=_MODEL,
        ),
    ] = "push",
    p: Annotated[
        float | None,
        typer.Option(
            "-p",
            help="How hard to push at the top: 1 is the whole list, inf only the highest negative.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Weight of the penalty.", rich_help_panel=_MODEL)
    ] = None,
    l1_ratio: Annotated[
        float | None,
        typer.Option(
            help="Share of |w| in the penalty: 0 ridge, 1 lasso; above 0 gives exact zeros.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="Loss of a pair: exponential, logistic, hinge or squared_hinge; of listwise: listnet, "
            "rank_cosine, pointwise, ndcg_consistent or unknown_link.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    price: Annotated[
        str | None,
        typer.Option(
            help="Price of a negative's height: power, identity, exponential or log1p.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    side: Annotated[
        str | None, typer.Option(help="Where to push: top, bottom or both.", rich_help_panel=_MODEL)
    ] = None,
    divergence: Annotated[
        str | None,
        typer.Option(help="Of retarget: squared, kl, i-divergence, ....", rich_help_panel=_MODEL),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            help="Of retarget: hidden (equal grades in any order) or blocks (equal targets).",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    margin: Annotated[
        float | None, typer.Option(help="Of retarget: margin between the grades.", rich_help_panel=_MODEL)
    ] = None,
    offsets: Annotated[
        str | None,
        typer.Option(
            help="Of retarget: how margins add up over grades: linear, gain, sqrt or binary.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    max_iter: Annotated[int | None, typer.Option(help="Most iterations.", rich_help_panel=_MODEL)] = None,
    tol: Annotated[
        float | None, typer.Option(help="Stop at this gradient norm.", rich_help_panel=_MODEL)
    ] = None,
    cv: Annotated[
        bool,
        typer.Option(
            "--cv", help="Choose alpha, and p of push, by cross-validation.", rich_help_panel=_MODEL
        ),
    ] = False,
    folds: Annotated[
        int | None, typer.Option(help="Folds of --cv; 5 by default.", rich_help_panel=_MODEL)
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            help="What --cv maximises, such as partial_auc, precision_at_100, tpr_at_fpr_0.01; of grades ndcg.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Read the table in passes of some rows at a time: blocks (in one process; the default for a folder) "
            "or dask (processes that keep their rows in memory). For push, ir and retarget.",
            rich_help_panel=_ENGINE,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes of --engine dask; one per core by default.", rich_help_panel=_ENGINE),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="File that keeps what a long fit has found so far: the same command, given again after an "
            "interruption, goes on from it to the same model, bit for bit. Removed when the model is written.",
            show_default=False,
            rich_help_panel=_ENGINE,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Fit a ranker on a table and write it to a model file."""
    from apexrank.atomic import check_writable
    from apexrank.cli.models import build_estimator, get_model
    from apexrank.io import Recipe, read_table, save_model
    from apexrank.io.tables import files_of

    refuse_overwriting(check_writable(output), train, *files_of(train))
    if checkpoint is not None:
        refuse_overwriting(check_writable(checkpoint), output, train, *files_of(train))
    options = {
        "p": p,
        "alpha": alpha,
        "l1_ratio": l1_ratio,
        "loss": loss,
        "price": price,
        "side": side,
        "divergence": divergence,
        "order": order,
        "margin": margin,
        "offsets": offsets,
        "max_iter": max_iter,
        "tol": tol,
        "folds": folds,
        "scoring": scoring,
    }
    estimator = build_estimator(model, cv=cv, **options)
    in_blocks = engine is not None or workers is not None or train.is_dir()
    table = None if in_blocks else read_table(train)
    roles = {} if table is None else table.roles
    target = target or roles.get("target")
    if target is None:
        raise InputError(f"{train} does not say which column is the target: name it with --target")
    recipe = Recipe(
        target=target,
        positive=positive,
        graded=get_model(model).graded,
        id=id or roles.get("id"),
        groups=groups or roles.get("groups"),
        weight=weight,
        features=split_names(features),
        drop=split_names(drop),
        categorical=split_names(categorical),
        impute=impute,
        scale=scale or get_model(model).scale,
    )
    if recipe.graded and positive is not None:
        raise InputError(
            f"--model {model} takes grades of relevance: leave out --positive, or use --model push"
        )
    with _kept(checkpoint, f"{model} {cv} {options} {recipe} {engine or in_blocks * 'blocks'}"):
        if table is None:
            from apexrank.cli.fit_blocks import fit_by_engine

            with working(f"fitting {train}"), warnings_as_notes():
                ranker, judged = fit_by_engine(train, recipe, estimator, engine or "blocks", workers)
        else:
            ranker, judged = _fit_in_memory(table, recipe, estimator)
        save_model(output, ranker)
    report = _report(ranker, judged, output) | _chosen(estimator, scoring)
    if json:
        print_json(report)
    else:
        _print(report, ranker, str(train))


@contextmanager
def _kept(path: Path | None, about: str) -> Iterator[None]:
    """A checkpoint where one is wanted."""
    from apexrank.checkpoints import checkpoint

    if path is None:
        yield
        return
    with checkpoint(path, about) as journal:
        if journal.resumed:
            note(f"going on from {path}, with what {journal.resumed} passes over the rows had found")
        yield


def _fit_in_memory(table: Table, recipe: Recipe, estimator: Any) -> tuple[TableRanker, Judged]:
    from apexrank.io.table_ranker import fit_table

    with working(f"fitting {len(table)} rows"), warnings_as_notes():
        return fit_table(table, recipe, estimator)


def _chosen(estimator: Any, scoring: str | None) -> dict[str, Any]:
    """What cross-validation found; nothing when there was none."""
    if not hasattr(estimator, "best_score_"):
        return {}
    graded = hasattr(estimator, "param_grid")
    scoring = scoring or ("ndcg" if graded else estimator.scoring)
    chosen = "alpha" if graded else "p and alpha"
    return {"cv": {"chosen": chosen, "scoring": scoring, "score": float(estimator.best_score_)}}


def _report(ranker: TableRanker, judged: Judged, output: Path) -> dict[str, Any]:
    from apexrank.io.judging import top_measures

    features = ranker.encoder.features
    coefficients = dict(zip(features, ranker.coef.tolist(), strict=True))
    return {
        "model": str(output),
        "estimator": type(ranker.estimator).__name__,
        "params": {k: "inf" if v == math.inf else v for k, v in ranker.estimator.get_params().items()},
        "target": ranker.target,
        "positive": ranker.positive,
        "features": len(features),
        **ranker.training,
        "measures": top_measures(judged.y, judged.scores, judged.groups, judged.weight),
        "coefficients": coefficients,
    }


def _print(report: dict[str, Any], ranker: TableRanker, source: str) -> None:
    meaning = (
        f"above 0 in {ranker.target}" if ranker.positive is None else f"{ranker.target} = {ranker.positive}"
    )
    typer.echo(
        f"{source}: {report['rows']} rows, {report['positives']} of them positive ({meaning}), "
        f"{report['features']} features ({report['scale']} scaling)"
    )
    if "cv" in report:
        typer.echo("{chosen} chosen by cross-validation: {scoring} {score:.3f}".format_map(report["cv"]))
    typer.echo(_sentence(report))
    _print_measures(report["measures"])
    _print_coefficients(report["coefficients"])
    typer.echo(f"written: {report['model']}")


def _sentence(report: dict[str, Any]) -> str:
    params = report["params"]
    # Only the power price has a p.
    names = ["p" if params.get("price") == "power" else "price", "divergence", "margin", "alpha"]
    names = ["loss", "alpha"] if report["estimator"] == "ListwiseRanker" else names
    shown = ", ".join(f"{name}={show(params[name])}" for name in names if name in params)
    state = "converged" if report["converged"] else "stopped"
    gap = report["dual_gap"]
    certificate = "" if gap is None or gap != gap else f", duality gap {gap:.1e}"
    return (
        f"{report['estimator']}({shown}): {state} after {report['n_iter']} iterations, "
        f"gradient norm {report['grad_norm']:.1e}{certificate}"
    )


def _print_measures(measures: dict[str, float]) -> None:
    from apexrank.io.judging import label

    shown = [key for key in (_SHOWN_OF_GROUPS if "ndcg" in measures else _SHOWN) if key in measures]
    typer.echo("on the training rows: " + ", ".join(f"{label(key)} {measures[key]:.3f}" for key in shown))


def _print_coefficients(coefficients: dict[str, float], n: int = 8) -> None:
    largest = sorted(coefficients.items(), key=lambda item: -abs(item[1]))[:n]
    title = (
        "coefficients" if len(coefficients) <= n else f"the {n} largest of {len(coefficients)} coefficients"
    )
    print_table(["feature", title], [[name, f"{value:+.3g}"] for name, value in largest])
