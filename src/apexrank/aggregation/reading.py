"""Read ballots as people have them: arrays, data frames, dictionaries, ranks, and lists of items best first."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, Literal, NamedTuple

import numpy as np

from apexrank.aggregation.ballots import Ballots, Missing, is_pandas, read_weights, voter_name
from apexrank.errors import InputError
from apexrank.validation import check_polars_threads, is_missing

Kind = Literal["scores", "ranks", "orders"]


class Sheet(NamedTuple):
    """A table of numbers with the names of its columns and rows, where it has some."""

    values: np.ndarray
    items: list[Any] | None = None
    voters: list[Any] | None = None


def read_ballots(
    data: Any,
    weights: Any = None,
    *,
    kind: Kind = "scores",
    missing: Missing = "ignore",
    items: Iterable[Any] | None = None,
) -> Ballots:
    """Read and check ballots; the arguments are those of `apexrank.aggregation.merging.aggregate`.

    Infinite scores and voters without any score are found where the scores are used, so that a clean table is read
    no more often than it is needed.

    Examples
    --------
    >>> ballots = read_ballots([["b", ("a", "c")], ["c"]], kind="orders", missing="last")
    >>> ballots.items, (-ballots.scores).tolist()
    (['b', 'a', 'c'], [[1.0, 2.0, 2.0], [nan, nan, 1.0]])
    """
    names = None if items is None else _item_names(items)
    sheet = _read_orders(data, names) if kind == "orders" else _read_numbers(data, names)
    values = sheet.values
    if values.ndim != 2:
        raise InputError(f"{kind} must be a table of voters × items, got shape {values.shape}")
    if not values.size:
        raise InputError(f"{kind} are empty, shape {values.shape}: give at least one voter and two items")
    if values.shape[1] == 1:
        raise InputError("there is one item only: give at least two to put in order")
    if kind == "ranks":
        values = _positions(values)
    labels = _check_labels(
        list(range(values.shape[1])) if sheet.items is None else sheet.items, values.shape[1]
    )
    w = read_weights(weights, len(values), sheet.voters)
    scores, positional = (values, False) if kind == "scores" else (-values, True)
    return Ballots(scores, labels, missing, positional, w, sheet.voters, kind == "ranks")


def _positions(values: np.ndarray) -> np.ndarray:
    values = values.astype(np.float64)
    low = values[values < 1]
    if len(low):
        raise InputError(
            f"ranks begin with 1 for the best item, got {low[0]:g}: use kind='scores' for scores"
        )
    return values


def _item_names(items: Iterable[Any]) -> list[Any]:
    names = items.tolist() if isinstance(items, np.ndarray) else list(items)
    return _check_labels(names, len(names))


def _check_labels(names: list[Any], n: int) -> list[Any]:
    if len(names) != n:
        raise InputError(f"items must be one name for each of the {n} columns, got {len(names)}")
    seen: set[Hashable] = set()
    for name in names:
        _check_label(name)
        if name in seen:
            raise InputError(f"the item {name!r} is there twice: give each item a name of its own")
        seen.add(name)
    return names


def _check_label(name: Any) -> None:
    try:
        hash(name)
    except TypeError:
        raise InputError(f"the item {name!r} is not hashable: use a label") from None
    if is_missing(name):
        raise InputError("an item has no name: name or drop it")


def _read_numbers(data: Any, names: list[Any] | None) -> Sheet:
    if isinstance(data, Mapping):
        return _read_rows(list(data.values()), names, list(data))
    if isinstance(data, list | tuple) and any(_has_names(row) for row in data):
        return _read_rows(data, names, None)
    library = _library_of_frame(data)
    if library is not None:
        if names is not None:
            raise InputError("items are the columns of a data frame: rename its columns, or pass an array")
        return _read_pandas(data) if library == "pandas" else _read_polars(data)
    if hasattr(data, "tocsr"):
        raise InputError(
            "scores are a sparse matrix, whose zeros could be scores or missing: pass a dense array"
        )
    return Sheet(_numbers(data, "scores"), names)


def _library_of_frame(data: Any) -> str | None:
    if is_pandas(data, "DataFrame"):
        return "pandas"
    homes = {kind.__module__.partition(".")[0] for kind in type(data).__mro__ if kind.__name__ == "DataFrame"}
    return "polars" if "polars" in homes else None


def _read_pandas(frame: Any) -> Sheet:
    if frame.columns.duplicated().any():
        name = frame.columns[frame.columns.duplicated()][0]
        raise InputError(f"the item {name!r} is there twice: give each item a name of its own")
    for name in frame.columns:
        kind = frame[name].dtype.kind
        if kind not in "biufO":
            raise InputError(f"column {name!r} holds {frame[name].dtype} values: scores are numbers")
    # frames of one type of numbers give their own memory, all others are copied once
    values = frame.to_numpy()
    if values.dtype.kind == "O":
        columns = [_numbers(frame[name], f"column {name!r}") for name in frame.columns]
        values = np.column_stack(columns) if columns else np.empty(frame.shape)
    return Sheet(values, frame.columns.tolist(), frame.index.tolist())


def _read_polars(frame: Any) -> Sheet:
    import polars as pl

    for name, dtype in frame.schema.items():
        if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
            raise InputError(f"column {name!r} holds {dtype} values: scores are numbers; drop it")
    check_polars_threads("frames are converted")
    return Sheet(frame.cast(pl.Float64).to_numpy(), list(frame.columns))


def _has_names(row: Any) -> bool:
    return isinstance(row, Mapping) or is_pandas(row, "Series")


def _read_rows(rows: Sequence[Any], names: list[Any] | None, voters: list[Any] | None) -> Sheet:
    """Each voter's scores by item, as a mapping or a pandas Series, or as a row of numbers."""
    if not all(_has_names(row) for row in rows):
        return Sheet(_numbers([_plain_row(row) for row in rows], "scores"), names, voters)
    ballots = [_by_item(row) for row in rows]
    labels = list(dict.fromkeys(item for row in ballots for item in row)) if names is None else names
    column = {item: number for number, item in enumerate(_check_labels(labels, len(labels)))}
    values = np.full((len(ballots), len(labels)), np.nan)
    for number, row in enumerate(ballots):
        _check_known(row, column)
        numbers = _numbers(list(row.values()), f"the scores of {voter_name(number, voters)}")
        values[number, [column[item] for item in row]] = numbers
    return Sheet(values, labels, voters)


def _by_item(row: Any) -> Mapping[Any, Any]:
    if isinstance(row, Mapping):
        return row
    _check_labels(row.index.tolist(), len(row))
    return row.to_dict()


def _plain_row(row: Any) -> Any:
    if _has_names(row):
        raise InputError("scores mix voters with item names and voters without: use the same for all")
    return row


def _check_known(row: Iterable[Any], column: Mapping[Any, int]) -> None:
    for item in row:
        if item not in column:
            raise InputError(f"a ballot names {item!r}, which is not in items")


def _numbers(values: Any, what: str) -> np.ndarray:
    """An array of numbers as it is; other things as float64 with NaN for None and its like."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            flat = [np.nan if is_missing(v) else _refuse_text(v) for v in array.ravel().tolist()]
            array = np.array(flat, dtype=np.float64).reshape(array.shape)
    except (TypeError, ValueError):
        raise InputError(
            f"{what} must be numbers, as many for each voter (NaN where one is missing)"
        ) from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{what} must be numbers; pass lists of items, best first, with kind='orders'")
    return array


def _refuse_text(value: Any) -> Any:
    if isinstance(value, str | bytes):
        raise ValueError(value)
    return value


def _read_orders(data: Any, names: list[Any] | None) -> Sheet:
    voters = list(data) if isinstance(data, Mapping) else None
    if is_pandas(data, "Series"):
        voters = data.index.tolist()
    if _library_of_frame(data) is not None:
        data, voters = _rows_of_frame(data)
    if isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype.kind in "iu":
        fast = _read_permutations(data, names)
        if fast is not None:
            return fast
    try:
        orders = data.values() if isinstance(data, Mapping) else data
        ballots = [_groups(order, voter_name(number, voters)) for number, order in enumerate(orders)]
    except TypeError:
        raise InputError("orders must be lists of items, best first, one for each voter") from None
    found = dict.fromkeys(item for ballot in ballots for group in ballot for item in group)
    labels = list(found) if names is None else names
    if names is None and all(isinstance(item, int | np.integer) for item in labels):
        labels = sorted(labels)  # numbers have an order of their own
    column = {item: number for number, item in enumerate(labels)}
    values = np.full((len(ballots), len(labels)), np.nan)
    for number, ballot in enumerate(ballots):
        _fill(values[number], ballot, column, voter_name(number, voters))
    return Sheet(values, labels, voters)


def _read_permutations(data: np.ndarray, names: list[Any] | None) -> Sheet | None:
    """Complete orders of the numbers 0 … n − 1 in an array, without a loop; None for all others."""
    n = data.shape[1]
    if names is not None or not np.array_equal(
        np.sort(data, axis=1), np.broadcast_to(np.arange(n), data.shape)
    ):
        return None
    values = np.empty(data.shape)
    np.put_along_axis(values, data, np.arange(1.0, n + 1)[None], axis=1)
    return Sheet(values)


def _rows_of_frame(frame: Any) -> tuple[list[list[Any]], list[Any] | None]:
    """Orders in the rows of a data frame, where what is missing at the end of a row ends it; and the voters' names."""
    if _library_of_frame(frame) == "polars":
        rows, voters = [list(row) for row in frame.rows()], None
    else:
        # numbers beside missing ones are floats
        columns = [frame.iloc[:, place].convert_dtypes() for place in range(frame.shape[1])]
        rows, voters = [list(row) for row in zip(*columns, strict=True)], frame.index.tolist()
    if any(len(row) == 1 and isinstance(row[0], list | tuple | np.ndarray) for row in rows):
        raise InputError("orders are a data frame with a column of lists: pass that column")
    for row in rows:
        while row and not isinstance(row[-1], list | tuple | Set) and is_missing(row[-1]):
            row.pop()
    return rows, voters


def _groups(order: Any, voter: str) -> list[list[Any]]:
    """The items of an order by place; a list, tuple or set inside it is a tie."""
    if isinstance(order, str | bytes):
        raise InputError(f"the ballot of {voter} is text: give a list of items, best first")
    if isinstance(order, Set | Mapping):
        raise InputError("an order is a set, which has no order: pass a list, best first")
    if isinstance(order, np.ndarray):
        order = order.tolist()
    groups = [list(g) if isinstance(g, list | tuple | Set) else [g] for g in order]
    groups = [[item.item() if isinstance(item, np.generic) else item for item in group] for group in groups]
    for group in groups:
        for item in group:
            _check_label(item)
    return [group for group in groups if group]


def _fill(row: np.ndarray, ballot: Sequence[Sequence[Any]], column: Mapping[Any, int], voter: str) -> None:
    """Write the place of each item of one order; tied items get the first of their places."""
    place = 1
    for group in ballot:
        _check_known(group, column)
        for item in group:
            if not np.isnan(row[column[item]]):
                raise InputError(f"{voter} names {item!r} twice: each item once in an order")
            row[column[item]] = place
        place += len(group)
