"""Edges numbered and divided into buckets: a hash table of vertices, a stable scatter by target."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from apexrank.kernels.edges import index_type
from apexrank.kernels.jit import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplicative hashing: 2^64 over the golden ratio


class NumberTable(NamedTuple):
    """Numbers by key in an open hash table with linear probing; a free slot has the number -1."""

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
    """Look up the numbers of keys, all of which are in the table."""
    numbers = np.empty(len(keys), table.numbers.dtype)
    _find(np.ascontiguousarray(keys, dtype=np.int64), *table, numbers)
    return numbers


def count_ids(ids: np.ndarray, counts: np.ndarray) -> None:
    """Add to ``counts[i]`` how often i occurs."""
    _count(np.ascontiguousarray(ids), counts)


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
    starts = np.zeros(len(bounds) + 1, np.int64)
    order = np.empty(len(targets), np.int64)
    _divide(np.ascontiguousarray(targets), np.ascontiguousarray(bounds, dtype=np.int64), starts, order)
    return starts[:-1], order


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


@kernel()
def _count(ids, counts):
    for i in ids:
        counts[i] += 1


@kernel()
def _bucket(target, bounds):
    low, high = 0, bounds.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if bounds[middle] <= target:
            low = middle
        else:
            high = middle
    return low


@kernel()
def _divide(targets, bounds, starts, order):
    # starts[k + 1] is where bucket k begins until its rows are placed, and where it ends after that
    for target in targets:
        starts[_bucket(target, bounds) + 2] += 1
    for k in range(2, starts.size):
        starts[k] += starts[k - 1]
    for i in range(targets.size):
        k = _bucket(targets[i], bounds) + 1
        order[starts[k]] = i
        starts[k] += 1
