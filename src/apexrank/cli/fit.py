"""``apexrank fit``: from a table to a model file."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from apexrank.io import Recipe, TableRanker
    from apexrank.io.judging import Judged
    from apexrank.io.tables import Table

_model, _engine = opt.panel("Model"), opt.panel("Larger than memory")
_COEFFICIENTS_SHOWN = 8
_SHOWN_OF_GROUPS = ("ndcg", "ndcg_at_10", "average_precision", "precision_at_5")
_SHOWN = ("auc", "partial_auc_0.1", "partial_auc_0.01", "precision_at_10", "tpr_at_fpr_0.01")


class Model(NamedTuple):
    """A model of ``fit``: its class, its default scaling, and parameters of other names.

    ``graded`` models learn from grades of relevance, the others from two classes.
    """

    estimator: str
    scale: str = "standard"
    renamed: Mapping[str, str] = {}
    graded: bool = False


MODELS = {
    "push": Model("PNormPush"),
    "ir": Model("IRPush"),
    # Coordinate descent depends on the features' units; the papers have them from 0 to 1.
    "rankboost": Model("RankBoost", "minmax", {"max_iter": "t_max"}),
    "retarget": Model("MonotoneRetargeting", graded=True),
    "listwise": Model("ListwiseRanker", graded=True),
    "pairs": Model("CrucialPairsPush", graded=True),
}
ALPHAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
ENGINES = ("blocks", "dask")


@dataclass(frozen=True)
class ModelOptions:
    """The estimator, its parameters, and its cross-validation."""

    model: str = _model(
        "For two classes: push (P-Norm Push), ir (IR Push) or rankboost. For grades of relevance: "
        "retarget (monotone retargeting), pairs (P-Norm Push on pairs) or listwise (baselines by --loss).",
        default="push",
    )
    cv: bool = _model("Choose alpha, and p of push, by cross-validation.", "--cv", default=False)
    p: float | None = _model(
        "How hard to push at the top: 1 is the whole list, inf only the highest negative.", "-p"
    )
    alpha: float | None = _model("Weight of the penalty.")
    l1_ratio: float | None = _model(
        "Share of |w| in the penalty: 0 ridge, 1 lasso; above 0 gives exact zeros."
    )
    loss: str | None = _model(
        "Loss of a pair: exponential, logistic, hinge or squared_hinge; of listwise: listnet, rank_cosine, "
        "pointwise, ndcg_consistent or unknown_link."
    )
    price: str | None = _model("Price of a negative's height: power, identity, exponential or log1p.")
    side: str | None = _model("Where to push: top, bottom or both.")
    divergence: str | None = _model("Of retarget: squared, kl, i-divergence, ....")
    order: str | None = _model("Of retarget: hidden (equal grades in any order) or blocks (equal targets).")
    margin: float | None = _model("Of retarget: margin between the grades.")
    offsets: str | None = _model("Of retarget: how margins add up over grades: linear, gain, sqrt or binary.")
    max_iter: int | None = _model("Most iterations.")
    tol: float | None = _model("Stop at this gradient norm.")
    folds: int | None = _model("Folds of --cv; 5 by default.")
    scoring: str | None = _model(
        "What --cv maximises, such as partial_auc, precision_at_100, tpr_at_fpr_0.01; of grades ndcg."
    )


@dataclass(frozen=True)
class FitColumns(opt.FeatureColumns):
    """Columns, and what is done with their values."""

    target: str | None = opt.plain(
        "Column that says which rows are positive, or how relevant; LETOR files have one.", show_default=False
    )
    groups: str | None = opt.column("Column of groups; rows are ranked inside each.")
    categorical: list[str] | None = opt.column(
        "Columns to one-hot encode, or 'all' for every column of text."
    )
    impute: str | None = opt.column("Fill missing numbers with the column's median or mean.")
    scale: str | None = opt.column(
        "Scaling of numbers: standard (mean 0, deviation 1), minmax (0 to 1, as in the papers), query "
        "(0 to 1 inside each group) or none; by default standard, for rankboost minmax."
    )


@dataclass(frozen=True)
class EngineOptions:
    """How tables larger than memory are fitted."""

    engine: str | None = _engine(
        "Read the table in passes of some rows at a time: blocks (in one process; the default for a folder) "
        "or dask (processes that keep their rows in memory). For linear models."
    )
    workers: int | None = _engine("Processes of --engine dask; one per core by default.")
    checkpoint: Path | None = _engine(
        "File that keeps what a long fit has found so far: the same command, given again after an "
        "interruption, goes on from it to the same model, bit for bit. Removed when the model is written.",
        show_default=False,
    )


@opt.option_groups
def fit(
    train: Annotated[
        Path, opt.argument("Training table: CSV, Parquet or LETOR (.txt), or a folder of Parquet files.")
    ],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")] = Path("model.apex"),
    columns: FitColumns,
    options: ModelOptions,
    engine: EngineOptions,
    json: opt.Json = False,
) -> None:
    """Fit a ranker on a table and write it to a model file."""
    from apexrank.io import Recipe, read_table, save_model
    from apexrank.io.tables import files_of

    out.check_file(output, train, *files_of(train))
    out.check_file(engine.checkpoint, output, train, *files_of(train))
    given = opt.given_options(options)
    name, cv = given.pop("model"), given.pop("cv")
    estimator = build_estimator(name, cv=cv, **given)
    in_blocks = engine.engine is not None or engine.workers is not None or train.is_dir()
    table = None if in_blocks else read_table(train)
    roles = {} if table is None else table.roles
    target = columns.target or roles.get("target")
    if target is None:
        raise InputError(f"{train} does not say which column is the target: name it with --target")
    model = MODELS[name]
    recipe = Recipe(
        target=target,
        graded=model.graded,
        groups=columns.groups or roles.get("groups"),
        categorical=opt.split_names(columns.categorical),
        impute=columns.impute,
        scale=columns.scale or model.scale,
        **columns.arguments(() if table is None else table.names) | {"id": columns.id or roles.get("id")},
    )
    if recipe.graded and recipe.positive is not None:
        raise InputError(
            f"--model {name} takes grades of relevance: leave out --positive, or use --model push"
        )
    with _checkpoint(engine.checkpoint, f"{options} {recipe} {engine.engine or in_blocks * 'blocks'}"):
        if table is None:
            with out.working(f"fitting {train}"), out.warnings_as_notes():
                ranker, judged = _fit_by_engine(train, recipe, estimator, engine)
        else:
            ranker, judged = _fit_in_memory(table, recipe, estimator)
        save_model(output, ranker)
    report = _report(ranker, judged, output) | _chosen(estimator, options.scoring)
    if json:
        out.print_json(report)
    else:
        _print(report, ranker, str(train))


def build_estimator(name: str, *, cv: bool, **given: Any) -> Any:
    """Build the unfitted estimator of a model with the options that were given.

    Raises
    ------
    InputError
        When the model is unknown or has no such option.
    """
    if name not in MODELS:
        raise InputError(f"unknown model {name!r}: use one of {', '.join(MODELS)}")
    model = MODELS[name]
    if "p" in given and given.get("price", "power") != "power":
        raise InputError(f"--price {given['price']} has no -p: leave out one of them")
    if not cv:
        return _make(model, given, f"--model {name}")
    if name != "push" and not model.graded:
        raise InputError(f"--cv chooses p and alpha of --model push, not of --model {name}")
    for option in ("alpha",) if model.graded else ("p", "alpha"):
        if option in given:
            raise InputError(f"--cv chooses {option}: leave out either --cv or {opt.flag(option)}")
    if model.graded:
        return _search_alpha(model, given, name)
    return _make(Model("PNormPushCV", renamed={"folds": "cv"}), given, "--cv")


def _search_alpha(model: Model, given: dict[str, Any], name: str) -> Any:
    """Cross-validate over whole groups; groups travel by scikit-learn's metadata routing."""
    from sklearn import config_context
    from sklearn.model_selection import GridSearchCV, GroupKFold

    from apexrank.metrics import get_scorer

    folds, scoring = given.pop("folds", 5), given.pop("scoring", "ndcg")
    estimator = _make(model, given, f"--model {name}")
    with config_context(enable_metadata_routing=True):
        estimator.set_fit_request(groups=True, sample_weight=True)
        scorer: Any = get_scorer(scoring)
        scorer.set_score_request(groups=True, sample_weight=False)
        grid = {"alpha": list(ALPHAS)}
        return GridSearchCV(estimator, grid, scoring=scorer, cv=GroupKFold(folds), error_score="raise")


def _make(model: Model, given: dict[str, Any], chosen: str) -> Any:
    import apexrank

    estimator = getattr(apexrank, model.estimator)()
    for option, value in given.items():
        name = model.renamed.get(option, option)
        if name not in estimator.get_params():
            raise InputError(f"{chosen} has no {opt.flag(option)}: leave it out")
        estimator.set_params(**{name: value})
    return estimator


def _fit_by_engine(
    train: Path, recipe: Recipe, estimator: Any, options: EngineOptions
) -> tuple[TableRanker, Judged]:
    """Fit on a file or folder in passes; what an engine cannot do is refused before anything is read."""
    from apexrank.io.stream_fit import fit_table_blocks

    engine, workers = options.engine or "blocks", options.workers
    if engine not in ENGINES:
        raise InputError(f"unknown engine {engine!r}: use one of {', '.join(ENGINES)}")
    if workers is not None and (engine != "dask" or workers < 1):
        raise InputError("--workers is a number of processes of --engine dask, at least 1")
    _check_engine(estimator)
    if engine == "blocks":
        return fit_table_blocks(train, recipe, estimator)
    if train.suffix.lower() in (".csv", ".tsv", ".gz"):
        raise InputError("--engine dask reads Parquet files: use --engine blocks for CSV")
    return _fit_on_dask(train, recipe, estimator, workers)


def _check_engine(estimator: Any) -> None:
    from apexrank.rankers.base import LinearFit

    if hasattr(estimator, "cv") or hasattr(estimator, "param_grid"):
        raise InputError("--cv needs the table in memory: choose the parameters on some of the rows")
    if not isinstance(estimator, LinearFit) or getattr(estimator, "kernel", None) is not None:
        raise InputError("--engine takes linear models: others need the table in memory")


def _fit_on_dask(
    train: Path, recipe: Recipe, estimator: Any, workers: int | None
) -> tuple[TableRanker, Judged]:
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingExtraError('--engine dask needs Dask: pip install "apexrank[dask]"') from error
    from apexrank.io.stream_fit import fit_table_blocks, map_spans, span_blocks

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,  # an error is one line, and the command prints it
        ) as cluster,
        Client(cluster),
    ):
        return fit_table_blocks(train, recipe, estimator, source=span_blocks, mapped=map_spans)


@contextmanager
def _checkpoint(path: Path | None, about: str) -> Iterator[None]:
    """Keep a checkpoint if one is wanted."""
    from apexrank.checkpoints import checkpoint

    if path is None:
        yield
        return
    with checkpoint(path, about) as journal:
        if journal.resumed:
            out.note(f"going on from {path}, with what {journal.resumed} passes over the rows had found")
        yield


def _fit_in_memory(table: Table, recipe: Recipe, estimator: Any) -> tuple[TableRanker, Judged]:
    from apexrank.io.table_ranker import fit_table

    with out.working(f"fitting {len(table)} rows"), out.warnings_as_notes():
        return fit_table(table, recipe, estimator)


def _chosen(estimator: Any, scoring: str | None) -> dict[str, Any]:
    """Return what cross-validation chose; empty without one."""
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
        "model": output,
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
    from apexrank.io.judging import label

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
    measures, coefficients = report["measures"], report["coefficients"]
    shown = [key for key in (_SHOWN_OF_GROUPS if "ndcg" in measures else _SHOWN) if key in measures]
    typer.echo("on the training rows: " + ", ".join(f"{label(key)} {measures[key]:.3f}" for key in shown))
    n, few = len(coefficients), _COEFFICIENTS_SHOWN
    largest = sorted(coefficients.items(), key=lambda item: -abs(item[1]))[:few]
    title = "coefficients" if n <= few else f"the {few} largest of {n} coefficients"
    out.print_table(["feature", title], [[name, f"{value:+.3g}"] for name, value in largest])
    typer.echo(f"written: {report['model']}")


def _sentence(report: dict[str, Any]) -> str:
    params = report["params"]
    # Only the power price has a p.
    names = ["p" if params.get("price") == "power" else "price", "divergence", "margin", "alpha"]
    names = ["loss", "alpha"] if report["estimator"] == "ListwiseRanker" else names
    shown = ", ".join(f"{name}={out.show(params[name])}" for name in names if name in params)
    state = "converged" if report["converged"] else "stopped"
    gap = report["dual_gap"]
    certificate = "" if gap is None or gap != gap else f", duality gap {gap:.1e}"
    return (
        f"{report['estimator']}({shown}): {state} after {report['n_iter']} iterations, "
        f"gradient norm {report['grad_norm']:.1e}{certificate}"
    )
