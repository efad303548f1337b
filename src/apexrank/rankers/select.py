"""How hard to push: a warm-started path over p, and the choice of p and alpha by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn import config_context
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import _safe_indexing, column_or_1d, indexable

from apexrank.errors import InputError
from apexrank.metrics import get_scorer
from apexrank.rankers.base import LinearBinaryRanker
from apexrank.rankers.push import PNormPush

DEFAULT_PS = (1, 2, 4, 8, 16, 64)
DEFAULT_ALPHAS = (1e-6, 1e-4, 1e-2)


def push_path(
    X: ArrayLike,
    y: ArrayLike,
    ps: Iterable[float] = DEFAULT_PS,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    **options: Any,
) -> list[PNormPush]:
    """One fitted :class:`PNormPush` for each p, each started from the one before it.

    ``options`` are those of :class:`PNormPush`. Give p in growing order: neighbours are then close to each other.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> [ranker.p for ranker in push_path(X[:, :3], y, ps=[1, 4, 16])]
    [1, 4, 16]
    """
    ranker, path = PNormPush(warm_start=True, **options), []
    for p in ps:
        ranker.set_params(p=p).fit(X, y, sample_weight=sample_weight, groups=groups)
        path.append(copy(ranker))
    return path


class PNormPushCV(LinearBinaryRanker):
    """P-Norm Push whose p and alpha are chosen by cross-validation on a top-of-list measure.

    In each fold and for each alpha the path over p is warm-started. The pair with the best mean score is fitted
    again on all rows.

    Parameters
    ----------
    ps, alphas : sequences of float
        The grid.
    scoring : str or callable
        A name of :func:`apexrank.metrics.get_scorer` (``"partial_auc"``, ``"precision_at_100"``,
        ``"tpr_at_fpr_0.01"``, or one of scikit-learn's such as ``"roc_auc"``) or ``scorer(estimator, X, y)``. It gets
        the ``sample_weight`` and ``groups`` of the held-out rows where ``fit`` has them.
    cv : int, splitter or iterable, default 5
        Stratified folds; with ``groups`` whole groups are kept together.
    l1_ratio, max_iter, tol, verbose
        As in :class:`PNormPush`.
    n_jobs : int, optional
        Folds and alphas run in parallel.

    Attributes
    ----------
    p_, alpha_, best_score_ : float
        The chosen pair and its mean score over the folds.
    cv_results_ : dict of arrays
        ``p``, ``alpha``, ``mean_test_score``, ``std_test_score`` and ``split0_test_score`` …: one entry a pair.
    best_estimator_ : PNormPush
        Fitted on all rows; its ``coef_``, ``intercept_``, ``classes_`` and certificates are repeated here.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = PNormPushCV(ps=[1, 4], alphas=[1e-3], cv=3).fit(X[:, :6], y)
    >>> search.p_ in (1, 4)
    True
    """

    def __init__(
        self,
        ps: Sequence[float] = DEFAULT_PS,
        alphas: Sequence[float] = DEFAULT_ALPHAS,
        *,
        scoring: str | Callable[..., float] = "partial_auc",
        cv: Any = 5,
        l1_ratio: float = 0.0,
        max_iter: int = 1000,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.ps = ps
        self.alphas = alphas
        self.scoring = scoring
        self.cv = cv
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose

    takes_device_arrays = False

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Choose p and alpha, then fit on all rows. Arguments as in :meth:`PNormPush.fit`."""
        self._validate(X, y, sample_weight)
        if not (len(self.ps) and len(self.alphas)):
            raise InputError("ps and alphas need at least one value each")
        X, y, sample_weight, groups = indexable(X, column_or_1d(y), sample_weight, groups)
        scores = self._cross_validate(X, y, sample_weight, groups)
        self._choose(scores)
        best = PNormPush(self.p_, alpha=self.alpha_, **self._options())
        best.fit(X, y, sample_weight=sample_weight, groups=groups)
        for name, value in vars(best).items():
            if name.endswith("_") and not name.startswith("_"):
                setattr(self, name, value)
        self.best_estimator_ = best
        return self

    def _options(self) -> dict[str, Any]:
        shared = {name: getattr(self, name) for name in ("l1_ratio", "max_iter", "tol")}
        return {**shared, "verbose": max(0, self.verbose - 1)}

    def _cross_validate(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> np.ndarray:
        """Scores of shape (folds, alphas, ps)."""
        cv = 5 if self.cv is None else self.cv
        if groups is not None and isinstance(cv, Integral):
            cv = GroupKFold(cv)
        folds = list(check_cv(cv, y, classifier=True).split(X, y, groups))
        scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        columns = X, y, sample_weight, groups
        tasks = ((train, test, alpha) for train, test in folds for alpha in self.alphas)
        rows = Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(
            delayed(_score_path)(columns, train, test, self.ps, scorer, dict(alpha=alpha, **self._options()))
            for train, test, alpha in tasks
        )
        return np.array(rows).reshape(len(folds), len(self.alphas), len(self.ps))

    def _choose(self, scores: np.ndarray) -> None:
        table = scores.reshape(len(scores), -1)
        alpha, p = (grid.ravel() for grid in np.meshgrid(self.alphas, self.ps, indexing="ij"))
        mean = table.mean(axis=0)
        if np.isnan(mean).all():
            raise InputError("the scorer gave no number on any fold: choose fewer folds or another scoring")
        best = int(np.nanargmax(mean))
        self.p_, self.alpha_, self.best_score_ = p[best].item(), alpha[best].item(), float(mean[best])
        self.cv_results_ = {
            "p": p,
            "alpha": alpha,
            "mean_test_score": mean,
            "std_test_score": table.std(axis=0),
        }
        self.cv_results_ |= {f"split{i}_test_score": row for i, row in enumerate(table)}


def _score_path(
    columns: tuple[Any, ...],
    train: np.ndarray,
    test: np.ndarray,
    ps: Sequence[float],
    scorer: Callable[..., float],
    options: dict[str, Any],
) -> list[float]:
    """Scores on the test rows of the path over p fitted on the training rows."""
    X, y, sample_weight, groups = (_take(column, train) for column in columns)
    path = push_path(X, y, ps, sample_weight=sample_weight, groups=groups, **options)
    X, y, *given = (_take(column, test) for column in columns)
    named = zip(("sample_weight", "groups"), given, strict=True)
    extra = {name: column for name, column in named if column is not None}
    with config_context(enable_metadata_routing=True):  # so that a scorer takes them
        return [scorer(ranker, X, y, **extra) for ranker in path]


def _take(column: Any, rows: np.ndarray) -> Any:
    return None if column is None else _safe_indexing(column, rows)
