"""Blocks of rows from the partitions of Dask collections."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from apexrank.errors import InputError, MissingExtraError
from apexrank.problem.blocks import Block, Blocks

UNEVEN = "cut X, y, groups and sample_weight into the same partitions (rechunk, or columns of one data frame)"


def dask_module() -> Any:
    """Import Dask, or raise MissingExtraError with the install command."""
    try:
        import dask
    except ImportError as error:
        raise MissingExtraError('this needs Dask: pip install "apexrank[dask]"') from error
    return dask


def current_client() -> Any:
    """Current ``dask.distributed`` Client, or None."""
    try:
        from distributed import get_client
    except ImportError:  # Dask without distributed has only local schedulers
        return None
    try:
        return get_client()
    except ValueError:
        return None


class Caught:
    """Wrapper that returns an InputError, raised or passed as an argument, instead of a result.

    No task fails then, workers log no traceback, and of several errors the first in row order is raised.

    Examples
    --------
    >>> Caught(checked_results)([1, InputError("no")]), Caught(len)([1, 2])
    (InputError('no'), 2)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = getattr(
            function, "__name__", type(function).__name__
        )  # shown by Dask as the task name

    def __call__(self, *args: Any) -> Any:
        for value in args:
            if isinstance(value, InputError):
                return value
        try:
            return self.function(*args)
        except InputError as error:
            return error.with_traceback(None)  # a traceback would keep the rows in memory


def checked_results(results: Sequence[Any]) -> list[Any]:
    """Return the results, or raise the first one that is an error.

    Examples
    --------
    >>> checked_results([1, 2])
    [1, 2]
    """
    for result in results:
        if isinstance(result, InputError):
            raise result
    return list(results)


PATIENCE = 30.0  # seconds


class DaskBlocks(Blocks):
    """Blocks that Dask computes and stores.

    With a Client, every pass is one task per worker thread over the blocks on that worker. Results are merged here in
    block order, so the number of workers changes the result only by the rounding of BLAS (L-BFGS on a push, which does
    not use BLAS, is bit-identical). A block lost with its worker is recomputed from its source. Without a Client the
    tasks run on the configured Dask scheduler, by default threads.

    Parameters
    ----------
    parts : list of Delayed
        One :class:`apexrank.problem.blocks.Block` each.
    persist : bool, optional
        Keep the blocks in memory between passes instead of recomputing them in every pass. By default only with a
        Client.
    names : sequence of str, optional
        Names of the columns.

    Examples
    --------
    >>> import dask
    >>> make = dask.delayed(lambda k: Block(np.full((3, 1), k), np.arange(3)))
    >>> DaskBlocks([make(1.0), make(2.0)]).map(lambda block, w: float(block.X.sum() * w), 10)
    [30.0, 60.0]
    """

    threads = 1  # one thread per task: Dask runs as many tasks as it has threads

    def __init__(
        self, parts: Sequence[Any], *, persist: bool | None = None, names: Sequence[str] | None = None
    ) -> None:
        self.client = current_client()
        self.persist = self.client is not None if persist is None else persist
        self.names = names
        self.n_threads = {} if self.client is None else self.client.nthreads()
        self._make: Callable[[], list[Any]] = partial(_keep, list(parts), self.client, self.persist)
        self.parts = self._make()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.map(_itself))

    def map_with(self, function: Callable[..., Any], own: Sequence[Any] | None, *args: Any) -> list[Any]:
        """Apply ``function(block, own[k], *args)`` to every block k, in order, each where the block is stored."""
        if self.client is None:
            return checked_results(dask_module().compute(*self._tasks(function, own, args)))
        if not self.persist:
            return checked_results(self._gather(self.client.compute(self._tasks(function, own, args))))
        return checked_results(self._by_worker(function, own, args))

    def _by_worker(
        self, function: Callable[..., Any], own: Sequence[Any] | None, args: tuple[Any, ...]
    ) -> list[Any]:
        """Run one task per worker thread over its blocks: the overhead of a task is as large as the work on a block."""
        homes = self._homes()
        shares: dict[Any, list[int]] = {}
        for number, home in enumerate(homes):
            shares.setdefault(home, []).append(number)
        batches = []
        for home, numbers in shares.items():
            threads = min(len(numbers), self.n_threads.get(home, 1))
            batches += [(home, numbers[first::threads]) for first in range(threads)]
        tasks = [
            self._task(
                home,
                _each,
                function,
                [self.parts[number] for number in numbers],
                None if own is None else [own[number] for number in numbers],
                *args,
            )
            for home, numbers in batches
        ]
        results: list[Any] = [None] * len(homes)
        for (_, numbers), found in zip(batches, self._gather(tasks), strict=True):
            for number, result in zip(numbers, found, strict=True):
                results[number] = result
        return results

    def _homes(self) -> list[str | None]:
        """Worker that stores each block."""
        if not self.parts:  # released when other blocks were prepared from these
            self.parts = self._make()
        self._wait(self.parts)
        known = self.client.who_has(self.parts)
        return [next(iter(known.get(part.key, ())), None) for part in self.parts]

    def _gather(self, tasks: list[Any]) -> list[Any]:
        self._wait(tasks)
        return self.client.gather(tasks)

    def _wait(self, futures: list[Any]) -> None:
        """Wait for futures while any worker is active: if all workers died, Dask would wait forever."""
        from distributed import wait

        idle = 0
        while idle < 2:
            try:
                wait(futures, timeout=PATIENCE)
                return
            except TimeoutError:
                idle = 0 if any(self.client.processing().values()) else idle + 1
        raise InputError(
            f"no Dask worker has worked on the rows for {2 * PATIENCE:.0f} seconds: they are gone, or keep dying, "
            "perhaps for lack of memory; start new ones and fit again"
        )

    def _task(self, home: str | None, *call: Any) -> Any:
        workers = None if home is None else [home]
        # a worker that has died in the meantime must not block the rest
        return self.client.submit(*call, pure=False, workers=workers, allow_other_workers=home is not None)

    def _tasks(
        self, function: Callable[..., Any], own: Sequence[Any] | None, args: tuple[Any, ...]
    ) -> list[Any]:
        task = dask_module().delayed(Caught(function), pure=False, traverse=False)
        shares = [None] * len(self.parts) if own is None else own
        return [task(part, share, *args) for part, share in zip(self.parts, shares, strict=True)]

    def prepared(self, function: Callable[..., Any], *args: Any) -> DaskBlocks:
        """Blocks of ``function(block, *args)``; the original blocks are released and recomputed on demand."""
        blocks = copy(self)
        blocks._make = partial(self._apply, function, args)
        blocks.parts = blocks._make()
        return blocks

    def _apply(self, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        if self.client is None or not self.persist:
            task = dask_module().delayed(Caught(function), pure=False, traverse=False)
            return _keep([task(part, *args) for part in self.parts], self.client, self.persist)
        homes = zip(self._homes(), self.parts, strict=True)
        made = [self._task(home, Caught(function), part, *args) for home, part in homes]
        self._wait(made)
        self.parts = []
        return made


def _keep(parts: list[Any], client: Any, persist: bool) -> list[Any]:
    if not persist:
        return parts
    return list(dask_module().persist(*parts)) if client is None else client.compute(parts)


def _itself(block: Any) -> Any:
    return block


def _each(function: Callable[..., Any], blocks: list[Any], own: list[Any] | None, *args: Any) -> list[Any]:
    shares = [None] * len(blocks) if own is None else own
    return [Caught(function)(block, share, *args) for block, share in zip(blocks, shares, strict=True)]


def collection_blocks(
    X: Any, y: Any, groups: Any = None, sample_weight: Any = None, *, persist: bool | None = None
) -> DaskBlocks:
    """Blocks of Dask arrays or data frames that are partitioned at the same rows."""
    dask = dask_module()
    given = _named(y, sample_weight, groups)
    if hasattr(X, "columns") and all(column is None or hasattr(column, "partitions") for _, column in given):
        return _frame_blocks(X, given, persist)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    X = _whole_rows(X)
    parts = _delayed(X)
    others = []
    for name, column in given:
        own = [None] * len(parts) if column is None else _delayed(_like(X, name, column))
        if len(own) != len(parts):
            raise InputError(f"X has {len(parts)} partitions, {name} has {len(own)}: {UNEVEN}")
        others.append(own)
    make = dask.delayed(Caught(_make_block), pure=True)
    return DaskBlocks(
        [make(k, *fields) for k, fields in enumerate(zip(parts, *others, strict=True))],
        persist=persist,
        names=names,
    )


def _frame_blocks(X: Any, given: list[tuple[str, Any]], persist: bool | None) -> DaskBlocks:
    """Blocks of a single data frame with all columns: separate reads may partition the files differently."""
    others = {f"apexrank {name}": column for name, column in given if column is not None}
    try:
        whole = X.assign(**others)
    except (ValueError, NotImplementedError):
        raise InputError(f"y, groups and `sample_weight` do not fit the partitions of X: {UNEVEN}") from None
    make = dask_module().delayed(Caught(_split_frame), pure=True)
    columns = [f"apexrank {name}" if column is not None else None for name, column in given]
    parts = [make(k, part, len(X.columns), columns) for k, part in enumerate(_delayed(whole))]
    return DaskBlocks(parts, persist=persist, names=[str(name) for name in X.columns])


def _split_frame(number: int, frame: Any, n_features: int, columns: list[str | None]) -> Block:
    own = [None if column is None else frame[column] for column in columns]
    return _make_block(number, frame.iloc[:, :n_features], *own)


def _named(y: Any, sample_weight: Any, groups: Any) -> list[tuple[str, Any]]:
    return [("y", y), ("sample_weight", sample_weight), ("groups", groups)]


def _whole_rows(X: Any) -> Any:
    """Rechunk a collection so that each partition has all columns."""
    if not hasattr(X, "to_delayed"):
        raise InputError(
            f"X must be a Dask array or data frame, got {type(X).__name__}: other data are for apexrank.rankers"
        )
    if getattr(X, "ndim", 2) != 2:
        raise InputError(f"X must have two dimensions, got {X.ndim}")
    if X.shape[1] == 0:
        raise InputError("X has no columns: give at least one feature")
    return X.rechunk({1: -1}) if hasattr(X, "rechunk") and X.numblocks[1] > 1 else X


def _like(X: Any, name: str, column: Any) -> Any:
    """Rechunk a column like the rows of X, if the chunk sizes of both are known."""
    if column is None:
        return None
    if not hasattr(column, "to_delayed"):
        raise InputError(f"{name} must be a Dask array or series, got {type(column).__name__}")
    if not (hasattr(X, "chunks") and hasattr(column, "chunks")):
        return column
    if len(column.shape) != 1:
        raise InputError(f"{name} must have one dimension, got {len(column.shape)}")
    rows, own = X.chunks[0], column.chunks[0]
    if rows == own or np.isnan(rows).any() or np.isnan(own).any():
        return column
    if sum(rows) != sum(own):
        raise InputError(f"X has {sum(rows)} rows, {name} has {sum(own)}")
    return column.rechunk((rows,))


def _delayed(collection: Any) -> list[Any]:
    return list(np.ravel(collection.to_delayed()))


def _make_block(number: int, X: Any, y: Any, weight: Any, groups: Any) -> Block:
    rows = frame_rows(X) if hasattr(X, "columns") else np.asarray(X)
    if rows.dtype.kind == "c":  # astype would keep only the real part, with a warning
        raise InputError("Complex data not supported: X must hold real numbers")
    try:
        rows = rows if rows.dtype.kind in "fiub" else rows.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"partition {number} of X does not hold numbers: encode or drop columns") from None
    try:
        weight = _floats(weight) if hasattr(weight, "to_numpy") else weight
    except (TypeError, ValueError):
        raise InputError("`sample_weight` must be finite numbers of at least 0") from None
    columns = [None if column is None else np.asarray(column) for column in (y, weight, groups)]
    for column in columns:
        if column is not None and len(column) != len(rows):
            raise InputError(
                f"partition {number} has {len(rows)} rows of X but {len(column)} of another column: {UNEVEN}"
            )
    return Block(rows, *columns)


def frame_rows(frame: Any) -> np.ndarray:
    """Rows of a pandas data frame with numeric columns of any dtype; missing values become NaN.

    Examples
    --------
    >>> import pandas as pd
    >>> frame_rows(pd.DataFrame({"a": [1.5, 2.5], "b": pd.array([True, None], dtype="boolean")})).tolist()
    [[1.5, 1.0], [2.5, nan]]
    """
    if all(isinstance(kind, np.dtype) and kind.kind in "fiu" for kind in frame.dtypes):
        return frame.to_numpy()
    rows = np.empty(frame.shape)
    for j, name in enumerate(frame.columns):
        try:
            rows[:, j] = _floats(frame.iloc[:, j])
        except (TypeError, ValueError):
            raise InputError(f"column {name!r} of X does not hold numbers: encode or drop it") from None
    return rows


def _floats(column: Any) -> np.ndarray:
    if column.dtype.kind in "mMc":
        raise TypeError(f"{column.dtype} values are not numbers")
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def repartition_by_group(frame: Any, groups: str, npartitions: int | None = None) -> Any:
    """Shuffle rows so that every group lies within one partition.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        Rows with their relevance, group and features.
    groups : str
        The column of group ids.
    npartitions : int, optional
        Number of partitions; unchanged by default.

    Returns
    -------
    dask.dataframe.DataFrame
        The same rows, with all rows of a group in one partition, in whatever order they came.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> frame = dd.from_pandas(pd.DataFrame({"q": [1, 2, 1, 2], "x": [0.0, 1.0, 2.0, 3.0]}), npartitions=2)
    >>> whole = repartition_by_group(frame, "q")
    >>> int(whole.map_partitions(lambda part: part.q.drop_duplicates()).compute().duplicated().sum())
    0
    """
    if not hasattr(frame, "shuffle") or groups not in frame.columns:
        raise InputError(f"a Dask data frame with the column {groups!r} is needed to bring groups together")
    # the only method with a reproducible row order
    return frame.shuffle(groups, npartitions=npartitions or frame.npartitions, shuffle_method="tasks")


# ---------------------------------------------------------------- scores


def lazy(estimator: Any, method: str, X: Any, dtype: Any) -> Any:
    """``estimator.method(X)`` of a Dask array or data frame, as a lazy Dask array."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and hasattr(X, "columns") and list(map(str, X.columns)) != list(names):
        raise InputError("X has other columns than in fit: give the same ones in the same order")
    if hasattr(X, "partitions") and hasattr(X, "columns"):
        X = _plain_rows(X)
    elif X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if X.shape[1] != estimator.n_features_in_:
        raise InputError(
            f"X has {X.shape[1]} features, but the ranker was fitted on {estimator.n_features_in_}"
        )
    return X.map_blocks(_apply, _nameless(estimator), method, dtype, drop_axis=1, dtype=dtype)


def _nameless(estimator: Any) -> Any:
    """Copy of the estimator without feature names, for plain arrays."""
    other = copy(estimator)
    other.__dict__.pop("feature_names_in_", None)
    return other


def _plain_rows(frame: Any) -> Any:
    """Convert a data frame to an array whose chunks are its partitions."""
    import dask.array as da

    read = dask_module().delayed(frame_rows, pure=False)
    shape = (np.nan, len(frame.columns))
    return da.concatenate([da.from_delayed(read(part), shape, np.float64) for part in frame.to_delayed()])


def _apply(rows: np.ndarray, ranker: Any, method: str, dtype: Any) -> np.ndarray:
    return getattr(ranker, method)(rows) if len(rows) else np.empty(0, dtype)


def accuracy(ranker: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """Weighted share of rows whose class is predicted correctly, computed by the workers."""
    blocks = collection_blocks(X, y, None, sample_weight, persist=False)
    right, total = np.sum(blocks.map(_hits, _nameless(ranker)), axis=0)
    return float(right / total)


def _hits(block: Block, ranker: Any) -> tuple[float, float]:
    """Weight of the correctly predicted rows, and of all rows."""
    weight = np.ones(len(block.y)) if block.weight is None else np.asarray(block.weight, dtype=float)
    if not len(weight):
        return 0.0, 0.0
    return float(weight[ranker.predict(block.X) == block.y].sum()), float(weight.sum())
