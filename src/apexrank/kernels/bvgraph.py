"""Decoder of BVGraph, the format of WebGraph (Boldi and Vigna, "The WebGraph framework I", 2004).

A file is one stream of bits, the most significant of each byte first. A vertex has its out-degree d and, if d > 0:
how far back the list is that it copies from (0: none; left out if the window is 0); if it copies, the number of blocks
and their lengths, of which the first, third, ... are copied and the others skipped (all but the first are written less
1, and what follows an even number of blocks is copied); and if links are still missing, intervals of consecutive
numbers (their number, then for each its begin and its length less the shortest) and the gaps of the residuals. The
begin of the first interval and the first residual are relative to the vertex, with the sign in the lowest bit; others
are relative to the end of the one before, less 1.
"""

from __future__ import annotations

from apexrank.kernels.jit import kernel

CODES = ("UNARY", "GAMMA", "DELTA", "ZETA")


@kernel()
def _unary(data, at):
    """Count the zeros before the next one; return them and the position after it."""
    begin, end = at, 8 * data.size
    while at < end and not (data[at >> 3] >> (7 - (at & 7))) & 1:
        at += 1
    return at - begin, at + 1


@kernel()
def _bits(data, at, count):
    value, end = 0, 8 * data.size
    for k in range(at, min(at + count, end)):
        value = (value << 1) | ((data[k >> 3] >> (7 - (k & 7))) & 1)
    return value, at + count


@kernel()
def read_code(data, at, code, zeta):
    """Read a number of at least 0; return it and the position after it (beyond the data when they end early)."""
    size, at = _unary(data, at)
    if code == 0:
        return size, at
    if code == 2:  # delta: the size is written in gamma
        value, at = _bits(data, at, min(size, 62))
        size = (1 << min(size, 62) | value) - 1
    if code == 3:
        width = size * zeta
        if width + zeta > 62:
            return 0, 8 * data.size + 1
        value, at = _bits(data, at, width + zeta - 1)
        if value < 1 << width:
            return value + (1 << width) - 1, at
        last, at = _bits(data, at, 1)
        return 2 * value + last - 1, at
    if size > 62:
        return 0, 8 * data.size + 1
    value, at = _bits(data, at, size)
    return (1 << size | value) - 1, at


@kernel()
def _signed(value):
    return value >> 1 if value & 1 == 0 else -((value + 1) >> 1)


@kernel()
def decode(data, indptr, indices, window, shortest, zeta, codes):
    """Fill ``indptr`` and ``indices`` with the links of each vertex; return the first damaged vertex, or -1.

    ``codes`` are those of out-degrees, references, numbers of blocks, blocks and residuals, by position in `CODES`.
    """
    at, n, end = 0, indptr.size - 1, 8 * data.size
    for x in range(n):
        begin = indptr[x]
        degree, at = read_code(data, at, codes[0], zeta)
        if at > end or degree > indices.size - begin:
            return x
        indptr[x + 1] = stop = begin + degree
        if degree == 0:
            continue
        k = begin  # where the next link goes
        back = 0
        if window > 0:
            back, at = read_code(data, at, codes[1], zeta)
        if back > 0:
            if back > min(x, window):
                return x
            copied, last = indptr[x - back], indptr[x - back + 1]
            blocks, at = read_code(data, at, codes[2], zeta)
            if at > end or blocks > last - copied + 1:
                return x
            for block in range(blocks + 1):
                length = last - copied  # all that is left, after the last block
                if block < blocks:
                    length, at = read_code(data, at, codes[3], zeta)
                    length += block > 0
                if at > end or length > last - copied or (block % 2 == 0 and length > stop - k):
                    return x
                if block % 2 == 0:
                    indices[k : k + length] = indices[copied : copied + length]
                    k += length
                copied += length
        if k < stop and shortest > 0:
            intervals, at = read_code(data, at, 1, zeta)
            if at > end or intervals > stop - k:
                return x
            value = x
            for interval in range(intervals):
                gap, at = read_code(data, at, 1, zeta)
                value += _signed(gap) if interval == 0 else gap + 1
                length, at = read_code(data, at, 1, zeta)
                length += shortest
                if at > end or length > stop - k or not 0 <= value <= n - length:
                    return x
                for _ in range(length):
                    indices[k] = value
                    value += 1
                    k += 1
        value = x
        first = True
        while k < stop:
            gap, at = read_code(data, at, codes[4], zeta)
            value += _signed(gap) if first else gap + 1
            first = False
            if at > end or not 0 <= value < n:
                return x
            indices[k] = value
            k += 1
        indices[begin:stop].sort()
        for j in range(begin + 1, stop):
            if indices[j] == indices[j - 1]:
                return x
    return -1
