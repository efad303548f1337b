"""Convex hulls of sparse distributions for many rows: mixtures, and the nearest point of every hull.

Row i has candidates ``t_i^1 … t_i^m``, distributions over the columns. A mixture ``p_i = Σ_k λ_ik t_i^k`` is sparse on
the union of their columns; with a share 1 − a of a common distribution it is ``t̂_i = a·p_i + base``. Only columns of
the union are ever visited: elsewhere ``t̂_i`` equals ``base``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from apexrank.kernels.edges import Links, in_links
from apexrank.kernels.jit import kernel

KL, SQUARED, ITAKURA_SAITO, LOGISTIC = range(4)
TINY = 1e-18  # lower bound of t in log t and 1/t
FLAT = 1e-12  # possible gain, relative to the cost, that is lost in rounding
DEPENDENT = 1e-14  # relative size of a pivot that is only a rounding error
SMALLEST = 1e-300  # smallest weight under a pull, which keeps all weights positive
LEAST_INFORMATION = 0.01  # nats; layers with less information are uninformative
MOST_STEPS = 60  # Newton steps per row; a few are typical


class Hulls(NamedTuple):
    """Candidates of every row, with entries sorted by column and grouped by the columns of the union.

    Attributes
    ----------
    indptr, indices : ndarray
        Union: columns of row i are ``indices[indptr[i]:indptr[i + 1]]``, ascending.
    entries : ndarray of int64
        Entries of position u of the union are ``entries[u]`` to ``entries[u + 1]``.
    candidate, share : ndarray
        For each entry, its candidate within the row, from 0, and its share of it.
    first : ndarray of int64
        Candidates of row i are ``first[i]`` to ``first[i + 1]`` in arrays with one value per candidate.
    layer : ndarray of int32
        Layer of each candidate.
    """

    indptr: np.ndarray
    indices: np.ndarray
    entries: np.ndarray
    candidate: np.ndarray
    share: np.ndarray
    first: np.ndarray
    layer: np.ndarray

    @property
    def rows(self) -> tuple[np.ndarray, ...]:
        """Arrays that kernels need to iterate over the entries of a row."""
        return self.indptr, self.indices, self.entries, self.candidate, self.share


def stacked(layers: Sequence[Links]) -> Hulls:
    """Build hulls from the rows of several square matrices; an empty row of a layer is not a candidate.

    Examples
    --------
    >>> two = Links(np.array([0, 2, 2]), np.array([0, 1], dtype=np.int32), np.array([1.0, 3.0]))
    >>> one = Links(np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32), None)
    >>> hulls = stacked([two, one])
    >>> hulls.indices.tolist(), hulls.share.tolist(), hulls.layer.tolist()
    ([0, 1, 0], [0.25, 0.75, 1.0, 1.0], [0, 1, 1])
    """
    n = len(layers[0].indptr) - 1
    sizes = [np.diff(links.indptr) for links in layers]
    opinions = np.stack(sizes, axis=1) > 0
    number = np.cumsum(opinions, axis=1) - 1  # index of a layer among those of the row
    parts = []
    for k, (links, size) in enumerate(zip(layers, sizes, strict=True)):
        row = np.repeat(np.arange(n, dtype=links.indices.dtype), size)
        weights = np.ones(len(row)) if links.weights is None else links.weights
        parts.append((row, links.indices, number[row, k], weights / np.bincount(row, weights, n)[row]))
    layer = np.broadcast_to(np.arange(len(layers), dtype=np.int32), opinions.shape)[opinions]
    return gathered(parts, opinions.sum(axis=1), layer)


def gathered(parts: Sequence[tuple[np.ndarray, ...]], sizes: np.ndarray, layer: np.ndarray) -> Hulls:
    """Build hulls from entries in any order: row, column, candidate and share of each, in several parts.

    ``sizes`` are the numbers of candidates of the rows, ``layer`` the layer of each candidate.
    """
    row, column, candidate, share = (np.concatenate(each) for each in zip(*parts, strict=True))
    # numbered from 1, because links of weight 0 are dropped
    links = in_links(column, row, np.arange(1.0, len(row) + 1), len(sizes))
    place = links.weights.astype(np.int64) - 1  # type: ignore[union-attr]
    is_new = np.diff(links.indices, prepend=-1) != 0
    is_new[links.indptr[:-1][np.diff(links.indptr) > 0]] = True
    begins = np.flatnonzero(is_new)
    return Hulls(
        indptr=np.searchsorted(begins, links.indptr),
        indices=links.indices[begins],
        entries=np.append(begins, len(row)),
        candidate=candidate[place].astype(np.int32),
        share=share[place],
        first=np.concatenate([[0], np.cumsum(sizes)]),
        layer=layer,
    )


@kernel()
def mix(hull, first, weights, out, low, high):
    """Compute ``p = Σ_k λ_k t^k`` on the union, for rows low to high."""
    indptr, _, entries, candidate, share = hull
    for i in range(low, high):
        for u in range(indptr[i], indptr[i + 1]):
            total = 0.0
            for e in range(entries[u], entries[u + 1]):
                total += weights[first[i] + candidate[e]] * share[e]
            out[u] = total


@kernel()
def phi(kind, t):
    """Generating function of the divergence in one coordinate, as in :mod:`apexrank.divergences`."""
    if kind == SQUARED:
        return 0.5 * t * t
    log = np.log(max(t, TINY))
    if kind == ITAKURA_SAITO:
        return -log
    return t * log + (1.0 - t) * np.log(max(1.0 - t, TINY)) if kind == LOGISTIC else t * log


@kernel()
def slope_of(kind, t):
    """Derivative ``φ'``; for KL that of t·log t with the constant 1, which matters if coordinates have weights."""
    if kind == SQUARED:
        return t
    u = max(t, TINY)
    if kind == ITAKURA_SAITO:
        return -1.0 / u
    return np.log(u / max(1.0 - t, TINY)) if kind == LOGISTIC else np.log(u) + 1.0


@kernel()
def bend_of(kind, t):
    """Second derivative ``φ''``."""
    if kind == SQUARED:
        return 1.0
    u = max(t, TINY)
    if kind == ITAKURA_SAITO:
        return 1.0 / (u * u)
    return 1.0 / u + 1.0 / max(1.0 - t, TINY) if kind == LOGISTIC else 1.0 / u


@kernel()
def generated(kind, scale, t, derivative):
    """Compute ``scale·φ(t)`` of each coordinate, or ``scale·φ'(t)``."""
    out = np.empty_like(t)
    for j in range(t.size):
        out[j] = scale[j] * (slope_of(kind, t[j]) if derivative else phi(kind, t[j]))
    return out


@kernel()
def convex_costs(kind, scale, indptr, indices, p, base, damping, out, low, high):
    """Compute ``Σ_j scale_j·(φ(t̂_ij) − φ(base_j))`` over the union of each row."""
    for i in range(low, high):
        total = 0.0
        for u in range(indptr[i], indptr[i + 1]):
            b = base[indices[u]]
            total += scale[indices[u]] * (phi(kind, damping * p[u] + b) - phi(kind, b))
        out[i] = total


@kernel()
def _row_cost(kind, scale, hull, i, lam, linear, prior, base, damping, entropy, pull, grad, hess):
    """Compute the cost of a row's weights, and its gradient and Hessian unless ``grad`` is empty."""
    indptr, indices, entries, candidate, share = hull
    m, wanted = lam.size, grad.size > 0
    total = 0.0
    for k in range(m):
        pulled = pull * np.log(max(lam[k], SMALLEST) / prior[k]) if pull > 0.0 else 0.0
        total += lam[k] * (pulled - linear[k])
        if wanted:
            grad[k] = pulled - linear[k]
            for other in range(m):
                hess[k, other] = 0.0
            hess[k, k] = pull / max(lam[k], SMALLEST)
    for u in range(indptr[i], indptr[i + 1]):
        p = 0.0
        for e in range(entries[u], entries[u + 1]):
            p += lam[candidate[e]] * share[e]
        t = damping * p + base[indices[u]]
        factor = entropy * scale[indices[u]]
        total += factor * phi(kind, t)
        if wanted:
            slope, bend = factor * slope_of(kind, t), factor * bend_of(kind, t)
            for e in range(entries[u], entries[u + 1]):
                v = damping * share[e]
                grad[candidate[e]] += slope * v
                for f in range(entries[u], entries[u + 1]):
                    hess[candidate[e], candidate[f]] += bend * v * damping * share[f]
    return total


@kernel()
def _newton_step(lam, grad, hess, fixed, work, x, y, step):
    """Compute the Newton step of the free weights that preserves their sum, by two Cholesky solves.

    Among linearly dependent candidates, only as many move as necessary.
    """
    m = lam.size
    size = 0
    for k in range(m):
        step[k] = 0.0
        if not fixed[k]:
            size += 1
    free = np.empty(size, np.int64)
    at = 0
    for k in range(m):
        if not fixed[k]:
            free[at] = k
            at += 1
    for a in range(size):
        for b in range(a + 1):
            value = hess[free[a], free[b]]
            least = DEPENDENT * value + 1e-300
            for c in range(b):
                value -= work[a, c] * work[b, c]
            if a == b:
                # more candidates than dimensions: an infinite pivot keeps this one fixed, because any step of it can be
                # made by the others, and the rest of the pivot is rounding error
                work[a, a] = np.sqrt(value) if value > least else np.inf
            else:
                work[a, b] = value / work[b, b]
    for a in range(size):
        # H x = −g and H y = 1: x − (Σx/Σy)·y is Newton's step within Σλ = 1
        vx, vy = -grad[free[a]], 1.0
        for c in range(a):
            vx -= work[a, c] * x[c]
            vy -= work[a, c] * y[c]
        x[a], y[a] = vx / work[a, a], vy / work[a, a]
    sx = sy = 0.0
    for a in range(size - 1, -1, -1):
        for c in range(a + 1, size):
            x[a] -= work[c, a] * x[c]
            y[a] -= work[c, a] * y[c]
        x[a] /= work[a, a]
        y[a] /= work[a, a]
        sx += x[a]
        sy += y[a]
    for a in range(size):
        step[free[a]] = x[a] - sx / sy * y[a]


@kernel()
def _normalise(weights):
    total = 0.0
    for weight in weights:
        total += weight
    for k in range(weights.size):
        weights[k] /= total


@kernel()
def _stepped_in_logs(weights, step, length, new):
    """Step in the logarithms of weights under a pull; no weight falls below the smallest number."""
    # the pull has no finite slope at 0; in logarithms a step of any length keeps every weight positive
    top = -np.inf
    for k in range(weights.size):
        new[k] = np.log(weights[k]) + length * step[k] / weights[k]
        top = max(top, new[k])
    for k in range(weights.size):
        new[k] = max(np.exp(new[k] - top), SMALLEST)
    _normalise(new)


@kernel()
def _gap_under_pull(weights, grad, gap, pull):
    """First-order gap without weights that are, and would remain, negligible.

    Their derivatives can be of any size. The gap combines the weighted spread of the derivatives (minus their mean) and
    the possible gain of the linear cost with the pull: ``pull·log Σ_k λ_k exp(−g_k/pull)``.
    """
    spread = total = 0.0
    for k in range(weights.size):
        spread += weights[k] * grad[k] ** 2
        total += weights[k] * np.exp((-gap - grad[k]) / pull)
    return min(gap, max(gap + pull * np.log(total), np.sqrt(spread)))


@kernel()
def project(
    kind,
    scale,
    hull,
    first,
    weights,
    prior,
    prices,
    base,
    damping,
    entropy,
    pull,
    tol,
    new,
    gap,
    slope,
    low,
    high,
):
    """Minimise ``entropy·Σ_j scale_j·φ(t̂_j) − <prices, t̂> + pull·KL(λ‖prior)`` over the weights λ of each row.

    With prices ``∇φ(ρ)`` and entropy 1 this is the Bregman projection of ρ onto the hull. ``gap`` is the first-order
    gap of the given weights, ``Σ_k λ_k g_k − min_k g_k``, ``slope`` the derivative from them towards the new ones. It
    uses Newton's method with an active set; each step is checked for descent.
    """
    indptr, indices, entries, candidate, share = hull
    most = 0
    for i in range(low, high):
        most = max(most, first[i + 1] - first[i])
    grad, start_grad, linear = np.empty(most), np.empty(most), np.empty(most)
    step, trial, x, y = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    hess, work = np.empty((most, most)), np.empty((most, most))
    fixed = np.empty(most, np.bool_)
    for i in range(low, high):
        a, m = first[i], first[i + 1] - first[i]
        lam, p0 = new[a : a + m], prior[a : a + m]
        for k in range(m):
            lam[k] = max(weights[a + k], SMALLEST) if pull > 0.0 else weights[a + k]
            linear[k] = 0.0
        gap[i] = slope[i] = 0.0
        if m < 2:
            continue
        for u in range(indptr[i], indptr[i + 1]):
            price = damping * prices[indices[u]]
            for e in range(entries[u], entries[u + 1]):
                linear[candidate[e]] += share[e] * price
        lin, g, h, d = linear[:m], grad[:m], hess[:m, :m], step[:m]
        for count in range(MOST_STEPS):
            here = _row_cost(kind, scale, hull, i, lam, lin, p0, base, damping, entropy, pull, g, h)
            mean, least = 0.0, np.inf
            for k in range(m):
                mean += lam[k] * g[k]
                least = min(least, g[k])
            for k in range(m):
                g[k] -= mean  # preserves precision if one weight is nearly 1
            if count == 0:
                gap[i] = mean - least if pull == 0.0 else _gap_under_pull(lam, g, mean - least, pull)
                for k in range(m):
                    start_grad[k] = g[k]
            if mean - least <= tol:
                break
            # active set: a weight at 0 stays fixed while its derivative is non-negative; a weight that the step would
            # make negative is fixed as well, and the step is recomputed, at most m times
            for k in range(m):
                fixed[k] = lam[k] <= 0.0 and g[k] >= 0.0
            while True:
                _newton_step(lam, g, h, fixed[:m], work, x, y, d)
                blocked = False
                for k in range(m):
                    if not fixed[k] and lam[k] <= 0.0 and d[k] < 0.0:
                        fixed[k] = blocked = True
                if not blocked:
                    break
            length, descent, hit, factor = 1.0, 0.0, -1, 0.0
            for k in range(m):
                descent += d[k] * g[k]
                if pull > 0.0:
                    factor = max(factor, abs(d[k]) / lam[k])
                if pull == 0.0 and d[k] < 0.0 and lam[k] + length * d[k] < 0.0:
                    length, hit = -lam[k] / d[k], k
            if not descent < 0.0:
                break  # only rounding errors are left, or nan
            # the possible gain is below the rounding error of the cost: accept the Newton step unchecked
            done = -descent <= FLAT * (1.0 + abs(here)) and factor < 0.5
            lost = 1e-15 * (1.0 + abs(here)) if pull > 0.0 else 0.0
            for _ in range(50):
                if pull > 0.0:
                    _stepped_in_logs(lam, d, length, trial[:m])
                else:
                    for k in range(m):
                        trial[k] = max(lam[k] + length * d[k], 0.0)
                if hit >= 0:
                    trial[hit] = 0.0
                if done:
                    break
                there = _row_cost(
                    kind, scale, hull, i, trial[:m], lin, p0, base, damping, entropy, pull, g[:0], h
                )
                done = there <= here + 1e-4 * length * descent + lost  # Armijo condition
                if not done:
                    length, hit = 0.5 * length, -1
            if not done:
                break
            _normalise(trial[:m])
            for k in range(m):
                lam[k] = trial[k]
        for k in range(m):
            slope[i] += start_grad[k] * (lam[k] - weights[a + k])


@kernel()
def corroborate(
    hull, first, weights, prior, ranks, base, damping, far, near, temperature, new, gap, low, high
):
    """Weight candidates by their corroboration by the row's others, against the background of the ranks.

    ``λ_k ∝ prior_k·exp(−D(t̂_k‖r_k)/(temperature·I_k))``, where ``r_k = a·o_k + (1 − a)·ranks``, o_k is the mixture of
    the other candidates, and ``I_k = Σ t̂_k log t̂_k + log n`` is the information of the candidate. ``far`` is the
    value of D, and ``near`` that of Σ t̂ log t̂, if all columns were like those outside the row's union. ``gap`` is the
    change of the weights, half of ``|λ_new − λ|₁``.
    """
    indptr, indices, entries, candidate, share = hull
    n = ranks.size
    most = 0
    for i in range(low, high):
        most = max(most, first[i + 1] - first[i])
    others, cross, own, here = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    for i in range(low, high):
        a, m = first[i], first[i + 1] - first[i]
        gap[i] = 0.0
        for k in range(m):
            new[a + k] = weights[a + k]
        if m < 2:
            continue
        for k in range(m):
            cross[k], own[k], others[k] = far, near, 0.0
            for other in range(m):
                if other != k:
                    others[k] += weights[a + other]
        for u in range(indptr[i], indptr[i + 1]):
            j = indices[u]
            b, w = base[j], (1.0 - damping) * ranks[j]
            outside = b * (np.log(max(b, TINY)) - np.log(max(w, TINY)))
            bare = phi(KL, b)
            for k in range(m):
                here[k] = 0.0
            for e in range(entries[u], entries[u + 1]):
                here[candidate[e]] = share[e]
            for k in range(m):
                mixed = 0.0
                for e in range(entries[u], entries[u + 1]):
                    if candidate[e] != k:
                        mixed += weights[a + candidate[e]] * share[e]
                r = damping * mixed / others[k] + w if others[k] > 0.0 else ranks[j]
                t = damping * here[k] + b
                cross[k] += t * (np.log(max(t, TINY)) - np.log(max(r, TINY))) - outside
                own[k] += phi(KL, t) - bare
        top = -np.inf
        for k in range(m):
            cross[k] = np.log(prior[a + k]) - cross[k] / (
                temperature * max(own[k] + np.log(n), LEAST_INFORMATION)
            )
            top = max(top, cross[k])
        total = 0.0
        for k in range(m):
            new[a + k] = np.exp(cross[k] - top)
            total += new[a + k]
        for k in range(m):
            new[a + k] /= total
            gap[i] += 0.5 * abs(new[a + k] - weights[a + k])
