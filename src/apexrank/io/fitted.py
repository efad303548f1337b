"""The state of fitted objects: classes that a model file may hold, and types and sizes of what they have learned.

:data:`CLASSES` lists the classes by public name, each estimator with the attributes that it must have after ``fit``,
and :data:`ATTRIBUTES` the type of each attribute, under the same name in all of them. A type is an annotation, or a
text such as "finite k d": a kind of array and its shape, in which d is the number of features, v that of vertices,
another letter a size that the attributes of an estimator share, and * any size. Fields of other objects have the types
of their annotations. Relations between attributes are checked by methods of the classes: ``check(n_features)`` of a
part of an estimator, and ``check_state()``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from inspect import signature
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline

from apexrank.errors import InputError

_SOLVED = "n_features_in_ objective_ dual_gap_ grad_norm_ converged_ n_iter_ history_ "
_WEIGHTS = _SOLVED + "coef_ "
_SHAPES = "shapes_ pairs_ "
_CHOSEN = "p_ alpha_ best_score_ best_estimator_ cv_results_ "
_LINKS = "graph_ scores_ n_iter_ converged_ error_bound_ hilbert_bound_ history_ "
_WALK = _LINKS + "_teleport "
_TREE = "n_features_in_ n_outputs_ max_features_ tree_ "

# Attributes that each class must have after ``fit``; "a_/b_" is one of two. Objects that are no estimators have none.
CLASSES: dict[str, str] = {
    f"{module}.{name}": needs
    for module, rows in {
        "apexrank.rankers": {
            "PNormPush IRPush RankBoost LogisticRanker": _WEIGHTS + "intercept_",
            "PNormPushCV": _WEIGHTS + "intercept_ " + _CHOSEN,
            "AdditiveRanker": _WEIGHTS + "intercept_ " + _SHAPES,
            "AdditiveRetargeting": _WEIGHTS + _SHAPES,
            "CrucialPairsPush LinearRanker ListwiseRanker": _WEIGHTS,
            "MonotoneRetargeting": "n_features_in_ coef_/dual_coef_",
            "UnknownLinkRegressor": _SOLVED + "coef_/dual_coef_ link_ recovered_phi_ output_range_ refined_",
            "TreeRanker": "n_features_in_ forest_ levels_ oof_scores_",
            "CurvesAndTrees": "n_features_in_ levels_ curves_ trees_ extra_trees_ readable_share_",
            "LetorRanker": "n_features_in_ forest_ coef_ mean_",
            "TwoStagePush": "n_features_in_ first_ second_ cut_ intercept_",
            "PushBoost": "n_features_in_ estimators_ estimator_weights_ intercept_",
            "Link": "",
        },
        "apexrank.rankers.additive": {"Shape PairShape": ""},
        "apexrank.rankers.forest": {"Forest": ""},
        "apexrank.rankers.link": {"ConvexFunction": ""},
        "apexrank.solvers.online": {"OnlineGradient": ""},
        "apexrank.aggregation": {
            "LovaszBregmanKMeans": "n_features_in_ cluster_centers_ orders_ labels_ inertia_ history_ n_iter_ "
            "converged_",
            "LovaszAggregator": _WEIGHTS + "f_ grouped_ weights_ listed_weights_",
        },
        "apexrank.preprocessing": {
            "QueryNormalizer": "n_features_in_",
            "RampEncoder": "n_features_in_ basis_ levels_",
        },
        "apexrank.problem.ramps": {"RampBasis": ""},
        "apexrank.graph": {
            "InDegree": "graph_ scores_",
            "PageRank NonBacktrackingRank ConcaveConvexRank TopMeanRank TrustRank": _WALK,
            "LpqRank": _WALK + "ranks_",
            "GuardedPageRank": _WALK + "pagerank_ guard_ limit_ limited_",
            "RobustPageRank": _WALK + "_total",
            "SpamMassRank": _LINKS + "pagerank_ absolute_mass_ relative_mass_",
            "AntiTrustRank": _WALK + "distrust_",
            "DemotedRank": _WALK + "trust_ distrust_",
            "FairnessGoodness": _LINKS + "fairness_ _ratings",
            "ConsensusRank": "graph_ scores_ layers_ layer_weights_ layer_shares_ vertex_disagreement_ disagreement_ "
            "objective_ stationarity_ first_order_gap_ vertex_gap_ error_bound_ order_violation_ converged_ n_iter_ "
            "history_ objectives_",
            "Graph SignedGraph": "",
        },
        "apexrank.graph.signed": {"Ratings": ""},
        "apexrank.penalties": {"Ridge ElasticNet Lasso GroupLasso Quadratic Bounded NonNegative": ""},
        "apexrank.losses": {"Exponential Logistic Hinge SmoothHinge SquaredHinge ZeroOne": ""},
        "apexrank.prices": {"Power Identity Exponential Log1p": ""},
        "apexrank.divergences": {"Squared IDivergence ShiftedIDivergence ItakuraSaito Logistic KL": ""},
        "apexrank.submodular": {
            "Cardinality Sqrt Log Top Product Indicator Cut Chain Combination Modular": ""
        },
        "apexrank.io": {"TableRanker Calibration": ""},
        "apexrank.io.table_ranker": {"Thresholds": ""},
        "apexrank.io.encode": {"TypedColumns LinearFeatures": ""},
        "apexrank.io.types": {"Number Category Date": ""},
        "apexrank.io.drift": {"Profile": ""},
        "sklearn.pipeline": {"Pipeline": ""},
        "sklearn.preprocessing": {
            "StandardScaler": "n_features_in_ n_samples_seen_ mean_ var_ scale_",
            "MinMaxScaler": "n_features_in_ n_samples_seen_ min_ scale_ data_min_ data_max_ data_range_",
            "MaxAbsScaler": "n_features_in_ n_samples_seen_ scale_ max_abs_",
            "RobustScaler": "n_features_in_ center_ scale_",
            "OneHotEncoder": "n_features_in_ categories_ drop_idx_ _drop_idx_after_grouping _infrequent_enabled "
            "_n_features_outs",
        },
        "sklearn.tree": {
            "DecisionTreeClassifier ExtraTreeClassifier": _TREE + "n_classes_",
            "DecisionTreeRegressor ExtraTreeRegressor": _TREE,
        },
        "sklearn.impute": {"SimpleImputer": "n_features_in_ statistics_ indicator_ _fit_dtype _fill_dtype"},
    }.items()
    for names, needs in rows.items()
    for name in names.split()
}
# Attributes that need others, in every class or in one.
_NEEDS = {"dual_coef_": "X_fit_ kernel_", "offset_": "scale_", "QueryNormalizer.scale_": "offset_"}

# Attributes of scalers that are None without the parameter.
_SCALED = {"with_mean": "mean_", "with_std": "scale_", "with_scaling": "scale_", "with_centering": "center_"}

ATTRIBUTES: dict[str, Any] = {
    name: hint
    for names, hint in {
        "n_features_in_ n_iter_ n_groups_ n_kept_ n_lists_ n_lists_skipped_ n_classes_ max_features_": int,
        "n_outputs_": Literal[1],
        "tree_": "Tree",
        "converged_ refined_ grouped_ _had_groups": bool,
        "alpha_ p_ objective_ dual_gap_ grad_norm_ best_score_ inertia_ error_bound_ hilbert_bound_ disagreement_ "
        "stationarity_ first_order_gap_ order_violation_ limit_ _offset SimpleImputer.missing_values": float,
        "cut_ _total": "ordered",
        "stop_reason_ kernel_": str,
        "history_ objectives_ train_objective_ validation_scores_ fitted_ targets_ layer_deviations_ edf_ "
        "strength_": "float *",
        "feature_names_in_": "names d",
        "classes_": "distinct 2",
        "coef_ convex_coef_ listed_weights_ LetorRanker.mean_": "finite d",
        "PNormPush.coef_ PNormPushCV.coef_ IRPush.coef_ RankBoost.coef_ LogisticRanker.coef_": "finite 1 d",
        "LinearRanker.coef_": "finite d|finite 1 d",
        "AdditiveRanker.coef_": "finite 1 *",
        "AdditiveRetargeting.coef_ LovaszAggregator.coef_ Shape.counts Profile.edges Profile.shares "
        "TableRanker.mean": "finite *",
        "intercept_": "finite|finite 1",
        "dual_coef_ Graph.out_weight": "finite n",
        "X_fit_": "finite n d",
        "shapes_": "list d Shape",
        "pairs_": "list * PairShape",
        "levels_ _levels": Mapping[int, tuple[str, ...]],
        "forest_": "Forest",
        "link_ ConvexFunction.link": "Link",
        "recovered_phi_": "ConvexFunction",
        "output_range_": tuple[float, float],
        "online_": "OnlineGradient",
        "best_estimator_ first_ second_": "estimator",
        "curves_": "AdditiveRanker",
        "trees_ extra_trees_": "TreeRanker",
        "oof_scores_": "finite *",
        "readable_share_": "finite",
        "estimators_": "list m estimator",
        "cv_results_": dict[str, np.ndarray],
        "cluster_centers_": "finite k d",
        "orders_": "orders k d",
        "labels_ Graph.indptr Graph.indices": "whole *",
        "f_": Any,
        "list_": "float * d",
        "weights_": "finite d|finite * d",
        "mean_ var_ scale_ center_": "real d|none",
        "values_": "real * d",
        "basis_": "RampBasis",
        "graph_": "Graph",
        "scores_ ranks_ trust_ distrust_ pagerank_ guard_ absolute_mass_ relative_mass_ "
        "_teleport": "finite v|finite v t",
        "limited_": "mask v|mask v t",
        "_ratings": "Ratings",
        "layers_": tuple[str, ...],
        "layer_weights_": "float v l",
        "layer_shares_": "float l",
        "vertex_disagreement_ vertex_gap_ fairness_": "float v",
        "min_ data_min_ data_max_ data_range_ max_abs_ statistics_ offset_ QueryNormalizer.scale_": "real d",
        "n_samples_seen_": "counts|counts d",
        "_fit_dtype _fill_dtype": np.dtype,
        "indicator_ drop_idx_ _drop_idx_after_grouping class_weight": None,
        "_infrequent_enabled SimpleImputer.add_indicator": Literal[False],
        "categories_": "list d distinct *",
        "_n_features_outs": list[int],
        "_sklearn_output_config": dict[str, str],
        "Pipeline.steps": list[tuple[str, Any]],
        "OneHotEncoder.dtype": type,
        "Shape.knots Thresholds.counts Calibration.scores Calibration.probabilities": "rising m",
        "Shape.values Thresholds.scores Link.knots Link.values LinearFeatures.center LinearFeatures.scale "
        "OnlineGradient.w OnlineGradient.average Ratings.values estimator_weights_": "finite m",
        "Shape.missing": "finite",
        "Shape.errors Shape.reach": "finite *|none",
        "PairShape.knots": "tuple 2 rising *",
        "PairShape.values": "finite * *",
        "RampBasis.knots": "list * rising *",
        "Graph.weights": "finite *|none",
        "Graph.names": "distinct n|none",
        "Ratings.raters Ratings.rated": "whole m",
        "Ratings.made Ratings.received": "whole n",
    }.items()
    for name in names.split()
}

_WRONG = "does not have the type, the size or the values that it must have"
_KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "float": lambda a: a.dtype == np.float64,
    "finite": lambda a: a.dtype == np.float64 and np.isfinite(a).all(),
    "rising": lambda a: a.dtype == np.float64 and np.isfinite(a).all() and (np.diff(a) > 0).all(),
    "ordered": lambda a: a.dtype == np.float64 and not np.isnan(a).any(),
    "real": lambda a: a.dtype in (np.float64, np.float32),
    "counts": lambda a: a.dtype.kind in "iuf" and (a >= 0).all(),
    "whole": lambda a: a.dtype.kind in "iu" and (a >= 0).all(),
    "orders": lambda a: a.dtype.kind in "iu" and (np.sort(a) == np.arange(a.shape[-1])).all(),
    "mask": lambda a: a.dtype == bool,
    "distinct": lambda a: len(set(a.tolist())) == a.size,
    "names": lambda a: len(set(a.tolist())) == a.size and all(isinstance(name, str) for name in a.tolist()),
}


def name_of(kind: type) -> str | None:
    """Public name of a class that a model file may hold, such as ``apexrank.rankers.PNormPush``; None for others."""
    return next(
        (name for name in CLASSES if name.endswith(f".{kind.__name__}") and class_of(name) is kind), None
    )


def class_of(name: str) -> type | None:
    """Class of a public name, None unless it is listed."""
    module, _, kind = name.rpartition(".")
    return getattr(import_module(module), kind) if name in CLASSES else None


@cache
def fields_of(kind: Any) -> Sequence[str]:
    """Names of what a class takes: parameters of an estimator, fields of another object."""
    return kind._get_param_names() if issubclass(kind, BaseEstimator) else [*signature(kind).parameters]


def state_of(estimator: BaseEstimator) -> dict[str, Any]:
    """Attributes of an estimator that are neither parameters nor requests of metadata, which are about ``fit``."""
    known = {*fields_of(type(estimator)), "_metadata_request"}  # type: ignore[arg-type]
    return {name: value for name, value in vars(estimator).items() if name not in known}


def is_fitted(model: Any) -> bool:
    """Whether an estimator has attributes that its ``fit`` sets; all steps of a pipeline must."""
    if isinstance(model, Pipeline):
        return all(isinstance(step, str | None) or is_fitted(step) for _, step in model.steps)
    return not isinstance(model, BaseEstimator) or any(
        name[0] != "_" and name[-1] == "_" for name in state_of(model)
    )


def check(value: Any) -> None:
    """Raise ValueError if an object of a listed class contradicts its declarations."""
    kind: Any = type(value)
    sizes: dict[str, int] = {}
    hints = {} if isinstance(value, BaseEstimator) else _hints(kind)
    for name in fields_of(kind):
        hint = ATTRIBUTES.get(f"{kind.__name__}.{name}", hints.get(name, Any))
        if not _is(getattr(value, name), hint, sizes):
            raise InputError(f"`{name}` of a {kind.__name__} {_WRONG}")
    if isinstance(value, BaseEstimator):
        value._validate_params()
        if isinstance(value, Pipeline):
            value._validate_steps()
        _check_state(value)
    if hasattr(kind, "check_state") and is_fitted(value):
        value.check_state()


def _check_state(estimator: BaseEstimator) -> None:
    """Raise InputError unless all attributes are declared, and those of a fitted estimator there."""
    kind, state = type(estimator).__name__, state_of(estimator)
    sizes: dict[str, int] = {}
    for name in sorted(state, key=lambda name: (name not in ("n_features_in_", "graph_"), name)):
        hint = ATTRIBUTES.get(f"{kind}.{name}", ATTRIBUTES.get(name, ...))
        if hint is ...:
            raise InputError(f"`{name}` of a {kind} cannot be checked")
        if not _is(state[name], hint, sizes):
            raise InputError(f"`{name}` of a {kind} {_WRONG}")
        sizes |= {"d": state[name]} if name == "n_features_in_" else {}
        sizes |= {"v": state[name].n} if name == "graph_" else {}
    if not is_fitted(estimator):
        return
    has_classes = is_classifier(estimator) and not isinstance(estimator, Pipeline)
    needs = CLASSES[str(name_of(type(estimator)))] + " classes_" * has_classes
    for name in state:
        needs += f" {_NEEDS.get(name, '')} {_NEEDS.get(f'{kind}.{name}', '')}"
    for need in needs.split():
        if not any(name in state for name in need.split("/")):
            raise InputError(f"a {kind} has no `{need}`")
    for parameter, name in _SCALED.items():
        if getattr(estimator, parameter, False) and state[name] is None:
            raise InputError(f"a {kind} has no `{name}`")
    if kind == "OneHotEncoder" and state["_n_features_outs"] != [*map(len, state["categories_"])]:
        raise InputError("`_n_features_outs` of an OneHotEncoder are not the numbers of its categories")
    if "tree_" in state:
        tree, classes = state["tree_"], len(state.get("classes_", "1"))
        if [tree.n_features, *tree.n_classes, state.get("n_classes_", 1)] != [sizes["d"], classes, classes]:
            raise InputError(f"`tree_` of a {kind} has other columns or classes")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _is(value: Any, hint: Any, sizes: dict[str, int]) -> bool:
    """Whether a value is of a type; the letters of a size get their number in ``sizes``."""
    if isinstance(hint, str):
        return any(_is_sized(value, *one.split(), sizes=sizes) for one in hint.split("|"))
    origin, parts, fits = get_origin(hint), get_args(hint), partial(_is, sizes=sizes)
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return any(value is part for part in parts)
    if origin is tuple and parts[-1] is not ...:
        return type(value) is tuple and len(value) == len(parts) and all(map(fits, value, parts))
    if origin in (list, tuple, Sequence):
        return isinstance(value, list | tuple) and all(fits(one, parts[0]) for one in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(all(map(fits, item, parts)) for item in value.items())
    if hint in (int, float):
        kinds = (int, np.integer) if hint is int else (int, float, np.integer, np.floating)
        exact = isinstance(value, float | np.generic) or (type(value) is int and abs(value) <= 1 << 53)
        return exact and isinstance(value, kinds) and not isinstance(value, np.bool_)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    return hint is Any or isinstance(value, NoneType if hint is None else hint)


def _is_sized(value: Any, kind: str, *shape: str, sizes: dict[str, int]) -> bool:
    """Whether a value is an array of a kind and shape, a list of values, or an object of a class."""
    if kind in ("list", "tuple"):
        fits = type(value).__name__ == kind and _have(sizes, shape[:1], (len(value),))
        return fits and all(_is_sized(one, *shape[1:], sizes=sizes) for one in value)
    if kind in _KINDS:
        numeric = hasattr(value, "shape") if shape else isinstance(value, int | float | np.generic)
        array = value.data if sparse.issparse(value) else np.asarray(value)
        return numeric and bool(_KINDS[kind](array)) and _have(sizes, shape, np.shape(value))
    n_features = sizes.get("d", sizes.get("v", 0))
    if kind == "estimator":
        return isinstance(value, BaseEstimator) and is_fitted(value) and value.n_features_in_ == n_features
    if kind != type(value).__name__:
        return kind == "none" and value is None
    if hasattr(value, "check"):
        value.check(n_features)
    return True


def _have(sizes: dict[str, int], shape: Sequence[str], found: Sequence[int]) -> bool:
    """Whether a shape is the declared one; letters without a number get that of the shape."""
    return len(shape) == len(found) and all(
        name == "*" or size == (int(name) if name.isdigit() else sizes.setdefault(name, size))
        for name, size in zip(shape, found, strict=True)
    )
