"""Sums over rows stored as positions between knots.

A row's position in a column is a slot k and a fraction t: a piecewise linear function with values v at the slots has
the value ``(1 − t)·v[k] + t·v[k + 1]`` there. A pair of columns uses the four corners of its cell. So a score costs one
gather per column, whatever the number of knots.

Rows are divided into chunks whose number does not depend on the number of threads, and chunks are added in order: sums
are bit-identical for any number of cores.
"""

from __future__ import annotations

import numpy as np

from apexrank.kernels.jit import kernel


@kernel()
def find_places(X, knots, bounds, first, last, code, fraction):
    """Find slot and fraction of every value; column j has ``knots[bounds[j]:bounds[j + 1]]``, followed by NaN."""
    for i in range(first, last):
        for j in range(X.shape[1]):
            x, low, high = X[i, j], bounds[j], bounds[j + 1] - 1
            if np.isnan(x):
                code[i, j] = high + 1 - low
                continue
            if x >= knots[high] or x <= knots[low]:
                code[i, j] = high - low if x >= knots[high] else 0
                continue
            a, b = low, high
            while b - a > 1:
                middle = (a + b) // 2
                if knots[middle] <= x:
                    a = middle
                else:
                    b = middle
            code[i, j] = a - low
            # halved, because the difference of two large numbers of opposite signs may overflow
            fraction[i, j] = (0.5 * x - 0.5 * knots[a]) / (0.5 * knots[b] - 0.5 * knots[a])


@kernel()
def gather(code, fraction, starts, v, first, last, out):
    """Add the values of v at the positions of each row to ``out``."""
    for i in range(first, last):
        total = 0.0
        for j in range(code.shape[1]):
            k = starts[j] + code[i, j]
            total += v[k] + fraction[i, j] * (v[k + 1] - v[k])
        out[i] += total


@kernel()
def scatter(code, fraction, starts, r, chunk, first, last, out):
    """Add r of each row to the slots of its positions, in ``out[b]`` for chunk b."""
    n = code.shape[0]
    for b in range(first, last):
        for i in range(b * chunk, min(n, (b + 1) * chunk)):
            for j in range(code.shape[1]):
                k, part = starts[j] + code[i, j], r[i] * fraction[i, j]
                out[b, k] += r[i] - part
                out[b, k + 1] += part


@kernel()
def gather_pairs(code, fraction, pairs, widths, starts, v, first, last, out):
    """Add the values of v (concatenated grids) at the positions of each row in pairs of columns to ``out``."""
    for i in range(first, last):
        total = 0.0
        for q in range(pairs.shape[0]):
            a, b, width = pairs[q, 0], pairs[q, 1], widths[pairs[q, 1]]
            if code[i, a] < widths[a] and code[i, b] < width:
                k, s, t = starts[q] + code[i, a] * width + code[i, b], fraction[i, a], fraction[i, b]
                below = v[k] + t * (v[k + 1] - v[k])
                if s > 0:
                    below += s * (v[k + width] + t * (v[k + width + 1] - v[k + width]) - below)
                total += below
        out[i] += total


@kernel()
def scatter_pairs(code, fraction, pairs, widths, starts, r, chunk, first, last, out):
    """Add r of each row to the corners of its cells, in ``out[b]`` for chunk b."""
    n = code.shape[0]
    for c in range(first, last):
        for i in range(c * chunk, min(n, (c + 1) * chunk)):
            for q in range(pairs.shape[0]):
                a, b, width = pairs[q, 0], pairs[q, 1], widths[pairs[q, 1]]
                if code[i, a] < widths[a] and code[i, b] < width:
                    k, s, t = starts[q] + code[i, a] * width + code[i, b], fraction[i, a], fraction[i, b]
                    out[c, k] += r[i] * (1 - s) * (1 - t)
                    out[c, k + 1] += r[i] * (1 - s) * t
                    if s > 0:
                        out[c, k + width] += r[i] * s * (1 - t)
                        out[c, k + width + 1] += r[i] * s * t


@kernel()
def nonzeros(code, fraction, starts, two_code, two_fraction, pairs, widths, i, slot, value):
    """Fill in the slots and values of row i; return their number."""
    n = 0
    for j in range(code.shape[1]):
        slot[n], value[n] = starts[j] + code[i, j], 1 - fraction[i, j]
        n += 1
        if fraction[i, j] > 0:
            slot[n], value[n] = slot[n - 1] + 1, fraction[i, j]
            n += 1
    for q in range(pairs.shape[0]):
        a, b, width = pairs[q, 0], pairs[q, 1], widths[pairs[q, 1]]
        if two_code[i, a] < widths[a] and two_code[i, b] < width:
            k = starts[code.shape[1] + q] + two_code[i, a] * width + two_code[i, b]
            s, t = two_fraction[i, a], two_fraction[i, b]
            for up in range(2):
                for right in range(2):
                    part = (s if up else 1 - s) * (t if right else 1 - t)
                    if part > 0:
                        slot[n], value[n] = k + up * width + right, part
                        n += 1
    return n


@kernel()
def spread(code, fraction, starts, two_code, two_fraction, pairs, widths, first, last, slot, value):
    """Fill in slots and values of some rows, one line per nonzero: two for each column and four for each pair."""
    d = code.shape[1]
    for i in range(first, last):
        at = i - first
        for j in range(d):
            for right in range(2):
                slot[2 * j + right, at] = starts[j] + code[i, j] + right
                value[2 * j + right, at] = fraction[i, j] if right else 1 - fraction[i, j]
        for q in range(pairs.shape[0]):
            a, b, width, line = pairs[q, 0], pairs[q, 1], widths[pairs[q, 1]], 2 * d + 4 * q
            known = two_code[i, a] < widths[a] and two_code[i, b] < width
            k = starts[d + q] + (two_code[i, a] * width + two_code[i, b] if known else 0)
            s, t = two_fraction[i, a], two_fraction[i, b]
            for up in range(2):
                for right in range(2):
                    part = (s if up else 1 - s) * (t if right else 1 - t) if known else 0.0
                    slot[line + 2 * up + right, at] = k + up * width + right if part > 0 else k
                    value[line + 2 * up + right, at] = part


@kernel()
def gram(slot, value, lines, weight, tasks, first, last, out):
    """Add ``Σ weight·x·xᵀ`` over rows x to the upper triangle of ``out``, one pair of blocks of columns at a time.

    Slots and values are those of :func:`spread`; the nonzeros of block b are ``lines[b]`` to ``lines[b + 1]``. Two
    blocks fit into the cache.
    """
    for task in range(first, last):
        a, b = tasks[task, 0], tasks[task, 1]
        for i in range(len(weight)):
            if weight[i] == 0:
                continue
            for k in range(lines[a], lines[a + 1]):
                part = weight[i] * value[k, i]
                if part != 0:
                    for m in range(max(k, lines[b]), lines[b + 1]):
                        out[slot[k, i], slot[m, i]] += part * value[m, i]


@kernel()
def block_grams(code, fraction, starts, two_code, two_fraction, pairs, widths, weight, places, out):
    """Add ``Σ weight·x·xᵀ`` over the rows x, for each column and pair separately, to the square at ``out[places[b]]``.

    Only the upper triangles are filled.
    """
    most = 2 * code.shape[1] + 4 * pairs.shape[0]
    slot, value = np.empty(most, dtype=np.int64), np.empty(most)
    for i in range(code.shape[0]):
        n = nonzeros(code, fraction, starts, two_code, two_fraction, pairs, widths, i, slot, value)
        b = 0
        for k in range(n):
            while slot[k] >= starts[b + 1]:
                b += 1
            row = places[b] + (slot[k] - starts[b]) * (starts[b + 1] - starts[b]) - starts[b]
            m = k
            while m < n and slot[m] < starts[b + 1]:
                out[row + slot[m]] += weight[i] * value[k] * value[m]
                m += 1


@kernel()
def expand(code, fraction, starts, two_code, two_fraction, pairs, widths, out):
    """Expand rows to a dense matrix ``out`` of rows by slots."""
    most = 2 * code.shape[1] + 4 * pairs.shape[0]
    slot, value = np.empty(most, dtype=np.int64), np.empty(most)
    for i in range(code.shape[0]):
        n = nonzeros(code, fraction, starts, two_code, two_fraction, pairs, widths, i, slot, value)
        for k in range(n):
            out[i, slot[k]] += value[k]


@kernel()
def cell_sums(code, r, weight, pairs, widths, first, last, sums, counts):
    """Sum r and the weights in the cells of each pair of columns; ``code`` has one row per column."""
    for q in range(first, last):
        a, b = pairs[q, 0], pairs[q, 1]
        for i in range(code.shape[1]):
            k, m = code[a, i], code[b, i]
            if k < widths[a] and m < widths[b]:
                sums[q, k, m] += r[i]
                counts[q, k, m] += weight[i]
