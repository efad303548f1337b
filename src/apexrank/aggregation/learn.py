"""Supervised rank aggregation: learn weights of rankers for Lovász–Bregman aggregation from judged lists.

The conditional model of Iyer and Bilmes (2013, eq. 28 and 29, with the sign that makes near orders likely) is
``p(σ|w, X) ∝ exp(−Σ_j w_j d(x^j‖σ))``, where x^j are the scores of a list's documents by ranker j. If f is a function
of the size with gains δ, it is ``∝ exp(Σ_r δ_r·z[σ(r)])`` with ``z = Σ_j w_j x^j``, and its mode is the order of z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from apexrank.aggregation.fusion import OF_RANKS, RRF
from apexrank.errors import InputError, warn
from apexrank.kernels.inversions import mean_ranks, sort_rows
from apexrank.objectives.margins import checked_relevance
from apexrank.objectives.swaps import order_likelihood, telling_lists
from apexrank.parameters import checked, names, number, whole
from apexrank.penalties import NonNegative, Penalty
from apexrank.preprocessing import QueryNormalizer
from apexrank.problem import Problem
from apexrank.rankers.base import Graded, LinearEstimator, validated, validated_weight
from apexrank.solvers import LBFGS, Solver
from apexrank.submodular import SetFunction, is_by_size, set_function
from apexrank.validation import Segments, segment

ListPoints = Literal["borda", "reciprocal", "dcg", "minmax", "zscore"]
RankerKind = Literal["scores", "ranks"]
Unlisted = Literal["zero", "indicator", "raise"]
MOST_ROWS = 10_000_000  # largest number of rows after repetition by weights


@dataclass(eq=False, repr=False)
class LovaszAggregator(Graded, LinearEstimator):
    """Weights of rankers, learnt from judged lists, for aggregating new lists.

    It minimises ``L(Xw) + alpha/2·|w|²``, where X holds the points that the rankers give to the documents, and L is the
    mean over lists of a negative log-likelihood of the model ``p(σ|w, X) ∝ exp(−Σ_j w_j d(x^j‖σ))`` (Iyer and Bilmes
    2013, eq. 28 and 29). The score of a document is ``Σ_j w_j x^j``, whose order is the most likely one and the
    Lovász–Bregman aggregate of the weighted rankers. Documents of equal relevance count as tied: their gains are
    averaged.

    The normaliser is a permanent, unless only the first rank counts. So the likelihood is

    - for ``f="top"`` with m = 1 exact, a softmax: ``−Σ_a h_a·log softmax(z)_a`` (minus its minimum), where h
      shares 1 among the most relevant documents of a list;
    - for all others the composite one of :class:`~apexrank.objectives.swaps.SwapLikelihood`: logistic losses of pairs,
      weighted by the difference of the gains of their ranks.

    Both are convex, and ``dual_gap_`` certifies the minimum. Lists whose documents are all equally relevant carry no
    information about the weights and are skipped.

    Parameters
    ----------
    f : {"sqrt", "log", "top", "product", "indicator"} or SetFunction
        Function of the size, or a sum of such functions; its gains weight the ranks.
    m : int, optional
        For an f given by name: only the first m ranks count ("top", "sqrt", "log"); the default of "top" is 1.
    normalize : {"borda", "reciprocal", "dcg", "minmax", "zscore"}, a sequence of them, or None
        Conversion of a ranker's scores or ranks to the points that are added up, list by list. With several kinds of
        points, a ranker has a weight for each:

        - "borda": ``(n + 1 − place)/n`` for a list of n documents, from 1 for the best down to at least 1/n;
        - "reciprocal", "dcg": ``61/(60 + place)`` and ``1/log₂(1 + place)``; with ``kind="ranks"`` the place is the
          rank as given, in the ranker's own list;
        - "minmax", "zscore": the scores (or minus the ranks) scaled to 0 … 1, or to mean 0 and standard deviation 1;
        - None: the scores, or minus the ranks, as they are. Then documents are scored one by one, and ``predict`` does
          not depend on lists.

        Places are counted among the documents of the list that the ranker lists; tied ones share the mean. Without
        groups the rows of ``fit`` form one list, and ``predict`` places each row separately in that list.
    kind : {"scores", "ranks"}
        Content of X: scores, where larger is better, or ranks, where 1 is best.
    missing : {"zero", "indicator", "raise"}
        Treatment of NaN in X, which means that a ranker does not list a document.

        - "zero": it gives no points. With "borda", "reciprocal" and "dcg" that is less than any listed document has;
          with "minmax" and "zscore" it counts as the last one listed. Both suit truncated lists. With
          ``normalize=None`` it is a score of 0, wherever 0 lies among the ranker's scores; for ranks, where rank 1 has
          the points −1, this combination raises an error.
        - "indicator": 0 points, and each ranker has a second weight, ``listed_weights_``, for listing a document at
          all. Use it if documents are missing for other reasons.
        - "raise": NaN raises an error.
    alpha : float
        The penalty is ``alpha/2·|w|²``.
    nonnegative : bool
        Constrain the weights (also those for being listed) to be at least 0, as for trust in a voter. They can then
        serve as ``weights`` of the unsupervised methods, and the score is monotone: a document never loses if a ranker
        places it better, or lists it in addition, unless its points there are below 0 (raw scores, "zscore" with an
        indicator). Otherwise weights may be negative, which reverses a ranker.
    solver : {"auto", "lbfgs", "newton"} or solver
        Ignored with ``nonnegative``, which uses L-BFGS with bounds. "newton" requires ``f="top"`` with m = 1.
    max_iter, tol, warm_start, verbose
        As in :class:`~apexrank.rankers.retarget.MonotoneRetargeting`.

    Attributes
    ----------
    weights_ : array of shape (rankers,), or (kinds of points, rankers) for a sequence
        Weight of each ranker's points.
    listed_weights_ : array of shape (rankers,)
        Weight of being listed by each ranker; 0 unless ``missing="indicator"``.
    coef_ : array
        All weights, in this order.
    f_ : SetFunction
        Function of the size.
    list_ : array of shape (n, rankers)
        Rows of ``fit``; only set if they were one list and ``normalize`` is not None.
    n_lists_, n_lists_skipped_ : int
        Number of lists used, and of those skipped because all documents are equally relevant.
    objective_, dual_gap_, grad_norm_, converged_, n_iter_, history_
        As in :class:`~apexrank.rankers.retarget.MonotoneRetargeting`.

    Examples
    --------
    >>> from apexrank.aggregation.learn import LovaszAggregator
    >>> ranks = [[1, 3], [2, 1], [3, 2], [1, 2], [2, np.nan], [np.nan, 1]]
    >>> queries = ["a", "a", "a", "b", "b", "b"]
    >>> model = LovaszAggregator(kind="ranks").fit(ranks, [2, 1, 0, 1, 0, 0], groups=queries)
    >>> bool(model.weights_[0] > model.weights_[1])
    True
    >>> int(model.predict([[2, 1], [1, 2]], groups=["c", "c"]).argmax())
    1
    """

    _parameter_constraints: ClassVar[dict] = LinearEstimator._parameter_constraints | {
        "f": [str, SetFunction],
        "m": [None, whole(1)],
        "normalize": [None, names(ListPoints), list, tuple],
        "kind": [names(RankerKind)],
        "missing": [names(Unlisted)],
        "alpha": [number(0)],
        "nonnegative": ["boolean"],
    }

    # a document's points depend on its list, so that metadata routing requests groups by default
    __metadata_request__fit: ClassVar[dict] = {"groups": True}
    __metadata_request__predict: ClassVar[dict] = {"groups": True}
    __metadata_request__score: ClassVar[dict] = {"groups": True}

    takes_device_arrays: ClassVar[bool] = False

    f: str | SetFunction = "sqrt"
    _: KW_ONLY
    m: int | None = None
    normalize: ListPoints | Sequence[ListPoints] | None = "borda"
    kind: RankerKind = "scores"
    missing: Unlisted = "zero"
    alpha: float = 1e-3
    nonnegative: bool = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = self.missing != "raise" and not self._zero_is_best
        return tags

    def _validate_params(self) -> None:
        super()._validate_params()
        if not self._kinds or any(kind not in (None, *get_args(ListPoints)) for kind in self._kinds):
            raise InputError(
                f"`normalize` must name kinds of points, got {self.normalize!r}: give for example 'borda'"
            )

    @checked
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the weights of rankers (columns) to documents (rows) with relevance y, where larger is better.

        Parameters
        ----------
        X : array of shape (n, rankers)
            Scores or ranks; NaN where a ranker does not list a document.
        y : array of shape (n,)
            Relevance.
        sample_weight : array of shape (n,), optional
            Number of copies of each document in its list, whole numbers; each copy occupies a place.
        groups : array of shape (n,), optional
            List of each document, in any order; by default all documents form one list.
        """
        w0 = self._warm()
        if y is None:
            raise InputError(
                "requires y to be passed, but the target y is None: give the relevance of each row"
            )
        rows, y = validated(self, X, y, y_numeric=True, **self._reading(reset=True))
        relevance = checked_relevance(y)
        lists = segment(groups, len(relevance))
        if sample_weight is not None:
            copies = _copies(sample_weight, rows)
            rows, relevance = rows[copies], relevance[copies]
            lists = segment(lists.of_rows()[copies], len(copies))
        self.f_ = self._function()
        self.grouped_ = groups is not None
        self.__dict__.pop("list_", None)
        points = self._points(rows, lists)
        if not self.grouped_ and self.normalize is not None:
            self.list_ = rows.copy()
        kept, told = telling_lists(relevance, lists)
        self.n_lists_, self.n_lists_skipped_ = len(told), len(lists) - len(told)
        objective = order_likelihood(relevance[kept], self.f_, told)
        if self.solver == "newton" and not (self.nonnegative or objective.has_hessian):
            raise InputError("the swaps of this f have no Hessian: use `solver='auto'` or 'lbfgs'")
        self._solve(Problem(points[kept], objective, self._penalty()), w0)
        width, several = rows.shape[1], len(self._kinds)
        points_of = self.coef_[: several * width]
        self.weights_ = points_of.reshape(several, width) if several > 1 else points_of
        self.listed_weights_ = self.coef_[-width:] if self.missing == "indicator" else np.zeros(width)
        return self

    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> np.ndarray:
        """Score each document; larger is nearer to the top of its list.

        Without groups, which is possible only if ``fit`` had none, the list is that of ``fit``: every row gets the
        place it would have there. To compare rows with one another as a new list, pass ``groups=np.zeros(n)``.
        """
        check_is_fitted(self)
        rows = validated(self, X, **self._reading(reset=False))
        if groups is None and self.grouped_ and self.normalize is not None:
            raise InputError(
                "`groups` are missing, and this LovaszAggregator was fitted with groups: give the list of each row"
            )
        lists = None if groups is None and self.normalize is not None else segment(groups, len(rows))
        if lists is None:
            outside = (rows < np.fmin.reduce(self.list_)) | (rows > np.fmax.reduce(self.list_))
            if 2 * outside.sum() > np.sum(~np.isnan(rows)):
                warn(
                    "most of X lies outside the list of fit, whose first or last place it gets: if X is a list of its "
                    "own, give `groups=np.zeros(len(X))`",
                )
        return self._points(rows, lists) @ self.coef_

    def _in_groups(self, X: ArrayLike, groups: ArrayLike | None) -> np.ndarray:
        return self.predict(X, groups=groups)

    def check_state(self) -> None:
        """Raise InputError unless there is a weight for each kind of points, and the list of ``fit`` if needed."""
        width = self.n_features_in_ * (len(self._kinds) + (self.missing == "indicator"))
        needed = not self.grouped_ and self.normalize is not None
        if len(self.coef_) != width or (needed and not len(getattr(self, "list_", ()))):
            raise InputError("the weights or the list of a LovaszAggregator are not those of its parameters")

    def _reading(self, reset: bool) -> dict[str, Any]:
        finite = True if self.missing == "raise" else "allow-nan"
        return {"accept_sparse": False, "dtype": np.float64, "ensure_all_finite": finite, "reset": reset}

    @property
    def _kinds(self) -> tuple[Any, ...]:
        """Kinds of points, each with a weight for every ranker."""
        one = self.normalize is None or isinstance(self.normalize, str)
        return (self.normalize,) if one else tuple(self.normalize)  # type: ignore[arg-type]

    @property
    def _zero_is_best(self) -> bool:
        """Whether 0 points exceed the points of any listed document."""
        return self.missing == "zero" and self.normalize is None and self.kind == "ranks"

    def _function(self) -> SetFunction:
        m = 1 if self.f == "top" and self.m is None else self.m
        f = set_function(self.f, **({} if m is None else {"m": m}))
        if not is_by_size(f):
            raise InputError(
                f"learning needs a function of the size, such as 'sqrt', 'log' or 'top', got {self.f!r}: with others a "
                "swap changes the gains of all ranks in between"
            )
        return f

    def _points(self, rows: np.ndarray, lists: Segments | None) -> np.ndarray:
        """Compute points in the rows' own lists, or in the list of ``fit`` if ``lists`` is None."""
        if self.kind == "ranks" and np.any(rows <= 0):
            raise InputError("ranks are numbers from 1 for the best one, but X holds one of 0 or below")
        known = ~np.isnan(rows)
        if self._zero_is_best and not known.all():
            raise InputError(
                "X contains NaN, and with `normalize=None` and `kind='ranks'` a missing rank would get 0 points, more "
                "than the −1 of rank 1: use `missing='indicator'`, or a normalize such as 'borda'"
            )
        columns = [self._points_of(kind, rows, lists) for kind in self._kinds]
        return np.column_stack([*columns, known] if self.missing == "indicator" else columns)

    def _points_of(self, kind: ListPoints | None, rows: np.ndarray, lists: Segments | None) -> np.ndarray:
        """Compute points of one kind, 0 where a ranker does not list a document."""
        where = self.list_ if lists is None else lists
        points = list_points(rows, where, normalize=kind, kind=self.kind)
        if self.missing == "zero" and kind == "zscore":
            points = np.where(np.isnan(points), self._last_points(points, lists), points)
        return np.where(np.isnan(points), 0.0, points)  # also for rankers that list no document of a list

    def _last_points(self, points: np.ndarray, lists: Segments | None) -> np.ndarray:
        """Points of the last listed document of each row's list, by ranker; NaN if the ranker lists nothing."""
        if lists is None:
            points = list_points(self.list_, self.list_, normalize="zscore", kind=self.kind)
            return np.fmin.reduce(points)[None]
        return np.fmin.reduceat(points[lists.order], lists.indptr[:-1])[lists.of_rows()]

    def _penalty(self) -> Penalty:
        ridge = super()._penalty()
        return NonNegative(ridge) if self.nonnegative else ridge

    def _solver(self, problem: Problem) -> Solver:
        if self.nonnegative:
            return LBFGS(self.max_iter, self.tol, verbose=self.verbose)
        return super()._solver(problem)


def _copies(sample_weight: ArrayLike, rows: np.ndarray) -> np.ndarray:
    """Row numbers, repeated by weight."""
    weight = validated_weight(sample_weight, rows)
    assert weight is not None
    if not weight.any():
        raise InputError("`sample_weight` is 0 in all rows: give some a weight above 0")
    if (weight % 1).any() or weight.sum() > MOST_ROWS:
        raise InputError(
            f"`sample_weight` must be whole numbers of at most {MOST_ROWS:,} in all, as places in lists are counted: "
            "divide or round them"
        )
    return np.repeat(np.arange(len(rows)), weight.astype(np.int64))


def list_points(
    X: np.ndarray,
    lists: Segments | np.ndarray,
    *,
    normalize: ListPoints | None = "borda",
    kind: str = "scores",
) -> np.ndarray:
    """Compute points of the documents of many lists by ranker, larger is better; NaN where a document is not listed.

    Weights of rankers must suit lists of any length, so that "borda" is relative to the length of the list and is not
    stretched: the last document that a ranker lists must have more points than an unlisted one. Tied documents get the
    points of their mean place, whereas those of a ballot share the points of their places.

    Parameters
    ----------
    X : array of shape (n, rankers)
        Scores, or ranks with 1 for the best; NaN where a ranker does not list a document.
    lists : Segments or array of shape (n_listed, rankers)
        Documents of each list; or the rankers' values for one existing list, in which the documents are placed one by
        one. There a document tied with some of the list gets their place, and one between two of them the place
        midway; no place is before the first or after the last.
    normalize : {"borda", "reciprocal", "dcg", "minmax", "zscore"} or None
        See :class:`~apexrank.aggregation.learn.LovaszAggregator`.
    kind : {"scores", "ranks"}
        Content of X.

    Examples
    --------
    >>> from apexrank.validation import segment
    >>> X = np.array([[4.0], [9.0], [np.nan], [2.0]])
    >>> list_points(X, segment(None, 4), kind="ranks").ravel().tolist()
    [0.75, 0.5, nan, 1.0]
    >>> listed = np.array([[4.0], [3.0], [3.0], [1.0]])
    >>> list_points(np.array([[4.0], [3.0], [2.0], [0.0], [np.nan]]), listed).ravel().tolist()
    [1.0, 0.625, 0.375, 0.25, nan]
    """
    sign = 1 if kind == "scores" else -1
    scores = sign * X
    if normalize is None:
        return scores
    if kind == "ranks" and normalize in OF_RANKS:
        # ranks are places in the ranker's own list, which may be longer
        return _points_of(X, None, normalize)
    if normalize in ("minmax", "zscore"):
        # like `normalized`, but for all lists in one pass, and for rankers that list nothing in some of them
        scaler = QueryNormalizer("minmax" if normalize == "minmax" else "standard", missing="keep")
        if isinstance(lists, Segments):
            return scaler.fit_transform(scores, groups=lists.of_rows())
        return scaler.fit(sign * lists).transform(scores)
    if isinstance(lists, Segments):
        size = np.diff(lists.indptr)[lists.of_rows()][:, None]
        return _points_of(_mean_places(scores, lists), size, normalize)
    columns = zip(scores.T, sign * lists.T, strict=True)
    places = np.column_stack([_places_among(column, listed) for column, listed in columns])
    return _points_of(places, len(lists), normalize)


def _points_of(places: np.ndarray, size: Any, normalize: str) -> np.ndarray:
    """Compute points of places in lists of the given size."""
    if normalize == "borda":
        return (size + 1 - places) / size
    return (RRF + 1) / (RRF + places) if normalize == "reciprocal" else 1 / np.log2(1 + places)


def _places_among(scores: np.ndarray, listed: np.ndarray) -> np.ndarray:
    """Place of each score among others, 1 for the best; half of the equal ones count as better."""
    known = np.sort(listed[~np.isnan(listed)])
    better = len(known) - (np.searchsorted(known, scores) + np.searchsorted(known, scores, "right")) / 2
    return np.where(np.isnan(scores), np.nan, np.clip(better + 0.5, 1, max(len(known), 1)))


def _mean_places(scores: np.ndarray, lists: Segments) -> np.ndarray:
    """Place of each document in its list by each ranker, 1 for the best; tied documents share the mean."""
    places = np.empty(scores.shape)
    for q in range(len(lists)):
        rows = lists.rows(q)
        places[rows] = mean_ranks(sort_rows(-scores[rows].T)).T  # unlisted documents come last
    return np.where(np.isnan(scores), np.nan, places)
