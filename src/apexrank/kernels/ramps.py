"""Sums over rows that are kept as places between knots.

A row's place in a column is a slot k and a fraction t: of any function with the values v at the slots it takes
``(1 − t)·v[k] + t·v[k + 1]``. Of a pair of columns it takes the four corners of its cell. So a score costs one gather a
column, however many knots there are.

Rows are cut into chunks whose number does not depend on the number of threads, and chunks are added in order: sums are
the same to the last bit on one core and on many.
"""

from __future__ import annotations

import numpy as np

from apexrank.kernels.jit import kernel


@kernel()
def find_places(X, knots, bounds, first, last, code, fraction):
    """Slot and fraction of every value; ``knots[bounds[j]:bounds[j + 1]]`` are those of column j, and NaN comes after them."""
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
            # halves, as the difference of two large numbers of different signs may overflow
            fraction[i, j] = (0.5 * x - 0.5 * knots[a]) / (0.5 * knots[b] - 0.5 * knots[a])


@kernel()
def gather(code, fraction, starts, v, first, last, out):
    """Add to ``out`` the values of v at the places of each row."""
    for i in range(first, last):
        total = 0.0
        for j in range(code.shape[1]):
            k = starts[j] + code[i, j]
            total += v[k] + fraction[i, j] * (v[k + 1] - v[k])
        out[i] += total


@kernel()
def scatter(code, fraction, starts, r, chunk, first, last, out):
    """Add r of each row to the slots at its places, in ``out[b]`` for chunk b."""
    n = code.shape[0]
    for b in range(first, last):
        for i in range(b * chunk, min(n, (b + 1) * chunk)):
            for j in range(code.shape[1]):
                k, part = starts[j] + code[i, j], r[i] * fraction[i, j]
                out[b, k] += r[i] - part
                out[b, k + 1] += part


@kernel()
def expand(code, fraction, starts, columns, C, first, last, out):
    """Fill rows of the dense matrix: column j takes the entries of C in ``columns[j]`` to ``columns[j + 1]``."""
    for i in range(first, last):
        for j in range(code.shape[1]):
            k, t = starts[j] + code[i, j], fraction[i, j]
            for m in range(columns[j], columns[j + 1]):
                out[i - first, m] = C[k, m] + t * (C[k + 1, m] - C[k, m])


@kernel()
def gather_pairs(code, fraction, pairs, widths, starts, v, first, last, out):
    """Add to ``out`` the values of v, grids one after the other, at the places of each row in pairs of columns."""
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
def expand_pairs(code, fraction, pairs, widths, starts, columns, C, first, last, out):
    """Fill rows of the dense matrix for pairs of columns, from ``columns[q]`` to ``columns[q + 1]``."""
    for i in range(first, last):
        for q in range(pairs.shape[0]):
            a, b, width = pairs[q, 0], pairs[q, 1], widths[pairs[q, 1]]
            known = code[i, a] < widths[a] and code[i, b] < width
            k, s, t = starts[q] + code[i, a] * width + code[i, b], fraction[i, a], fraction[i, b]
            for m in range(columns[q], columns[q + 1]):
                total = 0.0
                if known:
                    total = C[k, m] + t * (C[k + 1, m] - C[k, m])
                    if s > 0:
                        above = C[k + width, m] + t * (C[k + width + 1, m] - C[k + width, m])
                        total += s * (above - total)
                out[i - first, m] = total


@kernel()
def cell_sums(code, r, weight, pairs, widths, first, last, sums, counts):
    """Sums of r and of the weights in the cells between knots of each pair of columns."""
    for q in range(first, last):
        a, b = pairs[q, 0], pairs[q, 1]
        for i in range(code.shape[0]):
            if code[i, a] < widths[a] and code[i, b] < widths[b]:
                sums[q, code[i, a], code[i, b]] += r[i]
                counts[q, code[i, a], code[i, b]] += weight[i]
