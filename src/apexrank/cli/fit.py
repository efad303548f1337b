"""``apexrank fit``: fit a ranker on a table and write a model file."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import apexrank
from apexrank import io, metrics
from apexrank.cli import options as opt
from apexrank.cli import output as out
from apexrank.errors import InputError, printable

if TYPE_CHECKING:
    from apexrank.io.judge import Judged

_model = opt.panel("Model")
_COEFFICIENTS_SHOWN = 8
_QUERY = re.compile(r"(?i)qid|query([_ ]?id)?")  # names of a column of queries
# Kinds of drivers: the heading of their names, and the format of their values.
_DRIVERS = {"coefficients": ("feature", "+.3g"), "effects": ("column", ".3g"), "splits": ("feature", "d")}


class Model(NamedTuple):
    """A model of ``fit``: its class, its default scaling, and parameters of other names.

    ``graded`` models learn from grades of relevance, the others from two classes. ``search`` is the class that chooses
    p and alpha (only alpha for graded models).
    """

    estimator: str
    scale: str = "standard"
    renamed: Mapping[str, str] = {}
    graded: bool = False
    search: str = ""


_ADDITIVE = {"knots": "n_knots", "pairs": "n_pairs", "monotone": "monotonic_cst"}
MODELS = {
    "push": Model("PNormPush", search="PNormPushCV"),
    "curves": Model("AdditiveRanker", renamed=_ADDITIVE),
    "logistic": Model("LogisticRanker"),
    "trees": Model("TreeRanker"),
    "curves-and-trees": Model("CurvesAndTrees"),
    "ir": Model("IRPush"),
    # Coordinate descent depends on the scale of the features; the papers scale them to [0, 1].
    "rankboost": Model("RankBoost", "minmax", {"max_iter": "t_max"}),
    "retarget": Model("MonotoneRetargeting", graded=True, search="GridSearchCV"),
    "curves-retarget": Model("AdditiveRetargeting", renamed=_ADDITIVE, graded=True, search="GridSearchCV"),
    "letor": Model("LetorRanker", graded=True),
    "listwise": Model("ListwiseRanker", graded=True, search="GridSearchCV"),
    "pairs": Model("CrucialPairsPush", graded=True, search="GridSearchCV"),
}
ALPHAS = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # for graded models; ties go to the first


@dataclass(frozen=True)
class ModelOptions:
    """The estimator, its parameters, and its cross-validation."""

    model: str = _model(
        "For two classes: push (P-Norm Push), curves (one per column, smoothed by the data; with -p, fitted by the "
        "push), logistic (logistic regression), trees (boosted trees), curves-and-trees (the mean of both), ir (IR "
        "Push) or rankboost. For grades of relevance: retarget (monotone retargeting), curves-retarget (the same with "
        "curves), letor (mean of retarget and boosted trees), pairs (P-Norm Push on pairs) or listwise (baselines with "
        "--loss).",
        default="push",
        choices=tuple(MODELS),
    )
    cv: bool = _model("Choose alpha (and p for push) by cross-validation.", default=False)
    calibrate: bool = _model(
        "Calibrate probabilities for two classes by isotonic regression on out-of-fold scores; rank shows them.",
        default=False,
    )
    group_split: str | None = _model(
        "With --calibrate: keep rows with the same value of this column in one fold; not used as a feature."
    )
    p: float | None = _model(
        "Strength of the push: 1 weighs the whole list equally, inf only the highest-ranked negative."
    )
    alpha: str | None = _model(
        "Weight of the penalty (default for push and ir: auto, estimated from the rows).", metavar="NUMBER"
    )
    l1_ratio: float | None = _model(
        "Share of the L1 norm in the penalty: 0 ridge, 1 lasso; above 0 some coefficients are exactly 0."
    )
    loss: str | None = _model(
        "Loss of a pair: exponential, logistic, hinge or squared_hinge. For listwise: listnet, rank_cosine, pointwise, "
        "ndcg_consistent or unknown_link."
    )
    price: str | None = _model("Price of a negative's height: power, identity, exponential or log1p.")
    side: str | None = _model("End of the list to push at: top, bottom or both.")
    divergence: str | None = _model(
        "For retarget: squared, kl, i-divergence, shifted-i-divergence, itakura-saito or logistic."
    )
    order: str | None = _model(
        "For retarget: hidden (equal grades in any order) or blocks (equal grades get equal targets).",
        choices=("hidden", "blocks"),
    )
    margin: float | None = _model("For retarget: margin between grades.")
    offsets: str | None = _model(
        "For retarget: growth of the margin with the grade: linear, gain, sqrt or binary."
    )
    bounds: str | None = _model(
        "For retarget: lowest and highest target in units of the scores, such as 0,5, or 0, without a highest."
    )
    knots: int | None = _model("For curves: maximum number of knots of a curve.", min=2)
    pairs: int | None = _model(
        "For curves: number of column pairs with joint effects (default: those with evidence; 0 with --alpha).",
        min=0,
    )
    monotone: list[str] | None = _model(
        "For curves: numeric columns that may only raise (+) or lower (-) scores, such as a=+,b=-."
    )
    leaves: int | None = _model("For trees: leaves per tree.", min=2)
    rounds: int | None = _model("For trees: maximum number of trees per model.", min=1)
    learning_rate: float | None = _model("For trees: factor on the values of each tree.")
    extra: bool | None = _model("For trees: random thresholds (extra trees).")
    max_iter: int | None = _model("Maximum number of iterations.")
    tol: float | None = _model("Gradient norm at which to stop.")
    folds: int | None = _model("Number of folds for --cv, or of models for trees (default: 5).", min=2)
    scoring: str | None = _model(
        "Measure that --cv maximises, such as partial_auc or precision_at_100 (default for grades: ndcg)."
    )


@dataclass(frozen=True)
class FitColumns(opt.FeatureColumns):
    """Columns, and the preprocessing of their values."""

    target: str | None = opt.plain("Target column: a class or a grade of relevance. LETOR files need none.")
    groups: str | None = opt.column("Column of groups, such as queries; rows are ranked within each group.")


@dataclass(frozen=True)
class EngineOptions(opt.Workers):
    """Options for tables larger than memory."""

    engine: str | None = opt.large(
        "Read the table in several passes, for linear models: blocks (one process; default for a folder) or dask "
        "(several processes that keep their rows in memory).",
        choices=("blocks", "dask"),
    )


@opt.option_groups
def fit(
    train: Annotated[
        Path,
        opt.argument("Training table: CSV, Parquet or LETOR (.txt), or a folder of Parquet or LETOR files."),
    ],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="PATH", help="Model file to write.")
    ] = Path("model.apex"),
    columns: FitColumns,
    options: ModelOptions,
    reading: opt.CsvOptions,
    engine: EngineOptions,
    json: opt.Json = False,
) -> None:
    """Fit a ranker on a table and write it to a model file."""
    from apexrank.io.read import LETOR_ROLES, files_of, is_letor

    out.check_file(output, train, *files_of(train))
    out.check_inputs(train)
    from apexrank.io.columns import numbers
    from apexrank.io.judge import measure
    from apexrank.io.table_ranker import check_one_list, fit_table

    given = opt.given_options(options)
    calibrated, apart = given.pop("calibrate"), given.pop("group_split", None)
    estimator = build_estimator(given.pop("model"), given.pop("cv"), given)
    getattr(estimator, "estimator", estimator)._validate_params()
    in_blocks = engine.engine is not None or engine.workers is not None or train.is_dir()
    in_memory = "--calibrate needs the table in memory: leave out --calibrate or --engine"
    of_folds = "--group-split is about the folds of --calibrate: add it, or leave the column out with --drop"
    opt.refuse(calibrated and in_blocks, in_memory)
    opt.refuse(apart is not None and not calibrated, of_folds)
    reading.refuse(in_blocks, opt.ENGINE_IS_UTF8)
    table = None if in_blocks else reading.read_table(train, index="index")
    of_format = LETOR_ROLES if train.exists() and all(map(is_letor, files_of(train))) else {}
    roles = of_format if table is None else table.roles
    target, model = columns.target or roles.get("target"), MODELS[options.model]
    if target is None:
        raise InputError(f"the target column of {train} is not known: name it with --target")
    chosen: dict[str, Any] = {"target": target, "scale": columns.scale or model.scale}
    chosen |= {name: getattr(columns, name) or roles.get(name) for name in ("id", "groups")}
    named, queries = columns.arguments(table.names if table else ()) | chosen, None
    if model.graded and named["groups"] is None:
        queries = named["groups"] = _query_column(train, table, named)
    recipe = io.Recipe(graded=model.graded, **named)
    opt.refuse(
        recipe.graded and recipe.positive is not None,
        f"--model {options.model} takes grades of relevance: leave out --positive, or use --model push",
    )
    if calibrated:
        check_one_list(recipe)
    if apart is not None and apart not in recipe.drop:
        recipe = replace(recipe, drop=[*recipe.drop, apart])
    if recipe.graded and table is not None:  # this advice applies only to fit
        advice = "; grades of relevance are numbers; two classes such as yes and no are for --model push"
        numbers(table, target, advice)
    what = train if table is None else f"{len(table)} rows"
    with out.working(f"fitting {what}"):
        if table is None:
            ranker, judged = _fit_by_engine(train, recipe, estimator, engine)
        else:
            ranker, judged = fit_table(table, recipe, estimator)
    if calibrated and table is not None:
        with out.working("fitting folds for probabilities"):
            ranker.calibration = io.calibrate(ranker, table, recipe, group_split=apart)
    if queries is not None:
        note = f"rows are ranked within each {queries!r}: name another column with --groups, or drop it"
        judged = judged._replace(notes=(note, *judged.notes))
    measures, undefined = measure(judged, brief=True)
    report = _report(ranker, measures, output, table)
    if measures.get("auc", 1.0) < 0.5 and ranker.positive is not None:
        turned = f"the AUC on the training rows is {measures['auc']:.3f}, below one half: is"
        note = f"{turned} {ranker.positive!r} the positive value of {ranker.target!r}, and which column misleads?"
        judged = judged._replace(notes=(*judged.notes, note))
    if reading.strict:
        reading.note(*judged.notes)
    apexrank.save(ranker, output)
    report["notes"] = [*judged.notes, *undefined]
    if hasattr(estimator, "best_score_"):
        scoring = options.scoring or ("ndcg" if model.graded else estimator.scoring)
        parameters = "alpha" if model.graded else "p and alpha"
        report["cv"] = {"chosen": parameters, "scoring": scoring, "score": float(estimator.best_score_)}
    if ranker.calibration is not None:
        report["probabilities"] = ranker.calibration.probabilities[[0, -1]].tolist()
    if json:
        out.print_json(report)
    else:
        out.note(*report["notes"])
        _print(report, ranker, train)


def _query_column(train: Path, table: io.Table | None, named: dict[str, Any]) -> str | None:
    """Column of queries by its name, unless it has another role or is a feature by request."""
    from apexrank.io.stream import TableBlocks

    names = TableBlocks(train).head().names if table is None else table.names
    taken = {named["target"], named["id"], named["weight"], *named["features"], *named["drop"]}
    return next((name for name in names if _QUERY.fullmatch(name) and name not in taken), None)


def build_estimator(name: str, cv: bool, given: dict[str, Any]) -> Any:
    """Build the unfitted estimator of a model from the given options.

    Raises
    ------
    InputError
        When the model has no such option.
    """
    model, price = MODELS[name], given.get("price", "power")
    chosen_by_cv = ("alpha",) if model.graded else ("p", "alpha")
    if "p" in given and price != "power":
        raise InputError(f"--price {price} has no -p: leave out one of them")
    if cv and not model.search:
        known = ", ".join(other for other in MODELS if MODELS[other].search)
        raise InputError(f"--cv is for the models {known}, not for {name}: leave it out, or use compare")
    if "scoring" in given:
        metrics.get_scorer(given["scoring"])  # checks the name
    with suppress(KeyError, ValueError):  # the estimator knows which words there are, such as auto
        given["alpha"] = float(given["alpha"])
    if "monotone" in given:
        given["monotone"] = split_signs(given["monotone"])
    if "bounds" in given:
        given["bounds"] = split_bounds(given["bounds"])
    estimator = getattr(apexrank.rankers, model.estimator)()
    of_cv = [option for option in ("folds", "scoring") if not hasattr(estimator, option)]
    for option in chosen_by_cv if cv else of_cv:
        if option in given:
            remedy = "leave out either --cv or" if cv else "add --cv, or leave out"
            about = f"--cv chooses {option}" if cv else f"{opt.flag(option)} is about cross-validation"
            raise InputError(f"{about}: {remedy} {opt.flag(option)}")
    if cv and not model.graded:
        search = getattr(apexrank.rankers, model.search)()
        return opt.set_parameters(search, given, "--cv", {"folds": "cv", **model.renamed})
    folds, scoring = (given.pop("folds", 5), given.pop("scoring", "ndcg")) if cv else (5, "ndcg")
    opt.set_parameters(estimator, given, f"--model {name}", model.renamed)
    return _search_alpha(estimator, folds, scoring) if cv else estimator


def split_signs(values: list[str]) -> dict[str, int]:
    """Parse ``--monotone``.

    Examples
    --------
    >>> split_signs(["amount=+,age=-", '"x, y=+"'])
    {'amount': 1, 'age': -1, 'x, y': 1}
    """
    signs: dict[str, int] = {}
    for part in opt.split_names(values):
        name, _, sign = part.rpartition("=")
        if not name or sign not in ("+", "-") or name in signs:
            raise InputError(f"--monotone takes each column once, with + or -, such as a=+,b=-: got {part!r}")
        signs[name] = 1 if sign == "+" else -1
    return signs


def split_bounds(text: str) -> tuple[float | None, ...]:
    """Parse ``--bounds``.

    Examples
    --------
    >>> split_bounds("-1,2.5"), split_bounds("0,")
    ((-1.0, 2.5), (0.0, None))
    """
    try:
        low, high = (float(part) if part.strip() else None for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--bounds takes two numbers such as 0,5, one of which may be left out; got {text!r}"
        ) from None
    return low, high


def _search_alpha(estimator: Any, folds: int, scoring: str) -> Any:
    """Cross-validate over whole groups, which scikit-learn's metadata routing passes on."""
    from sklearn import config_context
    from sklearn.model_selection import GridSearchCV, GroupKFold

    with config_context(enable_metadata_routing=True):
        estimator.set_fit_request(groups=True, sample_weight=True)
        scorer: Any = metrics.get_scorer(scoring)
        scorer.set_score_request(groups=True, sample_weight=False)
        grid = {"alpha": list(ALPHAS)}
        return GridSearchCV(estimator, grid, scoring=scorer, cv=GroupKFold(folds), error_score="raise")


def _fit_by_engine(
    train: Path, recipe: io.Recipe, estimator: Any, options: EngineOptions
) -> tuple[io.TableRanker, Judged]:
    """Fit on a file or folder in passes; unsupported options raise InputError before anything is read."""
    from apexrank.io.read import PARQUET, files_of
    from apexrank.io.stream import fit_table_blocks
    from apexrank.rankers.base import LinearEstimator

    on_dask = options.engine == "dask"
    options.check(on_dask)
    is_text = not all(file.suffix.lower() in PARQUET for file in files_of(train))
    tried = getattr(estimator, "estimator", estimator)
    linear = isinstance(tried, LinearEstimator) and getattr(tried, "kernel", None) is None
    linear = linear and not hasattr(tried, "contributions")
    opt.refuse(not linear, "--engine fits linear models only: other models need the table in memory")
    parquet = "--engine dask reads Parquet files: use --engine blocks for CSV and LETOR"
    opt.refuse(on_dask and is_text, parquet)
    if is_text and tried is not estimator:
        out.note("every pass parses the text again: write the files as Parquet for a faster --cv")
    if not on_dask:
        return fit_table_blocks(train, recipe, estimator)
    with options.cluster():
        return fit_table_blocks(train, recipe, estimator, dask=True)


def _report(
    ranker: io.TableRanker, measures: dict[str, float], output: Path, table: io.Table | None
) -> dict[str, Any]:
    features, estimator = ranker.encoder.features, ranker.estimator
    params = estimator.get_params()
    params |= {"alpha": getattr(estimator, "alpha_", params["alpha"])} if "alpha" in params else {}
    return {
        "model": output,
        "estimator": type(estimator).__name__,
        "params": {k: "inf" if v == math.inf else v for k, v in params.items()},
        "target": ranker.target,
        "positive": ranker.positive,
        "features": len(features),
        **ranker.training,
        "measures": measures,
        **({"readable_share": estimator.readable_share_} if hasattr(estimator, "readable_share_") else {}),
        **_drivers(ranker, features, table),
    }


def _drivers(
    ranker: io.TableRanker, features: list[str], table: io.Table | None
) -> dict[str, dict[str, float]]:
    """Return the coefficients, the effects of the columns, or for trees the number of splits on each feature."""
    if (hasattr(ranker.estimator, "shapes_") or hasattr(ranker.estimator, "curves_")) and table is not None:
        return {"effects": ranker.effects(table)}
    if ranker.is_linear:
        return {"coefficients": dict(zip(features, ranker.coef.tolist(), strict=True))}
    splits = ranker.estimator.forest_.asked(len(features))
    return {"splits": dict(zip(features, splits.tolist(), strict=True))}


def _print(report: dict[str, Any], ranker: io.TableRanker, source: Path) -> None:
    from apexrank.metrics.evaluation import find_measure

    known = printable(f"{ranker.target} = {ranker.positive}")
    meaning = f"above 0 in {ranker.target}" if ranker.positive is None else known
    typer.echo(
        f"{source}: {report['rows']} rows, {report['positives']} of them positive ({meaning}), "
        f"{out.plural(report['features'], 'feature')} ({report['scale']} scaling)"
    )
    if "cv" in report:
        typer.echo("{chosen} chosen by cross-validation: {scoring} {score:.3f}".format_map(report["cv"]))
    params, gap = report["params"], report.get("dual_gap")
    # Only the power price has a p.
    names = [
        "p" if params.get("price", "power") == "power" else "price",
        "divergence",
        "margin",
        "bounds",
        "alpha",
    ]
    names += [
        "leaves",
        "rounds",
        "n_knots",
        "n_pairs",
        "monotonic_cst",
    ]
    names = ["loss", "alpha"] if report["estimator"] == "ListwiseRanker" else names
    plain = {"loss": "exponential", "side": "top", "l1_ratio": 0}
    names += [name for name, usual in plain.items() if name not in names and params.get(name, usual) != usual]
    shown = ", ".join(f"{name}={out.show(params[name])}" for name in names if params.get(name) is not None)
    certificate = "" if gap is None or gap != gap else f", duality gap {gap:.1e}"
    if "converged" in report:
        state = "converged" if report["converged"] else "stopped"
        after = f"after {out.plural(report['n_iter'], 'iteration')}, gradient norm {report['grad_norm']:.1e}"
        certificate = f": {state} {after}{certificate}"
    typer.echo(f"{report['estimator']}({shown}){certificate}")
    if "probabilities" in report:
        ends = report["probabilities"]
        typer.echo("probabilities from {:.3g} to {:.3g}, by out-of-fold scores".format(*ends))
    measures = [f"{find_measure(name).label} {value:.3f}" for name, value in report["measures"].items()]
    typer.echo("on the training rows: " + ", ".join(measures))
    if "readable_share" in report:
        typer.echo(f"the curves carry {100 * report['readable_share']:.0f} % of the variance of the scores")
    what = next(key for key in _DRIVERS if key in report)
    coefficients = report[what]
    n, few = len(coefficients), _COEFFICIENTS_SHOWN
    largest = sorted(coefficients.items(), key=lambda item: -abs(item[1]))[:few]
    title = what if n <= few else f"the {few} largest of {n} {what}"
    of, form = _DRIVERS[what]
    out.print_table([of, title], [[name, f"{value:{form}}"] for name, value in largest])
    if what == "effects":
        spread = "the standard deviation of what a column adds to the scores of the training rows"
        typer.echo(f"an effect is {spread}")
    typer.echo(f"written: {report['model']}")
    model = shlex.quote(str(report["model"]))
    typer.echo(f"measure it on labelled rows that it has not seen: apexrank evaluate {model} NEW.csv")
