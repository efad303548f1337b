"""Ballots: scores of voters for items, as a table of voters × items where larger is better.

A missing score (NaN) has one of two meanings, chosen by the caller:

- ``"ignore"``: the voter has no opinion of the item, and pairs with it do not count;
- ``"last"``: the voter ranks the item below all scored items, tied with the other unscored ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from apexrank.errors import InputError
from apexrank.kernels.inversions import SortedRows, sort_rows
from apexrank.validation import check_polars_threads, is_missing

Kind = Literal["scores", "ranks", "orders"]
Missing = Literal["ignore", "last"]
_UNEVEN = 10.0  # a range of scores this many times wider indicates a different scale
BLOCK = 2**18  # numbers in a block of voters or items: two megabytes stay in the cache


@dataclass(frozen=True, eq=False, repr=False)
class Ballots:
    """Scores of voters for items.

    Parameters
    ----------
    scores : ndarray of shape (voters, items)
        Larger is better, NaN is missing; a numeric array is not copied. Ranks and orders are stored as minus the
        position.
    items : list
        Names of the items, or their numbers.
    missing : {"ignore", "last"}
        Meaning of a missing score.
    positional : bool
        Whether ``scores`` are minus positions, so that only their order matters.
    weights : ndarray of shape (voters,), optional
        Number of times each ballot was cast; None means once each.
    voters : list, optional
        Names of the voters, if any.
    ranked : bool
        Whether ``scores`` are minus given ranks, which need not be places among these items.
    first : int
        Number of voters before these, if they are a part of all voters.

    Examples
    --------
    >>> ballots = Ballots(np.array([[3.0, 1.0], [np.nan, 2.0]]), ["a", "b"], "last")
    >>> ballots.n_voters, ballots.n_items, ballots.total
    (2, 2, 2.0)
    """

    scores: np.ndarray
    items: list[Any]
    missing: Missing = "ignore"
    positional: bool = False
    weights: np.ndarray | None = None
    voters: list[Any] | None = None
    ranked: bool = False
    first: int = 0

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    def n_voters(self) -> int:
        """Number of distinct ballots."""
        return int(self.scores.shape[0])

    @property
    def total(self) -> float:
        """Number of ballots, counted as often as they were cast."""
        return float(self.n_voters) if self.weights is None else float(self.weights.sum())

    @property
    def voters_said(self) -> str:
        """Describe the number of voters; whole weights are counts of equal ballots.

        Examples
        --------
        >>> Ballots(np.zeros((2, 2)), ["a", "b"], weights=np.array([18.0, 12.0])).voters_said
        '30 voters (2 different ballots)'
        """
        n, plural = self.n_voters, "s" if self.n_voters != 1 else ""
        if self.weights is not None and not (self.weights == np.round(self.weights)).all():
            return f"{n:,} weighted voter{plural}"
        if self.total == n:
            return f"{n:,} voter{plural}"
        return f"{self.total:,.0f} voters ({n:,} different ballot{plural})"

    def support(self) -> np.ndarray:
        """Weight of the voters who scored each item, regardless of the meaning of missing scores.

        Examples
        --------
        >>> Ballots(np.array([[3.0, 1.0], [np.nan, 2.0]]), ["a", "b"], "last").support().tolist()
        [1.0, 2.0]
        """
        given, lost = np.zeros((2, self.n_items))
        for part in self.blocks():
            missing, w = np.isnan(part.scores), part.weight()
            lost += w @ missing
            given += w @ ~missing
        return np.where(lost == 0, self.total, given)  # exact if all voters scored the item

    def weight(self, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Weights of the selected voters."""
        return np.ones(len(self.scores[rows])) if self.weights is None else self.weights[rows]

    def blocks(self) -> Iterator[Ballots]:
        """Iterate over all voters in blocks small enough for the cache."""
        for rows in gen_batches(self.n_voters, max(1, BLOCK // self.n_items)):
            weights = None if self.weights is None else self.weights[rows]
            yield replace(self, scores=self.scores[rows], weights=weights, first=self.first + rows.start)

    def columns(self) -> Iterator[slice]:
        """Iterate over slices of items, small enough to process all voters at once."""
        return gen_batches(self.n_items, max(8, BLOCK // self.n_voters))

    def read(self, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return the selected scores as float64; infinite scores and voters without scores raise InputError."""
        block = np.asarray(self.scores[rows], dtype=np.float64)
        if not all_finite(block):
            odd = ~np.isfinite(block)
            self._check(block, odd, self.first + np.arange(self.n_voters)[rows])
        return block

    def ordered(self, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return scores like `read`, with −inf for missing items that are tied last; for comparisons, not for sums."""
        block = self.read(rows)
        return np.where(np.isnan(block), -np.inf, block) if self.missing == "last" else block

    def sort(self, rows: slice | np.ndarray = slice(None)) -> tuple[SortedRows, np.ndarray]:
        """Sort the items of the selected voters, best first, and flag ranked items; the others come last."""
        block = -self.ordered(rows)
        return sort_rows(block), ~np.isnan(block)

    def _check(self, block: np.ndarray, odd: np.ndarray, numbers: np.ndarray) -> None:
        infinite = np.argwhere(np.isinf(block))
        if len(infinite):
            row, item = infinite[0]
            told = (
                f"{voter_name(int(numbers[row]), self.voters)} gives {self.items[item]!r} an infinite score"
            )
            raise InputError(f"{told}: use a finite one, or NaN where it is missing")
        silent = np.flatnonzero(odd.all(axis=1))
        if len(silent):
            voter = voter_name(int(numbers[silent[0]]), self.voters)
            raise InputError(f"{voter} gives no score at all: drop that ballot")


def all_finite(scores: np.ndarray) -> bool:
    """Return whether scores are finite, judged by their sum; huge scores may overflow and return False.

    Examples
    --------
    >>> all_finite(np.array([1.0, 2.0])), all_finite(np.array([1.0, np.nan]))
    (True, False)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(scores.sum()))


def uneven_ranges(scores: np.ndarray) -> tuple[float, float] | None:
    """Return the score ranges of narrow and wide voters if these use different scales, else None.

    Examples
    --------
    >>> uneven_ranges(np.array([[80.0, 20.0, 50.0], [1.0, 3.0, 2.0], [2.0, 3.0, np.nan]]))
    (1.0, 60.0)
    """
    ranges = np.fmax.reduce(scores, axis=1) - np.fmin.reduce(scores, axis=1)
    ranges = ranges[ranges > 0]
    if not len(ranges):
        return None
    low, high = np.quantile(ranges, [0.1, 0.9], method="inverted_cdf").tolist()
    return (low, high) if high > _UNEVEN * low else None


def voter_name(number: int, voters: Sequence[Any] | None) -> str:
    """Return a voter's name for messages.

    Examples
    --------
    >>> voter_name(1, None), voter_name(1, ["ann", "bob"])
    ('voter 1', "voter 'bob'")
    """
    return f"voter {number if voters is None else repr(voters[number])}"


def read_weights(weights: Any, n_voters: int, voters: Sequence[Any] | None) -> np.ndarray | None:
    """Validate the weights of the voters; a mapping or pandas Series gives them by voter name.

    Examples
    --------
    >>> read_weights([1, -1], 2, None)
    Traceback (most recent call last):
    apexrank.errors.InputError: weights must be finite numbers of at least 0, got -1
    """
    if weights is None:
        return None
    lacks = "weights has no weight for the voter {!r}"
    if voters is not None and library_of(weights, "Series") == "pandas":
        index = weights.index
        if index.tolist() != list(voters):
            if not index.is_unique:
                twice = index[index.duplicated()][0]
                raise InputError(f"weights has the voter {twice!r} twice in its index: give one weight each")
            weights = weights.to_dict()
            lacks = (
                "weights is a Series whose index has no voter {!r}: index it as the ballots, or pass "
                "weights.to_numpy() for weights by row"
            )
    if isinstance(weights, Mapping):
        if voters is None:
            raise InputError("weights by name need named voters: give one weight for each row")
        unknown = [name for name in voters if name not in weights]
        if unknown:
            raise InputError(lacks.format(unknown[0]))
        weights = [weights[name] for name in voters]
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("weights must be numbers, one for each voter") from None
    if w.shape != (n_voters,):
        raise InputError(f"weights must be one number for each of the {n_voters} voters, got shape {w.shape}")
    bad = ~((w >= 0) & (w < np.inf))
    if bad.any():
        raise InputError(f"weights must be finite numbers of at least 0, got {w[bad][0]:g}")
    with np.errstate(over="ignore"):
        if not np.isfinite(w.sum()):
            raise InputError("weights are too large to be added: divide them all by the same number")
    if not w.any():
        raise InputError("weights are all zero: give at least one voter a weight")
    return w


def library_of(data: Any, name: str = "DataFrame") -> str | None:
    """Return the library, "pandas" or "polars", of a data frame (or of another class by ``name``), or None.

    Examples
    --------
    >>> library_of([1, 2]) is None
    True
    """
    homes = {kind.__module__.partition(".")[0] for kind in type(data).__mro__ if kind.__name__ == name}
    return next((library for library in ("pandas", "polars") if library in homes), None)


class Sheet(NamedTuple):
    """Table of numbers with the names of its columns and rows, if any."""

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
    """Read and validate ballots in memory; the arguments are those of `apexrank.aggregation.aggregate`.

    Infinite scores and voters without scores are detected where the scores are used, so that clean tables need no
    additional pass.

    Examples
    --------
    >>> ballots = read_ballots([["b", ("a", "c")], ["c"]], kind="orders", missing="last")
    >>> ballots.items, (-ballots.scores).tolist()
    (['b', 'a', 'c'], [[1.0, 2.0, 2.0], [nan, nan, 1.0]])
    """
    names = None
    if items is not None:
        names = _check_labels(items.tolist() if isinstance(items, np.ndarray) else list(items))
    sheet = _read_orders(data, names) if kind == "orders" else _read_numbers(data, names)
    values = sheet.values
    if not values.size:
        raise InputError(f"{kind} are empty, shape {values.shape}: give at least one voter and two items")
    if values.ndim != 2:
        raise InputError(f"{kind} must be a table of voters × items, got shape {values.shape}")
    if values.shape[1] == 1:
        raise InputError("there is only one item: give at least two")
    labels = list(range(values.shape[1])) if sheet.items is None else _check_labels(sheet.items)
    if len(labels) != values.shape[1]:
        raise InputError(f"items must be one name for each of {values.shape[1]} columns, got {len(labels)}")
    if kind == "ranks":
        values = values.astype(np.float64)
        if len(low := values[values < 1]):
            raise InputError(
                f"ranks begin with 1 for the best item, got {low[0]:g}: use `kind='scores'` for scores"
            )
    w = read_weights(weights, len(values), sheet.voters)
    scores, positional = (values, False) if kind == "scores" else (-values, True)
    return Ballots(scores, labels, missing, positional, w, sheet.voters, kind == "ranks")


def _check_labels(names: list[Any]) -> list[Any]:
    seen: set[Hashable] = set()
    for name in names:
        _check_label(name)
        if name in seen:
            raise InputError(f"two items are named {name!r}: give each item a different name")
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
    voters = None
    if isinstance(data, Mapping):
        voters, data = list(data), list(data.values())
    if isinstance(data, list | tuple) and any(_has_names(row) for row in data):
        return _read_rows(data, names, voters)
    library = library_of(data)
    if library is not None and names is not None:
        raise InputError("items are the columns of a data frame: rename its columns, or pass an array")
    if library is not None:
        return _read_pandas(data) if library == "pandas" else _read_polars(data)
    if hasattr(data, "tocsr"):
        raise InputError("scores are sparse, and their zeros could be scores or missing: pass a dense array")
    return Sheet(_numbers(data, "scores"), names, voters)


def _read_pandas(frame: Any) -> Sheet:
    items = _check_labels(frame.columns.tolist())
    for name, dtype in frame.dtypes.items():
        if dtype.kind not in "biufO":
            raise InputError(f"column {name!r} holds {dtype} values: scores are numbers")
    # frames with a single numeric dtype are not copied, all others are copied once
    values = frame.to_numpy()
    if values.dtype.kind == "O":
        columns = [_numbers(frame[name], f"column {name!r}") for name in frame.columns]
        values = np.column_stack(columns) if columns else np.empty(frame.shape)
    return Sheet(values, items, frame.index.tolist())


def _read_polars(frame: Any) -> Sheet:
    import polars as pl

    for name, dtype in frame.schema.items():
        if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
            raise InputError(f"column {name!r} holds {dtype} values: scores are numbers; drop it")
    check_polars_threads("frames are converted")
    return Sheet(frame.cast(pl.Float64).to_numpy(), list(frame.columns))


def _has_names(row: Any) -> bool:
    return isinstance(row, Mapping) or library_of(row, "Series") == "pandas"


def _read_rows(rows: Sequence[Any], names: list[Any] | None, voters: list[Any] | None) -> Sheet:
    """Read each voter's scores or places by item, from a mapping or a pandas Series."""
    if not all(map(_has_names, rows)):
        raise InputError("scores mix voters with item names and voters without: use the same for all")
    ballots: list[Mapping[Any, Any]] = []
    for row in rows:
        if not isinstance(row, Mapping):
            _check_labels(row.index.tolist())
            row = row.to_dict()
        ballots.append(row)
    labels = list(dict.fromkeys(item for row in ballots for item in row)) if names is None else names
    column = {item: number for number, item in enumerate(_check_labels(labels))}
    values = np.full((len(ballots), len(labels)), np.nan)
    for number, row in enumerate(ballots):
        for item in row:
            if item not in column:
                raise InputError(f"a ballot names {item!r}, which is not in items")
        numbers = _numbers(list(row.values()), f"the scores of {voter_name(number, voters)}")
        values[number, [column[item] for item in row]] = numbers
    return Sheet(values, labels, voters)


def _numbers(values: Any, what: str) -> np.ndarray:
    """Return a numeric array unchanged, and other input as float64 with NaN for None and similar values."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan)
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            flat = array.ravel().tolist()
            if any(isinstance(value, str | bytes) for value in flat):  # numpy would parse it as numbers
                raise TypeError
            flat = [np.nan if is_missing(value) else value for value in flat]
            array = np.array(flat, dtype=np.float64).reshape(array.shape)
    except (TypeError, ValueError):
        raise InputError(
            f"{what} must be numbers, one per item for each voter: use NaN where one is missing"
        ) from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{what} must be numbers; pass lists of items, best first, with `kind='orders'`")
    return array


def _read_orders(data: Any, names: list[Any] | None) -> Sheet:
    voters = list(data) if isinstance(data, Mapping) else None
    if library_of(data, "Series") == "pandas":
        voters = data.index.tolist()
    if library_of(data) is not None:
        data, voters = _rows_of_frame(data)
    if isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype.kind in "iu":
        fast = _read_permutations(data, names)
        if fast is not None:
            return fast
    try:
        orders = data.values() if isinstance(data, Mapping) else data
        ballots = [_places(order, voter_name(number, voters)) for number, order in enumerate(orders)]
    except TypeError:
        raise InputError("orders must be lists of items, best first, one for each voter") from None
    found = {item for ballot in ballots for item in ballot}
    if names is None and all(isinstance(item, int | np.integer) for item in found):
        names = sorted(found)  # numbers have a natural order
    return _read_rows(ballots, names, voters)


def _read_permutations(data: np.ndarray, names: list[Any] | None) -> Sheet | None:
    """Read an array of complete orders of 0 … n − 1 without a loop; return None for other input."""
    n = data.shape[1]
    if names is not None or not np.array_equal(
        np.sort(data, axis=1), np.broadcast_to(np.arange(n), data.shape)
    ):
        return None
    values = np.empty(data.shape)
    np.put_along_axis(values, data, np.arange(1.0, n + 1)[None], axis=1)
    return Sheet(values)


def _rows_of_frame(frame: Any) -> tuple[list[list[Any]], list[Any] | None]:
    """Return the orders in the rows of a data frame, where trailing missing values end a row, and the voters' names."""
    if library_of(frame) == "polars":
        rows, voters = [list(row) for row in frame.rows()], None
    else:
        # integers with missing values would become floats
        columns = [frame.iloc[:, place].convert_dtypes() for place in range(frame.shape[1])]
        rows, voters = [list(row) for row in zip(*columns, strict=True)], frame.index.tolist()
    if any(len(row) == 1 and isinstance(row[0], list | tuple | np.ndarray) for row in rows):
        raise InputError("orders are a data frame with a column of lists: pass that column")
    for row in rows:
        while row and not isinstance(row[-1], list | tuple | Set) and is_missing(row[-1]):
            row.pop()
    return rows, voters


def _places(order: Any, voter: str) -> dict[Any, int]:
    """Return the place of each item of an order; a nested list, tuple or set is a tie, with the first of its places."""
    if isinstance(order, str | bytes):
        raise InputError(f"the ballot of {voter} is text: give a list of items, best first")
    if isinstance(order, Set | Mapping):
        raise InputError("an order is a set, which has no order: pass a list, best first")
    places: dict[Any, int] = {}
    for group in order.tolist() if isinstance(order, np.ndarray) else order:
        place = len(places) + 1
        for item in group if isinstance(group, list | tuple | Set) else [group]:
            item = item.item() if isinstance(item, np.generic) else item
            _check_label(item)
            if item in places:
                raise InputError(f"{voter} names {item!r} twice: list each item once")
            places[item] = place
    return places
