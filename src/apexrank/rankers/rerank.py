"""Two-stage re-ranking: a weak push ranks the list, a strong push re-ranks its head (JMLR 2009, sec. 7)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from apexrank.parameters import HasMethods, between, checked, whole
from apexrank.problem.design import Matrix
from apexrank.rankers.base import TwoClasses, balanced_threshold, checked_rows
from apexrank.rankers.boost import output_of
from apexrank.rankers.push import PNormPush
from apexrank.validation import segment


@dataclass(eq=False, repr=False)
class TwoStagePush(TwoClasses, BaseEstimator):
    """Rank all rows with a first ranker, then re-rank the best of them with a second one.

    The setup of Ji, Rudin and Grishman (2006), described in JMLR 2009, sec. 7: a low p and a cut, then a higher p.
    The second ranker sees only rows at the head of the list, so a low-capacity model can specialise on them. With first
    scores s, the cut c learned in training and second scores t, the score of a row is

        s − c                            for the rest (s ≤ c), at most 0,
        1 + t  if t ≥ 0, else 1/(1 − t)  for the head (s > c), above 0,

    plus an intercept. Every row of the head ranks above all others, in the order of the second ranker, and a single
    row can be scored without the rest of its list.

    Parameters
    ----------
    first, second : scikit-learn estimators, optional
        Default: ``PNormPush(p=1)`` and ``PNormPush(p=16)``. They must accept ``sample_weight`` and ``groups`` if these
        are passed to `fit`.
    keep : int or float in (0, 1], default 0.2
        Number or share of the training rows (of each group) in the head. Ties are kept together, and the head is
        extended until it contains both classes.

    Attributes
    ----------
    first_, second_ : fitted rankers
    cut_ : float
        First score above which a row belongs to the head. With groups, the cut that keeps as many rows in total as the
        heads of all groups.
    n_kept_ : int
        Number of training rows used to fit the second ranker.
    classes_, intercept_ : array, float
        The second class is the positive one; the intercept puts the threshold of ``predict``, which minimises the
        balanced training error, at 0.

    Examples
    --------
    >>> from apexrank import TwoStagePush, datasets, metrics
    >>> X, y = datasets.make_push_example(4000, return_X_y=True)
    >>> ranker = TwoStagePush(keep=0.2).fit(X[:2000], y[:2000])
    >>> ranker.n_kept_
    400
    >>> scores = ranker.decision_function(X[2000:])
    >>> first = ranker.first_.decision_function(X[2000:])
    >>> metrics.precision_at(y[2000:], scores, k=50) > metrics.precision_at(y[2000:], first, k=50)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "first": [None, HasMethods("fit")],
        "second": [None, HasMethods("fit")],
        "keep": [whole(1), between(0, 1, closed="right")],
    }

    first: Any = None
    second: Any = None
    keep: float = 0.2

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @checked
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit both rankers; weights and groups as in :meth:`PNormPush.fit`."""
        rows, positive, weight = self._in_memory(X, y, sample_weight)
        columns = {"sample_weight": weight, "groups": None if groups is None else np.asarray(groups)}
        given = {name: column for name, column in columns.items() if column is not None}
        self.first_ = clone(PNormPush(p=1) if self.first is None else self.first)
        scores = output_of(self.first_.fit(rows, positive, **given), rows)
        kept = heads(scores, positive, self.keep, **columns)
        self.second_ = clone(PNormPush(p=16) if self.second is None else self.second)
        self.second_.fit(rows[kept], positive[kept], **{name: column[kept] for name, column in given.items()})
        self.n_kept_ = int(kept.sum())
        each = np.ones(len(scores)) if weight is None else weight
        self.cut_ = _cut(scores, each, each[kept].sum())
        self.intercept_ = -balanced_threshold(self._reranked(rows), positive, weight)
        return self

    def _scores(self, X: ArrayLike) -> np.ndarray:
        return self._reranked(checked_rows(self, X))

    def _reranked(self, rows: Matrix) -> np.ndarray:
        """Scores without the intercept."""
        first = output_of(self.first_, rows)
        scores, head = first - self.cut_, first > self.cut_
        if head.any():
            scores[head] = above_zero(output_of(self.second_, rows[head]))
        return scores


def above_zero(t: np.ndarray) -> np.ndarray:
    """Increasing map from the reals to the positive numbers: ``1 + t`` or, for negative t, ``1/(1 − t)``.

    Unlike a logistic map it does not saturate for large scores.

    Examples
    --------
    >>> above_zero(np.array([-3.0, 0.0, 2.0])).tolist()
    [0.25, 1.0, 3.0]
    """
    return np.where(t < 0, 1 / (1 - np.minimum(t, 0)), 1 + t)


def heads(
    scores: np.ndarray,
    positive: np.ndarray,
    keep: float,
    sample_weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """Mask of the best ``keep`` rows (a number or a share) of each group, extended to include both of its classes.

    Weights count as repetitions of a row; ties are kept together.

    Examples
    --------
    >>> heads(np.array([5.0, 4.0, 3.0, 2.0]), np.array([True, True, False, True]), keep=1).tolist()
    [True, True, True, False]
    """
    weight = np.ones(len(scores)) if sample_weight is None else sample_weight
    kept, segments = np.zeros(len(scores), dtype=bool), segment(groups, len(scores))
    for q in range(len(segments)):
        rows = segments.rows(q)
        wanted = keep if isinstance(keep, Integral) else keep * weight[rows].sum()
        kept[rows] = scores[rows] >= _lowest_kept(scores[rows], positive[rows], weight[rows], wanted)
    return kept & (weight > 0)


def _lowest_kept(scores: np.ndarray, positive: np.ndarray, weight: np.ndarray, wanted: float) -> float:
    """Score at which, from the top, ``wanted`` rows and both classes are reached."""
    order = np.argsort(-scores, kind="stable")
    up, down = (np.cumsum((weight * label)[order]) for label in (positive, ~positive))
    reached = up + down >= wanted * (1 - 1e-12)  # shares such as 0.1 are not exact
    reached &= (up > 0) == (up[-1] > 0)
    reached &= (down > 0) == (down[-1] > 0)
    return scores[order[np.argmax(reached)]] if reached.any() else -np.inf


def _cut(scores: np.ndarray, weight: np.ndarray, n_kept: float) -> float:
    """Midpoint between the lowest of the best ``n_kept`` rows and the next row; −inf if there is none."""
    order = np.argsort(-scores, kind="stable")
    lowest = scores[order[np.searchsorted(np.cumsum(weight[order]), n_kept * (1 - 1e-12))]]
    rest = scores[(scores < lowest) & (weight > 0)]
    if not len(rest):
        return -np.inf
    halfway = float(rest.max() + (lowest - rest.max()) / 2)
    return halfway if halfway < lowest else float(rest.max())
