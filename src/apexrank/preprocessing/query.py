"""Per-query feature scaling for learning to rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from apexrank.errors import InputError
from apexrank.parameters import checked, names
from apexrank.validation import Segments, canonical, check_frame, segment

_LEARNT = ("offset_", "scale_", "values_")


@dataclass(eq=False, repr=False)
class QueryNormalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale every feature within each query, so that values of different queries are comparable.

    Documents are ranked only against others of the same query, but a feature such as a BM25 score has a different scale
    in each query. With the values ``x_1, ..., x_n`` of one feature in one query, the value x of a document becomes

    ============== ================================================== ========
    method         value                                              range
    ============== ================================================== ========
    ``"minmax"``   ``(x − min)/(max − min)``, as in the LETOR files   [0, 1]
    ``"standard"`` ``(x − mean)/sd``, sd with 1/n                     any
    ``"max"``      ``x/max|x_i|``, keeps zeros and sparsity           [−1, 1]
    ``"rank"``     ``#{i : x_i < x}/(n − 1)``                         [0, 1]
    ============== ================================================== ========

    and 0 where that is 0/0: a feature that is constant in a query has no influence on its order (Qin and Liu,
    "Introducing LETOR 4.0 Datasets", 2013, for min and max).

    With groups nothing is learned from the training rows: ``transform`` scales each query it is given, which must be
    complete. Fitted **without** groups it behaves like scikit-learn's scalers: ``fit`` learns minimum and range, mean
    and standard deviation, or the largest absolute value of all training rows, and ``transform`` without groups applies
    them to any rows; a feature that is constant in training becomes 0, whatever its new value. ``"rank"`` is then
    ``#{i : x_i < x}/n``, the share of the n training rows with a smaller value. Nothing is clipped: rows outside the
    range of the training rows exceed the ranges above (``"rank"`` cannot).

    Parameters
    ----------
    method : {"minmax", "standard", "max", "rank"}, default="minmax"
        See the table. Sparse X works only with ``"max"``; the others would make it dense.
    missing : {"raise", "keep"}, default="raise"
        Whether NaN raises an error, or stays NaN and is ignored in minimum, mean and rank.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if they have names.
    offset_, scale_ : ndarrays of shape (n_features_in_,)
        Without groups a value becomes ``(x − offset_)/scale_``, and 0 where ``scale_`` is 0: minimum and range, mean
        and standard deviation, or 0 and largest absolute value. Only if fitted without groups, and not with ``"rank"``.
    values_ : ndarray of shape (n, n_features_in_)
        Each column of the training rows in increasing order, NaN last. Only if fitted without groups, with ``"rank"``.

    Notes
    -----
    In a pipeline, ``groups`` are passed by scikit-learn's metadata routing: after
    ``sklearn.set_config(enable_metadata_routing=True)`` both ``pipe.fit(X, y, groups=q)`` and
    ``pipe.predict(X, groups=q)`` pass them to this step, which requests them by default; a ranker that uses groups must
    request them with ``set_fit_request(groups=True)``. Without routing, this step gets no groups in ``predict``, which
    is an error if it was fitted with groups, because the ranker was not trained on one scaling for all queries.

    Examples
    --------
    >>> from apexrank.preprocessing import QueryNormalizer
    >>> X = [[1.0, 5.0], [3.0, 5.0], [200.0, 7.0], [100.0, 6.0], [150.0, 8.0]]
    >>> QueryNormalizer().fit_transform(X, groups=["a", "a", "b", "b", "b"]).tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 0.5], [0.0, 0.0], [0.5, 1.0]]

    Without groups, a scaling learned from the training rows:

    >>> QueryNormalizer().fit([[1.0], [3.0]]).transform([[2.0], [4.0]]).tolist()
    [[0.5], [1.5]]

    In a pipeline:

    >>> import sklearn
    >>> from sklearn.pipeline import make_pipeline
    >>> from apexrank import CrucialPairsPush
    >>> from apexrank.datasets import make_letor_example
    >>> queries = make_letor_example()
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     ranker = CrucialPairsPush(alpha=0.1).set_fit_request(groups=True)
    ...     pipe = make_pipeline(QueryNormalizer("rank"), ranker)
    ...     scores = pipe.fit(queries.data, queries.target, groups=queries.groups).predict(
    ...         queries.data, groups=queries.groups
    ...     )
    >>> scores.shape == queries.target.shape
    True
    """

    # this step is useless without groups, so it requests them by default
    __metadata_request__fit: ClassVar[dict] = {"groups": True}
    __metadata_request__transform: ClassVar[dict] = {"groups": True}

    _parameter_constraints: ClassVar[dict] = {
        "method": [names(("minmax", "standard", "max", "rank"))],
        "missing": [names(("raise", "keep"))],
    }

    method: str = "minmax"
    _: KW_ONLY
    missing: str = "raise"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.method == "max"
        tags.input_tags.allow_nan = self.missing == "keep"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @checked
    def fit(self, X: Any, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Learn the scaling of all rows; with groups, only validate them, because each query is scaled separately.

        Parameters
        ----------
        X : array, frame, or sparse matrix with ``method="max"``
            One row per document.
        y : object
            Ignored.
        groups : array, optional
            Query id of each row, in any order.
        """
        rows = self._checked(X, reset=True)
        for name in _LEARNT:
            self.__dict__.pop(name, None)
        if groups is not None:
            segment(groups, rows.shape[0])
        elif self.method == "rank":
            self.values_ = np.sort(rows, axis=0)
        else:
            wide = rows.astype(np.float64, copy=False)
            self.offset_, self.scale_ = _LEARN[self.method](wide)
        return self

    def transform(self, X: Any, groups: ArrayLike | None = None) -> Any:
        """Scale the rows ``X`` within each query or, without groups, as learned from the training rows.

        Parameters
        ----------
        X : array, frame, or sparse matrix with ``method="max"``
            One row per document.
        groups : array, optional
            Query id of each row, in any order; may be omitted only if ``fit`` had no groups either.

        Returns
        -------
        array of the same shape and floating-point type as X
            A CSR array or matrix for a sparse X.
        """
        check_is_fitted(self)
        self._validate_params()  # complete queries are scaled as the parameters are now
        rows = self._checked(X, reset=False)
        if groups is None:
            return self._as_learnt(rows)
        segments = segment(groups, rows.shape[0])
        if sparse.issparse(rows):
            return _sparse_over_max(rows, segments)
        wide = rows.astype(np.float64, copy=False)
        return _METHODS[self.method](wide, segments).astype(rows.dtype, copy=False)

    def fit_transform(self, X: Any, y: Any = None, groups: ArrayLike | None = None) -> Any:
        """Fit to the rows and scale them; see :meth:`transform`."""
        return self.fit(X, y, groups=groups).transform(X, groups=groups)

    def _as_learnt(self, rows: Any) -> Any:
        if hasattr(self, "values_"):
            return _share_below(rows, self.values_)
        if not hasattr(self, "scale_"):
            raise InputError(
                "`groups` are missing, and this QueryNormalizer was fitted with groups: pass groups to transform too; "
                "a pipeline passes them on after sklearn.set_config(enable_metadata_routing=True)"
            )
        if not sparse.issparse(rows):
            return rescaled(rows, self.offset_, self.scale_)
        scaled = rows.copy()
        scaled.data = rescaled(scaled.data, 0.0, self.scale_[scaled.indices])
        return scaled

    def _checked(self, X: Any, *, reset: bool) -> Any:
        if sparse.issparse(X) and self.method != "max":
            raise InputError(
                f"`method={self.method!r}` would fill the zeros of a sparse X: use `method='max'`, or give X.toarray()"
            )
        check_frame(X)
        rows = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan" if self.missing == "keep" else True,
        )
        return canonical(rows) if sparse.issparse(rows) else rows


def _reduced(operation: np.ufunc, rows: np.ndarray, segments: Segments) -> np.ndarray:
    """Reduce the rows of each query with the operation, to one row per query."""
    return operation.reduceat(rows[segments.order], segments.indptr[:-1], axis=0)


def _over(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """``part/whole``, and 0 where ``whole`` is 0; NaN is kept."""
    return np.divide(part, whole, out=np.where(np.isnan(part), part, 0.0), where=whole != 0)


def _extent(rows: np.ndarray, segments: Segments) -> tuple[np.ndarray, np.ndarray]:
    """Minimum and range of each query, one row per query."""
    low, high = _reduced(np.fmin, rows, segments), _reduced(np.fmax, rows, segments)
    with np.errstate(over="ignore"):
        span = high - low
    if np.isinf(span).any():
        raise InputError("X spans more than the range of floating-point numbers: divide it by 2 first")
    return low, span


def _minmax(rows: np.ndarray, segments: Segments) -> np.ndarray:
    low, span = _extent(rows, segments)
    query = segments.of_rows()
    return _over(rows - low[query], span[query])


def _moments(
    unit: np.ndarray, segments: Segments, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each query, one row per query; weights count as repetitions."""
    each = ~np.isnan(unit) * (1.0 if weight is None else weight[:, None])
    count = _reduced(np.add, each, segments)
    mean = _over(_reduced(np.add, each * np.nan_to_num(unit), segments), count)
    centred = np.nan_to_num(unit - mean[segments.of_rows()])
    return mean, np.sqrt(_over(_reduced(np.add, each * centred**2, segments), count))


def _standardised(rows: np.ndarray, segments: Segments) -> np.ndarray:
    # scale to [0, 1] first: the result is the same, constants become exact zeros and squares cannot overflow
    unit = _minmax(rows, segments)
    mean, deviation = _moments(unit, segments)
    query = segments.of_rows()
    return _over(unit - mean[query], deviation[query])


def _max(rows: np.ndarray, segments: Segments) -> np.ndarray:
    return _over(rows, _reduced(np.fmax, np.abs(rows), segments)[segments.of_rows()])


def _rank(rows: np.ndarray, segments: Segments) -> np.ndarray:
    query = segments.of_rows()
    present = ~np.isnan(rows)
    others = np.maximum(_reduced(np.add, present.astype(np.intp), segments) - 1, 1)
    below = np.column_stack([_number_below(column, query, segments) for column in rows.T])
    return np.where(present, below / others[query], np.nan)


def _number_below(column: np.ndarray, query: np.ndarray, segments: Segments) -> np.ndarray:
    """Number of smaller values in the query of each value; NaN is larger than all."""
    order = np.lexsort((column, query))
    value, owner = column[order], query[order]
    place = np.arange(len(column))
    first = np.ones(len(column), dtype=bool)
    first[1:] = (value[1:] != value[:-1]) | (owner[1:] != owner[:-1])
    below = np.empty(len(column))
    below[order] = np.maximum.accumulate(np.where(first, place, 0)) - segments.indptr[owner]
    return below


def _sparse_over_max(rows: Any, segments: Segments) -> Any:
    scaled = rows.copy()
    if not scaled.nnz:
        return scaled
    query = np.repeat(segments.of_rows(), np.diff(scaled.indptr))
    cells = segment(query * np.int64(rows.shape[1]) + scaled.indices, scaled.nnz)
    top = np.fmax.reduceat(np.abs(scaled.data)[cells.order], cells.indptr[:-1])
    scaled.data = _over(scaled.data, top[cells.of_rows()])
    return scaled


def _learn_minmax(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, span = _extent(rows, segment(None, len(rows)))
    # a feature that is NaN in all rows has neither: use 0, as for a constant
    return np.nan_to_num(low[0]), np.nan_to_num(span[0])


def learn_standard(rows: np.ndarray, weight: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column; weights count as repetitions."""
    low, span = _learn_minmax(rows)
    mean, deviation = _moments(_over(rows - low, span), segment(None, len(rows)), weight)
    return low + mean[0] * span, deviation[0] * span


def _learn_max(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    top = np.zeros(rows.shape[1])
    if sparse.issparse(rows):
        np.fmax.at(top, rows.indices, np.abs(rows.data))
    else:
        np.fmax.reduce(np.abs(rows), axis=0, initial=0.0, out=top)
    return np.zeros_like(top), top


def rescaled(rows: np.ndarray, offset: np.ndarray | float, scale: np.ndarray) -> np.ndarray:
    """``(rows − offset)/scale`` in the dtype of the rows, and 0 where the scale is 0."""
    with np.errstate(over="ignore"):
        scaled = _over(rows - offset, scale).astype(rows.dtype, copy=False)
    if np.isinf(scaled).any():
        raise InputError(
            "X is so far from the training rows that its scaled values overflow: check its units"
        )
    return scaled


def _share_below(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Share of the training values of a column (sorted, NaN last) that are smaller; NaN is kept."""
    known = np.count_nonzero(~np.isnan(values), axis=0)
    below = [np.searchsorted(values[:n, j], rows[:, j]) for j, n in enumerate(known)]
    share = np.column_stack(below) / np.maximum(known, 1)
    return np.where(np.isnan(rows), np.nan, share).astype(rows.dtype, copy=False)


_METHODS: dict[str, Callable[[np.ndarray, Segments], np.ndarray]] = {
    "minmax": _minmax,
    "standard": _standardised,
    "max": _max,
    "rank": _rank,
}

_LEARN: dict[str, Callable[[Any], tuple[np.ndarray, np.ndarray]]] = {
    "minmax": _learn_minmax,
    "standard": learn_standard,
    "max": _learn_max,
}
