"""Counting sorts of links, linear in time and memory, and hash tables of vertex numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from apexrank.kernels.jit import kernel

MOST_IN_INT32 = 2**31  # number of vertices that fit
_NONE = np.empty(0)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplicative hashing: 2^64 over the golden ratio


class Links(NamedTuple):
    """Links by row: those of row i are ``indices[indptr[i]:indptr[i + 1]]``; no weights if all are 1."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray | None


def index_type(n: int) -> type[np.signedinteger]:
    """Return the narrower integer type that fits n vertex numbers."""
    return np.int32 if n <= MOST_IN_INT32 else np.int64


def in_links(
    sources: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray | None,
    n: int,
    *,
    both_ways: bool = False,
    drop_loops: bool = False,
    sign: int = 1,
    n_targets: int | None = None,
) -> Links:
    """Sort links by target and source; repeated links are kept and adjacent.

    Parameters
    ----------
    sources, targets : ndarray of int32 or int64
        Ends of each link, from 0 to n − 1.
    weights : ndarray of float64, optional
        Weight of each link; without them all weights are 1.
    n : int
        Number of vertices.
    both_ways : bool
        Add the reverse of each link, except for self-loops.
    drop_loops : bool
        Drop self-loops.
    sign : {1, -1, 0}
        Keep only links with ``sign · weight > 0``, with that weight; with 0 all links except those of weight 0, with
        their absolute weight.
    n_targets : int, optional
        Number of targets, if these are numbered separately.

    Notes
    -----
    Two stable counting sorts, by source and then by target, leave the sources of a target in order; links already
    sorted by source need only the second one. Peak memory is one copy of the result in addition to the result.

    Examples
    --------
    >>> links = in_links(np.array([2, 0, 1]), np.array([1, 1, 0]), None, 3)
    >>> links.indptr.tolist(), links.indices.tolist()
    ([0, 1, 3, 3], [1, 0, 2])
    """
    rows = n if n_targets is None else n_targets
    rules = both_ways, drop_loops, sign
    if not both_ways and _is_ascending(_frozen(sources)):
        return _grouped(targets, sources, weights, rows, n, rules)
    return turned(_grouped(sources, targets, weights, n, rows, rules), rows)


def turned(links: Links, n_columns: int | None = None) -> Links:
    """Transpose links: by column (as many as rows, by default), with rows ascending within a column.

    Examples
    --------
    >>> turned(Links(np.array([0, 1, 3]), np.array([1, 0, 1], dtype=np.int32), None)).indices.tolist()
    [1, 0, 1]
    """
    rows = len(links.indptr) - 1
    indptr = np.zeros((rows if n_columns is None else n_columns) + 1, dtype=np.int64)
    indices = np.empty(len(links.indices), dtype=index_type(rows))
    given = _NONE if links.weights is None else links.weights
    placed = np.empty_like(given)
    frozen = Links(_frozen(links.indptr), _frozen(links.indices), _frozen(given))
    _turn(*frozen, indptr, indices, placed)
    return Links(indptr, indices, None if links.weights is None else placed)


def merged(links: Links, repeated: str) -> Links:
    """Merge repeated links in place, with the ``"sum"`` of their weights (1 each if none) or the ``"largest"``.

    Examples
    --------
    >>> twice = Links(np.array([0, 2]), np.array([0, 0], dtype=np.int32), None)
    >>> merged(twice, "sum").weights.tolist()
    [2.0]
    """
    indptr, indices, weights = links
    kept = len(indices) - count_repeated(links)
    if kept == len(indices):
        return links
    add = repeated == "sum"
    if weights is None:
        weights = np.empty(kept if add else 0)
        _merge(indptr, indices, _NONE, weights, add)
    else:
        _merge(indptr, indices, weights, weights, add)
        weights.resize(kept, refcheck=False)
    # frees memory that a slice would keep
    indices.resize(kept, refcheck=False)
    return Links(indptr, indices, weights if len(weights) else None)


def count_repeated(links: Links) -> int:
    """Count the links that repeat the previous one."""
    return int(_repeated(_frozen(links.indptr), _frozen(links.indices))[0])


def first_repeated(links: Links) -> tuple[int, int] | None:
    """Return the row and column of the first repeated link, or None."""
    count, row, position = _repeated(_frozen(links.indptr), _frozen(links.indices))
    return (int(row), int(links.indices[position])) if count else None


def column_weights(links: Links) -> np.ndarray:
    """Sum the weights in each column, with an error of a few units in the last place."""
    total, lost = np.zeros((2, len(links.indptr) - 1))
    add_column_weights(links, total, lost)
    return total + lost


def add_column_weights(links: Links, total: np.ndarray, lost: np.ndarray) -> None:
    """Add the weights in each column to ``total``, and its rounding errors to ``lost``."""
    given = _NONE if links.weights is None else links.weights
    _add_column_weights(_frozen(links.indices), _frozen(given), total, lost)


def loop_weights(links: Links) -> np.ndarray:
    """Weight of the self-loop of each vertex, 0 if it has none."""
    total = np.zeros(len(links.indptr) - 1)
    given = _NONE if links.weights is None else links.weights
    _loop_weights(_frozen(links.indptr), _frozen(links.indices), _frozen(given), total)
    return total


def seen_ids(sources: np.ndarray, targets: np.ndarray, size: int) -> np.ndarray:
    """Return a mask of the numbers 0 to size − 1 that occur.

    Examples
    --------
    >>> seen_ids(np.array([0, 3]), np.array([0, 0]), 4).tolist()
    [True, False, False, True]
    """
    seen = np.zeros(size, dtype=np.bool_)
    for ids in (sources, targets):
        _mark(_frozen(ids), seen)
    return seen


def looked_up(ids: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return ``numbers[ids]`` without the copy of the ids that numpy would make."""
    found = np.empty(len(ids), dtype=numbers.dtype)
    _look_up(_frozen(ids), _frozen(numbers), found)
    return found


def has_padded_number(text: np.ndarray) -> bool:
    """Return whether any field of a text, given as bytes, begins with a zero and a digit.

    Examples
    --------
    >>> [has_padded_number(np.frombuffer(text, np.uint8)) for text in (b"7 10", b"7,-007", b"0.5 100")]
    [False, True, False]
    """
    return bool(_has_padded_number(_frozen(np.asarray(text))))


def _grouped(
    keys: np.ndarray, others: np.ndarray, weights: np.ndarray | None, n: int, n_others: int, rules: tuple
) -> Links:
    """Group links by key, keeping their order."""
    keys, others = _frozen(keys), _frozen(others)
    given = _NONE if weights is None else _frozen(weights)
    indptr = np.zeros(n + 1, dtype=np.int64)
    _count(keys, others, given, indptr, *rules)
    np.cumsum(indptr, out=indptr)
    kept = int(indptr[n])
    indices = np.empty(kept, dtype=index_type(n_others))
    placed = np.empty(0 if weights is None else kept)
    _place(keys, others, given, indptr, indices, placed, *rules)
    return Links(indptr, indices, None if weights is None else placed)


def _frozen(values: np.ndarray) -> np.ndarray:
    """Return a read-only view, so that kernels are not compiled twice, for writable and read-only arrays."""
    view = values.view()
    view.flags.writeable = False
    return view


@kernel()
def _has_padded_number(text):
    for i in range(text.size - 1):
        if text[i] == 48 and 48 <= text[i + 1] <= 57:  # 0 and a digit
            j = i - 1
            if j >= 0 and (text[j] == 43 or text[j] == 45):  # a sign
                j -= 1
            # at the start of a field: after white space, a quotation mark, a comma or a semicolon
            if (
                j < 0
                or text[j] == 32
                or 9 <= text[j] <= 13
                or text[j] == 34
                or text[j] == 44
                or text[j] == 59
            ):
                return True
    return False


@kernel()
def _mark(ids, seen):
    for i in ids:
        seen[i] = True


@kernel()
def _look_up(ids, numbers, found):
    for k in range(ids.size):
        found[k] = numbers[ids[k]]


@kernel()
def _is_ascending(values):
    i = 1
    while i < values.size and values[i] >= values[i - 1]:
        i += 1
    return i >= values.size


@kernel()
def _weight(weights, i, sign):
    if weights.size == 0:
        return 1.0
    return abs(weights[i]) if sign == 0 else sign * weights[i]


@kernel()
def _count(keys, others, weights, indptr, both_ways, drop_loops, sign):
    for i in range(keys.size):
        key, other = keys[i], others[i]
        if (drop_loops and key == other) or not _weight(weights, i, sign) > 0.0:
            continue
        indptr[key + 1] += 1
        if both_ways and key != other:
            indptr[other + 1] += 1


@kernel()
def _place(keys, others, weights, indptr, indices, placed, both_ways, drop_loops, sign):
    for i in range(keys.size):
        key, other, weight = keys[i], others[i], _weight(weights, i, sign)
        if (drop_loops and key == other) or not weight > 0.0:
            continue
        for _ in range(2 if both_ways and key != other else 1):
            at = indptr[key]  # the row's start serves as its cursor, and _step_back restores it
            indices[at] = other
            if placed.size:
                placed[at] = weight
            indptr[key] = at + 1
            key, other = other, key
    _step_back(indptr)


@kernel()
def _turn(indptr, indices, weights, new_indptr, new_indices, placed):
    for j in indices:
        new_indptr[j + 1] += 1
    for j in range(new_indptr.size - 1):
        new_indptr[j + 1] += new_indptr[j]
    for i in range(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            at = new_indptr[indices[k]]
            new_indices[at] = i
            if placed.size:
                placed[at] = weights[k]
            new_indptr[indices[k]] = at + 1
    _step_back(new_indptr)


@kernel()
def _step_back(indptr):
    """Restore row starts, which the placement has moved to the row ends."""
    for i in range(indptr.size - 1, 0, -1):
        indptr[i] = indptr[i - 1]
    indptr[0] = 0


@kernel()
def _merge(indptr, indices, weights, out, add):
    kept, first = 0, indptr[0]
    for i in range(indptr.size - 1):
        last, row_start = indptr[i + 1], kept
        for k in range(first, last):
            weight = weights[k] if weights.size else 1.0
            # in place: the write position never passes the read position
            if kept > row_start and indices[kept - 1] == indices[k]:
                if out.size:
                    out[kept - 1] = out[kept - 1] + weight if add else max(out[kept - 1], weight)
                continue
            indices[kept] = indices[k]
            if out.size:
                out[kept] = weight
            kept += 1
        first = last
        indptr[i + 1] = kept


@kernel()
def _repeated(indptr, indices):
    """Return the number of links that repeat the previous one, and row and position of the first of them."""
    count, row, position = 0, -1, -1
    for i in range(indptr.size - 1):
        for k in range(indptr[i] + 1, indptr[i + 1]):
            if indices[k] == indices[k - 1]:
                if count == 0:
                    row, position = i, k
                count += 1
    return count, row, position


@kernel()
def _add_column_weights(indices, weights, total, lost):
    """Sum by TwoSum, because scores depend on these sums, some of them of millions of terms."""
    for k in range(indices.size):
        w = weights[k] if weights.size else 1.0
        j = indices[k]
        new = total[j] + w
        share = new - total[j]
        lost[j] += (total[j] - (new - share)) + (w - share)
        total[j] = new


@kernel()
def _loop_weights(indptr, indices, weights, total):
    for i in range(total.size):
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] == i:
                total[i] += weights[k] if weights.size else 1.0


class NumberTable(NamedTuple):
    """Open-addressing hash table from keys to numbers with linear probing; a free slot has the number -1."""

    keys: np.ndarray
    numbers: np.ndarray


def number_table(keys: np.ndarray) -> NumberTable | None:
    """Number int64 keys by their positions; None if two of them are equal.

    Examples
    --------
    >>> numbers_of(np.array([7, -3, 7]), number_table(np.array([-3, 7]))).tolist()
    [1, 0, 1]
    >>> number_table(np.array([5, 5])) is None
    True
    """
    slots = 1 << int(1.5 * len(keys) + 1).bit_length()
    table = NumberTable(np.empty(slots, np.int64), np.full(slots, -1, index_type(len(keys))))
    return table if _fill(np.ascontiguousarray(keys), *table) else None


def numbers_of(keys: np.ndarray, table: NumberTable) -> np.ndarray:
    """Look up the numbers of keys, which must all be in the table."""
    numbers = np.empty(len(keys), table.numbers.dtype)
    _find(np.ascontiguousarray(keys, dtype=np.int64), *table, numbers)
    return numbers


def bucket_rows(targets: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort rows stably by bucket; bucket k has the targets from ``bounds[k]`` to below ``bounds[k + 1]``.

    Returns
    -------
    starts, order : ndarray
        The rows of bucket k are ``order[starts[k]:starts[k + 1]]``.

    Examples
    --------
    >>> starts, order = bucket_rows(np.array([4, 0, 2, 1]), np.array([0, 2, 5]))
    >>> starts.tolist(), order.tolist()
    ([0, 2, 4], [1, 3, 0, 2])
    """
    bucket = np.searchsorted(bounds, targets, side="right") - 1
    # NumPy sorts 16-bit integers by radix sort, in linear time
    order = np.argsort(bucket.astype(np.uint16) if len(bounds) < 2**16 else bucket, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(bucket, minlength=len(bounds) - 1))])
    return starts, order


@kernel()
def _slot(key, slots):
    mixed = np.uint64(key) * _GOLDEN
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(slots - 1))


@kernel()
def _fill(keys, table, numbers):
    for i in range(keys.size):
        slot = _slot(keys[i], table.size)
        while numbers[slot] >= 0:
            if table[slot] == keys[i]:
                return False
            slot = (slot + 1) & (table.size - 1)
        table[slot] = keys[i]
        numbers[slot] = i
    return True


@kernel()
def _find(keys, table, numbers, found):
    for i in range(keys.size):
        slot = _slot(keys[i], table.size)
        while table[slot] != keys[i] or numbers[slot] < 0:
            slot = (slot + 1) & (table.size - 1)
        found[i] = numbers[slot]
