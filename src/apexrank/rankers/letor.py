"""Linear, additive and tree rankers fitted on folds of the queries and stacked into one ranker."""

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
from apexrank.rankers.libraries import LONGEST, grades
from apexrank.rankers.retarget import MonotoneRetargeting
from apexrank.validation import check_choice, check_count, check_finite, segment

TREES = ("lambdarank", "rank_xendcg", "retarget")
PARTS = ("linear", "additive", *TREES)
ALPHAS = {"linear": (10.0, 1.0, 0.1, 0.01, 0.001), "additive": (1.0, 0.1, 0.01)}
ROUNDS = (25, 50, 100, 200)
LEAVES, RATE, COLUMNS = 7, 0.1, 0.3
STACKED = 0.01  # ridge penalty of the weights of the parts
# far more exact than the choice of alpha is; Newton's method costs tens of times as much on thousands of short lists
CONVEX: dict[str, Any] = {"solver": "lbfgs", "tol": 1e-3}


class Views(NamedTuple):
    """The features as given, and standardised inside each query."""

    raw: np.ndarray
    within: np.ndarray | None

    def __getitem__(self, rows: Any) -> Views:  # type: ignore[override]
        return Views(self.raw[rows], None if self.within is None else self.within[rows])

    def of(self, part: str) -> np.ndarray:
        """Features that a part is fitted on: linear scores compare documents of a query, trees see both."""
        if self.within is None:
            return np.nan_to_num(self.raw) if part == "linear" else self.raw
        if part == "linear":
            return np.nan_to_num(self.within)
        return self.raw if part == "additive" else np.column_stack([self.raw, self.within])


@dataclass(eq=False, repr=False)
class LetorRanker(GradedScore, BaseEstimator):
    """Stacked ranker for learning to rank: linear and additive retargeting, and boosted trees with three objectives.

    The queries are split into ``n_folds`` folds, and every part is fitted once without each of them. The out-of-fold scores
    of a part choose its settings (penalty, number of trees) by NDCG. The out-of-fold scores of all parts, each in units
    of its standard deviation inside queries, get weights of at least 0 by monotone retargeting. The score of a row is
    the weighted mean over parts and folds, so that each part is also bagged over queries. Nothing is fitted again on
    all queries.

    Linear scores are linear in features standardised inside each query (mean 0, deviation 1). The trees see these
    features beside those given, the additive part only those given.

    Parameters
    ----------
    parts : sequence of str, optional
        Some of "linear" (:class:`MonotoneRetargeting`), "additive" (:class:`AdditiveRetargeting`), and
        "lambdarank", "rank_xendcg" and "retarget", which are trees with that objective (:class:`BoostedRanker` with
        LightGBM). All by default; without LightGBM the first two, with a warning. Lists of more than 10,000 rows are
        left to the others by default, as "lambdarank" and "rank_xendcg" do not take them.
    query_features : bool
        Whether features are standardised inside queries. Then ``predict`` needs the groups of the rows, each with all
        of its documents, where ``fit`` had groups; without groups mean and deviation of the training rows are taken.
    n_folds : int
        Number of folds. Fewer than ``n_folds`` groups are not split as groups: then rows are.
    n_models : int, optional
        Fits of each part, one fold after the other and then again with other folds; ``n_folds`` by default.
    time_budget : float, optional
        Seconds after which no further model is fitted: the models end, at two or more, where one more is expected to
        take longer. The time of two models is taken in any case, and results depend on the machine.
    random_state : int, RandomState or None
        Of the folds and the trees.

    Attributes
    ----------
    weights_ : dict of float
        Weight of each part, in units of its scores' deviation inside queries; they sum to 1.
    settings_ : dict of float
        Penalty or number of trees that was chosen for each part.
    oof_ndcg_ : dict of float
        Out-of-fold NDCG of each part with this setting, and of all parts together as "stacked". The values have
        chosen settings and weights, so they are a little too high.
    models_ : list of dict
        Fitted rankers by part, one dict for each fit; :class:`MonotoneRetargeting` has ``coef_``,
        :class:`AdditiveRetargeting` ``shapes_``, :class:`BoostedRanker` ``forest_``.
    units_ : dict of float
        Deviation of the scores of each part.

    Notes
    -----
    Missing values (NaN) are mean values for the linear part, have an effect of their own in the additive one, and go
    where they fit best in the trees, which refuse them in columns that had none in training.

    Examples
    --------
    >>> from apexrank.datasets import make_letor_example
    >>> queries = make_letor_example(n_queries=60, random_state=0)
    >>> X, y, groups = queries.data, queries.target, queries.groups
    >>> ranker = LetorRanker(parts=["linear", "additive"]).fit(X, y, groups=groups)
    >>> sorted(ranker.weights_), round(sum(ranker.weights_.values()), 6)
    (['additive', 'linear'], 1.0)
    >>> ranker.predict(X, groups=groups).shape == y.shape
    True
    """

    parts: Sequence[str] | None = None
    _: KW_ONLY
    query_features: bool = True
    n_folds: int = 5
    n_models: int | None = None
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
        """Fit on rows X with relevance y, larger is better, and one group id per row (one list by default).

        ``sample_weight`` counts as repetitions of rows, as far as :class:`BoostedRanker` allows.
        """
        start = perf_counter()
        self._check()
        data = read_rows(self, X, y, sample_weight, groups, binary=False)
        lists = segment(groups, len(data.labels)).of_rows()
        weight = data.weight
        kept = np.ones(len(lists), dtype=bool) if weight is None else weight > 0
        rows, lists, weight = data.X[kept], lists[kept], None if weight is None else weight[kept]
        if len(rows) < 2:
            raise InputError(f"two rows or more are needed, got n_samples = {len(rows)}")
        y = from_zero(data.labels[kept])
        self._learn_scale(rows, weight, groups is not None)
        views = self._views(rows, lists, weight)
        parts = self._chosen_parts(np.bincount(lists).max())
        found = self._fit_models(views, y, weight, lists, parts, start)
        self._stack(found, y, weight, lists)
        return self

    def predict(self, X: ArrayLike, *, groups: ArrayLike | None = None) -> np.ndarray:
        """Ranking score of each row: higher means nearer to the top of its group.

        ``groups`` are needed where ``fit`` had groups, unless ``query_features`` is False.
        """
        rows = checked_rows(self, X)
        if self.query_features and self._scale is None and groups is None:
            raise InputError("groups are missing: this LetorRanker standardises features inside each query")
        views = self._views(rows, segment(groups, len(rows)).of_rows(), None)
        total = np.zeros(len(rows))
        for part, weight in self.weights_.items():
            if weight > 0:
                own = views.of(part)
                scores = sum(models[part].predict(own) for models in self.models_) / len(self.models_)
                total += weight / self.units_[part] * scores
        return total

    def _as_numbers(self, X: Any, reset: bool) -> Any:
        """The rows as they are, unless they are sparse."""
        if sparse.issparse(X):
            raise InputError("sparse input is not supported by LetorRanker: give X.toarray()")
        return X

    def _in_groups(self, X: ArrayLike, groups: ArrayLike | None) -> np.ndarray:
        return self.predict(X, groups=groups)

    def _check(self) -> None:
        check_count("n_folds", self.n_folds, 2)
        if self.n_models is not None:
            check_count("n_models", self.n_models, 2)
        if self.time_budget is not None:
            check_finite("time_budget", self.time_budget, 0)
        for part in self.parts or ():
            check_choice("part", part, PARTS)

    def _chosen_parts(self, longest: int) -> list[str]:
        """The parts to fit on lists of at most ``longest`` rows."""
        if self.parts is not None:
            return list(dict.fromkeys(self.parts)) or list(PARTS)
        if find_spec("lightgbm") is None:
            warnings.warn(
                'LetorRanker has no trees without LightGBM: pip install "apexrank[boosting]"', stacklevel=3
            )
            return [part for part in PARTS if part not in TREES]
        return [part for part in PARTS if longest <= LONGEST or part not in TREES[:2]]

    def _learn_scale(self, rows: np.ndarray, weight: np.ndarray | None, in_queries: bool) -> None:
        self._scale = None if in_queries or not self.query_features else learn_standard(rows, weight)

    def _views(self, rows: np.ndarray, lists: np.ndarray, weight: np.ndarray | None) -> Views:
        if not self.query_features:
            return Views(rows, None)
        if self._scale is not None:
            return Views(rows, rescaled(rows, *self._scale))
        return Views(rows, standardised(rows, segment(lists, len(rows)), weight))

    def _fit_models(
        self,
        views: Views,
        y: np.ndarray,
        weight: np.ndarray | None,
        lists: np.ndarray,
        parts: list[str],
        start: float,
    ) -> dict[str, np.ndarray]:
        """Fit every part without one fold after the other; mean out-of-fold scores of its settings, nan for none."""
        random = check_random_state(self.random_state)
        self.models_ = []
        sums, counts = {part: np.zeros((len(settings(part)), len(y))) for part in parts}, np.zeros(len(y))
        for held in self._held_out(views.raw, y, lists, random):
            done, elapsed = len(self.models_), perf_counter() - start
            if done >= 2 and self.time_budget is not None and elapsed * (done + 1) / done > self.time_budget:
                break
            own = None if weight is None else weight[~held]
            models = {}
            for part in parts:
                seed = int(random.randint(2**31 - 1))
                models[part] = fit_path(part, views[~held], y[~held], own, lists[~held], seed)
                sums[part][:, held] += path_scores(models[part], part, views[held])
            counts += held
            self.models_.append(models)
        return {
            part: np.divide(s, counts, out=np.full_like(s, np.nan), where=counts > 0)
            for part, s in sums.items()
        }

    def _held_out(
        self, rows: np.ndarray, y: np.ndarray, lists: np.ndarray, random: np.random.RandomState
    ) -> Iterator[np.ndarray]:
        """Masks of the folds, ``n_models`` in all."""
        unit = lists
        if len(np.unique(lists)) < self.n_folds:
            # equal rows stay together, so that rows of weight 2 are two rows here as well
            unit = np.unique(np.column_stack([y, rows]), axis=0, return_inverse=True)[1].ravel()
        n = int(unit.max()) + 1
        folds = min(self.n_folds, n)
        if folds < 2:
            raise InputError("all rows are equal (n_samples = 1 different row): nothing is to be learnt")
        for model in range(self.n_models or self.n_folds):
            if model % folds == 0:
                fold = random.permutation(n) % folds
            yield fold[unit] == model % folds

    def _stack(
        self, found: dict[str, np.ndarray], y: np.ndarray, weight: np.ndarray | None, lists: np.ndarray
    ) -> None:
        """Choose the settings of each part, and weigh the parts, by out-of-fold scores."""
        known = ~np.isnan(next(iter(found.values()))[0])
        options = {
            "groups": lists[known],
            "sample_weight": None if weight is None else weight[known],
        }
        labels, columns = grades(y)[known], []
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
            weights = quiet_fit(stacker, S, y[known], **options).coef_
        weights = weights if weights.any() else np.ones(len(found))
        self.weights_ = dict(zip(found, (weights / weights.sum()).tolist(), strict=True))
        self.oof_ndcg_["stacked"] = _ndcg(labels, S @ weights, options)


def settings(part: str) -> Sequence[float]:
    """Penalties or numbers of trees to choose from."""
    return ALPHAS.get(part, ROUNDS)


def fit_path(
    part: str, views: Views, y: np.ndarray, weight: np.ndarray | None, lists: np.ndarray, seed: int
) -> list[Any]:
    """Fit one part with all of its settings: a ranker for each, or one of trees for all."""
    rows, options = views.of(part), {"sample_weight": weight, "groups": lists}
    if part in TREES:
        trees = BoostedRanker(
            part,
            n_estimators=max(ROUNDS),
            learning_rate=RATE,
            max_leaves=LEAVES,
            colsample=COLUMNS,
            random_state=seed,
        )
        return [trees.fit(rows, y, **options)]
    kind = MonotoneRetargeting if part == "linear" else AdditiveRetargeting
    return [quiet_fit(kind(alpha=alpha, **CONVEX), rows, y, **options) for alpha in ALPHAS[part]]


def path_scores(path: list[Any], part: str, views: Views) -> np.ndarray:
    """Scores of the rows with each setting of a part."""
    rows = views.of(part)
    return path[0].staged(rows, ROUNDS) if part in TREES else np.array([each.predict(rows) for each in path])


def chosen(path: list[Any], part: str, best: int) -> Any:
    """The ranker with one of the settings."""
    if part not in TREES:
        return path[best]
    forest = path[0].forest_
    path[0].forest_ = forest._replace(roots=forest.roots[: ROUNDS[best]])
    return path[0]


def quiet_fit(ranker: Any, X: np.ndarray, y: np.ndarray, **options: Any) -> Any:
    """Fit without warnings that a minimum was not reached: the settings are compared by what they rank."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ranker.fit(X, y, **options)


def deviation(scores: np.ndarray, *, groups: np.ndarray, sample_weight: np.ndarray | None) -> float:
    """Standard deviation of scores around the means of their groups; 1 where all are equal.

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
