"""From names and numbers on the command line to an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from apexrank.errors import InputError


class Model(NamedTuple):
    """A model by its name on the command line: its class, the scaling it likes, options it calls otherwise.

    ``graded`` models learn from grades of relevance, the others from two classes.
    """

    estimator: str
    scale: str = "standard"
    renamed: Mapping[str, str] = {}
    graded: bool = False


ALPHAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)

MODELS = {
    "push": Model("PNormPush"),
    "ir": Model("IRPush"),
    # Coordinate descent depends on the features' units; the papers have them from 0 to 1.
    "rankboost": Model("RankBoost", "minmax", {"max_iter": "t_max"}),
    "retarget": Model("MonotoneRetargeting", graded=True),
    "listwise": Model("ListwiseRanker", graded=True),
    "pairs": Model("CrucialPairsPush", graded=True),
}


def get_model(name: str) -> Model:
    """Model of that name on the command line."""
    if name not in MODELS:
        raise InputError(f"unknown model {name!r}: use one of {', '.join(MODELS)}")
    return MODELS[name]


def build_estimator(name: str, *, cv: bool, **options: Any) -> Any:
    """Make the unfitted estimator; options that are None keep the library's default.

    Raises
    ------
    InputError
        When the model is unknown or has no such option.
    """
    model = get_model(name)
    given = {option: value for option, value in options.items() if value is not None}
    if "p" in given and given.get("price", "power") != "power":
        raise InputError(f"--price {given['price']} has no -p: leave out one of them")
    if not cv:
        return _make(model, given, f"--model {name}")
    if name != "push" and not model.graded:
        raise InputError(f"--cv chooses p and alpha of --model push, not of --model {name}")
    if model.graded:
        return _search_alpha(model, given, name)
    for option in ("p", "alpha"):
        if option in given:
            raise InputError(f"--cv chooses {option}: leave out either --cv or {_flag(option)}")
    return _make(Model("PNormPushCV", renamed={"folds": "cv"}), given, "--cv")


def _search_alpha(model: Model, given: dict[str, Any], name: str) -> Any:
    """Cross-validation over whole groups; groups travel by scikit-learn's metadata routing."""
    from sklearn import config_context
    from sklearn.model_selection import GridSearchCV, GroupKFold

    from apexrank.metrics import get_scorer

    if "alpha" in given:
        raise InputError("--cv chooses alpha: leave out either --cv or --alpha")
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
            raise InputError(f"{chosen} has no {_flag(option)}: leave it out")
        estimator.set_params(**{name: value})
    return estimator


def _flag(option: str) -> str:
    return f"-{option}" if len(option) == 1 else f"--{option.replace('_', '-')}"
