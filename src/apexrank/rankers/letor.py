"""Stacking of linear, additive and tree rankers fitted on folds of the queries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from importlib.util import find_spec
from time import perf_counter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from apexrank.errors import InputError
from apexrank.metrics import ndcg
from apexrank.penalties import NonNegative, Ridge
from apexrank.preprocessing.query import learn_standard, rescaled, standardised
from apexrank.rankers.additive import AdditiveRetargeting
from apexrank.rankers.base import GradedScore, checked_rows, from_zero, read_rows
from apexrank.rankers.boosted import BoostedRanker
from apexrank.rankers.compose import LinearRanker
from apexrank.rankers.libraries import LONGEST, THEIRS, grades
from apexrank.rankers.retarget import MonotoneRetargeting
from apexrank.validation import check_choice, check_count, check_finite, segment

TREES = {"lambdarank": 7, "rank_xendcg": 31, "retarget": 31}  # leaves per tree
PARTS = ("linear", "additive", *TREES)
ALPHAS = {"linear": (10.0, 1.0, 0.1, 0.01, 0.001), "additive": (1.0, 0.1, 0.01)}
ROUNDS = (25, 50, 100, 200)
GROWN: dict[str, Any] = {"n_estimators": ROUNDS[-1], "learning_rate": 0.1}
# Fraction of columns sampled per tree, and their minimum number: trees on one or two columns miss interactions.
COLUMNS, FEWEST = 0.3, 8
STACKED = 0.01  # ridge penalty of the weights of the parts
# Alpha is chosen from powers of ten, so a loose tolerance is enough; L-BFGS reaches it before Newton has a Hessian.
CONVEX: dict[str, Any] = {"solver": "lbfgs", "tol": 1e-3}


class Views(NamedTuple):
    """Features of the linear part, standardised over all rows, and those of the other parts."""

    linear: np.ndarray
    others: np.ndarray

    def rows(self, chosen: np.ndarray) -> Views:
        """Views of selected rows."""
        return Views(self.linear[chosen], self.others[chosen])

    def of(self, part: str) -> np.ndarray:
        """Features for a part."""
        return self.linear if part == "linear" else self.others


@dataclass(eq=False, repr=False)
class LetorRanker(GradedScore, BaseEstimator):
    """Stacked ranker for graded relevance: linear and additive retargeting, and boosted trees with three objectives.

    The queries are split into ``n_folds`` folds, and every part is fitted once with each fold left out. The setting of
    a part (penalty or number of trees) is chosen by the NDCG of its out-of-fold scores. These scores, divided by their
    standard deviation within queries, are combined with non-negative weights fitted by monotone retargeting. The score
    of a row is the weighted mean over parts and folds, so each part is also bagged over queries. Nothing is refitted on
    all queries.

    Parameters
    ----------
    parts : sequence of str, optional
        Any of "linear" (:class:`MonotoneRetargeting`), "additive" (:class:`AdditiveRetargeting`), and "lambdarank",
        "rank_xendcg" and "retarget", which are trees with that objective (:class:`BoostedRanker` with LightGBM). All by
        default; without LightGBM the first two, with a warning. If a list has more than 10,000 rows, the default omits
        "lambdarank" and "rank_xendcg", which do not support it.
    query_features : bool
        Whether the additive part and the trees also use the features standardised within each query (mean 0, deviation
        1), if ``fit`` has groups. ``predict`` then needs the groups of the rows, each with all of its documents.
    n_folds : int
        Number of folds. If there are fewer groups than folds, rows are split instead.
    time_budget : float, optional
        Seconds after which no further fold is started: fitting stops when the next fold is expected to exceed the
        budget, but not before two folds are done. With a budget the result depends on the speed of the machine.
    random_state : int, RandomState or None
        Seed of the folds and the trees.

    Attributes
    ----------
    weights_ : dict of float
        Weight of each part, in units of the standard deviation of its scores within queries; they sum to 1.
    settings_ : dict of float
        Penalty or number of trees chosen for each part.
    oof_ndcg_ : dict of float
        Out-of-fold NDCG of each part with its chosen setting, and of the stack as "stacked". The settings and weights
        were chosen on the same scores, so the values are slightly optimistic.
    models_ : list of dict
        Fitted rankers by part, one dict per fold.
    units_ : dict of float
        Standard deviation of the out-of-fold scores of each part within queries.

    Notes
    -----
    The linear part uses standardised features. Missing values (NaN) are replaced by the mean there, have their own
    effect in the additive part, and go to the side that fits best in the trees, which reject them in columns without
    missing values in training.

    Examples
    --------
    >>> from apexrank.datasets import make_letor_example
    >>> queries = make_letor_example(n_queries=60, random_state=0)
    >>> X, y, groups = queries.data, queries.target, queries.groups
    >>> ranker = LetorRanker(parts=["linear", "additive"]).fit(X, y, groups=groups)
    >>> sorted(ranker.weights_), round(sum(ranker.weights_.values()), 6)
    (['additive', 'linear'], 1.0)
    >>> ranker.score(X, y, groups=groups) > 0.9
    True
    """

    parts: Sequence[str] | None = None
    _: KW_ONLY
    query_features: bool = True
    n_folds: int = 5
    time_budget: float | None = None
    random_state: Any = 0

    takes_device_arrays = False
    _checks: ClassVar[dict[str, Any]] = {
        "accept_sparse": False,
        "dtype": np.float64,
        "ensure_all_finite": "allow-nan",
        "order": "C",
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit on rows X with relevance y (larger is better) and one group id per row (one list by default).

        ``sample_weight`` counts as repetitions of rows, as far as :class:`BoostedRanker` allows.
        """
        start = perf_counter()
        self._check()
        data = read_rows(self, X, y, sample_weight, groups, binary=False)
        kept = np.ones(len(data.labels), dtype=bool) if data.weight is None else data.weight > 0
        if kept.sum() < 2:
            raise InputError(f"two rows or more are needed, got n_samples = {kept.sum()}")
        lists = segment(segment(groups, len(kept)).of_rows()[kept], kept.sum()).of_rows()
        weight = None if data.weight is None else data.weight[kept]
        rows, y = data.X[kept], from_zero(data.labels[kept])
        self._scale = learn_standard(rows, weight)
        parts = self._chosen_parts(np.bincount(lists).max())
        self._inside = self.query_features and groups is not None and parts != ["linear"]
        train = Training(self._views(rows, lists, weight), y, weight, lists)
        self._stack(self._fit_folds(train, parts, start), train)
        return self

    def predict(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> np.ndarray:
        """Ranking score of each row: higher means nearer to the top of its group.

        ``groups`` are used only with ``query_features``, and are required then if ``fit`` had groups.
        """
        rows = checked_rows(self, X)
        if self._inside and groups is None:
            raise InputError(
                "`groups` are missing: this LetorRanker standardises features inside each query (`query_features`)"
            )
        views = self._views(rows, segment(groups, len(rows)).of_rows(), None)
        total = np.zeros(len(rows))
        for part, weight in self.weights_.items():
            if weight > 0:
                scores = np.mean([models[part].predict(views.of(part)) for models in self.models_], axis=0)
                total += weight / self.units_[part] * scores
        return total

    def _as_numbers(self, X: Any, reset: bool) -> Any:
        if sparse.issparse(X):
            raise InputError("sparse input is not supported by LetorRanker: give X.toarray()")
        return X

    def _in_groups(self, X: ArrayLike, groups: ArrayLike | None) -> np.ndarray:
        return self.predict(X, groups=groups)

    def _check(self) -> None:
        check_count("n_folds", self.n_folds, 2)
        if self.time_budget is not None:
            check_finite("time_budget", self.time_budget, 0)
        if self.parts is not None and not len(self.parts):
            raise InputError(f"`parts` is empty: give some of {', '.join(PARTS)}")
        for part in self.parts or ():
            check_choice("part", part, PARTS)

    def _chosen_parts(self, longest: int) -> list[str]:
        """Parts to fit, given the length of the longest list."""
        if self.parts is not None:
            return list(dict.fromkeys(self.parts))
        if find_spec("lightgbm") is None:
            warnings.warn(
                'LetorRanker has no trees without LightGBM: pip install "apexrank[boosting]"', stacklevel=3
            )
            return [part for part in PARTS if part not in TREES]
        return [part for part in PARTS if longest <= LONGEST or part not in THEIRS["lightgbm"]]

    def _views(self, rows: np.ndarray, lists: np.ndarray, weight: np.ndarray | None) -> Views:
        inside = [standardised(rows, segment(lists, len(rows)), weight)] if self._inside else []
        return Views(np.nan_to_num(rescaled(rows, *self._scale)), np.column_stack([rows, *inside]))

    def _fit_folds(self, train: Training, parts: list[str], start: float) -> dict[str, np.ndarray]:
        """Fit every part without each fold; return out-of-fold scores, settings by rows, nan where not computed."""
        random = check_random_state(self.random_state)
        self.models_: list[dict[str, Any]] = []
        found = {part: np.full((len(settings(part)), len(train.y)), np.nan) for part in parts}
        for held in self._held_out(train, random):
            done, elapsed = len(self.models_), perf_counter() - start
            if done >= 2 and self.time_budget is not None and elapsed * (done + 1) / done > self.time_budget:
                break
            models = {}
            for part in parts:
                models[part] = fit_path(part, train.rows(~held), int(random.randint(2**31 - 1)))
                found[part][:, held] = path_scores(models[part], part, train.views.rows(held))
            self.models_.append(models)
        return found

    def _held_out(self, train: Training, random: np.random.RandomState) -> Iterator[np.ndarray]:
        """Masks of the folds."""
        unit = train.lists
        if unit.max() + 1 < self.n_folds:
            # keep equal rows in one fold, so that a row of weight 2 behaves like two rows
            rows = np.column_stack([train.y, train.views.others])
            unit = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        n = int(unit.max()) + 1
        if n < 2:
            raise InputError("all rows are equal (n_samples = 1 different row): there is nothing to learn")
        n_folds = min(self.n_folds, n)
        fold = (random.permutation(n) % n_folds)[unit]
        return (fold == k for k in range(n_folds))

    def _stack(self, found: dict[str, np.ndarray], train: Training) -> None:
        """Choose the setting and the weight of each part from the out-of-fold scores."""
        known = ~np.isnan(next(iter(found.values()))[0])
        train = train.rows(known)
        options: dict[str, Any] = {"groups": train.lists, "sample_weight": train.weight}
        labels, columns = grades(train.y), []
        self.settings_, self.oof_ndcg_, self.units_ = {}, {}, {}
        for part, scores in found.items():
            values = [_ndcg(labels, row, options) for row in scores[:, known]]
            best = int(np.argmax(values))
            self.settings_[part], self.oof_ndcg_[part] = settings(part)[best], values[best]
            for models in self.models_:
                models[part] = chosen(models[part], part, best)
            own = scores[best, known]
            self.units_[part] = deviation(own, **options)
            columns.append(own / self.units_[part])
        S = np.column_stack(columns)
        weights = np.ones(len(found))
        if len(found) > 1 and len(np.unique(labels)) > 1:
            stacker = LinearRanker("retarget", NonNegative(Ridge(STACKED)))
            weights = quiet_fit(stacker, S, train.y, **options).coef_
            weights = weights if weights.any() else np.ones(len(found))
        weights = weights / weights.sum()
        self.weights_ = dict(zip(found, weights.tolist(), strict=True))
        self.oof_ndcg_["stacked"] = _ndcg(labels, S @ weights, options)


class Training(NamedTuple):
    """Training rows: features, relevance, weights and list indices."""

    views: Views
    y: np.ndarray
    weight: np.ndarray | None
    lists: np.ndarray

    def rows(self, chosen: np.ndarray) -> Training:
        """Select rows by index or mask."""
        weight = None if self.weight is None else self.weight[chosen]
        return Training(self.views.rows(chosen), self.y[chosen], weight, self.lists[chosen])


def settings(part: str) -> Sequence[float]:
    """Candidate penalties or numbers of trees."""
    return ALPHAS.get(part, ROUNDS)


def fit_path(part: str, train: Training, seed: int) -> list[Any]:
    """Fit a part with all of its settings: one ranker per setting, or a single tree ranker for all."""
    rows, y = train.views.of(part), train.y
    options: dict[str, Any] = {"sample_weight": train.weight, "groups": train.lists}
    if part in TREES:
        share = min(1.0, max(COLUMNS, FEWEST / rows.shape[1]))
        grown = GROWN | {"max_leaves": TREES[part], "colsample": share, "random_state": seed}
        return [BoostedRanker(part, **grown).fit(rows, y, **options)]
    kind = MonotoneRetargeting if part == "linear" else AdditiveRetargeting
    return [quiet_fit(kind(alpha=alpha, **CONVEX), rows, y, **options) for alpha in ALPHAS[part]]


def path_scores(path: list[Any], part: str, views: Views) -> np.ndarray:
    """Scores of the rows with each setting of a part."""
    rows = views.of(part)
    return path[0].staged(rows, ROUNDS) if part in TREES else np.array([each.predict(rows) for each in path])


def chosen(path: list[Any], part: str, best: int) -> Any:
    """Ranker with the chosen setting."""
    if part not in TREES:
        return path[best]
    forest = path[0].forest_
    path[0].forest_ = forest._replace(roots=forest.roots[: ROUNDS[best]])
    return path[0]


def quiet_fit(ranker: Any, X: np.ndarray, y: np.ndarray, **options: Any) -> Any:
    """Fit and ignore convergence warnings: the settings are compared by their rankings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ranker.fit(X, y, **options)


def deviation(scores: np.ndarray, *, groups: np.ndarray, sample_weight: np.ndarray | None) -> float:
    """Standard deviation of scores around their group means; 1 if all are equal.

    Examples
    --------
    >>> deviation(np.array([1.0, 3.0, 7.0, 5.0]), groups=np.array([0, 0, 1, 1]), sample_weight=None)
    1.0
    """
    each = np.ones(len(scores)) if sample_weight is None else sample_weight
    mean = np.bincount(groups, each * scores) / np.maximum(np.bincount(groups, each), 1e-300)
    return float(np.sqrt(np.average((scores - mean[groups]) ** 2, weights=each))) or 1.0


def _ndcg(labels: np.ndarray, scores: np.ndarray, options: dict[str, Any]) -> float:
    return float(ndcg(labels, scores, **options)) if labels.any() else 0.0
