"""Rankers with the parameters of their namesakes that fit on Dask collections."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from apexrank import rankers
from apexrank.distributed.blocks import collection_blocks, dask_module, frame_rows
from apexrank.errors import InputError
from apexrank.models.blocks import Block
from apexrank.rankers.blocks import check_lists, check_push, check_solver, fit_blocks


class _OnDask:
    """What the rankers share: where the rows are, lazy scores, and the way to an ordinary estimator."""

    _local: type[Any]

    def to_local(self) -> Any:
        """The fitted ranker as an ordinary estimator of :mod:`apexrank.rankers`, for export and model files."""
        check_is_fitted(self)
        local = self._local(**self.get_params(deep=False))  # type: ignore[attr-defined]
        for name, value in vars(self).items():
            if name.endswith("_"):
                setattr(local, name, value)
        return local

    def _lazy(self, method: str, X: Any, dtype: Any) -> Any:
        """``method`` of the local ranker on each partition."""
        local = self.to_local()
        if hasattr(X, "partitions") and hasattr(X, "columns"):
            X = _plain_rows(X)
        elif X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        # plain rows by now, so that names were looked at already
        local.__dict__.pop("feature_names_in_", None)
        if X.shape[1] != local.n_features_in_:
            raise InputError(
                f"X has {X.shape[1]} features, but the ranker was fitted on {local.n_features_in_}"
            )
        return X.map_blocks(_apply, local, method, dtype, drop_axis=1, dtype=dtype)

    def _check_names(self, X: Any) -> None:
        names = getattr(self, "feature_names_in_", None)
        if names is not None and hasattr(X, "columns") and list(map(str, X.columns)) != list(names):
            raise InputError("X has other columns than in fit: give the same ones in the same order")


def _plain_rows(frame: Any) -> Any:
    """A data frame as an array whose chunks are its partitions."""
    import dask.array as da

    read = dask_module().delayed(frame_rows, pure=False)
    shape = (np.nan, len(frame.columns))
    return da.concatenate([da.from_delayed(read(part), shape, np.float64) for part in frame.to_delayed()])


def _apply(rows: np.ndarray, ranker: Any, method: str, dtype: Any) -> np.ndarray:
    return getattr(ranker, method)(rows) if len(rows) else np.empty(0, dtype)


def _is_dask(X: Any) -> bool:
    return hasattr(X, "__dask_graph__")


def _check_in_memory(*columns: Any) -> None:
    if any(map(_is_dask, columns)):
        raise InputError("X must be a Dask array or data frame, as the others are: give all of one kind")


class PNormPush(_OnDask, rankers.PNormPush):
    """:class:`apexrank.PNormPush` on Dask arrays and data frames.

    The exponential loss with a finite p, or with price "identity" or "log1p"; ridge penalty; no groups. Every pass
    sends the coefficients to the workers and brings back sums over rows, a few numbers per feature and
    block. Parameters and attributes are those of :class:`apexrank.PNormPush`; ``decision_function`` and ``predict``
    of a Dask collection are lazy Dask arrays.

    Examples
    --------
    >>> import dask.array as da
    >>> from apexrank.distributed import PNormPush
    >>> X = da.random.default_rng(0).normal(size=(1000, 3), chunks=(250, 3))
    >>> ranker = PNormPush(p=2, alpha=0.1).fit(X, X[:, 0] > 1)
    >>> ranker.converged_, ranker.decision_function(X).chunks
    (True, ((250, 250, 250, 250),))
    >>> type(ranker.to_local()).__module__
    'apexrank.rankers.push'
    """

    _local = rankers.PNormPush

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, *, persist: bool | None = None
    ) -> Self:
        """Fit on Dask collections that are cut at the same rows.

        Parameters
        ----------
        X : Dask array or data frame
            Rows; the columns of an array are brought into one chunk. Any other table is fitted here, as by
            :class:`apexrank.PNormPush`.
        y, sample_weight : Dask arrays or series
            Labels of two values, and weights that count as repetitions.
        groups : None
            Not for a push on Dask.
        persist : bool, optional
            Keep the blocks in memory between passes; by default with a Client, and not without one.
        """
        if not _is_dask(X):
            _check_in_memory(y, sample_weight, groups)
            return super().fit(X, y, sample_weight, groups)
        if groups is not None:
            raise InputError("a push on Dask ranks one list: leave out groups, or use MonotoneRetargeting")
        check_push(self)
        check_solver(self)
        return fit_blocks(self, collection_blocks(X, y, None, sample_weight, persist=persist))

    def decision_function(self, X: Any) -> Any:
        """Ranking score of each row, a lazy Dask array for a Dask collection."""
        self._check_names(X)
        return self._lazy("decision_function", X, np.float64) if _is_dask(X) else super().decision_function(X)

    def predict(self, X: Any) -> Any:
        """Class of each row, a lazy Dask array for a Dask collection."""
        self._check_names(X)
        return self._lazy("predict", X, self.classes_.dtype) if _is_dask(X) else super().predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows whose class ``predict`` finds, by weight; computed by the workers for Dask collections."""
        self._check_names(X)
        if not _is_dask(X):
            return super().score(X, y, sample_weight)
        local = self.to_local()
        local.__dict__.pop("feature_names_in_", None)
        blocks = collection_blocks(X, y, None, sample_weight, persist=False)
        right, total = np.sum(blocks.map(_hits, local), axis=0)
        return float(right / total)


def _hits(block: Block, ranker: Any) -> tuple[float, float]:
    """Weight of the rows whose class is found, and of all rows."""
    weight = np.ones(len(block.y)) if block.weight is None else np.asarray(block.weight, dtype=float)
    if not len(weight):
        return 0.0, 0.0
    return float(weight[ranker.predict(block.X) == block.y].sum()), float(weight.sum())


class MonotoneRetargeting(_OnDask, rankers.MonotoneRetargeting):
    """:class:`apexrank.MonotoneRetargeting` on Dask arrays and data frames whose partitions keep groups whole.

    Linear scores with margins (no kernel, no alternations). Parameters and attributes are those of
    :class:`apexrank.MonotoneRetargeting`, except ``targets_``; ``predict`` of a Dask collection is a lazy Dask array.
    Where a group is cut, :func:`repartition_by_group` moves its rows together.

    Examples
    --------
    >>> import dask.array as da
    >>> from apexrank.distributed import MonotoneRetargeting
    >>> X = da.random.default_rng(0).normal(size=(60, 3), chunks=(20, 3))
    >>> y, groups = (X[:, 0] > 0).astype(int), da.arange(60, chunks=20) // 10
    >>> MonotoneRetargeting(alpha=0.1).fit(X, y, groups=groups).n_groups_
    6
    """

    _local = rankers.MonotoneRetargeting

    def fit(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        sample_weight: Any = None,
        group_weight: Any = None,
        *,
        persist: bool | None = None,
    ) -> Self:
        """Fit on Dask collections that are cut at the same rows, never inside a group.

        Parameters
        ----------
        X : Dask array or data frame
            Rows. Any other table is fitted here, as by :class:`apexrank.MonotoneRetargeting`.
        y, groups, sample_weight : Dask arrays or series
            Relevance, group ids and weights.
        group_weight : None
            Not on Dask: weigh the rows.
        persist : bool, optional
            Keep the blocks in memory between passes; by default with a Client, and not without one.
        """
        if not _is_dask(X):
            _check_in_memory(y, groups, sample_weight, group_weight)
            return super().fit(X, y, groups, sample_weight, group_weight)
        if group_weight is not None:
            raise InputError("group_weight is not for Dask: give sample_weight")
        if groups is None:
            raise InputError("rows in blocks are ranked inside groups: give one group id per row")
        check_lists(self)
        check_solver(self)
        return fit_blocks(self, collection_blocks(X, y, groups, sample_weight, persist=persist))

    def predict(self, X: Any) -> Any:
        """Ranking score of each row, a lazy Dask array for a Dask collection."""
        self._check_names(X)
        return self._lazy("predict", X, np.float64) if _is_dask(X) else super().predict(X)
