"""Train boosted trees with LightGBM, XGBoost or CatBoost from one set of parameters, and parse the resulting trees."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from apexrank.errors import InputError, MissingExtraError
from apexrank.integrations.boosting import BoosterMetric, BoosterObjective, ListwiseObjective
from apexrank.rankers.base import from_zero
from apexrank.rankers.forest import Forest, Node, fewest_in_leaf, repeated_rows, threads_for
from apexrank.validation import check_between, segment

# built-in ranking objectives of each library, by the names used here
THEIRS = {
    "lightgbm": {"lambdarank": "lambdarank", "rank_xendcg": "rank_xendcg"},
    "xgboost": {"lambdarank": "rank:ndcg", "rank:ndcg": "rank:ndcg", "rank:pairwise": "rank:pairwise"},
    "catboost": {"lambdarank": "LambdaMart", "YetiRank": "YetiRank", "QueryRMSE": "QueryRMSE"},
}
# library parameters that duplicate those of the ranker, by the ranker's names
_OWN = {
    "lightgbm": {
        **{"num_leaves": "max_leaves", "min_data_in_leaf": "min_samples_leaf", "lambda_l2": "l2"},
        **{
            "feature_fraction": "colsample",
            "bagging_fraction": "subsample",
            "num_iterations": "n_estimators",
        },
        **{"monotone_constraints": "monotonic_cst", "categorical_feature": "categorical_features"},
        **{"early_stopping_round": "early_stopping_rounds", "metric": "eval_metric", "seed": "random_state"},
    },
    "xgboost": {
        **{"reg_lambda": "l2", "lambda": "l2", "colsample_bytree": "colsample", "eta": "learning_rate"},
        **{"monotone_constraints": "monotonic_cst", "eval_metric": "eval_metric", "seed": "random_state"},
    },
    "catboost": {
        **{"l2_leaf_reg": "l2", "reg_lambda": "l2", "rsm": "colsample", "colsample_bylevel": "colsample"},
        **{"iterations": "n_estimators", "num_boost_round": "n_estimators", "num_trees": "n_estimators"},
        **{
            "depth": "max_leaves",
            "max_depth": "max_leaves",
            "eta": "learning_rate",
            "loss_function": "objective",
        },
        **{
            "monotone_constraints": "monotonic_cst",
            "eval_metric": "eval_metric",
            "random_seed": "random_state",
        },
    },
}
_SAME = ("objective", "learning_rate", "max_leaves", "subsample", "n_estimators", "random_state")
LIGHTGBM_OPTIONS = {"deterministic": True, "force_row_wise": True, "verbosity": -1}
_EXTRAS = {"lightgbm": "boosting", "xgboost": "boosting", "catboost": "catboost"}
LONGEST = 10_000  # most rows per list for LightGBM's built-in objectives
_GRADES = 31  # number of grades for which the libraries have gains
_COMPARED = 1000  # number of rows whose scores are compared with the library's
_EXACT = 2**24  # row numbers below this are exact in single precision

Trees = list[list[Node]]
Slopes = Callable[..., tuple[np.ndarray, np.ndarray]]
Scores = Callable[[np.ndarray], np.ndarray]


class Lists(NamedTuple):
    """Rows with labels, weights and list indices."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, groups: Any) -> Lists:
        """Sort rows by list, repeat them if weights are counts, and drop those of weight 0."""
        rows, weight = repeated_rows(weight, len(y))
        lists = segment(segment(groups, len(y)).of_rows()[rows], len(rows))
        rows = rows[lists.order]
        # a slice avoids a copy if the rows are already sorted
        taken = slice(None) if np.array_equal(rows, np.arange(len(y))) else rows
        numbers = np.repeat(np.arange(len(lists)), np.diff(lists.indptr))
        return cls(X[taken], y[taken], None if weight is None else weight[lists.order], numbers)

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows in each list."""
        return np.bincount(self.groups)

    def split(self, share: float, random: np.random.RandomState) -> tuple[Lists, Lists]:
        """Hold out a random share of the lists."""
        check_between("validation_fraction", share, 0, 1)
        n, chosen = len(self.sizes), round(share * len(self.sizes))
        if not 0 < chosen < n:
            raise InputError(
                f"`validation_fraction={share}` holds out {chosen} of {n} groups: give more groups, or an `eval_set`"
            )
        held = np.isin(self.groups, random.permutation(n)[:chosen])
        rest, out = (Lists.of(self.X[part], self.y[part], None, self.groups[part]) for part in (~held, held))
        return rest if self.weight is None else rest._replace(weight=self.weight[~held]), out


@dataclass
class Watch:
    """Metric on held-out rows after each round; training stops ``patience`` rounds after the best value."""

    X: np.ndarray
    y: np.ndarray
    metric: BoosterMetric
    patience: int | None
    values: list[float] = field(default_factory=list)

    def __call__(self, scores: np.ndarray) -> float:
        self.values.append(self.metric(self.y, scores))
        return self.values[-1]

    @property
    def greater_is_better(self) -> bool:
        """Whether larger values are better."""
        return self.metric.greater_is_better


class Task(NamedTuple):
    """Training task with the parameters of a ranker; ``objective`` is ours, or the name of one of the library's.

    ``signs`` are the signs of monotone columns, if any, ``categories`` the number of codes of each categorical column,
    and ``missing`` the columns with missing values.
    """

    ranker: Any
    lists: Lists
    objective: BoosterObjective | str
    watch: Watch | None
    signs: list[int] | None
    categories: Mapping[int, int]
    missing: list[int]
    seed: int

    @property
    def is_theirs(self) -> bool:
        """Whether the objective is one of the library's."""
        return isinstance(self.objective, str)

    @property
    def fewest(self) -> int:
        """Minimum number of rows in a leaf."""
        return self.ranker.min_samples_leaf or fewest_in_leaf(len(self.lists.y))

    @property
    def labels(self) -> np.ndarray:
        """Labels for the objective; the libraries' objectives get grades."""
        if self.is_theirs:
            return grades(self.lists.y)
        gains = isinstance(self.objective, ListwiseObjective) and self.objective.loss == "ndcg_consistent"
        return from_zero(self.lists.y) if gains else self.lists.y

    def slopes(self) -> Slopes:
        """Gradient and curvature of our objective as a function of the scores; labels stay in double precision."""
        assert isinstance(self.objective, BoosterObjective)
        bound, labels = replace(self.objective, groups=self.lists.groups), self.labels
        return lambda scores, data=None: bound(labels, scores, self.lists.weight)

    def list_weights(self, library: str) -> np.ndarray | None:
        """One weight per list, for objectives that accept only these."""
        weight, sizes = self.lists.weight, self.lists.sizes
        if weight is None:
            return None
        found = weight[np.cumsum(sizes) - 1]
        if (weight != np.repeat(found, sizes)).any():
            raise InputError(
                f"{library}'s {self.objective} takes one weight per group: give its rows equal weights, or whole "
                "numbers, or use an objective of apexrank such as 'retarget'"
            )
        return found


def grades(y: np.ndarray) -> np.ndarray:
    """Grades from 0 to 30: the labels themselves, or the ranks of the distinct labels, merged if there are more.

    Examples
    --------
    >>> grades(np.array([-0.5, 2.0, 1e9, 2.0])).tolist()
    [0.0, 1.0, 2.0, 1.0]
    """
    if ((y == np.floor(y)) & (y >= 0) & (y < _GRADES)).all():
        return y
    levels, number = np.unique(y, return_inverse=True)
    number = number if len(levels) <= _GRADES else number * _GRADES // len(levels)
    return number.astype(float)


def grow(library: str, task: Task) -> Trees:
    """Train the trees of a task, evaluating the held-out rows after each round."""
    try:
        module = import_module(library)
    except ImportError:
        extra = f'pip install "apexrank[{_EXTRAS[library]}]"'
        raise MissingExtraError(f"`library={library!r}` is not installed: {extra}") from None
    _check_params(library, module, task.ranker.library_params or {})
    trees, scores = {"lightgbm": _lightgbm, "xgboost": _xgboost, "catboost": _catboost}[library](module, task)
    # linear leaves, random forests and the like are not sums of leaves: check that the parsed trees score the same
    some = np.ascontiguousarray(task.lists.X[:: len(task.lists.X) // _COMPARED + 1])
    kept, theirs = Forest.of(trees, 0.0, task.missing).scores(some), scores(some)
    if not np.allclose(kept, theirs, rtol=1e-4, atol=1e-4 * (1 + np.abs(theirs).max())):
        raise InputError(
            f"`library_params={task.ranker.library_params!r}` gives scores that are not sums of leaves, which is what "
            "BoostedRanker keeps: leave them out, or use the library itself"
        )
    return trees


def _check_params(library: str, module: Any, given: Mapping[str, Any]) -> None:
    """Raise InputError for parameters that the ranker has itself, and for names unknown to LightGBM."""
    ask = bool(given) and library == "lightgbm"
    known = module.basic._ConfigAliases._get_all_param_aliases() if ask else {}
    canonical = {alias: name for name, aliases in known.items() for alias in (name, *aliases)}
    for name in given:
        meant = canonical.get(name, name)
        own = _OWN[library].get(meant, meant if meant in _SAME else None)
        if own is not None:
            raise InputError(
                f"`library_params` has {name!r}, which is the ranker's own parameter {own}: set that one"
            )
        if known and name not in canonical:
            raise InputError(
                f"`library_params` has {name!r}, which LightGBM does not know: correct or drop it"
            )


# ---------------------------------------------------------------- LightGBM


def _lightgbm(lightgbm: Any, task: Task) -> tuple[Trees, Scores]:
    ranker, lists, watch = task.ranker, task.lists, task.watch
    if task.is_theirs and lists.sizes.max() > LONGEST:
        raise InputError(
            f"LightGBM's {task.objective} takes lists of at most 10,000 rows, got {lists.sizes.max():,}: use an "
            "objective of apexrank such as 'retarget'"
        )
    options = LIGHTGBM_OPTIONS | {"metric": "None", "num_threads": threads_for(lists.X), "seed": task.seed}
    options |= {"num_leaves": ranker.max_leaves, "learning_rate": ranker.learning_rate}
    options |= {"min_data_in_leaf": task.fewest, "lambda_l2": ranker.l2, "feature_fraction": ranker.colsample}
    options |= {"bagging_fraction": ranker.subsample, "bagging_freq": int(ranker.subsample < 1)}
    options |= {"objective": task.objective if task.is_theirs else task.slopes()}
    options |= {"monotone_constraints": task.signs} if task.signs else {}
    options |= ranker.library_params or {}
    data = lightgbm.Dataset(lists.X, task.labels, categorical_feature=[*task.categories])
    if task.is_theirs:
        data.set_group(lists.sizes).set_weight(lists.weight)
    held: dict[str, Any] = {}
    if watch is not None:
        held["valid_sets"] = [lightgbm.Dataset(watch.X, watch.y, reference=data)]
        held["feval"] = lambda scores, _: ("measure", watch(scores), watch.greater_is_better)
        if watch.patience is not None:
            held["callbacks"] = [lightgbm.early_stopping(watch.patience, verbose=False)]
    try:
        booster = lightgbm.train(options, data, ranker.n_estimators, **held)
    except lightgbm.basic.LightGBMError as error:
        if "num_features" not in str(error):
            raise
        raise InputError(
            f"no column splits the rows (n_samples={len(lists.y)}) into two parts of at least {task.fewest}: lower "
            "`min_samples_leaf`, or give more rows"
        ) from None
    return lightgbm_trees(booster), partial(booster.predict, raw_score=True, num_iteration=-1)


def lightgbm_trees(booster: Any) -> Trees:
    """Parse the trees of a LightGBM booster."""
    return [[*_lightgbm_nodes(tree["tree_structure"])] for tree in booster.dump_model()["tree_info"]]


def _lightgbm_nodes(root: Mapping[str, Any]) -> Iterator[Node]:
    """Nodes of a tree in breadth-first order."""
    level, place = [root], 1
    while level:
        below: list[Mapping[str, Any]] = []
        for node in level:
            if "left_child" not in node:
                yield Node(0, 0.0, -1, -1, node["leaf_value"], node.get("leaf_count", 1))
                continue
            below += [node["left_child"], node["right_child"]]
            of_codes = node["decision_type"] == "=="
            threshold = 0.0 if of_codes else node["threshold"]
            # if training had no missing value, LightGBM treats one as 0
            to_left = node["default_left"] if node["missing_type"] == "NaN" else threshold >= 0
            to_left = to_left and not of_codes
            yield Node(
                node["split_feature"],
                threshold,
                place,
                place + 1,
                0.0,
                node["internal_count"],
                node["split_gain"],
                to_left,
                [int(code) for code in node["threshold"].split("||")] if of_codes else None,
            )
            place += 2
        level = below


# ---------------------------------------------------------------- XGBoost


def _xgboost(xgboost: Any, task: Task) -> tuple[Trees, Scores]:
    ranker, lists, watch = task.ranker, task.lists, task.watch
    options = {"tree_method": "hist", "grow_policy": "lossguide", "max_depth": 0, "base_score": 0.0}
    options |= {"verbosity": 0, "disable_default_eval_metric": 1, "nthread": threads_for(lists.X)}
    options |= {"max_leaves": ranker.max_leaves, "learning_rate": ranker.learning_rate, "seed": task.seed}
    options |= {"min_child_weight": 1 if task.is_theirs else task.fewest, "reg_lambda": ranker.l2}
    options |= {"subsample": ranker.subsample, "colsample_bytree": ranker.colsample}
    options |= {"objective": task.objective} if task.is_theirs else {}
    options |= {"monotone_constraints": tuple(task.signs)} if task.signs else {}
    options |= ranker.library_params or {}
    kinds = ["c" if j in task.categories else "q" for j in range(lists.X.shape[1])]
    make = partial(xgboost.DMatrix, feature_types=kinds, enable_categorical=True)
    data = make(lists.X, task.labels)
    if task.is_theirs:
        data.set_info(group=lists.sizes, weight=task.list_weights("XGBoost"))
    held: dict[str, Any] = {}
    if watch is not None:
        held = {"evals": [(make(watch.X, watch.y), "held")], "verbose_eval": False}
        held["custom_metric"] = lambda scores, _: ("measure", watch(scores))
        if watch.patience is not None:
            stop = xgboost.callback.EarlyStopping(rounds=watch.patience, maximize=watch.greater_is_better)
            held["callbacks"] = [stop]
    objective = None if task.is_theirs else task.slopes()
    booster = xgboost.train(options, data, ranker.n_estimators, obj=objective, **held)
    return xgboost_trees(booster), lambda X: booster.predict(make(X), output_margin=True)


def xgboost_trees(booster: Any) -> Trees:
    """Parse the trees of an XGBoost booster, whose thresholds are in single precision."""
    learnt = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
    if learnt["name"] != "gbtree":
        raise InputError(
            f"trees are read from XGBoost's booster 'gbtree', got {learnt['name']!r}: choose that one"
        )
    return [[*_xgboost_nodes(tree)] for tree in learnt["model"]["trees"]]


def _xgboost_nodes(tree: Mapping[str, Any]) -> Iterator[Node]:
    """Nodes of a tree, with children after their parents, though not in breadth-first order."""
    parts = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
    codes = {node: tree["categories"][start : start + size] for node, start, size in parts}
    names = ["left_children", "right_children", "split_indices", "split_conditions"]
    names += ["default_left", "sum_hessian", "loss_changes"]
    columns = zip(*(tree[name] for name in names), strict=True)
    for node, (left, right, feature, number, missing_left, rows, gain) in enumerate(columns):
        if left < 0:
            yield Node(0, 0.0, -1, -1, float(np.float32(number)), rows)
        elif node in codes:  # listed codes go right
            yield Node(feature, 0.0, right, left, 0.0, rows, gain, bool(not missing_left), codes[node])
        else:
            below = np.nextafter(np.float32(number), np.float32(-np.inf))
            yield Node(feature, single(below), left, right, 0.0, rows, gain, bool(missing_left))


def single(threshold: float) -> float:
    """Largest double that rounds to at most ``threshold`` in single precision.

    Examples
    --------
    >>> t = single(0.5)
    >>> bool(np.float32(t) <= 0.5 < np.float32(np.nextafter(t, 1)))
    True
    """
    low = np.float32(threshold)
    high = np.nextafter(low, np.float32(np.inf))
    middle = (float(low) + float(high)) / 2
    return middle if np.float32(middle) == low else float(np.nextafter(middle, -np.inf))


# ---------------------------------------------------------------- CatBoost


class _CatBoostSlopes:
    """Gradients of a listwise objective for CatBoost, which asks for a few rows at a time.

    A custom metric, however, receives the scores of all rows after each round. This class serves as both: as the metric
    it records the scores, and as the objective it looks up the gradients at these scores. Labels are row numbers.
    CatBoost maximises, so signs are reversed.
    """

    def __init__(self, slopes: Slopes, n: int) -> None:
        self.slopes, self.scores = slopes, np.zeros(n)
        self.found = np.column_stack(slopes(self.scores))

    def calc_ders_range(self, approxes: Any, targets: Any, weights: Any) -> np.ndarray:
        rows = np.asarray(targets).astype(np.int64)
        if not np.array_equal(self.scores[rows], approxes):
            raise InputError(
                "CatBoost asks for gradients at scores that it did not provide: use another library"
            )
        return -self.found[rows]

    def evaluate(self, approxes: Any, targets: Any, weights: Any) -> tuple[float, float]:
        self.scores[np.asarray(targets).astype(np.int64)] = approxes[0]
        self.found = np.column_stack(self.slopes(self.scores))
        return 0.0, 1.0

    def is_max_optimal(self) -> bool:
        return True

    def get_final_error(self, error: float, weight: float) -> float:
        return error


def _catboost(catboost: Any, task: Task) -> tuple[Trees, Scores]:
    ranker, lists, watch, n = task.ranker, task.lists, task.watch, len(task.lists.y)
    # one-hot encode categories: CatBoost's own encoding depends on more than the row itself
    codes = {j: range(count) for j, count in task.categories.items()}
    columns = [(j, code) for j in range(lists.X.shape[1]) for code in codes.get(j, [None])]

    def coded(X: np.ndarray) -> np.ndarray:
        return np.column_stack([X[:, j] if code is None else X[:, j] == code for j, code in columns])

    X = coded(lists.X)
    options = {"boosting_type": "Plain", "random_strength": 0, "has_time": True, "random_seed": task.seed}
    options |= {"allow_writing_files": False, "verbose": False, "thread_count": threads_for(X)}
    options |= {"iterations": ranker.n_estimators, "learning_rate": ranker.learning_rate}
    options |= {"depth": max(1, round(np.log2(ranker.max_leaves))), "l2_leaf_reg": ranker.l2}
    options |= {"rsm": ranker.colsample, "bootstrap_type": "No"}
    options |= {"subsample": ranker.subsample, "bootstrap_type": "Bernoulli"} if ranker.subsample < 1 else {}
    options |= {"monotone_constraints": [task.signs[j] for j, _ in columns]} if task.signs else {}
    if task.is_theirs:
        weight = task.list_weights("CatBoost")
        weight = None if weight is None else np.repeat(weight, lists.sizes)
        pool = catboost.Pool(X, task.labels, group_id=lists.groups, group_weight=weight)
        options |= {"loss_function": task.objective}
    elif n > _EXACT or task.signs:
        raise InputError(
            f"CatBoost takes objectives of apexrank without `monotonic_cst`, for at most {_EXACT:,} rows: use another "
            "library, or one of CatBoost's own objectives such as 'YetiRank'"
        )
    else:
        pool, both = catboost.Pool(X, np.arange(float(n))), _CatBoostSlopes(task.slopes(), n)
        options |= {"loss_function": both, "eval_metric": both}
        options |= {"leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1}
    with warnings.catch_warnings():  # CatBoost warns that numba cannot compile the objective
        warnings.simplefilter("ignore")
        booster = catboost.CatBoost(options | dict(ranker.library_params or {})).fit(pool)
    trees = catboost_trees(booster, columns)
    if watch is not None:
        forest = Forest.of(trees, 0.0, task.missing)
        for scores in forest.staged(np.ascontiguousarray(watch.X), range(1, len(trees) + 1)):
            watch(scores)
    return trees, lambda X: booster.predict(coded(X), prediction_type="RawFormulaVal")


def catboost_trees(booster: Any, columns: Sequence[tuple[int, int | None]]) -> Trees:
    """Parse the symmetric trees of a CatBoost model; ``columns`` are features, or one-hot codes of features."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trees.json"
        booster.save_model(str(path), format="json")
        model = json.loads(path.read_text())
    return [_catboost_nodes(tree, columns) for tree in model["oblivious_trees"]]


def _catboost_nodes(tree: Mapping[str, Any], columns: Sequence[tuple[int, int | None]]) -> list[Node]:
    """Nodes of a tree in breadth-first order: the last split is the highest bit of the leaf index."""
    values, rows = (np.array(tree[name], dtype=float) for name in ("leaf_values", "leaf_weights"))
    splits = tree["splits"] or []  # None if no sampled column helps
    levels = [np.stack([rows, rows * values])]  # sums of both in each node
    for _ in splits:
        levels.insert(0, levels[0].reshape(2, -1, 2).sum(axis=2))
    squares = [total**2 / np.maximum(count, 1e-9) for count, total in levels]  # explained sum of squares
    nodes: list[Node] = []
    for depth, split in enumerate(reversed(splits)):
        feature, code = columns[split["float_feature_index"]]
        gains = squares[depth + 1].reshape(-1, 2).sum(axis=1) - squares[depth]
        for count, gain in zip(levels[depth][0], gains, strict=True):
            left, right = 2 * len(nodes) + 1, 2 * len(nodes) + 2
            if code is None:  # missing values are below all others
                nodes.append(Node(feature, single(split["border"]), left, right, 0.0, count, gain, True))
            else:
                nodes.append(Node(feature, 0.0, right, left, 0.0, count, gain, inside=[code]))
    return nodes + [Node(0, 0.0, -1, -1, *leaf) for leaf in zip(values, rows, strict=True)]
