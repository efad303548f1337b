"""Reader of crawls in the WebGraph format, BVGraph (Boldi and Vigna, "The WebGraph framework I", 2004).

It decodes unary, gamma, delta and zeta codes, and rejects little-endian files and the rarer codes. It needs no
``.offsets`` file. No file written by WebGraph itself was available for testing.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from apexrank.errors import InputError
from apexrank.files import read_text
from apexrank.kernels.edges import index_type
from apexrank.kernels.jit import kernel

CODES = ("UNARY", "GAMMA", "DELTA", "ZETA")


def read_webgraph(base: str | Path) -> csr_array:
    """Read the pair of files ``base.graph`` and ``base.properties``; the vertices are 0 to n − 1."""
    text = read_text(f"{base}.properties")
    given = dict(re.findall(r"(?m)^\s*([a-z]+)\s*[=:]\s*(.*?)\s*$", text))
    graph = Path(f"{base}.graph")
    if not given.get("graphclass", "").endswith(".BVGraph") or given.get("endianness", "big") != "big":
        raise InputError(f"{base}.properties: only big-endian graphs of the class BVGraph are read")
    defaults = {"OUTDEGREES": "GAMMA", "REFERENCES": "UNARY", "BLOCK_COUNT": "GAMMA", "BLOCKS": "GAMMA"}
    codes = {**defaults, "RESIDUALS": "ZETA", "OFFSETS": "GAMMA"}
    for flag in filter(None, re.split(r"[\s|]+", given.get("compressionflags", ""))):
        part, _, code = flag.rpartition("_")
        if part not in codes or code not in CODES:
            raise InputError(f"{base}.properties: the compression flag {flag!r} is not known")
        codes[part] = code
    keys = ("nodes", "arcs", "windowsize", "minintervallength")
    try:
        n, m, window, shortest = (int(given[key]) for key in keys)
        zeta = int(given.get("zetak", 3))
    except (KeyError, ValueError):
        raise InputError(f"{base}.properties needs whole numbers for {', '.join(keys)} and zetak") from None
    if not graph.is_file():
        raise InputError(f"there is no {graph}")
    data = np.fromfile(graph, np.uint8)
    # every vertex needs at least one bit
    if not (0 < n <= 8 * len(data) and 0 <= 4 * m <= max(1 << 29, 500 * len(data)) and 0 < zeta < 32):
        raise InputError(f"{base}.properties does not fit the {len(data)} bytes of {graph}: copy both again")
    indptr, indices = np.zeros(n + 1, np.int64), np.empty(m, index_type(n))
    numbers = np.array([CODES.index(codes[part]) for part in (*defaults, "RESIDUALS")])
    broken = decode(data, indptr, indices, window, shortest, zeta, numbers)
    if broken >= 0 or indptr[n] != m:
        raise InputError(f"{graph} is damaged at vertex {broken if broken >= 0 else n}: copy the file again")
    return csr_array((np.ones(m, np.int8), indices, indptr), shape=(n, n))


@kernel()
def _unary(data, at):
    """Count the 0 bits before the next 1 bit; return the count and the position after it."""
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
    """Read a non-negative number; return it and the position after it (beyond the end if the data are truncated)."""
    size, at = _unary(data, at)
    if code == 0:
        return size, at
    if code == 2:  # delta: the size is gamma-coded
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
    """Decode the links of each vertex into ``indptr`` and ``indices``; return the first damaged vertex, or -1.

    A file is one stream of bits, the most significant of each byte first. A vertex has its out-degree d and, if d > 0:
    the distance to the earlier list that it copies from (0: none; omitted if the window is 0); if it copies, the number
    of blocks and their lengths, of which the first, third, ... are copied and the others skipped (all lengths except
    the first are stored minus 1, and everything after an even number of blocks is copied); and if links are still
    missing, intervals of consecutive numbers (their number, then for each its start and its length minus the shortest)
    and the gaps of the residuals. The start of the first interval and the first residual are relative to the vertex,
    with the sign in the lowest bit; others are relative to the end of the previous one, minus 1.

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
        k = begin  # position of the next link
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
                length = last - copied  # everything after the last block
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
