"""Choice of p and alpha by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import _safe_indexing, indexable
from threadpoolctl import threadpool_limits

from apexrank.errors import InputError
from apexrank.metrics import get_scorer
from apexrank.parameters import names, validate_parameter_constraints
from apexrank.problem.block_design import BlockTraining
from apexrank.problem.blocks import Blocks
from apexrank.problem.design import Training
from apexrank.progress import steps
from apexrank.rankers.base import (
    GivenScores,
    LinearEstimator,
    PositiveLabelWarning,
    SeparableWarning,
    TwoClasses,
    fold_weight,
    measure,
    read_rows,
)
from apexrank.rankers.push import DEFAULT_PS, PNormPush, fit_path
from apexrank.validation import check_folds

ALPHA_FACTORS = (10.0, 1.0, 0.1)  # multiples of the automatic alpha, strongest first
SMALL = 1e6  # entries of X below which fits use one BLAS thread


@dataclass(eq=False, repr=False)
class PNormPushCV(TwoClasses, LinearEstimator):
    """P-Norm Push with p and alpha chosen by cross-validation on a top-of-list metric.

    In each fold the fits follow p from small to large, each starting from the previous one. The pair with the best mean
    score is refitted on all rows.

    X may be anything that :class:`PNormPush` accepts. In memory, a fold is a copy of its rows. Blocks, Dask collections
    and arrays on a device stay where they are, and the held-out rows get weight 0; labels, folds and scores then take
    about 50 bytes per row.

    Parameters
    ----------
    ps : sequence of float
        In increasing order, because each fit starts from the previous one.
    alphas : "auto" or sequence of float
        The grid; "auto" is 10, 1 and 0.1 times the alpha of ``PNormPush(alpha="auto")``. Among pairs with equal scores
        the one with the largest alpha is chosen.
    scoring : str or callable
        A name accepted by :func:`apexrank.metrics.get_scorer` (``"partial_auc"``, ``"precision_at_100"``,
        ``"tpr_at_fpr_0.01"``, or one of scikit-learn's such as ``"roc_auc"``) or ``scorer(estimator, X, y)``. It
        receives the ``sample_weight`` and ``groups`` of the held-out rows if ``fit`` has them. A callable needs the
        rows in memory, and fits run on copies of them.
    cv : int, splitter or iterable, default 5
        Stratified folds; with ``groups``, whole groups are kept together.
    l1_ratio, solver, max_iter, tol, verbose
        As in :class:`PNormPush`.
    n_jobs : int, optional
        Number of processes for fits on copies of the rows.

    Attributes
    ----------
    p_, alpha_, best_score_ : float
        The chosen pair and its mean score over the folds.
    cv_results_ : dict of arrays
        ``p``, ``alpha``, ``mean_test_score``, ``std_test_score``, ``split0_test_score`` …: one entry per pair.
    best_estimator_ : PNormPush
        Ranker fitted on all rows; its ``coef_``, ``intercept_``, ``classes_`` and certificates are copied here.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = PNormPushCV(ps=[1, 4], cv=3).fit(X[:, :6], y)
    >>> search.p_ in (1, 4)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **{name: PNormPush._parameter_constraints[name] for name in ("solver", "max_iter", "tol", "verbose")},
        "ps": ["array-like"],
        "alphas": [names(("auto",)), "array-like"],
        "scoring": [str, callable],
        "cv": ["cv_object"],
        "l1_ratio": PNormPush._parameter_constraints["l1_ratio"],
        "n_jobs": [None, Integral],
    }

    warm_start: ClassVar[bool] = False  # type: ignore[misc]

    ps: Sequence[float] = DEFAULT_PS
    alphas: Sequence[float] | str = "auto"
    _: KW_ONLY
    scoring: str | Callable[..., float] = "partial_auc"
    cv: Any = 5
    l1_ratio: float = 0.0
    n_jobs: int | None = None

    def _validate_params(self) -> None:
        super()._validate_params()
        alphas = ["auto"] if isinstance(self.alphas, str) else list(self.alphas)
        if not (len(self.ps) and len(alphas)):
            raise InputError("`ps` and `alphas` need at least one value each")
        for name, values in (("p", self.ps), ("alpha", alphas)):
            for value in values:
                validate_parameter_constraints(PNormPush._parameter_constraints, {name: value}, "PNormPush")

    def _fit(self, X: Any, data: Training) -> Self:
        """Choose p and alpha, then fit on all rows."""
        ranker, alphas = self._ranker(), self.alphas
        facts = ("classes_", "n_features_in_", "feature_names_in_")
        ranker.__dict__ |= {name: vars(self)[name] for name in facts if name in vars(self)}
        if isinstance(alphas, str):
            scale = ranker._auto_alpha(data, data.compose(ranker._objective)[1])
            alphas = [factor * scale for factor in ALPHA_FACTORS]
        table = self._cross_validate(data, X, alphas)
        mean = table.mean(axis=0)
        if np.isnan(mean).all():
            raise InputError("the scorer gave no number on any fold: choose fewer folds or another scoring")
        alpha, p = np.repeat(alphas, len(self.ps)), np.tile(self.ps, len(alphas))
        equal = np.flatnonzero(mean == np.nanmax(mean))
        best = equal[np.argmax(alpha[equal])]
        ranker.set_params(p=p[best].item(), alpha=alpha[best].item())
        ranker._finish(data, ranker._minimise(data, ranker._objective))
        for name, value in vars(ranker).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(self, name, value)
        self.p_, self.best_score_, self.best_estimator_ = p[best].item(), float(mean[best]), ranker
        measures = {"mean_test_score": mean, "std_test_score": table.std(axis=0)}
        folds = {f"split{i}_test_score": scores for i, scores in enumerate(table)}
        self.cv_results_ = {"p": p, "alpha": alpha, **measures, **folds}
        return self

    def _ranker(self, **options: Any) -> PNormPush:
        """Unfitted ranker with the parameters shared with this class."""
        ranker = PNormPush()
        own = self.get_params(deep=False)
        shared = {name: own[name] for name in ranker.get_params(deep=False) if name in own}
        return ranker.set_params(**shared | {"verbose": max(0, self.verbose - 1)} | options)

    def _cross_validate(self, data: Training, X: Any, alphas: Sequence[float]) -> np.ndarray:
        """Scores of shape (folds, alphas · ps)."""
        named = isinstance(self.scoring, str)
        if not named and isinstance(data, BlockTraining):
            raise InputError(
                "a scorer that is a function needs the rows in memory: give the name of a measure"
            )
        scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        positive, weight, groups = data.columns()
        y, stays = positive.astype(int), named and type(data) is not Training
        if not stays:
            y = self.classes_[y]  # a scorer may know the classes by name
        rows: Any = data if stays else indexable(X, y, weight, groups)
        folds = list(self._folds(y if stays else rows[0], y, groups))
        score = _scores_by_weight if stays else _scores_of_copies
        tasks = steps([(train, test, alpha) for train, test in folds for alpha in alphas])
        # for small matrix products, threads cost more to start and synchronise than they save
        small = type(data) is Training and len(y) * data.n_features < SMALL
        with threadpool_limits(limits=1 if small else None, user_api="blas"):
            scores = Parallel(n_jobs=1 if stays else self.n_jobs, verbose=self.verbose)(
                delayed(score)(rows, train, test, self.ps, scorer, self._ranker(alpha=alpha))
                for train, test, alpha in tasks
            )
        return np.array(scores).reshape(len(folds), -1)

    def _folds(self, X: Any, y: Any, groups: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        cv = 5 if self.cv is None else self.cv
        if isinstance(cv, Integral):
            check_folds(int(cv), y, groups)
            cv = cv if groups is None else GroupKFold(cv)
        return check_cv(cv, y, classifier=True).split(X, y, groups)


def _scores_of_copies(
    columns: Sequence[Any], train: np.ndarray, test: np.ndarray, ps: Sequence[float], scorer: Any, ranker: Any
) -> list[float]:
    """Scores on the test rows of the path over p fitted on a copy of the training rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PositiveLabelWarning)  # all rows have warned
        data = read_rows(ranker, *(_take(column, train) for column in columns), binary=True)
    held_out = [_take(column, test) for column in columns]
    return [measure(scorer, fitted, *held_out) for fitted in _quiet_path(ranker, data, ps)]


def _scores_by_weight(
    data: Training, train: np.ndarray, test: np.ndarray, ps: Sequence[float], scorer: Any, ranker: Any
) -> list[float]:
    """Scores on the test rows of the path over p fitted on all rows, where those not in training have weight 0."""
    path = _quiet_path(ranker, _training_part(data, train), ps)
    scores = [data.tied_scores(fitted.coef_[0])[test] + fitted.intercept_ for fitted in path]
    positive, weight, groups = data.columns()
    held_out = [_take(column, test) for column in (positive.astype(int), weight, groups)]
    return [measure(scorer, GivenScores(own), own, *held_out) for own in scores]


def _training_part(data: Training, train: np.ndarray) -> Training:
    """The same rows, weighted by how often each is in ``train``."""
    labels, weight, _ = data.columns()
    times = np.bincount(train, minlength=len(labels)).astype(float)
    return data.reweighted(times if weight is None else times * weight)


def _quiet_path(ranker: Any, data: Training, ps: Sequence[float]) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeparableWarning)  # the chosen pair warns when it is refitted
        return fit_path(ranker, data, ps)


def _take(column: Any, rows: np.ndarray) -> Any:
    return None if column is None else _safe_indexing(column, rows)


def search_blocks(search: Any, blocks: Blocks) -> None:
    """Fit a scikit-learn grid search over alpha of a graded ranker on blocks, one fit at a time.

    Folds consist of whole groups. ``search`` gets ``best_estimator_`` and ``best_score_``, as in memory.
    """
    data = read_rows(search.estimator, blocks, None, None, None, binary=False)
    relevance, weight, groups = data.columns()
    alphas, table = search.param_grid["alpha"], []
    rankers = [clone(search.estimator).set_params(alpha=alpha) for alpha in alphas]
    check_folds(search.cv.n_splits, relevance, groups)
    weight = fold_weight(weight)
    for train, test in search.cv.split(relevance, relevance, groups):
        fold = _training_part(data, train)
        held_out = [_take(column, test) for column in (relevance, weight, groups)]
        for ranker in rankers:
            ranker._minimise(fold, ranker._objective)
            scores = data.tied_scores(ranker.coef_)[test]
            table.append(measure(search.scoring, GivenScores(scores), scores, *held_out))
    mean = np.reshape(table, (-1, len(alphas))).mean(axis=0)
    search.best_score_ = float(mean.max())
    best = clone(search.estimator).set_params(alpha=alphas[int(mean.argmax())])
    search.best_estimator_ = best.fit(blocks, None)
